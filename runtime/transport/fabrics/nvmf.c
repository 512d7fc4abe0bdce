/* SPDX-License-Identifier: BSD-3-Clause */
/* nvmf.c: memory and files of an nvmf: storage, or of whoever asks a host without one. */
#include "nvmf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../../backend/error.h"
#include "paths.h"

void nvmf_free(struct nvmf *nvmf)
{
	nvmf_paths_stop(nvmf);
	nvmf_mover_forget(nvmf);
	for (u32 i = 0; nvmf->queues && i < nvmf->queue_count; i++) {
		nvmf_connection_close(&nvmf->queues[i]);
		nvmf->wire->destroy(&nvmf->queues[i]);
		free(nvmf->queues[i].requests);
		free(nvmf->queues[i].segments);
	}
	if (nvmf->wire && nvmf->wire->release)
		nvmf->wire->release(nvmf);
	if (nvmf->epoll >= 0)
		(void)close(nvmf->epoll);
	weir_sleeper_close(&nvmf->sleeper);
	pthread_mutex_destroy(&nvmf->mutex);
	weir_dma_view_release(&nvmf->view);
	free(nvmf->queues);
	free(nvmf->list);
	free(nvmf->uri);
	free(nvmf);
}

static int create_queues(struct nvmf *nvmf, unsigned queues)
{
	size_t segments = (size_t)(nvmf->keys.mdts / NVME_PAGE_BYTES) + 1;
	struct nvmf_queue *admin;

	nvmf->queue_count = queues + 1;
	nvmf->queues = calloc(nvmf->queue_count, sizeof(*nvmf->queues));
	nvmf->list = aligned_alloc(NVME_PAGE_BYTES, NVME_PAGE_BYTES);
	if (!nvmf->queues || !nvmf->list)
		return weir_fail(ENOMEM, "storage \"%s\": no memory for %u queues", nvmf->uri, queues);
	for (u32 i = 0; i < nvmf->queue_count; i++) {
		nvmf->queues[i].nvmf = nvmf;
		nvmf->queues[i].id = i;
		nvmf->queues[i].connection.socket = -1;
	}
	admin = &nvmf->queues[0];
	admin->requests = calloc(NVMF_ADMIN_RING, sizeof(*admin->requests));
	admin->segments = calloc(NVMF_ADMIN_RING * segments, sizeof(*admin->segments));
	if (!admin->requests || !admin->segments)
		return weir_fail(ENOMEM, "storage \"%s\": no memory for its admin queue", nvmf->uri);
	return nvmf_connection_create(admin, NVMF_ADMIN_RING);
}

static int create_events(struct nvmf *nvmf)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };

	int error = weir_sleeper_open(&nvmf->sleeper);

	if (error)
		return error;
	nvmf->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (nvmf->epoll >= 0 && epoll_ctl(nvmf->epoll, EPOLL_CTL_ADD, nvmf->sleeper.file, &event) == 0)
		return 0;
	return weir_fail(errno, "storage \"%s\": cannot make what its threads wait on: %s", nvmf->uri,
			 strerror(errno));
}

int nvmf_new(const char *uri, const struct nvmf_keys *keys, unsigned queues, struct nvmf **out)
{
	struct nvmf *nvmf;
	int error;

	if (keys->hosts.address[0].rdma && !nvmf_wire_rdma)
		return weir_fail(
			ENOTSUP,
			"storage \"%s\": this build has no RDMA transport; build weir with librdmacm-dev "
			"and libibverbs-dev, or write nvmf:tcp://HOST/NQN",
			uri);
	nvmf = calloc(1, sizeof(*nvmf));
	if (!nvmf)
		return weir_fail(ENOMEM, "storage \"%s\": no memory", uri);
	nvmf->keys = *keys;
	nvmf->epoll = nvmf->sleeper.file = nvmf->ring.file = -1;
	pthread_mutex_init(&nvmf->mutex, NULL);
	nvmf->wire = keys->hosts.address[0].rdma ? nvmf_wire_rdma : &nvmf_wire_tcp;
	nvmf->uri = strdup(uri);
	error = nvmf->uri ? create_queues(nvmf, queues) : weir_fail(ENOMEM, "storage \"%s\": no memory", uri);
	if (!error)
		error = create_events(nvmf);
	if (error) {
		nvmf_free(nvmf);
		return error;
	}
	*out = nvmf;
	return 0;
}
