/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bridge.c: admin commands as the runtime gives them to any controller.
 *
 * Owns: the difference between queues in memory and queues of a network: creating one connects, deleting one
 * disconnects. Everything else goes to the controller, and what that says of itself is noted on the way back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../backend/error.h"
#include "../identify_pages.h"
#include "paths.h"

enum {
	HOST_BEHAVIOR_BYTES = 512,
	FLUSH_MS = 10000,
	IDENTIFY_MS = 5000,
	VERSION_OF_DESCRIPTORS = 0x10300, /* as of which every controller knows the list */
	OACS_BYTE = 257, /* Identify Controller: OACS 15:8, of which bit 0 is Doorbell Buffer Config */
	OACS_DOORBELLS = 1,
	MDTS_BYTE = 77,
	OAES_BYTE = 92,
	NGUID_BYTE = 104,
	EUI64_BYTE = 120,
	EUI64_BYTES = 8,
	FLBAS_BYTE = 26,
	NLBAF_BYTE = 25,
	LBAF_BYTE = 128,
	MOST_CAPSULE_DATA = 64 << 10,
};

static u32 refuse(u32 status)
{
	return status | NVME_STATUS_DNR;
}

static struct nvmf_queue *queue_of(struct nvmf *nvmf, const struct nvme_sqe *sqe)
{
	u32 id = sqe->cdw10 & 0xffff;

	return id && id < nvmf->queue_count ? &nvmf->queues[id] : NULL;
}

/* Where a ring lies is only known from both commands: the completion ring's address waits in the queue. */
static u32 create_cq(struct nvmf *nvmf, const struct nvme_sqe *sqe)
{
	struct nvmf_queue *queue = queue_of(nvmf, sqe);
	u32 size = (sqe->cdw10 >> 16) + 1;

	if (!queue || queue->has_cq)
		return refuse(NVME_STATUS_INVALID_QID);
	if (size < 2 || size > (nvmf->controller.cap & 0xffff) + 1)
		return refuse(NVME_STATUS_INVALID_QUEUE_SIZE);
	if (!weir_dma_view_find(&nvmf->view, sqe->prp1, size * sizeof(struct nvme_cqe)))
		return refuse(NVME_STATUS_INVALID_FIELD);
	queue->cq = (struct nvme_cqe *)(uintptr_t)sqe->prp1;
	queue->size = size;
	queue->has_cq = true;
	return NVME_STATUS_SUCCESS;
}

static bool allocate(struct nvmf_queue *queue, u32 size)
{
	size_t segments = (size_t)(queue->nvmf->keys.mdts / NVME_PAGE_BYTES) + 1;

	free(queue->requests);
	free(queue->segments);
	queue->requests = calloc(size, sizeof(*queue->requests));
	queue->segments = calloc(size * segments, sizeof(*queue->segments));
	queue->inflight = 0;
	return queue->requests && queue->segments && nvmf_connection_create(queue, size) == 0;
}

/*
 * Behind a reset a target that leaves is one to be looked for: whoever hears that the queue was not connected
 * learns that, too. At first whoever opens the storage is told why instead.
 */
static void note_leaving(struct nvmf *nvmf, u32 status)
{
	if (!nvmf->falls_done)
		return;
	nvmf->queues[0].connection.readable = true; /* its end may have come */
	(void)nvmf_receive(&nvmf->queues[0]);
	if (!status)
		nvmf_lose(nvmf, "%s", weir_last_error());
	if (nvmf->lost)
		store_release_u32(&nvmf->registers.connected, 0);
}

static u32 connect_queue(struct nvmf_queue *queue)
{
	u32 status = NVME_STATUS_PATH_HOST;

	if (nvmf_connect_queue(queue, &status) == 0)
		return NVME_STATUS_SUCCESS;
	weir_report("%s", weir_last_error());
	note_leaving(queue->nvmf, status);
	return status ? status : NVME_STATUS_PATH_HOST;
}

static u32 create_sq(struct nvmf *nvmf, const struct nvme_sqe *sqe)
{
	struct nvmf_queue *queue = queue_of(nvmf, sqe);
	u32 size = (sqe->cdw10 >> 16) + 1, status;

	if (!queue || queue->has_sq)
		return refuse(NVME_STATUS_INVALID_QID);
	if (!queue->has_cq || sqe->cdw11 >> 16 != queue->id)
		return refuse(NVME_STATUS_INVALID_CQ);
	if (size != queue->size)
		return refuse(NVME_STATUS_INVALID_QUEUE_SIZE);
	if (!weir_dma_view_find(&nvmf->view, sqe->prp1, size * sizeof(struct nvme_sqe)))
		return refuse(NVME_STATUS_INVALID_FIELD);
	if (!allocate(queue, size))
		return NVME_STATUS_INTERNAL_ERROR;
	store_relaxed_u32(&nvmf->doorbells[2 * queue->id],
			  0); /* relaxed: lanes ring after the completion of this command */
	store_relaxed_u32(&nvmf->doorbells[2 * queue->id + 1], 0);
	nvmf_ring_open(queue, sqe->prp1, (u64)(uintptr_t)queue->cq, size);
	status = connect_queue(queue);
	queue->has_sq = !status;
	if (!status && nvmf_multipath_connect(nvmf, queue->id))
		nvmf_end_hold(nvmf, queue->id);
	return status;
}

/* What was acknowledged is durable before the last queue goes: a shutdown of a controller on a network may
 * leave that out. */
static void flush(struct nvmf_queue *queue)
{
	struct nvmf *nvmf = queue->nvmf;
	const struct nvme_sqe sqe = { .cdw0 = NVME_OPCODE_FLUSH, .nsid = nvmf->controller.nsid };
	struct nvme_cqe cqe = { .dw3 = 0 };

	if (!nvmf->wrote || queue->inflight || !queue->connection.open)
		return;
	if (nvmf_command(queue, &sqe, NULL, 0, NVMF_NO_DATA, "Flush before the end", &cqe, FLUSH_MS) != 0 ||
	    cqe.dw3 >> 17)
		nvmf->unflushed = true;
	nvmf->wrote = false;
}

/* Nobody waits for its answer any more. */
static void drop(struct nvmf *nvmf, struct nvmf_request *request)
{
	if (request->state == NVMF_SENT)
		nvmf_request_hold(request);
	nvmf->resent_open -= request->resent;
	request->resent = false;
	request->state = NVMF_FREE;
}

static u32 delete_sq(struct nvmf *nvmf, const struct nvme_sqe *sqe)
{
	struct nvmf_queue *queue = queue_of(nvmf, sqe);

	if (!queue || !queue->has_sq)
		return refuse(NVME_STATUS_INVALID_QID);
	flush(queue);
	if (nvmf_has_late(queue))
		nvmf_hold_changes(nvmf, queue->id);
	nvmf_connection_close(queue);
	nvmf_multipath_disconnect(nvmf, queue->id);
	for (u32 i = 0; i < queue->size && queue->requests; i++)
		drop(nvmf, &queue->requests[i]);
	queue->has_sq = false;
	queue->inflight = 0;
	return NVME_STATUS_SUCCESS;
}

static u32 delete_cq(struct nvmf *nvmf, const struct nvme_sqe *sqe)
{
	struct nvmf_queue *queue = queue_of(nvmf, sqe);

	if (!queue || !queue->has_cq)
		return refuse(NVME_STATUS_INVALID_QID);
	if (queue->has_sq)
		return refuse(NVME_STATUS_INVALID_QUEUE_DELETION);
	queue->has_cq = false;
	return NVME_STATUS_SUCCESS;
}

/* What goes to the controller, with its data. Return: an NVMe status. */
static u32 find_data(struct nvmf_queue *admin, struct nvmf_request *request)
{
	const struct nvme_sqe *sqe = &request->sqe;

	switch (sqe->cdw0 & 0xff) {
	case NVME_ADMIN_IDENTIFY: return nvmf_ring_data(admin, request, NVME_IDENTIFY_BYTES, NVMF_TO_HOST);
	case NVME_ADMIN_GET_LOG_PAGE:
		return nvmf_ring_data(admin, request, ((sqe->cdw10 >> 16) + 1) * 4, NVMF_TO_HOST);
	case NVME_ADMIN_SET_FEATURES:
		return nvmf_ring_data(admin, request,
				      (sqe->cdw10 & 0xff) == NVME_FEATURE_HOST_BEHAVIOR ? HOST_BEHAVIOR_BYTES
											: 0,
				      NVMF_TO_CONTROLLER);
	case NVME_ADMIN_GET_FEATURES:
	case NVME_ADMIN_ABORT: return NVME_STATUS_SUCCESS;
	default: return refuse(NVME_STATUS_INVALID_OPCODE);
	}
}

static void forward(struct nvmf_queue *admin, const struct nvme_sqe *sqe)
{
	struct nvmf_request *request = nvmf_ring_take(admin, sqe);
	u32 status;

	if (!request)
		return;
	status = find_data(admin, request);
	if (status) {
		nvmf_ring_post(admin, request->cid, status, 0, 0);
		return;
	}
	admin->inflight++;
	nvmf_carry(admin, request);
}

static bool is_identify(const struct nvme_sqe *sqe, u32 cns)
{
	return (sqe->cdw0 & 0xff) == NVME_ADMIN_IDENTIFY && (sqe->cdw10 & 0xff) == cns;
}

int nvmf_ask_uuid(struct nvmf *nvmf, u32 nsid)
{
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_IDENTIFY,
				      .nsid = nsid,
				      .cdw10 = NVME_CNS_DESCRIPTORS };
	u8 list[NVME_IDENTIFY_BYTES];
	const u8 *uuid = NULL;
	struct nvme_cqe cqe;
	int error;

	memset(nvmf->uuid, 0, sizeof(nvmf->uuid));
	if (nvmf->controller.vs < VERSION_OF_DESCRIPTORS)
		return 0;
	error = nvmf_command(&nvmf->queues[0], &sqe, list, sizeof(list), NVMF_TO_HOST,
			     "Identify Namespace Identification Descriptor list", &cqe, IDENTIFY_MS);
	if (!error && !(cqe.dw3 >> 17))
		uuid = weir_page_descriptor(list, WEIR_PAGE_UUID, sizeof(nvmf->uuid));
	if (uuid)
		memcpy(nvmf->uuid, uuid, sizeof(nvmf->uuid));
	return error;
}

/* A command is late, and is to be aborted: a controller that has failed ends none any more. It is not waited
 * for, since other paths go on. */
static void ask_for_status(struct nvmf_queue *admin)
{
	const struct nvme_fabrics_property get = { .opcode = NVME_OPCODE_FABRICS,
						   .fctype = NVME_FCTYPE_PROPERTY_GET,
						   .offset = NVME_PROPERTY_CSTS,
						   .attrib = NVME_PROPERTY_4_BYTES };
	struct nvme_sqe sqe;

	memcpy(&sqe, &get, sizeof(sqe));
	if (admin->internal[NVMF_STATUS].state == NVMF_FREE && nvmf_room(admin) > 1)
		nvmf_command_start(admin, NVMF_STATUS, &sqe, NULL, 0, NVMF_NO_DATA);
}

void nvmf_bridge_begin(struct nvmf_queue *admin, const struct nvme_sqe *sqe)
{
	struct nvmf *nvmf = admin->nvmf;
	u32 status;

	if (is_identify(sqe, NVME_CNS_NAMESPACE))
		(void)nvmf_ask_uuid(nvmf, sqe->nsid); /* a failure loses the connection */
	if ((sqe->cdw0 & 0xff) == NVME_ADMIN_ABORT)
		ask_for_status(admin);
	switch (sqe->cdw0 & 0xff) {
	case NVME_ADMIN_CREATE_CQ: status = create_cq(nvmf, sqe); break;
	case NVME_ADMIN_CREATE_SQ: status = create_sq(nvmf, sqe); break;
	case NVME_ADMIN_DELETE_SQ: status = delete_sq(nvmf, sqe); break;
	case NVME_ADMIN_DELETE_CQ: status = delete_cq(nvmf, sqe); break;
	default: forward(admin, sqe); return;
	}
	nvmf_ring_post(admin, (u16)(sqe->cdw0 >> 16), status, 0, 0);
}

static u32 word(const u8 *bytes, u32 offset, u32 count)
{
	u32 value = 0;

	memcpy(&value, bytes + offset, count);
	return value;
}

/* MDTS in pages of 4 KiB; 0: no limit. */
static u8 transfer_limit(const struct nvmf *nvmf, u8 mdts)
{
	u8 own = (u8)__builtin_ctzll(nvmf->keys.mdts / NVME_PAGE_BYTES);

	return mdts && mdts < own ? mdts : own;
}

void nvmf_note_controller(struct nvmf *nvmf, u8 *identify)
{
	struct nvmf_controller *controller = &nvmf->controller;
	u32 ioccsz = word(identify, NVME_ID_CTRL_IOCCSZ, 4), icdoff = word(identify, NVME_ID_CTRL_ICDOFF, 2);
	u64 capsule = (u64)ioccsz * 16;

	controller->maxcmd = word(identify, NVME_ID_CTRL_MAXCMD, 2);
	controller->kas = (u16)word(identify, NVME_ID_CTRL_KAS, 2);
	controller->oaes = word(identify, OAES_BYTE, 4);
	controller->has_ana = identify[NVME_ID_CTRL_CMIC] & NVME_CMIC_ANA;
	controller->mdts = identify[MDTS_BYTE];
	controller->capsule_data = 0;
	if (!icdoff && capsule > NVME_CAPSULE_COMMAND_BYTES &&
	    (word(identify, NVME_ID_CTRL_SGLS, 4) & NVME_SGLS_OFFSET))
		controller->capsule_data = capsule < MOST_CAPSULE_DATA
						   ? (u32)capsule - NVME_CAPSULE_COMMAND_BYTES
						   : MOST_CAPSULE_DATA;
	identify[OACS_BYTE] &= (u8)~OACS_DOORBELLS;
	identify[MDTS_BYTE] = transfer_limit(nvmf, identify[MDTS_BYTE]);
}

static void note_namespace(struct nvmf *nvmf, u32 nsid, const u8 *identify)
{
	u8 flbas = identify[FLBAS_BYTE];
	u32 format = (flbas & 0xfu) | (identify[NLBAF_BYTE] > 15 ? (flbas & 0x60u) >> 1 : 0);
	u32 log2 = identify[LBAF_BYTE + 4 * format + 2];

	memcpy(&nvmf->controller.blocks, identify, sizeof(nvmf->controller.blocks));
	memcpy(nvmf->controller.ids[NVMF_NGUID], identify + NGUID_BYTE, NVMF_ID_BYTES);
	memcpy(nvmf->controller.ids[NVMF_EUI64], identify + EUI64_BYTE, EUI64_BYTES);
	memcpy(nvmf->controller.ids[NVMF_UUID], nvmf->uuid, NVMF_ID_BYTES);
	store_relaxed_u32(&nvmf->registers.nsid, nsid); /* relaxed: paths read it some time later */
	nvmf->controller.nsid = nsid;
	nvmf->controller.block_log2 = log2 < 16 ? log2 : 0;
}

int nvmf_know_delays(struct nvmf *nvmf)
{
	u8 behavior[HOST_BEHAVIOR_BYTES] = { 1 }; /* ACRE: retry delays are known here */
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_SET_FEATURES, .cdw10 = NVME_FEATURE_HOST_BEHAVIOR };
	struct nvme_cqe cqe;

	return nvmf_command(&nvmf->queues[0], &sqe, behavior, sizeof(behavior), NVMF_TO_CONTROLLER,
			    "Set Features (Host Behavior Support)", &cqe, NVMF_COMMAND_MS);
}

void nvmf_bridge_end(struct nvmf_queue *admin, struct nvmf_request *request)
{
	struct nvmf *nvmf = admin->nvmf;
	const struct nvme_sqe *sqe = &request->sqe;
	u8 *data = request->segment_count == 1 ? request->segments[0].iov_base : NULL;

	if (is_identify(sqe, NVME_CNS_CONTROLLER) && data) {
		nvmf_note_controller(nvmf, data);
		nvmf->events_due = true;
	}
	if (is_identify(sqe, NVME_CNS_NAMESPACE) && data)
		note_namespace(nvmf, sqe->nsid, data);
	if ((sqe->cdw0 & 0xff) == NVME_ADMIN_SET_FEATURES &&
	    (sqe->cdw10 & 0xff) == NVME_FEATURE_NUMBER_OF_QUEUES)
		nvmf->queues_asked = sqe->cdw11;
	if ((sqe->cdw0 & 0xff) == NVME_ADMIN_SET_FEATURES &&
	    (sqe->cdw10 & 0xff) == NVME_FEATURE_HOST_BEHAVIOR)
		nvmf->retry_delays = true;
}
