/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h: see report.c. */
#ifndef EXPLORE_REPORT_H
#define EXPLORE_REPORT_H

#include <weir/types.h>

struct lane;
struct step;

/** report_failure() - explain run.failure; the last @last steps of each lane (200 at most) */
void report_failure(const char *token, u32 last);
/** report_step() - one line of a whole trace */
void report_step(const struct lane *lane, const struct step *step);

#endif
