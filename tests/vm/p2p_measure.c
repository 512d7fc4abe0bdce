/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a range costs beside pinning a buffer of host memory of the same size, in the same machine: vm_p2p
 * measure NODE
 *
 * A range: registered, mapped, and taken back; and the same with each page of it in the page table, as after
 * the first I/O. A buffer: mapped with its pages, which is the least that pinning does; and made a fixed
 * buffer of io_uring, which pins it, and undone, which waits for the kernel's other work. vm_p2p count NODE:
 * the first two, with marks for count.c. vm_p2p sizes NODE MOST: ranges from 64 KiB to MOST bytes, by offset
 * and by address, with marks for count.c.
 */
#include "mark.h"
#include "p2p.h"

#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "fakegpu/fake_gpu.h"

enum { ROUNDS = 15, KIB = 1024 };

static double now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static double range_us(int node, uint64_t bytes, bool touch)
{
	double begin = now_us();
	struct range range = take(node, 0, bytes);

	for (uint64_t i = 0; touch && i < bytes; i += 4 * KIB)
		*(volatile uint8_t *)(range.memory + i);
	drop(&range);
	return now_us() - begin;
}

static double buffer_us(struct io_uring *ring, uint64_t bytes)
{
	double begin = now_us();
	struct iovec all = { mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			     bytes };
	int error;

	check(all.iov_base != MAP_FAILED, "no memory");
	error = io_uring_register_buffers(ring, &all, 1);
	errno = -error;
	check(!error, "cannot pin %llu bytes", (unsigned long long)bytes);
	check(!io_uring_unregister_buffers(ring), "cannot unpin");
	munmap(all.iov_base, bytes);
	return now_us() - begin;
}

static double memory_us(uint64_t bytes)
{
	double begin = now_us();
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	check(memory != MAP_FAILED, "no memory");
	munmap(memory, bytes);
	return now_us() - begin;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(double *times)
{
	qsort(times, ROUNDS, sizeof(*times), by_size);
	return times[ROUNDS / 2];
}

static void measure(int node, struct io_uring *ring, uint64_t bytes)
{
	double ranges[ROUNDS], touched[ROUNDS], memory[ROUNDS], buffers[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		ranges[i] = range_us(node, bytes, false);
		touched[i] = range_us(node, bytes, true);
		memory[i] = memory_us(bytes);
		buffers[i] = buffer_us(ring, bytes);
	}
	printf("measured %llu KiB: range %.0f us, with its pages %.0f us, memory %.0f us, fixed buffer %.0f "
	       "us, memory to the second %.1f\n",
	       (unsigned long long)bytes / KIB, middle(ranges), middle(touched), middle(memory),
	       middle(buffers), middle(memory) / middle(touched));
}

/* A range, then memory of its size, with the pages of both in the page table: a mark behind each call. */
static void count(int node, uint64_t bytes)
{
	struct range range;
	void *memory;

	mark(11);
	check(!try_register(node, 0, bytes, 0, &range), "cannot register");
	mark(12);
	range.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)range.mmap_offset);
	check(range.memory != MAP_FAILED, "cannot map");
	mark(13);
	for (uint64_t i = 0; i < bytes; i += 4 * KIB)
		*(volatile uint8_t *)(range.memory + i);
	mark(14);
	munmap(range.memory, bytes);
	mark(15);
	check(!try_deregister(node, range.handle), "cannot deregister");
	mark(16);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	check(memory != MAP_FAILED, "no memory");
	mark(17);
	munmap(memory, bytes);
	mark(18);
}

int do_count(char **argv)
{
	int node = open_node(argv[0]);

	for (uint64_t bytes = 64 * KIB; bytes <= 16384 * KIB; bytes *= 4) {
		for (int i = 0; i < ROUNDS; i++)
			count(node, bytes);
		mark(19);
	}
	return 0;
}

/* Registered, mapped, with all its pages in the page table, unmapped, given back: a mark behind each. */
static void count_large(int node, uint64_t first, uint64_t bytes, uint32_t flags)
{
	struct range range;

	mark(21);
	check(!try_register(node, first, bytes, flags, &range), "cannot register");
	mark(22);
	range.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)range.mmap_offset);
	check(range.memory != MAP_FAILED, "cannot map");
	check(!madvise(range.memory, bytes, MADV_POPULATE_READ),
	      "cannot have the pages mapped"); /* none is read: that is the BAR's affair */
	mark(23);
	munmap(range.memory, bytes);
	mark(24);
	check(!try_deregister(node, range.handle), "cannot deregister");
	mark(25);
}

int do_sizes(char **argv)
{
	static const uint64_t sizes[] = { 64 * KIB, KIB * KIB, 1ULL << 30, 8ULL << 30 };
	int node = open_node(argv[0]);
	uint64_t most = number(argv[1]);

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes) && sizes[i] <= most; i++) {
		for (int round = 0; round < (sizes[i] > KIB * KIB ? 1 : ROUNDS); round++) {
			count_large(node, 0, sizes[i], 0);
			mark(26);
			count_large(node, FAKE_GPU_FIRST, sizes[i], WEIR_P2P_BY_ADDRESS);
			mark(27);
		}
		printf("size %llu\n", (unsigned long long)sizes[i]);
		mark(28);
	}
	return 0;
}

int do_measure(char **argv)
{
	int node = open_node(argv[0]);
	struct io_uring ring;

	check(!io_uring_queue_init(8, &ring, 0), "no io_uring");
	for (uint64_t bytes = 64 * KIB; bytes <= 16384 * KIB; bytes *= 4)
		measure(node, &ring, bytes);
	return 0;
}
