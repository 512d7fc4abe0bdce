/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/checkpoint.c: all that an engine knows, on its medium.
 *
 * Owns: the two checkpoints, which are written in turn, and are there once their head page is. The head is
 * written when everything that the checkpoint leads to is durable. While one is written no page of the
 * journal is, and so no block becomes free.
 *
 * Blocks change meanwhile. Each is in one shard of the table for ever, and of each shard the checkpoint has
 * one moment: the block as it was before a change, or as it is afterwards, and never neither.
 */
#include <stdlib.h>
#include <string.h>

#include "pages.h"

enum { CHUNK = 1024 /* headers read under the lock */, RESERVE = 16, PER_PAGE = 126 };

u32 engine_checkpoint_blocks(u32 blocks)
{
	u64 records = (u64)blocks + blocks / 2 + blocks / 8;

	return (u32)(1 + RESERVE + blocks / 1024 + records / PER_PAGE);
}

u64 engine_checkpoint_reserve(const struct weir_engine *engine)
{
	u64 blocks = engine->behind->bytes / ENGINE_BLOCK_BYTES;

	return (RESERVE - 6 + blocks / 1024) * (ENGINE_PAGE_ROOM - 256); /* map, counts, unfilled ends */
}

/** struct writer - pages of a checkpoint on their way */
struct writer {
	struct weir_engine *engine;
	u64 slot; /* its first block */
	u64 generation;
	u32 written;
	u32 filled; /* pages of the buffer, the last one being filled */
	u32 status;
	struct engine_record *record; /* of a shard, on that page, or NULL */
	u32 parts[ENGINE_PARTS];      /* pages where they begin */
};

static struct engine_page *page_of(const struct writer *writer, u32 index)
{
	return (struct engine_page *)(void *)writer->engine->buffer + index;
}

static void page_begin(struct writer *writer)
{
	struct engine_page *page = page_of(writer, writer->filled);

	memset(page, 0, sizeof(*page));
	page->magic = ENGINE_MAGIC_CHECKPOINT;
	page->format = writer->engine->format;
	page->sequence = writer->written + writer->filled;
	page->mark = writer->generation;
	writer->filled++;
	writer->record = NULL;
}

/* Not under the lock. */
static void writer_flush(struct writer *writer)
{
	if (writer->written + writer->filled + 1 > writer->engine->shape.checkpoint_blocks)
		writer->status = NVME_STATUS_CAPACITY_EXCEEDED;
	for (u32 i = 0; i < writer->filled; i++)
		engine_page_seal(page_of(writer, i));
	if (writer->filled && !writer->status)
		writer->status = engine_io(writer->engine, WEIR_IO_WRITE, writer->slot + 1 + writer->written,
					   writer->engine->buffer, writer->filled, false);
	writer->written += writer->filled;
	writer->filled = 0;
	writer->record = NULL;
}

static void add_record(struct writer *writer, const struct engine_record *record)
{
	if (writer->filled && engine_page_add(page_of(writer, writer->filled - 1), record))
		return;
	page_begin(writer);
	engine_page_add(page_of(writer, writer->filled - 1), record);
}

static void add(struct writer *writer, u32 kind, u32 index, const void *data, u32 bytes)
{
	u64 room[(sizeof(struct engine_record) + sizeof(struct nvme_volume_map) / 2) / sizeof(u64)] = { 0 };
	struct engine_record *record = (struct engine_record *)room;

	*record = (struct engine_record){ (u16)kind, (u16)bytes, index };
	memcpy(record + 1, data, bytes);
	add_record(writer, record);
}

/* Whether what one step adds under the lock still has room in the buffer. */
static bool nearly_full(const struct writer *writer)
{
	return writer->filled > ENGINE_BUFFER_BYTES / ENGINE_BLOCK_BYTES / 2;
}

static void add_volume(struct writer *writer, const struct engine_volume *volume)
{
	struct weir_engine *engine = writer->engine;

	add(writer, ENGINE_RECORD_VOLUME, 0, &volume->is, sizeof(volume->is));
	for (u32 i = 0; i < volume->permission_count; i++) {
		add(writer, ENGINE_RECORD_PERMISSION, 0, &volume->permissions[i],
		    sizeof(*volume->permissions));
		if (nearly_full(writer)) {
			engine_unlock(engine);
			writer_flush(writer);
			engine_lock(engine);
			if (engine->volumes[volume->is.vid] != volume)
				return;
		}
	}
}

static void add_volumes(struct writer *writer)
{
	struct weir_engine *engine = writer->engine;
	struct nvme_volume_engine_status status;

	engine_lock(engine);
	status = engine_kept_status(engine);
	add(writer, ENGINE_RECORD_STATUS, 0, &status, sizeof(status));
	for (u32 i = 0; i < 2; i++)
		add(writer, ENGINE_RECORD_MAP, i, (const u8 *)&engine->map + i * sizeof(engine->map) / 2,
		    sizeof(engine->map) / 2);
	for (u32 vid = 1; vid <= engine->status.last_vid; vid++)
		if (engine->volumes[vid])
			add_volume(writer, engine->volumes[vid]);
	engine_unlock(engine);
}

static void add_erases(struct writer *writer)
{
	struct weir_engine *engine = writer->engine;

	engine_lock(engine);
	for (u32 i = 0; i < engine->shape.erase_count; i++) {
		u64 words[2] = { engine->erases[i].sequence, engine->erases[i].erases };

		add(writer, ENGINE_RECORD_ERASE, i, words, sizeof(words));
		if (nearly_full(writer)) {
			engine_unlock(engine);
			writer_flush(writer);
			engine_lock(engine);
		}
	}
	engine_unlock(engine);
	writer_flush(writer);
}

/* ---- blocks ---- */

/**
 * struct copy - a shard at one moment
 * @room: slots that there is memory for; @tombstone_room: headers
 * @tombstones: those that it led to, in the order of its slots: their memory can be another one's afterwards.
 * A block's cannot before the next commit
 */
struct copy {
	struct engine_shard is;
	u32 room;
	u32 tombstone_room;
	struct engine_header *tombstones;
};

static u32 slots_of(const struct engine_shard *shard)
{
	return shard->buckets * ENGINE_BUCKET;
}

static bool copy_slots(struct copy *copy, const struct engine_shard *shard)
{
	if (copy->room < slots_of(shard)) {
		free(copy->is.slots);
		copy->room = slots_of(shard);
		copy->is.slots = malloc(copy->room * sizeof(*copy->is.slots));
	}
	if (!copy->is.slots)
		return false;
	copy->is.buckets = shard->buckets;
	memcpy(copy->is.slots, shard->slots, slots_of(shard) * sizeof(*shard->slots));
	return true;
}

static bool more_tombstones(struct copy *copy)
{
	u32 room = copy->tombstone_room ? 2 * copy->tombstone_room : CHUNK;
	struct engine_header *more = realloc(copy->tombstones, room * sizeof(*more));

	if (!more)
		return false;
	copy->tombstones = more;
	copy->tombstone_room = room;
	return true;
}

static bool copy_tombstones(const struct weir_engine *engine, struct copy *copy)
{
	u32 count = 0;

	for (u32 i = 0; engine->tombstone_count && i < slots_of(&copy->is); i++) {
		u32 index = engine_shard_index(engine, &copy->is, i);

		if (index == ENGINE_NONE || !engine_is_tombstone(engine, index))
			continue;
		if (count == copy->tombstone_room && !more_tombstones(copy))
			return false;
		copy->tombstones[count++] = *engine_header(engine, index);
	}
	return true;
}

static bool copy_shard(struct weir_engine *engine, struct copy *copy, u32 number)
{
	bool copied;

	engine_lock(engine);
	copied = copy_slots(copy, &engine->table.shards[number]) && copy_tombstones(engine, copy);
	engine_unlock(engine);
	return copied;
}

static struct engine_record *begin_record(struct writer *writer, u32 number, u32 buckets)
{
	const struct {
		struct engine_record record;
		struct engine_shard_noted shard;
	} begin = { { ENGINE_RECORD_SHARD, sizeof(begin.shard), number }, { .buckets = buckets } };
	struct engine_page *page;

	add_record(writer, &begin.record);
	page = page_of(writer, writer->filled - 1);
	return (struct engine_record *)(void *)(page->records + page->bytes - sizeof(begin));
}

/* Behind the record of its shard where its page has room for it. */
static void add_noted(struct writer *writer, u32 number, u32 buckets, const struct engine_noted *noted)
{
	struct engine_page *page;

	if (writer->record && writer->record->index == number &&
	    page_of(writer, writer->filled - 1)->bytes + sizeof(*noted) > ENGINE_PAGE_ROOM)
		page_begin(writer);
	if (!writer->record || writer->record->index != number)
		writer->record = begin_record(writer, number, buckets);
	page = page_of(writer, writer->filled - 1);
	memcpy(page->records + page->bytes, noted, sizeof(*noted));
	page->bytes += sizeof(*noted);
	writer->record->bytes += sizeof(*noted);
}

/* Under the lock. @tombstones: those of the slots that were not added yet. */
static void add_slot(struct writer *writer, const struct copy *copy, u32 number, u32 at,
		     const struct engine_header **tombstones)
{
	const struct weir_engine *engine = writer->engine;
	struct engine_noted noted = { .index = engine_shard_index(engine, &copy->is, at) };

	if (noted.index == ENGINE_NONE)
		return;
	noted.is = engine_is_tombstone(engine, noted.index) ? *(*tombstones)++ : engine->headers[noted.index];
	noted.is.state = engine_shard_is_second(&copy->is, at, &noted.is);
	add_noted(writer, number, copy->is.buckets, &noted);
}

static void prefetch(const struct weir_engine *engine, const struct copy *copy, u32 at)
{
	u32 index = at < slots_of(&copy->is) ? engine_shard_index(engine, &copy->is, at) : ENGINE_NONE;

	if (index < engine_blocks(engine))
		__builtin_prefetch(&engine->headers[index]);
}

static void add_shard(struct writer *writer, struct copy *copy, u32 number)
{
	struct weir_engine *engine = writer->engine;
	const struct engine_header *tombstones;

	if (!copy_shard(engine, copy, number)) {
		writer->status = NVME_STATUS_INTERNAL_ERROR;
		return;
	}
	tombstones = copy->tombstones;
	for (u32 first = 0; first < slots_of(&copy->is); first += CHUNK) {
		engine_lock(engine);
		for (u32 i = first; i < slots_of(&copy->is) && i < first + CHUNK; i++) {
			prefetch(engine, copy, i + ENGINE_AHEAD);
			add_slot(writer, copy, number, i, &tombstones);
		}
		engine_unlock(engine);
		if (nearly_full(writer))
			writer_flush(writer);
	}
}

u32 engine_checkpoint_parts(const struct weir_engine *engine)
{
	return engine->table.shard_count < ENGINE_PARTS ? engine->table.shard_count : ENGINE_PARTS;
}

static void add_blocks(struct writer *writer)
{
	u32 parts = engine_checkpoint_parts(writer->engine),
	    shards = writer->engine->table.shard_count / parts;
	struct copy copy = { .room = 0 };

	for (u32 part = 0; part < parts; part++) {
		writer_flush(writer);
		writer->parts[part] = writer->written;
		for (u32 i = 0; i < shards && !writer->status; i++)
			add_shard(writer, &copy, part * shards + i);
	}
	writer_flush(writer);
	free(copy.is.slots);
	free(copy.tombstones);
}

/* The head: whose pages are these, and from where on the journal is to be replayed. */
static u32 write_head(const struct writer *writer)
{
	struct weir_engine *engine = writer->engine;
	struct engine_page *page = page_of(writer, 0);

	memset(page, 0, sizeof(*page));
	page->magic = ENGINE_MAGIC_HEAD;
	page->format = engine->format;
	page->sequence = engine->journal_head;
	page->mark = writer->generation;
	page->reserved = writer->written;
	page->bytes = engine_checkpoint_parts(engine) * (u32)sizeof(*writer->parts);
	memcpy(page->records, writer->parts, page->bytes);
	engine_page_seal(page);
	return engine_io(engine, WEIR_IO_WRITE, writer->slot, page, 1, true);
}

u64 engine_checkpoint_slot(const struct weir_engine *engine, u64 generation)
{
	return engine->shape.checkpoint + generation % 2 * engine->shape.checkpoint_blocks;
}

u32 engine_checkpoint(struct weir_engine *engine)
{
	struct writer writer = { .engine = engine, .generation = engine->generation + 1 };

	writer.slot = engine_checkpoint_slot(engine, writer.generation);
	add_volumes(&writer);
	add_erases(&writer);
	add_blocks(&writer);
	if (!writer.status)
		writer.status = engine_io(engine, WEIR_IO_FLUSH, 0, NULL, 0, false);
	if (!writer.status)
		writer.status = write_head(&writer);
	if (!writer.status) {
		engine->generation = writer.generation;
		engine->journal_since = engine->journal_head;
	}
	return writer.status;
}

void engine_finish(struct weir_engine *engine)
{
	if (engine->read_only || !engine->generation)
		return;
	engine_lock(engine);
	engine->closing = true;
	engine_want_commit(engine);
	engine_unlock(engine);
	engine_commit(engine);
	if (!engine->failed)
		(void)engine_checkpoint(engine); /* what failed there is in the journal */
}
