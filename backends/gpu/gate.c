/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate.h"

#include <stddef.h>
#include <time.h>

enum { POLL_AGAIN_NS = 20000 };

void weir_gates_begin(struct weir_gates *gates, unsigned count)
{
	gates->count = count;
	for (unsigned i = 0; i < count; i++)
		*gates->gates[i].word = WEIR_GATE_FREE;
	pthread_mutex_init(&gates->mutex, NULL);
}

void weir_gates_end(struct weir_gates *gates)
{
	pthread_mutex_destroy(&gates->mutex);
}

struct weir_gate *weir_gate_take(struct weir_gates *gates, void (*call)(void *of), void *of)
{
	struct weir_gate *gate = NULL;

	pthread_mutex_lock(&gates->mutex);
	for (unsigned i = 0; i < gates->count && !gate; i++)
		/* acquire, gate.G1: pairs with the stream's own write of WEIR_GATE_FREE, its last access */
		if (__atomic_load_n(gates->gates[i].word, __ATOMIC_ACQUIRE) == WEIR_GATE_FREE)
			gate = &gates->gates[i];
	if (gate)
		__atomic_store_n(gate->word, WEIR_GATE_SHUT,
				 __ATOMIC_RELAXED); /* the stream is told of it later, by a call */
	pthread_mutex_unlock(&gates->mutex);
	if (gate) {
		gate->call = call;
		gate->of = of;
	}
	return gate;
}

void weir_gate_give_back(struct weir_gate *gate)
{
	__atomic_store_n(gate->word, WEIR_GATE_FREE, __ATOMIC_RELEASE); /* gate.G1 */
}

void weir_gate_reached(void *argument)
{
	struct weir_gate *gate = argument;

	gate->call(gate->of);
}

void weir_gate_open(struct weir_gate *gate)
{
	/* release, gate.G0: pairs with the stream's wait, or weir_gate_wait(): data is in place before */
	__atomic_store_n(gate->word, WEIR_GATE_OPEN, __ATOMIC_RELEASE);
}

void weir_gate_wait(struct weir_gate *gate)
{
	while (__atomic_load_n(gate->word, __ATOMIC_ACQUIRE) == WEIR_GATE_SHUT) /* gate.G0, as in a stream */
		nanosleep(&(struct timespec){ .tv_nsec = POLL_AGAIN_NS }, NULL);
	weir_gate_give_back(gate);
}
