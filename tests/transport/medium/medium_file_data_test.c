/* SPDX-License-Identifier: BSD-3-Clause */
/* medium_file_data_test.c: what is read is what is there, however it is asked for. */
#include "medium_file_rig.h"

enum {
	FILE_BYTES = 2 << 20,
	SLAB_BYTES = 512 << 10,
	SEGMENTS = 24,
	ROUNDS = 300,
	SEED = 1,
};

/* A way to reach the bytes, and memory of either kind. */
struct way {
	enum weir_direct direct;
	uint32_t block_bytes;
	bool registered;
	unsigned odd; /* segments begin at multiples of this and are so long: 512, 4 or 1 */
};

struct world {
	char name[RIG_NAME_BYTES];
	struct weir_medium *medium;
	unsigned char *slab;
	unsigned char *shadow; /* what the file must hold */
	uint64_t random;
};

static uint64_t roll(struct world *world, uint64_t below)
{
	world->random = world->random * 6364136223846793005u + 1442695040888963407u;
	return (world->random >> 33) % below;
}

/* False where the file system does not know O_DIRECT. */
static bool world_open(struct world *world, const struct way *way, const char *folder)
{
	struct weir_medium_file_options options = rig_options(way->direct);
	int error;

	memset(world, 0, sizeof(*world));
	world->random = way->odd + way->block_bytes;
	rig_file(world->name, folder, FILE_BYTES, SEED);
	options.block_bytes = way->block_bytes;
	error = weir_medium_file_open(world->name, &options, &world->medium);
	if (error && way->direct == WEIR_DIRECT_ON) {
		assert_says("direct=auto");
		unlink(world->name);
		print_message("# SKIPPED, NOT TESTED HERE: O_DIRECT in %s\n", folder);
		return false;
	}
	if (error)
		fail_msg("%s", weir_last_error());
	world->slab = rig_memory(SLAB_BYTES);
	world->shadow = malloc(FILE_BYTES);
	rig_fill(world->shadow, 0, FILE_BYTES, SEED);
	if (way->registered)
		rig_register(world->medium, 0, world->slab, SLAB_BYTES, 1);
	return true;
}

static void world_check_file(const struct world *world)
{
	unsigned char *content = malloc(FILE_BYTES);
	int fd = open(world->name, O_RDONLY);

	assert_int_equal(pread(fd, content, FILE_BYTES, 0), FILE_BYTES);
	assert_memory_equal(content, world->shadow, FILE_BYTES);
	close(fd);
	free(content);
}

static void world_close(struct world *world)
{
	world->medium->ops->close(world->medium);
	munmap(world->slab, SLAB_BYTES);
	free(world->shadow);
	unlink(world->name);
}

/*
 * Cuts @bytes into segments somewhere in the slab, at times back to back, at
 * times apart; returns how many.
 */
static unsigned cut(struct world *world, struct iovec *iov, uint64_t bytes, unsigned odd)
{
	uint64_t gap = roll(world, 2) ? 4096 : 0;
	uint64_t at = roll(world, 4096 / odd) * odd;
	unsigned count = 0;

	while (bytes) {
		uint64_t length = count == SEGMENTS - 1 ? bytes : (1 + roll(world, bytes / odd)) * odd;

		if (length > bytes || roll(world, 3) == 0)
			length = bytes;
		iov[count].iov_base = world->slab + at;
		iov[count++].iov_len = length;
		at += length + gap;
		bytes -= length;
	}
	return count;
}

static void gather(const struct weir_io *io, unsigned char *flat)
{
	for (unsigned i = 0; i < io->iov_count; i++) {
		memcpy(flat, io->iov[i].iov_base, io->iov[i].iov_len);
		flat += io->iov[i].iov_len;
	}
}

static void one_round(struct world *world, const struct way *way)
{
	static unsigned char flat[64 << 10];
	uint64_t blocks = 1 + roll(world, sizeof(flat) / way->block_bytes);
	struct iovec iov[SEGMENTS];
	struct weir_io io = {
		.kind = roll(world, 3) ? WEIR_IO_READ : WEIR_IO_WRITE,
		.bytes = blocks * way->block_bytes,
		.force_unit_access = roll(world, 8) == 0,
		.iov = iov,
	};

	io.offset_bytes = roll(world, (FILE_BYTES - io.bytes) / way->block_bytes + 1) * way->block_bytes;
	memset(world->slab, 0xee, SLAB_BYTES);
	io.iov_count = cut(world, iov, io.bytes, way->odd);
	if (io.kind == WEIR_IO_WRITE) {
		for (unsigned i = 0; i < io.iov_count; i++)
			rig_fill(iov[i].iov_base, roll(world, 1000), iov[i].iov_len, roll(world, 1000));
		gather(&io, world->shadow + io.offset_bytes);
	}
	assert_int_equal(rig_run(world->medium, &io), NVME_STATUS_SUCCESS);
	gather(&io, flat);
	assert_memory_equal(flat, world->shadow + io.offset_bytes, io.bytes);
}

static void moves_any_bytes_anywhere(void **state)
{
	static const unsigned odds[] = { 512, 4, 1 };
	static const uint32_t blocks[] = { 512, 4096 };

	(void)state;
	for (unsigned i = 0; i < 3 * 2 * 3 * 2; i++) {
		struct way way = {
			.direct = (enum weir_direct)(i % 3),
			.registered = i / 3 % 2,
			.odd = odds[i / 6 % 3],
			.block_bytes = blocks[i / 18],
		};
		struct world world;

		if (!world_open(&world, &way, "/tmp"))
			continue;
		for (int round = 0; round < ROUNDS / 6; round++)
			one_round(&world, &way);
		world_check_file(&world);
		world_close(&world);
	}
}

static void moves_bytes_on_tmpfs(void **state)
{
	struct way way = { WEIR_DIRECT_AUTO, 4096, true, 512 };
	struct world world;

	(void)state;
	assert_true(world_open(&world, &way, "/dev/shm"));
	for (int round = 0; round < ROUNDS; round++)
		one_round(&world, &way);
	world_check_file(&world);
	world_close(&world);
}

/* More segments than one system call takes, so the rest is asked for in a second one. */
static void goes_on_after_a_partial_transfer(void **state)
{
	enum { MANY = 1500 };
	static const enum weir_direct directs[] = { WEIR_DIRECT_AUTO, WEIR_DIRECT_ON, WEIR_DIRECT_OFF };
	unsigned char *memory = rig_memory(MANY * 1024);
	static struct iovec iov[MANY];

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		iov[i] = (struct iovec){ memory + i * 1024, 512 };
	for (unsigned d = 0; d < 4; d++) {
		struct weir_io io = { .kind = WEIR_IO_READ,
				      .offset_bytes = 4096,
				      .bytes = MANY * 512,
				      .iov = iov,
				      .iov_count = MANY };
		struct way way = { directs[d % 3], 512, false, 512 };
		struct world world;

		if (!world_open(&world, &way, d < 3 ? "/tmp" : "/dev/shm"))
			continue;
		assert_int_equal(rig_run(world.medium, &io), 0);
		for (unsigned i = 0; i < MANY; i++)
			assert_true(rig_matches(iov[i].iov_base, 4096 + i * 512, 512, SEED));
		for (unsigned i = 0; i < MANY; i++)
			rig_fill(iov[i].iov_base, i * 512, 512, 20 + d);
		rig_fill(world.shadow + 8192, 0, MANY * 512, 20 + d);
		io.kind = WEIR_IO_WRITE;
		io.offset_bytes = 8192;
		io.thread = 0;
		assert_int_equal(rig_run(world.medium, &io), 0);
		world_check_file(&world);
		world_close(&world);
	}
	munmap(memory, MANY * 1024);
}

/* More in flight than depth: submit refuses, and takes again after a poll. */
static void refuses_past_its_depth_and_recovers(void **state)
{
	struct way way = { WEIR_DIRECT_AUTO, 4096, true, 512 };
	struct weir_io ios[17];
	struct iovec iov[17];
	struct world world;

	(void)state;
	assert_true(world_open(&world, &way, "/tmp"));
	for (int iteration = 0; iteration < 50; iteration++) {
		for (unsigned i = 0; i < 17; i++) {
			iov[i] = (struct iovec){ world.slab + i * 8192, 4096 };
			ios[i] = (struct weir_io){ .kind = WEIR_IO_READ,
						   .bytes = 4096,
						   .offset_bytes = roll(&world, 512) * 4096,
						   .iov = &iov[i],
						   .iov_count = 1,
						   .done = rig_done };
		}
		for (unsigned i = 0; i < 16; i++)
			assert_true(world.medium->ops->submit(world.medium, &ios[i]));
		assert_false(world.medium->ops->submit(world.medium, &ios[16]));
		assert_false(rig_ended(&ios[16]));
		while (!world.medium->ops->submit(world.medium, &ios[16]))
			world.medium->ops->poll(world.medium, 0);
		for (unsigned i = 0; i < 17; i++) {
			assert_int_equal(rig_wait(world.medium, &ios[i]), NVME_STATUS_SUCCESS);
			assert_true(rig_matches(iov[i].iov_base, ios[i].offset_bytes, 4096, SEED));
		}
		assert_int_equal(world.medium->ops->poll(world.medium, 0), 0);
	}
	world_close(&world);
}

static void zero_round(struct world *world, uint64_t offset, uint64_t bytes, bool durable)
{
	struct weir_io io = {
		.kind = WEIR_IO_ZERO, .offset_bytes = offset, .bytes = bytes, .force_unit_access = durable
	};

	assert_int_equal(rig_run(world->medium, &io), NVME_STATUS_SUCCESS);
	memset(world->shadow + offset, 0, bytes);
	world_check_file(world);
}

/* tmpfs has no ZERO_RANGE: there zeros are written. */
static void zeroes_exactly_what_is_asked(void **state)
{
	static const char *const folders[] = { "/tmp", "/dev/shm" };
	struct way way = { WEIR_DIRECT_AUTO, 512, false, 512 };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct world world;

		way.direct = i / 2 ? WEIR_DIRECT_OFF : WEIR_DIRECT_AUTO;
		assert_true(world_open(&world, &way, folders[i % 2]));
		zero_round(&world, 512, 512, false);
		zero_round(&world, 8192, 4096, true);
		zero_round(&world, 65536 + 512, 3 * 65536 + 1536, true);
		zero_round(&world, FILE_BYTES - 512, 512, false);
		world_close(&world);
	}
}

/* A file that ends within a block: @bytes of it, and nothing behind them. */
static void check_end(const char *name, const unsigned char *expected, uint64_t bytes)
{
	unsigned char found[16384];
	int fd = open(name, O_RDONLY);

	assert_int_equal(pread(fd, found, sizeof(found), 0), bytes);
	assert_memory_equal(found, expected, bytes);
	close(fd);
}

static void end_round(enum weir_direct direct, const char *folder)
{
	enum { BYTES = 9000, BLOCKS_BYTES = 9216 };
	static const uint64_t cuts[] = { 512, 2560, 512, 4609,
					 511 }; /* the file ends in the last but one; 8704 in all */
	struct weir_medium_file_options options = rig_options(direct);
	unsigned char *memory = rig_memory(65536), expected[BLOCKS_BYTES];
	struct iovec iov[5];
	struct weir_io io = { .kind = WEIR_IO_WRITE,
			      .offset_bytes = 512,
			      .bytes = 8704,
			      .iov = iov,
			      .iov_count = 5,
			      .force_unit_access = true };
	struct weir_medium *medium;
	char name[RIG_NAME_BYTES];

	memset(expected, 0, sizeof(expected));
	rig_file(name, folder, BYTES, SEED);
	rig_fill(expected, 0, BYTES, SEED);
	if (weir_medium_file_open(name, &options, &medium)) {
		assert_int_equal(direct, WEIR_DIRECT_ON);
		print_message("# SKIPPED, NOT TESTED HERE: O_DIRECT in %s\n", folder);
		unlink(name);
		return;
	}
	assert_int_equal(medium->bytes, BLOCKS_BYTES);
	assert_int_equal(medium->end_bytes, BYTES);
	for (unsigned i = 0, at = 0; i < 5; at += 8192, i++) {
		iov[i] = (struct iovec){ memory + at, cuts[i] };
		memset(iov[i].iov_base, (int)(0x10 + i), cuts[i]);
	}
	assert_int_equal(rig_run(medium, &io), 0);
	for (unsigned i = 0, at = 512; i < 5; at += cuts[i], i++)
		memset(expected + at, (int)(0x10 + i), cuts[i]);
	memset(expected + BYTES, 0, BLOCKS_BYTES - BYTES);
	check_end(name, expected, BYTES);
	assert_int_equal(rig_io(medium, WEIR_IO_WRITE, 8704, memory, 512), 0);
	memcpy(expected + 8704, memory, BYTES - 8704);
	check_end(name, expected, BYTES);
	assert_int_equal(rig_io(medium, WEIR_IO_ZERO, 8192, NULL, 1024), 0);
	memset(expected + 8192, 0, 1024);
	check_end(name, expected, BYTES);
	assert_int_equal(rig_io(medium, WEIR_IO_DISCARD, 8704, NULL, 512), 0);
	check_end(name, expected, BYTES);
	for (u64 at = 8192; at <= 8704; at += 512) { /* what is behind the end reads as zeros */
		memset(memory, 0xee, 1024);
		assert_int_equal(rig_io(medium, WEIR_IO_READ, at, memory, BLOCKS_BYTES - at), 0);
		assert_memory_equal(memory, expected + at, BLOCKS_BYTES - at);
	}
	assert_int_equal(truncate(name, BLOCKS_BYTES),
			 0); /* by somebody else; what comes there is no part of the storage */
	assert_int_equal(rig_io(medium, WEIR_IO_WRITE, 8704, memory, 512), 0);
	memcpy(expected + 8704, memory, BYTES - 8704);
	check_end(name, expected, BLOCKS_BYTES);
	memset(memory, 0xee, 512);
	assert_int_equal(rig_io(medium, WEIR_IO_READ, 8704, memory, 512), 0);
	assert_memory_equal(memory, expected + 8704, 512);
	medium->ops->close(medium);
	munmap(memory, 65536);
	unlink(name);
}

static void keeps_a_file_at_its_size(void **state)
{
	(void)state;
	end_round(WEIR_DIRECT_OFF, "/tmp");
	end_round(WEIR_DIRECT_ON, "/tmp");
	end_round(WEIR_DIRECT_AUTO, "/tmp");
	end_round(WEIR_DIRECT_AUTO, "/dev/shm");
}

static void discards_as_a_hint(void **state)
{
	static const char *const folders[] = { "/tmp", "/dev/shm" };
	struct way way = { WEIR_DIRECT_AUTO, 4096, false, 512 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct world world;
		unsigned char *at;

		assert_true(world_open(&world, &way, folders[i]));
		at = world.slab;
		assert_int_equal(rig_io(world.medium, WEIR_IO_DISCARD, 8192, NULL, 65536), 0);
		assert_int_equal(rig_io(world.medium, WEIR_IO_READ, 4096, at, 65536 + 8192), 0);
		assert_true(rig_matches(at, 4096, 4096, SEED));
		assert_true(rig_is_filled(at + 4096, 65536, 0) || rig_matches(at + 4096, 8192, 65536, SEED));
		assert_true(rig_matches(at + 4096 + 65536, 8192 + 65536, 4096, SEED));
		world_close(&world);
	}
}

static void flushes_and_passes_empty_requests(void **state)
{
	struct way way = { WEIR_DIRECT_AUTO, 4096, false, 512 };
	struct world world;

	(void)state;
	assert_true(world_open(&world, &way, "/tmp"));
	assert_int_equal(rig_io(world.medium, WEIR_IO_FLUSH, 0, NULL, 0), 0);
	assert_int_equal(rig_io(world.medium, WEIR_IO_READ, 0, NULL, 0), 0);
	assert_int_equal(rig_io(world.medium, WEIR_IO_ZERO, 0, NULL, 0), 0);
	assert_int_equal(rig_io(world.medium, WEIR_IO_READ, FILE_BYTES, world.slab, 4096),
			 NVME_STATUS_LBA_OUT_OF_RANGE);
	assert_int_equal(rig_io(world.medium, WEIR_IO_ZERO, FILE_BYTES - 4096, NULL, 8192),
			 NVME_STATUS_LBA_OUT_OF_RANGE);
	assert_int_equal(rig_io(world.medium, WEIR_IO_WRITE, UINT64_MAX - 4095, world.slab, 4096),
			 NVME_STATUS_LBA_OUT_OF_RANGE);
	world_check_file(&world);
	world_close(&world);
}

/* The same address, registered anew over new memory, must not lead to the old pages. */
static void follows_memory_that_is_replaced(void **state)
{
	struct way way = { WEIR_DIRECT_AUTO, 4096, true, 512 };
	struct world world;

	(void)state;
	assert_true(world_open(&world, &way, "/tmp"));
	for (unsigned id = 2; id < 40; id++) {
		void *again;

		munmap(world.slab, SLAB_BYTES);
		again = mmap(world.slab, SLAB_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		assert_ptr_equal(again, world.slab);
		rig_register(world.medium, 0, world.slab, id % 3 ? SLAB_BYTES : 4096, id);
		assert_int_equal(rig_io(world.medium, WEIR_IO_READ, id * 4096, world.slab, 16384), 0);
		assert_true(rig_matches(world.slab, id * 4096, 16384, SEED));
	}
	for (unsigned id = 40; id < 50;
	     id++) { /* it goes while a request that is not handed over yet names it */
		struct iovec iov = { world.slab, 4096 };
		struct weir_io io = { .kind = WEIR_IO_READ,
				      .offset_bytes = id * 4096,
				      .bytes = 4096,
				      .iov = &iov,
				      .iov_count = 1,
				      .done = rig_done };

		rig_register(world.medium, 0, world.slab, SLAB_BYTES, id);
		assert_true(world.medium->ops->submit(world.medium, &io));
		rig_register(world.medium, 0, NULL, 0, 100 + id);
		assert_int_equal(rig_wait(world.medium, &io), 0);
		assert_true(rig_matches(world.slab, id * 4096, 4096, SEED));
	}
	rig_register(world.medium, 0, NULL, 0, 99);
	assert_int_equal(rig_io(world.medium, WEIR_IO_READ, 0, world.slab, 4096), 0);
	assert_true(rig_matches(world.slab, 0, 4096, SEED));
	world_close(&world);
}

/* Blocks 4 GiB apart, in a file of holes: each is written and read where it is. */
static void keeps_far_offsets_apart(void **state)
{
	static const char *const folders[] = { "/tmp", "/dev/shm" };
	static const uint64_t at[] = { 4096, ((uint64_t)1 << 32) + 4096, ((uint64_t)1 << 33) + 4096,
				       ((uint64_t)5 << 32) + 4096 };

	(void)state;
	for (unsigned i = 0; i < 2 * 3; i++) {
		struct way way = { (enum weir_direct)(i / 2), 4096, false, 512 };
		struct weir_medium_file_options options = rig_options(way.direct);
		struct world world;

		if (!world_open(&world, &way, folders[i % 2]))
			continue;
		world.medium->ops->close(world.medium);
		assert_int_equal(truncate(world.name, (off_t)6 << 32), 0);
		assert_int_equal(weir_medium_file_open(world.name, &options, &world.medium), 0);
		assert_true(world.medium->bytes == (uint64_t)6 << 32);
		for (unsigned k = 0; k < 4; k++) {
			rig_fill(world.slab, 0, 4096, 30 + k);
			assert_int_equal(rig_io(world.medium, WEIR_IO_WRITE, at[k], world.slab, 4096), 0);
		}
		for (unsigned k = 0; k < 4; k++) /* what lies behind the end, by any part of its offset */
			assert_int_equal(rig_io(world.medium, WEIR_IO_READ, at[k] + ((uint64_t)6 << 32),
						world.slab, 4096),
					 NVME_STATUS_LBA_OUT_OF_RANGE);
		assert_int_equal(rig_io(world.medium, WEIR_IO_ZERO, at[3], NULL, 512), 0);
		for (unsigned k = 0; k < 4; k++) {
			assert_int_equal(rig_io(world.medium, WEIR_IO_READ, at[k], world.slab, 8192), 0);
			assert_true(rig_matches(world.slab + 512, 512, 4096 - 512, 30 + k));
			assert_true(k == 3 ? rig_is_filled(world.slab, 512, 0)
					   : rig_matches(world.slab, 0, 512, 30 + k));
			assert_true(k ? rig_is_filled(world.slab + 4096, 4096, 0)
				      : rig_matches(world.slab + 4096, 8192, 4096, SEED));
		}
		world_close(&world);
	}
}

/* 1 GiB is the most one registered buffer can be; two pieces then, and reads across the seam. */
static void splits_regions_above_a_gibibyte(void **state)
{
	enum { CHUNK = 2 << 20, CHUNKS = 513 };
	struct way way = { WEIR_DIRECT_AUTO, 4096, false, 512 };
	uint64_t bytes = (uint64_t)CHUNK * CHUNKS;
	int memory = memfd_create("weir-test", MFD_CLOEXEC);
	struct world world;
	char *base;

	(void)state;
	assert_true(world_open(&world, &way, "/tmp"));
	assert_int_equal(ftruncate(memory, CHUNK), 0);
	base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (unsigned i = 0; i < CHUNKS; i++) /* the same few pages, over and over */
		assert_true(mmap(base + (size_t)i * CHUNK, CHUNK, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED, memory, 0) != MAP_FAILED);
	rig_register(world.medium, 0, base, bytes, 1);
	print_message("# 1026 MiB: %s\n", weir_medium_path(world.medium));
	for (unsigned i = 0; i < 3; i++) {
		char *at = base + (1ull << 30) - 4096 + i * 4096ull - (i == 1 ? 2048 : 0);

		assert_int_equal(rig_io(world.medium, WEIR_IO_READ, i * 8192, at, 4096), 0);
		assert_true(rig_matches(at, i * 8192, 4096, SEED));
	}
	world_close(&world);
	munmap(base, bytes);
	close(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_any_bytes_anywhere),
		cmocka_unit_test(moves_bytes_on_tmpfs),
		cmocka_unit_test(goes_on_after_a_partial_transfer),
		cmocka_unit_test(refuses_past_its_depth_and_recovers),
		cmocka_unit_test(zeroes_exactly_what_is_asked),
		cmocka_unit_test(keeps_a_file_at_its_size),
		cmocka_unit_test(discards_as_a_hint),
		cmocka_unit_test(flushes_and_passes_empty_requests),
		cmocka_unit_test(follows_memory_that_is_replaced),
		cmocka_unit_test(splits_regions_above_a_gibibyte),
		cmocka_unit_test(keeps_far_offsets_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
