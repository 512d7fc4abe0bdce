/* SPDX-License-Identifier: BSD-3-Clause */
/* no_wire.h: a wire that carries nothing, for storages that are made by hand. */
#ifndef WEIR_TESTS_NO_WIRE_H
#define WEIR_TESTS_NO_WIRE_H

#include "transport/fabrics/nvmf.h"

static inline u32 any_room(const struct nvmf_queue *queue)
{
	(void)queue;
	return 1000;
}

static inline void begin_nothing(struct nvmf_queue *queue, struct nvmf_request *request)
{
	(void)queue, (void)request;
}

static inline void close_nothing(struct nvmf_queue *queue)
{
	queue->connection.open = false;
}

static inline bool move_nothing(struct nvmf_queue *queue)
{
	(void)queue;
	return false;
}

static const struct nvmf_wire no_wire = { .send = move_nothing,
					  .receive = move_nothing,
					  .room = any_room,
					  .begin = begin_nothing,
					  .close = close_nothing };

#endif
