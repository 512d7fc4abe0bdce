/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium/file_measure.c: short measurements at open.
 *
 * Owns: a throw-away ring of its own. Reads only.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <weir/core/mix.h>

#include "file.h"

enum {
	MEASURE_DEPTH = 32,
	MEASURE_BYTES = 4096,
	MEASURE_FIRST = 4, /* a slow disk is known after this many */
};
#define MEASURE_ENOUGH_S 0.002

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/**
 * struct measure - one measurement under way
 * @uring: its ring
 * @memory: MEASURE_DEPTH blocks
 * @fd: what is read
 * @blocks: MEASURE_BYTES-sized blocks in it
 * @random: where the next read goes
 */
struct measure {
	struct io_uring uring;
	char *memory;
	int fd;
	uint64_t blocks;
	uint64_t random;
};

static int reap(struct measure *m, unsigned count)
{
	int error = 0;

	while (count--) {
		struct io_uring_cqe *cqe;
		int waited;

		do
			waited = io_uring_wait_cqe(&m->uring, &cqe);
		while (waited == -EINTR);
		if (waited)
			return waited;
		if (cqe->res < 0)
			error = cqe->res;
		io_uring_cqe_seen(&m->uring, cqe);
	}
	return error;
}

/* Seconds for @count reads at once; negative on an error. */
static double round_s(struct measure *m, unsigned count)
{
	double start = now_s();
	int submitted;

	for (unsigned i = 0; i < count; i++)
		io_uring_prep_read(io_uring_get_sqe(&m->uring), m->fd, m->memory + (size_t)i * MEASURE_BYTES,
				   MEASURE_BYTES, weir_mix_next(&m->random) % m->blocks * MEASURE_BYTES);
	submitted = io_uring_submit(&m->uring);
	if (submitted < 0 || reap(m, (unsigned)submitted) || (unsigned)submitted != count)
		return -1;
	return now_s() - start;
}

static double rate(struct measure *m)
{
	double first = round_s(m, MEASURE_FIRST);
	double full;
	double again;

	if (first < 0)
		return 0;
	if (first > MEASURE_ENOUGH_S)
		return MEASURE_FIRST / first;
	full = round_s(m, MEASURE_DEPTH);
	if (full <= 0)
		return 0;
	again = full > MEASURE_ENOUGH_S ? full : round_s(m, MEASURE_DEPTH);
	if (again <= 0)
		return 0;
	return MEASURE_DEPTH / (again < full ? again : full);
}

double file_measure_rate(int fd, uint64_t file_bytes, uint64_t seed)
{
	struct measure m = { .fd = fd, .blocks = file_bytes / MEASURE_BYTES, .random = seed };
	double result = 0;

	if (!m.blocks || io_uring_queue_init(MEASURE_DEPTH, &m.uring, 0))
		return 0;
	if (!posix_memalign((void **)&m.memory, MEASURE_BYTES, MEASURE_DEPTH * MEASURE_BYTES)) {
		result = rate(&m);
		/* The ring goes first: it may still own the memory after an error. */
		io_uring_queue_exit(&m.uring);
		free(m.memory);
		return result;
	}
	io_uring_queue_exit(&m.uring);
	return 0;
}

bool file_poll_works(int fd, uint32_t align)
{
	struct io_uring_cqe *cqe = NULL;
	struct io_uring uring;
	char *memory = NULL;
	bool works = false;

	if (io_uring_queue_init(1, &uring, IORING_SETUP_IOPOLL))
		return false;
	if (!posix_memalign((void **)&memory, align < MEASURE_BYTES ? MEASURE_BYTES : align,
			    align < MEASURE_BYTES ? MEASURE_BYTES : align)) {
		io_uring_prep_read(io_uring_get_sqe(&uring), fd, memory, align, 0);
		works = io_uring_submit(&uring) == 1 && !io_uring_wait_cqe(&uring, &cqe) && cqe->res > 0;
	}
	io_uring_queue_exit(&uring);
	free(memory);
	return works;
}
