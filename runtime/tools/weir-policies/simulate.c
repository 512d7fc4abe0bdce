/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SET_WAYS = 4, ROW = 32, MOST_COUNT = 15, SAMPLE = 64 };

/**
 * struct entry - a line that is in the cache
 * @key: 0 if the entry is unused
 * @read: since it came, or since the policy last forgave it
 * @age: the policy's; the least one is the oldest
 * @next_use: position in the trace of its next read
 */
struct entry {
	uint64_t key;
	bool read;
	uint64_t age;
	uint64_t next_use;
};

/**
 * struct set - the lines that share a set, and what policies remember of it
 * @entries: as many as the set has ways
 * @hand: clock: an entry
 * @victim: SIEVE: key of the line at the hand, 0 for the oldest
 * @window: frequency: key of the line on probation
 * @asked: frequency: keys of the lines read between the last two misses
 * @asked_count: how many
 * @counts: frequency: the sketch
 * @added: frequency: adds since the sketch was halved, and half of those before
 */
struct set {
	struct entry *entries;
	unsigned hand;
	uint64_t victim;
	uint64_t window;
	uint64_t asked[SET_WAYS];
	unsigned asked_count;
	uint8_t counts[2][ROW];
	unsigned added;
};

/**
 * struct cache - one simulation
 * @clock: ever growing; what ages are drawn from
 * @random: state of a generator
 * @next_use: for each read the position of the next one of its key
 */
struct cache {
	unsigned policy, ways;
	uint64_t sets;
	struct set *set;
	struct entry *entries;
	uint64_t clock;
	uint64_t random;
	uint64_t *next_use;
};

bool simulate_exact(unsigned policy)
{
	return policy < WEIR_POLICY_USER && policy != WEIR_POLICY_RANDOM;
}

static struct entry *find(const struct cache *cache, const struct set *set, uint64_t key)
{
	for (unsigned i = 0; i < cache->ways; i++)
		if (set->entries[i].key == key)
			return &set->entries[i];
	return NULL;
}

/* The entry with the least age, of those that are not @but. */
static struct entry *oldest(const struct cache *cache, const struct set *set, uint64_t but)
{
	struct entry *least = NULL;

	for (unsigned i = 0; i < cache->ways; i++)
		if (set->entries[i].key != but && (!least || set->entries[i].age < least->age))
			least = &set->entries[i];
	return least;
}

/* The entry that came next after @age, or NULL. */
static struct entry *younger(const struct cache *cache, const struct set *set, uint64_t age)
{
	struct entry *least = NULL;

	for (unsigned i = 0; i < cache->ways; i++)
		if (set->entries[i].age > age && (!least || set->entries[i].age < least->age))
			least = &set->entries[i];
	return least;
}

/* At a miss the lines read since the last one grow young, the older one of two first. */
static void rejuvenate(struct cache *cache, struct set *set)
{
	for (;;) {
		struct entry *first = NULL;

		for (unsigned i = 0; i < cache->ways; i++)
			if (set->entries[i].read && (!first || set->entries[i].age < first->age))
				first = &set->entries[i];
		if (!first)
			return;
		first->age = ++cache->clock;
		first->read = false;
	}
}

static struct entry *clock_victim(const struct cache *cache, struct set *set)
{
	while (set->entries[set->hand].read) {
		set->entries[set->hand].read = false;
		set->hand = (set->hand + 1) % cache->ways;
	}
	return &set->entries[set->hand];
}

/* Ages are arrivals. The hand goes from old to young, and begins again behind the youngest. */
static struct entry *sieve_victim(const struct cache *cache, struct set *set)
{
	struct entry *at = set->victim ? find(cache, set, set->victim) : oldest(cache, set, 0), *next;

	while (at->read) {
		at->read = false;
		next = younger(cache, set, at->age);
		at = next ? next : oldest(cache, set, 0);
	}
	next = younger(cache, set, at->age);
	set->victim = next ? next->key : 0;
	return at;
}

/* Two hashes: the upper ten bits of a product (Knuth's multiplicative hashing). */
static uint8_t *counter(struct set *set, unsigned row, uint64_t key)
{
	uint64_t product = key * UINT64_C(11400714819323198485);

	return &set->counts[row][row ? product / (UINT64_C(1) << 54) % ROW : product / (UINT64_C(1) << 59)];
}

static unsigned estimate(struct set *set, uint64_t key)
{
	unsigned a = *counter(set, 0, key), b = *counter(set, 1, key);

	return a < b ? a : b;
}

static void count(struct set *set, uint64_t key)
{
	unsigned least = estimate(set, key);

	for (unsigned row = 0; row < 2; row++)
		if (*counter(set, row, key) == least && least < MOST_COUNT)
			++*counter(set, row, key);
	if (++set->added < SAMPLE)
		return;
	for (unsigned i = 0; i < 2 * ROW; i++)
		set->counts[i / ROW][i % ROW] /= 2;
	set->added /= 2;
}

static bool was_read(const struct set *set, uint64_t key)
{
	for (unsigned i = 0; i < set->asked_count; i++)
		if (set->asked[i] == key)
			return true;
	return false;
}

/* Who is on probation against the least recently used of the others. */
static struct entry *frequency_victim(const struct cache *cache, struct set *set)
{
	struct entry *window = find(cache, set, set->window), *main = oldest(cache, set, set->window);

	return estimate(set, window->key) + was_read(set, window->key) >
			       estimate(set, main->key) + was_read(set, main->key)
		       ? main
		       : window;
}

static struct entry *random_victim(struct cache *cache, struct set *set)
{
	cache->random ^= cache->random << 13;
	cache->random ^= cache->random >> 7;
	cache->random ^= cache->random << 17;
	return &set->entries[cache->random % cache->ways];
}

static struct entry *best_victim(const struct cache *cache, struct set *set)
{
	struct entry *last = &set->entries[0];

	for (unsigned i = 1; i < cache->ways; i++)
		if (set->entries[i].next_use > last->next_use)
			last = &set->entries[i];
	return last;
}

/* Who goes out of a full set. */
static struct entry *victim(struct cache *cache, struct set *set)
{
	switch (cache->policy) {
	case WEIR_POLICY_CLOCK: return clock_victim(cache, set);
	case WEIR_POLICY_SIEVE: return sieve_victim(cache, set);
	case WEIR_POLICY_FREQUENCY: return frequency_victim(cache, set);
	case WEIR_POLICY_RANDOM: return random_victim(cache, set);
	case SIMULATE_BEST: return best_victim(cache, set);
	default: return oldest(cache, set, 0);
	}
}

/* The place for a line that comes: its only one, an unused one, or that of who goes. */
static struct entry *position(struct cache *cache, struct set *set, uint64_t key)
{
	struct entry *unused;

	if (cache->policy == WEIR_POLICY_DIRECT)
		return &set->entries[key / cache->sets % cache->ways];
	unused = find(cache, set, 0);
	return unused ? unused : victim(cache, set);
}

/* A miss of a set: its lines read since the last one, by their places. */
static void ask(const struct cache *cache, struct set *set)
{
	set->asked_count = 0;
	for (unsigned i = 0; i < cache->ways; i++)
		if (set->entries[i].read)
			set->asked[set->asked_count++] = set->entries[i].key;
}

/* What the sketch learns of a miss, once it is known who goes. */
static void learn(struct set *set, uint64_t key)
{
	for (unsigned i = 0; i < set->asked_count; i++)
		count(set, set->asked[i]);
	count(set, key);
	set->window = key;
}

static void bring(struct cache *cache, struct set *set, uint64_t key, uint64_t next_use)
{
	bool frequency = cache->policy == WEIR_POLICY_FREQUENCY;
	struct entry *entry;

	if (frequency)
		ask(cache, set);
	if (frequency || cache->policy == WEIR_POLICY_LRU)
		rejuvenate(cache, set);
	entry = position(cache, set, key);
	if (frequency)
		learn(set, key);
	if (cache->policy == WEIR_POLICY_CLOCK)
		set->hand = (unsigned)(entry - set->entries + 1) % cache->ways;
	*entry = (struct entry){ .key = key,
				 .read = cache->policy == WEIR_POLICY_CLOCK,
				 .age = ++cache->clock,
				 .next_use = next_use };
}

/* One read. Return: it missed. */
static bool read_line(struct cache *cache, uint64_t key, uint64_t next_use)
{
	struct set *set = &cache->set[key % cache->sets];
	struct entry *entry = find(cache, set, key);

	if (!entry) {
		bring(cache, set, key, next_use);
		return true;
	}
	entry->read = true;
	entry->next_use = next_use;
	if (cache->policy == SIMULATE_LRU)
		entry->age = ++cache->clock;
	return false;
}

/* From the end to the beginning: where each key was seen last. */
static int find_next_uses(struct cache *cache, struct simulate_trace trace)
{
	uint64_t most = 0, *seen;

	for (uint64_t i = 0; i < trace.count; i++)
		most = trace.keys[i] > most ? trace.keys[i] : most;
	seen = malloc((most + 1) * sizeof(*seen));
	cache->next_use = malloc((trace.count + 1) * sizeof(*cache->next_use));
	if (!seen || !cache->next_use) {
		free(seen);
		return -ENOMEM;
	}
	memset(seen, 0xff, (most + 1) * sizeof(*seen));
	for (uint64_t i = trace.count; i-- > 0;) {
		cache->next_use[i] = seen[trace.keys[i]];
		seen[trace.keys[i]] = i;
	}
	free(seen);
	return 0;
}

static int prepare(struct cache *cache, struct simulate_trace trace)
{
	cache->set = calloc(cache->sets, sizeof(*cache->set));
	cache->entries = calloc(cache->sets * cache->ways, sizeof(*cache->entries));
	if (!cache->set || !cache->entries)
		return -ENOMEM;
	for (uint64_t i = 0; i < cache->sets; i++)
		cache->set[i].entries = cache->entries + i * cache->ways;
	return cache->policy == SIMULATE_BEST ? find_next_uses(cache, trace) : 0;
}

int simulate(unsigned policy, uint64_t sets, unsigned ways, struct simulate_trace trace, uint64_t *misses)
{
	struct cache cache = {
		.policy = policy, .ways = ways, .sets = sets, .random = UINT64_C(88172645463325252)
	};
	int error = policy == WEIR_POLICY_USER || policy > SIMULATE_BEST ||
				    (ways != SET_WAYS && policy < SIMULATE_LRU)
			    ? -EINVAL
			    : prepare(&cache, trace);

	*misses = 0;
	for (uint64_t i = 0; i < trace.count && !error; i++)
		*misses += read_line(&cache, trace.keys[i], cache.next_use ? cache.next_use[i] : 0);
	free(cache.set);
	free(cache.entries);
	free(cache.next_use);
	return error;
}
