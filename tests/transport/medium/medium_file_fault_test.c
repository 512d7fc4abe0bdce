/* SPDX-License-Identifier: BSD-3-Clause */
/* medium_file_fault_test.c: what goes wrong is said, and never read as zeros. */
#include "medium_file_rig.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "transport/medium/file.h"

enum { SEED = 3, ODD_BYTES = 100000, PADDED_BYTES = 102400, LAST_BYTES = 4096 - (PADDED_BYTES - ODD_BYTES) };

static const enum weir_direct directs[] = { WEIR_DIRECT_AUTO, WEIR_DIRECT_ON, WEIR_DIRECT_OFF };

/* NULL where O_DIRECT was asked for and the file system lacks it. */
static struct weir_medium *open_medium(const char *name, enum weir_direct direct, uint32_t block)
{
	struct weir_medium_file_options options = rig_options(direct);
	struct weir_medium *medium = NULL;

	options.block_bytes = block;
	if (weir_medium_file_open(name, &options, &medium) && direct != WEIR_DIRECT_ON)
		fail_msg("%s", weir_last_error());
	if (!medium)
		print_message("# SKIPPED, NOT TESTED HERE: O_DIRECT: %s\n", weir_last_error());
	return medium;
}

static void errno_values_become_statuses(void **state)
{
	static const struct {
		int error;
		unsigned read;
		unsigned write;
	} rows[] = {
		{ 0, NVME_STATUS_SUCCESS, NVME_STATUS_SUCCESS },
		{ EIO, NVME_STATUS_UNRECOVERED_READ, NVME_STATUS_WRITE_FAULT },
		{ ENODATA, NVME_STATUS_UNRECOVERED_READ, NVME_STATUS_WRITE_FAULT },
		{ EILSEQ, NVME_STATUS_UNRECOVERED_READ, NVME_STATUS_WRITE_FAULT },
		{ ENOSPC, NVME_STATUS_CAPACITY_EXCEEDED, NVME_STATUS_CAPACITY_EXCEEDED },
		{ EDQUOT, NVME_STATUS_CAPACITY_EXCEEDED, NVME_STATUS_CAPACITY_EXCEEDED },
		{ EFBIG, NVME_STATUS_CAPACITY_EXCEEDED, NVME_STATUS_CAPACITY_EXCEEDED },
		{ EFAULT, NVME_STATUS_DATA_TRANSFER_ERROR, NVME_STATUS_DATA_TRANSFER_ERROR },
		{ EINVAL, NVME_STATUS_INTERNAL_ERROR, NVME_STATUS_INTERNAL_ERROR },
		{ ENXIO, NVME_STATUS_INTERNAL_ERROR, NVME_STATUS_INTERNAL_ERROR },
		{ EAGAIN, NVME_STATUS_INTERNAL_ERROR, NVME_STATUS_INTERNAL_ERROR },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(file_status(WEIR_IO_READ, rows[i].error), rows[i].read);
		assert_int_equal(file_status(WEIR_IO_WRITE, rows[i].error), rows[i].write);
		assert_int_equal(file_status(WEIR_IO_ZERO, rows[i].error), rows[i].write);
		assert_int_equal(file_status(WEIR_IO_FLUSH, rows[i].error), rows[i].write);
	}
}

/* Past the end of the file, but inside its last block: zeros, and only there. */
static void pads_the_last_block_with_zeros(void **state)
{
	unsigned char *memory = rig_memory(16384);

	for (unsigned i = 0; i < 6; i++) {
		uint32_t block = i < 3 ? 4096 : 512;
		uint64_t end = i < 3 ? PADDED_BYTES : 100352;
		struct weir_medium *medium;
		char name[RIG_NAME_BYTES];

		rig_file(name, *state, ODD_BYTES, SEED);
		medium = open_medium(name, directs[i % 3], block);
		if (medium) {
			assert_true(medium->bytes == end);
			memset(memory, 0xaa, 16384);
			assert_int_equal(rig_io(medium, WEIR_IO_READ, end - 8192, memory, 8192), 0);
			assert_true(rig_matches(memory, end - 8192, ODD_BYTES - (end - 8192), SEED));
			assert_true(rig_is_filled(memory + (ODD_BYTES - (end - 8192)), end - ODD_BYTES, 0));
			assert_true(rig_is_filled(memory + 8192, 8192, 0xaa));
			medium->ops->close(medium);
		}
		unlink(name);
	}
	munmap(memory, 16384);
}

/* What the file has grown by since it was opened is no part of it: its last block reads as before. */
static void pads_a_file_that_has_grown(void **state)
{
	static unsigned char grown[8192];
	unsigned char *memory = rig_memory(8192);

	memset(grown, 0x77, sizeof(grown));
	for (unsigned i = 0; i < 3; i++) {
		struct weir_medium *medium;
		char name[RIG_NAME_BYTES];
		int file;

		rig_file(name, *state, ODD_BYTES, SEED);
		medium = open_medium(name, directs[i], 4096);
		if (medium) {
			file = open(name, O_WRONLY | O_CLOEXEC);
			assert_int_equal(pwrite(file, grown, sizeof(grown), ODD_BYTES), sizeof(grown));
			close(file);
			memset(memory, 0xaa, 8192);
			assert_int_equal(rig_io(medium, WEIR_IO_READ, PADDED_BYTES - 4096, memory, 4096), 0);
			assert_true(rig_matches(memory, PADDED_BYTES - 4096, LAST_BYTES, SEED));
			assert_true(rig_is_filled(memory + LAST_BYTES, 4096 - LAST_BYTES, 0));
			assert_true(rig_is_filled(memory + 4096, 4096, 0xaa));
			medium->ops->close(medium);
		}
		unlink(name);
	}
	munmap(memory, 8192);
}

/* Padding that spreads over several segments, of which some lie wholly past the end. */
static void pads_across_segments(void **state)
{
	unsigned char *memory = rig_memory(8192);
	struct iovec iov[3] = { { memory, 1696 - 10 }, { memory + 2000, 20 }, { memory + 4096, 2390 } };
	struct weir_io io = { .kind = WEIR_IO_READ,
			      .offset_bytes = PADDED_BYTES - 4096,
			      .bytes = 4096,
			      .iov = iov,
			      .iov_count = 3 };
	struct weir_medium *medium;
	char name[RIG_NAME_BYTES];

	rig_file(name, *state, ODD_BYTES, SEED);
	medium = open_medium(name, WEIR_DIRECT_AUTO, 4096);
	memset(memory, 0xaa, 8192);
	assert_int_equal(rig_run(medium, &io), 0);
	assert_true(rig_matches(memory, PADDED_BYTES - 4096, 1686, SEED));
	assert_true(rig_matches(memory + 2000, ODD_BYTES - 10, 10, SEED));
	assert_true(rig_is_filled(memory + 2010, 10, 0));
	assert_true(rig_is_filled(memory + 4096, 2390, 0));
	assert_true(rig_is_filled(memory + 4096 + 2390, 1000, 0xaa));
	medium->ops->close(medium);
	munmap(memory, 8192);
	unlink(name);
}

/* Writing the last block leaves the file as long as it is; what lies behind its end is padding ever after. */
static void writing_the_last_block_keeps_the_file_as_long_as_it_is(void **state)
{
	unsigned char *memory = rig_memory(8192);

	for (unsigned i = 0; i < 3; i++) {
		struct weir_medium *medium;
		char name[RIG_NAME_BYTES];
		struct stat now;

		rig_file(name, *state, ODD_BYTES, SEED);
		medium = open_medium(name, directs[i], 4096);
		if (medium) {
			rig_fill(memory, PADDED_BYTES - 4096, 4096, 9);
			assert_int_equal(rig_io(medium, WEIR_IO_WRITE, PADDED_BYTES - 4096, memory, 4096), 0);
			assert_int_equal(stat(name, &now), 0);
			assert_int_equal(now.st_size, ODD_BYTES);
			memset(memory, 0xaa, 8192);
			assert_int_equal(rig_io(medium, WEIR_IO_READ, PADDED_BYTES - 8192, memory, 8192), 0);
			assert_true(rig_matches(memory, PADDED_BYTES - 8192, 4096, SEED));
			assert_true(rig_matches(memory + 4096, PADDED_BYTES - 4096, LAST_BYTES, 9));
			assert_true(rig_is_filled(memory + 4096 + LAST_BYTES, 4096 - LAST_BYTES, 0));
			assert_int_equal(truncate(name, ODD_BYTES - 1), 0);
			assert_int_equal(rig_io(medium, WEIR_IO_READ, PADDED_BYTES - 4096, memory, 4096),
					 NVME_STATUS_UNRECOVERED_READ);
			medium->ops->close(medium);
		}
		unlink(name);
	}
	munmap(memory, 8192);
}

static void a_file_that_shrank_is_not_read_as_zeros(void **state)
{
	static const off_t sizes[] = { 40960, 40000, 512, 0 };
	unsigned char *memory = rig_memory(65536);

	for (unsigned i = 0; i < 12; i++) {
		struct weir_medium *medium;
		char name[RIG_NAME_BYTES];

		rig_file(name, *state, ODD_BYTES, SEED);
		medium = open_medium(name, directs[i % 3], 4096);
		if (medium) {
			assert_int_equal(truncate(name, sizes[i / 3]), 0);
			assert_int_equal(rig_io(medium, WEIR_IO_READ, 32768, memory, 65536),
					 NVME_STATUS_UNRECOVERED_READ);
			assert_int_equal(rig_io(medium, WEIR_IO_READ, PADDED_BYTES - 4096, memory, 4096),
					 NVME_STATUS_UNRECOVERED_READ);
			if (sizes[i / 3] > 32768) { /* what is still there is still read */
				assert_int_equal(rig_io(medium, WEIR_IO_READ, 0, memory, 32768), 0);
				assert_true(rig_matches(memory, 0, 32768, SEED));
			}
			medium->ops->close(medium);
		}
		unlink(name);
	}
	munmap(memory, 65536);
}

static void holes_are_zeros(void **state)
{
	unsigned char *memory = rig_memory(65536);

	for (unsigned i = 0; i < 3; i++) {
		struct weir_medium *medium;
		char name[RIG_NAME_BYTES];

		rig_file(name, *state, 4096, SEED);
		assert_int_equal(truncate(name, 1 << 20), 0);
		medium = open_medium(name, directs[i], 4096);
		if (medium) {
			memset(memory, 0xaa, 65536);
			assert_int_equal(rig_io(medium, WEIR_IO_READ, 0, memory, 65536), 0);
			assert_true(rig_matches(memory, 0, 4096, SEED));
			assert_true(rig_is_filled(memory + 4096, 61440, 0));
			assert_int_equal(rig_io(medium, WEIR_IO_READ, (1 << 20) - 4096, memory, 4096), 0);
			assert_true(rig_is_filled(memory, 4096, 0));
			medium->ops->close(medium);
		}
		unlink(name);
	}
	munmap(memory, 65536);
}

static void memory_that_is_not_there_fails_the_request_only(void **state)
{
	unsigned char *memory = rig_memory(8192);
	struct weir_medium *medium;
	char name[RIG_NAME_BYTES];

	rig_file(name, *state, 65536, SEED);
	medium = open_medium(name, WEIR_DIRECT_OFF, 4096);
	assert_int_equal(rig_io(medium, WEIR_IO_READ, 0, (void *)4096, 4096),
			 NVME_STATUS_DATA_TRANSFER_ERROR);
	assert_int_equal(rig_io(medium, WEIR_IO_READ, 0, memory, 4096), 0);
	medium->ops->close(medium);
	munmap(memory, 8192);
	unlink(name);
}

static int write_past_the_size_limit(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	struct rlimit limit = { 8192, 8192 };
	unsigned char *memory = rig_memory(4096);
	struct weir_medium *medium;

	RIG_CHECK(!weir_medium_file_open(argument, &options, &medium));
	signal(SIGXFSZ, SIG_IGN);
	RIG_CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	RIG_CHECK(rig_io(medium, WEIR_IO_WRITE, 4096, memory, 4096) == 0);
	RIG_CHECK(rig_io(medium, WEIR_IO_WRITE, 16384, memory, 4096) == NVME_STATUS_CAPACITY_EXCEEDED);
	RIG_CHECK(rig_io(medium, WEIR_IO_READ, 16384, memory, 4096) == 0);
	medium->ops->close(medium);
	return 0;
}

static void the_size_limit_is_a_capacity(void **state)
{
	char name[RIG_NAME_BYTES];

	(void)state;
	rig_file(name, "/tmp", 65536, SEED);
	rig_expect_child(write_past_the_size_limit, name, "the file-size limit");
	unlink(name);
}

/* A file system that only this child sees. */
static int private_mount(const char *type, const char *data, char name[RIG_NAME_BYTES])
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/mnt", type, 0, data))
		return -1;
	rig_file(name, "/mnt", 4096, SEED);
	return truncate(name, 1 << 20);
}

static int fill_a_tiny_disk(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);
	unsigned char *memory = rig_memory(65536);
	struct weir_medium *medium;
	char name[RIG_NAME_BYTES];
	unsigned good = 0;

	(void)argument;
	if (private_mount("tmpfs", "size=256k", name))
		return RIG_SKIP;
	RIG_CHECK(!weir_medium_file_open(name, &options, &medium));
	while (good < 16 && rig_io(medium, WEIR_IO_WRITE, good * 65536, memory, 65536) == 0)
		good++;
	RIG_CHECK(good >= 2 && good < 5);
	RIG_CHECK(rig_io(medium, WEIR_IO_WRITE, 15 * 65536, memory, 65536) == NVME_STATUS_CAPACITY_EXCEEDED);
	RIG_CHECK(rig_io(medium, WEIR_IO_ZERO, 8 * 65536, NULL, 65536) == NVME_STATUS_CAPACITY_EXCEEDED);
	RIG_CHECK(rig_io(medium, WEIR_IO_READ, 0, memory, 65536) == 0);
	medium->ops->close(medium);
	return 0;
}

static void a_full_disk_is_a_capacity(void **state)
{
	(void)state;
	rig_expect_child(fill_a_tiny_disk, NULL, "a full disk (mounting needs root)");
}

/* ramfs has neither O_DIRECT nor fallocate. */
static int use_a_poor_file_system(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_ON);
	unsigned char *memory = rig_memory(8192);
	struct weir_medium *medium;
	char name[RIG_NAME_BYTES];

	(void)argument;
	if (private_mount("ramfs", NULL, name))
		return RIG_SKIP;
	RIG_CHECK(weir_medium_file_open(name, &options, &medium) == -EINVAL);
	RIG_CHECK(strstr(weir_last_error(), "does not take O_DIRECT (Invalid argument)"));
	RIG_CHECK(strstr(weir_last_error(), "direct=off"));
	options.direct = WEIR_DIRECT_AUTO;
	RIG_CHECK(!weir_medium_file_open(name, &options, &medium));
	RIG_CHECK(!strcmp(medium->path, "system calls, page cache (the file system lies in memory)"));
	RIG_CHECK(rig_io(medium, WEIR_IO_DISCARD, 0, NULL, 4096) == 0);
	RIG_CHECK(rig_io(medium, WEIR_IO_READ, 0, memory, 8192) == 0);
	RIG_CHECK(rig_matches(memory, 0, 4096, SEED) && rig_is_filled(memory + 4096, 4096, 0));
	RIG_CHECK(rig_io(medium, WEIR_IO_ZERO, 0, NULL, 4096) == 0);
	RIG_CHECK(rig_io(medium, WEIR_IO_READ, 0, memory, 4096) == 0);
	RIG_CHECK(rig_is_filled(memory, 4096, 0));
	medium->ops->close(medium);
	return 0;
}

static void does_without_o_direct_and_fallocate(void **state)
{
	(void)state;
	rig_expect_child(use_a_poor_file_system, NULL,
			 "a file system without O_DIRECT (mounting needs root)");
}

/* A file in memory is moved by system calls, any other by io_uring. */
#define IN(folder, test)                                                                                     \
	{                                                                                                    \
#test " in " folder, test, NULL, NULL, folder                                                \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errno_values_become_statuses),
		IN("/tmp", pads_the_last_block_with_zeros),
		IN("/dev/shm", pads_the_last_block_with_zeros),
		IN("/tmp", pads_a_file_that_has_grown),
		IN("/dev/shm", pads_a_file_that_has_grown),
		IN("/tmp", pads_across_segments),
		IN("/dev/shm", pads_across_segments),
		IN("/tmp", writing_the_last_block_keeps_the_file_as_long_as_it_is),
		IN("/dev/shm", writing_the_last_block_keeps_the_file_as_long_as_it_is),
		IN("/tmp", a_file_that_shrank_is_not_read_as_zeros),
		IN("/dev/shm", a_file_that_shrank_is_not_read_as_zeros),
		IN("/tmp", holes_are_zeros),
		IN("/dev/shm", holes_are_zeros),
		IN("/tmp", memory_that_is_not_there_fails_the_request_only),
		IN("/dev/shm", memory_that_is_not_there_fails_the_request_only),
		cmocka_unit_test(the_size_limit_is_a_capacity),
		cmocka_unit_test(a_full_disk_is_a_capacity),
		cmocka_unit_test(does_without_o_direct_and_fallocate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
