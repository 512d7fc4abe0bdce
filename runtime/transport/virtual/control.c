/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/control.c: enable, reset and shutdown, Base 2.0 sections 3.5 to 3.7.
 *
 * Owns: the controller's phase and CSTS. Runs on thread 0, which asks the other
 * threads by message and never waits: each step does what can be done now.
 */
#include "parts.h"

enum {
	CC_ENTRY_SIZES = NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16,
	CC_ENTRY_SIZES_MASK = 0xffu << 16,
	CC_CHOICES_MASK = 0x3ff0u, /* CSS (6:4), MPS (10:7), AMS (13:11): only 0 is offered */
	CSTS_SHUTDOWN_OCCURRING = 1u << 2,
};

static u32 register_value(const struct weir_virtual *controller, u32 offset)
{
	/* Relaxed: ordered by the load of CC (register.R1). */
	return load_relaxed_u32(&controller->registers[offset / 4]);
}

static u64 register_value_64(const struct weir_virtual *controller, u32 offset)
{
	return register_value(controller, offset) | (u64)register_value(controller, offset + 4) << 32;
}

/* register.R2: pairs with weir_virtual_read32(): what led to the new state is over. */
static void publish(struct weir_virtual *controller, u32 csts)
{
	controller->csts = csts;
	store_release_u32(&controller->registers[NVME_REGISTER_CSTS / 4], csts);
}

void virtual_control_fatal(struct weir_virtual *controller)
{
	publish(controller, controller->csts | NVME_CSTS_FATAL);
}

void virtual_control_fail(struct weir_virtual *controller)
{
	if (controller->phase == VIRTUAL_ENABLED)
		controller->phase = VIRTUAL_FAILED;
	if (controller->phase != VIRTUAL_RESETTING)
		virtual_control_fatal(controller);
}

static bool ring_usable(struct weir_virtual *controller, u64 address, u32 entries, u32 entry_bytes)
{
	return entries >= 2 && address % NVME_PAGE_BYTES == 0 &&
	       weir_dma_view_find(&controller->threads[0].view, address, (u64)entries * entry_bytes);
}

static bool configuration_usable(struct weir_virtual *controller, u32 cc, u32 sq_entries, u32 cq_entries)
{
	if ((cc & CC_CHOICES_MASK) || (cc & CC_ENTRY_SIZES_MASK) != CC_ENTRY_SIZES)
		return false;
	return ring_usable(controller, register_value_64(controller, NVME_REGISTER_ASQ), sq_entries,
			   sizeof(struct nvme_sqe)) &&
	       ring_usable(controller, register_value_64(controller, NVME_REGISTER_ACQ), cq_entries,
			   sizeof(struct nvme_cqe));
}

static void enable(struct weir_virtual *controller, u32 cc)
{
	u32 aqa = register_value(controller, NVME_REGISTER_AQA);
	u32 sq_entries = (aqa & 0xfff) + 1, cq_entries = (aqa >> 16 & 0xfff) + 1;

	virtual_view_refresh(&controller->threads[0]);
	if (!configuration_usable(controller, cc, sq_entries, cq_entries)) {
		controller->phase = VIRTUAL_FAILED;
		publish(controller, NVME_CSTS_FATAL);
		return;
	}
	virtual_cq_open(controller, 0, register_value_64(controller, NVME_REGISTER_ACQ), cq_entries);
	virtual_sq_open(controller, 0, register_value_64(controller, NVME_REGISTER_ASQ), sq_entries, 0);
	controller->phase = VIRTUAL_ENABLED;
	publish(controller, NVME_CSTS_READY);
}

static void reset_finish(struct weir_virtual *controller)
{
	virtual_admin_reset(controller);
	virtual_fault_reset(controller);
	for (u32 i = 0; i < controller->doorbell_count; i++)
		store_relaxed_u32(&controller->doorbells[i], 0); /* register.R2 orders it */
	exchange_u32(&controller->events, 0);
	controller->phase = VIRTUAL_DISABLED;
	publish(controller, 0);
}

static void flush_done(struct weir_io *io)
{
	struct weir_virtual *controller =
		(struct weir_virtual *)((char *)io - offsetof(struct weir_virtual, flush));

	controller->threads[0].in_medium--;
	controller->flush_done = true;
}

/* A medium that refuses is asked again in the next step. */
static void flush_submit(struct weir_virtual *controller)
{
	struct weir_medium *medium = controller->options.medium;

	controller->threads[0].in_medium++;
	controller->flush_stalled = !medium->ops->submit(medium, &controller->flush);
	if (controller->flush_stalled)
		controller->threads[0].in_medium--;
}

static void flush_begin(struct weir_virtual *controller)
{
	controller->flush = (struct weir_io){ .kind = WEIR_IO_FLUSH, .done = flush_done };
	controller->flush_done = false;
	controller->phase = VIRTUAL_FLUSHING;
	flush_submit(controller);
}

static unsigned flush_step(struct weir_virtual *controller)
{
	if (controller->flush_stalled)
		flush_submit(controller);
	if (!controller->flush_done)
		return 0;
	controller->phase = controller->phase_shut;
	if (controller->flush.status)
		publish(controller, controller->csts | NVME_CSTS_FATAL);
	publish(controller, (controller->csts & ~NVME_CSTS_SHUTDOWN_MASK) | NVME_CSTS_SHUTDOWN_DONE);
	return 1;
}

static void shutdown_begin(struct weir_virtual *controller)
{
	controller->phase_shut = controller->phase == VIRTUAL_DISABLED ? VIRTUAL_DISABLED : VIRTUAL_SHUT;
	controller->phase = VIRTUAL_QUIESCING;
	publish(controller, controller->csts | CSTS_SHUTDOWN_OCCURRING);
	virtual_message_send_all(controller, VIRTUAL_MESSAGE_QUIESCE);
}

static void reset_begin(struct weir_virtual *controller, u32 falls)
{
	controller->falls_done = falls;
	controller->phase = VIRTUAL_RESETTING;
	virtual_message_send_all(controller, VIRTUAL_MESSAGE_RESET);
}

/* Nothing is under way: see whether the host asks for something. */
static unsigned poll(struct weir_virtual *controller)
{
	/* register.R1: pairs with write_cc() */
	u32 cc = load_acquire_u32(&controller->registers[NVME_REGISTER_CC / 4]);
	u32 falls = load_acquire_u32(&controller->falls);
	bool reset = falls != controller->falls_done;
	bool shutdown = (cc & NVME_CC_SHUTDOWN_MASK) && !(controller->csts & NVME_CSTS_SHUTDOWN_MASK);

	if (reset && load_relaxed_u32(&controller->hung)) /* relaxed: a fault, for good */
		return 0;
	if ((reset || shutdown) && !virtual_message_all_acknowledged(controller))
		return 0;
	if (reset)
		reset_begin(controller, falls);
	else if (shutdown)
		shutdown_begin(controller);
	else if (controller->phase == VIRTUAL_DISABLED && (cc & NVME_CC_ENABLE))
		enable(controller, cc);
	else
		return 0;
	return 1;
}

unsigned virtual_control_step(struct weir_virtual *controller)
{
	switch (controller->phase) {
	case VIRTUAL_RESETTING:
		if (!virtual_message_all_acknowledged(controller))
			return 0;
		reset_finish(controller);
		return 1;
	case VIRTUAL_QUIESCING:
		if (!virtual_message_all_acknowledged(controller))
			return 0;
		flush_begin(controller);
		return 1;
	case VIRTUAL_FLUSHING: return flush_step(controller);
	default: return poll(controller);
	}
}
