/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/engine.c: what the controller core asks an engine about a command, and what it reports to it.
 *
 * Owns: the fields that an engine adds to commands (include/weir/nvme_volume.h). Without an engine nothing
 * here is called.
 */
#include "../../engine/engine.h"
#include "../opcode.h"
#include "parts.h"

static const char *host_of(const struct virtual_request *request)
{
	const struct virtual_front *front = request->thread->front;

	return front->host ? front->host(request) : NULL;
}

u32 virtual_engine_admit(struct virtual_request *request, const struct nvme_sqe *sqe, u64 blocks)
{
	struct weir_engine_access access = { .host = host_of(request),
					     .changes = weir_opcode_changes(request->opcode),
					     .blocks = blocks,
					     .lease_epoch = sqe->cdw14,
					     .map_epoch = sqe->cdw15 };
	u32 status;

	weir_engine_slba((u64)sqe->cdw11 << 32 | sqe->cdw10, &access);
	status = weir_engine_admit(request->thread->controller->options.engine, &access);
	if (status)
		return status;
	request->io.offset_bytes = weir_engine_offset(access.vid, access.vba);
	request->io.bytes = blocks << NVME_VOLUME_BLOCK_LOG2;
	request->io.version =
		access.changes || access.client == NVME_VOLUME_MANAGER ? (u64)sqe->cdw3 << 32 | sqe->cdw2 : 0;
	request->io.epochs = weir_engine_epochs(&access);
	return NVME_STATUS_SUCCESS;
}

u32 virtual_engine_admit_flush(const struct virtual_request *request, const struct nvme_sqe *sqe)
{
	struct weir_engine_access access = { .host = host_of(request), .map_epoch = sqe->cdw15 };

	weir_engine_slba((u64)sqe->cdw11 << 32 | sqe->cdw10, &access);
	return weir_engine_admit_flush(request->thread->controller->options.engine, &access);
}

void virtual_engine_keep(struct virtual_request *request, const struct nvme_sqe *sqe)
{
	request->io.version = (u64)sqe->cdw3 << 32 | sqe->cdw2;
	request->io.epochs = (u64)sqe->cdw15 << 32 | sqe->cdw14;
}

u32 virtual_engine_admit_range(const struct virtual_request *request, u64 slba, u64 blocks)
{
	struct weir_engine_access access = { .host = host_of(request),
					     .changes = true,
					     .blocks = blocks,
					     .lease_epoch = (u32)request->io.epochs,
					     .map_epoch = (u32)(request->io.epochs >> 32) };

	weir_engine_slba(slba, &access);
	return weir_engine_admit(request->thread->controller->options.engine, &access);
}

void virtual_engine_range(struct virtual_request *request, u64 slba)
{
	struct weir_engine_access access = { .lease_epoch = (u32)request->io.epochs,
					     .map_epoch = (u32)(request->io.epochs >> 32) };

	weir_engine_slba(slba, &access);
	request->io.offset_bytes = weir_engine_offset(access.vid, access.vba);
	request->io.epochs = weir_engine_epochs(&access);
}

u32 virtual_engine_admin(struct weir_virtual *controller, const struct nvme_sqe *sqe)
{
	u32 opcode = (u8)sqe->cdw0, bytes, status = NVME_STATUS_SUCCESS;
	bool to_host = (opcode & 3) == 2;
	u8 *page = controller->admin.reply;

	if (!weir_engine_is_admin(opcode))
		return virtual_refuse(NVME_STATUS_INVALID_OPCODE);
	bytes = weir_engine_admin_bytes(opcode);
	if (bytes && !to_host)
		status = virtual_admin_receive(controller, sqe, page, bytes);
	if (!status)
		status = weir_engine_admin(controller->options.engine, NULL, sqe, page);
	if (!status && to_host)
		status = virtual_admin_send(controller, sqe, page, bytes);
	return status;
}
