/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/message.c: how thread 0 tells the owners of queues what to do.
 *
 * Owns: one letter box per thread, and what an owner does about a letter. A
 * letter may take many polls; nobody waits for it.
 */
#include "parts.h"

bool virtual_mail_answered(const struct virtual_thread *to)
{
	/* M2: pairs with the store in virtual_mail_step(). @sent is ours. */
	return load_acquire_u32(&to->mail.answered) == load_relaxed_u32(&to->mail.sent);
}

bool virtual_mail_all_answered(const struct weir_virtual *controller)
{
	for (u32 i = 0; i < controller->options.threads; i++)
		if (!virtual_mail_answered(&controller->threads[i]))
			return false;
	return true;
}

void virtual_mail_send(struct virtual_thread *to, enum virtual_mail_kind kind, u32 qid, u32 cid)
{
	struct virtual_mail *mail = &to->mail;

	mail->kind = kind;
	mail->qid = qid;
	mail->cid = cid;
	mail->result = 0;
	/* M1: pairs with the load in virtual_mail_step(): the letter, and the queue it is about. */
	store_release_u32(&mail->sent, load_relaxed_u32(&mail->sent) + 1);
}

void virtual_mail_send_all(struct weir_virtual *controller, enum virtual_mail_kind kind)
{
	for (u32 i = 0; i < controller->options.threads; i++)
		virtual_mail_send(&controller->threads[i], kind, 0, 0);
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
	/* Relaxed: that the host asked for a reset meanwhile is all it says; what is left ends with that letter. */
	return !sq->queue.inflight || !(load_relaxed_u32(&thread->controller->registers[NVME_REGISTER_CC / 4]) & NVME_CC_ENABLE);
}

static bool abort_one(struct virtual_thread *thread, struct virtual_sq *sq)
{
	struct virtual_mail *mail = &thread->mail;

	mail->result =
		virtual_requests_abort(thread, &sq->queue, mail->cid, NVME_STATUS_ABORT_REQUESTED);
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
	struct virtual_sq *sq = &thread->controller->sqs[thread->mail.qid];

	switch (thread->mail.kind) {
	case VIRTUAL_MAIL_ADOPT:
		return adopt(thread, sq);
	case VIRTUAL_MAIL_DROP:
		return drop(thread, sq);
	case VIRTUAL_MAIL_ABORT:
		return abort_one(thread, sq);
	case VIRTUAL_MAIL_QUIESCE:
		return quiesce(thread);
	case VIRTUAL_MAIL_RESET:
		return reset(thread);
	case VIRTUAL_MAIL_SHADOW:
		virtual_shadow_begin(thread);
		return true;
	}
	return true;
}

unsigned virtual_mail_step(struct virtual_thread *thread)
{
	struct virtual_mail *mail = &thread->mail;
	u32 answered = load_relaxed_u32(&mail->answered); /* our own */

	if (load_relaxed_u32(&mail->sent) == answered)
		return 0;
	(void)load_acquire_u32(&mail->sent); /* M1: pairs with virtual_mail_send() */
	if (!work(thread))
		return 0;
	/* M2: pairs with virtual_mail_answered(): the queue and the result are thread 0's again. */
	store_release_u32(&mail->answered, answered + 1);
	return 1;
}
