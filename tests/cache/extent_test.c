/* SPDX-License-Identifier: BSD-3-Clause */
/* Where things end: files that are no whole number of blocks, by every way to read and write. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/core/cache/extent.h>
#include <weir/weir.h>

#include "../rig/context.h"
#include "extent.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

#define refused(call, error, one, two)                                                                       \
	do {                                                                                                 \
		assert_int_equal(call, error);                                                               \
		if (!strstr(weir_last_error(), one) || !strstr(weir_last_error(), two))                      \
			fail_msg("'%s' and '%s' are not in: %s", one, two, weir_last_error());               \
	} while (0)

enum { MOST_BYTES = 32768, LANES = 64, TIMEOUT_US = 30000000 };

/** struct rig - a file of some bytes, and what is open on it */
struct rig {
	char file[64];
	uint64_t bytes, count; /* of the file; of whole elements in it */
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_cache *cache;
	struct weir_storage_info info;
	uint64_t verdict;
	bool writable;
};

/** struct way - how a file is reached */
struct way {
	const char *folder;
	const char *format; /* of the URI */
	bool writable;
};

static const struct way ways[] = {
	{ "/tmp", "file:%s?block=512&direct=off", true },
	{ "/tmp", "file:%s?block=4096&direct=off", true },
	{ "/tmp", "file:%s?block=512&direct=on", true },
	{ "/tmp", "file:%s?block=4096&direct=on", true },
	{ "/tmp", "file:%s?block=512&ro=1", false },
	{ "/tmp", "file:%s?block=4096&direct=on&ro=1", false },
	{ "/dev/shm", "file:%s?block=512", true },
	{ "/dev/shm", "file:%s", true },
	{ "/tmp", "virt:?load=%s&block=512", true },
	{ "/tmp", "virt:?load=%s&block=4096", true },
};

/* A dataset made with @seed, as far as there are whole elements; what is left is 0x5a. */
static void make(const struct rig *rig, uint64_t seed, unsigned char *bytes)
{
	memset(bytes, 0x5a, rig->bytes);
	for (uint64_t i = 0; i < rig->count; i++) {
		uint32_t value = extent_value(seed, i);

		memcpy(bytes + i * sizeof(value), &value, sizeof(value));
	}
}

static void make_file(struct rig *rig, const char *folder)
{
	unsigned char bytes[MOST_BYTES];
	int file;

	snprintf(rig->file, sizeof(rig->file), "%s/weir-extent-XXXXXX", folder);
	file = mkstemp(rig->file);
	assert_true(file >= 0);
	make(rig, 1, bytes);
	assert_int_equal(write(file, bytes, rig->bytes), rig->bytes);
	close(file);
}

/* Return: false where the file system does not know O_DIRECT. */
static bool open_rig(struct rig *rig, const struct way *way, uint64_t bytes)
{
	char uri[160];
	int error;

	memset(rig, 0, sizeof(*rig));
	rig->bytes = bytes;
	rig->count = bytes / 4;
	rig->writable = way->writable;
	make_file(rig, way->folder);
	must(weir_context_open(test_context_name(), NULL, &rig->context));
	snprintf(uri, sizeof(uri), way->format, rig->file);
	error = test_storage_open(rig->context, uri,
				  WEIR_OPTIONS(storage, .queues = 2, .depth = 16, .read_only = !way->writable,
					       .timeout_us = test_patient_us(TIMEOUT_US)),
				  &rig->storage);
	if (error && strstr(uri, "direct=on")) {
		print_message("# SKIPPED, NOT TESTED HERE: O_DIRECT in %s\n", way->folder);
		weir_context_close(rig->context);
		unlink(rig->file);
		return false;
	}
	must(error);
	rig->info.size = sizeof(rig->info);
	must(weir_storage_info(rig->storage, &rig->info));
	must(weir_cache_create(rig->context, WEIR_OPTIONS(cache, .lines = 8, .line_bytes = 4096),
			       &rig->cache));
	must(weir_alloc(rig->context, sizeof(struct test_verdict), &rig->verdict));
	return true;
}

/* The file has its size still, and what a dataset made with @seed has. */
static void close_rig(struct rig *rig, uint64_t seed)
{
	unsigned char found[MOST_BYTES], expected[MOST_BYTES];
	struct stat info;
	int file;

	must(weir_cache_destroy(rig->cache));
	weir_storage_close(rig->storage);
	weir_context_close(rig->context);
	file = open(rig->file, O_RDONLY);
	assert_int_equal(fstat(file, &info), 0);
	assert_int_equal(info.st_size, rig->bytes);
	assert_int_equal(read(file, found, rig->bytes), rig->bytes);
	make(rig, seed, expected);
	assert_memory_equal(found, expected, rig->bytes);
	close(file);
	unlink(rig->file);
}

static void run(struct rig *rig, const char *kernel, struct weir_writer writer, uint64_t seed)
{
	struct extent_elements_args args = { .writer = writer, .seed = seed, .verdict = rig->verdict };
	struct test_verdict verdict, none;

	memset(&none, 0, sizeof(none));
	must(weir_copy_to_device(rig->context, rig->verdict, &none, sizeof(none)));
	must(weir_launch(rig->context, kernel, 1, LANES, &args, sizeof(args)));
	must(weir_sync(rig->context));
	must(weir_copy_from_device(rig->context, &verdict, rig->verdict, sizeof(verdict)));
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.bad), 0);
	if (!strcmp(kernel, "extent_check"))
		assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good), rig->count);
}

static void check_array(struct rig *rig, uint64_t seed)
{
	struct weir_writer writer;
	char fits[32];

	memset(&writer, 0, sizeof(writer));
	snprintf(fits, sizeof(fits), "%llu bytes of storage", (unsigned long long)rig->bytes);
	refused(weir_array_open(rig->cache, &rig->storage, 1,
				WEIR_OPTIONS(array, .element_bytes = 4, .count = rig->count + 1),
				&writer.array),
		-ERANGE, "do not fit", fits);
	must(weir_array_open(rig->cache, &rig->storage, 1, WEIR_OPTIONS(array, .element_bytes = 4),
			     &writer.array));
	assert_int_equal(writer.array.count, rig->count);
	run(rig, "extent_check", writer, seed);
}

static void write_array(struct rig *rig, uint64_t seed)
{
	struct weir_writer writer;

	must(weir_writer_open(rig->cache, &rig->storage, 1, WEIR_OPTIONS(array, .element_bytes = 4),
			      &writer));
	assert_int_equal(writer.array.count, rig->count);
	run(rig, "extent_put", writer, seed);
	must(weir_cache_flush(rig->cache, 1));
}

/* A lane's raw access to the last @blocks blocks. */
static void access_blocks(struct rig *rig, uint32_t blocks, bool write, unsigned char *bytes)
{
	struct extent_block_args args = { .write = write, .blocks = blocks };
	uint64_t length = (uint64_t)blocks * rig->info.block_bytes;
	uint32_t statuses[2];

	must(weir_storage_disk(rig->storage, &args.disk));
	must(weir_alloc(rig->context, length, &args.buffer));
	must(weir_alloc(rig->context, 4096, &args.event));
	args.statuses = args.event + 2048;
	args.lba = args.disk.blocks - blocks;
	must(weir_copy_to_device(rig->context, args.buffer, bytes, length));
	must(weir_launch(rig->context, "extent_block", 1, 1, &args, sizeof(args)));
	must(weir_sync(rig->context));
	must(weir_copy_from_device(rig->context, statuses, args.statuses, sizeof(statuses)));
	assert_int_equal(statuses[write], 0);
	must(weir_copy_from_device(rig->context, bytes, args.buffer, length));
	must(weir_free(rig->context, args.buffer));
	must(weir_free(rig->context, args.event));
}

static void check_blocks(struct rig *rig, uint32_t blocks, uint64_t seed)
{
	uint64_t length = (uint64_t)blocks * rig->info.block_bytes;
	uint64_t first =
		(rig->bytes + rig->info.block_bytes - 1) / rig->info.block_bytes * rig->info.block_bytes -
		length;
	unsigned char found[MOST_BYTES], expected[MOST_BYTES + 4096];

	memset(expected, 0, sizeof(expected));
	make(rig, seed, expected);
	memset(found, 0xee, length);
	access_blocks(rig, blocks, false, found);
	assert_memory_equal(found, expected + first, length);
	memset(found, 0xee, length);
	must(weir_storage_read(rig->storage, first, found, length));
	assert_memory_equal(found, expected + first, length);
	memset(found, 0xee, length);
	must(weir_storage_read(rig->storage, first, found, rig->bytes - first));
	assert_memory_equal(found, expected + first, rig->bytes - first);
	assert_int_equal(found[rig->bytes - first], 0xee);
}

/* By lanes, whole blocks, of which the file keeps what it has room for; by the host, no more than that. */
static void write_blocks(struct rig *rig, uint32_t blocks, uint64_t seed)
{
	uint64_t length = (uint64_t)blocks * rig->info.block_bytes;
	uint64_t first =
		(rig->bytes + rig->info.block_bytes - 1) / rig->info.block_bytes * rig->info.block_bytes -
		length;
	unsigned char bytes[MOST_BYTES + 4096];
	char end[64];

	memset(bytes, 0x77, sizeof(bytes));
	make(rig, seed, bytes);
	snprintf(end, sizeof(end), "past its %llu bytes; %llu bytes fit", (unsigned long long)rig->bytes,
		 (unsigned long long)(rig->bytes - first));
	refused(weir_storage_write(rig->storage, first, bytes + first, length), -ERANGE, rig->file, end);
	access_blocks(rig, blocks, true, bytes + first);
	check_blocks(rig, blocks, seed);
	make(rig, seed + 1, bytes);
	must(weir_storage_write(rig->storage, 0, bytes, rig->bytes));
	must(weir_storage_flush(rig->storage));
	check_blocks(rig, blocks, seed + 1);
}

static void test_ends_of_files(void **state)
{
	static const uint64_t sizes[] = { 4000, 16288, 16289, 13, 20483 };

	(void)state;
	if (test_given())
		skip();
	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			uint64_t seed = 1;
			struct rig rig;

			if (!open_rig(&rig, &ways[w], sizes[s]))
				continue;
			assert_int_equal(rig.info.bytes, rig.bytes);
			check_array(&rig, seed);
			check_blocks(&rig, rig.bytes > 2 * rig.info.block_bytes ? 2 : 1, seed);
			if (rig.writable) {
				write_array(&rig, seed = 5);
				check_array(&rig, seed);
				check_blocks(&rig, 1, seed);
				must(weir_cache_destroy(rig.cache));
				write_blocks(&rig, rig.bytes > 2 * rig.info.block_bytes ? 2 : 1, 7);
				must(weir_cache_create(rig.context, WEIR_OPTIONS(cache, .lines = 8),
						       &rig.cache));
				check_array(&rig, seed = 8);
			}
			close_rig(&rig, strncmp(ways[w].format, "file:", 5) ? 1 : seed);
		}
}

/* Memory of a size that was asked for is that large, whatever is loaded into it. */
static void test_ends_of_memory(void **state)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	struct weir_storage *storage;
	struct rig rig = { .bytes = 4000, .count = 1000 };
	char uri[160];

	(void)state;
	make_file(&rig, "/tmp");
	must(weir_context_open(test_context_name(), NULL, &rig.context));
	snprintf(uri, sizeof(uri), "virt:8K?load=%s", rig.file);
	must(weir_storage_open(rig.context, uri, NULL, &storage));
	must(weir_storage_info(storage, &info));
	assert_int_equal(info.bytes, 8192);
	weir_storage_close(storage);
	assert_int_equal(truncate(rig.file, 0), 0);
	snprintf(uri, sizeof(uri), "virt:?load=%s", rig.file);
	refused(weir_storage_open(rig.context, uri, NULL, &storage), -EINVAL, rig.file, "empty");
	refused(weir_storage_open(rig.context, "virt:?block=512", NULL, &storage), -EINVAL, "not a size",
		"virt:64M");
	weir_context_close(rig.context);
	unlink(rig.file);
}

/* Bytes of the accessor of each kind. */
static const uint32_t WIDTHS[EXTENT_ACCESSORS] = { 1, 2, 4, 8, 16, 24, 8, 8, 8, 4,  8, 16, 8,
						   4, 8, 4, 8, 8,  1,  2, 4, 8, 16, 4, 8 };

/** struct pair - two storages behind one cache, the second's keys behind the first's; both full of 0x01 and
 * 0x02 */
struct pair {
	struct weir_context *context;
	struct weir_storage *storages[2];
	struct weir_cache *cache;
	uint64_t buffer;
};

static void open_pair_of(struct pair *pair, uint32_t width)
{
	static unsigned char bytes[65536];

	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1, .wave_lanes = width),
			       &pair->context));
	must(weir_cache_create(pair->context, WEIR_OPTIONS(cache, .lines = 64, .line_bytes = 4096),
			       &pair->cache));
	must(weir_alloc(pair->context, 4096, &pair->buffer));
	for (unsigned i = 0; i < 2; i++) {
		must(weir_storage_open(pair->context, "virt:64K",
				       WEIR_OPTIONS(storage, .queues = 1, .depth = 16), &pair->storages[i]));
		memset(bytes, (int)i + 1, sizeof(bytes));
		must(weir_storage_write(pair->storages[i], 0, bytes, sizeof(bytes)));
	}
}

static void open_pair(struct pair *pair)
{
	open_pair_of(pair, 0);
}

static void check_pair(struct pair *pair)
{
	static unsigned char bytes[65536];

	must(weir_cache_flush(pair->cache, 0));
	for (unsigned i = 0; i < 2; i++) {
		must(weir_storage_read(pair->storages[i], 0, bytes, sizeof(bytes)));
		for (unsigned k = 0; k < sizeof(bytes); k++)
			assert_int_equal(bytes[k], i + 1);
	}
}

static void close_pair(struct pair *pair)
{
	must(weir_cache_destroy(pair->cache));
	weir_storage_close(pair->storages[1]);
	weir_storage_close(pair->storages[0]);
	weir_context_close(pair->context);
}

/* One lane, one access. Return: what it got, 0x77 where it got nowhere. */
static uint64_t misuse(struct pair *pair, const struct weir_writer *writer, uint64_t index, uint32_t kind,
		       int *error)
{
	struct extent_misuse_args args = {
		.writer = *writer, .index = index, .kind = kind, .buffer = pair->buffer
	};
	uint64_t got = 0x77;

	must(weir_copy_to_device(pair->context, pair->buffer + 16, &got, sizeof(got)));
	must(weir_launch(pair->context, "extent_misuse", 1, 1, &args, sizeof(args)));
	*error = weir_sync(pair->context);
	must(weir_copy_from_device(pair->context, &got, pair->buffer + 16, sizeof(got)));
	return got;
}

static void open_writer(struct pair *pair, unsigned number, uint32_t element_bytes,
			struct weir_writer *writer)
{
	must(weir_writer_open(pair->cache, &pair->storages[number], 1,
			      WEIR_OPTIONS(array, .element_bytes = element_bytes), writer));
}

/* The line of the second storage that a wide access to the first would end in is in the cache, dirty or not.
 */
static void test_widths(void **state)
{
	static const uint32_t elements[] = { 1, 2, 4, 8, 16, 24 };
	struct weir_writer first, second;
	struct pair pair;
	char says[80];
	int error;

	(void)state;
	open_pair(&pair);
	open_writer(&pair, 0, 8, &first);
	open_writer(&pair, 1, 8, &second);
	for (uint64_t at = 0; at < second.array.count; at += 512)
		assert_int_equal(misuse(&pair, &second, at, EXTENT_GET_U64, &error), 0x0202020202020202u);
	for (size_t e = 0; e < sizeof(elements) / sizeof(elements[0]); e++)
		for (uint32_t kind = 0; kind < EXTENT_ACCESSORS; kind++) {
			open_writer(&pair, 0, elements[e], &first);
			if (WIDTHS[kind] == elements[e]) { /* as it should be: an access that works */
				if (kind < EXTENT_READS && kind != EXTENT_TRY_RUN && kind != EXTENT_VIEW_OF)
					assert_int_equal(
						misuse(&pair, &first, first.array.count - 1, kind, &error) &
							0xff,
						1);
				continue;
			}
			assert_int_equal(misuse(&pair, &first, first.array.count - 1, kind, &error), 0);
			snprintf(says, sizeof(says),
				 "accessor of %u bytes on an array whose elements have %u:", WIDTHS[kind],
				 elements[e]);
			refused(error, -EIO, says, "width");
		}
	check_pair(&pair);
	close_pair(&pair);
}

/* An array whose structure says more than its storage has: lines past its extent, which are another
 * storage's, are not fetched or written. */
static void test_lines_past_the_extent(void **state)
{
	static const uint32_t kinds[] = { EXTENT_GET_U64,    EXTENT_RUN,        EXTENT_VIEW_U64,
					  EXTENT_CURSOR_U64, EXTENT_GATHER_U64, EXTENT_PUT_U64,
					  EXTENT_ADD_U64 };
	struct weir_writer first, second;
	struct pair pair;
	uint64_t end;
	int error;

	(void)state;
	open_pair(&pair);
	open_writer(&pair, 0, 8, &first);
	open_writer(&pair, 1, 8, &second);
	end = first.array.count;
	first.array.count *= 2;
	for (size_t i = 0; i < 2 * sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint64_t index = i % 2 ? first.array.count - 1 : end;

		assert_int_equal(misuse(&pair, &first, index, kinds[i / 2], &error), 0);
		refused(error, -EIO, "could not get block", "past the end of the storage");
	}
	check_pair(&pair);
	close_pair(&pair);
}

enum { NONE_LANES = 37 };

/* An array without an element, at the end of its storage: who reads nothing of it meets no error, while
 * others of its wave read something. */
static void test_no_element_at_the_end(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		uint32_t statuses[NONE_LANES];
		struct extent_none_args args;
		struct pair pair;

		memset(&args, 0, sizeof(args));
		open_pair_of(&pair, test_width(w));
		must(weir_array_open(pair.cache, &pair.storages[0], 1,
				     WEIR_OPTIONS(array, .element_bytes = 8), &args.array));
		must(weir_array_open(
			pair.cache, &pair.storages[1], 1,
			WEIR_OPTIONS(array, .element_bytes = 8, .first_byte = args.array.count * 8),
			&args.none));
		assert_int_equal(args.none.count, 0);
		must(weir_alloc(pair.context, NONE_LANES * 8, &args.buffers));
		must(weir_alloc(pair.context, sizeof(statuses), &args.statuses));
		must(weir_launch(pair.context, "extent_none", 1, NONE_LANES, &args, sizeof(args)));
		must(weir_sync(pair.context));
		must(weir_copy_from_device(pair.context, statuses, args.statuses, sizeof(statuses)));
		for (unsigned lane = 0; lane < NONE_LANES; lane++)
			assert_int_equal(statuses[lane], WEIR_OK);
		close_pair(&pair);
	}
}

/* The first storage does not hold one unit of the stripe. */
static void test_a_stripe_of_nothing(void **state)
{
	struct weir_array array;
	struct pair pair;

	(void)state;
	open_pair(&pair);
	refused(weir_array_open(pair.cache, pair.storages, 2,
				WEIR_OPTIONS(array, .element_bytes = 8, .stripe_bytes = (uint64_t)1 << 40),
				&array),
		-ERANGE, "less than the stripe_bytes of", "1099511627776");
	close_pair(&pair);
}

/* Line @at of member @number: there, and of as many blocks as the member still has. */
static void check_line(struct weir_lines *lines, struct weir_extent *extent, u32 number, u64 at)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(extent->disks, struct weir_disk, number);
	u64 within = at & (((u64)1 << extent->unit_log2) - 1), unit = at >> extent->unit_log2;
	u64 line = ((unit * extent->disk_count + number) << extent->unit_log2) + within;
	u64 left = disk->blocks - at * 8;

	assert_true(weir_extent_disk(extent, line) == disk);
	assert_true(weir_extent_line(extent, line) == at);
	assert_true(weir_extent_lba(lines, extent, line) == at * 8);
	assert_int_equal(weir_extent_blocks(lines, extent, line), left < 8 ? left : 8);
}

/* Every member's first, middle and last lines, of storages of any size: the last one ends with the storage.
 */
static void test_lines_and_their_blocks(void **state)
{
	static const u64 sizes[] = { 29, 64, ((u64)1 << 32) + 5, 9 * ((u64)1 << 32) + 8, ((u64)1 << 38) - 1 };
	struct weir_lines lines = { .line_log2 = 12 };
	struct weir_disk disks[3];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (u32 members = 1; members <= 3; members++)
			for (u32 unit_log2 = 0; unit_log2 <= 2; unit_log2++) {
				struct weir_extent extent = { .disks = WEIR_ADDR(disks),
							      .disk_count = members,
							      .unit_log2 = unit_log2 };
				u64 last = (sizes[i] - 1) / 8;

				memset(disks, 0, sizeof(disks));
				for (u32 number = 0; number < members; number++) {
					disks[number].block_log2 = 9;
					disks[number].blocks = sizes[i];
					check_line(&lines, &extent, number, 0);
					check_line(&lines, &extent, number, 1);
					check_line(&lines, &extent, number, last / 2);
					check_line(&lines, &extent, number, last - 1);
					check_line(&lines, &extent, number, last);
				}
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends_of_files),
		cmocka_unit_test(test_ends_of_memory),
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_lines_past_the_extent),
		cmocka_unit_test(test_no_element_at_the_end),
		cmocka_unit_test(test_a_stripe_of_nothing),
		cmocka_unit_test(test_lines_and_their_blocks),
	};

	return test_begins() ? cmocka_run_group_tests_name("extent", tests, NULL, NULL) : 0;
}
