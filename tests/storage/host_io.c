/* SPDX-License-Identifier: BSD-3-Clause */
/* host_io.c: the host reads and writes: limits, faults, large storages, counts, and how long it waits. */
#include "host_cases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/disk.h>

#include "../rig/context.h"
#include "../rig/kernels.h"

/* The largest transfer is what the controller takes, and longer ones are split. */
void test_transfer_limits(void **state)
{
	static const struct {
		const char *uri;
		uint32_t wanted, expected;
	} cases[] = {
		{ "virt:1M?mdts=8192", 0, 8192 },  { "virt:1M?mdts=16K", 65536, 16384 },
		{ "virt:1M?mdts=1M", 0, 65536 },   { "virt:1M?mdts=1M", 1 << 20, 1 << 20 },
		{ "virt:1M", 1 << 20, 128 << 10 },
	};
	static unsigned char bytes[256 << 10], found[256 << 10];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7 >> 3);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_storage_info info = { .size = sizeof(info) };
		struct weir_stats stats = { .size = sizeof(stats) };
		struct weir_storage *out;

		must(weir_storage_open(context, cases[i].uri,
				       WEIR_OPTIONS(storage, .max_transfer_bytes = cases[i].wanted,
						    .timeout_us = test_patient_us(5000000)),
				       &out));
		must(weir_storage_info(out, &info));
		assert_int_equal(info.max_transfer_bytes, cases[i].expected);
		must(weir_storage_write(out, 512, bytes, sizeof(bytes)));
		memset(found, 0, sizeof(found));
		must(weir_storage_read(out, 512, found, sizeof(found)));
		assert_memory_equal(found, bytes, sizeof(bytes));
		must(weir_stats(out, &stats));
		assert_int_equal(stats.failed, 0);
		assert_int_equal(stats.commands,
				 2 * ((sizeof(bytes) + cases[i].expected - 1) / cases[i].expected));
		weir_storage_close(out);
	}
}

/* Lanes that move the data copy it from where the controller says: from the medium, or from staging. */
void test_zero_copy(void **state)
{
	static const struct {
		const char *uri;
		bool from_medium;
	} cases[] = {
		{ "virt:1M?mover=pull", true },
		{ "virt:1M?mover=pull&block=4096&zero_copy=on", true },
		{ "virt:1M?mover=pull&zero_copy=off", false },
		{ "virt:1M?mover=pull&fault=late:us=1:every=3", false },
	};
	static unsigned char bytes[256 << 10], found[256 << 10];
	struct weir_storage_info direct = { .size = sizeof(direct) };
	struct weir_storage *out;

	(void)state;
	must(weir_storage_open(context, "virt:1M", NULL, &out));
	must(weir_storage_info(out, &direct));
	weir_storage_close(out);
	if (!strncmp(direct.path, "direct", 6)) { /* the controller moves the data */
		assert_null(strstr(direct.path, ", zero copy"));
		refused(weir_storage_open(context, "virt:1M?zero_copy=on", NULL, &out), -ENOTSUP,
			"zero_copy=on", "mover=pull");
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 11 >> 3);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_storage_info info = { .size = sizeof(info) };

		must(weir_storage_open(context, cases[i].uri,
				       WEIR_OPTIONS(storage, .timeout_us = test_patient_us(5000000)), &out));
		must(weir_storage_info(out, &info));
		assert_int_equal(strstr(info.path, ", zero copy") != NULL, cases[i].from_medium);
		must(weir_storage_write(out, 8192, bytes, sizeof(bytes)));
		must(weir_storage_write(out, 16384, bytes, 4096));
		memset(found, 0xff, sizeof(found));
		must(weir_storage_read(out, 8192, found, sizeof(found)));
		assert_memory_equal(found, bytes, 8192);
		assert_memory_equal(found + 8192, bytes, 4096);
		assert_memory_equal(found + 12288, bytes + 12288, sizeof(bytes) - 12288);
		must(weir_storage_read(out, (1 << 20) - 4096, found, 4096));
		for (size_t at = 0; at < 4096; at++)
			assert_int_equal(found[at], 0);
		weir_storage_close(out);
	}
}

/* What of a medium of many TiB was never written holds its own address, to its end and in every size of
 * request. */
void test_many_tebibytes(void **state)
{
	static const uint64_t at[] = { 0,
				       ((uint64_t)1 << 32) - 512,
				       (uint64_t)1 << 32,
				       ((uint64_t)1 << 41) - 512,
				       (uint64_t)1 << 41,
				       ((uint64_t)1 << 44) + 4096,
				       ((uint64_t)300 << 40) - 4096 };
	enum { PLACES = sizeof(at) / sizeof(at[0]) };
	static uint64_t words[512];

	(void)state;
	for (unsigned block = 512; block <= 4096; block *= 8) {
		struct weir_storage_info info = { .size = sizeof(info) };
		struct weir_storage *out;
		char uri[64];

		snprintf(uri, sizeof(uri), "virt:300T?content=address&block=%u", block);
		must(weir_storage_open(context, uri,
				       WEIR_OPTIONS(storage, .timeout_us = test_patient_us(5000000)), &out));
		must(weir_storage_info(out, &info));
		assert_true(info.bytes == (uint64_t)300 << 40);
		for (unsigned i = 0; i < PLACES; i++) {
			uint64_t from = at[i] / block * block;

			must(weir_storage_read(out, from, words, sizeof(words)));
			for (unsigned w = 0; w < 512; w++)
				assert_true(words[w] == from + 8 * w);
		}
		for (unsigned i = 0; i < PLACES; i++) {
			memset(words, (int)i + 1, block);
			must(weir_storage_write(out, at[i] / block * block, words, block));
		}
		for (unsigned i = 0; i < PLACES; i++) {
			if (i + 1 < PLACES && at[i + 1] / block == at[i] / block)
				continue; /* the next one went over it */
			must(weir_storage_read(out, at[i] / block * block, words, block));
			assert_true(words[0] == 0x0101010101010101u * (i + 1) &&
				    words[block / 8 - 1] == words[0]);
		}
		refused(weir_storage_read(out, (uint64_t)300 << 40, words, block), -ERANGE, "reach past",
			"329853488332800");
		weir_storage_close(out);
	}
}

void test_host_io(void **state)
{
	static char block[1024];
	struct weir_storage *fixed;

	(void)state;
	refused(weir_storage_write(storage, 1, block, 512), -EINVAL, "offset 1", "512");
	refused(weir_storage_read(storage, 0, block, 100), -EINVAL, "100", "512");
	refused(weir_storage_write(storage, 1048064, block, 1024), -ERANGE, "1048064", "1048576");
	refused(weir_storage_write(storage, UINT64_MAX - 511, block, 1024), -ERANGE, "18446744073709551104",
		"1048576");
	must(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .read_only = 1), &fixed));
	assert_true(weir_storage_write(fixed, 0, block, 512) < 0);
	assert_non_null(strstr(weir_last_error(), "read-only"));
	weir_storage_close(fixed);
}

/* What the controller is told to do wrong arrives as what it is. */
void test_faults(void **state)
{
	static char block[4096];
	char path[] = "/tmp/weir-fault-XXXXXX", uri[128];
	struct weir_storage *faulty;
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0 && !ftruncate(file, 1 << 20));
	must(weir_storage_open(context, "virt:1M?fault=status:code=0x281", NULL, &faulty));
	refused(weir_storage_read(faulty, 0, block, 512), -EIO, "NVMe status 2:81", "unrecovered read");
	weir_storage_close(faulty);
	snprintf(uri, sizeof(uri), "file:%s?fault=status:code=0x280:op=write:lba=1:count=1,late:us=200",
		 path);
	must(weir_storage_open(context, uri, NULL, &faulty));
	must(weir_storage_write(faulty, 0, block, 4096));
	refused(weir_storage_write(faulty, 4096, block, 4096), -EIO, "NVMe status 2:80", "write fault");
	must(weir_storage_write(faulty, 4096, block, 4096));
	weir_storage_close(faulty);
	close(file);
	unlink(path);
}

/* One command of many fails, be it the first of its lane or of another lane: all of it is told. */
void test_faults_among_many(void **state)
{
	static const unsigned blocks[] = { 0, 8 * 3, 8 * 70 };
	static char bytes[1 << 20];
	enum { LARGE = 17 << 20 }; /* more than the host moves in two goes */
	struct weir_storage *faulty;
	char uri[128], *large = calloc(1, LARGE);

	(void)state;
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		snprintf(uri, sizeof(uri), "virt:1M?block=512&fault=status:code=0x281:op=read:lba=%u:count=1",
			 blocks[i]);
		must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .max_transfer_bytes = 4096),
				       &faulty));
		refused(weir_storage_read(faulty, 0, bytes, sizeof(bytes)), -EIO, "NVMe status 2:81",
			"unrecovered read");
		must(weir_storage_read(faulty, 0, bytes, sizeof(bytes)));
		weir_storage_close(faulty);
	}
	for (unsigned writes = 0; writes < 2; writes++) { /* what comes behind goes well, and hides nothing */
		snprintf(uri, sizeof(uri), "virt:32M?block=512&fault=status:code=0x28%u:op=%s:lba=0:count=1",
			 !writes, writes ? "write" : "read");
		must(weir_storage_open(context, uri, NULL, &faulty));
		refused(writes ? weir_storage_write(faulty, 0, large, LARGE)
			       : weir_storage_read(faulty, 0, large, LARGE),
			-EIO, uri, writes ? "NVMe status 2:80" : "NVMe status 2:81");
		must(weir_storage_read(faulty, 0, large, LARGE));
		weir_storage_close(faulty);
	}
	free(large);
	must(weir_storage_open(context, "virt:1M?fault=status:code=0x6:op=flush:count=1", NULL, &faulty));
	refused(weir_storage_flush(faulty), -EIO, "flush", "internal error");
	must(weir_storage_flush(faulty));
	weir_storage_close(faulty);
}

/* What was asked for is what lanes are told. */
void test_times(void **state)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	struct weir_storage *out;
	struct weir_disk disk;

	(void)state;
	must(weir_storage_open(context, "virt:1M?mdts=8K",
			       WEIR_OPTIONS(storage, .timeout_us = 1234567, .max_transfer_bytes = 65536),
			       &out));
	must(weir_storage_disk(out, &disk));
	assert_int_equal(disk.timeout_ns, 1234567000);
	must(weir_storage_info(out, &info));
	assert_int_equal(info.max_transfer_bytes, 8192);
	assert_int_equal(disk.max_blocks << disk.block_log2, 8192);
	weir_storage_close(out);
}

/* Without a limit of their own lanes wait for two tries and what is done between them, 30 s at least. */
void test_default_times(void **state)
{
	static const struct {
		const char *uri;
		uint64_t command_us, lane_s;
	} cases[] = {
		{ "virt:1M", 0, 75 },           { "virt:1M", 60000000, 135 },
		{ "virt:1M", 1000000, 30 },     { "virt:1M?timeout_ms=0", 0, 30 },
		{ "virt:1M", 600000000, 1215 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_storage *out;
		struct weir_disk disk;

		must(weir_storage_open(context, cases[i].uri,
				       WEIR_OPTIONS(storage, .command_timeout_us = cases[i].command_us),
				       &out));
		must(weir_storage_disk(out, &disk));
		assert_int_equal(disk.timeout_ns, cases[i].lane_s * 1000000000);
		must(weir_storage_close(out));
	}
}

void test_counts(void **state)
{
	struct weir_stats before = { .size = sizeof(before) }, after = { .size = sizeof(after) };
	static char bytes[8192];

	(void)state;
	must(weir_stats(storage, &before));
	must(weir_storage_write(storage, 0, bytes, 8192));
	must(weir_storage_read(storage, 0, bytes, 512));
	must(weir_stats(storage, &after));
	assert_int_equal(after.bytes_written - before.bytes_written, 8192);
	assert_int_equal(after.bytes_read - before.bytes_read, 512);
	assert_int_equal(after.commands - before.commands, 2);
}

/* More blocks than 2^32, and more bytes at a time than the host moves in one go. */
void test_large_storage(void **state)
{
	const size_t bytes = (8 << 20) + 4096;
	const uint64_t size = (uint64_t)3 << 40,
		       ends[] = { 0, (uint64_t)1 << 32, (uint64_t)1 << 41, size - bytes };
	struct weir_storage_info info = { .size = sizeof(info) };
	uint64_t *words = malloc(bytes);
	struct weir_storage *large;

	(void)state;
	must(weir_storage_open(context, "virt:3T?block=512",
			       WEIR_OPTIONS(storage, .timeout_us = test_patient_us(60000000)), &large));
	must(weir_storage_info(large, &info));
	assert_true(info.bytes == size);
	for (size_t i = 0; i < 4; i++) {
		for (size_t w = 0; w < bytes / 8; w++)
			words[w] = ends[i] + w * 8 + 1;
		must(weir_storage_write(large, ends[i], words, bytes));
	}
	for (size_t i = 0; i < 4; i++) {
		must(weir_storage_read(large, ends[i], words, bytes));
		for (size_t w = 0; w < bytes / 8; w++)
			assert_true(words[w] == ends[i] + w * 8 + 1);
	}
	weir_storage_close(large);
	free(words);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Return: how long it takes from opening a storage whose controller fails to the end of its closing. */
static uint64_t fail_and_close(void)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	struct weir_storage *out;
	uint8_t block[512];

	must(weir_storage_open(context, "virt:1M?fault=fatal",
			       WEIR_OPTIONS(storage, .timeout_us = test_patient_us(60000000)), &out));
	refused(weir_storage_read(out, 0, block, 512), -EIO, "virt:1M?fault=fatal", "the controller failed");
	weir_storage_close(out);
	return clock_ns(CLOCK_MONOTONIC) - begin;
}

/*
 * A controller that failed neither answers nor makes its storage's end wait for answers: 10 s a command for
 * the admin queue alone. On a machine with other work all of it may take as long, but not each time.
 */
void test_failed_controller(void **state)
{
	const uint64_t limit_ns = 8000000000;
	uint64_t taken_ns = limit_ns;

	(void)state;
	for (unsigned tries = 0; tries < 5 && taken_ns >= limit_ns; tries++)
		taken_ns = fail_and_close();
	assert_true(taken_ns < limit_ns);
}

/*
 * A completion comes late, or never. Workers, those that have no lane and the lane's, leave the core to
 * others until the deadline, and so does the controller: on a busy machine they take less still. What other
 * threads of this process take is small beside it, and measured by the same wait without a lane.
 */
static void check_long_wait(const char *uri, unsigned workers)
{
	struct test_request_args args = { .opcode = NVME_OPCODE_READ, .blocks = 1, .timeout_us = 1000000 };
	struct weir_context *waiting;
	struct weir_storage *silent;
	uint64_t begun, spent, others;
	uint32_t statuses[2];

	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = workers), &waiting));
	must(weir_storage_open(waiting, uri, WEIR_OPTIONS(storage, .timeout_us = 10), &silent));
	must(weir_storage_disk(silent, &args.disk));
	must(weir_alloc(waiting, 4096, &args.buffer));
	must(weir_alloc(waiting, 4096, &args.event));
	args.statuses = args.event + 2048;
	others = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	others = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - others;
	begun = clock_ns(CLOCK_MONOTONIC);
	spent = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	must(weir_launch(waiting, "test_request", 1, 1, &args, sizeof(args)));
	must(weir_sync(waiting));
	spent = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - spent;
	begun = clock_ns(CLOCK_MONOTONIC) - begun;
	must(weir_copy_from_device(waiting, statuses, args.statuses, sizeof(statuses)));
	assert_int_equal(statuses[0], WEIR_E_TIMEOUT);
	weir_storage_close(silent);
	must(weir_free(waiting, args.buffer));
	must(weir_free(waiting, args.event));
	weir_context_close(waiting);
	if (spent > begun / 2 + 2 * others)
		fail_msg("%s, %u workers: a wait of %llu us took %llu us of processor time", uri, workers,
			 (unsigned long long)begun / 1000, (unsigned long long)spent / 1000);
}

void test_a_long_wait_sleeps(void **state)
{
	(void)state;
	if (!test_on_cpu())
		skip();
	check_long_wait("virt:1M?fault=drop", 1);
	check_long_wait("virt:1M?fault=drop", 3);
	check_long_wait("virt:1M?fault=late:us=1000000000", 1);
}
