/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c: what loads see and when stores arrive.
 *
 * Strong: one memory, every access at once. Weak, per run:
 *   - A store waits in its wave's buffer and arrives at a time of the strategy's
 *     choice, in any order, except: a release store after all that its lane (and
 *     lanes it met in weir_wave_sync()) stored before; stores to one word in
 *     order. Read-modify-writes act at once; with release, after the buffer.
 *   - A load may return an older value of its word, not older than what the lane
 *     saw of that word, nor than its horizon.
 *   - A value carries the time up to which who wrote it has published what he saw and did (struct history's
 * view): that of its arrival with release order, else that of the lane's last fence. A read-modify-write
 * carries on its word's. An acquire moves the horizon to the view of what it read; weir_order_loads() to
 * those of all that was read before it.
 *   - weir_fence_with_controller() waits for the stores of its lane, and moves the horizon to the moment it
 * is over. Kernels' plain accesses are part of it: memory shows the lane its own view for the one access, and
 * is put back by memory_settle().
 */
#include <string.h>

#include "explore.h"
#include "hooks.h"

enum { WORDS = ARENA_BYTES / 4, OLD_VALUES = 3, BUFFERED = 64, ARRIVALS = 256 };
#define NOW 0xffffffffu

/** struct past - a value that a word had, from @start on; an acquire that reads it sees all that is older
 * than @view */
struct past {
	u32 start;
	u32 view;
	u32 value;
};

/** struct history - the past of a 4-byte word; times count writes of the run */
struct history {
	u64 run;
	struct past present; /* but for its value, which memory has */
	u32 count;
	struct past old[OLD_VALUES]; /* newest first */
	u32 seen[MOST_LANES];        /* newest time each lane saw */
};

/** struct store - a store on its way; of @wave, ordered for the lanes in @covers */
struct store {
	unsigned char *address;
	u64 value;
	u64 covers;
	u32 bytes;
	bool release;
	u32 view;
	struct lane *lane;
};

/** struct arrival - a store that arrived, and which lanes of its wave cannot see older words */
struct arrival {
	unsigned char *address;
	u32 bytes;
	u32 time;
	u64 covers;
};

/** struct buffer - a wave's stores on their way, and those that not all its lanes must see yet */
struct buffer {
	struct store stores[BUFFERED];
	u32 count;
	struct arrival arrivals[ARRIVALS];
	u32 arrival_count;
};

/** struct overlay - memory as one lane sees it for one plain access */
struct overlay {
	unsigned char *address;
	u64 saved;
	u32 bytes;
	bool store;
	struct lane *lane;
};

unsigned char arena[ARENA_BYTES] __attribute__((aligned(4096)));
static struct history histories[WORDS];
static struct buffer buffers[MOST_WAVES];
static struct overlay overlays[2];
static u32 overlay_count;
static u32 now;
static u64 serial; /* of the run */

void memory_begin(void)
{
	serial++;
	now = 1;
	overlay_count = 0;
	for (u32 i = 0; i < MOST_WAVES; i++)
		buffers[i].count = buffers[i].arrival_count = 0;
}

static u64 read_raw(const void *address, u32 bytes)
{
	u64 value = 0;

	memcpy(&value, address, bytes);
	return value;
}

static void write_raw(void *address, u32 bytes, u64 value)
{
	memcpy(address, &value, bytes);
}

static struct history *history_of(const unsigned char *address)
{
	struct history *history = &histories[(size_t)(address - arena) / 4];

	if (history->run != serial)
		*history = (struct history){ .run = serial };
	return history;
}

static bool in_arena(const void *address)
{
	return (size_t)((const unsigned char *)address - arena) < ARENA_BYTES;
}

/* The words are about to be written, by somebody who has published what came before @view; NOW: all. */
static void remember(unsigned char *address, u32 bytes, u32 view)
{
	now++;
	for (u32 at = 0; at < bytes; at += 4) {
		struct history *history = history_of(address + at);

		memmove(history->old + 1, history->old, sizeof(history->old[0]) * (OLD_VALUES - 1));
		history->old[0] = history->present;
		history->old[0].value = (u32)read_raw(address + at, 4);
		history->present = (struct past){ .start = now, .view = view == NOW ? now : view };
		if (history->count < OLD_VALUES)
			history->count++;
	}
}

static u64 bit_of(const unsigned char *address)
{
	return (u64)1 << (((uintptr_t)address >> 2) * 0x9e3779b97f4a7c15ull >> 58);
}

/* Those who looked at the word have reason to look again. */
static void notice(const struct lane *writer, const unsigned char *address)
{
	u64 bits = bit_of(address) | bit_of(address + 4);

	run.rings += !in_arena(address);
	for (u32 i = 0; i < run.lane_count; i++) {
		struct lane *lane = &run.lanes[i];

		if (lane != writer && (lane->reads & bits)) {
			lane->stale = true;
			lane->sleeps = false;
		}
	}
}

void memory_wake(void)
{
	for (u32 i = 0; i < run.lane_count; i++) {
		run.lanes[i].stale = true;
		run.lanes[i].sleeps = false;
	}
}

/* A store reaches memory. */
static void arrive(struct lane *lane, unsigned char *address, u32 bytes, u64 value, u32 view)
{
	u64 old = read_raw(address, bytes);

	if (run.weak && in_arena(address) && bytes >= 4)
		remember(address, bytes, view);
	write_raw(address, bytes, value);
	if (run.strategy == &strategy_exhaustive)
		notice(lane, address);
	if (in_arena(address))
		watch_write(lane, address, bytes, old, value);
}

static bool overlap(const struct store *a, const unsigned char *address, u32 bytes)
{
	return a->address < address + bytes && address < a->address + a->bytes;
}

static bool must_wait(const struct buffer *buffer, u32 index)
{
	const struct store *store = &buffer->stores[index];

	for (u32 i = 0; i < index; i++) {
		const struct store *older = &buffer->stores[i];

		if ((older->covers & store->covers) && overlap(older, store->address, store->bytes))
			return true;
		if (store->release && ((older->covers >> store->lane->self_lane) & 1))
			return true;
	}
	return false;
}

/* Lanes it covers see no word older than this. */
static void seen_by(const struct wave *wave, const struct arrival *arrival)
{
	for (u32 i = 0; i < wave->width; i++)
		for (u32 at = 0; ((arrival->covers >> i) & 1) && at < arrival->bytes; at += 4) {
			u32 *seen = &history_of(arrival->address + at)->seen[wave->first + i];

			if (*seen < arrival->time)
				*seen = arrival->time;
		}
}

/* Note what a later weir_wave_sync() makes other lanes see. */
static void note_arrival(const struct wave *wave, struct buffer *buffer, struct arrival arrival)
{
	u64 all = ((u64)1 << (wave->width - 1) << 1) - 1;

	seen_by(wave, &arrival);
	if ((arrival.covers & all) == all)
		return;
	if (buffer->arrival_count == ARRIVALS) { /* the oldest is seen by everybody sooner than it must */
		buffer->arrivals[0].covers = all;
		seen_by(wave, &buffer->arrivals[0]);
		memmove(buffer->arrivals, buffer->arrivals + 1, (ARRIVALS - 1) * sizeof(buffer->arrivals[0]));
		buffer->arrival_count--;
	}
	buffer->arrivals[buffer->arrival_count++] = arrival;
}

/* @lane has read the word with acquire order, or changed it, at @time: whom it meets sees none older. */
static void note_seen(const struct lane *lane, unsigned char *address, u32 bytes, u32 time)
{
	struct buffer *buffer = &buffers[lane->wave->index];
	struct arrival arrival = { address, bytes, time, (u64)1 << lane->self_lane };

	for (u32 i = 0; i < buffer->arrival_count; i++) {
		struct arrival *known = &buffer->arrivals[i];

		if (known->address != address || known->bytes != bytes || known->covers != arrival.covers)
			continue;
		known->time = time;
		seen_by(lane->wave, known);
		return;
	}
	note_arrival(lane->wave, buffer, arrival);
}

/* Nobody sees a word older than what he stored to it himself. */
static void drain(struct buffer *buffer, u32 index)
{
	struct store store = buffer->stores[index];

	buffer->count--;
	memmove(buffer->stores + index, buffer->stores + index + 1,
		(buffer->count - index) * sizeof(buffer->stores[0]));
	arrive(store.lane, store.address, store.bytes, store.value, store.view);
	if (in_arena(store.address))
		note_arrival(store.lane->wave, buffer,
			     (struct arrival){ store.address, store.bytes, now, store.covers });
}

/* Lanes of @mask met: what arrived for one of them is seen by all. */
static void share_arrivals(const struct wave *wave, struct buffer *buffer, u64 mask)
{
	u64 all = ((u64)1 << (wave->width - 1) << 1) - 1;
	u32 kept = 0;

	for (u32 i = 0; i < buffer->arrival_count; i++) {
		struct arrival arrival = buffer->arrivals[i];

		if (arrival.covers & mask) {
			arrival.covers |= mask;
			seen_by(wave, &arrival);
		}
		if ((arrival.covers & all) != all)
			buffer->arrivals[kept++] = arrival;
	}
	buffer->arrival_count = kept;
}

bool memory_pending(void)
{
	for (u32 i = 0; i < run.wave_count; i++)
		if (buffers[i].count)
			return true;
	return false;
}

bool memory_drain_one(void)
{
	u32 first = run.wave_count > 1 ? (u32)random_below(run.wave_count) : 0;

	for (u32 i = 0; i < run.wave_count; i++) {
		struct buffer *buffer = &buffers[(first + i) % run.wave_count];
		u32 index;

		if (!buffer->count)
			continue;
		for (index = (u32)random_below(buffer->count); must_wait(buffer, index); index--)
			; /* the oldest never waits */
		drain(buffer, index);
		return true;
	}
	return false;
}

/* Let everything arrive that @lane stored (or met), of @address if that is given. */
static void drain_lane(struct lane *lane, const unsigned char *address, u32 bytes)
{
	struct buffer *buffer = &buffers[lane->wave->index];

	for (u32 i = 0; i < buffer->count;) {
		const struct store *store = &buffer->stores[i];
		bool wanted = ((store->covers >> lane->self_lane) & 1) &&
			      (!address || overlap(store, address, bytes));

		if (!wanted || must_wait(buffer, i)) {
			/* what stands before it goes first */
			if (wanted) {
				drain(buffer, 0);
				i = 0;
			} else {
				i++;
			}
			continue;
		}
		drain(buffer, i);
	}
}

static const struct store *own_store(const struct lane *lane, const unsigned char *address)
{
	const struct buffer *buffer = &buffers[lane->wave->index];

	for (u32 i = buffer->count; i-- > 0;) {
		const struct store *store = &buffer->stores[i];

		if (((store->covers >> lane->self_lane) & 1) && overlap(store, address, 4))
			return store;
	}
	return NULL;
}

static struct past past_at(const struct history *history, const unsigned char *address, u32 time)
{
	struct past past = history->present;

	past.value = (u32)read_raw(address, 4);
	for (u32 i = 0; i < history->count && past.start > time; i++)
		past = history->old[i];
	return past;
}

/*
 * A time this load may see: mostly now; at times one just before a change of the
 * word, one to OLD_VALUES changes back, if the lane may still see that.
 */
static u32 pick_time(const struct lane *lane, const unsigned char *address, u32 bytes)
{
	const struct history *newest = history_of(address);
	u32 oldest = lane->horizon, time, back;

	for (u32 at = 0; at < bytes; at += 4) {
		const struct history *history = history_of(address + at);

		if (history->seen[lane->index] > oldest)
			oldest = history->seen[lane->index];
		if (history->present.start > newest->present.start)
			newest = history;
	}
	if (!newest->count || newest->present.start <= oldest || random_below(3))
		return now;
	back = (u32)random_below(newest->count);
	time = (back ? newest->old[back - 1].start : newest->present.start) - 1;
	return time >= oldest ? time : newest->present.start - 1;
}

/* A value with this view was read. */
static void see_view(struct lane *lane, u32 view, u32 order)
{
	if (view > lane->latest)
		lane->latest = view;
	if ((order & EXPLORE_ACQUIRE) && view > lane->horizon)
		lane->horizon = view;
}

static u64 load_weak(struct lane *lane, const unsigned char *address, u32 bytes, u32 order)
{
	u32 time = pick_time(lane, address, bytes);
	u64 value = 0;

	for (u32 at = 0; at < bytes; at += 4) {
		struct history *history = history_of(address + at);
		const struct store *own = own_store(lane, address + at);
		struct past past = past_at(history, address + at, time);
		u32 word = own ? (u32)(own->value >> ((address + at - own->address) * 8)) : past.value;

		if (!own && history->seen[lane->index] < time)
			history->seen[lane->index] = time;
		if (!own)
			see_view(lane, past.view, order);
		value |= (u64)word << (at * 8);
	}
	if (order & EXPLORE_ACQUIRE)
		note_seen(lane, (unsigned char *)(uintptr_t)address, bytes, time);
	return value;
}

u64 memory_load(struct lane *lane, const void *address, u32 bytes, u32 order)
{
	const unsigned char *byte = address;
	u32 in_word = (u32)((uintptr_t)address & 3);

	lane->reads |= bit_of(byte);
	if (!run.weak || !in_arena(address))
		return read_raw(address, bytes);
	if (bytes >= 4)
		return load_weak(lane, byte, bytes, order);
	return (load_weak(lane, byte - in_word, 4, order) >> (in_word * 8)) & ((1u << (bytes * 8)) - 1);
}

void memory_store(struct lane *lane, void *address, u32 bytes, u64 value, u32 order)
{
	struct buffer *buffer = &buffers[lane->wave->index];

	if (!run.weak) {
		arrive(lane, address, bytes, value, NOW);
		return;
	}
	if (buffer->count == BUFFERED)
		drain(buffer, 0);
	buffer->stores[buffer->count++] = (struct store){
		.address = address,
		.value = value,
		.covers = (u64)1 << lane->self_lane,
		.bytes = bytes,
		.release = (order & EXPLORE_RELEASE) != 0,
		.view = order & EXPLORE_RELEASE ? NOW : lane->fence,
		.lane = lane,
	};
}

static u64 changed(u32 change, u64 old, u64 value, u64 expected)
{
	switch (change) {
	case EXPLORE_ADD: return old + value;
	case EXPLORE_AND: return old & value;
	case EXPLORE_OR: return old | value;
	case EXPLORE_CAS: return old == expected ? value : old;
	default: return value;
	}
}

/* What a read-modify-write sees is the newest; its orders work as for loads and stores. Return: the view of
 * what it read. */
static u32 see_newest(struct lane *lane, const unsigned char *address, u32 bytes, u32 order)
{
	u32 view = 0;

	for (u32 at = 0; at < bytes; at += 4) {
		struct history *history = history_of(address + at);

		history->seen[lane->index] = now;
		if (history->present.view > view)
			view = history->present.view;
	}
	see_view(lane, view, order);
	return view;
}

u64 memory_change(struct lane *lane, void *address, u32 bytes, u32 change, u64 value, u64 expected, u32 order)
{
	bool models = run.weak && in_arena(address);
	u32 view = NOW;
	u64 old, new;

	if (run.weak)
		drain_lane(lane, order & EXPLORE_RELEASE ? NULL : address, bytes);
	lane->reads |= bit_of(address);
	old = read_raw(address, bytes);
	new = changed(change, old, value, expected);
	if (bytes == 4)
		new = (u32) new;
	if (models) {
		view = see_newest(lane, address, bytes, order);
		view = order & EXPLORE_RELEASE ? NOW : view > lane->fence ? view : lane->fence;
	}
	if (change != EXPLORE_CAS || old == expected)
		arrive(lane, address, bytes, new, view);
	if (models)
		note_seen(lane, address, bytes, now);
	return old;
}

void memory_order_loads(struct lane *lane)
{
	if (lane->latest > lane->horizon)
		lane->horizon = lane->latest;
}

void memory_fence_to(struct lane *lane)
{
	if (!run.weak)
		return;
	drain_lane(lane, NULL, 0);
	memory_order_loads(lane);
	lane->fence = now;
}

/* The stores have arrived, and no load sees what is older than this moment. */
void memory_fence_with(struct lane *lane)
{
	if (!run.weak)
		return;
	drain_lane(lane, NULL, 0);
	lane->horizon = lane->latest = lane->fence = now;
}

/* Lanes that met: what each stored or saw before counts for all of them. */
void memory_wave_sync(struct wave *wave, u64 mask)
{
	struct buffer *buffer = &buffers[wave->index];
	u32 horizon = 0;

	if (!run.weak)
		return;
	for (u32 i = 0; i < buffer->count; i++)
		if (buffer->stores[i].covers & mask)
			buffer->stores[i].covers |= mask;
	share_arrivals(wave, buffer, mask);
	for (u32 i = 0; i < wave->width; i++)
		if (((mask >> i) & 1) && run.lanes[wave->first + i].horizon > horizon)
			horizon = run.lanes[wave->first + i].horizon;
	for (u32 i = 0; i < wave->width; i++)
		if ((mask >> i) & 1)
			run.lanes[wave->first + i].horizon = horizon;
}

void memory_finish(struct lane *lane)
{
	if (run.weak)
		drain_lane(lane, NULL, 0);
}

static void overlay(struct lane *lane, unsigned char *address, u32 bytes, bool store, u64 seen)
{
	struct overlay *over = &overlays[overlay_count++];

	*over = (struct overlay){ address, read_raw(address, bytes), bytes, store, lane };
	if (!store)
		write_raw(address, bytes, seen);
}

void memory_plain(struct lane *lane, void *address, u32 bytes, bool store, struct step *step)
{
	if (!run.weak || bytes < 4) {
		lane->reads |= store ? 0 : bit_of(address);
		if (store && run.strategy == &strategy_exhaustive)
			notice(lane, address);
		step->result = bytes <= 8 ? read_raw(address, bytes) : 0;
		return;
	}
	for (u32 at = 0; at < bytes; at += 8) {
		unsigned char *part = (unsigned char *)address + at;
		u32 length = bytes - at < 8 ? bytes - at : 8;
		u64 seen = store ? 0 : memory_load(lane, part, length, EXPLORE_RELAXED);

		step->result = seen;
		overlay(lane, part, length, store, seen);
	}
}

/* All parts of an access are taken before the first of them is stored: a full buffer lets an older store
 * arrive, perhaps at the next part. */
void memory_settle(void)
{
	u64 values[sizeof(overlays) / sizeof(overlays[0])];
	u32 count = overlay_count;

	overlay_count = 0;
	for (u32 i = 0; i < count; i++) {
		values[i] = read_raw(overlays[i].address, overlays[i].bytes);
		write_raw(overlays[i].address, overlays[i].bytes, overlays[i].saved);
	}
	for (u32 i = 0; i < count; i++)
		if (overlays[i].store)
			memory_store(overlays[i].lane, overlays[i].address, overlays[i].bytes, values[i],
				     EXPLORE_RELAXED);
}

void memory_device_units(void *to, const void *from, size_t bytes, u32 unit)
{
	for (size_t at = 0; run.weak && at < bytes; at += unit)
		remember((unsigned char *)to + at, unit, NOW);
	memcpy(to, from, bytes);
}
