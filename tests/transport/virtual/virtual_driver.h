/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual_driver.h: the smallest driver that can drive a virtual controller:
 * it fills rings by hand and believes nothing.
 *
 * Owns: an arena of DMA memory, rings by queue identifier, and waiting. While
 * no threads run, waiting polls the controller, so that tests are deterministic.
 */
#ifndef WEIR_TESTS_VIRTUAL_DRIVER_H
#define WEIR_TESTS_VIRTUAL_DRIVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/virtual/virtual.h"
#include <weir/nvme.h>

enum {
	DRIVER_QUEUES = 9, /* the admin queue and eight more */
	DRIVER_ADMIN_ENTRIES = 8,
	DRIVER_DEADLINE_S = 600, /* a last resort */
	DRIVER_REFUSED = NVME_STATUS_DNR,
};

#define DRIVER_ARENA_BYTES ((size_t)8 << 20)
#define DRIVER_CC          (NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16)

struct driver_sq {
	struct nvme_sqe *entries;
	u32 size, tail, cq;
};

struct driver_cq {
	struct nvme_cqe *entries;
	u32 size, head, phase;
};

struct driver {
	struct weir_virtual *controller;
	struct weir_medium *medium;
	struct weir_dma_map *dma;
	unsigned threads;
	bool started;
	unsigned char *arena;
	size_t used;
	struct driver_sq sq[DRIVER_QUEUES];
	struct driver_cq cq[DRIVER_QUEUES];
	u32 next_cid;
};

static inline u64 driver_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
}

/* Page-aligned DMA memory, zeroed; the arena is reused from driver_enable() on. */
static inline void *driver_pages(struct driver *driver, size_t bytes)
{
	size_t rounded = (bytes + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES * NVME_PAGE_BYTES;
	void *memory = driver->arena + driver->used;

	assert_true(driver->used + rounded <= DRIVER_ARENA_BYTES);
	driver->used += rounded;
	memset(memory, 0, rounded);
	return memory;
}

static inline u64 driver_bus(const void *memory)
{
	return (u64)(uintptr_t)memory;
}

static inline struct weir_virtual_options driver_defaults(void)
{
	return (struct weir_virtual_options){
		.size = sizeof(struct weir_virtual_options),
		.threads = 1,
		.max_queue_pairs = DRIVER_QUEUES - 1,
		.max_queue_entries = 1024,
	};
}

/* Options without a medium get one in memory: 4 MiB of 512-byte blocks. */
static inline void driver_open(struct driver *driver, struct weir_virtual_options options)
{
	memset(driver, 0, sizeof(*driver));
	driver->arena = aligned_alloc(NVME_PAGE_BYTES, DRIVER_ARENA_BYTES);
	assert_non_null(driver->arena);
	assert_int_equal(weir_dma_map_create(&driver->dma), 0);
	assert_int_equal(weir_dma_map_add(driver->dma, driver->arena, DRIVER_ARENA_BYTES), 0);
	if (!options.medium)
		assert_int_equal(weir_medium_ram_open(4 << 20, 512, NULL, &options.medium), 0);
	options.dma = driver->dma;
	driver->medium = options.medium;
	driver->threads = options.threads;
	assert_int_equal(weir_virtual_create(&options, &driver->controller), 0);
}

static inline void driver_close(struct driver *driver)
{
	weir_virtual_destroy(driver->controller);
	weir_dma_map_destroy(driver->dma);
	free(driver->arena);
}

static inline void driver_start(struct driver *driver)
{
	assert_int_equal(weir_virtual_start(driver->controller), 0);
	driver->started = true;
}

static inline void driver_stop(struct driver *driver)
{
	weir_virtual_stop(driver->controller);
	driver->started = false;
}

static inline void driver_step(struct driver *driver)
{
	if (driver->started)
		sched_yield();
	for (unsigned i = 0; !driver->started && i < driver->threads; i++)
		weir_virtual_poll(driver->controller, i);
}

static inline void driver_steps(struct driver *driver, unsigned count)
{
	while (count--)
		driver_step(driver);
}

static inline u32 driver_csts(struct driver *driver)
{
	return weir_virtual_read32(driver->controller, NVME_REGISTER_CSTS);
}

static inline void driver_wait_csts(struct driver *driver, u32 mask, u32 value)
{
	u64 deadline = driver_now_ns() + DRIVER_DEADLINE_S * 1000000000ull;

	while ((driver_csts(driver) & mask) != value) {
		assert_true(driver_now_ns() < deadline);
		driver_step(driver);
	}
}

static inline void driver_ring_open(struct driver *driver, u32 sq, u32 cq, u32 sq_entries, u32 cq_entries)
{
	driver->sq[sq] = (struct driver_sq){ driver_pages(driver, sq_entries * sizeof(struct nvme_sqe)),
					     sq_entries, 0, cq };
	if (cq_entries)
		driver->cq[cq] =
			(struct driver_cq){ driver_pages(driver, cq_entries * sizeof(struct nvme_cqe)),
					    cq_entries, 0, 1 };
}

static inline void driver_write_rings(struct driver *driver)
{
	weir_virtual_write32(driver->controller, NVME_REGISTER_AQA,
			     (driver->sq[0].size - 1) | (driver->cq[0].size - 1) << 16);
	weir_virtual_write64(driver->controller, NVME_REGISTER_ASQ, driver_bus(driver->sq[0].entries));
	weir_virtual_write64(driver->controller, NVME_REGISTER_ACQ, driver_bus(driver->cq[0].entries));
}

static inline void driver_enable(struct driver *driver)
{
	driver->used = 0;
	driver_ring_open(driver, 0, 0, DRIVER_ADMIN_ENTRIES, DRIVER_ADMIN_ENTRIES);
	driver_write_rings(driver);
	weir_virtual_write32(driver->controller, NVME_REGISTER_CC, DRIVER_CC);
	driver_wait_csts(driver, NVME_CSTS_READY | NVME_CSTS_FATAL, NVME_CSTS_READY);
}

static inline void driver_disable(struct driver *driver)
{
	weir_virtual_write32(driver->controller, NVME_REGISTER_CC, 0);
	driver_wait_csts(driver, ~0u, 0);
}

/* Doorbells: 2q is the tail of SQ q, 2q + 1 the head of CQ q. */
static inline void driver_doorbell(struct driver *driver, u32 index, u32 value)
{
	volatile u32 *doorbells = weir_virtual_doorbells(driver->controller);

	/* doorbell.D1, doorbell.D2: pair with the loads in virtual/queue.c */
	__atomic_store_n((u32 *)(uintptr_t)&doorbells[index], value, __ATOMIC_RELEASE);
}

static inline void driver_ring(struct driver *driver, u32 sq)
{
	driver_doorbell(driver, 2 * sq, driver->sq[sq].tail);
}

static inline void driver_put(struct driver *driver, u32 sq, const struct nvme_sqe *sqe)
{
	struct driver_sq *queue = &driver->sq[sq];

	queue->entries[queue->tail] = *sqe;
	queue->tail = queue->tail + 1 == queue->size ? 0 : queue->tail + 1;
}

/* Take a completion if there is one; the controller learns of it from driver_release(). */
static inline bool driver_peek(struct driver *driver, u32 cq, struct nvme_cqe *cqe)
{
	struct driver_cq *queue = &driver->cq[cq];
	struct nvme_cqe *entry = &queue->entries[queue->head];
	u32 dw3 = __atomic_load_n(&entry->dw3, __ATOMIC_ACQUIRE); /* doorbell.C1 */

	*cqe = (struct nvme_cqe){ 0 };
	if ((dw3 >> 16 & 1) != queue->phase)
		return false;
	*cqe = (struct nvme_cqe){ entry->dw0, entry->dw1, entry->dw2, dw3 };
	if (++queue->head == queue->size) {
		queue->head = 0;
		queue->phase ^= 1;
	}
	return true;
}

static inline void driver_release(struct driver *driver, u32 cq)
{
	driver_doorbell(driver, 2 * cq + 1, driver->cq[cq].head);
}

static inline void driver_reap(struct driver *driver, u32 cq, struct nvme_cqe *cqe)
{
	u64 deadline = driver_now_ns() + DRIVER_DEADLINE_S * 1000000000ull;

	while (!driver_peek(driver, cq, cqe)) {
		assert_true(driver_now_ns() < deadline);
		driver_step(driver);
	}
	driver_release(driver, cq);
}

static inline bool driver_nothing(struct driver *driver, u32 cq)
{
	struct nvme_cqe cqe;

	driver_steps(driver, 20);
	return !driver_peek(driver, cq, &cqe);
}

static inline u32 driver_status(const struct nvme_cqe *cqe)
{
	return cqe->dw3 >> 17;
}

static inline u32 driver_cid(const struct nvme_cqe *cqe)
{
	return cqe->dw3 & 0xffff;
}

static inline void driver_set_cid(struct nvme_sqe *sqe, u32 cid)
{
	sqe->cdw0 = (sqe->cdw0 & 0xffff) | cid << 16;
}

static inline void driver_post(struct driver *driver, u32 sq, struct nvme_sqe sqe, u32 cid)
{
	driver_set_cid(&sqe, cid);
	driver_put(driver, sq, &sqe);
	driver_ring(driver, sq);
}

/* One command from beginning to end, alone in its queue. */
static inline u32 driver_command(struct driver *driver, u32 sq, struct nvme_sqe sqe, u32 *result)
{
	u32 cid = driver->next_cid++ & 0xffff;
	struct nvme_cqe cqe;

	driver_post(driver, sq, sqe, cid);
	driver_reap(driver, driver->sq[sq].cq, &cqe);
	assert_int_equal(driver_cid(&cqe), cid);
	assert_int_equal(cqe.dw2 >> 16, sq);
	assert_int_equal(cqe.dw2 & 0xffff, driver->sq[sq].tail);
	if (result)
		*result = cqe.dw0;
	return driver_status(&cqe);
}

static inline u32 driver_admin(struct driver *driver, struct nvme_sqe sqe)
{
	return driver_command(driver, 0, sqe, NULL);
}

static inline struct nvme_sqe driver_create_cq(u32 cq, u64 ring, u32 entries)
{
	return (struct nvme_sqe){
		.cdw0 = NVME_ADMIN_CREATE_CQ, .prp1 = ring, .cdw10 = cq | (entries - 1) << 16, .cdw11 = 1
	};
}

static inline struct nvme_sqe driver_create_sq(u32 sq, u32 cq, u64 ring, u32 entries)
{
	return (struct nvme_sqe){ .cdw0 = NVME_ADMIN_CREATE_SQ,
				  .prp1 = ring,
				  .cdw10 = sq | (entries - 1) << 16,
				  .cdw11 = 1 | cq << 16 };
}

static inline struct nvme_sqe driver_delete(u32 opcode, u32 id)
{
	return (struct nvme_sqe){ .cdw0 = opcode, .cdw10 = id };
}

/* cq_entries 0: the completion queue exists already. */
static inline void driver_add_queue(struct driver *driver, u32 sq, u32 cq, u32 sq_entries, u32 cq_entries)
{
	driver_ring_open(driver, sq, cq, sq_entries, cq_entries);
	if (cq_entries)
		assert_int_equal(driver_admin(driver, driver_create_cq(cq, driver_bus(driver->cq[cq].entries),
								       cq_entries)),
				 0);
	assert_int_equal(driver_admin(driver, driver_create_sq(sq, cq, driver_bus(driver->sq[sq].entries),
							       sq_entries)),
			 0);
}

static inline struct nvme_sqe driver_io(u32 opcode, u64 lba, u32 blocks, u64 prp1, u64 prp2)
{
	return (struct nvme_sqe){ .cdw0 = opcode,
				  .nsid = 1,
				  .prp1 = prp1,
				  .prp2 = prp2,
				  .cdw10 = (u32)lba,
				  .cdw11 = (u32)(lba >> 32),
				  .cdw12 = blocks - 1 };
}

/* Content that tells the block and the generation it was written in. */
static inline void driver_fill(void *memory, u64 lba, u32 block_bytes, u64 generation)
{
	u64 *words = memory;

	for (u32 i = 0; i < block_bytes / sizeof(u64); i++)
		words[i] = (lba + 1) * 0x9e3779b97f4a7c15ull ^ generation << 32 ^ i;
}

static inline bool driver_holds(const void *memory, u64 lba, u32 block_bytes, u64 generation)
{
	u64 expected[4096 / sizeof(u64)];

	driver_fill(expected, lba, block_bytes, generation);
	return !memcmp(memory, expected, block_bytes);
}

#endif
