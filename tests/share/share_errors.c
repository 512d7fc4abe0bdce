/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that cannot be, and commands that fail and are tried again. */
#include "share_cases.h"

/* One step that cannot be, on a storage that may be read-only; what weir_sync() says of it. */
static const struct bad {
	uint32_t read_only;
	struct test_step steps[4];
	const char *says;
} BAD[] = {
	{ 0,
	  { { TEST_STEP_ACQUIRE, 0, LINES, 0, 0 },
	    { TEST_STEP_WAIT, 0, 0, 0, WEIR_E_RANGE },
	    { TEST_STEP_RELEASE, 0, 0, 0, WEIR_OK },
	    { TEST_STEP_GET, 0, 0, 0, 0 } },
	  "block 64 of" },
	{ 0,
	  { { TEST_STEP_WRITE, 0, LINES + 5, 0, WEIR_E_RANGE },
	    { TEST_STEP_GET, 0, 0, 0, 0 },
	    { TEST_STEP_IN_USE, 0, 0, 0, 0 },
	    { TEST_STEP_IN_USE, 0, 5, 0, 0 } },
	  "block 74 of" },
	{ 1,
	  { { TEST_STEP_WRITE, 0, 6, 0, WEIR_E_READ_ONLY },
	    { TEST_STEP_GET, 0, 6, 0, 0 },
	    { TEST_STEP_COPY, 0, 6, 0, WEIR_PATH_CACHE },
	    { TEST_STEP_LOAD, 0, 0, 0, 0 } },
	  "block 12 of" },
	{ 1,
	  { { TEST_STEP_ACQUIRE, 0, 7, 0, 1 },
	    { TEST_STEP_WAIT, 0, 0, 0, WEIR_OK },
	    { TEST_STEP_MODIFY, 0, 0, 0, WEIR_E_READ_ONLY },
	    { TEST_STEP_RELEASE, 0, 0, 0, WEIR_OK } },
	  "block 14 of" },
};

/* The lanes' view of the array's one storage is read-only from here on. */
static void make_read_only(struct rig *rig, const struct weir_writer *writer)
{
	struct weir_disk disk;

	must(weir_copy_from_device(rig->context, &disk, writer->array.extent.disks, sizeof(disk)));
	disk.flags |= WEIR_DISK_READ_ONLY;
	must(weir_copy_to_device(rig->context, writer->array.extent.disks, &disk, sizeof(disk)));
}

void test_bad_requests_name_the_block(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
		struct weir_storage *storage;
		struct weir_writer writer;
		uint64_t zeros[WORDS] = { 0 };
		struct rig rig;
		int synced;

		open_rig(&rig, test_width(0), 64, 64);
		must(test_storage_open(rig.context, "virt:32K?block=512",
				       WEIR_OPTIONS(storage, .timeout_us = test_patient_us(TIMEOUT_US)),
				       &storage));
		must(weir_storage_write(storage, 0, zeros, sizeof(zeros)));
		/* as if it could be written: only the device stands in the way */
		memset(&writer, 0, sizeof(writer));
		must(weir_array_open(rig.cache, &storage, 1, WEIR_OPTIONS(array, .element_bytes = 8),
				     &writer.array));
		if (BAD[i].read_only)
			make_read_only(&rig, &writer);
		do_steps(&rig, &writer, BAD[i].steps, 4, &synced);
		assert_int_equal(synced, -EIO);
		if (!strstr(weir_last_error(), BAD[i].says))
			fail_msg("%s", weir_last_error());
		must(weir_cache_destroy(rig.cache));
		rig.cache = NULL;
		weir_storage_close(storage);
		close_rig(&rig);
	}
}

enum { RETRIES = 3 };

/* How the line of a failed command is asked for. What goes before is the hold whose command it is; nobody
 * else waits for that. */
static const struct {
	struct test_step steps[6];
	size_t count;
	uint64_t entries;
} WAYS[] = {
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_WAIT, 0, 3, 0, WEIR_OK },
	    { TEST_STEP_SEE, 0, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_GET, 0, 3, 5, 0 },
	    { TEST_STEP_WAIT, 0, 3, 0, WEIR_OK },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_COPY, 1, 3, 0, WEIR_PATH_SHARE },
	    { TEST_STEP_LOAD, 1, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_PUT, 0, 3, 4, 1 },
	    { TEST_STEP_GET, 0, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_ACQUIRE, 1, 3, 0, 2 },
	    { TEST_STEP_WAIT, 1, 3, 0, WEIR_OK },
	    { TEST_STEP_SEE, 1, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK },
	    { TEST_STEP_RELEASE, 1, 3, 0, WEIR_OK } },
	  6,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
	    { TEST_STEP_POLL, 0, 3, 0, WEIR_OK },
	    { TEST_STEP_SEE, 0, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  64 },
	{ { { TEST_STEP_ACQUIRE, 0, 3, 0, 3 },
	    { TEST_STEP_WAIT, 0, 3, 0, WEIR_OK },
	    { TEST_STEP_SEE, 0, 3, 5, 0 },
	    { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } },
	  4,
	  0 },
};

static struct weir_stats failures_of(struct rig *rig)
{
	struct weir_stats stats = { .size = sizeof(stats) };

	must(weir_stats(rig->storage, &stats));
	return stats;
}

/* A read that the controller refuses for now is tried again by whoever wants what is to be in a shared
 * buffer. */
void test_what_fails_is_tried_again(void **state)
{
	(void)state;
	for (size_t way = 0; way < sizeof(WAYS) / sizeof(*WAYS); way++)
		for (unsigned times = 1; times <= RETRIES; times++) {
			struct test_step steps[6];
			char faults[96];
			struct rig rig;
			int synced;

			memcpy(steps, WAYS[way].steps, sizeof(steps));
			for (size_t i = 0; i < WAYS[way].count; i++)
				if (!steps[i].value && steps[i].at == 5)
					steps[i].value = test_word(1, 3 * LINE / 8 + 5);
			snprintf(faults, sizeof(faults),
				 "&retries=%d&fault=status:op=read:code=0x82:count=%u", RETRIES, times);
			open_faulty_rig(&rig, test_width(way % test_width_count()), 4, WAYS[way].entries,
					faults);
			do_steps(&rig, &rig.writer, steps, WAYS[way].count, &synced);
			if (synced)
				fail_msg("way %zu: %s", way, weir_last_error());
			assert_int_equal(failures_of(&rig).failed, times);
			assert_int_equal(failures_of(&rig).retried, times);
			close_rig(&rig);
		}
}

/* No more often than the storage says, whoever waits; then everybody is told. */
void test_it_is_tried_no_more_often(void **state)
{
	static const struct test_step steps[] = {
		{ TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
		{ TEST_STEP_ACQUIRE, 1, 3, 0, 2 },
		{ TEST_STEP_WAIT, 1, 3, 0, (uint32_t)WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x82 },
		{ TEST_STEP_WAIT, 0, 3, 0, (uint32_t)WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x82 },
		{ TEST_STEP_COPY, 2, 3, 0, (uint32_t)WEIR_STATUS_NVME | WEIR_GROUP_REQUEST | 0x82 },
		{ TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK },
		{ TEST_STEP_RELEASE, 1, 3, 0, WEIR_OK },
	};
	char faults[96];
	struct rig rig;
	int synced;

	(void)state;
	snprintf(faults, sizeof(faults), "&retries=%d&fault=status:op=read:code=0x82", RETRIES);
	open_faulty_rig(&rig, test_width(0), 4, 64, faults);
	do_steps(&rig, &rig.writer, steps, sizeof(steps) / sizeof(*steps), &synced);
	assert_int_equal(synced, -EIO);
	assert_int_equal(failures_of(&rig).failed, 1 + RETRIES);
	assert_int_equal(failures_of(&rig).retried, RETRIES);
	close_rig(&rig);
}

/* One entry, for one line after the other: each has all its tries. */
void test_each_line_has_its_own_tries(void **state)
{
	const struct test_step steps[] = {
		{ TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
		{ TEST_STEP_WAIT, 0, 3, 0, WEIR_OK },
		{ TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK },
		{ TEST_STEP_ACQUIRE, 0, 4, 0, 1 },
		{ TEST_STEP_WAIT, 0, 4, 0, WEIR_OK },
		{ TEST_STEP_SEE, 0, 4, 5, test_word(1, 4 * LINE / 8 + 5) },
		{ TEST_STEP_RELEASE, 0, 4, 0, WEIR_OK },
	};
	char faults[112];
	struct rig rig;
	int synced;

	(void)state;
	snprintf(faults, sizeof(faults),
		 "&retries=%d&fault=status:op=read:lba=6:code=0x82:count=%d,status:op=read:lba=8:code=0x82:"
		 "count=%d",
		 RETRIES, RETRIES, RETRIES);
	open_faulty_rig(&rig, test_width(0), 4, 4, faults);
	do_steps(&rig, &rig.writer, steps, sizeof(steps) / sizeof(*steps), &synced);
	if (synced)
		fail_msg("%s", weir_last_error());
	assert_int_equal(failures_of(&rig).failed, 2 * RETRIES);
	assert_int_equal(failures_of(&rig).retried, 2 * RETRIES);
	close_rig(&rig);
}

/* Many lanes, many lines, in the table, in the cache and on their way. */
void test_many_lanes_try_again(void **state)
{
	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct rig rig;

		(void)run_faulty_share(&rig, test_width(w), &(struct shape){ 8, 64, 3, 2, 1, 0 },
				       "&retries=20&fault=status:op=read:code=0x82:every=3:count=40");
		assert_true(failures_of(&rig).failed > 1);
		assert_int_equal(failures_of(&rig).failed, failures_of(&rig).retried);
		close_rig(&rig);
	}
}

/* Lines are lost and others never released: of both a closing cache names what is lost. */
void test_closing_names_what_is_lost(void **state)
{
	static const struct test_step steps[] = { { TEST_STEP_WRITE, 1, 5, 0, WEIR_OK },
						  { TEST_STEP_ACQUIRE, 0, 7, 0, 1 },
						  { TEST_STEP_WAIT, 0, 0, 0, WEIR_OK },
						  { TEST_STEP_MODIFY, 0, 0, 0, WEIR_OK } };
	struct rig rig;
	int synced;

	(void)state;
	open_faulty_rig(&rig, test_width(0), 64, 64, "&fault=status:op=write:code=0x80:after=1");
	assert_int_equal(do_steps(&rig, &rig.writer, steps, 4, &synced), 0);
	assert_int_equal(synced, 0);
	assert_int_equal(weir_cache_destroy(rig.cache), -EIO);
	if (!strstr(weir_last_error(), "1 lines could not be written"))
		fail_msg("%s", weir_last_error());
	rig.cache = NULL;
	close_rig(&rig);
}

/* The storage fails while a line of it is in a buffer: that is read and written as before, for it needs
 * neither a command nor a line of the cache. */
void test_a_buffer_outlives_its_storage(void **state)
{
	static const struct test_step steps[] = {
		{ TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
		{ TEST_STEP_WAIT, 0, 3, 0, WEIR_OK },
		{ TEST_STEP_COPY, 1, 10, 0, WEIR_E_DEVICE_DEAD },
		{ TEST_STEP_PUT, 0, 3, 5, 105 },
		{ TEST_STEP_LOAD, 0, 3, 5, 105 },
		{ TEST_STEP_GET, 0, 3, 5, 105 },
		{ TEST_STEP_ADD, 0, 3, 5, 105 },
		{ TEST_STEP_LOAD, 0, 3, 5, 106 },
	};

	(void)state;
	for (size_t w = 0; w < test_width_count(); w++) {
		struct rig rig;
		int synced;

		open_faulty_rig(&rig, test_width(w), 4, 64, "&fault=fatal:op=read:lba=20");
		do_steps(&rig, &rig.writer, steps, sizeof(steps) / sizeof(*steps), &synced);
		assert_int_equal(synced, 0);
		assert_int_equal(weir_cache_destroy(rig.cache), -EBUSY); /* nobody let go of it */
		weir_storage_close(rig.storage);
		weir_context_close(rig.context);
	}
}

static struct weir_share share_of(struct rig *rig)
{
	struct weir_lines lines;
	struct weir_share share;

	must(weir_copy_from_device(rig->context, &lines, rig->writer.array.lines, sizeof(lines)));
	must(weir_copy_from_device(rig->context, &share, lines.share, sizeof(share)));
	return share;
}

/* The one entry that is held loses a holder, who goes between the join of a writer and its leaving. */
static void leave_an_entry(struct rig *rig)
{
	struct weir_share share = share_of(rig);
	struct weir_set set;

	assert_int_equal(share.buckets, 1);
	must(weir_copy_from_device(rig->context, &set, share.words, sizeof(set)));
	for (unsigned way = 0; way < WEIR_WAYS; way++) {
		uint64_t word = weir_load_u64_relaxed_sys(&set.word[way]);

		if (word & WEIR_SHARE_REFS)
			weir_store_u64_relaxed_sys(&set.word[way], word - WEIR_SHARE_REF);
	}
	must(weir_copy_to_device(rig->context, share.words, &set, sizeof(set)));
}

/* Steps are counted anew. */
static void forget_steps(struct rig *rig)
{
	struct test_verdict none;

	memset(&none, 0, sizeof(none));
	must(weir_copy_to_device(rig->context, rig->verdict, &none, sizeof(none)));
}

static struct weir_share_stats shares_of(struct rig *rig)
{
	struct weir_share_stats stats = { .size = sizeof(stats) };

	must(weir_share_stats(rig->cache, &stats));
	return stats;
}

/* A lane writes an element to a buffer, and is its last holder then; the cache has no room for the line. What
 * was written stays in the buffer until there is room, and the next writer takes it to the cache. */
void test_a_writer_that_is_last_leaves_no_hold(void **state)
{
	static const struct test_step full[] = {
		{ TEST_STEP_ACQUIRE, 0, 3, 0, 1 }, { TEST_STEP_WAIT, 0, 3, 0, WEIR_OK },
		{ TEST_STEP_PUT, 0, 5, 0, 150 },   { TEST_STEP_PUT, 0, 6, 0, 160 },
		{ TEST_STEP_PUT, 0, 7, 0, 170 },   { TEST_STEP_PUT, 0, 8, 0, 180 },
		{ TEST_STEP_GET, 0, 9, 0, 0 }, /* nothing can be written */
	};
	static const struct test_step written[] = { { TEST_STEP_PUT, 0, 3, 1, 131 },
						    { TEST_STEP_GET, 0, 3, 1, 131 },
						    { TEST_STEP_ADD, 0, 3, 1, 0 }, /* an error gives 0 */
						    { TEST_STEP_GET, 0, 3, 1, 132 } };
	static const struct test_step again[] = { { TEST_STEP_PUT, 0, 3, 2, 132 } };
	uint64_t words[WORDS];
	struct rig rig;
	int synced;

	(void)state;
	open_faulty_rig(&rig, test_width(0), 4, 4, "&fault=status:op=write:code=0x280:after=1:count=4");
	do_steps(&rig, &rig.writer, full, sizeof(full) / sizeof(*full), &synced);
	assert_int_equal(synced, -EIO);
	leave_an_entry(&rig);
	forget_steps(&rig);
	do_steps(&rig, &rig.writer, written, 4, &synced);
	assert_int_equal(synced, -EIO);
	assert_int_equal(shares_of(&rig).changed, 1);
	assert_int_equal(weir_cache_flush(rig.cache, 0), -EIO);
	must(weir_cache_flush(rig.cache, 0));
	forget_steps(&rig);
	do_steps(&rig, &rig.writer, again, 1, &synced);
	assert_int_equal(synced, 0);
	assert_int_equal(shares_of(&rig).held, 0);
	must(weir_cache_flush(rig.cache, 0));
	must(weir_storage_read(rig.storage, 0, words, sizeof(words)));
	assert_int_equal(words[3 * LINE / 8 + 1], 132);
	assert_int_equal(words[3 * LINE / 8 + 2], 132);
	close_rig(&rig);
}

/* A command that still fills a buffer has all that it tells its end to, until it has ended. */
void test_no_table_goes_under_commands(void **state)
{
	static const struct test_step steps[] = { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 } };
	struct weir_share share;
	struct rig rig;
	int synced;

	(void)state;
	open_faulty_rig(&rig, test_width(0), 4, 64, "&timeout_ms=0&fault=late:us=1000000000:op=read");
	do_steps(&rig, &rig.writer, steps, 1, &synced);
	assert_int_equal(synced, 0);
	share = share_of(&rig);
	assert_int_equal(weir_share_destroy(rig.cache), -EBUSY);
	if (!strstr(weir_last_error(), "never released 1 lines"))
		fail_msg("%s", weir_last_error());
	assert_int_equal(weir_free(rig.context, share.words), -EBUSY); /* the runtime's still */
	assert_int_equal(weir_free(rig.context, share.slots), -EBUSY);
	close_rig(&rig);
}

/* A line in the midst of them is in a buffer: those behind it are fetched all the same. */
void test_a_prefetch_passes_over_buffers(void **state)
{
	static const struct test_step steps[] = { { TEST_STEP_ACQUIRE, 0, 3, 0, 1 },
						  { TEST_STEP_WAIT, 0, 3, 0, WEIR_OK },
						  { TEST_STEP_AHEAD, 0, 2, 4, 3 },
						  { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } };
	struct rig rig;
	int synced;

	(void)state;
	open_rig(&rig, test_width(0), 64, 64);
	do_steps(&rig, &rig.writer, steps, 4, &synced);
	assert_int_equal(synced, 0);
	close_rig(&rig);
}

/* A cache with a policy that the kernel was not built with: no line comes, nor goes, by another policy. */
void test_a_kernel_without_the_policy(void **state)
{
	static const struct test_step steps[] = { { TEST_STEP_AHEAD, 0, 2, 4, 0 },
						  { TEST_STEP_ACQUIRE, 0, 3, 0, 0 },
						  { TEST_STEP_WAIT, 0, 3, 0, WEIR_E_POLICY },
						  { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } };
	struct weir_cache_stats stats = { .size = sizeof(stats) };
	struct weir_lines lines;
	struct rig rig;
	int synced;

	(void)state;
	open_rig(&rig, test_width(0), 64, 64);
	must(weir_copy_from_device(rig.context, &lines, rig.writer.array.lines, sizeof(lines)));
	lines.policy = WEIR_POLICY_USER;
	must(weir_copy_to_device(rig.context, rig.writer.array.lines, &lines, sizeof(lines)));
	do_steps(&rig, &rig.writer, steps, 4, &synced);
	assert_int_equal(synced, -EIO);
	assert_non_null(strstr(weir_last_error(), "WEIR_USER_POLICY"));
	must(weir_cache_stats(rig.cache, &stats));
	assert_int_equal(stats.misses, 0);
	close_rig(&rig);
}

/* A cache with a tier that the kernel knows nothing of: no line goes to a buffer past a copy there. */
void test_a_kernel_without_a_tier(void **state)
{
#ifndef WEIR_TIER /* not all kernels of this build have code for a tier (-Dtier=true) */
	static const struct test_step steps[] = { { TEST_STEP_ACQUIRE, 0, 3, 0, 0 },
						  { TEST_STEP_WAIT, 0, 3, 0, WEIR_E_TIER },
						  { TEST_STEP_RELEASE, 0, 3, 0, WEIR_OK } };
	struct weir_lines lines;
	struct rig rig;
	int synced;

	open_rig(&rig, test_width(0), 64, 64);
	must(weir_copy_from_device(rig.context, &lines, rig.writer.array.lines, sizeof(lines)));
	lines.tier = alloc(&rig, sizeof(struct weir_tier));
	must(weir_copy_to_device(rig.context, rig.writer.array.lines, &lines, sizeof(lines)));
	do_steps(&rig, &rig.writer, steps, 3, &synced);
	assert_int_equal(synced, -EIO);
	assert_non_null(strstr(weir_last_error(), "WEIR_TIER"));
	assert_int_equal(shares_of(&rig).registered, 0);
	lines.tier = 0;
	must(weir_copy_to_device(rig.context, rig.writer.array.lines, &lines, sizeof(lines)));
	close_rig(&rig);
#endif
	(void)state;
}
