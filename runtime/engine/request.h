/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/request.h: requests under way; private to this folder.
 *
 * Owns: what reads (request.c) and changes (change.c) share. A request belongs to the thread that submitted
 * it.
 */
#ifndef WEIR_ENGINE_REQUEST_H
#define WEIR_ENGINE_REQUEST_H

#include "parts.h"

/** struct engine_run - blocks that lie behind one another on both sides; @io first */
struct engine_run {
	struct weir_io io;
	struct engine_request *request;
};

/** struct engine_piece - a block of a request: @index of its header, or ENGINE_NONE: nothing is moved; @bad:
 * what was read is not what was written */
struct engine_piece {
	u32 index;
	u32 crc;
	bool bad;
};

/**
 * struct engine_request - one of the controller's requests
 * @next: in a list of its thread
 * @commit: that it waits for
 * @weight: of its volume
 * @running: runs under way, and one while they are being submitted
 * @fresh: blocks that the table did not have
 * @iov: of all runs
 */
struct engine_request {
	struct weir_engine *engine;
	struct weir_io *given;
	struct engine_request *next;
	u64 commit;
	u32 weight;
	u32 blocks;
	u32 run_count;
	u32 next_run;
	u32 running;
	u32 fresh;
	u16 status;
	struct engine_run *runs;
	struct iovec *iov;
	struct engine_piece pieces[];
};

static inline u32 request_vid(const struct weir_io *io)
{
	return (u32)(io->offset_bytes >> (32 + NVME_VOLUME_BLOCK_LOG2));
}

static inline u32 request_vba(const struct weir_io *io)
{
	return (u32)(io->offset_bytes >> NVME_VOLUME_BLOCK_LOG2);
}

/** struct engine_cursor - somewhere in the segments of a request */
struct engine_cursor {
	const struct iovec *at;
	size_t skip;
};

/** engine_request_create() - NULL: there is no memory */
struct engine_request *engine_request_create(struct weir_engine *engine, struct weir_io *io);
/** engine_request_refuse() - end one that was not begun; true */
bool engine_request_refuse(struct weir_io *io, u32 status);
/** engine_request_start() - ask the medium behind, as its pieces say */
void engine_request_start(struct engine_request *request);
/** engine_request_end_after() - it ends when the journal is durable up to @commit; 0: now */
void engine_request_end_after(struct engine_request *request, u64 commit);
/** engine_request_push() - submit what is left; false: the medium behind takes no more now */
bool engine_request_push(struct engine_request *request);
/** engine_block_crc() - of the next block of memory */
u32 engine_block_crc(struct engine_cursor *cursor);
/** engine_block_pass() - go past the next block of memory, and clear it if @zero */
void engine_block_pass(struct engine_cursor *cursor, bool zero);

/* arbiter.c */

/** engine_arbiter_submit() - begin @request, or queue it */
void engine_arbiter_submit(struct engine_arbiter *arbiter, struct engine_request *request);
/** engine_arbiter_run() - begin as many of those that wait as the window has room for */
void engine_arbiter_run(struct engine_arbiter *arbiter);

/* change.c */

bool engine_submit_write(struct weir_engine *engine, struct weir_io *io);
bool engine_submit_zero(struct weir_engine *engine, struct weir_io *io);
/** engine_write_finish() - the medium behind has its data, or has failed */
void engine_write_finish(struct engine_request *request);

#endif
