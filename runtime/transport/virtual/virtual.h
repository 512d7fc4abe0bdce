/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual.h: an NVMe controller in software, behind registers, rings and
 * doorbells like any other.
 *
 * Owns: the controller's outside. The driver side (admin.c) speaks to it as to
 * hardware: it writes CC, polls CSTS, fills rings, rings doorbells.
 */
#ifndef WEIR_VIRTUAL_H
#define WEIR_VIRTUAL_H

#include <stdbool.h>
#include <stdint.h>

#include "../medium/medium.h"
#include "fault.h"

struct weir_virtual;
struct weir_engine;
struct virtual_front;

/**
 * struct weir_virtual_options - what controller to be
 * @medium: where the bytes are; owned by the controller from here on
 * @dma: memory it may touch
 * @threads: threads that will call weir_virtual_poll(), each with its number;
 *           I/O queue q is served by thread (q - 1) % threads, the admin queue
 *           by thread 0
 * @max_queue_pairs: I/O queue pairs offered by Set Features
 * @max_queue_entries: CAP.MQES + 1
 * @max_transfer_bytes: power of two times 4096, reported as MDTS; 0 = no limit
 *                      is not offered, the default is 128 KiB. 4096 is MDTS 0, which
 *                      tells hosts of no limit: for those that know of it
 * @latency_us: least time from fetch to completion of an I/O command
 * @iops: most I/O commands completed per second; 0 = no limit
 * @fetch_batch: most commands taken from a queue before the next has its turn;
 *               0 = 32. One poll is one turn of each queue, so that 1 steps
 *               command by command (a rate limit has its own turns).
 * @clock_ns: the time, never going backwards, asked from every controller
 *            thread; NULL = CLOCK_MONOTONIC
 * @clock_argument: what @clock_ns is given
 * @doorbells: memory for the doorbell words, zeroed whole pages of
 *             weir_virtual_doorbell_bytes(), to outlive the controller; NULL = its own
 * @woken: its threads sleep until they are woken: doorbells are rung by weir_mmio_store_u32() on the host
 * alone (sleeper.h)
 * @faults: what goes wrong, copied; NULL = nothing
 * @fault_count: rows of @faults
 * @shadow_doorbells: offer Doorbell Buffer Config; max_queue_pairs is at most 511 then
 * @front: where commands come from, other than rings: no registers, queues or admin commands are served here
 * then (virtual/front.h); NULL = rings
 * @engine: whose medium @medium is: it admits commands, and takes admin commands of volumes; NULL = none
 */
struct weir_virtual_options {
	size_t size;
	struct weir_medium *medium;
	struct weir_dma_map *dma;
	unsigned threads;
	unsigned max_queue_pairs;
	unsigned max_queue_entries;
	uint32_t max_transfer_bytes;
	uint32_t latency_us;
	uint64_t iops;
	unsigned fetch_batch;
	uint64_t (*clock_ns)(void *argument);
	void *clock_argument;
	const struct weir_virtual_fault *faults;
	unsigned fault_count;
	uint32_t *doorbells;
	bool woken;
	bool shadow_doorbells;
	const struct virtual_front *front;
	struct weir_engine *engine;
};

/** struct weir_virtual_stats - what it has done; relaxed counters, summed over threads */
struct weir_virtual_stats {
	uint64_t commands;
	uint64_t errors;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t changes; /* commands that changed blocks */
	uint64_t bad_doorbells;
	uint64_t faults; /* of options.faults, that happened */
};

int weir_virtual_create(const struct weir_virtual_options *options, struct weir_virtual **out);
/** weir_virtual_destroy() - no thread may be in weir_virtual_poll() any more */
void weir_virtual_destroy(struct weir_virtual *controller);

/* Registers; offsets as in the specification (NVME_REGISTER_...). Any thread. */
uint32_t weir_virtual_read32(struct weir_virtual *controller, uint32_t offset);
uint64_t weir_virtual_read64(struct weir_virtual *controller, uint32_t offset);
void weir_virtual_write32(struct weir_virtual *controller, uint32_t offset, uint32_t value);
void weir_virtual_write64(struct weir_virtual *controller, uint32_t offset, uint64_t value);

/**
 * weir_virtual_doorbells() - the doorbell registers, as memory
 *
 * u32 words: 2q is SQ q's tail, 2q + 1 is CQ q's head (stride 4 bytes, DSTRD 0).
 * Lanes write them with a release store; page aligned.
 */
volatile uint32_t *weir_virtual_doorbells(struct weir_virtual *controller);

/** weir_virtual_doorbell_bytes() - the size of that memory for so many I/O queue pairs: whole pages */
size_t weir_virtual_doorbell_bytes(unsigned queue_pairs);

/**
 * weir_virtual_poll() - do what there is to do, without waiting
 *
 * Return: a count that is 0 when nothing happened.
 */
unsigned weir_virtual_poll(struct weir_virtual *controller, unsigned thread);

/** weir_virtual_busy() - true while thread has commands fetched but not completed */
int weir_virtual_busy(struct weir_virtual *controller, unsigned thread);

/**
 * weir_virtual_answer_places() - from now on reads leave their data on the medium, where it can be read
 *
 * dw0 of their completions is the number of their first block, plus one: whoever reads them copies their data
 * from there (struct weir_medium.memory). Of other commands it is 0. Before there are I/O queues; the
 * controller has rings.
 *
 * Return: whether it can: its medium is memory, with fewer than 2^32 - 1 blocks, and it has no faults.
 */
bool weir_virtual_answer_places(struct weir_virtual *controller);

/** weir_virtual_start() - start options.threads host threads that poll */
int weir_virtual_start(struct weir_virtual *controller);
/**
 * weir_virtual_halt() - stop them for good, and wait until the medium has ended what it was asked
 * @controller: the controller
 * @ms: for so long at most
 *
 * Return: 0: nothing of it touches memory any more; -ETIMEDOUT.
 */
int weir_virtual_halt(struct weir_virtual *controller, unsigned ms);
/** weir_virtual_stop() - stop and join them */
void weir_virtual_stop(struct weir_virtual *controller);

void weir_virtual_stats(struct weir_virtual *controller, struct weir_virtual_stats *out);

#endif
