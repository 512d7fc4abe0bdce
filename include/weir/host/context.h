/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/context.h: the host side of a context: open it on a device, ask what the device can do, close it.
 *
 * Owns: options, what a context tells of its device. Part of weir.h, whose rules hold here.
 */
#ifndef WEIR_HOST_CONTEXT_H
#define WEIR_HOST_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include <weir/devices.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_context;

/**
 * WEIR_SERVICE_WHERE_PULLED - a service for storages whose data the lanes must pull themselves
 *
 * Only on devices that run kernels side by side; where its kernel cannot be started there is none,
 * which is said once on stderr. A block is pulled by the lanes that reap it;
 * where lanes part ways (a graph search), few lanes of a wave are left for it and take long,
 * while waves of a service are always whole. The price: a kernel stays until the storage is
 * closed, so a wait for the whole device, by others in this process, would not end before.
 */
#define WEIR_SERVICE_WHERE_PULLED UINT32_MAX

/**
 * struct weir_context_options - how to open a context
 * @size: sizeof the structure
 * @workers: cpu: worker threads; 0: one per core the process may use
 * @wave_lanes: cpu: lanes per wave, a power of two up to 64; 0: 1
 * @resident_lanes: cpu: lanes a worker keeps started at once, up to 2^24; 0: 1024, or its share of 12288
 *                  where that is less
 * @stack_bytes: cpu: stack per lane, from 16 KiB to 2 GiB; 0: 64 KiB
 * @service_waves: waves of a service per storage, which reaps completions for all lanes;
 *                 on the cpu one thread, whatever the number; 0: no service, whoever
 *                 waits helps; WEIR_SERVICE_WHERE_PULLED. A kernel built with
 *                 WEIR_SERVICE_ONLY needs one.
 *
 * What is marked "cpu:" is left aside by other devices; weir_context_info() tells what
 * there is.
 */
struct weir_context_options {
	size_t size;
	uint32_t workers;
	uint32_t wave_lanes;
	uint32_t resident_lanes;
	uint32_t stack_bytes;
	uint32_t service_waves;
};

/**
 * weir_context_open() - open a device
 * @name: one of
 *        `auto`           the best that is there
 *        `cpu`            or another backend of this build, its first device
 *        `BACKEND:N`      its device N, as it counts them
 *        `BACKEND:PCI`    its device at a PCI address, such as 0000:41:00.0 or, in domain 0, 41:00.0
 *        `cpu:memory=FILE` the cpu, with device memory that is all of FILE, mapped: for bring-up, the BAR of
 * a GPU
 *                         (/sys/bus/pci/devices/ADDRESS/resource2_wc), a window of weir_p2p over it
 *                         (/dev/weir_p2p/ADDRESS-2, docs/kernel.md) or any other file
 *        `gpu`, `gpu:N`   number N, 0 if not given, by PCI address, of the GPUs that any backend of this
 * build can use `gpu:PCI`        the GPU at that address, by whichever backend has it
 * @options: NULL for the defaults
 * @out: the context
 *
 * Return: 0; -ENODEV for an unknown name, or a device that is not there or that no backend can use; -EINVAL
 * for options out of range or a malformed address.
 */
WEIR_API int weir_context_open(const char *name, const struct weir_context_options *options,
			       struct weir_context **out);

/**
 * weir_context_close() - wait for every launch, close all that was opened with the context, then free it;
 * NULL is fine
 *
 * Caches are destroyed first, as by weir_cache_destroy(), then storages are closed, as by
 * weir_storage_close(), and the memory of weir_alloc() is freed. Requests for files end first.
 *
 * Return: 0; -EINVAL for a handle that is not an open context; else the first of these errors, with the
 * sentences of all: a fault that no weir_sync() has returned, a request for files that nobody has waited for
 * and that failed, and what closing caches and storages returned: -EIO names what is lost. The context is
 * closed in any case.
 */
WEIR_API int weir_context_close(struct weir_context *context);

/**
 * enum weir_peer_writes - what it takes before a lane may read what another PCI device wrote
 * @WEIR_PEER_WRITES_UNKNOWN: nothing is known
 * @WEIR_PEER_WRITES_FLUSHED: the host has to flush such writes; no lane can
 * @WEIR_PEER_WRITES_ORDERED: a lane that has seen the completion sees the data, too
 * @WEIR_PEER_WRITES_ORDERED_ALL: likewise lanes of other devices that look into this one's memory
 *
 * "Wrote" is: into the device's memory, by PCI transactions from an SSD, a network card
 * and the like. Fences of lanes are needed as ever (weir_fence_from_controller()).
 */
enum weir_peer_writes {
	WEIR_PEER_WRITES_UNKNOWN,
	WEIR_PEER_WRITES_FLUSHED,
	WEIR_PEER_WRITES_ORDERED,
	WEIR_PEER_WRITES_ORDERED_ALL,
};

/**
 * struct weir_context_info - what a context runs on
 * @size: sizeof the structure
 * @name: device, for people
 * @wave_lanes: wave width
 * @workers: groups of lanes that run at the same instant
 * @block_lanes: most lanes a block may have; a kernel may be built for fewer
 * @memory_bytes: memory of the device; 0: not known
 * @memory_free_bytes: of it, free at this moment; 0: not known
 * @pci_address: "0000:65:00.0" (domain:bus:device.function), "" for what is no PCI device
 * @numa_node: node of the host that is nearest; -1: none or not known
 * @dma_buf: its memory can be handed to other drivers as a dma-buf
 * @peer_dma: other PCI devices can read and write its memory directly
 * @peer_writes: enum weir_peer_writes
 * @map_registers: its lanes can store to registers of other PCI devices, such as doorbells; as far as its
 * backend can tell without trying
 * @register_host: its lanes can use pages of the host that others allocated
 * @export_memory: its memory can be had as a dma-buf, of any part
 * @map_registers_why: if not, the reason; "" if so. @register_host_why, @export_memory_why too
 */
struct weir_context_info {
	size_t size;
	char name[128];
	uint32_t wave_lanes;
	uint32_t workers;
	uint32_t block_lanes;
	uint64_t memory_bytes;
	uint64_t memory_free_bytes;
	char pci_address[16];
	int32_t numa_node;
	uint32_t dma_buf;
	uint32_t peer_dma;
	uint32_t peer_writes;
	uint32_t map_registers;
	uint32_t register_host;
	uint32_t export_memory;
	char map_registers_why[160];
	char register_host_why[160];
	char export_memory_why[160];
};

/** weir_context_info() - describe a context */
WEIR_API int weir_context_info(struct weir_context *context, struct weir_context_info *info);

#ifdef __cplusplus
}
#endif
#endif
