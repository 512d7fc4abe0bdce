/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recovery/takeover_test.c: what a queue pair is like in the moment in which it is created again. The test is
 * the controller.
 *
 * Checked: its words of shadow doorbells, at any number of tickets; those of its neighbours stay; queues that
 * lanes do not let go of are left as they are.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recovery/takeover.h"

enum {
	DEPTH = 8,
	DEPTH_LOG2 = 3,
	DOORBELL = 4,
	TIMEOUT_MS = 60000,
	SHORT_MS = 5,
	TICKETS = 20,
	WORDS = 2 * NVME_PAGE_BYTES / DOORBELL
};

#define OLD 0x55555555u

static struct weir_queue queue;
static struct weir_slot slots[DEPTH];
static _Alignas(NVME_PAGE_BYTES) unsigned char rings[2 * NVME_PAGE_BYTES], data[3 * NVME_PAGE_BYTES];
static _Alignas(NVME_PAGE_BYTES) uint32_t shadow[WORDS];
static uint32_t registers[2 * 8];
static unsigned creations;

static unsigned answers, led; /* of the commands of a new pair: how many it gets, once there are so many */

/* Who waits gives the controller its turn. */
int sched_yield(void)
{
	const struct nvme_sqe *sqes = (const struct nvme_sqe *)(uintptr_t)queue.sq;
	struct nvme_cqe *cqes = (struct nvme_cqe *)(uintptr_t)queue.cq;

	if (!answers || shadow[2 * queue.id] != led)
		return 0;
	for (unsigned i = 0; i < answers; i++) {
		cqes[i].dw2 = queue.id << 16;
		cqes[i].dw3 = sqes[i].cdw0 >> 16 | 1u << 16;
	}
	answers = 0;
	return 0;
}

/* Of the pair that is created the words are 0, of all others they are as they were. */
static void check_shadow(unsigned id)
{
	for (unsigned i = 0; i < WORDS; i++) {
		bool own = i % (WORDS / 2) / 2 == id;

		assert_int_equal(shadow[i], own ? 0 : OLD);
	}
}

static int admin(struct weir_transport *transport, const struct nvme_sqe *command, unsigned ms,
		 uint32_t *result)
{
	(void)transport;
	(void)ms;
	(void)result;
	assert_int_equal(command->cdw10 & 0xffff, queue.id);
	check_shadow(queue.id);
	for (unsigned i = 0; i < DEPTH; i++) /* no entry seems to be there */
		assert_int_equal(((struct nvme_cqe *)(uintptr_t)queue.cq)[i].dw3, 0);
	creations++;
	return 0;
}

static uint32_t read32(struct weir_transport *transport, uint32_t offset)
{
	(void)transport;
	(void)offset;
	return NVME_CSTS_READY;
}

static const struct weir_transport_ops ops = { .size = sizeof(ops), .read32 = read32, .admin = admin };

/* Pair number @id after @tickets commands, all of which have ended. */
static void make_queue(unsigned id, uint64_t tickets)
{
	memset(&queue, 0, sizeof(queue));
	memset(rings, 0xff, sizeof(rings));
	for (unsigned i = 0; i < WORDS; i++)
		shadow[i] = OLD;
	queue.sq = WEIR_ADDR(rings);
	queue.cq = WEIR_ADDR(rings) + NVME_PAGE_BYTES;
	queue.slots = WEIR_ADDR(slots);
	queue.sq_doorbell = WEIR_ADDR(&registers[2 * id]);
	queue.cq_doorbell = WEIR_ADDR(&registers[2 * id + 1]);
	queue.shadow = WEIR_ADDR(shadow) + (uint64_t)2 * id * DOORBELL;
	queue.depth = DEPTH;
	queue.depth_log2 = DEPTH_LOG2;
	queue.block_log2 = 9;
	queue.nsid = 1;
	queue.id = id;
	weir_store_u64_relaxed_sys(&queue.tail, tickets);
	weir_store_u64_relaxed_sys(&queue.committed, tickets);
	weir_store_u64_relaxed_sys(&queue.rung, tickets);
	weir_store_u64_relaxed_sys(&queue.reap, tickets << 1 | 1);
	for (uint64_t ticket = tickets; ticket < tickets + DEPTH; ticket++)
		weir_store_u32_relaxed_sys(&slots[ticket % DEPTH].sequence, (uint32_t)(ticket / DEPTH * 2));
}

static void create(unsigned id, uint64_t tickets)
{
	struct weir_transport transport = { .ops = &ops };
	static char uri[] = "test:";
	struct weir_storage storage = { .transport = &transport,
					.uri = uri,
					.queues = WEIR_ADDR(&queue),
					.queue_count = 1,
					.depth = DEPTH,
					.admin_memory = WEIR_ADDR(data) };

	storage.admin.transport = &transport;
	make_queue(id, tickets);
	creations = 0;
	assert_int_equal(weir_takeover_create(&storage, 0, TIMEOUT_MS), 0);
	assert_int_equal(creations, 2); /* of the completion queue, and of the submission queue */
	/* Completions are taken from a first pass of the ring on. */
	assert_int_equal(weir_load_u64_relaxed_sys(&queue.reap) >> 1 & (2 * DEPTH - 1), 0);
	assert_true(weir_load_u64_relaxed_sys(&queue.reap) >> 1 >= tickets);
}

static void test_words_of_shadow_doorbells(void **state)
{
	static const uint64_t tickets[] = { 0, DEPTH, 2 * DEPTH, 3 * DEPTH, ((uint64_t)1 << 32) + DEPTH };

	(void)state;
	for (size_t i = 0; i < sizeof(tickets) / sizeof(tickets[0]); i++)
		for (unsigned id = 1; id < 4; id++)
			create(id, tickets[i]);
}

static struct weir_transport transport = { .ops = &ops };
static char uri[] = "test:";
static struct weir_storage storage = { .transport = &transport,
				       .uri = uri,
				       .queues = WEIR_ADDR(&queue),
				       .queue_count = 1,
				       .depth = DEPTH,
				       .admin_memory = WEIR_ADDR(data),
				       .admin = { .transport = &transport } };

/* A lane has one of the queue's two locks for good: nothing of it is the host's then. */
static void test_a_lane_keeps_a_lock(void **state)
{
	(void)state;
	make_queue(1, TICKETS);
	assert_int_equal(weir_takeover_take(&storage, 0, SHORT_MS), -ETIMEDOUT); /* the reaper's */
	assert_int_equal(weir_load_u64_relaxed_sys(&queue.reap), TICKETS << 1 | 1);
	assert_int_equal(weir_load_u64_relaxed_sys(&queue.pending), 0);
	weir_store_u64_relaxed_sys(&queue.reap, TICKETS << 1);
	weir_store_u64_relaxed_sys(&queue.pending, 1);
	assert_int_equal(weir_takeover_take(&storage, 0, SHORT_MS), -ETIMEDOUT); /* the combiner's */
	assert_int_equal(weir_load_u64_relaxed_sys(&queue.reap), TICKETS << 1);
	assert_int_equal(weir_load_u64_relaxed_sys(&queue.pending), 1);
	weir_store_u64_relaxed_sys(&queue.pending, 0);
	assert_int_equal(weir_takeover_take(&storage, 0, SHORT_MS), 0);
	assert_int_equal(weir_load_u64_relaxed_sys(&queue.reap), TICKETS << 1 | 1);
	assert_int_equal(weir_load_u64_relaxed_sys(&queue.pending), 1);
	assert_int_equal(weir_takeover_take(&storage, 0, SHORT_MS), -ETIMEDOUT); /* it is taken */
	weir_takeover_release(&storage, 0);
	assert_int_equal(weir_load_u64_relaxed_sys(&queue.reap), TICKETS << 1);
	assert_int_equal(weir_load_u64_relaxed_sys(&queue.pending), 0);
}

/* A lane has reserved a slot and does not fill it: the queue is not created under it. */
static void test_a_lane_fills_no_slot(void **state)
{
	(void)state;
	make_queue(1, TICKETS);
	creations = 0;
	weir_store_u64_relaxed_sys(&queue.tail, TICKETS + 1);
	assert_int_equal(weir_takeover_create(&storage, 0, SHORT_MS), -ETIMEDOUT);
	assert_int_equal(creations, 0);
}

static uint32_t sequence_of(uint64_t ticket)
{
	return weir_load_u32_relaxed_sys(&slots[ticket % DEPTH].sequence);
}

/* Commands that were announced end; what a lane has filled for a ticket beyond them is the next lap's. */
static void test_the_next_lap_goes_on(void **state)
{
	(void)state;
	for (unsigned announced = 0; announced < 3; announced++) {
		uint64_t end = TICKETS + announced;

		make_queue(1, TICKETS);
		weir_store_u64_relaxed_sys(&queue.committed, end);
		weir_store_u64_relaxed_sys(&queue.tail, end + 2);
		for (uint64_t ticket = TICKETS; ticket < end + 2; ticket++)
			weir_store_u32_relaxed_sys(&slots[ticket % DEPTH].sequence,
						   (uint32_t)(ticket / DEPTH * 2 + 1));
		assert_int_equal(weir_takeover_end_commands(&storage, 0), announced);
		for (uint64_t ticket = TICKETS; ticket < end; ticket++)
			assert_int_equal(sequence_of(ticket), ticket / DEPTH * 2 + 2);
		for (uint64_t ticket = end; ticket < end + 2; ticket++)
			assert_int_equal(sequence_of(ticket), ticket / DEPTH * 2 + 1);
	}
}

/* The controller does not answer: no entry that was cleared is the answer to a command, whatever phase is
 * due; nor is one of those that it may yet write. */
static void test_a_pair_that_is_not_created(void **state)
{
	enum { FIRST = 65536, LATE = DEPTH - 1 };
	struct weir_event event = { .word = { 0 } };
	struct nvme_cqe *cqes;

	(void)state;
	make_queue(1, FIRST - 1); /* its last lap has an odd number: phase 0 is due */
	cqes = (struct nvme_cqe *)(uintptr_t)queue.cq;
	for (unsigned i = 0; i < DEPTH; i++)
		cqes[i].dw2 = 1u << 16; /* of the lap before */
	weir_store_u64_relaxed_sys(&queue.pending, 1);
	weir_store_u64_relaxed_sys(&queue.tail, FIRST + 1);
	memset(&slots[LATE], 0, sizeof(slots[LATE]));
	slots[0] = (struct weir_slot){ .target_kind = WEIR_TARGET_EVENT, .target = WEIR_ADDR(&event) };
	weir_store_u32_relaxed_sys(&slots[LATE].sequence, (FIRST - 1) / DEPTH * 2 + 1);
	weir_store_u32_relaxed_sys(&slots[0].sequence, FIRST / DEPTH * 2 + 1);
	assert_int_equal(weir_takeover_create(&storage, 0, SHORT_MS), -ETIMEDOUT);
	weir_takeover_release(&storage, 0);
	assert_int_equal(weir_takeover_take(&storage, 0, SHORT_MS), 0);
	(void)weir_takeover_end_commands(&storage, 0);
	assert_true(weir_load_u64_relaxed_sys(&event.word) & WEIR_EVENT_DONE);
	assert_int_not_equal((uint32_t)weir_load_u64_relaxed_sys(&event.word), WEIR_OK);
	weir_takeover_release(&storage, 0);
}

/* The controller answers all but the last of the commands that lead it to where lanes go on: what it answered
 * is no answer to theirs, whose entries are due behind it. */
static void test_a_pair_that_is_not_led_to_its_end(void **state)
{
	enum { AT = 3, FIRST = 3 * DEPTH + AT }; /* a lap of an odd number: phase 0 is due, then 1 */
	struct weir_event event = { .word = { 0 } };

	(void)state;
	make_queue(1, FIRST);
	weir_store_u64_relaxed_sys(&queue.pending, 1);
	weir_store_u64_relaxed_sys(&queue.tail, FIRST + 1);
	slots[AT] = (struct weir_slot){ .target_kind = WEIR_TARGET_EVENT, .target = WEIR_ADDR(&event) };
	weir_store_u32_relaxed_sys(&slots[AT].sequence, FIRST / DEPTH * 2 + 1);
	led = AT;
	answers = AT - 1;
	assert_int_equal(weir_takeover_create(&storage, 0, SHORT_MS), -ETIMEDOUT);
	assert_int_equal(answers, 0);
	weir_takeover_release(&storage, 0);
	assert_int_equal(weir_takeover_take(&storage, 0, SHORT_MS), 0);
	(void)weir_takeover_end_commands(&storage, 0);
	assert_true(weir_load_u64_relaxed_sys(&event.word) & WEIR_EVENT_DONE);
	assert_int_not_equal((uint32_t)weir_load_u64_relaxed_sys(&event.word), WEIR_OK);
	weir_takeover_release(&storage, 0);
}

/* Entries that lanes have filled stand in the ring while the controller is led past their places: afterwards
 * they are as they were, whether it has come there or not. */
static void test_entries_of_lanes_stay(void **state)
{
	enum { AT = 3, FIRST = 3 * DEPTH + AT, END = FIRST + DEPTH - 1 };
	struct nvme_sqe *sqes;

	(void)state;
	for (unsigned whole = 0; whole < 2; whole++) {
		make_queue(1, FIRST);
		sqes = (struct nvme_sqe *)(uintptr_t)queue.sq;
		weir_store_u64_relaxed_sys(&queue.pending, 1);
		weir_store_u64_relaxed_sys(&queue.tail, END);
		for (uint32_t ticket = FIRST; ticket < END; ticket++) {
			sqes[ticket % DEPTH] = (struct nvme_sqe){ .cdw0 = ticket << 16, .cdw10 = ticket };
			weir_store_u32_relaxed_sys(&slots[ticket % DEPTH].sequence, ticket / DEPTH * 2 + 1);
		}
		led = AT;
		answers = whole ? AT : AT - 1;
		assert_int_equal(weir_takeover_create(&storage, 0, whole ? TIMEOUT_MS : SHORT_MS),
				 whole ? 0 : -ETIMEDOUT);
		assert_int_equal(answers, 0);
		for (uint32_t ticket = FIRST; ticket < END; ticket++) {
			assert_int_equal(sqes[ticket % DEPTH].cdw0, ticket << 16);
			assert_int_equal(sqes[ticket % DEPTH].cdw10, ticket);
			assert_int_equal(sequence_of(ticket), ticket / DEPTH * 2 + 1);
		}
		if (whole) /* completions go on behind those that led it there, in a first pass */
			assert_int_equal(weir_load_u64_relaxed_sys(&queue.reap) >> 1 & (2 * DEPTH - 1), AT);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_of_shadow_doorbells),
		cmocka_unit_test(test_a_pair_that_is_not_created),
		cmocka_unit_test(test_a_pair_that_is_not_led_to_its_end),
		cmocka_unit_test(test_a_lane_keeps_a_lock),
		cmocka_unit_test(test_a_lane_fills_no_slot),
		cmocka_unit_test(test_the_next_lap_goes_on),
		cmocka_unit_test(test_entries_of_lanes_stay),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("takeover", tests, NULL, NULL);
}
