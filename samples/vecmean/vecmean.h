/* SPDX-License-Identifier: BSD-3-Clause */
/* vecmean.h: arguments of the kernels that sum a vector up, shared by host and lanes. */
#ifndef VECMEAN_H
#define VECMEAN_H

#include <weir/abi.h>

/**
 * struct vecmean_sum - what one lane summed up
 * @low, @high: u64: sums of the lower and of the upper halves of its elements, so that none
 *              overflows before 2^32 of them
 * @sum, @rest: f32: four sums, and what rounding took from each (Kahan)
 */
struct vecmean_sum {
	u64 low;
	u64 high;
	float sum[4];
	float rest[4];
};

WEIR_ASSERT_SIZE(struct vecmean_sum, 48);

/**
 * struct vecmean_args - one pass over a vector
 * @wide: it, as elements of 16 bytes
 * @plain: the same in device memory (vecmean_plain_...)
 * @line_bytes: what a wave takes at once
 * @results: struct vecmean_sum per lane
 */
struct vecmean_args {
	struct weir_array wide;
	weir_addr plain;
	u64 line_bytes;
	weir_addr results;
};

#endif
