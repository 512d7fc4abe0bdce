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

static int begin(void **state)
{
	struct weir_target *target;

	chap_make_secret(host_path, &host_secret);
	chap_make_secret(controller_path, &controller_secret);
	assert_int_equal(create(host_path, controller_path, &target), 0);
	assert_int_equal(weir_target_start(target), 0);
	unlink(host_path);
	unlink(controller_path);
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
	};

	if (!weir_chap_available()) {
		puts("1..0 # SKIP this build has no OpenSSL");
		return 0;
	}
	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, begin, end);
}
