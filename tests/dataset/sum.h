/* SPDX-License-Identifier: BSD-3-Clause */
/* sum.h: arguments of a kernel that uses a mini-batch. */
#ifndef WEIR_TESTS_DATASET_SUM_H
#define WEIR_TESTS_DATASET_SUM_H

#include <weir/abi.h>

struct test_dataset_sum {
	weir_shared_u64 total;
};

struct test_dataset_sum_args {
	weir_addr rows;
	weir_addr lengths;
	weir_addr sum;
	u32 count;
	u32 row_bytes;
};

#endif
