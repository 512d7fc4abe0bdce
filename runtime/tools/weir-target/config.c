/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <weir/nvme_fabrics.h>

#include "backend/error.h"

/* A copy that lives as long as @config; NULL with a sentence. */
static const char *keep(struct config *config, const char *text, size_t length)
{
	char *copy = config->string_count < sizeof(config->strings) / sizeof(*config->strings)
			     ? strndup(text, length)
			     : NULL;

	if (!copy) {
		weir_fail(ENOMEM, "no memory for what is to be served");
		return NULL;
	}
	config->strings[config->string_count++] = copy;
	return copy;
}

int config_listen(struct config *config, const char *text)
{
	size_t at = config->options.listen_count;

	if (at == CONFIG_LISTS)
		return weir_fail(EINVAL, "%s: at most %d addresses to listen at", text, CONFIG_LISTS);
	config->listen[at] = keep(config, text, strlen(text));
	if (!config->listen[at])
		return -ENOMEM;
	config->ana[at] = NVME_ANA_OPTIMIZED;
	config->options.listen_count++;
	return 0;
}

int config_ana(struct config *config, const char *text)
{
	static const struct {
		const char *name;
		unsigned state;
	} states[] = { { "optimized", NVME_ANA_OPTIMIZED },
		       { "non-optimized", NVME_ANA_NON_OPTIMIZED },
		       { "inaccessible", NVME_ANA_INACCESSIBLE },
		       { "persistent-loss", NVME_ANA_PERSISTENT_LOSS },
		       { "change", NVME_ANA_CHANGE } };

	if (!config->options.listen_count)
		return weir_fail(EINVAL, "--ana %s: name the address first, by --listen ADDRESS", text);
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(states[i].name, text) != 0)
			continue;
		config->ana[config->options.listen_count - 1] = states[i].state;
		return 0;
	}
	return weir_fail(EINVAL,
			 "ANA state \"%s\" is none: it is optimized, non-optimized, inaccessible, "
			 "persistent-loss, or change",
			 text);
}

static struct config_subsystem *add_subsystem(struct config *config, const char *nqn, size_t length)
{
	struct config_subsystem *subsystem = &config->subsystems[config->options.subsystem_count];

	if (config->options.subsystem_count == CONFIG_LISTS) {
		weir_fail(EINVAL, "%.*s: at most %d subsystems", (int)length, nqn, CONFIG_LISTS);
		return NULL;
	}
	subsystem->options.nqn = keep(config, nqn, length);
	if (!subsystem->options.nqn)
		return NULL;
	config->options.subsystem_count++;
	return subsystem;
}

static int add_namespace(struct config *config, struct config_subsystem *subsystem, const char *uri,
			 size_t length, bool read_only)
{
	size_t at = subsystem->options.namespace_count;

	if (at == WEIR_TARGET_NAMESPACES_MAX)
		return weir_fail(EINVAL, "subsystem %s: at most %d namespaces", subsystem->options.nqn,
				 WEIR_TARGET_NAMESPACES_MAX);
	subsystem->namespaces[at].uri = keep(config, uri, length);
	subsystem->namespaces[at].read_only = read_only;
	subsystem->namespaces[at].detached = false;
	subsystem->options.namespace_count++;
	return subsystem->namespaces[at].uri ? 0 : -ENOMEM;
}

int config_subsystem(struct config *config, const char *text)
{
	const char *equals = strchr(text, '='), *at, *comma;
	struct config_subsystem *subsystem;
	int error = 0;

	if (!equals)
		return weir_fail(EINVAL,
				 "--subsystem %s: write NQN=STORAGE, such as "
				 "nqn.2026-11.org.example:disk1=file:/data/a.img",
				 text);
	subsystem = add_subsystem(config, text, (size_t)(equals - text));
	if (!subsystem)
		return -EINVAL;
	for (at = equals + 1; !error && at; at = comma ? comma + 1 : NULL) {
		comma = strchr(at, ',');
		error = add_namespace(config, subsystem, at, comma ? (size_t)(comma - at) : strlen(at),
				      false);
	}
	return error;
}

static int add_host(struct config *config, struct config_subsystem *subsystem, const char *nqn)
{
	if (subsystem->options.host_count == CONFIG_LISTS)
		return weir_fail(EINVAL, "subsystem %s: at most %d hosts", subsystem->options.nqn,
				 CONFIG_LISTS);
	subsystem->hosts[subsystem->options.host_count] = keep(config, nqn, strlen(nqn));
	if (!subsystem->hosts[subsystem->options.host_count])
		return -ENOMEM;
	subsystem->options.host_count++;
	return 0;
}

int config_host(struct config *config, const char *nqn)
{
	if (!config->options.subsystem_count)
		return weir_fail(EINVAL, "--host %s: name the subsystem first, which it may connect to", nqn);
	return add_host(config, &config->subsystems[config->options.subsystem_count - 1], nqn);
}

void config_engine(struct config *config)
{
	config->engine = true;
}

int config_manager(struct config *config, const char *nqn)
{
	config->manager = keep(config, nqn, strlen(nqn));
	return config->manager ? 0 : -ENOMEM;
}

static int add_secret(struct config *config, struct config_subsystem *subsystem, const char *path,
		      bool controller)
{
	const char **list = controller ? subsystem->controller_secrets : subsystem->secrets;
	const char *copy = keep(config, path, strlen(path));

	list[subsystem->options.host_count - 1] = copy;
	return copy ? 0 : -ENOMEM;
}

int config_secret(struct config *config, const char *path, bool controller)
{
	size_t count = config->options.subsystem_count;

	if (!count || !config->subsystems[count - 1].options.host_count)
		return weir_fail(EINVAL, "--%s %s: name the host first, by --host NQN",
				 controller ? "controller-secret" : "secret", path);
	return add_secret(config, &config->subsystems[count - 1], path, controller);
}

int config_tls_key(struct config *config, const char *path)
{
	size_t count = config->options.subsystem_count;
	struct config_subsystem *subsystem = count ? &config->subsystems[count - 1] : NULL;
	const char *copy;

	if (!subsystem)
		return weir_fail(EINVAL, "--tls-psk %s: name the subsystem first, or the host by --host NQN",
				 path);
	copy = keep(config, path, strlen(path));
	if (subsystem->options.host_count)
		subsystem->tls_keys[subsystem->options.host_count - 1] = copy;
	else
		subsystem->options.tls_key = copy;
	return copy ? 0 : -ENOMEM;
}

/* ---- JSON ---- */

static int bad(const char *path, const char *what)
{
	return weir_fail(EINVAL, "%s: %s; docs/network.md shows the file", path, what);
}

static int read_namespace(struct config *config, struct config_subsystem *subsystem, const char *path,
			  json_t *item)
{
	const char *uri = json_string_value(item);
	int read_only = 0, attached = 1, error;

	if (json_is_object(item) && json_unpack(item, "{s:s, s?b, s?b!}", "storage", &uri, "read_only",
						&read_only, "attached", &attached) != 0)
		return bad(path, "a namespace has the keys \"storage\" and perhaps \"read_only\" and "
				 "\"attached\" (true or false)");
	if (!uri)
		return bad(path, "a namespace is a storage, as text, or an object");
	error = add_namespace(config, subsystem, uri, strlen(uri), read_only);
	if (!error)
		subsystem->namespaces[subsystem->options.namespace_count - 1].detached = !attached;
	return error;
}

static int read_host(struct config *config, struct config_subsystem *subsystem, const char *path,
		     json_t *item)
{
	const char *nqn = json_string_value(item), *secret = NULL, *controller_secret = NULL, *tls_psk = NULL;
	int error;

	if (json_is_object(item) &&
	    json_unpack(item, "{s:s, s?s, s?s, s?s!}", "nqn", &nqn, "secret", &secret, "controller_secret",
			&controller_secret, "tls_psk", &tls_psk) != 0)
		return bad(path,
			   "a host has the keys \"nqn\" and perhaps \"secret\", \"controller_secret\" and "
			   "\"tls_psk\"");
	if (!nqn)
		return bad(path, "a host is an NQN, as text, or an object");
	error = add_host(config, subsystem, nqn);
	if (!error && secret)
		error = add_secret(config, subsystem, secret, false);
	if (!error && controller_secret)
		error = add_secret(config, subsystem, controller_secret, true);
	if (!error && tls_psk)
		error = config_tls_key(config, tls_psk);
	return error;
}

static int read_subsystem(struct config *config, const char *path, json_t *item)
{
	json_t *namespaces = NULL, *hosts = NULL, *entry;
	struct config_subsystem *subsystem;
	const char *nqn, *manager = NULL, *tls_psk = NULL;
	int error = 0, engine = 0;
	size_t i;

	if (json_unpack(item, "{s:s, s:o, s?o, s?b, s?s, s?s!}", "nqn", &nqn, "namespaces", &namespaces,
			"hosts", &hosts, "engine", &engine, "manager", &manager, "tls_psk", &tls_psk) != 0 ||
	    !json_is_array(namespaces) || (hosts && !json_is_array(hosts)))
		return bad(path, "a subsystem has the keys \"nqn\" (text), \"namespaces\" (a list) and "
				 "perhaps \"hosts\" (a list), \"engine\" (true), \"manager\" and \"tls_psk\" "
				 "(text)");
	subsystem = add_subsystem(config, nqn, strlen(nqn));
	if (!subsystem)
		return -EINVAL;
	subsystem->options.engine = engine;
	if (manager && !(subsystem->options.manager = keep(config, manager, strlen(manager))))
		error = -ENOMEM;
	if (!error && tls_psk)
		error = config_tls_key(config, tls_psk); /* before the hosts: of all of them */
	json_array_foreach(namespaces, i, entry) if (!error) error =
		read_namespace(config, subsystem, path, entry);
	json_array_foreach(hosts, i, entry) if (!error) error = read_host(config, subsystem, path, entry);
	return error;
}

static int read_listen(struct config *config, const char *path, json_t *item)
{
	const char *address = json_string_value(item), *ana = NULL;
	int error;

	if (json_is_object(item) && json_unpack(item, "{s:s, s?s!}", "address", &address, "ana", &ana) != 0)
		return bad(path, "an address to listen at has the keys \"address\" and perhaps \"ana\"");
	if (!address)
		return bad(path, "an address to listen at is text, or an object");
	error = config_listen(config, address);
	return error || !ana ? error : config_ana(config, ana);
}

static int read_all(struct config *config, const char *path, json_t *root)
{
	json_t *listen = NULL, *subsystems = NULL, *entry;
	json_int_t threads = 0, queues = 0;
	int error = 0;
	size_t i;

	if (json_unpack(root, "{s?o, s:o, s?I, s?I!}", "listen", &listen, "subsystems", &subsystems,
			"threads", &threads, "queues", &queues) != 0 ||
	    !json_is_array(subsystems) || (listen && !json_is_array(listen)) || threads < 0 || queues < 0 ||
	    threads > INT_MAX || queues > INT_MAX)
		return bad(path, "it has the keys \"listen\" and \"subsystems\" (lists), and perhaps "
				 "\"threads\" and \"queues\" (numbers)");
	config->options.threads = (unsigned)threads;
	config->options.queues = (unsigned)queues;
	json_array_foreach(listen, i, entry) if (!error) error = read_listen(config, path, entry);
	json_array_foreach(subsystems, i, entry) if (!error) error = read_subsystem(config, path, entry);
	return error;
}

int config_file(struct config *config, const char *path)
{
	json_error_t reason;
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &reason);
	int error;

	config->has_file = true;
	if (!root)
		return weir_fail(EINVAL, "%s, line %d: %s", path, reason.line, reason.text);
	error = read_all(config, path, root);
	json_decref(root);
	return error;
}

const struct weir_target_options *config_finish(struct config *config)
{
	struct weir_target_options *options = &config->options;

	for (size_t i = 0; i < options->subsystem_count; i++) {
		struct config_subsystem *subsystem = &config->subsystems[i];

		subsystem->options.namespaces = subsystem->namespaces;
		subsystem->options.hosts = subsystem->hosts;
		subsystem->options.engine |= config->engine;
		if (config->manager)
			subsystem->options.manager = config->manager;
		subsystem->options.secrets = subsystem->secrets;
		subsystem->options.controller_secrets = subsystem->controller_secrets;
		subsystem->options.tls_keys = subsystem->tls_keys;
		config->list[i] = subsystem->options;
	}
	options->size = sizeof(*options);
	options->listen = config->listen;
	options->ana = config->ana;
	options->subsystems = config->list;
	return options;
}

void config_release(struct config *config)
{
	while (config->string_count)
		free(config->strings[--config->string_count]);
}
