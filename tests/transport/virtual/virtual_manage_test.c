/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_manage_test.c: queues made and deleted, commands aborted, events reported. */
#include "virtual_medium.h"

enum {
	PAGE = NVME_PAGE_BYTES,
	GET_LOG_PAGE = 0x02,
	RETAIN_EVENT = 0x8000, /* cdw10 of Get Log Page */
	REFUSED_FIELD = NVME_STATUS_INVALID_FIELD | DRIVER_REFUSED,
	REFUSED_QID = NVME_STATUS_INVALID_QID | DRIVER_REFUSED,
};

static void open_enabled(struct driver *driver)
{
	driver_open(driver, driver_defaults());
	driver_enable(driver);
}

static void test_create_cq_errors(void **state)
{
	const u32 size = NVME_STATUS_INVALID_QUEUE_SIZE | DRIVER_REFUSED;
	struct driver driver;
	struct nvme_sqe good, sqe;
	u64 ring;

	(void)state;
	open_enabled(&driver);
	ring = driver_bus(driver_pages(&driver, 8 * PAGE));
	good = driver_create_cq(1, ring, 16);
	assert_int_equal(driver_admin(&driver, driver_create_cq(0, ring, 16)), REFUSED_QID);
	assert_int_equal(driver_admin(&driver, driver_create_cq(DRIVER_QUEUES, ring, 16)), REFUSED_QID);
	assert_int_equal(driver_admin(&driver, driver_create_cq(1, ring, 1)), size);
	assert_int_equal(driver_admin(&driver, driver_create_cq(1, ring, 1025)), size);
	assert_int_equal(driver_admin(&driver, driver_create_cq(1, ring + 16, 16)),
			 NVME_STATUS_INVALID_PRP_OFFSET | DRIVER_REFUSED);
	assert_int_equal(driver_admin(&driver, driver_create_cq(1, 4096, 16)),
			 NVME_STATUS_DATA_TRANSFER_ERROR | DRIVER_REFUSED);
	sqe = good;
	sqe.cdw11 = 0; /* not contiguous */
	assert_int_equal(driver_admin(&driver, sqe), REFUSED_FIELD);
	sqe.cdw11 = 3 | 1 << 16; /* interrupts enabled, vector 1 */
	assert_int_equal(driver_admin(&driver, sqe), NVME_STATUS_INVALID_VECTOR | DRIVER_REFUSED);
	sqe.cdw11 = 3; /* interrupts enabled, vector 0: accepted and never used */
	assert_int_equal(driver_admin(&driver, sqe), 0);
	assert_int_equal(driver_admin(&driver, good), REFUSED_QID); /* exists */
	assert_int_equal(driver_admin(&driver, driver_create_cq(2, ring, 1024)), 0);
	driver_close(&driver);
}

static void test_create_sq_errors(void **state)
{
	const u32 size = NVME_STATUS_INVALID_QUEUE_SIZE | DRIVER_REFUSED;
	struct driver driver;
	struct nvme_sqe sqe;
	u64 ring;

	(void)state;
	open_enabled(&driver);
	ring = driver_bus(driver_pages(&driver, 16 * PAGE));
	assert_int_equal(driver_admin(&driver, driver_create_sq(1, 1, ring, 16)),
			 NVME_STATUS_INVALID_CQ | DRIVER_REFUSED);
	assert_int_equal(driver_admin(&driver, driver_create_cq(1, ring, 16)), 0);
	assert_int_equal(driver_admin(&driver, driver_create_sq(1, 0, ring, 16)), REFUSED_QID);
	assert_int_equal(driver_admin(&driver, driver_create_sq(1, DRIVER_QUEUES, ring, 16)), REFUSED_QID);
	assert_int_equal(driver_admin(&driver, driver_create_sq(0, 1, ring, 16)), REFUSED_QID);
	assert_int_equal(driver_admin(&driver, driver_create_sq(DRIVER_QUEUES, 1, ring, 16)), REFUSED_QID);
	assert_int_equal(driver_admin(&driver, driver_create_sq(1, 1, ring, 1)), size);
	assert_int_equal(driver_admin(&driver, driver_create_sq(1, 1, ring, 65536)), size);
	assert_int_equal(driver_admin(&driver, driver_create_sq(1, 1, ring + 64, 16)),
			 NVME_STATUS_INVALID_PRP_OFFSET | DRIVER_REFUSED);
	/* The last page of the arena holds 64 entries, not 65. */
	sqe = driver_create_sq(1, 1, driver_bus(driver.arena) + DRIVER_ARENA_BYTES - PAGE, 65);
	assert_int_equal(driver_admin(&driver, sqe), NVME_STATUS_DATA_TRANSFER_ERROR | DRIVER_REFUSED);
	sqe.cdw10 = 1 | 63 << 16;
	sqe.cdw11 &= ~1u;
	assert_int_equal(driver_admin(&driver, sqe), REFUSED_FIELD);
	sqe.cdw11 |= 1;
	assert_int_equal(driver_admin(&driver, sqe), 0);
	assert_int_equal(driver_admin(&driver, sqe), REFUSED_QID);
	driver_close(&driver);
}

static void test_delete_errors(void **state)
{
	struct driver driver;

	(void)state;
	open_enabled(&driver);
	for (u32 id = 0; id < 3; id++) {
		assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, id)), REFUSED_QID);
		assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_CQ, id)), REFUSED_QID);
	}
	assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, 65535)), REFUSED_QID);
	driver_add_queue(&driver, 1, 1, 4, 4);
	driver_add_queue(&driver, 2, 1, 4, 0);
	for (u32 id = 1; id < 3; id++) {
		assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_CQ, 1)),
				 NVME_STATUS_INVALID_QUEUE_DELETION | DRIVER_REFUSED);
		assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, id)), 0);
		assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, id)), REFUSED_QID);
	}
	assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_CQ, 1)), 0);
	driver_add_queue(&driver, 1, 1, 8, 8);
	driver_close(&driver);
}

static struct nvme_sqe abort_of(u32 sq, u32 cid)
{
	return (struct nvme_sqe){ .cdw0 = NVME_ADMIN_ABORT, .cdw10 = sq | cid << 16 };
}

/* What the medium has cannot be called back; what waits in front of it can. */
/* What a queue's doorbells had is no doorbell of a queue that there is not, and of none that comes after it.
 */
static void test_doorbells_of_deleted_queues(void **state)
{
	struct weir_virtual_stats stats;
	struct driver driver;
	u64 data;

	(void)state;
	open_enabled(&driver);
	data = driver_bus(driver_pages(&driver, PAGE));
	for (u32 round = 0; round < 3; round++) {
		driver_add_queue(&driver, 1, 1, 16, 16);
		for (u32 i = 0; i < 5; i++)
			assert_int_equal(
				driver_command(&driver, 1, driver_io(NVME_OPCODE_READ, i, 1, data, 0), NULL),
				0);
		assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, 1)), 0);
		assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_CQ, 1)), 0);
		driver_steps(&driver, 10000); /* it looks at such doorbells now and then */
	}
	weir_virtual_stats(driver.controller, &stats);
	assert_int_equal(stats.bad_doorbells, 0);
	driver_close(&driver);
}

static void test_abort_in_medium(void **state)
{
	struct driver driver;
	struct slow slow;
	struct nvme_cqe cqe;
	u32 result;
	u64 data;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	data = driver_bus(driver_pages(&driver, PAGE));
	slow.hold = true;
	slow.capacity = 1;
	for (u32 i = 0; i < 2; i++)
		driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), i);
	assert_true(driver_nothing(&driver, 1));
	assert_int_equal(driver_command(&driver, 0, abort_of(1, 0), &result), 0);
	assert_int_equal(result, 1);
	assert_int_equal(driver_command(&driver, 0, abort_of(1, 1), &result), 0);
	assert_int_equal(result, 0);
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_cid(&cqe), 1);
	assert_int_equal(driver_status(&cqe), NVME_STATUS_ABORT_REQUESTED);
	slow.hold = false;
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_cid(&cqe), 0);
	assert_int_equal(driver_status(&cqe), 0);
	for (u32 sq = 0; sq < 4; sq++) { /* nothing there: not aborted, and no error */
		assert_int_equal(driver_command(&driver, 0, abort_of(sq, 1), &result), 0);
		assert_int_equal(result, 1);
	}
	driver_close(&driver);
}

/* Two wait in front of the medium: a read, and a command of two ranges that the medium had before. Abort
 * takes the read alone. */
static void test_abort_in_line(void **state)
{
	struct driver driver;
	struct slow slow;
	struct nvme_cqe cqe;
	u32 result, *list;
	u64 data;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	list = driver_pages(&driver, PAGE);
	data = driver_bus(list);
	list[1] = list[5] = 1; /* one block each, the second one's at block 4 */
	list[6] = 4;
	slow.hold = true;
	slow.capacity = 1;
	driver_post(&driver, 1,
		    (struct nvme_sqe){ .cdw0 = NVME_OPCODE_DSM,
				       .nsid = 1,
				       .prp1 = data,
				       .cdw10 = 1,
				       .cdw11 = NVME_DSM_DEALLOCATE },
		    0);
	driver_steps(&driver, 3);
	driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), 1);
	driver_steps(&driver, 3);
	slow.refusals = 100000;
	slow_end_one(&slow, 0); /* the first range; the second is refused, and stands behind the read */
	assert_int_equal(driver_command(&driver, 0, abort_of(1, 1), &result), 0);
	assert_int_equal(result, 0);
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_cid(&cqe), 1);
	assert_int_equal(driver_status(&cqe), NVME_STATUS_ABORT_REQUESTED);
	assert_true(driver_nothing(&driver, 1));
	slow.refusals = 0;
	slow.hold = false;
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_cid(&cqe), 0);
	assert_int_equal(driver_status(&cqe), 0);
	driver_close(&driver);
}

static void test_abort_in_time(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;
	struct nvme_cqe cqe;
	u32 result;
	u64 data;

	(void)state;
	options.latency_us = 1000 * 1000 * 1000;
	driver_open(&driver, options);
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 8, 8);
	data = driver_bus(driver_pages(&driver, PAGE));
	for (u32 i = 0; i < 5; i++)
		driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), 100 + i);
	assert_true(driver_nothing(&driver, 1));
	for (u32 i = 0; i < 5; i++) { /* from the middle, the ends, and what is left */
		static const u32 order[] = { 102, 100, 104, 103, 101 };

		assert_int_equal(driver_command(&driver, 0, abort_of(1, order[i]), &result), 0);
		assert_int_equal(result, 0);
		driver_reap(&driver, 1, &cqe);
		assert_int_equal(driver_cid(&cqe), order[i]);
		assert_int_equal(driver_status(&cqe), NVME_STATUS_ABORT_REQUESTED);
	}
	driver_steps(&driver, 1);
	assert_false(weir_virtual_busy(driver.controller, 0));
	driver_close(&driver);
}

static void test_delete_sq_in_flight(void **state)
{
	struct driver driver;
	struct slow slow;
	struct nvme_cqe cqe;
	u64 data;

	(void)state;
	slow_driver_open(&driver, &slow, 16, 16, 0);
	data = driver_bus(driver_pages(&driver, PAGE));
	slow.hold = true;
	slow.capacity = 2;
	for (u32 i = 0; i < 10; i++)
		driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), i);
	assert_true(driver_nothing(&driver, 1));
	driver_post(&driver, 0, driver_delete(NVME_ADMIN_DELETE_SQ, 1), 77);
	driver_reap(&driver, 1, &cqe); /* the one that waited for the medium */
	assert_int_equal(driver_status(&cqe), NVME_STATUS_ABORTED_SQ_DELETED);
	assert_int_equal(driver_cid(&cqe), 2);
	assert_true(driver_nothing(&driver, 0)); /* two are with the medium */
	slow_end_one(&slow, 1);
	assert_true(driver_nothing(&driver, 0));
	slow_end_one(&slow, 0);
	driver_reap(&driver, 0, &cqe);
	assert_int_equal(driver_cid(&cqe), 77);
	assert_int_equal(driver_status(&cqe), 0);
	for (u32 i = 0; i < 2; i++) {
		driver_reap(&driver, 1, &cqe);
		assert_int_equal(driver_cid(&cqe), 1 - i);
		assert_int_equal(driver_status(&cqe), 0);
	}
	assert_true(driver_nothing(&driver, 1));
	driver_close(&driver);
}

static void test_delete_sq_in_time(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;
	struct nvme_cqe cqe;
	u64 data;

	(void)state;
	options.latency_us = 1000 * 1000 * 1000;
	options.threads = 3;
	driver_open(&driver, options);
	driver_enable(&driver);
	driver_add_queue(&driver, 2, 2, 8, 8);
	driver_add_queue(&driver, 5, 2, 8, 0);
	data = driver_bus(driver_pages(&driver, PAGE));
	for (u32 i = 0; i < 3; i++) {
		driver_post(&driver, 2, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), i);
		driver_post(&driver, 5, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), i);
	}
	assert_true(driver_nothing(&driver, 2));
	assert_true(weir_virtual_busy(driver.controller, 1)); /* of the completion queue's thread */
	assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, 5)), 0);
	for (u32 i = 0; i < 3; i++) {
		driver_reap(&driver, 2, &cqe);
		assert_int_equal(driver_status(&cqe), NVME_STATUS_ABORTED_SQ_DELETED);
		assert_int_equal(cqe.dw2 >> 16, 5);
	}
	assert_true(driver_nothing(&driver, 2)); /* the other queue's wait on */
	driver_close(&driver);
}

static struct nvme_sqe event_request(void)
{
	return (struct nvme_sqe){ .cdw0 = NVME_ADMIN_ASYNC_EVENT };
}

/* A reset forgets the held requests: they neither count nor complete after it. */
static void test_reset_forgets_events(void **state)
{
	struct driver driver;

	(void)state;
	open_enabled(&driver);
	for (u32 round = 0; round < 3; round++) {
		for (u32 i = 0; i < 4; i++)
			driver_post(&driver, 0, event_request(), 1000 + i);
		assert_true(driver_nothing(&driver, 0)); /* held, and the limit is not reached */
		driver_disable(&driver);
		driver_enable(&driver);
		driver_doorbell(&driver, 2 * 3, 5); /* an event: the doorbell of no queue */
		for (u32 i = 0; i < 500; i++)
			assert_true(driver_nothing(&driver, 0));
		driver_disable(&driver);
		driver_enable(&driver);
	}
	driver_close(&driver);
}

static void test_event_limit_and_abort(void **state)
{
	struct driver driver;
	struct nvme_cqe cqe;
	u32 result;

	(void)state;
	open_enabled(&driver);
	for (u32 i = 0; i < 4; i++)
		driver_post(&driver, 0, event_request(), 1000 + i);
	assert_true(driver_nothing(&driver, 0));
	driver_post(&driver, 0, event_request(), 1004);
	driver_reap(&driver, 0, &cqe);
	assert_int_equal(driver_cid(&cqe), 1004);
	assert_int_equal(driver_status(&cqe), NVME_STATUS_ASYNC_EVENT_LIMIT);
	driver_post(&driver, 0, event_request(), 1002); /* still in flight */
	driver_reap(&driver, 0, &cqe);
	assert_int_equal(driver_status(&cqe), NVME_STATUS_CID_CONFLICT);
	driver_post(&driver, 0, abort_of(0, 1001), 1);
	driver_reap(&driver, 0, &cqe);
	assert_int_equal(driver_cid(&cqe), 1001);
	assert_int_equal(driver_status(&cqe), NVME_STATUS_ABORT_REQUESTED);
	driver_reap(&driver, 0, &cqe);
	assert_int_equal(driver_cid(&cqe), 1);
	assert_int_equal(cqe.dw0, 0);
	assert_int_equal(driver_command(&driver, 0, abort_of(0, 1001), &result), 0);
	assert_int_equal(result, 1);
	for (u32 i = 0; i < 2 * DRIVER_ADMIN_ENTRIES; i++) { /* holding one costs no queue entry */
		driver_post(&driver, 0, event_request(), 1001);
		driver_post(&driver, 0, abort_of(0, 1001), 1);
		driver_reap(&driver, 0, &cqe);
		assert_int_equal(driver_cid(&cqe), 1001);
		driver_reap(&driver, 0, &cqe);
		assert_int_equal(cqe.dw0, 0);
	}
	driver_close(&driver);
}

static struct nvme_sqe read_error_log(const void *memory, u32 flags)
{
	return (struct nvme_sqe){ .cdw0 = GET_LOG_PAGE,
				  .prp1 = driver_bus(memory),
				  .cdw10 = 1 | flags | 15 << 16 };
}

static void expect_event(struct driver *driver, u32 cid, u32 information)
{
	struct nvme_cqe cqe;

	driver_reap(driver, 0, &cqe);
	assert_int_equal(driver_cid(&cqe), cid);
	assert_int_equal(driver_status(&cqe), 0);
	assert_int_equal(cqe.dw0, 1 << 16 | information << 8);
}

static void test_events(void **state)
{
	struct weir_virtual_stats stats;
	struct driver driver;
	unsigned char *log;

	(void)state;
	open_enabled(&driver);
	driver_add_queue(&driver, 1, 1, 8, 8);
	log = driver_pages(&driver, PAGE);
	driver_doorbell(&driver, 2, 8); /* tail of SQ 1 out of range, before anyone asked */
	driver_steps(&driver, 10);
	driver_post(&driver, 0, event_request(), 500);
	expect_event(&driver, 500, 1);
	driver_post(&driver, 0, event_request(), 501);
	driver_doorbell(&driver, 3, 5);          /* CQ head past what was posted */
	assert_true(driver_nothing(&driver, 0)); /* masked until the log was read */
	assert_int_equal(driver_admin(&driver, read_error_log(log, RETAIN_EVENT)), 0);
	assert_true(driver_nothing(&driver, 0)); /* and that was no reading which ends it */
	driver_post(&driver, 0, read_error_log(log, 0), 9);
	driver_step(&driver);
	for (u32 i = 0; i < 2; i++) {
		struct nvme_cqe cqe;

		driver_reap(&driver, 0, &cqe);
		assert_int_equal(driver_cid(&cqe), i ? 501 : 9);
	}
	assert_int_equal(driver_admin(&driver, read_error_log(log, 0)), 0);
	driver_post(&driver, 0, event_request(), 502);
	driver_doorbell(&driver, 2 * 7, 1); /* no such queue */
	driver_steps(&driver, 5000);
	expect_event(&driver, 502, 0);
	weir_virtual_stats(driver.controller, &stats);
	assert_int_equal(stats.bad_doorbells, 3);
	driver_close(&driver);
}

/* Two events before anybody asked: each is reported, the second one when the first one's log was read. */
static void test_events_that_wait(void **state)
{
	struct driver driver;
	unsigned char *log;

	(void)state;
	open_enabled(&driver);
	driver_add_queue(&driver, 1, 1, 8, 8);
	log = driver_pages(&driver, PAGE);
	driver_doorbell(&driver, 2, 8);     /* tail of SQ 1 out of range */
	driver_doorbell(&driver, 2 * 7, 1); /* no such queue */
	driver_steps(&driver, 10000);       /* it looks at such doorbells now and then */
	for (u32 i = 0; i < 2; i++) {
		driver_post(&driver, 0, event_request(), 500 + i);
		if (i) {
			assert_true(driver_nothing(&driver, 0));
			driver_post(&driver, 0, read_error_log(log, 0), 9);
			driver_reap(&driver, 0, &(struct nvme_cqe){ 0 });
		}
		expect_event(&driver, 500 + i, i);
	}
	assert_int_equal(driver_admin(&driver, read_error_log(log, 0)), 0);
	driver_post(&driver, 0, event_request(), 502);
	assert_true(driver_nothing(&driver, 0)); /* there is no third one */
	driver_close(&driver);
}

/* A reset forgets what is to be reported and that an event's log was not read; what comes then is reported.
 */
static void test_events_after_a_reset(void **state)
{
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	open_enabled(&driver);
	driver_doorbell(&driver, 2 * 7, 1); /* no such queue */
	driver_steps(&driver, 10000);
	driver_post(&driver, 0, event_request(), 500);
	expect_event(&driver, 500, 0); /* its log is not read */
	driver_doorbell(&driver, 2 * 7, 1);
	driver_steps(&driver, 10000); /* and this one is not reported */
	driver_disable(&driver);
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 8, 8);
	driver_post(&driver, 0, event_request(), 501);
	for (u32 i = 0; i < 500; i++)
		assert_true(driver_nothing(&driver, 0));
	driver_doorbell(&driver, 2, 8); /* tail of SQ 1 out of range */
	driver_steps(&driver, 20);
	assert_true(driver_peek(&driver, 0, &cqe));
	assert_int_equal(driver_cid(&cqe), 501);
	assert_int_equal(cqe.dw0, 1 << 16 | 1 << 8);
	driver_close(&driver);
}

/* How many queues there may be is said while there are none: at first, when all are deleted, after a reset.
 */
static void test_queues_are_counted(void **state)
{
	const u32 id = NVME_FEATURE_NUMBER_OF_QUEUES;
	struct nvme_sqe set = { .cdw0 = NVME_ADMIN_SET_FEATURES, .cdw10 = id, .cdw11 = 3 | 3 << 16 };
	struct driver driver;

	(void)state;
	open_enabled(&driver);
	for (u32 round = 0; round < 3; round++) {
		assert_int_equal(driver_admin(&driver, set), 0);
		driver_add_queue(&driver, 1, 1, 8, 8);
		driver_add_queue(&driver, 2, 1, 8, 0);
		driver_add_queue(&driver, 3, 3, 8, 8);
		for (u32 sq = 1; round < 2 && sq <= 3; sq++) {
			assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, sq)), 0);
			assert_int_equal(driver_admin(&driver, set),
					 NVME_STATUS_COMMAND_SEQUENCE | DRIVER_REFUSED);
		}
		for (u32 cq = 1; round < 2 && cq <= 3; cq += 2) {
			assert_int_equal(driver_admin(&driver, set),
					 NVME_STATUS_COMMAND_SEQUENCE | DRIVER_REFUSED);
			assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_CQ, cq)), 0);
		}
	}
	driver_disable(&driver);
	driver_enable(&driver);
	assert_int_equal(driver_admin(&driver, set), 0);
	driver_close(&driver);
}

static void test_pending_command(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct nvme_sqe sqe;
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	options.threads = 2;
	driver_open(&driver, options);
	driver_enable(&driver);
	driver_add_queue(&driver, 2, 2, 4, 4);
	/* Thread 1 is not polled, so that the deletion stays pending and the rest waits. */
	driver_post(&driver, 0, driver_delete(NVME_ADMIN_DELETE_SQ, 2), 5);
	sqe = (struct nvme_sqe){ .cdw0 = NVME_ADMIN_GET_FEATURES, .cdw10 = 7 };
	driver_post(&driver, 0, sqe, 6);
	for (u32 i = 0; i < 20; i++)
		weir_virtual_poll(driver.controller, 0);
	assert_true(weir_virtual_busy(driver.controller, 0));
	assert_false(driver_peek(&driver, 0, &cqe));
	driver_reap(&driver, 0, &cqe);
	assert_int_equal(driver_cid(&cqe), 5);
	driver_reap(&driver, 0, &cqe);
	assert_int_equal(driver_cid(&cqe), 6);
	driver_close(&driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_cq_errors),
		cmocka_unit_test(test_create_sq_errors),
		cmocka_unit_test(test_delete_errors),
		cmocka_unit_test(test_doorbells_of_deleted_queues),
		cmocka_unit_test(test_abort_in_medium),
		cmocka_unit_test(test_abort_in_line),
		cmocka_unit_test(test_abort_in_time),
		cmocka_unit_test(test_delete_sq_in_flight),
		cmocka_unit_test(test_delete_sq_in_time),
		cmocka_unit_test(test_reset_forgets_events),
		cmocka_unit_test(test_event_limit_and_abort),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_events_that_wait),
		cmocka_unit_test(test_events_after_a_reset),
		cmocka_unit_test(test_queues_are_counted),
		cmocka_unit_test(test_pending_command),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
