/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample_test.c: what samples share on the host: ranges of storages that are filled, read and loaded, from
 * wherever on; the length of commands, and how they ended; files that are mapped; how many lanes there are.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>
#include <weir/weir.h>

#include "../../samples/common/load.h"
#include "../../samples/common/mapping.h"
#include "../../samples/common/span_host.h"
#include "../../samples/common/vector.h"

enum { STORAGES = 3, STRIPE = 64 << 10, BYTES = 5 * STRIPE };

#define GIB ((uint64_t)1 << 30)

/* Beyond 4 GiB of each storage; the lowest 32 bits of it are another place, too. */
static const uint64_t far = 5 * GIB + 3 * STRIPE;

static struct weir_context *context;
static struct sample_storage storages[STORAGES];
static char names[STORAGES][64], uris[STORAGES][256], error[SAMPLE_ERROR_BYTES];

static int kernel_file = -1; /* calls of the system on which are noted */

static uint64_t word_of(unsigned storage, uint64_t offset)
{
	return sample_scramble(storage * 1000003 + offset);
}

/* Words of @bytes from byte @at of a storage on, into its file. */
static void put(int file, unsigned storage, uint64_t at, uint64_t bytes)
{
	static uint64_t words[BYTES / 8];

	for (uint64_t i = 0; i < bytes / 8; i++)
		words[i] = word_of(storage, at + i * 8);
	assert_int_equal(pwrite(file, words, bytes, (off_t)at), bytes);
}

/* Files of 6 GiB that have something in two places alone, each as a storage. */
static int open_all(void **state)
{
	const struct sample_device device = { .queues = 2, .depth = 16 };

	(void)state;
	assert_int_equal(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context), 0);
	for (unsigned i = 0; i < STORAGES; i++) {
		int file;

		snprintf(names[i], sizeof(names[i]), "sample_test.%d.%u", (int)getpid(), i);
		snprintf(uris[i], sizeof(uris[i]), "file:%s?direct=off&mdts=%u", names[i], 8192 << i);
		file = open(names[i], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		assert_true(file >= 0 && ftruncate(file, (off_t)(6 * GIB)) == 0);
		put(file, i, 0, BYTES);
		put(file, i, 5 * GIB, BYTES);
		put(file, i, 5 * GIB + BYTES, BYTES);
		close(file);
		if (sample_storage_open(&device, context, uris[i], &storages[i], error) != 0)
			fail_msg("%s", error);
	}
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STORAGES; i++)
		unlink(names[i]);
	return weir_context_close(context);
}

/* A command is as long as the storage takes it, and no longer; queue pairs are those that were asked for. */
static void pieces_are_single_commands(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STORAGES; i++) {
		assert_int_equal(storages[i].info.queues, 2);
		assert_int_equal(storages[i].info.depth, 16);
		assert_int_equal(storages[i].info.max_transfer_bytes, 8192 << i);
		assert_int_equal(storages[i].span.piece_bytes, 8192 << i);
	}
}

/* The words of a source of @count storages from @first on, in device memory; each from where it is. */
static void loads(unsigned count, uint64_t first, uint64_t bytes)
{
	static uint64_t words[BYTES / 8];
	struct weir_storage *opened[STORAGES] = { storages[0].storage, storages[1].storage,
						  storages[2].storage };
	const struct sample_source source = {
		.storages = opened, .storage_count = count, .first_byte = first, .bytes = bytes
	};
	uint64_t address;

	assert_int_equal(sample_load(context, &source, &address), 0);
	assert_int_equal(weir_copy_from_device(context, words, address, bytes), 0);
	for (uint64_t i = 0; i < bytes / 8; i++) {
		uint64_t at = first + i * 8, unit = at / STRIPE;
		unsigned storage = (unsigned)(unit % count);

		at = unit / count * STRIPE + at % STRIPE;
		if (words[i] != word_of(storage, at))
			fail_msg("byte %llu is not that of storage %u at %llu",
				 (unsigned long long)(first + i * 8), storage, (unsigned long long)at);
	}
	assert_int_equal(weir_free(context, address), 0);
}

static void sources_are_loaded_from_where_they_are(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= STORAGES; count++) {
		loads(count, 0, BYTES);
		loads(count, 16, BYTES - 24);
		loads(count, count * (5 * GIB) + STRIPE - 8, BYTES);
		loads(count, count * far, 16);
	}
}

/* Of each element the part that is wanted, beyond 4 GiB, too. */
static void parts_of_elements(void **state)
{
	enum { COUNT = 1000 };
	static uint64_t words[COUNT];
	struct sample_source source = { .storages = &storages[0].storage,
					.storage_count = 1,
					.first_byte = far,
					.bytes = COUNT * 8,
					.element_bytes = 8,
					.part_byte = 4,
					.to_bytes = 8 };
	uint64_t address;

	(void)state;
	assert_int_equal(sample_load(context, &source, &address), 0);
	assert_int_equal(weir_copy_from_device(context, words, address, sizeof(words)), 0);
	for (uint64_t i = 0; i < COUNT; i++)
		assert_true(words[i] == word_of(0, far + i * 8) >> 32);
	assert_int_equal(weir_free(context, address), 0);
}

static void make(uint64_t *words, uint64_t first, uint64_t count, void *of)
{
	for (uint64_t i = 0; i < count; i++)
		words[i] = ~word_of(2, *(const uint64_t *)of + (first + i) * 8);
}

static int take(const uint64_t *words, uint64_t first, uint64_t count, void *to, char *why)
{
	uint64_t *range = to; /* where it begins, and how many words came */

	for (uint64_t i = 0; i < count; i++)
		if (words[i] != ~word_of(2, range[0] + (first + i) * 8))
			return sample_fail(why, -1, "word %llu", (unsigned long long)(first + i));
	range[1] += count;
	return 0;
}

/* A range whose last block is not whole: that comes to be whole by zeros, and the next one stays. */
static void is_filled_and_read(int file, uint64_t at, uint64_t bytes)
{
	const uint64_t block = storages[2].info.block_bytes, end = at + bytes / block * block, mark = far;
	uint64_t range[2] = { at, 0 }, words[4096 / 8];

	assert_int_equal(pwrite(file, &mark, sizeof(mark), (off_t)(end + block)), sizeof(mark));
	assert_int_equal(sample_fill(storages[2].storage, at, bytes, make, range, error), 0);
	assert_int_equal(sample_read(storages[2].storage, at, bytes, take, range, error), 0);
	assert_int_equal(range[1], bytes / 8);
	assert_int_equal(pread(file, words, block, (off_t)end), block);
	for (uint64_t i = bytes % block / 8; i < block / 8; i++)
		assert_int_equal(words[i], 0);
	assert_int_equal(pread(file, words, 8, (off_t)(end + block)), 8);
	assert_true(words[0] == mark);
	range[0]++; /* another range's words are found */
	assert_int_equal(sample_read(storages[2].storage, at, block, take, range, error), -1);
}

static void ranges_are_filled_and_read(void **state)
{
	int file = open(names[2], O_RDWR | O_CLOEXEC);

	(void)state;
	assert_true(file >= 0);
	is_filled_and_read(file, STRIPE, 4096 + 16);
	is_filled_and_read(file, 5 * GIB + STRIPE, 2 * SAMPLE_PIECE_BYTES + 4096 + 16); /* several pieces */
	close(file);
}

/* For the host: from any byte on, in as many blocks as it takes. */
static void bytes_from_anywhere(void **state)
{
	static const uint64_t at[] = { 0, 8, 4096 + 4088, 5 * GIB + 8, 5 * GIB + BYTES - 8 };
	static uint64_t room[(8192 + 2 * 4096) / 8];
	const unsigned char *from;

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_int_equal(sample_storage_bytes(&storages[1], at[i], 8192, room, &from, error), 0);
		for (uint64_t k = 0; k < 8192; k += 8) {
			uint64_t word;

			memcpy(&word, from + k, sizeof(word));
			assert_true(word == word_of(1, at[i] + k));
		}
	}
	assert_true(sample_storage_bytes(&storages[1], 6 * GIB - 4096, 8192, room, &from, error) < 0);
}

/* All of a file, or a sentence; of an empty one there is nothing to map, whatever errno was. */
static void files_are_mapped(void **state)
{
	struct sample_mapping mapping;
	int file = open(names[0], O_RDONLY | O_CLOEXEC), empty;
	uint64_t word;

	(void)state;
	assert_int_equal(sample_map(&mapping, file, false, error), 0);
	assert_int_equal(mapping.length, 6 * GIB);
	memcpy(&word, mapping.bytes + far, sizeof(word));
	assert_true(word == word_of(0, far));
	sample_unmap(&mapping);
	sample_unmap(&mapping);
	close(file);
	empty = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (empty < 0)
		skip();
	errno = 0;
	error[0] = '\0';
	assert_true(sample_map(&mapping, empty, false, error) < 0);
	assert_non_null(strstr(error, "cannot map 0 bytes"));
	assert_null(mapping.bytes);
	close(empty);
}

/** kernel - calls of it in their order, and the one that fails */
static struct {
	char calls[8];
	char failing;
} kernel;

static int call(char which)
{
	size_t count = strlen(kernel.calls);

	assert_true(count + 1 < sizeof(kernel.calls));
	kernel.calls[count] = which;
	return kernel.failing == which ? EDQUOT : 0;
}

/* In the place of the system's; what the library syncs is none of this. */
int fsync(int file)
{
	errno = file == kernel_file ? call('s') : 0;
	return file == kernel_file ? -(errno != 0) : (int)syscall(SYS_fsync, file);
}

int posix_fadvise(int file, off_t offset, off_t bytes, int advice)
{
	assert_true(file == kernel_file && offset == 0 && bytes == 0 && advice == POSIX_FADV_DONTNEED);
	return call('d');
}

/* Pages that are dirty stay: they are written first. Where either fails nobody may take them for dropped. */
static void pages_are_dropped(void **state)
{
	static const struct {
		char failing;
		const char *calls;
	} rows[] = { { '\0', "sd" }, { 's', "s" }, { 'd', "sd" } };

	(void)state;
	kernel_file = open(names[0], O_RDWR | O_CLOEXEC);
	assert_true(kernel_file >= 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(&kernel, 0, sizeof(kernel));
		kernel.failing = rows[i].failing;
		error[0] = '\0';
		assert_int_equal(sample_forget(kernel_file, error), rows[i].failing ? -EDQUOT : 0);
		assert_string_equal(kernel.calls, rows[i].calls);
		assert_int_equal(strstr(error, strerror(EDQUOT)) != NULL, rows[i].failing != 0);
	}
	close(kernel_file);
	kernel_file = -1;
}

/* The first failure is the one that counts. */
static void what_was_open_is_closed(void **state)
{
	struct weir_context *other;

	(void)state;
	snprintf(error, sizeof(error), "it failed before");
	assert_int_equal(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &other), 0);
	assert_int_equal(sample_close(other, -ENOSPC, error), -ENOSPC);
	assert_string_equal(error, "it failed before");
	assert_int_equal(sample_close(NULL, 0, error), 0);
	assert_int_equal(sample_close(NULL, -EIO, error), -EIO);
	assert_string_equal(error, "it failed before");
}

/* Whatever came first; of an even number the two in the middle count alike. */
static void medians(void **state)
{
	double one[] = { 7 }, two[] = { 9, 4 }, three[] = { 30, 10, 20 }, four[] = { 40, 1, 3, 2 };
	double five[] = { -5, 1e300, 6, -1e300, 8 };

	(void)state;
	assert_true(sample_median(one, 0) == 0 && sample_median(one, 1) == 7);
	assert_true(sample_median(two, 2) == 6.5 && two[0] == 4 && two[1] == 9);
	assert_true(sample_median(three, 3) == 20 && three[0] == 10 && three[2] == 30);
	assert_true(sample_median(four, 4) == 2.5 && sample_median(five, 5) == 6);
}

/* Of one worker: 64 blocks of 256 lanes at most, one at least, and none that would have nothing to do. */
static void blocks_for_lanes(void **state)
{
	static const uint64_t rows[][2] = { { 0, 1 },      { 1, 1 },    { 255, 1 },        { 256, 1 },
					    { 511, 1 },    { 512, 2 },  { 16383, 63 },     { 16384, 64 },
					    { 16640, 64 }, { GIB, 64 }, { 1024 * GIB, 64 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t blocks = 0;

		assert_int_equal(sample_blocks(context, rows[i][0], &blocks), 0);
		assert_int_equal(blocks, rows[i][1]);
	}
}

/* A command of a lane that failed is told by its storage's URI and its status; of the others nothing is. */
static void failures_of_lanes(void **state)
{
	const uint64_t failure = WEIR_E_TIMEOUT, none = 0;
	char text[80];

	(void)state;
	weir_status_text(WEIR_E_TIMEOUT, text);
	for (unsigned i = 0; i < STORAGES; i++)
		assert_int_equal(sample_storage_failed(context, &storages[i], error), 0);
	assert_int_equal(weir_copy_to_device(context, storages[1].span.failure, &failure, sizeof(failure)),
			 0);
	for (unsigned i = 0; i < STORAGES; i++)
		assert_int_equal(sample_storage_failed(context, &storages[i], error), i == 1 ? -EIO : 0);
	assert_true(strstr(error, uris[1]) && strstr(error, text));
	assert_int_equal(weir_copy_to_device(context, storages[1].span.failure, &none, sizeof(none)), 0);
}

static void whole_units(void **state)
{
	(void)state;
	assert_true(sample_round_up(0, 4096) == 0 && sample_round_up(1, 4096) == 4096 &&
		    sample_round_up(4096, 4096) == 4096 && sample_round_up(4097, 4096) == 8192);
	assert_true(sample_round_up(8 * GIB + 1, 512) == 8 * GIB + 512 && sample_round_up(10, 3) == 12);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_single_commands),
		cmocka_unit_test(sources_are_loaded_from_where_they_are),
		cmocka_unit_test(parts_of_elements),
		cmocka_unit_test(bytes_from_anywhere),
		cmocka_unit_test(files_are_mapped),
		cmocka_unit_test(ranges_are_filled_and_read),
		cmocka_unit_test(pages_are_dropped),
		cmocka_unit_test(what_was_open_is_closed),
		cmocka_unit_test(medians),
		cmocka_unit_test(blocks_for_lanes),
		cmocka_unit_test(failures_of_lanes),
		cmocka_unit_test(whole_units),
	};

	return cmocka_run_group_tests_name("sample", tests, open_all, close_all);
}
