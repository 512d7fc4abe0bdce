/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.c: a failure, for people: what went wrong, who holds what, who waits for
 * what, and what each lane did last.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore.h"
#include "hooks.h"
#include "report.h"
#include "rig.h"

static const char *const kinds[] = {
	[STEP_LOAD] = "load",
	[STEP_STORE] = "store",
	[STEP_ADD] = "add",
	[STEP_AND] = "and",
	[STEP_OR] = "or",
	[STEP_EXCHANGE] = "exchange",
	[STEP_CAS] = "cas",
	[STEP_MMIO] = "mmio store",
	[STEP_ORDER_LOADS] = "order loads",
	[STEP_FENCE_TO] = "fence to controller",
	[STEP_FENCE_FROM] = "fence from controller",
	[STEP_FENCE_WITH] = "fence with controller",
	[STEP_ACTIVE] = "active",
	[STEP_BALLOT] = "ballot",
	[STEP_SHUFFLE] = "shuffle",
	[STEP_MATCH] = "match",
	[STEP_WAVE_SYNC] = "wave sync",
	[STEP_RECONVERGE] = "converge",
	[STEP_RELAX] = "relax",
	[STEP_CLOCK] = "clock",
	[STEP_PLAIN_LOAD] = "plain load",
	[STEP_PLAIN_STORE] = "plain store",
};
static const char *const orders[] = { "relaxed", "acquire", "release", "acq_rel" };
static const char *const states[] = {
	[LANE_READY] = "is before",     [LANE_RELAXED] = "polls, is in",
	[LANE_CONVERGING] = "waits in", [LANE_MEETING] = "waits for others in",
	[LANE_AT_BLOCK] = "is behind",  [LANE_DONE] = "is done, after",
};

/* Where the kernel's code came from, found by addr2line, each address once. */
struct location {
	const void *pc;
	char text[80];
};

static struct location *locations;
static size_t place_count;

static void add_place(const void *pc)
{
	for (size_t i = 0; i < place_count; i++)
		if (locations[i].pc == pc)
			return;
	locations = realloc(locations, (place_count + 1) * sizeof(*locations));
	if (!locations)
		abort();
	locations[place_count] = (struct location){ .pc = pc };
	place_count++;
}

/* Of the inlined functions around an address, the innermost that is not the port. */
static void read_place(FILE *pipe, struct location *location)
{
	char function[512] = "", line[512];

	while (fgets(line, sizeof(line), pipe) && strncmp(line, "0x", 2) != 0) {
		char *file;

		line[strcspn(line, "\n")] = '\0';
		if (!strchr(line, ':')) {
			snprintf(function, sizeof(function), "%s", line);
			continue;
		}
		file = strrchr(line, '/') ? strrchr(line, '/') + 1 : line;
		file[strcspn(file, " ")] = '\0';
		if (!location->text[0] && strncmp(file, "port.h", 6) != 0)
			snprintf(location->text, sizeof(location->text), "%.32s %.40s", file, function);
	}
}

static void find_places(void)
{
	Dl_info info;
	char *command;
	size_t bytes = 4096 + place_count * 24, used;
	FILE *pipe;

	if (!place_count || !dladdr(locations[0].pc, &info) || !(command = malloc(bytes)))
		return;
	used = (size_t)snprintf(command, bytes, "addr2line -a -i -f -e '%s'", info.dli_fname);
	for (size_t i = 0; i < place_count; i++)
		used += (size_t)snprintf(
			command + used, bytes - used, " %#zx",
			(size_t)((const char *)locations[i].pc - (const char *)info.dli_fbase) - 1);
	snprintf(command + used, bytes - used, " 2>/dev/null");
	fflush(stdout);
	pipe = popen(command, "r");
	if (pipe) {
		char line[512];

		if (fgets(line, sizeof(line), pipe))
			for (size_t i = 0; i < place_count; i++)
				read_place(pipe, &locations[i]);
		pclose(pipe);
	}
	free(command);
}

static const char *place_of(const void *pc)
{
	for (size_t i = 0; i < place_count; i++)
		if (locations[i].pc == pc)
			return locations[i].text;
	return "";
}

static bool is_access(u32 kind)
{
	return kind <= STEP_MMIO || kind == STEP_PLAIN_LOAD || kind == STEP_PLAIN_STORE;
}

static void describe(const struct step *step, char *text, size_t bytes)
{
	const char *order = step->kind <= STEP_CAS && step->order < 4 ? orders[step->order] : "";
	size_t used = (size_t)snprintf(text, bytes, "%-12s %-8s", kinds[step->kind], order);

	if (is_access(step->kind))
		used += (size_t)snprintf(text + used, bytes - used, "%-22s", watch_name(step->address));
	else if (step->address)
		used += (size_t)snprintf(text + used, bytes - used, "mask %-17p", step->address);
	if (step->kind >= STEP_STORE && step->kind <= STEP_MMIO)
		used += (size_t)snprintf(text + used, bytes - used, " with %#llx",
					 (unsigned long long)step->value);
	if (step->ended && step->kind != STEP_STORE && step->kind != STEP_MMIO &&
	    step->kind != STEP_PLAIN_STORE &&
	    (is_access(step->kind) || step->kind == STEP_ACTIVE || step->address))
		used += (size_t)snprintf(text + used, bytes - used, " -> %#llx",
					 (unsigned long long)step->result);
	if (!step->ended)
		snprintf(text + used, bytes - used, "   <- stands here");
}

static bool known_doorbell(const void *address, char *text, size_t bytes)
{
	for (u32 i = 0; i < rig.shape.queues; i++) {
		if (rig.queues[i].sq_doorbell == (weir_addr)(uintptr_t)address)
			return snprintf(text, bytes, "queue%u SQ doorbell", i) > 0;
		if (rig.queues[i].cq_doorbell == (weir_addr)(uintptr_t)address)
			return snprintf(text, bytes, "queue%u CQ doorbell", i) > 0;
	}
	return false;
}

static void print_step(const struct lane *lane, const struct step *step)
{
	char text[256], doorbell[32];

	describe(step, text, sizeof(text));
	if (step->kind == STEP_MMIO && known_doorbell(step->address, doorbell, sizeof(doorbell)))
		snprintf(text, sizeof(text), "mmio store %s with %llu", doorbell,
			 (unsigned long long)step->value);
	printf("%8llu  lane %2u  %-76s %s\n", (unsigned long long)step->number, lane->index, text,
	       place_of(step->pc));
}

void report_step(const struct lane *lane, const struct step *step)
{
	print_step(lane, step);
}

static const struct step *last_step(const struct lane *lane)
{
	return &lane->log[(lane->logged - 1) % LOGGED_STEPS];
}

static void print_lane(const struct lane *lane)
{
	char text[256];

	if (!lane->logged) {
		printf("  lane %2u (wave %u) has not begun\n", lane->index, lane->wave->index);
		return;
	}
	describe(last_step(lane), text, sizeof(text));
	printf("  lane %2u (wave %u) %s: %s  %s\n", lane->index, lane->wave->index, states[lane->state], text,
	       place_of(last_step(lane)->pc));
}

static void print_holders(void)
{
	for (u32 i = 0; i < rig.shape.queues; i++) {
		const struct weir_queue *queue = &rig.queues[i];
		const struct weir_slot *slots = (const struct weir_slot *)(uintptr_t)queue->slots;
		int owner = watch_lock_owner(&queue->reap);

		printf("  queue %u: tail %llu, committed %llu, pending %llu, head %llu, completed %llu, "
		       "rogue %llu",
		       i, (unsigned long long)queue->tail.value_, (unsigned long long)queue->committed.value_,
		       (unsigned long long)queue->pending.value_, (unsigned long long)queue->reap.value_ >> 1,
		       (unsigned long long)queue->completed.value_, (unsigned long long)queue->rogue.value_);
		if (owner >= 0)
			printf(", reap lock held by lane %d", owner);
		printf("\n    slots");
		for (u32 s = 0; s < queue->depth; s++)
			printf(" %u%s", slots[s].sequence.value_,
			       slots[s].sequence.value_ & 1 ? " filled" : " free");
		printf("\n");
	}
	for (u32 i = 0; i < rig.shape.sets; i++) {
		const struct weir_set *set = (const struct weir_set *)(uintptr_t)rig.lines->words + i;
		const struct weir_set_policy *policy =
			(const struct weir_set_policy *)(uintptr_t)rig.lines->policies + i;
		int owner = watch_lock_owner(&policy->lock);

		printf("  cache set %u: lines %#llx %#llx %#llx %#llx", i,
		       (unsigned long long)set->word[0].value_, (unsigned long long)set->word[1].value_,
		       (unsigned long long)set->word[2].value_, (unsigned long long)set->word[3].value_);
		if (owner >= 0)
			printf(", lock held by lane %d", owner);
		printf("\n");
	}
}

void report_failure(const char *token, u32 last)
{
	printf("\nFAILED %s\n  %s\n", token, run.failure);
	printf("  %u waves of %u lanes, %u queue pairs of depth %u beginning at turn %llu, %u cache sets, "
	       "step %llu\n",
	       run.wave_count, run.lane_count / run.wave_count, rig.shape.queues, rig.shape.depth,
	       (unsigned long long)rig.shape.iteration, rig.shape.sets, (unsigned long long)run.steps);
	for (u32 i = 0; i < run.lane_count; i++)
		for (u64 s = run.lanes[i].logged > LOGGED_STEPS ? run.lanes[i].logged - LOGGED_STEPS : 0;
		     s < run.lanes[i].logged; s++)
			add_place(run.lanes[i].log[s % LOGGED_STEPS].pc);
	find_places();
	printf("who holds what:\n");
	print_holders();
	printf("who waits where:\n");
	for (u32 i = 0; i < run.lane_count; i++)
		print_lane(&run.lanes[i]);
	for (u32 i = 0; i < run.lane_count && last; i++) {
		const struct lane *lane = &run.lanes[i];
		u64 first = lane->logged > last ? lane->logged - last : 0;

		printf("lane %u, its last %llu of %llu steps:\n", i,
		       (unsigned long long)(lane->logged - first), (unsigned long long)lane->logged);
		for (u64 s = first; s < lane->logged; s++)
			print_step(lane, &lane->log[s % LOGGED_STEPS]);
	}
}
