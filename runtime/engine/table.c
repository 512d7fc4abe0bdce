/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/table.c: a cuckoo table from a block of a volume to its header.
 *
 * Owns: slots of 8 bytes. A slot has a tag of its key and no key: the header that it leads to says whose it
 * is, so that two blocks with one tag are told apart. A block is in one of two buckets; when both are full,
 * others make room, along the shortest way that a search finds (Pagh and Rodler 2004; buckets: Dietzfelbinger
 * and Weidling 2007).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"
#include "parts.h"

enum { WAY_MOST = 512 }; /* buckets that a search goes through */

static u64 mix(u64 x)
{
	x = (x ^ x >> 32) * 0x9fb21c651e98df25u;
	x = (x ^ x >> 29) * 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

/** struct place - where a block can be */
struct place {
	u64 bucket[2];
	u32 tag;
};

static u64 scale(u32 hash, u64 buckets)
{
	return (u64)hash * buckets >> 32;
}

static struct place place_of(const struct engine_table *table, u32 vid, u32 vba)
{
	u64 first = mix((u64)vid << 32 | vba), second = mix(first + 0x9e3779b97f4a7c15u);

	return (struct place){ { scale((u32)first, table->buckets), scale((u32)second, table->buckets) },
			       (u32)(first >> 32) };
}

int engine_table_create(struct engine_table *table, u64 entries)
{
	u64 slots = entries + entries / 8 + 4 * ENGINE_BUCKET;

	table->buckets = slots / ENGINE_BUCKET;
	table->used = 0;
	table->slots = malloc(table->buckets * ENGINE_BUCKET * sizeof(*table->slots));
	if (!table->slots)
		return weir_fail(ENOMEM, "no memory for an engine of %llu blocks",
				 (unsigned long long)entries);
	memset(table->slots, 0xff, table->buckets * ENGINE_BUCKET * sizeof(*table->slots));
	return 0;
}

void engine_table_destroy(struct engine_table *table)
{
	free(table->slots);
}

static bool is(const struct weir_engine *engine, const struct engine_slot *slot, u32 tag, u32 vid, u32 vba)
{
	const struct engine_header *header;

	if (slot->index == ENGINE_NONE || slot->tag != tag)
		return false;
	header = &engine->headers[slot->index];
	return header->vba == vba && header->vid == vid;
}

void engine_table_prefetch(const struct weir_engine *engine, u32 vid, u32 vba)
{
	struct place place = place_of(&engine->table, vid, vba);

	__builtin_prefetch(&engine->table.slots[place.bucket[0] * ENGINE_BUCKET]);
	__builtin_prefetch(&engine->table.slots[place.bucket[1] * ENGINE_BUCKET]);
}

struct engine_slot *engine_table_find(const struct weir_engine *engine, u32 vid, u32 vba)
{
	struct place place = place_of(&engine->table, vid, vba);

	for (u32 i = 0; i < 2; i++) {
		struct engine_slot *slot = &engine->table.slots[place.bucket[i] * ENGINE_BUCKET];

		for (u32 j = 0; j < ENGINE_BUCKET; j++, slot++)
			if (is(engine, slot, place.tag, vid, vba))
				return slot;
	}
	return NULL;
}

static struct engine_slot *room_in(const struct engine_table *table, u64 bucket)
{
	struct engine_slot *slot = &table->slots[bucket * ENGINE_BUCKET];

	for (u32 i = 0; i < ENGINE_BUCKET; i++)
		if (slot[i].index == ENGINE_NONE)
			return &slot[i];
	return NULL;
}

/** struct step - of a search: @bucket is reached by moving slot @slot out of step @from's bucket */
struct step {
	u64 bucket;
	u32 from;
	u32 slot;
};

/* The other bucket where the block in @slot can be. */
static u64 other_bucket(const struct weir_engine *engine, const struct engine_slot *slot, u64 bucket)
{
	const struct engine_header *header = &engine->headers[slot->index];
	struct place place = place_of(&engine->table, header->vid, header->vba);

	return place.bucket[0] == bucket ? place.bucket[1] : place.bucket[0];
}

/* Move along the way back to its beginning; the slot that is free then. */
static struct engine_slot *move_along(const struct engine_table *table, const struct step *steps, u32 at,
				      struct engine_slot *room)
{
	while (steps[at].from != ENGINE_NONE) {
		const struct step *from = &steps[steps[at].from];
		struct engine_slot *moved = &table->slots[from->bucket * ENGINE_BUCKET + steps[at].slot];

		*room = *moved;
		room = moved;
		at = steps[at].from;
	}
	return room;
}

/* Whether @bucket is on the way to step @at: a block must not be moved twice. */
static bool on_way(const struct step *steps, u32 at, u64 bucket)
{
	for (; at != ENGINE_NONE; at = steps[at].from)
		if (steps[at].bucket == bucket)
			return true;
	return false;
}

/* Breadth first: a bucket with room, and what has to move. */
static struct engine_slot *make_room(const struct weir_engine *engine, const struct place *place)
{
	struct step steps[WAY_MOST] = { { place->bucket[0], ENGINE_NONE, 0 },
					{ place->bucket[1], ENGINE_NONE, 0 } };
	u32 count = 2;

	for (u32 at = 0; at < count; at++) {
		struct engine_slot *slots = &engine->table.slots[steps[at].bucket * ENGINE_BUCKET];
		struct engine_slot *room = room_in(&engine->table, steps[at].bucket);

		if (room)
			return move_along(&engine->table, steps, at, room);
		for (u32 i = 0; i < ENGINE_BUCKET && count < WAY_MOST; i++) {
			u64 other = other_bucket(engine, &slots[i], steps[at].bucket);

			if (!on_way(steps, at, other))
				steps[count++] = (struct step){ other, at, i };
		}
	}
	return NULL;
}

bool engine_table_add(struct weir_engine *engine, u32 index)
{
	const struct engine_header *header = &engine->headers[index];
	struct place place = place_of(&engine->table, header->vid, header->vba);
	struct engine_slot *room = make_room(engine, &place);

	if (!room)
		return false;
	*room = (struct engine_slot){ index, place.tag };
	engine->table.used++;
	return true;
}

void engine_table_remove(struct weir_engine *engine, struct engine_slot *slot)
{
	slot->index = ENGINE_NONE;
	engine->table.used--;
}
