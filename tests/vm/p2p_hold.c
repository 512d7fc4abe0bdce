/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who keeps pages of a window, or an import, for as long as it likes:
 *
 *   vm_p2p hold NODE FILE GPU SSD STEP
 *     pages     1 MiB of the window, in a pipe, until standard input ends; says "holding" once it has them
 *     address   the same, by an address of the fake GPU's, whose driver may take it back
 *     import    a transfer of 4 MiB from FILE to an import for SSD; says "holding" before it
 *     other     an import for SSD, which is given back at once
 *     direct    transfers beside a thread that takes O_DIRECT from FILE and gives it back: nothing of it gets
 * into the page cache
 */
#include "p2p.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fakegpu/fake_gpu.h"

enum { MIB = 1 << 20, PAGE = 4096, TRIES = 20000, CACHED_FROM = 8 * MIB };

/** struct holder - what each step has: a node, a file opened with O_DIRECT, the SSD */
struct holder {
	int node;
	int file;
	struct weir_p2p_function ssd;
};

/* Until whoever started it closes our standard input. */
static void hold_on(void)
{
	char byte;

	printf("holding\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
}

/* The pipe has references to the pages, and no mapping of them is left. */
static void keep_in_pipe(struct range *range)
{
	struct iovec all = { NULL, range->bytes };
	int ends[2];

	range->memory = mmap(NULL, range->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, range->node,
			     (off_t)range->mmap_offset);
	check(range->memory != MAP_FAILED, "cannot map");
	check(!pipe(ends) && fcntl(ends[1], F_SETPIPE_SZ, MIB) == MIB, "no pipe of 1 MiB");
	all.iov_base = range->memory;
	check(vmsplice(ends[1], &all, 1, SPLICE_F_NONBLOCK) > 0, "the pipe takes no pages");
	munmap(range->memory, range->bytes);
}

static void hold_range(struct holder *holder, uint64_t offset, uint32_t flags)
{
	struct range range;

	check(!try_register(holder->node, offset, MIB, flags, &range), "cannot register");
	keep_in_pipe(&range);
	hold_on();
}

static void step_pages(struct holder *holder)
{
	hold_range(holder, 0, 0);
}

static void step_address(struct holder *holder)
{
	hold_range(holder, FAKE_GPU_FIRST + 4 * MIB, WEIR_P2P_BY_ADDRESS);
}

static struct weir_p2p_import imported(struct holder *holder, int control)
{
	struct fake_gpu_export export = { 8 * MIB, 4 * MIB, FAKE_GPU_VRAM, -1 };
	struct weir_p2p_import call = {
		.size = sizeof(call), .flags = WEIR_P2P_REQUIRE_VRAM, .ssd = holder->ssd, .eventfd = -1
	};

	check(!ioctl(open_node("/dev/fake_gpu"), FAKE_GPU_EXPORT, &export), "the fake GPU exports nothing");
	call.fd = export.fd;
	check(!ioctl(control, WEIR_P2P_IMPORT, &call), "cannot import");
	return call;
}

static void step_import(struct holder *holder)
{
	int control = open_node(WEIR_P2P_CONTROL);
	struct weir_p2p_import import = imported(holder, control);
	struct weir_p2p_io call = {
		.size = sizeof(call), .handle = import.handle, .fd = holder->file, .bytes = 4 * MIB
	};

	printf("holding\n");
	fflush(stdout);
	check(!ioctl(control, WEIR_P2P_IO, &call), "the kernel does not read into an import");
	printf("moved %llu bytes\n", (unsigned long long)call.done);
}

static void step_other(struct holder *holder)
{
	int control = open_node(WEIR_P2P_CONTROL);
	struct weir_p2p_import import = imported(holder, control);

	check(!try_deregister(control, import.handle), "cannot give it back");
}

/** struct toggler - the thread that changes the file's flags */
struct toggler {
	int file;
	atomic_bool stop;
};

static void *toggle(void *argument)
{
	struct toggler *toggler = argument;
	int flags = fcntl(toggler->file, F_GETFL);

	while (!atomic_load(&toggler->stop)) {
		fcntl(toggler->file, F_SETFL, flags & ~O_DIRECT);
		fcntl(toggler->file, F_SETFL, flags | O_DIRECT);
	}
	return NULL;
}

/* Pages of the file's part that the kernel has in its cache. */
static unsigned cached(int file)
{
	unsigned char in[MIB / PAGE];
	unsigned count = 0;
	void *memory = mmap(NULL, MIB, PROT_READ, MAP_SHARED, file, CACHED_FROM);

	check(memory != MAP_FAILED && !mincore(memory, MIB, in), "cannot look into the page cache");
	for (unsigned i = 0; i < MIB / PAGE; i++)
		count += in[i] & 1;
	munmap(memory, MIB);
	return count;
}

static void step_direct(struct holder *holder)
{
	struct toggler toggler = { .file = holder->file };
	struct range range;
	unsigned done = 0, refused = 0;
	pthread_t thread;

	check(!try_register(holder->node, 0, MIB, 0, &range), "cannot register");
	check(!posix_fadvise(holder->file, CACHED_FROM, MIB, POSIX_FADV_DONTNEED) && !cached(holder->file),
	      "it is cached already");
	check(!pthread_create(&thread, NULL, toggle, &toggler), "no thread");
	for (unsigned i = 0; i < TRIES; i++) {
		struct weir_p2p_io call = { .size = sizeof(call),
					    .handle = range.handle,
					    .fd = holder->file,
					    .file_offset = CACHED_FROM + i * (uint64_t)PAGE % MIB,
					    .bytes = PAGE };

		if (!ioctl(holder->node, WEIR_P2P_IO, &call))
			done++;
		else if (errno == EINVAL)
			refused++;
	}
	atomic_store(&toggler.stop, true);
	pthread_join(thread, NULL);
	printf("%u transfers, %u refused\n", done, refused);
	check(done && refused, "nothing was raced");
	check(!cached(holder->file), "%u pages went through the page cache", cached(holder->file));
	check(!try_deregister(holder->node, range.handle), "cannot give it back");
}

static const struct {
	const char *name;
	void (*run)(struct holder *holder);
} steps[] = {
	{ "pages", step_pages }, { "address", step_address }, { "import", step_import },
	{ "other", step_other }, { "direct", step_direct },
};

int do_hold(char **argv)
{
	struct holder holder = { open_node(argv[0]), open(argv[1], O_RDWR | O_DIRECT | O_CLOEXEC),
				 function_at(argv[3], 0) };

	check(holder.file >= 0, "cannot open %s", argv[1]);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (!strcmp(argv[4], steps[i].name)) {
			steps[i].run(&holder);
			return 0;
		}
	give_up("no step %s", argv[4]);
}
