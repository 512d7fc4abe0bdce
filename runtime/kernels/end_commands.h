/* SPDX-License-Identifier: BSD-3-Clause */
/* end_commands.h: arguments of the kernel that ends what a storage's controller has left. */
#ifndef WEIR_KERNEL_END_COMMANDS_H
#define WEIR_KERNEL_END_COMMANDS_H

#include <weir/abi.h>

/**
 * struct weir_end_commands_args - one lane, and queue pairs that no controller has any more
 * @queues: struct weir_queue[queue_count]
 * @status: what the commands in them end with
 */
struct weir_end_commands_args {
	weir_addr queues;
	u32 queue_count;
	u32 status;
};

#endif
