/* SPDX-License-Identifier: BSD-3-Clause */
/* checkpoint.h: arguments of the kernels that save and load tensors, shared by host and lanes. */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "../common/span.h"

/* Tensors are whole units of 16 bytes. */
enum { CHECKPOINT_UNIT = 16 };

/**
 * struct checkpoint_tensor - a tensor in device memory
 * @address: its first byte, a multiple of CHECKPOINT_UNIT
 * @begin: of a checkpoint's data, where it begins
 * @bytes: its length
 */
struct checkpoint_tensor {
	weir_addr address;
	u64 begin;
	u64 bytes;
};

/**
 * struct checkpoint_args - all tensors, and where their data goes or comes from
 * @span: the storage
 * @tensors: struct checkpoint_tensor[@count], side by side: each begins where the one before ends
 * @count: of these
 * @at: byte of the storage where the data begins
 * @bytes: length of the data
 * @waves: that take part
 * @buffers: a piece of the storage for each of them
 * @events: struct weir_event of each lane
 * @plain: device memory for the data, in place of the storage; or 0
 * @sum: weir_shared_u64: of all words, by their places
 * @seed: of the tensors' numbers
 */
struct checkpoint_args {
	struct sample_span span;
	weir_addr tensors;
	u64 count;
	u64 at;
	u64 bytes;
	u64 waves;
	weir_addr buffers;
	weir_addr events;
	weir_addr plain;
	weir_addr sum;
	u64 seed;
};

#endif
