/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.h: a TLS handshake on a socket of the kernel's, with a key of its keyring.
 *
 * Owns: what the halves of vm_handshake know of each other: handshake.c speaks with the kernel,
 * handshake_tls.c with the other end of the connection, handshake_keys.c with the keyring.
 */
#ifndef WEIR_VM_HANDSHAKE_H
#define WEIR_VM_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/fabrics/tls_key.h"

/** struct handshake_key - a key of the kernel's: its serial number, its description as identity, and its
 * bytes */
struct handshake_key {
	int32_t serial;
	struct weir_tls_psk psk;
};

/** handshake_keyring() - open .nvme, the keyring of Linux's NVMe; its serial number or a negative errno */
int32_t handshake_keyring(void);
/** handshake_key_add() - put a key of weir's there; its serial number or a negative errno */
int32_t handshake_key_add(const struct weir_tls_psk *psk);
/** handshake_key_read() - the key @serial; 0 or a negative errno */
int handshake_key_read(int32_t serial, struct handshake_key *out);
/** handshake_key_find() - the key of that identity; 0 or a negative errno */
int handshake_key_find(const char *identity, struct handshake_key *out);
/** handshake_tls() - on @socket, after which the kernel encrypts it; a client has the key, a server finds it;
 * 0 or a negative errno */
int handshake_tls(int socket, bool client, struct handshake_key *key);

#endif
