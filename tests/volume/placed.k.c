/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of a volume, by commands of lanes. */
#include "placed.h"

enum { GOOD = 0, FAILED = 1, WRONG = 2 };

WEIR_FN u64 word_of(WEIR_GLOBAL struct test_placed_args *args, u64 lba, u64 word)
{
	return (lba + 1) * 0x9e3779b97f4a7c15u + (args->generation << 16) + word;
}

WEIR_FN u32 words_of_block(WEIR_GLOBAL struct test_placed_args *args)
{
	return (1u << args->disk.block_log2) / 8;
}

/* The first and the last word of each block: fills them, or counts those that are wrong. */
WEIR_FN u32 walk(WEIR_GLOBAL struct test_placed_args *args, weir_addr buffer, u64 lba)
{
	u32 words = words_of_block(args), wrong = 0;

	for (u32 i = 0; i < args->blocks; i++) {
		WEIR_GLOBAL u64 *first = weir_at(buffer, u64, (u64)i * words);

		if (args->opcode == NVME_OPCODE_WRITE) {
			first[0] = word_of(args, lba + i, 0);
			first[words - 1] = word_of(args, lba + i, 1);
		} else {
			wrong += first[0] != word_of(args, lba + i, 0);
			wrong += first[words - 1] != word_of(args, lba + i, 1);
		}
	}
	return wrong;
}

WEIR_FN void count(WEIR_GLOBAL struct test_placed_args *args, u32 what, u64 number)
{
	/* relaxed: the host reads them when the kernel has ended */
	(void)weir_add_u64_relaxed_dev(weir_at(args->results, weir_shared_u64, what), number);
}

WEIR_KERNEL(test_placed, struct test_placed_args)
{
	u64 me = weir_thread();
	weir_addr buffer = args->buffers + ((me * args->blocks) << args->disk.block_log2);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, me);

	for (u64 at = me * args->blocks; at < args->count; at += weir_threads() * args->blocks) {
		u32 writes = args->opcode == NVME_OPCODE_WRITE;
		weir_status status;

		if (writes)
			(void)walk(args, buffer, at);
		if (args->leaves) {
			count(args, weir_write_async(&args->disk, at, args->blocks, buffer, event), 1);
			continue;
		}
		status = writes ? weir_write(&args->disk, at, args->blocks, buffer, event, 0)
				: weir_read(&args->disk, at, args->blocks, buffer, event, 0);
		count(args, status == WEIR_OK ? GOOD : FAILED, 1);
		if (status == WEIR_OK && !writes)
			count(args, WRONG, walk(args, buffer, at));
	}
}

WEIR_KERNEL(test_placed_cached, struct test_placed_cached_args)
{
	u64 words = words_of_block(&args->of);

	for (u64 at = weir_thread(); at < args->of.count; at += weir_threads()) {
		u64 word = weir_array_get_u64(&args->array, at * words);

		count(&args->of, GOOD, 1);
		count(&args->of, WRONG, word != word_of(&args->of, at, 0));
	}
}
