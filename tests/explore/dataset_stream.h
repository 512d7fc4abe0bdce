/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dataset_stream.h: what the host's program and lanes of scenarios_dataset.k.c share: launches, which lanes
 * run one after the other, and what must be in the rows of a batch.
 */
#ifndef EXPLORE_DATASET_STREAM_H
#define EXPLORE_DATASET_STREAM_H

#include <weir/port.h>

#include "../../runtime/dataset/load.h"
#include "hooks.h"
#include "scenarios.h"

enum { DATASET_LAUNCHES = 16, DATASET_ROWS = 4 };

enum dataset_launch_kind { DATASET_POST, DATASET_ASSEMBLE, DATASET_CHECK, DATASET_END };

/**
 * struct dataset_row - what a row must have
 * @offset: byte of the medium where its sample begins
 * @length: of the sample
 * @label: of the sample
 * @failed: it could not be read: anything may be in the row
 */
struct dataset_row {
	u64 offset;
	u32 length;
	u32 label;
	u32 failed;
	u32 padding;
};

/** struct dataset_check_args - the program's own kernel: it compares @count rows with @row */
struct dataset_check_args {
	weir_addr rows;
	weir_addr lengths;
	weir_addr labels;
	u32 count;
	u32 row_bytes;
	struct dataset_row row[DATASET_ROWS];
};

struct dataset_launch {
	u32 kind;
	u32 padding;
	union {
		struct weir_dataset_post_args post;
		struct weir_dataset_assemble_args assemble;
		struct dataset_check_args check;
	} args;
};

/**
 * struct dataset_stream - launches in order
 * @launched: by the host
 * @ended: lanes that are done with a launch, of all launches
 */
struct dataset_stream {
	weir_shared_u32 launched;
	weir_shared_u32 ended;
	struct dataset_launch launches[DATASET_LAUNCHES];
};

/* Eight bytes of the medium from byte @at on. */
static inline __attribute__((always_inline)) u64 dataset_bytes_at(u64 at)
{
	u64 word = at / 8, next = word + 1;
	u32 shift = (u32)(at & 7) * 8;
	u64 low = scenario_word(word / SCENARIO_BLOCK_WORDS, 0, word % SCENARIO_BLOCK_WORDS),
	    high = scenario_word(next / SCENARIO_BLOCK_WORDS, 0, next % SCENARIO_BLOCK_WORDS);

	return shift ? low >> shift | high << (64 - shift) : low;
}

/* What a row has in its eight bytes from @at on: its sample, and zeros behind it. */
static inline __attribute__((always_inline)) u64 dataset_row_word(const struct dataset_row *row, u32 at)
{
	u32 left = row->length > at ? row->length - at : 0;
	u64 word = dataset_bytes_at(row->offset + at);

	return left >= 8 ? word : word & (((u64)1 << left * 8) - 1);
}

/* Row @index of a batch, its length and its label, as whoever calls it sees them. */
static inline __attribute__((always_inline)) void dataset_check_row(const struct dataset_check_args *args,
								    u32 index)
{
	const struct dataset_row *row = &args->row[index];
	weir_addr begin = args->rows + (u64)index * args->row_bytes;

	explore_expect("length of a sample", weir_data_load_u32(args->lengths + index * 4), row->length);
	explore_expect("label of a sample", weir_data_load_u32(args->labels + index * 4), row->label);
	for (u32 at = 0; !row->failed && at < args->row_bytes; at += 8)
		explore_expect("eight bytes of a row", weir_data_load_u64(begin + at),
			       dataset_row_word(row, at));
}

#endif
