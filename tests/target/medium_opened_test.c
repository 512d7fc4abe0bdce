/* SPDX-License-Identifier: BSD-3-Clause */
/* medium_opened_test.c: a medium on top of a storage that the runtime opened. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/nvme.h>
#include <weir/weir.h>

#include "../rig/leaks.h"
#include "target/opened.h"
#include "target/target.h"

enum { BYTES = 8192, THREADS = 2 };

static struct weir_medium *medium;
static unsigned ended;
static bool durable; /* whatever is carried out */

static void done(struct weir_io *io)
{
	(void)io;
	ended++;
}

static void open_medium(const char *uri, bool read_only)
{
	assert_int_equal(weir_medium_opened(uri, read_only, THREADS, &medium), 0);
}

static void close_medium(void)
{
	medium->ops->close(medium);
}

/* Its status, once the descriptor has said that it ended. */
static uint16_t carry_out(enum weir_io_kind kind, unsigned thread, uint64_t offset, struct iovec *iov,
			  unsigned count)
{
	struct weir_io io = { .kind = kind,
			      .thread = thread,
			      .offset_bytes = offset,
			      .iov = iov,
			      .iov_count = count,
			      .force_unit_access = durable,
			      .done = done };
	struct pollfd until = { .fd = medium->ops->descriptor(medium, thread), .events = POLLIN };

	for (unsigned i = 0; i < count; i++)
		io.bytes += iov[i].iov_len;
	if (!count)
		io.bytes = 4096;
	ended = 0;
	assert_true(medium->ops->submit(medium, &io));
	while (!ended) {
		assert_int_equal(poll(&until, 1, -1), 1);
		medium->ops->poll(medium, thread);
	}
	assert_int_equal(ended, 1);
	return io.status;
}

static void reads_what_was_written(void **state)
{
	unsigned char from[BYTES], to[BYTES];
	struct iovec out[2] = { { from, 4096 }, { from + 4096, BYTES - 4096 } }, in = { to, BYTES };

	(void)state;
	for (unsigned i = 0; i < BYTES; i++)
		from[i] = (unsigned char)(i * 3 + i / 512);
	open_medium("virt:1M?block=512", false);
	assert_int_equal(medium->bytes, 1 << 20);
	assert_int_equal(medium->block_bytes, 512);
	assert_int_equal(carry_out(WEIR_IO_WRITE, 0, 4096, out, 2), NVME_STATUS_SUCCESS);
	assert_int_equal(carry_out(WEIR_IO_FLUSH, 1, 0, NULL, 0), NVME_STATUS_SUCCESS);
	assert_int_equal(carry_out(WEIR_IO_READ, 1, 4096, &in, 1), NVME_STATUS_SUCCESS);
	assert_memory_equal(from, to, BYTES);
	assert_int_equal(carry_out(WEIR_IO_ZERO, 0, 4096, NULL, 0), NVME_STATUS_SUCCESS);
	assert_int_equal(carry_out(WEIR_IO_READ, 0, 4096, &in, 1), NVME_STATUS_SUCCESS);
	memset(from, 0, 4096);
	assert_memory_equal(from, to, BYTES);
	close_medium();
}

static uint16_t zero(uint64_t offset, uint64_t bytes)
{
	struct iovec none = { NULL, 0 };
	struct weir_io io = { .kind = WEIR_IO_ZERO, .offset_bytes = offset, .bytes = bytes, .done = done };
	struct pollfd until = { .fd = medium->ops->descriptor(medium, 0), .events = POLLIN };

	io.iov = &none;
	ended = 0;
	assert_true(medium->ops->submit(medium, &io));
	while (!ended) {
		assert_int_equal(poll(&until, 1, -1), 1);
		medium->ops->poll(medium, 0);
	}
	return io.status;
}

/* Zeros of more than one piece: all of them, and no others. */
static void long_zeros_are_in_their_place(void **state)
{
	enum { ALL = 8 << 20, FROM = 512 * 3, ZEROS = (3 << 20) + 512 * 5 };
	unsigned char *data = malloc(ALL);
	struct iovec iov = { data, ALL };

	(void)state;
	assert_non_null(data);
	open_medium("virt:8M?block=512", false);
	memset(data, 0x5a, ALL);
	assert_int_equal(carry_out(WEIR_IO_WRITE, 0, 0, &iov, 1), NVME_STATUS_SUCCESS);
	assert_int_equal(zero(FROM, ZEROS), NVME_STATUS_SUCCESS);
	assert_int_equal(carry_out(WEIR_IO_READ, 0, 0, &iov, 1), NVME_STATUS_SUCCESS);
	for (size_t i = 0; i < ALL; i++)
		assert_int_equal(data[i], i >= FROM && i < FROM + ZEROS ? 0 : 0x5a);
	close_medium();
	free(data);
}

/* Bytes beyond 4 GiB are not those at its beginning, whatever is done with them. */
static void bytes_beyond_4_gib_have_their_place(void **state)
{
	const uint64_t bytes = (uint64_t)5 << 30, far = ((uint64_t)4 << 30) + 4096;
	char path[] = "/tmp/weir_medium_opened_XXXXXX", uri[100];
	unsigned char near[4096], data[4096];
	struct iovec iov = { data, sizeof(data) }, in = { near, sizeof(near) };
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, (off_t)bytes), 0);
	close(file);
	snprintf(uri, sizeof(uri), "file:%s?block=512", path);
	open_medium(uri, false);
	assert_true(medium->bytes == bytes && medium->end_bytes == bytes);
	memset(near, 0x11, sizeof(near));
	assert_int_equal(carry_out(WEIR_IO_WRITE, 0, 4096, &in, 1), NVME_STATUS_SUCCESS);
	memset(data, 0x22, sizeof(data));
	assert_int_equal(carry_out(WEIR_IO_WRITE, 0, far, &iov, 1), NVME_STATUS_SUCCESS);
	assert_int_equal(carry_out(WEIR_IO_READ, 0, 4096, &in, 1), NVME_STATUS_SUCCESS);
	assert_int_equal(near[0], 0x11);
	memset(data, 0, sizeof(data));
	assert_int_equal(carry_out(WEIR_IO_READ, 0, far, &iov, 1), NVME_STATUS_SUCCESS);
	assert_int_equal(data[4095], 0x22);
	assert_int_equal(zero(far, 4096), NVME_STATUS_SUCCESS);
	assert_int_equal(carry_out(WEIR_IO_READ, 0, far, &iov, 1), NVME_STATUS_SUCCESS);
	assert_int_equal(data[4095], 0);
	assert_int_equal(carry_out(WEIR_IO_READ, 0, 4096, &in, 1), NVME_STATUS_SUCCESS);
	assert_int_equal(near[4095], 0x11);
	close_medium();
	unlink(path);
}

/* What is not to be written is not, and says so. */
static void what_is_read_only_stays(void **state)
{
	unsigned char bytes[512] = { 1 };
	struct iovec iov = { bytes, sizeof(bytes) };

	(void)state;
	open_medium("virt:1M?block=512", true);
	assert_true(medium->read_only);
	assert_int_equal(carry_out(WEIR_IO_WRITE, 0, 0, &iov, 1), NVME_STATUS_WRITE_FAULT);
	assert_int_equal(zero(0, 512), NVME_STATUS_WRITE_FAULT);
	assert_int_equal(carry_out(WEIR_IO_READ, 0, 0, &iov, 1), NVME_STATUS_SUCCESS);
	assert_int_equal(bytes[0], 0);
	close_medium();
	open_medium("virt:1M?block=512", false);
	assert_false(medium->read_only);
	close_medium();
}

static void errors_are_statuses(void **state)
{
	unsigned char bytes[512] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };

	(void)state;
	open_medium("virt:1M?fault=status:code=0x281:op=read", false);
	assert_int_equal(carry_out(WEIR_IO_READ, 0, 0, &iov, 1), NVME_STATUS_UNRECOVERED_READ);
	assert_int_equal(carry_out(WEIR_IO_WRITE, 0, 0, &iov, 1), NVME_STATUS_SUCCESS);
	close_medium();
}

/* With FUA a write is followed by a flush, whose failure is its own. */
static void durable_writes_are_flushed(void **state)
{
	unsigned char bytes[512] = { 0 };
	struct iovec iov = { bytes, sizeof(bytes) };

	(void)state;
	open_medium("virt:1M?block=512&fault=status:code=0x6:op=flush", false);
	assert_int_equal(carry_out(WEIR_IO_WRITE, 0, 0, &iov, 1), NVME_STATUS_SUCCESS);
	durable = true;
	assert_int_equal(carry_out(WEIR_IO_WRITE, 0, 0, &iov, 1), NVME_STATUS_WRITE_FAULT);
	assert_int_equal(carry_out(WEIR_IO_ZERO, 0, 0, NULL, 0), NVME_STATUS_WRITE_FAULT);
	durable = false;
	close_medium();
}

static void nothing_stays_behind(void **state)
{
	struct test_has before;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		if (i == 2)
			before = test_has();
		open_medium("virt:1M", false);
		close_medium();
	}
	test_keeps(before, 256 << 20); /* arenas of threads come as they like */
}

/* An engine that has no room there: what was opened for it is closed. */
static void an_engine_that_does_not_fit_leaves_nothing(void **state)
{
	struct weir_target_namespace_options space = { .uri = "virt:512K?block=4096" };
	struct weir_target_subsystem_options subsystem = { .nqn = "nqn.2026-11.org.example:small",
							   .namespaces = &space,
							   .namespace_count = 1 };
	const char *const listen = "tcp://127.0.0.1:0";
	struct weir_target_options options = { .size = sizeof(options),
					       .listen = &listen,
					       .listen_count = 1,
					       .subsystems = &subsystem,
					       .subsystem_count = 1,
					       .threads = 1 };
	struct weir_target *inner, *outer = NULL;
	struct test_has before;
	char uri[128];

	(void)state;
	assert_int_equal(weir_target_create(&options, &inner), 0);
	assert_int_equal(weir_target_start(inner), 0);
	snprintf(uri, sizeof(uri), "nvmf:%s/%s?connect_ms=60000", weir_target_address(inner, 0),
		 subsystem.nqn);
	space.uri = uri;
	subsystem.nqn = "nqn.2026-11.org.example:engine";
	subsystem.engine = true;
	for (unsigned i = 0; i < 6; i++) {
		if (i == 2)
			before = test_has();
		assert_int_equal(weir_target_create(&options, &outer), -EINVAL);
		assert_non_null(strstr(weir_last_error(), "give it 1 MiB"));
	}
	test_keeps(before, 256 << 20);
	weir_target_stop(inner, 10000);
	weir_target_destroy(inner);
}

static void what_cannot_be_opened_is_a_sentence(void **state)
{
	(void)state;
	assert_true(weir_medium_opened("nothing:at/all", false, THREADS, &medium) < 0);
	assert_non_null(strstr(weir_last_error(), "nothing:"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_was_written),
		cmocka_unit_test(long_zeros_are_in_their_place),
		cmocka_unit_test(bytes_beyond_4_gib_have_their_place),
		cmocka_unit_test(what_is_read_only_stays),
		cmocka_unit_test(errors_are_statuses),
		cmocka_unit_test(durable_writes_are_flushed),
		cmocka_unit_test(nothing_stays_behind),
		cmocka_unit_test(an_engine_that_does_not_fit_leaves_nothing),
		cmocka_unit_test(what_cannot_be_opened_is_a_sentence),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
