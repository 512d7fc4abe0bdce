/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/parts.h: what the parts of the virtual controller offer one another;
 * private to virtual_*.c. "Owner" means: only on the thread that owns the queue.
 */
#ifndef WEIR_VIRTUAL_PARTS_H
#define WEIR_VIRTUAL_PARTS_H

#include "state.h"

/* virtual/control.c: registers become deeds; thread 0 */

/** virtual_control_step() - carry out what registers ask; 0 when there was nothing */
unsigned virtual_control_step(struct weir_virtual *controller);
/** virtual_control_fatal() - set CSTS.CFS */
void virtual_control_fatal(struct weir_virtual *controller);
/** virtual_control_fail() - the same, and no admin command is carried out until a reset */
void virtual_control_fail(struct weir_virtual *controller);

/* virtual/queue.c: rings and doorbells; owner */

/** virtual_sq_open() - begin an empty queue over @entries */
void virtual_sq_open(struct weir_virtual *controller, u32 id, u64 entries, u32 size, u32 cq);
void virtual_cq_open(struct weir_virtual *controller, u32 id, u64 entries, u32 size);
/** virtual_sq_ready() - commands posted, not fetched, and with room to complete */
u32 virtual_sq_ready(struct virtual_thread *thread, struct virtual_sq *sq);
/** virtual_sq_fetch() - take one command; after virtual_sq_ready() said so */
void virtual_sq_fetch(struct virtual_sq *sq, struct nvme_sqe *sqe);
/** virtual_sq_expect() - it has its turn soon: a hint to the caches */
void virtual_sq_expect(const struct virtual_sq *sq);
/** virtual_sq_copy() - look at the command @ahead entries after the next; it is not taken */
void virtual_sq_copy(const struct virtual_sq *sq, u32 ahead, struct nvme_sqe *sqe);
/** virtual_sq_take() - take the next command, which was copied */
void virtual_sq_take(struct virtual_sq *sq);
/** virtual_sq_claim() - mark a command identifier in flight; false if it already is */
bool virtual_sq_claim(struct virtual_sq *sq, u32 cid);
void virtual_sq_unclaim(struct virtual_sq *sq, u32 cid);
/** virtual_cq_room() - entries that can be promised */
u32 virtual_cq_room(struct virtual_thread *thread, struct virtual_cq *cq);
/** virtual_post() - write a completion into the entry promised to its command */
void virtual_post(struct virtual_thread *thread, struct virtual_sq *sq, u32 cid, u32 status, u32 result);
/** virtual_put() - write @from, its phase bit being 0, with @phase into an entry promised */
void virtual_put(struct virtual_cq *cq, const struct nvme_cqe *from, u32 phase);
/** virtual_count_command() - count a completion */
void virtual_count_command(struct virtual_thread *thread, u32 status);
/** virtual_queue_poll() - hear what the host said last, of both rings */
void virtual_queue_poll(struct virtual_thread *thread, struct virtual_sq *sq);
/** virtual_view_refresh() - bring the thread's view of the DMA map up to date */
void virtual_view_refresh(struct virtual_thread *thread);
/** virtual_queue_check() - after a change of the DMA map: is the ring still in it? */
void virtual_queue_check(struct virtual_thread *thread, struct virtual_sq *sq);

/** virtual_rings - the front of rings in memory */
extern const struct virtual_front virtual_rings;

/* virtual/shadow.c: shadow doorbells */

/**
 * virtual_doorbell_open() - begin with doorbell @index of a new queue; thread 0
 * @doorbell: out: enum virtual_doorbell; @with_shadow if there is one
 * @seen: out: what is there
 */
void virtual_doorbell_open(struct weir_virtual *controller, u32 index, u8 *doorbell, u32 *seen,
			   enum virtual_doorbell with_shadow);
/** virtual_doorbell_take() - what the host says, after its word was seen to change; wakes it; owner */
u32 virtual_doorbell_take(struct virtual_thread *thread, u32 index, u8 *doorbell);
/**
 * virtual_doorbell_arm() - have the host ring once it moves on from @position; owner
 *
 * Return: true if it sleeps; false if the host has moved on.
 */
bool virtual_doorbell_arm(struct virtual_thread *thread, u32 index, u8 *doorbell, u32 *seen, u32 position);
/** virtual_shadow_begin() - a letter says that there are shadows; its owner takes its queues' doorbells from
 * there */
void virtual_shadow_begin(struct virtual_thread *thread);
/** virtual_shadow_check() - after a change of the DMA map: without its pages a queue is lost; owner */
void virtual_shadow_check(struct virtual_thread *thread, struct virtual_sq *sq);
/** virtual_shadow_admin() - look whether the host writes the admin queue's shadow, too; thread 0 */
void virtual_shadow_admin(struct weir_virtual *controller);

/* virtual/serve.c: which commands have their turn; owner */

/** virtual_serve() - fetch and begin commands; how many */
u32 virtual_serve(struct virtual_thread *thread);

/* virtual/request.c: the life of an I/O command; owner */

int virtual_requests_create(struct virtual_thread *thread);
void virtual_requests_destroy(struct virtual_thread *thread);
struct virtual_request *virtual_request_take(struct virtual_thread *thread, struct virtual_queue *queue);
/** virtual_request_end() - it ended with @status; post it now or when it is due */
void virtual_request_end(struct virtual_request *request, u32 status);
/** virtual_request_due() - its time has come: post and free, unless a fault has other plans */
void virtual_request_due(struct virtual_request *request, u32 status);
/** virtual_request_finish() - post and free at once */
void virtual_request_finish(struct virtual_request *request, u32 status);
/** virtual_request_count() - count the bytes it moved; before its completion is seen */
void virtual_request_count(const struct virtual_request *request, u32 status);
/** virtual_request_free() - back to the pool, after its completion */
void virtual_request_free(struct virtual_request *request);
/** virtual_request_forget() - free it, posting nothing */
void virtual_request_forget(struct virtual_request *request);
/** virtual_request_meant() - is it @queue's, and does it own @cid (~0: any)? */
bool virtual_request_meant(const struct virtual_request *request, const struct virtual_queue *queue, u32 cid);
/** virtual_request_submit() - to the medium; false if it takes no more now */
bool virtual_request_submit(struct virtual_request *request, void (*done)(struct weir_io *io));
/** virtual_request_bounce() - get a private buffer; false if none is free now */
bool virtual_request_bounce(struct virtual_request *request);
/** virtual_request_unbounce() - give it back */
void virtual_request_unbounce(struct virtual_request *request);
/** virtual_stall() - try again after the medium was polled */
void virtual_stall(struct virtual_request *request);
unsigned virtual_stalled_step(struct virtual_thread *thread);
/** virtual_requests_abort() - end with @status what waits and satisfies queue and cid (~0: any) */
u32 virtual_requests_abort(struct virtual_thread *thread, const struct virtual_queue *queue, u32 cid,
			   u32 status);
/** virtual_requests_discard() - a reset: free what waits; the rest posts nothing */
void virtual_requests_discard(struct virtual_thread *thread);

/* virtual/io.c: I/O commands; owner */

/** virtual_io_expect() - tell the medium which bytes a command will ask it for */
void virtual_io_expect(const struct weir_virtual *controller, const struct nvme_sqe *sqe);
/**
 * virtual_io_begin() - check a command and set it going
 * @owns_cid: its identifier is in use by no other
 * @command: the front's own
 */
void virtual_io_begin(struct virtual_thread *thread, struct virtual_queue *queue, const struct nvme_sqe *sqe,
		      bool owns_cid, void *command);
/** virtual_io_start() - hand it to the medium; false if that must wait */
bool virtual_io_start(struct virtual_request *request);

/* virtual/engine.c: commands to an engine; owner */

/** virtual_engine_admit() - ask the engine; an NVMe status, or @request says where its blocks are */
u32 virtual_engine_admit(struct virtual_request *request, const struct nvme_sqe *sqe, u64 blocks);
/** virtual_engine_keep() - of Dataset Management: what is needed when its ranges are known */
void virtual_engine_keep(struct virtual_request *request, const struct nvme_sqe *sqe);
/** virtual_engine_admit_flush() - ask the engine about a flush; an NVMe status */
u32 virtual_engine_admit_flush(const struct virtual_request *request, const struct nvme_sqe *sqe);
/** virtual_engine_admit_range() - ask the engine about a range; an NVMe status */
u32 virtual_engine_admit_range(const struct virtual_request *request, u64 slba, u64 blocks);
/** virtual_engine_range() - where the range is, and under which epochs it changes */
void virtual_engine_range(struct virtual_request *request, u64 slba);
/** virtual_engine_admin() - an admin command of volumes; thread 0 */
u32 virtual_engine_admin(struct weir_virtual *controller, const struct nvme_sqe *sqe);

/* virtual/compound.c: commands of several steps; owner */

bool virtual_compare_start(struct virtual_request *request);
bool virtual_ranges_start(struct virtual_request *request);
/** virtual_medium_status() - how a command ends whose medium request ended */
u32 virtual_medium_status(const struct virtual_request *request);

/* virtual/prp.c */

/**
 * virtual_prp_walk() - find the host memory of a transfer
 * @thread: whose view of the DMA map counts
 * @sqe: prp1 and prp2, copied from the ring
 * @bytes: length, at least 1, at most options.max_transfer_bytes
 * @segments: where they go, room for weir_virtual.segments_max
 * @count: how many there are
 *
 * Base 2.0 section 4.1.1. Return: an NVMe status.
 */
u32 virtual_prp_walk(struct virtual_thread *thread, const struct nvme_sqe *sqe, u64 bytes,
		     struct iovec *segments, u32 *count);
/** virtual_gather() - copy from segments; virtual_scatter() - copy to them */
void virtual_gather(void *to, const struct iovec *segments, u32 count);
void virtual_scatter(const void *from, const struct iovec *segments, u32 count);

/* virtual/time.c: when completions are due; owner */

/** virtual_monotonic_ns() - the clock of options that name none; any thread */
u64 virtual_monotonic_ns(void *argument);
/** virtual_clock_ns() - what time it is for this controller; any thread */
u64 virtual_clock_ns(const struct weir_virtual *controller);

/** virtual_time_quota() - commands that may be fetched now under the rate limit */
u32 virtual_time_quota(struct virtual_thread *thread);
void virtual_time_add(struct virtual_thread *thread, struct virtual_request *request);
void virtual_time_remove(struct virtual_thread *thread, struct virtual_request *request);
/** virtual_time_step() - give due times to what was fetched, complete what is due */
unsigned virtual_time_step(struct virtual_thread *thread);

/* virtual/fault.c: which commands the fault table strikes; owner */

int virtual_faults_create(struct weir_virtual *controller);
void virtual_faults_destroy(struct weir_virtual *controller);
/** virtual_fault_begin() - ask the table about a fetched command; a status to end it with, or 0 */
u32 virtual_fault_begin(struct virtual_request *request, const struct nvme_sqe *sqe);
/** virtual_fault_pauses() - is nothing of @queue to begin now? */
bool virtual_fault_pauses(const struct virtual_thread *thread, struct virtual_queue *queue);
/** virtual_fault_of() - the row that strikes it with @kind, or NULL; stays so */
struct weir_fault_row *virtual_fault_of(const struct virtual_request *request,
					enum weir_virtual_fault_kind kind);
/** virtual_fault_take() - the same, once, and counted: now it happens */
struct weir_fault_row *virtual_fault_take(struct virtual_request *request, enum weir_virtual_fault_kind kind);
/** virtual_fault_spare() - it did not happen after all: @kind does not count for its row */
void virtual_fault_spare(struct virtual_request *request, enum weir_virtual_fault_kind kind);

/* virtual/fault_hold.c: commands held back; owner */

/** virtual_fault_due() - virtual_request_due() of a command that was matched */
void virtual_fault_due(struct virtual_request *request, u32 status);
/** virtual_fault_step() - let go what is due; @fetched: commands fetched in this poll */
unsigned virtual_fault_step(struct virtual_thread *thread, u32 fetched);
/** virtual_fault_abort() - virtual_requests_abort() of what is held back */
u32 virtual_fault_abort(struct virtual_thread *thread, const struct virtual_queue *queue, u32 cid,
			u32 status);
void virtual_fault_discard(struct virtual_thread *thread);

/* virtual/fault_post.c: completion entries that are wrong; owner */

/** virtual_post_wrong() - the rings' complete_wrong() */
void virtual_post_wrong(struct virtual_request *request, u32 status);

/* virtual/fault_fail.c: the controller fails */

/** virtual_fault_fail() - begin to fail; any owner */
void virtual_fault_fail(struct virtual_thread *thread);
/** virtual_fault_off() - clear CC.EN behind the host's back; owner of a command that was fetched */
void virtual_fault_off(struct virtual_thread *thread);
/** virtual_fault_follow() - fall silent, or speak again, as the controller does; owner */
unsigned virtual_fault_follow(struct virtual_thread *thread);
/** virtual_fault_reset() - a reset ends the failure; thread 0 */
void virtual_fault_reset(struct weir_virtual *controller);

/* virtual/message.c: thread 0 to owners */

/** virtual_message_send() - thread 0, after virtual_message_acknowledged() */
void virtual_message_send(struct virtual_thread *to, enum virtual_message_kind kind, u32 qid, u32 cid);
bool virtual_message_acknowledged(const struct virtual_thread *to);
bool virtual_message_all_acknowledged(const struct weir_virtual *controller);
void virtual_message_send_all(struct weir_virtual *controller, enum virtual_message_kind kind);
/** virtual_message_step() - read what came and work on it; owner */
unsigned virtual_message_step(struct virtual_thread *thread);

/* virtual/admin.c: admin commands; thread 0 */

/* Statuses of handlers that are no NVMe status. */
enum {
	VIRTUAL_HELD = 1 << 16,    /* no completion now */
	VIRTUAL_PENDING = 1 << 17, /* completes when a letter is answered */
};

int virtual_admin_create(struct weir_virtual *controller);
void virtual_admin_destroy(struct weir_virtual *controller);
void virtual_admin_reset(struct weir_virtual *controller);
unsigned virtual_admin_step(struct weir_virtual *controller);
/** virtual_admin_pending() - complete @sqe when @thread has answered */
u32 virtual_admin_pending(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 thread);
/** virtual_admin_pending_all() - the same, when all have */
u32 virtual_admin_pending_all(struct weir_virtual *controller, const struct nvme_sqe *sqe);
/** virtual_admin_send() - write a reply's @bytes of data to the host; an NVMe status */
u32 virtual_admin_send(struct weir_virtual *controller, const struct nvme_sqe *sqe, const void *data,
		       u32 bytes);

/** virtual_admin_receive() - read a command's @bytes of data from the host; an NVMe status */
u32 virtual_admin_receive(struct weir_virtual *controller, const struct nvme_sqe *sqe, void *data, u32 bytes);

/* Handlers: return a status, and may set the completion's dword 0. */

u32 virtual_create_cq(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);
u32 virtual_create_sq(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);
u32 virtual_delete_cq(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);
u32 virtual_delete_sq(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);
u32 virtual_abort(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);
u32 virtual_identify(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);
u32 virtual_set_features(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);
u32 virtual_get_features(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);
u32 virtual_get_log_page(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);
u32 virtual_doorbell_buffer_config(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);

/* virtual/manage.c: I/O queues; thread 0 */

/** virtual_manage_answered() - the letter of a pending command was answered */
u32 virtual_manage_answered(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);
/** virtual_manage_scan() - look for writes to doorbells of no queue */
void virtual_manage_scan(struct weir_virtual *controller);

/* virtual/event.c: asynchronous events; thread 0 */

u32 virtual_event_request(struct weir_virtual *controller, const struct nvme_sqe *sqe, u32 *result);
/** virtual_event_abort() - end a held request; false if there is none of this identifier */
bool virtual_event_abort(struct weir_virtual *controller, u32 cid);
unsigned virtual_event_step(struct weir_virtual *controller);

#endif
