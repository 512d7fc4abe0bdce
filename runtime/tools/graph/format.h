/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all graph formats have in common: a source gives edges, a sink takes them.
 *
 * bel, sg and wsg hold compressed rows: their sources give edges grouped by ascending source vertex, and
 * every sink expects them so. Text formats give edges in any order, so their edges pass through sort.h on the
 * way.
 */
#ifndef WEIR_TOOLS_GRAPH_FORMAT_H
#define WEIR_TOOLS_GRAPH_FORMAT_H

#include "edge.h"
#include "error.h"
#include "progress.h"

/** enum graph_format - the formats, chosen by a file's extension */
enum graph_format { GRAPH_BEL, GRAPH_SG, GRAPH_WSG, GRAPH_EL, GRAPH_WEL, GRAPH_MTX, GRAPH_FORMATS };

/** enum graph_weights - whether a format stores weights */
enum graph_weights { GRAPH_WEIGHTS_NEVER, GRAPH_WEIGHTS_OPTIONAL, GRAPH_WEIGHTS_ALWAYS };

/**
 * struct graph_format_info - the constant properties of a format
 * @extension: with its dot
 * @text: vertex and edge counts are known only after reading it all
 * @says_direction: a reader needs to know whether the graph is directed, so a writer must
 */
struct graph_format_info {
	const char *extension;
	const char *description;
	enum graph_weights weights;
	bool text;
	bool says_direction;
};

/** graph_format_info() - the properties of @format */
const struct graph_format_info *graph_format_info(enum graph_format format);

/** graph_format_of() - the format of @path by its extension; -EINVAL with a sentence for others */
int graph_format_of(const char *path, enum graph_format *format, struct graph_error *error);

/** graph_bel_prefix() - @path without .col, .dst or .val after .bel; false when it is no .bel name or too
 * long */
bool graph_bel_prefix(const char *path, char prefix[GRAPH_PATH_BYTES]);

/** enum graph_direction - directed, or each edge stored both ways */
enum graph_direction { GRAPH_DIRECTION_UNKNOWN, GRAPH_DIRECTED, GRAPH_UNDIRECTED };

struct graph_source;

/** struct graph_source_operations - what a format's reader can do; close also frees */
struct graph_source_operations {
	int (*next)(struct graph_source *source, struct graph_edge *edges, size_t capacity, size_t *count,
		    struct graph_error *error);
	int (*rewind)(struct graph_source *source, struct graph_error *error);
	void (*close)(struct graph_source *source);
};

/**
 * struct graph_source - an open graph
 * @vertices: number of vertices; for .el and .wel one more than the largest id read so far
 * @edges: stored edges; for text an upper bound
 * @weighted: edges carry weights
 * @grouped: edges come grouped by ascending source vertex
 * @sure: @direction follows from the format itself and is not a claim of the file
 * @direction: as far as the headers say
 * @bytes: size of the files
 * @bytes_read: for text, how much of it was read
 */
struct graph_source {
	const struct graph_source_operations *operations;
	enum graph_format format;
	uint64_t vertices;
	uint64_t edges;
	bool weighted;
	bool grouped;
	bool sure;
	enum graph_direction direction;
	uint64_t bytes;
	uint64_t bytes_read;
};

/**
 * graph_source_open() - open @path, whose extension chooses the reader
 * @vertices: for .el and .wel the number of vertices, 0: as many as the largest id asks for; else ignored
 * @notes: things the user must see go here
 */
int graph_source_open(const char *path, uint64_t vertices, struct graph_progress *notes,
		      struct graph_source **source, struct graph_error *error);

static inline int graph_source_next(struct graph_source *source, struct graph_edge *edges, size_t capacity,
				    size_t *count, struct graph_error *error)
{
	return source->operations->next(source, edges, capacity, count, error);
}

static inline int graph_source_rewind(struct graph_source *source, struct graph_error *error)
{
	return source->operations->rewind(source, error);
}

static inline void graph_source_close(struct graph_source *source)
{
	if (source)
		source->operations->close(source);
}

/** struct graph_shape - what a sink is told before the first edge; @edges is an upper bound */
struct graph_shape {
	uint64_t vertices;
	uint64_t edges;
	bool weighted;
	bool directed;
};

struct graph_sink;

/** struct graph_sink_operations - close removes what is unfinished and frees; finish gives the files their
 * names */
struct graph_sink_operations {
	int (*push)(struct graph_sink *sink, const struct graph_edge *edges, size_t count,
		    struct graph_error *error);
	int (*finish)(struct graph_sink *sink, struct graph_error *error);
	void (*close)(struct graph_sink *sink);
};

/** struct graph_sink - a graph being written */
struct graph_sink {
	const struct graph_sink_operations *operations;
	struct graph_shape shape;
	struct graph_progress *progress;
};

/** graph_sink_open() - begin to write @path within @memory_bytes */
int graph_sink_open(const char *path, const struct graph_shape *shape, uint64_t memory_bytes,
		    struct graph_progress *progress, struct graph_sink **sink, struct graph_error *error);

static inline int graph_sink_push(struct graph_sink *sink, const struct graph_edge *edges, size_t count,
				  struct graph_error *error)
{
	return sink->operations->push(sink, edges, count, error);
}

static inline int graph_sink_finish(struct graph_sink *sink, struct graph_error *error)
{
	return sink->operations->finish(sink, error);
}

static inline void graph_sink_close(struct graph_sink *sink)
{
	if (sink)
		sink->operations->close(sink);
}

/** graph_buffer_bytes() - a sequential buffer that suits the budget: 4 KiB to 1 MiB */
static inline size_t graph_buffer_bytes(uint64_t memory_bytes)
{
	uint64_t bytes = memory_bytes / 32;
	return bytes < 4096 ? 4096 : bytes > (1u << 20) ? (1u << 20) : (size_t)(bytes & ~UINT64_C(63));
}

/* One opener per family, called by graph_source_open() and graph_sink_open() with the format filled in. */
int graph_bel_source_open(const char *path, struct graph_progress *notes, struct graph_source **source,
			  struct graph_error *error);
int graph_sg_source_open(const char *path, enum graph_format format, struct graph_source **source,
			 struct graph_error *error);

/** graph_sg_read_inverse() - from here on a directed .sg or .wsg source gives the edges of its inverse graph
 */
int graph_sg_read_inverse(struct graph_source *source, struct graph_error *error);

int graph_el_source_open(const char *path, enum graph_format format, uint64_t vertices,
			 struct graph_source **source, struct graph_error *error);
int graph_mtx_source_open(const char *path, struct graph_source **source, struct graph_error *error);

int graph_bel_sink_open(const char *path, const struct graph_shape *shape, size_t buffer_bytes,
			struct graph_sink **sink, struct graph_error *error);
int graph_sg_sink_open(const char *path, const struct graph_shape *shape, uint64_t memory_bytes,
		       struct graph_sink **sink, struct graph_error *error);
int graph_el_sink_open(const char *path, const struct graph_shape *shape, size_t buffer_bytes,
		       struct graph_sink **sink, struct graph_error *error);
int graph_mtx_sink_open(const char *path, const struct graph_shape *shape, size_t buffer_bytes,
			struct graph_sink **sink, struct graph_error *error);

#endif
