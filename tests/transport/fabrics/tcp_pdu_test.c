/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_pdu_test.c: NVMe/TCP PDUs, built and checked, and each field wrong in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "transport/fabrics/tcp_pdu.h"

enum { MOST_DATA = 1 << 16 };

static const struct weir_tcp_rules plain = { .most_data = MOST_DATA };
static const struct weir_tcp_rules digests = { .header_digest = true,
					       .data_digest = true,
					       .most_data = MOST_DATA };

/* Both ends of RFC 3720, appendix B.4, and in two parts. */
static void checksums_are_crc32c(void **state)
{
	uint8_t bytes[32];

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(weir_crc32c(0, bytes, sizeof(bytes)), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(weir_crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(weir_crc32c(0, bytes, sizeof(bytes)), 0x46dd794e);
	assert_int_equal(weir_crc32c(weir_crc32c(0, bytes, 5), bytes + 5, sizeof(bytes) - 5), 0x46dd794e);
	assert_int_equal(weir_crc32c(0, bytes, 0), 0);
}

static bool to_host(uint8_t type)
{
	return type == NVME_TCP_ICRESP || type == NVME_TCP_C2H_TERM_REQ || type == NVME_TCP_CAPSULE_RESP ||
	       type == NVME_TCP_C2H_DATA || type == NVME_TCP_R2T;
}

/* A header of @type that is right, with @data_bytes. */
static size_t make(uint8_t type, uint32_t data_bytes, const struct weir_tcp_rules *rules,
		   union nvme_tcp_header *header)
{
	memset(header, 0, sizeof(*header));
	if (type == NVME_TCP_ICRESP)
		header->icresp.maxh2cdata = 4096;
	if (type == NVME_TCP_H2C_DATA || type == NVME_TCP_C2H_DATA)
		header->data.datal = data_bytes;
	if (type == NVME_TCP_R2T)
		header->r2t.r2tl = 512;
	return weir_tcp_build(header, type, data_bytes, rules);
}

static bool check(const union nvme_tcp_header *header, const struct weir_tcp_rules *rules,
		  struct weir_tcp_layout *layout, struct weir_tcp_error *error)
{
	return weir_tcp_check(&header->common, to_host(header->common.type), rules, layout, error) &&
	       weir_tcp_check_header(header, layout, error);
}

static void accept_built(uint8_t type, uint32_t data_bytes, const struct weir_tcp_rules *rules)
{
	union nvme_tcp_header header;
	size_t bytes = make(type, data_bytes, rules, &header);
	struct weir_tcp_layout layout;
	struct weir_tcp_error error = { 0, 0 };

	assert_true(check(&header, rules, &layout, &error));
	assert_int_equal(layout.type, type);
	assert_int_equal(layout.header_bytes, weir_tcp_header_bytes(type));
	assert_int_equal(layout.data_bytes, data_bytes);
	assert_int_equal(bytes, layout.header_bytes + (layout.header_digest ? 4 : 0) + layout.pad_bytes);
	assert_int_equal(header.common.plen, bytes + data_bytes + (layout.data_digest ? 4 : 0));
	assert_false(weir_tcp_check(&header.common, !to_host(type), rules, &layout, &error));
	assert_int_equal(error.fes, NVME_TCP_FES_INVALID_HEADER);
}

static void each_type_is_built_as_it_is_checked(void **state)
{
	static const uint8_t bare[] = { NVME_TCP_ICREQ, NVME_TCP_ICRESP, NVME_TCP_CAPSULE_CMD,
					NVME_TCP_CAPSULE_RESP, NVME_TCP_R2T };
	static const uint8_t loaded[] = { NVME_TCP_CAPSULE_CMD, NVME_TCP_H2C_DATA, NVME_TCP_C2H_DATA };
	const struct weir_tcp_rules *const rules[] = { &plain, &digests };

	(void)state;
	for (unsigned r = 0; r < 2; r++) {
		for (unsigned i = 0; i < sizeof(bare); i++)
			accept_built(bare[i], 0, rules[r]);
		for (unsigned i = 0; i < sizeof(loaded); i++)
			for (uint32_t align = 4; align <= 128; align += 4) {
				struct weir_tcp_rules aligned = *rules[r];

				aligned.alignment = align;
				accept_built(loaded[i], 512, &aligned);
				accept_built(loaded[i], MOST_DATA, &aligned);
			}
	}
}

static void limits_hold(void **state)
{
	union nvme_tcp_header header;
	struct weir_tcp_layout layout;
	struct weir_tcp_error error;

	(void)state;
	make(NVME_TCP_C2H_DATA, MOST_DATA + 1, &plain, &header);
	assert_false(check(&header, &plain, &layout, &error));
	assert_int_equal(error.fes, NVME_TCP_FES_LIMIT);
	make(NVME_TCP_C2H_DATA, 512, &plain, &header);
	header.data.datal = 511;
	assert_false(check(&header, &plain, &layout, &error));
	assert_int_equal(error.fei, offsetof(struct nvme_tcp_data, datal));
	header.data.datal = 512;
	header.data.datao = UINT32_MAX - 511;
	assert_false(check(&header, &plain, &layout, &error));
	assert_int_equal(error.fei, offsetof(struct nvme_tcp_data, datao));
	make(NVME_TCP_C2H_DATA, 0, &plain, &header);
	assert_false(check(&header, &plain, &layout, &error));
	make(NVME_TCP_R2T, 0, &plain, &header);
	header.r2t.r2tl = 0;
	assert_false(check(&header, &plain, &layout, &error));
}

/** struct wrong - a byte of a common header that must not be, and which error says so */
struct wrong {
	uint8_t type;
	uint8_t offset;
	uint8_t value;
	uint32_t data_bytes;
	uint32_t fei;
};

static void each_wrong_field_is_named(void **state)
{
	static const struct wrong wrongs[] = {
		{ NVME_TCP_CAPSULE_RESP, 0, 0x08, 0, 0 },
		{ NVME_TCP_CAPSULE_RESP, 0, 0xff, 0, 0 },
		{ NVME_TCP_CAPSULE_RESP, 1, NVME_TCP_HDGSTF, 0, 1 },
		{ NVME_TCP_CAPSULE_RESP, 1, NVME_TCP_LAST_PDU, 0, 1 },
		{ NVME_TCP_C2H_DATA, 1, NVME_TCP_DDGSTF, 512, 1 },
		{ NVME_TCP_C2H_DATA, 1, NVME_TCP_SUCCESS, 512, 1 },
		{ NVME_TCP_C2H_DATA, 1, 0x80, 512, 1 },
		{ NVME_TCP_CAPSULE_RESP, 2, 23, 0, 2 },
		{ NVME_TCP_CAPSULE_RESP, 2, 25, 0, 2 },
		{ NVME_TCP_C2H_DATA, 3, 0, 512, 3 },
		{ NVME_TCP_C2H_DATA, 3, 20, 512, 3 },
		{ NVME_TCP_C2H_DATA, 3, 25, 512, 3 },
		{ NVME_TCP_CAPSULE_RESP, 4, 23, 0, 4 },
		{ NVME_TCP_CAPSULE_RESP, 4, 25, 0, 4 },
		{ NVME_TCP_CAPSULE_RESP, 4, 0, 0, 4 },
		{ NVME_TCP_ICRESP, 4, 127, 0, 4 },
		{ NVME_TCP_ICRESP, 10, 32, 0, 10 },
		{ NVME_TCP_ICRESP, 11, 4, 0, 11 },
		{ NVME_TCP_ICRESP, 13, 0x0f, 0, 12 },
		{ NVME_TCP_ICREQ, 10, 32, 0, 10 },
		{ NVME_TCP_ICREQ, 11, 0x80, 0, 11 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const struct wrong *wrong = &wrongs[i];
		union nvme_tcp_header header;
		struct weir_tcp_layout layout;
		struct weir_tcp_error error = { 0, 0 };

		make(wrong->type, wrong->data_bytes, &plain, &header);
		header.bytes[wrong->offset] = wrong->value;
		assert_false(weir_tcp_check(&header.common, to_host(wrong->type), &plain, &layout, &error) &&
			     weir_tcp_check_header(&header, &layout, &error));
		assert_int_equal(error.fes, NVME_TCP_FES_INVALID_HEADER);
		assert_int_equal(error.fei, wrong->fei);
	}
}

static void digests_are_kept_to(void **state)
{
	union nvme_tcp_header header;
	struct weir_tcp_layout layout;
	struct weir_tcp_error error;

	(void)state;
	make(NVME_TCP_CAPSULE_RESP, 0, &plain, &header); /* without, where one was agreed */
	assert_false(check(&header, &digests, &layout, &error));
	for (unsigned i = 8; i < 28; i++) { /* each byte of the header and its digest */
		make(NVME_TCP_CAPSULE_RESP, 0, &digests, &header);
		header.bytes[i] ^= 1;
		assert_false(check(&header, &digests, &layout, &error));
		assert_int_equal(error.fes, NVME_TCP_FES_HEADER_DIGEST);
	}
	make(NVME_TCP_CAPSULE_RESP, 0, &digests, &header);
	memset(header.bytes + 24, 0, 4); /* none that was computed */
	assert_false(check(&header, &digests, &layout, &error));
	assert_int_equal(error.fes, NVME_TCP_FES_HEADER_DIGEST);
	make(NVME_TCP_C2H_DATA, 512, &digests, &header);
	header.common.flags &= (u8)~NVME_TCP_DDGSTF;
	header.common.plen -= 4;
	assert_false(check(&header, &digests, &layout, &error));
	assert_int_equal(error.fei, 1);
}

static void versions_are_refused(void **state)
{
	union nvme_tcp_header header;
	struct weir_tcp_layout layout;
	struct weir_tcp_error error;

	(void)state;
	make(NVME_TCP_ICRESP, 0, &plain, &header);
	header.icresp.pfv = 1;
	assert_false(check(&header, &plain, &layout, &error));
	assert_int_equal(error.fes, NVME_TCP_FES_UNSUPPORTED);
	make(NVME_TCP_ICREQ, 0, &plain, &header);
	header.icreq.pfv = 1;
	assert_false(check(&header, &plain, &layout, &error));
	assert_int_equal(error.fes, NVME_TCP_FES_UNSUPPORTED);
}

static void term_requests_carry_the_header(void **state)
{
	struct weir_tcp_error why = { .fes = NVME_TCP_FES_INVALID_HEADER, .fei = 0x12345678 }, error;
	unsigned char bad[200];
	struct weir_tcp_layout layout;
	union nvme_tcp_header header;
	unsigned char pdu[152];
	size_t bytes;

	(void)state;
	memset(bad, 7, sizeof(bad));
	bytes = weir_tcp_build_term(pdu, true, &why, bad, sizeof(bad));
	assert_int_equal(bytes, 152);
	memcpy(&header, pdu, sizeof(struct nvme_tcp_term_req));
	assert_true(check(&header, &digests, &layout, &error)); /* never with digests */
	assert_int_equal(layout.data_bytes, 128);
	assert_int_equal(header.term_req.fei_low | (uint32_t)header.term_req.fei_high << 16, 0x12345678);
	header.common.plen++;
	assert_false(check(&header, &plain, &layout, &error));
	assert_int_equal(weir_tcp_build_term(pdu, false, &why, NULL, 0), 24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksums_are_crc32c),
		cmocka_unit_test(each_type_is_built_as_it_is_checked),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(each_wrong_field_is_named),
		cmocka_unit_test(digests_are_kept_to),
		cmocka_unit_test(versions_are_refused),
		cmocka_unit_test(term_requests_carry_the_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
