/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate/intruder.c: a host that may use another volume, and tries to use this one.
 *
 * Owns: its commands: with the numbers of others, with epochs that it overheard, whole commands of others
 * sent again on its own connection, admin commands. None may be carried out.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

enum { CONNECT_MS = 500, ANSWER_MS = 3000, PAUSE_MS = 400, FIRST_ADMIN = 0xc1, ADMINS = 0x20, NUMBERS = 6 };

static struct nvme_sqe overheard;

void intruder_overhears(const struct sim_message *message)
{
	if (message->connection->client != &cluster.intruder && !message->admin)
		overheard = message->sqe;
}

/* Somebody's command, or one of its own making with somebody's number and epochs. */
static void draw_command(struct sim_message *message)
{
	static const u8 opcodes[] = { NVME_OPCODE_READ, NVME_OPCODE_WRITE, NVME_OPCODE_WRITE_ZEROES };
	struct nvme_sqe *sqe = &message->sqe;

	*sqe = overheard;
	message->admin = sim_chance(1, 3);
	if (message->admin)
		sqe->cdw0 = FIRST_ADMIN + (u32)sim_below(ADMINS);
	else if ((sqe->cdw0 & 0xff) == NVME_OPCODE_FLUSH || (sqe->cdw0 & 0xff) == NVME_OPCODE_DSM ||
		 sim_chance(1, 2))
		sqe->cdw0 = opcodes[sim_below(sizeof(opcodes))];
	if (sim_chance(1, 2))
		sqe->cdw11 = (sqe->cdw11 & 0xffff0000) | (u32)sim_below(NUMBERS);
	if (!message->admin)
		sqe->cdw12 &= NVME_RW_FUA;
	message->bytes = NVME_VOLUME_BLOCK_BYTES;
	message->data = calloc(1, message->bytes);
	if (!message->data)
		abort();
}

static void intrude(struct sim_connection *connection)
{
	struct sim_message *message = sim_message(connection, true), *reply;

	draw_command(message);
	reply = sim_call(message, ANSWER_MS * SIM_MS);
	if (!reply)
		return;
	if (!reply->status)
		sim_fail("an intruder's command %#x is carried out, with volume and client %#x",
			 reply->sqe.cdw0 & 0xff, reply->sqe.cdw11);
	sim_message_free(reply);
}

void intruder_run(void *argument)
{
	(void)argument;
	while (!cluster.over) {
		struct engine_node *node = &cluster.engines[sim_below(MOST_ENGINES)];
		struct sim_connection *connection;

		sim_sleep(sim_below(PAUSE_MS) * SIM_MS);
		if (!node->ready || !overheard.cdw0)
			continue;
		connection = sim_connect(&node->node, CONNECT_MS * SIM_MS);
		for (u64 i = sim_below(8); connection && i; i--)
			intrude(connection);
		sim_disconnect(connection);
	}
}

void intruder_begin(void)
{
	memset(&overheard, 0, sizeof(overheard));
	sim_network_add(&cluster.intruder, "intruder", INTRUDER_HOST, NULL);
}
