/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_test.c: whether a controller that is to reach a device's memory is believed.
 *
 * peer.c alone is linked. The stand-in for the controller leaves one byte of the page as it was, or writes
 * nothing, as a case says.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../rig/leaks.h"
#include "backend/error.h"
#include "device/context.h"
#include "storage/peer.h"

enum { EACH = 97, WHOLE = NVME_PAGE_BYTES }; /* of the page: bytes that are tried; all is written */

static unsigned char admin_memory[4 * NVME_PAGE_BYTES], device_memory[NVME_PAGE_BYTES];
/* struct exported - memory that was exported as a file: what is mapped of it, and what controllers may have
 */
static struct exported {
	unsigned files, added;
	unsigned fails; /* which addition to the DMA map; 0: none */
	unsigned additions;
	bool none; /* nothing is exported */
} exported;

static unsigned left_out;
static unsigned pages;
static enum weir_peer_writes writes;

int weir_admin_identify_at(struct weir_admin *admin, uint64_t bus)
{
	unsigned char *page = (unsigned char *)(uintptr_t)bus, before = 0;

	(void)admin;
	if (page == device_memory && left_out < WHOLE)
		before = page[left_out];
	for (unsigned i = 0; i < NVME_PAGE_BYTES; i++)
		page[i] = (unsigned char)(i % 251);
	if (page == device_memory && left_out < WHOLE)
		page[left_out] = before;
	return 0;
}

int weir_memory_get(struct weir_context *context, size_t bytes, uint64_t *address)
{
	(void)context;
	assert_int_equal(bytes, NVME_PAGE_BYTES);
	pages++;
	*address = (uintptr_t)device_memory;
	return 0;
}

int weir_memory_put(struct weir_context *context, uint64_t address)
{
	(void)context;
	pages -= address != 0;
	return 0;
}

int weir_dma_map_add_device(struct weir_dma_map *map, uint64_t address, size_t bytes, void *host)
{
	(void)map;
	assert_int_equal(bytes, 2 * NVME_PAGE_BYTES);
	if (++exported.additions == exported.fails)
		return weir_fail(ENOSPC, "no room in the IOMMU");
	assert_int_equal(*(const uint64_t *)host, address); /* that block's part of its file */
	exported.added++;
	return 0;
}

int weir_dma_map_remove(struct weir_dma_map *map, void *address)
{
	(void)map, (void)address;
	exported.added--;
	return 0;
}

static void properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	out->export_memory.has = true;
	out->peer_writes = writes;
}

static int export_memory(struct weir_backend *backend, uint64_t device, size_t bytes, int *file,
			 uint64_t *offset)
{
	(void)backend;
	if (exported.none)
		return weir_fail(ENOTSUP, "no dma-buf");
	*file = memfd_create("exported", MFD_CLOEXEC);
	*offset = NVME_PAGE_BYTES;
	assert_true(*file >= 0 && ftruncate(*file, (off_t)(bytes + NVME_PAGE_BYTES)) == 0);
	assert_int_equal(pwrite(*file, &device, sizeof(device), NVME_PAGE_BYTES), sizeof(device));
	exported.files++;
	return 0;
}

static int h2d(struct weir_backend *backend, uint64_t device, const void *host, size_t bytes)
{
	(void)backend;
	memcpy((void *)(uintptr_t)device, host, bytes);
	return 0;
}

static int d2h(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	(void)backend;
	memcpy(host, (const void *)(uintptr_t)device, bytes);
	return 0;
}

static const struct weir_backend_ops ops = {
	.properties = properties, .export_memory = export_memory, .h2d = h2d, .d2h = d2h
};

/* What weir_peer_use() says; a storage that uses it ends, and nothing of either stays. */
static int use(void)
{
	struct weir_backend backend = { .ops = &ops };
	struct weir_context context = { .backend = &backend };
	struct weir_storage storage = { .context = &context };
	int error;

	storage.admin.memory = admin_memory;
	storage.admin.bus = (uintptr_t)admin_memory;
	error = weir_peer_use(&storage);
	assert_int_equal(storage.peer, !error);
	assert_int_equal(context.peer_storages, !error);
	weir_peer_end(&storage);
	assert_int_equal(context.peer_storages, 0);
	assert_int_equal(pages, 0);
	return error;
}

static void each_byte_of_the_page_counts(void **state)
{
	(void)state;
	writes = WEIR_PEER_WRITES_ORDERED;
	left_out = WHOLE;
	assert_int_equal(use(), 0);
	for (left_out = 0; left_out < WHOLE; left_out += EACH) {
		assert_int_equal(use(), -EIO);
		assert_non_null(strstr(weir_last_error(), "a test failed: of a page"));
	}
	left_out = WHOLE - 1;
	assert_int_equal(use(), -EIO);
	for (left_out = 0; left_out < 251; left_out++) /* what it is to be, whatever was there before */
		assert_int_equal(use(), -EIO);
}

/* Where lanes may see a completion before its data, no controller is asked. */
static void writes_that_come_late_are_not_used(void **state)
{
	(void)state;
	left_out = WHOLE;
	writes = WEIR_PEER_WRITES_FLUSHED;
	assert_int_equal(use(), -ENOTSUP);
	assert_non_null(strstr(weir_last_error(), "may not see the data yet"));
}

enum { BLOCKS = 4 };

/* Two allocations of the device's, one that the host sees, and one of the host's. */
static struct weir_memory_block *make_blocks(struct weir_memory_block blocks[BLOCKS])
{
	for (unsigned i = 0; i < BLOCKS; i++)
		blocks[i] =
			(struct weir_memory_block){ .next = i + 1 < BLOCKS ? &blocks[i + 1] : NULL,
						    .address = 0x10000 * (i + 1),
						    .host = i == 1 ? blocks : NULL,
						    .bytes = 2 * NVME_PAGE_BYTES,
						    .kind = i == 2 ? WEIR_MEMORY_HOST : WEIR_MEMORY_DEVICE };
	return blocks;
}

/* Memory that the host does not see is mapped for controllers as long as some storage's reaches it, what is
 * allocated meanwhile, too. */
static void memory_is_there_for_all_storages(void **state)
{
	struct weir_backend backend = { .ops = &ops };
	struct weir_memory_block blocks[BLOCKS],
		more = { .address = 0x90000, .bytes = 2 * NVME_PAGE_BYTES, .kind = WEIR_MEMORY_DEVICE };
	struct weir_context context = { .backend = &backend, .memory = make_blocks(blocks) };
	struct weir_storage storages[2];
	unsigned files = test_files();

	(void)state;
	exported = (struct exported){ .files = 0 };
	writes = WEIR_PEER_WRITES_ORDERED;
	left_out = WHOLE;
	for (unsigned i = 0; i < 2; i++) {
		storages[i] = (struct weir_storage){ .context = &context };
		storages[i].admin.memory = admin_memory;
		storages[i].admin.bus = (uintptr_t)admin_memory;
		assert_int_equal(weir_peer_use(&storages[i]), 0);
		assert_int_equal(exported.added, 2);
		assert_true(blocks[0].exported && !blocks[1].exported && !blocks[2].exported &&
			    blocks[3].exported);
	}
	assert_int_equal(exported.files, 2);
	assert_int_equal(weir_peer_add(&context, &more), 0);
	assert_int_equal(exported.added, 3);
	weir_peer_remove(&context, &more);
	weir_peer_remove(&context, &more);
	assert_int_equal(exported.added, 2);
	weir_peer_end(&storages[0]);
	weir_peer_end(&storages[0]);
	assert_int_equal(exported.added, 2);
	weir_peer_end(&storages[1]);
	assert_int_equal(exported.added, 0);
	assert_true(!blocks[0].exported && !blocks[3].exported);
	assert_int_equal(context.peer_storages, 0);
	assert_int_equal(test_files(), files);
}

/* What cannot be had of it leaves nothing: neither the rest of it, nor files. */
static void memory_that_cannot_be_had(void **state)
{
	struct weir_backend backend = { .ops = &ops };
	struct weir_memory_block blocks[BLOCKS];
	unsigned files = test_files();

	(void)state;
	writes = WEIR_PEER_WRITES_ORDERED;
	left_out = WHOLE;
	for (unsigned i = 0; i < 3; i++) {
		struct weir_context context = { .backend = &backend, .memory = make_blocks(blocks) };
		struct weir_storage storage = { .context = &context };

		exported = (struct exported){ .fails = i, .none = !i };
		storage.admin.memory = admin_memory;
		storage.admin.bus = (uintptr_t)admin_memory;
		assert_int_equal(weir_peer_use(&storage), i ? -ENOSPC : -ENOTSUP);
		assert_non_null(strstr(weir_last_error(), i ? "no room in the IOMMU" : "no dma-buf"));
		assert_int_equal(exported.added, 0);
		assert_true(!blocks[0].exported && !blocks[3].exported);
		assert_true(!storage.peer && !context.peer_storages && !pages);
		assert_int_equal(test_files(), files);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_byte_of_the_page_counts),
		cmocka_unit_test(writes_that_come_late_are_not_used),
		cmocka_unit_test(memory_is_there_for_all_storages),
		cmocka_unit_test(memory_that_cannot_be_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
