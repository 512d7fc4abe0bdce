/* SPDX-License-Identifier: BSD-3-Clause */
/* What a batch, and the cache, hold while an epoch ends or goes on elsewhere: the program's batch, chunks
 * that were read ahead, requests. */
#include "dataset_records.h"

#include <math.h>

#include "mounted.h"

enum { CHUNK = 64 << 10, MANY = 6400, COUNT = 100 };

static struct weir_dataset *mount(uint32_t cache_chunks)
{
	static const char *const manifests[] = { manifest_path };
	struct weir_dataset *dataset;

	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = CHUNK,
					     .cache_bytes = (uint64_t)cache_chunks * CHUNK, .row_bytes = 16),
				&dataset));
	return dataset;
}

static void open_many(const char *keys)
{
	rig_records(path, MANY, RECORD);
	open_records(keys);
	must(weir_dataset_index(storage, manifest_path, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
}

/* A batch is the program's until the next one is asked for, in another epoch, too. */
static void test_batch_of_the_last_epoch(void **state)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset_sequence_options sequence = { .size = sizeof(sequence), .buffer_chunks = 8 };
	uint64_t samples[COUNT];
	struct weir_dataset *dataset;

	(void)state;
	open_many("");
	dataset = mount(64);
	must(weir_dataset_sequence(dataset, &sequence));
	must(weir_dataset_bread(dataset, COUNT, &batch)); /* reads of the next chunks have begun */
	memcpy(samples, batch.samples, sizeof(samples));
	sequence.epoch = 1;
	must(weir_dataset_sequence(dataset, &sequence));
	assert_memory_equal(batch.samples, samples, sizeof(samples));
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Of several ranges of positions, as other ranks have left them, each ends in the middle of a group of
 * chunks: none of the next group is read, for no batch would come for it, and the cache keeps its room. */
static void test_ranges_of_an_epoch(void **state)
{
	enum { RANGES = 20 };
	struct weir_dataset_stats stats = { .size = sizeof(stats) };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	char text[1000];
	uint64_t samples = 0;
	struct weir_dataset *dataset;
	char *at;

	(void)state;
	open_many("");
	dataset = mount(16);
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .buffer_chunks = 2)));
	must(weir_dataset_position(dataset, text, sizeof(text)));
	at = strstr(text, "left=") + strlen("left=");
	for (unsigned i = 0; i < RANGES; i++) /* a group has about 130 samples */
		at += sprintf(at, "%s%u-%u", i ? "," : "", i * 300, i * 300 + 60);
	must(weir_dataset_resume(dataset, text));
	do {
		must(weir_dataset_bread(dataset, 20, &batch));
		samples += batch.count;
	} while (batch.count);
	assert_int_equal(samples, RANGES * 60);
	must(weir_dataset_stats(dataset, &stats));
	assert_int_equal(stats.cache_full_samples, 0);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Rows that may take 2^32 commands have no room for them: they are refused, and others are read. */
static void test_too_many_commands(void **state)
{
	enum { ROWS = 1 << 23 }; /* of a chunk each, in 512 commands */
	static const char *const manifests[] = { manifest_path };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset *dataset;

	(void)state;
	open_many("?mdts=8K");
	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = 4 << 20,
					     .row_bytes = 16, .batches = 1),
				&dataset));
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .seed = 1)));
	refused(weir_dataset_bread(dataset, ROWS, &batch), -EINVAL, "8388608 rows", "fewer rows");
	must(weir_dataset_bread(dataset, COUNT, &batch));
	assert_int_equal(batch.count, COUNT);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Some samples are longer than a slot of the cache, which chunks of others are in that were read before they
 * are needed. */
static void test_a_few_long_samples(void **state)
{
	enum { SAMPLES = 2000, LONG_ONES = 20 };
	static uint8_t seen[SAMPLES];
	struct weir_storage *disk;
	struct weir_dataset *dataset;
	char source[64], name[64];

	(void)state;
	snprintf(source, sizeof(source), "%s/source", folder);
	rig_folder(source, SAMPLES, 1, 1, 3000);
	for (unsigned i = 0; i < SAMPLES; i += SAMPLES / LONG_ONES) {
		snprintf(name, sizeof(name), "class00/sample%06u.bin", i);
		rig_file(source, name, 100000);
	}
	must(weir_storage_open(context, "virt:16M", NULL, &disk));
	must(weir_dataset_upload(&disk, 1, source, NULL));
	must(weir_dataset_mount(context, &disk, 1,
				WEIR_OPTIONS(dataset_mount, .cache_bytes = 1 << 20, .chunk_bytes = 64 << 10),
				&dataset));
	must(weir_dataset_sequence(dataset, NULL));
	assert_int_equal(rig_read_epoch(dataset, 50, seen, 1, UINT64_MAX), SAMPLES);
	rig_all_once(seen, SAMPLES);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(disk));
}

/* As <weir/dataset.h> has them, of @order. */
static void measure(const uint64_t *order, double *displacement, double *autocorrelation, double *neighbours)
{
	double mean = (MANY - 1) / 2.0, variance = 0;

	*displacement = *autocorrelation = *neighbours = 0;
	for (uint64_t i = 0; i < MANY; i++) {
		double from = (double)order[i] - mean;

		*displacement += fabs((double)order[i] - (double)i) / MANY / (MANY / 3.0);
		variance += from * from;
		*autocorrelation += i + 1 < MANY ? from * ((double)order[i + 1] - mean) : 0;
		*neighbours += i + 1 < MANY && order[i + 1] == order[i] + 1 ? 1.0 / (MANY - 1) : 0;
	}
	*autocorrelation /= variance;
}

/* Numbers of an order are those of the order that an epoch has, by their definitions. */
static void test_quality_by_its_definition(void **state)
{
	static const enum weir_dataset_order orders[] = { WEIR_DATASET_SHUFFLED_CHUNK, WEIR_DATASET_CHUNK,
							  WEIR_DATASET_FULL };
	struct weir_dataset_quality quality = { .size = sizeof(quality) };
	double displacement, autocorrelation, neighbours, of_one_chunk[3] = { 0 };
	static uint64_t order[MANY];
	struct weir_dataset *dataset;

	(void)state;
	open_many("");
	dataset = mount(64);
	for (unsigned i = 0; i < 3; i++) {
		must(weir_dataset_quality(
			dataset,
			WEIR_OPTIONS(dataset_sequence, .order = orders[i], .seed = 3, .buffer_chunks = 1), 32,
			&quality, order));
		measure(order, &displacement, &autocorrelation, &neighbours);
		assert_true(fabs(quality.displacement - displacement) < 1e-9);
		assert_true(fabs(quality.autocorrelation - autocorrelation) < 1e-9);
		assert_true(fabs(quality.neighbours - neighbours) < 1e-9);
		assert_true(quality.coverage == 0); /* without labels */
		of_one_chunk[i] = neighbours;
	}
	assert_true(of_one_chunk[1] > 0.9 && of_one_chunk[2] < 0.1); /* of a chunk in its order; of any */
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Chunks make room, and their samples come from the storage again: of none is it believed that it is in the
 * cache where another chunk is by now. */
static void test_chunks_that_made_room(void **state)
{
	enum { FEW = 4 };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	unsigned char data[RECORD], there[RECORD];
	struct weir_dataset *dataset;
	uint64_t cached, held;
	char name[32];

	(void)state;
	open_many("");
	dataset = mount(FEW);
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .buffer_chunks = 2)));
	for (unsigned batches = 0; batches < 10; batches++)
		must(weir_dataset_bread(dataset, COUNT, &batch));
	assert_true(dataset->stats.evictions > 0);
	cached = held = 0;
	for (uint64_t i = 0; i < MANY; i++)
		cached += weir_dataset_entry_cached(dataset->directory.entries[i]);
	for (uint32_t i = 0; i < FEW; i++)
		if (dataset->cache.slots[i].state == WEIR_DATASET_SLOT_READY) {
			uint64_t chunk = dataset->cache.slots[i].chunk;

			assert_int_equal(dataset->cache.slot_of[chunk], i + 1);
			held += dataset->directory.chunk_first[chunk + 1] -
				dataset->directory.chunk_first[chunk];
		}
	assert_int_equal(cached, held);
	assert_true(held > 0);
	for (uint64_t i = 0; i < MANY; i += 13) {
		snprintf(name, sizeof(name), "record-%llu", (unsigned long long)i);
		rig_fill(there, rig_seed(name), RECORD);
		assert_int_equal(weir_dataset_read(dataset, i, 0, data, RECORD), RECORD);
		assert_memory_equal(data, there, RECORD);
	}
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* A position that is refused ends the epoch that was under way: nobody goes on with that in its place. */
static void test_refused_position_ends_the_epoch(void **state)
{
	static const char *const wrong[] = { "nonsense", NULL };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset *dataset;
	char text[400];

	(void)state;
	open_many("");
	dataset = mount(64);
	for (unsigned i = 0; i < 2; i++) {
		must(weir_dataset_sequence(dataset, NULL));
		must(weir_dataset_bread(dataset, COUNT, &batch));
		must(weir_dataset_position(dataset, text, sizeof(text)));
		strcpy(strstr(text, "left=") + strlen("left="), "0-6401"); /* more than there are */
		assert_int_equal(weir_dataset_resume(dataset, wrong[i] ? wrong[i] : text), -EINVAL);
		refused(weir_dataset_bread(dataset, COUNT, &batch), -EINVAL, "no epoch has begun", "resume");
		refused(weir_dataset_position(dataset, text, sizeof(text)), -EINVAL, "no epoch has begun",
			"");
	}
	must(weir_dataset_sequence(dataset, NULL));
	must(weir_dataset_bread(dataset, COUNT, &batch));
	assert_int_equal(batch.count, COUNT);
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* A dataset is all of its storages, in their order: a position is of no other one, whichever of them differs.
 */
static void test_position_of_other_storages(void **state)
{
	static const struct {
		unsigned first, second;
		bool same;
	} rows[] = { { 0, 1, true }, { 1, 0, false }, { 0, 0, false }, { 1, 1, false } };
	char lengths[2][64], names[2][64], text[400] = "", uri[200];
	const char *manifests[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) { /* as many records, of other lengths */
		snprintf(names[i], sizeof(names[i]), "%s/of%u", folder, i);
		snprintf(lengths[i], sizeof(lengths[i]), "%s/of%u.weir", folder, i);
		rig_records(names[i], COUNT, 500 + i);
		snprintf(uri, sizeof(uri), "file:%s", names[i]);
		must(weir_storage_open(context, uri, NULL, &storage));
		must(weir_dataset_index(
			storage, lengths[i],
			WEIR_OPTIONS(dataset_index, .format = i ? "fixed:501" : "fixed:500")));
		must(weir_storage_close(storage));
	}
	for (unsigned i = 0; i < 4; i++) {
		const unsigned which[2] = { rows[i].first, rows[i].second };
		struct weir_storage *both[2];
		struct weir_dataset *dataset;

		for (unsigned k = 0; k < 2; k++) {
			snprintf(uri, sizeof(uri), "file:%s?ro=1", names[which[k]]);
			must(weir_storage_open(context, uri, NULL, &both[k]));
			manifests[k] = lengths[which[k]];
		}
		must(weir_dataset_mount(
			context, both, 2,
			WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = CHUNK), &dataset));
		if (i == 0) {
			must(weir_dataset_sequence(
				dataset, WEIR_OPTIONS(dataset_sequence, .order = WEIR_DATASET_FULL)));
			must(weir_dataset_position(dataset, text, sizeof(text)));
		}
		if (rows[i].same)
			must(weir_dataset_resume(dataset, text));
		else
			refused(weir_dataset_resume(dataset, text), -ESTALE, "the position is of dataset",
				"other samples");
		must(weir_dataset_unmount(dataset));
		must(weir_storage_close(both[0]));
		must(weir_storage_close(both[1]));
	}
}

/* Whichever of two storages is closed: no kernel is launched that would read from it. */
static void test_one_of_two_is_closed(void **state)
{
	static const char *const manifests[] = { manifest_path, manifest_path };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_storage *both[2];
	struct weir_dataset *dataset;

	(void)state;
	for (unsigned closed = 0; closed < 2; closed++) {
		open_many("?ro=1");
		both[0] = storage;
		open_records("?ro=1");
		both[1] = storage;
		must(weir_dataset_mount(
			context, both, 2,
			WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = CHUNK), &dataset));
		must(weir_dataset_sequence(dataset, NULL));
		must(weir_storage_close(both[closed]));
		refused(weir_dataset_bread(dataset, COUNT, &batch), -EINVAL, "closed", "storage");
		refused(weir_dataset_bread_enqueue(dataset, COUNT, &batch), -EINVAL, "closed", "storage");
		refused(weir_dataset_sequence(dataset, NULL), -EINVAL, "closed", "storage");
		must(weir_dataset_unmount(dataset));
		must(weir_storage_close(both[1 - closed]));
	}
}

enum { OF_BATCH = 3, PLACES = WEIR_DATASET_MAX_BATCHES * OF_BATCH };

/* Where the memory of batches is. */
static void list_memory(const struct weir_dataset *dataset, uint64_t places[PLACES])
{
	for (uint32_t i = 0; i < dataset->options.batches; i++) {
		assert_true(dataset->batches[i].staging != 0); /* samples begin anywhere in blocks */
		places[i * OF_BATCH] = dataset->batches[i].rows;
		places[i * OF_BATCH + 1] = dataset->batches[i].staging;
		places[i * OF_BATCH + 2] = dataset->batches[i].control;
	}
}

/* None of the @count places @were, but those that are used again, is allocated. */
static void check_given_back(const uint64_t were[PLACES], const uint64_t are[PLACES], unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		bool again = false;

		for (unsigned k = 0; k < count; k++)
			again |= were[i] == are[k];
		if (!again)
			refused(weir_free(context, were[i]), -EINVAL, "cannot free", "not the start");
	}
}

/* Batches of another count of rows have other memory; what they had is given back, and all of it in the end.
 */
static void test_memory_of_other_counts(void **state)
{
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	uint64_t were[PLACES], are[PLACES] = { 0 };
	struct weir_dataset *dataset;
	unsigned count;

	(void)state;
	open_many("");
	dataset = mount(4);
	count = dataset->options.batches * OF_BATCH;
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .order = WEIR_DATASET_FULL)));
	for (unsigned i = 0; i < 6; i++) {
		must(weir_dataset_bread(dataset, i % 2 ? 50 : 100, &batch));
		memcpy(were, are, sizeof(were));
		list_memory(dataset, are);
		if (i)
			check_given_back(were, are, count);
	}
	memcpy(were, are, sizeof(were));
	memset(are, 0, sizeof(are));
	must(weir_dataset_unmount(dataset));
	check_given_back(were, are, count);
	must(weir_storage_close(storage));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batch_of_the_last_epoch),
		cmocka_unit_test(test_ranges_of_an_epoch),
		cmocka_unit_test(test_too_many_commands),
		cmocka_unit_test(test_a_few_long_samples),
		cmocka_unit_test(test_quality_by_its_definition),
		cmocka_unit_test(test_chunks_that_made_room),
		cmocka_unit_test(test_refused_position_ends_the_epoch),
		cmocka_unit_test(test_position_of_other_storages),
		cmocka_unit_test(test_one_of_two_is_closed),
		cmocka_unit_test(test_memory_of_other_counts),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("dataset_held", tests, set_up, tear_down);
}
