/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_fault_test.c: what the virtual controller does wrong, when it is told to: each kind. */
#include "virtual_fault_driver.h"

#include "virtual_fault_cases.h"

#include <stdio.h>

static void test_status(void **state)
{
	struct driver driver;

	(void)state;
	open_text(&driver, "status:code=0x281:op=read:count=1,status:code=0x280:dnr=1:op=write:count=1", 8);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, 0, 1), NVME_STATUS_UNRECOVERED_READ);
	driver_fill(data_of(&driver), 7, BLOCK, 1);
	assert_int_equal(run_io(&driver, NVME_OPCODE_WRITE, 7, 1), NVME_STATUS_WRITE_FAULT | NVME_STATUS_DNR);
	memset(data_of(&driver), 1, BLOCK);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, 7, 1), 0);
	for (u32 i = 0; i < BLOCK; i++)
		assert_int_equal(data_of(&driver)[i], 0); /* as it was: the write did not happen */
	assert_int_equal(faults_of(&driver), 2);
	driver_close(&driver);
}

static void test_late(void **state)
{
	struct driver driver;

	(void)state;
	open_text(&driver, "late:us=500:count=1,late:us=100:after=2:count=1", 16);
	post_reads(&driver, 0, 4);
	assert_int_equal(next_cid(&driver), 1);
	assert_int_equal(next_cid(&driver), 3);
	assert_int_equal(next_cid(&driver), NONE);
	virtual_ns += 99999;
	assert_int_equal(next_cid(&driver), NONE);
	virtual_ns += 1;
	assert_int_equal(next_cid(&driver), 2);
	virtual_ns += 399999;
	assert_int_equal(next_cid(&driver), NONE);
	assert_true(weir_virtual_busy(driver.controller, 0));
	virtual_ns += 1;
	assert_int_equal(next_cid(&driver), 0);
	assert_false(weir_virtual_busy(driver.controller, 0));
	expect_clean(&driver);
	driver_close(&driver);
}

/* Beyond the time that it takes anyway, and the clock is ours in both. */
static void test_late_with_latency(void **state)
{
	const struct weir_virtual_fault row = { .kind = WEIR_VIRTUAL_FAULT_LATE, .us = 50, .count = 1 };
	struct weir_virtual_options options = table(&row, 1);
	struct driver driver;

	(void)state;
	options.latency_us = 20;
	open_with(&driver, options, 8);
	post_reads(&driver, 0, 2);
	assert_int_equal(next_cid(&driver), NONE);
	virtual_ns += 19999;
	assert_int_equal(next_cid(&driver), NONE);
	virtual_ns += 1;
	assert_int_equal(next_cid(&driver), 1);
	virtual_ns += 49999;
	assert_int_equal(next_cid(&driver), NONE);
	virtual_ns += 1;
	assert_int_equal(next_cid(&driver), 0);
	driver_close(&driver);
}

/* Groups of four of ten commands: their identifiers in the order of completion. */
static void grouped(struct driver *driver, const char *text, u32 order[10])
{
	open_text(driver, text, 16);
	post_reads(driver, 0, 10);
	for (u32 i = 0; i < 10; i++) {
		order[i] = next_cid(driver);
		assert_true(order[i] < 10);
		assert_true(order[i] / 4 == i / 4);
		for (u32 j = 0; j < i; j++)
			assert_int_not_equal(order[i], order[j]);
	}
	assert_int_equal(next_cid(driver), NONE);
	assert_int_equal(faults_of(driver), 10);
	expect_clean(driver);
	driver_close(driver);
}

static void test_shuffle(void **state)
{
	u32 order[10], again[10], orders = 0, moved = 0;
	struct driver driver;
	char text[64];

	(void)state;
	for (u32 seed = 0; seed < 8; seed++) {
		u32 displaced = 0;

		snprintf(text, sizeof(text), "shuffle:of=4:seed=%u", seed);
		grouped(&driver, text, order);
		for (u32 i = 0; i < 10; i++)
			displaced += order[i] != i;
		moved += displaced > 0;
		orders += seed > 0 && memcmp(order, again, sizeof(order));
		grouped(&driver, text, again);
		assert_memory_equal(order, again, sizeof(order)); /* the same seed, the same order */
	}
	assert_true(moved >= 6);
	assert_true(orders >= 6);
}

static void test_burst(void **state)
{
	struct weir_virtual_fault row = { .kind = WEIR_VIRTUAL_FAULT_BURST, .of = 4 };
	struct weir_virtual_options options = table(&row, 1);
	struct driver driver;
	struct slow slow;
	u32 order[10];

	(void)state;
	grouped(&driver, "burst:of=4", order);
	for (u32 i = 0; i < 10; i++)
		assert_int_equal(order[i], i);
	slow_open(&slow, 4 << 20, BLOCK);
	options.medium = &slow.medium;
	open_with(&driver, options, 16);
	slow.hold = true;
	post_reads(&driver, 0, 6);
	driver_steps(&driver, 5);
	for (u32 i = 0; i < 3; i++)
		slow_end_one(&slow, 0);
	assert_int_equal(next_cid(&driver), NONE); /* held: others are under way */
	slow_end_one(&slow, 0);
	for (u32 i = 0; i < 4; i++)
		assert_int_equal(next_cid(&driver), i);
	slow_end_one(&slow, 0);
	assert_int_equal(next_cid(&driver), NONE);
	slow_end_one(&slow, 0);
	assert_int_equal(next_cid(&driver), 4); /* no other can come */
	assert_int_equal(next_cid(&driver), 5);
	driver_close(&driver);
}

/* Fetched one by one, they still meet; and so do two groups that would wait for one another. */
static void test_groups_wait_for_what_can_come(void **state)
{
	const struct weir_virtual_fault rows[] = {
		{ .kind = WEIR_VIRTUAL_FAULT_BURST, .of = 4, .opcode = WEIR_VIRTUAL_FAULT_READ },
		{ .kind = WEIR_VIRTUAL_FAULT_BURST, .of = 4, .opcode = WEIR_VIRTUAL_FAULT_WRITE },
	};
	struct weir_virtual_options options = table(rows, 2);
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	options.fetch_batch = 1;
	open_with(&driver, options, 16);
	post_reads(&driver, 0, 4);
	driver_steps(&driver, 3);
	assert_false(driver_peek(&driver, 1, &cqe));
	driver_step(&driver);
	for (u32 i = 0; i < 4; i++) {
		assert_true(driver_peek(&driver, 1, &cqe));
		assert_int_equal(driver_cid(&cqe), i);
	}
	driver_release(&driver, 1);
	for (u32 i = 0; i < 4; i++)
		post_io(&driver, 1, i & 1 ? NVME_OPCODE_READ : NVME_OPCODE_WRITE, 0, 1, i);
	for (u32 i = 0; i < 4; i++)
		assert_int_not_equal(next_cid(&driver), NONE);
	driver_close(&driver);
}

/* Compares have few private buffers: those that are held must not keep them. */
static void test_groups_keep_no_buffer(void **state)
{
	struct driver driver;
	u32 got = 0;

	(void)state;
	open_text(&driver, "drop:count=6,burst:of=8", 32);
	for (u32 i = 0; i < 22; i++)
		post_io(&driver, 1, NVME_OPCODE_COMPARE, 0, 1, i);
	while (next_cid(&driver) != NONE)
		got++;
	assert_int_equal(got, 16);
	driver_close(&driver);
}

static void test_stall(void **state)
{
	struct driver driver;
	u32 got = 0;

	(void)state;
	open_text(&driver, "stall:us=300:queue=1:after=1:count=1", 16);
	driver_add_queue(&driver, 2, 1, 16, 0);
	post_reads(&driver, 0, 5);
	assert_int_equal(next_cid(&driver), 0);
	assert_int_equal(next_cid(&driver), 1); /* fetched with it, and completed */
	assert_int_equal(next_cid(&driver), NONE);
	post_io(&driver, 2, NVME_OPCODE_READ, 0, 1, 100); /* the other queue goes on */
	assert_int_equal(next_cid(&driver), 100);
	virtual_ns += 299999;
	assert_int_equal(next_cid(&driver), NONE);
	virtual_ns += 1;
	while (next_cid(&driver) != NONE)
		got++;
	assert_int_equal(got, 3);
	assert_int_equal(faults_of(&driver), 1);
	driver_close(&driver);
}

/* Longer than 32 bits of nanoseconds, of a queue and of a completion. */
static void test_long_delays(void **state)
{
	static const char *const texts[] = { "stall:us=5000000:count=1", "late:us=5000000:after=1:count=1" };

	(void)state;
	for (u32 i = 0; i < 2; i++) {
		struct driver driver;

		open_text(&driver, texts[i], 16);
		post_reads(&driver, 0, 1);
		assert_int_equal(next_cid(&driver), 0);
		post_reads(&driver, 1, 1);
		driver_steps(&driver, 5);
		virtual_ns += 4999999999u;
		assert_int_equal(next_cid(&driver), NONE);
		virtual_ns += 1;
		assert_int_equal(next_cid(&driver), 1);
		driver_close(&driver);
	}
}

/* A row for a block beyond 2^32 is for that one alone, and one for a block below for none beyond. */
static void test_blocks_beyond_32_bits(void **state)
{
	const u64 far = ((u64)1 << 32) + 7;
	struct weir_virtual_fault rows[8];
	struct weir_virtual_options options;
	struct driver driver;
	unsigned count;

	(void)state;
	assert_int_equal(weir_virtual_faults_parse(
				 "status:code=0x281:lba=7,status:code=0x286:lba=8589934599-8589934600", rows,
				 8, &count),
			 0);
	options = table(rows, count);
	assert_int_equal(weir_medium_sparse_open((u64)100 << 40, BLOCK, &options.medium), 0);
	open_with(&driver, options, 8);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, 7, 1), NVME_STATUS_UNRECOVERED_READ);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, far, 1), 0);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, 8, 1), 0);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, 2 * far - 7, 1), 0x286);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, 2 * far - 8, 2), 0x286);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, 2 * far - 5, 1), 0);
	driver_close(&driver);
}

static void drop_three(struct driver *driver, u32 entries)
{
	open_text(driver, "drop:count=3", entries);
	post_reads(driver, 0, 4);
	assert_int_equal(next_cid(driver), 3);
	assert_int_equal(next_cid(driver), NONE);
	assert_int_equal(faults_of(driver), 3);
	driver_steps(driver, 1);
	assert_false(weir_virtual_busy(driver->controller, 0)); /* nothing will come of it */
}

static u32 abort_command(struct driver *driver, u32 cid)
{
	u32 result = NONE;

	assert_int_equal(driver_command(driver, 0,
					(struct nvme_sqe){ .cdw0 = NVME_ADMIN_ABORT, .cdw10 = 1 | cid << 16 },
					&result),
			 0);
	return result;
}

static void test_drop(void **state)
{
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	drop_three(&driver, 8);
	post_reads(&driver, 1, 1); /* the identifier is still in use */
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_status(&cqe), NVME_STATUS_CID_CONFLICT);
	assert_int_equal(abort_command(&driver, 1), 1); /* cannot be aborted */
	assert_int_equal(next_cid(&driver), NONE);
	driver.next_cid = 10;
	expect_clean(&driver);
	driver_close(&driver); /* leaks nothing */
}

/* The data was moved: it is the completion that is lost. */
static void test_drop_happens(void **state)
{
	struct driver driver;

	(void)state;
	open_text(&driver, "drop:op=write", 8);
	driver_fill(data_of(&driver), 5, BLOCK, 1);
	post_io(&driver, 1, NVME_OPCODE_WRITE, 5, 1, 77);
	assert_int_equal(next_cid(&driver), NONE);
	memset(data_of(&driver), 0, BLOCK);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, 5, 1), 0);
	assert_true(driver_holds(data_of(&driver), 5, BLOCK, 1));
	driver_close(&driver);
}

static void test_drop_and_deletion(void **state)
{
	struct driver driver;

	(void)state;
	drop_three(&driver, 8);
	assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, 1)), 0);
	assert_int_equal(next_cid(&driver), NONE);
	assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_CQ, 1)), 0);
	driver_add_queue(&driver, 1, 1, 8, 8);
	post_reads(&driver, 0, 4); /* the identifiers are free again */
	for (u32 i = 0; i < 4; i++)
		assert_int_equal(next_cid(&driver), i);
	driver_close(&driver);
}

static void test_drop_and_reset(void **state)
{
	struct driver driver;

	(void)state;
	for (u32 shutdown = 0; shutdown < 2; shutdown++) {
		drop_three(&driver, 8);
		if (shutdown) {
			weir_virtual_write32(driver.controller, NVME_REGISTER_CC, DRIVER_CC | 1 << 14);
			driver_wait_csts(&driver, NVME_CSTS_SHUTDOWN_MASK, NVME_CSTS_SHUTDOWN_DONE);
		}
		driver_disable(&driver);
		driver_enable(&driver);
		driver_add_queue(&driver, 1, 1, 8, 8);
		post_reads(&driver, 0, 4);
		for (u32 i = 0; i < 4; i++)
			assert_int_equal(next_cid(&driver), i);
		driver_step(&driver);
		assert_false(weir_virtual_busy(driver.controller, 0));
		driver_close(&driver);
	}
}

/* As many as a thread has requests: then nothing is fetched until the queue is deleted. */
static void test_drop_everything(void **state)
{
	struct driver driver;

	(void)state;
	open_text(&driver, "drop:count=8192", 1024);
	for (u32 i = 0; i < 16 * 1000; i++) {
		post_io(&driver, 1, NVME_OPCODE_FLUSH, 0, 1, i);
		if (i % 500 == 499)
			driver_steps(&driver, 40);
	}
	assert_int_equal(next_cid(&driver), NONE);
	assert_true(faults_of(&driver) >= 1024);
	assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, 1)), 0);
	driver_close(&driver);
}

/* Three commands held: all late, or in a group that waits for a late one. */
static void open_held(struct driver *driver, bool group)
{
	open_text(driver, group ? "late:us=1000:every=3,shuffle:of=4" : "late:us=1000", 8);
	post_reads(driver, 0, 3);
	assert_int_equal(next_cid(driver), NONE);
}

static void test_held_and_abort(void **state)
{
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	for (u32 group = 0; group < 2; group++) {
		open_held(&driver, group);
		assert_int_equal(abort_command(&driver, 1), 0);
		driver_reap(&driver, 1, &cqe);
		assert_int_equal(driver_cid(&cqe), 1);
		assert_int_equal(driver_status(&cqe), NVME_STATUS_ABORT_REQUESTED);
		assert_int_equal(next_cid(&driver), NONE); /* the others are held as before */
		virtual_ns += 1000000;
		assert_int_not_equal(next_cid(&driver), NONE);
		assert_int_not_equal(next_cid(&driver), NONE);
		driver_close(&driver);
	}
}

/* Of three commands two are in a group and one is late: the group waits for that one, until it is aborted. */
static void test_held_and_abort_of_a_late_one(void **state)
{
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	open_held(&driver, true);
	assert_int_equal(abort_command(&driver, 2), 0);
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_cid(&cqe), 2);
	assert_int_equal(driver_status(&cqe), NVME_STATUS_ABORT_REQUESTED);
	assert_in_range(next_cid(&driver), 0, 1);
	assert_in_range(next_cid(&driver), 0, 1);
	assert_int_equal(next_cid(&driver), NONE);
	driver_close(&driver);
}

static void test_held_and_deletion(void **state)
{
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	for (u32 group = 0; group < 2; group++) {
		open_held(&driver, group);
		assert_int_equal(driver_admin(&driver, driver_delete(NVME_ADMIN_DELETE_SQ, 1)), 0);
		for (u32 i = 0; i < 3; i++) {
			driver_reap(&driver, 1, &cqe);
			assert_int_equal(driver_status(&cqe), NVME_STATUS_ABORTED_SQ_DELETED);
		}
		assert_int_equal(next_cid(&driver), NONE);
		driver_close(&driver);
	}
}

static void test_held_and_reset(void **state)
{
	struct driver driver;

	(void)state;
	for (u32 group = 0; group < 2; group++) {
		open_held(&driver, group);
		driver_disable(&driver);
		driver_enable(&driver);
		driver_add_queue(&driver, 1, 1, 8, 8);
		virtual_ns += 1000000;
		assert_int_equal(next_cid(&driver), NONE);
		post_reads(&driver, 0, 3); /* and the next three are held likewise */
		assert_int_equal(next_cid(&driver), NONE);
		virtual_ns += 1000000;
		for (u32 i = 0; i < 3; i++)
			assert_in_range(next_cid(&driver), 0, 2);
		post_reads(&driver, 0, 3);
		assert_int_equal(next_cid(&driver), NONE);
		driver_close(&driver); /* frees them */
	}
}

/* Everything at once, with many commands: each identifier that is waited for comes or is dropped. */
static void test_all_at_once(void **state)
{
	static const char text[] =
		"late:us=30:every=5,shuffle:of=6:every=2,duplicate:every=7,stray:every=11:cid=60000,"
		"drop:every=101,stall:us=20:every=50,status:code=0x281:every=13,burst:of=3:every=3";
	u32 done[256] = { 0 }, posted = 0, strays = 0;
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	open_text(&driver, text, 512);
	for (u32 idle = 0; idle < 200; idle++) {
		if (posted < 256)
			post_reads(&driver, posted++, 1);
		driver_step(&driver);
		for (; driver_peek(&driver, 1, &cqe); idle = 0) {
			driver_release(&driver, 1);
			if (driver_cid(&cqe) == 60000)
				strays++;
			else
				done[driver_cid(&cqe)]++;
		}
		virtual_ns += 1000;
	}
	assert_int_equal(posted, 256);
	for (u32 i = 0; i < 256; i++)
		assert_in_range(done[i], i % 101 != 100, 2);
	assert_true(strays > 10);
	driver_close(&driver);
}

/* A completion queue that leaves the DMA map while a command is held is not written any more. */
static void test_lost_ring(void **state)
{
	struct nvme_cqe *ring = aligned_alloc(PAGE, PAGE);
	struct driver driver;

	(void)state;
	assert_non_null(ring);
	memset(ring, 0, PAGE);
	open_text(&driver, "late:us=10,duplicate", 8);
	assert_int_equal(weir_dma_map_add(driver.dma, ring, PAGE), 0);
	assert_int_equal(driver_admin(&driver, driver_create_cq(2, driver_bus(ring), 8)), 0);
	driver_add_queue(&driver, 2, 2, 8, 0);
	post_io(&driver, 2, NVME_OPCODE_READ, 0, 1, 5);
	driver_steps(&driver, 5);
	assert_int_equal(weir_dma_map_remove(driver.dma, ring), 0);
	virtual_ns += 10000;
	driver_steps(&driver, 5);
	for (u32 i = 0; i < 8; i++)
		assert_int_equal(ring[i].dw3, 0);
	assert_false(weir_virtual_busy(driver.controller, 0));
	driver_close(&driver);
	free(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_late_with_latency),
		cmocka_unit_test(test_shuffle),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_groups_wait_for_what_can_come),
		cmocka_unit_test(test_groups_keep_no_buffer),
		cmocka_unit_test(test_stall),
		cmocka_unit_test(test_long_delays),
		cmocka_unit_test(test_blocks_beyond_32_bits),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_drop_happens),
		cmocka_unit_test(test_drop_and_deletion),
		cmocka_unit_test(test_drop_and_reset),
		cmocka_unit_test(test_drop_everything),
		cmocka_unit_test(test_held_and_abort),
		cmocka_unit_test(test_held_and_abort_of_a_late_one),
		cmocka_unit_test(test_held_and_deletion),
		cmocka_unit_test(test_held_and_reset),
		cmocka_unit_test(test_duplicate),
		cmocka_unit_test(test_stray),
		cmocka_unit_test(test_phase),
		cmocka_unit_test(test_misroute),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_room_while_fetching),
		cmocka_unit_test(test_room_spares_the_row),
		cmocka_unit_test(test_room_after_drops),
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_lost_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
