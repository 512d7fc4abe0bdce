/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels/copy_list.h: arguments of the kernel that empties staging, or fills it. */
#ifndef WEIR_KERNEL_COPY_LIST_H
#define WEIR_KERNEL_COPY_LIST_H

#include <weir/abi.h>

/**
 * struct weir_kernel_move - bytes from one place to another, of any alignment
 * @to: where they go
 * @from: where they are
 * @bytes: how many
 */
struct weir_kernel_move {
	weir_addr to;
	weir_addr from;
	u64 bytes;
};

/**
 * struct weir_copy_list_args - a list of moves, none of which touches another's bytes
 * @copies: struct weir_kernel_move[@count]
 */
struct weir_copy_list_args {
	weir_addr copies;
	u32 count;
	u32 reserved;
};

#endif
