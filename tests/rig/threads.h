/* SPDX-License-Identifier: BSD-3-Clause */
/* threads.h: this process's threads, counted by their names. */
#ifndef WEIR_TESTS_THREADS_H
#define WEIR_TESTS_THREADS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/** test_threads_named() - of this process: those whose names begin with @begin, or, with @others, all but
 * those */
static inline unsigned test_threads_named(const char *begin, bool others)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned count = 0;

	while (folder && (entry = readdir(folder))) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re"); /* not of one that ended meanwhile */
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file))
			count += (strncmp(name, begin, strlen(begin)) == 0) != others;
		fclose(file);
	}
	if (folder)
		closedir(folder);
	return count;
}

/** test_threads_settled() - how many threads' names begin with @begin: @wanted, or what there is after a
 * minute, since those that were joined are on the list until the kernel has taken them off */
static inline unsigned test_threads_settled(const char *begin, unsigned wanted)
{
	unsigned count = test_threads_named(begin, false);

	for (unsigned tries = 0; tries < 60000 && count != wanted; tries++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		count = test_threads_named(begin, false);
	}
	return count;
}

#endif
