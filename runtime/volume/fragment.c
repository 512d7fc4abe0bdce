/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume/fragment.c: what becomes of a fragment, from answer to answer.
 *
 * Owns: when a write is acknowledged, where a read goes next, what is repeated. An attempt goes by one map;
 * it is decided when all engines that were asked have answered.
 *
 * A block that an engine does not have, or has newer, says nothing of the other blocks of its command: then
 * the fragment goes on block by block.
 */
#include <string.h>

#include "medium.h"

/* The first retry by a map, each of the next ones after twice the time. */
enum { RETRY_MS = 2, RETRY_DOUBLINGS = 4, MS = 1000000, VID_SHIFT = 48, CLIENT_SHIFT = 32 };

/** struct range - Dataset Management range, NVM Command Set 1.0 figure 43 */
struct range {
	u32 attributes;
	u32 blocks;
	u64 lba;
};

static bool changes(const struct volume_fragment *fragment)
{
	return fragment->kind != WEIR_IO_READ && fragment->kind != WEIR_IO_FLUSH;
}

static void park_until(struct volume_fragment *fragment, uint64_t ns)
{
	struct volume_thread *thread = fragment->thread;

	fragment->retry_ns = ns;
	if (fragment->parked)
		return;
	fragment->parked = true;
	fragment->next_parked = thread->parked;
	thread->parked = fragment;
}

static void park(struct volume_fragment *fragment)
{
	park_until(fragment, weir_session_now_ns() + (uint64_t)RETRY_MS * MS);
}

/* No engine is known to have done the part under way. */
static void clear_done(struct volume_fragment *fragment)
{
	fragment->done = 0;
	fragment->old = false;
}

static u64 slba_of(const struct volume_fragment *fragment)
{
	const struct weir_session *session = fragment->thread->volume->session;
	u64 vba = fragment->kind == WEIR_IO_FLUSH ? 0 : fragment->vba + fragment->first;

	return (u64)session->volume.vid << VID_SHIFT | (u64)session->client << CLIENT_SHIFT | vba;
}

static void set_data(const struct volume_fragment *fragment, struct nvme_sqe *sqe)
{
	sqe->prp1 = (uintptr_t)(fragment->data + (size_t)fragment->first * NVME_VOLUME_BLOCK_BYTES);
	if (fragment->count == 2)
		sqe->prp2 = fragment->list[fragment->first + 1];
	else if (fragment->count > 2)
		sqe->prp2 = (uintptr_t)&fragment->list[fragment->first + 1];
}

/* The only memory of a fragment without data is free for its range. */
static void set_range(struct volume_fragment *fragment, struct nvme_sqe *sqe, u64 slba)
{
	const struct range range = { .blocks = fragment->count, .lba = slba };

	memcpy(fragment->data, &range, sizeof(range));
	sqe->prp1 = (uintptr_t)fragment->data;
	sqe->cdw10 = 0; /* one range */
	sqe->cdw11 = NVME_DSM_DEALLOCATE;
	sqe->cdw12 = 0;
}

static void compose(struct volume_fragment *fragment, struct nvme_sqe *sqe)
{
	static const u8 opcodes[] = { [WEIR_IO_READ] = NVME_OPCODE_READ,
				      [WEIR_IO_WRITE] = NVME_OPCODE_WRITE,
				      [WEIR_IO_FLUSH] = NVME_OPCODE_FLUSH,
				      [WEIR_IO_ZERO] = NVME_OPCODE_WRITE_ZEROES,
				      [WEIR_IO_DISCARD] = NVME_OPCODE_DSM };
	u64 slba = slba_of(fragment), version = fragment->version + fragment->first;

	*sqe = (struct nvme_sqe){ .cdw0 = opcodes[fragment->kind],
				  .nsid = 1,
				  .cdw10 = (u32)slba,
				  .cdw11 = (u32)(slba >> 32),
				  .cdw15 = fragment->epoch };
	if (fragment->kind != WEIR_IO_FLUSH)
		sqe->cdw12 = (fragment->count - 1) | (fragment->force_unit_access ? NVME_RW_FUA : 0);
	if (changes(fragment)) {
		sqe->cdw2 = (u32)version;
		sqe->cdw3 = (u32)(version >> 32);
		sqe->cdw14 = fragment->thread->volume->session->lease_epoch;
	}
	if (fragment->kind == WEIR_IO_READ || fragment->kind == WEIR_IO_WRITE)
		set_data(fragment, sqe);
	else if (fragment->kind == WEIR_IO_DISCARD)
		set_range(fragment, sqe, slba);
}

/* To the engine of @slot; false: its channel is not there, or full. */
static bool send_to(struct volume_fragment *fragment, u32 slot)
{
	struct volume_thread *thread = fragment->thread;
	struct volume_link *link = &thread->links[slot];
	struct volume_command *command =
		&thread->commands[(size_t)(fragment - thread->fragments) * WEIR_SESSION_SLOTS + slot];
	struct nvme_sqe sqe;

	/* volume.L1: pairs with set_state() in link.c: the channel is open */
	if (load_acquire_u32(&link->state) != VOLUME_LINK_READY)
		return false;
	compose(fragment, &sqe);
	*command = (struct volume_command){ fragment, slot, weir_session_now_ns() };
	if (!link->channel->ops->submit(link->channel, &sqe, command))
		return false;
	if (!link->inflight++)
		link->oldest_ns = command->sent_ns;
	fragment->waiting |= (u64)1 << slot;
	return true;
}

/* Slots of the engines that the fragment is for, in the order of replicas; how many. */
static u32 targets(const struct volume_fragment *fragment, u8 slots[NVME_VOLUME_MOST_ENGINES])
{
	const struct weir_session_map *map = fragment->thread->map;
	const struct nvme_volume *volume = &fragment->thread->volume->session->volume;
	u32 group = weir_placement_group(volume->vid, fragment->vba, volume->unit_log2), count = 0;

	if (fragment->kind == WEIR_IO_FLUSH) {
		for (u32 i = 0; i < map->map.count; i++)
			if (map->map.engines[i].state == NVME_VOLUME_ENGINE_IN)
				slots[count++] = map->slot[i];
		return count;
	}
	for (u32 replica = 0; replica < volume->replicas; replica++) {
		u32 engine = weir_placement_engine((weir_addr)(uintptr_t)map->table, group, replica);

		if (engine != WEIR_PLACEMENT_NONE)
			slots[count++] = map->slot[engine];
	}
	return count;
}

static void send_todo(struct volume_fragment *fragment)
{
	for (u64 left = fragment->todo; left; left &= left - 1) {
		u32 slot = (u32)__builtin_ctzll(left);

		if (send_to(fragment, slot))
			fragment->todo &= ~((u64)1 << slot);
	}
	if (fragment->todo)
		park(fragment);
}

/* Repeat the attempt, by a newer map as soon as there is one. Until then less and less often: engines that
 * refuse many clients, and the daemon, have other things to do. */
static void repeat(struct volume_fragment *fragment)
{
	uint64_t ms = (uint64_t)RETRY_MS << fragment->repeats;

	weir_session_want_map(fragment->thread->volume->session, fragment->epoch);
	fragment->again = true;
	fragment->repeats += fragment->repeats < RETRY_DOUBLINGS;
	park_until(fragment, weir_session_now_ns() + ms * MS);
}

/* Of replicas that were not asked, and can be, the least busy; among equals, by the unit. */
static bool choose(struct volume_fragment *fragment, const u8 *slots, u32 count, u32 *chosen)
{
	u32 from = (u32)(fragment->vba >> fragment->thread->volume->session->volume.unit_log2);
	bool any = false;

	for (u32 i = 0; i < count; i++) {
		u32 slot = slots[(i + from) % count];
		const struct volume_link *link = &fragment->thread->links[slot];

		/* volume.L1: pairs with set_state() in link.c */
		if ((fragment->tried >> slot & 1) || load_acquire_u32(&link->state) != VOLUME_LINK_READY)
			continue;
		if (!any || link->inflight < fragment->thread->links[*chosen].inflight)
			*chosen = slot;
		any = true;
	}
	return any;
}

static void read_from(struct volume_fragment *fragment, const u8 *slots, u32 count)
{
	u32 slot = 0;

	if (!choose(fragment, slots, count, &slot)) {
		repeat(fragment);
		return;
	}
	if (send_to(fragment, slot))
		fragment->tried |= (u64)1 << slot;
	else
		park(fragment); /* its channel is full */
}

/* An engine without a slot is one too many for this client. */
static bool has_slots(const u8 *slots, u32 count)
{
	for (u32 i = 0; i < count; i++)
		if (slots[i] == WEIR_SESSION_NO_SLOT)
			return false;
	return count > 0;
}

static void begin(struct volume_fragment *fragment)
{
	struct volume *volume = fragment->thread->volume;
	u8 slots[NVME_VOLUME_MOST_ENGINES];
	u32 count;

	if (changes(fragment) && weir_session_lease(volume->session) != WEIR_LEASE_HELD) {
		volume_fragment_end(fragment, NVME_STATUS_VOLUME_STALE_LEASE | NVME_STATUS_DNR);
		return;
	}
	if (fragment->epoch != fragment->thread->map->map.epoch) {
		clear_done(fragment);
		fragment->repeats = 0;
	}
	fragment->epoch = fragment->thread->map->map.epoch;
	fragment->again = false;
	fragment->status = 0;
	fragment->tried = fragment->bad = fragment->not_here = 0;
	fragment->todo = 0;
	count = targets(fragment, slots);
	if (!has_slots(slots, count)) {
		repeat(fragment);
		return;
	}
	if (fragment->kind == WEIR_IO_READ) {
		read_from(fragment, slots, count);
		return;
	}
	for (u32 i = 0; i < count; i++)
		fragment->todo |= (u64)1 << slots[i] & ~fragment->done;
	send_todo(fragment);
}

void volume_fragment_start(struct volume_fragment *fragment)
{
	fragment->first = 0;
	fragment->faulty = false;
	fragment->repeats = 0;
	fragment->count = fragment->blocks;
	clear_done(fragment);
	fragment->deadline_ns = weir_session_now_ns() + fragment->thread->volume->session->keys.wait_ms * MS;
	begin(fragment);
}

/* Begin again with one block, the first of those under way. */
static void go_by_blocks(struct volume_fragment *fragment)
{
	fragment->count = 1;
	clear_done(fragment);
	begin(fragment);
}

/* The part under way is done. */
static void advance(struct volume_fragment *fragment)
{
	fragment->first += fragment->count;
	fragment->repeats = 0;
	clear_done(fragment);
	if (fragment->kind == WEIR_IO_FLUSH || fragment->first >= fragment->blocks)
		volume_fragment_end(fragment, NVME_STATUS_SUCCESS);
	else
		begin(fragment);
}

/* Another replica had what these engines could not read. */
static void report_damage(const struct volume_fragment *fragment)
{
	for (u64 left = fragment->bad; left; left &= left - 1)
		weir_session_damaged(fragment->thread->volume->session, (u32)__builtin_ctzll(left),
				     (u32)fragment->vba + fragment->first, fragment->count);
}

static void decide_read(struct volume_fragment *fragment)
{
	u8 slots[NVME_VOLUME_MOST_ENGINES];
	u32 count = targets(fragment, slots), slot = 0;
	u64 all = 0;

	if (fragment->done) {
		report_damage(fragment);
		advance(fragment);
		return;
	}
	for (u32 i = 0; i < count; i++)
		all |= (u64)1 << slots[i];
	if (fragment->epoch != fragment->thread->map->map.epoch ||
	    (fragment->again && all == fragment->tried))
		repeat(fragment);
	else if (choose(fragment, slots, count, &slot))
		read_from(fragment, slots, count);
	else if (all != fragment->tried)
		repeat(fragment);
	else if (fragment->count > 1 && (fragment->not_here || fragment->bad))
		go_by_blocks(fragment);
	else if (fragment->not_here == all) {
		memset(fragment->data + (size_t)fragment->first * NVME_VOLUME_BLOCK_BYTES, 0,
		       (size_t)fragment->count * NVME_VOLUME_BLOCK_BYTES);
		advance(fragment);
	} else {
		volume_fragment_end(fragment, fragment->status
						      ? fragment->status
						      : NVME_STATUS_UNRECOVERED_READ | NVME_STATUS_DNR);
	}
}

/* All that were asked have answered. */
static void decide(struct volume_fragment *fragment)
{
	if (fragment->kind == WEIR_IO_READ)
		decide_read(fragment);
	else if (fragment->status)
		volume_fragment_end(fragment, fragment->status);
	else if (fragment->again)
		repeat(fragment);
	else if (fragment->old && fragment->count > 1)
		go_by_blocks(fragment);
	else
		advance(fragment);
}

/* The daemon takes out an engine whose medium fails, where others have its blocks. */
static void note_fault(struct volume_fragment *fragment, u32 status)
{
	if (fragment->thread->volume->session->volume.replicas == 1)
		fragment->status = (u16)status;
	else
		fragment->again = fragment->faulty = true;
}

/* Reads have other replicas to ask; what a write is refused for, it is. */
static void note(struct volume_fragment *fragment, u32 slot, u32 status)
{
	u64 bit = (u64)1 << slot;

	switch (status & NVME_STATUS_CODE_MASK) {
	case NVME_STATUS_SUCCESS: fragment->done |= bit; break;
	case NVME_STATUS_VOLUME_OLD_VERSION:
		/* Of a newer write of this client, which was under way at the same time: engines take no
		 * other lease's. */
		fragment->old = true;
		fragment->done |= bit;
		break;
	case NVME_STATUS_VOLUME_NOT_HERE: fragment->not_here |= bit; break;
	case NVME_STATUS_UNRECOVERED_READ: fragment->bad |= bit; break;
	case NVME_STATUS_VOLUME_STALE_MAP:
	case NVME_STATUS_VOLUME_NO_MAP:
		/* Now: an engine that has not answered may be none of the next map's, and never answer. */
		weir_session_want_map(fragment->thread->volume->session, fragment->epoch);
		fragment->again = true;
		break;
	case NVME_STATUS_VOLUME_MISPLACED:
	case NVME_STATUS_PATH_INTERNAL:
	case NVME_STATUS_ABORTED_SQ_DELETED:
	case NVME_STATUS_ABORT_REQUESTED:
	case NVME_STATUS_TRANSIENT_TRANSPORT: fragment->again = true; break;
	case NVME_STATUS_WRITE_FAULT: note_fault(fragment, status); break;
	case NVME_STATUS_VOLUME_STALE_LEASE:
		weir_session_doubt(fragment->thread->volume->session);
		fragment->status = (u16)(status | NVME_STATUS_DNR);
		break;
	default: fragment->status = (u16)status; break;
	}
}

void volume_fragment_answer(struct volume_fragment *fragment, u32 slot, u32 status)
{
	fragment->waiting &= ~((u64)1 << slot);
	note(fragment, slot, status);
	if (fragment->again || fragment->status)
		fragment->todo = 0;
	if (!fragment->waiting && !fragment->todo)
		decide(fragment);
}

static const char *why_late(const struct volume_fragment *fragment)
{
	if (fragment->faulty)
		return "the medium of an engine fails writes, and the daemon gives no map without it";
	return fragment->todo ? "an engine is not reached, and the daemon gives no map without it"
			      : "engines and this client have different maps, and the daemon gives none that "
				"all have";
}

void volume_fragment_go_on(struct volume_fragment *fragment, uint64_t now)
{
	bool newer = fragment->thread->map->map.epoch != fragment->epoch;

	if (fragment->waiting && (fragment->again || !fragment->todo))
		return; /* decided when the last of them answers */
	if (!newer && now < fragment->retry_ns) {
		park_until(fragment, fragment->retry_ns);
		return;
	}
	if (now > fragment->deadline_ns && !fragment->waiting) {
		volume_complain(fragment->thread->volume, why_late(fragment));
		volume_fragment_end(fragment, NVME_STATUS_PATH_INACCESSIBLE);
		return;
	}
	if (newer && fragment->todo) { /* whatever is still to be sent goes by the new map */
		fragment->todo = 0;
		fragment->again = true;
	}
	if (fragment->waiting)
		send_todo(fragment);
	else if (fragment->todo) {
		weir_session_want_map(fragment->thread->volume->session, fragment->epoch);
		send_todo(fragment);
	} else {
		begin(fragment);
	}
}
