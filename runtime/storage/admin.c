/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin_command.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weir/port.h>

#include "../backend/error.h"
#include "../base/losses.h"
#include "../base/timeout.h"

enum {
	ENTRIES = 32,
	COMMAND_TIMEOUT_MS = 10000,
	CAP_CSS_SHIFT = 37,
	CAP_CSS_NVM = 1,
	CAP_CSS_SEVERAL = 1 << 6, /* I/O command sets that namespaces choose from */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Between two polls, the first at @begin_ns: most answers come at once, and for others nobody spins. */
static void rest(uint64_t begin_ns)
{
	if (now_ns() - begin_ns < 2000000)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
}

/* Wait until (CSTS & mask) == value, for @ms at most; unless its bit of @fatal says that it failed. */
static int wait_csts(struct weir_admin *admin, uint32_t mask, uint32_t value, uint32_t fatal, unsigned ms,
		     const char *what)
{
	struct weir_transport *transport = admin->transport;
	uint64_t begin = now_ns();
	struct weir_timeout timeout = weir_timeout_from(begin, ms);
	uint32_t csts;

	while (((csts = transport->ops->read32(transport, NVME_REGISTER_CSTS)) & mask) != value ||
	       csts == UINT32_MAX) {
		if (csts == UINT32_MAX)
			return weir_fail(EIO, "controller is gone (its registers read as all ones) while %s",
					 what);
		if (csts & fatal)
			return weir_fail(EIO, "controller reports a fatal status (CSTS %#x) while %s", csts,
					 what);
		if (!weir_timeout_left(&timeout, now_ns()))
			return weir_fail(ETIMEDOUT, "controller did not finish %s within %u ms (CSTS %#x)",
					 what, ms, csts);
		rest(begin);
	}
	return 0;
}

static int wait_ready(struct weir_admin *admin, bool ready, const char *what)
{
	return wait_csts(admin, NVME_CSTS_READY, ready ? NVME_CSTS_READY : 0, NVME_CSTS_FATAL,
			 admin->timeout_ms, what);
}

/* One that failed before says so until it has stopped, which ends that (Base 2.0, section 9.5). */
static int wait_stopped(struct weir_admin *admin)
{
	return wait_csts(admin, NVME_CSTS_READY, 0, 0, admin->timeout_ms, "its reset");
}

static void ring(struct weir_admin *admin, unsigned doorbell, unsigned value)
{
	uint64_t address = admin->transport->ops->doorbell(admin->transport, doorbell);

	/* The admin queue's is rung each time, whatever EventIdx says: not all controllers keep it. */
	if (admin->shadow)
		__atomic_store_n((uint32_t *)(admin->shadow + doorbell * admin->transport->doorbell_bytes),
				 value, __ATOMIC_RELEASE);
	weir_mmio_store_u32(address, value); /* admin.A0: release: the entry before its doorbell */
}

static void submit(struct weir_admin *admin, const struct nvme_sqe *sqe)
{
	memcpy(admin->memory + admin->sq_tail * sizeof(*sqe), sqe, sizeof(*sqe));
	admin->sq_tail = (admin->sq_tail + 1) % ENTRIES;
	ring(admin, 0, admin->sq_tail);
}

/* Whether anybody is there to answer: neither failed, nor gone (all ones), nor reset by somebody else. */
static bool alive(uint32_t csts)
{
	return (csts & (NVME_CSTS_READY | NVME_CSTS_FATAL)) == NVME_CSTS_READY;
}

static int check_alive(const struct weir_admin *admin, const char *what)
{
	uint32_t csts = admin->transport->ops->read32(admin->transport, NVME_REGISTER_CSTS);

	if (alive(csts))
		return 0;
	return weir_fail(EIO, "controller %s (CSTS %#x) before admin command %s was done",
			 csts & NVME_CSTS_FATAL ? "failed" : "was reset by somebody else", csts, what);
}

static int check_status(uint32_t status, const char *what)
{
	if (status & NVME_STATUS_CODE_MASK)
		return weir_fail(EIO, "controller refused admin command %s with status %#x", what,
				 status & NVME_STATUS_CODE_MASK);
	return 0;
}

bool weir_admin_is_kept(const struct weir_admin *admin)
{
	return admin->transport->ops->admin;
}

static int by_driver(struct weir_admin *admin, const struct nvme_sqe *sqe, const char *what, uint32_t *result)
{
	uint32_t dw0 = 0;
	int status = admin->transport->ops->admin(admin->transport, sqe, admin->command_ms, &dw0);

	if (result)
		*result = dw0;
	return status < 0 ? status : check_status((uint32_t)status, what);
}

/* Wait for the completion of the one command in flight. Return: its status, or a negative errno. */
static int complete(struct weir_admin *admin, const char *what, uint32_t *result)
{
	struct nvme_cqe *cqe = (struct nvme_cqe *)(admin->memory + NVME_PAGE_BYTES) + admin->cq_head;
	uint64_t begin = now_ns();
	struct weir_timeout timeout = weir_timeout_from(begin, admin->command_ms);
	bool late = false; /* as of before the last poll: a poll may take long, too */
	uint32_t dw3;
	int error;

	admin->silent = true; /* until it says something */
	/* doorbell.C1: pairs with the controller's write of dw3 */
	while ((((dw3 = __atomic_load_n(&cqe->dw3, __ATOMIC_ACQUIRE)) >> 16) & 1) != admin->phase) {
		error = check_alive(admin, what);
		if (error)
			return error;
		if (late)
			return weir_fail(ETIMEDOUT, "admin command %s got no completion within %u ms", what,
					 admin->command_ms);
		rest(begin);
		late = !weir_timeout_left(&timeout, now_ns());
	}
	admin->silent = false;
	if (result)
		*result = cqe->dw0;
	if (++admin->cq_head == ENTRIES) {
		admin->cq_head = 0;
		admin->phase ^= 1;
	}
	ring(admin, 1, admin->cq_head);
	return (int)(dw3 >> 17 & NVME_STATUS_CODE_MASK);
}

/* Return: as complete(). */
static int pass(struct weir_admin *admin, struct nvme_sqe sqe, const char *what, uint32_t *result)
{
	sqe.cdw0 |= admin->sq_tail << 16; /* one at a time: any CID will do */
	submit(admin, &sqe);
	return complete(admin, what, result);
}

int weir_admin_command(struct weir_admin *admin, struct nvme_sqe sqe, const char *what, uint32_t *result)
{
	int error = check_alive(admin, what), status;

	if (admin->silent)
		return weir_fail(
			EIO, "admin command %s is not sent: the controller left the one before unanswered",
			what);
	if (error)
		return error;
	if (weir_admin_is_kept(admin))
		return by_driver(admin, &sqe, what, result);
	status = pass(admin, sqe, what, result);
	return status < 0 ? status : check_status((uint32_t)status, what);
}

int weir_admin_pass(struct weir_admin *admin, const struct nvme_sqe *sqe, uint32_t *result)
{
	char what[24];
	int error;

	snprintf(what, sizeof(what), "%#04x", (unsigned)(sqe->cdw0 & 0xff));
	error = check_alive(admin, what);
	if (admin->silent)
		return weir_fail(
			EIO, "admin command %s is not sent: the controller left the one before unanswered",
			what);
	return error ? error : pass(admin, *sqe, what, result);
}

/* What CAP has to say before the controller is touched. */
static int check_capabilities(uint64_t cap)
{
	unsigned sets = (unsigned)(cap >> CAP_CSS_SHIFT) & 0xff;

	if (cap == UINT64_MAX)
		return weir_fail(EIO, "controller does not answer: its registers read as all ones");
	if (!cap)
		return weir_fail(EIO, "controller's registers read as zeros: is it a virtual function that "
				      "is offline (nvme virt-mgmt), or switched "
				      "off?");
	if (!(cap & 0xffff))
		return weir_fail(EIO, "controller says that its queues have one entry (CAP.MQES 0); two are "
				      "the fewest there can be");
	if ((cap >> 48) & 0xf)
		return weir_fail(ENOTSUP, "controller wants memory pages above 4 KiB (CAP.MPSMIN %u)",
				 (unsigned)(cap >> 48) & 0xf);
	if (sets && !(sets & CAP_CSS_NVM))
		return weir_fail(ENOTSUP,
				 "controller has no NVM command set (CAP.CSS %#x): it stores no blocks",
				 sets);
	return 0;
}

int weir_admin_enable(struct weir_admin *admin, struct weir_transport *transport, void *memory, uint64_t bus)
{
	const struct weir_transport_ops *ops = transport->ops;
	uint64_t cap = ops->admin ? 0 : ops->read64(transport, NVME_REGISTER_CAP);
	int error;

	*admin = (struct weir_admin){
		.transport = transport,
		.memory = memory,
		.bus = bus,
		.phase = 1,
		.command_ms = COMMAND_TIMEOUT_MS,
		.shutdown_ms = admin->shutdown_ms ? admin->shutdown_ms : WEIR_ADMIN_LEAST_SHUTDOWN_MS,
	};
	admin->timeout_ms = ((unsigned)(cap >> 24) & 0xff) * 500;
	if (admin->timeout_ms == 0)
		admin->timeout_ms = 500;
	admin->most_entries = (unsigned)(cap & 0xffff) + 1;
	admin->command_sets = ops->admin || (cap >> CAP_CSS_SHIFT & CAP_CSS_SEVERAL);
	memset(memory, 0, WEIR_ADMIN_MEMORY_BYTES);
	if (ops->admin) {
		admin->most_entries = transport->most_entries;
		return 0;
	}
	error = check_capabilities(cap);
	if (error)
		return error;
	ops->write32(transport, NVME_REGISTER_CC, 0);
	error = wait_stopped(admin);
	if (error)
		return error;
	ops->write32(transport, NVME_REGISTER_AQA, ((ENTRIES - 1) << 16) | (ENTRIES - 1));
	ops->write64(transport, NVME_REGISTER_ASQ, bus);
	ops->write64(transport, NVME_REGISTER_ACQ, bus + NVME_PAGE_BYTES);
	ops->write32(transport, NVME_REGISTER_CC, NVME_CC_ENABLE | NVME_CC_IOSQES_64 | NVME_CC_IOCQES_16);
	return wait_ready(admin, true, "its start");
}

int weir_admin_queue_count(struct weir_admin *admin, unsigned wanted, unsigned *granted)
{
	uint32_t result = 0;
	unsigned sqs, cqs;
	int error;

	*granted = wanted;
	if (weir_admin_is_kept(admin)) /* asked for already; how many it has is most_queues */
		return 0;
	error = weir_admin_command(admin,
				   (struct nvme_sqe){ .cdw0 = NVME_ADMIN_SET_FEATURES,
						      .cdw10 = NVME_FEATURE_NUMBER_OF_QUEUES,
						      .cdw11 = (wanted - 1) | ((wanted - 1) << 16) },
				   "Set Features (Number of Queues)", &result);
	sqs = (result & 0xffff) + 1;
	cqs = (result >> 16) + 1;
	*granted = sqs < cqs ? sqs : cqs;
	if (*granted > wanted)
		*granted = wanted;
	return error;
}

int weir_admin_shadow(struct weir_admin *admin, void *pages, uint64_t bus)
{
	int error;

	memset(pages, 0, WEIR_ADMIN_SHADOW_BYTES);
	error = weir_admin_command(admin,
				   (struct nvme_sqe){ .cdw0 = NVME_ADMIN_DOORBELL_BUFFER_CONFIG,
						      .prp1 = bus,
						      .prp2 = bus + NVME_PAGE_BYTES },
				   "Doorbell Buffer Config", NULL);
	if (!error)
		admin->shadow = pages;
	return error;
}

int weir_admin_create_queue(struct weir_admin *admin, unsigned id, unsigned depth, uint64_t sq, uint64_t cq)
{
	uint32_t size = ((depth - 1) << 16) | id;
	int error = weir_admin_command(
		admin,
		(struct nvme_sqe){ .cdw0 = NVME_ADMIN_CREATE_CQ, .prp1 = cq, .cdw10 = size, .cdw11 = 1 },
		"Create I/O Completion Queue", NULL);

	if (error)
		return error;
	return weir_admin_command(
		admin,
		(struct nvme_sqe){
			.cdw0 = NVME_ADMIN_CREATE_SQ, .prp1 = sq, .cdw10 = size, .cdw11 = (id << 16) | 1 },
		"Create I/O Submission Queue", NULL);
}

int weir_admin_delete_queue(struct weir_admin *admin, unsigned id)
{
	int error = weir_admin_command(admin, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_DELETE_SQ, .cdw10 = id },
				       "Delete I/O Submission Queue", NULL);

	if (error)
		return error;
	return weir_admin_command(admin, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_DELETE_CQ, .cdw10 = id },
				  "Delete I/O Completion Queue", NULL);
}

int weir_admin_abort(struct weir_admin *admin, unsigned id, unsigned cid, bool *aborted)
{
	uint32_t result = 1;
	int error = weir_admin_command(admin,
				       (struct nvme_sqe){ .cdw0 = NVME_ADMIN_ABORT, .cdw10 = cid << 16 | id },
				       "Abort", &result);

	*aborted = !error && !(result & 1); /* Base 2.0, section 5.1 */
	return error;
}

int weir_admin_stop(struct weir_admin *admin)
{
	if (weir_admin_is_kept(admin))
		return admin->transport->ops->reset(admin->transport);
	admin->transport->ops->write32(admin->transport, NVME_REGISTER_CC, 0);
	return wait_ready(admin, false, "its reset");
}

bool weir_admin_answers(const struct weir_admin *admin)
{
	return !admin->silent && alive(admin->transport->ops->read32(admin->transport, NVME_REGISTER_CSTS));
}

bool weir_admin_fell_silent(const struct weir_admin *admin)
{
	return admin->silent && alive(admin->transport->ops->read32(admin->transport, NVME_REGISTER_CSTS));
}

static int shut_down(struct weir_admin *admin)
{
	struct weir_transport *transport = admin->transport;
	uint32_t cc = transport->ops->read32(transport, NVME_REGISTER_CC), csts;
	int error;

	transport->ops->write32(transport, NVME_REGISTER_CC, (cc & ~NVME_CC_SHUTDOWN_MASK) | (1u << 14));
	error = wait_csts(admin, NVME_CSTS_SHUTDOWN_MASK, NVME_CSTS_SHUTDOWN_DONE, NVME_CSTS_FATAL,
			  admin->shutdown_ms, "its shutdown");
	csts = transport->ops->read32(transport, NVME_REGISTER_CSTS);
	if (!error && (csts & NVME_CSTS_FATAL)) /* it ended its shutdown, and could not make all durable */
		error = weir_fail(EIO, "controller reports a fatal status (CSTS %#x) after its shutdown",
				  csts);
	return error;
}

int weir_admin_disable(struct weir_admin *admin)
{
	struct weir_losses losses = { .error = 0 };

	if (weir_admin_is_kept(admin))
		return admin->transport->ops->finish ? admin->transport->ops->finish(admin->transport) : 0;
	weir_losses_add(&losses,
			weir_admin_answers(admin)
				? shut_down(admin)
				: weir_fail(EIO, "controller no longer answers and was not shut down"));
	(void)weir_admin_stop(admin);
	return weir_losses_end(&losses);
}
