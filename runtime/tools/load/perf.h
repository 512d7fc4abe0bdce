/* SPDX-License-Identifier: BSD-3-Clause */
/* perf.h: arguments of the load generator's kernels, shared by host and lanes. */
#ifndef WEIR_PERF_H
#define WEIR_PERF_H

#include <weir/abi.h>

enum {
	PERF_PER_POWER = 64, /* buckets of latency per power of two of nanoseconds */
	PERF_BUCKETS = 59 * PERF_PER_POWER,
	PERF_DISKS = 16, /* storages of one load */
	PERF_OCTAVES = 64,
	PERF_TERMS = 24,
	PERF_CLOCK_STEPS = 16, /* requests between two looks at the clock where none is timed */
};

/* perf_locations.kind */
enum { PERF_RANDOM, PERF_SEQUENTIAL, PERF_ZIPF };

/* perf_load.flags */
#define PERF_LATENCY 1u

/**
 * struct perf_zipf - what a lane needs to draw ranks of a Zipf law (places.h says how)
 * @share: of all draws, in 2^-64, those of ranks below 2^(k+1)
 * @octaves: of @share in use
 * @bits: bits of the permutation that scatters ranks; 2^bits is at least the number of places
 * @term: of the power series of r^-theta within an octave, in 2^-32
 */
struct perf_zipf {
	u64 share[PERF_OCTAVES];
	u32 octaves;
	u32 bits;
	u32 term[PERF_TERMS];
};

/**
 * struct perf_locations - where requests go
 * @spans: places there are
 * @seed: of the random sequence
 * @kind: PERF_RANDOM, PERF_SEQUENTIAL or PERF_ZIPF
 */
struct perf_locations {
	u64 spans;
	u64 seed;
	u32 kind;
	u32 padding;
	struct perf_zipf zipf;
};

/**
 * struct perf_results - what the lanes of a launch found; sums and buckets, read by the host afterwards
 * @start: the first lane's weir_clock_ns(), 0 before it; the device's clock may be another than the host's
 * @reads: that succeeded
 * @writes: likewise
 * @errors: requests that failed
 * @checked: blocks that were read and compared
 * @bad: of these, with a wrong word
 * @bad_byte: where one of them lies
 * @stuck: requests without an answer; their buffers are still the controller's
 * @status: one failed request's weir_status
 * @checksum: sum of all that was read
 * @read_latency: successful reads per bucket
 * @write_latency: likewise writes
 */
struct perf_results {
	weir_shared_u64 start;
	weir_shared_u64 reads;
	weir_shared_u64 writes;
	weir_shared_u64 errors;
	weir_shared_u64 checked;
	weir_shared_u64 bad;
	weir_shared_u64 bad_byte;
	weir_shared_u64 stuck;
	weir_shared_u64 status;
	weir_shared_u64 checksum;
	weir_shared_u64 read_latency[PERF_BUCKETS];
	weir_shared_u64 write_latency[PERF_BUCKETS];
};

/**
 * struct perf_load - what every timed load has
 * @indices: where requests go
 * @results: struct perf_results
 * @written: two bits per place, 32 places per weir_shared_u64: a write to it succeeded, a write to it failed;
 * of several storages one behind the other. 0: not noted
 * @runtime_ns: lanes start no more that long after the first one began
 * @lanes: that take part; the last block may have lanes beyond them
 * @reads_percent: share of reads; the rest writes
 * @flags: PERF_LATENCY: time every request
 */
struct perf_load {
	struct perf_locations indices;
	weir_addr results;
	weir_addr written;
	u64 runtime_ns;
	u64 lanes;
	u32 reads_percent;
	u32 flags;
};

/**
 * struct perf_args - one run over raw blocks, or the pass that fills them
 * @load: what to do
 * @disk: storages; lanes spread over them in equal groups
 * @disks: how many
 * @buffers: @window buffers of @stride_bytes per lane
 * @events: struct weir_event per buffer
 * @begins: u64 per buffer: when its request was submitted
 * @stride_bytes: bytes between two buffers
 * @first_lba: block where the range begins, on every storage
 * @chunks: filling: requests that cover the range
 * @last_lba: filling: block where the last of these begins
 * @pattern_seed: of what blocks hold
 * @blocks: length of a request
 * @unit_blocks: blocks from one place to the next
 * @window: requests a lane keeps in flight
 */
struct perf_args {
	struct perf_load load;
	struct weir_disk disk[PERF_DISKS];
	weir_addr buffers;
	weir_addr events;
	weir_addr begins;
	u64 stride_bytes;
	u64 first_lba;
	u64 chunks;
	u64 last_lba;
	u64 pattern_seed;
	u32 disks;
	u32 blocks;
	u32 unit_blocks;
	u32 window;
};

/**
 * struct perf_plain_args - the same copies between two memories, without weir
 * @load: what to do
 * @source: what stands for the storages
 * @buffers: of the load's lanes; each lane uses all of them in turn
 * @buffer_count: how many
 * @stride_bytes: bytes between two buffers
 * @unit_bytes: bytes from one place to the next
 * @bytes: length of a copy
 */
struct perf_plain_args {
	struct perf_load load;
	weir_addr source;
	weir_addr buffers;
	u64 buffer_count;
	u64 stride_bytes;
	u64 unit_bytes;
	u32 bytes;
	u32 padding;
};

/**
 * struct perf_cached_args - the same places, through a cache
 * @load: what to do
 * @writer: 8-byte words of the range; of a load that only reads, its array alone
 * @buffers: @words words per lane, which it writes from
 * @events: struct weir_event per lane, to read back with
 * @pattern_seed: of what the words of the range hold
 * @unit_words: words from one place to the next
 * @stride_bytes: from one lane's buffer to the next one's
 * @words: length of a request
 * @line_words: words of a cache line
 */
struct perf_cached_args {
	struct perf_load load;
	struct weir_writer writer;
	weir_addr buffers;
	weir_addr events;
	u64 pattern_seed;
	u64 unit_words;
	u64 stride_bytes;
	u32 words;
	u32 line_words;
};

/**
 * struct perf_words_args - memory filled with words
 * @address: first byte
 * @words: how many
 * @seed: of random ones
 * @array: where to copy them from, for perf_copy_array
 * @pattern: perf_copy_array: take perf_pattern() from @first_word on instead
 * @first_word: of the storage
 */
struct perf_words_args {
	weir_addr address;
	u64 words;
	u64 seed;
	struct weir_array array;
	u64 first_word;
	u32 pattern;
	u32 padding;
};

/**
 * struct perf_hit_args - the same reads of resident data through a cache and without one
 * @array: 8-byte words
 * @wide: the same bytes as 16-byte elements
 * @plain: the same bytes in plain memory
 * @words: how many
 * @results: struct perf_results
 * @rounds: turns of each lane's loop
 * @seed: of the places
 * @line_bytes: length of a cache line
 */
struct perf_hit_args {
	struct weir_array array;
	struct weir_array wide;
	weir_addr plain;
	u64 words;
	weir_addr results;
	u64 rounds;
	u64 seed;
	u64 line_bytes;
};

#endif
