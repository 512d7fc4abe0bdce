/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow.h: shadow doorbells of a storage's controller: memory that lanes write before they ring, or instead.
 *
 * Owns: the decision to use them, and their pages; those of a controller that storages share are the controller's.
 */
#ifndef WEIR_RUNTIME_SHADOW_H
#define WEIR_RUNTIME_SHADOW_H

struct weir_storage;

/** weir_shadow_use() - give the controller of @storage shadow doorbells for @queues pairs, where it offers them and they were not
 * declined; 0 or a negative errno with a sentence
 */
int weir_shadow_use(struct weir_storage *storage, unsigned queues);
/** weir_shadow_end() - no lane writes them any more, nor does the controller read them */
void weir_shadow_end(struct weir_storage *storage);

#endif
