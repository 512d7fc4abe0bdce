/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls_offer_test.c: what a host of another make may offer a server: suites of both hashes, in either order,
 * as Linux's tlshd does. The host is OpenSSL's own client.
 */
#include <errno.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/fabrics/tls.h"

#define LONG_FIRST  "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256"
#define SHORT_FIRST "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384"

static struct weir_tls_psk offered, served;

static bool find(void *of, const char *identity, struct weir_tls_psk *out)
{
	(void)of;
	*out = served;
	return !strcmp(identity, served.identity);
}

static int use_session(SSL *ssl, const EVP_MD *hash, const unsigned char **id, size_t *bytes,
		       SSL_SESSION **out)
{
	const unsigned char suite[2] = { 0x13, offered.bytes == 48 ? 2 : 1 };
	SSL_SESSION *session = SSL_SESSION_new();

	(void)hash;
	assert_non_null(session);
	assert_true(SSL_SESSION_set1_master_key(session, offered.key, offered.bytes));
	assert_true(SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, suite)));
	assert_true(SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION));
	*id = (const unsigned char *)offered.identity;
	*bytes = strlen(offered.identity);
	*out = session;
	return 1;
}

/* How the server's handshake ends; 0: with a key, by @suite. */
static int shake(const char *suites, uint16_t *suite)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL *host = SSL_new(context);
	struct weir_tls *server;
	int sockets[2], error = -EAGAIN;
	bool write;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets), 0);
	SSL_set_psk_use_session_callback(host, use_session);
	assert_true(SSL_set_ciphersuites(host, suites));
	assert_true(SSL_set_fd(host, sockets[0]));
	server = weir_tls_server(sockets[1], find, NULL);
	assert_non_null(server);
	for (unsigned i = 0; i < 100 && error == -EAGAIN; i++) {
		(void)SSL_connect(host);
		error = weir_tls_handshake(server, &write);
	}
	*suite = SSL_get_current_cipher(host) ? SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(host)) : 0;
	if (!error)
		assert_string_equal(weir_tls_identity(server), served.identity);
	weir_tls_free(server);
	SSL_free(host);
	SSL_CTX_free(context);
	close(sockets[0]);
	close(sockets[1]);
	return error;
}

static struct weir_tls_psk key_of(u8 bytes)
{
	struct weir_tls_psk psk = { .identity = "NVMe1R01 nqn.a nqn.b digest", .bytes = bytes };

	for (unsigned i = 0; i < bytes; i++)
		psk.key[i] = (u8)(i + 1);
	return psk;
}

static void the_key_decides_on_the_suite(void **state)
{
	uint16_t suite;

	(void)state;
	offered = served = key_of(32);
	assert_int_equal(shake(LONG_FIRST, &suite), 0);
	assert_int_equal(suite, 0x1301);
	assert_int_equal(shake(SHORT_FIRST, &suite), 0);
	assert_int_equal(suite, 0x1301);
	offered = served = key_of(48);
	assert_int_equal(shake(LONG_FIRST, &suite), 0);
	assert_int_equal(suite, 0x1302);
	assert_int_equal(shake(SHORT_FIRST, &suite), 0);
	assert_int_equal(suite, 0x1302);
}

static void a_key_of_a_hash_that_is_not_offered(void **state)
{
	uint16_t suite;

	(void)state;
	offered = key_of(32);
	served = key_of(48);
	assert_int_not_equal(shake("TLS_AES_128_GCM_SHA256", &suite), 0);
	offered = key_of(48);
	served = key_of(32);
	assert_int_not_equal(shake("TLS_AES_256_GCM_SHA384", &suite), 0);
}

static void another_key_of_that_identity(void **state)
{
	uint16_t suite;

	(void)state;
	offered = served = key_of(32);
	served.key[31] ^= 1;
	assert_int_not_equal(shake(LONG_FIRST, &suite), 0);
	strcpy(offered.identity, "NVMe1R01 nqn.a nqn.b another");
	assert_int_equal(shake(LONG_FIRST, &suite), -EACCES);
}

/* What a host says first. */
static size_t first_message(unsigned char *bytes, size_t most)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL *host = SSL_new(context);
	ssize_t count;
	int sockets[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets), 0);
	SSL_set_psk_use_session_callback(host, use_session);
	assert_true(SSL_set_ciphersuites(host, LONG_FIRST));
	assert_true(SSL_set_fd(host, sockets[0]));
	(void)SSL_connect(host);
	count = recv(sockets[1], bytes, most, 0);
	assert_true(count > 0 && (size_t)count < most);
	SSL_free(host);
	SSL_CTX_free(context);
	close(sockets[0]);
	close(sockets[1]);
	return (size_t)count;
}

static void a_first_message_with_each_byte_wrong(void **state)
{
	unsigned char bytes[4096];
	struct weir_tls *server;
	int sockets[2];
	size_t count;
	bool write;

	(void)state;
	offered = served = key_of(32);
	count = first_message(bytes, sizeof(bytes));
	for (size_t i = 0; i < 2 * count; i++) {
		bytes[i / 2] ^= i % 2 ? 0xff : 1;
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets), 0);
		server = weir_tls_server(sockets[1], find, NULL);
		assert_non_null(server);
		assert_int_equal(send(sockets[0], bytes, count, 0), count);
		assert_int_not_equal(weir_tls_handshake(server, &write), 0);
		weir_tls_free(server);
		close(sockets[0]);
		close(sockets[1]);
		bytes[i / 2] ^= i % 2 ? 0xff : 1;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_key_decides_on_the_suite),
		cmocka_unit_test(a_key_of_a_hash_that_is_not_offered),
		cmocka_unit_test(another_key_of_that_identity),
		cmocka_unit_test(a_first_message_with_each_byte_wrong),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
