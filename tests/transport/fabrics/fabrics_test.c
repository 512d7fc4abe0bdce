/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_test.c: nvmf: storages against a controller that is scripted to misbehave.
 *
 * The peer keeps its blocks, so whatever it does, bytes that are read are right or the read fails; what it
 * printed tells that the fault happened, and how often it was connected to.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "peer_storage.h"
#include "transport/fabrics/discover.h"
#include "../../rig/leaks.h"

enum { BLOCK = 512, SOME_CONNECTS = 30, KEPT_BYTES = 4608 };

/** struct shape - how a peer behaves within the specification, and what the host asks for */
struct shape {
	const char *peer;
	const char *keys;
};

static void every_good_peer_keeps_the_data(void **state)
{
	static const struct shape shapes[] = {
		{ "", "" },
		{ "--success", "" },
		{ "--shuffle", "" },
		{ "--digests 0 --inside 0", "" },
		{ "--c2h 512 --r2t 512 --maxh2c 4096 --inside 0", "digest=header,data" },
		{ "--c2h 1000 --r2t 3000 --cpda 7 --inside 8192 --success", "digest=data" },
		{ "--cpda 31 --inside 512 --maxcmd 2", "digest=header" },
		{ "--icdoff 4", "" },
		{ "--block 4096 --blocks 1024 --mdts 1", "mover=pull" },
		{ "--queues 1 --c2h 4096", "mdts=8K&queues=1&mover=pull&digest=header,data" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct weir_storage *storage;

		assert_true(peer_start(&peer, shapes[i].peer));
		must(open_storage(shapes[i].keys, &storage));
		check_round(storage, 0, BYTES, i + 1);
		check_round(storage, 4096, 4096, i + 100);
		check_round(storage, 3 * 4096, 20480, i + 200);
		check_round(storage, 2 * 4096, 8192,
			    i + 300); /* in a capsule, where that takes more than H2CData */
		must(weir_storage_read(storage, BYTES, found, BYTES));
		assert_true(pristine(found, BYTES, BYTES));
		must(weir_storage_close(storage));
		peer_end(&peer);
		assert_int_equal(peer_printed(&peer, "connect 0"), 1);
		assert_int_equal(peer_printed(&peer, "unaligned"), 0);
		assert_int_equal(peer_printed(&peer, "inside"), 0);
	}
}

/** struct trouble - a fault that strikes a read or a write, after which all is well; @connects: associations
 * in all */
struct trouble {
	const char *peer;
	const char *keys;
	unsigned connects;
};

static void a_fault_costs_a_connection_and_no_data(void **state)
{
	static const struct trouble troubles[] = {
		{ "cut=0", "", 2 },
		{ "cut=7:skip=3", "", 2 },
		{ "cut=30:skip=5", "", 2 },
		{ "cut=1000", "", 2 },
		{ "cut=4100:count=3", "", 0 },
		{ "reset:skip=2", "", 2 },
		{ "term", "", 2 },
		{ "twice", "", 2 },
		{ "stranger", "", 2 },
		{ "type", "", 2 },
		{ "hlen", "", 2 },
		{ "plen", "", 2 },
		{ "pdo", "", 2 },
		{ "flags", "", 2 },
		{ "datal", "", 2 },
		{ "datao", "", 2 },
		{ "range", "", 2 },
		{ "early", "", 2 },
		{ "garbage=1", "", 2 },
		{ "garbage=2", "", 2 },
		{ "hdgst", "digest=header", 2 },
		{ "hdgst", "digest=data,header", 2 },
		{ "ddgst", "digest=data,header", 1 },
		{ "ddgst", "digest=data", 1 }, /* the command is tried again, on the same connection */
		{ "flip", "digest=data", 1 },
		{ "blank", "digest=data", 1 },
		{ "flip:skip=2", "digest=header,data", 1 },
		{ "status=0x22", "", 1 },
		{ "r2t-twice --inside 0", "", 2 },
		{ "r2t-range --inside 0", "", 2 },
		{ "r2t-more --inside 0 --r2t 4096", "", 2 },
		{ "lost-write:skip=1", "", 2 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
		struct weir_storage *storage;

		assert_true(peer_start(&peer, troubles[i].peer));
		must(open_storage(troubles[i].keys, &storage));
		check_round(storage, 0, 65536, i + 1);
		must(weir_storage_read(storage, BYTES, found, BYTES));
		assert_true(pristine(found, BYTES, BYTES));
		must(weir_storage_close(storage));
		peer_end(&peer);
		assert_int_equal(peer_printed(&peer, "broke"), 0);
		assert_int_equal(peer_printed(&peer, "overrun"), 0);
		if (!peer_printed(&peer, "fault"))
			fail_msg("%s: did not happen", troubles[i].peer);
		if (troubles[i].connects && peer_printed(&peer, "connect 0") != troubles[i].connects)
			fail_msg("%s: %u associations, not %u", troubles[i].peer,
				 peer_printed(&peer, "connect 0"), troubles[i].connects);
	}
}

/* Of three commands two are under way when the connection is lost. They are sent again, and the third one
 * only when both of them are answered. */
static void nothing_new_before_what_is_sent_again(void **state)
{
	struct weir_storage *storage;

	(void)state;
	assert_true(peer_start(&peer, "cut=0 --maxcmd 2 --queues 1 --again 2"));
	must(open_storage("", &storage));
	must(weir_storage_read(storage, BYTES, found, BYTES));
	assert_true(pristine(found, BYTES, BYTES));
	must(weir_storage_close(storage));
	peer_end(&peer);
	assert_int_equal(peer_printed(&peer, "connect 0"), 2);
	assert_int_equal(peer_printed(&peer, "in order"), 1);
}

/* Success without all bytes is no success, and not worth another try either. */
static void a_short_answer_is_an_error(void **state)
{
	struct weir_storage *storage;

	(void)state;
	assert_true(peer_start(&peer, "short:count=100"));
	must(open_storage("", &storage));
	assert_int_equal(weir_storage_read(storage, 0, found, 4096), -EIO);
	must(weir_storage_close(storage));
	peer_end(&peer);
	assert_int_equal(peer_printed(&peer, "connect 0"), 1);
}

/* A namespace that is write protected is a storage that is read only: no lane writes to it. */
static void a_protected_namespace_is_read_only(void **state)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	struct weir_storage *storage;

	(void)state;
	assert_true(peer_start(&peer, "--protected 1"));
	must(open_storage("", &storage));
	must(weir_storage_info(storage, &info));
	assert_int_equal(info.read_only, 1);
	assert_true(weir_storage_write(storage, 0, found, 4096) < 0);
	must(weir_storage_read(storage, 0, found, 4096));
	assert_true(pristine(found, 0, 4096));
	must(weir_storage_close(storage));
	peer_end(&peer);
}

/* Whatever lanes ask for: a command has room for so many segments, and no more. */
static void a_transfer_beyond_its_limit_is_refused(void **state)
{
	struct weir_storage *storage;
	uint32_t most;

	(void)state;
	assert_true(peer_start(&peer, ""));
	must(open_storage("mdts=8K", &storage));
	must(weir_storage_read(storage, 0, found, TRANSFER)); /* in parts */
	most = storage->disk.max_blocks;
	assert_int_equal(most, 8192 / BLOCK);
	storage->disk.max_blocks = TRANSFER / BLOCK;
	assert_int_equal(weir_storage_read(storage, 0, found, TRANSFER), -EIO);
	storage->disk.max_blocks = most;
	must(weir_storage_read(storage, 0, found, TRANSFER));
	assert_true(pristine(found, 0, TRANSFER));
	must(weir_storage_close(storage));
	peer_end(&peer);
}

/* Before the last queue goes what was written is flushed, and a refusal is the end's. What was only read
 * needs no flush. */
static void a_refused_flush_is_said_at_the_end(void **state)
{
	struct weir_storage *storage;

	(void)state;
	for (unsigned writes = 0; writes < 2; writes++) {
		assert_true(peer_start(&peer, "flush=0x4006"));
		must(open_storage("", &storage));
		must(weir_storage_read(storage, 0, found, 4096));
		if (writes)
			must(weir_storage_write(storage, 0, found, 4096));
		assert_int_equal(weir_storage_close(storage), writes ? -EIO : 0);
		peer_end(&peer);
		assert_int_equal(peer_printed(&peer, "fault flush"), writes);
	}
}

/* No answer to one command: it is aborted in vain, its queue pair replaced, and nobody else notices. */
static void a_silent_command_is_recovered_from(void **state)
{
	struct weir_stats stats = { .size = sizeof(stats) };
	struct weir_storage *storage;
	unsigned tries = 0;

	(void)state;
	assert_true(peer_start(&peer, "silent"));
	must(open_storage("timeout_ms=4000", &storage));
	(void)weir_storage_read(storage, 0, found, 65536);
	while (weir_storage_read(storage, 0, found, 65536) != 0 && ++tries < BRIEF_TRIES)
		;
	assert_in_range(tries, 0, BRIEF_TRIES - 1);
	assert_true(pristine(found, 0, 65536));
	must(weir_stats(storage, &stats));
	assert_true(stats.queues_replaced + stats.resets > 0);
	must(weir_storage_close(storage));
	peer_end(&peer);
	assert_int_equal(peer_printed(&peer, "fault silent"), 1);
}

/* A controller that answers nothing any more, Keep Alive included, is given up, and says so. It has longer
 * and longer to answer, until it did before it fell silent: a busy machine takes its time. */
static void a_mute_controller_is_given_up(void **state)
{
	static const unsigned limits_ms[] = { 200, 1000, 4000, 8000 };
	bool mute = false;

	(void)state;
	for (unsigned i = 0; i < sizeof(limits_ms) / sizeof(limits_ms[0]) && !mute; i++) {
		unsigned ms = limits_ms[i];
		int first = 0, second = 0;
		struct weir_storage *storage;
		bool said = false;
		char keys[80];

		snprintf(keys, sizeof(keys), "keep_alive_ms=%u&connect_ms=%u&ctrl_loss_s=1", ms, ms);
		assert_true(peer_start(&peer, "mute"));
		if (open_storage(keys, &storage) == 0) {
			first = weir_storage_read(storage, 0, found, 65536);
			said = strstr(weir_last_error(), "no longer answers");
			second = weir_storage_read(storage, 0, found, 512);
			(void)weir_storage_close(storage);
		}
		peer_end(&peer);
		mute = peer_printed(&peer, "fault mute") > 0;
		assert_true(!mute || (first == -EIO && said && second == -EIO));
	}
	assert_true(mute);
}

/* The peer is killed with commands under way, and another one takes its port a moment later. */
static void a_restarted_target_is_found_again(void **state)
{
	struct weir_storage *storage;
	struct peer first;

	(void)state;
	assert_true(peer_start(&peer, "silent:skip=20:count=1"));
	must(open_storage("", &storage));
	first = peer;
	must(weir_storage_read(storage, 0, found, 4096));
	peer_end(&first);
	assert_true(peer_start_at(&peer, first.port, ""));
	must(weir_storage_read(storage, 0, found, BYTES));
	assert_true(pristine(found, 0, BYTES));
	check_round(storage, 8192, 65536, 9);
	must(weir_storage_close(storage));
	peer_end(&peer);
	assert_int_equal(peer_printed(&peer, "connect 0"), 1);
}

/*
 * A peer with options @before is killed under a storage, and one with options @after takes its port. Reads
 * fail, once that has been connected to, and none of its queues is. How long it is looked for grows until it
 * is there: a busy machine takes its time.
 */
static void check_not_gone_on_with(const char *before, const char *after)
{
	unsigned seconds = 1;

	do {
		struct weir_storage *storage;
		struct peer first;
		char keys[32];

		snprintf(keys, sizeof(keys), "ctrl_loss_s=%u", seconds);
		assert_true(peer_start(&peer, before));
		must(open_storage(keys, &storage));
		first = peer;
		peer_end(&first);
		assert_true(peer_start_at(&peer, first.port, after));
		assert_int_equal(weir_storage_read(storage, 0, found, 4096), -EIO);
		(void)weir_storage_close(storage);
		peer_end(&peer);
		seconds *= 4;
	} while (peer_printed(&peer, "connect 0") == 0 && seconds <= 64);
	assert_true(peer_printed(&peer, "connect 0") > 0);
	assert_int_equal(peer_printed(&peer, "connect 1"), 0);
}

/* Fewer blocks, longer ones, or shorter transfers. */
static void a_smaller_namespace_is_not_gone_on_with(void **state)
{
	(void)state;
	check_not_gone_on_with("", "--blocks 1024");
	check_not_gone_on_with("", "--block 4096");
	check_not_gone_on_with("", "--mdts 1");
}

/* Of the same size, and another one all the same. */
static void another_namespace_is_not_gone_on_with(void **state)
{
	(void)state;
	check_not_gone_on_with("--nguid 1", "--nguid 2");
	check_not_gone_on_with("--eui 1", "--eui 2");
	check_not_gone_on_with("--uuid 1", "--uuid 2");
	check_not_gone_on_with("--nguid 1 --uuid 1", "--nguid 1 --uuid 2");
	check_not_gone_on_with("--uuid 1", "--uuid 1 --descriptors 0");
}

/* By all that was known of it; what its controller says besides now makes it no other one. */
static void the_same_namespace_is_gone_on_with(void **state)
{
	static const char *const pairs[][2] = { { "--uuid 1", "--uuid 1" },
						{ "--descriptors 0", "--descriptors 0" },
						{ "--nguid 1 --descriptors 0", "--nguid 1 --uuid 2" } };
	struct weir_storage *storage;
	struct peer first;

	(void)state;
	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_true(peer_start(&peer, pairs[i][0]));
		must(open_storage("ctrl_loss_s=600", &storage));
		first = peer;
		peer_end(&first);
		assert_true(peer_start_at(&peer, first.port, pairs[i][1]));
		must(weir_storage_read(storage, 0, found, 4096));
		must(weir_storage_close(storage));
		peer_end(&peer);
	}
}

/** struct refusal - a peer, keys, and words of the one sentence that says why nothing came of it */
struct refusal {
	const char *peer;
	const char *keys;
	const char *words;
};

static void whatever_cannot_be_opened_says_why(void **state)
{
	static const struct refusal refusals[] = {
		{ "--nqn nqn.2026-11.test:other", "", "has no subsystem nqn.2026-11.test:peer" },
		{ "--host nqn.2026-11.test:friend", "", "does not accept host" },
		{ "--namespaces 0", "", "has no active namespace" },
		{ "", "nsid=2", "has no active namespace 2; it has 1" },
		{ "--digests 0", "digest=header", "refuses the digests asked for" },
		{ "--digests 1", "digest=header,data", "refuses the digests asked for" },
		{ "", "digest=md5", "digest=md5 is not accepted" },
		{ "ic=type", "", "is no NVMe/TCP controller" },
		{ "ic=pfv", "", "is no NVMe/TCP controller" },
		{ "ic=dgst", "", "is no NVMe/TCP controller" },
		{ "ic=maxh2c", "", "is no NVMe/TCP controller" },
		{ "ic=short", "", "if it wants TLS, give tls_psk=" },
		{ "deaf", "connect_ms=100", "does not answer as NVMe/TCP" },
		{ "refuse=0x4181:queue=0", "", "no controller left" },
		{ "refuse=0x4006:queue=2", "", "Create I/O Submission Queue" },
		{ "", "hostnqn=friend", "is no NQN" },
		{ "", "hostid=12", "is no UUID" },
		{ "", "mdts=12K", "not a power of two" },
		{ "", "speed=9", "speed" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct weir_storage *storage = NULL;

		assert_true(peer_start(&peer, refusals[i].peer));
		assert_true(open_storage(refusals[i].keys, &storage) < 0);
		if (!strstr(weir_last_error(), refusals[i].words))
			fail_msg("%s %s: %s", refusals[i].peer, refusals[i].keys, weir_last_error());
		assert_null(storage);
		peer_end(&peer);
	}
}

/* It has CAP.TO to become ready, in units of 500 ms and one more: the sentence says how long that was. */
static void a_controller_has_its_time_to_start(void **state)
{
	struct weir_storage *storage;
	char said[512] = "";
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO);

	(void)state;
	assert_non_null(file);
	assert_true(peer_start(&peer, "unready --to 1"));
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	assert_true(open_storage("", &storage) < 0);
	dup2(before, STDERR_FILENO);
	close(before);
	assert_true(pread(fileno(file), said, sizeof(said) - 1, 0) >= 0);
	fclose(file);
	peer_end(&peer);
	if (!strstr(said, "did not finish its start within 1000 ms") &&
	    !strstr(weir_last_error(), "did not finish its start within 1000 ms"))
		fail_msg("%s; %s", said, weir_last_error());
}

static void addresses_are_read_strictly(void **state)
{
	static const char *const bad[] = {
		"nvmf:127.0.0.1/nqn.a",
		"nvmf:tcp://",
		"nvmf:tcp:///nqn.a",
		"nvmf:tcp://h:0/nqn.a",
		"nvmf:tcp://h:65536/nqn.a",
		"nvmf:tcp://h:x/nqn.a",
		"nvmf:tcp://[::1/nqn.a",
		"nvmf:tcp://[::1]x/nqn.a",
		"nvmf:tcp://h,/nqn.a",
		"nvmf:tcp://h/disk",
		"nvmf:tcp://1,2,3,4,5,6,7,8,9/nqn.a",
		"nvmf:rdma://h/disk",
		"nvmf:fc://h/nqn.a",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct weir_storage *storage;
		int error = weir_storage_open(context, bad[i], NULL, &storage);

		if (error != -EINVAL && error != -ENOTSUP)
			fail_msg("%s: %d, %s", bad[i], error, weir_last_error());
		assert_non_null(strstr(weir_last_error(), bad[i]));
	}
}

static void nobody_listens(void **state)
{
	struct weir_storage *storage;

	(void)state;
	assert_true(peer_start(&peer, ""));
	peer_end(&peer);
	assert_true(open_storage("", &storage) < 0);
	assert_non_null(strstr(weir_last_error(), "cannot connect to 127.0.0.1"));
}

/* Of two hosts the first does not answer: the second one serves. */
static void the_next_host_is_tried(void **state)
{
	struct weir_storage *storage;
	char uri[PEER_URI_BYTES];

	(void)state;
	assert_true(peer_start(&peer, ""));
	snprintf(uri, sizeof(uri), "nvmf:tcp://127.0.0.1:1,127.0.0.1:%u/nqn.2026-11.test:peer", peer.port);
	must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .queues = QUEUES, .depth = DEPTH),
			       &storage));
	check_round(storage, 0, 65536, 5);
	must(weir_storage_close(storage));
	peer_end(&peer);
}

/* The ANA state of namespace 1, as it is read of a peer with @args. */
static uint32_t ana_state(const char *args)
{
	struct weir_path_report reports[WEIR_ADDRESS_MOST];
	char uri[PEER_URI_BYTES];
	unsigned count;

	assert_true(peer_start(&peer, args));
	must(weir_fabrics_paths(peer_uri(&peer, "nsid=1&connect_ms=60000", uri), reports, &count));
	peer_end(&peer);
	assert_int_equal(count, 1);
	if (reports[0].error)
		fail_msg("%s", reports[0].sentence);
	return reports[0].state;
}

/* A controller's log is read in parts that are no longer than its transfers, and no further than it goes. */
static void the_ana_log_is_read_in_parts(void **state)
{
	(void)state;
	assert_int_equal(ana_state("--ana 300 --mdts 1"), NVME_ANA_NON_OPTIMIZED);
	assert_int_equal(peer_printed(&peer, "log 0 8192"), 1);
	assert_int_equal(peer_printed(&peer, "log 8192 8192"), 1);
	assert_int_equal(ana_state("--ana 300"), NVME_ANA_NON_OPTIMIZED);
	assert_int_equal(peer_printed(&peer, "log 0 16384"), 1);
	assert_int_equal(ana_state("--ana 1 --mdts 1"), NVME_ANA_NON_OPTIMIZED);
	assert_int_equal(peer_printed(&peer, "log"), 1);
}

static void connect_once(void)
{
	struct weir_storage *storage;

	must(open_storage("", &storage));
	must(weir_storage_close(storage));
}

static void connect_in_vain(void)
{
	struct weir_storage *storage;

	assert_true(open_storage("", &storage) < 0);
}

/* A storage that was closed keeps a page and a note until its context is closed. */
static void leave_nothing_behind(void (*once)(void), unsigned count)
{
	struct test_has before;

	for (unsigned i = 0; i < 3; i++)
		once();
	before = test_has();
	for (unsigned i = 0; i < count; i++)
		once();
	test_keeps(before, (1 << 20) + (uint64_t)count * KEPT_BYTES);
}

/* WEIR_TEST_CONNECTS=10000 makes a long test of it. */
static void connects_leave_nothing_behind(void **state)
{
	const char *times = getenv("WEIR_TEST_CONNECTS");
	unsigned count = times ? (unsigned)strtoul(times, NULL, 10) : SOME_CONNECTS;

	(void)state;
	assert_true(peer_start(&peer, ""));
	leave_nothing_behind(connect_once, count);
	peer_end(&peer);
	assert_int_equal(peer.connects, count + 3);
}

static void opens_that_fail_leave_nothing_behind(void **state)
{
	(void)state;
	assert_true(peer_start(&peer, "--nqn nqn.2026-11.test:other"));
	leave_nothing_behind(connect_in_vain, SOME_CONNECTS);
	peer_end(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_good_peer_keeps_the_data),
		cmocka_unit_test(a_fault_costs_a_connection_and_no_data),
		cmocka_unit_test(nothing_new_before_what_is_sent_again),
		cmocka_unit_test(a_short_answer_is_an_error),
		cmocka_unit_test(a_protected_namespace_is_read_only),
		cmocka_unit_test(a_transfer_beyond_its_limit_is_refused),
		cmocka_unit_test(a_refused_flush_is_said_at_the_end),
		cmocka_unit_test(a_silent_command_is_recovered_from),
		cmocka_unit_test(a_mute_controller_is_given_up),
		cmocka_unit_test(a_restarted_target_is_found_again),
		cmocka_unit_test(a_smaller_namespace_is_not_gone_on_with),
		cmocka_unit_test(another_namespace_is_not_gone_on_with),
		cmocka_unit_test(the_same_namespace_is_gone_on_with),
		cmocka_unit_test(whatever_cannot_be_opened_says_why),
		cmocka_unit_test(a_controller_has_its_time_to_start),
		cmocka_unit_test(addresses_are_read_strictly),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(the_next_host_is_tried),
		cmocka_unit_test(the_ana_log_is_read_in_parts),
		cmocka_unit_test(connects_leave_nothing_behind),
		cmocka_unit_test(opens_that_fail_leave_nothing_behind),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, open_context, close_context);
}
