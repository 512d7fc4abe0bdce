/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_arbiter_test.c: volumes that want more than the medium behind gives, and who gets how much of it. */
#include "engine_direct.h"

#include "engine/parts.h"

enum {
	BYTES = 64 << 20,
	FIRST = 7,
	SECOND = 8,
	MOST_READS = 4096,
	VOLUME_BLOCKS = 256,
	LONGEST = 64, /* blocks of a read */
};

/**
 * struct slow - a medium that keeps reads until it is polled, and ends one for each poll then
 * @room: reads that it takes at a time
 */
struct slow {
	struct lossy lossy;
	struct weir_medium_ops ops;
	bool keeps;
	u32 room;
	struct weir_io *kept[MOST_READS];
	u32 first;
	u32 count;
};

static bool slow_submit(struct weir_medium *medium, struct weir_io *io)
{
	struct slow *slow = (struct slow *)medium;

	if (!slow->keeps || io->kind != WEIR_IO_READ)
		return lossy_submit(medium, io);
	if (slow->count == slow->room)
		return false;
	slow->kept[(slow->first + slow->count++) % MOST_READS] = io;
	return true;
}

static unsigned slow_poll(struct weir_medium *medium, unsigned thread)
{
	struct slow *slow = (struct slow *)medium;
	struct weir_io *io;

	(void)thread;
	if (!slow->count)
		return 0;
	io = slow->kept[slow->first++ % MOST_READS];
	slow->count--;
	(void)lossy_submit(medium, io);
	return 1;
}

/** struct reading - a read of @blocks of volume @vid; ends are counted by volume, in blocks */
struct reading {
	struct weir_io io;
	struct iovec iov;
};

static struct slow slow;
static struct weir_engine *engine;
static struct reading readings[MOST_READS];
static u32 reading_count;
static u64 ended[SECOND + 1]; /* blocks, by volume */
static unsigned char data[LONGEST * BLOCK];

static void reading_done(struct weir_io *io)
{
	assert_int_equal(io->status, 0);
	ended[io->offset_bytes / BLOCK >> 32] += io->bytes / BLOCK;
}

static void submit_read(u32 vid, u32 blocks)
{
	struct weir_medium *medium = weir_engine_medium(engine);
	struct reading *reading = &readings[reading_count++];

	assert_true(reading_count <= MOST_READS);
	reading->iov = (struct iovec){ data, (size_t)blocks * BLOCK };
	reading->io = (struct weir_io){ .kind = WEIR_IO_READ,
					.offset_bytes = weir_engine_offset(vid, 0),
					.bytes = (u64)blocks * BLOCK,
					.iov = &reading->iov,
					.iov_count = 1,
					.epochs = direct_epochs(),
					.done = reading_done };
	assert_true(medium->ops->submit(medium, &reading->io));
}

static void make_volume(u32 vid, u32 weight)
{
	struct nvme_volume volume = { .vid = vid,
				      .replicas = 1,
				      .unit_log2 = 8,
				      .weight = weight,
				      .blocks = 1 << 20,
				      .name = "volume" };

	assert_int_equal(
		weir_engine_admin(
			engine, NULL,
			&(struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_ADD, .cdw10 = vid, .cdw13 = MAP },
			&volume),
		0);
	assert_int_equal(weir_engine_admin(engine, NULL,
					   &(struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_LEASE,
							       .cdw10 = vid,
							       .cdw11 = LEASE,
							       .cdw12 = CLIENT,
							       .cdw13 = MAP },
					   NULL),
			 0);
	for (u32 i = 0; i < VOLUME_BLOCKS; i++) {
		struct direct direct = { .io = { .kind = WEIR_IO_WRITE,
						 .offset_bytes = weir_engine_offset(vid, i),
						 .bytes = BLOCK,
						 .iov_count = 1,
						 .version = direct_version(1),
						 .epochs = direct_epochs(),
						 .done = direct_done },
					 .iov = { data, BLOCK } };
		struct weir_medium *medium = weir_engine_medium(engine);

		direct.io.iov = &direct.iov;
		assert_true(medium->ops->submit(medium, &direct.io));
		assert_true(direct.ended && !direct.io.status);
	}
}

static void open_volumes(u32 weight, u32 other_weight)
{
	memset(&slow, 0, sizeof(slow));
	lossy_create(&slow.lossy, BYTES);
	slow.ops = *slow.lossy.medium.ops;
	slow.ops.submit = slow_submit;
	slow.ops.poll = slow_poll;
	slow.lossy.medium.ops = &slow.ops;
	slow.room = MOST_READS;
	engine = direct_open(&slow.lossy);
	assert_non_null(engine);
	assert_int_equal(direct_map(engine, MAP), 0);
	make_volume(FIRST, weight);
	make_volume(SECOND, other_weight);
	memset(ended, 0, sizeof(ended));
	reading_count = 0;
	slow.keeps = true;
}

static void poll_times(u32 times)
{
	struct weir_medium *medium = weir_engine_medium(engine);

	for (u32 i = 0; i < times; i++)
		medium->ops->poll(medium, 0);
}

static void close_volumes(u64 first, u64 second)
{
	poll_times(2 * MOST_READS);
	assert_int_equal(ended[FIRST], first);
	assert_int_equal(ended[SECOND], second);
	direct_close(engine);
	lossy_destroy(&slow.lossy);
}

/* What was begun before there was anything to choose from does not count. */
static void past_the_window(void)
{
	while (ended[FIRST] + ended[SECOND] < ENGINE_WINDOW_BLOCKS)
		poll_times(1);
	memset(ended, 0, sizeof(ended));
}

static void test_shares_as_weights_say(void **state)
{
	u64 first, second;

	(void)state;
	open_volumes(100, 300);
	for (u32 i = 0; i < 1500; i++) {
		submit_read(FIRST, 1);
		submit_read(SECOND, 1);
	}
	past_the_window();
	poll_times(800);
	first = ended[FIRST], second = ended[SECOND];
	assert_in_range(first, 198, 202);
	assert_in_range(second, 598, 602);
	close_volumes(1500 - ENGINE_WINDOW_BLOCKS / 2, 1500 - ENGINE_WINDOW_BLOCKS / 2);
}

static void test_shares_are_of_blocks(void **state)
{
	(void)state;
	open_volumes(100, 100);
	for (u32 i = 0; i < 40; i++)
		submit_read(FIRST, LONGEST);
	for (u32 i = 0; i < 1000; i++)
		submit_read(SECOND, 1);
	past_the_window();
	while (ended[FIRST] + ended[SECOND] < 1600)
		poll_times(1);
	assert_in_range(ended[FIRST], 800 - LONGEST, 800 + LONGEST);
	close_volumes(40 * LONGEST - ENGINE_WINDOW_BLOCKS, 1000);
}

/* Whatever others have queued, a read of a volume that has none begins next. */
static void test_few_wait_for_few(void **state)
{
	(void)state;
	open_volumes(100, 1);
	for (u32 i = 0; i < 3000; i++)
		submit_read(FIRST, 1);
	for (u32 i = 0; i < 3; i++) {
		u64 before = ended[FIRST];

		submit_read(SECOND, 1);
		while (ended[SECOND] == i)
			poll_times(1);
		assert_in_range(ended[FIRST] - before, 1, ENGINE_WINDOW_BLOCKS + 1 + 100 * i);
	}
	close_volumes(3000, 3);
}

/* Neither a volume that was idle, nor one that was busy alone, has an advantage afterwards. */
static void test_no_time_is_saved_up(void **state)
{
	(void)state;
	open_volumes(100, 100);
	for (u32 i = 0; i < 500; i++) {
		submit_read(FIRST, 1);
		poll_times(1);
	}
	for (u32 i = 0; i < 1500; i++) {
		submit_read(SECOND, 1);
		submit_read(FIRST, 1);
	}
	memset(ended, 0, sizeof(ended));
	past_the_window();
	poll_times(400);
	assert_in_range(ended[FIRST], 198, 202);
	assert_in_range(ended[SECOND], 198, 202);
	close_volumes(1500 - ENGINE_WINDOW_BLOCKS / 2, 1500 - ENGINE_WINDOW_BLOCKS / 2);
}

/* One volume alone has as much under way as there may be. */
static void test_alone_has_all(void **state)
{
	(void)state;
	open_volumes(1, 1000);
	for (u32 i = 0; i < 1000; i++)
		submit_read(FIRST, 1);
	assert_int_equal(slow.count, ENGINE_WINDOW_BLOCKS);
	for (u32 i = 0; i < 400; i++) {
		poll_times(1);
		assert_int_equal(slow.count, ENGINE_WINDOW_BLOCKS);
	}
	close_volumes(1000, 0);
}

/* The medium behind takes fewer than that. */
static void test_a_medium_that_takes_few(void **state)
{
	u64 before, other;

	(void)state;
	open_volumes(100, 300);
	slow.room = 8;
	for (u32 i = 0; i < 1000; i++) {
		submit_read(FIRST, 1 + i % 3);
		submit_read(SECOND, 1);
	}
	poll_times(400);
	before = ended[FIRST], other = ended[SECOND];
	poll_times(400);
	assert_in_range(ended[FIRST] - before, (ended[SECOND] - other) * 3 / 10,
			(ended[SECOND] - other) * 4 / 10);
	close_volumes(334 + 333 * 2 + 333 * 3, 1000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares_as_weights_say), cmocka_unit_test(test_shares_are_of_blocks),
		cmocka_unit_test(test_few_wait_for_few),      cmocka_unit_test(test_no_time_is_saved_up),
		cmocka_unit_test(test_alone_has_all),         cmocka_unit_test(test_a_medium_that_takes_few),
	};

	return cmocka_run_group_tests_name("engine_arbiter", tests, NULL, NULL);
}
