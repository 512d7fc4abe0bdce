/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls_openssl.c: TLS 1.3 by OpenSSL 3, with pre-shared keys alone: no certificate, no ticket, no older
 * version.
 *
 * Owns: SSL objects, and the bytes between them and a socket that never raises SIGPIPE. A connection is one
 * thread's.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tls.h"

enum { RECORD_BYTES = 16384 };

/** struct weir_tls - @psk: a client's own, or what a server found; @out: a record that is being sent */
struct weir_tls {
	SSL *ssl;
	int socket;
	struct weir_tls_psk psk;
	weir_tls_find *find;
	void *of;
	bool unknown; /* a server knows no key of the identity that came */
	bool ended;   /* the socket is at its end */
	u8 out[RECORD_BYTES];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static SSL_CTX *client_context, *server_context;
static BIO_METHOD *method;

/* ---- the socket ---- */

static int bio_write(BIO *bio, const char *bytes, int count)
{
	const struct weir_tls *tls = BIO_get_data(bio);
	ssize_t sent = send(tls->socket, bytes, (size_t)count, MSG_NOSIGNAL | MSG_DONTWAIT);

	BIO_clear_retry_flags(bio);
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(bio);
	return (int)sent;
}

static int bio_read(BIO *bio, char *bytes, int count)
{
	struct weir_tls *tls = BIO_get_data(bio);
	ssize_t got = recv(tls->socket, bytes, (size_t)count, MSG_DONTWAIT);

	BIO_clear_retry_flags(bio);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(bio);
	tls->ended = got == 0;
	return (int)got;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio)
{
	BIO_set_init(bio, 1);
	return 1;
}

/* ---- keys ---- */

static SSL_SESSION *session_of(SSL *ssl, const struct weir_tls_psk *psk)
{
	static const unsigned char suites[2][2] = { { 0x13, 0x01 }, { 0x13, 0x02 } };
	const SSL_CIPHER *suite = SSL_CIPHER_find(ssl, suites[psk->bytes == 48]);
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && suite && SSL_SESSION_set1_master_key(session, psk->key, psk->bytes) &&
	    SSL_SESSION_set_cipher(session, suite) &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int use_session(SSL *ssl, const EVP_MD *hash, const unsigned char **id, size_t *bytes,
		       SSL_SESSION **out)
{
	const struct weir_tls *tls = SSL_get_app_data(ssl);
	SSL_SESSION *session = session_of(ssl, &tls->psk);

	/* After a HelloRetryRequest the key has to have the hash that was chosen. */
	if (session && hash && EVP_MD_get_size(hash) != tls->psk.bytes) {
		SSL_SESSION_free(session);
		session = NULL;
	}
	*id = (const unsigned char *)tls->psk.identity;
	*bytes = session ? strlen(tls->psk.identity) : 0;
	*out = session;
	return 1;
}

static const char *suite_of(const struct weir_tls_psk *psk)
{
	return psk->bytes == 48 ? "TLS_AES_256_GCM_SHA384" : "TLS_AES_128_GCM_SHA256";
}

static bool is_known(struct weir_tls *tls, const unsigned char *id, size_t bytes)
{
	char identity[WEIR_TLS_IDENTITY_BYTES];

	if (bytes >= sizeof(identity))
		return false;
	memcpy(identity, id, bytes);
	identity[bytes] = '\0';
	return strlen(identity) == bytes && tls->find(tls->of, identity, &tls->psk);
}

static int find_session(SSL *ssl, const unsigned char *id, size_t bytes, SSL_SESSION **out)
{
	struct weir_tls *tls = SSL_get_app_data(ssl);

	*out = is_known(tls, id, bytes) ? session_of(ssl, &tls->psk) : NULL;
	tls->unknown = !*out;
	return 1;
}

/* The first identity of a pre_shared_key extension that is known (RFC 8446, section 4.2.11). */
static bool find_first(struct weir_tls *tls, const unsigned char *extension, size_t bytes)
{
	const unsigned char *at = extension + 2, *end = extension + bytes;

	while (end - at >= 2) { /* the identity's length, itself, and an age of four bytes */
		size_t length = (size_t)at[0] << 8 | at[1];

		at += 2;
		if ((size_t)(end - at) < length + 4)
			return false;
		if (is_known(tls, at, length))
			return true;
		at += length + 4;
	}
	return false;
}

/* OpenSSL chooses a suite before it looks for keys, and drops a key of another hash. A host that offers both
 * hashes may prefer the one that its key is not of (GnuTLS, so Linux's tlshd): the key decides. */
static int choose_suite(SSL *ssl, int *alert, void *argument)
{
	struct weir_tls *tls = SSL_get_app_data(ssl);
	const unsigned char *extension;
	size_t bytes, listed;

	(void)alert;
	(void)argument;
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_psk, &extension, &bytes) && bytes >= 2) {
		listed = 2 + ((size_t)extension[0] << 8 | extension[1]);
		if (find_first(tls, extension, listed < bytes ? listed : bytes))
			SSL_set_ciphersuites(ssl, suite_of(&tls->psk));
	}
	return SSL_CLIENT_HELLO_SUCCESS;
}

/* ---- contexts ---- */

static SSL_CTX *make_context(const SSL_METHOD *side)
{
	SSL_CTX *context = SSL_CTX_new(side);

	if (!context)
		return NULL;
	SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_num_tickets(context, 0);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_psk_use_session_callback(context, use_session);
	SSL_CTX_set_psk_find_session_callback(context, find_session);
	SSL_CTX_set_client_hello_cb(context, choose_suite, NULL);
	return context;
}

static void prepare(void)
{
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weir socket");
	if (!method)
		return;
	BIO_meth_set_write(method, bio_write);
	BIO_meth_set_read(method, bio_read);
	BIO_meth_set_ctrl(method, bio_control);
	BIO_meth_set_create(method, bio_create);
	client_context = make_context(TLS_client_method());
	server_context = make_context(TLS_server_method());
}

static struct weir_tls *begin(int socket, bool client)
{
	struct weir_tls *tls = calloc(1, sizeof(*tls));
	BIO *bio;

	pthread_once(&once, prepare);
	if (!tls || !client_context || !server_context) {
		free(tls);
		return NULL;
	}
	tls->socket = socket;
	tls->ssl = SSL_new(client ? client_context : server_context);
	bio = tls->ssl ? BIO_new(method) : NULL;
	if (!bio) {
		weir_tls_free(tls);
		return NULL;
	}
	BIO_set_data(bio, tls);
	SSL_set_bio(tls->ssl, bio, bio);
	SSL_set_app_data(tls->ssl, tls);
	if (client)
		SSL_set_connect_state(tls->ssl);
	else
		SSL_set_accept_state(tls->ssl);
	return tls;
}

struct weir_tls *weir_tls_client(int socket, const struct weir_tls_psk *psk)
{
	struct weir_tls *tls = begin(socket, true);

	if (!tls)
		return NULL;
	tls->psk = *psk;
	/* Of this hash alone: with another one the key could not be offered. */
	SSL_set_ciphersuites(tls->ssl, suite_of(psk));
	return tls;
}

struct weir_tls *weir_tls_server(int socket, weir_tls_find *find, void *of)
{
	struct weir_tls *tls = begin(socket, false);

	if (tls) {
		tls->find = find;
		tls->of = of;
	}
	return tls;
}

void weir_tls_free(struct weir_tls *tls)
{
	if (!tls)
		return;
	SSL_free(tls->ssl);
	OPENSSL_cleanse(&tls->psk, sizeof(tls->psk));
	free(tls);
}

/* ---- bytes ---- */

static bool is_refusal(unsigned long error)
{
	switch (ERR_GET_REASON(error)) {
	case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
	case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
	case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
	case SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_PSK_IDENTITY: /* some 3.0 have no name for it */
	case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
	case SSL_R_TLSV1_ALERT_INTERNAL_ERROR: return true;
	default: return false;
	}
}

int weir_tls_handshake(struct weir_tls *tls, bool *write)
{
	int result, error;

	ERR_clear_error();
	result = SSL_do_handshake(tls->ssl);
	*write = false;
	if (result == 1) /* a server that knows no key would have had to show a certificate */
		return SSL_session_reused(tls->ssl) ? 0 : -EACCES;
	error = SSL_get_error(tls->ssl, result);
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
		*write = error == SSL_ERROR_WANT_WRITE;
		return -EAGAIN;
	}
	if (tls->unknown || is_refusal(ERR_peek_error()))
		return -EACCES;
	return tls->ended || error == SSL_ERROR_SYSCALL ? -ECONNRESET : -EPROTO;
}

/* -1 with errno, or 0: the other end has closed it. */
static ssize_t failed(struct weir_tls *tls, int result)
{
	int error = SSL_get_error(tls->ssl, result);

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		errno = EAGAIN;
	else if (error == SSL_ERROR_ZERO_RETURN || tls->ended) /* whoever counts on all of it counts bytes */
		return 0;
	else if (error != SSL_ERROR_SYSCALL || !errno)
		errno = EPROTO;
	return -1;
}

ssize_t weir_tls_recvmsg(struct weir_tls *tls, struct msghdr *message)
{
	ssize_t total = 0;

	for (size_t i = 0; i < message->msg_iovlen; i++) {
		const struct iovec *iov = &message->msg_iov[i];
		size_t have = 0;

		while (have < iov->iov_len) {
			size_t left = iov->iov_len - have;
			int got;

			ERR_clear_error();
			errno = 0;
			got = SSL_read(tls->ssl, (char *)iov->iov_base + have,
				       left > 1 << 30 ? 1 << 30 : (int)left);
			if (got <= 0)
				return total ? total : failed(tls, got);
			have += (size_t)got;
			total += got;
		}
	}
	return total;
}

ssize_t weir_tls_sendmsg(struct weir_tls *tls, const struct msghdr *message)
{
	size_t count = 0;
	int sent;

	for (size_t i = 0; i < message->msg_iovlen && count < RECORD_BYTES; i++) {
		const struct iovec *iov = &message->msg_iov[i];
		size_t part = iov->iov_len < RECORD_BYTES - count ? iov->iov_len : RECORD_BYTES - count;

		memcpy(tls->out + count, iov->iov_base, part);
		count += part;
	}
	ERR_clear_error();
	errno = 0;
	sent = SSL_write(tls->ssl, tls->out, (int)count);
	if (sent > 0)
		return sent;
	if (failed(tls, sent) == 0)
		errno = EPIPE;
	return -1;
}

bool weir_tls_pending(const struct weir_tls *tls)
{
	return SSL_has_pending(tls->ssl);
}

const char *weir_tls_identity(const struct weir_tls *tls)
{
	return tls->psk.identity;
}
