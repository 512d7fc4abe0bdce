/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/admin.c: admin commands of volumes (include/weir/nvme_volume.h).
 *
 * Owns: their table, what each takes from its page or puts there, and which daemon's are refused. A command
 * that changes something has ended when the journal says so.
 */
#include <string.h>

#include "parts.h"

enum { LIST_STEPS = 1 << 16 }; /* headers that one List command goes through */

#define LIST_END (~(u64)0)

static u32 refuse(u32 status)
{
	return status | NVME_STATUS_DNR;
}

static u32 volume_add(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	struct nvme_volume volume;
	u32 status;

	memcpy(&volume, page, sizeof(volume));
	if (volume.vid != (u16)sqe->cdw10)
		return refuse(NVME_STATUS_INVALID_FIELD);
	status = engine_volume_set(engine, &volume);
	if (!status)
		engine_record(engine, ENGINE_RECORD_VOLUME, 0, &engine->volumes[volume.vid]->is,
			      sizeof(volume));
	return status;
}

static u32 volume_delete(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	u16 vid = (u16)sqe->cdw10;

	(void)page;
	if (!engine_volume_find(engine, vid))
		return refuse(NVME_STATUS_VOLUME_UNKNOWN);
	engine_volume_delete(engine, vid);
	engine_sweep_volume(engine, vid);
	engine_record(engine, ENGINE_RECORD_DELETE, vid, NULL, 0);
	return NVME_STATUS_SUCCESS;
}

static u32 volume_chmod(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	struct nvme_volume_permission permission;
	u32 status;

	memcpy(&permission, page, sizeof(permission));
	if (permission.vid != (u16)sqe->cdw10)
		return refuse(NVME_STATUS_INVALID_FIELD);
	status = engine_permission_set(engine, &permission);
	if (!status)
		engine_record(engine, ENGINE_RECORD_PERMISSION, 0, &permission, sizeof(permission));
	return status;
}

static u32 volume_lease(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	u16 vid = (u16)sqe->cdw10;
	u32 status = engine_lease_set(engine, vid, sqe->cdw11, sqe->cdw12);

	(void)page;
	if (!status)
		engine_record(engine, ENGINE_RECORD_VOLUME, 0, &engine->volumes[vid]->is,
			      sizeof(struct nvme_volume));
	return status;
}

static u32 volume_map(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	struct nvme_volume_map map;
	u32 status;

	(void)sqe;
	memcpy(&map, page, sizeof(map));
	status = engine_map_set(engine, &map);
	if (!status)
		engine_record_map(engine);
	return status;
}

/* Not in the journal: the connections of before an engine's start bring nothing more. */
static u32 volume_fence(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	(void)page;
	engine->status.fence = sqe->cdw13;
	return NVME_STATUS_SUCCESS;
}

static u32 volume_get_map(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	(void)sqe;
	if (!engine->map.count)
		return NVME_STATUS_VOLUME_NO_MAP;
	memcpy(page, &engine->map, sizeof(engine->map));
	return NVME_STATUS_SUCCESS;
}

static u32 volume_get(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	for (u32 vid = sqe->cdw10 & 0xffff; vid <= engine->status.last_vid; vid++) {
		if (!engine->volumes[vid])
			continue;
		memcpy(page, &engine->volumes[vid]->is, sizeof(struct nvme_volume));
		return NVME_STATUS_SUCCESS;
	}
	return refuse(NVME_STATUS_VOLUME_UNKNOWN);
}

static u32 volume_get_permission(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	const struct engine_volume *volume = engine_volume_find(engine, sqe->cdw10 & 0xffff);

	if (!volume || sqe->cdw11 >= volume->permission_count)
		return refuse(NVME_STATUS_VOLUME_UNKNOWN);
	memcpy(page, &volume->permissions[sqe->cdw11], sizeof(*volume->permissions));
	return NVME_STATUS_SUCCESS;
}

/* ---- lists ---- */

/*
 * A list goes through erase blocks in the order in which they were written, then through tombstones. A block
 * that garbage collection moves is written again, further on, and is met there; what is being written stops
 * the list until it is settled.
 */

/** struct listing - @next: sequence << 24 | block of erase blocks; bit 63 and index of tombstones */
struct listing {
	struct nvme_volume_list *list;
	u64 least;
	u32 vid;
	u32 steps;
};

enum { LIST_BLOCK_BITS = 24 };
#define LIST_TOMBSTONES ((u64)1 << 63)

/* Where blocks go that are written from now on, as of struct listing. */
static u64 list_behind(const struct weir_engine *engine)
{
	if (engine->open == ENGINE_NONE)
		return (engine->sequence + 1) << LIST_BLOCK_BITS;
	return engine->sequence << LIST_BLOCK_BITS | engine->fill;
}

static u32 volume_status(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	struct nvme_volume_engine_status status = engine->status;

	(void)sqe;
	status.written = list_behind(engine);
	memcpy(page, &status, sizeof(status));
	return NVME_STATUS_SUCCESS;
}

static void list_add(const struct weir_engine *engine, struct listing *listing,
		     const struct engine_header *header, bool trimmed)
{
	struct nvme_volume_list *list = listing->list;

	if (header->state == ENGINE_VALID && header->vid == listing->vid &&
	    header->version >= listing->least && !engine_is_gone(engine, header))
		list->entries[list->count++] =
			(struct nvme_volume_entry){ header->vba | (u64)trimmed << 32, header->version };
}

static bool list_full(const struct listing *listing)
{
	return listing->list->count == sizeof(listing->list->entries) / sizeof(*listing->list->entries) ||
	       !listing->steps;
}

static u32 erase_from(const struct weir_engine *engine, u64 sequence)
{
	u32 found = ENGINE_NONE;

	for (u32 i = 0; i < engine->shape.erase_count; i++) {
		const struct engine_erase *erase = &engine->erases[i];

		if (erase->sequence >= sequence && erase->state != ENGINE_ERASE_FREE &&
		    (found == ENGINE_NONE || erase->sequence < engine->erases[found].sequence))
			found = i;
	}
	return found;
}

/* From block @at of erase block @index on; where it stopped. */
static u32 list_erase(const struct weir_engine *engine, struct listing *listing, u32 index, u32 at)
{
	const struct engine_header *headers = &engine->headers[index * engine->shape.erase_blocks];

	for (; at < engine->shape.erase_blocks && !list_full(listing); at++, listing->steps--) {
		if (headers[at].state == ENGINE_BUSY)
			break;
		list_add(engine, listing, &headers[at], false);
	}
	return at;
}

static u64 list_blocks(const struct weir_engine *engine, struct listing *listing, u64 next)
{
	u32 index, at;

	while ((index = erase_from(engine, next >> LIST_BLOCK_BITS)) != ENGINE_NONE) {
		u64 sequence = engine->erases[index].sequence;

		at = sequence == next >> LIST_BLOCK_BITS ? (u32)next & ((1 << LIST_BLOCK_BITS) - 1) : 0;
		at = list_erase(engine, listing, index, at);
		next = sequence << LIST_BLOCK_BITS | at;
		if (at < engine->shape.erase_blocks)
			return next;
		next = (sequence + 1) << LIST_BLOCK_BITS;
	}
	return LIST_TOMBSTONES;
}

static u64 list_tombstones(const struct weir_engine *engine, struct listing *listing, u64 at)
{
	while (at < engine->shape.tombstones && !list_full(listing)) {
		const struct engine_header *chunk = engine->tombstones[at >> ENGINE_CHUNK_LOG2];

		listing->steps--;
		if (chunk)
			list_add(engine, listing, &chunk[at & (ENGINE_CHUNK - 1)], true);
		at = chunk ? at + 1 : (at | (ENGINE_CHUNK - 1)) + 1;
	}
	return at < engine->shape.tombstones ? LIST_TOMBSTONES | at : LIST_END;
}

/* Of a few blocks, by the table. */
static void list_range(const struct weir_engine *engine, struct listing *listing, u32 vba, u32 count)
{
	for (u32 i = 0; i < count && !list_full(listing); i++) {
		u32 index = engine_table_find(engine, listing->vid, vba + i);

		if (index != ENGINE_NONE)
			list_add(engine, listing, engine_header(engine, index),
				 engine_is_tombstone(engine, index));
	}
}

static u32 volume_list(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	u32 range = sqe->cdw10 >> 16;
	u64 next = (u64)sqe->cdw12 << 32 | sqe->cdw11;
	struct nvme_volume_list list = { .next = LIST_END };
	struct listing listing = { &list, (u64)sqe->cdw14 << 32 | sqe->cdw15, sqe->cdw10 & 0xffff,
				   LIST_STEPS };

	if (!engine_volume_find(engine, listing.vid))
		return refuse(NVME_STATUS_VOLUME_UNKNOWN);
	if (range) {
		list_range(engine, &listing, sqe->cdw13, range);
		next = LIST_END;
	}
	if (next != LIST_END && !(next & LIST_TOMBSTONES))
		next = list_blocks(engine, &listing, next);
	if (next != LIST_END && next & LIST_TOMBSTONES)
		next = list_tombstones(engine, &listing, next & ~LIST_TOMBSTONES);
	list.next = next;
	memcpy(page, &list, sizeof(list));
	return NVME_STATUS_SUCCESS;
}

/* ---- the table ---- */

/* @changes: it is noted in the journal; @fenced: it carries an epoch, and an older daemon's is refused */
static const struct {
	u8 opcode;
	bool changes;
	bool fenced;
	u16 bytes;
	u32 (*run)(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page);
} commands[] = {
	{ NVME_ADMIN_VOLUME_ADD, true, true, sizeof(struct nvme_volume), volume_add },
	{ NVME_ADMIN_VOLUME_DELETE, true, true, 0, volume_delete },
	{ NVME_ADMIN_VOLUME_CHMOD, true, true, sizeof(struct nvme_volume_permission), volume_chmod },
	{ NVME_ADMIN_VOLUME_LEASE, true, true, 0, volume_lease },
	{ NVME_ADMIN_VOLUME_MAP, true, false, sizeof(struct nvme_volume_map), volume_map },
	{ NVME_ADMIN_VOLUME_GET_MAP, false, false, sizeof(struct nvme_volume_map), volume_get_map },
	{ NVME_ADMIN_VOLUME_FENCE, false, true, 0, volume_fence },
	{ NVME_ADMIN_VOLUME_GET, false, false, sizeof(struct nvme_volume), volume_get },
	{ NVME_ADMIN_VOLUME_GET_PERMISSION, false, false, sizeof(struct nvme_volume_permission),
	  volume_get_permission },
	{ NVME_ADMIN_VOLUME_LIST, false, false, sizeof(struct nvme_volume_list), volume_list },
	{ NVME_ADMIN_VOLUME_STATUS, false, false, sizeof(struct nvme_volume_engine_status), volume_status },
};

enum { COMMANDS = sizeof(commands) / sizeof(*commands) };

static u32 command_index(u32 opcode)
{
	u32 i = 0;

	while (i < COMMANDS && commands[i].opcode != opcode)
		i++;
	return i;
}

bool weir_engine_is_admin(u32 opcode)
{
	return command_index(opcode) < COMMANDS;
}

u32 weir_engine_admin_bytes(u32 opcode)
{
	return commands[command_index(opcode)].bytes;
}

/* Under the lock. */
static u32 run(struct weir_engine *engine, const struct nvme_sqe *sqe, void *page)
{
	u32 at = command_index((u8)sqe->cdw0);

	if (commands[at].fenced && sqe->cdw13 < engine_fence(engine))
		return refuse(NVME_STATUS_VOLUME_STALE_MAP);
	if (commands[at].changes && engine->failed)
		return NVME_STATUS_WRITE_FAULT;
	return commands[at].run(engine, sqe, page);
}

u32 weir_engine_admin(struct weir_engine *engine, const char *host, const struct nvme_sqe *sqe, void *page)
{
	u32 at = command_index((u8)sqe->cdw0), status;
	u64 commit = 0;

	if (engine->manager && host && strcmp(host, engine->manager) != 0)
		return refuse(NVME_STATUS_VOLUME_DENIED);
	engine_lock(engine);
	status = run(engine, sqe, page);
	if (!status && commands[at].changes)
		commit = engine_want_commit(engine);
	engine_unlock(engine);
	if (commit && !engine_wait_commit(engine, commit))
		return NVME_STATUS_WRITE_FAULT;
	return status;
}

void weir_engine_status(struct weir_engine *engine, struct nvme_volume_engine_status *status)
{
	engine_lock(engine);
	*status = engine->status;
	engine_unlock(engine);
}
