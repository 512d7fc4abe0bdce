/* SPDX-License-Identifier: BSD-3-Clause */
/* medium_file_test.c: what can be opened, what is refused, and in which words. */
#include "../../rig/leaks.h"
#include "medium_file_rig.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

enum { NOBODY = 65534, SEED = 7 };

static int try_open(const char *path, const struct weir_medium_file_options *options)
{
	struct weir_medium *medium = NULL;
	int error = weir_medium_file_open(path, options, &medium);

	if (!error)
		medium->ops->close(medium);
	return error;
}

static void sizes_are_whole_blocks(void **state)
{
	static const struct {
		uint64_t file;
		uint32_t block;
		uint64_t medium;
	} rows[] = { { 1, 512, 512 },   { 511, 512, 512 },    { 512, 512, 512 },      { 513, 512, 1024 },
		     { 1, 4096, 4096 }, { 4096, 4096, 4096 }, { 12289, 4096, 16384 }, { 8192, 0, 8192 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);
		struct weir_medium *medium;
		char name[RIG_NAME_BYTES];

		rig_file(name, "/tmp", rows[i].file, SEED);
		options.block_bytes = rows[i].block;
		assert_int_equal(weir_medium_file_open(name, &options, &medium), 0);
		assert_true(medium->bytes == rows[i].medium);
		assert_int_equal(medium->block_bytes, rows[i].block ? rows[i].block : 4096);
		assert_false(medium->read_only);
		assert_int_equal(medium->ops->size, sizeof(struct weir_medium_ops));
		medium->ops->close(medium);
		unlink(name);
	}
}

static void refuses_what_is_no_file(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char folder[] = "/tmp/weir-medium-XXXXXX";
	char name[RIG_NAME_BYTES];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(try_open(folder, &options), -EISDIR);
	assert_says("is a directory");
	assert_int_equal(try_open("/dev/null", &options), -EINVAL);
	assert_says("/dev/null is a character device");
	snprintf(name, sizeof(name), "%s/absent", folder);
	assert_int_equal(try_open(name, &options), -ENOENT);
	assert_says("does not exist");
	assert_says(name);
	snprintf(name, sizeof(name), "%s/pipe", folder);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(try_open(name, &options), -EINVAL);
	assert_says("is a named pipe");
	unlink(name);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(try_open(address.sun_path, &options), -EINVAL);
	assert_says("is a socket");
	unlink(address.sun_path);
	close(fd);
	rmdir(folder);
	rig_file(name, "/tmp", 0, SEED);
	assert_int_equal(try_open(name, &options), -EINVAL);
	assert_says("is empty");
	unlink(name);
}

static void refuses_impossible_options(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);
	char name[RIG_NAME_BYTES];

	(void)state;
	rig_file(name, "/tmp", 4096, SEED);
	options.block_bytes = 1024;
	assert_int_equal(try_open(name, &options), -EINVAL);
	assert_says("1024");
	assert_says("512 or 4096");
	options = rig_options(WEIR_DIRECT_AUTO);
	options.threads = 257;
	assert_int_equal(try_open(name, &options), -EINVAL);
	assert_says("257 threads");
	assert_says("1 to 256");
	options.threads = 0;
	assert_int_equal(try_open(name, &options), -EINVAL);
	assert_says("0 threads");
	options = rig_options(WEIR_DIRECT_AUTO);
	options.depth = 0;
	assert_int_equal(try_open(name, &options), -EINVAL);
	assert_says("1 to 16384");
	options.depth = 16385;
	assert_int_equal(try_open(name, &options), -EINVAL);
	assert_says("depth of 16385");
	options.depth = 16384;
	assert_int_equal(try_open(name, &options), 0);
	unlink(name);
}

static int drop_root(void)
{
	return !geteuid() && (setgid(NOBODY) || setuid(NOBODY)) ? -1 : 0;
}

static int open_without_permission(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);
	struct weir_medium *medium;
	unsigned char block[512];
	const char *name = argument;

	RIG_CHECK(!chmod(name, 0444));
	RIG_CHECK(!drop_root());
	RIG_CHECK(try_open(name, &options) == -EACCES);
	RIG_CHECK(strstr(weir_last_error(), "for writing (Permission denied)"));
	RIG_CHECK(strstr(weir_last_error(), "ro=1"));
	options.read_only = true;
	RIG_CHECK(!weir_medium_file_open(name, &options, &medium));
	RIG_CHECK(medium->read_only);
	RIG_CHECK(rig_io(medium, WEIR_IO_READ, 0, block, 512) == 0);
	RIG_CHECK(rig_matches(block, 0, 512, SEED));
	RIG_CHECK(rig_io(medium, WEIR_IO_WRITE, 0, block, 512) == NVME_STATUS_INTERNAL_ERROR);
	medium->ops->close(medium);
	return 0;
}

static int open_without_any_permission(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);

	RIG_CHECK(!chmod(argument, 0));
	RIG_CHECK(!drop_root());
	options.read_only = true;
	RIG_CHECK(try_open(argument, &options) == -EACCES);
	RIG_CHECK(strstr(weir_last_error(), "for reading (Permission denied)"));
	return 0;
}

static void says_how_to_open_what_may_not_be_written(void **state)
{
	char name[RIG_NAME_BYTES];

	(void)state;
	rig_file(name, "/tmp", 4096, SEED);
	rig_expect_child(open_without_permission, name, "permissions");
	rig_expect_child(open_without_any_permission, name, "permissions");
	unlink(name);
}

/* Answers a system call with an error, as container profiles do. */
static int forbid(unsigned call, unsigned error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Without io_uring all is done by threads, and the path says so. */
static int do_without(void *argument, unsigned call, unsigned error)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	unsigned char *memory = rig_memory(4096);
	struct weir_medium *medium;
	unsigned files = test_files();
	struct weir_io ios[16];
	struct iovec iov[16];

	RIG_CHECK(!forbid(call, error));
	options.threads = 2;
	RIG_CHECK(!weir_medium_file_open(argument, &options, &medium));
	RIG_CHECK(
		!strcmp(medium->path, "pread/pwrite threads (io_uring is forbidden or missing), page cache"));
	rig_register(medium, 0, memory, 4096, 1);
	for (unsigned i = 0; i < 16; i++) {
		iov[i] = (struct iovec){ memory + (i % 8) * 512, 512 };
		ios[i] = (struct weir_io){ .thread = i / 8,
					   .offset_bytes = (i % 8) * 512,
					   .bytes = 512,
					   .iov = &iov[i],
					   .iov_count = 1,
					   .done = rig_done };
		RIG_CHECK(medium->ops->submit(medium, &ios[i]));
	}
	for (unsigned i = 0; i < 16; i++)
		RIG_CHECK(rig_wait(medium, &ios[i]) == 0);
	RIG_CHECK(rig_matches(memory, 0, 4096, SEED));
	rig_fill(memory, 512, 512, SEED + 1);
	RIG_CHECK(rig_io(medium, WEIR_IO_WRITE, 512, memory, 512) == 0);
	RIG_CHECK(rig_io(medium, WEIR_IO_FLUSH, 0, NULL, 0) == 0);
	RIG_CHECK(rig_io(medium, WEIR_IO_ZERO, 1024, NULL, 512) == 0);
	RIG_CHECK(rig_io(medium, WEIR_IO_READ, 512, memory, 1024) == 0);
	RIG_CHECK(rig_matches(memory, 512, 512, SEED + 1) && rig_is_filled(memory + 512, 512, 0));
	medium->ops->close(medium);
	RIG_CHECK(test_files() == files); /* nor is anything left of the rings that could not be */
	return 0;
}

static int do_without_setup(void *argument)
{
	return do_without(argument, __NR_io_uring_setup, EPERM);
}

static int do_without_its_calls(void *argument)
{
	return do_without(argument, __NR_io_uring_setup, ENOSYS);
}

static int do_without_enter(void *argument)
{
	return do_without(argument, __NR_io_uring_enter, EPERM);
}

static int do_without_register(void *argument)
{
	return do_without(argument, __NR_io_uring_register, EPERM);
}

static void does_without_io_uring(void **state)
{
	static int (*const bodies[])(void *) = { do_without_setup, do_without_its_calls, do_without_enter,
						 do_without_register };
	char name[RIG_NAME_BYTES];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		rig_file(name, "/tmp", 4096, SEED);
		rig_expect_child(bodies[i], name, "seccomp");
		unlink(name);
	}
}

static int open_forbidden(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);

	options.engine = WEIR_ENGINE_IO_URING;
	RIG_CHECK(!forbid(__NR_io_uring_setup, EPERM));
	RIG_CHECK(try_open(argument, &options) == -EPERM);
	RIG_CHECK(strstr(weir_last_error(), "forbidden"));
	RIG_CHECK(strstr(weir_last_error(), "seccomp"));
	return 0;
}

static int open_unknown(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_ON);

	options.engine = WEIR_ENGINE_IO_URING;
	RIG_CHECK(!forbid(__NR_io_uring_setup, ENOSYS));
	RIG_CHECK(try_open(argument, &options) == -ENOSYS);
	RIG_CHECK(strstr(weir_last_error(), "no io_uring here"));
	RIG_CHECK(strstr(weir_last_error(), "seccomp"));
	return 0;
}

/* A ring the kernel takes nothing from any more: every request ends, with an error. */
static int lose_the_ring(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	unsigned char memory[512];
	struct iovec iov = { memory, 512 };
	struct weir_io ios[16];
	struct weir_medium *medium;

	RIG_CHECK(!weir_medium_file_open(argument, &options, &medium));
	RIG_CHECK(rig_io(medium, WEIR_IO_READ, 0, memory, 512) == 0);
	RIG_CHECK(!forbid(__NR_io_uring_enter, EPERM));
	for (unsigned i = 0; i < 16; i++) {
		ios[i] = (struct weir_io){ .bytes = 512, .iov = &iov, .iov_count = 1, .done = rig_done };
		RIG_CHECK(medium->ops->submit(medium, &ios[i]));
	}
	RIG_CHECK(medium->ops->poll(medium, 0) == 16);
	for (unsigned i = 0; i < 16; i++)
		RIG_CHECK(rig_ended(&ios[i]) && ios[i].status == NVME_STATUS_INTERNAL_ERROR);
	RIG_CHECK(rig_io(medium, WEIR_IO_FLUSH, 0, NULL, 0) == NVME_STATUS_INTERNAL_ERROR);
	RIG_CHECK(medium->ops->poll(medium, 0) == 0);
	medium->ops->close(medium);
	return 0;
}

static void ends_everything_when_the_ring_is_lost(void **state)
{
	char name[RIG_NAME_BYTES];

	(void)state;
	rig_file(name, "/tmp", 4096, SEED);
	rig_expect_child(lose_the_ring, name, "seccomp");
	unlink(name);
}

static void says_what_forbids_io_uring(void **state)
{
	char name[RIG_NAME_BYTES];

	(void)state;
	rig_file(name, "/tmp", 4096, SEED);
	rig_expect_child(open_forbidden, name, "seccomp");
	rig_expect_child(open_unknown, name, "seccomp");
	unlink(name);
}

/* The 64 rings of 64 threads are more than 12 descriptors. */
static int open_out_of_descriptors(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	struct rlimit few = { 12, 12 };

	options.threads = 64;
	RIG_CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	RIG_CHECK(try_open(argument, &options) == -EMFILE);
	RIG_CHECK(strstr(weir_last_error(), "Too many open files"));
	options.threads = 1; /* what was opened before is closed again */
	RIG_CHECK(try_open(argument, &options) == 0);
	return 0;
}

static void cleans_up_when_a_ring_fails(void **state)
{
	char name[RIG_NAME_BYTES];

	(void)state;
	rig_file(name, "/tmp", 4096, SEED);
	rig_expect_child(open_out_of_descriptors, name, "descriptor limit");
	unlink(name);
}

static int read_with_little_locked_memory(void *argument)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);
	struct rlimit little = { 1 << 20, 1 << 20 };
	unsigned char *memory = rig_memory(4 << 20);
	double deadline = rig_now() + 100;
	struct weir_medium *medium;
	int error;

	RIG_CHECK(!chmod(argument, 0666));
	RIG_CHECK(!setrlimit(RLIMIT_MEMLOCK, &little));
	RIG_CHECK(!drop_root());
	do /* rings of tests before this one are charged to us until the kernel has freed them */
		error = weir_medium_file_open(argument, &options, &medium);
	while (error == -ENOMEM && rig_now() < deadline);
	RIG_CHECK(!error);
	RIG_CHECK(!strstr(weir_medium_path(medium), "buffers"));
	rig_register(medium, 0, memory, 4 << 20, 1);
	RIG_CHECK(strstr(weir_medium_path(medium), "plain buffers (locked-memory limit"));
	RIG_CHECK(rig_io(medium, WEIR_IO_READ, 0, memory, 8192) == 0);
	RIG_CHECK(rig_matches(memory, 0, 8192, SEED));
	medium->ops->close(medium);
	return 0;
}

static void does_without_locked_memory(void **state)
{
	char name[RIG_NAME_BYTES];

	(void)state;
	rig_file(name, "/tmp", 8192, SEED);
	rig_expect_child(read_with_little_locked_memory, name, "the locked-memory limit");
	unlink(name);
}

static void says_which_way_it_goes(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_OFF);
	void *memory = rig_memory(65536);
	struct weir_medium *medium;
	char name[RIG_NAME_BYTES];

	(void)state;
	rig_file(name, "/tmp", 1 << 20, SEED);
	assert_int_equal(weir_medium_file_open(name, &options, &medium), 0);
	assert_string_equal(medium->path, "io_uring, page cache");
	rig_register(medium, 0, memory, 65536, 1);
	assert_string_equal(weir_medium_path(medium), "io_uring, page cache, fixed buffers");
	rig_register(medium, 0, (void *)4096, 4096, 2); /* nothing is mapped there */
	assert_string_equal(weir_medium_path(medium),
			    "io_uring, page cache, plain buffers (some memory cannot be registered)");
	medium->ops->close(medium);
	options.direct = WEIR_DIRECT_AUTO;
	assert_int_equal(weir_medium_file_open(name, &options, &medium), 0);
	print_message("# auto: %s\n", medium->path);
	assert_non_null(strstr(medium->path, "(measured "));
	medium->ops->close(medium);
	options.direct = WEIR_DIRECT_ON;
	options.poll = true; /* polled or not, it must read */
	assert_int_equal(weir_medium_file_open(name, &options, &medium), 0);
	print_message("# poll: %s\n", medium->path);
	assert_int_equal(rig_io(medium, WEIR_IO_READ, 4096, memory, 8192), 0);
	assert_true(rig_matches(memory, 4096, 8192, SEED));
	medium->ops->close(medium);
	munmap(memory, 65536);
	unlink(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_whole_blocks),
		cmocka_unit_test(refuses_what_is_no_file),
		cmocka_unit_test(refuses_impossible_options),
		cmocka_unit_test(says_how_to_open_what_may_not_be_written),
		cmocka_unit_test(does_without_io_uring),
		cmocka_unit_test(says_what_forbids_io_uring),
		cmocka_unit_test(ends_everything_when_the_ring_is_lost),
		cmocka_unit_test(cleans_up_when_a_ring_fails),
		cmocka_unit_test(does_without_locked_memory),
		cmocka_unit_test(says_which_way_it_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
