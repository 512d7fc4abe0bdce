/* SPDX-License-Identifier: BSD-3-Clause */
#include "span_host.h"

#include <errno.h>

int sample_storage_open(const struct sample_device *device, struct weir_context *context, const char *uri,
			struct sample_storage *storage, char *error)
{
	int code;

	storage->uri = uri;
	storage->info.size = sizeof(storage->info);
	code = weir_storage_open(context, uri,
				 WEIR_OPTIONS(storage, .queues = device->queues, .depth = device->depth),
				 &storage->storage);
	if (!code)
		code = weir_storage_info(storage->storage, &storage->info);
	if (!code)
		code = weir_storage_disk(storage->storage, &storage->span.disk);
	if (!code)
		code = weir_alloc(context, sizeof(uint64_t), &storage->span.failure);
	storage->span.piece_bytes = storage->info.max_transfer_bytes;
	return sample_pass(error, code);
}

int sample_storage_failed(struct weir_context *context, const struct sample_storage *storage, char *error)
{
	uint64_t failure = 0;
	char text[80];
	int code = weir_copy_from_device(context, &failure, storage->span.failure, sizeof(failure));

	if (code || !failure)
		return sample_pass(error, code);
	weir_status_text((uint32_t)failure, text);
	return sample_fail(error, -EIO, "a command of a lane to %.800s failed: %s", storage->uri, text);
}

int sample_storage_bytes(const struct sample_storage *storage, uint64_t at, uint64_t bytes, void *buffer,
			 const unsigned char **from, char *error)
{
	uint64_t skip = at % storage->info.block_bytes;
	int code = weir_storage_read(storage->storage, at - skip, buffer,
				     sample_round_up(skip + bytes, storage->info.block_bytes));

	*from = (const unsigned char *)buffer + skip;
	return sample_pass(error, code);
}

uint64_t sample_round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

int sample_run_waves(struct weir_context *context, const char *kernel, uint64_t waves, const void *args,
		     size_t bytes)
{
	struct weir_context_info info = { .size = sizeof(info) };
	int code = weir_context_info(context, &info);
	uint64_t lanes = waves * (code ? 1 : info.wave_lanes);
	uint32_t block = lanes < SAMPLE_BLOCK_LANES ? (uint32_t)lanes : (uint32_t)SAMPLE_BLOCK_LANES;

	if (!code)
		code = weir_launch(context, kernel, (uint32_t)((lanes + block - 1) / block), block, args,
				   bytes);
	return code ? code : weir_sync(context);
}
