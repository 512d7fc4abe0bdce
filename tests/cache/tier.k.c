/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of tier_test.c: lanes that have code for a tier in host memory. */
#ifndef WEIR_TIER
#define WEIR_TIER
#endif
#include <weir/async.h>

#include "tier.h"
#include "../rig/verdict.h"

/* All of line @line is in @buffer. */
WEIR_FN void tier_check(WEIR_GLOBAL struct test_tier_args *args, u64 line, weir_addr buffer)
{
	u64 words = ((u64)1 << weir_array_line_log2(&args->array)) / 8;

	for (u64 i = 0; i < words; i++)
		expect(args->verdict, line * words + i, weir_data_load_u64(buffer + i * 8),
		       *weir_at(args->model, u64, line * words + i));
}

WEIR_FN void tier_async(WEIR_GLOBAL struct test_tier_args *args, u64 line, weir_addr buffer)
{
	WEIR_GLOBAL struct test_verdict *verdict = verdict_at(args->verdict);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());

	expect(args->verdict, line, weir_async_read(&args->array, line, buffer, event), WEIR_OK);
	expect(args->verdict, line, weir_async_wait(&args->array, event, 0), WEIR_OK);
	if (weir_event_path(weir_event_test(event)) == WEIR_PATH_TIER)
		weir_add_u64_relaxed_dev(&verdict->sum, 1);
	tier_check(args, line, buffer);
}

WEIR_KERNEL(tier_read, struct test_tier_args)
{
	WEIR_GLOBAL struct test_verdict *verdict = verdict_at(args->verdict);
	u64 words = ((u64)1 << weir_array_line_log2(&args->array)) / 8;
	weir_addr buffer = args->buffers + weir_thread() * words * 8;

	for (u64 at = weir_thread(); at < args->count * args->rounds; at += weir_threads()) {
		u64 line = args->first + at % args->count, index = line * words + (at * 7 + 3) % words;

		if (args->kind == TEST_TIER_GET) {
			expect(args->verdict, index, weir_array_get_u64(&args->array, index),
			       *weir_at(args->model, u64, index));
		} else if (args->kind == TEST_TIER_SPAN) {
			expect(args->verdict, line,
			       weir_array_read(&args->array, line * words, words, buffer), WEIR_OK);
			tier_check(args, line, buffer);
		} else if (args->kind == TEST_TIER_ASYNC) {
			tier_async(args, line, buffer);
		} else {
			(void)weir_prefetch(&args->array, index, 1);
		}
		weir_add_u64_relaxed_dev(&verdict->good, 1);
	}
}

/* An element of this lane's: lanes' elements lie beside each other, so that a line is many lanes'. */
WEIR_FN void mix_element(WEIR_GLOBAL struct test_mix_args *args, u64 chance)
{
	u64 index = chance % args->each * weir_threads() + weir_thread(), action = (chance >> 40) % 4;
	WEIR_GLOBAL u64 *shadow = weir_at(args->shadow, u64, index);

	if (action == 0) {
		weir_writer_put_u64(&args->writer, index, chance);
		*shadow = chance;
	} else if (action == 1) {
		expect(args->verdict, index, weir_writer_add_u64(&args->writer, index, chance), *shadow);
		*shadow += chance;
	} else {
		expect(args->verdict, index, weir_array_get_u64(&args->writer.array, index), *shadow);
	}
}

WEIR_FN weir_status mix_write(WEIR_GLOBAL struct test_mix_args *args, u64 line, u64 words, weir_addr buffer,
			      u32 copies)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());

	return copies ? weir_async_write(&args->writer, line, buffer, event)
		      : weir_writer_write(&args->writer, line * words, words, buffer);
}

WEIR_FN weir_status mix_read(WEIR_GLOBAL struct test_mix_args *args, u64 line, u64 words, weir_addr buffer,
			     u32 copies)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	weir_status status;

	if (!copies)
		return weir_array_read(&args->writer.array, line * words, words, buffer);
	status = weir_async_read(&args->writer.array, line, buffer, event);
	return status == WEIR_OK ? weir_async_wait(&args->writer.array, event, 0) : status;
}

/* A line of this lane's, all of it. */
WEIR_FN void mix_line(WEIR_GLOBAL struct test_mix_args *args, u64 chance)
{
	u64 line = chance % args->each * weir_threads() + weir_thread();
	u64 words = ((u64)1 << weir_array_line_log2(&args->writer.array)) / 8;
	weir_addr buffer = args->buffers + weir_thread() * words * 8;
	u32 writes = (chance >> 40) % 3 == 0, copies = (chance >> 50) & 1;
	WEIR_GLOBAL u64 *shadow = weir_at(args->shadow, u64, line);

	if (writes) {
		for (u64 i = 0; i < words; i++)
			*weir_at(buffer, u64, i) = test_mix(chance + i);
		expect(args->verdict, line, mix_write(args, line, words, buffer, copies), WEIR_OK);
		*shadow = chance;
	} else {
		expect(args->verdict, line, mix_read(args, line, words, buffer, copies), WEIR_OK);
		for (u64 i = 0; i < words; i++)
			expect(args->verdict, line * words + i, weir_data_load_u64(buffer + i * 8),
			       test_mix(*shadow + i));
	}
}

WEIR_KERNEL(tier_mix, struct test_mix_args)
{
	for (u64 step = 0; step < args->steps; step++) {
		u64 chance = test_mix(args->seed + step * weir_threads() + weir_thread());

		if (args->whole)
			mix_line(args, chance);
		else
			mix_element(args, chance);
		if (step % 16 == 15) /* all that any lane has put in the array's beginning */
			expect(args->verdict, step, weir_writer_flush(&args->writer, 0, weir_threads(), 0),
			       WEIR_OK);
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
	}
}
