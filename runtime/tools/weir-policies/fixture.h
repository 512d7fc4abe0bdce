/* SPDX-License-Identifier: BSD-3-Clause */
/* tools/weir-policies/fixture.h: a device and a storage whose lines are known, on which traces are replayed.
 */
#ifndef WEIR_POLICIES_FIXTURE_H
#define WEIR_POLICIES_FIXTURE_H

#include <stdint.h>

#include <weir/weir.h>

#include "trace.h"

struct fixture {
	struct weir_context *context;
	struct weir_storage *storage;
	uint64_t verdict;
	uint64_t span;
};

/** struct fixture_options - @context: how to open it; @backend: its name; @span: lines of the storage */
struct fixture_options {
	const char *backend;
	const struct weir_context_options *context;
	uint64_t span;
};

/** struct fixture_cache - @lines: of 512 bytes, a multiple of 4; @policy; @lanes: that share the reads */
struct fixture_cache {
	uint64_t lines;
	enum weir_policy policy;
	uint32_t lanes;
};

/** fixture_open() - 0, or a negative errno; weir_last_error() then says why. fixture_close() in either case
 */
int fixture_open(struct fixture *fixture, const struct fixture_options *options);
/** fixture_close() - as weir_context_close() */
int fixture_close(struct fixture *fixture);

/** fixture_replay() - read @trace through a new cache; @misses receives how many reads missed. -EBADMSG:
 * wrong data */
int fixture_replay(struct fixture *fixture, const struct fixture_cache *cache, const struct trace *trace,
		   uint64_t *misses);

#endif
