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
		cmocka_unit_test(test_a_child_of_fork),
		cmocka_unit_test(test_what_is_in_it),
		cmocka_unit_test(test_a_full_disk),
		cmocka_unit_test(test_a_folder_that_others_made),
	};

	return cmocka_run_group_tests_name("publish", tests, set_up, tear_down);
}
