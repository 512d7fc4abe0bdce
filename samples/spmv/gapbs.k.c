/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix in a .wsg file, read where it lies, the vector in device memory. */
#include "../common/graph_gapbs.h"
#include "walk.h"

WEIR_FN float spmv_x(WEIR_GLOBAL struct spmv_args *args, u64 column)
{
	return *weir_at(args->x, float, column);
}

WEIR_KERNEL(spmv_gapbs_rows, struct spmv_args)
{
	edges_find_rows(&args->graph);
}

WEIR_KERNEL(spmv_gapbs_multiply, struct spmv_args)
{
	edges_walk(args);
}
