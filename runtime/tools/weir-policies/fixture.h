/* SPDX-License-Identifier: BSD-3-Clause */
/* tools/weir-policies/fixture.h: a device and a storage whose lines are known, on which traces are replayed. */
#ifndef WEIR_POLICIES_BED_H
#define WEIR_POLICIES_BED_H

#include <stdint.h>

#include <weir/weir.h>

#include "trace.h"

struct bed {
	struct weir_context *context;
	struct weir_storage *storage;
	uint64_t verdict;
	uint64_t span;
};

/** struct bed_options - @context: how to open it; @backend: its name; @span: lines of the storage */
struct bed_options {
	const char *backend;
	const struct weir_context_options *context;
	uint64_t span;
};

/** struct bed_cache - @lines: of 512 bytes, a multiple of 4; @policy; @lanes: that share the reads */
struct bed_cache {
	uint64_t lines;
	enum weir_policy policy;
	uint32_t lanes;
};

/** bed_open() - 0, or a negative errno; weir_last_error() then says why. bed_close() in either case */
int bed_open(struct bed *bed, const struct bed_options *options);
/** bed_close() - as weir_context_close() */
int bed_close(struct bed *bed);

/** bed_replay() - read @trace through a new cache; @misses receives how many reads missed. -EBADMSG: wrong data */
int bed_replay(struct bed *bed, const struct bed_cache *cache, const struct trace *trace, uint64_t *misses);

#endif
