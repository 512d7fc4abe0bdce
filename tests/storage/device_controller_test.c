/* SPDX-License-Identifier: BSD-3-Clause */
/* The controller made of lanes: in one kernel with its clients, turn by turn, and as a storage of its own;
 * copying. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device_controller_rig.h"

/* Waves and queues in several proportions, rings that wrap, tickets that pass 2^32. */
static const struct rig_options mixes[] = {
	{ .queues = 2, .depth_log2 = 3, .controllers = 1, .clients = 3, .rounds = 12 },
	{ .queues = 1,
	  .depth_log2 = 3,
	  .controllers = 4,
	  .clients = 3,
	  .rounds = 6,
	  .share_log2 = 2,
	  .rest = 3 },
	{ .queues = 3, .depth_log2 = 2, .controllers = 2, .clients = 3, .rounds = 6, .claim = 2 },
	{ .queues = 1,
	  .depth_log2 = 6,
	  .controllers = 3,
	  .clients = 3,
	  .rounds = 24,
	  .claim_bytes = 8192,
	  .share_log2 = 1,
	  .first = (1ull << 32) - 128 },
	{ .queues = 2,
	  .depth_log2 = 3,
	  .controllers = 3,
	  .clients = 3,
	  .rounds = 6,
	  .timed = true,
	  .first = (1ull << 32) - 16 },
	{ .queues = 1,
	  .depth_log2 = 5,
	  .controllers = 2,
	  .clients = 2,
	  .rounds = 6,
	  .latency_us = 30,
	  .iops = 2000000,
	  .first = (1ull << 32) - 64 },
};

static void run_mix(const struct rig_options *mix, uint32_t width)
{
	struct rig_options options = *mix;
	struct rig rig;

	options.width = width;
	options.rounds = test_rounds(mix->rounds);
	options.blocks =
		(uint64_t)(options.controllers + options.clients) * width * DEVICE_CONTROLLER_MOST_BLOCKS;
	rig_open(&rig, &options);
	rig_run(&rig, "test_device_controller");
	if (rig_word(&rig, rig.args.wrong))
		fail_msg("mix %d, width %u: %u requests went wrong", (int)(mix - mixes), width,
			 rig_word(&rig, rig.args.wrong));
	for (uint32_t i = 0; i < options.queues; i++) {
		struct weir_queue queue = rig_queue_after(&rig, i);

		assert_int_equal(weir_load_u64_relaxed_sys(&queue.completed),
				 weir_load_u64_relaxed_sys(&queue.tail) - options.first);
		assert_int_equal(weir_load_u64_relaxed_sys(&queue.rogue), 0);
	}
	weir_context_close(rig.context);
}

static void test_lanes_serve_lanes(void **state)
{
	(void)state;
	for (size_t i = 0; i < test_width_count(); i++)
		for (size_t m = 0; m < sizeof(mixes) / sizeof(*mixes); m++)
			run_mix(&mixes[m], test_width(i));
}

/* Turns that serve 20 one-block reads, each as many as @claim, a share and the wave's width allow. */
static void run_claims(uint32_t width, uint32_t claim, uint32_t share_log2, uint64_t first)
{
	struct rig_options options = one_wave(width);
	uint32_t served[MOST_ITERATIONS], left = 20, ticket = (uint32_t)first;
	struct rig rig;

	options.claim = claim;
	options.share_log2 = share_log2;
	options.first = first;
	rig_open(&rig, &options);
	announce(&rig, ticket, left, 1);
	take_iterations(&rig, MOST_ITERATIONS, served);
	for (uint32_t iteration = 0; iteration < MOST_ITERATIONS; iteration++) {
		uint32_t share = (left + (1u << share_log2) - 1) >> share_log2;

		assert_int_equal(served[iteration], least(least(share, claim), width));
		for (uint32_t i = 0; i < served[iteration]; i++)
			completed(&rig, ticket + i, ticket + i, 0, ticket + served[iteration]);
		ticket += served[iteration];
		left -= served[iteration];
	}
	assert_int_equal(left, 0);
	weir_context_close(rig.context);
}

static void test_pieces_are_as_large_as_they_may_be(void **state)
{
	(void)state;
	for (size_t i = 0; i < test_width_count(); i++) {
		run_claims(test_width(i), 64, 0, 0);
		run_claims(test_width(i), 5, 0, 64);
		run_claims(test_width(i), 64, 2, (1ull << 32) - 64);
	}
}

/* 4 KiB each: no more than make 8 KiB, and one of 12 KiB is taken alone. */
static void test_pieces_have_so_much_data(void **state)
{
	(void)state;
	for (size_t i = 0; i < test_width_count(); i++) {
		struct rig_options options = one_wave(test_width(i));
		uint32_t served[MOST_ITERATIONS], two = least(2, test_width(i));
		struct rig rig;

		options.claim_bytes = 8192;
		rig_open(&rig, &options);
		announce(&rig, 0, 8, 8);
		take_iterations(&rig, 4, served);
		for (uint32_t iteration = 0; iteration < 4; iteration++)
			assert_int_equal(served[iteration], two);
		take_iterations(&rig, 8, served);
		announce(&rig, 8, 2, 16);
		take_iterations(&rig, 3, served);
		assert_int_equal(served[0], 1);
		assert_int_equal(served[1], 1);
		assert_int_equal(served[2], 0);
		weir_context_close(rig.context);
	}
}

static uint32_t sum(const uint32_t *served, uint32_t iterations)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < iterations; i++)
		total += served[i];
	return total;
}

/* A client that reads no completions gets as many as fit, however much it announces. */
static void test_no_completion_without_room(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * test_width_count(); i++) {
		struct rig_options options = one_wave(test_width(i / 2));
		uint32_t served[MOST_ITERATIONS];
		struct rig rig;

		options.depth_log2 = 3;
		options.timed = i & 1;
		options.first = (1ull << 32) - 16;
		rig_open(&rig, &options);
		announce(&rig, (uint32_t)options.first, 5, 1);
		take_iterations(&rig, 16, served);
		announce(&rig, (uint32_t)options.first + 5, 7, 1);
		take_iterations(&rig, 16, served);
		completed(&rig, (uint32_t)options.first + 6, (uint32_t)options.first + 6, 0,
			  (uint32_t)options.first + 7);
		assert_int_equal(completion(&rig, 7).dw3, 0);
		take_iterations(&rig, 16, served);
		assert_int_equal(sum(served, 16), 0);
		ring(&rig, rig.queues[0].cq_doorbell, 3);
		take_iterations(&rig, 16, served);
		assert_int_equal(sum(served, 16), options.timed ? 6 : 3);
		completed(&rig, (uint32_t)options.first + 9, (uint32_t)options.first + 9, 0,
			  (uint32_t)options.first + 10);
		weir_context_close(rig.context);
	}
}

/* Pages of a buffer, scattered: even ones at the front in reverse, odd ones behind them. */
static uint64_t scattered(const struct rig *rig, uint32_t page)
{
	uint64_t pages = (rig->args.buffers + PAGE - 1) & ~(uint64_t)(PAGE - 1);

	return pages + (page % 2 ? 9 + page / 2 : 7 - page / 2) * (uint64_t)PAGE;
}

/* Word @word of a buffer that begins @offset bytes into its first page. */
static uint64_t scattered_word(const struct rig *rig, uint32_t offset, uint32_t word)
{
	uint32_t at = offset + word * 8;

	return scattered(rig, at / PAGE) + at % PAGE;
}

/* PRP1 and PRP2 of a buffer of @bytes from @offset on; its list, if it needs one, is number @list. */
static void put_scattered(struct rig *rig, uint32_t ticket, uint32_t opcode, uint64_t lba, uint32_t bytes,
			  uint32_t offset)
{
	uint32_t pages = (offset + bytes + PAGE - 1) / PAGE;
	uint64_t list = rig->queues[0].prp_lists + ticket * RIG_PRP_ENTRIES * sizeof(uint64_t), entry;

	for (uint32_t page = 1; page < pages; page++) {
		entry = scattered(rig, page);
		rig_put(rig, list + (page - 1) * sizeof(entry), &entry, sizeof(entry));
	}
	put_command(rig, ticket, opcode, lba, bytes / 512, scattered(rig, 0) + offset,
		    pages > 2 ? list : scattered(rig, 1));
}

/* Read @bytes from the medium into scattered pages; write them behind, from the same pages; both as they
 * were. */
static void run_scattered(struct rig *rig, uint32_t *ticket, uint32_t bytes, uint32_t offset)
{
	uint32_t served[MOST_ITERATIONS], words = bytes / 8;

	put_scattered(rig, *ticket, NVME_OPCODE_READ, 8, bytes, offset);
	ring(rig, rig->queues[0].sq_doorbell, *ticket + 1);
	take_iterations(rig, 1, served);
	completed(rig, *ticket, *ticket, 0, *ticket + 1);
	for (uint32_t word = 0; word < words; word += 61) {
		uint64_t value;

		must(weir_copy_from_device(rig->context, &value, scattered_word(rig, offset, word),
					   sizeof(value)));
		assert_int_equal(value, device_controller_word(8 + word / 64, word % 64));
	}
	put_scattered(rig, *ticket + 1, NVME_OPCODE_WRITE, 256, bytes, offset);
	ring(rig, rig->queues[0].sq_doorbell, *ticket + 2);
	take_iterations(rig, 1, served);
	completed(rig, *ticket + 1, *ticket + 1, 0, *ticket + 2);
	for (uint32_t word = 0; word < words; word++) {
		uint64_t value;

		must(weir_copy_from_device(rig->context, &value,
					   rig->args.controller.medium + 256 * 512 + word * 8,
					   sizeof(value)));
		assert_int_equal(value, device_controller_word(8 + word / 64, word % 64));
	}
	*ticket += 2;
}

static void test_scattered_pages(void **state)
{
	(void)state;
	for (size_t i = 0; i < test_width_count(); i++) {
		static const uint32_t bytes[] = { 512, 4096, 8192, 12288, 30 * 512 };
		static const uint32_t offsets[] = { 0, 512, 2056, 4088 };
		struct rig_options options = one_wave(test_width(i));
		uint32_t ticket = 0;
		struct rig rig;

		options.blocks = 512;
		options.depth_log2 = 6;
		options.clients = 8; /* for their buffers */
		rig_open(&rig, &options);
		rig_fill_medium(&rig);
		ring(&rig, rig.queues[0].cq_doorbell, 0);
		for (size_t b = 0; b < 5; b++)
			for (size_t o = 0; o < 4; o++)
				run_scattered(&rig, &ticket, bytes[b], offsets[o]);
		weir_context_close(rig.context);
	}
}

/* Nothing of these is carried out; what comes after them is. */
static void test_commands_that_cannot_be(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * test_width_count(); i++) {
		struct rig_options options = one_wave(test_width(i / 2));
		uint32_t served[MOST_ITERATIONS];
		uint64_t buffer;
		struct rig rig;

		options.timed = i & 1;
		rig_open(&rig, &options);
		buffer = rig.args.buffers;
		put_command(&rig, 0, NVME_OPCODE_COMPARE, 0, 1, buffer, 0);
		put_command(&rig, 1, NVME_OPCODE_READ, 256, 1, buffer, 0);
		put_command(&rig, 2, NVME_OPCODE_WRITE, 255, 2, buffer, 0);
		put_command(&rig, 3, NVME_OPCODE_READ, ~0ull, 2, buffer, 0);
		put_command(&rig, 4, NVME_OPCODE_READ, 0, 1, buffer + 2, 0);
		put_command(&rig, 5, NVME_OPCODE_FLUSH, 99999, 1, 0, 0);
		put_command(&rig, 6, NVME_OPCODE_READ, 255, 1, buffer, 0);
		ring(&rig, rig.queues[0].sq_doorbell, 7);
		take_iterations(&rig, 8, served);
		assert_int_equal(completion(&rig, 0).dw3 >> 17, NVME_STATUS_INVALID_OPCODE | NVME_STATUS_DNR);
		for (uint32_t t = 1; t < 4; t++)
			assert_int_equal(completion(&rig, t).dw3 >> 17,
					 NVME_STATUS_LBA_OUT_OF_RANGE | NVME_STATUS_DNR);
		assert_int_equal(completion(&rig, 4).dw3 >> 17,
				 NVME_STATUS_INVALID_PRP_OFFSET | NVME_STATUS_DNR);
		for (uint32_t t = 5; t < 7; t++) {
			assert_int_equal(completion(&rig, t).dw3 >> 17, 0);
			assert_int_equal(completion(&rig, t).dw3 & 0xffff, t);
		}
		weir_context_close(rig.context);
	}
}

enum { STRIDE = 24576, MOST_WIDTH = 64, COPIES = 12 };

/* Copy @bytes[i] from @shift bytes into block i of each lane of @mask; nothing else changes. */
static void run_copy(struct weir_context *context, uint32_t width, uint64_t mask, const uint32_t *bytes,
		     uint32_t shift)
{
	static uint8_t from[MOST_WIDTH * STRIDE], to[MOST_WIDTH * STRIDE];
	struct device_controller_copy_args args = { .stride = STRIDE, .mask = mask };
	uint64_t source, target;

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 11 + i / 241 + 1);
	must(weir_alloc(context, sizeof(from), &source));
	must(weir_alloc(context, sizeof(to), &target));
	must(weir_alloc(context, MOST_WIDTH * sizeof(*bytes), &args.bytes));
	must(weir_copy_to_device(context, source, from, sizeof(from)));
	must(weir_copy_to_device(context, args.bytes, bytes, width * sizeof(*bytes)));
	args.from = source + shift;
	args.to = target + shift;
	must(weir_launch(context, "test_device_controller_copy", 1, width, &args, sizeof(args)));
	must(weir_sync(context));
	must(weir_copy_from_device(context, to, target, sizeof(to)));
	for (uint32_t lane = 0; lane < width; lane++)
		for (uint32_t at = 0; at < STRIDE; at++) {
			size_t i = (size_t)lane * STRIDE + at;
			bool copied = (mask >> lane & 1) && at >= shift && at - shift < bytes[lane];

			if (to[i] != (copied ? from[i] : 0))
				fail_msg("width %u, mask %#llx, lane %u, byte %u of %u", width,
					 (unsigned long long)mask, lane, at, bytes[lane]);
		}
	must(weir_free(context, source));
	must(weir_free(context, target));
	must(weir_free(context, args.bytes));
}

/* Lengths around a row and a batch, mixed; lanes without any; parts of a wave; addresses of 16 and of 4. */
static void test_waves_copy(void **state)
{
	static const uint32_t lengths[COPIES] = { 0, 512, 4096, 16, 4112, 8192, 0, 528, 20480, 4, 1000, 496 };

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		uint32_t width = test_width(w), bytes[MOST_WIDTH];
		uint64_t all = ~0ull >> (64 - width);
		const uint64_t masks[] = { all, all & 0x5555555555555555, all & ~2ull, 1ull << (width - 1) };
		struct weir_context *context;

		must(weir_context_open(
			test_context_name(),
			WEIR_OPTIONS(context, .workers = 1, .wave_lanes = test_on_cpu() ? width : 0),
			&context));
		for (size_t i = 0; i < 2 * sizeof(masks) / sizeof(*masks); i++) {
			for (uint32_t lane = 0; lane < width; lane++)
				bytes[lane] = lengths[(lane + i) % COPIES];
			run_copy(context, width, masks[i / 2], bytes, i % 2 ? 4 : 0);
		}
		weir_context_close(context);
	}
}

/* Blocks of one access of each lane, but for one of them. */
static void test_waves_copy_rows(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		uint32_t width = test_width(w), bytes[MOST_WIDTH];
		struct weir_context *context;

		must(weir_context_open(
			test_context_name(),
			WEIR_OPTIONS(context, .workers = 1, .wave_lanes = test_on_cpu() ? width : 0),
			&context));
		for (uint32_t other = 0; other <= width; other++) {
			for (uint32_t lane = 0; lane < width; lane++)
				bytes[lane] = lane == other ? other % 3 * 16 : 16 * width;
			run_copy(context, width, ~0ull >> (64 - width), bytes, other % 5 == 4 ? 4 : 0);
		}
		weir_context_close(context);
	}
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
	refused(context, "virt:1M?on=device&fault=drop,fatal:after=3", -ENOTSUP,
		"row 2: a controller on the device knows neither fatal nor gone");
	refused(context, "virt:1M?on=device&load=/dev/null", -ENOTSUP, "load");
	refused(context, "virt:1M?on=device&shadow=on", -EINVAL, "leave shadow=on out");
	refused(context, "virt:1M?data=off", -EINVAL, "on=device");
	refused(context, "virt:1M?groups=4", -EINVAL, "on=device");
	refused(context, "virt:1M?waves=4", -EINVAL, "on=device");
	refused(context, "virt:1M?on=moon", -EINVAL, "moon");
	refused(context, "virt:1M?on=device&groups=0", -EINVAL, "groups");
	refused(context, "virt:1M?on=device&claim=65", -EINVAL, "claim");
	refused(context, "virt:1M?on=device&waves=8&groups=2", -EINVAL, "waves=8 and groups=2");
	if (test_on_cpu())
		refused(context, "virt:1M?on=device&lat_us=5&iops=1000&fault=drop&groups=2&claim=8", -ENOTSUP,
			"side by side");
	else
		refused(context, "virt:1M?on=device&groups=65536", -EINVAL, "at the same time");
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

/* The URI's latency and faults, by a controller that fills a multiprocessor or two. */
static void test_storage_with_latency_and_faults(void **state)
{
	struct weir_stats stats = { .size = sizeof(stats) };
	struct weir_context *context;
	struct weir_storage *disk;
	static uint8_t block[512];

	(void)state;
	if (test_on_cpu())
		skip(); /* kernels do not run side by side there */
	must(weir_context_open(test_context_name(), NULL, &context));
	must(weir_storage_open(context,
			       "virt:4M?on=device&groups=2&claim=4&lat_us=50&iops=100000&"
			       "fault=status:code=0x281:lba=10-19,late:us=1000:every=3,duplicate:every=5",
			       NULL, &disk));
	assert_int_equal(weir_storage_read(disk, 512 * 9, block, 512), 0);
	assert_int_not_equal(weir_storage_read(disk, 512 * 10, block, 512), 0);
	assert_int_not_equal(weir_storage_read(disk, 512 * 19, block, 512), 0);
	for (int i = 20; i < 40; i++)
		must(weir_storage_read(disk, 512 * i, block, 512));
	must(weir_stats(disk, &stats));
	assert_true(stats.failed >= 2 && stats.rogue >= 3);
	weir_storage_close(disk);
	weir_context_close(context);
}

/* The first turns at an I/O rate are there at once, wherever the device's clock stands; then they cost time.
 */
static void test_the_first_turn_is_now(void **state)
{
	weir_shared_u64 rate;
	struct weir_controller_args args = { .rate = WEIR_ADDR(&rate), .iops = 1000000 };

	(void)state;
	for (uint64_t now = 1; now >> 62 == 0; now += (uint64_t)1 << 55) {
		uint64_t clock = now << WEIR_CONTROLLER_TICKS_LOG2, cost = weir_controller_cost(&args, 3);

		weir_store_u64_relaxed_dev(&rate, 0);
		assert_true(weir_controller_ahead(0, clock) <= 0);
		assert_int_equal(weir_controller_iterations(&args, now, 3), 0);
		assert_int_equal(weir_controller_ahead(weir_load_u64_relaxed_dev(&rate), clock), cost);
		assert_int_equal(weir_controller_iterations(&args, now, 1), cost);
	}
}

/* Without data (data=off) commands end as well as others, and what cannot be is refused; nothing is moved. */
static void test_commands_without_data(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * test_width_count(); i++) {
		struct rig_options options = one_wave(test_width(i / 2));
		uint32_t served[MOST_ITERATIONS];
		uint64_t mark = 77, found[2];
		struct rig rig;

		options.timed = i & 1;
		rig_open(&rig, &options);
		rig_fill_medium(&rig);
		rig.args.controller.no_data = 1;
		rig_put(&rig, rig.args.buffers, &mark, sizeof(mark));
		put_command(&rig, 0, NVME_OPCODE_READ, 1, 1, rig.args.buffers, 0);
		put_command(&rig, 1, NVME_OPCODE_WRITE, 2, 1, rig.args.buffers, 0);
		put_command(&rig, 2, NVME_OPCODE_READ, 256, 1, rig.args.buffers, 0);
		ring(&rig, rig.queues[0].sq_doorbell, 3);
		take_iterations(&rig, 8, served);
		for (uint32_t t = 0; t < 3; t++) {
			assert_int_equal(completion(&rig, t).dw3 & 0xffff, t);
			assert_int_equal(completion(&rig, t).dw3 >> 17,
					 t < 2 ? 0 : NVME_STATUS_LBA_OUT_OF_RANGE | NVME_STATUS_DNR);
		}
		must(weir_copy_from_device(rig.context, &found[0], rig.args.buffers, sizeof(found[0])));
		must(weir_copy_from_device(rig.context, &found[1], rig.args.controller.medium + 1024,
					   sizeof(found[1])));
		assert_int_equal(found[0], mark);
		assert_int_equal(found[1], device_controller_word(2, 0));
		weir_context_close(rig.context);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lanes_serve_lanes),
		cmocka_unit_test(test_pieces_are_as_large_as_they_may_be),
		cmocka_unit_test(test_pieces_have_so_much_data),
		cmocka_unit_test(test_no_completion_without_room),
		cmocka_unit_test(test_scattered_pages),
		cmocka_unit_test(test_commands_that_cannot_be),
		cmocka_unit_test(test_commands_without_data),
		cmocka_unit_test(test_waves_copy),
		cmocka_unit_test(test_waves_copy_rows),
		cmocka_unit_test(test_what_cannot_be_is_refused),
		cmocka_unit_test(test_the_first_turn_is_now),
		cmocka_unit_test(test_storage_keeps_what_it_is_given),
		cmocka_unit_test(test_storage_with_latency_and_faults),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("device_controller", tests, NULL, NULL);
}
