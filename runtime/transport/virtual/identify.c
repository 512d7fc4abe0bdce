/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/identify.c: what the controller says of itself.
 *
 * Owns: the Identify command, Base 2.0 section 5.17, and the NVM Command Set's
 * namespace structure.
 */
#include <endian.h>
#include <string.h>

#include <nvme/types.h>

#include "../identify_pages.h"
#include "parts.h"

enum {
	CNS_NAMESPACE_DESCRIPTORS = 0x03,
	OACS_DOORBELL_BUFFER_CONFIG = 1 << 8,
};

static void fill_names(const struct weir_virtual *controller, struct nvme_id_ctrl *id)
{
	static const char digits[] = "0123456789abcdef";

	weir_page_text(id->sn, sizeof(id->sn), "");
	for (u32 i = 0; i < 8; i++) {
		id->sn[2 * i] = digits[controller->uuid[i] >> 4];
		id->sn[2 * i + 1] = digits[controller->uuid[i] & 15];
	}
	weir_page_text(id->mn, sizeof(id->mn), "weir virtual controller");
	memcpy(id->subnqn, "nqn.2014-08.org.nvmexpress:weir:", 32);
	memcpy(id->subnqn + 32, id->sn, 16);
}

static void fill_controller(const struct weir_virtual *controller, struct nvme_id_ctrl *id)
{
	fill_names(controller, id);
	weir_page_controller(controller->options.max_transfer_bytes, id);
	if (controller->options.shadow_doorbells)
		id->oacs = htole16(OACS_DOORBELL_BUFFER_CONFIG);
}

static u32 send_controller(struct weir_virtual *controller, const struct nvme_sqe *sqe)
{
	struct nvme_id_ctrl id = { 0 };

	fill_controller(controller, &id);
	return virtual_admin_send(controller, sqe, &id, sizeof(id));
}

static u32 send_namespace(struct weir_virtual *controller, const struct nvme_sqe *sqe)
{
	const struct weir_medium *medium = controller->options.medium;
	struct nvme_id_ns id = { 0 };

	if (sqe->nsid != 1)
		return virtual_refuse(NVME_STATUS_INVALID_NAMESPACE);
	weir_page_namespace(medium, controller->uuid, false, &id);
	return virtual_admin_send(controller, sqe, &id, sizeof(id));
}

static u32 send_active(struct weir_virtual *controller, const struct nvme_sqe *sqe)
{
	u32 list[NVME_IDENTIFY_BYTES / 4] = { 0 };

	if (sqe->nsid >= 0xfffffffe)
		return virtual_refuse(NVME_STATUS_INVALID_NAMESPACE);
	if (sqe->nsid < 1)
		list[0] = htole32(1);
	return virtual_admin_send(controller, sqe, list, sizeof(list));
}

static u32 send_descriptors(struct weir_virtual *controller, const struct nvme_sqe *sqe)
{
	u8 list[NVME_IDENTIFY_BYTES] = { 0 };

	if (sqe->nsid != 1)
		return virtual_refuse(NVME_STATUS_INVALID_NAMESPACE);
	weir_page_descriptors(controller->uuid, list);
	return virtual_admin_send(controller, sqe, list, sizeof(list));
}

u32 virtual_identify(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	(void)result;
	switch (sqe->cdw10 & 0xff) {
	case NVME_CNS_NAMESPACE: return send_namespace(controller, sqe);
	case NVME_CNS_CONTROLLER: return send_controller(controller, sqe);
	case NVME_CNS_ACTIVE_NAMESPACES: return send_active(controller, sqe);
	case CNS_NAMESPACE_DESCRIPTORS: return send_descriptors(controller, sqe);
	default: return virtual_refuse(NVME_STATUS_INVALID_FIELD);
	}
}
