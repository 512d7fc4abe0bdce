/* SPDX-License-Identifier: BSD-3-Clause */
/* Unaligned elements by every accessor, widened to words of 8 bytes. */
#include <weir/unaligned.h>

#include "unaligned.h"

WEIR_FN u64 unaligned_get(WEIR_GLOBAL struct test_unaligned_args *args, u64 index)
{
	if (args->width == 2)
		return weir_unaligned_get_u16(&args->array, index);
	if (args->width == 4)
		return weir_unaligned_get_u32(&args->array, index);
	return weir_unaligned_get_u64(&args->array, index);
}

/* One look, noted. Return: its elements; a run that was only tried may have none. */
WEIR_FN u64 unaligned_step(WEIR_GLOBAL struct test_unaligned_args *args, u64 index, u64 end)
{
	struct weir_run run = args->kind == UNALIGNED_TRY ? weir_unaligned_try_run(&args->array, index, end)
							  : weir_unaligned_run(&args->array, index, end);

	*weir_at(args->lengths, u64, index) = run.count;
	for (u32 i = 0; i < WEIR_RUN; i++)
		if (i < run.count)
			*weir_at(args->to, u64, index + i) = run.value[i];
	return run.count ? run.count : end - index;
}

WEIR_FN void unaligned_elements(WEIR_GLOBAL struct test_unaligned_args *args, u64 index, u64 end)
{
	while (index < end) {
		weir_addr to = args->to + index * 8;

		if (args->kind == UNALIGNED_GET)
			*weir_at(to, u64, 0) = unaligned_get(args, index);
		else if (args->kind == UNALIGNED_READ)
			(void)weir_unaligned_read(&args->array, index, 1, to);
		if (args->kind == UNALIGNED_GET || args->kind == UNALIGNED_READ)
			index++;
		else
			index += unaligned_step(args, index, end);
	}
}

WEIR_KERNEL(test_unaligned, struct test_unaligned_args)
{
	for (u64 at = args->first + weir_thread() * args->each; at < args->end;
	     at += weir_threads() * args->each)
		unaligned_elements(args, at, args->end - at < args->each ? args->end : at + args->each);
}
