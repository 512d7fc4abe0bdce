/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_controller_host_test.c: what the host gives a controller on the device to begin with.
 *
 * device_controller.c alone is linked: no device of a machine without a GPU runs two kernels side by side.
 * The device's memory is the process's, and what is launched is noted.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/error.h"
#include "device/context.h"
#include "device/persistent.h"
#include "kernels/controller_timed.h"
#include "storage/device_controller.h"
#include "transport/virtual/fault.h"

enum { QUEUES = 3, DEPTH = 16, WAVE_LANES = 32, WORKERS = 4, MOST_BLOCKS = 32, MOST_CALLS = 100 };

static const uint64_t BLOCKS = ((uint64_t)9 << 20) + 1, TICKET = ((uint64_t)5 << 32) + 2 * DEPTH;

static void *blocks[MOST_BLOCKS]; /* of memory that are not given back */
static unsigned calls, fails_at;  /* of what may fail; 0: none does */
static unsigned prepared;
static uint64_t medium_bytes, doorbell_bytes;
static enum weir_memory medium_kind;
static struct weir_controller_args args;
static struct weir_persistent_launch launched;
static struct weir_transport transport;
static struct weir_storage storage;
static struct weir_queue queues[QUEUES];

static bool is_refused(void)
{
	return ++calls == fails_at;
}

static int give(size_t bytes, uint64_t *address)
{
	unsigned i = 0;

	*address = 0;
	if (is_refused())
		return weir_fail(ENOMEM, "no memory");
	while (i < MOST_BLOCKS && blocks[i])
		i++;
	assert_true(i < MOST_BLOCKS);
	blocks[i] = calloc(1, bytes);
	assert_non_null(blocks[i]);
	*address = (uintptr_t)blocks[i];
	return 0;
}

static unsigned given(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < MOST_BLOCKS; i++)
		count += blocks[i] != NULL;
	return count;
}

int weir_memory_get(struct weir_context *context, size_t bytes, uint64_t *address)
{
	(void)context;
	doorbell_bytes = bytes;
	return give(bytes, address);
}

int weir_memory_allocate(struct weir_context *context, size_t bytes, enum weir_memory kind, uint64_t *address,
			 void **host)
{
	(void)context;
	assert_null(host);
	medium_bytes = bytes;
	medium_kind = kind;
	return give(64, address);
}

int weir_memory_put(struct weir_context *context, uint64_t address)
{
	(void)context;
	for (unsigned i = 0; address && i < MOST_BLOCKS; i++)
		if (blocks[i] == (void *)(uintptr_t)address) {
			free(blocks[i]);
			blocks[i] = NULL;
			return 0;
		}
	assert_true(address == 0);
	return 0;
}

int weir_copy_to_device(struct weir_context *context, uint64_t address, const void *from, size_t bytes)
{
	(void)context;
	if (is_refused())
		return weir_fail(EIO, "no copy");
	memcpy((void *)(uintptr_t)address, from, bytes);
	return 0;
}

int weir_copy_from_device(struct weir_context *context, void *to, uint64_t address, size_t bytes)
{
	(void)context;
	if (is_refused())
		return weir_fail(EIO, "no copy");
	memcpy(to, (const void *)(uintptr_t)address, bytes);
	return 0;
}

int weir_persistent_prepare(struct weir_context *context, struct weir_persistent *persistent)
{
	(void)context;
	if (is_refused())
		return weir_fail(ENOMEM, "no memory");
	persistent->started = 0x1000;
	persistent->stop = 0x2000;
	prepared++;
	return 0;
}

int weir_persistent_start(struct weir_context *context, struct weir_persistent *persistent,
			  const struct weir_persistent_launch *launch)
{
	(void)context;
	assert_true(persistent->stop == 0x2000);
	if (is_refused())
		return weir_fail(EBUSY, "the device is full");
	assert_int_equal(launch->args_bytes, sizeof(args));
	memcpy(&args, launch->args, sizeof(args));
	launched = *launch;
	return 0;
}

void weir_persistent_end(struct weir_context *context, struct weir_persistent *persistent)
{
	(void)context;
	prepared -= persistent->stop != 0;
}

struct weir_fault_row weir_virtual_fault_row(const struct weir_virtual_fault *fault)
{
	return (struct weir_fault_row){ .kind = fault->kind, .us = fault->us };
}

static void properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	out->wave_lanes = WAVE_LANES;
	out->workers = WORKERS;
}

static int serve(struct weir_backend *backend, const char *kernel, uint32_t count, uint32_t threads,
		 const void *of, size_t bytes, void **service)
{
	(void)backend, (void)kernel, (void)count, (void)threads, (void)of, (void)bytes, (void)service;
	return -ENOSYS;
}

static struct weir_backend_ops ops = { .name = "pretended", .properties = properties, .serve = serve };
static struct weir_backend backend = { .ops = &ops };
static struct weir_context context = { .backend = &backend };

static void begin(struct weir_device_controller_options options)
{
	calls = fails_at = 0;
	transport = (struct weir_transport){ .device_controller = options };
	storage = (struct weir_storage){ .context = &context,
					 .transport = &transport,
					 .uri = (char *)"virt:it",
					 .queues = (uintptr_t)queues,
					 .depth = DEPTH };
	storage.space.blocks = BLOCKS;
	storage.space.block_log2 = 9;
	memset(queues, 0, sizeof(queues));
	for (unsigned i = 0; i < QUEUES; i++) {
		queues[i].sq = 100 + i;
		queues[i].cq = 200 + i;
		queues[i].sq_doorbell = 300 + i;
		queues[i].depth_log2 = 4;
		queues[i].id = i + 1;
		weir_store_u64_relaxed_sys(&queues[i].reap, (TICKET + i) << 1);
	}
}

static void ended(void)
{
	weir_device_controller_stop(&storage);
	assert_null(storage.device_controller);
	assert_int_equal(given(), 0);
	assert_int_equal(prepared, 0);
}

static const struct weir_virtual_fault faults[] = {
	{ .kind = WEIR_VIRTUAL_FAULT_LATE, .us = 7 },
	{ .kind = WEIR_VIRTUAL_FAULT_DROP, .us = 9 },
};

/* Times and bytes are beyond what 32 bits hold. */
static const struct weir_device_controller_options slow = {
	.on = true,
	.waves = 10,
	.data = true,
	.latency_us = 5000000,
	.iops = 1000,
	.faults = faults,
	.fault_count = 2,
};

static void is_queue(unsigned index)
{
	struct weir_controller_queue *queue = weir_at(args.queues, struct weir_controller_queue, index);
	struct weir_controller_later *later = weir_at(queue->later, struct weir_controller_later, 0);
	uint32_t head = (uint32_t)(TICKET + index);

	assert_true(queue->sq == 100 + index && queue->cq == 200 + index);
	assert_true(queue->doorbells == 300 + index);
	assert_int_equal(queue->depth_log2, 4);
	assert_int_equal(queue->id, index + 1);
	assert_true(weir_load_u64_relaxed_sys(&queue->head) == head); /* nothing is promised beyond it */
	assert_int_equal(later->posted, head);
	assert_int_equal(weir_load_u32_relaxed_sys(&later->oldest), head);
	assert_int_equal(weir_load_u32_relaxed_sys(&later->next), head);
	memset(weir_at(later->entries, char, 0), 1 + (int)index,
	       DEPTH * sizeof(struct weir_controller_entry));
	memset(weir_at(later->groups, char, 0), 1 + (int)index, 2 * sizeof(uint32_t));
}

/* What each queue has is its own: to the last byte, which another one's would have written over. */
static void has_memory_of_its_own(unsigned index)
{
	struct weir_controller_queue *queue = weir_at(args.queues, struct weir_controller_queue, index);
	struct weir_controller_later *later = weir_at(queue->later, struct weir_controller_later, 0);
	const char *entries = weir_at(later->entries, char, 0), *groups = weir_at(later->groups, char, 0);

	for (size_t i = 0; i < DEPTH * sizeof(struct weir_controller_entry); i++)
		assert_int_equal(entries[i], 1 + index);
	for (size_t i = 0; i < 2 * sizeof(uint32_t); i++)
		assert_int_equal(groups[i], 1 + index);
}

static void a_slow_controller_with_faults(void **state)
{
	(void)state;
	begin(slow);
	assert_int_equal(weir_device_controller_start(&storage, QUEUES), 0);
	assert_string_equal(launched.kernel, "weir_controller_timed");
	assert_string_equal(launched.what, "virt:it");
	assert_int_equal(launched.threads, 128);
	assert_int_equal(launched.blocks, 3);
	assert_int_equal(transport.device_controller.waves, 12); /* those that it has */
	assert_true(medium_bytes == BLOCKS << 9 && medium_kind == WEIR_MEMORY_DEVICE);
	assert_true(args.blocks == BLOCKS && args.block_log2 == 9 && !args.no_data);
	assert_true(args.latency_ns == 5000000000 && args.iops == 1000 && args.queue_count == QUEUES);
	assert_true(args.started == 0x1000 && args.stop == 0x2000 && args.medium && args.rate);
	assert_int_equal(args.fault_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(weir_at(args.faults, struct weir_fault_row, i)->kind, faults[i].kind);
		assert_int_equal(weir_at(args.faults, struct weir_fault_row, i)->us, faults[i].us);
	}
	for (unsigned i = 0; i < QUEUES; i++)
		is_queue(i);
	for (unsigned i = 0; i < QUEUES; i++)
		has_memory_of_its_own(i);
	ended();
}

static void a_fast_controller(void **state)
{
	(void)state;
	begin((struct weir_device_controller_options){
		.on = true, .groups = 2, .data = true, .host_medium = true });
	assert_int_equal(weir_device_controller_start(&storage, QUEUES), 0);
	assert_string_equal(launched.kernel, "weir_controller");
	assert_int_equal(launched.threads, WEIR_CONTROLLER_BLOCK_LANES);
	assert_int_equal(launched.blocks, 2);
	assert_int_equal(transport.device_controller.waves, 2 * WEIR_CONTROLLER_BLOCK_LANES / WAVE_LANES);
	assert_int_equal(medium_kind, WEIR_MEMORY_HOST);
	assert_true(!args.rate && !args.faults && !args.latency_ns && !args.iops);
	assert_true(weir_at(args.queues, struct weir_controller_queue, QUEUES - 1)->later == 0);
	ended();
	medium_bytes = 0;
	begin((struct weir_device_controller_options){ .on = true, .waves = 1 });
	assert_int_equal(weir_device_controller_start(&storage, QUEUES), 0);
	assert_true(args.no_data && !args.medium && !medium_bytes);
	ended();
	begin((struct weir_device_controller_options){ .on = true, .groups = WORKERS + 1 });
	assert_int_equal(weir_device_controller_start(&storage, QUEUES), -EINVAL);
	assert_non_null(strstr(weir_last_error(), "groups=5"));
	ended();
}

/* The more waves there are for a queue, the less each takes, and the longer it rests. */
static void waves_share_the_queues(void **state)
{
	static const struct {
		uint32_t queues, waves, claim, share_log2, rest;
	} rows[] = { { 3, 1, 0, 0, 0 },
		     { 1, 4, 0, 2, 3 },
		     { 2, 4, 5, 1, 1 },
		     { 3, 8, 0, 1, 1 },
		     { 3, 8000, 64, 2, 1023 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin((struct weir_device_controller_options){
			.on = true, .waves = rows[i].waves, .claim = rows[i].claim });
		assert_int_equal(weir_device_controller_start(&storage, rows[i].queues), 0);
		assert_int_equal(args.claim, rows[i].claim ? rows[i].claim : ~0u);
		assert_true(args.claim_bytes == (rows[i].claim ? ~0ull : WEIR_CONTROLLER_CLAIM_BYTES));
		assert_int_equal(args.share_log2, rows[i].share_log2);
		assert_int_equal(args.rest, rows[i].rest);
		ended();
	}
}

/* Whatever fails on the way: nothing is launched, and nothing stays. */
static void what_fails_leaves_nothing(void **state)
{
	unsigned nth = 0;
	int error = -1;

	(void)state;
	for (; error && nth < MOST_CALLS; nth++) {
		begin(slow);
		fails_at = nth + 1;
		launched.kernel = NULL;
		error = weir_device_controller_start(&storage, QUEUES);
		assert_int_equal(launched.kernel == NULL, error != 0);
		ended();
	}
	assert_in_range(nth, 20, MOST_CALLS - 1);
}

static void doorbells(void **state)
{
	(void)state;
	begin(slow);
	assert_int_equal(weir_device_controller_doorbells(&storage, QUEUES), 0);
	assert_int_equal(doorbell_bytes, (QUEUES + 1) * 2 * sizeof(uint32_t));
	assert_int_equal(weir_memory_put(&context, storage.doorbells), 0);
	ops.serve = NULL;
	assert_int_equal(weir_device_controller_doorbells(&storage, QUEUES), -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "side by side, which pretended does not"));
	ops.serve = serve;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_controller_with_faults),
		cmocka_unit_test(a_fast_controller),
		cmocka_unit_test(waves_share_the_queues),
		cmocka_unit_test(what_fails_leaves_nothing),
		cmocka_unit_test(doorbells),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("device_controller_host", tests, NULL, NULL);
}
