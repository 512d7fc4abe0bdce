/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policies.h: the replacement policies of a cache, by number.
 *
 * Owns: their numbers, for host and lanes. What each does: core/cache/policies.h and
 * docs/cache-policies.md.
 */
#ifndef WEIR_POLICIES_H
#define WEIR_POLICIES_H

/** enum weir_policy - which line of a full set makes room */
enum weir_policy {
	WEIR_POLICY_CLOCK = 0,     /* second chance */
	WEIR_POLICY_LRU = 1,       /* least recently used, to the set's last miss */
	WEIR_POLICY_FIFO = 2,      /* first in, first out */
	WEIR_POLICY_RANDOM = 3,    /* any */
	WEIR_POLICY_DIRECT = 4,    /* each line has one place it can be in */
	WEIR_POLICY_SIEVE = 5,     /* SIEVE */
	WEIR_POLICY_FREQUENCY = 6, /* admission by frequency, as TinyLFU does it */
	WEIR_POLICY_USER = 7,      /* the header given to the build */
	WEIR_POLICY_COUNT = 8
};

#endif
