/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/prp.c: from PRP entries to segments of host memory.
 *
 * Owns: the rules of Base 2.0 section 4.1.1. Every list page is copied once and
 * only the copy is looked at; every byte named lies in the DMA map.
 */
#include "../prp.h"
#include "parts.h"

/**
 * struct walk - a walk under way
 * @view: memory that counts
 * @list: copy of the list page
 * @region: where the latest segment lies
 * @segments: what was found
 * @count: how many
 * @left: bytes still to be found
 */
struct walk {
	struct weir_dma_view *view;
	u64 *list;
	const struct weir_dma_region *region;
	struct iovec *segments;
	u32 count;
	u64 left;
};

/* Adjacent memory makes one segment as long as it is of one registration. */
static bool extend(struct walk *walk, const struct weir_dma_region *region, u64 address, u64 bytes)
{
	struct iovec *last;

	if (!walk->count || walk->region != region)
		return false;
	last = &walk->segments[walk->count - 1];
	if ((u64)(uintptr_t)last->iov_base + last->iov_len != address)
		return false;
	last->iov_len += bytes;
	return true;
}

/* Take what the page at @address offers. */
static u32 take_page(struct walk *walk, u64 address)
{
	u64 room = NVME_PAGE_BYTES - address % NVME_PAGE_BYTES;
	u64 bytes = walk->left < room ? walk->left : room;
	const struct weir_dma_region *region = weir_dma_view_find(walk->view, address, bytes);

	if (!region)
		return virtual_refuse(NVME_STATUS_DATA_TRANSFER_ERROR);
	if (!extend(walk, region, address, bytes))
		walk->segments[walk->count++] = (struct iovec){ (void *)(uintptr_t)address, (size_t)bytes };
	walk->region = region;
	walk->left -= bytes;
	return NVME_STATUS_SUCCESS;
}

static u32 take_entry(struct walk *walk, u64 address)
{
	if (address % NVME_PAGE_BYTES)
		return virtual_refuse(NVME_STATUS_INVALID_PRP_OFFSET);
	return take_page(walk, address);
}

static u32 copy_list(struct walk *walk, u64 address, u64 entries)
{
	u64 bytes = entries * NVME_PRP_BYTES;

	if (!weir_dma_view_find(walk->view, address, bytes))
		return virtual_refuse(NVME_STATUS_DATA_TRANSFER_ERROR);
	virtual_copy_from(walk->list, (const void *)(uintptr_t)address, bytes);
	return NVME_STATUS_SUCCESS;
}

/*
 * Take what one list page offers. Where the rest does not fit, its last entry
 * leads to the next page: *@address, else left alone.
 */
static u32 take_list(struct walk *walk, u64 *address)
{
	u64 pages = (walk->left + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES;
	u64 room = (NVME_PAGE_BYTES - *address % NVME_PAGE_BYTES) / NVME_PRP_BYTES;
	u64 here = pages <= room ? pages : room - 1;
	const u64 *list = walk->list;
	u32 status = copy_list(walk, *address, pages <= room ? pages : room);

	for (u64 i = 0; i < here && !status; i++)
		status = take_entry(walk, list[i]);
	if (!status && here < pages) {
		*address = list[here];
		if (*address % NVME_PAGE_BYTES)
			return virtual_refuse(NVME_STATUS_INVALID_PRP_OFFSET);
	}
	return status;
}

static u32 take_lists(struct walk *walk, u64 address)
{
	u32 status = NVME_STATUS_SUCCESS;

	if (address % NVME_PRP_BYTES)
		return virtual_refuse(NVME_STATUS_INVALID_PRP_OFFSET);
	while (walk->left && !status)
		status = take_list(walk, &address);
	return status;
}

u32 weir_prp_walk(struct weir_dma_view *view, u64 *list, const struct nvme_sqe *sqe, u64 bytes,
		  struct iovec *segments, u32 *count)
{
	struct walk walk = { .view = view, .list = list, .segments = segments, .left = bytes };
	u32 status;

	if (sqe->prp1 % 4)
		return virtual_refuse(NVME_STATUS_INVALID_PRP_OFFSET);
	status = take_page(&walk, sqe->prp1);
	if (!status && walk.left && walk.left <= NVME_PAGE_BYTES)
		status = take_entry(&walk, sqe->prp2);
	else if (!status && walk.left)
		status = take_lists(&walk, sqe->prp2);
	*count = walk.count;
	return status;
}

u32 virtual_prp_walk(struct virtual_thread *thread, const struct nvme_sqe *sqe, u64 bytes,
		     struct iovec *segments, u32 *count)
{
	return weir_prp_walk(&thread->view, thread->list, sqe, bytes, segments, count);
}

void virtual_gather(void *to, const struct iovec *segments, u32 count)
{
	unsigned char *at = to;

	for (u32 i = 0; i < count; i++) {
		virtual_copy_from(at, segments[i].iov_base, segments[i].iov_len);
		at += segments[i].iov_len;
	}
}

void virtual_scatter(const void *from, const struct iovec *segments, u32 count)
{
	const unsigned char *at = from;

	for (u32 i = 0; i < count; i++) {
		__builtin_memcpy(segments[i].iov_base, at, segments[i].iov_len);
		at += segments[i].iov_len;
	}
}
