/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvme_fabrics.h: what the NVMe specification fixes about controllers reached over a network.
 *
 * Owns: fabrics commands, their data and responses, SGL descriptors, the discovery log page and status codes
 * of NVM Express Base 2.0, sections 3.1, 4.1.2, 5.16.1.23 and 6, in their names. What a transport puts around
 * them is the transport's. Words are little-endian, as in nvme.h.
 */
#ifndef WEIR_NVME_FABRICS_H
#define WEIR_NVME_FABRICS_H

#include <weir/types.h>

enum {
	NVME_OPCODE_FABRICS = 0x7f,
	NVME_ADMIN_GET_LOG_PAGE = 0x02,
	NVME_ADMIN_KEEP_ALIVE = 0x18,
	NVME_FEATURE_KEEP_ALIVE_TIMER = 0x0f,
	NVME_LOG_ANA = 0x0c,
	NVME_LOG_DISCOVERY = 0x70,
	NVME_CAPSULE_COMMAND_BYTES = 64,
	NVME_CAPSULE_RESPONSE_BYTES = 16,
	NVME_NQN_BYTES = 256,   /* of a field, terminator and padding included */
	NVME_NQN_LONGEST = 223, /* characters */
	NVME_CNTLID_DYNAMIC = 0xffff,
};

#define NVME_DISCOVERY_NQN   "nqn.2014-08.org.nvmexpress.discovery"
#define NVME_NQN_UUID_PREFIX "nqn.2014-08.org.nvmexpress:uuid:"
#define NVME_PSDT_SGL        0x4000u /* cdw0: data is described by SGL1, metadata by a contiguous buffer */

/* Fabrics command types, Base 2.0 figure 379. */
enum {
	NVME_FCTYPE_PROPERTY_SET = 0x00,
	NVME_FCTYPE_CONNECT = 0x01,
	NVME_FCTYPE_PROPERTY_GET = 0x04,
	NVME_FCTYPE_AUTHENTICATION_SEND = 0x05,
	NVME_FCTYPE_AUTHENTICATION_RECEIVE = 0x06,
	NVME_FCTYPE_DISCONNECT = 0x08,
};

/* Properties, by offset, Base 2.0 section 3.1.4; those that nvme.h has as registers have the same offsets. */
enum {
	NVME_PROPERTY_CAP = 0x00,
	NVME_PROPERTY_VS = 0x08,
	NVME_PROPERTY_CC = 0x14,
	NVME_PROPERTY_CSTS = 0x1c,
	NVME_PROPERTY_NSSR = 0x20,
	NVME_PROPERTY_CRTO = 0x68,
	NVME_PROPERTY_4_BYTES = 0, /* ATTRIB */
	NVME_PROPERTY_8_BYTES = 1,
};

/* SGL descriptor type (7:4) and subtype (3:0), Base 2.0 section 4.1.2. */
enum {
	NVME_SGL_DATA_BLOCK_OFFSET = 0x01, /* in the capsule, @address bytes behind ICDOFF */
	NVME_SGL_KEYED = 0x40,
	NVME_SGL_KEYED_INVALIDATE = 0x4f,
	NVME_SGL_TRANSPORT_DATA_BLOCK = 0x5a, /* NVMe/TCP: data PDUs carry it */
};

/** struct nvme_sgl - an SGL descriptor; of a keyed one, @bytes has 24 bits and @key follows */
struct nvme_sgl {
	u64 address;
	u32 bytes;
	u8 reserved[3];
	u8 type;
};

/** struct nvme_sgl_keyed - a Keyed SGL Data Block descriptor */
struct nvme_sgl_keyed {
	u64 address;
	u8 bytes[3];
	u8 key[4];
	u8 type;
};

WEIR_ASSERT_SIZE(struct nvme_sgl, 16);
WEIR_ASSERT_SIZE(struct nvme_sgl_keyed, 16);

/** struct nvme_fabrics_connect - Connect command, Base 2.0 figure 380; @sqsize is zero based; @kato is in ms
 */
struct nvme_fabrics_connect {
	u8 opcode;
	u8 psdt;
	u16 cid;
	u8 fctype;
	u8 reserved1[19];
	struct nvme_sgl sgl1;
	u16 recfmt;
	u16 qid;
	u16 sqsize;
	u8 cattr;
	u8 reserved2;
	u32 kato;
	u8 reserved3[12];
};

enum { NVME_CATTR_SQ_FLOW_DISABLE = 1 << 2 };

WEIR_ASSERT_SIZE(struct nvme_fabrics_connect, 64);
WEIR_ASSERT_OFFSET(struct nvme_fabrics_connect, sgl1, 24);
WEIR_ASSERT_OFFSET(struct nvme_fabrics_connect, sqsize, 44);
WEIR_ASSERT_OFFSET(struct nvme_fabrics_connect, kato, 48);

/** struct nvme_fabrics_connect_data - Connect's data, Base 2.0 figure 381 */
struct nvme_fabrics_connect_data {
	u8 hostid[16];
	u16 cntlid;
	u8 reserved1[238];
	char subnqn[NVME_NQN_BYTES];
	char hostnqn[NVME_NQN_BYTES];
	u8 reserved2[256];
};

WEIR_ASSERT_SIZE(struct nvme_fabrics_connect_data, 1024);
WEIR_ASSERT_OFFSET(struct nvme_fabrics_connect_data, subnqn, 256);
WEIR_ASSERT_OFFSET(struct nvme_fabrics_connect_data, hostnqn, 512);

/* Connect's response: dword 0. CNTLID and AUTHREQ after success, IPO and IATTR after Connect Invalid
 * Parameters. */
#define NVME_CONNECT_CNTLID(dw0)  ((dw0)&0xffffu)
#define NVME_CONNECT_AUTHREQ(dw0) ((dw0) >> 16)
#define NVME_CONNECT_ATR          (1u << 17) /* of AUTHREQ: authentication is required */
#define NVME_CONNECT_ASCR         (1u << 18) /* of AUTHREQ: with a secure channel made of it */
#define NVME_CONNECT_IPO(dw0)     ((dw0)&0xffffu)
#define NVME_CONNECT_IATTR_DATA   (1u << 16) /* the offset is one into the data */

/** struct nvme_fabrics_property - Property Get and Property Set, Base 2.0 figures 386 and 388 */
struct nvme_fabrics_property {
	u8 opcode;
	u8 psdt;
	u16 cid;
	u8 fctype;
	u8 reserved1[35];
	u8 attrib;
	u8 reserved2[3];
	u32 offset;
	u64 value;
	u8 reserved3[8];
};

WEIR_ASSERT_SIZE(struct nvme_fabrics_property, 64);
WEIR_ASSERT_OFFSET(struct nvme_fabrics_property, attrib, 40);
WEIR_ASSERT_OFFSET(struct nvme_fabrics_property, value, 48);

/** struct nvme_fabrics_authentication - Authentication Send and Receive, Base 2.0 figures 375 and 377 */
struct nvme_fabrics_authentication {
	u8 opcode;
	u8 psdt;
	u16 cid;
	u8 fctype;
	u8 reserved1[19];
	struct nvme_sgl sgl1;
	u8 reserved2;
	u8 spsp0;
	u8 spsp1;
	u8 secp;
	u32 length; /* TL or AL */
	u8 reserved3[16];
};

WEIR_ASSERT_SIZE(struct nvme_fabrics_authentication, 64);
WEIR_ASSERT_OFFSET(struct nvme_fabrics_authentication, length, 44);

/* DH-HMAC-CHAP, Base 2.0 section 8.13.5: what Authentication Send and Receive carry. */
enum {
	NVME_AUTH_SECP = 0xe9, /* security protocol: NVMe; SPSP0 and SPSP1 are 1 */
	NVME_AUTH_COMMON = 0,  /* AUTH_TYPE */
	NVME_AUTH_DHCHAP = 1,
	NVME_AUTH_NEGOTIATE = 0x00, /* AUTH_ID, common */
	NVME_AUTH_FAILURE2 = 0xf0,
	NVME_AUTH_FAILURE1 = 0xf1,
	NVME_AUTH_CHALLENGE = 0x01, /* AUTH_ID, DH-HMAC-CHAP */
	NVME_AUTH_REPLY = 0x02,
	NVME_AUTH_SUCCESS1 = 0x03,
	NVME_AUTH_SUCCESS2 = 0x04,
	NVME_AUTH_PROTOCOL_DHCHAP = 0x01,
	NVME_AUTH_SHA256 = 1,
	NVME_AUTH_SHA384 = 2,
	NVME_AUTH_SHA512 = 3,
	NVME_AUTH_HASH_MOST = 64, /* bytes of the longest */
	NVME_AUTH_DH_NULL = 0,
	NVME_AUTH_DH_2048 = 1,
	NVME_AUTH_DH_8192 = 5,
	NVME_AUTH_DH_MOST = 1024, /* bytes of the longest value */
	NVME_AUTH_FAILED = 0x01,  /* reason code; explanations: */
	NVME_AUTH_EXPLAIN_FAILED = 0x01,
	NVME_AUTH_EXPLAIN_PROTOCOL = 0x02,
	NVME_AUTH_EXPLAIN_CONCATENATION = 0x03,
	NVME_AUTH_EXPLAIN_HASH = 0x04,
	NVME_AUTH_EXPLAIN_DH = 0x05,
	NVME_AUTH_EXPLAIN_PAYLOAD = 0x06,
	NVME_AUTH_EXPLAIN_MESSAGE = 0x07,
};

/** struct nvme_auth_negotiate - with its one protocol descriptor, @authid to @lists; @lists: hashes, DH
 * groups from 30 on */
struct nvme_auth_negotiate {
	u8 auth_type;
	u8 auth_id;
	u8 reserved1[2];
	u16 t_id;
	u8 sc_c;
	u8 napd;
	u8 authid;
	u8 reserved2;
	u8 halen;
	u8 dhlen;
	u8 lists[60];
};

/** struct nvme_auth_challenge - @hl bytes of the challenge, then @dhvlen of the DH value, follow */
struct nvme_auth_challenge {
	u8 auth_type;
	u8 auth_id;
	u8 reserved1[2];
	u16 t_id;
	u8 hl;
	u8 reserved2;
	u8 hashid;
	u8 dhgid;
	u16 dhvlen;
	u32 seqnum;
};

/** struct nvme_auth_reply - @hl bytes of the response, as many of a challenge, @dhvlen of the DH value follow
 */
struct nvme_auth_reply {
	u8 auth_type;
	u8 auth_id;
	u8 reserved1[2];
	u16 t_id;
	u8 hl;
	u8 reserved2;
	u8 cvalid;
	u8 reserved3;
	u16 dhvlen;
	u32 seqnum;
};

/** struct nvme_auth_success1 - if @rvalid, @hl bytes of the controller's response follow */
struct nvme_auth_success1 {
	u8 auth_type;
	u8 auth_id;
	u8 reserved1[2];
	u16 t_id;
	u8 hl;
	u8 reserved2;
	u8 rvalid;
	u8 reserved3[7];
};

/** struct nvme_auth_success2 - the end */
struct nvme_auth_success2 {
	u8 auth_type;
	u8 auth_id;
	u8 reserved1[2];
	u16 t_id;
	u8 reserved2[10];
};

/** struct nvme_auth_failure - why it ends, from either side */
struct nvme_auth_failure {
	u8 auth_type;
	u8 auth_id;
	u8 reserved1[2];
	u16 t_id;
	u8 reason;
	u8 explanation;
};

WEIR_ASSERT_SIZE(struct nvme_auth_negotiate, 72);
WEIR_ASSERT_SIZE(struct nvme_auth_challenge, 16);
WEIR_ASSERT_SIZE(struct nvme_auth_reply, 16);
WEIR_ASSERT_SIZE(struct nvme_auth_success1, 16);
WEIR_ASSERT_SIZE(struct nvme_auth_success2, 16);
WEIR_ASSERT_SIZE(struct nvme_auth_failure, 8);

/** struct nvme_discovery_entry - a Discovery Log Page Entry, Base 2.0 figure 265 */
struct nvme_discovery_entry {
	u8 trtype;
	u8 adrfam;
	u8 subtype;
	u8 treq;
	u16 portid;
	u16 cntlid;
	u16 asqsz;
	u16 eflags;
	u8 reserved1[20];
	char trsvcid[32];
	u8 reserved2[192];
	char subnqn[NVME_NQN_BYTES];
	char traddr[256];
	u8 tsas[256]; /* NVMe/TCP: byte 0 is SECTYPE */
};

WEIR_ASSERT_SIZE(struct nvme_discovery_entry, 1024);
WEIR_ASSERT_OFFSET(struct nvme_discovery_entry, trsvcid, 32);
WEIR_ASSERT_OFFSET(struct nvme_discovery_entry, subnqn, 256);
WEIR_ASSERT_OFFSET(struct nvme_discovery_entry, traddr, 512);

/** struct nvme_discovery_log - Discovery Log Page, its entries behind it, Base 2.0 figure 264 */
struct nvme_discovery_log {
	u64 genctr;
	u64 numrec;
	u16 recfmt;
	u8 reserved[1006];
};

WEIR_ASSERT_SIZE(struct nvme_discovery_log, 1024);

enum {
	NVME_TRTYPE_RDMA = 1,
	NVME_TRTYPE_FC = 2,
	NVME_TRTYPE_TCP = 3,
	NVME_ADRFAM_IPV4 = 1,
	NVME_ADRFAM_IPV6 = 2,
	NVME_SUBTYPE_REFERRAL = 1,
	NVME_SUBTYPE_NVM = 2,
	NVME_SUBTYPE_DISCOVERY = 3, /* the discovery subsystem that was asked */
	NVME_TREQ_SECURE_UNSPECIFIED = 0,
	NVME_TREQ_SECURE_REQUIRED = 1,
	NVME_TREQ_SECURE_NOT_REQUIRED = 2,
	NVME_SECTYPE_NONE = 0,
	NVME_SECTYPE_TLS12 = 1,
	NVME_SECTYPE_TLS13 = 2,
	NVME_ASQSZ_LEAST = 32,
};

/** struct nvme_ana_group - ANA Group Descriptor, its namespaces behind it, NVM Express Base 2.0 figure 225 */
struct nvme_ana_group {
	u32 group;
	u32 nsids;
	u64 change;
	u8 state; /* 3:0 */
	u8 reserved[15];
};

/** struct nvme_ana_log - Asymmetric Namespace Access log page, its groups behind it */
struct nvme_ana_log {
	u64 change;
	u16 groups;
	u8 reserved[6];
};

WEIR_ASSERT_SIZE(struct nvme_ana_group, 32);
WEIR_ASSERT_SIZE(struct nvme_ana_log, 16);

enum {
	NVME_ANA_OPTIMIZED = 0x1,
	NVME_ANA_NON_OPTIMIZED = 0x2,
	NVME_ANA_INACCESSIBLE = 0x3,
	NVME_ANA_PERSISTENT_LOSS = 0x4,
	NVME_ANA_CHANGE = 0xf,
	NVME_CMIC_ANA = 1 << 3, /* Identify Controller, byte 76 */
};

/* Identify Controller, Base 2.0 figure 275: fields of fabrics controllers, by byte. */
enum {
	NVME_ID_CTRL_CMIC = 76,
	NVME_ID_CTRL_CNTLID = 78,
	NVME_ID_CTRL_RTD3E = 88, /* RTD3 Entry Latency, in us: what a shutdown takes as a rule */
	NVME_ID_CTRL_CNTRLTYPE = 111,
	NVME_ID_CTRL_KAS = 320, /* Keep Alive granularity, in 100 ms; 0: no Keep Alive */
	NVME_ID_CTRL_ANATT = 342,
	NVME_ID_CTRL_ANACAP = 343,
	NVME_ID_CTRL_ANAGRPMAX = 344,
	NVME_ID_CTRL_NANAGRPID = 348,
	NVME_ID_CTRL_MAXCMD = 514,
	NVME_ID_CTRL_SGLS = 536,
	NVME_ID_CTRL_SUBNQN = 768,
	NVME_ID_CTRL_IOCCSZ = 1792, /* I/O command capsule, in 16 bytes */
	NVME_ID_CTRL_IORCSZ = 1796, /* I/O response capsule, in 16 bytes */
	NVME_ID_CTRL_ICDOFF = 1800, /* in-capsule data behind the command, in 16 bytes */
	NVME_ID_CTRL_FCATT = 1802,
	NVME_ID_CTRL_MSDBD = 1803,
	NVME_ID_CTRL_OFCS = 1804, /* bit 0: Disconnect */
	NVME_CNTRLTYPE_IO = 1,
	NVME_CNTRLTYPE_DISCOVERY = 2,
	NVME_SGLS_SUPPORTED = 1 << 0,
	NVME_SGLS_KEYED = 1 << 2,
	NVME_SGLS_OFFSET = 1 << 20,
};

/* Statuses of fabrics commands (SCT 1, from 80h on) and of Keep Alive, as nvme.h spells statuses. */
enum {
	NVME_STATUS_KEEP_ALIVE_EXPIRED = 0x019,
	NVME_STATUS_KEEP_ALIVE_INVALID = 0x01a,
	NVME_STATUS_SGL_INVALID_COUNT = 0x00e,
	NVME_STATUS_SGL_INVALID_LENGTH = 0x00f,
	NVME_STATUS_SGL_INVALID_TYPE = 0x011,
	NVME_STATUS_SGL_INVALID_OFFSET = 0x016,
	NVME_STATUS_HOSTID_INCONSISTENT = 0x018,
	NVME_STATUS_CONNECT_INCOMPATIBLE_FORMAT = 0x180,
	NVME_STATUS_CONNECT_CONTROLLER_BUSY = 0x181,
	NVME_STATUS_CONNECT_INVALID_PARAMETERS = 0x182,
	NVME_STATUS_CONNECT_RESTART_DISCOVERY = 0x183,
	NVME_STATUS_CONNECT_INVALID_HOST = 0x184,
	NVME_STATUS_INVALID_QUEUE_TYPE = 0x185,
	NVME_STATUS_DISCOVER_RESTART = 0x190,
	NVME_STATUS_AUTHENTICATION_REQUIRED = 0x191,
	NVME_STATUS_PATH_PERSISTENT_LOSS = 0x301,
};

#endif
