/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/shadow.c: shadow doorbells, Base 2.0 section 5.8 and annex B.5.
 *
 * Owns: the Doorbell Buffer Config command, and when the host has to ring. The shadow of a doorbell is looked
 * at while there is work; before it is no more, its EventIdx word says up to where the host was heard, and
 * from then on only the register tells that there is more. Whoever never rings is not served.
 */
#include "parts.h"

void virtual_doorbell_open(struct weir_virtual *controller, u32 index, u8 *doorbell, u32 *seen,
			   enum virtual_doorbell with_shadow)
{
	const struct virtual_admin *admin = &controller->admin;

	*doorbell = VIRTUAL_DOORBELL_REGISTER;
	*seen = 0;
	if (admin->shadow_there && index > 1) {
		*doorbell = (u8)with_shadow;
		*seen = with_shadow == VIRTUAL_DOORBELL_ARMED ? VIRTUAL_DOORBELL_QUIET : 0;
		store_relaxed_u32(&admin->shadow.events[index], 0);
	}
	/* Relaxed, both: the host rings only after it saw the queue's creation complete (doorbell.C1). */
	store_relaxed_u32(&controller->doorbells[index], *seen);
}

u32 virtual_doorbell_take(struct virtual_thread *thread, u32 index, u8 *doorbell)
{
	/* doorbell.D1, doorbell.D2, of a register or a shadow; of a register that wakes: the shadow was
	 * written before */
	u32 value = load_acquire_u32(virtual_doorbell_word(thread, index, *doorbell));

	if (*doorbell != VIRTUAL_DOORBELL_ARMED)
		return value;
	*doorbell = VIRTUAL_DOORBELL_POLLED;
	return load_acquire_u32(virtual_doorbell_word(thread, index, *doorbell));
}

bool virtual_doorbell_arm(struct virtual_thread *thread, u32 index, u8 *doorbell, u32 *seen, u32 position)
{
	/* Acquire: of a register that was rung meanwhile the shadow is seen below. */
	exchange_u32(&thread->controller->doorbells[index], VIRTUAL_DOORBELL_QUIET);
	/* doorbell.B1: pairs with doorbell.B0 in core/queue/reach.h: the host sees where we sleep, or we see
	 * that it has moved on */
	store_ordered_u32(&thread->shadow.events[index], position);
	if (load_ordered_u32(&thread->shadow.words[index]) != *seen)
		return false;
	*doorbell = VIRTUAL_DOORBELL_ARMED;
	*seen = VIRTUAL_DOORBELL_QUIET;
	return true;
}

/* From the register to the shadow, which says the same to begin with. */
static void move(struct virtual_thread *thread, u32 index, u8 *doorbell, u32 *seen, u32 position)
{
	*doorbell = VIRTUAL_DOORBELL_POLLED;
	*seen = position;
	store_relaxed_u32(&thread->shadow.events[index],
			  position); /* doorbell.C1 of the command's completion orders both */
	store_relaxed_u32(&thread->shadow.words[index], position);
}

void virtual_shadow_begin(struct virtual_thread *thread)
{
	for (u32 i = 0; i < thread->queue_count; i++)
		virtual_queue_poll(thread, thread->queues[i]);
	thread->shadow = thread->controller->admin.shadow;
	virtual_view_refresh(thread);
	for (u32 i = 0; i < thread->queue_count; i++) {
		struct virtual_sq *sq = thread->queues[i];
		struct virtual_cq *cq = sq->cq;

		move(thread, 2 * sq->queue.id, &sq->doorbell, &sq->doorbell_seen, sq->tail);
		move(thread, 2 * cq->id + 1, &cq->doorbell, &cq->doorbell_seen, cq->head);
		virtual_queue_check(thread, sq);
	}
}

/* Both pages are in the thread's view of the DMA map. */
static bool pages_mapped(struct virtual_thread *thread, const struct virtual_shadow *shadow)
{
	return weir_dma_view_find(&thread->view, (u64)(uintptr_t)shadow->words, NVME_PAGE_BYTES) &&
	       weir_dma_view_find(&thread->view, (u64)(uintptr_t)shadow->events, NVME_PAGE_BYTES);
}

void virtual_shadow_check(struct virtual_thread *thread, struct virtual_sq *sq)
{
	struct virtual_admin *admin = &thread->controller->admin;

	if (!sq->queue.id) /* thread 0's, as all of admin */
		admin->shadow_there &= pages_mapped(thread, &admin->shadow);
	if (sq->doorbell == VIRTUAL_DOORBELL_REGISTER || pages_mapped(thread, &thread->shadow))
		return;
	sq->lost = sq->cq->lost = true;
	sq->doorbell = sq->cq->doorbell =
		VIRTUAL_DOORBELL_REGISTER; /* nothing of the pages is touched any more */
}

/*
 * The host shall keep the admin queue's shadow words, too, and ring as EventIdx says; many hosts know its
 * registers only. Whose words move is one that keeps them.
 */
void virtual_shadow_admin(struct weir_virtual *controller)
{
	struct virtual_admin *admin = &controller->admin;
	struct virtual_sq *sq = &controller->sqs[0];

	if (!admin->shadow_there || sq->lost || sq->doorbell != VIRTUAL_DOORBELL_REGISTER)
		return;
	/* Relaxed: whoever goes on looks again (doorbell.D1). */
	if (load_relaxed_u32(&admin->shadow.words[0]) != admin->shadow_tail)
		sq->doorbell = sq->cq->doorbell = VIRTUAL_DOORBELL_POLLED;
}

static bool page_usable(struct weir_virtual *controller, u64 address)
{
	return address % NVME_PAGE_BYTES == 0 &&
	       weir_dma_view_find(&controller->threads[0].view, address, NVME_PAGE_BYTES);
}

/* "If the memory addresses are invalid": Invalid Field in Command. */
u32 virtual_doorbell_buffer_config(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result)
{
	struct virtual_admin *admin = &controller->admin;

	(void)result;
	if (!controller->options.shadow_doorbells)
		return virtual_refuse(NVME_STATUS_INVALID_OPCODE);
	if (!page_usable(controller, sqe->prp1) || !page_usable(controller, sqe->prp2) ||
	    sqe->prp1 == sqe->prp2)
		return virtual_refuse(NVME_STATUS_INVALID_FIELD);
	admin->shadow = (struct virtual_shadow){ .words = (struct shared_u32 *)(uintptr_t)sqe->prp1,
						 .events = (struct shared_u32 *)(uintptr_t)sqe->prp2 };
	admin->shadow_there = true;
	admin->shadow_tail = controller->sqs[0].tail;
	controller->sqs[0].doorbell = controller->cqs[0].doorbell = VIRTUAL_DOORBELL_REGISTER;
	/* Relaxed, both: doorbell.C1 of the command's completion orders them. */
	store_relaxed_u32(&admin->shadow.words[0], admin->shadow_tail);
	store_relaxed_u32(&admin->shadow.words[1], controller->cqs[0].head);
	virtual_message_send_all(controller, VIRTUAL_MESSAGE_SHADOW);
	return virtual_admin_pending_all(controller, sqe);
}
