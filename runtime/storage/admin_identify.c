/* SPDX-License-Identifier: BSD-3-Clause */
/* What Identify says of a controller and of its namespaces, and which of those is meant. */
#include "admin_command.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <nvme/types.h>

#include "../backend/error.h"
#include "../transport/identify_pages.h"

enum {
	MOST_SHUTDOWN_MS = 60000,
	NSATTR_WRITE_PROTECTED = 1,
	OACS_DOORBELL_BUFFER_CONFIG = 1 << 8,
	NSIDS_TEXT = 80,
};

static void *data_page(const struct weir_admin *admin)
{
	return admin->memory + 2 * NVME_PAGE_BYTES;
}

static uint64_t data_bus(const struct weir_admin *admin)
{
	return admin->bus + 2 * NVME_PAGE_BYTES;
}

int weir_admin_identify_at(struct weir_admin *admin, uint64_t bus)
{
	return weir_admin_command(
		admin,
		(struct nvme_sqe){ .cdw0 = NVME_ADMIN_IDENTIFY, .prp1 = bus, .cdw10 = NVME_CNS_CONTROLLER },
		"Identify Controller", NULL);
}

static int identify(struct weir_admin *admin, uint32_t cns, uint32_t nsid, const char *what)
{
	return weir_admin_command(
		admin,
		(struct nvme_sqe){
			.cdw0 = NVME_ADMIN_IDENTIFY, .nsid = nsid, .prp1 = data_bus(admin), .cdw10 = cns },
		what, NULL);
}

/* Identify strings are padded with spaces and not terminated. */
static void copy_text(char *to, const char *from, size_t bytes)
{
	while (bytes && (from[bytes - 1] == ' ' || from[bytes - 1] == '\0'))
		bytes--;
	for (size_t i = 0; i < bytes; i++) /* it goes into sentences and onto terminals */
		to[i] = from[i] < ' ' || from[i] > '~' ? '?' : from[i];
	to[bytes] = '\0';
}

/*
 * A controller that has retry delays gives them only to a host that says it knows (Advanced Command Retry
 * Enable, Base 2.0, section 5.27.1.18). One that refuses that gives none, so nothing is lost. Where another
 * driver keeps the controller, what hosts know is that driver's to say.
 */
void weir_admin_retry_delays(struct weir_admin *admin, const struct weir_namespace *space)
{
	struct nvme_feat_host_behavior *behavior = data_page(admin);

	if (!space->retry_delays[0] || weir_admin_is_kept(admin))
		return;
	memset(behavior, 0, sizeof(*behavior));
	behavior->acre = 1;
	(void)weir_admin_command(admin,
				 (struct nvme_sqe){ .cdw0 = NVME_ADMIN_SET_FEATURES,
						    .prp1 = data_bus(admin),
						    .cdw10 = NVME_FEATURE_HOST_BEHAVIOR },
				 "Set Features (Host Behavior Support)", NULL);
}

/* RTD3 Entry Latency, in us, is what a shutdown takes as a rule (Base 2.0, figure 275); 0: not told. */
static unsigned shutdown_ms(uint32_t entry_us)
{
	unsigned ms = entry_us / 1000 * 2;

	return ms < WEIR_ADMIN_LEAST_SHUTDOWN_MS ? WEIR_ADMIN_LEAST_SHUTDOWN_MS
	       : ms > MOST_SHUTDOWN_MS           ? MOST_SHUTDOWN_MS
						 : ms;
}

int weir_admin_controller(struct weir_admin *admin, struct weir_namespace *out)
{
	const struct nvme_id_ctrl *id = data_page(admin);
	int error = identify(admin, NVME_CNS_CONTROLLER, 0, "Identify Controller");

	if (error)
		return error;
	copy_text(out->model, id->mn, sizeof(id->mn));
	copy_text(out->serial, id->sn, sizeof(id->sn));
	out->max_transfer_bytes = id->mdts == 0 || id->mdts > 19 ? (uint32_t)1 << 31 : 4096u << id->mdts;
	out->volatile_write_cache = id->vwc & 1;
	out->shadow_doorbells = le16toh(id->oacs) & OACS_DOORBELL_BUFFER_CONFIG;
	out->retry_delays[0] = le16toh(id->crdt1);
	out->retry_delays[1] = le16toh(id->crdt2);
	out->retry_delays[2] = le16toh(id->crdt3);
	admin->shutdown_ms = shutdown_ms(le32toh(id->rtd3e));
	weir_admin_retry_delays(admin, out);
	return 0;
}

/* "1, 2, 5", as many as there is room for. */
static void list_namespaces(const uint32_t *list, char text[NSIDS_TEXT])
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < NVME_PAGE_BYTES / sizeof(*list) && list[i] && used + 16 < NSIDS_TEXT; i++)
		used += (size_t)snprintf(text + used, NSIDS_TEXT - used, "%s%u", i ? ", " : "",
					 le32toh(list[i]));
}

/* Which of the controller's active namespaces is meant by none: of several, or of one that is not the first,
 * none that is written to. */
static int choose_default(const struct weir_admin *admin, bool writes, struct weir_namespace *out)
{
	const uint32_t *list = data_page(admin);
	char there[NSIDS_TEXT];

	out->nsid = le32toh(list[0]);
	if (!writes || (out->nsid == 1 && !list[1]))
		return 0;
	list_namespaces(list, there);
	return weir_fail(EINVAL,
			 "controller \"%s\" has namespace%s %s: name one to write to (nsid=N), or open it "
			 "for reading alone (ro=1)",
			 out->model, list[1] ? "s" : "", there);
}

/* The active namespace that is asked for, or what is meant by none (0). */
static int choose_namespace(struct weir_admin *admin, uint32_t nsid, bool writes, struct weir_namespace *out)
{
	const uint32_t *list = data_page(admin);
	int error = identify(admin, NVME_CNS_ACTIVE_NAMESPACES, 0, "Identify Active Namespace list");
	char there[NSIDS_TEXT];
	size_t i = 0;

	if (error)
		return error;
	if (list[0] == 0)
		return weir_fail(ENODEV, "controller \"%s\" has no active namespace", out->model);
	if (!nsid)
		return choose_default(admin, writes, out);
	while (i < NVME_PAGE_BYTES / sizeof(*list) && list[i] && le32toh(list[i]) != nsid)
		i++;
	if (i < NVME_PAGE_BYTES / sizeof(*list) && list[i]) {
		out->nsid = nsid;
		return 0;
	}
	list_namespaces(list, there);
	return weir_fail(ENODEV, "controller \"%s\" has no active namespace %u; it has %s", out->model, nsid,
			 there);
}

/*
 * A namespace that is written in zones, or that has keys and no blocks, is none that lanes write anywhere. A
 * controller that does not know the question has no such namespace.
 */
static int check_command_set(struct weir_admin *admin, const struct weir_namespace *space)
{
	const uint8_t *there;
	unsigned set;

	if (!admin->command_sets)
		return 0;
	if (identify(admin, NVME_CNS_DESCRIPTORS, space->nsid,
		     "Identify Namespace Identification Descriptor list"))
		return admin->silent ? -EIO : 0;
	there = weir_page_descriptor(data_page(admin), WEIR_PAGE_COMMAND_SET, 1);
	set = there ? *there : NVME_CSI_NVM;
	if (set == NVME_CSI_ZNS)
		return weir_fail(ENOTSUP,
				 "namespace %u of controller \"%s\" is zoned: its blocks are written in "
				 "order alone, which weir does "
				 "not do; name another namespace (nsid=N)",
				 space->nsid, space->model);
	if (set != NVME_CSI_NVM)
		return weir_fail(ENOTSUP,
				 "namespace %u of controller \"%s\" has command set %u, and weir knows that "
				 "of blocks alone (0); name "
				 "another namespace (nsid=N)",
				 space->nsid, space->model, set);
	return 0;
}

/* Base 2.0, figure 280 (FLBAS): which of the formats is in use. */
static const struct nvme_lbaf *format_in_use(const struct nvme_id_ns *id)
{
	return &id->lbaf[(id->flbas & 0xf) | (id->nlbaf > 15 ? (id->flbas & 0x60) >> 1 : 0)];
}

static int read_namespace(struct weir_admin *admin, struct weir_namespace *out)
{
	const struct nvme_id_ns *id = data_page(admin);
	int error = identify(admin, NVME_CNS_NAMESPACE, out->nsid, "Identify Namespace");
	const struct nvme_lbaf *format = format_in_use(id);

	if (error)
		return error;
	if (le16toh(format->ms) != 0)
		return weir_fail(ENOTSUP,
				 "namespace %u has %u bytes of metadata per block, which weir cannot carry; "
				 "format it without",
				 out->nsid, le16toh(format->ms));
	if (format->ds != 9 && format->ds != 12)
		return weir_fail(ENOTSUP,
				 "namespace %u has blocks of 2^%u bytes; weir works with 512 and 4096",
				 out->nsid, format->ds);
	if (id->nsze == 0 || le64toh(id->nsze) > UINT64_MAX >> format->ds)
		return weir_fail(
			EIO,
			"namespace %u says it has %llu blocks of %u bytes, which cannot be; is it formatted?",
			out->nsid, (unsigned long long)le64toh(id->nsze), 1u << format->ds);
	out->blocks = le64toh(id->nsze);
	out->block_log2 = format->ds;
	out->write_protected = id->nsattr & NSATTR_WRITE_PROTECTED;
	return 0;
}

int weir_admin_identify(struct weir_admin *admin, uint32_t nsid, bool writes, struct weir_namespace *out)
{
	int error = weir_admin_controller(admin, out);

	if (!error)
		error = choose_namespace(admin, nsid, writes, out);
	if (!error)
		error = check_command_set(admin, out);
	if (!error)
		error = read_namespace(admin, out);
	return error;
}
