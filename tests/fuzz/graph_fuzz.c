/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph_fuzz.c: graph files of every format, read and checked as weir-graph info --check does. The first byte
 * chooses the format; of a .bel it also says where the file of offsets ends and that of neighbours begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "info.h"
#include "progress.h"

#include "fuzz.h"

enum { MEMORY_BYTES = 1 << 20, MOST_VERTICES = 1 << 16 };

static const char *const formats[] = { "el", "wel", "mtx", "sg", "wsg", "bel.col" };
enum { FORMATS = sizeof(formats) / sizeof(formats[0]), BEL = FORMATS - 1 };

static char folder[] = "/tmp/weir-fuzz-XXXXXX";

static void clean_up(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	(void)!system(command);
}

static void prepare(void)
{
	static bool prepared;

	if (prepared)
		return;
	prepared = true;
	fuzz_must(mkdtemp(folder) != NULL);
	atexit(clean_up);
}

static void write_file(const char *name, const uint8_t *data, size_t bytes)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	fuzz_must(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes && close(fd) == 0);
}

static void check(const char *name)
{
	struct graph_progress progress;
	struct graph_info_options options = {
		.check = true, .vertices = 0, .memory_bytes = MEMORY_BYTES, .progress = &progress
	};
	struct graph_error error = { .text = "" };
	struct graph_info info;
	bool opened = false;
	char path[64];
	int code;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	graph_progress_init(&progress, NULL, NULL);
	code = graph_info_read(path, &options, &info, &opened, &error);
	graph_progress_close(&progress);
	fuzz_must(code == 0 || (code < 0 && error.text[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	unsigned format;
	size_t cut;

	prepare();
	if (bytes < 1)
		return 0;
	format = data[0] % FORMATS;
	cut = format == BEL ? data[0] / FORMATS * 8 : 0;
	data++, bytes--;
	if (format == BEL) {
		cut = cut < bytes ? cut : bytes;
		write_file("g.bel.dst", data + cut, bytes - cut);
		write_file("g.bel.col", data, cut);
		check("g.bel.col");
	} else {
		char name[16];

		snprintf(name, sizeof(name), "g.%s", formats[format]);
		write_file(name, data, bytes);
		check(name);
	}
	return 0;
}
