/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a range costs beside pinning a buffer of host memory of the same size, in the same machine: vm_p2p measure NODE
 *
 * A range: registered, mapped, and taken back. A buffer: mapped, made a fixed buffer of io_uring, which pins it, and undone.
 */
#include "p2p.h"

#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { ROUNDS = 15, KIB = 1024 };

static double now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static double range_us(int node, uint64_t bytes)
{
	double begin = now_us();
	struct range range = take(node, 0, bytes);

	drop(&range);
	return now_us() - begin;
}

static double buffer_us(struct io_uring *ring, uint64_t bytes)
{
	double begin = now_us();
	struct iovec all = { mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes };
	int error;

	check(all.iov_base != MAP_FAILED, "no memory");
	error = io_uring_register_buffers(ring, &all, 1);
	errno = -error;
	check(!error, "cannot pin %llu bytes", (unsigned long long)bytes);
	check(!io_uring_unregister_buffers(ring), "cannot unpin");
	munmap(all.iov_base, bytes);
	return now_us() - begin;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int do_measure(char **argv)
{
	int node = open_node(argv[0]);
	double ranges[ROUNDS], buffers[ROUNDS];
	struct io_uring ring;

	check(!io_uring_queue_init(8, &ring, 0), "no io_uring");
	for (uint64_t bytes = 64 * KIB; bytes <= 16384 * KIB; bytes *= 4) {
		for (int i = 0; i < ROUNDS; i++) {
			ranges[i] = range_us(node, bytes);
			buffers[i] = buffer_us(&ring, bytes);
		}
		qsort(ranges, ROUNDS, sizeof(*ranges), by_size);
		qsort(buffers, ROUNDS, sizeof(*buffers), by_size);
		printf("measured %llu KiB: range %.0f us, pinned buffer %.0f us, ratio %.1f\n", (unsigned long long)bytes / KIB,
			ranges[ROUNDS / 2], buffers[ROUNDS / 2], buffers[ROUNDS / 2] / ranges[ROUNDS / 2]);
	}
	return 0;
}
