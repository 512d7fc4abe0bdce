/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual_identify.c: what the controller says of itself.
 *
 * Owns: the Identify command, Base 2.0 section 5.17, and the NVM Command Set's
 * namespace structure.
 */
#include <endian.h>
#include <string.h>

#include <nvme/types.h>

#include "virtual_parts.h"

enum {
	CNS_NAMESPACE_DESCRIPTORS = 0x03,
	NAMESPACES = 1,
	UUID_BYTES = 16,
	OACS_DOORBELL_BUFFER_CONFIG = 1 << 8,
};

static void text(char *field, size_t bytes, const char *value)
{
	size_t length = strlen(value);

	memset(field, ' ', bytes);
	memcpy(field, value, length < bytes ? length : bytes);
}

static u8 log2_of(u64 value)
{
	return (u8)(63 - __builtin_clzll(value));
}

static void fill_names(const struct weir_virtual *controller, struct nvme_id_ctrl *id)
{
	static const char digits[] = "0123456789abcdef";

	text(id->sn, sizeof(id->sn), "");
	for (u32 i = 0; i < 8; i++) {
		id->sn[2 * i] = digits[controller->uuid[i] >> 4];
		id->sn[2 * i + 1] = digits[controller->uuid[i] & 15];
	}
	text(id->mn, sizeof(id->mn), "weir virtual controller");
	text(id->fr, sizeof(id->fr), "1");
	memcpy(id->subnqn, "nqn.2014-08.org.nvmexpress:weir:", 32);
	memcpy(id->subnqn + 32, id->sn, 16);
}

static void fill_controller(const struct weir_virtual *controller, struct nvme_id_ctrl *id)
{
	fill_names(controller, id);
	id->mdts = log2_of(controller->options.max_transfer_bytes / NVME_PAGE_BYTES);
	id->ver = htole32(VIRTUAL_VERSION);
	id->cntrltype = 1; /* I/O controller */
	id->crdt1 = htole16(VIRTUAL_RETRY_DELAY_1);
	id->crdt2 = htole16(VIRTUAL_RETRY_DELAY_2);
	id->crdt3 = htole16(VIRTUAL_RETRY_DELAY_3);
	if (controller->options.shadow_doorbells)
		id->oacs = htole16(OACS_DOORBELL_BUFFER_CONFIG);
	id->acl = 3;
	id->aerl = VIRTUAL_AER_LIMIT - 1;
	id->frmw = 0x3; /* one firmware slot, read only */
	id->lpa = 0x4;  /* Get Log Page with offset and long lengths */
	id->wctemp = htole16(343);
	id->cctemp = htole16(353);
	id->sqes = 0x66;
	id->cqes = 0x44;
	id->nn = htole32(NAMESPACES);
	id->oncs = htole16(0x1 | 0x4 | 0x8); /* Compare, Dataset Management, Write Zeroes */
	id->vwc = 0x7;                       /* volatile write cache; Flush takes broadcast */
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
	u64 blocks = medium->bytes / medium->block_bytes;
	struct nvme_id_ns id = { 0 };

	if (sqe->nsid != 1)
		return virtual_refuse(NVME_STATUS_INVALID_NAMESPACE);
	id.nsze = htole64(blocks);
	id.ncap = htole64(blocks);
	id.nuse = htole64(blocks);
	id.nsattr = medium->read_only;
	memcpy(id.nguid, controller->uuid, sizeof(id.nguid));
	id.lbaf[0].ds = log2_of(medium->block_bytes);
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
	u8 list[NVME_IDENTIFY_BYTES] = { NVME_NIDT_UUID, UUID_BYTES };

	if (sqe->nsid != 1)
		return virtual_refuse(NVME_STATUS_INVALID_NAMESPACE);
	memcpy(list + sizeof(struct nvme_ns_id_desc), controller->uuid, UUID_BYTES);
	return virtual_admin_send(controller, sqe, list, sizeof(list));
}

u32 virtual_identify(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	(void)result;
	switch (sqe->cdw10 & 0xff) {
	case NVME_CNS_NAMESPACE:
		return send_namespace(controller, sqe);
	case NVME_CNS_CONTROLLER:
		return send_controller(controller, sqe);
	case NVME_CNS_ACTIVE_NAMESPACES:
		return send_active(controller, sqe);
	case CNS_NAMESPACE_DESCRIPTORS:
		return send_descriptors(controller, sqe);
	default:
		return virtual_refuse(NVME_STATUS_INVALID_FIELD);
	}
}
