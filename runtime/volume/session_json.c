/* SPDX-License-Identifier: BSD-3-Clause */
/* volume/session_json.c: what the daemon says is checked before anything is done with it. */
#include "session_json.h"

#include <errno.h>
#include <string.h>

#include "../backend/error.h"

/* A whole number from @least to @most; a negative one is above all of these. */
static bool take_number(const json_t *object, const char *key, uint64_t least, uint64_t most, uint64_t *to)
{
	const json_t *value = json_object_get(object, key);

	*to = (uint64_t)json_integer_value(value);
	return json_is_integer(value) && *to >= least && *to <= most;
}

static bool take_text(const json_t *object, const char *key, char *to, size_t bytes)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (!text || strlen(text) >= bytes)
		return false;
	strcpy(to, text);
	return true;
}

static bool read_engine(const json_t *from, struct nvme_volume_engine *to)
{
	const char *state = json_string_value(json_object_get(from, "state"));
	uint64_t id, domain, weight;

	if (!state || !take_number(from, "id", 0, UINT16_MAX, &id) ||
	    !take_number(from, "domain", 0, UINT32_MAX, &domain) ||
	    !take_number(from, "weight", 0, UINT32_MAX, &weight) ||
	    !take_text(from, "address", to->address, sizeof(to->address)) ||
	    !take_text(from, "nqn", to->nqn, sizeof(to->nqn)))
		return false;
	to->id = (u16)id;
	to->domain = (u32)domain;
	to->weight = (u32)weight;
	to->state = strcmp(state, "in") ? NVME_VOLUME_ENGINE_OUT : NVME_VOLUME_ENGINE_IN;
	return true;
}

int weir_session_read_map(const char *name, const json_t *answer, struct nvme_volume_map *map)
{
	const json_t *from = json_object_get(answer, "map"), *engines = json_object_get(from, "engines");
	uint64_t epoch;
	bool good = json_is_array(engines) && json_array_size(engines) <= NVME_VOLUME_MOST_ENGINES &&
		    take_number(from, "epoch", 1, UINT32_MAX, &epoch);

	memset(map, 0, sizeof(*map));
	for (size_t i = 0; good && i < json_array_size(engines); i++)
		good = read_engine(json_array_get(engines, i), &map->engines[i]);
	if (!good)
		return weir_fail(EPROTO, "volume \"%s\": the daemon's map is none that can be read", name);
	map->epoch = (u32)epoch;
	map->count = (u16)json_array_size(engines);
	map->rebuilding = json_is_true(json_object_get(from, "rebuilding"));
	return 0;
}

int weir_session_read_volume(struct weir_session *session, const json_t *answer, uint64_t *ms)
{
	const json_t *from = json_object_get(answer, "volume"), *lease = json_object_get(answer, "lease");
	struct nvme_volume *volume = &session->volume;
	uint64_t vid, replicas, unit_log2, client, epoch = 0;

	*ms = 0;
	if (!take_number(from, "vid", 1, NVME_VOLUME_MOST, &vid) ||
	    !take_number(from, "blocks", 1, (uint64_t)1 << 32, &volume->blocks) ||
	    !take_number(from, "replicas", 1, NVME_VOLUME_MOST_REPLICAS, &replicas) ||
	    !take_number(from, "unit_log2", 0, 16, &unit_log2) ||
	    !take_number(answer, "client", 1, NVME_VOLUME_MOST, &client) ||
	    (json_is_object(lease) && !(take_number(lease, "epoch", 1, (1 << 24) - 1, &epoch) &&
					take_number(lease, "ms", 1, (uint64_t)1 << 40, ms))))
		return weir_fail(EPROTO, "volume \"%s\": the daemon's answer is none that can be read",
				 session->keys.name);
	volume->vid = (u16)vid;
	volume->replicas = (u8)replicas;
	volume->unit_log2 = (u8)unit_log2;
	session->client = (u16)client;
	session->lease_epoch = (u32)epoch;
	return 0;
}
