/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.c: blocks to where the map, or the next one, places them.
 *
 * After a failure (VOLUMED_REBUILD) the map has changed already: clients write to the engines of now, and an
 * engine answers reads of what it lacks with "not here". When all is copied the same map comes again, with
 * rebuilding 0.
 *
 * An engine that comes back (VOLUMED_JOIN) has blocks, old ones among them, that it must not be read from. It
 * stays out, refusing clients, while what the next map places there is copied. What is written meanwhile it
 * does not get; so in the end clients are kept off: all engines get a new epoch, which clients learn by a
 * call that this thread does not answer before the rest is copied, and the map with the engine in has come;
 * leases are renewed meanwhile (methods.h).
 * The rest is what has versions of leases that were open since the copying began, of it what came since the
 * last pass over all volumes began: engines list blocks in the order in which they came. So there is another
 * pass, of what came since the one before, as long as the last one took longer than clients may be kept off,
 * and less than the one before. The same for an engine that leaves (VOLUMED_LEAVE). An engine of an
 * interrupted copying is out, or in, as it was: a daemon that starts then finds a map that is true.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "../../backend/error.h"
#include "command.h"
#include "daemon.h"

enum { COMPLAIN_MS = 60000, BURST_MS = 1000, BURST_STEPS = 4, STEP_CREDIT = 1000, MOST_PASSES = 16 };

static u32 live_epoch(const struct volumed_volume *volume)
{
	return volume->info.lease_client && volume->info.lease_client != VOLUMED_NOBODY
		       ? volume->info.lease_epoch
		       : 0;
}

/* Engines of the map, and the one that comes, are copied from and to. */
static bool takes_part(const struct volumed *d, unsigned i)
{
	return volumed_engine_in(&d->engines[i]) || (d->copy.task == VOLUMED_JOIN && d->copy.engine == i);
}

static void fill_level(const struct volumed *d, const struct volumed_volume *volume, const u32 *table,
		       u64 from, struct volumed_level *level)
{
	memset(level, 0, sizeof(*level));
	for (unsigned i = 0; i < d->engine_count; i++) {
		const struct volumed_engine *engine = &d->engines[i];

		if (engine->current && takes_part(d, i))
			level->links[i] = engine->link;
		if (level->links[i] && volumed_engine_in(engine))
			level->authority |= 1u << i;
	}
	level->table = table;
	level->vid = volume->info.vid;
	level->blocks = volume->info.blocks;
	level->replicas = volume->info.replicas;
	level->unit_log2 = volume->info.unit_log2;
	level->from = from;
	level->later = ~(u64)0;
	level->live = live_epoch(volume);
	level->map = d->epoch;
}

static int run(struct volumed_level *level)
{
	int more = volumed_level_begin(level);

	if (more)
		return more;
	while ((more = volumed_level_step(level)) > 0)
		;
	volumed_level_end(level);
	return more;
}

int volumed_equalize(struct volumed *d, struct volumed_volume *volume)
{
	struct volumed_level level;
	int error;

	for (unsigned i = 0; i < d->engine_count; i++)
		if (volumed_engine_in(&d->engines[i]) && !d->engines[i].current)
			return weir_fail(EAGAIN,
					 "volume '%s': engine %u does not answer now; try again in a moment",
					 volume->info.name, d->engines[i].info.id);
	fill_level(d, volume, d->table, volume->from, &level);
	level.settled = !d->rebuilding && !level.live;
	error = run(&level);
	d->counts.equalized += level.copied;
	return error;
}

int volumed_equalize_all(struct volumed *d)
{
	int worst = 0;

	for (size_t i = 0; i < d->volume_count; i++) {
		struct volumed_level level;
		int error;

		fill_level(d, &d->volumes[i], d->table, 0, &level);
		error = run(&level);
		d->counts.equalized += level.copied;
		if (!error)
			continue;
		d->volumes[i].unclean = true;
		d->volumes[i].from = 0;
		worst = worst && worst != -ENOSPC ? worst : error;
	}
	return worst;
}

void volumed_copy_end(struct volumed *d)
{
	if (d->copy.open)
		volumed_level_end(&d->copy.level);
	d->copy.open = false;
	d->copy.task = VOLUMED_IDLE;
}

/* All volumes, of which the engines' lists have what came since the last pass began. What an engine had
 * written by its last answer is not behind what it has written by now. */
static void begin_pass(struct volumed *d, unsigned pass)
{
	struct volumed_copy *copy = &d->copy;
	uint64_t now = volumed_now_ms(d);

	copy->took_ms = pass ? now - copy->began_ms : 0;
	copy->began_ms = now;
	copy->pass = pass;
	copy->next = 0;
	memcpy(copy->since, copy->written, sizeof(copy->since));
	for (unsigned i = 0; i < d->engine_count; i++)
		copy->written[i] = d->engines[i].status.written;
}

int volumed_copy_begin(struct volumed *d, enum volumed_task task, unsigned engine)
{
	struct volumed_copy *copy = &d->copy;
	u8 state = task == VOLUMED_JOIN ? NVME_VOLUME_ENGINE_IN : NVME_VOLUME_ENGINE_OUT;

	volumed_copy_end(d);
	copy->task = task;
	copy->engine = engine;
	copy->compared = copy->copied = 0;
	begin_pass(d, 0);
	memset(copy->floors, 0, (NVME_VOLUME_MOST + 1) * sizeof(*copy->floors));
	for (size_t i = 0; i < d->volume_count; i++)
		copy->floors[d->volumes[i].info.vid] = (u64)d->volumes[i].info.lease_epoch
						       << NVME_VOLUME_VERSION_EPOCH;
	return volumed_map_table(d, task == VOLUMED_REBUILD ? -1 : (int)engine, state, copy->table);
}

static struct volumed_volume *next_volume(struct volumed *d)
{
	for (size_t i = 0; i < d->volume_count; i++)
		if (d->volumes[i].info.vid >= d->copy.next)
			return &d->volumes[i];
	return NULL;
}

/* All engines of the map are there, and the copying's own. */
static bool complete(const struct volumed *d)
{
	for (unsigned i = 0; i < d->engine_count; i++)
		if (takes_part(d, i) && !d->engines[i].current)
			return false;
	return d->counted;
}

/* Copies are durable before the map counts on them: what they were made from may go with the next one. */
static int make_durable(struct volumed *d)
{
	for (unsigned i = 0; i < d->engine_count; i++) {
		bool counts = d->engines[i].current && takes_part(d, i);
		int status = counts ? volume_engine_flush(d->engines[i].link) : 0;

		if (status < 0)
			return status;
		if (status)
			return weir_fail(EIO, "engine %u fails a flush with status %#x",
					 d->engines[i].info.id, status);
	}
	return 0;
}

/* With clients kept off: what was written since the copying began, then the map that it led to. */
static int change_over(struct volumed *d)
{
	struct volumed_copy *copy = &d->copy;
	struct volumed_engine *engine = &d->engines[copy->engine];
	bool joins = copy->task == VOLUMED_JOIN;
	int error;

	d->rebuilding = d->changing = true; /* no engine drops blocks that it has for the map to come */
	error = volumed_map_push(d);
	if (!error && !complete(d))
		error = -EAGAIN;
	for (size_t i = 0; i < d->volume_count && !error; i++) {
		struct volumed_level level;

		fill_level(d, &d->volumes[i], copy->table, copy->floors[d->volumes[i].info.vid], &level);
		level.since = copy->written;
		error = run(&level);
		copy->copied += level.copied;
	}
	if (!error)
		error = make_durable(d);
	d->rebuilding = d->changing = false;
	if (!error && engine->current) {
		engine->info.state = joins ? NVME_VOLUME_ENGINE_IN : NVME_VOLUME_ENGINE_OUT;
		d->counts.taken_in += joins;
	}
	d->counts.copied += copy->copied;
	volumed_copy_end(d);
	return volumed_map_push(d);
}

/* So much was written during the last pass that clients should not wait for it. */
static bool is_to_go_on(const struct volumed *d)
{
	const struct volumed_copy *copy = &d->copy;
	uint64_t took = volumed_now_ms(d) - copy->began_ms;

	return took > d->options.kept_off_ms && copy->pass + 1 < MOST_PASSES &&
	       (!copy->pass || took < copy->took_ms);
}

static int finish_rebuild(struct volumed *d)
{
	if (make_durable(d) != 0) { /* heartbeats find out which one is gone */
		d->copy.next = 0;
		d->copy.again_ms = volumed_now_ms(d) + d->options.heartbeat_ms;
		return -EAGAIN;
	}
	d->counts.copied += d->copy.copied;
	volumed_copy_end(d);
	d->rebuilding = false;
	d->failed = 0;
	return volumed_map_push(d);
}

static int finish(struct volumed *d)
{
	if (d->copy.task == VOLUMED_REBUILD)
		return finish_rebuild(d);
	if (!is_to_go_on(d))
		return change_over(d);
	begin_pass(d, d->copy.pass + 1);
	return make_durable(d); /* there is less to do for it in the end */
}

/* An engine did not do what was asked: heartbeats find out; then all again. Of engines that come or leave it
 * is another one's turn: this one's disk may be full for days. */
static void begin_again(struct volumed *d)
{
	struct volumed_copy *copy = &d->copy;
	uint64_t now = volumed_now_ms(d);

	if (now >= copy->complain_ms) {
		fprintf(stderr, "weir-volumed: copying begins again: %s\n", weir_last_error());
		copy->complain_ms = now + COMPLAIN_MS;
	}
	copy->next = 0;
	copy->again_ms = now + d->options.heartbeat_ms;
	if (copy->task != VOLUMED_REBUILD)
		volumed_copy_end(d);
}

/* One that cannot be compared now, for want of memory, is not copied. */
static void begin_volume(struct volumed *d, const struct volumed_volume *volume)
{
	struct volumed_copy *copy = &d->copy;

	fill_level(d, volume, copy->table, copy->pass ? copy->floors[volume->info.vid] : 0, &copy->level);
	copy->level.since = copy->pass ? copy->since : NULL;
	if (copy->task != VOLUMED_REBUILD)
		copy->level.later = copy->floors[volume->info.vid];
	copy->next = volume->info.vid + 1u;
	copy->open = volumed_level_begin(&copy->level) == 0;
	if (!copy->open)
		begin_again(d);
}

static void step_volume(struct volumed *d)
{
	struct volumed_copy *copy = &d->copy;
	int more;

	copy->level.live = 0;
	for (size_t i = 0; i < d->volume_count; i++)
		if (d->volumes[i].info.vid == copy->level.vid)
			copy->level.live = live_epoch(&d->volumes[i]);
	more = volumed_level_step(&copy->level);
	if (more > 0)
		return;
	copy->compared += copy->level.compared;
	copy->copied += copy->level.copied;
	volumed_level_end(&copy->level);
	copy->open = false;
	if (more < 0)
		begin_again(d);
}

/* Engines and cores are the clients', too: a step is a block, or a page of a list, and a few at most are made
 * at once. */
static bool earns_step(struct volumed *d)
{
	struct volumed_copy *copy = &d->copy;
	uint64_t now = volumed_now_ms(d), passed = now - copy->paced_ms;

	if (!d->options.rebuild_blocks)
		return true;
	copy->paced_ms = now;
	copy->credit += (passed < BURST_MS ? passed : BURST_MS) * d->options.rebuild_blocks;
	if (copy->credit > BURST_STEPS * STEP_CREDIT)
		copy->credit = BURST_STEPS * STEP_CREDIT;
	if (copy->credit < STEP_CREDIT)
		return false;
	copy->credit -= STEP_CREDIT;
	return true;
}

bool volumed_copy_paced(const struct volumed *d)
{
	return d->copy.open && complete(d) && d->options.rebuild_blocks && d->copy.credit < STEP_CREDIT;
}

bool volumed_copy_step(struct volumed *d)
{
	struct volumed_volume *volume;

	if (d->copy.task == VOLUMED_IDLE || !complete(d) || volumed_now_ms(d) < d->copy.again_ms)
		return false;
	if (d->copy.open) {
		if (!earns_step(d))
			return false;
		step_volume(d);
		return true;
	}
	volume = next_volume(d);
	if (volume)
		begin_volume(d, volume);
	else
		(void)finish(d);
	return true;
}

/* Out of the map's list, once it is out. */
static void forget_engine(struct volumed *d, unsigned index)
{
	d->engines[index].link->ops->close(d->engines[index].link);
	d->engine_count--;
	memmove(&d->engines[index], &d->engines[index + 1],
		(d->engine_count - index) * sizeof(d->engines[0]));
	(void)volumed_map_push(d);
}

/* One in doubt is so, still, once it is in: the heartbeat ends that first. */
static bool may_join(const struct volumed_engine *engine)
{
	return !volumed_engine_in(engine) && engine->current && !engine->spare && !engine->status.doubtful;
}

void volumed_copy_choose(struct volumed *d)
{
	(void)volumed_map_count(d);
	if (d->copy.task == VOLUMED_JOIN && !d->engines[d->copy.engine].current)
		volumed_copy_end(d); /* it is another one's turn: this one may have gone for good */
	if (d->copy.task != VOLUMED_IDLE || !d->counted)
		return;
	if (d->rebuilding) { /* it was broken off */
		(void)volumed_copy_begin(d, VOLUMED_REBUILD, 0);
		return;
	}
	for (unsigned step = 1; step <= d->engine_count; step++) {
		unsigned i = (d->copy.engine + step) % d->engine_count;
		struct volumed_engine *engine = &d->engines[i];

		if (engine->leaving && !volumed_engine_in(engine)) {
			forget_engine(d, i);
			return;
		}
		if (engine->leaving && volumed_engines_remaining(d) < volumed_engines_needed(d))
			continue; /* one that was to stay has failed */
		if (engine->leaving || may_join(engine)) {
			(void)volumed_copy_begin(d, engine->leaving ? VOLUMED_LEAVE : VOLUMED_JOIN, i);
			return;
		}
	}
}
