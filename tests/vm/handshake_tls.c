/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake_tls.c: TLS 1.3 with a pre-shared key by OpenSSL, whose secrets the kernel's TLS then gets.
 *
 * Owns: the handshake alone. OpenSSL 3.0 hands the kernel one direction at most, so that the keys of both are
 * derived here of the traffic secrets (RFC 8446, section 7.3) and set as Linux's
 * Documentation/networking/tls.rst says.
 */
#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "handshake.h"

#ifndef SOL_TLS
#define SOL_TLS 282
#endif

enum { SECRET_BYTES = 48, IV_BYTES = 12 };

/** struct session - a handshake; @secrets: the client's and the server's, @bytes of each */
struct session {
	SSL *ssl;
	struct handshake_key *key;
	unsigned char secrets[2][SECRET_BYTES];
	unsigned bytes;
};

/* ---- the key ---- */

static SSL_SESSION *session_of(SSL *ssl, const struct weir_tls_psk *psk)
{
	const unsigned char suite[2] = { 0x13, psk->bytes == 48 ? 2 : 1 };
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && SSL_SESSION_set1_master_key(session, psk->key, psk->bytes) &&
	    SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, suite)) &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int client_key(SSL *ssl, const EVP_MD *hash, const unsigned char **id, size_t *bytes,
		      SSL_SESSION **out)
{
	const struct session *session = SSL_get_app_data(ssl);

	(void)hash;
	*id = (const unsigned char *)session->key->psk.identity;
	*bytes = strlen(session->key->psk.identity);
	*out = session_of(ssl, &session->key->psk);
	return 1;
}

static int server_key(SSL *ssl, const unsigned char *id, size_t bytes, SSL_SESSION **out)
{
	struct session *session = SSL_get_app_data(ssl);
	char identity[WEIR_TLS_IDENTITY_BYTES];

	*out = NULL;
	if (bytes >= sizeof(identity))
		return 1;
	memcpy(identity, id, bytes);
	identity[bytes] = '\0';
	if (handshake_key_find(identity, session->key) == 0)
		*out = session_of(ssl, &session->key->psk);
	return 1;
}

/* ---- what the kernel gets ---- */

/* A line of NSS's key log format: a label, the client's random number, a secret. */
static void keep_secret(const SSL *ssl, const char *line)
{
	struct session *session = SSL_get_app_data(ssl);
	char label[48], hex[2 * SECRET_BYTES + 1];
	bool server;

	if (sscanf(line, "%47s %*s %96s", label, hex) != 2)
		return;
	server = !strcmp(label, "SERVER_TRAFFIC_SECRET_0");
	if (!server && strcmp(label, "CLIENT_TRAFFIC_SECRET_0") != 0)
		return;
	session->bytes = (unsigned)strlen(hex) / 2;
	for (unsigned i = 0; i < session->bytes; i++)
		sscanf(hex + (size_t)2 * i, "%2hhx", &session->secrets[server][i]);
}

static bool expand(const struct session *session, bool server, const char *label, void *out, size_t bytes)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_3_KDF, NULL);
	EVP_KDF_CTX *context = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	const char *digest = session->bytes == 48 ? "SHA384" : "SHA256";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)(uintptr_t)digest, 0),
		OSSL_PARAM_construct_octet_string(
			OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)session->secrets[server], session->bytes),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, "tls13 ", 6),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)(uintptr_t)label,
						  strlen(label)),
		OSSL_PARAM_construct_end(),
	};
	bool good = context && EVP_KDF_derive(context, out, bytes, params) > 0;

	EVP_KDF_CTX_free(context);
	EVP_KDF_free(kdf);
	return good;
}

/* Records of one direction from the first on, by the key of that end. */
static int give_key(const struct session *session, int socket, int direction, bool server)
{
	struct tls12_crypto_info_aes_gcm_128 short_key = { .info = { TLS_1_3_VERSION,
								     TLS_CIPHER_AES_GCM_128 } };
	struct tls12_crypto_info_aes_gcm_256 long_key = { .info = { TLS_1_3_VERSION,
								    TLS_CIPHER_AES_GCM_256 } };
	bool is_long = session->bytes == 48;
	unsigned char iv[IV_BYTES];

	if (!expand(session, server, "iv", iv, sizeof(iv)) ||
	    !expand(session, server, "key", is_long ? long_key.key : short_key.key,
		    is_long ? sizeof(long_key.key) : sizeof(short_key.key)))
		return -EIO;
	memcpy(is_long ? long_key.salt : short_key.salt, iv, sizeof(short_key.salt));
	memcpy(is_long ? long_key.iv : short_key.iv, iv + sizeof(short_key.salt), sizeof(short_key.iv));
	return setsockopt(socket, SOL_TLS, direction, is_long ? (void *)&long_key : &short_key,
			  is_long ? sizeof(long_key) : sizeof(short_key)) == 0
		       ? 0
		       : -errno;
}

static int give_kernel(const struct session *session, int socket, bool client)
{
	int error;

	if (!session->bytes)
		return -EIO;
	if (setsockopt(socket, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) != 0)
		return -errno;
	error = give_key(session, socket, TLS_TX, !client);
	return error ? error : give_key(session, socket, TLS_RX, client);
}

/* ---- the handshake ---- */

static SSL_CTX *make_context(bool client)
{
	SSL_CTX *context = SSL_CTX_new(client ? TLS_client_method() : TLS_server_method());

	if (!context)
		return NULL;
	SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	SSL_CTX_set_num_tickets(context, 0); /* the kernel's TLS takes nothing but data */
	SSL_CTX_set_keylog_callback(context, keep_secret);
	SSL_CTX_set_psk_use_session_callback(context, client_key);
	SSL_CTX_set_psk_find_session_callback(context, server_key);
	/* Both, as other programs of this kind offer them: the server has to take that of the key. */
	SSL_CTX_set_ciphersuites(context, "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256");
	return context;
}

static int shake_hands(SSL *ssl, int socket)
{
	int result;

	while ((result = SSL_do_handshake(ssl)) != 1) {
		int error = SSL_get_error(ssl, result);
		short events = error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;

		if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
			return -EACCES;
		(void)poll(&(struct pollfd){ .fd = socket, .events = events }, 1, -1);
	}
	return SSL_session_reused(ssl) ? 0 : -EACCES;
}

int handshake_tls(int socket, bool client, struct handshake_key *key)
{
	struct session session = { .key = key };
	SSL_CTX *context = make_context(client);
	int error = -ENOMEM;

	session.ssl = context ? SSL_new(context) : NULL;
	if (session.ssl && SSL_set_fd(session.ssl, socket)) {
		SSL_set_app_data(session.ssl, &session);
		if (client)
			SSL_set_connect_state(session.ssl);
		else
			SSL_set_accept_state(session.ssl);
		error = shake_hands(session.ssl, socket);
		if (!error)
			error = give_kernel(&session, socket, client);
	}
	SSL_free(session.ssl);
	SSL_CTX_free(context);
	OPENSSL_cleanse(&session, sizeof(session));
	return error;
}
