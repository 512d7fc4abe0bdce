/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of transfer_test.c. */
#include <weir/transfer.h>

#include "transfer.h"
#include "../rig/verdict.h"

WEIR_FN u64 transfer_line(WEIR_GLOBAL struct test_transfer_args *args, u32 request)
{
	u64 seed = args->same ? request : weir_thread() * args->requests + request;

	return test_mix(seed) % args->source.extent.lines;
}

WEIR_FN WEIR_GLOBAL struct weir_transfer *transfer_of(WEIR_GLOBAL struct test_transfer_args *args,
						      u32 request)
{
	return weir_at(args->transfers, struct weir_transfer, weir_thread() * args->requests + request);
}

WEIR_FN weir_addr transfer_buffer(WEIR_GLOBAL struct test_transfer_args *args, u32 request)
{
	return args->buffers +
	       ((weir_thread() * args->requests + request) << weir_array_line_log2(&args->source));
}

/* The words of line @line, each plus @more. */
WEIR_FN void transfer_check(WEIR_GLOBAL struct test_transfer_args *args, weir_addr buffer, u64 line)
{
	u64 words = ((u64)1 << weir_array_line_log2(&args->source)) / 8;

	for (u64 i = 0; i < words; i++)
		expect(args->verdict, line * words + i, *weir_at(buffer, u64, i),
		       test_word(1, line * words + i));
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}

/* All are started before the first is waited for; half of the lanes test, half wait. */
WEIR_KERNEL(test_transfer_read, struct test_transfer_args)
{
	u64 wave = weir_active(), first = weir_thread() * args->requests;
	u32 tests = weir_wave() % 2 == 1, left = tests ? args->requests : 0;

	for (u32 i = 0; i < args->requests; i++)
		expect(args->verdict, i,
		       weir_transfer_read(&args->source, transfer_line(args, i), transfer_buffer(args, i),
					  transfer_of(args, i)),
		       WEIR_OK);
	for (u32 iteration = 0; weir_ballot(wave, left != 0) != 0; iteration++) {
		weir_reconverge();
		if (weir_transfer_test(&args->source, transfer_of(args, left ? args->requests - left : 0)))
			left -= left != 0;
		weir_relax(iteration);
	}
	expect(args->verdict, first,
	       weir_transfer_wait(&args->source, transfer_of(args, 0), args->requests, 0), WEIR_OK);
	for (u32 i = 0; i < args->requests; i++) {
		expect(args->verdict, i, transfer_of(args, i)->status, WEIR_OK);
		/* However small the cache: brought in vain so many times, it goes straight to the buffer. */
		expect(args->verdict, i, transfer_of(args, i)->commands <= WEIR_TRANSFER_REFETCHES + 1, 1);
		transfer_check(args, transfer_buffer(args, i), transfer_line(args, i));
	}
}

/* Each lane's lines are its own: a line of the source, read and written elsewhere; then storage to storage.
 */
WEIR_KERNEL(test_transfer_write, struct test_transfer_args)
{
	u64 thread = weir_thread(), lines = args->requests;

	for (u32 i = 0; i < args->requests; i++) {
		expect(args->verdict, i,
		       weir_array_read(&args->source,
				       (thread * lines + i) << (weir_array_line_log2(&args->source) - 3),
				       (u64)1 << (weir_array_line_log2(&args->source) - 3),
				       transfer_buffer(args, i)),
		       WEIR_OK);
		expect(args->verdict, i,
		       weir_transfer_write(&args->target, thread * lines + i, transfer_buffer(args, i),
					   transfer_of(args, i)),
		       WEIR_OK);
	}
	expect(args->verdict, thread,
	       weir_transfer_wait(&args->target.array, transfer_of(args, 0), args->requests, 0), WEIR_OK);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}

WEIR_KERNEL(test_transfer_lines, struct test_transfer_args)
{
	u64 first = weir_thread() * args->requests;
	weir_addr other = transfer_buffer(args, args->requests > 1);

	expect(args->verdict, first,
	       weir_transfer_lines(&args->source, first, &args->target, first, args->requests,
				   transfer_buffer(args, 0), transfer_of(args, 0)),
	       WEIR_OK);
	/* The room has the last line still: buffer to buffer, a line and less than a line at odd places. */
	if (args->requests > 1 && !args->same) {
		weir_transfer_buffers(other, transfer_buffer(args, 0),
				      1u << weir_array_line_log2(&args->source));
		transfer_check(args, other, first + args->requests - 1);
	}
}

/* The first line of the first lane cannot be read: none of its lines is copied, and it alone is told why. */
WEIR_KERNEL(test_transfer_lines_failed, struct test_transfer_args)
{
	u64 first = weir_thread() * args->requests;
	weir_status status = weir_transfer_lines(&args->source, first, &args->target, first, args->requests,
						 transfer_buffer(args, 0), transfer_of(args, 0));

	expect(args->verdict, first, weir_status_nvme(status), first ? 0 : 0x281);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}

/* Lines that are not there, and a line's end that is not aligned. */
WEIR_KERNEL(test_transfer_refused, struct test_transfer_args)
{
	weir_addr buffer = transfer_buffer(args, 0);
	WEIR_GLOBAL struct weir_transfer *transfer = transfer_of(args, 0);

	expect(args->verdict, 0,
	       weir_transfer_read(&args->source, args->source.extent.lines, buffer, transfer), WEIR_E_RANGE);
	expect(args->verdict, 1, weir_transfer_wait(&args->source, transfer, 1, 0), WEIR_E_RANGE);
	expect(args->verdict, 2, weir_transfer_write(&args->target, 0, buffer + 2, transfer),
	       WEIR_E_ALIGNMENT);
	expect(args->verdict, 3, weir_transfer_test(&args->target.array, transfer), 1);
	expect(args->verdict, 4, transfer->status, WEIR_E_ALIGNMENT);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}

/* A line that cannot be read: the status is the command's, whatever comes of a good one and of one that there
 * is none behind it. */
WEIR_KERNEL(test_transfer_failed, struct test_transfer_args)
{
	weir_status status;

	for (u32 i = 0; i < args->requests; i++)
		(void)weir_transfer_read(&args->source, i < 2 ? i : args->source.extent.lines,
					 transfer_buffer(args, i), transfer_of(args, i));
	status = weir_transfer_wait(&args->source, transfer_of(args, 0), args->requests, 0);
	expect(args->verdict, weir_thread(), weir_status_nvme(status) & 0x3fff, 0x281);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}

/* A line of a storage that dies, or has died. */
WEIR_KERNEL(test_transfer_dead, struct test_transfer_args)
{
	WEIR_GLOBAL struct weir_transfer *transfer = transfer_of(args, 0);

	(void)weir_transfer_read(&args->source, transfer_line(args, 0), transfer_buffer(args, 0), transfer);
	expect(args->verdict, weir_thread(), weir_transfer_wait(&args->source, transfer, 1, 0),
	       WEIR_E_DEVICE_DEAD);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}
