/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h: the runs of one measurement, weir's and those beside it in turns. */
#ifndef WEIR_PERF_RUN_H
#define WEIR_PERF_RUN_H

#include "results.h"

/** perf_run() - the load @options describe; 0, or -1 with one sentence */
int perf_run(const struct perf_options *options, struct perf_outcome *outcome);

/** perf_hit_run() - the same for --hit, in a bench that is open (hit.c) */
int perf_hit_run(struct perf_bench *bench, struct perf_outcome *outcome);

#endif
