/* SPDX-License-Identifier: BSD-3-Clause */
/* A backend that is a module: found in WEIR_BACKENDS, and asked for what the runtime needs, as often as it
 * should be. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/port/image.h>
#include <weir/weir.h>

#include "stub.h"

enum { SOME_BYTES = 100 };

#define must(call)                                                                                           \
	do {                                                                                                 \
		if ((call) != 0)                                                                             \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static struct weir_image known = { "stub", "stub_kernel", "code", 4, 8, 32, NULL };
static struct stub_calls *calls;

/* The module that the runtime has loaded, which is there once: the first look loads it. */
static int set_up(void **state)
{
	char path[4096];
	struct weir_device device = { .size = sizeof(device) };
	void *handle;

	(void)state;
	while (weir_device_at(0, &device) == 0 && !calls) {
		for (uint32_t i = 1; weir_device_at(i, &device) == 0; i++)
			;
		snprintf(path, sizeof(path), "%s/weir-backend-stub.so", getenv("WEIR_BACKENDS"));
		handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
		calls = handle ? dlsym(handle, "weir_stub_calls") : NULL;
		if (!calls)
			return -1;
	}
	weir_image_register(&known);
	return 0;
}

static struct weir_context *open_stub(const char *name, uint32_t service)
{
	struct weir_context *context;

	must(weir_context_open(name, WEIR_OPTIONS(context, .service_waves = service), &context));
	return context;
}

static void test_listed(void **state)
{
	struct weir_device device = { .size = sizeof(device) };
	unsigned rows = 0;

	(void)state;
	for (uint32_t i = 0; weir_device_at(i, &device) == 0; i++)
		if (!strncmp(device.name, "stub", 4)) {
			assert_int_equal(device.error, 0);
			assert_string_equal(device.name, rows ? "stub:1" : "stub:0");
			rows++;
		}
	assert_int_equal(rows, 2);
	assert_true(calls->devices > 0);
}

/* What a kind of devices that has none says is its row's: no call has failed. */
static void test_a_list_is_no_failure(void **state)
{
	struct weir_device device = { .size = sizeof(device) };
	struct weir_context *none;
	unsigned lacking = 0;
	char before[1024];
	uint32_t i;

	(void)state;
	assert_int_equal(weir_context_open("stub:7", NULL, &none), -ENODEV);
	snprintf(before, sizeof(before), "%s", weir_last_error());
	calls->lacks = 1;
	for (i = 0; weir_device_at(i, &device) == 0; i++) {
		assert_string_equal(weir_last_error(), before);
		if (!strcmp(device.name, "stub")) {
			assert_int_equal(device.error, -ENODEV);
			assert_string_equal(device.why, "the stub has no device");
			lacking++;
		}
	}
	assert_int_equal(weir_device_at(i, &device), -ENOENT);
	calls->lacks = 0;
	assert_string_equal(weir_last_error(), before);
	assert_int_equal(lacking, 1);
}

static void test_opened_by_name(void **state)
{
	struct stub_calls before = *calls;
	struct weir_context_info info = { .size = sizeof(info) };
	struct weir_context *context = open_stub("stub:1", 0), *none;

	(void)state;
	must(weir_context_info(context, &info));
	assert_string_equal(info.name, "stub (runs nothing)");
	assert_int_equal(info.block_lanes, 64);
	weir_context_close(context);
	assert_int_equal(calls->open, before.open + 1);
	assert_int_equal(calls->close, before.close + 1);
	assert_int_equal(calls->allocate - before.allocate, calls->release - before.release);
	assert_int_equal(weir_context_open("stub:7", NULL, &none), -ENODEV);
	assert_non_null(strstr(weir_last_error(), "stub:7"));
}

/* It is taken if it is asked for, not if the cpu is asked for what it cannot do. */
static void test_auto_is_another(void **state)
{
	struct stub_calls before = *calls;
	struct weir_context_info info = { .size = sizeof(info) };
	struct weir_context *context = open_stub("auto", 0), *none;

	(void)state;
	must(weir_context_info(context, &info));
	weir_context_close(context);
	if (!strncmp(info.name, "cpu", 3)) {
		assert_int_equal(weir_context_open("auto", WEIR_OPTIONS(context, .wave_lanes = 3), &none),
				 -EINVAL);
		assert_non_null(strstr(weir_last_error(), "wave_lanes is 3"));
	}
	assert_int_equal(calls->open, before.open);
}

static void test_memory(void **state)
{
	struct weir_context *context = open_stub("stub", 0);
	struct stub_calls before = *calls;
	char there[SOME_BYTES] = "something", back[SOME_BYTES];
	uint64_t address;

	(void)state;
	must(weir_alloc(context, SOME_BYTES, &address));
	assert_int_equal(address % 4096, 0);
	must(weir_copy_from_device(context, back, address, SOME_BYTES));
	for (int i = 0; i < SOME_BYTES; i++)
		assert_int_equal(back[i], 0);
	must(weir_copy_to_device(context, address, there, SOME_BYTES));
	must(weir_copy_from_device(context, back, address, SOME_BYTES));
	assert_memory_equal(there, back, SOME_BYTES);
	must(weir_free(context, address));
	assert_int_equal(calls->allocate, before.allocate + 1);
	assert_int_equal(calls->h2d, before.h2d + 1);
	assert_int_equal(calls->d2h, before.d2h + 2);
	assert_int_equal(calls->release, before.release + 1);
	weir_context_close(context);
}

static void test_launches(void **state)
{
	struct weir_context *context = open_stub("stub", 0);
	struct stub_calls before = *calls;
	struct weir_kernel_info info = { .size = sizeof(info) };
	uint64_t args = 1;

	(void)state;
	must(weir_launch(context, "stub_kernel", 2, 32, &args, sizeof(args)));
	assert_int_equal(weir_launch(context, "stub_kernel", 2, 33, &args, sizeof(args)), -EINVAL);
	assert_int_equal(weir_launch(context, "stub_kernel", 2, 32, &args, 4), -EINVAL);
	assert_int_equal(weir_launch(context, "no_such_kernel", 2, 32, &args, sizeof(args)), -ENOENT);
	assert_non_null(strstr(weir_last_error(), "no kernel \"no_such_kernel\" for the stub backend"));
	must(weir_kernel_info(context, "stub_kernel", &info));
	assert_int_equal(info.block_lanes, 32);
	must(weir_sync(context));
	assert_int_equal(calls->launch, before.launch + 4);
	assert_int_equal(calls->kernel_info, before.kernel_info + 1);
	assert_int_equal(calls->synchronise, before.synchronise + 1);
	weir_context_close(context);
}

/* A service that was asked for has to be there; where it would only be good to have, it need not. */
static void test_service_that_cannot_start(void **state)
{
	struct weir_context *context = open_stub("stub", 4);
	struct weir_storage *storage = NULL;
	unsigned before = calls->serve;

	(void)state;
	assert_int_equal(weir_storage_open(context, "virt:1M", NULL, &storage), -ENOENT);
	assert_non_null(strstr(weir_last_error(), "weir_service"));
	assert_int_equal(calls->serve, before + 1);
	weir_context_close(context);

	context = open_stub("stub", WEIR_SERVICE_WHERE_PULLED);
	must(weir_storage_open(context, "virt:1M", NULL, &storage));
	assert_int_equal(calls->serve, before + 2);
	weir_storage_close(storage);
	weir_context_close(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listed),
		cmocka_unit_test(test_opened_by_name),
		cmocka_unit_test(test_auto_is_another),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_launches),
		cmocka_unit_test(test_service_that_cannot_start),
		cmocka_unit_test(test_a_list_is_no_failure),
	};

	return cmocka_run_group_tests_name("module", tests, set_up, NULL);
}
