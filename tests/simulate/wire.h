/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h: the simulated network: connections between nodes, and the messages on them.
 *
 * Owns: delays, what is lost, what comes late or twice, and who can reach whom. As with TCP, messages of one
 * connection come in order, unless a duplicate comes later; what was under way when a connection ends may
 * still come, long after another connection was made.
 */
#ifndef WEIR_SIMULATE_WIRE_H
#define WEIR_SIMULATE_WIRE_H

#include <jansson.h>

#include <weir/nvme.h>

#include "sim.h"

enum { SIM_NODES = 24 };

/**
 * struct sim_connection - @arrived: answers that its client has not taken yet; @waiter: who waits for them
 * @closed: by the client
 * @lost: the client knows that it is
 * @last: when the last message arrives, by direction
 */
struct sim_connection {
	struct sim_node *client;
	struct sim_node *server;
	u32 client_incarnation;
	u32 server_incarnation;
	bool closed;
	bool lost;
	u64 last[2];
	u64 calls;
	struct sim_message *arrived;
	struct sim_message *arrived_last;
	struct sim_task *waiter;
	struct sim_connection *next;
};

/**
 * struct sim_message - a command or an answer
 * @number: of the call that it belongs to
 * @admin: to the admin queue
 * @sqe, @data, @bytes: NVMe; @status: of an answer
 * @json: of the daemon's calls; a reference
 * @argument: the client's
 * @by_outsider: as of struct op
 */
struct sim_message {
	struct sim_message *next;
	struct sim_connection *connection;
	bool to_server;
	bool again;
	u64 number;
	bool admin;
	struct nvme_sqe sqe;
	u8 *data;
	u32 bytes;
	u32 status;
	json_t *json;
	void *argument;
	bool by_outsider;
};

/** struct sim_network - how bad it is; @may_disturb: whether a message of it may be slow or lost; @blocked:
 * from, to */
struct sim_network {
	u64 most_delay_ns;
	u32 slow_ppm;      /* of messages, that are delayed for long */
	u32 loss_ppm;      /* of messages, behind which a connection is lost */
	u32 duplicate_ppm; /* of I/O commands */
	bool (*may_disturb)(const struct sim_connection *connection);
	bool blocked[SIM_NODES][SIM_NODES];
	u64 lag_ns[SIM_NODES]; /* of I/O commands to a node, at most */
	void (*receive[SIM_NODES])(struct sim_message *message);
	struct sim_node *nodes[SIM_NODES];
	unsigned count;
};

extern struct sim_network network;

void sim_network_begin(void);
void sim_network_end(void);
/** sim_network_add() - a node; @receive: what it does with a message from a client, which it owns */
void sim_network_add(struct sim_node *node, const char *name, const char *host,
		     void (*receive)(struct sim_message *message));
/** sim_network_died() - connections to a node that was killed break, some of them silently */
void sim_network_died(struct sim_node *node);
/** sim_network_cut() - reset a connection */
void sim_network_cut(void);

/** sim_connect() - the current task waits for it; NULL: @node is not reached */
struct sim_connection *sim_connect(struct sim_node *node, u64 timeout_ns);
void sim_disconnect(struct sim_connection *connection);
struct sim_message *sim_message(struct sim_connection *connection, bool to_server);
void sim_message_free(struct sim_message *message);
void sim_send(struct sim_message *message);
/** sim_reply() - to @message, which is freed */
void sim_reply(struct sim_message *message, u32 status, json_t *json, bool data);
/** sim_take() - an answer that has arrived; NULL: none */
struct sim_message *sim_take(struct sim_connection *connection);
/** sim_call() - send, and wait for the answer; NULL: none came, or the connection was lost */
struct sim_message *sim_call(struct sim_message *message, u64 timeout_ns);
/** sim_drop() - for sim_end() */
void sim_drop(void (*call)(void *argument, u64 word), void *argument);

#endif
