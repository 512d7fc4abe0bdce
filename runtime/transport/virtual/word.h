/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/word.h: words that more than one agent touches.
 *
 * Owns: their types, so that a plain access does not compile, and the accesses,
 * named by their order. Never decides who pairs with whom: the callers say so.
 */
#ifndef WEIR_VIRTUAL_WORD_H
#define WEIR_VIRTUAL_WORD_H

#include <weir/types.h>

struct shared_u32 {
	u32 word;
};

struct shared_u64 {
	u64 word;
};

static inline u32 load_relaxed_u32(const struct shared_u32 *shared)
{
	return __atomic_load_n(&shared->word, __ATOMIC_RELAXED);
}

static inline u32 load_acquire_u32(const struct shared_u32 *shared)
{
	return __atomic_load_n(&shared->word, __ATOMIC_ACQUIRE);
}

static inline void store_relaxed_u32(struct shared_u32 *shared, u32 value)
{
	__atomic_store_n(&shared->word, value, __ATOMIC_RELAXED);
}

static inline void store_release_u32(struct shared_u32 *shared, u32 value)
{
	__atomic_store_n(&shared->word, value, __ATOMIC_RELEASE);
}

/* Two that stay in order among each other: the load is not performed before the store has arrived. */
static inline void store_ordered_u32(struct shared_u32 *shared, u32 value)
{
	__atomic_store_n(&shared->word, value, __ATOMIC_SEQ_CST);
}

static inline u32 load_ordered_u32(const struct shared_u32 *shared)
{
	return __atomic_load_n(&shared->word, __ATOMIC_SEQ_CST);
}

static inline u32 exchange_u32(struct shared_u32 *shared, u32 value)
{
	return __atomic_exchange_n(&shared->word, value, __ATOMIC_ACQ_REL);
}

static inline u32 fetch_or_u32(struct shared_u32 *shared, u32 bits)
{
	return __atomic_fetch_or(&shared->word, bits, __ATOMIC_ACQ_REL);
}

static inline u32 fetch_add_u32(struct shared_u32 *shared, u32 value)
{
	return __atomic_fetch_add(&shared->word, value, __ATOMIC_ACQ_REL);
}

static inline u64 load_relaxed_u64(const struct shared_u64 *shared)
{
	return __atomic_load_n(&shared->word, __ATOMIC_RELAXED);
}

static inline void store_relaxed_u64(struct shared_u64 *shared, u64 value)
{
	__atomic_store_n(&shared->word, value, __ATOMIC_RELAXED);
}

static inline u64 fetch_add_relaxed_u64(struct shared_u64 *shared, u64 value)
{
	return __atomic_fetch_add(&shared->word, value, __ATOMIC_RELAXED);
}

static inline int compare_exchange_relaxed_u64(struct shared_u64 *shared, u64 *expected, u64 value)
{
	return __atomic_compare_exchange_n(&shared->word, expected, value, 0, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

/* A counter with one writer: others may read it at any time, so no read-modify-write is needed. */
static inline void count_u64(struct shared_u64 *shared, u64 value)
{
	store_relaxed_u64(shared, load_relaxed_u64(shared) + value);
}

/* Between two looks at a word that another core will write. */
static inline void relax_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#else
#error "say how a core relaxes while it spins"
#endif
}

#endif
