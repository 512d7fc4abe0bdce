/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fetch_state_test.c: what a lane that brings a line, or writes one back, makes of a queue pair with room, of
 * a full one, and of a dead one: step by step, by this thread as the lane, on a cache of one set and a queue
 * pair in ordinary memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/async.h>

enum { KEY = 7, LINE = 3, WAY = 2, LINE_BYTES = 4096, LINE_BLOCKS = 8, DEPTH = 4, VERSION = 9 };

/** struct rig - a cache of one set, whose other lines are pinned, and a storage that nobody serves */
static struct rig {
	struct weir_set set;
	struct weir_set_policy policy;
	struct weir_lines lines;
	struct weir_extent extent;
	struct weir_disk disk;
	struct weir_queue queue;
	struct weir_slot slots[DEPTH];
	struct nvme_sqe sq[DEPTH];
	struct nvme_cqe cq[DEPTH];
	uint32_t doorbells[2];
	struct weir_fault fault;
	unsigned char data[WEIR_WAYS * LINE_BYTES] __attribute__((aligned(LINE_BYTES)));
} rig __attribute__((aligned(4096)));

/* What the queue pair of the storage is. */
enum { ROOM, FULL, DEAD, QUEUES };

static void open_queue(uint32_t kind)
{
	rig.queue = (struct weir_queue){ .sq = WEIR_ADDR(rig.sq),
					 .cq = WEIR_ADDR(rig.cq),
					 .slots = WEIR_ADDR(rig.slots),
					 .sq_doorbell = WEIR_ADDR(&rig.doorbells[0]),
					 .cq_doorbell = WEIR_ADDR(&rig.doorbells[1]),
					 .depth = DEPTH,
					 .depth_log2 = 2,
					 .block_log2 = 9 };
	weir_store_u32_relaxed_dev(&rig.slots[0].sequence, kind == FULL); /* another's command */
	weir_store_u32_relaxed_sys(&rig.queue.dead,
				   kind == DEAD ? WEIR_E_DEVICE_DEAD | WEIR_QUEUE_UNSAFE : 0);
}

/* Line LINE of the extent is in way WAY, in @state and with @pins; or nothing is. */
static void open_rig(uint32_t kind, uint32_t state, uint64_t pins)
{
	memset(&rig, 0, sizeof(rig));
	open_queue(kind);
	rig.disk = (struct weir_disk){ .queues = WEIR_ADDR(&rig.queue),
				       .queue_count = 1,
				       .block_log2 = 9,
				       .blocks = 1000,
				       .max_blocks = 64,
				       .timeout_ns = 1000000000 };
	rig.extent = (struct weir_extent){
		.disks = WEIR_ADDR(&rig.disk), .disk_count = 1, .key_base = KEY, .lines = 100
	};
	rig.lines = (struct weir_lines){ .line_log2 = 12,
					 .sets = 1,
					 .set_magic = ~(uint64_t)0,
					 .words = WEIR_ADDR(&rig.set),
					 .policies = WEIR_ADDR(&rig.policy),
					 .data = WEIR_ADDR(rig.data),
					 .fault = WEIR_ADDR(&rig.fault) };
	weir_store_u64_relaxed_dev(&rig.lines.extents, WEIR_ADDR(&rig.extent));
	weir_store_u32_relaxed_dev(&rig.lines.extent_count, 1);
	for (uint32_t way = 0; way < WEIR_WAYS; way++)
		weir_store_u64_relaxed_dev(&rig.set.word[way],
					   (uint64_t)(KEY + 50 + way) << WEIR_LINE_KEY_SHIFT | WEIR_LINE_PIN |
						   WEIR_LINE_READY);
	weir_store_u64_relaxed_dev(
		&rig.set.word[WAY],
		(state == WEIR_LINE_INVALID ? 0 : (uint64_t)(KEY + LINE) << WEIR_LINE_KEY_SHIFT) |
			VERSION * WEIR_LINE_VERSION | pins * WEIR_LINE_PIN | state);
}

/* The line is in @state, with @pins; or the way is empty, and keeps its version. */
static void expect_line(uint32_t state, uint64_t pins)
{
	uint64_t word = weir_load_u64_relaxed_dev(&rig.set.word[WAY]),
		 key = state == WEIR_LINE_INVALID ? 0 : KEY + LINE;

	assert_int_equal(weir_line_state(word), state);
	assert_true(weir_line_key(word) == key);
	assert_true((word & WEIR_LINE_PINS) == pins * WEIR_LINE_PIN);
}

static uint32_t status_word(void)
{
	return weir_load_u32_relaxed_dev(&rig.policy.status[WAY]);
}

static uint64_t submitted(void)
{
	return weir_load_u64_relaxed_dev(&rig.queue.tail);
}

/* The one command: the line's blocks, between its storage and its place, told to its word. */
static void expect_command(uint32_t opcode)
{
	assert_int_equal(submitted(), 1);
	assert_int_equal(rig.doorbells[0], 1);
	assert_int_equal(rig.sq[0].cdw0 & 0xff, opcode);
	assert_int_equal(rig.sq[0].cdw10, LINE * LINE_BLOCKS);
	assert_int_equal(rig.sq[0].cdw12, LINE_BLOCKS - 1);
	assert_true(rig.sq[0].prp1 == WEIR_ADDR(&rig.data[WAY * LINE_BYTES]));
	assert_int_equal(rig.slots[0].target_kind,
			 opcode == NVME_OPCODE_READ ? WEIR_TARGET_LINE : WEIR_TARGET_WRITTEN);
	assert_true(rig.slots[0].target == WEIR_ADDR(&rig.set.word[WAY]));
	assert_true(rig.slots[0].status == WEIR_ADDR(&rig.policy.status[WAY]));
}

static struct weir_fetch fetch_none(void)
{
	struct weir_fetch fetch;

	memset(&fetch, 0, sizeof(fetch));
	fetch.mine = WEIR_WAYS;
	return fetch;
}

static struct weir_fetch send(struct weir_fetch fetch)
{
	return weir_fetch_send(fetch, 1, &rig.lines, &rig.extent, KEY + LINE, 0);
}

/* A claim's command goes as soon as there is a slot; one that has waited some iterations for it is taken
 * back, and its line is nobody's. */
static void test_a_claim_waits_for_a_slot(void **state)
{
	(void)state;
	for (uint32_t waits = 0; waits <= WEIR_UNSENT_ITERATIONS; waits++) {
		struct weir_fetch fetch = fetch_none();

		open_rig(FULL, WEIR_LINE_BUSY, 1);
		weir_store_u64_relaxed_dev(&rig.lines.misses, 1);
		fetch.mine = WAY;
		fetch.unsent = 1;
		for (uint32_t i = 0; i < waits; i++)
			fetch = send(fetch);
		if (waits == WEIR_UNSENT_ITERATIONS) {
			assert_int_equal(fetch.mine, WEIR_WAYS);
			assert_int_equal(fetch.unsent, 0);
			expect_line(WEIR_LINE_INVALID, 0);
			assert_int_equal(weir_load_u64_relaxed_dev(&rig.lines.misses), 0);
			assert_int_equal(weir_load_u64_relaxed_dev(&rig.lines.retracted), 1);
			continue;
		}
		assert_int_equal(fetch.unsent, waits + 1);
		expect_line(WEIR_LINE_BUSY, 1);
		assert_int_equal(submitted(), 0);
		open_queue(ROOM);
		fetch = send(fetch);
		assert_int_equal(fetch.unsent, 0);
		assert_int_equal(fetch.mine, WAY);
		expect_command(NVME_OPCODE_READ);
		expect_line(WEIR_LINE_BUSY, 1);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.lines.misses), 1);
	}
}

/* Two ways to write a line back: a lane that wants its place, and a flush. */
static uint32_t write_back(uint32_t flushes, uint32_t begun)
{
	struct weir_fetch fetch = fetch_none();
	struct weir_sweeper lane;

	if (flushes) {
		memset(&lane, 0, sizeof(lane));
		lane.key = KEY + LINE;
		lane.way = WAY;
		lane.unsent = begun + 1;
		return weir_sweep_send(lane, 1, &rig.lines, &rig.extent, LINE, 0, 0).unsent;
	}
	fetch.writing = WAY + 1 + 8 * begun;
	return send(fetch).writing;
}

static void begin_write_back(uint32_t kind)
{
	open_rig(kind, WEIR_LINE_MODIFIED, 0);
	assert_int_equal(
		weir_line_try_write_back(&rig.lines, 0, WAY, weir_load_u64_relaxed_dev(&rig.set.word[WAY])),
		1);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig.lines.writebacks), 1);
}

/* The same of a write-back: taken back, it has not been, and the line is as dirty as before. */
static void test_a_write_back_waits_for_a_slot(void **state)
{
	(void)state;
	for (uint32_t flushes = 0; flushes < 2; flushes++)
		for (uint32_t begun = 0; begun < WEIR_UNSENT_ITERATIONS + 1u; begun++) {
			uint32_t last = begun + 1 > WEIR_UNSENT_ITERATIONS ||
					(flushes && begun + 2 > WEIR_UNSENT_ITERATIONS);

			begin_write_back(ROOM);
			assert_int_equal(write_back(flushes, begun), 0);
			expect_command(NVME_OPCODE_WRITE);
			expect_line(WEIR_LINE_WRITING, 0);
			begin_write_back(FULL);
			assert_int_equal(write_back(flushes, begun) == 0, last);
			assert_int_equal(submitted(), 0);
			expect_line(last ? WEIR_LINE_MODIFIED : WEIR_LINE_WRITING, 0);
			assert_int_equal(status_word(), last ? WEIR_STATUS_UNSENT : WEIR_OK);
			assert_int_equal(weir_load_u64_relaxed_dev(&rig.lines.writebacks), !last);
		}
}

/* A dead storage that never ends its commands gets none: the write-back has failed, with why. */
static void test_nothing_is_written_back_to_a_dead_storage(void **state)
{
	(void)state;
	begin_write_back(DEAD);
	assert_int_equal(write_back(0, 0), 0);
	assert_int_equal(submitted(), 0);
	expect_line(WEIR_LINE_MODIFIED, 0);
	assert_int_equal(status_word(), WEIR_E_DEVICE_DEAD);
}

/* Who gives up keeps no pin and no claim, and leaves no write-back that nobody submits; a command that is
 * under way still ends. */
static void test_who_gives_up_keeps_nothing(void **state)
{
	struct weir_sweep sweep = { .first_key = KEY, .end_key = KEY + 100, .kind = WEIR_SWEEP_FLUSH };
	struct weir_sweeper lane;
	struct weir_fetch fetch;

	(void)state;
	for (uint32_t unsent = 0; unsent < 2; unsent++) {
		open_rig(ROOM, WEIR_LINE_BUSY, 1);
		fetch = fetch_none();
		fetch.mine = WAY;
		fetch.unsent = unsent;
		fetch = weir_fetch_give_up(fetch, &rig.lines, 0, WEIR_E_TIMEOUT);
		assert_true(fetch.done && fetch.words.status == WEIR_E_TIMEOUT);
		assert_true(fetch.mine == WEIR_WAYS && !fetch.unsent && !fetch.writing);
		expect_line(unsent ? WEIR_LINE_INVALID : WEIR_LINE_BUSY, 0);
	}
	begin_write_back(ROOM);
	fetch = fetch_none();
	fetch.writing = WAY + 1;
	fetch = weir_fetch_give_up(fetch, &rig.lines, 0, WEIR_E_TIMEOUT);
	assert_int_equal(fetch.writing, 0);
	expect_line(WEIR_LINE_MODIFIED, 0);
	assert_int_equal(status_word(), WEIR_STATUS_UNSENT);
	begin_write_back(ROOM);
	lane = weir_sweep_begin(sweep);
	lane.key = KEY + LINE;
	lane.way = WAY;
	lane.unsent = 1;
	lane = weir_sweep_give_up(lane, &rig.lines, sweep, 0, WEIR_E_TIMEOUT);
	assert_true(lane.key == 0 && !lane.unsent && lane.result.status == WEIR_E_TIMEOUT);
	expect_line(WEIR_LINE_MODIFIED, 0);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig.lines.writebacks), 0);
}

/* Lines that come from storage count as misses; not those that are overwritten, or come from a tier. */
static void test_what_counts_as_a_miss(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < 3; kind++) {
		struct weir_reservation reservation = weir_reservation_none();
		struct weir_fetch fetch;

		open_rig(ROOM, WEIR_LINE_BUSY, 1);
		reservation.way = WAY;
		reservation.up = kind == 1 ? 4096 : 0;
		fetch = weir_fetch_reserved(fetch_none(), &rig.lines, 0, reservation, kind == 2,
					    WEIR_FOREVER);
		assert_int_equal(fetch.mine, WAY);
		assert_int_equal(fetch.unsent, kind == 0);
		assert_int_equal(fetch.there, kind == 2);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.lines.misses), kind == 0);
	}
}

/* A prefetch has a command under way and no pin on its line; without a slot there is neither. */
static void test_a_prefetch_holds_nothing(void **state)
{
	(void)state;
	for (uint32_t kind = ROOM; kind <= FULL; kind++) {
		struct weir_array array;

		open_rig(kind, WEIR_LINE_INVALID, 0);
		array = (struct weir_array){ .lines = WEIR_ADDR(&rig.lines), .extent = rig.extent };
		assert_int_equal(weir_prefetch_try(1, 1, &array, LINE), kind == ROOM);
		expect_line(kind == ROOM ? WEIR_LINE_BUSY : WEIR_LINE_INVALID, 0);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.lines.misses), kind == ROOM);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.lines.retracted), kind == FULL);
		assert_int_equal(weir_load_u32_relaxed_dev(&rig.policy.lock), 0);
		if (kind == ROOM)
			expect_command(NVME_OPCODE_READ);
		else
			assert_int_equal(submitted(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_claim_waits_for_a_slot),
		cmocka_unit_test(test_a_write_back_waits_for_a_slot),
		cmocka_unit_test(test_nothing_is_written_back_to_a_dead_storage),
		cmocka_unit_test(test_who_gives_up_keeps_nothing),
		cmocka_unit_test(test_what_counts_as_a_miss),
		cmocka_unit_test(test_a_prefetch_holds_nothing),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("fetch_state", tests, NULL, NULL);
}
