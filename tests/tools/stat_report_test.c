/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-stat reads of a process's memory, this one's, and its JSON: each number is another one. */
#include "capture.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <weir/abi.h>
#include <weir/nvme.h>
#include <weir/nvme_fabrics.h>

#include "tools/weir-stat/json.h"
#include "tools/weir-stat/snapshot.h"

enum { THREADS = 3, STRIDE_WORDS = 16 };

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void expect_json(json_t *object, const char *expected)
{
	char *text = json_dumps(object, JSON_ENCODE_ANY);

	assert_non_null(text);
	capture_expect_json(text, expected);
	free(text);
	json_decref(object);
}

/* Counters of a target's threads, apart from each other. */
static struct note target_note(uint64_t (*words)[STRIDE_WORDS])
{
	return (struct note){ .pid = getpid(),
			      .target = (uintptr_t)words,
			      .target_threads = THREADS,
			      .target_stride = STRIDE_WORDS * sizeof(uint64_t) };
}

static void test_a_target_has_the_sums_of_its_threads(void **state)
{
	static uint64_t words[THREADS][STRIDE_WORDS];
	struct note note = target_note(words);
	struct snapshot_target target;

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned j = 0; j < STRIDE_WORDS; j++)
			words[i][j] =
				j < SNAPSHOT_TARGET_SUMS ? (uint64_t)(j + 1) << (32 + 8 * i) : UINT64_MAX;
	for (unsigned i = 0; i < THREADS; i++)
		words[i][SNAPSHOT_TARGET_SUMS] = 0;
	assert_int_equal(snapshot_at_target(&note, &target), 0);
	for (unsigned j = 0; j < SNAPSHOT_TARGET_SUMS; j++)
		assert_int_equal(target.sums[j],
				 (uint64_t)(j + 1) << 32 | (uint64_t)(j + 1) << 40 | (uint64_t)(j + 1) << 48);
	assert_int_equal(target.age_ms, 0); /* there is no command */
	note.target = 8;
	assert_true(snapshot_at_target(&note, &target) < 0);
}

/* Of the commands of all threads the one that has been there longest, whichever thread has it. */
static void test_the_oldest_command_of_a_target(void **state)
{
	static uint64_t words[THREADS][STRIDE_WORDS];
	const uint64_t ages[] = { 50, 9000, 700 };
	struct note note = target_note(words);
	struct snapshot_target target;

	(void)state;
	for (unsigned turned = 0; turned < THREADS; turned++) {
		uint64_t before = now_ms(), after;

		for (unsigned i = 0; i < THREADS; i++)
			words[(i + turned) % THREADS][SNAPSHOT_TARGET_SUMS] = before - ages[i];
		assert_int_equal(snapshot_at_target(&note, &target), 0);
		after = now_ms();
		assert_in_range(target.age_ms, 9000, 9000 + (after - before));
		words[(1 + turned) % THREADS][SNAPSHOT_TARGET_SUMS] = 0; /* that one has ended */
		assert_int_equal(snapshot_at_target(&note, &target), 0);
		assert_in_range(target.age_ms, 700, 700 + (now_ms() - before));
	}
	for (unsigned i = 0; i < THREADS; i++) /* of a clock that is ahead */
		words[i][SNAPSHOT_TARGET_SUMS] = now_ms() + 1000000;
	assert_int_equal(snapshot_at_target(&note, &target), 0);
	assert_int_equal(target.age_ms, 0);
}

static void test_a_target_as_json(void **state)
{
	const struct snapshot_target target = { { 1, 2, 3, 4, 1ll << 33, 6, 7, 8 }, 9 };

	(void)state;
	expect_json(json_target(&target),
		    "{\"connections\": 1, \"accepted\": 2, \"refused\": 3, \"wrong_pdus\": 4,"
		    " \"commands\": 8589934592, \"reconnects\": 6, \"bytes_received\": 7,"
		    " \"bytes_sent\": 8, \"oldest_command_ms\": 9}");
}

static void test_a_cache(void **state)
{
	static struct weir_lines lines;
	struct note note = { .pid = getpid(), .shared = true };
	const struct note_cache cache = { (uintptr_t)&lines, 512, 1ull << 33 };
	struct snapshot_cache snapshot;

	(void)state;
	weir_store_u64_relaxed_sys(&lines.misses, 1ull << 34);
	weir_store_u64_relaxed_sys(&lines.evictions, 2);
	weir_store_u64_relaxed_sys(&lines.retracted, 3);
	weir_store_u64_relaxed_sys(&lines.writebacks, 4);
	weir_store_u64_relaxed_sys(&lines.write_errors, 5);
	assert_int_equal(snapshot_at_cache(&note, &cache, &snapshot), 0);
	expect_json(json_cache(&cache, &snapshot),
		    "{\"line_bytes\": 512, \"bytes\": 8589934592, \"misses\": 17179869184, \"evictions\": 2,"
		    " \"retracted\": 3, \"writebacks\": 4, \"write_errors\": 5}");
	note.shared = false; /* in a device's memory */
	assert_int_equal(snapshot_at_cache(&note, &cache, &snapshot), 0);
	expect_json(json_cache(&cache, &snapshot),
		    "{\"line_bytes\": 512, \"bytes\": 8589934592, \"misses\": null, \"evictions\": null,"
		    " \"retracted\": null, \"writebacks\": null, \"write_errors\": null}");
}

/* What is in the process's own memory, of a storage whose queues are on a device. */
static void test_a_storage_on_a_network(void **state)
{
	static uint64_t recovered[4] = { 1, 2, 3, 1ull << 33 }, network[WEIR_NETWORK_COUNTERS], snapped;
	const struct note note = { .pid = getpid() };
	const struct note_storage storage = { .uri = (char *)"nvmf:a",
					      .count = 5,
					      .depth = 8,
					      .recovered = (uintptr_t)recovered,
					      .network = (uintptr_t)network,
					      .snapped = (uintptr_t)&snapped,
					      .block_bytes = 4096,
					      .pull = true,
					      .service = true,
					      .wait_ms = 6,
					      .answer_ms = 7 };
	static const uint64_t states[] = { 0,
					   NVME_ANA_OPTIMIZED,
					   NVME_ANA_NON_OPTIMIZED,
					   NVME_ANA_INACCESSIBLE,
					   NVME_ANA_PERSISTENT_LOSS,
					   NVME_ANA_CHANGE,
					   WEIR_NETWORK_PATH_LOST };
	struct snapshot_storage snapshot;
	json_t *object;

	(void)state;
	for (unsigned i = 0; i < WEIR_NETWORK_SCALARS - 1; i++)
		network[i] = 11 + i;
	network[2] = 1ull << 40;
	network[WEIR_NETWORK_SCALARS - 1] = 7; /* paths */
	for (unsigned i = 0; i < WEIR_NETWORK_PATHS; i++) {
		network[WEIR_NETWORK_SCALARS + i] = i < 7 ? states[i] : 99;
		network[WEIR_NETWORK_SCALARS + WEIR_NETWORK_PATHS + i] = 21 + i;
	}
	assert_int_equal(snapshot_at_storage(&note, &storage, &snapshot), 0);
	expect_json(
		json_storage(&storage, &snapshot),
		"{\"uri\": \"nvmf:a\", \"queue_count\": 5, \"depth\": 8, \"block_bytes\": 4096, \"path\": "
		"\"pull\","
		" \"service\": true, \"timeout_ms\": 6, \"command_timeout_ms\": 7,"
		" \"words\": \"not readable from outside\", \"polled_ms\": null, \"late\": 1, \"aborted\": 2,"
		" \"queues_replaced\": 3, \"resets\": 8589934592, \"network\": {\"connections\": 11,"
		" \"reconnects\": 12, \"bytes_received\": 1099511627776, \"bytes_sent\": 14, \"resent\": 15,"
		" \"digest_errors\": 16, \"moves\": 17, \"path\": 18, \"paths\": [\"not known\", "
		"\"optimized\","
		" \"non-optimized\", \"inaccessible\", \"persistent-loss\", \"change\", \"lost\"],"
		" \"path_commands\": [21, 22, 23, 24, 25, 26, 27]}, \"queues\": []}");
	snapshot_release(&snapshot);
	network[WEIR_NETWORK_SCALARS - 1] = 1000; /* more than there is room for */
	assert_int_equal(snapshot_at_storage(&note, &storage, &snapshot), 0);
	assert_true(snapshot.network_read && snapshot.recovered_read);
	object = json_storage(&storage, &snapshot);
	assert_int_equal(json_array_size(json_object_get(json_object_get(object, "network"), "paths")),
			 WEIR_NETWORK_PATHS);
	json_decref(object);
	snapshot_release(&snapshot);
}

static void test_a_storage_of_which_nothing_can_be_read(void **state)
{
	const struct note note = { .pid = getpid(), .shared = true };
	const struct note_storage storage = {
		.uri = (char *)"\xff", .count = 1, .depth = 8, .recovered = 8, .network = 8
	};
	struct snapshot_storage snapshot;

	(void)state;
	assert_int_equal(snapshot_at_storage(&note, &storage, &snapshot), 0);
	expect_json(
		json_storage(&storage, &snapshot),
		"{\"uri\": \"?\", \"queue_count\": 1, \"depth\": 8, \"block_bytes\": 0, \"path\": \"direct\","
		" \"service\": false, \"timeout_ms\": 0, \"command_timeout_ms\": 0,"
		" \"words\": \"not readable from outside\", \"polled_ms\": null, \"late\": null, "
		"\"aborted\": null,"
		" \"queues_replaced\": null, \"resets\": null, \"network\": null, \"queues\": []}");
	snapshot_release(&snapshot);
}

/* A queue pair with all of its words, its counts, and its oldest command. */
static void test_a_queue_as_json(void **state)
{
	struct snapshot_queue queue = { .id = 1,
					.words = { .tail = 12,
						   .pending = 13,
						   .committed = 14,
						   .reap = 2 * 15 + 1,
						   .rung = 16,
						   .completed = 1ull << 33,
						   .failed = 18,
						   .rogue = 19,
						   .retried = 20,
						   .rings = 21,
						   .shadow = 1 },
					.counted = true,
					.steady = true,
					.moved = SNAPSHOT_MOVED,
					.count = { 22, 23, 24 },
					.reserved = 25,
					.any = true,
					.oldest = { .location = SNAPSHOT_ANSWERED,
						    .ticket = 1ull << 34,
						    .slot = 27,
						    .cid = 28,
						    .aged = true,
						    .age_ns = 29999999,
						    .read = true,
						    .opcode = NVME_OPCODE_WRITE,
						    .lba = 1ull << 35,
						    .blocks = 31 } };
	const struct note_storage storage = { .uri = (char *)"a", .count = 1 };
	const struct snapshot_storage snapshot = { .words = SNAPSHOT_LIVE, .queues = &queue };
	json_t *object = json_storage(&storage, &snapshot);

	(void)state;
	expect_json(
		json_incref(json_array_get(json_object_get(object, "queues"), 0)),
		"{\"id\": 1, \"dead\": null, \"tail\": 12, \"committed\": 14, \"head\": 15, \"rung\": 16,"
		" \"pending\": 13, \"completed\": 8589934592, \"failed\": 18, \"rogue\": 19, \"retried\": 20,"
		" \"rings\": 21, \"combiner\": \"held\", \"reaper\": \"held\", \"in_use\": 69, \"reserved\": "
		"25,"
		" \"unannounced\": 22, \"with_controller\": 23, \"answered\": 24, \"steady\": true, "
		"\"moved\": true,"
		" \"oldest\": {\"ticket\": 17179869184, \"slot\": 27, \"cid\": 28, \"where\": \"answered\","
		" \"opcode\": \"write\", \"lba\": 34359738368, \"blocks\": 31, \"age_ms\": 29}}");
	json_decref(object);
	queue.words.pending = queue.words.reap = queue.words.shadow = 0;
	queue.counted = queue.oldest.aged = queue.oldest.read = false;
	queue.moved = SNAPSHOT_MOVED_UNKNOWN;
	object = json_storage(&storage, &snapshot);
	expect_json(
		json_incref(json_array_get(json_object_get(object, "queues"), 0)),
		"{\"id\": 1, \"dead\": null, \"tail\": 12, \"committed\": 14, \"head\": 0, \"rung\": 16,"
		" \"pending\": 0, \"completed\": 8589934592, \"failed\": 18, \"rogue\": 19, \"retried\": 20,"
		" \"rings\": null, \"combiner\": \"free\", \"reaper\": \"free\", \"in_use\": null,"
		" \"reserved\": null, \"unannounced\": null, \"with_controller\": null, \"answered\": null,"
		" \"steady\": null, \"moved\": null, \"oldest\": {\"ticket\": 17179869184, \"slot\": 27, "
		"\"cid\": 28,"
		" \"where\": \"answered\", \"opcode\": null, \"lba\": null, \"blocks\": null, \"age_ms\": "
		"null}}");
	json_decref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_target_has_the_sums_of_its_threads),
		cmocka_unit_test(test_the_oldest_command_of_a_target),
		cmocka_unit_test(test_a_target_as_json),
		cmocka_unit_test(test_a_cache),
		cmocka_unit_test(test_a_storage_on_a_network),
		cmocka_unit_test(test_a_storage_of_which_nothing_can_be_read),
		cmocka_unit_test(test_a_queue_as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
