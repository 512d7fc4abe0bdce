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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/backend.h"

enum { PAGE = 4096 };

static const struct weir_backend_ops *ops;
static struct weir_backend *backend;

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

/* The file is all of the allocation, and the offset leads to the address. */
static void check_export(uint64_t allocation, uint64_t from, size_t bytes)
{
	uint64_t offset = 1;
	int file = -1;

	assert_int_equal(ops->export_memory(backend, allocation + from, bytes, &file, &offset), 0);
	assert_true(file >= 0);
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
	assert_true(ops->export_memory(backend, allocation, 5 * PAGE, &file, &offset) < 0);
	assert_non_null(strstr(weir_last_error(), "exports no dma-buf of 20480 bytes"));
	ops->release(backend, allocation, 4 * PAGE, WEIR_MEMORY_DEVICE);
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
	};
	void *module = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
	const struct weir_backend_ops *const *found = module ? dlsym(module, "weir_backend_module") : NULL;

	if (!found) {
		printf("Bail out! no module: %s\n", count == 2 ? dlerror() : "none given");
		return 1;
	}
	ops = *found;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
