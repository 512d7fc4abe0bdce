/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume/attach.c: a client's map and lease, as its lanes go by them.
 *
 * Owns: from the session's slots to lanes' engines. Lanes know the engines of the map that was the newest
 * when the volume was opened; blocks of others go by way of the host's threads.
 */
#include <string.h>

#include "../backend/error.h"
#include "../device/context.h"
#include "lanes.h"
#include "medium.h"

enum { MOST_QUEUES = 8, DEPTH = 128 };

/* What lanes call the engine with that index in the map that they go by. */
static u8 byte_of(const struct volume *volume, u32 engine)
{
	u32 slot = volume->lanes_map->slot[engine],
	    number = slot == WEIR_SESSION_NO_SLOT ? (u32)WEIR_PLACED_HIDDEN : volume->lanes_engine[slot];

	return number < WEIR_PLACED_LEAST && weir_lanes_has(volume->lanes, number) ? (u8)number
										   : (u8)WEIR_PLACED_HIDDEN;
}

/* Word of each group, in @words. */
static void fill(const struct volume *volume, u32 *words)
{
	const struct weir_session_map *map = volume->lanes_map;
	weir_addr table = (weir_addr)(uintptr_t)map->table;
	u8 bytes[WEIR_PLACEMENT_NONE + 1];

	memset(bytes, WEIR_PLACED_NOBODY, sizeof(bytes));
	for (u32 i = 0; i < map->map.count; i++)
		bytes[i] = byte_of(volume, i);
	for (u32 group = 0; group < WEIR_PLACEMENT_GROUPS; group++) {
		u32 word = 0;

		for (u32 replica = 0; replica < NVME_VOLUME_MOST_REPLICAS; replica++)
			word |= (u32)bytes[weir_placement_engine(table, group, replica)] << (8 * replica);
		words[group] = word;
	}
}

/* Under the volume's lock. */
static void update(struct volume *volume, bool retire)
{
	struct weir_session *session = volume->session;
	static u32 table[WEIR_PLACEMENT_GROUPS];
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

	if (retire) {
		weir_lanes_no_map(volume->lanes);
		return;
	}
	weir_lanes_lease(volume->lanes,
			 weir_session_lease(session) == WEIR_LEASE_HELD ? session->lease_epoch : 0);
	if (!weir_session_refresh(session, &volume->lanes_map))
		return;
	pthread_mutex_lock(&one);
	fill(volume, table);
	(void)weir_lanes_map(volume->lanes, volume->lanes_map->map.epoch, table);
	pthread_mutex_unlock(&one);
}

static int open_lanes(struct volume *volume, struct weir_storage *storage, const struct weir_session_map *map)
{
	const struct nvme_volume *made = &volume->session->volume;
	char uris[NVME_VOLUME_MOST_ENGINES][WEIR_SESSION_URI_BYTES];
	const char *list[NVME_VOLUME_MOST_ENGINES];
	struct weir_lanes_options options = { .uris = list,
					      .vid = made->vid,
					      .client = volume->session->client,
					      .unit_log2 = made->unit_log2,
					      .replicas = made->replicas,
					      .queues = storage->disk.queue_count,
					      .depth = storage->depth < DEPTH ? storage->depth : DEPTH };

	if (options.queues > MOST_QUEUES)
		options.queues = MOST_QUEUES;
	for (u32 i = 0; i < map->map.count; i++) {
		if (map->slot[i] == WEIR_SESSION_NO_SLOT ||
		    map->map.engines[i].state != NVME_VOLUME_ENGINE_IN)
			continue;
		weir_session_uri(volume->session, &map->map.engines[i], options.queues,
				 uris[options.engines]);
		list[options.engines] = uris[options.engines];
		volume->lanes_engine[map->slot[i]] = (u8)options.engines++;
	}
	return weir_lanes_open(storage, &options, &volume->lanes);
}

int volume_attach(struct volume *volume, struct weir_storage *storage)
{
	struct weir_session_map *map = NULL;
	int error;

	memset(volume->lanes_engine, WEIR_PLACED_HIDDEN, sizeof(volume->lanes_engine));
	(void)weir_session_refresh(volume->session, &map);
	error = open_lanes(volume, storage, map);
	weir_session_put(volume->session, map);
	if (error)
		return error;
	pthread_mutex_lock(&volume->lock);
	update(volume, false);
	volume->update_lanes = update;
	pthread_mutex_unlock(&volume->lock);
	return 0;
}

void volume_detach(struct volume *volume)
{
	u64 unequal = 0;

	if (!volume->lanes)
		return;
	pthread_mutex_lock(&volume->lock);
	volume->update_lanes = NULL;
	pthread_mutex_unlock(&volume->lock);
	(void)weir_lanes_refused(volume->lanes, &unequal);
	if (unequal)
		store_relaxed_u32(&volume->session->unequal, 1); /* relaxed: read when no thread runs */
	weir_lanes_close(volume->lanes);
	volume->lanes = NULL;
}
