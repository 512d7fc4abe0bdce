/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

/* Sums stay below 2^24: 15 x 15 x 2^16. */
static float element(uint64_t random)
{
	return (float)((int)(random >> 33) % (2 * CHECK_MOST_VALUE + 1) - CHECK_MOST_VALUE);
}

float check_a(uint64_t index)
{
	return element(sample_scramble(2 * index));
}

float check_b(uint64_t index)
{
	return element(sample_scramble(2 * index + 1));
}

/* 32 random bits for each column: a row that is wrong passes for one in 2^32 of them, in arithmetic modulo
 * 2^64. */
static void draw_vectors(struct check *check)
{
	for (uint64_t i = 0; i < CHECK_VECTORS * check->columns; i++)
		check->vectors[i] = sample_scramble(0x5eed + i) >> 32;
}

/* B x, and B's part of the rows that are known. */
static void multiply_b(struct check *check, uint64_t *by_inner)
{
	for (uint64_t k = 0; k < check->inner; k++) {
		int64_t a[CHECK_ROWS];

		for (unsigned r = 0; r < CHECK_ROWS; r++)
			a[r] = (int64_t)check_a(check->row[r] * check->inner + k);
		for (uint64_t j = 0; j < check->columns; j++) {
			int64_t b = (int64_t)check_b(k * check->columns + j);

			for (unsigned v = 0; v < CHECK_VECTORS; v++)
				by_inner[k * CHECK_VECTORS + v] +=
					(uint64_t)b * check->vectors[j * CHECK_VECTORS + v];
			for (unsigned r = 0; r < CHECK_ROWS; r++)
				check->elements[r * check->columns + j] += a[r] * b;
		}
	}
}

static void multiply_a(struct check *check, const uint64_t *by_inner)
{
	for (uint64_t i = 0; i < check->rows; i++)
		for (uint64_t k = 0; k < check->inner; k++) {
			uint64_t a = (uint64_t)(int64_t)check_a(i * check->inner + k);

			for (unsigned v = 0; v < CHECK_VECTORS; v++)
				check->products[i * CHECK_VECTORS + v] += a * by_inner[k * CHECK_VECTORS + v];
		}
}

int check_open(struct check *check, uint64_t rows, uint64_t inner, uint64_t columns, char *error)
{
	uint64_t *by_inner = calloc(inner, CHECK_VECTORS * sizeof(*by_inner));

	*check = (struct check){ .rows = rows, .inner = inner, .columns = columns };
	check->vectors = calloc(columns, CHECK_VECTORS * sizeof(*check->vectors));
	check->products = calloc(rows, CHECK_VECTORS * sizeof(*check->products));
	check->elements = calloc(columns, CHECK_ROWS * sizeof(*check->elements));
	if (!by_inner || !check->vectors || !check->products || !check->elements) {
		free(by_inner);
		return sample_fail(error, -ENOMEM, "no memory to verify the product");
	}
	for (unsigned r = 2; r < CHECK_ROWS; r++)
		check->row[r] = sample_scramble(r) % rows;
	check->row[1] = rows - 1; /* the first, the last, and some between */
	draw_vectors(check);
	multiply_b(check, by_inner);
	multiply_a(check, by_inner);
	free(by_inner);
	return 0;
}

static int wrong(const char *way, uint64_t row, uint64_t column, float value, double right, char *error)
{
	return sample_fail(
		error, -EBADMSG,
		"WRONG RESULT: %s, element (%llu, %llu) of C is %.9g, A x B has %.9g there; please report "
		"this",
		way, (unsigned long long)row, (unsigned long long)column, (double)value, right);
}

static int compare_row(const struct check *check, unsigned known, const float *values, const char *way,
		       char *error)
{
	const int64_t *right = check->elements + known * check->columns;

	for (uint64_t j = 0; j < check->columns; j++)
		if ((double)values[j] != (double)right[j])
			return wrong(way, check->row[known], j, values[j], (double)right[j], error);
	return 0;
}

int check_row(const struct check *check, uint64_t row, const float *values, const char *way, char *error)
{
	uint64_t sums[CHECK_VECTORS] = { 0 };

	for (unsigned r = 0; r < CHECK_ROWS; r++)
		if (check->row[r] == row && compare_row(check, r, values, way, error))
			return -EBADMSG;
	for (uint64_t j = 0; j < check->columns; j++) {
		if (!(values[j] > -0x1p24f && values[j] < 0x1p24f) || values[j] != (float)(int)values[j])
			return sample_fail(
				error, -EBADMSG,
				"WRONG RESULT: %s, element (%llu, %llu) of C is %.9g, which no sum of these "
				"products is; please report this",
				way, (unsigned long long)row, (unsigned long long)j, (double)values[j]);
		for (unsigned v = 0; v < CHECK_VECTORS; v++)
			sums[v] += (uint64_t)(int64_t)values[j] * check->vectors[j * CHECK_VECTORS + v];
	}
	for (unsigned v = 0; v < CHECK_VECTORS; v++)
		if (sums[v] != check->products[row * CHECK_VECTORS + v])
			return sample_fail(
				error, -EBADMSG,
				"WRONG RESULT: %s, row %llu of C is not that of A x B; please report this",
				way, (unsigned long long)row);
	return 0;
}

void check_close(struct check *check)
{
	free(check->vectors);
	free(check->products);
	free(check->elements);
}
