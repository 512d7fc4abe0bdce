/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/fault.c: which commands the fault table strikes.
 *
 * Owns: the table and its counts. A command is asked about once, when it is
 * fetched; what strikes it is written into its request, and others carry it out.
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
	for (u32 i = 0; i < count; i++) {
		controller->faults[i] = (struct virtual_fault_row){ .given = options->faults[i] };
		if (!controller->faults[i].given.every)
			controller->faults[i].given.every = 1;
	}
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

/* A shift-and-multiply of the number: a lot needs no state that threads would share. */
u64 virtual_fault_draw(u64 seed, u64 number)
{
	u64 x = seed * 0xd1342543de82ef95u + (number + 1) * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static bool opcode_matches(const struct weir_virtual_fault *fault, u8 opcode)
{
	switch (fault->opcode) {
	case WEIR_VIRTUAL_FAULT_READ: return opcode == NVME_OPCODE_READ;
	case WEIR_VIRTUAL_FAULT_WRITE: return opcode == NVME_OPCODE_WRITE;
	case WEIR_VIRTUAL_FAULT_FLUSH: return opcode == NVME_OPCODE_FLUSH;
	default: return true;
	}
}

static bool blocks_match(const struct weir_virtual_fault *fault, const struct nvme_sqe *sqe)
{
	u64 lba = (u64)sqe->cdw11 << 32 | sqe->cdw10;
	u64 blocks = (u64)(sqe->cdw12 & 0xffff) + 1;

	switch ((u8)sqe->cdw0) {
	case NVME_OPCODE_READ:
	case NVME_OPCODE_WRITE:
	case NVME_OPCODE_COMPARE:
	case NVME_OPCODE_WRITE_ZEROES:
		return lba >= fault->lba ? lba - fault->lba < fault->blocks : fault->lba - lba < blocks;
	default: return false;
	}
}

static bool matches(const struct weir_virtual_fault *fault, const struct virtual_queue *queue,
		    const struct nvme_sqe *sqe)
{
	return opcode_matches(fault, (u8)sqe->cdw0) && (!fault->queue || fault->queue == queue->id) &&
	       (!fault->blocks || blocks_match(fault, sqe));
}

/* One of at most @count; false when all are used. */
static bool claim(struct virtual_fault_row *row)
{
	u64 matched = load_relaxed_u64(&row->matched);

	/* Relaxed: the counts of a row order nothing but themselves. */
	do {
		if (row->given.count && matched >= row->given.count)
			return false;
	} while (!compare_exchange_relaxed_u64(&row->matched, &matched, matched + 1));
	return true;
}

static bool strikes(struct virtual_fault_row *row)
{
	const struct weir_virtual_fault *fault = &row->given;
	u64 number = fetch_add_relaxed_u64(&row->seen, 1);

	if (number < fault->after || (number - fault->after + 1) % fault->every)
		return false;
	if (fault->chance && virtual_fault_draw(fault->seed, number) % 1000 >= fault->chance)
		return false;
	return claim(row);
}

struct virtual_fault_row *virtual_fault_of(const struct virtual_request *request,
					   enum weir_virtual_fault_kind kind)
{
	if (!(request->faults & bit_of(kind)))
		return NULL;
	return &request->thread->controller->faults[request->fault_rows[kind]];
}

struct virtual_fault_row *virtual_fault_take(struct virtual_request *request,
					     enum weir_virtual_fault_kind kind)
{
	struct virtual_fault_row *row = virtual_fault_of(request, kind);

	if (!row)
		return NULL;
	request->faults &= ~bit_of(kind);
	count_u64(&request->thread->counters.faults, 1);
	return row;
}

void virtual_fault_spare(struct virtual_request *request, enum weir_virtual_fault_kind kind)
{
	struct virtual_fault_row *row = virtual_fault_of(request, kind);

	request->faults &= ~bit_of(kind);
	fetch_add_relaxed_u64(&row->matched, ~(u64)0); /* relaxed: as in claim() */
}

static void stall(struct virtual_request *request, u32 us)
{
	struct virtual_thread *thread = request->thread;

	request->queue->resume_ns = virtual_clock_ns(thread->controller) + (u64)us * 1000;
	thread->ready = 0;
}

static u32 status_of(const struct weir_virtual *controller, const struct weir_virtual_fault *fault)
{
	/* relaxed: the feature was set before the command was submitted */
	u32 crd = load_relaxed_u32(&controller->retry_delays) ? fault->crd << NVME_STATUS_CRD_SHIFT : 0;

	return fault->code | crd | (fault->dnr ? NVME_STATUS_DNR : 0);
}

/* What happens when it is fetched; the rest waits for its completion. */
static u32 strike(struct virtual_request *request)
{
	struct virtual_fault_row *row = virtual_fault_take(request, WEIR_VIRTUAL_FAULT_STALL);

	if (row)
		stall(request, row->given.us);
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
	return row ? status_of(request->thread->controller, &row->given) : NVME_STATUS_SUCCESS;
}

u32 virtual_fault_begin(struct virtual_request *request, const struct nvme_sqe *sqe)
{
	const struct weir_virtual *controller = request->thread->controller;

	request->faults = 0;
	for (u32 i = 0; i < controller->options.fault_count; i++) {
		struct virtual_fault_row *row = &controller->faults[i];

		if (!matches(&row->given, request->queue, sqe) || !strikes(row))
			continue;
		request->faults |= bit_of(row->given.kind);
		request->fault_rows[row->given.kind] = (u8)i;
	}
	return request->faults ? strike(request) : NVME_STATUS_SUCCESS;
}

bool virtual_fault_pauses(const struct virtual_thread *thread, struct virtual_queue *queue)
{
	if (queue->resume_ns && virtual_clock_ns(thread->controller) >= queue->resume_ns)
		queue->resume_ns = 0;
	return queue->resume_ns || thread->discard;
}
