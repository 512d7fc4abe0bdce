/* SPDX-License-Identifier: BSD-3-Clause */
#include "level.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/core/volume/placement.h>

#include "../../backend/error.h"
#include "command.h"

enum {
	STEP_BLOCKS = 1,       /* copied at most in a step: clients wait for it with their calls */
	STEP_COMPARED = 65536, /* compared at most */
	MOST_WAITS = 10000,    /* for one block of a list */
	SOURCE_TRIMMED = 0x80,
};

static const u64 TRIMMED = 1ull << 32;

static void *map_words(size_t bytes)
{
	void *words =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return words == MAP_FAILED ? NULL : words;
}

static void unmap_words(void *words, size_t bytes)
{
	if (words)
		(void)munmap(words, bytes);
}

static u64 slice_blocks(const struct volumed_level *level)
{
	u64 left = level->blocks - level->base;

	return left < VOLUMED_SLICE ? left : VOLUMED_SLICE;
}

void volumed_level_end(struct volumed_level *level)
{
	unmap_words(level->best, VOLUMED_SLICE * sizeof(u64));
	unmap_words(level->source, VOLUMED_SLICE);
	for (u32 i = 0; i < NVME_VOLUME_MOST_REPLICAS; i++)
		unmap_words(level->versions[i], VOLUMED_SLICE * sizeof(u64));
	level->best = NULL;
	level->source = NULL;
	memset(level->versions, 0, sizeof(level->versions));
}

/* The list of engine @engine is next. */
static void begin_list(struct volumed_level *level, unsigned engine)
{
	level->engine = engine;
	level->cursor = level->since && engine < NVME_VOLUME_MOST_ENGINES ? level->since[engine] : 0;
}

static int begin_slice(struct volumed_level *level, u64 base)
{
	volumed_level_end(level);
	level->base = base;
	begin_list(level, 0);
	level->at = level->waits = 0;
	level->listed = level->changed = false;
	memset(level->touched, 0, sizeof(level->touched));
	level->best = map_words(VOLUMED_SLICE * sizeof(u64));
	level->source = map_words(VOLUMED_SLICE);
	for (u32 i = 0; i < level->replicas; i++) {
		level->versions[i] = map_words(VOLUMED_SLICE * sizeof(u64));
		if (!level->versions[i])
			return weir_fail(ENOMEM, "no memory to compare volume %u", level->vid);
	}
	if (!level->best || !level->source)
		return weir_fail(ENOMEM, "no memory to compare volume %u", level->vid);
	return 0;
}

int volumed_level_begin(struct volumed_level *level)
{
	int error;

	level->best = NULL;
	level->source = NULL;
	memset(level->versions, 0, sizeof(level->versions));
	level->compared = level->copied = level->left = 0;
	error = begin_slice(level, 0);
	if (error)
		volumed_level_end(level);
	return error;
}

static u32 engine_at(const struct volumed_level *level, u64 vba, u32 replica)
{
	u32 group = weir_placement_group(level->vid, vba, level->unit_log2);

	return (level->table[group] >> (8 * replica)) & 0xff;
}

static void note(struct volumed_level *level, const struct nvme_volume_entry *entry)
{
	u64 vba = entry->vba & ~TRIMMED, at = vba - level->base;

	if (vba < level->base || at >= slice_blocks(level) || entry->version < level->from)
		return;
	level->touched[at / VOLUMED_CHUNK] = true;
	for (u32 i = 0; i < level->replicas; i++)
		if (engine_at(level, vba, i) == level->engine)
			level->versions[i][at] = entry->version;
	if (!(level->authority >> level->engine & 1) || entry->version <= level->best[at])
		return;
	level->best[at] = entry->version;
	level->source[at] = (u8)(level->engine | (entry->vba & TRIMMED ? SOURCE_TRIMMED : 0));
}

/* A page of the list of level->engine. */
static int list_step(struct volumed_level *level)
{
	struct nvme_volume_list list = { .next = ~0ull };
	int status;

	while (level->engine < NVME_VOLUME_MOST_ENGINES && !level->links[level->engine])
		begin_list(level, level->engine + 1);
	if (level->engine == NVME_VOLUME_MOST_ENGINES) {
		level->listed = true;
		return 0;
	}
	status = volume_engine_list(level->links[level->engine], level->vid, level->cursor, level->from,
				    &list);
	if (status < 0)
		return status;
	if (status && status != NVME_STATUS_VOLUME_UNKNOWN)
		return weir_fail(EIO, "volume %u: an engine refuses its list with status %#x", level->vid,
				 status);
	if (status) /* it was deleted */
		list = (struct nvme_volume_list){ .next = ~0ull };
	/* A block that is being written stops a list until it is settled. */
	level->waits = list.next == level->cursor ? level->waits + 1 : 0;
	if (list.next < level->cursor || level->waits > MOST_WAITS)
		return weir_fail(
			EIO,
			"volume %u: the map's engine %u lists blocks without an end: page %#llx is to "
			"follow %#llx; start it again",
			level->vid, level->engine, (unsigned long long)list.next,
			(unsigned long long)level->cursor);
	for (u32 i = 0; i < list.count && i < 255; i++)
		note(level, &list.entries[i]);
	level->cursor = list.next;
	if (list.next == ~0ull)
		begin_list(level, level->engine + 1);
	return 0;
}

/* What the copy came to: fine, too, if the block changed meanwhile, or the volume is gone. A block that
 * cannot be copied keeps no other one from it. */
static int judge(struct volumed_level *level, u64 vba, int status)
{
	if (status <= 0)
		return status;
	if (status == NVME_STATUS_VOLUME_OLD_VERSION || status == NVME_STATUS_VOLUME_UNKNOWN)
		return 0;
	if (status == NVME_STATUS_CAPACITY_EXCEEDED || status == NVME_STATUS_UNRECOVERED_READ) {
		level->left++;
		return 0;
	}
	return weir_fail(EIO, "volume %u: block %llu cannot be copied: an engine says %#x", level->vid,
			 (unsigned long long)vba, status);
}

static int put(struct volumed_level *level, u32 engine, const struct volume_block *block, const void *data)
{
	struct volume_engine_link *link = engine < NVME_VOLUME_MOST_ENGINES ? level->links[engine] : NULL;
	int status;

	if (!link) /* fewer engines than replicas */
		return 0;
	status = data ? volume_engine_write(link, block, data) : volume_engine_trim(link, block);
	level->copied += !status;
	return judge(level, block->vba, status);
}

/* The version that a block gets which an engine has above all others; 0: it is left: its writer is at work,
 * or what the others have was not listed. */
static u64 repair_version(const struct volumed_level *level, u64 highest)
{
	u32 epoch = (u32)(highest >> NVME_VOLUME_VERSION_EPOCH);
	bool is_part = level->from || level->since; /* of what the others have */

	if (!level->settled && (is_part || (level->live && epoch >= level->live)))
		return 0;
	return epoch & 1 ? (u64)(epoch + 1) << NVME_VOLUME_VERSION_EPOCH : highest + 1;
}

/* A replica has nothing of it. One that has a version was written since it is placed there, and so has all
 * that was acknowledged; a block that is written all the time does not keep the comparison from ending. */
static bool is_lacking(const struct volumed_level *level, u64 at)
{
	for (u32 i = 0; i < level->replicas; i++)
		if (!level->versions[i][at])
			return true;
	return false;
}

/* Whether the slice is to be compared once more for a block that changed after it was listed. What is
 * compared again in the end is left to that: each block gets there with its first write, so that a writer
 * keeps no engine from joining. */
static bool is_to_be_listed(const struct volumed_level *level, u64 at)
{
	if (level->later == ~(u64)0)
		return is_lacking(level, at);
	return level->best[at] < level->later;
}

/* From the engine that was listed with it; if it is damaged there, from any that has the same version. */
static int read_block(const struct volumed_level *level, u64 at, const struct volume_block *block, void *data)
{
	int status = volume_engine_read(level->links[level->source[at]], block, data);

	for (u32 i = 0; status == NVME_STATUS_UNRECOVERED_READ && i < NVME_VOLUME_MOST_ENGINES; i++)
		if (i != level->source[at] && level->authority >> i & 1 &&
		    volume_engine_read(level->links[i], block, data) == 0)
			status = 0;
	return status;
}

/* The engine of a replica that has another version than the newest, the greatest, which is *@version; NULL:
 * none has, or a negative *@status. */
static struct volume_engine_link *find_older(const struct volumed_level *level, u64 at, u64 *version,
					     int *status)
{
	struct volume_engine_link *found = NULL;
	u32 vba = (u32)(level->base + at);

	*version = 0;
	for (u32 i = 0; i < level->replicas && *status >= 0; i++) {
		u32 engine = engine_at(level, vba, i);
		struct volume_engine_link *link =
			engine < NVME_VOLUME_MOST_ENGINES ? level->links[engine] : NULL;
		u64 has = 0;

		if (!link || level->versions[i][at] == level->best[at])
			continue;
		*status =
			volume_engine_version(link, level->vid, vba, &has); /* it may not have been listed */
		if (!found || has > *version) {
			found = link;
			*version = has;
		}
	}
	return *status < 0 ? NULL : found;
}

/* Whether the newest version, if some replica has an older one, was never acknowledged, and never will be. */
static bool is_unacknowledged(const struct volumed_level *level, u64 at)
{
	return level->settled || (!is_lacking(level, at) && repair_version(level, level->best[at]));
}

/* The newest version cannot be read, and was not acknowledged. */
static int fall_back(struct volumed_level *level, u64 at)
{
	_Alignas(16) u8 data[NVME_VOLUME_BLOCK_BYTES];
	struct volume_block block = { .vid = level->vid, .vba = (u32)(level->base + at), .map = level->map };
	int status = 0;
	struct volume_engine_link *link = find_older(level, at, &block.version, &status);
	bool nothing = !block.version;

	if (!link)
		return status < 0 ? status : judge(level, block.vba, NVME_STATUS_UNRECOVERED_READ);
	if (!nothing)
		status = volume_engine_read(link, &block, data);
	if (status)
		return judge(level, block.vba, status);
	block.version = repair_version(level, level->best[at]);
	for (u32 i = 0; i < level->replicas && status >= 0; i++)
		status = put(level, engine_at(level, block.vba, i), &block, nothing ? NULL : data);
	return status;
}

/* Write the newest version of a block to the replicas that lack it. */
static int copy_block(struct volumed_level *level, u64 at, u64 highest)
{
	_Alignas(16) u8 data[NVME_VOLUME_BLOCK_BYTES];
	struct volume_block block = { .vid = level->vid,
				      .vba = (u32)(level->base + at),
				      .version = level->best[at],
				      .map = level->map };
	bool trimmed = !level->best[at] || (level->source[at] & SOURCE_TRIMMED);
	u64 version = highest > level->best[at] ? repair_version(level, highest) : level->best[at];
	int status = 0;

	if (!version)
		return 0;
	if (!trimmed)
		status = read_block(level, at, &block, data);
	level->changed |= status == NVME_STATUS_VOLUME_OLD_VERSION && is_to_be_listed(level, at);
	if (status == NVME_STATUS_UNRECOVERED_READ && is_unacknowledged(level, at))
		return fall_back(level, at);
	if (status)
		return judge(level, block.vba, status);
	block.version = version;
	for (u32 i = 0; i < level->replicas && status >= 0; i++)
		if (level->versions[i][at] != version)
			status = put(level, engine_at(level, block.vba, i), &block, trimmed ? NULL : data);
	return status;
}

/* Return: whether the block at @at is the same everywhere; *@highest: of its replicas. */
static bool same(const struct volumed_level *level, u64 at, u64 *highest)
{
	u64 best = level->best[at];
	bool equal = true;

	*highest = 0;
	for (u32 i = 0; i < level->replicas; i++) {
		u64 version = level->versions[i][at];

		if (version > *highest)
			*highest = version;
		if (version != best && engine_at(level, level->base + at, i) != WEIR_PLACEMENT_NONE)
			equal = false;
	}
	return equal;
}

static int compare_step(struct volumed_level *level)
{
	u64 end = level->copied + STEP_BLOCKS, last = level->at + STEP_COMPARED, highest;
	int error = 0;

	if (last > slice_blocks(level))
		last = slice_blocks(level);
	for (; level->at < last && level->copied < end && !error; level->at++) {
		if (!same(level, level->at, &highest))
			error = copy_block(level, level->at, highest);
		level->compared++;
	}
	return error;
}

/* Past chunks that no list has a block of: they are the same everywhere. */
static void pass_over(struct volumed_level *level)
{
	u64 from = level->at, blocks = slice_blocks(level);

	while (level->at < blocks && !level->touched[level->at / VOLUMED_CHUNK])
		level->at = (level->at / VOLUMED_CHUNK + 1) * VOLUMED_CHUNK;
	if (level->at > blocks)
		level->at = blocks;
	level->compared += level->at - from;
}

static int end_of(const struct volumed_level *level)
{
	if (!level->left)
		return 0;
	return weir_fail(ENOSPC,
			 "volume %u: %llu copies cannot be made: an engine has no room, or a block is "
			 "damaged on all engines "
			 "that have it; delete volumes or add an engine",
			 level->vid, (unsigned long long)level->left);
}

int volumed_level_step(struct volumed_level *level)
{
	int error = level->listed ? compare_step(level) : list_step(level);

	if (error)
		return error;
	if (level->listed)
		pass_over(level);
	if (!level->listed || level->at < slice_blocks(level))
		return 1;
	if (!level->changed && level->base + VOLUMED_SLICE >= level->blocks)
		return end_of(level);
	error = begin_slice(level, level->base + (level->changed ? 0 : VOLUMED_SLICE));
	return error ? error : 1;
}
