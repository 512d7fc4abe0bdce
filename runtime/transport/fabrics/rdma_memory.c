/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

/** struct registration - a region of the DMA map */
struct registration {
	struct registration *next;
	uint64_t address;
	uint64_t bytes;
	struct ibv_mr *region;
};

/** struct nvmf_rdma_memory - @first: under @lock, which is taken with the map locked, never the other way */
struct nvmf_rdma_memory {
	struct weir_dma_mapper mapper;
	struct weir_dma_map *map;
	struct ibv_pd *domain;
	pthread_mutex_t lock;
	struct registration *first;
};

/* What cannot be registered goes through memory of the queue's. */
static int map(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes, void *host)
{
	struct nvmf_rdma_memory *memory = (struct nvmf_rdma_memory *)mapper;
	struct registration *added;

	if ((uintptr_t)host != address)
		return 0;
	added = calloc(1, sizeof(*added));
	if (!added)
		return 0;
	*added = (struct registration){ .address = address, .bytes = bytes };
	added->region = ibv_reg_mr(memory->domain, host, bytes, ACCESS);
	if (!added->region) {
		free(added);
		return 0;
	}
	pthread_mutex_lock(&memory->lock);
	added->next = memory->first;
	memory->first = added;
	pthread_mutex_unlock(&memory->lock);
	return 0;
}

static void unmap(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes)
{
	struct nvmf_rdma_memory *memory = (struct nvmf_rdma_memory *)mapper;
	struct registration **link, *gone;

	(void)bytes;
	pthread_mutex_lock(&memory->lock);
	for (link = &memory->first; *link && (*link)->address != address; link = &(*link)->next)
		;
	gone = *link;
	if (gone)
		*link = gone->next;
	pthread_mutex_unlock(&memory->lock);
	if (!gone)
		return;
	(void)ibv_dereg_mr(gone->region);
	free(gone);
}

int nvmf_rdma_memory_create(struct ibv_context *verbs, struct weir_dma_map *of, struct nvmf_rdma_memory **out)
{
	struct nvmf_rdma_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return -ENOMEM;
	memory->domain = ibv_alloc_pd(verbs);
	if (!memory->domain) {
		free(memory);
		return -ENOMEM;
	}
	pthread_mutex_init(&memory->lock, NULL);
	memory->mapper = (struct weir_dma_mapper){ .map = map, .unmap = unmap };
	memory->map = of;
	if (of)
		(void)weir_dma_map_follow(of, &memory->mapper); /* it refuses nothing */
	*out = memory;
	return 0;
}

void nvmf_rdma_memory_destroy(struct nvmf_rdma_memory *memory)
{
	if (!memory)
		return;
	if (memory->map)
		weir_dma_map_unfollow(memory->map, &memory->mapper);
	(void)ibv_dealloc_pd(memory->domain);
	pthread_mutex_destroy(&memory->lock);
	free(memory);
}

struct ibv_pd *nvmf_rdma_memory_domain(const struct nvmf_rdma_memory *memory)
{
	return memory->domain;
}

static bool holds(const struct registration *at, uint64_t address, uint64_t bytes)
{
	return address >= at->address && address - at->address < at->bytes &&
	       bytes <= at->bytes - (address - at->address);
}

bool nvmf_rdma_memory_key(struct nvmf_rdma_memory *memory, uint64_t address, uint64_t bytes, uint32_t *key)
{
	const struct registration *at;

	pthread_mutex_lock(&memory->lock);
	for (at = memory->first; at && !holds(at, address, bytes); at = at->next)
		;
	if (at)
		*key = at->region->rkey;
	pthread_mutex_unlock(&memory->lock);
	return at != NULL;
}
