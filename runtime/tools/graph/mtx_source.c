/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading Matrix Market coordinate files, with pattern or integer entries, general or symmetric. Entry (i, j)
 * is the edge i - 1 -> j - 1; off the diagonal, a symmetric file means the edge back as well.
 */
#include "format.h"
#include "lines.h"
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

struct mtx_source {
	struct graph_source base;
	struct graph_lines lines;
	bool symmetric;
	uint64_t rows;
	uint64_t columns;
	uint64_t entries;
	uint64_t seen;
	bool back_pending;
	struct graph_edge back;
};

/* Splits the banner, a copy of the first line, into its five words. */
static bool split_banner(const struct graph_lines *lines, char banner[128], char *words[5])
{
	char *rest = NULL;
	size_t bytes = lines->bytes < 127 ? lines->bytes : 127;

	memcpy(banner, lines->text, bytes);
	banner[bytes] = '\0';
	for (int i = 0; i < 5; i++) {
		words[i] = strtok_r(i ? NULL : banner, " \t\r", &rest);
		if (!words[i])
			return false;
	}
	return !strcasecmp(words[0], "%%MatrixMarket");
}

static int parse_banner(struct mtx_source *source, struct graph_error *error)
{
	char banner[128], *words[5];

	if (!split_banner(&source->lines, banner, words))
		return graph_lines_fail(
			&source->lines, error,
			"expected \"%%%%MatrixMarket matrix coordinate pattern|integer "
			"general|symmetric\": this is no Matrix Market file, or its first line is missing");
	if (strcasecmp(words[1], "matrix") || strcasecmp(words[2], "coordinate"))
		return graph_lines_fail(&source->lines, error,
					"only \"matrix coordinate\" can be read as a graph: write the "
					"matrix in coordinate form");
	if (strcasecmp(words[3], "pattern") && strcasecmp(words[3], "integer"))
		return graph_lines_fail(&source->lines, error,
					"entries of the kind \"%s\" are not supported: write them as "
					"integer, or as pattern without values",
					words[3]);
	if (strcasecmp(words[4], "general") && strcasecmp(words[4], "symmetric"))
		return graph_lines_fail(&source->lines, error,
					"the symmetry \"%s\" is not supported: write the matrix as "
					"general",
					words[4]);
	source->base.weighted = !strcasecmp(words[3], "integer");
	source->symmetric = !strcasecmp(words[4], "symmetric");
	return 0;
}

static int parse_size(struct mtx_source *source, bool more, struct graph_error *error)
{
	uint64_t numbers[3];
	struct graph_source *base = &source->base;

	if (!more)
		return graph_fail(error, -EILSEQ,
				  "%s ends before its size line \"rows columns entries\": it is cut short, "
				  "so make or copy it again",
				  source->lines.input.path);
	if (graph_lines_numbers(&source->lines, numbers, 3) != 3)
		return graph_lines_fail(&source->lines, error,
					"expected the size line \"rows columns entries\": correct it");
	source->rows = numbers[0];
	source->columns = numbers[1];
	source->entries = numbers[2];
	base->vertices = source->rows > source->columns ? source->rows : source->columns;
	if (base->vertices > (uint64_t)UINT32_MAX + 1)
		return graph_lines_fail(&source->lines, error,
					"%llu vertices are too many, at most 2^32 can be read: "
					"number them without gaps",
					(unsigned long long)base->vertices);
	/* The shortest entry is "1 1\n" (with a value "1 1 1\n"), and the last one may lack its end. */
	uint64_t bound = (base->bytes + 1) / (base->weighted ? 6 : 4);
	if (source->entries > bound)
		return graph_lines_fail(
			&source->lines, error,
			"%llu entries do not fit into a file of %llu bytes: it is cut short, so make or "
			"copy it again, or correct the size line",
			(unsigned long long)source->entries, (unsigned long long)base->bytes);
	base->edges = source->entries * (source->symmetric ? 2 : 1);
	return 0;
}

static int mtx_rewind(struct graph_source *base, struct graph_error *error)
{
	struct mtx_source *source = (struct mtx_source *)base;
	bool more;

	graph_lines_rewind(&source->lines);
	source->seen = base->bytes_read = 0;
	source->back_pending = false;
	int status = graph_lines_next(&source->lines, &more, error);
	if (!status && !more)
		status = graph_fail(error, -EILSEQ, "%s is empty: make or copy it again",
				    source->lines.input.path);
	if (!status)
		status = parse_banner(source, error);
	if (!status)
		status = graph_lines_next_data(&source->lines, &more, error);
	return status ? status : parse_size(source, more, error);
}

static int parse_entry(struct mtx_source *source, struct graph_edge *edge, struct graph_error *error)
{
	uint64_t numbers[3] = { 0 };
	const int expected = source->base.weighted ? 3 : 2;

	if (graph_lines_numbers(&source->lines, numbers, 3) != expected)
		return graph_lines_fail(&source->lines, error,
					"expected %s as unsigned decimal numbers between blanks: "
					"correct or remove the line",
					expected == 3 ? "row column value" : "row column");
	if (numbers[0] < 1 || numbers[0] > source->rows || numbers[1] < 1 || numbers[1] > source->columns)
		return graph_lines_fail(
			&source->lines, error,
			"entry (%llu, %llu) lies outside the matrix of %llu rows "
			"and %llu columns, counted from 1, so it leads to a vertex that does not exist: "
			"correct the line or the sizes",
			(unsigned long long)numbers[0], (unsigned long long)numbers[1],
			(unsigned long long)source->rows, (unsigned long long)source->columns);
	if (numbers[2] > UINT32_MAX)
		return graph_lines_fail(&source->lines, error,
					"the value %llu is too large, weights go up to %u: scale them",
					(unsigned long long)numbers[2], UINT32_MAX);
	if (source->seen++ == source->entries)
		return graph_lines_fail(&source->lines, error,
					"there are more entries than the %llu that the size line says: "
					"correct it",
					(unsigned long long)source->entries);
	*edge = (struct graph_edge){ numbers[0] - 1, numbers[1] - 1, (uint32_t)numbers[2] };
	return 0;
}

/* One edge; *more is false at the end. */
static int take_edge(struct mtx_source *source, struct graph_edge *edge, bool *more,
		     struct graph_error *error)
{
	if (source->back_pending) {
		source->back_pending = false;
		*edge = source->back;
		*more = true;
		return 0;
	}
	int status = graph_lines_next_data(&source->lines, more, error);
	if (status)
		return status;
	if (*more) {
		status = parse_entry(source, edge, error);
		source->back_pending = source->symmetric && edge->source != edge->target;
		source->back = (struct graph_edge){ edge->target, edge->source, edge->weight };
		return status;
	}
	if (source->seen == source->entries)
		return 0;
	return graph_fail(error, -EILSEQ,
			  "%s ends after %llu of the %llu entries that its size line says: it is cut "
			  "short, so make or copy it again",
			  source->lines.input.path, (unsigned long long)source->seen,
			  (unsigned long long)source->entries);
}

static int mtx_next(struct graph_source *base, struct graph_edge *edges, size_t capacity, size_t *count,
		    struct graph_error *error)
{
	struct mtx_source *source = (struct mtx_source *)base;

	for (*count = 0; *count < capacity; (*count)++) {
		bool more;
		struct graph_edge edge = { 0 };
		int status = take_edge(source, &edge, &more, error);
		if (status || !more)
			return status;
		edges[*count] = edge;
		base->bytes_read = source->lines.position;
	}
	return 0;
}

static void mtx_close(struct graph_source *base)
{
	graph_lines_close(&((struct mtx_source *)base)->lines);
	free(base);
}

static const struct graph_source_operations operations = { mtx_next, mtx_rewind, mtx_close };

int graph_mtx_source_open(const char *path, struct graph_source **out, struct graph_error *error)
{
	struct mtx_source *source = calloc(1, sizeof(*source));

	if (!source)
		return graph_fail_memory(error, sizeof(*source), "reading a graph");
	source->base.operations = &operations;
	source->base.format = GRAPH_MTX;
	int status = graph_lines_open(&source->lines, path, error);
	if (status) {
		free(source);
		return status;
	}
	source->base.bytes = source->lines.input.bytes;
	status = mtx_rewind(&source->base, error);
	if (status) {
		mtx_close(&source->base);
		return status;
	}
	source->base.sure = source->symmetric;
	source->base.direction = source->symmetric ? GRAPH_UNDIRECTED : GRAPH_DIRECTION_UNKNOWN;
	*out = &source->base;
	return 0;
}
