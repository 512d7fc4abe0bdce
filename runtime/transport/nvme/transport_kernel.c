/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvme/transport_kernel.c: nvme: is queue pairs of a controller that the kernel's driver keeps.
 *
 * Owns: which queue pairs are ours, their doorbells, and that none is left at the controller when it is
 * closed. Admin commands go by the driver; the kernel module weir_p2p (kmod-p2p/weir_p2p.h) knows of each
 * pair, and resets the controller should this process end without deleting them. Rings and data lie in a
 * window of the module's, since only of that are bus addresses known.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../kmod-p2p/weir_p2p.h"
#include "../../backend/error.h"
#include "../../backend/window.h"
#include "../medium/block_use.h"
#include "driver.h"
#include "transport_nvme.h"

/**
 * struct kernel_pair - a queue pair of ours
 * @call: what the module was told, and told
 * @doorbells: where its doorbells are mapped
 * @sq: the controller has its submission queue
 * @cq: and its completion queue
 */
struct kernel_pair {
	struct weir_p2p_queue call;
	char *doorbells;
	bool sq;
	bool cq;
};

/**
 * struct kernel_controller - an open controller
 * @disk: the namespace's block device, claimed; -1: not claimed
 * @pairs: @count of them, base.most_queues at most
 * @first: number of the first queue that is not the driver's
 * @end: one more than the last one's
 * @was_reset: the driver has reset the controller, which knows none of our queues any more
 * @unplugged: doorbells lead nowhere
 */
struct kernel_controller {
	struct weir_transport base;
	struct weir_nvme_driver driver;
	struct weir_nvme_keys keys;
	bool writes;
	int disk;
	struct kernel_pair *pairs;
	unsigned count;
	unsigned first;
	unsigned end;
	bool was_reset;
	bool unplugged;
	char *uri;
	char path[96];
};

static struct kernel_controller *controller_of(struct weir_transport *transport)
{
	return (struct kernel_controller *)transport;
}

/* Our queues are gone with the controller's reset. */
static void forget_queues(struct kernel_controller *controller)
{
	for (unsigned i = 0; i < controller->count; i++)
		controller->pairs[i].sq = controller->pairs[i].cq = false;
	controller->was_reset = false;
}

/* CSTS alone, as the driver's state has it. */
static uint32_t kernel_read32(struct weir_transport *transport, uint32_t offset)
{
	struct kernel_controller *controller = controller_of(transport);
	enum weir_nvme_driver_state state = weir_nvme_driver_state(&controller->driver);

	if (offset != NVME_REGISTER_CSTS)
		return 0;
	if (state == WEIR_NVME_DRIVER_GONE)
		return UINT32_MAX;
	if (state == WEIR_NVME_DRIVER_BUSY)
		controller->was_reset = true;
	return state == WEIR_NVME_DRIVER_LIVE && !controller->was_reset ? NVME_CSTS_READY : 0;
}

static struct kernel_pair *pair_of(struct kernel_controller *controller, unsigned qid)
{
	for (unsigned i = 0; i < controller->count; i++)
		if (controller->pairs[i].call.qid == qid)
			return &controller->pairs[i];
	return NULL;
}

static uint64_t kernel_doorbell(struct weir_transport *transport, unsigned index)
{
	const struct kernel_pair *pair = pair_of(controller_of(transport), index / 2);

	return pair ? (uintptr_t)pair->doorbells + pair->call.doorbell +
			       index % 2 * pair->call.doorbell_stride
		    : 0;
}

static unsigned kernel_queue_id(struct weir_transport *transport, uint32_t index)
{
	return controller_of(transport)->pairs[index].call.qid;
}

/* What the controller has of a pair, by an admin command of ours that it has carried out. */
static void note_queue(struct kernel_controller *controller, const struct nvme_sqe *command)
{
	struct kernel_pair *pair = pair_of(controller, command->cdw10 & 0xffff);
	uint8_t opcode = (uint8_t)command->cdw0;

	if (!pair)
		return;
	if (opcode == NVME_ADMIN_CREATE_CQ || opcode == NVME_ADMIN_DELETE_CQ)
		pair->cq = opcode == NVME_ADMIN_CREATE_CQ;
	else if (opcode == NVME_ADMIN_CREATE_SQ || opcode == NVME_ADMIN_DELETE_SQ)
		pair->sq = opcode == NVME_ADMIN_CREATE_SQ;
}

/* There is no such queue (any more), as after a reset that was over before anybody looked. */
static bool is_deleted(const struct nvme_sqe *command, int status)
{
	uint8_t opcode = (uint8_t)command->cdw0;

	return (opcode == NVME_ADMIN_DELETE_SQ || opcode == NVME_ADMIN_DELETE_CQ) && status > 0 &&
	       (status & NVME_STATUS_CODE_MASK) == NVME_STATUS_INVALID_QID;
}

static int kernel_admin(struct weir_transport *transport, const struct nvme_sqe *command, unsigned ms,
			uint32_t *result)
{
	struct kernel_controller *controller = controller_of(transport);
	_Alignas(NVME_PAGE_BYTES) char page[NVME_PAGE_BYTES];
	bool reads = (uint8_t)command->cdw0 == NVME_ADMIN_IDENTIFY;
	struct nvme_sqe sent = *command;
	int status;

	(void)ms; /* the driver has a limit of its own */
	/* By way of the host's memory, which it reaches: whether it reaches the window, the module says
	 * before there is a queue. */
	if (reads)
		sent.prp1 = (uintptr_t)page;
	status = weir_nvme_driver_admin(&controller->driver, &sent, result);
	if (reads && !status)
		memcpy((void *)(uintptr_t)command->prp1, page, sizeof(page));
	if (!status || is_deleted(command, status))
		note_queue(controller, command);
	return status;
}

static int kernel_restart(struct weir_transport *transport)
{
	return weir_nvme_driver_await(&controller_of(transport)->driver);
}

/* Unless it was one that had this reset seen; or one that has begun since, for somebody else (EBUSY), which
 * ends our queues as well. */
static int kernel_reset(struct weir_transport *transport)
{
	struct kernel_controller *controller = controller_of(transport);
	int error = controller->was_reset ? 0 : weir_nvme_driver_reset(&controller->driver);

	if (!error || error == -EBUSY)
		error = weir_nvme_driver_await(&controller->driver);
	if (!error)
		forget_queues(controller);
	return error;
}

static void kernel_stats(struct weir_transport *transport, struct weir_transport_stats *stats)
{
	(void)transport;
	*stats = (struct weir_transport_stats){ 0, 0, false };
}

/* The module has taken the doorbells away: what lanes ring goes nowhere. */
static void kernel_give_way(struct weir_transport *transport)
{
	struct kernel_controller *controller = controller_of(transport);

	if (controller->unplugged || weir_nvme_driver_state(&controller->driver) != WEIR_NVME_DRIVER_GONE)
		return;
	for (unsigned i = 0; i < controller->count; i++)
		(void)mmap(controller->pairs[i].doorbells, controller->pairs[i].call.mmap_bytes,
			   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	controller->unplugged = true;
}

static const char *kernel_path(struct weir_transport *transport)
{
	return controller_of(transport)->path;
}

static int refuse_in_use(struct kernel_controller *controller, const char *disk, uint64_t device)
{
	char use[WEIR_BLOCK_USE];

	weir_block_use(device, use);
	return weir_fail(EBUSY,
			 "storage \"%s\": /dev/%s is in use (%s), so it is not opened for writing: free it "
			 "first, open it "
			 "read-only (ro=1), or, knowing that both will write, say in_use=allow",
			 controller->uri, disk, use);
}

/* The system does not use it, and will not while we may write there. */
static int claim(struct kernel_controller *controller, uint32_t nsid)
{
	char disk[WEIR_NVME_DRIVER_NAME], path[64];
	struct stat state;

	if (!controller->writes || controller->keys.in_use == WEIR_NVME_IN_USE_ALLOW ||
	    !weir_nvme_driver_disk(&controller->driver, nsid, disk))
		return 0;
	snprintf(path, sizeof(path), "/dev/%s", disk);
	controller->disk = open(path, O_RDWR | O_EXCL | O_CLOEXEC);
	if (controller->disk >= 0)
		return 0;
	if (errno == EBUSY && !stat(path, &state))
		return refuse_in_use(controller, disk, state.st_rdev);
	return weir_fail(errno,
			 "storage \"%s\": cannot open %s, to have the system not use it: %s; or open it "
			 "read-only (ro=1)",
			 controller->uri, path, strerror(errno));
}

static int kernel_check(struct weir_transport *transport, uint32_t nsid, bool shadow_doorbells)
{
	struct kernel_controller *controller = controller_of(transport);

	if (shadow_doorbells)
		return weir_fail(ENOTSUP,
				 "storage \"%s\": %s has shadow doorbells, which its driver uses: those of "
				 "other queues are of no "
				 "effect; give the controller to VFIO and leave out driver=kernel",
				 controller->uri, controller->driver.function.address);
	return claim(controller, nsid);
}

static struct weir_p2p_ring ring_at(const struct kernel_controller *controller, uint64_t address,
				    uint64_t bytes)
{
	const struct weir_window *window = controller->base.window;

	return (struct weir_p2p_ring){ .handle = window->handle,
				       .offset = address - (uintptr_t)window->host,
				       .bytes = bytes };
}

/* Tell the module of a pair, with the first number behind our last one's that nobody has. */
static int add_pair(struct kernel_controller *controller, struct kernel_pair *pair)
{
	int node = controller->base.window->node;
	unsigned last =
		controller->count ? controller->pairs[controller->count - 1].call.qid : controller->first - 1;

	for (pair->call.qid = last + 1; pair->call.qid < controller->end; pair->call.qid++) {
		if (!ioctl(node, WEIR_P2P_QUEUE_ADD, &pair->call))
			return 0;
		if (errno != EBUSY && errno != EEXIST)
			return weir_fail(errno, "storage \"%s\": %s", controller->uri,
					 weir_window_reason(node));
	}
	return weir_fail(EBUSY,
			 "storage \"%s\": %s has %u I/O queue pairs, of which the kernel's driver has %u, "
			 "this storage %u and other "
			 "programs the rest: ask for fewer (queues=N)",
			 controller->uri, controller->driver.function.address, controller->end - 1,
			 controller->first - 1, controller->count);
}

static void remove_pair(struct kernel_controller *controller, struct kernel_pair *pair)
{
	struct weir_p2p_deregister call = { .size = sizeof(call), .handle = pair->call.handle };

	if (ioctl(controller->base.window->node, WEIR_P2P_QUEUE_REMOVE, &call) && errno != ENOENT)
		weir_report("storage \"%s\": queue pair %u stays the module's: %s", controller->uri,
			    pair->call.qid, weir_window_reason(controller->base.window->node));
}

static int kernel_adopt(struct weir_transport *transport, const struct weir_rings *rings)
{
	struct kernel_controller *controller = controller_of(transport);
	struct kernel_pair *pair = &controller->pairs[controller->count];
	struct weir_pci address = controller->keys.address;
	int error;

	*pair = (struct kernel_pair){ .call = { .size = sizeof(pair->call),
						.ssd = { .domain = (uint32_t)(address.packed >> 16),
							 .bus = (uint8_t)(address.packed >> 8),
							 .device = address.packed >> 3 & 0x1f,
							 .function = address.packed & 7 },
						.sq = ring_at(controller, rings->sq, rings->sq_bytes),
						.cq = ring_at(controller, rings->cq, rings->cq_bytes) } };
	error = add_pair(controller, pair);
	if (error)
		return error;
	pair->doorbells = mmap(NULL, pair->call.mmap_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			       transport->window->node, (off_t)pair->call.mmap_offset);
	if (pair->doorbells == MAP_FAILED) {
		error = weir_fail(errno, "storage \"%s\": %s", controller->uri,
				  weir_window_reason(transport->window->node));
		remove_pair(controller, pair);
		return error;
	}
	transport->doorbell_bytes = pair->call.doorbell_stride;
	controller->count++;
	return 0;
}

/* Have the controller forget what it still has of a pair. Return: it has. */
static bool delete_pair(struct kernel_controller *controller, struct kernel_pair *pair)
{
	struct nvme_sqe command = { .cdw0 = NVME_ADMIN_DELETE_SQ, .cdw10 = pair->call.qid };
	uint32_t result;

	if (pair->sq)
		(void)kernel_admin(&controller->base, &command, 0, &result);
	command.cdw0 = NVME_ADMIN_DELETE_CQ;
	if (!pair->sq && pair->cq)
		(void)kernel_admin(&controller->base, &command, 0, &result);
	return !pair->sq && !pair->cq;
}

static bool delete_all(struct kernel_controller *controller)
{
	bool all = true;

	for (unsigned i = 0; i < controller->count; i++)
		all = delete_pair(controller, &controller->pairs[i]) && all;
	return all;
}

/* The controller has none of our queues, or may do no DMA. Return: that is so. */
static bool leave_none(struct kernel_controller *controller)
{
	if (!controller->count || weir_nvme_driver_state(&controller->driver) == WEIR_NVME_DRIVER_GONE)
		return true; /* the driver has switched it off */
	if (!controller->was_reset && weir_nvme_driver_state(&controller->driver) == WEIR_NVME_DRIVER_LIVE &&
	    delete_all(controller))
		return true;
	return !kernel_reset(&controller->base);
}

/* The driver keeps the controller, and shuts nothing down for us: a flush makes durable what was written. One
 * whose driver has left has no doorbells for it. */
static bool kernel_leave(struct weir_transport *transport)
{
	return weir_nvme_driver_state(&controller_of(transport)->driver) != WEIR_NVME_DRIVER_GONE;
}

static void kernel_close(struct weir_transport *transport)
{
	struct kernel_controller *controller = controller_of(transport);
	bool none = leave_none(controller);

	for (unsigned i = 0; i < controller->count; i++) {
		munmap(controller->pairs[i].doorbells, controller->pairs[i].call.mmap_bytes);
		if (none)
			remove_pair(controller, &controller->pairs[i]);
	}
	if (!none)
		weir_report("storage \"%s\": queue pairs are left at the controller (%s); weir_p2p resets "
			    "it when the context is "
			    "closed",
			    controller->uri, weir_last_error());
	if (controller->disk >= 0)
		close(controller->disk);
	weir_nvme_driver_close(&controller->driver);
	free(controller->pairs);
	free(controller->uri);
	free(controller);
}

/* What the keys must not say. */
static int check_keys(struct kernel_controller *controller)
{
	if (controller->keys.memory_given && controller->base.gpu_memory != WEIR_GPU_MEMORY_QUEUES)
		return weir_fail(EINVAL,
				 "storage \"%s\": with driver=kernel queues and data are in the device's "
				 "memory: leave out "
				 "gpu_memory, or say gpu_memory=queues",
				 controller->uri);
	if (controller->base.mover == WEIR_MOVER_PULL)
		return weir_fail(EINVAL,
				 "storage \"%s\": mover=pull leaves data in the host's memory, of which no "
				 "bus addresses are known; "
				 "leave it out with driver=kernel",
				 controller->uri);
	if (controller->keys.choice != WEIR_VFIO_AUTO)
		return weir_fail(
			EINVAL,
			"storage \"%s\": vfio= and driver=kernel are two ways to a controller; leave out one",
			controller->uri);
	return 0;
}

static int find_window(struct kernel_controller *controller, const struct weir_transport_request *request)
{
	struct weir_transport *base = &controller->base;

	if (!request->window && access("/dev/weir_p2p", F_OK) != 0)
		return weir_fail(ENODEV,
				 "storage \"%s\": the kernel module weir_p2p is not loaded, without which "
				 "driver=kernel is not to be had "
				 "(docs/kernel.md)",
				 controller->uri);
	if (!request->window)
		return weir_fail(ENOTSUP,
				 "storage \"%s\": driver=kernel is for a context whose device memory is a "
				 "window of weir_p2p, such as "
				 "cpu:memory=/dev/weir_p2p/0000:65:00.0-2",
				 controller->uri);
	base->window = request->window;
	return weir_window_locate(request->window, &base->bus_offset);
}

/* How many queue pairs the controller has in all, and the driver's (Get Features, Number of Queues). */
static int count_queues(struct kernel_controller *controller)
{
	struct nvme_sqe command = { .cdw0 = NVME_ADMIN_GET_FEATURES, .cdw10 = NVME_FEATURE_NUMBER_OF_QUEUES };
	struct weir_transport *base = &controller->base;
	uint32_t granted = 0, sqs, cqs, left;
	int status = weir_nvme_driver_admin(&controller->driver, &command, &granted);

	if (status)
		return status < 0 ? status
				  : weir_fail(EIO,
					      "storage \"%s\": %s refuses Get Features (Number of Queues) "
					      "with status %#x",
					      controller->uri, controller->driver.function.address, status);
	sqs = (granted & 0xffff) + 1;
	cqs = (granted >> 16) + 1;
	controller->end = (sqs < cqs ? sqs : cqs) + 1;
	controller->first = controller->driver.queues;
	if (controller->end <= controller->first)
		return weir_fail(
			EBUSY,
			"storage \"%s\": %s has %u I/O queue pairs, and the kernel's driver has them all",
			controller->uri, controller->driver.function.address, controller->end - 1);
	left = controller->end - controller->first;
	if (!base->most_queues || left < base->most_queues)
		base->most_queues = left;
	controller->pairs = calloc(base->most_queues, sizeof(*controller->pairs));
	return controller->pairs ? 0 : weir_fail(ENOMEM, "storage \"%s\": no memory", controller->uri);
}

static int reach(struct kernel_controller *controller, struct weir_transport_request *request)
{
	int error = check_keys(controller);

	if (!error)
		error = weir_nvme_driver_open("", controller->uri, controller->keys.address,
					      &controller->driver);
	if (!error)
		error = weir_nvme_driver_await(&controller->driver);
	if (!error)
		error = find_window(controller, request);
	if (!error)
		error = count_queues(controller);
	if (error)
		return error;
	controller->base.gpu_memory = WEIR_GPU_MEMORY_QUEUES;
	controller->base.most_entries = controller->driver.most_entries;
	controller->writes = !request->read_only && !controller->base.read_only;
	snprintf(controller->path, sizeof(controller->path), "NVMe controller %s of the kernel's driver (%s)",
		 controller->driver.function.address, controller->driver.name);
	return 0;
}

static const struct weir_transport_ops kernel_ops = {
	.size = sizeof(struct weir_transport_ops),
	.scheme = "nvme",
	.read32 = kernel_read32,
	.doorbell = kernel_doorbell,
	.restart = kernel_restart,
	.stats = kernel_stats,
	.give_way = kernel_give_way,
	.path = kernel_path,
	.close = kernel_close,
	.admin = kernel_admin,
	.reset = kernel_reset,
	.check = kernel_check,
	.adopt = kernel_adopt,
	.queue_id = kernel_queue_id,
	.leave = kernel_leave,
};

int weir_nvme_kernel_open(struct weir_transport_request *request, const struct weir_transport *base,
			  const struct weir_nvme_keys *keys, struct weir_transport **out)
{
	struct kernel_controller *controller = calloc(1, sizeof(*controller));
	int error;

	if (!controller || !(controller->uri = strdup(request->uri->text))) {
		free(controller);
		return weir_fail(ENOMEM, "storage \"%s\": no memory", request->uri->text);
	}
	controller->base = *base;
	controller->base.ops = &kernel_ops;
	controller->keys = *keys;
	controller->disk = controller->driver.device = controller->driver.state = -1;
	error = reach(controller, request);
	if (error) {
		kernel_close(&controller->base);
		return error;
	}
	*out = &controller->base;
	return 0;
}
