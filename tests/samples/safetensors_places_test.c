/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * safetensors_places_test.c: which bytes of a file weir-safetensors reads, by each of its ways, and where it
 * puts them, of tensors of more than 4 GiB: stand-ins note that in the place of doing it. And where
 * weir-checkpoint finds its checkpoints.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>
#include <weir/file.h>

#include "../../samples/checkpoint/slots.h"
#include "../../samples/common/mapping.h"
#include "../../samples/safetensors/by_hand.h"

#define GIB ((uint64_t)1 << 30)

enum { MOST_NOTES = 1 << 15, STAGING = 16 << 20, ODD = 3 };

static const uint64_t staging = (uint64_t)3 << 40, memory = (uint64_t)1 << 40, mapped = (uint64_t)5 << 40;

/** struct note - bytes that were read or copied: from where, to where */
struct note {
	uint64_t from, to, bytes;
};

/** noted - what was asked for; read number @fails gives @gives bytes, counted from 0; UINT_MAX: none fails */
static struct {
	pthread_mutex_t mutex;
	struct note reads[MOST_NOTES], copies[MOST_NOTES];
	unsigned read_count, copy_count, fails;
	ssize_t gives;
	bool others_fail; /* reads of other threads than the test's, which waits for one of them */
	pthread_t first;
	pthread_cond_t failed;
	unsigned failures;
	struct weir_file_io *short_of; /* of a batch: one byte less comes */
	unsigned char *image;          /* of a storage */
	uint64_t image_bytes;
} noted = { .mutex = PTHREAD_MUTEX_INITIALIZER, .failed = PTHREAD_COND_INITIALIZER };

static ssize_t note_read(int file, void *to, size_t bytes, off_t offset)
{
	ssize_t got = (ssize_t)bytes;

	(void)file;
	pthread_mutex_lock(&noted.mutex);
	if (noted.read_count == noted.fails) {
		got = noted.gives;
		errno = EIO;
	}
	while (noted.others_fail && pthread_equal(pthread_self(), noted.first) && !noted.failures)
		pthread_cond_wait(&noted.failed, &noted.mutex);
	if (noted.others_fail && !pthread_equal(pthread_self(), noted.first)) {
		noted.failures++;
		pthread_cond_signal(&noted.failed);
		got = noted.gives;
	}
	noted.reads[noted.read_count++ % MOST_NOTES] =
		(struct note){ (uint64_t)offset, (uintptr_t)to, bytes };
	pthread_mutex_unlock(&noted.mutex);
	return got;
}

static int note_copy(struct weir_context *context, uint64_t to, const void *from, size_t bytes)
{
	(void)context;
	pthread_mutex_lock(&noted.mutex);
	noted.copies[noted.copy_count++ % MOST_NOTES] = (struct note){ (uintptr_t)from, to, bytes };
	pthread_mutex_unlock(&noted.mutex);
	return 0;
}

static int give_staging(struct weir_context *context, size_t bytes, uint64_t *address, void **host)
{
	(void)context;
	assert_int_equal(bytes, STAGING);
	*address = staging;
	*host = (void *)(uintptr_t)staging;
	return 0;
}

static int map_file(struct sample_mapping *mapping, int file, bool writes, char *error)
{
	(void)file;
	(void)writes;
	(void)error;
	*mapping = (struct sample_mapping){ .bytes = (char *)(uintptr_t)mapped };
	return 0;
}

static void unmap_file(struct sample_mapping *mapping)
{
	mapping->bytes = NULL;
}

static int note_batch(struct weir_context *context, struct weir_file_io *io, size_t count)
{
	(void)context;
	for (size_t i = 0; i < count; i++)
		io[i].result = (int64_t)io[i].bytes - (&io[i] == noted.short_of);
	return 0;
}

static int read_image(struct weir_storage *storage, uint64_t offset, void *to, size_t bytes)
{
	(void)storage;
	assert_true(offset <= noted.image_bytes && bytes <= noted.image_bytes - offset);
	memcpy(to, noted.image + offset, bytes);
	return 0;
}

static int write_image(struct weir_storage *storage, uint64_t offset, const void *from, size_t bytes)
{
	(void)storage;
	assert_true(offset <= noted.image_bytes && bytes <= noted.image_bytes - offset);
	memcpy(noted.image + offset, from, bytes);
	return 0;
}

static int flush_image(struct weir_storage *storage)
{
	(void)storage;
	return 0;
}

#define pread               note_read
#define weir_copy_to_device note_copy
#define weir_alloc_host     give_staging
#define sample_map          map_file
#define sample_unmap        unmap_file
#define weir_file_batch     note_batch
#define main                run_safetensors
#include "../../samples/safetensors/by_hand.c"

#include "../../samples/safetensors/main.c"
#undef main
#define compare compare_sums
#define launch  launch_sums
#include "../../samples/safetensors/sums.c"
#define weir_storage_read  read_image
#define weir_storage_write write_image
#define weir_storage_flush flush_image
#include "../../samples/checkpoint/slots.c"

/* One of more than 4 GiB that is no whole pieces, one of few bytes behind it, an empty one, and a last one.
 */
static struct model_tensor tensors[] = {
	{ .name = "long", .dtype = "U8", .begin = 0, .bytes = 5 * GIB + ODD },
	{ .name = "short", .dtype = "U8", .begin = 5 * GIB + ODD, .bytes = 7 },
	{ .name = "none", .dtype = "U8", .begin = 5 * GIB + ODD + 7, .bytes = 0 },
	{ .name = "last", .dtype = "U8", .begin = 5 * GIB + ODD + 7, .bytes = 20 << 20 },
};

enum { TENSORS = sizeof(tensors) / sizeof(tensors[0]) };

static uint64_t places[TENSORS] = { 0, 5 * GIB + 256, 5 * GIB + 512, 5 * GIB + 512 };
static const struct model model = {
	.tensors = tensors, .count = TENSORS, .data = 4104, .data_bytes = 5 * GIB + ODD + 7 + (20 << 20)
};
static struct sums of_all = { .model = &model, .memory = memory, .bytes = 6 * GIB, .at = places };

static int begin(void **state)
{
	(void)state;
	noted.read_count = noted.copy_count = 0;
	noted.fails = UINT_MAX;
	noted.short_of = NULL;
	return 0;
}

/* Where byte @offset of the file belongs. */
static uint64_t address_of(uint64_t offset)
{
	for (size_t i = 0; i < TENSORS; i++)
		if (offset >= model.data + tensors[i].begin &&
		    offset < model.data + tensors[i].begin + tensors[i].bytes)
			return memory + places[i] + (offset - model.data - tensors[i].begin);
	return 0;
}

/* By one thread, or several, each piece is read from its place, into the thread's own part of the staging,
 * and copied to where it belongs. */
static void test_pieces_of_threads(void **state)
{
	static const uint32_t threads[] = { 1, 3, 64 };
	char error[SAMPLE_ERROR_BYTES] = "";
	struct by_hand *hand = NULL;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t part = STAGING / threads[i] / 4096 * 4096, sum = 0, addresses = 0;

		begin(NULL);
		assert_int_equal(by_hand_open(&of_all, 7, threads[i], &hand, error), 0);
		assert_int_equal(by_hand_read(hand, error), 0);
		assert_int_equal(noted.read_count, noted.copy_count);
		assert_in_range(noted.read_count, 1, MOST_NOTES);
		for (unsigned k = 0; k < noted.read_count; k++) {
			const struct note *read = &noted.reads[k], *copy = &noted.copies[k];

			assert_true(read->bytes > 0 && read->bytes <= part);
			assert_true(read->to >= staging && read->to + read->bytes <= staging + STAGING);
			assert_int_equal((read->to - staging) % part, 0);
			assert_true(address_of(read->from) != 0);
			assert_int_equal(address_of(read->from + read->bytes - 1),
					 address_of(read->from) + read->bytes - 1);
			addresses += address_of(read->from) - copy->to;
			sum += read->bytes;
		}
		assert_int_equal(sum, model.data_bytes);
		assert_int_equal(addresses, 0); /* each was copied, in whatever order */
		by_hand_close(hand);
	}
}

/* A read that fails or is short, of the first thread or another one, is an error, with its tensor. */
static void test_reads_that_fail(void **state)
{
	static const struct {
		unsigned fails;
		ssize_t gives;
		const char *says;
	} rows[] = { { 0, -1, "\"long\": pread gave -1 of " },
		     { 0, 100, "\"long\": pread gave 100 of 16777216 bytes" },
		     { 320, 2, "\"long\": pread gave 2 of 3 bytes" },
		     { 321, 0, "\"short\": pread gave 0 of 7 bytes" },
		     { 323, 5, "\"last\": pread gave 5 of 4194304 bytes" } };
	char error[SAMPLE_ERROR_BYTES];
	struct by_hand *hand = NULL;

	(void)state;
	for (uint32_t threads = 1; threads < 3; threads++)
		for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			assert_int_equal(by_hand_open(&of_all, 7, threads, &hand, error), 0);
			begin(NULL);
			noted.fails = rows[i].fails;
			noted.gives = rows[i].gives;
			assert_int_equal(by_hand_read(hand, error), -EIO);
			if (threads == 1)
				assert_non_null(strstr(error, rows[i].says));
			begin(NULL); /* and the next time all is well */
			assert_int_equal(by_hand_read(hand, error), 0);
			by_hand_close(hand);
		}
}

/* The thread that waits for the others has read its pieces, and one of theirs is not there. */
static void test_other_threads_that_fail(void **state)
{
	char error[SAMPLE_ERROR_BYTES];
	struct by_hand *hand = NULL;

	(void)state;
	for (uint32_t threads = 2; threads < 5; threads++) {
		assert_int_equal(by_hand_open(&of_all, 7, threads, &hand, error), 0);
		begin(NULL);
		noted.first = pthread_self();
		noted.others_fail = true;
		noted.failures = 0;
		noted.gives = 1;
		error[0] = '\0';
		assert_int_equal(by_hand_read(hand, error), -EIO);
		assert_non_null(strstr(error, "\"long\": pread gave 1 of "));
		noted.others_fail = false;
		by_hand_close(hand);
	}
}

static void test_tensors_of_a_mapping(void **state)
{
	static const unsigned copied[] = { 0, 1, 3 };
	char error[SAMPLE_ERROR_BYTES];
	struct by_hand *hand = NULL;

	(void)state;
	assert_int_equal(by_hand_open(&of_all, 7, 1, &hand, error), 0);
	assert_int_equal(by_hand_map(hand, error), 0);
	assert_int_equal(noted.copy_count, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(noted.copies[i].to, memory + places[copied[i]]);
		assert_int_equal(noted.copies[i].from, mapped + model.data + tensors[copied[i]].begin);
		assert_int_equal(noted.copies[i].bytes, tensors[copied[i]].bytes);
	}
	by_hand_close(hand);
}

/* What is asked of the library; fewer bytes than that are an error, with the tensor. */
static void test_requests_of_a_batch(void **state)
{
	struct command command = { .model = model, .sums = of_all, .file = 7 };
	char error[SAMPLE_ERROR_BYTES] = "";

	(void)state;
	command.io = calloc(TENSORS, sizeof(*command.io));
	assert_int_equal(load(&command, error), 0);
	for (size_t i = 0; i < TENSORS; i++) {
		assert_int_equal(command.io[i].file, 7);
		assert_int_equal(command.io[i].operation, WEIR_FILE_READ);
		assert_int_equal(command.io[i].at, places[i]);
		assert_int_equal(command.io[i].offset, model.data + tensors[i].begin);
		assert_int_equal(command.io[i].bytes, tensors[i].bytes);
	}
	for (size_t i = 0; i < TENSORS; i++) {
		noted.short_of = &command.io[i];
		assert_int_equal(load(&command, error), -EIO);
		assert_non_null(strstr(error, tensors[i].name));
	}
	free(command.io);
}

/* The host's own sum of a tensor beyond 4 GiB is of that one. */
static void test_sum_of_a_far_tensor(void **state)
{
	struct model_tensor far = { .name = "far", .begin = 5 * GIB + ODD, .bytes = (1 << 20) + 5 };
	const struct model one = { .tensors = &far, .count = 1, .data = 4104 };
	uint64_t at[1], right[1];
	struct sums sums = { .model = &one, .at = at, .right = right };
	char error[SAMPLE_ERROR_BYTES];

	(void)state;
	assert_int_equal(lay_out(&sums, 7, error), 0);
	assert_int_equal(noted.read_count, 2);
	assert_int_equal(noted.reads[0].from, one.data + far.begin);
	assert_int_equal(noted.reads[1].from, one.data + far.begin + (1 << 20));
	assert_int_equal(noted.reads[1].bytes, 5);
	assert_int_equal(sums.bytes, (1 << 20) + 256);
	for (noted.gives = -1; noted.gives < 5; noted.gives += 5) {
		noted.read_count = 0;
		noted.fails = 1;
		assert_int_equal(lay_out(&sums, 7, error), -EIO);
		assert_non_null(strstr(error, "cannot read 5 bytes at"));
	}
}

/* Of records that are whole by their sums those count whose header and data are within the slot. */
static void test_records_of_checkpoints(void **state)
{
	enum { HEADER = 4096, SLOT = 1 << 20, ROOM = SLOT - SLOT_RECORD_BYTES };
	static const struct {
		uint64_t header, data;
		bool good;
	} rows[] = { { HEADER, 0, true },
		     { HEADER, ROOM - HEADER, true },
		     { HEADER, ROOM - HEADER + 1, false },
		     { HEADER, UINT64_MAX, false },
		     { HEADER, UINT64_MAX - HEADER + 1, false },
		     { HEADER + 8, 0, false },
		     { ROOM, 0, true },
		     { ROOM + HEADER, 0, false },
		     { (uint64_t)1 << 32, 0, false },
		     { 0, 4096, false } };
	struct sample_storage storage = { .info = { .bytes = SLOTS * SLOT } };
	char error[SAMPLE_ERROR_BYTES];
	struct slot slot;

	(void)state;
	noted.image_bytes = SLOTS * SLOT;
	noted.image = calloc(1, SLOTS * SLOT);
	for (unsigned index = 0; index < SLOTS; index++)
		for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			uint64_t header = rows[i].header < ROOM ? rows[i].header : ROOM;
			struct slot_record record = { .step = (uint64_t)1 << 40 | i,
						      .header_bytes = rows[i].header,
						      .data_bytes = rows[i].data };

			memset(noted.image, 0, SLOTS * SLOT);
			record.header_sum = slot_sum(noted.image + index * SLOT + SLOT_RECORD_BYTES, header);
			assert_int_equal(slot_commit(&storage, index, record, error), 0);
			assert_int_equal(slot_find(&storage, &slot, error), 0);
			assert_int_equal(slot.header != NULL, rows[i].good);
			assert_int_equal(slot.index, rows[i].good ? index : SLOTS);
			assert_true(!rows[i].good || slot.record.step == record.step);
			slot_free(&slot);
		}
	free(noted.image);
	storage.info.bytes = 9 * GIB;
	assert_true(slot_at(&storage, 1) == 9 * GIB / 2 &&
		    slot_room(&storage) == 9 * GIB / 2 - SLOT_RECORD_BYTES);
}

#define CASE(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_pieces_of_threads),       CASE(test_reads_that_fail),
		CASE(test_other_threads_that_fail), CASE(test_tensors_of_a_mapping),
		CASE(test_requests_of_a_batch),     CASE(test_sum_of_a_far_tensor),
		CASE(test_records_of_checkpoints),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("safetensors_places", tests, NULL, NULL);
}
