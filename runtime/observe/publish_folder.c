/* SPDX-License-Identifier: BSD-3-Clause */
/* What the runtime and the tool that looks from outside both have to know: folders, and a process's start
 * time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "publish.h"

size_t weir_publish_folder(unsigned index, unsigned uid, const char *runtime_dir,
			   char path[WEIR_PUBLISH_PATH])
{
	int length = -1;

	if (index == 0 && runtime_dir && *runtime_dir == '/')
		length = snprintf(path, WEIR_PUBLISH_PATH, "%s/weir", runtime_dir);
	if (index == 1)
		length = snprintf(path, WEIR_PUBLISH_PATH, "/run/user/%u/weir", uid);
	if (index == 2 || index == 3)
		length = snprintf(path, WEIR_PUBLISH_PATH, "%s/weir-%u", index == 2 ? "/dev/shm" : "/tmp",
				  uid);
	return length > 0 && length < WEIR_PUBLISH_PATH ? (size_t)length : 0;
}

uint64_t weir_publish_start(const char *stat)
{
	const char *field = strrchr(stat, ')'); /* the program's name, which may have spaces, ends field 2 */

	for (unsigned i = 2; field && i < 22; i++)
		field = strchr(field + 1, ' ');
	return field ? strtoull(field, NULL, 10) : 0;
}
