/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate/daemon.c: the daemon's process: its links to engines, and the calls that come.
 *
 * Owns: what stands in the places of link_nvmf.c, serve.c and weir-volumed's main.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"
#include "cluster.h"
#include "volume/daemon/methods.h"
#include "volume/rpc.h"

enum { OPEN_MS = 3000, RETRY_MS = 500, HEARTBEAT_MS = 500, REBUILD_BLOCKS = 2048 };

/* Seeds one after the other have different ones: many passes, as few as there can be, or what daemons have.
 */
static const uint64_t kept_off_ms[] = { 1, 3600000, 3600000, 0 };

struct link {
	struct volume_engine_link base;
	struct engine_node *node;
	struct sim_connection *connection;
};

static struct link *links[2 * NVME_VOLUME_MOST_ENGINES];

static int link_open(struct volume_engine_link *base)
{
	struct link *link = (struct link *)base;

	sim_disconnect(link->connection);
	link->connection = sim_connect(&link->node->node, OPEN_MS * SIM_MS);
	return link->connection ? 0
				: weir_fail(EHOSTUNREACH, "engine %s is not reached", link->node->address);
}

static struct sim_message *send(struct link *link, bool io, const struct nvme_sqe *sqe, const void *data,
				uint32_t bytes, unsigned ms)
{
	struct sim_message *message = sim_message(link->connection, true);

	message->admin = !io;
	message->sqe = *sqe;
	if (bytes) {
		message->bytes = bytes;
		message->data = malloc(bytes);
		if (!message->data)
			abort();
		memcpy(message->data, data, bytes);
	}
	return sim_call(message, ms * SIM_MS);
}

static int link_command(struct volume_engine_link *base, bool io, const struct nvme_sqe *sqe, void *data,
			uint32_t bytes, enum volume_way way, unsigned ms)
{
	struct link *link = (struct link *)base;
	struct sim_message *reply = NULL;
	int status;

	if (link->connection && !link->connection->lost)
		reply = send(link, io, sqe, data, bytes, ms);
	if (!reply) {
		sim_disconnect(link->connection);
		link->connection = NULL;
		return weir_fail(EIO, "engine %s does not answer", link->node->address);
	}
	status = (int)reply->status;
	if (!status && way == VOLUME_FROM_ENGINE)
		memcpy(data, reply->data, bytes);
	sim_message_free(reply);
	return status;
}

static void link_close(struct volume_engine_link *base)
{
	struct link *link = (struct link *)base;

	for (unsigned i = 0; i < sizeof(links) / sizeof(*links); i++)
		if (links[i] == link)
			links[i] = NULL;
	sim_disconnect(link->connection);
	free(link);
}

static const struct volume_engine_link_ops link_ops = { link_open, link_command, link_close };

static int create(struct volume_linker *linker, const char *address, const char *nqn,
		  struct volume_engine_link **out)
{
	struct link *link = calloc(1, sizeof(*link));
	unsigned i = 0;

	(void)linker;
	(void)nqn;
	if (!link)
		abort();
	link->base.ops = &link_ops;
	link->node = &cluster.engines[strtoul(address + 4, NULL, 10) - 1];
	while (links[i])
		i++;
	links[i] = link;
	*out = &link->base;
	return 0;
}

bool daemon_has(const struct engine_node *node)
{
	for (unsigned i = 0; i < sizeof(links) / sizeof(*links); i++)
		if (links[i] && links[i]->node == node && links[i]->connection &&
		    !links[i]->connection->lost &&
		    links[i]->connection->server_incarnation == node->node.incarnation)
			return true;
	return false;
}

static uint64_t now_ms(void)
{
	return (sim.now + cluster.daemon.node.clock_ns) / SIM_MS;
}

static void note_map(const struct volumed *d)
{
	if (!d->counted)
		return;
	for (unsigned i = 0; i < MOST_ENGINES; i++)
		cluster.engines[i].is_out = true;
	for (unsigned i = 0; i < d->engine_count; i++)
		cluster.engines[strtoul(d->engines[i].info.address + 4, NULL, 10) - 1].is_out =
			d->engines[i].info.state != NVME_VOLUME_ENGINE_IN;
}

/* As the daemon is started: with the engines that were in; maps have the others. */
static int prepare(struct volumed **d)
{
	static struct volume_linker linker = { .create = create };
	int error = volumed_create(&(struct volumed_options){ .linker = &linker,
							      .lease_ms = cluster.lease_ms,
							      .heartbeat_ms = HEARTBEAT_MS,
							      .rebuild_blocks = REBUILD_BLOCKS,
							      .kept_off_ms = kept_off_ms[sim.seed % 4],
							      .now_ms = now_ms },
				   d);

	for (unsigned i = 0; i < MOST_ENGINES && !error; i++) {
		struct nvme_volume_engine info = { .domain = i, .weight = 100, .nqn = "nqn.engine" };

		if (cluster.engines[i].is_out)
			continue;
		memcpy(info.address, cluster.engines[i].address, sizeof(info.address));
		error = volumed_engine_note(*d, &info, false);
	}
	return error;
}

static void reply(struct sim_message *message, json_t *answer)
{
	const char *method = json_string_value(json_object_get(message->json, "method"));
	const struct volumed *d = cluster.daemon.d;

	cluster.map_calls += method && !strcmp(method, "map_get");
	sim_trace("the daemon answers %llu, map %llu: %llu",
		  (unsigned long long)message->connection->client->id, (unsigned long long)d->epoch,
		  (unsigned long long)!json_object_get(answer, "error"));
	if (sim.trace) {
		char *asked = json_dumps(message->json, JSON_COMPACT);
		char *said = json_dumps(json_object_get(answer, "error"), JSON_COMPACT);

		printf("          %s %s\n", asked, said ? said : "");
		free(asked);
		free(said);
	}
	sim_reply(message, 0, answer, false);
}

static void serve(struct volumed *d, struct sim_message *message)
{
	json_t *answer = volumed_answer(d, NULL, message->json);

	note_map(d);
	reply(message, answer);
}

static void append(struct daemon_node *node, struct sim_message *message)
{
	message->next = NULL;
	if (node->calls)
		node->calls_last->next = message;
	else
		node->calls = message;
	node->calls_last = message;
}

/* Calls that do not wait; a client is told at once to ask again for what may be put off. */
static void serve_between(void *argument)
{
	struct daemon_node *node = argument;
	struct sim_message *calls = node->calls;

	node->calls = NULL;
	while (calls) {
		struct sim_message *message = calls;

		calls = message->next;
		if (volumed_urgency_of(message->json) == VOLUMED_WAITS)
			append(node, message);
		else
			reply(message, volumed_answer_between(node->d, NULL, message->json));
	}
}

static void run(void *argument)
{
	struct daemon_node *node = argument;
	int error = prepare(&node->d);

	while (!error && (error = volumed_gather(node->d)) == -EAGAIN) {
		sim_sleep(RETRY_MS * SIM_MS);
		error = 0;
	}
	if (error) {
		sim_fail("the daemon does not start: %s", weir_last_error());
		return;
	}
	note_map(node->d);
	sim_trace("the daemon serves, map %llu", (unsigned long long)node->d->epoch);
	node->serving = true;
	node->d->between = (struct volume_between){ serve_between, node };
	for (;;) {
		unsigned ms;

		node->works = true;
		ms = volumed_step(node->d);
		note_map(node->d);
		while (node->calls) {
			struct sim_message *message = node->calls;

			node->calls = message->next;
			serve(node->d, message);
		}
		node->works = false;
		sim_sleep(ms ? ms * SIM_MS : SIM_US);
	}
}

void daemon_receive(struct sim_message *message)
{
	struct daemon_node *node = &cluster.daemon;

	append(node, message);
	if (node->serving)
		sim_wake(node->task);
}

void daemon_start(void)
{
	cluster.daemon.node.alive = true;
	cluster.daemon.task = sim_spawn(&cluster.daemon.node, run, &cluster.daemon);
}

void daemon_kill(void)
{
	struct daemon_node *node = &cluster.daemon;

	sim_trace("the daemon ends");
	sim_kill(&node->node);
	sim_network_died(&node->node);
	while (node->calls) {
		struct sim_message *message = node->calls;

		node->calls = message->next;
		sim_message_free(message);
	}
	if (node->d)
		volumed_destroy(node->d);
	node->d = NULL;
	node->serving = false;
	node->task = NULL;
}
