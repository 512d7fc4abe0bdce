/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_reset_test.c: resets of a controller that the kernel's driver keeps: whose they are, and what is
 * left of our queue pairs. And its disks, which the system must not have meanwhile; what the module is added.
 *
 * transport_kernel.c alone is linked. The driver is a stand-in, and so is the kernel module: its node is a
 * memfd.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../kmod-p2p/weir_p2p.h"
#include "../../rig/leaks.h"
#include "backend/error.h"
#include "backend/window.h"
#include "transport/medium/block_use.h"
#include "transport/nvme/driver.h"
#include "transport/nvme/transport_nvme.h"

enum { PAGE = 4096, DRIVERS_QUEUES = 2, GRANTED = 4, DOORBELL = 64, STRIDE = 8 };

/**
 * struct driver - the stand-in's state
 * @after: what a reset ends with
 * @another_resets: somebody else begins a reset just before ours
 * @fails: it cannot reset the controller
 * @resets: that it was asked for, and began
 * @deletions: queues that were deleted by a command
 * @status: of deletions, and of Identify
 * @granted: dword 0 of Number of Queues
 * @data: prp1 of Identify
 */
static struct driver {
	enum weir_nvme_driver_state state;
	enum weir_nvme_driver_state after;
	bool another_resets;
	bool fails;
	unsigned resets;
	unsigned deletions;
	int status;
	uint32_t granted;
	uint64_t data;
} driver;

static unsigned pairs;              /* that the module knows */
static struct weir_p2p_queue added; /* of the last one, as it was added */
static uint64_t function;           /* address of the controller, packed */
static unsigned taken;              /* number of a queue that somebody else has; 0: of none */
static bool no_doorbells;           /* that could be mapped */
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
	if (call == WEIR_P2P_QUEUE_ADD && queue->qid == taken) {
		errno = EBUSY;
		return -1;
	}
	if (call == WEIR_P2P_QUEUE_ADD) {
		added = *queue;
		queue->handle = ++pairs;
		queue->mmap_offset = no_doorbells;
		queue->mmap_bytes = PAGE;
		queue->doorbell = DOORBELL;
		queue->doorbell_stride = STRIDE;
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
	assert_int_equal(device, 77);
	strcpy(use, "it is mounted at /home");
	return true;
}

/** struct disk - of namespace 5; @opened: flags by which it was opened; 0: it was not */
static struct {
	bool there;
	int error, opened;
} disk;

int open(const char *path, int flags, ...)
{
	assert_string_equal(path, "/dev/nvme9n1");
	disk.opened = flags;
	if (disk.error) {
		errno = disk.error;
		return -1;
	}
	return dup(window.node);
}

int stat(const char *path, struct stat *out)
{
	assert_string_equal(path, "/dev/nvme9n1");
	*out = (struct stat){ .st_rdev = 77 };
	return 0;
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
	*result = driver.granted;
	driver.deletions += opcode == NVME_ADMIN_DELETE_SQ || opcode == NVME_ADMIN_DELETE_CQ;
	if (opcode == NVME_ADMIN_IDENTIFY) {
		driver.data = command->prp1;
		memset((void *)(uintptr_t)command->prp1, 0x5a, NVME_PAGE_BYTES);
	}
	return opcode == NVME_ADMIN_DELETE_SQ || opcode == NVME_ADMIN_DELETE_CQ ||
			       opcode == NVME_ADMIN_IDENTIFY
		       ? driver.status
		       : 0;
}

bool weir_nvme_driver_disk(const struct weir_nvme_driver *of, uint32_t nsid, char name[WEIR_NVME_DRIVER_NAME])
{
	(void)of;
	strcpy(name, "nvme9n1");
	return disk.there && nsid == 5;
}

static void send(uint8_t opcode)
{
	struct nvme_sqe command = { .cdw0 = opcode, .cdw10 = transport->ops->queue_id(transport, 0) };
	uint32_t result;

	assert_int_equal(transport->ops->admin(transport, &command, 0, &result), 0);
}

static int open_as(bool read_only, enum weir_nvme_in_use in_use)
{
	struct weir_uri uri = { .text = "nvme:0000:01:00.0?driver=kernel" };
	struct weir_transport_request request = { .uri = &uri, .window = &window, .read_only = read_only };
	struct weir_transport base = { .ops = NULL };
	struct weir_nvme_keys keys = { .address = { .packed = function },
				       .owner = WEIR_NVME_OWNER_KERNEL,
				       .in_use = in_use };

	return weir_nvme_kernel_open(&request, &base, &keys, &transport);
}

/* With one queue pair, which the controller has. */
static int open_one(void **state)
{
	(void)state;
	driver = (struct driver){ .state = WEIR_NVME_DRIVER_LIVE,
				  .granted = (GRANTED - 1) << 16 | (GRANTED - 1) };
	disk.there = true;
	disk.opened = disk.error = 0;
	window = (struct weir_window){ .node = memfd_create("doorbells", 0), .bytes = PAGE };
	if (window.node < 0 || ftruncate(window.node, PAGE) || open_as(false, WEIR_NVME_IN_USE_REFUSE) ||
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

static uint32_t csts(void)
{
	return transport->ops->read32(transport, NVME_REGISTER_CSTS);
}

/* A reset that is over before its end is seen has ended our queue pairs as well: not ready, until we know. */
static void what_the_driver_does_is_seen(void **state)
{
	(void)state;
	assert_int_equal(csts(), NVME_CSTS_READY);
	assert_int_equal(transport->ops->read32(transport, NVME_REGISTER_CC), 0);
	driver.state = WEIR_NVME_DRIVER_BUSY;
	assert_int_equal(csts(), 0);
	driver.state = WEIR_NVME_DRIVER_LIVE;
	assert_int_equal(csts(), 0);
	assert_int_equal(transport->ops->reset(transport), 0);
	assert_int_equal(driver.resets, 0); /* there was one */
	assert_int_equal(csts(), NVME_CSTS_READY);
	driver.state = WEIR_NVME_DRIVER_GONE;
	assert_int_equal(csts(), UINT32_MAX);
	close_now();
	assert_int_equal(driver.deletions, 0);
	assert_int_equal(pairs, 0);
}

/* The module has taken the doorbells of a controller that is gone: what is rung then goes nowhere. */
static void doorbells_of_a_lost_controller(void **state)
{
	unsigned number = 2 * transport->ops->queue_id(transport, 0);
	volatile uint32_t *doorbells =
		(volatile uint32_t *)(uintptr_t)transport->ops->doorbell(transport, number);
	uint32_t rung[1 + STRIDE / 4];

	(void)state;
	assert_int_equal(transport->doorbell_bytes, STRIDE);
	assert_ptr_equal((void *)(uintptr_t)transport->ops->doorbell(transport, number + 1),
			 (void *)(uintptr_t)(doorbells + STRIDE / 4));
	assert_true(transport->ops->doorbell(transport, number + 2) == 0);
	for (unsigned gone = 0; gone < 2; gone++) {
		driver.state = gone ? WEIR_NVME_DRIVER_GONE : WEIR_NVME_DRIVER_LIVE;
		transport->ops->give_way(transport);
		transport->ops->give_way(transport);
		doorbells[0] = 5 + gone;
		doorbells[STRIDE / 4] = 7 + gone;
		assert_int_equal(pread(window.node, rung, sizeof(rung), DOORBELL), sizeof(rung));
		assert_int_equal(rung[0], 5);
		assert_int_equal(rung[STRIDE / 4], 7);
	}
	close_now();
	assert_int_equal(pairs, 0);
}

static int adopt(void)
{
	return transport->ops->adopt(transport, &(struct weir_rings){ .sq_bytes = 64, .cq_bytes = 16 });
}

/* Numbers that others have are passed over; what cannot be had whole is the module's no more. */
static void pairs_that_can_be_had(void **state)
{
	(void)state;
	assert_int_equal(transport->ops->queue_id(transport, 0), DRIVERS_QUEUES);
	taken = DRIVERS_QUEUES + 1;
	no_doorbells = true;
	assert_true(adopt() < 0);
	assert_int_equal(pairs, 1);
	no_doorbells = false;
	assert_int_equal(adopt(), 0);
	assert_int_equal(pairs, 2);
	assert_int_equal(transport->ops->queue_id(transport, 1), DRIVERS_QUEUES + 2);
	assert_int_equal(adopt(), -EBUSY);
	assert_non_null(strstr(weir_last_error(),
			       "has 4 I/O queue pairs, of which the kernel's driver has 1, this "
			       "storage 2 and other programs the rest"));
	assert_int_equal(pairs, 2);
	close_now();
	assert_int_equal(pairs, 0);
	taken = 0;
}

/* Whoever may write has the namespace's block device for itself, for as long as the storage is open. */
static void a_disk_is_nobody_elses(void **state)
{
	unsigned files = test_files();

	(void)state;
	assert_int_equal(transport->ops->check(transport, 5, true), -ENOTSUP);
	assert_int_equal(disk.opened, 0);
	assert_int_equal(transport->ops->check(transport, 6, false), 0); /* nothing of the system's */
	assert_int_equal(disk.opened, 0);
	assert_int_equal(transport->ops->check(transport, 5, false), 0);
	assert_int_equal(disk.opened, O_RDWR | O_EXCL | O_CLOEXEC);
	assert_int_equal(test_files(), files + 1);
	close_now();
	assert_int_equal(test_files(), files);
}

static void a_disk_in_use_is_refused(void **state)
{
	unsigned files = test_files();

	(void)state;
	disk.error = EBUSY;
	assert_int_equal(transport->ops->check(transport, 5, false), -EBUSY);
	assert_non_null(strstr(weir_last_error(), "/dev/nvme9n1 is in use (it is mounted at /home)"));
	disk.error = EACCES;
	assert_int_equal(transport->ops->check(transport, 5, false), -EACCES);
	assert_non_null(strstr(weir_last_error(), "cannot open /dev/nvme9n1"));
	close_now();
	assert_int_equal(test_files(), files);
}

/* Of whoever reads alone, or knows what it does, nothing is asked. */
static void a_disk_that_may_be_in_use(void **state)
{
	(void)state;
	disk.error = EBUSY;
	for (unsigned reads = 0; reads < 2; reads++) {
		close_now();
		disk.opened = 0;
		assert_int_equal(open_as(reads, reads ? WEIR_NVME_IN_USE_REFUSE : WEIR_NVME_IN_USE_ALLOW), 0);
		assert_int_equal(transport->ops->check(transport, 5, false), 0);
		assert_int_equal(disk.opened, 0);
	}
}

/* As many pairs as there are queues of either kind, but for the driver's. */
static void the_fewer_of_both_kinds_count(void **state)
{
	static const struct {
		uint32_t sqs, cqs, most;
	} rows[] = { { 4, 3, 2 }, { 3, 6, 2 }, { 2, 2, 1 }, { 65536, 65536, 65535 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		close_now();
		driver.granted = (rows[i].cqs - 1) << 16 | (rows[i].sqs - 1);
		assert_int_equal(open_as(true, WEIR_NVME_IN_USE_ALLOW), 0);
		assert_int_equal(transport->most_queues, rows[i].most);
		assert_int_equal(transport->most_entries, 64);
	}
	close_now();
	driver.granted = 5 << 16;
	assert_int_equal(open_as(true, WEIR_NVME_IN_USE_ALLOW), -EBUSY);
	assert_non_null(strstr(weir_last_error(), "has 1 I/O queue pairs, and the kernel's driver has them"));
}

/* Whose queues they are, and where their rings lie in the window, beyond 4 GiB, too. */
static void what_the_module_is_given(void **state)
{
	const uint64_t far = (uint64_t)5 << 30, at = (uint64_t)1 << 32;

	(void)state;
	close_now();
	function = (uint64_t)0x12345 << 16 | 0x67 << 8 | 0x1e << 3 | 5;
	window.handle = 9;
	window.host = (void *)(uintptr_t)at;
	assert_int_equal(open_as(true, WEIR_NVME_IN_USE_ALLOW), 0);
	assert_int_equal(transport->ops->adopt(transport, &(struct weir_rings){ .sq = at + far,
										.sq_bytes = 8192,
										.cq = at + far + 8192,
										.cq_bytes = 4096 }),
			 0);
	assert_int_equal(added.size, sizeof(added));
	assert_int_equal(added.ssd.domain, 0x12345);
	assert_int_equal(added.ssd.bus, 0x67);
	assert_int_equal(added.ssd.device, 0x1e);
	assert_int_equal(added.ssd.function, 5);
	assert_int_equal(added.qid, DRIVERS_QUEUES);
	assert_true(added.sq.handle == 9 && added.sq.offset == far && added.sq.bytes == 8192);
	assert_true(added.cq.handle == 9 && added.cq.offset == far + 8192 && added.cq.bytes == 4096);
	function = 0;
}

/* By memory of the host, which the driver's controller reaches; a refusal brings nothing. */
static void what_identify_brings(void **state)
{
	static _Alignas(NVME_PAGE_BYTES) unsigned char page[NVME_PAGE_BYTES];
	const struct nvme_sqe command = { .cdw0 = NVME_ADMIN_IDENTIFY, .prp1 = (uintptr_t)page };
	uint32_t result;

	(void)state;
	for (int status = NVME_STATUS_INVALID_FIELD; status >= 0; status -= NVME_STATUS_INVALID_FIELD) {
		memset(page, 0, sizeof(page));
		driver.status = status;
		assert_int_equal(transport->ops->admin(transport, &command, 0, &result), status);
		assert_true(driver.data != (uintptr_t)page && driver.data % NVME_PAGE_BYTES == 0);
		for (size_t i = 0; i < sizeof(page); i++)
			assert_int_equal(page[i], status ? 0 : 0x5a);
	}
}

/* A queue that the controller does not know is deleted; with any other refusal it may have it, and is reset.
 */
static void what_is_left_is_reset(void **state)
{
	static const int statuses[] = { NVME_STATUS_INVALID_QID | NVME_STATUS_DNR, NVME_STATUS_INVALID_FIELD,
					-EIO };

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		uintptr_t at = (uintptr_t)transport->ops->doorbell(
			transport, 2 * transport->ops->queue_id(transport, 0));

		driver.status = statuses[i];
		close_now();
		assert_int_equal(driver.resets, i != 0);
		assert_int_equal(driver.deletions, i ? 1 : 2);
		assert_int_equal(pairs, 0);
		assert_int_equal(msync((void *)(at - DOORBELL), PAGE, MS_ASYNC),
				 -1); /* nothing is mapped there */
		assert_int_equal(close(window.node) + open_one(state), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_reset_is_asked_for, open_one, close_one),
		cmocka_unit_test_setup_teardown(a_reset_of_anothers_is_as_good, open_one, close_one),
		cmocka_unit_test_setup_teardown(a_reset_of_anothers_may_be_its_end, open_one, close_one),
		cmocka_unit_test_setup_teardown(a_reset_that_fails_is_told_of, open_one, close_one),
		cmocka_unit_test_setup_teardown(what_the_driver_does_is_seen, open_one, close_one),
		cmocka_unit_test_setup_teardown(doorbells_of_a_lost_controller, open_one, close_one),
		cmocka_unit_test_setup_teardown(pairs_that_can_be_had, open_one, close_one),
		cmocka_unit_test_setup_teardown(a_disk_is_nobody_elses, open_one, close_one),
		cmocka_unit_test_setup_teardown(a_disk_in_use_is_refused, open_one, close_one),
		cmocka_unit_test_setup_teardown(a_disk_that_may_be_in_use, open_one, close_one),
		cmocka_unit_test_setup_teardown(the_fewer_of_both_kinds_count, open_one, close_one),
		cmocka_unit_test_setup_teardown(what_the_module_is_given, open_one, close_one),
		cmocka_unit_test_setup_teardown(what_identify_brings, open_one, close_one),
		cmocka_unit_test_setup_teardown(what_is_left_is_reset, open_one, close_one),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("kernel_reset", tests, NULL, NULL);
}
