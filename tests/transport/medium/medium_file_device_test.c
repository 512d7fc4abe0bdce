/* SPDX-License-Identifier: BSD-3-Clause */
/* medium_file_device_test.c: block devices, by way of loop devices (needs root). */
#include "medium_file_rig.h"

#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

enum { BACKING_BYTES = 1 << 20, SEED = 5 };

struct loop {
	char backing[RIG_NAME_BYTES];
	char device[RIG_NAME_BYTES];
	int fd; /* keeps it attached */
};

static int loop_configure(struct loop *loop, int control, int backing, unsigned block)
{
	struct loop_config config = { .fd = (unsigned)backing,
				      .block_size = block,
				      .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
	int number = ioctl(control, LOOP_CTL_GET_FREE);

	if (number < 0)
		return -1;
	snprintf(loop->device, sizeof(loop->device), "/dev/loop%d", number);
	loop->fd = open(loop->device, O_RDWR | O_CLOEXEC);
	if (loop->fd < 0)
		return -1;
	if (!ioctl(loop->fd, LOOP_CONFIGURE, &config))
		return 0;
	close(loop->fd);
	return -1;
}

/* Skips the test where there are no loop devices to be had. */
static void loop_open(struct loop *loop, uint64_t bytes, unsigned block)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int error = -1;
	int backing;

	rig_file(loop->backing, "/tmp", bytes, SEED);
	backing = open(loop->backing, O_RDWR | O_CLOEXEC);
	for (int try = 0; control >= 0 && error && try < 5; try++) /* others take free ones too */
		error = loop_configure(loop, control, backing, block);
	close(backing);
	if (control >= 0)
		close(control);
	if (!error)
		return;
	unlink(loop->backing);
	print_message("# SKIPPED, NOT TESTED HERE: block devices (loop devices need root)\n");
	skip();
}

static void loop_close(struct loop *loop)
{
	close(loop->fd);
	unlink(loop->backing);
}

static void reads_and_writes_a_device(void **state)
{
	static const enum weir_direct directs[] = { WEIR_DIRECT_AUTO, WEIR_DIRECT_ON, WEIR_DIRECT_OFF };
	unsigned char *memory = rig_memory(65536);
	struct loop loop;

	(void)state;
	loop_open(&loop, BACKING_BYTES, 512);
	for (unsigned i = 0; i < 3; i++) {
		struct weir_medium_file_options options = rig_options(directs[i]);
		uint64_t at = 8192 + i * 65536;
		struct weir_medium *medium;

		if (weir_medium_file_open(loop.device, &options, &medium))
			fail_msg("%s", weir_last_error());
		assert_true(medium->bytes == BACKING_BYTES);
		assert_int_equal(rig_io(medium, WEIR_IO_READ, 0, memory, 65536), 0);
		assert_true(rig_matches(memory, 0, 8192, SEED));
		rig_fill(memory, at, 4096, 50 + i);
		assert_int_equal(rig_io(medium, WEIR_IO_WRITE, at, memory, 4096), 0);
		assert_int_equal(rig_io(medium, WEIR_IO_ZERO, at + 8192, NULL, 4096), 0);
		assert_int_equal(rig_io(medium, WEIR_IO_DISCARD, at + 16384, NULL, 4096), 0);
		assert_int_equal(rig_io(medium, WEIR_IO_FLUSH, 0, NULL, 0), 0);
		assert_int_equal(rig_io(medium, WEIR_IO_READ, at, memory, 16384), 0);
		assert_true(rig_matches(memory, at, 4096, 50 + i));
		assert_true(rig_matches(memory + 4096, at + 4096, 4096, SEED));
		assert_true(rig_is_filled(memory + 8192, 4096, 0));
		assert_true(rig_matches(memory + 12288, at + 12288, 4096, SEED));
		medium->ops->close(medium);
	}
	loop_close(&loop);
	munmap(memory, 65536);
}

static void a_lost_part_of_a_device_is_an_error(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	unsigned char *memory = rig_memory(65536);
	struct weir_medium *medium;
	struct loop loop;

	(void)state;
	loop_open(&loop, BACKING_BYTES, 512);
	if (weir_medium_file_open(loop.device, &options, &medium))
		fail_msg("%s", weir_last_error());
	assert_int_equal(truncate(loop.backing, 4096), 0);
	assert_int_equal(rig_io(medium, WEIR_IO_READ, 524288, memory, 4096), NVME_STATUS_UNRECOVERED_READ);
	medium->ops->close(medium);
	options.direct = WEIR_DIRECT_ON;
	if (weir_medium_file_open(loop.device, &options, &medium))
		fail_msg("%s", weir_last_error());
	assert_int_equal(rig_io(medium, WEIR_IO_READ, 786432, memory, 4096), NVME_STATUS_UNRECOVERED_READ);
	medium->ops->close(medium);
	loop_close(&loop);
	munmap(memory, 65536);
}

static void a_device_is_rounded_down(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);
	struct weir_medium *medium;
	struct loop loop;

	(void)state;
	loop_open(&loop, BACKING_BYTES + 1536, 512);
	options.block_bytes = 4096;
	if (weir_medium_file_open(loop.device, &options, &medium))
		fail_msg("%s", weir_last_error());
	assert_true(medium->bytes == BACKING_BYTES);
	medium->ops->close(medium);
	options.block_bytes = 512;
	assert_int_equal(weir_medium_file_open(loop.device, &options, &medium), 0);
	assert_true(medium->bytes == BACKING_BYTES + 1536);
	medium->ops->close(medium);
	loop_close(&loop);
}

static void larger_logical_blocks_are_honoured(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);
	unsigned char *memory = rig_memory(8192);
	struct weir_medium *medium;
	struct loop loop;

	(void)state;
	loop_open(&loop, BACKING_BYTES, 4096);
	assert_int_equal(weir_medium_file_open(loop.device, &options, &medium), -EINVAL);
	assert_says("logical blocks of 4096");
	assert_says("blocks of 512");
	options.block_bytes = 0;
	if (weir_medium_file_open(loop.device, &options, &medium))
		fail_msg("%s", weir_last_error());
	assert_int_equal(medium->block_bytes, 4096);
	assert_int_equal(rig_io(medium, WEIR_IO_READ, 4096, memory, 8192), 0);
	assert_true(rig_matches(memory, 4096, 8192, SEED));
	medium->ops->close(medium);
	loop_close(&loop);
	munmap(memory, 8192);
}

static void a_claimed_device_is_only_read(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);
	struct weir_medium *medium;
	struct weir_medium *second;
	struct loop loop;

	(void)state;
	loop_open(&loop, BACKING_BYTES, 512);
	assert_int_equal(weir_medium_file_open(loop.device, &options, &medium), 0);
	assert_int_equal(weir_medium_file_open(loop.device, &options, &second), -EBUSY);
	assert_says("another program has claimed it");
	assert_says("ro=1");
	options.read_only = true;
	assert_int_equal(weir_medium_file_open(loop.device, &options, &second), 0);
	assert_true(second->read_only);
	second->ops->close(second);
	medium->ops->close(medium);
	loop_close(&loop);
}

/* Another process that shares the device: reads what its parent wrote, and answers in another block. */
static int share_in_a_child(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_ON);
	unsigned char *memory = rig_memory(4096);
	struct weir_medium *medium;

	RIG_CHECK(weir_medium_file_open(argument, &options, &medium) == -EBUSY);
	RIG_CHECK(strstr(weir_last_error(), "share=on"));
	options.share = true;
	RIG_CHECK(!weir_medium_file_open(argument, &options, &medium));
	RIG_CHECK(rig_io(medium, WEIR_IO_READ, 4096, memory, 4096) == 0);
	RIG_CHECK(rig_matches(memory, 4096, 4096, SEED + 1));
	rig_fill(memory, 8192, 4096, SEED + 2);
	RIG_CHECK(rig_io(medium, WEIR_IO_WRITE, 8192, memory, 4096) == 0);
	medium->ops->close(medium);
	return 0;
}

static void a_device_is_shared_if_all_say_so(void **state)
{
	struct weir_medium_file_options alone = rig_options(WEIR_DIRECT_ON), shared = alone;
	unsigned char *memory = rig_memory(4096);
	struct weir_medium *media[2], *other;
	struct loop loop;

	(void)state;
	shared.share = true;
	loop_open(&loop, BACKING_BYTES, 512);
	for (unsigned i = 0; i < 2; i++)
		if (weir_medium_file_open(loop.device, &shared, &media[i]))
			fail_msg("%s", weir_last_error());
	assert_int_equal(weir_medium_file_open(loop.device, &alone, &other), -EBUSY);
	assert_says("let all of its users share it (share=on)");
	rig_fill(memory, 4096, 4096, SEED + 1);
	assert_int_equal(rig_io(media[0], WEIR_IO_WRITE, 4096, memory, 4096), 0);
	memset(memory, 0, 4096);
	assert_int_equal(rig_io(media[1], WEIR_IO_READ, 4096, memory, 4096), 0);
	assert_true(rig_matches(memory, 4096, 4096, SEED + 1));
	rig_expect_child(share_in_a_child, loop.device, "a second process");
	assert_int_equal(rig_io(media[0], WEIR_IO_READ, 8192, memory, 4096), 0);
	assert_true(rig_matches(memory, 8192, 4096, SEED + 2));
	media[0]->ops->close(media[0]);
	media[1]->ops->close(media[1]);
	if (weir_medium_file_open(loop.device, &alone, &other))
		fail_msg("%s", weir_last_error());
	assert_int_equal(weir_medium_file_open(loop.device, &shared, &media[0]), -EBUSY);
	other->ops->close(other);
	loop_close(&loop);
	munmap(memory, 4096);
}

/* Mounts the device where only this child sees it. */
static int open_mounted(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	const char *device = argument;
	struct weir_medium *medium;
	char command[200];

	snprintf(command, sizeof(command), "PATH=$PATH:/sbin:/usr/sbin mkfs.ext4 -q %s 2>&1", device);
	if (system(command) || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(device, "/mnt", "ext4", 0, NULL))
		return RIG_SKIP;
	RIG_CHECK(weir_medium_file_open(device, &options, &medium) == -EBUSY);
	RIG_CHECK(strstr(weir_last_error(), device));
	RIG_CHECK(strstr(weir_last_error(), "it is mounted at /mnt"));
	RIG_CHECK(strstr(weir_last_error(), "ro=1"));
	options.share = true;
	RIG_CHECK(weir_medium_file_open(device, &options, &medium) == -EBUSY);
	RIG_CHECK(strstr(weir_last_error(), "it is mounted at /mnt") && !strstr(weir_last_error(), "share"));
	options.read_only = true;
	RIG_CHECK(!weir_medium_file_open(device, &options, &medium));
	medium->ops->close(medium);
	RIG_CHECK(!umount("/mnt"));
	return 0;
}

static void a_mounted_device_is_refused(void **state)
{
	struct loop loop;
	int code;

	(void)state;
	loop_open(&loop, 4 * BACKING_BYTES, 512);
	code = rig_child(open_mounted, loop.device);
	loop_close(&loop);
	if (code == RIG_SKIP) {
		print_message("# SKIPPED, NOT TESTED HERE: a mounted device (needs root and mkfs.ext4)\n");
		skip();
	}
	assert_int_equal(code, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_and_writes_a_device),
		cmocka_unit_test(a_lost_part_of_a_device_is_an_error),
		cmocka_unit_test(a_device_is_rounded_down),
		cmocka_unit_test(larger_logical_blocks_are_honoured),
		cmocka_unit_test(a_claimed_device_is_only_read),
		cmocka_unit_test(a_device_is_shared_if_all_say_so),
		cmocka_unit_test(a_mounted_device_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
