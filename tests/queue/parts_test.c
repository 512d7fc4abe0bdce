/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts_test.c: what is decided at a queue pair by its words alone: who a completion answers, which one a
 * lane takes by itself, where its data lies, what is kept of a request that failed, when a doorbell is rung,
 * whom a waiting lane helps, which block a context is told of, and what a copy covers. This thread is the
 * lane, the queue pair lies in ordinary memory, and nobody serves it; nothing is timed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/async.h>
#include <weir/core/mix.h>
#include <weir/disk.h>

#include "rig_by_hand.h"

enum { PAGE = NVME_PAGE_BYTES };

/* A completion is the answer to the command of its slot if it names the lap and the queue pair; else it is
 * nobody's, whatever its phase, its status and the head beside it are. */
static void test_who_is_answered(void **state)
{
	enum { ID = 3, LOG2 = 2 };
	static const uint64_t tickets[] = { 1, 5, 0xffff, 0x10001, ((uint64_t)1 << 33) + 2 };
	static const uint32_t others[] = { 0, ID - 1, ID + 1, 0x8000 | ID };

	(void)state;
	for (size_t i = 0; i < sizeof(tickets) / sizeof(*tickets); i++)
		for (uint32_t more = 0; more <= 0xffff; more += 0x5555) {
			uint32_t sequence = (uint32_t)(tickets[i] >> LOG2 << 1) + 1;
			uint32_t dw2 = (uint32_t)ID << 16 | more, dw3 = more << 16 | (tickets[i] & 0xffff);

			assert_true(weir_cq_answers(ID, LOG2, dw2, dw3, sequence));
			assert_false(weir_cq_answers(ID, LOG2, dw2, dw3, sequence - 1)); /* a free slot's */
			assert_false(weir_cq_answers(ID, LOG2, dw2, dw3, sequence + 1));
			assert_false(weir_cq_answers(ID, LOG2, dw2, dw3, sequence + 2));
			assert_false(weir_cq_answers(ID, LOG2, dw2, dw3 ^ 1u << LOG2, sequence));
			assert_false(weir_cq_answers(ID, LOG2, dw2, dw3 ^ 0x8000, sequence));
			for (size_t k = 0; k < sizeof(others) / sizeof(*others); k++)
				assert_false(
					weir_cq_answers(ID, LOG2, others[k] << 16 | more, dw3, sequence));
		}
}

/* A pulled read lies in its slot's part of the staging, or where its entry says on the medium: as far as that
 * reaches. */
static void test_where_pulled_data_lies(void **state)
{
	static const uint32_t places[] = { 1, 2, 1 << 20, (1 << 20) + 1, 0x80000001, ~0u };
	uint64_t staging = (uint64_t)1 << 44, medium = (uint64_t)1 << 45;

	(void)state;
	rig_begin();
	rig.queue.staging = staging;
	rig.queue.staging_log2 = 31;
	for (uint32_t index = 0; index < DEPTH; index++) {
		uint64_t part = staging + ((uint64_t)index << 31);

		rig.queue.medium = 0;
		rig.cq[1].dw0 = 5; /* which says nothing without a medium */
		assert_true(weir_cq_source(&rig.queue, 1, index) == part);
		assert_true(weir_sq_staging(&rig.queue, 7 * DEPTH + index) == part);
		rig.queue.medium = medium;
		rig.cq[1].dw0 = 0;
		assert_true(weir_cq_source(&rig.queue, DEPTH + 1, index) == part);
		for (rig.queue.block_log2 = 9; rig.queue.block_log2 <= 12; rig.queue.block_log2 += 3)
			for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
				rig.cq[1].dw0 = places[i];
				assert_true(weir_cq_source(&rig.queue, 1, index) ==
					    medium + ((uint64_t)places[i] - 1) *
							     ((uint64_t)1 << rig.queue.block_log2));
			}
	}
}

/* The request of slot 2 ends with @status. Return: the event's word then. */
static uint64_t end_with(struct weir_request request, weir_status status, struct weir_event *event)
{
	enum { SLOT = 2 };

	rig_begin();
	weir_event_reset(event);
	weir_sq_fill(&rig.queue, SLOT, request);
	assert_int_equal(weir_cq_end(&rig.queue, SLOT, 1, status), 3);
	assert_int_equal(weir_load_u32_relaxed_dev(&rig.slots[SLOT].sequence), 2);
	return weir_event_peek(event);
}

/* What failed is told whole, the delay that the controller asked for with it; and who may submit it again
 * finds all that it was. */
static void test_a_failed_request_says_what_it_was(void **state)
{
	static const uint32_t opcodes[] = { NVME_OPCODE_READ, NVME_OPCODE_WRITE, NVME_OPCODE_FLUSH };
	enum { KINDS = WEIR_RETRY_KINDS, TRIED = 1 + 2 * WEIR_RETRY_ONE };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (uint32_t kind = 0; kind <= KINDS; kind++)
			for (uint32_t crd = 0; crd <= NVME_STATUS_CRD_MASK; crd++) {
				uint32_t code = kind ? weir_status_retry_code(kind) : NVME_STATUS_WRITE_FAULT;
				weir_status status = (uint32_t)WEIR_STATUS_NVME |
						     (uint32_t)WEIR_GROUP_REQUEST | code |
						     crd << NVME_STATUS_CRD_SHIFT;
				uint32_t blocks = opcodes[i] == NVME_OPCODE_FLUSH ? 0 : 3;
				struct weir_event event;
				struct weir_request request = weir_block_request(
					opcodes[i], ((uint64_t)1 << 33) + 5, blocks, 16 * PAGE, &event);
				struct weir_retried found;
				uint64_t word;

				request.flags = NVME_RW_FUA;
				request.status = TRIED;
				word = end_with(request, status, &event);
				assert_int_equal(weir_event_status(weir_event_test(&event)), status);
				assert_int_equal((word & WEIR_EVENT_RETRY) != 0,
						 kind != 0 && (opcodes[i] != NVME_OPCODE_WRITE ||
							       kind <= WEIR_RETRY_KIND_WISHES));
				if (!(word & WEIR_EVENT_RETRY))
					continue;
				found = weir_retry_poll(&event, word);
				assert_true(found.queue == WEIR_ADDR(&rig.queue));
				assert_int_equal(found.state, TRIED);
				assert_int_equal(found.request.opcode, opcodes[i]);
				assert_int_equal(found.request.blocks, blocks);
				assert_int_equal(found.request.flags, NVME_RW_FUA);
				assert_true(found.request.lba == request.lba);
				assert_true(found.request.buffer == request.buffer);
				assert_true(found.request.target == WEIR_ADDR(&event));
			}
}

/* Commands of a dead queue pair end, and are told why and nothing else; not while its controller may touch
 * memory. */
static void test_commands_of_a_dead_queue(void **state)
{
	static const uint32_t marks[] = { 0, WEIR_QUEUE_ENDED, WEIR_QUEUE_UNSAFE,
					  WEIR_QUEUE_UNSAFE | WEIR_QUEUE_ENDED };

	(void)state;
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		uint32_t unsafe = marks[i] & WEIR_QUEUE_UNSAFE, ended = unsafe ? 0 : 2;
		struct weir_event events[2];

		rig_begin();
		for (uint32_t k = 0; k < 2; k++) {
			weir_event_reset(&events[k]);
			weir_sq_fill(&rig.queue, 2 * k + 1,
				     weir_block_request(NVME_OPCODE_FLUSH, 0, 0, 0, &events[k]));
		}
		weir_store_u32_relaxed_sys(&rig.queue.dead, WEIR_E_DEVICE_GONE | marks[i]);
		assert_int_equal(weir_disk_dead(&rig.disk), WEIR_E_DEVICE_GONE);
		assert_int_equal(weir_disk_unsafe(&rig.disk),
				 unsafe ? (uint32_t)WEIR_E_DEVICE_GONE : WEIR_OK);
		assert_int_equal(weir_disk_over(&rig.disk), unsafe ? (uint32_t)WEIR_E_DEVICE_GONE : WEIR_OK);
		assert_int_equal(weir_cq_reap(&rig.queue, 1), ended);
		for (uint32_t k = 0; k < 2; k++) {
			assert_int_equal(weir_event_status(weir_event_test(&events[k])),
					 ended ? (uint32_t)WEIR_E_DEVICE_GONE : WEIR_OK);
			assert_int_equal(weir_load_u32_relaxed_dev(&rig.slots[2 * k + 1].sequence),
					 ended ? 2 : 1);
		}
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.completed), ended);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.failed), ended);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.reap), 0);
		assert_int_equal(weir_disk_over(&rig.disk), WEIR_E_DEVICE_GONE);
		assert_int_equal(weir_cq_reap(&rig.queue, 1), 0);
	}
}

/* A controller with shadow doorbells is rung if it waits at a position that the move leaves; what is counted
 * is what was rung. */
static void test_shadows_are_rung_when_asked_for(void **state)
{
	static struct {
		uint32_t shadows[PAGE / 4], events[PAGE / 4];
	} page;
	uint64_t rings = 0;

	(void)state;
	rig_begin();
	rig.queue.shadow = WEIR_ADDR(page.shadows);
	for (uint32_t which = 0; which < 2; which++)
		for (uint64_t before = 0; before < DEPTH; before++)
			for (uint64_t moved = 1; moved < DEPTH; moved++)
				for (uint32_t event = 0; event < DEPTH; event++) {
					uint32_t wanted = (event - before) % DEPTH < moved;
					uint32_t value = (uint32_t)(before + moved) % DEPTH;
					/* tickets and positions count on */
					uint64_t at = 9 * DEPTH + before;

					memset(&page, 0xee, sizeof(page));
					page.events[which] = event;
					rig.doorbells[which] = 77;
					weir_queue_ring(&rig.queue, WEIR_ADDR(&rig.doorbells[which]), at,
							at + moved);
					rings += wanted;
					assert_int_equal(page.shadows[which], value);
					assert_int_equal(page.shadows[!which], 0xeeeeeeee);
					assert_int_equal(rig.doorbells[which], wanted ? value : 77);
					assert_true(weir_load_u64_relaxed_dev(&rig.queue.rings) == rings);
				}
}

enum { COPY_BYTES = 320, COPY_MOST = 200, COPY_FIRST = 16 };

/* @bytes from @source to @target, counted from the first byte; nothing else was written. */
static void check_copy(const unsigned char *to, const unsigned char *from, uint32_t target, uint32_t source,
		       uint32_t bytes)
{
	for (uint32_t i = 0; i < COPY_BYTES; i++)
		if (to[i] != (i - target < bytes ? from[source + i - target] : 0xee))
			fail_msg("%u bytes from %u to %u: byte %u", bytes, source, target, i);
}

/* Copies of each length between addresses of each kind end where they should. */
static void test_copies_keep_to_their_length(void **state)
{
	unsigned char from[COPY_BYTES] __attribute__((aligned(16))),
		to[COPY_BYTES] __attribute__((aligned(16)));

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i % 199);
	for (uint32_t target = COPY_FIRST; target < 2 * COPY_FIRST; target++)
		for (uint32_t source = COPY_FIRST; source < 2 * COPY_FIRST; source++)
			for (uint32_t bytes = 0; bytes <= COPY_MOST; bytes++) {
				memset(to, 0xee, sizeof(to));
				weir_wave_move(1, WEIR_ADDR(to) + target, WEIR_ADDR(from) + source, bytes);
				check_copy(to, from, target, source, bytes);
				if ((target | source | bytes) % 4)
					continue;
				memset(to, 0xee, sizeof(to));
				weir_wave_copy(1, WEIR_ADDR(to) + target, WEIR_ADDR(from) + source, bytes);
				check_copy(to, from, target, source, bytes);
			}
}

enum { ENGINES = 3, EACH = 2, FORWARDERS = 2 };

/* Who waits on a volume whose blocks lanes place helps each of its queue pairs by and by, its own ones most
 * often; of a closed one only those of the volume. */
static void test_every_queue_of_a_volume_is_helped(void **state)
{
	static struct weir_queue queues[ENGINES * EACH], forwarders[FORWARDERS];
	static struct weir_placed placed;
	uint32_t engines[ENGINES * EACH] = { 0 }, own[FORWARDERS] = { 0 };

	(void)state;
	rig_begin();
	placed.queues = WEIR_ADDR(queues);
	placed.engines = ENGINES;
	placed.queues_each = EACH;
	rig.disk.queues = WEIR_ADDR(forwarders);
	rig.disk.queue_count = FORWARDERS;
	for (uint32_t opened = 0; opened < 2; opened++) {
		for (uint32_t i = 0; i < FORWARDERS; i++)
			forwarders[i].volume = opened ? WEIR_ADDR(&placed) : 0;
		for (uint32_t i = 0; i < 32 * (ENGINES + 1); i++) {
			WEIR_GLOBAL struct weir_queue *queue = weir_disk_queue_by(&rig.disk, i);
			uint64_t at = (WEIR_ADDR(queue) - WEIR_ADDR(queues)) / sizeof(*queue);

			if (at < ENGINES * EACH)
				engines[at]++;
			else
				own[(WEIR_ADDR(queue) - WEIR_ADDR(forwarders)) / sizeof(*queue)]++;
		}
		for (uint32_t i = 0; i < ENGINES * EACH; i++)
			assert_int_equal(engines[i], !opened ? 0 : i % EACH ? 4 : 28);
	}
	assert_true(own[0] > own[1] && own[1] > 0);
	assert_int_equal(own[0] + own[1], 32 * (ENGINES + 1) + 32);
}

/* What files on storage and orders of epochs are made with: the first words of splitmix64. */
static void test_words_that_never_change(void **state)
{
	static const uint64_t words[] = { 0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f };
	uint64_t next = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		assert_true(weir_mix_next(&next) == words[i]);
	assert_true(weir_mix_u64(0) == 0);
	assert_true(weir_mix_u64(WEIR_MIX_STEP) == words[0]);
}

enum { LONG_LOG2 = 3, LONG = 1 << LONG_LOG2 };

/** struct ring - of a queue pair whose quarter is more than one entry */
static struct ring {
	struct weir_slot slots[LONG];
	struct nvme_sqe sq[LONG];
	struct nvme_cqe cq[LONG];
} ring;

static void open_ring(void)
{
	rig_begin();
	memset(&ring, 0, sizeof(ring));
	rig.queue.slots = WEIR_ADDR(ring.slots);
	rig.queue.sq = WEIR_ADDR(ring.sq);
	rig.queue.cq = WEIR_ADDR(ring.cq);
	rig.queue.depth = LONG;
	rig.queue.depth_log2 = LONG_LOG2;
	rig.queue.path = WEIR_PATH_PULL;
}

/* The command of @ticket is under way, and tells @event. */
static void send(uint64_t ticket, struct weir_event *event)
{
	weir_event_reset(event);
	weir_sq_fill(&rig.queue, ticket, weir_block_request(NVME_OPCODE_FLUSH, 0, 0, 0, event));
}

/* The controller writes entry @position of the completion ring. */
static void answer(uint64_t position, uint64_t cid, uint32_t status)
{
	ring.cq[position % LONG].dw3 =
		(uint32_t)(cid & 0xffff) | (position / LONG % 2 == 0) << 16 | status << 17;
}

/* What a lane finds that reaps by itself. */
enum { GOOD, ABSENT, LOCKED, FAILED, SEVERAL, STRAY, QUARTER, FINDS };

/* A lane by itself takes the one completion that has come. Whatever else there is it leaves as it is, and the
 * ring to others. */
static void test_one_lane_takes_one_completion(void **state)
{
	static const uint32_t found[FINDS] = { WEIR_ALONE_DONE,   WEIR_ALONE_NOTHING, WEIR_ALONE_NOTHING,
					       WEIR_ALONE_OTHERS, WEIR_ALONE_OTHERS,  WEIR_ALONE_OTHERS,
					       WEIR_ALONE_OTHERS };

	(void)state;
	for (uint32_t find = 0; find < FINDS; find++) {
		uint64_t head = find == QUARTER, reap = head << 1 | (find == LOCKED);
		struct weir_event event;
		struct weir_alone alone;

		open_ring();
		weir_store_u64_relaxed_dev(&rig.queue.reap, reap);
		send(head, &event);
		if (find != ABSENT)
			answer(head, find == STRAY ? head + LONG : head,
			       find == FAILED ? NVME_STATUS_WRITE_FAULT : 0);
		if (find == SEVERAL)
			answer(head + 1, head + 1, 0);
		alone = weir_alone_reap(&rig.queue);
		assert_int_equal(alone.found, found[find]);
		assert_true(alone.word == (find == GOOD ? WEIR_ADDR(&event) : 0));
		assert_true(weir_event_peek(&event) ==
			    (find == GOOD ? weir_event_word(WEIR_OK, WEIR_PATH_PULL) : 0));
		assert_int_equal(weir_load_u32_relaxed_dev(&ring.slots[head].sequence), find == GOOD ? 2 : 1);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.completed), find == GOOD);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.reap), find == GOOD ? 2 : reap);
	}
}

/* The controller learns how far its entries were read: once it is a quarter of the ring, or when no more
 * come; and once. */
static void test_what_was_read_is_told(void **state)
{
	struct weir_event event;
	uint64_t known = 0, position = 0;

	(void)state;
	open_ring();
	for (; position < 5 * LONG; position++) {
		rig.doorbells[1] = 77;
		send(position, &event);
		answer(position, position, 0);
		assert_int_equal(weir_cq_reap(&rig.queue, 1), 1);
		assert_true(weir_event_peek(&event) != 0);
		if (position + 1 - known >= LONG / 4)
			known = position + 1;
		assert_int_equal(rig.doorbells[1], known == position + 1 ? known % LONG : 77);
	}
	send(position, &event);
	answer(position, position, 0);
	for (unsigned idle = 0; idle < 3; idle++) {
		rig.doorbells[1] = 77;
		assert_int_equal(weir_cq_reap(&rig.queue, 1), idle == 0);
		assert_int_equal(rig.doorbells[1], idle == 1 ? (position + 1) % LONG : 77);
	}
	assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.completed), position + 1);
}

/* The commands of a dead storage have ended, but for one that came just then, or that is just being ended: in
 * whichever queue pair that is, whoever waits goes on. */
static void test_a_command_in_any_queue_is_waited_for(void **state)
{
	enum { QUEUES = 3 };
	static struct weir_queue queues[QUEUES];
	static struct weir_slot slots[QUEUES][DEPTH];

	(void)state;
	rig_begin();
	for (uint32_t i = 0; i < QUEUES; i++) {
		queues[i] = rig.queue;
		queues[i].slots = WEIR_ADDR(slots[i]);
		weir_store_u32_relaxed_sys(&queues[i].dead, WEIR_E_DEVICE_GONE | WEIR_QUEUE_ENDED);
	}
	rig.disk.queues = WEIR_ADDR(queues);
	rig.disk.queue_count = QUEUES;
	assert_int_equal(weir_disk_over(&rig.disk), WEIR_E_DEVICE_GONE);
	for (uint32_t i = 0; i < QUEUES; i++) {
		for (uint32_t index = 0; index < DEPTH; index++) {
			weir_store_u32_relaxed_dev(&slots[i][index].sequence, 7);
			assert_int_equal(weir_disk_over(&rig.disk), WEIR_OK);
			weir_store_u32_relaxed_dev(&slots[i][index].sequence, 8);
		}
		weir_store_u64_relaxed_dev(&queues[i].reap, 5);
		assert_int_equal(weir_disk_over(&rig.disk), WEIR_OK);
		weir_store_u64_relaxed_dev(&queues[i].reap, 6);
		assert_int_equal(weir_disk_over(&rig.disk), WEIR_E_DEVICE_GONE);
	}
}

/* A line that could not be had is told by the storage and its block there, however far behind, and by the
 * lane that met it. */
static void test_the_members_block_is_told(void **state)
{
	static const struct {
		uint64_t line, lba;
		uint32_t member;
	} cases[] = { { 0, 0, 0 },
		      { 1, 8, 0 },
		      { 2, 0, 1 },
		      { 7, 24, 1 },
		      { ((uint64_t)1 << 36) + 5, ((uint64_t)1 << 38) + 24, 0 },
		      { ((uint64_t)1 << 36) + 7, ((uint64_t)1 << 38) + 24, 1 } };
	static struct weir_lines lines = { .line_log2 = 12 };
	struct weir_disk disks[2] = { { .id = 3, .block_log2 = 9, .blocks = 1000 },
				      { .id = 7, .block_log2 = 9, .blocks = 2000 } };
	struct weir_cpu_lane lane = { .lanes = 1, .threads = 100, .thread = 77 }, *self = weir_cpu_self;
	struct weir_fault fault;
	struct weir_array array = { .lines = WEIR_ADDR(&lines),
				    .fault = WEIR_ADDR(&fault),
				    .extent = {
					    .disks = WEIR_ADDR(disks), .disk_count = 2, .unit_log2 = 1 } };

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		uint64_t line = cases[i / 2].line;

		memset(&fault, 0, sizeof(fault));
		weir_cpu_self = &lane;
		if (i % 2)
			weir_array_fault(&array, (line << 12) + 100, WEIR_E_TIMEOUT);
		else
			assert_int_equal(weir_async_refuse(&array, line, WEIR_E_TIMEOUT), WEIR_E_TIMEOUT);
		weir_cpu_self = self;
		assert_int_equal(fault.status, WEIR_E_TIMEOUT);
		assert_int_equal(fault.source, WEIR_FAULT_LBA);
		assert_int_equal(fault.disk, disks[cases[i / 2].member].id);
		assert_true(fault.position == cases[i / 2].lba);
		assert_int_equal(fault.limit, disks[cases[i / 2].member].blocks);
		assert_int_equal(fault.thread, 77);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_is_answered),
		cmocka_unit_test(test_where_pulled_data_lies),
		cmocka_unit_test(test_a_failed_request_says_what_it_was),
		cmocka_unit_test(test_commands_of_a_dead_queue),
		cmocka_unit_test(test_shadows_are_rung_when_asked_for),
		cmocka_unit_test(test_copies_keep_to_their_length),
		cmocka_unit_test(test_every_queue_of_a_volume_is_helped),
		cmocka_unit_test(test_one_lane_takes_one_completion),
		cmocka_unit_test(test_what_was_read_is_told),
		cmocka_unit_test(test_a_command_in_any_queue_is_waited_for),
		cmocka_unit_test(test_the_members_block_is_told),
		cmocka_unit_test(test_words_that_never_change),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
