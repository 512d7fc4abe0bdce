/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel_test.c: a channel to an engine, command by command: each is sent when its doorbell is rung. Whoever
 * waits for the thread that sends to look by itself waits long: so that would be as good as a hang.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "target/target.h"
#include "volume/channel.h"

#define SUBSYSTEM "nqn.2026-11.org.example:engine"

enum { COMMANDS = 600, MEMORY_BYTES = 1 << 16 };

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

static void commands_go_at_once(void **state)
{
	struct weir_target *target = serve();
	void *memory = aligned_alloc(4096, MEMORY_BYTES);
	struct weir_channel *channel;
	char uri[200];

	(void)state;
	snprintf(uri, sizeof(uri), "nvmf:%s/%s?nsid=1&queues=1&hostnqn=nqn.test:host",
		 weir_target_address(target, 0), SUBSYSTEM);
	assert_non_null(memory);
	if (weir_channel_open(uri, memory, MEMORY_BYTES, 4096, &channel))
		fail_msg("%s", weir_last_error());
	for (unsigned i = 0; i < COMMANDS; i++) {
		const struct nvme_sqe flush = { .cdw0 = NVME_OPCODE_FLUSH, .nsid = 1 };
		u32 status = ~0u;

		assert_true(channel->ops->submit(channel, &flush, &status));
		while (channel->ops->poll(channel, note) == 0)
			assert_false(channel->ops->lost(channel));
		assert_int_equal(status, 0);
	}
	channel->ops->close(channel);
	free(memory);
	weir_target_stop(target, 10000);
	weir_target_destroy(target);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(commands_go_at_once) };

	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
