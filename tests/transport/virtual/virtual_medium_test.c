/* SPDX-License-Identifier: BSD-3-Clause */
/* virtual_medium_test.c: the medium in memory, by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../rig/leaks.h"
#include "transport/medium/medium.h"
#include <weir/nvme.h>

extern const char *weir_last_error(void);

static unsigned ended;

static void done(struct weir_io *io)
{
	(void)io;
	ended++;
}

static uint16_t run(struct weir_medium *medium, enum weir_io_kind kind, uint64_t offset, void *memory,
		    uint64_t bytes)
{
	uint64_t third = memory ? bytes / 3 : 0;
	struct iovec iov[2] = { { memory, third },
				{ memory ? (char *)memory + third : NULL, bytes - third } };
	struct weir_io io = { .kind = kind,
			      .offset_bytes = offset,
			      .bytes = bytes,
			      .iov = iov,
			      .iov_count = memory ? 2 : 0,
			      .status = 0xffff,
			      .done = done };
	unsigned before = ended;

	assert_true(medium->ops->submit(medium, &io));
	assert_int_equal(ended, before + 1);
	return io.status;
}

static void test_bytes(void **state)
{
	static unsigned char memory[4096], zeros[4096];
	struct weir_medium *medium;

	(void)state;
	assert_int_equal(weir_medium_ram_open(1 << 20, 512, NULL, &medium), 0);
	assert_int_equal(medium->bytes, 1 << 20);
	assert_int_equal(medium->block_bytes, 512);
	assert_false(medium->read_only);
	assert_string_equal(medium->path, "ram");
	assert_int_equal(run(medium, WEIR_IO_READ, 8192, memory, 4096), 0);
	assert_memory_equal(memory, zeros, 4096);
	for (unsigned i = 0; i < 4096; i++)
		memory[i] = (unsigned char)(i * 7 >> 3);
	assert_int_equal(run(medium, WEIR_IO_WRITE, 512, memory, 4096), 0);
	assert_int_equal(run(medium, WEIR_IO_FLUSH, 0, NULL, 0), 0);
	assert_int_equal(run(medium, WEIR_IO_ZERO, 1024, NULL, 512), 0);
	memset(memory + 512, 0, 512);
	for (unsigned i = 0; i < 4096; i += 512) {
		unsigned char back[512];

		assert_int_equal(run(medium, WEIR_IO_READ, 512 + i, back, 512), 0);
		assert_memory_equal(back, memory + i, 512);
	}
	assert_int_equal(run(medium, WEIR_IO_READ, (1 << 20) - 512, memory, 1024),
			 NVME_STATUS_LBA_OUT_OF_RANGE);
	assert_int_equal(run(medium, WEIR_IO_ZERO, UINT64_MAX - 511, NULL, 512),
			 NVME_STATUS_LBA_OUT_OF_RANGE);
	assert_int_equal(medium->ops->poll(medium, 0), 0);
	medium->ops->close(medium);
}

/* Around the size from which on whole pages are given back instead of cleared. */
static void test_large_zero(void **state)
{
	static const uint64_t cuts[][2] = {
		{ 512, 262144 - 512 }, { 512, 262144 }, { 4096, 262144 }, { 4608, 300032 }, { 0, 1 << 20 }
	};
	static unsigned char all[1 << 20];
	struct weir_medium *medium;

	(void)state;
	assert_int_equal(weir_medium_ram_open(1 << 20, 512, NULL, &medium), 0);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t from = cuts[i][0], to = from + cuts[i][1];

		memset(all, 0xa5, sizeof(all));
		assert_int_equal(run(medium, WEIR_IO_WRITE, 0, all, sizeof(all)), 0);
		assert_int_equal(run(medium, i & 1 ? WEIR_IO_ZERO : WEIR_IO_DISCARD, from, NULL, to - from),
				 0);
		assert_int_equal(run(medium, WEIR_IO_READ, 0, all, sizeof(all)), 0);
		for (uint64_t j = 0; j < sizeof(all); j++)
			if (all[j] != (j >= from && j < to ? 0 : 0xa5))
				fail_msg("cut %u, byte %llu", i, (unsigned long long)j);
	}
	medium->ops->close(medium);
}

static void write_file(char *path, size_t bytes)
{
	int file = mkstemp(path);

	assert_true(file >= 0);
	for (size_t i = 0; i < bytes; i++) {
		unsigned char byte = (unsigned char)(i % 251);

		assert_int_equal(write(file, &byte, 1), 1);
	}
	close(file);
}

static void test_load(void **state)
{
	char path[] = "/tmp/weir-medium-XXXXXX";
	static unsigned char memory[4096];
	struct weir_medium *medium;

	(void)state;
	write_file(path, 1000);
	assert_int_equal(weir_medium_ram_open(4096, 4096, path, &medium), 0);
	assert_int_equal(run(medium, WEIR_IO_READ, 0, memory, 4096), 0);
	for (unsigned i = 0; i < 4096; i++)
		assert_int_equal(memory[i], i < 1000 ? i % 251 : 0);
	medium->ops->close(medium);
	unlink(path);
}

static void expect_error(uint64_t bytes, uint32_t block_bytes, const char *path, int error, const char *words)
{
	struct weir_medium *medium = NULL;

	assert_int_equal(weir_medium_ram_open(bytes, block_bytes, path, &medium), -error);
	assert_null(medium);
	if (!strstr(weir_last_error(), words))
		fail_msg("'%s' is not in: %s", words, weir_last_error());
}

static void test_errors(void **state)
{
	char path[] = "/tmp/weir-medium-XXXXXX";

	(void)state;
	expect_error(4096, 1024, NULL, EINVAL, "1024");
	expect_error(0, 512, NULL, EINVAL, "multiple");
	expect_error(4096 + 512, 4096, NULL, EINVAL, "multiple");
	expect_error(UINT64_MAX - 511, 512, NULL, EINVAL, "multiple");
	expect_error((uint64_t)1 << 62, 512, NULL, ENOMEM, "map");
	expect_error(4096, 512, "/nonexistent/file", ENOENT, "/nonexistent/file");
	expect_error(4096, 512, "/tmp", EINVAL, "regular");
	write_file(path, 4097);
	expect_error(4096, 512, path, EFBIG, "4097");
	unlink(path);
}

/* Opened and closed, or not to be opened: nothing stays. */
static void test_nothing_stays(void **state)
{
	char good[] = "/tmp/weir-medium-XXXXXX", large[] = "/tmp/weir-medium-XXXXXX",
	     trace[] = "/tmp/weir-medium-XXXXXX";
	static unsigned char memory[4096];
	struct weir_medium *medium, *front;
	struct test_has before;

	(void)state;
	write_file(good, 1000);
	write_file(large, 4097);
	write_file(trace, 1);
	for (unsigned round = 0; round < 40; round++) {
		if (round == 8)
			before = test_has();
		assert_int_equal(weir_medium_ram_open(16 << 20, 4096, good, &medium), 0);
		medium->ops->close(medium);
		assert_int_equal(weir_medium_ram_open(4096, 4096, large, &medium), -EFBIG);
		assert_int_equal(weir_medium_ram_open((uint64_t)64 << 20, 4096, "/nonexistent", &medium),
				 -ENOENT);
		assert_int_equal(weir_medium_sparse_open((uint64_t)300 << 40, 512, &medium), 0);
		assert_int_equal(weir_medium_trace_open("/nonexistent/file", medium, &front), -ENOENT);
		assert_int_equal(weir_medium_trace_open(trace, medium, &front), 0);
		for (unsigned i = 0; i < 64; i++) {
			assert_int_equal(run(front, WEIR_IO_WRITE, ((uint64_t)i << 42) + 512, memory, 4096),
					 0);
			assert_int_equal(run(front, WEIR_IO_ZERO, (uint64_t)i << 41, NULL, 8192), 0);
		}
		front->ops->close(front);
	}
	test_keeps(before, 1 << 20);
	unlink(good);
	unlink(large);
	unlink(trace);
}

static uint64_t word_at(struct weir_medium *medium, uint64_t offset)
{
	static unsigned char block[512];
	uint64_t word;

	assert_int_equal(run(medium, WEIR_IO_READ, offset / 512 * 512, block, 512), 0);
	memcpy(&word, block + offset % 512, sizeof(word));
	return word;
}

/* Words hold their addresses until they are written or cleared, at any size of the medium, and to its last
 * block. */
static void test_computed_contents(void **state)
{
	static const uint64_t sizes[] = {
		512, 4096, 2 << 20, (2 << 20) + 512, (uint64_t)4 << 30, (uint64_t)300 << 40, (uint64_t)1 << 60
	};
	static unsigned char memory[8192];

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t last = sizes[i] - 512, zeros = last / 2 / 4096 * 4096;
		struct weir_medium *medium;

		assert_int_equal(weir_medium_sparse_open(sizes[i], 512, &medium), 0);
		assert_true(medium->bytes == sizes[i]);
		assert_true(word_at(medium, 0) == 0 && word_at(medium, last + 8) == last + 8);
		memset(memory, 0x5a, 512);
		assert_int_equal(run(medium, WEIR_IO_WRITE, last, memory, 512), 0);
		assert_true(word_at(medium, last) == 0x5a5a5a5a5a5a5a5a);
		assert_true(!last || word_at(medium, 0) == 0);
		if (last >> 44)
			assert_true(word_at(medium, last - ((uint64_t)1 << 44)) ==
				    last - ((uint64_t)1 << 44));
		if (sizes[i] > 8192) {
			assert_true(word_at(medium, last - 512) == last - 512);
			assert_int_equal(run(medium, WEIR_IO_ZERO, zeros, NULL, 4096), 0);
			assert_true(word_at(medium, zeros) == 0 && word_at(medium, zeros + 4088) == 0);
			assert_int_equal(run(medium, WEIR_IO_WRITE, zeros + 512, memory, 512),
					 0); /* of a page that was cleared */
			assert_true(word_at(medium, zeros + 504) == 0 && word_at(medium, zeros + 1024) == 0);
			assert_true(word_at(medium, zeros + 520) == 0x5a5a5a5a5a5a5a5a);
			assert_true(word_at(medium, zeros + 4096) == zeros + 4096);
		}
		assert_int_equal(run(medium, WEIR_IO_READ, sizes[i] - 512, memory, 1024),
				 NVME_STATUS_LBA_OUT_OF_RANGE);
		assert_int_equal(run(medium, WEIR_IO_WRITE, sizes[i], memory, 512),
				 NVME_STATUS_LBA_OUT_OF_RANGE);
		medium->ops->close(medium);
	}
	expect_error(4096, 1024, NULL, EINVAL, "1024");
}

/* Only what is written takes memory, however much is read. */
static void test_reads_take_no_memory(void **state)
{
	enum { READS = 10000 };
	struct weir_medium *medium;
	struct test_has before;

	(void)state;
	assert_int_equal(weir_medium_sparse_open((uint64_t)1 << 60, 512, &medium), 0);
	assert_true(word_at(medium, 8) == 8);
	before = test_has();
	for (uint64_t i = 0; i < READS; i++)
		assert_true(word_at(medium, i << 45 | i << 12) == (i << 45 | i << 12));
	test_keeps(before, 64 << 10); /* a node of the tree for each would be a thousand times that */
	medium->ops->close(medium);
}

/* Each request is noted before it begins and when it has ended, with what came of it. */
static void test_trace(void **state)
{
	static const char expected[] = "begin 1 write 512 1024\nend 1 0\nbegin 2 read 3584 1024\nend 2 0x80\n"
				       "begin 3 flush 0 0\nend 3 0\nbegin 4 write 0 512 fua\nend 4 0\n";
	char path[] = "/tmp/weir-medium-XXXXXX", text[512] = "";
	static unsigned char memory[4096];
	struct iovec iov = { memory, 512 };
	struct weir_io forced = { .kind = WEIR_IO_WRITE,
				  .bytes = 512,
				  .iov = &iov,
				  .iov_count = 1,
				  .force_unit_access = true,
				  .done = done };
	struct weir_medium *medium, *front;
	FILE *file;

	(void)state;
	write_file(path, 3);
	assert_int_equal(weir_medium_ram_open(4096, 512, NULL, &medium), 0);
	assert_int_equal(weir_medium_trace_open(path, medium, &front), 0);
	assert_non_null(front->ops->expect);
	assert_null(front->ops->memory_changed);
	assert_int_equal(run(front, WEIR_IO_WRITE, 512, memory, 1024), 0);
	assert_int_equal(run(front, WEIR_IO_READ, 3584, memory, 1024), NVME_STATUS_LBA_OUT_OF_RANGE);
	assert_int_equal(run(front, WEIR_IO_FLUSH, 0, NULL, 0), 0);
	assert_true(front->ops->submit(front, &forced));
	front->ops->close(front);
	file = fopen(path, "re");
	assert_true(file && fread(text, 1, sizeof(text) - 1, file));
	assert_string_equal(text, expected);
	fclose(file);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_large_zero),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_nothing_stays),
		cmocka_unit_test(test_computed_contents),
		cmocka_unit_test(test_reads_take_no_memory),
		cmocka_unit_test(test_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
