/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine_log: an engine on a file whose writes qemu notes, and the power fails at each moment of these notes.
 *
 *   engine_log write FILE SEED FIRST COUNT [end]   carry out commands FIRST + 1 to FIRST + COUNT; without
 *                                                  "end" the process ends as if killed
 *   engine_log replay LOG SEED COUNT [IMAGE]       LOG: of qemu's blklogwrites; COUNT: of all; IMAGE: the
 *                                                  writer was cut off, and a medium that it may have left
 *                                                  is written there
 *   engine_log probe FILE SEED COUNT SEEN           open an engine on what "replay" has left; SEEN: the
 *                                                  version that it printed
 *
 * Moments: each flush, and between flushes those that the seed draws. At each the medium may hold every write
 * until then, what was flushed alone, or that and some sectors of the others; an engine is opened on each of
 * these images. How far the writer was, the log says itself: data of version V is in it, so V - 1 commands
 * had been acknowledged (engine_model.h). Prints one line; exit status 1 if an image is wrong.
 */
#include "engine_model.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_BYTES = 2 << 20, SECTOR = 512, FLAG_FLUSH = 1, FLAG_DISCARD = 4 };

static const u64 MAGIC = 0x6a736677736872;

/** struct super - first sector of a log */
struct super {
	u64 magic, version, entries;
	u32 sector_bytes, reserved;
};

/** struct entry - in a sector of its own, its data behind it */
struct entry {
	u64 sector, sectors, flags, bytes;
};

/**
 * struct replay - how far it is
 * @pending, @pending_count: entries since the last flush
 * @written, @flushed: the medium with all writes, and with those before that flush
 * @commands: all that the writer had; @begun, @ended: of these
 * @seen: greatest version of which data was written
 * @wrong: images
 */
struct replay {
	const struct entry *pending[1 << 16];
	u32 pending_count;
	unsigned char written[LOG_BYTES], flushed[LOG_BYTES];
	struct model_command commands[MODEL_COMMANDS];
	u64 count, begun, ended, seen;
	struct model *model;
	u64 lots;
	u64 flushes, between, torn, images, wrong;
};

static struct replay replay;

static int refuse(const char *what)
{
	fprintf(stderr, "engine_log: %s\n", what);
	return 2;
}

/* ---- one request at a time ---- */

/*
 * QEMU's export by FUSE has one buffer for requests, and takes the next one into it while it still writes
 * what is there (7.2; later "fuse: Copy write buffer content before polling").
 */

/** struct single - a medium in front of another one; @io: what is under way, whose @done is kept */
struct single {
	struct weir_medium medium;
	struct weir_medium *behind;
	struct weir_io *io;
	void (*done)(struct weir_io *io);
};

static struct single single;

static void single_done(struct weir_io *io)
{
	io->done = single.done;
	single.io = NULL;
	io->done(io);
}

static bool single_submit(struct weir_medium *medium, struct weir_io *io)
{
	(void)medium;
	if (single.io)
		return false;
	single.io = io;
	single.done = io->done;
	io->done = single_done;
	if (single.behind->ops->submit(single.behind, io))
		return true;
	io->done = single.done;
	single.io = NULL;
	return false;
}

/* Whoever waits does so for the other thread's request, too. */
static unsigned single_poll(struct weir_medium *medium, unsigned thread)
{
	(void)medium;
	(void)thread;
	return single.behind->ops->poll(single.behind, 0) + single.behind->ops->poll(single.behind, 1);
}

static void single_close(struct weir_medium *medium)
{
	(void)medium;
	single.behind->ops->close(single.behind);
}

static struct weir_medium *single_create(struct weir_medium *behind)
{
	static const struct weir_medium_ops ops = {
		.size = sizeof(ops), .submit = single_submit, .poll = single_poll, .close = single_close
	};

	single = (struct single){ .medium = *behind, .behind = behind };
	single.medium.ops = &ops;
	return &single.medium;
}

/* ---- the writer ---- */

static struct weir_engine *open_file(const char *path)
{
	struct weir_medium_file_options options = {
		.block_bytes = BLOCK, .direct = WEIR_DIRECT_ON, .threads = 2, .depth = 16
	};
	struct weir_engine_options engine_options = { .threads = 1 };
	struct weir_medium *file;
	struct weir_engine *engine;
	int error = weir_medium_file_open(path, &options, &file);

	if (!error) {
		engine_options.behind = single_create(file);
		error = weir_engine_open(&engine_options, &engine);
	}
	if (error) {
		fprintf(stderr, "engine_log: %s\n", weir_last_error());
		exit(2);
	}
	return engine;
}

static int write_commands(const char *path, u64 seed, u64 first, u64 count, bool ends)
{
	struct weir_engine *engine = open_file(path);
	struct model *model = model_create();
	bool good = !direct_map(engine, MAP) && (first || !direct_prepare(engine));

	for (u64 i = 0; i < first + count && good; i++) {
		struct model_command command = model_begin(model, weir_mix_next(&seed));

		good = i < first || !model_carry_out(engine, &command);
	}
	if (!good || (!ends && direct_flush(engine))) /* what is killed would lose what it had acknowledged */
		return refuse("a command failed");
	if (!ends)
		_exit(0);
	direct_close(engine);
	free(model);
	return 0;
}

/* ---- images ---- */

static void apply(unsigned char *image, const struct entry *entry, u64 sector)
{
	const unsigned char *data = (const unsigned char *)entry + SECTOR;
	unsigned char *at = image + (entry->sector + sector) * SECTOR;

	if (entry->flags & FLAG_DISCARD)
		memset(at, 0, SECTOR);
	else
		memcpy(at, data + sector * SECTOR, SECTOR);
}

/* Of each write that was not flushed: nothing, all, or some sectors. */
static void tear(unsigned char *image)
{
	for (u32 i = 0; i < replay.pending_count; i++) {
		const struct entry *entry = replay.pending[i];
		u64 lot = weir_mix_next(&replay.lots);

		for (u64 sector = 0; lot & 3 && sector < entry->sectors; sector++)
			if ((lot & 3) < 3 || weir_mix_next(&replay.lots) & 1)
				apply(image, entry, sector);
	}
}

static void examine(const unsigned char *image)
{
	struct weir_engine *engine;
	struct lossy lossy;
	u64 wrong = 1;

	lossy_create(&lossy, LOG_BYTES);
	memcpy(lossy.now, image, LOG_BYTES);
	engine = direct_open(&lossy);
	if (!engine)
		fprintf(stderr, "engine_log: %s\n", weir_last_error());
	else if (!direct_map(engine, MAP))
		wrong = model_wrong(engine, replay.model);
	if (engine)
		direct_close(engine);
	lossy_destroy(&lossy);
	replay.images++;
	replay.wrong += wrong != 0;
}

/* The power fails now. Until the first data is written nobody has been told that there is a volume. */
static void examine_all(void)
{
	static unsigned char image[LOG_BYTES];

	if (!replay.seen)
		return;
	examine(replay.flushed);
	if (!replay.pending_count)
		return;
	examine(replay.written);
	memcpy(image, replay.flushed, LOG_BYTES);
	tear(image);
	examine(image);
	replay.torn++;
}

/* ---- the log ---- */

/* The version of which a block is data; 0: it is none. */
static u64 version_of(const unsigned char *block)
{
	unsigned char expected[BLOCK];
	u64 word, version, vba;

	memcpy(&word, block, sizeof(word));
	version = word >> 32;
	vba = (word & 0xffffffff) >> 12;
	if (!version || version > replay.count || vba >= MODEL)
		return 0;
	direct_fill(expected, vba, version);
	return memcmp(block, expected, BLOCK) ? 0 : version;
}

/* Data of @version was written: all commands before it have ended; those behind that write no data may have
 * begun. */
static void advance(u64 version)
{
	for (; replay.begun < replay.count; replay.begun++) {
		const struct model_command *command = &replay.commands[replay.begun];

		if (command->version > version && command->kind == WEIR_IO_WRITE)
			break;
		if (command->kind != WEIR_IO_FLUSH)
			replay.model->begun[command->vba] = command->version;
	}
	for (; replay.ended + 1 < version; replay.ended++)
		model_ended(replay.model, &replay.commands[replay.ended]);
	replay.seen = version;
}

static void note_write(const struct entry *entry)
{
	const unsigned char *data = (const unsigned char *)entry + SECTOR;

	for (u64 at = 0; !(entry->flags & FLAG_DISCARD) && at + BLOCK <= entry->sectors * SECTOR;
	     at += BLOCK) {
		u64 version = version_of(data + at);

		if (version > replay.seen)
			advance(version);
	}
	for (u64 sector = 0; sector < entry->sectors; sector++)
		apply(replay.written, entry, sector);
	replay.pending[replay.pending_count++] = entry;
}

static void note_flush(void)
{
	replay.flushes += replay.seen != 0;
	examine_all();
	memcpy(replay.flushed, replay.written, LOG_BYTES);
	replay.pending_count = 0;
	examine_all();
}

/* Bytes of the log that an entry takes; 0: it is none. */
static u64 entry_bytes(const struct entry *entry, u64 left)
{
	u64 bytes = SECTOR + (entry->flags & FLAG_DISCARD ? 0 : entry->sectors * SECTOR);

	if (entry->flags & ~(u64)(FLAG_FLUSH | FLAG_DISCARD) || entry->sectors > LOG_BYTES / SECTOR ||
	    entry->sector > LOG_BYTES / SECTOR - entry->sectors || bytes > left)
		return 0;
	return bytes;
}

static bool replay_log(const unsigned char *log, u64 bytes)
{
	const struct super *super = (const struct super *)(const void *)log;
	u64 at = SECTOR;

	if (bytes < SECTOR || super->magic != MAGIC || super->sector_bytes != SECTOR)
		return false;
	for (u64 i = 0; i < super->entries; i++) {
		const struct entry *entry = (const struct entry *)(const void *)(log + at);
		u64 size = bytes - at < SECTOR ? 0 : entry_bytes(entry, bytes - at);

		if (!size || replay.pending_count == sizeof(replay.pending) / sizeof(*replay.pending))
			return false;
		at += size;
		if (entry->sectors)
			note_write(entry);
		if (entry->flags & FLAG_FLUSH)
			note_flush();
		else if (!(weir_mix_next(&replay.lots) & 7)) {
			replay.between += replay.seen != 0;
			examine_all();
		}
	}
	return true;
}

/* The last engine was closed: all that was acknowledged is durable. */
static void examine_end(void)
{
	advance(replay.count + 1);
	model_flushed(replay.model);
	examine(replay.flushed);
}

/* The power failed at the end of the log: what may be left of the medium, into the file @path. */
static bool leave_image(const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	bool good;

	examine_all();
	tear(replay.flushed);
	good = file >= 0 && write(file, replay.flushed, LOG_BYTES) == LOG_BYTES;
	return (file < 0 || !close(file)) && good;
}

static void draw_commands(u64 seed, u64 count)
{
	replay.model = model_create();
	replay.lots = seed ^ 0x5eed;
	for (replay.count = 0; replay.count < count; replay.count++)
		replay.commands[replay.count] = model_begin(replay.model, weir_mix_next(&seed));
	memset(replay.model->begun, 0, sizeof(replay.model->begun));
}

static int replay_commands(const char *path, u64 seed, u64 count, const char *image)
{
	int file = open(path, O_RDONLY);
	struct stat stat;
	void *log;

	if (file < 0 || fstat(file, &stat) || count >= MODEL_COMMANDS)
		return refuse("usage: engine_log replay LOG SEED COUNT [IMAGE]");
	log = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	close(file);
	draw_commands(seed, count);
	if (log == MAP_FAILED || !replay_log(log, (u64)stat.st_size))
		return refuse("this is no log of writes of 2 MiB without a hole");
	if (!image)
		examine_end();
	else if (!leave_image(image))
		return refuse("the image cannot be written");
	printf("%llu flushes, %llu moments between, %llu torn; %llu images, %llu wrong; version %llu\n",
	       (unsigned long long)replay.flushes, (unsigned long long)replay.between,
	       (unsigned long long)replay.torn, (unsigned long long)replay.images,
	       (unsigned long long)replay.wrong, (unsigned long long)replay.seen);
	free(replay.model);
	munmap(log, (size_t)stat.st_size);
	return replay.wrong != 0;
}

static int probe(const char *path, u64 seed, u64 count, u64 seen)
{
	struct weir_engine *engine = open_file(path);
	u64 wrong = 1;

	draw_commands(seed, count);
	advance(seen);
	if (!direct_map(engine, MAP))
		wrong = model_wrong(engine, replay.model);
	direct_close(engine);
	free(replay.model);
	printf("%llu wrong\n", (unsigned long long)wrong);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	u64 numbers[3] = { 0 };

	for (int i = 3; i < argc && i < 6; i++)
		numbers[i - 3] = strtoull(argv[i], NULL, 0);
	if (argc >= 6 && !strcmp(argv[1], "write"))
		return write_commands(argv[2], numbers[0], numbers[1], numbers[2], argc > 6);
	if ((argc == 5 || argc == 6) && !strcmp(argv[1], "replay"))
		return replay_commands(argv[2], numbers[0], numbers[1], argc > 5 ? argv[5] : NULL);
	if (argc == 6 && !strcmp(argv[1], "probe"))
		return probe(argv[2], numbers[0], numbers[1], numbers[2]);
	return refuse("usage: engine_log write FILE SEED FIRST COUNT [end] | replay LOG SEED COUNT [IMAGE] | "
		      "probe FILE SEED COUNT SEEN");
}
