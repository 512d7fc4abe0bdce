/* SPDX-License-Identifier: BSD-3-Clause */
/* identity.h: who this host is to controllers on a network: its NQN and its 128-bit identifier, kept in a
 * file of the user's. */
#ifndef WEIR_FABRICS_IDENTITY_H
#define WEIR_FABRICS_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include <weir/nvme_fabrics.h>

/** struct weir_host_identity - @nqn: terminated; @id: as a UUID's bytes stand in its text */
struct weir_host_identity {
	char nqn[NVME_NQN_BYTES];
	uint8_t id[16];
};

enum { WEIR_HOST_ID_TEXT = 37 };

/**
 * weir_host_identity() - read the user's file, or make it
 *
 * $XDG_CONFIG_HOME/weir/host, or ~/.config/weir/host: two lines, "hostnqn NQN" and "hostid UUID". A user
 * without a home folder gets an identity for this process alone.
 *
 * Return: 0, or a negative errno with a sentence: the file is there and cannot be read, or is none of ours.
 */
int weir_host_identity(struct weir_host_identity *out);

/** weir_host_identity_path() - where the file is; 0: there is no place for one */
size_t weir_host_identity_path(char *path, size_t bytes);

/** weir_host_id_parse() - a UUID's text; -EINVAL without a sentence */
int weir_host_id_parse(const char *text, uint8_t id[16]);
/** weir_host_id_text() - the same back; returns @text */
const char *weir_host_id_text(const uint8_t id[16], char text[WEIR_HOST_ID_TEXT]);

#endif
