/* SPDX-License-Identifier: BSD-3-Clause */
/* What weir-engine prints of an engine, and how it ends: a stand-in has numbers of its own for everything. */
#include "capture.h"

#include <errno.h>

#include <weir/weir.h>

#include "backend/error.h"
#include "engine/engine.h"

/* More than 32 bits hold. */
static const uint64_t large = UINT64_C(1) << 33;

/** stand_in - the engine: what it is asked for, and its answers */
static struct {
	struct weir_medium behind, medium;
	struct weir_medium_file_options file;
	struct weir_engine_options options;
	int error;
	unsigned closed, behind_closed, bad;
	struct nvme_volume_engine_status status;
	struct weir_engine_wear wear;
	struct weir_engine_checked checked;
	struct nvme_volume volumes[2];
} stand_in;

static void close_engine_medium(struct weir_medium *medium)
{
	stand_in.closed += medium == &stand_in.medium;
	stand_in.behind_closed += medium == &stand_in.behind;
}

static const struct weir_medium_ops ops = { .size = sizeof(ops), .close = close_engine_medium };

static int open_file(const char *path, const struct weir_medium_file_options *options,
		     struct weir_medium **out)
{
	(void)path;
	stand_in.file = *options;
	stand_in.behind = stand_in.medium = (struct weir_medium){ .ops = &ops };
	*out = &stand_in.behind;
	return 0;
}

static int open_stand_in(const struct weir_engine_options *options, struct weir_engine **out)
{
	stand_in.options = *options;
	*out = (struct weir_engine *)&stand_in;
	return stand_in.error ? weir_fail(-stand_in.error, "it does not open") : 0;
}

static struct weir_medium *medium_of(struct weir_engine *engine)
{
	(void)engine;
	return &stand_in.medium;
}

static void get_status(struct weir_engine *engine, struct nvme_volume_engine_status *status)
{
	(void)engine;
	*status = stand_in.status;
}

static void get_wear(struct weir_engine *engine, struct weir_engine_wear *wear)
{
	(void)engine;
	*wear = stand_in.wear;
}

static u64 volume_blocks(struct weir_engine *engine, u32 vid)
{
	(void)engine;
	return large + vid;
}

/* The first volume from number CDW10 on. */
static u32 admin(struct weir_engine *engine, const char *host, const struct nvme_sqe *sqe, void *page)
{
	(void)engine;
	(void)host;
	for (unsigned i = 0; i < 2; i++)
		if (stand_in.volumes[i].vid >= sqe->cdw10) {
			memcpy(page, &stand_in.volumes[i], sizeof(stand_in.volumes[i]));
			return 0;
		}
	return NVME_STATUS_VOLUME_UNKNOWN;
}

static void check_stand_in(struct weir_engine *engine, struct weir_engine_checked *checked,
			   void (*bad)(u32 vid, u32 vba, u64 version))
{
	(void)engine;
	for (unsigned i = 0; i < stand_in.bad; i++)
		bad(3, UINT32_MAX - i, large);
	*checked = stand_in.checked;
}

static int run_engine(int count, char **words);

#undef fail /* cmocka's */
#define weir_medium_file_open          open_file
#define weir_engine_open               open_stand_in
#define weir_engine_medium             medium_of
#define weir_engine_status             get_status
#define weir_engine_wear(engine, wear) get_wear(engine, wear)
#define weir_engine_volume_blocks      volume_blocks
#define weir_engine_admin              admin
#define weir_engine_check              check_stand_in
#define main                           run_engine
#include "tools/weir-engine/main.c"
#undef main

static int begin(void **state)
{
	(void)state;
	task = (struct task){ .path = NULL };
	memset(&stand_in, 0, sizeof(stand_in));
	stand_in.status = (struct nvme_volume_engine_status){ .blocks = large + 1,
							      .used = large + 2,
							      .user_writes = large,
							      .medium_writes = 5 * (large / 2),
							      .erases = 90,
							      .erases_most = 91,
							      .bad_blocks = large + 3,
							      .refused = 92,
							      .map_epoch = 12,
							      .repaired = large + 4 };
	stand_in.wear = (struct weir_engine_wear){
		.erase_blocks = 21, .count = 22, .least = 23, .most = 24, .free = 25
	};
	stand_in.volumes[0] = (struct nvme_volume){ .vid = 3,
						    .replicas = 2,
						    .blocks = large + 5,
						    .lease_epoch = 31,
						    .lease_client = 32,
						    .name = "first" };
	stand_in.volumes[1] = (struct nvme_volume){ .vid = 9,
						    .replicas = 4,
						    .blocks = large + 6,
						    .lease_epoch = 33,
						    .lease_client = 34,
						    .name = "second" };
	return 0;
}

/* It was opened to be read by one that nobody shares it with, and closed. */
static void expect_read(void)
{
	assert_true(stand_in.file.read_only && stand_in.file.alone);
	assert_int_equal(stand_in.file.block_bytes, NVME_VOLUME_BLOCK_BYTES);
	assert_true(stand_in.options.read_only && !stand_in.options.format);
	assert_ptr_equal(stand_in.options.behind, &stand_in.behind);
	assert_int_equal(stand_in.closed, 1);
}

static void test_show_has_all_numbers(void **state)
{
	(void)state;
	assert_int_equal(capture_run(run_engine, "weir-engine show e.img --json"), 0);
	capture_expect_json(
		captured,
		"{\"blocks\": 8589934593, \"used\": 8589934594, \"user_writes\": 8589934592,"
		" \"medium_writes\": 21474836480, \"write_amplification\": 2.5,"
		" \"bad_blocks\": 8589934595, \"repaired\": 8589934596,"
		" \"erase_blocks\": {\"count\": 22, \"of_blocks\": 21, \"free\": 25,"
		" \"erases_least\": 23, \"erases_most\": 24}, \"map_epoch\": 12, \"volumes\": ["
		"{\"name\": \"first\", \"vid\": 3, \"blocks\": 8589934597, \"blocks_here\": 8589934595,"
		" \"replicas\": 2, \"lease_epoch\": 31, \"lease_client\": 32},"
		"{\"name\": \"second\", \"vid\": 9, \"blocks\": 8589934598, \"blocks_here\": 8589934601,"
		" \"replicas\": 4, \"lease_epoch\": 33, \"lease_client\": 34}]}");
	expect_read();
}

static void test_show_as_text(void **state)
{
	(void)state;
	assert_int_equal(capture_run(run_engine, "weir-engine show e.img"), 0);
	assert_string_equal(
		captured,
		"8589934594 of 8589934593 blocks of 4 KiB in use, map epoch 12\n"
		"8589934592 blocks written by clients, 21474836480 to the medium: write amplification 2.50\n"
		"22 erase blocks of 21 blocks, 25 free; erased 23 to 24 times\n"
		"volume 3 \"first\": 8589934595 of 8589934597 blocks are here; 2 replicas, lease epoch 31 of "
		"client 32\n"
		"volume 9 \"second\": 8589934601 of 8589934598 blocks are here; 4 replicas, lease epoch 33 "
		"of "
		"client 34\n");
	expect_read();
}

static void test_no_writes_are_no_amplification(void **state)
{
	(void)state;
	stand_in.status.user_writes = 0;
	assert_int_equal(capture_run(run_engine, "weir-engine show e.img"), 0);
	assert_non_null(strstr(captured, "write amplification 1.00\n"));
}

/* Each of the four that are not to be, alone. */
static void test_check_ends_by_each_fault(void **state)
{
	static const char *const as_text[] = { "1 damaged, 0 lost, 0 of no volume, 0",
					       "0 damaged, 1 lost, 0 of no volume, 0",
					       "0 damaged, 0 lost, 1 of no volume, 0",
					       "0 damaged, 0 lost, 0 of no volume, 1" };
	struct weir_engine_checked *checked = &stand_in.checked;
	uint64_t *const faults[] = { &checked->bad, &checked->lost, &checked->orphans, &checked->miscounted };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		begin(NULL);
		*faults[i] = 1;
		assert_int_equal(capture_run(run_engine, "weir-engine check e.img"), 1);
		assert_non_null(strstr(captured, as_text[i]));
		expect_read();
		begin(NULL);
		*faults[i] = large << 8; /* none of it in the low 32 bits, which are an exit status's */
		assert_int_equal(capture_run(run_engine, "weir-engine check e.img --json"), 1);
	}
	begin(NULL);
	*checked = (struct weir_engine_checked){ .blocks = large, .tombstones = large + 1 };
	assert_int_equal(capture_run(run_engine, "weir-engine check e.img"), 0);
	assert_non_null(strstr(captured, "8589934592 blocks and 8589934593 tombstones: 0 damaged"));
}

static void test_check_has_all_numbers(void **state)
{
	(void)state;
	stand_in.bad = 2;
	stand_in.checked = (struct weir_engine_checked){ large + 1, large + 2, large + 3,
							 large + 4, large + 5, large + 6 };
	assert_int_equal(capture_run(run_engine, "weir-engine check e.img --json"), 1);
	capture_expect_json(captured,
			    "{\"blocks\": 8589934593, \"tombstones\": 8589934594, \"bad\": 8589934595,"
			    " \"lost\": 8589934596, \"orphans\": 8589934597, \"miscounted\": 8589934598}");
	assert_string_equal(
		captured_errors,
		"weir-engine: volume 3, block 4294967295, version 8589934592: its data is damaged\n"
		"weir-engine: volume 3, block 4294967294, version 8589934592: its data is damaged\n");
}

static void test_what_does_not_open_is_said(void **state)
{
	static const char *const lines[] = { "weir-engine show e.img", "weir-engine show e.img --json",
					     "weir-engine check e.img",
					     "weir-engine format none.img --force" };

	(void)state;
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		begin(NULL);
		stand_in.error = -EINVAL;
		assert_int_equal(capture_run(run_engine, lines[i]), 1);
		assert_string_equal(captured, "");
		assert_string_equal(captured_errors, "weir-engine: it does not open\n");
		assert_int_equal(stand_in.behind_closed, 1);
		assert_int_equal(stand_in.closed, 0);
	}
}

static void test_format_makes_an_empty_one(void **state)
{
	(void)state;
	assert_int_equal(capture_run(run_engine, "weir-engine format none.img --force"), 0);
	assert_string_equal(captured, "none.img: an engine with room for 8589934593 blocks of 4 KiB\n");
	assert_true(stand_in.options.format && !stand_in.options.read_only && !stand_in.file.read_only);
	assert_true(stand_in.file.alone);
	assert_int_equal(stand_in.closed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_show_has_all_numbers, begin),
		cmocka_unit_test_setup(test_show_as_text, begin),
		cmocka_unit_test_setup(test_no_writes_are_no_amplification, begin),
		cmocka_unit_test_setup(test_check_ends_by_each_fault, begin),
		cmocka_unit_test_setup(test_check_has_all_numbers, begin),
		cmocka_unit_test_setup(test_what_does_not_open_is_said, begin),
		cmocka_unit_test_setup(test_format_makes_an_empty_one, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
