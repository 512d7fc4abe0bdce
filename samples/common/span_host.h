/* SPDX-License-Identifier: BSD-3-Clause */
/* span_host.h: the host's side of span.h: open a storage for it, and learn how its commands ended. */
#ifndef SAMPLE_SPAN_HOST_H
#define SAMPLE_SPAN_HOST_H

#include "device.h"
#include "span.h"

/**
 * struct sample_storage - a storage that a sample has open
 * @uri: of it
 * @storage: itself
 * @info: of it
 * @span: for kernel arguments
 */
struct sample_storage {
	const char *uri;
	struct weir_storage *storage;
	struct weir_storage_info info;
	struct sample_span span;
};

/** sample_storage_open() - open @uri for lanes, by the queues of @device; 0 or a negative errno with a
 * sentence */
int sample_storage_open(const struct sample_device *device, struct weir_context *context, const char *uri,
			struct sample_storage *storage, char *error);

/** sample_storage_failed() - 0 if no command of any lane failed, or a negative errno with a sentence */
int sample_storage_failed(struct weir_context *context, const struct sample_storage *storage, char *error);

/**
 * sample_storage_bytes() - bytes of a storage from anywhere on, for the host
 * @at: the first one
 * @bytes: how many
 * @buffer: room for two blocks more
 * @from: receives where in it they begin
 *
 * Return: 0 or a negative errno with a sentence.
 */
int sample_storage_bytes(const struct sample_storage *storage, uint64_t at, uint64_t bytes, void *buffer,
			 const unsigned char **from, char *error);

/** sample_round_up() - to a multiple of @unit */
uint64_t sample_round_up(uint64_t value, uint64_t unit);

/** sample_run_waves() - launch lanes for @waves waves and wait for them */
int sample_run_waves(struct weir_context *context, const char *kernel, uint64_t waves, const void *args,
		     size_t bytes);

#endif
