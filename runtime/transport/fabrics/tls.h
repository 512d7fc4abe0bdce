/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls.h: TLS 1.3 with a pre-shared key under a TCP connection. NVMe/TCP Transport 1.1, section 3.6.1.
 *
 * Owns: a connection's encryption. tls_openssl.c has it, or tls_none.c in a build without OpenSSL.
 */
#ifndef WEIR_FABRICS_TLS_H
#define WEIR_FABRICS_TLS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "tls_key.h"

enum { WEIR_TLS_HANDSHAKE = 0x16 }; /* first byte of a connection that begins with TLS; no PDU's type */

struct weir_tls;

/** weir_tls_client() - begin on a connected socket that does not block; NULL: no memory */
struct weir_tls *weir_tls_client(int socket, const struct weir_tls_psk *psk);
struct weir_tls *weir_tls_server(int socket, weir_tls_find *find, void *of);
/** weir_tls_handshake() - go on with it; 0: done, -EAGAIN: the socket has to be ready (*@write: for writing),
 * -EACCES: the other end refuses the key, or ours does not know its; -EPROTO: the other end does not speak
 * TLS; -ECONNRESET: it closes the connection without a word */
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
