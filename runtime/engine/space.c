/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/space.c: erase blocks, and which of their blocks are whose.
 *
 * Owns: headers and erase blocks. Blocks are written in the order in which they lie in the open erase block;
 * what is written over is dead until its erase block is erased. All of it under the engine's lock.
 */
#include <string.h>

#include "parts.h"

static bool open_next(struct weir_engine *engine)
{
	for (u32 i = 0; i < engine->shape.erase_count; i++) {
		u32 at = (u32)((engine->sequence + i) % engine->shape.erase_count);
		struct engine_erase *erase = &engine->erases[at];

		if (erase->state != ENGINE_ERASE_FREE)
			continue;
		erase->state = ENGINE_ERASE_OPEN;
		erase->sequence = ++engine->sequence;
		engine->open = at;
		engine->fill = 0;
		engine->free_erases--;
		engine_record_erase(engine, at);
		return true;
	}
	return false;
}

/* It is written to its end; or its rest is left out, after a restart. */
static void close_open(struct weir_engine *engine)
{
	engine->erases[engine->open].state = ENGINE_ERASE_FULL;
	engine->open = ENGINE_NONE;
}

bool engine_can_take(const struct weir_engine *engine, u32 blocks)
{
	u64 room = engine->open == ENGINE_NONE ? 0 : engine->shape.erase_blocks - engine->fill;

	if (engine->free_erases < ENGINE_SPARE_ERASE)
		return false; /* the open one is a spare: what failed to be collected may need it once more */
	return room + (u64)(engine->free_erases - ENGINE_SPARE_ERASE) * engine->shape.erase_blocks >= blocks;
}

u32 engine_take(struct weir_engine *engine, bool collecting)
{
	u32 index;

	if (engine->open == ENGINE_NONE) {
		if (!engine->free_erases || (!collecting && engine->free_erases <= ENGINE_SPARE_ERASE) ||
		    !open_next(engine))
			return ENGINE_NONE;
	}
	index = engine->open * engine->shape.erase_blocks + engine->fill++;
	engine->headers[index].state = ENGINE_BUSY;
	engine->erases[engine->open].busy++;
	if (engine->fill == engine->shape.erase_blocks)
		close_open(engine);
	return index;
}

static void settle(struct weir_engine *engine, u32 index, u8 state)
{
	engine->headers[index].state = state;
	engine_erase_of(engine, index)->busy--;
}

void engine_give_back(struct weir_engine *engine, u32 index)
{
	if (engine_is_tombstone(engine, index))
		engine->headers[index].state = ENGINE_FREE;
	else
		settle(engine, index, ENGINE_DEAD);
}

u32 engine_take_tombstone(struct weir_engine *engine)
{
	u32 first = engine_blocks(engine);

	for (u32 i = 0; i < engine->shape.tombstones; i++) {
		u32 at = (engine->tombstone_next + i) % engine->shape.tombstones;

		if (engine->headers[first + at].state != ENGINE_FREE)
			continue;
		engine->tombstone_next = at + 1;
		engine->headers[first + at].state = ENGINE_BUSY;
		return first + at;
	}
	return ENGINE_NONE;
}

/* What the table led to leads nowhere now. */
static void leave(struct weir_engine *engine, u32 index)
{
	if (engine_is_tombstone(engine, index)) {
		engine->headers[index].state = ENGINE_FREE;
		return;
	}
	engine->headers[index].state = ENGINE_DEAD;
	engine_erase_of(engine, index)->valid--;
	engine->status.used--;
}

static void enter(struct weir_engine *engine, u32 index)
{
	engine->headers[index].state = ENGINE_VALID;
	if (engine_is_tombstone(engine, index))
		return;
	engine_erase_of(engine, index)->valid++;
	engine->status.used++;
}

bool engine_install(struct weir_engine *engine, u32 index)
{
	const struct engine_header *header = &engine->headers[index];
	struct engine_slot *slot = engine_table_find(engine, header->vid, header->vba);

	if (slot) {
		leave(engine, slot->index);
		slot->index = index;
	} else if (!engine_table_add(engine, index)) {
		return false;
	}
	if (!engine_is_tombstone(engine, index) && header->state == ENGINE_BUSY)
		engine_erase_of(engine, index)->busy--;
	enter(engine, index);
	return true;
}

void engine_drop(struct weir_engine *engine, struct engine_slot *slot)
{
	leave(engine, slot->index);
	engine_table_remove(engine, slot);
}

void engine_drop_volume(struct weir_engine *engine, u32 vid)
{
	for (u64 i = 0; i < engine->table.buckets * ENGINE_BUCKET; i++) {
		struct engine_slot *slot = &engine->table.slots[i];

		if (slot->index != ENGINE_NONE && engine->headers[slot->index].vid == vid)
			engine_drop(engine, slot);
	}
}
