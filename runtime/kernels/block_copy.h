/* SPDX-License-Identifier: BSD-3-Clause */
/* block_copy.h: arguments of the runtime's own I/O kernel. */
#ifndef WEIR_KERNEL_BLOCK_COPY_H
#define WEIR_KERNEL_BLOCK_COPY_H

#include <weir/abi.h>

/**
 * struct weir_block_copy_args - one flush, or a range of blocks in commands of @step
 * @opcode: NVME_OPCODE_READ, _WRITE or _FLUSH
 * @step: blocks per command
 * @buffer: device memory of all blocks
 * @events: struct weir_event, one per lane
 * @result: u32, the first error
 */
struct weir_block_copy_args {
	struct weir_disk disk;
	u64 lba;
	u64 blocks;
	u32 opcode;
	u32 step;
	weir_addr buffer;
	weir_addr events;
	weir_addr result;
};

#endif
