/* SPDX-License-Identifier: BSD-3-Clause */
/* volume/channel.c: the host's own end of a queue pair of a transport. */
#include "channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/port.h>

#include "../backend/error.h"
#include "../storage/admin.h"
#include "../transport/virtual/virtual.h"

enum {
	ENTRIES = 128,
	SQ_BYTES = ENTRIES * sizeof(struct nvme_sqe),
	CQ_BYTES = NVME_PAGE_BYTES, /* of which ENTRIES * sizeof(struct nvme_cqe) are used */
	DOORBELL_BYTES = NVME_PAGE_BYTES,
	OWN_BYTES = WEIR_ADMIN_MEMORY_BYTES + SQ_BYTES + CQ_BYTES,
	QUEUE = 1, /* its number */
};

/**
 * struct ring_channel - @own: admin queue, SQ and CQ; @free: CIDs, @free_count of them;
 * @arguments: of commands, by CID
 */
struct ring_channel {
	struct weir_channel base;
	struct weir_transport *transport;
	struct weir_dma_map *dma;
	struct weir_admin admin;
	unsigned char *own;
	unsigned char *doorbells;
	unsigned entries;
	unsigned tail;
	unsigned head;
	unsigned phase;
	unsigned free_count;
	u16 free[ENTRIES];
	void *arguments[ENTRIES];
	bool enabled;
	bool created;
	bool halted;
};

static struct ring_channel *ring_of(struct weir_channel *channel)
{
	return (struct ring_channel *)channel;
}

static struct nvme_cqe *entries_of(const struct ring_channel *ring)
{
	return (struct nvme_cqe *)(void *)(ring->own + WEIR_ADMIN_MEMORY_BYTES + SQ_BYTES);
}

static void ring_doorbell(const struct ring_channel *ring, unsigned index, unsigned value)
{
	uint64_t address = ring->transport->ops->doorbell(ring->transport, index);

	/* doorbell.D1, doorbell.D2: pair with the transport's loads: entries come before the tail, and are
	 * read before the head */
	weir_mmio_store_u32(address, value);
}

static bool ring_submit(struct weir_channel *channel, const struct nvme_sqe *sqe, void *argument)
{
	struct ring_channel *ring = ring_of(channel);
	struct nvme_sqe *slot = (struct nvme_sqe *)(void *)(ring->own + WEIR_ADMIN_MEMORY_BYTES) + ring->tail;
	u16 cid;

	if (!ring->free_count)
		return false;
	cid = ring->free[--ring->free_count];
	ring->arguments[cid] = argument;
	*slot = *sqe;
	slot->cdw0 = (sqe->cdw0 & 0xffff) | (u32)cid << 16;
	ring->tail = (ring->tail + 1) % ring->entries;
	ring_doorbell(ring, 2 * QUEUE, ring->tail);
	return true;
}

static bool ring_take(struct ring_channel *ring, u16 cid, void **argument)
{
	if (cid >= ring->entries || !ring->arguments[cid])
		return false; /* of no command: the controller invented it */
	*argument = ring->arguments[cid];
	ring->arguments[cid] = NULL;
	ring->free[ring->free_count++] = cid;
	return true;
}

static unsigned ring_poll(struct weir_channel *channel, void (*done)(void *argument, u32 status))
{
	struct ring_channel *ring = ring_of(channel);
	unsigned count = 0;
	void *argument;

	for (;;) {
		/* doorbell.C1: pairs with the controller's write of dw3: data came before */
		u32 dw3 = __atomic_load_n(&entries_of(ring)[ring->head].dw3, __ATOMIC_ACQUIRE);

		if ((dw3 >> 16 & 1) != ring->phase)
			break;
		if (++ring->head == ring->entries) {
			ring->head = 0;
			ring->phase ^= 1;
		}
		ring_doorbell(ring, 2 * QUEUE + 1, ring->head);
		count++;
		if (ring_take(ring, (u16)dw3, &argument))
			done(argument, dw3 >> 17);
	}
	return count;
}

static bool ring_lost(struct weir_channel *channel)
{
	struct ring_channel *ring = ring_of(channel);
	uint32_t csts = ring->transport->ops->read32(ring->transport, NVME_REGISTER_CSTS);

	return (csts & (NVME_CSTS_READY | NVME_CSTS_FATAL)) != NVME_CSTS_READY;
}

static int ring_halt(struct weir_channel *channel)
{
	struct ring_channel *ring = ring_of(channel);
	int error = ring->halted ? 0 : ring->transport->ops->halt(ring->transport);

	ring->halted = ring->halted || !error;
	return error;
}

static void ring_close(struct weir_channel *channel)
{
	struct ring_channel *ring = ring_of(channel);
	bool answers = ring->enabled && !ring->halted && !ring_lost(channel);

	if (answers && ring->created)
		(void)weir_admin_delete_queue(&ring->admin, QUEUE);
	if (answers)
		(void)weir_admin_disable(&ring->admin);
	if (ring->transport)
		ring->transport->ops->close(ring->transport);
	weir_dma_map_destroy(ring->dma);
	free(ring->doorbells);
	free(ring->own);
	free(ring);
}

static const struct weir_channel_ops ring_ops = {
	.submit = ring_submit, .poll = ring_poll, .lost = ring_lost, .halt = ring_halt, .close = ring_close
};

static int take_memory(struct ring_channel *ring, const char *uri, void *memory, size_t bytes)
{
	int error = weir_dma_map_create(&ring->dma);

	ring->own = aligned_alloc(NVME_PAGE_BYTES, OWN_BYTES);
	ring->doorbells = aligned_alloc(NVME_PAGE_BYTES, DOORBELL_BYTES);
	if (!error && (!ring->own || !ring->doorbells))
		error = weir_fail(ENOMEM, "storage \"%s\": no memory for a channel", uri);
	if (error)
		return error;
	memset(ring->own, 0, OWN_BYTES);
	memset(ring->doorbells, 0, DOORBELL_BYTES);
	error = weir_dma_map_add(ring->dma, ring->own, OWN_BYTES);
	return error ? error : weir_dma_map_add(ring->dma, memory, bytes);
}

static int open_transport(struct ring_channel *ring, const char *text)
{
	struct weir_uri uri;
	int error = weir_uri_parse(text, &uri);

	if (error)
		return error;
	error = weir_transport_open(&(struct weir_transport_request){ .uri = &uri,
								      .dma = ring->dma,
								      .doorbells = ring->doorbells,
								      .queues = QUEUE,
								      .host_rings = true,
								      .depth = ENTRIES },
				    &ring->transport);
	weir_uri_release(&uri);
	return error;
}

static int start_controller(struct ring_channel *ring, const char *uri, unsigned least_transfer_bytes)
{
	struct weir_namespace space = { .nsid = 0 };
	unsigned granted;
	int error = weir_admin_enable(&ring->admin, ring->transport, ring->own, (uintptr_t)ring->own);

	ring->enabled = !error;
	if (!error)
		error = weir_admin_identify(&ring->admin, 1, false, &space);
	if (!error && space.max_transfer_bytes < least_transfer_bytes)
		error = weir_fail(ENOTSUP,
				  "storage \"%s\": an engine takes %u bytes a command at most, and its "
				  "volumes' stripe units need %u",
				  uri, space.max_transfer_bytes, least_transfer_bytes);
	return error ? error : weir_admin_queue_count(&ring->admin, QUEUE, &granted);
}

static int create_queue(struct ring_channel *ring)
{
	unsigned char *sq = ring->own + WEIR_ADMIN_MEMORY_BYTES;
	int error;

	ring->entries = ENTRIES < ring->admin.most_entries ? ENTRIES : ring->admin.most_entries;
	ring->phase = 1;
	for (unsigned i = 0; i + 1 < ring->entries; i++)
		ring->free[ring->free_count++] = (u16)i;
	error = weir_admin_create_queue(&ring->admin, QUEUE, ring->entries, (uintptr_t)sq,
					(uintptr_t)sq + SQ_BYTES);
	ring->created = !error;
	return error;
}

int weir_channel_open(const char *uri, void *memory, size_t bytes, unsigned least_transfer_bytes,
		      struct weir_channel **out)
{
	struct ring_channel *ring = calloc(1, sizeof(*ring));
	int error;

	if (!ring)
		return weir_fail(ENOMEM, "storage \"%s\": no memory for a channel", uri);
	ring->base.ops = &ring_ops;
	error = take_memory(ring, uri, memory, bytes);
	if (!error)
		error = open_transport(ring, uri);
	if (!error)
		error = start_controller(ring, uri, least_transfer_bytes);
	if (!error)
		error = create_queue(ring);
	if (error) {
		ring_close(&ring->base);
		return error;
	}
	*out = &ring->base;
	return 0;
}
