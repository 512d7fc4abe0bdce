/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_fault_table_test.c: which commands a fault table strikes, and what a table may say. */
#include "virtual_fault_driver.h"

#include <errno.h>
#include <stdio.h>

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

/* Which of @commands are matched, as a number that tells different sets apart. */
static u64 draws(const char *text, u32 commands, u32 *count)
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
	which = draws("status:code=1:chance=100", 2000, &count);
	assert_in_range(count, 150, 250);
	assert_true(draws("status:code=1:chance=100", 2000, &count) == which);
	assert_true(draws("status:code=1:chance=100:seed=5", 2000, &seeded) != which);
	assert_in_range(seeded, 150, 250);
	draws("status:code=1:chance=1000", 20, &count);
	assert_int_equal(count, 20);
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
		{ "status:code=1:crd=4", { "crd=4", "from 0 to 3" } },
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

/* A row that is too long for its place is refused, and none is read in part. */
static void test_long_rows(void **state)
{
	enum { LONGEST = 255 };
	struct weir_virtual_fault rows[2];
	unsigned count;
	char text[400];

	(void)state;
	for (int digits = LONGEST - 2; digits <= LONGEST + 2; digits++) { /* of the whole first row */
		snprintf(text, sizeof(text), "late:us=%0*d,drop", digits - (int)strlen("late:us="), 70);
		if (digits > LONGEST) {
			assert_int_equal(weir_virtual_faults_parse(text, rows, 2, &count), -EINVAL);
			assert_non_null(strstr(weir_last_error(), "row 1"));
			continue;
		}
		assert_int_equal(weir_virtual_faults_parse(text, rows, 2, &count), 0);
		assert_int_equal(count, 2);
		assert_int_equal(rows[0].us, 70);
		assert_int_equal(rows[1].kind, WEIR_VIRTUAL_FAULT_DROP);
	}
}

static void test_parse(void **state)
{
	struct weir_virtual_fault rows[2];
	unsigned count;

	(void)state;
	assert_int_equal(weir_virtual_faults_parse(
				 "stray:cid=0:op=flush:queue=3:after=4:every=5:count=6:chance=7:seed=8,"
				 "status:code=0x281:dnr=1:crd=2:lba=10-19",
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
	assert_int_equal(rows[1].crd, 2);
	assert_int_equal(weir_virtual_fault_row(&rows[1]).code,
			 NVME_STATUS_UNRECOVERED_READ | NVME_STATUS_DNR | 2 << NVME_STATUS_CRD_SHIFT);
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
		cmocka_unit_test(test_when_and_how_often),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_parse_errors),
		cmocka_unit_test(test_long_rows),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_bad_tables),
		cmocka_unit_test(test_fetch_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
