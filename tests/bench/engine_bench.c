/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_bench.c: what an engine costs per command, over the same controller and medium without one.
 *
 * One thread is client and controller in turns, with an engine and without, one after the other. Its
 * processor time counts, so that others on the machine disturb little; the client's share is the same in both
 * and falls out of the difference. Of a 4 KiB block the checksum alone is measured, too: it is part of an
 * engine's cost, and no part of the checks and the map.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

#include "base/crc32c.h"
#include "engine_volume.h"
#include "virtual_client.h"

enum { DEPTH = 128, MOST_RUNS = 31 };

/** struct bench - @blocks of the volume; the medium has twice as many; @rounds: full rings per run */
struct bench {
	u64 blocks;
	u32 rounds;
	u32 runs;
	u64 random;
};

static double processor_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void open_client(struct client *client, const struct bench *bench, struct weir_engine **engine)
{
	*client = (struct client){ .queue_count = 1, .threads = 1, .depth = DEPTH, .block_bytes = BLOCK };
	must(weir_medium_ram_open(2 * bench->blocks * BLOCK, BLOCK, NULL, &client->medium));
	if (engine) {
		must(weir_engine_open(&(struct weir_engine_options){ .behind = client->medium, .threads = 1 },
				      engine));
		prepare(*engine, bench->blocks);
		client->medium = weir_engine_medium(*engine);
		client->volume = (u64)VID << 48 | (u64)CLIENT << 32;
		client->version = (u64)LEASE << NVME_VOLUME_VERSION_EPOCH | 1;
		client->map_epoch = MAP;
	}
	must(client_open(client, (struct weir_virtual_options){ .engine = engine ? *engine : NULL }));
	client->blocks = bench->blocks;
}

/* Full rings of @opcode at blocks chosen by chance. Return: nanoseconds per command. */
static double run(struct client *client, struct weir_engine *engine, struct bench *bench, u32 opcode)
{
	u64 failed = 0, commands = 0;
	double ns = -processor_ns();

	client->lease_epoch = client->volume && opcode == NVME_OPCODE_WRITE ? LEASE : 0;
	for (u32 round = 0; round < bench->rounds; round++)
		for (u32 left = client_fill(client, 0, opcode, &bench->random); left;) {
			u32 reaped;

			weir_virtual_poll(client->controller, 0);
			reaped = client_reap(client, 0, &failed);
			left -= reaped;
			commands += reaped;
			if (engine && !reaped) /* writes that wait for garbage to be collected */
				(void)weir_engine_step(engine);
		}
	ns += processor_ns();
	if (failed) {
		fprintf(stderr, "engine-bench: %llu commands failed\n", (unsigned long long)failed);
		exit(1);
	}
	return ns / (double)commands;
}

static double checksum_ns(u32 times)
{
	static unsigned char block[BLOCK];
	u32 crc = 0;
	double ns = -processor_ns();

	for (u32 i = 0; i < times; i++)
		crc = weir_crc32c(crc, block, BLOCK);
	ns += processor_ns();
	block[0] = (unsigned char)crc;
	return ns / times;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, u32 count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

static void measure(struct bench *bench, struct client *plain, struct client *client,
		    struct weir_engine *engine, u32 opcode)
{
	double without[MOST_RUNS], with[MOST_RUNS], more[MOST_RUNS], checksum[MOST_RUNS];

	for (u32 i = 0; i < bench->runs; i++) {
		without[i] = run(plain, NULL, bench, opcode);
		with[i] = run(client, engine, bench, opcode);
		more[i] = with[i] - without[i];
		checksum[i] = checksum_ns(bench->rounds * DEPTH);
	}
	printf("{\"opcode\": \"%s\", \"plain_ns\": %.0f, \"engine_ns\": %.0f, \"more_ns\": %.0f, "
	       "\"checksum_ns\": %.0f, \"runs\": %u}\n",
	       opcode == NVME_OPCODE_WRITE ? "write" : "read", median(without, bench->runs),
	       median(with, bench->runs), median(more, bench->runs), median(checksum, bench->runs),
	       bench->runs);
}

/* engine-bench [BLOCKS [RUNS]] */
int main(int argc, char **argv)
{
	struct bench bench = { .blocks = 16384, .rounds = 400, .runs = 9 };
	struct nvme_volume_engine_status status;
	struct client plain, client;
	struct weir_engine *engine;

	if (argc > 1)
		bench.blocks = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		bench.runs = (u32)strtoul(argv[2], NULL, 10);
	if (bench.blocks < 1024 || bench.runs < 1 || bench.runs > MOST_RUNS) {
		fprintf(stderr, "engine-bench [BLOCKS (1024 or more) [RUNS (31 at most)]]\n");
		return 2;
	}
	open_client(&plain, &bench, NULL);
	open_client(&client, &bench, &engine);
	/* memory that was never written would be one page of zeros */
	for (u64 written = 0; written < 8 * bench.blocks; written += (u64)bench.rounds * DEPTH) {
		(void)run(&plain, NULL, &bench, NVME_OPCODE_WRITE);
		(void)run(&client, engine, &bench, NVME_OPCODE_WRITE);
	}
	measure(&bench, &plain, &client, engine, NVME_OPCODE_READ);
	measure(&bench, &plain, &client, engine, NVME_OPCODE_WRITE);
	weir_engine_status(engine, &status);
	printf("{\"blocks\": %llu, \"medium_writes_per_write\": %.3f}\n", (unsigned long long)bench.blocks,
	       (double)status.medium_writes / (double)status.user_writes);
	client_close(&client);
	client_close(&plain);
	return 0;
}
