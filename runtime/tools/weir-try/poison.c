/* SPDX-License-Identifier: BSD-3-Clause */
#include "poison.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

#include "try.h"

enum { LANES = 64, REQUESTS = 1024, DEPTH = 32, QUEUES = 2, BLOCK_LANES = 64 };

/**
 * struct fixture - what the self-test runs on
 * @read: requests of both reads that came
 */
struct fixture {
	struct weir_context *context;
	struct weir_storage *storage;
	struct weir_storage_info info;
	struct try_poison_args args;
	struct try_poison_results found;
};

static json_t *fail(const char *what)
{
	return try_verdict("failed", "%s: %s", what, weir_last_error());
}

static json_t *prepare(struct fixture *fixture, const struct try_storage *storage)
{
	struct try_poison_args *args = &fixture->args;
	uint32_t block = fixture->info.block_bytes;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	args->seed = (uint64_t)now.tv_sec * 1000000000 +
		     (uint64_t)now.tv_nsec; /* older runs' blocks are wrong ones */
	args->blocks = 4096 / block;
	args->stride_bytes = 4096;
	args->lanes = LANES;
	args->first_lba = storage->offset / block;
	args->requests = storage->bytes / 4096 < REQUESTS ? storage->bytes / 4096 : REQUESTS;
	if (weir_storage_disk(fixture->storage, &args->disk) != 0 ||
	    weir_alloc(fixture->context, LANES * 4096, &args->buffers) != 0 ||
	    weir_alloc(fixture->context, LANES * sizeof(struct weir_event), &args->events) != 0 ||
	    weir_alloc(fixture->context, sizeof(struct try_poison_results), &args->results) != 0)
		return fail("no memory for the self-test");
	return NULL;
}

static int launch(struct fixture *fixture, const char *kernel)
{
	struct try_poison_args *args = &fixture->args;
	int code;

	memset(&fixture->found, 0, sizeof(fixture->found));
	code = weir_copy_to_device(fixture->context, args->results, &fixture->found, sizeof(fixture->found));
	if (!code)
		code = weir_launch(fixture->context, kernel, LANES / BLOCK_LANES, BLOCK_LANES, args,
				   sizeof(*args));
	if (!code)
		code = weir_sync(fixture->context);
	if (!code)
		code = weir_copy_from_device(fixture->context, &fixture->found, args->results,
					     sizeof(fixture->found));
	return code;
}

/* Relaxed: the launch is over. */
static uint64_t word(const weir_shared_u64 *shared)
{
	return weir_load_u64_relaxed_sys(shared);
}

/* What is wrong with a pass of the lanes. Return: NULL: nothing. */
static json_t *judge(const struct fixture *fixture, const char *what)
{
	const struct try_poison_results *found = &fixture->found;
	char text[80];

	weir_status_text((uint32_t)word(&found->status), text);
	if (word(&found->stuck))
		return try_verdict("failed", "%s: %" PRIu64 " requests got no answer", what,
				   word(&found->stuck));
	if (word(&found->errors))
		return try_verdict("failed",
				   "%s: %" PRIu64 " of %" PRIu64 " requests failed, one of them with: %s",
				   what, word(&found->errors), fixture->args.requests, text);
	if (word(&found->bad))
		return try_verdict("failed",
				   "%s: %" PRIu64 " words are wrong, %" PRIu64
				   " of them as they were before the read, one at byte %" PRIu64
				   " of the range",
				   what, word(&found->bad), word(&found->stale), word(&found->where));
	if (word(&found->done) != fixture->args.requests)
		return try_verdict("failed", "%s: %" PRIu64 " of %" PRIu64 " requests ended", what,
				   word(&found->done), fixture->args.requests);
	return NULL;
}

static json_t *pass(struct fixture *fixture, const char *kernel, uint64_t poison, const char *what)
{
	fixture->args.poison = poison;
	return launch(fixture, kernel) ? fail(what) : judge(fixture, what);
}

/* Lanes write; then they read twice, each time into buffers that hold something else. */
static json_t *test(struct fixture *fixture, const struct try_storage *storage)
{
	json_t *wrong = prepare(fixture, storage);

	if (!wrong)
		wrong = pass(fixture, "try_poison_write", 0, "writing");
	if (!wrong && weir_storage_flush(fixture->storage) != 0)
		wrong = fail("flushing");
	if (!wrong)
		wrong = pass(fixture, "try_poison_read", fixture->args.seed + 1, "reading");
	if (!wrong)
		wrong = pass(fixture, "try_poison_read", fixture->args.seed + 2, "reading again");
	return wrong;
}

static json_t *good(struct fixture *fixture)
{
	uint64_t requests = fixture->args.requests;
	json_t *object = try_verdict(
		"good",
		"%" PRIu64 " requests of 4 KiB written, read twice into poisoned buffers, all words right",
		requests);

	return object;
}

json_t *try_poison(const void *arguments)
{
	const struct try_pair *pair = arguments;
	struct fixture fixture = { .info = { .size = sizeof(fixture.info) } };
	char uri[TRY_PATH];
	json_t *object;

	try_uri(uri, pair->storage, pair->variant);
	if (weir_context_open(pair->lanes, NULL, &fixture.context) != 0)
		return fail("no context");
	if (weir_storage_open(fixture.context, uri, WEIR_OPTIONS(storage, .queues = QUEUES, .depth = DEPTH),
			      &fixture.storage) != 0)
		return try_verdict(pair->variant[0] ? "not possible" : "failed", "%s", weir_last_error());
	if (weir_storage_info(fixture.storage, &fixture.info) != 0)
		return fail("no storage");
	object = test(&fixture, pair->storage);
	if (weir_storage_info(fixture.storage, &fixture.info) == 0 && !object)
		object = good(&fixture);
	json_object_set_new(object, "path", json_string(fixture.info.path));
	if (weir_context_close(fixture.context) != 0)
		json_object_update_new(object, fail("closing"));
	return object;
}
