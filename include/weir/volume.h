/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume.h: batched I/O for lanes, in four steps: submit, commit, poll, dispatch.
 *
 * Owns: a slot for each lane of a wave, with its request, and a bitmap of the slots that are taken. The queue
 * pair is disk.h's: a batch is another way to use one, and any storage will do. What the four steps are for:
 * a wave submits some commands and rings once, goes on computing, and learns later which of them have ended,
 * without a wait for any of them. Source: GNStor, section 4.4.
 *
 * Lanes of a wave that call one of these functions together do so each with what is its own; those without a
 * request say so, and help. Lanes that have parted may call apart: each knows its own slot alone. A batch is
 * one wave's.
 */
#ifndef WEIR_VOLUME_H
#define WEIR_VOLUME_H

#include <weir/core/volume/allocator.h>
#include <weir/disk.h>

enum { WEIR_BATCH_SLOTS = 64 };

/** struct weir_batch_slot - a lane's request; the event first, which completes it */
struct weir_batch_slot {
	struct weir_event event;
	weir_addr buffer;
	u64 argument;
	u32 callback;
	u32 blocks;
};

/**
 * struct weir_batch - the requests of one wave
 * @taken: bit for each lane whose request has not been dispatched
 * @filled: not 0: commands were submitted that may not have been announced
 */
struct weir_batch {
	weir_shared_u64 taken;
	weir_shared_u64 filled;
	u64 reserved[6];
	struct weir_batch_slot slots[WEIR_BATCH_SLOTS];
};

/**
 * struct weir_batches - storage, buffers and batches of a kernel's waves, in its arguments
 * @disk: the storage, such as a volume
 * @pool: struct weir_pool for buffers; 0: none
 * @batches: struct weir_batch[waves], zeroed
 * @waves: of the launch, at most
 */
struct weir_batches {
	struct weir_disk disk;
	weir_addr pool;
	weir_addr batches;
	u64 waves;
};

WEIR_ASSERT_SIZE(struct weir_batch_slot, 32);
WEIR_ASSERT_SIZE(struct weir_batch, 64 + WEIR_BATCH_SLOTS * 32);

/**
 * struct weir_io_request - what a lane wants of the storage
 * @opcode: NVME_OPCODE_READ, NVME_OPCODE_WRITE or NVME_OPCODE_FLUSH
 * @blocks: length, up to the storage's transfer limit; 0 for a flush
 * @lba: first block
 * @buffer: device address in memory from weir_alloc() or a pool, 4-byte aligned
 * @callback: number of what is to be done when it has ended: the caller's own
 * @argument: for that
 */
struct weir_io_request {
	u32 opcode;
	u32 blocks;
	u64 lba;
	weir_addr buffer;
	u64 argument;
	u32 callback;
};

/**
 * struct weir_io_ended - a request that has ended, as weir_batch_dispatch() gives it to the lane
 * @ended: not 0: the rest means something
 * @status: how
 * @callback, @argument, @buffer, @blocks: as they were submitted
 */
struct weir_io_ended {
	u32 ended;
	weir_status status;
	u32 callback;
	u32 blocks;
	u64 argument;
	weir_addr buffer;
};

/** weir_batch_of() - the batch of the wave that calls */
WEIR_FN WEIR_GLOBAL struct weir_batch *weir_batch_of(WEIR_GLOBAL struct weir_batches *batches)
{
	return weir_at(batches->batches, struct weir_batch, weir_wave() % batches->waves);
}

WEIR_FN WEIR_GLOBAL struct weir_batch_slot *weir_batch_slot(WEIR_GLOBAL struct weir_batch *batch)
{
	return &batch->slots[weir_lane() % WEIR_BATCH_SLOTS];
}

/*
 * Which of the lanes @wave have a slot that is taken, the same mask in all of them. Relaxed: each looks at
 * its own bit, whose last change it was part of (weir_wave_sync()); another lane might see an older one.
 */
WEIR_FN u64 weir_batch_taken(WEIR_GLOBAL struct weir_batch *batch, u64 wave)
{
	return weir_ballot(wave, weir_is_in(weir_load_u64_relaxed_dev(&batch->taken)));
}

/** weir_batch_pending() - of the lanes that call, those whose requests were not dispatched yet, as a mask */
WEIR_FN u64 weir_batch_pending(WEIR_GLOBAL struct weir_batches *batches)
{
	return weir_batch_taken(weir_batch_of(batches), weir_active());
}

WEIR_FN struct weir_request weir_batch_request(struct weir_io_request wanted,
					       WEIR_GLOBAL struct weir_batch_slot *slot)
{
	return weir_block_request(wanted.opcode, wanted.lba, wanted.blocks, wanted.buffer, &slot->event);
}

/* weir_batch_submit() of the lanes @wave, which have come together. */
WEIR_FN u32 weir_batch_submit_by(u64 wave, WEIR_GLOBAL struct weir_batches *batches, u32 want,
				 struct weir_io_request request)
{
	u64 taken, takers, reserved;
	WEIR_GLOBAL struct weir_batch *batch = weir_batch_of(batches);
	WEIR_GLOBAL struct weir_batch_slot *slot = weir_batch_slot(batch);
	WEIR_GLOBAL struct weir_queue *queue = weir_disk_queue(&batches->disk, weir_wave());
	struct weir_request command = weir_batch_request(request, slot);
	weir_status status = WEIR_OK;
	u32 served, rank, refused;

	taken = weir_batch_taken(batch, wave);
	want = want && !weir_is_in(taken);
	if (want)
		status = weir_disk_check(&batches->disk, command);
	if (want && status == WEIR_OK)
		status = weir_disk_dead(&batches->disk);
	refused = want && status != WEIR_OK;
	if (want)
		weir_event_reset(&slot->event);
	takers = weir_ballot(wave, want && !refused);
	weir_reconverge();
	reserved = takers ? weir_sq_try_reserve_by(queue, wave, takers, weir_age_none()) : 0;
	rank = weir_rank(takers, weir_lane());
	served = weir_is_in(takers) && rank < ((u32)reserved & 0xff);
	if (reserved && queue->staging)
		weir_sq_stage(queue, wave, (reserved >> 8) - 1 + rank, served, command);
	if (served || refused) {
		slot->buffer = request.buffer;
		slot->argument = request.argument;
		slot->callback = request.callback;
		slot->blocks = request.blocks;
	}
	if (refused)
		weir_event_refuse(&slot->event, status);
	if (served)
		weir_sq_fill(queue, (reserved >> 8) - 1 + rank, command);
	weir_reconverge();
	takers = weir_ballot(wave, served || refused);
	weir_wave_sync(wave); /* every lane's sq.S1 before batch.B0 */
	if (weir_elected(wave)) {
		/* relaxed: each bit is one lane's */
		if (takers)
			(void)weir_or_u64_relaxed_dev(&batch->taken, takers);
		/* batch.B0: pairs with batch.B1: the slots that whoever commits looks at are filled */
		if (reserved)
			(void)weir_or_u64_acq_rel_dev(&batch->filled, 1);
	}
	weir_wave_sync(wave);
	return served || refused;
}

/**
 * weir_batch_submit() - first step: put a command of each lane that has one into the ring
 * @batches: storage and batches
 * @want: this lane has a request; of a lane whose last one was not dispatched none is taken
 * @request: it
 *
 * Nobody waits, and the controller learns nothing of it yet (though another wave that rings announces what it
 * finds). Data of a write must not change from here on. A request that no storage could carry out is taken,
 * and ends with its error.
 *
 * Return: 1 in lanes whose request was taken; 0: it has none, the slot is taken, or the ring is full.
 */
WEIR_FN u32 weir_batch_submit(WEIR_GLOBAL struct weir_batches *batches, u32 want,
			      struct weir_io_request request)
{
	return weir_batch_submit_by(weir_active(), batches, want, request);
}

/* weir_batch_commit() of the lanes @wave, which have come together. */
WEIR_FN void weir_batch_commit_by(u64 wave, WEIR_GLOBAL struct weir_batches *batches)
{
	u64 filled = 0;
	WEIR_GLOBAL struct weir_batch *batch = weir_batch_of(batches);

	/* batch.B1: pairs with batch.B0 */
	if (weir_elected(wave) && weir_load_u64_relaxed_dev(&batch->filled) != 0)
		filled = weir_exchange_u64_acq_rel_dev(&batch->filled, 0);
	if (weir_broadcast_u64(wave, filled) != 0) /* the same in all lanes */
		weir_sq_commit(weir_disk_queue(&batches->disk, weir_wave()), wave, 0, 0);
}

/**
 * weir_batch_commit() - second step: announce what the wave has submitted, by one doorbell
 * @batches: storage and batches
 *
 * Nobody waits. Where another wave is just ringing, that wave's doorbell is for both. Without anything new it
 * does nothing.
 */
WEIR_FN void weir_batch_commit(WEIR_GLOBAL struct weir_batches *batches)
{
	weir_batch_commit_by(weir_active(), batches);
}

/* weir_batch_poll() of the lanes @wave, which have come together. */
WEIR_FN u64 weir_batch_poll_by(u64 wave, WEIR_GLOBAL struct weir_batches *batches)
{
	u64 word = 0, ended, taken;
	WEIR_GLOBAL struct weir_batch *batch = weir_batch_of(batches);
	WEIR_GLOBAL struct weir_event *event = &weir_batch_slot(batch)->event;
	u32 mine;

	taken = weir_batch_taken(batch, wave);
	mine = weir_is_in(taken);
	(void)weir_disk_help(wave, wave, &batches->disk, 0); /* a full ring may be full of others' */
	weir_reconverge();
	if (mine)
		word = weir_event_peek(event);
	word = weir_event_retry(wave, event, word, WEIR_FOREVER);
	if (mine && word == 0 && weir_disk_over(&batches->disk) != WEIR_OK)
		word = 1;
	ended = weir_ballot(wave, mine && word != 0);
	weir_reconverge();
	return ended;
}

/**
 * weir_batch_poll() - third step: see which requests have ended
 * @batches: storage and batches
 *
 * The wave takes out of the completion ring what is there, for everybody; nobody waits. A request that failed
 * and is worth another try is submitted again (weir_wait()). Acquire: what the requests wrote is visible.
 *
 * Return: the slots of the lanes that call whose requests have ended and were not dispatched, the same mask
 * in all of these lanes.
 */
WEIR_FN u64 weir_batch_poll(WEIR_GLOBAL struct weir_batches *batches)
{
	return weir_batch_poll_by(weir_active(), batches);
}

/* weir_batch_dispatch() of the lanes @wave, which have come together. */
WEIR_FN struct weir_io_ended weir_batch_dispatch_by(u64 wave, WEIR_GLOBAL struct weir_batches *batches,
						    u64 ended)
{
	WEIR_GLOBAL struct weir_batch *batch = weir_batch_of(batches);
	WEIR_GLOBAL struct weir_batch_slot *slot = weir_batch_slot(batch);
	struct weir_io_ended mine;

	ended = weir_ballot(wave, weir_is_in(ended)); /* lanes may have come together since they polled */
	mine.ended = weir_is_in(ended);
	mine.status = WEIR_OK;
	mine.callback = 0;
	mine.blocks = 0;
	mine.argument = 0;
	mine.buffer = 0;
	if (mine.ended) {
		u64 word = weir_event_test(&slot->event);

		mine.status = word ? weir_event_status(word) : weir_disk_over(&batches->disk);
		mine.callback = slot->callback;
		mine.blocks = slot->blocks;
		mine.argument = slot->argument;
		mine.buffer = slot->buffer;
	}
	weir_reconverge();
	if (weir_elected(wave) && ended) /* relaxed: each bit is one lane's */
		(void)weir_and_u64_relaxed_dev(&batch->taken, ~ended);
	weir_wave_sync(wave);
	return mine;
}

/**
 * weir_batch_dispatch() - fourth step: each lane whose request has ended gets it back, and its slot is free
 * @batches: storage and batches
 * @ended: from weir_batch_poll()
 *
 * What is to be done with it is the caller's: a switch over the number that it submitted. A loop that polls
 * backs off by weir_relax() where nothing has ended, longer from time to time: weir_relax(vain++).
 */
WEIR_FN struct weir_io_ended weir_batch_dispatch(WEIR_GLOBAL struct weir_batches *batches, u64 ended)
{
	return weir_batch_dispatch_by(weir_active(), batches, ended);
}

/**
 * weir_batch_wait() - commit, then poll until a request of the wave has ended
 * @batches: storage and batches
 * @timeout_us: 0 for the storage's timeout, WEIR_FOREVER for none; the elected lane's is meant
 *
 * Return: as weir_batch_poll(); 0: nothing is pending, or nothing has ended in time.
 */
WEIR_FN u64 weir_batch_wait(WEIR_GLOBAL struct weir_batches *batches, u64 timeout_us)
{
	u64 wave = weir_active(), ended = 0;
	u64 deadline = weir_broadcast_u64(wave, weir_deadline(&batches->disk, timeout_us));
	u32 over = 0;

	weir_batch_commit_by(wave, batches);
	for (u32 iteration = 0; ended == 0 && !over; iteration++) {
		weir_reconverge();
		ended = weir_batch_poll_by(wave, batches);
		over = (u32)weir_broadcast_u64(wave, weir_expired(deadline, iteration));
		over |= weir_batch_taken(weir_batch_of(batches), wave) == 0;
		if (ended == 0 && !over)
			weir_relax(iteration);
	}
	return ended;
}

/**
 * weir_batch_io() - all four steps: each lane's request from its submission to its end
 * @batches: storage and batches; the wave's batch is empty
 * @want: this lane has a request
 * @request: it; its callback means nothing
 * @timeout_us: 0 for the storage's timeout, WEIR_FOREVER for none; the elected lane's is meant
 *
 * Return: how it ended, WEIR_OK without one; WEIR_E_TIMEOUT: it has not, and its buffer remains the
 * controller's until a later weir_batch_dispatch() gives it; WEIR_E_QUEUE_FULL: it was never submitted.
 */
WEIR_FN weir_status weir_batch_io(WEIR_GLOBAL struct weir_batches *batches, u32 want,
				  struct weir_io_request request, u64 timeout_us)
{
	u64 wave = weir_active();
	u64 deadline = weir_broadcast_u64(wave, weir_deadline(&batches->disk, timeout_us));
	weir_status status = want ? (u32)WEIR_E_TIMEOUT : (u32)WEIR_OK;
	u32 submitted = !want, done = !want, over = 0;

	for (u32 iteration = 0; weir_ballot(wave, !done) != 0 && !over; iteration++) {
		struct weir_io_ended ended;
		u64 mask;

		weir_reconverge();
		submitted |= weir_batch_submit_by(wave, batches, !submitted, request);
		weir_batch_commit_by(wave, batches);
		mask = weir_batch_poll_by(wave, batches);
		if (mask == 0) { /* the same in all lanes */
			over = (u32)weir_broadcast_u64(wave, weir_expired(deadline, iteration));
			weir_relax(iteration);
			continue;
		}
		ended = weir_batch_dispatch_by(wave, batches, mask);
		if (ended.ended) {
			status = ended.status;
			done = 1;
		}
		weir_reconverge();
	}
	return done || submitted ? status : (u32)WEIR_E_QUEUE_FULL;
}

#endif
