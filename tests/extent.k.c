/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of extent_test.c. */
#include <weir/writer.h>

#include "extent.h"
#include "verdict.h"

WEIR_KERNEL(extent_put, struct extent_elements_args)
{
	for (u64 i = weir_thread(); i < args->writer.array.count; i += weir_threads())
		weir_writer_put_u32(&args->writer, i, extent_value(args->seed, i));
}

WEIR_KERNEL(extent_check, struct extent_elements_args)
{
	for (u64 i = weir_thread(); i < args->writer.array.count; i += weir_threads()) {
		expect(args->verdict, i, weir_array_get_u32(&args->writer.array, i), extent_value(args->seed, i));
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
	}
}

WEIR_KERNEL(extent_block, struct extent_block_args)
{
	WEIR_GLOBAL u32 *statuses = weir_at(args->statuses, u32, 0);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->event, struct weir_event, 0);

	if (weir_thread() != 0)
		return;
	if (args->write)
		statuses[1] = weir_write(&args->disk, args->lba, args->blocks, args->buffer, event, 0);
	else
		statuses[0] = weir_read(&args->disk, args->lba, args->blocks, args->buffer, event, 0);
}
