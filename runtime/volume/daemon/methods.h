/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * methods.h: the daemon's calls, from JSON and back.
 *
 * Owns: names, parameters and results of the JSON-RPC methods; docs/volumes.md lists them.
 */
#ifndef WEIR_VOLUMED_METHODS_H
#define WEIR_VOLUMED_METHODS_H

#include <jansson.h>

#include "daemon.h"

/**
 * volumed_answer() - carry @request out, one line of a client's
 *
 * Return: the answer, a new reference; NULL: the request is a notification, which gets none.
 */
json_t *volumed_answer(struct volumed *d, const json_t *request);

/* describe.c: objects as JSON, new references */

json_t *volumed_describe_map(const struct volumed *d);
json_t *volumed_describe_volume(const struct volumed_volume *volume);
json_t *volumed_describe_lease(const struct volumed *d, const struct volumed_volume *volume);
/** volumed_describe_volume_all() - with its lease and permissions */
json_t *volumed_describe_volume_all(const struct volumed *d, const struct volumed_volume *volume);
json_t *volumed_describe_engines(const struct volumed *d);
json_t *volumed_describe_status(const struct volumed *d);

#endif
