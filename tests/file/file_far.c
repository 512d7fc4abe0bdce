/* SPDX-License-Identifier: BSD-3-Clause */
/* Offsets of files, and places in registered memory, beyond 4 GiB. */
#include <sys/mman.h>

#include "file_cases.h"

enum { BLOCKS = 4, BLOCK = 12288 };

/* The same but for what 32 bits do not hold. */
static const uint64_t far[BLOCKS] = { 4096, ((uint64_t)1 << 32) + 4096, ((uint64_t)1 << 33) + 4096,
				      ((uint64_t)5 << 32) + 4096 };

static char far_byte(unsigned block, size_t at)
{
	return (char)(17 * block + 3 + at % 251);
}

static bool is_block(const char *bytes, unsigned block)
{
	for (size_t i = 0; i < BLOCK; i++)
		if (bytes[i] != far_byte(block, i))
			return false;
	return true;
}

/* Block @i is registered memory's i-th; one by one, or in one batch, which rings take together. */
static void move_blocks(struct weir_registration *registration, int fd, uint32_t operation, bool batch,
			unsigned skew)
{
	struct weir_file_io io[BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++)
		io[i] = (struct weir_file_io){ .registration = registration,
					       .file = fd,
					       .operation = operation,
					       .at = (uint64_t)i * BLOCK,
					       .offset = far[i] + skew,
					       .bytes = BLOCK };
	if (batch)
		must(weir_file_batch(context, io, BLOCKS));
	for (unsigned i = 0; i < BLOCKS; i++) {
		if (!batch)
			must(weir_file_batch(context, &io[i], 1));
		assert_int_equal(io[i].result, BLOCK);
	}
}

static void check_far(struct weir_registration *registration, int own, int fd, bool batch, unsigned skew)
{
	static char there[BLOCK];

	for (unsigned i = 0; i < BLOCKS; i++)
		for (size_t k = 0; k < BLOCK; k++)
			got[(size_t)i * BLOCK + k] = far_byte(i, k);
	must(weir_copy_to_device(context, buffer, got, BUFFER_BYTES));
	move_blocks(registration, fd, WEIR_FILE_WRITE, batch, skew);
	for (unsigned i = 0; i < BLOCKS; i++) {
		assert_int_equal(pread(own, there, BLOCK, (off_t)(far[i] + skew)), BLOCK);
		assert_true(is_block(there, i));
	}
	clear();
	move_blocks(registration, fd, WEIR_FILE_READ, batch, skew);
	must(weir_copy_from_device(context, got, buffer, BUFFER_BYTES));
	for (unsigned i = 0; i < BLOCKS; i++)
		assert_true(is_block(got + (size_t)i * BLOCK, i));
}

/* Blocks of a file of holes, 4 GiB apart: each is written and read where it is, whatever its alignment. */
void test_far_offsets(void **state)
{
	char own[] = "weir-file-own-XXXXXX";
	int fds[2] = { mkstemp(own), open(own, O_RDWR | O_DIRECT | O_CLOEXEC) };
	struct weir_registration *registration;

	(void)state;
	if (fds[1] < 0)
		fds[1] = open(own, O_RDWR | O_CLOEXEC);
	assert_int_equal(ftruncate(fds[0], (off_t)6 << 32), 0);
	for (unsigned iteration = 0; register_by(&iteration, &registration);) {
		for (unsigned i = 0; i < 8; i++)
			check_far(registration, fds[0], fds[i % 2], i / 2 % 2, i / 4 * 1000);
		must(weir_deregister(registration));
	}
	must(weir_register(context, buffer, BUFFER_BYTES, NULL, &registration));
	must(weir_file_attach(context, fds[0]));
	clear();
	for (unsigned i = 0; i < BLOCKS; i++)
		assert_int_equal(weir_file_read(registration, fds[0], BLOCK, (off_t)far[i] + 1000,
						(uint64_t)i * BLOCK),
				 BLOCK);
	must(weir_copy_from_device(context, got, buffer, BUFFER_BYTES));
	for (unsigned i = 0; i < BLOCKS; i++)
		assert_true(is_block(got + (size_t)i * BLOCK, i));
	must(weir_file_detach(context, fds[0]));
	must(weir_deregister(registration));
	close(fds[0]);
	close(fds[1]);
	unlink(own);
}

/* What only the cpu can show: memory of which there is little, and places in it beyond 4 GiB. */
void test_far_places(void **state)
{
	static const enum weir_file_path paths[] = { WEIR_FILE_AUTO, WEIR_FILE_BOUNCE };
	const uint64_t bytes = ((uint64_t)5 << 32) + (1 << 20);
	char own[] = "weir-file-own-XXXXXX";
	struct weir_registration *registration;
	char *memory;
	int out;

	(void)state;
	if (!test_on_cpu())
		skip();
	memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		skip(); /* not so much of addresses */
	out = mkstemp(own);
	for (unsigned way = 0; way < 4; way++) { /* by staging or not, attached or not */
		must(weir_register(context, (uint64_t)(uintptr_t)memory, bytes,
				   WEIR_OPTIONS(register, .path = paths[way % 2]), &registration));
		if (way / 2) {
			must(weir_file_attach(context, file));
			must(weir_file_attach(context, out));
		}
		for (unsigned i = 0; i < BLOCKS; i++) {
			uint64_t from = (uint64_t)i * BLOCK + way;

			assert_int_equal(weir_file_read(registration, file, BLOCK, (off_t)from, far[i]),
					 BLOCK);
		}
		for (unsigned i = 0; i < BLOCKS; i++) {
			uint64_t from = (uint64_t)i * BLOCK + way;

			assert_memory_equal(memory + far[i], want + from, BLOCK);
			assert_int_equal(weir_file_write(registration, out, BLOCK, 0, far[i]), BLOCK);
			assert_int_equal(pread(out, got, BLOCK, 0), BLOCK);
			assert_memory_equal(got, want + from, BLOCK);
		}
		if (way / 2) {
			must(weir_file_detach(context, file));
			must(weir_file_detach(context, out));
		}
		must(weir_deregister(registration));
	}
	munmap(memory, bytes);
	close(out);
	unlink(own);
}
