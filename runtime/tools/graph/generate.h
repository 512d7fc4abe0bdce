/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command line needs of the generator beyond graph.h. */
#ifndef WEIR_TOOLS_GRAPH_GENERATE_H
#define WEIR_TOOLS_GRAPH_GENERATE_H

#include "error.h"
#include "random_edge.h"

/** graph_generate_settle() - fill in defaults, refuse what is out of range (-EINVAL) */
int graph_generate_settle(const struct graph_generate_options *options, const char *out,
			  struct graph_generate_options *settled, struct graph_error *error);

#endif
