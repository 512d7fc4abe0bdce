/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port/opencl_ptx.h: shared words, fences, waves and time as PTX, for NVIDIA's OpenCL.
 *
 * Part of port/opencl.h. That compiler offers relaxed order and no scope that reaches the host,
 * but takes PTX, in which both exist; what port/cuda.h has of nvcc is here spelled the same way.
 * Needs PTX 6.3 and compute capability 7.0: scoped memory order, and lanes of a warp that make
 * progress independently of each other. The latter is why waves of one lane (WEIR_OPENCL_LANES
 * 1) are right in work-groups of any size here, though a warp runs 32 of them: a lane that waits
 * for its neighbour does not keep it from running. In lockstep it would.
 *
 * Which PTX a driver's compiler emits cannot be asked at compile time, so this is the oldest
 * that serves: no acquire fence (PTX 8.6, 9.0), no st.mmio (PTX 8.2).
 */
#ifndef WEIR_PORT_OPENCL_PTX_H
#define WEIR_PORT_OPENCL_PTX_H

enum { WEIR_OPENCL_WARP = 32 };

#if WEIR_OPENCL_LANES == 32
WEIR_FN u32 weir_lane(void)
{
	u32 lane;

	__asm__("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
}

WEIR_FN u32 weir_lanes(void)
{
	return WEIR_OPENCL_WARP;
}

/* Work-items go into warps by their local index; a group's last warp may be short. */
WEIR_FN u64 weir_wave(void)
{
	u64 waves = (get_local_size(0) + WEIR_OPENCL_WARP - 1) / WEIR_OPENCL_WARP;

	return get_group_id(0) * waves + get_local_id(0) / WEIR_OPENCL_WARP;
}

WEIR_FN u64 weir_active(void)
{
	u32 mask;

	__asm__ volatile("activemask.b32 %0;" : "=r"(mask)::"memory");
	return mask;
}

WEIR_FN u64 weir_ballot(u64 mask, u32 predicate)
{
	u32 ballot;

	__asm__ volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }"
			 : "=r"(ballot)
			 : "r"(predicate), "r"((u32)mask)
			 : "memory");
	return ballot & (u32)mask;
}

WEIR_FN u32 weir_opencl_shuffle(u64 mask, u32 value, u32 from)
{
	u32 got;

	__asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;"
			 : "=r"(got)
			 : "r"(value), "r"(from), "r"((u32)mask)
			 : "memory");
	return got;
}

WEIR_FN u64 weir_shuffle_u64(u64 mask, u64 value, u32 from)
{
	u32 low = weir_opencl_shuffle(mask, (u32)value, from);

	return (u64)weir_opencl_shuffle(mask, (u32)(value >> 32), from) << 32 | low;
}

WEIR_FN u64 weir_match_u64(u64 mask, u64 value)
{
	u32 same;

	__asm__ volatile("match.any.sync.b64 %0, %1, %2;"
			 : "=r"(same)
			 : "l"(value), "r"((u32)mask)
			 : "memory");
	return same & (u32)mask;
}

WEIR_FN void weir_wave_sync(u64 mask)
{
	__asm__ volatile("bar.warp.sync %0;" ::"r"((u32)mask) : "memory");
}

WEIR_FN void weir_reconverge(void)
{
}
#elif WEIR_OPENCL_LANES != 1
#error "weir: waves are 32 lanes wide with PTX, or 1 (WEIR_OPENCL_LANES)"
#endif

WEIR_FN void weir_relax(u32 iteration)
{
	__asm__ volatile("nanosleep.u32 %0;" ::"r"(WEIR_RELAX_NS(iteration)) : "memory");
}

WEIR_FN u64 weir_clock_ns(void)
{
	u64 now;

	__asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

WEIR_FN u64 weir_opaque(u64 value)
{
	__asm__ volatile("" : "+l"(value));
	return value;
}

#define WEIR_OPENCL_32 "r"
#define WEIR_OPENCL_64 "l"
#define WEIR_OPENCL_LOAD(bits, order, scope, ptx)                                                            \
	WEIR_FN u##bits weir_load_u##bits##_##order##_##scope(const __global weir_shared_u##bits *p)         \
	{                                                                                                    \
		u##bits v;                                                                                   \
                                                                                                             \
		__asm__ volatile("ld." #order "." ptx ".global.u" #bits " %0, [%1];"                         \
				 : "=" WEIR_OPENCL_##bits(v)                                                 \
				 : "l"(WEIR_ADDR(&p->value_))                                                \
				 : "memory");                                                                \
		return v;                                                                                    \
	}
/* Before weir_order_loads(). */
#define WEIR_OPENCL_LOAD_FENCED(bits, scope)                                                                 \
	WEIR_FN u##bits weir_load_u##bits##_fenced_##scope(const __global weir_shared_u##bits *p)            \
	{                                                                                                    \
		return weir_load_u##bits##_relaxed_##scope(p);                                               \
	}
#define WEIR_OPENCL_STORE(bits, name, order, scope, ptx)                                                     \
	WEIR_FN void weir_store_u##bits##_##name##_##scope(__global weir_shared_u##bits *p, u##bits v)       \
	{                                                                                                    \
		__asm__ volatile("st." order "." ptx ".global.u" #bits                                       \
				 " [%0], %1;" ::"l"(WEIR_ADDR(&p->value_)),                                  \
				 WEIR_OPENCL_##bits(v)                                                       \
				 : "memory");                                                                \
	}
#define WEIR_OPENCL_RMW(verb, operation, bits, name, order, scope, ptx)                                      \
	WEIR_FN u##bits weir_##verb##_u##bits##_##name##_##scope(__global weir_shared_u##bits *p, u##bits v) \
	{                                                                                                    \
		u##bits old;                                                                                 \
                                                                                                             \
		__asm__ volatile("atom." order "." ptx ".global." operation #bits " %0, [%1], %2;"           \
				 : "=" WEIR_OPENCL_##bits(old)                                               \
				 : "l"(WEIR_ADDR(&p->value_)), WEIR_OPENCL_##bits(v)                         \
				 : "memory");                                                                \
		return old;                                                                                  \
	}
#define WEIR_OPENCL_CAS(bits, order, scope, ptx)                                                             \
	WEIR_FN u##bits weir_cas_u##bits##_##order##_##scope(__global weir_shared_u##bits *p,                \
							     u##bits expected, u##bits v)                    \
	{                                                                                                    \
		u##bits old;                                                                                 \
                                                                                                             \
		__asm__ volatile("atom." #order "." ptx ".global.cas.b" #bits " %0, [%1], %2, %3;"           \
				 : "=" WEIR_OPENCL_##bits(old)                                               \
				 : "l"(WEIR_ADDR(&p->value_)), WEIR_OPENCL_##bits(expected),                 \
				   WEIR_OPENCL_##bits(v)                                                     \
				 : "memory");                                                                \
		return old;                                                                                  \
	}
#define WEIR_OPENCL_ACCESSORS(bits, scope, ptx)                                                              \
	WEIR_OPENCL_LOAD(bits, relaxed, scope, ptx)                                                          \
	WEIR_OPENCL_LOAD(bits, acquire, scope, ptx)                                                          \
	WEIR_OPENCL_LOAD_FENCED(bits, scope)                                                                 \
	WEIR_OPENCL_STORE(bits, relaxed, "relaxed", scope, ptx)                                              \
	WEIR_OPENCL_STORE(bits, fenced, "relaxed", scope, ptx)                                               \
	WEIR_OPENCL_STORE(bits, release, "release", scope, ptx)                                              \
	WEIR_OPENCL_RMW(add, "add.u", bits, relaxed, "relaxed", scope, ptx)                                  \
	WEIR_OPENCL_RMW(add, "add.u", bits, acq_rel, "acq_rel", scope, ptx)                                  \
	WEIR_OPENCL_RMW(or, "or.b", bits, relaxed, "relaxed", scope, ptx)                                    \
	WEIR_OPENCL_RMW(or, "or.b", bits, fenced, "relaxed", scope, ptx)                                     \
	WEIR_OPENCL_RMW(or, "or.b", bits, acq_rel, "acq_rel", scope, ptx)                                    \
	WEIR_OPENCL_RMW(and, "and.b", bits, relaxed, "relaxed", scope, ptx)                                  \
	WEIR_OPENCL_RMW(and, "and.b", bits, fenced, "relaxed", scope, ptx)                                   \
	WEIR_OPENCL_RMW(and, "and.b", bits, acq_rel, "acq_rel", scope, ptx)                                  \
	WEIR_OPENCL_RMW(exchange, "exch.b", bits, acq_rel, "acq_rel", scope, ptx)                            \
	WEIR_OPENCL_CAS(bits, relaxed, scope, ptx)                                                           \
	WEIR_OPENCL_CAS(bits, acquire, scope, ptx)                                                           \
	WEIR_OPENCL_CAS(bits, acq_rel, scope, ptx)

WEIR_OPENCL_ACCESSORS(32, dev, "gpu")
WEIR_OPENCL_ACCESSORS(32, sys, "sys")
WEIR_OPENCL_ACCESSORS(64, dev, "gpu")
WEIR_OPENCL_ACCESSORS(64, sys, "sys")

/* Cached data: relaxed at device scope, served by L2, where other multiprocessors' writes are. */
#define WEIR_OPENCL_DATA(bits, wide, constraint)                                                             \
	WEIR_FN u##bits weir_data_load_u##bits(weir_addr address)                                            \
	{                                                                                                    \
		wide data;                                                                                   \
                                                                                                             \
		__asm__ volatile("ld.relaxed.gpu.global.u" #bits " %0, [%1];"                                \
				 : "=" constraint(data)                                                      \
				 : "l"(address));                                                            \
		return (u##bits)data;                                                                        \
	}                                                                                                    \
	WEIR_FN void weir_data_store_u##bits(weir_addr address, u##bits value)                               \
	{                                                                                                    \
		__asm__ volatile("st.relaxed.gpu.global.u" #bits " [%0], %1;" ::"l"(address),                \
				 constraint((wide)value)                                                     \
				 : "memory");                                                                \
	}

WEIR_OPENCL_DATA(8, u16, "h")
WEIR_OPENCL_DATA(16, u16, "h")
WEIR_OPENCL_DATA(32, u32, "r")
WEIR_OPENCL_DATA(64, u64, "l")

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

WEIR_FN void weir_data_store_u128(weir_addr address, struct weir_u128 data)
{
	__asm__ volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(address), "l"(data.low),
			 "l"(data.high)
			 : "memory");
}

WEIR_FN void weir_order_loads(void)
{
	__asm__ volatile("fence.acq_rel.gpu;" ::: "memory");
}

/*
 * A warp issues in order and does not guess: an address made of a loaded value waits for
 * it, and relaxed loads of device scope are served by L2 when they are issued. The constant
 * is no line's word.
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
	__asm__ volatile("fence.acq_rel.sys;" ::: "memory");
}

WEIR_FN void weir_fence_with_controller(void)
{
	__asm__ volatile("fence.sc.sys;" ::: "memory");
}

/* PTX performs as many volatile stores as are written, of the same width, at system scope. */
WEIR_FN void weir_mmio_store_u32(weir_addr address, u32 value)
{
	__asm__ volatile("st.volatile.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

#endif
