/* SPDX-License-Identifier: BSD-3-Clause */
#include "methods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "../../backend/error.h"
#include "../rpc.h"

enum {
	DEFAULT_REPLICAS = 2,
	DEFAULT_UNIT_BYTES = 65536,
	DEFAULT_WEIGHT = 100,
	PAGE_BYTES = WEIR_RPC_LINE_BYTES / 2, /* of a list, and one volume more */
};

/* Parameters: json_unpack_ex() with a sentence. */
#define TAKE(params, ...) take(json_unpack_ex(params, &(json_error_t){ .line = 0 }, 0, __VA_ARGS__), params)

static int take(int result, const json_t *params)
{
	return result == 0 ? 0
			   : weir_fail(EBADMSG, "%s: a parameter is missing, or of another type",
				       params ? "the call" : "the call has no parameters");
}

/* JSON's numbers are wider than those that engines know: one that does not fit is nobody's, and is not cut to
 * somebody else's. */
static int check_number(const char *what, json_int_t number, json_int_t most)
{
	return number >= 0 && number <= most ? 0
					     : weir_fail(EINVAL, "%s %lld: it is a number from 0 to %lld",
							 what, (long long)number, (long long)most);
}

static int with_map(struct volumed *d, json_t *object, json_t **result)
{
	int error = volumed_map_count(d);

	if (!error)
		json_object_set_new(object, "map", volumed_describe_map(d));
	*result = object;
	return error;
}

static int volume_open(struct volumed *d, json_t *params, json_t **result)
{
	const char *name, *host;
	struct volumed_volume *volume;
	int write = 0,
	    error = TAKE(params, "{s:s, s:s, s?b}", "name", &name, "hostnqn", &host, "write", &write);
	u16 client;
	u32 epoch;

	if (error)
		return error;
	volume = volumed_volume_of(d, name);
	if (!volume)
		return -ENOENT;
	error = volumed_volume_client(volume, host, write ? NVME_VOLUME_WRITE : NVME_VOLUME_READ, &client);
	if (!error)
		error = volumed_map_count(d);
	if (!error && write)
		error = volumed_lease_grant(d, volume, client);
	if (error)
		return error;
	epoch = volume->info.lease_epoch;
	error = with_map(d,
			 json_pack("{s:o, s:i, s:o}", "volume", volumed_describe_volume(volume), "client",
				   client, "lease", write ? volumed_describe_lease(d, volume) : json_null()),
			 result);
	if (error && write)
		volumed_lease_take_back(d, name, client, epoch);
	return error;
}

static int take_lease(json_t *params, const char **name, u16 *client, u32 *epoch)
{
	json_int_t number, lease;
	int error = TAKE(params, "{s:s, s:I, s:I}", "name", name, "client", &number, "epoch", &lease);

	if (!error)
		error = check_number("client", number, UINT16_MAX);
	if (!error)
		error = check_number("epoch", lease, UINT32_MAX);
	*client = error ? 0 : (u16)number;
	*epoch = error ? 0 : (u32)lease;
	return error;
}

static int lease_renew(struct volumed *d, json_t *params, json_t **result)
{
	const char *name;
	u16 client;
	u32 epoch;
	int error = take_lease(params, &name, &client, &epoch);

	if (!error)
		error = volumed_lease_renew(d, name, client, epoch);
	*result = json_pack("{s:I}", "ms", (json_int_t)d->options.lease_ms);
	return error;
}

static int lease_release(struct volumed *d, json_t *params, json_t **result)
{
	const char *name;
	u16 client;
	u32 epoch;
	int unequal = 0, error = take_lease(params, &name, &client, &epoch);

	if (!error)
		error = TAKE(params, "{s?b}", "unequal", &unequal);
	*result = json_object();
	if (error)
		return error;
	return unequal ? volumed_lease_abandon(d, name, client, epoch)
		       : volumed_lease_release(d, name, client, epoch);
}

static int lease_end(struct volumed *d, json_t *params, json_t **result)
{
	const char *name;
	int error = TAKE(params, "{s:s}", "name", &name);

	*result = json_object();
	return error ? error : volumed_lease_end(d, name);
}

static int map_get(struct volumed *d, json_t *params, json_t **result)
{
	(void)params;
	return with_map(d, json_object(), result);
}

/* One that does not answer the daemon either is taken out; one that does stays, whatever the client met. */
static int engine_suspect(struct volumed *d, json_t *params, json_t **result)
{
	struct volumed_engine *engine;
	json_int_t id, epoch;
	int error = TAKE(params, "{s:I, s:I}", "id", &id, "map_epoch", &epoch);

	if (!error)
		error = check_number("engine", id, UINT32_MAX);
	engine = error ? NULL : volumed_engine_of(d, (u32)id);
	if (!engine)
		return error ? error : -ENOENT;
	if (epoch == (json_int_t)d->epoch && volumed_engine_in(engine) && !volumed_engine_ask(d, engine))
		error = volumed_take_out(d, engine);
	else if (engine->answers && !engine->current)
		error = volumed_engine_return(d, engine);
	return error ? error : with_map(d, json_object(), result);
}

/* The engine itself says whether they are: a client that reports what is well costs reads, and nothing else.
 */
static int block_damaged(struct volumed *d, json_t *params, json_t **result)
{
	json_int_t id, vba, blocks;
	const char *name;
	int error = TAKE(params, "{s:s, s:I, s:I, s:I}", "name", &name, "id", &id, "vba", &vba, "blocks",
			 &blocks);
	struct volumed_volume *volume;

	if (!error)
		error = check_number("engine", id, UINT16_MAX);
	volume = error ? NULL : volumed_volume_of(d, name);
	if (!volume)
		return error ? error : -ENOENT;
	if (!volumed_engine_of(d, (u32)id))
		return -ENOENT;
	if (vba < 0 || blocks < 1 || blocks > (json_int_t)1 << volume->info.unit_log2 ||
	    (u64)vba + (u64)blocks > volume->info.blocks)
		return weir_fail(ERANGE, "volume '%s' has no such blocks in one stripe unit", name);
	volumed_repair_note(d, &(struct volumed_damage){ .vid = volume->info.vid,
							 .engine = (u16)id,
							 .vba = (u32)vba,
							 .blocks = (u32)blocks });
	*result = json_object();
	return 0;
}

static int volume_create(struct volumed *d, json_t *params, json_t **result)
{
	json_int_t bytes, replicas = DEFAULT_REPLICAS, unit = DEFAULT_UNIT_BYTES, weight = DEFAULT_WEIGHT;
	struct volumed_volume *volume;
	const char *name;
	int error = TAKE(params, "{s:s, s:I, s?I, s?I, s?I}", "name", &name, "bytes", &bytes, "replicas",
			 &replicas, "unit_bytes", &unit, "weight", &weight);

	if (!error &&
	    (bytes < 0 || replicas < 0 || replicas > 255 || unit < 0 || weight < 0 || weight > UINT32_MAX))
		error = weir_fail(EINVAL, "volume '%s': a negative or too large number was given", name);
	if (!error)
		error = volumed_volume_create(d, name, (u64)bytes, (u32)replicas, (u64)unit, (u32)weight,
					      &volume);
	if (!error)
		*result = json_pack("{s:o}", "volume", volumed_describe_volume_all(d, volume, NULL));
	return error;
}

static int volume_delete(struct volumed *d, json_t *params, json_t **result)
{
	const char *name;
	int error = TAKE(params, "{s:s}", "name", &name);

	*result = json_object();
	return error ? error : volumed_volume_delete(d, name);
}

static int volume_info(struct volumed *d, json_t *params, json_t **result)
{
	const char *name;
	json_int_t from = -1; /* all hosts in one answer */
	int error = TAKE(params, "{s:s, s?I}", "name", &name, "from", &from);
	struct volumed_volume *volume = error ? NULL : volumed_volume_of(d, name);

	if (!volume)
		return error ? error : -ENOENT;
	*result =
		json_pack("{s:o}", "volume", volumed_describe_volume_all(d, volume, from < 0 ? NULL : &from));
	return 0;
}

static int volume_resize(struct volumed *d, json_t *params, json_t **result)
{
	const char *name;
	json_int_t bytes, from;
	int error = TAKE(params, "{s:s, s:I, s?I}", "name", &name, "bytes", &bytes, "from", &from);

	if (!error)
		error = volumed_volume_resize(d, name, bytes < 0 ? 0 : (u64)bytes);
	return error ? error : volume_info(d, params, result);
}

/* Volumes from number @from on, as many as have room on a page; the number where the next one begins, 0:
 * there is none. */
static json_int_t fill_page(struct volumed *d, json_int_t from, json_t *list)
{
	const json_int_t first = 0;
	size_t bytes = 0;

	for (size_t i = 0; i < d->volume_count; i++) {
		json_t *volume;

		if (d->volumes[i].info.vid < from)
			continue;
		if (bytes >= PAGE_BYTES)
			return d->volumes[i].info.vid;
		volume = volumed_describe_volume_all(d, &d->volumes[i], &first);
		bytes += json_dumpb(volume, NULL, 0, JSON_COMPACT);
		json_array_append_new(list, volume);
	}
	return 0;
}

static int volume_list(struct volumed *d, json_t *params, json_t **result)
{
	json_int_t from = 0, next = 0;
	bool paged = json_object_get(params, "from");
	int error = paged ? TAKE(params, "{s:I}", "from", &from) : 0;
	json_t *list = json_array();

	if (!error && paged)
		next = fill_page(d, from, list);
	for (size_t i = 0; !paged && i < d->volume_count; i++)
		json_array_append_new(list, volumed_describe_volume_all(d, &d->volumes[i], NULL));
	*result = json_pack("{s:o, s:I}", "volumes", list, "next", next);
	return error;
}

static int volume_chmod(struct volumed *d, json_t *params, json_t **result)
{
	const char *name, *host, *rights;
	json_int_t from;
	u32 bits = 0;
	int error = TAKE(params, "{s:s, s:s, s:s, s?I}", "name", &name, "hostnqn", &host, "rights", &rights,
			 "from", &from);

	if (error)
		return error;
	if (strspn(rights, "rw") != strlen(rights) || !strcmp(rights, "w"))
		return weir_fail(EINVAL, "rights '%s': give rw, r, or nothing to take them away", rights);
	bits |= strchr(rights, 'r') ? NVME_VOLUME_READ : 0;
	bits |= strchr(rights, 'w') ? NVME_VOLUME_WRITE : 0;
	error = volumed_volume_chmod(d, name, host, bits);
	return error ? error : volume_info(d, params, result);
}

static int engine_list(struct volumed *d, json_t *params, json_t **result)
{
	(void)params;
	*result = json_pack("{s:o}", "engines", volumed_describe_engines(d));
	return 0;
}

static int engine_add(struct volumed *d, json_t *params, json_t **result)
{
	struct nvme_volume_engine info = { .id = 0 };
	json_int_t domain = VOLUMED_OWN_DOMAIN, weight = DEFAULT_WEIGHT;
	const char *address, *nqn;
	int spare = 0, error = TAKE(params, "{s:s, s:s, s?I, s?I, s?b}", "address", &address, "nqn", &nqn,
				    "domain", &domain, "weight", &weight, "spare", &spare);
	u32 id;

	if (error)
		return error;
	if (strlen(address) >= sizeof(info.address) || strlen(nqn) >= sizeof(info.nqn) || weight < 1 ||
	    weight > UINT32_MAX || domain < 0 || domain > UINT32_MAX)
		return weir_fail(
			EINVAL,
			"engine tcp://%s/%s: the address, the NQN, the domain or the weight is refused",
			address, nqn);
	memcpy(info.address, address, strlen(address));
	memcpy(info.nqn, nqn, strlen(nqn));
	info.domain = (u32)domain;
	info.weight = (u32)weight;
	error = volumed_engine_add(d, &info, spare, &id);
	if (!error)
		*result = json_pack("{s:I}", "id", (json_int_t)id);
	return error;
}

static int engine_remove(struct volumed *d, json_t *params, json_t **result)
{
	json_int_t id;
	int lost = 0, error = TAKE(params, "{s:I, s?b}", "id", &id, "lost", &lost);

	if (!error)
		error = check_number("engine", id, UINT32_MAX);
	*result = json_object();
	return error ? error : volumed_engine_remove(d, (u32)id, lost);
}

static int engine_keep(struct volumed *d, json_t *params, json_t **result)
{
	json_int_t id;
	int error = TAKE(params, "{s:I}", "id", &id);

	if (!error)
		error = check_number("engine", id, UINT32_MAX);
	*result = json_object();
	return error ? error : volumed_engine_keep(d, (u32)id);
}

static int status(struct volumed *d, json_t *params, json_t **result)
{
	(void)params;
	*result = volumed_describe_status(d);
	return 0;
}

struct method {
	const char *name;
	int (*call)(struct volumed *d, json_t *params, json_t **result);
	enum volumed_urgency urgency;
	enum volumed_right right;
};

static const struct method methods[] = {
	{ "volume_open", volume_open, VOLUMED_WAITS, VOLUMED_ITSELF },
	{ "lease_renew", lease_renew, VOLUMED_AT_ONCE, VOLUMED_SHARER },
	{ "lease_release", lease_release, VOLUMED_WAITS, VOLUMED_SHARER },
	{ "lease_end", lease_end, VOLUMED_WAITS, VOLUMED_MANAGERS },
	{ "map_get", map_get, VOLUMED_PUT_OFF, VOLUMED_HOSTS_ALL },
	{ "engine_suspect", engine_suspect, VOLUMED_PUT_OFF, VOLUMED_HOSTS_ALL },
	{ "block_damaged", block_damaged, VOLUMED_AT_ONCE, VOLUMED_SHARER },
	{ "volume_create", volume_create, VOLUMED_WAITS, VOLUMED_MANAGERS },
	{ "volume_delete", volume_delete, VOLUMED_WAITS, VOLUMED_MANAGERS },
	{ "volume_resize", volume_resize, VOLUMED_WAITS, VOLUMED_MANAGERS },
	{ "volume_list", volume_list, VOLUMED_AT_ONCE, VOLUMED_MANAGERS },
	{ "volume_info", volume_info, VOLUMED_AT_ONCE, VOLUMED_SHARER },
	{ "volume_chmod", volume_chmod, VOLUMED_WAITS, VOLUMED_MANAGERS },
	{ "engine_list", engine_list, VOLUMED_AT_ONCE, VOLUMED_MANAGERS },
	{ "engine_add", engine_add, VOLUMED_WAITS, VOLUMED_MANAGERS },
	{ "engine_remove", engine_remove, VOLUMED_WAITS, VOLUMED_MANAGERS },
	{ "engine_keep", engine_keep, VOLUMED_WAITS, VOLUMED_MANAGERS },
	{ "status", status, VOLUMED_AT_ONCE, VOLUMED_MANAGERS },
};

/* NULL: there is none. */
static const struct method *method_of(const json_t *request)
{
	const char *name = json_string_value(json_object_get(request, "method"));

	for (size_t i = 0; name && i < sizeof(methods) / sizeof(methods[0]); i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	return NULL;
}

static json_t *answer(struct volumed *d, const struct volumed_caller *caller, const json_t *request,
		      const struct method *method)
{
	json_t *result = NULL, *params = json_object_get(request, "params");
	int error = volumed_may(d, caller, method->right, method->name, params);

	if (!error)
		error = method->call(d, params, &result);
	if (!error)
		return weir_rpc_result(request, result);
	json_decref(result);
	return weir_rpc_error(request, error == -EBADMSG ? (int)WEIR_RPC_INVALID_PARAMS : error,
			      weir_last_error());
}

static json_t *refuse(const json_t *request)
{
	if (!json_string_value(json_object_get(request, "method")))
		return weir_rpc_error(request, WEIR_RPC_INVALID_REQUEST, "the request names no method");
	return weir_rpc_error(request, WEIR_RPC_NO_METHOD, "weir-volumed has no such method");
}

/* A notification gets no answer. */
static json_t *unless_notified(const json_t *request, json_t *reply)
{
	if (json_object_get(request, "id"))
		return reply;
	json_decref(reply);
	return NULL;
}

json_t *volumed_answer(struct volumed *d, const struct volumed_caller *caller, const json_t *request)
{
	const struct method *method = method_of(request);

	return unless_notified(request, method ? answer(d, caller, request, method) : refuse(request));
}

enum volumed_urgency volumed_urgency_of(const json_t *request)
{
	const struct method *method = method_of(request);

	return method ? method->urgency : VOLUMED_AT_ONCE;
}

json_t *volumed_answer_between(struct volumed *d, const struct volumed_caller *caller, const json_t *request)
{
	char *sentence = strdup(weir_last_error());
	json_t *reply;

	if (volumed_urgency_of(request) == VOLUMED_AT_ONCE)
		reply = volumed_answer(d, caller, request);
	else
		reply = unless_notified(
			request,
			weir_rpc_error(request, -EAGAIN, "the daemon is at work with engines; ask again"));
	if (sentence)
		weir_fail(EAGAIN, "%s", sentence);
	free(sentence);
	return reply;
}
