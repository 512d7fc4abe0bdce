/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h: arguments of the kernel that reaps for everybody. */
#ifndef WEIR_KERNEL_SERVICE_H
#define WEIR_KERNEL_SERVICE_H

#include <weir/abi.h>

/**
 * struct weir_service_args - a service for one storage
 * @queues: struct weir_queue[queue_count]
 * @started: weir_shared_u32, 1 once it runs; the host's
 * @stop: weir_shared_u32 in the device's memory, not 0: end; the host sets it
 * @queue_count: queue pairs
 */
struct weir_service_args {
	weir_addr queues;
	weir_addr started;
	weir_addr stop;
	u32 queue_count;
	u32 reserved;
};

#endif
