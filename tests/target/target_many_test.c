/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_many_test.c: a target that has as many namespaces as it can: what is said of each by a bit of its
 * own, and no bit of another one's; and what is left of targets that came to be, or did not.
 */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/leaks.h"
#include "target/parts.h"
#include "target_host.h"

enum {
	MOST = WEIR_TARGET_NAMESPACES_MAX,
	LOG_CHANGED = 0x04,
	KEEP = 1 << 15,
	PAGE = 4096,
	SHUTDOWN_NORMAL = 1 << 14, /* of CC */
	TRIES = 1000,
	PARTS = 6,
	ROUNDS = 20,
	LEAST_BYTES = 16, /* that malloc() gives */
	MAP_SLACK = 64 << 20,
};

static struct weir_target *target;
static struct host admin, queue;
static struct weir_target_namespace_options spaces[MOST];
static struct weir_target_subsystem_options subsystem = { .nqn = HOST_SUBSYSTEM,
							  .namespaces = spaces,
							  .namespace_count = MOST };
static const char *const listen_at = "tcp://127.0.0.1:0";
static const struct weir_target_options options = { .size = sizeof(options),
						    .listen = &listen_at,
						    .listen_count = 1,
						    .subsystems = &subsystem,
						    .subsystem_count = 1 };

/* Some of either half of 64 bits, and of those the first and the last. */
static const u32 some[] = { 1, 3, 32, 33, 35, MOST };

enum { SOME = sizeof(some) / sizeof(some[0]) };

static bool is_some(u32 nsid)
{
	for (u32 i = 0; i < SOME; i++)
		if (some[i] == nsid)
			return true;
	return false;
}

static int serve(void **state)
{
	(void)state;
	for (u32 i = 0; i < MOST; i++)
		spaces[i] = (struct weir_target_namespace_options){ .uri = "virt:64K?block=512" };
	if (weir_target_create(&options, &target) != 0)
		return -1;
	host_stepped = target;
	admin.socket = queue.socket = -1;
	return 0;
}

static int end(void **state)
{
	(void)state;
	host_stepped = NULL;
	close(queue.socket), close(admin.socket);
	weir_target_destroy(target);
	return 0;
}

static void get_log(u32 log, u32 bytes)
{
	struct nvme_sqe sqe = host_command(&admin, NVME_ADMIN_GET_LOG_PAGE, NVME_NSID_BROADCAST);

	sqe.cdw10 = log | (bytes / 4 - 1) << 16;
	assert_int_equal(host_take(&admin, sqe, bytes), 0);
}

/* @list has @some of them, or all others, from number @from on, and zeros behind. */
static void check_list(const u8 *bytes, u32 room, bool has_some, u32 from)
{
	static u32 list[PAGE / 4];
	u32 count = 0;

	memcpy(list, bytes, (size_t)room * 4);
	for (u32 nsid = from; nsid <= MOST; nsid++)
		if (is_some(nsid) == has_some)
			assert_int_equal(list[count++], nsid);
	for (; count < room; count++)
		assert_int_equal(list[count], 0);
}

static void test_namespaces_that_change_are_listed(void **state)
{
	struct nvme_ana_group group;
	struct nvme_sqe sqe;

	(void)state;
	host_queue(&queue, target, host_admin(&admin, target, 0), 1, 0, 0);
	for (u32 i = 0; i < SOME; i++)
		spaces[some[i] - 1].detached = true;
	assert_int_equal(weir_target_reload(target, &options), 0);
	for (unsigned keeps = 3; keeps-- > 0;) {
		get_log(LOG_CHANGED | (keeps ? KEEP : 0), PAGE);
		check_list(admin.data, PAGE / 4, true, 1);
	}
	get_log(LOG_CHANGED, PAGE);
	for (u32 i = 0; i < PAGE; i++)
		assert_int_equal(admin.data[i], 0);
	for (u32 from = 0; from < MOST; from += 17) {
		sqe = host_command(&admin, NVME_ADMIN_IDENTIFY, from);
		sqe.cdw10 = NVME_CNS_ACTIVE_NAMESPACES;
		assert_int_equal(host_take(&admin, sqe, PAGE), 0);
		check_list(admin.data, PAGE / 4, false, from + 1);
	}
	get_log(NVME_LOG_ANA, WEIR_PAGE_ANA_BYTES);
	memcpy(&group, admin.data + sizeof(struct nvme_ana_log), sizeof(group));
	assert_int_equal(group.nsids, MOST - SOME);
	check_list(admin.data + sizeof(struct nvme_ana_log) + sizeof(group), MOST, false, 1);
	for (u32 nsid = 1; nsid <= MOST; nsid++)
		assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, nsid, 0, 1), 512),
				 is_some(nsid) ? NVME_STATUS_INVALID_NAMESPACE | NVME_STATUS_DNR : 0);
}

/* How often a path's state has changed, in both places of its log. */
static u64 ana_changes(unsigned state)
{
	struct nvme_ana_group group;
	struct nvme_ana_log log;

	weir_target_set_ana(target, 0, state);
	get_log(NVME_LOG_ANA, WEIR_PAGE_ANA_BYTES);
	memcpy(&log, admin.data, sizeof(log));
	memcpy(&group, admin.data + sizeof(log), sizeof(group));
	assert_true(group.change == log.change);
	return log.change;
}

static void test_changes_of_states_are_counted(void **state)
{
	u64 before;

	(void)state;
	(void)host_admin(&admin, target, 0);
	before = ana_changes(NVME_ANA_OPTIMIZED);
	assert_true(ana_changes(NVME_ANA_NON_OPTIMIZED) == before + 1);
	assert_true(ana_changes(NVME_ANA_NON_OPTIMIZED) == before + 1);
	assert_true(ana_changes(NVME_ANA_CHANGE) == before + 2);
}

static u64 commands_of(u32 nsid)
{
	struct weir_virtual_stats stats;

	weir_virtual_stats(target->subsystems[0].namespaces[nsid - 1].core, &stats);
	return stats.commands;
}

static u64 csts(void)
{
	u64 value = 0;

	assert_int_equal(host_property(&admin, false, NVME_PROPERTY_CSTS, 0, 0, &value), 0);
	return value;
}

/* A shutdown flushes all that were written to, and no other; then nothing is served, before a reset. */
static void test_a_shutdown_flushes_what_was_written(void **state)
{
	const u64 enabled = NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16;
	static const u8 block[512] = { 1 };
	u32 tries = 0;

	(void)state;
	host_queue(&queue, target, host_admin(&admin, target, 0), 1, 0, 0);
	for (u32 i = 0; i < SOME; i++)
		assert_int_equal(host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, some[i], 0, 1), block,
					   512, true),
				 0);
	assert_int_equal(host_property(&admin, true, NVME_PROPERTY_CC, 0, enabled | SHUTDOWN_NORMAL, NULL),
			 0);
	while ((csts() & NVME_CSTS_SHUTDOWN_MASK) != NVME_CSTS_SHUTDOWN_DONE)
		assert_true(++tries < TRIES);
	for (u32 nsid = 1; nsid <= MOST; nsid++)
		assert_int_equal(commands_of(nsid), is_some(nsid) ? 2 : 0);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 1), 512),
			 NVME_STATUS_COMMAND_SEQUENCE | NVME_STATUS_DNR);
	assert_int_equal(host_property(&admin, true, NVME_PROPERTY_CC, 0, 0, NULL), 0);
	assert_int_equal(csts(), 0);
	assert_int_equal(host_property(&admin, true, NVME_PROPERTY_CC, 0, enabled, NULL), 0);
	assert_int_equal(csts(), NVME_CSTS_READY);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, MOST, 0, 1), 512), 0);
	assert_memory_equal(queue.data, block, 512);
}

/* A controller has failed with the last of its namespaces that hosts see. */
static void test_what_is_detached_keeps_no_controller_alive(void **state)
{
	const struct nvme_sqe flush = { .cdw0 = NVME_OPCODE_FLUSH, .nsid = 1 };
	u32 tries = 0;

	(void)state;
	spaces[0] = (struct weir_target_namespace_options){ .uri = "virt:64K?fault=fatal" };
	spaces[1].detached = true;
	subsystem.namespace_count = 2;
	weir_target_destroy(target);
	assert_int_equal(weir_target_create(&options, &target), 0);
	host_stepped = target;
	subsystem.namespace_count = MOST;
	host_queue(&queue, target, host_admin(&admin, target, 0), 1, 0, 0);
	assert_int_equal(csts(), NVME_CSTS_READY);
	host_capsule(&queue, &flush, NULL, 0);
	while (!(csts() & NVME_CSTS_FATAL))
		assert_true(++tries < TRIES);
}

/* Not one namespace or thread more than there may be, nor none; and engines get no namespace later. */
static void test_no_more_than_there_may_be(void **state)
{
	static struct weir_target_namespace_options more[MOST + 1];
	struct weir_target_subsystem_options too_many = { .nqn = HOST_SUBSYSTEM, .namespaces = more };
	struct weir_target_options others = { .size = sizeof(others),
					      .subsystems = &too_many,
					      .subsystem_count = 1 };
	struct weir_target *made;

	(void)state;
	for (u32 i = 0; i <= MOST; i++)
		more[i] = (struct weir_target_namespace_options){ .uri = i ? "virt:64K"
									   : "virt:2M?block=4096" };
	assert_int_equal(weir_target_create(&others, &made), -EINVAL);
	too_many.namespace_count = MOST + 1;
	assert_int_equal(weir_target_create(&others, &made), -EINVAL);
	too_many.namespace_count = 1;
	others.threads = WEIR_TARGET_THREADS_MAX + 1;
	assert_int_equal(weir_target_create(&others, &made), -EINVAL);
	others.threads = WEIR_TARGET_THREADS_MAX;
	assert_int_equal(weir_target_create(&others, &made), 0);
	weir_target_destroy(made);
	others.threads = 1;
	assert_int_equal(weir_target_create(&others, &made), 0);
	too_many.namespace_count = MOST + 1;
	assert_int_equal(weir_target_reload(made, &others), -EINVAL);
	assert_int_equal(target_namespaces(&made->subsystems[0]), 1);
	too_many.namespace_count = MOST;
	assert_int_equal(weir_target_reload(made, &others), 0);
	assert_int_equal(target_namespaces(&made->subsystems[0]), MOST);
	weir_target_destroy(made);
	too_many.namespace_count = too_many.engine = 1;
	assert_int_equal(weir_target_create(&others, &made), 0);
	too_many.namespace_count = 2;
	assert_int_equal(weir_target_reload(made, &others), -EBUSY);
	too_many.namespace_count = 1;
	too_many.engine = false;
	assert_int_equal(weir_target_reload(made, &others), -EBUSY);
	weir_target_destroy(made);
}

/* ---- what is left ---- */

static const char *const hosts[] = { HOST_NAME, "nqn.2026-11.org.example:another" };
static const struct weir_target_namespace_options small[2] = { { .uri = "virt:64K" }, { .uri = "virt:64K" } };
static struct weir_target_subsystem_options two[2] = {
	{ .nqn = HOST_SUBSYSTEM, .namespaces = small, .namespace_count = 1, .hosts = hosts, .host_count = 2 },
	{ .nqn = HOST_OTHER,
	  .namespaces = small,
	  .namespace_count = 2,
	  .hosts = hosts,
	  .host_count = 1,
	  .manager = HOST_NAME },
};
static const char *listens[2] = { "tcp://127.0.0.1:0", "tcp://127.0.0.1:0" };
static const struct weir_target_options both = { .size = sizeof(both),
						 .listen = listens,
						 .listen_count = 2,
						 .subsystems = two,
						 .subsystem_count = 2,
						 .threads = 2 };

/* A target that is there, and goes on with other options. */
static void come_and_go(void)
{
	struct weir_target *made;

	assert_int_equal(weir_target_create(&both, &made), 0);
	for (unsigned i = 0; i < 2; i++) {
		two[0].namespace_count = 2;
		two[0].host_count = 1 + i;
		assert_int_equal(weir_target_reload(made, &both), 0);
	}
	two[0].namespace_count = 1;
	weir_target_destroy(made);
}

/* One whose last address is that of another machine. */
static void listen_in_vain(void)
{
	struct weir_target *made;

	listens[1] = "tcp://192.0.2.1:4420";
	assert_true(weir_target_create(&both, &made) < 0);
	listens[1] = listens[0];
}

/* One whose last storage is not there, or whose manager or last host has no name. */
static void open_in_vain(void)
{
	static const struct weir_target_namespace_options bad[2] = { { .uri = "virt:64K" },
								     { .uri = "file:/no/such/file" } };
	static const char *const nobody[] = { HOST_NAME, "nobody" };
	const struct weir_target_subsystem_options good = two[1];
	struct weir_target *made;

	two[1].namespaces = bad;
	assert_true(weir_target_create(&both, &made) < 0);
	two[1] = good;
	two[1].manager = "nobody";
	assert_true(weir_target_create(&both, &made) < 0);
	two[1] = good;
	two[1].hosts = nobody;
	two[1].host_count = 2;
	assert_true(weir_target_create(&both, &made) < 0);
	two[1] = good;
}

/* A refused reload: of the last subsystem's last host, when all else is there. */
static void reload_in_vain(void)
{
	static const char *const nobody[] = { HOST_NAME, "nobody" };
	const struct weir_target_subsystem_options good = two[1];
	struct weir_target *made;

	assert_int_equal(weir_target_create(&both, &made), 0);
	two[0].namespace_count = 2;
	two[1].hosts = nobody;
	two[1].host_count = 2;
	assert_int_equal(weir_target_reload(made, &both), -EINVAL);
	assert_int_equal(target_namespaces(&made->subsystems[0]), 1);
	assert_int_equal(made->subsystems[1].hosts.count, 1);
	two[0].namespace_count = 1;
	two[1] = good;
	weir_target_destroy(made);
}

static void go(void (*way)(void), unsigned rounds)
{
	while (rounds--)
		way();
}

/* What is left grows with each part of the rounds, by something for each; libraries take what they like now
 * and then. */
static void test_nothing_of_a_target_is_left(void **state)
{
	void (*const ways[])(void) = { come_and_go, listen_in_vain, open_in_vain, reload_in_vain };

	(void)state;
	for (unsigned way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
		struct test_has before;
		u64 least = UINT64_MAX;

		go(ways[way], ROUNDS);
		before = test_has();
		for (unsigned part = 0; part < PARTS; part++) {
			u64 is, was = test_has().heap_bytes;

			go(ways[way], ROUNDS);
			is = test_has().heap_bytes;
			least = is < was ? 0 : is - was < least ? is - was : least;
		}
		test_keeps(before, MAP_SLACK);
		if (TEST_COUNTS_MEMORY && least >= ROUNDS * LEAST_BYTES)
			fail_msg("way %u leaves %llu bytes", way, (unsigned long long)least);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_namespaces_that_change_are_listed, serve, end),
		cmocka_unit_test_setup_teardown(test_changes_of_states_are_counted, serve, end),
		cmocka_unit_test_setup_teardown(test_a_shutdown_flushes_what_was_written, serve, end),
		cmocka_unit_test_setup_teardown(test_what_is_detached_keeps_no_controller_alive, serve, end),
		cmocka_unit_test(test_no_more_than_there_may_be),
		cmocka_unit_test(test_nothing_of_a_target_is_left),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("target_many", tests, NULL, NULL);
}
