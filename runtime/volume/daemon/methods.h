/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * methods.h: the daemon's calls, from JSON and back.
 *
 * Owns: names, parameters and results of the JSON-RPC methods; docs/volumes.md lists them; and which of them
 * are answered while the daemon is at work for another one, or for itself, and waits for engines: those that
 * ask nothing of engines, give out no map, and change at most the end of a lease, or note what is to be
 * repaired.
 */
#ifndef WEIR_VOLUMED_METHODS_H
#define WEIR_VOLUMED_METHODS_H

#include <jansson.h>

#include "hosts.h"

/**
 * volumed_answer() - carry @request out, one line of a client's
 * @caller: whose it is; NULL: whoever it says
 *
 * Return: the answer, a new reference; NULL: the request is a notification, which gets none.
 */
json_t *volumed_answer(struct volumed *d, const struct volumed_caller *caller, const json_t *request);

/**
 * enum volumed_urgency - of a call that comes while the daemon is at work
 * @VOLUMED_WAITS: until that is done
 * @VOLUMED_PUT_OFF: it may wait a little; a client that waits for it does not renew its lease
 * @VOLUMED_AT_ONCE: it is answered between two commands to engines
 */
enum volumed_urgency { VOLUMED_WAITS, VOLUMED_PUT_OFF, VOLUMED_AT_ONCE };

enum volumed_urgency volumed_urgency_of(const json_t *request);

/**
 * volumed_answer_between() - volumed_answer() between two commands to engines
 *
 * A call that is not VOLUMED_AT_ONCE is refused with -EAGAIN. What weir_last_error() says stays.
 */
json_t *volumed_answer_between(struct volumed *d, const struct volumed_caller *caller, const json_t *request);

/* describe.c: objects as JSON, new references */

json_t *volumed_describe_map(const struct volumed *d);
json_t *volumed_describe_volume(const struct volumed_volume *volume);
json_t *volumed_describe_lease(const struct volumed *d, const struct volumed_volume *volume);
/** volumed_describe_volume_all() - with its lease and permissions
 * @from: NULL: all of them; else a page of them, which begins with this client, and in "next" whose the next
 * page begins with; 0: there is none */
json_t *volumed_describe_volume_all(const struct volumed *d, const struct volumed_volume *volume,
				    const json_int_t *from);
json_t *volumed_describe_engines(const struct volumed *d);
json_t *volumed_describe_status(const struct volumed *d);

#endif
