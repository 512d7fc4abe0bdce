/* SPDX-License-Identifier: BSD-3-Clause */
#include "hosts.h"

#include <errno.h>
#include <string.h>

#include "../../backend/error.h"
#include "../rpc.h"

const struct volumed_host *volumed_host_find(const struct volumed_hosts *hosts, const char *nqn)
{
	for (unsigned i = 0; i < hosts->count; i++)
		if (!strcmp(hosts->entries[i].nqn, nqn))
			return &hosts->entries[i];
	return NULL;
}

bool volumed_host_psk(void *hosts, const char *identity, struct weir_tls_psk *out)
{
	char hostnqn[NVME_NQN_BYTES], subnqn[NVME_NQN_BYTES];
	const struct volumed_host *host;
	bool good;

	if (!weir_tls_names(identity, hostnqn, subnqn) || strcmp(subnqn, WEIR_RPC_NQN) != 0)
		return false;
	host = volumed_host_find(hosts, hostnqn);
	good = host && weir_tls_derive(&host->key, hostnqn, subnqn, out) && !strcmp(out->identity, identity);
	if (!good)
		explicit_bzero(out, sizeof(*out));
	return good;
}

static bool is_text(const json_t *params, const char *key, const char *text)
{
	const char *found = json_string_value(json_object_get(params, key));

	return found && !strcmp(found, text);
}

/* Numbers of clients are hosts' in one volume each; a client whose rights have ended may still give its lease
 * back. */
static bool shares(struct volumed *d, const char *host, const json_t *params)
{
	const char *name = json_string_value(json_object_get(params, "name"));
	const json_t *client = json_object_get(params, "client");
	const struct volumed_volume *volume = name ? volumed_volume_of(d, name) : NULL;

	for (size_t i = 0; volume && i < volume->count; i++) {
		const struct nvme_volume_permission *permission = &volume->permissions[i];

		if (!strcmp(permission->hostnqn, host))
			return client ? json_integer_value(client) == permission->client : permission->rights;
	}
	return false;
}

int volumed_may(struct volumed *d, const struct volumed_caller *caller, enum volumed_right right,
		const char *method, const json_t *params)
{
	if (!caller)
		return 0;
	if (caller->unauthenticated)
		return weir_fail(EACCES,
				 "this daemon takes hosts by TLS only: give the key that it has for this "
				 "host (vol: daemon_psk=FILE; weir-volume --tls-psk FILE)");
	if (!caller->host)
		return 0;
	if (right == VOLUMED_ITSELF && !is_text(params, "hostnqn", caller->host))
		return weir_fail(EACCES, "%s: the connection is of host %s", method, caller->host);
	if (caller->manager || right == VOLUMED_HOSTS_ALL || right == VOLUMED_ITSELF)
		return 0;
	if (right == VOLUMED_MANAGERS)
		return weir_fail(EACCES, "%s: host %s is no manager: weir-volumed --manager names those",
				 method, caller->host);
	return shares(d, caller->host, params)
		       ? 0
		       : weir_fail(EACCES,
				   "%s: host %s has no permission of that volume, or is another client of it",
				   method, caller->host);
}
