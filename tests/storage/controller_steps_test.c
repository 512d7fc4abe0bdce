/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controller_steps_test.c: what one lane of a controller on the device reckons by itself: when a command is
 * due, how many may be fetched, which blocks they name, where their data lies, which rows of a fault table
 * match them, which queues are its wave's, how long it rests. This thread is the lane.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device_controller.h"

enum { IOPS = 1000000, TICKS = 1 << WEIR_CONTROLLER_TICKS_LOG2 };

static weir_shared_u64 rate;

/* A command is due after the latency or at its turn, whichever is later, and no later than that. */
static void test_due(void **state)
{
	struct weir_controller_args args = { .rate = WEIR_ADDR(&rate), .iops = IOPS, .latency_ns = 5000 };
	uint64_t now = (uint64_t)1 << 50;

	(void)state;
	weir_store_u64_relaxed_dev(&rate, 0);
	assert_true(weir_controller_due(&args, 1, now, 3) == now + 5000);
	assert_true(weir_controller_due(&args, 1, now, 8) == now + 5000); /* its turn is in 3 us */
	assert_true(weir_controller_due(&args, 1, now, 1) == now + 11000);
	assert_true(weir_controller_due(&args, 1, now + 10000, 1) == now + 15000);
	args.iops = 0;
	assert_true(weir_controller_due(&args, 1, now, 100) == now + 5000);
	args.latency_ns = 5000000000; /* more than 32 bits */
	assert_true(weir_controller_due(&args, 1, now, 100) == now + 5000000000);
	assert_true(weir_load_u64_relaxed_dev(&rate) == (now + 13000) * TICKS);
}

/* Rounded up: the rate is never exceeded. */
static void test_cost(void **state)
{
	static const uint64_t rates[] = { 1, 3, 7, 999999, 1000000, 3000000, 2000000000, 63999999999u };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct weir_controller_args args = { .iops = rates[i] };

		for (uint64_t count = 1; count < 70; count++) {
			uint64_t ticks = weir_controller_cost(&args, count),
				 time = count * 1000000000u * TICKS;

			assert_true(ticks * rates[i] >= time && (ticks - 1) * rates[i] < time);
		}
	}
}

/* As many as there are turns of the next 200 us; none if those are taken. */
static void test_quota(void **state)
{
	struct weir_controller_args args = { .rate = WEIR_ADDR(&rate) };
	struct weir_controller_view view = { .queue = NULL };
	uint64_t clock;

	(void)state;
	assert_int_equal(weir_controller_quota(&args, view), ~0u);
	args.iops = IOPS;
	weir_store_u64_relaxed_dev(&rate, 0);
	assert_int_equal(weir_controller_quota(&args, view), WEIR_CONTROLLER_AHEAD_NS / 1000 + 1);
	args.iops = (uint64_t)64 * 1000000000; /* a tick each */
	assert_int_equal(weir_controller_quota(&args, view), WEIR_CONTROLLER_AHEAD_NS * TICKS + 1);
	clock = weir_clock_ns() + 3600u * (uint64_t)1000000000;
	weir_store_u64_relaxed_dev(&rate, clock * TICKS);
	assert_int_equal(weir_controller_quota(&args, view), 0);
}

/* Each queue is some wave's, and none is a wave's that is not there. */
static void test_queues_of_waves(void **state)
{
	(void)state;
	for (uint32_t queues = 1; queues < 9; queues++)
		for (uint32_t waves = 1; waves < 12; waves++) {
			struct weir_controller_args args = { .queues = 4096, .queue_count = queues };
			uint32_t served = 0;

			for (uint32_t wave = 0; wave < waves; wave++) {
				struct weir_controller_beat beat = weir_controller_beat(&args, wave, waves);

				assert_true(beat.count > 0);
				for (uint32_t i = 0; i < beat.count; i++) {
					uint64_t at = beat.first + (uint64_t)i * beat.step - args.queues;
					uint64_t queue = at / sizeof(struct weir_controller_queue);

					assert_int_equal(at % sizeof(struct weir_controller_queue), 0);
					assert_true(queue < queues);
					served |= 1u << queue;
				}
			}
			assert_int_equal(served, (1u << queues) - 1);
		}
}

/* A wave that finds nothing rests longer each time, up to its limit; one that found something not at all. */
static void test_rests(void **state)
{
	struct weir_controller_args args = { .rest = 5 };
	static const uint32_t idle[] = { 1, 3, 5, 5 };
	uint32_t now = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(idle) / sizeof(*idle); i++)
		assert_int_equal(now = weir_controller_rest(&args, now, 0), idle[i]);
	assert_int_equal(weir_controller_rest(&args, now, 1), 0);
	args.rest = 0;
	assert_int_equal(weir_controller_rest(&args, 0, 0), 0);
}

/* What may be fetched: what is announced, as far as its completions have room, and a share of that. */
static void test_pieces(void **state)
{
	struct weir_controller_view view = { .depth_log2 = 3, .claim = 64 };

	(void)state;
	assert_int_equal(weir_controller_ready(view, 0, 0, 0), 0);
	assert_int_equal(weir_controller_ready(view, 0, 7, 0), 7);
	assert_int_equal(weir_controller_ready(view, 5, 2, 0), 2); /* five are unread: two have room */
	assert_int_equal(weir_controller_ready(view, 5, 2, 5), 5);
	assert_int_equal(weir_controller_ready(view, 0xfffffffe, 3, 6), 5); /* the head comes round */
	assert_int_equal(weir_controller_ready(view, (uint64_t)2 << 32 | 5, 2, 5),
			 5); /* of two more entries */
	assert_int_equal(weir_controller_ready(view, (uint64_t)2 << 32 | 5, 2, 1), 1);
	assert_int_equal(weir_controller_piece(view, 5), 1); /* a lane's wave has one */
	assert_int_equal(weir_controller_dw2(view, 13), 5);
	view.id = 3;
	assert_int_equal(weir_controller_dw2(view, 8), 3 << 16);
	assert_int_equal(weir_controller_phased(view, 7, 9), 9 | 1 << 16);
	assert_int_equal(weir_controller_phased(view, 8, 9), 9);
	assert_int_equal(weir_controller_phased(view, 16, 9), 9 | 1 << 16);
}

/* Times of rows are of 32 bits in microseconds: in nanoseconds they are not. */
static void test_long_times(void **state)
{
	struct weir_fault_row rows[] = { { .kind = WEIR_VIRTUAL_FAULT_LATE, .us = ~0u },
					 { .kind = WEIR_VIRTUAL_FAULT_STALL, .us = ~0u } };
	struct weir_controller_args args = { .faults = WEIR_ADDR(rows), .fault_count = 2 };
	struct weir_controller_later later = { .entries = 0 };
	struct weir_controller_queue queue = { .later = WEIR_ADDR(&later) };
	struct weir_controller_view view = { .queue = &queue };
	struct weir_controller_entry entry = { .kinds = 1u << WEIR_VIRTUAL_FAULT_LATE };
	struct weir_controller_matched stalls = { .rows = (uint64_t)1 << (6 * WEIR_VIRTUAL_FAULT_STALL),
						  .kinds = 1u << WEIR_VIRTUAL_FAULT_STALL };
	uint64_t longest = (uint64_t)~0u * 1000, now = weir_clock_ns();

	(void)state;
	assert_int_equal(weir_controller_fate(&args, &entry, 5), WEIR_CONTROLLER_WAITING);
	assert_true(weir_load_u64_relaxed_sys(&entry.due_ns) == longest + 5);
	assert_int_equal(weir_controller_fate(&args, &entry, longest + 5), WEIR_CONTROLLER_GONE);
	assert_int_equal(weir_controller_inject(&args, view, stalls, 3, now), 3);
	assert_true(weir_load_u64_relaxed_sys(&later.resume_ns) == longest + now);
	assert_int_equal(weir_controller_quota(&args, view), 0);
	weir_store_u64_relaxed_sys(&later.resume_ns, now);
	assert_int_equal(weir_controller_quota(&args, view), ~0u);
	for (uint32_t id = 1; id < 5; id++) /* a queue that is there, as far as one is */
		assert_int_equal(weir_controller_other(id), id == 1 ? 2 : id - 1);
}

enum { BLOCK = 512, MEDIUM_BLOCKS = 4 };

/* Block @FAR of a medium of which the last blocks are here. */
#define FAR (((uint64_t)1 << 33) + 3)

/* What is written to a block far behind is there, and is read from there; nothing beside it is touched. */
static void test_data_far_behind(void **state)
{
	static unsigned char medium[MEDIUM_BLOCKS * BLOCK] __attribute__((aligned(BLOCK))),
		buffer[2 * BLOCK] __attribute__((aligned(2 * BLOCK)));
	struct weir_controller_view view = { .block_log2 = 9, .medium = WEIR_ADDR(medium) - FAR * BLOCK };
	struct weir_controller_command command = {
		.prp1 = WEIR_ADDR(buffer), .lba = FAR + 1, .bytes = sizeof(buffer), .cdw0 = NVME_OPCODE_WRITE
	};

	(void)state;
	memset(buffer, 0x77, sizeof(buffer));
	weir_controller_move(view, 1, command);
	for (size_t i = 0; i < sizeof(medium); i++)
		assert_int_equal(medium[i], i / BLOCK == 1 || i / BLOCK == 2 ? 0x77 : 0);
	memset(medium, 0x55, sizeof(medium));
	command.cdw0 = NVME_OPCODE_READ;
	command.bytes = BLOCK;
	weir_controller_move(view, 1, command);
	for (size_t i = 0; i < sizeof(buffer); i++)
		assert_int_equal(buffer[i], i < BLOCK ? 0x55 : 0x77);
}

/* The blocks of a command are those that it names, in all bits, and none behind the medium's last one. */
static void test_blocks_of_commands(void **state)
{
	static const uint64_t capacities[] = { 1, 100, (uint64_t)1 << 32, FAR, ~(uint64_t)0 };
	struct nvme_sqe sqe __attribute__((aligned(64))) = { .cdw0 = NVME_OPCODE_READ, .prp1 = 4096 };

	(void)state;
	for (size_t i = 0; i < sizeof(capacities) / sizeof(*capacities); i++) {
		struct weir_controller_view view = { .block_log2 = 9, .blocks = capacities[i] };
		const uint64_t lbas[] = { 0, capacities[i] - 1, capacities[i], (uint64_t)1 << 32,
					  ~(uint64_t)0 };

		for (size_t k = 0; k < sizeof(lbas) / sizeof(*lbas); k++)
			for (uint32_t blocks = 1; blocks <= 2; blocks++) {
				struct weir_controller_command command;
				uint32_t there = lbas[k] < view.blocks && view.blocks - lbas[k] >= blocks;

				sqe.cdw10 = (uint32_t)lbas[k];
				sqe.cdw11 = (uint32_t)(lbas[k] >> 32);
				sqe.cdw12 = blocks - 1;
				command = weir_controller_fetch(view, WEIR_ADDR(&sqe));
				assert_true(command.lba == lbas[k]);
				assert_int_equal(command.status,
						 there ? 0 : NVME_STATUS_LBA_OUT_OF_RANGE | NVME_STATUS_DNR);
				assert_int_equal(command.bytes, there ? blocks * BLOCK : 0);
			}
	}
}

/* A row is for commands that name one of its blocks, by the opcode and the queue that it says. */
static void test_which_commands_a_row_is_for(void **state)
{
	static const uint32_t opcodes[] = { NVME_OPCODE_READ, NVME_OPCODE_WRITE, NVME_OPCODE_COMPARE,
					    NVME_OPCODE_WRITE_ZEROES, NVME_OPCODE_FLUSH };
	struct weir_fault_row row = { .opcode = WEIR_FAULT_ANY_OPCODE, .lba = FAR, .blocks = 5 };

	(void)state;
	for (size_t i = 0; i < 5; i++)
		for (uint64_t lba = FAR - 4; lba < FAR + 9; lba++)
			for (uint64_t blocks = 1; blocks < 9; blocks++)
				assert_int_equal(weir_fault_is_for(&row, 1, opcodes[i], lba, blocks),
						 opcodes[i] != NVME_OPCODE_FLUSH && lba < FAR + 5 &&
							 lba + blocks > FAR);
	assert_false(weir_fault_is_for(&row, 1, NVME_OPCODE_READ, FAR & 0xffffffff, 1));
	row.blocks = 0;
	assert_true(weir_fault_is_for(&row, 1, NVME_OPCODE_FLUSH, 0, 1));
	row.queue = 2;
	row.opcode = NVME_OPCODE_WRITE;
	for (uint32_t queue = 1; queue < 4; queue++)
		for (size_t i = 0; i < 5; i++)
			assert_int_equal(weir_fault_is_for(&row, queue, opcodes[i], 0, 1),
					 queue == 2 && opcodes[i] == NVME_OPCODE_WRITE);
}

/* Of those the first ones are spared, and of the others each so many-th is matched, or about so many. */
static void test_which_of_them_a_row_matches(void **state)
{
	struct weir_fault_row row = { .every = 1 };

	(void)state;
	for (row.after = 0; row.after < 5; row.after++)
		for (row.every = 1; row.every < 4; row.every++)
			for (uint64_t number = 0; number < 20; number++)
				assert_int_equal(weir_fault_matches(&row, number),
						 number >= row.after &&
							 (number - row.after) % row.every == row.every - 1);
	row = (struct weir_fault_row){ .every = 1 };
	for (row.chance = 100; row.chance <= 1000; row.chance += 300) {
		uint32_t matched = 0;

		for (uint64_t number = 0; number < 10000; number++)
			matched += weir_fault_matches(&row, number);
		assert_in_range(matched, row.chance * 9, row.chance * 11);
		assert_true(row.chance < 1000 || matched == 10000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_queues_of_waves),
		cmocka_unit_test(test_rests),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_long_times),
		cmocka_unit_test(test_data_far_behind),
		cmocka_unit_test(test_blocks_of_commands),
		cmocka_unit_test(test_which_commands_a_row_is_for),
		cmocka_unit_test(test_which_of_them_a_row_matches),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("controller_steps", tests, NULL, NULL);
}
