/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_bench.h: clients of an array whose host threads do the I/O, to compare lanes with.
 *
 * Owns: the two designs of a client, and a load on each. basic: commands go to one server in front of the
 * array, data is copied between host memory and the device's. direct: the client's thread finds the engines
 * of a block and sends commands to them; data goes into the device's memory without a copy by the client.
 */
#ifndef WEIR_VOLUME_BENCH_H
#define WEIR_VOLUME_BENCH_H

#include <pthread.h>
#include <stdbool.h>

#include <weir/weir.h>

#include "volume/channel.h"
#include "volume/session.h"

enum {
	BENCH_MOST_CLIENTS = 64,
	BENCH_MOST_DEPTH = 126,
	BENCH_LATENCIES = 1 << 16, /* of a client, the latest */
	BENCH_BLOCK = NVME_VOLUME_BLOCK_BYTES,
};

/**
 * struct bench_load - what is asked for on the command line
 * @direct: the design is direct, else basic
 * @copies: basic: data is copied between host memory and the device's; else the channel has the device's
 * @daemon: of the array; direct
 * @bytes: of each volume that is used
 * @bs: length of a request
 * @depth: requests in flight of each client
 * @seconds: of the load
 * @writes, @random: what the load is
 * @fill: write all blocks before the load
 * @verify: fill with a pattern, compare what the load reads, and at the end all blocks
 * @timed: take latencies
 * @counts: requests that end now count; @stop: the load is over. Of the main thread; a little late is fine
 */
struct bench_load {
	bool direct;
	bool copies;
	const char *daemon;
	uint64_t bytes;
	uint64_t bs;
	uint32_t depth;
	double seconds;
	bool writes;
	bool random;
	bool fill;
	bool verify;
	bool timed;
	volatile bool counts;
	volatile bool stop;
};

/** enum bench_phase - what a client's requests are for; BENCH_PHASES ends them */
enum bench_phase { BENCH_FILL, BENCH_LOAD, BENCH_CHECK, BENCH_PHASES };

/**
 * struct bench_request - one of a client's
 * @device: its bytes in the device's memory; @host: where the channel has them, the same for direct
 * @list: PRP list of @host
 * @place: of the range, in requests; @open: answers that are missing; @busy: it is under way
 */
struct bench_request {
	struct bench_client *client;
	unsigned char *device;
	unsigned char *host;
	u64 *list;
	u64 place;
	u64 begin_ns;
	u32 open;
	bool writes;
	bool failed;
	bool busy;
};

/** struct bench_command - of @request to the engine of @slot */
struct bench_command {
	struct bench_request *request;
	u32 slot;
};

/**
 * struct bench_client - one client: a thread, a volume, its channels
 * @name: of the volume; basic: URI of the server's namespace for it
 * @channels: by the session's slot; basic: the first
 * @inflight: commands of each
 * @memory: what channels reach: data (basic: of the host) and PRP lists; @host_bytes of it are mapped
 * @device: memory of the context's device
 * @number: of the client, from 1 on
 * @phase: what its requests are for
 * @written: places that the load has written
 * @done, @errors: requests of the load; @checked, @bad: blocks that were compared; @status: of a failed one
 * @version: of the next block written
 * @latency_ns: the latest BENCH_LATENCIES, of @timed in all
 */
struct bench_client {
	struct bench_load *load;
	const char *name;
	pthread_t thread;
	struct weir_context *context;
	uint64_t device;
	unsigned char *memory;
	size_t memory_bytes;
	struct weir_session *session;
	struct weir_session_map *map;
	struct weir_channel *channels[WEIR_SESSION_SLOTS];
	u32 inflight[WEIR_SESSION_SLOTS];
	struct bench_request requests[BENCH_MOST_DEPTH];
	struct bench_command commands[BENCH_MOST_DEPTH][NVME_VOLUME_MOST_REPLICAS];
	u32 busy;
	u32 idle;
	enum bench_phase phase;
	u64 places;
	u64 next;
	u64 random;
	u64 number;
	u64 version;
	bool *written;
	u64 done;
	u64 errors;
	u64 checked;
	u64 bad;
	u32 status;
	u64 timed;
	u32 *latency_ns;
};

/* volume_bench_channels.c */

/** bench_open() - context, memory, channels; 0 or a negative errno with a sentence */
int bench_open(struct bench_client *client);
/** bench_close() - also of one that bench_open() failed for; no request is under way */
void bench_close(struct bench_client *client);
/** bench_send() - begin a request, whose @place and @writes are set; false: a channel is full */
bool bench_send(struct bench_client *client, struct bench_request *request);
/** bench_poll() - take answers; rests where there are none */
void bench_poll(struct bench_client *client);

/* volume_bench.c */

/** bench_done() - a request is over */
void bench_done(struct bench_request *request);

#endif
