/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lifetime_calls.c: every public call with handles that are NULL, closed, or of another kind.
 *
 * The table of calls has a row for every function that the library exports (exported.h has the list).
 */
#include "lifetime_cases.h"

#include <errno.h>
#include <string.h>

#include <weir/file.h>

#include "../rig/context.h"
#include "exported.h"
#include "lifetime.h"

/** struct handles - one of each kind, all open or all closed */
struct handles {
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_cache *cache;
	struct weir_registration *registration;
	struct weir_file_batch *batch;
	struct weir_gpus *gpus;
	struct weir_buffer_pool *pool;
};

static struct handles live, dead, none;
static struct weir_array array_of_live;
static struct weir_unaligned unaligned_of_live;
static struct weir_writer writer_of_live;
static uint64_t memory_of_live, word;
static char bytes_of_host[4096];
static void *host_view;
static enum weir_policy policy_of_name;
static struct weir_file_io request;

/** struct sized - room for what calls fill in; each begins with its size */
static union {
	size_t size;
	struct weir_device device;
	struct weir_gpu gpu;
	struct weir_gpu_disk gpu_disk;
	struct weir_context_info context;
	struct weir_storage_info storage;
	struct weir_cache_stats cache;
	struct weir_share_stats share;
	struct weir_stats stats;
	struct weir_kernel_info kernel;
	struct weir_registration_info registration;
	struct weir_file_route route;
	struct weir_file_stats files;
	struct weir_pool_stats pool;
	char bytes[1024];
} out;

static void *pointer; /* that calls set */

#define CALL(name, handle, expression)                                                                       \
	static int64_t name##_of(const struct handles *h)                                                    \
	{                                                                                                    \
		(void)h;                                                                                     \
		return (int64_t)(expression);                                                                \
	}
#define ARRAY_OPTIONS WEIR_OPTIONS(array, .element_bytes = 8)
#define HANDLE_CALLS(X)                                                                                      \
	X(weir_context_close, context, weir_context_close(h->context))                                       \
	X(weir_context_info, context, weir_context_info(h->context, &out.context))                           \
	X(weir_alloc, context, weir_alloc(h->context, 1, &word))                                             \
	X(weir_alloc_host, context, weir_alloc_host(h->context, 1, &word, &host_view))                       \
	X(weir_free, context, weir_free(h->context, memory_of_live))                                         \
	X(weir_copy_to_device, context, weir_copy_to_device(h->context, memory_of_live, bytes_of_host, 8))   \
	X(weir_copy_from_device, context,                                                                    \
	  weir_copy_from_device(h->context, bytes_of_host, memory_of_live, 8))                               \
	X(weir_storage_open, context,                                                                        \
	  weir_storage_open(h->context, "virt:1M", NULL, (struct weir_storage **)&pointer))                  \
	X(weir_storage_close, storage, weir_storage_close(h->storage))                                       \
	X(weir_storage_info, storage, weir_storage_info(h->storage, &out.storage))                           \
	X(weir_storage_disk, storage, weir_storage_disk(h->storage, (struct weir_disk *)bytes_of_host))      \
	X(weir_storage_read, storage, weir_storage_read(h->storage, 0, bytes_of_host, 4096))                 \
	X(weir_storage_write, storage, weir_storage_write(h->storage, 0, bytes_of_host, 4096))               \
	X(weir_storage_flush, storage, weir_storage_flush(h->storage))                                       \
	X(weir_stats, storage, weir_stats(h->storage, &out.stats))                                           \
	X(weir_cache_create, context,                                                                        \
	  weir_cache_create(h->context, WEIR_OPTIONS(cache, .lines = 4), (struct weir_cache **)&pointer))    \
	X(weir_cache_destroy, cache, weir_cache_destroy(h->cache))                                           \
	X(weir_cache_stats, cache, weir_cache_stats(h->cache, &out.cache))                                   \
	X(weir_cache_flush, cache, weir_cache_flush(h->cache, 1))                                            \
	X(weir_array_open, cache,                                                                            \
	  weir_array_open(h->cache, &live.storage, 1, ARRAY_OPTIONS, &array_of_live))                        \
	X(weir_unaligned_open, cache,                                                                        \
	  weir_unaligned_open(h->cache, &live.storage, 1, ARRAY_OPTIONS, &unaligned_of_live))                \
	X(weir_writer_open, cache,                                                                           \
	  weir_writer_open(h->cache, &live.storage, 1, ARRAY_OPTIONS, &writer_of_live))                      \
	X(weir_array_flush, cache, weir_array_flush(h->cache, &array_of_live, 0, 1, 0))                      \
	X(weir_array_invalidate, cache, weir_array_invalidate(h->cache, &array_of_live, 0, 1))               \
	X(weir_share_create, cache, weir_share_create(h->cache, NULL))                                       \
	X(weir_share_destroy, cache, weir_share_destroy(h->cache))                                           \
	X(weir_share_stats, cache, weir_share_stats(h->cache, &out.share))                                   \
	X(weir_launch, context,                                                                              \
	  weir_launch(h->context, "lifetime_put", 1, 1, bytes_of_host, sizeof(struct lifetime_put_args)))    \
	X(weir_launch_on, context,                                                                           \
	  weir_launch_on(h->context, NULL, "lifetime_put", 1, 1, bytes_of_host,                              \
			 sizeof(struct lifetime_put_args)))                                                  \
	X(weir_sync, context, weir_sync(h->context))                                                         \
	X(weir_kernel_info, context, weir_kernel_info(h->context, "lifetime_put", &out.kernel))              \
	X(weir_chain_create, context, weir_chain_create(h->context, WEIR_OPTIONS(chain, .lanes = 1), &word)) \
	X(weir_chain_report, context, weir_chain_report(h->context, memory_of_live, NULL, 0))                \
	X(weir_register, context,                                                                            \
	  weir_register(h->context, memory_of_live, 8, NULL, (struct weir_registration **)&pointer))         \
	X(weir_deregister, registration, weir_deregister(h->registration))                                   \
	X(weir_registration_info, registration, weir_registration_info(h->registration, &out.registration))  \
	X(weir_file_read, registration, weir_file_read(h->registration, 0, 1, 0, 0))                         \
	X(weir_file_write, registration, weir_file_write(h->registration, 0, 1, 0, 0))                       \
	X(weir_file_route, registration, weir_file_route(h->registration, 0, &out.route))                    \
	X(weir_file_attach, context, weir_file_attach(h->context, 0))                                        \
	X(weir_file_detach, context, weir_file_detach(h->context, 0))                                        \
	X(weir_file_batch, context, weir_file_batch(h->context, &request, 1))                                \
	X(weir_file_submit, context,                                                                         \
	  weir_file_submit(h->context, &request, 1, (struct weir_file_batch **)&pointer))                    \
	X(weir_file_enqueue, context, weir_file_enqueue(h->context, NULL, &request, 1))                      \
	X(weir_file_stats, context, weir_file_stats(h->context, &out.files))                                 \
	X(weir_file_wait, batch, weir_file_wait(h->batch))                                                   \
	X(weir_file_ended, batch, weir_file_ended(h->batch) == SIZE_MAX ? -EINVAL : 0)                       \
	X(weir_gpus_close, gpus, weir_gpus_close(h->gpus))                                                   \
	X(weir_gpu_at, gpus, weir_gpu_at(h->gpus, 0, &out.gpu))                                              \
	X(weir_gpu_disk_at, gpus, weir_gpu_disk_at(h->gpus, 0, 0, &out.gpu_disk))                            \
	X(weir_pool_create, context,                                                                         \
	  weir_pool_create(h->context, NULL, (struct weir_buffer_pool **)&pointer))                          \
	X(weir_pool_serve, pool, weir_pool_serve(h->pool, 0))                                                \
	X(weir_pool_address, pool, weir_pool_address(h->pool) ? 0 : -EINVAL)                                 \
	X(weir_pool_stats, pool, weir_pool_stats(h->pool, &out.pool))                                        \
	X(weir_pool_destroy, pool, weir_pool_destroy(h->pool))
HANDLE_CALLS(CALL)

/** struct call - a public function, called with handles; those that close take NULL */
struct call {
	const char *name;
	size_t handle; /* which one of struct handles */
	int64_t (*call)(const struct handles *handles);
};

#define ROW(name, handle, expression) { #name, offsetof(struct handles, handle), name##_of },
static const struct call calls[] = { HANDLE_CALLS(ROW) };

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static bool takes_null(const char *name)
{
	static const char *const closing[] = { "weir_context_close", "weir_storage_close",
					       "weir_cache_destroy", "weir_deregister",
					       "weir_gpus_close",    "weir_pool_destroy" };

	for (size_t i = 0; i < sizeof(closing) / sizeof(closing[0]); i++)
		if (!strcmp(name, closing[i]))
			return true;
	return false;
}

static void open_handles(struct handles *h)
{
	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1), &h->context));
	must(weir_storage_open(h->context, "virt:1M", WEIR_OPTIONS(storage, .queues = 1), &h->storage));
	must(weir_cache_create(h->context, WEIR_OPTIONS(cache, .lines = 4), &h->cache));
	must(weir_array_open(h->cache, &h->storage, 1, ARRAY_OPTIONS, &array_of_live));
	must(weir_alloc(h->context, 4096, &memory_of_live));
	must(weir_register(h->context, memory_of_live, 4096, NULL, &h->registration));
	must(weir_file_submit(h->context, NULL, 0, &h->batch));
	must(weir_gpus_open(&h->gpus));
	must(weir_pool_create(h->context, WEIR_OPTIONS(pool, .bytes = 1), &h->pool));
}

/* By their parent, but for what has none, or must go before it. */
static void close_handles(struct handles *h)
{
	must(weir_pool_destroy(h->pool));
	must(weir_context_close(h->context));
	must(weir_gpus_close(h->gpus));
}

int set_up_handles(void **state)
{
	(void)state;
	out.size = sizeof(out);
	open_handles(&live);
	return 0;
}

/* Those closed last are told by name; of those before it is only known that they are not open. */
static void make_dead(void)
{
	struct weir_array array = array_of_live;
	uint64_t memory = memory_of_live;

	open_handles(&dead);
	close_handles(&dead);
	array_of_live = array;
	memory_of_live = memory;
}

int tear_down_handles(void **state)
{
	(void)state;
	close_handles(&live);
	return 0;
}

void test_null_handles(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CALLS; i++) {
		int64_t result = calls[i].call(&none);

		if (takes_null(calls[i].name) && result)
			fail_msg("%s(NULL) is %lld", calls[i].name, (long long)result);
		else if (!takes_null(calls[i].name))
			refused(result, -EINVAL, calls[i].name, "NULL");
	}
}

void test_closed_handles(void **state)
{
	(void)state;
	make_dead();
	for (unsigned i = 0; i < CALLS; i++)
		refused(calls[i].call(&dead), -EINVAL, calls[i].name, "is closed already");
}

/* In the place of each handle one of another kind; and one that was never any. */
void test_wrong_handles(void **state)
{
	struct handles wrong = { (void *)live.storage, (void *)live.cache,        (void *)live.storage,
				 (void *)live.context, (void *)live.registration, (void *)live.cache,
				 (void *)live.gpus };
	struct handles strange = { (void *)bytes_of_host, (void *)bytes_of_host, (void *)bytes_of_host,
				   (void *)bytes_of_host, (void *)bytes_of_host, (void *)bytes_of_host,
				   (void *)bytes_of_host };

	(void)state;
	make_dead();
	for (unsigned i = 0; i < CALLS; i++) {
		refused(calls[i].call(&wrong), -EINVAL, calls[i].name, "was given a ");
		refused(calls[i].call(&strange), -EINVAL, calls[i].name, "there is no such");
	}
	/* Other storages' handles in a list. */
	refused(weir_array_open(live.cache, &dead.storage, 1, ARRAY_OPTIONS, &array_of_live), -EINVAL,
		"weir_array_open", "closed");
	refused(weir_array_open(live.cache, &none.storage, 1, ARRAY_OPTIONS, &array_of_live), -EINVAL,
		"weir_array_open", "NULL");
	refused(weir_unaligned_open(live.cache, &dead.storage, 1, ARRAY_OPTIONS, &unaligned_of_live), -EINVAL,
		"weir_unaligned_open", "closed");
	refused(weir_writer_open(live.cache, &dead.storage, 1, ARRAY_OPTIONS, &writer_of_live), -EINVAL,
		"weir_writer_open", "closed");
}

/* NULL for what a call needs beside its handle. */
void test_null_arguments(void **state)
{
	struct weir_context *c = live.context;
	struct weir_storage *s = live.storage;
	struct weir_cache *k = live.cache;
	struct weir_registration *r = live.registration;

	(void)state;
#define NULL_IN(name, ...) refused(name(__VA_ARGS__), -EINVAL, #name, "NULL")
	NULL_IN(weir_device_at, 0, NULL);
	NULL_IN(weir_gpus_open, NULL);
	NULL_IN(weir_gpu_at, live.gpus, 0, NULL);
	NULL_IN(weir_gpu_disk_at, live.gpus, 0, 0, NULL);
	NULL_IN(weir_context_open, "cpu", NULL, NULL);
	NULL_IN(weir_context_open, NULL, NULL, (struct weir_context **)&pointer);
	NULL_IN(weir_context_info, c, NULL);
	NULL_IN(weir_alloc, c, 1, NULL);
	NULL_IN(weir_alloc_host, c, 1, NULL, &host_view);
	NULL_IN(weir_alloc_host, c, 1, &word, NULL);
	NULL_IN(weir_copy_to_device, c, memory_of_live, NULL, 8);
	NULL_IN(weir_copy_from_device, c, NULL, memory_of_live, 8);
	NULL_IN(weir_storage_open, c, NULL, NULL, (struct weir_storage **)&pointer);
	NULL_IN(weir_storage_open, c, "virt:1M", NULL, NULL);
	NULL_IN(weir_storage_info, s, NULL);
	NULL_IN(weir_storage_disk, s, NULL);
	NULL_IN(weir_storage_read, s, 0, NULL, 4096);
	NULL_IN(weir_storage_write, s, 0, NULL, 4096);
	NULL_IN(weir_stats, s, NULL);
	NULL_IN(weir_policy_of_name, NULL, &policy_of_name);
	NULL_IN(weir_policy_of_name, "clock", NULL);
	NULL_IN(weir_cache_create, c, WEIR_OPTIONS(cache, .lines = 4), NULL);
	NULL_IN(weir_cache_stats, k, NULL);
	NULL_IN(weir_array_open, k, NULL, 1, ARRAY_OPTIONS, &array_of_live);
	NULL_IN(weir_array_open, k, &live.storage, 1, ARRAY_OPTIONS, NULL);
	NULL_IN(weir_unaligned_open, k, NULL, 1, ARRAY_OPTIONS, &unaligned_of_live);
	NULL_IN(weir_unaligned_open, k, &live.storage, 1, ARRAY_OPTIONS, NULL);
	NULL_IN(weir_writer_open, k, NULL, 1, ARRAY_OPTIONS, &writer_of_live);
	NULL_IN(weir_writer_open, k, &live.storage, 1, ARRAY_OPTIONS, NULL);
	NULL_IN(weir_array_flush, k, NULL, 0, 1, 0);
	NULL_IN(weir_array_invalidate, k, NULL, 0, 1);
	NULL_IN(weir_share_stats, k, NULL);
	NULL_IN(weir_launch, c, NULL, 1, 1, bytes_of_host, 8);
	NULL_IN(weir_launch, c, "lifetime_put", 1, 1, NULL, 8);
	NULL_IN(weir_kernel_info, c, NULL, &out.kernel);
	NULL_IN(weir_kernel_info, c, "lifetime_put", NULL);
	NULL_IN(weir_chain_create, c, WEIR_OPTIONS(chain, .lanes = 1), NULL);
	NULL_IN(weir_chain_report, c, memory_of_live, NULL, 1);
	NULL_IN(weir_parse_bytes, NULL, &word);
	NULL_IN(weir_parse_bytes, "1M", NULL);
	NULL_IN(weir_register, c, memory_of_live, 8, NULL, NULL);
	NULL_IN(weir_registration_info, r, NULL);
	NULL_IN(weir_file_route, r, 0, NULL);
	NULL_IN(weir_file_submit, c, &request, 1, NULL);
	NULL_IN(weir_file_stats, c, NULL);
	NULL_IN(weir_pool_create, c, NULL, NULL);
	NULL_IN(weir_pool_stats, live.pool, NULL);
	refused(weir_file_batch(c, NULL, 1), -EINVAL, "NULL", "io");
	refused(weir_file_submit(c, NULL, 1, (struct weir_file_batch **)&pointer), -EINVAL, "NULL", "io");
	/* Options are NULL for the defaults; of those that have none, that is refused as the defaults are. */
	refused(weir_cache_create(c, NULL, (struct weir_cache **)&pointer), -EINVAL, "cache of zero lines",
		"");
	refused(weir_array_open(k, &live.storage, 1, NULL, &array_of_live), -EINVAL, "element_bytes is 0",
		"");
	refused(weir_chain_create(c, NULL, &word), -EINVAL, "lock chain of 0 lanes", "");
	weir_status_text(WEIR_OK, NULL);
	must(weir_array_open(k, &live.storage, 1, ARRAY_OPTIONS, &array_of_live));
}

/* No function of the library is missing in the table above. */
void test_the_table_is_whole(void **state)
{
	static const char *const without[] = {
		"weir_version",        "weir_last_error",        "weir_status_text",    "weir_parse_bytes",
		"weir_device_at",      "weir_gpus_open",         "weir_context_open",   "weir_policy_name",
		"weir_policy_of_name", "weir_user_policy_built", "weir_file_path_name", "weir_image_register"
	}; /* no handle */
	char text[] = WEIR_TEST_EXPORTED, *end, *name;
	unsigned names = 0, missing = 0;

	(void)state;
	end = strstr(text, "weir_image_register"); /* what follows is of the backends */
	assert_non_null(end);
	*end = '\0';
	for (name = strtok(text, " \t\n;{:"); name; name = strtok(NULL, " \t\n;{:")) {
		bool found = strncmp(name, "weir_", 5) != 0;

		names += !found;
		for (unsigned i = 0; i < CALLS && !found; i++)
			found = !strcmp(name, calls[i].name);
		for (unsigned i = 0; i < sizeof(without) / sizeof(without[0]) && !found; i++)
			found = !strcmp(name, without[i]);
		if (!found)
			print_error("%s is not tried\n", name);
		missing += !found;
	}
	assert_true(names > 50);
	assert_int_equal(missing, 0);
}

/* Handles that were closed are told from new ones, which do not get their addresses at once. */
void test_addresses_are_not_reused(void **state)
{
	struct weir_storage *closed, *open;

	(void)state;
	must(weir_storage_open(live.context, "virt:1M", WEIR_OPTIONS(storage, .queues = 1), &closed));
	must(weir_storage_close(closed));
	must(weir_storage_open(live.context, "virt:1M", WEIR_OPTIONS(storage, .queues = 1), &open));
	refused(weir_storage_close(closed), -EINVAL, "virt:1M", "closed already");
	must(weir_storage_flush(open));
	must(weir_storage_close(open));
}
