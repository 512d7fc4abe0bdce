/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer_kernels.h: arguments of the kernels that write, and the values they agree on.
 *
 * Owns: which lane writes what when, so that the host can say what must be there afterwards.
 * An element is one lane's alone unless it is added to.
 */
#ifndef WEIR_TESTS_WRITER_KERNELS_H
#define WEIR_TESTS_WRITER_KERNELS_H

#include "../rig/kernels.h"

/** test_put_value() - what step @step puts into element @index; the low bytes of it */
WEIR_FN u64 test_put_value(u64 seed, u64 index, u64 step)
{
	return test_mix(index * 1000003 + step * 7919 + seed);
}

/** test_put_index() - the element that lane @thread of @threads writes in step @step: one of its own */
WEIR_FN u64 test_put_index(u64 count, u64 threads, u64 thread, u64 step, u64 salt)
{
	return test_mix(step * threads + thread + salt) % (count / threads) * threads + thread;
}

/** struct test_span - elements of a lane's own part of the array */
struct test_span {
	u64 first;
	u64 count;
};

/** test_span_at() - what lane @thread writes in step @step: from its @each elements, @most at most */
WEIR_FN struct test_span test_span_at(u64 each, u64 most, u64 thread, u64 step, u64 salt)
{
	u64 chance = test_mix(step * 65599 + thread * 31 + salt);
	struct test_span span;

	span.count = chance % (most < each ? most : each) + 1;
	span.first = thread * each + test_mix(chance) % (each - span.count + 1);
	return span;
}

/** struct test_put_args - each lane puts @puts elements of its own, and reads each back */
struct test_put_args {
	struct weir_writer writer[2];
	u32 writer_count;
	u32 puts;
	u64 seed;
	u64 salt;
	weir_addr verdict;
};

/** struct test_add_args - each lane adds to @counters elements, and 1 to the element behind them */
struct test_add_args {
	struct weir_writer writer;
	u32 adds;
	u32 counters;
	weir_addr verdict;
};

/** struct test_pair - an element of an array of structures */
struct test_pair {
	u64 first;
	u64 second;
	u64 third;
};

/**
 * struct test_change_args - all lanes change the same four elements, @rounds times; 2 and 3 begin as 0
 *
 * Element 0 becomes the least of all numbers, 1 the greatest. 2 is a counter by compare-and-swap. Into 3 the
 * lanes exchange numbers; all that come out and the one that stays are all that went in.
 */
struct test_change_args {
	struct weir_writer writer;
	struct weir_writer pairs;
	u32 rounds;
	u32 reserved;
	weir_addr verdict;
};

/** test_change_number() - what lane @thread offers in round @round: not 0, and each another one */
WEIR_FN u64 test_change_number(u64 thread, u64 round, u64 threads)
{
	return (thread * 7919 + round * threads * 7919) % 1000003 + 5;
}

/**
 * struct test_span_args - each lane writes spans of its part, and reads them back
 * @each: elements of a part
 * @most: of a span
 * @buffers: 2 x @span_bytes per lane
 * @skew: bytes by which buffers are moved from where they would be aligned
 */
struct test_span_args {
	struct weir_writer writer;
	u64 each;
	u64 most;
	u64 span_bytes;
	u32 skew;
	u32 steps;
	u64 seed;
	u64 salt;
	weir_addr buffers;
	weir_addr verdict;
};

/**
 * struct test_apart_args - each lane reads or writes a span of its own, of which some cannot be: of three
 * neighbours the first has lines that are good, the second ends behind the array, and of the third the second
 * line cannot be read
 * @bad: element with which that line begins
 * @each: elements of a line
 * @lines: of a span
 * @buffers: room for a span per lane
 * @statuses: u32 per lane
 * @writes: write, of the first two
 */
struct test_apart_args {
	struct weir_writer writer;
	u64 bad;
	u64 each;
	u64 lines;
	weir_addr buffers;
	weir_addr statuses;
	u64 writes;
};

enum { TEST_FLUSH_STRIDE = 21 };

/**
 * struct test_flush_args - each lane puts every 21st element, flushes its range, and looks at the storage
 * @each: elements of a lane
 * @events: two of struct weir_event per lane; 0: not durable
 * @statuses: u32 per lane, what the flush returned
 * @blocks: a block of memory per lane, for looking; 0: none
 */
struct test_flush_args {
	struct weir_writer writer;
	struct weir_disk disk;
	u64 each;
	u64 seed;
	weir_addr events;
	weir_addr statuses;
	weir_addr blocks;
	weir_addr verdict;
	u32 rounds;
	u32 reserved;
};

#endif
