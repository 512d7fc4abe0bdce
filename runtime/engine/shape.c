/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/shape.c: where things are on an engine's medium.
 *
 * Owns: the arithmetic, which follows from the medium's size alone: two superblocks, the journal, two
 * checkpoints, erase blocks. A sixteenth of the erase blocks, and no fewer than 6, is what volumes cannot
 * use: garbage collection needs it.
 */
#include <errno.h>

#include "../backend/error.h"
#include "parts.h"

enum {
	SUPERBLOCKS = 2,
	LEAST_BLOCKS = 256, /* 1 MiB */
	LEAST_ERASE = 8,
	MOST_ERASE = 4096,
	ERASES = 512, /* as many as that, if erase blocks are of sensible size */
	LEAST_SPARE = 6,
	SPARE = 16,
	LEAST_JOURNAL = 16,
	JOURNAL = 128, /* of the medium, one part in so many */
};

static u32 erase_blocks_for(u64 blocks)
{
	u32 size = LEAST_ERASE;

	while (size < MOST_ERASE && blocks / size > 2 * ERASES)
		size *= 2;
	return size;
}

int engine_shape_of(u64 bytes, struct engine_shape *shape)
{
	u64 blocks = bytes / ENGINE_BLOCK_BYTES, journal = blocks / JOURNAL, spare;

	if (blocks < LEAST_BLOCKS || blocks >= ENGINE_NONE / 2)
		return weir_fail(EINVAL, "an engine on %llu bytes: give it 1 MiB to 8 TiB",
				 (unsigned long long)bytes);
	if (journal < LEAST_JOURNAL)
		journal = LEAST_JOURNAL;
	shape->journal = SUPERBLOCKS;
	shape->journal_blocks = (u32)journal;
	shape->checkpoint = SUPERBLOCKS + journal;
	shape->checkpoint_blocks = engine_checkpoint_blocks((u32)blocks);
	shape->data = shape->checkpoint + 2 * (u64)shape->checkpoint_blocks;
	shape->erase_blocks = erase_blocks_for(blocks);
	if (shape->data >= blocks || (blocks - shape->data) / shape->erase_blocks < 3 * LEAST_SPARE)
		return weir_fail(EINVAL,
				 "an engine on %llu bytes: its tables leave no room; give it 1 MiB or more",
				 (unsigned long long)bytes);
	shape->erase_count = (u32)((blocks - shape->data) / shape->erase_blocks);
	spare = shape->erase_count / SPARE;
	if (spare < LEAST_SPARE)
		spare = LEAST_SPARE;
	shape->user_blocks = (u32)(shape->erase_count - spare) * shape->erase_blocks;
	shape->tombstones = shape->erase_count * shape->erase_blocks / 2;
	return 0;
}
