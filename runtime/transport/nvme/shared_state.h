/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvme/shared_state.h: a shared controller and a storage's part in it, for the two files that work on them.
 *
 * nvme/shared.c: the process's list, opening and closing. nvme/shared_serve.c: what a storage asks of a
 * controller that is open.
 */
#ifndef WEIR_TRANSPORT_NVME_SHARED_STATE_H
#define WEIR_TRANSPORT_NVME_SHARED_STATE_H

#include <pthread.h>

#include "../../storage/admin.h"
#include "shared.h"

/** enum weir_nvme_shared_phase - of a controller in the list; others wait while it is opened or closed */
enum weir_nvme_shared_phase {
	WEIR_NVME_SHARED_OPENING,
	WEIR_NVME_SHARED_OPEN,
	WEIR_NVME_SHARED_CLOSING,
};

struct weir_nvme_member;

/** struct weir_nvme_number - an I/O queue pair: whose its number is, and what the controller has of it */
struct weir_nvme_number {
	struct weir_nvme_member *owner;
	bool sq;
	bool cq;
};

/**
 * struct weir_nvme_shared - a controller
 * @next, @phase: the list's
 * @members: storages; changed under the list's lock and @lock, so that either is enough to read
 * @lock: around the admin queue, @numbers and all that follows
 * @numbers: of pairs 1 to @granted
 * @generation: how often it was reset; queue pairs are of one generation
 * @stopping: a storage has it reset, and it may not be ready any more; read without @lock
 * @down: a reset ended its queue pairs, and it was not started again
 * @halted: it may do no DMA any more, and does not come back
 * @asked: the system wants it back
 * @shadow_file: memory of @shadow_pages, which each storage maps for itself; -1: no shadow doorbells
 */
struct weir_nvme_shared {
	struct weir_nvme_shared *next;
	enum weir_nvme_shared_phase phase;
	char *key;
	char *name;
	struct weir_nvme_raw raw;
	struct weir_nvme_member *members;
	pthread_mutex_t lock;
	struct weir_admin admin;
	struct weir_namespace space;
	void *memory;
	struct weir_nvme_number *numbers;
	unsigned granted;
	uint64_t generation;
	bool stopping;
	bool down;
	bool halted;
	bool asked;
	int shadow_file;
	void *shadow_pages;
};

/**
 * struct weir_nvme_member - a storage's part
 * @mapper: follows @dma, its context's
 * @registers: its own mapping of them, or NULL
 * @shadow: its own mapping of the shadow doorbells, or NULL
 * @ids: numbers of its queue pairs, in the order of creation
 * @generation: that its queue pairs are of, once it has any
 * @finished: it needs the controller no longer; the list's lock
 * @yielded: its lanes ring the registers no longer, since the system wants the controller
 * @dead: it was given up, and the others were not
 */
struct weir_nvme_member {
	struct weir_transport base;
	struct weir_nvme_shared *controller;
	struct weir_nvme_member *next;
	struct weir_dma_mapper mapper;
	struct weir_dma_map *dma;
	void *registers;
	void *shadow;
	unsigned *ids;
	unsigned count;
	uint64_t generation;
	bool finished;
	bool yielded;
	bool dead;
	char *uri;
};

/** weir_nvme_shared_start() - enable it, and give it all that a reset makes it forget but queue pairs; with
 * @lock */
int weir_nvme_shared_start(struct weir_nvme_shared *controller, enum weir_shadow shadow);
/** weir_nvme_shared_reset() - end all queue pairs, and start it again; with @lock */
int weir_nvme_shared_reset(struct weir_nvme_shared *controller);
/** weir_nvme_shared_free() - numbers that nobody has; with @lock */
unsigned weir_nvme_shared_free(const struct weir_nvme_shared *controller);
/** weir_nvme_shared_drop() - @member has no queue pair at the controller any more, whatever it takes; its
 * numbers are free; with @lock */
void weir_nvme_shared_drop(struct weir_nvme_member *member);

/** Functions of struct weir_transport_ops, of a member */
uint32_t weir_nvme_member_read32(struct weir_transport *transport, uint32_t offset);
uint64_t weir_nvme_member_doorbell(struct weir_transport *transport, unsigned index);
int weir_nvme_member_restart(struct weir_transport *transport);
void weir_nvme_member_stats(struct weir_transport *transport, struct weir_transport_stats *stats);
bool weir_nvme_member_wanted(struct weir_transport *transport);
void weir_nvme_member_give_way(struct weir_transport *transport);
int weir_nvme_member_halt(struct weir_transport *transport);
const char *weir_nvme_member_path(struct weir_transport *transport);
int weir_nvme_member_admin(struct weir_transport *transport, const struct nvme_sqe *command, unsigned ms,
			   uint32_t *result);
int weir_nvme_member_reset(struct weir_transport *transport);
bool weir_nvme_member_was_reset(struct weir_transport *transport);
int weir_nvme_member_adopt(struct weir_transport *transport, const struct weir_rings *rings);
unsigned weir_nvme_member_queue_id(struct weir_transport *transport, uint32_t index);
void *weir_nvme_member_shadow(struct weir_transport *transport);

#endif
