/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel that is compiled quickly. */
#include "add.h"

WEIR_KERNEL(opencl_add, struct opencl_add_args)
{
	/* relaxed: a sum, read after the launch has ended */
	weir_add_u64_relaxed_dev(weir_at(args->sum, weir_shared_u64, 0), weir_thread() + 1);
}
