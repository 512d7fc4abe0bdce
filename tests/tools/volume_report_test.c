/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-volume asks of the daemon for each command line, and what it prints of the answers: a stand-in is
 * the daemon. */
#include "capture.h"

#include <errno.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "backend/error.h"
#include "transport/fabrics/identity.h"
#include "volume/rpc.h"

enum { MOST_CALLS = 4, TEXT_BYTES = 1024 };

/** daemon - the daemon, what it was asked, and its answers, one for each call */
static struct {
	int open_error, call_error, fails_at;
	unsigned opened, closed, calls, open_ms, call_ms;
	char address[TEXT_BYTES], hostnqn[TEXT_BYTES], key[TEXT_BYTES];
	char method[MOST_CALLS][TEXT_BYTES];
	json_t *params[MOST_CALLS];
	const char *answers[MOST_CALLS];
} daemon_;

static void keep(char to[TEXT_BYTES], const char *text)
{
	(void)snprintf(to, TEXT_BYTES, "%s", text ? text : "-");
}

static int open_daemon(const char *address, const struct weir_rpc_identity *identity, unsigned ms,
		       struct weir_rpc **out)
{
	daemon_.open_ms = ms;
	daemon_.opened++;
	keep(daemon_.address, address);
	keep(daemon_.hostnqn, identity ? identity->hostnqn : NULL);
	keep(daemon_.key, identity ? identity->file : NULL);
	*out = (struct weir_rpc *)&daemon_;
	return daemon_.open_error ? weir_fail(-daemon_.open_error, "no daemon") : 0;
}

static void close_daemon(struct weir_rpc *rpc)
{
	daemon_.closed += rpc == (struct weir_rpc *)&daemon_;
}

static int call_daemon(struct weir_rpc *rpc, const char *method, json_t *params, unsigned ms, json_t **result)
{
	unsigned call = daemon_.calls++;

	(void)rpc;
	daemon_.call_ms = ms;
	if (call >= MOST_CALLS) { /* it would never end */
		json_decref(params);
		return weir_fail(EIO, "called too often");
	}
	keep(daemon_.method[call], method);
	daemon_.params[call] = params;
	if (daemon_.call_error && (int)call == daemon_.fails_at)
		return weir_fail(-daemon_.call_error, "the daemon refuses");
	*result = json_loads(daemon_.answers[call] ? daemon_.answers[call] : "{}", 0, NULL);
	return 0;
}

static int get_identity(struct weir_host_identity *out)
{
	*out = (struct weir_host_identity){ .nqn = "nqn.test:self" };
	return 0;
}

static int run_volume(int count, char **words);

#define weir_rpc_open           open_daemon
#define weir_rpc_close          close_daemon
#define weir_rpc_call           call_daemon
#define weir_host_identity(out) get_identity(out)
#define main                    run_volume
#include "tools/weir-volume/main.c"
#undef main

/** copied - what was to be copied */
static struct {
	char daemon[TEXT_BYTES], key[TEXT_BYTES], engine_key[TEXT_BYTES], secret[TEXT_BYTES],
		hostnqn[TEXT_BYTES];
	char name[TEXT_BYTES], path[TEXT_BYTES];
	bool put;
	int error;
} copied;

int copy_file(const struct copied *volume, const char *path, bool put)
{
	keep(copied.daemon, volume->daemon);
	keep(copied.key, volume->key);
	keep(copied.engine_key, volume->engine_key);
	keep(copied.secret, volume->secret);
	keep(copied.hostnqn, volume->hostnqn);
	keep(copied.name, volume->name);
	keep(copied.path, path);
	copied.put = put;
	return copied.error ? weir_fail(-copied.error, "nothing was copied") : 0;
}

static int end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MOST_CALLS; i++)
		json_decref(daemon_.params[i]);
	memset(&daemon_, 0, sizeof(daemon_));
	memset(&copied, 0, sizeof(copied));
	return 0;
}

/* As a program begins. */
static int run(const char *line)
{
	static struct request begun;

	if (!begun.daemon)
		begun = request;
	request = begun;
	return capture_run(run_volume, line);
}

static void expect_call(unsigned call, const char *method, const char *params)
{
	char *text = json_dumps(daemon_.params[call], JSON_ENCODE_ANY);

	assert_true(call < daemon_.calls);
	assert_string_equal(daemon_.method[call], method);
	capture_expect_json(text ? text : "null", params);
	free(text);
}

static void test_each_command_asks_for_all_that_it_is_given(void **state)
{
	static const struct {
		const char *line, *method, *params;
	} rows[] = {
		{ "create a 1G", "volume_create", "{\"name\": \"a\", \"bytes\": 1073741824}" },
		{ "create a 5T --replicas 3 --unit 128K --weight 200", "volume_create",
		  "{\"name\": \"a\", \"bytes\": 5497558138880, \"unit_bytes\": 131072, \"replicas\": 3,"
		  " \"weight\": 200}" },
		{ "resize a 6T", "volume_resize",
		  "{\"name\": \"a\", \"bytes\": 6597069766656, \"from\": 0}" },
		{ "share a", "volume_chmod",
		  "{\"name\": \"a\", \"hostnqn\": \"nqn.test:self\", \"rights\": \"rw\", \"from\": 0}" },
		{ "share a --hostnqn nqn.test:me", "volume_chmod",
		  "{\"name\": \"a\", \"hostnqn\": \"nqn.test:me\", \"rights\": \"rw\", \"from\": 0}" },
		{ "share a --host nqn.test:b --hostnqn nqn.test:me --rights r", "volume_chmod",
		  "{\"name\": \"a\", \"hostnqn\": \"nqn.test:b\", \"rights\": \"r\", \"from\": 0}" },
		{ "share a --host nqn.test:b --rights none", "volume_chmod",
		  "{\"name\": \"a\", \"hostnqn\": \"nqn.test:b\", \"rights\": \"\", \"from\": 0}" },
		{ "list", "volume_list", "{\"from\": 1}" },
		{ "info a", "volume_info", "{\"name\": \"a\", \"from\": 0}" },
		{ "lease a", "volume_info", "{\"name\": \"a\", \"from\": 0}" },
		{ "lease a --end", "lease_end", "{\"name\": \"a\"}" },
		{ "delete a", "volume_delete", "{\"name\": \"a\"}" },
		{ "engines", "engine_list", "null" },
		{ "engines --add tcp://h:1/nqn.x", "engine_add",
		  "{\"address\": \"h:1\", \"nqn\": \"nqn.x\"}" },
		{ "engines --add [::1]:2/nqn.y", "engine_add",
		  "{\"address\": \"[::1]:2\", \"nqn\": \"nqn.y\"}" },
		{ "engines --remove 7", "engine_remove", "{\"id\": 7, \"lost\": false}" },
		{ "engines --remove 2147483647 --lost", "engine_remove",
		  "{\"id\": 2147483647, \"lost\": true}" },
		{ "engines --keep 2147483647", "engine_keep", "{\"id\": 2147483647}" },
		{ "status", "status", "null" },
	};
	char line[TEXT_BYTES];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(line, sizeof(line), "weir-volume %s", rows[i].line);
		assert_int_equal(run(line), 0);
		assert_int_equal(daemon_.calls, 1);
		expect_call(0, rows[i].method, rows[i].params);
		assert_string_equal(daemon_.address, "127.0.0.1:4430");
		assert_string_equal(daemon_.key, "-");
		assert_int_equal(daemon_.opened, daemon_.closed);
		assert_int_equal(daemon_.open_ms, 3000);
		assert_int_equal(daemon_.call_ms, 600000); /* blocks may have to be made equal first */
		end(state);
		/* the same where the daemon refuses it */
		daemon_.call_error = -EACCES;
		assert_int_equal(run(line), 1);
		assert_string_equal(captured_errors, "weir-volume: the daemon refuses\n");
		assert_string_equal(captured, "");
		assert_int_equal(daemon_.opened, daemon_.closed);
		end(state);
		daemon_.open_error = -ECONNREFUSED; /* and where there is none */
		assert_int_equal(run(line), 1);
		assert_string_equal(captured_errors, "weir-volume: no daemon\n");
		assert_int_equal(daemon_.calls, 0);
		end(state);
	}
}

static void test_who_asks_whom(void **state)
{
	(void)state;
	assert_int_equal(setenv("WEIR_VOLUMED", "/run/a", 1), 0);
	assert_int_equal(run("weir-volume status"), 0);
	assert_string_equal(daemon_.address, "/run/a");
	assert_int_equal(run("weir-volume status --daemon h:1,h:2 --tls-psk k"), 0);
	assert_string_equal(daemon_.address, "h:1,h:2");
	assert_string_equal(daemon_.hostnqn, "nqn.test:self");
	assert_string_equal(daemon_.key, "k");
	assert_int_equal(run("weir-volume list --tls-psk k --hostnqn nqn.test:me"), 0);
	assert_string_equal(daemon_.hostnqn, "nqn.test:me");
	assert_int_equal(setenv("WEIR_VOLUMED", "", 1), 0);
	assert_int_equal(run("weir-volume status"), 0);
	assert_string_equal(daemon_.address, "127.0.0.1:4430");
	assert_int_equal(unsetenv("WEIR_VOLUMED"), 0);
}

static void test_files_are_copied_as_who_was_named(void **state)
{
	(void)state;
	assert_int_equal(
		run("weir-volume put a in --daemon h:1 --tls-psk k --engine-psk e --secret s --hostnqn n"),
		0);
	assert_true(copied.put);
	assert_string_equal(copied.daemon, "h:1");
	assert_string_equal(copied.key, "k");
	assert_string_equal(copied.engine_key, "e");
	assert_string_equal(copied.secret, "s");
	assert_string_equal(copied.hostnqn, "n");
	assert_string_equal(copied.name, "a");
	assert_string_equal(copied.path, "in");
	assert_int_equal(run("weir-volume get b out"), 0);
	assert_false(copied.put);
	assert_string_equal(copied.daemon, "127.0.0.1:4430");
	assert_string_equal(copied.key, "-");
	assert_string_equal(copied.engine_key, "-");
	assert_string_equal(copied.secret, "-");
	assert_string_equal(copied.hostnqn, "-");
	assert_string_equal(copied.name, "b");
	assert_string_equal(copied.path, "out");
	copied.error = -EIO;
	assert_int_equal(run("weir-volume get b out"), 1);
	assert_int_equal(run("weir-volume put b in"), 1);
	assert_string_equal(captured_errors, "weir-volume: nothing was copied\n");
}

static void answer_pages(void)
{
	daemon_.answers[0] = "{\"volumes\": [{\"name\": \"a\", \"bytes\": 1048576, \"replicas\": 2},"
			     " {\"name\": \"b\", \"bytes\": 4096, \"replicas\": 3}], \"next\": 3}";
	daemon_.answers[1] = "{\"volumes\": [{\"name\": \"c\", \"bytes\": 0, \"replicas\": 1}], \"next\": 9}";
	daemon_.answers[2] = "{\"volumes\": [{\"name\": \"d\", \"bytes\": 8796093022208, \"replicas\": 4,"
			     " \"lease\": {\"client\": 5, \"epoch\": 6, \"ms\": 7999}}]}";
}

static void test_all_pages_of_a_list(void **state)
{
	(void)state;
	answer_pages();
	assert_int_equal(run("weir-volume list"), 0);
	assert_int_equal(daemon_.calls, 3);
	expect_call(0, "volume_list", "{\"from\": 1}");
	expect_call(1, "volume_list", "{\"from\": 3}");
	expect_call(2, "volume_list", "{\"from\": 9}");
	assert_string_equal(
		captured,
		"a                              1M  2 replicas  nobody writes\n"
		"b                              4K  3 replicas  nobody writes\n"
		"c                               0  1 replicas  nobody writes\n"
		"d                              8T  4 replicas  client 5 writes, lease 6, 7 s left\n");
	end(state);
	answer_pages();
	assert_int_equal(run("weir-volume list --json"), 0);
	capture_expect_json(captured, "{\"volumes\": [{\"name\": \"a\", \"bytes\": 1048576, \"replicas\": 2},"
				      " {\"name\": \"b\", \"bytes\": 4096, \"replicas\": 3},"
				      " {\"name\": \"c\", \"bytes\": 0, \"replicas\": 1},"
				      " {\"name\": \"d\", \"bytes\": 8796093022208, \"replicas\": 4,"
				      " \"lease\": {\"client\": 5, \"epoch\": 6, \"ms\": 7999}}]}");
	end(state);
	answer_pages(); /* part of a list is none */
	daemon_.call_error = -EIO;
	daemon_.fails_at = 2;
	assert_int_equal(run("weir-volume list"), 1);
	assert_string_equal(captured, "");
	end(state);
	daemon_.answers[0] = "{\"volumes\": [], \"next\": 0}"; /* the end */
	assert_int_equal(run("weir-volume list"), 0);
	assert_int_equal(daemon_.calls, 1);
}

#define VOLUME                                                                                               \
	"{\"volume\": {\"name\": \"a\", \"vid\": 5, \"bytes\": 6597069766656, \"replicas\": 3, "             \
	"\"unit_bytes\": 131072,"                                                                            \
	" \"weight\": 200, \"lease\": {\"client\": 4, \"epoch\": 9, \"ms\": 12999}, \"unequal\": true, "     \
	"\"hosts\": ["                                                                                       \
	"{\"rights\": \"rw\", \"client\": 4, \"hostnqn\": \"nqn.x\"},"                                       \
	" {\"rights\": \"r\", \"client\": 65535, \"hostnqn\": \"nqn.y\"}]}}"
#define QUIET_VOLUME                                                                                         \
	"{\"volume\": {\"name\": \"b\", \"vid\": 6, \"bytes\": 12345, \"replicas\": 1, \"unit_bytes\": "     \
	"65536,"                                                                                             \
	" \"weight\": 100, \"unequal\": false, \"hosts\": []}}"

static void test_a_volume_as_text(void **state)
{
	static const char *const lines[] = { "weir-volume create a 1M", "weir-volume info a",
					     "weir-volume lease a", "weir-volume share a",
					     "weir-volume resize a 2M" };

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		daemon_.answers[0] = VOLUME;
		assert_int_equal(run(lines[i]), 0);
		assert_string_equal(
			captured,
			"volume       a, number 5\nsize         6T\n"
			"replicas     3, stripe unit 128K, weight 200\n"
			"lease        client 4 writes, lease 9, 12 s left\n"
			"replicas may differ in what a writer left; they are made equal for the next one\n"
			"host         rw  client 4  nqn.x\nhost         r   client 65535  nqn.y\n");
		end(state);
	}
	daemon_.answers[0] = QUIET_VOLUME;
	assert_int_equal(run("weir-volume info b"), 0);
	assert_string_equal(captured,
			    "volume       b, number 6\nsize         12345\n"
			    "replicas     1, stripe unit 64K, weight 100\nlease        nobody writes\n");
	end(state);
	daemon_.answers[0] = VOLUME;
	assert_int_equal(run("weir-volume info a --json"), 0);
	capture_expect_json(captured, VOLUME);
}

static void test_engines_as_text(void **state)
{
	(void)state;
	daemon_.answers[0] = "{\"engines\": [{\"id\": 1, \"what\": \"catching up\", \"used\": 4294967296,"
			     " \"blocks\": 8589934592, \"user_writes\": 200, \"medium_writes\": 500,"
			     " \"bad_blocks\": 3, \"repaired\": 4, \"refused\": 5, \"address\": \"h:1\","
			     " \"nqn\": \"nqn.x\"}, {\"id\": 22, \"what\": \"in\", \"user_writes\": 0,"
			     " \"medium_writes\": 9, \"address\": \"h:2\", \"nqn\": \"nqn.y\"}]}";
	assert_int_equal(run("weir-volume engines"), 0);
	assert_string_equal(
		captured, "engine 1   catching up      4294967296 of 8589934592 blocks, written 2.50 times, "
			  "3 bad, 4 repaired, 5 refused  tcp://h:1/nqn.x\n"
			  "engine 22  in               0 of 0 blocks, written 1.00 times, "
			  "0 bad, 0 repaired, 0 refused  tcp://h:2/nqn.y\n");
}

#define COUNTS                                                                                               \
	" \"counts\": {\"taken_out\": 31, \"taken_in\": 32, \"blocks_copied\": 4294967296,"                  \
	" \"blocks_equalized\": 34, \"blocks_repaired\": 35}}"
#define COUNTS_TEXT                                                                                          \
	"since its start: 31 engines taken out, 32 taken in; 4294967296 blocks copied, 34 made equal after " \
	"a writer's end, 35 repaired\n"
#define COPY(task, blocks)                                                                                   \
	" \"copy\": {\"task\": \"" task "\", \"blocks\": " blocks ", \"compared\": 21, \"copied\": 22},"

static void test_the_state_as_text(void **state)
{
	daemon_.answers[0] =
		"{\"map_epoch\": 11, \"counted\": true, \"engines_in\": 12, \"engines\": 13, \"volumes\": "
		"14," COPY("rebuild",
			   "8589934592") " \"leases\": [{\"epoch\": 15, \"name\": \"a\", \"client\": 16,"
					 " \"ms\": 17999}]," COUNTS;
	assert_int_equal(run("weir-volume status"), 0);
	assert_string_equal(captured, "map 11: 12 of 13 engines are in; 14 volumes\n"
				      "rebuild: 21 of 8589934592 blocks compared, 22 copied\n"
				      "lease 15 of volume a: client 16, 17 s left\n" COUNTS_TEXT);
	end(state);
	daemon_.answers[0] = "{\"map_epoch\": 11, \"counted\": false, \"engines_in\": 1, \"engines\": 3, "
			     "\"volumes\": 0," COPY("none", "5") " \"leases\": []," COUNTS;
	assert_int_equal(run("weir-volume status"), 0);
	assert_string_equal(captured, "map 11 (too few engines have it): 1 of 3 engines are in; 0 volumes\n"
				      "all blocks are where the map places them\n" COUNTS_TEXT);
	end(state);
	daemon_.answers[0] = "{\"counted\": true," COPY("join", "0") COUNTS; /* nothing to copy */
	assert_int_equal(run("weir-volume status"), 0);
	assert_non_null(strstr(captured, "all blocks are where the map places them\n"));
}

static void test_wrong_usage_asks_for_nothing(void **state)
{
	static const char *const lines[] = {
		"weir-volume create a lots",
		"weir-volume resize a -1",
		"weir-volume create a",
		"weir-volume engines --lost",
		"weir-volume engines --add h:1",
		"weir-volume engines --add h:1/nqn.x --remove 2",
		"weir-volume engines --remove 0",
		"weir-volume share a --rights x",
		"weir-volume create a 1M --replicas 0",
		"weir-volume create a 1M --replicas 256",
		"weir-volume create a 1M --weight 1001",
		"weir-volume list a",
	};

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(run(lines[i]), 2);
		assert_int_equal(daemon_.opened, 0);
		assert_string_equal(captured, "");
		end(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_each_command_asks_for_all_that_it_is_given, end),
		cmocka_unit_test_teardown(test_who_asks_whom, end),
		cmocka_unit_test_teardown(test_files_are_copied_as_who_was_named, end),
		cmocka_unit_test_teardown(test_all_pages_of_a_list, end),
		cmocka_unit_test_teardown(test_a_volume_as_text, end),
		cmocka_unit_test_teardown(test_engines_as_text, end),
		cmocka_unit_test_teardown(test_the_state_as_text, end),
		cmocka_unit_test_teardown(test_wrong_usage_asks_for_nothing, end),
	};

	(void)unsetenv("WEIR_VOLUMED");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
