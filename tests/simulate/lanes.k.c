/* SPDX-License-Identifier: BSD-3-Clause */
/* simulate/lanes.k.c: what lanes of a simulated client do: the core as it is, a lane a wave. */
#include <weir/disk.h>

#include "lanes.h"

/* A command that is still under way keeps its buffer: whoever waits goes on waiting. */
void lane_kernel(struct lane_request *request)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_at(request->disk, struct weir_disk, 0);
	WEIR_GLOBAL struct weir_event *event = weir_at(request->event, struct weir_event, 0);
	struct weir_request command =
		weir_block_request(request->opcode, request->vba, request->blocks, request->buffer, event);

	command.flags = request->flags;
	(void)weir_event_start(event);
	request->status = weir_disk_submit(disk, command);
	if (request->status != WEIR_OK) {
		weir_event_refuse(event, request->status);
		return;
	}
	do
		request->status = weir_wait(disk, event, request->timeout_us);
	while (request->status == WEIR_E_TIMEOUT);
}
