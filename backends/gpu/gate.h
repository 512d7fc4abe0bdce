/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gate.h: places in a device's streams where these wait for the host.
 *
 * Owns: which words are free, and what the host does when a stream has come to one. A backend gives
 * the words, which its streams can look at and write, and puts three things into a stream: a call of
 * weir_gate_reached(), a wait until the word is WEIR_GATE_OPEN, and a write of WEIR_GATE_FREE. So no
 * thread of its run time waits.
 */
#ifndef WEIR_GATE_H
#define WEIR_GATE_H

#include <pthread.h>
#include <stdint.h>

enum { WEIR_GATE_SHUT, WEIR_GATE_OPEN, WEIR_GATE_FREE, WEIR_GATES_MOST = 1024 };

/** struct weir_gate - one; @word is what a stream looks at, @call(@of) what the host does */
struct weir_gate {
	uint32_t *word;
	void (*call)(void *of);
	void *of;
};

/** struct weir_gates - those of a device: @count of them, whose words the backend set */
struct weir_gates {
	pthread_mutex_t mutex;
	unsigned count;
	struct weir_gate gates[WEIR_GATES_MOST];
};

/** weir_gates_begin() - all free, with words that are set */
void weir_gates_begin(struct weir_gates *gates, unsigned count);

/** weir_gates_end() - no stream waits any more; the words stay the backend's */
void weir_gates_end(struct weir_gates *gates);

/** weir_gate_take() - one that no stream looks at, shut, for @call(@of); NULL: all are in use */
struct weir_gate *weir_gate_take(struct weir_gates *gates, void (*call)(void *of), void *of);

/** weir_gate_give_back() - no stream was told of it */
void weir_gate_give_back(struct weir_gate *gate);

/** weir_gate_reached() - a stream has come to gate @argument: on a thread of the run time's */
void weir_gate_reached(void *argument);

/** weir_gate_open() - let the stream go on: release, what the host did is there before */
void weir_gate_open(struct weir_gate *gate);

/**
 * weir_gate_wait() - what a stream would do that has the call, but cannot wait; so what is queued next
 * comes behind
 */
void weir_gate_wait(struct weir_gate *gate);

#endif
