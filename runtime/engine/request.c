/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/request.c: what the controller asks of an engine's medium, from submit() to its end.
 *
 * Owns: the runs of blocks that requests become on the medium behind, and reads.
 */
#include "request.h"

#include <stdlib.h>
#include <string.h>

#include "../base/crc32c.h"

bool engine_request_refuse(struct weir_io *io, u32 status)
{
	io->status = (uint16_t)status;
	io->done(io);
	return true;
}

struct engine_request *engine_request_create(struct weir_engine *engine, struct weir_io *io)
{
	u32 blocks = (u32)(io->bytes >> NVME_VOLUME_BLOCK_LOG2), moved = io->iov_count ? blocks : 0;
	size_t head = sizeof(struct engine_request) + blocks * sizeof(struct engine_piece);
	size_t runs = (head + 15) / 16 * 16;
	size_t iov = runs + moved * sizeof(struct engine_run);
	struct engine_request *request =
		malloc(iov + (io->iov_count + 2 * (size_t)moved) * sizeof(struct iovec));

	if (!request)
		return NULL;
	memset(request, 0, sizeof(*request));
	request->engine = engine;
	request->given = io;
	request->blocks = blocks;
	request->runs = (struct engine_run *)((char *)request + runs);
	request->iov = (struct iovec *)((char *)request + iov);
	return request;
}

static void request_end(struct engine_request *request)
{
	struct weir_io *given = request->given;

	given->status = request->status;
	request->engine->per_thread[given->thread].finished++;
	free(request);
	given->done(given);
}

static void append(struct engine_request **first, struct engine_request **last,
		   struct engine_request *request)
{
	request->next = NULL;
	if (*first)
		(*last)->next = request;
	else
		*first = request;
	*last = request;
}

/* ---- memory of the request, block by block ---- */

/* The next piece of memory of at most @most bytes. */
static struct iovec step(struct engine_cursor *cursor, size_t most)
{
	size_t left = cursor->at->iov_len - cursor->skip, bytes = left < most ? left : most;
	struct iovec piece = { (char *)cursor->at->iov_base + cursor->skip, bytes };

	cursor->skip += bytes;
	if (cursor->skip == cursor->at->iov_len) {
		cursor->at++;
		cursor->skip = 0;
	}
	return piece;
}

u32 engine_block_crc(struct engine_cursor *cursor)
{
	u32 crc = 0;

	for (size_t left = ENGINE_BLOCK_BYTES; left;) {
		struct iovec piece = step(cursor, left);

		crc = weir_crc32c(crc, piece.iov_base, piece.iov_len);
		left -= piece.iov_len;
	}
	return crc;
}

/* Zeros, or nothing but the way past it. */
void engine_block_pass(struct engine_cursor *cursor, bool zero)
{
	for (size_t left = ENGINE_BLOCK_BYTES; left;) {
		struct iovec piece = step(cursor, left);

		if (zero)
			memset(piece.iov_base, 0, piece.iov_len);
		left -= piece.iov_len;
	}
}

/* ---- runs ---- */

static void run_done(struct weir_io *io);

static void run_begin(struct engine_request *request, u32 index, struct iovec *iov)
{
	struct engine_run *run = &request->runs[request->run_count++];

	run->request = request;
	run->io = (struct weir_io){ .kind = request->given->kind,
				    .thread = request->given->thread,
				    .offset_bytes = engine_at(request->engine, index),
				    .iov = iov,
				    .done = run_done };
}

static void run_add(struct engine_request *request, struct engine_cursor *cursor)
{
	struct weir_io *io = &request->runs[request->run_count - 1].io;

	for (size_t left = ENGINE_BLOCK_BYTES; left;) {
		struct iovec piece = step(cursor, left);
		struct iovec *last = io->iov_count ? &io->iov[io->iov_count - 1] : NULL;

		if (last && (char *)last->iov_base + last->iov_len == (char *)piece.iov_base)
			last->iov_len += piece.iov_len;
		else
			io->iov[io->iov_count++] = piece;
		left -= piece.iov_len;
	}
	io->bytes += ENGINE_BLOCK_BYTES;
}

/* What of the request is on the medium behind, or goes there; the rest reads as zeros. */
static void make_runs(struct engine_request *request)
{
	struct engine_cursor cursor = { request->given->iov, 0 };
	struct iovec *iov = request->iov;
	u32 expected = ENGINE_NONE;

	for (u32 i = 0; i < request->blocks; i++) {
		u32 index = request->pieces[i].index;

		if (index == ENGINE_NONE) {
			engine_block_pass(&cursor, request->given->kind == WEIR_IO_READ);
			expected = ENGINE_NONE;
			continue;
		}
		if (index != expected) {
			if (request->run_count)
				iov += request->runs[request->run_count - 1].io.iov_count;
			run_begin(request, index, iov);
		}
		run_add(request, &cursor);
		expected = index + 1;
	}
}

static void finish(struct engine_request *request);

static void release(struct engine_request *request)
{
	if (!--request->running)
		finish(request);
}

static void run_done(struct weir_io *io)
{
	struct engine_request *request = ((struct engine_run *)io)->request;

	if (io->status && !request->status)
		request->status = io->status;
	release(request);
}

bool engine_request_push(struct engine_request *request)
{
	struct weir_engine *engine = request->engine;

	while (request->next_run < request->run_count) {
		request->running++;
		if (engine->behind->ops->submit(engine->behind, &request->runs[request->next_run].io)) {
			request->next_run++;
			continue;
		}
		request->running--;
		return false;
	}
	release(request); /* what running began with */
	return true;
}

void engine_request_start(struct engine_request *request)
{
	make_runs(request);
	request->running = 1;
	engine_arbiter_submit(&request->engine->per_thread[request->given->thread].arbiter, request);
}

/* Ends now, or when the journal is durable up to @commit (0: now). */
void engine_request_end_after(struct engine_request *request, u64 commit)
{
	struct engine_thread *thread = &request->engine->per_thread[request->given->thread];

	if (!commit) {
		request_end(request);
		return;
	}
	request->commit = commit;
	append(&thread->waiting, &thread->waiting_last, request);
}

/* ---- reads ---- */

/* Its erase blocks may be erased, as far as others have left them, too. */
static void unpin(struct engine_request *request)
{
	struct weir_engine *engine = request->engine;

	for (u32 i = 0; i < request->blocks; i++)
		if (request->pieces[i].index != ENGINE_NONE)
			engine_erase_of(engine, request->pieces[i].index)->readers--;
	if (!engine->blocked)
		return;
	engine->blocked = false;
	pthread_cond_broadcast(&engine->changed);
}

/* Where each block is; an erase block with readers is not erased. A read that had to wait may come by a map
 * that is no more: what that one placed here may have been dropped, and is no zeros. */
static u32 find(struct engine_request *request)
{
	struct weir_engine *engine = request->engine;
	u32 vid = request_vid(request->given), vba = request_vba(request->given),
	    status = engine_still(engine, vid, request->given->epochs | ~(u32)0);

	if (status)
		return status;
	for (u32 i = 0; i < request->blocks; i++) {
		u32 index = engine_find(engine, vid, vba + i);

		if (request->given->version &&
		    (index == ENGINE_NONE ||
		     engine_header(engine, index)->version != request->given->version))
			status = NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR;
		else if (index == ENGINE_NONE && engine->map.rebuilding)
			status = NVME_STATUS_VOLUME_NOT_HERE;
		if (index != ENGINE_NONE && engine_is_tombstone(engine, index))
			index = ENGINE_NONE;
		request->pieces[i].index = index;
		request->pieces[i].bad = false;
		if (index == ENGINE_NONE)
			continue;
		request->pieces[i].crc = engine->headers[index].crc;
		engine_erase_of(engine, index)->readers++;
	}
	if (status)
		unpin(request);
	return status;
}

/* How many blocks are not what was written. */
static u32 count_bad(struct engine_request *request)
{
	struct engine_cursor cursor = { request->given->iov, 0 };
	u32 bad = 0;

	for (u32 i = 0; i < request->blocks; i++) {
		struct engine_piece *piece = &request->pieces[i];

		if (piece->index == ENGINE_NONE)
			engine_block_pass(&cursor, false);
		else
			piece->bad = engine_block_crc(&cursor) != piece->crc;
		bad += piece->bad;
	}
	return bad;
}

/* Their erase blocks have a reader, so the headers are still theirs. Of several blocks that the medium behind
 * cannot read nobody knows which it was. */
static void note_damaged(struct engine_request *request)
{
	for (u32 i = 0; i < request->blocks; i++) {
		const struct engine_piece *piece = &request->pieces[i];

		if (piece->bad || (request->blocks == 1 && piece->index != ENGINE_NONE))
			request->engine->headers[piece->index].damaged = 1;
	}
}

static void read_finish(struct engine_request *request)
{
	struct weir_engine *engine = request->engine;
	u32 bad = request->status ? 0 : count_bad(request);

	if (bad)
		request->status = NVME_STATUS_UNRECOVERED_READ;
	engine_lock(engine);
	engine->status.bad_blocks += bad;
	if (request->status)
		note_damaged(request);
	unpin(request);
	engine_unlock(engine);
	request_end(request);
}

static bool submit_read(struct weir_engine *engine, struct weir_io *io)
{
	struct engine_request *request = engine_request_create(engine, io);
	u32 status;

	if (!request)
		return engine_request_refuse(io, NVME_STATUS_INTERNAL_ERROR);
	engine_lock(engine);
	status = find(request);
	request->weight = engine_volume_weight(engine, request_vid(io));
	engine_unlock(engine);
	if (status) {
		free(request);
		return engine_request_refuse(io, status);
	}
	engine_request_start(request);
	return true;
}

static void finish(struct engine_request *request)
{
	request->engine->per_thread[request->given->thread].arbiter.blocks -= request->blocks;
	if (request->given->kind == WEIR_IO_READ)
		read_finish(request);
	else
		engine_write_finish(request);
}

static bool submit_flush(struct weir_engine *engine, struct weir_io *io)
{
	struct engine_request *request = engine_request_create(engine, io);
	u64 commit;

	if (!request)
		return engine_request_refuse(io, NVME_STATUS_INTERNAL_ERROR);
	engine_lock(engine);
	commit = engine_want_commit(engine);
	engine_unlock(engine);
	engine_request_end_after(request, commit);
	return true;
}

bool engine_submit(struct weir_medium *medium, struct weir_io *io)
{
	struct weir_engine *engine = weir_engine_of(medium);

	switch (io->kind) {
	case WEIR_IO_READ: return submit_read(engine, io);
	case WEIR_IO_WRITE: return engine_submit_write(engine, io);
	case WEIR_IO_FLUSH: return submit_flush(engine, io);
	default: return engine_submit_zero(engine, io);
	}
}

/* ---- polls ---- */

static void end_committed(struct weir_engine *engine, struct engine_thread *thread)
{
	u64 committed;
	bool failed;

	if (!thread->waiting)
		return;
	engine_lock(engine);
	committed = engine->committed;
	failed = engine->failed;
	engine_unlock(engine);
	while (thread->waiting && (failed || thread->waiting->commit <= committed)) {
		struct engine_request *request = thread->waiting;

		thread->waiting = request->next;
		if (request->commit > committed)
			request->status = NVME_STATUS_WRITE_FAULT;
		request_end(request);
	}
}

unsigned engine_poll(struct weir_medium *medium, unsigned index)
{
	struct weir_engine *engine = weir_engine_of(medium);
	struct engine_thread *thread = &engine->per_thread[index];

	thread->finished = 0;
	if (!engine->started && !index)
		weir_engine_step(engine);
	engine_arbiter_run(&thread->arbiter);
	engine->behind->ops->poll(engine->behind, index);
	engine_arbiter_run(&thread->arbiter);
	end_committed(engine, thread);
	return thread->finished;
}
