/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.c: which path carries a command, chosen when it is taken from its ring.
 *
 * Owns: the choice. Of the paths that are connected those of the best ANA state count (Base 2.0,
 * section 8.1); a path of them whose queue is full is passed over, and none of a lesser state takes its
 * place.
 */
#include "paths.h"

unsigned nvmf_host_of(const struct nvmf_queue *queue)
{
	return queue->home ? queue->nvmf->number - 1 : queue->nvmf->host;
}

static bool works(const struct nvmf_queue *queue)
{
	return queue->connection.open && !queue->nvmf->lost;
}

static bool has_room(const struct nvmf_queue *queue)
{
	return queue->carried < queue->most && nvmf_room(queue) > NVMF_INTERNAL;
}

/* Where @home's commands could go by @host's path; NULL: nowhere now. */
static struct nvmf_queue *queue_at(struct nvmf_queue *home, unsigned host)
{
	struct nvmf *io = host == home->nvmf->host ? home->nvmf : nvmf_multipath_io(home->nvmf, host);

	return io && works(&io->queues[home->id]) ? &io->queues[home->id] : NULL;
}

static unsigned best_rank(struct nvmf_queue *home)
{
	unsigned best = UINT32_MAX;

	for (unsigned host = 0; host < home->nvmf->keys.hosts.count; host++) {
		unsigned rank = nvmf_path_rank_now(home->nvmf, host);

		if (rank < best && queue_at(home, host))
			best = rank;
	}
	return best;
}

/* Does @queue's path have fewer commands under way? */
static bool is_shorter(const struct nvmf_queue *queue, const struct nvmf_queue *than)
{
	return queue->nvmf->keys.policy == NVMF_QUEUE_DEPTH && queue->nvmf->under_way < than->nvmf->under_way;
}

/* Behind the path that carried the last command the next one, or the one with the fewest under way. */
static struct nvmf_queue *choose(struct nvmf_queue *home)
{
	const struct nvmf *nvmf = home->nvmf;
	unsigned count = nvmf->keys.hosts.count, rank = best_rank(home);
	struct nvmf_queue *chosen = NULL;

	for (unsigned i = 1; i <= count; i++) {
		unsigned host = (nvmf->last_host + i) % count;
		struct nvmf_queue *queue = queue_at(home, host);

		if (!queue || nvmf_path_rank_now(nvmf, host) != rank || !has_room(queue))
			continue;
		if (!chosen || is_shorter(queue, chosen))
			chosen = queue;
	}
	return chosen;
}

struct nvmf_queue *nvmf_carrier(struct nvmf_queue *home)
{
	if (home->id && home->nvmf->keys.policy != NVMF_FAILOVER && home->nvmf->keys.hosts.count > 1)
		return choose(home);
	return works(home) && has_room(home) ? home : NULL;
}

bool nvmf_takes_commands(struct nvmf_queue *queue)
{
	const struct nvmf_queue *carrier = nvmf_carrier(nvmf_home(queue));

	return carrier && nvmf_path_rank_now(nvmf_storage(queue), nvmf_host_of(carrier)) <=
				  nvmf_path_rank(NVME_ANA_NON_OPTIMIZED);
}

void nvmf_carry(struct nvmf_queue *carrier, struct nvmf_request *request)
{
	struct nvmf *nvmf = nvmf_storage(carrier);

	if (carrier->id) {
		nvmf->last_host = nvmf_host_of(carrier);
		count_u64(&nvmf->counters.carried[nvmf->last_host], 1);
	}
	nvmf_request_send(carrier, request);
}
