/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_events_test.c: hosts are notified of ANA states and namespaces that change, once until they ask, and
 * find the change in the log.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../rig/leaks.h"
#include "target_host.h"

enum {
	DNR = 0x4000,
	LOG_CHANGED = 0x04,
	KEEP = 1 << 15,
	ANA_EVENT = 2 | 3 << 8 | 0x0c << 16,
	NAMESPACE_EVENT = 2 | 0x04 << 16,
	DISCOVERY_EVENT = 2 | 0xf0 << 8 | 0x70 << 16,
	OAES_BYTE = 92,
	ANA_BYTES = 16 + 32 + 4 * 3,
	BOTH = 1 << 8 | 1 << 11,
};

#define DISCOVERY (1u << 31)

static struct host first, second, queue;
static struct weir_target *target;
static struct weir_target_namespace_options spaces[3] = {
	{ .uri = "virt:1M?block=512" },
	{ .uri = "virt:2M?block=512", .detached = true },
	{ .uri = "virt:4M?block=512" },
};
static const char *hosts[] = { HOST_NAME };
static struct weir_target_subsystem_options subsystem = { .nqn = HOST_SUBSYSTEM,
							  .namespaces = spaces,
							  .namespace_count = 2 };
static const char *const listen_at[] = { "tcp://127.0.0.1:0", "tcp://127.0.0.1:0" };
static unsigned ana[] = { NVME_ANA_OPTIMIZED, NVME_ANA_NON_OPTIMIZED };
static const struct weir_target_options options = { .size = sizeof(options),
						    .listen = listen_at,
						    .ana = ana,
						    .listen_count = 2,
						    .subsystems = &subsystem,
						    .subsystem_count = 1,
						    .threads = 2 };

static int serve(void **state)
{
	(void)state;
	first.socket = second.socket = queue.socket = -1;
	ana[0] = NVME_ANA_OPTIMIZED;
	ana[1] = NVME_ANA_NON_OPTIMIZED;
	spaces[1].detached = true;
	subsystem.namespace_count = 2;
	subsystem.host_count = 0;
	return weir_target_create(&options, &target) != 0 || weir_target_start(target) != 0;
}

static const char *const listen_anywhere[] = { "tcp://0.0.0.0:0", "tcp://127.0.0.1:0", "tcp://[::]:0" };

/* Whether sockets of IPv6 take connections by IPv4, as this machine is set up. */
static bool takes_both(void)
{
	int file = socket(AF_INET6, SOCK_STREAM, 0), alone = 1;
	socklen_t bytes = sizeof(alone);
	bool both = file >= 0 && getsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &alone, &bytes) == 0 && !alone;

	close(file);
	return both;
}

/* At all addresses that there are. */
static int serve_anywhere(void **state)
{
	struct weir_target_options anywhere = options;

	(void)state;
	first.socket = second.socket = queue.socket = -1;
	spaces[1].detached = true;
	subsystem.namespace_count = 2;
	subsystem.host_count = 0;
	anywhere.listen = listen_anywhere;
	anywhere.ana = NULL;
	anywhere.listen_count = takes_both() ? 3 : 2;
	return weir_target_create(&anywhere, &target) != 0 || weir_target_start(target) != 0;
}

static int end(void **state)
{
	(void)state;
	close(first.socket);
	close(second.socket);
	close(queue.socket);
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
	return 0;
}

static void connect_to(struct host *host, size_t listener)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval limit = { .tv_sec = HOST_TIMEOUT_S };

	memset(host, 0, offsetof(struct host, data));
	host->rules.most_data = HOST_DATA_BYTES;
	to.sin_port = htons((uint16_t)atoi(strrchr(weir_target_address(target, listener), ':') + 1));
	host->socket = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(host->socket, (struct sockaddr *)&to, sizeof(to)), 0);
	setsockopt(host->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	host_hello(host, 0, 0);
}

static u16 admin_of(struct host *host, size_t listener, u32 events, const char *nqn)
{
	struct nvme_sqe sqe;
	u64 cntlid;

	connect_to(host, listener);
	assert_int_equal(host_connect(host, 0, 31, NVME_CNTLID_DYNAMIC, 0, nqn, HOST_NAME, &cntlid), 0);
	assert_int_equal(host_property(host, true, NVME_PROPERTY_CC, 0,
				       NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16, NULL),
			 0);
	sqe = host_command(host, NVME_ADMIN_SET_FEATURES, 0);
	sqe.cdw10 = 0x0b;
	sqe.cdw11 = events;
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 0);
	host_capsule(host, &sqe, NULL, 0);
	assert_int_equal(host_response(host, NULL), 0);
	return (u16)cntlid;
}

static u16 admin_at(struct host *host, size_t listener, u32 events)
{
	return admin_of(host, listener, events, HOST_SUBSYSTEM);
}

static void ask_for_event(struct host *host)
{
	struct nvme_sqe sqe = host_command(host, NVME_ADMIN_ASYNC_EVENT, 0);

	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 0);
	host_capsule(host, &sqe, NULL, 0);
}

static void get_log(struct host *host, u32 log, u32 bytes)
{
	struct nvme_sqe sqe = host_command(host, NVME_ADMIN_GET_LOG_PAGE, NVME_NSID_BROADCAST);

	sqe.cdw10 = log | (bytes / 4 - 1) << 16;
	assert_int_equal(host_take(host, sqe, bytes), 0);
}

/* The log of the path: one group, of @count namespaces. */
static void check_ana(struct host *host, u32 flags, unsigned state, u32 count)
{
	struct nvme_ana_group group;
	struct nvme_ana_log log;

	get_log(host, NVME_LOG_ANA | flags, ANA_BYTES);
	memcpy(&log, host->data, sizeof(log));
	memcpy(&group, host->data + sizeof(log), sizeof(group));
	assert_int_equal(log.groups, 1);
	assert_int_equal(group.group, 1);
	assert_int_equal(group.state, state);
	assert_int_equal(group.nsids, count);
}

static u32 event_of(struct host *host)
{
	u64 result;

	assert_int_equal(host_response(host, &result), 0);
	return (u32)result;
}

static void paths_have_states(void **state)
{
	struct nvme_sqe sqe;

	(void)state;
	admin_at(&first, 0, 0);
	admin_at(&second, 1, 0);
	check_ana(&first, 0, NVME_ANA_OPTIMIZED, 1);
	check_ana(&second, 0, NVME_ANA_NON_OPTIMIZED, 1);
	check_ana(&second, 1 << 8, NVME_ANA_NON_OPTIMIZED, 0);
	sqe = host_command(&first, NVME_ADMIN_IDENTIFY, 0);
	sqe.cdw10 = NVME_CNS_CONTROLLER;
	assert_int_equal(host_take(&first, sqe, 4096), 0);
	assert_true(first.data[NVME_ID_CTRL_CMIC] & NVME_CMIC_ANA);
	assert_int_equal(first.data[NVME_ID_CTRL_NANAGRPID], 1);
	assert_int_not_equal(first.data[NVME_ID_CTRL_ANATT], 0);
	sqe = host_command(&first, NVME_ADMIN_IDENTIFY, 1);
	assert_int_equal(host_take(&first, sqe, 4096), 0);
	assert_int_equal(first.data[92], 1);
}

/* Each state's status, on the path alone that has it. */
static void commands_follow_the_state(void **state)
{
	static const u32 statuses[][2] = { { NVME_ANA_INACCESSIBLE, 0x302 },
					   { NVME_ANA_PERSISTENT_LOSS, 0x301 },
					   { NVME_ANA_CHANGE, 0x303 },
					   { NVME_ANA_NON_OPTIMIZED, 0 } };
	u16 cntlid = admin_at(&first, 0, 0);

	(void)state;
	connect_to(&queue, 0);
	assert_int_equal(host_connect(&queue, 1, 31, cntlid, 0, HOST_SUBSYSTEM, HOST_NAME, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		weir_target_set_ana(target, 0, statuses[i][0]);
		assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 1), 512),
				 statuses[i][1]);
		weir_target_set_ana(target, 1, statuses[i][0]);
	}
}

static void a_host_is_notified_once_until_it_asks(void **state)
{
	(void)state;
	admin_at(&first, 0, BOTH);
	admin_at(&second, 1, BOTH);
	ask_for_event(&first);
	ask_for_event(&first);
	ask_for_event(&second);
	weir_target_set_ana(target, 0, NVME_ANA_INACCESSIBLE);
	assert_int_equal(event_of(&first), ANA_EVENT);
	weir_target_set_ana(target, 0, NVME_ANA_NON_OPTIMIZED); /* it has not asked yet */
	check_ana(&first, KEEP, NVME_ANA_NON_OPTIMIZED, 1);
	check_ana(&first, KEEP, NVME_ANA_NON_OPTIMIZED, 1);
	get_log(&first, NVME_LOG_ANA, ANA_BYTES);         /* now it has: of the second change */
	assert_int_equal(host_response(&first, NULL), 0); /* it is notified behind that */
	check_ana(&second, 0, NVME_ANA_NON_OPTIMIZED, 1); /* and the other host of nothing */
}

/* The first answer may come in the step of the server's thread in which it finds that something happened, the
 * second one comes behind that. */
static void let_it_be_noticed(struct host *host)
{
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(host_property(host, false, NVME_PROPERTY_CC, 0, 0, NULL), 0);
}

static void what_happened_before_is_kept_for_the_host(void **state)
{
	(void)state;
	admin_at(&first, 0, BOTH);
	weir_target_set_ana(target, 0, NVME_ANA_CHANGE);
	let_it_be_noticed(&first);
	ask_for_event(&first);
	assert_int_equal(event_of(&first), ANA_EVENT);
	check_ana(&first, 0, NVME_ANA_CHANGE, 1);
}

static void events_that_are_not_enabled_are_not_sent(void **state)
{
	(void)state;
	admin_at(&first, 0, 1 << 8);
	ask_for_event(&first);
	weir_target_set_ana(target, 0, NVME_ANA_CHANGE);
	let_it_be_noticed(&first);
	spaces[1].detached = false;
	ana[0] = NVME_ANA_CHANGE;
	ana[1] = NVME_ANA_PERSISTENT_LOSS;
	assert_int_equal(weir_target_reload(target, &options), 0);
	assert_int_equal(event_of(&first), NAMESPACE_EVENT);
	admin_at(&second, 1, 0);
	check_ana(&second, 0, NVME_ANA_PERSISTENT_LOSS, 2);
}

static void namespaces_come_and_go(void **state)
{
	struct nvme_sqe sqe;
	u32 list[4];

	(void)state;
	admin_at(&first, 0, BOTH);
	assert_int_equal(host_take(&first, host_command(&first, NVME_ADMIN_IDENTIFY, 2), 4096),
			 NVME_STATUS_INVALID_NAMESPACE | DNR);
	ask_for_event(&first);
	spaces[0].detached = true;
	spaces[1].detached = false;
	subsystem.namespace_count = 3;
	assert_int_equal(weir_target_reload(target, &options), 0);
	spaces[0].detached = false;
	assert_int_equal(event_of(&first), NAMESPACE_EVENT);
	get_log(&first, LOG_CHANGED, 4096);
	memcpy(list, first.data, sizeof(list));
	assert_memory_equal(list, ((u32[4]){ 1, 2, 3, 0 }), sizeof(list));
	get_log(&first, LOG_CHANGED, 4096);
	assert_int_equal(first.data[0], 0);
	sqe = host_command(&first, NVME_ADMIN_IDENTIFY, 0);
	sqe.cdw10 = NVME_CNS_ACTIVE_NAMESPACES;
	assert_int_equal(host_take(&first, sqe, 4096), 0);
	memcpy(list, first.data, sizeof(list));
	assert_memory_equal(list, ((u32[4]){ 2, 3, 0, 0 }), sizeof(list));
	assert_int_equal(host_take(&first, host_command(&first, NVME_ADMIN_IDENTIFY, 3), 4096), 0);
	assert_int_equal(first.data[1], 0x20); /* 8192 blocks */
}

/* Commands reach a namespace that came while the target served. */
static void a_namespace_that_came_serves(void **state)
{
	u8 bytes[512];
	u16 cntlid;

	(void)state;
	subsystem.namespace_count = 3;
	assert_int_equal(weir_target_reload(target, &options), 0);
	cntlid = admin_at(&first, 0, 0);
	connect_to(&queue, 0);
	assert_int_equal(host_connect(&queue, 1, 31, cntlid, 0, HOST_SUBSYSTEM, HOST_NAME, NULL), 0);
	memset(bytes, 0x5a, sizeof(bytes));
	assert_int_equal(host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, 3, 8191, 1), bytes, 512, true),
			 0);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 3, 8191, 1), 512), 0);
	assert_memory_equal(queue.data, bytes, 512);
}

static void whoever_may_connect_changes(void **state)
{
	struct weir_target_stats stats;

	(void)state;
	hosts[0] = "nqn.2026-11.org.example:another";
	subsystem.hosts = hosts;
	subsystem.host_count = 1;
	assert_int_equal(weir_target_reload(target, &options), 0);
	connect_to(&first, 0);
	assert_int_equal(
		host_connect(&first, 0, 31, NVME_CNTLID_DYNAMIC, 0, HOST_SUBSYSTEM, HOST_NAME, NULL) & ~DNR,
		NVME_STATUS_CONNECT_INVALID_HOST);
	weir_target_stats(target, &stats);
	assert_int_equal(stats.refused, 1);
	hosts[0] = HOST_NAME;
	assert_int_equal(weir_target_reload(target, &options), 0);
	admin_at(&second, 0, 0);
	weir_target_stats(target, &stats);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.accepted, 2);
}

/* By its generation a host sees that it has to read the log again. */
static uint64_t discovery_generation(uint64_t *entries)
{
	struct nvme_discovery_log log;
	struct nvme_sqe sqe;
	u64 cntlid;

	connect_to(&second, 0);
	assert_int_equal(
		host_connect(&second, 0, 31, NVME_CNTLID_DYNAMIC, 0, NVME_DISCOVERY_NQN, HOST_NAME, &cntlid),
		0);
	assert_int_equal(host_property(&second, true, NVME_PROPERTY_CC, 0, NVME_CC_ENABLE, NULL), 0);
	sqe = host_command(&second, NVME_ADMIN_GET_LOG_PAGE, 0);
	sqe.cdw10 = NVME_LOG_DISCOVERY | (sizeof(log) / 4 - 1) << 16;
	assert_int_equal(host_take(&second, sqe, sizeof(log)), 0);
	memcpy(&log, second.data, sizeof(log));
	close(second.socket);
	second.socket = -1;
	*entries = log.numrec;
	return log.genctr;
}

static void discovery_has_another_generation(void **state)
{
	uint64_t before, entries;

	(void)state;
	before = discovery_generation(&entries);
	assert_int_equal(entries, 2);
	hosts[0] = "nqn.2026-11.org.example:another";
	subsystem.hosts = hosts;
	subsystem.host_count = 1;
	assert_int_equal(weir_target_reload(target, &options), 0);
	hosts[0] = HOST_NAME;
	assert_int_not_equal(discovery_generation(&entries), before);
	assert_int_equal(entries, 0);
}

/* @text, padded with blanks. */
static void check_field(const char *field, size_t bytes, const char *text)
{
	assert_memory_equal(field, text, strlen(text));
	for (size_t i = strlen(text); i < bytes; i++)
		assert_int_equal(field[i], ' ');
}

/* A listener at any address is where the host reached the target, whatever family its socket has. */
static void a_listener_anywhere_is_where_the_host_is(void **state)
{
	enum { ENTRY = sizeof(struct nvme_discovery_entry), MOST = 4 * ENTRY, AT = 1600, PART = 800 };
	static _Alignas(8) u8 log[MOST];
	struct nvme_discovery_log head;
	struct nvme_sqe sqe;

	(void)state;
	for (size_t listener = 0; listener < 3; listener++) {
		if (!*weir_target_address(target, listener))
			break; /* this machine has none of IPv6 */
		admin_of(&first, listener, 0, NVME_DISCOVERY_NQN);
		get_log(&first, NVME_LOG_DISCOVERY, MOST);
		memcpy(log, first.data, MOST);
		memcpy(&head, log, sizeof(head));
		assert_in_range(head.numrec, 2, 3);
		for (size_t i = 0; i < head.numrec; i++) {
			const struct nvme_discovery_entry *entry = (const void *)(log + (i + 1) * ENTRY);

			assert_int_equal(entry->trtype, NVME_TRTYPE_TCP);
			assert_int_equal(entry->subtype, NVME_SUBTYPE_NVM);
			assert_int_equal(entry->portid, i);
			assert_int_equal(entry->cntlid, NVME_CNTLID_DYNAMIC);
			assert_int_equal(entry->adrfam, NVME_ADRFAM_IPV4);
			check_field(entry->traddr, sizeof(entry->traddr), "127.0.0.1");
			check_field(entry->trsvcid, sizeof(entry->trsvcid),
				    strrchr(weir_target_address(target, i), ':') + 1);
			assert_string_equal(entry->subnqn, HOST_SUBSYSTEM);
		}
		sqe = host_command(&first, NVME_ADMIN_GET_LOG_PAGE, 0);
		sqe.cdw10 = NVME_LOG_DISCOVERY | (PART / 4 - 1) << 16;
		sqe.cdw12 = AT;
		assert_int_equal(host_take(&first, sqe, PART), 0);
		assert_memory_equal(first.data, log + AT, PART);
		close(first.socket);
		first.socket = -1;
	}
}

/* A reload is an event of the discovery subsystem's hosts, and of no other's. */
static void discovery_notifies_of_a_reload(void **state)
{
	struct nvme_sqe sqe;

	(void)state;
	admin_of(&first, 0, DISCOVERY, NVME_DISCOVERY_NQN);
	admin_at(&second, 0, DISCOVERY | BOTH);
	sqe = host_command(&first, NVME_ADMIN_IDENTIFY, 0);
	sqe.cdw10 = NVME_CNS_CONTROLLER;
	assert_int_equal(host_take(&first, sqe, 4096), 0);
	assert_int_equal(first.data[OAES_BYTE + 3], DISCOVERY >> 24); /* it says that it can */
	ask_for_event(&first);
	ask_for_event(&first);
	ask_for_event(&second);
	assert_int_equal(weir_target_reload(target, &options), 0);
	assert_int_equal(event_of(&first), DISCOVERY_EVENT);
	assert_int_equal(weir_target_reload(target, &options), 0); /* it has not read the log yet */
	get_log(&first, NVME_LOG_DISCOVERY, 1024);
	assert_int_equal(host_response(&first, NULL), 0); /* now it has: of the second one, behind that */
	check_ana(&second, 0, NVME_ANA_OPTIMIZED, 1);     /* and the other host of nothing */
}

/* Whatever cannot change refuses all of it. */
static void what_cannot_change_changes_nothing(void **state)
{
	struct weir_target_options other = options;
	const char *uri = spaces[0].uri;

	(void)state;
	ana[0] = NVME_ANA_INACCESSIBLE;
	spaces[0].uri = "virt:8M";
	assert_int_equal(weir_target_reload(target, &options), -EBUSY);
	spaces[0].uri = uri;
	spaces[0].read_only = true;
	assert_int_equal(weir_target_reload(target, &options), -EBUSY);
	spaces[0].read_only = false;
	subsystem.namespace_count = 1;
	assert_int_equal(weir_target_reload(target, &options), -EBUSY);
	subsystem.namespace_count = 3;
	spaces[2].uri = "file:/no/such/file";
	assert_int_not_equal(weir_target_reload(target, &options), 0);
	spaces[2].uri = "virt:4M?block=512&mdts=8K";
	assert_int_equal(weir_target_reload(target, &options), -EBUSY);
	spaces[2].uri = "virt:4M?block=512";
	subsystem.namespace_count = 2;
	other.listen_count = 1;
	assert_int_equal(weir_target_reload(target, &other), -EBUSY);
	other = options;
	other.threads = 1;
	assert_int_equal(weir_target_reload(target, &other), -EBUSY);
	other = options;
	other.queues = 65;
	assert_int_equal(weir_target_reload(target, &other), -EBUSY);
	spaces[1].read_only = true;
	assert_int_equal(weir_target_reload(target, &options), -EBUSY);
	spaces[1].read_only = false;
	other = options;
	other.subsystem_count = 0;
	assert_int_equal(weir_target_reload(target, &other), -EBUSY);
	admin_at(&first, 0, 0);
	check_ana(&first, 0, NVME_ANA_OPTIMIZED, 1);
}

/* A storage that a refused reload had opened already is closed again. */
static void what_was_opened_in_vain_is_closed(void **state)
{
	char path[] = "/tmp/weir_target_events_XXXXXX", uri[100];
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, 1 << 20), 0);
	snprintf(uri, sizeof(uri), "file:%s?block=512&mdts=8K", path);
	subsystem.namespace_count = 3;
	spaces[2].uri = uri;
	for (unsigned i = 0; i < 2; i++) {
		unsigned before = test_files();

		assert_int_equal(weir_target_reload(target, &options), -EBUSY);
		assert_true(i == 0 || test_files() == before);
	}
	spaces[2].uri = "virt:4M?block=512";
	close(file);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(paths_have_states, serve, end),
		cmocka_unit_test_setup_teardown(commands_follow_the_state, serve, end),
		cmocka_unit_test_setup_teardown(a_host_is_notified_once_until_it_asks, serve, end),
		cmocka_unit_test_setup_teardown(what_happened_before_is_kept_for_the_host, serve, end),
		cmocka_unit_test_setup_teardown(events_that_are_not_enabled_are_not_sent, serve, end),
		cmocka_unit_test_setup_teardown(namespaces_come_and_go, serve, end),
		cmocka_unit_test_setup_teardown(a_namespace_that_came_serves, serve, end),
		cmocka_unit_test_setup_teardown(whoever_may_connect_changes, serve, end),
		cmocka_unit_test_setup_teardown(discovery_has_another_generation, serve, end),
		cmocka_unit_test_setup_teardown(a_listener_anywhere_is_where_the_host_is, serve_anywhere,
						end),
		cmocka_unit_test_setup_teardown(discovery_notifies_of_a_reload, serve, end),
		cmocka_unit_test_setup_teardown(what_cannot_change_changes_nothing, serve, end),
		cmocka_unit_test_setup_teardown(what_was_opened_in_vain_is_closed, serve, end),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
