/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_tls_test.c: whom a target takes for whom: a connection by TLS is that of the host and the subsystem
 * that its key was derived for, and of no other.
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "target/parts.h"
#include "target_host.h"
#include "transport/fabrics/chap.h"
#include "transport/fabrics/tls.h"

#define OTHER_HOST "nqn.2026-11.org.example:other"

enum { DNR = 0x4000, PUMP_BYTES = 65536, STEP_MS = 10 };

/** struct pump - between a test's socket and a connection that TLS protects; a thread of its own */
struct pump {
	int plain;
	int secured;
	struct weir_tls *tls;
	pthread_t thread;
};

static char path[] = "/tmp/weir-target-tls-XXXXXX";
static struct weir_target *target;
static struct weir_tls_key key;
static struct host host, plain;

static int write_key_to(char *to, struct weir_tls_key *made)
{
	char text[WEIR_TLS_KEY_TEXT];
	int file = mkstemp(to);

	assert_true(file >= 0);
	assert_int_equal(weir_tls_key_text(text), 0);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	close(file);
	return weir_tls_key_load(to, made);
}

static int serve(void **state)
{
	static const struct weir_target_namespace_options space = { .uri = "virt:1M?block=512" };
	static const char *const hosts[] = { HOST_NAME, OTHER_HOST };
	const char *const keys[] = { path, path };
	const struct weir_target_subsystem_options subsystems[] = {
		{ .nqn = HOST_SUBSYSTEM,
		  .namespaces = &space,
		  .namespace_count = 1,
		  .hosts = hosts,
		  .host_count = 2,
		  .tls_keys = keys },
		{ .nqn = HOST_OTHER, .namespaces = &space, .namespace_count = 1 },
	};
	const struct weir_target_options options = { .size = sizeof(options),
						     .subsystems = subsystems,
						     .subsystem_count = 2 };

	(void)state;
	if (!weir_chap_available())
		return 0;
	return write_key_to(path, &key) != 0 || weir_target_create(&options, &target) != 0 ||
	       weir_target_start(target) != 0;
}

static int end(void **state)
{
	(void)state;
	if (target)
		weir_target_stop(target, 5000);
	weir_target_destroy(target);
	(void)unlink(path);
	return 0;
}

/* Whatever one end has goes to the other, until one of them ends. */
static void *run(void *argument)
{
	struct pump *pump = argument;
	static _Thread_local u8 bytes[PUMP_BYTES];

	for (;;) {
		struct pollfd ends[2] = { { .fd = pump->plain, .events = POLLIN },
					  { .fd = pump->secured, .events = POLLIN } };
		struct iovec iov = { bytes, sizeof(bytes) };
		struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t got;

		(void)poll(ends, 2, STEP_MS);
		got = weir_tls_recvmsg(pump->tls, &message);
		if (got == 0 || (got < 0 && errno != EAGAIN) ||
		    (got > 0 && send(pump->plain, bytes, (size_t)got, MSG_NOSIGNAL) != got))
			break;
		got = recv(pump->plain, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (got == 0)
			break;
		if (got < 0)
			continue;
		iov.iov_len = (size_t)got;
		while (iov.iov_len) {
			ssize_t part = weir_tls_sendmsg(pump->tls, &message);

			if (part < 0 && errno != EAGAIN)
				break;
			iov.iov_base = (u8 *)iov.iov_base + (part > 0 ? part : 0);
			iov.iov_len -= part > 0 ? (size_t)part : 0;
		}
	}
	shutdown(pump->plain, SHUT_RDWR);
	return NULL;
}

/* A host's connection in the name of @hostnqn, to @subnqn; false: the target does not take the key. */
static bool begin(struct pump *pump, const char *hostnqn, const char *subnqn)
{
	struct timeval limit = { .tv_sec = HOST_TIMEOUT_S };
	struct weir_tls_psk psk;
	int tls[2], pair[2], error;
	bool write;

	assert_true(weir_tls_derive(&key, hostnqn, subnqn, &psk));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, tls), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(weir_target_adopt(target, tls[1]), 0);
	memset(&host, 0, offsetof(struct host, data));
	host.rules.most_data = HOST_DATA_BYTES;
	host.socket = pair[0];
	setsockopt(host.socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	*pump = (struct pump){ .plain = pair[1], .secured = tls[0], .tls = weir_tls_client(tls[0], &psk) };
	while ((error = weir_tls_handshake(pump->tls, &write)) == -EAGAIN)
		poll(&(struct pollfd){ .fd = tls[0], .events = write ? POLLOUT : POLLIN }, 1, STEP_MS);
	if (error)
		return false;
	assert_int_equal(pthread_create(&pump->thread, NULL, run, pump), 0);
	host_hello(&host, 0, 0);
	return true;
}

static void finish(struct pump *pump)
{
	close(host.socket);
	if (pump->thread)
		pthread_join(pump->thread, NULL);
	weir_tls_free(pump->tls);
	close(pump->plain);
	close(pump->secured);
}

static u32 connect_as(const char *subnqn, const char *hostnqn)
{
	return host_connect(&host, 0, 31, NVME_CNTLID_DYNAMIC, 0, subnqn, hostnqn, NULL);
}

static void a_host_is_who_its_key_says(void **state)
{
	struct pump pump;

	(void)state;
	if (!weir_chap_available())
		skip();
	assert_true(begin(&pump, HOST_NAME, HOST_SUBSYSTEM));
	assert_int_equal(connect_as(HOST_SUBSYSTEM, OTHER_HOST), NVME_STATUS_AUTHENTICATION_REQUIRED | DNR);
	finish(&pump);
	assert_true(begin(&pump, HOST_NAME, HOST_SUBSYSTEM));
	assert_int_equal(connect_as(HOST_OTHER, HOST_NAME), NVME_STATUS_AUTHENTICATION_REQUIRED | DNR);
	finish(&pump);
	assert_true(begin(&pump, HOST_NAME, HOST_SUBSYSTEM));
	assert_int_equal(connect_as(HOST_SUBSYSTEM, HOST_NAME), 0);
	finish(&pump);
}

static void keys_of_nobody_are_refused(void **state)
{
	struct pump pump;

	(void)state;
	if (!weir_chap_available())
		skip();
	assert_false(begin(&pump, "nqn.2026-11.org.example:stranger", HOST_SUBSYSTEM));
	finish(&pump);
	assert_false(begin(&pump, HOST_NAME, HOST_OTHER)); /* which has no key */
	finish(&pump);
	assert_false(begin(&pump, HOST_NAME, "nqn.2026-11.org.example:none"));
	finish(&pump);
	key.key[0] ^= 1;
	assert_false(begin(&pump, HOST_NAME, HOST_SUBSYSTEM));
	finish(&pump);
	key.key[0] ^= 1;
}

static void without_tls_a_host_with_a_key_is_refused(void **state)
{
	(void)state;
	if (!weir_chap_available())
		skip();
	host_adopt(&plain, target);
	host_hello(&plain, 0, 0);
	assert_int_equal(host_connect(&plain, 0, 31, NVME_CNTLID_DYNAMIC, 0, HOST_SUBSYSTEM, HOST_NAME, NULL),
			 NVME_STATUS_AUTHENTICATION_REQUIRED | DNR);
	close(plain.socket);
	host_adopt(&plain, target);
	host_hello(&plain, 0, 0);
	assert_int_equal(host_connect(&plain, 0, 31, NVME_CNTLID_DYNAMIC, 0, HOST_OTHER, HOST_NAME, NULL), 0);
	close(plain.socket);
}

/* The entry of the discovery log for subsystem @nqn, as HOST_NAME reads it. */
static struct nvme_discovery_entry discovered(struct weir_target *by, const char *nqn)
{
	enum { ENTRY = sizeof(struct nvme_discovery_entry), MOST = 4 };
	struct nvme_discovery_entry entry;
	struct nvme_sqe sqe;

	host_adopt(&plain, by);
	host_hello(&plain, 0, 0);
	assert_int_equal(
		host_connect(&plain, 0, 31, NVME_CNTLID_DYNAMIC, 0, NVME_DISCOVERY_NQN, HOST_NAME, NULL), 0);
	sqe = host_command(&plain, NVME_ADMIN_GET_LOG_PAGE, 0);
	sqe.cdw10 = NVME_LOG_DISCOVERY | (MOST * ENTRY / 4 - 1) << 16;
	assert_int_equal(host_take(&plain, sqe, MOST * ENTRY), 0);
	close(plain.socket);
	assert_int_equal(plain.data[8], 2); /* records */
	for (size_t i = 1; i <= 2; i++) {
		memcpy(&entry, plain.data + i * ENTRY, sizeof(entry));
		if (!strcmp(entry.subnqn, nqn))
			return entry;
	}
	fail_msg("%s is not listed", nqn);
	return entry;
}

static bool has_key(struct weir_target *of, const char *hostnqn, const struct weir_tls_key *expected)
{
	struct weir_tls_key got;

	return target_tls_key(of, &of->subsystems[0], hostnqn, &got) && got.bytes == expected->bytes &&
	       !memcmp(got.key, expected->key, got.bytes);
}

/* A host has its own key, and the subsystem's where it has none; which subsystems want one, the discovery log
 * says. */
static void a_host_has_its_own_key(void **state)
{
	static const struct weir_target_namespace_options space = { .uri = "virt:1M" };
	static const char *const hosts[] = { OTHER_HOST, HOST_NAME };
	static const char *const listen_at = "tcp://127.0.0.1:0";
	char all_path[] = "/tmp/weir-target-tls-XXXXXX";
	const char *const keys[] = { NULL, path };
	const struct weir_target_subsystem_options subsystems[] = {
		{ .nqn = HOST_SUBSYSTEM,
		  .namespaces = &space,
		  .namespace_count = 1,
		  .hosts = hosts,
		  .host_count = 2,
		  .tls_keys = keys,
		  .tls_key = all_path },
		{ .nqn = HOST_OTHER, .namespaces = &space, .namespace_count = 1 },
	};
	const struct weir_target_options options = { .size = sizeof(options),
						     .listen = &listen_at,
						     .listen_count = 1,
						     .subsystems = subsystems,
						     .subsystem_count = 2 };
	struct nvme_discovery_entry entry;
	struct weir_tls_key all, none;
	struct weir_target *both;

	(void)state;
	if (!weir_chap_available())
		skip();
	write_key_to(all_path, &all);
	assert_int_equal(weir_target_create(&options, &both), 0);
	assert_true(has_key(both, HOST_NAME, &key));
	assert_true(has_key(both, OTHER_HOST, &all));
	assert_true(has_key(both, "nqn.2026-11.org.example:stranger", &all));
	assert_false(target_tls_key(both, &both->subsystems[1], HOST_NAME, &none));
	assert_int_equal(weir_target_start(both), 0);
	entry = discovered(both, HOST_SUBSYSTEM);
	assert_int_equal(entry.treq, NVME_TREQ_SECURE_REQUIRED);
	assert_int_equal(entry.tsas[0], NVME_SECTYPE_TLS13);
	entry = discovered(both, HOST_OTHER);
	assert_int_equal(entry.treq, NVME_TREQ_SECURE_NOT_REQUIRED);
	assert_int_equal(entry.tsas[0], NVME_SECTYPE_NONE);
	weir_target_stop(both, 5000);
	weir_target_destroy(both);
	(void)unlink(all_path);
}

/* A key of all is enough for hosts to come by TLS. */
static void a_key_of_all_opens(void **state)
{
	static const struct weir_target_namespace_options space = { .uri = "virt:1M" };
	const struct weir_target_subsystem_options subsystem = {
		.nqn = HOST_SUBSYSTEM, .namespaces = &space, .namespace_count = 1, .tls_key = path
	};
	const struct weir_target_options options = { .size = sizeof(options),
						     .subsystems = &subsystem,
						     .subsystem_count = 1 };
	struct weir_target *served = target;
	struct pump pump;

	(void)state;
	if (!weir_chap_available())
		skip();
	assert_int_equal(weir_target_create(&options, &target), 0);
	assert_int_equal(weir_target_start(target), 0);
	assert_true(begin(&pump, "nqn.2026-11.org.example:stranger", HOST_SUBSYSTEM));
	assert_int_equal(connect_as(HOST_SUBSYSTEM, "nqn.2026-11.org.example:stranger"), 0);
	finish(&pump);
	weir_target_stop(target, 5000);
	weir_target_destroy(target);
	target = served;
}

/* What begins like TLS and is none ends that connection, and no other. */
static void garbage_ends_its_connection(void **state)
{
	u8 bytes[256] = { WEIR_TLS_HANDSHAKE, 3, 1, 0, 200, 1, 0, 0, 196 };

	(void)state;
	if (!weir_chap_available())
		skip();
	for (unsigned i = 0; i < sizeof(bytes); i += 5) {
		host_adopt(&plain, target);
		host_send(&plain, bytes, sizeof(bytes) - i);
		shutdown(plain.socket, SHUT_WR);
		while (recv(plain.socket, plain.data, sizeof(plain.data), 0) > 0)
			;
		close(plain.socket);
		bytes[1 + i % 200] ^= (u8)(i + 1);
	}
	a_host_is_who_its_key_says(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_is_who_its_key_says),
		cmocka_unit_test(keys_of_nobody_are_refused),
		cmocka_unit_test(without_tls_a_host_with_a_key_is_refused),
		cmocka_unit_test(a_host_has_its_own_key),
		cmocka_unit_test(a_key_of_all_opens),
		cmocka_unit_test(garbage_ends_its_connection),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, serve, end);
}
