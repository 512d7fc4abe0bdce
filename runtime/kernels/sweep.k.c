/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines written back, or dropped, because the host asks for it. */
#include <weir/core/cache/flush.h>

#include "sweep.h"

WEIR_KERNEL(weir_sweep, struct weir_sweep_args)
{
	WEIR_GLOBAL struct weir_lines *lines = weir_at(args->lines, struct weir_lines, 0);
	struct weir_sweep sweep;

	sweep.first_key = args->first_key;
	sweep.end_key = args->end_key;
	sweep.first = weir_thread();
	sweep.stride = weir_threads();
	sweep.kind = args->kind;
	sweep.flags = 0;
	sweep.note = args->note;
	if (lines->tier && args->kind == WEIR_SWEEP_DROP)
		(void)weir_lines_drop(weir_active(), lines, sweep);
	else
		(void)weir_lines_sweep(weir_active(), lines, sweep);
}
