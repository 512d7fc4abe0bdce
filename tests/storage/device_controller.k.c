/* SPDX-License-Identifier: BSD-3-Clause */
/* A controller made of lanes and its clients, in one kernel: for devices that run one at a time. */
#include <weir/disk.h>

#include "device_controller.h"

WEIR_FN void serve_until_finished(WEIR_GLOBAL struct device_controller_args *args)
{
	u64 lanes = weir_active();
	u32 clients = (u32)(weir_threads() - args->controllers * weir_lanes()), finished = 0, idle = 0;
	struct weir_controller_beat beat =
		weir_controller_beat(&args->controller, (u32)weir_wave(), args->controllers);

	while (finished != clients) {
		u32 served = args->timed ? weir_controller_round_timed(&args->controller, lanes, beat)
					 : weir_controller_round(&args->controller, lanes, beat);

		finished = (u32)weir_broadcast_u64(
			lanes, weir_elected(lanes) ? weir_load_u32_acquire_dev(
							     weir_at(args->finished, weir_shared_u32, 0))
						   : 0);
		idle = weir_controller_rest(&args->controller, idle, served);
	}
}

WEIR_FN u64 word_of(u64 lba, u32 round, u64 word)
{
	return lba << 40 | (u64)round << 16 | word;
}

/* This lane's buffer; 8 bytes in, mostly: first pages are no whole ones. */
WEIR_FN weir_addr buffer_of(WEIR_GLOBAL struct device_controller_args *args, u32 blocks)
{
	return args->buffers + weir_thread() * 2 * DEVICE_CONTROLLER_MOST_BLOCKS * 512 +
	       (blocks < DEVICE_CONTROLLER_MOST_BLOCKS ? 8 : 0);
}

WEIR_FN WEIR_GLOBAL struct weir_event *event_of(WEIR_GLOBAL struct device_controller_args *args)
{
	return weir_at(args->events, struct weir_event, weir_thread());
}

/* Write @blocks blocks, read them back elsewhere, compare every word. Return: something was wrong. */
WEIR_FN u32 round_trip(WEIR_GLOBAL struct device_controller_args *args, u64 lba, u32 blocks, u32 round)
{
	u64 words = (u64)blocks * 64;
	weir_addr from = buffer_of(args, blocks), to = from + DEVICE_CONTROLLER_MOST_BLOCKS * 512;
	weir_status status;

	for (u64 i = 0; i < words; i++)
		*weir_at(from, u64, i) = word_of(lba, round, i);
	status = weir_write(&args->disk, lba, blocks, from, event_of(args), 0);
	if (status == WEIR_OK)
		status = weir_read(&args->disk, lba, blocks, to, event_of(args), 0);
	for (u64 i = 0; i < words && status == WEIR_OK; i++)
		if (weir_data_load_u64(to + i * 8) != word_of(lba, round, i))
			status = WEIR_E_TRANSFER;
	return status != WEIR_OK;
}

WEIR_FN void client_ends(WEIR_GLOBAL struct device_controller_args *args, u32 wrong)
{
	(void)weir_add_u32_relaxed_dev(weir_at(args->wrong, weir_shared_u32, 0), wrong);
	(void)weir_add_u32_acq_rel_dev(weir_at(args->finished, weir_shared_u32, 0), 1);
}

WEIR_KERNEL(test_device_controller, struct device_controller_args)
{
	u64 lba = weir_thread() * DEVICE_CONTROLLER_MOST_BLOCKS;
	u32 wrong = 0;

	if (weir_wave() < args->controllers) {
		serve_until_finished(args);
		return;
	}
	for (u32 round = 0; round < args->rounds; round++)
		wrong += round_trip(args, lba,
				    1 + (round * 7 + (u32)weir_thread()) % DEVICE_CONTROLLER_MOST_BLOCKS,
				    round);
	client_ends(args, wrong);
}

/* One block, whose words the host has put there. */
WEIR_FN void read_one(WEIR_GLOBAL struct device_controller_args *args, u64 lba,
		      WEIR_GLOBAL struct device_controller_result *result)
{
	weir_addr buffer = buffer_of(args, 1);
	weir_status status;

	result->began_ns = weir_clock_ns();
	status = weir_read(&args->disk, lba, 1, buffer, event_of(args), args->timeout_us);
	result->ended_ns = weir_clock_ns();
	result->status = status;
	result->wrong = 0;
	for (u64 i = 0; i < 64 && status == WEIR_OK; i++)
		result->wrong |= weir_data_load_u64(buffer + i * 8) != device_controller_word(lba, i);
}

/* Each client lane reads @rounds blocks of its own, one after the other. */
WEIR_KERNEL(test_device_controller_reads, struct device_controller_args)
{
	u64 client = weir_thread() - args->controllers * weir_lanes();

	if (weir_wave() < args->controllers) {
		serve_until_finished(args);
		return;
	}
	for (u32 round = 0; round < args->rounds; round++) {
		u64 lba = client * args->rounds + round;

		read_one(args, lba, weir_at(args->results, struct device_controller_result, lba));
	}
	client_ends(args, 0);
}

/* What the host has put in the rings, turn by turn. */
WEIR_KERNEL(test_device_controller_iterations, struct device_controller_iterations_args)
{
	u64 lanes = weir_active();

	for (u32 iteration = 0; iteration < args->iterations; iteration++) {
		u32 served = args->timed ? weir_controller_serve_timed(&args->controller,
								       args->controller.queues, lanes)
					 : weir_controller_serve(&args->controller, args->controller.queues,
								 lanes);

		if (weir_elected(lanes))
			*weir_at(args->served, u32, iteration) = served;
		weir_relax(0);
	}
}

/* weir_wave_copy() by any lanes of a wave. */
WEIR_KERNEL(test_device_controller_copy, struct device_controller_copy_args)
{
	u64 at = weir_lane() * args->stride;

	if (args->mask >> weir_lane() & 1)
		weir_wave_copy(args->mask, args->to + at, args->from + at,
			       *weir_at(args->bytes, u32, weir_lane()));
}
