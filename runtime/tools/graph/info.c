/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"
#include "sort.h"
#include "symmetry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One look at everything. forward and inverse are sums of edge hashes, equal for a graph and its inverse. */
struct scan {
	const struct graph_info_options *options;
	struct graph_source *source;
	struct graph_sort *sort;
	struct graph_info *info;
	struct graph_symmetry symmetry;
	uint64_t forward;
	uint64_t inverse;
	uint64_t edges;
	uint64_t degree; /* of the list under way */
	uint64_t lists;  /* that are not empty, before the one under way */
	struct graph_edge last;
};

static void end_list(struct scan *scan)
{
	struct graph_info *info = scan->info;

	if (!scan->degree)
		return;
	if (!scan->lists || scan->degree < info->degree_min)
		info->degree_min = scan->degree;
	if (scan->degree > info->degree_max)
		info->degree_max = scan->degree;
	scan->lists++;
	scan->degree = 0;
}

static void count_edge(struct scan *scan, const struct graph_edge *edge)
{
	if (scan->degree && edge->source != scan->last.source)
		end_list(scan);
	if (scan->degree && edge->target < scan->last.target)
		scan->info->sorted = false;
	scan->info->repeated_edges += scan->degree && edge->target == scan->last.target;
	scan->info->self_loops += edge->source == edge->target;
	scan->degree++;
	scan->edges++;
	scan->last = *edge;
}

static void end_counting(struct scan *scan)
{
	end_list(scan);
	if (scan->lists < scan->info->vertices)
		scan->info->degree_min = 0;
}

static void count_grouped(struct scan *scan, const struct graph_edge *edges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		count_edge(scan, &edges[i]);
}

static void add_forward(struct scan *scan, const struct graph_edge *edges, size_t count)
{
	graph_symmetry_add(&scan->symmetry, edges, count);
	for (size_t i = 0; i < count; i++)
		scan->forward += graph_symmetry_hash(edges[i].source, edges[i].target, edges[i].weight);
}

static int check_rows(struct scan *scan, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;

	graph_progress_begin(scan->options->progress, "checking", scan->source->edges, "edges");
	do {
		int status = graph_source_next(scan->source, edges, GRAPH_BATCH_EDGES, &count, error);
		if (status)
			return status;
		count_grouped(scan, edges, count);
		add_forward(scan, edges, count);
		graph_progress_add(scan->options->progress, count);
	} while (count);
	graph_progress_end(scan->options->progress);
	return 0;
}

/* A directed .sg file carries every edge a second time, turned around. */
static int check_inverse(struct scan *scan, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;
	int status = graph_sg_read_inverse(scan->source, error);

	do {
		if (!status)
			status = graph_source_next(scan->source, edges, GRAPH_BATCH_EDGES, &count, error);
		if (status)
			return status;
		for (size_t i = 0; i < count; i++)
			scan->inverse +=
				graph_symmetry_hash(edges[i].target, edges[i].source, edges[i].weight);
	} while (count);
	if (scan->inverse == scan->forward)
		return 0;
	return graph_fail(error, -EBADMSG,
			  "the inverse graph at the end of the file is not the inverse of the graph "
			  "before it: make the file again");
}

/* Text needs sorting before its degrees can be counted within bounded memory. */
static int sort_text(struct scan *scan, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;

	graph_progress_begin(scan->options->progress, "checking", scan->source->bytes, "bytes");
	do {
		uint64_t before = scan->source->bytes_read;
		int status = graph_source_next(scan->source, edges, GRAPH_BATCH_EDGES, &count, error);
		for (size_t i = 0; i < count && !status; i++)
			status = graph_sort_push(scan->sort, 0, &edges[i], error);
		if (status)
			return status;
		add_forward(scan, edges, count);
		graph_progress_add(scan->options->progress, scan->source->bytes_read - before);
	} while (count);
	graph_progress_end(scan->options->progress);
	return graph_sort_flush(scan->sort, 0, error);
}

static int count_sorted(struct scan *scan, struct graph_error *error)
{
	struct graph_edge edges[GRAPH_BATCH_EDGES];
	size_t count = 0;
	int status = graph_sort_merge(scan->sort, scan->options->memory_bytes / 2, error);

	do {
		if (!status)
			status = graph_sort_next(scan->sort, edges, GRAPH_BATCH_EDGES, &count, error);
		if (status)
			return status;
		count_grouped(scan, edges, count);
	} while (count);
	return 0;
}

static int read_text(struct scan *scan, struct graph_error *error)
{
	const char *directory = getenv("TMPDIR"); /* the file's own directory may be read-only */
	struct graph_sort_options options = {
		.directory = directory && *directory ? directory : "/tmp",
		.memory_bytes = scan->options->memory_bytes - scan->options->memory_bytes / 16,
		.lanes = 1,
		.expected_edges = scan->source->edges,
	};
	int status = graph_sort_create(&options, &scan->sort, error);

	if (!status)
		status = sort_text(scan, error);
	return status ? status : count_sorted(scan, error);
}

static int check_all(struct scan *scan, struct graph_error *error)
{
	struct graph_info *info = scan->info;
	int status = scan->source->grouped ? check_rows(scan, error) : read_text(scan, error);

	if (status)
		return status;
	info->vertices = scan->source->vertices;
	info->edges = scan->edges;
	info->counted = true;
	end_counting(scan);
	bool symmetric = graph_is_symmetric(&scan->symmetry);
	if (info->direction == GRAPH_UNDIRECTED && !symmetric)
		return graph_fail(error, -EBADMSG,
				  "the file says that it is undirected, but not every edge is stored both "
				  "ways: make it again, or convert it with --symmetrize");
	if (info->direction == GRAPH_DIRECTED && scan->source->grouped)
		return check_inverse(scan, error);
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
	struct scan scan = { .options = options, .source = source, .info = info };

	info->sorted = source->grouped; /* until an edge says otherwise; text has no lists */
	int status = check_all(&scan, error);
	graph_sort_destroy(scan.sort);
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
