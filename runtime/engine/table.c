/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/table.c: a cuckoo table from a block of a volume to its header.
 *
 * Owns: slots of 4 bytes. A slot has the index of a header, and in the bits that no index needs a tag of its
 * key. It has no key: the header that it leads to says whose it is, so that two blocks with one tag are told
 * apart. A block is in one of two buckets; when both are full, others make room, along the shortest way that
 * a search finds (Pagh and Rodler 2004; buckets: Dietzfelbinger and Weidling 2007).
 *
 * The table consists of shards, each a cuckoo table. One that is full gets an eighth more: what takes long
 * under the lock is a shard, not the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"
#include "parts.h"

enum {
	WAY_MOST = 512,      /* buckets that a search goes through */
	SHARD_MOST = 1 << 15 /* blocks of a shard, as long as it has not grown */
};

#define EMPTY (~(u32)0)

static u64 mix(u64 x)
{
	x = (x ^ x >> 32) * 0x9fb21c651e98df25u;
	x = (x ^ x >> 29) * 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

/** struct place - where a block can be; @tag: as a slot has it */
struct place {
	struct engine_shard *shard;
	u32 bucket[2];
	u32 tag;
};

static u32 scale(u32 hash, u32 buckets)
{
	return (u32)((u64)hash * buckets >> 32);
}

static u64 first_hash(u32 vid, u32 vba)
{
	return mix((u64)vid << 32 | vba);
}

/* In @shard, or NULL: in the one where it belongs. */
static struct place place_of(const struct engine_table *table, struct engine_shard *shard, u32 vid, u32 vba)
{
	u64 first = first_hash(vid, vba), second = mix(first + 0x9e3779b97f4a7c15u);
	u32 buckets;

	if (!shard)
		shard = &table->shards[(second >> 32) & (table->shard_count - 1)];
	/* relaxed: without the lock it is asked for a hint alone */
	buckets = __atomic_load_n(&shard->buckets, __ATOMIC_RELAXED);
	return (struct place){ shard,
			       { scale((u32)first, buckets), scale((u32)second, buckets) },
			       (u32)(first >> 32) & ~table->index_mask };
}

static bool shard_create(struct engine_shard *shard, u32 buckets)
{
	size_t bytes = (size_t)buckets * ENGINE_BUCKET * sizeof(*shard->slots);

	/* a bucket is in one line of the processor's cache */
	shard->slots = aligned_alloc(ENGINE_BUCKET * sizeof(*shard->slots), bytes);
	if (!shard->slots)
		return false;
	memset(shard->slots, 0xff, bytes);
	shard->buckets = buckets;
	return true;
}

/* Shards have a sixteenth more slots than blocks: some have more blocks than others. */
int engine_table_create(struct engine_table *table, u64 entries, u64 indices)
{
	u64 each;
	bool made = true;

	*table = (struct engine_table){ .shard_count = 1, .index_mask = 1 };
	while (table->index_mask < indices)
		table->index_mask = table->index_mask << 1 | 1;
	while ((u64)table->shard_count * SHARD_MOST < entries)
		table->shard_count *= 2;
	each = entries / table->shard_count + 1;
	table->shards = calloc(table->shard_count, sizeof(*table->shards));
	for (u32 i = 0; table->shards && made && i < table->shard_count; i++)
		made = shard_create(&table->shards[i], (u32)((each + each / 16) / ENGINE_BUCKET + 1));
	if (!table->shards || !made)
		return weir_fail(ENOMEM, "no memory for an engine of %llu blocks",
				 (unsigned long long)entries);
	return 0;
}

void engine_table_destroy(struct engine_table *table)
{
	for (u32 i = 0; table->shards && i < table->shard_count; i++)
		free(table->shards[i].slots);
	free(table->shards);
}

u64 engine_table_bytes(const struct engine_table *table)
{
	u64 bytes = table->shard_count * sizeof(*table->shards);

	for (u32 i = 0; i < table->shard_count; i++)
		bytes += (u64)table->shards[i].buckets * ENGINE_BUCKET * sizeof(*table->shards[i].slots);
	return bytes;
}

static u32 *bucket_at(const struct engine_shard *shard, u32 bucket)
{
	return &shard->slots[(size_t)bucket * ENGINE_BUCKET];
}

static u32 index_in(const struct weir_engine *engine, u32 slot)
{
	return slot & engine->table.index_mask;
}

static bool has_tag(const struct weir_engine *engine, u32 slot, u32 tag)
{
	return (slot & ~engine->table.index_mask) == tag && slot != EMPTY;
}

static bool is(const struct weir_engine *engine, u32 slot, u32 tag, u32 vid, u32 vba)
{
	const struct engine_header *header;

	if (!has_tag(engine, slot, tag))
		return false;
	header = engine_header(engine, index_in(engine, slot));
	return header->vba == vba && header->vid == vid;
}

void engine_table_prefetch(const struct weir_engine *engine, u32 vid, u32 vba)
{
	struct place place = place_of(&engine->table, NULL, vid, vba);
	const u32 *slots = __atomic_load_n(&place.shard->slots, __ATOMIC_RELAXED);

	__builtin_prefetch(&slots[(size_t)place.bucket[0] * ENGINE_BUCKET]);
	__builtin_prefetch(&slots[(size_t)place.bucket[1] * ENGINE_BUCKET]);
}

/* The first with the tag is most often the block. */
void engine_table_expect(const struct weir_engine *engine, u32 vid, u32 vba, bool reads)
{
	const struct weir_medium *behind = engine->behind;
	struct place place = place_of(&engine->table, NULL, vid, vba);

	reads = reads && behind->ops->expect;
	for (u32 i = 0; i < 2 * ENGINE_BUCKET; i++) {
		u32 slot = bucket_at(place.shard, place.bucket[i / ENGINE_BUCKET])[i % ENGINE_BUCKET];

		if (!has_tag(engine, slot, place.tag))
			continue;
		__builtin_prefetch(engine_header(engine, index_in(engine, slot)));
		if (reads && !engine_is_tombstone(engine, index_in(engine, slot)))
			behind->ops->expect(behind, WEIR_IO_READ, engine_at(engine, index_in(engine, slot)));
		reads = false;
	}
}

static u32 *find_slot(const struct weir_engine *engine, const struct place *place, u32 vid, u32 vba)
{
	for (u32 i = 0; i < 2; i++) {
		u32 *slot = bucket_at(place->shard, place->bucket[i]);

		for (u32 j = 0; j < ENGINE_BUCKET; j++, slot++)
			if (is(engine, *slot, place->tag, vid, vba))
				return slot;
	}
	return NULL;
}

u32 engine_table_find(const struct weir_engine *engine, u32 vid, u32 vba)
{
	struct place place = place_of(&engine->table, NULL, vid, vba);
	const u32 *slot = find_slot(engine, &place, vid, vba);

	return slot ? index_in(engine, *slot) : ENGINE_NONE;
}

static u32 *room_in(const struct engine_shard *shard, u32 bucket)
{
	u32 *slot = bucket_at(shard, bucket);

	for (u32 i = 0; i < ENGINE_BUCKET; i++)
		if (slot[i] == EMPTY)
			return &slot[i];
	return NULL;
}

/** struct step - of a search: @bucket is reached by moving slot @slot out of step @from's bucket */
struct step {
	u32 bucket;
	u32 from;
	u32 slot;
};

/* The other bucket where the block in @slot can be. */
static u32 other_bucket(const struct weir_engine *engine, struct engine_shard *shard, u32 slot, u32 bucket)
{
	const struct engine_header *header = engine_header(engine, index_in(engine, slot));
	struct place place = place_of(&engine->table, shard, header->vid, header->vba);

	return place.bucket[0] == bucket ? place.bucket[1] : place.bucket[0];
}

/* Move along the way back to its beginning; the slot that is free then. */
static u32 *move_along(const struct engine_shard *shard, const struct step *steps, u32 at, u32 *room)
{
	while (steps[at].from != ENGINE_NONE) {
		const struct step *from = &steps[steps[at].from];
		u32 *moved = bucket_at(shard, from->bucket) + steps[at].slot;

		*room = *moved;
		room = moved;
		at = steps[at].from;
	}
	return room;
}

/* Whether @bucket is on the way to step @at: a block must not be moved twice. */
static bool on_way(const struct step *steps, u32 at, u32 bucket)
{
	for (; at != ENGINE_NONE; at = steps[at].from)
		if (steps[at].bucket == bucket)
			return true;
	return false;
}

/* Breadth first: a bucket with room, and what has to move. */
static u32 *make_room(const struct weir_engine *engine, const struct place *place)
{
	struct step steps[WAY_MOST];
	u32 count = 2;

	steps[0] = (struct step){ place->bucket[0], ENGINE_NONE, 0 };
	steps[1] = (struct step){ place->bucket[1], ENGINE_NONE, 0 };
	for (u32 at = 0; at < count; at++) {
		const u32 *slots = bucket_at(place->shard, steps[at].bucket);
		u32 *room = room_in(place->shard, steps[at].bucket);

		if (room)
			return move_along(place->shard, steps, at, room);
		for (u32 i = 0; i < ENGINE_BUCKET && count < WAY_MOST; i++) {
			u32 other = other_bucket(engine, place->shard, slots[i], steps[at].bucket);

			if (!on_way(steps, at, other))
				steps[count++] = (struct step){ other, at, i };
		}
	}
	return NULL;
}

/* What @from has, into @to; false: it is too full. */
static bool copy(const struct weir_engine *engine, struct engine_shard *to, const struct engine_shard *from)
{
	for (size_t i = 0; i < (size_t)from->buckets * ENGINE_BUCKET; i++) {
		const struct engine_header *header;
		struct place place;
		u32 *room;

		if (from->slots[i] == EMPTY)
			continue;
		header = engine_header(engine, index_in(engine, from->slots[i]));
		place = place_of(&engine->table, to, header->vid, header->vba);
		room = make_room(engine, &place);
		if (!room)
			return false;
		*room = from->slots[i];
	}
	return true;
}

/* false: there is no memory for that. */
static bool grow(const struct weir_engine *engine, struct engine_shard *shard)
{
	struct engine_shard more = { .slots = NULL, .buckets = shard->buckets };

	do {
		free(more.slots);
		if (!shard_create(&more, more.buckets + more.buckets / 8 + 1))
			return false;
	} while (!copy(engine, &more, shard));
	free(shard->slots);
	__atomic_store_n(&shard->slots, more.slots, __ATOMIC_RELAXED); /* of hints, as in place_of() */
	__atomic_store_n(&shard->buckets, more.buckets, __ATOMIC_RELAXED);
	return true;
}

static bool add(struct weir_engine *engine, u32 index)
{
	const struct engine_header *header = engine_header(engine, index);
	struct place place = place_of(&engine->table, NULL, header->vid, header->vba);
	u32 *room = make_room(engine, &place);

	while (!room) {
		if (!grow(engine, place.shard))
			return false;
		place = place_of(&engine->table, NULL, header->vid, header->vba);
		room = make_room(engine, &place);
	}
	*room = place.tag | index;
	return true;
}

bool engine_table_put(struct weir_engine *engine, u32 index, u32 *was)
{
	const struct engine_header *header = engine_header(engine, index);
	struct place place = place_of(&engine->table, NULL, header->vid, header->vba);
	u32 *slot = find_slot(engine, &place, header->vid, header->vba);

	*was = slot ? index_in(engine, *slot) : ENGINE_NONE;
	if (!slot)
		return add(engine, index);
	*slot = place.tag | index;
	return true;
}

void engine_table_remove(struct weir_engine *engine, u32 index)
{
	const struct engine_header *header = engine_header(engine, index);
	struct place place = place_of(&engine->table, NULL, header->vid, header->vba);
	u32 *slot = find_slot(engine, &place, header->vid, header->vba);

	if (slot)
		*slot = EMPTY;
}

/* ---- a shard as a checkpoint has it ---- */

u32 engine_shard_index(const struct weir_engine *engine, const struct engine_shard *shard, u32 at)
{
	return shard->slots[at] == EMPTY ? ENGINE_NONE : index_in(engine, shard->slots[at]);
}

bool engine_shard_is_second(const struct engine_shard *shard, u32 at, const struct engine_header *header)
{
	return scale((u32)first_hash(header->vid, header->vba), shard->buckets) != at / ENGINE_BUCKET;
}

void engine_shard_clear(struct engine_shard *shard, u32 at)
{
	shard->slots[at] = EMPTY;
}

static bool is_empty(const struct engine_shard *shard)
{
	for (size_t i = 0; i < (size_t)shard->buckets * ENGINE_BUCKET; i++)
		if (shard->slots[i] != EMPTY)
			return false;
	return true;
}

bool engine_shard_resize(struct weir_engine *engine, u32 number, u32 buckets)
{
	struct engine_shard *shard = &engine->table.shards[number], is;

	if (number >= engine->table.shard_count)
		return false;
	if (shard->buckets == buckets)
		return true;
	if (!buckets || buckets > engine_blocks(engine) + engine->shape.tombstones || !is_empty(shard) ||
	    !shard_create(&is, buckets))
		return false;
	free(shard->slots);
	*shard = is;
	return true;
}

bool engine_shard_fill(struct weir_engine *engine, u32 number, u32 first, const u32 *slots, u32 count)
{
	struct engine_shard *shard = &engine->table.shards[number];
	u32 blocks = engine_blocks(engine), bad = 0;

	if ((u64)first + count > (u64)shard->buckets * ENGINE_BUCKET)
		return false;
	for (u32 i = 0; i < count; i++)
		bad |= slots[i] != EMPTY && index_in(engine, slots[i]) >= blocks;
	memcpy(shard->slots + first, slots, count * sizeof(*slots));
	return !bad;
}

bool engine_shard_add(struct weir_engine *engine, u32 number, u32 index, bool second)
{
	const struct engine_header *header = engine_header(engine, index);
	struct place place = place_of(&engine->table, NULL, header->vid, header->vba);
	u32 *room;

	if (place.shard != &engine->table.shards[number])
		return false;
	room = room_in(place.shard, place.bucket[second]);
	if (room)
		*room = place.tag | index;
	return room;
}
