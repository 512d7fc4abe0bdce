/* SPDX-License-Identifier: BSD-3-Clause */
/* scenarios_parts.h: what the kernels of several files need. */
#ifndef EXPLORE_SCENARIOS_PARTS_H
#define EXPLORE_SCENARIOS_PARTS_H

#include <weir/writer.h>

#include "scenarios.h"

static inline __attribute__((always_inline)) void check_block(weir_addr buffer, u64 lba, u64 generation)
{
	u64 last = SCENARIO_BLOCK_WORDS - 1;

	explore_expect("first word of the block read", weir_data_load_u64(buffer),
		       scenario_word(lba, generation, 0));
	explore_expect("last word of the block read", weir_data_load_u64(buffer + last * 8),
		       scenario_word(lba, generation, last));
	explore_progress();
}

WEIR_FN WEIR_GLOBAL struct weir_event *event_of(struct scenario_args *args, u32 r)
{
	return weir_at(args->events, struct weir_event, weir_thread() * args->requests + r);
}

WEIR_FN weir_addr buffer_of(struct scenario_args *args, u32 r)
{
	return args->buffers + (weir_thread() * args->requests + r) * SCENARIO_BLOCK_BYTES;
}

WEIR_FN u64 some_lba(struct scenario_args *args, u32 r)
{
	return (weir_thread() * 7 + r * 3 + args->salt) % SCENARIO_BLOCKS;
}

WEIR_FN WEIR_GLOBAL u64 *mark_of(struct scenario_args *args, u64 thread, u64 lba)
{
	return weir_at(args->marks, u64, thread * SCENARIO_BLOCKS + lba);
}

/* Flush until it succeeds: each error is told once. */
WEIR_FN void flush_all(struct scenario_args *args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_at(args->writer, struct weir_writer, 0);
	weir_status status = WEIR_E_TIMEOUT;

	for (u32 i = 0; i <= SCENARIO_WRITE_FAULTS && status != WEIR_OK; i++) {
		status = weir_writer_flush(writer, 0, writer->array.count, 0);
		if (status != WEIR_OK)
			explore_expect("status of a flush", weir_status_nvme(status), SCENARIO_WRITE_FAULT);
	}
	explore_expect("status of the last flush", status, WEIR_OK);
}

WEIR_FN u64 word_marked(struct scenario_args *args, u64 lba, u64 word)
{
	u64 generation = word < weir_threads() ? *mark_of(args, word, lba) : 0;

	return scenario_word(lba, generation, word);
}

/* The last lane to come flushes, and looks at the first @words words of the first @blocks blocks. */
WEIR_FN void check_storage(struct scenario_args *args, u32 blocks, u32 words)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(args->disk, struct weir_disk, 0);

	if (weir_add_u32_acq_rel_dev(&args->finished, 1) + 1 != weir_threads())
		return;
	flush_all(args);
	for (u64 lba = 0; lba < blocks; lba++) {
		explore_expect("status of a raw read",
			       weir_read(disk, lba, 1, buffer_of(args, 0), event_of(args, 0), 0), WEIR_OK);
		for (u64 word = 0; word < words; word++)
			explore_expect("word on storage", weir_data_load_u64(buffer_of(args, 0) + word * 8),
				       word_marked(args, lba, word));
		explore_progress();
	}
}

#endif
