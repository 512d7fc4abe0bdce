/* SPDX-License-Identifier: BSD-3-Clause */
/* host_memory.c: memory of a context: allocated, copied, given back, in flight, of a file, seen by the host.
 */
#include "host_cases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/disk.h>

#include "../rig/context.h"
#include "../rig/leaks.h"

/* Device memory that is a file: what is copied in is in the file, what is freed is free, and no more is there
 * than that. */
void test_memory_of_a_file(void **state)
{
	char path[] = "/tmp/weir_host_test_XXXXXX", name[64], read_back[6];
	int file = mkstemp(path);
	uint64_t first, second, third;
	struct weir_context *files, *other;

	(void)state;
	assert_true(file >= 0 && ftruncate(file, 3 * 4096 + 100) == 0 &&
		    pwrite(file, "remains", 7, 4096) == 7);
	snprintf(name, sizeof(name), "cpu:memory=%s", path);
	must(weir_context_open(name, WEIR_OPTIONS(context, .workers = 1),
			       &files)); /* has the first page itself */
	refused(weir_context_open(name, NULL, &other), -EBUSY, path, "another context");
	must(weir_alloc(files, 100, &first));
	must(weir_copy_from_device(files, read_back, first, 6));
	assert_memory_equal(read_back, "\0\0\0\0\0\0", 6);
	must(weir_copy_to_device(files, first, "memory", 6));
	must(weir_alloc(files, 4096, &second));
	refused(weir_alloc(files, 1, &third), -ENOMEM, path, "of which 0 are free");
	must(weir_free(files, first));
	refused(weir_alloc(files, 8192, &third), -ENOMEM, path, "of which 4096 are free");
	must(weir_alloc(files, 4096, &third));
	assert_int_equal(third, first);
	must(weir_copy_to_device(files, third, "memory", 6));
	weir_context_close(files);
	assert_int_equal(pread(file, read_back, 6, 4096), 6);
	assert_memory_equal(read_back, "memory", 6);
	close(file);
	unlink(path);
}

void test_memory(void **state)
{
	uint64_t address, other = 0x1000;
	char bytes[8] = { 0 };

	(void)state;
	refused(weir_alloc(context, 0, &address), -EINVAL, "allocate", "0 bytes");
	refused(weir_free(context, other), -EINVAL, "0x1000", "allocation");
	must(weir_alloc(context, 100, &address));
	refused(weir_free(context, address + 8), -EINVAL, "free", "start");
	refused(weir_copy_to_device(context, address + 4092, bytes, 8), -EFAULT, "weir_copy_to_device",
		"8 bytes");
	refused(weir_copy_from_device(context, bytes, address - 1, 8), -EFAULT, "weir_copy_from_device",
		"8 bytes");
	must(weir_copy_to_device(context, address + 4088, bytes, 8));
	must(weir_free(context, address));
	refused(weir_free(context, address), -EINVAL, "free", "allocation");
	must(weir_free(context, 0));
}

/* What is freed is given back, all of it. */
void test_memory_is_given_back(void **state)
{
	struct test_has before;

	(void)state;
	if (!test_on_cpu())
		skip();
	for (unsigned round = 0; round < 64; round++) {
		uint64_t address;

		if (round == 4)
			before = test_has();
		must(weir_alloc(context, 4 << 20, &address));
		must(weir_free(context, address));
	}
	test_keeps(before, 8 << 20);
}

/* The machine's memory, as its kernel tells. */
void test_memory_of_the_machine(void **state)
{
	struct weir_context_info info = { .size = sizeof(info) };
	unsigned long long total = 0, available = 0, kib;
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	(void)state;
	if (!test_on_cpu())
		skip();
	while (file && fgets(line, sizeof(line), file)) {
		total = sscanf(line, "MemTotal: %llu kB", &kib) == 1 ? kib << 10 : total;
		available = sscanf(line, "MemAvailable: %llu kB", &kib) == 1 ? kib << 10 : available;
	}
	assert_non_null(file);
	fclose(file);
	must(weir_context_info(context, &info));
	assert_true(info.memory_bytes == total);
	assert_true(info.memory_free_bytes <= total && info.memory_free_bytes > available / 4);
}

static void expect_in_flight(uint64_t address, const char *what)
{
	refused(weir_free(context, address), -EBUSY, what, "wait for its event first");
}

/* Memory of a command under way: from its first to its last byte, of any queue and any storage, and its
 * event. */
void test_memory_in_flight(void **state)
{
	struct weir_storage *storages[2];
	uint64_t page[6], event;
	struct weir_disk disk[2];

	(void)state;
	if (!test_on_cpu()) /* the host is a lane there */
		skip();
	for (unsigned i = 0; i < 2; i++) {
		must(weir_storage_open(context, i ? "virt:2M?lat_us=400000" : "virt:1M?lat_us=400000",
				       WEIR_OPTIONS(storage, .queues = 3, .depth = 8,
						    .timeout_us = test_patient_us(60000000)),
				       &storages[i]));
		must(weir_storage_disk(storages[i], &disk[i]));
		disk[i].queues += 2 * sizeof(struct weir_queue); /* the third queue alone */
		disk[i].queue_count = 1;
	}
	for (unsigned i = 0; i < 6; i++) /* neighbours, as long as nothing else is mapped between them */
		must(weir_alloc(context, 4096, &page[i]));
	must(weir_alloc(context, 4096, &event));
	for (unsigned s = 0; s < 2; s++) {
		uint64_t low = page[0];
		unsigned pages = 1;

		for (unsigned i = 1; i < 6; i++)
			low = page[i] < low ? page[i] : low;
		for (unsigned again = 0; again < 6; again++)
			for (unsigned i = 0; i < 6; i++)
				pages += page[i] == low + pages * 4096;
		assert_int_equal(
			weir_read_async(&disk[s], 0, pages * 8, low, weir_at(event, struct weir_event, 0)),
			WEIR_OK);
		for (unsigned i = 0; i < 6; i++)
			if (page[i] >= low && page[i] < low + pages * 4096)
				expect_in_flight(page[i], s ? "virt:2M" : "virt:1M");
		expect_in_flight(event, "a read of block 0");
		assert_int_equal(weir_wait(&disk[s], weir_at(event, struct weir_event, 0), 0), WEIR_OK);
	}
	for (unsigned i = 0; i < 6; i++)
		must(weir_free(context, page[i]));
	must(weir_free(context, event));
	weir_storage_close(storages[1]);
	weir_storage_close(storages[0]);
}

/* One memory, seen by the host, by copies and by a controller. */
void test_host_memory(void **state)
{
	uint64_t address, none;
	unsigned char *host, copy[8], zeros[64] = { 0 };
	void *nothing = copy;

	(void)state;
	refused(weir_alloc_host(context, 0, &none, &nothing), -EINVAL, "allocate", "0 bytes");
	assert_null(nothing);
	must(weir_alloc_host(context, 5000, &address, (void **)&host));
	assert_int_equal(address % 4096, 0);
	assert_memory_equal(host, zeros, sizeof(zeros));
	memcpy(host + 4992, "by host", 8);
	must(weir_copy_from_device(context, copy, address + 4992, 8));
	assert_memory_equal(copy, "by host", 8);
	must(weir_copy_to_device(context, address, "by copy", 8));
	assert_memory_equal(host, "by copy", 8);
	must(weir_free(context, address));
	refused(weir_free(context, address), -EINVAL, "free", "allocation");
}
