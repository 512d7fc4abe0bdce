/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_keys_test.c: what the keys of virt: and file: come to in the controller, and what is left when it
 * cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../rig/leaks.h"
#include "backend/error.h"
#include "base/uri.h"
#include "transport/medium/medium.h"
#include "transport/transport.h"
#include "transport/virtual/state.h"

enum { QUEUES = 4, FILE_BYTES = 1 << 20, URI_BYTES = 512 };

static char path[] = "/tmp/weir-keys-XXXXXX";
static struct weir_dma_map *dma;

static int set_up(void **state)
{
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0 && ftruncate(file, FILE_BYTES) == 0);
	close(file);
	return weir_dma_map_create(&dma);
}

static int tear_down(void **state)
{
	(void)state;
	weir_dma_map_destroy(dma);
	unlink(path);
	return 0;
}

/* @text with the file's path for a '@'. */
static int open_uri(const char *text, struct weir_transport_request request, struct weir_transport **out)
{
	const char *at = strchr(text, '@');
	char whole[URI_BYTES];
	struct weir_uri uri;
	int error;

	if (at)
		snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(at - text), text, path, at + 1);
	else
		snprintf(whole, sizeof(whole), "%s", text);
	assert_int_equal(weir_uri_parse(whole, &uri), 0);
	request.uri = &uri;
	request.dma = dma;
	request.queues = QUEUES;
	request.depth = 64;
	error = weir_transport_open(&request, out);
	weir_uri_release(&uri);
	return error;
}

/** struct asked - a URI, and what the controller has to be; @host_rings, @read_only: of the request */
struct asked {
	const char *uri;
	bool host_rings, read_only;
	struct {
		unsigned threads;
		uint32_t transfer, latency_us;
		uint64_t iops;
		unsigned faults;
		bool shadow, woken;
	} is;
	uint64_t bytes, end_bytes;
	uint32_t block_bytes;
	bool is_read_only;
	enum weir_mover mover;
	enum weir_doorbell doorbell;
	const char *path;
};

#define MIB ((uint64_t)1 << 20)
#define TIB ((uint64_t)1 << 40)

static const struct asked rows[] = {
	{ .uri = "virt:1M", .is = { 1, 131072 }, .bytes = MIB, .block_bytes = 512, .path = "ram" },
	{ .uri = "virt:3M?block=4096&threads=3&lat_us=10000000&iops=1000000000&mdts=16M&mover=pull&doorbell="
		 "host",
	  .is = { 3, 16 << 20, 10000000, 1000000000 },
	  .bytes = 3 * MIB,
	  .block_bytes = 4096,
	  .mover = WEIR_MOVER_PULL,
	  .doorbell = WEIR_DOORBELL_HOST,
	  .path = "ram" },
	{ .uri = "virt:300T?content=address&mdts=8K&shadow=on&mover=direct&doorbell=lanes",
	  .is = { 1, 8192, .shadow = true },
	  .bytes = 300 * TIB,
	  .block_bytes = 512,
	  .mover = WEIR_MOVER_DIRECT,
	  .doorbell = WEIR_DOORBELL_LANES,
	  .path = "address" },
	{ .uri = "virt:1M?fault=late:us=5,drop:after=9&lat_us=7",
	  .host_rings = true, /* it has no medium that is worth a sleep */
	  .is = { 1, 131072, 7, .faults = 2 },
	  .bytes = MIB,
	  .block_bytes = 512,
	  .path = "ram" },
	{ .uri = "virt:?load=@",
	  .is = { 1, 131072 },
	  .bytes = FILE_BYTES,
	  .block_bytes = 512,
	  .path = "ram" },
	{ .uri = "file:@?threads=2&iops=77&lat_us=33&mdts=64K&block=512&direct=off&fault=drop:after=3",
	  .host_rings = true,
	  .is = { 2, 65536, 33, 77, 1, .woken = true },
	  .bytes = FILE_BYTES,
	  .block_bytes = 512,
	  .path = "page cache" },
	{ .uri = "file:@?shadow=on&engine=threads&direct=off",
	  .host_rings = true, /* but a shadow wakes nobody */
	  .is = { 1, 131072, .shadow = true },
	  .bytes = FILE_BYTES,
	  .block_bytes = 4096,
	  .path = "pread/pwrite threads" },
	{ .uri = "file:@?ro=1&direct=off",
	  .is = { 1, 131072 },
	  .bytes = FILE_BYTES,
	  .block_bytes = 4096,
	  .is_read_only = true,
	  .path = "page cache" },
	{ .uri = "file:@?direct=off",
	  .read_only = true,
	  .is = { 1, 131072 },
	  .bytes = FILE_BYTES,
	  .block_bytes = 4096,
	  .is_read_only = true,
	  .path = "page cache" },
};

static void check(const struct asked *asked, struct weir_transport *transport)
{
	const struct weir_medium *medium;
	const struct weir_virtual_options *options = &weir_transport_core(transport, &medium)->options;

	assert_int_equal(options->threads, asked->is.threads);
	assert_int_equal(options->max_queue_pairs, QUEUES);
	assert_int_equal(options->max_queue_entries, 4096);
	assert_int_equal(options->max_transfer_bytes, asked->is.transfer);
	assert_int_equal(options->latency_us, asked->is.latency_us);
	assert_true(options->iops == asked->is.iops);
	assert_int_equal(options->fault_count, asked->is.faults);
	assert_int_equal(options->shadow_doorbells, asked->is.shadow);
	assert_int_equal(options->woken, asked->is.woken);
	assert_ptr_equal(options->dma, dma);
	assert_true(medium->bytes == asked->bytes);
	assert_true(transport->end_bytes == asked->bytes);
	assert_int_equal(medium->block_bytes, asked->block_bytes);
	assert_int_equal(medium->read_only, asked->is_read_only);
	assert_int_equal(transport->read_only, asked->is_read_only);
	assert_int_equal(transport->mover, asked->mover);
	assert_int_equal(transport->doorbell, asked->doorbell);
	assert_non_null(strstr(transport->ops->path(transport), asked->path));
}

/* Each key does what it says, and no other. */
static void keys_come_to_the_controller(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct weir_transport *transport;

		if (open_uri(rows[i].uri,
			     (struct weir_transport_request){ .host_rings = rows[i].host_rings,
							      .read_only = rows[i].read_only },
			     &transport))
			fail_msg("%s: %s", rows[i].uri, weir_last_error());
		check(&rows[i], transport);
		transport->ops->close(transport);
	}
}

static unsigned threads_to_be_had; /* so many, less one, before one is not; 0: any number */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
	if (threads_to_be_had && !--threads_to_be_had)
		return EAGAIN;
	return next(thread, attributes, run, argument);
}

/* Threads that do not end in time, and until when they are waited for, by a clock that stands. */
static struct {
	bool stands, late;
	struct timespec until;
} halt;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!halt.stands || clock != CLOCK_REALTIME)
		return (int)syscall(SYS_clock_gettime, clock, now);
	*now = (struct timespec){ .tv_sec = 1000, .tv_nsec = 999000000 };
	return 0;
}

int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
	halt.until = *until;
	return halt.late ? ETIMEDOUT : pthread_join(thread, value);
}

/* A medium that does not end what it was asked has three seconds for it; then that is said. */
static void a_medium_has_three_seconds(void **state)
{
	struct weir_transport *transport;

	(void)state;
	assert_int_equal(open_uri("virt:1M", (struct weir_transport_request){ .depth = 0 }, &transport), 0);
	for (unsigned late = 2; late-- > 0;) {
		halt.late = late;
		halt.stands = true;
		assert_int_equal(transport->ops->halt(transport), late ? -ETIMEDOUT : 0);
		halt.stands = false;
		assert_int_equal(halt.until.tv_sec, 1003);
		assert_int_equal(halt.until.tv_nsec, 999000000);
	}
	assert_non_null(strstr(weir_last_error(), "within 3000 ms"));
	transport->ops->close(transport);
}

/** struct refusal - a URI that cannot be, at whatever step, and why; @threads: as threads_to_be_had */
struct refusal {
	const char *uri;
	int error;
	unsigned threads;
};

static const struct refusal refusals[] = {
	{ "virt:1M?trace=/no/such/folder/file", -ENOENT, 0 },
	{ "virt:8M?threads=3", -EAGAIN, 1 },
	{ "virt:8M?threads=3", -EAGAIN, 3 },
	{ "virt:8M?threads=3&fault=late:us=5", -EAGAIN, 2 },
	{ "virt:8M?content=address", -EAGAIN, 1 },
	{ "virt:512K?load=@", -EFBIG, 0 },
	{ "virt:8M?load=@", -EAGAIN, 1 },
	{ "virt:8M?controller=one&load=@", -EAGAIN, 1 },
	{ "virt:8M?controller=one&load=@&trace=/no/such/folder/file", -ENOENT, 0 },
	{ "virt:8M?controller=one&load=/no/such/file", -ENOENT, 0 },
	{ "file:@?trace=/no/such/folder/file&direct=off", -ENOENT, 0 },
	{ "file:@?threads=2&direct=off", -EAGAIN, 2 },
	{ "file:@?threads=2&direct=off&engine=threads", -EAGAIN, 34 },
};

static void refuse(const struct refusal *refusal)
{
	struct weir_transport *transport = NULL;
	int error;

	threads_to_be_had = refusal->threads;
	error = open_uri(refusal->uri, (struct weir_transport_request){ .depth = 0 }, &transport);
	if (error != refusal->error)
		fail_msg("%s: %d instead of %d: %s", refusal->uri, error, refusal->error, weir_last_error());
	assert_int_equal(threads_to_be_had, 0);
}

static void open_and_close(const struct asked *asked)
{
	struct weir_transport *transport;

	if (open_uri(asked->uri, (struct weir_transport_request){ .depth = 0 }, &transport))
		fail_msg("%s: %s", asked->uri, weir_last_error());
	transport->ops->close(transport);
}

/* What is left each time is left in each of the tries; what the allocator keeps, in some. */
static void leaves_nothing(const struct refusal *refusal, const struct asked *asked)
{
	enum { TRIES = 6, TIMES = 50, LEAST_BYTES = 16 };
	struct test_has before, now;

	for (unsigned i = 0; i < TRIES; i++) {
		before = test_has();
		for (unsigned times = 0; times < TIMES; times++)
			if (refusal)
				refuse(refusal);
			else
				open_and_close(asked);
		now = test_has_settled(before.threads);
		if (now.files <= before.files && now.threads <= before.threads &&
		    (!TEST_COUNTS_MEMORY || (now.heap_bytes < before.heap_bytes + TIMES * LEAST_BYTES &&
					     now.map_bytes < before.map_bytes + TIMES * 4096)))
			return;
	}
	fail_msg("%s left behind: %d files, %d threads, %lld bytes of address space, %lld of the heap",
		 refusal ? refusal->uri : asked->uri, (int)(now.files - before.files),
		 (int)(now.threads - before.threads), (long long)(now.map_bytes - before.map_bytes),
		 (long long)(now.heap_bytes - before.heap_bytes));
}

/* A storage that cannot be opened leaves nothing behind: no file, thread, memory. */
static void refusals_leave_nothing_behind(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		leaves_nothing(&refusals[i], NULL);
}

/* Nor does one that was opened and closed. */
static void what_is_closed_leaves_nothing_behind(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		leaves_nothing(NULL, &rows[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_come_to_the_controller),
		cmocka_unit_test(a_medium_has_three_seconds),
		cmocka_unit_test(refusals_leave_nothing_behind),
		cmocka_unit_test(what_is_closed_leaves_nothing_behind),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("virtual_keys", tests, set_up, tear_down);
}
