/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow.h: shadow doorbells of a storage's controller: memory that lanes write before they ring, or instead.
 *
 * Owns: the decision to use them, and their pages; those of a controller that storages share are the
 * controller's.
 */
#ifndef WEIR_RUNTIME_SHADOW_H
#define WEIR_RUNTIME_SHADOW_H

struct weir_storage;

/** weir_shadow_use() - give the controller of @storage shadow doorbells for @queues pairs, where it offers
 * them and they were not declined; 0 or a negative errno with a sentence
 */
int weir_shadow_use(struct weir_storage *storage, unsigned queues);
/** weir_shadow_release() - no lane writes them any more: the device forgets pages that are the controller's
 */
void weir_shadow_release(struct weir_storage *storage);
/** weir_shadow_free() - the transport is closed, so no controller reads them any more: free the storage's own
 * pages */
void weir_shadow_free(struct weir_storage *storage);

#endif
