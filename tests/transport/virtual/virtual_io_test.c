/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_io_test.c: I/O commands of the virtual controller, good and bad. */
#include "virtual_io_cases.h"

static void open_pair(struct driver *driver)
{
	driver_open(driver, driver_defaults());
	driver_enable(driver);
	driver_add_queue(driver, 1, 1, 16, 16);
}

u32 io(struct driver *driver, u32 opcode, u64 lba, u32 blocks, u64 prp1, u64 prp2)
{
	return driver_command(driver, 1, driver_io(opcode, lba, blocks, prp1, prp2), NULL);
}

static void test_field_errors(void **state)
{
	const u32 range = NVME_STATUS_LBA_OUT_OF_RANGE | DRIVER_REFUSED;
	const u32 field = NVME_STATUS_INVALID_FIELD | DRIVER_REFUSED;
	const u32 space = NVME_STATUS_INVALID_NAMESPACE | DRIVER_REFUSED;
	static const u32 opcodes[] = { NVME_OPCODE_READ, NVME_OPCODE_WRITE, NVME_OPCODE_COMPARE,
				       NVME_OPCODE_WRITE_ZEROES };
	struct driver driver;
	struct nvme_sqe sqe;
	u64 data;

	(void)state;
	open_pair(&driver);
	data = driver_bus(driver_pages(&driver, 4 * PAGE));
	for (u32 i = 0; i < 4; i++) {
		assert_int_equal(io(&driver, opcodes[i], BLOCKS, 1, data, 0), range);
		assert_int_equal(io(&driver, opcodes[i], BLOCKS - 1, 2, data, 0), range);
		assert_int_equal(io(&driver, opcodes[i], ~(u64)0, 1, data, 0), range);
		assert_int_equal(io(&driver, opcodes[i], ~(u64)0, 2, data, 0), range);
		assert_int_equal(io(&driver, opcodes[i], (u64)1 << 55, 1, data, 0), range);
		sqe = driver_io(opcodes[i], 0, 1, data, 0);
		for (u32 nsid = 0; nsid < 5; nsid++) {
			sqe.nsid = nsid == 3 ? NVME_NSID_BROADCAST : nsid;
			assert_int_equal(driver_command(&driver, 1, sqe, NULL), nsid == 1 ? 0 : space);
		}
		sqe.nsid = 1;
		for (u32 bit = 8; bit < 16; bit++) {
			sqe.cdw0 = opcodes[i] | 1u << bit;
			assert_int_equal(driver_command(&driver, 1, sqe, NULL),
					 bit < 10 || bit > 13 ? field : 0);
		}
	}
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 257, data, data), field);
	assert_int_equal(io(&driver, NVME_OPCODE_WRITE, 0, 257, data, data), field);
	assert_int_equal(io(&driver, NVME_OPCODE_COMPARE, 0, 257, data, data), field);
	for (u32 opcode = 0; opcode < 256; opcode++) {
		if (opcode < 3 || opcode == 5 || opcode == 8 || opcode == 9)
			continue;
		assert_int_equal(io(&driver, opcode, 0, 1, data, 0),
				 NVME_STATUS_INVALID_OPCODE | DRIVER_REFUSED);
	}
	driver_close(&driver);
}

static bool zero(const unsigned char *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (memory[i])
			return false;
	return true;
}

static void write_blocks(struct driver *driver, unsigned char *memory, u64 lba, u32 blocks, u64 generation)
{
	for (u32 i = 0; i < blocks; i++)
		driver_fill(memory + (size_t)i * BLOCK, lba + i, BLOCK, generation);
	assert_int_equal(
		io(driver, NVME_OPCODE_WRITE, lba, blocks, driver_bus(memory), driver_bus(memory) + PAGE), 0);
}

static void test_write_zeroes(void **state)
{
	struct driver driver;
	unsigned char *memory;

	(void)state;
	open_pair(&driver);
	memory = driver_pages(&driver, 2 * PAGE);
	write_blocks(&driver, memory, 100, 16, 1);
	assert_int_equal(io(&driver, NVME_OPCODE_WRITE_ZEROES, 104, 3, 0, 0), 0);
	assert_int_equal(
		io(&driver, NVME_OPCODE_READ, 100, 16, driver_bus(memory), driver_bus(memory) + PAGE), 0);
	for (u32 i = 0; i < 16; i++)
		assert_true(i >= 4 && i < 7 ? zero(memory + i * BLOCK, BLOCK)
					    : driver_holds(memory + i * BLOCK, 100 + i, BLOCK, 1));
	/* Longer than MDTS: nothing is transferred, so the limit does not count. */
	assert_int_equal(io(&driver, NVME_OPCODE_WRITE_ZEROES, 0, BLOCKS, 0, 0), 0);
	assert_int_equal(
		io(&driver, NVME_OPCODE_READ, 100, 16, driver_bus(memory), driver_bus(memory) + PAGE), 0);
	assert_true(zero(memory, 16 * BLOCK));
	driver_close(&driver);
}

void put_range(void *list, u32 index, u64 lba, u32 blocks)
{
	u32 *words = (u32 *)list + 4 * index;

	words[0] = 0;
	words[1] = blocks;
	memcpy(&words[2], &lba, sizeof(lba));
}

u32 manage(struct driver *driver, u64 list, u32 ranges, u32 attributes)
{
	struct nvme_sqe sqe = driver_io(NVME_OPCODE_DSM, 0, 1, list, (list & ~4095ull) + PAGE);

	sqe.cdw10 = ranges - 1;
	sqe.cdw11 = attributes;
	return driver_command(driver, 1, sqe, NULL);
}

static void test_deallocate(void **state)
{
	struct driver driver;
	unsigned char *memory, *list;

	(void)state;
	open_pair(&driver);
	memory = driver_pages(&driver, 2 * PAGE);
	list = driver_pages(&driver, 2 * PAGE);
	write_blocks(&driver, memory, 0, 16, 1);
	put_range(list, 0, 1, 1);
	put_range(list, 1, 9, 0);
	put_range(list, 2, 4, 2);
	assert_int_equal(manage(&driver, driver_bus(list), 3, 0), 0);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 1, 1, driver_bus(memory), 0), 0);
	assert_true(driver_holds(memory, 1, BLOCK, 1));
	assert_int_equal(manage(&driver, driver_bus(list), 3, NVME_DSM_DEALLOCATE), 0);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 16, driver_bus(memory), driver_bus(memory) + PAGE),
			 0);
	for (u32 i = 0; i < 16; i++)
		assert_true(i == 1 || i == 4 || i == 5 ? zero(memory + i * BLOCK, BLOCK)
						       : driver_holds(memory + i * BLOCK, i, BLOCK, 1));
	/* 256 ranges from an offset: two pages of list */
	for (u32 i = 0; i < 256; i++)
		put_range(list + 32, i, 2 * i, 1);
	write_blocks(&driver, memory, 500, 16, 2);
	assert_int_equal(manage(&driver, driver_bus(list) + 32, 256, NVME_DSM_DEALLOCATE), 0);
	assert_int_equal(
		io(&driver, NVME_OPCODE_READ, 500, 16, driver_bus(memory), driver_bus(memory) + PAGE), 0);
	for (u32 i = 0; i < 16; i++)
		assert_true(i % 2 || 500 + i > 510 ? driver_holds(memory + i * BLOCK, 500 + i, BLOCK, 2)
						   : zero(memory + i * BLOCK, BLOCK));
	driver_close(&driver);
}

static void test_deallocate_errors(void **state)
{
	const u32 range = NVME_STATUS_LBA_OUT_OF_RANGE | DRIVER_REFUSED;
	struct driver driver;
	unsigned char *memory, *list;

	(void)state;
	open_pair(&driver);
	memory = driver_pages(&driver, 2 * PAGE);
	list = driver_pages(&driver, PAGE);
	write_blocks(&driver, memory, 0, 16, 3);
	put_range(list, 0, 0, 4); /* good, but not to be done when another is bad */
	put_range(list, 1, BLOCKS, 1);
	assert_int_equal(manage(&driver, driver_bus(list), 2, NVME_DSM_DEALLOCATE), range);
	put_range(list, 1, ~(u64)0, 2);
	assert_int_equal(manage(&driver, driver_bus(list), 2, NVME_DSM_DEALLOCATE), range);
	put_range(list, 1, 1, ~0u);
	assert_int_equal(manage(&driver, driver_bus(list), 2, NVME_DSM_DEALLOCATE), range);
	assert_int_equal(manage(&driver, 4096, 2, NVME_DSM_DEALLOCATE),
			 NVME_STATUS_DATA_TRANSFER_ERROR | DRIVER_REFUSED);
	assert_int_equal(manage(&driver, driver_bus(list) + 1, 2, NVME_DSM_DEALLOCATE),
			 NVME_STATUS_INVALID_PRP_OFFSET | DRIVER_REFUSED);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 1, driver_bus(memory), 0), 0);
	assert_true(driver_holds(memory, 0, BLOCK, 3));
	driver_close(&driver);
}

static void test_flush_and_fua(void **state)
{
	struct nvme_sqe flush = { .cdw0 = NVME_OPCODE_FLUSH, .nsid = 1 };
	struct nvme_sqe feature = { .cdw0 = NVME_ADMIN_SET_FEATURES,
				    .cdw10 = NVME_FEATURE_VOLATILE_WRITE_CACHE };
	struct nvme_sqe write;
	struct driver driver;
	struct slow slow;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	write = driver_io(NVME_OPCODE_WRITE, 0, 1, driver_bus(driver_pages(&driver, PAGE)), 0);
	assert_int_equal(driver_command(&driver, 1, flush, NULL), 0);
	flush.nsid = NVME_NSID_BROADCAST;
	assert_int_equal(driver_command(&driver, 1, flush, NULL), 0);
	flush.nsid = 2;
	assert_int_equal(driver_command(&driver, 1, flush, NULL),
			 NVME_STATUS_INVALID_NAMESPACE | DRIVER_REFUSED);
	assert_int_equal(slow.flushes, 2);
	assert_int_equal(driver_command(&driver, 1, write, NULL), 0);
	assert_int_equal(slow.forced, 0);
	write.cdw12 |= NVME_RW_FUA;
	assert_int_equal(driver_command(&driver, 1, write, NULL), 0);
	assert_int_equal(slow.forced, 1);
	write.cdw12 &= ~NVME_RW_FUA;
	assert_int_equal(driver_admin(&driver, feature), 0); /* write cache off: always forced */
	assert_int_equal(driver_command(&driver, 1, write, NULL), 0);
	assert_int_equal(slow.forced, 2);
	feature.cdw11 = 1;
	assert_int_equal(driver_admin(&driver, feature), 0);
	assert_int_equal(driver_command(&driver, 1, write, NULL), 0);
	assert_int_equal(slow.forced, 2);
	write.cdw0 = NVME_OPCODE_WRITE_ZEROES;
	assert_int_equal(driver_command(&driver, 1, write, NULL), 0);
	assert_int_equal(slow.forced, 2);
	write.cdw12 |= NVME_RW_FUA;
	assert_int_equal(driver_command(&driver, 1, write, NULL), 0);
	assert_int_equal(slow.forced, 3);
	write.cdw0 = NVME_OPCODE_READ;
	assert_int_equal(driver_command(&driver, 1, write, NULL), 0);
	assert_int_equal(slow.forced, 3);
	feature.cdw11 = 0;
	assert_int_equal(driver_admin(&driver, feature), 0);
	write.cdw0 = NVME_OPCODE_WRITE_ZEROES;
	write.cdw12 &= ~NVME_RW_FUA;
	assert_int_equal(driver_command(&driver, 1, write, NULL), 0);
	assert_int_equal(slow.forced, 4);
	driver_disable(&driver); /* a reset switches the cache on again */
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 8, 8);
	write.cdw0 = NVME_OPCODE_WRITE;
	assert_int_equal(driver_command(&driver, 1, write, NULL), 0);
	assert_int_equal(slow.forced, 4);
	driver_close(&driver);
}

static void test_read_only(void **state)
{
	const u32 refused = NVME_STATUS_READ_ONLY_RANGE | DRIVER_REFUSED;
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;
	struct slow slow;
	u64 data;

	(void)state;
	slow_open(&slow, 1 << 20, 512);
	slow.medium.read_only = true;
	options.medium = &slow.medium;
	driver_open(&driver, options);
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 8, 8);
	data = driver_bus(driver_pages(&driver, PAGE));
	assert_int_equal(io(&driver, NVME_OPCODE_WRITE, 0, 1, data, 0), refused);
	assert_int_equal(io(&driver, NVME_OPCODE_WRITE_ZEROES, 0, 1, 0, 0), refused);
	assert_int_equal(manage(&driver, data, 1, NVME_DSM_DEALLOCATE), refused);
	assert_int_equal(manage(&driver, data, 1, 0), 0);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 1, data, 0), 0);
	assert_int_equal(io(&driver, NVME_OPCODE_COMPARE, 0, 1, data, 0), 0);
	driver_close(&driver);
}

/* What never was written holds its own address. */
static bool computed(const unsigned char *memory, u64 offset_bytes)
{
	const u64 *words = (const u64 *)(const void *)memory;

	for (u32 i = 0; i < BLOCK / 8; i++)
		if (words[i] != offset_bytes + 8 * i)
			return false;
	return true;
}

static const u64 far[] = { 5, ((u64)1 << 23) + 5, ((u64)1 << 32) + 5, ((u64)1 << 32) + ((u64)1 << 23) + 5,
			   ((u64)1 << 37) + 5 };

enum { FAR = sizeof(far) / sizeof(far[0]), GENERATIONS = 8 };

static u64 expected_bytes;

static void expect_bytes(const struct weir_medium *medium, enum weir_io_kind kind, uint64_t offset_bytes)
{
	(void)medium;
	(void)kind;
	assert_true(offset_bytes == expected_bytes);
}

/* 512-byte blocks 4 GiB and 2^32 blocks apart, and farther: each command reaches its own. */
static void test_beyond_32_bits(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct weir_medium_ops ops;
	struct driver driver;
	unsigned char *memory;

	(void)state;
	assert_int_equal(weir_medium_sparse_open((u64)300 << 40, BLOCK, &options.medium), 0);
	ops = *options.medium->ops;
	ops.expect = expect_bytes;
	options.medium->ops = &ops;
	driver_open(&driver, options);
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 16, 16);
	memory = driver_pages(&driver, 2 * PAGE);
	for (u32 i = 0; i < FAR; i++) {
		expected_bytes = far[i] * BLOCK;
		assert_int_equal(io(&driver, NVME_OPCODE_READ, far[i], 1, driver_bus(memory), 0), 0);
		assert_true(computed(memory, far[i] * BLOCK));
		write_blocks(&driver, memory, far[i], 1, i % GENERATIONS);
	}
	for (u32 i = 0; i < FAR; i++) {
		expected_bytes = far[i] * BLOCK;
		assert_int_equal(io(&driver, NVME_OPCODE_READ, far[i], 1, driver_bus(memory), 0), 0);
		assert_true(driver_holds(memory, far[i], BLOCK, i % GENERATIONS));
		assert_int_equal(io(&driver, NVME_OPCODE_COMPARE, far[i], 1, driver_bus(memory), 0), 0);
	}
	expected_bytes = far[FAR - 1] * BLOCK;
	assert_int_equal(io(&driver, NVME_OPCODE_WRITE_ZEROES, far[FAR - 1], 1, 0, 0), 0);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, far[FAR - 1], 1, driver_bus(memory), 0), 0);
	assert_true(zero(memory, BLOCK));
	assert_int_equal(io(&driver, NVME_OPCODE_WRITE_ZEROES, MOST_BLOCKS, MOST_BLOCKS, 0, 0), 0);
	for (u32 i = 0; i < 4; i++) { /* all of the most blocks that one command can have, and no more */
		u64 lba = (u64)(1 + i / 2) * MOST_BLOCKS - i % 2;

		expected_bytes = lba * BLOCK;
		assert_int_equal(io(&driver, NVME_OPCODE_READ, lba, 1, driver_bus(memory), 0), 0);
		assert_true(lba / MOST_BLOCKS == 1 ? zero(memory, BLOCK) : computed(memory, lba * BLOCK));
	}
	expected_bytes = (((u64)300 << 40) / BLOCK - 1) * BLOCK;
	assert_int_equal(io(&driver, NVME_OPCODE_READ, expected_bytes / BLOCK, 1, driver_bus(memory), 0), 0);
	assert_true(computed(memory, expected_bytes));
	driver_close(&driver);
}

/* A range of more than 4 GiB, beyond 2^32 blocks: all of it, and nothing beside. */
static void test_deallocate_more_than_4_gib(void **state)
{
	const u64 first = ((u64)1 << 33) + 3, blocks = ((u64)1 << 23) + 2;
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;
	unsigned char *memory;
	u64 edges[6]; /* blocks beside both ends, inside and outside */

	(void)state;
	assert_int_equal(weir_medium_sparse_open((u64)20 << 40, BLOCK, &options.medium), 0);
	driver_open(&driver, options);
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 16, 16);
	memory = driver_pages(&driver, PAGE);
	for (u32 i = 0; i < 6; i++) {
		edges[i] = i < 3 ? first - 1 + i : first + blocks - 5 + i;
		write_blocks(&driver, memory, edges[i], 1, 1);
	}
	put_range(memory, 0, first, (u32)blocks);
	assert_int_equal(manage(&driver, driver_bus(memory), 1, NVME_DSM_DEALLOCATE), 0);
	for (u32 i = 0; i < 6; i++) {
		bool outside = edges[i] < first || edges[i] >= first + blocks;

		assert_int_equal(io(&driver, NVME_OPCODE_READ, edges[i], 1, driver_bus(memory), 0), 0);
		assert_true(outside ? driver_holds(memory, edges[i], BLOCK, 1) : zero(memory, BLOCK));
	}
	driver_close(&driver);
}

/* Reads of a medium in memory leave their data there, and the entry says where; all else is as ever. */
static void test_places(void **state)
{
	struct weir_virtual_fault never = { .kind = WEIR_VIRTUAL_FAULT_LATE, .every = 1000, .us = 1 };
	struct weir_virtual_options options = driver_defaults();
	struct weir_virtual_stats before, after;
	struct driver driver;
	unsigned char *data;
	u32 place;

	(void)state;
	open_pair(&driver);
	assert_true(weir_virtual_answer_places(driver.controller));
	data = driver_pages(&driver, PAGE);
	memset(data, 0xa5, PAGE);
	weir_virtual_stats(driver.controller, &before);
	assert_int_equal(
		driver_command(&driver, 1, driver_io(NVME_OPCODE_WRITE, 7, 2, driver_bus(data), 0), &place),
		0);
	assert_int_equal(place, 0);
	memset(data, 0x5a, PAGE);
	for (u32 lba = 0; lba < 8; lba += 7) {
		assert_int_equal(driver_command(&driver, 1,
						driver_io(NVME_OPCODE_READ, lba, 1, driver_bus(data), 0),
						&place),
				 0);
		assert_int_equal(place, lba + 1);
		assert_int_equal(((const unsigned char *)driver.medium->memory)[lba * BLOCK], lba ? 0xa5 : 0);
		assert_int_equal(data[0], 0x5a); /* nothing was copied */
	}
	weir_virtual_stats(driver.controller, &after);
	assert_int_equal(after.bytes_read - before.bytes_read, 2 * BLOCK);
	assert_int_equal(
		driver_command(&driver, 1, driver_io(NVME_OPCODE_COMPARE, 7, 1, driver_bus(data), 0), &place),
		NVME_STATUS_COMPARE_FAILURE | DRIVER_REFUSED);
	assert_int_equal(place, 0);
	assert_int_not_equal(io(&driver, NVME_OPCODE_READ, BLOCKS, 1, driver_bus(data), 0), 0);
	assert_int_not_equal(io(&driver, NVME_OPCODE_READ, 0, 1, 4096, 0), 0); /* nobody's memory */
	driver_close(&driver);
	options.faults = &never;
	options.fault_count = 1;
	driver_open(&driver, options);
	assert_false(weir_virtual_answer_places(driver.controller));
	driver_close(&driver);
	options = driver_defaults();
	assert_int_equal(weir_medium_sparse_open(1 << 20, BLOCK, &options.medium), 0);
	driver_open(&driver, options);
	assert_false(weir_virtual_answer_places(driver.controller));
	driver_close(&driver);
}

static void test_stats(void **state)
{
	struct weir_virtual_stats before, after;
	struct driver driver;
	u64 data;

	(void)state;
	open_pair(&driver);
	data = driver_bus(driver_pages(&driver, PAGE));
	weir_virtual_stats(driver.controller, &before);
	assert_int_equal(io(&driver, NVME_OPCODE_WRITE, 0, 8, data, 0), 0);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 3, data, 0), 0);
	assert_int_not_equal(io(&driver, NVME_OPCODE_READ, BLOCKS, 3, data, 0), 0);
	assert_int_equal(io(&driver, NVME_OPCODE_COMPARE, 0, 3, data, 0), 0);
	weir_virtual_stats(driver.controller, &after);
	assert_int_equal(after.commands - before.commands, 4);
	assert_int_equal(after.errors - before.errors, 1);
	assert_int_equal(after.bytes_written - before.bytes_written, 8 * BLOCK);
	assert_int_equal(after.bytes_read - before.bytes_read, 3 * BLOCK);
	assert_int_equal(after.bad_doorbells, 0);
	driver_close(&driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_field_errors),
		cmocka_unit_test(test_write_zeroes),
		cmocka_unit_test(test_deallocate),
		cmocka_unit_test(test_deallocate_errors),
		cmocka_unit_test(test_flush_and_fua),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_one_range_fails),
		cmocka_unit_test(test_beyond_32_bits),
		cmocka_unit_test(test_deallocate_more_than_4_gib),
		cmocka_unit_test(test_medium_errors),
		cmocka_unit_test(test_medium_refuses),
		cmocka_unit_test(test_reported_ahead),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_an_end_with_requests_in_the_medium),
		cmocka_unit_test(test_cid_conflict),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_stats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
