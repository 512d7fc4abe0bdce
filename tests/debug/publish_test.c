/* SPDX-License-Identifier: BSD-3-Clause */
/* publish_test.c: the file by which weir-stat finds a context: whose it is, that it is whole, and who takes
 * it away. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/cache.h"
#include "device/context.h"
#include "observe/publish.h"

static char folder[] = "/tmp/weir-publish-XXXXXX";

static const char *device = "test";

static void properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	*out = (struct weir_backend_properties){ .shared_memory = true };
	snprintf(out->name, sizeof(out->name), "%s", device);
}

static const struct weir_backend_ops ops = { .size = sizeof(ops), .properties = properties };

static bool is_there(const char *path)
{
	struct stat state;

	return lstat(path, &state) == 0;
}

static bool is_full; /* the disk: of each write it takes a half */

ssize_t write(int file, const void *data, size_t bytes)
{
	static ssize_t (*next)(int, const void *, size_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "write");
	return next(file, data, is_full ? bytes / 2 : bytes);
}

/* A child of fork() does @act to @context, and ends. */
static void fork_and(void (*act)(struct weir_context *context), struct weir_context *context)
{
	pid_t child = fork();
	int status = 1;

	assert_true(child >= 0);
	if (child == 0) {
		act(context);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Its words are not the parent's, whose file stays as it is, and goes with the parent's context. */
static void test_a_child_of_fork(void **state)
{
	struct weir_backend backend = { .ops = &ops };
	struct weir_context context = { .backend = &backend };
	struct stat before, after;
	char path[WEIR_PUBLISH_PATH + 24];

	(void)state;
	weir_publish(&context);
	assert_non_null(context.published);
	snprintf(path, sizeof(path), "%s", context.published);
	assert_true(strncmp(path, folder, strlen(folder)) == 0);
	assert_int_equal(stat(path, &before), 0);
	fork_and(weir_publish, &context);
	fork_and(weir_publish_end, &context);
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino == after.st_ino); /* nor written anew */
	weir_publish(&context);
	assert_true(is_there(path));
	weir_publish_end(&context);
	assert_false(is_there(path));
	assert_null(context.published);
}

/* Field 22 of /proc/self/stat, behind the program's name, which may have spaces. */
static unsigned long long start_of_this(void)
{
	char text[1024] = "", *field, *rest = NULL;
	FILE *file = fopen("/proc/self/stat", "r");

	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	field = strtok_r(strrchr(text, ')'), " ", &rest);
	for (unsigned i = 2; i < 22; i++)
		field = strtok_r(NULL, " ", &rest);
	return strtoull(field, NULL, 10);
}

/* Lines are words and what follows them, which cannot end one. */
static void test_what_is_in_it(void **state)
{
	struct weir_backend backend = { .ops = &ops };
	struct weir_context context = { .backend = &backend };
	char text[1000] = "", right[1000];
	FILE *file;

	(void)state;
	device = "of\ntwo lines, 100%\x7f";
	weir_publish(&context);
	device = "test";
	file = fopen(context.published, "r");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	snprintf(right, sizeof(right),
		 "weir-context %d\nabi %d\npid %d\nstart %llu\nnumber %u\ndevice of%%0atwo lines, "
		 "100%%25%%7f\nshared 1\nend\n",
		 WEIR_PUBLISH_LAYOUT, WEIR_ABI_VERSION, (int)getpid(), start_of_this(), context.number);
	assert_string_equal(text, right);
	weir_publish_end(&context);
}

static char text_of_file[4000];

static const char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t bytes;

	assert_non_null(file);
	bytes = fread(text_of_file, 1, sizeof(text_of_file) - 1, file);
	text_of_file[bytes] = '\0';
	fclose(file);
	return text_of_file;
}

/* Of each storage and cache where its words lie, in addresses of 64 bits, and what they are. */
static void test_storages_and_caches(void **state)
{
	struct weir_backend backend = { .ops = &ops };
	struct weir_transport transports[2] = { { .network = 0x1234567890abc }, { .network = 0 } };
	struct weir_storage second = { .transport = &transports[1],
				       .uri = (char *)"virt:1M",
				       .queues = 0x2000000005,
				       .queue_count = 6,
				       .depth = 8,
				       .answer_ns = 30000000000,
				       .disk = { .block_log2 = 9, .timeout_ns = 75000000000 } },
			    first = { .next = &second,
				      .transport = &transports[0],
				      .uri = (char *)"nvmf:tcp://host/nqn",
				      .queues = 0xfedcba9876543210,
				      .queue_count = 3,
				      .depth = 4096,
				      .pull = true,
				      .service = (struct weir_service *)(void *)&transports,
				      .answer_ns = 86400000000000,
				      .disk = { .block_log2 = 12, .timeout_ns = 172815000000000 } };
	struct weir_cache other = { .lines = 0x3000000007, .line_log2 = 9, .bytes = 777 }, cache = {
		.next = &other, .lines = 0x5000000009, .line_log2 = 16, .bytes = (uint64_t)5 << 40
	};
	struct weir_context context = { .backend = &backend, .open = &first, .open_caches = &cache };
	char right[2000];

	(void)state;
	weir_publish(&context);
	snprintf(right, sizeof(right),
		 "shared 1\n"
		 "storage nvmf:tcp://host/nqn\nqueues 0xfedcba9876543210 3 4096\nlate 0 0 0 0\nrecovered %p\n"
		 "network 0x1234567890abc\nfacts 4096 1 1 172815000 86400000\n"
		 "storage virt:1M\nqueues 0x2000000005 6 8\nlate 0 0 0 0\nrecovered %p\n"
		 "facts 512 0 0 75000 30000\n"
		 "cache 0x5000000009 65536 5497558138880\ncache 0x3000000007 512 777\nend\n",
		 (void *)&first.recovered, (void *)&second.recovered);
	assert_non_null(strstr(read_file(context.published), "shared 1\n"));
	assert_string_equal(strstr(text_of_file, "shared 1\n"), right);
	context.open = &second; /* it was closed */
	context.open_caches = NULL;
	weir_publish(&context);
	assert_null(strstr(read_file(context.published), "nvmf:"));
	assert_null(strstr(text_of_file, "cache"));
	assert_non_null(strstr(text_of_file, "storage virt:1M\n"));
	weir_publish_end(&context);
}

/* A target's file says where its counters are, has a number of its own, and goes with it. */
static void test_a_target(void **state)
{
	struct weir_publication targets[2] = { { .path = NULL }, { .path = NULL } };
	char path[2][WEIR_PUBLISH_PATH + 24], right[400];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		weir_publish_target(&targets[i], 0x7fff00001000 + i, 5 + i, 72);
		assert_non_null(targets[i].path);
		snprintf(path[i], sizeof(path[i]), "%s", targets[i].path);
	}
	assert_int_equal(targets[1].number, targets[0].number + 1);
	assert_string_not_equal(path[0], path[1]);
	snprintf(right, sizeof(right),
		 "weir-context %d\nabi %d\npid %d\nstart %llu\nnumber %u\ndevice target\nshared 1\n"
		 "target 0x7fff00001001 6 72\nend\n",
		 WEIR_PUBLISH_LAYOUT, WEIR_ABI_VERSION, (int)getpid(), start_of_this(), targets[1].number);
	assert_string_equal(read_file(path[1]), right);
	weir_publish_target_end(&targets[0]);
	assert_true(!is_there(path[0]) && is_there(path[1]));
	targets[1].publisher++; /* of a process that was forked */
	weir_publish_target_end(&targets[1]);
	assert_true(is_there(path[1]));
	assert_null(targets[1].path);
	assert_int_equal(unlink(path[1]), 0);
}

/* One that could not be written whole is none, and neither is the one before, which is no longer right. */
static void test_a_full_disk(void **state)
{
	struct weir_backend backend = { .ops = &ops };
	struct weir_context context = { .backend = &backend };
	char path[WEIR_PUBLISH_PATH + 24];

	(void)state;
	weir_publish(&context);
	assert_non_null(context.published);
	snprintf(path, sizeof(path), "%s", context.published);
	is_full = true;
	weir_publish(&context);
	is_full = false;
	assert_false(is_there(path));
	weir_publish(&context);
	assert_true(is_there(path));
	weir_publish_end(&context);
	assert_false(is_there(path));
}

static bool is_published_there(void)
{
	struct weir_backend backend = { .ops = &ops };
	struct weir_context context = { .backend = &backend };
	bool there;

	weir_publish(&context);
	there = context.published && strncmp(context.published, folder, strlen(folder)) == 0;
	weir_publish_end(&context);
	return there;
}

/* Where others may look into it, or have put a link to some folder of the user's, nothing is written. */
static void test_a_folder_that_others_made(void **state)
{
	char inner[64], other[64];

	(void)state;
	snprintf(inner, sizeof(inner), "%s/weir", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_true(is_published_there());
	assert_int_equal(chmod(inner, 0750), 0);
	assert_false(is_published_there());
	assert_int_equal(chmod(inner, 0700), 0);
	assert_int_equal(rename(inner, other), 0);
	assert_int_equal(symlink(other, inner), 0);
	assert_false(is_published_there());
	assert_int_equal(unlink(inner), 0);
	assert_int_equal(rename(other, inner), 0);
	assert_true(is_published_there());
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) && setenv("XDG_RUNTIME_DIR", folder, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	char inner[64];

	(void)state;
	snprintf(inner, sizeof(inner), "%s/weir", folder);
	return rmdir(inner) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_child_of_fork),     cmocka_unit_test(test_what_is_in_it),
		cmocka_unit_test(test_storages_and_caches), cmocka_unit_test(test_a_target),
		cmocka_unit_test(test_a_full_disk),         cmocka_unit_test(test_a_folder_that_others_made),
	};

	return cmocka_run_group_tests_name("publish", tests, set_up, tear_down);
}
