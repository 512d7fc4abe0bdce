/* SPDX-License-Identifier: BSD-3-Clause */
/* beyond.k.c: parts of the samples' kernels at places that have more than 32 bits, one wave of each. */
#include "../../samples/checkpoint/checkpoint.k.c"

#include "../../samples/resize/resize.k.c"

#include "beyond.h"

/* A tile, wherever it is. */
WEIR_KERNEL(test_beyond_tile, struct test_beyond_args)
{
	WEIR_GLOBAL struct resize_args *images = weir_at(args->args, struct resize_args, 0);

	if (weir_wave() == 0)
		resize_tile(images, args->at, args->bytes, args->from, args->to);
}

/* The rows of the input above and below row @at of the output. */
WEIR_KERNEL(test_beyond_rows, struct test_beyond_args)
{
	WEIR_GLOBAL struct resize_args *images = weir_at(args->args, struct resize_args, 0);

	if (weir_thread() != 0)
		return;
	*weir_at(args->to, u64, 0) = resize_source(images, args->at, 0);
	*weir_at(args->to, u64, 1) = resize_source(images, args->at, 1);
}

/* Between tensors and a buffer. */
WEIR_KERNEL(test_beyond_copy, struct test_beyond_args)
{
	WEIR_GLOBAL struct checkpoint_args *data = weir_at(args->args, struct checkpoint_args, 0);

	if (weir_wave() == 0)
		checkpoint_copy(data, args->at, args->bytes, args->to, args->scatter);
}
