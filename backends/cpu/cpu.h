/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpu.h: the CPU backend's own structures.
 *
 * Owns: launches and the workers that carry them out.
 */
#ifndef WEIR_CPU_H
#define WEIR_CPU_H

#include <pthread.h>

#include "../../runtime/backend/backend.h"
#include "kernels.h"
#include "wave.h"

/**
 * struct cpu_launch - one kernel over a grid
 * @serial: counts launches; addresses are reused, this is not
 * @next_wave: first wave nobody has taken yet
 * @waves_left: waves that have not ended
 * @call, @of: instead of a kernel: a call of the host's, made by the first worker that comes (cpu_defer())
 */
struct cpu_launch {
	struct cpu_launch *next;
	u64 serial;
	const struct cpu_kernel *kernel;
	u32 blocks;
	u32 threads;
	u32 waves_per_block;
	u64 waves;
	_Atomic u64 next_wave;
	_Atomic u64 waves_left;
	unsigned users; /* workers inside; under the backend's mutex */
	void *args;
	void (*call)(void *of); /* NULL once it is made; under the backend's mutex */
	void *of;
};

struct cpu_backend;

/**
 * struct cpu_worker - a thread and the lanes it keeps started
 * @waves: struct cpu_wave[wave_count]; a wave's lanes are reused for the next one
 * @polls: the fewest of the lanes that polled in the last pass
 * @vain_ns: since when all lanes poll in vain; 0: they do not, or nobody knows yet
 * @sleepers: some of those that the lanes wait for sleep, and do not poll
 * @stacks: one mapping for all lanes' stacks
 */
struct cpu_worker {
	struct cpu_backend *backend;
	pthread_t thread;
	bool started;
	unsigned index;
	struct weir_fiber main;
	struct cpu_wave *waves;
	struct cpu_lane *lanes;
	u32 wave_count;
	u32 polls;
	u64 vain_ns;
	bool sleepers;
	char *stacks;
	size_t stacks_bytes;
	struct cpu_launch *launch;
};

struct cpu_backend {
	struct weir_backend base;
	u32 width;
	u32 worker_count;
	u32 waves_per_worker;
	i32 numa_node; /* of all cores this process may use; -1: several */
	size_t stack_bytes;
	bool strict; /* WEIR_CPU_STRICT: see struct cpu_wave */
	struct cpu_worker *workers;
	struct weir_mapped *memory; /* what WEIR_MEMORY_DEVICE is taken from; NULL: the process's own */
	pthread_mutex_t mutex;
	pthread_cond_t work;      /* a launch came, or stop */
	pthread_cond_t idle;      /* a launch ended */
	struct cpu_launch *first; /* the running one, then those behind it */
	u64 serial;               /* of the newest launch */
	bool stop;
};

int cpu_worker_prepare(struct cpu_worker *worker);
void cpu_worker_release(struct cpu_worker *worker);
/** cpu_worker_run() - carry out the worker's share of @launch */
void cpu_worker_run(struct cpu_worker *worker, struct cpu_launch *launch);
/** cpu_pin_workers() - bind each worker thread to a core of its own, if there are enough */
void cpu_pin_workers(struct cpu_backend *backend);
/** cpu_usable_cores() - cores this process may run on */
u32 cpu_usable_cores(void);
/** cpu_numa_node() - the node that all those cores belong to; -1 if several or not known */
i32 cpu_numa_node(void);
/** cpu_memory() - of the machine, and what programs could still get of it; 0 where not known */
void cpu_memory(u64 *bytes, u64 *free_bytes);

#endif
