/* SPDX-License-Identifier: BSD-3-Clause */
/* losing: to preload: files take what is written to them, and their close fails, as on a machine without
 * room. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

int fclose(FILE *file)
{
	int (*next)(FILE * file);
	void *found = dlsym(RTLD_NEXT, "fclose");

	memcpy(&next, &found,
	       sizeof(next)); /* POSIX has dlsym()'s result be a function, which C knows nothing of */
	if (fileno(file) < 0) /* of memory */
		return next(file);
	(void)next(file);
	errno = EDQUOT;
	return EOF;
}
