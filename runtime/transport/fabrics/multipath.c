/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * multipath.c: I/O queues at other paths than the one in use, which carry commands beside its own.
 *
 * Owns: when they are connected and closed. The thread of a path connects them to the controller that it
 * keeps an admin queue with, and makes them live when each queue of the storage has its like there. A lost
 * connection of one, or of the admin queue, ends all of them: the keeper takes their commands back, and the
 * thread begins anew.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "../../backend/error.h"
#include "../../base/timeout.h"
#include "paths.h"

enum {
	LOCK_MS = 500,   /* whoever has the storage's mutex may wait for the network */
	AGAIN_MS = 1000, /* before queues that could not be connected are tried again */
	MS = 1000000,
};

int nvmf_multipath_new(struct nvmf_path *path, const struct nvmf_keys *keys)
{
	struct nvmf *nvmf = path->nvmf;
	int error = nvmf_new(nvmf->uri, keys, nvmf->queue_count - 1, &path->io);

	if (error)
		return error;
	path->io->storage = nvmf;
	path->io->number = path->host + 1;
	path->io->dma = nvmf->dma;
	path->io->mover = nvmf->mover;
	path->io->serial = nvmf->serial;
	for (u32 i = 1; i < nvmf->queue_count; i++)
		path->io->queues[i].home = &nvmf->queues[i];
	return 0;
}

void nvmf_multipath_free(struct nvmf_path *path)
{
	if (!path->io)
		return;
	path->io->mover = NULL; /* it is the storage's */
	nvmf_free(path->io);
}

/* ---- the path's thread ---- */

static bool lock(struct nvmf *nvmf)
{
	struct timespec until = weir_timeout_to_join(LOCK_MS);

	return pthread_mutex_timedlock(&nvmf->mutex, &until) == 0;
}

static bool is_live(const struct nvmf_path *path)
{
	/* fabrics.R3: pairs with nvmf_multipath_end(): what became of the queues */
	return load_acquire_u32(&path->live);
}

/* It is another one than the path in use, and as good. */
static bool is_wanted(const struct nvmf_path *path)
{
	const struct nvmf *nvmf = path->nvmf;
	/* relaxed, as states are: it stands for itself */
	unsigned used = (unsigned)load_relaxed_u64(&nvmf->counters.path);
	unsigned rank = nvmf_path_rank(nvmf_path_state(nvmf, path->host));

	return path->host != used && rank <= nvmf_path_rank(NVME_ANA_NON_OPTIMIZED) &&
	       rank <= nvmf_path_rank(nvmf_path_state(nvmf, used));
}

static void close_all(struct nvmf *io)
{
	for (u32 i = 1; i < io->queue_count; i++)
		nvmf_connection_close(&io->queues[i]);
}

/* The path is not wanted any more: once nothing is under way. */
static void retire(struct nvmf_path *path)
{
	if (!lock(path->nvmf))
		return;
	if (is_live(path) && !path->io->under_way) {
		close_all(path->io);
		path->io->associated = false;
		path->nvmf->late_queue = 0; /* its number is not asked for again there */
		store_release_u32(&path->live, 0);
		store_relaxed_u32(&path->broken, NVMF_WHOLE); /* relaxed: under the mutex */
	}
	pthread_mutex_unlock(&path->nvmf->mutex);
}

static bool has_queues(const struct nvmf *nvmf)
{
	return nvmf->enabled && nvmf->queue_count > 1 && nvmf->queues[1].has_sq;
}

/* What lanes know of the controller in use. -EAGAIN: they do not have it yet. */
static int note_storage(struct nvmf_path *path, struct nvmf_controller *used, u32 *queues_asked, bool *delays)
{
	bool known;

	if (!lock(path->nvmf))
		return -EAGAIN;
	known = has_queues(path->nvmf);
	*used = path->nvmf->controller;
	*queues_asked = path->nvmf->queues_asked;
	*delays = path->nvmf->retry_delays;
	pthread_mutex_unlock(&path->nvmf->mutex);
	return known ? 0 : -EAGAIN;
}

/* How many I/O queues the controller allows. */
static int ask_for_queues(struct nvmf_path *path, u32 asked)
{
	struct nvmf *probe = path->probe;
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_SET_FEATURES,
				      .cdw10 = NVME_FEATURE_NUMBER_OF_QUEUES,
				      .cdw11 = asked };
	struct nvme_cqe cqe;
	u32 submission, completion;
	int error = nvmf_command(&probe->queues[0], &sqe, NULL, 0, NVMF_NO_DATA,
				 "Set Features (Number of Queues)", &cqe, NVMF_COMMAND_MS);

	if (!error && cqe.dw3 >> 17)
		error = weir_fail(EIO, "storage \"%s\": the controller refuses I/O queues with status %#x",
				  probe->uri, cqe.dw3 >> 17);
	if (error)
		return error;
	submission = (cqe.dw0 & 0xffff) + 1, completion = (cqe.dw0 >> 16) + 1;
	path->granted = submission < completion ? submission : completion;
	return 0;
}

/* It leads to the disk that lanes know. */
static int check_disk(struct nvmf_path *path, const struct nvmf_controller *used)
{
	struct nvmf_controller *there = &path->probe->controller;
	int error;

	there->nsid = used->nsid;
	there->blocks = used->blocks;
	there->block_log2 = used->block_log2;
	memcpy(there->ids, used->ids, sizeof(used->ids));
	error = nvmf_check_namespace(path->probe);
	there->nsid = 0; /* a change of it is the storage's to notice */
	return error ? error : nvmf_check_transfer(path->nvmf, used->mdts, there->mdts);
}

/* Entries: as many as at home, as far as the controller goes. */
static u32 entries_of(const struct nvmf_queue *queue)
{
	u32 most = (queue->nvmf->controller.cap & 0xffff) + 1, size = queue->home->size;

	return size < most ? size : most;
}

static int shape(struct nvmf_queue *queue)
{
	queue->size = entries_of(queue);
	return nvmf_connection_create(queue, queue->home->size);
}

/* The first that the storage has and this path has not; those that the storage does not have are closed. */
static struct nvmf_queue *find_missing(struct nvmf_path *path)
{
	struct nvmf_queue *missing = NULL;

	for (u32 i = 1; i < path->io->queue_count; i++) {
		struct nvmf_queue *queue = &path->io->queues[i];

		if (!queue->home->has_sq || queue->size != entries_of(queue))
			nvmf_connection_close(queue);
		if (queue->home->has_sq && !queue->connection.open && i <= path->granted && !missing)
			missing = queue;
	}
	return missing;
}

/* Under the mutex: whoever uses them has it. */
static void go_live(struct nvmf_path *path)
{
	path->io->associated = true;
	store_release_u32(&path->live, 1);
}

/* Connect one queue. *@done: none is missing, and they are live. */
static int connect_next(struct nvmf_path *path, bool *done)
{
	struct nvmf *nvmf = path->nvmf;
	struct nvmf_queue *queue;
	int error = 0;
	u32 status;

	if (!lock(nvmf))
		return -EAGAIN;
	queue = has_queues(nvmf) ? find_missing(path) : NULL;
	*done = !queue;
	if (queue)
		error = shape(queue);
	else if (has_queues(nvmf))
		go_live(path);
	pthread_mutex_unlock(&nvmf->mutex);
	return error || !queue ? error : nvmf_connect_queue(queue, &status);
}

static int connect_all(struct nvmf_path *path)
{
	struct nvmf_controller used;
	bool done = false, delays = false;
	u32 asked;
	int error = note_storage(path, &used, &asked, &delays);

	if (!error && delays)
		error = nvmf_know_delays(path->probe);
	if (!error)
		error = ask_for_queues(path, asked);
	if (!error)
		error = check_disk(path, &used);
	path->io->controller = path->probe->controller;
	path->io->lost = path->io->silent = false;
	while (!error && !done && !nvmf_stopping(path->io)) {
		error = connect_next(path, &done);
		if (!error && !done) /* nothing goes by them yet; many take longer than Keep Alive */
			error = nvmf_path_keep(path);
	}
	return error;
}

static bool leads_elsewhere(int error)
{
	return error == -EXDEV || error == -ENOSPC || error == -EMSGSIZE;
}

static void open_queues(struct nvmf_path *path)
{
	int error = connect_all(path);

	if (is_live(path)) {
		path->refused = false;
		nvmf_mover_wake(path->nvmf);
		return;
	}
	close_all(path->io);
	if (!error || error == -EAGAIN || path->probe->lost || nvmf_stopping(path->io))
		return;
	if (!path->refused)
		weir_report("%s", weir_last_error());
	path->refused = true;
	path->open_ns = nvmf_now_ns() + (leads_elsewhere(error) ? NVMF_REFUSED_S * 1000 : AGAIN_MS) * (u64)MS;
}

bool nvmf_multipath_tend(struct nvmf_path *path)
{
	if (!path->io)
		return true;
	if (is_live(path)) {
		if (!is_wanted(path))
			retire(path);
		return true;
	}
	if (path->io->lost) {
		path->io->lost = false;
		return false;
	}
	if (is_wanted(path) && nvmf_now_ns() >= path->open_ns)
		open_queues(path);
	return !path->probe->lost;
}

void nvmf_multipath_break(struct nvmf_path *path, enum nvmf_break how)
{
	if (!path->io)
		return;
	if (!is_live(path)) {
		path->io->lost = false; /* of the association that is over */
		return;
	}
	store_relaxed_u32(&path->broken, how); /* relaxed: a state alone */
	nvmf_keeper_wake(path->nvmf);
}

/* ---- whoever has the storage's mutex ---- */

struct nvmf *nvmf_multipath_io(const struct nvmf *nvmf, unsigned host)
{
	return nvmf->paths && is_live(&nvmf->paths[host]) ? nvmf->paths[host].io : NULL;
}

bool nvmf_multipath_any(const struct nvmf *nvmf)
{
	for (unsigned i = 0; nvmf->paths && i < nvmf->keys.hosts.count; i++)
		if (nvmf_multipath_io(nvmf, i))
			return true;
	return false;
}

bool nvmf_multipath_lost(const struct nvmf *nvmf, unsigned host)
{
	const struct nvmf *io = nvmf_multipath_io(nvmf, host);

	/* relaxed: a state alone */
	return io && (io->lost || load_relaxed_u32(&nvmf->paths[host].broken) != NVMF_WHOLE);
}

bool nvmf_multipath_any_lost(const struct nvmf *nvmf)
{
	for (unsigned i = 0; nvmf->paths && i < nvmf->keys.hosts.count; i++)
		if (nvmf_multipath_lost(nvmf, i))
			return true;
	return false;
}

enum nvmf_break nvmf_multipath_end(struct nvmf *nvmf, unsigned host)
{
	struct nvmf_path *path = &nvmf->paths[host];
	u32 how = exchange_u32(&path->broken, NVMF_WHOLE);

	nvmf_dissociate(path->io);
	if (how != NVMF_WHOLE) /* the path's thread knows */
		path->io->lost = false;
	/* fabrics.R3: pairs with is_live(): from here on they are the path's thread's */
	store_release_u32(&path->live, 0);
	nvmf_keeper_wake(path->probe);
	return how == NVMF_WHOLE ? NVMF_BROKEN : (enum nvmf_break)how;
}

/* A controller that does not answer may still carry out what it has of other queues. */
static bool connect_at(struct nvmf *io, u32 id)
{
	u32 status = 0;

	if (shape(&io->queues[id]) == 0 && nvmf_connect_queue(&io->queues[id], &status) == 0)
		return true;
	io->silent = !status;
	nvmf_lose(io, "%s", weir_last_error());
	return false;
}

bool nvmf_multipath_connect(struct nvmf *nvmf, u32 id)
{
	bool all = true;

	for (unsigned i = 0; i < nvmf->keys.hosts.count; i++) {
		struct nvmf *io = nvmf_multipath_io(nvmf, i);

		if (io && id <= nvmf->paths[i].granted)
			all = !nvmf_multipath_lost(nvmf, i) && connect_at(io, id) && all;
	}
	return all;
}

void nvmf_multipath_disconnect(struct nvmf *nvmf, u32 id)
{
	for (unsigned i = 0; i < nvmf->keys.hosts.count; i++) {
		struct nvmf *io = nvmf_multipath_io(nvmf, i);

		if (io)
			nvmf_connection_close(&io->queues[id]);
	}
}
