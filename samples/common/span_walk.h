/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * span_walk.h: lanes move a range of a storage, in commands of a piece each. All lanes of a wave call
 * together, with the same range; those that have no piece go along with a command of no blocks, which is
 * refused at once.
 */
#ifndef SAMPLE_SPAN_WALK_H
#define SAMPLE_SPAN_WALK_H

#include <weir/disk.h>

#include "span.h"

/* Blocks of the piece that begins @from bytes into a range of @bytes, whole blocks; 0: there is none. */
WEIR_FN u32 sample_span_blocks(WEIR_GLOBAL struct sample_span *span, u64 from, u64 bytes)
{
	u64 left = from < bytes ? bytes - from : 0;

	return (u32)((left < span->piece_bytes ? left : span->piece_bytes) >> span->disk.block_log2);
}

/** sample_span_start() - submit the piece that begins @from bytes into the range */
WEIR_FN void sample_span_start(WEIR_GLOBAL struct sample_span *span, u32 opcode, u64 at, u64 bytes, u64 from,
			       weir_addr buffer, WEIR_GLOBAL struct weir_event *event)
{
	(void)weir_block_async(&span->disk, opcode, (at + from) >> span->disk.block_log2,
			       sample_span_blocks(span, from, bytes), buffer + from, event);
}

/** sample_span_finish() - wait for it; what fails is noted */
WEIR_FN void sample_span_finish(WEIR_GLOBAL struct sample_span *span, u32 opcode, u64 at, u64 bytes, u64 from,
				weir_addr buffer, WEIR_GLOBAL struct weir_event *event)
{
	u32 blocks = sample_span_blocks(span, from, bytes);
	weir_status status = weir_block_wait(&span->disk, opcode, (at + from) >> span->disk.block_log2,
					     blocks, buffer + from, event, 0);

	if (blocks && status != WEIR_OK) /* relaxed: any one of them will do; read after the kernel */
		weir_store_u64_relaxed_dev(weir_at(span->failure, weir_shared_u64, 0), status);
}

/**
 * sample_span_move() - the lanes of a wave read or write a range, a piece each at a time
 * @span: the storage
 * @opcode: NVME_OPCODE_READ or NVME_OPCODE_WRITE
 * @at: first byte of the range on the storage, of whole blocks like @bytes
 * @bytes: its length
 * @buffer: device address of as many
 * @event: this lane's
 *
 * The caller synchronizes the wave before, where lanes have written to the buffer, and afterwards.
 */
WEIR_FN void sample_span_move(WEIR_GLOBAL struct sample_span *span, u32 opcode, u64 at, u64 bytes,
			      weir_addr buffer, WEIR_GLOBAL struct weir_event *event)
{
	for (u64 first = 0; first < bytes; first += weir_lanes() * span->piece_bytes) {
		u64 from = first + weir_lane() * span->piece_bytes;

		sample_span_start(span, opcode, at, bytes, from, buffer, event);
		sample_span_finish(span, opcode, at, bytes, from, buffer, event);
	}
}

/** sample_span_failed() - has a command of any lane failed? */
WEIR_FN u32 sample_span_failed(WEIR_GLOBAL struct sample_span *span)
{
	/* relaxed: it ends a loop early, no more */
	return weir_load_u64_relaxed_dev(weir_at(span->failure, weir_shared_u64, 0)) != 0;
}

#endif
