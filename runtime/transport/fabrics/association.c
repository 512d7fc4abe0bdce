/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * association.c: a host and a controller, from Connect to the last connection's end.
 *
 * Owns: fabrics commands; what becomes of commands when a connection is lost. One lost connection ends the
 * association: all are closed, and a new association, or other paths, send what lanes still wait for again.
 * Base 2.0, sections 3.1.3, 3.5.2, 6.
 *
 * Sending again is safe because nothing new is taken from rings before all of it is answered: whatever a
 * command wrote before the loss it writes again, with no acknowledged write of this host in between. A
 * controller that fell silent, and may still work on what it has, gets the Keep Alive time to notice.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../../backend/error.h"
#include "../opcode.h"
#include "paths.h"

enum {
	POLL_EVERY_NS = 2000000,
	SHUTDOWN_MS = 60000, /* who asked for it says when that is too long (runtime/storage/admin.c) */
	LEAST_NOTICE_MS = 1500,
	CAP_TO_SHIFT = 24,
	CAP_TO_UNIT_MS = 500,
	MOST_QUEUE_TRIES = 20, /* of Connect, while the controller still ends the queue's last connection */
	QUEUE_TRY_NS = 20000000,
};

void nvmf_lose(struct nvmf *nvmf, const char *format, ...)
{
	va_list arguments;

	if (nvmf->lost)
		return;
	va_start(arguments, format);
	vsnprintf(nvmf->reason, sizeof(nvmf->reason), format, arguments);
	va_end(arguments);
	nvmf->lost = true;
}

static u32 status_of(const struct nvme_cqe *cqe)
{
	return (cqe->dw3 >> 17) & NVME_STATUS_CODE_MASK;
}

static const char *host_text(const struct nvmf *nvmf, char text[WEIR_ADDRESS_BYTES + 16])
{
	return weir_address_text(&nvmf->keys.hosts.address[nvmf->host], text);
}

/* Which of the values of Connect a controller does not take. */
static int refuse_parameters(const struct nvmf *nvmf, const struct nvme_cqe *cqe, const char *where)
{
	u32 offset = NVME_CONNECT_IPO(cqe->dw0);
	bool data = cqe->dw0 & NVME_CONNECT_IATTR_DATA;

	if (data && offset == offsetof(struct nvme_fabrics_connect_data, subnqn))
		return weir_fail(ENOENT,
				 "storage \"%s\": %s has no subsystem %s; weir-fabrics discover %s lists "
				 "those that it has",
				 nvmf->uri, where, nvmf->keys.nqn, where);
	if (data && offset == offsetof(struct nvme_fabrics_connect_data, hostnqn))
		return weir_fail(EACCES, "storage \"%s\": %s does not accept host %s; allow it at the target",
				 nvmf->uri, where, nvmf->keys.host.nqn);
	return weir_fail(
		EINVAL,
		"storage \"%s\": %s refuses Connect: its %s has a value at byte %u that it does not accept",
		nvmf->uri, where, data ? "data" : "command", offset);
}

static int refuse_connect(const struct nvmf_queue *queue, const struct nvme_cqe *cqe)
{
	const struct nvmf *nvmf = queue->nvmf;
	char where[WEIR_ADDRESS_BYTES + 16];

	host_text(nvmf, where);
	switch (status_of(cqe)) {
	case NVME_STATUS_CONNECT_INVALID_PARAMETERS: return refuse_parameters(nvmf, cqe, where);
	case NVME_STATUS_CONNECT_INVALID_HOST:
		return weir_fail(
			EACCES,
			"storage \"%s\": %s does not accept host %s for subsystem %s; allow it at the target",
			nvmf->uri, where, nvmf->keys.host.nqn, nvmf->keys.nqn);
	case NVME_STATUS_AUTHENTICATION_REQUIRED:
		return weir_fail(
			EACCES,
			"storage \"%s\": %s takes host %s by TLS only; give tls_psk=, the file with its "
			"key",
			nvmf->uri, where, nvmf->keys.host.nqn);
	case NVME_STATUS_CONNECT_CONTROLLER_BUSY:
		return weir_fail(EBUSY, "storage \"%s\": %s has no controller left for another host",
				 nvmf->uri, where);
	default:
		return weir_fail(EIO, "storage \"%s\": %s refuses Connect to queue %u with status %#x",
				 nvmf->uri, where, queue->id, status_of(cqe));
	}
}

static int connect_command(struct nvmf_queue *queue, u32 entries, struct nvme_cqe *cqe)
{
	struct nvmf *nvmf = queue->nvmf;
	struct nvme_fabrics_connect command = { .opcode = NVME_OPCODE_FABRICS,
						.fctype = NVME_FCTYPE_CONNECT,
						.qid = (u16)queue->id,
						.sqsize = (u16)(entries - 1),
						.kato = queue->id ? 0 : (u32)nvmf->keys.keep_alive_ms };
	struct nvme_fabrics_connect_data data = { .cntlid = queue->id ? nvmf->controller.cntlid
								      : NVME_CNTLID_DYNAMIC };
	struct nvme_sqe sqe;

	memcpy(data.hostid, nvmf->keys.host.id, sizeof(data.hostid));
	memcpy(data.subnqn, nvmf->keys.nqn, sizeof(data.subnqn));
	memcpy(data.hostnqn, nvmf->keys.host.nqn, sizeof(data.hostnqn));
	memcpy(&sqe, &command, sizeof(sqe));
	return nvmf_command(queue, &sqe, &data, sizeof(data), NVMF_TO_CONTROLLER, "Connect", cqe,
			    nvmf->keys.connect_ms);
}

static int connect_queue(struct nvmf_queue *queue, u32 entries, struct nvme_cqe *cqe)
{
	struct nvmf *nvmf = queue->nvmf;
	int error = nvmf_connection_open(queue, &nvmf->keys.hosts.address[nvmf->host]);

	if (!error)
		error = connect_command(queue, entries, cqe);
	if (!error && status_of(cqe))
		error = refuse_connect(queue, cqe);
	if (!error)
		error = nvmf_authenticate(queue, NVME_CONNECT_AUTHREQ(cqe->dw0));
	if (error)
		nvmf_connection_close(queue);
	return error;
}

/* Its number may still be in use at the controller, which learns a moment later that the last connection
 * ended. */
static bool is_passing(const struct nvme_cqe *cqe)
{
	return status_of(cqe) && !(cqe->dw3 >> 17 & NVME_STATUS_DNR);
}

static u32 smaller(u32 a, u32 b)
{
	return a < b ? a : b;
}

int nvmf_connect_queue(struct nvmf_queue *queue, u32 *status)
{
	const struct nvmf_controller *controller = &queue->nvmf->controller;
	struct nvme_cqe cqe = { .dw3 = 0 };
	int error = 0;

	for (unsigned i = 0; i < MOST_QUEUE_TRIES; i++) {
		cqe.dw3 = 0;
		error = connect_queue(queue, queue->size, &cqe);
		if (!error || !is_passing(&cqe) || nvmf_stopping(queue->nvmf))
			break;
		nanosleep(&(struct timespec){ .tv_nsec = QUEUE_TRY_NS }, NULL);
	}
	*status = cqe.dw3 >> 17;
	queue->most = queue->size - 1;
	if (controller->maxcmd)
		queue->most = smaller(queue->most, controller->maxcmd);
	return error;
}

static struct nvme_sqe property(u8 fctype, u32 offset, bool wide, u64 value)
{
	struct nvme_fabrics_property command = { .opcode = NVME_OPCODE_FABRICS,
						 .fctype = fctype,
						 .offset = offset,
						 .attrib =
							 wide ? NVME_PROPERTY_8_BYTES : NVME_PROPERTY_4_BYTES,
						 .value = value };
	struct nvme_sqe sqe;

	memcpy(&sqe, &command, sizeof(sqe));
	return sqe;
}

static int property_command(struct nvmf *nvmf, const struct nvme_sqe *sqe, const char *what, u32 offset,
			    u64 *value)
{
	struct nvme_cqe cqe;
	int error = nvmf_command(&nvmf->queues[0], sqe, NULL, 0, NVMF_NO_DATA, what, &cqe, NVMF_COMMAND_MS);

	if (!error && status_of(&cqe))
		error = weir_fail(EIO,
				  "storage \"%s\": the controller refuses %s of property %#x with status %#x",
				  nvmf->uri, what, offset, status_of(&cqe));
	if (!error)
		*value = cqe.dw0 | (u64)cqe.dw1 << 32;
	return error;
}

int nvmf_property_get(struct nvmf *nvmf, u32 offset, bool wide, u64 *value)
{
	const struct nvme_sqe sqe = property(NVME_FCTYPE_PROPERTY_GET, offset, wide, 0);
	int error = property_command(nvmf, &sqe, "Property Get", offset, value);

	if (!wide)
		*value &= UINT32_MAX;
	return error;
}

static int property_set(struct nvmf *nvmf, u32 offset, u32 value)
{
	const struct nvme_sqe sqe = property(NVME_FCTYPE_PROPERTY_SET, offset, false, value);
	u64 ignored;

	return property_command(nvmf, &sqe, "Property Set", offset, &ignored);
}

static int associate_with(struct nvmf *nvmf, unsigned host)
{
	struct nvmf_queue *admin = &nvmf->queues[0];
	struct nvme_cqe cqe;
	u64 vs = 0;
	int error;

	nvmf->host = host;
	nvmf->lost = false;
	error = connect_queue(admin, NVMF_ADMIN_ENTRIES, &cqe);
	if (error)
		return error;
	nvmf->controller.cntlid = (u16)NVME_CONNECT_CNTLID(cqe.dw0);
	error = nvmf_property_get(nvmf, NVME_PROPERTY_CAP, true, &nvmf->controller.cap);
	if (!error)
		error = nvmf_property_get(nvmf, NVME_PROPERTY_VS, false, &vs);
	nvmf->controller.vs = (u32)vs;
	if (error)
		nvmf_connection_close(admin);
	admin->most = NVMF_ADMIN_ENTRIES - 1;
	return error;
}

int nvmf_associate(struct nvmf *nvmf)
{
	unsigned order[WEIR_ADDRESS_MOST], count = nvmf_path_order(nvmf, order);
	int error = -EHOSTUNREACH;

	for (unsigned i = 0; i < count && error && !nvmf_stopping(nvmf); i++)
		error = associate_with(nvmf, order[i]);
	if (error)
		return error;
	store_relaxed_u64(&nvmf->counters.path, nvmf->host); /* relaxed: a snapshot of counters */
	nvmf->associated = true;
	nvmf->silent_ns = 0;
	nvmf->alive_ns = nvmf_now_ns() + nvmf->keys.keep_alive_ms * 1000000 / 2;
	return 0;
}

static int wait_csts(struct nvmf *nvmf, u32 mask, u32 value, uint64_t ms, const char *what)
{
	uint64_t end_ns = nvmf_now_ns() + ms * 1000000;
	u64 csts = 0;

	for (;;) {
		int error = nvmf_property_get(nvmf, NVME_PROPERTY_CSTS, false, &csts);

		if (error)
			return error;
		if ((csts & mask) == value)
			return 0;
		if (csts & NVME_CSTS_FATAL) {
			nvmf->failures++;
			return weir_fail(
				EIO,
				"storage \"%s\": the controller reports a fatal status (CSTS %#llx) while %s",
				nvmf->uri, (unsigned long long)csts, what);
		}
		if (nvmf_now_ns() > end_ns)
			return weir_fail(ETIMEDOUT,
					 "storage \"%s\": the controller did not finish %s within %llu ms",
					 nvmf->uri, what, (unsigned long long)ms);
		nvmf_poll(nvmf, POLL_EVERY_NS);
	}
}

int nvmf_enable(struct nvmf *nvmf, uint32_t cc)
{
	uint64_t ms = ((nvmf->controller.cap >> CAP_TO_SHIFT & 0xff) + 1) * CAP_TO_UNIT_MS;
	int error = property_set(nvmf, NVME_PROPERTY_CC, cc);

	/* One that has failed may say that it is ready, too. */
	return error ? error
		     : wait_csts(nvmf, NVME_CSTS_READY | NVME_CSTS_FATAL, NVME_CSTS_READY, ms, "its start");
}

int nvmf_shutdown(struct nvmf *nvmf, uint32_t cc)
{
	int error = nvmf->associated ? property_set(nvmf, NVME_PROPERTY_CC, cc) : -EIO;

	if (!error)
		error = wait_csts(nvmf, NVME_CSTS_SHUTDOWN_MASK, NVME_CSTS_SHUTDOWN_DONE, SHUTDOWN_MS,
				  "its shutdown");
	if (!error && nvmf->unflushed)
		error = weir_fail(EIO, "storage \"%s\": its last Flush failed", nvmf->uri);
	else if (!error && nvmf->wrote) /* no queue was without commands at its end */
		error = weir_fail(EIO, "storage \"%s\": no Flush could be sent beside its last commands",
				  nvmf->uri);
	return error;
}

/* Requests of lanes wait for the next association; what was answered ends as that says. */
static void hold(struct nvmf_queue *queue)
{
	const struct nvmf_queue *home = nvmf_home(queue);

	nvmf_connection_close(queue);
	for (u32 i = 0; i < home->size && home->requests; i++) {
		struct nvmf_request *request = &home->requests[i];

		if (request->state != NVMF_SENT || request->carrier != queue)
			continue;
		if (request->answered) {
			request->sending = 1;
			nvmf_request_sent(queue, request);
		} else {
			nvmf_request_hold(request);
		}
	}
}

void nvmf_dissociate(struct nvmf *nvmf)
{
	for (u32 i = 0; i < nvmf->queue_count; i++)
		hold(&nvmf->queues[i]);
	nvmf->associated = false;
}

/* Nothing new is taken before it is answered. */
static void note_resent(struct nvmf_queue *queue, struct nvmf_request *request)
{
	if (!request->resent && queue->id)
		queue->nvmf->resent_open++;
	request->resent = queue->id != 0;
}

static void try_again(struct nvmf *nvmf, u64 when_ns)
{
	nvmf->rerouted = true;
	nvmf->retry_ns = when_ns;
}

static void send_queue_again(struct nvmf_queue *queue)
{
	for (u32 i = 0; i < queue->size && queue->requests; i++) {
		struct nvmf_request *request = &queue->requests[i];
		struct nvmf_queue *carrier;

		if (request->state != NVMF_HELD)
			continue;
		note_resent(queue, request);
		carrier = nvmf_carrier(queue);
		if (!carrier) {
			try_again(queue->nvmf, nvmf_now_ns());
			continue;
		}
		nvmf_carry(carrier, request);
		count_u64(&queue->nvmf->counters.resent, 1);
	}
}

void nvmf_hold_until(struct nvmf *nvmf, u64 ns)
{
	for (u32 i = 1; i < nvmf->queue_count; i++)
		for (u32 j = 0; j < nvmf->queues[i].size && nvmf->queues[i].requests; j++)
			if (nvmf->queues[i].requests[j].state == NVMF_HELD)
				note_resent(&nvmf->queues[i], &nvmf->queues[i].requests[j]);
	nvmf->hold_ns = ns > nvmf->hold_ns ? ns : nvmf->hold_ns;
	nvmf->late_queue = 0;
	try_again(nvmf, nvmf->hold_ns);
}

/* As of the last Keep Alive weir-target gives a host a second more than it agreed on, and looks twice a
 * second.
 */
u64 nvmf_notice_ms(const struct nvmf *nvmf)
{
	u64 ms = nvmf->keys.keep_alive_ms;

	return ms && ms < LEAST_NOTICE_MS ? LEAST_NOTICE_MS : ms;
}

bool nvmf_has_late(const struct nvmf_queue *queue)
{
	for (u32 i = 0; i < queue->size && queue->requests; i++) {
		const struct nvmf_request *request = &queue->requests[i];

		if (request->state == NVMF_SENT && !request->answered &&
		    weir_opcode_changes((u8)request->sqe.cdw0))
			return true;
	}
	return false;
}

/* The last Keep Alive that a controller took may have been just now. */
void nvmf_hold_changes(struct nvmf *nvmf, u32 id)
{
	u64 now = nvmf_now_ns(), ms = nvmf->keys.keep_alive_ms + nvmf_notice_ms(nvmf);

	nvmf->late_queue = now < nvmf->hold_ns ? 0 : id;
	if (now + ms * 1000000 > nvmf->hold_ns)
		nvmf->hold_ns = now + ms * 1000000;
}

void nvmf_end_hold(struct nvmf *nvmf, u32 id)
{
	if (nvmf->late_queue != id)
		return;
	nvmf->hold_ns = nvmf->retry_ns = 0;
	nvmf->late_queue = 0;
}

bool nvmf_must_wait(struct nvmf *nvmf, const struct nvmf_request *request)
{
	if (!nvmf->hold_ns || !weir_opcode_changes((u8)request->sqe.cdw0))
		return false;
	if (nvmf_now_ns() >= nvmf->hold_ns) {
		nvmf->hold_ns = 0;
		return false;
	}
	if (!nvmf->rerouted)
		try_again(nvmf, nvmf->hold_ns);
	return true;
}

void nvmf_send_again(struct nvmf *nvmf)
{
	bool held = nvmf_now_ns() < nvmf->hold_ns;

	for (u32 i = 0; i < (held ? 1 : nvmf->queue_count); i++)
		send_queue_again(&nvmf->queues[i]);
	if (held)
		try_again(nvmf, nvmf->hold_ns);
}

static int admin_command(struct nvmf *nvmf, const struct nvme_sqe *sqe, void *data, const char *what)
{
	struct nvme_cqe cqe;
	int error = nvmf_command(&nvmf->queues[0], sqe, data, data ? NVME_IDENTIFY_BYTES : 0,
				 data ? NVMF_TO_HOST : NVMF_NO_DATA, what, &cqe, NVMF_COMMAND_MS);

	if (!error && status_of(&cqe))
		error = weir_fail(status_of(&cqe) == NVME_STATUS_INVALID_NAMESPACE ? ENODEV : EIO,
				  "storage \"%s\": the controller refuses %s with status %#x", nvmf->uri,
				  what, status_of(&cqe));
	return error;
}

/* Each identifier that the namespace had it still has. */
static bool is_another(const struct nvmf_controller *before, const struct nvmf_controller *now)
{
	static const u8 none[NVMF_ID_BYTES];

	for (unsigned i = 0; i < NVMF_IDS; i++)
		if (memcmp(before->ids[i], none, sizeof(none)) != 0 &&
		    memcmp(before->ids[i], now->ids[i], sizeof(none)) != 0)
			return true;
	return false;
}

/* The same disk, and none of it is missing. */
static int compare_namespaces(const struct nvmf *nvmf, const struct nvmf_controller *before)
{
	const struct nvmf_controller *now = &nvmf->controller;
	char where[WEIR_ADDRESS_BYTES + 16];

	if (is_another(before, now))
		return weir_fail(
			EXDEV,
			"storage \"%s\": namespace %u at %s is another one than before; paths lead to "
			"one subsystem",
			nvmf->uri, before->nsid, host_text(nvmf, where));
	if (now->blocks >= before->blocks && now->block_log2 == before->block_log2)
		return 0;
	return weir_fail(ENOSPC,
			 "storage \"%s\": namespace %u had %llu blocks of %u bytes and has %llu of %u now",
			 nvmf->uri, before->nsid, (unsigned long long)before->blocks,
			 1u << before->block_log2, (unsigned long long)now->blocks, 1u << now->block_log2);
}

/* What lanes know of the namespace must still be true. */
int nvmf_check_namespace(struct nvmf *nvmf)
{
	struct nvmf_controller before = nvmf->controller;
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_IDENTIFY,
				      .nsid = before.nsid,
				      .cdw10 = NVME_CNS_NAMESPACE };
	u8 data[NVME_IDENTIFY_BYTES];
	struct iovec segment = { data, sizeof(data) };
	struct nvmf_request answer = { .sqe = sqe, .segments = &segment, .segment_count = 1 };
	int error = before.nsid ? nvmf_ask_uuid(nvmf, before.nsid) : 0;

	if (!error && before.nsid)
		error = admin_command(nvmf, &sqe, data, "Identify Namespace");
	if (error == -ENODEV)
		error = weir_fail(
			ENODEV,
			"storage \"%s\": namespace %u is not there any more; requests end until it is "
			"attached again",
			nvmf->uri, before.nsid);
	if (error || !before.nsid)
		return error;
	nvmf_bridge_end(&nvmf->queues[0], &answer);
	error = compare_namespaces(nvmf, &before);
	if (error)
		nvmf->controller = before;
	return error;
}

int nvmf_check_transfer(const struct nvmf *nvmf, u8 mdts, u8 there)
{
	u8 own = (u8)__builtin_ctzll(nvmf->keys.mdts / NVME_PAGE_BYTES);

	if (!there || there >= (mdts && mdts < own ? mdts : own))
		return 0;
	return weir_fail(
		EMSGSIZE,
		"storage \"%s\": a path takes %u KiB in a command, and those under way may be longer",
		nvmf->uri, 4u << there);
}

int nvmf_identify_again(struct nvmf *nvmf)
{
	const struct nvme_sqe identify = { .cdw0 = NVME_ADMIN_IDENTIFY, .cdw10 = NVME_CNS_CONTROLLER };
	u8 data[NVME_IDENTIFY_BYTES], mdts = nvmf->controller.mdts;
	int error = admin_command(nvmf, &identify, data, "Identify Controller");

	if (error)
		return error;
	nvmf_note_controller(nvmf, data);
	if (nvmf->controller.nsid) { /* else lanes know nothing yet */
		error = nvmf_check_transfer(nvmf, mdts, nvmf->controller.mdts);
		nvmf->controller.mdts = mdts;
	}
	return error ? error : nvmf_check_namespace(nvmf);
}

/* What the host sets at each association, as the first time. */
static int set_again(struct nvmf *nvmf)
{
	const struct nvme_sqe features = { .cdw0 = NVME_ADMIN_SET_FEATURES,
					   .cdw10 = NVME_FEATURE_NUMBER_OF_QUEUES,
					   .cdw11 = nvmf->queues_asked };
	int error = 0;

	if (nvmf->retry_delays)
		error = nvmf_know_delays(nvmf);
	return error || !nvmf->queues_asked
		       ? error
		       : admin_command(nvmf, &features, NULL, "Set Features (Number of Queues)");
}

static int connect_queues_again(struct nvmf *nvmf)
{
	int error = 0;
	u32 status;

	for (u32 i = 1; i < nvmf->queue_count && !error; i++)
		if (nvmf->queues[i].has_sq)
			error = nvmf_connect_queue(&nvmf->queues[i], &status);
	return error;
}

int nvmf_associate_again(struct nvmf *nvmf)
{
	int error = nvmf_associate(nvmf);
	bool connected = !error;

	if (!error)
		error = nvmf_enable(
			nvmf, load_relaxed_u32(
				      &nvmf->registers.cc)); /* relaxed: the mover has acted on it before */
	if (!error)
		error = nvmf_identify_again(nvmf);
	if (!error)
		error = set_again(nvmf);
	if (!error)
		error = connect_queues_again(nvmf);
	if (!error)
		error = nvmf_events_begin(nvmf);
	if (error) {
		nvmf_path_refuse(nvmf, connected);
		nvmf_dissociate(nvmf);
		return error;
	}
	nvmf->rerouted = false;
	nvmf_send_again(nvmf);
	return 0;
}
