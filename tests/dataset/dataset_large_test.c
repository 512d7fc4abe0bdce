/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dataset_large_test.c: datasets whose places and lengths have more than 32 bits, without storages, memory or
 * time for that many bytes: a small one is mounted, and is then said to be larger. Storages of different
 * kinds beside each other.
 */
#include "dataset_records.h"

#include "mounted.h"

enum { CHUNK = 64 << 10, ROWS = 16, ROOM = 4096, MANY = 6400 };

#define GIB ((uint64_t)1 << 30)

/** struct planned - a batch that is planned and not read: its memory is nowhere */
struct planned {
	struct weir_dataset_loading batch;
	struct weir_dataset_request requests[ROOM];
	struct weir_dataset_piece pieces[ROWS];
	uint32_t lengths[ROWS], labels[ROWS], slots[ROWS], dirty[ROWS];
	uint64_t samples[ROWS];
};

static struct planned planned;

static void plan(struct weir_dataset *dataset, uint32_t rows)
{
	memset(&planned, 0, sizeof(planned));
	planned.batch = (struct weir_dataset_loading){ .rows = (uint64_t)1 << 40,
						       .staging = (uint64_t)2 << 40,
						       .events = (uint64_t)3 << 40,
						       .requests = planned.requests,
						       .pieces = planned.pieces,
						       .lengths = planned.lengths,
						       .labels = planned.labels,
						       .slots = planned.slots,
						       .dirty = planned.dirty,
						       .samples = planned.samples };
	must(weir_dataset_plan(dataset, &planned.batch, rows));
}

static struct weir_dataset *mount(uint64_t cache_bytes)
{
	static const char *const manifests[] = { manifest_path };
	struct weir_dataset *dataset;

	must(weir_dataset_mount(context, &storage, 1,
				WEIR_OPTIONS(dataset_mount, .manifests = manifests, .chunk_bytes = CHUNK,
					     .cache_bytes = cache_bytes),
				&dataset));
	return dataset;
}

/* What was planned was never read. */
static void unmount(struct weir_dataset *dataset)
{
	for (uint32_t i = 0; i < dataset->cache.empty; i++) {
		dataset->cache.slots[i].pins = 0;
		weir_dataset_cache_ready(dataset, i, false);
	}
	must(weir_dataset_unmount(dataset));
	must(weir_storage_close(storage));
}

/* Rows of a GiB each, and as long a place for each in the staging. */
static void test_rows_beyond_4_gib(void **state)
{
	struct weir_dataset *dataset;
	uint64_t stride, block;
	unsigned direct = 0;

	(void)state;
	fresh();
	dataset = mount(0);
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .order = WEIR_DATASET_FULL)));
	dataset->by_chunk = false;
	dataset->request_room = ROOM;
	dataset->info.row_bytes = (uint32_t)GIB;
	block = (uint64_t)1 << dataset->storages[0].block_log2;
	stride = weir_dataset_staging_stride(dataset);
	assert_in_range(stride, GIB + block, GIB + 2 * block);
	for (uint32_t at = 0; at < RECORDS; at += ROWS) {
		plan(dataset, ROWS);
		assert_int_equal(planned.batch.request_count, ROWS);
		for (uint32_t i = 0; i < ROWS; i++) {
			uint64_t offset = planned.samples[i] * RECORD, row = planned.batch.rows + i * GIB,
				 place = planned.batch.staging + i * stride;

			direct += offset % block == 0;
			assert_int_equal(planned.pieces[i].to, row);
			assert_int_equal(planned.pieces[i].from, offset % block ? place + offset % block : 0);
			assert_int_equal(planned.requests[i].buffer, offset % block ? place : row);
		}
	}
	assert_true(direct > 0);
	unmount(dataset);
}

/* Memory that no process has is refused, whatever the lowest 32 bits of its length are. */
static void test_memory_that_no_process_has(void **state)
{
	enum { LONG = 1 << 16 }; /* rows of 2 GiB, or chunks */
	struct weir_dataset *dataset, copy;

	(void)state;
	fresh();
	dataset = mount(0);
	dataset->info.row_bytes = (uint32_t)(2 * GIB);
	dataset->storages[0].max_blocks = UINT32_MAX;
	refused(weir_dataset_batches_open(dataset, LONG), -ENOMEM, "cannot allocate", "");
	dataset->batch_rows = LONG;
	refused(weir_dataset_staging_open(dataset, &dataset->batches[0]), -ENOMEM, "cannot allocate", "");
	dataset->batch_rows = 0;
	copy = *dataset;
	memset(&copy.cache, 0, sizeof(copy.cache));
	copy.options.chunk_bytes = (uint32_t)(2 * GIB);
	copy.options.cache_bytes = LONG * 2 * GIB;
	copy.directory.chunks = LONG;
	refused(weir_dataset_cache_open(&copy), -ENOMEM, "cannot allocate", "");
	free(copy.cache.slots);
	free(copy.cache.slot_of);
	unmount(dataset);
}

/* Slots of a cache of 8 GiB, and their events; what lies beside these is no slot's. */
static void test_slots_beyond_4_gib(void **state)
{
	enum { COUNT = 1 << 21, LAST = COUNT - 1, EACH = 1 << 10 };
	const uint64_t event = sizeof(struct weir_event);
	unsigned char part[RECORD], *memory = malloc(CHUNK);
	struct weir_dataset *dataset, copy;
	uint64_t number = 3, begin, end;
	uint32_t of;

	(void)state;
	fresh();
	dataset = mount(0);
	copy = *dataset;
	copy.cache.memory = copy.cache.events = (uint64_t)1 << 40;
	copy.cache.count = COUNT;
	copy.cache.events_per_slot = EACH;
	assert_int_equal(weir_dataset_cache_address(&copy, LAST),
			 ((uint64_t)1 << 40) + (uint64_t)LAST * CHUNK);
	assert_int_equal(weir_dataset_cache_events(&copy, LAST),
			 ((uint64_t)1 << 40) + (uint64_t)LAST * EACH * event);
	assert_int_equal(weir_dataset_cache_slot_of(&copy, weir_dataset_cache_events(&copy, LAST)), LAST);
	assert_int_equal(weir_dataset_cache_slot_of(&copy, weir_dataset_cache_events(&copy, COUNT) - event),
			 LAST);
	assert_int_equal(weir_dataset_cache_slot_of(&copy, weir_dataset_cache_events(&copy, COUNT)),
			 UINT32_MAX);
	assert_int_equal(weir_dataset_cache_slot_of(&copy, copy.cache.events - event), UINT32_MAX);
	/* the last slot has the first chunk */
	weir_dataset_chunk_range(dataset, 0, &of, &begin, &end);
	for (uint64_t i = 0; i < RECORD; i++)
		memory[number * RECORD - begin + i] = (unsigned char)(i % 251);
	copy.cache.host = (void *)((uintptr_t)memory - (uintptr_t)LAST * CHUNK);
	copy.cache.slot_of[0] = LAST + 1;
	copy.directory.entries[number].where |= 1;
	assert_int_equal(weir_dataset_read(&copy, number, 5, part, RECORD), RECORD - 5);
	assert_memory_equal(part, memory + number * RECORD - begin + 5, RECORD - 5);
	copy.directory.entries[number].where &= ~(uint64_t)1;
	copy.cache.slot_of[0] = 0;
	free(memory);
	unmount(dataset);
}

/* Samples behind 2^32 blocks of a storage, which are read one by one, or as chunks; the sentence of one that
 * cannot be read says which byte. */
static void test_blocks_beyond_32_bits(void **state)
{
	const uint64_t far = (uint64_t)1 << 35; /* units of 512 bytes: 16 TiB */
	struct weir_dataset *dataset;
	char says[100];

	(void)state;
	fresh();
	dataset = mount(0);
	for (uint32_t i = 0; i < RECORDS; i++)
		dataset->directory.entries[i] = weir_dataset_entry(
			0, weir_dataset_entry_key(dataset->directory.entries[i]), far + i, RECORD);
	dataset->directory.parts[0].shift = WEIR_DATASET_UNIT_LOG2;
	for (unsigned by_chunk = 0; by_chunk < 2; by_chunk++) {
		must(weir_dataset_sequence(dataset, NULL));
		dataset->by_chunk = by_chunk;
		dataset->request_room = ROOM;
		plan(dataset, ROWS);
		assert_true(planned.batch.request_count > 0);
		for (uint32_t i = 0; i < planned.batch.request_count; i++) {
			uint64_t chunk = weir_dataset_directory_chunk(&dataset->directory,
								      planned.samples[i]),
				 number = by_chunk ? dataset->directory.chunk_first[chunk]
						   : planned.samples[i];

			if (!by_chunk || i == 0)
				assert_int_equal(planned.requests[i].lba,
						 ((far + number) << WEIR_DATASET_UNIT_LOG2) >>
							 dataset->storages[0].block_log2);
			assert_true(planned.requests[i].lba >> 32 != 0);
		}
	}
	snprintf(says, sizeof(says), "of 1000 bytes at byte %llu of storage 0",
		 (unsigned long long)((far + 7) << WEIR_DATASET_UNIT_LOG2));
	refused(weir_dataset_sample_failed(dataset, 7, 0x281), -EIO, "sample 7, 'record-7'", says);
	unmount(dataset);
}

/* A batch that begins in the middle of a group of chunks reads ahead no more than there is room to note. */
static void test_room_for_requests(void **state)
{
	enum { FEW = 4 };
	struct weir_dataset *dataset;

	(void)state;
	rig_records(path, MANY, RECORD);
	open_records("");
	must(weir_dataset_index(storage, manifest_path, WEIR_OPTIONS(dataset_index, .format = "fixed:1000")));
	dataset = mount(100 * CHUNK);
	must(weir_dataset_sequence(dataset, WEIR_OPTIONS(dataset_sequence, .buffer_chunks = 32)));
	dataset->request_room = FEW;
	dataset->planned = dataset->epoch.group_first[1] - 200;
	plan(dataset, 1);
	assert_in_range(planned.batch.request_count, 2, FEW);
	unmount(dataset);
}

/* Two storages beside each other: with short commands, large blocks and many queues, and with none of these;
 * in either order. */
static void test_storages_of_two_kinds(void **state)
{
	enum { ROW = 128 << 10, SHORT = 8 << 10, LARGE = 4096 };
	const uint64_t stride = ROW + 2 * LARGE, each = (stride + SHORT - 1) / SHORT;
	struct weir_storage *kinds[2], *both[2];
	const char *manifests[] = { manifest_path, manifest_path };
	struct weir_dataset_batch batch = { .size = sizeof(batch) };
	struct weir_dataset *dataset;
	char uri[100];

	(void)state;
	fresh();
	must(weir_storage_close(storage));
	snprintf(uri, sizeof(uri), "file:%s?block=4096&mdts=8K", path);
	must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .queues = 3), &kinds[0]));
	snprintf(uri, sizeof(uri), "file:%s?block=512&ro=1", path);
	must(weir_storage_open(context, uri, WEIR_OPTIONS(storage, .queues = 1), &kinds[1]));
	for (unsigned swap = 0; swap < 2; swap++) {
		uint8_t seen[2 * RECORDS] = { 0 };

		both[0] = kinds[swap];
		both[1] = kinds[1 - swap];
		must(weir_dataset_mount(context, both, 2,
					WEIR_OPTIONS(dataset_mount, .manifests = manifests,
						     .chunk_bytes = CHUNK, .cache_bytes = 4 * CHUNK,
						     .row_bytes = ROW),
					&dataset));
		assert_int_equal(dataset->most_queues, 3);
		assert_int_equal(dataset->cache.events_per_slot, CHUNK / SHORT);
		assert_int_equal(weir_dataset_staging_stride(dataset), stride);
		must(weir_dataset_sequence(dataset,
					   WEIR_OPTIONS(dataset_sequence, .order = WEIR_DATASET_FULL)));
		assert_int_equal(rig_read_epoch(dataset, ROWS, seen, 1, UINT64_MAX), 2 * RECORDS);
		rig_all_once(seen, 2 * RECORDS);
		assert_int_equal(dataset->request_room, ROWS * each + 256 * (CHUNK / SHORT));
		must(weir_dataset_unmount(dataset));
	}
	must(weir_storage_close(kinds[0]));
	must(weir_storage_close(kinds[1]));
}

/* Whatever the directory has is counted; of names with the same key, and the same half of a hash, each is
 * itself. */
static void test_directory_of_few(void **state)
{
	struct weir_dataset_hash hash = weir_dataset_hash("name");
	const uint64_t key = hash.low & WEIR_DATASET_KEY_MASK;
	struct weir_dataset_collision collisions[] = {
		{ key, hash.low, hash.high ^ 1, 7 },
		{ key, hash.low, hash.high, 3 },
		{ key, hash.low ^ (uint64_t)1 << 60, hash.high, 8 },
		{ key, hash.low, ~hash.high, 9 },
	};
	struct weir_dataset_directory directory = { .lookup = &weir_dataset_lookup_buckets,
						    .collisions = collisions,
						    .collision_count = 4 };
	struct weir_dataset_part parts[3] = { { .count = 0 } };
	uint32_t label;

	(void)state;
	assert_int_equal(weir_dataset_directory_find(&directory, "name"), 3);
	directory.count = 10;
	directory.parts = parts;
	directory.part_count = 3;
	directory.chunks = 4;
	assert_int_equal(weir_dataset_directory_bytes(&directory),
			 10 * 16 + 3 * sizeof(parts[0]) + 5 * 4 + 4 * sizeof(collisions[0]));
	directory.labels = &label;
	assert_int_equal(weir_dataset_directory_bytes(&directory),
			 10 * (16 + 4) + 3 * sizeof(parts[0]) + 5 * 4 + 4 * sizeof(collisions[0]));
}

/* A file is found by all of its name's hash. */
static void test_files_by_a_whole_hash(void **state)
{
	struct weir_dataset *dataset;
	uint64_t bytes = 0;
	uint32_t file = 7;

	(void)state;
	fresh();
	dataset = mount(0);
	assert_int_equal(dataset->file_count, 1);
	must(weir_dataset_find_file(dataset, "records", &file, &bytes));
	assert_true(file == 0 && bytes == RECORDS * RECORD);
	dataset->files[0].hash_high ^= 1;
	assert_int_equal(weir_dataset_find_file(dataset, "records", &file, &bytes), -ENOENT);
	dataset->files[0].hash_high ^= 1;
	dataset->files[0].hash_low ^= (uint64_t)1 << 63;
	assert_int_equal(weir_dataset_find_file(dataset, "records", &file, &bytes), -ENOENT);
	unmount(dataset);
}

/* The header of a tar member; sizes up to 8 GiB have eleven digits. */
static void put_tar_header(int file, off_t at, const char *name, char type, uint64_t bytes)
{
	char header[512] = { 0 };
	unsigned sum = 0;

	snprintf(header, 100, "%s", name);
	snprintf(header + 124, 12, "%011llo", (unsigned long long)bytes);
	memset(header + 148, ' ', 8);
	header[156] = type;
	memcpy(header + 257, "ustar\00000", 8);
	for (unsigned i = 0; i < sizeof(header); i++)
		sum += (unsigned char)header[i];
	snprintf(header + 148, 8, "%06o", sum);
	assert_int_equal(pwrite(file, header, sizeof(header), at), sizeof(header));
}

/* Of an archive of 5 GiB, which another member has, the last one is where it is. */
static void test_archive_beyond_4_gib(void **state)
{
	const uint64_t between = 5 * GIB, begin = 512 + between + 512;
	struct weir_dataset_sample sample = { .size = sizeof(sample) };
	unsigned char there[RECORD], got[RECORD + 1];
	struct weir_dataset *dataset;
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	(void)state;
	rig_fill(there, 9, RECORD);
	put_tar_header(file, 0, "of all", 'g', between);
	put_tar_header(file, (off_t)(512 + between), "far", '0', RECORD);
	assert_int_equal(pwrite(file, there, RECORD, (off_t)begin), RECORD);
	assert_int_equal(ftruncate(file, (off_t)begin + 4 * 512), 0);
	close(file);
	open_records("");
	must(weir_dataset_index(storage, manifest_path, NULL));
	dataset = mount(0);
	assert_int_equal(dataset->info.samples, 1);
	must(weir_dataset_sample(dataset, 0, &sample));
	assert_int_equal(sample.offset, begin);
	assert_int_equal(weir_dataset_read(dataset, 0, 0, got, sizeof(got)), RECORD);
	assert_memory_equal(got, there, RECORD);
	unmount(dataset);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_beyond_4_gib),
		cmocka_unit_test(test_memory_that_no_process_has),
		cmocka_unit_test(test_slots_beyond_4_gib),
		cmocka_unit_test(test_blocks_beyond_32_bits),
		cmocka_unit_test(test_room_for_requests),
		cmocka_unit_test(test_storages_of_two_kinds),
		cmocka_unit_test(test_directory_of_few),
		cmocka_unit_test(test_files_by_a_whole_hash),
		cmocka_unit_test(test_archive_beyond_4_gib),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("dataset_large", tests, set_up, tear_down);
}
