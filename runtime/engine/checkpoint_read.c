/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/checkpoint_read.c: a checkpoint from the medium into memory.
 *
 * Owns: which of the two counts. Blocks are most of it: of a large one several threads read the parts, each
 * the shards of its own.
 */
#include <string.h>

#include "pages.h"

/**
 * struct found - a checkpoint's head
 * @generation: 0: there is none
 * @parts: pages where they begin; @part_count: 0: all pages are read one after the other
 */
struct found {
	u64 generation;
	u64 since;
	u64 pages;
	u64 slot;
	u32 part_count;
	u32 parts[ENGINE_PARTS + 1];
};

enum ended { ENDED_WELL, ENDED_TORN, ENDED_SENSELESS, ENDED_UNREAD };

/** struct end - of reading pages; at block @block, if not well */
struct end {
	enum ended how;
	u64 block;
	u32 status;
};

/** struct reader - who reads pages of @found */
struct reader {
	struct weir_engine *engine;
	const struct found *found;
	const struct engine_hand *hand;
};

/* The parts follow one another to the last page. */
static bool are_parts(const struct weir_engine *engine, const struct found *found)
{
	bool are = found->part_count == engine_checkpoint_parts(engine);

	for (u32 i = 0; are && i < found->part_count; i++)
		are = found->parts[i] <= found->parts[i + 1];
	return are;
}

static bool fill_found(const struct weir_engine *engine, const struct engine_page *page, struct found *found)
{
	if (page->reserved >= engine->shape.checkpoint_blocks || page->bytes > ENGINE_PARTS * sizeof(u32))
		return false;
	found->since = page->sequence;
	found->pages = page->reserved;
	found->part_count = page->bytes / (u32)sizeof(u32);
	memcpy(found->parts, page->records, page->bytes);
	found->parts[found->part_count] = (u32)found->pages;
	return !found->part_count || are_parts(engine, found);
}

static int read_head(struct weir_engine *engine, u64 which, struct found *found)
{
	struct engine_page *page = (struct engine_page *)(void *)engine->buffer;
	u64 slot = engine_checkpoint_slot(engine, which);
	u32 status = engine_io(engine, WEIR_IO_READ, slot, page, 1, false);

	*found = (struct found){ .slot = slot };
	if (status)
		return engine_io_failed(status, slot);
	if (engine_page_is(page, ENGINE_MAGIC_HEAD, engine->format) && page->mark % 2 == which &&
	    fill_found(engine, page, found))
		found->generation = page->mark;
	return 0;
}

static enum ended use_page(const struct reader *reader, struct engine_page *page, u64 sequence)
{
	if (!engine_page_is(page, ENGINE_MAGIC_CHECKPOINT, reader->engine->format) ||
	    page->mark != reader->found->generation || page->sequence != sequence)
		return ENDED_TORN;
	return engine_page_apply(reader->engine, page) ? ENDED_WELL : ENDED_SENSELESS;
}

/* Pages @at to @last - 1. */
static struct end read_pages(const struct reader *reader, u64 at, u64 last)
{
	u64 slot = reader->found->slot + 1;
	struct end end = { ENDED_WELL, 0, 0 };

	while (at < last && end.how == ENDED_WELL) {
		u32 count = last - at < ENGINE_PAGES ? (u32)(last - at) : ENGINE_PAGES;

		end.status =
			engine_ask(reader->engine, &(struct engine_ask){ .kind = WEIR_IO_READ,
									 .block = slot + at,
									 .data = reader->hand->buffer,
									 .blocks = count,
									 .thread = reader->hand->thread });
		if (end.status)
			return (struct end){ ENDED_UNREAD, slot + at, end.status };
		for (u32 i = 0; i < count && end.how == ENDED_WELL; i++, at++) {
			end.how =
				use_page(reader, (struct engine_page *)(void *)reader->hand->buffer + i, at);
			end.block = slot + at;
		}
	}
	return end;
}

/* ---- parts ---- */

/** struct reading - parts that threads read; @end: the first that is not well; under the engine's lock */
struct reading {
	struct weir_engine *engine;
	const struct found *found;
	struct end end;
};

static bool is_well(struct reading *reading)
{
	bool is;

	engine_lock(reading->engine);
	is = reading->end.how == ENDED_WELL;
	engine_unlock(reading->engine);
	return is;
}

static void read_part(void *argument, u32 part, const struct engine_hand *hand)
{
	struct reading *reading = argument;
	const u32 *parts = reading->found->parts;
	struct end end;

	if (!is_well(reading))
		return;
	end = read_pages(&(struct reader){ reading->engine, reading->found, hand }, parts[part],
			 parts[part + 1]);
	engine_lock(reading->engine);
	if (reading->end.how == ENDED_WELL)
		reading->end = end;
	engine_unlock(reading->engine);
}

/* ---- all of it ---- */

/* What moved while the checkpoint was written is valid if the table leads there. */
static void settle_moved(struct weir_engine *engine, u32 index)
{
	struct engine_header *header = &engine->headers[index];
	bool leads;

	engine_lock(engine); /* another thread may have one that is forgotten */
	leads = engine_table_find(engine, header->vid, header->vba) == index;
	engine_unlock(engine);
	header->state = leads ? ENGINE_VALID : ENGINE_DEAD;
}

/* Of a volume that there was not any more, and that comes to be anew in the journal perhaps. */
static void forget_deleted(struct weir_engine *engine, u32 index)
{
	struct engine_header *header = &engine->headers[index];

	if (engine_volume_find(engine, header->vid))
		return;
	header->state = ENGINE_DEAD;
	engine_lock(engine);
	engine_table_remove(engine, index);
	engine_unlock(engine);
}

static void count_erase(void *argument, u32 at, const struct engine_hand *hand)
{
	struct weir_engine *engine = argument;
	u32 first = at * engine->shape.erase_blocks, valid = 0;

	(void)hand;
	for (u32 i = first; i < first + engine->shape.erase_blocks; i++) {
		if (engine->headers[i].state == ENGINE_BUSY)
			settle_moved(engine, i);
		if (engine->headers[i].state == ENGINE_VALID)
			forget_deleted(engine, i);
		valid += engine->headers[i].state == ENGINE_VALID;
	}
	engine->erases[at].valid = valid;
}

static void count_blocks(struct weir_engine *engine)
{
	engine_divide(engine, engine->shape.erase_count, count_erase, engine);
	engine->status.used = 0;
	for (u32 i = 0; i < engine->shape.erase_count; i++)
		engine->status.used += engine->erases[i].valid;
}

/* 0, 1: it is not whole, or a negative errno with a sentence. */
static int read_checkpoint(struct weir_engine *engine, const struct found *found)
{
	struct reading reading = { .engine = engine, .found = found };
	struct engine_hand hand = { engine->threads, engine->buffer };

	reading.end = read_pages(&(struct reader){ engine, found, &hand }, 0,
				 found->part_count ? found->parts[0] : found->pages);
	engine_divide(engine, found->part_count, read_part, &reading);
	switch (reading.end.how) {
	case ENDED_WELL: count_blocks(engine); return 0;
	case ENDED_TORN: return 1;
	case ENDED_SENSELESS: return engine_damaged("checkpoint", reading.end.block);
	default: return engine_io_failed(reading.end.status, reading.end.block);
	}
}

/* The next checkpoint takes the place of @torn, whose head stays until it has one of its own: with the same
 * number its first pages would pass for those that @torn lacks. */
static void pass_number(struct weir_engine *engine, const struct found *torn)
{
	if (torn->generation)
		engine->generation = torn->generation + 1;
}

/* What was read of one that is not whole is forgotten before the other one is read. */
int engine_checkpoint_read(struct weir_engine *engine)
{
	struct found found[2];
	int error = 0, newer;

	for (u32 i = 0; i < 2 && !error; i++)
		error = read_head(engine, i, &found[i]);
	if (error)
		return error;
	newer = found[1].generation > found[0].generation;
	for (int i = 0; i < 2 && !error; i++, newer = !newer) {
		if (!found[newer].generation)
			continue;
		engine->generation = found[newer].generation;
		engine->journal_head = engine->journal_since = found[newer].since;
		engine->journal_least = i ? found[!newer].since : 0;
		error = read_checkpoint(engine, &found[newer]);
		if (!error && i)
			pass_number(engine, &found[!newer]);
		if (error <= 0)
			return error;
		error = engine_forget(engine);
	}
	return error ? error : engine_damaged("checkpoint", engine->shape.checkpoint);
}
