/* SPDX-License-Identifier: BSD-3-Clause */
/* storage.h: arguments of the virtual machine tests' kernel. What a storage holds is test_word() of its
 * 8-byte words. */
#ifndef WEIR_TESTS_VM_STORAGE_H
#define WEIR_TESTS_VM_STORAGE_H

#include "../rig/kernels.h"

/* What a buffer holds before something is read into it. */
#define VM_POISON ((u64)0xdeadbeefcafef00du)

/**
 * struct vm_storage_args - write blocks, or read and compare them
 * @disk: storage
 * @first: first block
 * @blocks: in all
 * @per_request: of each request but the last
 * @seed: of the contents
 * @buffers: @span bytes for each lane, from @offset on
 * @events: one for each lane
 * @statuses: u32 for each lane: its first error
 * @write: write; else read
 * @flush: having written, flush
 * @again: first wait for what had status WEIR_E_TIMEOUT
 */
struct vm_storage_args {
	struct weir_disk disk;
	u64 first;
	u64 blocks;
	u64 per_request;
	u64 seed;
	weir_addr buffers;
	u64 span;
	u64 offset;
	weir_addr events;
	weir_addr statuses;
	weir_addr verdict;
	u64 write;
	u64 flush;
	u64 again;
};

#endif
