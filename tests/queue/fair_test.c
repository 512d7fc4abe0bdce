/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair_test.c: how often a submission is overtaken that waits for a slot. Steps of many lanes that this
 * thread takes, one after the other, in the order that is worst for the oldest; nothing is timed, and a wait
 * is counted in commands of others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/core/queue/sq.h>

enum { LANES = 300, MOST_DEPTH = 8, COMMANDS = 60000, ALONE = 1 };

/** struct rig - one queue pair, whose controller ends the oldest command in each step */
struct rig {
	struct weir_queue queue;
	struct weir_slot slots[MOST_DEPTH];
	struct nvme_sqe sq[MOST_DEPTH];
	uint32_t doorbell;
	uint64_t ended;
};

/** struct waiter - a lane that submits again as soon as it was served; @since: commands when it began to wait
 */
struct waiter {
	uint64_t deadline;
	uint64_t since;
	uint32_t iteration;
};

static struct rig *open_rig(uint32_t depth)
{
	struct rig *rig = aligned_alloc(128, (sizeof(*rig) + 127) / 128 * 128);

	memset(rig, 0, sizeof(*rig));
	rig->queue.sq = (weir_addr)(uintptr_t)rig->sq;
	rig->queue.slots = (weir_addr)(uintptr_t)rig->slots;
	rig->queue.sq_doorbell = (weir_addr)(uintptr_t)&rig->doorbell;
	rig->queue.depth = depth;
	rig->queue.depth_log2 = (uint32_t)__builtin_ctz(depth);
	return rig;
}

static uint64_t submitted(struct rig *rig)
{
	return weir_load_u64_relaxed_dev(&rig->queue.tail);
}

static uint32_t try_submit(struct rig *rig, struct weir_age age)
{
	struct weir_request request;

	memset(&request, 0, sizeof(request));
	request.opcode = NVME_OPCODE_FLUSH;
	return weir_sq_try_submit(&rig->queue, ALONE, ALONE, request, age);
}

static void end_one(struct rig *rig)
{
	struct weir_slot *slot = weir_sq_slot(&rig->queue, rig->ended);

	assert_true(rig->ended < submitted(rig));
	weir_store_u32_release_dev(&slot->sequence, weir_sq_free_sequence(&rig->queue, rig->ended) + 2);
	rig->ended++;
}

/* The longest wait, and the sum of all. */
struct waits {
	uint64_t longest, sum, count;
};

static void begin(struct waiter *waiter, struct rig *rig, uint64_t *clock)
{
	*waiter = (struct waiter){ .deadline = 1000000 + ++*clock, .since = submitted(rig) };
}

static void served(struct waits *waits, const struct waiter *waiter, const struct rig *rig)
{
	uint64_t wait = weir_load_u64_relaxed_dev(&rig->queue.tail) - 1 - waiter->since;

	waits->longest = wait > waits->longest ? wait : waits->longest;
	waits->sum += wait;
	waits->count++;
}

/* Who was served last tries first. */
static struct waits run(struct rig *rig, uint32_t lanes)
{
	struct waiter waiting[LANES], taken;
	struct waits waits = { 0, 0, 0 };
	uint64_t clock = 0;

	for (uint32_t i = 0; i < lanes; i++)
		begin(&waiting[i], rig, &clock);
	while (waits.count < COMMANDS) {
		for (uint32_t i = 0; i < lanes; i++) {
			if (!try_submit(rig, weir_age(waiting[i].deadline, waiting[i].iteration++)))
				continue;
			taken = waiting[i];
			served(&waits, &taken, rig);
			memmove(&waiting[1], &waiting[0], i * sizeof(taken));
			begin(&waiting[0], rig, &clock);
		}
		if (rig->ended < submitted(rig))
			end_one(rig);
	}
	for (uint32_t i = 0; i < lanes; i++) { /* who was never served has waited, too */
		uint64_t wait = submitted(rig) - waiting[i].since;

		waits.longest = wait > waits.longest ? wait : waits.longest;
	}
	return waits;
}

/* Each of those that are older is served at last after WEIR_OVERTAKES others. */
static void test_the_longest_wait_is_bounded(void **state)
{
	(void)state;
	for (uint32_t depth = 2; depth <= MOST_DEPTH; depth *= 2)
		for (uint32_t lanes = 20; lanes <= LANES; lanes += 140) {
			struct rig *rig = open_rig(depth);
			struct waits waits = run(rig, lanes);

			if (waits.longest > (uint64_t)(WEIR_OVERTAKES + 2) * lanes)
				fail_msg("depth %u, %u lanes: one waited for %llu commands of others, the "
					 "mean is %llu",
					 depth, lanes, (unsigned long long)waits.longest,
					 (unsigned long long)(waits.sum / waits.count));
			free(rig);
		}
}

static void fill(struct rig *rig)
{
	while (try_submit(rig, weir_age(1, 0)))
		;
}

/* The one that is waited for never comes: the others go on, after a bounded number of tries. */
static void test_who_is_gone_keeps_nobody(void **state)
{
	struct rig *rig = open_rig(2);
	uint32_t tries = 0;

	(void)state;
	fill(rig);
	assert_int_equal(try_submit(rig, weir_age(100, WEIR_FIRST_ITERATIONS)), 0);
	for (uint32_t i = 0; i < WEIR_OVERTAKES; i++) {
		end_one(rig);
		assert_int_equal(try_submit(rig, weir_age(200, 0)), 1);
	}
	end_one(rig);
	while (!try_submit(rig, weir_age(300, 0)))
		assert_true(++tries <= WEIR_FIRST_REFUSES);
	assert_int_equal(tries, WEIR_FIRST_REFUSES - WEIR_OVERTAKES);
	end_one(rig);
	assert_int_equal(try_submit(rig, weir_age(300, 0)), 1);
	/* and it keeps nobody from being the next that others leave a slot to */
	assert_int_equal(try_submit(rig, weir_age(400, WEIR_FIRST_ITERATIONS)), 0);
	for (uint32_t i = 0; i < WEIR_OVERTAKES; i++) {
		end_one(rig);
		assert_int_equal(try_submit(rig, weir_age(500, 0)), 1);
	}
	end_one(rig);
	assert_int_equal(try_submit(rig, weir_age(500, 0)), 0);
	assert_int_equal(try_submit(rig, weir_age(400, WEIR_FIRST_ITERATIONS + 1)), 1);
	free(rig);
}

static void test_who_withdraws_keeps_nobody(void **state)
{
	struct rig *rig = open_rig(2);

	(void)state;
	fill(rig);
	assert_int_equal(try_submit(rig, weir_age(100, WEIR_FIRST_ITERATIONS)), 0);
	for (uint32_t i = 0; i < WEIR_OVERTAKES; i++) {
		end_one(rig);
		assert_int_equal(try_submit(rig, weir_age(200, 0)), 1);
	}
	end_one(rig);
	assert_int_equal(try_submit(rig, weir_age(300, 0)), 0);
	weir_sq_withdraw(ALONE, 1, &rig->queue, 100);
	assert_int_equal(try_submit(rig, weir_age(300, 0)), 1);
	free(rig);
}

/* The slots are nobody's: the older one takes what it finds, and who takes no part does, too. */
static void test_a_hint_and_no_reservation(void **state)
{
	struct rig *rig = open_rig(2);

	(void)state;
	fill(rig);
	assert_int_equal(try_submit(rig, weir_age(100, WEIR_FIRST_ITERATIONS)), 0);
	weir_store_u64_relaxed_dev(&rig->queue.overtaken, WEIR_OVERTAKES);
	end_one(rig);
	assert_int_equal(try_submit(rig, weir_age(50, 0)), 1);
	end_one(rig);
	assert_int_equal(try_submit(rig, weir_age_none()), 1);
	end_one(rig);
	assert_int_equal(try_submit(rig, weir_age(101, 0)), 0);
	assert_int_equal(try_submit(rig, weir_age(100, WEIR_FIRST_ITERATIONS + 1)), 1);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig->queue.first), 0);
	end_one(rig);
	assert_int_equal(try_submit(rig, weir_age(101, 0)), 1);
	free(rig);
}

/* A wave's lanes are served together, and each command of theirs goes before the older one. */
static void test_each_command_counts(void **state)
{
	struct rig *rig = open_rig(8);

	(void)state;
	weir_store_u64_relaxed_dev(&rig->queue.first, 100);
	weir_sq_note_age(&rig->queue, weir_age(200, 0), 100, 5);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig->queue.overtaken), 5);
	assert_int_equal(weir_sq_may_overtake(&rig->queue, 100), 5 < WEIR_OVERTAKES);
	weir_sq_note_age(&rig->queue, weir_age(300, 0), 100, WEIR_OVERTAKES - 5);
	assert_int_equal(weir_sq_may_overtake(&rig->queue, 100), 0);
	free(rig);
}

/* Where slots are free, nothing is written but what a submission writes. */
static void test_nobody_waits_nothing_is_noted(void **state)
{
	struct rig *rig = open_rig(8);

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(try_submit(rig, weir_age(1000 + i, 0)), 1);
		end_one(rig);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig->queue.first), 0);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig->queue.overtaken), 0);
	}
	free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_longest_wait_is_bounded),
		cmocka_unit_test(test_who_is_gone_keeps_nobody),
		cmocka_unit_test(test_who_withdraws_keeps_nobody),
		cmocka_unit_test(test_a_hint_and_no_reservation),
		cmocka_unit_test(test_each_command_counts),
		cmocka_unit_test(test_nobody_waits_nothing_is_noted),
	};

	return cmocka_run_group_tests_name("fair", tests, NULL, NULL);
}
