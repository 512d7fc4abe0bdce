/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stepped_clock.h: while a case wants it, the clock of its thread goes on by a step each time it is read, and
 * not otherwise: who waits has waited for as long as it has looked. For one file of a program.
 */
#ifndef WEIR_TESTS_STEPPED_CLOCK_H
#define WEIR_TESTS_STEPPED_CLOCK_H

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { EACH_READING_MS = 50, BEGIN_S = 1000 };

#define NS_OF_A_MS UINT64_C(1000000)

static __thread uint64_t step_ns; /* 0: the system's clock */
static __thread uint64_t passed_ns;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_MONOTONIC || !step_ns)
		return (int)syscall(SYS_clock_gettime, clock, time);
	passed_ns += step_ns;
	time->tv_sec = BEGIN_S + (time_t)(passed_ns / (1000 * NS_OF_A_MS));
	time->tv_nsec = (long)(passed_ns % (1000 * NS_OF_A_MS));
	return 0;
}

static inline void clock_begins(void)
{
	passed_ns = 0;
	step_ns = EACH_READING_MS * NS_OF_A_MS;
}

/** it_took() - @ms since then, and a few readings of the clock more; it is the system's again */
static inline void it_took(uint64_t ms)
{
	step_ns = 0;
	assert_in_range(passed_ns / NS_OF_A_MS, ms, 2 * ms);
}

#endif
