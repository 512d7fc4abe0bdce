/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine/divide.c: work that several threads share while an engine is loaded.
 *
 * Owns: how many there are, and which part is whose. The thread that opens the engine is one of them. No
 * controller thread asks the medium for anything yet: their numbers are free.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "pages.h"

enum { MOST = 64, PER_PROCESSOR = 2 /* some wait for the medium */ };

/** struct shared - the work; @next: the part that nobody has begun */
struct shared {
	engine_work *work;
	void *argument;
	u32 count;
	u32 next;
};

/** struct helper - a thread */
struct helper {
	struct shared *shared;
	struct engine_hand hand;
	pthread_t thread;
};

static void take_part(struct shared *shared, const struct engine_hand *hand)
{
	u32 part;

	/* relaxed: parts need nothing of one another; the threads' ends order what they did */
	while ((part = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED)) < shared->count)
		shared->work(shared->argument, part, hand);
}

static void *help(void *argument)
{
	struct helper *helper = argument;

	take_part(helper->shared, &helper->hand);
	return NULL;
}

/* Without memory or threads for it there are fewer. */
static bool helper_start(struct helper *helper, struct shared *shared, unsigned thread)
{
	u8 *buffer = aligned_alloc(ENGINE_BLOCK_BYTES, ENGINE_BUFFER_BYTES);

	*helper = (struct helper){ .shared = shared, .hand = { thread, buffer } };
	if (buffer && pthread_create(&helper->thread, NULL, help, helper) == 0)
		return true;
	free(buffer);
	return false;
}

static u32 helpers_for(const struct weir_engine *engine, u32 parts)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	u32 most = engine->threads + 1 < MOST ? engine->threads + 1 : MOST;

	if (processors > 0 && most > PER_PROCESSOR * processors)
		most = (u32)(PER_PROCESSOR * processors);
	most = parts < most ? parts : most;
	return most ? most - 1 : 0;
}

void engine_divide(struct weir_engine *engine, u32 parts, engine_work *work, void *argument)
{
	struct shared shared = { work, argument, parts, 0 };
	struct engine_hand own = { engine->threads, engine->buffer };
	struct helper helpers[MOST];
	/* one shard, and what is said of it is little */
	u32 wanted = engine->table.shard_count > 1 ? helpers_for(engine, parts) : 0, count = 0;

	while (count < wanted && helper_start(&helpers[count], &shared, count))
		count++;
	take_part(&shared, &own);
	for (u32 i = 0; i < count; i++) {
		pthread_join(helpers[i].thread, NULL);
		free(helpers[i].hand.buffer);
	}
}
