/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../runtime/backend/error.h"
#include "../../runtime/backend/posted.h"
#include "cpu.h"

/* Kernels a lane runs back to back before waiting lanes get a turn. */
enum { LANES_IN_A_ROW = 64 };

enum {
	VAIN_POLLS = 2,            /* of all lanes, at least, before their worker sleeps */
	SPIN_NS = 200 * 1000,      /* for so long it polls before, unless it is in the way */
	SLEEP_NS = 50 * 1000,      /* then, unless somebody posts */
	SHORT_YIELD_NS = 3 * 1000, /* in which nobody else can have had the core */
};

static struct cpu_worker *worker_of(const struct cpu_lane *lane)
{
	return (struct cpu_worker *)((char *)lane->wave->worker - offsetof(struct cpu_worker, main));
}

static void lane_main(void *argument);

/* Take the next wave of the launch for the lanes of @wave. */
static bool take_wave(struct cpu_worker *worker, struct cpu_wave *wave)
{
	struct cpu_launch *launch = worker->launch;
	/* relaxed: a number dispenser; args were published by the mutex */
	u64 index = atomic_fetch_add_explicit(&launch->next_wave, 1, memory_order_relaxed);
	u64 block = index / launch->waves_per_block;
	u64 first = (index % launch->waves_per_block) * wave->width;

	if (index >= launch->waves)
		return false;
	wave->live = 0;
	for (u32 i = 0; i < wave->width; i++) {
		struct cpu_lane *lane = &wave->lanes[i];
		bool there = first + i < launch->threads;

		lane->self.thread = block * launch->threads + first + i;
		lane->self.threads = (u64)launch->blocks * launch->threads;
		lane->self.wave = index;
		lane->state = there ? CPU_LANE_READY : CPU_LANE_DONE;
		wave->live += there;
		if (there && !lane->fiber.entry) /* first use: most launches need few lanes */
			weir_fiber_prepare(&lane->fiber, lane_main, lane);
	}
	return true;
}

static void wave_ended(struct cpu_launch *launch)
{
	/* release: what the kernel wrote, before the host's weir_sync() sees zero */
	if (atomic_fetch_sub_explicit(&launch->waves_left, 1, memory_order_release) == 1)
		weir_posted(); /* other workers may sleep, with no lanes */
}

/* What the host wrote before the launch is seen; what the kernel writes, after it. */
static void run_kernel(struct cpu_launch *launch)
{
	weir_fiber_hook_part(&launch->next_wave);
	launch->kernel->entry(launch->args);
	weir_fiber_hook_meet(&launch->waves_left);
}

/* A lane's fiber: kernels one after the other, for as long as the worker lives. */
static void lane_main(void *argument)
{
	struct cpu_lane *lane = argument;
	struct cpu_worker *worker = worker_of(lane);

	for (;;) {
		struct cpu_launch *launch = worker->launch;

		run_kernel(launch);
		for (u32 i = 1; i < LANES_IN_A_ROW && lane->wave->width == 1; i++) {
			if (!take_wave(worker, lane->wave))
				break;
			wave_ended(launch); /* the one before */
			run_kernel(launch);
		}
		cpu_lane_finish(lane);
	}
}

/*
 * One pass over the waves that are started, starting new ones in free places.
 * Return: number of waves that ended or started.
 */
static u32 pass(struct cpu_worker *worker, u32 *started)
{
	u32 changes = 0;

	worker->polls = UINT32_MAX;
	for (u32 i = 0; i < worker->wave_count; i++) {
		struct cpu_wave *wave = &worker->waves[i];

		if (wave->live == 0) {
			if (i > *started || !take_wave(worker, wave))
				continue;
			if (i == *started)
				(*started)++;
			changes++;
		}
		if (cpu_wave_pass(wave)) {
			wave_ended(worker->launch);
			changes++;
		} else if (wave->polls < worker->polls) {
			worker->polls = wave->polls;
		}
	}
	return changes;
}

/* Give the core away. Return: whether somebody took it. */
static bool yield(u64 *now_ns)
{
	u64 begin = weir_cpu_clock_ns();

	sched_yield();
	*now_ns = weir_cpu_clock_ns();
	return *now_ns - begin > SHORT_YIELD_NS;
}

static bool is_over(struct cpu_launch *launch)
{
	/* acquire: what other workers' lanes wrote, before this worker says that it is done */
	return atomic_load_explicit(&launch->waves_left, memory_order_acquire) == 0;
}

/* Sleep until controllers have something for the lanes, if there are any: they poll once more before. */
static void sleep_until_posted(struct cpu_worker *worker, u32 *started)
{
	u32 number = weir_posted_begin(), polls = worker->polls;

	if (pass(worker, started) == 0 && (worker->polls > polls || worker->polls == UINT32_MAX) &&
	    !is_over(worker->launch))
		weir_posted_wait(number, polls < WEIR_RELAX_AWAKE ? SLEEP_NS : WEIR_RELAX_NS(polls));
	weir_posted_end();
}

/* Is there a controller whose threads sleep until they are woken? Else all of them poll. */
static bool served_by_sleepers(void)
{
	u32 sleepers = 0;

	for (unsigned i = 0; i < WEIR_CPU_PAGES; i++) /* relaxed: a storage that comes later counts later */
		sleepers |= __atomic_load_n(&weir_cpu_pages[i].sleepers, __ATOMIC_RELAXED);
	return sleepers != 0;
}

/*
 * Everybody polls: let others run. While nobody else wants the core, polling is the fastest way to see what
 * comes, and so it is as long as controllers poll, too. Those that do not should not wait for a core behind
 * somebody who polls.
 */
static void rest(struct cpu_worker *worker, u32 *started)
{
	u64 now_ns;
	bool shared = yield(&now_ns);

	if (worker->polls == 0 || !worker->vain_ns)
		worker->vain_ns = now_ns;
	if (worker->polls >= VAIN_POLLS &&
	    ((shared && worker->sleepers) || now_ns - worker->vain_ns > SPIN_NS))
		sleep_until_posted(worker, started);
}

void cpu_worker_run(struct cpu_worker *worker, struct cpu_launch *launch)
{
	u32 started = 0;

	worker->launch = launch;
	worker->vain_ns = 0;
	worker->sleepers = served_by_sleepers();
	weir_fiber_hook_meet(&launch->next_wave);
	while (!is_over(launch)) {
		if (pass(worker, &started) != 0)
			worker->vain_ns = 0;
		else
			rest(worker, &started);
	}
	weir_fiber_hook_part(&launch->waves_left);
}

static int map_stacks(struct cpu_worker *worker, u32 lanes, size_t stack_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t stride = stack_bytes + page;

	worker->stacks_bytes = stride * lanes;
	worker->stacks = mmap(NULL, worker->stacks_bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (worker->stacks == MAP_FAILED) {
		worker->stacks = NULL;
		return weir_fail(ENOMEM,
				 "cannot map %zu bytes of stacks for %u lanes of worker %u; lower "
				 "resident_lanes or stack_bytes",
				 worker->stacks_bytes, lanes, worker->index);
	}
	for (u32 i = 0; i < lanes; i++) /* an overflow hits a page nobody may touch */
		if (mprotect(worker->stacks + i * stride, page, PROT_NONE) != 0)
			return weir_fail(ENOMEM,
					 "cannot keep the stacks of %u lanes of worker %u apart: %s; lower "
					 "resident_lanes or workers, or raise vm.max_map_count",
					 lanes, worker->index, strerror(errno));
	return 0;
}

static void prepare_lane(struct cpu_worker *worker, u32 index, size_t stack_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	u32 width = worker->backend->width;
	struct cpu_lane *lane = &worker->lanes[index];

	lane->wave = &worker->waves[index / width];
	lane->self.lane = index % width;
	lane->self.lanes = width;
	lane->state = CPU_LANE_DONE;
	lane->fiber.stack = worker->stacks + index * (stack_bytes + page) + page;
	lane->fiber.stack_bytes = stack_bytes;
}

int cpu_worker_prepare(struct cpu_worker *worker)
{
	struct cpu_backend *backend = worker->backend;
	u32 lanes = backend->waves_per_worker * backend->width;
	int error;

	worker->wave_count = backend->waves_per_worker;
	worker->waves = calloc(worker->wave_count, sizeof(*worker->waves));
	worker->lanes = calloc(lanes, sizeof(*worker->lanes));
	if (!worker->waves || !worker->lanes)
		return weir_fail(ENOMEM, "no memory for %u lanes; lower resident_lanes", lanes);
	error = map_stacks(worker, lanes, backend->stack_bytes);
	if (error)
		return error;
	for (u32 i = 0; i < worker->wave_count; i++)
		worker->waves[i] = (struct cpu_wave){ .worker = &worker->main,
						      .lanes = &worker->lanes[i * backend->width],
						      .width = backend->width,
						      .strict = backend->strict };
	for (u32 i = 0; i < lanes; i++)
		prepare_lane(worker, i, backend->stack_bytes);
	return 0;
}

void cpu_worker_release(struct cpu_worker *worker)
{
	u32 lanes = worker->wave_count * worker->backend->width;

	if (worker->stacks) {
		for (u32 i = 0; i < lanes; i++)
			if (worker->lanes[i].fiber.entry)
				weir_fiber_release(&worker->lanes[i].fiber);
		munmap(worker->stacks, worker->stacks_bytes);
	}
	free(worker->lanes);
	free(worker->waves);
}
