/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever is not to be had while contexts, storages, caches, arrays and files are opened, used and closed:
 * the call that cannot go on says so in one sentence, nothing crashes or hangs, and all that was had is given
 * back.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/devices.h>
#include <weir/file.h>
#include <weir/weir.h>

#include "../rig/context.h"
#include "../rig/kernels.h"
#include "../rig/scarce.h"

/* SEEN_US: a watchdog looks at its controller in that time, if the machine has nothing else to do. */
enum { MOST_CALLS = 2000, CLOSED = 256, SEEN_US = 30000 };

static char path[] = "weir-scarce-XXXXXX";
static int file = -1;
static bool unsynced; /* fdatasync() fails */

/* A sentence that no call has but this one. */
static void forget_sentence(void)
{
	uint64_t bytes;

	(void)weir_parse_bytes("12Q", &bytes);
}

/* @error came of @what: 0, or with a sentence of its own. Return: @error. */
static int took(int error, const char *what)
{
	const char *says = weir_last_error();

	if (error > 0)
		fail_msg("%s returned %d", what, error);
	if (error < 0 && (strstr(says, "12Q") || strlen(says) < 10 || strchr(says, '\n')))
		fail_msg("%s failed (%d) without a sentence: \"%s\"", what, error,
			 strstr(says, "12Q") ? "" : says);
	forget_sentence();
	return error;
}

#define TOOK(call) took(call, #call)

/* Of a call that failed nothing stays in a context that goes on. */
static void kept_none(const struct weir_context *context, size_t before, const char *what)
{
	if (scarce_blocks(context) != before)
		fail_msg("%s failed, and %zu blocks of memory became %zu", what, before,
			 scarce_blocks(context));
}

/* What there is to open, over and over. Each uses a context, and returns 0 or what failed. */
static int use_storage(struct weir_context *context, const char *uri)
{
	struct weir_storage *storage = NULL;
	struct weir_stats stats = { .size = sizeof(stats) };
	static char block[16384];
	size_t before = scarce_blocks(context);
	int error = TOOK(
		weir_storage_open(context, uri, WEIR_OPTIONS(storage, .queues = 2, .depth = 8), &storage));

	if (error)
		assert_null(storage);
	if (error)
		kept_none(context, before, "weir_storage_open()");
	if (!error)
		error = TOOK(weir_storage_write(storage, 4096, block, sizeof(block)));
	if (!error)
		error = TOOK(weir_storage_read(storage, 8192, block, sizeof(block)));
	if (!error)
		error = TOOK(weir_storage_flush(storage));
	if (!error)
		error = TOOK(weir_stats(storage, &stats));
	if (storage && error)
		usleep(SEEN_US);
	weir_storage_close(storage);
	return error;
}

static int use_arrays(struct weir_context *context, struct weir_cache *cache,
		      struct weir_storage *const *storages)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };
	struct weir_share_stats shared = { .size = sizeof(shared) };
	struct weir_array array;
	struct weir_writer writer;
	size_t before = scarce_blocks(context);
	int error = TOOK(weir_share_create(cache, WEIR_OPTIONS(share, .entries = 64)));

	if (error)
		kept_none(context, before, "weir_share_create()");
	if (!error)
		error = TOOK(weir_writer_open(cache, storages, 2, WEIR_OPTIONS(array, .element_bytes = 8),
					      &writer));
	if (!error)
		error = TOOK(
			weir_array_open(cache, storages, 2, WEIR_OPTIONS(array, .element_bytes = 4), &array));
	if (!error)
		error = TOOK(weir_array_flush(cache, &array, 0, 100, 1));
	if (!error)
		error = TOOK(weir_array_invalidate(cache, &array, 0, 100));
	if (!error)
		error = TOOK(weir_cache_flush(cache, 1));
	if (!error)
		error = TOOK(weir_cache_stats(cache, &stats));
	if (!error)
		error = TOOK(weir_share_stats(cache, &shared));
	if (!error)
		error = TOOK(weir_share_destroy(cache));
	return error;
}

static int use_cache(struct weir_context *context, const char *unused)
{
	struct weir_storage *storages[2] = { NULL, NULL };
	struct weir_cache *cache = NULL;
	int error = 0, end;
	size_t before;

	(void)unused;
	for (unsigned i = 0; i < 2 && !error; i++)
		error = TOOK(weir_storage_open(context, "virt:1M",
					       WEIR_OPTIONS(storage, .queues = 1, .depth = 8), &storages[i]));
	before = scarce_blocks(context);
	if (!error) {
		error = TOOK(weir_cache_create(
			context, WEIR_OPTIONS(cache, .lines = 16, .tier_bytes = 64 << 10), &cache));
		if (error)
			kept_none(context, before, "weir_cache_create()");
	}
	if (!error)
		error = use_arrays(context, cache, storages);
	end = TOOK(weir_cache_destroy(cache));
	weir_storage_close(storages[1]);
	weir_storage_close(storages[0]);
	return error ? error : end;
}

static int use_launch(struct weir_context *context, const char *unused)
{
	struct test_count_args args = { .adds = 3 };
	uint64_t chain = 0;
	int error = TOOK(weir_alloc(context, sizeof(struct test_verdict), &args.verdict));

	(void)unused;
	if (!error)
		error = TOOK(weir_chain_create(context, WEIR_OPTIONS(chain, .lanes = 10), &chain));
	for (unsigned i = 0; i < 2 && !error; i++, args.launch++)
		error = TOOK(weir_launch(context, "test_count", 3, 16, &args, sizeof(args)));
	if (!error)
		error = TOOK(weir_sync(context));
	return error;
}

static int use_requests(struct weir_context *context, struct weir_registration *registration)
{
	struct weir_file_io io[4];
	struct weir_file_batch *batch;
	struct weir_file_stats stats = { .size = sizeof(stats) };
	int error = TOOK(weir_file_attach(context, file));
	ssize_t did;

	if (!error)
		error = (did = weir_file_read(registration, file, 100000, 5, 3)) < 0 ? TOOK((int)did) : 0;
	for (unsigned i = 0; i < 4; i++)
		io[i] = (struct weir_file_io){ .registration = registration,
					       .file = file,
					       .bytes = 4096,
					       .at = i * 4096,
					       .offset = i * 8192,
					       .operation = i % 2 ? WEIR_FILE_WRITE : WEIR_FILE_READ };
	if (!error)
		error = TOOK(weir_file_batch(context, io, 4));
	if (!error)
		error = TOOK(weir_file_submit(context, io, 4, &batch));
	if (!error)
		error = TOOK(weir_file_wait(batch));
	if (!error)
		error = TOOK(weir_file_enqueue(context, NULL, io, 4));
	if (!error)
		error = TOOK(weir_sync(context));
	if (!error)
		error = TOOK(weir_file_stats(context, &stats));
	(void)weir_file_detach(context, file);
	return error;
}

static int use_files(struct weir_context *context, const char *unused)
{
	struct weir_registration *registration = NULL;
	uint64_t buffer = 0;
	void *host;
	int error = TOOK(weir_alloc_host(context, 1 << 20, &buffer, &host));

	(void)unused;
	if (!error)
		error = TOOK(weir_register(context, buffer, 1 << 20, NULL, &registration));
	if (!error)
		error = use_requests(context, registration);
	if (weir_deregister(registration) == 0)
		(void)weir_free(context, buffer);
	return error;
}

static int (*use)(struct weir_context *context, const char *uri);
static const char *used_uri;
static uint32_t used_service;

static int use_context(void)
{
	struct weir_context *context = NULL;
	int error = TOOK(weir_context_open(
		"cpu",
		WEIR_OPTIONS(context, .workers = 2, .resident_lanes = 64, .service_waves = used_service),
		&context));

	if (error)
		assert_null(context);
	else
		error = use(context, used_uri);
	weir_context_close(context);
	return error;
}

static unsigned open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

/*
 * The library remembers the objects closed last, so that their use is refused. From here on it remembers as
 * many as it ever will, and one more that is closed makes one go.
 */
static void keep_closed(void)
{
	static bool done;

	scarce_begin(0, false); /* so that what they keep counts */
	for (unsigned i = 0; i < CLOSED && !done; i++) {
		struct weir_gpus *gpus = NULL;

		if (weir_gpus_open(&gpus))
			fail_msg("%s", weir_last_error());
		weir_gpus_close(gpus);
	}
	(void)scarce_end();
	done = true;
}

/* One time, with call @nth refused. Return: how many calls there were. */
static size_t once(size_t nth, bool and_later, int *error)
{
	size_t kept, were, where = 0, before = scarce_kept(&where);
	unsigned files = open_files();

	scarce_begin(nth, and_later);
	*error = use_context();
	were = scarce_end();
	kept = scarce_kept(&where);
	if (kept != before)
		fail_msg("call %zu refused%s: %zu things are kept, one asked for at %#zx of the library", nth,
			 and_later ? " and all later" : "", kept - before, where);
	if (open_files() != files)
		fail_msg("call %zu refused%s: %u files stay open", nth, and_later ? " and all later" : "",
			 open_files() - files);
	return were;
}

/* Each in its turn, until there are no more; and all from each on. */
static void each_refused(int (*what)(struct weir_context *, const char *), const char *uri, uint32_t service)
{
	size_t refused = 0;
	int error;

	use = what;
	used_uri = uri;
	used_service = service;
	keep_closed();
	once(0, false, &error); /* what the process has once and for all */
	if (error)
		fail_msg("nothing was refused, and it failed (%d)", error);
	for (unsigned mode = 0; mode < 2; mode++)
		for (size_t nth = 1; once(nth, mode, &error) >= nth; nth++) {
			assert_true(nth < MOST_CALLS);
			refused += error != 0;
		}
	assert_true(refused > 5); /* some can be done without: that is said, or costs speed */
}

static void test_contexts(void **state)
{
	(void)state;
	each_refused(use_launch, NULL, 0);
}

static void test_virtual_storages(void **state)
{
	(void)state;
	each_refused(use_storage, "virt:1M", 0);
	each_refused(use_storage, "virt:1M?mover=pull&shadow=on&threads=2", 1);
}

/* One that storages may share, its contents from a file, with shadow doorbells that a thread rings. */
static void test_shared_controllers(void **state)
{
	char uri[128];

	(void)state;
	snprintf(uri, sizeof(uri), "virt:?load=%s&controller=scarce&queue_pairs=2&shadow=on&doorbell=host",
		 path);
	each_refused(use_storage, uri, 0);
}

static void test_storages_of_files(void **state)
{
	char uri[64];

	(void)state;
	snprintf(uri, sizeof(uri), "file:%s", path);
	each_refused(use_storage, uri, 0);
}

/* In the place of the system's: disks that make nothing durable. */
int fdatasync(int descriptor)
{
	if (!unsynced)
		return (int)syscall(SYS_fdatasync, descriptor);
	errno = EIO;
	return -1;
}

/* A storage that cannot be opened says why, and not that its controller then failed to shut down. */
static void test_first_sentence_stays(void **state)
{
	struct weir_context *context = NULL;
	struct weir_storage *storage = NULL;
	size_t calls = 0, refused = 0;
	char uri[64];

	(void)state;
	snprintf(uri, sizeof(uri), "file:%s?engine=threads", path);
	assert_int_equal(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &context), 0);
	unsynced = true;
	for (size_t nth = 1; calls + 1 >= nth; nth++) {
		int error;

		scarce_begin(nth, false);
		error = weir_storage_open(context, uri, WEIR_OPTIONS(storage, .queues = 1, .depth = 8),
					  &storage);
		calls = scarce_end();
		refused += error != 0;
		if (error && strstr(weir_last_error(), "shutdown"))
			fail_msg("call %zu refused: \"%s\"", nth, weir_last_error());
		weir_storage_close(storage);
	}
	unsynced = false;
	assert_true(refused > 5);
	assert_int_equal(weir_context_close(context), 0);
}

static void test_caches(void **state)
{
	(void)state;
	each_refused(use_cache, NULL, 0);
}

static void test_files(void **state)
{
	(void)state;
	each_refused(use_files, NULL, 0);
}

static int set_up(void **state)
{
	(void)state;
	file = mkstemp(path);
	return file < 0 || ftruncate(file, 1 << 20) ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(file);
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contexts),
		cmocka_unit_test(test_virtual_storages),
		cmocka_unit_test(test_shared_controllers),
		cmocka_unit_test(test_storages_of_files),
		cmocka_unit_test(test_first_sentence_stays),
		cmocka_unit_test(test_caches),
		cmocka_unit_test(test_files),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("scarce", tests, set_up, tear_down);
}
