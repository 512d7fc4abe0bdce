/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_between.c: loaded before libweir, puts a NIC that is software between lanes and every virtual
 * controller that a program opens: rings, entries and completions of lanes are the NIC's, and a thread is the
 * NIC and the target.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/disk.h>
#include <weir/weir.h>

#include "soft_nic.h"

/** struct between - a storage's queue pairs; @memory: of lanes and the NIC, with the cpu's devices any will
 * do */
struct between {
	struct between *next;
	struct weir_storage *storage;
	struct weir_context *context;
	unsigned char *memory;
	uint32_t count;
	struct soft_nic nics[];
};

#define NEXT(name) (__extension__(__typeof__(&(name))) dlsym(RTLD_NEXT, #name))

static struct between *first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void die(const char *what)
{
	fprintf(stderr, "the NIC: %s\n", what);
	abort();
}

static void must(int error)
{
	if (error)
		die(weir_last_error());
}

/* One round: messages go and come, and of what went only every other is acknowledged at once. */
static bool step(struct soft_nic *nic, uint32_t round)
{
	bool moved = soft_nic_send(nic);

	moved |= soft_nic_respond(nic);
	if (round & 1 || !moved)
		moved |= soft_nic_acknowledge(nic);
	if (nic->wrong)
		die(nic->wrong);
	return moved;
}

static bool step_all(const struct between *between, uint32_t round)
{
	bool moved = false;

	for (uint32_t i = 0; i < between->count; i++)
		moved |= step((struct soft_nic *)&between->nics[i], round);
	return moved;
}

static void *run(void *unused)
{
	(void)unused;
	for (uint32_t round = 0;; round++) {
		bool moved = false;

		pthread_mutex_lock(&lock);
		for (struct between *between = first; between; between = between->next)
			moved |= step_all(between, round);
		pthread_mutex_unlock(&lock);
		if (!moved)
			usleep(10);
	}
	return NULL;
}

static void start(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		die("no thread");
	pthread_detach(thread);
}

/* Some of @of, which was zeroed. */
static uint64_t take(unsigned char **of, uint64_t bytes)
{
	unsigned char *taken = *of;

	*of += (bytes + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES * NVME_PAGE_BYTES;
	return (uint64_t)(uintptr_t)taken;
}

static void ring(volatile uint32_t *doorbell, uint32_t value)
{
	weir_mmio_store_u32(WEIR_ADDR(doorbell), value);
}

/* The pair's rings become the target's; lanes get others. */
static void insert(struct weir_context *context, struct soft_nic *nic, unsigned char **of, uint64_t address)
{
	struct soft_nic_memory shared;
	struct soft_nic_far far;
	struct weir_queue queue;
	uint64_t lanes = take(of, sizeof(struct weir_mlx5));

	must(weir_copy_from_device(context, &queue, address, sizeof(queue)));
	far = (struct soft_nic_far){ .sq = (struct nvme_sqe *)(uintptr_t)queue.sq,
				     .cq = (struct nvme_cqe *)(uintptr_t)queue.cq,
				     .sq_doorbell = (uint32_t *)(uintptr_t)queue.sq_doorbell,
				     .cq_doorbell = (uint32_t *)(uintptr_t)queue.cq_doorbell,
				     .lists = (uint64_t *)(uintptr_t)queue.prp_lists,
				     .list_entries = queue.prp_entries,
				     .depth = queue.depth,
				     .block_log2 = queue.block_log2 };
	shared = (struct soft_nic_memory){
		.sends = take(of, queue.depth * WEIR_MLX5_BLOCK_BYTES),
		.sent = take(of, 2 * queue.depth * WEIR_MLX5_COMPLETION_BYTES),
		.received = take(of, 2 * queue.depth * WEIR_MLX5_COMPLETION_BYTES),
		.words = take(of, 64),
		.messages = take(of, 2 * queue.depth * sizeof(struct nvme_cqe)),
	};
	soft_nic_open(nic, (struct weir_mlx5 *)(uintptr_t)lanes, &far, &shared,
		      weir_load_u64_relaxed_sys(&queue.tail));
	nic->ring = ring;
	queue.sq = take(of, queue.depth * sizeof(struct nvme_sqe));
	queue.prp_lists = take(of, (uint64_t)queue.depth * queue.prp_entries * sizeof(uint64_t));
	queue.cq = take(of, queue.depth * sizeof(struct nvme_cqe));
	queue.sq_doorbell = nic->lanes->doorbell;
	queue.cq_doorbell = nic->lanes->receive_record;
	queue.nic = lanes;
	queue.shadow = 0;
	queue.doorbell_kind = WEIR_DOORBELL_NIC;
	must(weir_copy_to_device(context, address, &queue, sizeof(queue)));
}

static struct between *create(struct weir_context *context, struct weir_storage *storage)
{
	struct between *between;
	unsigned char *memory;
	struct weir_queue queue;
	struct weir_disk disk;
	size_t bytes;

	must(weir_storage_disk(storage, &disk));
	must(weir_copy_from_device(context, &queue, disk.queues, sizeof(queue)));
	if (queue.depth > SOFT_NIC_DEPTH)
		die("the queue is too deep");
	bytes = disk.queue_count *
		(9 * NVME_PAGE_BYTES + queue.depth * (512 + 8 * (size_t)queue.prp_entries));
	between = calloc(1, sizeof(*between) + disk.queue_count * sizeof(between->nics[0]));
	memory = aligned_alloc(NVME_PAGE_BYTES, bytes / NVME_PAGE_BYTES * NVME_PAGE_BYTES);
	if (!between || !memory)
		die("no memory");
	memset(memory, 0, bytes / NVME_PAGE_BYTES * NVME_PAGE_BYTES);
	*between = (struct between){
		.storage = storage, .context = context, .memory = memory, .count = disk.queue_count
	};
	for (uint32_t i = 0; i < disk.queue_count; i++)
		insert(context, &between->nics[i], &memory, disk.queues + i * sizeof(struct weir_queue));
	return between;
}

int weir_storage_open(struct weir_context *context, const char *uri,
		      const struct weir_storage_options *options, struct weir_storage **out)
{
	int error = NEXT(weir_storage_open)(context, uri, options, out);
	struct between *between;

	if (error || strncmp(uri, "virt:", 5))
		return error;
	between = create(context, *out);
	pthread_once(&once, start);
	pthread_mutex_lock(&lock);
	between->next = first;
	first = between;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* Take those of @storage, or of all of @context's, from the thread: no lane rings any more, and what they
 * rang for is carried first. A command that never ends leaves rings that nobody may read once they are
 * closed. */
static struct between *take_out(struct weir_context *context, struct weir_storage *storage)
{
	struct between *out = NULL;

	pthread_mutex_lock(&lock);
	for (struct between **link = &first; *link;) {
		struct between *between = *link;

		if (between->storage != storage && between->context != context) {
			link = &between->next;
			continue;
		}
		while (step_all(between, 1))
			;
		*link = between->next;
		between->next = out;
		out = between;
	}
	pthread_mutex_unlock(&lock);
	return out;
}

/* @out, where what they belong to is still open; else they are freed. */
static void put_back(struct between *out, bool open)
{
	struct between *next;

	pthread_mutex_lock(&lock);
	for (; out; out = next) {
		next = out->next;
		if (open) {
			out->next = first;
			first = out;
		} else {
			free(out->memory);
			free(out);
		}
	}
	pthread_mutex_unlock(&lock);
}

int weir_storage_close(struct weir_storage *storage)
{
	struct between *out = storage ? take_out(NULL, storage) : NULL;
	int error = NEXT(weir_storage_close)(storage);

	put_back(out, error != 0);
	return error;
}

int weir_context_close(struct weir_context *context)
{
	struct between *out = context ? take_out(context, NULL) : NULL;
	int error = NEXT(weir_context_close)(context);

	put_back(out, error != 0);
	return error;
}
