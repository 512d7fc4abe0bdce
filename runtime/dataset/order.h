/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order.h: which sample comes at which position of an epoch, and which positions are a rank's.
 *
 * Owns: the orders (enum weir_dataset_order), from (seed, epoch) alone, and the division among ranks. Does no
 * I/O. The chunks of a group are shuffled together: the group is the paper's set of chunks in the cache.
 */
#ifndef WEIR_DATASET_ORDER_H
#define WEIR_DATASET_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include <weir/dataset.h>

#include "interleave.h"

/**
 * struct weir_dataset_epoch - the order of one epoch
 * @chunk_first: [chunks + 1], the directory's
 * @group_first: [groups + 1] position where each group begins; NULL in the order `full`
 * @group: that is in @samples; UINT64_MAX: none
 */
struct weir_dataset_epoch {
	struct weir_dataset_sequence_options options;
	uint64_t samples;
	const uint32_t *chunk_first;
	uint64_t chunks;
	struct weir_dataset_permute permute;    /* of samples: `full` */
	struct weir_dataset_interleave chunked; /* the other orders */
	struct weir_dataset_interleave next;    /* of the next epoch */
	uint64_t groups;
	uint64_t *group_first;
	uint64_t group;
	uint32_t *group_samples;
	uint64_t group_room;
	uint32_t *cursors; /* [2 * buffer_chunks], work space */
};

/** weir_dataset_epoch_open() - begin; @options.buffer_chunks is set. Return: 0 or -ENOMEM with a sentence */
int weir_dataset_epoch_open(struct weir_dataset_epoch *epoch,
			    const struct weir_dataset_sequence_options *options,
			    const struct weir_dataset_directory *directory);

/** weir_dataset_epoch_at() - number of the sample at @position; UINT64_MAX: no memory */
uint64_t weir_dataset_epoch_at(struct weir_dataset_epoch *epoch, uint64_t position);

/** weir_dataset_epoch_group() - the group of @position */
uint64_t weir_dataset_epoch_group(const struct weir_dataset_epoch *epoch, uint64_t position);

/** weir_dataset_epoch_chunk() - chunk @index of group @group; UINT64_MAX: it has fewer */
uint64_t weir_dataset_epoch_chunk(const struct weir_dataset_epoch *epoch, uint64_t group, uint64_t index);

/** weir_dataset_epoch_use() - the group that chunk @chunk is in, in the order @order of this epoch or the
 * next */
uint64_t weir_dataset_epoch_use(const struct weir_dataset_epoch *epoch,
				const struct weir_dataset_interleave *order, uint64_t chunk);

/** weir_dataset_epoch_close() - free what it points to */
void weir_dataset_epoch_close(struct weir_dataset_epoch *epoch);

/** struct weir_dataset_segment - positions begin .. end - 1 */
struct weir_dataset_segment {
	uint64_t begin;
	uint64_t end;
};

/** struct weir_dataset_share - positions that are one rank's, in order */
struct weir_dataset_share {
	struct weir_dataset_segment *segments;
	size_t count;
};

/** weir_dataset_share_count() - positions in it */
uint64_t weir_dataset_share_count(const struct weir_dataset_share *share);

/** weir_dataset_share_add() - append; joined with the last segment where they touch. Return: 0 or -ENOMEM
 * with a sentence */
int weir_dataset_share_add(struct weir_dataset_share *share, struct weir_dataset_segment segment);

/** weir_dataset_share_cut() - append to @to the positions number @begin to @end - 1 of @from */
int weir_dataset_share_cut(const struct weir_dataset_share *from, uint64_t begin, uint64_t end,
			   struct weir_dataset_share *to);

/** weir_dataset_share_divide() - append to @to the part of @all that rank @rank of @ranks has */
int weir_dataset_share_divide(const struct weir_dataset_share *all, uint32_t rank, uint32_t ranks,
			      struct weir_dataset_share *to);

/** weir_dataset_share_at() - position number @index; below weir_dataset_share_count() */
uint64_t weir_dataset_share_at(const struct weir_dataset_share *share, uint64_t index);

/** weir_dataset_share_clear() - nothing is in it */
void weir_dataset_share_clear(struct weir_dataset_share *share);

#endif
