/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * system.c: what the product asks of the system, given by the simulation: the linker leads calls here
 * (--wrap).
 *
 * Owns: clocks, sleeps, threads and condition variables of nodes, random numbers. Placement tables are the
 * product's, computed once for each different set of engines: only the time that they take is saved.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>

#include "sim.h"
#include "volume/placement.h"

enum {
	KEPT = 800,
	MOST_LOCKS = 1000000,
	TICK_LEAST_NS = 4000000,
	TICK_MOST_NS = 40000000,
	YIELD_NS = 1000000
};

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_sched_yield(void);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *argument);
int __wrap_pthread_join(pthread_t thread, void **result);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned flags);
int __real_weir_placement_build(const struct nvme_volume_map *map, uint32_t *table);
int __wrap_weir_placement_build(const struct nvme_volume_map *map, uint32_t *table);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	u64 ns;

	if (!sim.active)
		return __real_clock_gettime(clock, now);
	ns = sim.now + (sim.current ? sim.current->node->clock_ns : 0);
	*now = (struct timespec){ .tv_sec = (time_t)(ns / SIM_S), .tv_nsec = (long)(ns % SIM_S) };
	return 0;
}

/* Whoever sleeps goes on when the machine has a core for it. */
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
	(void)wanted;
	(void)left;
	sim_sleep(sim_between(TICK_LEAST_NS, TICK_MOST_NS));
	return 0;
}

/* Whoever gives its core away goes on when others have had it. */
int __wrap_sched_yield(void)
{
	if (sim.current)
		sim_sleep(sim_below(YIELD_NS));
	return 0;
}

/** struct thread - what a thread of the product runs */
struct thread {
	void *(*run)(void *);
	void *argument;
};

static void run_thread(void *argument)
{
	struct thread thread = *(struct thread *)argument;

	free(argument);
	(void)thread.run(thread.argument);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *argument)
{
	struct thread *made = malloc(sizeof(*made));
	struct sim_task *task;

	(void)attributes;
	if (!made)
		abort();
	*made = (struct thread){ run, argument };
	task = sim_spawn(sim.current->node, run_thread, made);
	task->joinable = true;
	*thread = (pthread_t)(uintptr_t)task;
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	struct sim_task *task = (struct sim_task *)(uintptr_t)thread;

	(void)result;
	while (sim.current && !task->ended) {
		sim.current->condition = task;
		sim_sleep(SIM_S);
		sim.current->condition = NULL;
	}
	task->joinable = false;
	return 0;
}

/* A thread that takes locks for ever, and never waits for what others do, uses up a core. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (sim.current && ++sim.locks == MOST_LOCKS) {
		sim_fail("a thread of %s goes round in circles", sim.current->node->name);
		for (;;)
			sim_sleep(1000 * SIM_S);
	}
	return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	pthread_mutex_unlock(mutex);
	sim.current->condition = condition;
	sim_sleep(SIM_S);
	sim.current->condition = NULL;
	return pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
	sim_wake_condition(condition);
	return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t count, unsigned flags)
{
	(void)flags;
	for (size_t i = 0; i < count; i++)
		((u8 *)bytes)[i] = (u8)sim_draw();
	return (ssize_t)count;
}

/** struct kept - tables that were computed, for all child processes; @key: of the engines; @used: by what
 * call last */
struct kept {
	u64 calls;
	u64 key[KEPT];
	u64 used[KEPT];
	u32 table[KEPT][WEIR_PLACEMENT_GROUPS];
};

static struct kept *kept;

void sim_system_begin(void)
{
	kept = mmap(NULL, sizeof(*kept), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (kept == MAP_FAILED)
		abort();
}

static u64 key_of(const struct nvme_volume_map *map)
{
	u64 key = map->count + 1;

	for (u32 i = 0; i < map->count; i++) {
		const struct nvme_volume_engine *engine = &map->engines[i];

		key = (key ^ ((u64)engine->id << 48 | (u64)engine->state << 40 | engine->domain)) *
		      0x9fb21c651e98df25u;
		key = (key ^ key >> 29 ^ engine->weight) * 0xd6e8feb86659fd93u;
		key ^= key >> 32;
	}
	return key | 1;
}

int __wrap_weir_placement_build(const struct nvme_volume_map *map, uint32_t *table)
{
	u64 key = key_of(map);
	u32 at = 0, oldest = 0;

	while (at < KEPT && kept->key[at] != key) {
		oldest = kept->used[at] < kept->used[oldest] ? at : oldest;
		at++;
	}
	if (at == KEPT) {
		if (__real_weir_placement_build(map, table) != 0)
			return -1;
		at = oldest;
		memcpy(kept->table[at], table, sizeof(kept->table[at]));
		kept->key[at] = key;
	}
	kept->used[at] = ++kept->calls;
	memcpy(table, kept->table[at], sizeof(kept->table[at]));
	return 0;
}
