/* SPDX-License-Identifier: BSD-3-Clause */
/* peers.c: other ways to read the same samples: files of a file system, and a packed file through io_uring.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <liburing.h>

#include "tool.h"

enum { ALIGN = 4096, MOST_BYTES = 9 << 20 };

bool peer_drop_caches(void)
{
	int file = open("/proc/sys/vm/drop_caches", O_WRONLY);
	bool good;

	sync();
	good = file >= 0 && write(file, "3", 1) == 1;
	if (file >= 0)
		close(file);
	return good;
}

static double processor_seconds(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/** struct files - all names, in random order, and threads that take the next one */
struct files {
	char **names;
	size_t count;
	_Atomic size_t next;
	_Atomic uint64_t bytes, samples;
	double end;
	bool lookups;
};

static void *read_files(void *given)
{
	struct files *files = given;
	char *data = malloc(MOST_BYTES);
	size_t i;

	/* relaxed: counters, read after the threads were joined */
	while (data &&
	       (i = atomic_fetch_add_explicit(&files->next, 1, memory_order_relaxed)) < files->count &&
	       tool_seconds() < files->end) {
		int file = open(files->names[i], O_RDONLY);
		ssize_t got = file >= 0 && !files->lookups ? pread(file, data, MOST_BYTES, 0) : 0;

		if (file >= 0)
			close(file);
		atomic_fetch_add_explicit(&files->bytes, got > 0 ? (uint64_t)got : 0, memory_order_relaxed);
		atomic_fetch_add_explicit(&files->samples, file >= 0, memory_order_relaxed);
	}
	free(data);
	return NULL;
}

static int list_files(struct files *files, const char *folder)
{
	char *roots[] = { (char *)(uintptr_t)folder, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	size_t room = 0;
	FTSENT *entry;

	while (tree && (entry = fts_read(tree)) != NULL) {
		if (entry->fts_info != FTS_F)
			continue;
		if (files->count == room) {
			room = room ? 2 * room : 1024;
			files->names = realloc(files->names, room * sizeof(*files->names));
			if (!files->names)
				abort();
		}
		files->names[files->count++] = strdup(entry->fts_path);
	}
	if (tree)
		fts_close(tree);
	return files->count ? 0 : tool_complain("%s has no files", folder);
}

static void shuffle(struct files *files, uint64_t seed)
{
	for (size_t left = files->count; left > 1; left--) {
		size_t other;
		char *name = files->names[left - 1];

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		other = (seed >> 33) % left;
		files->names[left - 1] = files->names[other];
		files->names[other] = name;
	}
}

int peer_names(const char *folder, uint64_t seed, char ***names, size_t *count)
{
	struct files files = { 0 };
	int status = list_files(&files, folder);

	shuffle(&files, seed);
	*names = files.names;
	*count = files.count;
	return status;
}

int peer_files(const char *folder, uint32_t threads, uint64_t seed, double seconds, enum peer_use use,
	       struct peer_result *result)
{
	struct files files = { .lookups = use != PEER_READ };
	pthread_t *ids = calloc(threads, sizeof(*ids));
	double begin, cpu;

	if (!ids || list_files(&files, folder))
		return TOOL_FAILED;
	shuffle(&files, seed);
	if (use != PEER_OPEN_CACHED)
		peer_drop_caches();
	begin = tool_seconds();
	cpu = processor_seconds();
	files.end = begin + seconds;
	for (uint32_t i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, read_files, &files);
	for (uint32_t i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	seconds = tool_seconds() - begin;
	*result = (struct peer_result){ (double)files.samples / seconds, (double)files.bytes / seconds,
					(processor_seconds() - cpu) / seconds, seconds };
	for (size_t i = 0; i < files.count; i++)
		free(files.names[i]);
	free(files.names);
	free(ids);
	return TOOL_OK;
}

/** struct reads - what to read next */
struct reads {
	struct tool *tool;
	uint64_t samples, state, at, end, chunk;
};

/* Where the next read is; false: no more. */
static bool next_read(struct reads *reads, uint64_t *offset, uint64_t *bytes)
{
	struct weir_dataset_sample sample = { .size = sizeof(sample) };

	if (!reads->tool) {
		*offset = reads->at;
		*bytes = reads->chunk;
		reads->at = reads->at + 2 * reads->chunk > reads->end ? 0 : reads->at + reads->chunk;
		return true;
	}
	reads->state = reads->state * 6364136223846793005u + 1442695040888963407u;
	weir_dataset_sample(reads->tool->dataset, (reads->state >> 20) % reads->samples, &sample);
	*offset = sample.offset / 512 * 512;
	*bytes = (sample.offset + sample.length + 511) / 512 * 512 - *offset;
	return true;
}

/* The kernel writes to the buffers of reads that are under way, and io_uring_queue_exit() waits for none. */
static void await_reads(struct io_uring *ring, unsigned under_way)
{
	struct io_uring_cqe *cqe;

	for (; under_way && io_uring_wait_cqe(ring, &cqe) == 0; under_way--)
		io_uring_cqe_seen(ring, cqe);
}

static int run_ring(int file, uint32_t depth, double seconds, struct reads *reads, struct peer_result *result)
{
	unsigned char *memory = aligned_alloc(ALIGN, (size_t)depth * (reads->chunk + 2 * ALIGN));
	double begin = tool_seconds(), cpu = processor_seconds();
	uint64_t done = 0, total = 0, failed = 0;
	struct io_uring ring;

	if (!memory || io_uring_queue_init(depth, &ring, 0) < 0)
		return tool_complain("io_uring at depth %u is not to be had here", depth);
	for (uint32_t i = 0; i < depth; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
		uint64_t offset, bytes;

		next_read(reads, &offset, &bytes);
		io_uring_prep_read(sqe, file, memory + (size_t)i * (reads->chunk + 2 * ALIGN),
				   (unsigned)bytes, offset);
		io_uring_sqe_set_data64(sqe, i);
	}
	while (tool_seconds() - begin < seconds) {
		struct io_uring_cqe *cqe;
		unsigned head, seen = 0;

		io_uring_submit_and_wait(&ring, 1);
		io_uring_for_each_cqe(&ring, head, cqe)
		{
			struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
			uint64_t offset, bytes, slot = cqe->user_data;

			failed += cqe->res < 0;
			total += cqe->res > 0 ? (uint64_t)cqe->res : 0;
			next_read(reads, &offset, &bytes);
			io_uring_prep_read(sqe, file, memory + slot * (reads->chunk + 2 * ALIGN),
					   (unsigned)bytes, offset);
			io_uring_sqe_set_data64(sqe, slot);
			seen++;
		}
		io_uring_cq_advance(&ring, seen);
		done += seen;
	}
	seconds = tool_seconds() - begin;
	*result = (struct peer_result){ (double)done / seconds, (double)total / seconds,
					(processor_seconds() - cpu) / seconds, seconds };
	await_reads(&ring, depth - io_uring_sq_ready(&ring));
	io_uring_queue_exit(&ring);
	close(file);
	free(memory);
	return failed ? tool_complain("%llu reads of the packed file failed", (unsigned long long)failed)
		      : TOOL_OK;
}

int peer_packed(struct tool *tool, const char *path, uint32_t depth, uint64_t seed, double seconds,
		struct peer_result *result)
{
	struct weir_dataset_info info = { .size = sizeof(info) };
	struct reads reads = { .tool = tool, .state = seed };
	int file = open(path, O_RDONLY | O_DIRECT);

	if (file < 0 || weir_dataset_info(tool->dataset, &info))
		return tool_complain("cannot open %s with O_DIRECT", path);
	reads.samples = info.samples;
	reads.chunk = (info.longest_bytes + ALIGN - 1) / ALIGN * ALIGN;
	return run_ring(file, depth, seconds, &reads, result);
}

int peer_limit(const char *path, uint64_t chunk, uint32_t depth, double seconds, struct peer_result *result)
{
	struct reads reads = { .chunk = chunk };
	struct stat stat;
	int file = open(path, O_RDONLY | O_DIRECT);

	if (file < 0 || fstat(file, &stat) != 0)
		return tool_complain("cannot open %s with O_DIRECT", path);
	reads.end = (uint64_t)stat.st_size;
	return run_ring(file, depth, seconds, &reads, result);
}
