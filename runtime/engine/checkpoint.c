/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/checkpoint.c: all that an engine knows, on its medium.
 *
 * Owns: the two checkpoints, which are written in lap, and are there once their head page is. The head is
 * written when everything that the checkpoint leads to is durable. While one is written no page of the
 * journal is, and so no block becomes free.
 *
 * Blocks change meanwhile. Each is in one shard of the table for ever, and of each shard the checkpoint has
 * the slots of one moment: they lead to the block as it was before a change, or as it is afterwards. Headers
 * are written behind all slots: also those that the table does not lead to any more, if it did while the
 * checkpoint was written.
 */
#include <stdlib.h>
#include <string.h>

#include "pages.h"

enum {
	CHUNK = 4096, /* headers read under the lock */
	TOMBSTONES = 256,
	RESERVE = 16,
	PER_PAGE = 126,
	MOST_MOVED = 63,
};

/* Records of 32 bytes for each block and tombstone, as there once were: slots and headers take no more. */
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
	struct engine_record *record; /* that grows, on that page, or NULL */
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

/* Under the lock, which others may have meanwhile. */
static void give_way(struct writer *writer)
{
	if (!nearly_full(writer))
		return;
	engine_unlock(writer->engine);
	writer_flush(writer);
	engine_lock(writer->engine);
}

/* Between two pages permissions come and go, and so does the volume. */
static void add_volume(struct writer *writer, u32 vid)
{
	struct weir_engine *engine = writer->engine;
	const struct engine_volume *volume = engine->volumes[vid];
	const struct nvme_volume_permission *permission;
	u32 client = 0;

	add(writer, ENGINE_RECORD_VOLUME, 0, &volume->is, sizeof(volume->is));
	while (volume && (permission = engine_permission_from(volume, client))) {
		client = permission->client + 1u;
		add(writer, ENGINE_RECORD_PERMISSION, 0, permission, sizeof(*permission));
		give_way(writer);
		volume = engine->volumes[vid];
	}
}

/* Read again, blocks that the map has dropped could not be told from those that came behind it. Under the
 * lock. */
static void drop_misplaced(struct weir_engine *engine)
{
	while (engine->sweep.misplaced && engine_sweep_some(engine)) {
		engine_unlock(engine);
		engine_lock(engine);
	}
}

static void add_volumes(struct writer *writer)
{
	struct weir_engine *engine = writer->engine;
	struct nvme_volume_engine_status status;

	engine_lock(engine);
	drop_misplaced(engine);
	status = engine_kept_status(engine);
	add(writer, ENGINE_RECORD_STATUS, 0, &status, sizeof(status));
	for (u32 i = 0; i < 2; i++)
		add(writer, ENGINE_RECORD_MAP, i, (const u8 *)&engine->map + i * sizeof(engine->map) / 2,
		    sizeof(engine->map) / 2);
	for (u32 vid = 1; vid <= engine->status.last_vid; vid++) {
		if (engine->volumes[vid])
			add_volume(writer, vid);
		give_way(writer); /* for volumes without permissions, too */
	}
	engine_unlock(engine);
}

static void add_erases(struct writer *writer)
{
	struct weir_engine *engine = writer->engine;

	engine_lock(engine);
	for (u32 i = 0; i < engine->shape.erase_count; i++) {
		u64 words[2] = { engine->erases[i].sequence, engine->erases[i].erases };

		add(writer, ENGINE_RECORD_ERASE, i, words, sizeof(words));
		give_way(writer);
	}
	engine_unlock(engine);
	writer_flush(writer);
}

/* ---- records that grow ---- */

static u32 record_at(const struct writer *writer)
{
	return (u32)((const u8 *)writer->record - page_of(writer, writer->filled - 1)->records);
}

/* Whether the record has room for @bytes more on its page. */
static bool can_grow(const struct writer *writer, u32 bytes)
{
	struct engine_record more;

	if (!writer->record)
		return false;
	more = *writer->record;
	more.bytes = (u16)(more.bytes + bytes);
	return record_at(writer) + engine_record_size(&more) <= ENGINE_PAGE_ROOM;
}

/* They follow what the record has. */
static void grow(struct writer *writer, const void *data, u32 bytes)
{
	struct engine_record *record = writer->record;

	memcpy((u8 *)(record + 1) + record->bytes, data, bytes);
	record->bytes = (u16)(record->bytes + bytes);
	page_of(writer, writer->filled - 1)->bytes = record_at(writer) + engine_record_size(record);
}

/* An empty one, on a page that has room for @most bytes of it. */
static void begin_record(struct writer *writer, u32 kind, u32 index, u32 most)
{
	const struct engine_record record = { (u16)kind, 0, index };
	struct engine_page *page;

	if (!writer->filled ||
	    page_of(writer, writer->filled - 1)->bytes + sizeof(record) + most > ENGINE_PAGE_ROOM)
		page_begin(writer);
	page = page_of(writer, writer->filled - 1);
	writer->record = (struct engine_record *)(void *)(page->records + page->bytes);
	engine_page_add(page, &record);
}

/* ---- blocks ---- */

/**
 * struct copy - a shard at one moment
 * @is: without tombstones; @room: slots that there is memory for
 * @tombstones: the memory of their headers can be other ones' afterwards; a block's cannot before the next
 * commit
 */
struct copy {
	struct engine_shard is;
	u32 room;
	struct engine_noted *tombstones;
	u32 tombstone_count;
	u32 tombstone_room;
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
	u32 room = copy->tombstone_room ? 2 * copy->tombstone_room : TOMBSTONES;
	struct engine_noted *more = realloc(copy->tombstones, room * sizeof(*more));

	if (!more)
		return false;
	copy->tombstones = more;
	copy->tombstone_room = room;
	return true;
}

static bool copy_tombstone(const struct weir_engine *engine, struct copy *copy, u32 at, u32 index)
{
	struct engine_noted *noted;

	if (copy->tombstone_count == copy->tombstone_room && !more_tombstones(copy))
		return false;
	noted = &copy->tombstones[copy->tombstone_count++];
	*noted = engine_noted_of(engine, index);
	noted->index = index;
	noted->is.state = engine_shard_is_second(&copy->is, at, &noted->is);
	engine_shard_clear(&copy->is, at);
	return true;
}

static bool copy_tombstones(const struct weir_engine *engine, struct copy *copy)
{
	copy->tombstone_count = 0;
	for (u32 i = 0; engine->tombstone_count && i < slots_of(&copy->is); i++) {
		u32 index = engine_shard_index(engine, &copy->is, i);

		if (index != ENGINE_NONE && engine_is_tombstone(engine, index) &&
		    !copy_tombstone(engine, copy, i, index))
			return false;
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

static bool is_empty(const struct weir_engine *engine, const struct engine_shard *shard, u32 bucket)
{
	for (u32 i = 0; i < ENGINE_BUCKET; i++)
		if (engine_shard_index(engine, shard, bucket * ENGINE_BUCKET + i) != ENGINE_NONE)
			return false;
	return true;
}

static void begin_shard(struct writer *writer, u32 kind, u32 number, const struct engine_shard_noted *shard,
			u32 most)
{
	begin_record(writer, kind, number, (u32)sizeof(*shard) + most);
	grow(writer, shard, sizeof(*shard));
}

/* Buckets that have something: a record for each row of them. */
static void add_slots(struct writer *writer, const struct copy *copy, u32 number)
{
	const u32 bytes = ENGINE_BUCKET * sizeof(u32);

	writer->record = NULL;
	for (u32 bucket = 0; bucket < copy->is.buckets; bucket++) {
		const struct engine_shard_noted shard = { copy->is.buckets, bucket * ENGINE_BUCKET };

		if (nearly_full(writer)) /* a shard can be of any size, if clients choose blocks so */
			writer_flush(writer);
		if (is_empty(writer->engine, &copy->is, bucket)) {
			writer->record = NULL;
			continue;
		}
		if (!can_grow(writer, bytes))
			begin_shard(writer, ENGINE_RECORD_SLOTS, number, &shard, bytes);
		grow(writer, copy->is.slots + shard.first, bytes);
	}
}

static void add_tombstones(struct writer *writer, const struct copy *copy, u32 number)
{
	const struct engine_shard_noted shard = { copy->is.buckets, 0 };

	writer->record = NULL;
	for (u32 i = 0; i < copy->tombstone_count; i++) {
		if (nearly_full(writer))
			writer_flush(writer);
		if (!can_grow(writer, sizeof(*copy->tombstones)))
			begin_shard(writer, ENGINE_RECORD_TOMBSTONES, number, &shard,
				    sizeof(*copy->tombstones));
		grow(writer, &copy->tombstones[i], sizeof(*copy->tombstones));
	}
}

static void add_shard(struct writer *writer, struct copy *copy, u32 number)
{
	if (!copy_shard(writer->engine, copy, number)) {
		writer->status = NVME_STATUS_INTERNAL_ERROR;
		return;
	}
	add_slots(writer, copy, number);
	add_tombstones(writer, copy, number);
	if (nearly_full(writer))
		writer_flush(writer);
}

static u32 parts_of(const struct weir_engine *engine)
{
	return engine->table.shard_count < ENGINE_PARTS / 2 ? engine->table.shard_count : ENGINE_PARTS / 2;
}

u32 engine_checkpoint_parts(const struct weir_engine *engine)
{
	return 2 * parts_of(engine);
}

static void begin_part(struct writer *writer, u32 part)
{
	writer_flush(writer);
	writer->parts[part] = writer->written;
}

static void add_shards(struct writer *writer)
{
	u32 parts = parts_of(writer->engine), shards = writer->engine->table.shard_count / parts;
	struct copy copy = { .room = 0 };

	for (u32 part = 0; part < parts; part++) {
		begin_part(writer, part);
		for (u32 i = 0; i < shards && !writer->status; i++)
			add_shard(writer, &copy, part * shards + i);
	}
	free(copy.is.slots);
	free(copy.tombstones);
}

/* The table leads there, or a copy of one of its shards may. */
static bool is_wanted(const struct weir_engine *engine, const struct engine_header *header)
{
	return header->state == ENGINE_VALID ||
	       (header->state == ENGINE_DEAD && header->moved == engine->moved);
}

static void add_header(struct writer *writer, u32 index)
{
	struct engine_header header = writer->engine->headers[index];

	if (!is_wanted(writer->engine, &header)) {
		writer->record = NULL;
		return;
	}
	header.moved = header.moved == writer->engine->moved;
	header.lap = 0;
	if (!can_grow(writer, sizeof(header)))
		begin_record(writer, ENGINE_RECORD_HEADERS, index, sizeof(header));
	grow(writer, &header, sizeof(header));
}

static void add_headers(struct writer *writer, u32 first, u32 last)
{
	struct weir_engine *engine = writer->engine;

	for (u32 at = first; at < last; at += CHUNK) {
		engine_lock(engine);
		for (u32 i = at; i < last && i < at + CHUNK; i++)
			add_header(writer, i);
		engine_unlock(engine);
		if (nearly_full(writer))
			writer_flush(writer);
	}
}

static void add_all_headers(struct writer *writer)
{
	u32 parts = parts_of(writer->engine);
	u64 blocks = engine_blocks(writer->engine);

	for (u32 part = 0; part < parts; part++) {
		begin_part(writer, parts + part);
		add_headers(writer, (u32)(blocks * part / parts), (u32)(blocks * (part + 1) / parts));
	}
	writer_flush(writer);
}

static void set_moved(struct weir_engine *engine, u8 moved)
{
	engine_lock(engine);
	engine->moved = moved;
	engine_unlock(engine);
}

/* Two checkpoints may have the same number, if there are many between them: what moved during one of them is
 * asked of the table in vain when the other one is read, and that is all. */
static void add_blocks(struct writer *writer)
{
	set_moved(writer->engine, (u8)(writer->generation % MOST_MOVED + 1));
	add_shards(writer);
	add_all_headers(writer);
	set_moved(writer->engine, 0);
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
