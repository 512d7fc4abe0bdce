/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared_queues_test.c: what is noted of queue pairs of a shared controller. The test is the controller.
 *
 * Checked: commands that are done, refused, and left unanswered, and their time; which numbers a storage
 * gets; who is halted, and when the system gets it; words of shadow doorbells of a number that somebody had
 * before.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "device/context.h"
#include "transport/nvme/shared_state.h"

enum { PAIRS = 4, DOORBELL = 4, WORDS = 2 * NVME_PAGE_BYTES / DOORBELL, REFUSED = NVME_STATUS_INVALID_FIELD };

/** enum answer - of the controller to an admin command */
enum answer { DONE, REFUSES, SILENT };

#define OLD 0x55555555u

static _Alignas(NVME_PAGE_BYTES) unsigned char memory[WEIR_ADMIN_MEMORY_BYTES];
static _Alignas(NVME_PAGE_BYTES) uint32_t shadow[WORDS];
static uint32_t doorbells[2 * (PAIRS + 1)];
static enum answer answer;
static struct weir_nvme_number numbers[PAIRS];
static struct weir_nvme_shared controller;
static struct weir_nvme_member member, other;
static uint32_t csts;

/* Asked while a command is waited for: it is answered now, or never. */
static uint32_t read32(struct weir_transport *transport, uint32_t offset)
{
	struct nvme_cqe *entry = (struct nvme_cqe *)(void *)(memory + NVME_PAGE_BYTES);

	(void)transport;
	assert_int_equal(offset, NVME_REGISTER_CSTS);
	if (doorbells[0] && answer != SILENT)
		entry->dw3 = 1u << 16 | (answer == REFUSES ? (uint32_t)REFUSED << 17 : 0);
	return csts;
}

static uint64_t doorbell(struct weir_transport *transport, unsigned index)
{
	(void)transport;
	return WEIR_ADDR(&doorbells[index]);
}

static unsigned halts, ways;
static int halt_error;
static bool is_wanted;

static int halt(struct weir_transport *transport)
{
	(void)transport;
	halts++;
	return halt_error;
}

static bool wanted(struct weir_transport *transport)
{
	(void)transport;
	return is_wanted;
}

static void give_way(struct weir_transport *transport)
{
	(void)transport;
	ways++;
}

static struct weir_transport raw = {
	.ops = &(const struct weir_transport_ops){ .size = sizeof(struct weir_transport_ops),
						   .read32 = read32,
						   .doorbell = doorbell,
						   .wanted = wanted,
						   .give_way = give_way,
						   .halt = halt },
	.doorbell_bytes = DOORBELL
};

static void begin(void)
{
	static char name[] = "test", uri[] = "test:";

	memset(memory, 0, sizeof(memory));
	memset(doorbells, 0, sizeof(doorbells));
	memset(numbers, 0, sizeof(numbers));
	csts = NVME_CSTS_READY;
	halts = ways = 0;
	halt_error = 0;
	is_wanted = false;
	other = (struct weir_nvme_member){ .controller = &controller, .uri = uri };
	member = (struct weir_nvme_member){ .controller = &controller, .uri = uri };
	controller = (struct weir_nvme_shared){ .name = name,
						.raw = { .transport = &raw },
						.members = &member,
						.lock = PTHREAD_MUTEX_INITIALIZER,
						.memory = memory,
						.numbers = numbers,
						.granted = PAIRS,
						.shadow_file = -1 };
	controller.admin = (struct weir_admin){
		.transport = &raw, .memory = memory, .bus = WEIR_ADDR(memory), .phase = 1, .command_ms = 1
	};
}

/* What is noted of pair 2, of which it was noted before that the controller has @had of it. */
static bool noted(uint8_t opcode, enum answer is, bool had)
{
	const struct nvme_sqe command = { .cdw0 = opcode, .cdw10 = 2 };
	bool of_sq = opcode == NVME_ADMIN_CREATE_SQ || opcode == NVME_ADMIN_DELETE_SQ;
	uint32_t result;
	int status;

	begin();
	numbers[1] = (struct weir_nvme_number){ .owner = &member, .sq = had, .cq = had };
	answer = is;
	status = weir_nvme_member_admin(&member.base, &command, 1, &result);
	assert_true(is == DONE ? status == 0 : is == REFUSES ? status == REFUSED : status < 0);
	assert_int_equal(of_sq ? numbers[1].cq : numbers[1].sq, had); /* the other one stays */
	for (unsigned i = 0; i < PAIRS; i++)
		assert_true(i == 1 || (!numbers[i].sq && !numbers[i].cq));
	return of_sq ? numbers[1].sq : numbers[1].cq;
}

/* What was left unanswered may be done, or not: either way the controller may have the pair. */
static void what_the_controller_may_have(void **state)
{
	static const uint8_t creations[] = { NVME_ADMIN_CREATE_CQ, NVME_ADMIN_CREATE_SQ },
			     deletions[] = { NVME_ADMIN_DELETE_CQ, NVME_ADMIN_DELETE_SQ };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_true(noted(creations[i], DONE, false));
		assert_false(noted(creations[i], REFUSES, false));
		assert_true(noted(creations[i], SILENT, false));
		assert_false(noted(deletions[i], DONE, true));
		assert_true(noted(deletions[i], REFUSES, true));
		assert_true(noted(deletions[i], SILENT, true));
	}
}

/* As long as whoever asks says, of each command anew. */
static void a_command_has_the_time_that_it_is_given(void **state)
{
	static const unsigned times_ms[] = { 7, 60000, 3 };
	const struct nvme_sqe command = { .cdw0 = NVME_ADMIN_CREATE_CQ, .cdw10 = 2 };
	uint32_t result;

	(void)state;
	for (unsigned i = 0; i < sizeof(times_ms) / sizeof(times_ms[0]); i++) {
		begin();
		answer = DONE;
		assert_int_equal(weir_nvme_member_admin(&member.base, &command, times_ms[i], &result), 0);
		assert_int_equal(controller.admin.command_ms, times_ms[i]);
	}
}

/* A storage whose pairs a reset has ended is told so, and sends nothing before it knows. */
static void a_member_behind_sends_nothing(void **state)
{
	const struct nvme_sqe command = { .cdw0 = NVME_ADMIN_CREATE_CQ, .cdw10 = 2 };
	unsigned ids[PAIRS] = { 0 };
	uint32_t result;

	(void)state;
	begin();
	answer = DONE;
	controller.generation = 5;
	member.ids = ids;
	assert_int_equal(weir_nvme_member_adopt(&member.base, &(struct weir_rings){ .index = 0 }), 0);
	assert_int_equal(weir_nvme_member_read32(&member.base, NVME_REGISTER_CSTS), NVME_CSTS_READY);
	controller.generation++;
	assert_true(weir_nvme_member_was_reset(&member.base));
	assert_int_equal(weir_nvme_member_read32(&member.base, NVME_REGISTER_CSTS), 0);
	assert_true(weir_nvme_member_admin(&member.base, &command, 1, &result) < 0);
	assert_int_equal(doorbells[0], 0);
	assert_false(numbers[1].cq);
	assert_int_equal(weir_nvme_member_reset(&member.base), 0); /* one that was over */
	assert_int_equal(doorbells[0], 0);
	assert_false(weir_nvme_member_was_reset(&member.base));
	assert_int_equal(weir_nvme_member_admin(&member.base, &command, 1, &result), 0);
	assert_true(numbers[1].cq);
}

/* Numbers of its own are taken again in their order, and no more than there are. */
static void numbers_are_as_many_as_there_are(void **state)
{
	unsigned ids[PAIRS + 1] = { 0 };

	(void)state;
	begin();
	member.ids = ids;
	numbers[1].owner = (struct weir_nvme_member *)&controller; /* another one's */
	assert_int_equal(weir_nvme_shared_free(&controller), PAIRS - 1);
	for (unsigned i = 0; i < PAIRS - 1; i++)
		assert_int_equal(weir_nvme_member_adopt(&member.base, &(struct weir_rings){ .index = i }), 0);
	assert_int_equal(weir_nvme_member_queue_id(&member.base, 0), 1);
	assert_int_equal(weir_nvme_member_queue_id(&member.base, 1), 3);
	assert_int_equal(weir_nvme_member_queue_id(&member.base, PAIRS - 2), PAIRS);
	assert_int_equal(weir_nvme_member_adopt(&member.base, &(struct weir_rings){ .index = PAIRS - 1 }),
			 -EBUSY);
	assert_int_equal(weir_nvme_member_adopt(&member.base, &(struct weir_rings){ .index = 1 }), 0);
	assert_int_equal(member.count, PAIRS - 1);
	assert_int_equal(weir_nvme_member_queue_id(&member.base, 1), 3);
}

/** struct one - of two storages that is given up: whether the other one needs the controller, what the
 * controller is, and whether all of it is halted for that */
struct one {
	bool there, dead, finished, asked, halted;
	uint32_t csts;
	bool halts;
};

/* A storage without queue pairs goes alone where others go on with a controller that works; else all of it is
 * halted, and whether that was done is said. */
static void who_is_halted(void **state)
{
	static const struct one rows[] = {
		{ .there = true, .csts = NVME_CSTS_READY },
		{ .csts = NVME_CSTS_READY, .halts = true },
		{ .there = true, .dead = true, .csts = NVME_CSTS_READY, .halts = true },
		{ .there = true, .finished = true, .csts = NVME_CSTS_READY, .halts = true },
		{ .there = true, .asked = true, .csts = NVME_CSTS_READY, .halts = true },
		{ .there = true, .halted = true, .csts = NVME_CSTS_READY, .halts = true },
		{ .there = true, .csts = 0, .halts = true },
		{ .there = true, .csts = NVME_CSTS_READY | NVME_CSTS_FATAL, .halts = true },
	};

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const struct one *row = &rows[i / 2];
		int error = i % 2 ? -EIO : 0;

		begin();
		member.next = row->there ? &other : NULL;
		other.dead = row->dead;
		other.finished = row->finished;
		controller.asked = row->asked;
		controller.halted = row->halted;
		csts = row->csts;
		halt_error = error;
		assert_int_equal(weir_nvme_member_halt(&member.base), row->halts ? error : 0);
		assert_true(member.dead);
		assert_int_equal(halts, row->halts);
		assert_int_equal(controller.halted, row->halts);
	}
}

/* The controller goes when the lanes of no storage ring any more, and not before the system wants it. */
static void the_system_gets_it_from_the_last(void **state)
{
	(void)state;
	begin();
	member.next = &other;
	weir_nvme_member_give_way(&member.base);
	weir_nvme_member_give_way(&other.base);
	assert_false(weir_nvme_member_wanted(&member.base));
	assert_false(controller.asked || member.yielded || other.yielded);
	is_wanted = true;
	assert_true(weir_nvme_member_wanted(&other.base));
	assert_true(controller.asked);
	weir_nvme_member_give_way(&member.base);
	weir_nvme_member_give_way(&member.base);
	assert_int_equal(ways, 0);
	weir_nvme_member_give_way(&other.base);
	assert_int_equal(ways, 1);
	controller.halted = true;
	assert_true(weir_nvme_member_read32(&member.base, NVME_REGISTER_CSTS) == UINT32_MAX);
	controller.asked = false;
	assert_int_equal(weir_nvme_member_read32(&member.base, NVME_REGISTER_CSTS),
			 NVME_CSTS_READY | NVME_CSTS_FATAL);
}

/* Whose number is free again is nobody's; those of others stay. */
static void numbers_of_who_leaves(void **state)
{
	(void)state;
	begin();
	member.next = &other;
	numbers[0].owner = numbers[3].owner = &member;
	numbers[2] = (struct weir_nvme_number){ .owner = &other, .sq = true, .cq = true };
	weir_nvme_shared_drop(&member);
	assert_int_equal(weir_nvme_shared_free(&controller), PAIRS - 1);
	assert_null(numbers[0].owner);
	assert_null(numbers[3].owner);
	assert_ptr_equal(numbers[2].owner, &other);
	assert_true(numbers[2].sq && numbers[2].cq);
	assert_int_equal(halts, 0);
}

/* In both pages: doorbells and EventIdx. */
static void words_of_a_number_that_was_used(void **state)
{
	unsigned ids[PAIRS] = { 0 };

	(void)state;
	begin();
	member.ids = ids;
	controller.shadow_file = 0;
	controller.shadow_pages = shadow;
	for (unsigned id = 1; id <= PAIRS; id++) {
		for (unsigned i = 0; i < WORDS; i++)
			shadow[i] = OLD;
		assert_int_equal(
			weir_nvme_member_adopt(&member.base, &(struct weir_rings){ .index = id - 1 }), 0);
		assert_int_equal(weir_nvme_member_queue_id(&member.base, id - 1), id);
		for (unsigned i = 0; i < WORDS; i++)
			assert_int_equal(shadow[i], i % (WORDS / 2) / 2 == id ? 0 : OLD);
	}
	assert_int_equal(weir_nvme_shared_free(&controller), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_controller_may_have),
		cmocka_unit_test(a_command_has_the_time_that_it_is_given),
		cmocka_unit_test(a_member_behind_sends_nothing),
		cmocka_unit_test(numbers_are_as_many_as_there_are),
		cmocka_unit_test(who_is_halted),
		cmocka_unit_test(the_system_gets_it_from_the_last),
		cmocka_unit_test(numbers_of_who_leaves),
		cmocka_unit_test(words_of_a_number_that_was_used),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("shared_queues", tests, NULL, NULL);
}
