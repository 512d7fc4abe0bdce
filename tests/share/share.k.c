/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of share_test.c; tier_share.k.c has them once more. */
#include <weir/share.h>

#include "share.h"
#include "../rig/verdict.h"

#ifndef TEST_SHARE_KERNEL
#define TEST_SHARE_KERNEL(name, args_type) WEIR_KERNEL(name, args_type)
#endif

enum { MOST_HELD = 5 };

#define ITERATION_NS                                                                                         \
	((u64)60000000000u) /* for the other blocks' steps, on a machine that has much else to do */

/* A word of a held line is as on storage, or as some lane changed it. */
WEIR_FN void share_check(WEIR_GLOBAL struct test_share_args *args, struct weir_shared shared, u64 at)
{
	u64 word = shared.line * (args->line_bytes / 8) + at,
	    found = weir_data_load_u64(shared.buffer + at * 8);

	if (!args->change || found != test_word(2, word))
		expect(args->verdict, word, found, test_word(1, word));
}

WEIR_FN u64 share_line(WEIR_GLOBAL struct test_share_args *args, u32 round, u32 i)
{
	return (weir_thread() + round * args->held + i) % args->lines;
}

/* Change one word of what is held; of a copy by way of the cache. */
WEIR_FN void share_change(WEIR_GLOBAL struct test_share_args *args, struct weir_shared shared)
{
	u64 words = args->line_bytes / 8, at = weir_thread() % words, word = shared.line * words + at;

	if (shared.kind == WEIR_SHARED_COPY) {
		expect(args->verdict, word, weir_share_modify(&args->writer, shared), WEIR_E_UNSHARED);
		weir_writer_put_u64(&args->writer, word, test_word(2, word));
	} else {
		expect(args->verdict, word, weir_share_modify(&args->writer, shared), WEIR_OK);
		weir_data_store_u64(shared.buffer + at * 8, test_word(2, word));
	}
}

/* A buffer is used for the next line once nobody holds it. */
WEIR_FN void share_buffers_back(WEIR_GLOBAL struct test_share_args *args, u32 round)
{
	u64 wave = weir_active();
	u32 at = 0;

	for (u32 iteration = 0; weir_ballot(wave, at < args->held); iteration++) {
		weir_reconverge();
		if (at < args->held &&
		    !weir_share_in_use(&args->writer.array, share_line(args, round, at),
				       args->buffers + (weir_thread() * args->held + at) * args->line_bytes))
			at++;
		weir_relax(iteration);
	}
}

/*
 * Owners do not wait for guests of their own wave here: a lane lets go of all it holds before it looks
 * whether its buffers are free, and so do the others of its wave.
 */
TEST_SHARE_KERNEL(test_share, struct test_share_args)
{
	WEIR_GLOBAL struct weir_array *array = &args->writer.array;

	for (u32 round = 0; round < args->rounds; round++) {
		struct weir_shared shared[MOST_HELD];
		u64 first = weir_thread() * args->held;

		for (u32 i = 0; i < args->held; i++)
			shared[i] = weir_share_acquire(array, share_line(args, round, i),
						       args->buffers + (first + i) * args->line_bytes,
						       weir_at(args->events, struct weir_event, first + i));
		for (u32 i = args->held; i-- > 0;) {
			expect(args->verdict, shared[i].line, weir_share_wait(array, shared[i], 0), WEIR_OK);
			if (shared[i].kind == WEIR_SHARED_COPY)
				weir_add_u64_relaxed_dev(weir_at(args->copies, weir_shared_u64, 0), 1);
			share_check(args, shared[i], 0);
			share_check(args, shared[i], args->line_bytes / 8 - 1);
			if (args->change)
				share_change(args, shared[i]);
		}
		for (u32 i = 0; i < args->held && !args->keep; i++)
			expect(args->verdict, shared[i].line, weir_share_release(array, shared[i]), WEIR_OK);
		weir_wave_sync(weir_active());
		if (!args->keep)
			share_buffers_back(args, round);
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, args->held);
	}
}

/* A copy of a line, from start to end. Return: how it came, or why not. */
WEIR_FN u64 step_copy(WEIR_GLOBAL struct test_steps_args *args, u64 line, weir_addr buffer,
		      WEIR_GLOBAL struct weir_event *event)
{
	weir_status status = weir_async_read(&args->writer.array, line, buffer, event);

	if (status == WEIR_OK)
		status = weir_async_wait(&args->writer.array, event, 0);
	return status == WEIR_OK ? weir_event_path(weir_event_test(event)) : status;
}

WEIR_FN u64 step_write(WEIR_GLOBAL struct test_steps_args *args, u64 line, weir_addr buffer,
		       WEIR_GLOBAL struct weir_event *event)
{
	weir_status status = weir_async_write(&args->writer, line, buffer, event);

	return status == WEIR_OK ? weir_async_wait(&args->writer.array, event, 0) : status;
}

/* Wait until step @step is the next one; what others did before is seen then. Return: 0: they do not get
 * there. */
WEIR_FN u32 step_iteration(WEIR_GLOBAL struct test_steps_args *args, u64 step)
{
	u64 begin = weir_clock_ns();

	for (u32 iteration = 0;
	     weir_load_u64_acquire_dev(weir_at(args->iteration, weir_shared_u64, 0)) != step; iteration++) {
		if (weir_clock_ns() - begin > ITERATION_NS)
			return 0;
		weir_relax(iteration);
	}
	return 1;
}

/* Wait for a hold without a wait: by tests; another one's, which is never done, helps. */
WEIR_FN weir_status step_poll(WEIR_GLOBAL struct test_steps_args *args, struct weir_shared hold)
{
	weir_status status = WEIR_E_LOCKED;
	u64 begin = weir_clock_ns();

	while (status == WEIR_E_LOCKED && weir_clock_ns() - begin < ITERATION_NS) {
		status = weir_share_test(&args->writer.array, hold);
		if (status == WEIR_E_LOCKED)
			(void)weir_test(weir_extent_disk(&args->writer.array.extent, 0),
					weir_at(args->events, struct weir_event, TEST_HOLDS));
		weir_relax(0);
	}
	return status;
}

/* The first lanes of blocks take turns, one thing after the other: each call stands here once, which
 * compilers thank for. */
TEST_SHARE_KERNEL(test_steps, struct test_steps_args)
{
	WEIR_GLOBAL struct weir_array *array = &args->writer.array;
	struct weir_shared holds[TEST_HOLDS];

	for (u64 i = 0; weir_thread() % args->block_lanes == 0 && i < args->count; i++) {
		struct test_step step = *weir_at(args->steps, struct test_step, i);
		weir_addr buffer = args->buffers + step.buffer * args->line_bytes;
		WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, step.buffer);
		u64 element = step.line * (args->line_bytes / 8) + step.at, found = step.value;

		if (step.kind / TEST_STEP_BLOCK != weir_thread() / args->block_lanes)
			continue;
		step.kind %= TEST_STEP_BLOCK;
		if (!step_iteration(args, i))
			return;
		if (step.kind == TEST_STEP_SEND)
			weir_data_store_u64(holds[step.buffer].buffer + step.at * 8, step.value);
		else if (step.kind == TEST_STEP_SEE)
			found = weir_data_load_u64(holds[step.buffer].buffer + step.at * 8);
		else if (step.kind == TEST_STEP_STORE)
			weir_data_store_u64(buffer + step.at * 8, step.value);
		else if (step.kind == TEST_STEP_LOAD)
			found = weir_data_load_u64(buffer + step.at * 8);
		else if (step.kind == TEST_STEP_GET)
			found = weir_array_get_u64(array, element);
		else if (step.kind == TEST_STEP_PUT)
			weir_writer_put_u64(&args->writer, element, step.value);
		else if (step.kind == TEST_STEP_ADD)
			found = weir_writer_add_u64(&args->writer, element, 1);
		else if (step.kind == TEST_STEP_COPY)
			found = step_copy(args, step.line, buffer, event);
		else if (step.kind == TEST_STEP_WRITE)
			found = step_write(args, step.line, buffer, event);
		else if (step.kind == TEST_STEP_ACQUIRE)
			found = (holds[step.buffer] = weir_share_acquire(array, step.line, buffer, event))
					.kind;
		else if (step.kind == TEST_STEP_WAIT)
			found = weir_share_wait(array, holds[step.buffer], 0);
		else if (step.kind == TEST_STEP_POLL)
			found = step_poll(args, holds[step.buffer]);
		else if (step.kind == TEST_STEP_MODIFY)
			found = weir_share_modify(&args->writer, holds[step.buffer]);
		else if (step.kind == TEST_STEP_RELEASE)
			found = weir_share_release(array, holds[step.buffer]);
		else if (step.kind == TEST_STEP_AHEAD)
			found = weir_prefetch(array, step.line * (args->line_bytes / 8),
					      step.at * (args->line_bytes / 8));
		else
			found = weir_share_in_use(array, step.line, buffer);
		expect(args->verdict, i, found, step.value);
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
		weir_store_u64_release_dev(weir_at(args->iteration, weir_shared_u64, 0), i + 1);
	}
}

/* The array is another one in each other lane: all that these have in common is the call. */
TEST_SHARE_KERNEL(test_mixed, struct test_mixed_args)
{
	WEIR_GLOBAL struct weir_writer *writer = weir_thread() & 1 ? &args->other : &args->writer;
	u64 line = weir_thread(), word = line * (args->line_bytes / 8);
	struct weir_shared shared =
		weir_share_acquire(&writer->array, line, args->buffers + line * args->line_bytes,
				   weir_at(args->events, struct weir_event, line));

	expect(args->verdict, line, weir_share_wait(&writer->array, shared, 0), WEIR_OK);
	expect(args->verdict, line, shared.kind,
	       weir_thread() & 1 ? (u32)WEIR_SHARED_COPY : (u32)WEIR_SHARED_OWNER);
	weir_writer_put_u64(writer, word, test_word(2, word));
	expect(args->verdict, word, weir_array_get_u64(&writer->array, word), test_word(2, word));
	expect(args->verdict, line, weir_share_release(&writer->array, shared), WEIR_OK);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}

/* A hold of a table that is gone is refused, whatever is done with it. */
TEST_SHARE_KERNEL(test_share_gone, struct test_share_args)
{
	WEIR_GLOBAL struct weir_array *array = &args->writer.array;
	struct weir_shared shared = weir_shared_none(0, WEIR_OK);

	shared.kind = weir_thread() % 2 ? (u32)WEIR_SHARED_OWNER : (u32)WEIR_SHARED_GUEST;
	shared.buffer = args->buffers;
	expect(args->verdict, 0, weir_share_test(array, shared), WEIR_E_CLOSED);
	expect(args->verdict, 1, weir_share_wait(array, shared, 0), WEIR_E_CLOSED);
	expect(args->verdict, 2, weir_share_modify(&args->writer, shared), WEIR_E_CLOSED);
	expect(args->verdict, 3, weir_share_release(array, shared), WEIR_E_CLOSED);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}
