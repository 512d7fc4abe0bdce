/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_again_test.c: nvmf: storages whose controller was away, or answers to what it was not given, and
 * what is known of them when they are connected again.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>

#include <weir/disk.h>

#include "../../rig/leaks.h"
#include "peer_storage.h"
#include "first_address.h"
#include "transport/fabrics/discover.h"

enum { KEEP_ALIVE_MS = 60000, SOME_MS = 1, MOST_STARTS = 8 };

/* Again where one before ended by its deadline. */
static void check_at_last(struct weir_storage *storage, size_t bytes, uint32_t seed)
{
	unsigned tries = 1;

	while (!try_round(storage, 0, bytes, seed))
		if (++tries > BRIEF_TRIES)
			fail_msg("%s", weir_last_error());
	assert_memory_equal(wrote, found, bytes);
}

/*
 * A command without an answer leads to a new queue pair, which is refused, and so to a reset, behind which
 * the target refuses to be connected to a few times: that is a loss as any other. Its path works afterwards.
 */
static void a_target_away_at_a_reset_is_found_again(void **state)
{
	struct weir_stats stats = { .size = sizeof(stats) };
	struct weir_storage *storage;
	const struct nvmf *nvmf;

	(void)state;
	assert_true(peer_start(&peer,
			       "silent refuse=0x4006:queue=1:skip=1 refuse=0x4181:queue=0:skip=1:count=3 "
			       "--queues 1"));
	must(open_storage("timeout_ms=4000", &storage));
	(void)weir_storage_read(storage, 0, found, 4096);
	check_at_last(storage, 65536, 1);
	must(weir_stats(storage, &stats));
	assert_true(stats.resets > 0);
	nvmf = (const struct nvmf *)storage->transport;
	assert_int_equal(load_relaxed_u64(&nvmf->counters.paths[0]), NVME_ANA_OPTIMIZED);
	must(weir_storage_close(storage));
	peer_end(&peer);
	assert_int_equal(peer_printed(&peer, "fault refuse"), 4);
	assert_int_equal(peer_printed(&peer, "fault silent"), 1);
}

/* Of a peer with @args, whose silence leads to a reset: it goes on, and all bytes are right. */
static void found_behind_a_reset(const char *args)
{
	struct weir_storage *storage;

	assert_true(peer_start(&peer, args));
	must(open_storage("timeout_ms=4000", &storage));
	(void)weir_storage_read(storage, 0, found, 4096);
	check_at_last(storage, 65536, 1);
	must(weir_storage_close(storage));
	peer_end(&peer);
}

/* All requests end, and say why. */
static void given_up_behind_a_reset(const char *args)
{
	struct weir_storage *storage;

	assert_true(peer_start(&peer, args));
	must(open_storage("timeout_ms=4000&ctrl_loss_s=1", &storage));
	assert_int_equal(weir_storage_read(storage, 0, found, 4096), -EIO);
	assert_int_equal(weir_storage_read(storage, 0, found, 512), -EIO);
	assert_non_null(strstr(weir_last_error(), "no longer answers"));
	(void)weir_storage_close(storage);
	peer_end(&peer);
}

/* Each association knows what its host is to be notified of. */
static void events_are_asked_for_behind_a_reset(void **state)
{
	(void)state;
	found_behind_a_reset("--events --queues 1 silent refuse=0x4006:queue=1:skip=1");
	assert_true(peer_printed(&peer, "connect 0") >= 2);
	assert_int_equal(peer_printed(&peer, "events 256"), peer_printed(&peer, "connect 0"));
}

/*
 * It leaves behind the reset, for longer than an admin command may take: the reset is tried again once it is
 * there.
 */
static void a_target_lost_behind_a_reset_is_found_again(void **state)
{
	(void)state;
	found_behind_a_reset("silent refuse=0x4006:queue=1:skip=1 leave:skip=1 "
			     "refuse=0x4181:queue=0:skip=2:count=5 --queues 1");
	assert_int_equal(peer_printed(&peer, "fault leave"), 1);
	assert_int_equal(peer_printed(&peer, "fault refuse"), 6);
}

/*
 * It falls silent there, and is given no time until Keep Alive tells: the reset is tried again, by another
 * connection.
 */
static void a_target_silent_behind_a_reset_is_found_again(void **state)
{
	(void)state;
	found_behind_a_reset("silent refuse=0x4006:queue=1:skip=1 hush:skip=1 --queues 1");
	assert_int_equal(peer_printed(&peer, "fault hush"), 1);
	assert_int_equal(peer_printed(&peer, "connect 0"), 3);
}

/* Or once the admin queue has it all, and before the other queue is connected. */
static void a_target_lost_before_its_queues_is_found_again(void **state)
{
	(void)state;
	found_behind_a_reset("silent refuse=0x4006:queue=1:skip=1 ic=short:skip=4 --queues 1");
	assert_int_equal(peer_printed(&peer, "fault ic"), 1);
	assert_true(peer_printed(&peer, "connect 1") >= 2);
}

/* As long as one that was lost before, and no longer. */
static void a_target_away_at_a_reset_is_given_up(void **state)
{
	(void)state;
	given_up_behind_a_reset("silent refuse=0x4006:queue=1:skip=1 "
				"refuse=0x4181:queue=0:skip=1:count=1000000 --queues 1");
	assert_true(peer_printed(&peer, "fault refuse") > 2);
}

/*
 * It says by its status that it has failed, at each start, too: a command that is late has that asked for,
 * and few starts are tried before all requests end. None of them is sent to it again.
 */
static void a_controller_that_has_failed_is_given_up(void **state)
{
	struct weir_storage *storage;

	(void)state;
	assert_true(peer_start(&peer, "fatal --queues 1"));
	must(open_storage("timeout_ms=1000&ctrl_loss_s=10", &storage));
	assert_int_equal(weir_storage_read(storage, 0, found, 4096), -EIO);
	assert_int_equal(weir_storage_read(storage, 0, found, 512), -EIO);
	assert_non_null(strstr(weir_last_error(), "the controller failed"));
	(void)weir_storage_close(storage);
	peer_end(&peer);
	assert_int_equal(peer_printed(&peer, "fault fatal"), 1);
	assert_int_equal(peer_printed(&peer, "unanswered"), 0);
	assert_true(peer_printed(&peer, "connect 0") > MOST_STARTS / 2);
	assert_true(peer_printed(&peer, "connect 0") <= MOST_STARTS);
}

/* What is connected to behind a reset has the address, and another disk. */
static void another_namespace_behind_a_reset_is_not_gone_on_with(void **state)
{
	(void)state;
	given_up_behind_a_reset("silent refuse=0x4006:queue=1:skip=1 swap=2:skip=1 --nguid 1 --queues 1");
	assert_int_equal(peer_printed(&peer, "fault swap"), 1);
	assert_int_equal(peer_printed(&peer, "connect 1"), 1);
}

/* Starts of a controller behind a reset, and of these, those before which it was said to be away. */
static unsigned starts, away;

static void write_register(struct weir_transport *transport, uint32_t offset, uint32_t value)
{
	if (offset == NVME_REGISTER_CC &&
	    (value & (NVME_CC_ENABLE | NVME_CC_SHUTDOWN_MASK)) == NVME_CC_ENABLE) {
		starts++;
		away += weir_transport_nvmf.away(transport);
		must(weir_transport_nvmf.restart(transport)); /* which nobody would end */
	}
	weir_transport_nvmf.write32(transport, offset, value);
}

/*
 * From the reset on there is no association until another one stands: however long the first try to connect
 * takes, the reset that waited too short a time for it is tried again. And nobody waits for a connection that
 * is made only when it is asked for.
 */
static void a_controller_is_away_from_its_reset_on(void **state)
{
	struct weir_transport_ops ops = weir_transport_nvmf;
	struct weir_storage *storage;

	(void)state;
	ops.write32 = write_register;
	assert_true(peer_start(&peer, "silent refuse=0x4006:queue=1:skip=1 --queues 1"));
	must(open_storage("timeout_ms=4000", &storage));
	storage->transport->ops = &ops;
	(void)weir_storage_read(storage, 0, found, 4096);
	check_at_last(storage, 65536, 1);
	must(weir_storage_close(storage));
	peer_end(&peer);
	assert_true(starts > 0);
	assert_int_equal(away, starts);
}

/* Success for data of which the controller has asked for none, or for all but a block. */
static void a_write_without_its_data_is_an_error(void **state)
{
	static const char *const faults[] = { "untaken:count=100 --inside 0",
					      "untaken=3584:count=100 --inside 0" };
	struct weir_storage *storage;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_true(peer_start(&peer, faults[i]));
		must(open_storage("", &storage));
		memset(wrote, 0x5a, TRANSFER);
		assert_int_equal(weir_storage_write(storage, 0, wrote, 4096), -EIO);
		must(weir_storage_read(storage, 0, found, 4096));
		assert_true(pristine(found, 0, 4096));
		must(weir_storage_close(storage));
		peer_end(&peer);
		assert_true(peer_printed(&peer, "fault untaken") > 0);
		assert_int_equal(peer_printed(&peer, "connect 0"), 1);
	}
}

/* Each queue has a command under way when it ends, so that none of them can be flushed by. */
static void an_end_without_a_flush_is_said(void **state)
{
	struct weir_storage *storage;
	struct nvmf *nvmf;

	(void)state;
	assert_true(peer_start(&peer, ""));
	must(open_storage("", &storage));
	must(weir_storage_write(storage, 0, wrote, 4096));
	nvmf = (struct nvmf *)storage->transport;
	pthread_mutex_lock(&nvmf->mutex);
	for (unsigned i = 1; i < nvmf->queue_count; i++)
		nvmf->queues[i].inflight++;
	pthread_mutex_unlock(&nvmf->mutex);
	assert_int_equal(weir_storage_close(storage), -EIO);
	assert_non_null(strstr(weir_last_error(), "may be lost"));
	peer_end(&peer);
}

/* What the host said that it knows a new association does not know: it is said again. */
static void retry_delays_are_known_to_each_association(void **state)
{
	static const char *const peers[] = { "--crdt 1 reset:skip=2", "reset:skip=2" };
	struct weir_storage *storage;
	unsigned connects;

	(void)state;
	for (unsigned i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
		assert_true(peer_start(&peer, peers[i]));
		must(open_storage("", &storage));
		check_round(storage, 0, 65536, i);
		must(weir_storage_close(storage));
		peer_end(&peer);
		connects = peer_printed(&peer, "connect 0");
		assert_true(connects >= 2);
		assert_int_equal(peer_printed(&peer, "behavior 512 1"), i ? 0 : connects);
	}
}

/* A socket that listens, and has as many waiting as it may: to whoever comes then nothing is said. */
static void listen_deaf(int files[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);

	files[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	files[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(files[0], (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(files[0], 0), 0);
	assert_int_equal(getsockname(files[0], (struct sockaddr *)&at, &length), 0);
	assert_int_equal(connect(files[1], (struct sockaddr *)&at, sizeof(at)), 0);
	first_port = ntohs(at.sin_port);
}

/* Of a name with two addresses the first does not answer: there is time left for the second. */
static void the_next_address_is_tried_in_time(void **state)
{
	struct weir_storage *storage;
	int files[2];

	(void)state;
	assert_true(peer_start(&peer, "ic=late:count=100"));
	listen_deaf(files);
	must(open_storage("connect_ms=6000&queues=1", &storage));
	must(weir_storage_read(storage, 0, found, 4096));
	assert_true(pristine(found, 0, 4096));
	must(weir_storage_close(storage));
	first_port = 0;
	close(files[0]);
	close(files[1]);
	peer_end(&peer);
	assert_int_equal(peer_printed(&peer, "connect"), 2);
}

/* With the storage's mutex: a Keep Alive is on its way, sent now, and its answer takes a while. */
static void lock_with_keep_alive(struct nvmf *nvmf)
{
	pthread_mutex_lock(&nvmf->mutex);
	while (!nvmf->silent_ns) {
		nvmf->alive_ns = 0; /* it is due, again where we came too late for the one before */
		pthread_mutex_unlock(&nvmf->mutex);
		(void)poll(NULL, 0, SOME_MS);
		pthread_mutex_lock(&nvmf->mutex);
	}
}

/* The thread that keeps the association was not there for long: the answer is, and the controller not silent.
 */
static void an_answer_that_waits_is_no_silence(void **state)
{
	struct pollfd answer = { .events = POLLIN };
	struct weir_storage *storage;
	struct nvmf *nvmf;
	char keys[40];

	(void)state;
	assert_true(peer_start(&peer, "--late-ms 20"));
	snprintf(keys, sizeof(keys), "keep_alive_ms=%d", KEEP_ALIVE_MS);
	must(open_storage(keys, &storage));
	nvmf = (struct nvmf *)storage->transport;
	lock_with_keep_alive(nvmf);
	answer.fd = nvmf->queues[0].connection.socket;
	assert_int_equal(poll(&answer, 1, -1), 1);
	nvmf->silent_ns -= 2 * KEEP_ALIVE_MS * (uint64_t)1000000; /* so long ago, as far as anybody knows */
	while (nvmf->silent_ns) {
		pthread_mutex_unlock(&nvmf->mutex);
		(void)poll(NULL, 0, SOME_MS);
		pthread_mutex_lock(&nvmf->mutex);
	}
	pthread_mutex_unlock(&nvmf->mutex);
	must(weir_storage_close(storage));
	peer_end(&peer);
	assert_int_equal(peer_printed(&peer, "connect 0"), 1);
}

/* A new association knows nothing of the one before: all queues are asked for and connected again, and what
 * is counted says so. */
static void each_association_has_all_queues(void **state)
{
	unsigned reconnects, moves, open, connects;
	const struct nvmf *nvmf;
	struct weir_storage *storage;

	(void)state;
	assert_true(peer_start(&peer, "reset:skip=2"));
	must(open_storage("", &storage));
	check_round(storage, 0, 65536, 1);
	nvmf = (const struct nvmf *)storage->transport;
	reconnects = (unsigned)load_relaxed_u64(&nvmf->counters.reconnects);
	moves = (unsigned)load_relaxed_u64(&nvmf->counters.moves);
	open = (unsigned)load_relaxed_u64(&nvmf->counters.connections);
	must(weir_storage_close(storage));
	peer_end(&peer);
	connects = peer_printed(&peer, "connect 0");
	assert_true(connects >= 2);
	assert_int_equal(reconnects, connects - 1);
	assert_int_equal(moves, 0);
	assert_int_equal(open, 1 + QUEUES);
	assert_int_equal(peer_printed(&peer, "asked 1"), connects);
	assert_int_equal(peer_printed(&peer, "connect 1"), connects);
	assert_int_equal(peer_printed(&peer, "connect 2"), connects);
	assert_int_equal(peer_printed(&peer, "maxr2t 3"), connects * (1 + QUEUES)); /* zero based */
}

/* A host that accepts a connection and is no controller is left, each time. */
static void a_peer_that_is_no_controller_is_left(void **state)
{
	static const char *const peers[] = { "ic=pfv:count=1000", "ic=short:count=1000" };
	struct weir_storage *storage;

	(void)state;
	for (unsigned i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
		unsigned files;

		assert_true(peer_start(&peer, peers[i]));
		assert_true(open_storage("", &storage) < 0);
		files = test_files();
		for (unsigned j = 0; j < 3; j++)
			assert_true(open_storage("", &storage) < 0);
		assert_int_equal(test_files(), files);
		peer_end(&peer);
	}
}

/* What a URI says is what is gone by. */
static void each_key_is_gone_by(void **state)
{
	static const u8 id[16] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
				   0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };
	const struct nvmf *nvmf;
	struct weir_storage *storage;

	(void)state;
	assert_true(peer_start(&peer, ""));
	must(open_storage("connect_ms=70001&keep_alive_ms=80002&ctrl_loss_s=31&mdts=32K&queues=1&nsid=1&ro=1"
			  "&mover=pull&iopolicy=queue-depth&hostnqn=nqn.2026-11.test:me"
			  "&hostid=00112233445566778899aabbccddeeff",
			  &storage));
	nvmf = (const struct nvmf *)storage->transport;
	assert_int_equal(nvmf->keys.connect_ms, 70001);
	assert_int_equal(nvmf->keys.keep_alive_ms, 80002);
	assert_int_equal(nvmf->keys.ctrl_loss_ms, 31000);
	assert_int_equal(nvmf->keys.mdts, 32768);
	assert_int_equal(nvmf->keys.policy, NVMF_QUEUE_DEPTH);
	assert_string_equal(nvmf->keys.host.nqn, "nqn.2026-11.test:me");
	assert_memory_equal(nvmf->keys.host.id, id, sizeof(id));
	assert_int_equal(nvmf->queue_count, 2);
	assert_int_equal(nvmf->base.most_queues, 1);
	assert_int_equal(nvmf->base.nsid, 1);
	assert_true(nvmf->base.read_only);
	assert_int_equal(nvmf->base.mover, WEIR_MOVER_PULL);
	must(weir_storage_close(storage));
	peer_end(&peer);
	assert_int_equal(peer_printed(&peer, "connect 0 nqn.2026-11.test:me"), 1);
	assert_int_equal(peer_printed(&peer, "connect 1"), 1);
	assert_int_equal(peer_printed(&peer, "connect 2"), 0);
}

static struct weir_transport_stats stats_of(const struct weir_storage *storage)
{
	struct weir_transport_stats stats = { .changed = true };

	storage->transport->ops->stats(storage->transport, &stats);
	return stats;
}

/* Payload by its way, each byte once; blocks that were changed; digests that were wrong. */
static void what_a_network_storage_counts(void **state)
{
	struct weir_storage *storage;
	struct weir_transport_stats stats;
	const struct nvmf *nvmf;

	(void)state;
	assert_true(peer_start(&peer, ""));
	must(open_storage("", &storage));
	must(weir_storage_read(storage, 0, found, 12288));
	stats = stats_of(storage);
	assert_int_equal(stats.bytes_read, 12288);
	assert_int_equal(stats.bytes_written, 0);
	assert_false(stats.changed);
	must(weir_storage_write(storage, 0, found, 65536));
	stats = stats_of(storage);
	assert_int_equal(stats.bytes_read, 12288);
	assert_int_equal(stats.bytes_written, 65536);
	assert_true(stats.changed);
	must(weir_storage_close(storage));
	peer_end(&peer);
	assert_true(peer_start(&peer, "flip:count=2"));
	must(open_storage("digest=data", &storage));
	must(weir_storage_read(storage, 0, found, 4096));
	nvmf = (const struct nvmf *)storage->transport;
	assert_int_equal(load_relaxed_u64(&nvmf->counters.digest_errors), 2);
	assert_int_equal(load_relaxed_u64(&nvmf->counters.resent), 0);
	must(weir_storage_close(storage));
	peer_end(&peer);
}

/* The state of the group that the URI's namespace is in; of no one in particular, the best. */
static void a_path_is_reported_by_its_namespace(void **state)
{
	static const uint32_t states[] = { NVME_ANA_INACCESSIBLE, NVME_ANA_PERSISTENT_LOSS };

	(void)state;
	for (unsigned named = 0; named < 2; named++) {
		struct weir_path_report reports[WEIR_ADDRESS_MOST];
		char uri[PEER_URI_BYTES];
		unsigned count;

		assert_true(peer_start(&peer, "--ana 1 --ana-state 4"));
		must(weir_fabrics_paths(
			peer_uri(&peer, named ? "nsid=1&connect_ms=60000" : "connect_ms=60000", uri), reports,
			&count));
		peer_end(&peer);
		assert_int_equal(count, 1);
		assert_int_equal(reports[0].error, 0);
		assert_int_equal(reports[0].state, states[named]);
	}
}

/* A log that says that it has more entries than anybody could want is not believed. */
static void a_discovery_log_has_its_limit(void **state)
{
	static const char *const peers[] = { "--records 1025", "--records 4294967297" };
	struct weir_host_identity host = { .nqn = "nqn.2026-11.test:me", .id = { 1 } };
	struct weir_address address = { .host = "127.0.0.1" };
	struct weir_discovered log;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		char args[80];

		snprintf(args, sizeof(args), "%s --nqn " NVME_DISCOVERY_NQN, peers[i]);
		assert_true(peer_start(&peer, args));
		snprintf(address.port, sizeof(address.port), "%u", peer.port);
		assert_int_equal(weir_fabrics_discover("a test", &address, &host, 60000, &log), -EPROTO);
		assert_non_null(strstr(weir_last_error(), "1024 are read at most"));
		assert_null(log.entries);
		peer_end(&peer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_away_at_a_reset_is_found_again),
		cmocka_unit_test(events_are_asked_for_behind_a_reset),
		cmocka_unit_test(a_target_lost_behind_a_reset_is_found_again),
		cmocka_unit_test(a_target_silent_behind_a_reset_is_found_again),
		cmocka_unit_test(a_target_lost_before_its_queues_is_found_again),
		cmocka_unit_test(a_target_away_at_a_reset_is_given_up),
		cmocka_unit_test(a_controller_that_has_failed_is_given_up),
		cmocka_unit_test(another_namespace_behind_a_reset_is_not_gone_on_with),
		cmocka_unit_test(a_controller_is_away_from_its_reset_on),
		cmocka_unit_test(a_write_without_its_data_is_an_error),
		cmocka_unit_test(an_end_without_a_flush_is_said),
		cmocka_unit_test(retry_delays_are_known_to_each_association),
		cmocka_unit_test(the_next_address_is_tried_in_time),
		cmocka_unit_test(an_answer_that_waits_is_no_silence),
		cmocka_unit_test(each_association_has_all_queues),
		cmocka_unit_test(a_peer_that_is_no_controller_is_left),
		cmocka_unit_test(each_key_is_gone_by),
		cmocka_unit_test(what_a_network_storage_counts),
		cmocka_unit_test(a_path_is_reported_by_its_namespace),
		cmocka_unit_test(a_discovery_log_has_its_limit),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, open_context, close_context);
}
