/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache_host_test.c: the host side of caches: ranges of lines, names of lost lines, closed storages, keys
 * that run out.
 *
 * Each case writes lines one by one, so that it knows which lines are dirty, and reads the storage for
 * those that are clean.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "../rig/context.h"
#include "../storage/lifetime.h"

/*
 * 61 sets: lines whose numbers agree in 32 bits fall into different sets. A set that is mostly dirty
 * is written back early.
 */
enum { LINE = 512, WORDS = LINE / 8, LINES = 4 * 61, SEED = 4000 };

#define FAR ((uint64_t)1 << 32)

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static void says(int result, int error, const char *sentence)
{
	if (result != error)
		fail_msg("%d instead of %d (\"%s\"); last: %s", result, error, sentence, weir_last_error());
	if (!strstr(weir_last_error(), sentence))
		fail_msg("\"%s\" does not say \"%s\"", weir_last_error(), sentence);
}

static struct weir_context *open_context(void)
{
	struct weir_context *context;

	must(weir_context_open(test_context_name(), WEIR_OPTIONS(context, .workers = 1, .resident_lanes = 64),
			       &context));
	return context;
}

static struct weir_storage *open_storage(struct weir_context *context, const char *uri)
{
	struct weir_storage *storage;

	must(weir_storage_open(
		context, uri,
		WEIR_OPTIONS(storage, .queues = 1, .depth = 16, .timeout_us = test_patient_us(30000000)),
		&storage));
	return storage;
}

static struct weir_cache *create_cache(struct weir_context *context)
{
	struct weir_cache *cache;

	must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = LINES, .line_bytes = LINE), &cache));
	return cache;
}

/* Elements of line @line of @storage get @seed and what comes behind it. */
static void put_line(struct weir_context *context, struct weir_cache *cache, struct weir_storage *storage,
		     uint64_t line, uint64_t seed)
{
	struct lifetime_put_args args = { .writer_count = 1, .count = WORDS, .seed = seed };

	must(weir_writer_open(
		cache, &storage, 1,
		WEIR_OPTIONS(array, .element_bytes = 8, .first_byte = line * LINE, .count = WORDS),
		&args.writer[0]));
	must(weir_launch(context, "lifetime_put", 1, 8, &args, sizeof(args)));
	must(weir_sync(context));
}

static uint64_t dirty_lines(struct weir_cache *cache)
{
	struct weir_cache_stats stats = { .size = sizeof(stats) };

	must(weir_cache_stats(cache, &stats));
	return stats.dirty;
}

/* Line @line of @storage begins with @word, and ends with what is as far behind it. */
static bool has(struct weir_storage *storage, uint64_t line, uint64_t word, uint64_t step)
{
	uint64_t words[WORDS];

	must(weir_storage_read(storage, line * LINE, words, sizeof(words)));
	return words[0] == word && words[WORDS - 1] == word + (WORDS - 1) * step;
}

static bool untouched(struct weir_storage *storage, uint64_t line)
{
	return has(storage, line, line * LINE, 8);
}

static bool written(struct weir_storage *storage, uint64_t line)
{
	return has(storage, line, SEED + line % FAR, 1);
}

/* Lines whose numbers agree in 32 bits are different ones, to flushes and invalidations, short and long. */
static void test_ranges_beyond_32_bits(void **state)
{
	static const uint64_t lines[] = { 5, FAR - 1, FAR + 5, FAR + 6, 2 * FAR + 5, 7 * FAR + 9 };
	struct weir_context *context = open_context();
	struct weir_storage *storage = open_storage(context, "virt:100T?content=address&block=512");
	struct weir_cache *cache = create_cache(context);
	struct weir_array array;

	(void)state;
	must(weir_array_open(cache, &storage, 1, WEIR_OPTIONS(array, .element_bytes = 8), &array));
	for (unsigned i = 0; i < 6; i++)
		put_line(context, cache, storage, lines[i], SEED + lines[i] % FAR);
	assert_int_equal(dirty_lines(cache), 6);
	must(weir_array_flush(cache, &array, (FAR + 5) * WORDS, 1, 0));
	assert_int_equal(dirty_lines(cache), 5);
	assert_true(written(storage, FAR + 5) && untouched(storage, 5));
	must(weir_array_invalidate(cache, &array, (2 * FAR + 5) * WORDS + WORDS - 1, 1));
	assert_int_equal(dirty_lines(cache), 4);
	must(weir_array_flush(cache, &array, (FAR - 1) * WORDS, 2 * WORDS, 0)); /* two lines, on both sides */
	assert_int_equal(dirty_lines(cache), 3);
	must(weir_array_flush(cache, &array, FAR * WORDS, 6 * FAR * WORDS,
			      0)); /* more lines than the cache has */
	assert_int_equal(dirty_lines(cache), 2);
	must(weir_array_invalidate(cache, &array, 7 * FAR * WORDS, FAR * WORDS));
	assert_int_equal(dirty_lines(cache), 1);
	assert_true(untouched(storage, 5));
	must(weir_array_flush(cache, &array, 0, array.count, 0));
	assert_int_equal(dirty_lines(cache), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_true(written(storage, lines[i]));
	assert_true(untouched(storage, lines[4]) && untouched(storage, lines[5]));
	must(weir_context_close(context));
}

/** struct named - how often the last sentence names blocks of two storages */
struct named {
	unsigned times[2][16];
};

/* "block 3 of "URI" (status), 4, block 9 of ...": of each number, whose it is. */
static void read_names(const char *const uris[2], const char *const statuses[2], struct named *named)
{
	const char *at = strstr(weir_last_error(), ", from ");
	unsigned current = 2;

	memset(named, 0, sizeof(*named));
	assert_non_null(at);
	for (at += 7;; at += 2) {
		bool first = !strncmp(at, "block ", 6);
		char *end;
		unsigned long number = strtoul(first ? at + 6 : at, &end, 10);
		char whose[2][160];

		for (unsigned i = 0; i < 2 && first; i++) {
			snprintf(whose[i], sizeof(whose[i]), " of \"%s\" (%s", uris[i], statuses[i]);
			if (!strncmp(end, whose[i], strlen(whose[i])))
				current = i;
		}
		if (current > 1 || number > 15)
			fail_msg("\"%s\" cannot be read at \"%s\"", weir_last_error(), at);
		named->times[current][number]++;
		at = first ? strstr(end, "))") + 2 : end;
		if (strncmp(at, ", ", 2))
			break;
	}
	assert_int_equal(*at, ';');
}

static void check_names(const struct named *named, unsigned which, unsigned first, unsigned count)
{
	for (unsigned i = 0; i < 16; i++)
		if (named->times[which][i] != (i >= first && i < first + count))
			fail_msg("block %u of storage %u is named %u times: %s", i, which,
				 named->times[which][i], weir_last_error());
}

/*
 * Blocks 3 to 5 of one storage and 9 and 10 of another cannot be written: each is named once, with its
 * storage and status.
 */
static void test_each_lost_line_is_named_once(void **state)
{
	static const char *const uris[2] = { "virt:64K?block=512&fault=status:op=write:lba=3-5:code=0x280",
					     "virt:32K?block=512&fault=status:op=write:lba=9-10:code=0x80" };
	static const char *const statuses[2] = { "media write fault", "LBA out of range" };
	struct weir_context *context = open_context();
	struct weir_cache *cache = create_cache(context);
	struct weir_storage *storages[2];
	struct named named;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		storages[i] = open_storage(context, uris[i]);
		for (unsigned line = 1; line < 12; line++)
			put_line(context, cache, storages[i], line, SEED + line);
	}
	for (unsigned round = 0; round < 2; round++) {
		says(weir_cache_flush(cache, 0), -EIO, "5 lines could not be written");
		read_names(uris, statuses, &named);
		check_names(&named, 0, 3, 3);
		check_names(&named, 1, 9, 2);
		assert_null(strstr(weir_last_error(), "more;"));
		assert_int_equal(dirty_lines(cache), 5);
	}
	assert_true(written(storages[0], 6) && written(storages[1], 11) && !written(storages[0], 4));
	says(weir_storage_close(storages[1]), -EIO, "2 lines could not be written");
	read_names(uris, statuses, &named);
	check_names(&named, 0, 0, 0);
	check_names(&named, 1, 9, 2);
	says(weir_cache_destroy(cache), -EIO, "3 lines could not be written");
	read_names(uris, statuses, &named);
	check_names(&named, 0, 3, 3);
	check_names(&named, 1, 0, 0);
	must(weir_context_close(context));
}

static int make_file(char path[64])
{
	static const unsigned char zeros[LINES * LINE];
	int file;

	snprintf(path, 64, "/tmp/weir_cache_host_test_XXXXXX");
	file = mkstemp(path);
	assert_true(file >= 0 && pwrite(file, zeros, sizeof(zeros), 0) == sizeof(zeros));
	return file;
}

static uint64_t first_word(int file, uint64_t line)
{
	uint64_t word;

	assert_int_equal(pread(file, &word, sizeof(word), (off_t)(line * LINE)), sizeof(word));
	return word;
}

/*
 * Three caches have lines of one storage. Closing it writes the lines of all three, or reports all of
 * them.
 */
static void test_a_storage_leaves_every_cache(void **state)
{
	(void)state;
	for (unsigned fails = 0; fails < 2; fails++) {
		struct weir_context *context = open_context();
		struct weir_storage *storage, *other = open_storage(context, "virt:64K?block=512");
		struct weir_cache *caches[3];
		char path[64], uri[160];
		int file = make_file(path);

		snprintf(uri, sizeof(uri), "file:%s?direct=off&block=512%s", path,
			 fails ? "&fault=status:op=write:code=0x280" : "");
		storage = open_storage(context, uri);
		for (unsigned i = 0; i < 3; i++) {
			caches[i] = create_cache(context);
			put_line(context, caches[i], other, i, SEED + i);
			for (unsigned line = 0; line <= i; line++)
				put_line(context, caches[i], storage, 4 * i + line, SEED + 4 * i + line);
		}
		if (fails) {
			says(weir_storage_close(storage), -EIO, "cache: 1 lines could not be written");
			assert_non_null(strstr(weir_last_error(), "cache: 2 lines could not be written"));
			assert_non_null(strstr(weir_last_error(), "cache: 3 lines could not be written"));
		} else {
			must(weir_storage_close(storage));
		}
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(dirty_lines(caches[i]), 1); /* the other's */
			for (unsigned line = 0; line < 4; line++)
				assert_int_equal(first_word(file, 4 * i + line),
						 !fails && line <= i ? SEED + 4 * i + line : 0);
		}
		for (unsigned i = 0; i < 3; i++) {
			must(weir_cache_destroy(caches[i]));
			assert_true(written(other, i));
		}
		must(weir_context_close(context));
		close(file);
		unlink(path);
	}
}

/* A storage is looked for at every place of every stripe. */
static void test_stripes_that_share_a_storage(void **state)
{
	static const unsigned pairs[][2] = { { 2, 0 }, { 1, 2 }, { 1, 0 } };
	struct weir_context *context = open_context();
	struct weir_cache *cache = create_cache(context);
	struct weir_storage *storages[4];
	struct weir_writer writer;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		storages[i] = open_storage(context, "virt:128K?block=512");
	must(weir_writer_open(cache, storages, 2, WEIR_OPTIONS(array, .element_bytes = 8), &writer));
	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct weir_storage *pair[] = { storages[pairs[i][0]], storages[pairs[i][1]] };

		says(weir_writer_open(cache, pair, 2, WEIR_OPTIONS(array, .element_bytes = 8), &writer),
		     -EBUSY, "two layouts");
	}
	for (unsigned i = 0; i < 2; i++)
		says(weir_writer_open(cache, &storages[i], 1, WEIR_OPTIONS(array, .element_bytes = 8),
				      &writer),
		     -EBUSY, "two layouts");
	must(weir_writer_open(cache, storages + 2, 2, WEIR_OPTIONS(array, .element_bytes = 8), &writer));
	must(weir_context_close(context));
}

/* Whoever is to write through another layout than the readers' is refused, and is no writer for who comes
 * then. */
static void test_a_writer_beside_readers(void **state)
{
	struct weir_context *context = open_context();
	struct weir_cache *cache = create_cache(context);
	struct weir_storage *a = open_storage(context, "virt:128K?block=512"),
			    *b = open_storage(context, "virt:128K?block=512");
	struct weir_storage *const layouts[][2] = { { a, NULL }, { a, b }, { b, a } };
	struct weir_writer writer;
	struct weir_array array;

	(void)state;
	for (unsigned i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		must(weir_array_open(cache, layouts[i], layouts[i][1] ? 2 : 1,
				     WEIR_OPTIONS(array, .element_bytes = 8), &array));
		if (i) /* a layout that others read beside, too */
			says(weir_writer_open(cache, layouts[i], 2, WEIR_OPTIONS(array, .element_bytes = 8),
					      &writer),
			     -EBUSY, "two layouts");
	}
	says(weir_writer_open(cache, &a, 1, WEIR_OPTIONS(array, .element_bytes = 8), &writer), -EBUSY,
	     "two layouts");
	says(weir_writer_open(cache, &b, 1, WEIR_OPTIONS(array, .element_bytes = 8), &writer), -EBUSY,
	     "two layouts");
	must(weir_array_open(cache, &b, 1, WEIR_OPTIONS(array, .element_bytes = 8), &array));
	must(weir_context_close(context));
}

/* One that is closed is closed in each of them; those without it go on. */
static void test_a_storage_leaves_every_layout(void **state)
{
	struct weir_context *context = open_context();
	struct weir_cache *cache = create_cache(context);
	struct weir_storage *a = open_storage(context, "virt:128K?block=512"),
			    *b = open_storage(context, "virt:128K?block=512");
	struct weir_storage *const layouts[][2] = { { a, b }, { a, NULL }, { b, NULL }, { b, a } };
	enum { COUNT = sizeof(layouts) / sizeof(layouts[0]) };
	struct weir_array arrays[COUNT];

	(void)state;
	for (unsigned i = 0; i < COUNT; i++)
		must(weir_array_open(cache, layouts[i], layouts[i][1] ? 2 : 1,
				     WEIR_OPTIONS(array, .element_bytes = 8), &arrays[i]));
	must(weir_storage_close(a));
	for (unsigned i = 0; i < COUNT; i++)
		if (layouts[i][0] == b && !layouts[i][1])
			must(weir_array_flush(cache, &arrays[i], 0, 1, 0));
		else
			says(weir_array_flush(cache, &arrays[i], 0, 1, 0), -EINVAL, "is closed");
	must(weir_context_close(context));
}

/* The keys of one array end where those of the next begin: its ranges do not include lines of the others. */
static void test_neighbours_keep_their_lines(void **state)
{
	struct weir_context *context = open_context();
	struct weir_storage *storages[3];
	struct weir_cache *cache = create_cache(context);
	struct weir_array arrays[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		storages[i] = open_storage(context, "virt:8K?block=512&content=address");
		must(weir_array_open(cache, &storages[i], 1, WEIR_OPTIONS(array, .element_bytes = 8),
				     &arrays[i]));
		put_line(context, cache, storages[i], 0, SEED);
		put_line(context, cache, storages[i], 15, SEED + 15);
	}
	assert_int_equal(dirty_lines(cache), 6);
	must(weir_array_flush(cache, &arrays[1], 15 * WORDS, WORDS, 0));
	assert_int_equal(dirty_lines(cache), 5);
	assert_true(written(storages[1], 15) && untouched(storages[2], 0));
	must(weir_array_flush(cache, &arrays[1], 0, WORDS, 0));
	assert_int_equal(dirty_lines(cache), 4);
	assert_true(written(storages[1], 0) && untouched(storages[0], 15));
	put_line(context, cache, storages[1], 0, SEED);
	put_line(context, cache, storages[1], 15, SEED + 15);
	must(weir_storage_close(storages[1]));
	assert_int_equal(dirty_lines(cache), 4);
	assert_true(untouched(storages[0], 15) && untouched(storages[2], 0));
	must(weir_cache_destroy(cache));
	assert_true(written(storages[0], 15) && written(storages[2], 0) && written(storages[0], 0) &&
		    written(storages[2], 15));
	must(weir_context_close(context));
}

/* A cache has keys for 2^40 - 1 lines. A refused array takes none; the last key works as any other. */
static void test_keys_run_out(void **state)
{
	const uint64_t keys = ((uint64_t)1 << WEIR_KEY_BITS) - 1;
	struct weir_context *context = open_context();
	struct weir_storage *whole, *large, *small, *one;
	struct weir_cache *cache = create_cache(context);
	struct weir_array array, first;
	char uri[80];

	(void)state;
	whole = open_storage(context, "virt:512T?block=512&content=address");
	snprintf(uri, sizeof(uri), "virt:%llu?block=512&content=address",
		 (unsigned long long)(keys - 16) * LINE);
	large = open_storage(context, uri);
	small = open_storage(context, "virt:8K?block=512&content=address");
	one = open_storage(context, "virt:512?block=512&content=address");
	says(weir_array_open(cache, &whole, 1, WEIR_OPTIONS(array, .element_bytes = 8), &array), -ERANGE,
	     "2^40");
	must(weir_array_open(cache, &small, 1, WEIR_OPTIONS(array, .element_bytes = 8), &first));
	must(weir_array_open(cache, &large, 1, WEIR_OPTIONS(array, .element_bytes = 8), &array));
	says(weir_array_open(cache, &one, 1, WEIR_OPTIONS(array, .element_bytes = 8),
			     &(struct weir_array){ .count = 0 }),
	     -ERANGE, "2^40");
	put_line(context, cache, small, 15, SEED + 15);
	put_line(context, cache, large, 0, SEED);
	put_line(context, cache, large, keys - 17, SEED + (keys - 17) % FAR);
	assert_int_equal(dirty_lines(cache), 3);
	must(weir_array_flush(cache, &array, array.count - 1, 1, 0));
	assert_int_equal(dirty_lines(cache), 2);
	assert_true(written(large, keys - 17));
	must(weir_array_flush(cache, &first, 0, first.count, 0));
	assert_int_equal(dirty_lines(cache), 1);
	assert_true(written(small, 15) && untouched(large, 0));
	must(weir_cache_destroy(cache));
	assert_true(written(large, 0));
	must(weir_context_close(context));
}

/* Words of lines are read in parts: those of a large cache, too, are counted once each. */
static void test_dirty_lines_of_a_large_cache(void **state)
{
	enum { MANY = 3 << 16, PUT = 96 };
	struct weir_context *context = open_context();
	struct weir_storage *storage = open_storage(context, "virt:128M?block=512");
	struct weir_cache *cache;

	(void)state;
	must(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = MANY, .line_bytes = LINE), &cache));
	for (uint64_t i = 0; i < PUT; i++) {
		put_line(context, cache, storage, i * i * 23 % (MANY - 1), SEED);
		assert_int_equal(dirty_lines(cache), i + 1);
	}
	must(weir_cache_destroy(cache));
	must(weir_storage_close(storage));
	must(weir_context_close(context));
}

/* More than there is of anything: refused, and no number goes round. */
static void test_sizes_beyond_all(void **state)
{
	static const uint64_t lines[] = { ((uint64_t)1 << 61) + 4, ((uint64_t)1 << 59) * 4 + 4, UINT64_MAX };
	static const uint64_t waits[] = { UINT64_MAX, INT64_MAX, (uint64_t)1 << 61 };
	struct weir_context *context = open_context();
	unsigned char block[LINE];
	struct weir_storage *storage;
	struct weir_cache *cache;

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(lines) / sizeof(lines[0]); i++)
		says(weir_cache_create(
			     context,
			     WEIR_OPTIONS(cache, .lines = lines[i / 2], .line_bytes = i % 2 ? 512 : 65536),
			     &cache),
		     -EINVAL, "no memory has room for them");
	for (unsigned i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		must(weir_storage_open(
			context, "virt:1M?lat_us=20000",
			WEIR_OPTIONS(storage, .timeout_us = waits[i], .command_timeout_us = waits[i]),
			&storage));
		must(weir_storage_read(storage, 0, block, sizeof(block)));
		must(weir_storage_close(storage));
	}
	must(weir_context_close(context));
}

/* A line is whole blocks, and comes with one command: of the storage, or of each member of a stripe. */
static void test_lines_that_do_not_suit_a_storage(void **state)
{
	static const struct {
		const char *uri;
		uint32_t line_bytes, transfer_bytes;
		const char *says;  /* NULL: it can be */
		const char *other; /* before it in a stripe, and then behind it; NULL: no stripe */
	} cases[] = {
		{ "virt:1M?block=4096", 512, 0,
		  "has blocks of 4096 bytes, more than the cache's lines of 512", NULL },
		{ "virt:1M?block=4096", 4096, 0, NULL, NULL },
		{ "virt:1M?block=512", 8192, 4096,
		  "moves at most 4096 bytes at once, less than a line of 8192", NULL },
		{ "virt:1M?block=512&mdts=8K", 16384, 0,
		  "moves at most 8192 bytes at once, less than a line of 16384", NULL },
		{ "virt:1M?block=512", 4096, 4096, NULL, NULL },
		{ "virt:1M?block=4096", 512, 0, "more than the cache's lines of 512", "virt:1M?block=512" },
		{ "virt:1M?block=512", 8192, 4096, "less than a line of 8192", "virt:1M?block=512" },
		{ "virt:1M?block=512&mdts=8K", 16384, 0, "less than a line of 16384", "virt:1M?block=512" },
		{ "virt:1M?block=512&mdts=8K", 8192, 0, NULL, "virt:1M?block=512" },
		{ "virt:1M?block=4096", 4096, 0, "have different block sizes", "virt:1M?block=512" },
	};
	struct weir_context *context = open_context();
	struct weir_unaligned unaligned;
	struct weir_writer writer;
	struct weir_array array;
	struct weir_cache *cache;

	(void)state;
	says(weir_cache_create(context, WEIR_OPTIONS(cache, .lines = 4, .invalidate_on_flush = 2), &cache),
	     -EINVAL, "invalidate_on_flush is 2");
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct weir_array_options *options = WEIR_OPTIONS(array, .element_bytes = 8);
		struct weir_storage *of[3] = { NULL }, **from = of + !cases[i].other;
		unsigned count = cases[i].other ? 2 : 1, kinds = cases[i].says ? 3 * count : 3;
		int error;

		must(weir_cache_create(
			context, WEIR_OPTIONS(cache, .lines = 8, .line_bytes = cases[i].line_bytes), &cache));
		must(weir_storage_open(context, cases[i].uri,
				       WEIR_OPTIONS(storage, .max_transfer_bytes = cases[i].transfer_bytes),
				       &of[1]));
		if (cases[i].other)
			must(weir_storage_open(context, cases[i].other, NULL, &of[0]));
		of[2] = of[0];
		for (unsigned kind = 0; kind < kinds; kind++, from += kind == 3) {
			error = kind % 3 == 0 ? weir_array_open(cache, from, count, options, &array)
				: kind % 3 == 1
					? weir_writer_open(cache, from, count, options, &writer)
					: weir_unaligned_open(cache, from, count, options, &unaligned);
			if (cases[i].says)
				says(error, -EINVAL, cases[i].says);
			else
				must(error);
		}
		must(weir_cache_destroy(cache));
		must(weir_storage_close(of[1]));
		must(weir_storage_close(of[0]));
	}
	must(weir_context_close(context));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges_beyond_32_bits),
		cmocka_unit_test(test_each_lost_line_is_named_once),
		cmocka_unit_test(test_a_storage_leaves_every_cache),
		cmocka_unit_test(test_stripes_that_share_a_storage),
		cmocka_unit_test(test_a_writer_beside_readers),
		cmocka_unit_test(test_a_storage_leaves_every_layout),
		cmocka_unit_test(test_neighbours_keep_their_lines),
		cmocka_unit_test(test_keys_run_out),
		cmocka_unit_test(test_dirty_lines_of_a_large_cache),
		cmocka_unit_test(test_sizes_beyond_all),
		cmocka_unit_test(test_lines_that_do_not_suit_a_storage),
	};

	if (!test_begins())
		return 0;
	return cmocka_run_group_tests_name("cache_host", tests, NULL, NULL);
}
