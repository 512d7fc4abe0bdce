/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller made of lanes: in one kernel with its clients, and as a storage of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "context.h"
#include "resident.h"

enum { QUEUES = 2, DEPTH = 8, CLIENT_WAVES = 3, ROUNDS = 12, MOST_LANES = 4 * 64 };

static void must(int error)
{
	if (error)
		fail_msg("%d: %s", error, weir_last_error());
}

static uint64_t memory(struct weir_context *context, size_t bytes)
{
	uint64_t address;

	must(weir_alloc(context, bytes, &address));
	return address;
}

static void make_queue(struct weir_context *context, uint32_t id, uint64_t doorbells, struct weir_queue *queue,
		       struct weir_controller_queue *other)
{
	*queue = (struct weir_queue){
		.sq = memory(context, DEPTH * sizeof(struct nvme_sqe)),
		.cq = memory(context, DEPTH * sizeof(struct nvme_cqe)),
		.slots = memory(context, DEPTH * sizeof(struct weir_slot)),
		.prp_lists = memory(context, DEPTH * 16 * sizeof(uint64_t)),
		.sq_doorbell = doorbells + 8 * id, .cq_doorbell = doorbells + 8 * id + 4,
		.depth = DEPTH, .depth_log2 = 3, .prp_entries = 16, .nsid = 1, .block_log2 = 9,
		.path = WEIR_PATH_DIRECT, .id = id,
	};
	*other = (struct weir_controller_queue){
		.sq = queue->sq, .cq = queue->cq, .sq_doorbell = queue->sq_doorbell,
		.cq_doorbell = queue->cq_doorbell, .depth = DEPTH, .depth_log2 = 3, .id = id,
	};
}

static uint32_t word(struct weir_context *context, uint64_t address)
{
	uint32_t value;

	must(weir_copy_out(context, &value, address, sizeof(value)));
	return value;
}

static void run_width(uint32_t width)
{
	struct weir_context *context;
	struct weir_queue queues[QUEUES];
	struct weir_controller_queue others[QUEUES];
	struct resident_args args = { .rounds = ROUNDS };
	uint64_t doorbells, blocks = (uint64_t)MOST_LANES * RESIDENT_MOST_BLOCKS;

	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 2, .wave_lanes = width), &context));
	doorbells = memory(context, 8 * (QUEUES + 1));
	for (uint32_t i = 0; i < QUEUES; i++)
		make_queue(context, i + 1, doorbells, &queues[i], &others[i]);
	args.disk = (struct weir_disk){ .abi_version = WEIR_ABI_VERSION, .queues = memory(context, sizeof(queues)),
					.queue_count = QUEUES, .block_log2 = 9, .blocks = blocks,
					.max_blocks = RESIDENT_MOST_BLOCKS, .timeout_ns = 20000000000u };
	args.controller = (struct weir_controller_args){ .queues = memory(context, sizeof(others)),
							 .medium = memory(context, blocks * 512), .blocks = blocks,
							 .queue_count = QUEUES, .block_log2 = 9 };
	must(weir_copy_in(context, args.disk.queues, queues, sizeof(queues)));
	must(weir_copy_in(context, args.controller.queues, others, sizeof(others)));
	args.events = memory(context, MOST_LANES * sizeof(struct weir_event));
	args.buffers = memory(context, (size_t)MOST_LANES * 2 * RESIDENT_MOST_BLOCKS * 512 + 4096);
	args.finished = memory(context, sizeof(uint32_t));
	args.wrong = memory(context, sizeof(uint32_t));
	must(weir_launch(context, "test_resident", 1, (1 + CLIENT_WAVES) * width, &args, sizeof(args)));
	must(weir_sync(context));
	assert_int_equal(word(context, args.wrong), 0);
	assert_int_equal(word(context, args.finished), CLIENT_WAVES * width);
	weir_context_close(context);
}

static void test_lanes_serve_lanes(void **state)
{
	(void)state;
	for (size_t i = 0; i < test_width_count(); i++)
		run_width(test_width(i));
}

static void refused(struct weir_context *context, const char *uri, int error, const char *reason)
{
	struct weir_storage *out;

	assert_int_equal(weir_storage_open(context, uri, NULL, &out), error);
	assert_null(out);
	if (!strstr(weir_last_error(), reason) || !strstr(weir_last_error(), "virt:"))
		fail_msg("\"%s\" lacks \"%s\"", weir_last_error(), reason);
}

static void test_what_cannot_be_is_refused(void **state)
{
	struct weir_context *context;

	(void)state;
	must(weir_context_open(test_context_name(), NULL, &context));
	refused(context, "virt:1M?on=device&lat_us=5", -ENOTSUP, "lat_us");
	refused(context, "virt:1M?on=device&fault=drop", -ENOTSUP, "fault");
	refused(context, "virt:1M?data=off", -EINVAL, "on=device");
	refused(context, "virt:1M?on=moon", -EINVAL, "moon");
	if (test_on_cpu())
		refused(context, "virt:1M?on=device", -ENOTSUP, "side by side");
	weir_context_close(context);
}

/* Through the host's own calls, which are kernels beside the one that stays. */
static void test_storage_keeps_what_it_is_given(void **state)
{
	static uint8_t written[200000], read[200000];
	struct weir_context *context;
	struct weir_storage *disk;

	(void)state;
	if (test_on_cpu())
		skip(); /* kernels do not run side by side there */
	for (size_t i = 0; i < sizeof(written); i++)
		written[i] = (uint8_t)(i * 7 + i / 251);
	must(weir_context_open(test_context_name(), NULL, &context));
	for (int again = 0; again < 3; again++) {
		struct weir_stats stats = { .size = sizeof(stats) };

		must(weir_storage_open(context, "virt:4M?on=device&waves=16", NULL, &disk));
		must(weir_storage_write(disk, 512 * 3, written, 512 * 390));
		must(weir_storage_read(disk, 512 * 3, read, 512 * 390));
		assert_memory_equal(read, written, 512 * 390);
		must(weir_storage_flush(disk));
		assert_int_not_equal(weir_storage_read(disk, 4 << 20, read, 512), 0);
		must(weir_stats(disk, &stats));
		assert_true(stats.commands > 2 && stats.failed == 0 && stats.rogue == 0);
		weir_storage_close(disk);
	}
	weir_context_close(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lanes_serve_lanes),
		cmocka_unit_test(test_what_cannot_be_is_refused),
		cmocka_unit_test(test_storage_keeps_what_it_is_given),
	};

	if (test_absent())
		return 0;
	return cmocka_run_group_tests_name("resident", tests, NULL, NULL);
}
