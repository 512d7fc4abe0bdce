/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory_test.c: memory that a command of an open storage has is not freed, copies stay inside of
 * allocations, and what was closed gives its memory back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../runtime/device/context.h"
#include "../rig/leaks.h"

enum { STORAGES = 3, QUEUES = 3, DEPTH = 4, BLOCK = 512 };

#define MEMORY 0x100000000ull /* of the allocation that is asked about; nobody reads it */
#define BYTES  0x3000ull

static struct weir_context context;
static struct weir_storage storages[STORAGES];
static struct weir_slot slots[STORAGES][QUEUES][DEPTH];
static struct nvme_sqe rings[STORAGES][QUEUES][DEPTH];
static uint64_t slot_addresses[STORAGES][QUEUES], ring_addresses[STORAGES][QUEUES];

static int d2h(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	(void)backend;
	memcpy(host, weir_at(device, unsigned char, 0), bytes);
	return 0;
}

static const struct weir_backend_ops ops = { .size = sizeof(ops), .d2h = d2h };
static struct weir_backend backend = { .ops = &ops };

/* @shared: the host accesses slots in place, else by copies. */
static void begin(bool shared)
{
	static char *const uris[STORAGES] = { (char *)"test:0", (char *)"test:1", (char *)"test:2" };

	memset(slots, 0, sizeof(slots));
	memset(rings, 0, sizeof(rings));
	context = (struct weir_context){ .backend = &backend, .shared_memory = shared, .open = storages };
	for (unsigned s = 0; s < STORAGES; s++) {
		storages[s] = (struct weir_storage){ .context = &context,
						     .next = s + 1 < STORAGES ? &storages[s + 1] : NULL,
						     .disk = { .block_log2 = 9, .queue_count = QUEUES },
						     .uri = uris[s],
						     .rings = ring_addresses[s],
						     .slots = slot_addresses[s],
						     .depth = DEPTH };
		for (unsigned q = 0; q < QUEUES; q++) {
			ring_addresses[s][q] = WEIR_ADDR(rings[s][q]);
			slot_addresses[s][q] = WEIR_ADDR(slots[s][q]);
		}
	}
}

/* A read of @blocks into @buffer, whose event is at @event; @sequence: odd while it is in flight. */
static void put(unsigned storage, unsigned queue, unsigned slot, uint32_t sequence, uint64_t buffer,
		uint32_t blocks, uint64_t event)
{
	struct weir_slot *at = &slots[storage][queue][slot];

	at->target = event;
	at->buffer = buffer;
	weir_store_u32_relaxed_sys(&at->sequence, sequence);
	rings[storage][queue][slot] = (struct nvme_sqe){
		.cdw0 = NVME_OPCODE_READ, .cdw10 = 7, .cdw11 = 1, .cdw12 = (blocks - 1) | 1u << 30
	};
}

static void busy(bool is)
{
	assert_int_equal(weir_inflight_check(&context, MEMORY, BYTES), is ? -EBUSY : 0);
	assert_int_equal(weir_inflight(&context, MEMORY, BYTES), is);
}

/** struct span - where a command's data lie, and whether that is in the allocation */
struct span {
	uint64_t buffer;
	uint32_t blocks;
	bool is_busy;
};

static void test_every_byte_of_the_data_counts(void **state)
{
	static const struct span spans[] = {
		{ MEMORY, 1, true },
		{ MEMORY + BYTES - BLOCK, 1, true },
		{ MEMORY + BYTES - 4, 1, true },
		{ MEMORY + BYTES, 1, false },
		{ MEMORY - BLOCK, 1, false },
		{ MEMORY - BLOCK, 2, true },
		{ MEMORY - BLOCK + 4, 1, true },
		{ MEMORY - 65535 * BLOCK, 65535, false },
		{ MEMORY - 65535 * BLOCK, 65536, true },
		{ MEMORY - BLOCK, 1000, true },
		{ 0, 1000, false }, /* none: a flush */
	};

	(void)state;
	for (unsigned shared = 0; shared < 2; shared++)
		for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
			begin(shared);
			put(1, 1, 1, 3, spans[i].buffer, spans[i].blocks, 0);
			if (weir_inflight(&context, MEMORY, BYTES) != spans[i].is_busy)
				fail_msg("%u blocks at %#llx", spans[i].blocks,
					 (unsigned long long)spans[i].buffer);
			busy(spans[i].is_busy);
		}
}

/* An event is a word that the completion will write. */
static void test_events_count(void **state)
{
	static const struct span events[] = {
		{ MEMORY, 0, true },          { MEMORY + 8, 0, true },  { MEMORY + BYTES - 8, 0, true },
		{ MEMORY + BYTES, 0, false }, { MEMORY - 8, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		begin(true);
		put(0, 0, 0, 1, 0x900000000, 1, events[i].buffer);
		busy(events[i].is_busy);
	}
}

/* In any slot of any queue pair of any storage; free slots have nothing, whatever is left in them. */
static void test_every_slot_is_visited(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STORAGES * QUEUES * DEPTH * 2; i++) {
		unsigned slot = i / 2 % DEPTH, queue = i / 2 / DEPTH % QUEUES,
			 storage = i / 2 / DEPTH / QUEUES;
		char name[16], number[24];

		begin(i % 2);
		put(storage, queue, slot, 6, MEMORY, 1, 0);
		busy(false);
		put(storage, queue, slot, UINT32_MAX, MEMORY, 1, 0);
		busy(true);
		snprintf(name, sizeof(name), "\"test:%u\"", storage);
		snprintf(number, sizeof(number), "(queue %u)", queue + 1);
		assert_non_null(strstr(weir_last_error(), name));
		assert_non_null(strstr(weir_last_error(), number));
		assert_non_null(strstr(weir_last_error(), "read of block 4294967303 (512 bytes)"));
	}
}

/* Neither end of a copy may leave the allocation, nor may their sum wrap. */
static void test_copies_stay_inside(void **state)
{
	static const struct {
		uint64_t at;
		size_t bytes;
		int error;
	} copies[] = {
		{ 0, 8, 0 },
		{ 4088, 8, 0 },
		{ 4096, 0, 0 },
		{ 4089, 8, -EFAULT },
		{ 8, SIZE_MAX, -EFAULT },
		{ 8, SIZE_MAX - 7, -EFAULT },
		{ 4095, SIZE_MAX - 2000, -EFAULT },
	};
	struct weir_context *real;
	uint64_t memory;
	char bytes[8] = "1234567";

	(void)state;
	assert_int_equal(weir_context_open("cpu", NULL, &real), 0);
	assert_int_equal(weir_alloc(real, 4096, &memory), 0);
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		assert_int_equal(weir_copy_to_device(real, memory + copies[i].at, bytes, copies[i].bytes),
				 copies[i].error);
		assert_int_equal(weir_copy_from_device(real, bytes, memory + copies[i].at, copies[i].bytes),
				 copies[i].error);
	}
	assert_int_equal(weir_context_close(real), 0);
}

static uint64_t bytes_of(const struct weir_context *real)
{
	uint64_t bytes = 0;

	for (const struct weir_memory_block *block = real->memory; block; block = block->next)
		bytes += block->bytes;
	return bytes;
}

/*
 * Caches, their tiers and Share Tables, and storages give all their memory back, also where they could
 * not be made.
 */
static void test_all_is_given_back(void **state)
{
	static const char *const uris[] = {
		"virt:64K", "virt:64K?mover=pull", "virt:64K?shadow=on"
	}; /* the second one's medium lies in the context's memory */
	struct weir_context *real;
	uint64_t before;

	(void)state;
	assert_int_equal(weir_context_open("cpu", NULL, &real), 0);
	for (unsigned i = 0; i < 6; i++) {
		struct weir_cache_options options = { .size = sizeof(options),
						      .lines = 64,
						      .line_bytes = 65536 };
		struct weir_cache *cache;
		struct weir_storage *storage;

		before = bytes_of(real);
		options.tier_bytes = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 << 20 : (uint64_t)1 << 48;
		assert_int_equal(weir_cache_create(real, &options, &cache), i % 3 == 2 ? -ENOMEM : 0);
		if (i % 3 != 2) {
			assert_int_equal(weir_share_create(cache, NULL), 0);
			if (i > 2)
				assert_int_equal(weir_share_destroy(cache), 0);
			assert_int_equal(weir_cache_destroy(cache), 0);
		}
		assert_int_equal(bytes_of(real), before);
		assert_int_equal(weir_storage_open(real, uris[i % 3], NULL, &storage), 0);
		assert_true(bytes_of(real) > before);
		assert_int_equal(weir_storage_close(storage), 0);
		/* its queue structures stay, for lanes that still have them */
		assert_int_equal(bytes_of(real), before + NVME_PAGE_BYTES);
		assert_int_not_equal(
			weir_storage_open(real, "virt:64K?fault=fatal:op=nonsense", NULL, &storage), 0);
		assert_int_equal(bytes_of(real), before + NVME_PAGE_BYTES);
	}
	assert_int_equal(weir_context_close(real), 0);
}

/* An array that cannot be opened leaves nothing: for another layout's sake, or for want of keys. */
static void test_refused_arrays_leave_nothing(void **state)
{
	enum { TIMES = 48, SLACK = 4096 }; /* fewer than make the table of layouts grow */
	const struct weir_array_options *options = WEIR_OPTIONS(array, .element_bytes = 8);
	struct weir_storage *pair[2], *endless;
	struct weir_cache *cache;
	struct weir_context *real;
	struct weir_writer writer;
	struct weir_array array;
	uint64_t bytes = 0, heap = 0;

	(void)state;
	assert_int_equal(weir_context_open("cpu", NULL, &real), 0);
	assert_int_equal(weir_cache_create(real, WEIR_OPTIONS(cache, .lines = 8, .line_bytes = 512), &cache),
			 0);
	assert_int_equal(weir_storage_open(real, "virt:64K?block=512", NULL, &pair[0]), 0);
	assert_int_equal(weir_storage_open(real, "virt:64K?block=512", NULL, &pair[1]), 0);
	assert_int_equal(weir_storage_open(real, "virt:512T?block=512&content=address", NULL, &endless), 0);
	assert_int_equal(weir_array_open(cache, pair, 1, options, &array), 0);
	for (unsigned i = 0; i < TIMES; i++) {
		assert_int_equal(
			weir_writer_open(cache, pair, 2,
					 WEIR_OPTIONS(array, .element_bytes = 8, .stripe_bytes = 4096),
					 &writer),
			-EBUSY);
		assert_int_equal(weir_array_open(cache, &endless, 1, options, &array), -ERANGE);
		if (i == 3) {
			bytes = bytes_of(real);
			heap = test_has().heap_bytes;
		}
	}
	assert_int_equal(bytes_of(real), bytes);
	if (TEST_COUNTS_MEMORY)
		assert_true(test_has().heap_bytes < heap + SLACK);
	assert_int_equal(weir_context_close(real), 0);
}

/* What a cache is asked for over and over takes memory while it is done, and none afterwards. */
static void test_calls_leave_nothing(void **state)
{
	enum { TIMES = 24 };
	struct weir_cache_stats stats = { .size = sizeof(stats) };
	struct weir_storage *storage;
	struct weir_context *real;
	struct weir_writer writer;
	struct weir_cache *cache;
	unsigned char block[512] = { 0 };
	uint64_t bytes = 0;

	(void)state;
	assert_int_equal(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 2), &real), 0);
	assert_int_equal(weir_cache_create(real, WEIR_OPTIONS(cache, .lines = 8, .line_bytes = 512), &cache),
			 0);
	assert_int_equal(weir_storage_open(real, "virt:64K?block=512", NULL, &storage), 0);
	assert_int_equal(
		weir_writer_open(cache, &storage, 1, WEIR_OPTIONS(array, .element_bytes = 8), &writer), 0);
	for (unsigned i = 0; i < TIMES; i++) {
		assert_int_equal(weir_storage_write(storage, 0, block, sizeof(block)), 0);
		assert_int_equal(weir_storage_read(storage, 0, block, sizeof(block)), 0);
		assert_int_equal(weir_storage_flush(storage), 0);
		assert_int_equal(weir_cache_flush(cache, 1), 0);
		assert_int_equal(weir_array_flush(cache, &writer.array, 0, 64, 1), 0);
		assert_int_equal(weir_array_invalidate(cache, &writer.array, 0, 64), 0);
		assert_int_equal(weir_cache_stats(cache, &stats), 0);
		assert_int_equal(weir_share_create(cache, NULL), 0);
		assert_int_equal(weir_share_destroy(cache), 0);
		assert_int_equal(weir_sync(real), 0);
		bytes = i < 3 ? bytes_of(real) : bytes;
		assert_int_equal(bytes_of(real), bytes);
	}
	assert_int_equal(weir_context_close(real), 0);
}

static unsigned mapped;

static int map(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes, void *host)
{
	(void)mapper;
	(void)address;
	(void)bytes;
	(void)host;
	mapped++;
	return 0;
}

static void unmap(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes)
{
	(void)mapper;
	(void)address;
	(void)bytes;
	mapped--;
}

/* A controller that is to reach no other device's memory reaches none of it, what a context begins with
 * included. */
static void test_another_devices_memory(void **state)
{
	struct weir_dma_mapper mapper = { .map = map, .unmap = unmap };
	char path[] = "/tmp/weir_memory_XXXXXX", name[64];
	struct weir_context *real;
	uint64_t address;
	void *host;
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0 && ftruncate(file, 1 << 20) == 0);
	close(file);
	snprintf(name, sizeof(name), "cpu:memory=%s", path);
	assert_int_equal(weir_context_open(name, NULL, &real), 0);
	assert_int_equal(weir_dma_map_follow(real->dma, &mapper), 0);
	assert_int_equal(mapped, 0);
	assert_int_equal(weir_alloc(real, 4096, &address), 0);
	assert_int_equal(mapped, 0);
	assert_int_equal(weir_alloc_host(real, 4096, &address, &host), 0);
	assert_int_equal(mapped, 1);
	weir_dma_map_unfollow(real->dma, &mapper);
	assert_int_equal(mapped, 0);
	assert_int_equal(weir_context_close(real), 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte_of_the_data_counts),
		cmocka_unit_test(test_events_count),
		cmocka_unit_test(test_every_slot_is_visited),
		cmocka_unit_test(test_copies_stay_inside),
		cmocka_unit_test(test_all_is_given_back),
		cmocka_unit_test(test_refused_arrays_leave_nothing),
		cmocka_unit_test(test_calls_leave_nothing),
		cmocka_unit_test(test_another_devices_memory),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
