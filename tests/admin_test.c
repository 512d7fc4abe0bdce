/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admin_test.c: closing a controller that does not answer. Behind the registers is nobody, or who answers up to a certain
 * admin command; what counts is how many commands were sent, and what was written to CC.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include <nvme/types.h>

#include "admin.h"
#include "error.h"

enum { QUEUES = 4, CAP_TIMEOUT_500_MS = 1 << 24, CC_SHUTDOWN_NORMAL = 1 << 14 };

/**
 * struct rig - a transport with next to nothing behind it
 * @csts: what CSTS reads as, but for the shutdown status; READY and 0 follow CC.EN where @follows
 * @answers: so many more admin commands are completed
 * @shuts: a shutdown comes to its end
 * @entry_us: RTD3 Entry Latency
 * @shutdowns: how often one was asked for
 */
struct rig {
	struct weir_transport transport;
	struct weir_admin admin;
	uint32_t csts, cc;
	bool follows, shuts;
	unsigned answers, answered, shutdowns;
	uint32_t entry_us;
	uint32_t doorbell[2];
};

static _Alignas(4096) uint8_t pages[WEIR_ADMIN_MEMORY_BYTES];

static struct rig *rig_of(struct weir_transport *transport)
{
	return (struct rig *)(void *)transport;
}

static uint64_t read64(struct weir_transport *transport, uint32_t offset)
{
	(void)transport, (void)offset;
	return 255 | CAP_TIMEOUT_500_MS;
}

static void answer(struct rig *rig)
{
	struct nvme_cqe *cqe = (struct nvme_cqe *)(void *)(pages + NVME_PAGE_BYTES) + rig->answered;
	struct nvme_id_ctrl *id = (void *)(pages + 2 * NVME_PAGE_BYTES);

	assert_true(rig->answered < 32); /* one pass */
	memset(id, 0, sizeof(*id));
	memcpy(&id->rtd3e, &rig->entry_us, sizeof(id->rtd3e));
	cqe->dw3 = 1 << 16;
	rig->answered++;
	rig->answers--;
}

static uint32_t read32(struct weir_transport *transport, uint32_t offset)
{
	struct rig *rig = rig_of(transport);

	if (offset == NVME_REGISTER_CC)
		return rig->cc;
	if (rig->answers && rig->doorbell[0] != rig->answered)
		answer(rig);
	return rig->csts | (rig->shuts && (rig->cc & NVME_CC_SHUTDOWN_MASK) ? NVME_CSTS_SHUTDOWN_DONE : 0);
}

static void write32(struct weir_transport *transport, uint32_t offset, uint32_t value)
{
	struct rig *rig = rig_of(transport);

	if (offset != NVME_REGISTER_CC)
		return;
	rig->cc = value;
	rig->shutdowns += (value & NVME_CC_SHUTDOWN_MASK) == CC_SHUTDOWN_NORMAL;
	if (rig->follows)
		rig->csts = value & NVME_CC_ENABLE ? NVME_CSTS_READY : 0;
}

static void write64(struct weir_transport *transport, uint32_t offset, uint64_t value)
{
	(void)transport, (void)offset, (void)value;
}

static uint64_t doorbell(struct weir_transport *transport, unsigned index)
{
	return (uint64_t)(uintptr_t)&rig_of(transport)->doorbell[index];
}

static const struct weir_transport_ops ops = {
	.size = sizeof(ops), .read64 = read64, .read32 = read32, .write64 = write64, .write32 = write32, .doorbell = doorbell,
};

/* A controller that was brought up. */
static void open_rig(struct rig *rig)
{
	*rig = (struct rig){ .transport = { .ops = &ops }, .follows = true, .shuts = true };
	memset(pages, 0, sizeof(pages));
	assert_int_equal(weir_admin_enable(&rig->admin, &rig->transport, pages, 4096), 0);
	rig->admin.command_ms = 20;
	rig->admin.shutdown_ms = 20;
}

/* As a storage is closed. Return: how many admin commands it sent. */
static unsigned close_rig(struct rig *rig)
{
	unsigned sent = rig->doorbell[0];

	for (unsigned i = QUEUES; i > 0; i--)
		(void)weir_admin_delete_queue(&rig->admin, i);
	weir_admin_disable(&rig->admin);
	return rig->doorbell[0] - sent;
}

static void test_all_is_well(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.answers = 2 * QUEUES;
	assert_int_equal(close_rig(&rig), 2 * QUEUES);
	assert_int_equal(rig.shutdowns, 1);
	assert_int_equal(rig.cc, 0);
}

/* What lets one command down is asked for nothing more, a shutdown included. */
static void test_no_answer(void **state)
{
	struct rig rig;

	(void)state;
	for (unsigned answers = 0; answers < 2 * QUEUES; answers++) {
		open_rig(&rig);
		rig.answers = answers;
		assert_int_equal(close_rig(&rig), answers + 1);
		assert_int_equal(rig.shutdowns, 0);
		assert_int_equal(rig.cc, 0);
	}
}

/* What CSTS says is enough. */
static void test_registers_tell(void **state)
{
	static const uint32_t values[] = { 0, NVME_CSTS_FATAL, NVME_CSTS_READY | NVME_CSTS_FATAL, UINT32_MAX };
	static const char *const says[] = { "reset by somebody else", "failed", "failed", "failed" };
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		open_rig(&rig);
		rig.follows = false;
		rig.csts = values[i];
		assert_int_not_equal(weir_admin_delete_queue(&rig.admin, 1), 0);
		assert_non_null(strstr(weir_last_error(), says[i]));
		assert_int_equal(close_rig(&rig), 0);
		assert_int_equal(rig.doorbell[0], 0);
		assert_int_equal(rig.shutdowns, 0);
		assert_int_equal(rig.cc, 0);
	}
}

/* A shutdown that has no end is not waited for as long as for CAP.TO. */
static void test_shutdown_without_end(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.answers = 2 * QUEUES;
	rig.shuts = false;
	rig.admin.timeout_ms = 1000000;
	assert_int_equal(close_rig(&rig), 2 * QUEUES);
	assert_int_equal(rig.shutdowns, 1);
	assert_int_equal(rig.cc, 0);
}

/* Enabled again it is listened to again; the time for its shutdown is what Identify said. */
static void test_again(void **state)
{
	static const uint32_t entry_us[] = { 0, 100000, 8000000, UINT32_MAX };
	static const unsigned expected_ms[] = { 5000, 5000, 16000, 60000 };

	(void)state;
	for (size_t i = 0; i < sizeof(entry_us) / sizeof(*entry_us); i++) {
		struct weir_namespace space;
		unsigned granted;
		struct rig rig;

		open_rig(&rig);
		rig.entry_us = entry_us[i];
		rig.answers = 2; /* Identify Controller and the list of namespaces, of which there are none */
		assert_int_not_equal(weir_admin_identify(&rig.admin, 0, &space), 0);
		assert_int_not_equal(weir_admin_queue_count(&rig.admin, 1, &granted), 0);
		assert_false(weir_admin_answers(&rig.admin));
		rig.answered = rig.doorbell[0] = 0;
		assert_int_equal(weir_admin_enable(&rig.admin, &rig.transport, pages, 4096), 0);
		assert_true(weir_admin_answers(&rig.admin));
		assert_int_equal(rig.admin.shutdown_ms, expected_ms[i]);
		rig.answers = 1;
		assert_int_equal(weir_admin_queue_count(&rig.admin, 1, &granted), 0);
	}
}

/* Both doorbells of the admin queue are written to the shadow, and rung all the same; a reset forgets it. */
static void test_shadow(void **state)
{
	static _Alignas(4096) uint8_t shadow[WEIR_ADMIN_SHADOW_BYTES];
	const uint32_t *tail = (const uint32_t *)(void *)shadow, *head = (const uint32_t *)(void *)(shadow + 8);
	struct rig rig;
	const struct nvme_sqe *sqe = (const struct nvme_sqe *)(void *)pages;
	unsigned granted;

	(void)state;
	open_rig(&rig);
	rig.transport.doorbell_bytes = 8;
	memset(shadow, 0x55, sizeof(shadow));
	assert_int_not_equal(weir_admin_shadow(&rig.admin, shadow, 0x10000), 0); /* no answer */
	assert_null(rig.admin.shadow);
	rig.answered = rig.doorbell[0] = 0;
	assert_int_equal(weir_admin_enable(&rig.admin, &rig.transport, pages, 4096), 0);
	memset(shadow, 0x55, sizeof(shadow));
	rig.answers = 2;
	assert_int_equal(weir_admin_shadow(&rig.admin, shadow, 0x10000), 0);
	assert_int_equal(sqe->cdw0 & 0xff, NVME_ADMIN_DOORBELL_BUFFER_CONFIG);
	assert_int_equal(sqe->prp1, 0x10000);
	assert_int_equal(sqe->prp2, 0x11000);
	for (size_t i = 0; i < sizeof(shadow); i++)
		assert_int_equal(shadow[i], 0);
	assert_int_equal(weir_admin_queue_count(&rig.admin, 1, &granted), 0);
	assert_int_equal(*tail, 2);
	assert_int_equal(*head, 2);
	assert_int_equal(rig.doorbell[0], 2);
	assert_int_equal(rig.doorbell[1], 2);
	assert_int_equal(weir_admin_enable(&rig.admin, &rig.transport, pages, 4096), 0);
	assert_null(rig.admin.shadow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_is_well),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_registers_tell),
		cmocka_unit_test(test_shutdown_without_end),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_shadow),
	};

	return cmocka_run_group_tests_name("admin", tests, NULL, NULL);
}
