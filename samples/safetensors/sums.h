/* SPDX-License-Identifier: BSD-3-Clause */
/* sums.h: what lanes find in device memory, and what the host finds in the file. */
#ifndef SAFETENSORS_SUMS_H
#define SAFETENSORS_SUMS_H

#include "../common/device.h"
#include "model.h"

/**
 * struct sums - of a model that is loaded
 * @memory: the tensors, each from a multiple of 256 on
 * @bytes: of it
 * @at: where each tensor is in it
 * @right: the sum that each tensor is to have
 */
struct sums {
	struct weir_context *context;
	const struct model *model;
	uint64_t memory;
	uint64_t bytes;
	uint64_t indices;
	uint64_t *at;
	uint64_t *right;
};

/** sums_open() - memory for the tensors of a model, and their sums out of @file; 0 or a negative errno with a
 * sentence */
int sums_open(struct sums *sums, struct weir_context *context, const struct model *model, int file,
	      char *error);

/** sums_poison() - lanes fill the memory with what no tensor is */
int sums_poison(struct sums *sums, char *error);

/** sums_check() - lanes add up every tensor; -EBADMSG with a sentence if one is not what the file has */
int sums_check(struct sums *sums, const char *way, char *error);

/** sums_close() - the device memory goes with the context */
void sums_close(struct sums *sums);

#endif
