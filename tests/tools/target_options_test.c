/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-target makes of its command line and of its JSON file: a stand-in for the target notes all that
 * it is to serve. */
#include "capture.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include <weir/nvme_fabrics.h>
#include <weir/weir.h>

#include "backend/error.h"
#include "target/target.h"

enum { NOTED_BYTES = 1 << 13 };

/** noted - the options, a line each; @reloaded: those of the last reload */
static char noted[NOTED_BYTES], reloaded[NOTED_BYTES];
static unsigned stopped, destroyed, signals_sent;
static bool starts;
static const char *json_path;

static const char *or_none(const char *const *list, size_t i)
{
	return list && list[i] ? list[i] : "-";
}

static void note_subsystem(FILE *to, const struct weir_target_subsystem_options *subsystem)
{
	fprintf(to, "subsystem %s engine %d manager %s key %s\n", subsystem->nqn, subsystem->engine,
		subsystem->manager ? subsystem->manager : "-", subsystem->tls_key ? subsystem->tls_key : "-");
	for (size_t i = 0; i < subsystem->namespace_count; i++)
		fprintf(to, " namespace %s%s%s\n", subsystem->namespaces[i].uri,
			subsystem->namespaces[i].read_only ? " read_only" : "",
			subsystem->namespaces[i].detached ? " detached" : "");
	for (size_t i = 0; i < subsystem->host_count; i++)
		fprintf(to, " host %s secret %s controller %s key %s\n", subsystem->hosts[i],
			or_none(subsystem->secrets, i), or_none(subsystem->controller_secrets, i),
			or_none(subsystem->tls_keys, i));
}

static void note_options(const struct weir_target_options *options, char text[NOTED_BYTES])
{
	FILE *to = fmemopen(text, NOTED_BYTES, "w");

	assert_non_null(to);
	fprintf(to, "threads %u queues %u\n", options->threads, options->queues);
	for (size_t i = 0; i < options->listen_count; i++)
		fprintf(to, "listen %s %u\n", options->listen[i], options->ana ? options->ana[i] : 0);
	for (size_t i = 0; i < options->subsystem_count; i++)
		note_subsystem(to, &options->subsystems[i]);
	assert_int_equal(fclose(to), 0);
}

static int create_target(const struct weir_target_options *options, struct weir_target **out)
{
	assert_int_equal(options->size, sizeof(*options));
	note_options(options, noted);
	*out = (struct weir_target *)noted;
	return starts ? 0 : weir_fail(EINVAL, "noted");
}

static int start_target(struct weir_target *target)
{
	(void)target;
	return 0;
}

static void stop_target(struct weir_target *target, unsigned ms)
{
	stopped += target && ms > 0;
}

static void destroy_target(struct weir_target *target)
{
	destroyed += target != NULL;
}

static int reload_target(struct weir_target *target, const struct weir_target_options *options)
{
	(void)target;
	note_options(options, reloaded);
	return 0;
}

static const char *address_of(const struct weir_target *target, size_t index)
{
	(void)target;
	return index ? "tcp://h:2" : "tcp://h:1";
}

static void describe_target(const struct weir_target *target, size_t index, char *text, size_t bytes)
{
	(void)target;
	(void)snprintf(text, bytes, "subsystem %zu", index);
}

static void get_stats(const struct weir_target *target, struct weir_target_stats *stats)
{
	(void)target;
	*stats = (struct weir_target_stats){ .connections = 1,
					     .accepted = 1ull << 33,
					     .refused = 3,
					     .bad_pdus = 4,
					     .commands = 1ull << 34,
					     .reconnects = 6 };
}

/* SIGHUP once, then SIGTERM. */
static int wait_signal(const sigset_t *signals, int *number)
{
	assert_true(sigismember(signals, SIGHUP) && sigismember(signals, SIGTERM) &&
		    sigismember(signals, SIGINT));
	*number = signals_sent++ ? SIGTERM : SIGHUP;
	return 0;
}

static int run_target(int count, char **words);

#define weir_target_create               create_target
#define weir_target_start                start_target
#define weir_target_stop                 stop_target
#define weir_target_destroy              destroy_target
#define weir_target_reload               reload_target
#define weir_target_address              address_of
#define weir_target_describe             describe_target
#define weir_target_stats(target, stats) get_stats(target, stats)
#define sigwait                          wait_signal
#define main                             run_target
#include "tools/weir-target/main.c"
#undef main

/* As a program begins. */
static int run_line(const char *line)
{
	static struct config begun;

	first = begun;
	config = &first;
	memset(noted, 0, sizeof(noted));
	memset(reloaded, 0, sizeof(reloaded));
	stopped = destroyed = signals_sent = 0;
	return capture_run(run_target, line);
}

static void expect_options(const char *line, const char *options)
{
	assert_int_equal(run_line(line), 1); /* the stand-in does not serve */
	assert_string_equal(captured_errors, "weir-target: noted\n");
	assert_string_equal(noted, options);
}

#define DEFAULT_LISTEN "listen tcp://127.0.0.1:4420 1\n"

static void test_flags(void **state)
{
	(void)state;
	starts = false;
	expect_options("weir-target --subsystem nqn.a=virt:1M",
		       "threads 0 queues 0\n" DEFAULT_LISTEN "subsystem nqn.a engine 0 manager - key -\n"
		       " namespace virt:1M\n");
	expect_options(
		"weir-target --threads 3 --engine --manager nqn.m"
		" --listen tcp://h:1 --ana non-optimized --listen rdma://h:2 --listen tcp://h:3 --ana "
		"inaccessible"
		" --listen tcp://h:4 --ana persistent-loss --listen tcp://h:5 --ana change"
		" --subsystem nqn.a=virt:1M,file:b --tls-psk all --host nqn.h --secret s --controller-secret "
		"c"
		" --host nqn.i --tls-psk k --host nqn.j"
		" --subsystem nqn.b=virt:2M --host nqn.h --controller-secret d --tls-psk l --secret t",
		"threads 3 queues 0\nlisten tcp://h:1 2\nlisten rdma://h:2 1\nlisten tcp://h:3 3\n"
		"listen tcp://h:4 4\nlisten tcp://h:5 15\n"
		"subsystem nqn.a engine 1 manager nqn.m key all\n namespace virt:1M\n namespace file:b\n"
		" host nqn.h secret s controller c key -\n host nqn.i secret - controller - key k\n"
		" host nqn.j secret - controller - key -\n"
		"subsystem nqn.b engine 1 manager nqn.m key -\n namespace virt:2M\n"
		" host nqn.h secret t controller d key l\n");
}

static void write_file(const char *text)
{
	FILE *file = fopen(json_path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

#define EVERYTHING                                                                                           \
	"{\"threads\": 5, \"queues\": 9, \"listen\": [\"tcp://h:1\", {\"address\": \"tcp://h:2\", \"ana\": " \
	"\"change\"},"                                                                                       \
	" {\"address\": \"tcp://h:3\"}], \"subsystems\": [{\"nqn\": \"nqn.a\", \"engine\": true, "           \
	"\"manager\": \"nqn.m\","                                                                            \
	" \"tls_psk\": \"all\", \"hosts\": [\"nqn.h\", {\"nqn\": \"nqn.i\", \"secret\": \"s\", "             \
	"\"controller_secret\": \"c\","                                                                      \
	" \"tls_psk\": \"k\"}, {\"nqn\": \"nqn.j\"}], \"namespaces\": [\"virt:1M\", {\"storage\": "          \
	"\"file:b\","                                                                                        \
	" \"read_only\": true}, {\"storage\": \"virt:2M\", \"attached\": false}, {\"storage\": \"virt:3M\"," \
	" \"attached\": true, \"read_only\": false}]}, {\"nqn\": \"nqn.b\", \"engine\": false, "             \
	"\"namespaces\": [\"file:c\"]}]}"
#define EVERYTHING_NOTED                                                                                     \
	"listen tcp://h:1 1\nlisten tcp://h:2 15\nlisten tcp://h:3 1\n"                                      \
	"subsystem nqn.a engine 1 manager nqn.m key all\n namespace virt:1M\n namespace file:b read_only\n"  \
	" namespace virt:2M detached\n namespace virt:3M\n host nqn.h secret - controller - key -\n"         \
	" host nqn.i secret s controller c key k\n host nqn.j secret - controller - key -\n"                 \
	"subsystem nqn.b engine 0 manager - key -\n namespace file:c\n"

static void test_a_file(void **state)
{
	char line[1024];

	(void)state;
	starts = false;
	write_file(EVERYTHING);
	(void)snprintf(line, sizeof(line), "weir-target --config %s", json_path);
	expect_options(line, "threads 5 queues 9\n" EVERYTHING_NOTED);
	/* a flag beside it counts for what the file says, wherever it stands */
	(void)snprintf(line, sizeof(line),
		       "weir-target --threads 2 --config %s --subsystem nqn.c=virt:4M --listen tcp://h:4",
		       json_path);
	expect_options(line,
		       "threads 2 queues 9\nlisten tcp://h:1 1\nlisten tcp://h:2 15\nlisten tcp://h:3 1\n"
		       "listen tcp://h:4 1\n"
		       "subsystem nqn.a engine 1 manager nqn.m key all\n namespace virt:1M\n"
		       " namespace file:b read_only\n namespace virt:2M detached\n namespace virt:3M\n"
		       " host nqn.h secret - controller - key -\n host nqn.i secret s controller c key k\n"
		       " host nqn.j secret - controller - key -\n"
		       "subsystem nqn.b engine 0 manager - key -\n namespace file:c\n"
		       "subsystem nqn.c engine 0 manager - key -\n namespace virt:4M\n");
	write_file("{\"subsystems\": [{\"nqn\": \"nqn.a\", \"namespaces\": [\"virt:1M\"]}]}");
	(void)snprintf(line, sizeof(line), "weir-target --config %s --manager nqn.n --engine", json_path);
	expect_options(line,
		       "threads 0 queues 0\n" DEFAULT_LISTEN "subsystem nqn.a engine 1 manager nqn.n key -\n"
		       " namespace virt:1M\n");
	write_file("{\"queues\": 2147483647, \"threads\": 2147483647,"
		   " \"subsystems\": [{\"nqn\": \"nqn.a\", \"namespaces\": [\"virt:1M\"]}]}");
	(void)snprintf(line, sizeof(line), "weir-target --config %s", json_path);
	assert_int_equal(run_line(line), 1);
	assert_non_null(strstr(noted, "threads 2147483647 queues 2147483647\n"));
}

/* What is read again on SIGHUP is what is read at first, all of it. */
static void test_reading_again(void **state)
{
	char line[1024];

	(void)state;
	starts = true;
	write_file(EVERYTHING);
	(void)snprintf(line, sizeof(line), "weir-target --config %s --threads 6 --engine", json_path);
	assert_int_equal(run_line(line), 0);
	assert_int_equal(signals_sent, 2);
	assert_non_null(strstr(noted, "threads 6 queues 9\n"));
	assert_non_null(strstr(noted, "subsystem nqn.b engine 1"));
	assert_string_equal(reloaded, noted);
	assert_non_null(strstr(captured, "weir-target: serving subsystem 0 at tcp://h:1 tcp://h:2 tcp://h:2;"
					 " nvmf:tcp://h:1/nqn.a\n"));
	assert_non_null(strstr(captured, "weir-target: serving subsystem 1 at"));
	assert_non_null(strstr(captured, "weir-target: read again and changed\n"));
	assert_non_null(strstr(captured, " after 8589934592 connections and 17179869184 commands\n"));
	assert_int_equal(stopped, 1);
	assert_int_equal(destroyed, 1);
	/* without a file there is nothing to read */
	assert_int_equal(run_line("weir-target --subsystem nqn.a=virt:1M"), 0);
	assert_string_equal(reloaded, "");
	assert_non_null(strstr(captured_errors, "not changed: there is no --config FILE to read again"));
}

static void test_what_lacks_what_it_is_of(void **state)
{
	static const struct {
		const char *line, *sentence;
	} rows[] = {
		{ "--host nqn.h --subsystem nqn.a=virt:1M", "name the subsystem first" },
		{ "--subsystem nqn.a=virt:1M --secret s", "--secret s: name the host first" },
		{ "--subsystem nqn.a=virt:1M --controller-secret s",
		  "--controller-secret s: name the host first" },
		{ "--host nqn.h --secret s", "name the subsystem first" },
		{ "--subsystem nqn.a=virt:1M --host nqn.h --subsystem nqn.b=virt:1M --secret s",
		  "name the host first" },
		{ "--tls-psk k --subsystem nqn.a=virt:1M", "name the subsystem first" },
		{ "--ana change --listen tcp://h:1 --subsystem nqn.a=virt:1M", "name the address first" },
		{ "--listen tcp://h:1 --ana none --subsystem nqn.a=virt:1M", "ANA state \"none\" is none" },
		{ "--listen tcp://h:1", "a subsystem is missing" },
		{ "--subsystem nqn.a", "write NQN=STORAGE" },
	};
	char line[1024];

	(void)state;
	starts = false;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(line, sizeof(line), "weir-target %s", rows[i].line);
		assert_int_equal(run_line(line), 2);
		assert_non_null(strstr(captured_errors, rows[i].sentence));
		assert_string_equal(noted, "");
	}
}

static void test_what_a_file_has_wrong(void **state)
{
	static const char *const files[] = {
		"{\"subsystems\": {}}",
		"{\"subsystems\": [], \"listen\": \"tcp://h:1\"}",
		"{\"subsystems\": [], \"thread\": 1}",
		"{\"subsystems\": [{\"nqn\": \"a\", \"namespaces\": \"virt:1M\"}]}",
		"{\"subsystems\": [{\"nqn\": \"a\", \"namespaces\": [], \"hosts\": \"b\"}]}",
		"{\"subsystems\": [{\"nqn\": \"a\", \"namespaces\": [1]}]}",
		"{\"subsystems\": [{\"nqn\": \"a\", \"namespaces\": [{\"read_only\": true}]}]}",
		"{\"subsystems\": [{\"nqn\": \"a\", \"namespaces\":[{\"storage\":\"b\",\"read_only\":1}]}]}",
		"{\"subsystems\": [{\"nqn\": \"a\", \"namespaces\": [], \"hosts\": [1]}]}",
		"{\"subsystems\": [{\"nqn\": \"a\", \"namespaces\": [], \"hosts\": [{\"secret\": \"s\"}]}]}",
		"{\"subsystems\": [], \"listen\": [1]}",
		"{\"subsystems\": [], \"listen\": [{\"ana\": \"change\"}]}",
		"{\"subsystems\": [], \"subsystems\": []}",
		"{\"subsystems\": []}",
	};
	char line[1024];

	(void)state;
	starts = false;
	(void)snprintf(line, sizeof(line), "weir-target --config %s", json_path);
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		write_file(files[i]);
		assert_int_equal(run_line(line), 2);
		assert_string_equal(noted, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_a_file),
		cmocka_unit_test(test_reading_again),
		cmocka_unit_test(test_what_lacks_what_it_is_of),
		cmocka_unit_test(test_what_a_file_has_wrong),
	};
	char path[] = "/tmp/weir-target-options-XXXXXX";
	int file = mkstemp(path), failed;

	if (file < 0)
		return 1;
	(void)close(file);
	json_path = path;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return failed;
}
