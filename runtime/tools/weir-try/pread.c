/* SPDX-License-Identifier: BSD-3-Clause */
/* The plainest peer there is: threads that call pread(2). */
#include "try.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 32, PIECE = 4096 };

/** struct reader - a thread; @seed: of its places; @done: reads that came */
struct reader {
	pthread_t thread;
	int fd;
	uint64_t offset, pieces, seed, done, end_ns;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *read_on(void *argument)
{
	struct reader *reader = argument;
	void *buffer = aligned_alloc(PIECE, PIECE);

	while (buffer && now_ns() < reader->end_ns) {
		uint64_t at;

		reader->seed = reader->seed * 6364136223846793005u + 1442695040888963407u;
		at = reader->offset + (reader->seed >> 33) % reader->pieces * PIECE;
		if (pread(reader->fd, buffer, PIECE, (off_t)at) != PIECE)
			break;
		reader->done++;
	}
	free(buffer);
	return NULL;
}

double try_pread(const struct try_storage *storage, bool direct, double seconds)
{
	struct reader readers[THREADS];
	int fd = open(storage->path, O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
	uint64_t begin = now_ns(), done = 0;
	unsigned started = 0;

	for (; fd >= 0 && started < THREADS; started++) {
		readers[started] = (struct reader){ .fd = fd,
						    .offset = storage->offset,
						    .pieces = storage->bytes / PIECE,
						    .seed = started + 1,
						    .end_ns = begin + (uint64_t)(seconds * 1e9) };
		if (pthread_create(&readers[started].thread, NULL, read_on, &readers[started]) != 0)
			break;
	}
	for (unsigned i = 0; i < started; i++) {
		pthread_join(readers[i].thread, NULL);
		done += readers[i].done;
	}
	if (fd >= 0)
		close(fd);
	return (double)done / ((double)(now_ns() - begin) / 1e9);
}
