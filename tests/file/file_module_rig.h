/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_module_rig.h: a pretended GPU, whose memory is a memfd, which is also what a pretended window of
 * weir_p2p maps. The calls of the library to the system pass through the test.
 *
 * Owns: what stands in for device, module and system, and what tests may have them do. For one program.
 */
#ifndef WEIR_TESTS_FILE_MODULE_RIG_H
#define WEIR_TESTS_FILE_MODULE_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../kmod-p2p/weir_p2p.h"
#include "file/files.h"

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

enum { BASE = 0x10000000, GPU_BYTES = 1 << 20, PAGE = 4096, BYTES = 65536 };

static int gpu_file, open_file = -1;
static char *gpu, *buffer, path[] = "/tmp/weir_file_module_XXXXXX";
static struct weir_context context;
static struct weir_registration *registration;

/* The call that a stream makes once it comes to it. */
static void (*deferred)(void *of);
static void *deferred_of;

static int pass_open(const char *name, int flags, int mode)
{
	if (!strncmp(name, "/dev/weir_p2p/", strlen("/dev/weir_p2p/")))
		return strstr(name, "-0") ? dup(gpu_file) : (errno = ENOENT, -1);
	return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

int open(const char *name, int flags, ...)
{
	va_list list;
	int mode;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, int) : 0;
	va_end(list);
	return pass_open(name, flags, mode);
}

int access(const char *name, int mode)
{
	return strcmp(name, "/dev/weir_p2p") ? (int)syscall(SYS_faccessat, AT_FDCWD, name, mode) : 0;
}

enum { UNITS = GPU_BYTES / BYTES };

/* Units of the window that are registered, and how many each range has that begins there. */
static bool units[UNITS];
static unsigned lengths[UNITS];
static bool lies_elsewhere; /* the window's memory is none of the device's that was asked for */

static unsigned registered(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < UNITS; i++)
		count += units[i];
	return count;
}

/* As the module has it: no range overlaps another one. */
static int add_range(struct weir_p2p_register *range)
{
	unsigned first = (unsigned)((range->offset - BASE) / BYTES), count = (unsigned)(range->bytes / BYTES);

	assert_true(range->offset % BYTES == 0 && range->bytes % BYTES == 0 && first + count <= UNITS);
	for (unsigned i = 0; i < count; i++)
		if (units[first + i])
			return errno = EEXIST, -1;
	for (unsigned i = 0; i < count; i++)
		units[first + i] = true;
	lengths[first] = count;
	range->mmap_offset = lies_elsewhere ? GPU_BYTES - range->bytes : range->offset - BASE;
	range->handle = first + 1;
	return 0;
}

static int remove_range(const struct weir_p2p_deregister *range)
{
	assert_in_range(range->handle, 1, UNITS);
	for (unsigned i = 0; i < lengths[range->handle - 1]; i++) {
		assert_true(units[range->handle - 1 + i]);
		units[range->handle - 1 + i] = false;
	}
	return 0;
}

static bool no_mapping; /* of shared memory */

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
	if (no_mapping && (flags & MAP_SHARED) && file >= 0) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

/* A window that is none to use: one of a newer module, one without a shim, one that does not answer. */
static enum { WINDOW_GOOD, WINDOW_NEWER, WINDOW_WITHOUT_SHIM, WINDOW_SILENT } window;

static void say_what_it_is(struct weir_p2p_info *info)
{
	info->abi = WEIR_P2P_ABI + (window == WINDOW_NEWER);
	info->features = window == WINDOW_WITHOUT_SHIM ? 0 : WEIR_P2P_FEATURE_ADDRESSES;
	info->page_bytes = PAGE;
	info->address_align = BYTES;
}

int ioctl(int file, unsigned long call, ...)
{
	va_list list;
	void *argument;

	va_start(list, call);
	argument = va_arg(list, void *);
	va_end(list);
	if (call == WEIR_P2P_REGISTER)
		return add_range(argument);
	if (call == WEIR_P2P_DEREGISTER)
		return remove_range(argument);
	if (call != WEIR_P2P_INFO)
		return (int)syscall(SYS_ioctl, file, call, argument);
	if (window == WINDOW_SILENT)
		return errno = EIO, -1;
	say_what_it_is(argument);
	return 0;
}

static bool block_changes; /* somebody writes to the file's first block each time that it is read */

ssize_t pread(int file, void *to, size_t bytes, off_t offset)
{
	static char next;
	ssize_t got = syscall(SYS_pread64, file, to, bytes, offset);

	if (block_changes && got > 0 && offset == 0)
		*(char *)to = next++;
	return got;
}

static unsigned writes_lost, writes_failing; /* so many more: nothing is written, and that is said or not */

ssize_t pwrite(int file, const void *from, size_t bytes, off_t offset)
{
	if (writes_lost) {
		writes_lost--;
		return (ssize_t)bytes;
	}
	if (writes_failing) {
		writes_failing--;
		return errno = ENOSPC, -1;
	}
	return syscall(SYS_pwrite64, file, from, bytes, offset);
}

static enum weir_peer_writes peer_writes = WEIR_PEER_WRITES_ORDERED;
static unsigned flushes;
static bool flush_fails;

static int peer_flush(struct weir_backend *backend)
{
	(void)backend;
	flushes++;
	return flush_fails ? weir_fail(EIO, "no flush of the device's memory") : 0;
}

static void properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	strcpy(out->name, "pretended");
	strcpy(out->pci_address, "0000:01:00.0");
	out->peer_writes = peer_writes;
}

static bool no_memory;               /* of the host's */
static uint64_t device_used = BYTES; /* the registered memory is the first; what comes last goes first */

static int allocate(struct weir_backend *backend, size_t bytes, enum weir_memory kind, void **host,
		    uint64_t *device)
{
	(void)backend;
	if (kind != WEIR_MEMORY_HOST) {
		*host = NULL;
		*device = BASE + device_used;
		device_used += (bytes + BYTES - 1) / BYTES * BYTES;
		return device_used <= GPU_BYTES ? 0 : -ENOMEM;
	}
	*host = no_memory ? NULL : aligned_alloc(PAGE, (bytes + PAGE - 1) & ~(size_t)(PAGE - 1));
	*device = (uintptr_t)*host;
	return *host ? 0 : weir_fail(ENOMEM, "no memory");
}

static void release(struct weir_backend *backend, uint64_t device, size_t bytes, enum weir_memory kind)
{
	(void)backend;
	if (kind == WEIR_MEMORY_HOST)
		free((void *)(uintptr_t)device);
	else if (device + (bytes + BYTES - 1) / BYTES * BYTES == BASE + device_used)
		device_used = device - BASE;
}

static int h2d(struct weir_backend *backend, uint64_t device, const void *host, size_t bytes)
{
	(void)backend;
	memcpy(gpu + device - BASE, host, bytes);
	return 0;
}

static int d2h(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	(void)backend;
	memcpy(host, gpu + device - BASE, bytes);
	return 0;
}

static int examine(struct weir_backend *backend, uint64_t address, uint64_t bytes, void **host)
{
	(void)backend, (void)address, (void)bytes;
	*host = NULL;
	return 0;
}

static int defer(struct weir_backend *backend, void *stream, void (*call)(void *), void *of, void **gate)
{
	(void)backend, (void)stream;
	deferred = call;
	deferred_of = of;
	*gate = of;
	return 0;
}

static void resume(struct weir_backend *backend, void *gate)
{
	(void)backend, (void)gate;
}

static struct weir_backend_ops ops = { .size = sizeof(ops),
				       .name = "pretended",
				       .allocate = allocate,
				       .release = release,
				       .h2d = h2d,
				       .d2h = d2h,
				       .properties = properties,
				       .examine = examine,
				       .defer = defer,
				       .resume = resume,
				       .peer_flush = peer_flush };
static struct weir_backend backend = { &ops };

/* A file of 'f', and registered memory of 's', which is not yet what is to be written. */
static int set_up(void **state)
{
	(void)state;
	gpu_file = memfd_create("gpu", 0);
	assert_int_equal(ftruncate(gpu_file, GPU_BYTES), 0);
	gpu = mmap(NULL, GPU_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, gpu_file, 0);
	buffer = aligned_alloc(PAGE, BYTES);
	open_file = mkstemp(path);
	memset(buffer, 'f', BYTES);
	assert_int_equal(write(open_file, buffer, BYTES), BYTES);
	close(open_file);
	open_file = open(path, O_RDWR | O_DIRECT);
	context.backend = &backend;
	must(weir_handle_add(&context, WEIR_HANDLE_CONTEXT, ""));
	must(weir_register(&context, BASE, BYTES, NULL, &registration));
	memset(gpu, 's', BYTES);
	return 0;
}

static char first_byte(void)
{
	assert_int_equal(pread(open_file, buffer, PAGE, 0), PAGE);
	return buffer[0];
}

static struct weir_registration *register_at(struct weir_context *of, uint64_t at, uint64_t bytes)
{
	struct weir_registration *made;

	must(weir_register(of, BASE + at, bytes, NULL, &made));
	return made;
}

/* What a read of a file's first @bytes puts @at, is there, and nothing behind it. */
static void reads(struct weir_registration *made, uint64_t at, size_t bytes)
{
	memset(gpu + at, 'x', bytes + PAGE);
	assert_int_equal(weir_file_read(made, open_file, bytes, 0, 0), bytes);
	assert_int_equal(pread(open_file, buffer, bytes, 0), bytes);
	assert_memory_equal(gpu + at, buffer, bytes);
	assert_int_equal(gpu[at + bytes], 'x');
}

/* A second context, which has nothing yet. */
static struct weir_context late;

static void open_late(void)
{
	static bool added;

	late.backend = &backend;
	if (!added)
		must(weir_handle_add(&late, WEIR_HANDLE_CONTEXT, ""));
	added = true;
}

static int tear_down(void **state)
{
	(void)state;
	close(open_file);
	unlink(path);
	return 0;
}

#endif
