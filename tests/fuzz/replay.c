/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c: a fuzzer without a fuzzer: tries each input of some folders once, as TAP. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

enum { MOST_BYTES = 1 << 20 };

static int replay(const char *folder, const char *name)
{
	static uint8_t data[MOST_BYTES];
	char path[4096];
	size_t bytes;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	if (!file)
		return -1;
	bytes = fread(data, 1, sizeof(data), file);
	fclose(file);
	return LLVMFuzzerTestOneInput(data, bytes);
}

int main(int argc, char **argv)
{
	unsigned count = 0;
	struct dirent *entry;
	DIR *folder = argc > 1 ? opendir(argv[1]) : NULL;

	if (!folder) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			printf("%s %u - %s\n", replay(argv[1], entry->d_name) == 0 ? "ok" : "not ok", ++count,
			       entry->d_name);
	closedir(folder);
	printf("1..%u\n", count);
	return count == 0;
}
