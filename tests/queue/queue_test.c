/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs under lanes: contents, wraps, transfer shapes, statuses. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/context.h"
#include "../rig/kernels.h"
#include "../rig/request_trace.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum { TIMEOUT_US = 30000000 };

/** struct setup - one run of the kernel test_blocks; @blocks of @block_bytes until it is known what the
 * storage has */
struct setup {
	uint32_t width, depth, queues, block_bytes;
	uint32_t grid_blocks, threads;
	uint32_t outstanding, rounds, blocks, offset, flush, disks;
	uint64_t first_ticket, first_lba;
};

static uint64_t alloc(struct weir_context *context, size_t bytes)
{
	uint64_t address;

	must(weir_alloc(context, bytes, &address));
	return address;
}

static struct weir_storage *open_virt(struct weir_context *context, const struct setup *setup)
{
	struct weir_storage *storage;
	char uri[64];

	snprintf(uri, sizeof(uri), "virt:%s&block=%u",
		 setup->first_lba ? "300T?content=address" : "64M?content=zeros", setup->block_bytes);
	must(test_storage_open(context, uri,
			       WEIR_OPTIONS(storage, .queues = setup->queues, .depth = setup->depth,
					    .timeout_us = test_patient_us(TIMEOUT_US),
					    .first_ticket = setup->first_ticket),
			       &storage));
	return storage;
}

/* As many bytes in each request if they are whole blocks of @disk's, else as many blocks; no more than a
 * request may have. */
static void fit(struct setup *setup, const struct weir_disk *disk)
{
	uint32_t block_bytes = (uint32_t)1 << disk->block_log2;
	uint32_t bytes = setup->blocks * setup->block_bytes;

	setup->blocks = bytes % block_bytes ? setup->blocks : bytes / block_bytes;
	setup->blocks = setup->blocks < disk->max_blocks ? setup->blocks : disk->max_blocks;
	setup->block_bytes = block_bytes;
}

/* The storages of a run, which then fits them. */
static void open_disks(struct weir_context *context, struct setup *setup, struct weir_storage *storages[2],
		       struct test_blocks_args *args)
{
	for (uint32_t i = 0; i < setup->disks; i++) {
		storages[i] = open_virt(context, setup);
		must(weir_storage_disk(storages[i], &args->disk[i]));
	}
	for (uint32_t i = 1; i < setup->disks; i++)
		if (args->disk[i].block_log2 != args->disk[0].block_log2)
			fail_msg("WEIR_TEST_STORAGE: one has blocks of %u bytes, another of %u; give two of "
				 "one kind",
				 1u << args->disk[0].block_log2, 1u << args->disk[i].block_log2);
	fit(setup, &args->disk[0]);
}

static void check_verdict(struct weir_context *context, const struct setup *setup, uint64_t address)
{
	struct test_verdict verdict;

	must(weir_copy_from_device(context, &verdict, address, sizeof(verdict)));
	if (weir_load_u64_relaxed_sys(&verdict.bad))
		fail_msg("width %u depth %u queues %u blocks %u offset %u first %#llx: %llu mistakes; at "
			 "%llu: %#llx "
			 "instead of %#llx",
			 setup->width, setup->depth, setup->queues, setup->blocks, setup->offset,
			 (unsigned long long)setup->first_ticket,
			 (unsigned long long)weir_load_u64_relaxed_sys(&verdict.bad),
			 (unsigned long long)verdict.where, (unsigned long long)verdict.found,
			 (unsigned long long)verdict.expected);
	assert_int_equal(weir_load_u64_relaxed_sys(&verdict.good),
			 (uint64_t)setup->grid_blocks * setup->threads * setup->outstanding * setup->rounds);
}

/* Lanes @first, @first + disks, ... used this storage. */
static void check_stats(struct weir_storage *storage, const struct setup *setup, uint32_t first)
{
	struct weir_stats stats = { .size = sizeof(stats) };
	uint64_t total = (uint64_t)setup->grid_blocks * setup->threads;
	uint64_t lanes = (total + setup->disks - 1 - first) / setup->disks;
	uint64_t bytes = lanes * setup->rounds * setup->outstanding * setup->blocks * setup->block_bytes;

	must(weir_stats(storage, &stats));
	assert_int_equal(stats.commands,
			 lanes * setup->rounds * (2 * setup->outstanding + (setup->flush ? 1 : 0)));
	assert_int_equal(stats.failed, 0);
	assert_int_equal(stats.rogue, 0);
	assert_int_equal(test_pull() ? stats.pull : stats.direct, stats.commands);
	assert_int_equal(test_pull() ? stats.direct : stats.pull, 0);
	if (test_given()) /* the host does not see what passes to a real controller */
		return;
	assert_int_equal(stats.bytes_read, bytes);
	assert_int_equal(stats.bytes_written, bytes);
}

static void run_blocks(struct setup setup)
{
	struct test_blocks_args args;
	struct weir_context *context;
	struct weir_storage *storages[2] = { NULL, NULL };
	uint64_t requests = (uint64_t)setup.grid_blocks * setup.threads * setup.outstanding;

	setup.disks = setup.disks ? setup.disks : 1;
	memset(&args, 0, sizeof(args));
	must(weir_context_open(test_context_name(),
			       WEIR_OPTIONS(context, .workers = 2, .resident_lanes = 256,
					    .service_waves = test_service(), .wave_lanes = setup.width),
			       &context));
	open_disks(context, &setup, storages, &args);
	args.disk_count = setup.disks;
	args.first_lba = setup.first_lba;
	args.blocks = setup.blocks;
	args.offset = setup.offset;
	args.span = (setup.offset + (uint64_t)setup.blocks * setup.block_bytes + 4095) / 4096 * 4096;
	args.outstanding = setup.outstanding;
	args.rounds = setup.rounds;
	args.flush = setup.flush;
	args.path = test_pull() ? WEIR_PATH_PULL : WEIR_PATH_DIRECT;
	args.buffers = alloc(context, requests * args.span);
	args.events = alloc(context, requests * sizeof(struct weir_event));
	args.verdict = alloc(context, sizeof(struct test_verdict));
	must(weir_launch(context, "test_blocks", setup.grid_blocks, setup.threads, &args, sizeof(args)));
	must(weir_sync(context));
	check_verdict(context, &setup, args.verdict);
	for (uint32_t i = 0; i < setup.disks; i++)
		check_stats(storages[i], &setup, i);
	for (uint32_t i = setup.disks; i > 0; i--)
		weir_storage_close(storages[i - 1]);
	weir_context_close(context);
}

static const uint32_t DEPTHS[] = { 2, 4, 8, 64, 256 };

enum { DEPTH_COUNT = 5 };

static void test_every_width_depth_and_queue_count(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t d = 0; d < DEPTH_COUNT; d++)
			for (uint32_t queues = 1; queues <= 3; queues += 2)
				run_blocks((struct setup){ .width = test_width(w),
							   .depth = DEPTHS[d],
							   .queues = queues,
							   .block_bytes = 512,
							   .grid_blocks = 2,
							   .threads = 37,
							   .outstanding = d % 2 ? 3 : 8,
							   .rounds = 1,
							   .blocks = 1,
							   .flush = queues == 3 });
}

static void test_rings_wrap_many_times(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		run_blocks((struct setup){ .width = test_width(w),
					   .depth = w % 2 ? 4 : 2,
					   .queues = 1,
					   .block_bytes = 512,
					   .grid_blocks = 1,
					   .threads = 40,
					   .outstanding = 4,
					   .rounds = 6,
					   .blocks = 1 });
}

static void test_transfers_of_every_shape(void **state)
{
	static const uint32_t bytes[] = { 512, 4096, 4608, 8192, 12288, 32768, 65536 };
	static const uint32_t offsets[] = { 0, 4, 512, 4092 };

	(void)state;
	for (uint32_t block = 512; block <= 4096; block *= 8)
		for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
			for (size_t j = 0; j < 4; j++)
				if (bytes[i] % block == 0)
					run_blocks((struct setup){ .width = 4,
								   .depth = 8,
								   .queues = 2,
								   .block_bytes = block,
								   .grid_blocks = 1,
								   .threads = 6,
								   .outstanding = 2,
								   .rounds = 2,
								   .blocks = bytes[i] / block,
								   .offset = offsets[j] });
}

/* The low half of a ticket, and the slots' sequence (twice the turn), pass 2^32. */
static void test_tickets_and_sequences_wrap(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t d = 0; d < 4; d++) {
			uint64_t depth = DEPTHS[d];
			uint64_t starts[] = { ((uint64_t)1 << 32) - 2 * depth, (depth << 31) - 2 * depth };

			for (size_t i = 0; i < 2; i++)
				run_blocks((struct setup){ .width = test_width(w),
							   .depth = (uint32_t)depth,
							   .queues = 1,
							   .block_bytes = 512,
							   .grid_blocks = 1,
							   .threads = 33,
							   .outstanding = 4,
							   .rounds = 2,
							   .blocks = 1,
							   .first_ticket = starts[i] });
		}
}

/* Requests on both sides of 4 GiB, of 2^32 blocks, and of both in one. */
static void test_many_tebibytes(void **state)
{
	static const uint64_t middles[] = { (uint64_t)1 << 23, (uint64_t)1 << 32,
					    ((uint64_t)1 << 32) + ((uint64_t)1 << 23), (uint64_t)1 << 36 };

	(void)state;
	if (test_given()) /* which is as large as it is */
		skip();
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t i = 0; i < 4; i++)
			run_blocks((struct setup){ .width = test_width(w),
						   .depth = 8,
						   .queues = 2,
						   .block_bytes = i % 2 ? 512 : 4096,
						   .grid_blocks = 2,
						   .threads = 32,
						   .outstanding = 4,
						   .rounds = 2,
						   .blocks = 3,
						   .first_lba = middles[i] - 32 * 4 * 3 - 1 });
}

static void test_two_storages_from_one_wave(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		run_blocks((struct setup){ .width = test_width(w),
					   .depth = 4,
					   .queues = 2,
					   .block_bytes = 512,
					   .grid_blocks = 2,
					   .threads = 33,
					   .outstanding = 6,
					   .rounds = 2,
					   .blocks = 2,
					   .flush = 1,
					   .disks = 2 });
}

/** struct one - a storage and room for one request */
struct one {
	struct weir_context *context;
	struct weir_storage *storage;
	struct test_request_args args;
};

static void open_one(struct one *one, uint32_t width, const char *uri, uint32_t read_only)
{
	memset(one, 0, sizeof(*one));
	must(weir_context_open(test_context_name(),
			       WEIR_OPTIONS(context, .workers = 2, .resident_lanes = 256,
					    .service_waves = test_service(), .wave_lanes = width),
			       &one->context));
	must(test_storage_open(one->context, uri,
			       WEIR_OPTIONS(storage, .queues = 1, .depth = 4, .max_transfer_bytes = 65536,
					    .read_only = read_only,
					    .timeout_us = test_patient_us(TIMEOUT_US)),
			       &one->storage));
	must(weir_storage_disk(one->storage, &one->args.disk));
	one->args.buffer = alloc(one->context, 65536 + 4096);
	one->args.event = alloc(one->context, sizeof(struct weir_event));
	one->args.statuses = alloc(one->context, 2 * sizeof(uint32_t));
}

static void request(struct one *one, const struct test_request_args *args, uint32_t statuses[2])
{
	must(weir_launch(one->context, "test_request", 1, 5, args, sizeof(*args)));
	must(weir_sync(one->context));
	must(weir_copy_from_device(one->context, statuses, args->statuses, 2 * sizeof(uint32_t)));
}

static void close_one(struct one *one)
{
	weir_storage_close(one->storage);
	weir_context_close(one->context);
}

enum {
	END = 1,
	MOST = 1 << 24
}; /* the storage's first block that is not there; what it takes in a request */

/* @lba: added to @from, 0 or END; @buffer: added to the good one */
static const struct bad_request {
	uint32_t opcode, blocks;
	uint64_t lba;
	uint32_t from;
	uint64_t buffer;
	uint32_t read_only, expected;
} BAD[] = {
	{ NVME_OPCODE_READ, 1, -1, END, 0, 0, WEIR_OK },
	{ NVME_OPCODE_READ, 1, 0, END, 0, 0, WEIR_E_RANGE },
	{ NVME_OPCODE_READ, 2, -1, END, 0, 0, WEIR_E_RANGE },
	{ NVME_OPCODE_WRITE, 1, ~(uint64_t)0, 0, 0, 0, WEIR_E_RANGE },
	{ NVME_OPCODE_READ, 0, 0, 0, 0, 0, WEIR_E_TRANSFER },
	{ NVME_OPCODE_READ, MOST, 0, 0, 0, 0, WEIR_OK },
	{ NVME_OPCODE_READ, MOST + 1, 0, 0, 0, 0, WEIR_E_TRANSFER },
	{ NVME_OPCODE_WRITE, ~0u, 0, 0, 0, 0, WEIR_E_TRANSFER },
	{ NVME_OPCODE_READ, 1, 0, 0, 1, 0, WEIR_E_ALIGNMENT },
	{ NVME_OPCODE_READ, 1, 0, 0, 2, 0, WEIR_E_ALIGNMENT },
	{ NVME_OPCODE_WRITE, 1, 0, 0, 4, 0, WEIR_OK },
	{ NVME_OPCODE_WRITE, 1, 0, 0, 0, 1, WEIR_E_READ_ONLY },
	{ NVME_OPCODE_READ, 1, 0, 0, 0, 1, WEIR_OK },
	{ NVME_OPCODE_FLUSH, 0, 0, 0, 0, 0, WEIR_OK },
};

/* As @bad says of this storage. */
static struct test_request_args bad_request(const struct one *one, const struct bad_request *bad)
{
	struct test_request_args args = one->args;

	args.opcode = bad->opcode;
	args.blocks = bad->blocks == MOST || bad->blocks == MOST + 1
			      ? one->args.disk.max_blocks + (bad->blocks - MOST)
			      : bad->blocks;
	args.lba = bad->lba + (bad->from == END ? one->args.disk.blocks : 0);
	args.buffer += bad->buffer;
	return args;
}

static void test_bad_requests_cost_no_command(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
			struct weir_stats stats = { .size = sizeof(stats) };
			struct test_request_args args;
			struct one one;
			uint32_t statuses[2];

			open_one(&one, test_width(w), "virt:1M", BAD[i].read_only);
			args = bad_request(&one, &BAD[i]);
			request(&one, &args, statuses);
			if (statuses[0] != BAD[i].expected)
				fail_msg("width %u, request %zu: %#x instead of %#x", test_width(w), i,
					 statuses[0], BAD[i].expected);
			must(weir_stats(one.storage, &stats));
			assert_int_equal(stats.commands, BAD[i].expected == WEIR_OK);
			assert_int_equal(stats.failed, 0);
			close_one(&one);
		}
}

/* No wait takes its time for a request that was never submitted. */
static void test_a_refused_request_is_told_by_every_wait(void **state)
{
	enum { REFUSED_LANES = 5 };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++)
		for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
			uint32_t reported[REFUSED_LANES * TEST_REPORTED];
			struct test_request_args args;
			struct one one;

			if (BAD[i].expected == WEIR_OK)
				continue;
			open_one(&one, test_width(w), "virt:1M", BAD[i].read_only);
			args = bad_request(&one, &BAD[i]);
			args.event = alloc(one.context, REFUSED_LANES * sizeof(struct weir_event));
			args.statuses = alloc(one.context, sizeof(reported));
			args.timeout_us = 1000;
			must(weir_launch(one.context, "test_refused", 1, REFUSED_LANES, &args, sizeof(args)));
			must(weir_sync(one.context));
			must(weir_copy_from_device(one.context, reported, args.statuses, sizeof(reported)));
			for (size_t k = 0; k < REFUSED_LANES * TEST_REPORTED; k++)
				if (reported[k] != BAD[i].expected)
					fail_msg("width %u, request %zu, lane %zu, wait %zu: %#x instead of "
						 "%#x",
						 test_width(w), i, k / TEST_REPORTED, k % TEST_REPORTED,
						 reported[k], BAD[i].expected);
			close_one(&one);
		}
}

static void test_foreign_memory_is_a_transfer_error(void **state)
{
	static _Alignas(4096) unsigned char foreign[4096];

	(void)state;
	if (test_pull() ||
	    test_given()) /* no controller meets the buffer, or only an IOMMU knows whose memory it is */
		skip();
	for (size_t w = 0; w < test_width_count(); w++) {
		struct weir_stats stats = { .size = sizeof(stats) };
		struct test_request_args args;
		struct one one;
		uint32_t statuses[2];

		open_one(&one, test_width(w), "virt:1M", 0);
		args = one.args;
		args.opcode = NVME_OPCODE_READ;
		args.blocks = 1;
		args.buffer = (uint64_t)(uintptr_t)foreign;
		request(&one, &args, statuses);
		assert_int_equal(weir_status_nvme(statuses[0]), NVME_STATUS_DATA_TRANSFER_ERROR);
		args.buffer = one.args.buffer;
		request(&one, &args, statuses); /* the queue goes on */
		assert_int_equal(statuses[0], WEIR_OK);
		must(weir_stats(one.storage, &stats));
		assert_int_equal(stats.commands, 2);
		assert_int_equal(stats.failed, 1);
		assert_int_equal(stats.rogue, 0);
		close_one(&one);
	}
}

/* Addresses of the queue's window, of which the buffer has the first and the last. */
static void test_data_outside_of_the_window_is_refused(void **state)
{
	enum { WINDOW = 8192 };
	static const struct {
		int64_t at;
		uint32_t blocks, expected;
	} requests[] = {
		{ 0, 1, WEIR_OK },
		{ WINDOW - 512, 1, WEIR_OK },
		{ 0, WINDOW / 512, WEIR_OK },
		{ -4, 1, WEIR_E_WINDOW },
		{ WINDOW - 508, 1, WEIR_E_WINDOW },
		{ 4, WINDOW / 512, WEIR_E_WINDOW },
		{ WINDOW, 1, WEIR_E_WINDOW },
		{ -(1LL << 40), 1, WEIR_E_WINDOW },
		{ 1LL << 40, 1, WEIR_E_WINDOW },
	};
	struct weir_stats stats = { .size = sizeof(stats) };
	uint32_t statuses[2];
	struct one one;

	(void)state;
	if (test_given() || !test_on_cpu()) /* the host writes queue words, in place */
		skip();
	open_one(&one, test_width(0), "virt:1M", 0);
	one.args.opcode = NVME_OPCODE_READ;
	one.args.disk.flags |= WEIR_DISK_WINDOW;
	weir_at(one.args.disk.queues, struct weir_queue, 0)->window = one.args.buffer + 4096;
	weir_at(one.args.disk.queues, struct weir_queue, 0)->window_bytes = WINDOW;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		struct test_request_args args = one.args;

		args.blocks = requests[i].blocks;
		args.buffer += 4096 + (uint64_t)requests[i].at;
		request(&one, &args, statuses);
		if (statuses[0] != requests[i].expected)
			fail_msg("request %zu: %#x instead of %#x", i, statuses[0], requests[i].expected);
	}
	must(weir_stats(one.storage, &stats));
	assert_int_equal(stats.commands, 3);
	close_one(&one);
}

/* A read that takes a second, and a wait of a fiftieth of it, then another one: @statuses of both. */
static void wait_again(uint32_t width, uint32_t statuses[2])
{
	struct weir_stats stats = { .size = sizeof(stats) };
	struct one one;

	open_one(&one, width, "virt:1M?lat_us=1000000", 0);
	one.args.opcode = NVME_OPCODE_READ;
	one.args.blocks = 1;
	one.args.timeout_us = 20000;
	request(&one, &one.args, statuses);
	must(weir_stats(one.storage, &stats));
	assert_int_equal(stats.commands, 1);
	assert_int_equal(stats.rogue, 0);
	close_one(&one);
}

/* A lane that was late itself finds that the command has ended, which shows nothing: again then. */
static void test_a_late_command_can_be_waited_for_again(void **state)
{
	(void)state;
	if (test_given()) /* nobody tells a real controller to be late */
		skip();
	for (size_t w = 0; w < test_width_count(); w += 2) {
		uint32_t statuses[2] = { WEIR_OK, WEIR_OK };

		for (unsigned tries = 0; tries < 20 && statuses[0] == WEIR_OK; tries++)
			wait_again(test_width(w), statuses);
		assert_int_equal(statuses[0], WEIR_E_TIMEOUT);
		assert_int_equal(statuses[1], WEIR_OK);
	}
}

/* The host's writes are durable after its flush, not before, and those after the last one are when the
 * storage is closed. */
static void test_durability(void **state)
{
	static const char *const uris[] = { "virt:1M?trace=%s", "virt:1M?threads=2&lat_us=100&trace=%s",
					    "file:%s.data?trace=%s" };
	static unsigned char bytes[65536];
	char path[] = "/tmp/weir-trace-XXXXXX", data[64], uri[128];
	int file = mkstemp(path);

	(void)state;
	if (test_given())
		skip();
	assert_true(file >= 0);
	close(file);
	snprintf(data, sizeof(data), "%s.data", path);
	file = open(data, O_RDWR | O_CREAT, 0600);
	assert_true(file >= 0 && !ftruncate(file, 1 << 20));
	close(file);
	for (size_t i = 0; i < 3; i++) {
		struct weir_context *context;
		struct weir_storage *storage;

		snprintf(uri, sizeof(uri), uris[i], path, path);
		must(weir_context_open(test_context_name(),
				       WEIR_OPTIONS(context, .workers = 2, .service_waves = test_service()),
				       &context));
		must(test_storage_open(context, uri,
				       WEIR_OPTIONS(storage, .timeout_us = test_patient_us(TIMEOUT_US)),
				       &storage));
		for (unsigned round = 1; round <= 3; round++) {
			must(weir_storage_write(storage, round * 131072, bytes, sizeof(bytes)));
			assert_true(trace_volatile(path) > 0);
			assert_int_equal(trace_count(path, 'f'), round - 1);
			must(weir_storage_flush(storage));
			assert_int_equal(trace_volatile(path), 0);
			assert_int_equal(trace_count(path, 'f'), round);
		}
		must(weir_storage_write(storage, 0, bytes, 4096));
		assert_int_equal(trace_volatile(path), 1);
		weir_storage_close(storage);
		assert_int_equal(trace_volatile(path), 0);
		weir_context_close(context);
	}
	unlink(path);
	unlink(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_width_depth_and_queue_count),
		cmocka_unit_test(test_rings_wrap_many_times),
		cmocka_unit_test(test_transfers_of_every_shape),
		cmocka_unit_test(test_tickets_and_sequences_wrap),
		cmocka_unit_test(test_many_tebibytes),
		cmocka_unit_test(test_two_storages_from_one_wave),
		cmocka_unit_test(test_bad_requests_cost_no_command),
		cmocka_unit_test(test_a_refused_request_is_told_by_every_wait),
		cmocka_unit_test(test_foreign_memory_is_a_transfer_error),
		cmocka_unit_test(test_data_outside_of_the_window_is_refused),
		cmocka_unit_test(test_a_late_command_can_be_waited_for_again),
		cmocka_unit_test(test_durability),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
