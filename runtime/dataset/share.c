/* SPDX-License-Identifier: BSD-3-Clause */
/* share.c: the division of an epoch among ranks, at its beginning and in the middle of it (order.h). */
#include <errno.h>
#include <stdlib.h>

#include "backend/error.h"
#include "order.h"

uint64_t weir_dataset_share_count(const struct weir_dataset_share *share)
{
	uint64_t count = 0;

	for (size_t i = 0; i < share->count; i++)
		count += share->segments[i].end - share->segments[i].begin;
	return count;
}

int weir_dataset_share_add(struct weir_dataset_share *share, struct weir_dataset_segment segment)
{
	struct weir_dataset_segment *more;

	if (segment.begin >= segment.end)
		return 0;
	if (share->count && share->segments[share->count - 1].end == segment.begin) {
		share->segments[share->count - 1].end = segment.end;
		return 0;
	}
	more = realloc(share->segments, (share->count + 1) * sizeof(*more));
	if (!more)
		return weir_fail(ENOMEM, "dataset: no memory to divide the epoch");
	share->segments = more;
	share->segments[share->count++] = segment;
	return 0;
}

int weir_dataset_share_cut(const struct weir_dataset_share *from, uint64_t begin, uint64_t end,
			   struct weir_dataset_share *to)
{
	uint64_t before = 0;
	int error = 0;

	for (size_t i = 0; i < from->count && !error; i++) {
		struct weir_dataset_segment segment = from->segments[i];
		uint64_t count = segment.end - segment.begin;

		if (end > before && begin < before + count) {
			uint64_t skip = begin > before ? begin - before : 0,
				 keep = end - before < count ? end - before : count;

			error = weir_dataset_share_add(
				to,
				(struct weir_dataset_segment){ segment.begin + skip, segment.begin + keep });
		}
		before += count;
	}
	return error;
}

int weir_dataset_share_divide(const struct weir_dataset_share *all, uint32_t rank, uint32_t ranks,
			      struct weir_dataset_share *to)
{
	uint64_t count = weir_dataset_share_count(all), each = count / ranks, more = count % ranks;
	uint64_t begin = rank * each + (rank < more ? rank : more);

	return weir_dataset_share_cut(all, begin, begin + each + (rank < more), to);
}

uint64_t weir_dataset_share_at(const struct weir_dataset_share *share, uint64_t index)
{
	size_t i = 0;

	while (index >= share->segments[i].end - share->segments[i].begin) {
		index -= share->segments[i].end - share->segments[i].begin;
		i++;
	}
	return share->segments[i].begin + index;
}

void weir_dataset_share_clear(struct weir_dataset_share *share)
{
	free(share->segments);
	share->segments = NULL;
	share->count = 0;
}
