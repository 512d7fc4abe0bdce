/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h: one deterministic thread: nodes, their tasks, simulated time, and what a seed draws.
 *
 * Owns: the order in which everything happens. A node is a process of the array; its threads are tasks,
 * fibers that give way where the product waits: system.c puts itself between the product and the system's
 * clock, sleeps and threads. The same seed gives the same order.
 */
#ifndef WEIR_SIMULATE_SIM_H
#define WEIR_SIMULATE_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/types.h>

#include "../../backends/cpu/fiber.h"

#define SIM_US ((u64)1000)
#define SIM_MS ((u64)1000000)
#define SIM_S  ((u64)1000000000)

/**
 * struct sim_node - a process
 * @incarnation: grows with each end; what was sent to an earlier one is lost
 * @clock_ns: how far its clock is ahead of the simulated time
 * @stalled_until: none of its tasks runs before that time
 * @host: its NQN
 */
struct sim_node {
	const char *name;
	const char *host;
	unsigned id;
	bool alive;
	u32 incarnation;
	u64 clock_ns;
	u64 stalled_until;
};

/**
 * struct sim_task - a thread of a node
 * @generation: of its next wake-up; older ones do not count
 * @joinable: it is not another task before it was joined
 * @woken: a wake-up is under way
 * @condition: what it waits for, as of pthread_cond_wait()
 */
struct sim_task {
	struct weir_fiber fiber;
	struct sim_node *node;
	void (*run)(void *argument);
	void *argument;
	u64 generation;
	bool used;
	bool ended;
	bool joinable;
	bool woken;
	const void *condition;
};

/** struct sim - the world; @hash: of all that was traced; @trace: whether it is printed, too; @locks: that
 * the current task took since it went on */
struct sim {
	u64 seed;
	u64 now;
	u64 hash;
	u64 steps;
	u64 locks;
	bool active;
	bool trace;
	struct sim_task *current;
	char failure[400];
};

extern struct sim sim;

void sim_begin(u64 seed, bool trace);
/** sim_end() - forget all tasks and events; @drop: for each event that has not happened */
void sim_end(void (*drop)(void (*call)(void *argument, u64 word), void *argument));
/** sim_step() - let the next event happen; false: there is none */
bool sim_step(void);

/** sim_system_begin() - once, before child processes are made */
void sim_system_begin(void);

u64 sim_draw(void);
/** sim_below() - 0 to @count - 1 */
u64 sim_below(u64 count);
/** sim_between() - @least to @most */
u64 sim_between(u64 least, u64 most);
/** sim_chance() - true @part times of @whole */
bool sim_chance(u64 part, u64 whole);

/** sim_at() - have @call(@argument, @word) called in @ns */
void sim_at(u64 ns, void (*call)(void *argument, u64 word), void *argument, u64 word);
struct sim_task *sim_spawn(struct sim_node *node, void (*run)(void *argument), void *argument);
/** sim_sleep() - the current task waits until @ns are over, or it is woken */
void sim_sleep(u64 ns);
void sim_wake(struct sim_task *task);
/** sim_wake_condition() - all tasks that wait for it */
void sim_wake_condition(const void *condition);
/** sim_kill() - the node's process is gone: its tasks do not go on */
void sim_kill(struct sim_node *node);
/** sim_trace() - note what happens: all arguments are unsigned long long */
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** sim_fail() - what must not happen has happened; the first one counts */
void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
