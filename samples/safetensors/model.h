/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h: the header of a safetensors file, read strictly.
 *
 * A file is 8 bytes N, little-endian, N bytes of JSON, then the data. The JSON is an object: of each tensor
 * its dtype, shape, and where in the data it begins and ends; and perhaps "__metadata__", strings by name.
 * The tensors cover the data without a gap and without an overlap.
 */
#ifndef SAFETENSORS_MODEL_H
#define SAFETENSORS_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum {
	MODEL_MOST_HEADER = 100000000,
	MODEL_MOST_DIMENSIONS = 16,
	MODEL_LENGTH_BYTES = 8,
	MODEL_ERROR_BYTES = 1024
};

/**
 * struct model_tensor - one tensor
 * @name: of it
 * @dtype: as the file has it, such as "BF16"
 * @begin: first byte within the data
 * @bytes: length
 */
struct model_tensor {
	char *name;
	const char *dtype;
	uint64_t begin;
	uint64_t bytes;
};

/**
 * struct model - what a file has
 * @tensors: @count of them, in the order of the data
 * @data: offset of the data within the file
 * @data_bytes: length of the data
 */
struct model {
	struct model_tensor *tensors;
	size_t count;
	uint64_t data;
	uint64_t data_bytes;
};

/**
 * model_length() - the header's length out of the first bytes of a file
 * @first: MODEL_LENGTH_BYTES bytes
 * @file_bytes: the file has
 * @bytes: receives it
 * @error: at least MODEL_ERROR_BYTES
 *
 * Return: 0, or -EINVAL with a sentence.
 */
int model_length(const unsigned char *first, uint64_t file_bytes, uint64_t *bytes, char *error);

/**
 * model_parse() - a header
 * @header: @bytes bytes of JSON
 * @file_bytes: the file has
 * @model: receives it; model_free() it
 * @error: at least MODEL_ERROR_BYTES
 *
 * Return: 0, or -EINVAL or -ENOMEM with a sentence that names the tensor and what is wrong with it.
 */
int model_parse(const char *header, uint64_t bytes, uint64_t file_bytes, struct model *model, char *error);

/** model_free() - fine for one that is all zeros, too */
void model_free(struct model *model);

/** model_bits() - of an element of @dtype, 0 for one that is not known */
unsigned model_bits(const char *dtype);

#endif
