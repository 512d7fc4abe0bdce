/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_prp_test.c: which memory a command names, in every shape and wrongly. */
#include "virtual_medium.h"

enum { BLOCK = 512, PAGE = NVME_PAGE_BYTES };

static void open_pair(struct driver *driver)
{
	driver_open(driver, driver_defaults());
	driver_enable(driver);
	driver_add_queue(driver, 1, 1, 16, 16);
}

static u32 io(struct driver *driver, u32 opcode, u64 lba, u32 blocks, u64 prp1, u64 prp2)
{
	return driver_command(driver, 1, driver_io(opcode, lba, blocks, prp1, prp2), NULL);
}

/*
 * Transfers of each shape. Pages are taken in descending order so that none
 * merge by chance, and written back through other pages.
 */
struct shape {
	u32 offset; /* of the first byte in its page */
	u32 blocks;
	u32 list_offset; /* of the first list entry in its page */
	bool adjacent;   /* pages in ascending order */
};

static u64 build_prps(struct driver *driver, const struct shape *shape, unsigned char **pages, u64 *prp1)
{
	u64 bytes = (u64)shape->blocks * BLOCK;
	u32 count = (u32)((shape->offset + bytes + PAGE - 1) / PAGE);
	unsigned char *memory = driver_pages(driver, (size_t)count * PAGE);
	u64 *list, *at, first_list;

	for (u32 i = 0; i < count; i++)
		pages[i] = memory + (size_t)PAGE * (shape->adjacent ? i : count - 1 - i);
	*prp1 = driver_bus(pages[0]) + shape->offset;
	if (count == 1)
		return 0xdeadbeef; /* not to be looked at */
	if (count == 2)
		return driver_bus(pages[1]);
	list = driver_pages(driver, PAGE);
	at = list + shape->list_offset / 8;
	first_list = driver_bus(at);
	for (u32 i = 1; i < count; i++) {
		if (at == list + 511 && i + 1 < count) {
			u64 *next = driver_pages(driver, PAGE);

			*at = driver_bus(next);
			list = at = next;
		}
		*at++ = driver_bus(pages[i]);
	}
	return first_list;
}

static unsigned char *byte_at(const struct shape *shape, unsigned char **pages, u64 offset)
{
	u64 at = shape->offset + offset;

	return pages[at / PAGE] + at % PAGE;
}

static void check_shape(struct driver *driver, const struct shape *shape, u64 lba, u64 generation)
{
	size_t used = driver->used;
	unsigned char *pages[64];
	u64 prp1, prp2 = build_prps(driver, shape, pages, &prp1);

	for (u32 i = 0; i < shape->blocks; i++) {
		u64 block[BLOCK / 8];

		driver_fill(block, lba + i, BLOCK, generation);
		for (u32 j = 0; j < BLOCK; j++)
			*byte_at(shape, pages, (u64)i * BLOCK + j) = ((unsigned char *)block)[j];
	}
	assert_int_equal(io(driver, NVME_OPCODE_WRITE, lba, shape->blocks, prp1, prp2), 0);
	assert_int_equal(io(driver, NVME_OPCODE_COMPARE, lba, shape->blocks, prp1, prp2), 0);
	*byte_at(shape, pages, (u64)shape->blocks * BLOCK - 1) ^= 1;
	assert_int_equal(io(driver, NVME_OPCODE_COMPARE, lba, shape->blocks, prp1, prp2),
			 NVME_STATUS_COMPARE_FAILURE | DRIVER_REFUSED);
	prp2 = build_prps(driver, shape, pages, &prp1);
	assert_int_equal(io(driver, NVME_OPCODE_READ, lba, shape->blocks, prp1, prp2), 0);
	for (u32 i = 0; i < shape->blocks; i++) {
		unsigned char block[BLOCK];

		for (u32 j = 0; j < BLOCK; j++)
			block[j] = *byte_at(shape, pages, (u64)i * BLOCK + j);
		assert_true(driver_holds(block, lba + i, BLOCK, generation));
	}
	if (shape->offset)
		assert_int_equal(pages[0][shape->offset - 1], 0);
	driver->used = used;
}

static void test_prp_shapes(void **state)
{
	static const u32 offsets[] = { 0, 4, 512, 2048, 4092 };
	static const u32 lengths[] = { 1, 7, 8, 9, 15, 16, 17, 24, 25, 64, 255, 256 };
	static const u32 lists[] = { 0, 8, 2048, 4096 - 16, 4096 - 8 };
	struct driver driver;
	u64 generation = 1;

	(void)state;
	open_pair(&driver);
	for (u32 i = 0; i < 5; i++)
		for (u32 j = 0; j < 12; j++)
			for (u32 k = 0; k < 5; k++) {
				struct shape shape = { offsets[i], lengths[j], lists[k], k & 1 };

				check_shape(&driver, &shape, 3 * j, generation++);
			}
	driver_close(&driver);
}

/* With transfers of 4 MiB a list fills its page and is chained twice. */
static void test_prp_long_chain(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;
	unsigned char *data;
	u64 *lists;

	(void)state;
	assert_int_equal(weir_medium_ram_open(4 << 20, 4096, NULL, &options.medium), 0);
	options.max_transfer_bytes = 4 << 20;
	driver_open(&driver, options);
	driver_enable(&driver);
	driver_add_queue(&driver, 1, 1, 4, 4);
	data = driver_pages(&driver, 4 << 20);
	lists = driver_pages(&driver, 3 * PAGE);
	for (u32 i = 1, at = 0; i < 1024; i++, at++) {
		if (at % 512 == 511 && i != 1023) {
			lists[at] = driver_bus(&lists[at + 1]);
			at++;
		}
		lists[at] = driver_bus(data + (size_t)PAGE * i);
	}
	for (u32 i = 0; i < 1024; i++)
		driver_fill(data + (size_t)PAGE * i, i, PAGE, 7);
	assert_int_equal(io(&driver, NVME_OPCODE_WRITE, 0, 1024, driver_bus(data), driver_bus(lists)), 0);
	memset(data, 0, 4 << 20);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 1024, driver_bus(data), driver_bus(lists)), 0);
	for (u32 i = 0; i < 1024; i++)
		assert_true(driver_holds(data + (size_t)PAGE * i, i, PAGE, 7));
	driver_close(&driver);
}

static void test_prp_errors(void **state)
{
	const u32 offset = NVME_STATUS_INVALID_PRP_OFFSET | DRIVER_REFUSED;
	const u32 transfer = NVME_STATUS_DATA_TRANSFER_ERROR | DRIVER_REFUSED;
	struct driver driver;
	u64 data, list, end;
	u64 *entries;

	(void)state;
	open_pair(&driver);
	data = driver_bus(driver_pages(&driver, 4 * PAGE));
	entries = driver_pages(&driver, 2 * PAGE);
	list = driver_bus(entries);
	end = driver_bus(driver.arena) + DRIVER_ARENA_BYTES;
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 1, data + 2, 0), offset);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 16, data, data + PAGE + 8), offset);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 24, data, list + 4), offset);
	entries[0] = data + PAGE;
	entries[1] = data + 2 * PAGE + 512;
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 24, data, list), offset);
	entries[511] = list + PAGE + 8; /* a chain pointer with an offset */
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 24, data, list + 511 * 8), offset);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 1, 0, 0), transfer);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 1, end, 0), transfer);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 1, end - 256, 0), transfer);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 1, ~(u64)3, 0), transfer);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 16, data, end), transfer);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 24, data, end), transfer);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 24, data, ~(u64)7), transfer);
	entries[1] = end;
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 24, data, list), transfer);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 1, end - 512, 0), 0);
	driver_close(&driver);
}

/* Registrations that end in the middle of a page, or of a list: what lies behind them is not touched. */
static void test_registrations_end_anywhere(void **state)
{
	const u32 transfer = NVME_STATUS_DATA_TRANSFER_ERROR | DRIVER_REFUSED;
	struct driver driver;
	unsigned char *half, *memory;
	u64 *list, data;

	(void)state;
	open_pair(&driver);
	memory = aligned_alloc(PAGE, 4 * PAGE);
	assert_non_null(memory);
	half = memory + PAGE;
	memset(memory, 0x55, 4 * PAGE);
	assert_int_equal(weir_dma_map_add(driver.dma, memory, PAGE + 1024), 0);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 2, driver_bus(half), 0), 0);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 3, driver_bus(half), 0), transfer);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 2, driver_bus(half) + 512, 0), transfer);
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 16, driver_bus(memory), driver_bus(half)),
			 transfer);
	for (u32 i = 1024; i < 2 * PAGE; i++)
		assert_int_equal(half[i], 0x55);
	/* A list of two entries, of which the registration has one. */
	data = driver_bus(driver_pages(&driver, 3 * PAGE));
	list = (u64 *)(void *)(half + 1024 - 8);
	list[0] = data + PAGE;
	list[1] = data + 2 * PAGE;
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 24, data, driver_bus(list)), transfer);
	list--;
	list[0] = data + PAGE;
	list[1] = data + 2 * PAGE;
	assert_int_equal(io(&driver, NVME_OPCODE_READ, 0, 24, data, driver_bus(list)), 0);
	assert_int_equal(weir_dma_map_remove(driver.dma, memory), 0);
	free(memory);
	driver_close(&driver);
}

/* A transfer of MDTS from the middle of a page, in as many segments as can be, keeps to its own room for
 * them. */
static void test_most_segments(void **state)
{
	enum { BYTES = 128 << 10, COUNT = BYTES / PAGE + 1 };
	unsigned char *pages;
	struct driver driver;
	struct slow slow;
	struct nvme_cqe cqe;
	u64 *list;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	pages = driver_pages(&driver, 2 * COUNT * PAGE);
	list = driver_pages(&driver, PAGE);
	for (u32 i = 1; i < COUNT; i++)
		list[i - 1] =
			driver_bus(pages + (size_t)2 * i * PAGE); /* every other one: none are adjacent */
	slow.hold = true;
	for (u32 i = 0; i < 3; i++)
		driver_post(&driver, 1,
			    driver_io(NVME_OPCODE_READ, 0, BYTES / BLOCK, driver_bus(pages) + 2048,
				      driver_bus(list)),
			    i);
	driver_steps(&driver, 3);
	assert_int_equal(slow.count, 3);
	for (u32 r = 0; r < 3; r++) {
		const struct iovec *iov = slow.held[r]->iov;

		assert_int_equal(slow.held[r]->iov_count, COUNT);
		for (u32 i = 0; i < COUNT; i++) {
			assert_ptr_equal(iov[i].iov_base, pages + (size_t)2 * i * PAGE + (i ? 0 : 2048));
			assert_int_equal(iov[i].iov_len, i && i + 1 < COUNT ? PAGE : 2048);
		}
		for (u32 other = 0; other < r; other++)
			assert_true(iov >= slow.held[other]->iov + COUNT ||
				    iov + COUNT <= slow.held[other]->iov);
	}
	slow.hold = false;
	for (u32 i = 0; i < 3; i++)
		driver_reap(&driver, 1, &cqe);
	driver_close(&driver);
}

static unsigned segments_of(struct driver *driver, struct slow *slow, u64 prp1, u64 prp2)
{
	unsigned count;

	slow->hold = true;
	driver_post(driver, 1, driver_io(NVME_OPCODE_READ, 0, 16, prp1, prp2), 1);
	driver_steps(driver, 3);
	assert_int_equal(slow->count, 1);
	count = slow->held[0]->iov_count;
	slow->hold = false;
	driver_reap(driver, 1, &(struct nvme_cqe){ 0 });
	return count;
}

/* Adjacent pages are one segment, unless they were registered apart. */
static void test_segments(void **state)
{
	struct driver driver;
	unsigned char *data;
	struct slow slow;
	u64 first;

	(void)state;
	slow_driver_open(&driver, &slow, 8, 8, 0);
	first = driver_bus(driver_pages(&driver, 4 * PAGE));
	assert_int_equal(segments_of(&driver, &slow, first, first + PAGE), 1);
	assert_int_equal(segments_of(&driver, &slow, first + PAGE, first), 2);
	assert_int_equal(segments_of(&driver, &slow, first, first + 2 * PAGE), 2);
	data = aligned_alloc(PAGE, 2 * PAGE);
	assert_non_null(data);
	first = driver_bus(data);
	assert_int_equal(weir_dma_map_add(driver.dma, data, PAGE), 0);
	assert_int_equal(weir_dma_map_add(driver.dma, data + PAGE, PAGE), 0);
	assert_int_equal(segments_of(&driver, &slow, first, first + PAGE), 2);
	driver_close(&driver);
	free(data);
}

struct removal {
	struct slow slow; /* first */
	struct driver *driver;
	unsigned char *memory;
};

/* In the middle of a poll: forbid the memory, then ring for a command that names it. */
static void remove_and_ring(struct slow *slow)
{
	struct removal *removal = (struct removal *)slow;

	slow->on_submit = NULL;
	assert_int_equal(weir_dma_map_remove(removal->driver->dma, removal->memory), 0);
	driver_ring(removal->driver, 2);
}

static void test_removed_memory(void **state)
{
	struct removal removal;
	struct driver driver;
	struct nvme_sqe sqe;
	struct nvme_cqe cqe;

	(void)state;
	slow_driver_open(&driver, &removal.slow, 8, 8, 0);
	driver_add_queue(&driver, 2, 2, 8, 8);
	removal.driver = &driver;
	removal.memory = aligned_alloc(PAGE, PAGE);
	assert_non_null(removal.memory);
	for (u32 round = 0; round < 4; round++) { /* the queues take turns at being first */
		assert_int_equal(weir_dma_map_add(driver.dma, removal.memory, PAGE), 0);
		driver_steps(&driver, 2 + round % 2);
		sqe = driver_io(NVME_OPCODE_READ, 0, 1, driver_bus(removal.memory), 0);
		driver_put(&driver, 2, &sqe);
		removal.slow.on_submit = remove_and_ring;
		driver_post(&driver, 1, (struct nvme_sqe){ .nsid = 1 }, 0);
		driver_reap(&driver, 1, &cqe);
		driver_reap(&driver, 2, &cqe);
		assert_int_equal(driver_status(&cqe), NVME_STATUS_DATA_TRANSFER_ERROR | DRIVER_REFUSED);
	}
	free(removal.memory);
	driver_close(&driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prp_shapes),
		cmocka_unit_test(test_prp_long_chain),
		cmocka_unit_test(test_prp_errors),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_registrations_end_anywhere),
		cmocka_unit_test(test_most_segments),
		cmocka_unit_test(test_removed_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
