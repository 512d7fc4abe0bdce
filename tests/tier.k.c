/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for caches with a tier in host memory: those of writer.k.c, with _tier behind their names, and some that read. */
#ifndef WEIR_TIER
#define WEIR_TIER
#endif
#define TEST_WRITER_KERNEL(name, args_type) WEIR_KERNEL(name##_tier, args_type)
#include "writer.k.c"

#include <weir/async.h>

#include "tier.h"

/* All of line @line is in @buffer. */
WEIR_FN void tier_check(WEIR_GLOBAL struct test_tier_args *args, u64 line, weir_addr buffer)
{
	u64 words = ((u64)1 << weir_array_line_log2(&args->array)) / 8;

	for (u64 i = 0; i < words; i++)
		expect_value(args->verdict, line * words + i, weir_data_load_u64(buffer + i * 8),
			     *weir_at(args->model, u64, line * words + i));
}

WEIR_FN void tier_async(WEIR_GLOBAL struct test_tier_args *args, u64 line, weir_addr buffer)
{
	WEIR_GLOBAL struct test_verdict *verdict = weir_at(args->verdict, struct test_verdict, 0);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());

	expect_value(args->verdict, line, weir_async_read(&args->array, line, buffer, event), WEIR_OK);
	expect_value(args->verdict, line, weir_async_wait(&args->array, event, 0), WEIR_OK);
	if (weir_event_path(weir_event_test(event)) == WEIR_PATH_TIER)
		weir_add_u64_relaxed_dev(&verdict->sum, 1);
	tier_check(args, line, buffer);
}

WEIR_KERNEL(tier_read, struct test_tier_args)
{
	WEIR_GLOBAL struct test_verdict *verdict = weir_at(args->verdict, struct test_verdict, 0);
	u64 words = ((u64)1 << weir_array_line_log2(&args->array)) / 8;
	weir_addr buffer = args->buffers + weir_thread() * words * 8;

	for (u64 at = weir_thread(); at < args->count * args->rounds; at += weir_threads()) {
		u64 line = args->first + at % args->count, index = line * words + (at * 7 + 3) % words;

		if (args->kind == TEST_TIER_GET) {
			expect_value(args->verdict, index, weir_array_get_u64(&args->array, index), *weir_at(args->model, u64, index));
		} else if (args->kind == TEST_TIER_SPAN) {
			expect_value(args->verdict, line, weir_array_read(&args->array, line * words, words, buffer), WEIR_OK);
			tier_check(args, line, buffer);
		} else if (args->kind == TEST_TIER_ASYNC) {
			tier_async(args, line, buffer);
		} else {
			(void)weir_prefetch(&args->array, index, 1);
		}
		weir_add_u64_relaxed_dev(&verdict->good, 1);
	}
}
