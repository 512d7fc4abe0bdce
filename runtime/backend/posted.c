/* SPDX-License-Identifier: BSD-3-Clause */
#include "posted.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weir/port.h>

enum { SECOND_NS = 1000000000 };

/* @number: of times that somebody was woken, which they wait to change; @workers: that may sleep */
static struct {
	u32 number;
	u32 workers;
} posted;

void weir_posted(void)
{
	weir_cpu_fence(); /* posted.P0: pairs with posted.P1: entries before who sleeps */
	weir_posted_more();
}

void weir_posted_more(void)
{
	if (!__atomic_load_n(&posted.workers,
			     __ATOMIC_RELAXED)) /* in weir_posted() posted.P0 has the order */
		return;
	__atomic_fetch_add(&posted.number, 1, __ATOMIC_RELAXED);
	syscall(SYS_futex, &posted.number, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

uint32_t weir_posted_begin(void)
{
	u32 number = __atomic_load_n(&posted.number, __ATOMIC_RELAXED);

	__atomic_fetch_add(&posted.workers, 1, __ATOMIC_RELAXED);
	weir_cpu_fence(); /* posted.P1: pairs with posted.P0: who sleeps before the entries */
	return number;
}

void weir_posted_wait(uint32_t number, uint64_t ns)
{
	struct timespec timeout = { .tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS) };

	syscall(SYS_futex, &posted.number, FUTEX_WAIT_PRIVATE, number, &timeout, NULL, 0);
}

void weir_posted_end(void)
{
	__atomic_fetch_sub(&posted.workers, 1, __ATOMIC_RELAXED);
}
