/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"
#include "number.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

static const char *direction_text(const struct graph_info *info)
{
	if (info->direction == GRAPH_DIRECTED)
		return "yes";
	if (info->direction == GRAPH_UNDIRECTED)
		return "no, each edge is stored both ways";
	return "unknown (--check finds out)";
}

static const char *answer_text(enum graph_answer answer)
{
	return answer == GRAPH_YES ? "yes" : answer == GRAPH_NO ? "NO" : "not checked (--check)";
}

static double average_degree(const struct graph_info *info)
{
	return info->vertices ? (double)info->edges / (double)info->vertices : 0.0;
}

static void print_counts(FILE *out, const struct graph_info *info)
{
	if (!info->counted) {
		fprintf(out, "vertices    unknown (--check counts)\nedges       unknown (--check counts)\n");
		return;
	}
	fprintf(out, "vertices    %llu\n", (unsigned long long)info->vertices);
	fprintf(out, "edges       %llu stored\n", (unsigned long long)info->edges);
}

static void print_degrees(FILE *out, const struct graph_info *info)
{
	if (info->checked)
		fprintf(out, "degree      min %llu, average %.2f, max %llu\n",
			(unsigned long long)info->degree_min, average_degree(info),
			(unsigned long long)info->degree_max);
	else if (info->counted)
		fprintf(out, "degree      average %.2f (--check finds min and max)\n", average_degree(info));
	else
		fprintf(out, "degree      unknown (--check counts)\n");
}

static void print_bel(FILE *out, const struct graph_info *info)
{
	const struct graph_bel *bel = &info->bel;

	fprintf(out, "type words  .col %llu, .dst %llu", (unsigned long long)bel->col_type,
		(unsigned long long)bel->dst_type);
	if (bel->weighted)
		fprintf(out, ", .val %llu", (unsigned long long)bel->val_type);
	fputc('\n', out);
	if (bel->col_header_is_edge_count)
		fprintf(out, "header      .col holds the edge count where the number of offsets belongs\n");
}

static void print_check(FILE *out, const struct graph_info *info)
{
	if (!graph_format_info(info->format)->text)
		fprintf(out, "monotone    %s\n", answer_text(info->monotone));
	fprintf(out, "in range    %s\n", answer_text(info->in_range));
	if (!info->checked)
		return;
	fprintf(out, "self loops  %llu\n", (unsigned long long)info->self_loops);
	if (!graph_format_info(info->format)->text)
		fprintf(out, "lists       %s\n", info->sorted ? "ascending" : "not ascending");
	if (info->sorted || graph_format_info(info->format)->text)
		fprintf(out, "repeated    %llu\n", (unsigned long long)info->repeated_edges);
}

void graph_info_print(FILE *out, const char *path, const struct graph_info *info)
{
	const struct graph_format_info *format = graph_format_info(info->format);
	char size[GRAPH_HUMAN_BYTES];

	fprintf(out, "file        %s\n", path);
	fprintf(out, "format      %s (%s)\n", format->extension, format->description);
	print_counts(out, info);
	fprintf(out, "directed    %s\n", direction_text(info));
	fprintf(out, "weights     %s\n", info->weighted ? "yes" : "no");
	print_degrees(out, info);
	fprintf(out, "bytes       %llu", (unsigned long long)info->bytes);
	if (info->bytes >= 1024)
		fprintf(out, " (%s)", graph_human_bytes(info->bytes, size));
	fputc('\n', out);
	if (info->format == GRAPH_BEL)
		print_bel(out, info);
	print_check(out, info);
}

static json_t *number_or_null(bool known, uint64_t value)
{
	return known ? json_integer((json_int_t)value) : json_null();
}

static json_t *answer_or_null(enum graph_answer answer)
{
	return answer == GRAPH_UNCHECKED ? json_null() : json_boolean(answer == GRAPH_YES);
}

static json_t *degree_object(const struct graph_info *info)
{
	return json_pack("{s:o, s:o, s:o}", "min", number_or_null(info->checked, info->degree_min), "average",
			 info->counted ? json_real(average_degree(info)) : json_null(), "max",
			 number_or_null(info->checked, info->degree_max));
}

static json_t *bel_object(const struct graph_info *info)
{
	if (info->format != GRAPH_BEL)
		return json_null();
	return json_pack("{s:I, s:I, s:o, s:b}", "col_type", (json_int_t)info->bel.col_type, "dst_type",
			 (json_int_t)info->bel.dst_type, "val_type",
			 number_or_null(info->bel.weighted, info->bel.val_type), "col_header_is_edge_count",
			 info->bel.col_header_is_edge_count);
}

/* Members are set one by one: a packed object would be given up whole if one of them could not be made. */
static bool fill(json_t *root, const char *path, const struct graph_info *info, const char *problem)
{
	const bool text = graph_format_info(info->format)->text;
	const bool lists = info->checked && !text;
	const bool directed = info->direction == GRAPH_DIRECTED;
	int failed = 0;

	failed |= json_object_set_new(root, "file", json_stringn_nocheck(path, strlen(path)));
	failed |= json_object_set_new(root, "format",
				      json_string(graph_format_info(info->format)->extension + 1));
	failed |= json_object_set_new(root, "vertices", number_or_null(info->counted, info->vertices));
	failed |= json_object_set_new(root, "edges", number_or_null(info->counted, info->edges));
	failed |= json_object_set_new(root, "directed",
				      info->direction == GRAPH_DIRECTION_UNKNOWN ? json_null()
										 : json_boolean(directed));
	failed |= json_object_set_new(root, "weights", json_boolean(info->weighted));
	failed |= json_object_set_new(root, "degree", degree_object(info));
	failed |= json_object_set_new(root, "bytes", number_or_null(true, info->bytes));
	failed |= json_object_set_new(root, "checked", json_boolean(info->checked));
	failed |= json_object_set_new(root, "offsets_monotone", answer_or_null(info->monotone));
	failed |= json_object_set_new(root, "neighbours_in_range", answer_or_null(info->in_range));
	failed |= json_object_set_new(root, "lists_ascending",
				      lists ? json_boolean(info->sorted) : json_null());
	failed |= json_object_set_new(root, "self_loops", number_or_null(info->checked, info->self_loops));
	failed |= json_object_set_new(
		root, "repeated_edges",
		number_or_null(info->checked && (info->sorted || text), info->repeated_edges));
	failed |= json_object_set_new(root, "bel", bel_object(info));
	failed |= json_object_set_new(root, "problem",
				      problem ? json_stringn_nocheck(problem, strlen(problem)) : json_null());
	return !failed;
}

int graph_info_print_json(FILE *out, const char *path, const struct graph_info *info, const char *problem,
			  struct graph_error *error)
{
	json_t *root = json_object();
	bool filled = root && fill(root, path, info, problem);
	bool printed = filled && !json_dumpf(root, out, JSON_INDENT(2));

	json_decref(root);
	if (printed && fputc('\n', out) != EOF)
		return 0;
	return graph_fail(error, -EIO, "cannot print the answer for %s as JSON: %s", path,
			  filled ? "writing failed, so check where it goes"
				 : "no memory is left, so free some");
}
