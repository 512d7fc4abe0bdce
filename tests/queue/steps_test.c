/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steps_test.c: steps that one lane takes by itself at a queue pair: what it may take alone, which addresses
 * its command has, until when and for whom it waits, from when on and whether it submits again, which error a
 * context tells of, what a batch gives back, and its part of a copy.
 * This thread is the lane, the queue pair lies in ordinary memory, and nobody serves it; nothing is timed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <weir/transfer.h>
#include <weir/volume.h>

#include "rig_by_hand.h"

enum { RETRIES = 3, PAGE = NVME_PAGE_BYTES, BLOCK_LOG2 = 9 };

static void open_rig(void)
{
	rig_begin();
	rig.disk.timeout_ns = 7000;
	rig.disk.retry = RETRIES;
}

/* What a lane comes to that tries alone with @bytes at @buffer. */
static uint32_t alone(uint64_t buffer, uint32_t bytes)
{
	struct weir_event event;

	open_rig();
	return weir_alone_submit(&rig.queue,
				 weir_block_request(NVME_OPCODE_READ, 0, bytes >> BLOCK_LOG2, buffer, &event))
		.found;
}

/* The list of a slot is written by whoever has the slot: alone, a lane has none before its command is
 * composed. */
static void test_alone_with_two_pages_at_most(void **state)
{
	static const struct {
		uint64_t buffer;
		uint32_t bytes, pages;
	} cases[] = {
		{ 16 * PAGE, PAGE, 1 },           { 16 * PAGE, 2 * PAGE, 2 },
		{ 16 * PAGE + 512, PAGE, 2 },     { 17 * PAGE - 512, PAGE + 512, 2 },
		{ 16 * PAGE + 512, 2 * PAGE, 3 }, { 17 * PAGE - 512, 2 * PAGE, 3 },
		{ 16 * PAGE, 2 * PAGE + 512, 3 }, { 16 * PAGE + 4, 2 * PAGE, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t found = alone(cases[i].buffer, cases[i].bytes);

		assert_int_equal(found, cases[i].pages <= 2 ? WEIR_ALONE_DONE : WEIR_ALONE_NOTHING);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.tail), cases[i].pages <= 2);
		for (unsigned k = 0; k < DEPTH * LIST; k++)
			assert_int_equal(rig.lists[k], 0);
	}
}

/* A bus may have memory elsewhere than lanes do: each address that a controller is told is the bus's, of a
 * list's pages, too. */
static void test_every_page_is_where_the_bus_has_it(void **state)
{
	enum { PAGES = 5, TICKET = 2 };
	uint64_t buffer = 16 * PAGE + 512, offset = (uint64_t)1 << 40;
	struct weir_event event;

	(void)state;
	for (uint32_t pages = 1; pages <= PAGES; pages++) {
		uint32_t bytes = pages * PAGE - 512;
		struct nvme_sqe sqe;

		open_rig();
		rig.queue.bus_offset = offset;
		sqe = weir_sq_command(
			&rig.queue, TICKET,
			weir_block_request(NVME_OPCODE_READ, 0, bytes >> BLOCK_LOG2, buffer, &event));
		assert_true(sqe.prp1 == buffer + offset);
		if (pages <= 2)
			assert_true(sqe.prp2 == (pages == 1 ? 0 : 17 * PAGE + offset));
		else
			assert_true(sqe.prp2 == WEIR_ADDR(&rig.lists[TICKET * LIST]) + offset);
		for (uint32_t i = 0; i < LIST; i++)
			assert_true(rig.lists[TICKET * LIST + i] ==
				    (pages > 2 && i < pages - 1 ? (17 + i) * PAGE + offset : 0));
	}
}

/* A timeout is as long as it was asked for, however long. */
static void test_deadlines(void **state)
{
	static const uint64_t timeouts[] = { 1, 4294967, 4294968, (uint64_t)1 << 32, (uint64_t)3600000000u };

	(void)state;
	open_rig();
	for (size_t i = 0; i < sizeof(timeouts) / sizeof(*timeouts); i++) {
		uint64_t before = weir_clock_ns(), deadline = weir_deadline(&rig.disk, timeouts[i]);

		assert_true(deadline >= before + timeouts[i] * 1000);
		assert_true(deadline <= weir_clock_ns() + timeouts[i] * 1000);
	}
	for (uint64_t us = WEIR_FOREVER; us > WEIR_FOREVER / 2500; us -= us / 7)
		assert_true(weir_deadline(&rig.disk, us) > weir_clock_ns() + INT64_MAX / 2);
	assert_true(weir_deadline(&rig.disk, WEIR_FOREVER) == WEIR_FOREVER);
	assert_true(weir_deadline(&rig.disk, 0) <= weir_clock_ns() + rig.disk.timeout_ns);
}

/* The tick from which on a command may be submitted again does not begin before the delay has passed. */
static void test_ticks_come_behind(void **state)
{
	(void)state;
	for (uint64_t tick = 0; tick <= WEIR_RETRY_TICKS; tick += 0xffff)
		for (uint64_t more = 0; more < (uint64_t)1 << WEIR_RETRY_TICK_LOG2; more += 0x7fffff) {
			uint64_t ns = (tick << WEIR_RETRY_TICK_LOG2) + more;
			uint32_t found = weir_retry_tick(ns);

			assert_true(found != 0);
			if (tick < WEIR_RETRY_TICKS) /* it has not wrapped */
				assert_true((uint64_t)found << WEIR_RETRY_TICK_LOG2 > ns);
		}
}

static weir_status status_of(uint32_t code)
{
	return (uint32_t)WEIR_STATUS_NVME | (uint32_t)WEIR_GROUP_REQUEST | code;
}

/* Ticks wrap every few days: what is ahead of the clock waits, what is behind it does not, whichever of the
 * two numbers is the larger. */
static void test_ticks_that_have_wrapped(void **state)
{
	uint32_t half = WEIR_RETRY_TICKS / 2, before = 1 + WEIR_RETRY_ONE;

	(void)state;
	for (uint32_t apart = 1000; apart < half; apart += (half - 2000) / 4) {
		uint64_t now = weir_clock_ns();
		uint32_t tick = (uint32_t)(now >> WEIR_RETRY_TICK_LOG2),
			 ahead = before | (uint32_t)(((tick + apart) & WEIR_RETRY_TICKS) | 1)
						  << WEIR_RETRY_AT_SHIFT,
			 behind = before | (uint32_t)(((tick - apart) & WEIR_RETRY_TICKS) | 1)
						   << WEIR_RETRY_AT_SHIFT;
		weir_status status = status_of(NVME_STATUS_COMMAND_INTERRUPTED);

		assert_int_equal(weir_retry_by(RETRIES, status, ahead, WEIR_FOREVER), ahead);
		assert_int_equal(weir_retry_by(RETRIES, status, behind, WEIR_FOREVER), before);
		assert_true(weir_retry_now(before) && !weir_retry_now(ahead));
	}
}

/* The controller has three delays, of which a status names one; who has no time for it is told at once. */
static void test_delays(void **state)
{
	static const uint64_t tenths[] = { 0, 7, 300, 0xffff };
	uint64_t terms = RETRIES | tenths[1] << 16 | tenths[2] << 32 | tenths[3] << 48;

	(void)state;
	for (uint32_t crd = 0; crd <= NVME_STATUS_CRD_MASK; crd++) {
		weir_status status =
			status_of(NVME_STATUS_NAMESPACE_NOT_READY | crd << NVME_STATUS_CRD_SHIFT);
		uint64_t delay = tenths[crd] * 100000000, now = weir_clock_ns();
		uint32_t next = weir_retry_by(terms, status, 0, now + 3 * delay + 600000000000), ahead;

		assert_true(weir_retry_delay_ns(terms, status) == delay);
		assert_int_equal(next & WEIR_RETRY_COUNTS, 1 + WEIR_RETRY_ONE);
		assert_int_equal(weir_retry_now(next), crd == 0);
		if (crd == 0)
			continue;
		assert_int_equal(weir_retry_by(terms, status, 0, now + delay / 2), 0);
		assert_int_equal(weir_retry_by(terms, status, 0, now), 0);
		ahead = ((next >> WEIR_RETRY_AT_SHIFT) - (uint32_t)(now >> WEIR_RETRY_TICK_LOG2)) &
			WEIR_RETRY_TICKS;
		assert_true(ahead >= delay >> WEIR_RETRY_TICK_LOG2);
		assert_true(ahead < WEIR_RETRY_TICKS / 2); /* it is not behind the clock */
	}
}

/* As often as the storage says, up to the most that it can; not once behind the deadline. */
static void test_how_often(void **state)
{
	static const uint32_t allowed[] = { 0, 1, WEIR_RETRIES_DEFAULT, WEIR_RETRIES_MOST };
	weir_status status = status_of(NVME_STATUS_NAMESPACE_NOT_READY);

	(void)state;
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++) {
		uint32_t tries = 0;

		for (uint32_t next = 0; (next = weir_retry_by(allowed[i], status, next, WEIR_FOREVER)) != 0;)
			assert_true(weir_retry_now(next) && ++tries <= allowed[i]);
		assert_int_equal(tries, allowed[i]);
		assert_int_equal(weir_retry_by(allowed[i], status, 0, 1), 0);
		assert_int_equal(weir_retry_by(allowed[i], status | NVME_STATUS_DNR, 0, WEIR_FOREVER), 0);
		assert_int_equal(weir_retry_by(allowed[i], WEIR_E_TIMEOUT, 0, WEIR_FOREVER), 0);
	}
}

/*
 * A request whose wait submits it again by itself: of one that the host ended nobody knows whether it was
 * carried out, so a write is not. However it ended before: the last status counts.
 */
static void test_what_is_submitted_again(void **state)
{
	static const uint32_t unknown[] = { NVME_STATUS_ABORT_REQUESTED, NVME_STATUS_ABORTED_SQ_DELETED };

	(void)state;
	open_rig();
	for (uint32_t state_before = 0; state_before <= 1; state_before++) {
		for (size_t i = 0; i < 2; i++) {
			assert_int_equal(weir_request_retries(&rig.disk, NVME_OPCODE_WRITE,
							      status_of(unknown[i]), state_before,
							      WEIR_FOREVER),
					 0);
			assert_true(weir_request_retries(&rig.disk, NVME_OPCODE_READ, status_of(unknown[i]),
							 state_before, WEIR_FOREVER));
			assert_true(weir_request_retries(&rig.disk, NVME_OPCODE_FLUSH, status_of(unknown[i]),
							 state_before, WEIR_FOREVER));
		}
		assert_true(weir_request_retries(&rig.disk, NVME_OPCODE_WRITE,
						 status_of(NVME_STATUS_COMMAND_INTERRUPTED), state_before,
						 WEIR_FOREVER));
	}
}

/* A read whose record is another's by now, and which a storage refused for now: its issuer submits it again.
 */
static weir_status retry_refused(struct weir_event *event, uint64_t timeout_us)
{
	static uint64_t block[1 << (BLOCK_LOG2 - 3)];

	weir_event_refuse(event, status_of(NVME_STATUS_NAMESPACE_NOT_READY));
	return weir_request_retry(
		&rig.disk, weir_block_request(NVME_OPCODE_READ, 0, 1, WEIR_ADDR(block), event),
		status_of(NVME_STATUS_NAMESPACE_NOT_READY), weir_deadline(&rig.disk, timeout_us));
}

/* The storage has died since, and all of its commands have ended: no other one is made, which would tell an
 * event that is its lane's again. */
static void test_not_again_on_a_dead_storage(void **state)
{
	static const uint32_t ends[] = { WEIR_QUEUE_ENDED, WEIR_QUEUE_UNSAFE };
	struct weir_event event;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		open_rig();
		weir_store_u32_relaxed_sys(&rig.queue.dead, WEIR_E_DEVICE_DEAD | ends[i]);
		assert_int_equal(retry_refused(&event, WEIR_FOREVER), WEIR_E_DEVICE_DEAD);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.tail), 0);
		assert_true(weir_load_u64_relaxed_dev(&event.word) == (WEIR_EVENT_DONE | WEIR_E_DEVICE_DEAD));
	}
}

/* A dead storage gets no command, of a lane by itself neither: whoever has one is told at once, as by its
 * event. */
static void test_nothing_for_a_dead_storage(void **state)
{
	static const uint32_t marks[] = { 0, WEIR_QUEUE_ENDED, WEIR_QUEUE_UNSAFE };
	static const uint32_t opcodes[] = { NVME_OPCODE_READ, NVME_OPCODE_WRITE, NVME_OPCODE_FLUSH };

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		struct weir_event event;

		open_rig();
		rig.disk.blocks = rig.disk.max_blocks = 8;
		weir_store_u32_relaxed_sys(&rig.queue.dead, WEIR_E_DEVICE_GONE | marks[i % 3]);
		assert_int_equal(weir_block_async(&rig.disk, opcodes[i / 3], 0, 1, 16 * PAGE, &event),
				 WEIR_E_DEVICE_GONE);
		assert_true(weir_load_u64_relaxed_dev(&event.word) == (WEIR_EVENT_DONE | WEIR_E_DEVICE_GONE));
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.tail), 0);
		assert_int_equal(rig.doorbells[0], 0);
	}
}

/* Once its issuer has tried it often enough, it has ended: who looks at the event later starts nothing. */
static void test_the_last_try_is_the_last(void **state)
{
	weir_status status = status_of(NVME_STATUS_NAMESPACE_NOT_READY);
	struct weir_event event;

	(void)state;
	open_rig();
	rig.disk.retry = rig.queue.retry = 1;
	rig.cq[0].dw3 = (uint32_t)NVME_STATUS_NAMESPACE_NOT_READY << 17 | 1u << 16; /* the try's answer */
	assert_int_equal(retry_refused(&event, WEIR_FOREVER), status);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.tail), 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(weir_event_status(weir_test(&rig.disk, &event)), status);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.tail), 1);
}

/** struct pair - two storages of one array; the queue pair of the second is of its own */
struct pair {
	struct weir_disk disks[2];
	struct weir_queue queue;
};

/* Storage @dead of two never ends its commands, the other one may. */
static void open_pair(struct pair *pair, unsigned dead)
{
	open_rig();
	memset(pair, 0, sizeof(*pair));
	pair->queue = rig.queue;
	pair->disks[0] = pair->disks[1] = rig.disk;
	for (unsigned i = 0; i < 2; i++) {
		pair->disks[i].id = i;
		pair->disks[i].block_log2 = BLOCK_LOG2;
		pair->disks[i].blocks = 1000;
	}
	pair->disks[1].queues = WEIR_ADDR(&pair->queue);
	weir_store_u32_relaxed_sys(&weir_at(pair->disks[dead].queues, struct weir_queue, 0)->dead,
				   WEIR_E_DEVICE_DEAD | WEIR_QUEUE_UNSAFE);
}

/* Nobody knows which of several storages an event waits for: that one of them is dead ends no wait. */
static void test_one_of_several_is_dead(void **state)
{
	static struct pair pair __attribute__((aligned(128)));
	struct weir_disks both = { .first = WEIR_ADDR(pair.disks), .count = 2 };
	struct weir_event event;

	(void)state;
	for (unsigned dead = 0; dead < 2; dead++) {
		open_pair(&pair, dead);
		weir_event_reset(&event);
		assert_true(weir_event_poll(both, &event) == 0);
		assert_int_equal(weir_disks_wait_all(both, &event, 1, 1000), WEIR_E_TIMEOUT);
		assert_int_equal(weir_wait_all(&pair.disks[dead], &event, 1, WEIR_FOREVER),
				 WEIR_E_DEVICE_DEAD);
		assert_int_equal(weir_wait_all(&pair.disks[!dead], &event, 1, 1000), WEIR_E_TIMEOUT);
	}
}

/* A transfer's command went to the storage that has the line: if that is dead, nobody answers; if another one
 * is, that says nothing. */
static void test_a_transfer_knows_its_storage(void **state)
{
	static struct pair pair __attribute__((aligned(128)));
	static struct weir_lines lines = { .line_log2 = BLOCK_LOG2 };
	struct weir_array array = { .lines = WEIR_ADDR(&lines),
				    .extent = {
					    .disks = WEIR_ADDR(pair.disks), .disk_count = 2, .lines = 100 } };

	(void)state;
	for (unsigned dead = 0; dead < 2; dead++)
		for (unsigned line = 0; line < 4; line++) {
			struct weir_transfer transfer = { .line = line, .state = WEIR_TRANSFER_SENT };

			open_pair(&pair, dead);
			weir_event_reset(&transfer.event);
			assert_int_equal(weir_transfer_test(&array, &transfer), line % 2 == dead);
			assert_int_equal(transfer.status, line % 2 == dead ? WEIR_E_DEVICE_DEAD : WEIR_OK);
		}
}

/* Where an element begins: in which line, and at which byte of it, however far behind. */
static void test_lines_of_elements(void **state)
{
	static const struct {
		uint64_t index, line;
		uint32_t at;
	} elements[] = { { 0, 0, 24 },
			 { 60, 0, 504 },
			 { 61, 1, 0 },
			 { 62, 1, 8 },
			 { 124, 1, 504 },
			 { 125, 2, 0 },
			 { ((u64)1 << 40) + 61, ((u64)1 << 34) + 1, 0 } };
	static struct weir_lines lines = { .line_log2 = BLOCK_LOG2 };
	struct weir_array array = { .lines = WEIR_ADDR(&lines), .first_byte = 24, .element_bytes = 8 };

	(void)state;
	for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++) {
		assert_true(weir_array_line(&array, elements[i].index) == elements[i].line);
		assert_int_equal(weir_array_at(&array, elements[i].index), elements[i].at);
	}
}

/* Events of an array may be of any of its storages: each is looked at, given once, and waited for in time. */
static void test_events_of_an_array(void **state)
{
	static struct pair pair __attribute__((aligned(128)));
	static struct weir_lines lines = { .line_log2 = BLOCK_LOG2 };
	struct weir_array array = { .lines = WEIR_ADDR(&lines),
				    .extent = {
					    .disks = WEIR_ADDR(pair.disks), .disk_count = 2, .lines = 100 } };
	static const struct weir_any given[] = { { 1, WEIR_OK }, { 2, WEIR_E_RANGE }, { 3, WEIR_E_TIMEOUT } };
	struct weir_event events[3];

	(void)state;
	open_pair(&pair, 1);
	for (unsigned i = 0; i < 3; i++)
		weir_event_reset(&events[i]);
	weir_event_finish(&events[1], WEIR_PATH_TIER);
	weir_event_refuse(&events[2], WEIR_E_RANGE);
	assert_true(weir_async_test(&array, &events[0]) == 0);
	assert_int_equal(weir_event_path(weir_async_test(&array, &events[1])), WEIR_PATH_TIER);
	assert_int_equal(weir_event_status(weir_async_test(&array, &events[2])), WEIR_E_RANGE);
	for (unsigned i = 0; i < 3; i++) {
		struct weir_any any = weir_async_wait_any(&array, events, 3, 1000);

		assert_int_equal(any.index, given[i].index);
		assert_int_equal(any.status, given[i].status);
	}
	assert_int_equal(weir_async_wait_any(&array, events + 1, 2, WEIR_FOREVER).index, 2); /* all were */
	assert_int_equal(weir_async_wait(&array, &events[1], WEIR_FOREVER), WEIR_OK);
	assert_int_equal(weir_async_wait(&array, &events[0], 1000), WEIR_E_TIMEOUT);
	assert_int_equal(weir_async_wait_all(&array, events + 1, 2, WEIR_FOREVER), WEIR_E_RANGE);
	assert_int_equal(weir_async_wait_all(&array, events, 3, 1000), WEIR_E_TIMEOUT);
}

/* A batch of this lane's on the rig, and a read for it. */
static struct weir_batches batches;
static struct weir_batch batch;
static const struct weir_io_request wanted = { .opcode = NVME_OPCODE_READ,
					       .blocks = 1,
					       .lba = 9,
					       .buffer = 16 * PAGE,
					       .argument = (u64)5 << 32,
					       .callback = 3 };

static void open_batch(void)
{
	open_rig();
	memset(&batch, 0, sizeof(batch));
	rig.disk.block_log2 = BLOCK_LOG2;
	rig.disk.blocks = 1000;
	rig.disk.max_blocks = 8;
	batches = (struct weir_batches){ .disk = rig.disk, .batches = WEIR_ADDR(&batch), .waves = 1 };
}

/* A call that waits says whether its command is under way still, or was never in the ring. */
static void test_a_batch_says_what_was_never_submitted(void **state)
{
	struct weir_event others[DEPTH - 1];
	u64 filled;

	(void)state;
	open_batch();
	for (unsigned i = 0; i < DEPTH - 1; i++)
		assert_int_equal(weir_read_async(&rig.disk, i, 1, 16 * PAGE, &others[i]), WEIR_OK);
	filled = weir_load_u64_relaxed_dev(&rig.queue.tail);
	assert_int_equal(weir_batch_io(&batches, 1, wanted, 1000), WEIR_E_QUEUE_FULL);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.tail), filled);
	assert_int_equal(weir_batch_pending(&batches), 0);
	open_batch();
	assert_int_equal(weir_batch_io(&batches, 0, wanted, 1000), WEIR_OK);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.tail), 0);
	assert_int_equal(weir_batch_io(&batches, 1, wanted, 1000), WEIR_E_TIMEOUT);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.tail), 1);
	assert_int_equal(rig.doorbells[0], 1);
	assert_int_equal(weir_batch_pending(&batches), 1);
}

/* What was submitted comes back once, with all that it was given; until then its slot takes nothing else. */
static void test_a_batch_gives_back_what_it_was_given(void **state)
{
	struct weir_io_request other = wanted;
	struct weir_io_ended ended;

	(void)state;
	open_batch();
	other.lba = 10;
	other.callback = 4;
	assert_int_equal(weir_batch_submit(&batches, 1, wanted), 1);
	assert_int_equal(rig.doorbells[0], 0); /* nobody has rung */
	assert_int_equal(weir_batch_submit(&batches, 1, other), 0);
	weir_batch_commit(&batches);
	weir_batch_commit(&batches);
	assert_int_equal(rig.doorbells[0], 1);
	assert_int_equal(weir_batch_poll(&batches), 0);
	assert_int_equal(weir_batch_dispatch(&batches, 0).ended, 0);
	rig.cq[0].dw3 = (uint32_t)NVME_STATUS_UNRECOVERED_READ << 17 | 1u << 16;
	assert_int_equal(weir_batch_poll(&batches), 1);
	assert_int_equal(weir_batch_pending(&batches), 1);
	ended = weir_batch_dispatch(&batches, 1);
	assert_int_equal(ended.ended, 1);
	assert_int_equal(ended.status, status_of(NVME_STATUS_UNRECOVERED_READ));
	assert_int_equal(ended.callback, wanted.callback);
	assert_int_equal(ended.blocks, wanted.blocks);
	assert_true(ended.argument == wanted.argument && ended.buffer == wanted.buffer);
	assert_int_equal(weir_batch_poll(&batches), 0);
	assert_int_equal(weir_batch_submit(&batches, 1, other), 1);
	assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.tail), 2);
}

/* What cannot be is taken and ends with its error, on a dead storage too, though it was not submitted. */
static void test_a_batch_takes_what_cannot_be(void **state)
{
	static const weir_status statuses[] = { WEIR_E_RANGE, WEIR_E_TRANSFER, WEIR_E_DEVICE_DEAD };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct weir_io_request request = wanted;
		struct weir_io_ended ended;

		open_batch();
		request.lba = i == 0 ? rig.disk.blocks : request.lba;
		request.blocks = i == 1 ? rig.disk.max_blocks + 1 : request.blocks;
		if (i == 2)
			weir_store_u32_relaxed_sys(&rig.queue.dead, WEIR_E_DEVICE_DEAD | WEIR_QUEUE_ENDED);
		assert_int_equal(weir_batch_submit(&batches, 1, request), 1);
		assert_int_equal(weir_load_u64_relaxed_dev(&rig.queue.tail), 0);
		ended = weir_batch_dispatch(&batches, weir_batch_wait(&batches, WEIR_FOREVER));
		assert_int_equal(ended.ended, 1);
		assert_int_equal(ended.status, statuses[i]);
		assert_int_equal(weir_batch_pending(&batches), 0);
	}
	open_batch(); /* the storage dies with it, and nobody answers any more */
	assert_int_equal(weir_batch_submit(&batches, 1, wanted), 1);
	weir_store_u32_relaxed_sys(&rig.queue.dead, WEIR_E_DEVICE_DEAD | WEIR_QUEUE_UNSAFE);
	assert_int_equal(weir_batch_dispatch(&batches, weir_batch_wait(&batches, WEIR_FOREVER)).status,
			 WEIR_E_DEVICE_DEAD);
}

/* The first error of a context is the one that is told, whatever comes later. */
static void test_the_first_error_stands(void **state)
{
	struct weir_fault fault;

	(void)state;
	memset(&fault, 0, sizeof(fault));
	weir_fault_report(WEIR_ADDR(&fault), WEIR_E_RANGE, 1, WEIR_FAULT_LBA, 100, 64);
	weir_fault_report(WEIR_ADDR(&fault), WEIR_E_TIMEOUT, 2, WEIR_FAULT_WRITE, 5, 7);
	assert_int_equal(weir_load_u32_relaxed_sys(&fault.claimed), 2);
	assert_int_equal(fault.status, WEIR_E_RANGE);
	assert_int_equal(fault.disk, 1);
	assert_int_equal(fault.source, WEIR_FAULT_LBA);
	assert_int_equal(fault.position, 100);
	assert_int_equal(fault.limit, 64);
}

/* The last bytes of as many as a call can copy, by each of 32 lanes: all of them, once, and the loop ends. */
static void test_a_move_up_to_the_last_byte(void **state)
{
	static const u32 units[] = { 1, 4, 8, 16 };
	unsigned char from[64] __attribute__((aligned(16))), to[64] __attribute__((aligned(16)));
	u32 end = ~(u32)0 / 16 * 16, begin = end - sizeof(to);

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i + 1);
	for (size_t i = 0; i < 4; i++) {
		memset(to, 0, sizeof(to));
		for (u32 rank = 0; rank < 32; rank++)
			weir_move_part(units[i], WEIR_ADDR(to) - begin, WEIR_ADDR(from) - begin, begin, end,
				       rank, 32);
		assert_memory_equal(to, from, sizeof(to));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone_with_two_pages_at_most),
		cmocka_unit_test(test_every_page_is_where_the_bus_has_it),
		cmocka_unit_test(test_deadlines),
		cmocka_unit_test(test_ticks_come_behind),
		cmocka_unit_test(test_ticks_that_have_wrapped),
		cmocka_unit_test(test_delays),
		cmocka_unit_test(test_how_often),
		cmocka_unit_test(test_what_is_submitted_again),
		cmocka_unit_test(test_not_again_on_a_dead_storage),
		cmocka_unit_test(test_nothing_for_a_dead_storage),
		cmocka_unit_test(test_the_last_try_is_the_last),
		cmocka_unit_test(test_one_of_several_is_dead),
		cmocka_unit_test(test_a_transfer_knows_its_storage),
		cmocka_unit_test(test_lines_of_elements),
		cmocka_unit_test(test_events_of_an_array),
		cmocka_unit_test(test_a_batch_says_what_was_never_submitted),
		cmocka_unit_test(test_a_batch_gives_back_what_it_was_given),
		cmocka_unit_test(test_a_batch_takes_what_cannot_be),
		cmocka_unit_test(test_the_first_error_stands),
		cmocka_unit_test(test_a_move_up_to_the_last_byte),
	};

	return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
