/* SPDX-License-Identifier: BSD-3-Clause */
/* policy.h: arguments of the sample's kernel. */
#ifndef POLICY_SAMPLE_H
#define POLICY_SAMPLE_H

#include <weir/abi.h>

/* Words of the stream from one element that is wanted to the next: each on a line of its own. */
enum { POLICY_STRIDE = 64 };

/* What element @i of an array holds, of the two each @seed another one. */
WEIR_FN u64 policy_word(u64 seed, u64 i)
{
	return seed + i * i;
}

/* A well-mixed word (the finaliser of MurmurHash3). */
WEIR_FN u64 policy_mix(u64 x)
{
	x = (x ^ (x >> 33)) * (u64)0xff51afd7ed558ccdu;
	x = (x ^ (x >> 33)) * (u64)0xc4ceb9fe1a85ec53u;
	return x ^ (x >> 33);
}

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
