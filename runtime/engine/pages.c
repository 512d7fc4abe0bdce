/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/pages.c: pages of records: made, checked, and replayed.
 *
 * Owns: what each record does to an engine that is being loaded. A record says how things are afterwards, so
 * that replaying one that is in effect already changes nothing.
 */
#include "pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../backend/error.h"
#include "../base/crc32c.h"

enum { POLL_NS = 10 * 1000 };

static u32 page_crc(const struct engine_page *page)
{
	struct engine_page copy = *page;

	copy.crc = 0;
	return weir_crc32c(0, &copy, sizeof(copy));
}

void engine_page_seal(struct engine_page *page)
{
	page->crc = page_crc(page);
}

bool engine_page_is(struct engine_page *page, u64 magic, u64 format)
{
	return page->magic == magic && page->format == format && page->bytes <= ENGINE_PAGE_ROOM &&
	       page->crc == page_crc(page);
}

bool engine_page_add(struct engine_page *page, const struct engine_record *record)
{
	u32 size = engine_record_size(record);

	if (size > ENGINE_PAGE_ROOM - page->bytes)
		return false;
	memcpy(page->records + page->bytes, record, size);
	page->bytes += size;
	return true;
}

/* ---- records ---- */

/* Where a tombstone can be: where it was, unless another one has come to be there since; ENGINE_NONE:
 * nowhere. */
static u32 tombstone_place(struct weir_engine *engine, u32 index)
{
	if (index < engine_blocks(engine) || index >= engine_blocks(engine) + engine->shape.tombstones ||
	    !engine_reserve_tombstones(engine, index))
		return ENGINE_NONE;
	return engine_state(engine, index) == ENGINE_FREE ? index : engine_take_tombstone(engine);
}

static bool is_of(const struct engine_header *header, const void *data)
{
	const struct engine_noted *noted = data;

	return header->vid == noted->is.vid && header->vba == noted->is.vba;
}

/* Where a block comes to be that was noted at @index, which another one may have. A block cannot be another
 * one's before the next commit, a tombstone can: a record that is older than the checkpoint does not know of
 * it. */
static u32 make_place(struct weir_engine *engine, u32 index, const void *data)
{
	const struct engine_header *header = engine_header(engine, index);
	u32 other = ENGINE_NONE;

	if (header->state != ENGINE_VALID || engine_table_find(engine, header->vid, header->vba) != index)
		return index;
	if (engine_is_tombstone(engine, index) && !is_of(header, data))
		other = engine_take_tombstone(engine);
	if (other == ENGINE_NONE)
		engine_drop(engine, index);
	return other == ENGINE_NONE ? index : other;
}

static bool apply_block(struct weir_engine *engine, u32 index, const void *data)
{
	struct engine_header *header;

	if (index >= engine_blocks(engine) + engine->shape.tombstones)
		return false;
	if (engine_is_tombstone(engine, index) && !engine_reserve_tombstones(engine, index))
		return false;
	index = make_place(engine, index, data);
	header = engine_header(engine, index);
	memcpy(header, data, sizeof(*header));
	header->state = ENGINE_DEAD; /* until it is installed */
	engine->strays = true;
	return engine_install(engine, index);
}

static u32 restore_tombstone(struct weir_engine *engine, const struct engine_noted *noted)
{
	u32 index;

	engine_lock(engine);
	index = tombstone_place(engine, noted->index);
	if (index != ENGINE_NONE) {
		*engine_header(engine, index) = noted->is;
		engine_header(engine, index)->state = ENGINE_VALID;
		engine->tombstone_count++;
	}
	engine_unlock(engine);
	return index;
}

static bool apply_tombstones(struct weir_engine *engine, u32 number, const void *data, u32 bytes)
{
	const struct engine_shard_noted *shard = data;
	const struct engine_noted *noted = (const void *)(shard + 1);
	u32 count = (bytes - (u32)sizeof(*shard)) / (u32)sizeof(*noted);

	if (!engine_shard_resize(engine, number, shard->buckets))
		return false;
	for (u32 i = 0; i < count; i++) {
		u32 index;

		if (!engine_volume_find(engine, noted[i].is.vid))
			continue; /* it was being dropped */
		index = restore_tombstone(engine, &noted[i]);
		if (index == ENGINE_NONE || !engine_shard_add(engine, number, index, noted[i].is.state))
			return false;
	}
	return true;
}

static bool apply_slots(struct weir_engine *engine, u32 number, const void *data, u32 bytes)
{
	const struct engine_shard_noted *shard = data;
	u32 count = (bytes - (u32)sizeof(*shard)) / (u32)sizeof(u32);

	return engine_shard_resize(engine, number, shard->buckets) &&
	       engine_shard_fill(engine, number, shard->first, (const void *)(shard + 1), count);
}

/* Of one that moved while the checkpoint was written, the table will say whether it leads there. */
static bool apply_headers(struct weir_engine *engine, u32 first, const void *data, u32 bytes)
{
	u32 count = bytes / (u32)sizeof(struct engine_header);
	struct engine_header *headers;

	if ((u64)first + count > engine_blocks(engine))
		return false;
	headers = &engine->headers[first];
	memcpy(headers, data, count * sizeof(*headers));
	for (u32 i = 0; i < count; i++) {
		headers[i].state = headers[i].moved ? ENGINE_BUSY : ENGINE_VALID;
		headers[i].moved = 0;
	}
	return true;
}

static bool apply_erase(struct weir_engine *engine, u32 index, const void *data)
{
	u64 words[2]; /* sequence, erases */

	if (index >= engine->shape.erase_count)
		return false;
	memcpy(words, data, sizeof(words));
	engine->erases[index].sequence = words[0];
	engine->erases[index].erases = (u32)words[1];
	if (words[0] > engine->sequence)
		engine->sequence = words[0];
	return true;
}

static bool apply_volume(struct weir_engine *engine, const void *data)
{
	struct engine_volume *is;
	struct nvme_volume volume;

	memcpy(&volume, data, sizeof(volume));
	is = engine_volume_find(engine, volume.vid);
	if (is) /* of one that was deleted since, and made again */
		is->is.unit_log2 = volume.unit_log2;
	return engine_volume_set(engine, &volume) == 0;
}

static bool apply_permission(struct weir_engine *engine, const void *data)
{
	struct nvme_volume_permission permission;

	memcpy(&permission, data, sizeof(permission));
	/* of a volume that was deleted since there is none */
	return !engine_volume_find(engine, permission.vid) || engine_permission_set(engine, &permission) == 0;
}

/* A map is known after its second half; the engine still waits to be given one. */
static bool apply_map(struct weir_engine *engine, u32 half, const void *data)
{
	if (half > 1)
		return false;
	memcpy((u8 *)&engine->loading + half * sizeof(engine->map) / 2, data, sizeof(engine->map) / 2);
	if (!half)
		return true;
	if (engine_map_comes(engine, &engine->loading) != 0)
		return false;
	engine->status.map_epoch = engine->map.epoch;
	return true;
}

static void apply_status(struct weir_engine *engine, const void *data)
{
	struct nvme_volume_engine_status was;

	memcpy(&was, data, sizeof(was));
	engine->status.user_writes = was.user_writes;
	engine->status.medium_writes = was.medium_writes;
	engine->status.erases = was.erases;
	engine->status.erases_most = was.erases_most;
	engine->status.bad_blocks = was.bad_blocks;
	engine->status.repaired = was.repaired;
	engine->status.refused = was.refused;
	engine->status.doubtful = was.doubtful;
	if (was.last_vid <= NVME_VOLUME_MOST && was.last_vid > engine->status.last_vid)
		engine->status.last_vid = was.last_vid;
}

static bool apply(struct weir_engine *engine, const struct engine_record *record)
{
	const void *data = record + 1;

	switch (record->kind) {
	case ENGINE_RECORD_BLOCK: return apply_block(engine, record->index, data);
	case ENGINE_RECORD_ERASE: return apply_erase(engine, record->index, data);
	case ENGINE_RECORD_VOLUME: return apply_volume(engine, data);
	case ENGINE_RECORD_DELETE:
		engine_volume_delete(engine, record->index);
		engine_drop_volume(engine, record->index);
		return true;
	case ENGINE_RECORD_PERMISSION: return apply_permission(engine, data);
	case ENGINE_RECORD_MAP: return apply_map(engine, record->index, data);
	case ENGINE_RECORD_STATUS: apply_status(engine, data); return true;
	case ENGINE_RECORD_SLOTS: return apply_slots(engine, record->index, data, record->bytes);
	case ENGINE_RECORD_TOMBSTONES: return apply_tombstones(engine, record->index, data, record->bytes);
	case ENGINE_RECORD_HEADERS: return apply_headers(engine, record->index, data, record->bytes);
	default: return false;
	}
}

static const u16 sizes[] = {
	[ENGINE_RECORD_BLOCK] = sizeof(struct engine_noted),
	[ENGINE_RECORD_ERASE] = 2 * sizeof(u64),
	[ENGINE_RECORD_VOLUME] = sizeof(struct nvme_volume),
	[ENGINE_RECORD_DELETE] = 0,
	[ENGINE_RECORD_PERMISSION] = sizeof(struct nvme_volume_permission),
	[ENGINE_RECORD_MAP] = sizeof(struct nvme_volume_map) / 2,
	[ENGINE_RECORD_STATUS] = sizeof(struct nvme_volume_engine_status),
};

static bool is_sized(const struct engine_record *record)
{
	u32 head = sizeof(struct engine_shard_noted);

	switch (record->kind) {
	case ENGINE_RECORD_SLOTS: return record->bytes >= head && record->bytes % sizeof(u32) == 0;
	case ENGINE_RECORD_TOMBSTONES:
		return record->bytes >= head && (record->bytes - head) % sizeof(struct engine_noted) == 0;
	case ENGINE_RECORD_HEADERS: return record->bytes % sizeof(struct engine_header) == 0;
	default: return record->kind < sizeof(sizes) / sizeof(*sizes) && record->bytes == sizes[record->kind];
	}
}

bool engine_page_apply(struct weir_engine *engine, const struct engine_page *page)
{
	const struct engine_record *record;

	for (u32 at = 0; at < page->bytes; at += engine_record_size(record)) {
		record = (const struct engine_record *)(const void *)(page->records + at);
		if (!is_sized(record) || !apply(engine, record))
			return false;
	}
	return true;
}

/* ---- the medium behind ---- */

/** struct waited - a request that somebody waits for */
struct waited {
	struct weir_io io;
	bool ended;
};

static void waited_done(struct weir_io *io)
{
	((struct waited *)io)->ended = true;
}

void engine_pause(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
}

u32 engine_ask(struct weir_engine *engine, const struct engine_ask *ask)
{
	struct weir_medium *behind = engine->behind;
	struct iovec iov = { ask->data, (size_t)ask->blocks * ENGINE_BLOCK_BYTES };
	struct waited waited = { .io = { .kind = ask->kind,
					 .force_unit_access = ask->durable,
					 .thread = ask->thread,
					 .offset_bytes = ask->block * ENGINE_BLOCK_BYTES,
					 .bytes = (u64)ask->blocks * ENGINE_BLOCK_BYTES,
					 .iov = ask->data ? &iov : NULL,
					 .iov_count = ask->data ? 1 : 0,
					 .done = waited_done } };

	while (!behind->ops->submit(behind, &waited.io))
		if (!behind->ops->poll(behind, ask->thread))
			engine_pause();
	while (!waited.ended)
		if (!behind->ops->poll(behind, ask->thread))
			engine_pause();
	return waited.io.status;
}

u32 engine_io(struct weir_engine *engine, enum weir_io_kind kind, u64 block, void *data, u32 blocks,
	      bool durable)
{
	return engine_ask(engine,
			  &(struct engine_ask){ kind, block, data, blocks, durable, engine->threads });
}

int engine_io_failed(u32 status, u64 block)
{
	return weir_fail(EIO,
			 "block %" PRIu64 " of an engine's medium could not be read or written: status %#x",
			 block, status);
}

int engine_damaged(const char *what, u64 block)
{
	return weir_fail(EIO,
			 "an engine's %s, block %" PRIu64
			 " of its medium, is damaged; `weir-engine check` shows "
			 "what is left, other replicas have the rest",
			 what, block);
}
