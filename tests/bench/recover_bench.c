/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recover_bench.c: how long an engine takes to begin where it ended, from its checkpoint; and to delete all.
 *
 * The engine is full: each block that volumes can use is in its tables, at a place by chance. The data of
 * these blocks is not there: a sparse file has the tables alone, so that a small disk will do. Blocks are
 * entered into the tables as writes do it, without commands.
 */
#include <time.h>
#include <unistd.h>

#include <fcntl.h>

#include "engine/parts.h"
#include "engine_volume.h"

enum { THREADS = 2, RING = 64, FOUND = 1 << 20, AHEAD = 16 };

#define SPREAD 0x9e3779b1u /* odd: multiples of it are all different */

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static struct weir_engine *open_engine(const char *path, unsigned threads)
{
	struct weir_medium *behind;
	struct weir_engine *engine;

	must(weir_medium_file_open(path,
				   &(struct weir_medium_file_options){
					   .block_bytes = BLOCK, .threads = threads + 1, .depth = RING },
				   &behind));
	must(weir_engine_open(
		&(struct weir_engine_options){ .behind = behind, .threads = threads, .own_thread = true },
		&engine));
	return engine;
}

static void close_engine(struct weir_engine *engine)
{
	struct weir_medium *medium = weir_engine_medium(engine);

	medium->ops->close(medium);
}

static u32 block_of(u32 index)
{
	return index * SPREAD;
}

static void enter(struct weir_engine *engine, u32 index)
{
	struct engine_header *header = engine_header(engine, index);

	*header = (struct engine_header){
		.version = (u64)LEASE << 40 | index, .vba = block_of(index), .vid = VID, .crc = index
	};
	if (engine_install(engine, index))
		return;
	fprintf(stderr, "recover-bench: no memory for block %u\n", index);
	exit(1);
}

/* All that volumes can use. */
static void fill(struct weir_engine *engine)
{
	engine_lock(engine);
	for (u32 i = 0; i < engine->shape.user_blocks; i++) {
		engine_table_prefetch(engine, VID, block_of(i + AHEAD));
		enter(engine, i);
	}
	engine_unlock(engine);
}

static void check(struct weir_engine *engine)
{
	struct nvme_volume_engine_status status;
	u32 wrong = 0;

	weir_engine_status(engine, &status);
	wrong += status.used != engine->shape.user_blocks;
	for (u32 i = 0; i < FOUND; i++) {
		u32 index = (u32)((u64)i * engine->shape.user_blocks / FOUND);

		wrong += engine_table_find(engine, VID, block_of(index)) != index;
	}
	if (!wrong)
		return;
	fprintf(stderr, "recover-bench: %u of %u blocks are not where they were\n", wrong, FOUND);
	exit(1);
}

/* A sparse file whose engine has @gib of user blocks. */
static void make_file(const char *path, u64 gib)
{
	u64 wanted = gib << 18, blocks = wanted;
	struct engine_shape shape;
	int file = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);

	do {
		blocks += wanted / 128;
		must(engine_shape_of(blocks * BLOCK, &shape));
	} while (shape.user_blocks < wanted);
	if (file < 0 || ftruncate(file, (off_t)(blocks * BLOCK))) {
		perror(path);
		exit(1);
	}
	close(file);
}

/* Where nothing was written a sparse file has nothing to read: an engine that has run for long has written
 * all. */
static void write_journal(const char *path, const struct engine_shape *shape)
{
	static const unsigned char zeros[1 << 20];
	u64 left = (u64)shape->journal_blocks * BLOCK, at = shape->journal * BLOCK;
	int file = open(path, O_WRONLY | O_CLOEXEC);

	while (file >= 0 && left) {
		ssize_t wrote = pwrite(file, zeros, left < sizeof(zeros) ? left : sizeof(zeros), (off_t)at);

		if (wrote <= 0)
			break;
		at += (u64)wrote;
		left -= (u64)wrote;
	}
	if (file < 0 || left || fsync(file) || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)) {
		perror(path);
		exit(1);
	}
	close(file);
}

static double close_timed(struct weir_engine *engine)
{
	double start = seconds();

	close_engine(engine);
	return seconds() - start;
}

static struct weir_engine *open_timed(const char *path, unsigned threads, double *took)
{
	double start = seconds();
	struct weir_engine *engine = open_engine(path, threads);

	*took = seconds() - start;
	check(engine);
	return engine;
}

/** struct deleting - seconds: until the command has ended, and all is dropped; the longest of a command to
 * ask for the engine's state meanwhile */
struct deleting {
	double command, dropped, longest;
};

static struct deleting delete_timed(struct weir_engine *engine)
{
	struct nvme_volume_engine_status status;
	struct deleting is = { .longest = 0 };
	double start = seconds(), before;

	send(engine, (struct nvme_sqe){ .cdw0 = NVME_ADMIN_VOLUME_DELETE, .cdw10 = VID, .cdw13 = MAP }, "",
	     0);
	is.command = seconds() - start;
	do {
		before = seconds();
		weir_engine_status(engine, &status);
		is.dropped = seconds() - start;
		if (start + is.dropped - before > is.longest)
			is.longest = start + is.dropped - before;
	} while (status.used);
	return is;
}

static void measure(const char *path, u64 gib, unsigned threads)
{
	struct weir_engine *engine = open_engine(path, threads);
	struct engine_shape shape = engine->shape;
	double written, recovered, with_journal;
	struct deleting deleting;

	prepare(engine, (u64)1 << 32);
	fill(engine);
	written = close_timed(engine);
	close_engine(open_timed(path, threads, &recovered));
	write_journal(path, &shape);
	engine = open_timed(path, threads, &with_journal);
	deleting = delete_timed(engine);
	close_engine(engine);
	printf("{\"gib\": %llu, \"blocks\": %u, \"journal_mib\": %u, \"checkpoint_written_s\": %.2f, "
	       "\"recovered_s\": %.2f, \"with_whole_journal_s\": %.2f, \"ns_per_block\": %.1f, "
	       "\"delete_ms\": %.2f, \"dropped_s\": %.2f, \"longest_meanwhile_ms\": %.2f}\n",
	       (unsigned long long)gib, shape.user_blocks, shape.journal_blocks / 256, written, recovered,
	       with_journal, recovered * 1e9 / shape.user_blocks, deleting.command * 1e3, deleting.dropped,
	       deleting.longest * 1e3);
}

/* recover-bench FILE GIB [THREADS] */
int main(int argc, char **argv)
{
	u64 gib = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	unsigned threads = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : THREADS;

	if (!gib || !threads || threads > 64) {
		fprintf(stderr, "recover-bench FILE GIB [CONTROLLER-THREADS (1 to 64)]: FILE is made anew, "
				"and removed\n");
		return 2;
	}
	make_file(argv[1], gib);
	measure(argv[1], gib, threads);
	return unlink(argv[1]) != 0;
}
