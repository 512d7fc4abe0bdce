/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h: the matrices' elements, and whether C is A x B: for random vectors x, C x = A (B x) in integers
 * (Freivalds), and some rows, every element of them. A and B are whole numbers, so few and so small that
 * every sum is exact in f32, in whatever order.
 */
#ifndef MATMUL_CHECK_H
#define MATMUL_CHECK_H

#include "../common/device.h"

enum { CHECK_VECTORS = 3, CHECK_ROWS = 6, CHECK_MOST_VALUE = 15, CHECK_MOST_INNER = 1 << 16 };

/**
 * struct check - what C is to be
 * @rows, @inner, @columns: of the matrices
 * @vectors: x: CHECK_VECTORS for each column
 * @products: A (B x): CHECK_VECTORS for each row
 * @row: the rows whose elements are known
 * @elements: of these rows
 */
struct check {
	uint64_t rows;
	uint64_t inner;
	uint64_t columns;
	uint64_t *vectors;
	uint64_t *products;
	uint64_t row[CHECK_ROWS];
	int64_t *elements;
};

/** check_a(), check_b() - element @index of A or B, counted row by row */
float check_a(uint64_t index);
float check_b(uint64_t index);

/** check_open() - work it out; 0 or -ENOMEM with a sentence */
int check_open(struct check *check, uint64_t rows, uint64_t inner, uint64_t columns, char *error);

/** check_row() - row @row of C, whose elements are @values; -EBADMSG with a sentence if it is not right */
int check_row(const struct check *check, uint64_t row, const float *values, const char *way, char *error);

/** check_close() - fine for one that is all zeros, too */
void check_close(struct check *check);

#endif
