/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By hand: each wave reads tiles of a and b into buffers of its own, adds, and writes a tile
 * of c. While it adds one, the next is on its way in and the one before on its way out.
 */
#include <weir/disk.h>

#include "add.h"
#include "vectoradd.h"

enum { VECTORADD_A = 0, VECTORADD_B = 1, VECTORADD_C = 2 };

WEIR_FN weir_addr vectoradd_buffer(WEIR_GLOBAL struct vectoradd_tiled_args *args, u64 iteration, u32 vector)
{
	return args->buffers +
	       (weir_wave() * VECTORADD_BUFFERS + (iteration & 1) * 3 + vector) * args->tile_bytes;
}

WEIR_FN WEIR_GLOBAL struct weir_event *vectoradd_event(WEIR_GLOBAL struct vectoradd_tiled_args *args,
						       u64 iteration, u32 vector)
{
	return weir_at(args->events, struct weir_event,
		       weir_wave() * VECTORADD_BUFFERS + (iteration & 1) * 3 + vector);
}

WEIR_FN u64 vectoradd_lba(WEIR_GLOBAL struct vectoradd_tiled_args *args, u64 tile, u32 vector)
{
	return (vector * args->vector_bytes + tile * args->tile_bytes) >> args->disk.block_log2;
}

WEIR_FN u32 vectoradd_opcode(u32 vector)
{
	return vector == VECTORADD_C ? (u32)NVME_OPCODE_WRITE : (u32)NVME_OPCODE_READ;
}

/* A tile's command; one that cannot be submitted is told by its event, as if it had been. */
WEIR_FN void vectoradd_start(WEIR_GLOBAL struct vectoradd_tiled_args *args, u64 iteration, u64 tile,
			     u32 vector)
{
	WEIR_GLOBAL struct weir_event *event = vectoradd_event(args, iteration, vector);
	weir_status status =
		weir_block_async(&args->disk, vectoradd_opcode(vector), vectoradd_lba(args, tile, vector),
				 (u32)(args->tile_bytes >> args->disk.block_log2),
				 vectoradd_buffer(args, iteration, vector), event);

	if (status !=
	    WEIR_OK) /* release: pairs with the acquire of those lanes of the wave that wait for it */
		weir_store_u64_release_dev(&event->word, WEIR_EVENT_DONE | status);
}

/* One lane waits, for it may have to ask again. */
WEIR_FN void vectoradd_finish(WEIR_GLOBAL struct vectoradd_tiled_args *args, u64 iteration, u64 tile,
			      u32 vector)
{
	weir_status status = weir_block_wait(
		&args->disk, vectoradd_opcode(vector), vectoradd_lba(args, tile, vector),
		(u32)(args->tile_bytes >> args->disk.block_log2), vectoradd_buffer(args, iteration, vector),
		vectoradd_event(args, iteration, vector), 0);

	if (status != WEIR_OK) /* relaxed: any one of them will do */
		weir_store_u64_relaxed_dev(weir_at(args->failure, weir_shared_u64, 0), status);
}

/* The first lanes of the wave wait for a, b, and the tile of c of two iterations ago, a lane each if there
 * are three. */
WEIR_FN void vectoradd_await(WEIR_GLOBAL struct vectoradd_tiled_args *args, u64 iteration, u64 tile)
{
	u32 last = iteration > 1 ? (u32)VECTORADD_C : (u32)VECTORADD_B;

	for (u32 vector = weir_lane(); vector <= last; vector += weir_lanes())
		vectoradd_finish(args, iteration, vector == VECTORADD_C ? tile - 2 * (u64)args->waves : tile,
				 vector);
}

/* The first lanes of the wave ask for a and b, a lane each if there are two. */
WEIR_FN void vectoradd_fetch(WEIR_GLOBAL struct vectoradd_tiled_args *args, u64 iteration, u64 tile)
{
	for (u32 vector = weir_lane(); vector <= VECTORADD_B; vector += weir_lanes())
		vectoradd_start(args, iteration, tile, vector);
}

WEIR_FN void vectoradd_tile(WEIR_GLOBAL struct vectoradd_tiled_args *args, u64 iteration)
{
	weir_addr a = vectoradd_buffer(args, iteration, VECTORADD_A),
		  b = vectoradd_buffer(args, iteration, VECTORADD_B);
	weir_addr c = vectoradd_buffer(args, iteration, VECTORADD_C);

	for (u64 i = weir_lane(); i < args->tile_bytes / 16; i += weir_lanes())
		*weir_at(c, struct weir_u128, i) = vectoradd_add(
			weir_data_load_u128(a + i * 16), weir_data_load_u128(b + i * 16), args->is_float);
}

WEIR_KERNEL(vectoradd_tiled, struct vectoradd_tiled_args)
{
	u64 tiles = args->vector_bytes / args->tile_bytes, iteration = 0, wave = weir_active();

	if (weir_wave() >= args->waves || weir_wave() >= tiles)
		return;
	vectoradd_fetch(args, 0, weir_wave());
	for (u64 tile = weir_wave(); tile < tiles; tile += args->waves, iteration++) {
		weir_wave_sync(wave); /* the events are set, before any lane waits for them */
		vectoradd_await(args, iteration, tile);
		weir_wave_sync(wave); /* what those lanes saw arrive is there for all */
		if (tile + args->waves < tiles)
			vectoradd_fetch(args, iteration + 1, tile + args->waves);
		vectoradd_tile(args, iteration);
		weir_wave_sync(wave); /* all lanes' parts of c, before one lane writes it */
		if (weir_lane() == 0)
			vectoradd_start(args, iteration, tile, VECTORADD_C);
	}
	weir_wave_sync(wave);
	for (u64 last = iteration > 1 ? iteration - 2 : 0; weir_lane() == 0 && last < iteration; last++)
		vectoradd_finish(args, last, weir_wave() + last * args->waves, VECTORADD_C);
}

WEIR_KERNEL(vectoradd_plain, struct vectoradd_plain_args)
{
	for (u64 i = weir_thread(); i < args->count; i += weir_threads())
		*weir_at(args->c, struct weir_u128, i) =
			vectoradd_add(*weir_at(args->a, struct weir_u128, i),
				      *weir_at(args->b, struct weir_u128, i), args->is_float);
}
