/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is this backend's own: names of devices, sentences of compilers, what is kept on disk. Each
 * launch is a process of its own, this program with an argument, since a process builds a program once.
 */
#include <dirent.h>
#include <errno.h>
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

#include <weir/weir.h>

#include "../../rig/context.h"
#include "add.h"

enum { BLOCKS = 9, LANES = 7 };

static char folder[] = "/tmp/weir-opencl-XXXXXX";

/* A context opened, a kernel launched, its sum read. */
static int launch_once(void)
{
	struct weir_context *context;
	struct opencl_add_args args;
	uint64_t sum = 0, lanes = BLOCKS * LANES;
	int error = weir_context_open("opencl", NULL, &context);

	if (!error)
		error = weir_alloc(context, sizeof(sum), &args.sum);
	if (!error)
		error = weir_launch(context, "opencl_add", BLOCKS, LANES, &args, sizeof(args));
	if (!error)
		error = weir_sync(context);
	if (!error)
		error = weir_copy_from_device(context, &sum, args.sum, sizeof(sum));
	if (!error && sum != lanes * (lanes + 1) / 2)
		error = -ERANGE;
	if (error)
		fprintf(stderr, "%s\n", weir_last_error());
	weir_context_close(error ? NULL : context);
	return error ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Launch in a process of its own; what it wrote to stderr into @said. */
static int launch(char *said, size_t bytes)
{
	char command[4200], self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *output;

	assert_true(length > 0);
	self[length] = 0;
	snprintf(command, sizeof(command), "'%s' launch 2>&1 >/dev/null", self);
	output = popen(command, "r");
	assert_non_null(output);
	length = (ssize_t)fread(said, 1, bytes - 1, output);
	said[length] = 0;
	while (fgetc(output) != EOF)
		;
	return WEXITSTATUS(pclose(output));
}

/* How many entries the cache has; the path of one of them. */
static unsigned entry(char *path, size_t bytes)
{
	char location[256];
	struct dirent *row;
	unsigned entries = 0;
	DIR *listed;

	snprintf(location, sizeof(location), "%s/weir", folder);
	listed = opendir(location);
	while (listed && (row = readdir(listed)) != NULL)
		if (row->d_name[0] != '.') {
			snprintf(path, bytes, "%s/%s", location, row->d_name);
			entries++;
		}
	if (listed)
		closedir(listed);
	return entries;
}

static void test_names(void **state)
{
	static const struct {
		const char *name, *word;
	} WRONG[] = { { "opencl:99", "there is no opencl:99" },
		      { "opencl:1x", "opencl:1x" },
		      { "opencl:nobody's", "\"nobody's\" in its name" } };
	struct weir_context *context;
	struct weir_context_info info = { .size = sizeof(info) };

	(void)state;
	for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
		assert_int_equal(weir_context_open(WRONG[i].name, NULL, &context), -ENODEV);
		assert_non_null(strstr(weir_last_error(), WRONG[i].word));
	}
	assert_int_equal(weir_context_open("opencl", NULL, &context), 0);
	assert_int_equal(weir_context_info(context, &info), 0);
	assert_int_equal(strncmp(info.name, "opencl:", 7), 0);
	weir_context_close(context);
}

/* Refused in a sentence that has @word while @variable is @value. */
static void refused(const char *variable, const char *value, int code, const char *word)
{
	struct weir_context *context;

	setenv(variable, value, 1);
	assert_int_equal(weir_context_open("opencl", NULL, &context), code);
	unsetenv(variable);
	assert_non_null(strstr(weir_last_error(), variable));
	assert_non_null(strstr(weir_last_error(), word));
}

static void test_what_is_asked_for(void **state)
{
	struct weir_context *context;

	(void)state;
	refused("WEIR_OPENCL_MEMORY", "finer", -EINVAL, "\"fine\" and \"coarse\"");
	refused("WEIR_OPENCL_LANES", "7", -EINVAL, "waves of opencl:");
	setenv("WEIR_OPENCL_MEMORY", "coarse", 1); /* on whatever device there is that will do for it */
	setenv("WEIR_OPENCL_LANES", "1", 1);
	assert_int_equal(weir_context_open("opencl", NULL, &context), 0);
	unsetenv("WEIR_OPENCL_LANES");
	unsetenv("WEIR_OPENCL_MEMORY");
	weir_context_close(context);
}

/* Many launches that are not waited for, each with arguments of its own; more than there is room for. */
static void many_launches(void)
{
	enum { LAUNCHES = 2000 };
	struct weir_context *context;
	struct opencl_add_args args;
	uint64_t sums[LAUNCHES], lanes = LANES;

	assert_int_equal(weir_context_open("opencl", NULL, &context), 0);
	assert_int_equal(weir_alloc(context, sizeof(sums), &args.sum), 0);
	for (size_t i = 0; i < LAUNCHES; i++) {
		assert_int_equal(weir_launch(context, "opencl_add", 1, LANES, &args, sizeof(args)), 0);
		args.sum += sizeof(sums[0]);
	}
	assert_int_equal(weir_sync(context), 0);
	assert_int_equal(weir_copy_from_device(context, sums, args.sum - sizeof(sums), sizeof(sums)), 0);
	for (size_t i = 0; i < LAUNCHES; i++)
		assert_int_equal(sums[i], lanes * (lanes + 1) / 2);
	weir_context_close(context);
}

static void test_many_launches(void **state)
{
	(void)state;
	many_launches();
	setenv("WEIR_OPENCL_MEMORY", "coarse", 1);
	many_launches();
	unsetenv("WEIR_OPENCL_MEMORY");
}

/* A device of this kind is taken when it is asked for: "auto" finds the cpu, or better, before. */
static void test_not_by_itself(void **state)
{
	struct weir_context *context;
	struct weir_context_info info = { .size = sizeof(info) };

	(void)state;
	assert_int_equal(weir_context_open("auto", NULL, &context), 0);
	assert_int_equal(weir_context_info(context, &info), 0);
	assert_int_not_equal(strncmp(info.name, "opencl", 6), 0);
	weir_context_close(context);
}

static void test_a_compiler_that_refuses(void **state)
{
	char said[65536], *sentence;

	(void)state;
	setenv("WEIR_OPENCL_OPTIONS", "-Dweir_popcount=3", 1);
	assert_int_equal(launch(said, sizeof(said)), EXIT_FAILURE);
	unsetenv("WEIR_OPENCL_OPTIONS");
	assert_non_null(strstr(said, "what the compiler of opencl:"));
	sentence = strstr(said, "cannot compile kernel \"opencl_add\" for opencl:");
	assert_non_null(sentence);
	assert_non_null(strstr(sentence, "opencl.h:"));
	assert_non_null(strstr(sentence, "error:"));
}

/* What its compiler made is used again; a damaged file is made anew; other options have an entry of their
 * own. */
static void test_kept_on_disk(void **state)
{
	char path[600], said[4096];
	struct stat first, second;
	FILE *file;

	(void)state;
	assert_int_equal(entry(path, sizeof(path)), 0);
	setenv("WEIR_OPENCL_CACHE", "always", 1);
	assert_int_equal(launch(said, sizeof(said)), EXIT_SUCCESS);
	assert_int_equal(entry(path, sizeof(path)), 1);
	assert_int_equal(stat(path, &first), 0);
	assert_int_equal(launch(said, sizeof(said)), EXIT_SUCCESS);
	assert_int_equal(stat(path, &second), 0);
	assert_int_equal(first.st_ino, second.st_ino); /* not written again */

	file = fopen(path, "r+");
	fseek(file, first.st_size / 2, SEEK_SET);
	fwrite("damaged", 7, 1, file);
	fclose(file);
	assert_int_equal(launch(said, sizeof(said)), EXIT_SUCCESS);
	assert_int_equal(stat(path, &second), 0);
	assert_int_not_equal(first.st_ino, second.st_ino);
	assert_int_equal(launch(said, sizeof(said)), EXIT_SUCCESS);
	assert_int_equal(stat(path, &first), 0);
	assert_int_equal(first.st_ino, second.st_ino);
	assert_int_equal(entry(path, sizeof(path)), 1);

	setenv("WEIR_OPENCL_OPTIONS", "-DWEIR_TEST_OTHER=1", 1);
	assert_int_equal(launch(said, sizeof(said)), EXIT_SUCCESS);
	assert_int_equal(launch(said, sizeof(said)), EXIT_SUCCESS);
	unsetenv("WEIR_OPENCL_OPTIONS");
	unsetenv("WEIR_OPENCL_CACHE");
	assert_int_equal(entry(path, sizeof(path)), 2);
}

static void test_nowhere_to_keep(void **state)
{
	char said[4096];

	(void)state;
	setenv("WEIR_OPENCL_CACHE", "always", 1);
	setenv("POCL_CACHE_DIR", folder, 1); /* it does not work without one of its own */
	setenv("XDG_CACHE_HOME", "/proc", 1);
	assert_int_equal(launch(said, sizeof(said)), EXIT_SUCCESS);
	setenv("XDG_CACHE_HOME", folder, 1);
	unsetenv("POCL_CACHE_DIR");
	unsetenv("WEIR_OPENCL_CACHE");
	assert_non_null(strstr(said, "cannot keep compiled kernels in /proc/weir"));
}

static int set_up(void **state)
{
	(void)state;
	return !mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1);
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_not_by_itself),
		cmocka_unit_test(test_what_is_asked_for),
		cmocka_unit_test(test_many_launches),
		cmocka_unit_test(test_a_compiler_that_refuses),
		cmocka_unit_test(test_kept_on_disk),
		cmocka_unit_test(test_nowhere_to_keep),
	};

	if (count == 2 && !strcmp(arguments[1], "launch"))
		return launch_once();
	setenv("WEIR_TEST_CONTEXT", "opencl", 1);
	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("opencl", tests, set_up, tear_down);
}
