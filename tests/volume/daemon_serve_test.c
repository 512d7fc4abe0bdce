/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon_serve_test.c: the daemon's loop over stand-in engines, and calls that come while it is at work with
 * them. The test runs in the daemon's own thread, before each command to an engine; each takes its time by
 * the test's clock.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "daemon_client.h"
#include "volume/daemon/serve.h"
#include "volume/rpc.h"

enum { CLIENTS = 1000, COMMAND_MS = 20, LONG_MS = LEASE_MS / 8 };

/** struct caller - a client's connection; @asked: a call is under way; @answers: that came, @refused of them
 * with -EAGAIN; @last: code of the last one */
struct caller {
	struct weir_rpc *rpc;
	bool asked;
	unsigned answers;
	unsigned refused;
	int last;
};

static struct caller renewing, mapping, opening;
static unsigned at_work, commands; /* renewals, and commands to engines, while an engine came in */
static int signals[2];

static json_t *request(const char *method, json_t *params)
{
	return json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", 1, "method", method, "params",
			 params ? params : json_object());
}

static json_t *renewal(void)
{
	return json_pack("{s:s, s:i, s:I}", "name", "v", "client", writer.number, "epoch",
			 (json_int_t)writer.lease);
}

static json_t *opened(void)
{
	return json_pack("{s:s, s:s}", "name", "v", "hostnqn", OTHER);
}

/* Send a call, or take its answer if it is there. */
static void call(struct caller *caller, const char *method, json_t *params)
{
	json_t *reply = NULL;

	if (!caller->asked) {
		assert_int_equal(weir_rpc_send(caller->rpc, request(method, params), 1000), 0);
		caller->asked = true;
		return;
	}
	json_decref(params);
	if (weir_rpc_receive(caller->rpc, 0, &reply) != 0)
		return;
	caller->asked = false;
	caller->answers++;
	caller->last = (int)json_integer_value(json_object_get(json_object_get(reply, "error"), "code"));
	caller->refused += caller->last == -EAGAIN;
	json_decref(reply);
}

/* The map that keeps clients off is there; the one that follows is not yet. */
static bool changes_over(void)
{
	return d->copy.task == VOLUMED_JOIN && d->rebuilding;
}

static void ask_meanwhile(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	unsigned answered = renewing.answers;

	(void)engines, (void)opcode, (void)engine;
	clock_ms += COMMAND_MS;
	if (!changes_over())
		return;
	commands++;
	call(&renewing, "lease_renew", renewal());
	call(&mapping, "map_get", NULL);
	call(&opening, "volume_open", opened());
	at_work += renewing.answers - answered;
	assert_int_equal(opening.answers, 0);
	assert_int_equal(mapping.answers, mapping.refused);
}

static void open_caller(struct caller *caller, const char *path)
{
	*caller = (struct caller){ .asked = false };
	assert_int_equal(weir_rpc_open(path, NULL, 1000, &caller->rpc), 0);
}

static char path[sizeof("/tmp/weir-daemon-serve-XXXXXX")]; /* where clients are listened for */

static int begin_listening(void)
{
	int file, listener;

	strcpy(path, "/tmp/weir-daemon-serve-XXXXXX");
	file = mkstemp(path);
	assert_true(file >= 0);
	(void)close(file);
	(void)unlink(path);
	assert_int_equal(pipe(signals), 0);
	listener = weir_rpc_listen(path);
	assert_true(listener >= 0);
	return listener;
}

/* Until a case ends it by SIGTERM. */
static void serve(int listener)
{
	assert_int_equal(
		volumed_serve(d, &(struct volumed_listeners){ .sockets = &listener, .count = 1 }, signals[0]),
		15);
}

static void end_listening(int listener)
{
	(void)close(listener);
	(void)unlink(path);
	(void)close(signals[0]);
	(void)close(signals[1]);
}

/* Ends the loop once the call that waited has been answered. */
static uint64_t end_when_opened(void)
{
	static const struct signalfd_siginfo end = { .ssi_signo = 15 };

	if (opening.asked && d->counts.taken_in == 1 && d->copy.task == VOLUMED_IDLE)
		call(&opening, "volume_open", NULL);
	if (opening.answers == 1) {
		opening.answers++;
		assert_int_equal(write(signals[1], &end, sizeof(end)), sizeof(end));
	}
	return clock_ms += COMMAND_MS; /* poll() waits by another clock */
}

static void test_calls_are_answered_while_an_engine_comes_in(void **state)
{
	int listener;

	(void)state;
	begin_written(4);
	array.engines[1].dead = true;
	settle();
	write_all(2000);
	stand_in_restart(&array.engines[1], false);
	listener = begin_listening();
	open_caller(&renewing, path);
	open_caller(&mapping, path);
	open_caller(&opening, path);
	at_work = commands = 0;
	array.on_command = ask_meanwhile;
	d->options.now_ms = end_when_opened;
	d->heartbeat_at_ms = 0;
	serve(listener);
	assert_int_equal(d->counts.taken_in, 1);
	assert_true(commands > 8);
	assert_true(at_work > commands / 3);
	assert_true(mapping.refused > commands / 20);
	assert_int_equal(renewing.last, 0);
	assert_int_equal(opening.last, 0);
	end_listening(listener);
	weir_rpc_close(renewing.rpc);
	weir_rpc_close(mapping.rpc);
	weir_rpc_close(opening.rpc);
}

enum { CALLS_OF_CLOCK = 1000 };

static unsigned clock_calls;

/* Ends the loop after a while. */
static uint64_t end_later(void)
{
	static const struct signalfd_siginfo end = { .ssi_signo = 15 };

	if (++clock_calls == CALLS_OF_CLOCK)
		assert_int_equal(write(signals[1], &end, sizeof(end)), sizeof(end));
	return clock_ms += 1;
}

static void open_to_write(struct caller *caller, const char *path, const char *host)
{
	open_caller(caller, path);
	call(caller, "volume_open",
	     json_pack("{s:s, s:s, s:b}", "name", "v", "hostnqn", host, "write", true));
}

/* A client at @where has waited for as long as it would: the lease is for the next one, who waits still. */
static void give_up_waiting(int listener, const char *where)
{
	start_daemon(3, 0, true);
	make_volume();
	open_to_write(&renewing, where, HOST);
	weir_rpc_close(renewing.rpc);
	open_to_write(&opening, where, OTHER);
	clock_calls = 0;
	d->options.now_ms = end_later;
	d->options.heartbeat_ms = 1;
	serve(listener);
	assert_int_equal(d->counts.leases, 2);
	call(&opening, "volume_open", NULL);
	assert_int_equal(opening.answers, 1);
	assert_int_equal(opening.last, 0);
	do_call("volume_delete", json_pack("{s:s}", "name", "v"), -EBUSY); /* it has the lease */
	assert_int_equal(d->counts.equalized, 0);
	weir_rpc_close(opening.rpc);
}

static void test_a_client_that_has_gone_gets_no_lease(void **state)
{
	int listener = begin_listening();

	(void)state;
	give_up_waiting(listener, path);
	end_listening(listener);
}

/* One that closes a connection by TCP has ended its half of it alone. */
static void test_a_client_that_has_gone_far_away_gets_no_lease(void **state)
{
	struct sockaddr_in at;
	socklen_t bytes = sizeof(at);
	char where[32];
	int listener;

	(void)state;
	assert_int_equal(pipe(signals), 0);
	listener = weir_rpc_listen("127.0.0.1:0");
	assert_true(listener >= 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
	(void)snprintf(where, sizeof(where), "127.0.0.1:%u", ntohs(at.sin_port));
	give_up_waiting(listener, where);
	(void)close(listener);
	(void)close(signals[0]);
	(void)close(signals[1]);
}

enum { MANY_VOLUMES = 8000, MOST_CALLS = 20000 };

static int list_code;

/* A list of all volumes, which no message has room for, then one that has. */
static uint64_t ask_for_lists(void)
{
	static const struct signalfd_siginfo end = { .ssi_signo = 15 };

	if (!opening.answers) {
		call(&opening, "volume_list", NULL);
		list_code = opening.last;
	} else if (opening.answers == 1) {
		call(&opening, "status", NULL);
	}
	if (opening.answers == 2 || ++clock_calls > MOST_CALLS)
		assert_int_equal(write(signals[1], &end, sizeof(end)), sizeof(end));
	return clock_ms += 1;
}

/* An answer that is too long for a message is refused, and the connection goes on. */
static void test_a_list_that_is_too_long(void **state)
{
	struct nvme_volume info = { .vid = 1, .replicas = 2, .weight = 100, .blocks = 1, .name = "v" };
	int listener;

	(void)state;
	start_daemon(2, 0, true);
	for (; info.vid <= MANY_VOLUMES; info.vid++)
		assert_non_null(volumed_volume_insert(d, &info));
	listener = begin_listening();
	open_caller(&opening, path);
	clock_calls = 0;
	list_code = 0;
	d->options.now_ms = ask_for_lists;
	d->options.heartbeat_ms = 1;
	serve(listener);
	assert_int_equal(list_code, -EMSGSIZE);
	assert_int_equal(opening.answers, 2);
	assert_int_equal(opening.last, 0);
	end_listening(listener);
	weir_rpc_close(opening.rpc);
}

enum { BEAT_MS = 50, FULL_BEATS = 10, MOST_BEATS = 1000, FEW_CALLS = 2000 };

static struct rlimit all_files;
static unsigned beats, full_calls; /* of the clock, while no file could be opened */

static void count_beats(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	(void)engines;
	beats += opcode == NVME_ADMIN_VOLUME_STATUS && !engine;
}

/* The machine's clock. For some heartbeats no file can be opened; the client's answer ends the loop. */
static uint64_t full_for_a_while(void)
{
	static const struct signalfd_siginfo end = { .ssi_signo = 15 };
	struct timespec time;

	clock_calls++;
	if (beats >= FULL_BEATS && !full_calls) {
		full_calls = clock_calls;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &all_files), 0);
	}
	if (full_calls && opening.asked)
		call(&opening, "status", NULL);
	if (full_calls && (!opening.asked || beats > MOST_BEATS))
		assert_int_equal(write(signals[1], &end, sizeof(end)), sizeof(end));
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* From here on there is no file for the next one that is opened. */
static void use_up_files(void)
{
	struct rlimit few;
	int next = dup(signals[0]);

	assert_true(next >= 0);
	(void)close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all_files), 0);
	few = (struct rlimit){ (rlim_t)next, all_files.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

/* A client waits to be accepted, and there is no file for it: the loop does not go round meanwhile, and takes
 * it afterwards. */
static void test_without_files_the_loop_rests(void **state)
{
	int listener;

	(void)state;
	start_daemon(2, 0, true);
	listener = begin_listening();
	open_caller(&opening, path);
	call(&opening, "status", NULL);
	clock_calls = beats = full_calls = 0;
	array.on_command = count_beats;
	d->options.now_ms = full_for_a_while;
	d->options.heartbeat_ms = BEAT_MS;
	d->heartbeat_at_ms = 0;
	use_up_files();
	serve(listener);
	assert_true(full_calls < FEW_CALLS);
	assert_int_equal(opening.answers, 1);
	assert_int_equal(opening.last, 0);
	end_listening(listener);
	weir_rpc_close(opening.rpc);
}

/* ---- without sockets ---- */

static unsigned sent, most_sent, asked;

static void take_long(struct stand_in_array *engines, u32 opcode, unsigned engine)
{
	(void)engines, (void)opcode, (void)engine;
	sent++;
	most_sent = sent > most_sent ? sent : most_sent;
	clock_ms += changes_over() || d->volumes[0].unclean ? LONG_MS : 0;
}

static int code_between(const char *method, json_t *params)
{
	json_t *asks = request(method, params), *reply = volumed_answer_between(d, NULL, asks);
	int code = (int)json_integer_value(json_object_get(json_object_get(reply, "error"), "code"));

	json_decref(asks);
	json_decref(reply);
	return code;
}

static void renew_between(void *argument)
{
	(void)argument;
	sent = 0;
	if (!changes_over())
		return;
	asked++;
	assert_int_equal(code_between("lease_renew", renewal()), 0);
	assert_int_equal(code_between("status", NULL), 0);
	assert_int_equal(code_between("engine_list", NULL), 0);
	assert_int_equal(code_between("volume_info", json_pack("{s:s}", "name", "v")), 0);
	assert_int_equal(code_between("volume_burn", NULL), -32601);
	assert_int_equal(code_between("map_get", NULL), -EAGAIN);
	assert_int_equal(code_between("volume_open", opened()), -EAGAIN);
}

/* All of a lease is over many times while clients are kept off. */
static void test_a_lease_is_renewed_while_an_engine_comes_in(void **state)
{
	(void)state;
	begin_written(4);
	array.engines[1].dead = true;
	settle();
	write_all(2000);
	stand_in_restart(&array.engines[1], false);
	asked = most_sent = 0;
	array.on_command = take_long;
	d->between = (struct volume_between){ renew_between, NULL };
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	assert_true(asked > 30);
	assert_int_equal(most_sent, 1);
	write_all(3000);
	check_all(&writer);
}

static void count_between(void *argument)
{
	(void)argument;
	sent = 0;
}

static void test_renewals_wait_for_one_command(void **state)
{
	(void)state;
	begin_written(4);
	most_sent = sent = 0;
	array.on_command = take_long;
	d->between = (struct volume_between){ count_between, NULL };
	write_one(5, 1, 55);
	do_call("lease_end", json_pack("{s:s}", "name", "v"), 0); /* blocks are made equal */
	assert_true(d->counts.equalized > 0);
	stand_in_restart(&array.engines[2], true); /* it is brought, copied to, and taken in */
	settle();
	assert_int_equal(d->counts.taken_in, 1);
	assert_int_equal(most_sent, 1);
}

/* ---- how fast blocks are copied ---- */

enum { RATE = 2000, FAST_STEPS = 50, MOST_AT_ONCE = 4 };

static unsigned count_copies(struct stand_in_array *engines)
{
	unsigned count = 0;

	for (unsigned i = 0; i < STAND_IN_ENGINES; i++)
		count += engines->engines[i].writes;
	return count;
}

/* The clock stands still but for a millisecond at a time; in each the daemon gets as many steps as it likes.
 */
static void test_copying_leaves_engines_to_clients(void **state)
{
	unsigned from, before, ms = 0;

	(void)state;
	begin_written(4);
	d->options.rebuild_blocks = RATE;
	array.engines[1].dead = true;
	volumed_heartbeat(d);
	suspect(&writer, 1); /* it is out */
	assert_int_equal(d->copy.task, VOLUMED_REBUILD);
	from = count_copies(&array);
	for (; d->rebuilding && ms < 60000; ms++) {
		before = count_copies(&array);
		for (unsigned i = 0; i < FAST_STEPS; i++)
			(void)volumed_step(d);
		assert_true(count_copies(&array) - before <= MOST_AT_ONCE);
		clock_ms++;
	}
	assert_false(d->rebuilding);
	assert_true(count_copies(&array) - from <= ms * RATE / 1000 + MOST_AT_ONCE);
	assert_true(ms < VOLUMED_HEARTBEAT_MS + 4 * BLOCKS * 1000 / RATE); /* lists have steps, too */
	check_all(&writer);
}

/* As the machine is set up. */
static int most_waiting(void)
{
	FILE *file = fopen("/proc/sys/net/core/somaxconn", "r");
	int most = 0;

	if (!file || fscanf(file, "%d", &most) != 1)
		most = 0;
	if (file)
		(void)fclose(file);
	return most;
}

/* A thousand clients that come at once, as after the daemon's restart. */
static void test_a_thousand_clients_connect(void **state)
{
	static struct weir_rpc *clients[CLIENTS];
	char path[] = "/tmp/weir-daemon-serve-XXXXXX";
	struct rlimit files;
	int file = mkstemp(path), listener;

	(void)state;
	start_daemon(1, 0, false);
	if (most_waiting() < CLIENTS)
		skip();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	(void)close(file);
	(void)unlink(path);
	listener = weir_rpc_listen(path);
	assert_true(listener >= 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_int_equal(weir_rpc_open(path, NULL, 0, &clients[i]), 0);
	for (unsigned i = 0; i < CLIENTS; i++)
		weir_rpc_close(clients[i]);
	(void)close(listener);
	(void)unlink(path);
}

/* A loop that cannot wait for its sockets is no end that anybody asked for. */
static void test_a_loop_that_cannot_wait_says_so(void **state)
{
	struct rlimit files, fewer;
	int listener, result;

	(void)state;
	start_daemon(1, 0, false);
	listener = begin_listening();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	fewer = files;
	fewer.rlim_cur = 1; /* poll() takes no more than that */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &fewer), 0);
	result =
		volumed_serve(d, &(struct volumed_listeners){ .sockets = &listener, .count = 1 }, signals[0]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	assert_int_equal(result, -EINVAL);
	assert_non_null(strstr(weir_last_error(), "cannot wait"));
	end_listening(listener);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(test_calls_are_answered_while_an_engine_comes_in),
		CASE(test_a_client_that_has_gone_gets_no_lease),
		CASE(test_a_client_that_has_gone_far_away_gets_no_lease),
		CASE(test_a_list_that_is_too_long),
		CASE(test_without_files_the_loop_rests),
		CASE(test_a_lease_is_renewed_while_an_engine_comes_in),
		CASE(test_renewals_wait_for_one_command),
		CASE(test_copying_leaves_engines_to_clients),
		CASE(test_a_thousand_clients_connect),
		CASE(test_a_loop_that_cannot_wait_says_so),
	};

	return cmocka_run_group_tests_name("daemon_serve", tests, NULL, NULL);
}
