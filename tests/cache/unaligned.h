/* SPDX-License-Identifier: BSD-3-Clause */
/* unaligned.h: what the kernel of unaligned_test does, and its arguments. */
#ifndef WEIR_TESTS_UNALIGNED_H
#define WEIR_TESTS_UNALIGNED_H

#include <weir/abi.h>

enum unaligned_kind { UNALIGNED_GET, UNALIGNED_RUN, UNALIGNED_TRY, UNALIGNED_READ, UNALIGNED_KINDS };

/**
 * struct test_unaligned_args - lanes read elements [@first, @end), @each at a time
 * @array: of elements of @width bytes, 8 at most
 * @to: u64 per element of the array
 * @lengths: u64 per element: of a run that began there, its length
 */
struct test_unaligned_args {
	struct weir_unaligned array;
	weir_addr to;
	weir_addr lengths;
	u64 first;
	u64 end;
	u64 each;
	u32 width;
	u32 kind;
};

WEIR_ASSERT_SIZE(struct test_unaligned_args, 120);

#endif
