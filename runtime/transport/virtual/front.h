/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/front.h: what stands between hosts and the controller core: rings in memory, a network.
 *
 * Owns: the border. A front hands the core a copied command and finds the memory of its data; it takes
 * the command's
 * completion. Of commands the core knows their 64 bytes, of queues a number: never rings, PRPs,
 * doorbells or sockets.
 * Checks, the medium, timing, faults and statistics are the core's, one for all fronts.
 */
#ifndef WEIR_VIRTUAL_FRONT_H
#define WEIR_VIRTUAL_FRONT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <weir/nvme.h>

#include "virtual.h"

struct virtual_thread;
struct virtual_request;

/**
 * struct virtual_queue - what the core knows of a front's queue; its owner's
 * @resume_ns: nothing is begun before this time (a fault), or 0
 * @inflight: commands begun and not completed
 * @id: NVMe's number of it
 */
struct virtual_queue {
	u64 resume_ns;
	u32 inflight;
	u32 id;
};

/**
 * struct virtual_front - a front's functions; called on the thread that owns the queue
 * @segments: find the memory of @bytes of the command's data (options.max_transfer_bytes at most) and
 *   put it into
 *            @segments, which has room for a page each and one more; how many into @count; @command is the
 *            front's own; an NVMe status
 * @complete: say that a command has ended with @status, and free its identifier; the request is gone
 *   afterwards
 * @complete_wrong: the same of a command that faults befall: virtual_fault_take() says which of
 *   DUPLICATE, STRAY, PHASE
 *                  and MISROUTE happen to its completion
 * @release: free its identifier; nothing is said to the host
 * @withhold: it will not be completed, so what was promised to its completion is free; it goes on until
 *   @release
 * @host: NQN of whoever the command comes from, for an engine. NULL: whoever it says
 */
struct virtual_front {
	u32 (*segments)(struct virtual_thread *thread, const struct nvme_sqe *sqe, u64 bytes,
			struct iovec *segments, u32 *count, void *command);
	void (*complete)(struct virtual_request *request, u32 status);
	void (*complete_wrong)(struct virtual_request *request, u32 status);
	void (*release)(struct virtual_request *request);
	void (*withhold)(struct virtual_request *request);
	const char *(*host)(const struct virtual_request *request);
};

/*
 * For fronts whose queues the controller does not know: options.front. All on the thread of number @thread.
 */

/**
 * weir_virtual_may_begin() - whether a command of @queue can begin now
 *
 * Not: its pool of requests is in use, the medium takes no more, or a fault stalls the queue. Ask again
 * after a poll.
 */
bool weir_virtual_may_begin(struct weir_virtual *controller, unsigned thread, struct virtual_queue *queue);
/**
 * weir_virtual_begin() - set a command going, after weir_virtual_may_begin()
 * @queue: its queue, which lives until inflight is 0
 * @sqe: a copy; namespace 1 is the medium; PRPs and SGLs are not looked at
 * @command: the front's own, for weir_virtual_command()
 *
 * It may end inside.
 */
void weir_virtual_begin(struct weir_virtual *controller, unsigned thread, struct virtual_queue *queue,
			const struct nvme_sqe *sqe, void *command);
/** weir_virtual_command() - what weir_virtual_begin() was given */
void *weir_virtual_command(const struct virtual_request *request);
/** weir_virtual_count() - count a completion, which the front is about to send */
void weir_virtual_count(struct virtual_request *request, u32 status);
/**
 * weir_virtual_fault() - whether a fault of @kind, of complete_wrong(), befalls this completion; once, and
 * counted
 */
bool weir_virtual_fault(struct virtual_request *request, enum weir_virtual_fault_kind kind);
/**
 * weir_virtual_abort() - end with @status what waits of @queue and has identifier @cid (~0: any); how many
 */
u32 weir_virtual_abort(struct weir_virtual *controller, unsigned thread, struct virtual_queue *queue, u32 cid,
		       u32 status);
/**
 * weir_virtual_wait_ns() - how long nothing will happen without a new command, or the medium's
 * descriptor becoming ready
 *
 * Return: 0 if it has to be polled at once; UINT64_MAX if nothing is due.
 */
u64 weir_virtual_wait_ns(struct weir_virtual *controller, unsigned thread);
/** weir_virtual_engine() - the engine that admits its commands, or NULL */
struct weir_engine *weir_virtual_engine(const struct weir_virtual *controller);
/** weir_virtual_medium() - what stands behind it */
const struct weir_medium *weir_virtual_medium(const struct weir_virtual *controller);
/** weir_virtual_transfer_bytes() - most data of a command */
u32 weir_virtual_transfer_bytes(const struct weir_virtual *controller);
/** weir_virtual_failed() - a fault made it fail as a whole; @gone: it answers no more at all */
bool weir_virtual_failed(struct weir_virtual *controller, bool *gone);

#endif
