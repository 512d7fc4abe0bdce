/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/checkpoint_read.c: a checkpoint from the medium into memory.
 *
 * Owns: which of the two counts. Blocks are most of it: of a large one several threads read the parts, each
 * the shards of its own.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	unsigned thread;
	u8 *buffer;
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

		end.status = engine_ask(reader->engine, &(struct engine_ask){ .kind = WEIR_IO_READ,
									      .block = slot + at,
									      .data = reader->buffer,
									      .blocks = count,
									      .thread = reader->thread });
		if (end.status)
			return (struct end){ ENDED_UNREAD, slot + at, end.status };
		for (u32 i = 0; i < count && end.how == ENDED_WELL; i++, at++) {
			end.how = use_page(reader, (struct engine_page *)(void *)reader->buffer + i, at);
			end.block = slot + at;
		}
	}
	return end;
}

/* ---- parts ---- */

/** struct reading - parts that threads read; @next: one that nobody has begun; @end: the first that is not
 * well */
struct reading {
	struct reader reader;
	u32 next;
	struct end end;
	pthread_mutex_t lock;
};

static u32 take_part(struct reading *reading)
{
	u32 part;

	pthread_mutex_lock(&reading->lock);
	part = reading->end.how == ENDED_WELL ? reading->next++ : reading->reader.found->part_count;
	pthread_mutex_unlock(&reading->lock);
	return part;
}

static void note_end(struct reading *reading, struct end end)
{
	pthread_mutex_lock(&reading->lock);
	if (reading->end.how == ENDED_WELL)
		reading->end = end;
	pthread_mutex_unlock(&reading->lock);
}

static void read_parts(struct reading *reading, const struct reader *reader)
{
	u32 part;

	while ((part = take_part(reading)) < reader->found->part_count)
		note_end(reading,
			 read_pages(reader, reader->found->parts[part], reader->found->parts[part + 1]));
}

/** struct helper - one of the threads */
struct helper {
	struct reading *reading;
	struct reader reader;
	pthread_t thread;
};

static void *help(void *argument)
{
	struct helper *helper = argument;

	read_parts(helper->reading, &helper->reader);
	return NULL;
}

/* Without memory or threads for it there are fewer. */
static bool helper_start(struct helper *helper, struct reading *reading, unsigned thread)
{
	*helper = (struct helper){ .reading = reading, .reader = reading->reader };
	helper->reader.thread = thread;
	helper->reader.buffer = aligned_alloc(ENGINE_BLOCK_BYTES, ENGINE_BUFFER_BYTES);
	if (helper->reader.buffer && pthread_create(&helper->thread, NULL, help, helper) == 0)
		return true;
	free(helper->reader.buffer);
	return false;
}

/* Beside the one that asks: no controller thread asks the medium for anything yet. */
static u32 helpers_for(const struct weir_engine *engine, const struct found *found)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	u32 most = found->part_count < engine->threads + 1 ? found->part_count : engine->threads + 1;

	if (processors > 0 && most > 2 * processors) /* some wait for the medium */
		most = (u32)(2 * processors);
	return most > 1 ? most - 1 : 0;
}

static struct end read_all_parts(const struct reader *reader)
{
	struct reading reading = { .reader = *reader, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct helper helpers[ENGINE_PARTS];
	u32 wanted = helpers_for(reader->engine, reader->found), count = 0;

	while (count < wanted && helper_start(&helpers[count], &reading, count))
		count++;
	read_parts(&reading, reader);
	for (u32 i = 0; i < count; i++) {
		pthread_join(helpers[i].thread, NULL);
		free(helpers[i].reader.buffer);
	}
	return reading.end;
}

/* ---- all of it ---- */

static void count_blocks(struct weir_engine *engine)
{
	u64 used = 0;

	for (u32 i = 0; i < engine->shape.erase_count; i++) {
		const struct engine_header *headers = &engine->headers[i * engine->shape.erase_blocks];
		u32 valid = 0;

		for (u32 j = 0; j < engine->shape.erase_blocks; j++)
			valid += headers[j].state == ENGINE_VALID;
		engine->erases[i].valid = valid;
		used += valid;
	}
	engine->status.used = used;
}

/* 0, 1: it is not whole, or a negative errno with a sentence. */
static int read_checkpoint(struct weir_engine *engine, const struct found *found)
{
	struct reader reader = { engine, found, engine->threads, engine->buffer };
	struct end end = read_pages(&reader, 0, found->part_count ? found->parts[0] : found->pages);

	if (end.how == ENDED_WELL && found->part_count)
		end = read_all_parts(&reader);
	switch (end.how) {
	case ENDED_WELL: count_blocks(engine); return 0;
	case ENDED_TORN: return 1;
	case ENDED_SENSELESS: return engine_damaged("checkpoint", end.block);
	default: return engine_io_failed(end.status, end.block);
	}
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
		if (error <= 0)
			return error;
		error = engine_forget(engine);
	}
	return error ? error : engine_damaged("checkpoint", engine->shape.checkpoint);
}
