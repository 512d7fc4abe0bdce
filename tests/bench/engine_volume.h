/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_volume.h: an engine that has one volume, for what measures engines. */
#ifndef WEIR_BENCH_ENGINE_VOLUME_H
#define WEIR_BENCH_ENGINE_VOLUME_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "engine/engine.h"

enum { BLOCK = NVME_VOLUME_BLOCK_BYTES, VID = 7, CLIENT = 3, LEASE = 5, MAP = 9, UNIT_LOG2 = 4 };

static inline void must(int error)
{
	if (!error)
		return;
	fprintf(stderr, "engine: %s\n", weir_last_error());
	exit(1);
}

static inline void send(struct weir_engine *engine, struct nvme_sqe sqe, const void *data, size_t bytes)
{
	static u64 page[BLOCK / 8];
	u32 status;

	memset(page, 0, sizeof(page));
	memcpy(page, data, bytes);
	status = weir_engine_admin(engine, NULL, &sqe, page);
	if (!status)
		return;
	fprintf(stderr, "engine: admin command 0x%x ended with 0x%x\n", sqe.cdw0, status);
	exit(1);
}

/* One volume that the client may write, on the only engine of the map. */
static inline void prepare(struct weir_engine *engine, u64 blocks)
{
	struct nvme_volume volume = { .vid = VID,
				      .replicas = 1,
				      .unit_log2 = UNIT_LOG2,
				      .weight = 1,
				      .blocks = blocks,
				      .name = "volume" };
	struct nvme_volume_map map = { .epoch = MAP, .count = 1, .engines = { { .id = 1, .weight = 100 } } };
	struct nvme_volume_permission permission = { .vid = VID,
						     .client = CLIENT,
						     .rights = NVME_VOLUME_READ | NVME_VOLUME_WRITE };

	send(engine, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_MAP }, &map, sizeof(map));
	send(engine, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_ADD, .cdw10 = VID, .cdw13 = MAP }, &volume,
	     sizeof(volume));
	send(engine, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_CHMOD, .cdw10 = VID, .cdw13 = MAP },
	     &permission, sizeof(permission));
	send(engine,
	     (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_LEASE,
				.cdw10 = VID,
				.cdw11 = LEASE,
				.cdw12 = CLIENT,
				.cdw13 = MAP },
	     "", 0);
}

#endif
