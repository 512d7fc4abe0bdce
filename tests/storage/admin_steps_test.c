/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admin_steps_test.c: what a controller is told and asked while it is brought up, word by word, and how
 * long it has for an
 * answer. Registers and commands are the test's; the clock advances where the library waits.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <nvme/types.h>

#include "storage/admin_command.h"
#include "backend/error.h"
#include "base/timeout.h"

enum { RING = 32, BEHIND = 4096, NAMESPACES = 1024 };

static uint64_t now_ns, still_ns; /* the machine stands still for that long once, with all that is on it */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){ .tv_sec = (time_t)(now_ns / 1000000000),
				   .tv_nsec = (long)(now_ns % 1000000000) };
	return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	now_ns += (uint64_t)time->tv_nsec;
	return 0;
}

int sched_yield(void)
{
	now_ns += 100000 + still_ns;
	still_ns = 0;
	return 0;
}

/**
 * struct controller - the test's
 * @csts_on: CSTS once CC.EN is 1
 * @answers: commands that it still completes
 * @first_namespace: of NAMESPACES in its list
 */
static struct controller {
	uint32_t cc, aqa, csts_on, doorbells[2];
	uint64_t asq, acq;
	unsigned answers, answered, first_namespace;
	struct nvme_sqe had[4]; /* the first commands */
	struct nvme_id_ctrl id;
	struct nvme_id_ns space;
} controller;

/* What the library was given, and a page behind it that is not its own. */
static _Alignas(4096) uint8_t pages[WEIR_ADMIN_MEMORY_BYTES + BEHIND];
static struct weir_transport transport;
static struct weir_admin admin;

static uint64_t read64(struct weir_transport *of, uint32_t offset)
{
	(void)of;
	return offset == NVME_REGISTER_CAP ? 255 | 1 << 24 : 0;
}

static void answer(void)
{
	const struct nvme_sqe *sqe =
		(const struct nvme_sqe *)(const void *)pages + controller.answered % RING;
	struct nvme_cqe *cqe =
		(struct nvme_cqe *)(void *)(pages + NVME_PAGE_BYTES) + controller.answered % RING;
	uint32_t *page = (uint32_t *)(void *)(pages + 2 * NVME_PAGE_BYTES);

	memset(page, 0, NVME_PAGE_BYTES);
	if (controller.answered < 4)
		controller.had[controller.answered] = *sqe;
	if ((sqe->cdw0 & 0xff) == NVME_ADMIN_IDENTIFY && sqe->cdw10 == NVME_CNS_CONTROLLER)
		memcpy(page, &controller.id, sizeof(controller.id));
	if ((sqe->cdw0 & 0xff) == NVME_ADMIN_IDENTIFY && sqe->cdw10 == NVME_CNS_NAMESPACE)
		memcpy(page, &controller.space, sizeof(controller.space));
	for (unsigned i = 0; sqe->cdw10 == NVME_CNS_ACTIVE_NAMESPACES && i < NAMESPACES; i++)
		page[i] = controller.first_namespace + i;
	cqe->dw3 = controller.answered / RING % 2 ? 0 : 1 << 16;
	controller.answered++;
	controller.answers--;
}

static uint32_t read32(struct weir_transport *of, uint32_t offset)
{
	(void)of;
	if (offset == NVME_REGISTER_CC)
		return controller.cc;
	if (controller.answers && controller.doorbells[0] != controller.answered % RING)
		answer();
	return controller.cc & NVME_CC_ENABLE ? controller.csts_on : 0;
}

static void write32(struct weir_transport *of, uint32_t offset, uint32_t value)
{
	(void)of;
	if (offset == NVME_REGISTER_CC)
		controller.cc = value;
	if (offset == NVME_REGISTER_AQA)
		controller.aqa = value;
}

static void write64(struct weir_transport *of, uint32_t offset, uint64_t value)
{
	(void)of;
	*(offset == NVME_REGISTER_ASQ ? &controller.asq : &controller.acq) = value;
}

static uint64_t doorbell(struct weir_transport *of, unsigned index)
{
	(void)of;
	return (uint64_t)(uintptr_t)&controller.doorbells[index];
}

static int bring_up(uint32_t csts)
{
	static const struct weir_transport_ops ops = { .size = sizeof(ops),
						       .read64 = read64,
						       .read32 = read32,
						       .write64 = write64,
						       .write32 = write32,
						       .doorbell = doorbell };

	memset(&controller, 0, sizeof(controller));
	memset(&admin, 0, sizeof(admin));
	controller.csts_on = csts;
	controller.first_namespace = 1;
	controller.space.nsze = 1000;
	controller.space.lbaf[0].ds = 9;
	transport = (struct weir_transport){ .ops = &ops };
	now_ns = 1000000000;
	return weir_admin_enable(&admin, &transport, pages, 0x7000);
}

static int identify(uint32_t nsid, struct weir_namespace *space)
{
	memset(space, 0, sizeof(*space));
	controller.answers = 3;
	return weir_admin_identify(&admin, nsid, false, space);
}

/*
 * Base 2.0, sections 3.1.3.7 to 3.1.3.9 and 3.5.1: sizes are 0's based, and the queues lie where the
 * library says.
 */
static void test_what_registers_are_told(void **state)
{
	(void)state;
	assert_int_equal(bring_up(NVME_CSTS_READY), 0);
	assert_int_equal(controller.aqa, (RING - 1) << 16 | (RING - 1));
	assert_true(controller.asq == 0x7000 && controller.acq == 0x7000 + NVME_PAGE_BYTES);
	assert_int_equal(controller.cc, 4 << 20 | 6 << 16 | 1);
	assert_int_equal(admin.most_entries, 256);
}

static void had(unsigned index, uint32_t opcode, uint64_t prp1, uint32_t cdw10, uint32_t cdw11)
{
	const struct nvme_sqe *sqe = &controller.had[index];

	assert_int_equal(sqe->cdw0 & 0xff, opcode);
	assert_true(sqe->prp1 == prp1);
	assert_int_equal(sqe->cdw10, cdw10);
	assert_int_equal(sqe->cdw11, cdw11);
}

/*
 * Base 2.0, sections 5.4 to 5.7: each submission queue has a completion queue of its own, which is
 * there before and after it.
 */
static void test_queues_come_in_pairs(void **state)
{
	(void)state;
	assert_int_equal(bring_up(NVME_CSTS_READY), 0);
	controller.answers = 4;
	assert_int_equal(weir_admin_create_queue(&admin, 3, 64, 0x20000, 0x30000), 0);
	assert_int_equal(weir_admin_delete_queue(&admin, 3), 0);
	had(0, NVME_ADMIN_CREATE_CQ, 0x30000, 63 << 16 | 3, 1);
	had(1, NVME_ADMIN_CREATE_SQ, 0x20000, 63 << 16 | 3, 3 << 16 | 1);
	had(2, NVME_ADMIN_DELETE_SQ, 0, 3, 0);
	had(3, NVME_ADMIN_DELETE_CQ, 0, 3, 0);
}

/* Base 2.0, section 5.1: the submission queue is the low half. */
static void test_an_abort_names_both(void **state)
{
	bool aborted = false;

	(void)state;
	assert_int_equal(bring_up(NVME_CSTS_READY), 0);
	controller.answers = 1;
	assert_int_equal(weir_admin_abort(&admin, 3, 0xfe12, &aborted), 0);
	assert_true(aborted);
	had(0, NVME_ADMIN_ABORT, 0, 0xfe12u << 16 | 3, 0);
}

/* Registers that read as all ones say "ready", and "fatal", too: nobody is there. */
static void test_all_ones_are_nobody(void **state)
{
	(void)state;
	assert_int_equal(bring_up(UINT32_MAX), -EIO);
	assert_non_null(strstr(weir_last_error(), "controller is gone"));
}

/* A controller has the time that it was given for its start and for a command: no less, and hardly more. */
static void test_time_is_kept(void **state)
{
	static const unsigned times[] = { 20, 100, 700, 30000 };

	(void)state;
	assert_int_equal(bring_up(0), -ETIMEDOUT); /* never ready; CAP.TO 1 is 500 ms */
	assert_in_range(now_ns / 1000000 - 1000, 500, 503);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct weir_namespace space;
		uint64_t waited;

		assert_int_equal(bring_up(NVME_CSTS_READY), 0);
		admin.command_ms = times[i];
		waited = now_ns;
		assert_int_equal(weir_admin_identify(&admin, 0, false, &space), -ETIMEDOUT);
		waited = (now_ns - waited) / 1000000;
		assert_in_range(waited, times[i], times[i] + 3);
	}
}

/* A machine that was suspended gives what remains of a quarter of the time, and the other three. */
static void test_a_machine_that_stood_still(void **state)
{
	struct weir_namespace space;
	uint64_t waited, hour = 3600000000000u;

	(void)state;
	still_ns = hour;
	assert_int_equal(bring_up(0), -ETIMEDOUT);
	assert_in_range((now_ns - hour) / 1000000 - 1000, 375, 378);
	assert_int_equal(bring_up(NVME_CSTS_READY), 0);
	admin.command_ms = 1000;
	still_ns = hour;
	waited = now_ns;
	assert_int_equal(weir_admin_identify(&admin, 0, false, &space), -ETIMEDOUT);
	assert_in_range((now_ns - waited - hour) / 1000000, 750, 753);
}

static void test_volatile_caches(void **state)
{
	struct weir_namespace space;

	(void)state;
	for (unsigned vwc = 0; vwc < 8; vwc++) {
		assert_int_equal(bring_up(NVME_CSTS_READY), 0);
		controller.id.vwc = (uint8_t)vwc;
		assert_int_equal(identify(0, &space), 0);
		assert_int_equal(space.volatile_write_cache, vwc & 1);
	}
}

/*
 * A list of namespaces may fill its page: the last one is found, and what lies behind the page is no
 * namespace.
 */
static void test_a_full_list_of_namespaces(void **state)
{
	struct weir_namespace space;

	(void)state;
	assert_int_equal(bring_up(NVME_CSTS_READY), 0);
	controller.first_namespace = 5;
	assert_int_equal(identify(0, &space), 0);
	assert_int_equal(space.nsid, 5);
	assert_int_equal(identify(5 + NAMESPACES - 1, &space), 0);
	assert_int_equal(space.nsid, 5 + NAMESPACES - 1);
	for (unsigned i = 0; i < BEHIND / 4; i++)
		memcpy(pages + WEIR_ADMIN_MEMORY_BYTES + i * 4, &(uint32_t){ 9000 }, 4);
	assert_int_equal(identify(9000, &space), -ENODEV);
}

/* Base 2.0, figure 280: bits 6:5 of FLBAS count where there are more than 16 formats, and only there. */
static void test_formats_beyond_sixteen(void **state)
{
	static const struct {
		uint8_t flbas, nlbaf, log2;
	} cases[] = {
		{ 0x01, 15, 12 }, { 0x21, 15, 12 }, { 0x61, 15, 12 }, { 0x21, 16, 9 },
		{ 0x61, 63, 9 },  { 0x01, 63, 12 }, { 0x11, 15, 12 },
	};
	struct weir_namespace space;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(bring_up(NVME_CSTS_READY), 0);
		memset(controller.space.lbaf, 0, sizeof(controller.space.lbaf));
		controller.space.lbaf[1].ds = 12;
		controller.space.lbaf[17].ds = 9;
		controller.space.lbaf[49].ds = 9;
		controller.space.flbas = cases[i].flbas;
		controller.space.nlbaf = cases[i].nlbaf;
		assert_int_equal(identify(0, &space), 0);
		assert_int_equal(space.block_log2, cases[i].log2);
	}
}

/* A driver that keeps the controller: what it answers, and what it was given. */
static struct driver {
	int status, finishes, resets;
	unsigned ms, commands;
	uint32_t result;
	struct nvme_sqe had;
} driver;

static int driver_admin(struct weir_transport *of, const struct nvme_sqe *command, unsigned ms,
			uint32_t *result)
{
	(void)of;
	driver.had = *command;
	driver.ms = ms;
	driver.commands++;
	*result = driver.result;
	return driver.status < 0 ? weir_fail(-driver.status, "the driver says no") : driver.status;
}

static int driver_reset(struct weir_transport *of)
{
	(void)of;
	driver.resets++;
	return driver.status < 0 ? weir_fail(-driver.status, "no reset") : 0;
}

static int driver_finish(struct weir_transport *of)
{
	(void)of;
	driver.finishes++;
	return driver.status < 0 ? weir_fail(-driver.status, "not the last") : 0;
}

static const struct weir_transport_ops kept_ops = { .size = sizeof(kept_ops),
						    .read32 = read32,
						    .admin = driver_admin,
						    .reset = driver_reset,
						    .finish = driver_finish };

static void keep(void)
{
	assert_int_equal(bring_up(NVME_CSTS_READY), 0);
	driver = (struct driver){ .result = 0x30005 };
	memset(&admin, 0, sizeof(admin));
	transport = (struct weir_transport){ .ops = &kept_ops, .most_entries = 1024 };
	assert_int_equal(weir_admin_enable(&admin, &transport, pages, 0x7000), 0);
}

/* A controller that another driver keeps is asked by that one: commands have their time and their data, its
 * refusals and errors are told, and it is neither reset nor shut down by registers. */
static void test_a_driver_keeps_the_controller(void **state)
{
	unsigned granted = 0;
	uint32_t result = 0;
	bool aborted = true;

	(void)state;
	keep();
	assert_int_equal(admin.most_entries, 1024);
	admin.command_ms = 321;
	assert_int_equal(weir_admin_queue_count(&admin, 9, &granted), 0);
	assert_true(granted == 9 && !driver.commands); /* it has been asked for */
	assert_int_equal(weir_admin_command(&admin, (struct nvme_sqe){ .cdw0 = 6, .prp1 = (uint64_t)5 << 40 },
					    "Identify", &result),
			 0);
	assert_int_equal(driver.ms, 321);
	assert_true(driver.had.prp1 == (uint64_t)5 << 40 && result == 0x30005);
	assert_int_equal(weir_admin_abort(&admin, 1, 2, &aborted), 0);
	assert_false(aborted); /* bit 0 of the result */
	driver.status = 0x2;
	assert_int_equal(weir_admin_create_queue(&admin, 1, 8, 0x10000, 0x20000), -EIO);
	assert_non_null(strstr(weir_last_error(), "refused admin command Create I/O Completion Queue"));
	driver.status = -ENODEV;
	assert_int_equal(weir_admin_delete_queue(&admin, 1), -ENODEV);
	assert_non_null(strstr(weir_last_error(), "the driver says no"));
	assert_int_equal(weir_admin_stop(&admin), -ENODEV);
	assert_int_equal(weir_admin_disable(&admin), -ENODEV);
	driver.status = 0;
	assert_int_equal(weir_admin_stop(&admin), 0);
	assert_int_equal(weir_admin_disable(&admin), 0);
	assert_true(driver.resets == 2 && driver.finishes == 2);
	assert_true(controller.cc & NVME_CC_ENABLE); /* nobody has touched that */
}

/* What is passed on comes back as it is, status and all; behind a command that got no answer none is sent. */
static void test_commands_that_are_passed_on(void **state)
{
	struct nvme_sqe sqe = { .cdw0 = 0xc1, .cdw10 = 77 };
	uint32_t result = 1;

	(void)state;
	assert_int_equal(bring_up(NVME_CSTS_READY), 0);
	controller.answers = 1;
	assert_int_equal(weir_admin_pass(&admin, &sqe, &result), 0);
	had(0, 0xc1, 0, 77, 0);
	assert_int_equal(result, 0);
	admin.command_ms = 20;
	assert_int_equal(weir_admin_pass(&admin, &sqe, &result), -ETIMEDOUT);
	assert_true(weir_admin_fell_silent(&admin) && !weir_admin_answers(&admin));
	controller.answers = 5;
	controller.doorbells[0] = controller.answered; /* it answers again, and is not asked */
	assert_int_equal(weir_admin_pass(&admin, &sqe, &result), -EIO);
	assert_non_null(strstr(weir_last_error(), "0xc1 is not sent"));
	assert_int_equal(controller.answered, 1);
	assert_int_equal(bring_up(NVME_CSTS_READY), 0);
	controller.csts_on = NVME_CSTS_READY | NVME_CSTS_FATAL;
	assert_int_equal(weir_admin_pass(&admin, &sqe, &result), -EIO);
	assert_non_null(strstr(weir_last_error(), "controller failed"));
	assert_int_equal(controller.doorbells[0], 0);
}

/* A thread is joined until a time of the clock, whose nanoseconds are below a second. */
static void test_times_to_join(void **state)
{
	static const struct {
		uint64_t now_ns, until_ns;
		unsigned ms;
	} rows[] = {
		{ 5999999999, 6000999999, 1 },
		{ 5000000000, 5000000000, 0 },
		{ 5999999999, 7998999999, 1999 },
		{ 5000000001, 5000000001 + (uint64_t)86400000 * 1000000, 86400000 },
		{ ((uint64_t)9 << 32) * 1000000000, ((uint64_t)9 << 32) * 1000000000 + 250000000, 250 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct timespec until;

		now_ns = rows[i].now_ns;
		until = weir_timeout_to_join(rows[i].ms);
		assert_in_range(until.tv_nsec, 0, 999999999);
		assert_true((uint64_t)until.tv_sec * 1000000000 + (uint64_t)until.tv_nsec ==
			    rows[i].until_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_registers_are_told),
		cmocka_unit_test(test_queues_come_in_pairs),
		cmocka_unit_test(test_an_abort_names_both),
		cmocka_unit_test(test_all_ones_are_nobody),
		cmocka_unit_test(test_time_is_kept),
		cmocka_unit_test(test_a_machine_that_stood_still),
		cmocka_unit_test(test_volatile_caches),
		cmocka_unit_test(test_a_full_list_of_namespaces),
		cmocka_unit_test(test_formats_beyond_sixteen),
		cmocka_unit_test(test_a_driver_keeps_the_controller),
		cmocka_unit_test(test_commands_that_are_passed_on),
		cmocka_unit_test(test_times_to_join),
	};

	return cmocka_run_group_tests_name("admin_steps", tests, NULL, NULL);
}
