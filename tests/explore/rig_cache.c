/* SPDX-License-Identifier: BSD-3-Clause */
/* rig_cache.c: the cache of a run, with the array behind it, its Share Table and its tier. */
#include <weir/core/cache/policy.h>

#include "explore.h"
#include "rig.h"
#include "rig_parts.h"

static void lay_out_share(struct weir_lines *lines)
{
	struct weir_share *share = rig_allocate(sizeof(*share), 64);
	struct weir_set *words = rig_allocate(sizeof(*words), 64);
	struct weir_share_slot *slots = rig_allocate(WEIR_WAYS * sizeof(*slots), 64);

	*share = (struct weir_share){ .abi_version = WEIR_ABI_VERSION,
				      .buckets = 1,
				      .words = (weir_addr)(uintptr_t)words,
				      .slots = (weir_addr)(uintptr_t)slots };
	lines->share = (weir_addr)(uintptr_t)share;
	watch(share, sizeof(*share), sizeof(*share), WATCH_NONE, "share", sizeof(*share));
	watch(words, sizeof(*words), 8, WATCH_SHARE, "entry[%u]", 8);
	watch(slots, WEIR_WAYS * sizeof(*slots), sizeof(*slots), WATCH_DATA, "slot of entry[%u]",
	      sizeof(*slots));
}

static void lay_out_tier(struct weir_lines *lines)
{
	struct weir_tier *tier = rig_allocate(sizeof(*tier), 64);
	size_t data_bytes = (size_t)rig.shape.tier * WEIR_WAYS << LINE_LOG2;
	struct weir_set *words = rig_allocate(rig.shape.tier * sizeof(*words), 64);
	unsigned char *data = rig_allocate(data_bytes, 4096);

	*tier = (struct weir_tier){ .abi_version = WEIR_ABI_VERSION,
				    .inclusive = rig.shape.inclusive,
				    .sets = rig.shape.tier,
				    .words = (weir_addr)(uintptr_t)words,
				    .data = (weir_addr)(uintptr_t)data };
	lines->tier = (weir_addr)(uintptr_t)tier;
	watch(tier, sizeof(*tier), sizeof(*tier), WATCH_NONE, "tier", sizeof(*tier));
	watch(words, rig.shape.tier * sizeof(*words), 8, WATCH_TIER, "tier's line[%u]", 8);
	watch(data, data_bytes, 1 << LINE_LOG2, WATCH_DATA, "tier's data[%u]", 1 << LINE_LOG2);
}

void rig_lay_out_cache(void)
{
	u32 sets = rig.shape.sets;
	struct weir_set *words = rig_allocate(sets * sizeof(*words), 64);
	struct weir_set_policy *policies = rig_allocate(sets * sizeof(*policies), 64);
	unsigned char *data = rig_allocate((size_t)sets * WEIR_WAYS << LINE_LOG2, 4096);
	struct weir_lines *lines = rig_allocate(sizeof(*lines), 64);
	struct weir_writer *writer = rig_allocate(sizeof(*writer), 64);
	struct weir_array *array = &writer->array;
	struct weir_extent *extent = rig_allocate(2 * sizeof(*extent), 64);

	*lines = (struct weir_lines){ .abi_version = WEIR_ABI_VERSION,
				      .line_log2 = LINE_LOG2,
				      .sets = sets,
				      .set_magic = ~(u64)0 / sets,
				      .words = (weir_addr)(uintptr_t)words,
				      .policies = (weir_addr)(uintptr_t)policies,
				      .data = (weir_addr)(uintptr_t)data,
				      .fault = (weir_addr)(uintptr_t)rig.fault,
				      .extents = { (weir_addr)(uintptr_t)extent },
				      .extent_count = { 1 + rig.shape.partner } };
	*array = (struct weir_array){ .lines = (weir_addr)(uintptr_t)lines,
				      .fault = (weir_addr)(uintptr_t)rig.fault,
				      .extent = { .disks = (weir_addr)(uintptr_t)rig.disk,
						  .disk_count = 1,
						  .key_base = 1,
						  .lines = SCENARIO_BLOCKS },
				      .count = SCENARIO_BLOCKS * SCENARIO_BLOCK_WORDS,
				      .element_bytes = 8 };
	extent[0] = array->extent;
	if (rig.shape.partner) {
		rig.other = rig_allocate(sizeof(*rig.other), 64);
		*rig.other = *array;
		rig.other->extent.disks += sizeof(struct weir_disk);
		rig.other->extent.key_base += SCENARIO_BLOCKS;
		extent[1] = rig.other->extent;
	}
	watch(lines, sizeof(*lines), sizeof(*lines), WATCH_NONE, "cache", sizeof(*lines));
	watch(policies, sets * sizeof(*policies), 64, WATCH_DATA, "policy[%u]", sizeof(*policies));
	watch(words, sets * sizeof(*words), 8, WATCH_LINE, "line[%u]", 8);
	watch(data, (size_t)sets * WEIR_WAYS << LINE_LOG2, 1 << LINE_LOG2, WATCH_DATA, "data[%u]",
	      1 << LINE_LOG2);
	for (u32 i = 0; i < sets; i++) {
		watch(&policies[i].lock, 4, 4, WATCH_LOCK, "set lock", 4);
		for (u32 way = 0; way < WEIR_WAYS; way++)
			watch_guard(&words[i].word[way], &policies[i].lock);
	}
	if (rig.shape.shares)
		lay_out_share(lines);
	if (rig.shape.tier)
		lay_out_tier(lines);
	rig.lines = lines;
	rig.array = array;
	rig.writer = writer;
}
