/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_test.c: NVMe/RDMA, weir's at both ends, over verbs that are none (fake_verbs.h): what is said, what is
 * registered, and what becomes of connections that are refused or break.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "device/context.h"
#include "fake_verbs.h"
#include "first_address.h"
#include "kernels/block_copy.h"
#include "observe/publish.h"
#include "stepped_clock.h"
#include "storage/dma.h"
#include "target/target.h"
#include "transport/fabrics/discover.h"
#include "transport/fabrics/rdma_link.h"
#include "transport/fabrics/rdma_message.h"

#define NQN "nqn.2026-11.org.example:rdma"
/* With limits that do not pass on a busy machine. */
#define HOST                                                                                                 \
	"hostnqn=nqn.2026-11.org.example:me&hostid=11111111-2222-3333-4444-555555555555"                     \
	"&connect_ms=60000&keep_alive_ms=15000"

enum { BYTES = 1 << 20, ROUND = 64 << 10, DEPTH = 16, TRANSFER = 4096, ROUNDS = 16, QUEUE_ENTRIES = 128 };
/* Places of what a storage publishes (observe/publish.h). */
enum { CONNECTIONS = 0, RECONNECTS = 1, CARRIED = WEIR_NETWORK_SCALARS + WEIR_NETWORK_PATHS };

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static struct weir_context *context;
static struct weir_target *target;
static struct weir_storage *storage;
static unsigned char wrote[ROUND], found[ROUND];
static unsigned rounds;

static struct weir_target_namespace_options space = { .uri = "virt:1M?block=512" };
static const struct weir_target_subsystem_options subsystem = { .nqn = NQN,
								.namespaces = &space,
								.namespace_count = 1 };
static const char *const listen_at[] = { "rdma://127.0.0.1:0", "tcp://127.0.0.1:0" };
static const struct weir_target_options options = { .size = sizeof(options),
						    .listen = listen_at,
						    .listen_count = 2,
						    .subsystems = &subsystem,
						    .subsystem_count = 1,
						    .threads = 2 };

static int serve(void **state)
{
	(void)state;
	storage = NULL;
	memset(&fake_verbs, 0, sizeof(fake_verbs));
	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context));
	must(weir_target_create(&options, &target));
	must(weir_target_start(target));
	return 0;
}

/* All that was made is gone. */
static int end(void **state)
{
	(void)state;
	if (storage)
		(void)weir_storage_close(storage);
	weir_target_stop(target, 5000);
	weir_target_destroy(target);
	weir_context_close(context);
	return fake_verbs.live != 0;
}

static int try_open(const char *nqn, const char *keys)
{
	char uri[512];

	snprintf(uri, sizeof(uri), "nvmf:%s/%s?" HOST "%s", weir_target_address(target, 0), nqn, keys);
	return weir_storage_open(
		context, uri,
		WEIR_OPTIONS(storage, .queues = 2, .depth = DEPTH, .max_transfer_bytes = TRANSFER), &storage);
}

static void refused(const char *nqn, const char *keys, const char *sentence)
{
	assert_int_not_equal(try_open(nqn, keys), 0);
	if (!strstr(weir_last_error(), sentence))
		fail_msg("\"%s\" is not in: %s", sentence, weir_last_error());
}

static uint64_t value(unsigned at)
{
	const uint64_t *words = (const uint64_t *)storage->transport->network;

	return __atomic_load_n(&words[at], __ATOMIC_RELAXED);
}

/* Write a part, each time with other bytes, and read it again. */
static void round_trip(void)
{
	uint64_t offset = (uint64_t)(rounds % (BYTES / ROUND)) * ROUND;

	for (unsigned i = 0; i < ROUND; i++)
		wrote[i] = (unsigned char)(i / 7 + rounds * 31);
	must(weir_storage_write(storage, offset, wrote, ROUND));
	memset(found, 0x5a, ROUND);
	must(weir_storage_read(storage, offset, found, ROUND));
	assert_memory_equal(wrote, found, ROUND);
	rounds++;
}

/* Each call of a round trip allocates memory, which is registered once, and not for each of its 16 commands.
 */
static void data_moves_under_keys_made_once(void **state)
{
	unsigned registered;

	(void)state;
	must(try_open(NQN, ""));
	assert_non_null(strstr(storage->transport->ops->path(storage->transport), "NVMe/RDMA"));
	for (unsigned i = 0; i < 4 * ROUNDS; i++)
		round_trip();
	registered = fake_verbs.registrations;
	for (unsigned i = 0; i < ROUNDS; i++)
		round_trip();
	assert_true(fake_verbs.registrations - registered <= 4 * ROUNDS + DEPTH); /* two allocations a call */
	assert_int_equal(fake_verbs.bad_accesses, 0);
	assert_int_equal(value(RECONNECTS), 0);
}

/* One command of a lane, from or to memory that the test has registered. */
static void move(uint32_t opcode, void *data, uint32_t bytes)
{
	enum { LANES = 64, EVENT_BYTES = LANES * sizeof(struct weir_event) };
	uint32_t blocks = bytes >> storage->disk.block_log2;
	struct weir_block_copy_args args = { .disk = storage->disk,
					     .blocks = blocks,
					     .opcode = opcode,
					     .step = blocks,
					     .buffer = (uintptr_t)data };
	uint32_t result;
	void *host;

	must(weir_alloc_host(context, EVENT_BYTES + sizeof(result), &args.events, &host));
	args.result = args.events + EVENT_BYTES;
	must(weir_launch(context, "weir_block_copy", 1, LANES, &args, sizeof(args)));
	must(weir_sync(context));
	memcpy(&result, (char *)host + EVENT_BYTES, sizeof(result));
	assert_int_equal(result, 0);
	must(weir_free(context, args.events));
}

/* A command's data is in one piece, but was registered in two: neither's key is good for it all. */
static void data_of_two_registrations(void **state)
{
	enum { WHOLE = 16384, PART = 4096 };
	static const uint32_t firsts[] = { PART, WHOLE - PART };
	unsigned char *data = aligned_alloc(PART, WHOLE);
	char uri[512];

	(void)state;
	assert_non_null(data);
	snprintf(uri, sizeof(uri), "nvmf:%s/" NQN "?" HOST, weir_target_address(target, 0));
	must(weir_storage_open(
		context, uri, WEIR_OPTIONS(storage, .queues = 1, .depth = DEPTH, .max_transfer_bytes = WHOLE),
		&storage));
	for (unsigned i = 0; i < 2; i++) {
		must(weir_dma_map_add(context->dma, data, firsts[i]));
		must(weir_dma_map_add(context->dma, data + firsts[i], WHOLE - firsts[i]));
		for (unsigned at = 0; at < WHOLE; at++)
			data[at] = wrote[at] = (unsigned char)(at / 7 + at / PART + i + 1);
		move(NVME_OPCODE_WRITE, data, WHOLE);
		must(weir_storage_read(storage, 0, found, WHOLE));
		assert_memory_equal(found, wrote, WHOLE);
		memset(data, 0x5a, WHOLE);
		move(NVME_OPCODE_READ, data, WHOLE);
		assert_memory_equal(data, wrote, WHOLE);
		must(weir_dma_map_remove(context->dma, data));
		must(weir_dma_map_remove(context->dma, data + firsts[i]));
	}
	assert_int_equal(fake_verbs.bad_accesses, 0);
	assert_int_equal(value(RECONNECTS), 0);
	free(data);
}

/* Memory of a slot that short data has gone through is too short for longer data. */
static void a_slot_grows_with_its_data(void **state)
{
	enum { WHOLE = 16384, PART = 4096 };
	static const uint32_t lengths[] = { 2 * PART, WHOLE, 2 * PART };
	unsigned char *data = aligned_alloc(PART, WHOLE);
	char uri[512];

	(void)state;
	assert_non_null(data);
	snprintf(uri, sizeof(uri), "nvmf:%s/" NQN "?" HOST, weir_target_address(target, 0));
	must(weir_storage_open(
		context, uri, WEIR_OPTIONS(storage, .queues = 1, .depth = DEPTH, .max_transfer_bytes = WHOLE),
		&storage));
	must(weir_dma_map_add(context->dma, data, PART));
	must(weir_dma_map_add(context->dma, data + PART, WHOLE - PART));
	for (unsigned i = 0; i < 3 * 2 * DEPTH; i++) { /* each slot has had its share of either */
		uint32_t bytes = lengths[i / (2 * DEPTH)];

		for (unsigned at = 0; at < bytes; at++)
			data[at] = wrote[at] = (unsigned char)(at / 7 + at / PART + i + 1);
		move(NVME_OPCODE_WRITE, data, bytes);
		memset(data, 0x5a, bytes);
		move(NVME_OPCODE_READ, data, bytes);
		assert_memory_equal(data, wrote, bytes);
	}
	must(weir_dma_map_remove(context->dma, data));
	must(weir_dma_map_remove(context->dma, data + PART));
	assert_int_equal(fake_verbs.bad_accesses, 0);
	assert_int_equal(value(RECONNECTS), 0);
	free(data);
}

/* Responses arrive before the completion of what they answer; capsules before that of the last response. */
static void completions_may_be_late(void **state)
{
	(void)state;
	fake_verbs.late = true;
	must(try_open(NQN, ""));
	for (unsigned i = 0; i < ROUNDS; i++)
		round_trip();
	assert_int_equal(value(RECONNECTS), 0);
}

static void a_broken_connection_comes_back(void **state)
{
	(void)state;
	must(try_open(NQN, "&ctrl_loss_s=60"));
	for (unsigned i = 0; i < 6; i++) {
		round_trip();
		fake_verbs.break_in = 3 + 5 * i;
		while (fake_verbs.broken <= i)
			round_trip();
		round_trip();
	}
	assert_int_equal(fake_verbs.broken, 6);
	assert_true(value(RECONNECTS) >= 1);
}

/* Until each of both paths has carried @more commands. */
static void work_by_both(uint64_t more)
{
	uint64_t first = value(CARRIED), second = value(CARRIED + 1);
	time_t last = time(NULL) + 120;

	while (value(CARRIED) < first + more || value(CARRIED + 1) < second + more) {
		round_trip();
		assert_true(time(NULL) <= last);
	}
}

static void open_two_paths(void)
{
	const char *at = strrchr(weir_target_address(target, 0), ':');
	char uri[512];

	snprintf(uri, sizeof(uri),
		 "nvmf:rdma://127.0.0.1%s,127.0.0.1%s/" NQN "?" HOST "&iopolicy=round-robin", at, at);
	must(weir_storage_open(
		context, uri,
		WEIR_OPTIONS(storage, .queues = 2, .depth = DEPTH, .max_transfer_bytes = TRANSFER),
		&storage));
	work_by_both(100);
}

/* Each has registrations of its own. */
static void two_paths_carry_commands(void **state)
{
	(void)state;
	open_two_paths();
	for (unsigned i = 0; i < 6; i++) {
		fake_verbs.break_in = 3 + 5 * i;
		while (fake_verbs.broken <= i)
			round_trip();
		work_by_both(10);
	}
	assert_int_equal(fake_verbs.bad_accesses, 0);
}

/* No thread is asked whether the device writes to memory: what is halted has no connection by which it would.
 */
static void a_halted_storage_is_not_written_to(void **state)
{
	(void)state;
	open_two_paths();
	assert_true(value(CONNECTIONS) > 0);
	must(storage->transport->ops->halt(storage->transport));
	assert_int_equal(value(CONNECTIONS), 0);
	storage->created = 0; /* as whoever halts it has it: nothing is asked of it at its end */
	storage->enabled = false;
}

static void discovery_lists_both(void **state)
{
	struct weir_host_identity host = { .nqn = "nqn.2026-11.org.example:me", .id = { 1 } };
	const char *at = weir_target_address(target, 0);
	struct weir_address address = { .rdma = true, .host = "127.0.0.1" };
	struct weir_discovered log;

	(void)state;
	snprintf(address.port, sizeof(address.port), "%s", strrchr(at, ':') + 1);
	must(weir_fabrics_discover("a test", &address, &host, 60000, &log));
	assert_int_equal(log.count, 2);
	assert_int_equal(log.entries[0].trtype, NVME_TRTYPE_RDMA);
	assert_memory_equal(log.entries[0].traddr, "127.0.0.1 ", 10);
	assert_memory_equal(log.entries[0].trsvcid, address.port, strlen(address.port));
	assert_int_equal(log.entries[1].trtype, NVME_TRTYPE_TCP);
	free(log.entries);
}

/* Nobody listens at the first address of a name: the second is connected to. With no way to either the
 * sentence is of that. */
static void the_next_address_is_tried(void **state)
{
	(void)state;
	first_port = 9;
	must(try_open(NQN, ""));
	round_trip();
	assert_int_equal(value(RECONNECTS), 0);
	must(weir_storage_close(storage));
	storage = NULL;
	fake_verbs.no_device = true;
	refused(NQN, "", "does an RDMA device lead there?");
	fake_verbs.no_device = false;
	first_port = 0;
}

/* Whoever connects is not answered: the host gives up when its time is over. */
static void a_connection_that_is_not_accepted(void **state)
{
	enum { ASKED_MS = 1000 };
	struct rdma_event_channel *events = weir_rdma_events();
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	char uri[512];
	int error;

	(void)state;
	assert_int_equal(rdma_create_id(events, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(id, 1), 0);
	memcpy(&at, &id->route.addr.src_addr, sizeof(at));
	snprintf(uri, sizeof(uri),
		 "nvmf:rdma://127.0.0.1:%u/" NQN "?connect_ms=%d&hostnqn=nqn.2026-11.org.example:me"
		 "&hostid=11111111-2222-3333-4444-555555555555",
		 ntohs(at.sin_port), ASKED_MS);
	clock_begins();
	error = weir_storage_open(context, uri, NULL, &storage);
	it_took(ASKED_MS);
	storage = NULL;
	assert_int_equal(error, -ETIMEDOUT);
	assert_non_null(strstr(weir_last_error(), "the connection: "));
	while (rdma_get_cm_event(events, &event) == 0) {
		rdma_destroy_id(event->id);
		rdma_ack_cm_event(event);
	}
	rdma_destroy_id(id);
	rdma_destroy_event_channel(events);
}

static void other_format(void *data, size_t *bytes)
{
	(void)bytes;
	((unsigned char *)data)[0] = 1;
}

static void cut_short(void *data, size_t *bytes)
{
	(void)data;
	*bytes = 8;
}

static void each_refusal_is_a_sentence(void **state)
{
	(void)state;
	refused("nqn.2026-11.org.example:none", "", "has no subsystem");
	refused(NQN, "&digest=data", "digest= is of tcp://");
	fake_verbs.damage_request = other_format;
	refused(NQN, "", "refuses queue 0's connection: the private data has another format (2)");
	fake_verbs.damage_request = cut_short;
	refused(NQN, "", "the private data has another length (1)");
	fake_verbs.damage_request = NULL;
	fake_verbs.damage_accept = other_format;
	refused(NQN, "", "is no NVMe/RDMA controller");
	fake_verbs.damage_accept = cut_short;
	refused(NQN, "", "is no NVMe/RDMA controller");
	fake_verbs.damage_accept = NULL;
	fake_verbs.no_device = true;
	refused(NQN, "", "does an RDMA device lead there?");
	fake_verbs.no_device = false;
	assert_int_not_equal(weir_storage_open(context, "nvmf:rdma://127.0.0.1:9/" NQN, NULL, &storage), 0);
	assert_non_null(strstr(weir_last_error(), "is a target listening there by rdma://?"));
	storage = NULL;
	must(try_open(NQN, "")); /* the target serves on */
	round_trip();
}

/* A completion queue of a device that the test is: what has completed, and how often it was armed. */
static unsigned completed, arms;
static bool completes_as_it_is_armed, cannot_be_armed;

static int poll_made(struct ibv_cq *cq, int most, struct ibv_wc *completions)
{
	int count = (int)completed < most ? (int)completed : most;

	(void)cq, (void)completions;
	completed -= (unsigned)count;
	return count;
}

static int arm_made(struct ibv_cq *cq, int solicited)
{
	(void)cq;
	assert_int_equal(solicited, 0);
	arms++;
	completed += completes_as_it_is_armed;
	return cannot_be_armed;
}

/* It is armed when nothing is there, once for each notification; what has come just before that notifies
 * nobody, and is found. */
static void nothing_is_lost_as_it_is_armed(void **state)
{
	struct ibv_context device = { .ops = { .poll_cq = poll_made, .req_notify_cq = arm_made } };
	struct ibv_cq cq = { .context = &device };
	struct weir_rdma_link link = { .cq = &cq };
	struct ibv_wc completions[4];

	(void)state;
	completed = 6;
	assert_int_equal(weir_rdma_poll(&link, completions, 4), 4);
	assert_int_equal(weir_rdma_poll(&link, completions, 4), 2);
	assert_false(link.armed || arms);
	completes_as_it_is_armed = true;
	assert_int_equal(weir_rdma_poll(&link, completions, 4), 1);
	assert_true(link.armed);
	assert_int_equal(weir_rdma_poll(&link, completions, 4), 0);
	assert_int_equal(arms, 1);
	completes_as_it_is_armed = false;
	link.armed = false;
	assert_int_equal(weir_rdma_poll(&link, completions, 4), 0);
	assert_int_equal(arms, 2);
	link.armed = false;
	cannot_be_armed = true;
	assert_int_equal(weir_rdma_poll(&link, completions, 4), -EIO);
	assert_false(link.armed);
}

/* As many reads as both ends have, in a byte. */
static void reads_have_limits(void **state)
{
	(void)state;
	assert_int_equal(weir_rdma_reads(16, 8), 8);
	assert_int_equal(weir_rdma_reads(8, 16), 8);
	assert_int_equal(weir_rdma_reads(1024, 254), 254);
	assert_int_equal(weir_rdma_reads(1024, 1024), 255);
	assert_int_equal(weir_rdma_reads(256, 4096), 255);
}

static void private_data_is_checked(void **state)
{
	struct nvme_rdma_request good = { .qid = 1, .hrqsize = 128, .hsqsize = 127 }, bad, out;

	(void)state;
	assert_int_equal(weir_rdma_check_request(&good, sizeof(good), QUEUE_ENTRIES, &out),
			 NVME_RDMA_ACCEPTED);
	assert_int_equal(out.hsqsize, 127);
	assert_int_equal(weir_rdma_check_request(&good, sizeof(good) - 1, QUEUE_ENTRIES, &out),
			 NVME_RDMA_INVALID_LENGTH);
	assert_int_equal(weir_rdma_check_request(NULL, 0, QUEUE_ENTRIES, &out), NVME_RDMA_INVALID_LENGTH);
	bad = good, bad.recfmt = 1;
	assert_int_equal(weir_rdma_check_request(&bad, sizeof(bad), QUEUE_ENTRIES, &out),
			 NVME_RDMA_INVALID_FORMAT);
	bad = good, bad.hsqsize = 128, bad.hrqsize = 129;
	assert_int_equal(weir_rdma_check_request(&bad, sizeof(bad), QUEUE_ENTRIES, &out),
			 NVME_RDMA_INVALID_HSQSIZE);
	bad = good, bad.hsqsize = 0;
	assert_int_equal(weir_rdma_check_request(&bad, sizeof(bad), QUEUE_ENTRIES, &out),
			 NVME_RDMA_INVALID_HSQSIZE);
	bad = good, bad.hrqsize = 127;
	assert_int_equal(weir_rdma_check_request(&bad, sizeof(bad), QUEUE_ENTRIES, &out),
			 NVME_RDMA_INVALID_HRQSIZE);
	bad = good, bad.qid = 0; /* the admin queue is short */
	assert_int_equal(weir_rdma_check_request(&bad, sizeof(bad), QUEUE_ENTRIES, &out),
			 NVME_RDMA_INVALID_HSQSIZE);
	bad.hsqsize = 31, bad.hrqsize = 32;
	assert_int_equal(weir_rdma_check_request(&bad, sizeof(bad), QUEUE_ENTRIES, &out), NVME_RDMA_ACCEPTED);
}

static void keyed_descriptors_have_24_bits_of_length(void **state)
{
	static const unsigned char expected[16] = { 8,    7,    6,    5,    4,    3,    2,    1,
						    0x56, 0x34, 0x12, 0xdd, 0xcc, 0xbb, 0xaa, 0x40 };
	struct nvme_sqe sqe = { .cdw0 = 1 };
	struct weir_rdma_keyed keyed;

	(void)state;
	weir_rdma_put_keyed(&sqe, 0x0102030405060708, 0x123456, 0xaabbccdd);
	assert_memory_equal(&sqe.prp1, expected, sizeof(expected));
	assert_true(weir_rdma_take_keyed(&sqe, &keyed));
	assert_true(keyed.address == 0x0102030405060708 && keyed.bytes == 0x123456 &&
		    keyed.key == 0xaabbccdd);
	assert_false(keyed.invalidate);
	((unsigned char *)&sqe.prp1)[15] = NVME_SGL_KEYED_INVALIDATE;
	assert_true(weir_rdma_take_keyed(&sqe, &keyed) && keyed.invalidate);
	((unsigned char *)&sqe.prp1)[15] = NVME_SGL_TRANSPORT_DATA_BLOCK;
	assert_false(weir_rdma_take_keyed(&sqe, &keyed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_as_it_is_armed),
		cmocka_unit_test(reads_have_limits),
		cmocka_unit_test(private_data_is_checked),
		cmocka_unit_test(keyed_descriptors_have_24_bits_of_length),
		cmocka_unit_test_setup_teardown(data_moves_under_keys_made_once, serve, end),
		cmocka_unit_test_setup_teardown(data_of_two_registrations, serve, end),
		cmocka_unit_test_setup_teardown(a_slot_grows_with_its_data, serve, end),
		cmocka_unit_test_setup_teardown(completions_may_be_late, serve, end),
		cmocka_unit_test_setup_teardown(a_broken_connection_comes_back, serve, end),
		cmocka_unit_test_setup_teardown(two_paths_carry_commands, serve, end),
		cmocka_unit_test_setup_teardown(a_halted_storage_is_not_written_to, serve, end),
		cmocka_unit_test_setup_teardown(discovery_lists_both, serve, end),
		cmocka_unit_test_setup_teardown(the_next_address_is_tried, serve, end),
		cmocka_unit_test_setup_teardown(a_connection_that_is_not_accepted, serve, end),
		cmocka_unit_test_setup_teardown(each_refusal_is_a_sentence, serve, end),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("rdma", tests, NULL, NULL);
}
