/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/load.c: from what is on the medium to an engine that goes on from there.
 *
 * Owns: which checkpoint and how much of the journal count. What is damaged is refused with a sentence; of a
 * page of the journal whose last write was cut off by a loss of power, and of those behind it, nothing was
 * acknowledged as durable.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "../backend/error.h"
#include "pages.h"

static struct engine_page *buffer_page(const struct weir_engine *engine, u32 index)
{
	return (struct engine_page *)(void *)engine->buffer + index;
}

static bool is_zero(const struct engine_page *page)
{
	const u8 *bytes = (const u8 *)page;

	return !bytes[0] && !memcmp(bytes, bytes + 1, sizeof(*page) - 1);
}

/* ---- formatting ---- */

static void fill_super(const struct weir_engine *engine, struct engine_page *page)
{
	memset(page, 0, sizeof(*page));
	page->magic = ENGINE_MAGIC_SUPER;
	page->format = engine->format;
	page->bytes = sizeof(engine->shape);
	memcpy(page->records, &engine->shape, sizeof(engine->shape));
	engine_page_seal(page);
}

static int write_super(struct weir_engine *engine, u64 block)
{
	u32 status;

	fill_super(engine, buffer_page(engine, 0));
	status = engine_io(engine, WEIR_IO_WRITE, block, engine->buffer, 1, true);
	return status ? engine_io_failed(status, block) : 0;
}

/* The superblocks come last: what was not formatted to its end is not an engine's. */
static int format(struct weir_engine *engine)
{
	u32 status;
	int error;

	if (getrandom(&engine->format, sizeof(engine->format), 0) != sizeof(engine->format))
		engine->format = (uintptr_t)engine;
	engine->format |= 1;
	status = engine_checkpoint(engine);
	if (status)
		return engine_io_failed(status, engine->shape.checkpoint);
	error = write_super(engine, 1);
	return error ? error : write_super(engine, 0);
}

/* ---- superblocks ---- */

static int check_super(struct weir_engine *engine, struct engine_page *page, bool *is)
{
	*is = engine_page_is(page, ENGINE_MAGIC_SUPER, page->format) && page->format &&
	      page->bytes == sizeof(engine->shape);
	if (!*is)
		return 0;
	if (memcmp(page->records, &engine->shape, sizeof(engine->shape)) != 0)
		return weir_fail(EINVAL,
				 "an engine was formatted on a medium of another size; `weir-engine format` "
				 "makes a new one of it");
	engine->format = page->format;
	return 0;
}

/* 0: there is one; 1: the medium is empty. */
static int read_super(struct weir_engine *engine)
{
	u32 status = engine_io(engine, WEIR_IO_READ, 0, engine->buffer, 2, false);
	bool first, second, empty;
	int error;

	if (status)
		return engine_io_failed(status, 0);
	empty = is_zero(buffer_page(engine, 0)) && is_zero(buffer_page(engine, 1));
	error = check_super(engine, buffer_page(engine, 1), &second);
	if (!error)
		error = check_super(engine, buffer_page(engine, 0), &first);
	if (error)
		return error;
	if (empty)
		return 1;
	if (!first && !second)
		return weir_fail(EINVAL,
				 "no engine is on the medium, but something else; `weir-engine format` makes "
				 "one of it");
	if (first && second)
		return 0;
	weir_report("superblock %d of an engine was damaged; the other one is in use", first ? 1 : 0);
	return engine->read_only ? 0 : write_super(engine, first ? 1 : 0);
}

/* ---- the journal ---- */

/** struct ring - what all pages of the journal say together */
struct ring {
	u64 last;    /* greatest sequence number, and one */
	u64 durable; /* all pages before this one were */
};

static void merge(struct ring *ring, const struct ring *other)
{
	if (other->last > ring->last)
		ring->last = other->last;
	if (other->durable > ring->durable)
		ring->durable = other->durable;
}

static void note(const struct engine_page *page, struct ring *ring)
{
	merge(ring, &(struct ring){ page->sequence + 1, page->mark });
}

/** struct scanning - the journal, read by several threads; the rest under the engine's lock */
struct scanning {
	struct weir_engine *engine;
	struct ring ring;
	u32 status; /* of block @block, the first that could not be read */
	u64 block;
};

/* @count pages from @at on, which have room in a buffer. */
static void scan_pages(struct scanning *scanning, u32 at, u32 count, const struct engine_hand *hand)
{
	struct weir_engine *engine = scanning->engine;
	u64 block = engine->shape.journal + at;
	struct ring ring = { 0, 0 };
	u32 status = engine_ask(engine, &(struct engine_ask){ .kind = WEIR_IO_READ,
							      .block = block,
							      .data = hand->buffer,
							      .blocks = count,
							      .thread = hand->thread });

	for (u32 i = 0; i < count && !status; i++) {
		struct engine_page *page = (struct engine_page *)(void *)hand->buffer + i;

		if (engine_page_is(page, ENGINE_MAGIC_JOURNAL, engine->format))
			note(page, &ring);
	}
	engine_lock(engine);
	merge(&scanning->ring, &ring);
	if (status && !scanning->status) {
		scanning->status = status;
		scanning->block = block;
	}
	engine_unlock(engine);
}

static void scan_part(void *argument, u32 part, const struct engine_hand *hand)
{
	struct scanning *scanning = argument;
	u32 at = part * ENGINE_PAGES, left = scanning->engine->shape.journal_blocks - at;

	scan_pages(scanning, at, left < ENGINE_PAGES ? left : ENGINE_PAGES, hand);
}

static int scan(struct weir_engine *engine, struct ring *ring)
{
	struct scanning scanning = { .engine = engine };

	engine_divide(engine, (engine->shape.journal_blocks + ENGINE_PAGES - 1) / ENGINE_PAGES, scan_part,
		      &scanning);
	*ring = scanning.ring;
	return scanning.status ? engine_io_failed(scanning.status, scanning.block) : 0;
}

static int replay(struct weir_engine *engine)
{
	struct engine_page *page = buffer_page(engine, 0);

	for (;; engine->journal_head++) {
		u64 block = engine->shape.journal + engine->journal_head % engine->shape.journal_blocks;
		u32 status = engine_io(engine, WEIR_IO_READ, block, page, 1, false);

		if (status)
			return engine_io_failed(status, block);
		if (!engine_page_is(page, ENGINE_MAGIC_JOURNAL, engine->format) ||
		    page->sequence != engine->journal_head)
			return 0;
		if (!engine_page_apply(engine, page))
			return engine_damaged("journal", block);
	}
}

/* What was there when a later page was written must still be there. */
static int check_end(const struct weir_engine *engine, const struct ring *ring)
{
	if (engine->journal_head >= ring->durable && engine->journal_head >= engine->journal_least)
		return 0;
	return engine_damaged("journal",
			      engine->shape.journal + engine->journal_head % engine->shape.journal_blocks);
}

static void settle_erase(void *argument, u32 at, const struct engine_hand *hand)
{
	struct weir_engine *engine = argument;
	struct engine_header *headers = &engine->headers[at * engine->shape.erase_blocks];
	u32 valid = engine->erases[at].valid;

	(void)hand;
	engine->erases[at].state = valid ? ENGINE_ERASE_FULL : ENGINE_ERASE_FREE;
	if (valid == engine->shape.erase_blocks)
		return;
	for (u32 i = 0; i < engine->shape.erase_blocks; i++)
		if (headers[i].state != ENGINE_VALID)
			headers[i].state = valid ? ENGINE_DEAD : ENGINE_FREE;
}

/* Nothing is written behind what was written before: erase blocks are free, or full. */
static void settle(struct weir_engine *engine)
{
	engine_divide(engine, engine->shape.erase_count, settle_erase, engine);
	engine->free_erases = 0;
	for (u32 i = 0; i < engine->shape.erase_count; i++)
		engine->free_erases += engine->erases[i].state == ENGINE_ERASE_FREE;
}

/* From here on an end that is not in order leaves doubt, although nothing else was written since the start.
 */
static int note_open(struct weir_engine *engine)
{
	engine_lock(engine);
	engine_want_commit(engine);
	engine_unlock(engine);
	(void)engine_commit(engine);
	return engine->failed ? engine_io_failed(NVME_STATUS_WRITE_FAULT, engine->shape.journal) : 0;
}

/* Drop what there is that must not be, @dropped: something. */
static int drop_rest(struct weir_engine *engine, bool *dropped)
{
	u64 had = engine->status.used + engine->tombstone_count;
	int error = engine_sweep_loaded(engine);

	*dropped = engine->status.used + engine->tombstone_count != had;
	return error;
}

static int restore(struct weir_engine *engine)
{
	struct ring ring = { 0, 0 };
	bool dropped = false;
	u32 status;
	int error = engine_checkpoint_read(engine);

	if (error)
		return error;
	error = scan(engine, &ring);
	if (!error)
		error = replay(engine);
	if (!error)
		error = check_end(engine, &ring);
	if (!error)
		error = drop_rest(engine, &dropped);
	if (error)
		return error;
	settle(engine);
	if (engine->read_only)
		return 0;
	if (engine->journal_head == engine->journal_since && !engine->journal_least && !dropped &&
	    ring.last <= engine->journal_head)
		return note_open(engine);
	if (engine->journal_head < ring.last)
		engine->journal_head =
			ring.last; /* pages that were cut off must not seem to follow new ones */
	status = engine_checkpoint(engine);
	return status ? engine_io_failed(status, engine->shape.checkpoint) : 0;
}

/* A format that is not finished leaves nothing that looks like an engine. */
static int erase(struct weir_engine *engine)
{
	u32 status;

	memset(engine->buffer, 0, 2 * ENGINE_BLOCK_BYTES);
	status = engine_io(engine, WEIR_IO_WRITE, 0, engine->buffer, 2, true);
	return status ? engine_io_failed(status, 0) : format(engine);
}

int engine_load(struct weir_engine *engine)
{
	int error;

	if (engine->anew)
		return erase(engine);
	error = read_super(engine);

	if (error > 0 && engine->read_only)
		return weir_fail(ENODATA, "no engine is on the medium: it is empty");
	return error > 0 ? format(engine) : error ? error : restore(engine);
}
