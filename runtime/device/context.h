/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context.h: the runtime's objects, for its own files.
 *
 * Owns: what is behind the opaque handles of <weir/weir.h>.
 */
#ifndef WEIR_RUNTIME_CONTEXT_H
#define WEIR_RUNTIME_CONTEXT_H

#include <weir/abi.h>
#include <weir/weir.h>

#include "../storage/admin.h"
#include "../backend/backend.h"
#include "../storage/dma.h"
#include "../base/handles.h"
#include "../base/losses.h"
#include "../base/options.h"

/** struct weir_memory_block - one allocation, in a list of its context */
struct weir_memory_block {
	struct weir_memory_block *next;
	uint64_t address;
	void *host; /* NULL where the host cannot see it */
	size_t bytes;
	enum weir_memory kind;
	bool users;     /* of weir_alloc() and the like; else the runtime's own */
	void *exported; /* where a dma-buf of it is mapped for controllers (peer.h), or NULL */
};

struct weir_context {
	struct weir_backend *backend;
	bool shared_memory;               /* the backend's property: the host reaches what lanes have */
	bool peer_memory;                 /* likewise: what lanes have is a device's, mapped */
	const struct weir_window *window; /* likewise: by the kernel module; or NULL */
	struct weir_dma_map *dma;
	struct weir_memory_block *memory;
	unsigned peer_storages; /* whose controllers reach memory that the host does not share (peer.h) */
	uint64_t fault;         /* struct weir_fault, device; closed.h has the rest of its page */
	uint64_t closed_set;    /* closed.h; 0: not needed yet */
	uint32_t next_disk_id;
	struct weir_storage *open;      /* a list of them */
	struct weir_cache *open_caches; /* a list of them */
	bool late_lines;                /* a storage was closed, and had not let go of all of its lines */
	unsigned number;                /* among the process's contexts, once it is published (publish.h) */
	int publisher;                  /* process that did */
	char *published;                /* its file, or NULL */
	uint32_t service_waves;         /* that reap for everybody; 0: whoever waits helps */
	struct weir_files *files;       /* NULL until memory is registered (file/files.h) */
};

/** struct weir_recovered - how often the watchdog had to act (struct weir_stats) */
struct weir_recovered {
	weir_shared_u64 late;
	weir_shared_u64 aborted;
	weir_shared_u64 queues;
	weir_shared_u64 resets;
};

/**
 * struct weir_storage - an open storage
 * @queues: device address of struct weir_queue[disk.queue_count]
 * @rings: device address per queue of its SQ, CQ and PRP lists
 * @slots: device address per queue of its slots
 * @staging: address per queue of its staging; none if !@pull
 * @pull: lanes move the data between staging and their buffers
 */
struct weir_storage {
	struct weir_context *context;
	struct weir_storage *next;
	struct weir_transport *transport;
	struct weir_admin admin;
	struct weir_namespace space;
	struct weir_disk disk;
	char *uri;
	uint64_t admin_memory;
	uint64_t queues;
	uint64_t *rings;
	uint64_t *slots;
	uint64_t *staging;
	uint64_t medium_memory; /* of the host, which its medium was lent; 0: none */
	bool places;            /* @pull: lanes find what they read there, not in staging */
	uint64_t queue_bytes;
	struct weir_device_controller *device_controller; /* the controller on the device, or NULL */
	struct weir_service *service;                     /* who reaps for everybody, or NULL */
	struct weir_watchdog *watchdog; /* who looks whether the controller lives, or NULL */
	struct weir_recovered recovered;
	uint64_t answer_ns;   /* what the controller may take for a command before the watchdog acts; 0: any
				 time */
	uint32_t queue_count; /* that rings, slots, staging and queues have room for */
	uint64_t doorbell_memory; /* for a software controller's */
	uint64_t doorbells;       /* its doorbells, or those of a controller on the device */
	struct weir_doorbells
		*forwarder;     /* lanes ring somewhere else (doorbells.h); NULL: there, or at registers */
	uint64_t shadow_memory; /* WEIR_ADMIN_SHADOW_BYTES that they write first; 0: none */
	void *shadow_host;      /* the same, as the host sees it */
	bool shadow_registered; /* they are a shared controller's, and the device has them mapped */
	uint32_t created;       /* queue pairs the controller knows */
	uint32_t depth;
	bool enabled;
	weir_status dead; /* why the watchdog gave its controller up; WEIR_OK: it has not */
	bool pull;
	bool peer;                   /* its controller reaches memory that the host does not share */
	bool is_part;                /* its queue pairs lie in memory of another storage's (volume/lanes.h) */
	struct weir_storage **parts; /* NULL, or engines that its lanes reach, some of them NULL */
	unsigned part_count;
	bool parts_written; /* its lanes have written to them, until they were closed */
};

/** weir_storage_bytes() - its size to the byte: less than its blocks hold where the last one is not whole */
static inline uint64_t weir_storage_bytes(const struct weir_storage *storage)
{
	uint64_t blocks = storage->disk.blocks << storage->disk.block_log2,
		 end = storage->transport->end_bytes;

	return end && end < blocks ? end : blocks;
}

/** weir_inflight_check() - -EBUSY with a sentence if a command of an open storage has [@address, @address +
 * @bytes) */
int weir_inflight_check(struct weir_context *context, uint64_t address, size_t bytes);

/** weir_inflight() - true if weir_inflight_check() would refuse; says nothing */
bool weir_inflight(struct weir_context *context, uint64_t address, size_t bytes);
/** weir_memory_get() - weir_alloc() of memory that is the runtime's own: weir_free() refuses it */
int weir_memory_get(struct weir_context *context, size_t bytes, uint64_t *address);
/** weir_memory_put() - free memory, the runtime's own or not; 0 is fine; -EBUSY as weir_free() */
int weir_memory_put(struct weir_context *context, uint64_t address);
/** weir_memory_leave() - weir_memory_put() for what a command may have kept: that stays until the context is
 * closed; says nothing */
void weir_memory_leave(struct weir_context *context, uint64_t address, size_t bytes);

/** weir_memory_allocate() - like weir_alloc(), with the kind; *host may come out NULL */
int weir_memory_allocate(struct weir_context *context, size_t bytes, enum weir_memory kind, uint64_t *address,
			 void **host);

/** weir_files_forget() - an allocation is about to be freed: what registrations kept of it goes
 * (file/files.c) */
void weir_files_forget(struct weir_context *context, uint64_t address);

/** weir_disk_flush() - NVMe Flush of a storage, by lanes; @uri for the message */
int weir_disk_flush(struct weir_context *context, const struct weir_disk *disk, const char *uri);
/** weir_storage_open_at() - weir_storage_open(), for a part of another storage, whose queue pairs go to
 * device address @queues */
int weir_storage_open_at(struct weir_context *context, const char *uri,
			 const struct weir_storage_options *options, uint64_t queues,
			 struct weir_storage **out);
/** weir_storage_shut() - close an open storage, which is none any more; as weir_storage_close() */
int weir_storage_shut(struct weir_storage *storage);
/** weir_cache_shut() - destroy an open cache; as weir_cache_destroy() */
int weir_cache_shut(struct weir_cache *cache);
/** weir_cache_leave_storage() - @storage is about to be closed: its dirty lines are written back, all of them
 * forgotten */
int weir_cache_leave_storage(struct weir_cache *cache, const struct weir_storage *storage);
/** weir_cache_forget_storage() - @storage is closed, and its commands have ended: lines that they had are
 * forgotten, too */
void weir_cache_forget_storage(struct weir_cache *cache, const struct weir_storage *storage);
/** weir_files_registered() - -EBUSY with a sentence if a registration has some of [@address, @address +
 * @bytes) */
int weir_files_registered(struct weir_context *context, uint64_t address, uint64_t bytes);

/** weir_policy_check() - a cache may have this policy; else -EINVAL with a sentence */
int weir_policy_check(const struct weir_cache_options *options);

/** weir_queue_id() - NVMe's number of queue pair @index */
unsigned weir_queue_id(const struct weir_storage *storage, uint32_t index);
/** weir_queue_create() - memory, structure and controller side of queue pair @index */
int weir_queue_create(struct weir_storage *storage, uint32_t index, uint64_t first_ticket,
		      uint32_t max_transfer_bytes);
/**
 * weir_queue_has_records() - a request of queue pair @index failed and could be tried again, or nobody knows
 *
 * Who waits for its event looks at its record, beside the slots: whenever that is.
 */
bool weir_queue_has_records(const struct weir_storage *storage, uint32_t index);
/** weir_queue_cq_offset() - from the start of a pair's rings to its completion ring */
uint64_t weir_queue_cq_offset(uint32_t depth);
/** weir_queue_memory_bytes() - memory one queue pair takes */
uint64_t weir_queue_memory_bytes(uint32_t depth, uint32_t max_transfer_bytes, bool pull);

#endif
