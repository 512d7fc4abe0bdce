/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabrics_host_test.c: what a host is called, what it takes from a controller's ANA log, and how long it
 * pauses between tries to connect, where nothing carries commands.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/nvme_fabrics.h>
#include <weir/weir.h>

#include "backend/error.h"
#include "no_wire.h"
#include "transport/fabrics/address.h"
#include "transport/fabrics/discover.h"
#include "transport/fabrics/identity.h"
#include "transport/fabrics/paths.h"

enum { PAGE_BYTES = 16384, NS_OF_A_MS = 1000000, LONG_MS = 600000, JOIN_MS = 60000, REFUSED = 0x109 };

/* A storage of one host, without I/O queues. */
static struct {
	struct nvmf nvmf;
	struct nvmf_path path;
	struct nvmf_queue admin;
	struct shared_u32 doorbells[2];
} made;

static int create_nothing(struct nvmf_queue *queue, u32 entries)
{
	(void)queue, (void)entries;
	return 0;
}

static int open_in_vain(struct nvmf_queue *queue, const struct weir_address *address)
{
	(void)queue, (void)address;
	return weir_fail(ETIMEDOUT, "nobody answers");
}

static const struct nvmf_wire deaf = { .create = create_nothing,
				       .open = open_in_vain,
				       .send = move_nothing,
				       .receive = move_nothing,
				       .room = any_room,
				       .begin = begin_nothing,
				       .close = close_nothing };

static void make(const struct nvmf_wire *wire)
{
	memset(&made, 0, sizeof(made));
	made.nvmf = (struct nvmf){ .wire = wire,
				   .queues = &made.admin,
				   .queue_count = 1,
				   .paths = &made.path,
				   .doorbells = made.doorbells,
				   .epoll = -1 };
	made.nvmf.keys.hosts.count = 1;
	made.nvmf.uri = strdup("nvmf:made");
	made.admin = (struct nvmf_queue){ .nvmf = &made.nvmf, .most = 4, .connection = { .open = true } };
	made.path = (struct nvmf_path){ .nvmf = &made.nvmf };
}

/* ---- the ANA log ---- */

static u8 page[PAGE_BYTES];
static u32 page_bytes, page_status;
static unsigned asked;

static void begin_page(void)
{
	memset(page, 0, sizeof(page));
	page_bytes = sizeof(struct nvme_ana_log);
}

/* A group of @state, as its byte is, and of @count namespaces from @nsid on, as far as there is room. */
static void add_group(u8 state, u32 nsid, u32 count)
{
	const struct nvme_ana_group group = { .group = nsid, .nsids = count, .state = state };
	struct nvme_ana_log head;

	memcpy(page + page_bytes, &group, sizeof(group));
	page_bytes += sizeof(group);
	for (u32 i = 0; i < count && page_bytes < PAGE_BYTES; i++, page_bytes += sizeof(nsid)) {
		u32 number = nsid + i;

		memcpy(page + page_bytes, &number, sizeof(number));
	}
	memcpy(&head, page, sizeof(head));
	head.groups++;
	memcpy(page, &head, sizeof(head));
}

static void answer_with_page(struct nvmf_queue *queue, struct nvmf_request *request)
{
	const struct nvme_cqe answer = { .dw3 = request->cid | page_status << 17 };

	asked++;
	assert_int_equal(request->sqe.cdw0 & 0xff, NVME_ADMIN_GET_LOG_PAGE);
	assert_int_equal(request->sqe.cdw10 & 0xff, NVME_LOG_ANA);
	assert_int_equal(request->bytes, PAGE_BYTES);
	memcpy(request->segments[0].iov_base, page, PAGE_BYTES);
	request->granted = request->received = request->bytes;
	nvmf_request_end(queue, request, &answer);
}

static u32 state_of(u32 nsid)
{
	struct nvmf_wire answers = deaf;
	u32 state = ~0u;

	answers.begin = answer_with_page;
	make(&answers);
	made.nvmf.associated = made.nvmf.controller.has_ana = true;
	assert_int_equal(nvmf_read_ana(&made.nvmf, nsid, &state), 0);
	free(made.nvmf.uri);
	return state;
}

/* Bits 7:4 of the byte are reserved: whatever they are, the state is that of the others. */
static void a_namespace_has_its_groups_state(void **state)
{
	(void)state;
	begin_page();
	assert_int_equal(state_of(0), 0);
	add_group(0xf0 | NVME_ANA_INACCESSIBLE, 1, 2);
	assert_int_equal(state_of(0), NVME_ANA_INACCESSIBLE); /* no other one is better */
	add_group(0x50 | NVME_ANA_NON_OPTIMIZED, 10, 1);
	assert_int_equal(state_of(0), NVME_ANA_NON_OPTIMIZED);
	add_group(0x10 | NVME_ANA_PERSISTENT_LOSS, 20, 0);
	add_group(0x20 | NVME_ANA_OPTIMIZED, 30, 3);
	add_group(NVME_ANA_CHANGE, 40, 1);
	assert_int_equal(state_of(1), NVME_ANA_INACCESSIBLE);
	assert_int_equal(state_of(2), NVME_ANA_INACCESSIBLE);
	assert_int_equal(state_of(10), NVME_ANA_NON_OPTIMIZED);
	assert_int_equal(state_of(32), NVME_ANA_OPTIMIZED);
	assert_int_equal(state_of(40), NVME_ANA_CHANGE);
	assert_int_equal(state_of(0), NVME_ANA_OPTIMIZED);
	assert_int_equal(state_of(3), 0);
	assert_int_equal(state_of(20), 0);
	assert_int_equal(state_of(33), 0);
}

/* A log that says more than it has is read as far as it goes, and no further. */
static void a_log_ends_with_its_page(void **state)
{
	const u32 rest =
		(PAGE_BYTES - sizeof(struct nvme_ana_log) - sizeof(struct nvme_ana_group)) / sizeof(u32);

	(void)state;
	begin_page();
	add_group(NVME_ANA_NON_OPTIMIZED, 1, rest);
	assert_int_equal(state_of(1), NVME_ANA_NON_OPTIMIZED);
	assert_int_equal(state_of(rest), NVME_ANA_NON_OPTIMIZED);
	begin_page();
	add_group(NVME_ANA_NON_OPTIMIZED, 1, rest + 1);
	assert_int_equal(state_of(rest), 0);
	begin_page();
	add_group(NVME_ANA_INACCESSIBLE, 1, 1);
	add_group(NVME_ANA_OPTIMIZED, 2, UINT32_MAX);
	assert_int_equal(state_of(1), NVME_ANA_INACCESSIBLE);
	assert_int_equal(state_of(2), 0);
	assert_int_equal(state_of(0), NVME_ANA_INACCESSIBLE);
	begin_page();
	add_group(NVME_ANA_NON_OPTIMIZED, 1, 1);
	memset(page + offsetof(struct nvme_ana_log, groups), 0xff, sizeof(u16));
	assert_int_equal(state_of(1), NVME_ANA_NON_OPTIMIZED);
	assert_int_equal(state_of(0), NVME_ANA_NON_OPTIMIZED);
	assert_int_equal(state_of(2), 0);
}

/* A controller without ANA has one path, which is as good as can be; one that refuses the log fails. */
static void a_log_that_is_not_there(void **state)
{
	struct nvmf_wire answers = deaf;
	u32 found = 0;

	(void)state;
	begin_page();
	add_group(NVME_ANA_INACCESSIBLE, 1, 1);
	answers.begin = answer_with_page;
	make(&answers);
	made.nvmf.associated = true;
	asked = 0;
	assert_int_equal(nvmf_read_ana(&made.nvmf, 1, &found), 0);
	assert_int_equal(found, NVME_ANA_OPTIMIZED);
	assert_int_equal(asked, 0);
	made.nvmf.controller.has_ana = true;
	page_status = REFUSED;
	assert_int_equal(nvmf_read_ana(&made.nvmf, 1, &found), -EIO);
	page_status = 0;
	assert_int_equal(asked, 1);
	assert_non_null(strstr(weir_last_error(), "with status 0x109"));
	free(made.nvmf.uri);
}

/* ---- pauses ---- */

/* A try to connect fails after a pause of @ms. Return: the next pause, in milliseconds. */
static u64 pause_after(u64 ms)
{
	bool done = false;

	make(&deaf);
	made.nvmf.keys.ctrl_loss_ms = LONG_MS;
	made.nvmf.enabled = made.nvmf.began = true;
	made.nvmf.pause_ns = ms * NS_OF_A_MS;
	made.nvmf.lost_ns = nvmf_now_ns();
	assert_int_equal(pthread_mutex_init(&made.nvmf.mutex, NULL), 0);
	assert_int_equal(weir_sleeper_open(&made.nvmf.sleeper), 0);
	assert_int_equal(nvmf_keeper_start(&made.nvmf), 0);
	while (!done) {
		pthread_mutex_lock(&made.nvmf.mutex);
		done = made.nvmf.again_ns != 0;
		if (done)
			made.nvmf.again_ns += (u64)LONG_MS * NS_OF_A_MS; /* this was the only try */
		pthread_mutex_unlock(&made.nvmf.mutex);
	}
	assert_int_equal(nvmf_keeper_stop(&made.nvmf, JOIN_MS), 0);
	assert_true(made.nvmf.again_ns - made.nvmf.lost_ns >= (LONG_MS + ms) * NS_OF_A_MS);
	assert_true(made.nvmf.pause_ns % NS_OF_A_MS == 0);
	weir_sleeper_close(&made.nvmf.sleeper);
	pthread_mutex_destroy(&made.nvmf.mutex);
	free(made.nvmf.uri);
	return made.nvmf.pause_ns / NS_OF_A_MS;
}

/* Each pause is twice as long as the last one, and none longer than two seconds: a host that comes back is
 * found. */
static void pauses_grow_and_do_not_grow_on(void **state)
{
	(void)state;
	assert_int_equal(pause_after(1000), 2000);
	assert_int_equal(pause_after(1500), 2000);
	assert_int_equal(pause_after(2000), 2000);
}

/* ---- who this host is ---- */

#define OTHERS "hostnqn nqn.2026-11.org.example:first\nhostid 00112233-4455-6677-8899-aabbccddeeff\n"

static const u8 others_id[16] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
				  0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };

static char home[sizeof("/tmp/weir-fabrics-host-XXXXXX")], path[128];
static bool another_comes;

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void check_file(const char *text)
{
	char found[512] = "";
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_true(fread(found, 1, sizeof(found) - 1, file) > 0);
	assert_int_equal(fclose(file), 0);
	assert_string_equal(found, text);
}

/* Folders for @path, of which all but the first two may be there. */
static void make_folders(void)
{
	char folder[sizeof(path)];

	strcpy(folder, path);
	for (char *slash = folder + strlen(home); (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(folder, 0755);
		*slash = '/';
	}
}

ssize_t __real_getrandom(void *to, size_t bytes, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t bytes, unsigned flags);

/* Another process makes the file while this one makes an identity. */
ssize_t __wrap_getrandom(void *to, size_t bytes, unsigned flags)
{
	if (another_comes) {
		another_comes = false;
		make_folders();
		write_file(OTHERS);
	}
	return __real_getrandom(to, bytes, flags);
}

static int begin_home(void **state)
{
	(void)state;
	strcpy(home, "/tmp/weir-fabrics-host-XXXXXX");
	if (!mkdtemp(home))
		return -1;
	snprintf(path, sizeof(path), "%s/weir/host", home);
	return setenv("XDG_CONFIG_HOME", home, 1) + setenv("HOME", "/nonexistent", 1);
}

static int end_home(void **state)
{
	(void)state;
	(void)remove(path);
	for (char *slash; (slash = strrchr(path, '/')) && (size_t)(slash - path) >= strlen(home);) {
		*slash = '\0';
		if (rmdir(path) != 0) /* nothing else was left there */
			return -1;
	}
	return 0;
}

/* Made once, as a random UUID, and the same ever after. */
static void an_identity_is_made_once(void **state)
{
	char uuid[WEIR_HOST_ID_TEXT], text[512];
	struct weir_host_identity made_now, again;

	(void)state;
	assert_int_equal(weir_host_identity(&made_now), 0);
	assert_int_equal(made_now.id[6] >> 4, 4);
	assert_int_equal(made_now.id[8] >> 6, 2);
	weir_host_id_text(made_now.id, uuid);
	snprintf(text, sizeof(text), "%s%s", NVME_NQN_UUID_PREFIX, uuid);
	assert_string_equal(made_now.nqn, text);
	snprintf(text, sizeof(text), "hostnqn %s\nhostid %s\n", made_now.nqn, uuid);
	check_file(text);
	assert_int_equal(weir_host_identity(&again), 0);
	assert_string_equal(again.nqn, made_now.nqn);
	assert_memory_equal(again.id, made_now.id, sizeof(again.id));
	check_file(text);
}

/* Two processes make one at once: both are who the first one is. */
static void the_first_identity_counts(void **state)
{
	struct weir_host_identity out;

	(void)state;
	another_comes = true;
	assert_int_equal(weir_host_identity(&out), 0);
	assert_false(another_comes);
	assert_string_equal(out.nqn, "nqn.2026-11.org.example:first");
	assert_memory_equal(out.id, others_id, sizeof(out.id));
	check_file(OTHERS);
}

/* A file that names nobody is left as it is, and said. */
static void a_file_that_names_nobody(void **state)
{
	static const char *const wrong[] = {
		"",
		"hostnqn nqn.2026-11.org.example:h\n",
		"hostnqn 2026-11.org.example:h\nhostid 00112233-4455-6677-8899-aabbccddeeff\n",
		"hostnqn nqn.2026-11.org.example:h\nhostid 00112233-4455-6677-8899-aabbccddee\n",
		"hostid 00112233-4455-6677-8899-aabbccddeeff\nhostnqn nqn.2026-11.org.example:h\n",
	};
	struct weir_host_identity out;

	(void)state;
	make_folders();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		write_file(wrong[i]);
		assert_int_equal(weir_host_identity(&out), -EINVAL);
		assert_non_null(strstr(weir_last_error(), "does not name this host"));
		if (*wrong[i])
			check_file(wrong[i]);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(weir_host_identity(&out), -EISDIR);
	assert_non_null(strstr(weir_last_error(), path));
}

/* A name may be as long as names are, and no longer. */
static void a_long_name_is_whole(void **state)
{
	enum { LONGEST = 223 };
	char nqn[LONGEST + 1] = "nqn.", text[512];
	struct weir_host_identity out;

	(void)state;
	make_folders();
	memset(nqn + 4, 'x', LONGEST - 4);
	snprintf(text, sizeof(text), "hostnqn %sx\nhostid 00112233445566778899AABBCCDDEEFF\n", nqn);
	write_file(text);
	assert_int_equal(weir_host_identity(&out), -EINVAL);
	snprintf(text, sizeof(text), "hostnqn %s\nhostid 00112233445566778899AABBCCDDEEFF\n", nqn);
	write_file(text);
	assert_int_equal(weir_host_identity(&out), 0);
	assert_string_equal(out.nqn, nqn);
	assert_memory_equal(out.id, others_id, sizeof(out.id));
}

/* A folder that is relative is none (XDG Base Directory); then the user's own counts. */
static void where_the_file_is(void **state)
{
	static const char *const none[] = { "", "config" };
	char found[sizeof(path)];
	struct weir_host_identity out;

	(void)state;
	assert_int_equal(weir_host_identity_path(found, sizeof(found)), strlen(path));
	assert_string_equal(found, path);
	assert_int_equal(weir_host_identity_path(found, strlen(path)), 0); /* no room for its end */
	snprintf(path, sizeof(path), "%s/.config/weir/host", home);
	assert_int_equal(setenv("HOME", home, 1), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(setenv("XDG_CONFIG_HOME", none[i], 1), 0);
		assert_int_equal(weir_host_identity_path(found, sizeof(found)), strlen(path));
		assert_string_equal(found, path);
	}
	assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
	assert_int_equal(weir_host_identity(&out), 0);
	assert_int_equal(access(path, R_OK), 0);
}

/* Without a place for a file it is this process's alone. */
static void an_identity_without_a_place(void **state)
{
	struct weir_host_identity first, second;
	char found[64];

	(void)state;
	make_folders();
	assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
	assert_int_equal(unsetenv("HOME"), 0);
	assert_int_equal(weir_host_identity_path(found, sizeof(found)), 0);
	assert_int_equal(weir_host_identity(&first), 0);
	assert_int_equal(weir_host_identity(&second), 0);
	assert_memory_equal(first.nqn, NVME_NQN_UUID_PREFIX, strlen(NVME_NQN_UUID_PREFIX));
	assert_memory_not_equal(first.id, second.id, sizeof(first.id));
}

/* ---- text ---- */

static void a_uuid_as_text(void **state)
{
	static const char *const right[] = { "00112233-4455-6677-8899-aabbccddeeff",
					     "00112233445566778899AABBCCDDEEFF",
					     "00-11-2233445566778899-AAbbccddeeff" };
	static const char *const wrong[] = { "",
					     "00112233-4455-6677-8899-aabbccddeef",
					     "00112233-4455-6677-8899-aabbccddeeff0",
					     "0-0112233-4455-6677-8899-aabbccddeeff",
					     "00112233-4455-6677-8899-aabbccddeefg",
					     " 00112233445566778899aabbccddeeff" };
	char text[WEIR_HOST_ID_TEXT];
	u8 id[16];

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		memset(id, 0xa5, sizeof(id));
		assert_int_equal(weir_host_id_parse(right[i], id), 0);
		assert_memory_equal(id, others_id, sizeof(id));
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(weir_host_id_parse(wrong[i], id), -EINVAL);
	assert_string_equal(weir_host_id_text(others_id, text), right[0]);
}

/* The last of a URI's hosts; the port that is not written is that of what is asked for. */
static void addresses_and_their_ports(void **state)
{
	static const struct {
		const char *body;
		unsigned count;
		const char *text, *nqn;
	} right[] = {
		{ "tcp://h/nqn.a", 1, "h:4420", "nqn.a" },
		{ "tcp://h", 1, "h:8009", "" },
		{ "tcp://h/", 1, "h:8009", "" },
		{ "tcp://h:1/nqn.a/b,c", 1, "h:1", "nqn.a/b,c" },
		{ "tcp://[::1]/nqn.a", 1, "[::1]:4420", "nqn.a" },
		{ "tcp://h:7,[fe80::1]:65535/nqn.a", 2, "[fe80::1]:65535", "nqn.a" },
		{ "rdma://h:7,h,h,h,h,h,h,h/nqn.a", WEIR_ADDRESS_MOST, "h:4420", "nqn.a" },
	};
	struct weir_address_list list;
	char nqn[NVME_NQN_BYTES], text[WEIR_ADDRESS_BYTES + 16];

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		const struct weir_address *last = &list.address[right[i].count - 1];

		memset(&list, 0, sizeof(list));
		assert_int_equal(weir_address_parse("uri", right[i].body, &list, nqn, sizeof(nqn)), 0);
		assert_int_equal(list.count, right[i].count);
		assert_string_equal(weir_address_text(last, text), right[i].text);
		assert_string_equal(nqn, right[i].nqn);
		assert_int_equal(last->rdma, *right[i].body == 'r');
	}
}

/* Text of a target is padded, not always ended, and nothing to a terminal. */
static void text_of_a_target(void **state)
{
	char to[9];

	(void)state;
	assert_string_equal(weir_fabrics_text("ab c    ", 8, to), "ab c");
	assert_string_equal(weir_fabrics_text("ab\0cdefg", 8, to), "ab");
	assert_string_equal(weir_fabrics_text("12345678", 8, to), "12345678");
	assert_string_equal(weir_fabrics_text("12345678", 4, to), "1234");
	assert_string_equal(weir_fabrics_text("        ", 8, to), "");
	assert_string_equal(weir_fabrics_text("\033[1m\t\x7f\xc3~", 8, to), "?[1m???~");
}

int main(void)
{
#define AT_HOME(name) cmocka_unit_test_setup_teardown(name, begin_home, end_home)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_namespace_has_its_groups_state),
		cmocka_unit_test(a_log_ends_with_its_page),
		cmocka_unit_test(a_log_that_is_not_there),
		cmocka_unit_test(pauses_grow_and_do_not_grow_on),
		AT_HOME(an_identity_is_made_once),
		AT_HOME(the_first_identity_counts),
		AT_HOME(a_file_that_names_nobody),
		AT_HOME(a_long_name_is_whole),
		AT_HOME(where_the_file_is),
		AT_HOME(an_identity_without_a_place),
		cmocka_unit_test(a_uuid_as_text),
		cmocka_unit_test(addresses_and_their_ports),
		cmocka_unit_test(text_of_a_target),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("fabrics_host", tests, NULL, NULL);
}
