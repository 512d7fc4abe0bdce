/* SPDX-License-Identifier: BSD-3-Clause */
#include "identify_pages.h"

#include <endian.h>
#include <string.h>

#include <nvme/types.h>

#include "virtual/state.h"

void weir_page_text(char *field, size_t bytes, const char *value)
{
	size_t length = strlen(value);

	memset(field, ' ', bytes);
	memcpy(field, value, length < bytes ? length : bytes);
}

static u8 log2_of(u64 value)
{
	return (u8)(63 - __builtin_clzll(value));
}

void weir_page_controller(u32 max_transfer_bytes, void *page)
{
	struct nvme_id_ctrl *id = page;

	weir_page_text(id->fr, sizeof(id->fr), "1");
	id->mdts = log2_of(max_transfer_bytes / NVME_PAGE_BYTES);
	id->ver = htole32(WEIR_PAGE_VERSION);
	id->cntrltype = 1; /* I/O controller */
	id->crdt1 = htole16(VIRTUAL_RETRY_DELAY_1);
	id->crdt2 = htole16(VIRTUAL_RETRY_DELAY_2);
	id->crdt3 = htole16(VIRTUAL_RETRY_DELAY_3);
	id->acl = 3;
	id->aerl = WEIR_PAGE_AERS - 1;
	id->frmw = 0x3; /* one firmware slot, read only */
	id->lpa = 0x4;  /* Get Log Page with offset and long lengths */
	id->wctemp = htole16(343);
	id->cctemp = htole16(353);
	id->sqes = 0x66;
	id->cqes = 0x44;
	id->nn = htole32(1);
	id->oncs = htole16(0x1 | 0x4 | 0x8); /* Compare, Dataset Management, Write Zeroes */
	id->vwc = 0x7;                       /* volatile write cache; Flush takes broadcast */
}

#define OAES_DISCOVERY (1u << 31)

enum {
	CTRATT_HOST_ID_128 = 1 << 0,
	CTRATT_TRAFFIC_KEEPS_ALIVE = 1 << 6,
	CMIC_CONTROLLERS = 1 << 1,
	CMIC_ANA = 1 << 3,
	ANACAP_ALL_STATES = 0x1f,
	ANACAP_GROUPS_STAY = 1 << 6,
	OAES_NAMESPACES = 1 << 8,
	OAES_ANA = 1 << 11,
	KAS_100_MS = 10,
	RTD3E_US = 30000000,    /* files are flushed */
	VWC_NO_BROADCAST = 0x5, /* a volatile write cache; Flush is for one namespace */
	SGLS_SUPPORTED_WITH_OFFSETS = 1 << 0 | 1 << 20,
	TYPE_DISCOVERY = 2,
	CAPSULE_UNIT = 16,
};

static void make_discovery(struct nvme_id_ctrl *id)
{
	id->cntrltype = TYPE_DISCOVERY;
	id->nn = id->oncs = id->vwc = id->sqes = id->cqes = 0;
	id->ioccsz = id->iorcsz = 0;
	id->oaes = htole32(OAES_DISCOVERY);
	id->mnan = id->anagrpmax = id->nanagrpid = 0;
	id->cmic = id->anacap = id->anatt = 0;
}

void weir_page_fabrics(const struct weir_page_fabrics *fabrics, void *page)
{
	struct nvme_id_ctrl *id = page;

	weir_page_text(id->mn, sizeof(id->mn), "weir target");
	weir_page_text(id->sn, sizeof(id->sn), fabrics->serial);
	memcpy(id->subnqn, fabrics->nqn, strlen(fabrics->nqn));
	id->cmic = CMIC_CONTROLLERS | CMIC_ANA;
	id->oaes = htole32(OAES_NAMESPACES | OAES_ANA);
	id->anatt = fabrics->ana_seconds;
	id->anacap = ANACAP_ALL_STATES | ANACAP_GROUPS_STAY;
	id->anagrpmax = id->nanagrpid = htole32(1);
	id->cntlid = htole16(fabrics->cntlid);
	id->ctratt = htole32(CTRATT_HOST_ID_128 | CTRATT_TRAFFIC_KEEPS_ALIVE);
	id->kas = htole16(KAS_100_MS);
	id->rtd3e = htole32(RTD3E_US);
	id->maxcmd = htole16(fabrics->queue_entries);
	id->sgls = htole32(SGLS_SUPPORTED_WITH_OFFSETS);
	id->msdbd = 1;
	id->ofcs = htole16(1); /* Disconnect */
	id->nn = id->mnan = htole32(WEIR_PAGE_NAMESPACES);
	id->ioccsz = htole32(fabrics->capsule_bytes / CAPSULE_UNIT);
	id->iorcsz = htole32(sizeof(struct nvme_cqe) / CAPSULE_UNIT);
	if (fabrics->namespaces > 1)
		id->vwc = VWC_NO_BROADCAST;
	if (!fabrics->namespaces)
		make_discovery(id);
}

void weir_page_namespace(const struct weir_medium *medium, const u8 *uuid, bool shared, void *page)
{
	struct nvme_id_ns *id = page;
	u64 blocks = medium->bytes / medium->block_bytes;

	id->nsze = htole64(blocks);
	id->ncap = htole64(blocks);
	id->nuse = htole64(blocks);
	id->nsattr = medium->read_only;
	id->nmic = shared;
	memcpy(id->nguid, uuid, sizeof(id->nguid));
	id->lbaf[0].ds = log2_of(medium->block_bytes);
}

void weir_page_descriptors(const u8 *uuid, u8 *page)
{
	page[0] = NVME_NIDT_UUID;
	page[1] = WEIR_PAGE_UUID_BYTES;
	memcpy(page + sizeof(struct nvme_ns_id_desc), uuid, WEIR_PAGE_UUID_BYTES);
}

const u8 *weir_page_descriptor(const u8 *page, u8 type, u8 bytes)
{
	const size_t head = sizeof(struct nvme_ns_id_desc);

	for (size_t at = 0; at + head + bytes <= NVME_IDENTIFY_BYTES && page[at + 1];
	     at += head + page[at + 1])
		if (page[at] == type && page[at + 1] == bytes)
			return page + at + head;
	return NULL;
}

static void fill_units(u8 *field, u64 bytes)
{
	u64 units = htole64((bytes + 511999) / 512000); /* thousands of 512 bytes, rounded up */

	memcpy(field, &units, sizeof(units));
}

void weir_page_health(const struct weir_virtual_stats *stats, u8 *page)
{
	struct nvme_smart_log health = { .avail_spare = 100, .spare_thresh = 10 };
	u16 kelvin = htole16(300);

	memcpy(health.temperature, &kelvin, sizeof(kelvin));
	fill_units(health.data_units_read, stats->bytes_read);
	fill_units(health.data_units_written, stats->bytes_written);
	memcpy(page, &health, sizeof(health));
}

void weir_page_firmware(u8 *page)
{
	struct nvme_firmware_slot slot = { .afi = 1, .frs = { "1       " } };

	memcpy(page, &slot, sizeof(slot));
}
