/* SPDX-License-Identifier: BSD-3-Clause */
/* simulate/lane.c: what lanes of a simulated client do: the core as it is, a lane a wave. */
#include <weir/disk.h>

#include "lanes.h"

/* As programs that poll: whatever its first try comes to is how it ends. */
static weir_status poll_once(WEIR_GLOBAL struct weir_disk *disk, WEIR_GLOBAL struct weir_event *event)
{
	u64 wave = weir_active(), word = 0;

	WEIR_WAIT_LOOP(wave, word == 0, iteration) {
		word = weir_event_test(event);
		weir_wait_help(wave, word == 0, disk, iteration, iteration);
	}
	return weir_event_status(word);
}

/* As weir_write() and its like do; what has flags is waited for as by lanes that do not know what it was. */
static weir_status wait_for(WEIR_GLOBAL struct weir_disk *disk, WEIR_GLOBAL struct weir_event *event,
			    const struct lane_request *request)
{
	if (request->flags)
		return weir_wait(disk, event, request->timeout_us);
	return weir_block_wait(disk, request->opcode, request->vba, request->blocks, request->buffer, event,
			       request->timeout_us);
}

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
	if (request->once) {
		request->status = poll_once(disk, event);
		return;
	}
	do
		request->status = wait_for(disk, event, request);
	while (request->status == WEIR_E_TIMEOUT);
}
