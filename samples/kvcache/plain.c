/* SPDX-License-Identifier: BSD-3-Clause */
#include "plain.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { HAND_LANES = 64 };

/** struct hand - a thread: it has every @threads-th block of a batch */
struct hand {
	struct plain *plain;
	pthread_t thread;
	bool started;
	bool owns; /* the context */
	struct weir_context *context;
	struct kvcache_pool pool;
	uint64_t pinned;
	void *host;
	int code;
	char error[SAMPLE_ERROR_BYTES];
};

struct plain {
	int file;
	uint64_t block_bytes;
	uint32_t threads;
	bool stores; /* else it loads */
	pthread_barrier_t begin, end;
	const uint64_t *blocks; /* NULL: the end */
	size_t count;
	struct hand hands[];
};

static int load_block(struct hand *hand, uint64_t block, uint64_t address)
{
	struct plain *plain = hand->plain;
	ssize_t got = pread(plain->file, hand->host, plain->block_bytes, (off_t)(block * plain->block_bytes));

	if (got != (ssize_t)plain->block_bytes)
		return sample_fail(hand->error, -EIO, "block %llu: pread gave %zd: %s",
				   (unsigned long long)block, got,
				   got < 0 ? strerror(errno) : "the file ended");
	return sample_pass(hand->error,
			   weir_copy_to_device(hand->context, address, hand->host, plain->block_bytes));
}

static int store_block(struct hand *hand, uint64_t block, uint64_t address)
{
	struct plain *plain = hand->plain;
	int code = weir_copy_from_device(hand->context, hand->host, address, plain->block_bytes);
	ssize_t put;

	if (code)
		return sample_pass(hand->error, code);
	put = pwrite(plain->file, hand->host, plain->block_bytes, (off_t)(block * plain->block_bytes));
	return put == (ssize_t)plain->block_bytes
		       ? 0
		       : sample_fail(hand->error, -EIO, "block %llu: pwrite gave %zd: %s",
				     (unsigned long long)block, put,
				     put < 0 ? strerror(errno) : "there is no room");
}

/* This thread's share, side by side in its own memory. */
static int move_share(struct hand *hand)
{
	struct plain *plain = hand->plain;
	uint64_t address = hand->pool.address;
	int code = 0;

	for (size_t i = (size_t)(hand - plain->hands); i < plain->count && !code; i += plain->threads) {
		code = (plain->stores ? store_block : load_block)(hand, plain->blocks[i], address);
		address += plain->block_bytes;
	}
	return code;
}

static void *hand_main(void *argument)
{
	struct hand *hand = argument;
	bool more = true;

	while (more) {
		pthread_barrier_wait(&hand->plain->begin);
		more = hand->plain->blocks != NULL;
		if (more)
			hand->code = move_share(hand);
		pthread_barrier_wait(&hand->plain->end);
	}
	return NULL;
}

static int open_context(struct hand *hand, const struct sample_device *device, struct weir_context *shared)
{
	struct sample_device own = *device;

	if (sample_is_alone(device)) {
		hand->context = shared;
		return 0;
	}
	/* Of the cpu each would map thousands of stacks, together more than a process may have. */
	own.workers = 1;
	own.resident_lanes = HAND_LANES;
	hand->owns = true;
	return sample_pass(hand->error, sample_open(&own, &hand->context));
}

static int open_hand(struct hand *hand, const struct sample_device *device, struct weir_context *shared,
		     size_t blocks)
{
	int code = open_context(hand, device, shared);

	if (!code)
		code = kvcache_pool_open(&hand->pool, hand->context, blocks, hand->plain->block_bytes,
					 hand->error);
	if (!code)
		code = sample_pass(hand->error, weir_alloc_host(hand->context, hand->plain->block_bytes,
								&hand->pinned, &hand->host));
	return code;
}

int plain_open(const struct sample_device *device, struct weir_context *shared, uint32_t threads, int file,
	       uint64_t block_bytes, size_t batch, struct plain **out, char *error)
{
	struct plain *plain = calloc(1, sizeof(*plain) + threads * sizeof(plain->hands[0]));
	int code = plain ? 0 : sample_fail(error, -ENOMEM, "no memory for %u threads", threads);

	if (code)
		return code;
	*plain = (struct plain){ .file = file, .block_bytes = block_bytes, .threads = threads };
	pthread_barrier_init(&plain->begin, NULL, threads + 1);
	pthread_barrier_init(&plain->end, NULL, threads + 1);
	for (uint32_t i = 0; i < threads && !code; i++) {
		struct hand *hand = &plain->hands[i];

		hand->plain = plain;
		code = open_hand(hand, device, shared, batch / threads + 1);
		if (code)
			memcpy(error, hand->error, SAMPLE_ERROR_BYTES);
	}
	for (uint32_t i = 0; i < threads && !code; i++) {
		code = -pthread_create(&plain->hands[i].thread, NULL, hand_main, &plain->hands[i]);
		if (code) { /* those that are there wait for this one for ever */
			sample_fail(error, code, "cannot start thread %u of %u: %s", i, threads,
				    strerror(-code));
			return code;
		}
		plain->hands[i].started = true;
	}
	*out = plain;
	return code;
}

static void step(struct plain *plain, const uint64_t *blocks, size_t count)
{
	plain->blocks = blocks;
	plain->count = count;
	pthread_barrier_wait(&plain->begin);
	pthread_barrier_wait(&plain->end);
}

/* What thread @index has, for its lanes: every so many of the list. Return: how many. */
static size_t list_share(struct plain *plain, uint32_t index, const uint64_t *blocks, size_t all)
{
	struct hand *hand = &plain->hands[index];
	size_t count = 0;

	for (size_t i = index; i < all; i += plain->threads)
		hand->pool.list[count++] = blocks[i];
	return count;
}

/* The first that failed, with its sentence. */
static int result(struct plain *plain, char *error)
{
	uint32_t i = 0;

	while (i < plain->threads && !plain->hands[i].code)
		i++;
	if (i == plain->threads)
		return 0;
	memcpy(error, plain->hands[i].error, SAMPLE_ERROR_BYTES);
	return plain->hands[i].code;
}

int plain_load(struct plain *plain, const uint64_t *blocks, size_t count, double *seconds, uint64_t *bad,
	       char *error)
{
	double begin = sample_now();
	int code = 0;

	plain->stores = false;
	step(plain, blocks, count);
	*seconds = sample_now() - begin;
	code = result(plain, error);
	for (uint32_t i = 0; i < plain->threads && !code; i++)
		code = kvcache_pool_check(&plain->hands[i].pool, list_share(plain, i, blocks, count), bad,
					  error);
	return code;
}

int plain_store(struct plain *plain, const uint64_t *blocks, size_t count, double *seconds, char *error)
{
	double begin;
	int code = 0;

	for (uint32_t i = 0; i < plain->threads && !code; i++)
		code = kvcache_pool_fill(&plain->hands[i].pool, list_share(plain, i, blocks, count), error);
	if (code)
		return code;
	plain->stores = true;
	begin = sample_now();
	step(plain, blocks, count);
	*seconds = sample_now() - begin;
	return result(plain, error);
}

int plain_close(struct plain *plain, int code, char *error)
{
	if (!plain)
		return code;
	if (plain->hands[plain->threads - 1].started)
		step(plain, NULL, 0);
	for (uint32_t i = 0; i < plain->threads; i++) {
		if (plain->hands[i].started)
			pthread_join(plain->hands[i].thread, NULL);
		kvcache_pool_close(&plain->hands[i].pool);
		if (plain->hands[i].owns)
			code = sample_close(plain->hands[i].context, code, error);
	}
	pthread_barrier_destroy(&plain->begin);
	pthread_barrier_destroy(&plain->end);
	free(plain);
	return code;
}
