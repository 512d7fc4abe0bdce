/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target.h: storages served to other machines as NVMe subsystems over NVMe/TCP and NVMe/RDMA.
 *
 * Owns: the target as a whole: what is served, to whom, by how many threads. A storage is a controller core
 * (transport/virtual_front.h), so that its faults, timing model and statistics are those of virt: and file:.
 * Needs no privileges but those that its files and ports need.
 */
#ifndef WEIR_TARGET_H
#define WEIR_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WEIR_TARGET_THREADS_MAX = 64,
	WEIR_TARGET_NAMESPACES_MAX = 64, /* of a subsystem */
	WEIR_TARGET_QUEUES_MAX = 65535,  /* that have numbers */
};

struct weir_target;

/**
 * struct weir_target_namespace_options - a namespace
 * @uri: its storage: virt: or file:, as weir_storage_open() has it
 * @read_only: hosts cannot write it
 * @detached: it keeps its number, and hosts do not see it
 */
struct weir_target_namespace_options {
	const char *uri;
	bool read_only;
	bool detached;
};

/**
 * struct weir_target_subsystem_options - an NVMe subsystem
 * @nqn: its name
 * @namespaces: namespace 1 first
 * @namespace_count: of these, at least 1
 * @hosts: NQNs of the hosts that may connect
 * @host_count: of these; 0: any host
 * @engine: its namespaces are engines, which keep volumes (engine/engine.h)
 * @manager: NQN of the one host that may send their admin commands and be client 0; NULL: any that may
 * connect
 * @secrets: of each of @hosts, a file with the secret that it authenticates by, or NULL: it need not; may be
 * NULL
 * @controller_secrets: likewise, what the subsystem proves to it
 * @tls_keys: likewise, a file with the key by which TLS protects its connections, which it then must
 * @tls_key: the same of hosts that have none in @tls_keys; NULL: they need none
 */
struct weir_target_subsystem_options {
	const char *nqn;
	const struct weir_target_namespace_options *namespaces;
	size_t namespace_count;
	const char *const *hosts;
	size_t host_count;
	bool engine;
	const char *manager;
	const char *const *secrets;
	const char *const *controller_secrets;
	const char *const *tls_keys;
	const char *tls_key;
};

/**
 * struct weir_target_options - what to serve
 * @listen: addresses, "tcp://127.0.0.1:4420", "tcp://[::1]:4420" or "rdma://10.0.0.2:4420"; port 0: any that
 * is free
 * @ana: of each of these, enum NVME_ANA_ of the namespaces for hosts that come by it; NULL: all are optimized
 * @listen_count: of these; none: connections come by weir_target_adopt() alone
 * @subsystems: one at least
 * @subsystem_count: of these
 * @threads: server threads, 1 to WEIR_TARGET_THREADS_MAX; 0: one
 * @queues: I/O queues that a host is granted at most, 1 to WEIR_TARGET_QUEUES_MAX; 0: 64
 */
struct weir_target_options {
	size_t size;
	const char *const *listen;
	const unsigned *ana;
	size_t listen_count;
	const struct weir_target_subsystem_options *subsystems;
	size_t subsystem_count;
	unsigned threads;
	unsigned queues;
};

/** struct weir_target_stats - since it was created; relaxed counters, summed over threads */
struct weir_target_stats {
	uint64_t connections; /* open now */
	uint64_t accepted;
	uint64_t refused;  /* Connect commands */
	uint64_t bad_pdus; /* each has ended its connection */
	uint64_t commands; /* completions sent */
	uint64_t reconnects;
};

/**
 * weir_target_create() - open the storages and the listening sockets; 0 or a negative errno with a sentence
 */
int weir_target_create(const struct weir_target_options *options, struct weir_target **out);
/** weir_target_start() - start the server threads */
int weir_target_start(struct weir_target *target);
/**
 * weir_target_stop() - take no more commands, answer those that were taken, close all connections, join
 * the threads
 * @ms: connections that have not ended by then are closed as they are
 */
void weir_target_stop(struct weir_target *target, unsigned ms);
/** weir_target_destroy() - close the storages; after weir_target_stop() */
void weir_target_destroy(struct weir_target *target);

/**
 * weir_target_address() - "tcp://127.0.0.1:4420" of listening socket @index, its port resolved; lives as
 * long as @target
 */
const char *weir_target_address(const struct weir_target *target, size_t index);
/** weir_target_describe() - for people: one line about subsystem @index; at most @bytes of @text */
void weir_target_describe(const struct weir_target *target, size_t index, char *text, size_t bytes);
/**
 * weir_target_set_ana() - set the ANA state of the namespaces at listening socket @index; hosts that came by
 * it are notified. Any thread. Base 2.0, section 8.1.
 */
void weir_target_set_ana(struct weir_target *target, size_t index, unsigned state);
/**
 * weir_target_reload() - go on with other options
 * @options: as at weir_target_create(); of these may differ: ANA states, who may connect and by which secrets
 * (from the next connection on), namespaces that are added at the end, detached, or attached again
 *
 * Hosts are notified. One thread at a time, which is none of the target's.
 *
 * Return: 0; or a negative errno with a sentence: nothing has changed.
 */
int weir_target_reload(struct weir_target *target, const struct weir_target_options *options);
/** weir_target_stats() - any thread */
void weir_target_stats(struct weir_target *target, struct weir_target_stats *stats);

/**
 * weir_target_adopt() - a connection that was accepted elsewhere, such as one half of socketpair(); its
 * owner from here on
 *
 * Before weir_target_start(), or from the one thread that calls weir_target_step().
 */
int weir_target_adopt(struct weir_target *target, int socket);
/**
 * weir_target_step() - one iteration of server thread 0, where it was not started; waits for @ms at most;
 * what happened
 */
unsigned weir_target_step(struct weir_target *target, int ms);

#endif
