/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_rig.h: an engine behind a virtual controller, and commands to it by hand.
 *
 * Owns: one volume's worth of defaults: epochs, client, and whose data a block is.
 */
#ifndef WEIR_TESTS_ENGINE_RIG_H
#define WEIR_TESTS_ENGINE_RIG_H

#include "../transport/virtual/virtual_driver.h"
#include "engine/engine.h"

enum { RIG_VID = 7, RIG_CLIENT = 3, RIG_LEASE = 5, RIG_MAP = 9, RIG_BLOCKS = 1 << 20, RIG_UNIT_LOG2 = 4 };

/** struct rig - @command: fields of the next I/O command, besides opcode, blocks and data */
struct rig {
	struct driver driver;
	struct weir_engine *engine;
	unsigned char *page;
	unsigned char *data;
	u32 vid;
	u32 client;
	u32 lease;
	u32 map;
	u64 version;
};

static inline int rig_try(struct rig *rig, struct weir_medium *behind, const char *manager)
{
	struct weir_virtual_options options = driver_defaults();
	int error;

	memset(rig, 0, sizeof(*rig));
	error = weir_engine_open(
		&(struct weir_engine_options){ .behind = behind, .threads = 1, .manager = manager },
		&rig->engine);
	if (error)
		return error;
	options.medium = weir_engine_medium(rig->engine);
	options.engine = rig->engine;
	driver_open(&rig->driver, options);
	driver_enable(&rig->driver);
	driver_add_queue(&rig->driver, 1, 1, 16, 16);
	rig->page = driver_pages(&rig->driver, 4096);
	rig->data = driver_pages(&rig->driver, 16 * 4096);
	rig->vid = RIG_VID;
	rig->client = RIG_CLIENT;
	rig->lease = RIG_LEASE;
	rig->map = RIG_MAP;
	rig->version = 1;
	return 0;
}

static inline void rig_open(struct rig *rig, struct weir_medium *behind, const char *manager)
{
	if (!behind)
		assert_int_equal(weir_medium_ram_open(4 << 20, 4096, NULL, &behind), 0);
	assert_int_equal(rig_try(rig, behind, manager), 0);
}

static inline void rig_close(struct rig *rig)
{
	driver_close(&rig->driver);
}

/* An admin command whose data, if any, is in @rig->page, by the daemon whose map the engine has. */
static inline u32 rig_admin(struct rig *rig, u32 opcode, u32 cdw10, u32 cdw11, u32 cdw12)
{
	struct nvme_volume_engine_status status;

	weir_engine_status(rig->engine, &status);
	return driver_admin(&rig->driver, (struct nvme_sqe){ .cdw0 = opcode,
							     .prp1 = driver_bus(rig->page),
							     .cdw10 = cdw10,
							     .cdw11 = cdw11,
							     .cdw12 = cdw12,
							     .cdw13 = status.map_epoch });
}

static inline u32 rig_send(struct rig *rig, u32 opcode, u32 cdw10, const void *data, size_t bytes)
{
	memset(rig->page, 0, 4096);
	memcpy(rig->page, data, bytes);
	return rig_admin(rig, opcode, cdw10, 0, 0);
}

static inline struct nvme_volume rig_volume(u32 vid)
{
	return (struct nvme_volume){ .vid = (u16)vid,
				     .replicas = 1,
				     .unit_log2 = RIG_UNIT_LOG2,
				     .weight = 1,
				     .blocks = RIG_BLOCKS,
				     .name = "volume" };
}

/* A map of @count engines of which this is @self. */
static inline u32 rig_map(struct rig *rig, u32 epoch, u32 count, u32 self, bool rebuilding)
{
	struct nvme_volume_map map = {
		.epoch = epoch, .count = (u16)count, .self = (u16)self, .rebuilding = rebuilding
	};

	for (u32 i = 0; i < count; i++)
		map.engines[i] =
			(struct nvme_volume_engine){ .id = (u16)(i + 1), .domain = i, .weight = 100 };
	return rig_send(rig, NVME_ADMIN_VOLUME_MAP, 0, &map, sizeof(map));
}

static inline u32 rig_chmod(struct rig *rig, u32 vid, u32 client, u32 rights, const char *host)
{
	struct nvme_volume_permission permission = { .vid = (u16)vid,
						     .client = (u16)client,
						     .rights = rights };

	strcpy(permission.hostnqn, host);
	return rig_send(rig, NVME_ADMIN_VOLUME_CHMOD, vid, &permission, sizeof(permission));
}

/* A volume that RIG_CLIENT may read and write, on the only engine of the map. */
static inline void rig_prepare(struct rig *rig)
{
	struct nvme_volume volume = rig_volume(RIG_VID);

	assert_int_equal(rig_map(rig, RIG_MAP, 1, 0, false), 0);
	assert_int_equal(rig_send(rig, NVME_ADMIN_VOLUME_ADD, RIG_VID, &volume, sizeof(volume)), 0);
	assert_int_equal(rig_chmod(rig, RIG_VID, RIG_CLIENT, NVME_VOLUME_READ | NVME_VOLUME_WRITE, "nqn.a"),
			 0);
	assert_int_equal(rig_admin(rig, NVME_ADMIN_VOLUME_LEASE, RIG_VID, RIG_LEASE, RIG_CLIENT), 0);
}

static inline u64 rig_slba(const struct rig *rig, u64 vba)
{
	return (u64)rig->vid << 48 | (u64)rig->client << 32 | vba;
}

/* In tests versions count from 1 on, in each lease; 0, of a read: any. */
static inline u64 rig_version(const struct rig *rig, u64 version)
{
	bool counts = version && !(version >> NVME_VOLUME_VERSION_EPOCH);

	return counts ? (u64)rig->lease << NVME_VOLUME_VERSION_EPOCH | version : version;
}

/* @blocks, at most two, of @rig->data. */
static inline u32 rig_io(struct rig *rig, u32 opcode, u64 vba, u32 blocks, u32 flags)
{
	u64 data = driver_bus(rig->data), version = rig_version(rig, rig->version);
	struct nvme_sqe sqe =
		driver_io(opcode, rig_slba(rig, vba), blocks, data, blocks > 1 ? data + 4096 : 0);

	sqe.cdw12 |= flags;
	sqe.cdw2 = (u32)version;
	sqe.cdw3 = (u32)(version >> 32);
	sqe.cdw14 = opcode == NVME_OPCODE_READ ? 0 : rig->lease;
	sqe.cdw15 = rig->map;
	return driver_command(&rig->driver, 1, sqe, NULL);
}

static inline u32 rig_write(struct rig *rig, u64 vba, u64 version)
{
	driver_fill(rig->data, vba, 4096, version);
	rig->version = version;
	return rig_io(rig, NVME_OPCODE_WRITE, vba, 1, 0);
}

/* Block @vba holds what was written as @version; 0: zeros. */
static inline void rig_expect(struct rig *rig, u64 vba, u64 version)
{
	static const unsigned char zeros[4096];

	memset(rig->data, 0xee, 4096);
	assert_int_equal(rig_io(rig, NVME_OPCODE_READ, vba, 1, 0), 0);
	if (version)
		assert_true(driver_holds(rig->data, vba, 4096, version));
	else
		assert_memory_equal(rig->data, zeros, 4096);
}

/* A Dataset Management command for one range. */
static inline u32 rig_trim(struct rig *rig, u64 vba, u32 blocks, u64 version)
{
	u32 *range = (u32 *)rig->page;
	u64 slba = rig_slba(rig, vba);

	version = rig_version(rig, version);
	range[0] = 0;
	range[1] = blocks;
	memcpy(&range[2], &slba, sizeof(slba));
	return driver_command(&rig->driver, 1,
			      (struct nvme_sqe){ .cdw0 = NVME_OPCODE_DSM,
						 .nsid = 1,
						 .prp1 = driver_bus(rig->page),
						 .cdw2 = (u32)version,
						 .cdw3 = (u32)(version >> 32),
						 .cdw11 = NVME_DSM_DEALLOCATE,
						 .cdw14 = rig->lease,
						 .cdw15 = rig->map },
			      NULL);
}

#endif
