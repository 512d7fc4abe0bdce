/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir-volume: volumes of an array, by its daemon (docs/volumes.md).
 *
 * Owns: its commands, each of which is one call of the daemon.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tool.h"
#include "tool_options.h"
#include "transport/fabrics/identity.h"
#include "volume/rpc.h"

enum { CONNECT_MS = 3000, CALL_MS = 600000 };

static const char about[] =
	"usage: weir-volume create NAME SIZE [--replicas N] [--unit SIZE] [--weight N]\n"
	"       weir-volume share NAME [--host NQN] [--rights rw|r|none]\n"
	"       weir-volume list | info NAME | resize NAME SIZE | delete NAME\n"
	"       weir-volume put NAME FILE | get NAME FILE\n"
	"       weir-volume lease NAME [--end]\n"
	"       weir-volume engines [--add tcp://HOST:PORT/NQN] [--remove ID [--lost]]\n"
	"       weir-volume engines --keep ID\n"
	"       weir-volume status\n"
	"\n"
	"  create   a volume\n"
	"  share    let a host use it\n"
	"  resize   let it grow\n"
	"  put      write a file to it, from its first block on, as this host; get reads all of it\n"
	"  lease    who writes it\n"
	"  engines  the engines, what they have, and who is missing; an engine that is removed gives its\n"
	"           blocks to others first\n"
	"  status   the map, copying, leases, counts\n";

static const char notes[] = "Exit status: 0 done; 1 it failed; 2 bad usage.";

/** struct request - from the command line */
struct request {
	const char *daemon;
	bool json;
	bool end;
	const char *host;
	const char *hostnqn;
	const char *key;
	const char *engine_key;
	const char *secret;
	const char *controller_secret;
	const char *add;
	uint64_t unit;
	uint32_t rights;
	uint32_t replicas;
	uint32_t weight;
	uint32_t remove;
	uint32_t keep;
	bool lost;
};

enum rights { RIGHTS_RW, RIGHTS_R, RIGHTS_NONE };
static const char *const rights_names[] = { "rw", "r", "none", NULL };

static struct request request = { .daemon = "127.0.0.1:4430" };

static const struct tool_option options[] = {
	{ "replicas", "N", TOOL_U32, &request.replicas, 1, 255, "create: replicas of each block (2)", NULL,
	  NULL },
	{ "unit", "SIZE", TOOL_BYTES, &request.unit, 1, 0, "create: the stripe unit (64K)", NULL, NULL },
	{ "weight", "N", TOOL_U32, &request.weight, 1, 1000,
	  "create: its share of engines beside other volumes' (100)", NULL, NULL },
	{ "host", "NQN", TOOL_TEXT, &request.host, 0, 0,
	  "share: with which host; without, with this one\n(weir-fabrics show prints a host's NQN)", NULL,
	  NULL },
	{ "rights", "RIGHTS", TOOL_WORD, &(struct tool_word){ rights_names, &request.rights }, 0, 0,
	  "share: rw (read and write, the default), r (read) or none", NULL, NULL },
	{ "end", NULL, TOOL_FLAG, &request.end, 0, 0, "lease: end it as if its time were over", NULL, NULL },
	{ "add", "ENGINE", TOOL_TEXT, &request.add, 0, 0, "engines: one more, tcp://HOST:PORT/NQN", NULL,
	  NULL },
	{ "remove", "ID", TOOL_U32, &request.remove, 1, INT32_MAX, "engines: take that one out", NULL, NULL },
	{ "lost", NULL, TOOL_FLAG, &request.lost, 0, 0,
	  "engines --remove: it does not answer, and never will:\ndo without what it alone has", NULL, NULL },
	{ "keep", "ID", TOOL_U32, &request.keep, 1, INT32_MAX,
	  "engines: that one stays: call off its --remove, unless it has left", NULL, NULL },
	{ "daemon", "ADDRESS", TOOL_TEXT, &request.daemon, 0, 0,
	  "HOST:PORT, or the path of a socket; several with commas: the first\nthat answers (the "
	  "environment's WEIR_VOLUMED, or 127.0.0.1:4430)",
	  NULL, NULL },
	{ "tls-psk", "FILE", TOOL_TEXT, &request.key, 0, 0,
	  "this host's key, where the daemon takes hosts by TLS\n(weir-volumed --host, --manager)", NULL,
	  NULL },
	{ "engine-psk", "FILE", TOOL_TEXT, &request.engine_key, 0, 0,
	  "put, get: this host's key, where engines take hosts by TLS\n(weir-target --host)", NULL, NULL },
	{ "secret", "FILE", TOOL_TEXT, &request.secret, 0, 0, "likewise, where they ask for a secret", NULL,
	  NULL },
	{ "controller-secret", "FILE", TOOL_TEXT, &request.controller_secret, 0, 0,
	  "put, get: what engines have to prove that they know", NULL, NULL },
	{ "hostnqn", "NQN", TOOL_TEXT, &request.hostnqn, 0, 0,
	  "who this host is (this user's host NQN; weir-fabrics show)", NULL, NULL },
	{ "json", NULL, TOOL_FLAG, &request.json, 0, 0, "print the daemon's answer as it is", NULL, NULL },
	{ .name = NULL },
};

static char **words;

static const struct tool_program program = {
	.name = "weir-volume", .about = about, .options = options, .all = &words, .notes = notes
};

static int bad(void)
{
	return tool_failed();
}

/* This host's NQN, or NULL with a sentence. */
static const char *self(void)
{
	static struct weir_host_identity identity;

	if (request.hostnqn)
		return request.hostnqn;
	return weir_host_identity(&identity) == 0 ? identity.nqn : NULL;
}

static int connect_daemon(struct weir_rpc **rpc)
{
	const struct weir_rpc_identity identity = { request.key ? self() : NULL, request.key };

	if (request.key && !identity.hostnqn)
		return -EINVAL;
	return weir_rpc_open(request.daemon, request.key ? &identity : NULL, CONNECT_MS, rpc);
}

static int show(json_t *result, void (*print)(json_t *))
{
	if (request.json) {
		json_dumpf(result, stdout, JSON_INDENT(2));
		putchar('\n');
	} else if (print) {
		print(result);
	}
	json_decref(result);
	return 0;
}

static int call(const char *method, json_t *params, void (*print)(json_t *))
{
	struct weir_rpc *rpc;
	json_t *result = NULL;
	int error = connect_daemon(&rpc);

	if (error) {
		json_decref(params);
		return bad();
	}
	error = weir_rpc_call(rpc, method, params, CALL_MS, &result);
	weir_rpc_close(rpc);
	return error ? bad() : show(result, print);
}

/* The hosts of @volume behind those that came with it, page by page; an older daemon gives all at once. */
static int take_hosts(struct weir_rpc *rpc, const char *name, json_t *volume)
{
	json_int_t from = 0, next;
	int error = 0;

	while (!error && (next = json_integer_value(json_object_get(volume, "next"))) > from) {
		json_t *page = NULL, *more;

		from = next;
		error = weir_rpc_call(rpc, "volume_info", json_pack("{s:s, s:I}", "name", name, "from", from),
				      CALL_MS, &page);
		more = json_object_get(page, "volume");
		json_array_extend(json_object_get(volume, "hosts"), json_object_get(more, "hosts"));
		json_object_set(volume, "next", json_object_get(more, "next"));
		json_decref(page);
	}
	json_object_del(volume, "next");
	return error;
}

/* A call that is answered with volume @name, and all its hosts. */
static int call_volume(const char *method, const char *name, json_t *params)
{
	struct weir_rpc *rpc;
	json_t *result = NULL;
	int error = connect_daemon(&rpc);

	if (error) {
		json_decref(params);
		return bad();
	}
	json_object_set_new(params, "name", json_string(name));
	json_object_set_new(params, "from", json_integer(0));
	error = weir_rpc_call(rpc, method, params, CALL_MS, &result);
	if (!error)
		error = take_hosts(rpc, name, json_object_get(result, "volume"));
	weir_rpc_close(rpc);
	if (!error)
		return show(result, print_volume);
	json_decref(result);
	return bad();
}

static int bad_size(const char *size)
{
	return tool_usage("\"%s\" is no size: a size is written 4096, 64K, 10G or 1T", size);
}

static int create(char **operands)
{
	uint64_t bytes;
	json_t *params;

	if (weir_parse_bytes(operands[1], &bytes) != 0)
		return bad_size(operands[1]);
	params = json_pack("{s:s, s:I}", "name", operands[0], "bytes", (json_int_t)bytes);
	if (request.unit)
		json_object_set_new(params, "unit_bytes", json_integer((json_int_t)request.unit));
	if (request.replicas)
		json_object_set_new(params, "replicas", json_integer(request.replicas));
	if (request.weight)
		json_object_set_new(params, "weight", json_integer(request.weight));
	return call("volume_create", params, print_volume);
}

static int resize(char **operands)
{
	uint64_t bytes;

	if (weir_parse_bytes(operands[1], &bytes) != 0)
		return bad_size(operands[1]);
	return call_volume("volume_resize", operands[0], json_pack("{s:I}", "bytes", (json_int_t)bytes));
}

static int share(char **operands)
{
	const char *host = request.host ? request.host : self();

	if (!host)
		return bad();
	return call_volume("volume_chmod", operands[0],
			   json_pack("{s:s, s:s}", "hostnqn", host, "rights",
				     request.rights == RIGHTS_NONE ? "" : rights_names[request.rights]));
}

static int engines(char **operands)
{
	const char *address = request.add ? request.add : "", *slash;
	json_t *params;

	(void)operands;
	if (request.lost && !request.remove)
		return tool_usage(
			"--lost says that the engine of --remove is gone for good: give --remove ID, too");
	if ((request.add != NULL) + (request.remove != 0) + (request.keep != 0) > 1)
		return tool_usage("--add, --remove and --keep are commands of their own; give one of them");
	if (request.keep)
		return call("engine_keep", json_pack("{s:i}", "id", (int)request.keep), NULL);
	if (request.remove)
		return call("engine_remove",
			    json_pack("{s:i, s:b}", "id", (int)request.remove, "lost", (int)request.lost),
			    NULL);
	if (!request.add)
		return call("engine_list", NULL, print_engines);
	address += strncmp(address, "tcp://", 6) ? 0 : 6;
	slash = strchr(address, '/');
	if (!slash)
		return tool_usage("--add does not take \"%s\"; an engine is written tcp://HOST:PORT/NQN",
				  request.add);
	params = json_pack("{s:s%, s:s}", "address", address, (size_t)(slash - address), "nqn", slash + 1);
	return call("engine_add", params, NULL);
}

static json_t *named(const char *name)
{
	return json_pack("{s:s}", "name", name);
}

static int info(char **operands)
{
	return call_volume("volume_info", operands[0], json_object());
}

static int lease(char **operands)
{
	if (!request.end)
		return info(operands);
	return call("lease_end", named(operands[0]), NULL);
}

static int delete (char **operands)
{
	return call("volume_delete", named(operands[0]), NULL);
}

/* All volumes, page by page, behind those of @volumes; an older daemon gives all at once. */
static int list_all(struct weir_rpc *rpc, json_t *volumes)
{
	json_int_t from = 0, next = 1;
	int error = 0;

	while (!error && next > from) {
		json_t *page = NULL;

		from = next;
		error = weir_rpc_call(rpc, "volume_list", json_pack("{s:I}", "from", from), CALL_MS, &page);
		json_array_extend(volumes, json_object_get(page, "volumes"));
		next = json_integer_value(json_object_get(page, "next"));
		json_decref(page);
	}
	return error;
}

static int list(char **operands)
{
	json_t *volumes;
	struct weir_rpc *rpc;
	int error = connect_daemon(&rpc);

	(void)operands;
	if (error)
		return bad();
	volumes = json_array();
	error = list_all(rpc, volumes);
	weir_rpc_close(rpc);
	if (!error)
		return show(json_pack("{s:o}", "volumes", volumes), print_volumes);
	json_decref(volumes);
	return bad();
}

static int status(char **operands)
{
	(void)operands;
	return call("status", NULL, print_status);
}

static int copy(char **operands, bool put)
{
	const struct copied copied = {
		request.daemon,  request.key, request.engine_key, request.secret, request.controller_secret,
		request.hostnqn, operands[0]
	};

	return copy_file(&copied, operands[1], put) == 0 ? 0 : bad();
}

static int put(char **operands)
{
	return copy(operands, true);
}

static int get(char **operands)
{
	return copy(operands, false);
}

static const struct tool_command commands[] = {
	{ "create", "NAME SIZE", 2, 2, create },
	{ "share", "NAME", 1, 1, share },
	{ "list", NULL, 0, 0, list },
	{ "info", "NAME", 1, 1, info },
	{ "resize", "NAME SIZE", 2, 2, resize },
	{ "delete", "NAME", 1, 1, delete },
	{ "put", "NAME FILE", 2, 2, put },
	{ "get", "NAME FILE", 2, 2, get },
	{ "lease", "NAME", 1, 1, lease },
	{ "engines", NULL, 0, 0, engines },
	{ "status", NULL, 0, 0, status },
	{ NULL, NULL, 0, 0, NULL },
};

int main(int argc, char **argv)
{
	const char *daemon = getenv("WEIR_VOLUMED");
	int exit_status;

	if (daemon && *daemon)
		request.daemon = daemon;
	exit_status = tool_parse(&program, argc, argv);
	return exit_status < 0 ? tool_run(&program, commands) : exit_status;
}
