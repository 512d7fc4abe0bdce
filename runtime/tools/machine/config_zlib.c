/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain and compressed: zlib reads both. */
#include "config.h"

#include <stddef.h>
#include <zlib.h>

bool config_each(const char *path, void (*take)(const char *line, void *user), void *user)
{
	gzFile file = gzopen(path, "r");
	unsigned lines = 0;
	char line[256];

	if (!file)
		return false;
	for (; gzgets(file, line, sizeof(line)) != NULL; lines++)
		take(line, user);
	gzclose(file);
	return lines != 0;
}
