/* SPDX-License-Identifier: BSD-3-Clause */
/* medium_opened_test.c: a medium on top of a storage that the runtime opened. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <weir/nvme.h>
#include <weir/weir.h>

#include "target/opened.h"

enum { BYTES = 8192, THREADS = 2 };

static struct weir_medium *medium;
static unsigned ended;

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
		cmocka_unit_test(errors_are_statuses),
		cmocka_unit_test(what_cannot_be_opened_is_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
