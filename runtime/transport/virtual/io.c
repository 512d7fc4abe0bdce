/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/io.c: I/O commands of the NVM command set: checked, then begun.
 *
 * Owns: the checks of every field of an I/O command, in decide(), and what the
 * medium is asked for it. Works on a copy of the command.
 */
#include "parts.h"

enum {
	FLAGS_FUSED = 3u << 8,
	FLAGS_PSDT = 3u << 14,
};

static u32 check_namespace(u8 opcode, u32 nsid)
{
	if (nsid == 1 || (opcode == NVME_OPCODE_FLUSH && nsid == NVME_NSID_BROADCAST))
		return NVME_STATUS_SUCCESS;
	return virtual_refuse(NVME_STATUS_INVALID_NAMESPACE);
}

static u32 check_opcode(u8 opcode)
{
	switch (opcode) {
	case NVME_OPCODE_FLUSH:
	case NVME_OPCODE_WRITE:
	case NVME_OPCODE_READ:
	case NVME_OPCODE_COMPARE:
	case NVME_OPCODE_WRITE_ZEROES:
	case NVME_OPCODE_DSM: return NVME_STATUS_SUCCESS;
	default: return virtual_refuse(NVME_STATUS_INVALID_OPCODE);
	}
}

static bool changes_medium(u8 opcode, const struct nvme_sqe *sqe)
{
	return opcode == NVME_OPCODE_WRITE || opcode == NVME_OPCODE_WRITE_ZEROES ||
	       (opcode == NVME_OPCODE_DSM && (sqe->cdw11 & NVME_DSM_DEALLOCATE));
}

/* Logical blocks to bytes on the medium; neither end may pass the capacity. */
static u32 location(struct virtual_request *request, const struct nvme_sqe *sqe)
{
	const struct weir_medium *medium = request->thread->controller->options.medium;
	u64 capacity_blocks = medium->bytes / medium->block_bytes;
	u64 lba = (u64)sqe->cdw11 << 32 | sqe->cdw10;
	u64 blocks = (u64)(sqe->cdw12 & 0xffff) + 1;

	if (__builtin_expect(request->thread->controller->options.engine != NULL, 0))
		return virtual_engine_admit(request, sqe, blocks);
	if (lba > capacity_blocks || blocks > capacity_blocks - lba)
		return virtual_refuse(NVME_STATUS_LBA_OUT_OF_RANGE);
	request->io.offset_bytes = lba * medium->block_bytes;
	request->io.bytes = blocks * medium->block_bytes;
	request->io.version = (u64)sqe->cdw3 << 32 | sqe->cdw2;
	return NVME_STATUS_SUCCESS;
}

static u32 find_data(struct virtual_request *request, const struct nvme_sqe *sqe, u64 bytes)
{
	const struct weir_virtual_options *options = &request->thread->controller->options;
	u32 status;

	if (bytes > options->max_transfer_bytes)
		return virtual_refuse(NVME_STATUS_INVALID_FIELD);
	status = request->thread->front->segments(request->thread, sqe, bytes, request->segments,
						  &request->segment_count, request->command);
	request->io.iov = request->segments;
	request->io.iov_count = request->segment_count;
	return status;
}

static bool durable(const struct virtual_request *request, const struct nvme_sqe *sqe)
{
	/* Relaxed: Set Features governs the commands after its completion (doorbell.C1, doorbell.D1). */
	return (sqe->cdw12 & NVME_RW_FUA) || load_relaxed_u32(&request->thread->controller->write_through);
}

static u32 decide_transfer(struct virtual_request *request, const struct nvme_sqe *sqe)
{
	u32 status = location(request, sqe);

	if (status)
		return status;
	request->io.kind = request->opcode == NVME_OPCODE_WRITE ? WEIR_IO_WRITE : WEIR_IO_READ;
	request->io.force_unit_access = request->opcode == NVME_OPCODE_WRITE && durable(request, sqe);
	if (request->thread->controller->places && request->opcode == NVME_OPCODE_READ)
		request->place = sqe->cdw10 + 1;
	return find_data(request, sqe, request->io.bytes);
}

static u32 decide_zeroes(struct virtual_request *request, const struct nvme_sqe *sqe)
{
	request->io.kind = WEIR_IO_ZERO;
	request->io.force_unit_access = durable(request, sqe);
	request->io.iov_count = 0;
	return location(request, sqe);
}

/* Without "deallocate" the ranges are hints that nothing is done about. */
static u32 decide_ranges(struct virtual_request *request, const struct nvme_sqe *sqe)
{
	if (request->thread->controller->options.engine)
		virtual_engine_keep(request, sqe);
	request->range = 0;
	request->ranges = sqe->cdw11 & NVME_DSM_DEALLOCATE ? (sqe->cdw10 & 0xff) + 1 : 0;
	if (!request->ranges)
		return NVME_STATUS_SUCCESS;
	return find_data(request, sqe, (u64)request->ranges * 16);
}

static u32 decide_flush(struct virtual_request *request, const struct nvme_sqe *sqe)
{
	request->io.kind = WEIR_IO_FLUSH;
	request->io.force_unit_access = false;
	request->io.offset_bytes = 0;
	request->io.bytes = 0;
	request->io.iov_count = 0;
	return request->thread->controller->options.engine ? virtual_engine_admit_flush(request, sqe)
							   : NVME_STATUS_SUCCESS;
}

static u32 decide_common(const struct virtual_request *request, const struct nvme_sqe *sqe)
{
	u32 status = check_opcode(request->opcode);

	if (!status && !request->owns_cid)
		status = NVME_STATUS_CID_CONFLICT;
	if (!status && (sqe->cdw0 & (FLAGS_FUSED | FLAGS_PSDT)))
		status = virtual_refuse(NVME_STATUS_INVALID_FIELD);
	if (!status)
		status = check_namespace(request->opcode, sqe->nsid);
	return status;
}

/* The fate of a command: an error to complete it with, or 0 once @request says what to do. */
static u32 decide(struct virtual_request *request, const struct nvme_sqe *sqe)
{
	u32 status = decide_common(request, sqe);

	if (status)
		return status;
	switch (request->opcode) {
	case NVME_OPCODE_FLUSH: status = decide_flush(request, sqe); break;
	case NVME_OPCODE_WRITE_ZEROES: status = decide_zeroes(request, sqe); break;
	case NVME_OPCODE_DSM: status = decide_ranges(request, sqe); break;
	default: status = decide_transfer(request, sqe); break;
	}
	if (!status && changes_medium(request->opcode, sqe) &&
	    request->thread->controller->options.medium->read_only)
		status = virtual_refuse(NVME_STATUS_READ_ONLY_RANGE);
	return status;
}

static void io_done(struct weir_io *io)
{
	struct virtual_request *request = (struct virtual_request *)io;

	request->thread->in_medium--;
	virtual_request_end(request, virtual_medium_status(request));
}

bool virtual_io_start(struct virtual_request *request)
{
	if (request->place) {
		virtual_request_end(request, NVME_STATUS_SUCCESS);
		return true;
	}
	switch (request->opcode) {
	case NVME_OPCODE_COMPARE: return virtual_compare_start(request);
	case NVME_OPCODE_DSM: return virtual_ranges_start(request);
	default: return virtual_request_submit(request, io_done);
	}
}

void virtual_io_expect(const struct weir_virtual *controller, const struct nvme_sqe *sqe)
{
	const struct weir_medium *medium = controller->options.medium;
	u64 capacity_blocks = medium->bytes / medium->block_bytes;
	u64 lba = (u64)sqe->cdw11 << 32 | sqe->cdw10;
	u8 opcode = (u8)sqe->cdw0;

	if (((opcode == NVME_OPCODE_READ && !controller->places) || opcode == NVME_OPCODE_WRITE) &&
	    lba < capacity_blocks)
		medium->ops->expect(medium, opcode == NVME_OPCODE_WRITE ? WEIR_IO_WRITE : WEIR_IO_READ,
				    lba * medium->block_bytes);
}

void virtual_io_begin(struct virtual_thread *thread, struct virtual_queue *queue, const struct nvme_sqe *sqe,
		      bool owns_cid, void *command)
{
	struct virtual_request *request = virtual_request_take(thread, queue);
	u32 status;

	request->command = command;
	request->cid = (u16)(sqe->cdw0 >> 16);
	request->owns_cid = owns_cid;
	request->opcode = (u8)sqe->cdw0;
	if (virtual_timed(thread->controller))
		virtual_time_add(thread, request);
	status = thread->faults ? virtual_fault_begin(request, sqe) : NVME_STATUS_SUCCESS;
	if (!status)
		status = decide(request, sqe);
	if (status)
		virtual_request_end(request, status);
	else if (thread->stalled || !virtual_io_start(request))
		virtual_stall(request);
}
