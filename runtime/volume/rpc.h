/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume/rpc.h: JSON-RPC 2.0 between clients, tools and the daemon of an array.
 *
 * Owns: a message per line on a socket, of the UNIX domain or TCP, and how an error object becomes a
 * sentence. Never knows a method. Source: JSON-RPC 2.0; codes of errors above -32768 are negative errnos, as
 * SPDK has them.
 *
 * A connection is one thread's at a time.
 */
#ifndef WEIR_VOLUME_RPC_H
#define WEIR_VOLUME_RPC_H

#include <jansson.h>

#include "../transport/fabrics/tls_key.h"

enum {
	WEIR_RPC_LINE_BYTES = 1 << 20, /* of a message, at most */
	WEIR_RPC_PARSE_ERROR = -32700,
	WEIR_RPC_INVALID_REQUEST = -32600,
	WEIR_RPC_NO_METHOD = -32601,
	WEIR_RPC_INVALID_PARAMS = -32602,
};

struct weir_rpc;

/** WEIR_RPC_NQN - in whose name the daemon of any array has TLS; not a subsystem's */
#define WEIR_RPC_NQN "nqn.2014-08.org.nvmexpress:uuid:5d0c6f0e-7c1b-4f0a-9d3e-2b8a51c4e7f6"

/** struct weir_rpc_identity - who a client is; @file: of the key that proves it (transport/fabrics/tls.h) */
struct weir_rpc_identity {
	const char *hostnqn;
	const char *file;
};

/**
 * weir_rpc_open() - connect
 * @address: HOST:PORT, [HOST]:PORT, or the path of a socket, which begins with a slash; several, with commas
 * between them: the first that answers
 * @identity: for TLS 1.3, except at the path of a socket; NULL: nothing is encrypted
 * @ms: what it may take
 *
 * Return: 0 or a negative errno with a sentence.
 */
int weir_rpc_open(const char *address, const struct weir_rpc_identity *identity, unsigned ms,
		  struct weir_rpc **out);
/** weir_rpc_of() - the same on @socket, which accept() gave; @name: of whom, in sentences. It owns @socket,
 * on an error too */
int weir_rpc_of(int socket, const char *name, struct weir_rpc **out);
/** weir_rpc_check() - whether @address is one; -EINVAL or -ENAMETOOLONG with a sentence */
int weir_rpc_check(const char *address);
/** weir_rpc_listen() - a socket that listens at @address, as weir_rpc_open() reads it; a socket file that
 * nobody listens at is replaced. Return: the socket or a negative errno with a sentence */
int weir_rpc_listen(const char *address);
void weir_rpc_close(struct weir_rpc *rpc);
/** weir_rpc_socket() - to poll; a message may have been received already: weir_rpc_pending() */
int weir_rpc_socket(const struct weir_rpc *rpc);
/** weir_rpc_pending() - whether weir_rpc_receive() may have a whole message although the socket has nothing
 */
int weir_rpc_pending(const struct weir_rpc *rpc);

/**
 * weir_rpc_secure() - the other end of a socket that accept() gave begins with TLS
 * @find, @of: the keys, by identities of hosts and WEIR_RPC_NQN
 *
 * Before anything is received. weir_rpc_receive() goes on with the handshake. Return: 0, -ENOMEM or -ENOTSUP
 * with a sentence.
 */
int weir_rpc_secure(struct weir_rpc *rpc, weir_tls_find *find, void *of);
/** weir_rpc_host() - who the other end has proved to be; NULL: nobody, so far */
const char *weir_rpc_host(const struct weir_rpc *rpc);

/**
 * weir_rpc_call() - ask for @method and wait for its result
 * @params: an object, or NULL; the reference is taken
 * @ms: what it may take
 * @result: out, a new reference; NULL: it is not wanted
 *
 * Return: 0; the code of the error object where that is a negative errno; -EPROTO for other codes and for
 * answers that are none; else a negative errno of the connection, which is of no use any more
 * (weir_rpc_broken()). All with a sentence.
 */
int weir_rpc_call(struct weir_rpc *rpc, const char *method, json_t *params, unsigned ms, json_t **result);
/** weir_rpc_broken() - it has to be closed: an answer did not come, or the other end is gone */
int weir_rpc_broken(const struct weir_rpc *rpc);

/**
 * weir_rpc_receive() - the next message
 * @ms: to wait for it
 * @message: out, a new reference
 *
 * Return: 0; -EAGAIN: none came (no sentence); -ENOTCONN: the other end closed it; -EPROTO: the line was no
 * JSON object, and the connection goes on unless it is broken; else a negative errno. With a sentence, but
 * for -EAGAIN.
 */
int weir_rpc_receive(struct weir_rpc *rpc, unsigned ms, json_t **message);
/** weir_rpc_send() - @message, whose reference is taken, as a line, within @ms; 0 or a negative errno with a
 * sentence; -EMSGSIZE: it has more than WEIR_RPC_LINE_BYTES, nothing was sent, and the connection goes on */
int weir_rpc_send(struct weir_rpc *rpc, json_t *message, unsigned ms);

/** weir_rpc_result() - the answer to @request: @result, whose reference is taken */
json_t *weir_rpc_result(const json_t *request, json_t *result);
/** weir_rpc_error() - the answer to @request, or NULL where there was none to understand: an error object;
 * @code: WEIR_RPC_... or a negative errno */
json_t *weir_rpc_error(const json_t *request, int code, const char *sentence);

#endif
