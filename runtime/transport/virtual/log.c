/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/log.c: Get Log Page, Base 2.0 section 5.16: the mandatory pages.
 *
 * Owns: their content. The error log has no entries; reading it lets the next
 * error event through.
 */
#include <string.h>

#include "../identify_pages.h"
#include "parts.h"

#define LOG_RETAIN_EVENT        0x8000u /* cdw10: do not clear the event */
#define STATUS_INVALID_LOG_PAGE NVME_STATUS(1, 0x09)

enum {
	LOG_ERROR = 0x01,
	LOG_HEALTH = 0x02,
	LOG_FIRMWARE = 0x03,
	LOG_BYTES = 512, /* of the longest page */
};

static void fill_health(struct weir_virtual *controller, u8 *page)
{
	struct weir_virtual_stats stats;

	weir_virtual_stats(controller, &stats);
	weir_page_health(&stats, page);
}

static u32 fill_page(struct weir_virtual *controller, u32 log, u8 *page)
{
	switch (log) {
	case LOG_ERROR: return NVME_STATUS_SUCCESS;
	case LOG_HEALTH: fill_health(controller, page); return NVME_STATUS_SUCCESS;
	case LOG_FIRMWARE: weir_page_firmware(page); return NVME_STATUS_SUCCESS;
	default: return virtual_refuse(STATUS_INVALID_LOG_PAGE);
	}
}

static u32 send_part(struct weir_virtual *controller, const struct nvme_sqe *sqe, const u8 *page)
{
	u64 bytes = (((u64)(sqe->cdw11 & 0xffff) << 16 | sqe->cdw10 >> 16) + 1) * 4;
	u64 offset = (u64)sqe->cdw13 << 32 | sqe->cdw12;
	u8 *reply = controller->admin.reply;
	u64 rest;

	if (bytes > controller->options.max_transfer_bytes || offset % 4 || offset > LOG_BYTES)
		return virtual_refuse(NVME_STATUS_INVALID_FIELD);
	rest = LOG_BYTES - offset;
	memset(reply, 0, bytes);
	memcpy(reply, page + offset, rest < bytes ? rest : bytes);
	return virtual_admin_send(controller, sqe, reply, (u32)bytes);
}

u32 virtual_get_log_page(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	u8 page[LOG_BYTES] = { 0 };
	u32 log = sqe->cdw10 & 0xff;
	u32 status = fill_page(controller, log, page);

	(void)result;
	if (!status)
		status = send_part(controller, sqe, page);
	if (!status && log == LOG_ERROR && !(sqe->cdw10 & LOG_RETAIN_EVENT))
		controller->admin.masked = false;
	return status;
}
