/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context.h: the device that a test program runs on.
 *
 * WEIR_TEST_CONTEXT names it; the cpu without it. Wave widths and workers can be
 * chosen on the cpu only: elsewhere a case runs once, at the device's own width.
 * WEIR_TEST_SECOND names a second one, for tests of two on one controller; without it that is the cpu.
 * WEIR_TEST_SERVICE=1 opens contexts with a service. WEIR_TEST_MOVER chooses who moves data (the key mover of
 * a URI); without it that is lanes, but for those of the cpu. WEIR_TEST_SHADOW=on has controllers offer
 * shadow doorbells (the key shadow of a URI). WEIR_TEST_DOORBELL=host has a thread of the host ring for lanes
 * (the key doorbell of a URI). WEIR_TEST_CONTROLLER=1 has each virtual controller be one that storages may
 * share (the key controller of a URI). WEIR_TEST_TIMEOUT_FACTOR=20 multiplies the time that storages have,
 * for a checker under which all is slow. WEIR_TEST_LANES=16 lets no more lanes than that read in each block,
 * for the same reason. WEIR_TEST_READS=300 makes traces that one lane replays no longer than that,
 * WEIR_TEST_ROUNDS=1 lets it go no more rounds, likewise. WEIR_TEST_STORAGE="nvme:65:00.0 nvme:66:00.0" opens
 * these in turn, whatever a case asks for: it loses what it holds. WEIR_TEST_NETWORK=weir-target has each
 * storage served by that program, and reached through loopback. WEIR_TEST_CASES is a pattern (* and ?) of the
 * cases to run, WEIR_TEST_WITHOUT one of those to leave out.
 */
#ifndef WEIR_TESTS_CONTEXT_H
#define WEIR_TESTS_CONTEXT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "network.h"

/** test_context_name() - for weir_context_open() */
static inline const char *test_context_name(void)
{
	const char *name = getenv("WEIR_TEST_CONTEXT");

	return name && *name ? name : "cpu";
}

/** test_on_cpu() - the cpu's options have an effect */
static inline bool test_on_cpu(void)
{
	return !strcmp(test_context_name(), "cpu");
}

/**
 * test_device() - what the device is
 *
 * Opens it for a moment, once per program.
 */
static inline const struct weir_context_info *test_device(void)
{
	static struct weir_context_info info;
	struct weir_context *context;

	if (info.size)
		return &info;
	info.size = sizeof(info);
	if (weir_context_open(test_context_name(), NULL, &context) != 0 ||
	    weir_context_info(context, &info) != 0) {
		fprintf(stderr, "%s: %s\n", test_context_name(), weir_last_error());
		abort();
	}
	weir_context_close(context);
	return &info;
}

/** test_width_count() - wave widths to try, each by test_width() */
static inline size_t test_width_count(void)
{
	return test_on_cpu() ? 4 : 1;
}

/** test_width() - wave width @index of test_width_count() */
static inline uint32_t test_width(size_t index)
{
	static const uint32_t widths[] = { 1, 4, 32, 64 };

	return test_on_cpu() ? widths[index] : test_device()->wave_lanes;
}

/** test_blocks_together() - lanes of one block may wait for those of another: blocks do not run one after the
 * other (WEIR_TEST_BLOCKS_APART) */
static inline bool test_blocks_together(void)
{
	return test_device()->workers > 1 && !getenv("WEIR_TEST_BLOCKS_APART");
}

/** test_service() - weir_context_options.service_waves: as WEIR_TEST_SERVICE says, none without it */
static inline uint32_t test_service(void)
{
	const char *waves = getenv("WEIR_TEST_SERVICE");

	return waves ? (uint32_t)strtoul(waves, NULL, 10) : 0;
}

/** test_brief_us() - @us times WEIR_TEST_TIMEOUT_FACTOR: a limit that a test waits for */
static inline uint64_t test_brief_us(uint64_t us)
{
	const char *times = getenv("WEIR_TEST_TIMEOUT_FACTOR");

	return times ? us * strtoul(times, NULL, 10) : us;
}

/** test_patient_us() - a limit that should not pass, however much else the machine does: test_brief_us() ten
 * times over */
static inline uint64_t test_patient_us(uint64_t us)
{
	return 10 * test_brief_us(us);
}

/* @count, or no more than the variable @name says. */
static inline uint32_t test_at_most(const char *name, uint32_t count)
{
	const char *most = getenv(name);

	return most && strtoul(most, NULL, 10) < count ? (uint32_t)strtoul(most, NULL, 10) : count;
}

/** test_lanes() - @lanes, or WEIR_TEST_LANES of them */
static inline uint32_t test_lanes(uint32_t lanes)
{
	return test_at_most("WEIR_TEST_LANES", lanes);
}

/** test_rounds() - @rounds, or WEIR_TEST_ROUNDS of them */
static inline uint32_t test_rounds(uint32_t rounds)
{
	return test_at_most("WEIR_TEST_ROUNDS", rounds);
}

/** test_pull() - lanes move the data: because they are told to, or because nobody else can */
static inline bool test_pull(void)
{
	const char *mover = getenv("WEIR_TEST_MOVER");

	return mover ? !strcmp(mover, "pull") : !test_on_cpu();
}

/** test_trace_reads() - @reads, or WEIR_TEST_READS of them */
static inline uint32_t test_trace_reads(uint32_t reads)
{
	return test_at_most("WEIR_TEST_READS", reads);
}

/** test_given() - WEIR_TEST_STORAGE names what to open: nothing that a case asks of its storage may be
 * expected */
static inline bool test_given(void)
{
	return getenv("WEIR_TEST_STORAGE") != NULL;
}

/** test_storage_given() - the next of WEIR_TEST_STORAGE's URIs, @uri without them */
static inline const char *test_storage_given(const char *uri)
{
	static unsigned iteration;
	static char text[2][256];
	const char *given = getenv("WEIR_TEST_STORAGE");
	int count = given ? sscanf(given, "%255s %255s", text[0], text[1]) : 0;

	return count > 0 ? text[iteration++ % (unsigned)count] : uri;
}

/**
 * test_storage_open() - weir_storage_open(), with the mover that WEIR_TEST_MOVER names, and what
 * WEIR_TEST_SHADOW and WEIR_TEST_DOORBELL say
 *
 * On the cpu controllers reach all memory, so lanes pull only if they are asked to.
 */
static inline int test_storage_open(struct weir_context *context, const char *uri,
				    const struct weir_storage_options *options, struct weir_storage **out)
{
	static unsigned number;
	const char *shadow = getenv("WEIR_TEST_SHADOW"), *doorbell = getenv("WEIR_TEST_DOORBELL");
	char text[512], network[256];
	int length;

	uri = test_network_uri(test_storage_given(uri), network, sizeof(network));
	length = snprintf(text, sizeof(text), "%s%cmover=%s%s%s%s%s", uri, strchr(uri, '?') ? '&' : '?',
			  test_pull() ? "pull" : "direct", shadow ? "&shadow=" : "", shadow ? shadow : "",
			  doorbell ? "&doorbell=" : "", doorbell ? doorbell : "");
	if (getenv("WEIR_TEST_CONTROLLER") && !strncmp(uri, "virt:", 5) && !strstr(uri, "controller="))
		snprintf(text + length, sizeof(text) - (size_t)length, "&controller=%u", number++);
	return weir_storage_open(context, text, options, out);
}

/**
 * test_begins() - before a test program's cases: choose those of WEIR_TEST_CASES less WEIR_TEST_WITHOUT
 *
 * Return: false, having said so in TAP, if there is no such device here.
 */
static inline bool test_begins(void)
{
	struct weir_context *context;
	int error = weir_context_open(test_context_name(), NULL, &context);

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	cmocka_set_skip_filter(getenv("WEIR_TEST_WITHOUT"));
	if (error == -ENODEV)
		printf("1..0 # SKIP %s\n", weir_last_error());
	if (!error)
		weir_context_close(context);
	return error != -ENODEV;
}

#endif
