/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_clock.h: a program's clock is the system's and what passes when a case says so; where nothing else
 * may pass, it is stopped. For one file of a program.
 */
#ifndef WEIR_TESTS_VOLUME_CLOCK_H
#define WEIR_TESTS_VOLUME_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "volume_rig.h"

#define S_NS ((uint64_t)1000000000)

static uint64_t ahead_ns;   /* of the system's clock */
static uint64_t stopped_ns; /* what the system's says; 0: it goes on */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, time);
	uint64_t stopped = __atomic_load_n(&stopped_ns, __ATOMIC_SEQ_CST), now;

	if (clock != CLOCK_MONOTONIC)
		return result;
	now = stopped ? stopped : (uint64_t)time->tv_sec * S_NS + (uint64_t)time->tv_nsec;
	now += __atomic_load_n(&ahead_ns, __ATOMIC_SEQ_CST);
	time->tv_sec = (time_t)(now / S_NS);
	time->tv_nsec = (long)(now % S_NS);
	return result;
}

/* A machine that stands still passes no time of a case's. Nothing that waits goes on meanwhile. */
static inline void stop_clock(bool stops)
{
	struct timespec now = { .tv_sec = 0 };

	if (stops)
		syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	__atomic_store_n(&stopped_ns, (uint64_t)now.tv_sec * S_NS + (uint64_t)now.tv_nsec, __ATOMIC_SEQ_CST);
}

static inline void pass(uint64_t ns)
{
	__atomic_fetch_add(&ahead_ns, ns, __ATOMIC_SEQ_CST);
}

static pthread_t tested; /* this program's own thread */
static unsigned laps;    /* of the client's thread, which naps between two */

int nanosleep(const struct timespec *time, struct timespec *left)
{
	if (!pthread_equal(pthread_self(), tested))
		__atomic_fetch_add(&laps, 1, __ATOMIC_SEQ_CST);
	return (int)syscall(SYS_nanosleep, time, left);
}

/* So that the client's thread has seen what time it is: once more, and to the end. */
static inline void await_lap(struct rig *rig)
{
	unsigned before = __atomic_load_n(&laps, __ATOMIC_SEQ_CST);

	while (__atomic_load_n(&laps, __ATOMIC_SEQ_CST) - before < 2)
		rig_poll(rig);
}

#endif
