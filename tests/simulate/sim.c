/* SPDX-License-Identifier: BSD-3-Clause */
/* sim.c: the next event, one after the other. */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TASKS = 192, STACK_BYTES = 256 << 10, WAKE_JITTER_NS = 20000, NAME_COLUMNS = 10 };

/** struct event - @sequence: orders those of one time */
struct event {
	u64 time;
	u64 sequence;
	void (*call)(void *argument, u64 word);
	void *argument;
	u64 word;
};

struct sim sim;
static struct sim_task tasks[TASKS];
static unsigned char *stacks;
static struct weir_fiber main_fiber;
static struct event *heap;
static size_t heap_count, heap_room;
static u64 sequence, stream;

u64 sim_draw(void)
{
	u64 x = stream += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

u64 sim_below(u64 count)
{
	return count ? sim_draw() % count : 0;
}

u64 sim_between(u64 least, u64 most)
{
	return least + sim_below(most - least + 1);
}

bool sim_chance(u64 part, u64 whole)
{
	return sim_below(whole) < part;
}

/* ---- events ---- */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->sequence < b->sequence;
}

static void heap_push(struct event event)
{
	size_t at = heap_count++;

	if (heap_count > heap_room) {
		heap_room = heap_room ? 2 * heap_room : 1024;
		heap = realloc(heap, heap_room * sizeof(*heap));
		if (!heap)
			abort();
	}
	for (; at && earlier(&event, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = event;
}

static struct event heap_pop(void)
{
	struct event first = heap[0], last = heap[--heap_count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < heap_count) {
		if (child + 1 < heap_count && earlier(&heap[child + 1], &heap[child]))
			child++;
		if (!earlier(&heap[child], &last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return first;
}

void sim_at(u64 ns, void (*call)(void *argument, u64 word), void *argument, u64 word)
{
	heap_push((struct event){ sim.now + ns, sequence++, call, argument, word });
}

bool sim_step(void)
{
	struct event event;

	if (!heap_count)
		return false;
	event = heap_pop();
	sim.now = event.time;
	sim.steps++;
	event.call(event.argument, event.word);
	return true;
}

/* ---- tasks ---- */

static void resume(void *argument, u64 generation)
{
	struct sim_task *task = argument;

	if (!task->used || task->ended || task->generation != generation)
		return;
	if (task->node->stalled_until > sim.now) {
		sim_at(task->node->stalled_until - sim.now, resume, task, generation);
		return;
	}
	task->generation++;
	task->woken = false;
	sim.locks = 0;
	sim.current = task;
	weir_fiber_switch(&main_fiber, &task->fiber);
	sim.current = NULL;
}

static void enter(void *argument)
{
	struct sim_task *task = argument;

	task->run(task->argument);
	task->ended = true;
	sim_wake_condition(task);
	for (;;)
		weir_fiber_switch(&task->fiber, &main_fiber);
}

struct sim_task *sim_spawn(struct sim_node *node, void (*run)(void *argument), void *argument)
{
	unsigned i = 0;

	while (i < TASKS && tasks[i].used && (!tasks[i].ended || tasks[i].joinable))
		i++;
	if (i == TASKS)
		abort();
	if (tasks[i].used)
		weir_fiber_release(&tasks[i].fiber);
	tasks[i] = (struct sim_task){
		.fiber = { .stack = stacks + (size_t)i * STACK_BYTES, .stack_bytes = STACK_BYTES },
		.node = node,
		.run = run,
		.argument = argument,
		.generation = tasks[i].generation + 1,
		.used = true,
		.woken = true,
	};
	weir_fiber_prepare(&tasks[i].fiber, enter, &tasks[i]);
	sim_at(sim_below(WAKE_JITTER_NS), resume, &tasks[i], tasks[i].generation);
	return &tasks[i];
}

void sim_sleep(u64 ns)
{
	struct sim_task *task = sim.current;

	sim_at(ns, resume, task, task->generation);
	weir_fiber_switch(&task->fiber, &main_fiber);
}

void sim_wake(struct sim_task *task)
{
	if (!task || task == sim.current || task->woken || task->ended)
		return;
	task->woken = true;
	task->generation++;
	sim_at(sim_below(WAKE_JITTER_NS), resume, task, task->generation);
}

void sim_wake_condition(const void *condition)
{
	for (unsigned i = 0; i < TASKS; i++)
		if (tasks[i].used && !tasks[i].ended && tasks[i].condition == condition)
			sim_wake(&tasks[i]);
}

void sim_kill(struct sim_node *node)
{
	node->alive = false;
	node->incarnation++;
	node->stalled_until = 0;
	for (unsigned i = 0; i < TASKS; i++)
		if (tasks[i].used && tasks[i].node == node) {
			tasks[i].ended = true;
			tasks[i].joinable = false;
		}
}

/* ---- the whole ---- */

void sim_begin(u64 seed, bool trace)
{
	if (!stacks) {
		stacks = mmap(NULL, (size_t)TASKS * STACK_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (stacks == MAP_FAILED)
			abort();
		weir_fiber_adopt(&main_fiber);
	}
	sim = (struct sim){ .seed = seed, .now = 1000 * SIM_S, .hash = 1, .active = true, .trace = trace };
	stream = seed * 0xd1342543de82ef95u;
	sequence = 0;
}

void sim_end(void (*drop)(void (*call)(void *argument, u64 word), void *argument))
{
	for (size_t i = 0; i < heap_count; i++)
		drop(heap[i].call, heap[i].argument);
	heap_count = 0;
	for (unsigned i = 0; i < TASKS; i++) {
		if (tasks[i].used)
			weir_fiber_release(&tasks[i].fiber);
		tasks[i].used = false;
		tasks[i].generation = 0;
	}
	sim.active = false;
}

static const char origin[] = "what formats are as far from in each run";

static void mix(u64 word)
{
	sim.hash = (sim.hash ^ word) * 0x9fb21c651e98df25u;
	sim.hash ^= sim.hash >> 29;
}

void sim_trace(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	mix(sim.now);
	mix((uintptr_t)format - (uintptr_t)origin);
	for (const char *at = format; (at = strchr(at, '%')) != NULL; at++)
		mix(va_arg(arguments, unsigned long long));
	va_end(arguments);
	if (!sim.trace)
		return;
	printf("%9.6f %-*s ", (double)(sim.now - 1000 * SIM_S) * 1e-9, NAME_COLUMNS,
	       sim.current ? sim.current->node->name : "");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

void sim_fail(const char *format, ...)
{
	va_list arguments;

	if (sim.failure[0])
		return;
	va_start(arguments, format);
	vsnprintf(sim.failure, sizeof(sim.failure), format, arguments);
	va_end(arguments);
	if (sim.trace)
		printf("%9.6f FAILED: %s\n", (double)(sim.now - 1000 * SIM_S) * 1e-9, sim.failure);
}
