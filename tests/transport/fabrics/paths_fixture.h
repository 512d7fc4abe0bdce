/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths_fixture.h: a target with two addresses, a path that can be cut before each, and a storage behind them
 * that is written and read, each byte compared.
 */
#ifndef WEIR_TESTS_PATHS_FIXTURE_H
#define WEIR_TESTS_PATHS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include <weir/nvme_fabrics.h>
#include <weir/weir.h>

#include "cuttable.h"
#include "device/context.h"
#include "observe/publish.h"
#include "target/target.h"

#define NQN  "nqn.2026-11.org.example:paths"
#define HOST "hostnqn=nqn.2026-11.org.example:me&hostid=11111111-2222-3333-4444-555555555555"

enum {
	BYTES = 1 << 20,
	ROUND = 64 << 10,
	QUEUES = 2,
	DEPTH = 16,
	TRANSFER = 4096,
	PATHS = 2,
	ROUNDS = 20,
	WAIT_S = 120, /* a last resort */
};

/* Places of what a storage publishes (observe/publish.h). */
enum {
	RECONNECTS = 1,
	MOVES = 6,
	PATH = 7,
	STATES = WEIR_NETWORK_SCALARS,
	CARRIED = STATES + WEIR_NETWORK_PATHS
};

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static struct weir_context *context;
static struct weir_target *target;
static struct weir_storage *storage;
static struct cuttable paths[PATHS];
static unsigned char wrote[ROUND], found[ROUND];
static unsigned rounds;

static struct weir_target_namespace_options space = { .uri = "virt:1M?block=512" };
static const struct weir_target_subsystem_options subsystem = { .nqn = NQN,
								.namespaces = &space,
								.namespace_count = 1 };
static const char *const listen_at[PATHS] = { "tcp://127.0.0.1:0", "tcp://127.0.0.1:0" };
static const unsigned ana[PATHS] = { NVME_ANA_OPTIMIZED, NVME_ANA_NON_OPTIMIZED };
static const struct weir_target_options options = { .size = sizeof(options),
						    .listen = listen_at,
						    .ana = ana,
						    .listen_count = PATHS,
						    .subsystems = &subsystem,
						    .subsystem_count = 1 };

static int serve(void **state)
{
	(void)state;
	storage = NULL;
	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context));
	must(weir_target_create(&options, &target));
	must(weir_target_start(target));
	for (unsigned i = 0; i < PATHS; i++)
		cuttable_start(&paths[i], (unsigned)atoi(strrchr(weir_target_address(target, i), ':') + 1));
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (storage)
		(void)weir_storage_close(storage);
	for (unsigned i = 0; i < PATHS; i++)
		cuttable_end(&paths[i]);
	weir_target_stop(target, 5000);
	weir_target_destroy(target);
	weir_context_close(context);
	return 0;
}

/* What is not given takes as long as it does on a busy machine, so that no path is lost but by a test. */
static void uri_of(char *uri, size_t bytes, const char *keys)
{
	snprintf(uri, bytes, "nvmf:tcp://127.0.0.1:%u,127.0.0.1:%u/" NQN "?" HOST "%s%s%s", paths[0].port,
		 paths[1].port, keys, strstr(keys, "connect_ms") ? "" : "&connect_ms=60000",
		 strstr(keys, "keep_alive_ms") ? "" : "&keep_alive_ms=15000");
}

static void open_paths(const char *keys)
{
	char uri[512];

	uri_of(uri, sizeof(uri), keys);
	must(weir_storage_open(
		context, uri,
		WEIR_OPTIONS(storage, .queues = QUEUES, .depth = DEPTH, .max_transfer_bytes = TRANSFER),
		&storage));
}

static uint64_t value(unsigned at)
{
	const uint64_t *words = (const uint64_t *)storage->transport->network;

	return __atomic_load_n(&words[at], __ATOMIC_RELAXED);
}

/* Write a part, each time with other bytes, and read it again. */
static void round_trip(void)
{
	uint64_t offset = (uint64_t)(rounds % (BYTES / ROUND)) * ROUND;

	for (unsigned i = 0; i < ROUND; i++)
		wrote[i] = (unsigned char)(i / 7 + rounds * 31);
	must(weir_storage_write(storage, offset, wrote, ROUND));
	memset(found, 0x5a, ROUND);
	must(weir_storage_read(storage, offset, found, ROUND));
	assert_memory_equal(wrote, found, ROUND);
	rounds++;
}

/* Write and read until the storage publishes @wanted; and a few times more. */
static void work_until(unsigned at, uint64_t wanted)
{
	time_t last = time(NULL) + WAIT_S;

	while (value(at) != wanted) {
		round_trip();
		if (time(NULL) > last)
			fail_msg("word %u is %llu, and not %llu", at, (unsigned long long)value(at),
				 (unsigned long long)wanted);
	}
	for (unsigned i = 0; i < ROUNDS; i++)
		round_trip();
}

/* Whether @words were printed to @file, from its byte @from on. */
static bool is_printed(FILE *file, off_t from, const char *words)
{
	static char text[1 << 16];
	ssize_t bytes = pread(fileno(file), text, sizeof(text) - 1, from);

	text[bytes > 0 ? bytes : 0] = '\0';
	return strstr(text, words) != NULL;
}

/* Whether @words were printed to @file within the time; and standard error is what it was. */
static bool printed(FILE *file, const char *words, int before)
{
	bool found_it = false;

	for (time_t last = time(NULL) + WAIT_S; !found_it && time(NULL) <= last; poll(NULL, 0, 10))
		found_it = is_printed(file, 0, words);
	dup2(before, STDERR_FILENO);
	close(before);
	fclose(file);
	return found_it;
}

/* Another target at path 1, whose disk of the same name is smaller. */
static struct weir_target *serve_smaller(void)
{
	static const struct weir_target_namespace_options small = { .uri = "virt:512K?block=512" };
	const struct weir_target_subsystem_options of_small = { .nqn = NQN,
								.namespaces = &small,
								.namespace_count = 1 };
	const struct weir_target_options other = { .size = sizeof(other),
						   .listen = listen_at,
						   .listen_count = 1,
						   .subsystems = &of_small,
						   .subsystem_count = 1 };
	struct weir_target *wrong;

	must(weir_target_create(&other, &wrong));
	must(weir_target_start(wrong));
	cuttable_end(&paths[1]);
	cuttable_start(&paths[1], (unsigned)atoi(strrchr(weir_target_address(wrong, 0), ':') + 1));
	return wrong;
}

#endif
