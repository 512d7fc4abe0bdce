/* SPDX-License-Identifier: BSD-3-Clause */
/* volume/transport_vol.c: vol: is a virtual controller in front of a volume. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../backend/error.h"
#include "../transport/virtual/soft.h"
#include "../transport/virtual/soft_keys.h"
#include "medium.h"

enum { DEFAULT_WAIT_MS = 10000, MOST_WAIT_MS = 3600000 };

static int take_text(const struct weir_uri *uri, const char *what, const char *text, char *to, size_t bytes)
{
	if (!text || !*text)
		return weir_fail(EINVAL, "storage \"%s\": it has no %s", uri->text, what);
	if (strlen(text) >= bytes)
		return weir_fail(EINVAL, "storage \"%s\": its %s has %zu characters; %zu are the most",
				 uri->text, what, strlen(text), bytes - 1);
	strcpy(to, text);
	return 0;
}

static int take_daemon(struct weir_uri *uri, struct weir_session_keys *keys)
{
	const char *daemon = weir_uri_take_text(uri, "daemon");

	if (!daemon)
		daemon = getenv("WEIR_VOLUMED");
	return take_text(uri, "daemon (daemon=HOST:PORT, daemon=/path/of/socket, or WEIR_VOLUMED)", daemon,
			 keys->daemon, sizeof(keys->daemon));
}

static int take_host(struct weir_uri *uri, struct weir_session_keys *keys)
{
	const char *nqn = weir_uri_take_text(uri, "hostnqn"), *id = weir_uri_take_text(uri, "hostid");
	int error = nqn && id ? 0 : weir_host_identity(&keys->host);

	if (!error && nqn && strncmp(nqn, "nqn.", 4) != 0)
		error = weir_fail(EINVAL, "storage \"%s\": hostnqn=%s is no NQN, which begins with \"nqn.\"",
				  uri->text, nqn);
	if (!error && nqn)
		error = take_text(uri, "hostnqn", nqn, keys->host.nqn, NVME_NQN_LONGEST + 1);
	if (!error && id && weir_host_id_parse(id, keys->host.id) != 0)
		error = weir_fail(EINVAL,
				  "storage \"%s\": hostid=%s is no UUID, which has 32 hexadecimal digits",
				  uri->text, id);
	return error;
}

/* The file is read once for each connection: here only its name is kept. */
static int take_secret(struct weir_uri *uri, const char *key, char *to)
{
	const char *path = weir_uri_take_text(uri, key);

	if (!path)
		return 0;
	if (strpbrk(path, "%&?,"))
		return weir_fail(EINVAL,
				 "storage \"%s\": %s=%s: no %%, &, ? or comma may be in the file's name",
				 uri->text, key, path);
	return take_text(uri, key, path, to, WEIR_SESSION_SECRET_BYTES);
}

static int take_keys(const struct weir_transport_request *request, struct weir_soft_keys *soft,
		     struct weir_session_keys *keys, uint64_t *lanes)
{
	struct weir_uri *uri = request->uri;
	uint64_t ro = request->read_only;
	int error = weir_soft_keys_take(request, soft);

	*keys = (struct weir_session_keys){ .wait_ms = DEFAULT_WAIT_MS };
	if (error || (error = take_text(uri, "name", uri->body, keys->name, sizeof(keys->name))) != 0 ||
	    (error = take_daemon(uri, keys)) != 0 || (error = take_host(uri, keys)) != 0 ||
	    (error = take_secret(uri, "dhchap_secret", keys->secret)) != 0 ||
	    (error = take_secret(uri, "dhchap_ctrl_secret", keys->controller_secret)) != 0 ||
	    (error = take_secret(uri, "daemon_psk", keys->daemon_key)) != 0 ||
	    (error = take_secret(uri, "tls_psk", keys->engine_key)) != 0 ||
	    (error = weir_uri_take_u64(uri, "ro", 0, 1, &ro)) != 0 ||
	    (error = weir_uri_take_u64(uri, "wait_ms", 1, MOST_WAIT_MS, &keys->wait_ms)) != 0 ||
	    (error = weir_uri_take_u64(uri, "lanes", 0, 1, lanes)) != 0 ||
	    (error = weir_uri_finish(uri,
				     WEIR_SOFT_KEYS ", daemon, daemon_psk, hostnqn, hostid, dhchap_secret, "
						    "dhchap_ctrl_secret, tls_psk, ro, wait_ms, lanes")) != 0)
		return error;
	keys->read_only = ro || request->read_only;
	if (soft->block_bytes && soft->block_bytes != NVME_VOLUME_BLOCK_BYTES)
		return weir_fail(EINVAL, "storage \"%s\": block=%llu; a volume's blocks are 4096 bytes",
				 uri->text, (unsigned long long)soft->block_bytes);
	if (*lanes && soft->trace)
		return weir_fail(EINVAL,
				 "storage \"%s\": a trace has no commands that lanes send to engines: "
				 "leave out trace or lanes",
				 uri->text);
	return 0;
}

int weir_volume_open(struct weir_transport_request *request, struct weir_transport **out)
{
	struct weir_session_keys keys;
	struct weir_soft_keys soft;
	struct weir_medium *medium;
	uint64_t lanes = 0;
	int error = take_keys(request, &soft, &keys, &lanes);

	soft.woken = lanes && request->host_rings; /* it has little to do */
	if (!error)
		error = weir_volume_medium_open(&keys, (unsigned)soft.threads, NULL, &medium);
	if (error)
		return error;
	weir_volume_from(medium)->wants_lanes = lanes != 0;
	return weir_soft_new(&weir_transport_vol, medium, &soft, request, out);
}

/* NULL: a trace is in front of it. */
static struct volume *volume_of(struct weir_transport *transport)
{
	const struct weir_medium *medium;

	(void)weir_transport_core(transport, &medium);
	return weir_volume_from(medium);
}

int weir_volume_attach(struct weir_transport *transport, struct weir_storage *storage)
{
	struct volume *volume = volume_of(transport);

	return volume && volume->wants_lanes ? volume_attach(volume, storage) : 0;
}

void weir_volume_detach(struct weir_transport *transport)
{
	struct volume *volume = volume_of(transport);

	if (volume)
		volume_detach(volume);
}
