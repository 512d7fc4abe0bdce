/* SPDX-License-Identifier: BSD-3-Clause */
#include "by_hand.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/mapping.h"

enum { STAGING_BYTES = 16 << 20, STAGING_ALIGN = 4096 };

/** struct thread - one of them, and its part of the staging */
struct thread {
	struct by_hand *hand;
	pthread_t thread;
	char *staging;
	int code;
	char error[SAMPLE_ERROR_BYTES];
};

/**
 * struct by_hand - what loads
 * @piece_bytes: that a thread reads at a time
 * @tensor, @at: the next piece; under @mutex
 */
struct by_hand {
	const struct sums *sums;
	int file;
	uint64_t pinned;
	uint64_t piece_bytes;
	pthread_mutex_t mutex;
	size_t tensor;
	uint64_t at;
	uint32_t threads;
	struct thread each[];
};

/** struct piece - a part of a tensor */
struct piece {
	const struct model_tensor *tensor;
	uint64_t at;
	uint64_t bytes;
	uint64_t address;
};

int by_hand_open(const struct sums *sums, int file, uint32_t threads, struct by_hand **out, char *error)
{
	struct by_hand *hand = calloc(1, sizeof(*hand) + threads * sizeof(hand->each[0]));
	void *host;
	int code;

	if (!hand)
		return sample_fail(error, -ENOMEM, "no memory for %u threads", threads);
	code = weir_alloc_host(sums->context, STAGING_BYTES, &hand->pinned, &host);
	if (code) {
		free(hand);
		return sample_pass(error, code);
	}
	hand->sums = sums;
	hand->file = file;
	hand->threads = threads;
	hand->piece_bytes = STAGING_BYTES / threads / STAGING_ALIGN * STAGING_ALIGN;
	pthread_mutex_init(&hand->mutex, NULL);
	for (uint32_t i = 0; i < threads; i++)
		hand->each[i] =
			(struct thread){ .hand = hand, .staging = (char *)host + i * hand->piece_bytes };
	*out = hand;
	return 0;
}

/* Return: whether there is one. */
static bool next_piece(struct by_hand *hand, struct piece *piece)
{
	const struct model *model = hand->sums->model;
	bool any;

	pthread_mutex_lock(&hand->mutex);
	while (hand->tensor < model->count && hand->at >= model->tensors[hand->tensor].bytes) {
		hand->tensor++;
		hand->at = 0;
	}
	any = hand->tensor < model->count;
	if (any) {
		const struct model_tensor *tensor = &model->tensors[hand->tensor];
		uint64_t left = tensor->bytes - hand->at;

		*piece = (struct piece){ .tensor = tensor,
					 .at = hand->at,
					 .bytes = left < hand->piece_bytes ? left : hand->piece_bytes,
					 .address = hand->sums->memory + hand->sums->at[hand->tensor] +
						    hand->at };
		hand->at += piece->bytes;
	}
	pthread_mutex_unlock(&hand->mutex);
	return any;
}

static int load_piece(struct thread *thread, const struct piece *piece)
{
	const struct by_hand *hand = thread->hand;
	uint64_t offset = hand->sums->model->data + piece->tensor->begin + piece->at;
	ssize_t got = pread(hand->file, thread->staging, piece->bytes, (off_t)offset);

	if (got != (ssize_t)piece->bytes)
		return sample_fail(thread->error, -EIO, "tensor \"%.200s\": pread gave %zd of %llu bytes",
				   piece->tensor->name, got, (unsigned long long)piece->bytes);
	if (weir_copy_to_device(hand->sums->context, piece->address, thread->staging, piece->bytes))
		return sample_pass(thread->error, -EIO);
	return 0;
}

static void *thread_main(void *argument)
{
	struct thread *thread = argument;
	struct piece piece;

	thread->code = 0;
	while (!thread->code && next_piece(thread->hand, &piece))
		thread->code = load_piece(thread, &piece);
	return NULL;
}

int by_hand_read(struct by_hand *hand, char *error)
{
	uint32_t started = 1;
	int code = 0;

	hand->tensor = 0;
	hand->at = 0;
	for (; started < hand->threads && !code; started += !code)
		code = -pthread_create(&hand->each[started].thread, NULL, thread_main, &hand->each[started]);
	if (code)
		sample_fail(error, code, "cannot start thread %u of %u: %s", started, hand->threads,
			    strerror(-code));
	thread_main(&hand->each[0]);
	for (uint32_t i = 1; i < started; i++)
		pthread_join(hand->each[i].thread, NULL);
	for (uint32_t i = 0; i < started && !code; i++) {
		code = hand->each[i].code;
		if (code)
			memcpy(error, hand->each[i].error, SAMPLE_ERROR_BYTES);
	}
	return code;
}

int by_hand_map(struct by_hand *hand, char *error)
{
	const struct model *model = hand->sums->model;
	struct sample_mapping mapping;
	int code = sample_map(&mapping, hand->file, false, error);

	if (code)
		return code;
	for (size_t i = 0; i < model->count && !code; i++)
		if (model->tensors[i].bytes)
			code = weir_copy_to_device(hand->sums->context,
						   hand->sums->memory + hand->sums->at[i],
						   mapping.bytes + model->data + model->tensors[i].begin,
						   model->tensors[i].bytes);
	sample_unmap(&mapping);
	return sample_pass(error, code);
}

void by_hand_close(struct by_hand *hand)
{
	if (hand)
		pthread_mutex_destroy(&hand->mutex);
	free(hand);
}
