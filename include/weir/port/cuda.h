/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port/cuda.h: a lane is a CUDA thread, a wave is a warp of 32.
 *
 * Shared words are scoped accesses of PTX, so that order and scope reach the assembler
 * as such. Masks narrow from u64 to the 32 bits a warp has.
 * Pointers stay generic: casts through the global address space made nvcc 13.0 loop
 * forever in the cache code.
 *
 * By compute capability (__CUDA_ARCH__ is that of the translation, not of the GPU it
 * ends up on, so a build needs one for 9.0 lest newer GPUs run as older ones):
 *   7.0  scoped memory order, match: the least that works; the build begins at 7.5
 *   9.0  an acquire fence, which waits for loads only (WEIR_CUDA_ACQUIRE)
 */
#ifndef WEIR_PORT_CUDA_H
#define WEIR_PORT_CUDA_H

#if !defined(__CUDACC_VER_MAJOR__) || __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1208
#error "weir: the CUDA port needs the acquire fence of nvcc 12.8 or later"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "weir: the CUDA port needs scoped memory order, compute capability 7.0 or later"
#endif

/*
 * Inlined in any case: nvcc would call what is large, and two groups of a warp's lanes that meet in a
 * called function break its collectives (docs/porting.md). A build may name its own, to have every
 * function emitted (tests/dialect).
 */
#ifndef WEIR_FN
#define WEIR_FN     static __device__ __forceinline__ WEIR_UNUSED
#define WEIR_COLD   static __device__ __noinline__ WEIR_UNUSED
#define WEIR_METHOD __device__ __forceinline__
#endif
#define WEIR_GLOBAL
#define WEIR_POINTER(address) ((void *)(uintptr_t)(address))
#define WEIR_ADDR(pointer)    ((weir_addr)(uintptr_t)(pointer))

enum { WEIR_CUDA_LANES = 32 };

WEIR_FN u32 weir_lane(void)
{
	u32 lane;

	__asm__("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
}

WEIR_FN u32 weir_lanes(void)
{
	return WEIR_CUDA_LANES;
}

WEIR_FN u64 weir_thread(void)
{
	return (u64)blockIdx.x * blockDim.x + threadIdx.x;
}

WEIR_FN u64 weir_threads(void)
{
	return (u64)gridDim.x * blockDim.x;
}

WEIR_FN u64 weir_wave(void)
{
	u32 waves = (blockDim.x + WEIR_CUDA_LANES - 1) / WEIR_CUDA_LANES;

	return (u64)blockIdx.x * waves + threadIdx.x / WEIR_CUDA_LANES;
}

WEIR_FN u64 weir_active(void)
{
	return __activemask();
}

WEIR_FN u64 weir_ballot(u64 mask, u32 predicate)
{
	return __ballot_sync((u32)mask, predicate != 0) & (u32)mask;
}

WEIR_FN u64 weir_shuffle_u64(u64 mask, u64 value, u32 from)
{
	return __shfl_sync((u32)mask, (unsigned long long)value, (int)from);
}

WEIR_FN u64 weir_match_u64(u64 mask, u64 value)
{
	return __match_any_sync((u32)mask, (unsigned long long)value) & (u32)mask;
}

WEIR_FN void weir_wave_sync(u64 mask)
{
	__syncwarp((u32)mask);
}

WEIR_FN void weir_reconverge(void)
{
}

WEIR_FN void weir_relax(u32 iteration)
{
	__nanosleep(WEIR_RELAX_NS(iteration));
}

WEIR_FN u64 weir_clock_ns(void)
{
	u64 now;

	__asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

WEIR_FN u32 weir_popcount(u64 bits)
{
	return (u32)__popcll(bits);
}

WEIR_FN u32 weir_lowest_bit(u64 bits)
{
	return (u32)__ffsll((long long)bits) - 1;
}

WEIR_FN u64 weir_opaque(u64 value)
{
	__asm__ volatile("" : "+l"(value));
	return value;
}

WEIR_FN u64 weir_mulhi(u64 a, u64 b)
{
	return __umul64hi(a, b);
}

/*
 * Shared words as PTX, because only there an address can be said to be global: for a
 * generic one the compiler adds another way for memory that a block shares, and a
 * 64-bit OR then waits for its answer.
 */
#define WEIR_CUDA_32 "r"
#define WEIR_CUDA_64 "l"
#define WEIR_CUDA_LOAD(bits, order, scope, ptx)                                                              \
	WEIR_FN u##bits weir_load_u##bits##_##order##_##scope(const weir_shared_u##bits *p)                  \
	{                                                                                                    \
		u##bits v;                                                                                   \
                                                                                                             \
		__asm__ volatile("ld." #order "." ptx ".global.u" #bits " %0, [%1];"                         \
				 : "=" WEIR_CUDA_##bits(v)                                                   \
				 : "l"(&p->value_)                                                           \
				 : "memory");                                                                \
		return v;                                                                                    \
	}
/* Before weir_order_loads(). */
#define WEIR_CUDA_LOAD_FENCED(bits, scope)                                                                   \
	WEIR_FN u##bits weir_load_u##bits##_fenced_##scope(const weir_shared_u##bits *p)                     \
	{                                                                                                    \
		return weir_load_u##bits##_relaxed_##scope(p);                                               \
	}
#define WEIR_CUDA_STORE(bits, name, order, scope, ptx)                                                       \
	WEIR_FN void weir_store_u##bits##_##name##_##scope(weir_shared_u##bits *p, u##bits v)                \
	{                                                                                                    \
		__asm__ volatile("st." order "." ptx ".global.u" #bits " [%0], %1;" ::"l"(&p->value_),       \
				 WEIR_CUDA_##bits(v)                                                         \
				 : "memory");                                                                \
	}
#define WEIR_CUDA_RMW(verb, operation, bits, name, order, scope, ptx)                                        \
	WEIR_FN u##bits weir_##verb##_u##bits##_##name##_##scope(weir_shared_u##bits *p, u##bits v)          \
	{                                                                                                    \
		u##bits old;                                                                                 \
                                                                                                             \
		__asm__ volatile("atom." order "." ptx ".global." operation #bits " %0, [%1], %2;"           \
				 : "=" WEIR_CUDA_##bits(old)                                                 \
				 : "l"(&p->value_), WEIR_CUDA_##bits(v)                                      \
				 : "memory");                                                                \
		return old;                                                                                  \
	}
#define WEIR_CUDA_CAS(bits, order, scope, ptx)                                                               \
	WEIR_FN u##bits weir_cas_u##bits##_##order##_##scope(weir_shared_u##bits *p, u##bits expected,       \
							     u##bits v)                                      \
	{                                                                                                    \
		u##bits old;                                                                                 \
                                                                                                             \
		__asm__ volatile("atom." #order "." ptx ".global.cas.b" #bits " %0, [%1], %2, %3;"           \
				 : "=" WEIR_CUDA_##bits(old)                                                 \
				 : "l"(&p->value_), WEIR_CUDA_##bits(expected), WEIR_CUDA_##bits(v)          \
				 : "memory");                                                                \
		return old;                                                                                  \
	}
#define WEIR_CUDA_ACCESSORS(bits, scope, ptx)                                                                \
	WEIR_CUDA_LOAD(bits, relaxed, scope, ptx)                                                            \
	WEIR_CUDA_LOAD(bits, acquire, scope, ptx)                                                            \
	WEIR_CUDA_LOAD_FENCED(bits, scope)                                                                   \
	WEIR_CUDA_STORE(bits, relaxed, "relaxed", scope, ptx)                                                \
	WEIR_CUDA_STORE(bits, fenced, "relaxed", scope, ptx)                                                 \
	WEIR_CUDA_STORE(bits, release, "release", scope, ptx)                                                \
	WEIR_CUDA_RMW(add, "add.u", bits, relaxed, "relaxed", scope, ptx)                                    \
	WEIR_CUDA_RMW(add, "add.u", bits, acq_rel, "acq_rel", scope, ptx)                                    \
	WEIR_CUDA_RMW(or, "or.b", bits, relaxed, "relaxed", scope, ptx)                                      \
	WEIR_CUDA_RMW(or, "or.b", bits, fenced, "relaxed", scope, ptx)                                       \
	WEIR_CUDA_RMW(or, "or.b", bits, acq_rel, "acq_rel", scope, ptx)                                      \
	WEIR_CUDA_RMW(and, "and.b", bits, relaxed, "relaxed", scope, ptx)                                    \
	WEIR_CUDA_RMW(and, "and.b", bits, fenced, "relaxed", scope, ptx)                                     \
	WEIR_CUDA_RMW(and, "and.b", bits, acq_rel, "acq_rel", scope, ptx)                                    \
	WEIR_CUDA_RMW(exchange, "exch.b", bits, acq_rel, "acq_rel", scope, ptx)                              \
	WEIR_CUDA_CAS(bits, relaxed, scope, ptx)                                                             \
	WEIR_CUDA_CAS(bits, acquire, scope, ptx)                                                             \
	WEIR_CUDA_CAS(bits, acq_rel, scope, ptx)

WEIR_CUDA_ACCESSORS(32, dev, "gpu")
WEIR_CUDA_ACCESSORS(32, sys, "sys")
WEIR_CUDA_ACCESSORS(64, dev, "gpu")
WEIR_CUDA_ACCESSORS(64, sys, "sys")

/* Cached data: relaxed at device scope, served by L2, where other SMs' and DMA's writes are. */
#define WEIR_CUDA_DATA(bits, wide, constraint)                                                               \
	WEIR_FN u##bits weir_data_load_u##bits(weir_addr address)                                            \
	{                                                                                                    \
		wide data;                                                                                   \
                                                                                                             \
		__asm__ volatile("ld.relaxed.gpu.global.u" #bits " %0, [%1];"                                \
				 : constraint(data)                                                          \
				 : "l"(address));                                                            \
		return (u##bits)data;                                                                        \
	}

WEIR_CUDA_DATA(8, u16, "=h")
WEIR_CUDA_DATA(16, u16, "=h")
WEIR_CUDA_DATA(32, u32, "=r")
WEIR_CUDA_DATA(64, u64, "=l")

/* Lanes of a wave load side by side, and others meanwhile: there is nothing to gain. */
WEIR_FN void weir_data_hint(weir_addr address)
{
	(void)address;
}

WEIR_FN struct weir_u128 weir_data_load_u128(weir_addr address)
{
	struct weir_u128 data;

	__asm__ volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
			 : "=l"(data.low), "=l"(data.high)
			 : "l"(address));
	return data;
}

/* Likewise stores: they go through to L2. */
#define WEIR_CUDA_DATA_STORE(bits, wide, constraint)                                                         \
	WEIR_FN void weir_data_store_u##bits(weir_addr address, u##bits value)                               \
	{                                                                                                    \
		__asm__ volatile("st.relaxed.gpu.global.u" #bits " [%0], %1;" ::"l"(address),                \
				 constraint((wide)value)                                                     \
				 : "memory");                                                                \
	}

WEIR_CUDA_DATA_STORE(8, u16, "h")
WEIR_CUDA_DATA_STORE(16, u16, "h")
WEIR_CUDA_DATA_STORE(32, u32, "r")
WEIR_CUDA_DATA_STORE(64, u64, "l")

WEIR_FN void weir_data_store_u128(weir_addr address, struct weir_u128 data)
{
	__asm__ volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(address), "l"(data.low),
			 "l"(data.high)
			 : "memory");
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

/*
 * An acquire fence waits for earlier loads and drops L1, nothing else; before
 * compute capability 9.0 there is only the full one, which also waits for stores.
 * (The compiler's own acquire fence builtin emits a sequentially consistent one.)
 */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define WEIR_CUDA_ACQUIRE "fence.acquire."
#else
#define WEIR_CUDA_ACQUIRE "fence.acq_rel."
#endif

WEIR_FN void weir_order_loads(void)
{
	__asm__ volatile(WEIR_CUDA_ACQUIRE "gpu;" ::: "memory");
}

WEIR_FN u64 weir_poll_u64_dev(const weir_shared_u64 *p, u64 mask)
{
	u64 value = weir_load_u64_relaxed_dev(p);

	if (value & mask)
		__asm__ volatile(WEIR_CUDA_ACQUIRE "gpu;" ::: "memory");
	return value;
}

/*
 * A warp issues in order and does not guess: an address made of a loaded value waits for
 * it, and relaxed loads of device scope are served by L2 when they are issued. A fence
 * would wait as long and empty L1 besides. The constant is no line's word.
 */
WEIR_FN u32 weir_depend(u32 index, u64 seen)
{
	u32 same;

	__asm__ volatile("{ .reg .pred p; setp.eq.u64 p, %1, 0x96d5f3b1c7a8e245; selp.u32 %0, 0, %2, p; }"
			 : "=r"(same)
			 : "l"(seen), "r"(index));
	return same;
}

WEIR_FN void weir_fence_to_lanes(void)
{
	__asm__ volatile("fence.acq_rel.gpu;" ::: "memory");
}

WEIR_FN void weir_fence_to_controller(void)
{
	__asm__ volatile("fence.acq_rel.sys;" ::: "memory");
}

WEIR_FN void weir_fence_from_controller(void)
{
	__asm__ volatile(WEIR_CUDA_ACQUIRE "sys;" ::: "memory");
}

WEIR_FN void weir_fence_with_controller(void)
{
	__asm__ volatile("fence.sc.sys;" ::: "memory");
}

WEIR_FN void weir_mmio_store_u32(weir_addr address, u32 value)
{
	__asm__ volatile("st.mmio.relaxed.sys.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/*
 * Most lanes a block may have. A kernel is built for this bound, and a launcher refuses
 * larger blocks.
 */
#ifndef WEIR_BLOCK_LANES
#define WEIR_BLOCK_LANES 256
#endif

/*
 * Lanes that a multiprocessor shall have room for: with 65,536 registers each lane gets
 * 65,536 / WEIR_RESIDENT_LANES at most. More lanes in flight hide more latency.
 */
#ifndef WEIR_RESIDENT_LANES
#define WEIR_RESIDENT_LANES 1024
#endif
#define WEIR_CUDA_BOUNDS                                                                                     \
	__launch_bounds__(WEIR_BLOCK_LANES, WEIR_RESIDENT_LANES > WEIR_BLOCK_LANES                           \
						    ? WEIR_RESIDENT_LANES / WEIR_BLOCK_LANES                 \
						    : 1)

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
	extern "C" __global__ void WEIR_CUDA_BOUNDS name(WEIR_GLOBAL args_type *args)

#endif
