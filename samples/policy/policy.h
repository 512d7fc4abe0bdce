/* SPDX-License-Identifier: BSD-3-Clause */
/* policy.h: arguments of the sample's kernel. */
#ifndef POLICY_SAMPLE_H
#define POLICY_SAMPLE_H

#include <weir/abi.h>

/* Words of the stream from one element that is wanted to the next: each on a line of its own. */
enum { POLICY_STRIDE = 64 };

/**
 * struct policy_args - look things up in a small array while a large one goes by
 * @index: u64[]: read at random
 * @stream: u64[]: every POLICY_STRIDE-th, from beginning to end
 * @rounds: each lane reads so many elements of both
 * @sum: weir_shared_u64: of all that was read
 */
struct policy_args {
	struct weir_array index;
	struct weir_array stream;
	u64 rounds;
	weir_addr sum;
};

#endif
