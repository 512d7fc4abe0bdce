/* SPDX-License-Identifier: BSD-3-Clause */
/* histogram.k.c: one portable file, compiled for every backend. */
#include <weir/array.h>

#include "histogram.h"

WEIR_KERNEL(histogram, struct histogram_args)
{
	for (u64 i = weir_thread(); i < args->values.count; i += weir_threads()) {
		u32 value = weir_array_get_u32(&args->values, i); /* cache, queues, NVMe: inside */
		weir_add_u64_relaxed_dev(weir_at(args->bins, weir_shared_u64, value & 255), 1);
	}
}
