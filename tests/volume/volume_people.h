/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_people.h: an engine behind a target, and hosts with keys that use it, for tests of who gets what.
 *
 * Owns: Alice, whose volume is 1, and Bob, whose is 2; Carol is client 2 of Alice's volume, as Bob is of his.
 * What Alice wrote has a mark in each block.
 */
#ifndef WEIR_TESTS_VOLUME_PEOPLE_H
#define WEIR_TESTS_VOLUME_PEOPLE_H

#include "../target/target_chap.h"

#include <weir/nvme_volume.h>

enum {
	BLOCK = NVME_VOLUME_BLOCK_BYTES,
	FOREIGN = 1, /* volumes */
	OWN = 2,
	BLOCKS = 64,
	UNIT_LOG2 = 4,
	ALICE = 1, /* clients */
	BOB = 2,
	NOBODY = 3,
	LEASE = 5,
	MAP = 9,
};

/* Versions of a lease. */
#define VERSION_OF(lease) ((u64)(lease) << NVME_VOLUME_VERSION_EPOCH | 100)
#define VERSION           VERSION_OF(LEASE)

#define FINAL(status) ((status) | NVME_STATUS_DNR)
#define MARK          "alice-keeps-this"

/** struct person - a host: its two connections, and the secret that it authenticates by */
struct person {
	const char *nqn;
	char path[40];
	struct weir_chap_secret secret;
	struct host admin;
	struct host io;
	u16 cntlid;
};

static struct person manager = { .nqn = "nqn.2026-11.org.example:manager" };
static struct person alice = { .nqn = "nqn.2026-11.org.example:alice" };
static struct person bob = { .nqn = "nqn.2026-11.org.example:bob" };
static struct person carol = { .nqn = "nqn.2026-11.org.example:carol" };
static struct person *const people[] = { &manager, &alice, &bob, &carol };
static const struct weir_chap_secret none;
static struct weir_target *target;
static u8 data[2 * BLOCK];

/* ---- who connects, and how ---- */

/* Connect, and prove who it is by @secret, where the target wants that; what chap says then. */
static inline bool connect_queue(struct host *host, const struct person *as,
				 const struct weir_chap_secret *secret, u16 qid, u16 cntlid, u64 *result)
{
	const struct weir_chap_names names = { as->nqn, HOST_SUBSYSTEM };
	u8 answer[WEIR_CHAP_MESSAGE_BYTES];
	struct weir_chap chap;
	bool good;

	host_adopt(host, target);
	host_hello(host, 0, 0);
	assert_int_equal(host_connect(host, qid, 31, cntlid, 0, HOST_SUBSYSTEM, as->nqn, result), 0);
	if (!weir_chap_available())
		return true;
	weir_chap_begin(&chap, &names, secret, &none);
	chap_prove(host, &chap, answer);
	good = chap.done;
	weir_chap_end(&chap);
	return good;
}

static inline void connect_person(struct person *person)
{
	u64 result = 0;

	assert_true(connect_queue(&person->admin, person, &person->secret, 0, NVME_CNTLID_DYNAMIC, &result));
	person->cntlid = (u16)NVME_CONNECT_CNTLID(result);
	assert_int_equal(host_property(&person->admin, true, NVME_PROPERTY_CC, 0,
				       NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16, NULL),
			 0);
	assert_true(connect_queue(&person->io, person, &person->secret, 1, person->cntlid, NULL));
}

static inline void disconnect(struct person *person)
{
	close(person->io.socket);
	close(person->admin.socket);
}

/* ---- commands ---- */

/* A command by its opcode's direction: @bytes of data from there, or to host->data; its status. */
static inline u32 command(struct host *host, struct nvme_sqe sqe, const void *from, u32 bytes)
{
	host->data_bytes = 0;
	switch (sqe.cdw0 & 3) {
	case NVME_OPCODE_TO_CONTROLLER: return host_give(host, sqe, from, bytes, true);
	case NVME_OPCODE_FROM_CONTROLLER: return host_take(host, sqe, bytes);
	default: host_capsule(host, &sqe, NULL, 0); return host_response(host, NULL);
	}
}

/** struct access - an I/O command to an engine, as its sender makes it */
struct access {
	u8 opcode;
	u16 volume;
	u16 client;
	u32 vba;
	u64 version;
	u32 lease;
	u32 map;
};

static inline u64 slba_of(const struct access *access)
{
	return (u64)access->volume << 48 | (u64)access->client << 32 | access->vba;
}

static inline struct nvme_sqe access_sqe(struct host *host, const struct access *access)
{
	struct nvme_sqe sqe = host_io(host, access->opcode, 1, slba_of(access), 1);

	sqe.cdw2 = (u32)access->version;
	sqe.cdw3 = (u32)(access->version >> 32);
	sqe.cdw14 = access->lease;
	sqe.cdw15 = access->map;
	if (access->opcode == NVME_OPCODE_DSM) {
		sqe.cdw10 = 0;
		sqe.cdw11 = NVME_DSM_DEALLOCATE;
	}
	return sqe;
}

static inline void set_range(unsigned index, const struct access *access)
{
	u32 range[4] = { 0, 1 };
	u64 slba = slba_of(access);

	memcpy(&range[2], &slba, sizeof(slba));
	memcpy(data + index * sizeof(range), range, sizeof(range));
}

static inline u32 try_access(struct host *host, const struct access *access)
{
	struct nvme_sqe sqe = access_sqe(host, access);

	memset(data, 0x66, sizeof(data));
	if (access->opcode == NVME_OPCODE_DSM)
		set_range(0, access);
	return command(host, sqe, data, BLOCK);
}

static inline u32 write_marked(struct host *host, const struct access *access)
{
	memset(data, 0, sizeof(data));
	for (u32 at = 0; at < BLOCK; at += 64)
		snprintf((char *)data + at, 64, MARK " %u %u", access->vba, (unsigned)access->version);
	return command(host, access_sqe(host, access), data, BLOCK);
}

/* Nothing of Alice's is in what came last. */
static inline void assert_unmarked(const struct host *host)
{
	if (host->data_bytes && (memmem(host->data, host->data_bytes, MARK, strlen(MARK)) ||
				 memmem(host->data, host->data_bytes, alice.nqn, strlen(alice.nqn))))
		fail_msg("what is Alice's came to another host");
}

static inline struct access alices(u8 opcode, u32 vba, u64 version)
{
	return (struct access){ opcode, FOREIGN, ALICE, vba, version, LEASE, MAP };
}

static inline struct access bobs(u8 opcode, u32 vba, u64 version)
{
	return (struct access){ opcode, OWN, BOB, vba, version, LEASE, MAP };
}

static inline u64 refusals(void)
{
	struct nvme_volume_engine_status status;
	struct nvme_sqe sqe = host_command(&manager.admin, NVME_ADMIN_VOLUME_STATUS, 1);

	assert_int_equal(host_take(&manager.admin, sqe, sizeof(status)), 0);
	memcpy(&status, manager.admin.data, sizeof(status));
	return status.refused;
}

/* Each block of Alice's is as she wrote it, and in the version that she gave it. */
static inline void assert_alices_blocks(u64 version)
{
	struct access access = { NVME_OPCODE_READ, FOREIGN, NVME_VOLUME_MANAGER, 0, version, 0, MAP };
	char text[64];

	for (access.vba = 0; access.vba < BLOCKS; access.vba++) {
		assert_int_equal(try_access(&manager.io, &access), 0);
		snprintf(text, sizeof(text), MARK " %u %u", access.vba, (unsigned)version);
		assert_string_equal((const char *)manager.io.data + BLOCK - 64, text);
	}
}

/* ---- the array: one engine, two volumes ---- */

static u32 map_epoch; /* of the engine */

static inline u32 manage(u8 opcode, u32 cdw10, u32 cdw11, u32 cdw12, const void *what, u32 bytes)
{
	struct nvme_sqe sqe = host_command(&manager.admin, opcode, 1);

	sqe.cdw10 = cdw10;
	sqe.cdw11 = cdw11;
	sqe.cdw12 = cdw12;
	sqe.cdw13 = map_epoch;
	return command(&manager.admin, sqe, what, bytes);
}

static inline u32 set_map(u32 epoch)
{
	struct nvme_volume_map map = { .epoch = epoch, .count = 1 };

	map.engines[0] = (struct nvme_volume_engine){ .id = 1, .weight = 100 };
	map_epoch = epoch;
	return manage(NVME_ADMIN_VOLUME_MAP, 0, 0, 0, &map, sizeof(map));
}

static inline u32 set_rights(u16 vid, u16 client, u32 rights, const char *nqn)
{
	struct nvme_volume_permission permission = { .vid = vid, .client = client, .rights = rights };

	snprintf(permission.hostnqn, sizeof(permission.hostnqn), "%s", nqn);
	return manage(NVME_ADMIN_VOLUME_CHMOD, vid, 0, 0, &permission, sizeof(permission));
}

static inline u32 set_lease(u16 vid, u32 epoch, u16 client)
{
	return manage(NVME_ADMIN_VOLUME_LEASE, vid, epoch, client, NULL, 0);
}

static inline u32 add_volume(u16 vid, const char *name)
{
	struct nvme_volume volume = {
		.vid = vid, .replicas = 1, .unit_log2 = UNIT_LOG2, .weight = 1, .blocks = BLOCKS
	};

	snprintf(volume.name, sizeof(volume.name), "%s", name);
	return manage(NVME_ADMIN_VOLUME_ADD, vid, 0, 0, &volume, sizeof(volume));
}

static inline void make_array(void)
{
	const u32 both = NVME_VOLUME_READ | NVME_VOLUME_WRITE;

	assert_int_equal(set_map(MAP), 0);
	assert_int_equal(add_volume(FOREIGN, MARK), 0);
	assert_int_equal(add_volume(OWN, "bobs"), 0);
	assert_int_equal(set_rights(FOREIGN, ALICE, both, alice.nqn), 0);
	assert_int_equal(set_rights(FOREIGN, BOB, both, carol.nqn), 0);
	assert_int_equal(set_rights(OWN, BOB, both, bob.nqn), 0);
	assert_int_equal(set_lease(FOREIGN, LEASE, ALICE), 0);
	assert_int_equal(set_lease(OWN, LEASE, BOB), 0);
}

static inline void serve(void)
{
	static const struct weir_target_namespace_options space = { .uri = "virt:16M?block=4096" };
	const char *hosts[4], *secrets[4];
	const struct weir_target_subsystem_options subsystem = {
		.nqn = HOST_SUBSYSTEM,
		.namespaces = &space,
		.namespace_count = 1,
		.hosts = hosts,
		.host_count = 4,
		.engine = true,
		.manager = manager.nqn,
		.secrets = weir_chap_available() ? secrets : NULL,
	};
	struct weir_target_options options = {
		.size = sizeof(options), .subsystems = &subsystem, .subsystem_count = 1, .threads = 1
	};

	for (unsigned i = 0; i < 4; i++) {
		strcpy(people[i]->path, "/tmp/weir_security_XXXXXX");
		hosts[i] = people[i]->nqn;
		secrets[i] = people[i]->path;
		if (weir_chap_available())
			chap_make_secret(people[i]->path, &people[i]->secret);
	}
	assert_int_equal(weir_target_create(&options, &target), 0);
	assert_int_equal(weir_target_start(target), 0);
	for (unsigned i = 0; weir_chap_available() && i < 4; i++)
		unlink(people[i]->path);
}

#endif
