/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * schedule.c: lanes as fibers that stop before every primitive, and the
 * primitives themselves.
 *
 * Owns: lane states and collectives. Who runs next is the strategy's choice; what
 * a load sees is memory.c's.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "explore.h"
#include "flow.h"
#include "hooks.h"
#include "report.h"
#include "scenario.h"

/* Without optimisation a kernel's frame takes more than a megabyte. */
enum {
	STACK_BYTES = 4 << 20,
	BLOCKS_WITHOUT_A_STEP = 1 << 20,
	MOST_STEPS = 4000000
}; /* four times that with a host */

struct run run;
static struct explore_identity identities[MOST_LANES];
const struct explore_identity *explore_self = identities;

static void (*kernel_entry)(void *);
static void *kernel_args;

/* xorshift64*; the whole run follows from the seed. */
u64 random_below(u64 limit)
{
	run.random ^= run.random >> 12;
	run.random ^= run.random << 25;
	run.random ^= run.random >> 27;
	return ((run.random * 0x2545f4914f6cdd1dull) >> 33) % limit;
}

void fail(const char *format, ...)
{
	va_list list;

	if (!run.failed) {
		run.failed = true;
		va_start(list, format);
		vsnprintf(run.failure, sizeof(run.failure), format, list);
		va_end(list);
	}
	if (run.running) { /* a lane: leave it for good */
		struct lane *lane = run.running;

		run.running = NULL;
		weir_fiber_switch(&lane->fiber, &run.main);
		abort();
	}
}

static void leave(struct lane *lane, u32 state)
{
	lane->state = state;
	run.running = NULL;
	weir_fiber_switch(&lane->fiber, &run.main);
}

void lane_resume(struct lane *lane)
{
	explore_self = &identities[lane->index];
	run.running = lane;
	weir_fiber_switch(&run.main, &lane->fiber);
	memory_settle();
}

static void lane_main(void *argument)
{
	struct lane *lane = argument;

	kernel_entry(kernel_args);
	memory_settle();
	memory_finish(lane);
	lane->wave->live &= ~((u64)1 << lane->self_lane);
	run.live--;
	run.progress_step = run.steps;
	leave(lane, LANE_DONE);
	abort();
}

/* The host's lane is no thread of the device: its number is theirs. */
static void prepare(struct lane *lane, u32 index, struct wave *wave, u32 threads)
{
	static unsigned char *stacks;

	if (!stacks)
		stacks = mmap(NULL, (size_t)MOST_LANES * STACK_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stacks == MAP_FAILED)
		abort();
	lane->index = index;
	lane->self_lane = index - wave->first;
	lane->wave = wave;
	lane->state = LANE_READY;
	lane->block = FLOW_EXIT;
	lane->horizon = lane->latest = lane->fence = 0;
	lane->logged = lane->reads = 0;
	lane->sleeps = false;
	lane->wakes = 0;
	lane->submits = lane->waits = false;
	lane->stale = true; /* the first turn is no whole one */
	lane->fiber.stack = stacks + (size_t)index * STACK_BYTES;
	lane->fiber.stack_bytes = STACK_BYTES;
	identities[index] = (struct explore_identity){ .lane = lane->self_lane,
						       .lanes = wave->width,
						       .thread = index,
						       .threads = threads,
						       .wave = wave->index };
	weir_fiber_prepare(&lane->fiber, lane_main, lane);
}

/* @waves waves, and the host's behind them. */
static void begin_waves(u32 waves, u32 width, u32 hosts)
{
	for (u32 i = 0; i < waves + hosts; i++) {
		struct wave *wave = &run.waves[i];
		u32 lanes = i < waves ? width : 1;

		*wave = (struct wave){
			.first = i * width, .width = lanes, .index = i, .live = ((u64)1 << lanes) - 1
		};
		for (u32 lane = 0; lane < lanes; lane++)
			prepare(&run.lanes[wave->first + lane], wave->first + lane, wave, waves * width);
	}
}

void schedule_begin(u32 waves, u32 width, void (*entry)(void *), void *args)
{
	u32 hosts = run.scenario->hosted;

	kernel_entry = entry;
	kernel_args = args;
	run.wave_count = waves + hosts;
	run.lane_count = run.live = waves * width + hosts;
	run.steps = run.rings = run.progress_step = run.blocks = run.submitted = run.longest_wait = 0;
	run.hash = 14695981039346656037ull;
	run.failed = false;
	run.running = NULL;
	begin_waves(waves, width, hosts);
	run.controller_share = 2u << random_below(5);
	run.memory_share = 2u << random_below(5);
	run.strategy->begin();
}

void schedule_run(void)
{
	weir_fiber_adopt(&run.main);
	while (run.live && !run.failed) {
		run.strategy->step();
		if (run.steps - run.progress_step > run.hang_steps)
			fail("hang: nothing was done for %llu steps", (unsigned long long)run.hang_steps);
		else if (run.steps > (run.scenario->hosted ? 4 * (u64)MOST_STEPS : MOST_STEPS))
			fail("hang: lanes go on for ever, %llu steps so far", (unsigned long long)run.steps);
	}
}

bool schedule_others(void)
{
	if (random_below(run.controller_share) == 0) {
		rig_poll();
		run.steps++;
		return true;
	}
	return run.weak && random_below(run.memory_share) == 0 && memory_drain_one();
}

bool lane_runnable(const struct lane *lane)
{
	return lane->state == LANE_READY || lane->state == LANE_RELAXED || lane->state == LANE_CONVERGING;
}

/* Lanes that wait in weir_active() at one place go on together: those that are there by now. */
static void release_converging(struct lane *lane)
{
	struct wave *wave = lane->wave;
	u64 mask = 0;

	for (u32 i = 0; i < wave->width; i++) {
		const struct lane *other = &run.lanes[wave->first + i];

		if (other->state == LANE_CONVERGING && other->site == lane->site)
			mask |= (u64)1 << i;
	}
	for (u32 i = 0; i < wave->width; i++) {
		if ((mask >> i) & 1) {
			run.lanes[wave->first + i].result = mask;
			run.lanes[wave->first + i].together = mask;
			run.lanes[wave->first + i].state = LANE_READY;
		}
	}
}

void schedule_lane(struct lane *lane)
{
	if (lane->state == LANE_CONVERGING)
		release_converging(lane);
	lane_resume(lane);
}

static struct step *log_step(struct lane *lane, u32 kind, const void *address, u64 value, u32 order,
			     const void *pc)
{
	struct step *step = &lane->log[lane->logged++ % LOGGED_STEPS];

	*step = (struct step){ .number = run.steps,
			       .kind = (u8)kind,
			       .order = (u8)order,
			       .address = address,
			       .value = value,
			       .pc = pc };
	return step;
}

/* A scheduling point: the strategy decides when this lane goes on. */
static struct step *point_as(u32 state, u32 kind, const void *address, u64 value, u32 order, const void *pc)
{
	struct lane *lane = run.running;
	struct step *step;

	memory_settle();
	log_step(lane, kind, address, value, order, pc); /* what it is about to do */
	leave(lane, state);
	run.steps++;
	run.blocks = 0;
	run.hash = (run.hash ^ (lane->index * 64 + kind)) * 1099511628211ull;
	step = &lane->log[(lane->logged - 1) % LOGGED_STEPS];
	step->number = run.steps;
	step->ended = true;
	return step;
}

static struct step *point(u32 kind, const void *address, u64 value, u32 order, const void *pc)
{
	return point_as(LANE_READY, kind, address, value, order, pc);
}

static u64 ended(struct step *step, u64 result)
{
	step->result = result;
	if (run.trace)
		report_step(run.running, step);
	return result;
}

#define HERE __builtin_return_address(0)

u64 explore_load(const void *address, u32 bytes, u32 order)
{
	struct step *step = point(STEP_LOAD, address, 0, order, HERE);

	return ended(step, memory_load(run.running, address, bytes, order));
}

void explore_store(void *address, u32 bytes, u64 value, u32 order)
{
	struct step *step = point(STEP_STORE, address, value, order, HERE);

	memory_store(run.running, address, bytes, value, order);
	ended(step, value);
}

u64 explore_change(void *address, u32 bytes, u32 change, u64 value, u64 expected, u32 order)
{
	struct step *step = point(STEP_ADD + change, address, value, order, HERE);

	return ended(step, memory_change(run.running, address, bytes, change, value, expected, order));
}

void explore_mmio_store(void *address, u32 value)
{
	struct step *step = point(STEP_MMIO, address, value, 0, HERE);

	memory_store(run.running, address, 4, value, EXPLORE_RELAXED);
	ended(step, value);
}

void explore_order_loads(void)
{
	struct step *step = point(STEP_ORDER_LOADS, NULL, 0, 0, HERE);

	memory_order_loads(run.running);
	ended(step, 0);
}

void explore_fence_to_controller(void)
{
	struct step *step = point(STEP_FENCE_TO, NULL, 0, 0, HERE);

	memory_fence_to(run.running);
	ended(step, 0);
}

void explore_fence_from_controller(void)
{
	struct step *step = point(STEP_FENCE_FROM, NULL, 0, 0, HERE);

	memory_order_loads(run.running);
	ended(step, 0);
}

void explore_fence_with_controller(void)
{
	struct step *step = point(STEP_FENCE_WITH, NULL, 0, 0, HERE);

	memory_fence_with(run.running);
	ended(step, 0);
}

u64 explore_active(void)
{
	struct lane *lane = run.running;
	struct step *step;

	lane->site = HERE;
	lane->kind = STEP_ACTIVE;
	step = point_as(LANE_CONVERGING, STEP_ACTIVE, NULL, 0, 0, HERE);
	return ended(step, lane->result);
}

u64 collective_result(const struct lane *lane, u64 arrived)
{
	const struct lane *lanes = &run.lanes[lane->wave->first];
	u64 result = 0;

	if (lane->kind == STEP_ACTIVE)
		return arrived;
	if (lane->kind == STEP_SHUFFLE)
		return lanes[lane->from % lane->wave->width].value;
	for (u32 i = 0; i < lane->wave->width; i++) {
		if (!((arrived >> i) & 1))
			continue;
		if (lane->kind == STEP_BALLOT ? lanes[i].value != 0 : lanes[i].value == lane->value)
			result |= (u64)1 << i;
	}
	return result;
}

static bool all_here(const struct lane *lane)
{
	for (u32 i = 0; i < lane->wave->width; i++) {
		const struct lane *other = &run.lanes[lane->wave->first + i];

		if (!((lane->mask >> i) & 1) || other == lane)
			continue;
		if (other->state != LANE_MEETING || other->kind != lane->kind || other->mask != lane->mask)
			return false;
	}
	return true;
}

/*
 * Lanes that came here together and meet must not leave others of them waiting in another collective: a GPU
 * may never get back to those (docs/porting.md). A kernel that has collectives of its own around the
 * library's calls is not judged: who comes together to a call is up to chance here.
 */
static void check_left_behind(const struct lane *lane)
{
	for (u32 i = 0; i < lane->wave->width; i++) {
		const struct lane *other = &run.lanes[lane->wave->first + i];

		if (!((lane->mask >> i) & 1) && ((lane->together >> i) & 1) && other->state == LANE_MEETING &&
		    (other->mask & lane->mask))
			fail("lanes %#llx of wave %u meet among themselves, while lane %u waits for them in "
			     "a collective over mask %#llx",
			     (unsigned long long)lane->mask, lane->wave->index, other->index,
			     (unsigned long long)other->mask);
	}
}

/* The last lane of the mask to arrive lets everybody go on; nobody passes before. */
static void arrive(struct lane *lane)
{
	struct lane *lanes = &run.lanes[lane->wave->first];
	u64 mask = lane->mask;

	if (run.strategy->lockstep || !all_here(lane))
		return;
	check_left_behind(lane);
	for (u32 i = 0; i < lane->wave->width; i++)
		if ((mask >> i) & 1)
			lanes[i].result = collective_result(&lanes[i], mask);
	for (u32 i = 0; i < lane->wave->width; i++)
		if ((mask >> i) & 1)
			lanes[i].state = LANE_READY;
	if (lane->kind == STEP_WAVE_SYNC)
		memory_wave_sync(lane->wave, mask);
}

static u64 meet(u32 kind, u64 mask, u64 value, u32 from, const void *pc)
{
	struct lane *lane = run.running;
	struct step *step;

	lane->kind = kind;
	lane->mask = mask;
	lane->value = value;
	lane->from = from;
	if (!((mask >> lane->self_lane) & 1))
		fail("lane %u calls a collective over mask %#llx, which lacks it", lane->index,
		     (unsigned long long)mask);
	lane->state = LANE_MEETING;
	arrive(lane);
	step = point_as(lane->state, kind, (const void *)(uintptr_t)mask, value, from, pc);
	return ended(step, lane->result);
}

u64 explore_ballot(u64 mask, u32 predicate)
{
	return meet(STEP_BALLOT, mask, predicate, 0, HERE);
}

u64 explore_shuffle(u64 mask, u64 value, u32 from)
{
	return meet(STEP_SHUFFLE, mask, value, from, HERE);
}

u64 explore_match(u64 mask, u64 value)
{
	return meet(STEP_MATCH, mask, value, 0, HERE);
}

void explore_wave_sync(u64 mask)
{
	(void)meet(STEP_WAVE_SYNC, mask, 0, 0, HERE);
}

void explore_reconverge(void)
{
	ended(point(STEP_RECONVERGE, NULL, 0, 0, HERE), 0);
}

void explore_relax(u32 ns)
{
	struct lane *lane = run.running;

	lane->sleeps = !lane->stale;
	if (lane->stale)
		lane->reads = 0;
	lane->stale = false;
	lane->wakes = run.steps + 1 + ns / STEP_NS;
	ended(point_as(LANE_RELAXED, STEP_RELAX, NULL, 0, 0, HERE), 0);
}

u64 explore_clock_ns(void)
{
	return ended(point(STEP_CLOCK, NULL, 0, 0, HERE), rig_clock_ns(NULL));
}

void explore_progress(void)
{
	run.progress_step = run.steps;
}

void explore_submits(void)
{
	run.running->submits = true;
}

void explore_expect(const char *what, u64 got, u64 wanted)
{
	if (got != wanted)
		fail("lane %u: %s is %#llx, should be %#llx", run.running->index, what,
		     (unsigned long long)got, (unsigned long long)wanted);
}

/* A plain access of the kernel is about to happen. Only words that change while lanes run count. */
static void plain(void *address, u32 bytes, bool store, const void *pc)
{
	struct step *step;

	if ((size_t)((unsigned char *)address - arena) >= ARENA_BYTES || !run.running) {
		return;
	}
	memory_settle();
	if (watch_kind_at(address) == WATCH_NONE)
		return;
	step = point(store ? STEP_PLAIN_STORE : STEP_PLAIN_LOAD, address, 0, bytes, pc);
	memory_plain(run.running, address, bytes, store, step);
	if (run.trace)
		report_step(run.running, step);
}

/*
 * The compiler's race instrumentation, used for its eyes only: it names every
 * plain access before it happens.
 */
#define PLAIN(name, bytes, store)                                                                            \
	void __tsan_##name(void *address);                                                                   \
	void __tsan_##name(void *address)                                                                    \
	{                                                                                                    \
		plain(address, bytes, store, HERE);                                                          \
	}
#define PLAIN_WIDE(name, store)                                                                              \
	void __tsan_##name(void *address);                                                                   \
	void __tsan_##name(void *address)                                                                    \
	{                                                                                                    \
		plain(address, 16, store, HERE);                                                             \
	}

PLAIN(read1, 1, false)
PLAIN(read2, 2, false)
PLAIN(read4, 4, false)
PLAIN(read8, 8, false)
PLAIN(write1, 1, true)
PLAIN(write2, 2, true)
PLAIN(write4, 4, true)
PLAIN(write8, 8, true)
PLAIN(unaligned_read2, 2, false)
PLAIN(unaligned_read4, 4, false)
PLAIN(unaligned_read8, 8, false)
PLAIN(unaligned_write2, 2, true)
PLAIN(unaligned_write4, 4, true)
PLAIN(unaligned_write8, 8, true)
PLAIN_WIDE(read16, false)
PLAIN_WIDE(write16, true)
PLAIN_WIDE(unaligned_read16, false)
PLAIN_WIDE(unaligned_write16, true)

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc);
void __tsan_func_entry(void *pc)
{
	(void)pc;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/* Copies go word by word, each a plain access of its own. */
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 8) {
		size_t part = bytes - at < 8 ? bytes - at : 8;

		plain((char *)(uintptr_t)from + at, (u32)part, false, HERE);
		u64 value = 0;
		memcpy(&value, (const char *)from + at, part);
		plain((char *)to + at, (u32)part, true, HERE);
		memcpy((char *)to + at, &value, part);
	}
	if (run.running)
		memory_settle();
	return to;
}

void *__tsan_memset(void *to, int value, size_t bytes);
void *__tsan_memset(void *to, int value, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 8) {
		size_t part = bytes - at < 8 ? bytes - at : 8;

		plain((char *)to + at, (u32)part, true, HERE);
		memset((char *)to + at, value, part);
	}
	if (run.running)
		memory_settle();
	return to;
}

void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
	return __tsan_memcpy(to, from, bytes); /* structures do not overlap themselves */
}

/* A lane reached a basic block (flow.c gave the guard its number). */
void __sanitizer_cov_trace_pc_guard(u32 *guard);
void __sanitizer_cov_trace_pc_guard(u32 *guard)
{
	struct lane *lane = run.running;

	if (!lane || !*guard)
		return;
	if (run.strategy->lockstep) {
		memory_settle();
		lane->block = flow_block(*guard);
		leave(lane, LANE_AT_BLOCK);
		return;
	}
	if (++run.blocks > BLOCKS_WITHOUT_A_STEP)
		fail("hang: lane %u runs in circles without a single primitive", lane->index);
}
