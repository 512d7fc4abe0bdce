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

#include "target/target.h"
#include "transport/sleeper.h"
#include "transport/transport.h"
#include "volume/channel.h"

#define SUBSYSTEM "nqn.2026-11.org.example:engine"

enum { COMMANDS = 600, MEMORY_BYTES = 1 << 16, ENTRIES = 128 };

int __real_weir_transport_open(struct weir_transport_request *request, struct weir_transport **out);
int __wrap_weir_transport_open(struct weir_transport_request *request, struct weir_transport **out);

/* The transport's functions; @csts: what its CSTS reads as, unless 0; @sleeper: wakes with its mover */
static struct {
	struct weir_transport_ops ops;
	uint32_t (*read32)(struct weir_transport *transport, uint32_t offset);
	struct weir_sleeper sleeper;
	uint32_t csts;
} channel_end;

static uint32_t read32(struct weir_transport *transport, uint32_t offset)
{
	return channel_end.csts && offset == NVME_REGISTER_CSTS ? channel_end.csts
								: channel_end.read32(transport, offset);
}

/* The linker leads the channel's call here, and the target's, whose doorbells nobody rings. */
int __wrap_weir_transport_open(struct weir_transport_request *request, struct weir_transport **out)
{
	int error = __real_weir_transport_open(request, out);

	if (error || !request->host_rings)
		return error;
	assert_int_equal(weir_sleeper_open(&channel_end.sleeper), 0);
	weir_sleeper_attach(&channel_end.sleeper, request->doorbells, 4096);
	channel_end.ops = *(*out)->ops;
	channel_end.read32 = channel_end.ops.read32;
	channel_end.ops.read32 = read32;
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

/* One entry of the ring stays free: a ring with all of them pending looks empty. */
static void a_full_channel_takes_no_more(void **state)
{
	const struct nvme_sqe flush = { .cdw0 = NVME_OPCODE_FLUSH, .nsid = 1 };
	void *memory = aligned_alloc(4096, MEMORY_BYTES);
	struct weir_channel *channel;
	u32 statuses[ENTRIES];

	(void)state;
	assert_non_null(memory);
	if (weir_channel_open("virt:16M?block=4096", memory, MEMORY_BYTES, 4096, &channel))
		fail_msg("%s", weir_last_error());
	for (unsigned round = 0; round < 3; round++) {
		unsigned count = 0, ended = 0;

		while (count < ENTRIES && channel->ops->submit(channel, &flush, &statuses[count]))
			statuses[count++] = ~0u;
		assert_int_equal(count, ENTRIES - 1);
		while (ended < count)
			ended += channel->ops->poll(channel, note);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(statuses[i], 0);
	}
	channel->ops->close(channel);
	weir_sleeper_close(&channel_end.sleeper);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_wakes_the_sender),
		cmocka_unit_test(is_lost_with_its_controller),
		cmocka_unit_test(an_engine_of_short_transfers_is_refused),
		cmocka_unit_test(a_full_channel_takes_no_more),
	};

	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
