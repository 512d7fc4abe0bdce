/* SPDX-License-Identifier: BSD-3-Clause */
#include "progress.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_NS UINT64_C(100000000)
#define BAR_CELLS 32u

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void graph_progress_init(struct graph_progress *progress, FILE *report, FILE *notes)
{
	memset(progress, 0, sizeof(*progress));
	progress->report = report;
	progress->notes = notes;
	progress->terminal = report && isatty(fileno(report));
	pthread_mutex_init(&progress->drawing, NULL);
}

void graph_progress_begin(struct graph_progress *progress, const char *phase, uint64_t total,
			  const char *unit)
{
	progress->phase = phase;
	progress->unit = unit;
	progress->total = total;
	progress->began_ns = now_ns();
	progress->shown_ns = progress->began_ns;
	atomic_store_explicit(&progress->done, 0, memory_order_relaxed); /* the phase's threads start later */
}

static void draw_bar(const struct graph_progress *progress, uint64_t done, uint64_t elapsed_ns)
{
	char bar[BAR_CELLS + 1];
	double part = progress->total ? (double)done / (double)progress->total : 0.0;
	double seconds = (double)elapsed_ns * 1e-9;

	if (part > 1.0)
		part = 1.0;
	unsigned full = (unsigned)(part * BAR_CELLS);
	memset(bar, '.', BAR_CELLS);
	memset(bar, '#', full);
	bar[BAR_CELLS] = '\0';
	fprintf(progress->report, "\r\033[K%s [%s] %3.0f%%", progress->phase, bar, part * 100.0);
	if (part > 0.01)
		fprintf(progress->report, "  %.0f s left", seconds / part - seconds);
	fflush(progress->report);
}

void graph_progress_add(struct graph_progress *progress, uint64_t count)
{
	/* Relaxed: a count for the eye only, nothing is read because of it. */
	uint64_t done = atomic_fetch_add_explicit(&progress->done, count, memory_order_relaxed) + count;

	if (!progress->terminal || pthread_mutex_trylock(&progress->drawing))
		return;
	uint64_t now = now_ns();
	if (now - progress->shown_ns >= REDRAW_NS) {
		progress->shown_ns = now;
		draw_bar(progress, done, now - progress->began_ns);
	}
	pthread_mutex_unlock(&progress->drawing);
}

void graph_progress_end(struct graph_progress *progress)
{
	uint64_t done =
		atomic_load_explicit(&progress->done, memory_order_relaxed); /* its threads have joined */

	if (progress->report)
		fprintf(progress->report, "%s%s: %llu %s in %.1f s\n", progress->terminal ? "\r\033[K" : "",
			progress->phase, (unsigned long long)done, progress->unit,
			(double)(now_ns() - progress->began_ns) * 1e-9);
	progress->phase = NULL;
}

void graph_progress_note(struct graph_progress *progress, const char *format, ...)
{
	va_list arguments;

	if (!progress->notes)
		return;
	fprintf(progress->notes, "%sweir-graph: note: ", progress->terminal ? "\r\033[K" : "");
	va_start(arguments, format);
	vfprintf(progress->notes, format, arguments);
	va_end(arguments);
	fputc('\n', progress->notes);
}

void graph_progress_close(struct graph_progress *progress)
{
	if (progress->terminal && progress->phase)
		fputs("\r\033[K", progress->report);
	pthread_mutex_destroy(&progress->drawing);
}
