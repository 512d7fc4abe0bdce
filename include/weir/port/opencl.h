/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port/opencl.h: a lane is a work-item; a wave is that lane alone, or NVIDIA's warp.
 *
 * OpenCL C 3.0 without sub-groups and without a generic address space: what lanes
 * share is __global. Owns what is the same for all; the rest is in one of
 *   port/opencl_c11.h  the language's own atomics
 *   port/opencl_ptx.h  PTX, for NVIDIA's compiler, which offers relaxed order only
 *
 * What the language leaves open, the launcher says when it builds a program:
 *   WEIR_OPENCL_DEVICE_IS_SYSTEM  1 if device scope reaches the host and its
 *                                 devices too (a CPU device); needed where the
 *                                 implementation has no all-devices scope
 *   WEIR_OPENCL_CLOCK_NS          expression for nanoseconds that only rise; needed
 *                                 where this header knows no clock
 *   WEIR_OPENCL_PTX               1 if the compiler makes PTX and does not say so itself
 *   WEIR_OPENCL_LANES             lanes of a wave: with PTX 32, or 1; else 1
 */
#ifndef WEIR_PORT_OPENCL_H
#define WEIR_PORT_OPENCL_H

#if __OPENCL_C_VERSION__ < 300
#error "weir: the OpenCL port needs OpenCL C 3.0 (-cl-std=CL3.0)"
#endif
#if defined(__NV_CL_C_VERSION) && !defined(WEIR_OPENCL_PTX)
#define WEIR_OPENCL_PTX 1
#endif
#if !defined(WEIR_OPENCL_PTX)
#define WEIR_OPENCL_PTX 0
#endif
#if !defined(WEIR_OPENCL_LANES)
#define WEIR_OPENCL_LANES (WEIR_OPENCL_PTX ? 32 : 1)
#endif

/* A build may name its own WEIR_FN, to have every function emitted (tests/dialect). */
#ifndef WEIR_FN
#if WEIR_OPENCL_PTX /* as in port/cuda.h */
#define WEIR_FN static inline __attribute__((always_inline)) WEIR_UNUSED
#else
#define WEIR_FN static inline WEIR_UNUSED
#endif
#endif
#define WEIR_GLOBAL           __global
#define WEIR_POINTER(address) ((__global void *)(size_t)(address))
#define WEIR_ADDR(pointer)    ((weir_addr)(size_t)(pointer))

/* Addresses are 64-bit words on every backend. */
typedef char weir_opencl_address_bits[sizeof(size_t) == 8 ? 1 : -1] WEIR_UNUSED;

WEIR_FN u64 weir_thread(void)
{
	return get_global_id(0);
}

WEIR_FN u64 weir_threads(void)
{
	return get_global_size(0);
}

WEIR_FN u32 weir_popcount(u64 bits)
{
	return (u32)popcount(bits);
}

WEIR_FN u32 weir_lowest_bit(u64 bits)
{
	return 63 - (u32)clz(bits & (~bits + 1));
}

WEIR_FN u64 weir_mulhi(u64 a, u64 b)
{
	return mul_hi(a, b);
}

#if WEIR_OPENCL_LANES == 1
WEIR_FN u32 weir_lane(void)
{
	return 0;
}

WEIR_FN u32 weir_lanes(void)
{
	return 1;
}

WEIR_FN u64 weir_wave(void)
{
	return get_global_id(0);
}

WEIR_FN u64 weir_active(void)
{
	return 1;
}

WEIR_FN u64 weir_ballot(u64 mask, u32 predicate)
{
	(void)mask;
	return predicate != 0;
}

WEIR_FN u64 weir_shuffle_u64(u64 mask, u64 value, u32 from)
{
	(void)mask;
	(void)from;
	return value;
}

WEIR_FN u64 weir_match_u64(u64 mask, u64 value)
{
	(void)mask;
	(void)value;
	return 1;
}

WEIR_FN void weir_wave_sync(u64 mask)
{
	(void)mask;
}

WEIR_FN void weir_reconverge(void)
{
}
#endif

#if WEIR_OPENCL_PTX
#include <weir/port/opencl_ptx.h>
#else
#include <weir/port/opencl_c11.h>
#endif

WEIR_FN u32 weir_data_add_u32(weir_addr address, u32 value)
{
	return weir_add_u32_relaxed_dev((__global weir_shared_u32 *)WEIR_POINTER(address), value);
}

WEIR_FN u64 weir_data_add_u64(weir_addr address, u64 value)
{
	return weir_add_u64_relaxed_dev((__global weir_shared_u64 *)WEIR_POINTER(address), value);
}

WEIR_FN u32 weir_data_cas_u32(weir_addr address, u32 expected, u32 value)
{
	return weir_cas_u32_relaxed_dev((__global weir_shared_u32 *)WEIR_POINTER(address), expected, value);
}

WEIR_FN u64 weir_data_cas_u64(weir_addr address, u64 expected, u64 value)
{
	return weir_cas_u64_relaxed_dev((__global weir_shared_u64 *)WEIR_POINTER(address), expected, value);
}

WEIR_FN u64 weir_poll_u64_dev(__global weir_shared_u64 *p, u64 mask)
{
	u64 value = weir_load_u64_relaxed_dev(p);

	if (value & mask)
		weir_order_loads();
	return value;
}

/**
 * WEIR_KERNEL() - define a kernel, launched by its name
 * @name: name for weir_launch()
 * @args_type: structure of plain words and device addresses; the body sees a
 *             __global pointer to it, called args
 */
#define WEIR_KERNEL(name, args_type) __kernel void name(WEIR_GLOBAL args_type *args)

#endif
