/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * storage/device_controller.h: a controller that runs on the device itself, beside the lanes it serves.
 *
 * Owns: its kernel's arguments, its medium, the flag that ends it. Doorbells and rings
 * lie in the device's memory; no host thread touches a command.
 */
#ifndef WEIR_RUNTIME_DEVICE_CONTROLLER_H
#define WEIR_RUNTIME_DEVICE_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

struct weir_storage;
struct weir_virtual_fault;

/**
 * struct weir_device_controller_options - what controller to be
 * @on: be one
 * @waves: of the controller, in small blocks; queue pairs are spread over them. Once it
 *         has begun, those it has
 * @groups: blocks of the largest size instead, each of which fills a multiprocessor; 0: @waves
 * @claim: commands a wave takes at once; 0: by their length
 * @data: off: commands end without data
 * @host_medium: the medium lies in pinned host memory, not in the device's
 * @latency_us: least time from fetch to completion
 * @iops: most completions per second; 0: no limit
 * @faults: what goes wrong, @fault_count rows, in memory that outlives the storage
 */
struct weir_device_controller_options {
	bool on;
	uint32_t waves;
	uint32_t groups;
	uint32_t claim;
	bool data;
	bool host_medium;
	uint64_t latency_us;
	uint64_t iops;
	const struct weir_virtual_fault *faults;
	uint32_t fault_count;
};

struct weir_device_controller;

/** weir_device_controller_doorbells() - memory for the doorbells of @queues pairs and the admin queue */
int weir_device_controller_doorbells(struct weir_storage *storage, uint32_t queues);
/** weir_device_controller_start() - begin to serve the storage's queue pairs, which are there already */
int weir_device_controller_start(struct weir_storage *storage, uint32_t queues);
/** weir_device_controller_stop() - end it and free what it has; NULL-safe; before the queues go */
void weir_device_controller_stop(struct weir_storage *storage);

#endif
