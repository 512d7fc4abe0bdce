/* SPDX-License-Identifier: BSD-3-Clause */
#include "closed.h"

#include <string.h>

#include "../cache/cache.h"
#include "../device/context.h"
#include "../kernels/end_commands.h"

enum { CLOSED_AT = 1024, MOST_LINE_BYTES = 65536 };

/**
 * struct closed - behind the fault record, in its page
 * @slots: filled, for good: no ticket is ever handed out
 * @entries: of its completion ring: no controller has written there
 * @queue: one that is closed, for whoever has none of its own any more
 */
struct closed {
	struct weir_slot slots[2];
	struct nvme_cqe entries[2];
	struct weir_queue queue;
};

/* As if all slots were filled, and another lane read its completions; of a command that was left there nobody
 * is ever told. */
static void describe(const struct weir_context *context, struct weir_queue *queue)
{
	memset(queue, 0, sizeof(*queue));
	queue->slots = context->fault + CLOSED_AT + offsetof(struct closed, slots);
	queue->cq = context->fault + CLOSED_AT + offsetof(struct closed, entries);
	queue->depth = 2;
	queue->depth_log2 = 1;
	queue->prp_entries = 1;
	queue->window_bytes = UINT64_MAX; /* no buffer is refused before the request is */
	weir_store_u32_relaxed_sys(&queue->dead, WEIR_E_CLOSED | WEIR_QUEUE_UNSAFE);
	weir_store_u64_relaxed_sys(&queue->reap, 1);
}

int weir_closed_prepare(struct weir_context *context)
{
	struct closed closed;
	int error = weir_memory_get(context, CLOSED_AT + sizeof(closed), &context->fault);

	if (error)
		return error;
	memset(&closed, 0, sizeof(closed));
	weir_store_u32_relaxed_sys(&closed.slots[0].sequence, 1);
	weir_store_u32_relaxed_sys(&closed.slots[1].sequence, 1);
	describe(context, &closed.queue);
	return context->backend->ops->h2d(context->backend, context->fault + CLOSED_AT, &closed,
					  sizeof(closed));
}

void weir_closed_commands(struct weir_storage *storage)
{
	struct weir_context *context = storage->context;
	const struct weir_end_commands_args args = { .queues = storage->queues,
						     .queue_count = storage->disk.queue_count,
						     .status = WEIR_E_CLOSED };

	/* A device that is lost has no lanes that would wait for them. */
	if (context->late_lines && args.queue_count &&
	    weir_launch(context, "weir_end_commands", 1, 1, &args, sizeof(args)) == 0)
		(void)context->backend->ops->synchronise(context->backend);
}

void weir_closed_queues(struct weir_context *context, uint64_t queues, uint32_t count)
{
	struct weir_queue queue;

	describe(context, &queue);
	for (uint32_t i = 0; queues && i < count; i++)
		(void)context->backend->ops->h2d(context->backend, queues + i * sizeof(queue), &queue,
						 sizeof(queue));
}

void weir_closed_layout(struct weir_cache *cache, struct weir_cache_disks *disks,
			const struct weir_disk *disk)
{
	struct weir_backend *backend = cache->context->backend;

	disks->closed = true;
	for (uint32_t i = 0; i < disks->extent.disk_count; i++)
		(void)backend->ops->h2d(backend, disks->extent.disks + i * sizeof(*disk), disk,
					sizeof(*disk));
}

/* Memory for the one set of every cache that was destroyed: words, what a policy needs, and data that no lane
 * keeps. */
static bool take_set(struct weir_context *context)
{
	return context->closed_set ||
	       weir_memory_get(context, 2 * NVME_PAGE_BYTES + WEIR_WAYS * MOST_LINE_BYTES,
			       &context->closed_set) == 0;
}

static int empty_lines(struct weir_cache *cache)
{
	struct weir_backend *backend = cache->context->backend;
	struct weir_lines lines;
	int error = backend->ops->d2h(backend, &lines, cache->lines, sizeof(lines));

	if (error)
		return error;
	lines.sets = 1;
	lines.set_magic = UINT64_MAX;
	lines.words = cache->context->closed_set;
	lines.policies = lines.words + NVME_PAGE_BYTES;
	lines.data = lines.policies + NVME_PAGE_BYTES;
	lines.share = 0;
	lines.tier = 0;
	return backend->ops->h2d(backend, cache->lines, &lines, sizeof(lines));
}

bool weir_closed_cache(struct weir_cache *cache)
{
	struct weir_context *context = cache->context;

	if (!cache->extent_count || !take_set(context) || empty_lines(cache) != 0)
		return false;
	for (struct weir_cache_disks *disks = cache->disks; disks; disks = disks->next) {
		struct weir_disk disk = disks->members[0].disk;

		disk.queues = context->fault + CLOSED_AT + offsetof(struct closed, queue);
		disk.queue_count = 1;
		weir_closed_layout(cache, disks, &disk);
	}
	return true;
}
