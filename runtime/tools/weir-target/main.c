/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir-target: storages for other machines, as NVMe subsystems over NVMe/TCP (docs/network.md).
 *
 * Owns: flags, what is said, and how it ends: SIGTERM and SIGINT drain it.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "config.h"
#include "backend/error.h"

enum { EXIT_BAD = 1, EXIT_USAGE = 2, DRAIN_MS = 5000, DESCRIPTION_BYTES = 4096 };

static const char usage_text[] =
	"usage: weir-target [--listen ADDRESS]... --subsystem NQN=STORAGE[,STORAGE...] [--host NQN]...\n"
	"       weir-target --config FILE\n"
	"\n"
	"Serves storages to other machines as NVMe subsystems over NVMe/TCP. Linux's own driver\n"
	"connects to them (nvme connect), and so do nvmf: storages. Needs no root.\n"
	"\n"
	"  --listen ADDRESS   tcp://127.0.0.1:4420 (the default), tcp://[::1]:4420, tcp://0.0.0.0:4420;\n"
	"                     port 0: any that is free. May be given several times\n"
	"  --subsystem ...    a subsystem and its namespaces: file:PATH, a block device too, or virt:SIZE, "
	"with\n"
	"                     their keys. May be given several times\n"
	"  --host NQN         only hosts so named may connect to the subsystem before it; without: any\n"
	"  --engine           all namespaces keep volumes, as engines of an array (docs/volumes.md)\n"
	"  --manager NQN      only this host manages them; without: any that may connect\n"
	"  --secret FILE      the host before it authenticates by the secret in this file (DH-HMAC-CHAP), "
	"which its\n"
	"                     owner alone can read; weir-fabrics secret makes one\n"
	"  --controller-secret FILE\n"
	"                     likewise, what the subsystem proves to that host if it asks\n"
	"  --threads N        server threads (1)\n"
	"  --config FILE      all that from a JSON file (docs/network.md)\n"
	"  --version          print the version\n"
	"\n"
	"SIGTERM: it takes no more commands, answers those it has, and ends.\n"
	"Exit status: 0 it was told to end; 1 it cannot serve; 2 bad usage.\n";

static const struct option long_options[] = {
	{ "listen", required_argument, NULL, 'l' },
	{ "subsystem", required_argument, NULL, 's' },
	{ "host", required_argument, NULL, 'h' },
	{ "threads", required_argument, NULL, 't' },
	{ "config", required_argument, NULL, 'c' },
	{ "version", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, '?' },
	{ "engine", no_argument, NULL, 'e' },
	{ "manager", required_argument, NULL, 'm' },
	{ "secret", required_argument, NULL, 'k' },
	{ "controller-secret", required_argument, NULL, 'K' },
	{ NULL, 0, NULL, 0 },
};

static int set_threads(struct config *config, const char *text)
{
	char *end;
	unsigned long threads = strtoul(text, &end, 10);

	if (*end || !threads || threads > WEIR_TARGET_THREADS_MAX)
		return weir_fail(EINVAL, "--threads %s: give 1 to %d", text, WEIR_TARGET_THREADS_MAX);
	config->options.threads = (unsigned)threads;
	return 0;
}

static int take_option(struct config *config, int option, const char *value)
{
	switch (option) {
	case 'l': return config_listen(config, value);
	case 's': return config_subsystem(config, value);
	case 'h': return config_host(config, value);
	case 'e': config_engine(config); return 0;
	case 'm': return config_manager(config, value);
	case 'k':
	case 'K': return config_secret(config, value, option == 'K');
	case 't': return set_threads(config, value);
	default: return config_file(config, value);
	}
}

/* An exit status, or -1: go on. */
static int read_arguments(int count, char **arguments, struct config *config)
{
	int option;

	while ((option = getopt_long(count, arguments, "", long_options, NULL)) != -1) {
		if (option == 'v') {
			printf("weir-target %s\n", weir_version());
			return 0;
		}
		if (option == '?') {
			bool help = optind > 0 && !strcmp(arguments[optind - 1], "--help");

			fputs(usage_text, help ? stdout : stderr);
			return help ? 0 : EXIT_USAGE;
		}
		if (take_option(config, option, optarg) != 0) {
			fprintf(stderr, "weir-target: %s\n", weir_last_error());
			return EXIT_USAGE;
		}
	}
	if (optind < count || !config->options.subsystem_count) {
		fputs(usage_text, stderr);
		return EXIT_USAGE;
	}
	return -1;
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

/* Until a signal says that it is to end. */
static int serve(const struct weir_target_options *options, const sigset_t *signals)
{
	struct weir_target_stats stats;
	struct weir_target *target;
	int error = weir_target_create(options, &target), number;

	if (error)
		return error;
	error = weir_target_start(target);
	if (!error) {
		describe(target, options);
		sigwait(signals, &number);
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
	static struct config config;
	sigset_t signals;
	int status = read_arguments(count, arguments, &config);

	if (status >= 0) {
		config_release(&config);
		return status;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (!config.options.listen_count && config_listen(&config, "tcp://127.0.0.1:4420") != 0)
		status = EXIT_BAD;
	if (status < 0 && serve(config_finish(&config), &signals) == 0)
		status = 0;
	if (status != 0) {
		fprintf(stderr, "weir-target: %s\n", weir_last_error());
		status = EXIT_BAD;
	}
	config_release(&config);
	return status;
}
