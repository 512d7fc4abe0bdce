/* SPDX-License-Identifier: BSD-3-Clause */
/* by_hand.h: the same loading without weir_file: threads that read and copy, or mmap() and copy. */
#ifndef SAFETENSORS_BY_HAND_H
#define SAFETENSORS_BY_HAND_H

#include "sums.h"

enum { BY_HAND_MOST_THREADS = 64 };

struct by_hand;

/**
 * by_hand_open() - threads' staging: 16 MiB of pinned memory, which they share
 * @sums: of a model, and where its tensors are to lie
 * @file: open without O_DIRECT
 * @threads: how many
 * @out: what the other calls take
 *
 * Return: 0 or a negative errno with a sentence.
 */
int by_hand_open(const struct sums *sums, int file, uint32_t threads, struct by_hand **out, char *error);

/** by_hand_read() - all tensors: each thread reads the next piece into its staging, and copies it */
int by_hand_read(struct by_hand *hand, char *error);

/** by_hand_map() - all tensors, by one thread: map the file, copy each tensor, unmap the file */
int by_hand_map(struct by_hand *hand, char *error);

/** by_hand_close() - the pinned memory goes with the context; NULL is fine */
void by_hand_close(struct by_hand *hand);

#endif
