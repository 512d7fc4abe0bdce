/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening a storage: transport, controller, queue pairs; closing it in reverse. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cache/cache.h"
#include "closed.h"
#include "../device/context.h"
#include "doorbells.h"
#include "../backend/error.h"
#include "peer.h"
#include "../observe/publish.h"
#include "service.h"
#include "shadow.h"
#include "../transport/medium/medium.h"
#include "../transport/virtual/virtual.h"
#include "../recovery/watchdog.h"

enum {
	DEFAULT_DEPTH = 256,
	MOST_DEPTH = 4096,
	DEFAULT_TRANSFER = 64 << 10,
	MOST_TRANSFER = 2 << 20, /* a PRP list of 512 entries: one page */
	MOST_QUEUES = 1024,
	LEAST_DEFAULT_QUEUES = 4,
	LENT_SHARE = 16, /* of the machine's memory that a medium pins without being asked: one in so many */
	MOST_DEFAULT_PULL_QUEUES = 16, /* staging is depth times max_transfer_bytes per queue */
};

static const uint64_t DEFAULT_TIMEOUT_NS = 30000000000u;
static const uint64_t RECOVERY_NS =
	15000000000u; /* abort, new queue pair, reset: the watchdog waits 5 s for each at most */
static const uint64_t DEFAULT_ANSWER_NS = 30000000000u;
static const uint64_t MOST_ANSWER_MS = 86400000; /* a day */

static bool power_of_two(uint64_t value, uint64_t least, uint64_t most)
{
	return value >= least && value <= most && (value & (value - 1)) == 0;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static int complete_options(struct weir_context *context, const char *uri,
			    struct weir_storage_options *options)
{
	struct weir_backend_properties properties = { .wave_lanes = 0 };

	context->backend->ops->properties(context->backend, &properties);
	if (!options->queues)
		options->queues =
			properties.workers > LEAST_DEFAULT_QUEUES ? properties.workers : LEAST_DEFAULT_QUEUES;
	if (!options->depth)
		options->depth = DEFAULT_DEPTH;
	if (!options->max_transfer_bytes)
		options->max_transfer_bytes = DEFAULT_TRANSFER;
	if (options->queues > MOST_QUEUES)
		return weir_fail(EINVAL, "storage \"%s\": queues is %u; it must be from 1 to %d", uri,
				 options->queues, MOST_QUEUES);
	if (!power_of_two(options->depth, 2, MOST_DEPTH))
		return weir_fail(EINVAL, "storage \"%s\": depth %u is not a power of two from 2 to %d", uri,
				 options->depth, MOST_DEPTH);
	if (!power_of_two(options->max_transfer_bytes, NVME_PAGE_BYTES, MOST_TRANSFER))
		return weir_fail(
			EINVAL, "storage \"%s\": max_transfer_bytes %u is not a power of two from 4096 to %d",
			uri, options->max_transfer_bytes, MOST_TRANSFER);
	if (!options->retries)
		options->retries = WEIR_RETRIES_DEFAULT + 1;
	if (options->retries > WEIR_RETRIES_MOST + 1)
		return weir_fail(EINVAL, "storage \"%s\": retries is %u; it must be from 0 to %d", uri,
				 options->retries - 1, WEIR_RETRIES_MOST);
	if (options->first_ticket % (2 * (uint64_t)options->depth))
		return weir_fail(EINVAL, "storage \"%s\": first_ticket must be a multiple of twice the depth",
				 uri);
	return 0;
}

/* Memory for the doorbells of a software controller: words that lanes and its threads both see. */
static int allocate_doorbells(struct weir_storage *storage, uint32_t queues, void **host)
{
	return weir_memory_allocate(storage->context, weir_virtual_doorbell_bytes(queues), WEIR_MEMORY_HOST,
				    &storage->doorbell_memory, host);
}

/* So long that nobody waits for the end, and that a clock, or twice as long, is still a number. */
static uint64_t ns_of_us(uint64_t us)
{
	const uint64_t most = INT64_MAX / 4;

	return us < most / 1000 ? us * 1000 : most;
}

/* The key timeout_ms, of every transport, or the option; 0 as a key: never. */
static int take_answer_time(struct weir_storage *storage, struct weir_uri *uri,
			    const struct weir_storage_options *options)
{
	uint64_t ms = UINT64_MAX;
	int error = weir_uri_take_u64(uri, "timeout_ms", 0, MOST_ANSWER_MS, &ms);

	storage->answer_ns = ms != UINT64_MAX              ? ms * 1000000
			     : options->command_timeout_us ? ns_of_us(options->command_timeout_us)
							   : DEFAULT_ANSWER_NS;
	return error;
}

/* options.retries is one more than the number, so that 0 can be the default. */
static int take_retries(struct weir_uri *uri, struct weir_storage_options *options)
{
	uint64_t retries = options->retries - 1;
	int error = weir_uri_take_u64(uri, "retries", 0, WEIR_RETRIES_MOST, &retries);

	options->retries = (uint32_t)retries + 1;
	return error;
}

/* Memory for a medium, which lanes reach. */
static int lend(void *of, uint64_t bytes, void **memory)
{
	struct weir_storage *storage = of;
	int error = weir_memory_put(storage->context, storage->medium_memory); /* what was lent in vain */

	storage->medium_memory = 0;
	return error ? error
		     : weir_memory_allocate(storage->context, bytes, WEIR_MEMORY_HOST,
					    &storage->medium_memory, memory);
}

static uint64_t lent_at_most(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / LENT_SHARE;
}

static int open_transport(struct weir_storage *storage, struct weir_storage_options *options)
{
	struct weir_uri uri;
	struct weir_backend *backend = storage->context->backend;
	struct weir_backend_properties properties = { .wave_lanes = 0 };
	struct weir_lender lender = { .lend = lend, .of = storage, .most = lent_at_most() };
	void *doorbells = NULL;
	int error = weir_uri_parse(storage->uri, &uri);

	if (error)
		return error;
	backend->ops->properties(backend, &properties);
	error = take_answer_time(storage, &uri, options);
	if (!error)
		error = take_retries(&uri, options);
	if (!error)
		error = allocate_doorbells(storage, options->queues, &doorbells);
	if (error) {
		weir_uri_release(&uri);
		return error;
	}
	error = weir_transport_open(
		&(struct weir_transport_request){ .uri = &uri,
						  .dma = storage->context->dma,
						  .peer_memory = storage->context->peer_memory ||
								 !storage->context->shared_memory,
						  .window = storage->context->window,
						  .doorbells = doorbells,
						  .host_rings = properties.host_rings,
						  .read_only = options->read_only,
						  .queues = options->queues,
						  .depth = options->depth,
						  .lender = &lender,
						  .pulls = !storage->context->shared_memory },
		&storage->transport);
	weir_uri_release(&uri);
	return error;
}

/* Where lanes ring: at the transport's controller, for a thread that rings it, or at one on the device. */
static int place_doorbells(struct weir_storage *storage, uint32_t queues)
{
	if (storage->transport->device_controller.on)
		return weir_device_controller_doorbells(storage, queues);
	storage->doorbells = storage->doorbell_memory;
	return weir_doorbells_locate(storage, queues);
}

/* Who moves the data: the controller, if it reaches the memory of weir_alloc(), else the lanes. */
static int choose_mover(struct weir_storage *storage, struct weir_storage_options *options, bool queues_given)
{
	struct weir_backend *backend = storage->context->backend;
	struct weir_backend_properties properties = { .wave_lanes = 0 };
	bool reaches;

	backend->ops->properties(backend, &properties);
	reaches = properties.shared_memory || storage->transport->device_controller.on;
	if (storage->transport->registers && properties.peer_memory &&
	    storage->transport->gpu_memory == WEIR_GPU_MEMORY_NONE)
		reaches = false;
	reaches = reaches || weir_peer_asked(storage); /* which is seen once the controller is enabled */
	if (storage->transport->mover == WEIR_MOVER_DIRECT && !reaches)
		return weir_fail(
			ENOTSUP,
			"storage \"%s\": mover=direct, but its controller does not reach the memory of %s%s; "
			"leave it out",
			storage->uri, properties.name,
			properties.peer_memory ? ", or is not allowed to (gpu_memory=data)" : "");
	storage->pull = !reaches || storage->transport->mover == WEIR_MOVER_PULL;
	if (storage->pull && !queues_given)
		options->queues = smaller(options->queues, MOST_DEFAULT_PULL_QUEUES);
	return 0;
}

/* What lanes move they read from the medium, where they reach that; else the controller copies it for them
 * first. */
static int choose_source(struct weir_storage *storage)
{
	struct weir_transport *transport = storage->transport;

	storage->places = storage->pull && storage->medium_memory && transport->ops->places &&
			  transport->ops->places(transport);
	if (storage->places || transport->zero_copy != WEIR_ZERO_COPY_ON)
		return 0;
	return weir_fail(ENOTSUP, "storage \"%s\": zero_copy=on, but %s; leave it out", storage->uri,
			 storage->pull ? "its medium is not memory alone, which lanes could read: faults, "
					 "trace, content, engine, controller and on=device do without"
				       : "its controller moves the data itself; it is for mover=pull");
}

static int start_controller(struct weir_storage *storage, struct weir_storage_options *options,
			    bool depth_given)
{
	const struct weir_transport *transport = storage->transport;
	void *host;
	unsigned granted = 0;
	int error = weir_memory_allocate(storage->context, WEIR_ADMIN_MEMORY_BYTES,
					 transport->window ? WEIR_MEMORY_DEVICE : WEIR_MEMORY_HOST,
					 &storage->admin_memory, &host);

	if (!error)
		error = weir_admin_enable(&storage->admin, storage->transport, host, storage->admin_memory);
	if (error)
		return error;
	storage->enabled = true;
	error = weir_admin_identify(&storage->admin, transport->nsid,
				    !options->read_only && !transport->read_only, &storage->space);
	if (!error && transport->ops->check)
		error = transport->ops->check(storage->transport, storage->space.nsid,
					      storage->space.shadow_doorbells);
	if (!error)
		error = weir_admin_queue_count(&storage->admin, options->queues, &granted);
	if (error)
		return error;
	options->queues = granted;
	while (!depth_given && options->depth > storage->admin.most_entries)
		options->depth /= 2;
	if (options->depth > storage->admin.most_entries)
		return weir_fail(EINVAL, "storage \"%s\": depth %u, but the controller takes %u at most",
				 storage->uri, options->depth, storage->admin.most_entries);
	return weir_shadow_use(storage, options->queues);
}

/* What a lane waits for by default: long enough that a command which gets no answer is ended, and its next
 * try is answered. */
static uint64_t lane_timeout_ns(const struct weir_storage *storage,
				const struct weir_storage_options *options)
{
	uint64_t two_tries_ns = 2 * storage->answer_ns + RECOVERY_NS;

	if (options->timeout_us)
		return ns_of_us(options->timeout_us);
	return storage->answer_ns && two_tries_ns > DEFAULT_TIMEOUT_NS ? two_tries_ns : DEFAULT_TIMEOUT_NS;
}

static void describe(struct weir_storage *storage, const struct weir_storage_options *options)
{
	struct weir_disk *disk = &storage->disk;
	uint32_t transfer = smaller(options->max_transfer_bytes, storage->space.max_transfer_bytes);

	disk->abi_version = WEIR_ABI_VERSION;
	disk->id = storage->context->next_disk_id++;
	disk->queues = storage->queues;
	disk->queue_count = options->queues;
	disk->block_log2 = storage->space.block_log2;
	disk->blocks = storage->space.blocks;
	disk->max_blocks = transfer >> storage->space.block_log2;
	disk->flags = options->read_only || storage->transport->read_only || storage->space.write_protected
			      ? WEIR_DISK_READ_ONLY
			      : 0;
	disk->flags |= storage->service ? WEIR_DISK_SERVICE : 0;
	disk->flags |= storage->transport->window ? WEIR_DISK_WINDOW : 0;
	disk->fault = storage->context->fault;
	disk->timeout_ns = lane_timeout_ns(storage, options);
}

/* struct weir_disk.retry */
static uint64_t retry_terms(const struct weir_storage *storage, const struct weir_storage_options *options)
{
	uint64_t terms = options->retries - 1;

	for (unsigned i = 0; i < WEIR_RETRY_DELAYS; i++)
		terms |= (uint64_t)storage->space.retry_delays[i] << (16 * (i + 1));
	return terms;
}

/* Memory of the device for the controller, as the URI asks; where only data was to go there, it goes by way
 * of the host's else. */
static int use_peer(struct weir_storage *storage)
{
	const struct weir_transport *transport = storage->transport;
	char why[256];

	if (!weir_peer_asked(storage) || weir_peer_use(storage) == 0)
		return 0;
	snprintf(why, sizeof(why), "%s", weir_last_error());
	if (transport->gpu_memory == WEIR_GPU_MEMORY_QUEUES || transport->mover == WEIR_MOVER_DIRECT)
		return weir_fail(ENOTSUP,
				 "storage \"%s\": its controller is to reach the device's memory, but %s; "
				 "leave out %s",
				 storage->uri, why,
				 transport->gpu_memory == WEIR_GPU_MEMORY_QUEUES ? "gpu_memory=queues"
										 : "mover=direct");
	weir_report("storage \"%s\": lanes move its data by way of the host's memory (pull): %s",
		    storage->uri, why);
	storage->pull = true;
	return 0;
}

static int create_queues(struct weir_storage *storage, const struct weir_storage_options *options)
{
	uint32_t count = storage->queue_count = options->queues;
	int error;

	storage->depth = options->depth;
	storage->disk.retry = retry_terms(storage, options);
	storage->queue_bytes =
		weir_queue_memory_bytes(options->depth, options->max_transfer_bytes, storage->pull);
	storage->rings = calloc(3 * (size_t)count, sizeof(*storage->rings));
	if (!storage->rings)
		return weir_fail(ENOMEM, "storage \"%s\": no memory for %u queues", storage->uri, count);
	storage->slots = storage->rings + count;
	storage->staging = storage->slots + count;
	error = storage->is_part ? 0
				 : weir_memory_get(storage->context, count * sizeof(struct weir_queue),
						   &storage->queues);
	for (uint32_t i = 0; i < count && !error; i++)
		error = weir_queue_create(storage, i, options->first_ticket, options->max_transfer_bytes);
	if (!error && storage->transport->device_controller.on)
		error = weir_device_controller_start(storage, count);
	return error ? error : weir_service_start(storage);
}

static void free_queues(struct weir_storage *storage)
{
	for (uint32_t i = 0; storage->rings && i < storage->queue_count; i++) {
		(void)weir_memory_put(storage->context, storage->rings[i]);
		if (!weir_queue_has_records(storage, i)) /* else they stay until the context is closed */
			(void)weir_memory_put(storage->context, storage->slots[i]);
		(void)weir_memory_put(storage->context, storage->staging[i]);
	}
	free(storage->rings);
}

/* Something may have been written since the last flush. */
static bool may_have_written(struct weir_storage *storage)
{
	struct weir_transport_stats moved = { 0, 0, false };

	storage->transport->ops->stats(storage->transport, &moved);
	return moved.changed || storage->parts_written ||
	       (storage->transport->registers && !(storage->disk.flags & WEIR_DISK_READ_ONLY));
}

static int lose_volatile(const struct weir_storage *storage, const char *why)
{
	return weir_fail(EIO, "storage \"%s\": %s; what was written since its last flush may be lost",
			 storage->uri, why);
}

/* The controller makes durable what was written, unless it was given up. */
static int shut_down(struct weir_storage *storage)
{
	bool written = may_have_written(storage);
	char text[80];

	if (storage->dead != WEIR_OK) {
		weir_status_text(storage->dead, text);
		return written ? lose_volatile(storage, text) : 0;
	}
	return weir_admin_disable(&storage->admin) && written ? lose_volatile(storage, weir_last_error()) : 0;
}

/* Undo whatever of the opening has happened, last first; but the words of queues and the structure itself
 * stay. */
static int tear_down(struct weir_storage *storage)
{
	struct weir_losses losses = { .error = 0 }; /* whatever fails behind it does not take its place */

	weir_watchdog_stop(storage);
	weir_service_stop(storage);
	weir_device_controller_stop(storage);
	for (uint32_t i = storage->created; i > 0; i--)
		(void)weir_admin_delete_queue(&storage->admin, weir_queue_id(storage, i - 1));
	if (storage->enabled || storage->dead != WEIR_OK)
		weir_losses_add(&losses, shut_down(storage));
	weir_doorbells_end(storage);
	if (storage->transport && storage->transport->device_controller.on)
		(void)weir_memory_put(storage->context, storage->doorbells);
	weir_shadow_release(storage);
	/* A controller that failed polls its doorbells and their shadows until it is closed. */
	if (storage->transport)
		storage->transport->ops->close(storage->transport);
	weir_shadow_free(storage);
	weir_closed_commands(storage);
	(void)weir_memory_put(storage->context, storage->medium_memory);
	(void)weir_memory_put(storage->context, storage->doorbell_memory);
	free_queues(storage);
	(void)weir_memory_put(storage->context, storage->admin_memory);
	weir_peer_end(storage);
	free(storage->uri);
	storage->uri = NULL;
	return weir_losses_end(&losses);
}

/* A sentence about a controller, which need not know its storage's name, says it. */
static int name_storage(const struct weir_storage *storage, int error)
{
	if (!error || !strncmp(weir_last_error(), "storage ", 8))
		return error;
	return weir_fail(-error, "storage \"%s\": %s", storage->uri, weir_last_error());
}

static int bring_up(struct weir_storage *storage, struct weir_storage_options *options,
		    const struct weir_storage_options *given)
{
	bool queues_given = given->queues != 0;
	int error = open_transport(storage, options);

	if (!error && storage->transport->most_queues)
		options->queues = smaller(options->queues, storage->transport->most_queues);
	if (!error)
		error = choose_mover(storage, options, queues_given);
	if (!error)
		error = choose_source(storage);
	if (!error)
		error = place_doorbells(storage, options->queues);
	if (!error)
		error = start_controller(storage, options, given->depth != 0);
	if (!error)
		error = use_peer(storage);
	if (!error)
		error = create_queues(storage, options);
	return name_storage(storage, error ? error : weir_watchdog_start(storage, options->first_ticket));
}

/* Opening failed, as weir_last_error() says: what fails on the way back does not take its place. */
static int undo(struct weir_storage *storage, int error)
{
	struct weir_losses why = { .error = 0 };

	weir_losses_add(&why, error);
	(void)tear_down(storage);
	if (!storage->is_part)
		(void)weir_memory_put(storage->context, storage->queues);
	free(storage);
	return weir_losses_end(&why);
}

/* Lanes of a volume find the engines by themselves where that can be; else the volume's controller does. */
static void attach(struct weir_storage *storage)
{
	const struct weir_transport_ops *ops = storage->transport->ops;

	if (ops->attach && ops->attach(storage->transport, storage) != 0)
		weir_report("storage \"%s\": host threads place its blocks, not lanes: %s", storage->uri,
			    weir_last_error());
}

int weir_storage_open_at(struct weir_context *context, const char *uri,
			 const struct weir_storage_options *given, uint64_t queues, struct weir_storage **out)
{
	struct weir_storage_options options;
	struct weir_storage_options asked;
	struct weir_storage *storage;
	int error;

	error = weir_options_take(&options, sizeof(options), given, "storage options");
	asked = options;
	if (!error)
		error = complete_options(context, uri, &options);
	if (error)
		return error;
	storage = calloc(1, sizeof(*storage));
	if (!storage)
		return weir_fail(ENOMEM, "storage \"%s\": no memory", uri);
	storage->context = context;
	storage->queues = queues;
	storage->is_part = queues != 0;
	storage->uri = strdup(uri);
	error = storage->uri ? bring_up(storage, &options, &asked)
			     : weir_fail(ENOMEM, "storage \"%s\": no memory", uri);
	if (!error)
		error = weir_handle_add(storage, WEIR_HANDLE_STORAGE, uri);
	if (error)
		return undo(storage, error);
	describe(storage, &options);
	attach(storage);
	storage->next = context->open;
	context->open = storage;
	weir_publish(context);
	*out = storage;
	return 0;
}

int weir_storage_open(struct weir_context *context, const char *uri, const struct weir_storage_options *given,
		      struct weir_storage **out)
{
	int error = weir_given(out, "weir_storage_open", "out");

	if (error)
		return error;
	*out = NULL;
	if ((error = weir_handle_check(context, WEIR_HANDLE_CONTEXT, "weir_storage_open")) != 0 ||
	    (error = weir_given(uri, "weir_storage_open", "uri")) != 0)
		return error;
	return weir_storage_open_at(context, uri, given, 0, out);
}

/* Out of the context's list. */
static void leave(struct weir_storage *storage)
{
	struct weir_storage **link = &storage->context->open;

	while (*link != storage)
		link = &(*link)->next;
	*link = storage->next;
}

/* No shutdown follows where other storages have the controller: what was written is flushed. */
static int flush_shared(struct weir_storage *storage)
{
	struct weir_transport *transport = storage->transport;

	if (!transport->ops->leave || !transport->ops->leave(transport) ||
	    storage->disk.flags & WEIR_DISK_READ_ONLY || storage->dead != WEIR_OK)
		return 0;
	return weir_disk_flush(storage->context, &storage->disk, storage->uri);
}

int weir_storage_shut(struct weir_storage *storage)
{
	struct weir_context *context = storage->context;
	struct weir_losses losses = { .error = 0 };

	weir_losses_add(&losses, context->backend->ops->synchronise(context->backend));
	for (struct weir_cache *cache = context->open_caches; cache; cache = cache->next)
		weir_losses_add(&losses, weir_cache_leave_storage(cache, storage));
	weir_losses_add(&losses, flush_shared(storage));
	if (storage->transport->ops->detach)
		storage->transport->ops->detach(storage->transport);
	leave(storage);
	weir_publish(context);
	weir_losses_add(&losses, tear_down(storage));
	weir_closed_queues(context, storage->queues, storage->queue_count);
	for (struct weir_cache *cache = context->open_caches; cache; cache = cache->next)
		weir_cache_forget_storage(cache, storage);
	weir_handle_retire(storage);
	return weir_losses_end(&losses);
}

int weir_storage_close(struct weir_storage *storage)
{
	int error = storage ? weir_handle_check(storage, WEIR_HANDLE_STORAGE, "weir_storage_close") : 0;

	return error || !storage ? error : weir_storage_shut(storage);
}
