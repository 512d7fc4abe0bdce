/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium_file_rig.h: what the tests of the file medium share: files with known
 * bytes, one request carried to its end, and children that live under rules of
 * their own.
 */
#ifndef WEIR_TEST_MEDIUM_FILE_RIG_H
#define WEIR_TEST_MEDIUM_FILE_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <weir/nvme.h>

#include "transport/medium/medium.h"

extern const char *weir_last_error(void);

#define RIG_UNUSED __attribute__((unused))

enum { RIG_NAME_BYTES = 128, RIG_DEADLINE_S = 600 };

/* The byte that belongs at @offset of a file made with @seed; never zero. */
RIG_UNUSED static unsigned char rig_byte(uint64_t offset, uint64_t seed)
{
	uint64_t x = (offset + seed) * 0x9e3779b97f4a7c15u;

	return (unsigned char)(x >> 56) | 1;
}

RIG_UNUSED static void rig_fill(void *memory, uint64_t offset, uint64_t bytes, uint64_t seed)
{
	for (uint64_t i = 0; i < bytes; i++)
		((unsigned char *)memory)[i] = rig_byte(offset + i, seed);
}

RIG_UNUSED static bool rig_matches(const void *memory, uint64_t offset, uint64_t bytes, uint64_t seed)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (((const unsigned char *)memory)[i] != rig_byte(offset + i, seed))
			return false;
	return true;
}

RIG_UNUSED static bool rig_is_filled(const void *memory, uint64_t bytes, unsigned char value)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (((const unsigned char *)memory)[i] != value)
			return false;
	return true;
}

RIG_UNUSED static void *rig_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* A new file in @folder, its name in @name, @bytes of rig_byte() in it. */
RIG_UNUSED static void rig_file(char name[RIG_NAME_BYTES], const char *folder, uint64_t bytes, uint64_t seed)
{
	unsigned char *content = malloc(bytes + 1);
	int fd;

	snprintf(name, RIG_NAME_BYTES, "%s/weir-medium-XXXXXX", folder);
	fd = mkstemp(name);
	if (!content || fd < 0) {
		print_error("no file in %s: %s\n", folder, strerror(errno));
		abort();
	}
	rig_fill(content, 0, bytes, seed);
	if (write(fd, content, bytes) != (ssize_t)bytes)
		abort();
	free(content);
	close(fd);
}

/* WEIR_TEST_ENGINE=threads: everything by the medium's threads. */
RIG_UNUSED static bool rig_by_threads(void)
{
	const char *engine = getenv("WEIR_TEST_ENGINE");

	return engine && !strcmp(engine, "threads");
}

RIG_UNUSED static struct weir_medium_file_options rig_options(enum weir_direct direct)
{
	return (struct weir_medium_file_options){
		.block_bytes = 512,
		.direct = direct,
		.threads = 1,
		.depth = 16,
		.engine = rig_by_threads() ? WEIR_ENGINE_THREADS : WEIR_ENGINE_AUTO,
	};
}

RIG_UNUSED static void rig_done(struct weir_io *io)
{
	io->thread |= 0x80000000u; /* a mark the test can see */
}

RIG_UNUSED static bool rig_ended(const struct weir_io *io)
{
	return io->thread & 0x80000000u;
}

RIG_UNUSED static double rig_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Polls until @io has ended; a request that does not end is a failure of the whole program. */
RIG_UNUSED static uint16_t rig_wait(struct weir_medium *medium, struct weir_io *io)
{
	unsigned thread = io->thread & 0x7fffffffu;
	double deadline = rig_now() + RIG_DEADLINE_S;

	while (!rig_ended(io)) {
		medium->ops->poll(medium, thread);
		if (rig_now() > deadline) {
			print_error("a request has not ended after %d s\n", RIG_DEADLINE_S);
			abort();
		}
	}
	return io->status;
}

RIG_UNUSED static uint16_t rig_run(struct weir_medium *medium, struct weir_io *io)
{
	io->status = 0xffff;
	io->done = rig_done;
	if (!medium->ops->submit(medium, io))
		return 0xfffe;
	return rig_wait(medium, io);
}

/* One request with one segment. */
RIG_UNUSED static uint16_t rig_io(struct weir_medium *medium, enum weir_io_kind kind, uint64_t offset,
				  void *memory, uint64_t bytes)
{
	struct iovec iov = { memory, bytes };
	struct weir_io io = { .kind = kind, .offset_bytes = offset, .bytes = bytes };

	if (memory) {
		io.iov = &iov;
		io.iov_count = 1;
	}
	return rig_run(medium, &io);
}

RIG_UNUSED static void rig_register(struct weir_medium *medium, unsigned thread, void *memory, uint64_t bytes,
				    uint64_t id)
{
	struct weir_dma_region region = {
		.address = (uintptr_t)memory, .bytes = bytes, .id = id, .shares = 1, .host = memory
	};
	struct weir_dma_view view = { .generation = id, .regions = &region, .count = bytes ? 1 : 0 };

	medium->ops->memory_changed(medium, thread, &view);
}

/* Runs @body in a child, where rules may be changed; its return value, or -1. */
RIG_UNUSED static int rig_child(int (*body)(void *), void *argument)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		int code = body(argument);

		fflush(NULL);
		_exit(code);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* In a child, where cmocka's assertions must not be used. */
#define RIG_CHECK(condition)                                                                                 \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__,          \
				#condition, weir_last_error());                                              \
			return 1;                                                                            \
		}                                                                                            \
	} while (0)

enum { RIG_SKIP = 77 };

RIG_UNUSED static void rig_expect_child(int (*body)(void *), void *argument, const char *what)
{
	int code = rig_child(body, argument);

	if (code == RIG_SKIP) {
		print_message("# SKIPPED, NOT TESTED HERE: %s\n", what);
		skip();
	}
	assert_int_equal(code, 0);
}

#define assert_says(words)                                                                                   \
	do {                                                                                                 \
		if (!strstr(weir_last_error(), words))                                                       \
			fail_msg("'%s' is not in: %s", words, weir_last_error());                            \
	} while (0)

#endif
