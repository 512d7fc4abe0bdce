/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of a user's own, outside of the tree: its kernel. */
#include <weir/port.h>

#include "count.h"

WEIR_KERNEL(outside_count, struct count_args)
{
	weir_add_u64_relaxed_dev(weir_at(args->sum, weir_shared_u64, 0), weir_thread() + 1);
}
