/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * block_copy_test.c: what the host's reads and writes of a storage ask of lanes. The backend is the test's,
 * and runs nothing: it notes what is launched and copied, so that transfers of many GiB cost nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/status.h>

#include "backend/error.h"
#include "device/context.h"
#include "kernels/block_copy.h"

enum { CHUNK = 8 << 20, STEP = 16 };

#define GIB ((uint64_t)1 << 30)
#define FAR ((uint64_t)1 << 56) /* the caller's memory begins there, and is none */

/**
 * struct device - the backend, and what it is asked for
 * @fails: the call that fails: 'l'aunch, 'w'ait, 'i'n or 'o'ut; 0: none
 * @status: what lanes say of the launch that has @fails_at blocks before it; WEIR_OK: of none
 * @launches: how many
 * @first_lba, @next_lba: of those: blocks from the first on, one after the other
 * @next_host: the caller's memory that is copied next
 */
static struct device {
	struct weir_backend base;
	char fails;
	uint32_t status, opcode;
	uint64_t fails_at;
	unsigned blocks, launches;
	uint64_t next_lba, next_host, copied, largest;
	struct weir_block_copy_args args;
} device;

static struct weir_context *context;
static struct weir_storage storage;
static struct weir_transport transport;

static int failing(char call)
{
	return device.fails == call ? weir_fail(EREMOTEIO, "call %c failed", call) : 0;
}

static int allocate(struct weir_backend *backend, size_t bytes, enum weir_memory kind, void **host,
		    uint64_t *address)
{
	(void)backend, (void)kind;
	*host = NULL;
	*address = WEIR_ADDR(aligned_alloc(NVME_PAGE_BYTES, bytes));
	memset((void *)(uintptr_t)*address, 0, bytes);
	device.largest = bytes > device.largest ? bytes : device.largest;
	device.blocks++;
	return 0;
}

static void release(struct weir_backend *backend, uint64_t address, size_t bytes, enum weir_memory kind)
{
	(void)backend, (void)bytes, (void)kind;
	free((void *)(uintptr_t)address);
	device.blocks--;
}

/* The next of the caller's bytes go to lanes' buffer, or come from there. */
static int copied(uint64_t buffer, uint64_t host, size_t bytes)
{
	assert_true(host == device.next_host);
	assert_true(device.opcode == NVME_OPCODE_WRITE || buffer == device.args.buffer);
	device.next_host += bytes;
	device.copied += bytes;
	return 0;
}

static int h2d(struct weir_backend *backend, uint64_t address, const void *host, size_t bytes)
{
	(void)backend;
	if ((uintptr_t)host < FAR)
		return memcpy((void *)(uintptr_t)address, host, bytes), 0;
	return failing('i') ? -EREMOTEIO : copied(address, (uintptr_t)host, bytes);
}

static int d2h(struct weir_backend *backend, void *host, uint64_t address, size_t bytes)
{
	(void)backend;
	if (failing('o'))
		return -EREMOTEIO;
	if ((uintptr_t)host < FAR)
		return memcpy(host, (const void *)(uintptr_t)address, bytes), 0;
	return copied(address, (uintptr_t)host, bytes);
}

static int launch(struct weir_backend *backend, const char *kernel, uint32_t blocks, uint32_t threads,
		  const void *args, size_t bytes)
{
	(void)backend, (void)threads;
	assert_string_equal(kernel, "weir_block_copy");
	assert_int_equal(blocks, 1);
	assert_int_equal(bytes, sizeof(device.args));
	memcpy(&device.args, args, bytes);
	if (failing('l'))
		return -EREMOTEIO;
	device.launches++;
	if (device.args.opcode == NVME_OPCODE_FLUSH)
		device.next_lba = 0;
	assert_true(device.args.lba == device.next_lba);
	assert_int_equal(device.args.opcode, device.opcode);
	if (device.args.opcode != NVME_OPCODE_FLUSH)
		assert_int_equal(device.args.step, STEP);
	if (device.status && device.args.lba <= device.fails_at &&
	    device.fails_at < device.args.lba + device.args.blocks)
		*(uint32_t *)(uintptr_t)device.args.result = device.status;
	device.next_lba += device.args.blocks;
	return 0;
}

static int synchronise(struct weir_backend *backend)
{
	(void)backend;
	return failing('w');
}

static const struct weir_backend_ops ops = { .size = sizeof(ops),
					     .name = "noted",
					     .allocate = allocate,
					     .release = release,
					     .h2d = h2d,
					     .d2h = d2h,
					     .launch = launch,
					     .synchronise = synchronise };

/* A storage of @bytes, in blocks of 2^@block_log2. */
static void begin(uint64_t bytes, uint32_t block_log2)
{
	device = (struct device){ .base = { .ops = &ops } };
	transport.end_bytes = bytes;
	storage.disk.block_log2 = block_log2;
	storage.disk.blocks = (bytes + (1u << block_log2) - 1) >> block_log2;
	storage.disk.max_blocks = STEP;
}

static int move(bool writes, uint64_t offset, uint64_t bytes)
{
	device.opcode = writes ? NVME_OPCODE_WRITE : NVME_OPCODE_READ;
	device.next_lba = offset >> storage.disk.block_log2;
	device.next_host = FAR;
	return writes ? weir_storage_write(&storage, offset, (void *)(uintptr_t)FAR, bytes)
		      : weir_storage_read(&storage, offset, (void *)(uintptr_t)FAR, bytes);
}

static void says(int result, int error, const char *words)
{
	assert_int_equal(result, error);
	if (!strstr(weir_last_error(), words))
		fail_msg("\"%s\" does not say \"%s\"", weir_last_error(), words);
}

/* Whatever its size: every block once and every byte of the caller's once, in parts of 8 MiB at most, for
 * which lanes have the memory. */
static void test_every_block_once(void **state)
{
	static const struct {
		uint64_t offset, bytes;
		unsigned launches;
	} rows[] = {
		{ 0, 512, 1 },
		{ 0, CHUNK, 1 },
		{ 4096, CHUNK + 512, 2 },
		{ ((uint64_t)1 << 41) - 512, 2 * CHUNK, 2 },
		{ (uint64_t)1 << 44, 4 * GIB + 4096, 513 },
		{ 4 * GIB - 512, 5 * GIB, 640 },
	};

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t bytes = rows[i / 2].bytes;

		begin((uint64_t)1 << 45, 9);
		assert_int_equal(move(i % 2, rows[i / 2].offset, bytes), 0);
		assert_int_equal(device.launches, rows[i / 2].launches);
		assert_true(device.next_lba == (rows[i / 2].offset + bytes) >> 9);
		assert_true(device.copied == bytes);
		assert_true(device.largest == (bytes < CHUNK ? NVME_PAGE_BYTES : CHUNK));
		assert_int_equal(device.blocks, 0);
	}
	begin(4096, 9);
	assert_int_equal(move(false, 0, 0), 0);
	assert_int_equal(device.launches, 0);
}

/* A storage may end within its last block: that is read whole or as far as it goes, and written as far as it
 * goes alone. */
static void test_a_last_block_that_is_not_whole(void **state)
{
	const uint64_t end = ((uint64_t)1 << 40) + 100, last = (uint64_t)1 << 40;
	const struct {
		uint64_t offset, bytes;
		int read, write;
	} rows[] = {
		{ last, 100, 0, 0 },
		{ last, 4096, 0, -ERANGE },
		{ last - 4096, 4096 + 100, 0, 0 },
		{ last, 99, -EINVAL, -EINVAL },
		{ last, 101, -EINVAL, -ERANGE },
		{ last + 4096, 1, -ERANGE, -ERANGE },
		{ last - 1, 101, -EINVAL, -EINVAL },
		{ last, UINT64_MAX - last, -ERANGE, -ERANGE },
		{ UINT64_MAX - 4095, 4096, -ERANGE, -ERANGE },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		int error = i % 2 ? rows[i / 2].write : rows[i / 2].read;

		begin(end, 12);
		if (move(i % 2, rows[i / 2].offset, rows[i / 2].bytes) != error)
			fail_msg("row %zu: %s", i, weir_last_error());
		assert_int_equal(device.launches, !error);
		if (!error)
			assert_true(device.next_lba == storage.disk.blocks &&
				    device.copied == rows[i / 2].bytes);
	}
}

/* What fails is told, whichever part it is of and whatever comes behind it; nothing is asked for then, and
 * nothing of it stays. */
static void test_what_fails_is_told(void **state)
{
	static const char calls[] = { 'l', 'w', 'i', 'o' };

	(void)state;
	for (unsigned writes = 0; writes < 2; writes++) {
		for (unsigned part = 0; part < 3; part++) {
			begin(GIB, 9);
			device.status = WEIR_E_DEVICE_GONE;
			device.fails_at = part * (CHUNK / 512) + 7;
			says(move(writes, 0, 3 * CHUNK), -EIO, "the controller no longer answers");
			assert_int_equal(device.launches, part + 1);
			assert_true(device.copied == (uint64_t)(part + writes) * CHUNK);
			assert_int_equal(device.blocks, 0);
		}
		for (unsigned i = 0; i < sizeof(calls); i++) {
			char words[16] = "call x failed";

			begin(GIB, 9);
			words[5] = device.fails = calls[i];
			if (writes || calls[i] != 'i')
				says(move(writes, 0, 3 * CHUNK), -EREMOTEIO, words);
			assert_int_equal(device.blocks, 0);
			assert_true(device.launches <= 1);
		}
	}
}

static void test_flushes(void **state)
{
	(void)state;
	begin(GIB, 9);
	device.opcode = NVME_OPCODE_FLUSH;
	assert_int_equal(weir_storage_flush(&storage), 0);
	assert_int_equal(device.launches, 1);
	device.fails = 'w';
	says(weir_storage_flush(&storage), -EREMOTEIO, "call w failed");
	assert_int_equal(device.blocks, 0);
}

static int set_up(void **state)
{
	(void)state;
	context = calloc(1, sizeof(*context));
	context->backend = &device.base;
	storage =
		(struct weir_storage){ .context = context, .transport = &transport, .uri = (char *)"test:" };
	return weir_dma_map_create(&context->dma) || weir_handle_add(context, WEIR_HANDLE_CONTEXT, "noted") ||
	       weir_handle_add(&storage, WEIR_HANDLE_STORAGE, "test:");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_block_once),
		cmocka_unit_test(test_a_last_block_that_is_not_whole),
		cmocka_unit_test(test_what_fails_is_told),
		cmocka_unit_test(test_flushes),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("block_copy", tests, set_up, NULL);
}
