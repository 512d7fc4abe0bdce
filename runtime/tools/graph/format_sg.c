/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GAPBS serialized graph (.sg, .wsg) as source and sink: one byte (directed), i64 edges, i64 vertices,
 * vertices + 1 offsets of 8 bytes, then i32 neighbours (.wsg: pairs of i32 neighbour and i32 weight); a
 * directed graph is followed by its inverse in the same form, without header.
 */
#include "csr.h"
#include "format.h"
#include "number.h"
#include "sort.h"

#include <errno.h>
#include <stdlib.h>

#define HEADER_BYTES 17u
#define VERTICES_MAX (UINT64_C(1) << 31)

static unsigned stride_of(bool weighted)
{
	return weighted ? 8 : 4;
}

struct sg_source {
	struct graph_source base;
	struct graph_input file;
	struct graph_csr_reader reader;
};

static int sg_next(struct graph_source *base, struct graph_edge *edges, size_t capacity, size_t *count,
		   struct graph_error *error)
{
	return graph_csr_read(&((struct sg_source *)base)->reader, edges, capacity, count, error);
}

/* Read the rows that begin at byte @at. */
static int read_from(struct sg_source *source, uint64_t at, struct graph_error *error)
{
	const struct graph_source *base = &source->base;
	struct graph_csr_layout layout = {
		.offsets = { &source->file, at },
		.targets = { &source->file, at + (base->vertices + 1) * 8 },
		.target_bytes = 4,
		.interleaved = base->weighted,
		.vertices = base->vertices,
		.edges = base->edges,
	};

	graph_csr_reader_close(&source->reader);
	return graph_csr_reader_open(&source->reader, &layout, error);
}

static int sg_rewind(struct graph_source *base, struct graph_error *error)
{
	return read_from((struct sg_source *)base, HEADER_BYTES, error);
}

int graph_sg_read_inverse(struct graph_source *base, struct graph_error *error)
{
	uint64_t at = HEADER_BYTES + (base->vertices + 1) * 8 + base->edges * stride_of(base->weighted);
	return read_from((struct sg_source *)base, at, error);
}

static void sg_close(struct graph_source *base)
{
	struct sg_source *source = (struct sg_source *)base;

	graph_csr_reader_close(&source->reader);
	graph_input_close(&source->file);
	free(source);
}

static const struct graph_source_operations source_operations = { sg_next, sg_rewind, sg_close };

/* Bytes of a whole file; UINT64_MAX when that overflows, which no file can have. */
static uint64_t file_bytes(uint64_t vertices, uint64_t edges, bool weighted, bool directed)
{
	uint64_t offsets, targets, sum;

	if (!graph_add(vertices, 1, &offsets) || !graph_multiply(offsets, 8, &offsets) ||
	    !graph_multiply(edges, stride_of(weighted), &targets) || !graph_add(offsets, targets, &sum) ||
	    !graph_multiply(sum, directed ? 2 : 1, &sum) || !graph_add(sum, HEADER_BYTES, &sum))
		return UINT64_MAX;
	return sum;
}

static int check_header(const struct sg_source *source, unsigned char directed, struct graph_error *error)
{
	const struct graph_source *base = &source->base;
	const char *path = source->file.path;

	if (directed > 1)
		return graph_fail(error, -EILSEQ,
				  "%s: its first byte, which says whether the graph is directed, is %u and "
				  "not 0 or 1: this is no %s file",
				  path, directed, graph_format_info(base->format)->extension);
	if (base->vertices > VERTICES_MAX || base->edges > INT64_MAX)
		return graph_fail(error, -EILSEQ,
				  "%s: its header says %llu vertices and %llu edges, and the format holds at "
				  "most 2^31 and 2^63 - 1: this is no %s file or a damaged one",
				  path, (unsigned long long)base->vertices, (unsigned long long)base->edges,
				  graph_format_info(base->format)->extension);
	uint64_t said = file_bytes(base->vertices, base->edges, base->weighted, directed);
	if (said == source->file.bytes)
		return 0;
	if (base->edges &&
	    file_bytes(base->vertices, base->edges, !base->weighted, directed) == source->file.bytes)
		return graph_fail(error, -EILSEQ, "%s has the size of a file %s weights: rename it to %s",
				  path, base->weighted ? "without" : "with", base->weighted ? ".sg" : ".wsg");
	return graph_fail(error, -EILSEQ,
			  "%s does not have the size its header says: %llu vertices and %llu edges "
			  "(%s) need %llu bytes, and it has %llu; it is %s, so make or copy it again",
			  path, (unsigned long long)base->vertices, (unsigned long long)base->edges,
			  directed ? "directed" : "undirected", (unsigned long long)said,
			  (unsigned long long)source->file.bytes,
			  source->file.bytes < said ? "cut short" : "longer than it should be");
}

static int read_header(struct sg_source *source, struct graph_error *error)
{
	unsigned char header[HEADER_BYTES];
	struct graph_source *base = &source->base;

	if (source->file.bytes < HEADER_BYTES)
		return graph_fail(error, -EILSEQ,
				  "%s is cut short: it has %llu bytes, and the header alone is %u; make or "
				  "copy it again",
				  source->file.path, (unsigned long long)source->file.bytes, HEADER_BYTES);
	int status = graph_input_read_at(&source->file, 0, header, sizeof(header), error);
	if (status)
		return status;
	memcpy(&base->edges, header + 1, 8);
	memcpy(&base->vertices, header + 9, 8);
	base->direction = header[0] ? GRAPH_DIRECTED : GRAPH_UNDIRECTED;
	base->bytes = source->file.bytes;
	return check_header(source, header[0], error);
}

int graph_sg_source_open(const char *path, enum graph_format format, struct graph_source **out,
			 struct graph_error *error)
{
	struct sg_source *source = calloc(1, sizeof(*source));

	if (!source)
		return graph_fail_memory(error, sizeof(*source), "reading a graph");
	source->base.operations = &source_operations;
	source->base.format = format;
	source->base.weighted = format == GRAPH_WSG;
	source->base.grouped = true;
	int status = graph_input_open(&source->file, path, error);
	if (!status)
		status = read_header(source, error);
	if (!status)
		status = sg_rewind(&source->base, error);
	if (status)
		sg_close(&source->base);
	else
		*out = &source->base;
	return status;
}

/* The first offset was checked when the rows were opened. */
static int check_last_offset(const struct sg_source *source, struct graph_error *error)
{
	const struct graph_source *base = &source->base;
	uint64_t at = HEADER_BYTES + base->vertices * 8, last = 0;
	int status = graph_input_read_at(&source->file, at, &last, sizeof(last), error);

	if (status || last == base->edges)
		return status;
	return graph_fail(error, -EILSEQ,
			  "%s: the last offset (at byte %llu) is %llu, but its header says %llu edges: the "
			  "file is damaged, so make it again",
			  source->file.path, (unsigned long long)at, (unsigned long long)last,
			  (unsigned long long)base->edges);
}

int graph_gapbs_open(const char *path, struct graph_gapbs *out, char *text, size_t text_bytes)
{
	struct graph_source *base = NULL;
	struct graph_error error;
	enum graph_format format;
	int status = graph_format_of(path, &format, &error);

	memset(out, 0, sizeof(*out));
	if (!status && format != GRAPH_SG && format != GRAPH_WSG)
		status = graph_fail(&error, -EINVAL,
				    "%s is no .sg or .wsg file: weir-graph convert makes one", path);
	if (!status)
		status = graph_sg_source_open(path, format, &base, &error);
	if (!status)
		status = check_last_offset((struct sg_source *)base, &error);
	if (!status)
		*out = (struct graph_gapbs){ .vertices = base->vertices,
					     .edges = base->edges,
					     .offsets_at = HEADER_BYTES,
					     .edges_at = HEADER_BYTES + (base->vertices + 1) * 8,
					     .edge_bytes = stride_of(base->weighted),
					     .weighted = base->weighted,
					     .directed = base->direction == GRAPH_DIRECTED };
	graph_source_close(base);
	return graph_error_copy(&error, status, text, text_bytes);
}

/* The inverse graph needs the edges ordered by target: they are sorted on the side while the graph is
 * written. */
struct sg_sink {
	struct graph_sink base;
	struct graph_output file;
	struct graph_csr_writer writer;
	struct graph_sort *inverse;
	uint64_t memory_bytes;
	size_t buffer_bytes;
};

static int sg_push(struct graph_sink *base, const struct graph_edge *edges, size_t count,
		   struct graph_error *error)
{
	struct sg_sink *sink = (struct sg_sink *)base;
	int status = graph_csr_write(&sink->writer, edges, count, error);

	for (size_t i = 0; sink->inverse && i < count && !status; i++) {
		struct graph_edge back = { edges[i].target, edges[i].source, edges[i].weight };
		status = graph_sort_push(sink->inverse, 0, &back, error);
	}
	return status;
}

static int open_writer(struct sg_sink *sink, uint64_t at, struct graph_error *error)
{
	struct graph_csr_writer *writer = &sink->writer;

	memset(writer, 0, sizeof(*writer));
	writer->target_bytes = 4;
	writer->interleaved = sink->base.shape.weighted;
	writer->vertices = sink->base.shape.vertices;
	int status = graph_writer_open(&writer->offsets, &sink->file, at, sink->buffer_bytes, error);
	if (status)
		return status;
	return graph_writer_open(&writer->targets, &sink->file, at + (writer->vertices + 1) * 8,
				 sink->buffer_bytes, error);
}

static int write_inverse(struct sg_sink *sink, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;
	int status = graph_sort_flush(sink->inverse, 0, error);

	if (!status)
		status = graph_sort_merge(sink->inverse, sink->memory_bytes, error);
	do {
		if (!status)
			status = graph_sort_next(sink->inverse, edges, GRAPH_BATCH_EDGES, &count, error);
		if (!status)
			status = graph_csr_write(&sink->writer, edges, count, error);
	} while (!status && count);
	return status ? status : graph_csr_writer_finish(&sink->writer, error);
}

static int write_header(struct sg_sink *sink, uint64_t edges, struct graph_error *error)
{
	unsigned char header[HEADER_BYTES] = { sink->base.shape.directed };

	memcpy(header + 1, &edges, 8);
	memcpy(header + 9, &sink->base.shape.vertices, 8);
	return graph_output_write_at(&sink->file, 0, header, sizeof(header), error);
}

static int sg_finish(struct graph_sink *base, struct graph_error *error)
{
	struct sg_sink *sink = (struct sg_sink *)base;
	uint64_t edges = sink->writer.edges;
	int status = graph_csr_writer_finish(&sink->writer, error);

	if (!status)
		status = write_header(sink, edges, error);
	if (!status && sink->inverse) {
		uint64_t at = HEADER_BYTES + (base->shape.vertices + 1) * 8 +
			      edges * stride_of(base->shape.weighted);
		graph_csr_writer_close(&sink->writer);
		status = open_writer(sink, at, error);
		if (!status)
			status = write_inverse(sink, error);
	}
	return status ? status : graph_outputs_commit(&sink->file, 1, error);
}

static void sg_sink_close(struct graph_sink *base)
{
	struct sg_sink *sink = (struct sg_sink *)base;

	graph_sort_destroy(sink->inverse);
	graph_csr_writer_close(&sink->writer);
	graph_output_discard(&sink->file);
	free(sink);
}

static const struct graph_sink_operations sink_operations = { sg_push, sg_finish, sg_sink_close };

static int open_inverse(struct sg_sink *sink, const char *path, struct graph_error *error)
{
	char directory[GRAPH_PATH_BYTES];

	if (!sink->base.shape.directed)
		return 0;
	graph_directory_of(path, directory);
	struct graph_sort_options options = {
		.directory = directory,
		.memory_bytes = sink->memory_bytes,
		.lanes = 1,
		.expected_edges = sink->base.shape.edges,
		.weighted = sink->base.shape.weighted,
	};
	return graph_sort_create(&options, &sink->inverse, error);
}

int graph_sg_sink_open(const char *path, const struct graph_shape *shape, uint64_t memory_bytes,
		       struct graph_sink **out, struct graph_error *error)
{
	struct sg_sink *sink = calloc(1, sizeof(*sink));
	int status = 0;

	if (!sink)
		return graph_fail_memory(error, sizeof(*sink), "writing a graph");
	sink->base.operations = &sink_operations;
	sink->base.shape = *shape;
	sink->memory_bytes = memory_bytes;
	sink->buffer_bytes = graph_buffer_bytes(memory_bytes);
	if (shape->vertices > VERTICES_MAX)
		status = graph_fail(error, -EOVERFLOW,
				    "%s cannot hold %llu vertices: its ids are signed 32-bit, which is at "
				    "most 2^31 vertices; write .bel instead",
				    path, (unsigned long long)shape->vertices);
	if (!status)
		status = graph_output_create(&sink->file, path, error);
	if (!status)
		status = open_writer(sink, HEADER_BYTES, error);
	if (!status)
		status = open_inverse(sink, path, error);
	if (status)
		sg_sink_close(&sink->base);
	else
		*out = &sink->base;
	return status;
}
