/* SPDX-License-Identifier: BSD-3-Clause */
/* simulate/channel.c: what stands in the place of the product's channel.c: commands and answers as messages.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

enum { KIND = 0xff };

struct channel {
	struct weir_channel base;
	struct client *client;
	struct sim_connection *connection;
	unsigned inflight;
	unsigned most;
	bool halted;
};

static u8 *page_of(const struct nvme_sqe *sqe, u32 index, u32 count)
{
	if (!index)
		return (u8 *)(uintptr_t)sqe->prp1;
	return (u8 *)(uintptr_t)(count == 2 ? sqe->prp2 : ((const u64 *)(uintptr_t)sqe->prp2)[index - 1]);
}

void client_take_data(struct sim_message *message)
{
	u32 opcode = message->sqe.cdw0 & KIND, count = (message->sqe.cdw12 & 0xffff) + 1;
	bool moves = opcode == NVME_OPCODE_READ || opcode == NVME_OPCODE_WRITE;

	if (!moves && opcode != NVME_OPCODE_DSM)
		return;
	message->bytes = moves ? count * NVME_VOLUME_BLOCK_BYTES : 16;
	message->data = malloc(message->bytes);
	if (!message->data)
		abort();
	if (opcode == NVME_OPCODE_DSM)
		memcpy(message->data, page_of(&message->sqe, 0, 1), 16);
	for (u32 i = 0; opcode == NVME_OPCODE_WRITE && i < count; i++)
		memcpy(message->data + (size_t)i * NVME_VOLUME_BLOCK_BYTES, page_of(&message->sqe, i, count),
		       NVME_VOLUME_BLOCK_BYTES);
}

static bool channel_submit(struct weir_channel *base, const struct nvme_sqe *sqe, void *argument)
{
	struct channel *channel = (struct channel *)base;
	struct sim_message *message;

	if (channel->inflight == channel->most)
		return false;
	channel->inflight++;
	message = sim_message(channel->connection, true);
	message->sqe = *sqe;
	message->argument = argument;
	client_take_data(message);
	sim_send(message);
	return true;
}

void client_give_data(struct client *client, const struct sim_message *reply, const void *wanted)
{
	u32 count = reply->bytes / NVME_VOLUME_BLOCK_BYTES;

	for (u32 i = 0; i < MOST_OPS && reply->by_outsider; i++)
		if ((uintptr_t)wanted - (uintptr_t)client->ops[i].data < MOST_OP_BYTES)
			client->ops[i].by_outsider = true;
	for (u32 i = 0; i < count; i++)
		memcpy(page_of(&reply->sqe, i, count), reply->data + (size_t)i * NVME_VOLUME_BLOCK_BYTES,
		       NVME_VOLUME_BLOCK_BYTES);
}

/* Where the request of a command has its data. */
static const void *wanted_by(const struct volume_command *command)
{
	return command->fragment->io->iov[0].iov_base;
}

static unsigned channel_poll(struct weir_channel *base, void (*done)(void *argument, u32 status))
{
	struct channel *channel = (struct channel *)base;
	struct sim_message *reply;
	unsigned count = 0;

	while (!channel->halted && (reply = sim_take(channel->connection)) != NULL) {
		channel->inflight--;
		if (reply->data)
			client_give_data(channel->client, reply, wanted_by(reply->argument));
		done(reply->argument, reply->status);
		sim_message_free(reply);
		count++;
	}
	return count;
}

static bool channel_lost(struct weir_channel *base)
{
	return ((struct channel *)base)->connection->lost;
}

static int channel_halt(struct weir_channel *base)
{
	struct channel *channel = (struct channel *)base;

	if (sim_chance(1, 4))
		return -EAGAIN;
	channel->halted = true;
	return 0;
}

static void channel_close(struct weir_channel *base)
{
	struct channel *channel = (struct channel *)base;

	sim_disconnect(channel->connection);
	free(channel);
}

static const struct weir_channel_ops channel_ops = { .submit = channel_submit,
						     .poll = channel_poll,
						     .lost = channel_lost,
						     .halt = channel_halt,
						     .close = channel_close };

int client_channel_open(void *argument, const char *uri, void *memory, size_t bytes,
			struct weir_channel **out)
{
	struct client *client = argument;
	struct sim_connection *connection;
	struct channel *channel;

	(void)memory;
	(void)bytes;
	connection = sim_connect(&engine_node_at(uri)->node, ENGINE_CONNECT_MS * SIM_MS);
	if (!connection)
		return -ENOTCONN;
	connection->waiter = client->lanes ? client_lanes_poller(client) : client->task;
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		abort();
	*channel = (struct channel){ .base = { .ops = &channel_ops },
				     .client = client,
				     .connection = connection,
				     .most = (unsigned)sim_between(1, 16) };
	*out = &channel->base;
	return 0;
}
