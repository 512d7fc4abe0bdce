/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h: which blocks are loaded, in which order. */
#ifndef KVCACHE_TRACE_H
#define KVCACHE_TRACE_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct kvcache_trace - blocks, request after request
 * @blocks: numbers within the file
 * @count: of them
 * @requests: how many requests they belong to
 */
struct kvcache_trace {
	uint64_t *blocks;
	size_t count;
	size_t requests;
};

/**
 * kvcache_trace_make() - a trace out of a seed
 * @seed: any number
 * @blocks: the file has
 * @count: wanted, about
 *
 * Requests of 16 to 1,024 blocks, each of a conversation: its pages are spread over the file, and the pages
 * that begin many conversations (a system's prompt) are the same. Half of the requests are for one
 * conversation in eight.
 */
int kvcache_trace_make(struct kvcache_trace *trace, uint64_t seed, uint64_t blocks, uint64_t count,
		       char *error);

/**
 * kvcache_trace_read() - a trace from a file
 * @path: text; a line per request, of block numbers and ranges such as 7 9 100-131; lines that begin with #
 * are left out
 * @blocks: the file has
 */
int kvcache_trace_read(struct kvcache_trace *trace, const char *path, uint64_t blocks, char *error);

#endif
