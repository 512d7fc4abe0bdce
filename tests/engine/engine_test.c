/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_test.c: what an engine refuses, and which version of a block it keeps. */
#include <weir/core/volume/placement.h>

#include "engine_rig.h"

#define FINAL(status) ((status) | NVME_STATUS_DNR)

static u32 read_status(struct rig *rig)
{
	return rig_io(rig, NVME_OPCODE_READ, 0, 1, 0);
}

static void test_refusals(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, NULL, NULL);
	assert_int_equal(read_status(&rig), NVME_STATUS_VOLUME_NO_MAP);
	rig_prepare(&rig);
	assert_int_equal(read_status(&rig), 0);
	rig.vid = RIG_VID + 1;
	assert_int_equal(read_status(&rig), FINAL(NVME_STATUS_VOLUME_UNKNOWN));
	rig.vid = 0;
	assert_int_equal(read_status(&rig), FINAL(NVME_STATUS_VOLUME_UNKNOWN));
	rig.vid = RIG_VID;
	rig.client = RIG_CLIENT + 1;
	assert_int_equal(read_status(&rig), FINAL(NVME_STATUS_VOLUME_DENIED));
	rig.client = RIG_CLIENT;
	rig.map = RIG_MAP - 1;
	assert_int_equal(read_status(&rig), FINAL(NVME_STATUS_VOLUME_STALE_MAP));
	assert_int_equal(rig_write(&rig, 0, 1), FINAL(NVME_STATUS_VOLUME_STALE_MAP));
	rig.map = RIG_MAP + 1;
	assert_int_equal(read_status(&rig), NVME_STATUS_VOLUME_STALE_MAP);
	rig.map = RIG_MAP;
	assert_int_equal(rig_io(&rig, NVME_OPCODE_READ, RIG_BLOCKS, 1, 0),
			 FINAL(NVME_STATUS_LBA_OUT_OF_RANGE));
	assert_int_equal(rig_io(&rig, NVME_OPCODE_READ, RIG_BLOCKS - 1, 2, 0),
			 FINAL(NVME_STATUS_LBA_OUT_OF_RANGE));
	assert_int_equal(rig_io(&rig, NVME_OPCODE_READ, 15, 2, 0), FINAL(NVME_STATUS_INVALID_FIELD));
	assert_int_equal(rig_io(&rig, NVME_OPCODE_READ, 14, 2, 0), 0);
	rig_close(&rig);
}

/* An engine that has started again may have lost what it would call durable. */
static void test_flushes(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, NULL, NULL);
	assert_int_equal(rig_io(&rig, NVME_OPCODE_FLUSH, 0, 1, 0), NVME_STATUS_VOLUME_NO_MAP);
	rig.client = NVME_VOLUME_MANAGER;
	assert_int_equal(rig_io(&rig, NVME_OPCODE_FLUSH, 0, 1, 0), 0);
	rig.client = RIG_CLIENT;
	rig_prepare(&rig);
	assert_int_equal(rig_io(&rig, NVME_OPCODE_FLUSH, 0, 1, 0), 0);
	rig.map = RIG_MAP - 1;
	assert_int_equal(rig_io(&rig, NVME_OPCODE_FLUSH, 0, 1, 0), FINAL(NVME_STATUS_VOLUME_STALE_MAP));
	rig.map = RIG_MAP + 1;
	assert_int_equal(rig_io(&rig, NVME_OPCODE_FLUSH, 0, 1, 0), NVME_STATUS_VOLUME_STALE_MAP);
	rig_close(&rig);
}

static void test_rights(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, NULL, NULL);
	rig_prepare(&rig);
	assert_int_equal(rig_chmod(&rig, RIG_VID, RIG_CLIENT, NVME_VOLUME_READ, "nqn.a"), 0);
	assert_int_equal(read_status(&rig), 0);
	assert_int_equal(rig_write(&rig, 0, 1), FINAL(NVME_STATUS_VOLUME_DENIED));
	assert_int_equal(rig_trim(&rig, 0, 1, 1), FINAL(NVME_STATUS_VOLUME_DENIED));
	assert_int_equal(rig_chmod(&rig, RIG_VID, RIG_CLIENT, NVME_VOLUME_WRITE, "nqn.a"), 0);
	assert_int_equal(read_status(&rig), FINAL(NVME_STATUS_VOLUME_DENIED));
	assert_int_equal(rig_write(&rig, 0, 1), 0);
	assert_int_equal(rig_chmod(&rig, RIG_VID, RIG_CLIENT, 0, "nqn.a"), 0);
	assert_int_equal(rig_write(&rig, 0, 2), FINAL(NVME_STATUS_VOLUME_DENIED));
	rig_close(&rig);
}

static void test_leases(void **state)
{
	static const u32 opcodes[] = { NVME_OPCODE_WRITE, NVME_OPCODE_WRITE_ZEROES };
	struct rig rig;

	(void)state;
	rig_open(&rig, NULL, NULL);
	rig_prepare(&rig);
	for (u32 i = 0; i < 2; i++) {
		rig.lease = RIG_LEASE - 1;
		assert_int_equal(rig_io(&rig, opcodes[i], 0, 1, 0), FINAL(NVME_STATUS_VOLUME_STALE_LEASE));
		rig.lease = RIG_LEASE + 1;
		assert_int_equal(rig_io(&rig, opcodes[i], 0, 1, 0), NVME_STATUS_VOLUME_STALE_LEASE);
	}
	rig.lease = RIG_LEASE;
	assert_int_equal(rig_write(&rig, 0, 1), 0);
	/* another client that may write, and knows the epoch, has no lease */
	assert_int_equal(
		rig_chmod(&rig, RIG_VID, RIG_CLIENT + 1, NVME_VOLUME_READ | NVME_VOLUME_WRITE, "nqn.a"), 0);
	rig.client = RIG_CLIENT + 1;
	assert_int_equal(rig_write(&rig, 0, 2), FINAL(NVME_STATUS_VOLUME_STALE_LEASE));
	assert_int_equal(rig_trim(&rig, 0, 1, 2), FINAL(NVME_STATUS_VOLUME_STALE_LEASE));
	rig.client = RIG_CLIENT;
	rig_expect(&rig, 0, 1);
	assert_int_equal(rig_admin(&rig, NVME_ADMIN_VOLUME_LEASE, RIG_VID, RIG_LEASE - 1, RIG_CLIENT),
			 FINAL(NVME_STATUS_VOLUME_STALE_LEASE));
	assert_int_equal(rig_admin(&rig, NVME_ADMIN_VOLUME_LEASE, RIG_VID, RIG_LEASE, RIG_CLIENT + 1),
			 FINAL(NVME_STATUS_VOLUME_STALE_LEASE));
	assert_int_equal(rig_admin(&rig, NVME_ADMIN_VOLUME_LEASE, RIG_VID, RIG_LEASE + 1, 0), 0);
	assert_int_equal(rig_write(&rig, 0, 2), FINAL(NVME_STATUS_VOLUME_STALE_LEASE));
	rig.lease = RIG_LEASE + 1;
	assert_int_equal(rig_write(&rig, 0, 2), FINAL(NVME_STATUS_VOLUME_STALE_LEASE));
	assert_int_equal(rig_trim(&rig, 0, 1, 2), FINAL(NVME_STATUS_VOLUME_STALE_LEASE));
	rig_expect(&rig, 0, 1);
	rig.client = NVME_VOLUME_MANAGER;
	assert_int_equal(rig_write(&rig, 0, 2), 0);
	rig.map = RIG_MAP - 1;
	assert_int_equal(rig_write(&rig, 0, 3), FINAL(NVME_STATUS_VOLUME_STALE_MAP));
	rig_close(&rig);
}

/* Of 4 engines with two replicas, each block is on the two that the look-up names. */
static void test_placement(void **state)
{
	struct nvme_volume volume = rig_volume(RIG_VID);
	struct rig rig;
	u32 admitted[64] = { 0 }, here = 0;

	(void)state;
	rig_open(&rig, NULL, NULL);
	rig_prepare(&rig);
	volume.replicas = 2;
	assert_int_equal(rig_send(&rig, NVME_ADMIN_VOLUME_ADD, RIG_VID, &volume, sizeof(volume)), 0);
	for (u32 self = 0; self < 4; self++) {
		rig.map = RIG_MAP + 1 + self;
		assert_int_equal(rig_map(&rig, rig.map, 4, self, false), 0);
		for (u32 i = 0; i < 64; i++) {
			u32 status = rig_write(&rig, i * 16, 1 + self);

			assert_true(!status || status == FINAL(NVME_STATUS_VOLUME_MISPLACED));
			admitted[i] += !status;
			here += !self && !status;
			assert_int_equal(rig_io(&rig, NVME_OPCODE_READ, i * 16, 1, 0), status);
		}
	}
	for (u32 i = 0; i < 64; i++)
		assert_int_equal(admitted[i], 2);
	assert_in_range(here, 16, 48);
	rig_close(&rig);
}

static void test_versions(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, NULL, NULL);
	rig_prepare(&rig);
	rig_expect(&rig, 3, 0);
	assert_int_equal(rig_write(&rig, 3, 10), 0);
	rig_expect(&rig, 3, 10);
	assert_int_equal(rig_write(&rig, 3, 9), FINAL(NVME_STATUS_VOLUME_OLD_VERSION));
	rig_expect(&rig, 3, 10);
	driver_fill(rig.data, 3, 4096, 11);
	rig.version = 10; /* repeated: success, and nothing is written */
	assert_int_equal(rig_io(&rig, NVME_OPCODE_WRITE, 3, 1, 0), 0);
	rig_expect(&rig, 3, 10);
	assert_int_equal(rig_write(&rig, 3, (u64)1 << 32), 0);
	assert_int_equal(rig_write(&rig, 3, 0xffffffff), FINAL(NVME_STATUS_VOLUME_OLD_VERSION));
	assert_int_equal(rig_trim(&rig, 3, 1, 5), FINAL(NVME_STATUS_VOLUME_OLD_VERSION));
	rig_expect(&rig, 3, (u64)1 << 32);
	assert_int_equal(rig_trim(&rig, 3, 1, ((u64)1 << 32) + 5), 0);
	rig_expect(&rig, 3, 0);
	assert_int_equal(rig_write(&rig, 3, ((u64)1 << 32) + 4), FINAL(NVME_STATUS_VOLUME_OLD_VERSION));
	assert_int_equal(rig_write(&rig, 3, ((u64)1 << 32) + 6), 0);
	rig_expect(&rig, 3, ((u64)1 << 32) + 6);
	rig_close(&rig);
}

static u32 write_of_lease(struct rig *rig, u32 opcode, u64 version, u32 blocks)
{
	rig->version = version;
	return rig_io(rig, opcode, 4, blocks, 0);
}

/* A version of the lease to come would win over what its writer writes. The manager copies what any lease has
 * written. */
static void test_versions_are_of_the_lease(void **state)
{
	static const u32 opcodes[] = { NVME_OPCODE_WRITE, NVME_OPCODE_WRITE_ZEROES };
	const u64 first = (u64)RIG_LEASE << NVME_VOLUME_VERSION_EPOCH, next = (u64)(RIG_LEASE + 1)
									      << NVME_VOLUME_VERSION_EPOCH;
	struct rig rig;

	(void)state;
	for (u32 i = 0; i < 2; i++) {
		rig_open(&rig, NULL, NULL);
		rig_prepare(&rig);
		assert_int_equal(write_of_lease(&rig, opcodes[i], first - 1, 1),
				 FINAL(NVME_STATUS_INVALID_FIELD));
		assert_int_equal(write_of_lease(&rig, opcodes[i], first - 1, 2),
				 FINAL(NVME_STATUS_INVALID_FIELD));
		assert_int_equal(write_of_lease(&rig, opcodes[i], next, 1), FINAL(NVME_STATUS_INVALID_FIELD));
		assert_int_equal(write_of_lease(&rig, opcodes[i], next - 1, 2),
				 FINAL(NVME_STATUS_INVALID_FIELD));
		assert_int_equal(rig_trim(&rig, 4, 1, next), FINAL(NVME_STATUS_INVALID_FIELD));
		rig_expect(&rig, 4, 0);
		assert_int_equal(write_of_lease(&rig, opcodes[i], first, 2), 0);
		assert_int_equal(write_of_lease(&rig, opcodes[i], next - 2, 2), 0);
		assert_int_equal(write_of_lease(&rig, opcodes[i], next - 1, 1), 0);
		rig.client = NVME_VOLUME_MANAGER;
		assert_int_equal(write_of_lease(&rig, opcodes[i], next, 1), 0);
		rig_close(&rig);
	}
}

/* The second block of a command has the version after the first's. */
static void test_versions_of_blocks(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, NULL, NULL);
	rig_prepare(&rig);
	driver_fill(rig.data, 4, 4096, 20);
	driver_fill(rig.data + 4096, 5, 4096, 21);
	rig.version = 20;
	assert_int_equal(rig_io(&rig, NVME_OPCODE_WRITE, 4, 2, 0), 0);
	rig_expect(&rig, 5, 21);
	assert_int_equal(rig_write(&rig, 5, 20), FINAL(NVME_STATUS_VOLUME_OLD_VERSION));
	assert_int_equal(rig_write(&rig, 4, 21), 0);
	rig.version = 22; /* the second would be 23 */
	assert_int_equal(rig_io(&rig, NVME_OPCODE_WRITE_ZEROES, 4, 2, 0), 0);
	assert_int_equal(rig_write(&rig, 5, 22), FINAL(NVME_STATUS_VOLUME_OLD_VERSION));
	rig_expect(&rig, 4, 0);
	rig_expect(&rig, 5, 0);
	rig_close(&rig);
}

static void test_not_here(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, NULL, NULL);
	rig_prepare(&rig);
	assert_int_equal(rig_write(&rig, 1, 1), 0);
	assert_int_equal(rig_trim(&rig, 2, 1, 1), 0);
	assert_int_equal(rig_map(&rig, RIG_MAP, 1, 0, true), 0);
	assert_int_equal(read_status(&rig), NVME_STATUS_VOLUME_NOT_HERE);
	assert_int_equal(rig_io(&rig, NVME_OPCODE_READ, 0, 2, 0), NVME_STATUS_VOLUME_NOT_HERE);
	rig_expect(&rig, 1, 1);
	rig_expect(&rig, 2, 0);
	assert_int_equal(rig_map(&rig, RIG_MAP, 1, 0, false), 0);
	assert_int_equal(read_status(&rig), 0);
	assert_int_equal(rig_map(&rig, RIG_MAP - 1, 1, 0, false), FINAL(NVME_STATUS_VOLUME_STALE_MAP));
	rig_close(&rig);
}

/* The manager copies: it reads in the version that it names, and writes, wherever blocks are placed; when
 * nothing is being copied any more, what is placed elsewhere is gone. */
static void test_copies(void **state)
{
	enum { COPIED = 64 };
	struct rig rig;
	u32 here = 0;

	(void)state;
	rig_open(&rig, NULL, NULL);
	rig_prepare(&rig);
	for (u32 i = 0; i < COPIED; i++)
		assert_int_equal(rig_write(&rig, i << RIG_UNIT_LOG2, 3), 0);
	assert_int_equal(rig_map(&rig, RIG_MAP, 8, 0, true), 0);
	rig.client = NVME_VOLUME_MANAGER;
	rig.version = 2;
	assert_int_equal(rig_io(&rig, NVME_OPCODE_READ, 0, 1, 0), FINAL(NVME_STATUS_VOLUME_OLD_VERSION));
	assert_int_equal(rig_io(&rig, NVME_OPCODE_READ, 1, 1, 0), FINAL(NVME_STATUS_VOLUME_OLD_VERSION));
	rig.version = 3;
	for (u32 i = 0; i < COPIED; i++)
		rig_expect(&rig, i << RIG_UNIT_LOG2, 3);
	for (u32 i = 0; i < COPIED; i++)
		assert_int_equal(rig_write(&rig, i << RIG_UNIT_LOG2, 4), 0);
	assert_int_equal(rig_map(&rig, RIG_MAP, 8, 0, false), 0);
	for (u32 i = 0; i < COPIED; i++) {
		bool placed;

		rig.client = RIG_CLIENT;
		placed = rig_io(&rig, NVME_OPCODE_READ, i << RIG_UNIT_LOG2, 1, 0) == 0;
		rig.client = NVME_VOLUME_MANAGER;
		rig.version = 0;
		rig_expect(&rig, i << RIG_UNIT_LOG2, placed ? 4 : 0);
		here += placed;
	}
	assert_in_range(here, 1, COPIED - 1);
	rig_close(&rig);
}

static void test_manager(void **state)
{
	struct weir_engine_access access = {
		.host = "nqn.a", .client = RIG_CLIENT, .vid = RIG_VID, .blocks = 1, .map_epoch = RIG_MAP
	};
	unsigned char page[4096];
	struct rig rig;

	(void)state;
	rig_open(&rig, NULL, "nqn.manager");
	rig_prepare(&rig); /* rings are nobody's: they are believed */
	assert_int_equal(weir_engine_admit(rig.engine, &access), 0);
	access.host = "nqn.b";
	assert_int_equal(weir_engine_admit(rig.engine, &access), FINAL(NVME_STATUS_VOLUME_CLIENT));
	access.client = NVME_VOLUME_MANAGER;
	assert_int_equal(weir_engine_admit(rig.engine, &access), FINAL(NVME_STATUS_VOLUME_CLIENT));
	access.host = "nqn.manager";
	assert_int_equal(weir_engine_admit(rig.engine, &access), 0);
	assert_int_equal(weir_engine_admin(rig.engine, "nqn.a",
					   &(struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_STATUS }, page),
			 FINAL(NVME_STATUS_VOLUME_DENIED));
	assert_int_equal(weir_engine_admin(rig.engine, "nqn.manager",
					   &(struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_STATUS }, page),
			 0);
	rig_close(&rig);
}

/* Blocks of a list that begins with @next, by number, of versions from 1000 + @least on. Return: how many. */
static u32 read_list(struct rig *rig, u64 next, u32 least, u32 seen[600])
{
	const struct nvme_volume_list *list = (const struct nvme_volume_list *)(const void *)rig->page;
	u32 count = 0;

	while (next != ~(u64)0) {
		assert_int_equal(driver_admin(&rig->driver, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_LIST,
									       .prp1 = driver_bus(rig->page),
									       .cdw10 = RIG_VID,
									       .cdw11 = (u32)next,
									       .cdw12 = (u32)(next >> 32),
									       .cdw14 = RIG_LEASE << 8,
									       .cdw15 = 1000 + least }),
				 0);
		for (u32 i = 0; i < list->count; i++, count++) {
			u32 vba = (u32)list->entries[i].vba;

			assert_int_equal((u32)list->entries[i].version % 1000, vba);
			assert_int_equal(list->entries[i].vba >> 32, vba % 3 == 0);
			seen[vba]++;
		}
		next = list->next;
	}
	return count;
}

static void test_lists(void **state)
{
	struct rig rig;
	u32 seen[600] = { 0 };

	(void)state;
	rig_open(&rig, NULL, NULL);
	rig_prepare(&rig);
	for (u32 i = 0; i < 600; i++)
		assert_int_equal(i % 3 ? rig_write(&rig, i, 1000 + i) : rig_trim(&rig, i, 1, 1000 + i), 0);
	assert_int_equal(read_list(&rig, 0, 100, seen), 500);
	for (u32 i = 0; i < 600; i++)
		assert_int_equal(seen[i], i >= 100);
	rig_close(&rig);
}

static u64 behind_what_is_written(struct rig *rig)
{
	struct nvme_volume_engine_status status;

	assert_int_equal(driver_admin(&rig->driver, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_STATUS,
								       .prp1 = driver_bus(rig->page) }),
			 0);
	memcpy(&status, rig->page, sizeof(status));
	return status.written;
}

/* Each step of some writes: what came since, and all that is trimmed. */
static void test_lists_of_what_came_since(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, NULL, NULL);
	rig_prepare(&rig);
	for (u32 i = 0; i < 600; i++)
		assert_int_equal(i % 3 ? rig_write(&rig, i, 1000 + i) : rig_trim(&rig, i, 1, 1000 + i), 0);
	for (u32 step = 1, first = 0; step < 40; first += step, step++) {
		u64 written = behind_what_is_written(&rig);
		u32 seen[600] = { 0 };

		for (u32 i = first; i < first + step; i++)
			if (i % 600 % 3)
				assert_int_equal(rig_write(&rig, i % 600, 1000 * (step + 2) + i % 600), 0);
		(void)read_list(&rig, written, 0, seen);
		for (u32 i = 0; i < 600; i++)
			assert_int_equal(seen[i], i % 3 == 0 || (i + 600 - first % 600) % 600 < step);
	}
	rig_close(&rig);
}

static void test_volumes(void **state)
{
	struct nvme_volume volume = rig_volume(RIG_VID), got;
	struct nvme_volume_permission permission;
	struct nvme_volume_engine_status status;
	struct rig rig;

	(void)state;
	rig_open(&rig, NULL, NULL);
	rig_prepare(&rig);
	assert_int_equal(rig_write(&rig, 9, 1), 0);
	assert_int_equal(rig_admin(&rig, NVME_ADMIN_VOLUME_GET, 0, 0, 0), 0);
	memcpy(&got, rig.page, sizeof(got));
	assert_int_equal(got.vid, RIG_VID);
	assert_int_equal(got.lease_epoch, RIG_LEASE);
	assert_int_equal(got.lease_client, RIG_CLIENT);
	assert_int_equal(rig_admin(&rig, NVME_ADMIN_VOLUME_GET, RIG_VID + 1, 0, 0),
			 FINAL(NVME_STATUS_VOLUME_UNKNOWN));
	assert_int_equal(rig_admin(&rig, NVME_ADMIN_VOLUME_GET_PERMISSION, RIG_VID, 0, 0), 0);
	memcpy(&permission, rig.page, sizeof(permission));
	assert_string_equal(permission.hostnqn, "nqn.a");
	assert_int_equal(rig_admin(&rig, NVME_ADMIN_VOLUME_GET_PERMISSION, RIG_VID, 1, 0),
			 FINAL(NVME_STATUS_VOLUME_UNKNOWN));
	volume.blocks = 9; /* an older command, carried out late: volumes only grow */
	assert_int_equal(rig_send(&rig, NVME_ADMIN_VOLUME_ADD, RIG_VID, &volume, sizeof(volume)), 0);
	rig_expect(&rig, 9, 1);
	assert_int_equal(rig_write(&rig, RIG_BLOCKS - 1, 1), 0); /* its lease goes on */
	assert_int_equal(rig_admin(&rig, NVME_ADMIN_VOLUME_DELETE, RIG_VID, 0, 0), 0);
	assert_int_equal(read_status(&rig), FINAL(NVME_STATUS_VOLUME_UNKNOWN));
	assert_int_equal(rig_admin(&rig, NVME_ADMIN_VOLUME_STATUS, 0, 0, 0), 0);
	memcpy(&status, rig.page, sizeof(status));
	assert_int_equal(status.used, 0);
	assert_int_equal(status.volumes, 0);
	assert_int_equal(status.user_writes, 2);
	rig_close(&rig);
}

/* A medium that has no space any more, say; what it had it has. */
static const struct weir_medium_ops *behind_ops;
static bool behind_full;

static bool submit_unless_full(struct weir_medium *medium, struct weir_io *io)
{
	if (io->kind != WEIR_IO_WRITE || !behind_full)
		return behind_ops->submit(medium, io);
	io->status = NVME_STATUS_CAPACITY_EXCEEDED;
	io->done(io);
	return true;
}

static u64 write_faults(struct rig *rig)
{
	struct nvme_volume_engine_status status;

	weir_engine_status(rig->engine, &status);
	return status.write_faults;
}

/** struct hinted - a medium that is told what it will be asked: @expected, and @read: the byte it was then
 * asked for */
static struct {
	const struct weir_medium_ops *ops;
	u64 expected, read;
	u32 hints;
} hinted;

static void hinted_expect(const struct weir_medium *medium, enum weir_io_kind kind, uint64_t offset_bytes)
{
	(void)medium;
	assert_int_equal(kind, WEIR_IO_READ);
	hinted.expected = offset_bytes;
	hinted.hints++;
}

static bool hinted_submit(struct weir_medium *medium, struct weir_io *io)
{
	if (io->kind == WEIR_IO_READ)
		hinted.read = io->offset_bytes;
	return hinted.ops->submit(medium, io);
}

/* Reads are told to the medium behind by where the block is there; what it does not have, and writes, are
 * not. */
static void test_hints(void **state)
{
	struct weir_medium *behind;
	struct weir_medium_ops ops;
	struct rig rig;

	(void)state;
	assert_int_equal(weir_medium_ram_open(4 << 20, 4096, NULL, &behind), 0);
	hinted.ops = behind->ops;
	ops = *behind->ops;
	ops.expect = hinted_expect;
	ops.submit = hinted_submit;
	behind->ops = &ops;
	rig_open(&rig, behind, NULL);
	rig_prepare(&rig);
	for (u32 vba = 0; vba < 8; vba++)
		assert_int_equal(rig_write(&rig, 7 - vba, 1 + vba), 0);
	assert_int_equal(rig_trim(&rig, 3, 1, 9), 0);
	assert_int_equal(hinted.hints, 0);
	for (u32 vba = 0, hints = 0; vba < 10; vba++) {
		bool is_there = vba < 8 && vba != 3;

		rig_expect(&rig, vba, is_there ? 8 - vba : 0);
		hints += is_there;
		assert_int_equal(hinted.hints, hints);
		assert_int_equal(hinted.expected, hinted.read);
	}
	rig_close(&rig);
}

static void test_a_medium_that_fails(void **state)
{
	struct weir_medium *behind;
	struct weir_medium_ops ops;
	struct rig rig;

	(void)state;
	assert_int_equal(weir_medium_ram_open(4 << 20, 4096, NULL, &behind), 0);
	behind_ops = behind->ops;
	ops = *behind_ops;
	ops.submit = submit_unless_full;
	behind->ops = &ops;
	rig_open(&rig, behind, NULL);
	rig_prepare(&rig);
	assert_int_equal(rig_write(&rig, 1, 1), 0);
	assert_int_equal(rig_map(&rig, RIG_MAP, 1, 0, false), 0);
	assert_int_equal(write_faults(&rig), 0);
	behind_full = true;
	assert_int_equal(rig_write(&rig, 1, 2), NVME_STATUS_WRITE_FAULT); /* it is the medium that is full */
	assert_int_equal(write_faults(&rig), 1);
	behind_full = false;
	rig_expect(&rig, 1, 1);
	assert_int_equal(rig_write(&rig, 1, 2), 0);
	assert_int_equal(write_faults(&rig), 1); /* until it has been out */
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_flushes),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_leases),
		cmocka_unit_test(test_placement),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_versions_are_of_the_lease),
		cmocka_unit_test(test_versions_of_blocks),
		cmocka_unit_test(test_not_here),
		cmocka_unit_test(test_manager),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_lists_of_what_came_since),
		cmocka_unit_test(test_volumes),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_a_medium_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
