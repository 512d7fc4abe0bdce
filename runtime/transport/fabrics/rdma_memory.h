/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_memory.h: the memory of a storage that a device of RDMA may reach: each allocation is registered once.
 *
 * Owns: the registrations. They follow the DMA map, from any thread; the mover looks keys up.
 */
#ifndef WEIR_FABRICS_RDMA_MEMORY_H
#define WEIR_FABRICS_RDMA_MEMORY_H

#include <infiniband/verbs.h>

#include "../../storage/dma.h"

struct nvmf_rdma_memory;

/** nvmf_rdma_memory_create() - of device @verbs, for what @map has and will have (NULL: nothing); 0 or a
 * negative errno */
int nvmf_rdma_memory_create(struct ibv_context *verbs, struct weir_dma_map *map,
			    struct nvmf_rdma_memory **out);
/** nvmf_rdma_memory_destroy() - no queue pair of its domain is left */
void nvmf_rdma_memory_destroy(struct nvmf_rdma_memory *memory);
/** nvmf_rdma_memory_domain() - the protection domain, for queue pairs and other memory */
struct ibv_pd *nvmf_rdma_memory_domain(const struct nvmf_rdma_memory *memory);
/** nvmf_rdma_memory_key() - by which the other end reaches [@address, @address + @bytes); false: it cannot */
bool nvmf_rdma_memory_key(struct nvmf_rdma_memory *memory, uint64_t address, uint64_t bytes, uint32_t *key);

#endif
