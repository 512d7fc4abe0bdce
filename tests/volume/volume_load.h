/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_load.h: what a client of a volume wrote, in a file that outlives it.
 *
 * Owns: of each block, which of its values a read may return; counts; latencies. The file is shared by one
 * writer and any number of readers of the volume, and by whoever comes after them.
 */
#ifndef WEIR_TESTS_VOLUME_LOAD_H
#define WEIR_TESTS_VOLUME_LOAD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LOAD_BLOCK = 4096,
	LOAD_BUCKETS_LOG2 = 4, /* of each power of two of microseconds */
	LOAD_BUCKETS = 32 << LOAD_BUCKETS_LOG2,
};

/**
 * struct load_block - values are 1, 2, ... of each block; 0: zeros, as it is at first
 * @acknowledged: the newest whose write has ended well
 * @limit: the newest that may have been written
 * @last: the newest that there was; none is used twice
 */
struct load_block {
	_Atomic uint32_t acknowledged;
	_Atomic uint32_t limit;
	_Atomic uint32_t last;
};

/** struct load_latency - requests by how long they took, since the last report */
struct load_latency {
	uint64_t count;
	uint64_t most_us;
	uint64_t buckets[LOAD_BUCKETS];
};

/**
 * struct load_state - the file
 * @acknowledged: requests to write, @reads: requests to read that ended well
 * @wrong: blocks that a read should not have returned
 * @verified: blocks that were read and compared by the last whole pass
 */
struct load_state {
	uint64_t blocks;
	_Atomic uint64_t acknowledged;
	_Atomic uint64_t reads;
	_Atomic uint64_t flushes;
	_Atomic uint64_t write_errors;
	_Atomic uint64_t read_errors;
	_Atomic uint64_t wrong;
	_Atomic uint64_t verified;
	struct load_latency read_latency;
	struct load_latency write_latency;
	struct load_block block[];
};

/** load_state_open() - map the file at @path, made for @blocks if it is not there (0: it must be); NULL */
struct load_state *load_state_open(const char *path, uint64_t blocks);
/** load_state_print() - one line of counts */
void load_state_print(const struct load_state *state);

/** load_fill() - value @value of block @vba */
void load_fill(void *block, uint64_t vba, uint32_t value);
/** load_value() - which value of block @vba this is; -1: none */
int64_t load_value(const void *block, uint64_t vba);

/** load_latency_add() - a request that took @us */
void load_latency_add(struct load_latency *latency, uint64_t us);
/** load_latency_print() - count, median, 99th percentile and most, of which each bucket's upper end is said;
 * then begin anew */
void load_latency_print(struct load_latency *latency, const char *what);

#endif
