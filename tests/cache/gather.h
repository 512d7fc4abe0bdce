/* SPDX-License-Identifier: BSD-3-Clause */
/* gather.h: what the kernel of gather_test does, and its arguments. */
#ifndef WEIR_TESTS_GATHER_H
#define WEIR_TESTS_GATHER_H

#include <weir/abi.h>

enum { GATHER_CURSOR, GATHER_LIST, GATHER_STRIDED };

/**
 * struct test_gather_args - each lane reads @count elements into its part of @to
 * @array: of elements of 4 or 8 bytes
 * @list: u64[lanes][count], the indices; of GATHER_STRIDED the first of each lane's, and @stride
 * @to: u64[lanes][count]
 */
struct test_gather_args {
	struct weir_array array;
	weir_addr list;
	weir_addr to;
	u64 count;
	u64 stride;
	u32 kind;
	u32 reserved;
};

WEIR_ASSERT_SIZE(struct test_gather_args, 112);

#endif
