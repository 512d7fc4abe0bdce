/* SPDX-License-Identifier: BSD-3-Clause */
/* edges.h: how the edges of a graph are shared out among lanes (edges_walk.h). */
#ifndef SAMPLE_EDGES_H
#define SAMPLE_EDGES_H

#include "graph_data.h"

/* Edges that a lane takes at once. */
#define EDGES_CHUNK 256

#endif
