/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agree.c: what one rank met becomes the result of all: an error on one rank is never another's wait.
 *
 * Every rank takes part in each exchange, whatever it has met before, and with no memory to be had, too.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"
#include "mounted.h"

enum { FEW_RANKS = 1024, MOST_BUFFER = 32 };

int weir_dataset_gather(struct weir_dataset_communicator *communicator, const void *mine, size_t bytes,
			uint32_t rank, struct weir_dataset_parts *parts)
{
	size_t few[FEW_RANKS], *counts = few;
	int error;

	*parts = (struct weir_dataset_parts){ NULL, 0, 0 };
	if (communicator->ranks > FEW_RANKS)
		counts = malloc(communicator->ranks * sizeof(*counts));
	if (!counts)
		return weir_fail(ENOMEM, "dataset: no memory for the lengths of %u ranks' messages",
				 communicator->ranks);
	error = communicator->gather(communicator, mine, bytes, &parts->all, counts);
	if (error) {
		parts->all = NULL;
	} else {
		for (uint32_t i = 0; i < rank; i++)
			parts->begin += counts[i];
		parts->bytes = counts[rank];
	}
	if (counts != few)
		free(counts);
	return error;
}

/** struct outcome - what a rank sends of its error */
struct outcome {
	int32_t error;
	char sentence[WEIR_DATASET_SENTENCE_BYTES];
};

int weir_dataset_agree(struct weir_dataset_communicator *communicator, int error)
{
	struct outcome mine = { .error = error };
	struct weir_dataset_parts parts;
	const struct outcome *all;
	int gathered;

	if (!communicator || communicator->ranks < 2)
		return error;
	if (error)
		snprintf(mine.sentence, sizeof(mine.sentence), "%.1000s", weir_last_error());
	gathered = weir_dataset_gather(communicator, &mine, sizeof(mine), 0, &parts);
	if (gathered)
		return error ? weir_fail(-error, "%s", mine.sentence) : gathered;
	all = parts.all;
	for (uint32_t i = 0; i < communicator->ranks; i++) {
		bool named = strncmp(all[i].sentence, "rank ", 5) == 0; /* all of them have it from there */

		if (!all[i].error)
			continue;
		error = named ? weir_fail(-all[i].error, "%s", all[i].sentence)
			      : weir_fail(-all[i].error, "rank %u: %s", i, all[i].sentence);
		break;
	}
	free(parts.all);
	return error;
}

/** struct order - what a rank sends of that which the order of its epochs depends on */
struct order {
	uint32_t chunk_bytes, buffer_chunks;
};

int weir_dataset_alike(struct weir_dataset *dataset)
{
	uint64_t half = dataset->options.cache_bytes / dataset->options.chunk_bytes / 2;
	struct order mine = { dataset->options.chunk_bytes,
			      half < MOST_BUFFER ? (uint32_t)half : MOST_BUFFER };
	struct weir_dataset_parts parts;
	int error = weir_dataset_gather(dataset->communicator, &mine, sizeof(mine), 0, &parts);

	dataset->default_buffer = mine.buffer_chunks;
	for (uint32_t i = 0; i < dataset->communicator->ranks && !error; i++) {
		const struct order *other = (struct order *)parts.all + i, *first = parts.all;

		if (other->chunk_bytes != first->chunk_bytes)
			error = weir_fail(
				EINVAL,
				"weir_dataset_mount: rank %u has chunks of %u bytes, and rank 0 of %u: each "
				"would have an order of its own; give all ranks the same chunk_bytes",
				i, other->chunk_bytes, first->chunk_bytes);
		if (other->buffer_chunks < dataset->default_buffer)
			dataset->default_buffer = other->buffer_chunks;
	}
	free(parts.all);
	return error;
}
