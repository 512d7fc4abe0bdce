/* SPDX-License-Identifier: BSD-3-Clause */
/* Where worker threads run; hwloc knows the machine. */
#include <sched.h>

#include <hwloc.h>

#include "cpu.h"

u32 cpu_usable_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	return (u32)CPU_COUNT(&set);
}

static void bind_one(hwloc_topology_t topology, struct cpu_worker *worker, hwloc_cpuset_t where)
{
	hwloc_bitmap_singlify(where);
	/* Best effort: a worker that may not be bound still runs. */
	(void)hwloc_set_thread_cpubind(topology, worker->thread, where, HWLOC_CPUBIND_THREAD);
}

void cpu_pin_workers(struct cpu_backend *backend)
{
	u32 count = backend->worker_count;
	hwloc_topology_t topology;
	hwloc_cpuset_t sets[count];
	hwloc_obj_t root;

	if (count < 2 || count >= cpu_usable_cores())
		return; /* the scheduler does better: controllers need a core too */
	if (hwloc_topology_init(&topology) != 0)
		return;
	if (hwloc_topology_load(topology) == 0) {
		root = hwloc_get_root_obj(topology);
		if (hwloc_distrib(topology, &root, 1, sets, count, INT_MAX, 0) == 0)
			for (u32 i = 0; i < count; i++) {
				bind_one(topology, &backend->workers[i], sets[i]);
				hwloc_bitmap_free(sets[i]);
			}
	}
	hwloc_topology_destroy(topology);
}
