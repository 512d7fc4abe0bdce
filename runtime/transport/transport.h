/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport.h: how the runtime reaches an NVMe controller.
 *
 * Owns: the transport vtable: registers, doorbells, an end. What is behind them
 * (software, a PCIe function) is the transport's business.
 */
#ifndef WEIR_TRANSPORT_H
#define WEIR_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/nvme.h>

#include "../storage/dma.h"
#include "../storage/device_controller.h"
#include "../base/uri.h"

struct weir_transport;
struct weir_storage;
struct weir_medium;
struct weir_virtual;
struct weir_window;
struct weir_lender;
struct virtual_front;

/** struct weir_transport_stats - bytes the controller moved, as far as it can tell; @changed: blocks were,
 * with data or without */
struct weir_transport_stats {
	uint64_t bytes_read;
	uint64_t bytes_written;
	bool changed;
};

/**
 * struct weir_transport_request - what a storage asks of its transport
 * @uri: parsed; the transport takes its keys and calls weir_uri_finish()
 * @dma: memory the controller may touch
 * @peer_memory: device memory is another device's, mapped; its regions in @dma are marked so
 * @window: all of device memory is this window of the kernel module weir_p2p; NULL: it is none
 * @read_only: the storage will not be written
 * @doorbells: host address of memory for the doorbells of a controller that has none of
 *             its own: weir_virtual_doorbell_bytes(queues), zeroed
 * @queues: I/O queue pairs wanted
 * @depth: entries of each
 * @front: of virt: and file:, who brings commands instead of rings (virtual/front.h); the caller polls
 *         weir_transport_core() with @front_threads threads then. NULL: rings
 * @front_threads: see @front
 * @engine: volumes are in front of it (engine/engine.h), as if its URI said engine=on
 * @manager: of the engine's options, or NULL
 * @host_rings: all doorbells are rung by weir_mmio_store_u32() on the host, which wakes who sleeps behind
 * them (sleeper.h)
 * @lender: memory that lanes read, for the medium of virt: (medium/medium.h); NULL: there is none
 * @pulls: lanes move the data of a controller on the host, unless the URI says mover=direct
 */
struct weir_transport_request {
	struct weir_uri *uri;
	struct weir_dma_map *dma;
	bool peer_memory;
	const struct weir_window *window;
	bool read_only;
	void *doorbells;
	unsigned queues;
	unsigned depth;
	const struct virtual_front *front;
	unsigned front_threads;
	bool engine;
	const char *manager;
	bool host_rings;
	const struct weir_lender *lender;
	bool pulls;
};

/** struct weir_rings - where lanes have the rings of queue pair @index */
struct weir_rings {
	uint32_t index;
	uint64_t sq;
	uint64_t sq_bytes;
	uint64_t cq;
	uint64_t cq_bytes;
};

/**
 * struct weir_transport_ops - a transport's functions
 * @size: sizeof(struct weir_transport_ops)
 * @scheme: the URI scheme it serves
 * @open: reach a controller; 0 or a negative errno with a sentence
 * @read64, @read32, @write64, @write32: registers, by offset
 * @doorbell: host address of doorbell register @index (2q SQ tail, 2q + 1 CQ head)
 * @restart: the controller may have been reset behind our back, with all of its PCI function: wait until that
 * is over, and let it do DMA and have registers again; 0 or a negative errno with a sentence. NULL: nothing
 * to do
 * @away: its controller is not connected, and is looked for: what failed for that may be tried again, with
 * @restart first. NULL: it has no connection to lose
 * @give_way: asked about forty times a second by one thread: let go of the controller if the system wants it
 * back; its registers read as all ones from then on. NULL: nobody would
 * @wanted: asked before @give_way by the same thread: the system wants it back. NULL: never
 * @halt: the controller has failed, or is gone: keep it from memory, for good, within a few seconds. 0: it
 * does not touch any more; or a negative errno with a sentence. NULL: there is no way to
 * @places: lanes move the data, and its medium lies in memory of the request's lender: reads leave their data
 * there from now on, and say where (weir_virtual_answer_places()). Return: whether they do. NULL: never
 * @path: how it reaches the bytes just now, for people; valid while it is open
 * @close: let go of it; every queue that could be deleted is deleted already
 *
 * Of a controller that another driver keeps, or that several storages share (nvme/shared.h), and only there;
 * NULL otherwise. It has been started, of its registers @read32 gives CSTS, and the other three are not
 * called:
 * @admin: have that driver send an admin command, whose data is at prp1, as lanes have it, a page or none,
 * and wait @ms for it, where that is not the driver's to say: an NVMe status, or a negative errno with a
 * sentence
 * @reset: have that driver reset it; afterwards it knows no queue of ours, and goes on. 0 or a negative errno
 * with a sentence
 * @check: whether a namespace may be used, by a controller with or without shadow doorbells; 0 or a negative
 * errno with a sentence
 * @adopt: a queue pair is about to be created, with these rings: give it a number and doorbells; as @check.
 * The next one, or one that was deleted
 * @queue_id: NVMe's number of queue pair @index, in the order of adopting
 * @was_reset: another storage of this process had it reset, and @reset has not been called since
 * @shadow: the shadow doorbells that the controller has been given, mapped for this storage alone; NULL:
 * none. If this is set the storage gives it none
 * @leave: the storage is about to be closed. Return: others have the controller, so that closing this one
 * makes nothing durable
 * @finish: the storage has deleted its queues: shut the controller down if it was the last; 0 or a negative
 * errno with a sentence
 *
 * Of vol: alone (volume/lanes.h):
 * @attach: the storage has its queue pairs, and no lane runs: give lanes those of engines; 0 or a negative
 * errno with a sentence, and lanes have the storage's own
 * @detach: the storage is about to be closed, and no lane runs
 */
struct weir_transport_ops {
	size_t size;
	const char *scheme;
	int (*open)(struct weir_transport_request *request, struct weir_transport **out);
	uint64_t (*read64)(struct weir_transport *transport, uint32_t offset);
	uint32_t (*read32)(struct weir_transport *transport, uint32_t offset);
	void (*write64)(struct weir_transport *transport, uint32_t offset, uint64_t value);
	void (*write32)(struct weir_transport *transport, uint32_t offset, uint32_t value);
	uint64_t (*doorbell)(struct weir_transport *transport, unsigned index);
	int (*restart)(struct weir_transport *transport);
	bool (*away)(struct weir_transport *transport);
	void (*stats)(struct weir_transport *transport, struct weir_transport_stats *stats);
	bool (*wanted)(struct weir_transport *transport);
	void (*give_way)(struct weir_transport *transport);
	int (*halt)(struct weir_transport *transport);
	bool (*places)(struct weir_transport *transport);
	const char *(*path)(struct weir_transport *transport);
	void (*close)(struct weir_transport *transport);
	int (*admin)(struct weir_transport *transport, const struct nvme_sqe *command, unsigned ms,
		     uint32_t *result);
	int (*reset)(struct weir_transport *transport);
	int (*check)(struct weir_transport *transport, uint32_t nsid, bool shadow_doorbells);
	int (*adopt)(struct weir_transport *transport, const struct weir_rings *rings);
	unsigned (*queue_id)(struct weir_transport *transport, uint32_t index);
	bool (*was_reset)(struct weir_transport *transport);
	void *(*shadow)(struct weir_transport *transport);
	bool (*leave)(struct weir_transport *transport);
	int (*finish)(struct weir_transport *transport);
	int (*attach)(struct weir_transport *transport, struct weir_storage *storage);
	void (*detach)(struct weir_transport *transport);
};

/** enum weir_mover - who moves data between controller and lanes' buffers (DESIGN: data movers) */
enum weir_mover {
	WEIR_MOVER_AUTO,
	WEIR_MOVER_DIRECT, /* the controller */
	WEIR_MOVER_PULL,   /* lanes, by way of memory that both see */
};

/** enum weir_shadow - whether to use shadow doorbells: if they are offered, never, or else not at all */
enum weir_shadow {
	WEIR_SHADOW_AUTO,
	WEIR_SHADOW_OFF,
	WEIR_SHADOW_ON,
};

/** enum weir_doorbell - who rings doorbells that are registers, or all doorbells: what can be, the lanes, a
 * thread for them */
enum weir_doorbell {
	WEIR_DOORBELL_AUTO,
	WEIR_DOORBELL_LANES,
	WEIR_DOORBELL_HOST,
};

/** enum weir_zero_copy - whether lanes that move the data copy it from the medium itself: where they can,
 * never, or else not at all */
enum weir_zero_copy {
	WEIR_ZERO_COPY_AUTO,
	WEIR_ZERO_COPY_OFF,
	WEIR_ZERO_COPY_ON,
};

/** enum weir_gpu_memory - what a controller on PCI Express reaches of the memory of a device beside it */
enum weir_gpu_memory {
	WEIR_GPU_MEMORY_NONE,
	WEIR_GPU_MEMORY_DATA,
	WEIR_GPU_MEMORY_QUEUES, /* data, and its queues lie there */
};

/**
 * struct weir_transport - what every transport's object begins with
 * @ops: its functions
 * @end_bytes: where it ends if that is within its last block; 0: with its last block
 * @read_only: it cannot write, whatever was asked
 * @mover: asked for
 * @device_controller: I/O queues are not its own: a controller on the device serves them
 * @shadow: asked for
 * @doorbell: asked for
 * @zero_copy: asked for
 * @gpu_memory: what it was told to reach of it
 * @registers: its doorbells are registers of a PCI function, not memory of the request
 * @doorbell_bytes: from one doorbell to the next
 * @nsid: namespace asked for; 0: the first active one
 * @keep_addresses: a device had the registers mapped, or pages of shadow doorbells: where they were in the
 * process nothing else is put when it is closed
 * @window: rings, data and admin commands' data have to lie there; NULL: anywhere in the request's dma map
 * @bus_offset: from an address of lanes to the controller's, modulo 2^64
 * @most_entries: of each queue, where @ops->admin is set
 * @network: address of WEIR_NETWORK_COUNTERS words of 64 bits that count what a network costs (publish.h); 0:
 * it has none
 * @most_queues: I/O queue pairs it has doorbells for, or was limited to; 0: as many as the controller grants
 * @last_queue: highest number that a queue pair of the storage may get, with doorbells side by side; 0: they
 * have the first numbers, or, where @ops->adopt is set, doorbells anywhere
 */
struct weir_transport {
	const struct weir_transport_ops *ops;
	uint64_t end_bytes;
	bool read_only;
	enum weir_mover mover;
	struct weir_device_controller_options device_controller;
	enum weir_shadow shadow;
	enum weir_doorbell doorbell;
	enum weir_zero_copy zero_copy;
	enum weir_gpu_memory gpu_memory;
	bool registers;
	bool keep_addresses;
	uint32_t doorbell_bytes;
	uint32_t nsid;
	const struct weir_window *window;
	uint64_t bus_offset;
	uint64_t network;
	uint32_t most_entries;
	uint32_t most_queues;
	uint32_t last_queue;
};

extern const struct weir_transport_ops weir_transport_virt;
extern const struct weir_transport_ops weir_transport_file;
extern const struct weir_transport_ops weir_transport_nvme;
extern const struct weir_transport_ops weir_transport_nvmf;
extern const struct weir_transport_ops weir_transport_vol;

/** weir_transport_open() - by the scheme of request->uri */
int weir_transport_open(struct weir_transport_request *request, struct weir_transport **out);

/** weir_transport_core() - the controller core of a transport that was opened for a front; @medium: out, its
 * medium */
struct weir_virtual *weir_transport_core(struct weir_transport *transport, const struct weir_medium **medium);

#endif
