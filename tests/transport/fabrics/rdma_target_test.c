/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_target_test.c: hosts of NVMe/RDMA that misbehave, against weir's target: none gets what is not its
 * own, and the next host is served.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "rdma_raw.h"
#include "target/rdma_connection.h"
#include "transport/fabrics/rdma_message.h"

#define NQN "nqn.2026-11.org.example:raw"

enum { BLOCK = 512 };

static struct weir_target *target;
static struct raw raw, queue;
static unsigned port;

static const struct weir_target_namespace_options space = { .uri = "virt:1M?block=512" };
static const struct weir_target_subsystem_options subsystem = { .nqn = NQN,
								.namespaces = &space,
								.namespace_count = 1 };
static const char *const listen_at = "rdma://127.0.0.1:0";
static const struct weir_target_options options = { .size = sizeof(options),
						    .listen = &listen_at,
						    .listen_count = 1,
						    .subsystems = &subsystem,
						    .subsystem_count = 1,
						    .threads = 1 };

static int serve(void **state)
{
	(void)state;
	memset(&fake_verbs, 0, sizeof(fake_verbs));
	if (weir_target_create(&options, &target) != 0)
		return -1;
	port = (unsigned)atoi(strrchr(weir_target_address(target, 0), ':') + 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	weir_target_destroy(target);
	return fake_verbs.live != 0;
}

static struct weir_target_stats stats(void)
{
	struct weir_target_stats now;

	weir_target_stats(target, &now);
	return now;
}

static void come(struct raw *host, uint16_t qid)
{
	raw_open(host, target, port, qid);
	assert_false(host->refused);
}

static uint32_t status(const struct raw *host)
{
	return host->last.dw3 >> 17 & NVME_STATUS_CODE_MASK;
}

/* An admin queue, enabled, and an I/O queue. */
static void open_queues(void)
{
	uint16_t cntlid;

	come(&raw, 0);
	raw_connect(&raw, NQN, 0, NVME_CNTLID_DYNAMIC);
	assert_int_equal(status(&raw), 0);
	cntlid = (uint16_t)raw.last.dw0;
	raw_enable(&raw);
	come(&queue, 1);
	raw_connect(&queue, NQN, 1, cntlid);
	assert_int_equal(status(&queue), 0);
}

static void close_queues(void)
{
	raw_end(&queue);
	raw_end(&raw);
	assert_int_equal(stats().connections, 0);
}

/* Before Connect there is one slot; three capsules come at once, of which the second one has data. */
static void capsules_wait_for_slots(void **state)
{
	const uint32_t refused[] = { NVME_STATUS_COMMAND_SEQUENCE, NVME_STATUS_INVALID_FIELD,
				     NVME_STATUS_COMMAND_SEQUENCE };
	struct nvme_sqe sqe;

	(void)state;
	fake_verbs.late = true;
	come(&raw, 0);
	for (uint32_t i = 0; i < 3; i++) {
		sqe = (struct nvme_sqe){ .cdw0 = NVME_OPCODE_FABRICS | i << 16,
					 .nsid = NVME_FCTYPE_PROPERTY_GET };
		sqe.cdw0 |= NVME_PSDT_SGL;
		memcpy(raw.capsule, &sqe, sizeof(sqe));
		raw_send(&raw, i == 1 ? NVME_CAPSULE_COMMAND_BYTES + BLOCK : NVME_CAPSULE_COMMAND_BYTES);
	}
	raw_settle(&raw);
	assert_int_equal(raw.came, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(raw.responses[i].dw3 & 0xffff, i);
		assert_int_equal(raw.responses[i].dw3 >> 17 & NVME_STATUS_CODE_MASK, refused[i]);
	}
	raw_end(&raw);
}

static void data_goes_both_ways(void **state)
{
	struct nvme_sqe sqe = { .cdw0 = NVME_OPCODE_WRITE, .nsid = 1, .cdw12 = 1 };
	unsigned char wanted[2 * BLOCK];

	(void)state;
	open_queues();
	for (unsigned i = 0; i < sizeof(wanted); i++)
		queue.data[i] = wanted[i] = (unsigned char)(i * 7 + 3);
	raw_command(&queue, &sqe, sizeof(wanted), queue.key);
	raw_settle(&queue);
	assert_int_equal(status(&queue), 0);
	memset(queue.data, 0xee, sizeof(queue.data));
	sqe.cdw0 = NVME_OPCODE_READ;
	raw_command(&queue, &sqe, sizeof(wanted), queue.key);
	raw_settle(&queue);
	assert_memory_equal(queue.data, wanted, sizeof(wanted));
	assert_int_equal(queue.data[sizeof(wanted)], 0xee);
	assert_int_equal(fake_verbs.invalidated, 0);
	((struct nvme_sgl_keyed *)&sqe.prp1)->type = NVME_SGL_KEYED_INVALIDATE;
	memcpy(queue.capsule, &sqe, sizeof(sqe));
	raw_send(&queue, sizeof(sqe));
	raw_settle(&queue);
	assert_int_equal(fake_verbs.invalidated, queue.key); /* it asked for that */
	close_queues();
}

static uint16_t accepted_entries;

static void note_accept(void *data, size_t *bytes)
{
	const struct nvme_rdma_accept *accept = data;

	(void)bytes;
	accepted_entries = accept->crqsize;
}

/* A connection has as many capsules as its host said, and says so. */
static void entries_are_as_the_host_said(void **state)
{
	(void)state;
	fake_verbs.damage_accept = note_accept;
	come(&raw, 0);
	assert_int_equal(accepted_entries, RAW_ENTRIES);
	assert_int_equal(target->servers[0].connections->rdma->count, RAW_ENTRIES);
	raw_end(&raw);
}

/* Data that comes is counted, whichever way; and whatever a host sends shows that it is there. */
static void data_is_counted_and_hosts_are_heard(void **state)
{
	const struct target_counters *counters = &target->servers[0].counters;
	struct nvme_sqe sqe = { .cdw0 = NVME_OPCODE_WRITE, .nsid = 1, .cdw12 = 1 };
	struct nvme_sgl sgl = { .bytes = BLOCK, .type = NVME_SGL_DATA_BLOCK_OFFSET };
	struct target_controller *controller;

	(void)state;
	open_queues();
	controller = target->controllers;
	assert_int_equal(atomic_load(&counters->bytes_in), 0);
	atomic_store(&controller->alive_ms, 1);
	raw_command(&queue, &sqe, 2 * BLOCK, queue.key);
	raw_settle(&queue);
	assert_int_equal(status(&queue), 0);
	assert_int_equal(atomic_load(&counters->bytes_in), 2 * BLOCK);
	assert_true(atomic_load(&controller->alive_ms) > 1);
	sqe = (struct nvme_sqe){ .cdw0 = NVME_OPCODE_WRITE | NVME_PSDT_SGL, .nsid = 1 };
	memcpy(&sqe.prp1, &sgl, sizeof(sgl));
	memcpy(queue.capsule, &sqe, sizeof(sqe));
	raw_send(&queue, NVME_CAPSULE_COMMAND_BYTES + BLOCK);
	raw_settle(&queue);
	assert_int_equal(status(&queue), 0);
	assert_int_equal(atomic_load(&counters->bytes_in), 3 * BLOCK);
	assert_int_equal(atomic_load(&counters->bytes_out), 0);
	sqe = (struct nvme_sqe){ .cdw0 = NVME_OPCODE_READ, .nsid = 1, .cdw12 = 3 };
	raw_command(&queue, &sqe, 4 * BLOCK, queue.key);
	raw_settle(&queue);
	assert_int_equal(atomic_load(&counters->bytes_out), 4 * BLOCK);
	assert_int_equal(atomic_load(&counters->bytes_in), 3 * BLOCK);
	close_queues();
}

/* A slot whose buffer grows has the new one moved, and is not sent what is behind its own data. */
static void a_slot_grows_and_shrinks(void **state)
{
	static const uint32_t sizes[] = { BLOCK, RAW_DATA, 2 * BLOCK, RAW_DATA };
	static unsigned char wanted[RAW_DATA];

	(void)state;
	open_queues();
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct nvme_sqe sqe = { .cdw0 = NVME_OPCODE_WRITE, .nsid = 1, .cdw12 = sizes[i] / BLOCK - 1 };

		for (unsigned at = 0; at < sizes[i]; at++)
			queue.data[at] = wanted[at] = (unsigned char)(at * 7 + at / 256 + i);
		raw_command(&queue, &sqe, sizes[i], queue.key);
		raw_settle(&queue);
		assert_int_equal(status(&queue), 0);
		memset(queue.data, 0xee, sizeof(queue.data));
		sqe.cdw0 = NVME_OPCODE_READ;
		raw_command(&queue, &sqe, sizes[i], queue.key);
		raw_settle(&queue);
		assert_int_equal(status(&queue), 0);
		assert_memory_equal(queue.data, wanted, sizes[i]);
		for (unsigned at = sizes[i]; at < RAW_DATA; at++)
			assert_int_equal(queue.data[at], 0xee);
	}
	assert_int_equal(fake_verbs.bad_accesses, 0);
	close_queues();
}

/* The device refuses it; the connection ends, and no other. */
static void a_wrong_key_ends_its_connection(void **state)
{
	struct nvme_sqe sqe = { .cdw0 = NVME_OPCODE_READ, .nsid = 1 };

	(void)state;
	open_queues();
	raw_command(&queue, &sqe, BLOCK, queue.key + 1000);
	raw_settle(&queue);
	assert_true(queue.ended);
	assert_false(raw.ended);
	assert_int_equal(fake_verbs.bad_accesses, 1);
	assert_int_equal(stats().connections, 1);
	close_queues();
}

static void a_short_capsule_ends_its_connection(void **state)
{
	(void)state;
	come(&raw, 0);
	raw_send(&raw, NVME_CAPSULE_COMMAND_BYTES - 1);
	raw_settle(&raw);
	assert_true(raw.ended);
	assert_int_equal(stats().bad_pdus, 1);
	assert_int_equal(stats().connections, 0);
	raw_end(&raw);
	come(&raw, 0);
	raw_send(&raw, RAW_CAPSULE); /* longer than what it is received in */
	raw_settle(&raw);
	assert_true(raw.ended);
	raw_end(&raw);
}

static void other_descriptors_are_refused(void **state)
{
	struct nvme_sqe sqe = { .cdw0 = NVME_OPCODE_READ | NVME_PSDT_SGL, .nsid = 1 };
	struct nvme_sgl sgl = { .bytes = BLOCK, .type = NVME_SGL_TRANSPORT_DATA_BLOCK };

	(void)state;
	open_queues();
	memcpy(&sqe.prp1, &sgl, sizeof(sgl));
	memcpy(queue.capsule, &sqe, sizeof(sqe));
	raw_send(&queue, sizeof(sqe));
	raw_settle(&queue);
	assert_int_equal(status(&queue), NVME_STATUS_SGL_INVALID_TYPE);
	sqe.cdw0 = NVME_OPCODE_WRITE | NVME_PSDT_SGL; /* in the capsule, which has no data */
	sgl.type = NVME_SGL_DATA_BLOCK_OFFSET;
	memcpy(&sqe.prp1, &sgl, sizeof(sgl));
	memcpy(queue.capsule, &sqe, sizeof(sqe));
	raw_send(&queue, sizeof(sqe));
	raw_settle(&queue);
	assert_int_equal(status(&queue), NVME_STATUS_SGL_INVALID_OFFSET);
	sqe = (struct nvme_sqe){ .cdw0 = NVME_OPCODE_READ, .nsid = 1 };
	raw_command(&queue, &sqe, NVME_RDMA_MOST_BYTES, queue.key); /* more than a command may move */
	raw_settle(&queue);
	assert_int_equal(status(&queue), NVME_STATUS_INVALID_FIELD);
	assert_false(queue.ended);
	assert_int_equal(fake_verbs.bad_accesses, 0);
	close_queues();
}

static void an_admin_queue_ends_the_others(void **state)
{
	(void)state;
	open_queues();
	raw_end(&raw);
	raw_settle(&queue);
	assert_true(queue.ended);
	raw_end(&queue);
	assert_int_equal(stats().connections, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(capsules_wait_for_slots, serve, end),
		cmocka_unit_test_setup_teardown(data_goes_both_ways, serve, end),
		cmocka_unit_test_setup_teardown(a_slot_grows_and_shrinks, serve, end),
		cmocka_unit_test_setup_teardown(entries_are_as_the_host_said, serve, end),
		cmocka_unit_test_setup_teardown(data_is_counted_and_hosts_are_heard, serve, end),
		cmocka_unit_test_setup_teardown(a_wrong_key_ends_its_connection, serve, end),
		cmocka_unit_test_setup_teardown(a_short_capsule_ends_its_connection, serve, end),
		cmocka_unit_test_setup_teardown(other_descriptors_are_refused, serve, end),
		cmocka_unit_test_setup_teardown(an_admin_queue_ends_the_others, serve, end),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("rdma_target", tests, NULL, NULL);
}
