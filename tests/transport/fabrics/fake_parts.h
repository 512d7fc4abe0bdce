/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_parts.h: what fake_verbs.c and fake_connections.c share. All of it is under fake_lock. */
#ifndef WEIR_TESTS_FAKE_PARTS_H
#define WEIR_TESTS_FAKE_PARTS_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>

#include "fake_verbs.h"

enum { FAKE_PRIVATE_BYTES = 64 };

struct id {
	struct rdma_cm_id base;
	struct id *peer;
	struct id *next; /* listener */
	bool connected;
};

extern pthread_mutex_t fake_lock;
extern struct ibv_context fake_device;

/** fake_device_begin() - its functions */
void fake_device_begin(void);
/** fake_make(), fake_unmake() - an object that counts as live; these take the lock */
void *fake_make(size_t bytes);
void fake_unmake(void *object);
/** fake_count() - an eventfd */
void fake_count(int file);
/** fake_push() - an event */
void fake_push(struct id *to, enum rdma_cm_event_type type, int status, const void *data, size_t bytes);
/** fake_part() - a connection ends */
void fake_part(struct id *id);

#endif
