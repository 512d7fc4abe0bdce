/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admin.h: bringing an NVMe controller up and giving it queues.
 *
 * Owns: admin commands, one at a time, from the host, and what they say; the admin queue pair, unless the
 * controller is another driver's, which then has the one that is used. Works on any transport. NVM Express
 * Base 2.0, sections 3.5 (initialisation) and 5 (admin).
 */
#ifndef WEIR_RUNTIME_ADMIN_H
#define WEIR_RUNTIME_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/nvme.h>

#include "../transport/transport.h"

/**
 * struct weir_admin - a controller and its admin queue pair
 * @memory: host address of SQ, CQ and one data page (three pages, DMA-able)
 * @bus: the same, as lanes have it
 * @timeout_ms: CAP.TO, in milliseconds
 * @command_ms: what an admin command may take
 * @most_entries: CAP.MQES + 1
 * @shutdown_ms: what a shutdown may take; it outlives resets
 * @shadow: what weir_admin_shadow() was given since the last reset, or NULL
 * @command_sets: it may have namespaces that are no plain ones (CAP.CSS, bit 6; not known of another driver's
 * controller)
 * @silent: an admin command got no answer: until weir_admin_enable() no further one is sent
 */
struct weir_admin {
	struct weir_transport *transport;
	uint8_t *memory;
	uint64_t bus;
	unsigned timeout_ms;
	unsigned command_ms;
	unsigned most_entries;
	unsigned sq_tail;
	unsigned cq_head;
	unsigned phase;
	unsigned shutdown_ms;
	uint8_t *shadow;
	bool command_sets;
	bool silent;
};

enum { WEIR_RETRY_DELAYS = 3 };

/**
 * struct weir_namespace - what Identify says of the namespace in use
 * @shadow_doorbells: the controller has Doorbell Buffer Config
 * @retry_delays: CRDT1 to CRDT3, in 100 ms
 */
struct weir_namespace {
	uint32_t nsid;
	uint64_t blocks;
	uint32_t block_log2;
	uint32_t max_transfer_bytes;
	bool volatile_write_cache;
	bool write_protected;
	bool shadow_doorbells;
	uint16_t retry_delays[WEIR_RETRY_DELAYS];
	char model[41];
	char serial[21];
};

enum { WEIR_ADMIN_MEMORY_BYTES = 3 * NVME_PAGE_BYTES, WEIR_ADMIN_SHADOW_BYTES = 2 * NVME_PAGE_BYTES };

/**
 * weir_admin_enable() - check that weir can drive it, reset and enable; CAP's timeout applies
 * @admin: zeroed the first time
 */
int weir_admin_enable(struct weir_admin *admin, struct weir_transport *transport, void *memory, uint64_t bus);
/**
 * weir_admin_identify() - the controller and its active namespace @nsid
 * @nsid: 0: the first; if @writes, only where the controller has namespace 1 alone, so that none is written
 * to by accident
 */
int weir_admin_identify(struct weir_admin *admin, uint32_t nsid, bool writes, struct weir_namespace *out);
/** weir_admin_controller() - the part of it that is the controller's: of @out what is no namespace's */
int weir_admin_controller(struct weir_admin *admin, struct weir_namespace *out);
/** weir_admin_identify_at() - Identify Controller, to the page that lanes have at @bus */
int weir_admin_identify_at(struct weir_admin *admin, uint64_t bus);
/** weir_admin_retry_delays() - have the controller give them, if @space says that it has any; a reset forgets
 * it */
void weir_admin_retry_delays(struct weir_admin *admin, const struct weir_namespace *space);
/** weir_admin_queue_count() - ask for @wanted queue pairs; *granted may be fewer */
int weir_admin_queue_count(struct weir_admin *admin, unsigned wanted, unsigned *granted);
/**
 * weir_admin_shadow() - have the controller read doorbells from memory (Doorbell Buffer Config, Base 2.0
 * section 5.8)
 * @pages: WEIR_ADMIN_SHADOW_BYTES that it can reach, zeroed here: the doorbells' shadow, then their EventIdx
 * @bus: bus address of @pages
 *
 * Before queues are created; a reset forgets it. They begin with words of 0 in both pages.
 */
int weir_admin_shadow(struct weir_admin *admin, void *pages, uint64_t bus);
/** weir_admin_create_queue() - I/O queue pair @id; rings contiguous and page-aligned, addresses as lanes have
 * them */
int weir_admin_create_queue(struct weir_admin *admin, unsigned id, unsigned depth, uint64_t sq, uint64_t cq);
/** weir_admin_delete_queue() - and wait until nothing of it is in flight */
int weir_admin_delete_queue(struct weir_admin *admin, unsigned id);
/** weir_admin_abort() - Abort of command @cid of submission queue @id; *aborted: the controller says that it
 * ends now */
int weir_admin_abort(struct weir_admin *admin, unsigned id, unsigned cid, bool *aborted);
/**
 * weir_admin_stop() - CC.EN = 0 at once, for a reset; once it is 0 the controller touches no memory any more
 *
 * Of another driver's: that resets it, and then it touches none of ours any more.
 */
int weir_admin_stop(struct weir_admin *admin);
/** weir_admin_pass() - send @command as it is, and wait for it: its NVMe status, or a negative errno with a
 * sentence */
int weir_admin_pass(struct weir_admin *admin, const struct nvme_sqe *command, uint32_t *result);
/** weir_admin_answers() - CSTS says that it is ready, and it has let no admin command down */
bool weir_admin_answers(const struct weir_admin *admin);
/** weir_admin_fell_silent() - CSTS says that it is ready, and an admin command got no answer */
bool weir_admin_fell_silent(const struct weir_admin *admin);
/**
 * weir_admin_disable() - normal shutdown, then CC.EN = 0; nothing is asked of one that is gone, or another
 * driver's, and of one that several storages share by the last
 *
 * Return: 0: its shutdown made what was written durable; else -EIO or -ETIMEDOUT with a sentence.
 */
int weir_admin_disable(struct weir_admin *admin);

#endif
