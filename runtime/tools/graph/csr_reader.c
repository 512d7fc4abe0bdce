/* SPDX-License-Identifier: BSD-3-Clause */
#include "csr.h"

#include <errno.h>

#define STREAM_BYTES (256u << 10)

static unsigned stride_of(const struct graph_csr_layout *layout)
{
	return layout->target_bytes + (layout->interleaved ? 4 : 0);
}

int graph_csr_reader_open(struct graph_csr_reader *reader, const struct graph_csr_layout *layout,
			  struct graph_error *error)
{
	const struct graph_csr_offset *offsets = &layout->offsets, *targets = &layout->targets,
				      *weights = &layout->weights;
	uint64_t first = 0;

	memset(reader, 0, sizeof(*reader));
	reader->layout = *layout;
	int status = graph_stream_open(&reader->offsets, offsets->input, offsets->at,
				       offsets->at + (layout->vertices + 1) * 8, STREAM_BYTES, error);
	if (!status)
		status = graph_stream_open(&reader->targets, targets->input, targets->at,
					   targets->at + layout->edges * stride_of(layout), STREAM_BYTES,
					   error);
	if (!status && weights->input)
		status = graph_stream_open(&reader->weights, weights->input, weights->at,
					   weights->at + layout->edges * 4, STREAM_BYTES, error);
	if (!status)
		status = graph_stream_take(&reader->offsets, &first, 8, error);
	if (!status && first)
		status = graph_fail(error, -EILSEQ,
				    "%s: the first offset (at byte %llu) is %llu, not 0: this is no graph "
				    "or a damaged one, so make it again",
				    offsets->input->path, (unsigned long long)offsets->at,
				    (unsigned long long)first);
	if (status)
		graph_csr_reader_close(reader);
	return status;
}

void graph_csr_reader_close(struct graph_csr_reader *reader)
{
	graph_stream_close(&reader->offsets);
	graph_stream_close(&reader->targets);
	graph_stream_close(&reader->weights);
}

static int fail_offset(const struct graph_csr_reader *reader, uint64_t offset, struct graph_error *error)
{
	const struct graph_csr_offset *location = &reader->layout.offsets;
	unsigned long long at = location->at + (reader->lists + 1) * 8;

	if (offset < reader->list_end)
		return graph_fail(error, -EILSEQ,
				  "%s: the offset at byte %llu, which ends the list of vertex %llu, is %llu, "
				  "below the %llu before it: the file is damaged, so make it again",
				  location->input->path, at, (unsigned long long)reader->lists,
				  (unsigned long long)offset, (unsigned long long)reader->list_end);
	return graph_fail(error, -EILSEQ,
			  "%s: the offset at byte %llu, which ends the list of vertex %llu, is %llu, but "
			  "there are only %llu edges: the file is damaged, so make it again",
			  location->input->path, at, (unsigned long long)reader->lists,
			  (unsigned long long)offset, (unsigned long long)reader->layout.edges);
}

/* Go on to the next list that is not empty; *more is false when there is none. */
static int next_list(struct graph_csr_reader *reader, bool *more, struct graph_error *error)
{
	while (reader->edge == reader->list_end) {
		uint64_t offset;
		*more = reader->lists < reader->layout.vertices;
		if (!*more)
			break;
		int status = graph_stream_take(&reader->offsets, &offset, 8, error);
		if (status)
			return status;
		if (offset < reader->list_end || offset > reader->layout.edges)
			return fail_offset(reader, offset, error);
		reader->list_end = offset;
		reader->lists++;
	}
	if (*more || reader->edge == reader->layout.edges)
		return 0;
	return graph_fail(error, -EILSEQ,
			  "%s: the last offset is %llu, but %s holds %llu edges: the files do not belong "
			  "together or are damaged, so make them again",
			  reader->layout.offsets.input->path, (unsigned long long)reader->edge,
			  reader->layout.targets.input->path, (unsigned long long)reader->layout.edges);
}

static int fail_target(const struct graph_csr_reader *reader, uint64_t target, struct graph_error *error)
{
	const struct graph_csr_layout *layout = &reader->layout;

	return graph_fail(
		error, -ERANGE,
		"%s: edge %llu (at byte %llu) leads from vertex %llu to vertex %llu, but there "
		"are only %llu vertices: the file is damaged or does not belong to its offsets, so make it "
		"again",
		layout->targets.input->path, (unsigned long long)reader->edge,
		(unsigned long long)(layout->targets.at + reader->edge * stride_of(layout)),
		(unsigned long long)(reader->lists - 1), (unsigned long long)target,
		(unsigned long long)layout->vertices);
}

static int read_interleaved(struct graph_csr_reader *reader, struct graph_edge *edge,
			    struct graph_error *error)
{
	uint32_t pair[2];
	int status = graph_stream_take(&reader->targets, pair, 8, error);

	if (status)
		return status;
	edge->target = pair[0];
	edge->weight = pair[1];
	if (pair[1] <= INT32_MAX)
		return 0;
	return graph_fail(error, -ERANGE,
			  "%s: edge %llu (at byte %llu) has the weight %lld: negative weights are not "
			  "supported, so shift them first",
			  reader->layout.targets.input->path, (unsigned long long)reader->edge,
			  (unsigned long long)(reader->layout.targets.at + reader->edge * 8 + 4),
			  (long long)pair[1] - (INT64_C(1) << 32));
}

static int read_edge(struct graph_csr_reader *reader, struct graph_edge *edge, struct graph_error *error)
{
	uint32_t narrow = 0;
	int status;

	edge->source = reader->lists - 1;
	edge->weight = 0;
	if (reader->layout.interleaved) {
		status = read_interleaved(reader, edge, error);
	} else if (reader->layout.target_bytes == 8) {
		status = graph_stream_take(&reader->targets, &edge->target, 8, error);
	} else {
		status = graph_stream_take(&reader->targets, &narrow, 4, error);
		edge->target = narrow;
	}
	if (!status && reader->weights.buffer)
		status = graph_stream_take(&reader->weights, &edge->weight, 4, error);
	if (!status && edge->target >= reader->layout.vertices)
		status = fail_target(reader, edge->target, error);
	return status;
}

int graph_csr_read(struct graph_csr_reader *reader, struct graph_edge *edges, size_t capacity, size_t *count,
		   struct graph_error *error)
{
	size_t filled = 0;

	while (filled < capacity) {
		bool more = true;
		int status = next_list(reader, &more, error);
		if (status)
			return status;
		if (!more)
			break;
		status = read_edge(reader, &edges[filled], error);
		if (status)
			return status;
		reader->edge++;
		filled++;
	}
	*count = filled;
	return 0;
}
