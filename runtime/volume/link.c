/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume/link.c: channels to engines, opened, lost, opened again.
 *
 * Owns: the states of a link. Memory of a command that has not ended is used again only after its channel was
 * halted: until then the engine may still write there.
 */

#include "../backend/error.h"
#include "medium.h"

enum { AGAIN_MS = 100, MS = 1000000 };

/* volume.L1: pairs with state_of(): what was done to the link before. */
static void set_state(struct volume_link *link, enum volume_link_state state)
{
	store_release_u32(&link->state, state);
}

/* volume.L1: pairs with set_state() of the other thread. */
static enum volume_link_state state_of(const struct volume_link *link)
{
	return (enum volume_link_state)load_acquire_u32(&link->state);
}

static bool is_in(const struct weir_session_map *map, u32 slot)
{
	for (u32 i = 0; i < map->map.count; i++)
		if (map->slot[i] == slot && map->map.engines[i].state == NVME_VOLUME_ENGINE_IN)
			return true;
	return false;
}

static int open_channel(struct volume_thread *thread, const char *uri, struct weir_channel **out)
{
	struct volume *volume = thread->volume;

	if (volume->options.open)
		return volume->options.open(volume->options.argument, uri, thread->memory,
					    thread->memory_bytes, out);
	return weir_channel_open(uri, thread->memory, thread->memory_bytes, volume->fragment_bytes, out);
}

/* An engine that is not reached costs a second: it is tried for one thread, before others. */
static void put_off(struct volume *volume, u32 slot)
{
	uint64_t again_ns = weir_session_now_ns() + (uint64_t)AGAIN_MS * MS;

	for (unsigned t = 0; t < volume->threads; t++)
		volume->thread[t].links[slot].again_ns = again_ns;
}

static void open_link(struct volume_thread *thread, u32 slot, uint64_t now)
{
	struct weir_session *session = thread->volume->session;
	struct volume_link *link = &thread->links[slot];
	char uri[WEIR_SESSION_URI_BYTES];

	if (now < link->again_ns)
		return;
	weir_session_uri(session, &session->slots[slot], 1, uri);
	if (open_channel(thread, uri, &link->channel) == 0) {
		link->inflight = 0;
		set_state(link, VOLUME_LINK_READY);
		return;
	}
	put_off(thread->volume, slot);
	weir_report("volume \"%s\": engine %u is not reached: %s", session->keys.name,
		    session->slots[slot].id, weir_last_error());
	weir_session_suspect(session, session->slots[slot].id);
}

static void tick_link(struct volume_thread *thread, const struct weir_session_map *map, u32 slot,
		      uint64_t now)
{
	struct weir_session *session = thread->volume->session;
	struct volume_link *link = &thread->links[slot];

	switch (state_of(link)) {
	case VOLUME_LINK_ABSENT:
		if (is_in(map, slot))
			open_link(thread, slot, now);
		break;
	case VOLUME_LINK_LOST:
		if (link->channel->ops->halt(link->channel) != 0)
			break; /* asked again: its memory is not ours before that */
		set_state(link, VOLUME_LINK_HALTED);
		if (is_in(map, slot))
			weir_session_suspect(session, session->slots[slot].id);
		break;
	case VOLUME_LINK_ENDED:
		link->channel->ops->close(link->channel);
		link->channel = NULL;
		set_state(link, VOLUME_LINK_ABSENT);
		break;
	case VOLUME_LINK_READY:
	case VOLUME_LINK_HALTED: break;
	}
}

void volume_link_tick(struct volume *volume)
{
	uint64_t now = weir_session_now_ns();

	for (unsigned t = 0; t < volume->threads; t++)
		for (u32 slot = 0; slot < volume->session->slot_count; slot++)
			tick_link(&volume->thread[t], volume->session->map, slot, now);
}

static void answered(void *argument, u32 status)
{
	struct volume_command *command = argument;
	struct volume_link *link = &command->fragment->thread->links[command->slot];

	link->inflight--;
	volume_fragment_answer(command->fragment, command->slot, status);
}

/* When the oldest command was sent that the engine of @slot has not answered; @now: it has answered all. */
static uint64_t oldest_of(const struct volume_thread *thread, u32 slot, uint64_t now)
{
	uint64_t oldest = now;

	for (u32 i = 0; i < VOLUME_FRAGMENTS; i++) {
		uint64_t sent = thread->commands[(size_t)i * WEIR_SESSION_SLOTS + slot].sent_ns;

		if (thread->fragments[i].io && (thread->fragments[i].waiting >> slot & 1) && sent < oldest)
			oldest = sent;
	}
	return oldest;
}

/* A command has no answer for too long, whatever became of others. Which one is the oldest is seldom looked
 * for. */
static bool is_late(struct volume_thread *thread, u32 slot)
{
	struct volume_link *link = &thread->links[slot];
	uint64_t now = weir_session_now_ns(), most = thread->volume->command_ms * MS;

	if (now - link->oldest_ns <= most)
		return false;
	link->oldest_ns = oldest_of(thread, slot, now);
	return now - link->oldest_ns > most;
}

/* The engine is out of the map, does not answer, or cannot. */
static bool is_lost(struct volume_thread *thread, u32 slot)
{
	const struct volume_link *link = &thread->links[slot];

	return link->channel->ops->lost(link->channel) ||
	       (link->inflight && (!is_in(thread->map, slot) || is_late(thread, slot)));
}

static void end_commands(struct volume_thread *thread, u32 slot)
{
	for (u32 i = 0; i < VOLUME_FRAGMENTS; i++)
		if (thread->fragments[i].io && (thread->fragments[i].waiting >> slot & 1))
			volume_fragment_answer(&thread->fragments[i], slot, NVME_STATUS_PATH_INTERNAL);
}

unsigned volume_link_poll(struct volume_thread *thread)
{
	unsigned count = 0;

	for (u32 slot = 0; slot < WEIR_SESSION_SLOTS; slot++) {
		struct volume_link *link = &thread->links[slot];
		enum volume_link_state state = state_of(link);

		if (state == VOLUME_LINK_READY) {
			count += link->channel->ops->poll(link->channel, answered);
			if (is_lost(thread, slot))
				set_state(link, VOLUME_LINK_LOST);
		} else if (state == VOLUME_LINK_HALTED) {
			end_commands(thread, slot);
			set_state(link, VOLUME_LINK_ENDED);
		}
	}
	return count;
}

void volume_link_close(struct volume *volume)
{
	for (unsigned t = 0; t < volume->threads; t++)
		for (u32 slot = 0; slot < WEIR_SESSION_SLOTS; slot++) {
			struct weir_channel *channel = volume->thread[t].links[slot].channel;

			if (channel)
				channel->ops->close(channel);
		}
}
