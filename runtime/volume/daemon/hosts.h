/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts.h: hosts that prove to the daemon who they are, and what each may ask of it.
 *
 * Owns: their keys of TLS, and the rights of a caller. A daemon without any believes whoever reaches it. On a
 * local socket callers are believed: who may open it is a matter of the file.
 */
#ifndef WEIR_VOLUMED_HOSTS_H
#define WEIR_VOLUMED_HOSTS_H

#include <jansson.h>

#include "../../transport/fabrics/tls_key.h"
#include "daemon.h"

enum { VOLUMED_HOSTS = 1024 };

/** struct volumed_host - @manager: it may change volumes, permissions and the array */
struct volumed_host {
	const char *nqn;
	struct weir_tls_key key;
	bool manager;
};

/** struct volumed_hosts - @count 0: no host has to prove anything */
struct volumed_hosts {
	struct volumed_host entries[VOLUMED_HOSTS];
	unsigned count;
};

/** volumed_host_find() - NULL: it is none of them */
const struct volumed_host *volumed_host_find(const struct volumed_hosts *hosts, const char *nqn);
/** volumed_host_psk() - a weir_tls_find of a struct volumed_hosts */
bool volumed_host_psk(void *hosts, const char *identity, struct weir_tls_psk *out);

/**
 * struct volumed_caller - whose call it is
 * @host: who the connection has proved to be; NULL: who it says, and it may ask for everything
 * @manager: it may ask for everything
 * @unauthenticated: it had to prove who it is, and did not: it may ask for nothing
 */
struct volumed_caller {
	const char *host;
	bool manager;
	bool unauthenticated;
};

/**
 * enum volumed_right - who may ask for a method
 * @VOLUMED_MANAGERS: managers
 * @VOLUMED_HOSTS_ALL: every host
 * @VOLUMED_ITSELF: the host that "hostnqn" names
 * @VOLUMED_SHARER: hosts with a permission of the volume "name"; where "client" is there, that client of it
 */
enum volumed_right { VOLUMED_MANAGERS, VOLUMED_HOSTS_ALL, VOLUMED_ITSELF, VOLUMED_SHARER };

/** volumed_may() - 0, or -EACCES with a sentence; @caller NULL: whoever it says; @params: of the call to
 * @method
 */
int volumed_may(struct volumed *d, const struct volumed_caller *caller, enum volumed_right right,
		const char *method, const json_t *params);

#endif
