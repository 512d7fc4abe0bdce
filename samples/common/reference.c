/* SPDX-License-Identifier: BSD-3-Clause */
#include "reference.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <graph.h> /* weir-graph's */

#include "device.h"

static int load_weights(const char *path, uint64_t count, uint32_t *weights, char *error)
{
	FILE *file = fopen(path, "rb");
	bool read;

	if (!file)
		return sample_fail(error, -errno, "cannot open %.800s: %s", path, strerror(errno));
	read = fseek(file, GRAPH_BEL_HEADER_BYTES, SEEK_SET) == 0 && fread(weights, 4, count, file) == count;
	fclose(file);
	return read ? 0
		    : sample_fail(error, -EIO, "%.800s ends before its %llu weights do", path,
				  (unsigned long long)count);
}

int reference_load(const char *bel_path, bool weighted, struct reference_graph *graph, char *error)
{
	char sentence[GRAPH_ERROR_BYTES];
	struct graph_bel bel;
	int code = graph_bel_open(bel_path, &bel, sentence, sizeof(sentence));

	memset(graph, 0, sizeof(*graph));
	if (!code)
		code = graph_bel_load(&bel, &graph->offsets, &graph->neighbours, sentence, sizeof(sentence));
	if (code)
		return sample_fail(error, code, "%s", sentence);
	graph->vertices = bel.vertices;
	graph->edges = bel.edges;
	if (!weighted)
		return 0;
	if (!bel.weighted)
		return sample_fail(error, -EINVAL, "%.800s has no weights to verify with", bel_path);
	graph->weights = malloc(bel.edges * 4 + 4);
	return graph->weights ? load_weights(bel.val_path, bel.edges, graph->weights, error)
			      : sample_fail(error, -ENOMEM, "no memory for %llu weights",
					    (unsigned long long)bel.edges);
}

void reference_free(struct reference_graph *graph)
{
	free(graph->offsets);
	free(graph->neighbours);
	free(graph->weights);
	memset(graph, 0, sizeof(*graph));
}
