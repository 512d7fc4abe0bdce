/* SPDX-License-Identifier: BSD-3-Clause */
#include "stand_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"
#include "volume/placement.h"

/* Of a list, so that most lists have several pages; and the place of its cursor that says what it begins
 * with.
 */
enum { PAGE_ENTRIES = 7, CURSOR_ARRIVED = 16 };

struct link {
	struct volume_engine_link base;
	struct stand_in_array *array;
	unsigned index;
	bool open;
};

static struct stand_in_volume *volume_of(struct stand_in *engine, u32 vid)
{
	return vid && vid < STAND_IN_VOLUMES && engine->volumes[vid].is.vid ? &engine->volumes[vid] : NULL;
}

static bool placed_here(const struct stand_in *engine, const struct stand_in_volume *volume, u32 vba)
{
	u32 word = engine->table[weir_placement_group(volume->is.vid, vba, volume->is.unit_log2)];

	for (u32 i = 0; i < volume->is.replicas; i++)
		if ((word >> (8 * i) & 0xff) == engine->map.self)
			return true;
	return false;
}

/* What is not placed here. */
static void drop_misplaced(struct stand_in *engine)
{
	if (engine->map.engines[engine->map.self].state)
		return;
	for (u32 vid = 1; vid < STAND_IN_VOLUMES; vid++)
		for (u32 i = 0; volume_of(engine, vid) && i < STAND_IN_BLOCKS; i++)
			if (!placed_here(engine, &engine->volumes[vid], i))
				engine->volumes[vid].blocks[i] = (struct stand_in_block){ .version = 0 };
}

static int set_map(struct stand_in *engine, const struct nvme_volume_map *map)
{
	bool again = engine->has_map && map->epoch == engine->map.epoch &&
		     map->rebuilding == engine->map.rebuilding;

	if (map->epoch < engine->map.epoch || map->epoch < engine->fence)
		return NVME_STATUS_VOLUME_STALE_MAP;
	if (map->rebuilding == NVME_VOLUME_REBUILDING && engine->map.rebuilding != NVME_VOLUME_REBUILDING)
		drop_misplaced(engine); /* copies for a map that has not come */
	engine->map = *map;
	engine->has_map = true;
	if (map->engines[map->self].state != NVME_VOLUME_ENGINE_IN) {
		engine->write_faults = 0;
		engine->doubtful = engine->doubtful && map->uncounted;
	}
	if (weir_placement_build(map, engine->table) != 0)
		return NVME_STATUS_INVALID_FIELD;
	if (!map->rebuilding && !again)
		drop_misplaced(engine);
	return 0;
}

static int chmod_volume(struct stand_in *engine, const struct nvme_volume_permission *permission)
{
	struct stand_in_volume *volume = volume_of(engine, permission->vid);
	u32 i = 0;

	if (!volume)
		return NVME_STATUS_VOLUME_UNKNOWN;
	while (i < volume->permission_count && volume->permissions[i].client != permission->client)
		i++;
	if (!permission->rights) {
		if (i < volume->permission_count)
			volume->permissions[i] = volume->permissions[--volume->permission_count];
		return 0;
	}
	volume->permissions[i] = *permission;
	volume->permission_count += i == volume->permission_count;
	return 0;
}

static int get_volume(struct stand_in *engine, u32 vid, struct nvme_volume *out)
{
	for (; vid < STAND_IN_VOLUMES; vid++)
		if (volume_of(engine, vid)) {
			*out = engine->volumes[vid].is;
			return 0;
		}
	return NVME_STATUS_VOLUME_UNKNOWN;
}

static int list_blocks(struct stand_in *engine, const struct nvme_sqe *sqe, struct nvme_volume_list *list)
{
	struct stand_in_volume *volume = volume_of(engine, sqe->cdw10 & 0xffff);
	u32 range = sqe->cdw10 >> 16;
	u64 from = (u64)sqe->cdw14 << 32 | sqe->cdw15, cursor = (u64)sqe->cdw12 << 32 | sqe->cdw11;
	u64 since = cursor >> CURSOR_ARRIVED, at = range ? sqe->cdw13 : cursor & ((1 << CURSOR_ARRIVED) - 1);
	u64 end = range ? at + range : STAND_IN_BLOCKS;

	if (!volume)
		return NVME_STATUS_VOLUME_UNKNOWN;
	list->count = 0;
	for (; at < end && list->count < PAGE_ENTRIES; at++) {
		const struct stand_in_block *block = &volume->blocks[at];

		if (block->version && block->version >= from && (block->trimmed || block->arrived >= since))
			list->entries[list->count++] =
				(struct nvme_volume_entry){ at | (block->trimmed ? 1ull << 32 : 0),
							    block->version };
	}
	list->next = engine->lists_again || engine->lists_later ? cursor
		     : at == end                                ? ~0ull
								: since << CURSOR_ARRIVED | at;
	engine->lists_later -= engine->lists_later != 0;
	return 0;
}

/* A lease that is newer stays, and blocks do. */
static void add_volume(struct stand_in *engine, const struct nvme_volume *info)
{
	struct nvme_volume *is = &engine->volumes[info->vid].is, was = *is;

	*is = *info;
	if (was.blocks > info->blocks)
		is->blocks = was.blocks;
	if (was.lease_epoch > info->lease_epoch) {
		is->lease_epoch = was.lease_epoch;
		is->lease_client = was.lease_client;
	}
	engine->last_vid = info->vid > engine->last_vid ? info->vid : engine->last_vid;
}

static int set_lease(struct stand_in_volume *volume, u32 epoch, u16 client)
{
	if (!volume)
		return NVME_STATUS_VOLUME_UNKNOWN;
	if (epoch < volume->is.lease_epoch ||
	    (epoch == volume->is.lease_epoch && client && client != volume->is.lease_client))
		return NVME_STATUS_VOLUME_STALE_LEASE;
	volume->is.lease_epoch = epoch;
	volume->is.lease_client = client;
	return 0;
}

/* Of a daemon that is not active any more. */
static bool is_late(const struct stand_in *engine, const struct nvme_sqe *sqe)
{
	switch (sqe->cdw0 & 0xff) {
	case NVME_ADMIN_VOLUME_ADD:
	case NVME_ADMIN_VOLUME_DELETE:
	case NVME_ADMIN_VOLUME_CHMOD:
	case NVME_ADMIN_VOLUME_LEASE:
	case NVME_ADMIN_VOLUME_FENCE: return sqe->cdw13 < engine->map.epoch || sqe->cdw13 < engine->fence;
	default: return false;
	}
}

static int admin(struct stand_in *engine, const struct nvme_sqe *sqe, void *page)
{
	struct stand_in_volume *volume = volume_of(engine, sqe->cdw10 & 0xffff);
	struct nvme_volume_engine_status status = { .blocks = STAND_IN_BLOCKS,
						    .doubtful = engine->doubtful,
						    .has_map = engine->has_map,
						    .fence = engine->fence,
						    .write_faults = engine->write_faults,
						    .written = (engine->arrived + 1) << CURSOR_ARRIVED };

	if (is_late(engine, sqe))
		return NVME_STATUS_VOLUME_STALE_MAP;
	switch (sqe->cdw0 & 0xff) {
	case NVME_ADMIN_VOLUME_FENCE: engine->fence = sqe->cdw13; return 0;
	case NVME_ADMIN_VOLUME_ADD: add_volume(engine, page); return 0;
	case NVME_ADMIN_VOLUME_DELETE:
		if (volume)
			memset(volume, 0, sizeof(*volume));
		return volume ? 0 : NVME_STATUS_VOLUME_UNKNOWN;
	case NVME_ADMIN_VOLUME_CHMOD: return chmod_volume(engine, page);
	case NVME_ADMIN_VOLUME_LEASE: return set_lease(volume, sqe->cdw11, (u16)sqe->cdw12);
	case NVME_ADMIN_VOLUME_MAP: return engine->failed ? NVME_STATUS_WRITE_FAULT : set_map(engine, page);
	case NVME_ADMIN_VOLUME_GET_MAP:
		memcpy(page, &engine->map, sizeof(engine->map));
		return engine->map.epoch ? 0 : NVME_STATUS_VOLUME_NO_MAP;
	case NVME_ADMIN_VOLUME_GET: return get_volume(engine, sqe->cdw10, page);
	case NVME_ADMIN_VOLUME_GET_PERMISSION:
		if (!volume || sqe->cdw11 >= volume->permission_count)
			return NVME_STATUS_VOLUME_UNKNOWN;
		memcpy(page, &volume->permissions[sqe->cdw11], sizeof(volume->permissions[0]));
		return 0;
	case NVME_ADMIN_VOLUME_LIST: return list_blocks(engine, sqe, page);
	case NVME_ADMIN_VOLUME_STATUS:
		status.map_epoch = engine->map.epoch;
		status.last_vid = engine->last_vid;
		for (u32 i = 1; i < STAND_IN_VOLUMES; i++)
			status.volumes += volume_of(engine, i) != NULL;
		memcpy(page, &status, sizeof(status));
		return 0;
	default: return NVME_STATUS_INVALID_OPCODE;
	}
}

static int put(struct stand_in *engine, u16 vid, u32 vba, const struct stand_in_block *block)
{
	struct stand_in_volume *volume = volume_of(engine, vid);

	if (!volume)
		return NVME_STATUS_VOLUME_UNKNOWN;
	if (block->version < volume->blocks[vba].version)
		return NVME_STATUS_VOLUME_OLD_VERSION;
	if (engine->full && !volume->blocks[vba].version)
		return NVME_STATUS_CAPACITY_EXCEEDED;
	engine->write_faults += engine->faulty;
	if (engine->faulty)
		return NVME_STATUS_WRITE_FAULT;
	engine->writes++;
	if (block->version > volume->blocks[vba].version || volume->blocks[vba].bad) {
		volume->blocks[vba] = *block;
		volume->blocks[vba].arrived = ++engine->arrived;
	}
	return 0;
}

/* As the manager. */
static int io(struct stand_in *engine, const struct nvme_sqe *sqe, void *data)
{
	struct stand_in_block block = { .version = (u64)sqe->cdw3 << 32 | sqe->cdw2 };
	u16 vid = (u16)(sqe->cdw11 >> 16);
	u64 slba;

	switch (sqe->cdw0 & 0xff) {
	case NVME_OPCODE_FLUSH: return engine->failed ? NVME_STATUS_WRITE_FAULT : 0;
	case NVME_OPCODE_READ:
		if (!volume_of(engine, vid))
			return NVME_STATUS_VOLUME_UNKNOWN;
		if (block.version && engine->volumes[vid].blocks[sqe->cdw10].version != block.version)
			return NVME_STATUS_VOLUME_OLD_VERSION;
		if (engine->volumes[vid].blocks[sqe->cdw10].bad)
			return NVME_STATUS_UNRECOVERED_READ;
		memset(data, 0, NVME_VOLUME_BLOCK_BYTES);
		memcpy(data, &engine->volumes[vid].blocks[sqe->cdw10].word, sizeof(u64));
		return 0;
	case NVME_OPCODE_WRITE:
		memcpy(&block.word, data, sizeof(block.word));
		return put(engine, vid, sqe->cdw10, &block);
	case NVME_OPCODE_DSM:
		memcpy(&slba, (char *)data + 8, sizeof(slba));
		block.trimmed = true;
		return put(engine, (u16)(slba >> 48), (u32)slba, &block);
	default: return NVME_STATUS_INVALID_OPCODE;
	}
}

static bool is_interrupted(struct stand_in *engine, u32 opcode)
{
	if (!engine->interrupts || (opcode != NVME_ADMIN_VOLUME_ADD && opcode != NVME_ADMIN_VOLUME_MAP))
		return false;
	engine->interrupts--;
	return true;
}

static bool is_refused(struct stand_in *engine, u32 opcode)
{
	if (!engine->refuses_status || engine->refuses != opcode)
		return false;
	if (!engine->refuses_later)
		return true;
	engine->refuses_later--;
	return false;
}

static int link_open(struct volume_engine_link *base)
{
	struct link *link = (struct link *)base;

	link->open = !link->array->engines[link->index].dead;
	return link->open ? 0 : weir_fail(ECONNREFUSED, "stand-in %u is dead", link->index);
}

static int link_command(struct volume_engine_link *base, bool is_io, const struct nvme_sqe *sqe, void *data,
			uint32_t bytes, enum volume_way way, unsigned ms)
{
	struct link *link = (struct link *)base;
	struct stand_in *engine = &link->array->engines[link->index];

	(void)bytes, (void)way, (void)ms;
	if (link->array->on_command)
		link->array->on_command(link->array, sqe->cdw0 & 0xff, link->index);
	if (engine->dies_after && --engine->dies_after == 0)
		engine->dead = true;
	if (engine->dead || engine->resets || !link->open) {
		link->open = engine->resets = false;
		return weir_fail(ECONNRESET, "stand-in %u does not answer", link->index);
	}
	if (is_refused(engine, sqe->cdw0 & 0xff))
		return engine->refuses_status;
	if (is_interrupted(engine, sqe->cdw0 & 0xff))
		return NVME_STATUS_COMMAND_INTERRUPTED;
	return is_io ? io(engine, sqe, data) : admin(engine, sqe, data);
}

static void link_close(struct volume_engine_link *base)
{
	free(base);
}

static const struct volume_engine_link_ops ops = { .open = link_open,
						   .command = link_command,
						   .close = link_close };

static int create(struct volume_linker *linker, const char *address, const char *nqn,
		  struct volume_engine_link **out)
{
	struct link *link = calloc(1, sizeof(*link));

	(void)nqn;
	if (!link)
		return -ENOMEM;
	link->base.ops = &ops;
	link->array = (struct stand_in_array *)linker;
	link->index = (unsigned)atoi(address);
	*out = &link->base;
	return 0;
}

void stand_in_init(struct stand_in_array *array)
{
	memset(array, 0, sizeof(*array));
	array->base.create = create;
	for (unsigned i = 0; i < STAND_IN_ENGINES; i++)
		array->engines[i].table = calloc(WEIR_PLACEMENT_GROUPS, sizeof(u32));
}

void stand_in_release(struct stand_in_array *array)
{
	for (unsigned i = 0; i < STAND_IN_ENGINES; i++)
		free(array->engines[i].table);
}

void stand_in_restart(struct stand_in *engine, bool forgets)
{
	u32 *table = engine->table;

	if (forgets)
		memset(engine, 0, sizeof(*engine));
	engine->table = table;
	engine->dead = engine->has_map = false;
	engine->dies_after = 0;
	engine->fence = 0;
}

static int refuse(struct stand_in *engine, int status)
{
	engine->refused++;
	return status;
}

/* An engine's checks, in its order. */
static int admit(struct stand_in *engine, u16 client, u32 map, u16 vid, u32 vba, u32 rights)
{
	struct stand_in_volume *volume = volume_of(engine, vid);
	u32 has = 0;

	if (!engine->has_map)
		return NVME_STATUS_VOLUME_NO_MAP;
	if (!volume)
		return NVME_STATUS_VOLUME_UNKNOWN;
	for (u32 i = 0; i < volume->permission_count; i++)
		if (volume->permissions[i].client == client)
			has = volume->permissions[i].rights;
	if (!(has & rights))
		return NVME_STATUS_VOLUME_DENIED;
	if (map != engine->map.epoch)
		return NVME_STATUS_VOLUME_STALE_MAP;
	return placed_here(engine, volume, vba) ? 0 : NVME_STATUS_VOLUME_MISPLACED;
}

int stand_in_write(struct stand_in *engine, u16 client, u32 lease, u32 map, u16 vid, u32 vba, u64 version,
		   u64 word)
{
	const struct stand_in_block block = { .version = version, .word = word };
	int status;

	if (engine->dead)
		return -1;
	status = admit(engine, client, map, vid, vba, NVME_VOLUME_WRITE);
	if (!status &&
	    (lease != engine->volumes[vid].is.lease_epoch || client != engine->volumes[vid].is.lease_client))
		status = NVME_STATUS_VOLUME_STALE_LEASE;
	return status ? refuse(engine, status) : put(engine, vid, vba, &block);
}

int stand_in_read(struct stand_in *engine, u16 client, u32 map, u16 vid, u32 vba, u64 *word)
{
	const struct stand_in_block *block;
	int status;

	if (engine->dead)
		return -1;
	status = admit(engine, client, map, vid, vba, NVME_VOLUME_READ);
	if (status)
		return refuse(engine, status);
	block = &engine->volumes[vid].blocks[vba];
	if (!block->version && engine->map.rebuilding)
		return NVME_STATUS_VOLUME_NOT_HERE;
	*word = block->word;
	return 0;
}

const struct stand_in_block *stand_in_block(const struct stand_in *engine, u16 vid, u32 vba)
{
	return &engine->volumes[vid].blocks[vba];
}
