/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon_hosts_test.c: who may ask the daemon for what, and how a host proves which one it is. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <weir/weir.h>

#include "backend/error.h"
#include "daemon_client.h"
#include "transport/fabrics/chap.h"
#include "transport/fabrics/tls.h"
#include "volume/daemon/serve.h"
#include "volume/rpc.h"

enum { WAIT_MS = 60000, SHORT_MS = 100, NAME_BYTES = 64 };

#define THIRD   "nqn.2026-11.org.example:host-c"
#define MANAGER "nqn.2026-11.org.example:manager"

/* ---- rights ---- */

static const struct volumed_caller believed = { .host = NULL };
static const struct volumed_caller owner = { .host = HOST }; /* client 1 of "v" */
static const struct volumed_caller other = { .host = OTHER };
static const struct volumed_caller third = { .host = THIRD };
static const struct volumed_caller manager = { .host = MANAGER, .manager = true };
static const struct volumed_caller stranger = { .unauthenticated = true };

/* Whether @caller is refused for who it is; what else may be wrong with the call does not matter. */
static bool is_denied(const struct volumed_caller *caller, const char *method, const char *params)
{
	json_t *request = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", 1, "method", method,
				    "params", json_loads(params, 0, NULL));
	json_t *reply = volumed_answer(d, caller, request);
	json_int_t code = json_integer_value(json_object_get(json_object_get(reply, "error"), "code"));

	json_decref(reply);
	json_decref(request);
	return code == -EACCES;
}

/* Denied to all but those of @may: b(elieved), o(wner), O(ther), t(hird), m(anager). */
static void check_right(const char *method, const char *params, const char *may)
{
	const struct {
		const struct volumed_caller *caller;
		char letter;
	} callers[] = { { &stranger, 's' }, { &third, 't' },   { &other, 'O' },
			{ &owner, 'o' },    { &manager, 'm' }, { &believed, 'b' } };

	for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++)
		if (is_denied(callers[i].caller, method, params) != !strchr(may, callers[i].letter))
			fail_msg("%s %s: caller '%c', who %s", method, params, callers[i].letter,
				 strchr(may, callers[i].letter) ? "may, is denied"
								: "may not, is not denied");
}

static void test_rights(void **state)
{
	(void)state;
	begin_written(3);
	check_right("volume_open", "{\"name\":\"v\",\"hostnqn\":\"" HOST "\"}", "ob");
	check_right("volume_open", "{\"name\":\"v\",\"hostnqn\":\"" OTHER "\"}", "Ob");
	check_right("lease_renew", "{\"name\":\"v\",\"client\":1,\"epoch\":1}", "omb");
	check_right("lease_renew", "{\"name\":\"v\",\"client\":2,\"epoch\":1}", "Omb");
	check_right("lease_release", "{\"name\":\"v\",\"client\":2,\"epoch\":1}", "Omb");
	check_right("block_damaged", "{\"name\":\"v\",\"id\":1,\"vba\":0,\"blocks\":1}", "oOmb");
	check_right("volume_info", "{\"name\":\"v\"}", "oOmb");
	check_right("volume_info", "{\"name\":\"none\"}", "mb");
	check_right("map_get", "{}", "oOtmb");
	check_right("engine_suspect", "{\"id\":9,\"map_epoch\":0}", "oOtmb");
	check_right("volume_list", "{}", "mb");
	check_right("engine_list", "{}", "mb");
	check_right("status", "{}", "mb");
	check_right("lease_end", "{\"name\":\"none\"}", "mb");
	check_right("volume_create", "{\"name\":\"v\",\"bytes\":4096}", "mb");
	check_right("volume_resize", "{\"name\":\"none\",\"bytes\":4096}", "mb");
	check_right("volume_delete", "{\"name\":\"none\"}", "mb");
	check_right("volume_chmod", "{\"name\":\"none\",\"hostnqn\":\"" THIRD "\",\"rights\":\"rw\"}", "mb");
	check_right("engine_add", "{\"address\":\"\",\"nqn\":\"\"}", "mb");
	check_right("engine_remove", "{\"id\":99}", "mb");
	check_right("engine_keep", "{\"id\":99}", "mb");
}

/* A host that may do nothing with a volume any more gives its lease back, and asks for nothing else. */
static void test_rights_that_end(void **state)
{
	(void)state;
	begin_written(3);
	do_call("volume_chmod", json_pack("{s:s, s:s, s:s}", "name", "v", "hostnqn", HOST, "rights", ""), 0);
	check_right("volume_info", "{\"name\":\"v\"}", "Omb");
	check_right("lease_release", "{\"name\":\"v\",\"client\":1,\"epoch\":1}", "omb");
}

/* ---- sockets ---- */

static struct volumed_hosts hosts;
static char folder[] = "/tmp/weir-hosts-XXXXXX";
static char address[NAME_BYTES];
static int listeners[2], stop[2];
static pthread_t thread;

static void make_key(const char *name, struct weir_tls_key *key)
{
	char text[WEIR_TLS_KEY_TEXT];
	FILE *file;

	assert_int_equal(weir_tls_key_text(text), 0);
	assert_int_equal(weir_tls_key_parse(text, key), 0);
	assert_int_equal(chdir(folder), 0);
	(void)umask(077);
	file = fopen(name, "w");
	assert_non_null(file);
	fprintf(file, "%s\n", text);
	fclose(file);
}

static void *serve(void *argument)
{
	(void)argument;
	(void)volumed_serve(
		d, &(struct volumed_listeners){ .sockets = listeners, .count = 2, .hosts = &hosts }, stop[0]);
	return NULL;
}

static int listen_somewhere(void)
{
	unsigned port = 20000 + (unsigned)getpid() % 20000;
	int found = -1;

	for (unsigned i = 0; i < 1000 && found < 0; i++) {
		snprintf(address, sizeof(address), "127.0.0.1:%u", ++port);
		found = weir_rpc_listen(address);
	}
	assert_true(found >= 0);
	return found;
}

static uint64_t real_now(void)
{
	return clock_ms;
}

static int begin_with(void **state, unsigned host_count)
{
	char path[NAME_BYTES];

	if (!weir_chap_available()) /* no TLS in this build: the case is skipped */
		return 0;
	set_up(state);
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	assert_non_null(mkdtemp(folder));
	memset(&hosts, 0, sizeof(hosts));
	hosts.entries[0].nqn = HOST;
	hosts.entries[1].nqn = MANAGER;
	hosts.entries[1].manager = true;
	hosts.count = host_count;
	make_key("host", &hosts.entries[0].key);
	make_key("manager", &hosts.entries[1].key);
	begin_written(3);
	d->options.now_ms = real_now;
	snprintf(path, sizeof(path), "%s/socket", folder);
	listeners[0] = listen_somewhere();
	listeners[1] = weir_rpc_listen(path);
	assert_true(listeners[1] >= 0);
	assert_int_equal(pipe(stop), 0);
	return pthread_create(&thread, NULL, serve, NULL);
}

static int begin(void **state)
{
	return begin_with(state, 2);
}

static int begin_without_keys(void **state)
{
	return begin_with(state, 0);
}

static int end(void **state)
{
	static const struct signalfd_siginfo signal = { .ssi_signo = 15 };
	char command[2 * NAME_BYTES];

	if (!weir_chap_available())
		return 0;
	assert_int_equal(write(stop[1], &signal, sizeof(signal)), sizeof(signal));
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < 2; i++) {
		(void)close(listeners[i]);
		(void)close(stop[i]);
	}
	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	return tear_down(state);
}

/* What a call of whoever has the key in @file as @host ends with; @file NULL: without TLS. */
static int try(const char *host, const char *file, const char *method, json_t *params)
{
	const struct weir_rpc_identity identity = { host, file };
	struct weir_rpc *rpc;
	int error = weir_rpc_open(address, file ? &identity : NULL, WAIT_MS, &rpc);

	if (error) {
		json_decref(params);
		return error;
	}
	error = weir_rpc_call(rpc, method, params, WAIT_MS, NULL);
	weir_rpc_close(rpc);
	return error;
}

static void says(const char *words)
{
	if (!strstr(weir_last_error(), words))
		fail_msg("'%s' is not in: %s", words, weir_last_error());
}

static void test_a_host_proves_itself(void **state)
{
	(void)state;
	if (!weir_chap_available())
		skip();
	assert_int_equal(try(HOST, "host", "map_get", NULL), 0);
	assert_int_equal(try(HOST, "host", "volume_info", json_pack("{s:s}", "name", "v")), 0);
	assert_int_equal(try(HOST, "host", "status", NULL), -EACCES);
	says("is no manager");
	assert_int_equal(try(MANAGER, "manager", "status", NULL), 0);
	assert_int_equal(try(HOST, "manager", "map_get", NULL), -EACCES); /* with another one's key */
	says("refuses the TLS key of host " HOST);
	assert_int_equal(try(THIRD, "host", "map_get", NULL), -EACCES);
	assert_int_equal(
		try(HOST, "host", "volume_open", json_pack("{s:s, s:s}", "name", "v", "hostnqn", OTHER)),
		-EACCES);
	says("the connection is of host " HOST);
	assert_int_equal(try(HOST, "none", "map_get", NULL), -ENOENT);
}

static void test_without_tls(void **state)
{
	struct weir_rpc *rpc;

	(void)state;
	if (!weir_chap_available())
		skip();
	assert_int_equal(try(NULL, NULL, "map_get", NULL), -EACCES);
	says("takes hosts by TLS only");
	strcpy(address, folder); /* by the local socket everybody is believed, with a key or without */
	strcat(address, "/socket");
	assert_int_equal(try(NULL, NULL, "status", NULL), 0);
	assert_int_equal(try(HOST, "host", "status", NULL), 0);
	assert_int_equal(weir_rpc_open(address, NULL, WAIT_MS, &rpc), 0);
	weir_rpc_close(rpc);
}

/* One that begins a handshake and says no more keeps nobody else waiting; nor does one that goes on in clear.
 */
static void test_halves_of_handshakes(void **state)
{
	static const char hello[] = { WEIR_TLS_HANDSHAKE, 3, 1, 0, 100, 1 };
	struct weir_rpc *silent, *loud;
	json_t *message;

	(void)state;
	if (!weir_chap_available())
		skip();
	assert_int_equal(weir_rpc_open(address, NULL, WAIT_MS, &silent), 0);
	assert_int_equal(weir_rpc_open(address, NULL, WAIT_MS, &loud), 0);
	assert_int_equal(send(weir_rpc_socket(silent), hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(send(weir_rpc_socket(loud), hello, 1, 0), 1);
	assert_int_equal(try(HOST, "host", "map_get", NULL), 0);
	assert_int_equal(weir_rpc_send(loud, json_pack("{s:i, s:s}", "id", 5, "method", "status"), WAIT_MS),
			 0);
	assert_int_not_equal(weir_rpc_receive(loud, WAIT_MS, &message), -EAGAIN); /* it is closed */
	assert_true(weir_rpc_broken(loud));
	assert_int_equal(weir_rpc_receive(silent, SHORT_MS, &message), -EAGAIN);
	weir_rpc_close(silent);
	weir_rpc_close(loud);
}

/* Answers longer than a record of TLS, and than what is read at a time. */
static void test_long_answers(void **state)
{
	const struct weir_rpc_identity identity = { MANAGER, "manager" };
	struct weir_rpc *rpc;
	json_t *result;

	(void)state;
	if (!weir_chap_available())
		skip();
	for (unsigned i = 0; i < 3; i++) {
		json_t *name = json_sprintf("%0*d", 40000, 7);

		assert_int_equal(weir_rpc_open(address, &identity, WAIT_MS, &rpc), 0);
		assert_int_equal(
			weir_rpc_call(rpc, "volume_info", json_pack("{s:o}", "name", name), WAIT_MS, &result),
			-ENOENT);
		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(
				weir_rpc_send(rpc, json_pack("{s:i, s:s}", "id", (int)j, "method", "status"),
					      WAIT_MS),
				0);
		for (unsigned j = 0; j < 3; j++) {
			assert_int_equal(weir_rpc_receive(rpc, WAIT_MS, &result), 0);
			json_decref(result);
		}
		weir_rpc_close(rpc);
	}
}

/* A key is a host's for the daemon: not one of another host, nor one that it has for an engine. */
static void test_keys_are_for_the_daemon(void **state)
{
	struct weir_tls_psk psk, found;

	(void)state;
	if (!weir_chap_available())
		skip();
	assert_true(weir_tls_derive(&hosts.entries[0].key, HOST, WEIR_RPC_NQN, &psk));
	assert_true(volumed_host_psk(&hosts, psk.identity, &found));
	assert_string_equal(found.identity, psk.identity);
	assert_true(weir_tls_derive(&hosts.entries[0].key, HOST, "nqn.2026-11.org.example:engine", &psk));
	assert_false(volumed_host_psk(&hosts, psk.identity, &found));
	assert_true(weir_tls_derive(&hosts.entries[1].key, HOST, WEIR_RPC_NQN, &psk));
	assert_false(volumed_host_psk(&hosts, psk.identity, &found));
}

/* Two calls that come together are both answered, and what follows them when it is whole. */
static void test_calls_that_come_together(void **state)
{
	static const char calls[] =
		"{\"id\":1,\"method\":\"status\"}\n{\"id\":2,\"method\":\"map_get\"}\n{\"id\"",
			  rest[] = ":3,\"method\":\"status\"}\n";
	struct weir_rpc *rpc;

	(void)state;
	if (!weir_chap_available())
		skip();
	assert_int_equal(weir_rpc_open(address, NULL, WAIT_MS, &rpc), 0);
	assert_int_equal(send(weir_rpc_socket(rpc), calls, sizeof(calls) - 1, 0), sizeof(calls) - 1);
	for (json_int_t i = 1; i <= 3; i++) {
		json_t *reply;

		if (i == 3)
			assert_int_equal(send(weir_rpc_socket(rpc), rest, sizeof(rest) - 1, 0),
					 sizeof(rest) - 1);
		assert_int_equal(weir_rpc_receive(rpc, WAIT_MS, &reply), 0);
		assert_int_equal(json_integer_value(json_object_get(reply, "id")), i);
		assert_non_null(json_object_get(reply, "result"));
		json_decref(reply);
	}
	weir_rpc_close(rpc);
}

/* A daemon that has no keys closes what begins with TLS. */
static void test_no_keys(void **state)
{
	(void)state;
	if (!weir_chap_available())
		skip();
	assert_int_equal(try(NULL, NULL, "status", NULL), 0);
	assert_int_equal(try(HOST, "host", "status", NULL), -EPROTO);
	says("does not answer with TLS");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rights, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rights_that_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_host_proves_itself, begin, end),
		cmocka_unit_test_setup_teardown(test_without_tls, begin, end),
		cmocka_unit_test_setup_teardown(test_halves_of_handshakes, begin, end),
		cmocka_unit_test_setup_teardown(test_long_answers, begin, end),
		cmocka_unit_test_setup_teardown(test_no_keys, begin_without_keys, end),
		cmocka_unit_test_setup_teardown(test_keys_are_for_the_daemon, begin, end),
		cmocka_unit_test_setup_teardown(test_calls_that_come_together, begin_without_keys, end),
	};

	return cmocka_run_group_tests_name("daemon_hosts", tests, NULL, NULL);
}
