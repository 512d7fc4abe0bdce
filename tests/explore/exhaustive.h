/* SPDX-License-Identifier: BSD-3-Clause */
/* exhaustive.h: walking through all schedules of a case, one run each. */
#ifndef EXPLORE_EXHAUSTIVE_H
#define EXPLORE_EXHAUSTIVE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/types.h>

/** exhaustive_start() - begin with the first schedule of at most @preemption_bound preemptions */
void exhaustive_start(u32 preemption_bound);
/** exhaustive_next() - turn to the next schedule; false if that was the last */
bool exhaustive_next(void);
/** exhaustive_token() - the schedule just run, as text */
void exhaustive_token(char *text, size_t bytes);
/** exhaustive_replay() - run exactly the schedule of such a text */
bool exhaustive_replay(const char *text);

#endif
