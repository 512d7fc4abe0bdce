/* SPDX-License-Identifier: BSD-3-Clause */
/* volume/placement.c: for each group, the engines with the shortest straws. */
#include "placement.h"

#include <errno.h>
#include <stdbool.h>

#include "../backend/error.h"

enum {
	FRACTION_BITS = 26, /* of a logarithm, which is 32 at most: 32 bits in all */
	DRAW_BITS = 32,
	ONE_LOG2 = 31, /* a mantissa from 1 to 2 has so many bits behind its point */
};

/** struct straw - @length / @weight, the shorter the better, of engine @index */
struct straw {
	u32 length;
	u32 weight;
	u32 domain;
	u16 id;
	u8 index;
	bool taken;
};

/* log2(@x), 1 to 2^32, with FRACTION_BITS: each squaring of the mantissa gives one bit. */
static u32 log2_of(u64 x)
{
	u32 whole = 63 - (u32)__builtin_clzll(x), fraction = 0;
	u64 mantissa = whole > ONE_LOG2 ? x >> (whole - ONE_LOG2) : x << (ONE_LOG2 - whole);

	for (u32 i = 0; i < FRACTION_BITS; i++) {
		u64 square = mantissa * mantissa >> ONE_LOG2;
		u32 bit = (u32)(square >> (ONE_LOG2 + 1));

		fraction = fraction << 1 | bit;
		mantissa = square >> bit;
	}
	return (whole << FRACTION_BITS) + fraction;
}

/* A number of 32 bits that @group draws for engine @id: splitmix's mixer. */
static u32 draw(u32 group, u32 id)
{
	u64 x = ((u64)(id + 1) << 32 | group) * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (u32)((x ^ x >> 31) >> 32);
}

/* -log2 of a number from 0 to 1. */
static u32 length_of(u32 group, u32 id)
{
	return ((u32)DRAW_BITS << FRACTION_BITS) - log2_of((u64)draw(group, id) + 1);
}

static bool shorter(const struct straw *a, const struct straw *b)
{
	u64 left = (u64)a->length * b->weight, right = (u64)b->length * a->weight;

	return left != right ? left < right : a->id < b->id;
}

static bool has_domain(const struct straw *straws, u32 count, u32 domain)
{
	for (u32 i = 0; i < count; i++)
		if (straws[i].taken && straws[i].domain == domain)
			return true;
	return false;
}

/* The shortest that is left, of a domain that has none yet if @apart. NULL: there is none. */
static struct straw *pick(struct straw *straws, u32 count, bool apart)
{
	struct straw *best = NULL;

	for (u32 i = 0; i < count; i++)
		if (!straws[i].taken && (!best || shorter(&straws[i], best)) &&
		    !(apart && has_domain(straws, count, straws[i].domain)))
			best = &straws[i];
	return best;
}

static u32 place(struct straw *straws, u32 count, u32 group)
{
	u32 word = 0;

	for (u32 i = 0; i < count; i++) {
		straws[i].taken = false;
		straws[i].length = length_of(group, straws[i].id);
	}
	for (u32 replica = 0; replica < NVME_VOLUME_MOST_REPLICAS; replica++) {
		struct straw *straw = pick(straws, count, true);

		if (!straw)
			straw = pick(straws, count, false);
		if (straw)
			straw->taken = true;
		word |= (straw ? straw->index : (u32)WEIR_PLACEMENT_NONE) << (8 * replica);
	}
	return word;
}

static int check(const struct nvme_volume_map *map)
{
	if (map->count > NVME_VOLUME_MOST_ENGINES)
		return weir_fail(EINVAL, "a map of %u engines: there may be %d", map->count,
				 NVME_VOLUME_MOST_ENGINES);
	for (u32 i = 0; i < map->count; i++)
		for (u32 j = 0; j < i; j++)
			if (map->engines[i].id == map->engines[j].id)
				return weir_fail(EINVAL, "a map has engine %u twice", map->engines[i].id);
	return 0;
}

int weir_placement_build(const struct nvme_volume_map *map, uint32_t *table)
{
	struct straw straws[NVME_VOLUME_MOST_ENGINES];
	u32 count = 0;
	int error = check(map);

	if (error)
		return error;
	for (u32 i = 0; i < map->count; i++) {
		const struct nvme_volume_engine *engine = &map->engines[i];

		if (engine->state == NVME_VOLUME_ENGINE_IN && engine->weight)
			straws[count++] = (struct straw){ .weight = engine->weight,
							  .domain = engine->domain,
							  .id = engine->id,
							  .index = (u8)i };
	}
	for (u32 group = 0; group < WEIR_PLACEMENT_GROUPS; group++)
		table[group] = place(straws, count, group);
	return 0;
}
