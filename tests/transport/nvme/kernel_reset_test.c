/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_reset_test.c: resets of a controller that the kernel's driver keeps: whose they are, and what is
 * left of our queue pairs.
 *
 * transport_kernel.c alone is linked. The driver is a stand-in, and so is the kernel module: its node is a
 * memfd.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../kmod-p2p/weir_p2p.h"
#include "backend/error.h"
#include "backend/window.h"
#include "transport/medium/block_use.h"
#include "transport/nvme/driver.h"
#include "transport/nvme/transport_nvme.h"

enum { PAGE = 4096, DRIVERS_QUEUES = 2, GRANTED = 4 };

/**
 * struct driver - the stand-in's state
 * @after: what a reset ends with
 * @another_resets: somebody else begins a reset just before ours
 * @fails: it cannot reset the controller
 * @resets: that it was asked for, and began
 * @deletions: queues that were deleted by a command
 */
static struct driver {
	enum weir_nvme_driver_state state;
	enum weir_nvme_driver_state after;
	bool another_resets;
	bool fails;
	unsigned resets;
	unsigned deletions;
} driver;

static unsigned pairs; /* that the module knows */
static struct weir_window window;
static struct weir_transport *transport;

int ioctl(int file, unsigned long call, ...)
{
	struct weir_p2p_queue *queue;
	va_list list;

	assert_int_equal(file, window.node);
	va_start(list, call);
	queue = va_arg(list, void *);
	va_end(list);
	if (call == WEIR_P2P_QUEUE_ADD) {
		queue->handle = ++pairs;
		queue->mmap_bytes = PAGE;
		queue->doorbell_stride = 4;
		return 0;
	}
	assert_true(call == WEIR_P2P_QUEUE_REMOVE);
	pairs--;
	return 0;
}

int weir_window_locate(const struct weir_window *of, uint64_t *bus_offset)
{
	assert_ptr_equal(of, &window);
	*bus_offset = 0;
	return 0;
}

const char *weir_window_reason(int node)
{
	(void)node;
	return strerror(errno);
}

bool weir_block_use(uint64_t device, char use[WEIR_BLOCK_USE])
{
	(void)device, (void)use;
	return false;
}

int weir_nvme_driver_open(const char *root, const char *storage, struct weir_pci address,
			  struct weir_nvme_driver *out)
{
	(void)root, (void)storage, (void)address;
	*out = (struct weir_nvme_driver){
		.device = -1, .state = -1, .queues = DRIVERS_QUEUES, .most_entries = 64
	};
	return 0;
}

void weir_nvme_driver_close(struct weir_nvme_driver *of)
{
	(void)of;
}

enum weir_nvme_driver_state weir_nvme_driver_state(const struct weir_nvme_driver *of)
{
	(void)of;
	return driver.state;
}

int weir_nvme_driver_await(const struct weir_nvme_driver *of)
{
	(void)of;
	if (driver.state == WEIR_NVME_DRIVER_BUSY)
		driver.state = driver.after;
	return driver.state == WEIR_NVME_DRIVER_GONE ? weir_fail(ENODEV, "it is gone") : 0;
}

int weir_nvme_driver_reset(const struct weir_nvme_driver *of)
{
	(void)of;
	if (driver.fails)
		return weir_fail(EIO, "no reset");
	if (driver.another_resets) {
		driver.another_resets = false;
		driver.state = WEIR_NVME_DRIVER_BUSY;
		return weir_fail(EBUSY, "it is being reset");
	}
	driver.resets++;
	return 0;
}

int weir_nvme_driver_admin(const struct weir_nvme_driver *of, const struct nvme_sqe *command,
			   uint32_t *result)
{
	uint8_t opcode = (uint8_t)command->cdw0;

	(void)of;
	*result = (GRANTED - 1) << 16 | (GRANTED - 1);
	driver.deletions += opcode == NVME_ADMIN_DELETE_SQ || opcode == NVME_ADMIN_DELETE_CQ;
	return 0;
}

bool weir_nvme_driver_disk(const struct weir_nvme_driver *of, uint32_t nsid, char disk[WEIR_NVME_DRIVER_NAME])
{
	(void)of, (void)nsid, (void)disk;
	return false;
}

static void send(uint8_t opcode)
{
	struct nvme_sqe command = { .cdw0 = opcode, .cdw10 = transport->ops->queue_id(transport, 0) };
	uint32_t result;

	assert_int_equal(transport->ops->admin(transport, &command, 0, &result), 0);
}

/* With one queue pair, which the controller has. */
static int open_one(void **state)
{
	struct weir_uri uri = { .text = "nvme:0000:01:00.0?driver=kernel" };
	struct weir_transport_request request = { .uri = &uri, .window = &window };
	struct weir_transport base = { .ops = NULL };
	struct weir_nvme_keys keys = { .owner = WEIR_NVME_OWNER_KERNEL };

	(void)state;
	driver = (struct driver){ .state = WEIR_NVME_DRIVER_LIVE };
	window = (struct weir_window){ .node = memfd_create("doorbells", 0), .bytes = PAGE };
	if (window.node < 0 || ftruncate(window.node, PAGE) ||
	    weir_nvme_kernel_open(&request, &base, &keys, &transport) ||
	    transport->ops->adopt(transport, &(struct weir_rings){ .sq_bytes = 64, .cq_bytes = 16 }))
		return -1;
	send(NVME_ADMIN_CREATE_CQ);
	send(NVME_ADMIN_CREATE_SQ);
	return 0;
}

static int close_one(void **state)
{
	(void)state;
	if (transport)
		transport->ops->close(transport);
	transport = NULL;
	return close(window.node);
}

static void close_now(void)
{
	transport->ops->close(transport);
	transport = NULL;
}

static void a_reset_is_asked_for(void **state)
{
	(void)state;
	assert_int_equal(transport->ops->reset(transport), 0);
	assert_int_equal(driver.resets, 1);
	close_now();
	assert_int_equal(driver.deletions, 0); /* the reset has ended them */
	assert_int_equal(pairs, 0);
}

/* As of another storage or program, for which the same controller does not answer. */
static void a_reset_of_anothers_is_as_good(void **state)
{
	(void)state;
	driver.another_resets = true;
	assert_int_equal(transport->ops->reset(transport), 0);
	assert_int_equal(driver.resets, 0);
	assert_int_equal(driver.state, WEIR_NVME_DRIVER_LIVE); /* it was waited for */
	close_now();
	assert_int_equal(driver.deletions, 0);
	assert_int_equal(pairs, 0);
}

static void a_reset_of_anothers_may_be_its_end(void **state)
{
	(void)state;
	driver.another_resets = true;
	driver.after = WEIR_NVME_DRIVER_GONE;
	assert_int_equal(transport->ops->reset(transport), -ENODEV);
}

static void a_reset_that_fails_is_told_of(void **state)
{
	(void)state;
	driver.fails = true;
	assert_int_equal(transport->ops->reset(transport), -EIO);
	driver.fails = false;
	close_now();
	assert_int_equal(driver.deletions, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_reset_is_asked_for, open_one, close_one),
		cmocka_unit_test_setup_teardown(a_reset_of_anothers_is_as_good, open_one, close_one),
		cmocka_unit_test_setup_teardown(a_reset_of_anothers_may_be_its_end, open_one, close_one),
		cmocka_unit_test_setup_teardown(a_reset_that_fails_is_told_of, open_one, close_one),
	};

	return cmocka_run_group_tests_name("kernel_reset", tests, NULL, NULL);
}
