/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * matmul.h: arguments of the kernel that multiplies matrices, shared by host and lanes.
 *
 * A (rows x inner), B (inner x columns) and C (rows x columns) lie on one storage, one behind the other, f32,
 * row by row. C is made a panel of rows at a time: its rows and those of A are in device memory, and B goes
 * by in slices of rows. A panel and a slice are each one range of the storage.
 */
#ifndef MATMUL_H
#define MATMUL_H

#include "../common/span.h"

/* What a lane keeps in registers: so many rows and columns of C. */
enum { MATMUL_ROWS = 8, MATMUL_COLUMNS = 4 };

/* All three dimensions are multiples: then panels and slices are whole blocks. */
enum { MATMUL_UNIT = 32 };

/**
 * struct matmul_args - one launch: a range of the storage is moved while a panel is multiplied by a slice
 * @span: the storage
 * @events: struct weir_event for each piece of a range, and for each lane one more
 * @at, @bytes, @buffer, @opcode: the range that is moved, to or from device memory; @bytes 0: none
 * @a: the panel of A, from its first column that counts on
 * @b: the slice
 * @c: the panel of C
 * @rows: of the panel; 0: nothing is multiplied
 * @inner: rows of the slice
 * @columns: of B and C
 * @stride: columns of A
 * @begins: C begins with zeros; 0: with what is there
 */
struct matmul_args {
	struct sample_span span;
	weir_addr events;
	u64 at;
	u64 bytes;
	weir_addr buffer;
	u64 opcode;
	weir_addr a;
	weir_addr b;
	weir_addr c;
	u64 rows;
	u64 inner;
	u64 columns;
	u64 stride;
	u64 begins;
};

#endif
