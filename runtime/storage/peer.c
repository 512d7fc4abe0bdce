/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../device/context.h"
#include "../backend/error.h"

static struct weir_backend_properties properties_of(const struct weir_context *context)
{
	struct weir_backend_properties properties = { .wave_lanes = 0 };

	context->backend->ops->properties(context->backend, &properties);
	return properties;
}

bool weir_peer_asked(const struct weir_storage *storage)
{
	return storage->transport->registers && !storage->context->shared_memory &&
	       storage->transport->gpu_memory != WEIR_GPU_MEMORY_NONE;
}

/* What the host does not see of a device's memory. */
static bool is_hidden(const struct weir_memory_block *block)
{
	return block->kind == WEIR_MEMORY_DEVICE && !block->host;
}

int weir_peer_add(struct weir_context *context, struct weir_memory_block *block)
{
	struct weir_backend *backend = context->backend;
	uint64_t offset;
	void *memory;
	int error, file;

	if (!is_hidden(block) || block->exported)
		return 0;
	error = backend->ops->export_memory(backend, block->address, block->bytes, &file, &offset);
	if (error)
		return error;
	memory = mmap(NULL, block->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
	error = errno;
	close(file);
	if (memory == MAP_FAILED)
		return weir_fail(ENOTSUP, "the process cannot map a dma-buf of the device's memory (%s)",
				 strerror(error));
	error = weir_dma_map_add_device(context->dma, block->address, block->bytes, memory);
	if (error)
		munmap(memory, block->bytes);
	else
		block->exported = memory;
	return error;
}

void weir_peer_remove(struct weir_context *context, struct weir_memory_block *block)
{
	if (!block->exported)
		return;
	(void)weir_dma_map_remove(context->dma, (void *)(uintptr_t)block->address);
	munmap(block->exported, block->bytes);
	block->exported = NULL;
}

static int add_all(struct weir_context *context)
{
	int error = 0;

	for (struct weir_memory_block *block = context->memory; block && !error; block = block->next)
		error = weir_peer_add(context, block);
	return error;
}

static void remove_all(struct weir_context *context)
{
	for (struct weir_memory_block *block = context->memory; block; block = block->next)
		weir_peer_remove(context, block);
}

/* What the device and its driver promise. */
static int check_properties(const struct weir_context *context)
{
	struct weir_backend_properties properties = properties_of(context);

	if (!context->backend->ops->export_memory || !properties.export_memory.has)
		return weir_fail(ENOTSUP, "%s exports no memory as a dma-buf: %s", properties.name,
				 properties.export_memory.why);
	if (properties.peer_writes < WEIR_PEER_WRITES_ORDERED)
		return weir_fail(
			ENOTSUP, "lanes of %s that have seen a completion may not see the data yet: %s",
			properties.name,
			properties.peer_writes == WEIR_PEER_WRITES_FLUSHED
				? "the host has to flush what other devices wrote there"
				: "its driver promises nothing about what other devices wrote there");
	return 0;
}

/* One page at @page, filled with @poison, then written by the controller: it has to be @expected. */
static int try_page(struct weir_storage *storage, uint64_t page, int poison,
		    const char expected[NVME_PAGE_BYTES])
{
	struct weir_backend *backend = storage->context->backend;
	char found[NVME_PAGE_BYTES];
	unsigned wrong = 0;
	int error;

	memset(found, poison, sizeof(found));
	error = backend->ops->h2d(backend, page, found, sizeof(found));
	if (!error)
		error = weir_admin_identify_at(&storage->admin, page);
	if (!error)
		error = backend->ops->d2h(backend, found, page, sizeof(found));
	if (error)
		return error;
	for (unsigned i = 0; i < sizeof(found); i++)
		wrong += found[i] != expected[i];
	return wrong ? weir_fail(EIO,
				 "a test failed: of a page that the controller was to write to the device's "
				 "memory %u bytes are others",
				 wrong)
		     : 0;
}

/* Twice, over different contents: no byte is right because it was so before. */
static int try_controller(struct weir_storage *storage)
{
	char expected[NVME_PAGE_BYTES];
	const char *data = (const char *)storage->admin.memory + 2 * NVME_PAGE_BYTES;
	uint64_t page = 0;
	int error = weir_admin_identify_at(&storage->admin, storage->admin.bus + 2 * NVME_PAGE_BYTES);

	if (error)
		return error;
	memcpy(expected, data, sizeof(expected));
	error = weir_memory_get(storage->context, NVME_PAGE_BYTES, &page);
	if (!error)
		error = try_page(storage, page, 0xa5, expected);
	if (!error)
		error = try_page(storage, page, 0x5a, expected);
	(void)weir_memory_put(storage->context, page);
	return error;
}

int weir_peer_use(struct weir_storage *storage)
{
	struct weir_context *context = storage->context;
	int error = check_properties(context);

	if (error)
		return error;
	storage->peer = true;
	context->peer_storages++;
	error = add_all(context);
	if (!error)
		error = try_controller(storage);
	if (error)
		weir_peer_end(storage);
	return error;
}

void weir_peer_end(struct weir_storage *storage)
{
	if (!storage->peer)
		return;
	storage->peer = false;
	if (--storage->context->peer_storages == 0)
		remove_all(storage->context);
}
