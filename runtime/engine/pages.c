/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/pages.c: pages of records: made, checked, and replayed.
 *
 * Owns: what each record does to an engine that is being loaded. A record says how things are afterwards, so
 * that replaying one that is in effect already changes nothing.
 */
#include "pages.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static bool apply_block(struct weir_engine *engine, u32 index, const void *data)
{
	struct engine_header *header;

	if (index >= engine_blocks(engine) + engine->shape.tombstones)
		return false;
	if (engine_is_tombstone(engine, index) && !engine_reserve_tombstones(engine, index))
		return false;
	header = engine_header(engine, index);
	if (header->state == ENGINE_VALID && engine_table_find(engine, header->vid, header->vba) == index)
		engine_drop(engine, index);
	memcpy(header, data, sizeof(*header));
	header->state = ENGINE_DEAD; /* until it is installed */
	return engine_install(engine, index);
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
	if (engine_map_leave(engine, &engine->loading) != 0)
		return false;
	free(engine->placement); /* of the map before */
	engine->placement = NULL;
	engine->map = engine->loading;
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
		engine_drop_volume(engine, record->index); /* it may not have been there */
		return true;
	case ENGINE_RECORD_PERMISSION: return apply_permission(engine, data);
	case ENGINE_RECORD_MAP: return apply_map(engine, record->index, data);
	case ENGINE_RECORD_STATUS: apply_status(engine, data); return true;
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

bool engine_page_apply(struct weir_engine *engine, const struct engine_page *page)
{
	const struct engine_record *record;

	for (u32 at = 0; at < page->bytes; at += engine_record_size(record)) {
		record = (const struct engine_record *)(const void *)(page->records + at);
		if (record->kind >= sizeof(sizes) / sizeof(*sizes) || record->bytes != sizes[record->kind] ||
		    !apply(engine, record))
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

static void pause_briefly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
}

u32 engine_io(struct weir_engine *engine, enum weir_io_kind kind, u64 block, void *data, u32 blocks,
	      bool durable)
{
	struct weir_medium *behind = engine->behind;
	struct iovec iov = { data, (size_t)blocks * ENGINE_BLOCK_BYTES };
	struct waited waited = { .io = { .kind = kind,
					 .force_unit_access = durable,
					 .thread = engine->threads,
					 .offset_bytes = block * ENGINE_BLOCK_BYTES,
					 .bytes = (u64)blocks * ENGINE_BLOCK_BYTES,
					 .iov = data ? &iov : NULL,
					 .iov_count = data ? 1 : 0,
					 .done = waited_done } };

	while (!behind->ops->submit(behind, &waited.io))
		if (!behind->ops->poll(behind, engine->threads))
			pause_briefly();
	while (!waited.ended)
		if (!behind->ops->poll(behind, engine->threads))
			pause_briefly();
	return waited.io.status;
}
