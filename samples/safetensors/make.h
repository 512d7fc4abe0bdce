/* SPDX-License-Identifier: BSD-3-Clause */
/* make.h: a file that is like a model's: layers of large and small tensors, with names that one knows. */
#ifndef SAFETENSORS_MAKE_H
#define SAFETENSORS_MAKE_H

#include <stdint.h>

/**
 * make_model() - write one
 * @path: where
 * @bytes: about how long its data is to be
 * @seed: of its numbers
 * @error: at least MODEL_ERROR_BYTES
 *
 * Return: 0 or a negative errno with a sentence.
 */
int make_model(const char *path, uint64_t bytes, uint64_t seed, char *error);

#endif
