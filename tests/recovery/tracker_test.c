/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recovery/tracker_test.c: the age of each command that a controller has. The test writes the queue words and
 * moves the clock.
 *
 * Checked: which command is the oldest, across queue pairs, around rings, and where sequence words of 32
 * bits wrap.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "recovery/takeover.h"
#include "recovery/tracker.h"

enum { QUEUES = 2, DEPTH = 8 };

#define MS ((uint64_t)1000000)

static uint64_t now_ns;

/* The one of recovery/tracker.c. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){ .tv_sec = (time_t)(now_ns / 1000000000),
				   .tv_nsec = (long)(now_ns % 1000000000) };
	return 0;
}

/**
 * struct rig - queue pairs of @first tickets; @posted: completions that the controller has written,
 * per pair
 */
struct rig {
	struct weir_storage storage;
	struct weir_tracker *tracker;
	uint64_t first, posted[QUEUES], rings[QUEUES], slot_addresses[QUEUES];
};

static struct weir_context context;
static struct weir_queue queues[QUEUES];
static struct weir_slot slots[QUEUES][DEPTH];
static _Alignas(NVME_PAGE_BYTES) unsigned char rings[QUEUES][2 * NVME_PAGE_BYTES];

static uint64_t committed(uint32_t queue)
{
	return weir_load_u64_relaxed_sys(&queues[queue].committed);
}

static struct weir_slot *slot_of(uint32_t queue, uint64_t ticket)
{
	return &slots[queue][ticket % DEPTH];
}

static struct nvme_cqe *entry_of(uint32_t queue, uint64_t position)
{
	return (struct nvme_cqe *)(void *)(rings[queue] + weir_queue_cq_offset(DEPTH)) + position % DEPTH;
}

static uint32_t phase_of(uint64_t position)
{
	return position / DEPTH % 2 ? 0 : 1 << 16;
}

/* As a pair is that has done @first commands: its ring holds the completions of the lap before. */
static void begin_queue(struct rig *rig, uint32_t queue)
{
	uint64_t first = rig->first;

	rig->rings[queue] = WEIR_ADDR(rings[queue]);
	rig->slot_addresses[queue] = WEIR_ADDR(slots[queue]);
	rig->posted[queue] = first;
	queues[queue].slots = WEIR_ADDR(slots[queue]);
	weir_store_u64_relaxed_sys(&queues[queue].committed, first);
	weir_store_u64_relaxed_sys(&queues[queue].rung, first);
	weir_store_u64_relaxed_sys(&queues[queue].reap, first << 1);
	for (uint64_t ticket = first; ticket < first + DEPTH; ticket++) {
		weir_store_u32_relaxed_sys(&slot_of(queue, ticket)->sequence, (uint32_t)(ticket / DEPTH * 2));
		entry_of(queue, ticket)->dw3 = phase_of(ticket + DEPTH) | (uint32_t)(ticket & 0xffff);
	}
}

static void open_rig(struct rig *rig, uint64_t first)
{
	memset(rig, 0, sizeof(*rig));
	memset(queues, 0, sizeof(queues));
	memset(slots, 0, sizeof(slots));
	memset(rings, 0, sizeof(rings));
	now_ns = 5000 * MS;
	rig->first = first;
	rig->storage = (struct weir_storage){ .context = &context,
					      .queues = WEIR_ADDR(queues),
					      .rings = rig->rings,
					      .slots = rig->slot_addresses,
					      .queue_count = QUEUES,
					      .depth = DEPTH };
	for (uint32_t i = 0; i < QUEUES; i++)
		begin_queue(rig, i);
	assert_int_equal(weir_tracker_open(&rig->storage, true, first, &rig->tracker), 0);
}

static void close_rig(struct rig *rig)
{
	weir_tracker_close(rig->tracker);
}

/* Where a device's memory lies: the host reaches nothing there. */
static const uint64_t FAR = (uint64_t)1 << 62;
static bool unread; /* copies fail */

static int d2h(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	(void)backend;
	if (unread)
		return -EIO;
	memcpy(host, (const void *)(uintptr_t)(device - FAR), bytes);
	return 0;
}

static const struct weir_backend_ops far_ops = { .d2h = d2h };
static struct weir_backend far_backend = { .ops = &far_ops };

/* The same of a device whose words the host copies; its rings are in the host's memory, or in the device's.
 */
static void open_far_rig(struct rig *rig, enum weir_gpu_memory memory)
{
	static struct weir_transport transport;

	open_rig(rig, 0);
	weir_tracker_close(rig->tracker);
	transport = (struct weir_transport){ .gpu_memory = memory };
	context.backend = &far_backend;
	rig->storage.transport = &transport;
	rig->storage.queues += FAR;
	for (uint32_t i = 0; i < QUEUES; i++) {
		rig->slot_addresses[i] += FAR;
		rig->rings[i] += memory == WEIR_GPU_MEMORY_QUEUES ? FAR : 0;
	}
	assert_int_equal(weir_tracker_open(&rig->storage, false, 0, &rig->tracker), 0);
}

/* A lane fills the slot of the next ticket. */
static void fill(uint32_t queue, uint64_t ticket)
{
	weir_store_u32_relaxed_sys(&slot_of(queue, ticket)->sequence, (uint32_t)(ticket / DEPTH * 2 + 1));
}

static uint64_t submit(uint32_t queue)
{
	uint64_t ticket = committed(queue);

	fill(queue, ticket);
	weir_store_u64_relaxed_sys(&queues[queue].committed, ticket + 1);
	return ticket;
}

/* The controller completes @ticket. */
static void answer(struct rig *rig, uint32_t queue, uint64_t ticket)
{
	uint64_t position = rig->posted[queue]++;

	entry_of(queue, position)->dw3 = phase_of(position) | (uint32_t)(ticket & 0xffff);
}

/* Lanes take the next completion, that of @ticket. */
static void reap(uint32_t queue, uint64_t ticket)
{
	uint64_t head = weir_load_u64_relaxed_sys(&queues[queue].reap) >> 1;

	weir_store_u32_relaxed_sys(&slot_of(queue, ticket)->sequence, (uint32_t)(ticket / DEPTH * 2 + 2));
	weir_store_u64_relaxed_sys(&queues[queue].reap, (head + 1) << 1);
	weir_store_u64_relaxed_sys(&queues[queue].rung, head + 1);
	weir_store_u64_relaxed_sys(&queues[queue].completed,
				   weir_load_u64_relaxed_sys(&queues[queue].completed) + 1);
}

static struct weir_tracked_command snapshot(struct rig *rig)
{
	struct weir_tracked_command oldest;

	assert_int_equal(weir_tracker_poll(rig->tracker, &oldest), 0);
	return oldest;
}

static void none(struct rig *rig)
{
	struct weir_tracked_command oldest = snapshot(rig);

	if (oldest.age_ns)
		fail_msg("slot %u of queue %u is %llu ns old", oldest.slot, oldest.queue,
			 (unsigned long long)oldest.age_ns);
}

/* The oldest is @ticket of @queue, for @age_ns. */
static void oldest_is(struct rig *rig, uint32_t queue, uint64_t ticket, uint64_t age_ns)
{
	struct weir_tracked_command oldest = snapshot(rig);

	if (oldest.queue != queue || oldest.slot != ticket % DEPTH || oldest.age_ns != age_ns + 1)
		fail_msg("slot %u of queue %u for %llu ns, and not slot %u of queue %u for %llu", oldest.slot,
			 oldest.queue, (unsigned long long)oldest.age_ns, (unsigned)(ticket % DEPTH), queue,
			 (unsigned long long)age_ns + 1);
	assert_int_equal(oldest.sequence, (uint32_t)(ticket / DEPTH * 2 + 1));
	assert_int_equal(oldest.cid, ticket & 0xffff);
}

/* Commands are first seen at different times, in slots and queue pairs of any order. */
static void test_the_oldest_is_named(void **state)
{
	struct rig rig;
	uint64_t first, second, other;

	(void)state;
	open_rig(&rig, 6);
	none(&rig);
	first = submit(0); /* slot 6, and then around the ring */
	oldest_is(&rig, 0, first, 0);
	now_ns += 10 * MS;
	second = submit(0);
	other = submit(1);
	oldest_is(&rig, 0, first, 10 * MS);
	now_ns += 10 * MS;
	submit(0);
	submit(1);
	oldest_is(&rig, 0, first, 20 * MS);
	answer(&rig, 0, first);
	reap(0, first);
	oldest_is(&rig, 0, second, 10 * MS);
	answer(&rig, 0, second);
	reap(0, second);
	now_ns += 10 * MS;
	oldest_is(&rig, 1, other, 20 * MS);
	now_ns += 5000 * MS; /* more than 32 bits of nanoseconds */
	oldest_is(&rig, 1, other, 5020 * MS);
	close_rig(&rig);
}

/* What the host does not reach it copies, rings in the device's memory (gpu_memory=queues), too. */
static void test_words_that_are_copied(void **state)
{
	static const enum weir_gpu_memory memories[] = { WEIR_GPU_MEMORY_NONE, WEIR_GPU_MEMORY_DATA,
							 WEIR_GPU_MEMORY_QUEUES };

	(void)state;
	for (unsigned i = 0; i < sizeof(memories) / sizeof(*memories); i++) {
		struct weir_tracked_command command;
		uint64_t first, second;
		struct rig rig;

		open_far_rig(&rig, memories[i]);
		none(&rig);
		first = submit(0);
		second = submit(1);
		oldest_is(&rig, 0, first, 0);
		command = snapshot(&rig);
		assert_true(weir_tracker_pending(rig.tracker, &command));
		now_ns += 10 * MS;
		answer(&rig, 0, first); /* and no lane takes it */
		assert_false(weir_tracker_pending(rig.tracker, &command));
		oldest_is(&rig, 1, second, 10 * MS);
		close_rig(&rig);
	}
	context.backend = NULL;
}

/* Ages are of commands, not of slots. */
static void test_a_slot_used_again_is_young(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, 0);
	for (unsigned i = 0; i < 3 * DEPTH; i++) {
		uint64_t ticket = submit(0);

		oldest_is(&rig, 0, ticket, 0);
		now_ns += 7 * MS;
		oldest_is(&rig, 0, ticket, 7 * MS);
		answer(&rig, 0, ticket);
		reap(0, ticket);
	}
	none(&rig);
	oldest_is(&rig, 0, submit(0), 0);
	for (unsigned i = 0; i < DEPTH;
	     i++) { /* no snapshot while the slot ends one command and gets another */
		uint64_t ticket = i ? submit(0) : committed(0) - 1;

		now_ns += MS;
		answer(&rig, 0, ticket);
		reap(0, ticket);
	}
	oldest_is(&rig, 0, submit(0), 0);
	close_rig(&rig);
}

/*
 * Two laps of commands from ticket @first on. A filled slot belongs to the lanes until the doorbell
 * announces it; a
 * completion in the ring belongs to them again.
 */
static void walk(uint64_t first)
{
	struct weir_tracked_command command;
	struct rig rig;

	open_rig(&rig, first);
	for (unsigned i = 0; i < 2 * DEPTH; i++) {
		uint64_t ticket = committed(0);

		fill(0, ticket);
		fill(0, ticket + 1);
		none(&rig);
		submit(0);
		now_ns += MS;
		oldest_is(&rig, 0, ticket, 0);
		fill(0, ticket + 2); /* before the one that comes first */
		now_ns += MS;
		oldest_is(&rig, 0, ticket, MS);
		command = snapshot(&rig);
		assert_true(weir_tracker_pending(rig.tracker, &command));
		command.sequence += 2; /* the next one in this slot */
		assert_false(weir_tracker_pending(rig.tracker, &command));
		command.sequence -= 2;
		answer(&rig, 0, ticket);
		none(&rig);
		assert_false(weir_tracker_pending(rig.tracker, &command));
		reap(0, ticket);
		assert_false(weir_tracker_pending(rig.tracker, &command));
		none(&rig);
	}
	close_rig(&rig);
}

static const uint64_t FIRSTS[] = {
	0,
	DEPTH - 1,
	65536 - 3,
	((uint64_t)1 << 31) - 3,
	((uint64_t)1 << 32) - 3,
	((uint64_t)DEPTH << 30) - 3,
	((uint64_t)DEPTH << 31) - 3,
	((uint64_t)DEPTH << 32) - 3,
	((uint64_t)DEPTH << 31) + ((uint64_t)3 << 30),
	(uint64_t)1 << 45,
};

static void test_laps(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(FIRSTS) / sizeof(FIRSTS[0]); i++)
		walk(FIRSTS[i]);
}

/* A full ring whose commands end out of order: the oldest may be in any slot. */
static void test_full_rings(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(FIRSTS) / sizeof(FIRSTS[0]); i++) {
		struct rig rig;
		uint64_t first = FIRSTS[i];

		open_rig(&rig, first);
		for (unsigned k = 0; k < DEPTH - 1; k++) {
			submit(0);
			(void)snapshot(&rig);
			now_ns += MS;
		}
		oldest_is(&rig, 0, first, (DEPTH - 1) * MS);
		for (unsigned k = DEPTH - 2; k > 2; k--) { /* from the youngest on */
			answer(&rig, 0, first + k);
			reap(0, first + k);
			oldest_is(&rig, 0, first, (DEPTH - 1) * MS);
		}
		answer(&rig, 0, first);
		reap(0, first);
		oldest_is(&rig, 0, first + 1, (DEPTH - 2) * MS);
		close_rig(&rig);
	}
}

/* All completions in the ring are found, on both sides of its end, and none of the lap before. */
static void test_completions_around_the_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(FIRSTS) / sizeof(FIRSTS[0]); i++)
		for (unsigned answered = 0; answered < DEPTH - 1; answered++) {
			struct rig rig;

			open_rig(&rig, FIRSTS[i]);
			for (unsigned k = 0; k < DEPTH - 1; k++)
				submit(0);
			for (unsigned k = 0; k < answered; k++)
				answer(&rig, 0, FIRSTS[i] + k);
			for (unsigned k = 0; k < DEPTH - 1; k++) {
				uint64_t ticket = FIRSTS[i] + k;
				struct weir_tracked_command command = {
					.slot = ticket % DEPTH, .sequence = (uint32_t)(ticket / DEPTH * 2 + 1)
				};

				assert_int_equal(weir_tracker_pending(rig.tracker, &command), k >= answered);
			}
			close_rig(&rig);
		}
}

/*
 * While lanes leave completions in the ring, or do not ring the CQ doorbell, no command of that queue
 * pair gets older.
 */
static void test_completions_left_in_the_ring(void **state)
{
	struct rig rig;
	uint64_t first, second, other;

	(void)state;
	open_rig(&rig, 3);
	first = submit(0);
	second = submit(0);
	other = submit(1);
	oldest_is(&rig, 0, first, 0);
	answer(&rig, 0, first);
	now_ns += MS;
	oldest_is(&rig, 1, other, MS); /* head has not moved since the last snapshot: second is young again */
	now_ns += MS;
	reap(0, first);
	weir_store_u64_relaxed_sys(&queues[0].rung, 3);
	oldest_is(&rig, 1, other, 2 * MS);
	answer(&rig, 1, other);
	reap(1, other);
	weir_store_u64_relaxed_sys(&queues[0].rung, 4);
	oldest_is(&rig, 0, second, MS); /* head had moved, so that it did not begin anew */
	now_ns += MS;
	weir_store_u64_relaxed_sys(&queues[0].rung, 3);
	oldest_is(&rig, 0, second, 0); /* the CQ doorbell was not rung: the controller has no room */
	weir_store_u64_relaxed_sys(&queues[0].rung, 4);
	now_ns += MS;
	oldest_is(&rig, 0, second, MS);
	close_rig(&rig);
}

/* Of what passes between two looks a quarter of the limit counts. */
static void test_a_machine_that_stood_still(void **state)
{
	struct rig rig;
	uint64_t ticket;

	(void)state;
	open_rig(&rig, 0);
	rig.storage.answer_ns = 400 * MS;
	ticket = submit(1);
	oldest_is(&rig, 1, ticket, 0);
	now_ns += 90 * MS;
	oldest_is(&rig, 1, ticket, 90 * MS);
	now_ns += 5000 * MS;
	oldest_is(&rig, 1, ticket, 190 * MS);
	now_ns += 100 * MS;
	oldest_is(&rig, 1, ticket, 290 * MS);
	close_rig(&rig);
}

/* Nor does it count twice where copies fail meanwhile: no command becomes older than it is. */
static void test_polls_that_fail(void **state)
{
	struct weir_tracked_command oldest;
	struct rig rig;
	uint64_t ticket;

	(void)state;
	open_far_rig(&rig, WEIR_GPU_MEMORY_NONE);
	rig.storage.answer_ns = 400 * MS;
	ticket = submit(1);
	oldest_is(&rig, 1, ticket, 0);
	oldest = snapshot(&rig);
	answer(&rig, 1, ticket);
	unread = true;
	assert_true(weir_tracker_pending(rig.tracker, &oldest)); /* as far as is known */
	unread = false;
	assert_false(weir_tracker_pending(rig.tracker, &oldest));
	reap(1, ticket);
	ticket = submit(1);
	oldest_is(&rig, 1, ticket, 0);
	unread = true;
	for (unsigned i = 0; i < 3; i++) {
		now_ns += 1000 * MS;
		assert_int_equal(weir_tracker_poll(rig.tracker, &oldest), -EIO);
	}
	unread = false;
	now_ns += 1000 * MS;
	oldest_is(&rig, 1, ticket, 100 * MS);
	now_ns += 1000 * MS;
	oldest_is(&rig, 1, ticket, 200 * MS);
	close_rig(&rig);
}

/* Commands of a queue pair that the host takes over end as the controller says, if it has said so. */
static void test_taken_over(void **state)
{
	static struct weir_event events[2];
	struct rig rig;

	(void)state;
	for (unsigned i = 0; i < sizeof(FIRSTS) / sizeof(FIRSTS[0]); i++) {
		open_rig(&rig, FIRSTS[i]);
		queues[0].depth = DEPTH;
		queues[0].depth_log2 = 3;
		queues[0].sq = WEIR_ADDR(rings[0]);
		queues[0].cq = WEIR_ADDR(rings[0]) + weir_queue_cq_offset(DEPTH);
		for (unsigned k = 0; k < 2; k++) {
			struct weir_slot *slot = slot_of(0, FIRSTS[i] + k);

			weir_store_u64_relaxed_sys(&events[k].word, 0);
			slot->target_kind = WEIR_TARGET_EVENT;
			slot->target = WEIR_ADDR(&events[k]);
			submit(0);
		}
		answer(&rig, 0, FIRSTS[i] + 1);
		assert_int_equal(weir_takeover_end_commands(&rig.storage, 0), 1);
		assert_int_equal((weir_status)weir_load_u64_relaxed_sys(&events[1].word), WEIR_OK);
		assert_int_equal((weir_status)weir_load_u64_relaxed_sys(&events[0].word),
				 WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | NVME_STATUS_ABORTED_BY_HOST);
		assert_int_equal(weir_load_u64_relaxed_sys(&queues[0].completed), 2);
		assert_int_equal(weir_load_u64_relaxed_sys(&queues[0].failed), 1);
		assert_int_equal(weir_load_u64_relaxed_sys(&queues[0].rogue), 0);
		close_rig(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_oldest_is_named),
		cmocka_unit_test(test_words_that_are_copied),
		cmocka_unit_test(test_a_slot_used_again_is_young),
		cmocka_unit_test(test_laps),
		cmocka_unit_test(test_full_rings),
		cmocka_unit_test(test_completions_around_the_end),
		cmocka_unit_test(test_completions_left_in_the_ring),
		cmocka_unit_test(test_taken_over),
		cmocka_unit_test(test_a_machine_that_stood_still),
		cmocka_unit_test(test_polls_that_fail),
	};

	return cmocka_run_group_tests_name("tracker", tests, NULL, NULL);
}
