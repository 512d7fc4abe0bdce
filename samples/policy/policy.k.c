/* SPDX-License-Identifier: BSD-3-Clause */
/* Every element of a stream is looked up in an index: the index is what the cache should keep. */
#include <weir/array.h>

#include "policy.h"

WEIR_KERNEL(policy_lookups, struct policy_args)
{
	u64 sum = 0;

	for (u64 round = 0; round < args->rounds; round++) {
		u64 at = round * weir_threads() + weir_thread();

		sum += weir_array_get_u64(&args->stream, at * POLICY_STRIDE % args->stream.count);
		sum += weir_array_get_u64(&args->index, policy_mix(at) % args->index.count);
	}
	/* relaxed: a sum, read by the host after the launch */
	(void)weir_add_u64_relaxed_dev(weir_at(args->sum, weir_shared_u64, 0), sum);
}
