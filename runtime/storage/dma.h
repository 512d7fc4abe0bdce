/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dma.h: which memory a controller of ours may touch: the virtual IOMMU.
 *
 * A virtual controller follows addresses that lanes wrote into a ring. It never
 * trusts them: every byte it reads or writes must lie in a region added here. For a
 * real controller an IOMMU sees to that, which follows the map.
 */
#ifndef WEIR_RUNTIME_DMA_H
#define WEIR_RUNTIME_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_dma_map;

/**
 * struct weir_dma_region - @bytes of memory from @address on
 * @peer: another device's, mapped
 * @shares: how often it was added
 * @host: where the process has it mapped; as @address, but for memory of a device whose lanes call it by
 * another address
 */
struct weir_dma_region {
	uint64_t address;
	uint64_t bytes;
	uint64_t id; /* never reused in one map; says which registration this is */
	bool peer;
	unsigned shares;
	void *host;
};

/**
 * struct weir_dma_view - one controller thread's copy of the map
 *
 * Zero-initialise it. weir_dma_view_refresh() brings it up to date at the price
 * of one relaxed load when nothing changed.
 */
struct weir_dma_view {
	uint64_t generation;
	struct weir_dma_region *regions; /* sorted by address */
	size_t count;
	size_t last; /* region of the latest hit */
};

int weir_dma_map_create(struct weir_dma_map **out);
void weir_dma_map_destroy(struct weir_dma_map *map);

/** weir_dma_map_add() - allow DMA to a region; -EEXIST if it overlaps another */
int weir_dma_map_add(struct weir_dma_map *map, void *address, size_t bytes);
/** weir_dma_map_add_peer() - the same for a device's memory, such as a mapped BAR: mappers that take none
 * leave it out */
int weir_dma_map_add_peer(struct weir_dma_map *map, void *address, size_t bytes);
/**
 * weir_dma_map_add_device() - weir_dma_map_add_peer() of memory that lanes have at @address, and the process
 * at @host
 *
 * A controller in software does not follow addresses of such memory: it would use them as the process's.
 */
int weir_dma_map_add_device(struct weir_dma_map *map, uint64_t address, size_t bytes, void *host);
/**
 * weir_dma_map_share() - add what others may have added already, all of it and no more: it is removed as
 * often
 *
 * For a map that follows several others. Return: as weir_dma_map_add(), for one that is not the same.
 */
int weir_dma_map_share(struct weir_dma_map *map, void *address, size_t bytes, void *host);
/** weir_dma_map_remove() - forbid it again; later commands naming it fail */
int weir_dma_map_remove(struct weir_dma_map *map, void *address);

/**
 * struct weir_dma_mapper - an IOMMU that follows the map: what a real controller may touch
 * @map: let the controller reach [address, address + bytes), which the process has at @host; a negative errno
 * with a sentence refuses it
 * @unmap: no longer; what it still does there fails from now on
 * @peers: it takes what weir_dma_map_add_peer() added, too
 * @next: the map's
 *
 * Called with the map locked, so that they do not touch it.
 */
struct weir_dma_mapper {
	int (*map)(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes, void *host);
	void (*unmap)(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes);
	bool peers;
	struct weir_dma_mapper *next;
};

/** weir_dma_map_follow() - @mapper maps every region, those of now and of later; on an error none */
int weir_dma_map_follow(struct weir_dma_map *map, struct weir_dma_mapper *mapper);
/** weir_dma_map_unfollow() - it unmaps them all and is forgotten */
void weir_dma_map_unfollow(struct weir_dma_map *map, struct weir_dma_mapper *mapper);

/** weir_dma_view_refresh() - true if the view changed */
bool weir_dma_view_refresh(struct weir_dma_map *map, struct weir_dma_view *view);
void weir_dma_view_release(struct weir_dma_view *view);
/**
 * weir_dma_view_find() - the region that holds all of [address, address + bytes)
 *
 * Return: NULL if no single region does, or if the range wraps.
 */
const struct weir_dma_region *weir_dma_view_find(struct weir_dma_view *view, uint64_t address,
						 uint64_t bytes);

#endif
