/* SPDX-License-Identifier: BSD-3-Clause */
/* base/idle.h: how long a thread that polls sleeps between two polls that find nothing. */
#ifndef WEIR_BASE_IDLE_H
#define WEIR_BASE_IDLE_H

#include <stdint.h>

/** weir_idle_pause_ns() - how long to sleep after @idle_ns in which nothing came: a 64th of them, so that the
 * sleep is never long beside what was waited for anyway; a microsecond at least, a millisecond at most */
static inline uint64_t weir_idle_pause_ns(uint64_t idle_ns)
{
	const uint64_t least = 1000, most = 1000 * 1000;
	uint64_t ns = idle_ns / 64;

	return ns < least ? least : ns > most ? most : ns;
}

#endif
