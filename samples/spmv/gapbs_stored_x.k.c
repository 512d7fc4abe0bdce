/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix in a .wsg file and the vector on storage, through one cache. */
#include "../common/graph_gapbs.h"
#include "walk.h"

WEIR_FN float spmv_x(WEIR_GLOBAL struct spmv_args *args, u64 column)
{
	union spmv_pun pun;

	pun.bits = weir_array_get_u32(&args->stored_x, column);
	return pun.value;
}

WEIR_KERNEL(spmv_gapbs_stored_x, struct spmv_args)
{
	edges_walk(args);
}
