/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvmf.h: what an nvmf: storage is made of; private to runtime/transport/fabrics.
 *
 * Who may touch what: queues, connections and requests belong to whoever has the mutex: the storage's keeper
 * (keeper.c) or the mover that it shares with others (mover.c). Registers are words of struct nvmf_registers;
 * a write to CC wakes the keeper, which alone changes CSTS.
 */
#ifndef WEIR_FABRICS_NVMF_H
#define WEIR_FABRICS_NVMF_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "../../observe/publish.h"
#include "../sleeper.h"
#include "../transport.h"
#include "../virtual/word.h"
#include "address.h"
#include "chap.h"
#include "identity.h"
#include "tcp_pdu.h"
#include "tls.h"
#include "wire.h"

enum {
	NVMF_MOST_QUEUES = 1024,
	NVMF_ADMIN_ENTRIES = 32,        /* of Connect to queue 0 */
	NVMF_ADMIN_RING = 64,           /* most entries of the ring that the runtime gives it */
	NVMF_ADMIN_CAPSULE_DATA = 8192, /* NVMe/TCP 1.0, section 3.4.5: in-capsule data of the admin queue and
					   of fabrics commands */
	NVMF_MOST_R2T = 4,              /* outstanding, of a command */
	NVMF_BATCH = 32,                /* PDUs of one sendmsg() */
	NVMF_BATCH_IOVS = 800,
	NVMF_BUFFER_BYTES = 128 << 10, /* received, not taken yet */
	NVMF_INTERNAL = 4,             /* commands of the host's own, per queue */
	NVMF_INTERNAL_CID = 0xfff0,    /* theirs; a ring's begin behind its tail */
	NVMF_COMMAND_MS = 5000,        /* for one of those that is waited for */
	NVMF_KEEP_ALIVE = 1,           /* the request for Keep Alive; 0: whoever waits */
	NVMF_EVENT = 2,                /* Asynchronous Event Request */
	NVMF_STATUS = 3,               /* Property Get of CSTS */
	NVMF_REASON_BYTES = 400,
	NVMF_REFUSED_S = 30,
	NVMF_RETRY_NS = 100000000, /* before a path that does not take a command now is tried again */
};

enum nvmf_way { NVMF_NO_DATA, NVMF_TO_HOST, NVMF_TO_CONTROLLER };

enum nvmf_state {
	NVMF_FREE,
	NVMF_HELD, /* taken from its ring, with no connection to send it by */
	NVMF_SENT, /* in line to be sent, or with the controller */
};

/* What tells namespaces apart. */
enum { NVMF_NGUID, NVMF_EUI64, NVMF_UUID, NVMF_IDS, NVMF_ID_BYTES = 16 };

/* What is known of a path: an ANA state, or one of these. */
enum { NVMF_PATH_UNKNOWN = 0, NVMF_PATH_LOST = WEIR_NETWORK_PATH_LOST };

struct nvmf_queue;
struct nvmf_path;
struct nvmf_mover;
struct nvmf_rdma_queue;
struct nvmf_rdma_memory;
struct addrinfo;

/**
 * struct nvmf_request - a command from its ring to its completion
 * @sqe: as lanes wrote it
 * @segments: its data in host memory; @segment_count of them, @bytes in all
 * @received: C2HData bytes; of a request in line, from the start
 * @granted: bytes that R2Ts have asked for
 * @cid: as lanes, and the wire, have it
 * @way: enum nvmf_way
 * @state: enum nvmf_state
 * @carrier: whose connection it was sent by last: its ring's queue, or that one's at another path
 * @sending: PDUs of it in line or in a batch
 * @answered: @cqe came; it ends when nothing of it is being sent
 * @corrupt: a data digest was wrong
 * @waited: its sender waits for it: nothing is posted
 * @resent: sent again, and not answered
 * @cqe: response
 */
struct nvmf_request {
	struct nvme_sqe sqe;
	struct nvmf_queue *carrier;
	struct iovec *segments;
	struct iovec own;
	u32 segment_count;
	u32 bytes;
	u32 received;
	u32 granted;
	u16 cid;
	u16 sending;
	u8 way;
	u8 state;
	bool answered;
	bool corrupt;
	bool waited;
	bool resent;
	struct nvme_cqe cqe;
};

/** struct nvmf_pdu - in line to be sent: a command, or @bytes of its data from @offset on for @ttag */
struct nvmf_pdu {
	struct nvmf_request *request;
	u32 offset;
	u32 bytes;
	u16 ttag;
	u8 type;
};

/**
 * struct nvmf_batch - PDUs that are being sent
 * @iovs: from @at to @count is left
 * @headers, @digests, @requests: of @pdus PDUs
 */
struct nvmf_batch {
	struct iovec iovs[NVMF_BATCH_IOVS];
	u32 at;
	u32 count;
	u32 pdus;
	union nvme_tcp_header headers[NVMF_BATCH];
	u32 digests[NVMF_BATCH];
	struct nvmf_request *requests[NVMF_BATCH];
};

enum nvmf_stage { NVMF_STAGE_COMMON, NVMF_STAGE_HEADER, NVMF_STAGE_PAD, NVMF_STAGE_DATA, NVMF_STAGE_DIGEST };

/**
 * struct nvmf_reader - a PDU that is being received
 * @buffer: NVMF_BUFFER_BYTES, of which [@begin, @end) was received and not taken yet
 * @stage: what comes next
 * @header: @have bytes of it
 * @request: of C2HData
 * @at: offset in the request's data
 * @left: bytes until the stage ends
 * @crc: of the data so far
 * @digest: received, as far as @left says
 */
struct nvmf_reader {
	u8 *buffer;
	u32 begin;
	u32 end;
	enum nvmf_stage stage;
	union nvme_tcp_header header;
	u32 have;
	struct weir_tcp_layout layout;
	struct nvmf_request *request;
	u32 at;
	u32 left;
	u32 crc;
	u8 digest[NVME_TCP_DIGEST_BYTES];
};

/**
 * struct nvmf_connection - a connection of a queue
 * @open: there is one
 * @rdma: of RDMA, which uses nothing else here but @readable and @capsule_data
 * @socket: -1: none
 * @tls: what is between it and PDUs; NULL: nothing
 * @in, @out: what was agreed for PDUs to the host, to the controller
 * @line: ring of @line_size PDUs to be sent
 * @readable, @writable: as far as is known
 * @ending: the controller has closed its end, or the connection broke: what came before is still to be read
 * @capsule_data: most bytes of in-capsule data
 */
struct nvmf_connection {
	bool open;
	struct nvmf_rdma_queue *rdma;
	int socket;
	struct weir_tls *tls;
	struct weir_tcp_rules in;
	struct weir_tcp_rules out;
	struct nvmf_pdu *line;
	u32 line_size;
	u32 line_head;
	u32 line_tail;
	struct nvmf_batch *batch;
	struct nvmf_reader reader;
	bool readable;
	bool writable;
	bool ending;
	u32 capsule_data;
};

/**
 * struct nvmf_queue - a queue pair: rings of lanes at one end, a connection at the other
 * @home: whose rings its connection carries commands of, at another path; NULL: its own
 * @sq, @cq: rings in host memory
 * @sq_bytes, @cq_bytes: of them
 * @size: entries of each
 * @head, @tail: of the submission ring: next to take, end of what was announced
 * @cq_tail, @cq_head, @cq_free, @phase: of the completion ring; an entry is promised to each command that is
 * taken
 * @requests: @size of them, by CID modulo that
 * @segments: theirs
 * @internal: the host's own
 * @inflight: requests that are not free, internal ones not counted
 * @carried: those that its connection has, whatever ring they are of
 * @most: how many those may be
 * @has_cq, @has_sq: created
 * @lost: a ring left the DMA map
 * @events: what epoll said of its connection, and nobody has taken
 */
struct nvmf_queue {
	struct nvmf *nvmf;
	struct nvmf_queue *home;
	u32 id;
	const unsigned char *sq;
	struct nvme_cqe *cq;
	u32 size;
	u32 head;
	u32 tail;
	u32 cq_tail;
	u32 cq_head;
	u32 cq_free;
	u32 phase;
	struct nvmf_request *requests;
	struct iovec *segments;
	struct nvmf_request internal[NVMF_INTERNAL];
	u32 inflight;
	u32 carried;
	u32 most;
	bool has_cq;
	bool has_sq;
	bool lost;
	struct shared_u32 events;
	struct nvmf_connection connection;
};

/** struct nvmf_registers - what other threads read and write; the keeper alone writes @csts */
struct nvmf_registers {
	struct shared_u32 cc;
	struct shared_u32 falls; /* how often CC.EN went from 1 to 0 */
	struct shared_u32 csts;
	struct shared_u32 aqa;
	struct shared_u64 asq;
	struct shared_u64 acq;
	struct shared_u32 connected; /* an association stands: whoever waits for it polls this */
	struct shared_u32 stop;
	struct shared_u32 nsid;    /* of the storage; 0: not known yet */
	struct shared_u32 changed; /* blocks were */
};

/** struct nvmf_counters - for weir_stats() and weir-stat; written under the mutex, in this order published
 * (publish.h) */
struct nvmf_counters {
	struct shared_u64 connections; /* open now */
	struct shared_u64 reconnects;
	struct shared_u64 bytes_in; /* payload */
	struct shared_u64 bytes_out;
	struct shared_u64 resent; /* commands sent again after a reconnect */
	struct shared_u64 digest_errors;
	struct shared_u64 moves; /* from one path to another */
	struct shared_u64 path;  /* the one in use */
	struct shared_u64 path_count;
	struct shared_u64 paths[WEIR_ADDRESS_MOST];   /* states; each is written by its path's thread, and by
							 the keeper */
	struct shared_u64 carried[WEIR_ADDRESS_MOST]; /* I/O commands that were sent by each */
};

WEIR_ASSERT_SIZE(struct nvmf_counters, WEIR_NETWORK_COUNTERS * sizeof(u64));

/** enum nvmf_policy - which paths carry commands, of those in the best ANA state */
enum nvmf_policy { NVMF_FAILOVER, NVMF_ROUND_ROBIN, NVMF_QUEUE_DEPTH };

/** struct nvmf_keys - from the URI */
struct nvmf_keys {
	struct weir_address_list hosts;
	char nqn[NVME_NQN_BYTES];
	struct weir_host_identity host;
	struct weir_chap_secret secret;            /* this host's */
	struct weir_chap_secret controller_secret; /* the controller has to prove that it knows it */
	struct weir_tls_key tls_key;               /* without bytes: no TLS */
	bool header_digest;
	bool data_digest;
	unsigned policy; /* enum nvmf_policy */
	uint64_t ctrl_loss_ms;
	uint64_t keep_alive_ms;
	uint64_t connect_ms;
	uint64_t mdts;
};

/** struct nvmf_controller - what the controller says of itself and its namespace */
struct nvmf_controller {
	u64 cap;
	u32 vs;
	u16 cntlid;
	u32 maxcmd;
	u32 capsule_data; /* of I/O queues */
	u16 kas;
	u32 oaes;
	bool has_ana;
	u8 mdts; /* as the controller has it */
	u32 nsid;
	u64 blocks;
	u32 block_log2;
	u8 ids[NVMF_IDS][NVMF_ID_BYTES]; /* zeros: it has none, or the controller does not say */
};

struct nvmf {
	struct weir_transport base;
	struct nvmf_keys keys;
	char *uri;
	char path[200];
	char reason[NVMF_REASON_BYTES]; /* why the connection was lost */
	struct weir_dma_map *dma;
	struct weir_dma_view view;
	u64 *list;
	struct shared_u32 *doorbells;
	struct nvmf_queue *queues; /* queue_count of them, the admin queue first */
	u32 queue_count;
	struct nvmf_registers registers;
	struct nvmf_counters counters;
	struct nvmf_controller controller;
	u8 uuid[NVMF_ID_BYTES]; /* of the namespace that is identified next */
	const struct nvmf_wire *wire;
	struct nvmf_rdma_memory *memory; /* of the device of RDMA that connections are by */
	unsigned host;                   /* of keys.hosts: which one the association is with */
	bool associated;
	bool enabled; /* remote CC.EN is 1 */
	bool began;   /* it was once */
	bool lost;
	bool wrote;        /* something was written since the last Flush */
	bool unflushed;    /* a Flush at the end failed */
	u32 queues_asked;  /* dword 11 of Set Features (Number of Queues) */
	u32 resent_open;   /* commands sent again and not answered: nothing new is taken before them */
	bool silent;       /* the controller went silent, and may not know that it is lost */
	bool retry_delays; /* the host said that it knows them */
	bool events_due;   /* the controller was identified: ask for its events */
	u32 event;         /* dword 0 of one that came; 0: none */
	bool moving;       /* nothing is taken from rings: another path is better */
	bool waited;       /* somebody has waited in nvmf_poll() since the keeper's last step */
	bool rerouted;     /* commands are held that the path does not take now */
	u64 rerouted_ns;   /* since when there were some and none has succeeded */
	u64 retry_ns;      /* when they are sent again, where there is no other path */
	u64 refused_ns[WEIR_ADDRESS_MOST]; /* of a host that was connected to and could not be used: until
					      when it is behind all others */
	struct nvmf_path *paths;           /* NULL: there is one */
	struct nvmf *storage; /* NULL: itself; else these are I/O queues at one of its other paths */
	u32 number;           /* then: which one, from 1 on */
	u32 under_way;        /* I/O commands that the controller has */
	unsigned last_host;   /* by which the last one went */
	u64 hold_ns;          /* no change is sent before: a silent controller may still have an older one */
	u32 late_queue;       /* the queue whose end that time is for, and nothing else; 0: there is none */
	u32 falls_done;
	u64 lost_ns;  /* when; 0: it is not lost */
	u64 away_ns;  /* since when no start after a reset connects; 0: the last one did */
	u64 again_ns; /* when to connect next */
	u64 pause_ns;
	u32 failures;                /* starts that ended with a fatal status, since one that did not */
	u64 alive_ns;                /* when the next Keep Alive is due */
	u64 silent_ns;               /* since when one is unanswered; 0: none is */
	int epoll;                   /* of one without a mover */
	struct weir_sleeper sleeper; /* the keeper; doorbells of the admin queue */
	struct weir_sleeper ring;    /* its mover; those of the others */
	bool woken;                  /* they are, whenever a doorbell is rung */
	pthread_mutex_t mutex;       /* around all but what other threads share by words */
	struct nvmf_mover *mover;    /* NULL: it never joined one */
	struct nvmf *next;           /* of the same mover */
	u64 serial;                  /* its own, not 0 */
	pthread_t keeper;
	bool started;
	bool joined;
};

/* nvmf.c */

/** nvmf_new() - one without connections, its admin queue and @queues more; 0 or a negative errno with a
 * sentence */
int nvmf_new(const char *uri, const struct nvmf_keys *keys, unsigned queues, struct nvmf **out);
/** nvmf_free() - close its connections and forget it, its paths too; the keeper has ended, and no mover has
 * it */
void nvmf_free(struct nvmf *nvmf);

/** nvmf_now_ns() - CLOCK_MONOTONIC */
uint64_t nvmf_now_ns(void);

/** nvmf_stopping() - whoever waits with the mutex is to give up: the storage is closed, or reset */
bool nvmf_stopping(const struct nvmf *nvmf);

/** nvmf_lose() - the association is over, for @format's reason; the first one counts */
void nvmf_lose(struct nvmf *nvmf, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline int nvmf_connection_create(struct nvmf_queue *queue, u32 entries)
{
	return queue->nvmf->wire->create(queue, entries);
}

static inline int nvmf_connection_open(struct nvmf_queue *queue, const struct weir_address *address)
{
	return queue->nvmf->wire->open(queue, address);
}

static inline void nvmf_connection_close(struct nvmf_queue *queue)
{
	queue->nvmf->wire->close(queue);
}

/** nvmf_room() - requests that can be begun */
static inline u32 nvmf_room(const struct nvmf_queue *queue)
{
	return queue->nvmf->wire->room(queue);
}

static inline bool nvmf_send(struct nvmf_queue *queue)
{
	return queue->nvmf->wire->send(queue);
}

static inline bool nvmf_receive(struct nvmf_queue *queue)
{
	return queue->nvmf->wire->receive(queue);
}

/** nvmf_connection_wait() - until @file is ready, for as long as @end_ns and nobody else allow; 0 or a
 * negative errno */
int nvmf_connection_wait(const struct nvmf *nvmf, int file, short events, uint64_t end_ns);
/** nvmf_connection_resolve() - what @address names, for freeaddrinfo(); 0 or a negative errno with a sentence
 */
int nvmf_connection_resolve(const struct nvmf *nvmf, const struct weir_address *address,
			    struct addrinfo **list);
/** nvmf_connect_fn - connect to one address until @end_ns; 0, -ECANCELED: no more, or another errno */
typedef int (*nvmf_connect_fn)(void *of, const struct addrinfo *info, uint64_t end_ns);
/**
 * nvmf_connection_each() - connect by @one to an address of @list after the other, until that succeeds
 *
 * Each gets its share of the time that is left, so that one which does not answer leaves some to the next.
 * Return: 0, or the error of the last one.
 */
int nvmf_connection_each(const struct addrinfo *list, uint64_t end_ns, nvmf_connect_fn one, void *of);
/** nvmf_connection_note() - it is open, or not: the host's own commands on it have ended */
void nvmf_connection_note(struct nvmf_queue *queue, bool open);

/* send.c */

/** nvmf_capsule() - the command as the wire has it, but for its SGL */
struct nvme_sqe nvmf_capsule(const struct nvmf_request *request);

/** nvmf_slice() - iovecs for [@offset, @offset + @bytes) of @segments, @room at most; @bytes: out: what they
 * cover */
u32 nvmf_slice(const struct iovec *segments, u32 count, u32 offset, u32 *bytes, struct iovec *to, u32 room);
/** nvmf_line_room() - PDUs that can be put in line */
u32 nvmf_line_room(const struct nvmf_connection *connection);
/** nvmf_line_put() - put a PDU in line; there is room */
void nvmf_line_put(struct nvmf_connection *connection, const struct nvmf_pdu *pdu);
bool nvmf_tcp_send(struct nvmf_queue *queue);

/* receive.c */

bool nvmf_tcp_receive(struct nvmf_queue *queue);
/** nvmf_take() - feed @bytes as if they had been received; for tests and fuzzers. False: the connection is
 * lost */
bool nvmf_take(struct nvmf_queue *queue);

/* request.c */

/** nvmf_request_of() - the request with @cid that the controller has; NULL: none */
struct nvmf_request *nvmf_request_of(struct nvmf_queue *queue, u16 cid);
/** nvmf_request_send() - put a request in line, as a capsule; from its beginning */
void nvmf_request_send(struct nvmf_queue *queue, struct nvmf_request *request);
/** nvmf_request_hold() - one that was sent: its carrier does not have it any more */
void nvmf_request_hold(struct nvmf_request *request);
/** nvmf_request_end() - a response came: end it now, or when nothing of it is being sent */
void nvmf_request_end(struct nvmf_queue *queue, struct nvmf_request *request, const struct nvme_cqe *cqe);
/** nvmf_request_sent() - one of its PDUs left */
void nvmf_request_sent(struct nvmf_queue *queue, struct nvmf_request *request);
/**
 * nvmf_command() - send a command of the host's own and wait for its end
 * @queue: connected
 * @sqe: without CID and data pointer
 * @data: @bytes that go @way
 * @cqe: out
 * @ms: what it may take
 *
 * Return: 0: @cqe is its response; else a negative errno with a sentence that begins with @what.
 */
int nvmf_command(struct nvmf_queue *queue, const struct nvme_sqe *sqe, void *data, u32 bytes,
		 enum nvmf_way way, const char *what, struct nvme_cqe *cqe, uint64_t ms);
/** nvmf_command_start() - the same, not waited for; @which of queue->internal must be free */
void nvmf_command_start(struct nvmf_queue *queue, unsigned which, const struct nvme_sqe *sqe, void *data,
			u32 bytes, enum nvmf_way way);

/* ring.c: lanes' end of a queue pair */

/** nvmf_ring_open() - begin with empty rings */
void nvmf_ring_open(struct nvmf_queue *queue, u64 sq, u64 cq, u32 size);
/** nvmf_ring_fetch() - take commands that were announced; how many */
unsigned nvmf_ring_fetch(struct nvmf_queue *queue);
/** nvmf_ring_rung() - whether a doorbell was rung that lets the queue go on */
bool nvmf_ring_rung(const struct nvmf_queue *queue);
/** nvmf_ring_post() - post the completion of a command that was taken */
void nvmf_ring_post(struct nvmf_queue *queue, u16 cid, u32 status, u32 dw0, u32 dw1);
/** nvmf_ring_take() - a free request for @sqe, or NULL: its CID is in use, and that was posted */
struct nvmf_request *nvmf_ring_take(struct nvmf_queue *queue, const struct nvme_sqe *sqe);
/** nvmf_ring_data() - find the data of a request; an NVMe status */
u32 nvmf_ring_data(struct nvmf_queue *queue, struct nvmf_request *request, u32 bytes, enum nvmf_way way);
/** nvmf_ring_check() - after a change of the DMA map */
void nvmf_ring_check(struct nvmf *nvmf);

/* bridge.c: admin commands of the ring */

/** nvmf_bridge_begin() - carry out @sqe, or send it */
void nvmf_bridge_begin(struct nvmf_queue *admin, const struct nvme_sqe *sqe);
/** nvmf_know_delays() - say to @nvmf's controller that this host knows retry delays, as lanes' host did; 0,
 * even if it refuses: then it gives none; or a negative errno with a sentence */
int nvmf_know_delays(struct nvmf *nvmf);
/** nvmf_bridge_end() - note what the controller says in answer, before its completion is posted */
void nvmf_bridge_end(struct nvmf_queue *admin, struct nvmf_request *request);
/** nvmf_note_controller() - take what is needed from Identify Controller's 4096 bytes, and hide what weir
 * does not carry over a network */
void nvmf_note_controller(struct nvmf *nvmf, u8 *identify);

/* authenticate.c */

/** nvmf_authenticate() - a queue that Connect has just answered with @authreq; 0 or a negative errno with a
 * sentence */
int nvmf_authenticate(struct nvmf_queue *queue, u32 authreq);

/* association.c */

/** nvmf_associate() - connect the admin queue with one host after the other; 0 or a negative errno with a
 * sentence */
int nvmf_associate(struct nvmf *nvmf);
/** nvmf_enable() - CC.EN = 1 and wait for CSTS.RDY */
int nvmf_enable(struct nvmf *nvmf, uint32_t cc);
/** nvmf_shutdown() - normal shutdown; 0: it is complete */
int nvmf_shutdown(struct nvmf *nvmf, uint32_t cc);
/** nvmf_connect_queue() - an I/O queue of the association; *@status: the controller's, where it says one */
int nvmf_connect_queue(struct nvmf_queue *queue, u32 *status);
/** nvmf_dissociate() - close all connections; requests of lanes are held */
void nvmf_dissociate(struct nvmf *nvmf);
/** nvmf_identify_again() - an enabled controller that lanes know: is it what they know? 0 or a negative errno
 * with a sentence */
int nvmf_identify_again(struct nvmf *nvmf);
/** nvmf_associate_again() - all of it, after a loss; then held requests are sent again */
int nvmf_associate_again(struct nvmf *nvmf);
/** nvmf_property_get() - a property; 0 or a negative errno with a sentence */
int nvmf_property_get(struct nvmf *nvmf, u32 offset, bool wide, u64 *value);
/** nvmf_hold_until() - what is held is sent again at @ns, and nothing new before it is answered */
void nvmf_hold_until(struct nvmf *nvmf, u64 ns);
/** nvmf_send_again() - what is held, by any path that has room */
void nvmf_send_again(struct nvmf *nvmf);

/* events.c */

/** nvmf_get_log() - @bytes of log page @log from @offset on; 0 or a negative errno with a sentence */
int nvmf_get_log(struct nvmf *nvmf, u8 log, uint64_t offset, void *to, u32 bytes, const char *what);
/** nvmf_events_begin() - ask an identified controller for its events; 0 or a negative errno */
int nvmf_events_begin(struct nvmf *nvmf);
/** nvmf_events_take() - deal with one that came; *@state: out where it is about ANA; 0 or a negative errno
 * with a sentence */
int nvmf_events_take(struct nvmf *nvmf, u32 nsid, u32 *state);
/** nvmf_read_ana() - the state of @nsid (0: the best) by the ANA log; 0 or a negative errno */
int nvmf_read_ana(struct nvmf *nvmf, u32 nsid, u32 *state);

/* keeper.c */

int nvmf_keeper_start(struct nvmf *nvmf);
/** nvmf_keeper_stop() - nothing is moved any more, and the thread has ended within @ms; 0 or -ETIMEDOUT */
int nvmf_keeper_stop(struct nvmf *nvmf, unsigned ms);
/** nvmf_keeper_wake() - something happened that it should know; any thread. Of a probe: whoever waits in
 * nvmf_poll() */
void nvmf_keeper_wake(struct nvmf *nvmf);

/* mover.c */

/** nvmf_mover_join() - one of the process's movers has this storage from now on; 0 or a negative errno with a
 * sentence */
int nvmf_mover_join(struct nvmf *nvmf);
/** nvmf_mover_leave() - it moves nothing of this storage any more */
void nvmf_mover_leave(struct nvmf *nvmf);
/** nvmf_mover_forget() - the storage's keeper has ended: it needs no mover */
void nvmf_mover_forget(struct nvmf *nvmf);
/** nvmf_mover_wake() - there may be something to move that no doorbell and no socket tells of */
void nvmf_mover_wake(const struct nvmf *nvmf);
/** nvmf_move() - take commands from rings, send, receive, post, without waiting; with @admin the admin
 * queue's commands, too, which may wait. Return: whether there was anything */
bool nvmf_move(struct nvmf *nvmf, bool admin);
/** nvmf_watch() - have epoll tell whoever moves of @events of @file, which @queue's connection is; 0 or a
 * negative errno with a sentence */
int nvmf_watch(struct nvmf_queue *queue, int file, uint32_t events);
/** nvmf_poll() - ask epoll what the sockets have, for at most @ns */
void nvmf_poll(struct nvmf *nvmf, uint64_t ns);

#endif
