/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vm_p2p: in the guest, what a program does with the kernel module weir_p2p.
 *
 *   vm_p2p claim GPU BAR [OFFSET BYTES]            its window is there then
 *   vm_p2p unclaim GPU BAR
 *   vm_p2p verdict GPU BAR SSD
 *   vm_p2p read NODE FILE OFFSET BYTES             the file's bytes to the same place of the window, by
 * pread() vm_p2p uring NODE FILE OFFSET BYTES            the same by io_uring, several at a time, half into
 * fixed buffers vm_p2p write NODE FILE OFFSET BYTES            the other way, by pwrite() vm_p2p idle NODE
 * FILE OFFSET BYTES             all but the reading: for a control vm_p2p poke NODE OFFSET BYTES VALUE each
 * byte by the CPU vm_p2p whole NODE                              register all of it: nothing is left over
 * from others vm_p2p bad CONTROL NODE GPU BAR SSD            what has to be refused: p2p_bad.c vm_p2p life
 * NODE FILE STEP                     who ends first: p2p_life.c vm_p2p import NODE FILE SSD STEP dma-bufs and
 * so on: p2p_import.c vm_p2p fuzz NODE FILE GPU SSD SECONDS SEED     calls with whatever comes: p2p_fuzz.c
 *   vm_p2p queue NODE DISK SSD STEP                queue pairs with rings in the window: p2p_queue.c
 *   vm_p2p ext4 NODE FOLDER                        files of a file system: p2p_ext4.c
 *   vm_p2p hold NODE FILE GPU SSD STEP             pages and imports, kept for long: p2p_hold.c
 *   vm_p2p flush NODE                              by the vendor's shim
 *   vm_p2p measure NODE                            what a range costs: p2p_measure.c
 *   vm_p2p sizes NODE MOST                        ranges up to that, in instructions
 *   vm_p2p count NODE                              the same in instructions, with marks for count.c
 */
#include "p2p.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEPTH = 8, CHUNK = 128 << 10 };

static int open_file(const char *path)
{
	int file = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);

	check(file >= 0, "cannot open %s", path);
	return file;
}

/* Lengths from a block to a MiB, in an order that depends on the place. */
static uint64_t next_length(uint64_t done, uint64_t bytes)
{
	uint64_t length = 512ULL << (done / 512 * 2654435761u >> 7) % 12;

	return length < bytes - done ? length : bytes - done;
}

static int copy(char **argv, bool write)
{
	uint64_t first = number(argv[2]), bytes = number(argv[3]), done = 0, length;
	struct range range = take(open_node(argv[0]), first, bytes);
	int file = open_file(argv[1]);

	for (; done < bytes; done += length) {
		ssize_t moved;

		length = next_length(done, bytes);
		moved = write ? pwrite(file, range.memory + done, length, (off_t)(first + done))
			      : pread(file, range.memory + done, length, (off_t)(first + done));
		check(moved == (ssize_t)length, "%zd of %llu bytes at %llu", moved,
		      (unsigned long long)length, (unsigned long long)(first + done));
	}
	drop(&range);
	printf("copied %llu bytes\n", (unsigned long long)done);
	return 0;
}

static int do_read(char **argv)
{
	return copy(argv, false);
}

static int do_write(char **argv)
{
	return copy(argv, true);
}

static int do_idle(char **argv)
{
	struct range range = take(open_node(argv[0]), number(argv[2]), number(argv[3]));

	open_file(argv[1]);
	check(range.memory[0] == range.memory[0], "unreachable");
	drop(&range);
	return 0;
}

/* Whether the kernel lets such pages be fixed buffers: its own P2PDMA pages not. */
static bool fix(struct io_uring *ring, struct range *range)
{
	struct iovec all = { range->memory, range->bytes };
	int error = io_uring_register_buffers(ring, &all, 1);

	printf("fixed buffers: %s\n", error ? strerror(-error) : "yes");
	return !error;
}

static void submit(struct io_uring *ring, int file, struct range *range, uint64_t at, uint64_t first,
		   bool fixed)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (fixed)
		io_uring_prep_read_fixed(sqe, file, range->memory + at, CHUNK, first + at, 0);
	else
		io_uring_prep_read(sqe, file, range->memory + at, CHUNK, first + at);
	check(io_uring_submit(ring) == 1, "io_uring does not take a read");
}

static void wait_one(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;

	check(!io_uring_wait_cqe(ring, &cqe), "io_uring");
	errno = cqe->res < 0 ? -cqe->res : 0;
	check(cqe->res == CHUNK, "a read ended with %d", cqe->res);
	io_uring_cqe_seen(ring, cqe);
}

static int do_uring(char **argv)
{
	uint64_t first = number(argv[2]), bytes = number(argv[3]), at = 0, ended = 0;
	struct range range = take(open_node(argv[0]), first, bytes);
	int file = open_file(argv[1]);
	struct io_uring ring;
	bool fixed;

	check(bytes % CHUNK == 0, "chunks are of %d bytes", CHUNK);
	check(!io_uring_queue_init(DEPTH, &ring, 0), "no io_uring");
	fixed = fix(&ring, &range);
	for (; at < bytes; at += CHUNK) {
		submit(&ring, file, &range, at, first, fixed && at / CHUNK % 2);
		if (at / CHUNK >= DEPTH - 1) {
			wait_one(&ring);
			ended += CHUNK;
		}
	}
	for (; ended < bytes; ended += CHUNK)
		wait_one(&ring);
	io_uring_queue_exit(&ring);
	drop(&range);
	printf("io_uring moved %llu bytes\n", (unsigned long long)bytes);
	return 0;
}

static int do_poke(char **argv)
{
	struct range range = take(open_node(argv[0]), number(argv[1]), number(argv[2]));

	memset(range.memory, (int)number(argv[3]), range.bytes);
	drop(&range);
	return 0;
}

static int do_whole(char **argv)
{
	int node = open_node(argv[0]);
	struct range range = take(node, 0, bytes_of(node));

	drop(&range);
	printf("all %llu bytes are free\n", (unsigned long long)range.bytes);
	return 0;
}

static int claim_or_not(char **argv, bool claim)
{
	struct weir_p2p_claim call = { .size = sizeof(call),
				       .gpu = function_at(argv[0], (unsigned)number(argv[1])) };
	struct weir_p2p_reason reason = { .size = sizeof(reason) };
	int control = open_node(WEIR_P2P_CONTROL);

	if (claim && argv[2] && argv[3]) {
		call.offset = number(argv[2]);
		call.bytes = number(argv[3]);
	}
	if (ioctl(control, claim ? WEIR_P2P_CLAIM : WEIR_P2P_UNCLAIM, &call)) {
		ioctl(control, WEIR_P2P_REASON, &reason);
		give_up("%s", reason.text);
	}
	printf("%llu bytes\n", (unsigned long long)call.bytes);
	return 0;
}

static int do_claim(char **argv)
{
	return claim_or_not(argv, true);
}

static int do_unclaim(char **argv)
{
	return claim_or_not(argv, false);
}

static int do_verdict(char **argv)
{
	static const char *const words[] = { "no", "unknown", "yes" };
	struct weir_p2p_verdict call = { .size = sizeof(call),
					 .gpu = function_at(argv[0], (unsigned)number(argv[1])),
					 .ssd = function_at(argv[2], 0) };

	check(!ioctl(open_node(WEIR_P2P_CONTROL), WEIR_P2P_VERDICT, &call), "no verdict");
	printf("verdict %s topology %u iommu %u reasons %#x distance %d: %s\n", words[call.verdict],
	       call.topology, call.iommu, call.reasons, call.distance, call.text);
	return 0;
}

static const struct {
	const char *name;
	int arguments;
	int (*run)(char **argv);
} steps[] = {
	{ "claim", 2, do_claim }, { "unclaim", 2, do_unclaim }, { "verdict", 3, do_verdict },
	{ "read", 4, do_read },   { "uring", 4, do_uring },     { "write", 4, do_write },
	{ "idle", 4, do_idle },   { "poke", 4, do_poke },       { "whole", 1, do_whole },
	{ "bad", 5, do_bad },     { "life", 3, do_life },       { "import", 4, do_import },
	{ "fuzz", 6, do_fuzz },   { "measure", 1, do_measure }, { "count", 1, do_count },
	{ "sizes", 2, do_sizes }, { "queue", 4, do_queue },     { "flush", 1, do_flush },
	{ "ext4", 2, do_ext4 },   { "hold", 5, do_hold },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; argc > 1 && i < sizeof(steps) / sizeof(*steps); i++)
		if (!strcmp(argv[1], steps[i].name) && argc - 2 >= steps[i].arguments)
			return steps[i].run(argv + 2);
	fprintf(stderr, "usage: vm_p2p STEP ARGUMENT...: see its source\n");
	return 2;
}
