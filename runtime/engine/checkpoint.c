/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/checkpoint.c: all that an engine knows, on its medium.
 *
 * Owns: the two checkpoints, which are written in turn, and are there once their head page is. The head is
 * written when everything that the checkpoint leads to is durable. While one is written no page of the
 * journal is.
 */
#include <string.h>

#include "pages.h"

enum { CHUNK = 4096 /* headers looked at under the lock */, RESERVE = 16, PER_PAGE = 126 };

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

static void add_block(struct writer *writer, u32 index)
{
	const struct {
		struct engine_record record;
		struct engine_noted noted;
	} block = { { ENGINE_RECORD_BLOCK, sizeof(struct engine_noted), index },
		    engine_noted_of(writer->engine, index) };

	add_record(writer, (const void *)&block);
}

static void add_blocks(struct writer *writer)
{
	struct weir_engine *engine = writer->engine;
	u32 count = engine_blocks(engine) + engine->shape.tombstones;

	for (u32 first = 0; first < count; first += CHUNK) {
		engine_lock(engine);
		for (u32 i = first; i < count && i < first + CHUNK; i++)
			if (engine_state(engine, i) == ENGINE_VALID)
				add_block(writer, i);
		engine_unlock(engine);
		if (nearly_full(writer))
			writer_flush(writer);
	}
	writer_flush(writer);
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
