/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.h: the ways to a subsystem; private to runtime/transport/fabrics.
 *
 * Who may touch what: a path's probe is its thread's alone. Its I/O queues are its thread's while they are
 * not live; from then on they belong to whoever has the storage's mutex, as the storage's own do. The keeper
 * alone takes them back with commands under way.
 */
#ifndef WEIR_FABRICS_PATHS_H
#define WEIR_FABRICS_PATHS_H

#include "nvmf.h"

/** enum nvmf_break - what became of the association of a path */
enum nvmf_break { NVMF_WHOLE, NVMF_BROKEN, NVMF_SILENT };

/**
 * struct nvmf_path - one of them, and its thread
 * @probe: its own association with @host alone, of @nvmf's hosts: the admin queue
 * @io: I/O queues of that association; NULL: the policy is to use one path
 * @granted: how many of them the controller allows
 * @live: commands may go by @io
 * @broken: enum nvmf_break, of what @live queues belong to
 * @check_ns: when Keep Alive is due next
 * @open_ns: @io is not tried before
 * @refused: a sentence said why @io cannot be used
 */
struct nvmf_path {
	struct nvmf *nvmf;
	struct nvmf *probe;
	struct nvmf *io;
	unsigned host;
	u32 granted;
	struct shared_u32 live;
	struct shared_u32 broken;
	u64 check_ns;
	u64 open_ns;
	u64 pause_ms;
	bool refused;
	pthread_t thread;
	bool started;
};

/* paths.c */

/** nvmf_paths_start() - a thread for each host, if there are several; 0 or a negative errno with a sentence
 */
int nvmf_paths_start(struct nvmf *nvmf);
/** nvmf_paths_stop() - their threads end, and what is theirs is gone */
void nvmf_paths_stop(struct nvmf *nvmf);
/** nvmf_path_rank() - of a state: the smaller, the better */
unsigned nvmf_path_rank(u32 state);
/** nvmf_path_rank_now() - of a host, as it is known and as far as it can be used */
unsigned nvmf_path_rank_now(const struct nvmf *nvmf, unsigned host);
void nvmf_path_set(struct nvmf *nvmf, unsigned host, u32 state);
u32 nvmf_path_state(const struct nvmf *nvmf, unsigned host);
/** nvmf_path_refuse() - the host of the association cannot be used now: another one first; for a while, if it
 * was
 * @connected to, since its path's thread will find nothing wrong there */
void nvmf_path_refuse(struct nvmf *nvmf, bool connected);
/** nvmf_path_order() - hosts, the best first, from the one in use on; how many */
unsigned nvmf_path_order(const struct nvmf *nvmf, unsigned order[WEIR_ADDRESS_MOST]);
/** nvmf_path_is_better() - than the one in use: another */
bool nvmf_path_is_better(const struct nvmf *nvmf);
/** nvmf_path_ask() - connect @probe, which has one host, and read its state; 0 or a negative errno with a
 * sentence */
int nvmf_path_ask(struct nvmf *probe, u32 nsid, u32 *state);
/** nvmf_path_keep() - the path's thread is busy otherwise: Keep Alive, if it is due; 0 or a negative errno
 * with a sentence */
int nvmf_path_keep(struct nvmf_path *path);

/* multipath.c: I/O queues at other paths than the one in use. The path's thread: */

/** nvmf_multipath_new() - memory for them; 0 or a negative errno with a sentence */
int nvmf_multipath_new(struct nvmf_path *path, const struct nvmf_keys *keys);
void nvmf_multipath_free(struct nvmf_path *path);
/** nvmf_multipath_tend() - connect them when they are wanted, and close them when they are not. False: one of
 * them was lost, and with it the association is */
bool nvmf_multipath_tend(struct nvmf_path *path);
/** nvmf_multipath_break() - the association is over */
void nvmf_multipath_break(struct nvmf_path *path, enum nvmf_break how);

/* Whoever has the storage's mutex: */

/** nvmf_multipath_io() - the I/O queues at @host that commands go by now; NULL: none */
struct nvmf *nvmf_multipath_io(const struct nvmf *nvmf, unsigned host);
/** nvmf_multipath_any() - there are some */
bool nvmf_multipath_any(const struct nvmf *nvmf);
/** nvmf_multipath_lost() - those at @host were lost, and the keeper is to take them back */
bool nvmf_multipath_lost(const struct nvmf *nvmf, unsigned host);
/** nvmf_multipath_any_lost() - those of any host */
bool nvmf_multipath_any_lost(const struct nvmf *nvmf);
/** nvmf_multipath_end() - close those at @host: their commands are held; what had become of them */
enum nvmf_break nvmf_multipath_end(struct nvmf *nvmf, unsigned host);
/** nvmf_multipath_connect() - a queue was created: at the other paths, too. May wait. True: each controller
 * has given its number again, and so has ended what was under way by the queue before */
bool nvmf_multipath_connect(struct nvmf *nvmf, u32 id);
/** nvmf_multipath_disconnect() - it was deleted */
void nvmf_multipath_disconnect(struct nvmf *nvmf, u32 id);

/* policy.c */

/** nvmf_home() - the queue whose ring @queue's commands are of */
static inline struct nvmf_queue *nvmf_home(struct nvmf_queue *queue)
{
	return queue->home ? queue->home : queue;
}

/** nvmf_requests() - of that ring */
static inline struct nvmf_request *nvmf_requests(const struct nvmf_queue *queue)
{
	return queue->home ? queue->home->requests : queue->requests;
}

/** nvmf_storage() - whose queue it is, by whatever path */
static inline struct nvmf *nvmf_storage(const struct nvmf_queue *queue)
{
	return queue->nvmf->storage ? queue->nvmf->storage : queue->nvmf;
}

/** nvmf_host_of() - of the storage's hosts: where @queue's connection leads */
unsigned nvmf_host_of(const struct nvmf_queue *queue);
/** nvmf_carrier() - the queue by which @home's next command goes: itself, or its like at another path; NULL:
 * none has room for one */
struct nvmf_queue *nvmf_carrier(struct nvmf_queue *home);
/** nvmf_takes_commands() - some path does, of @queue's ring: it has room, and a state that allows it */
bool nvmf_takes_commands(struct nvmf_queue *queue);
/** nvmf_carry() - send @request by @carrier, and count it */
void nvmf_carry(struct nvmf_queue *carrier, struct nvmf_request *request);

/* keeper.c */

/** nvmf_keep_alive() - send Keep Alive when it is due; without an answer to one the association is lost */
void nvmf_keep_alive(struct nvmf *nvmf, uint64_t now);

/* association.c */

/** nvmf_notice_ms() - how long a controller that is silent may take to notice that it is not heard either; 0:
 * it does not */
u64 nvmf_notice_ms(const struct nvmf *nvmf);
/** nvmf_has_late() - a controller may still carry out changes of @queue's ring: they have no answer */
bool nvmf_has_late(const struct nvmf_queue *queue);
/** nvmf_hold_changes() - nobody waits for those any more: no newer ones are sent before every controller must
 * have noticed; @id: the queue whose they all are, 0: of several, or of an association that is over */
void nvmf_hold_changes(struct nvmf *nvmf, u32 id);
/** nvmf_end_hold() - what queue @id had under way has ended: if nothing else is waited for, go on */
void nvmf_end_hold(struct nvmf *nvmf, u32 id);
/** nvmf_must_wait() - @request is a change, and there may still be older ones */
bool nvmf_must_wait(struct nvmf *nvmf, const struct nvmf_request *request);

/**
 * nvmf_ask_uuid() - the UUID that namespace @nsid has, before it is identified; a controller that does not
 * know the question leaves it without. 0, or a negative errno: the connection is lost
 */
int nvmf_ask_uuid(struct nvmf *nvmf, u32 nsid);
/** nvmf_check_namespace() - is it still what lanes know? 0, or a negative errno with a sentence */
int nvmf_check_namespace(struct nvmf *nvmf);
/** nvmf_check_transfer() - commands made for MDTS @mdts are not too long for @there; 0, or likewise */
int nvmf_check_transfer(const struct nvmf *nvmf, u8 mdts, u8 there);

#endif
