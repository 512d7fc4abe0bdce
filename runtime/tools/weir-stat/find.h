/* SPDX-License-Identifier: BSD-3-Clause */
/* find.h: the files that contexts left, and the processes they are of. */
#ifndef WEIR_STAT_FIND_H
#define WEIR_STAT_FIND_H

#include "note.h"
#include "process.h"

/**
 * struct found - a file, and the process of its number
 * @stale: that process has ended, or is another one
 * @ours: the folder is the caller's own: what is stale in it can be removed
 */
struct found {
	struct note note;
	struct process process;
	bool stale;
	bool ours;
};

/**
 * find_notes() - the files of contexts, in the order of processes and of their contexts, those that are stale
 * behind the others of a process number
 * @pid: of this process alone; 0: of all that may be looked at: the user's, or everybody's for root
 * @count: how many
 *
 * Return: the list, for find_release(); NULL if there is none.
 */
struct found *find_notes(int pid, size_t *count);
/** find_release() - the list */
void find_release(struct found *list, size_t count);
/** find_remove_stale() - files of processes that have ended; and what those left half written */
void find_remove_stale(const struct found *list, size_t count);

#endif
