/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * debug/stat_fixture.c: a process for weir-stat to look at; stat_test.sh starts and ends it.
 *
 * stat_fixture load URI...: a context for each, lanes that write and read the first for ever
 * stat_fixture read COUNT URI [FIRST]: a lane reads COUNT blocks from FIRST (0) on, one at a time, and waits
 * ten minutes for each
 * stat_fixture churn URI: a storage that is opened and closed for ever
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

#include "../rig/kernels.h"

enum { BLOCK = 512, QUEUES = 3, DEPTH = 8, BLOCKS = 2, THREADS = 8, OUTSTANDING = 2, SPAN = 4096 };

static void must(int error)
{
	if (!error)
		return;
	fprintf(stderr, "stat_fixture: %s\n", weir_last_error());
	exit(1);
}

static void open_storage(struct weir_context *context, const char *uri, struct weir_storage **storage)
{
	must(weir_storage_open(context, uri,
			       WEIR_OPTIONS(storage, .queues = QUEUES, .depth = DEPTH,
					    .timeout_us = (uint64_t)600 * 1000000),
			       storage));
}

static void open_fixture(const char *uri, struct weir_context **context, struct weir_storage **storage)
{
	must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 2), context));
	open_storage(*context, uri, storage);
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void run_load(struct weir_context *context, struct weir_storage *storage)
{
	uint64_t requests = (uint64_t)BLOCKS * THREADS * OUTSTANDING;
	struct test_blocks_args args = { .disk_count = 1,
					 .blocks = 1,
					 .span = SPAN,
					 .outstanding = OUTSTANDING,
					 .rounds = 50,
					 .path = WEIR_PATH_DIRECT };

	must(weir_storage_disk(storage, &args.disk[0]));
	must(weir_alloc(context, requests * args.span, &args.buffers));
	must(weir_alloc(context, requests * sizeof(struct weir_event), &args.events));
	must(weir_alloc(context, sizeof(struct test_verdict), &args.verdict));
	for (;;) {
		must(weir_launch(context, "test_blocks", BLOCKS, THREADS, &args, sizeof(args)));
		must(weir_sync(context));
	}
}

static void run_reads(struct weir_context *context, struct weir_storage *storage, uint64_t first,
		      uint64_t count)
{
	struct test_request_args args = { .opcode = NVME_OPCODE_READ, .lba = first, .blocks = 1 };

	must(weir_storage_disk(storage, &args.disk));
	must(weir_alloc(context, BLOCK, &args.buffer));
	must(weir_alloc(context, sizeof(struct weir_event), &args.event));
	must(weir_alloc(context, 2 * sizeof(uint32_t), &args.statuses));
	for (; args.lba < first + count; args.lba++) {
		must(weir_launch(context, "test_request", 1, 1, &args, sizeof(args)));
		(void)weir_sync(context);
	}
}

int main(int argc, char **argv)
{
	struct weir_context *context, *other;
	struct weir_storage *storage, *second;
	struct weir_cache *cache;

	if (argc >= 3 && !strcmp(argv[1], "load")) {
		open_fixture(argv[2], &context, &storage);
		must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 64, .line_bytes = BLOCK),
				       &cache));
		for (int i = 3; i < argc; i++)
			open_fixture(argv[i], &other, &second);
		ready();
		run_load(context, storage);
	}
	if (argc >= 4 && argc <= 5 && !strcmp(argv[1], "read")) {
		open_fixture(argv[3], &context, &storage);
		ready();
		run_reads(context, storage, argc == 5 ? strtoull(argv[4], NULL, 10) : 0,
			  strtoull(argv[2], NULL, 10));
		weir_storage_close(storage);
		weir_context_close(context);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "churn")) {
		open_fixture(argv[2], &context, &storage);
		ready();
		for (;;) {
			open_storage(context, argv[2], &second);
			nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
			weir_storage_close(second);
			nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
		}
	}
	fprintf(stderr, "stat_fixture: load URI..., read COUNT URI [FIRST] or churn URI\n");
	return 2;
}
