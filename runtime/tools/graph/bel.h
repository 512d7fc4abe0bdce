/* SPDX-License-Identifier: BSD-3-Clause */
/* An open .bel set, for the functions of graph.h and for the .bel source. */
#ifndef WEIR_TOOLS_GRAPH_BEL_H
#define WEIR_TOOLS_GRAPH_BEL_H

#include "csr.h"

/** struct graph_bel_files - the files of a set; val.fd is -1 without weights */
struct graph_bel_files {
	struct graph_input col;
	struct graph_input dst;
	struct graph_input val;
};

/** graph_bel_files_open() - open the set named by @path and hold its headers against the sizes */
int graph_bel_files_open(const char *path, struct graph_bel *bel, struct graph_bel_files *files,
			 struct graph_error *error);

/** graph_bel_files_close() - close all of them */
void graph_bel_files_close(struct graph_bel_files *files);

/** graph_bel_layout() - where the arrays lie, for a csr reader; valid while @files stays where it is */
void graph_bel_layout(const struct graph_bel *bel, const struct graph_bel_files *files,
		      struct graph_csr_layout *layout);

#endif
