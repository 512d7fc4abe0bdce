/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_pdu.h: protocol data units of NVMe/TCP, as bytes: layouts, building, strict checking.
 *
 * Owns: NVMe/TCP Transport 1.0, section 3.6, for both ends. Never touches a socket or a queue; holds no state
 * but what struct weir_tcp_rules says was agreed. Words are little-endian, as in nvme.h.
 */
#ifndef WEIR_FABRICS_TCP_PDU_H
#define WEIR_FABRICS_TCP_PDU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/nvme.h>
#include <weir/nvme_fabrics.h>

enum {
	NVME_TCP_PORT = 4420,
	NVME_TCP_DISCOVERY_PORT = 8009,
	NVME_TCP_DIGEST_BYTES = 4,
	NVME_TCP_LONGEST_HEADER = 128
};

/* PDU types */
enum {
	NVME_TCP_ICREQ = 0x00,
	NVME_TCP_ICRESP = 0x01,
	NVME_TCP_H2C_TERM_REQ = 0x02,
	NVME_TCP_C2H_TERM_REQ = 0x03,
	NVME_TCP_CAPSULE_CMD = 0x04,
	NVME_TCP_CAPSULE_RESP = 0x05,
	NVME_TCP_H2C_DATA = 0x06,
	NVME_TCP_C2H_DATA = 0x07,
	NVME_TCP_R2T = 0x09,
};

/* FLAGS */
enum {
	NVME_TCP_HDGSTF = 1 << 0,
	NVME_TCP_DDGSTF = 1 << 1,
	NVME_TCP_LAST_PDU = 1 << 2, /* H2CData, C2HData */
	NVME_TCP_SUCCESS = 1 << 3,  /* C2HData: no response capsule follows */
};

/* DGST of ICReq and ICResp */
enum { NVME_TCP_HDGST_ENABLE = 1 << 0, NVME_TCP_DDGST_ENABLE = 1 << 1 };

/* FES of the two TermReq */
enum {
	NVME_TCP_FES_INVALID_HEADER = 1,
	NVME_TCP_FES_SEQUENCE = 2,
	NVME_TCP_FES_HEADER_DIGEST = 3,
	NVME_TCP_FES_OUT_OF_RANGE = 4,
	NVME_TCP_FES_LIMIT = 5, /* C2H: data transfer limit; H2C: R2T limit */
	NVME_TCP_FES_UNSUPPORTED = 6,
};

/** struct nvme_tcp_common - common header; @hlen: without digests; @pdo: data from the start; @plen: all of
 * it */
struct nvme_tcp_common {
	u8 type;
	u8 flags;
	u8 hlen;
	u8 pdo;
	u32 plen;
};

/** struct nvme_tcp_icreq - Initialize Connection Request; @maxr2t is zero based */
struct nvme_tcp_icreq {
	struct nvme_tcp_common common;
	u16 pfv;
	u8 hpda;
	u8 dgst;
	u32 maxr2t;
	u8 reserved[112];
};

/** struct nvme_tcp_icresp - Initialize Connection Response */
struct nvme_tcp_icresp {
	struct nvme_tcp_common common;
	u16 pfv;
	u8 cpda;
	u8 dgst;
	u32 maxh2cdata;
	u8 reserved[112];
};

/** struct nvme_tcp_term_req - either TermReq; up to 128 bytes of the header that was wrong follow */
struct nvme_tcp_term_req {
	struct nvme_tcp_common common;
	u16 fes;
	u16 fei_low;
	u16 fei_high;
	u8 reserved[10];
};

/** struct nvme_tcp_cmd - Command Capsule; in-capsule data may follow */
struct nvme_tcp_cmd {
	struct nvme_tcp_common common;
	u8 sqe[NVME_CAPSULE_COMMAND_BYTES];
};

/** struct nvme_tcp_resp - Response Capsule */
struct nvme_tcp_resp {
	struct nvme_tcp_common common;
	u8 cqe[NVME_CAPSULE_RESPONSE_BYTES];
};

/** struct nvme_tcp_data - H2CData and C2HData; @ttag: H2CData's; data follows */
struct nvme_tcp_data {
	struct nvme_tcp_common common;
	u16 cccid;
	u16 ttag;
	u32 datao;
	u32 datal;
	u8 reserved[4];
};

/** struct nvme_tcp_r2t - Ready to Transfer */
struct nvme_tcp_r2t {
	struct nvme_tcp_common common;
	u16 cccid;
	u16 ttag;
	u32 r2to;
	u32 r2tl;
	u8 reserved[4];
};

WEIR_ASSERT_SIZE(struct nvme_tcp_common, 8);
WEIR_ASSERT_SIZE(struct nvme_tcp_icreq, 128);
WEIR_ASSERT_SIZE(struct nvme_tcp_icresp, 128);
WEIR_ASSERT_SIZE(struct nvme_tcp_term_req, 24);
WEIR_ASSERT_SIZE(struct nvme_tcp_cmd, 72);
WEIR_ASSERT_SIZE(struct nvme_tcp_resp, 24);
WEIR_ASSERT_SIZE(struct nvme_tcp_data, 24);
WEIR_ASSERT_SIZE(struct nvme_tcp_r2t, 24);
WEIR_ASSERT_OFFSET(struct nvme_tcp_icreq, maxr2t, 12);
WEIR_ASSERT_OFFSET(struct nvme_tcp_term_req, fei_low, 10);
WEIR_ASSERT_OFFSET(struct nvme_tcp_data, datal, 16);
WEIR_ASSERT_OFFSET(struct nvme_tcp_r2t, r2tl, 16);

/** union nvme_tcp_header - any PDU's header, with room for its digest */
union nvme_tcp_header {
	struct nvme_tcp_common common;
	struct nvme_tcp_icreq icreq;
	struct nvme_tcp_icresp icresp;
	struct nvme_tcp_term_req term_req;
	struct nvme_tcp_cmd cmd;
	struct nvme_tcp_resp resp;
	struct nvme_tcp_data data;
	struct nvme_tcp_r2t r2t;
	u8 bytes[NVME_TCP_LONGEST_HEADER + NVME_TCP_DIGEST_BYTES];
};

/**
 * struct weir_tcp_rules - what the two ends agreed
 * @header_digest: HDGST of both ICReq and ICResp
 * @data_digest: DDGST likewise
 * @alignment: of data from the start of a PDU, in bytes, as the end that receives it asked (HPDA or CPDA,
 * plus one, times 4); 0 is 4
 * @most_data: data bytes that a PDU may carry
 *
 * Zeroed but for @most_data before ICResp.
 */
struct weir_tcp_rules {
	bool header_digest;
	bool data_digest;
	uint32_t alignment;
	uint32_t most_data;
};

/**
 * struct weir_tcp_layout - how a PDU lies
 * @type: NVME_TCP_...
 * @header_bytes: header, without its digest
 * @header_digest: whether that follows
 * @pad_bytes: from there to the data
 * @data_bytes: payload
 * @data_digest: whether four bytes follow it
 */
struct weir_tcp_layout {
	uint8_t type;
	uint32_t header_bytes;
	bool header_digest;
	uint32_t pad_bytes;
	uint32_t data_bytes;
	bool data_digest;
};

/**
 * struct weir_tcp_error - what is wrong with a PDU, as a TermReq says it
 * @fes: NVME_TCP_FES_...
 * @fei: for NVME_TCP_FES_INVALID_HEADER and NVME_TCP_FES_UNSUPPORTED the offset of the field
 */
struct weir_tcp_error {
	uint16_t fes;
	uint32_t fei;
};

/**
 * weir_tcp_check() - a PDU's common header, before more of it is received
 * @common: its first 8 bytes
 * @to_host: it comes from a controller
 * @rules: of the end that receives
 * @layout: out
 * @error: out, where it is refused
 *
 * After true: @layout has header_bytes of the type's own size, at most NVME_TCP_LONGEST_HEADER; at most
 * rules->most_data bytes of data (of a TermReq: NVME_TCP_LONGEST_HEADER); and its parts add up to PLEN.
 * NVMe/TCP 1.0, sections 3.6.1 and 3.6.2. Any thread.
 */
bool weir_tcp_check(const struct nvme_tcp_common *common, bool to_host, const struct weir_tcp_rules *rules,
		    struct weir_tcp_layout *layout, struct weir_tcp_error *error);

/**
 * weir_tcp_check_header() - the whole header, after weir_tcp_check()
 * @header: layout->header_bytes, its digest behind it where there is one
 *
 * Verifies the digest; that a data PDU's DATAL is what it carries; PFV, HPDA or CPDA, DGST and MAXH2CDATA of
 * ICReq and ICResp; that an R2T asks for bytes; that SUCCESS comes with LAST_PDU. What it means in a queue is
 * the caller's to check.
 */
bool weir_tcp_check_header(const union nvme_tcp_header *header, const struct weir_tcp_layout *layout,
			   struct weir_tcp_error *error);

/**
 * weir_tcp_build() - complete a header whose own fields are filled in
 * @header: everything behind the common header; of that, flags LAST_PDU and SUCCESS
 * @type: NVME_TCP_...
 * @data_bytes: payload that will follow
 * @rules: of the end that will receive
 *
 * Fills in the common header, the header's digest and the padding (zeros).
 *
 * Return: bytes of @header to send before the data. Behind the data its digest follows where
 * rules->data_digest.
 */
size_t weir_tcp_build(union nvme_tcp_header *header, uint8_t type, uint32_t data_bytes,
		      const struct weir_tcp_rules *rules);

/** weir_tcp_build_term() - a TermReq about @bad, which is @bad_bytes of a header; bytes to send; @to must
 * have room for 152 */
size_t weir_tcp_build_term(void *to, bool to_host, const struct weir_tcp_error *error, const void *bad,
			   size_t bad_bytes);

/** weir_tcp_header_bytes() - of the type's header; 0: there is no such type */
uint32_t weir_tcp_header_bytes(uint8_t type);

#endif
