/* SPDX-License-Identifier: BSD-3-Clause */
#include "shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../backend/error.h"
#include "shared_state.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t list_changed = PTHREAD_COND_INITIALIZER;
static struct weir_nvme_shared *list;

static int no_memory(const struct weir_transport_request *request)
{
	return weir_fail(ENOMEM, "storage \"%s\": no memory", request->uri->text);
}

/* Memory that the controller may touch, for as long as it is open. */
static int give_pages(struct weir_nvme_shared *controller, size_t bytes, int file, void **out)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
	int error;

	if (pages == MAP_FAILED)
		return weir_fail(ENOMEM, "%s: no memory for its admin queue", controller->name);
	error = weir_dma_map_add(controller->raw.dma, pages, bytes);
	if (error)
		munmap(pages, bytes);
	else
		*out = pages;
	return error;
}

static void deny_pages(struct weir_nvme_shared *controller, void *pages)
{
	if (pages)
		(void)weir_dma_map_remove(controller->raw.dma, pages);
}

static void free_pages(void **pages, size_t bytes)
{
	if (*pages)
		munmap(*pages, bytes);
	*pages = NULL;
}

/* Pages of shadow doorbells, before it is known whether the controller has any. */
static int give_shadow(struct weir_nvme_shared *controller)
{
	controller->shadow_file = memfd_create("weir-shadow-doorbells", MFD_CLOEXEC);
	if (controller->shadow_file < 0 || ftruncate(controller->shadow_file, WEIR_ADMIN_SHADOW_BYTES) != 0)
		return weir_fail(errno, "%s: no memory for shadow doorbells: %s", controller->name,
				 strerror(errno));
	return give_pages(controller, WEIR_ADMIN_SHADOW_BYTES, controller->shadow_file,
			  &controller->shadow_pages);
}

static void free_shadow(struct weir_nvme_shared *controller)
{
	free_pages(&controller->shadow_pages, WEIR_ADMIN_SHADOW_BYTES);
	if (controller->shadow_file >= 0)
		close(controller->shadow_file);
	controller->shadow_file = -1;
}

/* The controller itself: open, enabled, and without queue pairs. */
static int start(struct weir_nvme_shared *controller, const struct weir_nvme_source *source,
		 enum weir_shadow shadow)
{
	int error = source->open(source->of, &controller->raw);

	if (!error)
		error = give_pages(controller, WEIR_ADMIN_MEMORY_BYTES, -1, &controller->memory);
	if (!error && shadow != WEIR_SHADOW_OFF)
		error = give_shadow(controller);
	if (!error)
		error = weir_nvme_shared_start(controller, shadow);
	if (error)
		return error;
	if (!controller->admin.shadow) {
		deny_pages(controller, controller->shadow_pages);
		free_shadow(controller);
	}
	controller->numbers = calloc(controller->granted, sizeof(*controller->numbers));
	return controller->numbers ? 0
				   : weir_fail(ENOMEM, "%s: no memory for %u queues", controller->name,
					       controller->granted);
}

/* One that is still enabled polls its doorbells and their shadows until it is closed. */
static void end(struct weir_nvme_shared *controller)
{
	deny_pages(controller, controller->shadow_pages);
	deny_pages(controller, controller->memory);
	if (controller->raw.transport)
		controller->raw.transport->ops->close(controller->raw.transport);
	controller->raw.transport = NULL;
	free_shadow(controller);
	free_pages(&controller->memory, WEIR_ADMIN_MEMORY_BYTES);
}

static struct weir_nvme_shared *create(const struct weir_nvme_source *source)
{
	struct weir_nvme_shared *controller = calloc(1, sizeof(*controller));

	if (!controller || !(controller->key = strdup(source->key)) ||
	    !(controller->name = strdup(source->name))) {
		free(controller ? controller->key : NULL);
		free(controller);
		return NULL;
	}
	controller->shadow_file = -1;
	controller->phase = WEIR_NVME_SHARED_OPENING;
	pthread_mutex_init(&controller->lock, NULL);
	controller->next = list;
	list = controller;
	return controller;
}

/* With the list's lock, which whoever waits for this is woken for. */
static void forget(struct weir_nvme_shared *controller)
{
	struct weir_nvme_shared **link = &list;

	while (*link != controller)
		link = &(*link)->next;
	*link = controller->next;
	pthread_cond_broadcast(&list_changed);
	pthread_mutex_destroy(&controller->lock);
	free(controller->numbers);
	free(controller->name);
	free(controller->key);
	free(controller);
}

static struct weir_nvme_shared *find(const char *key)
{
	struct weir_nvme_shared *controller = list;

	while (controller && strcmp(controller->key, key) != 0)
		controller = controller->next;
	return controller;
}

/* The open controller of that key; else a new one that is being opened. With the list's lock; NULL: no
 * memory. */
static struct weir_nvme_shared *find_or_create(const struct weir_nvme_source *source)
{
	struct weir_nvme_shared *controller;

	while ((controller = find(source->key)) && controller->phase != WEIR_NVME_SHARED_OPEN)
		pthread_cond_wait(&list_changed, &list_lock);
	return controller ? controller : create(source);
}

/* Start a new one without the list's lock, which others then have to wait for. It is forgotten if that fails.
 */
static int start_unlocked(struct weir_nvme_shared *controller, const struct weir_nvme_source *source,
			  enum weir_shadow shadow)
{
	int error;

	pthread_mutex_unlock(&list_lock);
	error = start(controller, source, shadow);
	if (error)
		end(controller);
	pthread_mutex_lock(&list_lock);
	if (error) {
		forget(controller);
		return error;
	}
	controller->phase = WEIR_NVME_SHARED_OPEN;
	pthread_cond_broadcast(&list_changed);
	return 0;
}

/* What was decided for one that is open, and what one more storage asks for. */
static int check_join(const struct weir_nvme_shared *controller, const struct weir_transport_request *request,
		      const struct weir_transport *base, const struct weir_nvme_source *source)
{
	const char *text = request->uri->text;

	if (controller->halted)
		return weir_fail(EBUSY,
				 "storage \"%s\": %s failed, and a storage of this process still has it "
				 "open; close that, and open this "
				 "again once the controller answers",
				 text, controller->name);
	if (base->shadow == WEIR_SHADOW_OFF && controller->shadow_file >= 0)
		return weir_fail(EBUSY,
				 "storage \"%s\": shadow=off, but another storage of this process has %s "
				 "open with shadow doorbells, "
				 "which are for all of its queues; write the same in both",
				 text, controller->name);
	if (base->shadow == WEIR_SHADOW_ON && controller->shadow_file < 0 &&
	    controller->space.shadow_doorbells)
		return weir_fail(EBUSY,
				 "storage \"%s\": shadow=on, but another storage of this process has %s open "
				 "without shadow doorbells, "
				 "which are for all of its queues; write the same in both",
				 text, controller->name);
	return source->join ? source->join(source->of, &controller->raw) : 0;
}

static int map(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes, void *host)
{
	struct weir_nvme_member *member =
		(struct weir_nvme_member *)((char *)mapper - offsetof(struct weir_nvme_member, mapper));

	return weir_dma_map_share(member->controller->raw.dma, (void *)(uintptr_t)address, bytes, host);
}

static void unmap(struct weir_dma_mapper *mapper, uint64_t address, uint64_t bytes)
{
	struct weir_nvme_member *member =
		(struct weir_nvme_member *)((char *)mapper - offsetof(struct weir_nvme_member, mapper));

	(void)bytes;
	(void)weir_dma_map_remove(member->controller->raw.dma, (void *)(uintptr_t)address);
}

/* Let the controller touch the context's memory, and lanes ring its doorbells. */
static int connect_member(struct weir_nvme_member *member, struct weir_transport_request *request)
{
	struct weir_nvme_shared *controller = member->controller;
	const struct weir_nvme_raw *raw = &controller->raw;
	int error = raw->map_registers ? raw->map_registers(raw->transport, &member->registers) : 0;

	if (!error && controller->shadow_file >= 0) {
		member->shadow = mmap(NULL, WEIR_ADMIN_SHADOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				      controller->shadow_file, 0);
		if (member->shadow == MAP_FAILED) {
			member->shadow = NULL;
			return no_memory(request);
		}
	}
	member->mapper = (struct weir_dma_mapper){ .map = map,
						   .unmap = unmap,
						   .peers = member->base.gpu_memory != WEIR_GPU_MEMORY_NONE };
	if (!error)
		error = weir_dma_map_follow(request->dma, &member->mapper);
	if (!error)
		member->dma = request->dma;
	return error;
}

/* How many queue pairs it may have: those that others have not. */
static int count_queues(struct weir_nvme_member *member, const struct weir_transport *base)
{
	struct weir_nvme_shared *controller = member->controller;
	unsigned left;

	pthread_mutex_lock(&controller->lock);
	left = weir_nvme_shared_free(controller);
	member->generation = controller->generation;
	pthread_mutex_unlock(&controller->lock);
	if (!left)
		return weir_fail(EBUSY,
				 "storage \"%s\": %s has %u I/O queue pairs, and other storages of this "
				 "process have them all; close one "
				 "of those, or open them with fewer (queues=N)",
				 member->uri, controller->name, controller->granted);
	member->base.most_queues = base->most_queues && base->most_queues < left ? base->most_queues : left;
	member->base.most_entries = controller->admin.most_entries;
	member->base.last_queue = controller->granted;
	member->base.doorbell_bytes = controller->raw.transport->doorbell_bytes;
	member->ids = calloc(member->base.most_queues, sizeof(*member->ids));
	return member->ids ? 0 : weir_fail(ENOMEM, "storage \"%s\": no memory", member->uri);
}

static void add_member(struct weir_nvme_member *member)
{
	struct weir_nvme_shared *controller = member->controller;

	pthread_mutex_lock(&controller->lock);
	member->next = controller->members;
	controller->members = member;
	pthread_mutex_unlock(&controller->lock);
}

/* Return: it was the last. */
static bool remove_member(struct weir_nvme_member *member)
{
	struct weir_nvme_shared *controller = member->controller;
	struct weir_nvme_member **link = &controller->members;
	bool last;

	pthread_mutex_lock(&controller->lock);
	while (*link != member)
		link = &(*link)->next;
	*link = member->next;
	last = !controller->members;
	pthread_mutex_unlock(&controller->lock);
	return last;
}

/* With the list's lock. */
static bool all_finished(const struct weir_nvme_shared *controller)
{
	for (const struct weir_nvme_member *member = controller->members; member; member = member->next)
		if (!member->finished)
			return false;
	return true;
}

/*
 * The storage is about to be closed, and may still have what it wrote made durable. A controller that it
 * alone has is no one else's from here on, since it will be shut down.
 */
static bool member_leave(struct weir_transport *transport)
{
	struct weir_nvme_member *member = (struct weir_nvme_member *)transport;
	struct weir_nvme_shared *controller = member->controller;
	bool others;

	pthread_mutex_lock(&list_lock);
	member->finished = true;
	others = !all_finished(controller);
	member->finished = others ? false : member->finished;
	if (!others)
		controller->phase = WEIR_NVME_SHARED_CLOSING;
	pthread_mutex_unlock(&list_lock);
	return others;
}

/* Shut it down with the last storage. */
static int member_finish(struct weir_transport *transport)
{
	struct weir_nvme_member *member = (struct weir_nvme_member *)transport;
	struct weir_nvme_shared *controller = member->controller;
	bool last;
	int error = 0;

	pthread_mutex_lock(&list_lock);
	member->finished = true;
	last = all_finished(controller);
	if (last)
		controller->phase = WEIR_NVME_SHARED_CLOSING;
	pthread_mutex_unlock(&list_lock);
	if (!last)
		return 0;
	pthread_mutex_lock(&controller->lock);
	if (!controller->halted)
		error = weir_admin_disable(&controller->admin);
	pthread_mutex_unlock(&controller->lock);
	return error;
}

/* Where a device had them mapped nothing else is put. */
static void unmap_shadow(const struct weir_nvme_member *member)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

	if (member->shadow && (!member->base.keep_addresses || mmap(member->shadow, WEIR_ADMIN_SHADOW_BYTES,
								    PROT_NONE, flags, -1, 0) == MAP_FAILED))
		munmap(member->shadow, WEIR_ADMIN_SHADOW_BYTES);
}

static void disconnect_member(struct weir_nvme_member *member)
{
	const struct weir_nvme_raw *raw = &member->controller->raw;

	if (member->dma)
		weir_dma_map_unfollow(member->dma, &member->mapper);
	if (member->registers)
		raw->unmap_registers(raw->transport, member->registers, member->base.keep_addresses);
	unmap_shadow(member);
}

static void member_close(struct weir_transport *transport)
{
	struct weir_nvme_member *member = (struct weir_nvme_member *)transport;
	struct weir_nvme_shared *controller = member->controller;
	bool last;

	pthread_mutex_lock(&controller->lock);
	weir_nvme_shared_drop(member);
	pthread_mutex_unlock(&controller->lock);
	disconnect_member(member);
	pthread_mutex_lock(&list_lock);
	last = remove_member(member);
	if (last)
		controller->phase = WEIR_NVME_SHARED_CLOSING;
	pthread_mutex_unlock(&list_lock);
	if (last) {
		end(controller);
		pthread_mutex_lock(&list_lock);
		forget(controller);
		pthread_mutex_unlock(&list_lock);
	}
	free(member->ids);
	free(member->uri);
	free(member);
}

static const struct weir_transport_ops member_ops = {
	.size = sizeof(struct weir_transport_ops),
	.scheme = "nvme",
	.read32 = weir_nvme_member_read32,
	.doorbell = weir_nvme_member_doorbell,
	.restart = weir_nvme_member_restart,
	.stats = weir_nvme_member_stats,
	.wanted = weir_nvme_member_wanted,
	.give_way = weir_nvme_member_give_way,
	.halt = weir_nvme_member_halt,
	.path = weir_nvme_member_path,
	.close = member_close,
	.admin = weir_nvme_member_admin,
	.reset = weir_nvme_member_reset,
	.was_reset = weir_nvme_member_was_reset,
	.adopt = weir_nvme_member_adopt,
	.queue_id = weir_nvme_member_queue_id,
	.shadow = weir_nvme_member_shadow,
	.leave = member_leave,
	.finish = member_finish,
};

/* With the list's lock, which is given up while a controller is started. */
static int join(struct weir_nvme_member *member, const struct weir_transport_request *request,
		const struct weir_transport *base, const struct weir_nvme_source *source)
{
	struct weir_nvme_shared *controller = find_or_create(source);
	int error;

	if (!controller)
		return no_memory(request);
	error = controller->phase == WEIR_NVME_SHARED_OPENING
			? start_unlocked(controller, source, base->shadow)
			: check_join(controller, request, base, source);
	if (error)
		return error;
	member->controller = controller;
	add_member(member);
	return 0;
}

int weir_nvme_shared_open(struct weir_transport_request *request, const struct weir_transport *base,
			  const struct weir_nvme_source *source, struct weir_transport **out)
{
	struct weir_nvme_member *member = calloc(1, sizeof(*member));
	int error;

	if (!member || !(member->uri = strdup(request->uri->text))) {
		free(member);
		return no_memory(request);
	}
	member->base = *base;
	member->base.ops = &member_ops;
	pthread_mutex_lock(&list_lock);
	error = join(member, request, base, source);
	pthread_mutex_unlock(&list_lock);
	if (error) {
		free(member->uri);
		free(member);
		return error;
	}
	error = count_queues(member, base);
	if (!error)
		error = connect_member(member, request);
	if (error) {
		member_close(&member->base);
		return error;
	}
	*out = &member->base;
	return 0;
}
