/* SPDX-License-Identifier: BSD-3-Clause */
/* Text edge lists: .el has "u v" per line, .wel "u v w"; lines that begin with # or % are comments. */
#include "format.h"
#include "lines.h"
#include "number.h"
#include "output.h"

#include <errno.h>
#include <stdlib.h>

struct el_source {
	struct graph_source base;
	struct graph_lines lines;
	uint64_t fixed_vertices; /* 0: as many as the ids ask for */
};

static int fail_fields(const struct el_source *source, int count, struct graph_error *error)
{
	bool weighted = source->base.weighted;

	if (count == 3 && !weighted)
		return graph_lines_fail(&source->lines, error,
					"three numbers, and .el has two (u v): if the third is a "
					"weight, rename the file to .wel");
	if (count == 2 && weighted)
		return graph_lines_fail(&source->lines, error,
					"two numbers, and .wel has three (u v weight): if there are no "
					"weights, rename the file to .el");
	return graph_lines_fail(&source->lines, error,
				"expected %s as unsigned decimal numbers between blanks: "
				"correct or remove the line",
				weighted ? "u v weight" : "u v");
}

static int check_vertex(struct el_source *source, uint64_t vertex, struct graph_error *error)
{
	if (source->fixed_vertices && vertex >= source->fixed_vertices)
		return graph_lines_fail(&source->lines, error,
					"vertex %llu does not exist, as --vertices says there are %llu "
					"(0 to %llu): correct one of the two",
					(unsigned long long)vertex,
					(unsigned long long)source->fixed_vertices,
					(unsigned long long)source->fixed_vertices - 1);
	if (vertex > UINT32_MAX)
		return graph_lines_fail(&source->lines, error,
					"vertex %llu is too large, ids go up to %u: number the "
					"vertices from 0 without gaps",
					(unsigned long long)vertex, UINT32_MAX);
	if (vertex >= source->base.vertices)
		source->base.vertices = vertex + 1;
	return 0;
}

static int parse_edge(struct el_source *source, struct graph_edge *edge, struct graph_error *error)
{
	uint64_t numbers[3] = { 0 };
	const int expected = source->base.weighted ? 3 : 2;
	int count = graph_lines_numbers(&source->lines, numbers, 3);

	if (count != expected)
		return fail_fields(source, count, error);
	if (numbers[2] > UINT32_MAX)
		return graph_lines_fail(&source->lines, error,
					"the weight %llu is too large, weights go up to %u: scale them",
					(unsigned long long)numbers[2], UINT32_MAX);
	*edge = (struct graph_edge){ numbers[0], numbers[1], (uint32_t)numbers[2] };
	int status = check_vertex(source, edge->source, error);
	return status ? status : check_vertex(source, edge->target, error);
}

static int el_next(struct graph_source *base, struct graph_edge *edges, size_t capacity, size_t *count,
		   struct graph_error *error)
{
	struct el_source *source = (struct el_source *)base;

	for (*count = 0; *count < capacity; (*count)++) {
		bool more;
		int status = graph_lines_next_data(&source->lines, &more, error);
		if (!status && more)
			status = parse_edge(source, &edges[*count], error);
		if (status || !more)
			return status;
		base->bytes_read = source->lines.position;
	}
	return 0;
}

static int el_rewind(struct graph_source *base, struct graph_error *error)
{
	struct el_source *source = (struct el_source *)base;

	(void)error;
	base->vertices = source->fixed_vertices;
	base->bytes_read = 0;
	graph_lines_rewind(&source->lines);
	return 0;
}

static void el_close(struct graph_source *base)
{
	graph_lines_close(&((struct el_source *)base)->lines);
	free(base);
}

static const struct graph_source_operations source_operations = { el_next, el_rewind, el_close };

int graph_el_source_open(const char *path, enum graph_format format, uint64_t vertices,
			 struct graph_source **out, struct graph_error *error)
{
	struct el_source *source = calloc(1, sizeof(*source));

	if (!source)
		return graph_fail_memory(error, sizeof(*source), "reading a graph");
	int status = graph_lines_open(&source->lines, path, error);
	if (status) {
		free(source);
		return status;
	}
	source->fixed_vertices = vertices;
	source->base.operations = &source_operations;
	source->base.format = format;
	source->base.vertices = vertices;
	source->base.weighted = format == GRAPH_WEL;
	source->base.bytes = source->lines.input.bytes;
	/* The shortest line is "0 1\n" (with a weight "0 1 2\n"), and the last one may lack its end. */
	source->base.edges = (source->base.bytes + 1) / (source->base.weighted ? 6 : 4);
	*out = &source->base;
	return 0;
}

struct el_sink {
	struct graph_sink base;
	struct graph_output file;
	struct graph_writer writer;
	uint64_t named; /* one more than the largest id written */
};

static int write_edge(struct el_sink *sink, const struct graph_edge *edge, struct graph_error *error)
{
	struct graph_writer *writer = &sink->writer;
	int status = graph_writer_reserve(writer, 2 * GRAPH_DECIMAL_BYTES + 14, error);

	if (status)
		return status;
	char *const start = (char *)writer->buffer + writer->used;
	char *at = start;
	at += graph_format_u64(edge->source, at);
	*at++ = ' ';
	at += graph_format_u64(edge->target, at);
	if (sink->base.shape.weighted) {
		*at++ = ' ';
		at += graph_format_u64(edge->weight, at);
	}
	*at++ = '\n';
	writer->used += (size_t)(at - start);
	return 0;
}

static int el_push(struct graph_sink *base, const struct graph_edge *edges, size_t count,
		   struct graph_error *error)
{
	struct el_sink *sink = (struct el_sink *)base;

	for (size_t i = 0; i < count; i++) {
		int status = write_edge(sink, &edges[i], error);
		if (status)
			return status;
		uint64_t larger = edges[i].source > edges[i].target ? edges[i].source : edges[i].target;
		if (larger >= sink->named)
			sink->named = larger + 1;
	}
	return 0;
}

static int el_finish(struct graph_sink *base, struct graph_error *error)
{
	struct el_sink *sink = (struct el_sink *)base;
	int status = graph_writer_flush(&sink->writer, error);

	if (!status)
		status = graph_outputs_commit(&sink->file, 1, error);
	if (!status && sink->named < base->shape.vertices)
		graph_progress_note(
			base->progress,
			"%s names vertices up to %lld only, as an edge list cannot say that there "
			"are %llu vertices: read it with --vertices %llu to keep them",
			sink->file.path, (long long)sink->named - 1, (unsigned long long)base->shape.vertices,
			(unsigned long long)base->shape.vertices);
	return status;
}

static void el_sink_close(struct graph_sink *base)
{
	struct el_sink *sink = (struct el_sink *)base;

	graph_writer_close(&sink->writer);
	graph_output_discard(&sink->file);
	free(sink);
}

static const struct graph_sink_operations sink_operations = { el_push, el_finish, el_sink_close };

int graph_el_sink_open(const char *path, const struct graph_shape *shape, size_t buffer_bytes,
		       struct graph_sink **out, struct graph_error *error)
{
	struct el_sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return graph_fail_memory(error, sizeof(*sink), "writing a graph");
	sink->base.operations = &sink_operations;
	sink->base.shape = *shape;
	int status = graph_output_create(&sink->file, path, error);
	if (!status)
		status = graph_writer_open(&sink->writer, &sink->file, 0, buffer_bytes, error);
	if (status)
		el_sink_close(&sink->base);
	else
		*out = &sink->base;
	return status;
}
