/* SPDX-License-Identifier: BSD-3-Clause */
/* host_storage.c: how storages are opened: URIs, options, threads, and what a failed one leaves. */
#include "host_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../rig/context.h"
#include "../rig/leaks.h"
#include "../rig/threads.h"

void test_storage_uris(void **state)
{
	static const struct {
		const char *uri;
		int error;
		const char *first, *second;
	} cases[] = {
		{ "nothing", -EINVAL, "nothing", "scheme" },
		{ "tape:1M", -EINVAL, "tape", "virt:SIZE" },
		{ "virt:", -EINVAL, "virt:", "nothing" },
		{ "virt:0", -EINVAL, "virt:0", "from 512 to 127T" },
		{ "virt:300T", -EINVAL, "virt:300T is not accepted", "from 512 to 127T" },
		{ "virt:17179869184T", -EINVAL, "17179869184T", "not a size" },
		{ "virt:lots", -EINVAL, "lots", "size" },
		{ "virt:-1", -EINVAL, "-1", "size" },
		{ "virt:1000", -EINVAL, "1000", "512" },
		{ "virt:1M?colour=red", -EINVAL, "colour", "unknown" },
		{ "virt:1M?block=1024", -EINVAL, "1024", "4096" },
		{ "virt:1M?block=x", -EINVAL, "block=x", "not accepted" },
		{ "virt:1M?lat_us=-5", -EINVAL, "lat_us", "-5" },
		{ "virt:1M?mdts=5000", -EINVAL, "mdts", "5000" },
		{ "virt:1M?mdts=4096", -EINVAL, "mdts=4096", "8K" },
		{ "virt:1M?mdts=12K", -EINVAL, "mdts", "power of two" },
		{ "virt:1M?mover=push", -EINVAL, "mover=push", "pull" },
		{ "virt:1M?zero_copy=maybe", -EINVAL, "zero_copy=maybe", "auto" },
		{ "virt:1M?mover=pull&zero_copy=on&fault=late:us=5", -ENOTSUP, "zero_copy=on", "faults" },
		{ "virt:1M?mover=pull&zero_copy=on&content=address", -ENOTSUP, "zero_copy=on", "content" },
		{ "virt:1M?shadow=maybe", -EINVAL, "shadow=maybe", "off" },
		{ "nvme:ff:1f.7?shadow=maybe", -EINVAL, "shadow=maybe", "auto" },
		{ "virt:1M?threads=0", -EINVAL, "threads", "0" },
		{ "virt:1M?threads=many", -EINVAL, "threads=many", "auto" },
		{ "virt:1M?iops=1&iops=2", -EINVAL, "iops", "twice" },
		{ "virt:1M?block", -EINVAL, "block", "key=value" },
		{ "virt:1M?fault=lte:us=5", -EINVAL, "lte", "late" },
		{ "virt:1M?fault=late:us=5,status", -EINVAL, "row 2", "code=" },
		{ "file:/no/such/file?fault=status:code=9999", -EINVAL, "code=9999", "2047" },
		{ "virt:1M?load=/no/such/file", -ENOENT, "/no/such/file", "No such" },
		{ "virt:1M?trace=/no/such/file", -ENOENT, "/no/such/file", "No such" },
		{ "virt:1M?content=noise", -EINVAL, "content=noise", "zeros or address" },
		{ "virt:1M?content=address&load=/etc/hostname", -EINVAL, "load", "content=address" },
		{ "virt:300T", -EINVAL, "300T", "to 127T" },
		{ "virt:2000000T?content=address", -EINVAL, "2000000T", "to 1048576T" },
		{ "virt:1M?on=device&content=address", -ENOTSUP, "content", "on the device" },
		{ "virt:1M?on=device&trace=/tmp/trace", -ENOTSUP, "trace", "on the device" },
		{ "file:/no/such/file", -ENOENT, "/no/such/file", "exist" },
		{ "file:/tmp", -EISDIR, "/tmp", "directory" },
		{ "file:/no/such%3Ffile", -ENOENT, "/no/such?file", "exist" },
		{ "file:/no/100%", -EINVAL, "'%' is no escape", "%25" },
	};
	struct weir_storage *out;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refused(weir_storage_open(context, cases[i].uri, NULL, &out), cases[i].error, cases[i].first,
			cases[i].second);
		assert_null(out);
	}
}

/* What is wrong with a volume's URI is said before a daemon is looked for. */
void test_volume_uris(void **state)
{
	static const struct {
		const char *keys, *says;
	} cases[] = {
		{ "", "it has no daemon" },
		{ "&daemon=/none&hostnqn=me", "hostnqn=me is no NQN" },
		{ "&daemon=/none&hostnqn=nqn.2026-11.org.example:me&hostid=zz", "hostid=zz is no UUID" },
		{ "&daemon=/none&dhchap_secret=/etc/a%2Cb", "may be in the file's name" },
		{ "&daemon=/none&lanes=1&trace=/tmp/trace", "leave out trace or lanes" },
		{ "&daemon=/none&block=512", "blocks are 4096 bytes" },
	};
	char long_uri[600], uri[300];
	struct weir_storage *out;

	(void)state;
	unsetenv("WEIR_VOLUMED");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(uri, sizeof(uri), "vol:a?ro=1%s", cases[i].keys);
		refused(weir_storage_open(context, uri, NULL, &out), -EINVAL, cases[i].says, "vol:a");
		assert_null(out);
	}
	snprintf(long_uri, sizeof(long_uri), "vol:%0512d?daemon=/none", 0);
	refused(weir_storage_open(context, long_uri, NULL, &out), -EINVAL, "its name has 512 characters",
		"are the most");
	snprintf(long_uri, sizeof(long_uri), "vol:a?daemon=/none&hostnqn=nqn.%0300d", 0);
	refused(weir_storage_open(context, long_uri, NULL, &out), -EINVAL, "its hostnqn has 304 characters",
		"are the most");
}

/* A path may hold what separates the parts of a URI. */
void test_path_with_separators(void **state)
{
	char folder[] = "/tmp/weir-path-XXXXXX", path[64], uri[96];
	struct weir_storage *out;
	int file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/why?a=1&b,100%%", folder);
	file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(file >= 0 && !ftruncate(file, 8192));
	snprintf(uri, sizeof(uri), "file:%s/why%%3Fa=1%%26b%%2C100%%25?ro=1", folder);
	must(weir_storage_open(context, uri, NULL, &out));
	weir_storage_close(out);
	snprintf(uri, sizeof(uri), "virt:16K?load=%s/why%%3Fa=1%%26b%%2C100%%25", folder);
	must(weir_storage_open(context, uri, NULL, &out));
	weir_storage_close(out);
	close(file);
	unlink(path);
	rmdir(folder);
}

/* Storages that cannot be opened, each for a reason found at another stage, leave nothing behind. */
void test_failing_storages_leave_nothing(void **state)
{
	static const struct {
		const char *uri;
		struct weir_storage_options options;
	} cases[] = {
		{ "virt:64M?colour=red", { .queues = 1 } },
		{ "virt:64M?load=/no/such/file", { .queues = 1 } },
		{ "virt:64M?content=address&trace=/no/such/file", { .queues = 1 } },
		{ "virt:64M?shadow=on",
		  { .queues = 600 } }, /* more than a page of shadow doorbells has room for */
		{ "virt:64M?fault=status:code=9999", { .queues = 1 } },
		{ "file:/no/such/file", { .queues = 1 } },
	};
	struct test_has before;
	struct weir_storage *out;

	(void)state;
	for (unsigned round = 0; round < 24; round++) {
		if (round == 4)
			before = test_has();
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct weir_storage_options options = cases[i].options;

			options.size = sizeof(options);
			assert_true(weir_storage_open(context, cases[i].uri, &options, &out) < 0);
			assert_null(out);
		}
		must(weir_storage_open(context, "virt:16M", NULL, &out));
		weir_storage_close(out);
	}
	test_keeps(before, 8 << 20);
}

/* How the file at @path is open in this process: O_RDONLY, O_RDWR; -1 if it is not. */
static int mode_of_open_file(const char *path)
{
	for (int fd = 3; fd < 256; fd++) {
		char link[64], target[128];
		ssize_t length;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		if (!strcmp(target, path))
			return fcntl(fd, F_GETFL) & O_ACCMODE;
	}
	return -1;
}

/* What is not to be written is not even open for it, whichever way that was said. */
void test_read_only_files(void **state)
{
	static const struct {
		const char *key;
		uint32_t option, read_only;
	} cases[] = {
		{ "", 0, 0 }, { "?ro=0", 0, 0 }, { "?ro=1", 0, 1 },
		{ "", 1, 1 }, { "?ro=0", 1, 1 }, { "?ro=1", 1, 1 },
	};
	char path[] = "/tmp/weir-ro-XXXXXX", uri[64];
	static char block[4096];
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0 && !ftruncate(file, 1 << 20));
	close(file);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_storage_info info = { .size = sizeof(info) };
		struct weir_storage *out;

		snprintf(uri, sizeof(uri), "file:%s%s", path, cases[i].key);
		must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .read_only = cases[i].option),
				       &out));
		must(weir_storage_info(out, &info));
		assert_int_equal(info.read_only, cases[i].read_only);
		assert_int_equal(mode_of_open_file(path), cases[i].read_only ? O_RDONLY : O_RDWR);
		assert_int_equal(weir_storage_write(out, 0, block, sizeof(block)) < 0, cases[i].read_only);
		weir_storage_close(out);
	}
	unlink(path);
}

/* The controller of this file's own storage has one thread. */
static void expect_threads(unsigned more)
{
	assert_int_equal(test_threads_settled("weir-virt-", 1 + more), 1 + more);
}

void test_storage_threads(void **state)
{
	struct weir_storage *out;
	unsigned wanted;
	cpu_set_t cores;

	(void)state;
	expect_threads(0);
	assert_int_equal(sched_getaffinity(0, sizeof(cores), &cores), 0);
	wanted = CPU_COUNT(&cores) > 2 ? (unsigned)CPU_COUNT(&cores) - 2 : 1;
	for (unsigned queues = 1; queues <= 32; queues *= 4) {
		unsigned most = queues < 16 ? queues : 16;

		must(weir_storage_open(context, "virt:1M?threads=auto",
				       WEIR_OPTIONS(storage, .queues = queues), &out));
		expect_threads(wanted < most ? wanted : most);
		weir_storage_close(out);
	}
	must(weir_storage_open(context, "virt:1M?threads=3", NULL, &out));
	expect_threads(3);
	weir_storage_close(out);
}

void test_storage_options(void **state)
{
	struct weir_storage *out;
	struct weir_storage_options options = { .size = 1 };

	(void)state;
	refused(weir_storage_open(context, "virt:1M", &options, &out), -EINVAL, "storage options", "1");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .queues = 2000), &out), -EINVAL,
		"2000", "1024");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .depth = 1), &out), -EINVAL,
		"depth 1", "power");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .depth = 8192), &out), -EINVAL,
		"8192", "4096");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .max_transfer_bytes = 6000),
				  &out),
		-EINVAL, "max_transfer_bytes", "6000");
	refused(weir_storage_open(context, "virt:1M", WEIR_OPTIONS(storage, .depth = 4, .first_ticket = 4),
				  &out),
		-EINVAL, "first_ticket", "twice");
}

/* A URI says that nothing is written there. */
void test_read_only_by_uri(void **state)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	char path[] = "/tmp/weir-fixed-XXXXXX", uri[64], block[512] = { 0 };
	struct weir_storage *fixed;
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0 && !ftruncate(file, 1 << 20));
	snprintf(uri, sizeof(uri), "file:%s?ro=1&block=512", path);
	must(weir_storage_open(context, uri, NULL, &fixed));
	must(weir_storage_info(fixed, &info));
	assert_int_equal(info.read_only, 1);
	refused(weir_storage_write(fixed, 0, block, 512), -EIO, "the storage is read-only", path);
	weir_storage_close(fixed);
	close(file);
	unlink(path);
}
