/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/journal.c: what changed, in order. */
#include <stdlib.h>
#include <string.h>

#include "parts.h"

void engine_record(struct weir_engine *engine, enum engine_record_kind kind, const void *data, u32 bytes)
{
	(void)engine;
	(void)kind;
	(void)data;
	(void)bytes;
}

void engine_record_block(struct weir_engine *engine, u32 index)
{
	(void)engine;
	(void)index;
}

void engine_record_map(struct weir_engine *engine)
{
	(void)engine;
}

u64 engine_want_commit(struct weir_engine *engine)
{
	if (engine->wanted <= engine->begun) {
		engine->wanted = engine->begun + 1;
		pthread_cond_broadcast(&engine->changed);
	}
	return engine->wanted;
}

unsigned engine_commit(struct weir_engine *engine)
{
	engine_lock(engine);
	engine->committed = engine->begun = engine->wanted;
	pthread_cond_broadcast(&engine->changed);
	engine_unlock(engine);
	return 1;
}

u32 engine_checkpoint_blocks(u32 blocks)
{
	return (u32)(((u64)blocks + blocks / 2) * sizeof(struct engine_header) / (ENGINE_BLOCK_BYTES - 64)) +
	       16;
}

int engine_load(struct weir_engine *engine)
{
	(void)engine;
	return 0;
}

void engine_finish(struct weir_engine *engine)
{
	(void)engine;
}

unsigned engine_collect(struct weir_engine *engine)
{
	(void)engine;
	return 0;
}
