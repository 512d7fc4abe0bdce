/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/journal.c: what changed since the last checkpoint, in order.
 *
 * Owns: records that are not durable yet, and the ring of pages where they become so. A commit makes data
 * durable first, then the records that lead to it: after a loss of power no record leads to data that is not
 * there. Its half is room until the next checkpoint, so that the pages since the one before are there, too,
 * should the newest be damaged.
 */
#include <stdlib.h>
#include <string.h>

#include "pages.h"

enum {
	RECORDS_LEAST = 1 << 16, /* bytes of records; with more, they are written though nobody waits */
	BATCH_PAGES = ENGINE_BUFFER_BYTES / ENGINE_BLOCK_BYTES,
};

static bool more_room(struct weir_engine *engine, u64 bytes)
{
	u64 room = engine->record_room ? engine->record_room : RECORDS_LEAST;
	u8 *records;

	while (room < engine->record_bytes + bytes)
		room *= 2;
	if (room == engine->record_room)
		return true;
	records = realloc(engine->records, room);
	if (!records)
		return false;
	engine->records = records;
	engine->record_room = room;
	return true;
}

/* It changes nothing any more until it is started again: whoever waits for a commit waits no longer. */
static void engine_fail(struct weir_engine *engine)
{
	engine->failed = true;
	engine->status.write_faults++;
	pthread_cond_broadcast(&engine->changed);
}

void engine_record(struct weir_engine *engine, enum engine_record_kind kind, u32 index, const void *data,
		   u32 bytes)
{
	struct engine_record record = { (u16)kind, (u16)bytes, index };
	u32 size = engine_record_size(&record);

	if (!more_room(engine, size)) {
		engine_fail(engine); /* a change that is not noted must not be acknowledged */
		return;
	}
	memset(engine->records + engine->record_bytes, 0, size);
	memcpy(engine->records + engine->record_bytes, &record, sizeof(record));
	if (bytes)
		memcpy(engine->records + engine->record_bytes + sizeof(record), data, bytes);
	engine->record_bytes += size;
	if (engine->record_bytes >= RECORDS_LEAST)
		engine_want_commit(engine);
}

struct engine_noted engine_noted_of(const struct weir_engine *engine, u32 index)
{
	struct engine_noted noted = { .is = *engine_header(engine, index) };

	noted.is.lap = 0;
	return noted;
}

void engine_record_block(struct weir_engine *engine, u32 index)
{
	const struct engine_noted noted = engine_noted_of(engine, index);

	engine_record(engine, ENGINE_RECORD_BLOCK, index, &noted, sizeof(noted));
}

void engine_record_map(struct weir_engine *engine)
{
	const u32 half = sizeof(engine->map) / 2;

	for (u32 i = 0; i < 2; i++)
		engine_record(engine, ENGINE_RECORD_MAP, i, (const u8 *)&engine->map + i * half, half);
}

void engine_record_erase(struct weir_engine *engine, u32 index)
{
	u64 words[2] = { engine->erases[index].sequence, engine->erases[index].erases };

	engine_record(engine, ENGINE_RECORD_ERASE, index, words, sizeof(words));
}

u64 engine_want_commit(struct weir_engine *engine)
{
	if (engine->wanted <= engine->begun) {
		engine->wanted = engine->begun + 1;
		pthread_cond_broadcast(&engine->changed);
	}
	return engine->wanted;
}

/** struct batch - pages being made; @at: of the records */
struct batch {
	const u8 *records;
	u64 bytes;
	u64 at;
};

/* Up to @most pages of records into the buffer; how many. */
static u32 fill_pages(struct weir_engine *engine, struct batch *batch, u32 most)
{
	struct engine_page *pages = (struct engine_page *)(void *)engine->buffer;
	u32 count = 0;

	while (count < most && batch->at < batch->bytes) {
		struct engine_page *page = &pages[count];
		const struct engine_record *record;

		memset(page, 0, sizeof(*page));
		page->magic = ENGINE_MAGIC_JOURNAL;
		page->format = engine->format;
		page->sequence = engine->journal_head + count;
		page->mark = engine->journal_head;
		while (batch->at < batch->bytes) {
			record = (const struct engine_record *)(const void *)(batch->records + batch->at);
			if (!engine_page_add(page, record))
				break;
			batch->at += engine_record_size(record);
		}
		engine_page_seal(page);
		count++;
	}
	return count;
}

static u32 least(u64 a, u64 b)
{
	return (u32)(a < b ? a : b);
}

/* Pages that may be written at once: to the end of the ring, and of the half that is the newest checkpoint's.
 */
static u32 journal_room(const struct weir_engine *engine)
{
	u32 blocks = engine->shape.journal_blocks;
	u64 used = engine->journal_head - engine->journal_since;
	u32 to_end = blocks - (u32)(engine->journal_head % blocks);

	return used >= blocks / 2 ? 0 : least(least(blocks / 2 - used, to_end), BATCH_PAGES);
}

static bool set_closing(struct weir_engine *engine, bool closing)
{
	bool was;

	engine_lock(engine);
	was = engine->closing;
	engine->closing = closing;
	engine_unlock(engine);
	return was;
}

/* Between two pages of records. What it has is older again once the first of those behind it is replayed:
 * that all ends in order is not said before the last one. */
static u32 make_room(struct weir_engine *engine)
{
	bool closing = set_closing(engine, false);
	u32 status = engine_checkpoint(engine);

	(void)set_closing(engine, closing);
	return status;
}

static u32 write_records(struct weir_engine *engine, const u8 *records, u64 bytes)
{
	struct batch batch = { records, bytes, 0 };
	u32 status = NVME_STATUS_SUCCESS;

	while (batch.at < batch.bytes && !status) {
		u32 room = journal_room(engine), count;

		if (!room) {
			status = make_room(engine);
			continue;
		}
		count = fill_pages(engine, &batch, room);
		status =
			engine_io(engine, WEIR_IO_WRITE,
				  engine->shape.journal + engine->journal_head % engine->shape.journal_blocks,
				  engine->buffer, count, true);
		engine->journal_head += count;
	}
	return status;
}

struct nvme_volume_engine_status engine_kept_status(const struct weir_engine *engine)
{
	struct nvme_volume_engine_status status = engine->status;

	status.doubtful = engine->status.doubtful || !engine->closing;
	return status;
}

/* What was noted until now, counts included; the engine begins a new list. */
static u8 *take_records(struct weir_engine *engine, u64 *bytes)
{
	const struct nvme_volume_engine_status status = engine_kept_status(engine);
	u8 *records;

	engine_record(engine, ENGINE_RECORD_STATUS, 0, &status, sizeof(status));
	records = engine->records;
	*bytes = engine->record_bytes;
	engine->records = NULL;
	engine->record_bytes = engine->record_room = 0;
	return records;
}

unsigned engine_commit(struct weir_engine *engine)
{
	u32 status;
	u8 *records;
	u64 bytes;

	engine_lock(engine);
	if (engine->wanted <= engine->begun || engine->failed) {
		engine_unlock(engine);
		return 0;
	}
	engine->begun++;
	records = take_records(engine, &bytes);
	engine_unlock(engine);
	status = engine_io(engine, WEIR_IO_FLUSH, 0, NULL, 0, false); /* data before what leads to it */
	if (!status)
		status = write_records(engine, records, bytes);
	free(records);
	engine_lock(engine);
	if (status)
		engine_fail(engine);
	else
		engine->committed = engine->begun;
	pthread_cond_broadcast(&engine->changed);
	engine_unlock(engine);
	return 1;
}
