/* SPDX-License-Identifier: BSD-3-Clause */
/* tls_none.c: a build without OpenSSL encrypts nothing; keys are refused before (tls_key.c). */
#include <errno.h>

#include "tls.h"

struct weir_tls *weir_tls_client(int socket, const struct weir_tls_psk *psk)
{
	(void)socket;
	(void)psk;
	return NULL;
}

struct weir_tls *weir_tls_server(int socket, weir_tls_find *find, void *of)
{
	(void)socket;
	(void)find;
	(void)of;
	return NULL;
}

int weir_tls_handshake(struct weir_tls *tls, bool *write)
{
	(void)tls;
	*write = false;
	return -EPROTO;
}

ssize_t weir_tls_recvmsg(struct weir_tls *tls, struct msghdr *message)
{
	(void)tls;
	(void)message;
	errno = EPROTO;
	return -1;
}

ssize_t weir_tls_sendmsg(struct weir_tls *tls, const struct msghdr *message)
{
	(void)tls;
	(void)message;
	errno = EPROTO;
	return -1;
}

bool weir_tls_pending(const struct weir_tls *tls)
{
	(void)tls;
	return false;
}

const char *weir_tls_identity(const struct weir_tls *tls)
{
	(void)tls;
	return "";
}

void weir_tls_free(struct weir_tls *tls)
{
	(void)tls;
}
