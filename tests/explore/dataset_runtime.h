/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset_runtime.h: what the host's program of datasets wants of its stand-in for libweir. */
#ifndef EXPLORE_DATASET_RUNTIME_H
#define EXPLORE_DATASET_RUNTIME_H

#include "dataset_stream.h"

/* The sentence for a sample that could not be read: its number, and a status. */
#define DATASET_FAILED "sample %llu status %x"

/**
 * struct dataset_runtime - of a run
 * @stream: where launches go
 * @threads: lanes that run them
 * @refuse: decides whether a launch of the dataset's is refused; NULL: none is
 */
struct dataset_runtime {
	struct dataset_stream *stream;
	u32 threads;
	bool (*refuse)(void);
};

extern struct dataset_runtime dataset_runtime;

/** dataset_launch() - the next launch, as the caller fills it in; waits while too many are under way */
void dataset_launch(const struct dataset_launch *launch);

#endif
