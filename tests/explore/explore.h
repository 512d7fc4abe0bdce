/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explore.h: the schedule explorer's own structures.
 *
 * Owns: one run: a scenario's lanes as fibers on one host thread, a controller
 * that is stepped, virtual time, and the memory between them. schedule.c runs
 * agents; strategy_*.c choose them; memory.c says what a load sees; watch.c holds
 * the invariants; rig.c has the controller; report.c explains a failure.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/types.h>

#include "../../backends/cpu/fiber.h"

enum {
	MOST_LANES = 16,
	MOST_WAVES = 8,
	LOGGED_STEPS = 200,
	ARENA_BYTES = 1 << 20,
	STEP_NS = 100, /* virtual time per step */
};

/* Who acts: lanes are 0 to MOST_LANES - 1. */
enum { AGENT_CONTROLLER = MOST_LANES, AGENT_MEMORY, AGENTS };

enum lane_state {
	LANE_READY,      /* stands before a primitive, or at its kernel's start */
	LANE_RELAXED,    /* the same, and polls something */
	LANE_CONVERGING, /* in weir_active(); runs on with who is there when it is chosen */
	LANE_MEETING,    /* in a collective, waiting for the rest of its mask */
	LANE_AT_BLOCK,   /* lockstep: before a basic block */
	LANE_DONE,
};

enum step_kind {
	STEP_LOAD,
	STEP_STORE,
	STEP_ADD,
	STEP_AND,
	STEP_OR,
	STEP_EXCHANGE,
	STEP_CAS,
	STEP_MMIO,
	STEP_ORDER_LOADS,
	STEP_FENCE_TO,
	STEP_FENCE_FROM,
	STEP_FENCE_WITH,
	STEP_ACTIVE,
	STEP_BALLOT,
	STEP_SHUFFLE,
	STEP_MATCH,
	STEP_WAVE_SYNC,
	STEP_RECONVERGE,
	STEP_RELAX,
	STEP_CLOCK,
	STEP_PLAIN_LOAD,
	STEP_PLAIN_STORE,
	STEP_START,
	STEP_BLOCK,
};

/**
 * struct step - one thing a lane did, for the report
 * @number: of the run's steps
 * @kind: what
 * @order: enum explore_order, or the number of bytes of a plain access
 * @address: of the word; mask of a collective
 * @value: stored or contributed
 * @result: what came back
 * @pc: where in the kernel
 */
struct step {
	u64 number;
	u8 kind;
	u8 order;
	bool ended;
	const void *address;
	u64 value;
	u64 result;
	const void *pc;
};

struct wave;

/**
 * struct lane - a lane of the run
 * @self: what the port shows the kernel
 * @together: what its last weir_active() gave: lanes that go on together from there
 * @horizon: weak memory: nothing older than this time may be loaded
 * @latest: weak memory: newest view of anything the lane has read
 * @fence: weak memory: when its last fence was
 * @submits: it is about to submit a command
 * @waits: of these it is the one that is known to be the oldest, since @since commands were submitted
 * @log: its last steps, a ring; @logged counts all of them
 */
struct lane {
	u32 self_lane; /* index in the wave */
	u32 index;
	u32 state;
	u32 block;
	struct wave *wave;
	struct weir_fiber fiber;
	u64 mask, value, result, together;
	u32 from, kind;
	const void *site;
	u64 reads;   /* words loaded since it last polled in vain, as bits of a hash */
	bool stale;  /* one of them was written by somebody else since */
	bool sleeps; /* RELAXED: polled a whole turn, and nothing it looked at has changed */
	u64 wakes;   /* the step at which its last rest ends or ended; 0: it has had none */
	u32 horizon, latest, fence;
	bool submits, waits;
	u64 since;
	u64 logged;
	struct step log[LOGGED_STEPS];
};

struct wave {
	u32 first, width, index;
	u64 live; /* mask of lanes not DONE */
};

struct strategy;
struct scenario;

/** struct run - the run under way */
struct run {
	const struct scenario *scenario;
	const struct strategy *strategy;
	bool weak;
	u64 seed;
	u64 random;
	u64 steps;
	u64 blocks;           /* basic blocks since the last step */
	u64 rings;            /* writes to doorbells */
	u64 submitted;        /* commands of all lanes */
	u64 longest_wait;     /* of the oldest for a slot, in commands of others */
	u64 progress_step;    /* when something last got done */
	u64 hang_steps;       /* a hang is this many steps without */
	u32 controller_share; /* it is stepped once in so many steps, where chance decides */
	u32 memory_share;     /* a delayed store arrives once in so many steps */
	u64 hash;             /* of who ran when: tells schedules apart */
	u32 lane_count, wave_count, live;
	struct lane *running;
	struct weir_fiber main;
	struct wave waves[MOST_WAVES];
	struct lane lanes[MOST_LANES];
	bool failed;
	bool trace;
	char failure[512];
};

extern struct run run;

/**
 * struct strategy - who runs next
 * @begin: a run begins; lanes are set up
 * @step: run one agent, or one round of a wave
 * @lockstep: lanes stop at basic blocks
 * @even: no lane gets much less of the steps than another
 */
struct strategy {
	const char *name;
	void (*begin)(void);
	void (*step)(void);
	bool lockstep;
	bool even;
};

extern const struct strategy strategy_random, strategy_pct, strategy_independent, strategy_starve,
	strategy_lag, strategy_rested, strategy_lockstep, strategy_exhaustive;

/* schedule.c */
u64 random_below(u64 limit);
/** schedule_begin() - lanes of @waves waves, @width lanes wide, each to run entry(args) */
void schedule_begin(u32 waves, u32 width, void (*entry)(void *), void *args);
/** schedule_run() - until all lanes are done or something failed */
void schedule_run(void);
/** schedule_lane() - run one lane up to its next point */
void schedule_lane(struct lane *lane);
bool lane_runnable(const struct lane *lane);
/** schedule_others() - the controller or a delayed store has its share of the steps. Return: it had. */
bool schedule_others(void);
/** fail() - this schedule is wrong: say why. Does not return when a lane calls it. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** collective_result() - what @lane gets when the lanes of @arrived meet */
u64 collective_result(const struct lane *lane, u64 arrived);
/** lane_resume() - switch to a lane without asking what it waits for */
void lane_resume(struct lane *lane);

/* memory.c */
extern unsigned char arena[];
void memory_begin(void);
u64 memory_load(struct lane *lane, const void *address, u32 bytes, u32 order);
void memory_store(struct lane *lane, void *address, u32 bytes, u64 value, u32 order);
u64 memory_change(struct lane *lane, void *address, u32 bytes, u32 change, u64 value, u64 expected,
		  u32 order);
void memory_order_loads(struct lane *lane);
void memory_fence_to(struct lane *lane);
void memory_fence_with(struct lane *lane);
void memory_wave_sync(struct wave *wave, u64 mask);
void memory_finish(struct lane *lane);
/** memory_drain_one() - let one delayed store reach memory. Return: there was one. */
bool memory_drain_one(void);
bool memory_pending(void);
/** memory_plain() - the kernel is about to access memory without a primitive */
void memory_plain(struct lane *lane, void *address, u32 bytes, bool store, struct step *step);
/** memory_settle() - the plain access announced last has happened */
void memory_settle(void);
/** memory_wake() - lanes that sleep look again: the controller has written somewhere */
void memory_wake(void);
/** memory_device_units() - the controller writes, @unit bytes at one time */
void memory_device_units(void *to, const void *from, size_t bytes, u32 unit);

static inline void memory_device_write(void *to, const void *from, size_t bytes)
{
	memory_device_units(to, from, bytes, 4);
}

/* One word, whose halves are of one time. */
static inline void memory_device_store(void *to, u64 value)
{
	memory_device_units(to, &value, sizeof(value), sizeof(value));
}

/* watch.c */
enum watch_kind {
	WATCH_NONE,
	WATCH_DATA,
	WATCH_LOCK,
	WATCH_SEQUENCE,
	WATCH_EVENT,
	WATCH_LINE,
	WATCH_SHARE,
	WATCH_TIER
};
void watch_begin(void);
/** watch() - words of @bytes each from @address on: kind, and a name for reports */
void watch(const void *address, size_t bytes, size_t word_bytes, enum watch_kind kind, const char *format,
	   size_t stride);
u32 watch_kind_at(const void *address);
/** watch_guard() - changes of @word need the lock @lock */
void watch_guard(const void *word, const void *lock);
void watch_write(struct lane *lane, void *address, u32 bytes, u64 old, u64 new);
const char *watch_name(const void *address);
int watch_lock_owner(const void *lock);

/* rig.c */
/** rig_poll() - step the controller. Return: it did something. */
bool rig_poll(void);
u64 rig_clock_ns(void *unused);

#endif
