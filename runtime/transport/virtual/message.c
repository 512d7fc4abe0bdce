/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/message.c: how thread 0 tells the owners of queues what to do.
 *
 * Owns: one letter box per thread, and what an owner does about a letter. A
 * letter may take many polls; nobody waits for it.
 */
#include "parts.h"

bool virtual_message_acknowledged(const struct virtual_thread *to)
{
	/* message.M2: pairs with the store in virtual_message_step(). @sent is ours. */
	return load_acquire_u32(&to->message.answered) == load_relaxed_u32(&to->message.sent);
}

bool virtual_message_all_acknowledged(const struct weir_virtual *controller)
{
	for (u32 i = 0; i < controller->options.threads; i++)
		if (!virtual_message_acknowledged(&controller->threads[i]))
			return false;
	return true;
}

void virtual_message_send(struct virtual_thread *to, enum virtual_message_kind kind, u32 qid, u32 cid)
{
	struct virtual_message *message = &to->message;

	message->kind = kind;
	message->qid = qid;
	message->cid = cid;
	message->result = 0;
	/* message.M1: pairs with the load in virtual_message_step(): the letter, and the queue it is about.
	 */
	store_release_u32(&message->sent, load_relaxed_u32(&message->sent) + 1);
}

void virtual_message_send_all(struct weir_virtual *controller, enum virtual_message_kind kind)
{
	for (u32 i = 0; i < controller->options.threads; i++)
		virtual_message_send(&controller->threads[i], kind, 0, 0);
}

static bool adopt(struct virtual_thread *thread, struct virtual_sq *sq)
{
	virtual_view_refresh(thread);
	virtual_queue_check(thread, sq);
	thread->queues[thread->queue_count++] = sq;
	return true;
}

static bool drop(struct virtual_thread *thread, struct virtual_sq *sq)
{
	for (u32 i = 0; i < thread->queue_count; i++)
		if (thread->queues[i] == sq)
			thread->queues[i] = thread->queues[--thread->queue_count];
	virtual_requests_abort(thread, &sq->queue, ~0u, NVME_STATUS_ABORTED_SQ_DELETED);
	/* Relaxed: that the host asked for a reset meanwhile is all it says; what is left ends with that
	 * letter. */
	return !sq->queue.inflight ||
	       !(load_relaxed_u32(&thread->controller->registers[NVME_REGISTER_CC / 4]) & NVME_CC_ENABLE);
}

static bool abort_one(struct virtual_thread *thread, struct virtual_sq *sq)
{
	struct virtual_message *message = &thread->message;

	message->result =
		virtual_requests_abort(thread, &sq->queue, message->cid, NVME_STATUS_ABORT_REQUESTED);
	return true;
}

static bool quiesce(struct virtual_thread *thread)
{
	thread->queue_count = 0;
	return thread->inflight == thread->dropped;
}

static bool reset(struct virtual_thread *thread)
{
	thread->queue_count = 0;
	thread->shadow = (struct virtual_shadow){ .words = NULL };
	virtual_requests_discard(thread);
	thread->discard = thread->inflight > 0;
	return !thread->inflight;
}

/* True once the letter is dealt with; else it is tried again in the next poll. */
static bool work(struct virtual_thread *thread)
{
	struct virtual_sq *sq = &thread->controller->sqs[thread->message.qid];

	switch (thread->message.kind) {
	case VIRTUAL_MESSAGE_ADOPT: return adopt(thread, sq);
	case VIRTUAL_MESSAGE_DROP: return drop(thread, sq);
	case VIRTUAL_MESSAGE_ABORT: return abort_one(thread, sq);
	case VIRTUAL_MESSAGE_QUIESCE: return quiesce(thread);
	case VIRTUAL_MESSAGE_RESET: return reset(thread);
	case VIRTUAL_MESSAGE_SHADOW: virtual_shadow_begin(thread); return true;
	}
	return true;
}

unsigned virtual_message_step(struct virtual_thread *thread)
{
	struct virtual_message *message = &thread->message;
	u32 answered = load_relaxed_u32(&message->answered); /* our own */

	if (load_relaxed_u32(&message->sent) == answered)
		return 0;
	(void)load_acquire_u32(&message->sent); /* message.M1: pairs with virtual_message_send() */
	if (!work(thread))
		return 0;
	/* message.M2: pairs with virtual_message_acknowledged(): the queue and the result are thread 0's
	 * again. */
	store_release_u32(&message->answered, answered + 1);
	return 1;
}
