/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.c: messages on their way. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { PPM = 1000000 };

static const u64 PATIENT_NS = 2500 * SIM_MS; /* what a connection lives without an answer: keep alive */
static const u64 RESEND_NS = 200 * SIM_MS;

struct sim_network network;
static struct sim_connection *connections;

void sim_network_begin(void)
{
	network = (struct sim_network){ .most_delay_ns = 300 * SIM_US };
	connections = NULL;
}

void sim_network_end(void)
{
	while (connections) {
		struct sim_connection *next = connections->next;

		while (connections->arrived)
			sim_message_free(sim_take(connections));
		free(connections);
		connections = next;
	}
}

void sim_network_add(struct sim_node *node, const char *name, const char *host,
		     void (*receive)(struct sim_message *message))
{
	if (network.count == SIM_NODES)
		abort();
	*node = (struct sim_node){ .name = name, .host = host, .id = network.count, .alive = true };
	network.nodes[network.count] = node;
	network.receive[network.count++] = receive;
}

struct sim_message *sim_message(struct sim_connection *connection, bool to_server)
{
	struct sim_message *message = calloc(1, sizeof(*message));

	if (!message)
		abort();
	message->connection = connection;
	message->to_server = to_server;
	return message;
}

void sim_message_free(struct sim_message *message)
{
	json_decref(message->json);
	free(message->data);
	free(message);
}

static void lose(void *argument, u64 word)
{
	struct sim_connection *connection = argument;

	(void)word;
	if (connection->lost)
		return;
	connection->lost = true;
	sim_wake(connection->waiter);
}

static bool is_reached(const struct sim_node *from, const struct sim_node *to)
{
	return !network.blocked[from->id][to->id];
}

static void arrive(struct sim_message *message)
{
	struct sim_connection *connection = message->connection;

	if (message->to_server) {
		network.receive[connection->server->id](message);
		return;
	}
	if (connection->closed || connection->lost) {
		sim_message_free(message);
		return;
	}
	message->next = NULL;
	if (connection->arrived)
		connection->arrived_last->next = message;
	else
		connection->arrived = message;
	connection->arrived_last = message;
	sim_wake(connection->waiter);
}

/* @since: when it was sent. */
static void deliver(void *argument, u64 since)
{
	struct sim_message *message = argument;
	struct sim_connection *connection = message->connection;
	struct sim_node *from = message->to_server ? connection->client : connection->server;
	struct sim_node *to = message->to_server ? connection->server : connection->client;
	u32 incarnation =
		message->to_server ? connection->server_incarnation : connection->client_incarnation;

	if (!to->alive || to->incarnation != incarnation) {
		if (message->to_server && to->alive)
			lose(connection, 0);
		sim_message_free(message);
		return;
	}
	if (!is_reached(from, to)) {
		if (sim.now - since > PATIENT_NS)
			lose(connection, 0);
		if ((connection->lost || connection->closed) && sim_chance(1, 2)) {
			sim_message_free(message);
			return;
		}
		sim_at(RESEND_NS, deliver, message, since);
		return;
	}
	arrive(message);
}

static u64 delay(void)
{
	return 20 * SIM_US + sim_below(network.most_delay_ns);
}

/* Once drawn, and if the faults of now allow it. */
static bool is_drawn(u32 ppm, const struct sim_connection *connection)
{
	return ppm && sim_chance(ppm, PPM) && network.may_disturb(connection);
}

static struct sim_message *copy_of(const struct sim_message *message)
{
	struct sim_message *copy = sim_message(message->connection, true);

	*copy = *message;
	copy->again = true;
	if (message->data) {
		copy->data = malloc(message->bytes);
		if (!copy->data)
			abort();
		memcpy(copy->data, message->data, message->bytes);
	}
	return copy;
}

void sim_send(struct sim_message *message)
{
	struct sim_connection *connection = message->connection;
	struct sim_node *from = message->to_server ? connection->client : connection->server;
	u32 incarnation =
		message->to_server ? connection->client_incarnation : connection->server_incarnation;
	u64 *last = &connection->last[message->to_server], at = sim.now + delay();

	if (is_drawn(network.slow_ppm, connection))
		at += sim_below(3 * SIM_S);
	if (message->to_server && !message->admin && !message->json)
		at += sim_below(network.lag_ns[connection->server->id]);
	if (!from->alive || from->incarnation != incarnation || (message->to_server && connection->lost)) {
		sim_message_free(message);
		return;
	}
	if (is_drawn(network.loss_ppm, connection)) {
		sim_trace("the message from %llu to %llu is lost", (unsigned long long)from->id,
			  (unsigned long long)(message->to_server ? connection->server->id
								  : connection->client->id));
		sim_at(sim_below(PATIENT_NS), lose, connection, 0);
		sim_message_free(message);
		return;
	}
	if (message->to_server && !message->admin && !message->json && sim_chance(network.duplicate_ppm, PPM))
		sim_at(sim_below(4 * SIM_S), deliver, copy_of(message), sim.now);
	*last = at > *last ? at : *last + 1;
	sim_at(*last - sim.now, deliver, message, sim.now);
}

void sim_reply(struct sim_message *message, u32 status, json_t *json, bool data)
{
	struct sim_message *reply = sim_message(message->connection, false);

	if (message->again) {
		sim_message_free(reply);
		sim_message_free(message);
		json_decref(json);
		return;
	}
	reply->number = message->number;
	reply->argument = message->argument;
	reply->status = status;
	reply->sqe = message->sqe;
	reply->by_outsider = message->by_outsider;
	reply->json = json;
	if (data) {
		reply->data = message->data;
		reply->bytes = message->bytes;
		message->data = NULL;
	}
	sim_message_free(message);
	sim_send(reply);
}

struct sim_message *sim_take(struct sim_connection *connection)
{
	struct sim_message *message = connection->arrived;

	if (message)
		connection->arrived = message->next;
	return message;
}

struct sim_connection *sim_connect(struct sim_node *node, u64 timeout_ns)
{
	struct sim_node *self = sim.current->node;
	u64 end = sim.now + timeout_ns;
	struct sim_connection *connection;

	for (;;) {
		sim_sleep(2 * delay());
		if (!self->alive)
			return NULL;
		if (is_reached(self, node) && is_reached(node, self))
			break;
		if (sim.now >= end)
			return NULL;
		sim_sleep(RESEND_NS);
	}
	if (!node->alive || node->stalled_until > sim.now + SIM_S)
		return NULL;
	connection = calloc(1, sizeof(*connection));
	if (!connection)
		abort();
	*connection = (struct sim_connection){ .client = self,
					       .server = node,
					       .client_incarnation = self->incarnation,
					       .server_incarnation = node->incarnation,
					       .next = connections };
	connections = connection;
	return connection;
}

void sim_disconnect(struct sim_connection *connection)
{
	if (!connection)
		return;
	connection->closed = true;
	connection->waiter = NULL;
	while (connection->arrived)
		sim_message_free(sim_take(connection));
}

static struct sim_message *answer_to(struct sim_connection *connection, u64 number)
{
	struct sim_message *found;

	while ((found = sim_take(connection)) != NULL) {
		if (found->number == number)
			return found;
		sim_message_free(found); /* of a call that was not waited for */
	}
	return NULL;
}

struct sim_message *sim_call(struct sim_message *message, u64 timeout_ns)
{
	struct sim_connection *connection = message->connection;
	u64 end = sim.now + timeout_ns, number = ++connection->calls;
	struct sim_message *found = NULL;

	message->number = number;
	connection->waiter = sim.current;
	sim_send(message);
	while (!(found = answer_to(connection, number)) && !connection->lost && sim.now < end)
		sim_sleep(end - sim.now);
	connection->waiter = NULL;
	return found;
}

void sim_network_died(struct sim_node *node)
{
	for (struct sim_connection *at = connections; at; at = at->next) {
		if (at->server != node || at->closed || at->lost)
			continue;
		sim_at(sim_chance(2, 3) ? SIM_MS : PATIENT_NS, lose, at, 0);
	}
}

void sim_network_cut(void)
{
	struct sim_connection *chosen = NULL;
	u64 count = 0;

	for (struct sim_connection *at = connections; at; at = at->next)
		if (!at->closed && !at->lost && !sim_below(++count))
			chosen = at;
	if (!chosen)
		return;
	sim_trace("the connection from %llu to %llu is reset", (unsigned long long)chosen->client->id,
		  (unsigned long long)chosen->server->id);
	lose(chosen, 0);
}

void sim_drop(void (*call)(void *argument, u64 word), void *argument)
{
	if (call == deliver)
		sim_message_free(argument);
}
