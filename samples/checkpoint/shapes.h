/* SPDX-License-Identifier: BSD-3-Clause */
/* shapes.h: the tensors of a GPT-2 model, and the safetensors header that names them. */
#ifndef CHECKPOINT_SHAPES_H
#define CHECKPOINT_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

enum { SHAPES_HEADER_UNIT = 4096 };

/**
 * struct shapes - which model
 * @layers, @width, @vocabulary, @positions: GPT-2 small: 12, 768, 50257, 1024
 * @optimizer: with Adam's two moments of each tensor
 */
struct shapes {
	uint64_t layers;
	uint64_t width;
	uint64_t vocabulary;
	uint64_t positions;
	bool optimizer;
};

/**
 * shapes_header() - a safetensors header: the length of the JSON, the JSON, and spaces to a whole unit
 * @shapes: the model
 * @step: goes into the header, as "step" of its metadata
 * @bytes: receives the header's length
 *
 * Return: to be freed; NULL: no memory.
 */
char *shapes_header(const struct shapes *shapes, uint64_t step, uint64_t *bytes);

#endif
