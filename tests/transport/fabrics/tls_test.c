/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls_test.c: keys of TLS: what is derived of them against Python's hmac, keys that are none, and both ends
 * of a connection that goes on in small parts.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "transport/fabrics/chap.h"
#include "transport/fabrics/tls.h"

#define HOSTNQN "nqn.2026-11.org.example:host"
#define SUBNQN  "nqn.2026-11.org.example:disk"

enum { LINE = 1024, LONG = 300000 };

static struct weir_tls_psk served;
static unsigned char sent[LONG], got[LONG];

static int available(void **state)
{
	(void)state;
	if (!weir_chap_available())
		printf("# this build has no OpenSSL\n");
	return 0;
}

/* A line of the reference. */
static void read_line(FILE *from, char line[LINE])
{
	assert_non_null(fgets(line, LINE, from));
	line[strcspn(line, "\n")] = '\0';
}

static void check_reference(unsigned transform, unsigned bytes)
{
	char command[LINE], text[LINE], identity[LINE], hex[LINE], own[2 * WEIR_TLS_KEY_BYTES + 1];
	struct weir_tls_key key;
	struct weir_tls_psk psk;
	FILE *reference;

	snprintf(command, sizeof(command), "python3 %s %u %u %s %s", WEIR_TEST_REFERENCE, transform, bytes,
		 HOSTNQN, SUBNQN);
	reference = popen(command, "r");
	assert_non_null(reference);
	read_line(reference, text);
	read_line(reference, identity);
	read_line(reference, hex);
	assert_int_equal(pclose(reference), 0);
	assert_int_equal(weir_tls_key_parse(text, &key), 0);
	assert_true(weir_tls_derive(&key, HOSTNQN, SUBNQN, &psk));
	assert_string_equal(psk.identity, identity);
	assert_int_equal(psk.bytes, bytes);
	for (unsigned i = 0; i < bytes; i++)
		snprintf(own + 2 * i, 3, "%02x", psk.key[i]);
	assert_string_equal(own, hex);
}

static void keys_are_derived_as_python_does(void **state)
{
	(void)state;
	if (!weir_chap_available())
		skip();
	check_reference(0, 32);
	check_reference(0, 48);
	check_reference(1, 32);
	check_reference(2, 48);
}

static void texts_that_are_no_keys(void **state)
{
	static const char *const bad[] = {
		"",
		"NVMeTLSkey-1:01:",
		"NVMeTLSkey-2:01:BwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSZ7m+pq:",
		"DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
		"NVMeTLSkey-1:03:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
		"NVMeTLSkey-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:", /* 32 bytes */
		"NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaS:", /* checksum */
		"NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR",  /* its end */
		"NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0O:",
	};
	struct weir_tls_key key;
	char text[WEIR_TLS_KEY_TEXT];

	(void)state;
	if (!weir_chap_available())
		skip();
	assert_int_equal(
		weir_tls_key_parse("NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:", &key),
		0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (weir_tls_key_parse(bad[i], &key) != -EINVAL)
			fail_msg("\"%s\" was taken for a key", bad[i]);
	assert_int_equal(weir_tls_key_text(text), 0);
	assert_int_equal(weir_tls_key_parse(text, &key), 0);
}

static void identities_are_read_strictly(void **state)
{
	char host[NVME_NQN_BYTES], subsystem[NVME_NQN_BYTES];

	(void)state;
	assert_true(weir_tls_names("NVMe1R01 nqn.a nqn.b digest", host, subsystem));
	assert_string_equal(host, "nqn.a");
	assert_string_equal(subsystem, "nqn.b");
	assert_false(weir_tls_names("NVMe0R01 nqn.a nqn.b", host, subsystem));
	assert_false(weir_tls_names("NVMe1G01 nqn.a nqn.b digest", host, subsystem));
	assert_false(weir_tls_names("NVMe1R01 nqn.a", host, subsystem));
	assert_false(weir_tls_names("", host, subsystem));
}

static bool find(void *of, const char *identity, struct weir_tls_psk *out)
{
	(void)of;
	*out = served;
	return !strcmp(identity, served.identity);
}

static struct weir_tls_psk psk_of(const char *text, const char *hostnqn)
{
	struct weir_tls_psk psk;
	struct weir_tls_key key;

	assert_int_equal(weir_tls_key_parse(text, &key), 0);
	assert_true(weir_tls_derive(&key, hostnqn, SUBNQN, &psk));
	return psk;
}

/** struct both - ends of a connection */
struct both {
	int sockets[2];
	struct weir_tls *client;
	struct weir_tls *server;
};

static void begin(struct both *both, const struct weir_tls_psk *psk)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both->sockets), 0);
	both->client = weir_tls_client(both->sockets[0], psk);
	both->server = weir_tls_server(both->sockets[1], find, NULL);
	assert_non_null(both->client);
	assert_non_null(both->server);
}

static void end(struct both *both)
{
	weir_tls_free(both->client);
	weir_tls_free(both->server);
	close(both->sockets[0]);
	close(both->sockets[1]);
}

/* Results of both ends, once neither goes on. */
static void shake(struct both *both, int *client, int *server)
{
	bool write;

	*client = *server = -EAGAIN;
	for (unsigned i = 0; i < 100 && (*client == -EAGAIN || *server == -EAGAIN); i++) {
		if (*client == -EAGAIN)
			*client = weir_tls_handshake(both->client, &write);
		if (*server == -EAGAIN)
			*server = weir_tls_handshake(both->server, &write);
		if (*server && *server != -EAGAIN)
			shutdown(both->sockets[1], SHUT_WR);
	}
}

static void carry(struct weir_tls *from, struct weir_tls *to, size_t bytes)
{
	size_t out = 0, in = 0;

	memset(got, 0, bytes);
	while (in < bytes) {
		struct iovec parts[2] = { { sent + out, (bytes - out) / 3 },
					  { sent + out + (bytes - out) / 3,
					    bytes - out - (bytes - out) / 3 } };
		struct iovec room[2] = { { got + in, (bytes - in) / 2 },
					 { got + in + (bytes - in) / 2, bytes - in - (bytes - in) / 2 } };
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
		ssize_t part = out < bytes ? weir_tls_sendmsg(from, &message) : 0;

		assert_true(part >= 0 || errno == EAGAIN);
		out += part > 0 ? (size_t)part : 0;
		message = (struct msghdr){ .msg_iov = room, .msg_iovlen = 2 };
		part = weir_tls_recvmsg(to, &message);
		assert_true(part > 0 || (part < 0 && errno == EAGAIN));
		in += part > 0 ? (size_t)part : 0;
	}
	assert_memory_equal(sent, got, bytes);
}

static void bytes_arrive(void **state)
{
	static const char text[] = "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
	struct both both;
	int client, server;

	(void)state;
	if (!weir_chap_available())
		skip();
	for (unsigned i = 0; i < LONG; i++)
		sent[i] = (unsigned char)(i * 7 + i / 256);
	served = psk_of(text, HOSTNQN);
	begin(&both, &served);
	shake(&both, &client, &server);
	assert_int_equal(client, 0);
	assert_int_equal(server, 0);
	assert_string_equal(weir_tls_identity(both.server), served.identity);
	carry(both.client, both.server, LONG);
	carry(both.server, both.client, LONG);
	carry(both.client, both.server, 1);
	close(both.sockets[0]);
	both.sockets[0] = -1;
	{
		struct iovec iov = { got, 16 };
		struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

		assert_int_equal(weir_tls_recvmsg(both.server, &message), 0);
	}
	end(&both);
}

static void keys_that_differ(void **state)
{
	static const char text[] = "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
	struct weir_tls_psk other;
	struct both both;
	int client, server;

	(void)state;
	if (!weir_chap_available())
		skip();
	served = psk_of(text, HOSTNQN);
	other = psk_of(text, "nqn.2026-11.org.example:another"); /* an identity that is not known */
	begin(&both, &other);
	shake(&both, &client, &server);
	assert_int_equal(client, -EACCES);
	assert_int_equal(server, -EACCES);
	end(&both);
	other = served; /* the identity without the key */
	other.key[0] ^= 1;
	begin(&both, &other);
	shake(&both, &client, &server);
	assert_int_not_equal(client, 0);
	assert_int_not_equal(server, 0);
	end(&both);
}

static void bytes_that_are_no_tls(void **state)
{
	static const char text[] = "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
	unsigned char wrong[64] = { 0x01, 0, 0x80, 0 };
	struct both both;
	bool write;

	(void)state;
	if (!weir_chap_available())
		skip();
	served = psk_of(text, HOSTNQN);
	begin(&both, &served);
	assert_int_equal(send(both.sockets[1], wrong, sizeof(wrong), 0), sizeof(wrong));
	assert_int_equal(weir_tls_handshake(both.client, &write), -EPROTO);
	assert_int_equal(send(both.sockets[0], wrong, sizeof(wrong), 0), sizeof(wrong));
	while (recv(both.sockets[1], got, sizeof(got), MSG_DONTWAIT | MSG_PEEK) < (ssize_t)sizeof(wrong))
		;
	assert_int_not_equal(weir_tls_handshake(both.server, &write), 0);
	end(&both);
}

/* As Linux's target does where nobody does its handshakes. */
static void an_end_instead_of_an_answer(void **state)
{
	static const char text[] = "NVMeTLSkey-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
	struct both both;
	bool write;

	(void)state;
	if (!weir_chap_available())
		skip();
	served = psk_of(text, HOSTNQN);
	begin(&both, &served);
	assert_int_equal(weir_tls_handshake(both.client, &write), -EAGAIN);
	shutdown(both.sockets[1], SHUT_WR);
	assert_int_equal(weir_tls_handshake(both.client, &write), -ECONNRESET);
	end(&both);
}

/* The identities of test/psk.c of libnvme, which puts keys into Linux's keyring. */
static void identities_are_those_of_libnvme(void **state)
{
	static const struct {
		const char *text, *identity;
	} known[] = {
		{ "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:",
		  "NVMe1R01 nqn.psk-test-host nqn.psk-test-subsys "
		  "iSbjiStwJ/1TrTvDlt2fjFmzvsytOJelidNnA+X5lEU=" },
		{ "NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:",
		  "NVMe1R02 nqn.psk-test-host nqn.psk-test-subsys "
		  "QhW2+Rp6RzHlNtCslyRxMnwJ11tKKhz8JCAQpQ+XUD8f9td1VeH5h53yz2wKJG1a" },
	};
	struct weir_tls_psk psk;
	struct weir_tls_key key;

	(void)state;
	if (!weir_chap_available())
		skip();
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_int_equal(weir_tls_key_parse(known[i].text, &key), 0);
		assert_true(weir_tls_derive(&key, "nqn.psk-test-host", "nqn.psk-test-subsys", &psk));
		assert_string_equal(psk.identity, known[i].identity);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_derived_as_python_does),
		cmocka_unit_test(texts_that_are_no_keys),
		cmocka_unit_test(identities_are_read_strictly),
		cmocka_unit_test(bytes_arrive),
		cmocka_unit_test(keys_that_differ),
		cmocka_unit_test(bytes_that_are_no_tls),
		cmocka_unit_test(an_end_instead_of_an_answer),
		cmocka_unit_test(identities_are_those_of_libnvme),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, available, NULL);
}
