/* SPDX-License-Identifier: BSD-3-Clause */
/* The same search with offsets and neighbours in plain device memory: no cache, no storage. The limit. */
#include <weir/array.h>

#include "bfs.h"

/* Ordinary loads: nobody writes there while a kernel runs. */
WEIR_FN struct weir_run bfs_plain_run(weir_addr array, u64 index, u64 end)
{
	struct weir_run run;

	run.count = WEIR_RUN;
	if (end - index < WEIR_RUN)
		run.count = (u32)(end - index);
	for (u32 i = 0; i < WEIR_RUN; i++)
		run.value[i] = i < run.count ? *weir_at(array, u64, index + i) : 0;
	return run;
}

WEIR_FN struct weir_run bfs_offsets(WEIR_GLOBAL struct bfs_args *args, u64 index, u64 end)
{
	return bfs_plain_run(args->plain_offsets, index, end);
}

WEIR_FN struct weir_run bfs_neighbours(WEIR_GLOBAL struct bfs_args *args, u64 index, u64 end)
{
	return bfs_plain_run(args->plain_neighbours, index, end);
}

WEIR_FN u32 bfs_failed(WEIR_GLOBAL struct bfs_args *args)
{
	(void)args;
	return 0;
}

#include "walk.h"

WEIR_KERNEL(bfs_plain_level, struct bfs_args)
{
	bfs_walk_level(args);
}

WEIR_KERNEL(bfs_plain_hubs, struct bfs_args)
{
	bfs_walk_hubs(args);
}
