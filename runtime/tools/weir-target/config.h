/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.h: what weir-target is told: flags, a JSON file.
 *
 * Owns: the strings and lists that struct weir_target_options points to.
 */
#ifndef WEIR_TARGET_CONFIG_H
#define WEIR_TARGET_CONFIG_H

#include "target/target.h"

enum { CONFIG_LISTS = 64 };

/** struct config_subsystem - a subsystem and its lists */
struct config_subsystem {
	struct weir_target_subsystem_options options;
	struct weir_target_namespace_options namespaces[WEIR_TARGET_NAMESPACES_MAX];
	const char *hosts[CONFIG_LISTS];
	const char *secrets[CONFIG_LISTS];
	const char *controller_secrets[CONFIG_LISTS];
	const char *tls_keys[CONFIG_LISTS];
};

/** struct config - all of it; zeroed at first */
struct config {
	struct weir_target_options options;
	const char *listen[CONFIG_LISTS];
	unsigned ana[CONFIG_LISTS];
	struct config_subsystem subsystems[CONFIG_LISTS];
	struct weir_target_subsystem_options list[CONFIG_LISTS];
	char *strings[4 * CONFIG_LISTS * CONFIG_LISTS];
	size_t string_count;
	bool engine;
	bool has_file;
	const char *manager;
};

/** config_file() - read a JSON file; 0 or a negative errno with a sentence */
int config_file(struct config *config, const char *path);
/** config_subsystem() - from "NQN=URI[,URI...]" */
int config_subsystem(struct config *config, const char *text);
int config_listen(struct config *config, const char *text);
/** config_ana() - ANA state of the namespaces at the address named last */
int config_ana(struct config *config, const char *text);
/** config_host() - a host that may connect, to the subsystem named last */
int config_host(struct config *config, const char *nqn);
/** config_engine() - all namespaces keep volumes; config_manager() - which host manages them */
void config_engine(struct config *config);
int config_manager(struct config *config, const char *nqn);
/** config_secret() - a file with the secret of the host named last, or with what the subsystem proves to it
 */
int config_secret(struct config *config, const char *path, bool controller);
/** config_tls_key() - a file with the TLS key of the host named last, or of all hosts of a subsystem without
 * any */
int config_tls_key(struct config *config, const char *path);
/** config_finish() - the options; valid until config_release() */
const struct weir_target_options *config_finish(struct config *config);
void config_release(struct config *config);

#endif
