/* SPDX-License-Identifier: BSD-3-Clause */
/* poison.h: arguments of the self-test's kernels, shared by host and lanes. */
#ifndef WEIR_TRY_POISON_H
#define WEIR_TRY_POISON_H

#include <weir/abi.h>

/**
 * struct try_poison_results - sums over all lanes, read by the host afterwards
 * @done: requests that succeeded; @errors: that failed; @stuck: without an answer, whose buffers are the
 * controller's still
 * @status: of one that failed
 * @bad: words that are not what was written; @stale: of these, such as still hold the poison
 * @where: byte of one of them
 */
struct try_poison_results {
	weir_shared_u64 done;
	weir_shared_u64 errors;
	weir_shared_u64 stuck;
	weir_shared_u64 status;
	weir_shared_u64 bad;
	weir_shared_u64 stale;
	weir_shared_u64 where;
};

/**
 * struct try_poison_args - lanes write requests in a row, or read them
 * @disk: the storage
 * @buffers: @stride_bytes per lane; @events: struct weir_event per lane; @results: struct try_poison_results
 * @first_lba: where the first request begins; @requests: how many follow one another
 * @seed: of what blocks hold; @poison: of what buffers hold before a read
 * @blocks: of a request; @lanes: that take part
 */
struct try_poison_args {
	struct weir_disk disk;
	weir_addr buffers;
	weir_addr events;
	weir_addr results;
	u64 stride_bytes;
	u64 first_lba;
	u64 requests;
	u64 seed;
	u64 poison;
	u32 blocks;
	u32 lanes;
};

#endif
