/* SPDX-License-Identifier: BSD-3-Clause */
#include "reference.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <graph.h>

enum { ERROR_BYTES = 1024 };

static void search(uint64_t vertices, const uint64_t *offsets, const uint64_t *neighbours, uint64_t source,
		   uint32_t *depths, uint64_t *queue)
{
	uint64_t head = 0, tail = 0;

	memset(depths, 0xff, vertices * sizeof(*depths));
	depths[source] = 0;
	queue[tail++] = source;
	while (head < tail) {
		uint64_t vertex = queue[head++];

		for (uint64_t e = offsets[vertex]; e < offsets[vertex + 1]; e++) {
			if (depths[neighbours[e]] != UINT32_MAX)
				continue;
			depths[neighbours[e]] = depths[vertex] + 1;
			queue[tail++] = neighbours[e];
		}
	}
}

int bfs_reference(const char *bel_path, uint64_t source, uint32_t **depths, char *error)
{
	char sentence[GRAPH_ERROR_BYTES];
	uint64_t *offsets = NULL, *neighbours = NULL, *queue = NULL;
	struct graph_bel bel;
	int code = graph_bel_open(bel_path, &bel, sentence, sizeof(sentence));

	*depths = NULL;
	if (!code)
		code = graph_bel_load(&bel, &offsets, &neighbours, sentence, sizeof(sentence));
	if (code) {
		snprintf(error, ERROR_BYTES, "%.*s", ERROR_BYTES - 1, sentence);
		return code;
	}
	*depths = malloc(bel.vertices * sizeof(**depths));
	queue = malloc(bel.vertices * sizeof(*queue));
	if (*depths && queue && source < bel.vertices) {
		search(bel.vertices, offsets, neighbours, source, *depths, queue);
	} else {
		snprintf(error, ERROR_BYTES, "no memory for the reference search of %llu vertices",
			 (unsigned long long)bel.vertices);
		code = -ENOMEM;
	}
	free(queue);
	free(neighbours);
	free(offsets);
	return code;
}
