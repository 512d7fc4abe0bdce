/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_steps: in the guest, one thing after the other with a storage, and what came of each.
 *
 *   vm_steps [-q QUEUES] [-d DEPTH] [-t TIMEOUT_MS] [-s SEED] URI STEP...
 *
 *   read:LBA:BLOCKS    one request; its words have to be SEED's
 *   write:LBA:BLOCKS   likewise, not flushed
 *   flush              of all lanes
 *   again              wait once more for what was too late; its words are not looked at
 *   ask:COMMAND        the host's monitor does it, now
 *   sh:COMMAND         the guest's shell does it, now
 *   during:MS:STEP     an ask or sh half a second into reads by all lanes, which go on for MS or until one
 * fails reads:MS           reads by all lanes for so long, or until one fails alloc:BYTES        of the
 * context, and free it reopen             close the storage, open it again
 *
 * Each prints a line "STEP: status 0x0 in 3 ms"; the exit status is 1 only if a word was wrong or the storage
 * could not be opened. What a step has to say is for the script.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

enum { HEAD_START_MS = 500, CHUNK_REQUESTS = 4 };

/** struct command - what another thread does during reads: @since is when it began, 0 until then */
struct command {
	const char *text;
	weir_shared_u64 since;
};

static struct rig_options options;
static const char *uri;
static bool wrong;

static uint64_t now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* A line to the host, and its answer; the second serial port is the way. */
static void ask(const char *text)
{
	static int port = -1;
	struct termios raw;
	char answer;

	if (port < 0) {
		port = open("/dev/ttyS1", O_RDWR | O_NOCTTY);
		if (port < 0 || tcgetattr(port, &raw) != 0) {
			perror("/dev/ttyS1");
			exit(1);
		}
		cfmakeraw(&raw);
		tcsetattr(port, TCSANOW, &raw);
	}
	dprintf(port, "%s\n", text);
	do {
		if (read(port, &answer, 1) != 1)
			return;
		putchar(answer);
	} while (answer != '\n');
}

static void command(const char *text)
{
	if (!strncmp(text, "ask:", 4))
		ask(text + 4);
	else if (!strncmp(text, "sh:", 3) && system(text + 3) != 0)
		printf("(the shell's command failed)\n");
	fflush(stdout);
}

static void *later(void *argument)
{
	struct command *what = argument;

	usleep(HEAD_START_MS * 1000);
	weir_store_u64_relaxed_sys(&what->since, now_ms()); /* relaxed: a time, of which nothing hangs */
	command(what->text);
	return NULL;
}

static void judge(struct rig *rig)
{
	struct test_verdict verdict = rig_verdict(rig);

	if (!weir_load_u64_relaxed_sys(&verdict.bad)) /* relaxed: the launch is over */
		return;
	wrong = true;
	printf("WRONG: word %llu is %#llx, not %#llx\n", (unsigned long long)verdict.where,
	       (unsigned long long)verdict.found, (unsigned long long)verdict.expected);
}

static void report(const char *step, weir_status status, uint64_t ms)
{
	char text[80] = "good";

	if (status != WEIR_OK)
		weir_status_text(status, text);
	printf("%s: status %#x in %llu ms: %s\n", step, status, (unsigned long long)ms, text);
	fflush(stdout);
}

static void one(struct rig *rig, const char *step, uint64_t first, uint64_t blocks, bool write)
{
	uint64_t begin = now_ms();
	weir_status status;

	rig->args.first = first;
	rig->args.blocks = blocks;
	rig->args.per_request = blocks ? blocks : 1;
	rig->args.write = write;
	rig->args.flush = !blocks;
	status = rig_run_on(rig, blocks ? 1 : RIG_THREADS);
	report(step, status, now_ms() - begin);
	if (!write)
		judge(rig);
}

static void again(struct rig *rig)
{
	uint64_t begin = now_ms();
	weir_status status;

	rig->args.blocks = rig->args.write = 0;
	rig->args.again = 1;
	status = rig_run(rig);
	rig->args.again = 0;
	report("again", status, now_ms() - begin);
}

/* Reads by all lanes until one fails or the time is over. Of @what (NULL: nothing) another thread takes care.
 */
static void reads(struct rig *rig, const char *step, uint64_t ms, struct command *what)
{
	uint64_t begin = now_ms(), launches = 0, since;
	weir_status status = WEIR_OK;
	pthread_t thread;

	if (what && pthread_create(&thread, NULL, later, what) != 0)
		exit(1);
	rig->args.first = rig->args.write = 0;
	rig->args.per_request = 1;
	rig->args.blocks = RIG_LANES * CHUNK_REQUESTS;
	for (; status == WEIR_OK && now_ms() - begin < ms; launches++)
		status = rig_run(rig);
	since = what ? weir_load_u64_relaxed_sys(&what->since) : begin;
	report(step, status, now_ms() - (since ? since : begin));
	printf("%llu launches of %u requests\n", (unsigned long long)launches, RIG_LANES * CHUNK_REQUESTS);
	judge(rig);
	if (what)
		pthread_join(thread, NULL);
}

static void during(struct rig *rig, char *step)
{
	char *rest;
	uint64_t ms = strtoull(step + strlen("during:"), &rest, 10);
	struct command what = { .text = rest + 1 };

	weir_store_u64_relaxed_sys(&what.since, 0); /* relaxed: before the thread is */
	reads(rig, "during", ms, &what);
}

static void alloc(struct rig *rig, uint64_t bytes)
{
	uint64_t address;

	rig_must(weir_alloc(rig->context, bytes, &address));
	rig_must(weir_free(rig->context, address));
	printf("allocated\n");
}

static void reopen(struct rig *rig)
{
	uint64_t seed = rig->args.seed, begin = now_ms();

	rig_close(rig);
	printf("closed in %llu ms\n", (unsigned long long)(now_ms() - begin));
	fflush(stdout);
	rig_open(rig, uri, &options);
	rig->args.seed = seed;
	printf("reopened\n");
}

static int usage(void)
{
	fprintf(stderr, "usage: vm_steps [-q QUEUES] [-d DEPTH] [-t TIMEOUT_MS] [-s SEED] URI STEP...\n");
	return 2;
}

static int take(struct rig *rig, char *step)
{
	unsigned long long first, blocks;

	if (sscanf(step, "read:%llu:%llu", &first, &blocks) == 2)
		one(rig, step, first, blocks, false);
	else if (sscanf(step, "write:%llu:%llu", &first, &blocks) == 2)
		one(rig, step, first, blocks, true);
	else if (!strcmp(step, "flush"))
		one(rig, step, 0, 0, true);
	else if (!strcmp(step, "again"))
		again(rig);
	else if (!strncmp(step, "ask:", 4) || !strncmp(step, "sh:", 3))
		command(step);
	else if (!strncmp(step, "during:", 7))
		during(rig, step);
	else if (!strncmp(step, "reads:", 6))
		reads(rig, step, strtoull(step + 6, NULL, 10), NULL);
	else if (!strncmp(step, "alloc:", 6))
		alloc(rig, strtoull(step + 6, NULL, 10));
	else if (!strcmp(step, "reopen"))
		reopen(rig);
	else
		return usage();
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t seed = 0;
	struct rig rig;
	int key, status = 0;

	while ((key = getopt(argc, argv, "q:d:t:s:")) != -1) {
		uint64_t value = key == '?' ? 0 : strtoull(optarg, NULL, 0);

		switch (key) {
		case 'q': options.queues = (uint32_t)value; break;
		case 'd': options.depth = (uint32_t)value; break;
		case 't': options.timeout_ms = value; break;
		case 's': seed = value; break;
		default: return usage();
		}
	}
	if (optind == argc)
		return usage();
	uri = argv[optind];
	rig_open(&rig, uri, &options);
	rig.args.seed = seed;
	for (int i = optind + 1; i < argc && !status; i++)
		status = take(&rig, argv[i]);
	rig_close(&rig);
	return status ? status : wrong;
}
