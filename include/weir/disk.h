/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk.h: blocks of a storage, read and written by lanes.
 *
 * Owns: spreading requests over a storage's queue pairs, waiting with a deadline,
 * helping to reap. Nothing is held between a submission and its wait: a lane may
 * start any number of requests first, whatever the depth of the queues.
 *
 * Every function here may be called by any subset of a wave's lanes, with
 * different arguments in each. Each wait is a loop of steps that do not wait, and
 * every iteration of it helps others (core/wait_loop.h has the rules).
 */
#ifndef WEIR_DISK_H
#define WEIR_DISK_H

#include <weir/core/queue/alone.h>
#include <weir/core/queue/cq.h>
#include <weir/core/queue/fault.h>
#include <weir/core/queue/retry.h>
#include <weir/core/queue/sq.h>
#include <weir/core/wait_loop.h>
#include <weir/core/volume/place.h>

/* WEIR_DISK_WINDOW: all of the data is where the controller is to reach. */
WEIR_FN u32 weir_disk_reaches(WEIR_GLOBAL struct weir_disk *disk, struct weir_request request)
{
	WEIR_GLOBAL struct weir_queue *queue = weir_disk_queue(disk, 0); /* the same in all */
	u64 offset = request.buffer - queue->window, bytes = (u64)request.blocks << disk->block_log2;

	return offset < queue->window_bytes && bytes <= queue->window_bytes - offset;
}

/** weir_disk_check() - what is wrong with a request before it costs a slot; 0 if nothing */
WEIR_FN weir_status weir_disk_check(WEIR_GLOBAL struct weir_disk *disk, struct weir_request request)
{
	if (WEIR_ONLY_SERVICE && !(disk->flags & WEIR_DISK_SERVICE))
		return WEIR_E_SERVICE;
	if (request.opcode == NVME_OPCODE_FLUSH)
		return WEIR_OK;
	if (request.opcode != NVME_OPCODE_READ && (disk->flags & WEIR_DISK_READ_ONLY))
		return WEIR_E_READ_ONLY;
	if (request.blocks == 0 || request.blocks > disk->max_blocks)
		return WEIR_E_TRANSFER;
	if (request.lba >= disk->blocks || request.blocks > disk->blocks - request.lba)
		return WEIR_E_RANGE;
	if ((disk->flags & WEIR_DISK_WINDOW) && !weir_disk_reaches(disk, request))
		return WEIR_E_WINDOW;
	return (request.buffer & 3) ? WEIR_E_ALIGNMENT : WEIR_OK;
}

/*
 * Submit for those lanes of @wave that want it, each to its queue pair @mine. One after the other: all lanes
 * of the wave go along for each, so that none waits for others that have parted from it (docs/porting.md).
 */
WEIR_FN u32 weir_queues_try_submit(u64 wave, u32 want, weir_addr mine, struct weir_request request,
				   struct weir_age age)
{
	u64 left = weir_ballot(wave, want);
	u32 submitted = 0;

	while (left != 0) { /* it is 0 in most iterations of a wait */
		u64 address = weir_shuffle_u64(wave, mine, weir_lowest_bit(left));
		u64 takers = weir_ballot(wave, want && mine == address);
		WEIR_GLOBAL struct weir_queue *queue = weir_at(address, struct weir_queue, 0);
		u32 sent = weir_sq_try_submit(queue, wave, takers, request, age);

		submitted |= sent;
		left &= ~takers;
		want = want && !weir_is_in(takers);
		if (queue->placed == WEIR_QUEUE_ENGINE) { /* the same in all lanes: writes go on */
			if (weir_is_in(takers) && request.target_kind == WEIR_TARGET_JOIN) {
				struct weir_place_step step = weir_place_sent(request.target, sent);

				submitted = step.submitted;
				mine = step.queue;
				want = mine != 0;
			}
			weir_reconverge();
			left = weir_ballot(wave, want);
		}
		weir_reconverge();
	}
	return submitted;
}

/* weir_disk_try_submit() in a wait for a slot: who has waited long goes before others in the end. */
WEIR_FN u32 weir_disk_try_submit_by(u64 wave, u32 want, WEIR_GLOBAL struct weir_disk *disk,
				    struct weir_request request, struct weir_age age)
{
	weir_addr mine = WEIR_ADDR(weir_disk_queue(disk, weir_wave()));

	if (want && (disk->flags & WEIR_DISK_PLACED)) {
		struct weir_place place = weir_place(disk, request);

		mine = place.queue;
		want = mine != 0;
		request.lba = place.lba;
		request.target_kind = place.join ? (u32)WEIR_TARGET_JOIN : request.target_kind;
		request.target = place.join ? place.join : request.target;
	}
	if (disk->flags & WEIR_DISK_PLACED) /* the next try may go elsewhere: nobody leaves slots to it */
		age = weir_age_none();
	weir_reconverge();
	return weir_queues_try_submit(wave, want, mine, request, age);
}

/**
 * weir_disk_try_submit() - submit for those lanes of @wave that want it
 * @wave: lanes calling together
 * @want: this lane has a request
 * @disk: this lane's storage
 * @request: this lane's request, already checked
 *
 * One pass, no waiting.
 *
 * Return: 1 if this lane's request was submitted.
 */
WEIR_FN u32 weir_disk_try_submit(u64 wave, u32 want, WEIR_GLOBAL struct weir_disk *disk,
				 struct weir_request request)
{
	return weir_disk_try_submit_by(wave, want, disk, request, weir_age_none());
}

/** weir_disk_dead() - status of a storage whose queues are gone, 0 while it lives */
WEIR_FN weir_status weir_disk_dead(WEIR_GLOBAL struct weir_disk *disk)
{
	/* relaxed: a flag that only ever rises; nothing is read on its strength */
	return weir_load_u32_relaxed_sys(&weir_disk_queue(disk, weir_wave())->dead) & WEIR_QUEUE_DEAD_STATUS;
}

/*
 * Is a command in the rings of a dead storage whose commands were ended before, or just being ended? One that
 * was submitted just then: whoever helps next ends it, too.
 */
WEIR_COLD u32 weir_disk_holds_commands(WEIR_GLOBAL struct weir_disk *disk)
{
	u32 filled = 0;

	for (u32 i = 0; i < disk->queue_count; i++) {
		WEIR_GLOBAL struct weir_queue *queue = weir_at(disk->queues, struct weir_queue, i);

		/* sq.S3: pairs with sq.S2: whoever freed a slot had the lock before */
		for (u32 index = 0; index < queue->depth; index++)
			filled |= weir_load_u32_acquire_dev(
				&weir_at(queue->slots, struct weir_slot, index)->sequence);
		/* cq.R0: pairs with cq.R1: of slots that were freed with it the issuers were told before */
		filled |= (u32)weir_load_u64_acquire_dev(&queue->reap);
	}
	return filled & 1;
}

/**
 * weir_disk_over() - weir_disk_dead(), once waiting for a command is no use any more
 *
 * Until then whoever helps ends the commands of a dead storage, and who waits for one learns so by its event,
 * which nobody writes to afterwards.
 */
WEIR_FN weir_status weir_disk_over(WEIR_GLOBAL struct weir_disk *disk)
{
	u32 dead =
		weir_load_u32_relaxed_sys(&weir_disk_queue(disk, weir_wave())->dead); /* relaxed: likewise */

	if (!(dead & WEIR_QUEUE_UNSAFE) && (!(dead & WEIR_QUEUE_ENDED) || weir_disk_holds_commands(disk)))
		return WEIR_OK;
	return dead & WEIR_QUEUE_DEAD_STATUS;
}

/** weir_disk_unsafe() - weir_disk_dead() of a storage whose commands never end (WEIR_QUEUE_UNSAFE), 0 of any
 * other */
WEIR_FN weir_status weir_disk_unsafe(WEIR_GLOBAL struct weir_disk *disk)
{
	u32 dead =
		weir_load_u32_relaxed_sys(&weir_disk_queue(disk, weir_wave())->dead); /* relaxed: likewise */

	return dead & WEIR_QUEUE_UNSAFE ? dead & WEIR_QUEUE_DEAD_STATUS : (u32)WEIR_OK;
}

/* weir_disk_submit() by a lane that is a wave of its own and meets nobody. Return: 1 if it was submitted. */
WEIR_FN u32 weir_disk_submit_alone(WEIR_GLOBAL struct weir_disk *disk, u64 wave, struct weir_request request)
{
	WEIR_GLOBAL struct weir_queue *queue = weir_disk_queue(disk, weir_wave());
	struct weir_alone alone = weir_alone_submit(queue, request);

	if (alone.found == WEIR_ALONE_FILLED) {
		weir_sq_commit(queue, wave, alone.word, 1);
	} else if (alone.found == WEIR_ALONE_COMBINING) {
		while (weir_sq_combine(queue, wave, 0, 0) != 0)
			weir_reconverge();
	}
	return alone.found != WEIR_ALONE_NOTHING;
}

/*
 * Submit one checked request per wanting lane, waiting for slots as long as the
 * storage's timeout allows.
 */
WEIR_FN weir_status weir_disk_submit(WEIR_GLOBAL struct weir_disk *disk, struct weir_request request)
{
	u64 wave = weir_active();
	weir_status status = weir_disk_check(disk, request);
	u32 done = status != WEIR_OK;
	u64 deadline;

	if (weir_popcount(wave) == 1 && !done && !(disk->flags & WEIR_DISK_PLACED))
		done = weir_disk_submit_alone(disk, wave, request);
	deadline = done ? 0 : weir_deadline(disk, 0);
	WEIR_WAIT_LOOP(wave, !done, iteration) {
		if (!done && (status = weir_disk_dead(disk)) != WEIR_OK)
			done = 1;
		done |= weir_disk_try_submit_by(wave, !done, disk, request, weir_age(deadline, iteration));
		if (!done && weir_expired(deadline, iteration)) {
			status = WEIR_E_QUEUE_FULL;
			done = 1;
		}
		weir_wait_help(wave, !done, disk, iteration, iteration);
	}
	weir_sq_withdraw(wave, status == WEIR_E_QUEUE_FULL, weir_disk_queue(disk, weir_wave()), deadline);
	return status;
}

/* What weir_block_async() submits. */
WEIR_FN struct weir_request weir_block_request(u32 opcode, u64 lba, u32 blocks, weir_addr buffer,
					       WEIR_GLOBAL struct weir_event *event)
{
	struct weir_request request;

	request.opcode = opcode;
	request.blocks = blocks;
	request.flags = 0;
	request.target_kind = WEIR_TARGET_EVENT;
	request.lba = lba;
	request.buffer = buffer;
	request.target = WEIR_ADDR(event);
	request.status = 0;
	return request;
}

/**
 * weir_block_async() - start a read, write or flush
 * @disk: storage
 * @opcode: NVME_OPCODE_READ, NVME_OPCODE_WRITE or NVME_OPCODE_FLUSH
 * @lba: first block
 * @blocks: number of blocks, 1 to weir_disk.max_blocks
 * @buffer: device address in memory from weir_alloc(), 4-byte aligned
 * @event: told when it has ended; must stay until then
 *
 * Returns as soon as the command is in the ring; waits only for a free slot. Data
 * of a write must not change until the event is done.
 *
 * Return: WEIR_OK, or why nothing was submitted: WEIR_E_RANGE, WEIR_E_TRANSFER, WEIR_E_ALIGNMENT,
 * WEIR_E_READ_ONLY, WEIR_E_WINDOW, WEIR_E_QUEUE_FULL; in lanes built with WEIR_DEBUG also WEIR_E_EVENT, of
 * which weir_sync() tells the block. But for WEIR_E_EVENT the event is done, with that status: a wait for it
 * returns at once.
 */
WEIR_FN weir_status weir_block_async(WEIR_GLOBAL struct weir_disk *disk, u32 opcode, u64 lba, u32 blocks,
				     weir_addr buffer, WEIR_GLOBAL struct weir_event *event)
{
	struct weir_request request = weir_block_request(opcode, lba, blocks, buffer, event);
	weir_status status = weir_event_start(event);

	if (status != WEIR_OK) {
		weir_fault_report(disk->fault, status, disk->id, WEIR_FAULT_LBA, lba, disk->blocks);
		return status;
	}
	status = weir_disk_submit(disk, request);
	if (status != WEIR_OK)
		weir_event_refuse(event, status);
	return status;
}

/** weir_read_async() - start reading @blocks blocks at @lba into @buffer; see weir_block_async() */
WEIR_FN weir_status weir_read_async(WEIR_GLOBAL struct weir_disk *disk, u64 lba, u32 blocks, weir_addr buffer,
				    WEIR_GLOBAL struct weir_event *event)
{
	return weir_block_async(disk, NVME_OPCODE_READ, lba, blocks, buffer, event);
}

/** weir_write_async() - start writing @blocks blocks at @lba from @buffer; see weir_block_async() */
WEIR_FN weir_status weir_write_async(WEIR_GLOBAL struct weir_disk *disk, u64 lba, u32 blocks,
				     weir_addr buffer, WEIR_GLOBAL struct weir_event *event)
{
	return weir_block_async(disk, NVME_OPCODE_WRITE, lba, blocks, buffer, event);
}

/**
 * weir_flush_async() - start making every write completed so far durable
 *
 * NVM Command Set 1.0, section 3.2.1.
 */
WEIR_FN weir_status weir_flush_async(WEIR_GLOBAL struct weir_disk *disk, WEIR_GLOBAL struct weir_event *event)
{
	return weir_block_async(disk, NVME_OPCODE_FLUSH, 0, 0, 0, event);
}

/** struct weir_retried - a request that failed, as its record has it; queue 0: the record is another one's by
 * now */
struct weir_retried {
	weir_addr queue;
	struct weir_request request;
	u32 state;
};

/* The record that the event's word names. */
WEIR_FN struct weir_retried weir_retry_poll(WEIR_GLOBAL struct weir_event *event, u64 word)
{
	WEIR_GLOBAL struct weir_retry_record *record =
		weir_at((word & WEIR_EVENT_RECORD) << 3, struct weir_retry_record, 0);
	struct weir_retried retried;
	u32 same = weir_load_u64_acquire_dev(&record->event) ==
		   WEIR_ADDR(event); /* disk.V3: pairs with disk.V2 */
	u32 cdw12 =
		weir_load_u32_relaxed_dev(&record->cdw12); /* relaxed, like the others: disk.V3 came before */

	retried.request.opcode = weir_load_u32_relaxed_dev(&record->opcode);
	retried.request.blocks = retried.request.opcode == NVME_OPCODE_FLUSH ? 0 : (cdw12 & 0xffff) + 1;
	retried.request.flags = cdw12 & ~(u32)0xffff;
	retried.request.target_kind = WEIR_TARGET_EVENT;
	retried.request.lba = weir_load_u64_relaxed_dev(&record->lba);
	retried.request.buffer = weir_load_u64_relaxed_dev(&record->buffer);
	retried.request.target = WEIR_ADDR(event);
	retried.request.status = 0;
	retried.state = weir_load_u32_relaxed_dev(&record->state);
	retried.queue = weir_load_u64_relaxed_dev(&record->queue);
	weir_order_loads(); /* disk.V1: pairs with disk.V0 */
	if (!same || weir_load_u64_relaxed_dev(&record->event) != WEIR_ADDR(event))
		retried.queue = 0;
	return retried;
}

/* It is not tried again: the event's word says so from now on. Return: that word; 0: another lane was faster.
 */
WEIR_FN u64 weir_retry_end(WEIR_GLOBAL struct weir_event *event, u64 word, u32 lost)
{
	u64 plain = weir_event_plain(word) | (lost ? WEIR_EVENT_LOST : 0);

	/* relaxed: event.E1 came before, and no data */
	return weir_cas_u64_relaxed_dev(&event->word, word, plain) == word ? plain : 0;
}

/**
 * weir_event_retry() - one step of a wait whose request failed and can be submitted again
 * @wave: lanes calling together
 * @event: this lane's
 * @word: from weir_event_peek(), or 0; only one with WEIR_EVENT_RETRY changes
 * @deadline: of the wait
 *
 * One pass, no waiting. The request goes to its queue pair as soon as the controller may be asked again and
 * there is a slot; until then its event stays as it is. So nothing is held from one iteration to the next,
 * and any lane that waits may do it.
 *
 * Return: the event's word; 0: it is to be waited for.
 */
WEIR_FN u64 weir_event_retry(u64 wave, WEIR_GLOBAL struct weir_event *event, u64 word, u64 deadline)
{
	u32 retries = (word & WEIR_EVENT_RETRY) != 0, sends = 0, state = 0, submitted;
	struct weir_retried retried;

	if (weir_ballot(wave, retries) == 0)
		return word;
	retried.queue = 0;
	retried.request.opcode = 0;
	retried.request.blocks = 0;
	retried.request.flags = 0;
	retried.request.target_kind = WEIR_TARGET_NONE;
	retried.request.lba = 0;
	retried.request.buffer = 0;
	retried.request.target = 0;
	retried.request.status = 0;
	retried.state = 0;
	if (retries) {
		WEIR_GLOBAL struct weir_retry_record *record =
			weir_at((word & WEIR_EVENT_RECORD) << 3, struct weir_retry_record, 0);
		WEIR_GLOBAL struct weir_queue *queue;

		retried = weir_retry_poll(event, word);
		queue = weir_at(retried.queue, struct weir_queue, 0);
		/* relaxed: a flag that only ever rises */
		if (retried.queue && weir_load_u32_relaxed_sys(&queue->dead) == WEIR_OK)
			state = weir_retry_by(queue->retry, weir_event_retry_status(word), retried.state,
					      deadline);
		sends = weir_retry_now(state);
		if (state == 0)
			word = weir_retry_end(event, word, retried.queue == 0);
		else if (!sends && state != retried.state) /* relaxed: of two that wait one sets the time */
			(void)weir_cas_u32_relaxed_dev(&record->state, retried.state, state);
		/* acquire and release: between what the last command did and the next */
		else if (sends)
			sends = weir_cas_u64_acq_rel_dev(&event->word, word, WEIR_EVENT_STARTED) == word;
		retried.request.status = state & WEIR_RETRY_COUNTS;
	}
	weir_reconverge();
	submitted = weir_queues_try_submit(wave, sends, retried.queue, retried.request, weir_age_none());
	if (sends && submitted)
		/* relaxed: the host reads a snapshot */
		(void)weir_add_u64_relaxed_dev(&weir_at(retried.queue, struct weir_queue, 0)->retried, 1);
	else if (sends)
		/* event.E0: the record is there, unless others took its place */
		weir_store_u64_release_dev(&event->word, word);
	weir_reconverge();
	return retries && state != 0 ? 0 : word;
}

/*
 * The beginning of a wait by a lane that is a wave of its own: some tries to reap, for an event of
 * its own. Return: the event's word; 0: to be waited for.
 */
WEIR_FN u64 weir_wait_alone(WEIR_GLOBAL struct weir_disk *disk, WEIR_GLOBAL struct weir_event *event)
{
	WEIR_GLOBAL struct weir_queue *queue = weir_disk_queue(disk, weir_wave());
	u32 others = WEIR_ONLY_SERVICE || (disk->flags & (WEIR_DISK_SERVICE | WEIR_DISK_PLACED)) ||
		     queue->staging != 0 || queue->doorbell_kind == WEIR_DOORBELL_NIC;

	for (u32 i = 0; !others && i < WEIR_ALONE_TRIES; i++) {
		struct weir_alone alone = weir_alone_reap(queue);

		if (alone.found == WEIR_ALONE_DONE && alone.word == WEIR_ADDR(event))
			return weir_event_word(WEIR_OK, queue->path);
		others = alone.found == WEIR_ALONE_OTHERS;
	}
	return 0;
}

/* weir_wait(), until clock value @deadline. Return: the event's word, or one without WEIR_EVENT_DONE that has
 * only a status. */
WEIR_FN u64 weir_wait_word(WEIR_GLOBAL struct weir_disk *disk, WEIR_GLOBAL struct weir_event *event,
			   u64 deadline)
{
	u64 wave = weir_active(), word = 0;
	u32 done = 0;

	if (weir_popcount(wave) == 1) {
		word = weir_wait_alone(disk, event);
		done = word != 0;
	}
	WEIR_WAIT_LOOP(wave, !done, iteration) {
		if (!done)
			word = weir_event_peek(event);
		word = weir_event_retry(wave, event, word, deadline);
		if (!done && word == 0) {
			word = weir_disk_over(disk);
			if (word == WEIR_OK && weir_expired(deadline, iteration))
				word = WEIR_E_TIMEOUT;
		}
		done = word != 0;
		weir_wait_help(wave, !done, disk, iteration, iteration);
	}
	return word;
}

/**
 * weir_wait() - wait until an event is done
 * @disk: storage the request went to
 * @event: the event
 * @timeout_us: 0 for the storage's timeout, WEIR_FOREVER for none
 *
 * Acquire: what the request wrote is visible afterwards.
 *
 * A request that failed and is worth another try is submitted again, as often as the storage's retries say,
 * each time after the delay that the controller asks for (weir_status_is_retryable(), core/queue/retry.h); a
 * read or a flush also if it was ended without an answer (weir_status_retryable()).
 *
 * Return: the request's status, of the last try; WEIR_E_TIMEOUT if it has not ended in time, in
 * which case event and buffer remain the controller's.
 */
WEIR_FN weir_status weir_wait(WEIR_GLOBAL struct weir_disk *disk, WEIR_GLOBAL struct weir_event *event,
			      u64 timeout_us)
{
	return weir_event_status(weir_wait_word(disk, event, weir_deadline(disk, timeout_us)));
}

/* weir_retry() of a request with @opcode. */
WEIR_FN u32 weir_request_retries(WEIR_GLOBAL struct weir_disk *disk, u32 opcode, weir_status status,
				 u32 state, u64 deadline)
{
	if (opcode == NVME_OPCODE_WRITE && !weir_status_is_retryable(status))
		return 0;
	return weir_retry(disk, status, state, deadline);
}

/*
 * A request ended with @status, which is worth another try: submit it again, as often as the storage allows,
 * in the time that is left.
 *
 * Return: how it ended at last; WEIR_E_TIMEOUT if the last try has not.
 */
WEIR_FN weir_status weir_request_retry(WEIR_GLOBAL struct weir_disk *disk, struct weir_request request,
				       weir_status status, u64 deadline)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(request.target, struct weir_event, 0);
	u64 wave = weir_active();
	u32 state = weir_request_retries(disk, request.opcode, status, 0, deadline), done = state == 0,
	    begun = 0, sent = 0;

	request.status = 1; /* for core/volume/place.h: not the first try */
	WEIR_WAIT_LOOP(wave, !done, iteration) {
		weir_status dead = weir_disk_over(disk);
		u64 word = 0;
		u32 filled;

		if (!done && !begun && !weir_retry_now(state))
			state = weir_retry(disk, status, state, deadline);
		if (!done && !begun && weir_retry_now(state)) {
			(void)weir_event_start(event); /* its last command has ended */
			begun = 1;
		}
		weir_reconverge();
		filled =
			weir_disk_try_submit(wave, !done && begun && !sent && dead == WEIR_OK, disk, request);
		sent |= filled;
		if (filled)
			weir_retry_count(disk);
		if (!done && sent)
			word = weir_event_test(event);
		if (word) {
			status = weir_event_status(word);
			begun = 0;
			sent = 0;
			state = weir_request_retries(disk, request.opcode, status, state, deadline);
			done = state == 0;
			if (done && (word = weir_event_peek(event)) & WEIR_EVENT_RETRY)
				(void)weir_retry_end(event, word, 0);
		} else if (!done && (dead != WEIR_OK || weir_expired(deadline, iteration))) {
			status = dead != WEIR_OK ? dead : sent ? (u32)WEIR_E_TIMEOUT : status;
			if (!sent)
				weir_event_refuse(event, status);
			done = 1;
		}
		weir_wait_help(wave, !done, disk, iteration, iteration);
	}
	return status;
}

/**
 * weir_block_wait() - weir_wait() for whoever started the request, who can start it again whatever became of
 * its record
 * @disk: as for weir_block_async(), like all that follow
 * @opcode: of the request
 * @lba: of the request
 * @blocks: of the request
 * @buffer: of the request
 * @event: of the request; nobody else may wait for it
 * @timeout_us: of all tries together; 0 for the storage's timeout, WEIR_FOREVER for none
 *
 * weir_wait() finds in a record what the request was, and there is one for each entry of a queue pair. Where
 * as many other requests failed since, this lane still knows; how often it was tried it does not, so it
 * begins to count anew, once. Of a write the data must not change until this returns.
 *
 * Return: as weir_wait(), of the last try.
 */
WEIR_FN weir_status weir_block_wait(WEIR_GLOBAL struct weir_disk *disk, u32 opcode, u64 lba, u32 blocks,
				    weir_addr buffer, WEIR_GLOBAL struct weir_event *event, u64 timeout_us)
{
	u64 deadline = weir_deadline(disk, timeout_us);
	u64 word = weir_wait_word(disk, event, deadline);
	weir_status status = weir_event_status(word);

	if (word & WEIR_EVENT_LOST)
		status = weir_request_retry(disk, weir_block_request(opcode, lba, blocks, buffer, event),
					    status, deadline);
	weir_reconverge();
	return status;
}

/** weir_read() - weir_read_async() and weir_block_wait() */
WEIR_FN weir_status weir_read(WEIR_GLOBAL struct weir_disk *disk, u64 lba, u32 blocks, weir_addr buffer,
			      WEIR_GLOBAL struct weir_event *event, u64 timeout_us)
{
	weir_status status = weir_read_async(disk, lba, blocks, buffer, event);

	return status == WEIR_OK
		       ? weir_block_wait(disk, NVME_OPCODE_READ, lba, blocks, buffer, event, timeout_us)
		       : status;
}

/** weir_write() - weir_write_async() and weir_block_wait() */
WEIR_FN weir_status weir_write(WEIR_GLOBAL struct weir_disk *disk, u64 lba, u32 blocks, weir_addr buffer,
			       WEIR_GLOBAL struct weir_event *event, u64 timeout_us)
{
	weir_status status = weir_write_async(disk, lba, blocks, buffer, event);

	return status == WEIR_OK
		       ? weir_block_wait(disk, NVME_OPCODE_WRITE, lba, blocks, buffer, event, timeout_us)
		       : status;
}

/** weir_flush() - weir_flush_async() and weir_block_wait() */
WEIR_FN weir_status weir_flush(WEIR_GLOBAL struct weir_disk *disk, WEIR_GLOBAL struct weir_event *event,
			       u64 timeout_us)
{
	weir_status status = weir_flush_async(disk, event);

	return status == WEIR_OK ? weir_block_wait(disk, NVME_OPCODE_FLUSH, 0, 0, 0, event, timeout_us)
				 : status;
}

#endif
