/* SPDX-License-Identifier: BSD-3-Clause */
/* lifetime.h: arguments of the kernels that use storages and caches, open or closed. */
#ifndef WEIR_TESTS_LIFETIME_H
#define WEIR_TESTS_LIFETIME_H

#include <weir/abi.h>

/**
 * struct lifetime_put_args - @seed + i into element i of each writer
 * @rests: iterations before the first of it
 */
struct lifetime_put_args {
	struct weir_writer writer[2];
	u32 writer_count;
	u32 rests;
	u64 count;
	u64 seed;
};

/**
 * struct lifetime_use_args - one lane uses what may be closed
 * @buffer: a line's bytes and a block's
 * @event: struct weir_event
 * @statuses: u32[4]: of reading a line, of writing a whole one, of reading a block; and element 0's low word
 */
struct lifetime_use_args {
	struct weir_writer writer;
	struct weir_disk disk;
	weir_addr buffer;
	weir_addr event;
	weir_addr statuses;
};

/**
 * struct lifetime_left_args - one lane starts a read of the first block and leaves it, or looks for one that
 * was left
 * @buffer: a block's; behind it two struct weir_event, of this read and of others
 * @statuses: u32[2]: 1 if the read has ended, and 1 more if another is refused since the storage is closed;
 * how the first has. 0: the lane starts it
 * @sees: and leaves when it has seen that it has ended, of which it takes no notice
 */
struct lifetime_left_args {
	struct weir_disk disk;
	weir_addr buffer;
	weir_addr statuses;
	u64 sees;
};

/**
 * struct lifetime_zero_args - one lane zeroes the first block
 * @event: struct weir_event
 * @status: u32
 */
struct lifetime_zero_args {
	struct weir_disk disk;
	weir_addr event;
	weir_addr status;
};

/**
 * struct lifetime_wait_args - one lane waits for the host, then reads
 * @array: of which element 0 is read; without lines nothing is
 * @gate: u32 that the host stores 1 to
 * @out: u32 that is 1 when the lane has read
 */
struct lifetime_wait_args {
	struct weir_array array;
	weir_addr gate;
	weir_addr out;
};

#endif
