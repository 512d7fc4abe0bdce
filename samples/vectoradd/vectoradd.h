/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vectoradd.h: arguments of the kernels that add vectors, shared by host and lanes.
 *
 * a, b and the sum c lie on one storage, one behind the other, or (vectoradd_plain) in
 * device memory. They are taken as elements of 16 bytes: two u64, or four f32.
 */
#ifndef VECTORADD_H
#define VECTORADD_H

#include <weir/abi.h>

/* Buffers of a wave that adds tiles: a, b and c, each twice. */
enum { VECTORADD_BUFFERS = 6 };

/* Lines of each vector that a wave asks for together. */
enum { VECTORADD_LINES = 8 };

/**
 * struct vectoradd_tiled_args - by hand: tiles between the storage and buffers of each wave
 * @disk: the storage
 * @vector_bytes: length of a vector; a multiple of @tile_bytes
 * @tile_bytes: one command's worth
 * @waves: waves that take part
 * @buffers: VECTORADD_BUFFERS tiles for each of them
 * @events: as many struct weir_event
 * @failure: u64: weir_status of a command that failed; 0: none did
 * @is_float: the elements are f32
 */
struct vectoradd_tiled_args {
	struct weir_disk disk;
	u64 vector_bytes;
	u64 tile_bytes;
	u64 waves;
	weir_addr buffers;
	weir_addr events;
	weir_addr failure;
	u64 is_float;
};

/**
 * struct vectoradd_cached_args - through arrays, and the cache
 * @a, @b, @c: the vectors, as elements of 16 bytes
 * @line_bytes: of the cache
 * @waves: waves that take part
 * @buffers: VECTORADD_LINES lines for each of them
 * @is_float: the elements are f32
 */
struct vectoradd_cached_args {
	struct weir_array a;
	struct weir_array b;
	struct weir_writer c;
	u64 line_bytes;
	u64 waves;
	weir_addr buffers;
	u64 is_float;
};

/** struct vectoradd_plain_args - the same in device memory; @count elements of 16 bytes */
struct vectoradd_plain_args {
	weir_addr a;
	weir_addr b;
	weir_addr c;
	u64 count;
	u64 is_float;
};

#endif
