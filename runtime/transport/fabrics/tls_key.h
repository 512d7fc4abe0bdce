/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls_key.h: pre-shared keys of TLS. NVMe/TCP Transport 1.1, sections 3.6.1.3 to 3.6.1.5.
 *
 * Owns: keys as text ("NVMeTLSkey-1:HH:BASE64:"), and what a host and a subsystem derive of one.
 */
#ifndef WEIR_FABRICS_TLS_KEY_H
#define WEIR_FABRICS_TLS_KEY_H

#include <stdbool.h>

#include <weir/nvme_fabrics.h>

enum {
	WEIR_TLS_KEY_TEXT = 128,
	WEIR_TLS_KEY_BYTES = 48,
	WEIR_TLS_IDENTITY_BYTES = 2 * NVME_NQN_BYTES + 96,
};

/** struct weir_tls_key - a configured PSK; @bytes: 0: none; @transform: hash by which it is bound to a host,
 * NVME_AUTH_SHA..., 0: none */
struct weir_tls_key {
	u8 bytes;
	u8 transform;
	u8 key[WEIR_TLS_KEY_BYTES];
};

/** struct weir_tls_psk - what TLS gets: an identity, and a key of @bytes (32: SHA-256, 48: SHA-384) */
struct weir_tls_psk {
	char identity[WEIR_TLS_IDENTITY_BYTES];
	u8 bytes;
	u8 key[WEIR_TLS_KEY_BYTES];
};

/** weir_tls_key_parse() - of text; 0 or -EINVAL */
int weir_tls_key_parse(const char *text, struct weir_tls_key *out);
/** weir_tls_key_load() - of the first line of a file that its owner alone can read; 0 or a negative errno
 * with a sentence */
int weir_tls_key_load(const char *path, struct weir_tls_key *out);
/** weir_tls_key_text() - make a key; 0, -ENOTSUP or -EIO */
int weir_tls_key_text(char text[WEIR_TLS_KEY_TEXT]);
/** weir_tls_derive() - for a host and a subsystem, identity version 1; false: it cannot be had */
bool weir_tls_derive(const struct weir_tls_key *key, const char *hostnqn, const char *subnqn,
		     struct weir_tls_psk *out);
/** weir_tls_names() - the NQNs in an identity; false: it is none of version 1 with a retained key */
bool weir_tls_names(const char *identity, char hostnqn[NVME_NQN_BYTES], char subnqn[NVME_NQN_BYTES]);

/** weir_tls_find - a server's: the key for @identity; false: there is none */
typedef bool weir_tls_find(void *of, const char *identity, struct weir_tls_psk *out);

#endif
