/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_nvmf.c: links to engines over NVMe/TCP: an admin queue and an I/O queue, without a mover thread.
 *
 * No Keep Alive: the daemon's own STATUS commands say whether an engine is there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../backend/error.h"
#include "../../transport/fabrics/nvmf.h"
#include "link.h"

enum {
	URI_BYTES = 256,
	QUEUE = 1,
	QUEUE_ENTRIES = 4,
	TRANSFER_BYTES = 8192,
	SETUP_MS = 3000,
};

struct link {
	struct volume_engine_link base;
	struct nvmf_keys keys;
	char uri[URI_BYTES];
	struct nvmf *nvmf; /* NULL: not connected */
};

static void disconnect(struct link *link)
{
	if (link->nvmf)
		nvmf_free(link->nvmf);
	link->nvmf = NULL;
}

static int admin(struct nvmf *nvmf, const struct nvme_sqe *sqe, void *data, const char *what)
{
	struct nvme_cqe cqe = { .dw3 = 0 };
	int error = nvmf_command(&nvmf->queues[0], sqe, data, data ? NVME_IDENTIFY_BYTES : 0,
				 data ? NVMF_TO_HOST : NVMF_NO_DATA, what, &cqe, SETUP_MS);

	if (!error && cqe.dw3 >> 17)
		error = weir_fail(EIO, "engine %s refuses %s with status %#x", nvmf->uri, what,
				  cqe.dw3 >> 17);
	return error;
}

static int identify(struct nvmf *nvmf)
{
	const struct nvme_sqe controller = { .cdw0 = NVME_ADMIN_IDENTIFY, .cdw10 = NVME_CNS_CONTROLLER };
	const struct nvme_sqe queues = { .cdw0 = NVME_ADMIN_SET_FEATURES,
					 .cdw10 = NVME_FEATURE_NUMBER_OF_QUEUES };
	u8 page[NVME_IDENTIFY_BYTES];
	int error = admin(nvmf, &controller, page, "Identify Controller");

	if (error)
		return error;
	nvmf_note_controller(nvmf, page);
	return admin(nvmf, &queues, NULL, "Set Features (Number of Queues)");
}

static int connect_io(struct nvmf *nvmf)
{
	struct nvmf_queue *queue = &nvmf->queues[QUEUE];
	u32 status;
	int error = nvmf_connection_create(queue, QUEUE_ENTRIES);

	queue->size = QUEUE_ENTRIES;
	return error ? error : nvmf_connect_queue(queue, &status);
}

static int link_open(struct volume_engine_link *base)
{
	struct link *link = (struct link *)base;
	int error;

	disconnect(link);
	error = nvmf_new(link->uri, &link->keys, QUEUE, &link->nvmf);
	if (error)
		return error;
	error = nvmf_associate(link->nvmf);
	if (!error)
		error = nvmf_enable(link->nvmf, NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16);
	if (!error)
		error = identify(link->nvmf);
	if (!error)
		error = connect_io(link->nvmf);
	if (error)
		disconnect(link);
	return error;
}

static int link_command(struct volume_engine_link *base, bool io, const struct nvme_sqe *sqe, void *data,
			uint32_t bytes, enum volume_way way, unsigned ms)
{
	static const enum nvmf_way ways[] = { [VOLUME_NO_DATA] = NVMF_NO_DATA,
					      [VOLUME_TO_ENGINE] = NVMF_TO_CONTROLLER,
					      [VOLUME_FROM_ENGINE] = NVMF_TO_HOST };
	struct link *link = (struct link *)base;
	struct nvme_cqe cqe = { .dw3 = 0 };
	int error;

	if (!link->nvmf)
		return weir_fail(ENOTCONN, "engine %s is not connected", link->uri);
	error = nvmf_command(&link->nvmf->queues[io ? QUEUE : 0], sqe, data, bytes, ways[way], link->uri,
			     &cqe, ms);
	if (!error)
		return (int)(cqe.dw3 >> 17 & NVME_STATUS_CODE_MASK);
	disconnect(link);
	return error;
}

static void link_close(struct volume_engine_link *base)
{
	disconnect((struct link *)base);
	free(base);
}

static const struct volume_engine_link_ops ops = { .open = link_open,
						   .command = link_command,
						   .close = link_close };

static int take_address(struct link *link, const char *address, const char *nqn)
{
	char body[URI_BYTES];

	snprintf(body, sizeof(body), "tcp://%s/%s", address, nqn);
	snprintf(link->uri, sizeof(link->uri), "nvmf:%.*s", URI_BYTES - 6, body);
	return weir_address_parse(link->uri, body, &link->keys.hosts, link->keys.nqn, sizeof(link->keys.nqn));
}

static int take_host(struct link *link, const char *hostnqn)
{
	int error = weir_host_identity(&link->keys.host);

	if (error || !hostnqn)
		return error;
	if (strncmp(hostnqn, "nqn.", 4) != 0 || strlen(hostnqn) > NVME_NQN_LONGEST)
		return weir_fail(EINVAL, "host NQN %s is none: it begins with \"nqn.\"", hostnqn);
	memset(link->keys.host.nqn, 0, sizeof(link->keys.host.nqn));
	memcpy(link->keys.host.nqn, hostnqn, strlen(hostnqn));
	return 0;
}

static int create(struct volume_linker *base, const char *address, const char *nqn,
		  struct volume_engine_link **out)
{
	const struct volume_linker_nvmf *linker = (const struct volume_linker_nvmf *)base;
	struct link *link = calloc(1, sizeof(*link));
	int error;

	if (!link)
		return weir_fail(ENOMEM, "no memory for a connection to engine %s", address);
	link->base.ops = &ops;
	link->keys.connect_ms = linker->connect_ms;
	link->keys.secret = linker->secret;
	link->keys.controller_secret = linker->controller_secret;
	link->keys.tls_key = linker->tls_key;
	link->keys.mdts = TRANSFER_BYTES;
	error = take_address(link, address, nqn);
	if (!error)
		error = take_host(link, linker->hostnqn);
	if (error) {
		free(link);
		return error;
	}
	*out = &link->base;
	return 0;
}

const struct volume_linker volume_linker_nvmf = { .create = create };
