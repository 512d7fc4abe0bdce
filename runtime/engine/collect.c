/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/collect.c: garbage: erase blocks whose blocks were mostly written over.
 *
 * Owns: which erase block is emptied, by cost and benefit (Rosenblum and Ousterhout 1992), and the way of its
 * blocks to where the engine writes now. An erase block is free once the journal says that nothing leads
 * there.
 */
#include <string.h>

#include "../base/crc32c.h"
#include "pages.h"

enum { CHUNK = ENGINE_BUFFER_BYTES / ENGINE_BLOCK_BYTES };

/* Benefit over cost: what becomes free, by how long it has been so, for what has to be read and written. */
static u64 score(const struct weir_engine *engine, const struct engine_erase *erase)
{
	u64 blocks = engine->shape.erase_blocks, dead = blocks - erase->valid;

	if (engine->free_erases <= ENGINE_SPARE_ERASE)
		return dead; /* there is no time for anything but room */
	return dead * (engine->sequence - erase->sequence + 1) * 256 / (blocks + erase->valid);
}

static u32 choose(const struct weir_engine *engine)
{
	u32 best = ENGINE_NONE;
	u64 most = 0;

	for (u32 i = 0; i < engine->shape.erase_count; i++) {
		const struct engine_erase *erase = &engine->erases[i];
		u64 is;

		if (erase->state != ENGINE_ERASE_FULL || erase->busy ||
		    erase->valid == engine->shape.erase_blocks)
			continue;
		is = score(engine, erase);
		if (is > most) {
			most = is;
			best = i;
		}
	}
	return best;
}

static void leave(struct weir_engine *engine, u32 index)
{
	engine->erases[index].state = ENGINE_ERASE_LEAVING;
	engine->erases[index].commit = engine->begun + 1;
	engine->leaving++;
	engine_want_commit(engine);
}

/* A hint to what is behind, if that gains from it. */
static void discard(struct weir_engine *engine, u32 first)
{
	if (!engine->behind->in_memory)
		(void)engine_io(engine, WEIR_IO_DISCARD, engine->shape.data + first, NULL,
				engine->shape.erase_blocks, false);
}

/* One that the journal and readers have left is free. */
static bool free_one(struct weir_engine *engine, u32 index)
{
	struct engine_erase *erase = &engine->erases[index];
	u32 first = index * engine->shape.erase_blocks;

	if (erase->state != ENGINE_ERASE_LEAVING || erase->readers || erase->commit > engine->committed)
		return false;
	engine_unlock(engine);
	discard(engine, first);
	engine_lock(engine);
	for (u32 i = 0; i < engine->shape.erase_blocks; i++)
		engine->headers[first + i].state = ENGINE_FREE;
	erase->state = ENGINE_ERASE_FREE;
	erase->erases++;
	engine->free_erases++;
	engine->leaving--;
	engine->status.erases++;
	if (erase->erases > engine->status.erases_most)
		engine->status.erases_most = erase->erases;
	engine_record_erase(engine, index);
	return true;
}

static unsigned free_some(struct weir_engine *engine)
{
	unsigned count = 0;

	for (u32 i = 0; engine->leaving && i < engine->shape.erase_count; i++)
		count += free_one(engine, i);
	return count;
}

/** struct moving - blocks of a chunk: @from of each, and where it goes */
struct moving {
	u32 from[CHUNK];
	u32 to[CHUNK];
	u32 count;
};

/* Which of @blocks from @first on are valid, and room for them; the buffer holds these, one behind the other.
 * false: there is not enough. */
static bool pick(struct weir_engine *engine, struct moving *moving, u32 first, u32 blocks)
{
	moving->count = 0;
	for (u32 i = 0; i < blocks; i++) {
		u32 to;

		if (!engine_is_here(engine, first + i))
			continue;
		to = engine_take(engine, true);
		if (to == ENGINE_NONE)
			return false;
		memmove(engine->buffer + (size_t)moving->count * ENGINE_BLOCK_BYTES,
			engine->buffer + (size_t)i * ENGINE_BLOCK_BYTES, ENGINE_BLOCK_BYTES);
		moving->from[moving->count] = first + i;
		moving->to[moving->count++] = to;
	}
	return true;
}

static u32 write_moving(struct weir_engine *engine, const struct moving *moving)
{
	u32 status = NVME_STATUS_SUCCESS, run;

	for (u32 at = 0; at < moving->count && !status; at += run) {
		run = 1;
		while (at + run < moving->count && moving->to[at + run] == moving->to[at] + run)
			run++;
		status = engine_io(engine, WEIR_IO_WRITE, engine->shape.data + moving->to[at],
				   engine->buffer + (size_t)at * ENGINE_BLOCK_BYTES, run, false);
	}
	return status;
}

/* What is still where it was is there now: with its checksum as it was, so that what is damaged stays known.
 */
static void install(struct weir_engine *engine, const struct moving *moving, u32 status)
{
	for (u32 i = 0; i < moving->count; i++) {
		const struct engine_header *from = &engine->headers[moving->from[i]];
		struct engine_header *to = &engine->headers[moving->to[i]];

		if (!engine_is_here(engine, moving->from[i]) || status) {
			engine_give_back(engine, moving->to[i]);
			continue;
		}
		to->version = from->version;
		to->vba = from->vba;
		to->crc = from->crc;
		to->vid = from->vid;
		to->damaged = weir_crc32c(0, engine->buffer + (size_t)i * ENGINE_BLOCK_BYTES,
					  ENGINE_BLOCK_BYTES) != to->crc;
		engine->status.medium_writes++;
		engine->status.bad_blocks += to->damaged;
		if (engine_install(engine, moving->to[i]))
			engine_record_block(engine, moving->to[i]);
	}
}

/* What a medium fails that is read is where it is; what it fails that is written is elsewhere. */
enum moved { MOVED, MOVED_UNREAD, MOVED_UNWRITTEN };

static void note_unread(struct weir_engine *engine, u32 index)
{
	engine_lock(engine);
	engine->headers[index].damaged = 1; /* if it is gone by now, that does not matter */
	engine_unlock(engine);
}

static bool is_here(struct weir_engine *engine, u32 index)
{
	bool is;

	engine_lock(engine);
	is = engine_is_here(engine, index);
	engine_unlock(engine);
	return is;
}

/* Of several blocks that the medium behind cannot read nobody knows which it was: it may be one that is not
 * in use any more. false: one is that cannot be read. */
static bool read_singly(struct weir_engine *engine, u32 first, u32 blocks)
{
	for (u32 i = 0; i < blocks; i++) {
		if (!is_here(engine, first + i) ||
		    engine_io(engine, WEIR_IO_READ, engine->shape.data + first + i,
			      engine->buffer + (size_t)i * ENGINE_BLOCK_BYTES, 1, false) == 0)
			continue;
		note_unread(engine, first + i);
		return false;
	}
	return true;
}

static enum moved move_chunk(struct weir_engine *engine, u32 first, u32 blocks)
{
	struct moving moving;
	bool all;
	u32 status =
		engine_io(engine, WEIR_IO_READ, engine->shape.data + first, engine->buffer, blocks, false);

	if (status && !read_singly(engine, first, blocks))
		return MOVED_UNREAD;
	engine_lock(engine);
	all = pick(engine, &moving, first, blocks);
	engine_unlock(engine);
	status = write_moving(engine, &moving);
	engine_lock(engine);
	install(engine, &moving, status);
	engine->status.write_faults += status != 0;
	engine_unlock(engine);
	return status || !all ? MOVED_UNWRITTEN : MOVED;
}

/* Whether a block that could not be read is in use, still. */
static bool has_damaged(const struct weir_engine *engine, u32 first)
{
	for (u32 i = first; i < first + engine->shape.erase_blocks; i++)
		if (engine->headers[i].state == ENGINE_VALID && engine->headers[i].damaged)
			return true;
	return false;
}

static void empty(struct weir_engine *engine, u32 victim)
{
	u32 first = victim * engine->shape.erase_blocks;
	enum moved moved = MOVED;

	for (u32 at = 0; at < engine->shape.erase_blocks && moved == MOVED; at += CHUNK) {
		u32 left = engine->shape.erase_blocks - at;

		moved = move_chunk(engine, first + at, left < CHUNK ? left : CHUNK);
	}
	engine_lock(engine);
	if (moved == MOVED_UNREAD && has_damaged(engine, first))
		engine->erases[victim].state = ENGINE_ERASE_BAD; /* it keeps what it has */
	else if (moved == MOVED_UNWRITTEN)
		engine->blocked = true; /* until somebody wants space again */
	else if (!engine->erases[victim].valid)
		leave(engine, victim);
	engine_unlock(engine);
}

bool engine_is_out_of_space(const struct weir_engine *engine)
{
	if (!engine->blocked || engine->leaving || engine->sweep.left)
		return false;
	for (u32 i = 0; i < engine->shape.erase_count; i++)
		if (engine->erases[i].busy)
			return false;
	return true;
}

/* Whoever wants space has it. */
static bool is_enough(const struct weir_engine *engine)
{
	return engine->free_erases > ENGINE_LOW_ERASE && engine_can_take(engine, engine->want_blocks);
}

unsigned engine_collect(struct weir_engine *engine)
{
	unsigned count;
	u32 victim;

	engine_lock(engine);
	count = free_some(engine);
	if (!engine->want_space || engine->failed || is_enough(engine)) {
		engine->want_blocks = 0;
		engine->want_space = engine->leaving != 0;
		engine->blocked = engine->want_space && !count;
		engine_unlock(engine);
		return count;
	}
	victim = choose(engine);
	engine->blocked = victim == ENGINE_NONE && !count;
	if (victim == ENGINE_NONE)
		engine->want_space = engine->leaving != 0;
	else if (!engine->erases[victim].valid)
		leave(engine, victim);
	engine_unlock(engine);
	if (victim != ENGINE_NONE && engine->erases[victim].state == ENGINE_ERASE_FULL)
		empty(engine, victim);
	return count + (victim != ENGINE_NONE);
}
