/* SPDX-License-Identifier: BSD-3-Clause */
/* perf.h: arguments of the load generator's kernel, shared by host and lanes. */
#ifndef WEIR_PERF_H
#define WEIR_PERF_H

#include <weir/abi.h>

/* Latency buckets: four per power of two of nanoseconds. */
enum { PERF_BUCKETS = 256 };

/**
 * struct perf_args - one run
 * @disk: what is read
 * @buffers: @blocks_per_read blocks per lane, page-aligned
 * @events: struct weir_event per lane
 * @histogram: u64 per bucket
 * @reads: u64: completed reads
 * @errors: u64: failed ones
 * @spans: reads fit this many places
 * @stride_bytes: bytes between two lanes' buffers
 * @start: u64: the first lane's weir_clock_ns(), 0 before it; the device's clock may be another than the host's
 * @runtime_ns: lanes start no more that long after it
 * @lanes: reads in flight; the last block may have lanes beyond them
 * @seed: of the random sequence
 * @blocks_per_read: length of a read
 * @sequential: lanes read one after the other instead of anywhere
 */
struct perf_args {
	struct weir_disk disk;
	weir_addr buffers;
	weir_addr events;
	weir_addr histogram;
	weir_addr reads;
	weir_addr errors;
	weir_addr start;
	u64 spans;
	u64 stride_bytes;
	u64 runtime_ns;
	u64 lanes;
	u64 seed;
	u32 blocks_per_read;
	u32 sequential;
};

#endif
