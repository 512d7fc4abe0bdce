/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual_bench.c: what a command costs the virtual controller by itself.
 *
 * Each thread is the client of its own queues and their controller in turns: it
 * fills them, then polls until all has completed. Only the time inside
 * weir_virtual_poll() counts, so one core is enough, and n threads show what n
 * controller threads can do at most. The figure of a run is the median over
 * samples of some polls, so that others on the machine disturb it little.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "backend/error.h"
#include "virtual_client.h"

enum {
	LIST = 16,
	RUNS_MAX = 99,
	THREADS_MAX = 64,
	SAMPLES = 1 << 14,
	SAMPLE_COMMANDS = 256,
	FILL_BYTES = 1 << 20
};

/** struct list - values of one dimension */
struct list {
	u64 values[LIST];
	unsigned count;
};

/**
 * struct setting - what to measure
 * @medium: "ram" or a file's path
 * @bytes: size of the medium; a file is made that large unless it exists
 * @direct: how to open a file
 * @write: writes instead of reads
 * @idle: nothing is asked: what a poll of idle queues costs
 * @json: one object per line
 * @blocks: bytes per command
 * @depths: ring entries
 * @queues: queue pairs
 * @threads: threads
 * @runs: measurements per point
 * @seconds: length of each
 * @latency_us: of the controller's timing model
 */
struct setting {
	const char *medium;
	u64 bytes;
	enum weir_direct direct;
	bool write;
	bool idle;
	bool json;
	struct list blocks;
	struct list depths;
	struct list queues;
	struct list threads;
	u64 runs;
	double seconds;
	u64 latency_us;
};

/**
 * struct worker - one thread: client and controller of every @client->threads-th queue
 * @client: the queues
 * @setting: what to do
 * @index: its number
 * @random: where its commands go
 * @handle: the thread
 * @failed: commands that ended with an error
 * @samples: how many it took
 * @ns: the latest samples, nanoseconds in the controller per command
 */
struct worker {
	struct client *client;
	const struct setting *setting;
	u32 index;
	u64 random;
	pthread_t handle;
	u64 failed;
	u64 samples;
	double ns[SAMPLES];
};

static u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
}

static void sample(struct worker *worker, u64 ns, u32 commands)
{
	worker->ns[worker->samples++ % SAMPLES] = (double)ns / commands;
}

static u32 fill_all(struct worker *worker)
{
	struct client *client = worker->client;
	u32 filled = 0;

	for (u32 i = worker->index; i < client->queue_count; i += client->threads)
		filled +=
			client_fill(client, i, worker->setting->write ? NVME_OPCODE_WRITE : NVME_OPCODE_READ,
				    &worker->random);
	return filled;
}

static u32 reap_all(struct worker *worker)
{
	struct client *client = worker->client;
	u32 reaped = 0;

	for (u32 i = worker->index; i < client->queue_count; i += client->threads)
		reaped += client_reap(client, i, &worker->failed);
	return reaped;
}

/* Every queue of the thread is filled, and polled until it is empty. */
static void round_once(struct worker *worker)
{
	u32 left = fill_all(worker), commands = 0;
	u64 ns = 0;

	while (left) {
		u64 start = now_ns();
		unsigned done = weir_virtual_poll(worker->client->controller, worker->index);
		u32 reaped;

		ns += now_ns() - start;
		reaped = done ? reap_all(worker) : 0;
		left -= reaped;
		commands += reaped;
		if (!left || commands >= SAMPLE_COMMANDS) {
			sample(worker, ns, commands);
			ns = commands = 0;
		}
	}
}

static void idle_once(struct worker *worker)
{
	u64 start = now_ns();

	for (u32 i = 0; i < SAMPLE_COMMANDS; i++)
		weir_virtual_poll(worker->client->controller, worker->index);
	sample(worker, now_ns() - start, SAMPLE_COMMANDS);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	u64 end = now_ns() + (u64)(worker->setting->seconds * 1e9);

	worker->samples = 0;
	do {
		if (worker->setting->idle)
			idle_once(worker);
		else
			round_once(worker);
	} while (now_ns() < end);
	return NULL;
}

/* ---- media ---- */

static void io_done(struct weir_io *io)
{
	(void)io;
}

static void fill(unsigned char *bytes, u64 from)
{
	for (u64 at = 0; at < FILL_BYTES; at += 512) {
		u64 number = (from + at) / 512;

		memset(bytes + at, (int)(number & 0xff), 512);
		memcpy(bytes + at, &number, sizeof(number));
	}
}

static int ram_open(const struct setting *setting, u32 block_bytes, struct weir_medium **out)
{
	unsigned char *bytes = malloc(FILL_BYTES);
	struct iovec iov = { bytes, FILL_BYTES };
	int error = weir_medium_ram_open(setting->bytes, block_bytes, NULL, out);

	for (u64 at = 0; !error && bytes && at < setting->bytes; at += FILL_BYTES) {
		struct weir_io io = { .kind = WEIR_IO_WRITE,
				      .offset_bytes = at,
				      .bytes = FILL_BYTES,
				      .iov = &iov,
				      .iov_count = 1,
				      .done = io_done };

		fill(bytes, at);
		(*out)->ops->submit(*out, &io);
	}
	free(bytes);
	return error;
}

static int file_move(const struct setting *setting, int file, bool made)
{
	unsigned char *bytes = malloc(FILL_BYTES);
	bool wrong = !bytes;

	for (u64 at = 0; !wrong && at < setting->bytes; at += FILL_BYTES) {
		fill(bytes, at);
		wrong = (made ? pwrite(file, bytes, FILL_BYTES, (off_t)at)
			      : pread(file, bytes, FILL_BYTES, (off_t)at)) != FILL_BYTES;
	}
	free(bytes);
	return wrong ? weir_fail(EIO, "cannot fill or read %s: %s", setting->medium, strerror(errno)) : 0;
}

/* Makes the file unless there is one, which an earlier run must have made; it is in the page cache then. */
static int file_make(const struct setting *setting)
{
	int file = open(setting->medium, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), error;
	bool made = file >= 0;

	if (!made && errno == EEXIST)
		file = open(setting->medium, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return weir_fail(errno, "cannot open %s: %s", setting->medium, strerror(errno));
	if (!made && lseek(file, 0, SEEK_END) != (off_t)setting->bytes)
		error = weir_fail(EEXIST,
				  "%s exists and has not the size asked for: remove it, or give its --size",
				  setting->medium);
	else
		error = file_move(setting, file, made);
	close(file);
	return error;
}

static int medium_open(const struct setting *setting, u32 block_bytes, u32 threads, struct weir_medium **out)
{
	struct weir_medium_file_options options = {
		.block_bytes = block_bytes,
		.direct = setting->direct,
		.threads = threads,
		.depth = 1024,
	};

	if (!strcmp(setting->medium, "ram"))
		return ram_open(setting, block_bytes, out);
	return weir_medium_file_open(setting->medium, &options, out);
}

/* ---- measuring ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, u64 count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

/* Nanoseconds per command on one thread, and million commands per second on all of them. */
static int run_once(struct worker *workers, u32 threads, double *ns, double *rate)
{
	*rate = *ns = 0;
	for (u32 i = 0; i < threads; i++)
		if (pthread_create(&workers[i].handle, NULL, work, &workers[i]))
			return weir_fail(EAGAIN, "cannot start %u threads", threads);
	for (u32 i = 0; i < threads; i++) {
		struct worker *worker = &workers[i];
		double one;

		pthread_join(worker->handle, NULL);
		one = median(worker->ns, worker->samples < SAMPLES ? worker->samples : SAMPLES);
		*ns += one / threads;
		*rate += 1e3 / one;
		if (worker->failed)
			return weir_fail(EIO, "%llu commands failed", (unsigned long long)worker->failed);
	}
	return 0;
}

static void report(const struct setting *setting, const struct client *client, double *ns, double *rate)
{
	unsigned runs = (unsigned)setting->runs;
	double middle = median(rate, runs);

	median(ns, runs);
	if (setting->json)
		printf("{\"medium\":\"%s\",\"path\":\"%s\",\"block\":%u,\"depth\":%u,\"queues\":%u,"
		       "\"threads\":%u,"
		       "\"ns\":%.1f,\"ns_min\":%.1f,\"ns_max\":%.1f,\"million_per_s\":%.3f}\n",
		       setting->medium, weir_medium_path(client->medium), client->block_bytes, client->depth,
		       client->queue_count, client->threads, ns[runs / 2], ns[0], ns[runs - 1], middle);
	else
		printf("%5u B  depth %4u  queues %3u  threads %2u: %7.1f ns (%.1f to %.1f), %.2f M/s\n",
		       client->block_bytes, client->depth, client->queue_count, client->threads, ns[runs / 2],
		       ns[0], ns[runs - 1], middle);
	fflush(stdout);
}

static int measure(const struct setting *setting, struct client *client)
{
	struct worker *workers = calloc(client->threads, sizeof(*workers));
	double ns[RUNS_MAX], rate[RUNS_MAX];
	int error;

	if (!workers)
		return weir_fail(ENOMEM, "no memory for %u threads", client->threads);
	for (u32 i = 0; i < client->threads; i++) {
		workers[i].client = client;
		workers[i].setting = setting;
		workers[i].random = workers[i].index = i;
	}
	error = run_once(workers, client->threads, &ns[0], &rate[0]); /* warms up */
	for (u64 i = 0; !error && i < setting->runs; i++)
		error = run_once(workers, client->threads, &ns[i], &rate[i]);
	for (u32 i = 0; !error && !setting->write && !setting->idle && i < client->queue_count; i++)
		if (!client_holds(client, i))
			error = weir_fail(EIO, "a read of queue %u brought wrong bytes", i + 1);
	if (!error)
		report(setting, client, ns, rate);
	free(workers);
	return error;
}

static int point(const struct setting *setting, u32 block_bytes, u32 depth, u32 queues, u32 threads)
{
	struct client client = { .queue_count = queues,
				 .threads = threads < queues ? threads : queues,
				 .depth = depth,
				 .block_bytes = block_bytes };
	int error = medium_open(setting, block_bytes, client.threads, &client.medium);

	if (!error)
		error = client_open(&client,
				    (struct weir_virtual_options){ .latency_us = (u32)setting->latency_us });
	if (error)
		return error;
	error = measure(setting, &client);
	client_close(&client);
	return error;
}

static int all_points(const struct setting *s)
{
	int error = 0;

	for (unsigned b = 0; b < s->blocks.count; b++)
		for (unsigned d = 0; d < s->depths.count; d++)
			for (unsigned q = 0; q < s->queues.count; q++)
				for (unsigned t = 0; t < s->threads.count && !error; t++)
					error = point(s, (u32)s->blocks.values[b], (u32)s->depths.values[d],
						      (u32)s->queues.values[q], (u32)s->threads.values[t]);
	return error;
}

/* ---- options ---- */

static int take_list(const char *name, const char *text, u64 least, u64 most, struct list *list)
{
	list->count = 0;
	while (list->count < LIST) {
		char *end;
		u64 value = strtoull(text, &end, 10);

		if (end == text || (*end && *end != ',') || value < least || value > most)
			break;
		list->values[list->count++] = value;
		if (!*end)
			return 0;
		text = end + 1;
	}
	return weir_fail(EINVAL, "--%s=%s: give at most %d numbers from %llu to %llu, with ',' between them",
			 name, text, LIST, (unsigned long long)least, (unsigned long long)most);
}

static const char *value_of(const char *argument, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(argument, "--", 2) && !strncmp(argument + 2, name, length) &&
			       argument[2 + length] == '='
		       ? argument + 3 + length
		       : NULL;
}

static int take_text(struct setting *s, const char *argument)
{
	static const char *const directs[] = { "auto", "on", "off" };
	const char *text = value_of(argument, "direct");

	for (unsigned i = 0; text && i < 3; i++)
		if (!strcmp(text, directs[i])) {
			s->direct = (enum weir_direct)i;
			return 0;
		}
	if ((text = value_of(argument, "medium")) != NULL)
		s->medium = text;
	else if ((text = value_of(argument, "size")) != NULL)
		return weir_parse_bytes(text, &s->bytes) || !s->bytes || s->bytes % FILL_BYTES
			       ? weir_fail(EINVAL, "--size=%s: give a multiple of 1M", text)
			       : 0;
	else if ((text = value_of(argument, "seconds")) != NULL)
		s->seconds = atof(text);
	else if (!strcmp(argument, "--write"))
		s->write = true;
	else if (!strcmp(argument, "--idle"))
		s->idle = true;
	else if (!strcmp(argument, "--json"))
		s->json = true;
	else
		return weir_fail(
			EINVAL,
			"unknown option %s; known are --medium=ram|FILE --size=BYTES --direct=auto|on|off "
			"--block= --depth= --queues= --threads= --runs= --seconds= --lat_us= --write --idle "
			"--json",
			argument);
	return 0;
}

static int take(struct setting *s, const char *argument)
{
	const struct {
		const char *name;
		u64 least, most;
		struct list *list;
		u64 *one;
	} numbers[] = {
		{ "block", 512, 4096, &s->blocks, NULL },
		{ "depth", 2, 4096, &s->depths, NULL },
		{ "queues", 1, CLIENT_QUEUES_MAX, &s->queues, NULL },
		{ "threads", 1, THREADS_MAX, &s->threads, NULL },
		{ "runs", 1, RUNS_MAX, NULL, &s->runs },
		{ "lat_us", 0, 10000000, NULL, &s->latency_us },
	};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const char *text = value_of(argument, numbers[i].name);
		struct list one;
		int error;

		if (!text)
			continue;
		error = take_list(numbers[i].name, text, numbers[i].least, numbers[i].most,
				  numbers[i].list ? numbers[i].list : &one);
		if (!error && numbers[i].one)
			*numbers[i].one = one.values[0];
		return error;
	}
	return take_text(s, argument);
}

static int check(const struct setting *s)
{
	for (unsigned i = 0; i < s->blocks.count; i++)
		if (s->blocks.values[i] != 512 && s->blocks.values[i] != 4096)
			return weir_fail(EINVAL, "--block: blocks have 512 or 4096 bytes");
	for (unsigned i = 0; i < s->depths.count; i++)
		if (s->depths.values[i] & (s->depths.values[i] - 1))
			return weir_fail(EINVAL, "--depth: give powers of two");
	return s->seconds > 0 ? 0 : weir_fail(EINVAL, "--seconds: give more than 0");
}

int main(int argc, char **argv)
{
	struct setting setting = {
		.medium = "ram",
		.bytes = (u64)2 << 30,
		.blocks = { { 512, 4096 }, 2 },
		.depths = { { 128, 1024 }, 2 },
		.queues = { { 1, 16, 128 }, 3 },
		.threads = { { 1 }, 1 },
		.runs = 5,
		.seconds = 0.5,
	};
	int error = 0;

	for (int i = 1; i < argc && !error; i++)
		error = take(&setting, argv[i]);
	if (!error)
		error = check(&setting);
	if (!error && strcmp(setting.medium, "ram"))
		error = file_make(&setting);
	if (!error)
		error = all_points(&setting);
	if (error)
		fprintf(stderr, "virtual-bench: %s\n", weir_last_error());
	return error ? 1 : 0;
}
