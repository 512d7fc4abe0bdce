/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doorbells.h: where lanes ring, and who rings for them.
 *
 * Owns: the choice between registers that lanes store to (the host's mapping, or the backend's of that) and
 * words that a thread of the host forwards (forward.h); the words and the thread.
 */
#ifndef WEIR_RUNTIME_DOORBELLS_H
#define WEIR_RUNTIME_DOORBELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "forward.h"

struct weir_storage;
struct weir_doorbells;

/**
 * weir_doorbells_locate() - decide where lanes ring; if the host forwards, its thread begins
 * @queues: queue pairs asked for
 *
 * Return: 0; -ENOTSUP with a sentence where doorbell=lanes and the lanes cannot; -ENOMEM, -EAGAIN.
 */
int weir_doorbells_locate(struct weir_storage *storage, uint32_t queues);

/** weir_doorbells_add() - pair @index is about to be created for the first time: give its words something to
 * be forwarded to */
void weir_doorbells_add(struct weir_storage *storage, uint32_t index);

/** weir_doorbells_at() - where lanes ring the SQ (@which 0) or CQ (1) doorbell of pair @index */
uint64_t weir_doorbells_at(const struct weir_storage *storage, uint32_t index, unsigned which);

/** weir_doorbells_begin() - pair @index is created anew: the host has both of its roles, and has settled
 * before it was deleted */
void weir_doorbells_begin(struct weir_storage *storage, uint32_t index);

/** weir_doorbells_settle() - whatever lanes have rung so far is forwarded */
void weir_doorbells_settle(struct weir_storage *storage);

/** weir_doorbells_forwarded() - a thread of the host rings for lanes */
bool weir_doorbells_forwarded(const struct weir_storage *storage);

/** weir_doorbells_halt() - the controller is given up, for good: nothing is forwarded any more */
void weir_doorbells_halt(struct weir_storage *storage);

/** weir_doorbells_mapped() - lanes ring registers that their device has mapped */
bool weir_doorbells_mapped(const struct weir_storage *storage);

/** weir_doorbells_unmap() - the device maps them no longer, which waits for the kernels that run; lanes must
 * not ring any more */
void weir_doorbells_unmap(struct weir_storage *storage);

/** weir_doorbells_rings() - registers rung for lanes although they have shadows */
uint64_t weir_doorbells_rings(const struct weir_storage *storage);

/** weir_doorbells_end() - lanes ring no more: end the thread, and take the registers back from the device */
void weir_doorbells_end(struct weir_storage *storage);

/** weir_doorbells_path() - who rings, for people: "" where lanes do by the host's mapping */
const char *weir_doorbells_path(const struct weir_storage *storage);

/** weir_doorbells_why() - why lanes do not ring, where a thread rings that nobody asked for; else "" */
const char *weir_doorbells_why(const struct weir_storage *storage);

#endif
