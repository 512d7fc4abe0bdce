/* SPDX-License-Identifier: BSD-3-Clause */
/* What a person sees while a long job runs: a bar on a terminal, one line per phase elsewhere. */
#ifndef WEIR_TOOLS_GRAPH_PROGRESS_H
#define WEIR_TOOLS_GRAPH_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/**
 * struct graph_progress - the phase under way
 *
 * One thread begins and ends phases; any thread may add. @shown_ns is guarded by @drawing.
 */
struct graph_progress {
	FILE *report; /* phases; NULL: none are shown */
	FILE *notes;  /* things that must not be silent; NULL only when called as a library */
	bool terminal;
	const char *phase;
	const char *unit;
	uint64_t total;
	uint64_t began_ns;
	uint64_t shown_ns;
	_Atomic uint64_t done;
	pthread_mutex_t drawing;
};

/** graph_progress_init() - phases go to @report, notes to @notes; either may be NULL */
void graph_progress_init(struct graph_progress *progress, FILE *report, FILE *notes);

/** graph_progress_begin() - start a phase of @total @unit (0: unknown) */
void graph_progress_begin(struct graph_progress *progress, const char *phase, uint64_t total,
			  const char *unit);

/** graph_progress_add() - @count more are done */
void graph_progress_add(struct graph_progress *progress, uint64_t count);

/** graph_progress_end() - the phase is complete: say how much and how long */
void graph_progress_end(struct graph_progress *progress);

/** graph_progress_note() - one sentence the user must see even when phases are not shown */
void graph_progress_note(struct graph_progress *progress, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** graph_progress_close() - wipe an unfinished bar; nothing may be added any more */
void graph_progress_close(struct graph_progress *progress);

#endif
