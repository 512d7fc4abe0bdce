/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resize.h: arguments of the kernel that resizes images, shared by host and lanes.
 *
 * An image is height x width x 3 bytes, R, G, B; images lie one behind the other, from byte 0 on.
 *
 * The rule, to the bit, for each axis: pixel x of `to` pixels lies, in pixels of the other image of `from`,
 * at s = ((2 x + 1) from - to) / (2 to), or at 0 where that is negative. It is made of pixel floor(s) and the
 * one behind it (the last one has none, and counts again), with the weights 2048 - f and f, where f =
 * floor(2048 (s - floor(s))). A byte is the sum of its four with the products of the weights, divided by
 * 2048 x 2048 and rounded, a half up.
 */
#ifndef RESIZE_H
#define RESIZE_H

#include "../common/span.h"

enum { RESIZE_ONE = 2048, RESIZE_CHANNELS = 3 };

/**
 * struct resize_args - all images
 * @from, @to: the storages; or device memory, if @plain_from is not 0
 * @from_width, @from_height, @to_width, @to_height: of each image, in pixels
 * @bytes: of all that is made
 * @tile_bytes: of it, what a wave makes at a time: whole blocks
 * @room_bytes: of a wave's buffer, for what it reads for a tile
 * @waves: that take part
 * @buffers: @room_bytes + @tile_bytes for each of them
 * @events: struct weir_event of each lane
 * @plain_from, @plain_to: device memory, or 0
 */
struct resize_args {
	struct sample_span from;
	struct sample_span to;
	u32 from_width;
	u32 from_height;
	u32 to_width;
	u32 to_height;
	u64 bytes;
	u64 tile_bytes;
	u64 room_bytes;
	u64 waves;
	weir_addr buffers;
	weir_addr events;
	weir_addr plain_from;
	weir_addr plain_to;
};

#endif
