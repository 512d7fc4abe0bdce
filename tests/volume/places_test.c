/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * places_test.c: what one lane of a volume decides by itself: to which engine a command goes and by which
 * map, when a write to several of them is over, and which buffers of a pool it is given. This thread is the
 * lane, and all of it lies in ordinary memory, which nobody serves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/core/volume/allocator.h>
#include <weir/disk.h>

enum { ENGINES = 2, JOINS = 4, SHIFT = 12, WORDS = WEIR_PLACED_GROUPS >> SHIFT, DEPTH = 4, UNIT_LOG2 = 3 };

/** struct volume - as lanes see it: engines and a controller of one queue pair each, and two small tables */
static struct volume {
	struct weir_queue engines[ENGINES];
	struct weir_queue forwarder;
	struct weir_placed placed;
	struct weir_write_join joins[JOINS];
	struct weir_slot slots[DEPTH];
	struct weir_disk disk;
	uint32_t tables[2 * WORDS];
} volume __attribute__((aligned(128)));

static void open_volume(void)
{
	memset(&volume, 0, sizeof(volume));
	volume.placed = (struct weir_placed){ .queues = WEIR_ADDR(volume.engines),
					      .forwarder = WEIR_ADDR(&volume.forwarder),
					      .tables = WEIR_ADDR(volume.tables),
					      .joins = WEIR_ADDR(volume.joins),
					      .engines = ENGINES,
					      .queues_each = 1,
					      .forwarder_count = 1,
					      .join_count = JOINS,
					      .tag = 5 << 16,
					      .unit_log2 = UNIT_LOG2,
					      .replicas = 1,
					      .group_shift = SHIFT };
	for (unsigned i = 0; i < ENGINES; i++) {
		volume.engines[i].slots = WEIR_ADDR(volume.slots);
		volume.engines[i].depth = DEPTH;
		volume.engines[i].depth_log2 = 2;
		volume.engines[i].placed = WEIR_QUEUE_ENGINE;
		volume.engines[i].volume = WEIR_ADDR(&volume.placed);
	}
	volume.forwarder.placed = WEIR_QUEUE_FORWARDER;
	volume.forwarder.volume = WEIR_ADDR(&volume.placed);
	volume.disk.queues = WEIR_ADDR(&volume.forwarder);
	volume.disk.queue_count = 1;
	volume.disk.flags = WEIR_DISK_PLACED;
}

/* A block's engines come from the table of the map that lanes go by, with that map's epoch; none while there
 * is no map, or one that an engine has refused. */
static void test_a_block_goes_by_the_newest_map(void **state)
{
	static const uint64_t blocks[] = { 0, 7, 8, 12345678, 0xfffffff8 };
	uint32_t groups = 0;

	(void)state;
	open_volume();
	for (uint32_t i = 0; i < 2 * WORDS; i++)
		volume.tables[i] = 0xabc00 + i;
	for (uint32_t second = 0; second < 2; second++)
		for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
			uint32_t epoch = 0xfffffff0 + second,
				 group = weir_placement_group(5, blocks[i], UNIT_LOG2);
			uint64_t map =
				(uint64_t)epoch << 32 | WEIR_PLACED_VALID | (second ? WEIR_PLACED_SECOND : 0);
			struct weir_place_map found;

			groups |= 1u << (group >> SHIFT);
			weir_store_u64_relaxed_dev(&volume.placed.map, map);
			weir_store_u32_relaxed_dev(&volume.placed.stale, epoch - 1);
			found = weir_place_engines(&volume.placed, blocks[i]);
			assert_int_equal(found.engines, 0xabc00 + second * WORDS + (group >> SHIFT));
			assert_int_equal(found.epoch, epoch);
			assert_true(found.known);
			weir_store_u32_relaxed_dev(&volume.placed.stale, epoch);
			assert_false(weir_place_engines(&volume.placed, blocks[i]).known);
			weir_store_u32_relaxed_dev(&volume.placed.stale, 0);
			weir_store_u64_relaxed_dev(&volume.placed.map, map & ~WEIR_PLACED_VALID);
			assert_false(weir_place_engines(&volume.placed, blocks[i]).known);
		}
	assert_true(groups & (groups - 1)); /* not of one word alone */
}

/* What lies in one stripe unit goes to its engine, up to the unit's last block; all else goes to the host. */
static void test_what_lanes_place(void **state)
{
	static const struct {
		uint32_t opcode, blocks, second_try, placed;
		uint64_t lba;
	} commands[] = {
		{ NVME_OPCODE_READ, 1, 0, 1, 0 },  { NVME_OPCODE_READ, 8, 0, 1, 8 },
		{ NVME_OPCODE_READ, 1, 0, 1, 15 }, { NVME_OPCODE_READ, 3, 0, 1, 0xfffffffd },
		{ NVME_OPCODE_WRITE, 2, 0, 1, 6 }, { NVME_OPCODE_READ, 2, 0, 0, 7 },
		{ NVME_OPCODE_READ, 9, 0, 0, 8 },  { NVME_OPCODE_WRITE, 8, 0, 0, 9 },
		{ NVME_OPCODE_READ, 1, 1, 0, 0 },  { NVME_OPCODE_FLUSH, 0, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(commands) / sizeof(*commands); i++) {
		uint32_t closed = i % 2, placed = !closed && commands[i / 2].placed;
		struct weir_event event;
		struct weir_request request = weir_block_request(commands[i / 2].opcode, commands[i / 2].lba,
								 commands[i / 2].blocks, 0, &event);
		struct weir_place place;

		open_volume();
		memset(volume.tables, 0xff, sizeof(volume.tables));
		for (uint32_t k = 0; k < WORDS; k++)
			volume.tables[k] = 0xffffff01;
		weir_store_u64_relaxed_dev(&volume.placed.map, (uint64_t)9 << 32 | WEIR_PLACED_VALID);
		weir_store_u32_relaxed_dev(&volume.placed.lease, 4);
		volume.forwarder.volume = closed ? 0 : volume.forwarder.volume;
		request.status = commands[i / 2].second_try;
		place = weir_place(&volume.disk, request);
		assert_true(place.queue ==
			    (placed ? WEIR_ADDR(&volume.engines[1]) : WEIR_ADDR(&volume.forwarder)));
		assert_true(place.lba == (commands[i / 2].lba | (placed ? (uint64_t)9 << 32 : 0)));
		assert_true(place.join == 0);
	}
}

/* The engines @failed of @count answer, and the @writer-th of all is the writer's own: how it ends, once. */
static void check_answers(uint32_t count, uint32_t failed, uint32_t writer)
{
	weir_addr address = weir_join_try(&volume.placed, 3, count);
	struct weir_write_join *join = weir_at(address, struct weir_write_join, 0);
	weir_status error = weir_capsule_path_error();
	uint32_t engine = 0;

	assert_true(address != 0);
	weir_store_u32_relaxed_dev(&join->status, WEIR_OK);
	join->kind = WEIR_TARGET_EVENT;
	join->target = 4096;
	join->target_status = 8192;
	for (uint32_t i = 0; i <= count; i++) {
		weir_status status = i == writer              ? (uint32_t)WEIR_OK
				     : failed >> engine++ & 1 ? error
							      : (uint32_t)WEIR_OK;
		struct weir_answer answer = weir_join_leave(join, status);

		if (i < count) {
			assert_int_equal(answer.kind, WEIR_TARGET_NONE);
			assert_true(weir_load_u32_relaxed_dev(&join->left) != 0);
			continue;
		}
		assert_int_equal(answer.kind, WEIR_TARGET_EVENT);
		assert_int_equal(answer.status, failed ? error : (uint32_t)WEIR_OK);
		assert_true(answer.target == 4096 && answer.target_status == 8192);
	}
	assert_int_equal(weir_load_u32_relaxed_dev(&join->left), 0);
}

/* A write to several engines ends with the last answer, whichever that is, and with an error if one of them
 * had one, whatever the others say later. */
static void test_answers_come_together(void **state)
{
	(void)state;
	open_volume();
	for (uint32_t count = 1; count <= 4; count++)
		for (uint32_t failed = 0; failed < 1u << count; failed++)
			for (uint32_t writer = 0; writer <= count; writer++)
				check_answers(count, failed, writer);
	for (uint32_t i = 0; i < JOINS; i++) /* each of them once, wherever one begins to look */
		assert_true(weir_join_try(&volume.placed, 3, 2) == WEIR_ADDR(&volume.joins[(3 + i) % JOINS]));
	assert_true(weir_join_try(&volume.placed, 0, 2) == 0);
}

enum { PAGE = 1 << WEIR_POOL_PAGE_LOG2, MIB = 1 << 20, PAGES = 64 * WEIR_POOL_CHUNK_PAGES };
enum { BITMAPS = PAGES / 64 + PAGES / 1024 + 1, GUARD = 7 };

/** struct region - the words of 64 MiB, which are not there, and of what lies behind the lengths */
static struct region {
	uint64_t words[BITMAPS];
	uint32_t lengths[PAGES + 1];
} regions[2];

static struct weir_pool pool;
static uint64_t wished;

/* Two regions, one behind the other, of which @count are free. */
static void open_pool(unsigned count)
{
	memset(&pool, 0, sizeof(pool));
	memset(regions, 0, sizeof(regions));
	wished = 0;
	pool.wanted = WEIR_ADDR(&wished);
	weir_store_u32_relaxed_sys(&pool.region_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		pool.regions[i] = (struct weir_pool_region){ .data = (i + 1) * (uint64_t)PAGES * PAGE,
							     .words = WEIR_ADDR(regions[i].words),
							     .lengths = WEIR_ADDR(regions[i].lengths),
							     .pages = PAGES };
		regions[i].lengths[PAGES] = GUARD;
		regions[i].words[BITMAPS - 1] = i < count ? ~(uint64_t)0 : 0;
		weir_store_u32_relaxed_dev(&pool.regions[i].free[WEIR_POOL_TOP], i < count ? 64 : 0);
	}
}

/* A pool gives all of a region to who wants that much, and takes it back; an address behind a region is the
 * next one's, or nobody's. */
static void test_a_pool_up_to_its_ends(void **state)
{
	uint64_t all = (uint64_t)PAGES * PAGE, second = 2 * all;

	(void)state;
	open_pool(2);
	assert_true(weir_pool_try_take(&pool, all + 1) == 0);
	assert_true(weir_pool_try_take(&pool, all) == all);
	assert_true(weir_pool_try_take(&pool, all) == second);
	assert_true(weir_pool_try_take(&pool, 1) == 0);
	assert_int_equal(weir_pool_free(&pool, second + all), WEIR_E_POOL);
	assert_int_equal(weir_pool_free(&pool, all - PAGE), WEIR_E_POOL);
	assert_int_equal(weir_pool_free(&pool, second), WEIR_OK);
	assert_int_equal(weir_pool_free(&pool, second), WEIR_E_POOL);
	assert_int_equal(weir_pool_free(&pool, all), WEIR_OK);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(regions[i].words[BITMAPS - 1] == ~(uint64_t)0);
		assert_int_equal(weir_load_u32_relaxed_dev(&pool.regions[i].free[WEIR_POOL_TOP]), 64);
		assert_int_equal(regions[i].lengths[PAGES], GUARD);
	}
}

/* Who gets nothing has waited as long as it said, and the host knows of the greatest wish. */
static void test_a_pool_that_is_empty(void **state)
{
	static const uint64_t timeouts[] = { 0, 1, 20000 };
	static const uint64_t wishes[] = { 2 * PAGE, PAGE, MIB };
	uint64_t most = 0;

	(void)state;
	open_pool(0);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t before = weir_clock_ns();

		assert_true(weir_pool_take(&pool, wishes[i], timeouts[i]) == 0);
		assert_true(weir_clock_ns() - before >= timeouts[i] * 1000);
		most = wishes[i] > most ? wishes[i] : most;
		assert_true(wished == most);
		assert_int_equal(weir_load_u64_relaxed_dev(&pool.refused), i + 1);
	}
	assert_true(weir_pool_take(&pool, 0, WEIR_FOREVER) == 0); /* it wants nothing */
	assert_int_equal(weir_load_u64_relaxed_dev(&pool.refused), 3);
	pool.wanted = 0; /* nobody listens */
	assert_true(weir_pool_take(&pool, PAGE, 0) == 0);
	assert_true(wished == most);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_block_goes_by_the_newest_map),
		cmocka_unit_test(test_what_lanes_place),
		cmocka_unit_test(test_answers_come_together),
		cmocka_unit_test(test_a_pool_up_to_its_ends),
		cmocka_unit_test(test_a_pool_that_is_empty),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
