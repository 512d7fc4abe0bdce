/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/wait_loop.h: the loop by which lanes wait, for whatever they wait.
 *
 * Owns: its shape, deadlines, and the help that a waiting wave gives. The loop's body is a list of tries.
 * These rules keep it free of deadlocks on lockstep waves, on independent lanes, and on work-groups that run
 * as loops:
 *
 * 1. No try waits. The exit is a ballot, the same for all lanes of the wave; each iteration helps others.
 * 2. No lane waits for a lane of its wave. A lock is tried, used and freed in one iteration.
 * 3. Nothing is held across I/O, a full queue, an eviction or user code.
 * 4. A word that steers control flow is loaded by one lane and broadcast.
 * 5. No kernel or wave counts on another one that runs at the same time.
 * 6. Each wait has a deadline, and returns an error past it.
 * 7. What one lane acquired is not its wave's: the wave synchronises after the acquire and before the
 * release.
 * 8. Lanes that came into a function together leave together; those that are done help the others.
 */
#ifndef WEIR_CORE_WAIT_LOOP_H
#define WEIR_CORE_WAIT_LOOP_H

#include <weir/core/queue/cq.h>

/* Iterations between two polls of the clock. */
enum { WEIR_CLOCK_ITERATIONS = 16 };

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

/* In microseconds: longer ones are for ever, and with the clock's value no number of nanoseconds. */
#define WEIR_LONGEST (WEIR_FOREVER / 2000)

WEIR_FN WEIR_GLOBAL struct weir_queue *weir_disk_queue(WEIR_GLOBAL struct weir_disk *disk, u64 choice)
{
	return weir_at(disk->queues, struct weir_queue,
		       (u32)choice % disk->queue_count); /* 64 bits: a call */
}

/** weir_deadline() - clock value at which @timeout_us from now (0: the storage's) has passed */
WEIR_FN u64 weir_deadline(WEIR_GLOBAL struct weir_disk *disk, u64 timeout_us)
{
	if (timeout_us > WEIR_LONGEST)
		return WEIR_FOREVER;
	return weir_clock_ns() + (timeout_us ? timeout_us * 1000 : disk->timeout_ns);
}

WEIR_FN u32 weir_expired(u64 deadline, u32 iteration)
{
	return iteration % WEIR_CLOCK_ITERATIONS == WEIR_CLOCK_ITERATIONS - 1 && weir_clock_ns() > deadline;
}

/* A queue pair of a volume's own controller or of its engines, one after the other; the same in all lanes. */
WEIR_COLD WEIR_GLOBAL struct weir_queue *weir_disk_queue_by(WEIR_GLOBAL struct weir_disk *disk, u32 iteration)
{
	WEIR_GLOBAL struct weir_queue *queue = weir_disk_queue(disk, weir_wave());
	WEIR_GLOBAL struct weir_placed *placed = weir_placed_of(queue);
	u32 engines = queue->volume ? placed->engines : 0; /* 0: the storage is closed */
	u32 lap = iteration / (engines + 1), which = iteration % (engines + 1);
	u32 mine = (u32)weir_wave() + ((lap & 3) == 3 ? lap >> 2 : 0);

	return which == 0 ? weir_disk_queue(disk, mine)
			  : weir_at(placed->queues, struct weir_queue,
				    (which - 1) * placed->queues_each + mine % placed->queues_each);
}

/**
 * weir_disk_help() - reap one queue pair for everybody, all lanes of @wave together
 * @wave: lanes calling together
 * @needy: lanes of it that wait for something
 * @disk: each lane's storage; the needy take turns
 * @iteration: counts the calls of one wait
 *
 * Mostly the wave's own queue pair; every fourth iteration another one, so that a
 * completion is found even if its submitter left long ago.
 *
 * Where a service reaps, there is nothing to do.
 *
 * Return: completions handled, the same value in all lanes.
 */
WEIR_FN u32 weir_disk_help(u64 wave, u64 needy, WEIR_GLOBAL struct weir_disk *disk, u32 iteration)
{
	/* out of step with the choice of a queue, and with weir_disks_pick() */
	u32 skip = WEIR_ONLY_SERVICE ? 0 : ((iteration * 0x85ebca6bu) >> 16) % weir_popcount(needy);
	u64 chosen = needy;
	WEIR_GLOBAL struct weir_queue *queue;

	for (u32 i = 0; i < skip; i++)
		chosen &= chosen - 1;
	disk = weir_at(weir_shuffle_u64(wave, WEIR_ADDR(disk), weir_lowest_bit(chosen)), struct weir_disk, 0);
	if (WEIR_ONLY_SERVICE || (disk->flags & WEIR_DISK_SERVICE))
		return 0;
	queue = disk->flags & WEIR_DISK_PLACED
			? weir_disk_queue_by(disk, iteration)
			: weir_disk_queue(disk, weir_wave() + ((iteration & 3) == 3 ? iteration >> 2 : 0));
	return weir_cq_reap(queue, wave);
}

/* Whether any lane of @wave waits; together again if so. */
WEIR_FN u32 weir_wait_goes_on(u64 wave, u32 waits)
{
	if (weir_ballot(wave, waits) == 0)
		return 0;
	weir_reconverge();
	return 1;
}

/**
 * WEIR_WAIT_LOOP() - repeat the statement behind it while @waits is true in any lane of @wave
 * @iteration: name of its u32 that counts
 *
 * All lanes of @wave go along, those that are done with nothing to do. weir_wait_help() is the statement's
 * last call.
 */
#define WEIR_WAIT_LOOP(wave, waits, iteration)                                                               \
	for (u32 iteration = 0; weir_wait_goes_on((wave), (waits)); iteration++)

/**
 * weir_wait_help() - the end of an iteration: reap for everybody, and pause where there was nothing to reap
 * @waits: this lane waits
 * @disk: this lane's storage
 * @vain: iterations without progress, from which the pause follows
 */
WEIR_FN void weir_wait_help(u64 wave, u32 waits, WEIR_GLOBAL struct weir_disk *disk, u32 iteration, u32 vain)
{
	u64 needy;

	weir_reconverge();
	needy = weir_ballot(wave, waits);
	if (needy && weir_disk_help(wave, needy, disk, iteration) == 0)
		weir_relax(vain);
}

#endif
