/* SPDX-License-Identifier: BSD-3-Clause */
/* beyond.h: arguments of the kernels of beyond.k.c. */
#ifndef WEIR_TESTS_SAMPLES_BEYOND_H
#define WEIR_TESTS_SAMPLES_BEYOND_H

#include <weir/abi.h>

/**
 * struct test_beyond_args - @bytes from byte @at of what a sample makes
 * @args: the sample's own arguments, in device memory
 * @from: where byte 0 of its input would be
 * @to: where they go
 * @scatter: of a checkpoint, to the tensors
 */
struct test_beyond_args {
	weir_addr args;
	u64 at;
	u64 bytes;
	weir_addr from;
	weir_addr to;
	u32 scatter;
	u32 reserved;
};

#endif
