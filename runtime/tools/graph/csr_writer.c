/* SPDX-License-Identifier: BSD-3-Clause */
#include "csr.h"

#include <errno.h>

/* All lists up to and including that of @vertex begin at or before the next edge. */
static int write_offsets(struct graph_csr_writer *writer, uint64_t vertex, struct graph_error *error)
{
	while (writer->lists <= vertex) {
		int status = graph_writer_put(&writer->offsets, &writer->edges, 8, error);
		if (status)
			return status;
		writer->lists++;
	}
	return 0;
}

static int write_interleaved(struct graph_csr_writer *writer, const struct graph_edge *edge,
			     struct graph_error *error)
{
	uint32_t pair[2] = { (uint32_t)edge->target, edge->weight };

	if (edge->weight <= INT32_MAX)
		return graph_writer_put(&writer->targets, pair, 8, error);
	return graph_fail(error, -ERANGE,
			  "the edge %llu -> %llu has the weight %u, and %s holds weights up to %d: write "
			  ".bel, .wel or .mtx instead",
			  (unsigned long long)edge->source, (unsigned long long)edge->target, edge->weight,
			  writer->targets.output->path, INT32_MAX);
}

static int write_edge(struct graph_csr_writer *writer, const struct graph_edge *edge,
		      struct graph_error *error)
{
	int status;

	if (writer->interleaved)
		status = write_interleaved(writer, edge, error);
	else
		status = graph_writer_put(&writer->targets, &edge->target, writer->target_bytes, error);
	if (!status && writer->weights.buffer)
		status = graph_writer_put(&writer->weights, &edge->weight, 4, error);
	writer->edges++;
	return status;
}

int graph_csr_write(struct graph_csr_writer *writer, const struct graph_edge *edges, size_t count,
		    struct graph_error *error)
{
	for (size_t i = 0; i < count; i++) {
		int status = write_offsets(writer, edges[i].source, error);
		if (!status)
			status = write_edge(writer, &edges[i], error);
		if (status)
			return status;
	}
	return 0;
}

int graph_csr_writer_finish(struct graph_csr_writer *writer, struct graph_error *error)
{
	int status = write_offsets(writer, writer->vertices, error);

	if (!status)
		status = graph_writer_flush(&writer->offsets, error);
	if (!status)
		status = graph_writer_flush(&writer->targets, error);
	if (!status && writer->weights.buffer)
		status = graph_writer_flush(&writer->weights, error);
	return status;
}

void graph_csr_writer_close(struct graph_csr_writer *writer)
{
	graph_writer_close(&writer->offsets);
	graph_writer_close(&writer->targets);
	graph_writer_close(&writer->weights);
}
