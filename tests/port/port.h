/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h: what the portability suite and its kernels agree on.
 *
 * Owns: the numbers of the operations and of the ways to publish and to observe, the
 * arguments, and which value goes where. The kernels only act and note what they saw;
 * port_test.c judges, on the host.
 */
#ifndef WEIR_TESTS_PORT_H
#define WEIR_TESTS_PORT_H

#include "../rig/kernels.h"

/* Every read-modify-write there is: what, its bits, its order, its scope. */
/* clang-format off */
#define PORT_OPERATIONS_OF(X, bits, scope)                                                          \
	X(add, bits, relaxed, scope) X(add, bits, acq_rel, scope)                                   \
	X(or, bits, relaxed, scope) X(or, bits, fenced, scope) X(or, bits, acq_rel, scope)          \
	X(and, bits, relaxed, scope) X(and, bits, fenced, scope) X(and, bits, acq_rel, scope)       \
	X(exchange, bits, acq_rel, scope)                                                           \
	X(cas, bits, relaxed, scope) X(cas, bits, acquire, scope) X(cas, bits, acq_rel, scope)
#define PORT_OPERATIONS(X)                                                                          \
	PORT_OPERATIONS_OF(X, 32, dev) PORT_OPERATIONS_OF(X, 32, sys)                               \
	PORT_OPERATIONS_OF(X, 64, dev) PORT_OPERATIONS_OF(X, 64, sys)
/* clang-format on */

#define PORT_NUMBER(what, bits, order, scope) PORT_##what##_##bits##_##order##_##scope,
enum {
	PORT_OPERATIONS(PORT_NUMBER) PORT_DATA_ADD_32,
	PORT_DATA_ADD_64,
	PORT_DATA_CAS_32,
	PORT_DATA_CAS_64,
	PORT_OPERATION_COUNT
};

/* What they are, whatever the bits. */
enum { PORT_KIND_add, PORT_KIND_or, PORT_KIND_and, PORT_KIND_exchange, PORT_KIND_cas };

/**
 * struct port_rmw_args - every lane changes shared words @rounds times
 * @operation: PORT_add_32_relaxed_dev...
 * @kind: PORT_KIND_...
 * @bits: of its words; lanes that change bits have one of these each
 * @words: adds, exchanges and compare-and-swaps: one word; bits: per round, a word for each @bits lanes
 * @olds: u64[threads][rounds]: what came back
 */
struct port_rmw_args {
	u32 operation;
	u32 kind;
	u32 bits;
	u32 reserved;
	u64 rounds;
	weir_addr words;
	weir_addr olds;
	weir_addr company; /* weir_shared_u64, 0: waves that have come */
};

/** struct port_narrow_args - each lane stores to bytes of its own, among those of other blocks' lanes */
struct port_narrow_args {
	u32 bytes; /* 1, 2, 4, 8 or 16 */
	u32 blocks;
	u64 rounds;
	weir_addr data; /* PORT_GUARD bytes on either side */
	weir_addr verdict;
	weir_addr company; /* as above */
};

#define PORT_GUARD 64

/** struct port_whole_args - some lanes store words whose halves agree, others look */
struct port_whole_args {
	u32 data; /* PORT_DATA_... */
	u32 blocks;
	u64 rounds;
	weir_addr word;
	weir_addr company; /* as above */
	weir_addr verdict; /* good: looks that saw another value than the one before */
};

/** struct port_groups_args - collectives in branches; @block_threads: lanes of a block; @words: u64[threads]
 */
struct port_groups_args {
	weir_addr verdict;
	u64 block_threads;
	u64 rounds;
	weir_addr words;
};

/** struct port_scalar_args - @results: struct port_scalar[threads] */
struct port_scalar_args {
	weir_addr results;
	u64 relaxes;
};

/** struct port_scalar - what a lane computed and when */
struct port_scalar {
	u64 a, b;
	u64 high;
	u64 forgotten;
	u32 ones;
	u32 lowest;
	u64 began, ended; /* ns */
	u64 back;         /* times the clock went back */
};

/* What a player of a litmus test does first to publish, or last to observe. */
enum {
	PORT_RELAXED, /* relaxed store, relaxed load: nothing is promised */
	PORT_STORE_RELEASE,
	PORT_STORE_RELEASE_SYS,
	PORT_STORE_RELEASE_U32,
	PORT_STORE_RELEASE_U32_SYS,
	PORT_STORE_FENCED,
	PORT_STORE_FENCED_U32,
	PORT_DATA_FENCED, /* the fence to lanes, then a data store */
	PORT_OR_FENCED,
	PORT_AND_FENCED,
	PORT_OR_ACQ_REL,
	PORT_EXCHANGE,
	PORT_ADD,
	PORT_CAS,
	PORT_TO_CONTROLLER,   /* the fence, then a relaxed store of scope sys */
	PORT_MMIO,            /* the fence, then an MMIO store */
	PORT_WITH_CONTROLLER, /* a relaxed store of scope sys, then that fence; as a way to observe: a relaxed
				 load of scope sys */
	PORT_LOAD_ACQUIRE,
	PORT_LOAD_ACQUIRE_SYS,
	PORT_LOAD_ACQUIRE_U32,
	PORT_LOAD_ACQUIRE_U32_SYS,
	PORT_CAS_ACQUIRE, /* relaxed load, then a compare-and-swap that finds the same, or nothing is said */
	PORT_POLL,
	PORT_DATA_ORDER_LOADS, /* the flag by a data load */
	PORT_ORDER_LOADS,
	PORT_AFTER,
	PORT_FROM_CONTROLLER, /* relaxed load of scope sys, then the fence */
};

/* What is published: a word that grows, or each time another element of an array. */
enum {
	PORT_DATA_WORD,
	PORT_DATA_PLAIN,
	PORT_DATA_U8,
	PORT_DATA_U16,
	PORT_DATA_U32,
	PORT_DATA_U64,
	PORT_DATA_U128
};

/* The shapes; by each the number of its players. */
enum {
	PORT_MESSAGE,       /* 2: data, then flag; flag, then data */
	PORT_MESSAGE_WAVES, /* 2: the same, but each lane's data under a flag of the wave */
	PORT_CHAIN,         /* 3: data, then flag; flag, then second flag; second flag, then data */
	PORT_STORES,        /* 2: store buffering: each its own word, then the other's */
	PORT_LOADS,         /* 2: load buffering: each the other's word, then its own */
	PORT_LOOKERS,       /* 4: two store to a word each, two look at both in opposite order (IRIW) */
	PORT_COHERENCE,     /* 2: one stores to a word, the other looks at it twice */
};

enum { PORT_MOST_PLAYERS = 4 };

/* Who plays: lanes of different blocks, or of different waves of one block. */
enum { PORT_BLOCKS, PORT_WAVES };

/**
 * struct port_seat - the words that one player alone stores to
 * @word: the data or the flag of the shapes
 * @narrow: a flag of 32 bits
 * @iteration: iteration it is in; paces the others
 */
struct port_seat {
	weir_shared_u64 word __attribute__((aligned(128)));
	weir_shared_u32 narrow __attribute__((aligned(128)));
	weir_shared_u64 iteration __attribute__((aligned(128)));
} __attribute__((aligned(128)));

WEIR_ASSERT_SIZE(struct port_seat, 384);

/** struct port_note - what a player saw in an iteration; what the halves are depends on the shape */
struct port_note {
	u32 first;
	u32 second;
};

#define PORT_NO_FENCE 0xffffffffu /* in a note: the port does without weir_fence_with_controller() */

/* How the players of a launch found each other. */
enum { PORT_GATHERING = 0, PORT_TOGETHER = 1, PORT_APART = 2 };

/**
 * struct port_litmus_args - a litmus test
 * @shape: PORT_MESSAGE...
 * @players: of each team
 * @publish: PORT_STORE_RELEASE...
 * @observe: PORT_LOAD_ACQUIRE...
 * @data: PORT_DATA_...
 * @placement: PORT_BLOCKS, PORT_WAVES
 * @block_threads: lanes of a block
 * @iterations: each player's
 * @salt: of the delays
 * @timeout_ns: how long players wait for each other before the first iteration
 * @pace_ns: how long behind it they keep pace; then each goes on by itself
 * @gate: struct port_gate
 * @seats: struct port_seat[teams][PORT_MOST_PLAYERS]
 * @elements: per team, room for @iterations + 1 elements of 16 bytes
 * @notes: struct port_note[teams][PORT_MOST_PLAYERS][iterations + 1]
 */
struct port_litmus_args {
	u32 shape;
	u32 players;
	u32 publish;
	u32 observe;
	u32 data;
	u32 placement;
	u64 block_threads;
	u64 iterations;
	u64 salt;
	u64 timeout_ns;
	u64 pace_ns;
	weir_addr gate;
	weir_addr seats;
	weir_addr elements;
	weir_addr notes;
};

/** struct port_gate - where the players of a launch wait for each other; @state: PORT_GATHERING... */
struct port_gate {
	weir_shared_u64 arrived __attribute__((aligned(128)));
	weir_shared_u64 state __attribute__((aligned(128)));
};

/**
 * struct port_lock_args - all lanes count under one lock
 * @lock: u32, then on lines of their own a weir_shared_u64 and a u64, both counted under it
 */
struct port_lock_args {
	weir_addr lock;
	u64 rounds;
	u64 timeout_ns;
	weir_addr verdict;
};

/* Doorbells count letters from here, so that they soon need more than 16 bits. */
#define PORT_FIRST_RING 65000u

/**
 * struct port_message - between one lane and a host thread, in memory that both see
 * @guard_before: beside the doorbell, and never stored to; @guard_after too
 */
struct port_message {
	weir_shared_u64 data __attribute__((aligned(128)));
	u32 guard_before __attribute__((aligned(128)));
	u32 doorbell;
	u32 guard_after[2];
	weir_shared_u64 answer_data __attribute__((aligned(128)));
	weir_shared_u64 answer __attribute__((aligned(128)));
	weir_shared_u64 flag __attribute__((aligned(128)));
};

/**
 * struct port_message_args - the lane's side
 * @publish: PORT_STORE_RELEASE_SYS, PORT_TO_CONTROLLER, PORT_MMIO
 * @observe: PORT_LOAD_ACQUIRE_SYS, PORT_FROM_CONTROLLER
 * @window: letters that may be on their way without an answer
 */
struct port_message_args {
	u32 publish;
	u32 observe;
	u64 letters;
	u64 window;
	u64 timeout_ns;
	weir_addr message;
	weir_addr verdict; /* sum: letters sent */
};

/** port_value() - element @index of a team's array, never 0 in any width; the first one stays 0 */
WEIR_FN u64 port_value(u64 index)
{
	return index ? test_mix(index) | (u64)0x0101010101010101u : 0;
}

/** port_fold() - 64 bits as 32, so that any change shows */
WEIR_FN u32 port_fold(u64 value)
{
	return (u32)(value ^ (value >> 32) * 0x9e3779b1u);
}

/** port_element() - what element @index of a kind is, as a reader folds it */
WEIR_FN u32 port_element(u32 data, u64 index)
{
	u64 value = port_value(index);

	if (data == PORT_DATA_U8)
		return (u32)(value & 0xff);
	if (data == PORT_DATA_U16)
		return (u32)(value & 0xffff);
	if (data == PORT_DATA_U32 || data == PORT_DATA_PLAIN)
		return (u32)value;
	return data == PORT_DATA_U64 ? port_fold(value) : port_fold(value) * 3 + port_fold(~value);
}

#endif
