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
 * every turn of it helps others (DESIGN section 3, the six rules).
 */
#ifndef WEIR_DISK_H
#define WEIR_DISK_H

#include <weir/core/cq.h>
#include <weir/core/fault.h>
#include <weir/core/retry.h>
#include <weir/core/sq.h>

/* Turns between two looks at the clock. */
enum { WEIR_CLOCK_TURNS = 16 };

/*
 * A kernel built with WEIR_SERVICE_ONLY has no code to reap: it needs fewer registers, and a
 * context with a service. Its requests are refused where there is none.
 */
#ifdef WEIR_SERVICE_ONLY
#define WEIR_ONLY_SERVICE 1
#else
#define WEIR_ONLY_SERVICE 0
#endif

/** WEIR_FOREVER - a timeout that never passes; prefer the storage's own (0) */
#define WEIR_FOREVER (~(u64)0)

WEIR_FN WEIR_GLOBAL struct weir_queue *weir_disk_queue(WEIR_GLOBAL struct weir_disk *disk, u64 choice)
{
	return weir_at(disk->queues, struct weir_queue, (u32)choice % disk->queue_count); /* 64 bits: a call */
}

/* WEIR_DISK_WINDOW: all of the data is where the controller is to reach. */
WEIR_FN u32 weir_disk_reaches(WEIR_GLOBAL struct weir_disk *disk, struct weir_request request)
{
	WEIR_GLOBAL struct weir_queue *queue = weir_disk_queue(disk, 0); /* the same in all */
	u64 offset = request.buffer - queue->window, bytes = (u64)request.blocks << disk->block_log2;

	return offset < queue->window_bytes && bytes <= queue->window_bytes - offset;
}

/** weir_deadline() - clock value at which @timeout_us from now (0: the storage's) has passed */
WEIR_FN u64 weir_deadline(WEIR_GLOBAL struct weir_disk *disk, u64 timeout_us)
{
	if (timeout_us == WEIR_FOREVER)
		return WEIR_FOREVER;
	return weir_clock_ns() + (timeout_us ? timeout_us * 1000 : disk->timeout_ns);
}

WEIR_FN u32 weir_expired(u64 deadline, u32 turn)
{
	return turn % WEIR_CLOCK_TURNS == WEIR_CLOCK_TURNS - 1 && weir_clock_ns() > deadline;
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

/**
 * weir_disk_try_submit() - submit for those lanes of @wave that want it
 * @wave: lanes calling together
 * @want: this lane has a request
 * @disk: this lane's storage
 * @request: this lane's request, already checked
 *
 * One pass, no waiting. One queue pair after the other: all lanes of the wave go along for each, so that none waits
 * for others that have parted from it (docs/porting.md).
 *
 * Return: 1 if this lane's request was submitted.
 */
WEIR_FN u32 weir_disk_try_submit(u64 wave, u32 want, WEIR_GLOBAL struct weir_disk *disk,
				 struct weir_request request)
{
	u64 mine = WEIR_ADDR(weir_disk_queue(disk, weir_wave()));
	u64 left = weir_ballot(wave, want);
	u32 submitted = 0;

	while (left != 0) { /* it is 0 in most turns of a wait */
		u64 address = weir_shuffle_u64(wave, mine, weir_lowest_bit(left));
		u64 takers = weir_ballot(wave, want && mine == address);

		submitted |= weir_sq_try_submit(weir_at(address, struct weir_queue, 0), wave, takers, request);
		left &= ~takers;
		weir_converge();
	}
	return submitted;
}

/**
 * weir_disk_help() - reap one queue pair for everybody, all lanes of @wave together
 * @wave: lanes calling together
 * @needy: lanes of it that wait for something
 * @disk: each lane's storage; the needy take turns
 * @turn: counts the calls of one wait
 *
 * Mostly the wave's own queue pair; every fourth turn another one, so that a
 * completion is found even if its submitter left long ago.
 *
 * Where a service reaps, there is nothing to do.
 *
 * Return: completions handled, the same value in all lanes.
 */
WEIR_FN u32 weir_disk_help(u64 wave, u64 needy, WEIR_GLOBAL struct weir_disk *disk, u32 turn)
{
	u32 skip = WEIR_ONLY_SERVICE ? 0 : turn % weir_popcount(needy);
	u64 chosen = needy;
	WEIR_GLOBAL struct weir_queue *queue;

	for (u32 i = 0; i < skip; i++)
		chosen &= chosen - 1;
	disk = weir_at(weir_shuffle_u64(wave, WEIR_ADDR(disk), weir_lowest_bit(chosen)), struct weir_disk, 0);
	if (WEIR_ONLY_SERVICE || (disk->flags & WEIR_DISK_SERVICE))
		return 0;
	queue = weir_disk_queue(disk, weir_wave() + ((turn & 3) == 3 ? turn >> 2 : 0));
	return weir_cq_reap(queue, wave);
}

/** weir_disk_dead() - status of a storage whose queues are gone, 0 while it lives */
WEIR_FN weir_status weir_disk_dead(WEIR_GLOBAL struct weir_disk *disk)
{
	/* relaxed: a flag that only ever rises; nothing is read on its strength */
	return weir_load_u32_relaxed_sys(&weir_disk_queue(disk, weir_wave())->dead);
}

/*
 * Submit one checked request per wanting lane, waiting for slots as long as the
 * storage's timeout allows.
 */
WEIR_FN weir_status weir_disk_submit(WEIR_GLOBAL struct weir_disk *disk, struct weir_request request)
{
	u64 wave = weir_active();
	u64 deadline = weir_deadline(disk, 0);
	weir_status status = weir_disk_check(disk, request);
	u32 done = status != WEIR_OK;
	u64 needy;

	for (u32 turn = 0; (needy = weir_ballot(wave, !done)) != 0; turn++) {
		weir_converge();
		if (!done && (status = weir_disk_dead(disk)) != WEIR_OK)
			done = 1;
		done |= weir_disk_try_submit(wave, !done, disk, request);
		if (!done && weir_expired(deadline, turn)) {
			status = WEIR_E_QUEUE_FULL;
			done = 1;
		}
		needy = weir_ballot(wave, !done);
		if (needy && weir_disk_help(wave, needy, disk, turn) == 0)
			weir_relax(turn);
	}
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
 * WEIR_E_READ_ONLY, WEIR_E_WINDOW, WEIR_E_QUEUE_FULL; in lanes built with WEIR_DEBUG also WEIR_E_EVENT, of which
 * weir_sync() tells the block. But for WEIR_E_EVENT the event is done, with that status: a wait for it returns at once.
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
WEIR_FN weir_status weir_read_async(WEIR_GLOBAL struct weir_disk *disk, u64 lba, u32 blocks,
				    weir_addr buffer, WEIR_GLOBAL struct weir_event *event)
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

/**
 * weir_wait() - wait until an event is done
 * @disk: storage the request went to
 * @event: the event
 * @timeout_us: 0 for the storage's timeout, WEIR_FOREVER for none
 *
 * Acquire: what the request wrote is visible afterwards.
 *
 * Return: the request's status; WEIR_E_TIMEOUT if it has not ended in time, in
 * which case event and buffer remain the controller's.
 */
WEIR_FN weir_status weir_wait(WEIR_GLOBAL struct weir_disk *disk, WEIR_GLOBAL struct weir_event *event,
			      u64 timeout_us)
{
	u64 wave = weir_active();
	u64 deadline = weir_deadline(disk, timeout_us);
	weir_status status = WEIR_OK;
	u32 done = 0;
	u64 needy;

	for (u32 turn = 0; (needy = weir_ballot(wave, !done)) != 0; turn++) {
		weir_converge();
		if (!done) {
			u64 word = weir_event_test(event);

			done = 1;
			if (word)
				status = weir_event_status(word);
			else if ((status = weir_disk_dead(disk)) == WEIR_OK && weir_expired(deadline, turn))
				status = WEIR_E_TIMEOUT;
			else
				done = status != WEIR_OK;
		}
		needy = weir_ballot(wave, !done);
		if (needy && weir_disk_help(wave, needy, disk, turn) == 0)
			weir_relax(turn);
	}
	return status;
}

/*
 * A request ended with @status, which is worth another try: submit it again, as often as the storage allows, in
 * the time that is left.
 *
 * Return: how it ended at last; WEIR_E_TIMEOUT if the last try has not.
 */
WEIR_FN weir_status weir_request_again(WEIR_GLOBAL struct weir_disk *disk, struct weir_request request,
					 weir_status status, u64 deadline)
{
	WEIR_GLOBAL struct weir_event *event = weir_at(request.target, struct weir_event, 0);
	u64 wave = weir_active(), needy;
	u32 state = weir_retry(disk, status, 0, deadline), done = state == 0, begun = 0, sent = 0;

	for (u32 turn = 0; (needy = weir_ballot(wave, !done)) != 0; turn++) {
		weir_status dead = weir_disk_dead(disk);
		u64 word = 0;
		u32 filled;

		weir_converge();
		if (!done && !begun && !weir_retry_now(state))
			state = weir_retry(disk, status, state, deadline);
		if (!done && !begun && weir_retry_now(state)) {
			(void)weir_event_start(event); /* its last command has ended */
			begun = 1;
		}
		weir_converge();
		filled = weir_disk_try_submit(wave, !done && begun && !sent, disk, request);
		sent |= filled;
		if (filled)
			weir_retry_count(disk);
		if (!done && sent)
			word = weir_event_test(event);
		if (word) {
			status = weir_event_status(word);
			begun = 0;
			sent = 0;
			state = weir_retry(disk, status, state, deadline);
			done = state == 0;
		} else if (!done && (dead != WEIR_OK || weir_expired(deadline, turn))) {
			status = dead != WEIR_OK ? dead : sent ? (u32)WEIR_E_TIMEOUT : status;
			if (!sent)
				weir_event_refuse(event, status);
			done = 1;
		}
		weir_converge();
		needy = weir_ballot(wave, !done);
		if (needy && weir_disk_help(wave, needy, disk, turn) == 0)
			weir_relax(turn);
	}
	return status;
}

/**
 * weir_block_wait() - weir_wait() for whoever started the request: one that the controller says is worth it is started again
 * @disk: as for weir_block_async(), like all that follow
 * @opcode: of the request
 * @lba: of the request
 * @blocks: of the request
 * @buffer: of the request
 * @event: of the request; nobody else may wait for it
 * @timeout_us: of all tries together; 0 for the storage's timeout, WEIR_FOREVER for none
 *
 * As often as the storage's retries say, each after the time that the controller asks for
 * (weir_status_again(), core/retry.h). Of a write the data must not change until this returns.
 *
 * Return: as weir_wait(), of the last try.
 */
WEIR_FN weir_status weir_block_wait(WEIR_GLOBAL struct weir_disk *disk, u32 opcode, u64 lba, u32 blocks,
				    weir_addr buffer, WEIR_GLOBAL struct weir_event *event, u64 timeout_us)
{
	u64 deadline = weir_deadline(disk, timeout_us);
	weir_status status = weir_wait(disk, event, timeout_us);

	if (weir_status_again(status))
		status = weir_request_again(disk, weir_block_request(opcode, lba, blocks, buffer, event), status, deadline);
	weir_converge();
	return status;
}

/** weir_read() - weir_read_async() and weir_block_wait() */
WEIR_FN weir_status weir_read(WEIR_GLOBAL struct weir_disk *disk, u64 lba, u32 blocks, weir_addr buffer,
			      WEIR_GLOBAL struct weir_event *event, u64 timeout_us)
{
	weir_status status = weir_read_async(disk, lba, blocks, buffer, event);

	return status == WEIR_OK ? weir_block_wait(disk, NVME_OPCODE_READ, lba, blocks, buffer, event, timeout_us) : status;
}

/** weir_write() - weir_write_async() and weir_block_wait() */
WEIR_FN weir_status weir_write(WEIR_GLOBAL struct weir_disk *disk, u64 lba, u32 blocks, weir_addr buffer,
			       WEIR_GLOBAL struct weir_event *event, u64 timeout_us)
{
	weir_status status = weir_write_async(disk, lba, blocks, buffer, event);

	return status == WEIR_OK ? weir_block_wait(disk, NVME_OPCODE_WRITE, lba, blocks, buffer, event, timeout_us) : status;
}

/** weir_flush() - weir_flush_async() and weir_block_wait() */
WEIR_FN weir_status weir_flush(WEIR_GLOBAL struct weir_disk *disk, WEIR_GLOBAL struct weir_event *event, u64 timeout_us)
{
	weir_status status = weir_flush_async(disk, event);

	return status == WEIR_OK ? weir_block_wait(disk, NVME_OPCODE_FLUSH, 0, 0, 0, event, timeout_us) : status;
}

#endif
