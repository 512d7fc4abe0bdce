/* SPDX-License-Identifier: BSD-3-Clause */
/* make.c: synthetic samples, sorted by class: a folder, a tar file with labels (as WebDataset has them), or a
 * file of records. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/core/mix.h>

#include "tool.h"
#include "tool_output.h"

enum { BLOCK = 512 };

static void tar_header(unsigned char *header, const char *name, uint64_t bytes)
{
	unsigned sum = 0;

	memset(header, 0, BLOCK);
	snprintf((char *)header, 100, "%s", name);
	memcpy(header + 100, "0000644\0000000000\0000000000\0", 24);
	snprintf((char *)header + 124, 12, "%011llo", (unsigned long long)bytes);
	memcpy(header + 136, "00000000000\0        0", 21);
	memcpy(header + 257, "ustar\00000", 8);
	for (unsigned i = 0; i < BLOCK; i++)
		sum += header[i];
	snprintf((char *)header + 148, 8, "%06o", sum);
}

static void tar_member(FILE *to, const char *name, const void *data, uint64_t bytes)
{
	unsigned char block[BLOCK];

	tar_header(block, name, bytes);
	fwrite(block, BLOCK, 1, to);
	fwrite(data, 1, bytes, to);
	memset(block, 0, BLOCK);
	fwrite(block, 1, (BLOCK - bytes % BLOCK) % BLOCK, to);
}

static FILE *open_sample(const struct tool *tool, uint64_t class, uint64_t i, char path[4096])
{
	snprintf(path, 4096, "%s/%05" PRIu64, tool->operands[0], class);
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return NULL;
	snprintf(path, 4096, "%s/%05" PRIu64 "/%09" PRIu64, tool->operands[0], class, i);
	return fopen(path, "w");
}

/* Sample @i, whose bytes are at @data. */
static bool put(const struct tool *tool, FILE *to, uint64_t i, const unsigned char *data, uint64_t bytes)
{
	uint64_t class = i * tool->classes / tool->samples;
	char name[64], label[24];

	if (strcmp(tool->as, "folder") == 0) {
		char path[4096];
		FILE *file = open_sample(tool, class, i, path);

		return file && tool_output_end(file, path, fwrite(data, 1, bytes, file) == bytes);
	}
	if (strcmp(tool->as, "tar") == 0) {
		snprintf(name, sizeof(name), "%09" PRIu64 ".bin", i);
		tar_member(to, name, data, bytes);
		snprintf(name, sizeof(name), "%09" PRIu64 ".cls", i);
		snprintf(label, sizeof(label), "%" PRIu64, class);
		tar_member(to, name, label, strlen(label));
	} else {
		fwrite(data, 1, bytes, to);
	}
	return !ferror(to);
}

/* All samples, each made at @data. Return: how many before somebody stopped it, or all; an error is @good's.
 */
static uint64_t put_all(const struct tool *tool, FILE *to, uint64_t *data, bool *good)
{
	static const unsigned char end[2 * BLOCK];
	uint64_t state = tool->seed;

	for (uint64_t i = 0; i < tool->samples && *good; i++) {
		uint64_t bytes = tool->least_bytes +
				 weir_mix_next(&state) % (tool->most_bytes - tool->least_bytes + 1);

		for (uint64_t word = 0; word * 8 < bytes; word++)
			data[word] = weir_mix_next(&state);
		*good = put(tool, to, i, (unsigned char *)data, bytes);
		if (*good && tool_progress(NULL, i + 1, tool->samples))
			return i + 1;
	}
	if (*good && strcmp(tool->as, "tar") == 0)
		*good = fwrite(end, sizeof(end), 1, to) == 1;
	return tool->samples;
}

int tool_make(struct tool *tool)
{
	bool folder = strcmp(tool->as, "folder") == 0, good = true;
	uint64_t made, *data = malloc((tool->most_bytes / 8 + 2) * 8);
	FILE *to = NULL;

	if (!data)
		return tool_complain("no memory for a sample of %" PRIu64 " bytes; give smaller --bytes",
				     tool->most_bytes);
	if (!folder && strcmp(tool->as, "tar") != 0 && strcmp(tool->as, "records") != 0)
		return free(data), tool_complain("--as %s: there are folder, tar and records", tool->as);
	if (strcmp(tool->as, "records") == 0 && tool->least_bytes != tool->most_bytes)
		return free(data), tool_complain("records have one length; give --bytes N, or --as tar");
	if (folder ? mkdir(tool->operands[0], 0777) != 0 && errno != EEXIST
		   : !(to = fopen(tool->operands[0], "w")))
		return free(data), tool_complain("cannot make %s: %s", tool->operands[0], strerror(errno));
	made = put_all(tool, to, data, &good);
	free(data);
	if (to)
		good = tool_output_end(to, tool->operands[0], good && made == tool->samples) && good;
	if (made < tool->samples)
		return tool_complain("stopped after %" PRIu64 " samples; make them anew", made);
	if (!good)
		return tool_complain("cannot write %s: %s", tool->operands[0], strerror(errno));
	return TOOL_OK;
}
