/* SPDX-License-Identifier: BSD-3-Clause */
/* placed_host.c: what the host side of lanes has for them: tables, joins, engines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../rig/leaks.h"
#include "device/context.h"
#include "placed_rig.h"

/* The volume's lanes as its queue pairs lead to them. */
static struct weir_placed *placed_of(const struct weir_storage *volume)
{
	return weir_at(weir_at(volume->queues, struct weir_queue, 0)->volume, struct weir_placed, 0);
}

/* A lane that reads by the map before the newest one finds its table as it was. */
void a_new_map_leaves_the_one_before(void **state)
{
	struct fixture fixture = { .context = NULL };
	static uint32_t first[WEIR_PLACEMENT_GROUPS], second[WEIR_PLACEMENT_GROUPS];
	const uint32_t *tables;

	(void)state;
	for (uint32_t i = 0; i < WEIR_PLACEMENT_GROUPS; i++) {
		first[i] = i;
		second[i] = ~i;
	}
	rig_begin(&fixture, 1, 2, 64);
	tables = weir_at(placed_of(fixture.volume)->tables, uint32_t, 0);
	for (unsigned i = 0; i < 2; i++) {
		rig_must(weir_lanes_map(fixture.lanes, EPOCH + 1, first));
		rig_must(weir_lanes_map(fixture.lanes, EPOCH + 2, second));
		assert_memory_equal(tables, first, sizeof(first));
		assert_memory_equal(tables + WEIR_PLACEMENT_GROUPS, second, sizeof(second));
	}
	rig_end(&fixture);
}

/* A write that no lane waits for counts, wherever it is noted. */
void each_join_counts(void **state)
{
	static const uint32_t places[] = { 0, 63, 64, 2047, 2048, 4095 };
	struct fixture fixture = { .context = NULL };
	struct weir_placed *placed;
	uint64_t unequal;

	(void)state;
	rig_begin(&fixture, 1, 2, 64);
	placed = placed_of(fixture.volume);
	assert_int_equal(placed->join_count, 4096);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct weir_write_join *join = weir_at(placed->joins, struct weir_write_join, places[i]);

		weir_store_u32_relaxed_sys(&join->left, 1);
		assert_int_equal(weir_lanes_refused(fixture.lanes, &unequal), 0);
		assert_int_equal(unequal, 1);
		weir_store_u32_relaxed_sys(&join->left, 0);
	}
	rig_end(&fixture);
}

static const char *const small[ENGINES] = { "virt:16M?block=4096&engine=on&mdts=4K",
					    "virt:16M?block=4096&engine=on",
					    "virt:16M?block=4096&engine=on" };

static struct weir_lanes *open_lanes(struct weir_storage *volume)
{
	struct weir_lanes *lanes;

	rig_must(weir_lanes_open(volume,
				 &(struct weir_lanes_options){ .uris = small,
							       .engines = ENGINES,
							       .vid = VID,
							       .client = CLIENT,
							       .unit_log2 = UNIT_LOG2,
							       .replicas = 2,
							       .queues = 2,
							       .depth = 64 },
				 &lanes));
	assert_false(weir_lanes_has(lanes, 0));
	return lanes;
}

/* Engines are read only where the volume is, have as long for an answer as its own commands to them, and
 * what lanes send to them is tried as often. What lanes had is given back, that of an engine that they do
 * not reach, too. */
void engines_are_opened_for_the_volume(void **state)
{
	struct weir_storage_options options = { .size = sizeof(options), .queues = 2, .depth = 64 };
	struct weir_storage *volume;
	struct weir_context *context;
	struct test_has before = { 0 };

	(void)state;
	rig_must(weir_context_open("cpu", NULL, &context));
	for (unsigned i = 0; i < 16; i++) {
		struct weir_storage *part;
		struct weir_lanes *lanes;

		options.read_only = i % 2;
		rig_must(weir_storage_open(context, "virt:4M?block=4096", &options, &volume));
		lanes = open_lanes(volume);
		part = weir_lanes_part(lanes, 2);
		assert_int_equal(part->disk.flags & WEIR_DISK_READ_ONLY, i % 2 ? WEIR_DISK_READ_ONLY : 0);
		assert_true(part->answer_ns == 8000000000);
		for (uint32_t q = 0; q < 2; q++) {
			const struct weir_queue *queue = weir_at(part->queues, struct weir_queue, q);

			assert_int_equal(queue->placed, WEIR_QUEUE_ENGINE);
			assert_true(queue->retry == volume->disk.retry);
			assert_ptr_equal(weir_at(queue->volume, struct weir_placed, 0), placed_of(volume));
		}
		weir_lanes_close(lanes);
		rig_must(weir_storage_close(volume));
		if (i == 3)
			before = test_has();
	}
	test_keeps(before, 1 << 20);
	rig_must(weir_context_close(context));
}
