/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests/dialect/hip_isa looks at in the code made of it: each primitive between plain accesses that it
 * has to keep in order, and locks in waiting loops.
 *
 * The plain accesses are known by their offsets: a load at 3 and a store at 16 come before, a load at 24
 * comes after, the result goes to 32. The primitive's own has none.
 */
#include <weir/lock.h>

struct isa_args {
	weir_addr data;
	weir_addr word;
	u64 value;
};

#define ISA(name, bits, expression)                                                                          \
	WEIR_KERNEL(isa_##name, struct isa_args)                                                             \
	{                                                                                                    \
		weir_addr data = args->data, address = args->word;                                           \
		u##bits value = (u##bits)args->value;                                                        \
		weir_shared_u##bits *word = weir_at(address, weir_shared_u##bits, 0);                        \
		u64 old = 0, before = *weir_at(data, u8, 3);                                                 \
                                                                                                             \
		*weir_at(data, u16, 8) = 1;                                                                  \
		(void)word;                                                                                  \
		(void)value;                                                                                 \
		expression;                                                                                  \
		*weir_at(data, u64, 4) = old + before + *weir_at(data, u8, 24);                              \
	}
#define ISA_LOAD(bits, order, scope)                                                                         \
	ISA(load_u##bits##_##order##_##scope, bits, old = weir_load_u##bits##_##order##_##scope(word))
#define ISA_STORE(bits, order, scope)                                                                        \
	ISA(store_u##bits##_##order##_##scope, bits, weir_store_u##bits##_##order##_##scope(word, value))
#define ISA_RMW(name, bits, order, scope)                                                                    \
	ISA(name##_u##bits##_##order##_##scope, bits,                                                        \
	    old = weir_##name##_u##bits##_##order##_##scope(word, value))
#define ISA_CAS(bits, order, scope)                                                                          \
	ISA(cas_u##bits##_##order##_##scope, bits, old = weir_cas_u##bits##_##order##_##scope(word, 1, value))

#define ISA_ACCESSES(bits, scope)                                                                            \
	ISA_LOAD(bits, relaxed, scope)                                                                       \
	ISA_LOAD(bits, acquire, scope)                                                                       \
	ISA_LOAD(bits, fenced, scope)                                                                        \
	ISA_STORE(bits, relaxed, scope)                                                                      \
	ISA_STORE(bits, release, scope)                                                                      \
	ISA_STORE(bits, fenced, scope)                                                                       \
	ISA_RMW(add, bits, relaxed, scope)                                                                   \
	ISA_RMW(add, bits, acq_rel, scope)                                                                   \
	ISA_RMW(or, bits, relaxed, scope)                                                                    \
	ISA_RMW(or, bits, fenced, scope)                                                                     \
	ISA_RMW(or, bits, acq_rel, scope)                                                                    \
	ISA_RMW(and, bits, relaxed, scope)                                                                   \
	ISA_RMW(and, bits, fenced, scope)                                                                    \
	ISA_RMW(and, bits, acq_rel, scope)                                                                   \
	ISA_RMW(exchange, bits, acq_rel, scope)                                                              \
	ISA_CAS(bits, relaxed, scope)                                                                        \
	ISA_CAS(bits, acquire, scope)                                                                        \
	ISA_CAS(bits, acq_rel, scope)

ISA_ACCESSES(32, dev)
ISA_ACCESSES(32, sys)
ISA_ACCESSES(64, dev)
ISA_ACCESSES(64, sys)

#define ISA_DATA(bits)                                                                                       \
	ISA(data_load_u##bits, 64, old = weir_data_load_u##bits(address))                                    \
	ISA(data_store_u##bits, 64, weir_data_store_u##bits(address, (u##bits)value))

ISA_DATA(8)
ISA_DATA(16)
ISA_DATA(32)
ISA_DATA(64)
ISA(data_add_u32, 32, old = weir_data_add_u32(address, value))
ISA(data_add_u64, 64, old = weir_data_add_u64(address, value))
ISA(data_cas_u32, 32, old = weir_data_cas_u32(address, 1, value))
ISA(data_cas_u64, 64, old = weir_data_cas_u64(address, 1, value))
ISA(poll_u64_dev, 64, old = weir_poll_u64_dev(word, 1))
ISA(order_loads, 64, weir_order_loads())
ISA(after, 64, old = weir_depend(0, before))
ISA(fence_from_controller, 64, weir_fence_from_controller())
ISA(fence_with_controller, 64, weir_fence_with_controller())
ISA(fence_of_loads, 64, old = weir_load_u64_fenced_dev(word); weir_order_loads())
ISA(fence_to_lanes, 64, weir_fence_to_lanes(); weir_store_u64_fenced_dev(word, value))
ISA(fence_to_controller, 32, weir_fence_to_controller(); weir_mmio_store_u32(address, value))
ISA(mmio_store_u32, 32, weir_mmio_store_u32(address, value))

struct isa_lock_args {
	weir_addr lock;
	weir_addr count;
};

/* As docs/locks.md has it: all lanes of the wave leave together. */
WEIR_KERNEL(isa_lock_together, struct isa_lock_args)
{
	WEIR_GLOBAL struct weir_lock *lock = weir_at(args->lock, struct weir_lock, 0);
	u64 lanes = weir_active();
	u32 done = 0;

	while (weir_ballot(lanes, !done)) {
		if (!done && weir_lock_try(lock, 0, 1) == WEIR_OK) {
			*weir_at(args->count, u32, 0) += 1;
			weir_lock_free(lock, 0);
			done = 1;
		}
		weir_reconverge();
	}
}

/* As nobody may write it: the holder waits below the loop for lanes of its wave that wait for it. */
WEIR_KERNEL(isa_lock_each, struct isa_lock_args)
{
	WEIR_GLOBAL struct weir_lock *lock = weir_at(args->lock, struct weir_lock, 0);
	u32 done = 0;

	while (!done) {
		if (weir_lock_try(lock, 0, 1) == WEIR_OK) {
			*weir_at(args->count, u32, 0) += 1;
			weir_lock_free(lock, 0);
			done = 1;
		}
	}
}
