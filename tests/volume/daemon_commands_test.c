/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon_commands_test.c: the daemon's commands to engines, field by field; a link notes what it is given. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/nvme.h>

#include "volume/daemon/command.h"

enum { BLOCK = NVME_VOLUME_BLOCK_BYTES, VID = 0xfffe, CLIENT = 0xfffd };

static const u32 epoch = 0x89abcdef, map_epoch = 0xfedcba98, lease = 0x00fffffd, vba = 0xfffffff1;
static const u64 version = 0xfffffd0123456789;

/** given - the last command and its data; @status: what it ends with; @reply: its data, if it has any */
static struct {
	struct nvme_sqe sqe;
	bool io;
	uint32_t bytes;
	enum volume_way way;
	unsigned ms, calls, between;
	unsigned char data[BLOCK], reply[BLOCK];
	int status;
} given;

static int command(struct volume_engine_link *link, bool io, const struct nvme_sqe *sqe, void *data,
		   uint32_t bytes, enum volume_way way, unsigned ms)
{
	(void)link;
	assert_int_equal(given.between, ++given.calls); /* whoever waits had its time first */
	assert_true(bytes <= sizeof(given.data) && (data || !bytes));
	given.sqe = *sqe;
	given.io = io;
	given.bytes = bytes;
	given.way = way;
	given.ms = ms;
	if (way == VOLUME_TO_ENGINE)
		memcpy(given.data, data, bytes);
	if (way == VOLUME_FROM_ENGINE)
		memcpy(data, given.reply, bytes);
	return given.status;
}

static void between(void *argument)
{
	assert_ptr_equal(argument, &given);
	given.between++;
}

static const struct volume_engine_link_ops ops = { .command = command };
static const struct volume_between between_commands = { between, &given };
static struct volume_engine_link link_ = { &ops, &between_commands, &epoch };

static int begin(void **state)
{
	(void)state;
	memset(&given, 0, sizeof(given));
	for (unsigned i = 0; i < BLOCK; i++)
		given.reply[i] = (unsigned char)(i * 7 + i / 256 + 1);
	return 0;
}

static void check_admin(u32 opcode, enum volume_way way)
{
	assert_false(given.io);
	assert_int_equal(given.sqe.cdw0, opcode);
	assert_int_equal(given.way, way);
	assert_int_equal(given.bytes, way == VOLUME_NO_DATA ? 0 : BLOCK);
	assert_int_equal(given.ms, opcode == NVME_ADMIN_VOLUME_STATUS ? 1000 : 2000);
}

/* A page whose first @bytes are @object's, and whose others are zeros. */
static void check_page(const void *object, size_t bytes)
{
	assert_memory_equal(given.data, object, bytes);
	for (size_t i = bytes; i < BLOCK; i++)
		assert_int_equal(given.data[i], 0);
}

/* Each carries the daemon's epoch, by which an engine knows one that is active no more. */
static void test_changes(void **state)
{
	const struct nvme_volume volume = { .vid = VID, .replicas = 4, .blocks = 1ull << 32, .name = "v" };
	const struct nvme_volume_permission permission = {
		.vid = VID, .client = CLIENT, .rights = NVME_VOLUME_WRITE, .hostnqn = "nqn.a"
	};

	(void)state;
	assert_int_equal(volume_engine_add(&link_, &volume), 0);
	check_admin(NVME_ADMIN_VOLUME_ADD, VOLUME_TO_ENGINE);
	check_page(&volume, sizeof(volume));
	assert_int_equal(given.sqe.cdw10, VID);
	assert_int_equal(given.sqe.cdw13, epoch);
	assert_int_equal(volume_engine_delete(&link_, VID), 0);
	check_admin(NVME_ADMIN_VOLUME_DELETE, VOLUME_NO_DATA);
	assert_int_equal(given.sqe.cdw10, VID);
	assert_int_equal(given.sqe.cdw13, epoch);
	assert_int_equal(volume_engine_chmod(&link_, &permission), 0);
	check_admin(NVME_ADMIN_VOLUME_CHMOD, VOLUME_TO_ENGINE);
	check_page(&permission, sizeof(permission));
	assert_int_equal(given.sqe.cdw10, VID);
	assert_int_equal(given.sqe.cdw13, epoch);
	assert_int_equal(volume_engine_lease(&link_, VID, lease, CLIENT), 0);
	check_admin(NVME_ADMIN_VOLUME_LEASE, VOLUME_NO_DATA);
	assert_int_equal(given.sqe.cdw10, VID);
	assert_int_equal(given.sqe.cdw11, lease);
	assert_int_equal(given.sqe.cdw12, CLIENT);
	assert_int_equal(given.sqe.cdw13, epoch);
	assert_int_equal(volume_engine_fence(&link_), 0);
	check_admin(NVME_ADMIN_VOLUME_FENCE, VOLUME_NO_DATA);
	assert_int_equal(given.sqe.cdw13, epoch);
}

static void test_maps_and_states(void **state)
{
	struct nvme_volume_map map = { .epoch = map_epoch, .count = NVME_VOLUME_MOST_ENGINES, .self = 30 };
	struct nvme_volume_engine_status status;
	struct nvme_volume_permission permission;
	struct nvme_volume volume;

	(void)state;
	memcpy(map.engines[30].address, "a:1", 4);
	assert_int_equal(volume_engine_map(&link_, &map), 0);
	check_admin(NVME_ADMIN_VOLUME_MAP, VOLUME_TO_ENGINE);
	check_page(&map, sizeof(map));
	assert_int_equal(volume_engine_get_map(&link_, &map), 0);
	check_admin(NVME_ADMIN_VOLUME_GET_MAP, VOLUME_FROM_ENGINE);
	assert_memory_equal(&map, given.reply, sizeof(map));
	assert_int_equal(volume_engine_status(&link_, &status), 0);
	check_admin(NVME_ADMIN_VOLUME_STATUS, VOLUME_FROM_ENGINE);
	assert_memory_equal(&status, given.reply, sizeof(status));
	assert_int_equal(volume_engine_get(&link_, VID + 1, &volume), 0);
	check_admin(NVME_ADMIN_VOLUME_GET, VOLUME_FROM_ENGINE);
	assert_int_equal(given.sqe.cdw10, VID + 1);
	assert_memory_equal(&volume, given.reply, sizeof(volume));
	assert_int_equal(volume_engine_get_permission(&link_, VID, 70000, &permission), 0);
	check_admin(NVME_ADMIN_VOLUME_GET_PERMISSION, VOLUME_FROM_ENGINE);
	assert_int_equal(given.sqe.cdw10, VID);
	assert_int_equal(given.sqe.cdw11, 70000);
	assert_memory_equal(&permission, given.reply, sizeof(permission));
}

/* What an engine refuses to say, or did not say, is not there. */
static void test_refusals(void **state)
{
	static const int statuses[] = { NVME_STATUS_VOLUME_UNKNOWN, -ENOTCONN };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct nvme_volume_engine_status status = { .used = 5 };
		struct nvme_volume volume = { .vid = 7 };
		u64 found = 9;

		given.status = statuses[i];
		assert_int_equal(volume_engine_status(&link_, &status), statuses[i]);
		assert_int_equal(status.used, 5);
		assert_int_equal(volume_engine_get(&link_, 1, &volume), statuses[i]);
		assert_int_equal(volume.vid, 7);
		assert_int_equal(volume_engine_version(&link_, VID, vba, &found), statuses[i]);
		assert_int_equal(found, 0);
		assert_int_equal(volume_engine_flush(&link_), statuses[i]);
	}
}

/* A list goes on where it was, however much an engine has written. */
static void test_lists(void **state)
{
	struct nvme_volume_list *reply = (struct nvme_volume_list *)(void *)given.reply, list;
	const u64 cursor = 0x123456789abcdef0, from = 0xfedcba9876543211;
	u64 found;

	(void)state;
	assert_int_equal(volume_engine_list(&link_, VID, cursor, from, &list), 0);
	check_admin(NVME_ADMIN_VOLUME_LIST, VOLUME_FROM_ENGINE);
	assert_int_equal(given.sqe.cdw10, VID);
	assert_int_equal(given.sqe.cdw11, (u32)cursor);
	assert_int_equal(given.sqe.cdw12, cursor >> 32);
	assert_int_equal(given.sqe.cdw14, from >> 32);
	assert_int_equal(given.sqe.cdw15, (u32)from);
	assert_memory_equal(&list, given.reply, sizeof(list));
	*reply = (struct nvme_volume_list){ .count = 1, .entries = { { vba, version } } };
	assert_int_equal(volume_engine_version(&link_, VID, vba, &found), 0);
	check_admin(NVME_ADMIN_VOLUME_LIST, VOLUME_FROM_ENGINE);
	assert_int_equal(given.sqe.cdw10, 1u << 16 | VID);
	assert_int_equal(given.sqe.cdw13, vba);
	assert_true(found == version);
	reply->entries[0].vba = 1ull << 32 | vba; /* it was trimmed */
	assert_int_equal(volume_engine_version(&link_, VID, vba, &found), 0);
	assert_int_equal(found, 0);
	reply->count = 0;
	assert_int_equal(volume_engine_version(&link_, VID, vba, &found), 0);
	assert_int_equal(found, 0);
}

static void check_io(u32 opcode, enum volume_way way, uint32_t bytes)
{
	assert_true(given.io);
	assert_int_equal(given.sqe.cdw0, opcode);
	assert_int_equal(given.sqe.nsid, 1);
	assert_int_equal(given.way, way);
	assert_int_equal(given.bytes, bytes);
	assert_int_equal(given.ms, 2000);
	if (opcode == NVME_OPCODE_FLUSH)
		return;
	assert_int_equal(given.sqe.cdw2, (u32)version);
	assert_int_equal(given.sqe.cdw3, version >> 32);
	assert_int_equal(given.sqe.cdw14, lease);
	assert_int_equal(given.sqe.cdw15, map_epoch);
	assert_int_equal(given.sqe.cdw12 & 0xffff, 0); /* one block, or range */
}

/* The manager's own, of one block: client 0 of the volume. */
static void test_blocks(void **state)
{
	const struct volume_block block = {
		.vid = VID, .vba = vba, .version = version, .map = map_epoch, .lease = lease
	};
	const u64 slba = (u64)VID << 48 | vba;
	unsigned char data[BLOCK] = { 0 };

	(void)state;
	assert_int_equal(volume_engine_read(&link_, &block, data), 0);
	check_io(NVME_OPCODE_READ, VOLUME_FROM_ENGINE, BLOCK);
	assert_int_equal(given.sqe.cdw10, vba);
	assert_int_equal(given.sqe.cdw11, slba >> 32);
	assert_memory_equal(data, given.reply, BLOCK);
	assert_int_equal(volume_engine_write(&link_, &block, data), 0);
	check_io(NVME_OPCODE_WRITE, VOLUME_TO_ENGINE, BLOCK);
	assert_int_equal(given.sqe.cdw10, vba);
	assert_int_equal(given.sqe.cdw11, slba >> 32);
	assert_memory_equal(data, given.data, BLOCK);
	assert_int_equal(volume_engine_trim(&link_, &block), 0);
	check_io(NVME_OPCODE_DSM, VOLUME_TO_ENGINE, 16);
	assert_int_equal(given.sqe.cdw10, 0); /* one range */
	assert_int_equal(given.sqe.cdw11, NVME_DSM_DEALLOCATE);
	assert_memory_equal(given.data + 4, &(u32){ 1 }, 4);
	assert_memory_equal(given.data + 8, &slba, 8);
	assert_int_equal(volume_engine_flush(&link_), 0);
	check_io(NVME_OPCODE_FLUSH, VOLUME_NO_DATA, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_changes, begin),
		cmocka_unit_test_setup(test_maps_and_states, begin),
		cmocka_unit_test_setup(test_refusals, begin),
		cmocka_unit_test_setup(test_lists, begin),
		cmocka_unit_test_setup(test_blocks, begin),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("daemon_commands", tests, NULL, NULL);
}
