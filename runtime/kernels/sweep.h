/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep.h: arguments of the kernel that flushes or drops lines for the host. */
#ifndef WEIR_KERNEL_SWEEP_H
#define WEIR_KERNEL_SWEEP_H

#include <weir/abi.h>

/**
 * struct weir_sweep_args - all lanes share the range
 * @lines: struct weir_lines
 * @first_key: first
 * @end_key: first behind it
 * @note: struct weir_sweep_note, zeroed
 * @kind: WEIR_SWEEP_...
 */
struct weir_sweep_args {
	weir_addr lines;
	u64 first_key;
	u64 end_key;
	weir_addr note;
	u32 kind;
	u32 reserved;
};

#endif
