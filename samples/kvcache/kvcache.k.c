/* SPDX-License-Identifier: BSD-3-Clause */
/* Every byte of the loaded blocks against what the file has, and blocks as the file is to have them. */
#include <weir/port.h>

#include "kvcache.h"

WEIR_KERNEL(kvcache_fill, struct kvcache_check_args)
{
	u64 words = args->count * args->block_words;

	for (u64 i = weir_thread(); i < words; i += weir_threads()) {
		u64 block = *weir_at(args->blocks, u64, i / args->block_words);

		*weir_at(args->pool, u64, i) =
			kvcache_word(block * args->block_words + i % args->block_words);
	}
}

WEIR_KERNEL(kvcache_check, struct kvcache_check_args)
{
	u64 words = args->count * args->block_words, bad = 0;

	for (u64 i = weir_thread(); i < words; i += weir_threads()) {
		u64 block = *weir_at(args->blocks, u64, i / args->block_words);
		WEIR_GLOBAL u64 *word = weir_at(args->pool, u64, i);

		bad += *word != kvcache_word(block * args->block_words + i % args->block_words);
		*word = KVCACHE_POISON;
	}
	if (bad) /* relaxed: a count, read after the kernel */
		(void)weir_add_u64_relaxed_dev(&weir_at(args->verdict, struct kvcache_verdict, 0)->bad, bad);
}
