/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_fault_fail_test.c: the virtual controller fails as a whole, or is pulled out. */
#include "virtual_fault_driver.h"

static void test_fatal(void **state)
{
	struct driver driver;
	struct slow slow;
	struct weir_virtual_fault rows[] = {
		{ .kind = WEIR_VIRTUAL_FAULT_LATE, .us = 100, .count = 1 },
		{ .kind = WEIR_VIRTUAL_FAULT_DROP, .after = 1, .count = 1 },
		{ .kind = WEIR_VIRTUAL_FAULT_FATAL, .after = 6, .count = 1 },
	};
	struct weir_virtual_options options = table(rows, 3);
	u64 data;

	(void)state;
	slow_open(&slow, 4 << 20, BLOCK);
	options.medium = &slow.medium;
	open_with(&driver, options, 16);
	data = driver_bus(data_of(&driver));
	post_reads(&driver, 0, 2);
	driver_steps(&driver, 5);
	slow.hold = true;
	post_reads(&driver, 2, 8); /* the fifth of these is its end; some are with the medium */
	driver_wait_csts(&driver, NVME_CSTS_FATAL, NVME_CSTS_FATAL);
	slow.hold = false;
	virtual_ns += 1000000;
	assert_int_equal(next_cid(&driver), NONE);
	memset(data_of(&driver), 0xee, PAGE);
	driver_post(&driver, 0, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_IDENTIFY, .prp1 = data, .cdw10 = 1 },
		    50);
	post_reads(&driver, 20, 3);
	assert_true(driver_nothing(&driver, 0));
	assert_int_equal(next_cid(&driver), NONE);
	for (u32 i = 0; i < PAGE; i++)
		assert_int_equal(data_of(&driver)[i], 0xee); /* nor is anything carried out */
	assert_int_equal(faults_of(&driver), 3);
	for (u32 i = 0; i < 3; i++) { /* and a reset makes it whole */
		driver_disable(&driver);
		driver_enable(&driver);
		driver_add_queue(&driver, 1, 1, 16, 16);
		expect_clean(&driver);
	}
	driver_close(&driver);
}

/* CFS is set when all threads know, however late they come; and a reset may overtake them. */
static void test_fatal_thread_by_thread(void **state)
{
	struct weir_virtual_fault row = { .kind = WEIR_VIRTUAL_FAULT_FATAL, .count = 2 };
	struct weir_virtual_options options = table(&row, 1);
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	options.threads = 2;
	driver_open(&driver, options);
	for (u32 overtaken = 0; overtaken < 2; overtaken++) {
		driver_enable(&driver);
		driver_add_queue(&driver, 1, 1, 8, 8);
		post_reads(&driver, 0, 1);
		for (u32 i = 0; i < 10; i++)
			weir_virtual_poll(driver.controller, 0);
		assert_int_equal(driver_csts(&driver), NVME_CSTS_READY);
		if (!overtaken)
			driver_wait_csts(&driver, NVME_CSTS_FATAL, NVME_CSTS_FATAL);
		driver_disable(&driver);
	}
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 8, 8);
	driver_add_queue(&driver, 2, 2, 8, 8);
	expect_clean(&driver);
	post_io(&driver, 2, NVME_OPCODE_READ, 0, 1, 5);
	driver_reap(&driver, 2, &cqe);
	assert_int_equal(driver_cid(&cqe), 5);
	driver_close(&driver);
}

/* A queue is about to be deleted when the controller fails: a reset forgets that, too, and nobody hears of
 * it. */
static void test_fatal_while_a_deletion_waits(void **state)
{
	struct weir_virtual_fault row = { .kind = WEIR_VIRTUAL_FAULT_FATAL, .queue = 2, .count = 1 };
	struct weir_virtual_options options = table(&row, 1);
	struct driver driver;
	struct slow slow;

	(void)state;
	slow_open(&slow, 4 << 20, BLOCK);
	options.medium = &slow.medium;
	open_with(&driver, options, 8);
	driver_add_queue(&driver, 2, 2, 8, 8);
	slow.hold = true;
	post_reads(&driver, 0, 1);
	driver_steps(&driver, 5);
	driver_post(&driver, 0, driver_delete(NVME_ADMIN_DELETE_SQ, 1), 77);
	assert_true(driver_nothing(&driver, 0)); /* the medium has a command of it */
	post_io(&driver, 2, NVME_OPCODE_READ, 0, 1, 5);
	driver_wait_csts(&driver, NVME_CSTS_FATAL, NVME_CSTS_FATAL);
	slow.hold = false;
	driver_disable(&driver);
	driver_enable(&driver);
	assert_true(driver_nothing(&driver, 0));
	driver.next_cid = 77; /* which is free */
	driver_add_queue(&driver, 1, 1, 8, 8);
	assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_CQ, 1)),
			 NVME_STATUS_INVALID_QUEUE_DELETION | DRIVER_REFUSED);
	expect_clean(&driver);
	driver_close(&driver);
}

static void test_fatal_many_threads(void **state)
{
	struct weir_virtual_fault row = { .kind = WEIR_VIRTUAL_FAULT_FATAL, .queue = 3, .after = 50 };
	struct weir_virtual_options options = table(&row, 1);
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	options.threads = 4;
	options.clock_ns = NULL;
	driver_open(&driver, options);
	driver_start(&driver);
	for (u32 life = 0; life < 6; life++) {
		driver_enable(&driver);
		for (u32 q = 1; q <= 4; q++)
			driver_add_queue(&driver, q, q, 64, 64);
		for (u32 i = 0; !(driver_csts(&driver) & NVME_CSTS_FATAL); i++)
			for (u32 q = 1; q <= 4; q++) {
				if ((driver.sq[q].tail + 1) % 64 != driver.cq[q].head)
					driver_post(&driver, q, (struct nvme_sqe){ .nsid = 1 }, i % 65536);
				if (driver_peek(&driver, q, &cqe))
					driver_release(&driver, q);
			}
		for (u32 q = 1; q <= 4; q++) /* what had come before; after CFS nothing comes */
			while (driver_peek(&driver, q, &cqe))
				driver_release(&driver, q);
		for (u32 i = 0; i < 1000; i++)
			driver_step(&driver);
		for (u32 q = 0; q <= 4; q++)
			assert_false(driver_peek(&driver, q, &cqe));
		driver_disable(&driver);
	}
	driver_close(&driver);
}

/* Pulled out: registers and doorbells read as ones, nothing is carried out, and no reset brings it back. */
static void test_gone(void **state)
{
	struct driver driver;

	(void)state;
	open_text(&driver, "gone:after=2", 16);
	post_reads(&driver, 0, 2);
	assert_int_equal(next_cid(&driver), 0);
	assert_int_equal(next_cid(&driver), 1);
	assert_int_equal(driver_csts(&driver), NVME_CSTS_READY);
	post_reads(&driver, 2, 3);
	driver_wait_csts(&driver, UINT32_MAX, UINT32_MAX);
	assert_int_equal(next_cid(&driver), NONE);
	assert_true(weir_virtual_read64(driver.controller, NVME_REGISTER_CAP) == UINT64_MAX);
	assert_int_equal(weir_virtual_read32(driver.controller, NVME_REGISTER_DOORBELLS), UINT32_MAX);
	weir_virtual_write32(driver.controller, NVME_REGISTER_CC, 0);
	driver_steps(&driver, 10);
	assert_int_equal(driver_csts(&driver), UINT32_MAX);
	post_reads(&driver, 5, 1);
	assert_int_equal(next_cid(&driver), NONE);
	driver_close(&driver);
}

/* Switched off: CSTS and CC read 0, what it had never ends, and whoever enables it has it as new, again and
 * again. */
static void test_off(void **state)
{
	struct driver driver;

	(void)state;
	open_text(&driver, "off:after=2:every=5", 16);
	for (u32 life = 0; life < 3; life++) {
		u32 good = life ? 4 : 6;

		post_reads(&driver, 0, good);
		for (u32 i = 0; i < good; i++)
			assert_int_equal(next_cid(&driver), i);
		assert_int_equal(driver_csts(&driver), NVME_CSTS_READY);
		post_reads(&driver, good, 3);
		driver_wait_csts(&driver, UINT32_MAX, 0);
		assert_int_equal(weir_virtual_read32(driver.controller, NVME_REGISTER_CC), 0);
		assert_int_equal(next_cid(&driver), NONE);
		post_reads(&driver, 10, 1);
		assert_int_equal(next_cid(&driver), NONE);
		assert_int_equal(faults_of(&driver), life + 1);
		driver_enable(&driver);
		driver_add_queue(&driver, 1, 1, 16, 16);
	}
	driver_close(&driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fatal),
		cmocka_unit_test(test_fatal_thread_by_thread),
		cmocka_unit_test(test_fatal_while_a_deletion_waits),
		cmocka_unit_test(test_fatal_many_threads),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
