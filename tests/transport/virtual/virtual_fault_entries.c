/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_fault_entries.c: wrong completion entries, twice, of nobody or misplaced, and the room for them. */
#include "virtual_fault_driver.h"

#include "virtual_fault_cases.h"

void test_duplicate(void **state)
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

void test_stray(void **state)
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

void test_phase(void **state)
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

void test_misroute(void **state)
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

/* A queue of four entries, of which three may be used, over a medium that holds its requests. */
static void open_small(struct driver *driver, struct slow *slow, const struct weir_virtual_fault *row)
{
	struct weir_virtual_options options = table(row, 1);

	slow_open(slow, 4 << 20, BLOCK);
	options.medium = &slow->medium;
	open_with(driver, options, 4);
	slow->hold = true;
}

void test_room(void **state)
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
void test_room_while_fetching(void **state)
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
void test_room_spares_the_row(void **state)
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
void test_room_after_drops(void **state)
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
