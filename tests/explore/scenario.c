/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario.c: one case of the table, from its shape to what must hold at its end. All of its numbers follow
 * from the seed.
 */
#include <string.h>

#include <weir/core/queue/sq.h>

#include "dataset_stream.h"
#include "explore.h"
#include "rig.h"
#include "scenario.h"
#include "scenarios.h"

#define FOREVER_NS ((u64)1 << 60)

enum {
	LAST_ITERATION = 0x7ffffffe, /* two turns before sequence words wrap */
	HANG_STEPS = 60000,
};

const struct scenario *scenario_find(const char *name)
{
	for (size_t i = 0; i < SCENARIO_COUNT; i++)
		if (!strcmp(scenarios[i].name, name))
			return &scenarios[i];
	return NULL;
}

static u32 power_below(u32 log2_limit)
{
	return 1u << random_below(log2_limit);
}

static void pick_shape(const struct scenario *scenario, struct rig_shape *shape, u32 *waves, u32 *width)
{
	*shape = (struct rig_shape){ .queues = 1,
				     .depth = scenario->depth       ? scenario->depth
					      : scenario->width > 1 ? 8
								    : 4,
				     .sets = 1,
				     .timeout_ns = FOREVER_NS };
	*waves = scenario->waves;
	*width = scenario->width ? scenario->width : 1;
	if (scenario->tiny)
		return;
	*width = power_below(3 + (random_below(4) == 0)); /* 1, 2, 4; now and then 8 */
	*waves = 1 + (u32)random_below(MOST_LANES / *width < 4 ? MOST_LANES / *width : 4);
	shape->depth = scenario->depth ? scenario->depth : 2 * power_below(4);
	shape->queues = 1 + (u32)random_below(2);
	shape->sets = 1 + (u32)random_below(2);
	if (random_below(2))
		shape->iteration = LAST_ITERATION;
	if (scenario->fair) {
		shape->queues = *width = 1;
		*waves = MOST_WAVES;
	}
	if (scenario->hosted && *waves * *width == MOST_LANES)
		--*waves; /* a lane is the host's */
}

/* What the host launches, and of what its program decides. */
static void lay_out_stream(const struct scenario *scenario, struct scenario_args *args)
{
	args->stream = (weir_addr)(uintptr_t)rig_allocate(sizeof(struct dataset_stream), 64);
	watch((void *)(uintptr_t)args->stream, sizeof(struct dataset_stream), sizeof(struct dataset_stream),
	      WATCH_NONE, "stream", sizeof(struct dataset_stream));
	args->disks = 1 + scenario->partner;
	args->choice = (u32)random_below((u64)1 << 32);
}

void *scenario_begin(const struct scenario *scenario, u32 *waves, u32 *width)
{
	struct scenario_args *args;
	struct rig_shape shape;
	u32 lanes, requests;

	pick_shape(scenario, &shape, waves, width);
	lanes = *waves * *width;
	requests = scenario->requests ? scenario->requests : 2;
	shape.pull = scenario->pull != 0;
	shape.places = scenario->pull == 2;
	shape.on_device = scenario->on_device;
	shape.nic = scenario->nic;
	shape.partner = scenario->partner;
	shape.queues = shape.partner ? 2 : shape.queues;
	shape.shadow = scenario->shadow;
	shape.forwarded = scenario->forwarded;
	shape.shares = scenario->shares;
	shape.tier = scenario->tier ? 1 + (scenario->tiny ? 0 : (u32)random_below(2)) : 0;
	shape.inclusive = scenario->tier == 2;
	if (shape.inclusive && shape.tier < shape.sets)
		shape.tier = shape.sets;
	if (scenario->placed) {
		shape.queues = 4;
		shape.replicas = 1 + (u32)random_below(3);
	}
	if (scenario->faults)
		shape.fault_count = scenario->faults(shape.faults);
	rig_open(&shape);
	args = rig_allocate(sizeof(*args), 64);
	args->disk = (weir_addr)(uintptr_t)rig.disk;
	args->array = (weir_addr)(uintptr_t)rig.array;
	args->requests = requests;
	args->salt = scenario->tiny ? 0 : (u32)random_below(SCENARIO_BLOCKS);
	args->tolerant = scenario->tolerant;
	args->mode = scenario->mode;
	args->writer = (weir_addr)(uintptr_t)rig.writer;
	args->other = (weir_addr)(uintptr_t)rig.other;
	args->marks = (weir_addr)(uintptr_t)rig_allocate((size_t)lanes * SCENARIO_BLOCKS * 8, 64);
	watch((void *)(uintptr_t)args->marks, (size_t)lanes * SCENARIO_BLOCKS * 8, 8, WATCH_DATA, "mark[%u]",
	      8);
	rig.written = scenario->written;
	args->events = (weir_addr)(uintptr_t)rig_allocate((size_t)lanes * requests * 8, 64);
	watch((void *)(uintptr_t)args->events, (size_t)lanes * requests * 8, 8, WATCH_EVENT, "event[%u]", 8);
	args->buffers =
		(weir_addr)(uintptr_t)rig_allocate((size_t)lanes * requests * SCENARIO_BLOCK_BYTES, 4096);
	watch((void *)(uintptr_t)args->buffers, (size_t)lanes * requests * SCENARIO_BLOCK_BYTES,
	      SCENARIO_BLOCK_BYTES, WATCH_DATA, "buffer[%u]", SCENARIO_BLOCK_BYTES);
	if (scenario->pool)
		rig_lay_out_pool(args, scenario->pool);
	if (scenario->batches)
		rig_lay_out_batches(args, *waves);
	if (scenario->hosted)
		lay_out_stream(scenario, args);
	run.hang_steps = HANG_STEPS;
	if (scenario->prepare)
		scenario->prepare();
	return args;
}

/*
 * Once a submission is known to be the oldest, WEIR_OVERTAKES commands go before it, and of each other lane a
 * few that had looked before, or saw old values. So each of N is served after about 10 N commands of others,
 * where lanes get about as many steps each.
 */
static void check_waits(void)
{
	u64 most = WEIR_OVERTAKES + 3 * run.lane_count;

	if (run.strategy->even && run.longest_wait > most)
		fail("the oldest submission waited while %llu commands of others were submitted, of %u "
		     "lanes; %llu are allowed",
		     (unsigned long long)run.longest_wait, run.lane_count, (unsigned long long)most);
}

void scenario_end(const struct scenario *scenario)
{
	if (!run.failed && scenario->fair)
		check_waits();
	if (!run.failed && scenario->tolerant)
		rig_check_lossy();
	else if (!run.failed)
		rig_check();
	rig_close();
}
