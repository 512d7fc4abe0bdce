/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h: the primitives a lane has, the same names on every backend.
 *
 * Owns: the choice of the backend's header and the words lanes share. The list
 * below is the whole contract; everything above this header is written once.
 *
 * A lane is one thread of a kernel; a wave is the set of lanes that the hardware
 * runs together, weir_lanes() wide. Masks are u64, bit i for lane i.
 *
 *   who am I      weir_lane weir_lanes weir_thread weir_threads weir_wave
 *   collectives   weir_active weir_ballot weir_shuffle_u64 weir_match_u64 weir_wave_sync
 *                 weir_reconverge
 *   shared words  weir_{load,store,add,and,or,exchange,cas}_{u32,u64}_{order}_{scope}
 *   polling       weir_poll_u64_dev
 *   data          weir_data_{load,store}_u{8,16,32,64,128}, weir_data_{add,cas}_u{32,64},
 *                 weir_order_loads, weir_depend
 *   fences        weir_fence_to_lanes weir_fence_to_controller weir_fence_from_controller
 *                 weir_fence_with_controller
 *   device        weir_mmio_store_u32
 *   time          weir_relax weir_clock_ns
 *   bits          weir_popcount weir_lowest_bit weir_mulhi
 *   compiler      weir_opaque
 *
 * Scopes: `dev` reaches every lane of the device, `sys` also the host and other
 * devices. Lane rules: a collective is called by all lanes of its mask at the
 * same place in the program, with the same mask.
 */
#ifndef WEIR_PORT_H
#define WEIR_PORT_H

#include <weir/types.h>

/*
 * Words that more than one agent touches. They have a type of their own so that
 * a plain access does not compile; only the port's accessors open them.
 */
typedef struct weir_shared_u32 {
	u32 value_;
} weir_shared_u32;

typedef struct weir_shared_u64 {
	u64 value_;
} weir_shared_u64;

/*
 * Behind WEIR_FN: a function in which its callers' constants must be constants, too. A build that
 * has a WEIR_FN of its own wants all functions emitted, and each once.
 */
#ifdef WEIR_FN
#define WEIR_FORCE_INLINE __attribute__((noinline))
#else
#define WEIR_FORCE_INLINE __attribute__((always_inline))
#endif

#if defined(WEIR_USER_POLICY) && !defined(__OPENCL_C_VERSION__)
#ifdef __cplusplus
extern "C"
#endif
	void
	weir_user_policy_built(void);
/* What a port's WEIR_KERNEL() does on the host before main(): tell of a policy of the user's
 * (core/cache/policy.h). */
#define WEIR_KERNEL_BUILT() weir_user_policy_built()
#else
/* No such policy in this kernel. */
#define WEIR_KERNEL_BUILT() ((void)0)
#endif

/*
 * How long lanes rest after @iteration iterations in which nothing came of their wait, for ports that can
 * tell their device: 64 ns at first, twice as long every 64 iterations, so about a 64th of the time waited,
 * half a millisecond at most. It has to grow: where a wave that parted is scheduled group by group, the
 * groups that rest shortly can keep a group that does not rest from running (docs/porting.md).
 */
#define WEIR_RELAX_NS(iteration) (64u << ((iteration) / 64 < 13 ? (iteration) / 64 : 13))

/*
 * Where lanes run on the host's cores, a waiting lane gives its core away for so many polls, about half a
 * millisecond, and sleeps from then on: who waits for long takes no time from those it waits for, nor power.
 */
#define WEIR_RELAX_AWAKE 640

#if defined(WEIR_PORT_HEADER)
#include WEIR_PORT_HEADER /* a port of one's own, such as the one of the schedule explorer */
#elif defined(__OPENCL_C_VERSION__)
#include <weir/port/opencl.h>
#elif defined(__CUDA_ARCH__) || (defined(__CUDACC__) && !defined(__HIP__))
#include <weir/port/cuda.h>
#elif defined(__HIP__) || defined(__HIPCC__)
#include <weir/port/hip.h>
#elif defined(__x86_64__) || defined(__aarch64__)
#include <weir/port/cpu.h>
#else
#error "weir: no port for this target; see docs/porting.md for what one needs"
#endif

/*
 * In place of WEIR_FN: a function off the usual path, which a port may have called rather than
 * inlined, so that the usual path neither grows by it nor holds registers for it. It has no
 * collectives: groups of lanes called from two places would meet in it (docs/porting.md).
 */
#ifndef WEIR_COLD
#define WEIR_COLD WEIR_FN
#endif

/**
 * weir_at() - the object behind a device address
 * @address: a weir_addr, aligned for @type
 * @type: type of the elements
 * @index: element to point at
 */
#define weir_at(address, type, index) ((WEIR_GLOBAL type *)WEIR_POINTER(address) + (index))

/**
 * weir_rank() - how many lanes of @mask stand before lane @lane
 */
WEIR_FN u32 weir_rank(u64 mask, u32 lane)
{
	return weir_popcount(mask & (((u64)1 << lane) - 1));
}

/** weir_is_in() - true in the lanes of @mask */
WEIR_FN u32 weir_is_in(u64 mask)
{
	return (u32)(mask >> weir_lane()) & 1;
}

/**
 * weir_match_mask_u64() - lanes of @some that have this lane's value
 * @wave: lanes calling together
 * @some: those of @wave that are meant; in the others the result means nothing
 * @value: this lane's
 *
 * All of @wave call, so that none of them waits elsewhere for lanes that compare among themselves
 * (docs/porting.md).
 */
WEIR_FN u64 weir_match_mask_u64(u64 wave, u64 some, u64 value)
{
	return weir_match_u64(wave, weir_is_in(some) ? value : 0) & some;
}

/**
 * weir_prefix() - how many lanes of @mask come before its first lane not in @good
 *
 * The wave reads a ring a lane at a time in rank order; only the unbroken prefix
 * of good entries may be used.
 */
WEIR_FN u32 weir_prefix(u64 mask, u64 good)
{
	u64 bad = mask & ~good;

	return bad ? weir_popcount(mask & ((bad & (~bad + 1)) - 1)) : weir_popcount(mask);
}

/**
 * weir_broadcast_u64() - the value of the first lane of @mask, in all of them
 *
 * Lanes that load the same word may see different values; control flow follows
 * one lane's load.
 */
WEIR_FN u64 weir_broadcast_u64(u64 mask, u64 value)
{
	return weir_shuffle_u64(mask, value, weir_lowest_bit(mask));
}

/** weir_elected() - true in the first lane of @mask */
WEIR_FN u32 weir_elected(u64 mask)
{
	return weir_lane() == weir_lowest_bit(mask);
}

#endif
