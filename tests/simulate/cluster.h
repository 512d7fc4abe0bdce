/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster.h: the simulated array: engines on disks, a daemon, clients, operators, and what goes wrong.
 *
 * Owns: what the parts of the simulator share. What runs in the nodes is the product's code; around it are
 * simulated the network (wire.h), disks (disk.h), and the controller in front of an engine, which admits a
 * command and asks the engine's medium (engine.c).
 */
#ifndef WEIR_SIMULATE_CLUSTER_H
#define WEIR_SIMULATE_CLUSTER_H

#include "disk.h"
#include "engine/engine.h"
#include "history.h"
#include "volume/daemon/daemon.h"
#include "volume/medium.h"
#include "wire.h"

enum {
	MOST_ENGINES = 6,
	MOST_CLIENTS = 4,
	MOST_OPS = 8, /* of a client, in flight */
	MOST_OP_BLOCKS = 6,
	MOST_OP_BYTES = MOST_OP_BLOCKS * NVME_VOLUME_BLOCK_BYTES,
	ENGINE_CONNECT_MS = 1000,
	MOST_BLOCKS = 40, /* of the volume */
};

#define FILLER_HOST   "nqn.operator"
#define INTRUDER_HOST "nqn.intruder"

/**
 * struct engine_node - an engine's process, and its disk
 * @rotten: bits of its disk have rotted: reads of it may fail
 */
struct engine_node {
	struct sim_node node;
	char name[8];
	char address[44];
	struct sim_disk disk;
	struct weir_engine *engine;
	struct sim_task *controller;
	struct sim_task *admin;
	struct sim_message *commands;
	struct sim_message *commands_last;
	struct sim_message *admins;
	struct sim_message *admins_last;
	bool ready;
	bool rotten;
	bool harmed;
	bool is_out; /* of the last map that counted */
};

struct daemon_node {
	struct sim_node node;
	struct volumed *d;
	struct sim_task *task;
	struct sim_message *calls;
	struct sim_message *calls_last;
	bool serving;
	bool works; /* on a step or a call */
};

/** struct op - a request of a client, of the blocks from @vba on; @by_outsider: an engine
 * answered that the map has not in any more, and that does not know (docs/volumes.md); @well: all was when it
 * began, and stays so */
struct op {
	struct weir_io io;
	struct iovec iov;
	bool used;
	bool ended;
	u32 vba;
	u32 blocks;
	u64 begun;
	bool well;
	u32 index[MOST_OP_BLOCKS];
	struct history_read read[MOST_OP_BLOCKS];
	bool by_outsider;
	i64 process[MOST_OP_BLOCKS]; /* in the record, of each block; 0: none yet */
	u32 floors[MOST_BLOCKS];     /* of a flush */
	u32 losses;                  /* of power, when it began */
	struct client *client;       /* of one whose lanes make it */
	u8 *data;
};

struct client_lanes;

/** struct client - a process that uses the volume; @epoch: of its lease; @lanes: who make its requests, or
 * NULL: host threads do */
struct client {
	struct sim_node node;
	char name[8];
	char host[48];
	bool writes;
	struct weir_medium *medium;
	struct client_lanes *lanes;
	u32 epoch;
	struct sim_task *task;
	struct op ops[MOST_OPS];
	unsigned most_ops;
	u64 pause_ns;
	u64 done;
	u64 failed;
	bool close;
};

/**
 * struct cluster - @quiet: faults have stopped; @well_from: and all nodes run; @rest: clients begin nothing;
 * @over: they close
 * @map_calls: that the daemon was asked for its map
 * @intrusion: this seed has an intruder
 * @hot: most requests go to that many blocks; 0: to all
 * @grown_blocks: of the volume, as the daemon last acknowledged; 0: it was not grown
 * @filling: a volume takes all the space
 * @lanes: of most clients lanes make the requests
 */
struct cluster {
	struct engine_node engines[MOST_ENGINES];
	unsigned engine_count; /* of the array; later ones may be added */
	struct daemon_node daemon;
	struct client clients[MOST_CLIENTS];
	unsigned client_count;
	struct sim_node operator_node;
	struct sim_node intruder;
	bool intrusion;
	struct history history;
	u64 volume_blocks, grown_blocks;
	u32 replicas;
	u32 unit_log2;
	u64 lease_ms;
	u32 hot;
	bool filling;
	bool lanes;
	u64 values;
	bool quiet;
	u64 well_from;
	bool rest;
	u64 map_calls;
	bool over;
	bool finished;
	u64 reads;
	u64 writes;
	u64 faults;
};

extern struct cluster cluster;

/* engine.c */

void engine_node_create(unsigned index, u64 bytes);
/** engine_node_at() - that the URI of a storage names */
struct engine_node *engine_node_at(const char *uri);
void engine_node_start(struct engine_node *node);
/** engine_node_kill() - its process ends; @lossy: with the power of its disk */
void engine_node_kill(struct engine_node *node, bool lossy);
void engine_node_destroy(struct engine_node *node);
void engine_receive(struct sim_message *message);

/* daemon.c */

void daemon_start(void);
void daemon_kill(void);
void daemon_receive(struct sim_message *message);
/** daemon_has() - it has a connection with the process that is @node's now */
bool daemon_has(const struct engine_node *node);

/* client.c */

void client_create(unsigned index, bool writes);
void client_start(struct client *client);
void client_kill(struct client *client);
void client_destroy(struct client *client);
/** client_fill() - write all blocks of volume @name, or as many as engines take; by the current task */
void client_fill(const char *name, u32 blocks);
/** client_value_of() - which write a block has; 0: zeros; ~0: none */
u64 client_value_of(const u8 *data, u32 vba);

/** client_data() - the memory of @op's blocks */
u8 *client_data(struct op *op);

/* channel.c */

/** client_channel_open() - as of struct volume_options; @argument: the client */
int client_channel_open(void *argument, const char *uri, void *memory, size_t bytes,
			struct weir_channel **out);
/** client_take_data() - what the command of @message writes */
void client_take_data(struct sim_message *message);
/** client_give_data() - what was read to where @reply's command names; @wanted: where its request has it */
void client_give_data(struct client *client, const struct sim_message *reply, const void *wanted);

/* lanes.c */

/** client_lanes_open() - lanes make the requests of @client's volume, which is open */
void client_lanes_open(struct client *client);
/** client_lanes_close() - close @medium, too; no lane runs */
void client_lanes_close(struct client_lanes *lanes, struct weir_medium *medium);
/** client_lanes_begin() - have a lane make the request of @op */
void client_lanes_begin(struct client *client, struct op *op);
/** client_lanes_poller() - who waits for answers of engines to the volume's own controller */
struct sim_task *client_lanes_poller(const struct client *client);

/* intruder.c */

void intruder_begin(void);
void intruder_run(void *argument);
/** intruder_overhears() - a message that an engine gets */
void intruder_overhears(const struct sim_message *message);

/* rpc.c */

/** call_daemon() - of the current task; as weir_rpc_call() */
int call_daemon(const char *method, json_t *params, json_t **result);

/* faults.c */

/** faults_run() - the task that makes things go wrong */
/** faults_begin() - draw what this seed has; they go on for @ns */
void faults_begin(u64 ns);
void faults_run(void *argument);

/* verdict.c */

/** verdict_run() - the task that creates the volume, waits for the end, and compares all replicas */
void verdict_run(void *argument);

/* cluster.c */

/** struct outcome - of a seed */
struct outcome {
	bool failed;
	char failure[400];
	u64 hash;
	u64 steps;
	u64 simulated_ns;
	u64 reads;
	u64 writes;
	u64 faults;
};

/** cluster_run() - the array of @seed; @lanes: as of struct cluster */
void cluster_run(u64 seed, u64 seconds, bool lanes, bool trace, struct outcome *outcome);

#endif
