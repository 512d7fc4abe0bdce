/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_ring_test.c: rings and doorbells of the virtual controller. */
#include "virtual_driver.h"

enum { PAGE = NVME_PAGE_BYTES };

static void open_pair(struct driver *driver, u32 sq_entries, u32 cq_entries)
{
	driver_open(driver, driver_defaults());
	driver_enable(driver);
	driver_add_queue(driver, 1, 1, sq_entries, cq_entries);
}

static u64 bad_doorbells(struct driver *driver)
{
	struct weir_virtual_stats stats;

	weir_virtual_stats(driver->controller, &stats);
	return stats.bad_doorbells;
}

/* Every pair of sizes wraps many times, in batches of every length. */
static void test_wrap(void **state)
{
	static const u32 sizes[] = { 2, 3, 5, 8, 17, 64 };
	struct driver driver;

	(void)state;
	for (u32 i = 0; i < 36; i++) {
		u32 sq = sizes[i / 6], cq = sizes[i % 6], batch = 1, done = 0;
		struct nvme_cqe cqe;
		u64 data;

		open_pair(&driver, sq, cq);
		data = driver_bus(driver_pages(&driver, PAGE));
		while (done < 600) {
			for (u32 j = 0; j < batch; j++)
				driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, j, 1, data, 0),
					    (done + j) & 0xffff);
			for (u32 j = 0; j < batch; j++) {
				driver_reap(&driver, 1, &cqe);
				assert_int_equal(driver_cid(&cqe), done + j);
				assert_int_equal(driver_status(&cqe), 0);
			}
			done += batch;
			batch = batch + 1 < sq ? batch + 1 : 1;
		}
		assert_int_equal(bad_doorbells(&driver), 0);
		driver_close(&driver);
	}
}

static void test_largest_queue(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	options.max_queue_entries = 65536;
	driver_open(&driver, options);
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 65536, 65536);
	for (u32 round = 0; round < 3; round++) {
		for (u32 i = 0; i < 65535; i++) {
			struct nvme_sqe sqe = { .cdw0 = NVME_OPCODE_FLUSH | i << 16, .nsid = 1 };

			driver_put(&driver, 1, &sqe);
		}
		driver_ring(&driver, 1);
		for (u32 i = 0; i < 65535; i++) {
			while (!driver_peek(&driver, 1, &cqe))
				driver_step(&driver);
			assert_int_equal(driver_cid(&cqe), i);
		}
		driver_release(&driver, 1);
	}
	driver_close(&driver);
}

/* A completion queue of 4 holds 3; the rest waits until the host makes room. */
static void test_full_cq(void **state)
{
	struct driver driver;
	struct nvme_cqe cqe;
	u32 expected = 0;
	u64 data;

	(void)state;
	open_pair(&driver, 32, 4);
	data = driver_bus(driver_pages(&driver, PAGE));
	for (u32 i = 0; i < 31; i++)
		driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), i);
	while (expected < 31) {
		u32 count = expected % 3 + 1; /* takes 1 to 3 of them at a time */

		driver_steps(&driver, 10);
		assert_int_equal(driver.cq[1].entries[(driver.cq[1].head + 3) % 4].dw3 >> 16 & 1,
				 driver.cq[1].head ? driver.cq[1].phase : !driver.cq[1].phase);
		for (u32 i = 0; i < count && expected < 31; i++) {
			assert_true(driver_peek(&driver, 1, &cqe));
			assert_int_equal(driver_cid(&cqe), expected++);
		}
		driver_release(&driver, 1);
	}
	assert_true(driver_nothing(&driver, 1));
	assert_int_equal(bad_doorbells(&driver), 0);
	driver_close(&driver);
}

/* Looking ahead takes nothing: each completion tells the head as its command left it. */
static void test_heads(void **state)
{
	struct driver driver;
	struct nvme_cqe cqe;
	u64 data;

	(void)state;
	open_pair(&driver, 64, 64);
	driver_add_queue(&driver, 2, 2, 64, 64);
	data = driver_bus(driver_pages(&driver, PAGE));
	for (u32 queue = 1; queue <= 2; queue++)
		for (u32 i = 0; i < 50; i++) { /* also blocks there are not, the last of all among them */
			u64 lba = i % 5 == 3 ? ~(u64)0 : i % 5 == 4 ? 8192 : i;
			struct nvme_sqe sqe = driver_io(NVME_OPCODE_READ, lba, 1, data, 0);

			driver_set_cid(&sqe, i);
			driver_put(&driver, queue, &sqe);
		}
	driver_ring(&driver, 1);
	driver_ring(&driver, 2);
	for (u32 queue = 1; queue <= 2; queue++)
		for (u32 i = 0; i < 50; i++) {
			driver_reap(&driver, queue, &cqe);
			assert_int_equal(driver_cid(&cqe), i);
			assert_int_equal(cqe.dw2, (i + 1) | queue << 16);
			assert_int_equal(driver_status(&cqe),
					 i % 5 < 3 ? 0 : NVME_STATUS_LBA_OUT_OF_RANGE | DRIVER_REFUSED);
		}
	driver_close(&driver);
}

static void test_shared_cq(void **state)
{
	u32 counts[5] = { 0 };
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	open_pair(&driver, 8, 4);
	for (u32 queue = 2; queue <= 4; queue++)
		driver_add_queue(&driver, queue, 1, 8, 0);
	for (u32 queue = 1; queue <= 4; queue++)
		for (u32 i = 0; i < 7; i++)
			driver_post(&driver, queue, (struct nvme_sqe){ .nsid = 1 }, i);
	for (u32 i = 0; i < 28; i++) {
		u32 queue;

		driver_reap(&driver, 1, &cqe);
		queue = cqe.dw2 >> 16;
		assert_in_range(queue, 1, 4);
		assert_int_equal(driver_status(&cqe), 0);
		assert_int_equal(driver_cid(&cqe), counts[queue]++);
	}
	driver_close(&driver);
}

static void test_bad_sq_doorbells(void **state)
{
	static const u32 values[] = { 8, 9, 0x10001, 0x80000000, 0xffffffff };
	struct driver driver;
	u64 data;

	(void)state;
	open_pair(&driver, 8, 8);
	data = driver_bus(driver_pages(&driver, PAGE));
	for (u32 i = 0; i < 5; i++) {
		assert_int_equal(driver_command(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), NULL),
				 0);
		driver_doorbell(&driver, 2, values[i]);
		assert_true(driver_nothing(&driver, 1));
		assert_int_equal(bad_doorbells(&driver), i + 1);
	}
	assert_int_equal(driver_command(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), NULL), 0);
	driver_close(&driver);
}

static void test_bad_cq_doorbells(void **state)
{
	struct driver driver;
	struct nvme_cqe cqe;
	u64 data;

	(void)state;
	open_pair(&driver, 8, 4);
	data = driver_bus(driver_pages(&driver, PAGE));
	for (u32 i = 0; i < 7; i++)
		driver_post(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), i);
	driver_steps(&driver, 5); /* three entries posted, the head is at 0 */
	driver_doorbell(&driver, 3, 4);
	driver_steps(&driver, 5);
	assert_int_equal(bad_doorbells(&driver), 1);
	driver_doorbell(&driver, 3, 0xffffffff);
	driver_steps(&driver, 5);
	assert_int_equal(bad_doorbells(&driver), 2);
	for (u32 i = 0; i < 3; i++) /* none was overwritten by what came after */
		assert_true(driver_peek(&driver, 1, &cqe) && driver_cid(&cqe) == i);
	driver_release(&driver, 1);
	for (u32 i = 3; i < 7; i++) {
		driver_reap(&driver, 1, &cqe);
		assert_int_equal(driver_cid(&cqe), i);
	}
	driver_steps(&driver, 5);
	driver_doorbell(&driver, 3, (driver.cq[1].head + 1) % 4); /* past what was posted */
	driver_steps(&driver, 5);
	assert_int_equal(bad_doorbells(&driver), 3);
	driver_release(&driver, 1);
	assert_int_equal(driver_command(&driver, 1, driver_io(NVME_OPCODE_READ, 0, 1, data, 0), NULL), 0);
	driver_close(&driver);
}

/* Either ring of the admin queue leaves the DMA map: a fatal error, and nothing is read from there any more,
 * nor written. */
static void test_admin_ring_lost(void **state)
{
	struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_GET_FEATURES, .cdw10 = NVME_FEATURE_NUMBER_OF_QUEUES };

	(void)state;
	for (u32 which = 0; which < 2; which++) {
		void *ring = aligned_alloc(PAGE, PAGE);
		struct driver driver;

		assert_non_null(ring);
		memset(ring, 0, PAGE);
		driver_open(&driver, driver_defaults());
		assert_int_equal(weir_dma_map_add(driver.dma, ring, PAGE), 0);
		driver_ring_open(&driver, 0, 0, 8, 8);
		if (which)
			driver.cq[0].entries = ring;
		else
			driver.sq[0].entries = ring;
		driver_write_rings(&driver);
		weir_virtual_write32(driver.controller, NVME_REGISTER_CC, DRIVER_CC);
		driver_wait_csts(&driver, ~0u, NVME_CSTS_READY);
		assert_int_equal(driver_admin(&driver, sqe), 0);
		assert_int_equal(weir_dma_map_remove(driver.dma, ring), 0);
		driver_put(&driver, 0, &sqe);
		if (which)
			memset(ring, 0x55, PAGE);
		driver_ring(&driver, 0);
		driver_steps(&driver, 10);
		assert_int_equal(weir_virtual_read32(driver.controller, NVME_REGISTER_CSTS),
				 NVME_CSTS_READY | NVME_CSTS_FATAL);
		for (u32 i = 0; which && i < PAGE; i++)
			assert_int_equal(((unsigned char *)ring)[i], 0x55);
		if (!which)
			assert_true(driver_nothing(&driver, 0));
		driver_disable(&driver);
		driver_enable(&driver);
		assert_int_equal(driver_admin(&driver, sqe), 0);
		driver_close(&driver);
		free(ring);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_largest_queue),
		cmocka_unit_test(test_full_cq),
		cmocka_unit_test(test_heads),
		cmocka_unit_test(test_shared_cq),
		cmocka_unit_test(test_bad_sq_doorbells),
		cmocka_unit_test(test_bad_cq_doorbells),
		cmocka_unit_test(test_admin_ring_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
