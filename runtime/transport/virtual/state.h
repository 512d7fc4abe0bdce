/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/state.h: what a virtual controller is made of; private to virtual_*.c.
 *
 * Who may touch what: thread 0 carries out register changes and admin commands.
 * Each queue has one owner thread, which alone fetches from it and posts to it.
 * Thread 0 tells owners about queues by message (virtual/message.c); nothing else is
 * shared except words of the types in virtual/word.h.
 */
#ifndef WEIR_VIRTUAL_STATE_H
#define WEIR_VIRTUAL_STATE_H

#include <pthread.h>

#include "../sleeper.h"
#include "front.h"
#include "word.h"
#include <weir/nvme.h>

enum {
	VIRTUAL_CACHE_LINE_BYTES = 64,
	VIRTUAL_FETCH_BATCH = 32,     /* options.fetch_batch, unless given */
	VIRTUAL_AHEAD = 16,           /* commands copied before the first of them begins */
	VIRTUAL_REQUESTS_MIN = 64,    /* per thread */
	VIRTUAL_REQUESTS_MAX = 4096,  /* per thread */
	VIRTUAL_BOUNCES = 4,          /* Compare and Dataset Management at a time, per thread */
	VIRTUAL_AER_LIMIT = 4,        /* Asynchronous Event Requests held; WEIR_PAGE_AERS */
	VIRTUAL_VERSION = 0x00010400, /* of the NVMe Base specification */
	VIRTUAL_REGISTER_BYTES = 0x38,
	VIRTUAL_RETRY_DELAY_1 = 1, /* Command Retry Delay Times, in 100 ms */
	VIRTUAL_RETRY_DELAY_2 = 3,
	VIRTUAL_RETRY_DELAY_3 = 10,
	VIRTUAL_FEATURES = 0x0c, /* feature identifiers below this one are kept */
};

/* Asynchronous events, as bits; the bit number is the event's information field. */
enum {
	VIRTUAL_EVENT_DOORBELL_REGISTER = 1u << 0, /* a doorbell of no queue was written */
	VIRTUAL_EVENT_DOORBELL_VALUE = 1u << 1,    /* a doorbell got a value that cannot be */
	VIRTUAL_EVENT_RING_LOST = 1u << 30,        /* internal: a ring left the DMA map */
};

/* Where the host tells of a ring: virtual/shadow.c. */
enum virtual_doorbell {
	VIRTUAL_DOORBELL_REGISTER, /* in the doorbell register: there is no shadow */
	VIRTUAL_DOORBELL_ARMED,    /* in the shadow, but it is not looked at before the register was rung */
	VIRTUAL_DOORBELL_POLLED,   /* in the shadow */
};

#define VIRTUAL_DOORBELL_QUIET                                                                               \
	0xffffffffu /* in a doorbell register that was not rung since it was looked at */

/**
 * struct virtual_cq - a completion queue; its owner's
 * @entries: the ring, in host memory, found in the DMA map
 * @size: entries
 * @tail: next entry to write
 * @head: oldest entry the host has not taken
 * @doorbell_seen: doorbell word last looked at, good or bad
 * @free: entries neither posted nor promised to a fetched command
 * @phase: phase tag of the current pass
 * @id: queue identifier
 * @lost: the ring left the DMA map; nothing is posted any more
 * @doorbell: enum virtual_doorbell
 *
 * A command is fetched only with an entry promised, so posting never waits.
 */
struct virtual_cq {
	struct nvme_cqe *entries;
	u32 size;
	u32 tail;
	u32 head;
	u32 doorbell_seen;
	u32 free;
	u32 phase;
	u32 id;
	bool lost;
	u8 doorbell;
} __attribute__((aligned(VIRTUAL_CACHE_LINE_BYTES)));

/**
 * struct virtual_sq - a submission queue; its owner's
 * @queue: what the core knows of it; first, so that it leads back
 * @entries: the ring, in host memory, found in the DMA map
 * @cq: where its completions go
 * @cids: one bit per command identifier in flight
 * @size: entries
 * @head: next entry to fetch
 * @tail: end of what the host posted
 * @doorbell_seen: doorbell word last looked at, good or bad
 * @lost: the ring left the DMA map; nothing is fetched any more
 * @doorbell: enum virtual_doorbell
 */
struct virtual_sq {
	struct virtual_queue queue;
	const unsigned char *entries;
	struct virtual_cq *cq;
	u64 *cids;
	u32 size;
	u32 head;
	u32 tail;
	u32 doorbell_seen;
	bool lost;
	u8 doorbell;
} __attribute__((aligned(VIRTUAL_CACHE_LINE_BYTES)));

/**
 * struct virtual_request - an I/O command from its beginning until its completion is with the front
 * @io: what the medium is asked; first, so that it leads back to the request
 * @next: in the free list, in the order of fetching while timed, or in a line
 *        of those a fault holds back
 * @previous: likewise
 * @stalled_next: behind it in the line for the medium
 * @thread: whose it is
 * @queue: where it came from
 * @command: the front's own
 * @segments: where its data lies
 * @segment_count: how many
 * @bounce: private buffer (Compare, Dataset Management), or NULL
 * @due_ns: not completed before this time
 * @opcode: what the host asked
 * @cid: command identifier
 * @status: how it ended
 * @range: next range (Dataset Management)
 * @ranges: ranges in all
 * @faults: a bit for each kind of fault that is still to happen to it
 * @place: of its first block on the medium, plus one, if its data is to be read there; else 0
 * @owns_cid: no other in flight has its identifier
 * @timed: stands in the order of fetching
 * @ended: only its due time is awaited
 * @submitting: inside the medium's submit()
 * @bounce_segment: @bounce as the medium takes it; behind what each command touches, which shares cache lines
 * @fault_rows: row of the fault table, by kind; last, as it is seldom looked at
 */
struct virtual_request {
	struct weir_io io;
	struct virtual_request *next;
	struct virtual_request *previous;
	struct virtual_request *stalled_next;
	struct virtual_thread *thread;
	struct virtual_queue *queue;
	void *command;
	struct iovec *segments;
	unsigned char *bounce;
	u64 due_ns;
	u32 segment_count;
	u32 status;
	u32 place;
	u16 range;
	u16 ranges;
	u16 faults;
	u16 cid;
	u8 opcode;
	bool owns_cid;
	bool timed;
	bool ended;
	bool submitting;
	struct iovec bounce_segment;
	u8 fault_rows[WEIR_VIRTUAL_FAULT_KINDS];
};

/** struct virtual_line - requests that a fault holds back */
struct virtual_line {
	struct virtual_request *first;
	struct virtual_request *last;
	u32 count;
};

/**
 * struct virtual_faults - what faults hold back on one thread
 * @late: by the time they are due
 * @dropped: until their queue is deleted
 * @stuck: until a reset
 * @groups: by row
 * @grouped: how many, in all groups
 * @draws: lots drawn for the order of groups
 */
struct virtual_faults {
	struct virtual_line late;
	struct virtual_line dropped;
	struct virtual_line stuck;
	struct virtual_line groups[WEIR_VIRTUAL_FAULTS];
	u32 grouped;
	u64 draws;
};

/** struct virtual_copy - a command copied from its ring, and not taken from it yet */
struct virtual_copy {
	struct virtual_sq *sq;
	struct nvme_sqe sqe;
};

/**
 * struct virtual_ahead - commands copied, so that the medium may fetch their bytes meanwhile
 * @copies: in the order in which they will begin
 * @count: how many
 */
struct virtual_ahead {
	struct virtual_copy copies[VIRTUAL_AHEAD];
	u32 count;
};

enum virtual_message_kind {
	VIRTUAL_MESSAGE_ADOPT,   /* serve a new submission queue */
	VIRTUAL_MESSAGE_DROP,    /* end its commands and forget it */
	VIRTUAL_MESSAGE_ABORT,   /* end one command early */
	VIRTUAL_MESSAGE_QUIESCE, /* fetch no more, complete what was fetched */
	VIRTUAL_MESSAGE_RESET,   /* forget everything, post nothing */
	VIRTUAL_MESSAGE_SHADOW,  /* the host writes shadow doorbells from now on */
};

/**
 * struct virtual_message - thread 0's word to a thread, one at a time
 * @sent: count of letters; the other fields are the reader's after this
 * @answered: equal to @sent once done; the other fields are thread 0's then
 * @kind: what to do
 * @qid: submission queue meant
 * @cid: command meant
 * @result: what came of it
 */
struct virtual_message {
	struct shared_u32 sent;
	struct shared_u32 answered;
	enum virtual_message_kind kind;
	u32 qid;
	u32 cid;
	u32 result;
};

/**
 * struct virtual_shadow - the pages of Doorbell Buffer Config, in host memory, found in the DMA map
 * @words: as doorbell registers; NULL: there are none
 * @events: their EventIdx words
 */
struct virtual_shadow {
	struct shared_u32 *words;
	struct shared_u32 *events;
};

/** struct virtual_counters - one thread's share of struct weir_virtual_stats */
struct virtual_counters {
	struct shared_u64 commands;
	struct shared_u64 errors;
	struct shared_u64 bytes_read;
	struct shared_u64 bytes_written;
	struct shared_u64 changes;
	struct shared_u64 bad_doorbells;
	struct shared_u64 faults;
	struct shared_u32 busy;   /* commands fetched and not completed */
	struct shared_u32 silent; /* it posts nothing: the controller fails */
} __attribute__((aligned(VIRTUAL_CACHE_LINE_BYTES)));

/**
 * struct virtual_thread - what one polling thread works with
 * @controller: whose it is
 * @front: the controller's
 * @index: its number
 * @view: memory it may touch
 * @shadow: of the doorbells, as of the last letter about it
 * @queues: submission queues it fetches from
 * @queue_count: how many
 * @iteration: which of them is first next time
 * @requests: all its requests
 * @segments: their segments
 * @free: requests not in use
 * @first: oldest request in the order of fetching, when completions are timed
 * @last: latest
 * @unstamped: first of them without a due time
 * @stalled: requests that the medium could not take yet
 * @stalled_last: the latest of these
 * @bounces: private buffers not in use
 * @bounce_count: how many
 * @bounce_memory: all of them
 * @list: copy of the PRP list being walked
 * @ready: commands of the queue having its turn that may still be fetched
 * @ahead: commands copied before their turn; empty between polls
 * @faults: what faults hold back, or NULL when there is no table
 * @failed: it knows that the controller fails
 * @inflight: requests in use
 * @dropped: of these, how many will never complete
 * @in_medium: requests the medium has
 * @discard: a reset is on, or the controller failed: nothing is posted
 * @now_ns: the clock, read once per poll
 * @message: from thread 0
 * @counters: what it did
 */
struct virtual_thread {
	struct weir_virtual *controller;
	const struct virtual_front *front;
	u32 index;
	struct weir_dma_view view;
	struct virtual_shadow shadow;
	struct virtual_sq **queues;
	u32 queue_count;
	u32 iteration;
	struct virtual_request *requests;
	struct iovec *segments;
	struct virtual_request *free;
	struct virtual_request *first;
	struct virtual_request *last;
	struct virtual_request *unstamped;
	struct virtual_request *stalled;
	struct virtual_request *stalled_last;
	unsigned char *bounces[VIRTUAL_BOUNCES];
	u32 bounce_count;
	unsigned char *bounce_memory;
	u64 *list;
	u32 ready;
	struct virtual_ahead ahead;
	struct virtual_faults *faults;
	bool failed;
	u32 inflight;
	u32 dropped;
	u32 in_medium;
	bool discard;
	u64 now_ns;
	struct virtual_message message __attribute__((aligned(VIRTUAL_CACHE_LINE_BYTES)));
	struct virtual_counters counters;
} __attribute__((aligned(VIRTUAL_CACHE_LINE_BYTES)));

/** struct virtual_host_thread - a thread of weir_virtual_start() */
struct virtual_host_thread {
	struct weir_virtual *controller;
	u32 index;
	bool joined;
	pthread_t handle;
	struct weir_sleeper sleeper;
};

enum virtual_phase {
	VIRTUAL_DISABLED,
	VIRTUAL_ENABLED,
	VIRTUAL_FAILED,    /* CSTS.CFS is set; only a reset leads out */
	VIRTUAL_QUIESCING, /* shutdown: threads complete what they fetched */
	VIRTUAL_FLUSHING,  /* shutdown: the medium makes it durable */
	VIRTUAL_SHUT,      /* shutdown is complete; only a reset leads out */
	VIRTUAL_RESETTING, /* threads forget what they fetched */
};

/**
 * struct virtual_admin - the state of admin commands; thread 0's
 * @pending: a command waits for a letter's answer
 * @pending_sqe: that command
 * @pending_thread: who was written to
 * @pending_all: everybody was
 * @sq_live: I/O submission queues that exist
 * @cq_live: I/O completion queues that exist
 * @cq_users: submission queues attached to each completion queue
 * @live: how many queues exist
 * @sq_allowed: most I/O submission queues, as last negotiated
 * @cq_allowed: most I/O completion queues, as last negotiated
 * @aer_cids: Asynchronous Event Requests held
 * @aer_count: how many
 * @events: to report
 * @masked: error events wait until the error log was read
 * @features: values of plain features, by identifier
 * @segments: where a reply's data goes
 * @reply: a reply's data (log pages)
 * @scan: doorbells of no queue are looked at when this reaches 0
 * @shadow: as of the last Doorbell Buffer Config
 * @shadow_there: it has pages, and these are in the DMA map
 * @shadow_tail: what that left in the shadow of the admin queue's tail
 */
struct virtual_admin {
	bool pending;
	struct nvme_sqe pending_sqe;
	u32 pending_thread;
	bool pending_all;
	bool *sq_live;
	bool *cq_live;
	u32 *cq_users;
	u32 live;
	u32 sq_allowed;
	u32 cq_allowed;
	u16 aer_cids[VIRTUAL_AER_LIMIT];
	u32 aer_count;
	u32 events;
	bool masked;
	u32 features[VIRTUAL_FEATURES];
	struct iovec *segments;
	unsigned char *reply;
	u32 scan;
	struct virtual_shadow shadow;
	bool shadow_there;
	u32 shadow_tail;
};

/**
 * struct weir_virtual - a controller
 * @options: as given, defaults filled in
 * @spacing_ns: time between two completions under an I/O rate limit, or 0
 * @segments_max: memory segments of the longest transfer
 * @registers: the register file, as 32-bit words
 * @falls: how often CC.EN went from 1 to 0
 * @events: events that threads saw, for thread 0
 * @failing: a fault made it fail; all threads are to fall silent
 * @pulled: by the fault "gone", for good
 * @gone: and they are: registers read as ones
 * @hung: by the fault "hung": no reset ends
 * @write_through: the volatile write cache is off, all writes are durable
 * @retry_delays: the host knows of Command Retry Delays (ACRE)
 * @rate_ns: when the next command may complete under an I/O rate limit
 * @faults: the fault table, or NULL; options.fault_count rows
 * @falls_done: how many falls of CC.EN were carried out; thread 0's, as the rest
 * @phase: where the controller stands
 * @csts: CSTS as last published
 * @phase_shut: where it stands after the shutdown under way
 * @flush: request of the shutdown's flush
 * @flush_done: it has ended
 * @flush_stalled: the medium has not taken it yet
 * @failed: CSTS tells that it fails
 * @admin: state of admin commands
 * @uuid: the namespace's identifier
 * @doorbells: the doorbell words, page aligned
 * @doorbell_count: how many
 * @sqs: submission queues by identifier, the admin queue first
 * @cqs: completion queues by identifier
 * @cids: bitmaps of the submission queues
 * @threads: what options.threads threads work with
 * @hosts: threads of weir_virtual_start(), or NULL
 * @stop: they are to end
 * @places: weir_virtual_answer_places()
 */
struct weir_virtual {
	struct weir_virtual_options options;
	u64 spacing_ns;
	u32 segments_max;
	struct shared_u32 registers[VIRTUAL_REGISTER_BYTES / 4];
	struct shared_u32 falls;
	struct shared_u32 events;
	struct shared_u32 failing;
	struct shared_u32 pulled;
	struct shared_u32 gone;
	struct shared_u32 hung;
	struct shared_u32 write_through;
	struct shared_u32 retry_delays;
	struct shared_u64 rate_ns __attribute__((aligned(VIRTUAL_CACHE_LINE_BYTES)));
	struct weir_fault_row *faults;
	u32 falls_done __attribute__((aligned(VIRTUAL_CACHE_LINE_BYTES)));
	enum virtual_phase phase;
	enum virtual_phase phase_shut;
	u32 csts;
	struct weir_io flush;
	bool flush_done;
	bool flush_stalled;
	bool failed;
	struct virtual_admin admin;
	u8 uuid[16];
	struct shared_u32 *doorbells;
	u32 doorbell_count;
	struct virtual_sq *sqs;
	struct virtual_cq *cqs;
	u64 *cids;
	struct virtual_thread *threads;
	struct virtual_host_thread *hosts;
	struct shared_u32 stop;
	bool places;
};

enum { VIRTUAL_CID_WORDS = 65536 / 64 };

/* Copies from memory the host may be changing; what was copied is never read there again. */
static inline void virtual_copy_from(void *to, const void *from, size_t bytes)
{
	__builtin_memcpy(to, from, bytes);
	__asm__ volatile("" ::: "memory"); /* keeps the compiler from reading @from twice */
}

/* The ring that @queue is, of those that are rings. */
static inline struct virtual_sq *virtual_sq_of(struct virtual_queue *queue)
{
	return (struct virtual_sq *)queue;
}

/* A status that a retry of the same command would meet again. */
static inline u32 virtual_refuse(u32 status)
{
	return status | NVME_STATUS_DNR;
}

/* The word to look at for doorbell @index. */
static inline struct shared_u32 *virtual_doorbell_word(const struct virtual_thread *thread, u32 index,
						       u32 doorbell)
{
	return (doorbell == VIRTUAL_DOORBELL_POLLED ? thread->shadow.words : thread->controller->doorbells) +
	       index;
}

/* Neither ring has moved since it was looked at, and nothing is left to fetch. */
static inline bool virtual_sq_idle(const struct virtual_thread *thread, const struct virtual_sq *sq)
{
	const struct virtual_cq *cq = sq->cq;

	/* Relaxed: whoever goes on looks again (doorbell.D1, doorbell.D2). One that is awake has yet to say
	 * that it sleeps. */
	return sq->head == sq->tail && sq->doorbell != VIRTUAL_DOORBELL_POLLED &&
	       load_relaxed_u32(&thread->controller->doorbells[2 * sq->queue.id]) == sq->doorbell_seen &&
	       load_relaxed_u32(virtual_doorbell_word(thread, 2 * cq->id + 1, cq->doorbell)) ==
		       cq->doorbell_seen;
}

static inline bool virtual_timed(const struct weir_virtual *controller)
{
	return controller->options.latency_us || controller->spacing_ns;
}

#endif
