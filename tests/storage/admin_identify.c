/* SPDX-License-Identifier: BSD-3-Clause */
/* admin_identify.c: what Identify says: namespaces, their formats, and a controller's limits and names. */
#include "admin_cases.h"

#include <errno.h>
#include <string.h>

#include "backend/error.h"

/* Namespaces 3 and 7, or those that it has; whichever is asked about is what the rig says. */
static void fill_identify(struct rig *rig, const struct nvme_sqe *sqe, void *page)
{
	uint32_t *list = page;

	memset(page, 0, NVME_PAGE_BYTES);
	if ((sqe->cdw0 & 0xff) != NVME_ADMIN_IDENTIFY)
		return;
	if (sqe->cdw10 == NVME_CNS_CONTROLLER)
		memcpy(page, &rig->controller, sizeof(rig->controller));
	else if (sqe->cdw10 == NVME_CNS_NAMESPACE)
		memcpy(page, &rig->space, sizeof(rig->space));
	else if (sqe->cdw10 == NVME_CNS_DESCRIPTORS)
		memcpy(page, rig->descriptors, sizeof(rig->descriptors));
	else
		memcpy(list, rig->namespaces[0] ? rig->namespaces : (const uint32_t[]){ 3, 7, 0 },
		       sizeof(rig->namespaces));
}

static void fill_rig(struct rig *rig)
{
	rig->answers = 3;
	rig->fill = fill_identify;
	rig->space.nsze = (uint64_t)1 << 40;
	rig->space.lbaf[0].ds = 12;
}

static void open_identify(struct rig *rig)
{
	open_rig(rig);
	fill_rig(rig);
}

void test_namespaces(void **state)
{
	static const uint32_t asked[] = { 0, 3, 7 }, found[] = { 3, 3, 7 };
	struct weir_namespace space;
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		open_identify(&rig);
		assert_int_equal(weir_admin_identify(&rig.admin, asked[i], false, &space), 0);
		assert_int_equal(space.nsid, found[i]);
		assert_int_equal(((const struct nvme_sqe *)(const void *)pages)[2].nsid, found[i]);
		assert_true(space.blocks == (uint64_t)1 << 40);
		assert_int_equal(space.block_log2, 12);
		assert_false(space.write_protected);
	}
	open_identify(&rig);
	assert_int_equal(weir_admin_identify(&rig.admin, 5, false, &space), -ENODEV);
	assert_non_null(strstr(weir_last_error(), "namespace 5; it has 3, 7"));
}

/* What is written to by no number is namespace 1 alone: with it detached, no other one is taken for it. */
void test_default_namespace(void **state)
{
	static const struct {
		uint32_t list[3];
		bool writes;
		uint32_t found;
		const char *says;
	} rows[] = {
		{ { 1 }, true, 1, "" },
		{ { 1 }, false, 1, "" },
		{ { 1, 2 }, false, 1, "" },
		{ { 1, 2 },
		  true,
		  0,
		  "has namespaces 1, 2: name one to write to (nsid=N), or open it for reading alone (ro=1)" },
		{ { 2 }, true, 0, "has namespace 2: name one to write to (nsid=N)" },
		{ { 2 }, false, 2, "" },
		{ { 2, 9 }, true, 0, "has namespaces 2, 9: name one" },
	};
	struct weir_namespace space;
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		open_identify(&rig);
		memcpy(rig.namespaces, rows[i].list, sizeof(rig.namespaces));
		assert_int_equal(weir_admin_identify(&rig.admin, 0, rows[i].writes, &space),
				 rows[i].found ? 0 : -EINVAL);
		if (rows[i].found)
			assert_int_equal(space.nsid, rows[i].found);
		else
			assert_non_null(strstr(weir_last_error(), rows[i].says));
		open_identify(&rig);
		memcpy(rig.namespaces, rows[i].list, sizeof(rig.namespaces));
		assert_int_equal(weir_admin_identify(&rig.admin, rows[i].list[0], true, &space), 0);
	}
}

/* A namespace of another command set is refused by its name; a controller that cannot have one is not asked.
 */
void test_command_sets(void **state)
{
	static const struct {
		uint8_t list[12];
		uint32_t status;
		int error;
		const char *says;
	} rows[] = {
		{ { 4, 1, 0, 0, 0 }, 0, 0, "" },
		{ { 0 }, 0, 0, "" }, /* no descriptor of it */
		{ { 4, 1, 0, 0, 2 }, 0, ENOTSUP, "namespace 3 of controller \"\" is zoned" },
		{ { 1, 2, 0, 0, 4, 1, 4, 1, 0, 0, 2 }, 0, ENOTSUP, "is zoned" }, /* behind another one */
		{ { 4, 1, 0, 0, 1 }, 0, ENOTSUP, "has command set 1" },
		{ { 4, 1, 0, 0, 2 }, 2, 0, "" }, /* it refuses to say */
	};
	struct weir_namespace space;
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		open_identify(&rig);
		memcpy(rig.descriptors, rows[i].list, sizeof(rows[i].list));
		assert_int_equal(weir_admin_identify(&rig.admin, 3, true, &space), 0);
		assert_int_equal(rig.answered, 3);
		open_rig(&rig);
		rig.cap = (uint64_t)0x41 << 37 | 63;
		assert_int_equal(weir_admin_enable(&rig.admin, &rig.transport, pages, 4096), 0);
		fill_rig(&rig);
		rig.answers = 4;
		rig.statuses[2] = rows[i].status;
		memcpy(rig.descriptors, rows[i].list, sizeof(rows[i].list));
		assert_int_equal(weir_admin_identify(&rig.admin, 3, true, &space), -rows[i].error);
		if (rows[i].error)
			assert_non_null(strstr(weir_last_error(), rows[i].says));
	}
}

void test_transfer_limits(void **state)
{
	static const struct {
		uint8_t mdts;
		uint32_t bytes;
	} rows[] = {
		{ 0, (uint32_t)1 << 31 },
		{ 1, 8192 },
		{ 5, 131072 },
		{ 19, (uint32_t)1 << 31 },
		{ 20, (uint32_t)1 << 31 },
		{ 255, (uint32_t)1 << 31 },
	};
	struct weir_namespace space;
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		open_identify(&rig);
		rig.controller.mdts = rows[i].mdts;
		assert_int_equal(weir_admin_identify(&rig.admin, 0, false, &space), 0);
		assert_int_equal(space.max_transfer_bytes, rows[i].bytes);
	}
}

/* Which format is in use, and what of one weir cannot do. */
void test_formats(void **state)
{
	struct weir_namespace space;
	struct rig rig;

	(void)state;
	open_identify(&rig);
	rig.space.flbas = 0x2;
	rig.space.lbaf[2].ds = 9;
	assert_int_equal(weir_admin_identify(&rig.admin, 0, false, &space), 0);
	assert_int_equal(space.block_log2, 9);
	open_identify(&rig);
	rig.space.flbas = 0x22; /* format 18, of which there are 20 */
	rig.space.nlbaf = 19;
	rig.space.lbaf[2].ds = 9;
	rig.space.lbaf[18].ds = 12;
	assert_int_equal(weir_admin_identify(&rig.admin, 0, false, &space), 0);
	assert_int_equal(space.block_log2, 12);
	open_identify(&rig);
	rig.space.lbaf[0].ms = 8;
	assert_int_equal(weir_admin_identify(&rig.admin, 0, false, &space), -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "8 bytes of metadata"));
	open_identify(&rig);
	rig.space.lbaf[0].ds = 13;
	assert_int_equal(weir_admin_identify(&rig.admin, 0, false, &space), -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "2^13 bytes"));
	open_identify(&rig);
	rig.space.nsattr = 1;
	assert_int_equal(weir_admin_identify(&rig.admin, 0, false, &space), 0);
	assert_true(space.write_protected);
}

void test_capacities(void **state)
{
	static const uint64_t blocks[] = { 1, (uint64_t)1 << 32, ((uint64_t)1 << 52) - 1, (uint64_t)1 << 52,
					   0, UINT64_MAX };
	struct weir_namespace space;
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
		open_identify(&rig);
		rig.space.nsze = blocks[i];
		assert_int_equal(weir_admin_identify(&rig.admin, 0, false, &space), i < 3 ? 0 : -EIO);
		if (i < 3)
			assert_true(space.blocks == blocks[i]);
		else
			assert_non_null(strstr(weir_last_error(), "is it formatted?"));
	}
}

/* What a controller says of itself moves no cursor. */
void test_hostile_names(void **state)
{
	struct weir_namespace space;
	struct rig rig;

	(void)state;
	open_identify(&rig);
	memset(rig.controller.mn, ' ', sizeof(rig.controller.mn));
	memcpy(rig.controller.mn, "Fast\033[2J\nSSD\x9b", 13);
	memcpy(rig.controller.sn, "A\0B\r\x7f", 5);
	assert_int_equal(weir_admin_identify(&rig.admin, 0, false, &space), 0);
	assert_string_equal(space.model, "Fast?[2J?SSD?");
	assert_string_equal(space.serial, "A?B??");
}
