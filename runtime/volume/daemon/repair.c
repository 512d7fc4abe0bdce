/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repair.c: blocks that an engine cannot read, from another replica.
 *
 * Owns: what clients have reported, and its repair, a block at a time. It is as safe as any copy (level.h):
 * the engine says which version it has and cannot read; another one gives that version and no other; it is
 * written in that version, which the engine takes for a damaged block, and refuses if it has a newer one by
 * then. Where nobody else has that version its writer has not been answered, and writes it again, or the end
 * of its lease makes the block equal.
 */
#include <string.h>

#include <weir/nvme.h>

#include "command.h"
#include "daemon.h"

static bool is_same(const struct volumed_damage *a, const struct volumed_damage *b)
{
	return a->vid == b->vid && a->engine == b->engine && a->vba == b->vba && a->blocks == b->blocks;
}

void volumed_repair_note(struct volumed *d, const struct volumed_damage *damage)
{
	for (unsigned i = 0; i < d->damage_count; i++)
		if (is_same(&d->damage[i], damage))
			return;
	if (d->damage_count < VOLUMED_MOST_DAMAGE)
		d->damage[d->damage_count++] = *damage;
}

static bool serves(const struct volumed_engine *engine)
{
	return volumed_engine_in(engine) && engine->current;
}

/* From any other engine that has it in this version. */
static bool read_elsewhere(struct volumed *d, const struct volumed_engine *damaged,
			   const struct volume_block *block, void *data)
{
	for (unsigned i = 0; i < d->engine_count; i++)
		if (&d->engines[i] != damaged && serves(&d->engines[i]) &&
		    volume_engine_read(d->engines[i].link, block, data) == 0)
			return true;
	return false;
}

static void repair(struct volumed *d, const struct volumed_engine *engine, u16 vid, u32 vba)
{
	_Alignas(16) u8 data[NVME_VOLUME_BLOCK_BYTES];
	struct volume_block block = { .vid = vid, .vba = vba, .map = d->epoch };

	if (volume_engine_version(engine->link, vid, vba, &block.version) != 0 || !block.version ||
	    volume_engine_read(engine->link, &block, data) != NVME_STATUS_UNRECOVERED_READ ||
	    !read_elsewhere(d, engine, &block, data))
		return;
	d->counts.repaired += volume_engine_write(engine->link, &block, data) == 0;
}

bool volumed_repair_step(struct volumed *d)
{
	struct volumed_damage *damage = &d->damage[0];

	if (!d->damage_count)
		return false;
	for (unsigned i = 0; i < d->engine_count; i++)
		if (d->engines[i].info.id == damage->engine && serves(&d->engines[i]))
			repair(d, &d->engines[i], damage->vid, damage->vba);
	damage->vba++;
	if (--damage->blocks == 0)
		memmove(damage, damage + 1, --d->damage_count * sizeof(*damage));
	return d->damage_count != 0;
}
