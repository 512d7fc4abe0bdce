/* SPDX-License-Identifier: BSD-3-Clause */
/* target_admin_test.c: pages that admin commands of the target give: which bytes of them, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "target_host.h"
#include "target/parts.h"

enum { LOG_FIRMWARE = 3, LOG_LENGTH = 512, PAGE = 4096, MDTS = 77, NGUID = 104, UUID_BYTES = 16 };

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
		cmocka_unit_test(test_identifiers),
		cmocka_unit_test(test_transfers_that_all_namespaces_take),
	};

	return cmocka_run_group_tests_name("target_admin", tests, NULL, NULL);
}
