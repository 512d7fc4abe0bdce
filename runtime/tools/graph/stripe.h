/* SPDX-License-Identifier: BSD-3-Clause */
/* Spreading the neighbours of a .bel set over several files, as an array of disks would hold them. */
#ifndef WEIR_TOOLS_GRAPH_STRIPE_H
#define WEIR_TOOLS_GRAPH_STRIPE_H

#include "error.h"
#include "progress.h"

/** GRAPH_STRIPE_FILES_MAX - the most files to stripe over */
#define GRAPH_STRIPE_FILES_MAX 64u

/** GRAPH_STRIPE_UNIT_MAX - the largest unit: one unit is held in memory */
#define GRAPH_STRIPE_UNIT_MAX (UINT64_C(256) << 20)

/**
 * graph_stripe_check() - refuse units, numbers of files or pairs of names that make no sense; -EINVAL
 *
 * A unit is a multiple of 512 bytes up to GRAPH_STRIPE_UNIT_MAX; there are 2 to GRAPH_STRIPE_FILES_MAX files.
 */
int graph_stripe_check(char *const files[], unsigned count, uint64_t unit_bytes, struct graph_error *error);

/**
 * graph_stripe() - split the whole .dst file of a set, header and all
 * @set: names the .bel set
 * @files: the files to write
 *
 * Unit k goes to file k mod @count, at byte k / @count * @unit_bytes; the last unit is padded with zeros.
 */
int graph_stripe(const char *set, char *const files[], unsigned count, uint64_t unit_bytes,
		 struct graph_progress *progress, struct graph_error *error);

#endif
