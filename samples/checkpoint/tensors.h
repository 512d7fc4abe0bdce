/* SPDX-License-Identifier: BSD-3-Clause */
/* tensors.h: the tensors of a checkpoint in device memory, and what lanes and the host do with them. */
#ifndef CHECKPOINT_TENSORS_H
#define CHECKPOINT_TENSORS_H

#include "../common/span_host.h"
#include "../safetensors/model.h"
#include "checkpoint.h"

/**
 * struct tensors - a model in device memory, each tensor from a multiple of 256 on
 * @context: whose
 * @model: what the header says
 * @args: for kernels
 * @memory: of the tensors
 */
struct tensors {
	struct weir_context *context;
	struct model model;
	struct checkpoint_args args;
	uint64_t memory;
};

/**
 * tensors_open() - memory of their own for all tensors of a header
 * @storage: that they go to or come from
 * @waves: that move them
 * @header: a safetensors header of @header_bytes, for @data_bytes of data
 *
 * Return: 0 or a negative errno with a sentence.
 */
int tensors_open(struct tensors *tensors, struct weir_context *context, const struct sample_storage *storage,
		 uint64_t waves, const char *header, uint64_t header_bytes, uint64_t data_bytes, char *error);

/** tensors_run() - one of the kernels; 0 or a negative errno with a sentence */
int tensors_run(struct tensors *tensors, const char *kernel, char *error);

/** tensors_sum() - lanes add up all words, by their places */
int tensors_sum(struct tensors *tensors, uint64_t *sum, char *error);

/** tensors_check() - whether each has the numbers of @seed; -EBADMSG with a sentence if not */
int tensors_check(struct tensors *tensors, uint64_t seed, const char *way, char *error);

/** tensors_compare() - whether @bytes from byte @at of a checkpoint's data on are the numbers of @seed;
 * likewise */
int tensors_compare(const float *values, uint64_t at, uint64_t bytes, uint64_t seed, const char *way,
		    char *error);

/** tensors_close() - fine for one that is all zeros, too */
void tensors_close(struct tensors *tensors);

#endif
