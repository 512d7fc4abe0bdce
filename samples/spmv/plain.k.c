/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix and vector in plain device memory: no cache, no storage. The limit. */
#include "../common/graph_plain.h"
#include "walk.h"

WEIR_FN float spmv_x(WEIR_GLOBAL struct spmv_args *args, u64 column)
{
	return *weir_at(args->x, float, column);
}

WEIR_KERNEL(spmv_plain_multiply, struct spmv_args)
{
	edges_walk(args);
}
