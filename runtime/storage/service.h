/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h: reaping for everybody, beside the lanes that submit.
 *
 * A persistent kernel, where the device runs kernels side by side; else a host thread,
 * which needs queues that the host sees.
 */
#ifndef WEIR_RUNTIME_SERVICE_H
#define WEIR_RUNTIME_SERVICE_H

struct weir_storage;

/** weir_service_start() - if the context asks for one; the storage's queue pairs are there already */
int weir_service_start(struct weir_storage *storage);
/** weir_service_stop() - end it; NULL-safe in what it stops; before the queues go */
void weir_service_stop(struct weir_storage *storage);

#endif
