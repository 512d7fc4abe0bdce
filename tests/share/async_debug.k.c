/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of async_debug_test.c, as a debug build has them. */
#ifndef WEIR_DEBUG
#define WEIR_DEBUG
#endif
#include <weir/async.h>

#include "async.h"

/* One event for two requests at once; @statuses: u32[4]: first, second, the wait, and a third after it. */
WEIR_KERNEL(test_event_reused, struct test_reuse_args)
{
	WEIR_GLOBAL u32 *statuses = weir_at(args->statuses, u32, 0);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->event, struct weir_event, 0);

	if (weir_thread() != 0)
		return;
	statuses[0] = weir_read_async(&args->disk, 5, 1, args->buffer, event);
	statuses[1] = weir_read_async(&args->disk, 6, 1, args->buffer + 512, event);
	if (args->leave)
		return;
	statuses[2] = weir_wait(&args->disk, event, 0);
	statuses[3] = weir_read_async(&args->disk, 7, 1, args->buffer + 512, event);
	statuses[3] = statuses[3] == WEIR_OK ? weir_wait(&args->disk, event, 0) : statuses[3];
}

WEIR_KERNEL(test_event_seen, struct test_reuse_args)
{
	WEIR_GLOBAL u32 *statuses = weir_at(args->statuses, u32, 0);

	if (weir_thread() == 0)
		statuses[2] = weir_wait(&args->disk, weir_at(args->event, struct weir_event, 0), 0);
}
