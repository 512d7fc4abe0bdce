/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel_test.c: a channel to an engine, command by command: each wakes the thread that sends, which would
 * find it by itself only after its sleep.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/leaks.h"
#include "target/target.h"
#include "transport/sleeper.h"
#include "transport/transport.h"
#include "volume/channel.h"

#define SUBSYSTEM "nqn.2026-11.org.example:engine"

enum { COMMANDS = 600, MEMORY_BYTES = 1 << 16, ENTRIES = 128 };

int __real_weir_transport_open(struct weir_transport_request *request, struct weir_transport **out);
int __wrap_weir_transport_open(struct weir_transport_request *request, struct weir_transport **out);

/* The transport's functions; @csts: what its CSTS reads as, unless 0; @sleeper: wakes with its mover;
 * @entries: of a queue at most, 0: as many as the controller takes; @halts: so far, of which the first
 * @unhalted fail */
static struct {
	struct weir_transport_ops ops, real;
	struct weir_sleeper sleeper;
	uint32_t csts;
	unsigned entries, halts, unhalted;
} channel_end;

static uint32_t read32(struct weir_transport *transport, uint32_t offset)
{
	return channel_end.csts && offset == NVME_REGISTER_CSTS ? channel_end.csts
								: channel_end.real.read32(transport, offset);
}

static uint64_t read64(struct weir_transport *transport, uint32_t offset)
{
	uint64_t value = channel_end.real.read64(transport, offset);

	return channel_end.entries && offset == NVME_REGISTER_CAP
		       ? (value & ~(uint64_t)0xffff) | (channel_end.entries - 1)
		       : value;
}

static int halt(struct weir_transport *transport)
{
	return ++channel_end.halts <= channel_end.unhalted ? -EIO : channel_end.real.halt(transport);
}

/* The linker leads the channel's call here, and the target's, whose doorbells nobody rings. */
int __wrap_weir_transport_open(struct weir_transport_request *request, struct weir_transport **out)
{
	int error = __real_weir_transport_open(request, out);

	if (error || !request->host_rings)
		return error;
	assert_int_equal(weir_sleeper_open(&channel_end.sleeper), 0);
	weir_sleeper_attach(&channel_end.sleeper, request->doorbells, 4096);
	channel_end.ops = channel_end.real = *(*out)->ops;
	channel_end.ops.read32 = read32;
	channel_end.ops.read64 = read64;
	channel_end.ops.halt = halt;
	(*out)->ops = &channel_end.ops;
	return 0;
}

static struct weir_target *serve(void)
{
	static const struct weir_target_namespace_options space = { .uri = "virt:16M?block=4096" };
	static const char *const listen = "tcp://127.0.0.1:0";
	const struct weir_target_subsystem_options subsystem = {
		.nqn = SUBSYSTEM, .namespaces = &space, .namespace_count = 1, .engine = true
	};
	struct weir_target_options options = { .size = sizeof(options),
					       .listen = &listen,
					       .listen_count = 1,
					       .subsystems = &subsystem,
					       .subsystem_count = 1,
					       .threads = 1 };
	struct weir_target *target;

	assert_int_equal(weir_target_create(&options, &target), 0);
	assert_int_equal(weir_target_start(target), 0);
	return target;
}

static void note(void *argument, u32 status)
{
	*(u32 *)argument = status;
}

static struct weir_channel *open_channel(struct weir_target *target, void *memory)
{
	struct weir_channel *channel;
	char uri[200];

	snprintf(uri, sizeof(uri), "nvmf:%s/%s?nsid=1&queues=1&hostnqn=nqn.test:host",
		 weir_target_address(target, 0), SUBSYSTEM);
	assert_non_null(memory);
	if (weir_channel_open(uri, memory, MEMORY_BYTES, 4096, &channel))
		fail_msg("%s", weir_last_error());
	return channel;
}

static void every_command_wakes_the_sender(void **state)
{
	struct weir_target *target = serve();
	void *memory = aligned_alloc(4096, MEMORY_BYTES);
	struct weir_channel *channel = open_channel(target, memory);

	(void)state;
	for (unsigned i = 0; i < COMMANDS; i++) {
		const struct nvme_sqe flush = { .cdw0 = NVME_OPCODE_FLUSH, .nsid = 1 };
		uint64_t woken = 0;
		u32 status = ~0u;

		weir_sleeper_begin(&channel_end.sleeper);
		assert_true(channel->ops->submit(channel, &flush, &status));
		weir_sleeper_end(&channel_end.sleeper);
		assert_int_equal(read(channel_end.sleeper.file, &woken, sizeof(woken)), sizeof(woken));
		assert_int_equal(woken, 1);
		while (channel->ops->poll(channel, note) == 0)
			assert_false(channel->ops->lost(channel));
		assert_int_equal(status, 0);
	}
	channel->ops->close(channel);
	weir_sleeper_close(&channel_end.sleeper);
	free(memory);
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
}

/* One whose controller failed, was given up, or is not ready. */
static void is_lost_with_its_controller(void **state)
{
	static const struct {
		uint32_t csts;
		bool lost;
	} cases[] = {
		{ NVME_CSTS_READY, false },
		{ NVME_CSTS_READY | NVME_CSTS_SHUTDOWN_DONE, false },
		{ NVME_CSTS_READY | NVME_CSTS_FATAL, true },
		{ NVME_CSTS_FATAL, true },
		{ NVME_CSTS_SHUTDOWN_DONE, true },
		{ UINT32_MAX, true },
	};
	struct weir_target *target = serve();
	void *memory = aligned_alloc(4096, MEMORY_BYTES);
	struct weir_channel *channel = open_channel(target, memory);

	(void)state;
	assert_false(channel->ops->lost(channel));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		channel_end.csts = cases[i].csts;
		assert_int_equal(channel->ops->lost(channel), cases[i].lost);
	}
	channel_end.csts = 0;
	channel->ops->close(channel);
	weir_sleeper_close(&channel_end.sleeper);
	free(memory);
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
}

/* An engine that takes shorter commands than stripe units need is none for the volume. */
static void an_engine_of_short_transfers_is_refused(void **state)
{
	static const char uri[] = "virt:16M?block=4096&mdts=8K";
	void *memory = aligned_alloc(4096, MEMORY_BYTES);
	struct weir_channel *channel;

	(void)state;
	assert_non_null(memory);
	assert_int_equal(weir_channel_open(uri, memory, MEMORY_BYTES, 16384, &channel), -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "takes 8192 bytes a command at most"));
	weir_sleeper_close(&channel_end.sleeper);
	if (weir_channel_open(uri, memory, MEMORY_BYTES, 8192, &channel))
		fail_msg("%s", weir_last_error());
	channel->ops->close(channel);
	weir_sleeper_close(&channel_end.sleeper);
	free(memory);
}

static struct weir_channel *open_virtual(void *memory)
{
	struct weir_channel *channel;

	assert_non_null(memory);
	if (weir_channel_open("virt:16M?block=4096", memory, MEMORY_BYTES, 4096, &channel))
		fail_msg("%s", weir_last_error());
	return channel;
}

static void close_virtual(struct weir_channel *channel)
{
	channel->ops->close(channel);
	weir_sleeper_close(&channel_end.sleeper);
}

static void fill_channel(unsigned entries)
{
	const struct nvme_sqe flush = { .cdw0 = NVME_OPCODE_FLUSH, .nsid = 1 };
	void *memory = aligned_alloc(4096, MEMORY_BYTES);
	struct weir_channel *channel = open_virtual(memory);
	u32 statuses[ENTRIES];

	for (unsigned round = 0; round < 5; round++) {
		unsigned count = 0, ended = 0;

		while (count < ENTRIES && channel->ops->submit(channel, &flush, &statuses[count]))
			statuses[count++] = ~0u;
		assert_int_equal(count, entries - 1);
		while (ended < count)
			ended += channel->ops->poll(channel, note);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(statuses[i], 0);
	}
	close_virtual(channel);
	free(memory);
}

/* One entry of the ring stays free: a ring with all of them pending looks empty. */
static void a_full_channel_takes_no_more(void **state)
{
	(void)state;
	fill_channel(ENTRIES);
}

/* The same of a controller whose queues are shorter. */
static void a_channel_is_as_long_as_the_controller_takes(void **state)
{
	enum { SHORT = 16 };

	(void)state;
	channel_end.entries = SHORT;
	fill_channel(SHORT);
	channel_end.entries = 0;
}

/* Until it is: what an engine may still write to is not given back. */
static void a_channel_is_halted_once(void **state)
{
	enum { UNHALTED = 2 };
	void *memory = aligned_alloc(4096, MEMORY_BYTES);
	struct weir_channel *channel = open_virtual(memory);

	(void)state;
	channel_end.halts = 0;
	channel_end.unhalted = UNHALTED;
	for (unsigned i = 0; i < UNHALTED; i++)
		assert_int_equal(channel->ops->halt(channel), -EIO);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(channel->ops->halt(channel), 0);
	assert_int_equal(channel_end.halts, UNHALTED + 1);
	channel_end.unhalted = 0;
	close_virtual(channel);
	free(memory);
}

/* One that is closed, and one that is not opened: of short transfers, or with a name that is none. */
static void nothing_of_a_channel_is_left(void **state)
{
	enum { ROUNDS = 256, FIRST = 16, SLACK = 32 << 10 };
	void *memory = aligned_alloc(4096, MEMORY_BYTES);
	struct test_has before = { 0 };
	struct weir_channel *channel;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (i == FIRST)
			before = test_has();
		close_virtual(open_virtual(memory));
		assert_int_equal(weir_channel_open("virt:16M?block=4096&mdts=8K", memory, MEMORY_BYTES, 16384,
						   &channel),
				 -ENOTSUP);
		weir_sleeper_close(&channel_end.sleeper);
		assert_int_equal(weir_channel_open("virt:nothing", memory, MEMORY_BYTES, 4096, &channel),
				 -EINVAL);
	}
	test_keeps(before, 32 << 20); /* a thread may have another stack */
	if (TEST_COUNTS_MEMORY)
		assert_true(test_has().heap_bytes < before.heap_bytes + SLACK);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_wakes_the_sender),
		cmocka_unit_test(is_lost_with_its_controller),
		cmocka_unit_test(an_engine_of_short_transfers_is_refused),
		cmocka_unit_test(a_full_channel_takes_no_more),
		cmocka_unit_test(a_channel_is_as_long_as_the_controller_takes),
		cmocka_unit_test(a_channel_is_halted_once),
		cmocka_unit_test(nothing_of_a_channel_is_left),
	};

	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
