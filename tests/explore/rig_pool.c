/* SPDX-License-Identifier: BSD-3-Clause */
/* rig_pool.c: batches; and a pool of buffers, all free, whose pages are nowhere: lanes write to words that
 * stand for them.
 */
#include <weir/volume.h>

#include "explore.h"
#include "rig.h"
#include "scenarios.h"

void rig_lay_out_pool(struct scenario_args *args, u32 chunks)
{
	struct weir_pool *pool = rig_allocate(sizeof(*pool), 64);
	u32 pages = chunks * WEIR_POOL_CHUNK_PAGES, words = 0;
	u64 *bitmap, *owners = rig_allocate(pages * sizeof(*owners), 64);
	u32 *lengths = rig_allocate(pages * sizeof(*lengths), 64);

	for (u32 level = 0; level < WEIR_POOL_LEVELS; level++)
		words += weir_pool_level_words(pages, level);
	bitmap = rig_allocate(words * sizeof(*bitmap), 64);
	bitmap[words - 1] = ((u64)1 << chunks) - 1;
	pool->regions[0] = (struct weir_pool_region){ .data = SCENARIO_POOL_DATA,
						      .words = (weir_addr)(uintptr_t)bitmap,
						      .lengths = (weir_addr)(uintptr_t)lengths,
						      .pages = pages,
						      .free = { { 0 }, { 0 }, { chunks } } };
	pool->region_count.value_ = 1;
	args->pool = (weir_addr)(uintptr_t)pool;
	args->owners = (weir_addr)(uintptr_t)owners;
	watch(pool, sizeof(*pool), sizeof(*pool), WATCH_NONE, "pool", sizeof(*pool));
	watch(bitmap, words * sizeof(*bitmap), 8, WATCH_NONE, "bitmap[%u]", 8);
	watch(lengths, pages * sizeof(*lengths), 4, WATCH_NONE, "length[%u]", 4);
	watch(owners, pages * sizeof(*owners), 8, WATCH_DATA, "page[%u]", 8);
}

void rig_lay_out_batches(struct scenario_args *args, u32 waves)
{
	struct weir_batches *batches = rig_allocate(sizeof(*batches), 64);
	struct weir_batch *batch = rig_allocate(waves * sizeof(*batch), 64);

	*batches = (struct weir_batches){ .disk = *rig.disk,
					  .batches = (weir_addr)(uintptr_t)batch,
					  .waves = waves };
	args->batches = (weir_addr)(uintptr_t)batches;
	watch(batches, sizeof(*batches), sizeof(*batches), WATCH_NONE, "batches", sizeof(*batches));
	for (u32 i = 0; i < waves; i++) {
		watch(&batch[i], 64, 8, WATCH_NONE, "batch+%u", 8);
		watch(batch[i].slots, sizeof(batch[i].slots), 8, WATCH_EVENT, "batch event[%u]",
		      sizeof(struct weir_batch_slot));
	}
}
