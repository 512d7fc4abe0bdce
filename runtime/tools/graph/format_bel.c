/* SPDX-License-Identifier: BSD-3-Clause */
/* The .bel set as source and sink. */
#include "bel.h"
#include "format.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct bel_source {
	struct graph_source base;
	struct graph_bel bel;
	struct graph_bel_files files;
	struct graph_csr_reader reader;
};

static int bel_next(struct graph_source *base, struct graph_edge *edges, size_t capacity, size_t *count,
		    struct graph_error *error)
{
	return graph_csr_read(&((struct bel_source *)base)->reader, edges, capacity, count, error);
}

static int bel_rewind(struct graph_source *base, struct graph_error *error)
{
	struct bel_source *source = (struct bel_source *)base;
	struct graph_csr_layout layout;

	graph_bel_layout(&source->bel, &source->files, &layout);
	graph_csr_reader_close(&source->reader);
	return graph_csr_reader_open(&source->reader, &layout, error);
}

static void bel_close(struct graph_source *base)
{
	struct bel_source *source = (struct bel_source *)base;

	graph_csr_reader_close(&source->reader);
	graph_bel_files_close(&source->files);
	free(source);
}

static const struct graph_source_operations source_operations = { bel_next, bel_rewind, bel_close };

static void describe(struct bel_source *source)
{
	struct graph_source *base = &source->base;

	base->operations = &source_operations;
	base->format = GRAPH_BEL;
	base->vertices = source->bel.vertices;
	base->edges = source->bel.edges;
	base->weighted = source->bel.weighted;
	base->grouped = true;
	base->bytes = source->files.col.bytes + source->files.dst.bytes;
	if (source->bel.weighted)
		base->bytes += source->files.val.bytes;
}

int graph_bel_source_open(const char *path, struct graph_progress *notes, struct graph_source **out,
			  struct graph_error *error)
{
	struct bel_source *source = calloc(1, sizeof(*source));

	if (!source)
		return graph_fail_memory(error, sizeof(*source), "reading a graph");
	int status = graph_bel_files_open(path, &source->bel, &source->files, error);
	if (!status) {
		describe(source);
		status = bel_rewind(&source->base, error);
	}
	if (status) {
		bel_close(&source->base);
		return status;
	}
	if (source->bel.col_header_is_edge_count)
		graph_progress_note(
			notes,
			"the header of %s holds the edge count where the number of offsets belongs, a "
			"known mistake of a converter: %llu vertices follow from the file's size and are "
			"used; "
			"convert the set to one of another name to mend the header",
			source->bel.col_path, (unsigned long long)source->bel.vertices);
	*out = &source->base;
	return 0;
}

enum { COL, DST, VAL, MEMBERS };

struct bel_sink {
	struct graph_sink base;
	struct graph_output files[MEMBERS];
	struct graph_csr_writer writer;
	char val_path[GRAPH_PATH_BYTES];
};

static int bel_push(struct graph_sink *base, const struct graph_edge *edges, size_t count,
		    struct graph_error *error)
{
	return graph_csr_write(&((struct bel_sink *)base)->writer, edges, count, error);
}

/* Counts are known at the end only, so headers are written last. */
static int write_header(const struct graph_output *file, uint64_t count, uint64_t type,
			struct graph_error *error)
{
	uint64_t header[2] = { count, type };
	return graph_output_write_at(file, 0, header, sizeof(header), error);
}

/* Weights of a graph that had this name before would be taken for weights of the new one. */
static int remove_stale_weights(struct bel_sink *sink, struct graph_error *error)
{
	if (sink->base.shape.weighted)
		return 0;
	if (!unlink(sink->val_path)) {
		graph_progress_note(sink->base.progress,
				    "removed %s, which held the weights of the graph replaced here",
				    sink->val_path);
		return 0;
	}
	if (errno == ENOENT)
		return 0;
	return graph_fail(error, -errno,
			  "the graph is written, but %s with the weights of an older graph cannot be "
			  "removed: %s; remove it by hand",
			  sink->val_path, strerror(errno));
}

static int bel_finish(struct graph_sink *base, struct graph_error *error)
{
	struct bel_sink *sink = (struct bel_sink *)base;
	uint64_t edges = sink->writer.edges;
	int status = graph_csr_writer_finish(&sink->writer, error);

	if (!status)
		status = write_header(&sink->files[COL], base->shape.vertices + 1, GRAPH_BEL_TYPE_U64, error);
	if (!status)
		status = write_header(&sink->files[DST], edges, GRAPH_BEL_TYPE_U64, error);
	if (!status && base->shape.weighted)
		status = write_header(&sink->files[VAL], edges, GRAPH_BEL_TYPE_U32, error);
	if (!status)
		status = graph_outputs_commit(sink->files, base->shape.weighted ? MEMBERS : VAL, error);
	return status ? status : remove_stale_weights(sink, error);
}

static void bel_sink_close(struct graph_sink *base)
{
	struct bel_sink *sink = (struct bel_sink *)base;

	graph_csr_writer_close(&sink->writer);
	for (int i = 0; i < MEMBERS; i++)
		graph_output_discard(&sink->files[i]);
	free(sink);
}

static const struct graph_sink_operations sink_operations = { bel_push, bel_finish, bel_sink_close };

static int create_files(struct bel_sink *sink, const char *path, struct graph_error *error)
{
	static const char *const extensions[MEMBERS] = { ".col", ".dst", ".val" };
	char prefix[GRAPH_PATH_BYTES], name[GRAPH_PATH_BYTES + 8];
	int status = 0;

	if (!graph_bel_prefix(path, prefix))
		return graph_fail(error, -EINVAL,
				  "%s does not name a .bel set: give a prefix that ends in .bel", path);
	snprintf(sink->val_path, sizeof(sink->val_path), "%.4090s.val", prefix);
	for (int i = 0; i < (sink->base.shape.weighted ? MEMBERS : VAL) && !status; i++) {
		snprintf(name, sizeof(name), "%s%s", prefix, extensions[i]);
		status = graph_output_create(&sink->files[i], name, error);
	}
	return status;
}

static int open_writers(struct bel_sink *sink, size_t buffer_bytes, struct graph_error *error)
{
	struct graph_csr_writer *writer = &sink->writer;
	const uint64_t at = GRAPH_BEL_HEADER_BYTES;

	writer->target_bytes = 8;
	writer->vertices = sink->base.shape.vertices;
	int status = graph_writer_open(&writer->offsets, &sink->files[COL], at, buffer_bytes, error);
	if (!status)
		status = graph_writer_open(&writer->targets, &sink->files[DST], at, buffer_bytes, error);
	if (!status && sink->base.shape.weighted)
		status = graph_writer_open(&writer->weights, &sink->files[VAL], at, buffer_bytes, error);
	return status;
}

int graph_bel_sink_open(const char *path, const struct graph_shape *shape, size_t buffer_bytes,
			struct graph_sink **out, struct graph_error *error)
{
	struct bel_sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return graph_fail_memory(error, sizeof(*sink), "writing a graph");
	sink->base.operations = &sink_operations;
	sink->base.shape = *shape;
	int status = create_files(sink, path, error);
	if (!status)
		status = open_writers(sink, buffer_bytes, error);
	if (status)
		bel_sink_close(&sink->base);
	else
		*out = &sink->base;
	return status;
}
