/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C = A x B, a panel and a slice at a time. What a launch multiplies was read by launches before it, so that
 * lanes load it plainly; what it reads is for the next one, and on its way meanwhile.
 */
#include "../common/span_walk.h"
#include "matmul.h"

/** struct matmul_four - four elements of a row */
struct matmul_four {
	float value[MATMUL_COLUMNS];
} __attribute__((aligned(16)));

/** struct matmul_tile - a lane's part of C */
struct matmul_tile {
	struct matmul_four row[MATMUL_ROWS];
};

/* Four columns of A by four rows of B. */
WEIR_FN struct matmul_tile matmul_add(struct matmul_tile tile, weir_addr a, u64 stride, weir_addr b,
				      u64 columns)
{
	struct matmul_four right[MATMUL_COLUMNS];

	for (u32 k = 0; k < MATMUL_COLUMNS; k++)
		right[k] = *weir_at(b + k * columns * sizeof(float), struct matmul_four, 0);
	for (u32 i = 0; i < MATMUL_ROWS; i++) {
		struct matmul_four left = *weir_at(a + i * stride * sizeof(float), struct matmul_four, 0);

		for (u32 k = 0; k < MATMUL_COLUMNS; k++)
			for (u32 j = 0; j < MATMUL_COLUMNS; j++)
				tile.row[i].value[j] += left.value[k] * right[k].value[j];
	}
	return tile;
}

/* The tile of C at device address @c: its rows of A begin at @a, its columns of B at @b. */
WEIR_FN void matmul_tile_by(WEIR_GLOBAL struct matmul_args *args, weir_addr a, weir_addr b, weir_addr c)
{
	u64 row_bytes = args->columns * sizeof(float);
	struct matmul_tile tile;

	for (u32 i = 0; i < MATMUL_ROWS; i++)
		for (u32 j = 0; j < MATMUL_COLUMNS; j++)
			tile.row[i].value[j] = args->begins ? 0.0f : *weir_at(c + i * row_bytes, float, j);
	for (u64 k = 0; k < args->inner; k += MATMUL_COLUMNS)
		tile = matmul_add(tile, a + k * sizeof(float), args->stride, b + k * row_bytes,
				  args->columns);
	for (u32 i = 0; i < MATMUL_ROWS; i++)
		*weir_at(c + i * row_bytes, struct matmul_four, 0) = tile.row[i];
}

/* Lanes side by side take tiles side by side. */
WEIR_FN void matmul_multiply(WEIR_GLOBAL struct matmul_args *args)
{
	u64 across = args->columns / MATMUL_COLUMNS, tiles = args->rows / MATMUL_ROWS * across;

	for (u64 tile = weir_thread(); tile < tiles; tile += weir_threads()) {
		u64 row = tile / across * MATMUL_ROWS, column = tile % across * MATMUL_COLUMNS;

		matmul_tile_by(args, args->a + row * args->stride * sizeof(float),
			       args->b + column * sizeof(float),
			       args->c + (row * args->columns + column) * sizeof(float));
	}
}

/* The lanes of the launch start, or finish, all pieces of the range: each as many, some of them none. */
WEIR_FN void matmul_move(WEIR_GLOBAL struct matmul_args *args, u32 finish)
{
	u64 pieces = (args->bytes + args->span.piece_bytes - 1) / args->span.piece_bytes;

	for (u64 first = 0; first < pieces; first += weir_threads()) {
		u64 piece = first + weir_thread(), from = piece * args->span.piece_bytes;
		WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, piece);

		if (finish)
			sample_span_finish(&args->span, (u32)args->opcode, args->at, args->bytes, from,
					   args->buffer, event);
		else
			sample_span_start(&args->span, (u32)args->opcode, args->at, args->bytes, from,
					  args->buffer, event);
	}
}

WEIR_KERNEL(matmul_step, struct matmul_args)
{
	u64 wave = weir_active();

	matmul_move(args, 0);
	matmul_multiply(args);
	weir_wave_sync(wave); /* all lanes wait together */
	matmul_move(args, 1);
}

WEIR_KERNEL(matmul_plain, struct matmul_args)
{
	matmul_multiply(args);
}
