/* SPDX-License-Identifier: BSD-3-Clause */
#include "bel.h"
#include "format.h"
#include "number.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* The two words every file of a set begins with. */
struct header {
	uint64_t count;
	uint64_t type;
};

static int name_files(const char *path, struct graph_bel *bel, struct graph_error *error)
{
	char prefix[GRAPH_PATH_BYTES];

	memset(bel, 0, sizeof(*bel));
	if (!graph_bel_prefix(path, prefix))
		return graph_fail(error, -EINVAL,
				  "%s does not name a .bel set: give the prefix that ends in .bel, of which "
				  ".bel.col and .bel.dst exist",
				  path);
	memcpy(bel->col_path, prefix, strlen(prefix) + 1);
	memcpy(bel->dst_path, prefix, strlen(prefix) + 1);
	memcpy(bel->val_path, prefix, strlen(prefix) + 1);
	strcat(bel->col_path, ".col");
	strcat(bel->dst_path, ".dst");
	strcat(bel->val_path, ".val");
	return 0;
}

static int open_with_header(struct graph_input *input, const char *path, struct header *header,
			    struct graph_error *error)
{
	int status = graph_input_open(input, path, error);

	if (status)
		return status;
	if (input->bytes < GRAPH_BEL_HEADER_BYTES)
		return graph_fail(error, -EILSEQ,
				  "%s is cut short: it has %llu bytes, and the header alone is %d; make or "
				  "copy it again",
				  path, (unsigned long long)input->bytes, GRAPH_BEL_HEADER_BYTES);
	return graph_input_read_at(input, 0, header, sizeof(*header), error);
}

/* header.count elements of @element_bytes must fill the file exactly. */
static int check_size(const struct graph_input *input, const struct header *header, unsigned element_bytes,
		      const char *what, struct graph_error *error)
{
	uint64_t payload = input->bytes - GRAPH_BEL_HEADER_BYTES;
	uint64_t said;

	if (!graph_multiply(header->count, element_bytes, &said))
		said = UINT64_MAX;
	if (said == payload)
		return 0;
	const char *verdict = "cut short";
	if (payload > said)
		verdict = "longer than it should be";
	else if (element_bytes == 8 && payload == said - payload)
		verdict = "cut short, or made of 4-byte elements, which are not supported";
	return graph_fail(error, -EILSEQ,
			  "%s does not have the size its header says: %llu %s of %u bytes need %llu bytes "
			  "after the header, and there are %llu; it is %s, so make or copy it again",
			  input->path, (unsigned long long)header->count, what, element_bytes,
			  (unsigned long long)said, (unsigned long long)payload, verdict);
}

/*
 * Some converters put the number of edges in the header of the column file. The file's size is then the only
 * truth left about the vertices, and its last word must be the last offset: in a file that was cut short it
 * is not.
 */
static int find_edge_count(const struct graph_input *col, const struct header *header, struct graph_bel *bel,
			   struct graph_error *error)
{
	uint64_t payload = col->bytes - GRAPH_BEL_HEADER_BYTES;
	uint64_t last;

	if (payload % 8 || !payload || header->count == payload / 8)
		return 0;
	if (header->count != bel->edges && header->count - 1 != bel->edges)
		return 0;
	int status = graph_input_read_at(col, col->bytes - 8, &last, 8, error);
	bel->col_header_is_edge_count = !status && last == bel->edges;
	return status;
}

/* The column file decides the number of vertices. */
static int check_col(const struct graph_input *col, struct header *header, struct graph_bel *bel,
		     struct graph_error *error)
{
	uint64_t entries = (col->bytes - GRAPH_BEL_HEADER_BYTES) / 8;
	int status = find_edge_count(col, header, bel, error);

	if (bel->col_header_is_edge_count)
		header->count = entries;
	if (!status)
		status = check_size(col, header, 8, "offsets", error);
	if (!status && !entries)
		status = graph_fail(error, -EILSEQ,
				    "%s holds no offsets, and a graph of no vertices still has one: make it "
				    "again",
				    col->path);
	bel->vertices = entries - 1;
	return status;
}

static int check_ends(const struct graph_input *col, const struct graph_bel *bel, struct graph_error *error)
{
	uint64_t first, last;
	int status = graph_input_read_at(col, GRAPH_BEL_HEADER_BYTES, &first, 8, error);

	if (!status)
		status =
			graph_input_read_at(col, GRAPH_BEL_HEADER_BYTES + bel->vertices * 8, &last, 8, error);
	if (status || (first == 0 && last == bel->edges))
		return status;
	return graph_fail(
		error, -EILSEQ,
		"%s does not fit %s: its offsets run from %llu to %llu, and with %llu edges "
		"they must run from 0 to %llu; one of the two is damaged or cut short, so make or copy the "
		"set again",
		bel->col_path, bel->dst_path, (unsigned long long)first, (unsigned long long)last,
		(unsigned long long)bel->edges, (unsigned long long)bel->edges);
}

static int open_weights(struct graph_bel *bel, struct graph_bel_files *files, struct graph_error *error)
{
	struct header header;

	if (access(bel->val_path, F_OK) && errno == ENOENT) {
		bel->val_path[0] = '\0';
		return 0;
	}
	int status = open_with_header(&files->val, bel->val_path, &header, error);
	if (!status)
		status = check_size(&files->val, &header, 4, "weights", error);
	if (!status && header.count != bel->edges)
		status = graph_fail(error, -EILSEQ,
				    "%s holds %llu weights, but %s holds %llu edges: remove the former if "
				    "it is left from another graph, or make the set again",
				    bel->val_path, (unsigned long long)header.count, bel->dst_path,
				    (unsigned long long)bel->edges);
	bel->weighted = true;
	bel->val_type = header.type;
	return status;
}

static int open_files(struct graph_bel *bel, struct graph_bel_files *files, struct graph_error *error)
{
	struct header col, dst;
	int status = open_with_header(&files->col, bel->col_path, &col, error);

	if (!status)
		status = open_with_header(&files->dst, bel->dst_path, &dst, error);
	if (!status)
		status = check_size(&files->dst, &dst, 8, "neighbours", error);
	if (status)
		return status;
	bel->edges = dst.count;
	bel->col_type = col.type;
	bel->dst_type = dst.type;
	status = check_col(&files->col, &col, bel, error);
	if (!status)
		status = check_ends(&files->col, bel, error);
	return status ? status : open_weights(bel, files, error);
}

int graph_bel_files_open(const char *path, struct graph_bel *bel, struct graph_bel_files *files,
			 struct graph_error *error)
{
	int status = name_files(path, bel, error);

	files->col.fd = files->dst.fd = files->val.fd = -1;
	if (!status)
		status = open_files(bel, files, error);
	if (status)
		graph_bel_files_close(files);
	return status;
}

void graph_bel_files_close(struct graph_bel_files *files)
{
	graph_input_close(&files->col);
	graph_input_close(&files->dst);
	graph_input_close(&files->val);
}

void graph_bel_layout(const struct graph_bel *bel, const struct graph_bel_files *files,
		      struct graph_csr_layout *layout)
{
	memset(layout, 0, sizeof(*layout));
	layout->offsets = (struct graph_csr_offset){ &files->col, GRAPH_BEL_HEADER_BYTES };
	layout->targets = (struct graph_csr_offset){ &files->dst, GRAPH_BEL_HEADER_BYTES };
	if (bel->weighted)
		layout->weights = (struct graph_csr_offset){ &files->val, GRAPH_BEL_HEADER_BYTES };
	layout->target_bytes = 8;
	layout->vertices = bel->vertices;
	layout->edges = bel->edges;
}

int graph_bel_open(const char *path, struct graph_bel *out, char *text, size_t text_bytes)
{
	struct graph_bel_files files;
	struct graph_error error;
	int status = graph_bel_files_open(path, out, &files, &error);

	if (!status)
		graph_bel_files_close(&files);
	return graph_error_copy(&error, status, text, text_bytes);
}
