/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv.h: arguments of the kernels that multiply a sparse matrix with a vector. */
#ifndef SPMV_H
#define SPMV_H

#include "../common/graph_data.h"

/**
 * struct spmv_args - y = A x
 * @graph: A, row by row: an edge's neighbour is the column, its weight the element
 * @stored_x: x as f32 on storage (spmv_stored_x)
 * @x: x as f32 in device memory, otherwise
 * @y: f32 per row
 */
struct spmv_args {
	struct graph_data graph;
	struct weir_array stored_x;
	weir_addr x;
	weir_addr y;
};

#endif
