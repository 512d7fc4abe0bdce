/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.c: what a controller notifies of, and the log pages behind that.
 *
 * Owns: the host's Asynchronous Event Request, of which one is always with a controller that sends events,
 * and what is believed of the ANA log. Base 2.0, sections 5.2, 5.16.1.5 and 5.16.1.13.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../backend/error.h"
#include "paths.h"

enum {
	FEATURE_ASYNC_EVENTS = 0x0b,
	WANTED = 1 << 8 | 1 << 11, /* of OAES, and of the feature: namespaces, ANA */
	LOG_CHANGED_NAMESPACES = 0x04,
	LOG_BYTES = 16384, /* of the ANA log, as far as it is read */
};

int nvmf_get_log(struct nvmf *nvmf, u8 log, uint64_t offset, void *to, u32 bytes, const char *what)
{
	u32 dwords = bytes / 4 - 1;
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_GET_LOG_PAGE,
				      .nsid = log == NVME_LOG_DISCOVERY ? 0 : NVME_NSID_BROADCAST,
				      .cdw10 = log | dwords << 16,
				      .cdw11 = dwords >> 16,
				      .cdw12 = (u32)offset,
				      .cdw13 = (u32)(offset >> 32) };
	struct nvme_cqe cqe;
	int error =
		nvmf_command(&nvmf->queues[0], &sqe, to, bytes, NVMF_TO_HOST, what, &cqe, NVMF_COMMAND_MS);

	if (!error && cqe.dw3 >> 17)
		error = weir_fail(EIO, "\"%s\": the controller refuses %s with status %#x", nvmf->uri, what,
				  cqe.dw3 >> 17);
	return error;
}

/* Unless the controller has one: its CID is taken. */
static void ask(struct nvmf *nvmf)
{
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_ASYNC_EVENT };

	if (nvmf->queues[0].internal[NVMF_EVENT].state == NVMF_FREE && nvmf_room(&nvmf->queues[0]))
		nvmf_command_start(&nvmf->queues[0], NVMF_EVENT, &sqe, NULL, 0, NVMF_NO_DATA);
}

int nvmf_events_begin(struct nvmf *nvmf)
{
	u32 wanted = nvmf->controller.oaes & WANTED;
	const struct nvme_sqe sqe = { .cdw0 = NVME_ADMIN_SET_FEATURES,
				      .cdw10 = FEATURE_ASYNC_EVENTS,
				      .cdw11 = wanted };
	struct nvme_cqe cqe;
	int error;

	nvmf->events_due = false;
	nvmf->event = 0;
	if (!wanted)
		return 0;
	error = nvmf_command(&nvmf->queues[0], &sqe, NULL, 0, NVMF_NO_DATA,
			     "Set Features (Asynchronous Event Configuration)", &cqe, NVMF_COMMAND_MS);
	if (!error && !(cqe.dw3 >> 17)) /* one that refuses sends none: the host asks by itself */
		ask(nvmf);
	return error;
}

/* State of the group that has @nsid (0: of the best one); 0: the log does not say. False: it goes on behind
 * its first @bytes. */
static bool find_state(const u8 *log, u32 bytes, u32 nsid, u32 *out)
{
	struct nvme_ana_log head;
	u32 at = sizeof(head);

	*out = 0;
	memcpy(&head, log, sizeof(head));
	for (u32 i = 0; i < head.groups; i++) {
		struct nvme_ana_group group;
		u32 number, state;

		if (at + sizeof(group) > bytes)
			return false;
		memcpy(&group, log + at, sizeof(group));
		at += sizeof(group);
		state = group.state & 0xf;
		if (group.nsids > (bytes - at) / sizeof(number))
			return false;
		for (u32 j = 0; j < group.nsids; j++, at += sizeof(number)) {
			memcpy(&number, log + at, sizeof(number));
			if (number != nsid)
				continue;
			*out = state;
			return true;
		}
		if (!nsid && (!i || nvmf_path_rank(state) < nvmf_path_rank(*out)))
			*out = state;
	}
	return true;
}

/* As long as the controller's transfers may be: MDTS, of pages of 4 KiB; 0: no limit. */
static u32 piece_bytes(const struct nvmf *nvmf)
{
	u32 bytes = LOG_BYTES;

	while (nvmf->controller.mdts && nvmf->controller.mdts < __builtin_ctz(bytes / NVME_PAGE_BYTES))
		bytes /= 2;
	return bytes;
}

/* As much of the log as it takes. What changes between two pieces is notified of. */
static int read_groups(struct nvmf *nvmf, u8 *log, u32 nsid, u32 *state)
{
	u32 bytes = piece_bytes(nvmf), got = 0;
	bool found = false;
	int error = 0;

	while (!error && !found && got < LOG_BYTES) {
		error = nvmf_get_log(nvmf, NVME_LOG_ANA, got, log + got, bytes, "Get Log Page (ANA)");
		got += bytes;
		if (!error)
			found = find_state(log, got, nsid, state);
	}
	return error;
}

int nvmf_read_ana(struct nvmf *nvmf, u32 nsid, u32 *state)
{
	u8 *log;
	int error;

	*state = NVME_ANA_OPTIMIZED;
	if (!nvmf->controller.has_ana)
		return 0;
	log = calloc(1, LOG_BYTES);
	if (!log)
		return weir_fail(ENOMEM, "storage \"%s\": no memory for the ANA log", nvmf->uri);
	error = read_groups(nvmf, log, nsid, state);
	free(log);
	return error;
}

static int namespaces_changed(struct nvmf *nvmf)
{
	u8 list[NVME_IDENTIFY_BYTES];
	int error = nvmf_get_log(nvmf, LOG_CHANGED_NAMESPACES, 0, list, sizeof(list),
				 "Get Log Page (Changed Namespace List)");

	if (!error && nvmf_check_namespace(nvmf) != 0) /* its commands say the same, one by one */
		weir_report("%s", weir_last_error());
	return nvmf->lost ? -EIO : error;
}

int nvmf_events_take(struct nvmf *nvmf, u32 nsid, u32 *state)
{
	u32 event = nvmf->event, log = event >> 16 & 0xff;
	int error = 0;

	if (!event)
		return 0;
	nvmf->event = 0;
	ask(nvmf);
	if (log == NVME_LOG_ANA)
		error = nvmf_read_ana(nvmf, nsid, state);
	else if (log == LOG_CHANGED_NAMESPACES)
		error = namespaces_changed(nvmf);
	return error;
}
