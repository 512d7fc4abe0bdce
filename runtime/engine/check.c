/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/check.c: whether an engine is in order, and what it has, for people.
 *
 * Owns: nothing; it reads, and goes through headers and table.
 */
#include "../base/crc32c.h"
#include "pages.h"

void weir_engine_wear(struct weir_engine *engine, struct weir_engine_wear *wear)
{
	engine_lock(engine);
	*wear = (struct weir_engine_wear){ .erase_blocks = engine->shape.erase_blocks,
					   .count = engine->shape.erase_count,
					   .least = ~(u32)0 };
	for (u32 i = 0; i < wear->count; i++) {
		const struct engine_erase *erase = &engine->erases[i];

		wear->least = erase->erases < wear->least ? erase->erases : wear->least;
		wear->most = erase->erases > wear->most ? erase->erases : wear->most;
		wear->free += erase->state == ENGINE_ERASE_FREE;
	}
	engine_unlock(engine);
}

u64 weir_engine_volume_blocks(struct weir_engine *engine, u32 vid)
{
	u64 count = 0;

	engine_lock(engine);
	for (u32 i = 0; i < engine_blocks(engine); i++)
		count += engine->headers[i].state == ENGINE_VALID && engine->headers[i].vid == vid;
	engine_unlock(engine);
	return count;
}

static void check_header(const struct weir_engine *engine, u32 index, struct weir_engine_checked *checked)
{
	const struct engine_header *header = engine_header(engine, index);
	const struct engine_volume *volume = engine_volume_find(engine, header->vid);

	checked->lost += engine_table_find(engine, header->vid, header->vba) != index;
	checked->orphans += !volume || header->vba >= volume->is.blocks;
}

static void check_data(struct weir_engine *engine, u32 index, struct weir_engine_checked *checked,
		       void (*bad)(u32 vid, u32 vba, u64 version))
{
	const struct engine_header *header = &engine->headers[index];
	u32 status = engine_io(engine, WEIR_IO_READ, engine->shape.data + index, engine->buffer, 1, false);

	checked->blocks++;
	if (!status && weir_crc32c(0, engine->buffer, ENGINE_BLOCK_BYTES) == header->crc)
		return;
	checked->bad++;
	if (bad)
		bad(header->vid, header->vba, header->version);
}

static void check_counts(const struct weir_engine *engine, struct weir_engine_checked *checked)
{
	for (u32 i = 0; i < engine->shape.erase_count; i++) {
		u32 first = i * engine->shape.erase_blocks, valid = 0;

		for (u32 j = 0; j < engine->shape.erase_blocks; j++)
			valid += engine->headers[first + j].state == ENGINE_VALID;
		checked->miscounted += valid != engine->erases[i].valid;
	}
}

void weir_engine_check(struct weir_engine *engine, struct weir_engine_checked *checked,
		       void (*bad)(u32 vid, u32 vba, u64 version))
{
	*checked = (struct weir_engine_checked){ 0 };
	for (u32 i = 0; i < engine_blocks(engine) + engine->shape.tombstones; i++) {
		if (engine_state(engine, i) != ENGINE_VALID)
			continue;
		check_header(engine, i, checked);
		if (engine_is_tombstone(engine, i))
			checked->tombstones++;
		else
			check_data(engine, i, checked, bad);
	}
	check_counts(engine, checked);
}
