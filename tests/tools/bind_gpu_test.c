/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What weir-bind gpu asks the kernel module for, and what it makes of the answers. A folder stands for the
 * machine, and a stand-in for ioctl() for the module.
 */
#include "capture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "../../kmod-p2p/weir_p2p.h"
#include "tools/weir-bind/gpu.h"

enum { MOST_CALLS = 8, TEXT_BYTES = 512 };

/** module - the stand-in: calls that it had, the number of the one that fails (0: none) and with what, and
 * what it says then */
static struct {
	unsigned count;
	unsigned long request[MOST_CALLS];
	struct weir_p2p_claim claim[MOST_CALLS];
	unsigned failing;
	int error;
	struct weir_p2p_reason reason;
	bool speechless;
	uint64_t bytes;
} module;

static char root[64];
static const char *command;
static struct tree_names addresses;
static struct gpu_options options;

static void path_of(char path[TEXT_BYTES], const char *name)
{
	assert_true((size_t)snprintf(path, TEXT_BYTES, "%s/%s", root, name) < TEXT_BYTES);
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	char path[TEXT_BYTES];
	int file;

	path_of(path, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
		*slash = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
	}
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
	close(file);
}

static void node_name(char name[TEXT_BYTES], const struct weir_p2p_function *gpu)
{
	snprintf(name, TEXT_BYTES, "dev/weir_p2p/%04x:%02x:%02x.%x-%u", gpu->domain, gpu->bus, gpu->device,
		 gpu->function, gpu->bar);
}

static bool has_node(const char *name)
{
	char path[TEXT_BYTES];

	path_of(path, name);
	return access(path, F_OK) == 0;
}

static int answer(unsigned long request, struct weir_p2p_claim *claim)
{
	char name[TEXT_BYTES], path[TEXT_BYTES];

	assert_true(module.count < MOST_CALLS);
	module.request[module.count] = request;
	module.claim[module.count++] = *claim;
	if (module.count == module.failing) {
		errno = module.error;
		return -1;
	}
	node_name(name, &claim->gpu);
	path_of(path, name);
	if (request == WEIR_P2P_CLAIM)
		write_file(name, "", 0600);
	else
		assert_int_equal(unlink(path), 0);
	claim->bytes = module.bytes;
	return 0;
}

/* In the place of the system's. */
int ioctl(int file, unsigned long request, ...)
{
	va_list arguments;
	void *structure;

	va_start(arguments, request);
	structure = va_arg(arguments, void *);
	va_end(arguments);
	assert_true(file >= 0);
	if (request != WEIR_P2P_REASON)
		return answer(request, structure);
	if (module.speechless)
		return -1;
	assert_int_equal(((struct weir_p2p_reason *)structure)->size, sizeof(module.reason));
	memcpy(structure, &module.reason, sizeof(module.reason));
	return 0;
}

/* A GPU: registers in BAR 0, 16 GiB in BAR 1, 32 MiB in BAR 3. */
static void add_gpu(const char *address)
{
	char name[TEXT_BYTES];

	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/class", address);
	write_file(name, "0x030200\n", 0600);
	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/resource", address);
	write_file(name,
		   "0xe0000000 0xe0ffffff 0x40200\n0x380000000000 0x3803ffffffff 0x14220c\n0 0 0\n"
		   "0x380400000000 0x380401ffffff 0x14220c\n0 0 0\n0x3000 0x307f 0x40101\n",
		   0600);
	snprintf(addresses.name[addresses.count++], TREE_NAME_BYTES, "%s", address);
}

static int begin(void **state)
{
	(void)state;
	memset(&module, 0, sizeof(module));
	module.bytes = UINT64_C(5) << 30;
	snprintf(root, sizeof(root), "bind_gpu_test.XXXXXX");
	assert_non_null(mkdtemp(root));
	tree_root = root;
	write_file("dev/weir_p2p/control", "", 0600);
	addresses.count = 0;
	command = "claim";
	options = (struct gpu_options){ .bar = -1 };
	return 0;
}

static int end(void **state)
{
	char line[TEXT_BYTES];

	(void)state;
	snprintf(line, sizeof(line), "rm -rf %s", root);
	return system(line);
}

static int run_gpu(int count, char **words)
{
	(void)count;
	(void)words;
	return gpu_run(command, &addresses, &options);
}

static unsigned open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* It ends with @status and has printed @out and @errors; no file is left open. */
static void expect(int status, const char *out, const char *errors)
{
	unsigned before = open_files();

	assert_int_equal(capture_run(run_gpu, ""), status);
	assert_string_equal(captured, out);
	assert_string_equal(captured_errors, errors);
	assert_int_equal(open_files(), before);
}

static void expect_call(unsigned number, unsigned long request, struct weir_p2p_function gpu)
{
	const struct weir_p2p_claim *claim = &module.claim[number];

	assert_true(number < module.count && module.request[number] == request);
	assert_int_equal(claim->size, sizeof(*claim));
	assert_true(claim->flags == 0 && claim->offset == 0 && claim->bytes == 0);
	assert_memory_equal(&claim->gpu, &gpu, sizeof(gpu));
}

static void test_a_claim_says_which_function_and_bar(void **state)
{
	(void)state;
	add_gpu("10000:c1:1f.7");
	expect(0, "claimed BAR 1 of 10000:c1:1f.7, 5120 MiB: /dev/weir_p2p/10000:c1:1f.7-1\n", "");
	assert_int_equal(module.count, 1);
	expect_call(0, WEIR_P2P_CLAIM, (struct weir_p2p_function){ 0x10000, 0xc1, 0x1f, 7, 1 });
	options.bar = 3;
	expect(0, "claimed BAR 3 of 10000:c1:1f.7, 5120 MiB: /dev/weir_p2p/10000:c1:1f.7-3\n", "");
	assert_int_equal(module.count, 2);
	expect_call(1, WEIR_P2P_CLAIM, (struct weir_p2p_function){ 0x10000, 0xc1, 0x1f, 7, 3 });
}

/* Beside root a group alone, and only where one was named. */
static void test_a_node_is_given_to_a_group(void **state)
{
	const struct group *group = getgrgid(getgid());
	char path[TEXT_BYTES];
	struct stat node;

	(void)state;
	if (!group)
		skip();
	add_gpu("0000:41:00.0");
	path_of(path, "dev/weir_p2p/0000:41:00.0-1");
	assert_int_equal(capture_run(run_gpu, ""), 0);
	assert_true(stat(path, &node) == 0 && (node.st_mode & 0777) == 0600);
	options.group = group->gr_name;
	assert_int_equal(capture_run(run_gpu, ""), 0);
	assert_true(stat(path, &node) == 0 && (node.st_mode & 0777) == 0660 && node.st_gid == group->gr_gid);
	options.group = "no-such-group-here";
	expect(1, "claimed BAR 1 of 0000:41:00.0, 5120 MiB: /dev/weir_p2p/0000:41:00.0-1\n",
	       "weir: 0000:41:00.0: claimed, but there is no group no-such-group-here to open its node: "
	       "groupadd --system no-such-group-here\n");
}

/* The module's own words; where they are of another refusal, or there are none, the system's. */
static void test_why_a_claim_is_refused(void **state)
{
	(void)state;
	add_gpu("0000:41:00.0");
	module.error = EEXIST;
	module.reason = (struct weir_p2p_reason){ .size = sizeof(module.reason), .error = EEXIST };
	snprintf(module.reason.text, sizeof(module.reason.text), "it is claimed; give it back first");
	module.failing = 1;
	expect(1, "", "weir: 0000:41:00.0: it is claimed; give it back first\n");
	module.reason.error = EBUSY;
	module.failing = 2;
	expect(1, "", "weir: 0000:41:00.0: File exists\n");
	module.reason.error = EEXIST;
	module.speechless = true;
	module.failing = 3;
	expect(1, "", "weir: 0000:41:00.0: File exists\n");
	module.speechless = false;
	module.reason.text[0] = '\0';
	module.failing = 4;
	expect(1, "", "weir: 0000:41:00.0: File exists\n");
	assert_false(has_node("dev/weir_p2p/0000:41:00.0-1"));
}

/* One that is refused does not keep the others, and is the exit status whichever it is. */
static void test_one_of_several_is_refused(void **state)
{
	(void)state;
	add_gpu("0000:41:00.0");
	add_gpu("0000:42:00.0");
	module.error = EPERM;
	for (unsigned refused = 0; refused < 2; refused++) {
		char errors[TEXT_BYTES];

		module.count = 0;
		module.failing = refused + 1;
		snprintf(errors, sizeof(errors), "weir: %s: Operation not permitted\n",
			 addresses.name[refused]);
		assert_int_equal(capture_run(run_gpu, ""), 1);
		assert_string_equal(captured_errors, errors);
		assert_int_equal(module.count, 2);
		assert_int_equal(module.claim[0].gpu.bus, 0x41);
		assert_int_equal(module.claim[1].gpu.bus, 0x42);
	}
	snprintf(addresses.name[0], TREE_NAME_BYTES, "0000:77:00.0"); /* is not there */
	module.count = module.failing = 0;
	assert_int_equal(capture_run(run_gpu, ""), 1);
	assert_int_equal(module.count, 1);
}

static void add_windows(void)
{
	write_file("dev/weir_p2p/0000:41:00.0-1", "", 0600);
	write_file("dev/weir_p2p/0000:41:00.0-3", "", 0600);
	module.count = 0;
}

static void test_windows_are_given_back(void **state)
{
	(void)state;
	add_gpu("0000:41:00.0");
	command = "unclaim";
	expect(1, "", "weir: 0000:41:00.0: it has no window; weir-bind gpu list shows who has\n");
	add_windows();
	expect(0, "gave back BAR 1 of 0000:41:00.0\ngave back BAR 3 of 0000:41:00.0\n", "");
	assert_int_equal(module.count, 2);
	expect_call(0, WEIR_P2P_UNCLAIM, (struct weir_p2p_function){ 0, 0x41, 0, 0, 1 });
	expect_call(1, WEIR_P2P_UNCLAIM, (struct weir_p2p_function){ 0, 0x41, 0, 0, 3 });
	add_windows();
	options.bar = 3;
	expect(0, "gave back BAR 3 of 0000:41:00.0\n", "");
	assert_int_equal(module.count, 1);
	expect_call(0, WEIR_P2P_UNCLAIM, (struct weir_p2p_function){ 0, 0x41, 0, 0, 3 });
	add_windows();
	options.bar = -1;
	module.failing = 1; /* of two the first one is kept, which the second does not hide */
	module.error = EBUSY;
	expect(1, "gave back BAR 3 of 0000:41:00.0\n", "weir: 0000:41:00.0: Device or resource busy\n");
	assert_true(has_node("dev/weir_p2p/0000:41:00.0-1") && !has_node("dev/weir_p2p/0000:41:00.0-3"));
}

static void test_nothing_is_asked_for_in_a_dry_run(void **state)
{
	char path[TEXT_BYTES];

	(void)state;
	add_gpu("0000:41:00.0");
	path_of(path, "dev/weir_p2p/control");
	assert_int_equal(unlink(path), 0);
	options.dry_run = true;
	expect(0, "would claim BAR 1 of 0000:41:00.0, 16384 MiB, as /dev/weir_p2p/0000:41:00.0-1\n", "");
	add_windows();
	command = "unclaim";
	expect(0, "would give back BAR 1 of 0000:41:00.0\nwould give back BAR 3 of 0000:41:00.0\n", "");
	options.dry_run = false; /* without the module there is nobody to ask */
	assert_int_equal(capture_run(run_gpu, ""), 1);
	assert_non_null(strstr(captured_errors, "the kernel module is not loaded: modprobe weir_p2p"));
	assert_int_equal(module.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_claim_says_which_function_and_bar, begin, end),
		cmocka_unit_test_setup_teardown(test_a_node_is_given_to_a_group, begin, end),
		cmocka_unit_test_setup_teardown(test_why_a_claim_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(test_one_of_several_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(test_windows_are_given_back, begin, end),
		cmocka_unit_test_setup_teardown(test_nothing_is_asked_for_in_a_dry_run, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
