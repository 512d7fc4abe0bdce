/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port/cpu.h: lanes are fibers on worker threads.
 *
 * A wave of width 1 needs no company, so its collectives are constants here;
 * wider waves meet in the scheduler (backends/cpu/wave.c). Outside a kernel the
 * calling thread is a wave of one lane, so host code may use the core too.
 */
#ifndef WEIR_PORT_CPU_H
#define WEIR_PORT_CPU_H

#define WEIR_FN     static inline WEIR_UNUSED
#define WEIR_METHOD inline
#define WEIR_COLD   static __attribute__((noinline, unused))
#define WEIR_GLOBAL
#define WEIR_POINTER(address) ((void *)(uintptr_t)(address))
#define WEIR_ADDR(pointer)    ((weir_addr)(uintptr_t)(pointer))

#ifdef __cplusplus
#define WEIR_C_LINKAGE extern "C"
#else
#define WEIR_C_LINKAGE extern
#endif
#define WEIR_CPU_API WEIR_C_LINKAGE __attribute__((visibility("default")))

/**
 * struct weir_cpu_lane - where a lane stands; the CPU's special registers
 * @lane: index in its wave
 * @lanes: wave width
 * @thread: index in the launch
 * @threads: lanes in the launch
 * @wave: index of the wave in the launch
 */
struct weir_cpu_lane {
	u32 lane;
	u32 lanes;
	u64 thread;
	u64 threads;
	u64 wave;
};

WEIR_CPU_API __thread struct weir_cpu_lane *weir_cpu_self;

enum { WEIR_CPU_PAGES = 64, WEIR_CPU_PAGE_LOG2 = 12 };

/**
 * struct weir_cpu_page - doorbells of a page, by its number modulo WEIR_CPU_PAGES
 * (runtime/transport/sleeper.h)
 * @sleepers: threads that sleep behind them at times; only where there is one has a lane to look further
 * @asleep: those that do now
 */
struct weir_cpu_page {
	u32 sleepers;
	u32 asleep;
};

WEIR_CPU_API struct weir_cpu_page weir_cpu_pages[WEIR_CPU_PAGES];

WEIR_CPU_API u64 weir_cpu_active(void);
WEIR_CPU_API u64 weir_cpu_ballot(u64 mask, u32 predicate);
WEIR_CPU_API u64 weir_cpu_shuffle(u64 mask, u64 value, u32 from);
WEIR_CPU_API u64 weir_cpu_match(u64 mask, u64 value);
WEIR_CPU_API void weir_cpu_wave_sync(u64 mask);
WEIR_CPU_API void weir_cpu_relax(u32 polls);
WEIR_CPU_API u64 weir_cpu_clock_ns(void);
WEIR_CPU_API void weir_cpu_wake(u64 address);
WEIR_CPU_API void weir_cpu_register_kernel(const char *name, void (*entry)(void *), size_t args_bytes);

WEIR_FN u32 weir_lane(void)
{
	return weir_cpu_self->lane;
}

WEIR_FN u32 weir_lanes(void)
{
	return weir_cpu_self->lanes;
}

WEIR_FN u64 weir_thread(void)
{
	return weir_cpu_self->thread;
}

WEIR_FN u64 weir_threads(void)
{
	return weir_cpu_self->threads;
}

WEIR_FN u64 weir_wave(void)
{
	return weir_cpu_self->wave;
}

/* Lanes come together where this is called, so its call must be its caller's own, without optimisation, too.
 */
WEIR_FN WEIR_FORCE_INLINE u64 weir_active(void)
{
	return weir_lanes() == 1 ? 1 : weir_cpu_active();
}

WEIR_FN u64 weir_ballot(u64 mask, u32 predicate)
{
	return weir_lanes() == 1 ? (u64)(predicate != 0) : weir_cpu_ballot(mask, predicate);
}

WEIR_FN u64 weir_shuffle_u64(u64 mask, u64 value, u32 from)
{
	return weir_lanes() == 1 ? value : weir_cpu_shuffle(mask, value, from);
}

WEIR_FN u64 weir_match_u64(u64 mask, u64 value)
{
	return weir_lanes() == 1 ? 1 : weir_cpu_match(mask, value);
}

WEIR_FN void weir_wave_sync(u64 mask)
{
	if (weir_lanes() != 1)
		weir_cpu_wave_sync(mask);
}

WEIR_FN void weir_reconverge(void)
{
}

WEIR_FN void weir_relax(u32 iteration)
{
	weir_cpu_relax(iteration);
}

WEIR_FN u64 weir_clock_ns(void)
{
	return weir_cpu_clock_ns();
}

WEIR_FN u32 weir_popcount(u64 bits)
{
	return (u32)__builtin_popcountll(bits);
}

WEIR_FN u32 weir_lowest_bit(u64 bits)
{
	return (u32)__builtin_ctzll(bits);
}

WEIR_FN u64 weir_opaque(u64 value)
{
	__asm__ volatile("" : "+r"(value));
	return value;
}

WEIR_FN u64 weir_mulhi(u64 a, u64 b)
{
	__extension__ typedef unsigned __int128 wide;

	return (u64)(((wide)a * b) >> 64);
}

/* One memory serves every scope here: dev and sys are the same access. */
#define WEIR_CPU_LOAD(bits, order, scope, memory_order)                                                      \
	WEIR_FN u##bits weir_load_u##bits##_##order##_##scope(const weir_shared_u##bits *p)                  \
	{                                                                                                    \
		return __atomic_load_n(&p->value_, memory_order);                                            \
	}
#define WEIR_CPU_STORE(bits, order, scope, memory_order)                                                     \
	WEIR_FN void weir_store_u##bits##_##order##_##scope(weir_shared_u##bits *p, u##bits v)               \
	{                                                                                                    \
		__atomic_store_n(&p->value_, v, memory_order);                                               \
	}
#define WEIR_CPU_RMW(name, builtin, bits, order, scope, memory_order)                                        \
	WEIR_FN u##bits weir_##name##_u##bits##_##order##_##scope(weir_shared_u##bits *p, u##bits v)         \
	{                                                                                                    \
		return builtin(&p->value_, v, memory_order);                                                 \
	}
#define WEIR_CPU_CAS(bits, order, scope, success)                                                            \
	WEIR_FN u##bits weir_cas_u##bits##_##order##_##scope(weir_shared_u##bits *p, u##bits expected,       \
							     u##bits v)                                      \
	{                                                                                                    \
		__atomic_compare_exchange_n(&p->value_, &expected, v, 0, success, __ATOMIC_RELAXED);         \
		return expected;                                                                             \
	}
#define WEIR_CPU_ACCESSORS(bits, scope)                                                                      \
	WEIR_CPU_LOAD(bits, relaxed, scope, __ATOMIC_RELAXED)                                                \
	WEIR_CPU_LOAD(bits, acquire, scope, __ATOMIC_ACQUIRE)                                                \
	WEIR_CPU_LOAD(bits, fenced, scope, __ATOMIC_ACQUIRE)                                                 \
	WEIR_CPU_STORE(bits, relaxed, scope, __ATOMIC_RELAXED)                                               \
	WEIR_CPU_STORE(bits, release, scope, __ATOMIC_RELEASE)                                               \
	WEIR_CPU_STORE(bits, fenced, scope, __ATOMIC_RELEASE)                                                \
	WEIR_CPU_RMW(add, __atomic_fetch_add, bits, relaxed, scope, __ATOMIC_RELAXED)                        \
	WEIR_CPU_RMW(add, __atomic_fetch_add, bits, acq_rel, scope, __ATOMIC_ACQ_REL)                        \
	WEIR_CPU_RMW(or, __atomic_fetch_or, bits, relaxed, scope, __ATOMIC_RELAXED)                          \
	WEIR_CPU_RMW(or, __atomic_fetch_or, bits, fenced, scope, __ATOMIC_RELEASE)                           \
	WEIR_CPU_RMW(or, __atomic_fetch_or, bits, acq_rel, scope, __ATOMIC_ACQ_REL)                          \
	WEIR_CPU_RMW(and, __atomic_fetch_and, bits, relaxed, scope, __ATOMIC_RELAXED)                        \
	WEIR_CPU_RMW(and, __atomic_fetch_and, bits, fenced, scope, __ATOMIC_RELEASE)                         \
	WEIR_CPU_RMW(and, __atomic_fetch_and, bits, acq_rel, scope, __ATOMIC_ACQ_REL)                        \
	WEIR_CPU_RMW(exchange, __atomic_exchange_n, bits, acq_rel, scope, __ATOMIC_ACQ_REL)                  \
	WEIR_CPU_CAS(bits, relaxed, scope, __ATOMIC_RELAXED)                                                 \
	WEIR_CPU_CAS(bits, acquire, scope, __ATOMIC_ACQUIRE)                                                 \
	WEIR_CPU_CAS(bits, acq_rel, scope, __ATOMIC_ACQ_REL)

WEIR_CPU_ACCESSORS(32, dev)
WEIR_CPU_ACCESSORS(32, sys)
WEIR_CPU_ACCESSORS(64, dev)
WEIR_CPU_ACCESSORS(64, sys)

/*
 * Cached data may be overwritten while it is read; the reader finds out from the
 * line's word and throws the value away (core/cache/line.h), and be written while it is
 * written back, which happens again then (core/cache/writeback.h). Under ThreadSanitizer
 * these intended races are kept out of its sight, and only they.
 */
#ifdef __SANITIZE_THREAD__
#define WEIR_CPU_DATA             __attribute__((no_sanitize_thread, noinline, unused)) static
#define WEIR_CPU_DATA_READ(p)     (*(const volatile __typeof__(*(p)) *)(p))
#define WEIR_CPU_DATA_WRITE(p, v) ((void)(*(volatile __typeof__(*(p)) *)(p) = (v)))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_CPU_DATA             __attribute__((no_sanitize("thread"), noinline, unused)) static
#define WEIR_CPU_DATA_READ(p)     (*(const volatile __typeof__(*(p)) *)(p))
#define WEIR_CPU_DATA_WRITE(p, v) ((void)(*(volatile __typeof__(*(p)) *)(p) = (v)))
#endif
#endif
#ifndef WEIR_CPU_DATA
#define WEIR_CPU_DATA             WEIR_FN
#define WEIR_CPU_DATA_READ(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define WEIR_CPU_DATA_WRITE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#endif

WEIR_CPU_DATA u8 weir_data_load_u8(weir_addr address)
{
	return WEIR_CPU_DATA_READ((const u8 *)WEIR_POINTER(address));
}

WEIR_CPU_DATA u16 weir_data_load_u16(weir_addr address)
{
	return WEIR_CPU_DATA_READ((const u16 *)WEIR_POINTER(address));
}

WEIR_CPU_DATA u32 weir_data_load_u32(weir_addr address)
{
	return WEIR_CPU_DATA_READ((const u32 *)WEIR_POINTER(address));
}

WEIR_CPU_DATA u64 weir_data_load_u64(weir_addr address)
{
	return WEIR_CPU_DATA_READ((const u64 *)WEIR_POINTER(address));
}

/* Lanes of a core run one after the other: what the next one will load can come while this one works. */
WEIR_FN void weir_data_hint(weir_addr address)
{
	__builtin_prefetch((const void *)WEIR_POINTER(address));
}

WEIR_FN struct weir_u128 weir_data_load_u128(weir_addr address)
{
	struct weir_u128 data;

	data.low = weir_data_load_u64(address);
	data.high = weir_data_load_u64(address + 8);
	return data;
}

WEIR_CPU_DATA void weir_data_store_u8(weir_addr address, u8 value)
{
	WEIR_CPU_DATA_WRITE((u8 *)WEIR_POINTER(address), value);
}

WEIR_CPU_DATA void weir_data_store_u16(weir_addr address, u16 value)
{
	WEIR_CPU_DATA_WRITE((u16 *)WEIR_POINTER(address), value);
}

WEIR_CPU_DATA void weir_data_store_u32(weir_addr address, u32 value)
{
	WEIR_CPU_DATA_WRITE((u32 *)WEIR_POINTER(address), value);
}

WEIR_CPU_DATA void weir_data_store_u64(weir_addr address, u64 value)
{
	WEIR_CPU_DATA_WRITE((u64 *)WEIR_POINTER(address), value);
}

WEIR_CPU_DATA u32 weir_data_add_u32(weir_addr address, u32 value)
{
	return __atomic_fetch_add((u32 *)WEIR_POINTER(address), value, __ATOMIC_RELAXED);
}

WEIR_CPU_DATA u64 weir_data_add_u64(weir_addr address, u64 value)
{
	return __atomic_fetch_add((u64 *)WEIR_POINTER(address), value, __ATOMIC_RELAXED);
}

WEIR_CPU_DATA u32 weir_data_cas_u32(weir_addr address, u32 expected, u32 value)
{
	__atomic_compare_exchange_n((u32 *)WEIR_POINTER(address), &expected, value, 0, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	return expected;
}

WEIR_CPU_DATA u64 weir_data_cas_u64(weir_addr address, u64 expected, u64 value)
{
	__atomic_compare_exchange_n((u64 *)WEIR_POINTER(address), &expected, value, 0, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	return expected;
}

WEIR_FN void weir_data_store_u128(weir_addr address, struct weir_u128 data)
{
	weir_data_store_u64(address, data.low);
	weir_data_store_u64(address + 8, data.high);
}

WEIR_FN void weir_order_loads(void)
{
#if defined(__x86_64__)
	__asm__ volatile("" ::: "memory"); /* x86 keeps loads in order; the compiler must too */
#else
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

WEIR_FN u64 weir_poll_u64_dev(const weir_shared_u64 *p, u64 mask)
{
	(void)mask;
	return weir_load_u64_acquire_dev(p);
}

WEIR_FN u32 weir_depend(u32 index, u64 seen)
{
	(void)seen;
	weir_order_loads();
	return index;
}

/*
 * Stores of order `fenced` behind it are release stores here, which cost nothing and which a
 * race detector knows; for data stores behind it, x86 keeps stores in order by itself.
 */
WEIR_FN void weir_fence_to_lanes(void)
{
#if defined(__x86_64__)
	__asm__ volatile("" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

/*
 * A controller here is a thread: its doorbells and phases are release stores and
 * acquire loads, which carry the order by themselves.
 */
WEIR_FN void weir_fence_to_controller(void)
{
	__asm__ volatile("" ::: "memory");
}

WEIR_FN void weir_fence_from_controller(void)
{
	__asm__ volatile("" ::: "memory");
}

/* An instruction where one is known: ThreadSanitizer has no fences. */
WEIR_FN void weir_fence_with_controller(void)
{
#if defined(__x86_64__)
	__asm__ volatile("mfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dmb sy" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* A store before a load, of ordinary memory: faster than mfence, and no RMW of the word, which may be a
 * device's. */
WEIR_FN void weir_cpu_fence(void)
{
#if defined(__x86_64__)
	__asm__ volatile("lock; addl $0, -4(%%rsp)" ::: "memory", "cc");
#else
	weir_fence_with_controller();
#endif
}

/* Lanes of other devices wake nobody; these can. */
WEIR_FN void weir_mmio_store_u32(weir_addr address, u32 value)
{
	struct weir_cpu_page *page = &weir_cpu_pages[(address >> WEIR_CPU_PAGE_LOG2) % WEIR_CPU_PAGES];

	__atomic_store_n((u32 *)WEIR_POINTER(address), value, __ATOMIC_RELEASE);
	/* relaxed: a thread comes before its queues are there to be rung */
	if (!__atomic_load_n(&page->sleepers, __ATOMIC_RELAXED))
		return;
	weir_cpu_fence(); /* sleeper.W0: pairs with sleeper.W1: the doorbell before who sleeps */
	if (__atomic_load_n(&page->asleep, __ATOMIC_RELAXED)) /* relaxed: sleeper.W0 has the order */
		weir_cpu_wake(address);
}

/**
 * WEIR_KERNEL() - define a kernel, launched by its name
 * @name: name for weir_launch()
 * @args_type: structure of plain words and device addresses; the body sees a
 *             pointer to it, called args
 */
#define WEIR_KERNEL(name, args_type)                                                                         \
	static void name##_body(args_type *args);                                                            \
	static void name##_entry(void *args)                                                                 \
	{                                                                                                    \
		name##_body((args_type *)args);                                                              \
	}                                                                                                    \
	__attribute__((constructor)) static void name##_register(void)                                       \
	{                                                                                                    \
		weir_cpu_register_kernel(#name, name##_entry, sizeof(args_type));                            \
		WEIR_KERNEL_BUILT();                                                                         \
	}                                                                                                    \
	static void name##_body(args_type *args)

#endif
