/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls.h: TLS 1.3 with a pre-shared key under a TCP connection. NVMe/TCP Transport 1.1, section 3.6.1.
 *
 * Owns: keys as text ("NVMeTLSkey-1:HH:BASE64:"), what a host and a subsystem derive of one, and a
 * connection's encryption. tls_openssl.c has it, or tls_none.c in a build without OpenSSL.
 */
#ifndef WEIR_FABRICS_TLS_H
#define WEIR_FABRICS_TLS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <weir/nvme_fabrics.h>

enum {
	WEIR_TLS_KEY_TEXT = 128,
	WEIR_TLS_KEY_BYTES = 48,
	WEIR_TLS_IDENTITY_BYTES = 2 * NVME_NQN_BYTES + 96,
	WEIR_TLS_HANDSHAKE = 0x16, /* first byte of a connection that begins with TLS; no PDU's type */
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

struct weir_tls;

/** weir_tls_client() - begin on a connected socket that does not block; NULL: no memory */
struct weir_tls *weir_tls_client(int socket, const struct weir_tls_psk *psk);
struct weir_tls *weir_tls_server(int socket, weir_tls_find *find, void *of);
/** weir_tls_handshake() - go on with it; 0: done, -EAGAIN: the socket has to be ready (*@write: for writing),
 * -EACCES: the other end refuses the key, or ours does not know its; -EPROTO: the other end does not speak
 * TLS */
int weir_tls_handshake(struct weir_tls *tls, bool *write);
/** weir_tls_recvmsg() - as recvmsg(): as much as there is */
ssize_t weir_tls_recvmsg(struct weir_tls *tls, struct msghdr *message);
/** weir_tls_sendmsg() - as sendmsg(); after EAGAIN the same bytes come again, perhaps more behind them */
ssize_t weir_tls_sendmsg(struct weir_tls *tls, const struct msghdr *message);
/** weir_tls_pending() - there is more to receive that the socket does not report */
bool weir_tls_pending(const struct weir_tls *tls);
/** weir_tls_identity() - of the key that a server found; "" before */
const char *weir_tls_identity(const struct weir_tls *tls);
void weir_tls_free(struct weir_tls *tls);

/** weir_tls_or_recvmsg() - from @tls, or, where that is NULL, from @socket */
static inline ssize_t weir_tls_or_recvmsg(struct weir_tls *tls, int socket, struct msghdr *message)
{
	return tls ? weir_tls_recvmsg(tls, message) : recvmsg(socket, message, MSG_DONTWAIT);
}

static inline ssize_t weir_tls_or_sendmsg(struct weir_tls *tls, int socket, const struct msghdr *message)
{
	return tls ? weir_tls_sendmsg(tls, message) : sendmsg(socket, message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

#endif
