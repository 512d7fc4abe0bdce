/* SPDX-License-Identifier: BSD-3-Clause */
/* medium/file_status.c: errno values of a failed request as NVMe status codes. */
#include <errno.h>
#include <weir/nvme.h>

#include "file.h"

static uint16_t media_error(enum weir_io_kind kind)
{
	return kind == WEIR_IO_READ ? NVME_STATUS_UNRECOVERED_READ : NVME_STATUS_WRITE_FAULT;
}

uint16_t file_status(enum weir_io_kind kind, int error)
{
	switch (error) {
	case 0: return NVME_STATUS_SUCCESS;
	case EIO:
	case ENODATA: /* the block layer's word for a medium error */
	case EILSEQ: /* and for a failed integrity check */ return media_error(kind);
	case ENOSPC:
	case EDQUOT:
	case EFBIG: return NVME_STATUS_CAPACITY_EXCEEDED;
	case EFAULT: return NVME_STATUS_DATA_TRANSFER_ERROR;
	default: return NVME_STATUS_INTERNAL_ERROR;
	}
}
