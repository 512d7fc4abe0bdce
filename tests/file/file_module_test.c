/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_module_test.c: files and the kernel module's path, on a pretended GPU: its memory is a memfd, which is
 * also what a pretended window of weir_p2p maps. The calls of the library to the system pass through the
 * test.
 */
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

static void say_what_it_is(struct weir_p2p_info *info)
{
	info->abi = WEIR_P2P_ABI;
	info->features = WEIR_P2P_FEATURE_ADDRESSES;
	info->page_bytes = PAGE;
	info->address_align = BYTES;
}

int ioctl(int file, unsigned long call, ...)
{
	struct weir_p2p_register *range;
	va_list list;
	void *argument;

	va_start(list, call);
	argument = va_arg(list, void *);
	va_end(list);
	if (call == WEIR_P2P_INFO) {
		say_what_it_is(argument);
	} else if (call == WEIR_P2P_REGISTER) {
		range = argument;
		range->mmap_offset = range->offset - BASE;
		range->handle = 1;
	} else if (call != WEIR_P2P_DEREGISTER) {
		return (int)syscall(SYS_ioctl, file, call, argument);
	}
	return 0;
}

static void properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	strcpy(out->name, "pretended");
	strcpy(out->pci_address, "0000:01:00.0");
	out->peer_writes = WEIR_PEER_WRITES_ORDERED;
}

static bool no_memory; /* of the host's */

static int allocate(struct weir_backend *backend, size_t bytes, enum weir_memory kind, void **host,
		    uint64_t *device)
{
	static uint64_t used = BYTES; /* the registered memory is the first */

	(void)backend;
	if (kind != WEIR_MEMORY_HOST) {
		*host = NULL;
		*device = BASE + used;
		used += (bytes + BYTES - 1) / BYTES * BYTES;
		return used <= GPU_BYTES ? 0 : -ENOMEM;
	}
	*host = no_memory ? NULL : aligned_alloc(PAGE, (bytes + PAGE - 1) & ~(size_t)(PAGE - 1));
	*device = (uintptr_t)*host;
	return *host ? 0 : weir_fail(ENOMEM, "no memory");
}

static void release(struct weir_backend *backend, uint64_t device, size_t bytes, enum weir_memory kind)
{
	(void)backend, (void)bytes;
	if (kind == WEIR_MEMORY_HOST)
		free((void *)(uintptr_t)device);
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

static const struct weir_backend_ops ops = { .size = sizeof(ops),
					     .name = "pretended",
					     .allocate = allocate,
					     .release = release,
					     .h2d = h2d,
					     .d2h = d2h,
					     .properties = properties,
					     .examine = examine,
					     .defer = defer,
					     .resume = resume };
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

static struct weir_file_io write_of(int file)
{
	return (struct weir_file_io){
		.registration = registration, .file = file, .operation = WEIR_FILE_WRITE, .bytes = 2 * PAGE
	};
}

static void the_module_is_the_way(void **state)
{
	struct weir_file_route route = { .size = sizeof(route) };

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	must(weir_file_route(registration, open_file, &route));
	assert_int_equal(route.path, WEIR_FILE_MODULE);
}

/* What is in the way is what is said: there may be memory again, and threads for it. */
static void want_of_memory_is_said(void **state)
{
	struct weir_file_io io = { .registration = registration, .file = open_file, .bytes = PAGE };

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	no_memory = true;
	assert_int_equal(weir_file_batch(&context, &io, 1), -ENOMEM);
	no_memory = false;
}

/* The first write of a file system is tried before it is made: not where the batch is refused. */
static void a_refused_batch_writes_nothing(void **state)
{
	struct weir_file_io io[2] = { write_of(open_file), write_of(9999) };

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	assert_int_equal(weir_file_batch(&context, io, 2), -EBADF);
	assert_int_equal(first_byte(), 'f');
}

/* ... nor where there is no memory to do it with. */
static void without_memory_nothing_is_written(void **state)
{
	struct weir_file_io io = write_of(open_file);

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	no_memory = true;
	assert_int_not_equal(weir_file_batch(&context, &io, 1), 0);
	no_memory = false;
	assert_int_equal(first_byte(), 'f');
}

/* ... and not before the stream has come to it. */
static void an_enqueued_write_waits_for_its_turn(void **state)
{
	struct weir_file_io io = write_of(open_file);

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	must(weir_file_enqueue(&context, NULL, &io, 1));
	assert_int_equal(first_byte(), 'f');
	assert_int_equal(io.result, -EINPROGRESS);
	memset(gpu, 'k', BYTES);
	deferred(deferred_of);
	while (__atomic_load_n(&io.result, __ATOMIC_ACQUIRE) == -EINPROGRESS)
		usleep(1000);
	assert_int_equal(io.result, 2 * PAGE);
	assert_int_equal(first_byte(), 'k');
}

static int tear_down(void **state)
{
	(void)state;
	close(open_file);
	unlink(path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_module_is_the_way),
		cmocka_unit_test(want_of_memory_is_said),
		cmocka_unit_test(a_refused_batch_writes_nothing),
		cmocka_unit_test(without_memory_nothing_is_written),
		cmocka_unit_test(an_enqueued_write_waits_for_its_turn),
	};
	int failed = cmocka_run_group_tests_name("file_module", tests, set_up, tear_down);

	fflush(NULL);
	_exit(failed); /* threads of files wait for more */
}
