/* SPDX-License-Identifier: BSD-3-Clause */
/* fio_kernels.h: arguments of the kernels that copy, write and check what fio writes and checks. */
#ifndef WEIR_TEST_FIO_KERNELS_H
#define WEIR_TEST_FIO_KERNELS_H

#include <weir/abi.h>

/**
 * struct fio_args - both storages, as blocks and as 8-byte words
 * @from, @to: of equal block size
 * @source, @target: the same through a cache
 * @blocks: of each
 * @words: of each
 * @unit_bytes: of a request of fio's: each word of it holds the offset where it begins
 * @buffers: a block per lane
 * @events: struct weir_event per lane
 * @wrong: weir_shared_u64: failed requests, or words that are not what fio writes
 */
struct fio_args {
	struct weir_disk from;
	struct weir_disk to;
	struct weir_array source;
	struct weir_writer target;
	u64 blocks;
	u64 words;
	u64 unit_bytes;
	weir_addr buffers;
	weir_addr events;
	weir_addr wrong;
};

#endif
