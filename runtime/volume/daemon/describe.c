/* SPDX-License-Identifier: BSD-3-Clause */
/* describe.c: volumes, the map, engines and the daemon's state as JSON. */
#include "methods.h"

#include "../rpc.h"

enum { HOSTS_BYTES = WEIR_RPC_LINE_BYTES / 4 }; /* of a page of them */

static const char *state_text(const struct volumed_engine *engine)
{
	return volumed_engine_in(engine) ? "in" : "out";
}

static json_t *describe_engines(const struct volumed *d)
{
	json_t *engines = json_array();

	for (unsigned i = 0; i < d->engine_count; i++) {
		const struct volumed_engine *engine = &d->engines[i];

		json_array_append_new(engines, json_pack("{s:i, s:s, s:I, s:I, s:s, s:s}", "id",
							 engine->info.id, "state", state_text(engine),
							 "domain", (json_int_t)engine->info.domain, "weight",
							 (json_int_t)engine->info.weight, "address",
							 engine->info.address, "nqn", engine->info.nqn));
	}
	return engines;
}

json_t *volumed_describe_map(const struct volumed *d)
{
	return json_pack("{s:I, s:b, s:o}", "epoch", (json_int_t)d->epoch, "rebuilding", d->rebuilding,
			 "engines", describe_engines(d));
}

json_t *volumed_describe_volume(const struct volumed_volume *volume)
{
	return json_pack("{s:s, s:i, s:I, s:i, s:i}", "name", volume->info.name, "vid", volume->info.vid,
			 "blocks", (json_int_t)volume->info.blocks, "replicas", volume->info.replicas,
			 "unit_log2", volume->info.unit_log2);
}

static bool is_leased(const struct volumed_volume *volume)
{
	return volume->info.lease_client && volume->info.lease_client != VOLUMED_NOBODY;
}

json_t *volumed_describe_lease(const struct volumed *d, const struct volumed_volume *volume)
{
	uint64_t now = volumed_now_ms(d), end = volume->lease_end_ms;

	if (!is_leased(volume))
		return json_null();
	return json_pack("{s:s, s:i, s:I, s:I}", "name", volume->info.name, "client",
			 volume->info.lease_client, "epoch", (json_int_t)volume->info.lease_epoch, "ms",
			 (json_int_t)(end > now ? end - now : 0));
}

/* Hosts with rights, from client @from on, as many as @most bytes have room for; the client where the next
 * page begins, 0: there is none. */
static json_int_t describe_hosts(const struct volumed_volume *volume, json_int_t from, size_t most,
				 json_t *hosts)
{
	size_t bytes = 0;

	for (size_t i = 0; i < volume->count; i++) {
		const struct nvme_volume_permission *permission = &volume->permissions[i];
		u32 rights = permission->rights;
		json_t *host;

		if (!rights || permission->client < from)
			continue;
		if (bytes >= most)
			return permission->client;
		host = json_pack("{s:i, s:s, s:s}", "client", permission->client, "rights",
				 rights & NVME_VOLUME_WRITE ? "rw" : "r", "hostnqn", permission->hostnqn);
		bytes += json_dumpb(host, NULL, 0, JSON_COMPACT);
		json_array_append_new(hosts, host);
	}
	return 0;
}

json_t *volumed_describe_volume_all(const struct volumed *d, const struct volumed_volume *volume,
				    const json_int_t *from)
{
	json_t *object = volumed_describe_volume(volume), *hosts = json_array();
	json_int_t next = describe_hosts(volume, from ? *from : 0, from ? HOSTS_BYTES : SIZE_MAX, hosts);

	json_object_set_new(object, "bytes",
			    json_integer((json_int_t)volume->info.blocks * NVME_VOLUME_BLOCK_BYTES));
	json_object_set_new(object, "unit_bytes",
			    json_integer((json_int_t)NVME_VOLUME_BLOCK_BYTES << volume->info.unit_log2));
	json_object_set_new(object, "weight", json_integer(volume->info.weight));
	json_object_set_new(object, "lease", volumed_describe_lease(d, volume));
	json_object_set_new(object, "unequal", json_boolean(volume->unclean));
	json_object_set_new(object, "hosts", hosts);
	if (from)
		json_object_set_new(object, "next", json_integer(next));
	return object;
}

static const char *engine_text(const struct volumed *d, unsigned index)
{
	const struct volumed_engine *engine = &d->engines[index];
	bool copied =
		d->copy.task != VOLUMED_IDLE && d->copy.task != VOLUMED_REBUILD && d->copy.engine == index;

	if (!engine->answers)
		return "does not answer";
	if (engine->leaving)
		return "leaving";
	if (copied)
		return "catching up";
	return engine->spare ? "spare" : volumed_engine_in(engine) ? "in" : "out";
}

json_t *volumed_describe_engines(const struct volumed *d)
{
	json_t *engines = describe_engines(d);

	for (unsigned i = 0; i < d->engine_count; i++) {
		const struct nvme_volume_engine_status *status = &d->engines[i].status;
		json_t *engine = json_array_get(engines, i);

		json_object_set_new(engine, "what", json_string(engine_text(d, i)));
		json_object_set_new(engine, "blocks", json_integer((json_int_t)status->blocks));
		json_object_set_new(engine, "used", json_integer((json_int_t)status->used));
		json_object_set_new(engine, "user_writes", json_integer((json_int_t)status->user_writes));
		json_object_set_new(engine, "medium_writes", json_integer((json_int_t)status->medium_writes));
		json_object_set_new(engine, "bad_blocks", json_integer((json_int_t)status->bad_blocks));
		json_object_set_new(engine, "repaired", json_integer((json_int_t)status->repaired));
		json_object_set_new(engine, "refused", json_integer((json_int_t)status->refused));
		json_object_set_new(engine, "map_epoch", json_integer(status->map_epoch));
	}
	return engines;
}

static json_t *describe_copy(const struct volumed *d)
{
	static const char *const tasks[] = { "none", "rebuild", "join", "leave" };
	const struct volumed_copy *copy = &d->copy;
	u64 blocks = 0, compared = copy->compared + (copy->open ? copy->level.compared : 0);

	for (size_t i = 0; i < d->volume_count; i++)
		blocks += d->volumes[i].info.blocks;
	return json_pack("{s:s, s:I, s:I, s:I}", "task", tasks[copy->task], "blocks", (json_int_t)blocks,
			 "compared", (json_int_t)(copy->task == VOLUMED_IDLE ? 0 : compared), "copied",
			 (json_int_t)(copy->task == VOLUMED_IDLE
					      ? 0
					      : copy->copied + (copy->open ? copy->level.copied : 0)));
}

static json_t *describe_counts(const struct volumed_counts *counts)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "maps", (json_int_t)counts->maps,
			 "heartbeats", (json_int_t)counts->heartbeats, "taken_out",
			 (json_int_t)counts->taken_out, "taken_in", (json_int_t)counts->taken_in,
			 "blocks_copied", (json_int_t)counts->copied, "blocks_equalized",
			 (json_int_t)counts->equalized, "blocks_repaired", (json_int_t)counts->repaired,
			 "leases", (json_int_t)counts->leases);
}

json_t *volumed_describe_status(const struct volumed *d)
{
	json_t *leases = json_array();
	unsigned in = 0;

	for (unsigned i = 0; i < d->engine_count; i++)
		in += volumed_engine_in(&d->engines[i]);
	for (size_t i = 0; i < d->volume_count; i++)
		if (is_leased(&d->volumes[i]))
			json_array_append_new(leases, volumed_describe_lease(d, &d->volumes[i]));
	return json_pack("{s:I, s:b, s:b, s:i, s:i, s:i, s:o, s:o, s:o}", "map_epoch", (json_int_t)d->epoch,
			 "rebuilding", d->rebuilding, "counted", d->counted, "engines", (int)d->engine_count,
			 "engines_in", (int)in, "volumes", (int)d->volume_count, "copy", describe_copy(d),
			 "leases", leases, "counts", describe_counts(&d->counts));
}
