/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig_placed.c: a volume whose blocks lanes place: engines with maps, leases and versions, the host that
 * carries out what lanes leave to it, and maps that change while commands are under way.
 *
 * Queue pair 0 is the volume's own controller's, each other one an engine's. All end in one medium, which
 * asks here whose blocks a request is about.
 */
#include <string.h>

#include "../../runtime/transport/virtual/state.h"

#include <weir/core/volume/place.h>

#include "explore.h"
#include "rig.h"
#include "rig_parts.h"

enum {
	ENGINES = 3,
	GROUP_SHIFT = 10,
	GROUPS = WEIR_PLACED_GROUPS >> GROUP_SHIFT,
	JOINS = 4,
	LEASE = 2,
	MOST_CHANGES = 3,
	DNR = NVME_STATUS_DNR,
};

/** struct engine - @epoch: of its map; @versions: of its blocks; 0: as at the beginning */
struct engine {
	u32 epoch;
	u64 versions[SCENARIO_BLOCKS];
	u64 blocks[SCENARIO_BLOCKS][SCENARIO_BLOCK_WORDS];
};

/** struct order - what a command said beyond what its request has; by queue pair and slot */
struct order {
	u32 map;
	u32 lease;
	u64 version;
};

static struct engine engines[ENGINES];
static struct order orders[ENGINES + 1][64];
static struct weir_placed *placed;
static u32 newest; /* epoch of the newest map; engines below it will have it */
static bool changing, published;
static u32 changes_left;

/* Engine @index has no groups at every other epoch: writes go to one engine fewer then. A volume of one
 * replica keeps its engines. */
static bool is_out(u32 index, u32 epoch)
{
	return rig.shape.replicas > 1 && epoch % 2 == 0 && index == epoch / 2 % ENGINES;
}

/* The engines of a group, a byte each. */
static u32 word_of(u32 group, u32 epoch)
{
	u32 word = 0, count = 0;

	for (u32 i = 0; i < rig.shape.replicas; i++) {
		u32 engine = (group + i) % ENGINES;

		if (!is_out(engine, epoch))
			word |= engine << (8 * count++);
	}
	return count < 4 ? word | ~(u32)0 << (8 * count) : word;
}

static u32 group_of(u64 lba)
{
	return weir_placement_group(0, lba, 0) >> GROUP_SHIFT;
}

static bool has(u32 index, u64 lba, u32 epoch)
{
	for (u32 word = word_of(group_of(lba), epoch); word != ~(u32)0; word = word >> 8 | 0xff000000)
		if ((word & 0xff) == index)
			return true;
	return false;
}

static void publish(u32 epoch)
{
	u32 second = epoch % 2, word;
	u64 map = (u64)epoch << 32 | WEIR_PLACED_VALID | second;
	u32 *table = (u32 *)(uintptr_t)placed->tables + second * GROUPS;

	for (u32 group = 0; group < GROUPS; group++) {
		word = word_of(group, epoch);
		memory_device_write(&table[group], &word, sizeof(word));
	}
	memory_device_store(&placed->map, map);
	published = true;
}

void rig_lay_out_placed(void)
{
	placed = rig_allocate(sizeof(*placed), 128);
	*placed = (struct weir_placed){
		.queues = (weir_addr)(uintptr_t)&rig.queues[1],
		.forwarder = (weir_addr)(uintptr_t)&rig.queues[0],
		.tables = (weir_addr)(uintptr_t)rig_allocate(2 * GROUPS * sizeof(u32), 64),
		.joins = (weir_addr)(uintptr_t)rig_allocate(JOINS * sizeof(struct weir_write_join), 64),
		.engines = ENGINES,
		.queues_each = 1,
		.forwarder_count = 1,
		.join_count = JOINS,
		.replicas = rig.shape.replicas,
		.group_shift = GROUP_SHIFT,
		.lease = { LEASE },
	};
	watch(placed, sizeof(*placed), sizeof(*placed), WATCH_NONE, "placed", sizeof(*placed));
	watch((void *)(uintptr_t)placed->tables, 2 * GROUPS * sizeof(u32), 4, WATCH_NONE, "table[%u]", 4);
	watch((void *)(uintptr_t)placed->joins, JOINS * sizeof(struct weir_write_join),
	      sizeof(struct weir_write_join), WATCH_NONE, "join[%u]", sizeof(struct weir_write_join));
	for (u32 i = 0; i <= ENGINES; i++) {
		rig.queues[i].volume = (weir_addr)(uintptr_t)placed;
		rig.queues[i].placed = i ? WEIR_QUEUE_ENGINE : WEIR_QUEUE_FORWARDER;
		rig.queues[i].retry = WEIR_RETRIES_MOST;
	}
	rig.disk->queue_count = 1;
	rig.disk->flags = WEIR_DISK_PLACED;
	rig.disk->retry = WEIR_RETRIES_MOST;
	memset(engines, 0, sizeof(engines));
	for (u32 i = 0; i < ENGINES; i++) {
		engines[i].epoch = 1;
		memcpy(engines[i].blocks, rig_blocks, RIG_BLOCKS_BYTES);
	}
	newest = 1;
	changing = false;
	changes_left = (u32)random_below(MOST_CHANGES + 1);
	publish(1);
}

/* The newest version of a block on engines that had it before. */
static u32 newest_of(u64 lba, u32 epoch)
{
	u32 best = ENGINES;

	for (u32 i = 0; i < ENGINES; i++)
		if (has(i, lba, epoch) &&
		    (best == ENGINES || engines[i].versions[lba] > engines[best].versions[lba]))
			best = i;
	return best;
}

/* All engines have the map: each gets the blocks that are placed there now, the newest version of each. */
static void copy_blocks(void)
{
	for (u64 lba = 0; lba < SCENARIO_BLOCKS; lba++) {
		const struct engine *from = &engines[newest_of(lba, newest - 1)];

		for (u32 i = 0; i < ENGINES; i++)
			if (has(i, lba, newest) && &engines[i] != from) {
				engines[i].versions[lba] = from->versions[lba];
				memcpy(engines[i].blocks[lba], from->blocks[lba], SCENARIO_BLOCK_BYTES);
			}
	}
}

/* One step of a change of the map. Return: something happened. */
static bool change(void)
{
	u32 first = (u32)random_below(ENGINES);

	for (u32 i = 0; i < ENGINES; i++) {
		struct engine *engine = &engines[(first + i) % ENGINES];

		if (engine->epoch != newest) {
			engine->epoch = newest;
			return true;
		}
	}
	copy_blocks();
	changing = false;
	return true;
}

bool rig_step_placed(void)
{
	if (!rig.shape.replicas)
		return false;
	if (changing)
		return random_below(8) || change();
	if (random_below(16))
		return false;
	if (!published) {
		publish(newest);
		return true;
	}
	if (!changes_left)
		return false;
	changes_left--;
	newest++;
	changing = true;
	published = false;
	return true;
}

static u32 queue_of(const struct weir_io *io)
{
	return ((const struct virtual_request *)io)->queue->id - 1u;
}

static struct order *order_of(const struct weir_io *io)
{
	u32 cid = ((const struct virtual_request *)io)->cid;

	return &orders[queue_of(io)][cid & (rig.shape.depth - 1)];
}

/* A command was fetched: its entry is the controller's until it ends. */
void rig_note_placed(const struct weir_io *io)
{
	const struct virtual_request *request = (const struct virtual_request *)io;
	const struct weir_queue *queue = &rig.queues[queue_of(io)];
	const struct nvme_sqe *sqe =
		(const struct nvme_sqe *)(uintptr_t)queue->sq + (request->cid & (rig.shape.depth - 1));

	*order_of(io) = (struct order){ sqe->cdw15, sqe->cdw14, (u64)sqe->cdw3 << 32 | sqe->cdw2 };
}

static void read_block(u32 index, const struct weir_io *io, u64 lba)
{
	memory_device_write(io->iov[0].iov_base, engines[index].blocks[lba], SCENARIO_BLOCK_BYTES);
}

static u32 write_block(u32 index, const struct weir_io *io, u64 lba)
{
	u64 version = order_of(io)->version;

	if (version < engines[index].versions[lba])
		return NVME_STATUS_VOLUME_OLD_VERSION | DNR;
	if (version > engines[index].versions[lba])
		memcpy(engines[index].blocks[lba], io->iov[0].iov_base, SCENARIO_BLOCK_BYTES);
	engines[index].versions[lba] = version;
	return 0;
}

/* The host knows which map is the engines', and what an old version means. */
static u32 forward(const struct weir_io *io, u64 lba)
{
	u32 count = 0, chosen = 0;

	for (u32 i = 0; i < ENGINES; i++) {
		if (!has(i, lba, newest))
			continue;
		if (io->kind == WEIR_IO_WRITE)
			(void)write_block(i, io, lba);
		else if (random_below(++count) == 0)
			chosen = i;
	}
	if (io->kind == WEIR_IO_READ)
		read_block(chosen, io, lba);
	else if (!order_of(io)->version)
		fail("a write that the host carries out has no version");
	return 0;
}

static u32 refuse(u32 status)
{
	return status | DNR;
}

static u32 ask_engine(u32 index, const struct weir_io *io, u64 lba)
{
	if (order_of(io)->map != engines[index].epoch)
		return refuse(NVME_STATUS_VOLUME_STALE_MAP);
	if (!has(index, lba, engines[index].epoch))
		return refuse(NVME_STATUS_VOLUME_MISPLACED);
	if (io->kind == WEIR_IO_WRITE && order_of(io)->lease != LEASE)
		return refuse(NVME_STATUS_VOLUME_STALE_LEASE);
	if (random_below(24) ==
	    0) /* a damaged block, or one that is not copied yet; a write that finds no room */
		return io->kind == WEIR_IO_READ ? (u32)NVME_STATUS_UNRECOVERED_READ
						: refuse(NVME_STATUS_CAPACITY_EXCEEDED);
	if (io->kind == WEIR_IO_WRITE)
		return write_block(index, io, lba);
	read_block(index, io, lba);
	return 0;
}

bool rig_waits_placed(const struct weir_io *io)
{
	return changing && queue_of(io) == 0;
}

u32 rig_move_placed(const struct weir_io *io)
{
	u64 lba = io->offset_bytes / SCENARIO_BLOCK_BYTES;

	if (!io->bytes)
		return 0;
	return queue_of(io) ? ask_engine(queue_of(io) - 1, io, lba) : forward(io, lba);
}

/* What was acknowledged is on all engines of the newest map, and no write waits for answers. */
void rig_check_placed(void)
{
	const struct weir_write_join *joins = (const struct weir_write_join *)(uintptr_t)placed->joins;

	for (u32 i = 0; i < JOINS; i++)
		if (joins[i].left.value_)
			fail("join %u waits for %u answers at rest", i, joins[i].left.value_);
	for (u64 lba = 0; lba < SCENARIO_BLOCKS && !changing; lba++) {
		const struct engine *best = &engines[newest_of(lba, newest)];

		for (u32 i = 0; i < ENGINES; i++)
			if (has(i, lba, newest) &&
			    (engines[i].versions[lba] != best->versions[lba] ||
			     memcmp(engines[i].blocks[lba], best->blocks[lba], SCENARIO_BLOCK_BYTES) != 0))
				fail("engine %u has another version of block %llu at rest", i,
				     (unsigned long long)lba);
	}
}
