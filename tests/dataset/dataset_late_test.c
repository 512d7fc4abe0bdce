/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads of a dataset that end after their deadline or not at all, and batches that are known to have failed
 * only later. */
#include "dataset_records.h"

#include <inttypes.h>

#include <weir/port.h>

#include "mounted.h"

enum { ROWS = 50 };

static bool all_done(uint64_t events, uint32_t count)
{
	const struct weir_event *event = (const void *)(uintptr_t)events;
	bool done = true;

	for (uint32_t i = 0; i < count; i++)
		done &= (weir_load_u64_acquire_dev(&event[i].word) & WEIR_EVENT_DONE) != 0;
	return done;
}

/* No read has memory that another one may get, or the program. */
static void check_idle_memory(const struct weir_dataset *dataset)
{
	for (uint32_t i = 0; i < dataset->cache.empty; i++)
		if (dataset->cache.slots[i].state != WEIR_DATASET_SLOT_LOADING &&
		    !all_done(weir_dataset_cache_events(dataset, i), dataset->cache.slots[i].event_count))
			fail_msg("slot %u may be used, and a read into it has not ended", i);
	for (uint32_t i = 0; i < dataset->options.batches; i++)
		if ((dataset->batches[i].state == WEIR_DATASET_BATCH_FREE ||
		     dataset->batches[i].state == WEIR_DATASET_BATCH_RETURNED) &&
		    !all_done(dataset->batches[i].events, dataset->batches[i].event_count))
			fail_msg("batch %u may be used, and a read into it has not ended", i);
}

/* Lanes wait for a read no longer than @timeout_us from the first batch on: what goes before has more. */
static void open_late(const char *keys, uint32_t order, uint64_t timeout_us, struct weir_dataset **dataset)
{
	static const char *const manifests[] = { manifest_path };
	char uri[300];

	fresh();
	must(weir_storage_close(storage));
	snprintf(uri, sizeof(uri), "file:%s%s", path, keys);
	must(weir_storage_open(context, uri, NULL, &storage));
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 64 << 10,
					     .cache_bytes = 256 << 10),
				dataset));
	((struct weir_disk *)(uintptr_t)(*dataset)->disks)->timeout_ns = timeout_us * 1000;
	must(weir_dataset_sequence(*dataset, WEIR_OPTIONS(dataset_sequence, .order = order)));
}

/* A read that ends long after the deadline of who waits for it: until then its memory is used for nothing
 * else; then the epoch goes on. Return: calls that failed. */
static unsigned late_read(uint32_t order, bool enqueue)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset *dataset;
	uint8_t seen[RECORDS] = { 0 };
	unsigned errors = 0;
	bool over = false;

	open_late("?timeout_ms=0&fault=late:us=2000000:op=read:lba=50-50:count=1", order, 200000, &dataset);
	while (!over) {
		int error = enqueue ? weir_dataset_bread_enqueue(dataset, ROWS, &batch)
				    : weir_dataset_bread(dataset, ROWS, &batch);

		errors += error != 0;
		if (error)
			refused(error, -EIO, "of storage 0", "deadline");
		check_idle_memory(dataset);
		over = !error && !batch.count;
		for (uint32_t i = 0; i < batch.count && !error && !enqueue; i++) {
			seen[batch.samples[i]]++;
			rig_check_row(dataset, &batch, i);
		}
	}
	if (!enqueue)
		rig_all_once(seen, RECORDS);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
	return errors;
}

/* Where the machine stood still the read has ended before anybody waited for it, which shows nothing: again
 * then. */
static void test_late_read(void **state)
{
	static const struct {
		uint32_t order;
		bool enqueue;
	} cases[] = { { WEIR_DATASET_FULL, false },
		      { WEIR_DATASET_SHUFFLED_CHUNK, false },
		      { WEIR_DATASET_FULL, true } };

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned errors = 0;

		for (unsigned tries = 0; tries < 20 && !errors; tries++)
			errors = late_read(cases[i].order, cases[i].enqueue);
		assert_true(errors > 0);
	}
}

/* Memory that a read has which has not ended. */
static uint64_t memory_under_way(const struct weir_dataset *dataset)
{
	for (uint32_t i = 0; i < dataset->options.batches; i++)
		if (dataset->batches[i].state == WEIR_DATASET_BATCH_OVERDUE)
			return dataset->batches[i].control;
	return dataset->cache.memory;
}

/* What reads still have stays when its dataset goes, and is the context's to free. */
static void unmount_early(uint32_t order, int error, const char *says)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset *dataset;
	uint64_t memory;

	open_late("?timeout_ms=0&fault=stuck:op=read:lba=50-50:count=1", order, 5000000, &dataset);
	while (!weir_dataset_bread(dataset, ROWS, &batch))
		assert_int_not_equal(batch.count, 0);
	memory = memory_under_way(dataset);
	refused(weir_dataset_unmount(dataset), error, says, "");
	refused(weir_free(context, memory), -EBUSY, "a read of block", "under way");
	must(weir_storage_close(storage));
	must(weir_free(context, memory));
}

static void test_unmount_early(void **state)
{
	(void)state;
	unmount_early(WEIR_DATASET_FULL, -EIO, "dataset: sample ");
	unmount_early(WEIR_DATASET_SHUFFLED_CHUNK, -ETIMEDOUT, "reads of 1 chunks have not ended");
}

/* A block that has bytes of record @record alone, and that mounting does not read: it reads at 16
 * places. Return: UINT64_MAX: there is none. */
static uint64_t block_of(uint64_t record)
{
	uint64_t block = (record * RECORD + 511) / 512,
		 behind = block * 512 % ((RECORDS * RECORD - 4096) / 15);

	return (block + 1) * 512 <= (record + 1) * RECORD && behind > 10000 && behind < 25000 ? block
											      : UINT64_MAX;
}

/* Enqueue an epoch. @samples: NULL, or receives the order. Return: the number of the call that fails, from 0
 * on; UINT32_MAX: none does. */
static unsigned enqueue_epoch(uint32_t batches, const char *keys, uint64_t *samples)
{
	static const char *const manifests[] = { manifest_path };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset *dataset;
	unsigned calls = 0, failed = UINT32_MAX;

	open_records(keys);
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 64 << 10,
					     .cache_bytes = 256 << 10, .batches = batches),
				&dataset));
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .order = WEIR_DATASET_FULL)));
	do {
		int error = weir_dataset_bread_enqueue(dataset, ROWS, &batch);

		if (error) {
			refused(error, -EIO, "of storage 0", "unrecovered");
			assert_int_equal(failed, UINT32_MAX);
			failed = calls;
		} else if (samples && batch.count) {
			memcpy(samples, batch.samples, batch.count * sizeof(*samples));
			samples += batch.count;
		}
	} while (failed == calls++ || batch.count);
	assert_int_equal(calls, RECORDS / ROWS + 1 + (failed != UINT32_MAX));
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
	return failed;
}

/* Each batch of an epoch fails once; the call that returns that is the one that dataset.h says, and comes
 * before the one that says that the epoch is over. */
static void test_enqueued_failure(void **state)
{
	uint64_t samples[RECORDS];

	(void)state;
	fresh();
	must(weir_storage_close(storage));
	for (uint32_t batches = 1; batches <= 5; batches++) {
		assert_int_equal(enqueue_epoch(batches, "?block=512", samples), UINT32_MAX);
		for (unsigned which = 0; which < RECORDS / ROWS; which++) {
			unsigned after = batches < 3 || which == RECORDS / ROWS - 1 ? 1 : 2, i = which * ROWS;
			char keys[100];

			while (block_of(samples[i]) == UINT64_MAX)
				i++;
			snprintf(keys, sizeof(keys),
				 "?block=512&fault=status:code=0x281:op=read:lba=%" PRIu64 "-%" PRIu64,
				 block_of(samples[i]), block_of(samples[i]));
			assert_int_equal(enqueue_epoch(batches, keys, NULL), which + after);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_read),
		cmocka_unit_test(test_unmount_early),
		cmocka_unit_test(test_enqueued_failure),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("dataset_late", tests, set_up, tear_down);
}
