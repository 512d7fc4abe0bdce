/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load.k.c: the two kernels of a mini-batch.
 *
 * The first one submits reads and returns; they are under way while other kernels run. The second one waits
 * for them and copies each sample into its row: DLFS's copy threads are lanes (section III-C).
 */
#define WEIR_COPY_BATCH 8
#include <weir/wait.h>

#include "assemble.h"
#include "load.h"

enum { WEIR_DATASET_HINT_BYTES = 1024 };

/* Things go round the waves, one lane of each after the other: a wave submits to one queue pair, so few
 * things of full waves would leave most of these without any. Waves are whole. */
WEIR_FN u64 weir_dataset_first(void)
{
	return weir_wave() + weir_lane() * (weir_threads() / weir_lanes());
}

WEIR_KERNEL(weir_dataset_post, struct weir_dataset_post_args)
{
	for (u64 i = weir_dataset_first(); i < args->count; i += weir_threads()) {
		WEIR_GLOBAL struct weir_dataset_request *request =
			weir_at(args->requests, struct weir_dataset_request, i);

		/* a read that is refused has its event done, with the reason */
		(void)weir_read_async(weir_at(args->disks, struct weir_disk, request->disk), request->lba,
				      request->blocks, request->buffer,
				      weir_at(request->event, struct weir_event, 0));
	}
}

/* Chunks are larger than a core's caches: the part that this lane copies after the next begins to come now.
 */
WEIR_FN void weir_dataset_hint(WEIR_GLOBAL struct weir_dataset_piece *piece)
{
	u32 most = WEIR_DATASET_HINT_BYTES, bytes = piece->bytes < most ? piece->bytes : most;

	for (u32 at = 0; at < bytes; at += 64)
		weir_data_hint(piece->from + at);
}

/* A read of @piece has not ended, though the wait for it has: at its deadline, or because its storage is
 * dead. */
WEIR_FN u32 weir_dataset_under_way(WEIR_GLOBAL struct weir_dataset_piece *piece)
{
	u32 pending = 0;

	for (u32 i = 0; i < piece->event_count; i++)
		pending += weir_event_test(weir_at(piece->events, struct weir_event, i)) == 0;
	return pending != 0;
}

WEIR_KERNEL(weir_dataset_assemble, struct weir_dataset_assemble_args)
{
	u64 lanes = weir_active();

	if (weir_thread() ==
	    0) /* dataset.D0: pairs with dataset.D1 (batch.c): what was launched before has ended */
		weir_store_u32_release_sys(&weir_at(args->verdict, struct weir_dataset_verdict, 0)->started,
					   1);
	weir_reconverge();
	for (u64 i = weir_dataset_first(); weir_ballot(lanes, i < args->count) != 0; i += weir_threads()) {
		u32 mine = i <
			   args->count; /* all lanes go along: the others wait for nothing and copy nothing */
		WEIR_GLOBAL struct weir_dataset_piece *piece =
			weir_at(args->pieces, struct weir_dataset_piece, mine ? i : 0);
		u32 waits = mine ? piece->event_count : 0;
		weir_status status = WEIR_OK;
		u32 good;

		if (i + 2 * weir_threads() < args->count)
			weir_dataset_hint(
				weir_at(args->pieces, struct weir_dataset_piece, i + 2 * weir_threads()));
		if (weir_ballot(lanes, waits) != 0)
			status = weir_wait_all(weir_at(args->disks, struct weir_disk, piece->disk),
					       weir_at(piece->events, struct weir_event, 0), waits, 0);
		good = mine && status == WEIR_OK;
		if (mine && !good) {
			piece->under_way = weir_dataset_under_way(piece);
			/* relaxed: the host reads both after the kernel */
			(void)weir_cas_u64_relaxed_dev(
				&weir_at(args->verdict, struct weir_dataset_verdict, 0)->failure, 0,
				(u64)status << 32 | (piece->row + 1));
		}
		weir_reconverge();
		weir_order_loads();
		weir_wave_sync(lanes); /* what each lane acquired (event.E1) all lanes copy */
		weir_dataset_copy(lanes, piece->to, piece->from, good ? piece->bytes : 0);
		weir_dataset_fill(lanes, piece->to + piece->fill_at, mine ? piece->fill : 0);
	}
}
