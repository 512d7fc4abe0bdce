/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.h: testing an event, and waiting for one or all of several.
 *
 * Owns: which of several events a lane is given. What disk.h says of weir_wait() holds
 * here, too: any subset of a wave's lanes, different arguments in each, a deadline, and
 * every iteration of a wait helps others. A request occupies nothing while nobody waits for
 * it; so a lane may look at its events as late, and as rarely, as it likes.
 *
 * Events of one call may belong to several storages: those of a table of disks.
 */
#ifndef WEIR_WAIT_H
#define WEIR_WAIT_H

#include <weir/disk.h>

/**
 * struct weir_disks - the storages whose queue pairs a wait helps to reap
 * @first: struct weir_disk[count]
 * @count: 1 at least; the first one's timeout is meant where none is given
 */
struct weir_disks {
	weir_addr first;
	u32 count;
};

/** weir_disks_one() - a table of one storage */
WEIR_FN struct weir_disks weir_disks_one(WEIR_GLOBAL struct weir_disk *disk)
{
	struct weir_disks disks;

	disks.first = WEIR_ADDR(disk);
	disks.count = 1;
	return disks;
}

/* Whom to help in turn @iteration: all of them by and by, out of step with weir_disk_help()'s choice of a
 * queue. */
WEIR_FN WEIR_GLOBAL struct weir_disk *weir_disks_pick(struct weir_disks disks, u32 iteration)
{
	return weir_at(disks.first, struct weir_disk,
		       disks.count == 1 ? 0 : ((iteration * 0x9e3779b1u) >> 16) % disks.count);
}

/*
 * An event's word; for a storage whose queues are gone what ends its wait; 0 while pending.
 * Of several storages nobody knows which one an event waits for: there the deadline ends it.
 */
WEIR_FN u64 weir_event_poll(struct weir_disks disks, WEIR_GLOBAL struct weir_event *event)
{
	u64 word = weir_event_peek(event);
	weir_status dead = WEIR_OK;

	if (word == 0 && disks.count == 1)
		dead = weir_disk_over(weir_at(disks.first, struct weir_disk, 0));
	return dead == WEIR_OK ? word : WEIR_EVENT_DONE | dead;
}

/* weir_test(), with the storages that may have the request. */
WEIR_FN u64 weir_disks_test(struct weir_disks disks, WEIR_GLOBAL struct weir_event *event)
{
	u64 wave = weir_active();
	/* calls of a program's loop have no number; the clock tells them apart */
	u32 iteration = (u32)weir_broadcast_u64(wave, weir_clock_ns() >> 10);
	WEIR_GLOBAL struct weir_disk *disk = weir_disks_pick(disks, iteration);
	u64 word = weir_event_retry(wave, event, weir_event_poll(disks, event), WEIR_FOREVER);
	u64 needy = weir_ballot(wave, word == 0);

	if (needy && weir_disk_help(wave, needy, disk, iteration) != 0)
		word = weir_event_retry(wave, event, word ? word : weir_event_poll(disks, event),
					WEIR_FOREVER);
	weir_reconverge();
	return word;
}

/**
 * weir_test() - look at an event, and help reap if it is pending
 * @disk: storage the request went to
 * @event: the event
 *
 * Waits for nothing. A program that only ever tests gets there, too: each call reaps what it
 * finds, where no service does. Acquire, as weir_wait().
 *
 * Return: 0 while pending, else its word: weir_event_status() and weir_event_path() read it.
 */
WEIR_FN u64 weir_test(WEIR_GLOBAL struct weir_disk *disk, WEIR_GLOBAL struct weir_event *event)
{
	return weir_disks_test(weir_disks_one(disk), event);
}

/* weir_wait_all(), with the storages that may have the requests. */
WEIR_FN weir_status weir_disks_wait_all(struct weir_disks disks, WEIR_GLOBAL struct weir_event *events,
					u32 count, u64 timeout_us)
{
	u64 wave = weir_active();
	u64 deadline = weir_deadline(weir_at(disks.first, struct weir_disk, 0), timeout_us);
	weir_status status = WEIR_OK;
	u32 at = 0;   /* events below it are done */
	u32 vain = 0; /* iterations since any lane saw one done */

	WEIR_WAIT_LOOP(wave, at < count, iteration) {
		WEIR_GLOBAL struct weir_disk *disk = weir_disks_pick(disks, iteration);
		u64 word = 0;
		u32 moved = 0;

		if (at < count)
			word = weir_event_poll(disks, events + at);
		word = weir_event_retry(wave, events + at, word, deadline);
		if (at < count) {
			if (word) {
				status = status == WEIR_OK ? weir_event_status(word) : status;
				at++;
				moved = 1;
			} else if (weir_expired(deadline, iteration)) {
				status = status == WEIR_OK ? (u32)WEIR_E_TIMEOUT : status;
				at = count;
			}
		}
		weir_reconverge();
		vain = weir_ballot(wave, moved) ? 0 : vain + 1;
		weir_wait_help(wave, word == 0 && at < count, disk, iteration, vain);
	}
	return status;
}

/**
 * weir_wait_all() - wait until all of several events are done
 * @disk: storage the requests went to
 * @events: struct weir_event[count]
 * @count: of these; may differ from lane to lane, 0 is done at once
 * @timeout_us: 0 for the storage's timeout, WEIR_FOREVER for none
 *
 * Acquire: what all the requests wrote is visible afterwards.
 *
 * Return: WEIR_OK, or the first status in their order that is not; WEIR_E_TIMEOUT if one has not
 * ended in time, in which case the events and buffers that are pending remain the controller's.
 */
WEIR_FN weir_status weir_wait_all(WEIR_GLOBAL struct weir_disk *disk, WEIR_GLOBAL struct weir_event *events,
				  u32 count, u64 timeout_us)
{
	return weir_disks_wait_all(weir_disks_one(disk), events, count, timeout_us);
}

/** struct weir_any - what weir_wait_any() gives: which event, and how its request ended */
struct weir_any {
	u32 index;
	weir_status status;
};

/* An event that is done is given to one lane. Return: it is this one. */
WEIR_FN u32 weir_event_take(WEIR_GLOBAL struct weir_event *event)
{
	/* relaxed: what the event's word guards was event.E1's matter; here only who is first */
	return (weir_or_u64_relaxed_dev(&event->word, WEIR_EVENT_CONSUMED) & WEIR_EVENT_CONSUMED) == 0;
}

/* weir_wait_any(), with the storages that may have the requests. */
WEIR_FN struct weir_any weir_disks_wait_any(struct weir_disks disks, WEIR_GLOBAL struct weir_event *events,
					    u32 count, u64 timeout_us)
{
	u64 wave = weir_active();
	u64 deadline = weir_deadline(weir_at(disks.first, struct weir_disk, 0), timeout_us);
	struct weir_any any;
	u32 done = 0;

	any.index = count;
	any.status = WEIR_OK;
	WEIR_WAIT_LOOP(wave, !done, iteration) {
		u32 pending = 0, failed = 0;
		u64 retry = 0;

		for (u32 i = 0; !done && i < count; i++) {
			u64 word = weir_event_poll(disks, events + i);

			if (word & WEIR_EVENT_RETRY) { /* one of them in each iteration */
				retry = word;
				failed = i;
				word = 0;
			}
			pending |= word == 0;
			if (word && !(word & WEIR_EVENT_CONSUMED) && weir_event_take(events + i)) {
				any.index = i;
				any.status = weir_event_status(word);
				done = 1;
			}
		}
		if (!done && pending && weir_expired(deadline, iteration))
			any.status = WEIR_E_TIMEOUT;
		(void)weir_event_retry(wave, events + failed, done ? 0 : retry, deadline);
		done |= !pending ||
			any.status != WEIR_OK; /* nothing pending: all of them were given already */
		weir_wait_help(wave, !done, weir_disks_pick(disks, iteration), iteration, iteration);
	}
	return any;
}

/**
 * weir_wait_any() - wait until one of several events is done that was not given before
 * @disk: storage the requests went to
 * @events: struct weir_event[count]; other lanes may wait for the same ones
 * @count: of these; may differ from lane to lane
 * @timeout_us: 0 for the storage's timeout, WEIR_FOREVER for none
 *
 * Each event is given once, until it is submitted again: to one call of one lane. So a loop
 * that ends at index == @count has seen each of them, and several lanes share them out.
 * Acquire: what the request wrote is visible afterwards.
 *
 * Return: the event's index and its request's status; index @count: with WEIR_OK all of them were
 * given before, with WEIR_E_TIMEOUT the others have not ended in time and remain the controller's.
 */
WEIR_FN struct weir_any weir_wait_any(WEIR_GLOBAL struct weir_disk *disk,
				      WEIR_GLOBAL struct weir_event *events, u32 count, u64 timeout_us)
{
	return weir_disks_wait_any(weir_disks_one(disk), events, count, timeout_us);
}

#endif
