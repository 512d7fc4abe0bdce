/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_thread_test.c: several threads at an engine with a thread of its own, on memory and on a file.
 *
 * Each thread has blocks of its own and compares all that it reads; all write so much that garbage is
 * collected under way.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "engine_direct.h"

enum { THREADS = 3, OWN = 100, COMMANDS = 2000 };

/** struct worker - a thread; @stale: its lease has ended */
struct worker {
	struct weir_engine *engine;
	unsigned index;
	u64 written;
	u64 durable;
	bool stale;
};

static u32 ask(const struct worker *worker, enum weir_io_kind kind, u64 vba, u64 version, bool durable,
	       unsigned char *data)
{
	struct weir_medium *medium = weir_engine_medium(worker->engine);
	struct direct direct = { .io = { .kind = kind,
					 .thread = worker->index,
					 .force_unit_access = durable,
					 .offset_bytes = weir_engine_offset(VID, (u32)vba),
					 .bytes = BLOCK,
					 .iov_count = 1,
					 .version = direct_version(version),
					 .epochs = direct_epochs(),
					 .done = direct_done },
				 .iov = { data, BLOCK } };

	direct.io.iov = &direct.iov;
	while (!medium->ops->submit(medium, &direct.io))
		medium->ops->poll(medium, worker->index);
	while (!direct.ended)
		medium->ops->poll(medium, worker->index);
	return direct.io.status;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	unsigned char *data = aligned_alloc(BLOCK, BLOCK), *expected = malloc(BLOCK);
	u64 first = (u64)worker->index * OWN, versions[OWN] = { 0 };
	unsigned lot = worker->index + 1;

	for (u64 i = 1; i <= COMMANDS && !worker->stale; i++) {
		u32 at = (u32)rand_r(&lot) % OWN, kind = (u32)rand_r(&lot) % 64;

		if (kind < 24) {
			direct_fill(expected, first + at, versions[at]);
			assert_int_equal(ask(worker, WEIR_IO_READ, first + at, 0, false, data), 0);
			assert_memory_equal(data, expected, BLOCK);
			continue;
		}
		direct_fill(data, first + at, i);
		worker->stale = ask(worker, WEIR_IO_WRITE, first + at, i, kind == 63, data) ==
				(NVME_STATUS_VOLUME_STALE_LEASE | NVME_STATUS_DNR);
		versions[at] = worker->stale ? versions[at] : i;
		worker->written += !worker->stale;
		worker->durable += kind == 63;
	}
	free(expected);
	free(data);
	return NULL;
}

static struct weir_engine *open_on(struct weir_medium *behind)
{
	struct weir_engine *engine;

	assert_int_equal(weir_engine_open(&(struct weir_engine_options){ .behind = behind,
									 .threads = THREADS,
									 .own_thread = true },
					  &engine),
			 0);
	assert_int_equal(direct_map(engine, MAP), 0);
	assert_int_equal(direct_prepare(engine), 0);
	return engine;
}

static void begin(struct weir_engine *engine, struct worker *workers, pthread_t *threads)
{
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .engine = engine, .index = i };
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
}

static void run_on(struct weir_medium *behind)
{
	struct weir_engine *engine = open_on(behind);
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	u64 written = 0;

	begin(engine, workers, threads);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_true(workers[i].durable > 5);
		written += workers[i].written;
	}
	assert_int_equal(direct_status(engine).user_writes, written);
	assert_true(direct_status(engine).erases > 20);
	direct_close(engine);
}

static void test_memory(void **state)
{
	struct weir_medium *behind;

	(void)state;
	assert_int_equal(weir_medium_ram_open(3 << 20, BLOCK, NULL, &behind), 0);
	run_on(behind);
}

static void test_file(void **state)
{
	char path[] = "/tmp/weir-engine-XXXXXX";
	struct weir_medium *behind;
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, 3 << 20), 0);
	close(file);
	assert_int_equal(weir_medium_file_open(path,
					       &(struct weir_medium_file_options){ .block_bytes = BLOCK,
										   .threads = THREADS + 1,
										   .depth = 64 },
					       &behind),
			 0);
	run_on(behind);
	unlink(path);
}

/* After the command that ends a lease has ended, nothing of that lease is written any more. */
static void test_lease_ends(void **state)
{
	struct weir_medium *behind;
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	struct weir_engine *engine;
	u64 after;

	(void)state;
	assert_int_equal(weir_medium_ram_open(3 << 20, BLOCK, NULL, &behind), 0);
	engine = open_on(behind);
	begin(engine, workers, threads);
	while (direct_status(engine).user_writes < 500)
		sched_yield();
	assert_int_equal(direct_admin(engine, NVME_ADMIN_VOLUME_LEASE, LEASE + 1, 0, NULL), 0);
	after = direct_status(engine).user_writes;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(direct_status(engine).user_writes, after);
	direct_close(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_lease_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
