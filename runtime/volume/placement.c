/* SPDX-License-Identifier: BSD-3-Clause */
/* volume/placement.c: for each group, the engines with the shortest straws. */
#include "placement.h"

#include <errno.h>

#include <weir/core/mix.h>

#include "../backend/error.h"

enum {
	FRACTION_BITS = 26, /* of a logarithm, which is 32 at most: 32 bits in all */
	DRAW_BITS = 32,
	ONE_LOG2 = 31, /* a mantissa from 1 to 2 has so many bits behind its point */
	CHORDS_LOG2 = 8,
	CHORDS = 1 << CHORDS_LOG2,
	CHORD_BITS = ONE_LOG2 - CHORDS_LOG2,
	SLACK = 200, /* a chord is 185 below the curve at most: h^2 / (8 ln 2), with FRACTION_BITS */
};

/** struct chords - log2 of 1 to 2, at the ends of CHORDS equal parts */
struct chords {
	u32 end[CHORDS + 1];
};

/**
 * struct straw - @length / @weight, the shorter the better
 * @number: that was drawn; @length: of it, to within SLACK
 * @domain_mask: bits of the straws of this domain
 * @index: of the engine in the map
 */
struct straw {
	u32 number;
	u32 length;
	u32 weight;
	u32 domain;
	u32 domain_mask;
	u16 id;
	u8 index;
};

/** struct lot - the straws of a map's engines that get groups */
struct lot {
	u32 count;
	struct straw straws[NVME_VOLUME_MOST_ENGINES];
	struct chords chords;
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

static void draw_chords(struct chords *chords)
{
	for (u32 i = 0; i <= CHORDS; i++)
		chords->end[i] =
			log2_of(((u64)1 << ONE_LOG2) + ((u64)i << CHORD_BITS)) - (ONE_LOG2 << FRACTION_BITS);
}

/* log2(@x) to within SLACK, in a few steps instead of one for each bit. */
static u32 near_log2_of(const struct chords *chords, u64 x)
{
	u32 whole = 63 - (u32)__builtin_clzll(x);
	u32 behind = (u32)(x << (63 - whole) >> (63 - ONE_LOG2)) & ((1u << ONE_LOG2) - 1);
	const u32 *end = &chords->end[behind >> CHORD_BITS];
	u32 along = behind & ((1u << CHORD_BITS) - 1);

	return (whole << FRACTION_BITS) + end[0] + (u32)((u64)(end[1] - end[0]) * along >> CHORD_BITS);
}

/* A number of 32 bits that @group draws for engine @id: splitmix's mixer. */
static u32 draw(u32 group, u32 id)
{
	return (u32)(weir_mix_u64(((u64)(id + 1) << 32 | group) * WEIR_MIX_STEP) >> 32);
}

/* -log2 of @number as one from 0 to 1, of which @log2 is the logarithm. */
static u32 length_of(u32 log2)
{
	return ((u32)DRAW_BITS << FRACTION_BITS) - log2;
}

static u64 exact_length(const struct straw *straw)
{
	return length_of(log2_of((u64)straw->number + 1));
}

static bool exactly_shorter(const struct straw *a, const struct straw *b)
{
	u64 left = exact_length(a) * b->weight, right = exact_length(b) * a->weight;

	return left != right ? left < right : a->id < b->id;
}

/* By lengths to within SLACK, where these tell: the result is always that of the exact ones. */
static bool shorter(const struct straw *a, const struct straw *b)
{
	u64 left = (u64)a->length * b->weight, right = (u64)b->length * a->weight;
	u64 apart = left < right ? right - left : left - right;

	if (apart <= (u64)SLACK * a->weight + (u64)SLACK * b->weight)
		return exactly_shorter(a, b);
	return left < right;
}

/* The shortest of those that @left has bits of, one at least. */
static const struct straw *pick(const struct straw *straws, u32 left)
{
	const struct straw *best = &straws[__builtin_ctz(left)];

	for (left &= left - 1; left; left &= left - 1) {
		const struct straw *straw = &straws[__builtin_ctz(left)];

		best = shorter(straw, best) ? straw : best;
	}
	return best;
}

static void draw_straws(struct lot *lot, u32 group)
{
	for (u32 i = 0; i < lot->count; i++) {
		struct straw *straw = &lot->straws[i];

		straw->number = draw(group, straw->id);
		straw->length = length_of(near_log2_of(&lot->chords, (u64)straw->number + 1));
	}
}

/* Of domains that have none yet as long as there are such. */
static u32 place(struct lot *lot, u32 group)
{
	u32 apart = (1u << lot->count) - 1, left = apart, word = 0;

	draw_straws(lot, group);
	for (u32 replica = 0; replica < NVME_VOLUME_MOST_REPLICAS; replica++) {
		const struct straw *straw = left ? pick(lot->straws, apart ? apart : left) : NULL;

		word |= (straw ? straw->index : (u32)WEIR_PLACEMENT_NONE) << (8 * replica);
		apart &= straw ? ~straw->domain_mask : 0;
		left &= straw ? ~(1u << (straw - lot->straws)) : 0;
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

static void fill_lot(struct lot *lot, const struct nvme_volume_map *map)
{
	lot->count = 0;
	draw_chords(&lot->chords);
	for (u32 i = 0; i < map->count; i++) {
		const struct nvme_volume_engine *engine = &map->engines[i];

		if (engine->state == NVME_VOLUME_ENGINE_IN && engine->weight)
			lot->straws[lot->count++] = (struct straw){ .weight = engine->weight,
								    .domain = engine->domain,
								    .id = engine->id,
								    .index = (u8)i };
	}
	for (u32 i = 0; i < lot->count; i++)
		for (u32 j = 0; j < lot->count; j++)
			lot->straws[i].domain_mask |= (u32)(lot->straws[i].domain == lot->straws[j].domain)
						      << j;
}

int weir_placement_build(const struct nvme_volume_map *map, uint32_t *table)
{
	struct lot lot;
	int error = check(map);

	if (error)
		return error;
	fill_lot(&lot, map);
	for (u32 group = 0; group < WEIR_PLACEMENT_GROUPS; group++)
		table[group] = place(&lot, group);
	return 0;
}

bool weir_placement_is_same(const struct nvme_volume_map *a, const struct nvme_volume_map *b)
{
	bool same = a->count == b->count;

	for (u32 i = 0; same && i < a->count; i++)
		same = a->engines[i].id == b->engines[i].id && a->engines[i].state == b->engines[i].state &&
		       a->engines[i].domain == b->engines[i].domain &&
		       a->engines[i].weight == b->engines[i].weight;
	return same;
}
