/* SPDX-License-Identifier: BSD-3-Clause */
#include "format.h"

#include <errno.h>
#include <string.h>

static const struct graph_format_info formats[GRAPH_FORMATS] = {
	[GRAPH_BEL] = { ".bel", "binary set .bel.col, .bel.dst, .bel.val", GRAPH_WEIGHTS_OPTIONAL, false,
			false },
	[GRAPH_SG] = { ".sg", "GAPBS serialized graph", GRAPH_WEIGHTS_NEVER, false, true },
	[GRAPH_WSG] = { ".wsg", "GAPBS serialized graph with weights", GRAPH_WEIGHTS_ALWAYS, false, true },
	[GRAPH_EL] = { ".el", "text edge list", GRAPH_WEIGHTS_NEVER, true, false },
	[GRAPH_WEL] = { ".wel", "text edge list with weights", GRAPH_WEIGHTS_ALWAYS, true, false },
	[GRAPH_MTX] = { ".mtx", "Matrix Market coordinate", GRAPH_WEIGHTS_OPTIONAL, true, true },
};

const struct graph_format_info *graph_format_info(enum graph_format format)
{
	return &formats[format];
}

static bool ends_with(const char *path, size_t bytes, const char *extension)
{
	size_t tail = strlen(extension);
	return bytes > tail && !memcmp(path + bytes - tail, extension, tail);
}

bool graph_bel_prefix(const char *path, char prefix[GRAPH_PATH_BYTES])
{
	static const char *const members[] = { ".bel.col", ".bel.dst", ".bel.val" };
	size_t bytes = strlen(path);

	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
		if (ends_with(path, bytes, members[i])) {
			bytes -= 4;
			break;
		}
	/* Room is left for ".col" and its like. */
	if (!ends_with(path, bytes, ".bel") || bytes + 8 > GRAPH_PATH_BYTES)
		return false;
	memcpy(prefix, path, bytes);
	prefix[bytes] = '\0';
	return true;
}

int graph_format_of(const char *path, enum graph_format *format, struct graph_error *error)
{
	char prefix[GRAPH_PATH_BYTES];

	*format = GRAPH_BEL;
	if (graph_bel_prefix(path, prefix))
		return 0;
	for (unsigned i = 0; i < GRAPH_FORMATS; i++)
		if (ends_with(path, strlen(path), formats[i].extension)) {
			*format = (enum graph_format)i;
			return 0;
		}
	return graph_fail(error, -EINVAL,
			  "the extension of %s names no known graph format: use .bel, .sg, .wsg, .el, "
			  ".wel or .mtx",
			  path);
}

int graph_source_open(const char *path, uint64_t vertices, struct graph_progress *notes,
		      struct graph_source **source, struct graph_error *error)
{
	enum graph_format format;
	int status = graph_format_of(path, &format, error);

	*source = NULL;
	if (status)
		return status;
	switch (format) {
	case GRAPH_BEL: return graph_bel_source_open(path, notes, source, error);
	case GRAPH_SG:
	case GRAPH_WSG: return graph_sg_source_open(path, format, source, error);
	case GRAPH_MTX: return graph_mtx_source_open(path, source, error);
	default: return graph_el_source_open(path, format, vertices, source, error);
	}
}

int graph_sink_open(const char *path, const struct graph_shape *shape, uint64_t memory_bytes,
		    struct graph_progress *progress, struct graph_sink **sink, struct graph_error *error)
{
	const size_t buffer_bytes = graph_buffer_bytes(memory_bytes);
	enum graph_format format;
	int status = graph_format_of(path, &format, error);

	*sink = NULL;
	if (status)
		return status;
	if (format == GRAPH_BEL)
		status = graph_bel_sink_open(path, shape, buffer_bytes, sink, error);
	else if (format == GRAPH_MTX)
		status = graph_mtx_sink_open(path, shape, buffer_bytes, sink, error);
	else if (formats[format].text)
		status = graph_el_sink_open(path, shape, buffer_bytes, sink, error);
	else
		status = graph_sg_sink_open(path, shape, memory_bytes, sink, error);
	if (!status)
		(*sink)->progress = progress;
	return status;
}
