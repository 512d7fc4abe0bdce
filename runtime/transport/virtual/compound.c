/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/compound.c: commands of several steps: Compare (read, then look) and
 * Dataset Management (a medium request per range).
 *
 * Owns: what lies between the steps. Both work in a private buffer, so the
 * host's memory is read once.
 */
#include <string.h>

#include "parts.h"

/* A medium that will never take the write says so with a status no retry helps. */
u32 virtual_medium_status(const struct virtual_request *request)
{
	u32 status = request->io.status;

	return status == NVME_STATUS_READ_ONLY_RANGE ? virtual_refuse(status) : status;
}

static bool same(const struct virtual_request *request)
{
	const unsigned char *at = request->bounce;

	for (u32 i = 0; i < request->segment_count; i++) {
		const struct iovec *segment = &request->segments[i];

		if (memcmp(at, segment->iov_base, segment->iov_len))
			return false;
		at += segment->iov_len;
	}
	return true;
}

static void compare_done(struct weir_io *io)
{
	struct virtual_request *request = (struct virtual_request *)io;
	u32 status = virtual_medium_status(request);

	request->thread->in_medium--;
	if (!status && !same(request))
		status = virtual_refuse(NVME_STATUS_COMPARE_FAILURE);
	virtual_request_end(request, status);
}

bool virtual_compare_start(struct virtual_request *request)
{
	if (!virtual_request_bounce(request))
		return false;
	request->bounce_segment = (struct iovec){ request->bounce, (size_t)request->io.bytes };
	request->io.iov = &request->bounce_segment;
	request->io.iov_count = 1;
	return virtual_request_submit(request, compare_done);
}

/* struct range - Dataset Management range, NVM Command Set 1.0 figure 43 */
struct range {
	u32 attributes;
	u32 blocks;
	u64 lba;
};

static const struct range *ranges_of(const struct virtual_request *request)
{
	return (const struct range *)(const void *)request->bounce;
}

static u32 check_ranges_by_engine(const struct virtual_request *request)
{
	u32 status = NVME_STATUS_SUCCESS;

	for (u32 i = 0; i < request->ranges && !status; i++)
		status = virtual_engine_admit_range(request, ranges_of(request)[i].lba,
						    ranges_of(request)[i].blocks);
	return status;
}

static u32 check_ranges(const struct virtual_request *request)
{
	const struct weir_medium *medium = request->thread->controller->options.medium;
	u64 capacity_blocks = medium->bytes / medium->block_bytes;
	const struct range *ranges = ranges_of(request);

	if (request->thread->controller->options.engine)
		return check_ranges_by_engine(request);
	for (u32 i = 0; i < request->ranges; i++)
		if (ranges[i].lba > capacity_blocks || ranges[i].blocks > capacity_blocks - ranges[i].lba)
			return virtual_refuse(NVME_STATUS_LBA_OUT_OF_RANGE);
	return NVME_STATUS_SUCCESS;
}

static void range_set(struct virtual_request *request, const struct range *range)
{
	u64 block_bytes = request->thread->controller->options.medium->block_bytes;

	request->io.kind = WEIR_IO_DISCARD;
	request->io.force_unit_access = false;
	request->io.offset_bytes = range->lba * block_bytes;
	request->io.bytes = range->blocks * block_bytes;
	request->io.iov_count = 0;
	if (request->thread->controller->options.engine)
		virtual_engine_range(request, range->lba);
}

static bool ranges_go(struct virtual_request *request);

static void range_done(struct weir_io *io)
{
	struct virtual_request *request = (struct virtual_request *)io;
	u32 status = virtual_medium_status(request);

	request->thread->in_medium--;
	request->io.version += request->io.bytes / request->thread->controller->options.medium->block_bytes;
	request->range = status ? request->ranges : request->range + 1;
	request->status = status;
	if (request->submitting) {
		request->submitting = false; /* ranges_go() is below us and goes on */
		return;
	}
	if (!ranges_go(request))
		virtual_stall(request);
}

/* From the next range on, until one is under way; false if the medium takes no more. */
static bool ranges_go(struct virtual_request *request)
{
	while (request->range < request->ranges) {
		const struct range *range = &ranges_of(request)[request->range];

		if (!range->blocks) {
			request->range++;
			continue;
		}
		range_set(request, range);
		request->submitting = true;
		if (!virtual_request_submit(request, range_done)) {
			request->submitting = false;
			return false;
		}
		if (request->submitting) {
			request->submitting = false; /* range_done() will go on */
			return true;
		}
	}
	virtual_request_end(request, request->status);
	return true;
}

static void ranges_copy(struct virtual_request *request)
{
	virtual_gather(request->bounce, request->segments, request->segment_count);
	request->status = check_ranges(request);
	if (request->status)
		request->ranges = 0;
}

bool virtual_ranges_start(struct virtual_request *request)
{
	if (request->bounce || !request->ranges)
		return ranges_go(request);
	if (!virtual_request_bounce(request))
		return false;
	ranges_copy(request);
	return ranges_go(request);
}
