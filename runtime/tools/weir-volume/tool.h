/* SPDX-License-Identifier: BSD-3-Clause */
/* tool.h: what weir-volume prints of the daemon's answers, and files that it copies. */
#ifndef WEIR_VOLUME_TOOL_H
#define WEIR_VOLUME_TOOL_H

#include <jansson.h>
#include <stdbool.h>

void print_volumes(json_t *result);
void print_volume(json_t *result);
void print_engines(json_t *result);
void print_status(json_t *result);

/**
 * struct copied - a volume
 * @key: file with this host's key for the daemon, or NULL
 * @engine_key, @secret: likewise, for engines
 * @controller_secret: file with what engines have to prove that they know, or NULL
 * @hostnqn: who it is; NULL: this user's
 */
struct copied {
	const char *daemon;
	const char *key;
	const char *engine_key;
	const char *secret;
	const char *controller_secret;
	const char *hostnqn;
	const char *name;
};

/** copy_file() - file @path to a volume, or with @put false back; 0 or a negative errno with a sentence */
int copy_file(const struct copied *volume, const char *path, bool put);

#endif
