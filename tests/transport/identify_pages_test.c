/* SPDX-License-Identifier: BSD-3-Clause */
/* identify_pages_test.c: what our controllers say of themselves, byte by byte as NVMe Base 2.0 has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/nvme_fabrics.h>

#include "transport/identify_pages.h"
#include "transport/medium/medium.h"

static uint8_t page[NVME_IDENTIFY_BYTES];

static uint64_t word(const uint8_t *from, unsigned at, unsigned bytes)
{
	uint64_t value = 0;

	memcpy(&value, from + at, bytes);
	return value;
}

static void begin(void)
{
	memset(page, 0, sizeof(page));
}

/* As long as it is, and no further; shorter ones end in blanks. */
static void a_text_fills_its_field(void **state)
{
	char field[9];

	(void)state;
	memset(field, '#', sizeof(field));
	weir_page_text(field, 8, "ab");
	assert_memory_equal(field, "ab      #", sizeof(field));
	weir_page_text(field, 8, "0123456789");
	assert_memory_equal(field, "01234567#", sizeof(field));
	weir_page_text(field, 8, "");
	assert_memory_equal(field, "        #", sizeof(field));
}

/* Beyond 2^32 blocks, of whatever length. */
static void the_size_of_a_namespace(void **state)
{
	static const uint8_t uuid[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
	const uint64_t blocks = ((uint64_t)9 << 32) + 7;

	(void)state;
	for (unsigned log2 = 9; log2 <= 12; log2++)
		for (unsigned flag = 0; flag < 2; flag++) {
			const struct weir_medium medium = { .bytes = blocks << log2,
							    .block_bytes = 1u << log2,
							    .read_only = flag };

			begin();
			weir_page_namespace(&medium, uuid, !flag, page);
			for (unsigned i = 0; i < 3; i++) /* NSZE, NCAP, NUSE */
				assert_true(word(page, 8 * i, 8) == blocks);
			assert_int_equal(page[30], !flag);
			assert_int_equal(page[99], flag);
			assert_int_equal(page[130], log2);
			assert_memory_equal(page + 104, uuid, sizeof(uuid));
		}
}

static void make_fabrics(uint32_t namespaces)
{
	const struct weir_page_fabrics fabrics = { .nqn = "nqn.2026-11.test:it",
						   .serial = "serial",
						   .cntlid = 0x1234,
						   .namespaces = namespaces,
						   .queue_entries = 128,
						   .capsule_bytes = 64 + 8192,
						   .ana_seconds = 10 };

	begin();
	weir_page_controller(1 << 20, page);
	weir_page_fabrics(&fabrics, page);
}

/* Flush for all namespaces at once is for whoever has one. */
static void a_controller_on_a_network(void **state)
{
	(void)state;
	for (uint32_t namespaces = 1; namespaces <= 3; namespaces++) {
		make_fabrics(namespaces);
		assert_memory_equal(page + 4, "serial              weir target ", 32);
		assert_int_equal(page[76], 1 << 1 | 1 << 3);
		assert_int_equal(page[77], 8);
		assert_int_equal(word(page, NVME_ID_CTRL_CNTLID, 2), 0x1234);
		assert_int_equal(word(page, 92, 4), 1 << 8 | 1 << 11);
		assert_int_equal(page[111], 1);
		assert_int_equal(word(page, NVME_ID_CTRL_KAS, 2), 10);
		assert_int_equal(page[NVME_ID_CTRL_ANATT], 10);
		assert_int_equal(word(page, NVME_ID_CTRL_MAXCMD, 2), 128);
		assert_int_equal(word(page, 516, 4), WEIR_PAGE_NAMESPACES);
		assert_int_equal(word(page, 520, 2), 0x1 | 0x4 | 0x8);
		assert_int_equal(page[525], namespaces > 1 ? 0x5 : 0x7);
		assert_int_equal(word(page, NVME_ID_CTRL_SGLS, 4), 1 | 1 << 20);
		assert_int_equal(word(page, 540, 4), WEIR_PAGE_NAMESPACES);
		assert_string_equal((const char *)page + NVME_ID_CTRL_SUBNQN, "nqn.2026-11.test:it");
		assert_int_equal(word(page, NVME_ID_CTRL_IOCCSZ, 4), (64 + 8192) / 16);
		assert_int_equal(word(page, NVME_ID_CTRL_IORCSZ, 4), 1);
		assert_int_equal(word(page, NVME_ID_CTRL_ICDOFF, 2), 0);
	}
}

/* It has no namespaces, no I/O queues, and says so. */
static void a_discovery_controller(void **state)
{
	(void)state;
	make_fabrics(0);
	assert_int_equal(page[111], 2);
	assert_int_equal(page[76] | page[512] | page[513] | page[525] | page[NVME_ID_CTRL_ANATT], 0);
	assert_int_equal(word(page, 92, 4), 1u << 31);
	assert_int_equal(word(page, 516, 4) | word(page, 520, 2) | word(page, 540, 4), 0);
	assert_int_equal(word(page, NVME_ID_CTRL_IOCCSZ, 8), 0);
	assert_int_equal(word(page, NVME_ID_CTRL_KAS, 2), 10);
	assert_string_equal((const char *)page + NVME_ID_CTRL_SUBNQN, "nqn.2026-11.test:it");
}

/* A descriptor of @bytes behind those before it. */
static unsigned add(unsigned at, uint8_t type, uint8_t bytes, uint8_t value)
{
	page[at] = type;
	page[at + 1] = bytes;
	for (unsigned i = 0; i < bytes && at + 4 + i < sizeof(page); i++)
		page[at + 4 + i] = value;
	return at + 4 + bytes;
}

/* By its type and its length, up to the list's end: a length of 0, or that of the page. */
static void a_descriptor_is_found_within_its_list(void **state)
{
	enum { UUID = WEIR_PAGE_UUID, BYTES = WEIR_PAGE_UUID_BYTES };
	unsigned end;

	(void)state;
	begin();
	assert_null(weir_page_descriptor(page, UUID, BYTES));
	end = add(add(0, 1, 8, 0x11), UUID, 8, 0x22);
	assert_null(weir_page_descriptor(page, UUID, BYTES));
	assert_ptr_equal(weir_page_descriptor(page, 1, 8), page + 4);
	end = add(end, UUID, BYTES, 0x33);
	assert_ptr_equal(weir_page_descriptor(page, UUID, BYTES), page + end - BYTES);
	(void)add(end + 4, 2, BYTES, 0x44); /* behind the end */
	assert_null(weir_page_descriptor(page, 2, BYTES));
	begin();
	for (end = 0; end + 4 + BYTES <= sizeof(page); end = add(end, 1, BYTES, 0x55))
		;
	assert_null(weir_page_descriptor(page, UUID, BYTES));
	page[end - 4 - BYTES] = UUID;
	assert_ptr_equal(weir_page_descriptor(page, UUID, BYTES), page + end - BYTES);
	begin();
	for (end = 0; end < 4080; end = add(end, 1, 12, 0x55))
		;
	assert_int_equal(end, 4080);
	(void)add(end, UUID, BYTES, 0x66); /* four bytes of it are not there */
	assert_null(weir_page_descriptor(page, UUID, BYTES));
	begin();
	weir_page_descriptors((const uint8_t *)"0123456789abcdef", page);
	assert_memory_equal(weir_page_descriptor(page, UUID, BYTES), "0123456789abcdef", BYTES);
}

/* In thousands of 512 bytes, rounded up. */
static void what_was_moved(void **state)
{
	static const uint64_t rows[][2] = { { 0, 0 },
					    { 1, 1 },
					    { 512000, 1 },
					    { 512001, 2 },
					    { 5120000000, 10000 },
					    { 512000ull << 33, 1ull << 33 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct weir_virtual_stats reads = { .bytes_read = rows[i][0] },
						writes = { .bytes_written = rows[i][0] };

		weir_page_health(&reads, page);
		assert_true(word(page, 32, 8) == rows[i][1]);
		assert_true(word(page, 48, 8) == 0);
		weir_page_health(&writes, page);
		assert_true(word(page, 32, 8) == 0);
		assert_true(word(page, 48, 8) == rows[i][1]);
		assert_int_equal(page[0], 0);   /* no critical warning */
		assert_true(page[3] > page[4]); /* available spare, and its threshold */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_fills_its_field),
		cmocka_unit_test(the_size_of_a_namespace),
		cmocka_unit_test(a_controller_on_a_network),
		cmocka_unit_test(a_discovery_controller),
		cmocka_unit_test(a_descriptor_is_found_within_its_list),
		cmocka_unit_test(what_was_moved),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("identify_pages", tests, NULL, NULL);
}
