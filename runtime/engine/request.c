/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/request.c: what the controller asks of an engine's medium, from submit() to its end.
 *
 * Owns: requests, and the runs of blocks that they become on the medium behind. A change is made in the table
 * when its data is there: whether it still may is checked once more then, so that nothing of an epoch that
 * has passed appears after the command that made it pass has ended.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/crc32c.h"
#include "parts.h"

/** struct engine_run - blocks that lie behind one another on both sides; @io first */
struct engine_run {
	struct weir_io io;
	struct engine_request *request;
};

/** struct engine_piece - a block of a request: @index of its header, or ENGINE_NONE: nothing is moved */
struct engine_piece {
	u32 index;
	u32 crc;
};

/**
 * struct engine_request - one of the controller's requests
 * @next: in a list of its thread
 * @commit: that it waits for
 * @running: runs under way, and one while they are being submitted
 * @fresh: blocks that the table did not have
 * @iov: of all runs
 */
struct engine_request {
	struct weir_engine *engine;
	struct weir_io *given;
	struct engine_request *next;
	u64 commit;
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

static u32 vid_of(const struct weir_io *io)
{
	return (u32)(io->offset_bytes >> (32 + NVME_VOLUME_BLOCK_LOG2));
}

static u32 vba_of(const struct weir_io *io)
{
	return (u32)(io->offset_bytes >> NVME_VOLUME_BLOCK_LOG2);
}

static bool end_at_once(struct weir_io *io, u32 status)
{
	io->status = (uint16_t)status;
	io->done(io);
	return true;
}

static struct engine_request *request_create(struct weir_engine *engine, struct weir_io *io)
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

/** struct cursor - somewhere in the segments of a request */
struct cursor {
	const struct iovec *at;
	size_t skip;
};

/* The next piece of memory of at most @most bytes. */
static struct iovec step(struct cursor *cursor, size_t most)
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

static u32 block_crc(struct cursor *cursor)
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
static void block_pass(struct cursor *cursor, bool zero)
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

static void run_add(struct engine_request *request, struct cursor *cursor)
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
	struct cursor cursor = { request->given->iov, 0 };
	struct iovec *iov = request->iov;
	u32 expected = ENGINE_NONE;

	for (u32 i = 0; i < request->blocks; i++) {
		u32 index = request->pieces[i].index;

		if (index == ENGINE_NONE) {
			block_pass(&cursor, request->given->kind == WEIR_IO_READ);
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

/* Submit what is left; false: the medium behind takes no more now, and the request is in the backlog. */
static bool push(struct engine_request *request)
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

static void start(struct engine_request *request)
{
	struct engine_thread *thread = &request->engine->per_thread[request->given->thread];

	make_runs(request);
	request->running = 1;
	if (thread->backlog || !push(request))
		append(&thread->backlog, &thread->backlog_last, request);
}

/* Ends now, or when the journal is durable up to @commit (0: now). */
static void end_after(struct engine_request *request, u64 commit)
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

static void unpin(struct engine_request *request)
{
	struct weir_engine *engine = request->engine;

	for (u32 i = 0; i < request->blocks; i++)
		if (request->pieces[i].index != ENGINE_NONE)
			engine_erase_of(engine, request->pieces[i].index)->readers--;
}

enum version { VERSION_NEW, VERSION_EQUAL, VERSION_OLD };

static enum version compare(const struct weir_engine *engine, const struct engine_slot *slot, u64 version)
{
	u64 is = slot ? engine->headers[slot->index].version : 0;

	if (!slot || version > is)
		return VERSION_NEW;
	return version == is ? VERSION_EQUAL : VERSION_OLD;
}

/* Where each block is; an erase block with readers is not erased. */
static u32 find(struct engine_request *request)
{
	struct weir_engine *engine = request->engine;
	u32 vid = vid_of(request->given), vba = vba_of(request->given), status = NVME_STATUS_SUCCESS;

	for (u32 i = 0; i < request->blocks; i++) {
		const struct engine_slot *slot = engine_table_find(engine, vid, vba + i);
		u32 index = slot ? slot->index : ENGINE_NONE;

		if (request->given->version &&
		    compare(engine, slot, request->given->version) != VERSION_EQUAL)
			status = NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR;
		else if (!slot && engine->map.rebuilding)
			status = NVME_STATUS_VOLUME_NOT_HERE;
		if (slot && engine_is_tombstone(engine, index))
			index = ENGINE_NONE;
		request->pieces[i].index = index;
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
static u32 count_bad(const struct engine_request *request)
{
	struct cursor cursor = { request->given->iov, 0 };
	u32 bad = 0;

	for (u32 i = 0; i < request->blocks; i++) {
		if (request->pieces[i].index == ENGINE_NONE)
			block_pass(&cursor, false);
		else
			bad += block_crc(&cursor) != request->pieces[i].crc;
	}
	return bad;
}

static void read_finish(struct engine_request *request)
{
	struct weir_engine *engine = request->engine;
	u32 bad = request->status ? 0 : count_bad(request);

	if (bad)
		request->status = NVME_STATUS_UNRECOVERED_READ;
	engine_lock(engine);
	engine->status.bad_blocks += bad;
	unpin(request);
	engine_unlock(engine);
	request_end(request);
}

static bool submit_read(struct weir_engine *engine, struct weir_io *io)
{
	struct engine_request *request = request_create(engine, io);
	u32 status;

	if (!request)
		return end_at_once(io, NVME_STATUS_INTERNAL_ERROR);
	engine_lock(engine);
	status = find(request);
	engine_unlock(engine);
	if (status) {
		free(request);
		return end_at_once(io, status);
	}
	start(request);
	return true;
}

/* ---- changes ---- */

/* Which blocks are new: @wanted, and @request's fresh of them are in the table for the first time. */
static u32 sort_out(struct engine_request *request, u32 *wanted)
{
	const struct weir_engine *engine = request->engine;
	const struct weir_io *io = request->given;
	u32 vid = vid_of(io), vba = vba_of(io);

	*wanted = 0;
	for (u32 i = 0; i < request->blocks; i++) {
		const struct engine_slot *slot = engine_table_find(engine, vid, vba + i);
		enum version version = compare(engine, slot, io->version + i);

		if (version == VERSION_OLD)
			return NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR;
		request->pieces[i].index = version == VERSION_EQUAL ? ENGINE_NONE : 0;
		*wanted += version == VERSION_NEW;
		request->fresh +=
			version == VERSION_NEW && (!slot || engine_is_tombstone(engine, slot->index));
	}
	return engine->failed ? NVME_STATUS_WRITE_FAULT : engine_still(engine, vid, io->epochs);
}

/* Header @index, which was taken, is of block @i of @request from now on, if that still may be. */
static u32 put(struct engine_request *request, u32 i, u32 index)
{
	struct weir_engine *engine = request->engine;
	const struct weir_io *io = request->given;
	struct engine_header *header = &engine->headers[index];
	u32 vid = vid_of(io), vba = vba_of(io) + i;
	enum version version = compare(engine, engine_table_find(engine, vid, vba), io->version + i);

	if (version != VERSION_NEW) {
		engine_give_back(engine, index);
		return version == VERSION_OLD ? NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR
					      : NVME_STATUS_SUCCESS;
	}
	header->version = io->version + i;
	header->vba = vba;
	header->vid = (u16)vid;
	header->crc = request->pieces[i].crc;
	if (!engine_install(engine, index)) {
		engine_give_back(engine, index);
		return NVME_STATUS_CAPACITY_EXCEEDED;
	}
	engine_record_block(engine, index);
	return NVME_STATUS_SUCCESS;
}

/* All data is there, or the medium behind has failed. */
static u32 write_settle(struct engine_request *request)
{
	struct weir_engine *engine = request->engine;
	u32 status = request->status;

	if (!status)
		status = engine_still(engine, vid_of(request->given), request->given->epochs);
	engine->coming -= request->fresh;
	for (u32 i = 0; i < request->blocks; i++) {
		u32 index = request->pieces[i].index, of_block;

		if (index == ENGINE_NONE)
			continue;
		if (request->status ||
		    (status && status != (NVME_STATUS_VOLUME_OLD_VERSION | NVME_STATUS_DNR))) {
			engine_give_back(engine, index);
			continue;
		}
		of_block = put(request, i, index);
		status = status ? status : of_block;
		engine->status.user_writes += !of_block;
	}
	return status;
}

static void write_finish(struct engine_request *request)
{
	struct weir_engine *engine = request->engine;
	u64 commit = 0;

	engine_lock(engine);
	request->status = (u16)write_settle(request);
	if (!request->status && request->given->force_unit_access)
		commit = engine_want_commit(engine);
	engine_unlock(engine);
	end_after(request, commit);
}

static void finish(struct engine_request *request)
{
	if (request->given->kind == WEIR_IO_READ)
		read_finish(request);
	else
		write_finish(request);
}

/* Blocks to write to; false: not now, garbage is to be collected first. */
static bool take(struct engine_request *request, u32 wanted, u32 *status)
{
	struct weir_engine *engine = request->engine;

	if (engine->status.used + engine->coming + request->fresh > engine->shape.user_blocks) {
		*status = NVME_STATUS_CAPACITY_EXCEEDED;
		return true;
	}
	if (!engine_can_take(engine, wanted)) {
		engine_want_space(engine);
		return false;
	}
	engine->coming += request->fresh;
	engine->status.medium_writes += wanted;
	for (u32 i = 0; i < request->blocks; i++)
		if (request->pieces[i].index != ENGINE_NONE)
			request->pieces[i].index = engine_take(engine, false);
	if (engine->free_erases <= ENGINE_LOW_ERASE)
		engine_want_space(engine);
	return true;
}

static void fill_crcs(struct engine_request *request)
{
	struct cursor cursor = { request->given->iov, 0 };

	for (u32 i = 0; i < request->blocks; i++) {
		if (request->pieces[i].index == ENGINE_NONE)
			block_pass(&cursor, false);
		else
			request->pieces[i].crc = block_crc(&cursor);
	}
}

static bool submit_write(struct weir_engine *engine, struct weir_io *io)
{
	struct engine_request *request = request_create(engine, io);
	u32 status, wanted;
	bool taken = true;

	if (!request)
		return end_at_once(io, NVME_STATUS_INTERNAL_ERROR);
	engine_lock(engine);
	status = sort_out(request, &wanted);
	if (!status)
		taken = take(request, wanted, &status);
	engine_unlock(engine);
	if (status || !taken) {
		free(request);
		return taken ? end_at_once(io, status) : false;
	}
	fill_crcs(request);
	start(request);
	return true;
}

static u32 bury(struct engine_request *request)
{
	u32 status = NVME_STATUS_SUCCESS;

	for (u32 i = 0; i < request->blocks && !status; i++) {
		u32 index;

		if (request->pieces[i].index == ENGINE_NONE)
			continue;
		index = engine_take_tombstone(request->engine);
		if (index == ENGINE_NONE)
			return NVME_STATUS_CAPACITY_EXCEEDED;
		request->pieces[i].crc = 0;
		status = put(request, i, index);
	}
	return status;
}

/* A tombstone for each block: what was there is gone, and older versions do not come back. */
static bool submit_zero(struct weir_engine *engine, struct weir_io *io)
{
	struct engine_request *request = request_create(engine, io);
	u32 wanted;
	u64 commit = 0;

	if (!request)
		return end_at_once(io, NVME_STATUS_INTERNAL_ERROR);
	engine_lock(engine);
	request->status = (u16)sort_out(request, &wanted);
	if (!request->status)
		request->status = (u16)bury(request);
	if (!request->status && io->force_unit_access)
		commit = engine_want_commit(engine);
	engine_unlock(engine);
	end_after(request, commit);
	return true;
}

static bool submit_flush(struct weir_engine *engine, struct weir_io *io)
{
	struct engine_request *request = request_create(engine, io);
	u64 commit;

	if (!request)
		return end_at_once(io, NVME_STATUS_INTERNAL_ERROR);
	engine_lock(engine);
	commit = engine_want_commit(engine);
	engine_unlock(engine);
	end_after(request, commit);
	return true;
}

bool engine_submit(struct weir_medium *medium, struct weir_io *io)
{
	struct weir_engine *engine = weir_engine_of(medium);

	switch (io->kind) {
	case WEIR_IO_READ: return submit_read(engine, io);
	case WEIR_IO_WRITE: return submit_write(engine, io);
	case WEIR_IO_FLUSH: return submit_flush(engine, io);
	default: return submit_zero(engine, io);
	}
}

/* ---- polls ---- */

static void push_backlog(struct engine_thread *thread)
{
	while (thread->backlog) {
		struct engine_request *request = thread->backlog;

		thread->backlog = request->next; /* first: it may end inside, and others be submitted */
		if (push(request))
			continue;
		if (!thread->backlog)
			thread->backlog_last = request;
		request->next = thread->backlog;
		thread->backlog = request;
		return;
	}
}

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
	push_backlog(thread);
	engine->behind->ops->poll(engine->behind, index);
	end_committed(engine, thread);
	return thread->finished;
}
