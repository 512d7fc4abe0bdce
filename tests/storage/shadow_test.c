/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow_test.c: which pages of shadow doorbells a storage has, and that it gives back what it had.
 *
 * shadow.c alone is linked. Memory, the device that has pages mapped, and the controller are stand-ins.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/error.h"
#include "device/context.h"
#include "storage/doorbells.h"
#include "storage/shadow.h"

enum { OF_DEVICE = 0x5000, OF_CONTROLLER = 0x7000 };

static _Alignas(NVME_PAGE_BYTES) char pages[WEIR_ADMIN_SHADOW_BYTES];
static void *shared;       /* pages that all storages of a controller have; NULL: it has none */
static unsigned allocated; /* that were not given back */
static unsigned mapped;    /* for the device */
static unsigned configured;
static bool forwarded, refuses_memory, refuses_mapping, refuses_pages;

int weir_memory_allocate(struct weir_context *context, size_t bytes, enum weir_memory kind, uint64_t *address,
			 void **host)
{
	(void)context;
	assert_int_equal(bytes, WEIR_ADMIN_SHADOW_BYTES);
	assert_int_equal(kind, WEIR_MEMORY_HOST);
	if (refuses_memory)
		return weir_fail(ENOMEM, "no memory");
	allocated++;
	*address = OF_CONTROLLER;
	*host = pages;
	return 0;
}

int weir_memory_put(struct weir_context *context, uint64_t address)
{
	(void)context;
	assert_true(!address || address == OF_CONTROLLER);
	allocated -= address != 0;
	return 0;
}

bool weir_doorbells_forwarded(const struct weir_storage *storage)
{
	(void)storage;
	return forwarded;
}

int weir_admin_shadow(struct weir_admin *admin, void *at, uint64_t bus)
{
	(void)admin;
	assert_ptr_equal(at, pages);
	assert_true(bus == OF_CONTROLLER);
	if (refuses_pages)
		return weir_fail(EIO, "no pages");
	configured++;
	return 0;
}

static int register_host(struct weir_backend *backend, void *host, size_t bytes, uint64_t *device)
{
	(void)backend;
	assert_ptr_equal(host, pages);
	assert_int_equal(bytes, WEIR_ADMIN_SHADOW_BYTES);
	if (refuses_mapping)
		return weir_fail(EPERM, "no mapping");
	mapped++;
	*device = OF_DEVICE;
	return 0;
}

static void unregister_host(struct weir_backend *backend, void *host, size_t bytes)
{
	(void)backend;
	assert_ptr_equal(host, pages);
	assert_int_equal(bytes, WEIR_ADMIN_SHADOW_BYTES);
	mapped--;
}

static void *shadow_of(struct weir_transport *transport)
{
	(void)transport;
	return shared;
}

static const struct weir_transport_ops own_ops, shared_ops = { .shadow = shadow_of };
static struct weir_backend_ops ops;
static struct weir_backend backend = { .ops = &ops };
static struct weir_context context = { .backend = &backend };
static struct weir_transport transport;
static struct weir_storage storage;

static void begin(bool is_shared, enum weir_shadow asked)
{
	ops = (struct weir_backend_ops){ .name = "pretended",
					 .register_host = register_host,
					 .unregister_host = unregister_host };
	forwarded = refuses_memory = refuses_mapping = refuses_pages = false;
	configured = 0;
	shared = pages;
	transport = (struct weir_transport){ .ops = is_shared ? &shared_ops : &own_ops,
					     .shadow = asked,
					     .doorbell_bytes = 4 };
	storage =
		(struct weir_storage){ .context = &context, .transport = &transport, .uri = (char *)"test:" };
	storage.space.shadow_doorbells = true;
}

/* In the order in which a storage is closed, or not opened after all. Once more changes nothing. */
static void ended(void)
{
	for (unsigned i = 0; i < 2; i++) {
		weir_shadow_release(&storage);
		weir_shadow_free(&storage);
		assert_int_equal(mapped, 0);
		assert_int_equal(allocated, 0);
		assert_true(!storage.shadow_memory && !storage.shadow_registered);
	}
}

/* As many queue pairs as a page has room for beside the admin queue's, wherever their doorbells are. */
static void a_page_is_full(void **state)
{
	(void)state;
	for (unsigned apart = 4; apart <= 64; apart *= 2)
		for (unsigned more = 0; more < 2; more++) {
			unsigned queues = NVME_PAGE_BYTES / (2 * apart) - 1 + more;

			begin(false, WEIR_SHADOW_AUTO);
			transport.doorbell_bytes = apart;
			assert_int_equal(weir_shadow_use(&storage, queues), 0);
			assert_int_equal(configured, !more);
			assert_true(storage.shadow_memory == (more ? 0 : OF_CONTROLLER));
			ended();
			begin(false, WEIR_SHADOW_ON);
			transport.doorbell_bytes = apart;
			assert_int_equal(weir_shadow_use(&storage, queues), more ? -ENOTSUP : 0);
			ended();
		}
}

static void what_is_not_wanted_or_not_offered(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		begin(false, i == 0 ? WEIR_SHADOW_OFF : WEIR_SHADOW_AUTO);
		storage.space.shadow_doorbells = i != 1;
		transport.device_controller.on = i == 2;
		assert_int_equal(weir_shadow_use(&storage, 3), 0);
		assert_int_equal(configured, 0);
		ended();
	}
	begin(false, WEIR_SHADOW_ON);
	storage.space.shadow_doorbells = false;
	assert_int_equal(weir_shadow_use(&storage, 3), -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "has no shadow doorbells"));
	begin(true, WEIR_SHADOW_ON);
	shared = NULL;
	assert_int_equal(weir_shadow_use(&storage, 3), -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "has no shadow doorbells"));
	ended();
}

/* Lanes write those that all storages have at the device's addresses; a thread that rings for them the
 * host's. */
static void pages_of_a_shared_controller(void **state)
{
	(void)state;
	begin(true, WEIR_SHADOW_AUTO);
	assert_int_equal(weir_shadow_use(&storage, 3), 0);
	assert_true(storage.shadow_memory == OF_DEVICE && transport.keep_addresses);
	assert_int_equal(mapped, 1);
	assert_int_equal(configured, 0); /* they have been */
	ended();
	begin(true, WEIR_SHADOW_AUTO);
	forwarded = true;
	assert_int_equal(weir_shadow_use(&storage, 3), 0);
	assert_true(storage.shadow_memory == (uintptr_t)pages);
	assert_int_equal(mapped, 0);
	ended();
	begin(true, WEIR_SHADOW_AUTO);
	shared = NULL;
	assert_int_equal(weir_shadow_use(&storage, 3), 0);
	assert_true(storage.shadow_memory == 0);
	ended();
}

static void what_fails_leaves_nothing(void **state)
{
	(void)state;
	begin(true, WEIR_SHADOW_AUTO);
	refuses_mapping = true;
	assert_int_equal(weir_shadow_use(&storage, 3), -EPERM);
	assert_non_null(strstr(weir_last_error(), "which lanes do not see: no mapping"));
	ended();
	begin(true, WEIR_SHADOW_AUTO);
	ops.register_host = NULL;
	assert_int_equal(weir_shadow_use(&storage, 3), -ENOTSUP);
	ended();
	begin(false, WEIR_SHADOW_AUTO);
	refuses_memory = true;
	assert_int_equal(weir_shadow_use(&storage, 3), -ENOMEM);
	ended();
	begin(false, WEIR_SHADOW_AUTO);
	refuses_pages = true;
	assert_int_equal(weir_shadow_use(&storage, 3), -EIO);
	assert_int_equal(allocated, 1); /* until no controller could have them */
	ended();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_is_full),
		cmocka_unit_test(what_is_not_wanted_or_not_offered),
		cmocka_unit_test(pages_of_a_shared_controller),
		cmocka_unit_test(what_fails_leaves_nothing),
	};

	cmocka_set_test_filter(getenv("WEIR_TEST_CASES"));
	return cmocka_run_group_tests_name("shadow", tests, NULL, NULL);
}
