/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BLOCK_BYTES = 64 << 20, LEAST_BLOCK_BYTES = 512 };

enum option_key {
	OPT_THREADS = 256,
	OPT_RUNTIME,
	OPT_RUNS,
	OPT_BS,
	OPT_SEED,
	OPT_DIRECT,
	OPT_NO_COPY,
	OPT_JSON,
	OPT_HELP
};

static const struct option long_options[] = {
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "runtime", required_argument, NULL, OPT_RUNTIME },
	{ "runs", required_argument, NULL, OPT_RUNS },
	{ "bs", required_argument, NULL, OPT_BS },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "direct", no_argument, NULL, OPT_DIRECT },
	{ "no-copy", no_argument, NULL, OPT_NO_COPY },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static void usage(const struct peer *peer)
{
	printf("usage: %s FILE [options]\n"
	       "\n"
	       "Random reads of a file into GPU memory by host threads, one in flight per thread.\n"
	       "\n"
	       "  --threads=N        host threads (default 16)\n"
	       "  --bs=BYTES         length of a read (default 4096)\n"
	       "  --runtime=SECONDS  of one run (default 3)\n"
	       "  --runs=N           runs; the median counts (default 5)\n"
	       "  --direct           open the file with O_DIRECT\n"
	       "  --no-copy          peer-pread-copy: read only, copy nothing: the limit\n"
	       "  --seed=N           of the random places (default 1)\n"
	       "  --json             print one JSON object\n",
	       peer->name);
}

static bool take_number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *value >= least && *value <= most;
}

static bool take_u32(const char *text, uint32_t most, uint32_t *value)
{
	uint64_t wide;

	if (!take_number(text, 1, most, &wide))
		return false;
	*value = (uint32_t)wide;
	return true;
}

static bool take_option(struct peer_load *load, int key, const char *value)
{
	switch (key) {
	case OPT_THREADS: return take_u32(value, PEER_MOST_THREADS, &load->threads);
	case OPT_RUNTIME: return take_u32(value, 3600, &load->seconds);
	case OPT_RUNS: return take_u32(value, PEER_MOST_RUNS, &load->runs);
	case OPT_BS:
		return take_number(value, LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES, &load->block_bytes) &&
		       load->block_bytes % LEAST_BLOCK_BYTES == 0;
	case OPT_SEED: return take_number(value, 0, UINT64_MAX, &load->seed);
	case OPT_DIRECT: return load->direct = true;
	case OPT_NO_COPY: return load->no_copy = true;
	case OPT_JSON: return load->json = true;
	default: return false;
	}
}

int peer_parse(const struct peer *peer, int argc, char **argv, struct peer_load *load)
{
	int key, index = 0;

	*load = (struct peer_load){ .threads = 16, .seconds = 3, .runs = 5, .block_bytes = 4096, .seed = 1 };
	while ((key = getopt_long(argc, argv, "", long_options, &index)) != -1) {
		if (key == OPT_HELP) {
			usage(peer);
			return 0;
		}
		if (key == '?')
			return 2;
		if (!take_option(load, key, optarg)) {
			fprintf(stderr, "%s: --%s does not take \"%s\"; see %s --help\n", peer->name,
				long_options[index].name, optarg, peer->name);
			return 2;
		}
	}
	if (optind + 1 != argc) {
		fprintf(stderr, "%s: give one file; see %s --help\n", peer->name, peer->name);
		return 2;
	}
	load->path = argv[optind];
	return -1;
}

int peer_open(const struct peer *peer, struct peer_load *load)
{
	int file = open(load->path, O_RDONLY | O_CLOEXEC | (load->direct ? O_DIRECT : 0));
	off_t bytes = file < 0 ? -1 : lseek(file, 0, SEEK_END); /* of a block device, too */

	if (bytes < 0) {
		fprintf(stderr, "%s: cannot open %s%s: %s\n", peer->name, load->path,
			load->direct ? " with O_DIRECT" : "", strerror(errno));
		if (file >= 0)
			close(file);
		return -1;
	}
	load->blocks = (uint64_t)bytes / load->block_bytes;
	if (load->blocks)
		return file;
	fprintf(stderr, "%s: %s has %lld bytes, less than one block of %llu\n", peer->name, load->path,
		(long long)bytes, (unsigned long long)load->block_bytes);
	close(file);
	return -1;
}

int peer_fail(struct peer_reader *reader, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reader->error, sizeof(reader->error), format, arguments);
	va_end(arguments);
	return -1;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Marsaglia's xorshift: enough to spread places. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Set up, wait for the others, read until told to stop. */
static pthread_barrier_t ready;

static void *read_on(void *argument)
{
	struct peer_reader *reader = argument;
	int error = reader->peer->begin(reader);

	pthread_barrier_wait(&ready);
	while (!error && !*reader->stop) {
		error = reader->peer->read(reader, next_random(&reader->state) % reader->load->blocks *
							   reader->load->block_bytes);
		reader->reads += !error;
	}
	reader->peer->end(reader);
	return NULL;
}

/* One run. Return: operations per second, or a negative number with a sentence printed. */
static double run(const struct peer *peer, const struct peer_load *load, int file, uint32_t number)
{
	struct peer_reader *readers = calloc(load->threads, sizeof(*readers));
	volatile bool stop = false;
	uint32_t started = 0;
	uint64_t reads = 0;
	const char *error = readers ? NULL : "no memory";
	double begin, elapsed;

	pthread_barrier_init(&ready, NULL, load->threads + 1);
	for (; !error && started < load->threads; started++) {
		struct peer_reader *reader = &readers[started];

		*reader = (struct peer_reader){ .load = load,
						.file = file,
						.stop = &stop,
						.peer = peer,
						.state = (load->seed * PEER_MOST_RUNS + number + 1) *
								 0x9e3779b97f4a7c15u +
							 started + 1 };
		if (pthread_create(&reader->thread, NULL, read_on, reader) != 0) {
			fprintf(stderr, "%s: cannot start thread %u\n", peer->name, started);
			exit(1); /* those that wait at the barrier go with the process */
		}
	}
	pthread_barrier_wait(&ready);
	begin = now();
	nanosleep(&(struct timespec){ .tv_sec = load->seconds }, NULL);
	stop = true;
	elapsed = now() - begin; /* each thread adds at most one read behind it */
	for (uint32_t i = 0; i < started; i++) {
		pthread_join(readers[i].thread, NULL);
		reads += readers[i].reads;
		if (!error && *readers[i].error)
			error = readers[i].error;
	}
	pthread_barrier_destroy(&ready);
	if (error)
		fprintf(stderr, "%s: %s: %s\n", peer->name, load->path, error);
	free(readers);
	return error ? -1 : (double)reads / elapsed;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* @text as a JSON string. */
static void print_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text < ' ')
			printf("\\u%04x", *text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void print(const struct peer *peer, const struct peer_load *load, const double *rates, double median,
		  const char *how)
{
	double least = rates[0], most = rates[load->runs - 1];

	if (load->json) {
		printf("{\"peer\": \"%s\", \"file\": ", peer->name);
		print_string(load->path);
		printf(", \"how\": ");
		print_string(how);
		printf(", \"threads\": %u, \"bs\": %llu, \"direct\": %s, \"runtime_s\": %u, \"runs\": %u, "
		       "\"iops\": %.1f, "
		       "\"iops_min\": %.1f, \"iops_max\": %.1f, \"bytes_per_s\": %.0f}\n",
		       load->threads, (unsigned long long)load->block_bytes, load->direct ? "true" : "false",
		       load->seconds, load->runs, median, least, most, median * (double)load->block_bytes);
		return;
	}
	printf("%s: %s\n", peer->name, how);
	printf("%u threads, %llu bytes each time, %u runs of %u s: %.1f to %.1f thousand/s, %.0f MB/s\n",
	       load->threads, (unsigned long long)load->block_bytes, load->runs, load->seconds, least / 1e3,
	       most / 1e3, median * (double)load->block_bytes / 1e6);
	printf("operations/s %.0f\n", median);
}

int peer_measure(const struct peer *peer, struct peer_load *load, int file, const char *how)
{
	double rates[PEER_MOST_RUNS], median;

	for (uint32_t i = 0; i < load->runs; i++) {
		rates[i] = run(peer, load, file, i);
		if (rates[i] < 0)
			return 1;
	}
	qsort(rates, load->runs, sizeof(*rates), compare);
	median = (rates[load->runs / 2] + rates[(load->runs - 1) / 2]) / 2;
	print(peer, load, rates, median, how);
	return 0;
}
