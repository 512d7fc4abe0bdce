/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port/opencl_c11.h: shared words, fences and time by what OpenCL C 3.0 itself has.
 *
 * Part of port/opencl.h. Waves are one lane wide: the language has none without sub-groups.
 */
#ifndef WEIR_PORT_OPENCL_C11_H
#define WEIR_PORT_OPENCL_C11_H

#if WEIR_OPENCL_LANES != 1
#error "weir: OpenCL C itself has waves of one lane only; leave WEIR_OPENCL_LANES out"
#endif
#if !defined(__opencl_c_atomic_order_acq_rel) || !defined(__opencl_c_atomic_scope_device)
#error "weir: the OpenCL port needs acquire-release order at device scope"
#endif
#if !defined(cl_khr_int64_base_atomics) || !defined(cl_khr_int64_extended_atomics)
#error "weir: the OpenCL port needs 64-bit atomics"
#endif

#if defined(WEIR_OPENCL_DEVICE_IS_SYSTEM) && WEIR_OPENCL_DEVICE_IS_SYSTEM
#define WEIR_OPENCL_SYSTEM memory_scope_device
#elif defined(__opencl_c_atomic_scope_all_devices)
#define WEIR_OPENCL_SYSTEM memory_scope_all_svm_devices
#else
#error "weir: no memory scope reaches the host; see WEIR_OPENCL_DEVICE_IS_SYSTEM in port/opencl.h"
#endif

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

/*
 * A CPU device runs work-items on threads, often more of them than cores: a waiting
 * one must give its core away, and asks the kernel for that, for sleep and for the time.
 */
#if defined(__x86_64__) && defined(__linux__)
#define WEIR_OPENCL_LINUX_YIELD         24
#define WEIR_OPENCL_LINUX_NANOSLEEP     35
#define WEIR_OPENCL_LINUX_CLOCK_GETTIME 228
#define WEIR_OPENCL_LINUX_MONOTONIC     1

WEIR_FN long weir_opencl_system_call(long number, long first, long second)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(first), "S"(second)
			 : "rcx", "r11", "memory");
	return result;
}

WEIR_FN void weir_relax(u32 iteration)
{
	long rest[2] = { 0, (long)WEIR_RELAX_NS(iteration) }; /* struct timespec */

	if (iteration < WEIR_RELAX_AWAKE)
		(void)weir_opencl_system_call(WEIR_OPENCL_LINUX_YIELD, 0, 0);
	else
		(void)weir_opencl_system_call(WEIR_OPENCL_LINUX_NANOSLEEP, (long)rest, 0);
}
#else
WEIR_FN void weir_relax(u32 iteration)
{
	(void)iteration;
}
#endif

#if defined(WEIR_OPENCL_CLOCK_NS)
WEIR_FN u64 weir_clock_ns(void)
{
	return WEIR_OPENCL_CLOCK_NS;
}
#elif defined(__x86_64__) && defined(__linux__)
WEIR_FN u64 weir_clock_ns(void)
{
	long now[2]; /* struct timespec */

	(void)weir_opencl_system_call(WEIR_OPENCL_LINUX_CLOCK_GETTIME, WEIR_OPENCL_LINUX_MONOTONIC,
				      (long)now);
	return (u64)now[0] * 1000000000 + (u64)now[1];
}
#else
#error "weir: no clock for this OpenCL target; see WEIR_OPENCL_CLOCK_NS in port/opencl.h"
#endif

/* OpenCL C has no word for it. */
WEIR_FN u64 weir_opaque(u64 value)
{
	return value;
}

typedef volatile __global atomic_uint *weir_opencl_u32;
typedef volatile __global atomic_ulong *weir_opencl_u64;

#define WEIR_OPENCL_LOAD(bits, order, scope, memory_scope)                                                   \
	WEIR_FN u##bits weir_load_u##bits##_##order##_##scope(const __global weir_shared_u##bits *p)         \
	{                                                                                                    \
		return atomic_load_explicit((weir_opencl_u##bits) & p->value_, memory_order_##order,         \
					    memory_scope);                                                   \
	}
#define WEIR_OPENCL_STORE(bits, order, scope, memory_scope)                                                  \
	WEIR_FN void weir_store_u##bits##_##order##_##scope(__global weir_shared_u##bits *p, u##bits v)      \
	{                                                                                                    \
		atomic_store_explicit((weir_opencl_u##bits) & p->value_, v, memory_order_##order,            \
				      memory_scope);                                                         \
	}
#define WEIR_OPENCL_RMW(name, function, bits, order, scope, memory_scope)                                    \
	WEIR_FN u##bits weir_##name##_u##bits##_##order##_##scope(__global weir_shared_u##bits *p,           \
								  u##bits v)                                 \
	{                                                                                                    \
		return function((weir_opencl_u##bits) & p->value_, v, memory_order_##order, memory_scope);   \
	}
#define WEIR_OPENCL_CAS(bits, order, scope, memory_scope)                                                    \
	WEIR_FN u##bits weir_cas_u##bits##_##order##_##scope(__global weir_shared_u##bits *p,                \
							     u##bits expected, u##bits v)                    \
	{                                                                                                    \
		(void)atomic_compare_exchange_strong_explicit((weir_opencl_u##bits) & p->value_, &expected,  \
							      v, memory_order_##order, memory_order_relaxed, \
							      memory_scope);                                 \
		return expected;                                                                             \
	}
/* Behind weir_fence_to_lanes(); loads, before weir_order_loads(). */
#define WEIR_OPENCL_FENCED(bits, scope, memory_scope)                                                        \
	WEIR_FN u##bits weir_load_u##bits##_fenced_##scope(const __global weir_shared_u##bits *p)            \
	{                                                                                                    \
		return weir_load_u##bits##_relaxed_##scope(p);                                               \
	}                                                                                                    \
	WEIR_FN void weir_store_u##bits##_fenced_##scope(__global weir_shared_u##bits *p, u##bits v)         \
	{                                                                                                    \
		weir_store_u##bits##_relaxed_##scope(p, v);                                                  \
	}                                                                                                    \
	WEIR_FN u##bits weir_or_u##bits##_fenced_##scope(__global weir_shared_u##bits *p, u##bits v)         \
	{                                                                                                    \
		return weir_or_u##bits##_relaxed_##scope(p, v);                                              \
	}                                                                                                    \
	WEIR_FN u##bits weir_and_u##bits##_fenced_##scope(__global weir_shared_u##bits *p, u##bits v)        \
	{                                                                                                    \
		return weir_and_u##bits##_relaxed_##scope(p, v);                                             \
	}
#define WEIR_OPENCL_ACCESSORS(bits, scope, where)                                                            \
	WEIR_OPENCL_LOAD(bits, relaxed, scope, where)                                                        \
	WEIR_OPENCL_LOAD(bits, acquire, scope, where)                                                        \
	WEIR_OPENCL_STORE(bits, relaxed, scope, where)                                                       \
	WEIR_OPENCL_STORE(bits, release, scope, where)                                                       \
	WEIR_OPENCL_RMW(add, atomic_fetch_add_explicit, bits, relaxed, scope, where)                         \
	WEIR_OPENCL_RMW(add, atomic_fetch_add_explicit, bits, acq_rel, scope, where)                         \
	WEIR_OPENCL_RMW(or, atomic_fetch_or_explicit, bits, relaxed, scope, where)                           \
	WEIR_OPENCL_RMW(or, atomic_fetch_or_explicit, bits, acq_rel, scope, where)                           \
	WEIR_OPENCL_RMW(and, atomic_fetch_and_explicit, bits, relaxed, scope, where)                         \
	WEIR_OPENCL_RMW(and, atomic_fetch_and_explicit, bits, acq_rel, scope, where)                         \
	WEIR_OPENCL_RMW(exchange, atomic_exchange_explicit, bits, acq_rel, scope, where)                     \
	WEIR_OPENCL_CAS(bits, relaxed, scope, where)                                                         \
	WEIR_OPENCL_CAS(bits, acquire, scope, where)                                                         \
	WEIR_OPENCL_CAS(bits, acq_rel, scope, where)                                                         \
	WEIR_OPENCL_FENCED(bits, scope, where)

WEIR_OPENCL_ACCESSORS(32, dev, memory_scope_device)
WEIR_OPENCL_ACCESSORS(32, sys, WEIR_OPENCL_SYSTEM)
WEIR_OPENCL_ACCESSORS(64, dev, memory_scope_device)
WEIR_OPENCL_ACCESSORS(64, sys, WEIR_OPENCL_SYSTEM)

WEIR_FN u64 weir_data_load_u64(weir_addr address)
{
	return atomic_load_explicit((weir_opencl_u64)WEIR_POINTER(address), memory_order_relaxed,
				    memory_scope_device);
}

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

WEIR_FN u32 weir_data_load_u32(weir_addr address)
{
	return atomic_load_explicit((weir_opencl_u32)WEIR_POINTER(address), memory_order_relaxed,
				    memory_scope_device);
}

/* There are no narrower atomics: load the word around it. OpenCL hosts are little-endian here. */
WEIR_FN u16 weir_data_load_u16(weir_addr address)
{
	return (u16)(weir_data_load_u32(address & ~(u64)3) >> ((address & 3) * 8));
}

WEIR_FN u8 weir_data_load_u8(weir_addr address)
{
	return (u8)(weir_data_load_u32(address & ~(u64)3) >> ((address & 3) * 8));
}

WEIR_FN void weir_data_store_u64(weir_addr address, u64 value)
{
	atomic_store_explicit((weir_opencl_u64)WEIR_POINTER(address), value, memory_order_relaxed,
			      memory_scope_device);
}

WEIR_FN void weir_data_store_u32(weir_addr address, u32 value)
{
	atomic_store_explicit((weir_opencl_u32)WEIR_POINTER(address), value, memory_order_relaxed,
			      memory_scope_device);
}

/* There are no narrower atomics; a volatile store of a narrow type is one access of its size. */
WEIR_FN void weir_data_store_u16(weir_addr address, u16 value)
{
	*(volatile __global u16 *)WEIR_POINTER(address) = value;
}

WEIR_FN void weir_data_store_u8(weir_addr address, u8 value)
{
	*(volatile __global u8 *)WEIR_POINTER(address) = value;
}

WEIR_FN void weir_data_store_u128(weir_addr address, struct weir_u128 data)
{
	weir_data_store_u64(address, data.low);
	weir_data_store_u64(address + 8, data.high);
}

WEIR_FN void weir_order_loads(void)
{
	atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acquire, memory_scope_device);
}

WEIR_FN u32 weir_depend(u32 index, u64 seen)
{
	(void)seen;
	weir_order_loads();
	return index;
}

WEIR_FN void weir_fence_to_lanes(void)
{
	atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);
}

WEIR_FN void weir_fence_to_controller(void)
{
	atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, WEIR_OPENCL_SYSTEM);
}

WEIR_FN void weir_fence_from_controller(void)
{
	atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acquire, WEIR_OPENCL_SYSTEM);
}

/* Acquire-release order alone has no such fence: who would need it does without
 * (WEIR_NO_FENCE_WITH_CONTROLLER). */
#if defined(__x86_64__)
WEIR_FN void weir_fence_with_controller(void)
{
	__asm__ volatile("mfence" ::: "memory");
}
#elif defined(__opencl_c_atomic_order_seq_cst)
WEIR_FN void weir_fence_with_controller(void)
{
	atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, WEIR_OPENCL_SYSTEM);
}
#else
#define WEIR_NO_FENCE_WITH_CONTROLLER 1
#endif

WEIR_FN void weir_mmio_store_u32(weir_addr address, u32 value)
{
	atomic_store_explicit((weir_opencl_u32)WEIR_POINTER(address), value, memory_order_release,
			      WEIR_OPENCL_SYSTEM);
}

#endif
