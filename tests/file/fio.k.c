/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks and words of one file into another, and the pattern that fio calls %o: each word holds its request's
 * offset. */
#include <weir/disk.h>
#include <weir/writer.h>

#include "fio_kernels.h"

WEIR_FN void note_wrong(WEIR_GLOBAL struct fio_args *args, u64 count)
{
	if (count) /* relaxed: a sum, read after the launch */
		(void)weir_add_u64_relaxed_dev(weir_at(args->wrong, weir_shared_u64, 0), count);
}

WEIR_KERNEL(fio_copy_blocks, struct fio_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr buffer = args->buffers + (weir_thread() << args->from.block_log2);

	for (u64 lba = weir_thread(); lba < args->blocks; lba += weir_threads())
		note_wrong(args, weir_read(&args->from, lba, 1, buffer, event, 0) != WEIR_OK ||
					 weir_write(&args->to, lba, 1, buffer, event, 0) != WEIR_OK);
}

WEIR_KERNEL(fio_copy_array, struct fio_args)
{
	for (u64 i = weir_thread(); i < args->words; i += weir_threads())
		weir_writer_put_u64(&args->target, i, weir_array_get_u64(&args->source, i));
}

WEIR_KERNEL(fio_write_blocks, struct fio_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr buffer = args->buffers + (weir_thread() << args->to.block_log2);
	u64 words = (u64)1 << (args->to.block_log2 - 3);

	for (u64 lba = weir_thread(); lba < args->blocks; lba += weir_threads()) {
		u64 offset = lba << args->to.block_log2;

		for (u64 i = 0; i < words; i++)
			weir_data_store_u64(buffer + i * 8, offset - offset % args->unit_bytes);
		note_wrong(args, weir_write(&args->to, lba, 1, buffer, event, 0) != WEIR_OK);
	}
}

WEIR_KERNEL(fio_write_array, struct fio_args)
{
	for (u64 i = weir_thread(); i < args->words; i += weir_threads())
		weir_writer_put_u64(&args->target, i, i * 8 - i * 8 % args->unit_bytes);
}

WEIR_KERNEL(fio_check_blocks, struct fio_args)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_addr buffer = args->buffers + (weir_thread() << args->from.block_log2);
	u64 words = (u64)1 << (args->from.block_log2 - 3), wrong = 0;

	for (u64 lba = weir_thread(); lba < args->blocks; lba += weir_threads()) {
		u64 offset = lba << args->from.block_log2;

		if (weir_read(&args->from, lba, 1, buffer, event, 0) != WEIR_OK)
			wrong += words;
		else
			for (u64 i = 0; i < words; i++)
				wrong += weir_data_load_u64(buffer + i * 8) !=
					 offset - offset % args->unit_bytes;
	}
	note_wrong(args, wrong);
}

WEIR_KERNEL(fio_check_array, struct fio_args)
{
	u64 wrong = 0;

	for (u64 i = weir_thread(); i < args->words; i += weir_threads())
		wrong += weir_array_get_u64(&args->source, i) != i * 8 - i * 8 % args->unit_bytes;
	note_wrong(args, wrong);
}
