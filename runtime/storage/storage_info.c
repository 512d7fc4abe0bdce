/* SPDX-License-Identifier: BSD-3-Clause */
/* What a storage is, for lanes and for people, and what it did since it was opened. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "../device/context.h"
#include "doorbells.h"
#include "../backend/error.h"

enum { MOST_SNAPSHOTS = 1000 };

int weir_storage_disk(struct weir_storage *storage, struct weir_disk *disk)
{
	int error = weir_handle_check(storage, WEIR_HANDLE_STORAGE, "weir_storage_disk");

	if (error || (error = weir_given(disk, "weir_storage_disk", "disk")) != 0)
		return error;
	*disk = storage->disk;
	return 0;
}

static void describe_path(const struct weir_storage *storage, char *path, size_t bytes)
{
	if (storage->device_controller)
		snprintf(path, bytes, "direct, controller on the device, %u waves, %s",
			 storage->transport->device_controller.waves,
			 !storage->transport->device_controller.data         ? "no data"
			 : storage->transport->device_controller.host_medium ? "host memory"
									     : "device memory");
	else
		snprintf(path, bytes, "%s, %s%s%s%s%s", storage->pull ? "pull" : "direct",
			 storage->transport->ops->path(storage->transport),
			 storage->places ? ", zero copy" : "",
			 storage->shadow_memory ? ", shadow doorbells" : "", weir_doorbells_path(storage),
			 storage->transport->gpu_memory == WEIR_GPU_MEMORY_QUEUES
				 ? ", queues in device memory"
				 : "");
}

int weir_storage_info(struct weir_storage *storage, struct weir_storage_info *info)
{
	struct weir_storage_info filled = { .size = sizeof(filled) };
	int error = weir_handle_check(storage, WEIR_HANDLE_STORAGE, "weir_storage_info");

	if (error || (error = weir_given(info, "weir_storage_info", "info")) != 0)
		return error;
	filled.bytes = weir_storage_bytes(storage);
	filled.block_bytes = 1u << storage->disk.block_log2;
	filled.max_transfer_bytes = storage->disk.max_blocks << storage->disk.block_log2;
	filled.queues = storage->disk.queue_count;
	filled.depth = storage->depth;
	filled.queue_bytes = storage->queue_bytes;
	filled.read_only = (storage->disk.flags & WEIR_DISK_READ_ONLY) != 0;
	describe_path(storage, filled.path, sizeof(filled.path));
	return weir_result_give(info, &filled, sizeof(filled), "weir_storage_info");
}

static void copy_word(weir_shared_u64 *to, const weir_shared_u64 *from)
{
	/* relaxed: a snapshot of counters */
	weir_store_u64_relaxed_sys(to, weir_load_u64_relaxed_sys((weir_shared_u64 *)from));
}

/* What weir_stats() counts. Where the host shares the words it reads each by itself: lanes, a service or the
 * watchdog write. */
static int poll(struct weir_backend *backend, bool shared, uint64_t address, struct weir_queue *queue)
{
	const struct weir_queue *from = weir_at(address, struct weir_queue, 0);

	if (!shared)
		return backend->ops->d2h(backend, queue, address, sizeof(*queue));
	queue->path = from->path;
	copy_word(&queue->reap, &from->reap);
	copy_word(&queue->completed, &from->completed);
	copy_word(&queue->failed, &from->failed);
	copy_word(&queue->rogue, &from->rogue);
	copy_word(&queue->retried, &from->retried);
	copy_word(&queue->rings, &from->rings);
	return 0;
}

/*
 * A queue pair as it is just now. Completions are counted before the reaper unlocks, so one
 * that is being reaped (by a service, beside the caller) is looked at again.
 */
static int snapshot(struct weir_backend *backend, bool shared, uint64_t address, struct weir_queue *queue)
{
	int error = poll(backend, shared, address, queue);

	for (unsigned i = 0; !error && (weir_load_u64_relaxed_sys(&queue->reap) & 1) && i < MOST_SNAPSHOTS;
	     i++) {
		sched_yield();
		error = poll(backend, shared, address, queue);
	}
	return error;
}

/* The queue pairs' counters. */
static int count(struct weir_storage *storage, struct weir_stats *sum)
{
	struct weir_context *context = storage->context;

	for (uint32_t i = 0; i < storage->disk.queue_count; i++) {
		struct weir_queue queue;
		int error = snapshot(context->backend, context->shared_memory,
				     storage->queues + i * sizeof(queue), &queue);

		if (error)
			return error;
		sum->commands += weir_load_u64_relaxed_sys(&queue.completed);
		sum->failed += weir_load_u64_relaxed_sys(&queue.failed);
		sum->rogue += weir_load_u64_relaxed_sys(&queue.rogue);
		sum->retried += weir_load_u64_relaxed_sys(&queue.retried);
		sum->rings += weir_load_u64_relaxed_sys(&queue.rings);
		if (queue.path == WEIR_PATH_PULL)
			sum->pull += weir_load_u64_relaxed_sys(&queue.completed);
		else
			sum->direct += weir_load_u64_relaxed_sys(&queue.completed);
	}
	return 0;
}

static void count_bytes(struct weir_storage *storage, struct weir_stats *sum)
{
	struct weir_transport_stats moved = { 0, 0, false };

	storage->transport->ops->stats(storage->transport, &moved);
	sum->bytes_read += moved.bytes_read;
	sum->bytes_written += moved.bytes_written;
}

/* Of the engines that lanes reach, too. */
static int count_parts(struct weir_storage *storage, struct weir_stats *sum)
{
	int error = 0;

	for (unsigned i = 0; i < storage->part_count && !error; i++) {
		if (!storage->parts[i])
			continue;
		error = count(storage->parts[i], sum);
		count_bytes(storage->parts[i], sum);
	}
	return error;
}

int weir_stats(struct weir_storage *storage, struct weir_stats *stats)
{
	struct weir_stats sum = { .commands = 0 };
	int error = weir_handle_check(storage, WEIR_HANDLE_STORAGE, "weir_stats");

	if (error || (error = weir_given(stats, "weir_stats", "stats")) != 0 ||
	    (error = count(storage, &sum)) != 0 || (error = count_parts(storage, &sum)) != 0)
		return error;
	/* relaxed: a snapshot */
	sum.rings += weir_doorbells_rings(storage);
	sum.late = weir_load_u64_relaxed_sys(&storage->recovered.late);
	sum.aborted = weir_load_u64_relaxed_sys(&storage->recovered.aborted);
	sum.queues_replaced = weir_load_u64_relaxed_sys(&storage->recovered.queues);
	sum.resets = weir_load_u64_relaxed_sys(&storage->recovered.resets);
	count_bytes(storage, &sum);
	return weir_result_give(stats, &sum, sizeof(sum), "weir_stats");
}
