/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * storage_steps_test.c: what a storage asks of its transport and of the controller behind it while it is
 * opened and closed, and what it makes of the answers. Both are the test's; no block is ever read.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nvme/types.h>

#include "device/context.h"
#include "storage/admin.h"
#include "transport/transport.h"

enum { RING = 32, MOST_COMMANDS = 128, PAIRS = 3, DOORBELLS = 2, INTERNAL_ERROR = 6 };

int __wrap_weir_transport_open(struct weir_transport_request *request, struct weir_transport **out);

/**
 * struct controller - the test's
 * @cap: its capabilities
 * @granted: queue pairs that it grants
 * @fails: number of the admin command that it refuses, from 1; 0: none
 * @shut_fails: it ends its shutdown, and says that it failed
 * @changed: what was written is not durable
 * @behavior: what it was told that the host knows of retry delays
 * @commands: those that it was sent, @count of them
 * @shutdowns: orderly ones
 */
static struct controller {
	struct weir_transport transport;
	uint64_t cap, asq, acq;
	uint32_t cc, csts, doorbells[DOORBELLS];
	unsigned granted, fails;
	bool shut_fails, changed;
	uint8_t behavior;
	struct nvme_id_ctrl id;
	struct nvme_id_ns space;
	struct nvme_sqe commands[MOST_COMMANDS];
	unsigned count, shutdowns, open, closes;
	struct weir_transport_request asked;
} controller;

static struct weir_context *context;

/* Data of the command, which lie where lanes have memory. */
static void fill(const struct nvme_sqe *sqe)
{
	char *page = (char *)(uintptr_t)sqe->prp1;

	memset(page, 0, NVME_PAGE_BYTES);
	if (sqe->cdw10 == NVME_CNS_CONTROLLER)
		memcpy(page, &controller.id, sizeof(controller.id));
	else if (sqe->cdw10 == NVME_CNS_NAMESPACE)
		memcpy(page, &controller.space, sizeof(controller.space));
	else
		memcpy(page, &(uint32_t){ 1 }, sizeof(uint32_t));
}

static void answer(void)
{
	struct nvme_sqe *sqe = (struct nvme_sqe *)(uintptr_t)controller.asq + controller.count % RING;
	struct nvme_cqe *cqe = (struct nvme_cqe *)(uintptr_t)controller.acq + controller.count % RING;
	bool good = controller.count + 1 != controller.fails;

	assert_true(controller.count < MOST_COMMANDS);
	controller.commands[controller.count] = *sqe;
	if (good && (sqe->cdw0 & 0xff) == NVME_ADMIN_IDENTIFY)
		fill(sqe);
	if ((sqe->cdw0 & 0xff) == NVME_ADMIN_SET_FEATURES && sqe->cdw10 == NVME_FEATURE_HOST_BEHAVIOR)
		controller.behavior = *(const uint8_t *)(uintptr_t)sqe->prp1;
	cqe->dw0 = (controller.granted - 1) << 16 | (controller.granted - 1);
	cqe->dw3 = (good ? 0 : INTERNAL_ERROR << 17) | (controller.count / RING % 2 ? 0 : 1 << 16);
	controller.count++;
}

static uint64_t read64(struct weir_transport *transport, uint32_t offset)
{
	(void)transport;
	return offset == NVME_REGISTER_CAP ? controller.cap : 0;
}

static uint32_t read32(struct weir_transport *transport, uint32_t offset)
{
	(void)transport;
	if (offset == NVME_REGISTER_CC)
		return controller.cc;
	if (controller.doorbells[0] != controller.count % RING)
		answer();
	return controller.csts;
}

static void write32(struct weir_transport *transport, uint32_t offset, uint32_t value)
{
	(void)transport;
	if (offset != NVME_REGISTER_CC)
		return;
	controller.cc = value;
	controller.csts = value & NVME_CC_ENABLE ? NVME_CSTS_READY : 0;
	if (value & NVME_CC_SHUTDOWN_MASK) {
		controller.shutdowns++;
		controller.csts |= NVME_CSTS_SHUTDOWN_DONE | (controller.shut_fails ? NVME_CSTS_FATAL : 0);
	}
}

static void write64(struct weir_transport *transport, uint32_t offset, uint64_t value)
{
	(void)transport;
	*(offset == NVME_REGISTER_ASQ ? &controller.asq : &controller.acq) = value;
}

static uint64_t doorbell(struct weir_transport *transport, unsigned index)
{
	(void)transport;
	assert_true(index < DOORBELLS);
	return WEIR_ADDR(&controller.doorbells[index]);
}

static void stats(struct weir_transport *transport, struct weir_transport_stats *out)
{
	(void)transport;
	out->changed = controller.changed;
}

static const char *path(struct weir_transport *transport)
{
	(void)transport;
	return "by the test";
}

static void close_transport(struct weir_transport *transport)
{
	assert_ptr_equal(transport, &controller.transport);
	controller.open--;
	controller.closes++;
}

static const struct weir_transport_ops ops = { .size = sizeof(ops),
					       .read64 = read64,
					       .read32 = read32,
					       .write64 = write64,
					       .write32 = write32,
					       .doorbell = doorbell,
					       .stats = stats,
					       .path = path,
					       .close = close_transport };

int __wrap_weir_transport_open(struct weir_transport_request *request, struct weir_transport **out)
{
	controller.asked = *request;
	controller.open++;
	*out = &controller.transport;
	return 0;
}

/* One that has what any storage needs: 256 entries, and blocks of 512 bytes. */
static void begin(void)
{
	controller = (struct controller){ .cap = 255 | 1 << 24, .granted = PAIRS };
	controller.transport = (struct weir_transport){ .ops = &ops, .doorbell_bytes = 4 };
	controller.space.nsze = 1000;
	controller.space.lbaf[0].ds = 9;
}

#define open_storage(...)                                                                                    \
	weir_storage_open(context, "steps:it", WEIR_OPTIONS(storage, .queues = PAIRS, __VA_ARGS__), &storage)

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static void says(int result, int error, const char *words)
{
	assert_int_equal(result, error);
	if (!strstr(weir_last_error(), words))
		fail_msg("\"%s\" does not say \"%s\"", weir_last_error(), words);
}

static uint64_t memory_bytes(void)
{
	uint64_t bytes = 0;

	for (const struct weir_memory_block *block = context->memory; block; block = block->next)
		bytes += block->bytes;
	return bytes;
}

/* How many commands with @opcode it was sent; of their queue pair @id, or of any (0). */
static unsigned sent(uint32_t opcode, uint32_t id)
{
	unsigned count = 0;

	for (unsigned i = 0; i < controller.count; i++)
		count += (controller.commands[i].cdw0 & 0xff) == opcode &&
			 (!id || (controller.commands[i].cdw10 & 0xffff) == id);
	return count;
}

/* A queue pair is as deep as was asked for; as the controller takes, if nothing was. */
static void test_depths(void **state)
{
	static const struct {
		uint32_t most, asked, depth; /* 0: refused */
	} rows[] = { { 256, 0, 256 }, { 4096, 0, 256 }, { 255, 0, 128 }, { 64, 0, 64 },
		     { 2, 0, 2 },     { 64, 64, 64 },   { 64, 128, 0 },  { 63, 64, 0 } };
	struct weir_storage *storage;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		controller.cap = (rows[i].most - 1) | 1 << 24;
		if (!rows[i].depth) {
			says(open_storage(.depth = rows[i].asked), -EINVAL, "but the controller takes 6");
			assert_int_equal(sent(NVME_ADMIN_CREATE_CQ, 0), 0);
			continue;
		}
		must(open_storage(.depth = rows[i].asked));
		assert_int_equal(storage->depth, rows[i].depth);
		for (unsigned k = 0; k < controller.count; k++)
			if ((controller.commands[k].cdw0 & 0xff) == NVME_ADMIN_CREATE_SQ)
				assert_int_equal(controller.commands[k].cdw10 >> 16, rows[i].depth - 1);
		must(weir_storage_close(storage));
	}
}

/* As many pairs are created as were granted, and all of them deleted before the controller is shut down. */
static void test_queue_pairs_come_and_go(void **state)
{
	static const struct {
		unsigned granted, most, pairs;
	} rows[] = { { 3, 0, 3 }, { 2, 0, 2 }, { 1, 0, 1 }, { 5, 0, 3 }, { 3, 2, 2 }, { 1, 2, 1 } };
	struct weir_storage *storage;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		controller.granted = rows[i].granted;
		controller.transport.most_queues = rows[i].most;
		must(open_storage(.depth = 16));
		assert_int_equal(controller.asked.queues, PAIRS);
		assert_int_equal(controller.asked.depth, 16);
		assert_int_equal(storage->disk.queue_count, rows[i].pairs);
		assert_int_equal(sent(NVME_ADMIN_CREATE_CQ, 0), rows[i].pairs);
		assert_int_equal(sent(NVME_ADMIN_DELETE_SQ, 0), 0);
		must(weir_storage_close(storage));
		for (uint32_t id = 1; id <= PAIRS + 1; id++) {
			assert_int_equal(sent(NVME_ADMIN_CREATE_CQ, id), id <= rows[i].pairs);
			assert_int_equal(sent(NVME_ADMIN_CREATE_SQ, id), id <= rows[i].pairs);
			assert_int_equal(sent(NVME_ADMIN_DELETE_SQ, id), id <= rows[i].pairs);
			assert_int_equal(sent(NVME_ADMIN_DELETE_CQ, id), id <= rows[i].pairs);
		}
		assert_int_equal(controller.shutdowns, 1);
		assert_int_equal(controller.cc, 0);
		assert_true(controller.closes == 1 && controller.open == 0);
	}
}

/* As many as there are workers, unless something is said; where lanes move the data, and need memory for that
 * in each, sixteen at most, unless more are asked for. */
static void test_how_many_queue_pairs(void **state)
{
	static const struct {
		enum weir_mover mover;
		uint32_t workers, asked, pairs;
	} rows[] = {
		{ WEIR_MOVER_DIRECT, 20, 0, 20 }, { WEIR_MOVER_PULL, 20, 0, 16 },
		{ WEIR_MOVER_PULL, 20, 20, 20 },  { WEIR_MOVER_DIRECT, 2, 0, 4 },
		{ WEIR_MOVER_PULL, 2, 0, 4 },     { WEIR_MOVER_AUTO, 20, 2, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_storage *storage;
		struct weir_context *own;

		begin();
		controller.granted = 64;
		controller.transport.mover = rows[i].mover;
		must(weir_context_open(
			"cpu", WEIR_OPTIONS(context, .workers = rows[i].workers, .resident_lanes = 1), &own));
		must(weir_storage_open(own, "steps:it",
				       WEIR_OPTIONS(storage, .queues = rows[i].asked, .depth = 2), &storage));
		assert_int_equal(storage->disk.queue_count, rows[i].pairs);
		assert_int_equal(sent(NVME_ADMIN_CREATE_SQ, 0), rows[i].pairs);
		assert_int_equal(storage->pull, rows[i].mover == WEIR_MOVER_PULL);
		must(weir_context_close(own));
	}
}

/* What the controller and its namespace are is what lanes are told. */
static void test_what_lanes_are_told(void **state)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	struct weir_storage *storage;
	struct weir_disk disk;

	(void)state;
	for (unsigned protected = 0; protected < 2; protected ++) {
		begin();
		controller.id.mdts = 1;
		controller.id.crdt1 = 0x1111;
		controller.id.crdt2 = 0x2222;
		controller.id.crdt3 = 0x3333;
		controller.space.nsze = ((uint64_t)1 << 40) + 7;
		controller.space.nsattr = (uint8_t) protected;
		controller.fails = protected ? 2 : 0; /* it does not know of hosts that know of delays */
		must(open_storage(.depth = 16, .retries = 1 + 4, .timeout_us = 5000000000));
		assert_int_equal(sent(NVME_ADMIN_SET_FEATURES, NVME_FEATURE_HOST_BEHAVIOR), 1);
		assert_int_equal(controller.behavior, 1);
		must(weir_storage_disk(storage, &disk));
		assert_true(disk.blocks == ((uint64_t)1 << 40) + 7);
		assert_int_equal(disk.block_log2, 9);
		assert_int_equal(disk.max_blocks, 16);
		assert_true(disk.retry ==
			    (4 | (uint64_t)0x1111 << 16 | (uint64_t)0x2222 << 32 | (uint64_t)0x3333 << 48));
		assert_true(disk.timeout_ns == 5000000000000);
		assert_int_equal(disk.flags & WEIR_DISK_READ_ONLY, protected ? WEIR_DISK_READ_ONLY : 0);
		assert_true(disk.queues == storage->queues && disk.fault == context->fault);
		must(weir_storage_info(storage, &info));
		assert_int_equal(info.read_only, protected);
		assert_int_equal(info.max_transfer_bytes, 8192);
		assert_true(info.bytes == disk.blocks << 9);
		assert_string_equal(info.path, "direct, by the test");
		must(weir_storage_close(storage));
	}
	begin();
	must(open_storage(.max_transfer_bytes = 16384)); /* less than the controller's, which has no limit */
	must(weir_storage_disk(storage, &disk));
	assert_int_equal(disk.max_blocks, 32);
	assert_int_equal(sent(NVME_ADMIN_SET_FEATURES, NVME_FEATURE_HOST_BEHAVIOR), 0);
	must(weir_storage_close(storage));
}

/* Keys of the URI go before options, and both are kept as they were given; lanes wait for two answers and
 * what is done between them. */
static void test_times_and_retries(void **state)
{
	static const struct {
		const char *uri;
		struct weir_storage_options options;
		uint64_t answer_ms, lane_ms, retries;
	} rows[] = {
		{ "steps:it", { .queues = 1 }, 30000, 75000, WEIR_RETRIES_DEFAULT },
		{ "steps:it?timeout_ms=86400000&retries=0", { .queues = 1 }, 86400000, 172815000, 0 },
		{ "steps:it?timeout_ms=0", { .command_timeout_us = 77 }, 0, 30000, WEIR_RETRIES_DEFAULT },
		{ "steps:it?timeout_ms=9000",
		  { .command_timeout_us = 1000000, .retries = 6 },
		  9000,
		  33000,
		  5 },
		{ "steps:it?retries=7",
		  { .command_timeout_us = 5000000000, .retries = 3 },
		  5000000,
		  10015000,
		  7 },
		{ "steps:it?timeout_ms=50000", { .timeout_us = 1234000 }, 50000, 1234, WEIR_RETRIES_DEFAULT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_storage_options options = rows[i].options;
		struct weir_storage *storage;
		struct weir_disk disk;

		begin();
		options.size = sizeof(options);
		must(weir_storage_open(context, rows[i].uri, &options, &storage));
		must(weir_storage_disk(storage, &disk));
		assert_true(storage->answer_ns == rows[i].answer_ms * 1000000);
		assert_true(disk.timeout_ns == rows[i].lane_ms * 1000000);
		assert_int_equal(disk.retry, rows[i].retries);
		assert_true(controller.asked.host_rings && !controller.asked.pulls);
		assert_true(controller.asked.lender && controller.asked.dma == context->dma);
		must(weir_storage_close(storage));
	}
}

/* Whichever command is refused: the storage is not opened, what was created is deleted, and nothing stays. */
static void test_each_command_is_refused(void **state)
{
	struct weir_storage *storage = NULL;
	int error = -EIO;

	(void)state;
	for (unsigned nth = 1; error; nth++) {
		uint64_t before = memory_bytes();
		unsigned created;

		begin();
		controller.fails = nth;
		error = open_storage(.depth = 16);
		created = sent(NVME_ADMIN_CREATE_SQ, 0);
		if (!error) {
			assert_int_equal(nth, 4 + 2 * PAIRS + 1); /* of four more that are not of pairs */
			must(weir_storage_close(storage));
			break;
		}
		says(error, -EIO, "storage \"steps:it\": controller refused admin command ");
		assert_null(storage);
		created -= created && (controller.commands[nth - 1].cdw0 & 0xff) == NVME_ADMIN_CREATE_SQ;
		assert_int_equal(sent(NVME_ADMIN_DELETE_SQ, 0), created);
		assert_int_equal(sent(NVME_ADMIN_DELETE_CQ, 0), created);
		assert_int_equal(controller.shutdowns, 1);
		assert_int_equal(controller.cc, 0);
		assert_true(controller.closes == 1 && controller.open == 0);
		assert_true(memory_bytes() == before);
		assert_null(context->open);
	}
}

/* A controller that did not make durable what was written takes it with it, which is said; what was only read
 * is no loss. */
static void test_a_shutdown_that_fails(void **state)
{
	static const struct {
		bool changed, registers, read_only, fails, lost;
	} rows[] = {
		{ true, false, false, true, true },  { false, false, false, true, false },
		{ false, true, false, true, true },  { false, true, true, true, false },
		{ true, true, false, false, false },
	};
	struct weir_storage *storage;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		must(open_storage(.depth = 16, .read_only = rows[i].read_only));
		assert_int_equal(controller.asked.read_only, rows[i].read_only);
		controller.changed = rows[i].changed;
		controller.transport.registers = rows[i].registers;
		controller.shut_fails = rows[i].fails;
		if (rows[i].lost)
			says(weir_storage_close(storage), -EIO,
			     "what was written since its last flush may be lost");
		else
			must(weir_storage_close(storage));
		assert_int_equal(controller.shutdowns, 1);
		assert_int_equal(controller.closes, 1);
	}
}

/* A command that lets a controller down on the way out does not keep the rest from being done. */
static void test_a_close_that_is_refused(void **state)
{
	struct weir_storage *storage;

	(void)state;
	for (unsigned nth = 1; nth <= 2 * PAIRS; nth++) {
		begin();
		must(open_storage(.depth = 16));
		controller.fails = controller.count + nth;
		must(weir_storage_close(storage));
		assert_int_equal(sent(NVME_ADMIN_DELETE_SQ, 0), PAIRS);
		assert_int_equal(controller.shutdowns, 1);
		assert_int_equal(controller.cc, 0);
		assert_int_equal(controller.closes, 1);
	}
}

static int open_context(void **state)
{
	(void)state;
	return weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context);
}

static int close_context(void **state)
{
	(void)state;
	return weir_context_close(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_depths),
		cmocka_unit_test(test_queue_pairs_come_and_go),
		cmocka_unit_test(test_how_many_queue_pairs),
		cmocka_unit_test(test_what_lanes_are_told),
		cmocka_unit_test(test_times_and_retries),
		cmocka_unit_test(test_each_command_is_refused),
		cmocka_unit_test(test_a_shutdown_that_fails),
		cmocka_unit_test(test_a_close_that_is_refused),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("storage_steps", tests, open_context, close_context);
}
