/* SPDX-License-Identifier: BSD-3-Clause */
/* Cursors, lists and strides: each lane's elements, widened to words of 8 bytes. */
#include <weir/gather.h>

#include "gather.h"

WEIR_FN void gather_by_cursor(WEIR_GLOBAL struct test_gather_args *args, weir_addr list, weir_addr to)
{
	struct weir_cursor cursor = weir_cursor_none();

	for (u64 i = 0; i < args->count; i++) {
		u64 index = *weir_at(list, u64, i);

		cursor = args->array.element_bytes == 8 ? weir_cursor_u64(cursor, &args->array, index)
							: weir_cursor_u32(cursor, &args->array, index);
		*weir_at(to, u64, i) = cursor.value;
	}
}

/* What was put close together as 4-byte elements moves apart, from the end on. */
WEIR_FN void gather_widen(weir_addr to, u64 count)
{
	for (u64 i = count; i-- > 0;)
		*weir_at(to, u64, i) = *weir_at(to, u32, i);
}

WEIR_KERNEL(test_gather, struct test_gather_args)
{
	u32 wide = args->array.element_bytes == 8;
	weir_addr list = args->list + weir_thread() * args->count * 8,
		  to = args->to + weir_thread() * args->count * 8;
	u64 first = *weir_at(list, u64, 0);

	if (args->kind == GATHER_CURSOR)
		gather_by_cursor(args, list, to);
	else if (args->kind == GATHER_LIST && wide)
		weir_array_gather_u64(&args->array, list, args->count, to);
	else if (args->kind == GATHER_LIST)
		weir_array_gather_u32(&args->array, list, args->count, to);
	else if (wide)
		weir_array_strided_u64(&args->array, first, args->stride, args->count, to);
	else
		weir_array_strided_u32(&args->array, first, args->stride, args->count, to);
	if (args->kind != GATHER_CURSOR && !wide)
		gather_widen(to, args->count);
}
