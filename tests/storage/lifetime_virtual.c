/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lifetime_virtual.c: cases of storages on virtual controllers, each in a context of its own.
 */
#include "lifetime_cases.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "../rig/context.h"
#include "lifetime.h"

/** struct gate - what lifetime_wait waits for, and whether the host's call has returned */
struct gate {
	atomic_uint *open;
	atomic_bool returned;
};

/* A call that does not wait has returned long before. */
static void *open_late(void *argument)
{
	struct gate *gate = argument;

	for (unsigned i = 0; i < 1000 && !atomic_load(&gate->returned); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	atomic_store(gate->open, 1);
	return NULL;
}

/* A kernel waits for the gate while @end closes what it uses, or may. */
static void is_waited_for(struct weir_context *context, struct lifetime_wait_args args, int (*end)(void *of),
			  void *of)
{
	struct gate gate = { .returned = false };
	uint32_t *out;
	pthread_t thread;

	must(weir_alloc_host(context, sizeof(uint32_t), &args.gate, (void **)&gate.open));
	must(weir_alloc_host(context, sizeof(uint32_t), &args.out, (void **)&out));
	must(weir_launch(context, "lifetime_wait", 1, 1, &args, sizeof(args)));
	assert_int_equal(pthread_create(&thread, NULL, open_late, &gate), 0);
	must(end(of));
	assert_int_equal(__atomic_load_n(out, __ATOMIC_ACQUIRE), 1);
	atomic_store(&gate.returned, true);
	pthread_join(thread, NULL);
}

static int destroy_cache(void *cache)
{
	return weir_cache_destroy(cache);
}

static int close_storage(void *storage)
{
	return weir_storage_close(storage);
}

/* A cache that is read alone is not written back, and a storage may have no cache: kernels that have them are
 * waited for all the same. */
void test_readers_are_waited_for(void **state)
{
	struct lifetime_wait_args args = { .gate = 0 };
	struct weir_storage *storage;
	struct weir_context *context;
	struct weir_cache *cache;

	(void)state;
	if (!test_on_cpu())
		skip();
	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context));
	must(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .queues = 1), &storage));
	is_waited_for(context, args, close_storage, storage);
	must(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .queues = 1), &storage));
	must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 4), &cache));
	must(weir_array_open(cache, &storage, 1, WEIR_OPTIONS(array, .element_bytes = 8), &args.array));
	is_waited_for(context, args, destroy_cache, cache);
	must(weir_context_close(context));
}

/* A queue pair has more slots than the host looks at at once: the read that failed may have any of them. */
void test_a_read_that_was_left_in_a_late_slot(void **state)
{
	enum { DEPTH = 256, BEFORE = 150, BUFFER_BYTES = 8192 };
	static const char uri[] = "virt:1M?block=512&fault=status:code=0x21:op=read:lba=0";
	struct lifetime_left_args args = { .sees = 1 };
	struct weir_storage *storage;
	struct weir_context *context;
	unsigned char block[512];
	uint32_t statuses[2];

	(void)state;
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1), &context));
	must(weir_storage_open(
		context, uri,
		WEIR_OPTIONS(storage, .queues = 1, .depth = DEPTH, .timeout_us = test_patient_us(10000000)),
		&storage));
	must(weir_alloc(context, BUFFER_BYTES, &args.buffer));
	for (unsigned i = 0; i < BEFORE; i++)
		must(weir_storage_read(storage, sizeof(block), block, sizeof(block)));
	must(weir_storage_disk(storage, &args.disk));
	must(weir_launch(context, "lifetime_left", 1, 1, &args, sizeof(args)));
	must(weir_storage_close(storage));
	args.statuses = args.buffer + 5120;
	must(weir_launch(context, "lifetime_left", 1, 1, &args, sizeof(args)));
	must(weir_sync(context));
	must(weir_copy_from_device(context, statuses, args.statuses, sizeof(statuses)));
	assert_int_equal(statuses[0], 2);
	assert_int_equal(statuses[1], WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x21);
	must(weir_context_close(context));
}

/* Waves have queue pairs of their own, each of which is closed; a read that failed, and that nobody has
 * looked at yet, may be of any of them. */
void test_every_queue_of_a_closed_storage(void **state)
{
	enum { QUEUES = 4, BUFFER_BYTES = 8192 };
	static const char uri[] = "virt:1M?block=512&fault=status:code=0x21:op=read:lba=0";
	struct lifetime_left_args args = { .buffer = 0 };
	struct weir_storage *storage;
	struct weir_context *context;
	uint32_t statuses[2];

	(void)state;
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1), &context));
	for (unsigned left = 0; left < QUEUES; left++) {
		must(weir_storage_open(context, uri,
				       WEIR_OPTIONS(storage, .queues = QUEUES, .depth = 8,
						    .timeout_us = test_patient_us(10000000)),
				       &storage));
		must(weir_storage_disk(storage, &args.disk));
		must(weir_alloc(context, BUFFER_BYTES, &args.buffer));
		args.disk.queue_count = 1;
		args.disk.queues += left * sizeof(struct weir_queue);
		args.statuses = 0;
		args.sees = 1;
		must(weir_launch(context, "lifetime_left", 1, 1, &args, sizeof(args)));
		must(weir_storage_close(storage));
		args.statuses = args.buffer + 5120;
		must(weir_launch(context, "lifetime_left", 1, 1, &args, sizeof(args)));
		must(weir_sync(context));
		must(weir_copy_from_device(context, statuses, args.statuses, sizeof(statuses)));
		assert_int_equal(statuses[0], 2);
		assert_int_equal(statuses[1], WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x21);
	}
	must(weir_context_close(context));
}

/* A storage's waves have queue pairs of their own; what they find in place of a cache is one for all. */
void test_waves_with_a_closed_cache(void **state)
{
	enum { QUEUES = 4, COUNT = 512 };
	struct lifetime_put_args args = { .writer_count = 1, .count = COUNT, .seed = 1 };
	struct weir_storage *storage;
	struct weir_context *context;
	struct weir_cache *cache;

	(void)state;
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1), &context));
	must(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .queues = QUEUES), &storage));
	must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 64), &cache));
	must(weir_writer_open(cache, &storage, 1, WEIR_OPTIONS(array, .element_bytes = 8), &args.writer[0]));
	must(weir_launch(context, "lifetime_put", QUEUES, 16, &args, sizeof(args)));
	must(weir_sync(context));
	must(weir_cache_destroy(cache));
	must(weir_launch(context, "lifetime_put", QUEUES, 16, &args, sizeof(args)));
	refused(weir_sync(context), -EIO, "virt:1M", "closed");
	must(weir_context_close(context));
}
