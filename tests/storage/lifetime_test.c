/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lifetime_test.c: handles may be closed in any order, twice, or used afterwards: nothing crashes, nothing
 * that was written is lost without a sentence.
 */
#include "lifetime_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/file.h>

#include "../rig/context.h"
#include "lifetime.h"

enum { COUNT = 512, SEED = 1000, RESTS = 2000, FILE_BYTES = 65536, BUFFER_BYTES = 8192 };

void refused(int64_t result, int64_t error, const char *first, const char *second)
{
	if (result != error)
		fail_msg("%lld instead of %lld (\"%s\", \"%s\"); last: %s", (long long)result,
			 (long long)error, first, second, weir_last_error());
	if (!strstr(weir_last_error(), first) || !strstr(weir_last_error(), second))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", weir_last_error(), first, second);
}

/** struct rig - two files behind a cache with a Share Table, a writer on each, and registered memory */
struct rig {
	struct weir_context *context;
	struct weir_storage *storages[2];
	struct weir_cache *cache;
	struct weir_registration *registration;
	struct weir_writer writers[2];
	uint64_t buffer;
	char paths[2][64];
	char uris[2][160];
	int files[2];
};

static void make_files(struct rig *rig)
{
	static const unsigned char zeros[FILE_BYTES];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(rig->paths[i], sizeof(rig->paths[i]), "/tmp/weir_lifetime_test_XXXXXX");
		rig->files[i] = mkstemp(rig->paths[i]);
		assert_true(rig->files[i] >= 0 && pwrite(rig->files[i], zeros, FILE_BYTES, 0) == FILE_BYTES);
	}
}

/* @faults: of each file's controller, "" or "&fault=..."; NULL: none. */
static void open_rig(struct rig *rig, const char *const faults[2])
{
	memset(rig, 0, sizeof(*rig));
	make_files(rig);
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1, .resident_lanes = 64),
			       &rig->context));
	must(weir_cache_create(rig->context, WEIR_OPTIONS(cache, .lines = 64), &rig->cache));
	must(weir_share_create(rig->cache, NULL));
	for (unsigned i = 0; i < 2; i++) {
		snprintf(rig->uris[i], sizeof(rig->uris[i]), "file:%s?direct=off%s", rig->paths[i],
			 faults ? faults[i] : "");
		must(weir_storage_open(rig->context, rig->uris[i],
				       WEIR_OPTIONS(storage, .queues = 1, .depth = 16,
						    .timeout_us = test_patient_us(10000000)),
				       &rig->storages[i]));
		must(weir_writer_open(rig->cache, &rig->storages[i], 1,
				      WEIR_OPTIONS(array, .element_bytes = 8), &rig->writers[i]));
	}
	must(weir_alloc(rig->context, BUFFER_BYTES, &rig->buffer));
	must(weir_register(rig->context, rig->buffer, BUFFER_BYTES, NULL, &rig->registration));
}

static void remove_files(struct rig *rig)
{
	for (unsigned i = 0; i < 2; i++) {
		close(rig->files[i]);
		unlink(rig->paths[i]);
	}
}

static void launch_put(struct rig *rig, uint32_t rests)
{
	struct lifetime_put_args args = { .writer = { rig->writers[0], rig->writers[1] },
					  .writer_count = 2,
					  .rests = rests,
					  .count = COUNT,
					  .seed = SEED };

	must(weir_launch(rig->context, "lifetime_put", 2, 16, &args, sizeof(args)));
}

/* How many of the elements that were put are in file @index. */
static unsigned on_file(struct rig *rig, unsigned index)
{
	uint64_t words[COUNT];
	unsigned there = 0;

	assert_int_equal(pread(rig->files[index], words, sizeof(words), 0), sizeof(words));
	for (unsigned i = 0; i < COUNT; i++)
		there += words[i] == SEED + i;
	return there;
}

/* Closing in any order. */

enum step { CLOSE_CONTEXT, CLOSE_FIRST, CLOSE_SECOND, CLOSE_CACHE, CLOSE_SHARE, CLOSE_REGISTRATION, STEPS };

static int take_step(struct rig *rig, enum step step)
{
	switch (step) {
	case CLOSE_CONTEXT: return weir_context_close(rig->context);
	case CLOSE_FIRST: return weir_storage_close(rig->storages[0]);
	case CLOSE_SECOND: return weir_storage_close(rig->storages[1]);
	case CLOSE_CACHE: return weir_cache_destroy(rig->cache);
	case CLOSE_SHARE: return weir_share_destroy(rig->cache);
	default: return weir_deregister(rig->registration);
	}
}

/* What is open: a bit for each step; what the context closes with it goes with it. */
static unsigned after(unsigned open, enum step step)
{
	if (step == CLOSE_CONTEXT)
		return 0;
	return open & ~(1u << step) & ~(step == CLOSE_CACHE ? 1u << CLOSE_SHARE : 0);
}

static void close_in_order(const enum step *order)
{
	unsigned open = (1u << STEPS) - 1;
	struct rig rig;

	open_rig(&rig, NULL);
	launch_put(&rig, 0);
	for (unsigned i = 0; i < STEPS; i++) {
		bool there = (open >> order[i]) & 1;
		int error = take_step(&rig, order[i]);

		if (error != (there ? 0 : -EINVAL))
			fail_msg("step %u of %d%d%d%d%d%d: %d, %s", i, order[0], order[1], order[2], order[3],
				 order[4], order[5], error, weir_last_error());
		open = after(open, order[i]);
	}
	for (unsigned i = 0; i < STEPS; i++) /* all once more */
		refused(take_step(&rig, order[i]), -EINVAL, "weir_", "close");
	for (unsigned i = 0; i < 2; i++)
		if (on_file(&rig, i) != COUNT)
			fail_msg("order %d%d%d%d%d%d: file %u has %u of %d elements", order[0], order[1],
				 order[2], order[3], order[4], order[5], i, on_file(&rig, i), COUNT);
	remove_files(&rig);
}

/* The next order by number; false behind the last. */
static bool next_order(enum step *order)
{
	int i = STEPS - 2, j = STEPS - 1;
	enum step kept;

	while (i >= 0 && order[i] > order[i + 1])
		i--;
	if (i < 0)
		return false;
	while (order[j] < order[i])
		j--;
	kept = order[i], order[i] = order[j], order[j] = kept;
	for (i++, j = STEPS - 1; i < j; i++, j--)
		kept = order[i], order[i] = order[j], order[j] = kept;
	return true;
}

static void test_every_order(void **state)
{
	enum step order[STEPS] = { CLOSE_CONTEXT, CLOSE_FIRST, CLOSE_SECOND,
				   CLOSE_CACHE,   CLOSE_SHARE, CLOSE_REGISTRATION };
	unsigned stride = test_on_cpu() ? 1 : 37, tried = 0;

	(void)state;
	do {
		if (tried++ % stride == 0)
			close_in_order(order);
	} while (next_order(order));
	assert_int_equal(tried, 720);
}

/* A kernel runs while its storage, cache or context is closed: that waits for it. */
static void test_running_kernels(void **state)
{
	static const enum step steps[] = { CLOSE_CONTEXT, CLOSE_FIRST, CLOSE_CACHE };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct rig rig;

		open_rig(&rig, NULL);
		launch_put(&rig, RESTS);
		must(take_step(&rig, steps[i]));
		assert_int_equal(on_file(&rig, 0), COUNT);
		(void)weir_context_close(rig.context);
		assert_int_equal(on_file(&rig, 1), COUNT);
		remove_files(&rig);
	}
}

/* What cannot be written is said by whoever closes, whichever that is, once. */
static void test_losses(void **state)
{
	static const char *const faults[] = { "&fault=status:code=0x280:op=write", "" };
	static const char *const both[] = { "&fault=status:code=0x280:op=write",
					    "&fault=status:code=0x280:op=write" };
	struct rig rig;

	(void)state;
	open_rig(&rig, faults);
	launch_put(&rig, 0);
	refused(weir_storage_close(rig.storages[0]), -EIO, rig.paths[0], "lost");
	must(weir_storage_close(rig.storages[1]));
	must(weir_cache_destroy(rig.cache));
	must(weir_context_close(rig.context));
	assert_int_equal(on_file(&rig, 0), 0);
	assert_int_equal(on_file(&rig, 1), COUNT);
	remove_files(&rig);

	open_rig(&rig, both);
	launch_put(&rig, 0);
	refused(weir_context_close(rig.context), -EIO, rig.paths[0], rig.paths[1]);
	assert_non_null(strstr(weir_last_error(), "lost"));
	remove_files(&rig);
}

static void write_zeroes(struct rig *rig)
{
	struct lifetime_zero_args args = { .event = 0 };
	uint32_t status = ~0u;
	uint64_t words;

	must(weir_storage_disk(rig->storages[0], &args.disk));
	must(weir_alloc(rig->context, 4096, &words));
	args.event = words;
	args.status = words + 1024;
	must(weir_launch(rig->context, "lifetime_zero", 1, 1, &args, sizeof(args)));
	must(weir_sync(rig->context));
	must(weir_copy_from_device(rig->context, &status, args.status, sizeof(status)));
	must(weir_free(rig->context, words));
	assert_int_equal(status, WEIR_OK);
}

/* A controller that fails with changes that no flush made durable; and the same with nothing changed. */
static void test_failed_controller(void **state)
{
	static const char *const faults[] = { "&fault=fatal:after=2", "" };
	unsigned char block[4096] = { 1 };
	struct rig rig;

	(void)state;
	open_rig(&rig, faults);
	must(weir_storage_write(rig.storages[0], 0, block, sizeof(block)));
	for (unsigned i = 0; i < 4; i++)
		(void)weir_storage_read(rig.storages[0], 0, block, sizeof(block));
	refused(weir_storage_close(rig.storages[0]), -EIO, rig.uris[0], "may be lost");
	must(weir_context_close(rig.context));
	remove_files(&rig);

	open_rig(&rig, faults);
	write_zeroes(&rig);
	for (unsigned i = 0; i < 4; i++)
		(void)weir_storage_read(rig.storages[0], 0, block, sizeof(block));
	refused(weir_storage_close(rig.storages[0]), -EIO, rig.uris[0], "may be lost");
	must(weir_context_close(rig.context));
	remove_files(&rig);

	open_rig(&rig, faults);
	for (unsigned i = 0; i < 4; i++)
		(void)weir_storage_read(rig.storages[0], 0, block, sizeof(block));
	must(weir_context_close(rig.context));
	remove_files(&rig);
}

/* A fault that no weir_sync() returned. */
static void test_unasked_fault(void **state)
{
	struct lifetime_put_args args = { .writer_count = 1, .count = FILE_BYTES, .seed = SEED };
	struct rig rig;

	(void)state;
	open_rig(&rig, NULL);
	args.writer[0] = rig.writers[0];
	must(weir_launch(rig.context, "lifetime_put", 1, 1, &args, sizeof(args)));
	refused(weir_context_close(rig.context), -EIO, "array element", "index past the end");
	remove_files(&rig);
}

/* What a lane met is told by weir_sync() alone: flushes, reads and writes for the host tell of their own. */
static void test_faults_wait_for_sync(void **state)
{
	struct lifetime_put_args args = { .writer_count = 1, .count = FILE_BYTES };
	char block[4096];
	struct rig rig;

	(void)state;
	open_rig(&rig, NULL);
	args.writer[0] = rig.writers[0];
	must(weir_launch(rig.context, "lifetime_put", 1, 1, &args, sizeof(args)));
	must(weir_cache_flush(rig.cache, 1));
	must(weir_storage_flush(rig.storages[0]));
	must(weir_storage_read(rig.storages[0], 0, block, sizeof(block)));
	must(weir_storage_write(rig.storages[1], 0, block, sizeof(block)));
	refused(weir_sync(rig.context), -EIO, "array element", "index past the end");
	must(weir_context_close(rig.context));
	remove_files(&rig);
}

/* Lanes with arrays and disks of what is closed. */

static void use(struct rig *rig, const struct weir_writer *writer, const struct weir_disk *disk,
		uint32_t *statuses)
{
	struct lifetime_use_args args = { .writer = *writer, .disk = *disk, .buffer = rig->buffer };
	uint64_t words;

	must(weir_alloc(rig->context, 4096, &words));
	args.event = words;
	args.statuses = words + 1024;
	must(weir_launch(rig->context, "lifetime_use", 1, 1, &args, sizeof(args)));
	(void)weir_sync(rig->context);
	must(weir_copy_from_device(rig->context, statuses, args.statuses, 4 * sizeof(*statuses)));
	must(weir_free(rig->context, words));
}

static void test_lanes_with_closed_storages(void **state)
{
	struct weir_disk disk, other;
	uint32_t statuses[4];
	struct rig rig;

	(void)state;
	open_rig(&rig, NULL);
	launch_put(&rig, 0);
	must(weir_storage_disk(rig.storages[0], &disk));
	must(weir_storage_disk(rig.storages[1], &other));
	must(weir_storage_close(rig.storages[0]));
	use(&rig, &rig.writers[0], &disk, statuses);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(statuses[i], WEIR_E_CLOSED);
	assert_int_equal(statuses[3], 0);
	use(&rig, &rig.writers[1], &other, statuses);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(statuses[i], WEIR_OK);
	assert_int_equal(statuses[3], SEED);
	refused(weir_array_flush(rig.cache, &rig.writers[0].array, 0, 1, 1), -EINVAL, rig.paths[0], "closed");
	refused(weir_array_invalidate(rig.cache, &rig.writers[0].array, 0, 1), -EINVAL, rig.paths[0],
		"closed");
	must(weir_cache_flush(rig.cache, 1));
	must(weir_context_close(rig.context)); /* with nothing of the first to say */
	assert_int_equal(on_file(&rig, 0), COUNT);
	remove_files(&rig);
}

/* A read that nobody waited for before its storage was closed: whoever looks for its end finds one. */
static void test_a_read_that_was_left(void **state)
{
	(void)state;
	for (unsigned fails = 0; fails < 2; fails++) {
		struct lifetime_left_args args = { .sees = fails };
		uint32_t statuses[2];
		struct rig rig;

		open_rig(&rig, (const char *[]){ fails ? "&fault=status:code=0x21:op=read:lba=0" : "", "" });
		must(weir_storage_disk(rig.storages[0], &args.disk));
		args.buffer = rig.buffer;
		must(weir_launch(rig.context, "lifetime_left", 1, 1, &args, sizeof(args)));
		must(weir_storage_close(rig.storages[0]));
		args.statuses = rig.buffer + 5120;
		must(weir_launch(rig.context, "lifetime_left", 1, 1, &args, sizeof(args)));
		must(weir_sync(rig.context));
		must(weir_copy_from_device(rig.context, statuses, args.statuses, sizeof(statuses)));
		assert_int_equal(statuses[0], 2);
		assert_int_equal(statuses[1],
				 fails ? WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x21 : WEIR_E_CLOSED);
		must(weir_context_close(rig.context));
		remove_files(&rig);
	}
}

static void test_lanes_with_closed_caches(void **state)
{
	struct weir_cache *caches[2];
	struct weir_array array;
	struct weir_disk disk;
	uint32_t statuses[4];
	struct rig rig;

	(void)state;
	open_rig(&rig, NULL);
	launch_put(&rig, 0);
	must(weir_storage_disk(rig.storages[0], &disk));
	must(weir_cache_destroy(rig.cache));
	assert_int_equal(on_file(&rig, 0), COUNT);
	use(&rig, &rig.writers[0], &disk, statuses);
	assert_int_equal(statuses[0], WEIR_E_CLOSED);
	assert_int_equal(statuses[1], WEIR_E_CLOSED);
	assert_int_equal(statuses[2], WEIR_OK); /* the storage is open */
	assert_int_equal(statuses[3], 0);
	for (unsigned i = 0; i < 2; i++)
		must(weir_cache_create(rig.context, WEIR_OPTIONS(cache, .lines = 8), &caches[i]));
	must(weir_array_open(caches[0], &rig.storages[0], 1, WEIR_OPTIONS(array, .element_bytes = 8),
			     &array));
	refused(weir_array_flush(caches[1], &array, 0, 1, 0), -EINVAL, "weir_array_flush",
		"not one of this cache");
	refused(weir_array_invalidate(caches[1], &array, 0, 1), -EINVAL, "weir_array_invalidate",
		"not one of this cache");
	refused(weir_array_flush(caches[0], &rig.writers[0].array, 0, 1, 0), -EINVAL, "weir_array_flush",
		"not one of this cache");
	refused(weir_array_flush(rig.cache, &array, 0, 1, 0), -EINVAL, "weir_array_flush", "closed already");
	must(weir_context_close(rig.context));
	remove_files(&rig);
}

/* A stripe is of both: closing one closes the stripe, and the other one goes on. */
static void test_stripes(void **state)
{
	struct lifetime_put_args args = { .writer_count = 1, .count = COUNT * 4, .seed = SEED };
	struct weir_cache *cache;
	struct weir_disk disk;
	uint32_t statuses[4];
	uint64_t words[COUNT];
	struct rig rig;

	(void)state;
	open_rig(&rig, NULL);
	must(weir_cache_create(rig.context, WEIR_OPTIONS(cache, .lines = 64), &cache));
	must(weir_writer_open(cache, rig.storages, 2,
			      WEIR_OPTIONS(array, .element_bytes = 8, .stripe_bytes = 4096),
			      &args.writer[0]));
	must(weir_launch(rig.context, "lifetime_put", 1, 16, &args, sizeof(args)));
	must(weir_storage_close(rig.storages[0]));
	for (unsigned i = 0; i < 4; i++) { /* units in turns */
		assert_int_equal(pread(rig.files[i % 2], words, sizeof(words), i / 2 * 4096), sizeof(words));
		for (unsigned k = 0; k < COUNT; k++)
			assert_int_equal(words[k], SEED + i * COUNT + k);
	}
	must(weir_storage_disk(rig.storages[1], &disk));
	use(&rig, &args.writer[0], &disk, statuses);
	assert_int_equal(statuses[0], WEIR_E_CLOSED);
	args.writer[0].array.first_byte = 4096; /* a unit of the other one's, which is open */
	args.writer[0].array.count -= 512;
	use(&rig, &args.writer[0], &disk, statuses);
	assert_int_equal(statuses[0], WEIR_E_CLOSED);
	assert_int_equal(statuses[1], WEIR_E_CLOSED);
	assert_int_equal(statuses[2], WEIR_OK);
	must(weir_writer_open(cache, &rig.storages[1], 1, WEIR_OPTIONS(array, .element_bytes = 8),
			      &args.writer[0]));
	use(&rig, &args.writer[0], &disk, statuses);
	assert_int_equal(statuses[1], WEIR_OK);
	must(weir_context_close(rig.context));
	remove_files(&rig);
}

/* Memory. */

static void test_memory(void **state)
{
	struct weir_disk disk;
	struct rig rig;
	uint64_t more;

	(void)state;
	open_rig(&rig, NULL);
	must(weir_storage_disk(rig.storages[0], &disk));
	refused(weir_free(rig.context, disk.queues), -EBUSY, rig.paths[0], "belongs to");
	refused(weir_free(rig.context, rig.writers[0].array.lines), -EBUSY, "a cache", "belongs to");
	refused(weir_free(rig.context, rig.writers[0].array.fault), -EBUSY, "the runtime", "belongs to");
	refused(weir_free(rig.context, rig.writers[0].array.extent.disks), -EBUSY, "belongs to", "closed");
	refused(weir_free(rig.context, rig.buffer), -EBUSY, "registered", "weir_deregister()");
	must(weir_alloc(rig.context, 4096, &more));
	must(weir_free(rig.context, more));
	refused(weir_free(rig.context, more), -EINVAL, "cannot free", "allocation");
	refused(weir_free(rig.context, rig.buffer + 4096), -EINVAL, "cannot free", "allocation");
	must(weir_deregister(rig.registration));
	must(weir_free(rig.context, rig.buffer));
	refused(weir_free(rig.context, rig.buffer), -EINVAL, "cannot free", "allocation");
	must(weir_free(rig.context, 0));
	must(weir_context_close(rig.context));
	remove_files(&rig);
}

/* Files. */

static void test_batches(void **state)
{
	unsigned char bytes[BUFFER_BYTES];
	struct weir_file_batch *batch;
	struct weir_file_io io[2];
	struct rig rig;

	(void)state;
	open_rig(&rig, NULL);
	memset(bytes, 7, sizeof(bytes));
	must(weir_copy_to_device(rig.context, rig.buffer, bytes, sizeof(bytes)));
	io[0] = (struct weir_file_io){ .registration = rig.registration,
				       .file = rig.files[0],
				       .operation = WEIR_FILE_WRITE,
				       .bytes = BUFFER_BYTES };
	must(weir_file_submit(rig.context, io, 1, &batch));
	must(weir_context_close(rig.context)); /* waits for it */
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(pread(rig.files[0], bytes, sizeof(bytes), 0), sizeof(bytes));
	for (unsigned i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 7);
	refused(weir_file_wait(batch), -EINVAL, "weir_file_wait", "closed");
	remove_files(&rig);

	open_rig(&rig, NULL);
	io[1] = (struct weir_file_io){ .registration = rig.registration,
				       .file = rig.files[0],
				       .operation = WEIR_FILE_READ,
				       .bytes = 4096 };
	must(weir_deregister(rig.registration));
	refused(weir_file_batch(rig.context, &io[1], 1), -EINVAL, "request 0", "registration");
	refused(weir_file_submit(rig.context, &io[1], 1, &batch), -EINVAL, "request 0", "registration");
	refused(weir_file_read(rig.registration, rig.files[0], 1, 0, 0), -EINVAL, "weir_file_read", "closed");
	must(weir_context_close(rig.context));
	remove_files(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_order),
		cmocka_unit_test(test_running_kernels),
		cmocka_unit_test(test_readers_are_waited_for),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_failed_controller),
		cmocka_unit_test(test_unasked_fault),
		cmocka_unit_test(test_faults_wait_for_sync),
		cmocka_unit_test(test_lanes_with_closed_storages),
		cmocka_unit_test(test_a_read_that_was_left),
		cmocka_unit_test(test_a_read_that_was_left_in_a_late_slot),
		cmocka_unit_test(test_every_queue_of_a_closed_storage),
		cmocka_unit_test(test_lanes_with_closed_caches),
		cmocka_unit_test(test_waves_with_a_closed_cache),
		cmocka_unit_test(test_stripes),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_null_handles),
		cmocka_unit_test(test_closed_handles),
		cmocka_unit_test(test_wrong_handles),
		cmocka_unit_test(test_null_arguments),
		cmocka_unit_test(test_the_table_is_whole),
		cmocka_unit_test(test_addresses_are_not_reused),
	};

	return test_begins()
		       ? cmocka_run_group_tests_name("lifetime", tests, set_up_handles, tear_down_handles)
		       : 0;
}
