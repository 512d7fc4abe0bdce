/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port/hip.h: a lane is a HIP thread, a wave is a wavefront of 64 or 32.
 *
 * Built on the compiler's builtins alone, so it compiles with or without HIP's
 * own headers. The wave runs in lockstep: collectives are instructions that look
 * at the lanes switched on, which by the lane rule include all of the mask.
 *
 * Release is spelled as a fence and then a weaker access. Some of the gfx9 family
 * write back L2 in that fence, and compilers have been seen not to wait for it,
 * so on all of the family the wait is explicit (docs/porting.md).
 */
#ifndef WEIR_PORT_HIP_H
#define WEIR_PORT_HIP_H

#if !defined(__HIP__) || !defined(__clang__)
#error "weir: the HIP port needs clang's HIP language"
#endif

/* The device's pass only: the host's reads device functions, but never runs them. */
#ifdef __HIP_DEVICE_COMPILE__
#if !defined(__GFX9__) && !defined(__GFX10__) && !defined(__GFX11__) && !defined(__GFX12__)
#error "weir: the HIP port knows the gfx9, gfx10, gfx11 and gfx12 families, with clang 15 or later"
#endif
#if defined(__AMDGCN_WAVEFRONT_SIZE) && !defined(__GFX9__)
#if __AMDGCN_WAVEFRONT_SIZE == 64
#error "weir: from gfx10 on lanes of a 64-wide wave cannot all be shuffled; build for 32"
#endif
#endif
#endif

#ifdef __GFX9__
#define WEIR_HIP_WAITS 1
#else
#define WEIR_HIP_WAITS 0
#endif

#if __has_builtin(__builtin_amdgcn_wavefrontsize)
#define WEIR_HIP_LANES __builtin_amdgcn_wavefrontsize()
#elif defined(__AMDGCN_WAVEFRONT_SIZE)
#define WEIR_HIP_LANES __AMDGCN_WAVEFRONT_SIZE
#elif !defined(__HIP_DEVICE_COMPILE__)
#define WEIR_HIP_LANES 64
#else
#error "weir: the compiler does not tell the wave width"
#endif

#define WEIR_HIP_DEVICE __attribute__((device))

/* A build may name its own WEIR_FN, to have every function emitted (tests/dialect). */
#ifndef WEIR_FN
#define WEIR_FN     static WEIR_HIP_DEVICE inline WEIR_UNUSED
#define WEIR_METHOD WEIR_HIP_DEVICE inline
#endif
#define WEIR_GLOBAL
#define WEIR_POINTER(address) ((void *)(__attribute__((address_space(1))) void *)(uintptr_t)(address))
#define WEIR_ADDR(pointer)    ((weir_addr)(uintptr_t)(pointer))

/* Bit i for lane i if it is switched on and @predicate holds in it; 33 is "not equal". */
WEIR_FN u64 weir_hip_ballot(u32 predicate)
{
	return __builtin_amdgcn_uicmp(predicate, 0, 33);
}

WEIR_FN u32 weir_lane(void)
{
	return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

WEIR_FN u32 weir_lanes(void)
{
	return WEIR_HIP_LANES;
}

WEIR_FN u64 weir_thread(void)
{
	return (u64)__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
	       __builtin_amdgcn_workitem_id_x();
}

WEIR_FN u64 weir_threads(void)
{
	return __builtin_amdgcn_grid_size_x();
}

WEIR_FN u64 weir_wave(void)
{
	u32 waves = (__builtin_amdgcn_workgroup_size_x() + weir_lanes() - 1) / weir_lanes();

	return (u64)__builtin_amdgcn_workgroup_id_x() * waves +
	       __builtin_amdgcn_workitem_id_x() / weir_lanes();
}

WEIR_FN u64 weir_active(void)
{
	return weir_hip_ballot(1);
}

WEIR_FN u64 weir_ballot(u64 mask, u32 predicate)
{
	return weir_hip_ballot(predicate != 0) & mask;
}

WEIR_FN u64 weir_shuffle_u64(u64 mask, u64 value, u32 from)
{
	u32 low = (u32)__builtin_amdgcn_ds_bpermute((int)(from * 4), (int)(u32)value);
	u32 high = (u32)__builtin_amdgcn_ds_bpermute((int)(from * 4), (int)(u32)(value >> 32));

	(void)mask;
	return ((u64)high << 32) | low;
}

WEIR_FN u64 weir_hip_read_lane(u64 value, u32 lane)
{
	u32 low = (u32)__builtin_amdgcn_readlane((int)(u32)value, (int)lane);
	u32 high = (u32)__builtin_amdgcn_readlane((int)(u32)(value >> 32), (int)lane);

	return ((u64)high << 32) | low;
}

/* One turn per distinct value among the lanes switched on; the loop is wave-uniform. */
WEIR_FN u64 weir_match_u64(u64 mask, u64 value)
{
	u64 left = weir_hip_ballot(1);
	u64 same = 0;

	while (left) {
		u64 first = weir_hip_read_lane(value, (u32)__builtin_ctzll(left));
		u64 equal = weir_hip_ballot(value == first);

		if (value == first)
			same = equal;
		left &= ~equal;
	}
	return same & mask;
}

/* Lanes of a wave issue together and share one L1: order for the compiler suffices. */
WEIR_FN void weir_wave_sync(u64 mask)
{
	(void)mask;
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
	__builtin_amdgcn_wave_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

/* Emits nothing; keeps the compiler from moving code of the loop out of it. */
WEIR_FN void weir_reconverge(void)
{
	__builtin_amdgcn_wave_barrier();
}

WEIR_FN void weir_relax(u32 iteration)
{
	(void)iteration;
	__builtin_amdgcn_s_sleep(4); /* 256 clocks */
}

/*
 * Nanoseconds per tick of the constant-rate counter, times 2^32. Launchers write that of their
 * device here before the first launch: the HIP backend does, by this name, in every code object.
 * What stands here is for those that do not.
 */
#ifndef WEIR_HIP_CLOCK_KHZ
#define WEIR_HIP_CLOCK_KHZ 100000
#endif
#define WEIR_HIP_NS_PER_TICK (1000000ull * 0x100000000ull / WEIR_HIP_CLOCK_KHZ)

#ifdef __HIP_DEVICE_COMPILE__
extern "C" __attribute__((constant, weak, used, visibility("default"))) u64 weir_hip_ns_per_tick =
	WEIR_HIP_NS_PER_TICK;
#else
#define weir_hip_ns_per_tick WEIR_HIP_NS_PER_TICK
#endif

WEIR_FN u64 weir_clock_ns(void)
{
#if __has_builtin(__builtin_readsteadycounter)
	u64 ticks = __builtin_readsteadycounter();
#else
	u64 ticks = __builtin_amdgcn_s_memrealtime();
#endif

	return (u64)(((unsigned __int128)ticks * weir_hip_ns_per_tick) >> 32);
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
	__asm__ volatile("" : "+v"(value));
	return value;
}

WEIR_FN u64 weir_mulhi(u64 a, u64 b)
{
	return (u64)(((unsigned __int128)a * b) >> 64);
}

/* Everything this lane did before, before whatever it stores next, as seen in the scope. */
#define WEIR_HIP_RELEASE(scope, name)                                                                        \
	WEIR_FN void weir_hip_release_##scope(void)                                                          \
	{                                                                                                    \
		__builtin_amdgcn_fence(__ATOMIC_RELEASE, name);                                              \
		if (WEIR_HIP_WAITS)                                                                          \
			__builtin_amdgcn_s_waitcnt(0);                                                       \
	}

WEIR_HIP_RELEASE(dev, "agent")
WEIR_HIP_RELEASE(sys, "")

/*
 * Behind every acquire. gfx10 and gfx11 have a cache between a compute unit's own and L2, and it
 * must be discarded first, or the own one fills up from it again with what is stale. Compilers
 * before clang 19 have been seen to do it the other way round; then the own one goes once more.
 */
#if __clang_major__ < 19 && (defined(__GFX10__) || defined(__GFX11__))
#define WEIR_HIP_ACQUIRED() __asm__ volatile("buffer_gl0_inv" ::: "memory")
#else
#define WEIR_HIP_ACQUIRED() ((void)0)
#endif

#define WEIR_HIP_LOAD(bits, order, scope, memory_order, memory_scope, after)                                 \
	WEIR_FN u##bits weir_load_u##bits##_##order##_##scope(const weir_shared_u##bits *p)                  \
	{                                                                                                    \
		u##bits value = __hip_atomic_load(&p->value_, memory_order, memory_scope);                   \
                                                                                                             \
		after;                                                                                       \
		return value;                                                                                \
	}
#define WEIR_HIP_STORE(bits, order, scope, before, memory_scope)                                             \
	WEIR_FN void weir_store_u##bits##_##order##_##scope(weir_shared_u##bits *p, u##bits v)               \
	{                                                                                                    \
		before;                                                                                      \
		__hip_atomic_store(&p->value_, v, __ATOMIC_RELAXED, memory_scope);                           \
	}
#define WEIR_HIP_RMW(name, builtin, bits, order, scope, before, memory_order, memory_scope, after)           \
	WEIR_FN u##bits weir_##name##_u##bits##_##order##_##scope(weir_shared_u##bits *p, u##bits v)         \
	{                                                                                                    \
		before;                                                                                      \
		v = builtin(&p->value_, v, memory_order, memory_scope);                                      \
		after;                                                                                       \
		return v;                                                                                    \
	}
#define WEIR_HIP_CAS(bits, order, scope, before, success, memory_scope, after)                               \
	WEIR_FN u##bits weir_cas_u##bits##_##order##_##scope(weir_shared_u##bits *p, u##bits expected,       \
							     u##bits v)                                      \
	{                                                                                                    \
		before;                                                                                      \
		(void)__hip_atomic_compare_exchange_strong(&p->value_, &expected, v, success,                \
							   __ATOMIC_RELAXED, memory_scope);                  \
		after;                                                                                       \
		return expected;                                                                             \
	}
#define WEIR_HIP_ACCESSORS(bits, scope, where, publish, acquired)                                            \
	WEIR_HIP_LOAD(bits, relaxed, scope, __ATOMIC_RELAXED, where, (void)0)                                \
	WEIR_HIP_LOAD(bits, fenced, scope, __ATOMIC_RELAXED, where, (void)0)                                 \
	WEIR_HIP_LOAD(bits, acquire, scope, __ATOMIC_ACQUIRE, where, acquired)                               \
	WEIR_HIP_STORE(bits, relaxed, scope, (void)0, where)                                                 \
	WEIR_HIP_STORE(bits, release, scope, publish, where)                                                 \
	WEIR_HIP_STORE(bits, fenced, scope, (void)0, where)                                                  \
	WEIR_HIP_RMW(add, __hip_atomic_fetch_add, bits, relaxed, scope, (void)0, __ATOMIC_RELAXED, where,    \
		     (void)0)                                                                                \
	WEIR_HIP_RMW(add, __hip_atomic_fetch_add, bits, acq_rel, scope, publish, __ATOMIC_ACQUIRE, where,    \
		     acquired)                                                                               \
	WEIR_HIP_RMW(or, __hip_atomic_fetch_or, bits, relaxed, scope, (void)0, __ATOMIC_RELAXED, where,      \
		     (void)0)                                                                                \
	WEIR_HIP_RMW(or, __hip_atomic_fetch_or, bits, fenced, scope, (void)0, __ATOMIC_RELAXED, where,       \
		     (void)0)                                                                                \
	WEIR_HIP_RMW(or, __hip_atomic_fetch_or, bits, acq_rel, scope, publish, __ATOMIC_ACQUIRE, where,      \
		     acquired)                                                                               \
	WEIR_HIP_RMW(and, __hip_atomic_fetch_and, bits, relaxed, scope, (void)0, __ATOMIC_RELAXED, where,    \
		     (void)0)                                                                                \
	WEIR_HIP_RMW(and, __hip_atomic_fetch_and, bits, fenced, scope, (void)0, __ATOMIC_RELAXED, where,     \
		     (void)0)                                                                                \
	WEIR_HIP_RMW(and, __hip_atomic_fetch_and, bits, acq_rel, scope, publish, __ATOMIC_ACQUIRE, where,    \
		     acquired)                                                                               \
	WEIR_HIP_RMW(exchange, __hip_atomic_exchange, bits, acq_rel, scope, publish, __ATOMIC_ACQUIRE,       \
		     where, acquired)                                                                        \
	WEIR_HIP_CAS(bits, relaxed, scope, (void)0, __ATOMIC_RELAXED, where, (void)0)                        \
	WEIR_HIP_CAS(bits, acquire, scope, (void)0, __ATOMIC_ACQUIRE, where, acquired)                       \
	WEIR_HIP_CAS(bits, acq_rel, scope, publish, __ATOMIC_ACQUIRE, where, acquired)

WEIR_HIP_ACCESSORS(32, dev, __HIP_MEMORY_SCOPE_AGENT, weir_hip_release_dev(), WEIR_HIP_ACQUIRED())
WEIR_HIP_ACCESSORS(32, sys, __HIP_MEMORY_SCOPE_SYSTEM, weir_hip_release_sys(), WEIR_HIP_ACQUIRED())
WEIR_HIP_ACCESSORS(64, dev, __HIP_MEMORY_SCOPE_AGENT, weir_hip_release_dev(), WEIR_HIP_ACQUIRED())
WEIR_HIP_ACCESSORS(64, sys, __HIP_MEMORY_SCOPE_SYSTEM, weir_hip_release_sys(), WEIR_HIP_ACQUIRED())

/* Cached data: relaxed at device scope, so that a compute unit's own L1 is passed by. */
#define WEIR_HIP_DATA(bits)                                                                                  \
	WEIR_FN u##bits weir_data_load_u##bits(weir_addr address)                                            \
	{                                                                                                    \
		return __hip_atomic_load((const u##bits *)WEIR_POINTER(address), __ATOMIC_RELAXED,           \
					 __HIP_MEMORY_SCOPE_AGENT);                                          \
	}

WEIR_HIP_DATA(8)
WEIR_HIP_DATA(16)
WEIR_HIP_DATA(32)
WEIR_HIP_DATA(64)

/* Lanes of a wave load side by side, and others meanwhile: there is nothing to gain. */
WEIR_FN void weir_data_hint(weir_addr address)
{
	(void)address;
}

WEIR_FN struct weir_u128 weir_data_load_u128(weir_addr address)
{
	struct weir_u128 data;

	data.low = weir_data_load_u64(address);
	data.high = weir_data_load_u64(address + 8);
	return data;
}

/* Likewise stores. */
#define WEIR_HIP_DATA_STORE(bits)                                                                            \
	WEIR_FN void weir_data_store_u##bits(weir_addr address, u##bits value)                               \
	{                                                                                                    \
		__hip_atomic_store((u##bits *)WEIR_POINTER(address), value, __ATOMIC_RELAXED,                \
				   __HIP_MEMORY_SCOPE_AGENT);                                                \
	}

WEIR_HIP_DATA_STORE(8)
WEIR_HIP_DATA_STORE(16)
WEIR_HIP_DATA_STORE(32)
WEIR_HIP_DATA_STORE(64)

WEIR_FN void weir_data_store_u128(weir_addr address, struct weir_u128 data)
{
	weir_data_store_u64(address, data.low);
	weir_data_store_u64(address + 8, data.high);
}

WEIR_FN u32 weir_data_add_u32(weir_addr address, u32 value)
{
	return weir_add_u32_relaxed_dev((weir_shared_u32 *)WEIR_POINTER(address), value);
}

WEIR_FN u64 weir_data_add_u64(weir_addr address, u64 value)
{
	return weir_add_u64_relaxed_dev((weir_shared_u64 *)WEIR_POINTER(address), value);
}

WEIR_FN u32 weir_data_cas_u32(weir_addr address, u32 expected, u32 value)
{
	return weir_cas_u32_relaxed_dev((weir_shared_u32 *)WEIR_POINTER(address), expected, value);
}

WEIR_FN u64 weir_data_cas_u64(weir_addr address, u64 expected, u64 value)
{
	return weir_cas_u64_relaxed_dev((weir_shared_u64 *)WEIR_POINTER(address), expected, value);
}

WEIR_FN void weir_order_loads(void)
{
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
	WEIR_HIP_ACQUIRED();
}

WEIR_FN u64 weir_poll_u64_dev(const weir_shared_u64 *p, u64 mask)
{
	u64 value = weir_load_u64_relaxed_dev(p);

	if (value & mask)
		weir_order_loads();
	return value;
}

WEIR_FN u32 weir_depend(u32 index, u64 seen)
{
	(void)seen;
	weir_order_loads();
	return index;
}

WEIR_FN void weir_fence_to_lanes(void)
{
	weir_hip_release_dev();
}

WEIR_FN void weir_fence_to_controller(void)
{
	weir_hip_release_sys();
}

WEIR_FN void weir_fence_from_controller(void)
{
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
	WEIR_HIP_ACQUIRED();
}

/* Stores have arrived when the wait is over; what is loaded afterwards comes from behind the caches. */
WEIR_FN void weir_fence_with_controller(void)
{
	weir_hip_release_sys();
	__builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
	WEIR_HIP_ACQUIRED();
}

/* A plain volatile store may lack the cache bits that take it out of the GPU at once. */
WEIR_FN void weir_mmio_store_u32(weir_addr address, u32 value)
{
	__hip_atomic_store((u32 *)WEIR_POINTER(address), value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

/*
 * Most lanes a block may have. A kernel is built for this bound, which sets the
 * registers its lanes get, and a launcher refuses larger blocks.
 */
#ifndef WEIR_BLOCK_LANES
#define WEIR_BLOCK_LANES 256
#endif

/**
 * WEIR_KERNEL() - define a kernel, launched by its name
 * @name: name for weir_launch(); the entry point carries it unmangled
 * @args_type: structure of plain words and device addresses; the body sees a
 *             pointer to it, called args
 *
 * The one parameter is the address of the structure in device memory, where the
 * launcher has put a copy: lanes hand addresses inside it to each other, so it
 * may be neither a parameter by value nor anything private to a lane.
 */
#define WEIR_KERNEL(name, args_type)                                                                         \
	extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, WEIR_BLOCK_LANES))) void name(      \
		WEIR_GLOBAL args_type *args)

#endif
