/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/fault.c: which commands the fault table matches.
 *
 * Owns: the table and its counts. A command is asked about once, when it is
 * fetched; what matches it is written into its request, and others carry it out.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../backend/error.h"
#include "parts.h"

static u32 bit_of(enum weir_virtual_fault_kind kind)
{
	return 1u << kind;
}

int virtual_faults_create(struct weir_virtual *controller)
{
	const struct weir_virtual_options *options = &controller->options;
	u32 count = options->fault_count;

	controller->faults = aligned_alloc(VIRTUAL_CACHE_LINE_BYTES, count * sizeof(*controller->faults));
	if (!controller->faults)
		return weir_fail(ENOMEM, "no memory for %u fault rows", count);
	for (u32 i = 0; i < count; i++)
		controller->faults[i] = weir_virtual_fault_row(&options->faults[i]);
	controller->options.faults = NULL; /* the caller's */
	for (u32 i = 0; i < options->threads; i++) {
		controller->threads[i].faults = calloc(1, sizeof(struct virtual_faults));
		if (!controller->threads[i].faults)
			return weir_fail(ENOMEM, "no memory for the faults of thread %u", i);
	}
	return 0;
}

void virtual_faults_destroy(struct weir_virtual *controller)
{
	for (u32 i = 0; controller->threads && i < controller->options.threads; i++)
		free(controller->threads[i].faults);
	free(controller->faults);
}

/* Take one of at most @count. Return: false when all are used. */
static bool take(struct weir_fault_row *row)
{
	u64 matched = weir_load_u64_relaxed_dev(&row->matched), seen;

	/* Relaxed: the counts of a row order nothing but themselves. */
	while (!row->count || matched < row->count) {
		seen = weir_cas_u64_relaxed_dev(&row->matched, matched, matched + 1);
		if (seen == matched)
			return true;
		matched = seen;
	}
	return false;
}

static bool matches(struct weir_fault_row *row, u32 queue, const struct nvme_sqe *sqe)
{
	u64 lba = (u64)sqe->cdw11 << 32 | sqe->cdw10, blocks = (u64)(sqe->cdw12 & 0xffff) + 1;

	if (!weir_fault_is_for(row, queue, sqe->cdw0 & 0xff, lba, blocks))
		return false;
	/* relaxed: as above */
	return weir_fault_matches(row, weir_add_u64_relaxed_dev(&row->seen, 1)) && take(row);
}

struct weir_fault_row *virtual_fault_of(const struct virtual_request *request,
					enum weir_virtual_fault_kind kind)
{
	if (!(request->faults & bit_of(kind)))
		return NULL;
	return &request->thread->controller->faults[request->fault_rows[kind]];
}

struct weir_fault_row *virtual_fault_take(struct virtual_request *request, enum weir_virtual_fault_kind kind)
{
	struct weir_fault_row *row = virtual_fault_of(request, kind);

	if (!row)
		return NULL;
	request->faults &= ~bit_of(kind);
	count_u64(&request->thread->counters.faults, 1);
	return row;
}

void virtual_fault_spare(struct virtual_request *request, enum weir_virtual_fault_kind kind)
{
	struct weir_fault_row *row = virtual_fault_of(request, kind);

	request->faults &= ~bit_of(kind);
	(void)weir_add_u64_relaxed_dev(&row->matched, ~(u64)0); /* relaxed: as in take() */
}

static void stall(struct virtual_request *request, u32 us)
{
	struct virtual_thread *thread = request->thread;

	request->queue->resume_ns = virtual_clock_ns(thread->controller) + (u64)us * 1000;
	thread->ready = 0;
}

static u32 status_of(const struct weir_virtual *controller, const struct weir_fault_row *row)
{
	/* relaxed: the feature was set before the command was submitted */
	bool delays = load_relaxed_u32(&controller->retry_delays);

	return delays ? row->code : row->code & ~(NVME_STATUS_CRD_MASK << NVME_STATUS_CRD_SHIFT);
}

/* What happens when it is fetched; the rest waits for its completion. */
static u32 strike(struct virtual_request *request)
{
	struct weir_fault_row *row = virtual_fault_take(request, WEIR_VIRTUAL_FAULT_STALL);

	if (row)
		stall(request, row->us);
	if (virtual_fault_take(request, WEIR_VIRTUAL_FAULT_GONE))
		store_relaxed_u32(&request->thread->controller->pulled, 1); /* silence.F1 orders it */
	if (virtual_fault_take(request, WEIR_VIRTUAL_FAULT_FATAL) ||
	    load_relaxed_u32(&request->thread->controller->pulled)) {
		virtual_fault_fail(request->thread);
		return NVME_STATUS_INTERNAL_ERROR; /* nobody will see it */
	}
	if (virtual_fault_take(request, WEIR_VIRTUAL_FAULT_OFF)) {
		virtual_fault_off(request->thread);
		return NVME_STATUS_INTERNAL_ERROR; /* likewise */
	}
	row = virtual_fault_take(request, WEIR_VIRTUAL_FAULT_STATUS);
	return row ? status_of(request->thread->controller, row) : NVME_STATUS_SUCCESS;
}

u32 virtual_fault_begin(struct virtual_request *request, const struct nvme_sqe *sqe)
{
	const struct weir_virtual *controller = request->thread->controller;

	request->faults = 0;
	for (u32 i = 0; i < controller->options.fault_count; i++) {
		struct weir_fault_row *row = &controller->faults[i];

		if (!matches(row, request->queue->id, sqe))
			continue;
		request->faults |= bit_of(row->kind);
		request->fault_rows[row->kind] = (u8)i;
	}
	return request->faults ? strike(request) : NVME_STATUS_SUCCESS;
}

bool virtual_fault_pauses(const struct virtual_thread *thread, struct virtual_queue *queue)
{
	if (queue->resume_ns && virtual_clock_ns(thread->controller) >= queue->resume_ns)
		queue->resume_ns = 0;
	return queue->resume_ns || thread->discard;
}
