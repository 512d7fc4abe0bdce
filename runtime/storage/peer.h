/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h: memory of a device that the host does not share, for controllers beside it.
 *
 * Owns: the dma-bufs that the backend makes of it, mapped by the process so that VFIO can map them for a
 * controller, and the test that a controller's data arrives there. Nobody tells VFIO when such memory goes,
 * which is why a storage has to ask for it (gpu_memory=data|queues); weir frees none of it while a controller
 * may write there.
 */
#ifndef WEIR_RUNTIME_PEER_H
#define WEIR_RUNTIME_PEER_H

#include <stdbool.h>

struct weir_context;
struct weir_memory_block;
struct weir_storage;

/** weir_peer_asked() - the storage asks for that, on a device for which it is needed */
bool weir_peer_asked(const struct weir_storage *storage);

/**
 * weir_peer_use() - have the controller of @storage, which is enabled, reach all memory of its device
 *
 * That is: what is allocated, and what will be while the storage is open. Then the controller writes to some,
 * which was filled with something else, and the device has to see what came. Return: 0; a negative errno with
 * a part of a sentence that says what stands in the way: the memory is as before.
 */
int weir_peer_use(struct weir_storage *storage);

/** weir_peer_end() - @storage is closed; nothing if weir_peer_use() was not called, or failed */
void weir_peer_end(struct weir_storage *storage);

/** weir_peer_add() - an allocation of @context's device, which some storage's controller is to reach; 0 or a
 * negative errno */
int weir_peer_add(struct weir_context *context, struct weir_memory_block *block);
/** weir_peer_remove() - it is about to be freed */
void weir_peer_remove(struct weir_context *context, struct weir_memory_block *block);

#endif
