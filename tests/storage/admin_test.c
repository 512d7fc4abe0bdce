/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admin_test.c: closing a controller that does not answer. Behind the registers is nobody, or who answers up
 * to a certain admin command; what counts is how many commands were sent, and what was written to CC.
 */
#include "admin_cases.h"

#include <errno.h>
#include <string.h>

#include "backend/error.h"

_Alignas(4096) uint8_t pages[WEIR_ADMIN_MEMORY_BYTES];

static struct rig *rig_of(struct weir_transport *transport)
{
	return (struct rig *)(void *)transport;
}

static uint64_t read64(struct weir_transport *transport, uint32_t offset)
{
	(void)offset;
	return rig_of(transport)->cap;
}

static void answer(struct rig *rig)
{
	const struct nvme_sqe *sqe = (const struct nvme_sqe *)(const void *)pages + rig->answered % RING;
	struct nvme_cqe *cqe = (struct nvme_cqe *)(void *)(pages + NVME_PAGE_BYTES) + rig->answered % RING;
	struct nvme_id_ctrl *id = (void *)(pages + 2 * NVME_PAGE_BYTES);
	uint32_t status = rig->answered < COMMANDS ? rig->statuses[rig->answered] : 0;

	memset(id, 0, sizeof(*id));
	memcpy(&id->rtd3e, &rig->entry_us, sizeof(id->rtd3e));
	if (rig->fill)
		rig->fill(rig, sqe, id);
	cqe->dw0 = rig->answered < COMMANDS ? rig->results[rig->answered] : 0;
	cqe->dw3 = status << 17 | (rig->answered / RING % 2 ? 0 : 1 << 16);
	rig->answered++;
	rig->answers--;
}

static uint32_t read32(struct weir_transport *transport, uint32_t offset)
{
	struct rig *rig = rig_of(transport);

	if (offset == NVME_REGISTER_CC)
		return rig->cc;
	if (rig->stop_reads && !(rig->cc & NVME_CC_ENABLE) && --rig->stop_reads == 0)
		rig->csts = 0;
	if (rig->answers && rig->doorbell[0] != rig->answered % RING)
		answer(rig);
	if (!rig->shuts || !(rig->cc & NVME_CC_SHUTDOWN_MASK))
		return rig->csts;
	if (rig->shut_reads)
		return rig->shut_reads--, rig->csts;
	return (rig->shut_unready ? 0 : rig->csts) | NVME_CSTS_SHUTDOWN_DONE |
	       (rig->shut_fails ? NVME_CSTS_FATAL : 0);
}

static void write32(struct weir_transport *transport, uint32_t offset, uint32_t value)
{
	struct rig *rig = rig_of(transport);

	if (offset != NVME_REGISTER_CC)
		return;
	rig->cut_short += !(value & NVME_CC_ENABLE) && (rig->cc & NVME_CC_SHUTDOWN_MASK) && rig->shut_reads;
	rig->cc = value;
	rig->shutdowns += (value & NVME_CC_SHUTDOWN_MASK) == CC_SHUTDOWN_NORMAL;
	if (rig->follows && (value & NVME_CC_ENABLE || !rig->stop_reads))
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
	.size = sizeof(ops),
	.read64 = read64,
	.read32 = read32,
	.write64 = write64,
	.write32 = write32,
	.doorbell = doorbell,
};

/* A controller that was brought up. */
void open_rig(struct rig *rig)
{
	*rig = (struct rig){
		.transport = { .ops = &ops }, .follows = true, .shuts = true, .cap = 255 | CAP_TIMEOUT_500_MS
	};
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
static void test_registers_report(void **state)
{
	static const uint32_t values[] = { 0, NVME_CSTS_FATAL, NVME_CSTS_READY | NVME_CSTS_FATAL,
					   UINT32_MAX };
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

/* A shutdown that ended, and did not make all durable, is an error, though it was answered in time. */
static void test_shutdown_that_fails(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	assert_int_equal(weir_admin_disable(&rig.admin), 0);
	for (unsigned unready = 0; unready < 2; unready++) { /* some are not ready any more by then */
		open_rig(&rig);
		rig.shut_fails = true;
		rig.shut_unready = unready;
		assert_int_equal(weir_admin_disable(&rig.admin), -EIO);
		assert_non_null(strstr(weir_last_error(), "fatal status"));
		assert_non_null(strstr(weir_last_error(), "its shutdown"));
		assert_int_equal(rig.shutdowns, 1);
		assert_int_equal(rig.cc, 0);
	}
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
		assert_int_not_equal(weir_admin_identify(&rig.admin, 0, false, &space), 0);
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
	const uint32_t *tail = (const uint32_t *)(void *)shadow,
		       *head = (const uint32_t *)(void *)(shadow + 8);
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

/* The controller is switched off when its shutdown has ended, and not before. */
static void test_shutdown_is_awaited(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.answers = 2 * QUEUES;
	rig.shut_reads = 20;
	rig.admin.shutdown_ms = 60000;
	assert_int_equal(close_rig(&rig), 2 * QUEUES);
	assert_int_equal(rig.shutdowns, 1);
	assert_int_equal(rig.cut_short, 0);
	assert_int_equal(rig.shut_reads, 0);
	assert_int_equal(rig.cc, 0);
}

/* Round the ring, and once more: the phase turns each time. */
static void test_many_commands(void **state)
{
	unsigned granted;
	struct rig rig;

	(void)state;
	open_rig(&rig);
	for (unsigned i = 1; i <= 5 * RING; i++) {
		rig.answers = 1;
		assert_int_equal(weir_admin_queue_count(&rig.admin, 1, &granted), 0);
		assert_int_equal(rig.answered, i);
		assert_int_equal(rig.doorbell[1], i % RING);
	}
}

/* How long to wait follows from CAP, and for commands is ten seconds. */
static void test_times(void **state)
{
	static const unsigned steps[] = { 0, 1, 20, 255 }, expected_ms[] = { 500, 500, 10000, 127500 };
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		open_rig(&rig);
		rig.cap = 63 | (uint64_t)steps[i] << 24;
		assert_int_equal(weir_admin_enable(&rig.admin, &rig.transport, pages, 4096), 0);
		assert_int_equal(rig.admin.timeout_ms, expected_ms[i]);
		assert_int_equal(rig.admin.command_ms, 10000);
		assert_int_equal(rig.admin.most_entries, 64);
	}
}

static void test_capabilities(void **state)
{
	static const struct {
		uint64_t cap;
		int error;
		const char *says;
	} rows[] = {
		{ CAP_TIMEOUT_500_MS, EIO, "its queues have one entry (CAP.MQES 0)" },
		{ UINT64_MAX, EIO, "all ones" },
		{ 0, EIO, "registers read as zeros" },
		{ (uint64_t)1 << 48 | 63, ENOTSUP, "CAP.MPSMIN 1" },
		{ (uint64_t)8 << 48 | 63, ENOTSUP, "CAP.MPSMIN 8" },
		{ (uint64_t)1 << 52 | 63, 0, "" }, /* MPSMAX */
		{ (uint64_t)0x80 << 37 | 63, ENOTSUP, "NVM command set" },
		{ (uint64_t)0x41 << 37 | 63, 0, "" },
	};
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		open_rig(&rig);
		rig.cap = rows[i].cap;
		assert_int_equal(weir_admin_enable(&rig.admin, &rig.transport, pages, 4096), -rows[i].error);
		if (rows[i].error)
			assert_non_null(strstr(weir_last_error(), rows[i].says));
	}
}

/* A controller that fails while it starts or stops says so at once; nobody waits for CAP.TO. */
static void test_fatal_while_starting(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.follows = false;
	rig.csts = NVME_CSTS_FATAL;
	assert_int_equal(weir_admin_enable(&rig.admin, &rig.transport, pages, 4096), -EIO);
	assert_non_null(strstr(weir_last_error(), "fatal status"));
	assert_non_null(strstr(weir_last_error(), "its start"));
	rig.csts = NVME_CSTS_READY | NVME_CSTS_FATAL;
	assert_int_equal(weir_admin_stop(&rig.admin), -EIO);
	assert_non_null(strstr(weir_last_error(), "its reset"));
}

/* What failed before somebody opens it is reset, and says that it failed until it has stopped. */
static void test_fatal_before(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.csts = NVME_CSTS_READY | NVME_CSTS_FATAL;
	rig.stop_reads = 3;
	assert_int_equal(weir_admin_enable(&rig.admin, &rig.transport, pages, 4096), 0);
	assert_int_equal(rig.stop_reads, 0);
	assert_int_equal(rig.csts, NVME_CSTS_READY);
	rig.csts = NVME_CSTS_READY | NVME_CSTS_FATAL;
	rig.stop_reads = UINT32_MAX; /* but not for longer than CAP.TO */
	assert_int_equal(weir_admin_enable(&rig.admin, &rig.transport, pages, 4096), -ETIMEDOUT);
	assert_non_null(strstr(weir_last_error(), "its reset"));
}

/* As many pairs as there are of the scarcer kind, and no more than were asked for. */
static void test_queue_counts(void **state)
{
	static const unsigned rows[][4] = {
		/* wanted; granted of both kinds, zero based; what comes of it */
		{ 8, 7, 7, 8 },   { 8, 7, 2, 3 },  { 8, 2, 7, 3 },
		{ 4, 63, 63, 4 }, { 4, 63, 1, 2 }, { 1, 0, 0, 1 },
	};
	struct rig rig;
	unsigned granted;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		open_rig(&rig);
		rig.answers = 1;
		rig.results[0] = rows[i][1] | rows[i][2] << 16;
		assert_int_equal(weir_admin_queue_count(&rig.admin, rows[i][0], &granted), 0);
		assert_int_equal(granted, rows[i][3]);
	}
}

/* What the first of two commands says is not lost in what the second one would; statuses of every type are
 * refusals. */
static void test_refusals(void **state)
{
	static const uint32_t statuses[] = { 0x1, 0x100, 0x101, 0x200, 0x4001, 0x4100 };
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
		for (unsigned which = 0; which < 2; which++) {
			open_rig(&rig);
			rig.answers = 2;
			rig.statuses[which] = statuses[i];
			assert_int_equal(weir_admin_create_queue(&rig.admin, 1, 8, 0x10000, 0x20000), -EIO);
			assert_non_null(strstr(weir_last_error(),
					       which ? "Create I/O Submission" : "Create I/O Completion"));
			assert_int_equal(rig.answered, 1 + which);
			open_rig(&rig);
			rig.answers = 2;
			rig.statuses[which] = statuses[i];
			assert_int_equal(weir_admin_delete_queue(&rig.admin, 1), -EIO);
			assert_non_null(strstr(weir_last_error(),
					       which ? "Delete I/O Completion" : "Delete I/O Submission"));
			assert_int_equal(rig.answered, 1 + which);
		}
	}
}

static void test_abort(void **state)
{
	bool aborted;
	struct rig rig;

	(void)state;
	open_rig(&rig);
	rig.answers = 3;
	rig.results[1] = 1;
	rig.statuses[2] = 0x3;
	assert_int_equal(weir_admin_abort(&rig.admin, 2, 0x55, &aborted), 0);
	assert_true(aborted);
	assert_int_equal(((const struct nvme_sqe *)(const void *)pages)->cdw10, 0x550002);
	assert_int_equal(weir_admin_abort(&rig.admin, 2, 0x55, &aborted), 0);
	assert_false(aborted);
	assert_int_equal(weir_admin_abort(&rig.admin, 2, 0x55, &aborted), -EIO);
	assert_false(aborted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_is_well),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_registers_report),
		cmocka_unit_test(test_shutdown_without_end),
		cmocka_unit_test(test_shutdown_that_fails),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_shadow),
		cmocka_unit_test(test_shutdown_is_awaited),
		cmocka_unit_test(test_many_commands),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_capabilities),
		cmocka_unit_test(test_fatal_while_starting),
		cmocka_unit_test(test_fatal_before),
		cmocka_unit_test(test_queue_counts),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_default_namespace),
		cmocka_unit_test(test_command_sets),
		cmocka_unit_test(test_transfer_limits),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_capacities),
		cmocka_unit_test(test_hostile_names),
	};

	return cmocka_run_group_tests_name("admin", tests, NULL, NULL);
}
