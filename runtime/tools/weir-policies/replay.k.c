/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads lines in the order of a trace. */
#include <weir/array.h>

#include "replay.h"

WEIR_KERNEL(replay, struct replay_args)
{
	u64 wrong = 0;

	for (u64 i = weir_thread(); i < args->count; i += weir_threads()) {
		u64 line = *weir_at(args->lines, u64, i);

		if (weir_array_failed(&args->array))
			continue;
		wrong += weir_array_get_u64(&args->array, line * REPLAY_LINE_WORDS) != replay_word(line);
	}
	/* relaxed: a sum, read by the host after the launch */
	if (wrong)
		(void)weir_add_u64_relaxed_dev(&weir_at(args->verdict, struct replay_verdict, 0)->wrong,
					       wrong);
}
