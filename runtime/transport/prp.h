/* SPDX-License-Identifier: BSD-3-Clause */
/* prp.h: from PRP entries to segments of host memory, for whoever takes commands from rings. */
#ifndef WEIR_PRP_H
#define WEIR_PRP_H

#include <sys/uio.h>

#include <weir/nvme.h>

#include "../storage/dma.h"

/**
 * weir_prp_walk() - find the host memory of a transfer
 * @view: memory that counts; of the calling thread
 * @list: room for a copy of a list page, NVME_PAGE_BYTES
 * @sqe: prp1 and prp2, copied from the ring
 * @bytes: length, at least 1
 * @segments: where they go, room for a segment per page and one more
 * @count: how many there are
 *
 * Base 2.0 section 4.1.1. Return: an NVMe status.
 */
u32 weir_prp_walk(struct weir_dma_view *view, u64 *list, const struct nvme_sqe *sqe, u64 bytes,
		  struct iovec *segments, u32 *count);

#endif
