/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that write through the cache. */
#include <weir/writer.h>

#include "../rig/verdict.h"
#include "writer_kernels.h"

WEIR_FN void put_check_u128(WEIR_GLOBAL struct weir_writer *writer, weir_addr verdict, u64 index, u64 value)
{
	struct weir_u128 wide;

	wide.low = value;
	wide.high = ~value;
	weir_writer_put_u128(writer, index, wide);
	wide = weir_array_get_u128(&writer->array, index);
	expect(verdict, index, wide.low, value);
	expect(verdict, index, wide.high, ~value);
}

/* A kernel for each width: compilers need far longer for one that has all calls in line. */
#define PUT_CHECK(type)                                                                                      \
	WEIR_FN void put_check_##type(WEIR_GLOBAL struct weir_writer *writer, weir_addr verdict, u64 index,  \
				      u64 value)                                                             \
	{                                                                                                    \
		weir_writer_put_##type(writer, index, (type)value);                                          \
		expect(verdict, index, weir_array_get_##type(&writer->array, index), (type)value);           \
	}

#define PUT_KERNEL(type)                                                                                     \
	WEIR_KERNEL(test_put_##type, struct test_put_args)                                                   \
	{                                                                                                    \
		for (u64 step = 0; step < args->puts; step++) {                                              \
			WEIR_GLOBAL struct weir_writer *writer = &args->writer[step % args->writer_count];   \
			u64 index = test_put_index(writer->array.count, weir_threads(), weir_thread(), step, \
						   args->salt);                                              \
                                                                                                             \
			put_check_##type(writer, args->verdict, index,                                       \
					 test_put_value(args->seed, index, step));                           \
			weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);                       \
		}                                                                                            \
	}

PUT_CHECK(u8)
PUT_CHECK(u16)
PUT_CHECK(u32)
PUT_CHECK(u64)
PUT_KERNEL(u8)
PUT_KERNEL(u16)
PUT_KERNEL(u32)
PUT_KERNEL(u64)
PUT_KERNEL(u128)

/* The sum of what the last counter was before tells whether any addition was lost or came twice. */
#define ADD_KERNEL(type)                                                                                     \
	WEIR_KERNEL(test_add_##type, struct test_add_args)                                                   \
	{                                                                                                    \
		WEIR_GLOBAL struct test_verdict *verdict = verdict_at(args->verdict);                        \
                                                                                                             \
		for (u64 step = 0; step < args->adds; step++) {                                              \
			u64 index = test_mix(step * weir_threads() + weir_thread()) % args->counters;        \
                                                                                                             \
			(void)weir_writer_add_##type(&args->writer, index, (type)index + 1);                 \
			weir_add_u64_relaxed_dev(&verdict->sum,                                              \
						 weir_writer_add_##type(&args->writer, args->counters, 1));  \
			weir_add_u64_relaxed_dev(&verdict->good, 1);                                         \
		}                                                                                            \
	}

ADD_KERNEL(u32)
ADD_KERNEL(u64)

WEIR_ARRAY_STRUCT(test_pair, struct test_pair)
WEIR_WRITER_STRUCT(test_pair, struct test_pair)

/* One more than what is there, by compare-and-swap; the lanes that lose try again, in loops that they leave
 * together. */
WEIR_FN void count_by_cas(WEIR_GLOBAL struct weir_writer *writer, u64 index, u32 narrow)
{
	u32 done = 0;
	u64 wave = weir_active(), seen = 0;

	while (weir_ballot(wave, !done)) {
		u64 expected = done ? ~(u64)0 : seen, value = done ? ~(u64)0 : seen + 1, found;

		weir_reconverge();
		found = narrow ? weir_writer_cas_u32(writer, index, (u32)expected, (u32)value)
			       : weir_writer_cas_u64(writer, index, expected, value);
		done |= found == expected;
		seen = found;
	}
}

WEIR_FN void change_u32(WEIR_GLOBAL struct test_change_args *args, u64 number)
{
	(void)weir_writer_min_u32(&args->writer, 0, (u32)number);
	(void)weir_writer_max_u32(&args->writer, 1, (u32)number);
	count_by_cas(&args->writer, 2, 1);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->sum,
				 weir_writer_exchange_u32(&args->writer, 3, (u32)number));
	expect(args->verdict, 0, weir_writer_cas_u32(&args->writer, 0, 1, 2) != 1,
	       1); /* nobody stores 1: it stays */
}

WEIR_FN void change_u64(WEIR_GLOBAL struct test_change_args *args, u64 number)
{
	u64 wide = number << 32;

	(void)weir_writer_min_u64(&args->writer, 0, wide);
	(void)weir_writer_max_u64(&args->writer, 1, wide);
	count_by_cas(&args->writer, 2, 0);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->sum,
				 weir_writer_exchange_u64(&args->writer, 3, wide) >> 32);
	expect(args->verdict, 0, weir_writer_cas_u64(&args->writer, 0, 1, 2) != 1, 1);
}

#define CHANGE_KERNEL(type)                                                                                  \
	WEIR_KERNEL(test_change_##type, struct test_change_args)                                             \
	{                                                                                                    \
		for (u32 round = 0; round < args->rounds; round++)                                           \
			change_##type(args, test_change_number(weir_thread(), round, weir_threads()));       \
	}

CHANGE_KERNEL(u32)
CHANGE_KERNEL(u64)

WEIR_KERNEL(test_change_pairs, struct test_change_args)
{
	for (u32 round = 0; round < args->rounds; round++) {
		u64 number = test_change_number(weir_thread(), round, weir_threads());
		struct test_pair pair;

		pair.first = number;
		pair.second = ~number;
		pair.third = round;
		weir_writer_put_test_pair(&args->pairs, weir_thread(), pair);
		pair = weir_array_get_test_pair(&args->pairs.array, weir_thread());
		expect(args->verdict, weir_thread(), pair.first + pair.second, ~(u64)0);
		expect(args->verdict, weir_thread(), pair.third, round);
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
	}
}

WEIR_KERNEL(test_span, struct test_span_args)
{
	u32 bytes = args->writer.array.element_bytes;
	weir_addr out = args->buffers + weir_thread() * 2 * args->span_bytes + args->skew;
	weir_addr in = out + args->span_bytes - args->skew;

	for (u64 step = 0; step < args->steps; step++) {
		struct test_span span = test_span_at(args->each, args->most, weir_thread(), step, args->salt);

		/* bytes, so that elements of every size are the same here */
		for (u64 i = 0; i < span.count * bytes; i++)
			*weir_at(out, u8, i) = (u8)test_put_value(args->seed, span.first * bytes + i, step);
		expect(args->verdict, step, weir_writer_write(&args->writer, span.first, span.count, out),
		       WEIR_OK);
		expect(args->verdict, step, weir_array_read(&args->writer.array, span.first, span.count, in),
		       WEIR_OK);
		for (u64 i = 0; i < span.count * bytes; i++)
			expect(args->verdict, span.first * bytes + i, *weir_at(in, u8, i),
			       *weir_at(out, u8, i));
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
	}
}

/* Lanes of a wave go from line to line together: the error of one is not another's, and stays its own. */
WEIR_KERNEL(test_apart, struct test_apart_args)
{
	WEIR_GLOBAL struct weir_array *array = &args->writer.array;
	u64 count = args->each * args->lines, third = weir_thread() % 3;
	u64 first = third == 0   ? args->bad + args->each * (1 + weir_thread())
		    : third == 1 ? array->count - count + 1
				 : args->bad - args->each;
	weir_addr buffer = args->buffers + weir_thread() * count * 8;
	WEIR_GLOBAL u32 *status = weir_at(args->statuses, u32, weir_thread());

	if (args->writes)
		*status = weir_writer_write(&args->writer, first, third == 2 ? 0 : count, buffer);
	else
		*status = weir_array_read(array, first, count, buffer);
}

/* Block-sized parts: what a flush returns for must be on the storage. */
WEIR_KERNEL(test_flush, struct test_flush_args)
{
	u64 first = weir_thread() * args->each;
	weir_addr event = args->events ? args->events + weir_thread() * 2 * sizeof(struct weir_event) : 0;
	weir_status status = WEIR_OK;

	for (u64 step = 0; step < args->rounds; step++) {
		for (u64 i = 0; i < args->each; i += TEST_FLUSH_STRIDE)
			weir_writer_put_u64(&args->writer, first + i,
					    test_put_value(args->seed, first + i, step));
		status = weir_writer_flush(&args->writer, first, args->each, event);
		if (args->blocks && status == WEIR_OK) {
			weir_addr block = args->blocks + weir_thread() * args->each * 8;

			status = weir_read(&args->disk, first * 8 >> args->disk.block_log2,
					   (u32)(args->each * 8 >> args->disk.block_log2), block,
					   weir_at(event, struct weir_event, 1), 0);
			for (u64 i = 0; i < args->each; i += TEST_FLUSH_STRIDE)
				expect(args->verdict, first + i, weir_data_load_u64(block + i * 8),
				       test_put_value(args->seed, first + i, step));
		}
	}
	*weir_at(args->statuses, u32, weir_thread()) = status;
}
