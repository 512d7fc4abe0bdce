/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics.c: fabrics commands, Base 2.0 section 6: Connect, Property Get and Set, Disconnect.
 *
 * Owns: the checks of a Connect, and the properties of a controller.
 */
#include <string.h>

#include "parts.h"
#include "shutdown.h"

enum {
	SQSIZE_LEAST = 1, /* zero based */
	CAP_CONTIGUOUS = 1u << 16,
	CAP_TIMEOUT = 20u << 24, /* 10 s, in units of 500 ms */
	CC_ENTRY_SIZES_MASK = 0xffu << 16,
	CC_CHOICES_MASK = 0x3ff0u,
};

static const u64 cap = (TARGET_QUEUE_ENTRIES - 1) | CAP_CONTIGUOUS | CAP_TIMEOUT | (u64)1 << 37;

static void end(struct command *command, u32 status, u64 result)
{
	target_send_response(command, status, result, false);
}

static void refuse_connect(struct command *command, u32 status, u32 result)
{
	atomic_fetch_add_explicit(&command->connection->server->counters.refused, 1,
				  memory_order_relaxed); /* relaxed: statistics */
	end(command, status, result);
}

static bool is_text(const char *field)
{
	const char *end = memchr(field, 0, NVME_NQN_BYTES);

	return end && end != field && end - field <= NVME_NQN_LONGEST;
}

/* The field of the command, or of its data, that is not acceptable; an NVMe status. */
static u32 check_connect(const struct nvme_fabrics_connect *connect,
			 const struct nvme_fabrics_connect_data *data, u32 *offset)
{
	u32 most = connect->qid ? TARGET_QUEUE_ENTRIES : 4 * TARGET_QUEUE_ENTRIES;

	if (connect->recfmt)
		return target_refuse(NVME_STATUS_CONNECT_INCOMPATIBLE_FORMAT);
	*offset = offsetof(struct nvme_fabrics_connect, sqsize);
	if (connect->sqsize < SQSIZE_LEAST || connect->sqsize >= most)
		return target_refuse(NVME_STATUS_CONNECT_INVALID_PARAMETERS);
	*offset = offsetof(struct nvme_fabrics_connect, kato);
	if (connect->kato > TARGET_KATO_MS_MAX)
		return target_refuse(NVME_STATUS_CONNECT_INVALID_PARAMETERS);
	*offset = NVME_CONNECT_IATTR_DATA | offsetof(struct nvme_fabrics_connect_data, subnqn);
	if (!is_text(data->subnqn))
		return target_refuse(NVME_STATUS_CONNECT_INVALID_PARAMETERS);
	*offset = NVME_CONNECT_IATTR_DATA | offsetof(struct nvme_fabrics_connect_data, hostnqn);
	if (!is_text(data->hostnqn))
		return target_refuse(NVME_STATUS_CONNECT_INVALID_PARAMETERS);
	return NVME_STATUS_SUCCESS;
}

static u32 find_subsystem(struct connection *connection, const struct nvme_fabrics_connect_data *data,
			  const struct target_subsystem **subsystem, u32 *offset)
{
	*subsystem = NULL;
	if (!strcmp(data->subnqn, NVME_DISCOVERY_NQN))
		return NVME_STATUS_SUCCESS;
	*offset = NVME_CONNECT_IATTR_DATA | offsetof(struct nvme_fabrics_connect_data, subnqn);
	*subsystem = target_subsystem_find(connection->server->target, data->subnqn);
	if (!*subsystem)
		return target_refuse(NVME_STATUS_CONNECT_INVALID_PARAMETERS);
	if (!target_may_connect(connection, *subsystem, data->hostnqn))
		return target_refuse(NVME_STATUS_AUTHENTICATION_REQUIRED);
	return target_host_allowed(connection->server->target, *subsystem, data->hostnqn)
		       ? NVME_STATUS_SUCCESS
		       : target_refuse(NVME_STATUS_CONNECT_INVALID_HOST);
}

static u32 join(struct connection *connection, const struct nvme_fabrics_connect *connect,
		const struct nvme_fabrics_connect_data *data, u32 *offset)
{
	const struct target_subsystem *subsystem;
	u32 status = find_subsystem(connection, data, &subsystem, offset);

	if (status)
		return status;
	if (connect->qid)
		return target_controller_join(connection, subsystem, data, connect->qid, offset);
	*offset = NVME_CONNECT_IATTR_DATA | offsetof(struct nvme_fabrics_connect_data, cntlid);
	if (data->cntlid != NVME_CNTLID_DYNAMIC)
		return target_refuse(NVME_STATUS_CONNECT_INVALID_PARAMETERS);
	return target_controller_create(connection, subsystem, data, connect->kato)
		       ? NVME_STATUS_SUCCESS
		       : target_refuse(NVME_STATUS_CONNECT_CONTROLLER_BUSY);
}

static void run_connect(struct command *command)
{
	struct connection *connection = command->connection;
	struct nvme_fabrics_connect request;
	struct nvme_fabrics_connect_data data;
	struct command *grown;
	u32 status, offset = 0, authreq = 0;

	memcpy(&request, &command->sqe, sizeof(request));
	if (connection->controller || command->data_bytes < sizeof(data)) {
		refuse_connect(command,
			       target_refuse(connection->controller ? NVME_STATUS_COMMAND_SEQUENCE
								    : NVME_STATUS_SGL_INVALID_LENGTH),
			       0);
		return;
	}
	memcpy(&data, command->data, sizeof(data));
	status = check_connect(&request, &data, &offset);
	if (!status)
		status = join(connection, &request, &data, &offset);
	if (status) {
		refuse_connect(command, status,
			       (status & NVME_STATUS_CODE_MASK) == NVME_STATUS_CONNECT_INVALID_PARAMETERS
				       ? offset
				       : 0);
		return;
	}
	connection->state = CONNECTION_CONNECTED;
	connection->deadline_ms = 0;
	/* Once it is accepted, and not before: its slot is the only one until then. */
	grown = target_commands_grow(connection, request.sqsize + 1u, command);
	command = grown ? grown : command;
	if (!grown || !target_authenticate_begin(connection, &authreq)) {
		end(command, NVME_STATUS_INTERNAL_ERROR, 0);
		target_connection_close(connection);
		return;
	}
	connection->flow_control = !(request.cattr & NVME_CATTR_SQ_FLOW_DISABLE);
	connection->sq_head = 1;
	end(command, NVME_STATUS_SUCCESS, connection->controller->cntlid | authreq);
}

static void property_get(struct command *command)
{
	const struct target_controller *controller = command->connection->controller;
	struct nvme_fabrics_property get;
	bool wide;
	u64 value;

	memcpy(&get, &command->sqe, sizeof(get));
	wide = (get.attrib & 7) == NVME_PROPERTY_8_BYTES;
	if (get.offset == NVME_PROPERTY_CAP && wide)
		value = cap;
	else if (get.offset == NVME_PROPERTY_VS && !wide)
		value = WEIR_PAGE_VERSION;
	else if (get.offset == NVME_PROPERTY_CC && !wide)
		value = controller->cc;
	else if (get.offset == NVME_PROPERTY_CSTS && !wide)
		value = target_controller_csts(controller);
	else {
		end(command, target_refuse(NVME_STATUS_INVALID_FIELD), 0);
		return;
	}
	end(command, NVME_STATUS_SUCCESS, value);
}

static void set_cc(struct connection *connection, u32 cc)
{
	struct target_controller *controller = connection->controller;
	bool enable = cc & NVME_CC_ENABLE, good;

	good = !(cc & CC_CHOICES_MASK) &&
	       (!controller->subsystem ||
		(cc & CC_ENTRY_SIZES_MASK) == (NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16));
	controller->cc = cc;
	controller->csts = enable ? (good ? NVME_CSTS_READY : NVME_CSTS_FATAL) : 0;
	/* Relaxed: a host that has its answer to Property Set sees the value it set. */
	atomic_store_explicit(&controller->ready, enable && good && !(cc & NVME_CC_SHUTDOWN_MASK),
			      memory_order_relaxed);
	if (cc & NVME_CC_SHUTDOWN_MASK)
		target_shutdown_begin(connection);
}

static void property_set(struct command *command)
{
	struct nvme_fabrics_property set;

	memcpy(&set, &command->sqe, sizeof(set));
	if (set.offset != NVME_PROPERTY_CC || (set.attrib & 7) != NVME_PROPERTY_4_BYTES) {
		end(command, target_refuse(NVME_STATUS_INVALID_FIELD), 0);
		return;
	}
	set_cc(command->connection, (u32)set.value);
	end(command, NVME_STATUS_SUCCESS, 0);
}

/* Commands that run are answered first. */
static void disconnect(struct command *command)
{
	struct connection *connection = command->connection;

	if (!connection->qid) {
		end(command, target_refuse(NVME_STATUS_INVALID_QUEUE_TYPE), 0);
		return;
	}
	connection->leaving = command;
	target_command_set(command, COMMAND_KEPT);
	target_connection_close(connection);
	connection->deadline_ms = 0; /* until target_send_last() */
}

void target_fabrics_run(struct command *command)
{
	const struct connection *connection = command->connection;
	u8 type = command->sqe.nsid & 0xff;

	if (type == NVME_FCTYPE_CONNECT)
		run_connect(command);
	else if (!connection->controller)
		end(command, target_refuse(NVME_STATUS_COMMAND_SEQUENCE), 0);
	else if (type == NVME_FCTYPE_AUTHENTICATION_SEND || type == NVME_FCTYPE_AUTHENTICATION_RECEIVE)
		target_authenticate_run(command);
	else if (!target_may_command(connection))
		end(command, target_refuse(NVME_STATUS_AUTHENTICATION_REQUIRED), 0);
	else if (type == NVME_FCTYPE_DISCONNECT)
		disconnect(command);
	else if (type == NVME_FCTYPE_PROPERTY_GET && !connection->qid)
		property_get(command);
	else if (type == NVME_FCTYPE_PROPERTY_SET && !connection->qid)
		property_set(command);
	else
		end(command, target_refuse(NVME_STATUS_INVALID_FIELD), 0);
}
