/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that use storages and caches, open or closed. */
#define WEIR_SHARE_TABLE
#include <weir/async.h>
#include <weir/writer.h>

#include "lifetime.h"

WEIR_KERNEL(lifetime_put, struct lifetime_put_args)
{
	/* one lane: there are devices on which each rests after the other */
	for (u32 i = 0; i < args->rests && weir_thread() == 0; i++)
		weir_relax(i);
	for (u64 i = weir_thread(); i < args->count * args->writer_count; i += weir_threads())
		weir_writer_put_u64(&args->writer[i / args->count], i % args->count,
				    args->seed + i % args->count);
}

WEIR_KERNEL(lifetime_use, struct lifetime_use_args)
{
	WEIR_GLOBAL struct weir_array *array = &args->writer.array;
	u64 line = ((u64)1 << weir_at(array->lines, struct weir_lines, 0)->line_log2) / 8;

	if (weir_thread() == 0) {
		*weir_at(args->statuses, u32, 3) = (u32)weir_array_get_u64(array, 0);
		*weir_at(args->statuses, u32, 0) = weir_array_read(array, 0, line, args->buffer);
		*weir_at(args->statuses, u32, 1) = weir_writer_write(&args->writer, 0, line, args->buffer);
		*weir_at(args->statuses, u32, 2) = weir_read(&args->disk, 0, 1, args->buffer,
							     weir_at(args->event, struct weir_event, 0), 0);
	}
}

WEIR_KERNEL(lifetime_left, struct lifetime_left_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->buffer + 4096, struct weir_event, 0);

	if (weir_thread() != 0)
		return;
	if (args->statuses) {
		*weir_at(args->statuses, u32, 0) = weir_test(&args->disk, event) != 0;
		*weir_at(args->statuses, u32, 1) = weir_wait(&args->disk, event, 1);
		args->disk.flags |= WEIR_DISK_WINDOW; /* as of a controller that reaches a part of memory */
		*weir_at(args->statuses, u32, 0) +=
			weir_read_async(&args->disk, 0, 1, args->buffer, event + 1) == WEIR_E_CLOSED;
	} else {
		(void)weir_read_async(&args->disk, 0, 1, args->buffer, event);
		while (args->sees && !weir_event_peek(event))
			(void)weir_read(&args->disk, 1, 1, args->buffer, event + 1, 0);
	}
}

WEIR_KERNEL(lifetime_zero, struct lifetime_zero_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->event, struct weir_event, 0);
	weir_status status;

	if (weir_thread() != 0)
		return;
	status = weir_block_async(&args->disk, NVME_OPCODE_WRITE_ZEROES, 0, 1, 0, event);
	if (status == WEIR_OK)
		status = weir_block_wait(&args->disk, NVME_OPCODE_WRITE_ZEROES, 0, 1, 0, event, 0);
	*weir_at(args->status, u32, 0) = status;
}

WEIR_KERNEL(lifetime_wait, struct lifetime_wait_args)
{
	if (weir_thread() == 0) {
		for (u32 i = 0; !weir_load_u32_acquire_sys(weir_at(args->gate, weir_shared_u32, 0)); i++)
			weir_relax(i);
		if (args->array.lines)
			(void)weir_array_get_u64(&args->array, 0);
		weir_store_u32_release_sys(weir_at(args->out, weir_shared_u32, 0), 1);
	}
}
