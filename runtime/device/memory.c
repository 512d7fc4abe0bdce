/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory; what the host can see of it is registered for DMA. */
#include <errno.h>
#include <stdlib.h>

#include "../cache/cache.h"
#include "context.h"
#include "../backend/error.h"
#include "../storage/peer.h"

int weir_memory_allocate(struct weir_context *context, size_t bytes, enum weir_memory kind, uint64_t *address,
			 void **host)
{
	struct weir_memory_block *block = calloc(1, sizeof(*block));
	int error;

	*address = 0;
	if (!block)
		return weir_fail(ENOMEM, "no memory to note an allocation");
	if (bytes == 0 || bytes > SIZE_MAX - NVME_PAGE_BYTES) {
		free(block);
		return weir_fail(EINVAL, "cannot allocate %zu bytes", bytes);
	}
	block->kind = kind;
	block->bytes = (bytes + NVME_PAGE_BYTES - 1) & ~(size_t)(NVME_PAGE_BYTES - 1);
	error = context->backend->ops->allocate(context->backend, block->bytes, kind, &block->host,
						&block->address);
	if (!error && block->host) {
		error = kind == WEIR_MEMORY_DEVICE && context->peer_memory
				? weir_dma_map_add_peer(context->dma, block->host, block->bytes)
				: weir_dma_map_add(context->dma, block->host, block->bytes);
		if (error)
			context->backend->ops->release(context->backend, block->address, block->bytes, kind);
	}
	if (!error && context->peer_storages && (error = weir_peer_add(context, block)) != 0)
		context->backend->ops->release(context->backend, block->address, block->bytes, kind);
	if (error) {
		free(block);
		return error;
	}
	block->next = context->memory;
	context->memory = block;
	*address = block->address;
	if (host)
		*host = block->host;
	return 0;
}

int weir_memory_get(struct weir_context *context, size_t bytes, uint64_t *address)
{
	return weir_memory_allocate(context, bytes, WEIR_MEMORY_DEVICE, address, NULL);
}

/* An allocation that weir_free() takes. */
static int allocate_for_user(struct weir_context *context, size_t bytes, enum weir_memory kind,
			     uint64_t *address, void **host)
{
	int error = weir_memory_allocate(context, bytes, kind, address, host);

	if (!error)
		context->memory->users = true;
	return error;
}

int weir_alloc(struct weir_context *context, size_t bytes, uint64_t *address)
{
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_alloc");

	if (error || (error = weir_given(address, "weir_alloc", "address")) != 0)
		return error;
	return allocate_for_user(context, bytes, WEIR_MEMORY_DEVICE, address, NULL);
}

int weir_alloc_host(struct weir_context *context, size_t bytes, uint64_t *address, void **host)
{
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_alloc_host");

	if (error || (error = weir_given(address, "weir_alloc_host", "address")) != 0 ||
	    (error = weir_given(host, "weir_alloc_host", "host")) != 0)
		return error;
	*host = NULL;
	return allocate_for_user(context, bytes, WEIR_MEMORY_HOST, address, host);
}

/* The link to the block that begins at @address, or to NULL. */
static struct weir_memory_block **find_block(struct weir_context *context, uint64_t address)
{
	struct weir_memory_block **link = &context->memory;

	while (*link && (*link)->address != address)
		link = &(*link)->next;
	return link;
}

int weir_memory_put(struct weir_context *context, uint64_t address)
{
	struct weir_memory_block **link = find_block(context, address), *block = *link;
	int error;

	if (!address)
		return 0;
	if (!block)
		return weir_fail(EINVAL,
				 "cannot free %#llx: it is not the start of an allocation of this context",
				 (unsigned long long)address);
	error = weir_inflight_check(context, address, block->bytes);
	if (error)
		return error;
	*link = block->next;
	weir_files_forget(context, address);
	weir_peer_remove(context, block);
	if (block->host)
		(void)weir_dma_map_remove(context->dma, block->host);
	context->backend->ops->release(context->backend, block->address, block->bytes, block->kind);
	free(block);
	return 0;
}

/* Who has memory of the runtime's own that users see the address of. */
static const char *owner_of(const struct weir_context *context, uint64_t address)
{
	for (const struct weir_storage *storage = context->open; storage; storage = storage->next)
		if (address == storage->queues)
			return storage->uri;
	for (const struct weir_cache *cache = context->open_caches; cache; cache = cache->next)
		if (address == cache->lines || address == cache->words || address == cache->data ||
		    address == cache->share)
			return "a cache";
	return "the runtime";
}

int weir_free(struct weir_context *context, uint64_t address)
{
	const struct weir_memory_block *block;
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_free");

	if (error)
		return error;
	block = *find_block(context, address);
	if (block && !block->users)
		return weir_fail(EBUSY,
				 "cannot free %#llx: it belongs to \"%s\", and goes when that is closed",
				 (unsigned long long)address, owner_of(context, address));
	if (block && (error = weir_files_registered(context, address, block->bytes)) != 0)
		return error;
	return weir_memory_put(context, address);
}

void weir_memory_leave(struct weir_context *context, uint64_t address, size_t bytes)
{
	if (address && !weir_inflight(context, address, bytes))
		(void)weir_memory_put(context, address);
}

/* [address, address + bytes) lies in one allocation of ours. */
static int check_range(struct weir_context *context, uint64_t address, size_t bytes, const char *what)
{
	for (struct weir_memory_block *block = context->memory; block; block = block->next)
		if (address >= block->address && address - block->address <= block->bytes &&
		    bytes <= block->bytes - (address - block->address))
			return 0;
	return weir_fail(EFAULT, "%s: %zu bytes at %#llx are not inside an allocation of this context", what,
			 bytes, (unsigned long long)address);
}

/* The same, after the handle and the host's end. */
static int check_copy(struct weir_context *context, uint64_t address, const void *host, size_t bytes,
		      const char *what)
{
	int error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, what);

	if (!error && bytes)
		error = weir_given(host, what, "the host's memory");
	return error ? error : check_range(context, address, bytes, what);
}

int weir_copy_to_device(struct weir_context *context, uint64_t address, const void *from, size_t bytes)
{
	int error = check_copy(context, address, from, bytes, "weir_copy_to_device");

	return error ? error : context->backend->ops->h2d(context->backend, address, from, bytes);
}

int weir_copy_from_device(struct weir_context *context, void *to, uint64_t address, size_t bytes)
{
	int error = check_copy(context, address, to, bytes, "weir_copy_from_device");

	return error ? error : context->backend->ops->d2h(context->backend, to, address, bytes);
}
