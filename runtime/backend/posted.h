/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * posted.h: workers of the cpu backend, all of whose lanes wait, sleep until a thread of the host has posted
 * completions.
 *
 * Owns: that no completion is lost between the lanes' last poll and their worker's sleep. The other way
 * round: transport/sleeper.h.
 */
#ifndef WEIR_RUNTIME_POSTED_H
#define WEIR_RUNTIME_POSTED_H

#include <stdint.h>

/** weir_posted() - completions were posted; any thread, behind the last of them */
void weir_posted(void);

/** weir_posted_more() - the same, where weir_posted() follows before the thread has nothing more to do: costs
 * a load, and may miss a worker that only just sleeps */
void weir_posted_more(void);

/** weir_posted_begin() - whoever posts from now on wakes the calling worker, whose lanes then poll once more.
 * Return: a number for weir_posted_wait() */
uint32_t weir_posted_begin(void);

/** weir_posted_wait() - sleep, @ns at most, unless something was posted since weir_posted_begin() gave
 * @number */
void weir_posted_wait(uint32_t number, uint64_t ns);

/** weir_posted_end() - behind each weir_posted_begin() */
void weir_posted_end(void);

#endif
