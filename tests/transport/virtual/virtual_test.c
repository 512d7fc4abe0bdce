/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_test.c: the virtual controller's registers: enable, reset, shutdown. */
#include "virtual_medium.h"

#include <errno.h>

enum { PAGE = NVME_PAGE_BYTES };

static u32 read_cc(struct driver *driver)
{
	return weir_virtual_read32(driver->controller, NVME_REGISTER_CC);
}

static void write_cc(struct driver *driver, u32 value)
{
	weir_virtual_write32(driver->controller, NVME_REGISTER_CC, value);
}

static void test_capabilities(void **state)
{
	struct driver driver;
	u64 cap;

	(void)state;
	driver_open(&driver, driver_defaults());
	cap = weir_virtual_read64(driver.controller, NVME_REGISTER_CAP);
	assert_int_equal(cap & 0xffff, 1023);   /* MQES, zero based */
	assert_int_equal(cap >> 16 & 1, 1);     /* CQR */
	assert_int_equal(cap >> 17 & 3, 0);     /* AMS */
	assert_int_equal(cap >> 24 & 0xff, 20); /* TO: 10 s, in units of 500 ms */
	assert_int_equal(cap >> 32 & 15, 0);    /* DSTRD */
	assert_int_equal(cap >> 37 & 0xff, 1);  /* CSS */
	assert_int_equal(cap >> 48, 0);         /* MPSMIN, MPSMAX */
	assert_int_equal((u32)cap, weir_virtual_read32(driver.controller, NVME_REGISTER_CAP));
	assert_int_equal(cap >> 32, weir_virtual_read32(driver.controller, NVME_REGISTER_CAP + 4));
	assert_int_equal(weir_virtual_read32(driver.controller, NVME_REGISTER_VS), 0x00010400);
	assert_int_equal(driver_csts(&driver), 0);
	driver_close(&driver);
}

static void test_register_access(void **state)
{
	struct driver driver;
	struct weir_virtual *controller;

	(void)state;
	driver_open(&driver, driver_defaults());
	controller = driver.controller;
	weir_virtual_write64(controller, NVME_REGISTER_ASQ, 0x123456789abcd000);
	assert_true(weir_virtual_read64(controller, NVME_REGISTER_ASQ) == 0x123456789abcd000);
	weir_virtual_write32(controller, NVME_REGISTER_ASQ + 4, 7);
	assert_true(weir_virtual_read64(controller, NVME_REGISTER_ASQ) == 0x79abcd000);
	for (u32 offset = 0; offset < 0x2000; offset++) /* read only, or no register at all */
		if (offset < NVME_REGISTER_CC || (offset > NVME_REGISTER_CC && offset < 0x1000) || offset % 4)
			weir_virtual_write32(controller, offset, 0xffffffff);
	assert_int_equal(weir_virtual_read32(controller, NVME_REGISTER_VS), 0x00010400);
	assert_int_equal(weir_virtual_read32(controller, NVME_REGISTER_CAP) & 0xffff, 1023);
	assert_int_equal(driver_csts(&driver), 0);
	assert_int_equal(weir_virtual_read32(controller, 0xffffffff), 0);
	assert_int_equal(weir_virtual_read32(controller, 0xfffffffc), 0);
	assert_int_equal(weir_virtual_read32(controller, 0x800), 0);
	weir_virtual_write32(controller, NVME_REGISTER_DOORBELLS + 12, 5);
	assert_int_equal(weir_virtual_doorbells(controller)[3], 5);
	assert_int_equal(weir_virtual_read32(controller, NVME_REGISTER_DOORBELLS + 12), 5);
	assert_int_equal((uintptr_t)weir_virtual_doorbells(controller) % PAGE, 0);
	driver_close(&driver);
}

static void expect_fatal(struct driver *driver, u32 cc)
{
	write_cc(driver, cc);
	driver_wait_csts(driver, ~0u, NVME_CSTS_FATAL);
	driver_steps(driver, 5);
	assert_int_equal(driver_csts(driver), NVME_CSTS_FATAL);
	driver_disable(driver);
}

static void test_enable_refused(void **state)
{
	static const u32 bits[] = { 1u << 4, 1u << 7, 1u << 11, 1u << 16, 1u << 20 };
	struct driver driver;
	struct weir_virtual *controller;
	u64 asq;

	(void)state;
	driver_open(&driver, driver_defaults());
	controller = driver.controller;
	driver_ring_open(&driver, 0, 0, 8, 8);
	driver_write_rings(&driver);
	asq = driver_bus(driver.sq[0].entries);
	for (u32 i = 0; i < 5; i++) /* CSS, MPS, AMS, IOSQES, IOCQES */
		expect_fatal(&driver, DRIVER_CC ^ bits[i]);
	weir_virtual_write32(controller, NVME_REGISTER_AQA, 7 << 16);
	expect_fatal(&driver, DRIVER_CC);
	weir_virtual_write32(controller, NVME_REGISTER_AQA, 7);
	expect_fatal(&driver, DRIVER_CC);
	weir_virtual_write32(controller, NVME_REGISTER_AQA, 7 | 7 << 16);
	weir_virtual_write64(controller, NVME_REGISTER_ASQ, asq + 64);
	expect_fatal(&driver, DRIVER_CC);
	weir_virtual_write64(controller, NVME_REGISTER_ASQ, 4096);
	expect_fatal(&driver, DRIVER_CC);
	weir_virtual_write64(controller, NVME_REGISTER_ASQ, asq);
	weir_virtual_write64(controller, NVME_REGISTER_ACQ, ~(u64)PAGE + 1);
	expect_fatal(&driver, DRIVER_CC);
	weir_virtual_write64(controller, NVME_REGISTER_ACQ, asq + 16);
	expect_fatal(&driver, DRIVER_CC);
	/* The last page of the arena has room for 64 commands and for 256 completions. */
	weir_virtual_write64(controller, NVME_REGISTER_ASQ,
			     driver_bus(driver.arena) + DRIVER_ARENA_BYTES - PAGE);
	weir_virtual_write64(controller, NVME_REGISTER_ACQ, asq);
	weir_virtual_write32(controller, NVME_REGISTER_AQA, 64 | 7 << 16);
	expect_fatal(&driver, DRIVER_CC);
	weir_virtual_write64(controller, NVME_REGISTER_ASQ, asq);
	weir_virtual_write64(controller, NVME_REGISTER_ACQ,
			     driver_bus(driver.arena) + DRIVER_ARENA_BYTES - PAGE);
	weir_virtual_write32(controller, NVME_REGISTER_AQA, 7 | 256 << 16);
	expect_fatal(&driver, DRIVER_CC);
	driver_enable(&driver); /* and with everything right it works */
	assert_int_equal(driver_csts(&driver), NVME_CSTS_READY);
	driver_close(&driver);
}

static void test_nothing_before_poll(void **state)
{
	struct driver driver;

	(void)state;
	driver_open(&driver, driver_defaults());
	driver_ring_open(&driver, 0, 0, 2, 2);
	driver_write_rings(&driver);
	write_cc(&driver, DRIVER_CC);
	assert_int_equal(driver_csts(&driver), 0);
	driver_step(&driver);
	assert_int_equal(driver_csts(&driver), NVME_CSTS_READY);
	write_cc(&driver, DRIVER_CC & ~NVME_CC_ENABLE);
	assert_int_equal(driver_csts(&driver), NVME_CSTS_READY);
	driver_wait_csts(&driver, ~0u, 0);
	assert_int_equal(read_cc(&driver), DRIVER_CC & ~NVME_CC_ENABLE);
	driver_close(&driver);
}

/* A reset nobody waited for still is one: 1, 0, 1 between two polls. */
static void test_fast_toggle(void **state)
{
	struct driver driver;
	struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_DELETE_SQ, .cdw10 = 1 };

	(void)state;
	driver_open(&driver, driver_defaults());
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 8, 8);
	write_cc(&driver, 0);
	write_cc(&driver, DRIVER_CC);
	driver_steps(&driver, 10);
	assert_int_equal(driver_csts(&driver), NVME_CSTS_READY);
	assert_int_equal(weir_virtual_doorbells(driver.controller)[0], 0);
	driver_ring_open(&driver, 0, 0, 8, 8);
	driver_write_rings(&driver);
	write_cc(&driver, 0);
	write_cc(&driver, DRIVER_CC);
	driver_steps(&driver, 10);
	assert_int_equal(driver_admin(&driver, sqe), NVME_STATUS_INVALID_QID | DRIVER_REFUSED);
	driver_close(&driver);
}

static void test_reset_and_again(void **state)
{
	struct driver driver;

	(void)state;
	driver_open(&driver, driver_defaults());
	for (u32 round = 0; round < 20; round++) {
		volatile u32 *doorbells = weir_virtual_doorbells(driver.controller);
		u64 data;

		driver_enable(&driver);
		driver_add_queue(&driver, 1 + round % 8, 8 - round % 8, 2 + round, 3 + round);
		data = driver_bus(driver_pages(&driver, PAGE));
		for (u32 i = 0; i < 50; i++)
			assert_int_equal(driver_command(&driver, 1 + round % 8,
							driver_io(NVME_OPCODE_READ, i, 1, data, 0), NULL),
					 0);
		driver_disable(&driver);
		for (u32 i = 0; i < 2 * DRIVER_QUEUES; i++)
			assert_int_equal(doorbells[i], 0);
	}
	driver_close(&driver);
}

/* RDY stays until the medium gave everything back; nothing is written after that. */
static void test_reset_in_flight(void **state)
{
	struct driver driver;
	struct slow slow;
	unsigned char *data;

	(void)state;
	slow_driver_open(&driver, &slow, 16, 16, 0);
	data = driver_pages(&driver, PAGE);
	slow.hold = true;
	slow.capacity = 4;
	for (u32 i = 0; i < 8; i++)
		driver_post(
			&driver, 1,
			driver_io(i & 1 ? NVME_OPCODE_COMPARE : NVME_OPCODE_READ, 0, 1, driver_bus(data), 0),
			i);
	driver_steps(&driver, 10);
	assert_int_equal(slow.count, 4);
	write_cc(&driver, 0);
	driver_steps(&driver, 10);
	assert_int_equal(driver_csts(&driver), NVME_CSTS_READY);
	memset(data, 0x5a, PAGE);
	while (slow.count)
		slow_end_one(&slow, 0);
	assert_int_equal(data[0], 0); /* the read had begun, and RDY was still set */
	driver_wait_csts(&driver, ~0u, 0);
	assert_false(weir_virtual_busy(driver.controller, 0));
	memset(driver.arena, 0x5a, DRIVER_ARENA_BYTES);
	driver_steps(&driver, 10);
	for (size_t i = 0; i < DRIVER_ARENA_BYTES; i++)
		assert_int_equal(driver.arena[i], 0x5a);
	slow.hold = false;
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 4, 4);
	for (u32 i = 0; i < 8; i++) /* the same identifiers are free again */
		assert_int_equal(driver_command(&driver, 1,
						driver_io(NVME_OPCODE_READ, 0, 1,
							  driver_bus(driver_pages(&driver, PAGE)), 0),
						NULL),
				 0);
	driver_close(&driver);
}

/* Timed completions of three threads, pending admin commands and events, all forgotten. */
static void test_reset_in_time(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct nvme_sqe event = { .cdw0 = NVME_ADMIN_ASYNC_EVENT };
	struct driver driver;
	struct nvme_cqe cqe;
	u64 data;

	(void)state;
	options.threads = 3;
	options.latency_us = 1000 * 1000 * 1000;
	driver_open(&driver, options);
	for (u32 round = 0; round < 3; round++) {
		driver_enable(&driver);
		data = driver_bus(driver_pages(&driver, PAGE));
		for (u32 queue = 1; queue <= 6; queue++)
			driver_add_queue(&driver, queue, queue, 8, 8);
		for (u32 queue = 1; queue <= 6; queue++)
			for (u32 i = 0; i < 5; i++)
				driver_post(&driver, queue, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), i);
		driver_post(&driver, 0, event, 1);
		driver_steps(&driver, 5);
		driver_disable(&driver);
		for (u32 queue = 0; queue <= 6; queue++)
			assert_false(driver_peek(&driver, queue, &cqe));
		for (u32 i = 0; i < 3; i++)
			assert_false(weir_virtual_busy(driver.controller, i));
	}
	driver_close(&driver);
}

static void test_reset_restores_features(void **state)
{
	struct nvme_sqe set = { .cdw0 = NVME_ADMIN_SET_FEATURES, .cdw10 = 7, .cdw11 = 0 };
	struct nvme_sqe get = { .cdw0 = NVME_ADMIN_GET_FEATURES, .cdw10 = 7 };
	struct driver driver;
	u32 result;

	(void)state;
	driver_open(&driver, driver_defaults());
	driver_enable(&driver);
	assert_int_equal(driver_command(&driver, 0, set, &result), 0);
	assert_int_equal(result, 0);
	driver_disable(&driver);
	driver_enable(&driver);
	assert_int_equal(driver_command(&driver, 0, get, &result), 0);
	assert_int_equal(result, 7 | 7 << 16);
	driver_close(&driver);
}

static void test_shutdown(void **state)
{
	struct driver driver;
	struct slow slow;
	struct nvme_cqe cqe;
	u64 data;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	data = driver_bus(driver_pages(&driver, PAGE));
	slow.hold = true;
	driver_post(&driver, 1, driver_io(NVME_OPCODE_WRITE, 0, 1, data, 0), 3);
	driver_steps(&driver, 5);
	write_cc(&driver, DRIVER_CC | 1u << 14);
	driver_steps(&driver, 5);
	assert_int_equal(driver_csts(&driver), NVME_CSTS_READY | 1u << 2);
	assert_int_equal(slow.flushes, 0);
	slow_end_one(&slow, 0); /* the write; the flush comes after it */
	driver_steps(&driver, 5);
	assert_true(driver_peek(&driver, 1, &cqe));
	assert_int_equal(driver_status(&cqe), 0);
	assert_int_equal(slow.flushes, 1);
	assert_int_equal(driver_csts(&driver), NVME_CSTS_READY | 1u << 2);
	slow.hold = false;
	driver_wait_csts(&driver, ~0u, NVME_CSTS_READY | NVME_CSTS_SHUTDOWN_DONE);
	driver_post(&driver, 1, driver_io(NVME_OPCODE_WRITE, 0, 1, data, 0), 4);
	assert_true(driver_nothing(&driver, 1)); /* it is shut */
	assert_int_equal(slow.flushes, 1);
	driver_disable(&driver);
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 8, 8);
	driver_close(&driver);
}

/* Commands of another thread's queue: the flush waits for those, too. */
static void test_shutdown_flushes_behind_all_writes(void **state)
{
	struct driver driver;
	struct slow slow;
	u64 data;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	data = driver_bus(driver_pages(&driver, PAGE));
	slow.hold = true;
	for (u32 i = 0; i < 4; i++)
		driver_post(&driver, 1, driver_io(NVME_OPCODE_WRITE, i, 1, data, 0), i);
	driver_steps(&driver, 5);
	write_cc(&driver, DRIVER_CC | 1u << 14);
	driver_steps(&driver, 20);
	assert_int_equal(slow.note_count, 4);
	for (u32 i = 0; i < 4; i++) {
		assert_int_equal(slow.flushes, 0);
		slow_end_one(&slow, 0);
		driver_steps(&driver, 20);
	}
	assert_int_equal(slow.flushes, 1);
	assert_int_equal(slow_when(&slow, WEIR_IO_FLUSH, false), 8);
	slow.hold = false;
	driver_wait_csts(&driver, ~0u, NVME_CSTS_READY | NVME_CSTS_SHUTDOWN_DONE);
	driver_close(&driver);
}

/* A shutdown that could not make everything durable has to say so. */
static void test_shutdown_flush_fails(void **state)
{
	struct driver driver;
	struct slow slow;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	slow.status = NVME_STATUS_WRITE_FAULT;
	write_cc(&driver, DRIVER_CC | 1u << 14);
	driver_wait_csts(&driver, NVME_CSTS_SHUTDOWN_MASK, NVME_CSTS_SHUTDOWN_DONE);
	assert_true(driver_csts(&driver) & NVME_CSTS_FATAL);
	slow.status = 0;
	driver_close(&driver);
}

static void test_shutdown_disabled(void **state)
{
	struct driver driver;

	(void)state;
	driver_open(&driver, driver_defaults());
	write_cc(&driver, 2u << 14);
	driver_wait_csts(&driver, ~0u, NVME_CSTS_SHUTDOWN_DONE);
	driver_enable(&driver);
	assert_int_equal(driver_csts(&driver), NVME_CSTS_READY);
	driver_close(&driver);
}

static void test_shutdown_flush_refused(void **state)
{
	struct driver driver;
	struct slow slow;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	slow.refusals = 3;
	write_cc(&driver, DRIVER_CC | 1u << 14);
	driver_wait_csts(&driver, ~0u, NVME_CSTS_READY | NVME_CSTS_SHUTDOWN_DONE);
	assert_int_equal(slow.refusals, 0);
	assert_int_equal(slow.flushes, 1);
	driver_close(&driver);
}

/* A ring taken out of the DMA map is a fatal error, not a wild write. */
static void test_ring_lost(void **state)
{
	struct driver driver;
	struct weir_virtual_stats before, after;
	struct nvme_sqe *ring;
	struct slow slow;
	unsigned changes;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	changes = slow.changes;
	assert_true(changes > 0);
	ring = aligned_alloc(PAGE, PAGE);
	assert_non_null(ring);
	memset(ring, 0, PAGE);
	assert_int_equal(weir_dma_map_add(driver.dma, ring, PAGE), 0);
	driver.sq[2] = (struct driver_sq){ ring, 16, 0, 1 };
	assert_int_equal(driver_admin(&driver, driver_create_sq(2, 1, driver_bus(ring), 16)), 0);
	assert_true(slow.changes > changes);
	assert_int_equal(driver_command(&driver, 2, (struct nvme_sqe){ .nsid = 1 }, NULL), 0);
	assert_int_equal(weir_dma_map_remove(driver.dma, ring), 0);
	driver_ring(&driver, 2);
	free(ring);
	weir_virtual_stats(driver.controller, &before);
	driver_doorbell(&driver, 4, 5);
	driver_steps(&driver, 10);
	weir_virtual_stats(driver.controller, &after);
	assert_int_equal(after.commands, before.commands); /* nothing was read from it */
	assert_false(weir_virtual_busy(driver.controller, 0));
	assert_int_equal(driver_csts(&driver), NVME_CSTS_READY | NVME_CSTS_FATAL);
	driver_disable(&driver);
	driver_enable(&driver);
	driver_close(&driver);
}

/* Likewise a completion queue's, whose submission queue is still there. */
static void test_completion_ring_lost(void **state)
{
	struct driver driver;
	void *ring = aligned_alloc(PAGE, PAGE);

	(void)state;
	driver_open(&driver, driver_defaults());
	driver_enable(&driver);
	assert_non_null(ring);
	memset(ring, 0, PAGE);
	assert_int_equal(weir_dma_map_add(driver.dma, ring, PAGE), 0);
	driver_ring_open(&driver, 1, 1, 16, 16);
	driver.cq[1].entries = ring;
	assert_int_equal(driver_admin(&driver, driver_create_cq(1, driver_bus(ring), 16)), 0);
	assert_int_equal(driver_admin(&driver, driver_create_sq(1, 1, driver_bus(driver.sq[1].entries), 16)),
			 0);
	assert_int_equal(driver_command(&driver, 1, (struct nvme_sqe){ .nsid = 1 }, NULL), 0);
	assert_int_equal(weir_dma_map_remove(driver.dma, ring), 0);
	memset(ring, 0x55, PAGE);
	driver_post(&driver, 1, (struct nvme_sqe){ .nsid = 1 }, 7);
	driver_steps(&driver, 10);
	assert_int_equal(driver_csts(&driver), NVME_CSTS_READY | NVME_CSTS_FATAL);
	for (u32 i = 0; i < PAGE; i++)
		assert_int_equal(((unsigned char *)ring)[i], 0x55);
	free(ring);
	driver_close(&driver);
}

/* A controller goes while its medium has requests: they end first, since they have memory of its in hand. */
static void test_destroyed_in_flight(void **state)
{
	struct driver driver;
	struct slow slow;
	u64 data;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	data = driver_bus(driver_pages(&driver, PAGE));
	slow.hold = true;
	for (u32 i = 0; i < 5; i++)
		driver_post(&driver, 1, driver_io(NVME_OPCODE_WRITE, i, 1, data, 0), i);
	driver_steps(&driver, 5);
	assert_int_equal(slow.count, 5);
	slow.hold = false;
	driver_close(&driver); /* which looks that none is left */
	assert_int_equal(slow.note_count, 10);
}

static void expect_refused(struct driver *driver, struct weir_virtual_options options)
{
	struct weir_virtual *controller = NULL;

	options.medium = options.medium ? options.medium : driver->medium;
	options.dma = driver->dma;
	assert_int_equal(weir_virtual_create(&options, &controller), -EINVAL);
	assert_null(controller);
}

static void test_options(void **state)
{
	struct weir_virtual_options options;
	struct driver driver;

	(void)state;
	driver_open(&driver, driver_defaults());
	options = driver_defaults();
	options.size = offsetof(struct weir_virtual_options, iops);
	expect_refused(&driver, options);
	options = driver_defaults();
	options.threads = 0;
	expect_refused(&driver, options);
	options = driver_defaults();
	options.max_queue_pairs = 0;
	expect_refused(&driver, options);
	options.max_queue_pairs = 65536;
	expect_refused(&driver, options);
	options = driver_defaults();
	options.max_queue_entries = 1;
	expect_refused(&driver, options);
	options.max_queue_entries = 65537;
	expect_refused(&driver, options);
	options = driver_defaults();
	options.max_transfer_bytes = 2048;
	expect_refused(&driver, options);
	options.max_transfer_bytes = 12288;
	expect_refused(&driver, options);
	options.max_transfer_bytes = 1 << 27;
	expect_refused(&driver, options);
	driver_close(&driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capabilities),
		cmocka_unit_test(test_register_access),
		cmocka_unit_test(test_enable_refused),
		cmocka_unit_test(test_nothing_before_poll),
		cmocka_unit_test(test_fast_toggle),
		cmocka_unit_test(test_reset_and_again),
		cmocka_unit_test(test_reset_in_flight),
		cmocka_unit_test(test_reset_in_time),
		cmocka_unit_test(test_reset_restores_features),
		cmocka_unit_test(test_shutdown),
		cmocka_unit_test(test_shutdown_flushes_behind_all_writes),
		cmocka_unit_test(test_shutdown_flush_fails),
		cmocka_unit_test(test_shutdown_disabled),
		cmocka_unit_test(test_shutdown_flush_refused),
		cmocka_unit_test(test_ring_lost),
		cmocka_unit_test(test_completion_ring_lost),
		cmocka_unit_test(test_destroyed_in_flight),
		cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
