/* SPDX-License-Identifier: BSD-3-Clause */
/* sum.k.c: the sum of all bytes of a mini-batch, as a training step would use them. */
#include <weir/port.h>

#include "sum.h"

WEIR_KERNEL(test_dataset_sum, struct test_dataset_sum_args)
{
	u64 sum = 0;

	for (u64 row = weir_thread(); row < args->count; row += weir_threads()) {
		u32 length = *weir_at(args->lengths, u32, row);

		for (u32 i = 0; i < length; i++)
			sum += weir_data_load_u8(args->rows + row * args->row_bytes + i);
	}
	/* relaxed: read after the kernel */
	(void)weir_add_u64_relaxed_dev(&weir_at(args->sum, struct test_dataset_sum, 0)->total, sum);
}
