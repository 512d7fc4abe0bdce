/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma_message.h"

#include <string.h>

u16 weir_rdma_check_request(const void *data, size_t bytes, u32 most_entries, struct nvme_rdma_request *out)
{
	u32 most;

	if (!data || bytes < sizeof(*out))
		return NVME_RDMA_INVALID_LENGTH;
	memcpy(out, data, sizeof(*out));
	most = out->qid ? most_entries : NVME_RDMA_ADMIN_ENTRIES;
	if (out->recfmt)
		return NVME_RDMA_INVALID_FORMAT;
	if (!out->hsqsize || out->hsqsize >= most)
		return NVME_RDMA_INVALID_HSQSIZE;
	if (out->hrqsize <= out->hsqsize)
		return NVME_RDMA_INVALID_HRQSIZE;
	return NVME_RDMA_ACCEPTED;
}

bool weir_rdma_check_accept(const void *data, size_t bytes)
{
	struct nvme_rdma_accept accept;

	if (!data || bytes < sizeof(accept))
		return false;
	memcpy(&accept, data, sizeof(accept));
	return !accept.recfmt && accept.crqsize;
}

u16 weir_rdma_check_reject(const void *data, size_t bytes)
{
	struct nvme_rdma_reject reject;

	if (!data || bytes < sizeof(reject))
		return 0;
	memcpy(&reject, data, sizeof(reject));
	return reject.recfmt ? 0 : reject.status;
}

const char *weir_rdma_reject_text(u16 status)
{
	static const char *const texts[] = {
		[NVME_RDMA_INVALID_LENGTH] = "the private data has another length",
		[NVME_RDMA_INVALID_FORMAT] = "the private data has another format",
		[NVME_RDMA_INVALID_QID] = "there is no such queue",
		[NVME_RDMA_INVALID_HSQSIZE] = "the submission queue is too large",
		[NVME_RDMA_INVALID_HRQSIZE] = "the receive queue is too small",
		[NVME_RDMA_NO_RESOURCES] = "it has no resources left",
		[NVME_RDMA_INVALID_IRD] = "it cannot read the host's memory (IRD)",
		[NVME_RDMA_INVALID_ORD] = "too many reads at a time (ORD)",
		[NVME_RDMA_INVALID_CNTLID] = "there is no such controller",
	};

	return status && status < sizeof(texts) / sizeof(*texts) ? texts[status] : "it does not say why";
}

void weir_rdma_put_keyed(struct nvme_sqe *sqe, u64 address, u32 bytes, u32 key)
{
	struct nvme_sgl_keyed sgl = { .address = address, .type = NVME_SGL_KEYED };

	memcpy(sgl.bytes, &bytes, sizeof(sgl.bytes)); /* little-endian: the low 24 bits */
	memcpy(sgl.key, &key, sizeof(sgl.key));
	memcpy(&sqe->prp1, &sgl, sizeof(sgl));
}

bool weir_rdma_take_keyed(const struct nvme_sqe *sqe, struct weir_rdma_keyed *out)
{
	struct nvme_sgl_keyed sgl;

	memcpy(&sgl, &sqe->prp1, sizeof(sgl));
	*out = (struct weir_rdma_keyed){ .address = sgl.address,
					 .invalidate = sgl.type == NVME_SGL_KEYED_INVALIDATE };
	memcpy(&out->bytes, sgl.bytes, sizeof(sgl.bytes));
	memcpy(&out->key, sgl.key, sizeof(sgl.key));
	return sgl.type == NVME_SGL_KEYED || sgl.type == NVME_SGL_KEYED_INVALIDATE;
}
