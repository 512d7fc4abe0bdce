/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controllers_test.c: what a backend does for controllers on PCI Express, and with streams of the caller's,
 * in front of a driver that refuses what a real one would (pretended.h). Given: the backend's module. A file
 * whose name has "registers" in it stands for a BAR.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/backend.h"
#include "pretended.h"

enum { PAGE = 4096 };

static const struct weir_backend_ops *ops;
static struct weir_backend *backend;

/* The stand-in itself, preloaded. */
static __typeof__(pretended_register) *take;
static __typeof__(pretended_unregister) *give_back;
static __typeof__(pretended_run) *run_kernel;

static void *map_registers_of(const char *name, size_t bytes)
{
	int file = memfd_create(name, MFD_CLOEXEC);
	void *memory;

	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, (off_t)bytes), 0);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_true(memory != MAP_FAILED);
	close(file);
	return memory;
}

static int open_backend(void **state)
{
	(void)state;
	return ops->open("", NULL, &backend);
}

static int close_backend(void **state)
{
	(void)state;
	ops->close(backend);
	return 0;
}

static void test_registers(void **state)
{
	char *registers = map_registers_of("registers", 3 * PAGE);
	uint64_t device = 0;

	(void)state;
	assert_int_equal(ops->map_registers(backend, registers, 2 * PAGE, &device), 0);
	assert_int_not_equal(device, 0);
	assert_int_equal(ops->map_registers(backend, registers + PAGE, PAGE, &device),
			 -ENOTSUP); /* they are already */
	ops->unmap_registers(backend, registers, 2 * PAGE);
	assert_int_equal(ops->map_registers(backend, registers + PAGE, PAGE, &device), 0);
	ops->unmap_registers(backend, registers + PAGE, PAGE);
	munmap(registers, 3 * PAGE);
}

/* What a driver refuses comes as a sentence, and leaves nothing behind: the stand-in counts at its end. */
static void test_no_registers(void **state)
{
	char *registers = map_registers_of("registers", 2 * PAGE),
	     *ordinary = map_registers_of("pages", PAGE);
	uint64_t device;

	(void)state;
	assert_int_equal(ops->map_registers(backend, ordinary, PAGE, &device), -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "maps no device registers: "));
	assert_int_equal(ops->map_registers(backend, registers + 4, PAGE, &device), -EINVAL);
	assert_non_null(strstr(weir_last_error(), "are not whole pages of 4096"));
	assert_int_equal(ops->map_registers(backend, registers, 100, &device), -EINVAL);
	setenv("WEIR_PRETENDED_NO_REGISTERS", "1", 1);
	assert_int_equal(ops->map_registers(backend, registers, PAGE, &device), -ENOTSUP);
	unsetenv("WEIR_PRETENDED_NO_REGISTERS");
	munmap(registers, 2 * PAGE);
	munmap(ordinary, PAGE);
}

static void test_host_pages(void **state)
{
	char *pages = map_registers_of("pages", 2 * PAGE), *registers = map_registers_of("registers", PAGE);
	uint64_t device = 0;

	(void)state;
	assert_int_equal(ops->register_host(backend, pages, 2 * PAGE, &device), 0);
	assert_int_not_equal(device, 0);
	assert_true(ops->register_host(backend, pages, PAGE, &device) < 0);
	assert_non_null(strstr(weir_last_error(), "cannot register 4096 bytes of host memory"));
	ops->unregister_host(backend, pages, 2 * PAGE);
	assert_true(ops->register_host(backend, registers, PAGE, &device) < 0); /* registers are no memory */
	assert_int_equal(ops->register_host(backend, pages + 512, PAGE, &device), -EINVAL);
	munmap(pages, 2 * PAGE);
	munmap(registers, PAGE);
}

/* The file is all of the allocation, or all pages of the range, and the offset leads to the address. */
static void check_export(uint64_t allocation, uint64_t from, size_t bytes)
{
	uint64_t offset = 1;
	struct stat about;
	int file = -1;

	assert_int_equal(ops->export_memory(backend, allocation + from, bytes, &file, &offset), 0);
	assert_true(file >= 0);
	assert_int_equal(fstat(file, &about), 0);
	assert_true((uint64_t)about.st_size >= offset + bytes);
	assert_true(offset == from ||
		    offset == from % PAGE); /* of the allocation's beginning, or of the page's */
	close(file);
}

static void test_export(void **state)
{
	struct weir_backend_properties properties = { .wave_lanes = 0 };
	uint64_t allocation, offset;
	void *host;
	int file;

	(void)state;
	ops->properties(backend, &properties);
	if (!properties.export_memory.has)
		skip();
	assert_int_equal(ops->allocate(backend, 4 * PAGE, WEIR_MEMORY_DEVICE, &host, &allocation), 0);
	check_export(allocation, 0, 4 * PAGE);
	check_export(allocation, PAGE, PAGE);
	check_export(allocation, PAGE + 512, 512);
	check_export(allocation, PAGE + 512, PAGE); /* of two pages */
	check_export(allocation, 2 * PAGE - 8, 16);
	check_export(allocation, 512, 4 * PAGE - 512);
	assert_true(ops->export_memory(backend, allocation, 5 * PAGE, &file, &offset) < 0);
	assert_non_null(strstr(weir_last_error(), "exports no dma-buf of 20480 bytes"));
	ops->release(backend, allocation, 4 * PAGE, WEIR_MEMORY_DEVICE);
}

/*
 * What real drivers refuse, asked of the stand-in without the backend, which would not ask for some of it.
 * Each case fails on a stand-in that lacks the check of that name (controllers_lax_test.sh).
 */
static void test_driver_unaligned(void **state)
{
	char *pages = map_registers_of("pages", 2 * PAGE);

	(void)state;
	assert_int_equal(take(pages + 512, PAGE, false, true), PRETENDED_UNALIGNED);
	assert_int_equal(take(pages, 512, false, true), PRETENDED_UNALIGNED);
	assert_int_equal(take(pages, 0, false, true), PRETENDED_UNALIGNED);
	munmap(pages, 2 * PAGE);
}

/* Registers behind ordinary pages, at addresses that follow each other. */
static char *map_both(void)
{
	char *both = map_registers_of("pages", 2 * PAGE);
	int file = memfd_create("registers", MFD_CLOEXEC);

	assert_int_equal(ftruncate(file, PAGE), 0);
	assert_ptr_equal(mmap(both + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0),
			 both + PAGE);
	close(file);
	return both;
}

static void test_driver_kind(void **state)
{
	char *both = map_both();

	(void)state;
	assert_int_equal(take(both, PAGE, true, true), PRETENDED_WRONG_KIND);
	assert_int_equal(take(both + PAGE, PAGE, false, true), PRETENDED_WRONG_KIND);
	assert_int_equal(take(both, 2 * PAGE, true, true), PRETENDED_WRONG_KIND);
	assert_int_equal(take(both, 2 * PAGE, false, true), PRETENDED_WRONG_KIND);
	munmap(both, 2 * PAGE);
}

/* Revoked: nothing is mapped there any more, or less than was asked for, or memory has taken its place. */
static void test_driver_gone(void **state)
{
	char *registers = map_registers_of("registers", 3 * PAGE);

	(void)state;
	munmap(registers + PAGE, PAGE);
	assert_int_equal(take(registers + PAGE, PAGE, true, true), PRETENDED_GONE);
	assert_int_equal(take(registers + PAGE, PAGE, false, true), PRETENDED_GONE);
	assert_int_equal(take(registers, 3 * PAGE, true, true), PRETENDED_GONE);
	assert_ptr_equal(mmap(registers, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 registers);
	assert_int_equal(take(registers, PAGE, true, true), PRETENDED_WRONG_KIND);
	munmap(registers, PAGE);
	munmap(registers + 2 * PAGE, PAGE);
}

static void test_driver_twice(void **state)
{
	char *pages = map_registers_of("pages", 3 * PAGE);

	(void)state;
	assert_int_equal(take(pages + PAGE, PAGE, false, true), PRETENDED_GOOD);
	assert_int_equal(take(pages + PAGE, PAGE, false, true), PRETENDED_TWICE);
	assert_int_equal(take(pages, 3 * PAGE, false, true), PRETENDED_TWICE);
	assert_false(give_back(pages)); /* not where it begins */
	assert_true(give_back(pages + PAGE));
	assert_false(give_back(pages + PAGE));
	munmap(pages, 3 * PAGE);
}

/** struct use - pages that a kernel uses while another thread gives them back */
struct use {
	void *pages;
	atomic_int thread;
	atomic_bool inside, returned;
	bool ended, ended_before;
};

static void *give_back_in_use(void *argument)
{
	struct use *use = argument;

	while (!atomic_load(&use->inside))
		sched_yield();
	atomic_store(&use->thread, gettid());
	(void)give_back(use->pages);
	use->ended_before = use->ended;
	atomic_store(&use->returned, true);
	return NULL;
}

/* Thread @id waits for something. */
static bool sleeps(int id)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
	file = id ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	if (fscanf(file, "%*d %*s %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'S';
}

/* A kernel that goes on until the other thread waits for it, or does not wait. */
static void use_pages(void *argument)
{
	struct use *use = *(struct use **)argument;

	atomic_store(&use->inside, true);
	while (!atomic_load(&use->returned) && !sleeps(atomic_load(&use->thread)))
		sched_yield();
	use->ended = !atomic_load(&use->returned);
}

static void test_driver_use(void **state)
{
	struct use use = { .pages = map_registers_of("pages", PAGE) }, *argument = &use;
	pthread_t thread;

	(void)state;
	assert_int_equal(take(use.pages, PAGE, false, true), PRETENDED_GOOD);
	assert_int_equal(pthread_create(&thread, NULL, give_back_in_use, &use), 0);
	assert_int_equal(run_kernel(use_pages, 1, 1, &argument), 0);
	pthread_join(thread, NULL);
	assert_true(use.ended_before);
	munmap(use.pages, PAGE);
}

/* Registers that were revoked cannot be mapped again, which is said; those that were not go on. */
static void test_revoked_registers(void **state)
{
	char *registers = map_registers_of("registers", 2 * PAGE);
	uint64_t device;

	(void)state;
	assert_int_equal(ops->map_registers(backend, registers, 2 * PAGE, &device), 0);
	assert_ptr_equal(mmap(registers, 2 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 registers);
	ops->unmap_registers(backend, registers, 2 * PAGE);
	assert_int_equal(ops->map_registers(backend, registers, 2 * PAGE, &device), -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "maps no device registers: "));
	munmap(registers, 2 * PAGE);
	assert_int_equal(ops->map_registers(backend, registers, PAGE, &device), -ENOTSUP);
	assert_true(ops->register_host(backend, registers, PAGE, &device) < 0);
}

/* Launches follow what is in the stream, and what comes into the stream follows them; never the other way. */
static void test_joined_streams(void **state)
{
	void (*order)(const void **first, const void **behind) = NULL;
	const void *first[2], *behind[2];
	void *stream;

	(void)state;
	*(void **)&order = dlsym(RTLD_DEFAULT, "pretended_order");
	assert_non_null(order);
	assert_int_equal(ops->stream_open(backend, &stream), 0);
	assert_int_equal(ops->stream_join(backend, stream, WEIR_JOIN_AFTER), 0);
	order(&first[0], &behind[0]);
	assert_ptr_equal(first[0], stream);
	assert_int_equal(ops->stream_join(backend, stream, WEIR_JOIN_BEFORE), 0);
	order(&first[1], &behind[1]);
	assert_ptr_equal(behind[1], stream);
	assert_ptr_equal(behind[0], first[1]); /* the stream of launches */
	ops->stream_close(backend, stream);
}

static unsigned called;

/* The requests end at once. */
static void note_call(void *of)
{
	called++;
	ops->resume(backend, *(void **)of);
}

/* A request behind a kernel that failed: who waits for it is told all the same. */
static void test_calls_behind_a_failure(void **state)
{
	void *gate = NULL;

	(void)state;
	called = 0;
	assert_int_equal(setenv("WEIR_PRETENDED_FAILED", "1", 1), 0);
	alarm(60); /* else the stream waits for the call */
	assert_int_equal(ops->defer(backend, NULL, note_call, &gate, &gate), 0);
	alarm(0);
	assert_int_equal(unsetenv("WEIR_PRETENDED_FAILED"), 0);
	assert_int_equal(called, 1);
}

/* Each is had, or there is a reason. */
static void test_abilities(void **state)
{
	struct weir_backend_properties properties = { .wave_lanes = 0 };
	const struct weir_ability *all[] = { &properties.map_registers, &properties.register_host,
					     &properties.export_memory };

	(void)state;
	ops->properties(backend, &properties);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		assert_true(all[i]->has == !all[i]->why[0]);
	assert_true(properties.register_host.has);
	assert_int_equal(properties.export_memory.has, properties.dma_buf);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_registers, open_backend, close_backend),
		cmocka_unit_test_setup_teardown(test_no_registers, open_backend, close_backend),
		cmocka_unit_test_setup_teardown(test_host_pages, open_backend, close_backend),
		cmocka_unit_test_setup_teardown(test_export, open_backend, close_backend),
		cmocka_unit_test_setup_teardown(test_abilities, open_backend, close_backend),
		cmocka_unit_test_setup_teardown(test_joined_streams, open_backend, close_backend),
		cmocka_unit_test_setup_teardown(test_calls_behind_a_failure, open_backend, close_backend),
		cmocka_unit_test_setup_teardown(test_revoked_registers, open_backend, close_backend),
		cmocka_unit_test(test_driver_unaligned),
		cmocka_unit_test(test_driver_kind),
		cmocka_unit_test(test_driver_gone),
		cmocka_unit_test(test_driver_twice),
		cmocka_unit_test(test_driver_use),
	};
	void *module = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
	const struct weir_backend_ops *const *found = module ? dlsym(module, "weir_backend_module") : NULL;

	if (!found) {
		printf("Bail out! no module: %s\n", count == 2 ? dlerror() : "none given");
		return 1;
	}
	ops = *found;
	*(void **)&take = dlsym(RTLD_DEFAULT, "pretended_register");
	*(void **)&give_back = dlsym(RTLD_DEFAULT, "pretended_unregister");
	*(void **)&run_kernel = dlsym(RTLD_DEFAULT, "pretended_run");
	if (!take || !give_back || !run_kernel) {
		printf("Bail out! the stand-in for the driver is not preloaded\n");
		return 1;
	}
	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
