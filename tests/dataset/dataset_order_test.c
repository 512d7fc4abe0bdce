/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders, shares of ranks and the directory, without a storage. */
#include "dataset_rig.h"

#include "directory.h"
#include "manifest.h"
#include "order.h"

enum { SAMPLES = 10007, CHUNK_SAMPLES = 97 };

static uint32_t chunk_first[SAMPLES / CHUNK_SAMPLES + 2];
static struct weir_dataset_part whole = { .count = SAMPLES };
static struct weir_dataset_directory one_storage = { .parts = &whole,
						     .part_count = 1,
						     .chunk_first = chunk_first };

static int set_up(void **state)
{
	(void)state;
	for (uint32_t at = 0; at < SAMPLES; at += CHUNK_SAMPLES + one_storage.chunks % 7)
		chunk_first[one_storage.chunks++] = at;
	chunk_first[one_storage.chunks] = SAMPLES;
	return 0;
}

static void test_permutation(void **state)
{
	static const uint64_t counts[] = { 1, 2, 3, 5, 17, 256, 1000, 65537 };

	(void)state;
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint8_t *seen = calloc(counts[i], 1);
		struct weir_dataset_permute permute;
		uint64_t fixed = 0;

		weir_dataset_permute_open(&permute, counts[i], 1, 2, 3);
		for (uint64_t location = 0; location < counts[i]; location++) {
			uint64_t number = weir_dataset_permute_at(&permute, location);

			assert_true(number < counts[i]);
			seen[number]++;
			fixed += number == location;
			assert_int_equal(weir_dataset_permute_index(&permute, number), location);
		}
		rig_all_once(seen, counts[i]);
		assert_true(counts[i] < 16 || fixed < 12); /* one is the mean, whatever the count */
		free(seen);
	}
}

/* Of each stretch of the order a storage has its share, give or take two chunks at either end. */
static void check_spread(const struct weir_dataset_interleave *order,
			 const struct weir_dataset_directory *directory)
{
	for (uint32_t i = 0; i < directory->part_count; i++) {
		struct weir_dataset_part part = directory->parts[i];
		double most = 0, least = 0, share = (double)part.count / (double)directory->chunks, had = 0;

		for (uint64_t index = 0; index < directory->chunks; index++) {
			uint64_t chunk = weir_dataset_interleave_at(order, index);

			had += chunk - part.first < part.count;
			most = had - share * (double)(index + 1) > most ? had - share * (double)(index + 1)
									: most;
			least = had - share * (double)(index + 1) < least ? had - share * (double)(index + 1)
									  : least;
		}
		assert_true(most - least <=
			    4); /* 13 and more in a uniform order of 16 storages with 70 each */
	}
}

static void interleave(const uint32_t *storages, uint32_t count, uint64_t seed)
{
	struct weir_dataset_part parts[16] = { 0 };
	struct weir_dataset_directory directory = { .parts = parts, .part_count = count };
	struct weir_dataset_interleave order, other;
	uint64_t same = 0;
	uint8_t *seen;

	for (uint32_t i = 0; i < count; directory.chunks += storages[i++])
		parts[i] = (struct weir_dataset_part){ .first = directory.chunks, .count = storages[i] };
	directory.chunk_first = calloc(directory.chunks + 1, sizeof(*directory.chunk_first));
	seen = calloc(directory.chunks + 1, 1);
	for (uint32_t i = 0; i <= directory.chunks; i++) /* a sample each */
		directory.chunk_first[i] = i;
	must(weir_dataset_interleave_open(&order, &directory, seed, 1));
	must(weir_dataset_interleave_open(&other, &directory, seed, 2));
	for (uint64_t index = 0; index < directory.chunks; index++) {
		uint64_t chunk = weir_dataset_interleave_at(&order, index);

		assert_true(chunk < directory.chunks);
		seen[chunk]++;
		same += chunk == weir_dataset_interleave_at(&other, index);
		assert_int_equal(weir_dataset_interleave_index(&order, chunk), index);
	}
	rig_all_once(seen, directory.chunks);
	assert_true(directory.chunks < 100 || same < directory.chunks / 4);
	check_spread(&order, &directory);
	weir_dataset_interleave_close(&order);
	weir_dataset_interleave_close(&other);
	free(directory.chunk_first);
	free(seen);
}

static void test_interleave(void **state)
{
	static const uint32_t storages[][16] = {
		{ 1000 },
		{ 100, 100, 100, 100 },
		{ 100, 0, 101, 7, 1 },
		{ 1, 0, 3000 },
		{ 0, 0, 5 },
		{ 0 },
		{ 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(storages) / sizeof(storages[0]); i++)
		for (uint64_t seed = 1; seed <= 3; seed++)
			interleave(storages[i], 16, seed);
}

static void open_epoch(struct weir_dataset_epoch *epoch, uint64_t seed, uint64_t number, uint32_t order)
{
	must(weir_dataset_epoch_open(epoch,
				     WEIR_OPTIONS(dataset_sequence, .seed = seed, .epoch = number,
						  .order = order, .buffer_chunks = 8),
				     &one_storage));
}

static void test_orders(void **state)
{
	(void)state;
	for (uint32_t order = 0; order <= WEIR_DATASET_FULL; order++) {
		struct weir_dataset_epoch epoch, same, next;
		uint8_t *seen = calloc(SAMPLES, 1);
		uint32_t differ = 0, kept = 0;

		open_epoch(&epoch, 5, 0, order);
		open_epoch(&same, 5, 0, order);
		open_epoch(&next, 5, 1, order);
		for (uint64_t i = 0; i < SAMPLES; i++) {
			uint64_t number = weir_dataset_epoch_at(&epoch, i);

			seen[number]++;
			differ += weir_dataset_epoch_at(&next, i) != number;
			if (i)
				kept += number == weir_dataset_epoch_at(&epoch, i - 1) + 1;
		}
		for (uint64_t i = SAMPLES; i-- > 0;) { /* any position, in any order of asking */
			uint64_t backward = weir_dataset_epoch_at(&same, i);

			if (i % 61 == 0)
				assert_int_equal(weir_dataset_epoch_at(&epoch, i), backward);
		}
		rig_all_once(seen, SAMPLES);
		assert_true(differ > SAMPLES * 9 / 10);
		/* one in eight goes on in its chunk in the paper's order, and hardly any elsewhere */
		assert_true(order == WEIR_DATASET_CHUNK ? kept > SAMPLES / 16 : kept < SAMPLES / 100);
		weir_dataset_epoch_close(&epoch);
		weir_dataset_epoch_close(&same);
		weir_dataset_epoch_close(&next);
		free(seen);
	}
}

/* A position that was kept by an earlier version goes on in the same order: each is what it has always been.
 */
static void test_orders_stay(void **state)
{
	static const uint64_t hashes[] = { UINT64_C(0x63c2405effb67f6c), UINT64_C(0xee572fa45d12ced8),
					   UINT64_C(0xcd4998f5d1740bc) };

	(void)state;
	for (uint32_t order = 0; order <= WEIR_DATASET_FULL; order++) {
		uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a, of numbers */
		struct weir_dataset_epoch epoch;

		open_epoch(&epoch, 5, 1, order);
		for (uint64_t i = 0; i < SAMPLES; i++)
			hash = (hash ^ weir_dataset_epoch_at(&epoch, i)) * UINT64_C(0x100000001b3);
		weir_dataset_epoch_close(&epoch);
		if (hash != hashes[order])
			fail_msg("order %u has 0x%llx", order, (unsigned long long)hash);
	}
}

/* Ranks take their samples a batch at a time; at random moments the job stops and goes on with another number
 * of ranks. */
static void run_job(uint64_t seed)
{
	struct weir_dataset_share all = { 0 };
	struct weir_dataset_epoch epoch;
	uint8_t *seen = calloc(SAMPLES, 1);
	uint64_t random = seed;

	open_epoch(&epoch, seed, 3, WEIR_DATASET_SHUFFLED_CHUNK);
	must(weir_dataset_share_add(&all, (struct weir_dataset_segment){ 0, SAMPLES }));
	while (weir_dataset_share_count(&all)) {
		uint32_t ranks = 1 + (uint32_t)weir_dataset_below(&random, 64);
		uint64_t left = weir_dataset_share_count(&all), most = 0, least = UINT64_MAX;
		struct weir_dataset_share rest = { 0 };

		for (uint32_t rank = 0; rank < ranks; rank++) {
			struct weir_dataset_share mine = { 0 };
			uint64_t count, used;

			must(weir_dataset_share_divide(&all, rank, ranks, &mine));
			count = weir_dataset_share_count(&mine);
			most = count > most ? count : most;
			least = count < least ? count : least;
			used = left < 500 ? count : weir_dataset_below(&random, count + 1);
			for (uint64_t i = 0; i < used; i++)
				seen[weir_dataset_epoch_at(&epoch, weir_dataset_share_at(&mine, i))]++;
			must(weir_dataset_share_cut(&mine, used, count, &rest));
			weir_dataset_share_clear(&mine);
		}
		assert_true(most - least <= 1);
		weir_dataset_share_clear(&all);
		all = rest;
	}
	rig_all_once(seen, SAMPLES);
	weir_dataset_epoch_close(&epoch);
	free(seen);
}

static void test_ranks(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 10; seed++)
		run_job(seed);
	for (uint32_t ranks = 1; ranks <= 64; ranks++) { /* each number once, without a stop */
		struct weir_dataset_share all = { 0 }, mine = { 0 };

		must(weir_dataset_share_add(&all, (struct weir_dataset_segment){ 0, SAMPLES }));
		for (uint32_t rank = 0; rank < ranks; rank++)
			must(weir_dataset_share_divide(&all, rank, ranks, &mine));
		assert_int_equal(mine.count, 1); /* they touch, and miss none */
		assert_int_equal(weir_dataset_share_count(&mine), SAMPLES);
		weir_dataset_share_clear(&all);
		weir_dataset_share_clear(&mine);
	}
}

/* A directory whose keys have so few bits that many collide: each name finds its own sample. */
static void find_names(unsigned key_bits, const struct weir_dataset_lookup_kind *lookup)
{
	struct weir_dataset_list list = { 0 };
	struct weir_dataset_manifest manifest;
	struct weir_dataset_directory directory = { .count = 2000, .part_count = 1, .lookup = lookup };
	const char *names[1] = { "none of them" };
	uint64_t number;
	char name[32];

	for (uint32_t i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		must(weir_dataset_list_add(&list, name, i * 100, 100, i));
	}
	must(weir_dataset_manifest_build(&manifest, &list, list.items, list.count, 1 << 20, key_bits));
	assert_true((manifest.header.sections[WEIR_DATASET_COLLISIONS].bytes > 0) == (key_bits < 48));
	directory.entries = manifest.sections[WEIR_DATASET_ENTRIES];
	directory.collisions = manifest.sections[WEIR_DATASET_COLLISIONS];
	directory.collision_count =
		manifest.header.sections[WEIR_DATASET_COLLISIONS].bytes / sizeof(*directory.collisions);
	directory.parts = calloc(1, sizeof(*directory.parts));
	directory.parts[0].count = 2000;
	manifest.sections[WEIR_DATASET_ENTRIES] = manifest.sections[WEIR_DATASET_COLLISIONS] = NULL;
	for (uint32_t i = 0; i < 2000 && key_bits == 48; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		assert_int_equal(weir_dataset_directory_find(&directory, name), i);
	}
	for (uint32_t i = 0; i < 2000 && key_bits < 48; i++) /* those of one key: by their whole hash */
		if (directory.collision_count == 2000) {
			snprintf(name, sizeof(name), "name %u", i);
			assert_int_equal(weir_dataset_directory_find(&directory, name), i);
		}
	weir_dataset_directory_find_many(&directory, names, 1, &number);
	assert_int_equal(number, UINT64_MAX);
	weir_dataset_directory_free(&directory);
	weir_dataset_manifest_free(&manifest);
	weir_dataset_list_clear(&list);
}

static void test_names(void **state)
{
	(void)state;
	find_names(48, &weir_dataset_lookup_buckets);
	find_names(48, &weir_dataset_lookup_avl);
	find_names(6, &weir_dataset_lookup_buckets); /* all of them collide */
}

/* A table of buckets takes a quarter of a byte per sample where keys are in order. */
static void test_directory_bytes(void **state)
{
	enum { COUNT = 100000 };
	struct weir_dataset_entry *entries = malloc(COUNT * sizeof(*entries));
	struct weir_dataset_lookup_index *index;

	(void)state;
	for (uint64_t i = 0; i < COUNT; i++)
		entries[i] = weir_dataset_entry(0, i * ((UINT64_C(1) << 48) / COUNT), i, 1);
	index = weir_dataset_lookup_buckets.build(entries, COUNT, true);
	assert_non_null(index);
	assert_true(weir_dataset_lookup_buckets.bytes(index) <= COUNT * 16 / 20);
	for (uint64_t i = 0; i < COUNT; i += 101)
		assert_int_equal(
			weir_dataset_lookup_buckets.find(index, entries, weir_dataset_entry_key(entries[i])),
			i);
	weir_dataset_lookup_buckets.free(index);
	free(entries);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_permutation), cmocka_unit_test(test_interleave),
		cmocka_unit_test(test_orders),      cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_names),       cmocka_unit_test(test_directory_bytes),
		cmocka_unit_test(test_orders_stay),
	};

	return cmocka_run_group_tests_name("dataset_order", tests, set_up, NULL);
}
