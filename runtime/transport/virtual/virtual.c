/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual.c: the virtual controller as a whole: its making and one poll of it.
 *
 * Owns: the order of the steps of a poll.
 */
#include "virtual.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../../backend/error.h"
#include "parts.h"

enum {
	DEFAULT_TRANSFER_BYTES = 128 * 1024,
	TRANSFER_BYTES_MAX = 1 << 26,
	CAP_CONTIGUOUS = 1u << 16,
	CAP_TIMEOUT = 20u << 24,        /* 10 s, in units of 500 ms */
	CAP_HIGH_NVM = 1u << (37 - 32), /* the NVM command set */
};

static int check_limits(const struct weir_virtual_options *options)
{
	if (!options->threads || options->threads > 1024)
		return weir_fail(EINVAL, "%u controller threads: give 1 to 1024", options->threads);
	if (!options->max_queue_pairs || options->max_queue_pairs > 65535)
		return weir_fail(EINVAL, "%u queue pairs: give 1 to 65535", options->max_queue_pairs);
	if (options->shadow_doorbells &&
	    weir_virtual_doorbell_bytes(options->max_queue_pairs) > NVME_PAGE_BYTES)
		return weir_fail(EINVAL, "%u queue pairs: a page of shadow doorbells has room for %d",
				 options->max_queue_pairs, NVME_PAGE_BYTES / 8 - 1);
	if (options->max_queue_entries < 2 || options->max_queue_entries > 65536)
		return weir_fail(EINVAL, "%u queue entries: give 2 to 65536", options->max_queue_entries);
	return 0;
}

static int check_options(const struct weir_virtual_options *options)
{
	u32 transfer = options->max_transfer_bytes;
	int error;

	if (!options->medium || !options->dma)
		return weir_fail(EINVAL, "a virtual controller needs a medium and a DMA map");
	if (transfer < NVME_PAGE_BYTES || transfer > TRANSFER_BYTES_MAX || (transfer & (transfer - 1)))
		return weir_fail(EINVAL, "transfers of %u bytes: give a power of two from 4096 on", transfer);
	if (options->fault_count && !options->faults)
		return weir_fail(EINVAL, "%u fault rows, but no table", options->fault_count);
	error = weir_virtual_faults_check(options->faults, options->fault_count);
	return error ? error : check_limits(options);
}

static int read_options(const struct weir_virtual_options *from, struct weir_virtual_options *to)
{
	size_t least = offsetof(struct weir_virtual_options, iops) + sizeof(from->iops);

	if (from->size < least)
		return weir_fail(EINVAL, "options of %zu bytes, at least %zu are needed", from->size, least);
	*to = (struct weir_virtual_options){ .size = 0 };
	memcpy(to, from, from->size < sizeof(*to) ? from->size : sizeof(*to));
	to->size = sizeof(*to);
	if (!to->max_transfer_bytes)
		to->max_transfer_bytes = DEFAULT_TRANSFER_BYTES;
	if (!to->fetch_batch)
		to->fetch_batch = VIRTUAL_FETCH_BATCH;
	if (!to->front)
		to->front = &virtual_rings;
	if (!to->clock_ns)
		to->clock_ns = virtual_monotonic_ns;
	return check_options(to);
}

static void *pages(size_t bytes)
{
	size_t rounded = (bytes + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES * NVME_PAGE_BYTES;
	void *memory = aligned_alloc(NVME_PAGE_BYTES, rounded);

	if (memory)
		memset(memory, 0, rounded);
	return memory;
}

static void fill_registers(struct weir_virtual *controller)
{
	u32 entries = controller->options.max_queue_entries;

	store_relaxed_u32(&controller->registers[NVME_REGISTER_CAP / 4],
			  (entries - 1) | CAP_CONTIGUOUS | CAP_TIMEOUT);
	store_relaxed_u32(&controller->registers[NVME_REGISTER_CAP / 4 + 1], CAP_HIGH_NVM);
	store_relaxed_u32(&controller->registers[NVME_REGISTER_VS / 4], VIRTUAL_VERSION);
}

/* A random UUID, RFC 4122 version 4: two controllers never look like two paths to one disk. */
static void fill_uuid(struct weir_virtual *controller)
{
	u8 *uuid = controller->uuid;

	if (getrandom(uuid, 16, 0) != 16)
		memcpy(uuid, &controller, sizeof(controller));
	uuid[6] = (uuid[6] & 0x0f) | 0x40;
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
}

static int allocate(struct weir_virtual *controller)
{
	size_t queues = (size_t)controller->options.max_queue_pairs + 1;

	controller->doorbell_count =
		(u32)(weir_virtual_doorbell_bytes(controller->options.max_queue_pairs) / sizeof(u32));
	controller->doorbells = controller->options.doorbells
					? (struct shared_u32 *)controller->options.doorbells
					: pages(controller->doorbell_count * sizeof(u32));
	controller->sqs = pages(queues * sizeof(*controller->sqs));
	controller->cqs = pages(queues * sizeof(*controller->cqs));
	controller->cids = calloc(queues, VIRTUAL_CID_WORDS * sizeof(u64));
	controller->threads = pages(controller->options.threads * sizeof(*controller->threads));
	if (!controller->doorbells || !controller->sqs || !controller->cqs || !controller->cids ||
	    !controller->threads)
		return weir_fail(ENOMEM, "no memory for a virtual controller of %zu queues", queues);
	return virtual_admin_create(controller);
}

static int create_threads(struct weir_virtual *controller)
{
	for (u32 i = 0; i < controller->options.threads; i++) {
		struct virtual_thread *thread = &controller->threads[i];
		int error;

		thread->controller = controller;
		thread->front = controller->options.front;
		thread->index = i;
		error = virtual_requests_create(thread);
		if (error)
			return error;
	}
	return 0;
}

static void release(struct weir_virtual *controller)
{
	for (u32 i = 0; controller->threads && i < controller->options.threads; i++) {
		virtual_requests_destroy(&controller->threads[i]);
		weir_dma_view_release(&controller->threads[i].view);
	}
	virtual_admin_destroy(controller);
	virtual_faults_destroy(controller);
	free(controller->threads);
	free(controller->cids);
	free(controller->cqs);
	free(controller->sqs);
	if (!controller->options.doorbells)
		free(controller->doorbells);
	free(controller);
}

int weir_virtual_create(const struct weir_virtual_options *options, struct weir_virtual **out)
{
	struct weir_virtual_options checked;
	struct weir_virtual *controller;
	int error = read_options(options, &checked);

	if (error)
		return error;
	controller = pages(sizeof(*controller));
	if (!controller)
		return weir_fail(ENOMEM, "no memory for a virtual controller");
	controller->options = checked;
	controller->segments_max = checked.max_transfer_bytes / NVME_PAGE_BYTES + 1;
	controller->spacing_ns = checked.iops ? (999999999 + checked.iops) / checked.iops : 0;
	error = allocate(controller);
	if (!error)
		error = create_threads(controller);
	if (!error && checked.fault_count)
		error = virtual_faults_create(controller);
	if (error) {
		release(controller);
		return error;
	}
	virtual_admin_reset(controller);
	fill_registers(controller);
	fill_uuid(controller);
	*out = controller;
	return 0;
}

static void drain(struct virtual_thread *thread)
{
	struct weir_medium *medium = thread->controller->options.medium;

	virtual_requests_discard(thread);
	while (thread->in_medium)
		medium->ops->poll(medium, thread->index);
}

void weir_virtual_destroy(struct weir_virtual *controller)
{
	struct weir_medium *medium;

	if (!controller)
		return;
	weir_virtual_stop(controller);
	for (u32 i = 0; i < controller->options.threads; i++)
		drain(&controller->threads[i]);
	medium = controller->options.medium;
	medium->ops->close(medium);
	release(controller);
}

volatile u32 *weir_virtual_doorbells(struct weir_virtual *controller)
{
	return &controller->doorbells[0].word;
}

size_t weir_virtual_doorbell_bytes(unsigned queue_pairs)
{
	size_t bytes = ((size_t)queue_pairs + 1) * 2 * sizeof(u32);

	return (bytes + NVME_PAGE_BYTES - 1) / NVME_PAGE_BYTES * NVME_PAGE_BYTES;
}

bool weir_virtual_answer_places(struct weir_virtual *controller)
{
	const struct weir_medium *medium = controller->options.medium;

	controller->places = medium->memory && medium->bytes / medium->block_bytes < UINT32_MAX &&
			     !controller->options.fault_count;
	return controller->places;
}

static void publish_busy(struct virtual_thread *thread)
{
	u32 busy = thread->inflight - thread->dropped;

	if (!thread->index)
		busy += thread->controller->admin.pending;
	/* Relaxed: a hint for whoever wonders whether to poll on. */
	if (busy != load_relaxed_u32(&thread->counters.busy))
		store_relaxed_u32(&thread->counters.busy, busy);
}

unsigned weir_virtual_poll(struct weir_virtual *controller, unsigned index)
{
	struct virtual_thread *thread = &controller->threads[index];
	struct weir_medium *medium = controller->options.medium;
	u32 fetched = 0;
	unsigned done;

	virtual_view_refresh(thread);
	done = virtual_message_step(thread);
	if (!index)
		done += virtual_admin_step(controller) + virtual_control_step(controller);
	done += virtual_stalled_step(thread);
	if (thread->queue_count && !thread->stalled)
		fetched = virtual_serve(thread);
	if (thread->in_medium)
		done += medium->ops->poll(medium, index);
	done += virtual_time_step(thread);
	if (thread->faults)
		done += virtual_fault_step(thread, fetched);
	publish_busy(thread);
	return done + fetched;
}

int weir_virtual_busy(struct weir_virtual *controller, unsigned thread)
{
	return load_relaxed_u32(&controller->threads[thread].counters.busy) != 0;
}

void weir_virtual_stats(struct weir_virtual *controller, struct weir_virtual_stats *out)
{
	memset(out, 0, sizeof(*out));
	for (u32 i = 0; i < controller->options.threads; i++) {
		const struct virtual_counters *counters = &controller->threads[i].counters;

		/* Relaxed: each counter is true by itself. */
		out->commands += load_relaxed_u64(&counters->commands);
		out->errors += load_relaxed_u64(&counters->errors);
		out->bytes_read += load_relaxed_u64(&counters->bytes_read);
		out->bytes_written += load_relaxed_u64(&counters->bytes_written);
		out->changes += load_relaxed_u64(&counters->changes);
		out->bad_doorbells += load_relaxed_u64(&counters->bad_doorbells);
		out->faults += load_relaxed_u64(&counters->faults);
	}
}
