/* SPDX-License-Identifier: BSD-3-Clause */
/* target_admin_test.c: pages that admin commands of the target give: which bytes of them, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <weir/nvme_volume.h>

#include "target_host.h"
#include "target/parts.h"

enum {
	LOG_HEALTH = 2,
	LOG_FIRMWARE = 3,
	LOG_LENGTH = 512,
	PAGE = 4096,
	SERIAL = 4,
	SERIAL_BYTES = 20,
	MDTS = 77,
	NGUID = 104,
	UUID_BYTES = 16,
	PIECE = 1 << 17,
	PIECES = 8, /* of the first namespace; the second has twice as many */
};

static struct weir_target *target;
static struct host admin, queue;
static u8 whole[PAGE];

/* One of two namespaces, whose storages take @first and @second at once. */
static void serve(const char *first, const char *second)
{
	const struct weir_target_namespace_options spaces[] = { { .uri = first }, { .uri = second } };
	const struct weir_target_subsystem_options subsystem = { .nqn = HOST_SUBSYSTEM,
								 .namespaces = spaces,
								 .namespace_count = 2 };
	struct weir_target_options options = {
		.size = sizeof(options), .subsystems = &subsystem, .subsystem_count = 1, .threads = 1
	};

	assert_int_equal(weir_target_create(&options, &target), 0);
	assert_int_equal(weir_target_start(target), 0);
}

static void end(void)
{
	close(admin.socket);
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
}

static u32 identify_what(u32 cns, u32 nsid)
{
	struct nvme_sqe sqe = host_command(&admin, NVME_ADMIN_IDENTIFY, nsid);

	sqe.cdw10 = cns;
	return host_take(&admin, sqe, PAGE);
}

static u32 identify(void)
{
	return identify_what(NVME_CNS_CONTROLLER, 0);
}

/* @bytes of a log from byte @offset on. */
static void get_log(u64 offset, u32 bytes)
{
	struct nvme_sqe sqe = host_command(&admin, NVME_ADMIN_GET_LOG_PAGE, NVME_NSID_BROADCAST);

	sqe.cdw10 = LOG_FIRMWARE | (bytes / 4 - 1) << 16;
	sqe.cdw12 = (u32)offset;
	sqe.cdw13 = (u32)(offset >> 32);
	assert_int_equal(host_take(&admin, sqe, bytes), 0);
}

/* A log may be asked for by more dwords than 16 bits count. */
static void test_a_long_log(void **state)
{
	const u32 bytes = 3 << 18;
	struct nvme_sqe sqe;

	(void)state;
	serve("virt:1M", "virt:1M");
	(void)host_admin(&admin, target, 0);
	get_log(0, LOG_LENGTH);
	memcpy(whole, admin.data, LOG_LENGTH);
	sqe = host_command(&admin, NVME_ADMIN_GET_LOG_PAGE, NVME_NSID_BROADCAST);
	sqe.cdw10 = LOG_FIRMWARE | (bytes / 4 - 1) << 16;
	sqe.cdw11 = (bytes / 4 - 1) >> 16;
	assert_int_equal(host_take(&admin, sqe, bytes), 0);
	assert_memory_equal(admin.data, whole, LOG_LENGTH);
	for (u32 at = LOG_LENGTH; at < bytes; at++)
		assert_int_equal(admin.data[at], 0);
	sqe.cdw11 = 0;
	assert_int_equal(host_take(&admin, sqe, bytes), NVME_STATUS_INVALID_FIELD | NVME_STATUS_DNR);
	end();
}

/* What all namespaces have read and written is the controller's. */
static void test_health_is_of_all_namespaces(void **state)
{
	static const u8 data[PIECE];
	struct nvme_sqe sqe;
	u64 units[2][2];

	(void)state;
	serve("virt:4M?block=512", "virt:4M?block=512");
	host_queue(&queue, target, host_admin(&admin, target, 0), 1, 0, 0);
	for (u32 i = 0; i < 3 * PIECES; i++) {
		u32 nsid = i < PIECES ? 1 : 2;

		assert_int_equal(host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, nsid, 0, PIECE / 512),
					   data, PIECE, false),
				 0);
		if (i % 2)
			assert_int_equal(host_take(&queue,
						   host_io(&queue, NVME_OPCODE_READ, nsid, 0, PIECE / 512),
						   PIECE),
					 0);
	}
	sqe = host_command(&admin, NVME_ADMIN_GET_LOG_PAGE, NVME_NSID_BROADCAST);
	sqe.cdw10 = LOG_HEALTH | (LOG_LENGTH / 4 - 1) << 16;
	assert_int_equal(host_take(&admin, sqe, LOG_LENGTH), 0);
	memcpy(units, admin.data + 32, sizeof(units)); /* read, written: 128 bits each */
	assert_int_equal(units[0][0], (3 * PIECES / 2 * PIECE + 511999) / 512000);
	assert_int_equal(units[1][0], (3 * PIECES * PIECE + 511999) / 512000);
	assert_int_equal(units[0][1] | units[1][1], 0);
	close(queue.socket);
	end();
}

/* A subsystem has its number whenever it is served, and another one has another. */
static void test_serial_numbers(void **state)
{
	static const struct weir_target_namespace_options space = { .uri = "virt:1M" };
	static const struct weir_target_subsystem_options subsystems[] = {
		{ .nqn = HOST_SUBSYSTEM, .namespaces = &space, .namespace_count = 1 },
		{ .nqn = HOST_OTHER, .namespaces = &space, .namespace_count = 1 },
	};
	const struct weir_target_options options = { .size = sizeof(options),
						     .subsystems = subsystems,
						     .subsystem_count = 2 };
	u8 serials[4][SERIAL_BYTES];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		u64 cntlid;

		if (i % 2 == 0) {
			assert_int_equal(weir_target_create(&options, &target), 0);
			assert_int_equal(weir_target_start(target), 0);
		}
		host_adopt(&admin, target);
		host_hello(&admin, 0, 0);
		assert_int_equal(host_connect(&admin, 0, 31, NVME_CNTLID_DYNAMIC, 0, subsystems[i % 2].nqn,
					      HOST_NAME, &cntlid),
				 0);
		assert_int_equal(identify(), 0);
		assert_string_equal((char *)admin.data + NVME_ID_CTRL_SUBNQN, subsystems[i % 2].nqn);
		assert_int_equal(admin.data[NVME_ID_CTRL_CNTLID] | admin.data[NVME_ID_CTRL_CNTLID + 1] << 8,
				 cntlid);
		memcpy(serials[i], admin.data + SERIAL, SERIAL_BYTES);
		if (i % 2)
			end();
		else
			close(admin.socket);
	}
	assert_memory_equal(serials[0], serials[2], SERIAL_BYTES);
	assert_memory_equal(serials[1], serials[3], SERIAL_BYTES);
	assert_memory_not_equal(serials[0], serials[1], SERIAL_BYTES);
}

static u32 engine_status(u32 nsid, u32 bytes)
{
	return host_take(&admin, host_command(&admin, NVME_ADMIN_VOLUME_STATUS, nsid), bytes);
}

static u64 engine_blocks_of(u32 nsid)
{
	struct nvme_volume_engine_status status;

	assert_int_equal(engine_status(nsid, sizeof(status)), 0);
	memcpy(&status, admin.data, sizeof(status));
	return status.blocks;
}

/* Commands of volumes are for the engine that they name, without a name for the first; and the whole of what
 * they are to change comes with them. */
static void test_commands_of_volumes_are_for_one_engine(void **state)
{
	static const struct weir_target_namespace_options spaces[] = { { .uri = "virt:4M?block=4096" },
								       { .uri = "virt:8M?block=4096" } };
	static const struct weir_target_subsystem_options subsystem = {
		.nqn = HOST_SUBSYSTEM, .namespaces = spaces, .namespace_count = 2, .engine = true
	};
	const struct weir_target_options options = { .size = sizeof(options),
						     .subsystems = &subsystem,
						     .subsystem_count = 1 };
	struct nvme_volume volume = { .vid = 5, .replicas = 1, .weight = 1, .blocks = 9, .name = "volume" };
	struct nvme_sqe sqe;

	(void)state;
	assert_int_equal(weir_target_create(&options, &target), 0);
	assert_int_equal(weir_target_start(target), 0);
	(void)host_admin(&admin, target, 0);
	assert_true(engine_blocks_of(2) > engine_blocks_of(1));
	assert_int_equal(engine_blocks_of(0), engine_blocks_of(1));
	assert_int_equal(engine_status(3, PAGE), NVME_STATUS_INVALID_OPCODE | NVME_STATUS_DNR);
	assert_int_equal(engine_status(1, sizeof(struct nvme_volume_engine_status) - 4),
			 NVME_STATUS_SGL_INVALID_LENGTH | NVME_STATUS_DNR);
	sqe = host_command(&admin, NVME_ADMIN_VOLUME_ADD, 2);
	sqe.cdw10 = volume.vid;
	assert_int_equal(host_give(&admin, sqe, &volume, sizeof(volume) - 4, true),
			 NVME_STATUS_SGL_INVALID_LENGTH | NVME_STATUS_DNR);
	assert_int_equal(host_give(&admin, sqe, &volume, sizeof(volume), true), 0);
	sqe = host_command(&admin, NVME_ADMIN_VOLUME_GET, 2);
	assert_int_equal(host_take(&admin, sqe, sizeof(volume)), 0);
	assert_memory_equal(admin.data, &volume, sizeof(volume));
	sqe.nsid = 1;
	assert_int_equal(host_take(&admin, sqe, sizeof(volume)),
			 NVME_STATUS_VOLUME_UNKNOWN | NVME_STATUS_DNR);
	end();
}

/* From where they are asked for; behind a log's end are zeros, whatever other commands had in the buffer. */
static void test_logs_by_offset(void **state)
{
	static const u64 offsets[] = { 0,
				       4,
				       8,
				       LOG_LENGTH - 4,
				       LOG_LENGTH,
				       (u64)1 << 32,
				       ((u64)1 << 32) + 8,
				       ((u64)1 << 63) + LOG_LENGTH - 4 };

	(void)state;
	serve("virt:1M", "virt:1M");
	(void)host_admin(&admin, target, 0);
	get_log(0, LOG_LENGTH);
	memcpy(whole, admin.data, LOG_LENGTH);
	assert_int_not_equal(whole[0], 0);
	assert_int_not_equal(whole[8], 0);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		assert_int_equal(identify(), 0); /* which leaves its page */
		get_log(offsets[i], PAGE);
		for (u64 at = 0; at < PAGE; at++)
			assert_int_equal(admin.data[at],
					 offsets[i] + at < LOG_LENGTH ? whole[offsets[i] + at] : 0);
	}
	end();
}

/* Of all namespaces the least is the controller's, wherever it is in the list. */
static void test_transfers_that_all_namespaces_take(void **state)
{
	static const char *const uris[] = { "virt:1M?block=512&mdts=8192", "virt:1M?block=512&mdts=65536" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		u16 cntlid;

		serve(uris[i], uris[!i]);
		cntlid = host_admin(&admin, target, 0);
		assert_int_equal(identify(), 0);
		assert_int_equal(admin.data[MDTS], 1); /* 2^1 pages */
		host_queue(&queue, target, cntlid, 1, 0, 0);
		for (u32 nsid = 1; nsid <= 2; nsid++) {
			assert_int_equal(
				host_take(&queue, host_io(&queue, NVME_OPCODE_READ, nsid, 0, 16), 8192), 0);
			assert_int_equal(
				host_take(&queue, host_io(&queue, NVME_OPCODE_READ, nsid, 0, 17), 8704),
				NVME_STATUS_INVALID_FIELD | NVME_STATUS_DNR);
		}
		close(queue.socket);
		end();
	}
}

/* The list of descriptors has the identifier that Identify Namespace has, and each namespace another one. */
static void test_identifiers(void **state)
{
	u8 nguid[2][UUID_BYTES];

	(void)state;
	serve("virt:1M", "virt:1M");
	(void)host_admin(&admin, target, 0);
	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(identify_what(NVME_CNS_NAMESPACE, i + 1), 0);
		memcpy(nguid[i], admin.data + NGUID, UUID_BYTES);
		assert_int_equal(identify_what(NVME_CNS_DESCRIPTORS, i + 1), 0);
		assert_memory_equal(admin.data, "\3\x10\0\0", 4); /* a UUID */
		assert_memory_equal(admin.data + 4, nguid[i], UUID_BYTES);
		assert_memory_equal(admin.data + 4 + UUID_BYTES, "\0\0\0\0", 4);
	}
	assert_memory_not_equal(nguid[0], nguid[1], UUID_BYTES);
	assert_int_equal(identify_what(NVME_CNS_DESCRIPTORS, 3),
			 NVME_STATUS_INVALID_NAMESPACE | NVME_STATUS_DNR);
	end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_logs_by_offset),
		cmocka_unit_test(test_a_long_log),
		cmocka_unit_test(test_health_is_of_all_namespaces),
		cmocka_unit_test(test_serial_numbers),
		cmocka_unit_test(test_commands_of_volumes_are_for_one_engine),
		cmocka_unit_test(test_identifiers),
		cmocka_unit_test(test_transfers_that_all_namespaces_take),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("target_admin", tests, NULL, NULL);
}
