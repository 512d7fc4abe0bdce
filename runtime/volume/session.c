/* SPDX-License-Identifier: BSD-3-Clause */
/* volume/session.c: calls to the daemon, and the thread that makes them. */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../backend/error.h"
#include "session_json.h"

enum {
	OPEN_MS = 10000,
	CALL_MS = 2000,
	TICK_NS = 2000000,
	CONNECT_EVERY_MS = 200,
	MAP_EVERY_MS = 20,      /* while somebody waits for a newer one */
	DAMAGE_EVERY_MS = 1000, /* of the same blocks */
	MS = 1000000,
	CONNECT_MS = 1000, /* of a channel */
	KEEP_ALIVE_MS = 2000,
};

uint64_t weir_session_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void put_locked(struct weir_session_map *map)
{
	if (map && --map->references == 0)
		free(map);
}

void weir_session_put(struct weir_session *session, struct weir_session_map *map)
{
	pthread_mutex_lock(&session->lock);
	put_locked(map);
	pthread_mutex_unlock(&session->lock);
}

bool weir_session_refresh(struct weir_session *session, struct weir_session_map **held)
{
	/* Relaxed: a hint; the lock orders the map itself. */
	if (*held && (*held)->map.epoch == load_relaxed_u32(&session->epoch))
		return false;
	pthread_mutex_lock(&session->lock);
	put_locked(*held);
	*held = session->map;
	(*held)->references++;
	pthread_mutex_unlock(&session->lock);
	return true;
}

/* The number of one that has left may be given again. */
static bool is_same(const struct nvme_volume_engine *a, const struct nvme_volume_engine *b)
{
	return a->id == b->id && !strcmp(a->address, b->address) && !strcmp(a->nqn, b->nqn);
}

/* The number of an engine in this client: the one that it had, or a new one. */
static u8 slot_of(struct weir_session *session, const struct nvme_volume_engine *engine)
{
	unsigned slot = 0;

	while (slot < session->slot_count && !is_same(&session->slots[slot], engine))
		slot++;
	if (slot == WEIR_SESSION_SLOTS)
		return WEIR_SESSION_NO_SLOT;
	session->slots[slot] = *engine;
	session->slot_count = slot == session->slot_count ? slot + 1 : session->slot_count;
	return (u8)slot;
}

/* Lanes have a copy of the map before this one: they leave it before any thread goes by the newer one. */
static void publish(struct weir_session *session, struct weir_session_map *map)
{
	if (session->retire)
		session->retire(session->argument);
	pthread_mutex_lock(&session->lock);
	for (unsigned i = 0; i < map->map.count; i++)
		map->slot[i] = slot_of(session, &map->map.engines[i]);
	put_locked(session->map);
	map->references = 1;
	session->map = map;
	store_relaxed_u32(&session->epoch, map->map.epoch); /* relaxed: the lock orders the map itself */
	pthread_mutex_unlock(&session->lock);
}

/* The table of a map with the same engines as the one before is that one's. */
static int fill_table(const struct weir_session_map *before, struct weir_session_map *map)
{
	if (!before || !weir_placement_is_same(&before->map, &map->map))
		return weir_placement_build(&map->map, map->table);
	memcpy(map->table, before->table, sizeof(map->table));
	return 0;
}

static int take_newer(struct weir_session *session, const struct nvme_volume_map *newer)
{
	struct weir_session_map *map = malloc(sizeof(*map));
	int error;

	if (!map)
		return weir_fail(ENOMEM, "volume \"%s\": no memory for a map", session->keys.name);
	map->map = *newer;
	error = fill_table(session->map, map);
	if (error)
		free(map);
	else
		publish(session, map);
	return error;
}

/* Take "map" of an answer, if it is newer. */
static int take_map(struct weir_session *session, const json_t *answer)
{
	struct nvme_volume_map map = { .epoch = 0 };
	int error = weir_session_read_map(session->keys.name, answer, &map);

	if (error || (session->map && map.epoch <= session->map->map.epoch))
		return error;
	return take_newer(session, &map);
}

static void say(const struct weir_session *session, const char *what)
{
	weir_report("volume \"%s\": %s", session->keys.name, what);
}

static int connect_daemon(struct weir_session *session)
{
	const struct weir_session_keys *keys = &session->keys;
	const struct weir_rpc_identity identity = { keys->host.nqn, keys->daemon_key };

	return weir_rpc_open(keys->daemon, *keys->daemon_key ? &identity : NULL, CALL_MS, &session->rpc);
}

/* Connected, or not to be tried again just yet. */
static bool connected(struct weir_session *session)
{
	uint64_t now = weir_session_now_ns();

	if (session->rpc && !weir_rpc_broken(session->rpc))
		return true;
	if (now < session->connect_ns)
		return false;
	weir_rpc_close(session->rpc);
	session->rpc = NULL;
	session->connect_ns = now + (uint64_t)CONNECT_EVERY_MS * MS;
	return connect_daemon(session) == 0;
}

static json_t *lease_params(const struct weir_session *session)
{
	return json_pack("{s:s, s:i, s:I}", "name", session->keys.name, "client", (int)session->client,
			 "epoch", (json_int_t)session->lease_epoch);
}

static void hold_until(struct weir_session *session, uint64_t asked_ns, uint64_t ms)
{
	session->lease_ms = ms;
	session->renew_ns = asked_ns + ms * MS / 2;
	/* Relaxed: whoever reads the old end writes no longer than was granted before. */
	store_relaxed_u64(&session->lease_end_ns, asked_ns + ms * MS);
}

static void renew(struct weir_session *session, uint64_t now)
{
	json_t *result = NULL;
	int error = weir_rpc_call(session->rpc, "lease_renew", lease_params(session), CALL_MS, &result);
	json_int_t ms = json_integer_value(json_object_get(result, "ms"));

	json_decref(result);
	if (!error && ms > 0) {
		hold_until(session, now, (uint64_t)ms);
		return;
	}
	session->renew_ns = now + (uint64_t)CONNECT_EVERY_MS * MS;
	if (weir_rpc_broken(session->rpc))
		return;                       /* until the time is over it may still be renewed */
	store_relaxed_u32(&session->lost, 1); /* relaxed: nothing else goes with it */
	say(session, error ? weir_last_error() : "the daemon does not renew its lease");
	say(session, "its lease is lost, and it is not written any more: close it and open it again");
}

static void keep_lease(struct weir_session *session, uint64_t now)
{
	if (!session->lease_epoch || load_relaxed_u32(&session->lost)) /* relaxed: its own */
		return;
	if (now >= load_relaxed_u64(&session->lease_end_ns)) { /* relaxed: its own */
		store_relaxed_u32(&session->lost, 1);          /* relaxed: nothing else goes with it */
		say(session, "its lease ran out, since the daemon was not reached: it is not written any "
			     "more; close it and open it again");
	} else if (now >= session->renew_ns && connected(session)) {
		renew(session, now);
	}
}

static void keep_map(struct weir_session *session, uint64_t now)
{
	json_t *result = NULL;

	/* Relaxed: asked again until it is there. */
	if (load_relaxed_u32(&session->asked_epoch) < load_relaxed_u32(&session->epoch) ||
	    now < session->map_ns || !connected(session))
		return;
	session->map_ns = now + (uint64_t)MAP_EVERY_MS * MS;
	store_relaxed_u32(&session->asked_epoch, 0); /* relaxed: whoever still waits asks again */
	if (weir_rpc_call(session->rpc, "map_get", NULL, CALL_MS, &result) == 0)
		(void)take_map(session, result);
	json_decref(result);
}

void weir_session_want_map(struct weir_session *session, u32 epoch)
{
	/* Relaxed: a wish; a lost one is repeated. */
	if (load_relaxed_u32(&session->asked_epoch) < epoch)
		store_relaxed_u32(&session->asked_epoch, epoch);
}

void weir_session_suspect(struct weir_session *session, u16 id)
{
	u32 epoch = load_relaxed_u32(&session->epoch); /* relaxed: its own */
	json_t *result = NULL;

	weir_session_want_map(session, epoch);
	if (connected(session) &&
	    weir_rpc_call(session->rpc, "engine_suspect",
			  json_pack("{s:i, s:I}", "id", (int)id, "map_epoch", (json_int_t)epoch), OPEN_MS,
			  &result) == 0)
		(void)take_map(session, result);
	json_decref(result);
}

/* Where @damage is noted, or may be; NULL: it was reported not long ago, or there is no room. */
static struct weir_session_damage *damage_slot(struct weir_session *session,
					       const struct weir_session_damage *damage, uint64_t now)
{
	struct weir_session_damage *free_one = NULL;

	for (unsigned i = 0; i < WEIR_SESSION_MOST_DAMAGE; i++) {
		struct weir_session_damage *other = &session->damage[i];
		bool old = !other->blocks ||
			   (other->said_ns && now - other->said_ns >= (uint64_t)DAMAGE_EVERY_MS * MS);

		if (old)
			free_one = other;
		else if (other->engine == damage->engine && other->vba == damage->vba &&
			 other->blocks == damage->blocks)
			return NULL;
	}
	return free_one;
}

void weir_session_damaged(struct weir_session *session, u32 slot, u32 vba, u32 blocks)
{
	struct weir_session_damage damage = { .vba = vba, .blocks = blocks }, *to;

	pthread_mutex_lock(&session->lock);
	damage.engine = session->slots[slot].id;
	to = damage_slot(session, &damage, weir_session_now_ns());
	if (to) {
		*to = damage;
		store_relaxed_u32(&session->damage_waits, 1); /* relaxed: the lock orders the rest */
	}
	pthread_mutex_unlock(&session->lock);
}

/* The next that was not reported. */
static bool take_damage(struct weir_session *session, uint64_t now, struct weir_session_damage *damage)
{
	bool found = false;

	pthread_mutex_lock(&session->lock);
	for (unsigned i = 0; i < WEIR_SESSION_MOST_DAMAGE && !found; i++) {
		found = session->damage[i].blocks && !session->damage[i].said_ns;
		if (found)
			session->damage[i].said_ns = now;
		*damage = session->damage[i];
	}
	if (!found)
		store_relaxed_u32(&session->damage_waits, 0); /* relaxed: the lock orders the rest */
	pthread_mutex_unlock(&session->lock);
	return found;
}

/* One at a time; one that is lost is reported again when the block is read again. */
static void report_damage(struct weir_session *session, uint64_t now)
{
	struct weir_session_damage damage;

	/* Relaxed: the lock orders what there is. */
	if (!load_relaxed_u32(&session->damage_waits) || !connected(session) ||
	    !take_damage(session, now, &damage))
		return;
	(void)weir_rpc_call(session->rpc, "block_damaged",
			    json_pack("{s:s, s:i, s:I, s:I}", "name", session->keys.name, "id",
				      (int)damage.engine, "vba", (json_int_t)damage.vba, "blocks",
				      (json_int_t)damage.blocks),
			    CALL_MS, NULL);
}

enum weir_session_lease weir_session_lease(const struct weir_session *session)
{
	if (!session->lease_epoch)
		return WEIR_LEASE_NONE;
	/* Relaxed: correctness rests on the lease's epoch, which engines check. */
	return load_relaxed_u32(&session->lost) ||
			       weir_session_now_ns() >= load_relaxed_u64(&session->lease_end_ns)
		       ? WEIR_LEASE_LOST
		       : WEIR_LEASE_HELD;
}

void weir_session_doubt(struct weir_session *session)
{
	/* Relaxed: nothing else goes with it. */
	if (!load_relaxed_u32(&session->lost)) {
		store_relaxed_u32(&session->lost, 1);
		say(session, "an engine knows another lease: it is not written any more; close it and open "
			     "it again");
	}
}

static void *run(void *argument)
{
	struct weir_session *session = argument;

	while (!load_relaxed_u32(&session->stop)) { /* relaxed: joining orders the rest */
		uint64_t now = weir_session_now_ns();

		keep_lease(session, now);
		keep_map(session, now);
		report_damage(session, now);
		session->tick(session->argument);
		nanosleep(&(struct timespec){ .tv_nsec = TICK_NS }, NULL);
	}
	return NULL;
}

int weir_session_start(struct weir_session *session, void (*tick)(void *argument),
		       void (*retire)(void *argument), void *argument)
{
	int error;

	session->tick = tick;
	session->retire = retire;
	session->argument = argument;
	error = pthread_create(&session->thread, NULL, run, session);
	session->started = !error;
	return error ? weir_fail(error, "volume \"%s\": cannot start its thread: %s", session->keys.name,
				 strerror(error))
		     : 0;
}

void weir_session_stop(struct weir_session *session)
{
	store_relaxed_u32(&session->stop, 1); /* joining orders the rest */
	if (session->started)
		pthread_join(session->thread, NULL);
	session->started = false;
}

static int open_volume(struct weir_session *session)
{
	uint64_t asked_ns = weir_session_now_ns(), ms = 0;
	json_t *result = NULL;
	int error = weir_rpc_call(session->rpc, "volume_open",
				  json_pack("{s:s, s:s, s:b}", "name", session->keys.name, "hostnqn",
					    session->keys.host.nqn, "write", !session->keys.read_only),
				  OPEN_MS, &result);

	if (!error)
		error = weir_session_read_volume(session, result, &ms);
	if (!error && !session->keys.read_only && !session->lease_epoch)
		error = weir_fail(EPROTO, "volume \"%s\": the daemon gives no lease", session->keys.name);
	if (!error)
		error = take_map(session, result);
	if (!error)
		hold_until(session, asked_ns, ms);
	json_decref(result);
	return error;
}

int weir_session_open(const struct weir_session_keys *keys, struct weir_session **out)
{
	struct weir_session *session = calloc(1, sizeof(*session));
	int error;

	if (!session)
		return weir_fail(ENOMEM, "volume \"%s\": no memory", keys->name);
	session->keys = *keys;
	pthread_mutex_init(&session->lock, NULL);
	error = connect_daemon(session);
	if (!error)
		error = open_volume(session);
	if (error) {
		weir_session_close(session);
		return error;
	}
	*out = session;
	return 0;
}

/* After a change that failed the daemon compares replicas before anyone else writes. */
static void release(struct weir_session *session)
{
	json_t *params = lease_params(session);

	json_object_set_new(params, "unequal",
			    json_boolean(load_relaxed_u32(&session->unequal))); /* relaxed: no thread runs */
	(void)weir_rpc_call(session->rpc, "lease_release", params, CALL_MS, NULL);
}

void weir_session_close(struct weir_session *session)
{
	if (session->lease_epoch && !load_relaxed_u32(&session->lost) && connected(session))
		release(session);
	weir_rpc_close(session->rpc);
	put_locked(session->map);
	pthread_mutex_destroy(&session->lock);
	free(session);
}

void weir_session_uri(const struct weir_session *session, const struct nvme_volume_engine *engine,
		      unsigned queues, char uri[WEIR_SESSION_URI_BYTES])
{
	const struct weir_session_keys *keys = &session->keys;
	char text[WEIR_HOST_ID_TEXT];

	if (strchr(engine->address, '/') || !strncmp(engine->address, "virt:", 5)) {
		snprintf(uri, WEIR_SESSION_URI_BYTES, "%s", engine->address);
		return;
	}
	snprintf(uri, WEIR_SESSION_URI_BYTES,
		 "nvmf:tcp://%s/%s?nsid=1&queues=%u&ctrl_loss_s=0&connect_ms=%d&keep_alive_ms=%d&hostnqn=%s&"
		 "hostid=%s%s%s%s%s%s%s",
		 engine->address, engine->nqn, queues, CONNECT_MS, KEEP_ALIVE_MS, keys->host.nqn,
		 weir_host_id_text(keys->host.id, text), *keys->secret ? "&dhchap_secret=" : "", keys->secret,
		 *keys->controller_secret ? "&dhchap_ctrl_secret=" : "", keys->controller_secret,
		 *keys->engine_key ? "&tls_psk=" : "", keys->engine_key);
}
