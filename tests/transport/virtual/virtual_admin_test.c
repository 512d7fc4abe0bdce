/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_admin_test.c: admin commands of the virtual controller, good and bad. */
#include "virtual_medium.h"

#include <endian.h>
#include <stdio.h>

#include <nvme/types.h>

enum {
	BLOCK = 512,
	PAGE = NVME_PAGE_BYTES,
	GET_LOG_PAGE = 0x02,
	REFUSED_FIELD = NVME_STATUS_INVALID_FIELD | DRIVER_REFUSED,
	REFUSED_QID = NVME_STATUS_INVALID_QID | DRIVER_REFUSED,
};

static void open_enabled(struct driver *driver)
{
	driver_open(driver, driver_defaults());
	driver_enable(driver);
}

static struct nvme_sqe identify(u32 cns, u32 nsid, const void *memory)
{
	return (struct nvme_sqe){ .cdw0 = NVME_ADMIN_IDENTIFY,
				  .nsid = nsid,
				  .prp1 = driver_bus(memory),
				  .prp2 = driver_bus(memory) + PAGE,
				  .cdw10 = cns };
}

static void test_identify_controller(void **state)
{
	struct driver driver;
	struct nvme_id_ctrl *id;

	(void)state;
	open_enabled(&driver);
	id = driver_pages(&driver, PAGE);
	assert_int_equal(driver_admin(&driver, identify(NVME_CNS_CONTROLLER, 0, id)), 0);
	assert_int_equal(id->mdts, 5); /* 128 KiB */
	assert_int_equal(le32toh(id->nn), 1);
	assert_int_equal(id->sqes, 0x66);
	assert_int_equal(id->cqes, 0x44);
	assert_int_equal(le32toh(id->ver), weir_virtual_read32(driver.controller, NVME_REGISTER_VS));
	assert_int_equal(le16toh(id->oncs), 0x0d);
	assert_true(id->vwc & 1);
	assert_memory_equal(id->mn, "weir virtual controller                 ", 40);
	driver_close(&driver);
}

static void test_identify_namespace(void **state)
{
	struct driver driver;
	unsigned char *memory;
	struct nvme_id_ns *id;

	(void)state;
	open_enabled(&driver);
	memory = driver_pages(&driver, 2 * PAGE);
	/* Across two pages: the page offset splits the structure. */
	assert_int_equal(driver_admin(&driver, identify(NVME_CNS_NAMESPACE, 1, memory)), 0);
	id = (struct nvme_id_ns *)memory;
	assert_int_equal(le64toh(id->nsze), (4 << 20) / BLOCK);
	assert_int_equal(le64toh(id->ncap), (4 << 20) / BLOCK);
	assert_int_equal(id->lbaf[id->flbas & 15].ds, 9);
	assert_int_equal(id->nsattr, 0);
	for (u32 nsid = 0; nsid < 4; nsid++)
		if (nsid != 1)
			assert_int_equal(driver_admin(&driver, identify(NVME_CNS_NAMESPACE, nsid, memory)),
					 NVME_STATUS_INVALID_NAMESPACE | DRIVER_REFUSED);
	driver_close(&driver);
}

/* More blocks than 2^32, on a medium that takes no writes, and a transfer size of its own. */
static void test_identify_others(void **state)
{
	struct weir_virtual_options options = driver_defaults();
	struct driver driver;
	struct nvme_id_ns *space;
	struct nvme_id_ctrl *id;

	(void)state;
	assert_int_equal(weir_medium_sparse_open((u64)300 << 40, BLOCK, &options.medium), 0);
	options.medium->read_only = true;
	options.max_transfer_bytes = 1 << 20;
	driver_open(&driver, options);
	driver_enable(&driver);
	space = driver_pages(&driver, 2 * PAGE);
	assert_int_equal(driver_admin(&driver, identify(NVME_CNS_NAMESPACE, 1, space)), 0);
	assert_true(le64toh(space->nsze) == ((u64)300 << 40) / BLOCK);
	assert_true(le64toh(space->ncap) == ((u64)300 << 40) / BLOCK);
	assert_int_equal(space->nsattr & 1, 1);
	id = (struct nvme_id_ctrl *)(void *)space;
	assert_int_equal(driver_admin(&driver, identify(NVME_CNS_CONTROLLER, 0, id)), 0);
	assert_int_equal(id->mdts, 8);
	driver_close(&driver);
}

static void test_identify_lists(void **state)
{
	const u32 no_namespace = NVME_STATUS_INVALID_NAMESPACE | DRIVER_REFUSED;
	struct driver driver;
	struct nvme_sqe sqe;
	u32 *list;

	(void)state;
	open_enabled(&driver);
	list = driver_pages(&driver, 2 * PAGE);
	assert_int_equal(driver_admin(&driver, identify(NVME_CNS_ACTIVE_NAMESPACES, 0, list)), 0);
	assert_int_equal(list[0], 1);
	assert_int_equal(list[1], 0);
	assert_int_equal(driver_admin(&driver, identify(NVME_CNS_ACTIVE_NAMESPACES, 1, list)), 0);
	assert_int_equal(list[0], 0);
	sqe = identify(NVME_CNS_ACTIVE_NAMESPACES, NVME_NSID_BROADCAST, list);
	assert_int_equal(driver_admin(&driver, sqe), no_namespace);
	assert_int_equal(driver_admin(&driver, identify(3, 1, list)), 0);
	assert_int_equal(list[0], 3 | 16 << 8); /* a UUID of 16 bytes */
	assert_int_equal(list[5], 0);           /* and nothing after it */
	assert_int_equal(driver_admin(&driver, identify(3, 2, list)), no_namespace);
	assert_int_equal(driver_admin(&driver, identify(0x77, 1, list)), REFUSED_FIELD);
	driver_close(&driver);
}

/* A namespace has an identifier, the same wherever it is told: a random UUID, which no two have. */
static void test_identifiers(void **state)
{
	struct driver drivers[2];
	u8 *pages[2], digits[17];

	(void)state;
	for (u32 i = 0; i < 2; i++) {
		u8 *page, *uuid;

		open_enabled(&drivers[i]);
		pages[i] = page = driver_pages(&drivers[i], 3 * PAGE);
		assert_int_equal(driver_admin(&drivers[i], identify(3, 1, page)), 0);
		uuid = page + 4;
		assert_int_equal(uuid[6] >> 4, 4);
		assert_int_equal(uuid[8] >> 6, 2);
		assert_int_equal(driver_admin(&drivers[i], identify(NVME_CNS_NAMESPACE, 1, page + PAGE)), 0);
		assert_memory_equal(((struct nvme_id_ns *)(void *)(page + PAGE))->nguid, uuid, 16);
		assert_int_equal(driver_admin(&drivers[i], identify(NVME_CNS_CONTROLLER, 0, page + 2 * PAGE)),
				 0);
		for (u32 k = 0; k < 8; k++)
			snprintf((char *)digits + 2 * k, 3, "%02x", uuid[k]);
		assert_memory_equal(((struct nvme_id_ctrl *)(void *)(page + 2 * PAGE))->sn, digits, 16);
	}
	assert_memory_not_equal(pages[0] + 4, pages[1] + 4, 6);
	for (u32 i = 0; i < 2; i++)
		driver_close(&drivers[i]);
}

static void test_identify_memory(void **state)
{
	struct driver driver;
	unsigned char *memory;
	struct nvme_sqe sqe;

	(void)state;
	open_enabled(&driver);
	memory = driver_pages(&driver, 3 * PAGE);
	memset(memory, 0xff, 3 * PAGE);
	sqe = identify(NVME_CNS_CONTROLLER, 0, memory);
	sqe.prp1 += 512;
	sqe.prp2 += PAGE; /* the third page, so that the second stays as it is */
	assert_int_equal(driver_admin(&driver, sqe), 0);
	assert_int_equal(memory[511], 0xff);
	assert_int_equal(memory[512 + 111], 1); /* CNTRLTYPE */
	assert_int_equal(memory[2 * PAGE - 1], 0xff);
	assert_int_equal(memory[2 * PAGE + 511], 0);
	assert_int_equal(memory[2 * PAGE + 512], 0xff);
	sqe.prp2 += 8;
	assert_int_equal(driver_admin(&driver, sqe), NVME_STATUS_INVALID_PRP_OFFSET | DRIVER_REFUSED);
	sqe.prp1 = 4096;
	assert_int_equal(driver_admin(&driver, sqe), NVME_STATUS_DATA_TRANSFER_ERROR | DRIVER_REFUSED);
	driver_close(&driver);
}

static void test_opcodes(void **state)
{
	struct driver driver;

	(void)state;
	open_enabled(&driver);
	for (u32 opcode = 0; opcode < 256; opcode++) {
		struct nvme_sqe sqe = { .cdw0 = opcode };

		if (opcode <= 0x0a || opcode == NVME_ADMIN_ASYNC_EVENT)
			if (opcode != 3 && opcode != 7)
				continue;
		assert_int_equal(driver_admin(&driver, sqe), NVME_STATUS_INVALID_OPCODE | DRIVER_REFUSED);
	}
	for (u32 bit = 8; bit < 16; bit++)
		if (bit < 10 || bit > 13)
			assert_int_equal(
				driver_admin(&driver,
					     (struct nvme_sqe){ .cdw0 = NVME_ADMIN_GET_FEATURES | 1u << bit,
								.cdw10 = 7 }),
				REFUSED_FIELD);
	driver_close(&driver);
}

static u32 feature(struct driver *driver, u32 opcode, u32 cdw10, u32 value, u32 *result)
{
	struct nvme_sqe sqe = { .cdw0 = opcode, .cdw10 = cdw10, .cdw11 = value };

	return driver_command(driver, 0, sqe, result);
}

static void test_number_of_queues(void **state)
{
	const u32 id = NVME_FEATURE_NUMBER_OF_QUEUES, most = DRIVER_QUEUES - 2; /* zero based */
	struct driver driver;
	u32 result;

	(void)state;
	open_enabled(&driver);
	assert_int_equal(feature(&driver, NVME_ADMIN_GET_FEATURES, id, 0, &result), 0);
	assert_int_equal(result, most | most << 16);
	assert_int_equal(feature(&driver, NVME_ADMIN_SET_FEATURES, id, 0xffff, &result), REFUSED_FIELD);
	assert_int_equal(feature(&driver, NVME_ADMIN_SET_FEATURES, id, 0xffff0000, &result), REFUSED_FIELD);
	assert_int_equal(feature(&driver, NVME_ADMIN_SET_FEATURES, id, 0xfffe0001, &result), 0);
	assert_int_equal(result, 1 | most << 16);
	assert_int_equal(feature(&driver, NVME_ADMIN_GET_FEATURES, id, 0, &result), 0);
	assert_int_equal(result, 1 | most << 16);
	driver_add_queue(&driver, 2, 3, 4, 4);
	assert_int_equal(
		driver_admin(&driver, driver_create_cq(4, driver_bus(driver_pages(&driver, PAGE)), 4)), 0);
	assert_int_equal(driver_admin(&driver, driver_create_sq(3, 3, driver_bus(driver.arena), 4)),
			 REFUSED_QID); /* beyond what was negotiated */
	assert_int_equal(feature(&driver, NVME_ADMIN_SET_FEATURES, id, 0, &result),
			 NVME_STATUS_COMMAND_SEQUENCE | DRIVER_REFUSED);
	driver_close(&driver);
}

static void test_features(void **state)
{
	static const u32 plain[] = { 0x01, 0x02, 0x04, 0x05, 0x08, 0x09, 0x0a, 0x0b };
	struct driver driver;
	u32 result;

	(void)state;
	open_enabled(&driver);
	for (u32 i = 0; i < 8; i++) {
		assert_int_equal(feature(&driver, NVME_ADMIN_GET_FEATURES, plain[i], 0, &result), 0);
		assert_int_equal(result, 0);
		assert_int_equal(feature(&driver, NVME_ADMIN_SET_FEATURES, plain[i], 5, NULL), 0);
		assert_int_equal(feature(&driver, NVME_ADMIN_GET_FEATURES, plain[i], 0, &result), 0);
		assert_int_equal(result, 5);
	}
	assert_int_equal(feature(&driver, NVME_ADMIN_GET_FEATURES, 6, 0, &result), 0);
	assert_int_equal(result, 1);
	assert_int_equal(feature(&driver, NVME_ADMIN_SET_FEATURES, 6, 0, NULL), 0);
	assert_int_equal(feature(&driver, NVME_ADMIN_GET_FEATURES, 6, 0, &result), 0);
	assert_int_equal(result, 0);
	assert_int_equal(feature(&driver, NVME_ADMIN_SET_FEATURES, 6 | 1u << 31, 0, NULL),
			 NVME_STATUS_FEATURE_NOT_SAVEABLE | DRIVER_REFUSED);
	for (u32 id = 0; id < 256; id++) {
		if ((id && id < 0x0c && id != 3) || id == NVME_FEATURE_HOST_BEHAVIOR)
			continue;
		assert_int_equal(feature(&driver, NVME_ADMIN_GET_FEATURES, id, 0, NULL), REFUSED_FIELD);
		assert_int_equal(feature(&driver, NVME_ADMIN_SET_FEATURES, id, 0, NULL), REFUSED_FIELD);
	}
	driver_close(&driver);
}

/* A reset forgets each of them. */
static void test_reset_forgets_features(void **state)
{
	static const u32 plain[] = { 0x01, 0x02, 0x04, 0x05, 0x08, 0x09, 0x0a, 0x0b };
	struct driver driver;
	u32 result;

	(void)state;
	driver_open(&driver, driver_defaults());
	for (u32 round = 0; round < 2; round++) {
		driver_enable(&driver);
		for (u32 i = 0; i < 8; i++) {
			struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_GET_FEATURES, .cdw10 = plain[i] };

			assert_int_equal(driver_command(&driver, 0, sqe, &result), 0);
			assert_int_equal(result, 0);
			sqe.cdw0 = NVME_ADMIN_SET_FEATURES;
			sqe.cdw11 = 5;
			assert_int_equal(driver_admin(&driver, sqe), 0);
		}
		driver_disable(&driver);
	}
	driver_close(&driver);
}

/* A host that knows of retry delays says so in a page of data. */
static void test_host_behavior(void **state)
{
	struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_SET_FEATURES, .cdw10 = NVME_FEATURE_HOST_BEHAVIOR };
	struct driver driver;
	u8 *page;

	(void)state;
	open_enabled(&driver);
	page = driver_pages(&driver, PAGE);
	sqe.prp1 = driver_bus(page);
	for (u8 value = 3; value-- > 0;) {
		memset(page, 0, PAGE);
		page[0] = value;
		sqe.cdw0 = NVME_ADMIN_SET_FEATURES;
		assert_int_equal(driver_command(&driver, 0, sqe, NULL), value > 1 ? REFUSED_FIELD : 0);
		memset(page, 0xff, PAGE);
		sqe.cdw0 = NVME_ADMIN_GET_FEATURES;
		assert_int_equal(driver_command(&driver, 0, sqe, NULL), 0);
		assert_int_equal(page[0], value > 1 ? 0 : value);
		assert_int_equal(page[511], 0);
		assert_int_equal(page[512], 0xff);
	}
	driver_close(&driver);
}

static u32 read_log(struct driver *driver, u32 log, u32 words, u64 offset, const void *memory)
{
	struct nvme_sqe sqe = { .cdw0 = GET_LOG_PAGE,
				.prp1 = driver_bus(memory),
				.prp2 = driver_bus(memory) + PAGE,
				.cdw10 = log | (words - 1) << 16,
				.cdw11 = (words - 1) >> 16,
				.cdw12 = (u32)offset,
				.cdw13 = (u32)(offset >> 32) };

	return driver_admin(driver, sqe);
}

static void test_log_pages(void **state)
{
	struct driver driver;
	unsigned char *memory;

	(void)state;
	open_enabled(&driver);
	memory = driver_pages(&driver, 2 * PAGE);
	assert_int_equal(read_log(&driver, 2, 128, 0, memory), 0);
	assert_int_equal(memory[3], 100); /* available spare */
	assert_int_equal(memory[32], 0);  /* data units read */
	assert_int_equal(memory[48], 0);  /* and written, in thousands of 512 bytes, rounded up */
	driver_add_queue(&driver, 1, 1, 4, 4);
	for (u32 i = 0; i < 3; i++) {
		u32 opcode = i ? NVME_OPCODE_READ : NVME_OPCODE_WRITE;
		u64 lba = i < 2 ? 0 : ~(u64)0; /* the last one fails, and moves nothing */

		(void)driver_command(&driver, 1, driver_io(opcode, lba, 1, driver_bus(memory + PAGE), 0),
				     NULL);
	}
	assert_int_equal(read_log(&driver, 2, 128, 0, memory), 0);
	assert_int_equal(memory[32], 1);
	assert_int_equal(memory[48], 1);
	assert_int_equal(read_log(&driver, 2, 1, 0, memory + PAGE), 0);
	assert_memory_equal(memory + PAGE, memory, 4);
	assert_int_equal(memory[PAGE + 4], 0);
	assert_int_equal(read_log(&driver, 3, 128, 8, memory), 0);
	assert_memory_equal(memory, "1       ", 8); /* firmware of slot 1 */
	assert_int_equal(read_log(&driver, 1, 16, 0, memory), 0);
	assert_int_equal(read_log(&driver, 3, 2048, 0, memory), 0);
	memory[0] = 1;
	assert_int_equal(read_log(&driver, 3, 4, 512, memory), 0); /* nothing, behind the page's last byte */
	assert_int_equal(memory[0], 0);
	assert_int_equal(read_log(&driver, 3, 4, 516, memory), REFUSED_FIELD);
	assert_int_equal(read_log(&driver, 3, 4, (u64)1 << 32, memory), REFUSED_FIELD);
	assert_int_equal(read_log(&driver, 3, 4, 2, memory), REFUSED_FIELD);
	assert_int_equal(read_log(&driver, 3, 1 << 20, 0, memory), REFUSED_FIELD);
	assert_int_equal(read_log(&driver, 0x55, 4, 0, memory), NVME_STATUS(1, 9) | DRIVER_REFUSED);
	driver_close(&driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identify_controller),
		cmocka_unit_test(test_identify_namespace),
		cmocka_unit_test(test_identify_others),
		cmocka_unit_test(test_identify_lists),
		cmocka_unit_test(test_identifiers),
		cmocka_unit_test(test_identify_memory),
		cmocka_unit_test(test_opcodes),
		cmocka_unit_test(test_number_of_queues),
		cmocka_unit_test(test_features),
		cmocka_unit_test(test_reset_forgets_features),
		cmocka_unit_test(test_host_behavior),
		cmocka_unit_test(test_log_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
