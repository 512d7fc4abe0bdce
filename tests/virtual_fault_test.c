/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_fault_test.c: what the virtual controller does wrong, when it is told to. */
#include "virtual_medium.h"

#include <errno.h>
#include <stdio.h>

enum { BLOCK = 512, PAGE = NVME_PAGE_BYTES, NONE = 1 << 20 /* no identifier */ };

extern const char *weir_last_error(void);

/* Time that passes only when a test says so. */
static u64 virtual_ns;

static u64 virtual_clock(void *argument)
{
	assert_ptr_equal(argument, &virtual_ns);
	return virtual_ns;
}

static struct weir_virtual_options table(const struct weir_virtual_fault *rows, unsigned count)
{
	struct weir_virtual_options options = driver_defaults();

	options.faults = rows;
	options.fault_count = count;
	options.clock_ns = virtual_clock;
	options.clock_argument = &virtual_ns;
	virtual_ns = 1000;
	return options;
}

/* A controller with queue pair 1, after which @data is a page. */
static void open_with(struct driver *driver, struct weir_virtual_options options, u32 entries)
{
	driver_open(driver, options);
	driver_enable(driver);
	driver_add_queue(driver, 1, 1, entries, entries);
}

/* The same with a fault table as text. */
static void open_text(struct driver *driver, const char *text, u32 entries)
{
	struct weir_virtual_fault rows[8];
	unsigned count;

	if (weir_virtual_faults_parse(text, rows, 8, &count))
		fail_msg("%s", weir_last_error());
	open_with(driver, table(rows, count), entries);
}

static void post_io(struct driver *driver, u32 sq, u32 opcode, u64 lba, u32 blocks, u32 cid)
{
	u64 data = driver_bus(driver->arena + DRIVER_ARENA_BYTES - 2 * PAGE);

	driver_post(driver, sq, driver_io(opcode, lba, blocks, data, 0), cid);
}

static void post_reads(struct driver *driver, u32 first, u32 count)
{
	for (u32 i = 0; i < count; i++)
		post_io(driver, 1, NVME_OPCODE_READ, i, 1, first + i);
}

static u32 run_io(struct driver *driver, u32 opcode, u64 lba, u32 blocks)
{
	u64 data = driver_bus(driver->arena + DRIVER_ARENA_BYTES - 2 * PAGE);

	return driver_command(driver, 1, driver_io(opcode, lba, blocks, data, 0), NULL);
}

/* The next completion's identifier, without waiting long; NONE if there is none. */
static u32 next_cid(struct driver *driver)
{
	struct nvme_cqe cqe;

	driver_steps(driver, 20);
	if (!driver_peek(driver, 1, &cqe))
		return NONE;
	driver_release(driver, 1);
	return driver_cid(&cqe);
}

static u64 faults_of(struct driver *driver)
{
	struct weir_virtual_stats stats;

	weir_virtual_stats(driver->controller, &stats);
	return stats.faults;
}

static unsigned char *data_of(struct driver *driver)
{
	return driver->arena + DRIVER_ARENA_BYTES - 2 * PAGE;
}

/* The queue goes on as if nothing had been. */
static void expect_clean(struct driver *driver)
{
	for (u32 i = 0; i < 40; i++)
		assert_int_equal(run_io(driver, NVME_OPCODE_READ, i, 1), 0);
}

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

static void test_duplicate(void **state)
{
	struct weir_virtual_stats stats;
	struct driver driver;
	struct nvme_cqe one, two;

	(void)state;
	open_text(&driver, "duplicate:every=2", 8);
	for (u32 i = 0; i < 20; i++) {
		post_io(&driver, 1, NVME_OPCODE_READ, i & 2 ? 1 << 20 : 0, 1, i);
		driver_reap(&driver, 1, &one);
		assert_int_equal(driver_cid(&one), i);
		if (i & 1) {
			driver_reap(&driver, 1, &two);
			assert_int_equal(one.dw2, two.dw2);
			assert_int_equal(one.dw3 & ~(1u << 16), two.dw3 & ~(1u << 16));
		}
		assert_int_equal(next_cid(&driver), NONE);
	}
	weir_virtual_stats(driver.controller, &stats);
	assert_int_equal(stats.faults, 10);
	assert_int_equal(stats.errors, 10);
	driver_close(&driver);
}

static void test_stray(void **state)
{
	struct driver driver;
	struct nvme_cqe cqe;
	u32 cid;

	(void)state;
	open_text(&driver, "stray:count=1,stray:cid=0xabcd:after=1:count=1", 8);
	post_reads(&driver, 0, 1);
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_cid(&cqe), 1); /* the lowest that is not in flight */
	assert_int_equal(driver_status(&cqe), 0);
	assert_int_equal(cqe.dw2 >> 16, 1);
	assert_int_equal(next_cid(&driver), 0);
	post_reads(&driver, 5, 1);
	cid = next_cid(&driver);
	assert_int_equal(cid, 0xabcd);
	assert_int_equal(next_cid(&driver), 5);
	assert_int_equal(next_cid(&driver), NONE);
	expect_clean(&driver);
	driver_close(&driver);
}

static void test_phase(void **state)
{
	struct driver driver;
	struct nvme_cqe *entry;

	(void)state;
	open_text(&driver, "phase:after=1:count=1", 8);
	post_reads(&driver, 0, 3);
	assert_int_equal(next_cid(&driver), 0);
	assert_int_equal(next_cid(&driver), NONE);
	entry = &driver.cq[1].entries[1];
	assert_int_equal(entry->dw3, 1); /* written, with the old phase */
	assert_int_equal(entry->dw2 >> 16, 1);
	assert_int_equal(entry[1].dw3, 2 | 1 << 16); /* its place is taken */
	assert_int_equal(faults_of(&driver), 1);
	driver_close(&driver);
}

static void test_misroute(void **state)
{
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	open_text(&driver, "misroute:after=1:count=2", 8);
	driver_add_queue(&driver, 2, 1, 8, 0);
	post_reads(&driver, 0, 1);
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(cqe.dw2 >> 16, 1);
	post_reads(&driver, 1, 1);
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_cid(&cqe), 1);
	assert_int_equal(cqe.dw2 >> 16, 2);
	post_io(&driver, 2, NVME_OPCODE_READ, 0, 1, 9);
	driver_reap(&driver, 1, &cqe);
	assert_int_equal(driver_cid(&cqe), 9);
	assert_int_equal(cqe.dw2 >> 16, 1);
	expect_clean(&driver);
	driver_close(&driver);
}

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

static u32 failures(struct driver *driver, u32 commands, u32 hits[])
{
	u32 count = 0;

	for (u32 i = 0; i < commands; i++)
		if (run_io(driver, NVME_OPCODE_READ, i, 1))
			hits[count++] = i;
	return count;
}

static void expect_hits(const char *text, u32 count, const u32 expected[])
{
	struct driver driver;
	u32 hits[40];

	open_text(&driver, text, 8);
	assert_int_equal(failures(&driver, 40, hits), count);
	for (u32 i = 0; i < count; i++)
		assert_int_equal(hits[i], expected[i]);
	assert_int_equal(faults_of(&driver), count);
	driver_close(&driver);
}

static void test_when_and_how_often(void **state)
{
	(void)state;
	expect_hits("status:code=1:after=37", 3, (const u32[]){ 37, 38, 39 });
	expect_hits("status:code=1:every=10", 4, (const u32[]){ 9, 19, 29, 39 });
	expect_hits("status:code=1:after=5:every=10:count=2", 2, (const u32[]){ 14, 24 });
	expect_hits("status:code=1:lba=10-12", 3, (const u32[]){ 10, 11, 12 });
	expect_hits("status:code=1:lba=0x10", 1, (const u32[]){ 16 });
	expect_hits("status:code=1:lba=10-20:every=4", 2, (const u32[]){ 13, 17 });
	expect_hits("status:code=1:op=write", 0, NULL);
	expect_hits("status:code=1:queue=2", 0, NULL);
	expect_hits("status:code=1:count=1:op=read,status:code=2:count=1:op=any:queue=1:after=2", 2,
		    (const u32[]){ 0, 2 });
}

static void test_filters(void **state)
{
	struct driver driver;

	(void)state;
	open_text(&driver, "status:code=1:lba=10-19,status:code=2:op=flush", 8);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, 8, 2), 0);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, 8, 3), 1);
	assert_int_equal(run_io(&driver, NVME_OPCODE_WRITE, 19, 1), 1);
	assert_int_equal(run_io(&driver, NVME_OPCODE_WRITE_ZEROES, 0, 4096), 1);
	assert_int_equal(run_io(&driver, NVME_OPCODE_COMPARE, 20, 1), 0);
	assert_int_equal(driver_command(&driver, 1, (struct nvme_sqe){ .nsid = 1, .cdw10 = 12 }, NULL), 2);
	driver_close(&driver);
	open_text(&driver, "status:code=1:lba=0-0xfffffffffffffffe", 8);
	assert_int_equal(run_io(&driver, NVME_OPCODE_READ, 0, 1), 1);
	assert_int_equal(driver_command(&driver, 1, (struct nvme_sqe){ .nsid = 1 }, NULL), 0);
	driver_close(&driver);
}

/* Which of @commands are struck, as a number that tells different sets apart. */
static u64 lots(const char *text, u32 commands, u32 *count)
{
	struct driver driver;
	u64 which = 0;

	*count = 0;
	open_text(&driver, text, 8);
	for (u32 i = 0; i < commands; i++)
		if (run_io(&driver, NVME_OPCODE_READ, 0, 1)) {
			which = which * 31 + i;
			(*count)++;
		}
	driver_close(&driver);
	return which;
}

static void test_chance(void **state)
{
	u32 count, seeded;
	u64 which;

	(void)state;
	which = lots("status:code=1:chance=100", 2000, &count);
	assert_in_range(count, 150, 250);
	assert_true(lots("status:code=1:chance=100", 2000, &count) == which);
	assert_true(lots("status:code=1:chance=100:seed=5", 2000, &seeded) != which);
	assert_in_range(seeded, 150, 250);
	lots("status:code=1:chance=1000", 20, &count);
	assert_int_equal(count, 20);
}

/* A queue of four entries, of which three may be used, over a medium that holds its requests. */
static void open_small(struct driver *driver, struct slow *slow, const struct weir_virtual_fault *row)
{
	struct weir_virtual_options options = table(row, 1);

	slow_open(slow, 4 << 20, BLOCK);
	options.medium = &slow->medium;
	open_with(driver, options, 4);
	slow->hold = true;
}

static void test_room(void **state)
{
	const struct weir_virtual_fault row = { .kind = WEIR_VIRTUAL_FAULT_DUPLICATE };
	struct driver driver;
	struct nvme_cqe cqe;
	struct slow slow;

	(void)state;
	open_small(&driver, &slow, &row);
	post_reads(&driver, 0, 3);
	driver_steps(&driver, 5);
	for (u32 i = 0; i < 3; i++)
		slow_end_one(&slow, 0);
	assert_int_equal(faults_of(&driver), 0); /* all three entries were promised */
	for (u32 i = 0; i < 3; i++) {
		assert_true(driver_peek(&driver, 1, &cqe));
		assert_int_equal(driver_cid(&cqe), i);
	}
	assert_false(driver_peek(&driver, 1, &cqe));
	slow.hold = false;
	post_reads(&driver, 7, 1);
	assert_true(driver_nothing(&driver, 1)); /* the controller does not know that they were taken */
	driver_release(&driver, 1);
	assert_int_equal(next_cid(&driver), 7);
	assert_int_equal(next_cid(&driver), 7);
	assert_int_equal(next_cid(&driver), NONE);
	assert_int_equal(faults_of(&driver), 1);
	driver_close(&driver);
}

/* Both entries for @cid and the stray before them fill the queue; then all are released. */
static void expect_full_of(struct driver *driver, u32 cid)
{
	struct nvme_cqe cqe;

	driver_steps(driver, 10);
	for (u32 i = 0; i < 3; i++) {
		assert_true(driver_peek(driver, 1, &cqe));
		assert_int_equal(driver_cid(&cqe), i ? cid : 999);
	}
	assert_false(driver_peek(driver, 1, &cqe));
	driver_release(driver, 1);
}

/* A command that completes while others are fetched may not take the room these counted on. */
static void test_room_while_fetching(void **state)
{
	struct driver driver;

	(void)state;
	open_text(&driver, "duplicate,stray:cid=999", 4);
	post_reads(&driver, 0, 3);
	for (u32 i = 0; i < 100; i++) {
		expect_full_of(&driver, i);
		post_reads(&driver, i + 3, 1);
	}
	for (u32 i = 100; i < 103; i++)
		expect_full_of(&driver, i);
	assert_int_equal(next_cid(&driver), NONE);
	assert_int_equal(faults_of(&driver), 2 * 103);
	driver_close(&driver);
}

/* What found no room is not counted by its row either. */
static void test_room_spares_the_row(void **state)
{
	const struct weir_virtual_fault row = {
		.kind = WEIR_VIRTUAL_FAULT_STRAY, .count = 1, .cid_given = true, .cid = 99
	};
	struct driver driver;
	struct slow slow;

	(void)state;
	open_small(&driver, &slow, &row);
	post_reads(&driver, 0, 3);
	driver_steps(&driver, 5);
	slow_end_one(&slow, 0);
	assert_int_equal(next_cid(&driver), 0);
	slow.hold = false;
	assert_int_equal(next_cid(&driver), 2);
	assert_int_equal(next_cid(&driver), 1);
	assert_int_equal(faults_of(&driver), 0);
	post_reads(&driver, 3, 1);
	assert_int_equal(next_cid(&driver), 99);
	assert_int_equal(next_cid(&driver), 3);
	post_reads(&driver, 4, 1);
	assert_int_equal(next_cid(&driver), 4);
	assert_int_equal(next_cid(&driver), NONE);
	assert_int_equal(faults_of(&driver), 1);
	driver_close(&driver);
}

/* Dropped commands leave the entries they were promised to others. */
static void test_room_after_drops(void **state)
{
	struct driver driver;

	(void)state;
	open_text(&driver, "drop:count=20", 4);
	for (u32 i = 0; i < 20; i++) {
		post_io(&driver, 1, NVME_OPCODE_READ, 0, 1, i);
		assert_int_equal(next_cid(&driver), NONE);
	}
	driver.next_cid = 100;
	expect_clean(&driver);
	driver_close(&driver);
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

struct refusal {
	const char *text;
	const char *says[3];
};

static void test_parse_errors(void **state)
{
	static const struct refusal rows[] = {
		{ "", { "row 1", "no kind", "shuffle" } },
		{ "drop,", { "row 2", "no kind" } },
		{ "slow:us=5", { "row 1", "'slow'", "late" } },
		{ "drop,late", { "row 2", "late needs us=", "1 to 1000000000" } },
		{ "late:us=0", { "us=0", "from 1 to" } },
		{ "late:us=1000000001", { "us=1000000001", "from 1 to 1000000000" } },
		{ "late:us=1x", { "us=1x", "number" } },
		{ "late:us=-1", { "us=-1", "number" } },
		{ "late:us=", { "us=", "number" } },
		{ "late:us=0x", { "us=0x", "number" } },
		{ "late:us", { "'us'", "key=value" } },
		{ "late:us=5:us=6", { "us", "twice" } },
		{ "late:us=5:", { "''", "key=value" } },
		{ "late:us=5:code=1", { "late has no field 'code'", "us", "chance" } },
		{ "status", { "status needs code=", "from 1 to 2047" } },
		{ "status:code=0x800", { "code=0x800", "2047" } },
		{ "status:code=1:op=reed", { "op=reed", "any, read, write or flush" } },
		{ "status:code=1:lba=9-8", { "lba=9-8", "10-19" } },
		{ "status:code=1:lba=0-18446744073709551615", { "lba=0-", "10-19" } },
		{ "status:code=1:lba=x", { "lba=x", "10-19" } },
		{ "status:code=1:dnr=2", { "dnr=2", "from 0 to 1" } },
		{ "shuffle", { "shuffle needs of=" } },
		{ "burst:of=1", { "of=1", "from 2 to 4096" } },
		{ "stray:cid=65536", { "cid=65536", "65535" } },
		{ "drop:queue=65536", { "queue=65536", "65535" } },
		{ "drop:chance=1001", { "chance=1001", "1000" } },
		{ "drop:count=18446744073709551616", { "count=18446744073709551616" } },
		{ "drop,drop,drop,drop", { "row 4", "at most 3" } },
	};
	struct weir_virtual_fault into[3];
	unsigned count = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(weir_virtual_faults_parse(rows[i].text, into, 3, &count), -EINVAL);
		assert_int_equal(count, 0);
		for (size_t j = 0; j < 3 && rows[i].says[j]; j++)
			if (!strstr(weir_last_error(), rows[i].says[j]))
				fail_msg("'%s' is not in: %s", rows[i].says[j], weir_last_error());
	}
}

static void test_parse(void **state)
{
	struct weir_virtual_fault rows[2];
	unsigned count;

	(void)state;
	assert_int_equal(weir_virtual_faults_parse(
				 "stray:cid=0:op=flush:queue=3:after=4:every=5:count=6:chance=7:seed=8,"
				 "status:code=0x281:dnr=1:lba=10-19",
				 rows, 2, &count),
			 0);
	assert_int_equal(count, 2);
	assert_int_equal(rows[0].kind, WEIR_VIRTUAL_FAULT_STRAY);
	assert_int_equal(rows[0].opcode, WEIR_VIRTUAL_FAULT_FLUSH);
	assert_int_equal(rows[0].queue, 3);
	assert_int_equal(rows[0].after, 4);
	assert_int_equal(rows[0].every, 5);
	assert_int_equal(rows[0].count, 6);
	assert_int_equal(rows[0].chance, 7);
	assert_int_equal(rows[0].seed, 8);
	assert_true(rows[0].cid_given);
	assert_int_equal(rows[0].blocks, 0);
	assert_int_equal(rows[1].code, 0x281);
	assert_true(rows[1].dnr);
	assert_int_equal(rows[1].lba, 10);
	assert_int_equal(rows[1].blocks, 10);
}

/* A table made by a program is judged as one made of text. */
static void test_bad_tables(void **state)
{
	static const struct weir_virtual_fault rows[] = {
		{ .kind = WEIR_VIRTUAL_FAULT_KINDS },
		{ .kind = WEIR_VIRTUAL_FAULT_LATE },
		{ .kind = WEIR_VIRTUAL_FAULT_DROP, .opcode = WEIR_VIRTUAL_FAULT_OPCODES },
		{ .kind = WEIR_VIRTUAL_FAULT_DROP, .chance = 1001 },
		{ .kind = WEIR_VIRTUAL_FAULT_STATUS, .code = 0x800 },
		{ .kind = WEIR_VIRTUAL_FAULT_BURST, .of = 1 },
	};
	struct weir_virtual_fault many[WEIR_VIRTUAL_FAULTS + 1];
	struct driver driver;
	struct weir_virtual_options options;
	struct weir_virtual *controller;

	(void)state;
	driver_open(&driver, driver_defaults());
	for (size_t i = 0; i <= sizeof(rows) / sizeof(*rows); i++) {
		options = table(&rows[i], 1);
		if (i == sizeof(rows) / sizeof(*rows))
			options.faults = NULL;
		options.medium = driver.medium;
		options.dma = driver.dma;
		assert_int_equal(weir_virtual_create(&options, &controller), -EINVAL);
	}
	for (size_t i = 0; i <= WEIR_VIRTUAL_FAULTS; i++)
		many[i] = (struct weir_virtual_fault){ .kind = WEIR_VIRTUAL_FAULT_DROP, .count = 1 };
	options.faults = many;
	options.fault_count = WEIR_VIRTUAL_FAULTS + 1;
	assert_int_equal(weir_virtual_create(&options, &controller), -EINVAL);
	driver_close(&driver);
	open_with(&driver, table(many, WEIR_VIRTUAL_FAULTS), 256);
	post_reads(&driver, 0, 3);
	assert_int_equal(next_cid(&driver), 1); /* each row saw the first, so each is used up */
	driver_close(&driver);
}

/* One turn takes one command; and options from before a member leave it alone. */
static void test_fetch_batch(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;
	struct nvme_cqe cqe;

	(void)state;
	options.fetch_batch = 2;
	options.clock_argument = &driver; /* beyond size */
	options.clock_ns = (uint64_t(*)(void *))(uintptr_t)1;
	options.size = offsetof(struct weir_virtual_options, clock_ns);
	options.latency_us = 1;
	open_with(&driver, options, 16);
	post_reads(&driver, 0, 5);
	driver_steps(&driver, 20);
	for (u32 i = 0; i < 5; i++)
		driver_reap(&driver, 1, &cqe);
	driver_close(&driver);
	options = driver_defaults();
	options.fetch_batch = 1;
	open_with(&driver, options, 16);
	post_reads(&driver, 0, 5);
	for (u32 i = 0; i < 5; i++) {
		driver_step(&driver);
		assert_true(driver_peek(&driver, 1, &cqe));
		assert_int_equal(driver_cid(&cqe), i);
		assert_false(driver_peek(&driver, 1, &cqe));
	}
	driver_close(&driver);
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
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_drop_happens),
		cmocka_unit_test(test_drop_and_deletion),
		cmocka_unit_test(test_drop_and_reset),
		cmocka_unit_test(test_drop_everything),
		cmocka_unit_test(test_held_and_abort),
		cmocka_unit_test(test_held_and_deletion),
		cmocka_unit_test(test_held_and_reset),
		cmocka_unit_test(test_duplicate),
		cmocka_unit_test(test_stray),
		cmocka_unit_test(test_phase),
		cmocka_unit_test(test_misroute),
		cmocka_unit_test(test_fatal),
		cmocka_unit_test(test_fatal_thread_by_thread),
		cmocka_unit_test(test_fatal_many_threads),
		cmocka_unit_test(test_when_and_how_often),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_room_while_fetching),
		cmocka_unit_test(test_room_spares_the_row),
		cmocka_unit_test(test_room_after_drops),
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_lost_ring),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_parse_errors),
		cmocka_unit_test(test_bad_tables),
		cmocka_unit_test(test_fetch_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
