/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes write a range of a storage, or read it into poisoned buffers and look at every word. */
#include <weir/disk.h>

#include "../verdict.h"
#include "storage.h"

/* One request of a lane's, to its end. */
WEIR_FN weir_status transfer(WEIR_GLOBAL struct vm_storage_args *args, u32 opcode, u64 lba, u32 blocks)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr buffer = args->buffers + weir_thread() * args->span;
	weir_status status = weir_block_async(&args->disk, opcode, lba, blocks, buffer, event);

	if (status == WEIR_OK) {
		status = weir_wait(&args->disk, event, 0);
		weir_event_reset(event);
	}
	return status;
}

WEIR_FN void fill(WEIR_GLOBAL struct vm_storage_args *args, u64 first_word, u64 words)
{
	for (u64 i = 0; i < words; i++)
		*weir_at(args->buffers + weir_thread() * args->span, u64, i) =
			args->write ? test_word(args->seed, first_word + i) : VM_POISON;
}

WEIR_FN void compare(WEIR_GLOBAL struct vm_storage_args *args, u64 first_word, u64 words)
{
	u64 good = 0;

	for (u64 i = 0; i < words; i++)
		good += expect(args->verdict, first_word + i, *weir_at(args->buffers + weir_thread() * args->span, u64, i),
			       test_word(args->seed, first_word + i));
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, good); /* relaxed: the host reads it after the launch */
}

WEIR_KERNEL(vm_storage, struct vm_storage_args)
{
	u64 requests = (args->blocks + args->per_request - 1) / args->per_request;
	u64 words_per_block = ((u64)1 << args->disk.block_log2) / sizeof(u64);
	weir_status status = WEIR_OK;

	for (u64 i = weir_thread(); i < requests && status == WEIR_OK; i += weir_threads()) {
		u64 lba = args->first + i * args->per_request;
		u64 left = args->first + args->blocks - lba;
		u64 blocks = left < args->per_request ? left : args->per_request;

		fill(args, lba * words_per_block, blocks * words_per_block);
		status = transfer(args, args->write ? NVME_OPCODE_WRITE : NVME_OPCODE_READ, lba, (u32)blocks);
		if (status == WEIR_OK && !args->write)
			compare(args, lba * words_per_block, blocks * words_per_block);
	}
	if (status == WEIR_OK && args->write)
		status = transfer(args, NVME_OPCODE_FLUSH, 0, 0);
	*weir_at(args->statuses, u32, weir_thread()) = status;
}
