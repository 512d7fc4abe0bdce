/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that no controller will answer any more, ended by a lane: so on every device. */
#include <weir/core/queue/cq.h>

#include "end_commands.h"

WEIR_KERNEL(weir_end_commands, struct weir_end_commands_args)
{
	for (u32 i = 0; weir_thread() == 0 && i < args->queue_count; i++)
		(void)weir_cq_end_all(weir_at(args->queues, struct weir_queue, i), args->status);
}
