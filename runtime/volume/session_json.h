/* SPDX-License-Identifier: BSD-3-Clause */
/* volume/session_json.h: objects of the daemon's answers as structures. */
#ifndef WEIR_VOLUME_SESSION_JSON_H
#define WEIR_VOLUME_SESSION_JSON_H

#include "session.h"

/** weir_session_read_map() - "map" of @answer; 0 or -EPROTO with a sentence about volume @name */
int weir_session_read_map(const char *name, const json_t *answer, struct nvme_volume_map *map);
/** weir_session_read_volume() - "volume", "client" and "lease" of @answer; @ms: of the lease */
int weir_session_read_volume(struct weir_session *session, const json_t *answer, uint64_t *ms);

#endif
