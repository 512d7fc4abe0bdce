/* SPDX-License-Identifier: BSD-3-Clause */
/* json.h: what was seen as JSON; keys are in docs/hardware.md. */
#ifndef WEIR_STAT_JSON_H
#define WEIR_STAT_JSON_H

#include <jansson.h>

#include "snapshot.h"

/** json_text() - a string, null for NULL; what is no UTF-8 comes with '?' in it */
json_t *json_text(const char *text);
/** json_storage(), json_cache() - an object each, a new reference */
json_t *json_storage(const struct note_storage *storage, const struct snapshot_storage *snapshot);
json_t *json_cache(const struct note_cache *cache, const struct snapshot_cache *snapshot);

/** json_target() - counters of a target */
json_t *json_target(const struct snapshot_target *target);

#endif
