/* SPDX-License-Identifier: BSD-3-Clause */
/* far.h: arguments of the kernels of far_test.c. */
#ifndef WEIR_TESTS_FAR_H
#define WEIR_TESTS_FAR_H

#include <weir/abi.h>

/* How one lane comes to an element. */
enum {
	FAR_GET,
	FAR_GET_U32, /* its low half */
	FAR_FOUR,
	FAR_RUN,
	FAR_TRY_RUN,
	FAR_VIEW,
	FAR_CURSOR,
	FAR_GATHER,
	FAR_STRIDED, /* from element 1 on, in one step */
	FAR_SPAN,
	FAR_UNALIGNED, /* three bytes behind it */
	FAR_UNALIGNED_RUN,
	FAR_UNALIGNED_SPAN,
	FAR_COPY,
	FAR_TRANSFER,
	FAR_PREFETCH,
	FAR_PREFETCH_LIST,
	FAR_READS,
	/* those from here on write it, and have its line written back */
	FAR_PUT = FAR_READS,
	FAR_WRITE_SPAN,
	FAR_WRITE_COPY,
	FAR_WRITE_TRANSFER,
	FAR_LINES, /* its line comes from three lines before it in @array */
	FAR_WAYS
};

/**
 * struct test_far_args - one lane, one access to element @index of words of 8 bytes
 * @array: words
 * @narrow: the same, as elements of 4 bytes
 * @odd: words from byte 3 on
 * @writer: words that are written to
 * @value: to write
 * @room: a line
 * @result: u64: what was read; of writes the status
 * @transfer: struct weir_transfer
 */
struct test_far_args {
	struct weir_array array;
	struct weir_array narrow;
	struct weir_unaligned odd;
	struct weir_writer writer;
	u64 index;
	u64 value;
	weir_addr room;
	weir_addr result;
	weir_addr transfer;
	u32 kind;
	u32 reserved;
};

#endif
