/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles may be closed in any order, twice, or used afterwards: nothing crashes, nothing that was written is
 * lost without a sentence.
 *
 * The table of calls has a row for every function that the library exports (WEIR_TEST_MAP names the list).
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
#include <unistd.h>

#include <cmocka.h>

#include <weir/file.h>
#include <weir/weir.h>

#include "../rig/context.h"
#include "lifetime.h"

enum { COUNT = 512, SEED = 1000, RESTS = 2000, FILE_BYTES = 65536, BUFFER_BYTES = 8192 };

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static void refused(int64_t result, int64_t error, const char *first, const char *second)
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

/* A controller that fails with writes that no flush made durable; and the same with nothing written. */
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

/* Every public call. */

/** struct handles - one of each kind, all open or all closed */
struct handles {
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_cache *cache;
	struct weir_registration *registration;
	struct weir_file_batch *batch;
	struct weir_gpus *gpus;
};

static struct handles live, dead, none;
static struct weir_array array_of_live;
static struct weir_writer writer_of_live;
static uint64_t memory_of_live, word;
static char bytes_of_host[4096];
static void *host_view;
static enum weir_policy policy_of_name;
static struct weir_file_io request;

/** struct sized - room for what calls fill in; each begins with its size */
static union {
	size_t size;
	struct weir_device device;
	struct weir_gpu gpu;
	struct weir_gpu_disk gpu_disk;
	struct weir_context_info context;
	struct weir_storage_info storage;
	struct weir_cache_stats cache;
	struct weir_share_stats share;
	struct weir_stats stats;
	struct weir_kernel_info kernel;
	struct weir_registration_info registration;
	struct weir_file_route route;
	struct weir_file_stats files;
	char bytes[1024];
} out;

static void *pointer; /* that calls set */

#define CALL(name, handle, expression)                                                                       \
	static int64_t name##_of(const struct handles *h)                                                    \
	{                                                                                                    \
		(void)h;                                                                                     \
		return (int64_t)(expression);                                                                \
	}
#define ARRAY_OPTIONS WEIR_OPTIONS(array, .element_bytes = 8)
#define HANDLE_CALLS(X)                                                                                      \
	X(weir_context_close, context, weir_context_close(h->context))                                       \
	X(weir_context_info, context, weir_context_info(h->context, &out.context))                           \
	X(weir_alloc, context, weir_alloc(h->context, 1, &word))                                             \
	X(weir_alloc_host, context, weir_alloc_host(h->context, 1, &word, &host_view))                       \
	X(weir_free, context, weir_free(h->context, memory_of_live))                                         \
	X(weir_copy_to_device, context, weir_copy_to_device(h->context, memory_of_live, bytes_of_host, 8))   \
	X(weir_copy_from_device, context,                                                                    \
	  weir_copy_from_device(h->context, bytes_of_host, memory_of_live, 8))                               \
	X(weir_storage_open, context,                                                                        \
	  weir_storage_open(h->context, "virt:1M", NULL, (struct weir_storage **)&pointer))                  \
	X(weir_storage_close, storage, weir_storage_close(h->storage))                                       \
	X(weir_storage_info, storage, weir_storage_info(h->storage, &out.storage))                           \
	X(weir_storage_disk, storage, weir_storage_disk(h->storage, (struct weir_disk *)bytes_of_host))      \
	X(weir_storage_read, storage, weir_storage_read(h->storage, 0, bytes_of_host, 4096))                 \
	X(weir_storage_write, storage, weir_storage_write(h->storage, 0, bytes_of_host, 4096))               \
	X(weir_storage_flush, storage, weir_storage_flush(h->storage))                                       \
	X(weir_stats, storage, weir_stats(h->storage, &out.stats))                                           \
	X(weir_cache_create, context,                                                                        \
	  weir_cache_create(h->context, WEIR_OPTIONS(cache, .lines = 4), (struct weir_cache **)&pointer))    \
	X(weir_cache_destroy, cache, weir_cache_destroy(h->cache))                                           \
	X(weir_cache_stats, cache, weir_cache_stats(h->cache, &out.cache))                                   \
	X(weir_cache_flush, cache, weir_cache_flush(h->cache, 1))                                            \
	X(weir_array_open, cache,                                                                            \
	  weir_array_open(h->cache, &live.storage, 1, ARRAY_OPTIONS, &array_of_live))                        \
	X(weir_writer_open, cache,                                                                           \
	  weir_writer_open(h->cache, &live.storage, 1, ARRAY_OPTIONS, &writer_of_live))                      \
	X(weir_array_flush, cache, weir_array_flush(h->cache, &array_of_live, 0, 1, 0))                      \
	X(weir_array_invalidate, cache, weir_array_invalidate(h->cache, &array_of_live, 0, 1))               \
	X(weir_share_create, cache, weir_share_create(h->cache, NULL))                                       \
	X(weir_share_destroy, cache, weir_share_destroy(h->cache))                                           \
	X(weir_share_stats, cache, weir_share_stats(h->cache, &out.share))                                   \
	X(weir_launch, context,                                                                              \
	  weir_launch(h->context, "lifetime_put", 1, 1, bytes_of_host, sizeof(struct lifetime_put_args)))    \
	X(weir_launch_on, context,                                                                           \
	  weir_launch_on(h->context, NULL, "lifetime_put", 1, 1, bytes_of_host,                              \
			 sizeof(struct lifetime_put_args)))                                                  \
	X(weir_sync, context, weir_sync(h->context))                                                         \
	X(weir_kernel_info, context, weir_kernel_info(h->context, "lifetime_put", &out.kernel))              \
	X(weir_chain_create, context, weir_chain_create(h->context, WEIR_OPTIONS(chain, .lanes = 1), &word)) \
	X(weir_chain_report, context, weir_chain_report(h->context, memory_of_live, NULL, 0))                \
	X(weir_register, context,                                                                            \
	  weir_register(h->context, memory_of_live, 8, NULL, (struct weir_registration **)&pointer))         \
	X(weir_deregister, registration, weir_deregister(h->registration))                                   \
	X(weir_registration_info, registration, weir_registration_info(h->registration, &out.registration))  \
	X(weir_file_read, registration, weir_file_read(h->registration, 0, 1, 0, 0))                         \
	X(weir_file_write, registration, weir_file_write(h->registration, 0, 1, 0, 0))                       \
	X(weir_file_route, registration, weir_file_route(h->registration, 0, &out.route))                    \
	X(weir_file_attach, context, weir_file_attach(h->context, 0))                                        \
	X(weir_file_detach, context, weir_file_detach(h->context, 0))                                        \
	X(weir_file_batch, context, weir_file_batch(h->context, &request, 1))                                \
	X(weir_file_submit, context,                                                                         \
	  weir_file_submit(h->context, &request, 1, (struct weir_file_batch **)&pointer))                    \
	X(weir_file_enqueue, context, weir_file_enqueue(h->context, NULL, &request, 1))                      \
	X(weir_file_stats, context, weir_file_stats(h->context, &out.files))                                 \
	X(weir_file_wait, batch, weir_file_wait(h->batch))                                                   \
	X(weir_file_ended, batch, weir_file_ended(h->batch) == SIZE_MAX ? -EINVAL : 0)                       \
	X(weir_gpus_close, gpus, weir_gpus_close(h->gpus))                                                   \
	X(weir_gpu_at, gpus, weir_gpu_at(h->gpus, 0, &out.gpu))                                              \
	X(weir_gpu_disk_at, gpus, weir_gpu_disk_at(h->gpus, 0, 0, &out.gpu_disk))
HANDLE_CALLS(CALL)

/** struct call - a public function, called with handles; those that close take NULL */
struct call {
	const char *name;
	size_t handle; /* which one of struct handles */
	int64_t (*call)(const struct handles *handles);
};

#define ROW(name, handle, expression) { #name, offsetof(struct handles, handle), name##_of },
static const struct call calls[] = { HANDLE_CALLS(ROW) };

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static bool takes_null(const char *name)
{
	static const char *const closing[] = { "weir_context_close", "weir_storage_close",
					       "weir_cache_destroy", "weir_deregister", "weir_gpus_close" };

	for (size_t i = 0; i < sizeof(closing) / sizeof(closing[0]); i++)
		if (!strcmp(name, closing[i]))
			return true;
	return false;
}

static void open_handles(struct handles *h)
{
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1), &h->context));
	must(weir_storage_open(h->context, "virt:1M", WEIR_OPTIONS(storage, .queues = 1), &h->storage));
	must(weir_cache_create(h->context, WEIR_OPTIONS(cache, .lines = 4), &h->cache));
	must(weir_array_open(h->cache, &h->storage, 1, ARRAY_OPTIONS, &array_of_live));
	must(weir_alloc(h->context, 4096, &memory_of_live));
	must(weir_register(h->context, memory_of_live, 4096, NULL, &h->registration));
	must(weir_file_submit(h->context, NULL, 0, &h->batch));
	must(weir_gpus_open(&h->gpus));
}

/* By their parent, but for what has none. */
static void close_handles(struct handles *h)
{
	must(weir_context_close(h->context));
	must(weir_gpus_close(h->gpus));
}

static int set_up_handles(void **state)
{
	(void)state;
	out.size = sizeof(out);
	open_handles(&live);
	return 0;
}

/* Those closed last are told by name; of those before it is only known that they are not open. */
static void make_dead(void)
{
	struct weir_array array = array_of_live;
	uint64_t memory = memory_of_live;

	open_handles(&dead);
	close_handles(&dead);
	array_of_live = array;
	memory_of_live = memory;
}

static int tear_down_handles(void **state)
{
	(void)state;
	close_handles(&live);
	return 0;
}

static void test_null_handles(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CALLS; i++) {
		int64_t result = calls[i].call(&none);

		if (takes_null(calls[i].name) && result)
			fail_msg("%s(NULL) is %lld", calls[i].name, (long long)result);
		else if (!takes_null(calls[i].name))
			refused(result, -EINVAL, calls[i].name, "NULL");
	}
}

static void test_closed_handles(void **state)
{
	(void)state;
	make_dead();
	for (unsigned i = 0; i < CALLS; i++)
		refused(calls[i].call(&dead), -EINVAL, calls[i].name, "is closed already");
}

/* In the place of each handle one of another kind; and one that was never any. */
static void test_wrong_handles(void **state)
{
	struct handles wrong = { (void *)live.storage, (void *)live.cache,        (void *)live.storage,
				 (void *)live.context, (void *)live.registration, (void *)live.cache };
	struct handles strange = { (void *)bytes_of_host, (void *)bytes_of_host, (void *)bytes_of_host,
				   (void *)bytes_of_host, (void *)bytes_of_host, (void *)bytes_of_host };

	(void)state;
	make_dead();
	for (unsigned i = 0; i < CALLS; i++) {
		refused(calls[i].call(&wrong), -EINVAL, calls[i].name, "was given a ");
		refused(calls[i].call(&strange), -EINVAL, calls[i].name, "there is no such");
	}
	/* Other storages' handles in a list. */
	refused(weir_array_open(live.cache, &dead.storage, 1, ARRAY_OPTIONS, &array_of_live), -EINVAL,
		"weir_array_open", "closed");
	refused(weir_array_open(live.cache, &none.storage, 1, ARRAY_OPTIONS, &array_of_live), -EINVAL,
		"weir_array_open", "NULL");
	refused(weir_writer_open(live.cache, &dead.storage, 1, ARRAY_OPTIONS, &writer_of_live), -EINVAL,
		"weir_writer_open", "closed");
}

/* NULL for what a call needs beside its handle. */
static void test_null_arguments(void **state)
{
	struct weir_context *c = live.context;
	struct weir_storage *s = live.storage;
	struct weir_cache *k = live.cache;
	struct weir_registration *r = live.registration;

	(void)state;
#define NULL_IN(name, ...) refused(name(__VA_ARGS__), -EINVAL, #name, "NULL")
	NULL_IN(weir_device_at, 0, NULL);
	NULL_IN(weir_gpus_open, NULL);
	NULL_IN(weir_gpu_at, live.gpus, 0, NULL);
	NULL_IN(weir_gpu_disk_at, live.gpus, 0, 0, NULL);
	NULL_IN(weir_context_open, "cpu", NULL, NULL);
	NULL_IN(weir_context_open, NULL, NULL, (struct weir_context **)&pointer);
	NULL_IN(weir_context_info, c, NULL);
	NULL_IN(weir_alloc, c, 1, NULL);
	NULL_IN(weir_alloc_host, c, 1, NULL, &host_view);
	NULL_IN(weir_alloc_host, c, 1, &word, NULL);
	NULL_IN(weir_copy_to_device, c, memory_of_live, NULL, 8);
	NULL_IN(weir_copy_from_device, c, NULL, memory_of_live, 8);
	NULL_IN(weir_storage_open, c, NULL, NULL, (struct weir_storage **)&pointer);
	NULL_IN(weir_storage_open, c, "virt:1M", NULL, NULL);
	NULL_IN(weir_storage_info, s, NULL);
	NULL_IN(weir_storage_disk, s, NULL);
	NULL_IN(weir_storage_read, s, 0, NULL, 4096);
	NULL_IN(weir_storage_write, s, 0, NULL, 4096);
	NULL_IN(weir_stats, s, NULL);
	NULL_IN(weir_policy_of_name, NULL, &policy_of_name);
	NULL_IN(weir_policy_of_name, "clock", NULL);
	NULL_IN(weir_cache_create, c, WEIR_OPTIONS(cache, .lines = 4), NULL);
	NULL_IN(weir_cache_stats, k, NULL);
	NULL_IN(weir_array_open, k, NULL, 1, ARRAY_OPTIONS, &array_of_live);
	NULL_IN(weir_array_open, k, &live.storage, 1, ARRAY_OPTIONS, NULL);
	NULL_IN(weir_writer_open, k, NULL, 1, ARRAY_OPTIONS, &writer_of_live);
	NULL_IN(weir_writer_open, k, &live.storage, 1, ARRAY_OPTIONS, NULL);
	NULL_IN(weir_array_flush, k, NULL, 0, 1, 0);
	NULL_IN(weir_array_invalidate, k, NULL, 0, 1);
	NULL_IN(weir_share_stats, k, NULL);
	NULL_IN(weir_launch, c, NULL, 1, 1, bytes_of_host, 8);
	NULL_IN(weir_launch, c, "lifetime_put", 1, 1, NULL, 8);
	NULL_IN(weir_kernel_info, c, NULL, &out.kernel);
	NULL_IN(weir_kernel_info, c, "lifetime_put", NULL);
	NULL_IN(weir_chain_create, c, WEIR_OPTIONS(chain, .lanes = 1), NULL);
	NULL_IN(weir_chain_report, c, memory_of_live, NULL, 1);
	NULL_IN(weir_parse_bytes, NULL, &word);
	NULL_IN(weir_parse_bytes, "1M", NULL);
	NULL_IN(weir_register, c, memory_of_live, 8, NULL, NULL);
	NULL_IN(weir_registration_info, r, NULL);
	NULL_IN(weir_file_route, r, 0, NULL);
	NULL_IN(weir_file_submit, c, &request, 1, NULL);
	NULL_IN(weir_file_stats, c, NULL);
	refused(weir_file_batch(c, NULL, 1), -EINVAL, "NULL", "io");
	refused(weir_file_submit(c, NULL, 1, (struct weir_file_batch **)&pointer), -EINVAL, "NULL", "io");
	/* Options are NULL for the defaults; of those that have none, that is refused as the defaults are. */
	refused(weir_cache_create(c, NULL, (struct weir_cache **)&pointer), -EINVAL, "cache of zero lines",
		"");
	refused(weir_array_open(k, &live.storage, 1, NULL, &array_of_live), -EINVAL, "element_bytes is 0",
		"");
	refused(weir_chain_create(c, NULL, &word), -EINVAL, "lock chain of 0 lanes", "");
	weir_status_text(WEIR_OK, NULL);
	must(weir_array_open(k, &live.storage, 1, ARRAY_OPTIONS, &array_of_live));
}

/* No function of the library is missing in the table above. */
static void test_the_table_is_whole(void **state)
{
	static const char *const without[] = {
		"weir_version",        "weir_last_error",        "weir_status_text",    "weir_parse_bytes",
		"weir_device_at",      "weir_gpus_open",         "weir_context_open",   "weir_policy_name",
		"weir_policy_of_name", "weir_user_policy_built", "weir_file_path_name", "weir_image_register"
	}; /* no handle */
	FILE *map = fopen(WEIR_TEST_MAP, "r");
	unsigned names = 0, missing = 0;
	char text[8192], *end, *name;

	(void)state;
	assert_non_null(map);
	text[fread(text, 1, sizeof(text) - 1, map)] = '\0';
	fclose(map);
	end = strstr(text, "weir_image_register"); /* what follows is of the backends */
	assert_non_null(end);
	*end = '\0';
	for (name = strtok(text, " \t\n;{:"); name; name = strtok(NULL, " \t\n;{:")) {
		bool found = strncmp(name, "weir_", 5) != 0;

		names += !found;
		for (unsigned i = 0; i < CALLS && !found; i++)
			found = !strcmp(name, calls[i].name);
		for (unsigned i = 0; i < sizeof(without) / sizeof(without[0]) && !found; i++)
			found = !strcmp(name, without[i]);
		if (!found)
			print_error("%s is not tried\n", name);
		missing += !found;
	}
	assert_true(names > 50);
	assert_int_equal(missing, 0);
}

/* Handles that were closed are told from new ones, which do not get their addresses at once. */
static void test_addresses_are_not_reused(void **state)
{
	struct weir_storage *closed, *open;

	(void)state;
	must(weir_storage_open(live.context, "virt:1M", WEIR_OPTIONS(storage, .queues = 1), &closed));
	must(weir_storage_close(closed));
	must(weir_storage_open(live.context, "virt:1M", WEIR_OPTIONS(storage, .queues = 1), &open));
	refused(weir_storage_close(closed), -EINVAL, "virt:1M", "closed already");
	must(weir_storage_flush(open));
	must(weir_storage_close(open));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_order),
		cmocka_unit_test(test_running_kernels),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_failed_controller),
		cmocka_unit_test(test_unasked_fault),
		cmocka_unit_test(test_lanes_with_closed_storages),
		cmocka_unit_test(test_lanes_with_closed_caches),
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
