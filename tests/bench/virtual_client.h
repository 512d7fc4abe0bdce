/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual_client.h: a bare client of a virtual controller, for measuring it.
 *
 * Owns: rings and data memory as a driver would have them, no more than it
 * takes to keep all slots of all queues busy. Believes what it is told.
 */
#ifndef WEIR_BENCH_VIRTUAL_CLIENT_H
#define WEIR_BENCH_VIRTUAL_CLIENT_H

#include <weir/nvme.h>

#include "transport/virtual/virtual.h"

enum { CLIENT_QUEUES_MAX = 1024 };

/**
 * struct client_queue - one queue pair
 * @sqes: submission ring
 * @cqes: completion ring
 * @data: a block for each slot
 * @tail: next submission entry
 * @head: next completion entry
 * @phase: of the next completion
 * @cid: next command identifier; its low bits name the slot
 */
struct client_queue {
	struct nvme_sqe *sqes;
	struct nvme_cqe *cqes;
	unsigned char *data;
	u32 tail;
	u32 head;
	u32 phase;
	u32 cid;
};

/**
 * struct client - a controller and its driver
 * @controller: the controller
 * @dma: what it may touch
 * @medium: what it serves; the controller's
 * @memory: rings and data
 * @memory_bytes: how much
 * @queues: I/O queue pairs, from identifier 1 on
 * @queue_count: how many
 * @threads: of the controller
 * @depth: entries per ring, a power of two
 * @block_bytes: bytes per command
 * @blocks: of the medium
 * @volume: of an engine: bits of SLBA above the block; @lease_epoch, @map_epoch, @version: of its commands
 */
struct client {
	struct weir_virtual *controller;
	struct weir_dma_map *dma;
	struct weir_medium *medium;
	unsigned char *memory;
	size_t memory_bytes;
	struct client_queue *queues;
	u32 queue_count;
	u32 threads;
	u32 depth;
	u32 block_bytes;
	u64 blocks;
	u64 volume;
	u64 version;
	u32 lease_epoch;
	u32 map_epoch;
};

/**
 * client_open() - a controller over @medium, enabled, with its queue pairs
 * @options: latency, faults and the like; medium, DMA map, threads and queues are filled in
 *
 * @client has medium, queue_count, threads, depth and block_bytes set. Return: 0 or a
 * negative errno, with a sentence; the medium is closed then.
 */
int client_open(struct client *client, struct weir_virtual_options options);
void client_close(struct client *client);

/** client_fill() - fill all free slots of queue @index with @opcode of random blocks, ring; how many */
u32 client_fill(struct client *client, u32 index, u32 opcode, u64 *random);
/** client_reap() - take what has completed on queue @index; *@failed counts errors */
u32 client_reap(struct client *client, u32 index, u64 *failed);
/** client_random() - the next of a series */
u64 client_random(u64 *state);
/** client_holds() - after a read of all slots, does each hold the block that its command named? */
int client_holds(const struct client *client, u32 index);

#endif
