/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_client.c: see virtual_client.h. */
#include "virtual_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/core/mix.h>

#include "backend/error.h"

enum {
	ADMIN_ENTRIES = 8,
	PAGE = NVME_PAGE_BYTES,
	STEPS = 1 << 20, /* polls until an admin command must have completed */
};

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t queue_bytes(const struct client *client)
{
	return whole_pages(client->depth * sizeof(struct nvme_sqe)) +
	       whole_pages(client->depth * sizeof(struct nvme_cqe)) +
	       whole_pages((size_t)client->depth * client->block_bytes);
}

static void queue_place(const struct client *client, struct client_queue *queue, unsigned char *at)
{
	queue->sqes = (struct nvme_sqe *)(void *)at;
	at += whole_pages(client->depth * sizeof(struct nvme_sqe));
	queue->cqes = (struct nvme_cqe *)(void *)at;
	at += whole_pages(client->depth * sizeof(struct nvme_cqe));
	queue->data = at;
	queue->phase = 1;
}

static void doorbell(struct client *client, u32 index, u32 value)
{
	volatile u32 *doorbells = weir_virtual_doorbells(client->controller);

	/* doorbell.D1, doorbell.D2: pair with the loads in virtual/queue.c */
	__atomic_store_n((u32 *)(uintptr_t)&doorbells[index], value, __ATOMIC_RELEASE);
}

static void poll_all(struct client *client)
{
	for (u32 i = 0; i < client->threads; i++)
		weir_virtual_poll(client->controller, i);
}

/* The admin queue lies at the beginning of the memory: submission ring, completion ring. */
static int admin(struct client *client, u32 number, struct nvme_sqe sqe)
{
	struct nvme_sqe *sqes = (struct nvme_sqe *)(void *)client->memory;
	struct nvme_cqe *cqes = (struct nvme_cqe *)(void *)(client->memory + PAGE);
	u32 at = number % ADMIN_ENTRIES, phase = !(number / ADMIN_ENTRIES & 1), dw3 = 0;

	sqe.cdw0 |= number << 16;
	sqes[at] = sqe;
	doorbell(client, 0, (at + 1) % ADMIN_ENTRIES);
	for (u32 i = 0; i < STEPS; i++) {
		poll_all(client);
		dw3 = __atomic_load_n(&cqes[at].dw3, __ATOMIC_ACQUIRE); /* doorbell.C1 */
		if ((dw3 >> 16 & 1) == phase)
			break;
	}
	doorbell(client, 1, (at + 1) % ADMIN_ENTRIES);
	if ((dw3 >> 16 & 1) != phase || dw3 >> 17)
		return weir_fail(EIO, "admin command %u (opcode %u) was not carried out", number,
				 sqe.cdw0 & 0xff);
	return 0;
}

static int enable(struct client *client)
{
	struct weir_virtual *controller = client->controller;

	weir_virtual_write32(controller, NVME_REGISTER_AQA, (ADMIN_ENTRIES - 1) | (ADMIN_ENTRIES - 1) << 16);
	weir_virtual_write64(controller, NVME_REGISTER_ASQ, (u64)(uintptr_t)client->memory);
	weir_virtual_write64(controller, NVME_REGISTER_ACQ, (u64)(uintptr_t)client->memory + PAGE);
	weir_virtual_write32(controller, NVME_REGISTER_CC,
			     NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16);
	for (u32 i = 0; i < STEPS; i++) {
		poll_all(client);
		if (weir_virtual_read32(controller, NVME_REGISTER_CSTS) & NVME_CSTS_READY)
			return 0;
	}
	return weir_fail(EIO, "the controller does not become ready");
}

static int add_queues(struct client *client)
{
	u32 size = (client->depth - 1) << 16, number = 0;
	int error = 0;

	for (u32 i = 0; i < client->queue_count && !error; i++) {
		const struct client_queue *queue = &client->queues[i];

		error = admin(client, number++,
			      (struct nvme_sqe){ .cdw0 = NVME_ADMIN_CREATE_CQ,
						 .prp1 = (u64)(uintptr_t)queue->cqes,
						 .cdw10 = (i + 1) | size,
						 .cdw11 = 1 });
		if (error)
			break;
		error = admin(client, number++,
			      (struct nvme_sqe){ .cdw0 = NVME_ADMIN_CREATE_SQ,
						 .prp1 = (u64)(uintptr_t)queue->sqes,
						 .cdw10 = (i + 1) | size,
						 .cdw11 = 1 | (i + 1) << 16 });
	}
	return error;
}

static int take_memory(struct client *client)
{
	void *memory;

	client->memory_bytes = 2 * PAGE + client->queue_count * queue_bytes(client);
	memory = mmap(NULL, client->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	client->queues = calloc(client->queue_count, sizeof(*client->queues));
	if (memory == MAP_FAILED || !client->queues)
		return weir_fail(ENOMEM, "no memory for %u queue pairs", client->queue_count);
	madvise(memory, client->memory_bytes,
		MADV_HUGEPAGE); /* a driver's memory is pinned, in large pages */
	memset(memory, 0, client->memory_bytes);
	client->memory = memory;
	for (u32 i = 0; i < client->queue_count; i++)
		queue_place(client, &client->queues[i], client->memory + 2 * PAGE + i * queue_bytes(client));
	return 0;
}

static int make_controller(struct client *client, struct weir_virtual_options options)
{
	int error = weir_dma_map_create(&client->dma);

	if (!error)
		error = weir_dma_map_add(client->dma, client->memory, client->memory_bytes);
	options.size = sizeof(options);
	options.medium = client->medium;
	options.dma = client->dma;
	options.threads = client->threads;
	options.max_queue_pairs = client->queue_count;
	options.max_queue_entries = 4096;
	return error ? error : weir_virtual_create(&options, &client->controller);
}

int client_open(struct client *client, struct weir_virtual_options options)
{
	int error = take_memory(client);

	client->blocks = client->medium->bytes / client->block_bytes;
	if (!error)
		error = make_controller(client, options);
	if (!error)
		error = enable(client);
	if (!error)
		error = add_queues(client);
	if (error)
		client_close(client);
	return error;
}

void client_close(struct client *client)
{
	if (client->controller)
		weir_virtual_destroy(client->controller);
	else
		client->medium->ops->close(client->medium);
	weir_dma_map_destroy(client->dma);
	if (client->memory)
		munmap(client->memory, client->memory_bytes);
	free(client->queues);
}

u64 client_random(u64 *state)
{
	return weir_mix_next(state);
}

u32 client_fill(struct client *client, u32 index, u32 opcode, u64 *random)
{
	struct client_queue *queue = &client->queues[index];
	u32 mask = client->depth - 1, blocks = client->block_bytes / client->medium->block_bytes;

	for (u32 i = 0; i < mask; i++) {
		u64 lba = client_random(random) % client->blocks * blocks;
		u64 data = (u64)(uintptr_t)queue->data + (u64)queue->tail * client->block_bytes;

		queue->sqes[queue->tail] = (struct nvme_sqe){
			.cdw0 = opcode | (queue->cid++ & 0xffff) << 16,
			.nsid = 1,
			.prp1 = data,
			.cdw2 = (u32)client->version,
			.cdw3 = (u32)(client->version >> 32),
			.cdw10 = (u32)lba,
			.cdw11 = (u32)((client->volume | lba) >> 32),
			.cdw12 = blocks - 1,
			.cdw14 = client->lease_epoch,
			.cdw15 = client->map_epoch,
		};
		queue->tail = (queue->tail + 1) & mask;
		client->version += client->version ? blocks : 0;
	}
	doorbell(client, 2 * (index + 1), queue->tail);
	return mask;
}

u32 client_reap(struct client *client, u32 index, u64 *failed)
{
	struct client_queue *queue = &client->queues[index];
	u32 taken = 0;

	for (;;) {
		u32 dw3 = __atomic_load_n(&queue->cqes[queue->head].dw3, __ATOMIC_ACQUIRE); /* doorbell.C1 */

		if ((dw3 >> 16 & 1) != queue->phase)
			break;
		*failed += dw3 >> 17 != 0;
		taken++;
		queue->head = (queue->head + 1) & (client->depth - 1);
		queue->phase ^= !queue->head;
	}
	if (taken)
		doorbell(client, 2 * (index + 1) + 1, queue->head);
	return taken;
}

/* The ring still holds the latest commands; each block begins with its number in units of 512 bytes. */
int client_holds(const struct client *client, u32 index)
{
	const struct client_queue *queue = &client->queues[index];
	u32 units = client->medium->block_bytes / 512;

	for (u32 i = 0; i < client->depth; i++) {
		const struct nvme_sqe *sqe = &queue->sqes[i];
		u64 lba = (u64)sqe->cdw11 << 32 | sqe->cdw10, word;

		if (i == queue->tail) /* the slot left free, of a pass before */
			continue;
		for (u32 at = 0; at < client->block_bytes; at += 512) {
			memcpy(&word, queue->data + (size_t)i * client->block_bytes + at, sizeof(word));
			if (word != lba * units + at / 512)
				return 0;
		}
	}
	return 1;
}
