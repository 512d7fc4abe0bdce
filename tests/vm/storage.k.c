/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes write a range of a storage, or read it into poisoned buffers and look at every word. */
#include <weir/disk.h>

#include "../rig/verdict.h"
#include "storage.h"

/* Where the lane's data begins: at a multiple of 4 bytes. */
WEIR_FN weir_addr buffer_of(WEIR_GLOBAL struct vm_storage_args *args)
{
	return args->buffers + weir_thread() * args->span + args->offset;
}

/* One request of a lane's, to its end. */
WEIR_FN weir_status transfer(WEIR_GLOBAL struct vm_storage_args *args, u32 opcode, u64 lba, u32 blocks)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_status status = weir_block_async(&args->disk, opcode, lba, blocks, buffer_of(args), event);

	if (status == WEIR_OK)
		status = weir_wait(&args->disk, event, 0);
	if (status != WEIR_E_TIMEOUT) /* then it is under way still */
		weir_event_reset(event);
	return status;
}

/* The lane's last request took longer than it was given: wait for it once more. */
WEIR_FN weir_status wait_again(WEIR_GLOBAL struct vm_storage_args *args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_status status = WEIR_OK;

	if (*weir_at(args->statuses, u32, weir_thread()) == WEIR_E_TIMEOUT) {
		status = weir_wait(&args->disk, event, 0);
		if (status != WEIR_E_TIMEOUT)
			weir_event_reset(event);
	}
	return status;
}

WEIR_FN void fill(WEIR_GLOBAL struct vm_storage_args *args, u64 first_word, u64 words)
{
	for (u64 i = 0; i < words; i++) {
		u64 word = args->write ? test_word(args->seed, first_word + i) : VM_POISON;

		*weir_at(buffer_of(args), u32, 2 * i) = (u32)word;
		*weir_at(buffer_of(args), u32, 2 * i + 1) = (u32)(word >> 32);
	}
}

WEIR_FN void compare(WEIR_GLOBAL struct vm_storage_args *args, u64 first_word, u64 words)
{
	u64 good = 0;

	for (u64 i = 0; i < words; i++) {
		u64 low = *weir_at(buffer_of(args), u32, 2 * i);
		u64 high = *weir_at(buffer_of(args), u32, 2 * i + 1);

		good += expect(args->verdict, first_word + i, low | high << 32,
			       test_word(args->seed, first_word + i));
	}
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good,
				 good); /* relaxed: the host reads it after the launch */
}

WEIR_KERNEL(vm_storage, struct vm_storage_args)
{
	u64 requests = (args->blocks + args->per_request - 1) / args->per_request;
	u64 words_per_block = ((u64)1 << args->disk.block_log2) / sizeof(u64);
	weir_status status = WEIR_OK;

	if (args->again)
		status = wait_again(args);
	for (u64 i = weir_thread(); i < requests && status == WEIR_OK; i += weir_threads()) {
		u64 lba = args->first + i * args->per_request;
		u64 left = args->first + args->blocks - lba;
		u64 blocks = left < args->per_request ? left : args->per_request;

		fill(args, lba * words_per_block, blocks * words_per_block);
		status = transfer(args, args->write ? NVME_OPCODE_WRITE : NVME_OPCODE_READ, lba, (u32)blocks);
		if (status == WEIR_OK && !args->write)
			compare(args, lba * words_per_block, blocks * words_per_block);
	}
	if (status == WEIR_OK && args->write && args->flush)
		status = transfer(args, NVME_OPCODE_FLUSH, 0, 0);
	*weir_at(args->statuses, u32, weir_thread()) = status;
}
