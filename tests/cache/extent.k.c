/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of extent_test.c. */
#include <weir/gather.h>
#include <weir/writer.h>

#include "extent.h"
#include "../rig/verdict.h"

WEIR_KERNEL(extent_put, struct extent_elements_args)
{
	for (u64 i = weir_thread(); i < args->writer.array.count; i += weir_threads())
		weir_writer_put_u32(&args->writer, i, extent_value(args->seed, i));
}

WEIR_KERNEL(extent_check, struct extent_elements_args)
{
	for (u64 i = weir_thread(); i < args->writer.array.count; i += weir_threads()) {
		expect(args->verdict, i, weir_array_get_u32(&args->writer.array, i),
		       extent_value(args->seed, i));
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
	}
}

WEIR_ARRAY_STRUCT(extent_record, struct extent_record)

WEIR_FN u64 extent_words(struct weir_u128 wide)
{
	return wide.low | wide.high;
}

WEIR_FN u64 extent_get(WEIR_GLOBAL struct weir_array *array, u64 index, u32 kind)
{
	if (kind == EXTENT_GET_U8)
		return weir_array_get_u8(array, index);
	if (kind == EXTENT_GET_U16)
		return weir_array_get_u16(array, index);
	if (kind == EXTENT_GET_U32)
		return weir_array_get_u32(array, index);
	if (kind == EXTENT_GET_U64)
		return weir_array_get_u64(array, index);
	return extent_words(weir_array_get_u128(array, index));
}

WEIR_FN u64 extent_get_more(WEIR_GLOBAL struct weir_array *array, u64 index, u32 kind)
{
	struct weir_four four;
	struct weir_run run;

	if (kind == EXTENT_GET_STRUCT) {
		struct extent_record record = weir_array_get_extent_record(array, index);

		return record.a | record.b | record.c;
	}
	if (kind == EXTENT_GET_FOUR) {
		four.value[0] = four.value[1] = four.value[2] = four.value[3] = index;
		four = weir_array_get_four_u64(array, four);
		return four.value[0] | four.value[1] | four.value[2] | four.value[3];
	}
	run = kind == EXTENT_RUN ? weir_array_run_u64(array, index, index + 1)
				 : weir_array_try_run_u64(array, index, index + 1);
	return run.count ? run.value[0] : 0;
}

WEIR_FN u64 extent_view(WEIR_GLOBAL struct weir_array *array, u64 index, u32 kind)
{
	struct weir_view view = weir_array_view(array, index);

	if (view.count == 0)
		return 0;
	if (kind == EXTENT_VIEW_U32)
		return weir_view_u32(view, 0);
	if (kind == EXTENT_VIEW_U64)
		return weir_view_u64(view, 0);
	if (kind == EXTENT_VIEW_U128)
		return extent_words(weir_view_u128(view, 0));
	return 0;
}

/* Each lane through its own view, by the calls for those of others. */
WEIR_FN u64 extent_row(WEIR_GLOBAL struct weir_array *array, u64 index)
{
	u64 wave = weir_active(), value = 0;
	struct weir_view_u64 view = weir_array_view_by(wave, array, index);

	for (u64 left = weir_ballot(wave, view.own.count != 0); left; left &= left - 1) {
		u32 lane = weir_lowest_bit(left);
		u64 word = weir_view_u64_of(wave, view, lane, 0);

		value = lane == weir_lane() ? word : value;
	}
	return value | weir_view_valid_by_all(wave, view, value);
}

WEIR_FN u64 extent_list(WEIR_GLOBAL struct weir_array *array, u64 index, u32 kind, weir_addr buffer)
{
	if (kind == EXTENT_CURSOR_U32)
		return weir_cursor_u32(weir_cursor_none(), array, index).value;
	if (kind == EXTENT_CURSOR_U64)
		return weir_cursor_u64(weir_cursor_none(), array, index).value;
	*weir_at(buffer, u64, 0) = index;
	*weir_at(buffer, u64, 1) = 0;
	if (kind == EXTENT_GATHER_U32)
		weir_array_gather_u32(array, buffer, 1, buffer + 8);
	else if (kind == EXTENT_GATHER_U64)
		weir_array_gather_u64(array, buffer, 1, buffer + 8);
	else
		weir_array_strided_u64(array, index, 1, 1, buffer + 8);
	return *weir_at(buffer, u64, 1);
}

WEIR_FN u64 extent_write(WEIR_GLOBAL struct weir_writer *writer, u64 index, u32 kind)
{
	struct weir_u128 wide;

	wide.low = wide.high = ~(u64)0;
	if (kind == EXTENT_PUT_U8)
		weir_writer_put_u8(writer, index, 0xff);
	else if (kind == EXTENT_PUT_U16)
		weir_writer_put_u16(writer, index, 0xffff);
	else if (kind == EXTENT_PUT_U32)
		weir_writer_put_u32(writer, index, ~(u32)0);
	else if (kind == EXTENT_PUT_U64)
		weir_writer_put_u64(writer, index, ~(u64)0);
	else if (kind == EXTENT_PUT_U128)
		weir_writer_put_u128(writer, index, wide);
	else if (kind == EXTENT_ADD_U32)
		return weir_writer_add_u32(writer, index, 1);
	else
		return weir_writer_add_u64(writer, index, 1);
	return 0;
}

WEIR_KERNEL(extent_misuse, struct extent_misuse_args)
{
	WEIR_GLOBAL struct weir_array *array = &args->writer.array;
	u64 got;

	if (weir_thread() != 0)
		return;
	if (args->kind <= EXTENT_GET_U128)
		got = extent_get(array, args->index, args->kind);
	else if (args->kind <= EXTENT_TRY_RUN)
		got = extent_get_more(array, args->index, args->kind);
	else if (args->kind <= EXTENT_VIEW_OF)
		got = args->kind == EXTENT_VIEW_OF ? extent_row(array, args->index)
						   : extent_view(array, args->index, args->kind);
	else if (args->kind < EXTENT_READS)
		got = extent_list(array, args->index, args->kind, args->buffer);
	else
		got = extent_write(&args->writer, args->index, args->kind);
	*weir_at(args->buffer, u64, 2) = got;
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

WEIR_KERNEL(extent_none, struct extent_none_args)
{
	u32 some = (weir_thread() & 1) == 0;

	*weir_at(args->statuses, u32, weir_thread()) = weir_array_read(
		some ? &args->array : &args->none, 0, some, args->buffers + weir_thread() * sizeof(u64));
}
