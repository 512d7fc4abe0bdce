/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bilinear resize. A wave makes a tile of the output, whole blocks whatever images begin or end in it: it
 * reads the rows of the input that the tile needs, which lie one behind the other, makes the bytes, and
 * writes them.
 */
#include "../common/span_walk.h"
#include "resize.h"

/** struct resize_taps - two pixels along an axis, and the weight of the second one */
struct resize_taps {
	u32 first;
	u32 second;
	u32 weight;
};

WEIR_FN struct resize_taps resize_axis(u32 x, u32 from, u32 to)
{
	u32 place = (2 * x + 1) * from;
	struct resize_taps taps;

	place = place > to ? place - to : 0;
	taps.first = place / (2 * to);
	taps.weight = place % (2 * to) * RESIZE_ONE / (2 * to);
	taps.second = taps.first + 1 < from ? taps.first + 1 : taps.first;
	return taps;
}

/* A byte of the output: column byte @column of row @row, counted from the first row of an image. @from:
 * device address of the same image of the input. */
WEIR_FN u32 resize_byte(WEIR_GLOBAL struct resize_args *args, u32 row, u32 column, weir_addr from)
{
	struct resize_taps x = resize_axis(column / RESIZE_CHANNELS, args->from_width, args->to_width);
	struct resize_taps y = resize_axis(row % args->to_height, args->from_height, args->to_height);
	u64 line = (u64)args->from_width * RESIZE_CHANNELS;
	weir_addr image = from + row / args->to_height * args->from_height * line + column % RESIZE_CHANNELS;
	weir_addr above = image + y.first * line, below = image + y.second * line;
	u32 upper = weir_data_load_u8(above + x.first * RESIZE_CHANNELS) * (RESIZE_ONE - x.weight) +
		    weir_data_load_u8(above + x.second * RESIZE_CHANNELS) * x.weight;
	u32 lower = weir_data_load_u8(below + x.first * RESIZE_CHANNELS) * (RESIZE_ONE - x.weight) +
		    weir_data_load_u8(below + x.second * RESIZE_CHANNELS) * x.weight;

	return (upper * (RESIZE_ONE - y.weight) + lower * y.weight + RESIZE_ONE * RESIZE_ONE / 2) /
	       (RESIZE_ONE * RESIZE_ONE);
}

/* @count bytes of the output from byte @first on, to @to. @from: device address of the input's first image.
 * Behind the end come zeros. */
WEIR_FN void resize_tile(WEIR_GLOBAL struct resize_args *args, u64 first, u64 count, weir_addr from,
			 weir_addr to)
{
	u32 line = args->to_width * RESIZE_CHANNELS;
	u64 row = first / line, image = row / args->to_height;
	u32 above = (u32)(row - image * args->to_height), ahead = (u32)(first - row * line);

	from += image * args->from_height * args->from_width * RESIZE_CHANNELS;
	for (u64 i = weir_lane() * (u64)4; i < count; i += weir_lanes() * (u64)4) {
		u32 word = 0;

		for (u32 k = 0; k < 4 && first + i + k < args->bytes; k++) {
			u32 at = ahead + (u32)i + k;

			word |= resize_byte(args, above + at / line, at % line, from) << 8 * k;
		}
		weir_data_store_u32(to + i, word);
	}
}

/* The row of the input, of all images, above or below row @row of the output. */
WEIR_FN u64 resize_source(WEIR_GLOBAL struct resize_args *args, u64 row, u32 below)
{
	u64 image = row / args->to_height;
	struct resize_taps taps =
		resize_axis((u32)(row - image * args->to_height), args->from_height, args->to_height);

	return image * args->from_height + (below ? taps.second : taps.first);
}

/* The tile at byte @first: read, made, and written by the lanes of @wave. */
WEIR_FN void resize_by_wave(u64 wave, WEIR_GLOBAL struct resize_args *args, u64 first)
{
	weir_addr room = args->buffers + weir_wave() * (args->room_bytes + args->tile_bytes);
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	u64 block = (u64)1 << args->from.disk.block_log2, to_block = (u64)1 << args->to.disk.block_log2;
	u64 count = args->bytes - first < args->tile_bytes ? args->bytes - first : args->tile_bytes;
	u64 line = (u64)args->to_width * RESIZE_CHANNELS;
	u64 from_line = (u64)args->from_width * RESIZE_CHANNELS;
	u64 begin = resize_source(args, first / line, 0) * from_line / block * block;
	u64 end = (resize_source(args, (first + count - 1) / line, 1) + 1) * from_line;

	sample_span_move(&args->from, NVME_OPCODE_READ, begin, (end - begin + block - 1) / block * block,
			 room, event);
	weir_wave_sync(wave); /* what each lane has read is all lanes' */
	count = (count + to_block - 1) / to_block * to_block;
	resize_tile(args, first, count, room - begin, room + args->room_bytes);
	weir_wave_sync(wave); /* all lanes' bytes, before they are written */
	sample_span_move(&args->to, NVME_OPCODE_WRITE, first, count, room + args->room_bytes, event);
	weir_wave_sync(wave); /* the buffers are free again */
}

WEIR_KERNEL(resize, struct resize_args)
{
	u64 wave = weir_active();

	if (weir_wave() >= args->waves)
		return;
	for (u64 first = weir_wave() * args->tile_bytes; first < args->bytes;
	     first += args->waves * args->tile_bytes) {
		u32 failed = sample_span_failed(&args->from) | sample_span_failed(&args->to);

		if (weir_ballot(wave, failed)) /* all lanes leave together; the host says why */
			break;
		resize_by_wave(wave, args, first);
	}
}

WEIR_KERNEL(resize_plain, struct resize_args)
{
	u64 waves = (weir_threads() + weir_lanes() - 1) / weir_lanes();

	for (u64 first = weir_wave() * args->tile_bytes; first < args->bytes;
	     first += waves * args->tile_bytes) {
		u64 left = args->bytes - first;

		resize_tile(args, first, left < args->tile_bytes ? left : args->tile_bytes, args->plain_from,
			    args->plain_to + first);
	}
}
