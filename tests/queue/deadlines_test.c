/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deadlines_test.c: how long each kind of wait goes on: as long as whoever waits says, whatever time the
 * storage has for those who say nothing. This thread is the lane, the queue pairs lie in ordinary memory, and
 * nobody serves them; nothing is timed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <weir/share.h>
#include <weir/transfer.h>
#include <weir/volume.h>

#include "rig_by_hand.h"

/* A wait comes to queue pair FAR in its iteration 4 x FAR + 3, when it has looked at the clock before. */
enum { QUEUES = 8, FAR = 5, BLOCK_LOG2 = 9 };

_Static_assert(4 * FAR + 3 >= WEIR_CLOCK_ITERATIONS && FAR < QUEUES, "it looks at the clock before");

/** struct far - what queue pair FAR has to itself; the others have nothing under way, and the rig's rings */
struct far {
	struct weir_slot slots[DEPTH];
	struct nvme_sqe sq[DEPTH];
	struct nvme_cqe cq[DEPTH];
	uint32_t doorbells[2];
};

static struct far far __attribute__((aligned(128)));
static struct weir_queue queues[QUEUES];
static struct weir_lines lines = { .line_log2 = BLOCK_LOG2 };
static struct weir_array array;
static struct weir_transfer transfer;
static struct weir_batches batches;
static struct weir_batch batch;
static unsigned char block[1 << BLOCK_LOG2] __attribute__((aligned(16)));

/* A storage that gives waits @timeout_ns, and a transfer whose command is under way. */
static void open_rig(uint64_t timeout_ns)
{
	rig_begin();
	memset(&far, 0, sizeof(far));
	memset(&batch, 0, sizeof(batch));
	for (unsigned i = 0; i < QUEUES; i++)
		queues[i] = rig.queue;
	queues[FAR].slots = WEIR_ADDR(far.slots);
	queues[FAR].sq = WEIR_ADDR(far.sq);
	queues[FAR].cq = WEIR_ADDR(far.cq);
	queues[FAR].sq_doorbell = WEIR_ADDR(&far.doorbells[0]);
	queues[FAR].cq_doorbell = WEIR_ADDR(&far.doorbells[1]);
	rig.disk.queues = WEIR_ADDR(queues);
	rig.disk.queue_count = QUEUES;
	rig.disk.block_log2 = BLOCK_LOG2;
	rig.disk.blocks = 1000;
	rig.disk.max_blocks = 8;
	rig.disk.timeout_ns = timeout_ns;
	array = (struct weir_array){ .lines = WEIR_ADDR(&lines),
				     .extent = {
					     .disks = WEIR_ADDR(&rig.disk), .disk_count = 1, .lines = 100 } };
	batches = (struct weir_batches){ .disk = rig.disk, .batches = WEIR_ADDR(&batch), .waves = 1 };
	transfer = (struct weir_transfer){ .state = WEIR_TRANSFER_SENT };
	weir_event_reset(&transfer.event);
}

/* The transfer's command has ended; only whoever looks at queue pair FAR learns so. */
static void answer_afar(void)
{
	weir_sq_fill(&queues[FAR], 0,
		     weir_block_request(NVME_OPCODE_READ, 0, 1, WEIR_ADDR(block), &transfer.event));
	far.cq[0].dw3 = 1u << 16;
}

/* Every way to wait for the transfer's event that has a time of its own. */
enum way {
	WAIT,
	WAIT_ALL,
	WAIT_ANY,
	BLOCK_WAIT,
	ASYNC_WAIT,
	ASYNC_ALL,
	ASYNC_ANY,
	ASYNC_FINISH,
	TRANSFER,
	SHARED_COPY,
	WAYS,
	/* those that begin with a command of their own */
	READ = WAYS,
	WRITE,
	FLUSH,
	BATCH_WAIT,
	BATCH_IO,
	ALL_WAYS
};

static weir_status wait_for_array(enum way way, uint64_t timeout_us)
{
	struct weir_event *event = &transfer.event;
	struct weir_shared copy = weir_shared_none(0, WEIR_OK);

	copy.kind = WEIR_SHARED_COPY;
	copy.event = WEIR_ADDR(event);
	switch (way) {
	case ASYNC_WAIT: return weir_async_wait(&array, event, timeout_us);
	case ASYNC_ALL: return weir_async_wait_all(&array, event, 1, timeout_us);
	case ASYNC_ANY: return weir_async_wait_any(&array, event, 1, timeout_us).status;
	case ASYNC_FINISH: return weir_async_finish(&array, 0, WEIR_ADDR(block), event, timeout_us);
	case TRANSFER: return weir_transfer_wait(&array, &transfer, 1, timeout_us);
	default: return weir_share_wait(&array, copy, timeout_us);
	}
}

static weir_status wait_by(enum way way, uint64_t timeout_us)
{
	struct weir_io_request wanted = { .opcode = NVME_OPCODE_READ,
					  .blocks = 1,
					  .buffer = WEIR_ADDR(block) };
	struct weir_event *event = &transfer.event;

	switch (way) {
	case WAIT: return weir_wait(&rig.disk, event, timeout_us);
	case WAIT_ALL: return weir_wait_all(&rig.disk, event, 1, timeout_us);
	case WAIT_ANY: return weir_wait_any(&rig.disk, event, 1, timeout_us).status;
	case BLOCK_WAIT:
		return weir_block_wait(&rig.disk, NVME_OPCODE_READ, 0, 1, WEIR_ADDR(block), event,
				       timeout_us);
	case READ: return weir_read(&rig.disk, 0, 1, WEIR_ADDR(block), event, timeout_us);
	case WRITE: return weir_write(&rig.disk, 0, 1, WEIR_ADDR(block), event, timeout_us);
	case FLUSH: return weir_flush(&rig.disk, event, timeout_us);
	case BATCH_WAIT:
		assert_int_equal(weir_batch_submit(&batches, 1, wanted), 1);
		return weir_batch_wait(&batches, timeout_us) ? WEIR_OK : WEIR_E_TIMEOUT;
	case BATCH_IO: return weir_batch_io(&batches, 1, wanted, timeout_us);
	default: return wait_for_array(way, timeout_us);
	}
}

/* For ever, on a storage that gives others a nanosecond: what comes behind that counts. */
static void test_no_wait_ends_before_its_time(void **state)
{
	(void)state;
	for (unsigned way = 0; way < WAYS; way++) {
		open_rig(1);
		answer_afar();
		if (wait_by(way, 0) != WEIR_E_TIMEOUT)
			fail_msg("way %u: the storage's time is over", way);
		if (wait_by(way, WEIR_FOREVER) != WEIR_OK)
			fail_msg("way %u: its own time is not", way);
	}
}

/* A millisecond, on a storage that gives others an hour. */
static void test_every_wait_ends_in_its_time(void **state)
{
	(void)state;
	for (unsigned way = 0; way < ALL_WAYS; way++) {
		open_rig((uint64_t)3600000000000);
		if (wait_by(way, 1000) != WEIR_E_TIMEOUT)
			fail_msg("way %u", way);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_wait_ends_before_its_time),
		cmocka_unit_test(test_every_wait_ends_in_its_time),
	};

	return cmocka_run_group_tests_name("deadlines", tests, NULL, NULL);
}
