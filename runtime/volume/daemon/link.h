/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h: the daemon's way to an engine.
 *
 * Owns: the seam between what the daemon says and who carries it: NVMe over TCP (link_nvmf.c), or a table in
 * the process (tests). A command is sent and waited for by the daemon's one thread; before each, it may
 * answer calls that do not wait.
 */
#ifndef WEIR_VOLUMED_LINK_H
#define WEIR_VOLUMED_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/nvme_volume.h>

#include <weir/nvme.h>

#include "../../transport/fabrics/chap.h"
#include "../../transport/fabrics/tls_key.h"

struct volume_engine_link;

/** enum volume_way - which way a command's data goes */
enum volume_way { VOLUME_NO_DATA, VOLUME_TO_ENGINE, VOLUME_FROM_ENGINE };

/**
 * struct volume_engine_link_ops - a link's functions
 * @open: connect, or connect again after a command that failed; 0 or a negative errno with a sentence
 * @command: send @sqe to the admin queue, or with @io to an I/O queue, with @bytes of @data, and wait @ms for
 * its end. Return: an NVMe status, or a negative errno with a sentence: it may or may not have been carried
 * out, and the link has to be opened again
 * @close: forget it
 */
struct volume_engine_link_ops {
	int (*open)(struct volume_engine_link *link);
	int (*command)(struct volume_engine_link *link, bool io, const struct nvme_sqe *sqe, void *data,
		       uint32_t bytes, enum volume_way way, unsigned ms);
	void (*close)(struct volume_engine_link *link);
};

/** struct volume_between - what is called before each command; @call: NULL: nothing is */
struct volume_between {
	void (*call)(void *argument);
	void *argument;
};

/** struct volume_engine_link - what every link begins with; @between: NULL, or whose time it is before a
 * command; @epoch: NULL, or the epoch that commands carry which change volumes */
struct volume_engine_link {
	const struct volume_engine_link_ops *ops;
	const struct volume_between *between;
	const u32 *epoch;
};

/**
 * struct volume_linker - who makes links
 * @create: one to the engine that is the subsystem @nqn at @address, "HOST:PORT"; not opened yet. 0 or a
 * negative errno with a sentence
 */
struct volume_linker {
	int (*create)(struct volume_linker *linker, const char *address, const char *nqn,
		      struct volume_engine_link **out);
};

/**
 * struct volume_linker_nvmf - links over NVMe/TCP
 * @hostnqn: who the daemon is to engines; NULL: this user's host identity
 * @secret, @controller_secret: by which it and engines authenticate; none of it has bytes: they do not
 * @tls_key: of TLS; no bytes: without it
 * @connect_ms: what connecting may take
 */
struct volume_linker_nvmf {
	struct volume_linker base;
	const char *hostnqn;
	struct weir_chap_secret secret;
	struct weir_chap_secret controller_secret;
	struct weir_tls_key tls_key;
	unsigned connect_ms;
};

extern const struct volume_linker volume_linker_nvmf;

#endif
