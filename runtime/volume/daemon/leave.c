/* SPDX-License-Identifier: BSD-3-Clause */
/* leave.c: engines that are to go from the array: which ones may, and which stay after all. */
#include <errno.h>

#include "../../backend/error.h"
#include "daemon.h"

unsigned volumed_engines_remaining(const struct volumed *d)
{
	unsigned in = 0;

	for (unsigned i = 0; i < d->engine_count; i++)
		in += volumed_engine_in(&d->engines[i]) && !d->engines[i].leaving;
	return in;
}

/* Volumes keep their replicas. */
static int check_remaining(const struct volumed *d, const struct volumed_engine *engine)
{
	unsigned remain = volumed_engines_remaining(d), needed = volumed_engines_needed(d);

	if (!volumed_engine_in(engine) || engine->leaving || remain > needed)
		return 0;
	if (remain == 1)
		return weir_fail(EBUSY, "engine %u is the last one of the array", engine->info.id);
	return weir_fail(
		EBUSY,
		"without engine %u there are %u engines, and a volume has %u replicas, each on another "
		"engine: add an engine first",
		engine->info.id, remain - 1, needed);
}

static int give_up(struct volumed *d, struct volumed_engine *engine)
{
	if (volumed_engine_ask(d, engine))
		return weir_fail(EBUSY, "engine %u answers, and so is not lost; remove it without --lost",
				 engine->info.id);
	return volumed_engine_in(engine) ? volumed_give_up(d, engine) : 0;
}

int volumed_engine_remove(struct volumed *d, u32 id, bool lost)
{
	struct volumed_engine *engine = volumed_engine_of(d, id);
	bool was = engine && engine->leaving;
	int error = -ENOENT;

	if (engine)
		error = lost ? 0 : check_remaining(d, engine);
	if (error)
		return error;
	engine->leaving = true; /* which the next map says */
	if (!lost) {
		volumed_copy_end(d);
		return volumed_map_push(d);
	}
	error = give_up(d, engine);
	engine->leaving = !error || was;
	return error;
}

int volumed_engine_keep(struct volumed *d, u32 id)
{
	struct volumed_engine *engine = volumed_engine_of(d, id);

	if (!engine)
		return -ENOENT;
	if (!engine->leaving)
		return weir_fail(EINVAL, "engine %u is not to leave", id);
	if (!volumed_engine_in(engine))
		return weir_fail(EBUSY, "engine %u has left already; add it again, empty", id);
	engine->leaving = false; /* which the next map says */
	volumed_copy_end(d);
	return volumed_map_push(d);
}
