/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>

enum { SPAN = 64 << 10, PAGE = 4096 };

void rig_must(int error)
{
	if (!error)
		return;
	printf("error: %s\n", weir_last_error());
	exit(1);
}

void rig_open(struct rig *rig, const char *uri, const struct rig_options *options)
{
	struct vm_storage_args *args = &rig->args;
	const char *name = getenv("WEIR_VM_CONTEXT");

	*rig = (struct rig){ .info = { .size = sizeof(rig->info) } };
	args->span = (options->transfer ? options->transfer : SPAN) +
		     PAGE; /* the page: for buffers that begin within one */
	rig_must(weir_context_open(name ? name : "cpu",
				   WEIR_OPTIONS(context, .workers = 2, .wave_lanes = 4, .resident_lanes = 64),
				   &rig->context));
	rig_must(weir_storage_open(
		rig->context, uri,
		WEIR_OPTIONS(storage, .queues = options->queues, .depth = options->depth,
			     .max_transfer_bytes = options->transfer,
			     .timeout_us = (options->timeout_ms ? options->timeout_ms : 60000) * 1000),
		&rig->storage));
	rig_must(weir_storage_disk(rig->storage, &args->disk));
	rig_must(weir_storage_info(rig->storage, &rig->info));
	rig_must(weir_alloc(rig->context, RIG_LANES * args->span, &args->buffers));
	rig_must(weir_alloc(rig->context, RIG_LANES * sizeof(struct weir_event), &args->events));
	rig_must(weir_alloc(rig->context, RIG_LANES * sizeof(uint32_t), &args->statuses));
	rig_must(weir_alloc(rig->context, sizeof(struct test_verdict), &args->verdict));
	args->flush = 1;
	args->per_request = (args->span - PAGE) >> args->disk.block_log2;
	if (args->per_request > args->disk.max_blocks)
		args->per_request = args->disk.max_blocks;
}

void rig_close(struct rig *rig)
{
	weir_storage_close(rig->storage);
	weir_context_close(rig->context);
}

static weir_status run(struct rig *rig, uint32_t blocks, uint32_t threads)
{
	uint32_t statuses[RIG_LANES];

	rig_must(weir_launch(rig->context, "vm_storage", blocks, threads, &rig->args, sizeof(rig->args)));
	rig_must(weir_sync(rig->context));
	rig_must(weir_copy_from_device(rig->context, statuses, rig->args.statuses, sizeof(statuses)));
	for (uint32_t i = 0; i < blocks * threads; i++)
		if (statuses[i] != WEIR_OK)
			return statuses[i];
	return WEIR_OK;
}

weir_status rig_run(struct rig *rig)
{
	return run(rig, RIG_BLOCKS, RIG_THREADS);
}

weir_status rig_run_on(struct rig *rig, uint32_t lanes)
{
	return run(rig, 1, lanes);
}

struct test_verdict rig_verdict(struct rig *rig)
{
	static const struct test_verdict nothing;
	struct test_verdict verdict;

	rig_must(weir_copy_from_device(rig->context, &verdict, rig->args.verdict, sizeof(verdict)));
	rig_must(weir_copy_to_device(rig->context, rig->args.verdict, &nothing, sizeof(nothing)));
	return verdict;
}

int rig_say(weir_status status)
{
	char text[80];

	if (status == WEIR_OK)
		return 0;
	weir_status_text(status, text);
	printf("status %#x: %s\n", status, text);
	return 1;
}
