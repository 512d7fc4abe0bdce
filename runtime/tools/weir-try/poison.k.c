/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes write blocks, or read them into poisoned buffers and look at every word. */
#include <weir/disk.h>

#include "poison.h"

/* A word of its own for each place and @seed. */
WEIR_FN u64 try_word(u64 seed, u64 word)
{
	u64 mixed = (word + 1) * 0x9e3779b97f4a7c15ul ^ seed;

	mixed = (mixed ^ (mixed >> 31)) * 0xbf58476d1ce4e5b9ul;
	return mixed ^ (mixed >> 29);
}

WEIR_FN void try_fill(weir_addr buffer, u64 words, u64 seed, u64 first)
{
	for (u64 i = 0; i < words; i++)
		*weir_at(buffer, u64, i) = try_word(seed, first + i);
}

WEIR_FN void try_compare(WEIR_GLOBAL struct try_poison_args *args, weir_addr buffer, u64 words, u64 first)
{
	WEIR_GLOBAL struct try_poison_results *results = weir_at(args->results, struct try_poison_results, 0);
	u64 bad = 0, stale = 0, where = 0;

	for (u64 i = 0; i < words; i++) {
		u64 found = weir_data_load_u64(buffer + i * 8);

		if (found != try_word(args->seed, first + i)) {
			bad++;
			stale += found == try_word(args->poison, first + i);
			where = (first + i) * 8;
		}
	}
	if (!bad)
		return;
	/* relaxed: the host reads them when the launch is over */
	(void)weir_add_u64_relaxed_dev(&results->bad, bad);
	(void)weir_add_u64_relaxed_dev(&results->stale, stale);
	weir_store_u64_relaxed_dev(&results->where, where);
}

/* Return: 0: the lane's buffer is the controller's still. */
WEIR_FN u32 try_count(WEIR_GLOBAL struct try_poison_args *args, weir_status status)
{
	WEIR_GLOBAL struct try_poison_results *results = weir_at(args->results, struct try_poison_results, 0);

	/* relaxed: the host reads them when the launch is over */
	(void)weir_add_u64_relaxed_dev(status == WEIR_OK          ? &results->done
				       : status == WEIR_E_TIMEOUT ? &results->stuck
								  : &results->errors,
				       1);
	if (status != WEIR_OK)
		weir_store_u64_relaxed_dev(&results->status, status);
	return status != WEIR_E_TIMEOUT;
}

WEIR_KERNEL(try_poison_write, struct try_poison_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr buffer = args->buffers + weir_thread() * args->stride_bytes;
	u64 words = (u64)args->blocks << (args->disk.block_log2 - 3);

	if (weir_thread() >= args->lanes)
		return;
	for (u64 i = weir_thread(); i < args->requests; i += args->lanes) {
		try_fill(buffer, words, args->seed, i * words);
		if (!try_count(args, weir_write(&args->disk, args->first_lba + i * args->blocks, args->blocks,
						buffer, event, 0)))
			break;
	}
}

WEIR_KERNEL(try_poison_read, struct try_poison_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr buffer = args->buffers + weir_thread() * args->stride_bytes;
	u64 words = (u64)args->blocks << (args->disk.block_log2 - 3);

	if (weir_thread() >= args->lanes)
		return;
	for (u64 i = weir_thread(); i < args->requests; i += args->lanes) {
		weir_status status;

		try_fill(buffer, words, args->poison, i * words);
		status = weir_read(&args->disk, args->first_lba + i * args->blocks, args->blocks, buffer,
				   event, 0);
		if (!try_count(args, status))
			break;
		if (status == WEIR_OK)
			try_compare(args, buffer, words, i * words);
	}
}
