/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_authenticate_test.c: a target takes no command of a host that has not proved who it is.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include <weir/weir.h>
#include "../rig/leaks.h"
#include "target/parts.h"
#include "target_chap.h"

static struct host admin, queue;
static const struct weir_chap_names names = { HOST_NAME, HOST_SUBSYSTEM };
static const struct weir_chap_secret none;
static struct weir_chap_secret host_secret, controller_secret;
static char host_path[] = "/tmp/weir_target_host_XXXXXX",
	    controller_path[] = "/tmp/weir_target_controller_XXXXXX";

/* A target with one subsystem, for one host; files of secrets, each one or NULL. */
static int create(const char *of_host, const char *of_controller, struct weir_target **target)
{
	static const struct weir_target_namespace_options space = { .uri = "virt:1M?block=512" };
	static const char *const hosts[] = { HOST_NAME };
	const char *secrets[] = { of_host }, *controller_secrets[] = { of_controller };
	const struct weir_target_subsystem_options subsystem = { .nqn = HOST_SUBSYSTEM,
								 .namespaces = &space,
								 .namespace_count = 1,
								 .hosts = hosts,
								 .host_count = 1,
								 .secrets = secrets,
								 .controller_secrets = controller_secrets };
	struct weir_target_options options = {
		.size = sizeof(options), .subsystems = &subsystem, .subsystem_count = 1, .threads = 1
	};

	return weir_target_create(&options, target);
}

static void write_secrets(void)
{
	memcpy(host_path + sizeof(host_path) - 7, "XXXXXX", 6);
	memcpy(controller_path + sizeof(controller_path) - 7, "XXXXXX", 6);
	chap_make_secret(host_path, &host_secret);
	chap_make_secret(controller_path, &controller_secret);
}

static void remove_secrets(void)
{
	unlink(host_path);
	unlink(controller_path);
}

static int begin(void **state)
{
	struct weir_target *target;

	write_secrets();
	assert_int_equal(create(host_path, controller_path, &target), 0);
	assert_int_equal(weir_target_start(target), 0);
	remove_secrets();
	*state = target;
	return 0;
}

static int end(void **state)
{
	weir_target_stop(*state, 10000);
	weir_target_destroy(*state);
	return 0;
}

static u16 connect_admin(struct weir_target *target)
{
	u64 result = 0;

	host_adopt(&admin, target);
	host_hello(&admin, 0, 0);
	assert_int_equal(
		host_connect(&admin, 0, 31, NVME_CNTLID_DYNAMIC, 0, HOST_SUBSYSTEM, HOST_NAME, &result), 0);
	assert_int_equal(NVME_CONNECT_AUTHREQ(result) << 16, NVME_CONNECT_ATR);
	return (u16)NVME_CONNECT_CNTLID(result);
}

/* Whether the target still answers; if so, that it takes no command. A host that was not here for longer than
 * it has to close finds its connection closed. */
static bool refuses_commands(void)
{
	struct nvme_sqe sqe = host_command(&admin, NVME_ADMIN_IDENTIFY, 0);

	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, 4096);
	host_capsule(&admin, &sqe, NULL, 0);
	if (!host_receive(&admin))
		return false;
	assert_int_equal(admin.header.common.type, NVME_TCP_CAPSULE_RESP);
	assert_int_equal(host_status(&admin, NULL) & NVME_STATUS_CODE_MASK,
			 NVME_STATUS_AUTHENTICATION_REQUIRED);
	return true;
}

static u32 version_status(void)
{
	return host_property(&admin, false, NVME_PROPERTY_VS, 0, 0, NULL) & NVME_STATUS_CODE_MASK;
}

static void test_commands_wait(void **state)
{
	connect_admin(*state);
	assert_int_equal(version_status(), NVME_STATUS_AUTHENTICATION_REQUIRED);
	assert_int_equal(host_take(&admin, host_command(&admin, NVME_ADMIN_IDENTIFY, 0), 4096) &
				 NVME_STATUS_CODE_MASK,
			 NVME_STATUS_AUTHENTICATION_REQUIRED);
	close(admin.socket);
}

/* The status of a command with @bytes of data that come on demand; the target asks for none of them. */
static u32 status_without_data(struct nvme_sqe sqe, u32 bytes)
{
	host_sgl(&sqe, NVME_SGL_TRANSPORT_DATA_BLOCK, bytes);
	host_capsule(&admin, &sqe, NULL, 0);
	assert_true(host_receive(&admin));
	assert_int_equal(admin.header.common.type, NVME_TCP_CAPSULE_RESP);
	return host_status(&admin, NULL) & NVME_STATUS_CODE_MASK;
}

/* Until a host has proved who it is the target keeps no more for it than that takes. */
static void test_a_stranger_has_little_room(void **state)
{
	const u32 most = HOST_DATA_BYTES;

	host_adopt(&admin, *state);
	host_hello(&admin, 0, 0);
	assert_int_equal(
		status_without_data(host_command(&admin, NVME_OPCODE_FABRICS, NVME_FCTYPE_CONNECT), most),
		NVME_STATUS_INVALID_FIELD);
	assert_int_equal(status_without_data(host_command(&admin, NVME_ADMIN_SET_FEATURES, 0), 4096),
			 NVME_STATUS_COMMAND_SEQUENCE);
	close(admin.socket);
	connect_admin(*state);
	assert_int_equal(status_without_data(host_command(&admin, NVME_ADMIN_SET_FEATURES, 0), 4096),
			 NVME_STATUS_AUTHENTICATION_REQUIRED);
	assert_int_equal(
		status_without_data(chap_command(&admin, NVME_FCTYPE_AUTHENTICATION_SEND, most), most),
		NVME_STATUS_INVALID_FIELD);
	close(admin.socket);
}

static void test_a_proof_opens(void **state)
{
	struct weir_chap chap;
	u8 answer[WEIR_CHAP_MESSAGE_BYTES];
	u16 cntlid = connect_admin(*state);

	weir_chap_begin(&chap, &names, &host_secret, &none);
	assert_int_equal(chap_prove(&admin, &chap, answer), 0);
	assert_true(chap.done);
	weir_chap_end(&chap);
	assert_int_equal(version_status(), 0);
	assert_int_equal(host_property(&admin, true, NVME_PROPERTY_CC, 0,
				       NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16, NULL),
			 0);
	/* Each connection by itself: who has a number of the controller's has proved nothing. */
	host_adopt(&queue, *state);
	host_hello(&queue, 0, 0);
	assert_int_equal(host_connect(&queue, 1, 31, cntlid, 0, HOST_SUBSYSTEM, HOST_NAME, NULL), 0);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 1), 512) &
				 NVME_STATUS_CODE_MASK,
			 NVME_STATUS_AUTHENTICATION_REQUIRED);
	weir_chap_begin(&chap, &names, &host_secret, &none);
	chap_prove(&queue, &chap, answer);
	weir_chap_end(&chap);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 1), 512), 0);
	close(queue.socket);
	close(admin.socket);
}

static void test_both_prove(void **state)
{
	struct weir_chap chap;
	u8 answer[WEIR_CHAP_MESSAGE_BYTES];
	u32 bytes;

	connect_admin(*state);
	weir_chap_begin(&chap, &names, &host_secret, &controller_secret);
	bytes = chap_prove(&admin, &chap, answer);
	assert_true(chap.done && bytes);
	assert_int_equal(version_status(), NVME_STATUS_AUTHENTICATION_REQUIRED); /* before Success2 */
	chap_give(&admin, answer, bytes);
	assert_int_equal(version_status(), 0);
	weir_chap_end(&chap);
	close(admin.socket);
}

static void test_a_wrong_proof(void **state)
{
	struct weir_chap chap;
	u8 answer[WEIR_CHAP_MESSAGE_BYTES];

	connect_admin(*state);
	weir_chap_begin(&chap, &names, &controller_secret, &none);
	assert_int_equal(chap_prove(&admin, &chap, answer), 0);
	assert_true(chap.failed && !chap.done);
	weir_chap_end(&chap);
	if (refuses_commands())
		assert_false(host_receive(&admin)); /* it is closed */
	close(admin.socket);
}

/* Whoever failed and goes on wins no time by it. */
static void test_a_wrong_proof_that_goes_on(void **state)
{
	enum { MOST = 300 };
	const struct timespec pause = { .tv_nsec = 100000000 };
	u8 message[WEIR_CHAP_MESSAGE_BYTES];
	struct weir_chap chap;
	bool open = true;
	unsigned sent = 0;

	connect_admin(*state);
	weir_chap_begin(&chap, &names, &controller_secret, &none);
	assert_int_equal(chap_prove(&admin, &chap, message), 0);
	for (; open && sent < MOST; sent++) {
		u32 bytes = weir_chap_negotiate(&chap, 2, message);
		struct nvme_sqe sqe = chap_command(&admin, NVME_FCTYPE_AUTHENTICATION_SEND, bytes);

		host_sgl(&sqe, NVME_SGL_DATA_BLOCK_OFFSET, bytes);
		host_capsule(&admin, &sqe, message, bytes);
		open = host_receive(&admin);
		nanosleep(&pause, NULL);
	}
	assert_true(sent < MOST);
	weir_chap_end(&chap);
	close(admin.socket);
}

/* What a host has not proved yet is told no more than the message: the rest of its answer is zeros, whatever
 * was in the buffer. */
static void test_answers_have_the_message_alone(void **state)
{
	static u8 garbage[WEIR_CHAP_MESSAGE_BYTES];

	memset(garbage, 0xee, sizeof(garbage));
	connect_admin(*state);
	chap_give(&admin, garbage, sizeof(garbage));
	chap_take(&admin);
	assert_int_equal(admin.data[1], NVME_AUTH_FAILURE1);
	for (u32 i = sizeof(struct nvme_auth_failure); i < sizeof(garbage); i++)
		assert_int_equal(admin.data[i], 0);
	close(admin.socket);
}

/* A target without threads, whose last connection is that of a host that has to authenticate. */
static struct connection *connect_stepped(struct weir_target **stepped)
{
	assert_int_equal(create(host_path, controller_path, stepped), 0);
	host_stepped = *stepped;
	connect_admin(*stepped);
	return (*stepped)->servers[0].connections;
}

static void end_stepped(struct weir_target *stepped)
{
	host_stepped = NULL;
	close(admin.socket);
	weir_target_destroy(stepped);
}

/* Whoever has connected has some seconds to prove who it is, as long as it likes when it has, and a second to
 * read why it is refused when it could not. */
static void test_a_proof_has_its_time(void **state)
{
	const struct weir_chap_secret *const secrets[] = { &host_secret, &controller_secret };
	u8 answer[WEIR_CHAP_MESSAGE_BYTES];

	(void)state;
	write_secrets();
	for (unsigned wrong = 0; wrong < 2; wrong++) {
		u64 before = target_now_ms();
		struct weir_target *stepped;
		struct connection *connection = connect_stepped(&stepped);
		struct weir_chap chap;

		assert_in_range(connection->deadline_ms, before + TARGET_HELLO_MS,
				target_now_ms() + TARGET_HELLO_MS);
		weir_chap_begin(&chap, &names, secrets[wrong], &none);
		before = target_now_ms();
		assert_int_equal(chap_prove(&admin, &chap, answer), 0);
		assert_int_equal(chap.failed, wrong);
		weir_chap_end(&chap);
		if (wrong)
			assert_in_range(connection->deadline_ms, before + TARGET_LINGER_MS,
					target_now_ms() + TARGET_LINGER_MS);
		else
			assert_int_equal(connection->deadline_ms, 0);
		end_stepped(stepped);
	}
	remove_secrets();
}

static bool is_secret(const struct weir_chap_secret *is, const struct weir_chap_secret *expected)
{
	return is->bytes == expected->bytes && !memcmp(is->key, expected->key, is->bytes);
}

/* Of two hosts each has secrets of its own, either way, and proves itself by these. */
static void test_each_host_has_its_own_secrets(void **state)
{
	static const struct weir_target_namespace_options space = { .uri = "virt:1M?block=512" };
	static const char *const hosts[] = { HOST_NAME, "nqn.2026-11.org.example:another" };
	const char *const secrets[] = { host_path, controller_path };
	const char *const controller_secrets[] = { controller_path, host_path };
	const struct weir_target_subsystem_options subsystem = { .nqn = HOST_SUBSYSTEM,
								 .namespaces = &space,
								 .namespace_count = 1,
								 .hosts = hosts,
								 .host_count = 2,
								 .secrets = secrets,
								 .controller_secrets = controller_secrets };
	const struct weir_target_options options = { .size = sizeof(options),
						     .subsystems = &subsystem,
						     .subsystem_count = 1 };
	const struct target_secrets *loaded;
	u8 answer[WEIR_CHAP_MESSAGE_BYTES];
	struct weir_target *target;
	struct weir_chap chap;

	(void)state;
	write_secrets();
	assert_int_equal(weir_target_create(&options, &target), 0);
	remove_secrets();
	loaded = target->subsystems[0].hosts.secrets;
	assert_true(is_secret(&loaded[0].host, &host_secret));
	assert_true(is_secret(&loaded[0].controller, &controller_secret));
	assert_true(is_secret(&loaded[1].host, &controller_secret));
	assert_true(is_secret(&loaded[1].controller, &host_secret));
	host_stepped = target;
	connect_admin(target);
	weir_chap_begin(&chap, &names, &host_secret, &none);
	assert_int_equal(chap_prove(&admin, &chap, answer), 0);
	assert_true(chap.done);
	weir_chap_end(&chap);
	end_stepped(target);
}

/* A host that comes and goes, half of the time without a proof, leaves nothing. */
static void test_proofs_leave_nothing(void **state)
{
	enum { WARM = 10, ROUNDS = 60, SLACK = 16384 };
	u8 answer[WEIR_CHAP_MESSAGE_BYTES];
	struct test_has before = { .files = 0 }, now;
	struct weir_target *stepped;

	(void)state;
	write_secrets();
	(void)connect_stepped(&stepped);
	for (unsigned i = 0; i < WARM + ROUNDS; i++) {
		struct weir_chap chap;

		if (i == WARM)
			before = test_has();
		weir_chap_begin(&chap, &names, &host_secret, &none);
		if (i % 2)
			assert_int_equal(chap_prove(&admin, &chap, answer), 0);
		else
			chap_give(&admin, answer, weir_chap_negotiate(&chap, 1, answer));
		weir_chap_end(&chap);
		close(admin.socket);
		while (stepped->servers[0].connections)
			(void)weir_target_step(stepped, 0);
		connect_admin(stepped);
	}
	now = test_has();
	test_keeps(before, 1 << 20);
	if (TEST_COUNTS_MEMORY && now.heap_bytes > before.heap_bytes + SLACK)
		fail_msg("%llu bytes are left", (unsigned long long)(now.heap_bytes - before.heap_bytes));
	end_stepped(stepped);
	remove_secrets();
}

/* A subsystem that would prove itself to a host that proves nothing, as if it had been asked to. */
static void test_a_secret_of_the_subsystem_alone(void **state)
{
	char path[] = "/tmp/weir_target_alone_XXXXXX";
	struct weir_chap_secret secret;
	struct weir_target *target = NULL;

	(void)state;
	chap_make_secret(path, &secret);
	assert_int_equal(create(NULL, path, &target), -EINVAL);
	assert_non_null(strstr(weir_last_error(), "without one of the host's"));
	assert_null(target);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands_wait),
		cmocka_unit_test(test_a_stranger_has_little_room),
		cmocka_unit_test(test_a_proof_opens),
		cmocka_unit_test(test_both_prove),
		cmocka_unit_test(test_a_wrong_proof),
		cmocka_unit_test(test_a_wrong_proof_that_goes_on),
		cmocka_unit_test(test_a_secret_of_the_subsystem_alone),
		cmocka_unit_test(test_answers_have_the_message_alone),
		cmocka_unit_test(test_a_proof_has_its_time),
		cmocka_unit_test(test_each_host_has_its_own_secrets),
		cmocka_unit_test(test_proofs_leave_nothing),
	};

	if (!weir_chap_available()) {
		puts("1..0 # SKIP this build has no OpenSSL");
		return 0;
	}
	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, begin, end);
}
