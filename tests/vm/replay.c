/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_replay: on the host, the power fails at every point of what an emulated SSD wrote.
 *
 *   vm_replay LOG SEED CLAIMED     LOG: of qemu's blklogwrites; CLAIMED: generations that the guest called
 * durable
 *
 * For each prefix of the log the SSD may hold all of its writes, only those before its last flush, or any of
 * the others with these: three images are made and looked at. In each of them every block must be of a
 * generation that is no older than the newest one that was claimed by then and wrote it, and no newer than
 * any begun. A claim was made, at the latest, when the next generation's first write is in the log. The
 * writes themselves must be those of power.h, in its order. Prints one line; exit status 1 if something
 * claimed is lost, 2 for a log that is none or is not what was written.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "power.h"

enum { SECTOR = 512, FLUSH = 1, VARIANTS = 3 };

static const u64 MAGIC = 0x6a736677736872;

/** struct super - first sector of a log */
struct super {
	u64 magic, version, entries;
	u32 sector_bytes, reserved;
};

/** struct entry - in a sector of its own, its sectors behind it */
struct entry {
	u64 sector, sectors, flags, reserved;
};

/* What an SSD may hold: everything, what was flushed, what was flushed and some of the rest. */
static u64 images[VARIANTS][POWER_BLOCKS * POWER_WORDS];
/* Of each block: the newest generation that wrote it and was claimed. */
static u64 claimed_by[POWER_BLOCKS];
static u64 seed, claimed, writes, begun, prefixes, most_at_risk, at_risk, lost_blocks;
static u64 coin;

static int refuse(const char *what)
{
	fprintf(stderr, "vm_replay: %s\n", what);
	return 2;
}

/* The block's generation, or one past @begun if it is of none that may be there. */
static u64 generation_of(const u64 *block, u64 lba)
{
	for (u64 generation = begun + 1; generation-- > 0;) {
		bool same = true;

		for (u64 i = 0; i < POWER_WORDS && same; i++)
			same = block[i] == power_word(seed, generation, lba * POWER_WORDS + i);
		if (same)
			return generation;
	}
	return begun + 1;
}

/* Blocks of an image that are older than what was claimed of them, or of no generation at all. */
static u64 lost(const u64 *image)
{
	u64 count = 0;

	for (u64 lba = 0; lba < POWER_BLOCKS; lba++) {
		u64 generation = generation_of(image + lba * POWER_WORDS, lba);

		count += generation < claimed_by[lba] || generation > begun;
	}
	return count;
}

static void poll(void)
{
	u64 most = 0;

	for (unsigned i = 0; i < VARIANTS; i++) {
		u64 count = lost(images[i]);

		most = count > most ? count : most;
	}
	prefixes++;
	lost_blocks = most > lost_blocks ? most : lost_blocks;
}

/* All of @generation's writes were claimed durable. */
static void claim(u64 generation)
{
	for (u64 i = 0; generation && generation <= claimed && i < POWER_WRITES; i++)
		for (u64 j = 0; j < power_count(seed, generation, i); j++)
			claimed_by[power_first(seed, generation, i) + j] = generation;
}

/* Return: 0, or an exit status if it is not the write that was next. */
static int replay_write(const struct entry *entry, const u64 *data)
{
	u64 generation = writes / POWER_WRITES + 1, index = writes % POWER_WRITES;

	if (entry->sector != power_first(seed, generation, index) ||
	    entry->sectors != power_count(seed, generation, index))
		return refuse("a write is in the log that the guest did not make");
	writes++;
	begun = generation;
	if (index == 0)
		claim(generation - 1);
	memcpy(images[0] + entry->sector * POWER_WORDS, data, entry->sectors * SECTOR);
	coin = test_mix(coin + 1);
	if (coin & 1)
		memcpy(images[2] + entry->sector * POWER_WORDS, data, entry->sectors * SECTOR);
	at_risk += entry->sectors * SECTOR;
	most_at_risk = at_risk > most_at_risk ? at_risk : most_at_risk;
	return 0;
}

static void replay_flush(void)
{
	memcpy(images[1], images[0], sizeof(images[0]));
	memcpy(images[2], images[0], sizeof(images[0]));
	at_risk = 0;
}

static int replay(int file, const struct super *super)
{
	static u64 data[POWER_MOST * POWER_WORDS];
	off_t at = SECTOR;
	u64 flushes = 0;

	poll();
	for (u64 i = 0; i < super->entries; i++) {
		struct entry entry;
		int status;

		if (pread(file, &entry, sizeof(entry), at) != sizeof(entry) || entry.sectors > POWER_MOST ||
		    pread(file, data, entry.sectors * SECTOR, at + SECTOR) !=
			    (ssize_t)(entry.sectors * SECTOR))
			return refuse("the log ends early, or has a write that is too long");
		at += (off_t)((1 + entry.sectors) * SECTOR);
		status = entry.sectors ? replay_write(&entry, data) : 0;
		if (status)
			return status;
		if (entry.flags & FLUSH) {
			replay_flush();
			flushes++;
		}
		poll();
	}
	claim(begun); /* the last one's claim is in the guest's log, and nothing behind it here */
	poll();
	if (writes < claimed * POWER_WRITES)
		return refuse("the log has fewer writes than the guest claims");
	printf("%llu prefixes of %llu writes and %llu flushes: %llu bytes claimed durable lost, at most %llu "
	       "bytes not claimed "
	       "at risk\n",
	       (unsigned long long)prefixes, (unsigned long long)writes, (unsigned long long)flushes,
	       (unsigned long long)lost_blocks * SECTOR, (unsigned long long)most_at_risk);
	return lost_blocks != 0;
}

int main(int argc, char **argv)
{
	struct super super;
	int file, status;

	if (argc != 4)
		return refuse("usage: vm_replay LOG SEED CLAIMED");
	seed = strtoull(argv[2], NULL, 0);
	claimed = strtoull(argv[3], NULL, 0);
	coin = seed;
	for (unsigned i = 0; i < VARIANTS; i++)
		for (u64 word = 0; word < POWER_BLOCKS * POWER_WORDS; word++)
			images[i][word] = power_word(seed, 0, word);
	file = open(argv[1], O_RDONLY);
	if (file < 0 || pread(file, &super, sizeof(super), 0) != sizeof(super) || super.magic != MAGIC ||
	    super.sector_bytes != SECTOR)
		return refuse("no log of writes");
	status = replay(file, &super);
	close(file);
	return status;
}
