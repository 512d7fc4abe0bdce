/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-volumed makes of its command line: stand-ins for the daemon, its sockets and the store note what
 * they are given. */
#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "backend/error.h"
#include "volume/daemon/serve.h"
#include "volume/rpc.h"

enum { MOST_LISTENS = 16, MOST_ENGINES = 4, TEXT_BYTES = 256, MIB_IN_BLOCKS = 256 };

/** given - what was given, and what is refused */
static struct {
	struct volumed_options options;
	struct volume_linker_nvmf linker;
	bool guarded;
	struct nvme_volume_engine engines[MOST_ENGINES];
	bool spare[MOST_ENGINES];
	unsigned engine_count;
	char listens[MOST_LISTENS][TEXT_BYTES];
	unsigned listen_count, served, destroyed, gathered;
	struct volumed_hosts hosts;
	char store[TEXT_BYTES], who[TEXT_BYTES];
	unsigned store_seconds, stores_closed;
	const char *refused; /* the one call that fails */
	struct volumed daemon;
} given;

static int refuse(const char *what)
{
	return given.refused && !strcmp(given.refused, what) ? weir_fail(EINVAL, "%s is refused", what) : 0;
}

static int note_options(const struct volumed_options *options, struct volumed **out)
{
	given.options = *options;
	given.guarded = given.store[0] != '\0';
	if (!given.guarded)
		given.linker = *(const struct volume_linker_nvmf *)(const void *)options->linker;
	*out = &given.daemon;
	return refuse("create");
}

static void note_end(struct volumed *d)
{
	given.destroyed += d == &given.daemon;
}

static int note_engine(struct volumed *d, const struct nvme_volume_engine *engine, bool spare)
{
	assert_ptr_equal(d, &given.daemon);
	given.engines[given.engine_count % MOST_ENGINES] = *engine;
	given.spare[given.engine_count++ % MOST_ENGINES] = spare;
	return refuse("engine");
}

static int note_gather(struct volumed *d)
{
	given.gathered += d == &given.daemon;
	return refuse("gather");
}

static int note_serve(struct volumed *d, const struct volumed_listeners *listeners, int signals)
{
	assert_ptr_equal(d, &given.daemon);
	assert_true(signals >= 0);
	given.served = listeners->count;
	given.hosts = *listeners->hosts;
	return SIGTERM;
}

static int note_listen(const char *address)
{
	int error = refuse("listen");

	(void)snprintf(given.listens[given.listen_count++ % MOST_LISTENS], TEXT_BYTES, "%s", address);
	return error ? error : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* A key or secret has as many bytes as its file's name has letters. */
static int load_secret(const char *path, struct weir_chap_secret *out)
{
	out->bytes = (u8)strlen(path);
	return refuse("secret");
}

static int load_key(const char *path, struct weir_tls_key *out)
{
	out->bytes = (u8)strlen(path);
	return refuse("key");
}

static int run_volumed(int count, char **words);

#define volumed_create        note_options
#define volumed_destroy       note_end
#define volumed_engine_note   note_engine
#define volumed_gather        note_gather
#define volumed_serve         note_serve
#define weir_rpc_listen       note_listen
#define weir_chap_secret_load load_secret
#define weir_tls_key_load     load_key
#define main                  run_volumed
#include "tools/weir-volumed/main.c"
#undef main

/* The store. */

int store_open(const char *uri, const char *who, unsigned seconds, struct store **out)
{
	(void)snprintf(given.store, sizeof(given.store), "%s", uri);
	(void)snprintf(given.who, sizeof(given.who), "%s", who);
	given.store_seconds = seconds;
	*out = (struct store *)&given;
	return refuse("store");
}

int store_take(struct store *of)
{
	assert_ptr_equal(of, &given);
	return refuse("take");
}

void store_check(const struct store *of)
{
	(void)of;
}

void store_close(struct store *of)
{
	given.stores_closed += of == (struct store *)&given;
}

/* As a program begins. */
static int run_line(const char *line)
{
	static struct config *begun;
	const char *refused = given.refused;

	if (!begun) {
		begun = malloc(sizeof(*begun));
		assert_non_null(begun);
		memcpy(begun, &config, sizeof(config));
	}
	memcpy(&config, begun, sizeof(config));
	store = NULL;
	memset(&given, 0, sizeof(given));
	given.refused = refused;
	return capture_run(run_volumed, line);
}

static void test_everything_that_is_given_arrives(void **state)
{
	(void)state;
	assert_int_equal(
		run_line("weir-volumed --engine tcp://h:1/nqn.a,domain=5,weight=7 --spare [::1]:2/nqn.b "
			 "--alone"
			 " --lease-seconds 12 --rebuild-rate 9 --listen 127.0.0.1:1 --socket /nowhere/socket"
			 " --hostnqn nqn.me --secret s --controller-secret cc --engine-psk eee"),
		0);
	assert_int_equal(given.options.lease_ms, 12000);
	assert_int_equal(given.options.rebuild_blocks, 9 * MIB_IN_BLOCKS);
	assert_true(given.options.alone);
	assert_int_equal(given.engine_count, 2);
	assert_string_equal(given.engines[0].address, "h:1");
	assert_string_equal(given.engines[0].nqn, "nqn.a");
	assert_int_equal(given.engines[0].domain, 5);
	assert_int_equal(given.engines[0].weight, 7);
	assert_false(given.spare[0]);
	assert_string_equal(given.engines[1].address, "[::1]:2");
	assert_string_equal(given.engines[1].nqn, "nqn.b");
	assert_int_equal(given.engines[1].domain, VOLUMED_OWN_DOMAIN);
	assert_int_equal(given.engines[1].weight, 100);
	assert_true(given.spare[1]);
	assert_string_equal(given.linker.hostnqn, "nqn.me");
	assert_int_equal(given.linker.secret.bytes, 1);
	assert_int_equal(given.linker.controller_secret.bytes, 2);
	assert_int_equal(given.linker.tls_key.bytes, 3);
	assert_int_equal(given.linker.connect_ms, 1000);
	assert_int_equal(given.served, 2);
	assert_string_equal(given.listens[given.listen_count - 2], "127.0.0.1:1");
	assert_string_equal(given.listens[given.listen_count - 1], "/nowhere/socket");
	assert_int_equal(given.hosts.count, 0);
	assert_int_equal(given.destroyed, 1);
	assert_non_null(strstr(captured, "at 127.0.0.1:1 /nowhere/socket\n"));
	assert_non_null(strstr(captured, "weir-volumed: ended by "));
}

static void test_what_is_not_given_is_the_usual(void **state)
{
	(void)state;
	assert_int_equal(run_line("weir-volumed --engine h:1/nqn.a"), 0);
	assert_int_equal(given.options.lease_ms, 0);
	assert_int_equal(given.options.rebuild_blocks, 32 * MIB_IN_BLOCKS);
	assert_false(given.options.alone);
	assert_null(given.linker.hostnqn);
	assert_int_equal(given.linker.secret.bytes + given.linker.controller_secret.bytes +
				 given.linker.tls_key.bytes,
			 0);
	assert_int_equal(given.served, 1);
	assert_string_equal(given.listens[0], "127.0.0.1:4430");
	assert_string_equal(given.store, "");
	assert_int_equal(run_line("weir-volumed --engine h:1/nqn.a --socket /nowhere/socket"), 0);
	assert_int_equal(given.served, 1);
	assert_string_equal(given.listens[0], "/nowhere/socket");
}

static void test_both_ends_of_the_numbers(void **state)
{
	(void)state;
	assert_int_equal(
		run_line(
			"weir-volumed --engine h:1/nqn.a,domain=4294967294,weight=65535 --lease-seconds 86400"
			" --rebuild-rate 1048576"),
		0);
	assert_int_equal(given.options.lease_ms, 86400000);
	assert_int_equal(given.options.rebuild_blocks, UINT64_C(1) << 28);
	assert_int_equal(given.engines[0].domain, UINT32_MAX - 1);
	assert_int_equal(given.engines[0].weight, 65535);
	assert_int_equal(run_line("weir-volumed --engine h:1/nqn.a,domain=0,weight=1 --lease-seconds 1 "
				  "--rebuild-rate 0"),
			 0);
	assert_int_equal(given.options.lease_ms, 1000);
	assert_int_equal(given.options.rebuild_blocks, 0);
	assert_int_equal(given.engines[0].domain, 0);
	assert_int_equal(given.engines[0].weight, 1);
	assert_int_equal(run_line("weir-volumed --engine h:1/nqn.a,domain=4294967295"), 2);
	assert_int_equal(run_line("weir-volumed --engine h:1/nqn.a,weight=0"), 2);
	assert_int_equal(run_line("weir-volumed --engine h:1/nqn.a,weight=65536"), 2);
}

static void test_every_host_has_a_key(void **state)
{
	static const char *const without[] = {
		"--host nqn.a --host nqn.b --tls-psk bb --manager nqn.c --tls-psk ccc",
		"--host nqn.a --tls-psk a --host nqn.b --manager nqn.c --tls-psk ccc",
		"--host nqn.a --tls-psk a --host nqn.b --tls-psk bb --manager nqn.c",
	};
	char line[TEXT_BYTES * 2], sentence[TEXT_BYTES];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		(void)snprintf(line, sizeof(line), "weir-volumed --engine h:1/nqn.a %s", without[i]);
		(void)snprintf(sentence, sizeof(sentence), "host nqn.%c has no key", 'a' + (int)i);
		assert_int_equal(run_line(line), 2);
		assert_non_null(strstr(captured_errors, sentence));
		assert_int_equal(given.engine_count + given.listen_count, 0);
	}
	assert_int_equal(run_line("weir-volumed --engine h:1/nqn.a --host nqn.a --tls-psk a --manager nqn.c "
				  "--tls-psk ccc"
				  " --host nqn.b --tls-psk bb"),
			 0);
	assert_int_equal(given.hosts.count, 3);
	assert_string_equal(given.hosts.entries[0].nqn, "nqn.a");
	assert_int_equal(given.hosts.entries[0].key.bytes, 1);
	assert_false(given.hosts.entries[0].manager);
	assert_string_equal(given.hosts.entries[1].nqn, "nqn.c");
	assert_int_equal(given.hosts.entries[1].key.bytes, 3);
	assert_true(given.hosts.entries[1].manager);
	assert_int_equal(given.hosts.entries[2].key.bytes, 2);
	assert_false(given.hosts.entries[2].manager);
	assert_non_null(strstr(captured, ", hosts by TLS\n"));
}

static void test_a_store(void **state)
{
	(void)state;
	assert_int_equal(
		run_line("weir-volumed --engine h:1/nqn.a --listen 127.0.0.1:7 --store etcd://h:2/array"), 0);
	assert_string_equal(given.store, "etcd://h:2/array");
	assert_non_null(strstr(given.who, "127.0.0.1:7"));
	assert_int_equal(given.store_seconds, 10);
	assert_true(given.guarded && given.options.linker);
	assert_int_equal(given.stores_closed, 1);
	assert_int_equal(run_line("weir-volumed --engine h:1/nqn.a --store etcd://h:2 --store-seconds 86400"),
			 0);
	assert_int_equal(given.store_seconds, 86400);
	assert_int_equal(run_line("weir-volumed --engine h:1/nqn.a --store etcd://h:2 --store-seconds 1"), 2);
}

/* Whatever fails is said, and is exit status 1; what was begun is ended. */
static void test_each_failure_is_an_exit_status(void **state)
{
	static const struct {
		const char *refused;
		int status;
		unsigned destroyed, closed;
	} rows[] = { { "create", 1, 0, 1 }, { "engine", 1, 1, 1 }, { "listen", 1, 1, 1 },
		     { "gather", 1, 1, 1 }, { "take", 1, 1, 1 },   { "store", 1, 0, 0 },
		     { "secret", 2, 0, 0 }, { "key", 2, 0, 0 } };
	char sentence[TEXT_BYTES];

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		given.refused = rows[i].refused;
		assert_int_equal(run_line("weir-volumed --engine h:1/nqn.a --store etcd://h:2 --secret s "
					  "--engine-psk e"),
				 rows[i].status);
		(void)snprintf(sentence, sizeof(sentence), "weir-volumed: %s is refused", rows[i].refused);
		assert_non_null(strstr(captured_errors, sentence));
		assert_int_equal(given.served, 0);
		assert_int_equal(given.destroyed, rows[i].destroyed);
		assert_int_equal(given.stores_closed, rows[i].closed);
	}
	given.refused = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_that_is_given_arrives),
		cmocka_unit_test(test_what_is_not_given_is_the_usual),
		cmocka_unit_test(test_both_ends_of_the_numbers),
		cmocka_unit_test(test_every_host_has_a_key),
		cmocka_unit_test(test_a_store),
		cmocka_unit_test(test_each_failure_is_an_exit_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
