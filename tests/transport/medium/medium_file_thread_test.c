/* SPDX-License-Identifier: BSD-3-Clause */
/* medium_file_thread_test.c: controller threads side by side, and moving between host threads. */
#include "medium_file_rig.h"

#include <pthread.h>

enum { SEED = 11 };

enum { READERS = 3, READS = 400 };

struct reader {
	struct weir_medium *medium;
	unsigned thread;
	unsigned bad;
};

static void *reader_main(void *argument)
{
	struct reader *reader = argument;
	unsigned char *memory = rig_memory(8192);

	rig_register(reader->medium, reader->thread, memory, 8192, reader->thread);
	for (unsigned i = 0; i < READS; i++) {
		uint64_t offset = (uint64_t)((i * 37 + reader->thread) % 255) * 4096;
		struct iovec iov = { memory, 4096 };
		struct weir_io io = { .kind = WEIR_IO_READ,
				      .thread = reader->thread,
				      .offset_bytes = offset,
				      .bytes = 4096,
				      .iov = &iov,
				      .iov_count = 1 };

		reader->bad += rig_run(reader->medium, &io) != 0;
		reader->bad += !rig_matches(memory, offset, 4096, SEED);
	}
	munmap(memory, 8192);
	return NULL;
}

static void serves_threads_side_by_side(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);
	struct reader readers[READERS];
	pthread_t threads[READERS];
	struct weir_medium *medium;
	char name[RIG_NAME_BYTES];

	(void)state;
	rig_file(name, "/tmp", 1 << 20, SEED);
	options.threads = READERS;
	assert_int_equal(weir_medium_file_open(name, &options, &medium), 0);
	for (unsigned i = 0; i < READERS; i++) {
		readers[i] = (struct reader){ medium, i, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, reader_main, &readers[i]), 0);
	}
	for (unsigned i = 0; i < READERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(readers[i].bad, 0);
	}
	medium->ops->close(medium);
	unlink(name);
}

enum { RELAY = 8 };

struct relay {
	struct weir_medium *medium;
	unsigned char *memory;
	struct weir_io ios[RELAY];
	struct iovec iov[RELAY];
	bool polled; /* the entries reached the kernel before the thread ended */
};

static void *relay_start(void *argument)
{
	struct relay *relay = argument;

	rig_register(relay->medium, 0, relay->memory, RELAY * 4096, 1);
	for (unsigned i = 0; i < RELAY; i++) {
		relay->iov[i] = (struct iovec){ relay->memory + i * 4096, 4096 };
		relay->ios[i] = (struct weir_io){ .kind = WEIR_IO_READ,
						  .bytes = 4096,
						  .offset_bytes = (i * 29 % 250) * 4096,
						  .iov = &relay->iov[i],
						  .iov_count = 1,
						  .done = rig_done };
		if (!relay->medium->ops->submit(relay->medium, &relay->ios[i]))
			return "refused";
	}
	if (relay->polled)
		relay->medium->ops->poll(relay->medium, 0);
	return NULL;
}

/* Requests begun by one host thread are ended by another that takes its number. */
static void changes_host_threads_in_mid_flight(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_ON);
	struct relay relay = { .memory = rig_memory(RELAY * 4096) };
	char name[RIG_NAME_BYTES];

	(void)state;
	rig_file(name, "/tmp", 1 << 20, SEED);
	if (weir_medium_file_open(name, &options, &relay.medium)) {
		options.direct = WEIR_DIRECT_OFF;
		assert_int_equal(weir_medium_file_open(name, &options, &relay.medium), 0);
	}
	for (int iteration = 0; iteration < 40; iteration++) {
		pthread_t thread;
		void *refused;

		memset(relay.memory, 0, RELAY * 4096);
		relay.polled = iteration % 2;
		assert_int_equal(pthread_create(&thread, NULL, relay_start, &relay), 0);
		pthread_join(thread, &refused);
		assert_null(refused);
		if (iteration % 4 == 3) /* memory changes while the old ring is still at work */
			rig_register(relay.medium, 0, relay.memory, RELAY * 4096, 50 + iteration);
		for (unsigned i = 0; i < RELAY; i++) {
			assert_int_equal(rig_wait(relay.medium, &relay.ios[i]), 0);
			assert_true(
				rig_matches(relay.iov[i].iov_base, relay.ios[i].offset_bytes, 4096, SEED));
		}
	}
	relay.medium->ops->close(relay.medium);
	munmap(relay.memory, RELAY * 4096);
	unlink(name);
}

struct left_behind {
	struct weir_medium *medium;
	struct weir_io ios[4];
	unsigned char *memory;
	struct iovec iov;
};

/* Begins slow requests, which the kernel gives to workers of this thread, and ends. */
static void *begin_and_leave(void *argument)
{
	struct left_behind *left = argument;

	left->iov = (struct iovec){ left->memory, 65536 };
	left->ios[0] = (struct weir_io){ .kind = WEIR_IO_WRITE,
					 .bytes = 65536,
					 .iov = &left->iov,
					 .iov_count = 1,
					 .force_unit_access = true };
	left->ios[1] = (struct weir_io){ .kind = WEIR_IO_FLUSH };
	left->ios[2] = (struct weir_io){ .kind = WEIR_IO_ZERO, .offset_bytes = 131072, .bytes = 65536 };
	left->ios[3] = (struct weir_io){ .kind = WEIR_IO_DISCARD, .offset_bytes = 262144, .bytes = 65536 };
	for (unsigned i = 0; i < 4; i++) {
		left->ios[i].done = rig_done;
		if (!left->medium->ops->submit(left->medium, &left->ios[i]))
			return "refused";
	}
	left->medium->ops->poll(left->medium, 0);
	return NULL;
}

static void a_host_thread_that_ends_loses_nothing(void **state)
{
	struct weir_medium_file_options options = rig_options(WEIR_DIRECT_AUTO);
	struct left_behind left = { .memory = rig_memory(65536) };
	char name[RIG_NAME_BYTES];

	(void)state;
	rig_file(name, "/tmp", 1 << 20, SEED);
	assert_int_equal(weir_medium_file_open(name, &options, &left.medium), 0);
	for (int iteration = 0; iteration < 20; iteration++) {
		pthread_t thread;
		void *refused;

		assert_int_equal(pthread_create(&thread, NULL, begin_and_leave, &left), 0);
		pthread_join(thread, &refused);
		assert_null(refused);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(rig_wait(left.medium, &left.ios[i]), 0);
	}
	left.medium->ops->close(left.medium);
	munmap(left.memory, 65536);
	unlink(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serves_threads_side_by_side),
		cmocka_unit_test(changes_host_threads_in_mid_flight),
		cmocka_unit_test(a_host_thread_that_ends_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
