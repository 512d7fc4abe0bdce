/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.h: figures as an SVG file, drawn by gnuplot. */
#ifndef WEIR_PERF_PLOT_H
#define WEIR_PERF_PLOT_H

#include "results.h"

/** perf_plot_check() - 0, or -1 with a sentence if there is no gnuplot or @path cannot be written */
int perf_plot_check(const char *path);

/** perf_plot() - @count outcomes of a sweep, or the latencies of one; 0 or -1 with a sentence */
int perf_plot(const struct perf_outcome *outcomes, unsigned count);

#endif
