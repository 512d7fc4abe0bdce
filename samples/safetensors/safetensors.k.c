/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of tensors, and memory made unlike any. */
#include <weir/port.h>

#include "safetensors.h"

WEIR_KERNEL(safetensors_sum, struct safetensors_args)
{
	for (u64 i = 0; i < args->count; i++) {
		WEIR_GLOBAL struct safetensors_offset *index =
			weir_at(args->indices, struct safetensors_offset, i);
		u64 words = (index->bytes + 7) / 8, sum = 0;

		for (u64 at = weir_thread(); at < words; at += weir_threads())
			sum += safetensors_term(*weir_at(index->address, u64, at), at, index->bytes - at * 8);
		if (weir_thread() < words)
			(void)weir_add_u64_relaxed_dev(&index->sum, sum); /* a sum; read after the kernel */
	}
}

WEIR_KERNEL(safetensors_poison, struct safetensors_args)
{
	for (u64 i = weir_thread(); i < args->words; i += weir_threads())
		*weir_at(args->memory, u64, i) = SAFETENSORS_POISON;
}
