/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admin.c: the admin queue of a controller that hosts reach over a network.
 *
 * Owns: what such a controller says of itself, its features, and the commands that are its own. What
 * all of our controllers
 * say is in transport/identify_pages.h.
 */
#include <endian.h>
#include <string.h>

#include "../engine/engine.h"
#include "events.h"
#include "parts.h"

enum {
	CNS_NAMESPACE_DESCRIPTORS = 0x03,
	CNS_COMMAND_SET_CONTROLLER = 0x06,
	LOG_ERROR = 0x01,
	LOG_HEALTH = 0x02,
	LOG_FIRMWARE = 0x03,
	LOG_CHANGED_NAMESPACES = 0x04,
	LOG_BYTES = 512,
	LOG_KEEP_EVENT = 1 << 15, /* RAE */
	LOG_GROUPS_ONLY = 1 << 8, /* RGO, of the ANA log */
	ANAGRPID_BYTE = 92,
	FEATURE_ASYNC_EVENTS = 0x0b,
	FEATURES = 16,
	NOT_ABORTED = 1,
};

static const u8 zeros[NVME_IDENTIFY_BYTES];

static void end(struct command *command, u32 status, u64 result)
{
	target_send_response(command, status, result, false);
}

static void refuse(struct command *command, u32 status)
{
	end(command, target_refuse(status), 0);
}

/* Send @bytes of @page, as far as the host has room, and zeros into what room is left. */
static void reply(struct command *command, const void *page, u32 bytes)
{
	u32 kept = bytes < command->data_bytes ? bytes : command->data_bytes;

	if (!command->data_bytes) {
		refuse(command, NVME_STATUS_SGL_INVALID_LENGTH);
		return;
	}
	memcpy(command->data, page, kept);
	memset(command->data + kept, 0, command->data_bytes - kept);
	target_send_response(command, NVME_STATUS_SUCCESS, 0, true);
}

/* ---- Identify ---- */

static void identify_controller(struct command *command)
{
	const struct target_controller *controller = command->connection->controller;
	const struct target_subsystem *subsystem = controller->subsystem;
	u8 page[NVME_IDENTIFY_BYTES] = { 0 };

	weir_page_controller(subsystem ? subsystem->transfer_bytes : TARGET_TRANSFER_BYTES, page);
	weir_page_fabrics(
		&(struct weir_page_fabrics){
			.nqn = subsystem ? subsystem->nqn : NVME_DISCOVERY_NQN,
			.serial = subsystem ? subsystem->serial : "discovery",
			.cntlid = controller->cntlid,
			.namespaces = subsystem ? (u32)target_namespaces(subsystem) : 0,
			.queue_entries = TARGET_QUEUE_ENTRIES,
			.capsule_bytes = NVME_CAPSULE_COMMAND_BYTES + TARGET_IN_CAPSULE_BYTES,
			.ana_seconds = TARGET_ANA_SECONDS,
		},
		page);
	if (command->connection->wire->keyed)
		page[NVME_ID_CTRL_SGLS] |= NVME_SGLS_KEYED;
	reply(command, page, sizeof(page));
}

static void identify_namespace(struct command *command, const struct target_namespace *space)
{
	u8 page[NVME_IDENTIFY_BYTES] = { 0 };

	weir_page_namespace(space->medium, space->uuid, true, page);
	page[ANAGRPID_BYTE] = TARGET_ANA_GROUP;
	reply(command, page, sizeof(page));
}

static void identify_active(struct command *command)
{
	const struct target_subsystem *subsystem = command->connection->controller->subsystem;
	u32 list[NVME_IDENTIFY_BYTES / 4] = { 0 }, count = 0;

	if (command->sqe.nsid >= 0xfffffffe) {
		refuse(command, NVME_STATUS_INVALID_NAMESPACE);
		return;
	}
	for (u32 nsid = command->sqe.nsid + 1; nsid <= target_namespaces(subsystem); nsid++)
		if (target_namespace_of(subsystem, nsid))
			list[count++] = htole32(nsid);
	reply(command, list, sizeof(list));
}

static void identify_descriptors(struct command *command, const struct target_namespace *space)
{
	u8 list[NVME_IDENTIFY_BYTES] = { 0 };

	weir_page_descriptors(space->uuid, list);
	reply(command, list, sizeof(list));
}

static void identify_space(struct command *command, u8 cns)
{
	const struct target_namespace *space =
		target_namespace_of(command->connection->controller->subsystem, command->sqe.nsid);

	if (!space)
		refuse(command, NVME_STATUS_INVALID_NAMESPACE);
	else if (cns == NVME_CNS_NAMESPACE)
		identify_namespace(command, space);
	else
		identify_descriptors(command, space);
}

static void identify(struct command *command)
{
	bool discovery = !command->connection->controller->subsystem;
	u8 cns = command->sqe.cdw10 & 0xff;

	if (cns == NVME_CNS_CONTROLLER)
		identify_controller(command);
	else if (discovery)
		refuse(command, NVME_STATUS_INVALID_FIELD);
	else if (cns == NVME_CNS_NAMESPACE || cns == CNS_NAMESPACE_DESCRIPTORS)
		identify_space(command, cns);
	else if (cns == NVME_CNS_ACTIVE_NAMESPACES)
		identify_active(command);
	else if (cns == CNS_COMMAND_SET_CONTROLLER && !(command->sqe.cdw11 >> 24))
		reply(command, zeros, sizeof(zeros)); /* no limits of Verify, Write Zeroes and so on */
	else
		refuse(command, NVME_STATUS_INVALID_FIELD);
}

/* ---- log pages ---- */

static void add_stats(const struct target_subsystem *subsystem, struct weir_virtual_stats *sum)
{
	for (size_t i = 0; i < target_namespaces(subsystem); i++) {
		struct weir_virtual_stats stats;

		weir_virtual_stats(subsystem->namespaces[i].core, &stats);
		sum->bytes_read += stats.bytes_read;
		sum->bytes_written += stats.bytes_written;
	}
}

/* Bytes of the log that @command asks for, in @page; 0: there is none of its number. */
static u32 fill_log(const struct command *command, u8 *page)
{
	const struct connection *connection = command->connection;
	struct target_controller *controller = connection->controller;
	struct weir_virtual_stats stats = { 0 };
	u32 cdw10 = command->sqe.cdw10;

	switch (cdw10 & 0xff) {
	case LOG_ERROR: return LOG_BYTES;
	case LOG_HEALTH:
		add_stats(controller->subsystem, &stats);
		weir_page_health(&stats, page);
		return LOG_BYTES;
	case LOG_FIRMWARE: weir_page_firmware(page); return LOG_BYTES;
	case LOG_CHANGED_NAMESPACES:
		target_changed_list(controller, cdw10 & LOG_KEEP_EVENT, page);
		if (!(cdw10 & LOG_KEEP_EVENT))
			target_event_seen(controller, TARGET_EVENT_NAMESPACE);
		return NVME_IDENTIFY_BYTES;
	case NVME_LOG_ANA:
		if (!(cdw10 & LOG_KEEP_EVENT))
			target_event_seen(controller, TARGET_EVENT_ANA);
		target_ana_log(connection, cdw10 & LOG_GROUPS_ONLY, page);
		return WEIR_PAGE_ANA_BYTES;
	default: return 0;
	}
}

static void get_log(struct command *command)
{
	const struct target_subsystem *subsystem = command->connection->controller->subsystem;
	const struct nvme_sqe *sqe = &command->sqe;
	u64 bytes = (((u64)(sqe->cdw11 & 0xffff) << 16 | sqe->cdw10 >> 16) + 1) * 4;
	u64 offset = (u64)sqe->cdw13 << 32 | sqe->cdw12;
	u8 log = sqe->cdw10 & 0xff, page[NVME_IDENTIFY_BYTES] = { 0 };
	u32 length;

	if (bytes != command->data_bytes || offset % 4) {
		refuse(command, NVME_STATUS_INVALID_FIELD);
	} else if (!subsystem && log == NVME_LOG_DISCOVERY) {
		target_discovery_log(command->connection, offset, command->data, command->data_bytes);
		target_send_response(command, NVME_STATUS_SUCCESS, 0, true);
		if (!(sqe->cdw10 & LOG_KEEP_EVENT))
			target_event_seen(command->connection->controller, TARGET_EVENT_DISCOVERY);
		target_events_send(command->connection);
	} else if (!subsystem || !(length = fill_log(command, page))) {
		refuse(command, NVME_STATUS(1, 0x09)); /* Invalid Log Page */
	} else {
		reply(command, page + (offset < length ? offset : 0),
		      offset < length ? length - (u32)offset : 0);
		target_events_send(command->connection); /* of what came while it had not asked */
	}
}

/* ---- features ---- */

static bool known(u8 feature)
{
	return feature && feature < FEATURES && feature != 0x03 && feature != 0x0c && feature != 0x0d &&
	       feature != 0x0e;
}

static void set_queues(struct command *command)
{
	struct target_controller *controller = command->connection->controller;
	u32 value = command->sqe.cdw11, wanted = value & 0xffff, granted,
	    most = command->connection->server->target->queues;

	if (wanted == 0xffff || value >> 16 == 0xffff) {
		refuse(command, NVME_STATUS_INVALID_FIELD);
		return;
	}
	wanted = (wanted < value >> 16 ? value >> 16 : wanted) + 1;
	granted = wanted < most ? wanted : most;
	/* Relaxed: a host connects queues after it has the answer. */
	atomic_store_explicit(&controller->queues, granted, memory_order_relaxed);
	end(command, NVME_STATUS_SUCCESS, (granted - 1) | (granted - 1) << 16);
}

static void set_kato(struct command *command)
{
	struct target_controller *controller = command->connection->controller;

	if (command->sqe.cdw11 > TARGET_KATO_MS_MAX) {
		refuse(command, NVME_STATUS_KEEP_ALIVE_INVALID);
		return;
	}
	controller->kato_ms = command->sqe.cdw11;
	end(command, NVME_STATUS_SUCCESS, 0);
}

static void set_features(struct command *command)
{
	struct target_controller *controller = command->connection->controller;
	u8 feature = command->sqe.cdw10 & 0xff;

	if (!known(feature) || (!controller->subsystem && feature != NVME_FEATURE_KEEP_ALIVE_TIMER &&
				feature != FEATURE_ASYNC_EVENTS))
		refuse(command, NVME_STATUS_INVALID_FIELD);
	else if (command->sqe.cdw10 >> 31)
		refuse(command, NVME_STATUS_FEATURE_NOT_SAVEABLE);
	else if (feature == NVME_FEATURE_NUMBER_OF_QUEUES)
		set_queues(command);
	else if (feature == NVME_FEATURE_KEEP_ALIVE_TIMER)
		set_kato(command);
	else if (feature == NVME_FEATURE_VOLATILE_WRITE_CACHE && !(command->sqe.cdw11 & 1))
		refuse(command, NVME_STATUS(1, 0x0e)); /* Feature Not Changeable: other hosts have it on */
	else {
		controller->features[feature] = command->sqe.cdw11;
		end(command, NVME_STATUS_SUCCESS, 0);
	}
}

static void get_features(struct command *command)
{
	const struct target_controller *controller = command->connection->controller;
	u32 queues = atomic_load_explicit(&controller->queues, memory_order_relaxed); /* its own thread's */
	u8 feature = command->sqe.cdw10 & 0xff;

	if (!known(feature))
		refuse(command, NVME_STATUS_INVALID_FIELD);
	else if (feature == NVME_FEATURE_NUMBER_OF_QUEUES)
		end(command, NVME_STATUS_SUCCESS, (queues - 1) | (queues - 1) << 16);
	else if (feature == NVME_FEATURE_KEEP_ALIVE_TIMER)
		end(command, NVME_STATUS_SUCCESS, controller->kato_ms);
	else if (feature == NVME_FEATURE_VOLATILE_WRITE_CACHE)
		end(command, NVME_STATUS_SUCCESS, 1);
	else
		end(command, NVME_STATUS_SUCCESS, controller->features[feature]);
}

/* ---- the rest ---- */

/*
 * Event requests can be ended; a storage's requests end by themselves, and an Abort need not find its
 * command.
 */
static void abort_command(struct command *command)
{
	struct connection *connection = command->connection;
	u16 queue = command->sqe.cdw10 & 0xffff, cid = (u16)(command->sqe.cdw10 >> 16);

	for (u32 i = 0; !queue && i < connection->entries; i++) {
		struct command *at = &connection->commands[i];

		if (at->state != COMMAND_KEPT || at->cid != cid)
			continue;
		end(at, NVME_STATUS_ABORT_REQUESTED, 0);
		end(command, NVME_STATUS_SUCCESS, 0);
		return;
	}
	end(command, NVME_STATUS_SUCCESS, NOT_ABORTED);
}

/* ---- volumes ---- */

/* Its page comes with it, or goes back; the server thread waits while a change is made durable. */
static void run_volumes(struct command *command, struct weir_engine *engine)
{
	u8 opcode = target_opcode(command), page[NVME_VOLUME_BLOCK_BYTES] = { 0 };
	u32 bytes = weir_engine_admin_bytes(opcode), status;

	if (command->data_bytes < bytes) {
		refuse(command, NVME_STATUS_SGL_INVALID_LENGTH);
		return;
	}
	if (command->from_host)
		memcpy(page, command->data, bytes);
	status = weir_engine_admin(engine, command->connection->controller->hostnqn, &command->sqe, page);
	if (status || command->from_host || !bytes)
		end(command, status, 0);
	else
		reply(command, page, bytes);
}

/* Namespace 1, unless the command names another. */
static struct weir_engine *engine_of(const struct command *command)
{
	const struct target_subsystem *subsystem = command->connection->controller->subsystem;
	u32 nsid = command->sqe.nsid ? command->sqe.nsid : 1;
	const struct target_namespace *space = subsystem ? target_namespace_of(subsystem, nsid) : NULL;

	return space ? weir_virtual_engine(space->core) : NULL;
}

static void run_other(struct command *command)
{
	struct weir_engine *engine = weir_engine_is_admin(target_opcode(command)) ? engine_of(command) : NULL;

	if (engine)
		run_volumes(command, engine);
	else
		refuse(command, NVME_STATUS_INVALID_OPCODE);
}

void target_admin_run(struct command *command)
{
	switch (target_opcode(command)) {
	case NVME_ADMIN_IDENTIFY: identify(command); return;
	case NVME_ADMIN_GET_LOG_PAGE: get_log(command); return;
	case NVME_ADMIN_SET_FEATURES: set_features(command); return;
	case NVME_ADMIN_GET_FEATURES: get_features(command); return;
	case NVME_ADMIN_ASYNC_EVENT: target_event_request(command); return;
	case NVME_ADMIN_ABORT: abort_command(command); return;
	case NVME_ADMIN_KEEP_ALIVE:
		end(command, NVME_STATUS_SUCCESS, 0); /* it was heard */
		return;
	default: run_other(command);
	}
}
