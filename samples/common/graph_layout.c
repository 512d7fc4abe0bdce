/* SPDX-License-Identifier: BSD-3-Clause */
#include "graph_layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert.h"
#include "device.h"

enum { MEMORY_BYTES = 1 << 30, PATH_BYTES = 4096 };

static char folder[PATH_BYTES - 32], set[PATH_BYTES];

static void remove_set(void)
{
	static const char *const suffixes[] = { "col", "dst", "val" };
	char file[PATH_BYTES + 8];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(file, sizeof(file), "%s.%s", set, suffixes[i]);
		(void)unlink(file);
	}
	(void)rmdir(folder);
}

static bool is_other_layout(const char *path)
{
	static const char *const suffixes[] = { ".sg", ".wsg", ".el", ".wel", ".mtx" };
	const char *dot = path ? strrchr(path, '.') : NULL;

	for (size_t i = 0; dot && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (!strcmp(dot, suffixes[i]))
			return true;
	return false;
}

int graph_layout_take(const char **path, char *error)
{
	const char *top = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	struct graph_progress progress;
	struct graph_error why = { .text = "" };
	int code;

	if (!is_other_layout(*path))
		return 0;
	snprintf(folder, sizeof(folder), "%s/weir-graph-XXXXXX", top);
	if (!mkdtemp(folder))
		return sample_fail(
			error, -errno,
			"cannot make a folder in %.700s for the .bel set of %.700s: %s; set TMPDIR", top,
			*path, strerror(errno));
	snprintf(set, sizeof(set), "%s/graph.bel", folder);
	(void)atexit(remove_set);
	fprintf(stderr,
		"weir: %s becomes a .bel set in %s until the end; weir-graph convert makes one that stays\n",
		*path, folder);
	graph_progress_init(&progress, NULL, stderr);
	code = graph_convert(
		*path, set,
		&(struct graph_convert_options){ .memory_bytes = MEMORY_BYTES, .progress = &progress }, &why);
	graph_progress_close(&progress);
	*path = set;
	return code ? sample_fail(error, -EINVAL, "%s", why.text) : 0;
}
