/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir-target: storages for other machines, as NVMe subsystems over NVMe/TCP and NVMe/RDMA (docs/network.md).
 *
 * Owns: flags, what is said, and how it ends: SIGTERM and SIGINT drain it. SIGHUP has it read its JSON file
 * again.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "backend/error.h"
#include "config.h"
#include "tool_options.h"

enum { EXIT_BAD = 1, DRAIN_MS = 5000, DESCRIPTION_BYTES = 4096 };

static const char about[] =
	"usage: weir-target [--listen ADDRESS]... --subsystem NQN=STORAGE[,STORAGE...] [--host NQN]...\n"
	"       weir-target --config FILE\n"
	"\n"
	"Serves storages to other machines as NVMe subsystems over NVMe/TCP and NVMe/RDMA. Linux's own "
	"driver\n"
	"connects to them (nvme connect), and so do nvmf: storages. Needs no root.\n";

static const char notes[] =
	"SIGTERM: it takes no more commands, answers those it has, and ends. SIGHUP: it reads the JSON file\n"
	"again: ANA states, hosts and their secrets, namespaces at the end of a list, and which are\n"
	"attached.\n"
	"Exit status: 0 it was told to end; 1 it cannot serve; 2 bad usage.";

/* What the command line is read into: the first configuration, or the next one. */
static struct config first, *config = &first;
static uint32_t threads;

static int take_listen(void *to, const char *text)
{
	(void)to;
	return config_listen(config, text);
}

static int take_ana(void *to, const char *text)
{
	(void)to;
	return config_ana(config, text);
}

static int take_subsystem(void *to, const char *text)
{
	(void)to;
	return config_subsystem(config, text);
}

static int take_host(void *to, const char *text)
{
	(void)to;
	return config_host(config, text);
}

static int take_manager(void *to, const char *text)
{
	(void)to;
	return config_manager(config, text);
}

static int take_secret(void *to, const char *text)
{
	(void)to;
	return config_secret(config, text, false);
}

static int take_controller_secret(void *to, const char *text)
{
	(void)to;
	return config_secret(config, text, true);
}

static int take_tls_key(void *to, const char *text)
{
	(void)to;
	return config_tls_key(config, text);
}

static int take_file(void *to, const char *text)
{
	(void)to;
	return config_file(config, text);
}

static bool engine;

#define PARSER(parse) (&(struct tool_parser){ parse, NULL })

static const struct tool_option options[] = {
	{ "listen", "ADDRESS", TOOL_PARSED, PARSER(take_listen), 0, 0,
	  "tcp://127.0.0.1:4420 (the default), tcp://[::1]:4420,\ntcp://0.0.0.0:4420; rdma://10.0.0.2:4420, "
	  "the address of an\nRDMA device; port 0: any that is free. May be given\nseveral times",
	  NULL, NULL },
	{ "ana", "STATE", TOOL_PARSED, PARSER(take_ana), 0, 0,
	  "of the address before it, as a path: optimized (the default),\nnon-optimized, inaccessible, "
	  "persistent-loss, change",
	  NULL, NULL },
	{ "subsystem", "NQN=...", TOOL_PARSED, PARSER(take_subsystem), 0, 0,
	  "a subsystem and its namespaces: file:PATH, a block device too, or\nvirt:SIZE, with their keys. "
	  "May be "
	  "given several times",
	  NULL, NULL },
	{ "host", "NQN", TOOL_PARSED, PARSER(take_host), 0, 0,
	  "only hosts so named may connect to the subsystem before it;\nwithout: any", NULL, NULL },
	{ "engine", NULL, TOOL_FLAG, &engine, 0, 0,
	  "all namespaces keep volumes, as engines of an array\n(docs/volumes.md)", NULL, NULL },
	{ "manager", "NQN", TOOL_PARSED, PARSER(take_manager), 0, 0,
	  "only this host manages them; without: any that may connect", NULL, NULL },
	{ "secret", "FILE", TOOL_PARSED, PARSER(take_secret), 0, 0,
	  "the host before it authenticates by the secret in this file\n(DH-HMAC-CHAP), which its owner "
	  "alone can "
	  "read; weir-fabrics\nsecret makes one",
	  NULL, NULL },
	{ "controller-secret", "FILE", TOOL_PARSED, PARSER(take_controller_secret), 0, 0,
	  "likewise, what the subsystem proves to that host if it asks", NULL, NULL },
	{ "tls-psk", "FILE", TOOL_PARSED, PARSER(take_tls_key), 0, 0,
	  "the host before it, or all of a subsystem that names none, come by\nTLS 1.3 alone, by the key in "
	  "this "
	  "file, which its owner alone can\nread; weir-fabrics psk makes one",
	  NULL, NULL },
	{ "threads", "N", TOOL_U32, &threads, 1, WEIR_TARGET_THREADS_MAX, "server threads (1)", NULL, NULL },
	{ "config", "FILE", TOOL_PARSED, PARSER(take_file), 0, 0,
	  "all that from a JSON file (docs/network.md)", NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-target", .about = about, .options = options, .notes = notes
};

/** struct arguments - the command line; @has_file: it names a JSON file */
struct arguments {
	int count;
	char **words;
	bool has_file;
};

/* The command line into @to. Return: an exit status, or -1: go on. */
static int read_arguments(int count, char **arguments, struct config *to)
{
	int status;

	config = to;
	threads = 0;
	engine = false;
	status = tool_parse(&program, count, arguments);
	if (threads)
		to->options.threads = threads;
	if (engine)
		config_engine(to);
	if (status < 0 && !to->options.subsystem_count)
		return tool_usage("a subsystem is missing: give --subsystem NQN=STORAGE, or --config FILE");
	return status;
}

static int complete(struct config *config)
{
	return config->options.listen_count ? 0 : config_listen(config, "tcp://127.0.0.1:4420");
}

/* A line for each subsystem, and how a host gets there. */
static void describe(const struct weir_target *target, const struct weir_target_options *options)
{
	char text[DESCRIPTION_BYTES];

	for (size_t i = 0; i < options->subsystem_count; i++) {
		weir_target_describe(target, i, text, sizeof(text));
		printf("weir-target: serving %s at", text);
		for (size_t j = 0; j < options->listen_count; j++)
			printf(" %s", weir_target_address(target, j));
		printf("; nvmf:%s/%s\n", weir_target_address(target, 0), options->subsystems[i].nqn);
	}
	fflush(stdout);
}

/* SIGHUP: all of the command line, and so the file, once more. */
static void reload(struct weir_target *target, struct arguments *arguments)
{
	struct config *next = calloc(1, sizeof(*next));
	bool wrong = false;
	int error = next ? 0 : weir_fail(ENOMEM, "no memory to read it again");

	if (!arguments->has_file)
		error = weir_fail(EINVAL, "there is no --config FILE to read again");
	if (!error)
		wrong = read_arguments(arguments->count, arguments->words, next) >= 0; /* and says why */
	if (!error && !wrong)
		error = complete(next);
	if (!error && !wrong)
		error = weir_target_reload(target, config_finish(next));
	if (error)
		(void)tool_complain("not changed: %s", weir_last_error());
	else
		printf("weir-target: %s\n", wrong ? "not changed" : "read again and changed");
	fflush(stdout);
	if (next)
		config_release(next);
	free(next);
}

/* Until a signal says that it is to end. */
static int serve(const struct weir_target_options *options, struct arguments *arguments,
		 const sigset_t *signals)
{
	struct weir_target_stats stats;
	struct weir_target *target;
	int error = weir_target_create(options, &target), number;

	if (error)
		return error;
	error = weir_target_start(target);
	if (!error) {
		describe(target, options);
		while (sigwait(signals, &number) == 0 && number == SIGHUP)
			reload(target, arguments);
		weir_target_stop(target, DRAIN_MS);
		weir_target_stats(target, &stats);
		printf("weir-target: ended by %s after %llu connections and %llu commands\n",
		       strsignal(number), (unsigned long long)stats.accepted,
		       (unsigned long long)stats.commands);
	}
	weir_target_destroy(target);
	return error;
}

int main(int count, char **arguments)
{
	struct arguments all = { count, arguments, false };
	sigset_t signals;
	int status = read_arguments(count, arguments, &first);

	if (status >= 0) {
		config_release(&first);
		return status;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	all.has_file = first.has_file;
	if (complete(&first) != 0)
		status = EXIT_BAD;
	if (status < 0 && serve(config_finish(&first), &all, &signals) == 0)
		status = 0;
	if (status != 0)
		status = tool_failed();
	config_release(&first);
	return status;
}
