/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing Matrix Market coordinate files: general for a directed graph; symmetric for an undirected one, with
 * the lower triangle only, as that format asks.
 */
#include "format.h"
#include "number.h"
#include "output.h"

#include <errno.h>
#include <stdlib.h>

/* The number of entries is known last, so the header has a fixed size: a comment of blanks fills it up. */
#define HEADER_BYTES 160

struct mtx_sink {
	struct graph_sink base;
	struct graph_output file;
	struct graph_writer writer;
	uint64_t entries;
};

static int write_entry(struct mtx_sink *sink, const struct graph_edge *edge, struct graph_error *error)
{
	struct graph_writer *writer = &sink->writer;
	int status = graph_writer_reserve(writer, 2 * GRAPH_DECIMAL_BYTES + 14, error);

	if (status)
		return status;
	char *const start = (char *)writer->buffer + writer->used;
	char *at = start;
	at += graph_format_u64(edge->source + 1, at);
	*at++ = ' ';
	at += graph_format_u64(edge->target + 1, at);
	if (sink->base.shape.weighted) {
		*at++ = ' ';
		at += graph_format_u64(edge->weight, at);
	}
	*at++ = '\n';
	writer->used += (size_t)(at - start);
	sink->entries++;
	return 0;
}

static int mtx_push(struct graph_sink *base, const struct graph_edge *edges, size_t count,
		    struct graph_error *error)
{
	for (size_t i = 0; i < count; i++) {
		if (!base->shape.directed && edges[i].source < edges[i].target)
			continue;
		int status = write_entry((struct mtx_sink *)base, &edges[i], error);
		if (status)
			return status;
	}
	return 0;
}

static int write_header(const struct mtx_sink *sink, struct graph_error *error)
{
	char sizes[72], header[HEADER_BYTES + 1];
	const struct graph_shape *shape = &sink->base.shape;

	int tail = snprintf(sizes, sizeof(sizes), "%llu %llu %llu\n", (unsigned long long)shape->vertices,
			    (unsigned long long)shape->vertices, (unsigned long long)sink->entries);
	int head =
		snprintf(header, sizeof(header), "%%%%MatrixMarket matrix coordinate %s %s\n%%",
			 shape->weighted ? "integer" : "pattern", shape->directed ? "general" : "symmetric");
	memset(header + head, ' ', (size_t)(HEADER_BYTES - head - tail - 1));
	header[HEADER_BYTES - tail - 1] = '\n';
	memcpy(header + HEADER_BYTES - tail, sizes, (size_t)tail);
	return graph_output_write_at(&sink->file, 0, header, HEADER_BYTES, error);
}

static int mtx_finish(struct graph_sink *base, struct graph_error *error)
{
	struct mtx_sink *sink = (struct mtx_sink *)base;
	int status = graph_writer_flush(&sink->writer, error);

	if (!status)
		status = write_header(sink, error);
	return status ? status : graph_outputs_commit(&sink->file, 1, error);
}

static void mtx_close(struct graph_sink *base)
{
	struct mtx_sink *sink = (struct mtx_sink *)base;

	graph_writer_close(&sink->writer);
	graph_output_discard(&sink->file);
	free(sink);
}

static const struct graph_sink_operations operations = { mtx_push, mtx_finish, mtx_close };

int graph_mtx_sink_open(const char *path, const struct graph_shape *shape, size_t buffer_bytes,
			struct graph_sink **out, struct graph_error *error)
{
	struct mtx_sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return graph_fail_memory(error, sizeof(*sink), "writing a graph");
	sink->base.operations = &operations;
	sink->base.shape = *shape;
	int status = graph_output_create(&sink->file, path, error);
	if (!status)
		status = graph_writer_open(&sink->writer, &sink->file, HEADER_BYTES, buffer_bytes, error);
	if (status)
		mtx_close(&sink->base);
	else
		*out = &sink->base;
	return status;
}
