/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of far_test.c. */
#include <weir/gather.h>
#include <weir/transfer.h>
#include <weir/unaligned.h>

#include "far.h"

WEIR_FN u64 far_word(WEIR_GLOBAL struct test_far_args *args, u64 word)
{
	return weir_data_load_u64(args->room + word * 8);
}

/* One of four, of which another one is at the beginning. */
WEIR_FN u64 far_four(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	struct weir_four four;

	four.value[0] = four.value[1] = 0;
	four.value[2] = four.value[3] = index;
	four = weir_array_get_four_u64(array, four);
	return four.value[2] == four.value[3] && four.value[0] == four.value[1] ? four.value[2] : 0;
}

WEIR_FN u64 far_run(WEIR_GLOBAL struct weir_array *array, u64 index, u32 tries)
{
	struct weir_run run = tries ? weir_array_try_run_u64(array, index, index + 1)
				    : weir_array_run_u64(array, index, index + 1);

	return run.count ? run.value[0] : 0;
}

WEIR_FN u64 far_view(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	struct weir_view view = weir_array_view(array, index);
	u64 value = view.count ? weir_view_u64(view, 0) : 0;

	return weir_view_valid(view) ? value : 0;
}

WEIR_FN u64 far_element(WEIR_GLOBAL struct test_far_args *args, u64 index)
{
	WEIR_GLOBAL struct weir_array *array = &args->array;

	if (args->kind == FAR_GET)
		return weir_array_get_u64(array, index);
	if (args->kind == FAR_GET_U32)
		return weir_array_get_u32(&args->narrow, 2 * index);
	if (args->kind == FAR_FOUR)
		return far_four(array, index);
	if (args->kind == FAR_VIEW)
		return far_view(array, index);
	if (args->kind == FAR_CURSOR)
		return weir_cursor_u64(weir_cursor_none(), array, index).value;
	return far_run(array, index, args->kind == FAR_TRY_RUN && weir_array_get_u64(array, index) != 0);
}

WEIR_FN u64 far_several(WEIR_GLOBAL struct test_far_args *args, u64 index)
{
	WEIR_GLOBAL struct weir_array *array = &args->array;
	struct weir_run run;

	if (args->kind == FAR_UNALIGNED)
		return weir_unaligned_get_u64(&args->odd, index);
	if (args->kind == FAR_UNALIGNED_RUN) {
		run = weir_unaligned_run(&args->odd, index, index + 1);
		return run.count ? run.value[0] : 0;
	}
	if (args->kind == FAR_GATHER) {
		*weir_at(args->room, u64, 0) = 0;
		*weir_at(args->room, u64, 1) = index;
		weir_array_gather_u64(array, args->room, 2, args->room + 16);
		return far_word(args, 3);
	}
	if (args->kind == FAR_STRIDED)
		weir_array_strided_u64(array, 1, index - 1, 2, args->room);
	else if (args->kind == FAR_SPAN)
		(void)weir_array_read(array, index - 1, 2, args->room);
	else
		(void)weir_unaligned_read(&args->odd, index - 1, 2, args->room);
	return far_word(args, 1);
}

/* By its line. */
WEIR_FN u64 far_line(WEIR_GLOBAL struct test_far_args *args, u64 index)
{
	WEIR_GLOBAL struct weir_array *array = &args->array;
	WEIR_GLOBAL struct weir_transfer *transfer = weir_at(args->transfer, struct weir_transfer, 0);
	u64 line = weir_array_line(array, index), started;

	if (args->kind == FAR_COPY) {
		(void)weir_async_read(array, line, args->room, &transfer->event);
		(void)weir_async_wait(array, &transfer->event, 0);
		return far_word(args, weir_array_at(array, index) / 8);
	}
	if (args->kind == FAR_TRANSFER) {
		(void)weir_transfer_read(array, line, args->room, transfer);
		(void)weir_transfer_wait(array, transfer, 1, 0);
		return far_word(args, weir_array_at(array, index) / 8);
	}
	*weir_at(args->room, u64, 0) = index;
	started = args->kind == FAR_PREFETCH ? weir_prefetch(array, index, 1)
					     : weir_prefetch_list(array, args->room, 1);
	return started == 1 && weir_array_resident(array, line) ? weir_array_get_u64(array, index) : 0;
}

WEIR_KERNEL(far_read, struct test_far_args)
{
	u64 found;

	if (weir_thread() != 0)
		return;
	if (args->kind <= FAR_CURSOR)
		found = far_element(args, args->index);
	else if (args->kind <= FAR_UNALIGNED_SPAN)
		found = far_several(args, args->index);
	else
		found = far_line(args, args->index);
	*weir_at(args->result, u64, 0) = found;
}

/* The line as it is, with another word in it. */
WEIR_FN weir_status far_write_line(WEIR_GLOBAL struct test_far_args *args)
{
	WEIR_GLOBAL struct weir_array *array = &args->writer.array;
	WEIR_GLOBAL struct weir_transfer *transfer = weir_at(args->transfer, struct weir_transfer, 0);
	u64 line = weir_array_line(array, args->index);
	weir_status status = weir_async_read(array, line, args->room, &transfer->event);

	if (status == WEIR_OK)
		status = weir_async_wait(array, &transfer->event, 0);
	if (status != WEIR_OK)
		return status;
	*weir_at(args->room, u64, weir_array_at(array, args->index) / 8) = args->value;
	if (args->kind == FAR_WRITE_COPY)
		return weir_async_write(&args->writer, line, args->room, &transfer->event);
	status = weir_transfer_write(&args->writer, line, args->room, transfer);
	return status == WEIR_OK ? weir_transfer_wait(array, transfer, 1, 0) : status;
}

WEIR_KERNEL(far_write, struct test_far_args)
{
	u64 line = weir_array_line(&args->writer.array, args->index);
	weir_status status = WEIR_OK;

	if (weir_thread() != 0)
		return;
	*weir_at(args->room, u64, 0) = args->value;
	if (args->kind == FAR_PUT)
		weir_writer_put_u64(&args->writer, args->index, args->value);
	else if (args->kind == FAR_WRITE_SPAN)
		status = weir_writer_write(&args->writer, args->index, 1, args->room);
	else if (args->kind == FAR_LINES)
		status = weir_transfer_lines(&args->array, line - 3, &args->writer, line, 1, args->room,
					     weir_at(args->transfer, struct weir_transfer, 0));
	else
		status = far_write_line(args);
	if (status == WEIR_OK)
		status = weir_writer_flush(&args->writer, args->index, 1, 0);
	*weir_at(args->result, u64, 0) = status;
}
