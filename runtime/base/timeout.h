/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * base/timeout.h: how long a controller, or lanes, may still take.
 *
 * A machine that is suspended, or a virtual one whose host is busy, stands still with all that it waits for.
 * So what passes between two polls counts for a quarter of the limit at most: nothing is late that was not
 * polled four times.
 */
#ifndef WEIR_BASE_TIMEOUT_H
#define WEIR_BASE_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { WEIR_TIMEOUT_POLLS = 4 };

/** struct weir_timeout - of one thread; @polled_ns: when it polled last */
struct weir_timeout {
	uint64_t polled_ns;
	uint64_t left_ns;
	uint64_t step_ns;
};

/** weir_timeout_from() - @ms from @now_ns on, of any clock that never goes back */
static inline struct weir_timeout weir_timeout_from(uint64_t now_ns, unsigned ms)
{
	uint64_t ns = (uint64_t)ms * 1000000;

	return (struct weir_timeout){ now_ns, ns, ns / WEIR_TIMEOUT_POLLS + 1 };
}

/** weir_timeout_left() - another poll, at @now_ns; false: it took too long */
static inline bool weir_timeout_left(struct weir_timeout *timeout, uint64_t now_ns)
{
	uint64_t passed = now_ns - timeout->polled_ns;

	passed = passed < timeout->step_ns ? passed : timeout->step_ns;
	timeout->polled_ns = now_ns;
	if (passed >= timeout->left_ns)
		return false;
	timeout->left_ns -= passed;
	return true;
}

/** weir_timeout_to_join() - @ms from now, as pthread_timedjoin_np() has it */
static inline struct timespec weir_timeout_to_join(unsigned ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	return until;
}

#endif
