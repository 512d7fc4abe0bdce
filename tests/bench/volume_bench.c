/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_bench.c: loads by the host threads of clients, of the designs that lanes are compared with
 * (ci/volume-figures).
 *
 *   volume-bench direct --daemon SOCKET [options] VOLUME...
 *   volume-bench basic [options] nvmf:URI...
 *
 * Owns: the command line, the threads, patterns, and one JSON object of results, whose names are weir-perf's.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/core/mix.h>

#include "volume_bench.h"

enum { WORDS = BENCH_BLOCK / sizeof(u64) };

static const double WARM_SECONDS = 0.2; /* as weir-perf */
static pthread_barrier_t barrier;

static u64 now_ns(void)
{
	return weir_session_now_ns();
}

static double processor_seconds(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

/* ---- patterns: what a block holds after it was filled, and after the load has written it ---- */

static u64 word_of(const struct bench_client *client, u64 place, bool loaded)
{
	return weir_mix_u64(client->number << 48 ^ place << 8 ^ loaded);
}

static void make(struct bench_request *request, bool loaded)
{
	const struct bench_client *client = request->client;
	u64 first = word_of(client, request->place, loaded), *words = (u64 *)(void *)request->device;

	for (u64 i = 0; i < client->load->bs / sizeof(u64); i++)
		words[i] = first + i;
}

static void compare(struct bench_request *request)
{
	struct bench_client *client = request->client;
	const u64 *words = (const u64 *)(const void *)request->device;

	for (u64 at = 0; at < client->load->bs / sizeof(u64); at += WORDS) {
		u64 first = word_of(client, request->place, client->written[request->place]) + at;
		bool good = true;

		for (u64 i = 0; i < WORDS; i++)
			good &= words[at + i] == first + i;
		client->checked++;
		client->bad += !good;
	}
}

/* ---- one client ---- */

void bench_done(struct bench_request *request)
{
	struct bench_client *client = request->client;
	bool counts = client->phase == BENCH_LOAD && client->load->counts;

	request->busy = false;
	client->busy--;
	client->errors += request->failed;
	client->done += counts;
	if (request->failed)
		return;
	if (client->load->timed && counts)
		client->latency_ns[client->timed++ % BENCH_LATENCIES] = (u32)(now_ns() - request->begin_ns);
	if (client->load->verify && !request->writes)
		compare(request);
}

static bool is_over(const struct bench_client *client)
{
	return client->phase == BENCH_LOAD ? client->load->stop : client->next == client->places;
}

static u64 next_place(struct bench_client *client)
{
	if (client->phase == BENCH_LOAD && client->load->random)
		return weir_mix_next(&client->random) % client->places;
	return client->next++ % client->places;
}

static void start(struct bench_client *client, struct bench_request *request)
{
	const struct bench_load *load = client->load;

	request->place = next_place(client);
	request->writes = client->phase == BENCH_FILL || (client->phase == BENCH_LOAD && load->writes);
	if (request->writes && load->verify) {
		make(request, client->phase == BENCH_LOAD);
		client->written[request->place] = client->phase == BENCH_LOAD;
	}
	request->begin_ns = load->timed ? now_ns() : 0;
	request->busy = true;
	client->busy++;
	if (bench_send(client, request))
		return;
	fprintf(stderr, "volume-bench: %s: an engine has no channel, or it is full\n", client->name);
	exit(1);
}

static void go_through(struct bench_client *client, enum bench_phase phase)
{
	client->phase = phase;
	client->next = 0;
	while (!is_over(client) || client->busy) {
		for (u32 i = 0; i < client->load->depth && !is_over(client); i++)
			if (!client->requests[i].busy)
				start(client, &client->requests[i]);
		bench_poll(client);
	}
}

static void *run(void *argument)
{
	struct bench_client *client = argument;
	const struct bench_load *load = client->load;

	if (load->fill || load->verify)
		go_through(client, BENCH_FILL);
	pthread_barrier_wait(&barrier); /* all have filled */
	pthread_barrier_wait(&barrier); /* the load begins */
	if (load->seconds > 0)
		go_through(client, BENCH_LOAD);
	pthread_barrier_wait(&barrier);
	if (load->verify)
		go_through(client, BENCH_CHECK);
	return NULL;
}

/* ---- the program ---- */

static int usage(void)
{
	fprintf(stderr, "usage: volume-bench direct --daemon SOCKET [options] VOLUME...\n"
			"       volume-bench basic [options] nvmf:URI...\n"
			"  --rw read|randread|write|randwrite  --bs BYTES  --iodepth N (of each client)\n"
			"  --size BYTES (of each volume)  --runtime SECONDS  --fill  --verify  --no-latency\n"
			"  --no-copy (basic: channels have the device's memory)\n");
	return 2;
}

static bool take_rw(struct bench_load *load, const char *text)
{
	load->random = strncmp(text, "rand", 4) == 0;
	text += load->random ? 4 : 0;
	load->writes = strcmp(text, "write") == 0;
	return load->writes || strcmp(text, "read") == 0;
}

static bool take_options(struct bench_load *load, int argc, char **argv)
{
	static const struct option table[] = {
		{ "daemon", 1, NULL, 'd' },  { "rw", 1, NULL, 'w' },     { "bs", 1, NULL, 'b' },
		{ "iodepth", 1, NULL, 'q' }, { "size", 1, NULL, 's' },   { "runtime", 1, NULL, 't' },
		{ "fill", 0, NULL, 'f' },    { "verify", 0, NULL, 'v' }, { "no-latency", 0, NULL, 'n' },
		{ "no-copy", 0, NULL, 'c' }, { NULL, 0, NULL, 0 }
	};
	bool good = true;

	for (int option; (option = getopt_long(argc, argv, "", table, NULL)) != -1 && good;) {
		switch (option) {
		case 'd': load->daemon = optarg; break;
		case 'w': good = take_rw(load, optarg); break;
		case 'b': load->bs = strtoull(optarg, NULL, 10); break;
		case 'q': load->depth = (u32)strtoul(optarg, NULL, 10); break;
		case 's': load->bytes = strtoull(optarg, NULL, 10); break;
		case 't': load->seconds = strtod(optarg, NULL); break;
		case 'f': load->fill = true; break;
		case 'v': load->verify = true; break;
		case 'n': load->timed = false; break;
		case 'c': load->copies = false; break;
		default: good = false; break;
		}
	}
	return good && load->bs && load->bs % BENCH_BLOCK == 0 && load->bytes >= load->bs && load->depth &&
	       load->depth <= BENCH_MOST_DEPTH && (!load->direct || load->daemon);
}

static int by_value(const void *a, const void *b)
{
	u32 one = *(const u32 *)a, other = *(const u32 *)b;

	return (one > other) - (one < other);
}

static void print_latency(const struct bench_client *clients, u32 count)
{
	u32 *all = malloc(sizeof(*all) * BENCH_LATENCIES * count);
	size_t total = 0;

	for (u32 i = 0; i < count && all; i++) {
		size_t part = clients[i].timed < BENCH_LATENCIES ? clients[i].timed : BENCH_LATENCIES;

		memcpy(all + total, clients[i].latency_ns, part * sizeof(*all));
		total += part;
	}
	if (total) {
		qsort(all, total, sizeof(*all), by_value);
		printf("\"p50_us\": %.2f, \"p99_us\": %.2f, ", all[total / 2] * 1e-3,
		       all[total * 99 / 100] * 1e-3);
	}
	free(all);
}

static void print(const struct bench_load *load, const struct bench_client *clients, u32 count,
		  double seconds, double processor)
{
	u64 done = 0, errors = 0, checked = 0, bad = 0;
	u32 status = 0;

	for (u32 i = 0; i < count; i++) {
		done += clients[i].done;
		errors += clients[i].errors;
		checked += clients[i].checked;
		bad += clients[i].bad;
		status = clients[i].status ? clients[i].status : status;
	}
	printf("{\"iops\": %.1f, \"bytes_per_s\": %.1f, \"requests\": %llu, \"errors\": %llu, \"status\": "
	       "%u, ",
	       (double)done / seconds, (double)(done * load->bs) / seconds, (unsigned long long)done,
	       (unsigned long long)errors, status);
	print_latency(clients, count);
	printf("\"verified_blocks\": %llu, \"bad_blocks\": %llu, \"cpu_s\": %.4f}\n",
	       (unsigned long long)checked, (unsigned long long)bad, processor);
}

static void sleep_for(double seconds)
{
	struct timespec left = { .tv_sec = (time_t)seconds };

	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

/* Threads fill, then all begin the load at the same time; what ends at first does not count. */
static int measure(struct bench_load *load, struct bench_client *clients, u32 count)
{
	u64 begin;
	double seconds, processor;
	bool bad = false;

	pthread_barrier_init(&barrier, NULL, count + 1);
	for (u32 i = 0; i < count; i++)
		if (pthread_create(&clients[i].thread, NULL, run, &clients[i]) != 0)
			exit(1);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	sleep_for(load->seconds > 0 ? WARM_SECONDS : 0);
	begin = now_ns();
	processor = processor_seconds();
	load->counts = true;
	sleep_for(load->seconds);
	load->counts = false;
	seconds = (double)(now_ns() - begin) * 1e-9;
	processor = processor_seconds() - processor;
	load->stop = true;
	pthread_barrier_wait(&barrier);
	for (u32 i = 0; i < count; i++) {
		pthread_join(clients[i].thread, NULL);
		bad |= clients[i].errors || clients[i].bad;
	}
	print(load, clients, count, seconds, processor);
	return bad;
}

int main(int argc, char **argv)
{
	struct bench_load load = {
		.bs = 4096, .depth = 32, .bytes = 16 << 20, .seconds = 1, .random = true, .timed = true
	};
	struct bench_client *clients = calloc(BENCH_MOST_CLIENTS, sizeof(*clients));
	u32 count;
	int status = 0;

	if (argc < 2 || !clients || (strcmp(argv[1], "direct") != 0 && strcmp(argv[1], "basic") != 0))
		return usage();
	load.direct = strcmp(argv[1], "direct") == 0;
	load.copies = !load.direct;
	if (!take_options(&load, argc - 1, argv + 1))
		return usage();
	count = (u32)(argc - 1 - optind);
	if (count < 1 || count > BENCH_MOST_CLIENTS)
		return usage();
	for (u32 i = 0; i < count && !status; i++) {
		clients[i].load = &load;
		clients[i].name = argv[1 + optind + (int)i];
		clients[i].random = clients[i].number = i + 1;
		status = bench_open(&clients[i]) != 0;
	}
	if (status)
		fprintf(stderr, "volume-bench: %s\n", weir_last_error());
	else
		status = measure(&load, clients, count);
	for (u32 i = 0; i < count; i++)
		if (clients[i].load)
			bench_close(&clients[i]);
	free(clients);
	return status;
}
