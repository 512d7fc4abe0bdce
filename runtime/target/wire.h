/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h: what carries a connection: TCP or RDMA; private to this folder, a part of parts.h.
 *
 * Owns: the border between what a command is and how its bytes travel.
 */
#ifndef WEIR_TARGET_WIRE_H
#define WEIR_TARGET_WIRE_H

#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>

#include <weir/types.h>

struct command;
struct connection;
struct ibv_mr;
struct rdma_cm_id;
struct target_listener;
struct target_rdma;
struct weir_target;

/**
 * struct target_wire - what carries capsules and data of a connection; all above it is the same for each
 * @keyed: SGLs have keys of the host's memory
 * @watch: have the server wait for what comes; 0 or -1
 * @ready: something has come
 * @grant: bring @command's data here, all of it; then target_command_run()
 * @respond: send @command's end, and its data; then target_command_free()
 * @flush: send what is to be sent; false: the connection has ended
 * @close: no more comes in, and nothing goes out
 * @shutdown: have it end on its own thread; any thread, under target.lock
 * @unregister: @command's buffer is to be freed
 * @release: free what is its own; after @close
 * @local: the address by which the host came
 */
struct target_wire {
	bool keyed;
	int (*watch)(struct connection *connection);
	void (*ready)(struct connection *connection);
	void (*grant)(struct command *command);
	void (*respond)(struct command *command);
	bool (*flush)(struct connection *connection);
	void (*close)(struct connection *connection);
	void (*shutdown)(struct connection *connection);
	void (*unregister)(struct command *command);
	void (*release)(struct connection *connection);
	void (*local)(const struct connection *connection, struct sockaddr_storage *address);
};

/* listen.c */

/** target_listen_describe() - its address is @bound, of @scheme; 0 or a negative errno with a sentence */
int target_listen_describe(struct target_listener *listener, const char *scheme, const struct sockaddr *bound,
			   socklen_t bytes);

/* server.c */

/** target_server_poll() - have the server wait for a further descriptor of @connection; 0 or -1 */
int target_server_poll(struct connection *connection, int descriptor);

/* send.c */

/** target_tcp_grant(), target_tcp_respond(), target_tcp_flush(), target_tcp_shutdown() - of struct
 * target_wire */
void target_tcp_grant(struct command *command);
void target_tcp_respond(struct command *command);
bool target_tcp_flush(struct connection *connection);

/* rdma.c; a build without RDMA has rdma_none.c */

/** target_rdma_listen() - at @info; 0 or a negative errno with a sentence */
int target_rdma_listen(const char *text, const struct addrinfo *info, struct target_listener *listener);
void target_rdma_listen_end(struct target_listener *listener);
/** target_rdma_accept() - those that came to listener @index */
void target_rdma_accept(struct weir_target *target, u16 index);

#endif
