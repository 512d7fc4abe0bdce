/* SPDX-License-Identifier: BSD-3-Clause */
#include "apart.h"
#include "format.h"

#include <errno.h>
#include <stdio.h>
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

static bool is_same(const char *a, const char *b)
{
	struct stat first, second;

	return !stat(a, &first) && !stat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

int graph_check_apart(const char *in, const char *out, struct graph_error *error)
{
	char read[MEMBERS][NAME_BYTES], written[MEMBERS][NAME_BYTES];
	unsigned reads = list_files(in, read), writes = list_files(out, written);

	for (unsigned i = 0; i < reads; i++)
		for (unsigned j = 0; j < writes; j++)
			if (is_same(read[i], written[j]))
				return graph_fail(error, -EINVAL,
						  "%s would be written while %s is read, and they are the "
						  "same file: give the "
						  "output another name",
						  written[j], read[i]);
	return 0;
}
