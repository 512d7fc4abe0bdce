/* SPDX-License-Identifier: BSD-3-Clause */
/* target_shutdown_test.c: what a host wrote is durable before its controller says that it is shut down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "target_host.h"
#include "target/parts.h"

enum { SHUTDOWN_OCCURRING = 1 << 2, SHUTDOWN_NORMAL = 1 << 14 }; /* of CSTS, CC */

static struct host admin, queue, other;

/* Commands that the namespaces had, a digit for each. */
static unsigned commands_of(const struct weir_target *of)
{
	unsigned commands = 0;

	for (size_t i = 0; i < target_namespaces(of->subsystems); i++) {
		struct weir_virtual_stats stats;

		weir_virtual_stats(of->subsystems[0].namespaces[i].core, &stats);
		commands = 10 * commands + (unsigned)stats.commands;
	}
	return commands;
}

static u64 csts_of(struct host *host)
{
	u64 csts = 0;

	assert_int_equal(host_property(host, false, NVME_PROPERTY_CSTS, 0, 0, &csts), 0);
	return csts & ~(u64)NVME_CSTS_READY;
}

static u64 shut_down(struct host *host)
{
	const u64 cc = NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16 | SHUTDOWN_NORMAL;

	assert_int_equal(host_property(host, true, NVME_PROPERTY_CC, 0, cc, NULL), 0);
	return csts_of(host);
}

static void write_to(u32 nsid)
{
	static const u8 data[4096];

	assert_int_equal(
		host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, nsid, 0, 4096 / 512), data, 4096, true),
		0);
}

/* A target of two namespaces, and a host with an I/O queue. */
static struct weir_target *serve_two(const char *first, const char *second)
{
	const struct weir_target_namespace_options spaces[] = { { .uri = first }, { .uri = second } };
	const struct weir_target_subsystem_options subsystem = { .nqn = HOST_SUBSYSTEM,
								 .namespaces = spaces,
								 .namespace_count = 2 };
	struct weir_target_options options = {
		.size = sizeof(options), .subsystems = &subsystem, .subsystem_count = 1, .threads = 1
	};
	struct weir_target *two;

	assert_int_equal(weir_target_create(&options, &two), 0);
	assert_int_equal(weir_target_start(two), 0);
	host_queue(&queue, two, host_admin(&admin, two, 0), 1, 0, 0);
	return two;
}

static void end_two(struct weir_target *two, unsigned stop_ms)
{
	close(queue.socket);
	close(admin.socket);
	weir_target_stop(two, stop_ms);
	weir_target_destroy(two);
}

/* Each namespace that was written to is flushed before a shutdown is said to be complete. */
static void a_shutdown_flushes(void **state)
{
	struct weir_target *two = serve_two("virt:1M?fault=late:op=flush:us=20000", "virt:1M");
	u64 csts;

	(void)state;
	write_to(2);
	write_to(1);
	csts = shut_down(&admin);
	assert_true(csts == SHUTDOWN_OCCURRING || csts == NVME_CSTS_SHUTDOWN_DONE);
	while (csts == SHUTDOWN_OCCURRING)
		csts = csts_of(&admin);
	assert_int_equal(csts, NVME_CSTS_SHUTDOWN_DONE);
	assert_int_equal(commands_of(two), 22); /* a write and a flush each */
	assert_int_equal(shut_down(&admin), NVME_CSTS_SHUTDOWN_DONE);
	assert_int_equal(commands_of(two), 22); /* nothing came in between */
	end_two(two, 10000);
}

/* Nothing waits for a flush that does not end but CSTS; others are served, and the target ends. */
static void a_shutdown_delays_nobody(void **state)
{
	struct weir_target *two = serve_two("virt:1M?fault=stuck:op=flush", "virt:1M");

	(void)state;
	write_to(1);
	assert_int_equal(shut_down(&admin), SHUTDOWN_OCCURRING);
	close(queue.socket);
	host_queue(&queue, two, host_admin(&other, two, 0), 1, 0, 0);
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 1), 512), 0);
	assert_int_equal(csts_of(&admin), SHUTDOWN_OCCURRING);
	assert_int_equal(shut_down(&other), NVME_CSTS_SHUTDOWN_DONE); /* it wrote nothing */
	assert_int_equal(commands_of(two) % 10, 0);
	close(other.socket);
	end_two(two, 100);
}

static void set_cc(u64 cc)
{
	assert_int_equal(host_property(&admin, true, NVME_PROPERTY_CC, 0, cc, NULL), 0);
}

/* Each that was written to before a shutdown is flushed, though that shutdown comes while another one's
 * flushes are under way; and a controller that was reset meanwhile is not one that has shut down. */
static void a_shutdown_in_a_shutdown(void **state)
{
	const u64 enabled = NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16;
	struct weir_target *two =
		serve_two("virt:1M?fault=late:op=flush:us=50000", "virt:1M?fault=late:op=flush:us=50000");
	u64 csts;

	(void)state;
	write_to(1);
	write_to(2);
	(void)shut_down(&admin);
	set_cc(enabled);
	assert_int_equal(csts_of(&admin), 0);
	write_to(1);
	csts = shut_down(&admin);
	while ((csts & NVME_CSTS_SHUTDOWN_MASK) == SHUTDOWN_OCCURRING)
		csts = csts_of(&admin);
	assert_int_equal(csts, NVME_CSTS_SHUTDOWN_DONE);
	assert_int_equal(commands_of(two), 42);
	set_cc(enabled);
	write_to(2);
	(void)shut_down(&admin);
	set_cc(0);
	do
		assert_int_equal(csts_of(&admin), 0);
	while (commands_of(two) != 44);
	assert_int_equal(csts_of(&admin), 0);
	end_two(two, 10000);
}

static void a_flush_that_fails_is_in_csts(void **state)
{
	struct weir_target *two = serve_two("virt:1M?fault=status:op=flush:code=0x280", "virt:1M");
	u64 csts;

	(void)state;
	write_to(1);
	write_to(2);
	csts = shut_down(&admin);
	while ((csts & NVME_CSTS_SHUTDOWN_MASK) == SHUTDOWN_OCCURRING)
		csts = csts_of(&admin);
	assert_int_equal(csts, NVME_CSTS_SHUTDOWN_DONE | NVME_CSTS_FATAL);
	assert_int_equal(commands_of(two), 22);
	end_two(two, 10000);
}

/* A namespace whose storage has failed answers so, and keeps nobody from the other one. */
static void one_failed_namespace_is_not_the_controller(void **state)
{
	const u32 failed = NVME_STATUS_NAMESPACE_NOT_READY | NVME_STATUS_DNR;
	struct weir_target *two = serve_two("virt:1M?fault=fatal:op=write", "virt:1M");
	static const u8 data[512];
	u64 csts;

	(void)state;
	assert_int_equal(host_give(&queue, host_io(&queue, NVME_OPCODE_WRITE, 1, 0, 1), data, 512, true),
			 failed); /* which it fails by */
	assert_int_equal(host_take(&queue, host_io(&queue, NVME_OPCODE_READ, 1, 0, 1), 512), failed);
	assert_int_equal(csts_of(&admin), 0);
	(void)host_admin(&other, two, 0);
	assert_int_equal(csts_of(&other), 0);
	write_to(2);
	csts = shut_down(&admin);
	while ((csts & NVME_CSTS_SHUTDOWN_MASK) == SHUTDOWN_OCCURRING)
		csts = csts_of(&admin);
	assert_int_equal(csts, NVME_CSTS_SHUTDOWN_DONE | NVME_CSTS_FATAL); /* it was not flushed */
	close(other.socket);
	end_two(two, 10000);
}

static void flush_namespace(u32 nsid)
{
	const struct nvme_sqe sqe = host_command(&queue, NVME_OPCODE_FLUSH, nsid);

	host_capsule(&queue, &sqe, NULL, 0);
}

static void all_failed_namespaces_are_the_controller(void **state)
{
	struct weir_target *two = serve_two("virt:1M?fault=fatal", "virt:1M?fault=fatal");

	(void)state;
	flush_namespace(2);
	assert_int_equal(host_response(&queue, NULL), NVME_STATUS_NAMESPACE_NOT_READY | NVME_STATUS_DNR);
	assert_int_equal(csts_of(&admin), 0);
	flush_namespace(1);
	while (!(csts_of(&admin) & NVME_CSTS_FATAL))
		;
	end_two(two, 10000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shutdown_flushes),
		cmocka_unit_test(a_shutdown_delays_nobody),
		cmocka_unit_test(a_shutdown_in_a_shutdown),
		cmocka_unit_test(a_flush_that_fails_is_in_csts),
		cmocka_unit_test(one_failed_namespace_is_not_the_controller),
		cmocka_unit_test(all_failed_namespaces_are_the_controller),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("target_shutdown", tests, NULL, NULL);
}
