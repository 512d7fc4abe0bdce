/* SPDX-License-Identifier: BSD-3-Clause */
/* order.c: the orders of order.h. */
#include "order.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backend/error.h"

/* What a key is for: each purpose has numbers of its own. */
enum { PURPOSE_SAMPLES = 1, PURPOSE_GROUP = 3 }; /* and interleave.c's */

static const char *const names[] = {
	[WEIR_DATASET_SHUFFLED_CHUNK] = "shuffled-chunk",
	[WEIR_DATASET_CHUNK] = "chunk",
	[WEIR_DATASET_FULL] = "full",
};

const char *weir_dataset_order_name(enum weir_dataset_order order)
{
	return (unsigned)order < sizeof(names) / sizeof(names[0]) ? names[order] : NULL;
}

static uint64_t chunk_samples(const struct weir_dataset_epoch *epoch, uint64_t chunk)
{
	return epoch->chunk_first[chunk + 1] - epoch->chunk_first[chunk];
}

uint64_t weir_dataset_epoch_chunk(const struct weir_dataset_epoch *epoch, uint64_t group, uint64_t index)
{
	uint64_t at = group * epoch->options.buffer_chunks + index;

	if (index >= epoch->options.buffer_chunks || at >= epoch->chunks)
		return UINT64_MAX;
	return weir_dataset_interleave_at(&epoch->chunked, at);
}

uint64_t weir_dataset_epoch_use(const struct weir_dataset_epoch *epoch,
				const struct weir_dataset_interleave *order, uint64_t chunk)
{
	return weir_dataset_interleave_index(order, chunk) / epoch->options.buffer_chunks;
}

static int open_groups(struct weir_dataset_epoch *epoch)
{
	uint64_t position = 0, buffer = epoch->options.buffer_chunks;

	epoch->groups = (epoch->chunks + buffer - 1) / buffer;
	if (epoch->groups) /* no short group at the end, of few classes */
		buffer = epoch->options.buffer_chunks =
			(uint32_t)((epoch->chunks + epoch->groups - 1) / epoch->groups);
	epoch->group_first = malloc((epoch->groups + 1) * sizeof(*epoch->group_first));
	epoch->cursors = malloc(2 * buffer * sizeof(*epoch->cursors));
	if (!epoch->group_first || !epoch->cursors)
		return weir_fail(ENOMEM,
				 "dataset: no memory for an epoch of %llu chunks; mount with larger chunks",
				 (unsigned long long)epoch->chunks);
	for (uint64_t group = 0; group < epoch->groups; group++) {
		uint64_t first = position, chunk;

		epoch->group_first[group] = position;
		for (uint64_t i = 0; (chunk = weir_dataset_epoch_chunk(epoch, group, i)) != UINT64_MAX; i++)
			position += chunk_samples(epoch, chunk);
		if (position - first > epoch->group_room)
			epoch->group_room = position - first;
	}
	epoch->group_first[epoch->groups] = position;
	epoch->group_samples =
		malloc((epoch->group_room ? epoch->group_room : 1) * sizeof(*epoch->group_samples));
	return epoch->group_samples
		       ? 0
		       : weir_fail(ENOMEM, "dataset: no memory to shuffle %llu samples; use a smaller buffer",
				   (unsigned long long)epoch->group_room);
}

int weir_dataset_epoch_open(struct weir_dataset_epoch *epoch,
			    const struct weir_dataset_sequence_options *options,
			    const struct weir_dataset_directory *directory)
{
	int error = 0;

	memset(epoch, 0, sizeof(*epoch));
	epoch->options = *options;
	epoch->chunk_first = directory->chunk_first;
	epoch->chunks = directory->chunks;
	epoch->samples = directory->chunk_first[directory->chunks];
	epoch->group = UINT64_MAX;
	if (options->order == WEIR_DATASET_FULL) {
		weir_dataset_permute_open(&epoch->permute, epoch->samples, options->seed, options->epoch,
					  PURPOSE_SAMPLES);
		return 0;
	}
	error = weir_dataset_interleave_open(&epoch->chunked, directory, options->seed, options->epoch);
	if (!error)
		error = weir_dataset_interleave_open(&epoch->next, directory, options->seed,
						     options->epoch + 1);
	if (!error)
		error = open_groups(epoch);
	if (error)
		weir_dataset_epoch_close(epoch);
	return error;
}

void weir_dataset_epoch_close(struct weir_dataset_epoch *epoch)
{
	free(epoch->group_first);
	free(epoch->group_samples);
	free(epoch->cursors);
	weir_dataset_interleave_close(&epoch->chunked);
	weir_dataset_interleave_close(&epoch->next);
	memset(epoch, 0, sizeof(*epoch));
}

uint64_t weir_dataset_epoch_group(const struct weir_dataset_epoch *epoch, uint64_t position)
{
	uint64_t low = 0, high = epoch->groups;

	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;

		if (epoch->group_first[middle] <= position)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* All samples of the group's chunks, then shuffled (Fisher and Yates). */
static void fill_shuffled(struct weir_dataset_epoch *epoch, uint64_t group, uint64_t random)
{
	uint64_t count = 0, chunk;

	for (uint64_t i = 0; (chunk = weir_dataset_epoch_chunk(epoch, group, i)) != UINT64_MAX; i++)
		for (uint32_t sample = epoch->chunk_first[chunk]; sample < epoch->chunk_first[chunk + 1];
		     sample++)
			epoch->group_samples[count++] = sample;
	for (uint64_t left = count; left > 1; left--) {
		uint64_t other = weir_dataset_below(&random, left);
		uint32_t sample = epoch->group_samples[left - 1];

		epoch->group_samples[left - 1] = epoch->group_samples[other];
		epoch->group_samples[other] = sample;
	}
}

/* DLFS, section III-D2: a random chunk of those that are not used up, and its next sample. */
static void fill_chunk(struct weir_dataset_epoch *epoch, uint64_t group, uint64_t random)
{
	uint32_t *next = epoch->cursors, *end = next + epoch->options.buffer_chunks;
	uint64_t open = 0, count = 0, chunk;

	for (uint64_t i = 0; (chunk = weir_dataset_epoch_chunk(epoch, group, i)) != UINT64_MAX; i++, open++) {
		next[open] = epoch->chunk_first[chunk];
		end[open] = epoch->chunk_first[chunk + 1];
	}
	while (open) {
		uint64_t pick = weir_dataset_below(&random, open);

		epoch->group_samples[count++] = next[pick]++;
		if (next[pick] == end[pick]) {
			next[pick] = next[--open];
			end[pick] = end[open];
		}
	}
}

uint64_t weir_dataset_epoch_at(struct weir_dataset_epoch *epoch, uint64_t position)
{
	uint64_t group = epoch->group;

	if (epoch->options.order == WEIR_DATASET_FULL)
		return weir_dataset_permute_at(&epoch->permute, position);
	if (group == UINT64_MAX || position < epoch->group_first[group] ||
	    position >= epoch->group_first[group + 1]) {
		struct weir_dataset_permute key;

		group = weir_dataset_epoch_group(epoch, position);
		weir_dataset_permute_open(&key, epoch->groups, epoch->options.seed ^ weir_mix_u64(group + 1),
					  epoch->options.epoch, PURPOSE_GROUP);
		if (epoch->options.order == WEIR_DATASET_CHUNK)
			fill_chunk(epoch, group, key.keys[0]);
		else
			fill_shuffled(epoch, group, key.keys[0]);
		epoch->group = group;
	}
	return epoch->group_samples[position - epoch->group_first[group]];
}
