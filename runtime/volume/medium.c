/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume/medium.c: requests cut at stripe units.
 *
 * Owns: fragments and their memory; a request is over when all of its fragments are. Data passes through the
 * fragments' memory: a channel that is given up never touches a request's own.
 */
#include "medium.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../backend/error.h"

enum {
	COMMAND_MS = 8000,
	SPINS = 50, /* polls without an answer before the thread naps between them */
	NAP_NS = 10000,
	LIST_BYTES = VOLUME_FRAGMENT_MOST / NVME_VOLUME_BLOCK_BYTES * sizeof(u64),
};

/* weir_io.medium_data; IO_OPEN: fragments that are open in 31:0, the first error above */
enum { IO_NEXT, IO_CUT, IO_OPEN, IO_VERSION };

enum { IO_STATUS_SHIFT = 32 };

static struct volume *volume_of(struct weir_medium *medium)
{
	return (struct volume *)medium;
}

/* Between the data of a request, from @offset on, and a fragment's memory. */
static void copy(const struct volume_fragment *fragment, bool to_request)
{
	const struct weir_io *io = fragment->io;
	uint64_t offset = fragment->io_offset, left = (uint64_t)fragment->blocks * NVME_VOLUME_BLOCK_BYTES;
	unsigned char *at = fragment->data;

	for (unsigned i = 0; i < io->iov_count && left; i++) {
		uint64_t length = io->iov[i].iov_len, part;
		unsigned char *there = (unsigned char *)io->iov[i].iov_base + offset;

		if (offset >= length) {
			offset -= length;
			continue;
		}
		part = length - offset < left ? length - offset : left;
		memcpy(to_request ? there : at, to_request ? at : there, part);
		at += part;
		left -= part;
		offset = 0;
	}
}

static void end_io(struct volume_thread *thread, struct weir_io *io)
{
	thread->ended++;
	io->status = (uint16_t)(io->medium_data[IO_OPEN] >> IO_STATUS_SHIFT);
	io->done(io);
}

static bool is_cut(const struct weir_io *io)
{
	return io->medium_data[IO_CUT] >= io->bytes;
}

/* One fragment fewer is open; true: it was the last. */
static bool let_go(struct weir_io *io)
{
	return (uint32_t)--io->medium_data[IO_OPEN] == 0 && is_cut(io);
}

static bool changes(enum weir_io_kind kind)
{
	return kind != WEIR_IO_READ && kind != WEIR_IO_FLUSH;
}

/* Set or clear the bits of @blocks from @vba on; with neither, whether one is set. */
static bool walk_bits(struct volume *volume, u64 vba, u64 blocks, bool set, bool clear)
{
	u64 last = blocks < VOLUME_CHANGING ? vba + blocks : vba + VOLUME_CHANGING, found = 0;

	for (u64 at = vba; at < last;) {
		u64 left = 64 - at % 64, count = last - at < left ? last - at : left;
		u64 mask = (count == 64 ? ~(u64)0 : ((u64)1 << count) - 1) << at % 64;
		u64 *word = &volume->changing[at % VOLUME_CHANGING / 64];

		found |= *word & mask;
		*word = set ? *word | mask : clear ? *word & ~mask : *word;
		at += count;
	}
	return found != 0;
}

/* false: another fragment changes one of these blocks. */
static bool take_blocks(struct volume *volume, u64 vba, u64 blocks)
{
	bool taken;

	pthread_mutex_lock(&volume->lock);
	taken = !walk_bits(volume, vba, blocks, false, false);
	if (taken)
		(void)walk_bits(volume, vba, blocks, true, false);
	pthread_mutex_unlock(&volume->lock);
	return taken;
}

static void give_blocks(struct volume *volume, u64 vba, u64 blocks)
{
	pthread_mutex_lock(&volume->lock);
	(void)walk_bits(volume, vba, blocks, false, true);
	pthread_mutex_unlock(&volume->lock);
}

void volume_fragment_end(struct volume_fragment *fragment, u32 status)
{
	struct volume_thread *thread = fragment->thread;
	struct weir_io *io = fragment->io;

	if (!status && fragment->kind == WEIR_IO_READ)
		copy(fragment, true);
	if (changes(fragment->kind))
		give_blocks(thread->volume, fragment->vba, fragment->blocks);
	if (status && changes(fragment->kind))
		store_relaxed_u32(&thread->volume->session->unequal,
				  1); /* relaxed: read when no thread runs */
	if (status && !(io->medium_data[IO_OPEN] >> IO_STATUS_SHIFT))
		io->medium_data[IO_OPEN] |= (uint64_t)status << IO_STATUS_SHIFT;
	fragment->io = NULL;
	fragment->todo = fragment->waiting = 0;
	fragment->next = thread->free;
	thread->free = fragment;
	if (let_go(io))
		end_io(thread, io);
}

void volume_complain(struct volume *volume, const char *why)
{
	if (exchange_u32(&volume->complained, 1) == 0)
		weir_report("volume \"%s\": a request failed: %s within %llu ms", volume->session->keys.name,
			    why, (unsigned long long)volume->session->keys.wait_ms);
}

/* Bytes of the next fragment of @io: up to the end of its stripe unit, or of the fragment's memory. */
static uint64_t next_bytes(const struct volume *volume, const struct weir_io *io, uint64_t offset)
{
	uint64_t unit = (uint64_t)NVME_VOLUME_BLOCK_BYTES << volume->session->volume.unit_log2;
	uint64_t bytes = unit - offset % unit, left = io->bytes - io->medium_data[IO_CUT];

	if ((io->kind == WEIR_IO_READ || io->kind == WEIR_IO_WRITE) && bytes > volume->fragment_bytes)
		bytes = volume->fragment_bytes;
	return bytes < left ? bytes : left;
}

/* Versions grow from lease to lease, and with each block of one. Relaxed: a write that is acknowledged before
 * another begins has taken its own before, in the order of this word. */
static u64 new_version(struct volume *volume, u32 blocks)
{
	return ((u64)volume->session->lease_epoch << NVME_VOLUME_VERSION_EPOCH) + 1 +
	       fetch_add_relaxed_u64(&volume->written, blocks);
}

/* What lanes write has a version of theirs. */
static u64 version_of(struct volume *volume, const struct weir_io *io, u32 blocks)
{
	return io->medium_data[IO_VERSION]
		       ? io->medium_data[IO_VERSION] + io->medium_data[IO_CUT] / NVME_VOLUME_BLOCK_BYTES
		       : new_version(volume, blocks);
}

/* false: not now. */
static bool start_next(struct volume_thread *thread, struct weir_io *io)
{
	struct volume *volume = thread->volume;
	struct volume_fragment *fragment = thread->free;
	uint64_t offset = io->offset_bytes + io->medium_data[IO_CUT];
	uint64_t bytes = io->kind == WEIR_IO_FLUSH ? 0 : next_bytes(volume, io, offset);

	if (changes(io->kind) &&
	    !take_blocks(volume, offset / NVME_VOLUME_BLOCK_BYTES, bytes / NVME_VOLUME_BLOCK_BYTES))
		return false;
	thread->free = fragment->next;
	fragment->io = io;
	fragment->kind = io->kind;
	fragment->force_unit_access = io->force_unit_access;
	fragment->io_offset = io->medium_data[IO_CUT];
	fragment->vba = offset / NVME_VOLUME_BLOCK_BYTES;
	fragment->blocks = (u32)(bytes / NVME_VOLUME_BLOCK_BYTES);
	if (changes(io->kind))
		fragment->version = version_of(volume, io, fragment->blocks);
	io->medium_data[IO_CUT] += bytes;
	io->medium_data[IO_OPEN]++;
	if (io->kind == WEIR_IO_WRITE)
		copy(fragment, false);
	volume_fragment_start(fragment);
	return true;
}

/* Cut requests as long as there are fragments, and their blocks are not being changed. */
static void cut(struct volume_thread *thread)
{
	bool more = true;

	while (more && thread->first && thread->free) {
		struct weir_io *io = thread->first;

		io->medium_data[IO_OPEN]++; /* so that it does not end before it is cut */
		do
			more = start_next(thread, io);
		while (more && !is_cut(io) && thread->free);
		if (is_cut(io))
			thread->first = (struct weir_io *)(uintptr_t)io->medium_data[IO_NEXT];
		if (let_go(io))
			end_io(thread, io);
	}
}

/* What lanes compose has a version of theirs; what hosts of a target do has anything in its place. */
static bool gives_version(const struct volume *volume, enum weir_io_kind kind)
{
	return volume->lanes && (kind == WEIR_IO_WRITE || kind == WEIR_IO_ZERO);
}

static bool volume_submit(struct weir_medium *medium, struct weir_io *io)
{
	struct volume *volume = volume_of(medium);
	struct volume_thread *thread = &volume->thread[io->thread];

	uint64_t version = gives_version(volume, io->kind) ? io->version : 0;

	io->status = NVME_STATUS_SUCCESS;
	memset(io->medium_data, 0, sizeof(io->medium_data));
	io->medium_data[IO_VERSION] = version;
	if (io->kind != WEIR_IO_FLUSH &&
	    (io->offset_bytes > medium->bytes || io->bytes > medium->bytes - io->offset_bytes)) {
		io->status = NVME_STATUS_LBA_OUT_OF_RANGE;
		io->done(io);
		return true;
	}
	(void)weir_session_refresh(volume->session, &thread->map);
	if (thread->first)
		thread->last->medium_data[IO_NEXT] = (uintptr_t)io;
	else
		thread->first = io;
	thread->last = io;
	if (thread->first == io)
		cut(thread);
	return true;
}

static void go_on(struct volume_thread *thread)
{
	struct volume_fragment *fragment = thread->parked, *next;
	uint64_t now = fragment ? weir_session_now_ns() : 0;

	thread->parked = NULL;
	for (; fragment; fragment = next) {
		next = fragment->next_parked;
		fragment->parked = false;
		if (fragment->io)
			volume_fragment_go_on(fragment, now);
	}
}

/* Answers come through threads that need a core, too. */
static void rest(struct volume_thread *thread, unsigned answers)
{
	thread->idle = answers ? 0 : thread->idle + 1;
	if (thread->idle > SPINS)
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

static unsigned volume_poll(struct weir_medium *medium, unsigned index)
{
	struct volume *volume = volume_of(medium);
	struct volume_thread *thread = &volume->thread[index];
	unsigned ended;

	(void)weir_session_refresh(volume->session, &thread->map);
	rest(thread, volume_link_poll(thread));
	go_on(thread);
	cut(thread);
	ended = thread->ended;
	thread->ended = 0;
	return ended;
}

static void free_thread(struct volume *volume, struct volume_thread *thread)
{
	if (thread->map)
		weir_session_put(volume->session, thread->map);
	free(thread->memory);
	free(thread->fragments);
	free(thread->commands);
}

static void volume_close(struct weir_medium *medium)
{
	struct volume *volume = volume_of(medium);

	weir_session_stop(volume->session);
	if (volume->thread)
		volume_link_close(volume);
	if (volume->lanes_map)
		weir_session_put(volume->session, volume->lanes_map);
	for (unsigned i = 0; volume->thread && i < volume->threads; i++)
		free_thread(volume, &volume->thread[i]);
	weir_session_close(volume->session);
	free(volume->thread);
	pthread_mutex_destroy(&volume->lock);
	free(volume);
}

static const struct weir_medium_ops volume_ops = {
	.size = sizeof(volume_ops), .submit = volume_submit, .poll = volume_poll, .close = volume_close
};

struct volume *weir_volume_from(const struct weir_medium *medium)
{
	return medium->ops == &volume_ops ? (struct volume *)(uintptr_t)medium : NULL;
}

static void make_fragments(struct volume *volume, struct volume_thread *thread)
{
	unsigned char *lists = thread->memory + (size_t)VOLUME_FRAGMENTS * volume->fragment_bytes;

	for (u32 i = VOLUME_FRAGMENTS; i-- > 0;) {
		struct volume_fragment *fragment = &thread->fragments[i];

		fragment->thread = thread;
		fragment->data = thread->memory + (size_t)i * volume->fragment_bytes;
		fragment->list = (u64 *)(void *)(lists + (size_t)i * LIST_BYTES);
		for (u32 page = 0; page < volume->fragment_bytes / NVME_PAGE_BYTES; page++)
			fragment->list[page] = (uintptr_t)fragment->data + page * (u64)NVME_PAGE_BYTES;
		fragment->next = thread->free;
		thread->free = fragment;
	}
}

static int make_thread(struct volume *volume, struct volume_thread *thread)
{
	thread->volume = volume;
	thread->memory_bytes = VOLUME_FRAGMENTS * ((size_t)volume->fragment_bytes + LIST_BYTES);
	thread->memory = aligned_alloc(NVME_PAGE_BYTES, thread->memory_bytes);
	thread->fragments = calloc(VOLUME_FRAGMENTS, sizeof(*thread->fragments));
	thread->commands = calloc((size_t)VOLUME_FRAGMENTS * WEIR_SESSION_SLOTS, sizeof(*thread->commands));
	if (!thread->memory || !thread->fragments || !thread->commands)
		return weir_fail(ENOMEM, "volume \"%s\": no memory for a thread's requests",
				 volume->session->keys.name);
	memset(thread->memory, 0, thread->memory_bytes);
	make_fragments(volume, thread);
	(void)weir_session_refresh(volume->session, &thread->map);
	return 0;
}

static void tick(void *argument)
{
	struct volume *volume = argument;

	pthread_mutex_lock(&volume->lock);
	if (volume->update_lanes)
		volume->update_lanes(volume, false);
	pthread_mutex_unlock(&volume->lock);
	volume_link_tick(volume); /* which may take seconds */
}

/* Threads write by a newer map from now on: a lane that read by the one before might ask an engine that has
 * not heard of the newer one, and has not got what they wrote. */
static void retire(void *argument)
{
	struct volume *volume = argument;

	pthread_mutex_lock(&volume->lock);
	if (volume->update_lanes)
		volume->update_lanes(volume, true);
	pthread_mutex_unlock(&volume->lock);
}

/* As many channels as there are engines, for each thread; at least one. */
static int open_channels(struct volume *volume)
{
	u32 ready = 0;

	volume_link_tick(volume);
	for (unsigned t = 0; t < volume->threads; t++)
		for (u32 slot = 0; slot < WEIR_SESSION_SLOTS; slot++)
			ready += load_relaxed_u32(&volume->thread[t].links[slot].state) ==
				 VOLUME_LINK_READY; /* relaxed: this thread's */
	return ready ? 0
		     : weir_fail(ENOTCONN, "volume \"%s\": none of its %u engines is reached: %s",
				 volume->session->keys.name, volume->session->map->map.count,
				 weir_last_error());
}

static void describe(struct volume *volume)
{
	const struct nvme_volume *made = &volume->session->volume;
	uint64_t unit = (uint64_t)NVME_VOLUME_BLOCK_BYTES << made->unit_log2;

	volume->fragment_bytes = unit < VOLUME_FRAGMENT_MOST ? (u32)unit : VOLUME_FRAGMENT_MOST;
	volume->command_ms = COMMAND_MS;
	snprintf(volume->path, sizeof(volume->path), "volume of %u engines, %u replica%s",
		 volume->session->map->map.count, made->replicas, made->replicas == 1 ? "" : "s");
	volume->medium = (struct weir_medium){ .ops = &volume_ops,
					       .bytes = made->blocks * NVME_VOLUME_BLOCK_BYTES,
					       .end_bytes = made->blocks * NVME_VOLUME_BLOCK_BYTES,
					       .block_bytes = NVME_VOLUME_BLOCK_BYTES,
					       .read_only = volume->session->keys.read_only,
					       .path = volume->path };
}

static int make_threads(struct volume *volume, unsigned threads)
{
	int error = 0;

	volume->thread = calloc(threads, sizeof(*volume->thread));
	if (!volume->thread)
		return weir_fail(ENOMEM, "volume \"%s\": no memory", volume->session->keys.name);
	volume->threads = threads;
	for (unsigned i = 0; i < threads && !error; i++)
		error = make_thread(volume, &volume->thread[i]);
	return error;
}

int weir_volume_medium_open(const struct weir_session_keys *keys, unsigned threads,
			    const struct volume_options *options, struct weir_medium **out)
{
	struct volume *volume = calloc(1, sizeof(*volume));
	int error;

	if (!volume)
		return weir_fail(ENOMEM, "volume \"%s\": no memory", keys->name);
	error = weir_session_open(keys, &volume->session);
	if (error) {
		free(volume);
		return error;
	}
	pthread_mutex_init(&volume->lock, NULL);
	if (options)
		volume->options = *options;
	describe(volume);
	error = make_threads(volume, threads);
	if (!error)
		error = open_channels(volume);
	if (!error)
		error = weir_session_start(volume->session, tick, retire, volume);
	if (error) {
		volume_close(&volume->medium);
		return error;
	}
	*out = &volume->medium;
	return 0;
}
