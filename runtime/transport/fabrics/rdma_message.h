/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_message.h: what NVMe/RDMA adds to capsules, as bytes: the private data of a connection, keyed SGLs.
 *
 * Owns: layouts, and their strict checking. NVMe/RDMA Transport 1.0, sections 3.2 and 3.3. Knows no verbs.
 * Words are little-endian, as in nvme.h.
 */
#ifndef WEIR_FABRICS_RDMA_MESSAGE_H
#define WEIR_FABRICS_RDMA_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/nvme.h>
#include <weir/nvme_fabrics.h>

enum {
	NVME_RDMA_ADMIN_ENTRIES = 32,         /* of the admin queue, at most */
	NVME_RDMA_MOST_BYTES = (1 << 24) - 1, /* that a keyed SGL describes */
};

/** struct nvme_rdma_request - private data of a connection's request; @hsqsize is zero based, @hrqsize is not
 */
struct nvme_rdma_request {
	u16 recfmt;
	u16 qid;
	u16 hrqsize;
	u16 hsqsize;
	u16 cntlid;
	u8 reserved[22];
};

/** struct nvme_rdma_accept - private data of its acceptance; @crqsize: entries of the controller's receive
 * queue */
struct nvme_rdma_accept {
	u16 recfmt;
	u16 crqsize;
	u8 reserved[28];
};

/** struct nvme_rdma_reject - private data of its refusal; @status: NVME_RDMA_ */
struct nvme_rdma_reject {
	u16 recfmt;
	u16 status;
};

WEIR_ASSERT_SIZE(struct nvme_rdma_request, 32);
WEIR_ASSERT_SIZE(struct nvme_rdma_accept, 32);
WEIR_ASSERT_SIZE(struct nvme_rdma_reject, 4);
WEIR_ASSERT_OFFSET(struct nvme_rdma_request, hsqsize, 6);

enum {
	NVME_RDMA_ACCEPTED = 0, /* no status of the wire */
	NVME_RDMA_INVALID_LENGTH = 1,
	NVME_RDMA_INVALID_FORMAT = 2,
	NVME_RDMA_INVALID_QID = 3,
	NVME_RDMA_INVALID_HSQSIZE = 4,
	NVME_RDMA_INVALID_HRQSIZE = 5,
	NVME_RDMA_NO_RESOURCES = 6,
	NVME_RDMA_INVALID_IRD = 7,
	NVME_RDMA_INVALID_ORD = 8,
	NVME_RDMA_INVALID_CNTLID = 9,
};

/**
 * weir_rdma_check_request() - @bytes of a host's private data, which a network may have padded
 * @most_entries: of an I/O queue
 * @out: what it says
 *
 * Return: NVME_RDMA_ACCEPTED, or why it is refused.
 */
u16 weir_rdma_check_request(const void *data, size_t bytes, u32 most_entries, struct nvme_rdma_request *out);
/** weir_rdma_check_accept() - @bytes of a controller's private data: is it NVMe/RDMA? */
bool weir_rdma_check_accept(const void *data, size_t bytes);
/** weir_rdma_check_reject() - why it refuses, NVME_RDMA_; 0: it does not say */
u16 weir_rdma_check_reject(const void *data, size_t bytes);
/** weir_rdma_reject_text() - for people */
const char *weir_rdma_reject_text(u16 status);

/** weir_rdma_put_keyed() - the data of @sqe is @bytes at @address, under @key of the host's */
void weir_rdma_put_keyed(struct nvme_sqe *sqe, u64 address, u32 bytes, u32 key);

/** struct weir_rdma_keyed - a keyed SGL, read; @invalidate: the key ends with the command */
struct weir_rdma_keyed {
	u64 address;
	u32 bytes;
	u32 key;
	bool invalidate;
};

/** weir_rdma_take_keyed() - of @sqe; false: its SGL is another one */
bool weir_rdma_take_keyed(const struct nvme_sqe *sqe, struct weir_rdma_keyed *out);

#endif
