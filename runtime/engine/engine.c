/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/engine.c: an engine as a whole: its making, its end, and its own thread.
 *
 * Owns: the order of what goes on in the background: commits of the journal, garbage, blocks that are gone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../backend/error.h"
#include "parts.h"

enum { LARGE_BYTES = 4 << 20, PAGE_BYTES = 4096 };

void engine_want_space(struct weir_engine *engine)
{
	if (engine->want_space && !engine->blocked)
		return;
	engine->want_space = true;
	engine->blocked = false;
	pthread_cond_broadcast(&engine->changed);
}

unsigned weir_engine_step(struct weir_engine *engine)
{
	return engine_commit(engine) + engine_collect(engine) + engine_sweep(engine);
}

static bool is_idle(const struct weir_engine *engine)
{
	return engine->failed || (engine->wanted <= engine->begun && !engine->sweep.left &&
				  (!engine->want_space || engine->blocked));
}

static void *run(void *argument)
{
	struct weir_engine *engine = argument;

	engine_lock(engine);
	while (!engine->stop) {
		bool sweeps = engine->sweep.left;

		if (is_idle(engine)) {
			pthread_cond_wait(&engine->changed, &engine->lock);
			continue;
		}
		engine_unlock(engine);
		weir_engine_step(engine);
		if (sweeps)
			engine_pause(); /* else it has the lock again before somebody who waits for it */
		engine_lock(engine);
	}
	engine_unlock(engine);
	return NULL;
}

bool engine_wait_commit(struct weir_engine *engine, u64 number)
{
	bool done;

	engine_lock(engine);
	while (engine->committed < number && !engine->failed) {
		if (engine->started) {
			pthread_cond_wait(&engine->changed, &engine->lock);
			continue;
		}
		engine_unlock(engine);
		weir_engine_step(engine);
		engine_lock(engine);
	}
	done = engine->committed >= number;
	engine_unlock(engine);
	return done;
}

static void memory_changed(struct weir_medium *medium, unsigned thread, const struct weir_dma_view *view)
{
	struct weir_medium *behind = weir_engine_of(medium)->behind;

	behind->ops->memory_changed(behind, thread, view);
}

static u32 chunks_of(const struct engine_shape *shape)
{
	return (shape->tombstones + ENGINE_CHUNK - 1) / ENGINE_CHUNK;
}

static void release_tables(struct weir_engine *engine)
{
	engine_table_destroy(&engine->table);
	engine->table.shards = NULL;
	free(engine->headers);
	for (u32 i = 0; engine->tombstones && i < chunks_of(&engine->shape); i++)
		free(engine->tombstones[i]);
	free(engine->tombstones);
	free(engine->erases);
}

static void release(struct weir_engine *engine)
{
	engine_volumes_release(engine);
	release_tables(engine);
	free(engine->records);
	free(engine->buffer);
	free(engine->per_thread);
	free(engine->manager);
	pthread_cond_destroy(&engine->changed);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

static void stop(struct weir_engine *engine)
{
	if (!engine->started)
		return;
	engine_lock(engine);
	engine->stop = true;
	pthread_cond_broadcast(&engine->changed);
	engine_unlock(engine);
	pthread_join(engine->worker, NULL);
	engine->started = false;
}

static void engine_close(struct weir_medium *medium)
{
	struct weir_engine *engine = weir_engine_of(medium);

	stop(engine);
	engine_finish(engine);
	engine->behind->ops->close(engine->behind);
	release(engine);
}

static void fill_medium(struct weir_engine *engine)
{
	struct weir_medium *behind = engine->behind;

	engine->ops = (struct weir_medium_ops){
		.size = sizeof(engine->ops),
		.submit = engine_submit,
		.poll = engine_poll,
		.memory_changed = behind->ops->memory_changed ? memory_changed : NULL,
		.close = engine_close,
	};
	snprintf(engine->path, sizeof(engine->path), "engine, %s", weir_medium_path(behind));
	engine->medium = (struct weir_medium){ .ops = &engine->ops,
					       .bytes = (u64)1 << (48 + NVME_VOLUME_BLOCK_LOG2),
					       .end_bytes = (u64)1 << (48 + NVME_VOLUME_BLOCK_LOG2),
					       .block_bytes = ENGINE_BLOCK_BYTES,
					       .path = engine->path };
}

static int no_memory(const struct weir_engine *engine)
{
	return weir_fail(ENOMEM, "no memory for an engine of %llu blocks",
			 (unsigned long long)engine_blocks(engine));
}

/* Zeros, in large pages where the system has them: it is read all over. */
static void *allocate_large(size_t count, size_t bytes)
{
	void *is = calloc(count, bytes);
	uintptr_t first = ((uintptr_t)is + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

	if (is && count * bytes >= LARGE_BYTES)
		(void)madvise((void *)first, count * bytes - PAGE_BYTES, MADV_HUGEPAGE); /* a hint */
	return is;
}

static int allocate_tables(struct weir_engine *engine)
{
	u64 blocks = engine_blocks(engine);

	engine->headers = allocate_large(blocks, sizeof(*engine->headers));
	engine->tombstones = calloc(chunks_of(&engine->shape), sizeof(*engine->tombstones));
	engine->erases = calloc(engine->shape.erase_count, sizeof(*engine->erases));
	if (!engine->headers || !engine->tombstones || !engine->erases)
		return no_memory(engine);
	engine->open = ENGINE_NONE;
	engine->free_erases = engine->shape.erase_count;
	engine->status = (struct nvme_volume_engine_status){ .blocks = engine->shape.user_blocks };
	return engine_table_create(&engine->table, engine->shape.user_blocks,
				   blocks + engine->shape.tombstones);
}

static int allocate(struct weir_engine *engine)
{
	engine->buffer = aligned_alloc(ENGINE_BLOCK_BYTES, ENGINE_BUFFER_BYTES);
	engine->per_thread = aligned_alloc(64, engine->threads * sizeof(*engine->per_thread));
	if (!engine->buffer || !engine->per_thread)
		return no_memory(engine);
	memset(engine->per_thread, 0, engine->threads * sizeof(*engine->per_thread));
	return allocate_tables(engine);
}

int engine_forget(struct weir_engine *engine)
{
	engine_volumes_release(engine);
	release_tables(engine);
	memset(engine->volumes, 0, sizeof(engine->volumes));
	engine->placement = NULL;
	engine->map = engine->loading = (struct nvme_volume_map){ .epoch = 0 };
	engine->entries = engine->sequence = 0;
	engine->tombstone_room = engine->tombstone_count = engine->tombstone_next = 0;
	return allocate_tables(engine);
}

static int start(struct weir_engine *engine)
{
	int error = pthread_create(&engine->worker, NULL, run, engine);

	if (error)
		return weir_fail(error, "no thread for an engine: %s", strerror(error));
	engine->started = true;
	return 0;
}

int weir_engine_open(const struct weir_engine_options *options, struct weir_engine **out)
{
	struct weir_engine *engine = calloc(1, sizeof(*engine));
	int error = 0;

	if (!engine)
		return weir_fail(ENOMEM, "no memory for an engine");
	pthread_mutex_init(&engine->lock, NULL);
	pthread_cond_init(&engine->changed, NULL);
	engine->behind = options->behind;
	engine->threads = options->threads;
	engine->read_only = options->read_only;
	engine->anew = options->format;
	fill_medium(engine);
	if (options->manager && !(engine->manager = strdup(options->manager)))
		error = weir_fail(ENOMEM, "no memory for an engine");
	if (!error)
		error = engine_shape_of(options->behind->bytes, &engine->shape);
	if (!error)
		error = allocate(engine);
	if (!error)
		error = engine_load(engine);
	if (!error && options->own_thread)
		error = start(engine);
	if (error) {
		release(engine);
		return error;
	}
	*out = engine;
	return 0;
}

struct weir_medium *weir_engine_medium(struct weir_engine *engine)
{
	return &engine->medium;
}
