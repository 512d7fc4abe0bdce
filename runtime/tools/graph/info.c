/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"
#include "sort.h"
#include "symmetry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One look at everything. forward and inverse are sums of edge hashes, equal for a graph and its inverse. */
struct look {
	const struct graph_info_options *options;
	struct graph_source *source;
	struct graph_sort *sort;
	struct graph_info *info;
	struct graph_symmetry symmetry;
	uint64_t forward;
	uint64_t inverse;
	uint64_t edges;
	uint64_t degree; /* of the list under way */
	uint64_t lists;	 /* that are not empty, before the one under way */
	struct graph_edge last;
};

static void end_list(struct look *look)
{
	struct graph_info *info = look->info;

	if (!look->degree)
		return;
	if (!look->lists || look->degree < info->degree_min)
		info->degree_min = look->degree;
	if (look->degree > info->degree_max)
		info->degree_max = look->degree;
	look->lists++;
	look->degree = 0;
}

static void count_edge(struct look *look, const struct graph_edge *edge)
{
	if (look->degree && edge->source != look->last.source)
		end_list(look);
	if (look->degree && edge->target < look->last.target)
		look->info->sorted = false;
	look->info->repeated_edges += look->degree && edge->target == look->last.target;
	look->info->self_loops += edge->source == edge->target;
	look->degree++;
	look->edges++;
	look->last = *edge;
}

static void end_counting(struct look *look)
{
	end_list(look);
	if (look->lists < look->info->vertices)
		look->info->degree_min = 0;
}

static void count_grouped(struct look *look, const struct graph_edge *edges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		count_edge(look, &edges[i]);
}

static void add_forward(struct look *look, const struct graph_edge *edges, size_t count)
{
	graph_symmetry_add(&look->symmetry, edges, count);
	for (size_t i = 0; i < count; i++)
		look->forward += graph_symmetry_hash(edges[i].source, edges[i].target, edges[i].weight);
}

static int look_at_rows(struct look *look, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;

	graph_progress_begin(look->options->progress, "checking", look->source->edges, "edges");
	do {
		int status = graph_source_next(look->source, edges, GRAPH_BATCH_EDGES, &count, error);
		if (status)
			return status;
		count_grouped(look, edges, count);
		add_forward(look, edges, count);
		graph_progress_add(look->options->progress, count);
	} while (count);
	graph_progress_end(look->options->progress);
	return 0;
}

/* A directed .sg file carries every edge a second time, turned around. */
static int look_at_inverse(struct look *look, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;
	int status = graph_sg_read_inverse(look->source, error);

	do {
		if (!status)
			status = graph_source_next(look->source, edges, GRAPH_BATCH_EDGES, &count, error);
		if (status)
			return status;
		for (size_t i = 0; i < count; i++)
			look->inverse +=
				graph_symmetry_hash(edges[i].target, edges[i].source, edges[i].weight);
	} while (count);
	if (look->inverse == look->forward)
		return 0;
	return graph_fail(error, -EBADMSG,
			  "the inverse graph at the end of the file is not the inverse of the graph "
			  "before it: make the file again");
}

/* Text needs sorting before its degrees can be counted within bounded memory. */
static int sort_text(struct look *look, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;

	graph_progress_begin(look->options->progress, "checking", look->source->bytes, "bytes");
	do {
		uint64_t before = look->source->bytes_read;
		int status = graph_source_next(look->source, edges, GRAPH_BATCH_EDGES, &count, error);
		for (size_t i = 0; i < count && !status; i++)
			status = graph_sort_push(look->sort, 0, &edges[i], error);
		if (status)
			return status;
		add_forward(look, edges, count);
		graph_progress_add(look->options->progress, look->source->bytes_read - before);
	} while (count);
	graph_progress_end(look->options->progress);
	return graph_sort_flush(look->sort, 0, error);
}

static int count_sorted(struct look *look, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;
	int status = graph_sort_merge(look->sort, look->options->memory_bytes / 2, error);

	do {
		if (!status)
			status = graph_sort_next(look->sort, edges, GRAPH_BATCH_EDGES, &count, error);
		if (status)
			return status;
		count_grouped(look, edges, count);
	} while (count);
	return 0;
}

static int look_at_text(struct look *look, struct graph_error *error)
{
	const char *directory = getenv("TMPDIR"); /* the file's own directory may be read-only */
	struct graph_sort_options options = {
		.directory = directory && *directory ? directory : "/tmp",
		.memory_bytes = look->options->memory_bytes - look->options->memory_bytes / 16,
		.lanes = 1,
		.expected_edges = look->source->edges,
	};
	int status = graph_sort_create(&options, &look->sort, error);

	if (!status)
		status = sort_text(look, error);
	return status ? status : count_sorted(look, error);
}

static int look_at_all(struct look *look, struct graph_error *error)
{
	struct graph_info *info = look->info;
	int status = look->source->grouped ? look_at_rows(look, error) : look_at_text(look, error);

	if (status)
		return status;
	info->vertices = look->source->vertices;
	info->edges = look->edges;
	info->counted = true;
	end_counting(look);
	bool symmetric = graph_is_symmetric(&look->symmetry);
	if (info->direction == GRAPH_UNDIRECTED && !symmetric)
		return graph_fail(error, -EBADMSG,
				  "the file says that it is undirected, but not every edge is stored both "
				  "ways: make it again, or convert it with --symmetrize");
	if (info->direction == GRAPH_DIRECTED && look->source->grouped)
		return look_at_inverse(look, error);
	if (info->direction == GRAPH_DIRECTION_UNKNOWN)
		info->direction = symmetric ? GRAPH_UNDIRECTED : GRAPH_DIRECTED;
	return 0;
}

/* The errors of reading rows name the check that failed. */
static void settle_answers(struct graph_info *info, bool grouped, int status)
{
	if (status == 0 || status == -EBADMSG)
		info->in_range = info->monotone = GRAPH_YES;
	if (status == -ERANGE)
		info->in_range = GRAPH_NO;
	if (status == -EILSEQ)
		info->monotone = GRAPH_NO;
	if (!grouped)
		info->monotone = GRAPH_UNCHECKED;
	info->checked = status == 0;
}

static int check(struct graph_source *source, const struct graph_info_options *options,
		 struct graph_info *info, struct graph_error *error)
{
	struct look look = { .options = options, .source = source, .info = info };

	info->sorted = source->grouped; /* until an edge says otherwise; text has no lists */
	int status = look_at_all(&look, error);
	graph_sort_destroy(look.sort);
	settle_answers(info, source->grouped, status);
	return status;
}

int graph_info_read(const char *path, const struct graph_info_options *options, struct graph_info *info,
		    bool *opened, struct graph_error *error)
{
	struct graph_source *source;
	int status = graph_source_open(path, options->vertices, options->progress, &source, error);

	*opened = !status;
	memset(info, 0, sizeof(*info));
	if (status)
		return status;
	info->format = source->format;
	info->vertices = source->vertices;
	info->edges = source->edges;
	info->bytes = source->bytes;
	info->counted = source->grouped;
	info->weighted = source->weighted;
	info->direction = source->direction;
	if (source->format == GRAPH_BEL)
		status = graph_bel_open(path, &info->bel, error->text, sizeof(error->text));
	if (!status && options->check)
		status = check(source, options, info, error);
	graph_source_close(source);
	return status;
}
