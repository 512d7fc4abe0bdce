/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_commands_test.c: commands of the target that a host other than weir's sends: features, Abort,
 * Disconnect, properties, Connect with fields that are none; and a target without descriptors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include "target_host.h"
#include "target/parts.h"

#define DNR     NVME_STATUS_DNR
#define INVALID (NVME_STATUS_INVALID_FIELD | DNR)

enum {
	FEATURE_TEMPERATURE = 4,
	ENTRIES = 32,
	SHORT_MS = 200,
	LAPS = 2,
	VERSION = 8,
	MOST_FILES = 4096,
	CONNECTS = 3,
	STEPS = 1000,
	STEP_MS = 10
};

static struct weir_target *target;
static struct host admin, queue, other;

static int set_up(void **state)
{
	(void)state;
	target = host_target(1, NULL);
	return weir_target_start(target);
}

static int tear_down(void **state)
{
	(void)state;
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
	return 0;
}

static u32 feature(struct host *host, u8 opcode, u32 cdw10, u32 value, u64 *result)
{
	struct nvme_sqe sqe = host_command(host, opcode, 0);

	sqe.cdw10 = cdw10;
	sqe.cdw11 = value;
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 0);
	host_capsule(host, &sqe, NULL, 0);
	return host_response(host, result);
}

static u32 set(u32 cdw10, u32 value)
{
	return feature(&admin, NVME_ADMIN_SET_FEATURES, cdw10, value, NULL);
}

static u64 get(u32 cdw10)
{
	u64 result = 0;

	assert_int_equal(feature(&admin, NVME_ADMIN_GET_FEATURES, cdw10, 0, &result), 0);
	return result;
}

static void features_are_kept(void **state)
{
	static const u8 unknown[] = { 0, 0x03, 0x0c, 0x0d, 0x0e, 0xff };
	u64 result;

	(void)state;
	(void)host_admin(&admin, target, 0);
	assert_int_equal(get(NVME_FEATURE_KEEP_ALIVE_TIMER), 60000); /* as Connect said */
	assert_int_equal(set(NVME_FEATURE_KEEP_ALIVE_TIMER, 30000), 0);
	assert_int_equal(set(NVME_FEATURE_KEEP_ALIVE_TIMER, TARGET_KATO_MS_MAX + 1),
			 NVME_STATUS_KEEP_ALIVE_INVALID | DNR);
	assert_int_equal(get(NVME_FEATURE_KEEP_ALIVE_TIMER), 30000);
	assert_int_equal(set(FEATURE_TEMPERATURE, 0x157), 0);
	assert_int_equal(set(1u << 31 | FEATURE_TEMPERATURE, 0x158), NVME_STATUS_FEATURE_NOT_SAVEABLE | DNR);
	assert_int_equal(get(FEATURE_TEMPERATURE), 0x157);
	assert_int_equal(set(NVME_FEATURE_VOLATILE_WRITE_CACHE, 1), 0);
	assert_int_equal(set(NVME_FEATURE_VOLATILE_WRITE_CACHE, 0), NVME_STATUS(1, 0x0e) | DNR);
	assert_int_equal(get(NVME_FEATURE_VOLATILE_WRITE_CACHE), 1);
	for (size_t i = 0; i < sizeof(unknown); i++) {
		assert_int_equal(set(unknown[i], 1), INVALID);
		assert_int_equal(feature(&admin, NVME_ADMIN_GET_FEATURES, unknown[i], 0, &result), INVALID);
	}
	close(admin.socket);
}

/* As many queues as were agreed on, and no other. */
static void queues_are_counted(void **state)
{
	u16 cntlid = host_admin(&admin, target, 0);
	u64 result;

	(void)state;
	assert_int_equal(set(NVME_FEATURE_NUMBER_OF_QUEUES, 0xffff0000), INVALID);
	assert_int_equal(set(NVME_FEATURE_NUMBER_OF_QUEUES, 0x0000ffff), INVALID);
	assert_int_equal(
		feature(&admin, NVME_ADMIN_SET_FEATURES, NVME_FEATURE_NUMBER_OF_QUEUES, 0x00020001, &result),
		0);
	assert_int_equal(result, 0x00020002);
	assert_int_equal(get(NVME_FEATURE_NUMBER_OF_QUEUES), 0x00020002);
	host_queue(&queue, target, cntlid, 3, 0, 0);
	host_adopt(&other, target);
	host_hello(&other, 0, 0);
	assert_int_equal(host_connect(&other, 4, 31, cntlid, 0, HOST_SUBSYSTEM, HOST_NAME, &result),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	assert_int_equal(result, offsetof(struct nvme_fabrics_connect, qid));
	assert_int_equal(
		feature(&admin, NVME_ADMIN_SET_FEATURES, NVME_FEATURE_NUMBER_OF_QUEUES, 0xfffe0000, &result),
		0);
	assert_int_equal(result, 0x003f003f); /* the target's own most */
	close(other.socket);
	close(queue.socket);
	close(admin.socket);
}

/* A discovery controller has few of them. */
static void discovery_has_few_features(void **state)
{
	(void)state;
	host_adopt(&admin, target);
	host_hello(&admin, 0, 0);
	assert_int_equal(
		host_connect(&admin, 0, 31, NVME_CNTLID_DYNAMIC, 0, NVME_DISCOVERY_NQN, HOST_NAME, NULL), 0);
	assert_int_equal(host_property(&admin, true, NVME_PROPERTY_CC, 0, NVME_CC_ENABLE, NULL), 0);
	assert_int_equal(set(NVME_FEATURE_KEEP_ALIVE_TIMER, 30000), 0);
	assert_int_equal(set(FEATURE_TEMPERATURE, 1), INVALID);
	assert_int_equal(set(NVME_FEATURE_NUMBER_OF_QUEUES, 0), INVALID);
	close(admin.socket);
}

static u16 request_event(void)
{
	struct nvme_sqe sqe = host_command(&admin, NVME_ADMIN_ASYNC_EVENT, 0);

	host_capsule(&admin, &sqe, NULL, 0);
	return (u16)(sqe.cdw0 >> 16);
}

static u16 cid_of_response(void)
{
	struct nvme_cqe cqe;

	memcpy(&cqe, admin.header.resp.cqe, sizeof(cqe));
	return (u16)cqe.dw3;
}

static u64 abort_one(u16 sqid, u16 cid, u16 *ended)
{
	struct nvme_sqe sqe = host_command(&admin, NVME_ADMIN_ABORT, 0);
	u64 result = 7;

	sqe.cdw10 = sqid | (u32)cid << 16;
	host_capsule(&admin, &sqe, NULL, 0);
	*ended = 0xffff;
	for (;;) {
		u32 status = host_response(&admin, &result);

		if (cid_of_response() == sqe.cdw0 >> 16) {
			assert_int_equal(status, 0);
			return result;
		}
		assert_int_equal(status, NVME_STATUS_ABORT_REQUESTED);
		*ended = cid_of_response();
	}
}

/* Of the requests for events that one which Abort names, and no more requests than there may be. */
static void event_requests_are_aborted(void **state)
{
	u16 cids[WEIR_PAGE_AERS + 1], ended;

	(void)state;
	(void)host_admin(&admin, target, 0);
	for (unsigned i = 0; i <= WEIR_PAGE_AERS; i++)
		cids[i] = request_event();
	assert_int_equal(host_response(&admin, NULL), NVME_STATUS_ASYNC_EVENT_LIMIT);
	assert_int_equal(cid_of_response(), cids[WEIR_PAGE_AERS]);
	assert_int_equal(abort_one(0, 0x7777, &ended), 1);
	assert_int_equal(ended, 0xffff);
	assert_int_equal(abort_one(1, cids[0], &ended), 1); /* of another queue */
	assert_int_equal(ended, 0xffff);
	assert_int_equal(abort_one(0, cids[1], &ended), 0);
	assert_int_equal(ended, cids[1]);
	assert_int_equal(abort_one(0, cids[1], &ended), 1); /* it has ended */
	assert_int_equal(ended, 0xffff);
	cids[1] = request_event(); /* there is room for one */
	assert_int_equal(abort_one(0, cids[1], &ended), 0);
	assert_int_equal(ended, cids[1]);
	close(admin.socket);
}

static void ask_to_disconnect(struct host *host)
{
	struct nvme_fabrics_property command = { .opcode = NVME_OPCODE_FABRICS,
						 .psdt = 0x40,
						 .cid = host->next_cid++,
						 .fctype = NVME_FCTYPE_DISCONNECT };
	struct nvme_sqe sqe;

	memcpy(&sqe, &command, sizeof(sqe));
	host_capsule(host, &sqe, NULL, 0);
}

static u32 disconnect(struct host *host)
{
	ask_to_disconnect(host);
	return host_response(host, NULL);
}

/* An I/O queue ends alone, and may come again; the admin queue stays. */
static void a_queue_disconnects(void **state)
{
	u16 cntlid = host_admin(&admin, target, 0);

	(void)state;
	for (unsigned i = 0; i < CONNECTS; i++) {
		host_queue(&queue, target, cntlid, 1, 0, 0);
		assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 1), 512), 0);
		assert_int_equal(disconnect(&queue), 0);
		assert_false(host_receive(&queue));
		close(queue.socket);
		assert_int_equal(disconnect(&admin), NVME_STATUS_INVALID_QUEUE_TYPE | DNR);
	}
	close(admin.socket);
}

/* What runs is answered first, also where that takes longer than a connection lingers. */
static void a_disconnect_is_answered_last(void **state)
{
	struct weir_target *late = host_target_of(1, NULL, "virt:1M?block=4096&lat_us=1300000");
	struct nvme_sqe sqe;

	(void)state;
	assert_true(1300 > TARGET_LINGER_MS);
	assert_int_equal(weir_target_start(late), 0);
	host_queue(&queue, late, host_admin(&admin, late, 0), 1, 0, 0);
	sqe = host_io(&queue, NVME_OPCODE_READ, 2, 0, 1);
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 4096);
	host_capsule(&queue, &sqe, NULL, 0);
	ask_to_disconnect(&queue);
	assert_true(host_receive(&queue));
	assert_int_equal(queue.header.common.type, NVME_TCP_C2H_DATA);
	assert_int_equal(host_response(&queue, NULL), 0); /* of the read */
	assert_int_equal(host_response(&queue, NULL), 0);
	assert_false(host_receive(&queue));
	close(queue.socket);
	close(admin.socket);
	weir_target_stop(late, 10000);
	weir_target_destroy(late);
}

static void properties_are_few(void **state)
{
	const u64 enable = NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16;
	u64 value;
	u16 cntlid = host_admin(&admin, target, 0);

	(void)state;
	assert_int_equal(host_property(&admin, false, NVME_PROPERTY_CAP, 0, 0, &value), INVALID);
	assert_int_equal(host_property(&admin, false, NVME_PROPERTY_CC, 1, 0, &value), INVALID);
	assert_int_equal(host_property(&admin, false, NVME_PROPERTY_CSTS, 1, 0, &value), INVALID);
	assert_int_equal(host_property(&admin, false, VERSION, 1, 0, &value), INVALID);
	assert_int_equal(host_property(&admin, false, VERSION, 0, 0, &value), 0);
	assert_int_equal(host_property(&admin, false, 0x20, 0, 0, &value), INVALID);
	assert_int_equal(host_property(&admin, true, NVME_PROPERTY_CSTS, 0, 0, NULL), INVALID);
	assert_int_equal(host_property(&admin, true, NVME_PROPERTY_CC, 1, 0, NULL), INVALID);
	assert_int_equal(host_property(&admin, false, NVME_PROPERTY_CC, 0, 0, &value), 0);
	assert_int_equal(value, enable);
	assert_int_equal(host_property(&admin, true, NVME_PROPERTY_CC, 0, NVME_CC_ENABLE, NULL), 0);
	assert_int_equal(host_property(&admin, false, NVME_PROPERTY_CSTS, 0, 0, &value), 0);
	assert_int_equal(value, NVME_CSTS_FATAL); /* entries of no size */
	host_adopt(&queue, target);
	host_hello(&queue, 0, 0);
	assert_int_equal(host_connect(&queue, 1, 31, cntlid, 0, HOST_SUBSYSTEM, HOST_NAME, NULL),
			 NVME_STATUS_COMMAND_SEQUENCE | DNR); /* it is not ready */
	assert_int_equal(host_property(&admin, true, NVME_PROPERTY_CC, 0, enable, NULL), 0);
	assert_int_equal(host_connect(&queue, 1, 31, cntlid, 0, HOST_SUBSYSTEM, HOST_NAME, NULL), 0);
	close(queue.socket);
	close(admin.socket);
}

/* Connect with @connect and @data, of which the first @bytes are sent. */
static u32 connect_with(struct nvme_fabrics_connect connect, const struct nvme_fabrics_connect_data *data,
			u32 bytes, u64 *result)
{
	struct nvme_sqe sqe;

	connect.opcode = NVME_OPCODE_FABRICS;
	connect.fctype = NVME_FCTYPE_CONNECT;
	connect.cid = other.next_cid++;
	memcpy(&sqe, &connect, sizeof(sqe));
	host_sgl(&sqe, NVME_SGL_DATA_BLOCK_OFFSET, bytes);
	host_capsule(&other, &sqe, data, bytes);
	return host_response(&other, result);
}

static void connects_say_what_is_wrong(void **state)
{
	struct nvme_fabrics_connect good = { .sqsize = 31, .kato = 1000 }, bad;
	struct nvme_fabrics_connect_data data = { .cntlid = NVME_CNTLID_DYNAMIC, .hostid = { 1, 2, 3 } },
					 wrong;
	u64 result;
	u16 cntlid = host_admin(&admin, target, 0);

	(void)state;
	strcpy(data.subnqn, HOST_SUBSYSTEM);
	strcpy(data.hostnqn, HOST_NAME);
	host_adopt(&other, target);
	host_hello(&other, 0, 0);
	bad = good;
	bad.recfmt = 1;
	assert_int_equal(connect_with(bad, &data, sizeof(data), &result),
			 NVME_STATUS_CONNECT_INCOMPATIBLE_FORMAT | DNR);
	bad = good;
	bad.kato = TARGET_KATO_MS_MAX + 1;
	assert_int_equal(connect_with(bad, &data, sizeof(data), &result),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	assert_int_equal(result, offsetof(struct nvme_fabrics_connect, kato));
	bad = good;
	bad.sqsize = 4 * TARGET_QUEUE_ENTRIES;
	assert_int_equal(connect_with(bad, &data, sizeof(data), &result),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	host_again(&other, target);
	wrong = data;
	memset(wrong.subnqn, 'n', sizeof(wrong.subnqn));
	assert_int_equal(connect_with(good, &wrong, sizeof(data), &result),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	assert_int_equal(result,
			 NVME_CONNECT_IATTR_DATA | offsetof(struct nvme_fabrics_connect_data, subnqn));
	wrong = data;
	wrong.hostnqn[0] = 0;
	assert_int_equal(connect_with(good, &wrong, sizeof(data), &result),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	assert_int_equal(result,
			 NVME_CONNECT_IATTR_DATA | offsetof(struct nvme_fabrics_connect_data, hostnqn));
	memset(wrong.hostnqn, 'n', NVME_NQN_LONGEST + 1); /* longer than a name may be */
	assert_int_equal(connect_with(good, &wrong, sizeof(data), &result),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	host_again(&other, target);
	assert_int_equal(connect_with(good, &data, 512, &result), NVME_STATUS_SGL_INVALID_LENGTH | DNR);
	wrong = data;
	wrong.cntlid = cntlid;
	wrong.hostid[0] = 9; /* of another host */
	bad = good;
	bad.qid = 1;
	assert_int_equal(connect_with(bad, &wrong, sizeof(data), &result),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	assert_int_equal(result,
			 NVME_CONNECT_IATTR_DATA | offsetof(struct nvme_fabrics_connect_data, hostid));
	assert_int_equal(connect_with(good, &data, sizeof(data), &result), 0);
	assert_int_equal(connect_with(good, &data, sizeof(data), &result),
			 NVME_STATUS_COMMAND_SEQUENCE | DNR); /* it is connected */
	close(other.socket);
	close(admin.socket);
}

/* A queue whose Connect was refused has one entry, as before: a host that sends two commands at once is
 * ended. */
static void a_refused_connect_leaves_one_entry(void **state)
{
	struct weir_target *stepped = host_target(1, NULL);
	struct nvme_sqe sqe;

	(void)state;
	host_stepped = stepped;
	host_adopt(&other, stepped);
	host_hello(&other, 0, 0);
	assert_int_equal(host_connect(&other, 0, 63, NVME_CNTLID_DYNAMIC, 0, "nqn.2026-11.org.example:none",
				      HOST_NAME, NULL),
			 NVME_STATUS_CONNECT_INVALID_PARAMETERS | DNR);
	for (unsigned i = 0; i < 2; i++) {
		sqe = host_io(&other, NVME_OPCODE_READ, 1, 0, 1);
		host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 512);
		host_capsule(&other, &sqe, NULL, 0);
	}
	assert_true(host_ended(&other, NVME_TCP_FES_SEQUENCE));
	host_stepped = NULL;
	close(other.socket);
	weir_target_destroy(stepped);
}

static u32 flush_all(void)
{
	struct nvme_sqe sqe = host_command(&queue, NVME_OPCODE_FLUSH, NVME_NSID_BROADCAST);

	host_capsule(&queue, &sqe, NULL, 0);
	return host_response(&queue, NULL);
}

/* Where there are two namespaces a Flush says which. */
static void a_flush_of_all(void **state)
{
	const struct weir_target_namespace_options space = { .uri = "virt:1M" };
	const struct weir_target_subsystem_options subsystem = { .nqn = HOST_SUBSYSTEM,
								 .namespaces = &space,
								 .namespace_count = 1 };
	struct weir_target_options options = {
		.size = sizeof(options), .subsystems = &subsystem, .subsystem_count = 1, .threads = 1
	};
	struct weir_target *two = target;
	struct nvme_sqe sqe;

	(void)state;
	host_queue(&queue, two, host_admin(&admin, two, 0), 1, 0, 0);
	assert_int_equal(flush_all(), NVME_STATUS_INVALID_NAMESPACE | DNR);
	close(queue.socket);
	sqe = host_command(&admin, NVME_ADMIN_IDENTIFY, 0xfffffffe);
	sqe.cdw10 = NVME_CNS_ACTIVE_NAMESPACES;
	assert_int_equal(host_take(&admin, sqe, 4096), NVME_STATUS_INVALID_NAMESPACE | DNR);
	close(admin.socket);
	assert_int_equal(weir_target_create(&options, &target), 0);
	assert_int_equal(weir_target_start(target), 0);
	host_queue(&queue, target, host_admin(&admin, target, 0), 1, 0, 0);
	assert_int_equal(flush_all(), 0);
	assert_int_equal(
		host_take(&queue, host_io(&queue, NVME_OPCODE_READ, NVME_NSID_BROADCAST, 0, 1), 4096),
		NVME_STATUS_INVALID_NAMESPACE | DNR);
	close(queue.socket);
	close(admin.socket);
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
	target = two;
}

/* All that there are but @left. Return: how many. */
static int take_descriptors(int *files, int left)
{
	int count = 0;

	while (count < MOST_FILES && (files[count] = dup(0)) >= 0)
		count++;
	assert_in_range(count, left, MOST_FILES - 1);
	while (left--)
		close(files[--count]);
	return count;
}

/* A host's socket, of whose own descriptor the target has nothing. */
/* A host that is silent for longer than it said it would be is cut off, with its queues; one that said
 * nothing of that is not, however long it is silent. */
static void a_silent_host_is_cut_off(void **state)
{
	u64 csts;

	(void)state;
	(void)host_admin(&other, target, 0);
	assert_int_equal(feature(&other, NVME_ADMIN_SET_FEATURES, NVME_FEATURE_KEEP_ALIVE_TIMER, 0, NULL), 0);
	host_queue(&queue, target, host_admin(&admin, target, 0), 1, 0, 0);
	assert_int_equal(set(NVME_FEATURE_KEEP_ALIVE_TIMER, SHORT_MS), 0);
	assert_false(host_receive(&admin));
	assert_false(host_receive(&queue));
	assert_int_equal(host_property(&other, false, NVME_PROPERTY_CSTS, 0, 0, &csts), 0);
	close(admin.socket), close(queue.socket), close(other.socket);
}

/* Until its queue goes on, what a host sends waits there; it goes on in the step that ends the association.
 */
static void what_waits_ends_with_its_association(void **state)
{
	struct weir_target *stepped = host_target_of(1, NULL, "virt:1M?block=512&fault=late:op=flush:us=1");
	struct virtual_queue *slow;
	struct weir_virtual_stats stats;
	static const u8 block[512];
	struct nvme_sqe sqe;

	(void)state;
	host_stepped = stepped;
	host_queue(&queue, stepped, host_admin(&admin, stepped, 0), 1, 0, 0);
	slow = &stepped->servers[0].connections->queue; /* of the last that came */
	assert_int_equal(slow->id, 1);
	slow->resume_ns = UINT64_MAX;
	sqe = host_io(&queue, NVME_OPCODE_WRITE, 2, 0, 1);
	host_sgl(&sqe, NVME_SGL_DATA_BLOCK_OFFSET, sizeof(block));
	host_capsule(&queue, &sqe, block, sizeof(block));
	for (unsigned i = 0; i < STEPS && !stepped->servers[0].waiting.first; i++)
		(void)weir_target_step(stepped, 0);
	assert_non_null(stepped->servers[0].waiting.first);
	slow->resume_ns = 1;
	close(admin.socket);
	for (unsigned i = 0; i < STEPS && stepped->servers[0].connections; i++)
		(void)weir_target_step(stepped, 0);
	weir_virtual_stats(stepped->subsystems[0].namespaces[1].core, &stats);
	assert_int_equal(stats.commands, 0);
	host_stepped = NULL;
	close(queue.socket);
	weir_target_destroy(stepped);
}

static u32 sqhd(const struct host *host)
{
	struct nvme_cqe cqe;

	memcpy(&cqe, host->header.resp.cqe, sizeof(cqe));
	return cqe.dw2 & 0xffff;
}

/* Each response says how far the target has come in the queue, unless the host does not want to know. */
static void responses_say_the_head_of_the_queue(void **state)
{
	static const u8 block[512];

	(void)state;
	for (unsigned flow = 0; flow < 2; flow++) {
		host_queue(&queue, target, host_admin(&admin, target, 0), 1, 0,
			   flow ? 0 : NVME_CATTR_SQ_FLOW_DISABLE);
		for (u32 n = 1; n <= LAPS * ENTRIES + 1; n++) {
			struct nvme_sqe sqe = host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 1);

			assert_int_equal(host_give(&queue, sqe, block, sizeof(block), true), 0);
			assert_int_equal(sqhd(&queue), flow ? (1 + n) % ENTRIES : 0xffff);
		}
		close(queue.socket), close(admin.socket);
	}
}

static void connect_to(const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((u16)atoi(strrchr(address, ':') + 1)) };

	other.socket = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(other.socket >= 0);
	assert_int_equal(connect(other.socket, (struct sockaddr *)&to, sizeof(to)), 0);
}

/* A target that has no descriptor for a host serves it when it has one. */
static void hosts_wait_for_descriptors(void **state)
{
	struct weir_target *stepped = host_target(1, "tcp://127.0.0.1:0");
	struct weir_target_stats stats = { .accepted = 0 };
	struct rlimit limit, few;
	static int files[MOST_FILES];
	int count;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	few.rlim_cur = few.rlim_cur < MOST_FILES / 2 ? few.rlim_cur : MOST_FILES / 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	count = take_descriptors(files, 1);
	connect_to(weir_target_address(stepped, 0));
	for (unsigned i = 0; i < STEPS; i++)
		(void)weir_target_step(stepped, 0);
	weir_target_stats(stepped, &stats);
	assert_int_equal(stats.accepted, 0);
	while (count)
		close(files[--count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (unsigned i = 0; i < STEPS && !stats.accepted; i++) {
		(void)weir_target_step(stepped, STEP_MS);
		weir_target_stats(stepped, &stats);
	}
	assert_int_equal(stats.accepted, 1);
	close(other.socket);
	weir_target_destroy(stepped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(features_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(queues_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(discovery_has_few_features, set_up, tear_down),
		cmocka_unit_test_setup_teardown(event_requests_are_aborted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_queue_disconnects, set_up, tear_down),
		cmocka_unit_test(a_disconnect_is_answered_last),
		cmocka_unit_test_setup_teardown(properties_are_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(connects_say_what_is_wrong, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_flush_of_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_silent_host_is_cut_off, set_up, tear_down),
		cmocka_unit_test_setup_teardown(responses_say_the_head_of_the_queue, set_up, tear_down),
		cmocka_unit_test(what_waits_ends_with_its_association),
		cmocka_unit_test(a_refused_connect_leaves_one_entry),
		cmocka_unit_test(hosts_wait_for_descriptors),
	};

	return cmocka_run_group_tests_name("target_commands", tests, NULL, NULL);
}
