/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's own reads, writes and flushes, done by lanes like everybody else's. */
#include <weir/disk.h>

#include "block_copy.h"

WEIR_FN void note_error(weir_addr result, weir_status status)
{
	if (status != WEIR_OK)
		(void)weir_cas_u32_relaxed_dev(weir_at(result, weir_shared_u32, 0), 0, status);
}

WEIR_KERNEL(weir_block_copy, struct weir_block_copy_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	u64 stride = weir_threads() * args->step;
	weir_status status = WEIR_OK;

	if (args->opcode == NVME_OPCODE_FLUSH) {
		if (weir_thread() != 0)
			return;
		note_error(args->result, weir_flush(&args->disk, event, 0));
		return;
	}
	for (u64 at = weir_thread() * args->step; at < args->blocks && status == WEIR_OK; at += stride) {
		u64 left = args->blocks - at;
		u32 count = left < args->step ? (u32)left : args->step;

		status = weir_block_async(&args->disk, args->opcode, args->lba + at, count,
					  args->buffer + (at << args->disk.block_log2), event);
		if (status == WEIR_OK)
			status = weir_block_wait(&args->disk, args->opcode, args->lba + at, count,
						 args->buffer + (at << args->disk.block_log2), event, 0);
	}
	note_error(args->result, status);
}
