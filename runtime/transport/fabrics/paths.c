/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.c: the ways to a subsystem: which of them work, and in which ANA state.
 *
 * Owns: a thread for each host of a storage that has several. It keeps an admin queue of its own connected to
 * its host, so that a path is known to work before it is needed, and reads the ANA log when an event says
 * that it changed. What it finds it stores for the mover, which alone decides where commands go. Base 2.0,
 * section 8.1.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../backend/error.h"
#include "discover.h"
#include "paths.h"

enum {
	FIRST_PAUSE_MS = 100,
	MOST_PAUSE_MS = 2000,
	DEFAULT_PERIOD_MS = 2500, /* without Keep Alive */
	TEND_NS = 50000000, /* how long a state may go unseen by the thread of another path's I/O queues */
	MS = 1000000,
};

unsigned nvmf_path_rank(u32 state)
{
	switch (state) {
	case NVME_ANA_OPTIMIZED: return 0;
	case NVME_ANA_NON_OPTIMIZED: return 1;
	case NVMF_PATH_UNKNOWN: return 2;
	case NVME_ANA_CHANGE: return 3;
	case NVME_ANA_INACCESSIBLE: return 4;
	case NVME_ANA_PERSISTENT_LOSS: return 5;
	default: return 6;
	}
}

const char *weir_ana_text(uint32_t state)
{
	switch (state) {
	case NVMF_PATH_UNKNOWN: return "not known";
	case NVME_ANA_OPTIMIZED: return "optimized";
	case NVME_ANA_NON_OPTIMIZED: return "non-optimized";
	case NVME_ANA_INACCESSIBLE: return "inaccessible";
	case NVME_ANA_PERSISTENT_LOSS: return "persistent-loss";
	case NVME_ANA_CHANGE: return "change";
	default: return "lost";
	}
}

void nvmf_path_set(struct nvmf *nvmf, unsigned host, u32 state)
{
	store_relaxed_u64(&nvmf->counters.paths[host], state); /* relaxed: it stands for itself */
}

u32 nvmf_path_state(const struct nvmf *nvmf, unsigned host)
{
	return (u32)load_relaxed_u64(&nvmf->counters.paths[host]); /* relaxed: it stands for itself */
}

static unsigned rank_of(const struct nvmf *nvmf, unsigned host)
{
	if (nvmf->refused_ns[host] && nvmf_now_ns() < nvmf->refused_ns[host])
		return nvmf_path_rank(NVMF_PATH_LOST);
	return nvmf_path_rank(nvmf_path_state(nvmf, host));
}

unsigned nvmf_path_rank_now(const struct nvmf *nvmf, unsigned host)
{
	return rank_of(nvmf, host);
}

void nvmf_path_refuse(struct nvmf *nvmf, bool connected)
{
	if (nvmf_stopping(nvmf)) /* what was given up says nothing of the path */
		return;
	nvmf_path_set(nvmf, nvmf->host, NVMF_PATH_LOST);
	if (connected)
		nvmf->refused_ns[nvmf->host] = nvmf_now_ns() + NVMF_REFUSED_S * (u64)1000000000;
	nvmf->host = (nvmf->host + 1) % nvmf->keys.hosts.count;
}

unsigned nvmf_path_order(const struct nvmf *nvmf, unsigned order[WEIR_ADDRESS_MOST])
{
	unsigned count = nvmf->keys.hosts.count, used = 0;

	for (unsigned rank = 0; rank <= nvmf_path_rank(NVMF_PATH_LOST); rank++)
		for (unsigned i = 0; i < count; i++) {
			unsigned host = (nvmf->host + i) % count;

			if (used < count && rank_of(nvmf, host) == rank)
				order[used++] = host;
		}
	/* One that changed meanwhile may have been left out. */
	for (unsigned i = 0; used < count; i++)
		order[used++] = i % count;
	return count;
}

bool nvmf_path_is_better(const struct nvmf *nvmf)
{
	u32 state = nvmf_path_state(nvmf, nvmf->host);
	unsigned rank = nvmf_path_rank(state);

	if (state == NVMF_PATH_UNKNOWN)
		return false;
	for (unsigned i = 0; i < nvmf->keys.hosts.count; i++)
		if (rank_of(nvmf, i) < rank)
			return true;
	return false;
}

static int identify(struct nvmf *probe)
{
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_IDENTIFY, .cdw10 = NVME_CNS_CONTROLLER };
	u8 page[NVME_IDENTIFY_BYTES];
	struct nvme_cqe cqe;
	int error = nvmf_command(&probe->queues[0], &sqe, page, sizeof(page), NVMF_TO_HOST,
				 "Identify Controller", &cqe, NVMF_COMMAND_MS);

	if (!error && cqe.dw3 >> 17)
		error = weir_fail(EIO, "storage \"%s\": the controller refuses Identify Controller",
				  probe->uri);
	if (!error)
		nvmf_note_controller(probe, page);
	return error;
}

int nvmf_path_ask(struct nvmf *probe, u32 nsid, u32 *state)
{
	int error = nvmf_associate(probe);

	if (!error)
		error = nvmf_enable(probe, NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16);
	if (!error)
		error = identify(probe);
	if (!error)
		error = nvmf_read_ana(probe, nsid, state);
	return error;
}

static u32 nsid_of(const struct nvmf_path *path)
{
	return load_relaxed_u32(&path->nvmf->registers.nsid); /* relaxed: 0 until it is known */
}

static void publish(struct nvmf_path *path, u32 state)
{
	bool changed = nvmf_path_state(path->nvmf, path->host) != state;

	nvmf_path_set(path->nvmf, path->host, state);
	if (changed)
		nvmf_keeper_wake(path->nvmf);
}

static u64 period_ns(const struct nvmf *probe)
{
	u64 ms = probe->keys.keep_alive_ms ? probe->keys.keep_alive_ms / 2 : DEFAULT_PERIOD_MS;

	return (ms ? ms : 1) * MS;
}

static void lose(struct nvmf_path *path, int error)
{
	nvmf_multipath_break(path, error == -ETIMEDOUT ? NVMF_SILENT : NVMF_BROKEN);
	nvmf_dissociate(path->probe);
	path->probe->lost = false;
	publish(path, NVMF_PATH_LOST);
	nvmf_poll(path->probe, path->pause_ms * MS);
	path->pause_ms = path->pause_ms * 2 < MOST_PAUSE_MS ? path->pause_ms * 2 : MOST_PAUSE_MS;
}

static void begin(struct nvmf_path *path)
{
	struct nvmf *probe = path->probe;
	u32 state;
	int error = nvmf_path_ask(probe, nsid_of(path), &state);

	if (!error)
		error = nvmf_events_begin(probe);
	if (error) {
		lose(path, error);
		return;
	}
	path->pause_ms = FIRST_PAUSE_MS;
	path->check_ns = nvmf_now_ns() + period_ns(probe);
	publish(path, state);
}

/* Keep Alive, and the log once more: an event may have been missed. */
static int check(struct nvmf_path *path, u32 *state)
{
	static const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_KEEP_ALIVE };
	struct nvmf *probe = path->probe;
	struct nvme_cqe cqe;
	int error = 0;

	path->check_ns = nvmf_now_ns() + period_ns(probe);
	if (probe->keys.keep_alive_ms)
		error = nvmf_command(&probe->queues[0], &sqe, NULL, 0, NVMF_NO_DATA, "Keep Alive", &cqe,
				     probe->keys.keep_alive_ms);
	return error ? error : nvmf_read_ana(probe, nsid_of(path), state);
}

int nvmf_path_keep(struct nvmf_path *path)
{
	u32 state = NVMF_PATH_UNKNOWN;
	int error = nvmf_now_ns() < path->check_ns ? 0 : check(path, &state);

	if (!error && state != NVMF_PATH_UNKNOWN)
		publish(path, state);
	return error;
}

/* Until something comes, or is to be done. */
static void wait(struct nvmf_path *path)
{
	u64 now = nvmf_now_ns(), ns = now < path->check_ns ? path->check_ns - now : 0;

	nvmf_poll(path->probe, path->io && ns > TEND_NS ? TEND_NS : ns);
}

static void watch(struct nvmf_path *path)
{
	struct nvmf *probe = path->probe;
	u32 state = NVMF_PATH_UNKNOWN;
	int error = 0;

	/* What came behind the last answer was reported then, and is not again. */
	(void)nvmf_receive(&probe->queues[0]);
	(void)nvmf_send(&probe->queues[0]);
	if (!probe->event && !probe->lost)
		wait(path);
	(void)nvmf_receive(&probe->queues[0]);
	if (nvmf_stopping(probe))
		return;
	if (!probe->lost)
		error = nvmf_events_take(probe, nsid_of(path), &state);
	if (!error && !probe->lost && nvmf_now_ns() >= path->check_ns)
		error = check(path, &state);
	if (!error && !probe->lost && !nvmf_multipath_tend(path))
		error = -EIO;
	if (error || probe->lost)
		lose(path, error);
	else if (state != NVMF_PATH_UNKNOWN)
		publish(path, state);
}

static void *run(void *argument)
{
	struct nvmf_path *path = argument;

	while (!nvmf_stopping(path->probe)) {
		if (path->probe->associated)
			watch(path);
		else
			begin(path);
	}
	return NULL;
}

static int create(struct nvmf *nvmf, unsigned host, struct nvmf_path *path)
{
	struct nvmf_keys keys = nvmf->keys;
	int error;

	*path = (struct nvmf_path){ .nvmf = nvmf, .host = host, .pause_ms = FIRST_PAUSE_MS };
	keys.hosts = (struct weir_address_list){ .count = 1, .address = { nvmf->keys.hosts.address[host] } };
	keys.mdts = NVME_PAGE_BYTES;
	error = nvmf_new(nvmf->uri, &keys, 0, &path->probe);
	if (!error && keys.policy != NVMF_FAILOVER)
		error = nvmf_multipath_new(path, &keys);
	explicit_bzero(&keys, sizeof(keys));
	return error;
}

static int start(struct nvmf *nvmf, struct nvmf_path *path)
{
	int error = pthread_create(&path->thread, NULL, run, path);

	if (error)
		return weir_fail(error, "storage \"%s\": cannot start the thread of a path: %s", nvmf->uri,
				 strerror(error));
	pthread_setname_np(path->thread, "weir-path");
	path->started = true;
	return 0;
}

int nvmf_paths_start(struct nvmf *nvmf)
{
	unsigned count = nvmf->keys.hosts.count;
	struct nvmf_path *paths;
	int error = 0;

	if (count < 2)
		return 0;
	paths = calloc(count, sizeof(*paths));
	if (!paths)
		return weir_fail(ENOMEM, "storage \"%s\": no memory for %u paths", nvmf->uri, count);
	for (unsigned i = 0; i < count && !error; i++)
		error = create(nvmf, i, &paths[i]);
	pthread_mutex_lock(&nvmf->mutex);
	nvmf->paths = paths;
	pthread_mutex_unlock(&nvmf->mutex);
	for (unsigned i = 0; i < count && !error; i++)
		error = start(nvmf, &paths[i]);
	return error;
}

void nvmf_paths_stop(struct nvmf *nvmf)
{
	unsigned count = nvmf->paths ? nvmf->keys.hosts.count : 0;

	for (unsigned i = 0; i < count; i++) {
		struct nvmf *probe = nvmf->paths[i].probe;

		if (!probe)
			continue;
		store_relaxed_u32(&probe->registers.stop, 1); /* joining orders the rest */
		if (nvmf->paths[i].io)
			store_relaxed_u32(&nvmf->paths[i].io->registers.stop, 1);
		nvmf_keeper_wake(probe);
	}
	for (unsigned i = 0; i < count; i++) {
		if (nvmf->paths[i].started)
			(void)pthread_join(nvmf->paths[i].thread, NULL);
		nvmf_multipath_free(&nvmf->paths[i]);
		if (nvmf->paths[i].probe)
			nvmf_free(nvmf->paths[i].probe);
	}
	free(nvmf->paths);
	nvmf->paths = NULL;
}
