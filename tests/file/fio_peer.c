/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fio_peer.c: what fio_test.sh has lanes do with files of fio's.
 *
 *   fio_peer copy|write|check blocks|array FROM-URI TO-URI UNIT
 *
 * copy: all bytes of FROM into TO. write: fio's pattern %o into TO. check: FROM holds it. Prints the number
 * of wrong words or failed requests; exit status 0 where that is 0, 1 where it is not, 2 after an error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "fio_kernels.h"

enum { BLOCKS = 4, THREADS = 32, CACHE_LINES = 64 };

static int fail(void)
{
	fprintf(stderr, "fio_peer: %s\n", weir_last_error());
	return 2;
}

static int open_storages(struct weir_context *context, char **uris, struct weir_storage *storages[2],
			 struct fio_args *args)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	int error = weir_storage_open(context, uris[0], WEIR_OPTIONS(storage, .read_only = 1), &storages[0]);

	if (!error)
		error = weir_storage_open(context, uris[1], NULL, &storages[1]);
	if (!error)
		error = weir_storage_disk(storages[0], &args->from);
	if (!error)
		error = weir_storage_disk(storages[1], &args->to);
	if (!error)
		error = weir_storage_info(storages[0], &info);
	args->words = info.bytes / 8;
	args->blocks = info.block_bytes ? info.bytes / info.block_bytes : 0;
	return error;
}

static int open_arrays(struct weir_context *context, struct weir_storage *storages[2],
		       struct weir_cache **cache, struct fio_args *args)
{
	const struct weir_array_options options = { .size = sizeof(options),
						    .element_bytes = 8,
						    .count = args->words };
	int error = weir_cache_create(context, WEIR_OPTIONS(cache, .lines = CACHE_LINES), cache);

	if (!error)
		error = weir_array_open(*cache, &storages[0], 1, &options, &args->source);
	return error ? error : weir_writer_open(*cache, &storages[1], 1, &options, &args->target);
}

static int run(struct weir_context *context, const char *kernel, struct weir_cache *cache,
	       struct fio_args *args, uint64_t *wrong)
{
	int error = weir_alloc(context, BLOCKS * THREADS * 4096, &args->buffers);

	if (!error)
		error = weir_alloc(context, BLOCKS * THREADS * sizeof(struct weir_event), &args->events);
	if (!error)
		error = weir_alloc(context, sizeof(*wrong), &args->wrong);
	if (!error)
		error = weir_launch(context, kernel, BLOCKS, THREADS, args, sizeof(*args));
	if (!error)
		error = weir_sync(context);
	if (!error)
		error = weir_cache_flush(cache, 1);
	return error ? error : weir_copy_from_device(context, wrong, args->wrong, sizeof(*wrong));
}

int main(int argc, char **argv)
{
	const char *device = getenv("WEIR_TEST_CONTEXT");
	struct weir_storage *storages[2] = { NULL, NULL };
	struct weir_context *context = NULL;
	struct weir_cache *cache = NULL;
	struct fio_args args;
	uint64_t wrong = 0;
	char kernel[64];
	int error;

	if (argc != 6)
		return 2;
	memset(&args, 0, sizeof(args));
	args.unit_bytes = strtoull(argv[5], NULL, 10);
	snprintf(kernel, sizeof(kernel), "fio_%s_%s", argv[1], argv[2]);
	error = weir_context_open(device ? device : "cpu", WEIR_OPTIONS(context, .workers = 2), &context);
	if (!error)
		error = open_storages(context, argv + 3, storages, &args);
	if (!error)
		error = open_arrays(context, storages, &cache, &args);
	if (!error)
		error = run(context, kernel, cache, &args, &wrong);
	if (error)
		error = fail();
	else
		printf("%llu wrong of %llu words\n", (unsigned long long)wrong,
		       (unsigned long long)args.words);
	weir_cache_destroy(cache);
	weir_storage_close(storages[1]);
	weir_storage_close(storages[0]);
	weir_context_close(context);
	return error ? error : wrong != 0;
}
