/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume_load.c: a client that writes a volume and verifies all that it reads, until it is told to end.
 *
 * usage: volume-load run NAME STATE [KEY=VALUE]...   client of volume NAME of the daemon $WEIR_VOLUMED
 *        volume-load show STATE                      what it, or one that was killed, has done so far
 *        volume-load merge STATE...                  latencies of all of them since the last time
 *        volume-load damage FILE                     turn over a bit of each block that a client wrote, old
 * ones, too keys: blocks (of the volume that are used, 2048), depth (requests in flight, 16), mix (percent of
 * reads, 50), rate (requests a second at most, 0: any), flush (a flush after so many writes, 0: none), seed,
 * ro (1: read only), wait_ms (limit of a request, 30000), fatal (1: the first error ends it)
 *
 * A request has 1 to 4 blocks. Each block is written by one request at a time and read by any. A read returns
 * what was acknowledged before it began, or something newer. SIGTERM: no more requests, then all blocks are
 * read, which "verified" counts. Exit status: 0; 1: an error, or data that is wrong; 3: the volume cannot be
 * opened.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#include "volume/medium.h"
#include "volume_load.h"

enum { MOST_DEPTH = 64, MOST_BLOCKS = 4, MOST_SAID = 10, NS_OF_US = 1000 };

/** struct slot - a request; @least: of each block that is read, the oldest value that may come */
struct slot {
	struct weir_io io;
	struct iovec iov;
	bool busy;
	uint64_t vba;
	uint32_t blocks;
	uint64_t begin_ns;
	uint32_t least[MOST_BLOCKS];
	_Alignas(LOAD_BLOCK) unsigned char data[MOST_BLOCKS * LOAD_BLOCK];
};

static struct load_key {
	const char *name;
	uint64_t value;
} keys[] = { { "blocks", 2048 },   { "depth", 16 },   { "mix", 50 }, { "rate", 0 },
	     { "flush", 0 },       { "seed", 1 },     { "ro", 0 },   { "fatal", 0 },
	     { "wait_ms", 30000 }, { "nap_us", 200 }, { "fill", 0 } };

enum { BLOCKS, DEPTH, MIX, RATE, FLUSH, SEED, READ_ONLY, FATAL, WAIT_MS, NAP_US, FILL, KEYS };

static struct load_state *state;
static struct weir_medium *medium;
static struct slot *slots;
static bool *written; /* blocks that are being */
static unsigned in_flight, said;
static volatile sig_atomic_t is_ending;

/* Once the volume has been opened anew all reads of a block agree: what the first one returns is what is
 * there. */
static bool settles;

static void on_signal(int number)
{
	(void)number;
	is_ending = 1;
}

static void complain(const char *what, uint64_t vba, int64_t found, uint32_t least, uint32_t most)
{
	if (said++ < MOST_SAID)
		fprintf(stderr, "volume-load: %s: block %" PRIu64 ": %" PRId64 ", of %u to %u\n", what, vba,
			found, least, most);
}

/* ---- one request ---- */

static void check_block(struct slot *slot, uint32_t index)
{
	uint64_t vba = slot->vba + index;
	struct load_block *block = &state->block[vba];
	int64_t value = load_value(slot->data + (size_t)index * LOAD_BLOCK, vba);
	uint32_t limit = block->limit;

	if (value < slot->least[index] || value > limit) {
		state->wrong++;
		complain("wrong", vba, value, slot->least[index], limit);
	} else if (settles) {
		block->acknowledged = block->limit = (uint32_t)value;
	}
}

static void end_read(struct slot *slot)
{
	for (uint32_t i = 0; i < slot->blocks; i++)
		check_block(slot, i);
	state->reads++;
	load_latency_add(&state->read_latency, (weir_session_now_ns() - slot->begin_ns) / NS_OF_US);
}

static void end_write(struct slot *slot)
{
	for (uint32_t i = 0; i < slot->blocks; i++)
		state->block[slot->vba + i].acknowledged = state->block[slot->vba + i].limit;
	state->acknowledged++;
	load_latency_add(&state->write_latency, (weir_session_now_ns() - slot->begin_ns) / NS_OF_US);
}

static void end_failed(const struct slot *slot)
{
	bool reads = slot->io.kind == WEIR_IO_READ;

	*(reads ? &state->read_errors : &state->write_errors) += 1;
	complain(reads ? "a read failed" : "a write or flush failed", slot->vba, slot->io.status, 0, 0);
	is_ending |= keys[FATAL].value != 0;
}

static void done(struct weir_io *io)
{
	struct slot *slot = (struct slot *)io;

	if (io->status)
		end_failed(slot);
	else if (io->kind == WEIR_IO_READ)
		end_read(slot);
	else if (io->kind == WEIR_IO_WRITE)
		end_write(slot);
	else
		state->flushes++;
	for (uint32_t i = 0; io->kind == WEIR_IO_WRITE && i < slot->blocks; i++)
		written[slot->vba + i] = false;
	slot->busy = false;
	in_flight--;
}

static struct slot *free_slot(void)
{
	for (unsigned i = 0; i < keys[DEPTH].value; i++)
		if (!slots[i].busy)
			return &slots[i];
	return NULL;
}

static void submit(struct slot *slot, enum weir_io_kind kind)
{
	size_t bytes = kind == WEIR_IO_FLUSH ? 0 : (size_t)slot->blocks * LOAD_BLOCK;

	slot->iov = (struct iovec){ slot->data, bytes };
	slot->io = (struct weir_io){ .kind = kind,
				     .offset_bytes = kind == WEIR_IO_FLUSH ? 0 : slot->vba * LOAD_BLOCK,
				     .bytes = bytes,
				     .iov = &slot->iov,
				     .iov_count = bytes != 0,
				     .done = done };
	slot->busy = true;
	slot->begin_ns = weir_session_now_ns();
	in_flight++;
	while (!medium->ops->submit(medium, &slot->io))
		medium->ops->poll(medium, 0);
}

static void submit_read(struct slot *slot)
{
	for (uint32_t i = 0; i < slot->blocks; i++)
		slot->least[i] = state->block[slot->vba + i].acknowledged;
	submit(slot, WEIR_IO_READ);
}

/* False: one of its blocks is being written. */
static bool submit_write(struct slot *slot)
{
	for (uint32_t i = 0; i < slot->blocks; i++)
		if (written[slot->vba + i])
			return false;
	for (uint32_t i = 0; i < slot->blocks; i++) {
		struct load_block *block = &state->block[slot->vba + i];
		uint32_t value = block->last + 1;

		block->last = value;
		block->limit = value; /* before it can be read */
		written[slot->vba + i] = true;
		load_fill(slot->data + (size_t)i * LOAD_BLOCK, slot->vba + i, value);
	}
	submit(slot, WEIR_IO_WRITE);
	return true;
}

/* ---- the load ---- */

static uint64_t draw(uint64_t below)
{
	static uint64_t seed;

	seed = (seed ? seed : keys[SEED].value * 2 + 1) * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % below;
}

static void start(struct slot *slot)
{
	static uint64_t changes;
	bool reads = keys[READ_ONLY].value || draw(100) < keys[MIX].value;

	slot->blocks = 1 + (uint32_t)draw(MOST_BLOCKS);
	slot->vba = draw(keys[BLOCKS].value - slot->blocks + 1);
	if (reads)
		submit_read(slot);
	else if (keys[FLUSH].value && changes++ % keys[FLUSH].value == keys[FLUSH].value - 1)
		submit(slot, WEIR_IO_FLUSH);
	else if (!submit_write(slot))
		submit_read(slot);
}

/* Many clients share few cores. */
static void poll(void)
{
	if (!medium->ops->poll(medium, 0) && keys[NAP_US].value)
		usleep((useconds_t)keys[NAP_US].value);
}

static void drain(void)
{
	while (in_flight)
		poll();
}

static bool is_due(uint64_t started, uint64_t begin_ns)
{
	return !keys[RATE].value ||
	       started * 1000000000 / keys[RATE].value <= weir_session_now_ns() - begin_ns;
}

static void load(void)
{
	uint64_t begin_ns = weir_session_now_ns(), started = 0;
	struct slot *slot;

	while (!is_ending) {
		while ((slot = free_slot()) != NULL && is_due(started, begin_ns) && !is_ending) {
			start(slot);
			started++;
		}
		poll();
	}
	drain();
}

/* All blocks once. */
static void pass(bool writes)
{
	for (uint64_t vba = 0; vba < keys[BLOCKS].value;) {
		struct slot *slot = free_slot();

		if (slot) {
			uint64_t left = keys[BLOCKS].value - vba;

			slot->blocks = left < MOST_BLOCKS ? (uint32_t)left : MOST_BLOCKS;
			slot->vba = vba;
			vba += slot->blocks;
			if (!writes || !submit_write(slot))
				submit_read(slot);
		} else {
			poll();
		}
	}
	drain();
}

/* Of the blocks that are right the count is kept. */
static void verify(void)
{
	uint64_t bad = state->wrong + state->read_errors * MOST_BLOCKS;

	pass(false);
	bad = state->wrong + state->read_errors * MOST_BLOCKS - bad;
	state->verified = bad < keys[BLOCKS].value ? keys[BLOCKS].value - bad : 0;
}

/* ---- the program ---- */

static int open_volume(const char *name)
{
	struct weir_session_keys open = { .read_only = keys[READ_ONLY].value != 0,
					  .wait_ms = keys[WAIT_MS].value };
	const char *daemon = getenv("WEIR_VOLUMED");

	snprintf(open.name, sizeof(open.name), "%s", name);
	snprintf(open.daemon, sizeof(open.daemon), "%s", daemon ? daemon : "");
	if (weir_host_identity(&open.host) || weir_volume_medium_open(&open, 1, NULL, &medium)) {
		fprintf(stderr, "volume-load: %s\n", weir_last_error());
		return 3;
	}
	if (medium->bytes / LOAD_BLOCK < keys[BLOCKS].value) {
		fprintf(stderr, "volume-load: volume %s has no %" PRIu64 " blocks\n", name,
			keys[BLOCKS].value);
		return 3;
	}
	return 0;
}

static bool take_key(const char *word)
{
	for (unsigned i = 0; i < KEYS; i++) {
		size_t length = strlen(keys[i].name);

		if (strncmp(word, keys[i].name, length) != 0 || word[length] != '=')
			continue;
		keys[i].value = strtoull(word + length + 1, NULL, 10);
		return true;
	}
	return false;
}

static int run(const char *name, const char *path)
{
	int status;

	if (keys[DEPTH].value > MOST_DEPTH || keys[DEPTH].value == 0 || keys[BLOCKS].value < MOST_BLOCKS)
		return 2;
	state = load_state_open(path, keys[BLOCKS].value);
	slots = aligned_alloc(LOAD_BLOCK, keys[DEPTH].value * sizeof(*slots));
	written = calloc(keys[BLOCKS].value, sizeof(*written));
	if (!state || !slots || !written)
		return 2;
	memset(slots, 0, keys[DEPTH].value * sizeof(*slots));
	status = open_volume(name);
	if (status)
		return status;
	signal(SIGTERM, on_signal);
	settles = !keys[READ_ONLY].value;
	verify();
	settles = false;
	if (keys[FILL].value)
		pass(true);
	printf("volume-load: %s: begins\n", name);
	fflush(stdout);
	load();
	verify();
	medium->ops->close(medium);
	load_state_print(state);
	return state->wrong || state->read_errors || state->write_errors;
}

static void add_latency(struct load_latency *to, struct load_latency *from)
{
	for (unsigned i = 0; i < LOAD_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
	to->count += from->count;
	to->most_us = from->most_us > to->most_us ? from->most_us : to->most_us;
	memset(from, 0, sizeof(*from));
}

static int merge(char **paths)
{
	static struct load_latency reads, writes;

	for (; *paths; paths++) {
		struct load_state *one = load_state_open(*paths, 0);

		if (!one)
			return 2;
		add_latency(&reads, &one->read_latency);
		add_latency(&writes, &one->write_latency);
	}
	load_latency_print(&reads, "reads");
	load_latency_print(&writes, "writes");
	return 0;
}

/* As the engine does it: of a file that is written past the page cache and through it fsync() fails. */
static int damage(const char *path, bool direct)
{
	static _Alignas(LOAD_BLOCK) unsigned char block[LOAD_BLOCK];
	int file = open(path, O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0));
	unsigned count = 0;

	for (off_t at = 0; file >= 0 && pread(file, block, LOAD_BLOCK, at) == LOAD_BLOCK; at += LOAD_BLOCK) {
		uint64_t name;

		memcpy(&name, block, sizeof(name));
		if (load_value(block, name >> 32) <= 0)
			continue;
		block[at / LOAD_BLOCK % LOAD_BLOCK] ^= 0x10;
		if (pwrite(file, block, LOAD_BLOCK, at) != LOAD_BLOCK)
			return 1;
		count++;
	}
	printf("damaged %u\n", count);
	return file < 0 || close(file) != 0 || !count;
}

int main(int argc, char **argv)
{
	bool good = argc >= 4 && strcmp(argv[1], "run") == 0;

	if (argc == 3 && strcmp(argv[1], "show") == 0 && (state = load_state_open(argv[2], 0)) != NULL) {
		load_state_print(state);
		return 0;
	}
	if (argc >= 3 && strcmp(argv[1], "merge") == 0)
		return merge(argv + 2);
	if (argc >= 3 && strcmp(argv[1], "damage") == 0)
		return damage(argv[2], argc > 3 && strcmp(argv[3], "direct") == 0);
	for (int i = 4; i < argc && good; i++)
		good = take_key(argv[i]);
	if (!good) {
		fprintf(stderr,
			"volume-load: usage: run NAME STATE [KEY=VALUE]..., show STATE, merge STATE..., "
			"damage FILE [direct]\n");
		return 2;
	}
	return run(argv[2], argv[3]);
}
