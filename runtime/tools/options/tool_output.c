/* SPDX-License-Identifier: BSD-3-Clause */
#include "tool_output.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

bool tool_output_end(FILE *file, const char *path, bool whole)
{
	int error = errno;
	bool closed = fclose(file) == 0;
	struct stat status;

	if (whole && closed)
		return true;
	error = whole ? errno : error;
	if (lstat(path, &status) == 0 && S_ISREG(status.st_mode))
		(void)unlink(path);
	errno = error;
	return false;
}
