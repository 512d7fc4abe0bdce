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

static void say_what_it_is(struct weir_p2p_info *info)
{
	info->abi = WEIR_P2P_ABI;
	info->features = WEIR_P2P_FEATURE_ADDRESSES;
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
	say_what_it_is(argument);
	return 0;
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

/* Registrations share a range that has all of them; it goes with the last. What reaches beyond one has none
 * of it. */
static void ranges_go_with_their_registrations(void **state)
{
	enum { AT = 8 * BYTES };
	struct weir_file_route route = { .size = sizeof(route) };
	struct weir_registration *first, *last, *beyond;
	unsigned before;

	(void)state;
	if (open_file < 0)
		skip();                                         /* no O_DIRECT there */
	must(weir_file_route(registration, open_file, &route)); /* what it is tried with has a range, too */
	before = registered();
	first = register_at(&context, AT + PAGE, PAGE);
	last = register_at(&context, AT + BYTES - 2 * PAGE, 2 * PAGE);
	beyond = register_at(&context, AT + BYTES - PAGE, 2 * PAGE);
	assert_int_equal(registered(), before + 1);
	assert_non_null(first->pin);
	assert_ptr_equal(last->pin, first->pin);
	assert_null(beyond->pin);
	reads(first, AT + PAGE, PAGE);
	reads(last, AT + BYTES - 2 * PAGE, 2 * PAGE);
	reads(beyond, AT + BYTES - PAGE, 2 * PAGE);
	must(weir_deregister(first));
	assert_int_equal(registered(), before + 1);
	must(weir_deregister(beyond));
	must(weir_deregister(last));
	assert_int_equal(registered(), before);
}

/* One of weir's own gets pages as a whole for the first of its parts, and keeps them until it is freed and no
 * part is registered. */
static void an_allocation_keeps_its_pages(void **state)
{
	struct weir_memory_block block = { .address = BASE + 10 * BYTES,
					   .bytes = 2 * BYTES,
					   .kind = WEIR_MEMORY_DEVICE };
	unsigned before = registered();

	(void)state;
	for (unsigned freed_first = 0; freed_first < 2; freed_first++) {
		struct weir_registration *one, *other;

		context.memory = &block;
		one = register_at(&context, 10 * BYTES, PAGE);
		other = register_at(&context, 11 * BYTES + PAGE, PAGE);
		assert_int_equal(registered(), before + 2);
		assert_non_null(one->pin);
		assert_ptr_equal(one->pin, other->pin);
		must(weir_deregister(one));
		if (!freed_first)
			must(weir_deregister(other));
		assert_int_equal(registered(), before + 2);
		weir_files_forget(&context, block.address + BYTES); /* of another one */
		assert_int_equal(registered(), before + 2);
		weir_files_forget(&context, block.address);
		assert_int_equal(registered(), before + (freed_first ? 2 : 0));
		if (freed_first)
			must(weir_deregister(other));
		assert_int_equal(registered(), before);
		context.memory = NULL;
	}
}

static void pages_that_cannot_be_mapped_are_given_back(void **state)
{
	unsigned before = registered();
	struct weir_registration *made;

	(void)state;
	no_mapping = true;
	assert_int_equal(weir_register(&context, BASE + 8 * BYTES, PAGE,
				       WEIR_OPTIONS(register, .path = WEIR_FILE_MODULE), &made),
			 -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "pages of weir_p2p cannot be mapped"));
	assert_int_equal(registered(), before);
	made = register_at(&context, 8 * BYTES, PAGE);
	no_mapping = false;
	assert_int_equal(made->path, WEIR_FILE_BOUNCE);
	assert_int_equal(registered(), before);
	must(weir_deregister(made));
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

static void read_pages(struct weir_registration *made, int result)
{
	struct weir_file_io io[4];
	unsigned before = flushes;

	for (unsigned i = 0; i < 4; i++)
		io[i] = (struct weir_file_io){
			.registration = made, .file = open_file, .bytes = PAGE, .at = i * PAGE
		};
	assert_int_equal(weir_file_batch(&late, io, 4), result < 0 ? result : 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(io[i].result, result);
	assert_int_equal(flushes, before + 1);
	assert_int_equal(weir_file_read(made, open_file, PAGE, 0, 0), result);
	assert_true(flushes > before + 1);
}

/* What an SSD has put into the device's memory lanes see when the host has flushed it: else it is not read.
 */
static void what_arrives_is_flushed(void **state)
{
	unsigned before = registered();
	struct weir_registration *made;

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	open_late();
	peer_writes = WEIR_PEER_WRITES_FLUSHED;
	made = register_at(&late, 9 * BYTES, BYTES);
	reads(made, 9 * BYTES, PAGE);
	for (unsigned attached = 0; attached < 2; attached++) {
		if (attached)
			must(weir_file_attach(&late, open_file));
		read_pages(made, PAGE);
		flush_fails = true;
		read_pages(made, -EIO);
		assert_non_null(strstr(weir_last_error(), "no flush of the device's memory"));
		flush_fails = false;
	}
	must(weir_deregister(made));
	must(weir_files_close(&late));
	assert_int_equal(registered(), before); /* what it was tried with, too */
	peer_writes = WEIR_PEER_WRITES_ORDERED;
}

/* A window over other memory than the device says: that is tried, and files go by staging. */
static void what_does_not_arrive_is_not_believed(void **state)
{
	struct weir_file_route route = { .size = sizeof(route) };
	struct weir_registration *made;

	(void)state;
	if (open_file < 0)
		skip(); /* no O_DIRECT there */
	open_late();
	lies_elsewhere = true;
	made = register_at(&late, 9 * BYTES, BYTES);
	assert_int_equal(made->path, WEIR_FILE_MODULE);
	must(weir_file_route(made, open_file, &route));
	assert_int_equal(route.path, WEIR_FILE_BOUNCE);
	assert_non_null(strstr(route.reason, "the device finds 65536 wrong, the first at 0"));
	reads(made, 9 * BYTES, PAGE);
	must(weir_deregister(made));
	must(weir_files_close(&late));
	lies_elsewhere = false;
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
		cmocka_unit_test(ranges_go_with_their_registrations),
		cmocka_unit_test(an_allocation_keeps_its_pages),
		cmocka_unit_test(pages_that_cannot_be_mapped_are_given_back),
		cmocka_unit_test(what_arrives_is_flushed),
		cmocka_unit_test(what_does_not_arrive_is_not_believed),
	};
	int failed;

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	failed = cmocka_run_group_tests_name("file_module", tests, set_up, tear_down);

	fflush(NULL);
	_exit(failed); /* threads of files wait for more */
}
