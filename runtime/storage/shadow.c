/* SPDX-License-Identifier: BSD-3-Clause */
#include "shadow.h"

#include <errno.h>

#include "../device/context.h"
#include "doorbells.h"
#include "../backend/error.h"

/* A page has room for the doorbells of so many pairs and the admin queue. */
static bool shadow_fits(const struct weir_storage *storage, unsigned queues)
{
	return ((uint64_t)queues + 1) * 2 * storage->transport->doorbell_bytes <= NVME_PAGE_BYTES;
}

/* Those that all storages of a shared controller have: lanes, or the thread that rings for them, write them
 * in any case. */
static int share_shadow(struct weir_storage *storage)
{
	struct weir_backend *backend = storage->context->backend;
	void *pages = storage->transport->ops->shadow(storage->transport);
	int error;

	if (storage->transport->shadow == WEIR_SHADOW_ON && !pages)
		return weir_fail(ENOTSUP,
				 "storage \"%s\": shadow=on, but its controller has no shadow doorbells "
				 "(Doorbell Buffer "
				 "Config); leave it out",
				 storage->uri);
	if (!pages)
		return 0;
	storage->shadow_host = pages;
	if (weir_doorbells_forwarded(storage)) {
		storage->shadow_memory = (uintptr_t)pages;
		return 0;
	}
	error = backend->ops->register_host
			? backend->ops->register_host(backend, pages, WEIR_ADMIN_SHADOW_BYTES,
						      &storage->shadow_memory)
			: weir_fail(ENOTSUP, "backend \"%s\" registers no memory of the host's",
				    backend->ops->name);
	storage->shadow_registered = !error;
	if (!error && !storage->context->shared_memory)
		storage->transport->keep_addresses = true; /* a driver may forget them later than we do */
	return error ? weir_fail(-error,
				 "storage \"%s\": its controller has shadow doorbells, which lanes do not "
				 "see: %s; say doorbell=host, "
				 "or shadow=off for all storages of the controller",
				 storage->uri, weir_last_error())
		     : 0;
}

void weir_shadow_release(struct weir_storage *storage)
{
	struct weir_backend *backend = storage->context->backend;

	if (storage->shadow_registered)
		backend->ops->unregister_host(backend, storage->shadow_host, WEIR_ADMIN_SHADOW_BYTES);
	storage->shadow_registered = false;
	if (storage->transport && storage->transport->ops->shadow)
		storage->shadow_memory = 0;
}

void weir_shadow_free(struct weir_storage *storage)
{
	(void)weir_memory_put(storage->context, storage->shadow_memory);
	storage->shadow_memory = 0;
}

/* Shadow doorbells, where the controller offers them; lanes that share its device have no use for them. */
int weir_shadow_use(struct weir_storage *storage, unsigned queues)
{
	const struct weir_transport *transport = storage->transport;
	int error;

	if (transport->ops->shadow)
		return share_shadow(storage);
	if (transport->shadow == WEIR_SHADOW_ON && !storage->space.shadow_doorbells)
		return weir_fail(ENOTSUP,
				 "storage \"%s\": shadow=on, but its controller has no shadow doorbells "
				 "(Doorbell Buffer "
				 "Config); leave it out",
				 storage->uri);
	if (transport->shadow == WEIR_SHADOW_ON && !shadow_fits(storage, queues))
		return weir_fail(ENOTSUP,
				 "storage \"%s\": shadow=on, but a page has no room for the doorbells of %u "
				 "queues; ask for "
				 "fewer (queues=N)",
				 storage->uri, queues);
	if (transport->shadow == WEIR_SHADOW_OFF || transport->device_controller.on ||
	    !storage->space.shadow_doorbells || !shadow_fits(storage, queues))
		return 0;
	error = weir_memory_allocate(storage->context, WEIR_ADMIN_SHADOW_BYTES, WEIR_MEMORY_HOST,
				     &storage->shadow_memory, &storage->shadow_host);
	return error ? error
		     : weir_admin_shadow(&storage->admin, storage->shadow_host, storage->shadow_memory);
}
