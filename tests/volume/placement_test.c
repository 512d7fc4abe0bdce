/* SPDX-License-Identifier: BSD-3-Clause */
/* placement_test.c: which engines groups have, how evenly, and what moves when an engine comes or goes. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/error.h"
#include "volume/placement.h"

extern const char *weir_last_error(void);

enum { GROUPS = WEIR_PLACEMENT_GROUPS, MOST = NVME_VOLUME_MOST_ENGINES };

static const double LIMIT = 1.05; /* of the most loaded engine, and of what moves */

static uint32_t before[GROUPS], after[GROUPS];

/* Engines 1 to @count in domains of their own. */
static struct nvme_volume_map map_of(unsigned count)
{
	struct nvme_volume_map map = { .epoch = 1, .count = (u16)count };

	for (unsigned i = 0; i < count; i++)
		map.engines[i] =
			(struct nvme_volume_engine){ .id = (u16)(i + 1), .domain = i + 1, .weight = 100 };
	return map;
}

static void build(const struct nvme_volume_map *map, uint32_t *table)
{
	assert_int_equal(weir_placement_build(map, table), 0);
}

static unsigned engine_of(const uint32_t *table, uint32_t group, unsigned replica)
{
	return weir_placement_engine((weir_addr)(uintptr_t)table, group, replica);
}

static void count_loads(const uint32_t *table, unsigned replicas, unsigned loads[MOST])
{
	memset(loads, 0, MOST * sizeof(*loads));
	for (uint32_t group = 0; group < GROUPS; group++)
		for (unsigned r = 0; r < replicas; r++)
			if (engine_of(table, group, r) != WEIR_PLACEMENT_NONE)
				loads[engine_of(table, group, r)]++;
}

static int has(const struct nvme_volume_map *map, const uint32_t *table, uint32_t group, unsigned replicas,
	       unsigned id)
{
	for (unsigned r = 0; r < replicas; r++)
		if (engine_of(table, group, r) != WEIR_PLACEMENT_NONE &&
		    map->engines[engine_of(table, group, r)].id == id)
			return 1;
	return 0;
}

/* Replicas of the second table that are on an engine where they are not in the first. */
static unsigned moved(const struct nvme_volume_map *old, const struct nvme_volume_map *new, unsigned replicas)
{
	unsigned count = 0;

	for (uint32_t group = 0; group < GROUPS; group++)
		for (unsigned r = 0; r < replicas; r++)
			count += !has(old, before, group, replicas,
				      new->engines[engine_of(after, group, r)].id);
	return count;
}

static void loads_engines_alike(void **state)
{
	unsigned loads[MOST];

	(void)state;
	for (unsigned engines = 3; engines <= 16; engines++) {
		struct nvme_volume_map map = map_of(engines);

		build(&map, before);
		for (unsigned replicas = 1; replicas <= 3; replicas++) {
			count_loads(before, replicas, loads);
			for (unsigned i = 0; i < engines; i++)
				assert_true(loads[i] <= LIMIT * GROUPS * replicas / engines);
		}
	}
}

static void hashes_units_to_groups_alike(void **state)
{
	static unsigned loads[16];
	struct nvme_volume_map map = map_of(16);
	unsigned units = 200000;

	(void)state;
	build(&map, before);
	memset(loads, 0, sizeof(loads));
	for (unsigned unit = 0; unit < units; unit++) {
		u32 group = weir_placement_group(7, (u64)unit << 4, 4);

		assert_int_equal(group, weir_placement_group(7, ((u64)unit << 4) + 15, 4));
		for (unsigned r = 0; r < 2; r++)
			loads[engine_of(before, group, r)]++;
	}
	for (unsigned i = 0; i < 16; i++)
		assert_true(loads[i] <= LIMIT * units * 2 / 16);
}

static void moves_what_a_lost_engine_had(void **state)
{
	struct nvme_volume_map old = map_of(16), new = old;

	(void)state;
	build(&old, before);
	for (unsigned lost = 0; lost < 16; lost++) {
		new = old;
		new.engines[lost].state = NVME_VOLUME_ENGINE_OUT;
		build(&new, after);
		assert_in_range(moved(&old, &new, 2), 1, (unsigned)(LIMIT * GROUPS * 2 / 16));
	}
}

static void moves_what_a_new_engine_gets(void **state)
{
	(void)state;
	for (unsigned engines = 3; engines <= 16; engines++) {
		struct nvme_volume_map old = map_of(engines - 1), new = map_of(engines);

		build(&old, before);
		build(&new, after);
		if (engines > 2)
			assert_in_range(moved(&old, &new, 2), 1, (unsigned)(LIMIT * GROUPS * 2 / engines));
	}
}

/* Whoever is left of a group's engines stands in the same order, at the front. */
static void keeps_the_order_of_those_that_stay(void **state)
{
	struct nvme_volume_map old = map_of(5), new = old;

	(void)state;
	new.engines[2].state = NVME_VOLUME_ENGINE_OUT;
	build(&old, before);
	build(&new, after);
	for (uint32_t group = 0; group < GROUPS; group++)
		for (unsigned r = 0, at = 0; r < NVME_VOLUME_MOST_REPLICAS; r++)
			if (engine_of(before, group, r) != 2)
				assert_int_equal(engine_of(after, group, at++), engine_of(before, group, r));
}

static void does_not_depend_on_the_maps_order(void **state)
{
	struct nvme_volume_map old = map_of(7), new = old;

	(void)state;
	for (unsigned i = 0; i < 7; i++)
		new.engines[i] = old.engines[6 - i];
	build(&old, before);
	build(&new, after);
	for (uint32_t group = 0; group < GROUPS; group++)
		for (unsigned r = 0; r < NVME_VOLUME_MOST_REPLICAS; r++)
			assert_int_equal(engine_of(before, group, r), 6 - engine_of(after, group, r));
}

static void honours_weights(void **state)
{
	struct nvme_volume_map map = map_of(4);
	unsigned loads[MOST], total = 100 + 200 + 300 + 400;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		map.engines[i].weight = 100 * (i + 1);
	build(&map, before);
	count_loads(before, 1, loads);
	for (unsigned i = 0; i < 4; i++)
		assert_true(fabs(loads[i] - (double)GROUPS * map.engines[i].weight / total) <
			    (LIMIT - 1) * GROUPS * map.engines[i].weight / total);
	map.engines[0].weight = 0;
	build(&map, before);
	count_loads(before, 4, loads);
	assert_int_equal(loads[0], 0);
}

static void keeps_replicas_in_different_domains(void **state)
{
	struct nvme_volume_map map = map_of(9);

	(void)state;
	for (unsigned i = 0; i < 9; i++)
		map.engines[i].domain = i / 3;
	build(&map, before);
	for (uint32_t group = 0; group < GROUPS; group++) {
		unsigned domains = 0, engines = 0;

		for (unsigned r = 0; r < NVME_VOLUME_MOST_REPLICAS; r++) {
			engines |= 1u << engine_of(before, group, r);
			domains |= r < 3 ? 1u << map.engines[engine_of(before, group, r)].domain : 0;
		}
		assert_int_equal(domains, 7);
		assert_int_equal(__builtin_popcount(engines), 4); /* the fourth shares a domain */
	}
}

static void says_where_there_are_too_few_engines(void **state)
{
	struct nvme_volume_map map = map_of(3);

	(void)state;
	map.engines[1].state = NVME_VOLUME_ENGINE_OUT;
	build(&map, before);
	for (uint32_t group = 0; group < GROUPS; group++) {
		assert_int_equal(engine_of(before, group, 0) + engine_of(before, group, 1), 2);
		assert_int_equal(engine_of(before, group, 2), WEIR_PLACEMENT_NONE);
		assert_int_equal(engine_of(before, group, 3), WEIR_PLACEMENT_NONE);
	}
}

static uint32_t sum_of(const struct nvme_volume_map *map)
{
	uint32_t sum = 0;

	build(map, before);
	for (uint32_t group = 0; group < GROUPS; group++)
		sum = sum * 31 + before[group];
	return sum;
}

/* The first sum is of a table that another program made with logarithms in floating point, the others of
 * tables made with all bits of each logarithm. */
static void gives_the_same_table_everywhere(void **state)
{
	static const struct {
		unsigned engines, domains, weight, step;
		uint32_t sum;
	} tables[] = {
		{ 16, 16, 100, 7, 0x156daf06 },
		{ 31, 31, 100, 15, 0x071a85ad }, /* three groups are decided by the last bits */
		{ 31, 31, 100, 0, 0x07e4ac15 },
		{ 31, 2, 100, 0, 0xd7e7ce15 },
		{ 31, 9, 0xf0000000, 0x100000, 0x70d812a0 },
		{ 7, 3, 1, 1000, 0xce059cd4 },
	};

	(void)state;
	for (unsigned at = 0; at < sizeof(tables) / sizeof(tables[0]); at++) {
		struct nvme_volume_map map = map_of(tables[at].engines);

		for (unsigned i = 0; i < map.count; i++) {
			map.engines[i].weight = tables[at].weight + tables[at].step * i;
			map.engines[i].domain = i % tables[at].domains;
		}
		assert_int_equal(sum_of(&map), tables[at].sum);
	}
}

static void knows_which_maps_have_one_table(void **state)
{
	struct nvme_volume_map map = map_of(3), other[5];

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		other[i] = map;
	other[0].epoch = 2;
	other[0].rebuilding = 1;
	other[0].self = 2;
	strcpy(other[0].engines[1].address, "192.0.2.1:4420");
	assert_true(weir_placement_is_same(&map, &other[0]));
	other[0].count = 2;
	other[1].engines[2].state = NVME_VOLUME_ENGINE_OUT;
	other[2].engines[2].id = 9;
	other[3].engines[0].domain = 2;
	other[4].engines[1].weight = 101;
	for (unsigned i = 0; i < 5; i++)
		assert_false(weir_placement_is_same(&map, &other[i]));
}

static void refuses_maps_that_cannot_be(void **state)
{
	struct nvme_volume_map map = map_of(3);

	(void)state;
	map.engines[2].id = 1;
	assert_int_equal(weir_placement_build(&map, before), -EINVAL);
	assert_non_null(strstr(weir_last_error(), "engine 1 twice"));
	map.count = MOST + 1;
	assert_int_equal(weir_placement_build(&map, before), -EINVAL);
	assert_non_null(strstr(weir_last_error(), "32 engines"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_engines_alike),
		cmocka_unit_test(hashes_units_to_groups_alike),
		cmocka_unit_test(moves_what_a_lost_engine_had),
		cmocka_unit_test(moves_what_a_new_engine_gets),
		cmocka_unit_test(keeps_the_order_of_those_that_stay),
		cmocka_unit_test(does_not_depend_on_the_maps_order),
		cmocka_unit_test(honours_weights),
		cmocka_unit_test(keeps_replicas_in_different_domains),
		cmocka_unit_test(says_where_there_are_too_few_engines),
		cmocka_unit_test(gives_the_same_table_everywhere),
		cmocka_unit_test(knows_which_maps_have_one_table),
		cmocka_unit_test(refuses_maps_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
