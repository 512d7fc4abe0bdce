/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context_test.c: what a context asks of its backend, and what it says of faults. The backend is the test's:
 * of an allocation of a GiB or more it has an address alone, so that sizes beyond 32 bits cost nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/file.h>

#include "backend/error.h"
#include "device/context.h"

enum { MOST_CALLS = 128, DEPTH = 4096, TRANSFER = 2 << 20, QUEUES = 2 };

#define GIB    ((uint64_t)1 << 30)
#define FAR    ((uint64_t)1 << 56) /* from here on nothing is there */
#define BEYOND (5 * GIB)

/**
 * struct device - the backend, and what it was asked for
 * @calls: words of the latest
 * @fails: the word of the call that fails
 * @blocks: allocations that were not given back
 * @allocated, @released: sizes of the latest of them
 * @copied_at, @copied_bytes: of the latest copy
 * @closed: how often it was closed
 */
static struct device {
	struct weir_backend base;
	char calls[MOST_CALLS];
	const char *fails;
	unsigned blocks, closed;
	uint64_t next, allocated, released, copied_at, copied_bytes;
} device;

static struct weir_context *context;

static int asked(const char *word)
{
	size_t used = strlen(device.calls);

	snprintf(device.calls + used, sizeof(device.calls) - used, "%s%s", used ? " " : "", word);
	return device.fails && !strcmp(device.fails, word) ? weir_fail(EREMOTEIO, "no %s", word) : 0;
}

static int allocate(struct weir_backend *backend, size_t bytes, enum weir_memory kind, void **host,
		    uint64_t *address)
{
	(void)backend;
	if (asked("allocate"))
		return -EREMOTEIO;
	device.blocks++;
	device.allocated = bytes;
	if (bytes >= GIB)
		*address = device.next += FAR;
	else
		*address = WEIR_ADDR(aligned_alloc(NVME_PAGE_BYTES, bytes));
	if (bytes < GIB)
		memset((void *)(uintptr_t)*address, 0, bytes);
	*host = kind == WEIR_MEMORY_HOST ? (void *)(uintptr_t)*address : NULL;
	return 0;
}

static void release(struct weir_backend *backend, uint64_t address, size_t bytes, enum weir_memory kind)
{
	(void)backend;
	(void)kind;
	device.blocks--;
	device.released = bytes;
	if (address < FAR)
		free((void *)(uintptr_t)address);
}

static int note_copy(uint64_t at, size_t bytes)
{
	device.copied_at = at;
	device.copied_bytes = bytes;
	return asked("copy");
}

static int h2d(struct weir_backend *backend, uint64_t address, const void *host, size_t bytes)
{
	(void)backend;
	if (note_copy(address, bytes))
		return -EREMOTEIO;
	if (address < FAR)
		memcpy((void *)(uintptr_t)address, host, bytes);
	return 0;
}

static int d2h(struct weir_backend *backend, void *host, uint64_t address, size_t bytes)
{
	(void)backend;
	device.copied_at = address;
	device.copied_bytes = bytes;
	if (address < FAR)
		memcpy(host, (const void *)(uintptr_t)address, bytes);
	return 0;
}

static int launch(struct weir_backend *backend, const char *kernel, uint32_t blocks, uint32_t threads,
		  const void *args, size_t bytes)
{
	(void)backend, (void)blocks, (void)threads, (void)args, (void)bytes;
	return asked(kernel);
}

static int synchronise(struct weir_backend *backend)
{
	(void)backend;
	return asked("wait");
}

static int stream_join(struct weir_backend *backend, void *stream, enum weir_join join)
{
	(void)backend;
	assert_ptr_equal(stream, &device);
	return asked(join == WEIR_JOIN_AFTER ? "after" : "before");
}

static int export_memory(struct weir_backend *backend, uint64_t address, size_t bytes, int *file,
			 uint64_t *offset)
{
	(void)backend, (void)address, (void)bytes, (void)file, (void)offset;
	return weir_fail(EREMOTEIO, "no dma-buf");
}

static void close_device(struct weir_backend *backend)
{
	(void)backend;
	device.closed++;
}

/* Each number is another one. */
static void properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	*out = (struct weir_backend_properties){
		.name = "noted",
		.wave_lanes = 2,
		.workers = 3,
		.block_lanes = 5,
		.memory_bytes = 7 * GIB,
		.memory_free_bytes = 6 * GIB + 1,
		.pci_address = "0001:02:03.4",
		.numa_node = 11,
		.peer_dma = true,
		.peer_writes = WEIR_PEER_WRITES_FLUSHED,
		.map_registers = { .why = "no registers" },
		.register_host = { .has = true, .why = "none" },
	};
}

static const struct weir_backend_ops ops = { .size = sizeof(ops),
					     .name = "noted",
					     .close = close_device,
					     .allocate = allocate,
					     .release = release,
					     .h2d = h2d,
					     .d2h = d2h,
					     .launch = launch,
					     .synchronise = synchronise,
					     .properties = properties,
					     .stream_join = stream_join,
					     .export_memory = export_memory };

static int begin(void **state)
{
	(void)state;
	device = (struct device){ .base = { .ops = &ops } };
	context = calloc(1, sizeof(*context));
	context->backend = &device.base;
	return weir_dma_map_create(&context->dma) ||
	       weir_memory_get(context, sizeof(struct weir_fault), &context->fault) ||
	       weir_handle_add(context, WEIR_HANDLE_CONTEXT, "noted");
}

static int end(void **state)
{
	(void)state;
	device.fails = NULL;
	context->open = NULL;
	if (!device.closed)
		assert_int_equal(weir_context_close(context), 0);
	assert_int_equal(device.blocks, 0);
	assert_int_equal(device.closed, 1);
	return 0;
}

static void says(int result, int error, const char *words)
{
	assert_int_equal(result, error);
	if (!strstr(weir_last_error(), words))
		fail_msg("\"%s\" does not say \"%s\"", weir_last_error(), words);
}

/* An allocation is as large as it was asked for, to its last byte, and is given back as large. */
static void test_memory_beyond_4_gib(void **state)
{
	static const struct {
		uint64_t at, bytes;
		int error;
	} copies[] = {
		{ 0, 4096, 0 },
		{ BEYOND, 4096, 0 },
		{ BEYOND + 1, 4096, -EFAULT },
		{ 0, BEYOND + 4096, 0 },
		{ 0, BEYOND + 4097, -EFAULT },
		{ GIB, 4 * GIB + 4096, 0 },
		{ GIB, 4 * GIB + 4097, -EFAULT },
	};
	static char bytes[4096];
	uint64_t address = 0;

	(void)state;
	assert_int_equal(weir_alloc(context, BEYOND + 1, &address), 0);
	assert_true(device.allocated == BEYOND + 4096);
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		for (unsigned in = 0; in < 2; in++) {
			device.copied_at = device.copied_bytes = 0;
			assert_int_equal(in ? weir_copy_to_device(context, address + copies[i].at, bytes,
								  copies[i].bytes)
					    : weir_copy_from_device(context, bytes, address + copies[i].at,
								    copies[i].bytes),
					 copies[i].error);
			assert_true(device.copied_at == (copies[i].error ? 0 : address + copies[i].at));
			assert_true(device.copied_bytes == (copies[i].error ? 0 : copies[i].bytes));
		}
	assert_int_equal(weir_free(context, address), 0);
	assert_true(device.released == BEYOND + 4096);
	assert_int_equal(weir_alloc(context, SIZE_MAX - 4094, &address), -EINVAL);
}

static int refuse_mapping(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes, void *host)
{
	(void)mapper, (void)address, (void)bytes, (void)host;
	return weir_fail(EREMOTEIO, "no mapping");
}

static void note_unmapping(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes)
{
	(void)mapper, (void)address, (void)bytes;
}

/* What controllers cannot have is not kept for the host either: nothing of it stays, whatever refused it. */
static void test_memory_that_is_refused_is_given_back(void **state)
{
	struct weir_dma_mapper mapper = { .map = refuse_mapping, .unmap = note_unmapping };
	uint64_t address = 77;
	void *host;

	(void)state;
	assert_int_equal(weir_dma_map_follow(context->dma, &mapper), 0);
	for (unsigned i = 0; i < 2; i++) {
		says(weir_alloc_host(context, 4096, &address, &host), -EREMOTEIO, "no mapping");
		assert_int_equal(address, 0);
		assert_int_equal(device.blocks, 1);
	}
	weir_dma_map_unfollow(context->dma, &mapper);
	context->peer_storages = 1;
	for (unsigned i = 0; i < 2; i++) {
		says(weir_alloc(context, 4096, &address), -EREMOTEIO, "no dma-buf");
		assert_int_equal(device.blocks, 1);
	}
	context->peer_storages = 0;
	device.fails = "allocate";
	says(weir_alloc(context, 4096, &address), -EREMOTEIO, "no allocate");
	assert_int_equal(device.blocks, 1);
	device.fails = NULL;
	assert_int_equal(weir_alloc_host(context, 4096, &address, &host), 0);
	assert_int_equal(weir_free(context, address), 0);
	assert_int_equal(weir_dma_map_add(context->dma, host, 4096), 0); /* nobody has it registered */
}

/* A launch in the order of a stream is behind what is in it, and before what comes to it. */
static void test_launches_in_the_order_of_a_stream(void **state)
{
	static const struct {
		const char *fails, *calls;
	} rows[] = {
		{ NULL, "after kernel before" },
		{ "after", "after" },
		{ "kernel", "after kernel" },
		{ "before", "after kernel before" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		device.calls[0] = '\0';
		device.fails = rows[i].fails;
		assert_int_equal(weir_launch_on(context, &device, "kernel", 1, 1, &device, 8),
				 rows[i].fails ? -EREMOTEIO : 0);
		assert_string_equal(device.calls, rows[i].calls);
	}
	device.calls[0] = '\0';
	device.fails = NULL;
	assert_int_equal(weir_launch_on(context, NULL, "kernel", 1, 1, &device, 8), 0);
	assert_string_equal(device.calls, "kernel");
}

static struct weir_fault *met(uint32_t source, uint32_t disk)
{
	struct weir_fault *fault = weir_at(context->fault, struct weir_fault, 0);

	memset(fault, 0, sizeof(*fault));
	fault->status = WEIR_E_RANGE;
	fault->source = source;
	fault->disk = disk;
	fault->thread = 3 * GIB * 4 + 1;
	fault->position = 5 * GIB * 4 + 2;
	fault->limit = 7 * GIB * 4 + 3;
	weir_store_u32_relaxed_sys(&fault->claimed, 1);
	return fault;
}

/* What a lane met is told with its numbers, all 64 bits of them, and its storage; once. */
static void test_faults_are_told_once(void **state)
{
	static const struct {
		uint32_t source, disk;
		const char *says;
	} rows[] = {
		{ WEIR_FAULT_INDEX, 0,
		  "lane 12884901889 asked for array element 21474836482, but the array has 30064771075: " },
		{ WEIR_FAULT_WIDTH, 0, "lane 12884901889 used an accessor of 21474836482 bytes on an array" },
		{ WEIR_FAULT_LBA, 8,
		  "lane 12884901889 could not get block 21474836482 of storage \"test:b\" (30064771075 "
		  "blocks): " },
		{ WEIR_FAULT_WRITE, 7,
		  "lane 12884901889 needed block 21474836482 of storage \"test:a\" (30064771075 blocks) "
		  "written back" },
		{ WEIR_FAULT_LBA, 9, "of storage \"(closed since)\"" },
	};
	struct weir_storage first = { .uri = (char *)"test:a", .disk = { .id = 7 } },
			    latest = { .uri = (char *)"test:b", .disk = { .id = 8 }, .next = &first };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		context->open = &latest;
		(void)met(rows[i].source, rows[i].disk);
		says(weir_sync(context), -EIO, rows[i].says);
		says(-EIO, -EIO, "blocks past the end of the storage");
		context->open = NULL;
		assert_int_equal(weir_sync(context), 0);
	}
}

/* One that cannot be told now is told later: behind a wait that failed, and a record that is not made new. */
static void test_faults_are_not_lost(void **state)
{
	(void)state;
	(void)met(WEIR_FAULT_INDEX, 0);
	device.fails = "wait";
	says(weir_sync(context), -EREMOTEIO, "no wait");
	device.fails = "copy";
	says(weir_sync(context), -EREMOTEIO, "no copy");
	device.fails = NULL;
	says(weir_sync(context), -EIO, "array element 21474836482");
	(void)met(WEIR_FAULT_INDEX, 0);
	says(weir_context_close(context), -EIO, "array element 21474836482");
}

/* A device whose launches failed is closed all the same, and that they did is said. */
static void test_a_close_that_could_not_wait(void **state)
{
	uint64_t address;

	(void)state;
	assert_int_equal(weir_alloc(context, 4096, &address), 0);
	device.fails = "wait";
	says(weir_context_close(context), -EREMOTEIO, "no wait");
	says(weir_context_close(context), -EINVAL, "closed already");
}

static void test_what_a_device_is(void **state)
{
	struct weir_context_info info = { .size = sizeof(info) };

	(void)state;
	assert_int_equal(weir_context_info(context, &info), 0);
	assert_string_equal(info.name, "noted");
	assert_string_equal(info.pci_address, "0001:02:03.4");
	assert_int_equal(info.wave_lanes, 2);
	assert_int_equal(info.workers, 3);
	assert_int_equal(info.block_lanes, 5);
	assert_true(info.memory_bytes == 7 * GIB && info.memory_free_bytes == 6 * GIB + 1);
	assert_int_equal(info.numa_node, 11);
	assert_true(!info.dma_buf && info.peer_dma && info.peer_writes == WEIR_PEER_WRITES_FLUSHED);
	assert_true(!info.map_registers && info.register_host && !info.export_memory);
	assert_string_equal(info.map_registers_why, "no registers");
	assert_string_equal(info.register_host_why, "");
	assert_string_equal(info.export_memory_why, "its backend does not know how");
}

static struct weir_queue queues[QUEUES];

/* Of the deepest queue pair with the largest transfers staging alone has 8 GiB; slots begin free in the lap
 * of the first ticket, every one of them. */
static void test_the_largest_queue_pair(void **state)
{
	const uint64_t staging = (uint64_t)DEPTH * TRANSFER, first = (uint64_t)6 * DEPTH + (GIB << 12);
	struct weir_transport_ops none = { .size = sizeof(none) };
	struct weir_transport transport = { .ops = &none,
					    .doorbell_bytes = 4,
					    .device_controller = { .on = true } };
	uint64_t rings[QUEUES] = { 0 }, slots[QUEUES] = { 0 }, places[QUEUES] = { 0 };
	struct weir_storage storage = { .context = context,
					.transport = &transport,
					.uri = (char *)"test:",
					.queues = WEIR_ADDR(queues),
					.queue_count = QUEUES,
					.depth = DEPTH,
					.pull = true,
					.rings = rings,
					.slots = slots,
					.staging = places };

	(void)state;
	storage.space.nsid = 9;
	storage.space.block_log2 = 12;
	assert_true(weir_queue_memory_bytes(DEPTH, TRANSFER, true) -
			    weir_queue_memory_bytes(DEPTH, TRANSFER, false) ==
		    staging);
	assert_int_equal(weir_queue_create(&storage, 1, first, TRANSFER), 0);
	assert_true(places[1] >= FAR && queues[1].staging == places[1]);
	assert_int_equal(queues[1].staging_log2, 21);
	assert_int_equal(queues[1].prp_entries, 512);
	assert_int_equal(queues[1].depth, DEPTH);
	assert_int_equal(queues[1].depth_log2, 12);
	assert_int_equal(queues[1].nsid, 9);
	assert_int_equal(queues[1].block_log2, 12);
	assert_int_equal(queues[1].id, 2);
	assert_true(queues[1].cq == queues[1].sq + (uint64_t)DEPTH * 64);
	assert_true(queues[1].prp_lists == queues[1].cq + (uint64_t)DEPTH * 16);
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(weir_load_u32_relaxed_sys(&weir_at(slots[1], struct weir_slot, i)->sequence),
				 (uint32_t)(first / DEPTH * 2));
	assert_true(weir_load_u64_relaxed_sys(&queues[1].tail) == first);
	assert_true(weir_load_u64_relaxed_sys(&queues[1].committed) == first);
	assert_true(weir_load_u64_relaxed_sys(&queues[1].rung) == first);
	assert_true(weir_load_u64_relaxed_sys(&queues[1].reap) == first << 1);
	assert_int_equal(weir_memory_put(context, places[1]), 0);
	assert_true(device.released == staging);
}

/* Registered memory is that of an allocation wherever in it: it is freed when none of it is registered. */
static void test_part_of_an_allocation_is_registered(void **state)
{
	static const uint64_t at[] = { 0, 1, 4096, 3 * 4096, 4 * 4096 - 1 };
	struct weir_registration *registration;
	struct weir_context *real;
	uint64_t address;

	(void)state;
	assert_int_equal(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &real), 0);
	assert_int_equal(weir_alloc(real, 4 * 4096, &address), 0);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_int_equal(weir_register(real, address + at[i], 1, NULL, &registration), 0);
		says(weir_free(real, address), -EBUSY, "1 bytes at");
		assert_int_equal(weir_deregister(registration), 0);
	}
	assert_int_equal(weir_free(real, address), 0);
	assert_int_equal(weir_context_close(real), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_memory_beyond_4_gib, begin, end),
		cmocka_unit_test_setup_teardown(test_memory_that_is_refused_is_given_back, begin, end),
		cmocka_unit_test_setup_teardown(test_launches_in_the_order_of_a_stream, begin, end),
		cmocka_unit_test_setup_teardown(test_faults_are_told_once, begin, end),
		cmocka_unit_test_setup_teardown(test_faults_are_not_lost, begin, end),
		cmocka_unit_test_setup_teardown(test_a_close_that_could_not_wait, begin, end),
		cmocka_unit_test_setup_teardown(test_what_a_device_is, begin, end),
		cmocka_unit_test_setup_teardown(test_the_largest_queue_pair, begin, end),
		cmocka_unit_test(test_part_of_an_allocation_is_registered),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("context", tests, NULL, NULL);
}
