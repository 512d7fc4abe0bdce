/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h: the port of the schedule explorer. Every primitive is a call into the
 * scheduler, which decides who runs next and what a load may see.
 *
 * Chosen by -DWEIR_PORT_HEADER='"…/port.h"'; the core above it is compiled
 * unchanged. Everything is inlined into the kernel, as compilers for wavefronts
 * do, so that a kernel is one control-flow graph.
 */
#ifndef EXPLORE_PORT_H
#define EXPLORE_PORT_H

#define WEIR_FN static inline __attribute__((always_inline, unused))
#define WEIR_GLOBAL
#define WEIR_POINTER(address) ((void *)(uintptr_t)(address))
#define WEIR_ADDR(pointer)    ((weir_addr)(uintptr_t)(pointer))

#include "hooks.h"

WEIR_FN u32 weir_lane(void)
{
	return explore_self->lane;
}

WEIR_FN u32 weir_lanes(void)
{
	return explore_self->lanes;
}

WEIR_FN u64 weir_thread(void)
{
	return explore_self->thread;
}

WEIR_FN u64 weir_threads(void)
{
	return explore_self->threads;
}

WEIR_FN u64 weir_wave(void)
{
	return explore_self->wave;
}

WEIR_FN WEIR_FORCE_INLINE u64 weir_active(void) /* its caller's own, as in port/cpu.h */
{
	return explore_active();
}

WEIR_FN u64 weir_ballot(u64 mask, u32 predicate)
{
	return explore_ballot(mask, predicate);
}

WEIR_FN u64 weir_shuffle_u64(u64 mask, u64 value, u32 from)
{
	return explore_shuffle(mask, value, from);
}

WEIR_FN u64 weir_match_u64(u64 mask, u64 value)
{
	return explore_match(mask, value);
}

WEIR_FN void weir_wave_sync(u64 mask)
{
	explore_wave_sync(mask);
}

WEIR_FN void weir_reconverge(void)
{
	explore_reconverge();
}

/* Turns count eightfold: what grows with them does so within a run. */
WEIR_FN void weir_relax(u32 iteration)
{
	explore_relax(WEIR_RELAX_NS(iteration * 8));
}

WEIR_FN u64 weir_clock_ns(void)
{
	return explore_clock_ns();
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

#define EXPLORE_LOAD(bits, name, scope, order)                                                               \
	WEIR_FN u##bits weir_load_u##bits##_##name##_##scope(const weir_shared_u##bits *p)                   \
	{                                                                                                    \
		return (u##bits)explore_load(&p->value_, bits / 8, order);                                   \
	}
#define EXPLORE_STORE(bits, name, scope, order)                                                              \
	WEIR_FN void weir_store_u##bits##_##name##_##scope(weir_shared_u##bits *p, u##bits v)                \
	{                                                                                                    \
		explore_store(&p->value_, bits / 8, v, order);                                               \
	}
#define EXPLORE_CHANGE(verb, change, bits, name, scope, order)                                               \
	WEIR_FN u##bits weir_##verb##_u##bits##_##name##_##scope(weir_shared_u##bits *p, u##bits v)          \
	{                                                                                                    \
		return (u##bits)explore_change(&p->value_, bits / 8, change, v, 0, order);                   \
	}
#define EXPLORE_SWAP(bits, name, scope, order)                                                               \
	WEIR_FN u##bits weir_cas_u##bits##_##name##_##scope(weir_shared_u##bits *p, u##bits expected,        \
							    u##bits v)                                       \
	{                                                                                                    \
		return (u##bits)explore_change(&p->value_, bits / 8, EXPLORE_CAS, v, expected, order);       \
	}
#define EXPLORE_ACCESSORS(bits, scope)                                                                       \
	EXPLORE_LOAD(bits, relaxed, scope, EXPLORE_RELAXED)                                                  \
	EXPLORE_LOAD(bits, fenced, scope, EXPLORE_RELAXED)                                                   \
	EXPLORE_LOAD(bits, acquire, scope, EXPLORE_ACQUIRE)                                                  \
	EXPLORE_STORE(bits, relaxed, scope, EXPLORE_RELAXED)                                                 \
	EXPLORE_STORE(bits, release, scope, EXPLORE_RELEASE)                                                 \
	EXPLORE_STORE(bits, fenced, scope, EXPLORE_RELAXED)                                                  \
	EXPLORE_CHANGE(add, EXPLORE_ADD, bits, relaxed, scope, EXPLORE_RELAXED)                              \
	EXPLORE_CHANGE(add, EXPLORE_ADD, bits, acq_rel, scope, EXPLORE_ACQ_REL)                              \
	EXPLORE_CHANGE(or, EXPLORE_OR, bits, relaxed, scope, EXPLORE_RELAXED)                                \
	EXPLORE_CHANGE(or, EXPLORE_OR, bits, fenced, scope, EXPLORE_RELAXED)                                 \
	EXPLORE_CHANGE(or, EXPLORE_OR, bits, acq_rel, scope, EXPLORE_ACQ_REL)                                \
	EXPLORE_CHANGE(and, EXPLORE_AND, bits, relaxed, scope, EXPLORE_RELAXED)                              \
	EXPLORE_CHANGE(and, EXPLORE_AND, bits, fenced, scope, EXPLORE_RELAXED)                               \
	EXPLORE_CHANGE(and, EXPLORE_AND, bits, acq_rel, scope, EXPLORE_ACQ_REL)                              \
	EXPLORE_CHANGE(exchange, EXPLORE_EXCHANGE, bits, acq_rel, scope, EXPLORE_ACQ_REL)                    \
	EXPLORE_SWAP(bits, relaxed, scope, EXPLORE_RELAXED)                                                  \
	EXPLORE_SWAP(bits, acquire, scope, EXPLORE_ACQUIRE)                                                  \
	EXPLORE_SWAP(bits, acq_rel, scope, EXPLORE_ACQ_REL)

EXPLORE_ACCESSORS(32, dev)
EXPLORE_ACCESSORS(32, sys)
EXPLORE_ACCESSORS(64, dev)
EXPLORE_ACCESSORS(64, sys)

#define EXPLORE_DATA(bits)                                                                                   \
	WEIR_FN u##bits weir_data_load_u##bits(weir_addr address)                                            \
	{                                                                                                    \
		return (u##bits)explore_load(WEIR_POINTER(address), bits / 8, EXPLORE_RELAXED);              \
	}

/* (Memory keeps the past of 4-byte words: scenarios store nothing narrower.) */
#define EXPLORE_DATA_STORE(bits)                                                                             \
	WEIR_FN void weir_data_store_u##bits(weir_addr address, u##bits value)                               \
	{                                                                                                    \
		explore_store(WEIR_POINTER(address), bits / 8, value, EXPLORE_RELAXED);                      \
	}

EXPLORE_DATA_STORE(8)
EXPLORE_DATA_STORE(16)
EXPLORE_DATA_STORE(32)
EXPLORE_DATA_STORE(64)

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

EXPLORE_DATA(8)
EXPLORE_DATA(16)
EXPLORE_DATA(32)
EXPLORE_DATA(64)

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

WEIR_FN void weir_order_loads(void)
{
	explore_order_loads();
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
	explore_fence_to_controller();
}

WEIR_FN void weir_fence_to_controller(void)
{
	explore_fence_to_controller();
}

WEIR_FN void weir_fence_from_controller(void)
{
	explore_fence_from_controller();
}

WEIR_FN void weir_fence_with_controller(void)
{
	explore_fence_with_controller();
}

WEIR_FN void weir_mmio_store_u32(weir_addr address, u32 value)
{
	explore_mmio_store(WEIR_POINTER(address), value);
}

/*
 * A kernel is a symbol of the kernels' shared object; the explorer finds it by name. With -DEXPLORE_SOME
 * there are only those with -DEXPLORE_WITH_name=,EXPLORE_KERNEL: a macro that puts its second word in front.
 */
#ifdef EXPLORE_SOME
#define WEIR_KERNEL(name, args_type) EXPLORE_SECOND(EXPLORE_WITH_##name, EXPLORE_NO_KERNEL, )(name, args_type)
#else
#define WEIR_KERNEL(name, args_type) EXPLORE_KERNEL(name, args_type)
#endif
#define EXPLORE_SECOND(...)                   EXPLORE_SECOND_OF(__VA_ARGS__)
#define EXPLORE_SECOND_OF(first, second, ...) second
#define EXPLORE_NO_KERNEL(name, type)         __attribute__((unused)) WEIR_FN void name##_body(type *args)
#define EXPLORE_KERNEL(name, args_type)                                                                      \
	WEIR_FN void name##_body(args_type *args);                                                           \
	void explore_kernel_##name(void *args);                                                              \
	void explore_kernel_##name(void *args)                                                               \
	{                                                                                                    \
		name##_body((args_type *)args);                                                              \
	}                                                                                                    \
	WEIR_FN void name##_body(args_type *args)

#endif
