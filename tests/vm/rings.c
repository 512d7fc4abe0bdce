/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_rings: in the guest, requests of one lane by one queue pair, and where in device memory their traces are
 * left, for the host to look there.
 *
 *   vm_rings FILE URI SEED LBA COUNT    read COUNT times 4 KiB, from LBA on; device memory is FILE
 * (cpu:memory=FILE)
 *
 * Prints "sq AT cq AT data AT slots AT": places in FILE, -1 for what lies elsewhere.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

enum { DEPTH = 16, REQUEST = 4096 };

/* The last parts of a path: links lead to a file, and its mapping has the file's name. */
static const char *real_name(const char *path)
{
	static char real[4096];

	return realpath(path, real) ? real : path;
}

/* Place of @address in the mapping of FILE that has it; a window of the module has others, of doorbells. */
static long long location(const char *path, uint64_t address)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	long long found = -1;
	uint64_t first, end;
	char line[512];

	while (maps && found < 0 && fgets(line, sizeof(line), maps))
		if (strstr(line, path) && sscanf(line, "%" SCNx64 "-%" SCNx64, &first, &end) == 2 &&
		    address >= first && address < end)
			found = (long long)(address - first);
	if (maps)
		fclose(maps);
	return found;
}

static int requests(struct rig *rig, char **argv)
{
	uint64_t count = strtoull(argv[5], NULL, 0);
	struct test_verdict verdict;

	rig->args.seed = strtoull(argv[3], NULL, 0);
	rig->args.first = strtoull(argv[4], NULL, 0);
	rig->args.per_request = REQUEST >> rig->args.disk.block_log2;
	rig->args.blocks = count * rig->args.per_request;
	if (rig_say(rig_run_on(rig, 1)))
		return 1;
	verdict = rig_verdict(rig);
	/* relaxed: the launch is over */
	printf("%llu words good, %llu bad\n", (unsigned long long)weir_load_u64_relaxed_sys(&verdict.good),
	       (unsigned long long)weir_load_u64_relaxed_sys(&verdict.bad));
	return weir_load_u64_relaxed_sys(&verdict.good) != count * (REQUEST / sizeof(u64)) ||
	       weir_load_u64_relaxed_sys(&verdict.bad);
}

int main(int argc, char **argv)
{
	char name[300];
	struct rig rig;
	int status;

	if (argc != 6)
		return fprintf(stderr, "usage: vm_rings FILE URI SEED LBA COUNT\n"), 2;
	snprintf(name, sizeof(name), "cpu:memory=%s", argv[1]);
	setenv("WEIR_VM_CONTEXT", name, 1);
	rig_open(&rig, argv[2], &(struct rig_options){ .queues = 1, .depth = DEPTH });
	printf("path: %s\n", rig.info.path);
	status = requests(&rig, argv);
	printf("sq %lld cq %lld data %lld slots %lld\n", location(real_name(argv[1]), rig.storage->rings[0]),
	       location(real_name(argv[1]), rig.storage->rings[0] + weir_queue_cq_offset(DEPTH)),
	       location(real_name(argv[1]), rig.args.buffers),
	       location(real_name(argv[1]), rig.storage->slots[0]));
	rig_close(&rig);
	return status;
}
