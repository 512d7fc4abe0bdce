/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir-volume: volumes of an array, by its daemon (docs/volumes.md).
 *
 * Owns: its commands, each of which is one call of the daemon.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tool.h"
#include "transport/fabrics/identity.h"
#include "volume/rpc.h"

enum { EXIT_BAD = 1, EXIT_USAGE = 2, CONNECT_MS = 3000, CALL_MS = 600000 };

static const char usage_text[] =
	"usage: weir-volume create NAME SIZE [--replicas N] [--unit SIZE] [--weight N]\n"
	"       weir-volume share NAME [--host NQN] [--rights rw|r|none]\n"
	"       weir-volume list | info NAME | resize NAME SIZE | delete NAME\n"
	"       weir-volume put NAME FILE | get NAME FILE\n"
	"       weir-volume lease NAME [--end]\n"
	"       weir-volume engines [--add tcp://HOST:PORT/NQN] [--remove ID]\n"
	"       weir-volume status\n"
	"\n"
	"  create   a volume: 2 replicas, stripe units of 64K, weight 100 unless others are given\n"
	"  share    let a host use it (this one without --host; weir-fabrics show prints a host's NQN)\n"
	"  resize   let it grow\n"
	"  put      write a file to it, from its first block on, as this host; get reads all of it\n"
	"  lease    who writes it; --end ends that lease as if its time were over\n"
	"  engines  the engines, what they have, and who is missing; an engine that is removed gives its\n"
	"           blocks to others first\n"
	"  status   the map, copying, leases, counts\n"
	"\n"
	"  --daemon ADDRESS  HOST:PORT, or the path of a socket (the environment's WEIR_VOLUMED,\n"
	"                    or 127.0.0.1:4430)\n"
	"  --json            print the daemon's answer as it is\n"
	"  --version         print the version\n"
	"\n"
	"Exit status: 0 done; 1 it failed; 2 bad usage.\n";

/** struct request - from the command line */
struct request {
	const char *daemon;
	bool json;
	bool end;
	const char *host;
	const char *rights;
	const char *unit;
	const char *add;
	int replicas;
	int weight;
	int remove;
};

static int usage(const char *what)
{
	fprintf(stderr, "weir-volume: %s; see weir-volume --help\n", what);
	return EXIT_USAGE;
}

static int bad(void)
{
	fprintf(stderr, "weir-volume: %s\n", weir_last_error());
	return EXIT_BAD;
}

static int call(const struct request *request, const char *method, json_t *params, void (*print)(json_t *))
{
	struct weir_rpc *rpc;
	json_t *result = NULL;
	int error = weir_rpc_open(request->daemon, CONNECT_MS, &rpc);

	if (error) {
		json_decref(params);
		return bad();
	}
	error = weir_rpc_call(rpc, method, params, CALL_MS, &result);
	weir_rpc_close(rpc);
	if (error)
		return bad();
	if (request->json) {
		json_dumpf(result, stdout, JSON_INDENT(2));
		putchar('\n');
	} else if (print) {
		print(result);
	}
	json_decref(result);
	return 0;
}

static int size_of(const char *text, uint64_t *bytes)
{
	return weir_parse_bytes(text, bytes);
}

static int create(const struct request *request, const char *name, const char *size)
{
	uint64_t bytes, unit = 0;
	json_t *params;

	if (size_of(size, &bytes) != 0 || (request->unit && size_of(request->unit, &unit) != 0))
		return usage("a size is written 4096, 64K, 10G or 1T");
	params = json_pack("{s:s, s:I}", "name", name, "bytes", (json_int_t)bytes);
	if (unit)
		json_object_set_new(params, "unit_bytes", json_integer((json_int_t)unit));
	if (request->replicas)
		json_object_set_new(params, "replicas", json_integer(request->replicas));
	if (request->weight)
		json_object_set_new(params, "weight", json_integer(request->weight));
	return call(request, "volume_create", params, print_volume);
}

static int resize(const struct request *request, const char *name, const char *size)
{
	uint64_t bytes;

	if (size_of(size, &bytes) != 0)
		return usage("a size is written 4096, 64K, 10G or 1T");
	return call(request, "volume_resize",
		    json_pack("{s:s, s:I}", "name", name, "bytes", (json_int_t)bytes), print_volume);
}

static int share(const struct request *request, const char *name)
{
	const char *rights = request->rights ? request->rights : "rw";
	struct weir_host_identity self;

	if (!request->host && weir_host_identity(&self) != 0)
		return bad();
	return call(request, "volume_chmod",
		    json_pack("{s:s, s:s, s:s}", "name", name, "hostnqn",
			      request->host ? request->host : self.nqn, "rights",
			      strcmp(rights, "none") ? rights : ""),
		    print_volume);
}

static int engines(const struct request *request)
{
	const char *address = request->add ? request->add : "", *slash;
	json_t *params;

	if (request->remove)
		return call(request, "engine_remove", json_pack("{s:i}", "id", request->remove), NULL);
	if (!request->add)
		return call(request, "engine_list", NULL, print_engines);
	address += strncmp(address, "tcp://", 6) ? 0 : 6;
	slash = strchr(address, '/');
	if (!slash)
		return usage("an engine is written tcp://HOST:PORT/NQN");
	params = json_pack("{s:s%, s:s}", "address", address, (size_t)(slash - address), "nqn", slash + 1);
	return call(request, "engine_add", params, NULL);
}

static int named(const struct request *request, const char *command, const char *name)
{
	json_t *params = json_pack("{s:s}", "name", name);

	if (!strcmp(command, "info") || (!strcmp(command, "lease") && !request->end))
		return call(request, "volume_info", params, print_volume);
	if (!strcmp(command, "lease"))
		return call(request, "lease_end", params, NULL);
	if (!strcmp(command, "delete"))
		return call(request, "volume_delete", params, NULL);
	json_decref(params);
	if (!strcmp(command, "share"))
		return share(request, name);
	return usage("which command?");
}

static int carry_out(const struct request *request, int count, char **words)
{
	if (count == 3 && !strcmp(words[0], "create"))
		return create(request, words[1], words[2]);
	if (count == 3 && !strcmp(words[0], "resize"))
		return resize(request, words[1], words[2]);
	if (count == 3 && (!strcmp(words[0], "put") || !strcmp(words[0], "get")))
		return copy_file(request->daemon, words[1], words[2], words[0][0] == 'p') == 0 ? 0 : bad();
	if (count == 2)
		return named(request, words[0], words[1]);
	if (count == 1 && !strcmp(words[0], "list"))
		return call(request, "volume_list", NULL, print_volumes);
	if (count == 1 && !strcmp(words[0], "engines"))
		return engines(request);
	if (count == 1 && !strcmp(words[0], "status"))
		return call(request, "status", NULL, print_status);
	return usage("which command, and of which volume?");
}

static void take_option(struct request *request, int option, const char *value)
{
	switch (option) {
	case 'd': request->daemon = value; break;
	case 'j': request->json = true; break;
	case 'e': request->end = true; break;
	case 'o': request->host = value; break;
	case 'r': request->rights = value; break;
	case 'u': request->unit = value; break;
	case 'a': request->add = value; break;
	case 'n': request->replicas = atoi(value); break;
	case 'w': request->weight = atoi(value); break;
	default: request->remove = atoi(value); break;
	}
}

int main(int count, char **words)
{
	static const struct option options[] = { { "daemon", required_argument, NULL, 'd' },
						 { "json", no_argument, NULL, 'j' },
						 { "end", no_argument, NULL, 'e' },
						 { "host", required_argument, NULL, 'o' },
						 { "rights", required_argument, NULL, 'r' },
						 { "unit", required_argument, NULL, 'u' },
						 { "add", required_argument, NULL, 'a' },
						 { "remove", required_argument, NULL, 'x' },
						 { "replicas", required_argument, NULL, 'n' },
						 { "weight", required_argument, NULL, 'w' },
						 { "version", no_argument, NULL, 'v' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	const char *named = getenv("WEIR_VOLUMED");
	struct request request = { .daemon = named && *named ? named : "127.0.0.1:4430" };
	int option;

	while ((option = getopt_long(count, words, "", options, NULL)) != -1) {
		if (option == 'h')
			return fputs(usage_text, stdout) == EOF;
		if (option == 'v')
			return printf("weir-volume %s\n", weir_version()) < 0;
		if (option == '?')
			return usage("an option that there is not");
		take_option(&request, option, optarg);
	}
	return carry_out(&request, count - optind, words + optind);
}
