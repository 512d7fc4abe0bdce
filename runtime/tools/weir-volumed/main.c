/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir-volumed: the daemon of an array of engines (docs/volumes.md).
 *
 * Owns: flags, what is said, and how it ends: SIGTERM and SIGINT, or a lease that is over (store.h). Keeps
 * nothing on disk.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <weir/weir.h>

#include "backend/error.h"
#include "store.h"
#include "tool_options.h"
#include "volume/daemon/serve.h"
#include "volume/rpc.h"

enum {
	DEFAULT_WEIGHT = 100,
	DEFAULT_REBUILD_MIB = 32,
	CONNECT_MS = 1000,
	RETRY_MS = 1000,
	STORE_SECONDS = 10,
	LEAST_STORE_SECONDS = 2, /* etcd's own least, of its usual election timeout */
	MOST_SECONDS = 86400,
	MOST_MIB = 1 << 20,
	MIB_BLOCKS = (1 << 20) / NVME_VOLUME_BLOCK_BYTES,
};

static const char about[] =
	"usage: weir-volumed --engine tcp://HOST:PORT/NQN[,domain=N][,weight=N] ...\n"
	"\n"
	"Keeps the volumes of an array of engines: who may use them, who writes them, where their blocks\n"
	"are. No read or write passes through it, and it keeps nothing on disk: it reads all it knows from\n"
	"the engines. One engine of an array is enough to find the others.\n";

static const char notes[] = "Exit status: 0 it was told to end; 1 it cannot serve; 2 bad usage.";

/** struct config - from the command line */
struct config {
	struct nvme_volume_engine engines[NVME_VOLUME_MOST_ENGINES];
	bool spare[NVME_VOLUME_MOST_ENGINES];
	unsigned engine_count;
	const char *listen[VOLUMED_LISTENERS];
	unsigned listen_count;
	uint32_t lease_seconds;
	uint32_t rebuild_mib;
	bool alone;
	const char *store;
	uint32_t store_seconds;
	const char *hostnqn;
	struct weir_chap_secret secret;
	struct weir_chap_secret controller_secret;
	struct weir_tls_key engine_key;
	struct volumed_hosts hosts;
};

static int take_number(const char *what, const char *text, u32 least, u32 most, u32 *value)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*end || !strchr("0123456789", *text) || end == text || number < least || number > most)
		return weir_fail(EINVAL, "%s: '%s' is not from %u to %u", what, text, least, most);
	*value = (u32)number;
	return 0;
}

static struct config config = { .rebuild_mib = DEFAULT_REBUILD_MIB, .store_seconds = STORE_SECONDS };
static struct store *store; /* NULL: the only daemon */

static int take_engine_word(struct nvme_volume_engine *engine, const char *key)
{
	if (!strncmp(key, "domain=", 7))
		return take_number("domain of an engine", key + 7, 0, UINT32_MAX - 1, &engine->domain);
	if (!strncmp(key, "weight=", 7))
		return take_number("weight of an engine", key + 7, 1, 65535, &engine->weight);
	return weir_fail(EINVAL, "an engine has no key '%s': domain and weight are its keys", key);
}

static int take_engine(struct config *config, const char *text, bool spare)
{
	struct nvme_volume_engine *engine = &config->engines[config->engine_count];
	char copy[256], *save, *slash, *key;
	int error = 0;

	if (config->engine_count == NVME_VOLUME_MOST_ENGINES)
		return weir_fail(ENOSPC, "an array has at most %d engines", NVME_VOLUME_MOST_ENGINES);
	*engine = (struct nvme_volume_engine){ .domain = VOLUMED_OWN_DOMAIN, .weight = DEFAULT_WEIGHT };
	snprintf(copy, sizeof(copy), "%s", strncmp(text, "tcp://", 6) ? text : text + 6);
	key = strtok_r(copy, ",", &save);
	slash = key ? strchr(key, '/') : NULL;
	if (!slash || strlen(text) >= sizeof(copy) || slash - key >= (long)sizeof(engine->address) ||
	    strlen(slash + 1) >= sizeof(engine->nqn) || strncmp(slash + 1, "nqn.", 4) != 0)
		return weir_fail(EINVAL,
				 "engine '%s': write tcp://HOST:PORT/NQN, an address of %zu and an NQN "
				 "of %zu characters at most",
				 text, sizeof(engine->address) - 1, sizeof(engine->nqn) - 1);
	memcpy(engine->address, key, (size_t)(slash - key));
	memcpy(engine->nqn, slash + 1, strlen(slash + 1));
	while (!error && (key = strtok_r(NULL, ",", &save)))
		error = take_engine_word(engine, key);
	config->spare[config->engine_count++] = spare;
	return error;
}

static int take_listen(struct config *config, const char *address)
{
	if (config->listen_count == VOLUMED_LISTENERS)
		return weir_fail(ENOSPC, "--listen %s: at most %d may be given", address, VOLUMED_LISTENERS);
	config->listen[config->listen_count++] = address;
	return weir_rpc_check(address);
}

static int take_member(void *to, const char *text)
{
	return take_engine(to, text, false);
}

static int take_spare(void *to, const char *text)
{
	return take_engine(to, text, true);
}

static int take_listener(void *to, const char *text)
{
	return take_listen(to, text);
}

static int take_secret(void *to, const char *text)
{
	return weir_chap_secret_load(text, to);
}

static int take_caller(struct config *config, const char *nqn, bool manager)
{
	struct volumed_hosts *hosts = &config->hosts;

	if (hosts->count == VOLUMED_HOSTS)
		return weir_fail(ENOSPC, "host %s: at most %d may be named", nqn, VOLUMED_HOSTS);
	if (strncmp(nqn, "nqn.", 4) != 0 || strlen(nqn) > NVME_NQN_LONGEST)
		return weir_fail(EINVAL, "host %s: its NQN begins with \"nqn.\"", nqn);
	if (volumed_host_find(hosts, nqn))
		return weir_fail(EEXIST, "host %s is named twice", nqn);
	hosts->entries[hosts->count++] = (struct volumed_host){ .nqn = nqn, .manager = manager };
	return 0;
}

static int take_host(void *to, const char *text)
{
	return take_caller(to, text, false);
}

static int take_manager(void *to, const char *text)
{
	return take_caller(to, text, true);
}

static int take_host_key(void *to, const char *text)
{
	struct config *config = to;

	if (!config->hosts.count)
		return weir_fail(EINVAL, "--tls-psk %s: name its host first, by --host NQN or --manager NQN",
				 text);
	return weir_tls_key_load(text, &config->hosts.entries[config->hosts.count - 1].key);
}

static int take_engine_key(void *to, const char *text)
{
	return weir_tls_key_load(text, to);
}

#define PARSER(parse, to) (&(struct tool_parser){ parse, to })

static const struct tool_option options[] = {
	{ "engine", "ENGINE", TOOL_PARSED, PARSER(take_member, &config), 0, 0,
	  "an engine (weir-target --engine); engines of one domain fail\ntogether, and replicas are in "
	  "different "
	  "ones; weight 100 is\nthe usual share of blocks",
	  NULL, NULL },
	{ "spare", "ENGINE", TOOL_PARSED, PARSER(take_spare, &config), 0, 0,
	  "the same for an engine that stays empty until another one fails", NULL, NULL },
	{ "alone", NULL, TOOL_FLAG, &config.alone, 0, 0,
	  "begin a new array of one engine; without it a daemon that is\ngiven one engine waits for one that "
	  "belongs to an array",
	  NULL, NULL },
	{ "listen", "HOST:PORT", TOOL_PARSED, PARSER(take_listener, &config), 0, 0,
	  "where clients and weir-volume connect (127.0.0.1:4430); may be\ngiven again. Without --host or "
	  "--manager nothing is encrypted\nthere, and any host is believed: keep to a trusted network",
	  NULL, NULL },
	{ "socket", "PATH", TOOL_PARSED, PARSER(take_listener, &config), 0, 0, "a local socket for the same",
	  NULL, NULL },
	{ "host", "NQN", TOOL_PARSED, PARSER(take_host, &config), 0, 0,
	  "a host that may use volumes shared with it; may be given again.\nWith any, callers come by TLS "
	  "1.3 "
	  "alone, but for --socket",
	  NULL, NULL },
	{ "manager", "NQN", TOOL_PARSED, PARSER(take_manager, &config), 0, 0,
	  "likewise a host that may do everything: create, share, ...", NULL, NULL },
	{ "tls-psk", "FILE", TOOL_PARSED, PARSER(take_host_key, &config), 0, 0,
	  "the key of the host or manager before it; its owner alone can\nread that file; weir-fabrics psk "
	  "makes one",
	  NULL, NULL },
	{ "lease-seconds", "N", TOOL_U32, &config.lease_seconds, 1, MOST_SECONDS,
	  "how long a writer has a volume unless it renews its lease (300)", NULL, NULL },
	{ "store", "URI", TOOL_TEXT, &config.store, 0, 0,
	  "etcd://HOST:PORT[,HOST:PORT...][/ARRAY] (etcds: by TLS): of several\ndaemons with the same store "
	  "one is active; the others stand by\nuntil it has gone",
	  NULL, NULL },
	{ "store-seconds", "N", TOOL_U32, &config.store_seconds, LEAST_STORE_SECONDS, MOST_SECONDS,
	  "how long the others wait for one that says nothing (10)", NULL, NULL },
	{ "rebuild-rate", "MIB", TOOL_U32, &config.rebuild_mib, 0, MOST_MIB,
	  "MiB a second that are copied between engines while clients go on\n(32); 0: as fast as it goes",
	  NULL, NULL },
	{ "hostnqn", "NQN", TOOL_TEXT, &config.hostnqn, 0, 0,
	  "who the daemon is to engines (this user's host NQN;\nweir-fabrics show)", NULL, NULL },
	{ "secret", "FILE", TOOL_PARSED, PARSER(take_secret, &config.secret), 0, 0,
	  "by which the daemon authenticates to engines that ask it to\n(DH-HMAC-CHAP)", NULL, NULL },
	{ "controller-secret", "FILE", TOOL_PARSED, PARSER(take_secret, &config.controller_secret), 0, 0,
	  "what engines have to prove that they know", NULL, NULL },
	{ "engine-psk", "FILE", TOOL_PARSED, PARSER(take_engine_key, &config.engine_key), 0, 0,
	  "the daemon's key of TLS with engines (weir-target --tls-psk)", NULL, NULL },
	{ .name = NULL },
};

static const struct tool_program program = {
	.name = "weir-volumed", .about = about, .options = options, .notes = notes
};

/* A host without a key could never come. An exit status, or -1: go on. */
static int check_hosts(void)
{
	for (unsigned i = 0; i < config.hosts.count; i++)
		if (!config.hosts.entries[i].key.bytes)
			return tool_usage("host %s has no key: give --tls-psk FILE behind it",
					  config.hosts.entries[i].nqn);
	return -1;
}

/* An exit status, or -1: go on. */
static int read_arguments(int count, char **words)
{
	int status = tool_parse(&program, count, words);

	if (status < 0 && !config.engine_count)
		return tool_usage("an engine is missing: give --engine tcp://HOST:PORT/NQN");
	if (!config.listen_count)
		(void)take_listen(&config, "127.0.0.1:4430");
	return status < 0 ? check_hosts() : status;
}

/* Until @attempt says something else than -EAGAIN, or a signal comes. Return: 0; 1: a signal; or a negative
 * errno. */
static int retry(int (*attempt)(void *argument), void *argument, const char *doing, int signals)
{
	struct pollfd poll_signals = { .fd = signals, .events = POLLIN };
	bool reported = false;
	int error;

	while ((error = attempt(argument)) == -EAGAIN) {
		if (!reported)
			(void)tool_complain("%s: %s", doing, weir_last_error());
		reported = true;
		if (poll(&poll_signals, 1, RETRY_MS) > 0)
			return 1;
	}
	return error;
}

static int become_active(void *argument)
{
	return store_take(argument);
}

/* Enough engines answer. */
static int gather(void *argument)
{
	return volumed_gather(argument);
}

static void describe(const struct volumed *d)
{
	printf("weir-volumed: serving %zu volumes on %u engines, map %u, at", d->volume_count,
	       d->engine_count, d->epoch);
	for (unsigned i = 0; i < config.listen_count; i++)
		printf(" %s", config.listen[i]);
	printf("%s\n", config.hosts.count ? ", hosts by TLS" : "");
	fflush(stdout);
}

static void end_listening(const char *address, int socket)
{
	(void)close(socket);
	if (address[0] == '/')
		(void)unlink(address);
}

/* Engines are asked for nothing yet: whoever has one of the addresses may be their daemon. */
static int try_listening(void)
{
	for (unsigned i = 0; i < config.listen_count; i++) {
		int found = weir_rpc_listen(config.listen[i]);

		if (found < 0)
			return found;
		end_listening(config.listen[i], found);
	}
	return 0;
}

static int serve(struct volumed *d, int signals)
{
	int sockets[VOLUMED_LISTENERS];
	int error = store ? retry(become_active, store, "standing by", signals) : 0;
	unsigned count = 0;

	if (!error)
		error = try_listening();
	if (!error)
		error = retry(gather, d, "waiting", signals);

	for (; !error && count < config.listen_count; count++) {
		sockets[count] = weir_rpc_listen(config.listen[count]);
		if (sockets[count] < 0)
			error = sockets[count];
	}
	if (!error) {
		describe(d);
		error = volumed_serve(d,
				      &(struct volumed_listeners){
					      .sockets = sockets, .count = count, .hosts = &config.hosts },
				      signals);
		if (error > 0)
			printf("weir-volumed: ended by %s\n", strsignal(error));
	}
	while (count-- > 0)
		if (sockets[count] >= 0) /* else what is at its path is somebody else's */
			end_listening(config.listen[count], sockets[count]);
	return error < 0 ? error : 0;
}

static const struct volume_engine_link_ops *unguarded;

static int guarded_open(struct volume_engine_link *link)
{
	store_check(store);
	return unguarded->open(link);
}

static int guarded_command(struct volume_engine_link *link, bool io, const struct nvme_sqe *sqe, void *data,
			   uint32_t bytes, enum volume_way way, unsigned ms)
{
	store_check(store);
	return unguarded->command(link, io, sqe, data, bytes, way, ms);
}

static void guarded_close(struct volume_engine_link *link)
{
	unguarded->close(link);
}

static const struct volume_engine_link_ops guarded = { .open = guarded_open,
						       .command = guarded_command,
						       .close = guarded_close };

/** struct guard - links that ask the store before each command */
struct guard {
	struct volume_linker base;
	struct volume_linker *linker;
};

static int create_guarded(struct volume_linker *linker, const char *address, const char *nqn,
			  struct volume_engine_link **out)
{
	struct guard *guard = (struct guard *)linker;
	int error = guard->linker->create(guard->linker, address, nqn, out);

	if (!error) {
		unguarded = (*out)->ops;
		(*out)->ops = &guarded;
	}
	return error;
}

static int open_store(void)
{
	char host[64] = "", who[200];

	if (!config.store)
		return 0;
	(void)gethostname(host, sizeof(host) - 1);
	snprintf(who, sizeof(who), "the daemon at %.100s of %s, process %d,", config.listen[0], host,
		 (int)getpid());
	return store_open(config.store, who, config.store_seconds, &store);
}

static int run(int signals)
{
	struct volume_linker_nvmf linker = { .base = volume_linker_nvmf,
					     .hostnqn = config.hostnqn,
					     .secret = config.secret,
					     .controller_secret = config.controller_secret,
					     .tls_key = config.engine_key,
					     .connect_ms = CONNECT_MS };
	struct guard guard = { .base = { .create = create_guarded }, .linker = &linker.base };
	struct volumed *d;
	int error = open_store();

	if (error)
		return error;
	error = volumed_create(
		&(struct volumed_options){ .linker = store ? &guard.base : &linker.base,
					   .lease_ms = config.lease_seconds * 1000ull,
					   .rebuild_blocks = (uint64_t)config.rebuild_mib * MIB_BLOCKS,
					   .alone = config.alone },
		&d);

	if (error) {
		store_close(store);
		return error;
	}
	for (unsigned i = 0; i < config.engine_count && !error; i++)
		error = volumed_engine_note(d, &config.engines[i], config.spare[i]);
	if (!error)
		error = serve(d, signals);
	volumed_destroy(d);
	store_close(store);
	return error;
}

/* Each client has a connection; of the files that a shell allows at first, a thousand clients need more. */
static void allow_connections(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

int main(int count, char **words)
{
	int status = read_arguments(count, words), file;
	sigset_t signals;

	if (status >= 0)
		return status;
	allow_connections();
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	file = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (run(file) == 0)
		return 0;
	return tool_failed();
}
