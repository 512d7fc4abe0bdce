/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes for the host, through the same queues lanes use. */
#include <errno.h>
#include <string.h>

#include "../device/context.h"
#include "../backend/error.h"
#include "../kernels/block_copy.h"

enum { LANES = 64, CHUNK_BYTES = 8 << 20 };

/* Launch the kernel and wait; the device's status becomes a sentence. */
static int run(struct weir_context *context, const struct weir_disk *disk, const char *uri,
	       struct weir_block_copy_args *args)
{
	uint32_t result = 0;
	char text[80];
	int error =
		weir_memory_get(context, LANES * sizeof(struct weir_event) + sizeof(uint32_t), &args->events);

	if (error)
		return error;
	args->disk = *disk;
	args->result = args->events + LANES * sizeof(struct weir_event);
	error = weir_launch(context, "weir_block_copy", 1, LANES, args, sizeof(*args));
	/* Not weir_sync(): a fault of the kernels before is still theirs to tell. */
	if (!error)
		error = context->backend->ops->synchronise(context->backend);
	if (!error)
		error = weir_copy_from_device(context, &result, args->result, sizeof(result));
	weir_memory_leave(context, args->events, LANES * sizeof(struct weir_event) + sizeof(uint32_t));
	if (error || !result)
		return error;
	weir_status_text(result, text);
	if (args->opcode == NVME_OPCODE_FLUSH)
		return weir_fail(EIO, "storage \"%s\": flush: %s", uri, text);
	return weir_fail(EIO, "storage \"%s\": blocks %llu to %llu: %s", uri, (unsigned long long)args->lba,
			 (unsigned long long)(args->lba + args->blocks), text);
}

/* A read may ask for all of a last block that is not whole; a write of what will not be kept is refused. */
static int check_range(struct weir_storage *storage, uint32_t opcode, uint64_t offset, size_t bytes)
{
	uint64_t blocks = storage->disk.blocks << storage->disk.block_log2, end = weir_storage_bytes(storage);
	uint64_t mask = ((uint64_t)1 << storage->disk.block_log2) - 1,
		 room = opcode == NVME_OPCODE_READ ? blocks : end;

	if (offset > room || bytes > room - offset)
		return weir_fail(
			ERANGE,
			"storage \"%s\": %zu bytes at %llu reach past its %llu bytes; %llu bytes fit there",
			storage->uri, bytes, (unsigned long long)offset, (unsigned long long)end,
			(unsigned long long)(offset < end ? end - offset : 0));
	if ((offset & mask) || ((bytes & mask) && offset + bytes != end))
		return weir_fail(EINVAL,
				 "storage \"%s\": offset %llu and length %zu must be multiples of %llu, or "
				 "end with the "
				 "storage, at byte %llu",
				 storage->uri, (unsigned long long)offset, bytes,
				 (unsigned long long)mask + 1, (unsigned long long)end);
	return 0;
}

static int check(struct weir_storage *storage, uint32_t opcode, uint64_t offset, const void *data,
		 size_t bytes)
{
	const char *call = opcode == NVME_OPCODE_WRITE ? "weir_storage_write" : "weir_storage_read";
	int error = weir_handle_check(storage, WEIR_HANDLE_STORAGE, call);

	if (!error && bytes)
		error = weir_given(data, call, "data");
	return error ? error : check_range(storage, opcode, offset, bytes);
}

static int transfer(struct weir_storage *storage, uint32_t opcode, uint64_t offset, void *data, size_t bytes,
		    uint64_t buffer)
{
	struct weir_context *context = storage->context;
	struct weir_block_copy_args args = {
		.lba = offset >> storage->disk.block_log2,
		.blocks = (bytes + ((uint64_t)1 << storage->disk.block_log2) - 1) >> storage->disk.block_log2,
		.opcode = opcode,
		.step = storage->disk.max_blocks,
		.buffer = buffer,
	};
	int error = opcode == NVME_OPCODE_WRITE ? weir_copy_to_device(context, buffer, data, bytes) : 0;

	if (!error)
		error = run(context, &storage->disk, storage->uri, &args);
	if (!error && opcode == NVME_OPCODE_READ)
		error = weir_copy_from_device(context, data, buffer, bytes);
	return error;
}

static int copy(struct weir_storage *storage, uint32_t opcode, uint64_t offset, void *data, size_t bytes)
{
	uint64_t buffer;
	int error = check(storage, opcode, offset, data, bytes);

	if (error || bytes == 0)
		return error;
	error = weir_memory_get(storage->context, bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES, &buffer);
	for (size_t done = 0; done < bytes && !error; done += CHUNK_BYTES)
		error = transfer(storage, opcode, offset + done, (char *)data + done,
				 bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES, buffer);
	weir_memory_leave(storage->context, buffer, bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES);
	return error;
}

int weir_storage_write(struct weir_storage *storage, uint64_t offset, const void *data, size_t bytes)
{
	return copy(storage, NVME_OPCODE_WRITE, offset, (void *)(uintptr_t)data, bytes);
}

int weir_storage_read(struct weir_storage *storage, uint64_t offset, void *data, size_t bytes)
{
	return copy(storage, NVME_OPCODE_READ, offset, data, bytes);
}

int weir_disk_flush(struct weir_context *context, const struct weir_disk *disk, const char *uri)
{
	struct weir_block_copy_args args = { .opcode = NVME_OPCODE_FLUSH };

	return run(context, disk, uri, &args);
}

int weir_storage_flush(struct weir_storage *storage)
{
	int error = weir_handle_check(storage, WEIR_HANDLE_STORAGE, "weir_storage_flush");

	return error ? error : weir_disk_flush(storage->context, &storage->disk, storage->uri);
}
