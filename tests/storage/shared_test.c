/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared_test.c: storages of several contexts on one controller, each with queue pairs of its own. The first
 * context is the device's that is tested, the second one the cpu's; the controller is a virtual one with a
 * name. Deadlines of lanes are ten minutes: that they return shows that their commands were ended.
 */
#include "shared_cases.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/disk.h>

#include "../rig/kernels.h"

void must(int error)
{
	if (error)
		fail_msg("%s", weir_last_error());
}

int open_storage(struct user *user, const char *uri, unsigned queues, bool tested)
{
	struct weir_storage_options options = { .size = sizeof(options),
						.queues = queues,
						.depth = DEPTH,
						.timeout_us = NEVER_US,
						.command_timeout_us = test_brief_us(LIMIT_US) };

	const char *shadow = getenv("WEIR_TEST_SHADOW");
	char text[256];

	if (tested)
		return test_storage_open(user->context, uri, &options, &user->storage);
	snprintf(text, sizeof(text), "%s%s%s", test_storage_given(uri), shadow ? "&shadow=" : "",
		 shadow ? shadow : "");
	return weir_storage_open(user->context, text, &options, &user->storage);
}

/* The first is of the tested device, the second of the one that WEIR_TEST_SECOND names, the others of the
 * cpu. */
static void open_user(struct user *user, unsigned number, const char *uri, unsigned queues)
{
	const char *second = getenv("WEIR_TEST_SECOND");
	bool tested = number == 0 || (number == 1 && second);

	must(weir_context_open(number == 0 ? test_context_name()
			       : tested    ? second
					   : "cpu",
			       WEIR_OPTIONS(context, .workers = 2), &user->context));
	must(open_storage(user, uri, queues, tested));
}

void close_user(struct user *user)
{
	must(weir_storage_close(user->storage));
	weir_context_close(user->context);
}

void open_users(struct user *users, const char *uri)
{
	for (unsigned i = 0; i < USERS; i++)
		open_user(&users[i], i, uri, QUEUES);
}

static uint64_t alloc(struct weir_context *context, size_t bytes)
{
	uint64_t address;

	must(weir_alloc(context, bytes, &address));
	return address;
}

/* How a request of one block ends; by a single lane, so on the first queue pair. The block is @text, to its
 * end. */
uint32_t request(struct user *user, uint32_t opcode, uint64_t lba, char text[BLOCK])
{
	struct test_request_args args = { .opcode = opcode, .blocks = 1, .lba = lba };
	uint32_t statuses[2];

	must(weir_storage_disk(user->storage, &args.disk));
	args.buffer = alloc(user->context, BLOCK);
	args.event = alloc(user->context, sizeof(struct weir_event));
	args.statuses = alloc(user->context, sizeof(statuses));
	must(weir_copy_to_device(user->context, args.buffer, text, BLOCK));
	must(weir_launch(user->context, "test_request", 1, 1, &args, sizeof(args)));
	must(weir_sync(user->context));
	must(weir_copy_from_device(user->context, statuses, args.statuses, sizeof(statuses)));
	must(weir_copy_from_device(user->context, text, args.buffer, BLOCK));
	return statuses[0];
}

uint32_t read_block(struct user *user, uint64_t lba)
{
	char text[BLOCK] = "";

	return request(user, NVME_OPCODE_READ, lba, text);
}

struct weir_stats stats_of(struct user *user)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(user->storage, &stats));
	return stats;
}

uint64_t good_requests(void)
{
	return (uint64_t)BLOCKS * THREADS * OUTSTANDING * ROUNDS;
}

static bool is_pull(struct user *user)
{
	struct weir_storage_info info = { .size = sizeof(info) };

	must(weir_storage_info(user->storage, &info));
	return !strncmp(info.path, "pull", 4);
}

void start_load(struct load *load, struct user *user, unsigned number)
{
	uint64_t requests = (uint64_t)BLOCKS * THREADS * OUTSTANDING;
	struct test_blocks_args args = { .disk_count = 1,
					 .blocks = 1,
					 .first_lba = 1024 * ((uint64_t)number + 1),
					 .span = 4096,
					 .outstanding = OUTSTANDING,
					 .rounds = ROUNDS,
					 .path = is_pull(user) ? WEIR_PATH_PULL : WEIR_PATH_DIRECT };

	load->user = user;
	must(weir_storage_disk(user->storage, &args.disk[0]));
	args.buffers = alloc(user->context, requests * args.span);
	args.events = alloc(user->context, requests * sizeof(struct weir_event));
	args.verdict = load->verdict_at = alloc(user->context, sizeof(struct test_verdict));
	must(weir_launch(user->context, "test_blocks", BLOCKS, THREADS, &args, sizeof(args)));
}

void end_load(struct load *load)
{
	struct test_verdict verdict;

	must(weir_sync(load->user->context));
	must(weir_copy_from_device(load->user->context, &verdict, load->verdict_at, sizeof(verdict)));
	load->good = weir_load_u64_relaxed_sys(&verdict.good);
	load->bad = weir_load_u64_relaxed_sys(&verdict.bad);
}

void check_usable(struct user *user, unsigned number)
{
	uint64_t failed = stats_of(user).failed;
	struct load load;

	start_load(&load, user, number);
	end_load(&load);
	assert_int_equal(load.bad, 0);
	assert_int_equal(load.good, good_requests());
	assert_int_equal(stats_of(user).failed, failed);
	assert_int_equal(stats_of(user).rogue, 0);
}

/* What one wrote the other reads, and both work at a time. */
void check_both(struct user *users)
{
	struct load loads[USERS];
	char text[BLOCK] = "written by the first", found[BLOCK] = "";

	assert_int_equal(request(&users[0], NVME_OPCODE_WRITE, 4000, text), WEIR_OK);
	assert_int_equal(request(&users[1], NVME_OPCODE_READ, 4000, found), WEIR_OK);
	assert_string_equal(found, "written by the first");
	for (unsigned i = 0; i < USERS; i++)
		start_load(&loads[i], &users[i], i);
	for (unsigned i = 0; i < USERS; i++) {
		end_load(&loads[i]);
		assert_int_equal(loads[i].bad, 0);
		assert_int_equal(loads[i].good, good_requests());
		assert_int_equal(stats_of(&users[i]).rogue, 0);
	}
}

/* A third beside them, which is the cpu's where the two others are devices. */
static void test_three_contexts(void **state)
{
	struct user users[USERS + 1];
	struct load loads[USERS + 1];

	(void)state;
	for (unsigned i = 0; i <= USERS; i++)
		open_user(&users[i], i, MADE "three", 2);
	check_both(users);
	for (unsigned i = 0; i <= USERS; i++)
		start_load(&loads[i], &users[i], i);
	for (unsigned i = 0; i <= USERS; i++) {
		end_load(&loads[i]);
		assert_int_equal(loads[i].bad, 0);
		assert_int_equal(loads[i].good, good_requests());
	}
	close_user(&users[1]);
	check_usable(&users[0], 0);
	close_user(&users[0]);
	check_usable(&users[2], 2);
	close_user(&users[2]);
}

static void test_two_contexts(void **state)
{
	struct user users[USERS];

	(void)state;
	open_users(users, MADE "two");
	check_both(users);
	close_user(&users[1]);
	close_user(&users[0]);
}

/* Whoever is closed, the other one goes on, and the numbers of its queue pairs are free for a third. */
static void test_closed_in_any_order(void **state)
{
	(void)state;
	for (unsigned first = 0; first < USERS; first++) {
		struct user users[USERS], third;

		open_users(users, MADE "order");
		check_both(users);
		close_user(&users[first]);
		check_usable(&users[!first], !first);
		open_user(&third, 1, MADE "order", QUEUES);
		check_usable(&third, 2);
		close_user(&users[!first]);
		check_usable(&third, 2);
		close_user(&third);
	}
}

void must_say(int error, int expected, const char *sentence)
{
	assert_int_equal(error, expected);
	if (!strstr(weir_last_error(), sentence))
		fail_msg("\"%s\" is not in \"%s\"", sentence, weir_last_error());
}

/* What is left is had; then a sentence says so; what is closed can be had again. */
static void test_queue_pairs_used_up(void **state)
{
	struct weir_storage_info info = { .size = sizeof(info) };
	struct user users[USERS], third = { .storage = NULL };

	(void)state;
	open_user(&users[0], 0, MADE "few", PAIRS - 2);
	open_user(&users[1], 1, MADE "few", PAIRS);
	must(weir_storage_info(users[1].storage, &info));
	assert_int_equal(info.queues, 2);
	check_both(users);
	third.context = users[1].context;
	must_say(open_storage(&third, MADE "few", 1, false), -EBUSY,
		 "has 8 I/O queue pairs, and other storages of this process have "
		 "them all; close one of those, or open "
		 "them with fewer (queues=N)");
	must(weir_storage_close(users[0].storage));
	must(open_storage(&third, MADE "few", PAIRS, false));
	must(weir_storage_info(third.storage, &info));
	assert_int_equal(info.queues, PAIRS - 2);
	check_usable(&third, 2);
	check_usable(&users[1], 1);
	must(weir_storage_close(third.storage));
	close_user(&users[1]);
	weir_context_close(users[0].context);
}

/* Two of one context: its memory is the controller's for both, until the second one is closed. */
static void test_two_in_a_context(void **state)
{
	struct user first, second;

	(void)state;
	open_user(&first, 1, MADE "context", QUEUES);
	second.context = first.context;
	must(open_storage(&second, MADE "context", QUEUES, false));
	check_usable(&first, 0);
	check_usable(&second, 1);
	must(weir_storage_close(first.storage));
	check_usable(&second, 1);
	close_user(&second);
}

static void test_other_keys_are_refused(void **state)
{
	static const char *const others[] = { "virt:2M?block=512&queue_pairs=8&controller=keys",
					      "virt:4M?block=4096&queue_pairs=8&controller=keys",
					      "virt:4M?block=512&queue_pairs=4&controller=keys",
					      MADE "keys&mdts=8K",
					      MADE "keys&lat_us=5",
					      MADE "keys&iops=1000",
					      MADE "keys&content=address",
					      MADE "keys&fault=status:code=0x22:count=1" };
	struct user user, other;

	(void)state;
	if (test_given())
		return;
	open_user(&user, 1, MADE "keys", QUEUES);
	other.context = user.context;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		must_say(open_storage(&other, others[i], 1, false), -EBUSY,
			 "and not like this; write the same");
	must_say(open_storage(&other, MADE "keys&load=/etc/hostname", 1, false), -EBUSY,
		 "write the same size, block, load");
	must_say(open_storage(&other, MADE "keys&zero_copy=on", 1, false), -ENOTSUP, "zero_copy=on, but");
	if (!getenv("WEIR_TEST_SHADOW")) {
		must_say(open_storage(&other, MADE "keys&shadow=on", 1, false), -EBUSY,
			 "and not like this; write the same");
		must_say(open_storage(&other, MADE "keys&on=device", 1, false), -EINVAL,
			 "leave on=device out");
	}
	close_user(&user);
}

/* Names are told apart by all of their characters: what one writes the other does not read. */
static void test_long_names(void **state)
{
	static const char *const uris[] = { MADE "of-the-first-floor-and-the-left-wing",
					    MADE "of-the-first-floor-and-the-left-window" };
	struct user users[2];
	char text[BLOCK];

	(void)state;
	if (test_given())
		return;
	open_user(&users[0], 1, uris[0], QUEUES);
	users[1].context = users[0].context;
	must(open_storage(&users[1], uris[1], QUEUES, false));
	for (unsigned i = 0; i < 2; i++) {
		memset(text, '1' + (int)i, sizeof(text));
		assert_int_equal(request(&users[i], NVME_OPCODE_WRITE, 0, text), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(request(&users[i], NVME_OPCODE_READ, 0, text), 0);
		assert_int_equal(text[0], '1' + (int)i);
	}
	must(weir_storage_close(users[1].storage));
	close_user(&users[0]);
}

/* What was written is made durable by whoever is closed while others stay: its flush, which fails here, is
 * seen to. */
static void test_close_flushes(void **state)
{
	struct user users[USERS];
	char text[BLOCK] = "durable";

	(void)state;
	if (test_given())
		return;
	open_users(users, MADE "flush&fault=status:op=flush:code=2:dnr=1:count=1");
	assert_int_equal(request(&users[0], NVME_OPCODE_WRITE, 1, text), WEIR_OK);
	assert_int_equal(weir_storage_close(users[0].storage), -EIO);
	must(weir_storage_close(users[1].storage));
	weir_context_close(users[0].context);
	weir_context_close(users[1].context);
}

/* Word 0 of a storage, through a cache. */
static uint64_t cached_word(struct user *user, struct test_get_args *args)
{
	struct test_verdict verdict = { .where = 0 };

	must(weir_copy_to_device(user->context, args->verdict, &verdict, sizeof(verdict)));
	must(weir_launch(user->context, "test_get", 1, 1, args, sizeof(*args)));
	must(weir_sync(user->context));
	must(weir_copy_from_device(user->context, &verdict, args->verdict, sizeof(verdict)));
	return weir_load_u64_relaxed_sys(&verdict.sum);
}

/* Caches are not coherent: one keeps what it has until it drops that, as a flush does if it was asked for. */
static void test_invalidate_on_flush(void **state)
{
	(void)state;
	for (uint32_t invalidates = 0; invalidates < 2; invalidates++) {
		uint64_t old[64] = { 0x1111 }, new[64] = { 0x2222 };
		struct test_get_args args = { .index = 0 };
		struct weir_cache *cache;
		struct user users[USERS];

		open_users(users, MADE "caches");
		must(weir_storage_write(users[1].storage, 0, old, sizeof(old)));
		must(weir_cache_create(users[0].context,
				       WEIR_OPTIONS(cache, .lines = 8, .invalidate_on_flush = invalidates),
				       &cache));
		must(weir_array_open(cache, &users[0].storage, 1,
				     WEIR_OPTIONS(array, .element_bytes = 8, .count = 1024), &args.array));
		args.verdict = alloc(users[0].context, sizeof(struct test_verdict));
		assert_int_equal(cached_word(&users[0], &args), 0x1111);
		must(weir_storage_write(users[1].storage, 0, new, sizeof(new)));
		assert_int_equal(cached_word(&users[0], &args), 0x1111);
		must(weir_cache_flush(cache, 0));
		assert_int_equal(cached_word(&users[0], &args), invalidates ? 0x2222 : 0x1111);
		must(weir_array_invalidate(cache, &args.array, 0, 1));
		assert_int_equal(cached_word(&users[0], &args), 0x2222);
		must(weir_cache_destroy(cache));
		close_user(&users[0]);
		close_user(&users[1]);
	}
}

static void *open_and_close(void *argument)
{
	struct user user = { .context = argument };

	for (unsigned i = 0; i < 20; i++) {
		if (open_storage(&user, MADE "threads", 2, false) != 0)
			return "open";
		if (read_block(&user, i) != WEIR_OK)
			return "read";
		if (weir_storage_close(user.storage) != 0)
			return "close";
	}
	return NULL;
}

/* Whoever comes first opens it, whoever goes last closes it, and between these it may be either at any time.
 */
static void test_threads(void **state)
{
	struct weir_context *contexts[3];
	pthread_t threads[3];
	void *wrong;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		must(weir_context_open("cpu", WEIR_OPTIONS(context, .workers = 1), &contexts[i]));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, contexts[i]), 0);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(threads[i], &wrong);
		if (wrong)
			fail_msg("%s", (const char *)wrong);
		weir_context_close(contexts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_contexts),
		cmocka_unit_test(test_three_contexts),
		cmocka_unit_test(test_closed_in_any_order),
		cmocka_unit_test(test_queue_pairs_used_up),
		cmocka_unit_test(test_two_in_a_context),
		cmocka_unit_test(test_other_keys_are_refused),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_many_resets),
		cmocka_unit_test(test_reset_under_load),
		cmocka_unit_test(test_new_queue),
		cmocka_unit_test(test_lost_alone),
		cmocka_unit_test(test_reset_from_outside),
		cmocka_unit_test(test_removal),
		cmocka_unit_test(test_fatal),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_close_flushes),
		cmocka_unit_test(test_invalidate_on_flush),
		cmocka_unit_test(test_threads),
	};

	return test_begins() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
