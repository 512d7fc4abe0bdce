/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_power: in the guest, write as power.h says, and say what is durable.
 *
 *   vm_power flushed URI SEED GENERATIONS     flush after each generation, then claim it
 *   vm_power lying URI SEED GENERATIONS       claim it without a flush: a control, which has to be found out
 *
 * Each claim is a line "durable GENERATION". At the end it waits to be killed: closing would flush.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "power.h"
#include "rig.h"

static void write_one(struct weir_storage *storage, u64 seed, u64 generation, u64 index)
{
	static u64 words[POWER_MOST * POWER_WORDS];
	u64 first = power_first(seed, generation, index), count = power_count(seed, generation, index);

	for (u64 i = 0; i < count * POWER_WORDS; i++)
		words[i] = power_word(seed, generation, first * POWER_WORDS + i);
	rig_must(weir_storage_write(storage, first * 512, words, count * 512));
}

int main(int argc, char **argv)
{
	struct weir_context *context;
	struct weir_storage *storage;
	u64 seed, generations;

	if (argc != 5 || (strcmp(argv[1], "flushed") && strcmp(argv[1], "lying")))
		return fprintf(stderr, "usage: vm_power flushed|lying URI SEED GENERATIONS\n"), 2;
	seed = strtoull(argv[3], NULL, 0);
	generations = strtoull(argv[4], NULL, 0);
	rig_must(weir_context_open("cpu", NULL, &context));
	rig_must(weir_storage_open(context, argv[2], NULL, &storage));
	for (u64 generation = 1; generation <= generations; generation++) {
		for (u64 i = 0; i < POWER_WRITES; i++)
			write_one(storage, seed, generation, i);
		if (argv[1][0] == 'f')
			rig_must(weir_storage_flush(storage));
		printf("durable %llu\n", (unsigned long long)generation);
		fflush(stdout);
	}
	printf("all written\n");
	fflush(stdout);
	for (;;)
		pause();
}
