/* SPDX-License-Identifier: BSD-3-Clause */
#include "apart.h"
#include "format.h"
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MEMBERS = 3, NAME_BYTES = GRAPH_PATH_BYTES + 8 };

/* The files that @path stands for; returns how many. */
static unsigned list_files(const char *path, char names[MEMBERS][NAME_BYTES])
{
	static const char *const extensions[MEMBERS] = { ".col", ".dst", ".val" };
	char prefix[GRAPH_PATH_BYTES];

	if (!graph_bel_prefix(path, prefix)) {
		snprintf(names[0], NAME_BYTES, "%s", path);
		return 1;
	}
	for (unsigned i = 0; i < MEMBERS; i++)
		snprintf(names[i], NAME_BYTES, "%s%s", prefix, extensions[i]);
	return MEMBERS;
}

static bool is_one(const char *a, const char *b)
{
	struct stat first, second;

	return !stat(a, &first) && !stat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool graph_same_file(const char *a, const char *b)
{
	char directories[2][GRAPH_PATH_BYTES];

	if (is_one(a, b))
		return true;
	/* not there yet: it will be */
	graph_directory_of(a, directories[0]);
	graph_directory_of(b, directories[1]);
	return !strcmp(last_name(a), last_name(b)) && is_one(directories[0], directories[1]);
}

int graph_check_apart(const char *in, const char *out, struct graph_error *error)
{
	char read[MEMBERS][NAME_BYTES], written[MEMBERS][NAME_BYTES];
	unsigned reads = list_files(in, read), writes = list_files(out, written);

	for (unsigned i = 0; i < reads; i++)
		for (unsigned j = 0; j < writes; j++)
			if (graph_same_file(read[i], written[j]))
				return graph_fail(error, -EINVAL,
						  "%s would be written while %s is read, and they are the "
						  "same file: give the "
						  "output another name",
						  written[j], read[i]);
	return 0;
}
