/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_io_medium.c: I/O commands on a medium that fails, refuses, or ends requests when it likes. */
#include "virtual_io_cases.h"

void test_medium_errors(void **state)
{
	struct driver driver;
	struct slow slow;
	unsigned char *list;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	list = driver_pages(&driver, PAGE);
	put_range(list, 0, 0, 1);
	put_range(list, 1, 1, 1);
	slow.status = NVME_STATUS_UNRECOVERED_READ;
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 1, driver_bus(list), 0),
			 NVME_STATUS_UNRECOVERED_READ);
	assert_int_equal(io(&driver, NVME_OPCODE_COMPARE, 0, 1, driver_bus(list), 0),
			 NVME_STATUS_UNRECOVERED_READ);
	slow.status = NVME_STATUS_WRITE_FAULT;
	assert_int_equal(io(&driver, NVME_OPCODE_WRITE, 0, 1, driver_bus(list), 0), NVME_STATUS_WRITE_FAULT);
	assert_int_equal(manage(&driver, driver_bus(list), 2, NVME_DSM_DEALLOCATE), NVME_STATUS_WRITE_FAULT);
	slow.status = 0;
	assert_int_equal(manage(&driver, driver_bus(list), 2, NVME_DSM_DEALLOCATE), 0);
	driver_close(&driver);
}

/* The second of three requests fails. */
static void fail_second(struct slow *slow)
{
	static unsigned count;

	slow->status = ++count == 2 ? NVME_STATUS_WRITE_FAULT : 0;
}

/* One range in the middle fails: the command does, and the ranges behind it are left alone. */
void test_one_range_fails(void **state)
{
	struct driver driver;
	struct slow slow;
	unsigned char *list;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	list = driver_pages(&driver, PAGE);
	for (u32 i = 0; i < 3; i++)
		put_range(list, i, 2 * i, 1);
	slow.on_submit = fail_second;
	assert_int_equal(manage(&driver, driver_bus(list), 3, NVME_DSM_DEALLOCATE), NVME_STATUS_WRITE_FAULT);
	assert_int_equal(slow.note_count, 4); /* two began, two ended */
	driver_close(&driver);
}

/* Refused, then taken, for each kind of command, and more Compares than buffers. */
void test_medium_refuses(void **state)
{
	struct driver driver;
	struct slow slow;
	unsigned char *memory;
	struct nvme_cqe cqe;
	u32 seen = 0;

	(void)state;
	slow_driver_open(&driver, &slow, 32, 32, 0);
	memory = driver_pages(&driver, PAGE);
	for (u32 i = 0; i < 8; i++)
		put_range(memory, i, 2 * i, i != 3); /* an empty one asks nothing of the medium */
	for (u32 round = 1; round < 4; round++) {
		slow.refusals = round;
		assert_int_equal(io(&driver, NVME_OPCODE_WRITE, 50, 1, driver_bus(memory), 0), 0);
		slow.refusals = round;
		assert_int_equal(io(&driver, NVME_OPCODE_COMPARE, 50, 1, driver_bus(memory), 0), 0);
		slow.refusals = round;
		assert_int_equal(manage(&driver, driver_bus(memory), 8, NVME_DSM_DEALLOCATE), 0);
	}
	slow.capacity = 3;
	for (u32 i = 0; i < 20; i++)
		driver_post(&driver, 1, driver_io(NVME_OPCODE_COMPARE, 50, 1, driver_bus(memory), 0), i);
	for (u32 i = 0; i < 20; i++) {
		driver_reap(&driver, 1, &cqe);
		assert_int_equal(driver_status(&cqe), 0);
		seen |= 1u << driver_cid(&cqe);
	}
	assert_int_equal(seen, (1u << 20) - 1);
	driver_close(&driver);
}

static u64 reported_blocks; /* a bit for each block that told() was told */

static void reported(const struct weir_medium *medium, enum weir_io_kind kind, uint64_t offset_bytes)
{
	assert_true(kind == WEIR_IO_READ && offset_bytes < medium->bytes);
	reported_blocks |= (u64)1 << (offset_bytes / medium->block_bytes);
}

/* It refuses now and then, in the middle of what was copied ahead. */
static void refuse_some(struct slow *slow)
{
	static unsigned count;

	slow->refusals = ++count % 7 == 3;
}

void test_reported_ahead(void **state)
{
	struct weir_medium_ops ops = slow_ops;
	struct driver driver;
	struct slow slow;
	struct nvme_cqe cqe;
	u64 seen[2] = { 0 }, data;

	(void)state;
	ops.expect = reported;
	slow_driver_open(&driver, &slow, 32, 32, 0);
	slow.medium.ops = &ops;
	slow.on_submit = refuse_some;
	slow.capacity = 5;
	driver_add_queue(&driver, 2, 2, 32, 32);
	data = driver_bus(driver_pages(&driver, PAGE));
	for (u32 i = 0; i < 62; i++) {
		struct nvme_sqe sqe = driver_io(NVME_OPCODE_READ, i, 1, data, 0);

		driver_set_cid(&sqe, i);
		driver_put(&driver, i % 2 + 1, &sqe);
	}
	driver_ring(&driver, 1);
	driver_ring(&driver, 2);
	driver_step(&driver);
	assert_int_equal(__builtin_popcountll(reported_blocks), 16); /* then it refused */
	for (u32 i = 0; i < 62; i++) {
		driver_reap(&driver, i % 2 + 1, &cqe);
		assert_int_equal(driver_status(&cqe), 0);
		assert_true(driver_cid(&cqe) % 2 == i % 2 && !(seen[i % 2] >> driver_cid(&cqe) & 1));
		seen[i % 2] |= (u64)1 << driver_cid(&cqe);
	}
	assert_true((seen[0] | seen[1]) == ~(u64)0 >> 2);
	assert_true(reported_blocks == ~(u64)0 >> 2);
	driver_close(&driver);
}

/* Six commands, ended in an order of our choice, complete in that order. */
void test_any_order(void **state)
{
	static const unsigned order[] = { 3, 0, 2, 2, 0, 0 };
	static const u32 cids[] = { 3, 0, 4, 5, 1, 2 };
	struct driver driver;
	struct slow slow;
	struct nvme_cqe cqe;
	u64 data;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	data = driver_bus(driver_pages(&driver, PAGE));
	slow.hold = true;
	for (u32 i = 0; i < 6; i++)
		driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, i, 1, data, 0), i);
	assert_true(driver_nothing(&driver, 1));
	assert_true(weir_virtual_busy(driver.controller, 0));
	for (u32 i = 0; i < 6; i++) {
		slow_end_one(&slow, order[i]);
		driver_reap(&driver, 1, &cqe);
		assert_int_equal(driver_cid(&cqe), cids[i]);
	}
	driver_steps(&driver, 1);
	assert_false(weir_virtual_busy(driver.controller, 0));
	driver_close(&driver);
}

/* The medium has requests, and ends them one by one: it is not closed before the last. */
void test_an_end_with_requests_in_the_medium(void **state)
{
	struct driver driver;
	struct slow slow;
	u64 data;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	data = driver_bus(driver_pages(&driver, PAGE));
	slow.hold = true;
	for (u32 i = 0; i < 5; i++)
		driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, i, 1, data, 0), i);
	driver_steps(&driver, 10);
	assert_int_equal(slow.count, 5);
	slow.hold = false;
	slow.one = true;
	driver_close(&driver); /* slow_close() counts */
}

void test_cid_conflict(void **state)
{
	struct driver driver;
	struct slow slow;
	struct nvme_cqe cqe;
	u64 data;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	data = driver_bus(driver_pages(&driver, PAGE));
	slow.hold = true;
	driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), 65535);
	driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), 65535);
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_status(&cqe), NVME_STATUS_CID_CONFLICT);
	assert_true(driver_nothing(&driver, 1)); /* the first is still under way ... */
	driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), 65535);
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_status(&cqe), NVME_STATUS_CID_CONFLICT); /* ... and still is */
	slow.hold = false;
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_status(&cqe), 0);
	driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), 65535);
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_status(&cqe), 0);
	driver_close(&driver);
}
