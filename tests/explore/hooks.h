/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hooks.h: what a kernel under exploration calls. The port (port.h) is made of
 * these; scenarios' kernels add explore_progress() and explore_expect().
 */
#ifndef EXPLORE_HOOKS_H
#define EXPLORE_HOOKS_H

#include <weir/port/words.h>

/* Collectives may not be duplicated or moved into other control flow. */
#if defined(__clang__)
#define EXPLORE_CONVERGENT __attribute__((convergent))
#else
#define EXPLORE_CONVERGENT
#endif

enum explore_order {
	EXPLORE_RELAXED = 0,
	EXPLORE_ACQUIRE = 1,
	EXPLORE_RELEASE = 2,
	EXPLORE_ACQ_REL = 3,
};

enum explore_change { EXPLORE_ADD, EXPLORE_AND, EXPLORE_OR, EXPLORE_EXCHANGE, EXPLORE_CAS };

/** struct explore_identity - where the running lane stands */
struct explore_identity {
	u32 lane;
	u32 lanes;
	u64 thread;
	u64 threads;
	u64 wave;
};

extern const struct explore_identity *explore_self;

u64 explore_load(const void *address, u32 bytes, u32 order);
void explore_store(void *address, u32 bytes, u64 value, u32 order);
u64 explore_change(void *address, u32 bytes, u32 change, u64 value, u64 expected, u32 order);
void explore_mmio_store(void *address, u32 value);
void explore_order_loads(void);
void explore_fence_to_controller(void);
void explore_fence_from_controller(void);
void explore_fence_with_controller(void);
u64 explore_active(void) EXPLORE_CONVERGENT;
u64 explore_ballot(u64 mask, u32 predicate) EXPLORE_CONVERGENT;
u64 explore_shuffle(u64 mask, u64 value, u32 from) EXPLORE_CONVERGENT;
u64 explore_match(u64 mask, u64 value) EXPLORE_CONVERGENT;
void explore_wave_sync(u64 mask) EXPLORE_CONVERGENT;
void explore_reconverge(void) EXPLORE_CONVERGENT;
void explore_relax(u32 ns);
u64 explore_clock_ns(void);
/** explore_progress() - a kernel got something done: a spin that never gets here is a hang */
void explore_progress(void);
/** explore_submits() - a lane is about to submit: once it is known to be the oldest, commands of others are
 * counted up to its own */
void explore_submits(void);
/** explore_expect() - fail this schedule unless @got == @wanted; @what says what was compared */
void explore_expect(const char *what, u64 got, u64 wanted);

#endif
