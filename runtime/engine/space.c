/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/space.c: erase blocks, and which of their blocks are whose.
 *
 * Owns: headers and erase blocks. Blocks are written in the order in which they lie in the open erase block;
 * what is written over is dead until its erase block is erased. All of it under the engine's lock.
 */
#include <stdlib.h>
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
	engine_header(engine, index)->state = ENGINE_BUSY;
	engine->erases[engine->open].busy++;
	if (engine->fill == engine->shape.erase_blocks)
		close_open(engine);
	return index;
}

static void settle(struct weir_engine *engine, u32 index, u8 state)
{
	engine_header(engine, index)->state = state;
	engine_erase_of(engine, index)->busy--;
}

void engine_give_back(struct weir_engine *engine, u32 index)
{
	if (engine_is_tombstone(engine, index))
		engine_header(engine, index)->state = ENGINE_FREE;
	else
		settle(engine, index, ENGINE_DEAD);
}

/* Tombstones from @at on to the end of its chunk: of the last one not all may be there. */
static u32 in_chunk(const struct weir_engine *engine, u32 at)
{
	u32 in_all = engine->shape.tombstones - at, in_whole = ENGINE_CHUNK - (at & (ENGINE_CHUNK - 1));

	return in_all < in_whole ? in_all : in_whole;
}

bool engine_reserve_tombstones(struct weir_engine *engine, u32 index)
{
	u32 first = (index - engine_blocks(engine)) & ~(u32)(ENGINE_CHUNK - 1);
	struct engine_header **chunk = &engine->tombstones[first >> ENGINE_CHUNK_LOG2];

	if (*chunk)
		return true;
	*chunk = calloc(ENGINE_CHUNK, sizeof(**chunk));
	engine->tombstone_room += *chunk ? in_chunk(engine, first) : 0;
	return *chunk;
}

/* One more chunk, when an eighth of them all is left, or less: a free one is found soon then. */
static void more_tombstones(struct weir_engine *engine)
{
	u32 at = 0;

	if (engine->tombstone_count < engine->tombstone_room / 8 * 7)
		return;
	while (at < engine->shape.tombstones && engine->tombstones[at >> ENGINE_CHUNK_LOG2])
		at += ENGINE_CHUNK;
	if (at >= engine->shape.tombstones || !engine_reserve_tombstones(engine, engine_blocks(engine) + at))
		return;
	engine->tombstone_next = at;
}

u32 engine_take_tombstone(struct weir_engine *engine)
{
	u32 first = engine_blocks(engine), most = engine->shape.tombstones, step;

	more_tombstones(engine);
	if (engine->tombstone_count == engine->tombstone_room)
		return ENGINE_NONE;
	for (u32 i = 0; i < most; i += step) {
		u32 at = (u32)(((u64)engine->tombstone_next + i) % most);
		bool is_there = engine->tombstones[at >> ENGINE_CHUNK_LOG2];

		step = is_there ? 1 : in_chunk(engine, at);
		if (!is_there || engine_state(engine, first + at) != ENGINE_FREE)
			continue;
		engine->tombstone_next = at + 1;
		engine_header(engine, first + at)->state = ENGINE_BUSY;
		return first + at;
	}
	return ENGINE_NONE;
}

static void note_moved(struct weir_engine *engine, u32 index)
{
	if (engine->moved)
		engine->headers[index].moved = engine->moved;
}

/* A block is gone that may be the one that could not be read: the rest of its erase block is tried again. */
static void leave_damaged(struct weir_engine *engine, struct engine_erase *erase)
{
	if (erase->state != ENGINE_ERASE_BAD)
		return;
	erase->state = ENGINE_ERASE_FULL;
	engine->blocked = false;
	pthread_cond_broadcast(&engine->changed);
}

/* What the table led to leads nowhere now. */
static void leave(struct weir_engine *engine, u32 index)
{
	if (engine_is_tombstone(engine, index)) {
		engine_header(engine, index)->state = ENGINE_FREE;
		engine->tombstone_count--;
		return;
	}
	engine_header(engine, index)->state = ENGINE_DEAD;
	note_moved(engine, index);
	engine_erase_of(engine, index)->valid--;
	engine->status.used--;
	if (engine_header(engine, index)->damaged)
		leave_damaged(engine, engine_erase_of(engine, index));
}

static void enter(struct weir_engine *engine, u32 index)
{
	engine_header(engine, index)->state = ENGINE_VALID;
	engine_header(engine, index)->lap = engine->sweep.lap;
	if (engine_is_tombstone(engine, index)) {
		engine->tombstone_count++;
		return;
	}
	note_moved(engine, index);
	engine_erase_of(engine, index)->valid++;
	engine->status.used++;
}

bool engine_install(struct weir_engine *engine, u32 index)
{
	u32 was;

	if (!engine_table_put(engine, index, &was))
		return false;
	if (was != ENGINE_NONE)
		leave(engine, was);
	if (!engine_is_tombstone(engine, index) && engine_header(engine, index)->state == ENGINE_BUSY)
		engine_erase_of(engine, index)->busy--;
	enter(engine, index);
	return true;
}

void engine_drop(struct weir_engine *engine, u32 index)
{
	leave(engine, index);
	engine_table_remove(engine, index);
}
