/* SPDX-License-Identifier: BSD-3-Clause */
/* sssp.h: arguments of the shortest paths kernels, shared by host and lanes. */
#ifndef SSSP_H
#define SSSP_H

#include "../common/frontier.h"

/* Distance of a vertex nobody has reached. */
#define SSSP_UNREACHED (~(u64)0)

/**
 * struct sssp_next - what comes next
 * @nearest: the smallest distance in @far (sssp_nearest())
 * @vertices: how many went from there into the frontier (sssp_split())
 */
struct sssp_next {
	weir_shared_u64 nearest;
	weir_shared_u64 vertices;
};

/**
 * struct sssp_args - one step of a search
 * @graph: weights are lengths
 * @frontier: vertices nearer than @threshold whose distance fell
 * @far: bitmap of the others whose distance fell
 * @distance: u64 per vertex
 * @next: struct sssp_next
 * @passed: vertices nearer than it are settled
 * @threshold: vertices nearer than it come next
 */
struct sssp_args {
	struct graph_data graph;
	struct frontier frontier;
	weir_addr far;
	weir_addr distance;
	weir_addr next;
	u64 passed;
	u64 threshold;
};

#endif
