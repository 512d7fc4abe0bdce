/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dma-bufs for an SSD, PRP entries, file I/O by the kernel, memory by the GPU's addresses:
 *
 *   vm_p2p import NODE FILE SSD STEP
 *     move      the file's bytes 8 MiB to 12 MiB to the same place of the BAR, and back to 12 MiB of the file
 *     refuse    what must not be imported, and what must not be done with imports
 *     moved     the exporter moves the buffer
 *     prp       PRP entries, told on standard output: "prp FIRST SECOND ENTRIES" for each of a few transfers
 *     unbound   the SSD's driver goes, by a COMMAND: one more argument
 *     io        file I/O on a range of the window, 1 MiB to 2 MiB of the file to the same place
 *     errno     the fake shim fails with an errno that programs do not know
 *     address   the file's first MiB to 64 MiB of what the fake shim calls addresses, then COMMAND revokes it
 */
#include "p2p.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fakegpu/fake_gpu.h"

enum { MIB = 1 << 20, PAGE = 4096 };

/** struct context - what each step has */
struct setup {
	int control;
	int node;
	int gpu;
	int file;
	const char *file_path;
	struct weir_p2p_function ssd;
	const char *command;
};

static int export(struct setup *setup, uint64_t offset, uint64_t bytes, uint32_t kind)
{
	struct fake_gpu_export call = { offset, bytes, kind, -1 };

	check(!ioctl(setup->gpu, FAKE_GPU_EXPORT, &call), "the fake GPU exports nothing");
	return call.fd;
}

static struct weir_p2p_import asked(struct setup *setup, int fd, uint32_t flags)
{
	return (struct weir_p2p_import){ .size = sizeof(struct weir_p2p_import),
					 .flags = flags,
					 .ssd = setup->ssd,
					 .fd = fd,
					 .eventfd = -1 };
}

static int import(struct setup *setup, struct weir_p2p_import *call)
{
	return ioctl(setup->control, WEIR_P2P_IMPORT, call);
}

static uint32_t imported(struct setup *setup, uint64_t offset, uint64_t bytes)
{
	int fd = export(setup, offset, bytes, FAKE_GPU_VRAM);
	struct weir_p2p_import call = asked(setup, fd, WEIR_P2P_REQUIRE_VRAM);

	check(!import(setup, &call), "cannot import");
	check(call.in_vram == 1 && call.bytes == bytes && call.segments, "wrong facts about an import");
	close(fd);
	return call.handle;
}

static int io(int node, struct weir_p2p_io call)
{
	int result;

	call.size = sizeof(call);
	result = ioctl(node, WEIR_P2P_IO, &call);
	return result ? result : (int)call.done;
}

static void step_move(struct setup *setup)
{
	uint32_t handle = imported(setup, 8 * MIB, 4 * MIB);
	struct weir_p2p_io call = {
		.handle = handle, .fd = setup->file, .file_offset = 8 * MIB, .bytes = 4 * MIB
	};

	check(io(setup->control, call) == 4 * MIB, "the kernel does not read into an import");
	call.flags = WEIR_P2P_WRITE;
	call.file_offset = 12 * MIB;
	check(io(setup->control, call) == 4 * MIB, "the kernel does not write from an import");
	check(!try_deregister(setup->control, handle), "cannot give it back");
	expect(setup->control, try_deregister(setup->control, handle), ENOENT, "to give it back again");
	expect(setup->control, io(setup->control, call), ENOENT, "I/O on an import that was given back");
}

static void refuse_import(struct setup *setup, struct weir_p2p_import call, int error, const char *what)
{
	expect(setup->control, import(setup, &call), error, what);
}

static void refuse_parts(struct setup *setup, int vram)
{
	struct weir_p2p_import call = asked(setup, vram, 0);

	call.offset = 1;
	refuse_import(setup, call, EINVAL, "an offset that is not of a page");
	call.offset = MIB;
	refuse_import(setup, call, ERANGE, "nothing behind the end");
	call.offset = PAGE;
	call.bytes = MIB;
	refuse_import(setup, call, ERANGE, "more than there is");
	call.bytes = -(uint64_t)PAGE;
	refuse_import(setup, call, ERANGE, "a length that wraps");
	call = asked(setup, vram, 0x40);
	refuse_import(setup, call, EINVAL, "an unknown flag");
	call = asked(setup, vram, 0);
	call.ssd.bus = 0x77;
	refuse_import(setup, call, ENODEV, "an SSD that is not there");
	call = asked(setup, vram, 0);
	call.ssd = (struct weir_p2p_function){ 0 };
	refuse_import(setup, call, ENXIO, "a bridge in place of the SSD");
	call = asked(setup, vram, 0);
	call.eventfd = setup->file;
	refuse_import(setup, call, EINVAL, "a file in place of an eventfd");
}

static void refuse_prp(struct setup *setup, uint32_t handle, uint64_t offset, uint64_t bytes, int error,
		       const char *what)
{
	struct weir_p2p_prp call = {
		.size = sizeof(call), .handle = handle, .offset = offset, .bytes = bytes
	};

	expect(setup->control, ioctl(setup->control, WEIR_P2P_PRP, &call), error, what);
}

static void step_refuse(struct setup *setup)
{
	int vram = export(setup, 0, MIB, FAKE_GPU_VRAM),
	    system_memory = export(setup, 0, MIB, FAKE_GPU_SYSTEM);
	int mixed = export(setup, 0, MIB, FAKE_GPU_MIXED);
	struct weir_p2p_import call = asked(setup, system_memory, 0);
	uint32_t handle;

	refuse_import(setup, asked(setup, -1, 0), EBADF, "no file");
	refuse_import(setup, asked(setup, setup->file, 0), EINVAL, "a file that is no dma-buf");
	refuse_import(setup, asked(setup, system_memory, WEIR_P2P_REQUIRE_VRAM), EREMOTEIO,
		      "system memory for VRAM");
	refuse_import(setup, asked(setup, mixed, WEIR_P2P_REQUIRE_VRAM), EREMOTEIO,
		      "memory that is half in VRAM");
	refuse_parts(setup, vram);
	check(!import(setup, &call) && !call.in_vram, "system memory where that is said to be fine");
	expect(setup->control,
	       io(setup->control,
		  (struct weir_p2p_io){ .handle = call.handle, .fd = setup->file, .bytes = PAGE }),
	       ENOTBLK, "I/O on system memory");
	handle = imported(setup, 0, MIB);
	refuse_prp(setup, handle, 0, 0, EINVAL, "PRP entries of nothing");
	refuse_prp(setup, handle, 0, 3 * MIB, EINVAL, "PRP entries of too much");
	refuse_prp(setup, handle, 2, 512, EINVAL, "PRP entries of an odd address");
	refuse_prp(setup, handle, MIB - 512, 1024, ERANGE, "PRP entries over the end");
	refuse_prp(setup, handle, -(uint64_t)512, 1024, ERANGE, "PRP entries that wrap");
	refuse_prp(setup, handle + 7, 0, 512, ENOENT, "PRP entries of another handle");
	close(vram);
	close(system_memory);
	close(mixed);
}

static void step_moved(struct setup *setup)
{
	int fd = export(setup, 0, MIB, FAKE_GPU_VRAM), event = eventfd(0, EFD_NONBLOCK);
	struct weir_p2p_import call = asked(setup, fd, WEIR_P2P_REQUIRE_VRAM);
	uint64_t count = 0;

	call.eventfd = event;
	check(!import(setup, &call), "cannot import");
	check(read(event, &count, sizeof(count)) < 0, "told of what has not happened");
	check(!ioctl(setup->gpu, FAKE_GPU_MOVE), "the fake GPU does not move");
	check(read(event, &count, sizeof(count)) == sizeof(count) && count == 1,
	      "not told that the buffer moves");
	expect(setup->control,
	       io(setup->control,
		  (struct weir_p2p_io){ .handle = call.handle, .fd = setup->file, .bytes = PAGE }),
	       ESTALE, "I/O on what was moved");
	refuse_prp(setup, call.handle, 0, 512, ESTALE, "PRP entries of what was moved");
	check(!try_deregister(setup->control, call.handle), "cannot give back what was moved");
}

static void report_prp(struct setup *setup, uint32_t handle, uint64_t offset, uint64_t bytes)
{
	struct weir_p2p_prp call = {
		.size = sizeof(call), .handle = handle, .offset = offset, .bytes = bytes
	};

	check(!ioctl(setup->control, WEIR_P2P_PRP, &call), "no PRP entries");
	printf("prp %#llx %#llx %u\n", (unsigned long long)call.prp1, (unsigned long long)call.prp2,
	       call.entries);
}

/* The lists are there until the input ends. */
static void step_prp(struct setup *setup)
{
	uint32_t handle = imported(setup, 8 * MIB, 4 * MIB);
	char line[80];

	report_prp(setup, handle, 512, 512);
	report_prp(setup, handle, 4096 + 512, 4096);
	report_prp(setup, handle, 65536 - 4096, 16384);
	report_prp(setup, handle, MIB + 512, 2 * MIB);
	puts("prp end");
	while (fgets(line, sizeof(line), stdin))
		;
}

static void step_unbound(struct setup *setup)
{
	uint32_t handle = imported(setup, 0, MIB);

	check(system(setup->command) == 0, "%s", setup->command);
	refuse_prp(setup, handle, 0, 512, ESTALE, "PRP entries of an SSD without driver");
	check(!try_deregister(setup->control, handle), "cannot give it back");
	refuse_import(setup, asked(setup, export(setup, 0, MIB, FAKE_GPU_VRAM), 0), ENODEV,
		      "an SSD without driver");
}

static void refuse_io(int node, struct weir_p2p_io call, int error, const char *what)
{
	expect(node, io(node, call), error, what);
}

static void bad_io(struct setup *setup, struct weir_p2p_io good)
{
	struct weir_p2p_io call = good;
	int buffered = open(setup->file_path, O_RDONLY | O_CLOEXEC),
	    reader = open(setup->file_path, O_RDONLY | O_DIRECT | O_CLOEXEC),
	    appender = open(setup->file_path, O_WRONLY | O_APPEND | O_DIRECT | O_CLOEXEC);

	call.fd = buffered;
	refuse_io(setup->node, call, EINVAL, "I/O on a file without O_DIRECT");
	call.fd = reader;
	call.flags = WEIR_P2P_WRITE;
	refuse_io(setup->node, call, EBADF, "a write to a file that is open for reading");
	call.fd = appender;
	refuse_io(setup->node, call, EBADF, "a write to a file that is open with O_APPEND");
	call.fd = -1;
	refuse_io(setup->node, call, EBADF, "I/O on no file");
	call = good;
	call.flags = 8;
	refuse_io(setup->node, call, EINVAL, "an unknown flag");
	call = good;
	call.buffer_offset = 100;
	refuse_io(setup->node, call, EINVAL, "a place that is not of 512 bytes");
	call = good;
	call.buffer_offset = 512;
	refuse_io(setup->node, call, ERANGE, "I/O over the buffer's end");
	call.buffer_offset = -(uint64_t)512;
	refuse_io(setup->node, call, ERANGE, "a place that wraps");
	call = good;
	call.bytes = -(uint64_t)512;
	refuse_io(setup->node, call, ERANGE, "a length that wraps");
	call = good;
	call.file_offset = -(uint64_t)512;
	refuse_io(setup->node, call, EINVAL, "a place in the file that is none");
	call = good;
	call.handle += 5;
	refuse_io(setup->node, call, ENOENT, "I/O on another handle");
	close(buffered);
	close(reader);
}

static void step_io(struct setup *setup)
{
	struct range range = take(setup->node, MIB, MIB);
	struct weir_p2p_io call = {
		.handle = range.handle, .fd = setup->file, .file_offset = MIB, .bytes = MIB
	};

	check(io(setup->node, call) == MIB, "the kernel does not read into a range");
	bad_io(setup, call);
	call.file_offset = (uint64_t)lseek(setup->file, 0, SEEK_END) - 4096;
	call.bytes = 8192;
	call.buffer_offset = MIB - 8192;
	check(io(setup->node, call) == 4096, "a read over the file's end");
	call.file_offset = 2 * MIB - 8192;
	check(io(setup->node, call) == 8192, "the bytes there again");
	drop(&range);
}

static void step_address(struct setup *setup)
{
	struct range range, other;

	expect(setup->node, try_register(setup->node, 4096, 65536, WEIR_P2P_BY_ADDRESS, &range), EINVAL,
	       "an address not of 64 KiB");
	expect(setup->node, try_register(setup->node, 65536, 65536, WEIR_P2P_BY_ADDRESS, &range), EFAULT,
	       "an address of nobody's");
	check(!try_register(setup->node, (1ULL << 32) + 4 * MIB, MIB, WEIR_P2P_BY_ADDRESS, &range),
	      "cannot register by address");
	expect(setup->node, try_register(setup->node, 4 * MIB, 65536, 0, &other), EEXIST,
	       "a part of it by offset");
	range.memory =
		mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, setup->node, (off_t)range.mmap_offset);
	check(range.memory != MAP_FAILED, "cannot map");
	check(pread(setup->file, range.memory, MIB, 0) == MIB, "cannot read");
	check(system("rmmod fake_shim 2>/dev/null") != 0, "the shim went with something pinned");
	check(system(setup->command) == 0, "%s", setup->command);
	expect(-1, (int)pread(setup->file, range.memory, 4096, 0), EFAULT,
	       "to read into what was taken back");
	expect(setup->node, try_deregister(setup->node, range.handle), ENOENT,
	       "to give back what was taken back");
	check(!try_register(setup->node, 1ULL << 32, MIB, WEIR_P2P_BY_ADDRESS, &other),
	      "cannot register again");
	drop(&other);
}

static void step_errno(struct setup *setup)
{
	struct range range;

	expect(setup->node, try_register(setup->node, 1ULL << 32, MIB, WEIR_P2P_BY_ADDRESS, &range),
	       EOPNOTSUPP, "memory whose driver does not pin it");
	expect(setup->node, try_register(setup->node, 1ULL << 32, 1ULL << 39, WEIR_P2P_BY_ADDRESS, &range),
	       ERANGE, "more than the window has");
}

static const struct {
	const char *name;
	void (*run)(struct setup *setup);
} steps[] = {
	{ "move", step_move },       { "refuse", step_refuse },   { "moved", step_moved },
	{ "prp", step_prp },         { "unbound", step_unbound }, { "io", step_io },
	{ "address", step_address }, { "errno", step_errno },
};

int do_import(char **argv)
{
	struct setup setup = { open_node(WEIR_P2P_CONTROL),
			       open_node(argv[0]),
			       open_node("/dev/fake_gpu"),
			       -1,
			       argv[1],
			       function_at(argv[2], 0),
			       argv[4] };

	setup.file = open(argv[1], O_RDWR | O_DIRECT | O_CLOEXEC);
	check(setup.file >= 0, "cannot open %s", argv[1]);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (!strcmp(argv[3], steps[i].name)) {
			steps[i].run(&setup);
			printf("%s: good\n", argv[3]);
			return 0;
		}
	give_up("no step %s", argv[3]);
}
