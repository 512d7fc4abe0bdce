/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate.h: what a cache does with a trace, on paper.
 *
 * Owns: a second, plain version of each policy of core/cache/policies.h, on lists and time stamps,
 * for one reader after the other; and two to compare with: exact LRU, and the best there is.
 * Knows the enum of the policies and nothing else of weir.
 */
#ifndef WEIR_POLICIES_SIMULATE_H
#define WEIR_POLICIES_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/policies.h>

/* Beyond enum weir_policy. */
enum {
	SIMULATE_LRU = WEIR_POLICY_COUNT, /* least recently used, exactly */
	SIMULATE_BEST =
		WEIR_POLICY_COUNT + 1, /* what is needed last goes (Belady, 1966): no policy does better */
};

/**
 * struct simulate_trace - lines in the order in which they are read
 * @keys: of each read, 1 or more
 * @count: reads
 */
struct simulate_trace {
	const uint64_t *keys;
	uint64_t count;
};

/** simulate_exact() - the simulator of @policy must agree with the cache, read by one lane, to the last miss
 */
bool simulate_exact(unsigned policy);

/**
 * simulate() - reads that miss, in a cache that is empty at first
 * @policy: enum weir_policy without the user's, or one of the above
 * @sets: number of sets; a key's set is key modulo sets
 * @ways: lines of each; 4 but for the two above
 * @trace: the reads
 * @misses: receives the count
 *
 * Return: 0, -EINVAL for a policy that it does not know, -ENOMEM.
 */
int simulate(unsigned policy, uint64_t sets, unsigned ways, struct simulate_trace trace, uint64_t *misses);

#endif
