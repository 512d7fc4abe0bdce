/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load.h: what lanes do for a mini-batch: submit the reads, and assemble the rows.
 *
 * Owns: the structures that host and lanes share, and the copy of one sample to its row.
 */
#ifndef WEIR_DATASET_LOAD_H
#define WEIR_DATASET_LOAD_H

#include <weir/abi.h>

/** struct weir_dataset_request - one read command */
struct weir_dataset_request {
	u64 lba;
	weir_addr buffer;
	weir_addr event; /* struct weir_event */
	u32 blocks;
	u32 disk;
};

WEIR_ASSERT_SIZE(struct weir_dataset_request, 32);

/**
 * struct weir_dataset_piece - a part of a row
 * @to: where the part begins
 * @from: where its bytes are once the events are done; not used if @bytes is 0
 * @events: struct weir_event[@event_count], of reads that must end before
 * @bytes: to copy
 * @fill_at: from @to on, where zeros begin
 * @fill: bytes of zeros
 * @row: of the batch, for errors
 * @disk: that the reads went to
 * @under_way: 0; 1 once a wait ended before its reads did: their memory and events are still the controller's
 */
struct weir_dataset_piece {
	weir_addr to;
	weir_addr from;
	weir_addr events;
	u32 event_count;
	u32 bytes;
	u32 fill_at;
	u32 fill;
	u32 row;
	u32 disk;
	u32 under_way;
	u32 reserved;
};

WEIR_ASSERT_SIZE(struct weir_dataset_piece, 56);

/**
 * struct weir_dataset_verdict - how the assembly goes
 * @failure: 0, or the first failure seen, status << 32 | row + 1
 * @started: 1 once the kernel runs: what was launched before it has ended
 */
struct weir_dataset_verdict {
	weir_shared_u64 failure;
	weir_shared_u32 started;
	u32 reserved;
};

/** struct weir_dataset_post_args - submit @count requests; @disks: struct weir_disk[] */
struct weir_dataset_post_args {
	weir_addr disks;
	weir_addr requests;
	u64 count;
};

/** struct weir_dataset_assemble_args - wait for and copy @count pieces */
struct weir_dataset_assemble_args {
	weir_addr disks;
	weir_addr pieces;
	u64 count;
	weir_addr verdict;
};

#endif
