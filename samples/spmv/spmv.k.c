/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix on storage, the vector in device memory. */
#include "../common/graph_stored.h"
#include "walk.h"

WEIR_FN float spmv_x(WEIR_GLOBAL struct spmv_args *args, u64 column)
{
	return *weir_at(args->x, float, column);
}

WEIR_KERNEL(spmv_rows, struct spmv_args)
{
	edges_find_rows(&args->graph);
}

WEIR_KERNEL(spmv_multiply, struct spmv_args)
{
	edges_walk(args);
}

/* Rows without elements, and those whose parts are added up. */
WEIR_KERNEL(spmv_clear, struct spmv_args)
{
	for (u64 v = weir_thread(); v < args->graph.vertices; v += weir_threads())
		weir_store_u32_relaxed_dev(weir_at(args->y, weir_shared_u32, v), 0);
}
