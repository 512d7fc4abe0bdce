/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvme.h: what the NVMe specification fixes and lanes must know.
 *
 * Owns: queue entries, opcodes and status codes of NVM Express Base 2.0 and the
 * NVM Command Set 1.0, in their names. The large identify structures are the
 * host's business and come from libnvme.
 */
#ifndef WEIR_NVME_H
#define WEIR_NVME_H

#include <weir/types.h>

/**
 * struct nvme_sqe - submission queue entry, Base 2.0 section 3.3.3.1
 * @cdw0: opcode (7:0), fused (9:8), PSDT (15:14), command identifier (31:16)
 * @nsid: namespace identifier
 * @cdw2: command specific
 * @cdw3: command specific
 * @mptr: metadata pointer, unused here
 * @prp1: first PRP entry
 * @prp2: second PRP entry, or the bus address of a PRP list
 * @cdw10: command specific (Read/Write: SLBA low)
 * @cdw11: command specific (Read/Write: SLBA high)
 * @cdw12: command specific (Read/Write: NLB, zero based, in 15:0; FUA is bit 30)
 * @cdw13: command specific
 * @cdw14: command specific
 * @cdw15: command specific
 *
 * 64 bytes, aligned so that it can be written with four 16-byte stores.
 */
struct nvme_sqe {
	u32 cdw0;
	u32 nsid;
	u32 cdw2;
	u32 cdw3;
	u64 mptr;
	u64 prp1;
	u64 prp2;
	u32 cdw10;
	u32 cdw11;
	u32 cdw12;
	u32 cdw13;
	u32 cdw14;
	u32 cdw15;
} __attribute__((aligned(16)));

WEIR_ASSERT_SIZE(struct nvme_sqe, 64);
WEIR_ASSERT_OFFSET(struct nvme_sqe, prp1, 24);
WEIR_ASSERT_OFFSET(struct nvme_sqe, cdw10, 40);

/**
 * struct nvme_cqe - completion queue entry, Base 2.0 section 3.3.3.2
 * @dw0: command specific result
 * @dw1: command specific result
 * @dw2: SQ head pointer (15:0), SQ identifier (31:16)
 * @dw3: command identifier (15:0), phase tag (16), status field (31:17)
 *
 * dw3 is written last by a controller and read first by a lane; the rest may
 * only be read after the phase was seen (see core/queue/cq.h).
 */
struct nvme_cqe {
	u32 dw0;
	u32 dw1;
	u32 dw2;
	u32 dw3;
} __attribute__((aligned(16)));

WEIR_ASSERT_SIZE(struct nvme_cqe, 16);
WEIR_ASSERT_OFFSET(struct nvme_cqe, dw3, 12);

/* Sizes the specification fixes, or that weir fixes within it (CC.MPS = 0). */
enum {
	NVME_PAGE_BYTES = 4096,
	NVME_PAGE_LOG2 = 12,
	NVME_PRP_BYTES = 8,
	NVME_PRPS_PER_PAGE = NVME_PAGE_BYTES / NVME_PRP_BYTES,
	NVME_IDENTIFY_BYTES = 4096,
};

/* Admin opcodes, Base 2.0 figure 138. */
enum {
	NVME_ADMIN_DELETE_SQ = 0x00,
	NVME_ADMIN_CREATE_SQ = 0x01,
	NVME_ADMIN_DELETE_CQ = 0x04,
	NVME_ADMIN_CREATE_CQ = 0x05,
	NVME_ADMIN_IDENTIFY = 0x06,
	NVME_ADMIN_ABORT = 0x08,
	NVME_ADMIN_SET_FEATURES = 0x09,
	NVME_ADMIN_GET_FEATURES = 0x0a,
	NVME_ADMIN_ASYNC_EVENT = 0x0c,
	NVME_ADMIN_DOORBELL_BUFFER_CONFIG = 0x7c,
};

/* NVM command set opcodes, NVM Command Set 1.0 figure 11. */
enum {
	NVME_OPCODE_FLUSH = 0x00,
	NVME_OPCODE_WRITE = 0x01,
	NVME_OPCODE_READ = 0x02,
	NVME_OPCODE_COMPARE = 0x05,
	NVME_OPCODE_WRITE_ZEROES = 0x08,
	NVME_OPCODE_DSM = 0x09,
};

/* Which way an opcode's data goes, in its low bits. NVM Command Set 1.0, figure 11. */
enum {
	NVME_OPCODE_TO_CONTROLLER = 1,
	NVME_OPCODE_FROM_CONTROLLER = 2,
};

#define NVME_RW_FUA         (1u << 30)  /* cdw12: Force Unit Access */
#define NVME_DSM_DEALLOCATE 0x4u        /* cdw11: attribute deallocate */
#define NVME_NSID_BROADCAST 0xffffffffu /* broadcast namespace identifier */

/* Features, Base 2.0 figure 316. */
enum {
	NVME_FEATURE_VOLATILE_WRITE_CACHE = 0x06,
	NVME_FEATURE_NUMBER_OF_QUEUES = 0x07,
	NVME_FEATURE_ASYNC_EVENT_CONFIG = 0x0b,
	NVME_FEATURE_HOST_BEHAVIOR = 0x16,
};

/* Identify CNS values, Base 2.0 figure 274. */
enum {
	NVME_CNS_NAMESPACE = 0x00,
	NVME_CNS_CONTROLLER = 0x01,
	NVME_CNS_ACTIVE_NAMESPACES = 0x02,
	NVME_CNS_DESCRIPTORS = 0x03, /* Namespace Identification Descriptor list */
};

/* Controller registers, PCIe transport 1.0 section 3.1 (byte offsets). */
enum {
	NVME_REGISTER_CAP = 0x00,
	NVME_REGISTER_VS = 0x08,
	NVME_REGISTER_CC = 0x14,
	NVME_REGISTER_CSTS = 0x1c,
	NVME_REGISTER_AQA = 0x24,
	NVME_REGISTER_ASQ = 0x28,
	NVME_REGISTER_ACQ = 0x30,
	NVME_REGISTER_DOORBELLS = 0x1000,
};

#define NVME_CC_ENABLE          0x1u
#define NVME_CC_IOSQES_64       (6u << 16)
#define NVME_CC_IOCQES_16       (4u << 20)
#define NVME_CC_SHUTDOWN_MASK   (3u << 14)
#define NVME_CSTS_READY         0x1u
#define NVME_CSTS_FATAL         0x2u
#define NVME_CSTS_SHUTDOWN_MASK (3u << 2)
#define NVME_CSTS_SHUTDOWN_DONE (2u << 2)

/*
 * A status as it stands in dw3 bits 31:17 of a completion: SC in 7:0, SCT in
 * 10:8, CRD (which of the Command Retry Delay Times; 0: none) in 12:11, DNR ("do
 * not retry") in 14. Base 2.0 section 3.3.3.2.1.
 */
#define NVME_STATUS(sct, sc)  ((u32)(((sct) << 8) | (sc)))
#define NVME_STATUS_DNR       0x4000u
#define NVME_STATUS_CODE_MASK 0x7ffu
#define NVME_STATUS_CRD_SHIFT 11
#define NVME_STATUS_CRD_MASK  0x3u
#define NVME_CRDT_NS          100000000u /* Command Retry Delay Times are multiples of 100 ms */

enum {
	/* generic, SCT 0 */
	NVME_STATUS_SUCCESS = 0x000,
	NVME_STATUS_INVALID_OPCODE = 0x001,
	NVME_STATUS_INVALID_FIELD = 0x002,
	NVME_STATUS_CID_CONFLICT = 0x003,
	NVME_STATUS_DATA_TRANSFER_ERROR = 0x004,
	NVME_STATUS_INTERNAL_ERROR = 0x006,
	NVME_STATUS_ABORT_REQUESTED = 0x007,
	NVME_STATUS_ABORTED_SQ_DELETED = 0x008,
	NVME_STATUS_INVALID_NAMESPACE = 0x00b,
	NVME_STATUS_COMMAND_SEQUENCE = 0x00c,
	NVME_STATUS_INVALID_PRP_OFFSET = 0x013,
	NVME_STATUS_COMMAND_INTERRUPTED = 0x021,
	NVME_STATUS_TRANSIENT_TRANSPORT = 0x022,
	NVME_STATUS_LBA_OUT_OF_RANGE = 0x080,
	NVME_STATUS_CAPACITY_EXCEEDED = 0x081,
	NVME_STATUS_NAMESPACE_NOT_READY = 0x082,
	/* command specific, SCT 1 */
	NVME_STATUS_INVALID_CQ = 0x100,
	NVME_STATUS_INVALID_QID = 0x101,
	NVME_STATUS_INVALID_QUEUE_SIZE = 0x102,
	NVME_STATUS_ABORT_LIMIT = 0x103,
	NVME_STATUS_ASYNC_EVENT_LIMIT = 0x105,
	NVME_STATUS_INVALID_VECTOR = 0x108,
	NVME_STATUS_INVALID_QUEUE_DELETION = 0x10c,
	NVME_STATUS_FEATURE_NOT_SAVEABLE = 0x10d,
	NVME_STATUS_READ_ONLY_RANGE = 0x182,
	/* media and data integrity, SCT 2 */
	NVME_STATUS_WRITE_FAULT = 0x280,
	NVME_STATUS_UNRECOVERED_READ = 0x281,
	NVME_STATUS_COMPARE_FAILURE = 0x285,
	NVME_STATUS_UNWRITTEN_BLOCK = 0x287,
	/* path related, SCT 3 */
	NVME_STATUS_PATH_INTERNAL = 0x300,
	NVME_STATUS_PATH_INACCESSIBLE = 0x302,
	NVME_STATUS_PATH_TRANSITION = 0x303,
	NVME_STATUS_PATH_CONTROLLER = 0x360,
	NVME_STATUS_PATH_HOST = 0x370,
	NVME_STATUS_ABORTED_BY_HOST = 0x371,
};

#endif
