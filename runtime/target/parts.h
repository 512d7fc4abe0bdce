/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts.h: what the parts of the target offer one another; private to this folder.
 *
 * Who may touch what: a connection, its commands and its buffers belong to one server thread. Association
 * lists and controller numbers are under target.lock. Words that several threads read are atomic: each says
 * so.
 */
#ifndef WEIR_TARGET_PARTS_H
#define WEIR_TARGET_PARTS_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include <weir/nvme.h>
#include <weir/nvme_fabrics.h>

#include "../observe/publish.h"
#include "../transport/fabrics/chap.h"
#include "../transport/fabrics/tcp_pdu.h"
#include "../transport/fabrics/tls.h"
#include "../transport/identify_pages.h"
#include "../transport/transport.h"
#include "../transport/virtual/front.h"
#include "target.h"
#include "wire.h"

enum {
	TARGET_QUEUE_ENTRIES = 128,      /* of an I/O queue at most: CAP.MQES + 1 and MAXCMD */
	TARGET_IN_CAPSULE_BYTES = 8192,  /* data in a command capsule at most */
	TARGET_TRANSFER_BYTES = 1 << 20, /* data of a command at most, whatever its storage takes */
	TARGET_RECEIVE_BYTES = 1 << 17,  /* a server thread's receive buffer */
	TARGET_CONTROLLERS_MAX = 4096,   /* associations */
	TARGET_HELLO_MS = 10000,
	TARGET_LINGER_MS = 1000, /* for the other end to read why it is cut off */
	TARGET_KATO_MS_MAX = 3600 * 1000,
	TARGET_DEPTH = 1024, /* requests of a server thread that a storage is given at once */
	TARGET_LOST_KEPT = 64,
	TARGET_NO_LISTENER = 0xffff,
	TARGET_ANA_GROUP = 1, /* all namespaces of a subsystem are in it */
	TARGET_ANA_SECONDS = 10,
};

/* Events that hosts are notified of. */
enum { TARGET_EVENT_NAMESPACE = 1 << 0, TARGET_EVENT_ANA = 1 << 1, TARGET_EVENT_DISCOVERY = 1 << 2 };

/**
 * struct target_namespace - a storage
 * @nsid: its number
 * @uri: for people
 * @transport: what was opened; NULL: @core is our own
 * @core: its controller core
 * @medium: of that
 * @uuid: the same whenever the same is served
 * @detached: hosts do not see it; atomic
 * @read_only: as it was asked for
 */
struct target_namespace {
	u32 nsid;
	char *uri;
	atomic_bool detached;
	bool read_only;
	struct weir_transport *transport;
	struct weir_virtual *core;
	const struct weir_medium *medium;
	u8 uuid[WEIR_PAGE_UUID_BYTES];
};

/** struct target_secrets - of a host; none of it has bytes: it need not authenticate */
struct target_secrets {
	struct weir_chap_secret host;
	struct weir_chap_secret controller;
	struct weir_tls_key tls;
};

/** struct target_hosts - who may connect: @count names, none: anybody; @secrets: of each;
 * @tls: the TLS key of those without one of their own */
struct target_hosts {
	char **names;
	struct target_secrets *secrets;
	struct weir_tls_key tls;
	size_t count;
};

/**
 * struct target_subsystem - what hosts connect to
 * @namespaces: room for WEIR_TARGET_NAMESPACES_MAX; only the first @namespace_count are there, which grows
 * while threads serve: atomic
 * @hosts: under target.lock
 * @engine: its namespaces keep volumes
 */
struct target_subsystem {
	char *nqn;
	char serial[21];
	struct target_namespace *namespaces;
	atomic_size_t namespace_count;
	struct target_hosts hosts;
	bool engine;
	char *manager;      /* of an engine; NULL: any host */
	u32 transfer_bytes; /* least of its storages' */
};

struct connection;

/**
 * struct target_controller - an association: what a host connected to; of its admin connection's thread
 * but for
 * @next: under target.lock
 * @first, @ended: its connections; those that have ended, but not their commands; under target.lock
 * @references: connections that know it, ended ones too, under target.lock
 * @alive_ms: when its host was last heard; atomic
 * @ready: CSTS.RDY; not any more when its admin connection has ended; atomic
 * @queues: I/O queues granted; atomic
 * @events: TARGET_EVENT_ that its host is to be notified of; atomic
 * @changed: a bit for each namespace that changed since its host read the list; atomic
 * @reported: events that its host was notified of, and has not asked about
 * @listener: where its admin connection came in, or TARGET_NO_LISTENER
 * @subsystem: NULL: the discovery subsystem
 * @shutdown: what its end takes
 */
struct target_controller {
	struct target_controller *next;
	struct connection *first, *ended;
	unsigned references;
	atomic_ullong alive_ms;
	atomic_uint ready;
	atomic_uint events;
	atomic_ullong changed;
	u32 reported;
	const struct target_subsystem *subsystem;
	u16 cntlid, listener;
	u8 hostid[16];
	char hostnqn[NVME_NQN_LONGEST + 1];
	u32 cc, csts;
	u32 kato_ms;
	atomic_uint queues;
	u32 features[16];
	struct target_shutdown *shutdown;
};

enum command_state {
	COMMAND_FREE,
	COMMAND_RECEIVING, /* its capsule */
	COMMAND_GRANTING,  /* its R2T is to be sent */
	COMMAND_GRANTED,   /* its data is to be received */
	COMMAND_WAITING,   /* for the core */
	COMMAND_RUNNING,   /* in the core */
	COMMAND_KEPT,      /* answered later: Asynchronous Event Request, Disconnect */
	COMMAND_SENDING,
};

/**
 * struct command - a slot of a queue; its index is the transfer tag
 * @next: behind it in the connection's list of what is to be sent, or the server's of what waits
 * @connection: whose it is
 * @space: namespace, or NULL
 * @sqe: as the host sent it
 * @data: buffer, kept from command to command
 * @data_room: its size
 * @region: that buffer as an RDMA device knows it, or NULL
 * @data_bytes: bytes that the command's SGL describes
 * @received: of these, here
 * @sent: bytes of its PDUs
 * @from_host: its data comes from the host
 * @since_ms: when its capsule came
 * @bad_digest: that data is not what was sent
 * @twice: a fault: it is answered twice
 * @head: R2T or C2HData header
 * @head_bytes: how long, padding included; 0: none
 * @tail: data digest and response capsule
 * @tail_bytes: how long
 */
struct command {
	struct command *next;
	struct connection *connection;
	struct target_namespace *space;
	struct nvme_sqe sqe;
	u8 *data;
	u32 data_room;
	struct ibv_mr *region;
	u32 data_bytes;
	u32 received, sent;
	u32 sends_data;
	u32 status;
	u64 result;
	u64 since_ms;
	enum command_state state;
	u16 cid;
	bool from_host;
	bool bad_digest;
	bool twice;
	u8 head_bytes;
	u8 tail_bytes;
	union nvme_tcp_header head;
	u8 tail[NVME_TCP_DIGEST_BYTES + 2 * (sizeof(struct nvme_tcp_resp) + NVME_TCP_DIGEST_BYTES)];
};

enum connection_state {
	CONNECTION_NEW,  /* ICReq is awaited */
	CONNECTION_OPEN, /* Connect is awaited */
	CONNECTION_CONNECTED,
	CONNECTION_CLOSING,   /* what is to be sent is, and then it ends */
	CONNECTION_LINGERING, /* all is sent; the other end is to close */
	CONNECTION_DEAD,      /* its socket is closed; it ends when the core has ended its commands */
};

enum receive_phase {
	RECEIVE_COMMON,
	RECEIVE_HEADER,
	RECEIVE_PAD,
	RECEIVE_DATA,
	RECEIVE_DIGEST,
};

struct command_list {
	struct command *first;
	struct command *last;
};

/**
 * struct connection - a socket and its queue
 * @wire: what it is a connection of
 * @rdma: of RDMA, which has no socket, PDUs or TLS
 * @next: in its server's list
 * @sibling: in its controller's, under target.lock
 * @socket: -1: closed
 * @listener: where it came in, or TARGET_NO_LISTENER
 * @tls: between its socket and PDUs; NULL: nothing
 * @hailed: it is known whether it has that, and the handshake is over
 * @queue: what the core knows; its thread's
 * @chap: its host has to authenticate; NULL: it has not
 * @to_us: rules of what we receive
 * @to_host: rules of what we send
 * @phase: what of a PDU is awaited
 * @left: bytes of that
 * @into: where they go; NULL: they are left out
 * @layout: of the PDU
 * @header: its header
 * @digest: its data's digest
 * @subject: command whose data that is
 * @begin: what is in the server's buffer and was not looked at, while it is being received: from here
 * @end: to here
 * @out: commands with something to send
 * @note: ICResp or TermReq, sent behind them
 * @deadline_ms: it is closed then, unless it has come further; 0: none
 * @next_unsent: behind it in its server's list of those with something to send
 * @in_unsent: it is in that list
 * @running: commands whose end has not been sent
 * @free: unused slots
 * @data_begin: where the PDU's data began to go
 * @leaving: Disconnect, whose response is the queue's last
 * @changing: its commands in the core that change blocks; its thread's, which others read
 */
struct connection {
	const struct target_wire *wire;
	struct target_rdma *rdma;
	struct connection *next;
	struct connection *sibling;
	struct target_server *server;
	struct target_controller *controller;
	int socket;
	enum connection_state state;
	bool wants_write, flow_control;
	u16 qid, listener;
	u32 entries, sq_head, running;
	struct virtual_queue queue;
	struct weir_tls *tls;
	bool hailed;
	struct weir_chap *chap;
	struct command *commands;
	struct command *free;
	struct weir_tcp_rules to_us;
	struct weir_tcp_rules to_host;
	enum receive_phase phase;
	u32 left;
	u8 *into;
	struct weir_tcp_layout layout;
	union nvme_tcp_header header;
	u32 digest;
	struct command *subject;
	u8 *data_begin;
	u32 begin, end;
	struct command_list out;
	u8 note[256];
	u32 note_bytes, note_sent;
	u64 deadline_ms;
	struct connection *next_unsent;
	struct command *leaving;
	atomic_uint changing;
	bool in_unsent;
};

/** struct target_counters - of a server thread, for weir-stat; in this order published (observe/publish.h) */
struct target_counters {
	atomic_ullong open;
	atomic_ullong accepted;
	atomic_ullong refused;
	atomic_ullong bad_pdus;
	atomic_ullong commands;
	atomic_ullong reconnects; /* associations of hosts that had lost one */
	atomic_ullong bytes_in;   /* data of I/O commands */
	atomic_ullong bytes_out;
	atomic_ullong oldest_ms; /* since when the oldest command is here, at the last check; 0: none is */
};

WEIR_ASSERT_SIZE(struct target_counters, WEIR_TARGET_COUNTERS * sizeof(u64));

/** struct target_lost - an association that ended without a shutdown */
struct target_lost {
	const struct target_subsystem *subsystem;
	u8 hostid[16];
};

/**
 * struct target_server - a server thread
 * @wake: an eventfd
 * @connections: its own
 * @arrived: to become its own; under target.lock
 * @unsent: those with something to send
 * @dead: how many of its own are
 * @waiting: commands that the core does not take now
 * @buffer: what was received; it goes where it belongs at once, so that one does for all connections
 * @now_ms: the clock, read once per iteration
 * @next_check_ms: when deadlines are looked at next
 * @accept_retry_ms: nobody is accepted before; 0: all are
 */
struct target_server {
	struct weir_target *target;
	unsigned index;
	int epoll;
	int wake;
	bool started;
	pthread_t handle;
	struct connection *connections, *arrived, *unsent;
	unsigned dead;
	struct command_list waiting;
	u8 *buffer;
	u64 now_ms;
	u64 next_check_ms;
	u64 accept_retry_ms;
	struct target_counters counters;
} __attribute__((aligned(64)));

/** struct target_listener - @text: as it was asked for; @ana: state of the namespaces here; atomic; @rdma: it
 * listens by RDMA, and @socket is only waited for */
struct target_listener {
	int socket;
	struct rdma_cm_id *rdma;
	char address[80];
	char *text;
	atomic_uint ana;
};

struct weir_target {
	struct weir_dma_map *dma; /* empty */
	struct target_subsystem *subsystems;
	size_t subsystem_count;
	struct target_listener *listeners;
	size_t listener_count;
	struct target_server *servers;
	unsigned threads;
	unsigned queues;
	atomic_uint stopping; /* 1: drain, 2: at once */
	atomic_uint next_server;
	pthread_mutex_t lock;
	struct target_controller *controllers, *ended; /* these have connections left; @ended_count: atomic */
	atomic_uint ended_count;
	u16 last_cntlid;
	struct target_lost lost[TARGET_LOST_KEPT]; /* under @lock, as @lost_next */
	unsigned lost_next;
	struct weir_publication published;
	atomic_ullong ana_changes;
	atomic_ullong reloads;
};

/* subsystem.c: what is served; read only once the target was created */

int target_subsystem_open(struct weir_target *target, const struct weir_target_subsystem_options *options,
			  struct target_subsystem *subsystem);
void target_subsystem_close(struct target_subsystem *subsystem);
/** target_nqn_check() - -EINVAL with a sentence for a name that is none */
int target_nqn_check(const char *nqn);
const struct target_subsystem *target_subsystem_find(const struct weir_target *target, const char *nqn);
bool target_host_allowed(struct weir_target *target, const struct target_subsystem *subsystem,
			 const char *hostnqn);
/** target_namespace_of() - NULL: there is none of that number, or hosts do not see it */
struct target_namespace *target_namespace_of(const struct target_subsystem *subsystem, u32 nsid);
/** target_namespace_open() - open the storage of namespace @at + 1, which does not count yet */
int target_namespace_open(struct weir_target *target, const struct weir_target_subsystem_options *of,
			  const struct weir_target_namespace_options *options,
			  struct target_subsystem *subsystem, size_t at);
/** target_namespace_close() - close one that does not count, or that nobody serves any more */
void target_namespace_close(struct target_namespace *space);
/** target_hosts_load() - copy names, and read the secrets; 0 or a negative errno with a sentence */
int target_hosts_load(const struct weir_target_subsystem_options *options, struct target_hosts *hosts);
void target_hosts_free(struct target_hosts *hosts);

/** target_namespaces() - how many there are */
static inline size_t target_namespaces(const struct target_subsystem *subsystem)
{
	/* target.N1: pairs with the store in reload.c: a namespace is whole before it counts */
	return atomic_load_explicit(&subsystem->namespace_count, memory_order_acquire);
}

/* listen.c: sockets */

int target_listen(const char *text, struct target_listener *listener);
void target_listen_end(struct target_listener *listener);

/* server.c: threads and their loop */

int target_server_create(struct weir_target *target, unsigned index, struct target_server *server);
/** target_server_end() - end its connections; no thread steps it any more */
void target_server_end(struct target_server *server);
/** target_server_destroy() - after that, and after the storages were closed */
void target_server_destroy(struct target_server *server);
unsigned target_server_step(struct target_server *server, int ms);
void target_server_wake(struct target_server *server);
/** target_adopt() - a connection that came in by @listener */
int target_adopt(struct weir_target *target, int socket, u16 listener);
/** target_next_server() - whose the next connection is */
struct target_server *target_next_server(struct weir_target *target);
/** target_arrive() - a new connection goes to its server */
void target_arrive(struct connection *connection, u16 listener);
/** target_server_watch_storage() - of @space, by all server threads */
int target_server_watch_storage(struct weir_target *target, const struct target_namespace *space);
/** target_server_watch() - ask for a socket's events */
void target_server_watch(struct connection *connection, bool write);

/* connection.c: a socket from accept to end */

struct connection *target_connection_create(struct target_server *server, int socket);
/** target_connection_new() - one without a socket; NULL: no memory */
struct connection *target_connection_new(struct target_server *server, const struct target_wire *wire);
/** target_connection_heard() - its host is alive */
void target_connection_heard(struct connection *connection);
/** target_connection_end() - close it; what it still has in the core is left to end */
void target_connection_end(struct connection *connection);
/** target_connection_refuse() - end it with a TermReq about the PDU being received */
void target_connection_refuse(struct connection *connection, const struct weir_tcp_error *error);
/** target_connection_close() - end it once all that is to be sent is */
void target_connection_close(struct connection *connection);
/** target_connection_check() - end it if it is overdue, or the target stops */
void target_connection_check(struct connection *connection);
/** target_connection_collect() - free it if it is dead and nobody has anything of it any more; true then */
bool target_connection_collect(struct connection *connection);

/* receive.c: PDUs from the host */

/** target_receive() - read and deal with what is there, up to some amount; false: the connection has ended */
bool target_receive(struct connection *connection);

/* send.c: PDUs to the host */

/** target_send_soon() - have its server flush it in this iteration */
void target_send_soon(struct connection *connection);
/** target_cqe() - of a response */
struct nvme_cqe target_cqe(const struct command *command);
/** target_send_response() - put @command's end into the list; @sends_data: command->data_bytes go with it */
void target_send_response(struct command *command, u32 status, u64 result, bool sends_data);
/** target_send_last() - answer Disconnect, once nothing else of the queue is to be answered; true: now */
bool target_send_last(struct connection *connection);
/** target_send_note() - bytes of a PDU that is no command's */
void target_send_note(struct connection *connection, const void *bytes, u32 count);

/* command.c: commands of a queue, and their way to the core */

/** target_commands_create() - the slots of a queue; false: no memory */
bool target_commands_create(struct connection *connection, u32 entries);
/** target_commands_grow() - more slots; @command, the only one in use, moves: where to; NULL: no memory */
struct command *target_commands_grow(struct connection *connection, u32 entries, struct command *command);
/** target_commands_cancel() - its connection is dead: none waits any more, and the core ends what it can */
void target_commands_cancel(struct connection *connection);
void target_commands_destroy(struct connection *connection);
void target_command_free(struct command *command);
/** target_command_room() - make its buffer @bytes large; false: no memory */
bool target_command_room(struct command *command, u32 bytes);
/**
 * target_command_start() - a capsule's header is here: decide about its data
 * @in_capsule: bytes of data that follow it; only of a command that is COMMAND_RECEIVING afterwards
 *   they are kept
 */
void target_command_start(struct command *command, u32 in_capsule);
/** target_command_run() - all its data is here */
void target_command_run(struct command *command);
/** target_command_begin() - offer it to the core again; false: it still waits */
bool target_command_begin(struct command *command);
/** target_front - completions of the core */
extern const struct virtual_front target_front;

/* authenticate.c: who hosts are */

/** target_authenticate_begin() - a connection was accepted; *@authreq: out: dword 0 of Connect's answer;
 * false: no memory */
bool target_authenticate_begin(struct connection *connection, u32 *authreq);
void target_authenticate_end(struct connection *connection);
/** target_authenticate_run() - Authentication Send or Receive */
void target_authenticate_run(struct command *command);

/** target_may_command() - its host need not authenticate, or has */
static inline bool target_may_command(const struct connection *connection)
{
	return !connection->chap || connection->chap->done;
}

/* secure.c: TLS */

/** target_hail() - learn whether a new connection begins with TLS, and go on with its handshake; true: PDUs
 * can be received. The connection may have ended. */
bool target_hail(struct connection *connection);
/** target_may_connect() - this host's connection has the TLS that its key asks for, in its own name */
bool target_may_connect(struct connection *connection, const struct target_subsystem *subsystem,
			const char *hostnqn);
/** target_tls_key() - the key for a host of @subsystem; false: it needs none */
bool target_tls_key(struct weir_target *target, const struct target_subsystem *subsystem, const char *hostnqn,
		    struct weir_tls_key *out);

/* fabrics.c: Connect, properties, Disconnect */

void target_fabrics_run(struct command *command);

/* controller.c: associations */

struct target_controller *target_controller_create(struct connection *connection,
						   const struct target_subsystem *subsystem,
						   const struct nvme_fabrics_connect_data *data, u32 kato_ms);
/** target_controller_join() - an I/O queue's connection; an NVMe status */
u32 target_controller_join(struct connection *connection, const struct target_subsystem *subsystem,
			   const struct nvme_fabrics_connect_data *data, u16 qid, u32 *offset);
/** target_controller_leave() - a connection ends; with the admin queue's all others do */
void target_controller_leave(struct connection *connection);
/**
 * target_controller_can_end() - unless it is the admin queue's, and the controller has others, which would
 * end with it
 */
bool target_controller_can_end(struct connection *connection);
/** target_controller_follows() - what its host sent by an association that has ended still changes blocks */
bool target_controller_follows(struct weir_target *target, const struct target_controller *controller);
/** target_controller_drop() - an ended connection is freed, and perhaps the controller with the last one */
void target_controller_drop(struct connection *connection);
/** target_controller_expired() - the host has been silent for longer than the Keep Alive Timeout */
bool target_controller_expired(const struct target_controller *controller, u64 now_ms);
/** target_controller_csts() - CSTS */
u32 target_controller_csts(const struct target_controller *controller);

/* admin.c: the admin queue */

void target_admin_run(struct command *command);

/* discovery.c: the discovery log */

/** target_discovery_log() - @bytes from @offset on, zeros behind its end */
void target_discovery_log(const struct connection *connection, u64 offset, u8 *to, u32 bytes);

u64 target_now_ms(void);

static inline u32 target_refuse(u32 status)
{
	return status | NVME_STATUS_DNR;
}

static inline u8 target_opcode(const struct command *command)
{
	return (u8)command->sqe.cdw0;
}

static inline bool target_is_running(enum command_state state)
{
	return state == COMMAND_WAITING || state == COMMAND_RUNNING || state == COMMAND_SENDING;
}

static inline void target_command_set(struct command *command, enum command_state state)
{
	command->connection->running += target_is_running(state);
	command->connection->running -= target_is_running(command->state);
	command->state = state;
}

static inline void target_list_add(struct command_list *list, struct command *command)
{
	command->next = NULL;
	if (list->first)
		list->last->next = command;
	else
		list->first = command;
	list->last = command;
}

static inline struct command *target_list_take(struct command_list *list)
{
	struct command *first = list->first;

	if (first)
		list->first = first->next;
	return first;
}

#endif
