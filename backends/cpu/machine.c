/* SPDX-License-Identifier: BSD-3-Clause */
/* What the machine is, from the kernel's files. */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "cpu.h"

enum { MOST_NODES = 1024, PATH_BYTES = 96 };

/* Core @core has an entry for its node in sysfs. */
static bool core_is_of(int core, int node)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/node%d", core, node);
	return access(path, F_OK) == 0;
}

static i32 node_of(int core)
{
	for (int node = 0; node < MOST_NODES; node++)
		if (core_is_of(core, node))
			return node;
	return -1;
}

i32 cpu_numa_node(void)
{
	cpu_set_t cores;
	i32 node = -1;

	if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
		return -1;
	for (int core = 0; core < CPU_SETSIZE; core++) {
		if (!CPU_ISSET(core, &cores))
			continue;
		if (node == -1 && (node = node_of(core)) == -1)
			return -1;
		if (!core_is_of(core, node))
			return -1;
	}
	return node;
}

void cpu_memory(u64 *bytes, u64 *free_bytes)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib;
	char line[128];

	*bytes = *free_bytes = 0;
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemTotal: %llu kB", &kib) == 1)
			*bytes = kib << 10;
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			*free_bytes = kib << 10;
	}
	fclose(file);
}
