/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks between staging in host memory and where they belong: a wave each, since a copy engine takes long to
 * begin. */
#define WEIR_COPY_BATCH 8 /* host memory is far: more loads under way at a time */
#include <weir/core/queue/copy.h>

#include "copy_list.h"

WEIR_KERNEL(weir_copy_list, struct weir_copy_list_args)
{
	u64 waves = (weir_threads() + weir_lanes() - 1) / weir_lanes(), lanes = weir_active();

	for (u64 i = weir_wave(); i < args->count; i += waves) {
		weir_addr move = args->copies + i * sizeof(struct weir_kernel_move);
		u64 to = weir_data_load_u64(move), from = weir_data_load_u64(move + 8);
		u32 bytes = (u32)weir_data_load_u64(move + 16);

		weir_wave_move(lanes, to, from, weir_rank(lanes, weir_lane()) == 0 ? bytes : 0);
	}
}
