/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A backend for the fake GPU of the virtual machines: its memory has the addresses that its shim pins
 * (fakegpu/fake_shim.c), and the host reaches it by the GPU's own copies alone (/dev/fake_gpu). It runs no
 * kernel. WEIR_FAKE_GPU is its PCI address; with WEIR_FAKE_FLUSHED it says that the host has to flush what
 * SSDs write, and the GPU's copies see what was there at the last flush, or what they wrote later. "works":
 * it flushes; "lies": it says so alone; "fails"; anything else: it cannot.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/backend.h"

enum { CHUNK = 64 << 10, CHUNKS = 512 };

#define FIRST (1ULL << 32)

struct fake {
	struct weir_backend base;
	int gpu;
	char pci_address[16];
	unsigned char taken[CHUNKS]; /* 0: free; chunks that are taken together have the same number */
	unsigned char next;
	const char *flushed; /* WEIR_FAKE_FLUSHED, NULL: what SSDs write is seen at once */
	char *seen;          /* what the GPU sees then */
};

static const struct weir_backend_ops fake_ops;
extern __attribute__((visibility("default"))) const struct weir_backend_ops *const weir_backend_module;
const struct weir_backend_ops *const weir_backend_module = &fake_ops;

static struct weir_backend_ops without_flush;

static int fake_open(const char *selector, const struct weir_context_options *options,
		     struct weir_backend **out)
{
	const char *address = getenv("WEIR_FAKE_GPU");
	struct fake *fake = calloc(1, sizeof(*fake));

	(void)selector;
	(void)options;
	if (!fake)
		return weir_fail(ENOMEM, "no memory for the fake GPU's backend");
	fake->base.ops = &fake_ops;
	fake->gpu = open("/dev/fake_gpu", O_RDWR | O_CLOEXEC);
	if (fake->gpu < 0) {
		free(fake);
		return weir_fail(ENODEV, "there is no /dev/fake_gpu: load its driver");
	}
	snprintf(fake->pci_address, sizeof(fake->pci_address), "%s", address ? address : "");
	fake->flushed = getenv("WEIR_FAKE_FLUSHED");
	fake->seen = fake->flushed ? calloc(CHUNKS, CHUNK) : NULL;
	if (fake->flushed && strcmp(fake->flushed, "works") && strcmp(fake->flushed, "lies") &&
	    strcmp(fake->flushed, "fails")) {
		without_flush = fake_ops;
		without_flush.peer_flush = NULL;
		fake->base.ops = &without_flush;
	}
	*out = &fake->base;
	return 0;
}

static void fake_close(struct weir_backend *backend)
{
	close(((struct fake *)backend)->gpu);
	free(((struct fake *)backend)->seen);
	free(backend);
}

/* Of what weir allocates, only what was flushed is. */
static bool is_seen(struct weir_backend *backend, uint64_t device)
{
	return ((struct fake *)backend)->seen && device - FIRST < (uint64_t)CHUNKS * CHUNK;
}

static int fake_h2d(struct weir_backend *backend, uint64_t device, const void *host, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t did = pwrite(((struct fake *)backend)->gpu, (const char *)host + done, bytes - done,
				     (off_t)(device + done));

		if (did <= 0)
			return weir_fail(EIO, "the fake GPU does not copy %zu bytes to %#llx", bytes,
					 (unsigned long long)device);
		done += (size_t)did;
	}
	if (is_seen(backend, device))
		memcpy(((struct fake *)backend)->seen + (device - FIRST), host, bytes);
	return 0;
}

/* Whatever has been written there by whomever. */
static int read_memory(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t did = pread(((struct fake *)backend)->gpu, (char *)host + done, bytes - done,
				    (off_t)(device + done));

		if (did <= 0)
			return weir_fail(EIO, "the fake GPU does not copy %zu bytes from %#llx", bytes,
					 (unsigned long long)device);
		done += (size_t)did;
	}
	return 0;
}

static int fake_d2h(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	if (!is_seen(backend, device))
		return read_memory(backend, host, device, bytes);
	memcpy(host, ((struct fake *)backend)->seen + (device - FIRST), bytes);
	return 0;
}

static int fake_peer_flush(struct weir_backend *backend)
{
	struct fake *fake = (struct fake *)backend;
	int error = strcmp(fake->flushed, "fails") ? 0 : weir_fail(EIO, "the fake GPU does not flush");

	for (size_t i = 0; i < CHUNKS && !error && strcmp(fake->flushed, "lies"); i++)
		if (fake->taken[i])
			error = read_memory(backend, fake->seen + i * CHUNK, FIRST + i * CHUNK, CHUNK);
	return error;
}

static int take_chunks(struct fake *fake, size_t bytes, uint64_t *device)
{
	size_t count = (bytes + CHUNK - 1) / CHUNK, run = 0, i;

	for (i = 0; i < CHUNKS && run < count; i++)
		run = fake->taken[i] ? 0 : run + 1;
	if (run < count)
		return weir_fail(ENOMEM, "the fake GPU has no %zu bytes", bytes);
	fake->next = fake->next % 255 + 1;
	memset(fake->taken + i - count, fake->next, count);
	*device = FIRST + (i - count) * CHUNK;
	return 0;
}

static int fake_allocate(struct weir_backend *backend, size_t bytes, enum weir_memory kind, void **host,
			 uint64_t *device)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int error;

	if (memory == MAP_FAILED)
		return weir_fail(ENOMEM, "cannot allocate %zu bytes", bytes);
	*host = kind == WEIR_MEMORY_HOST ? memory : NULL;
	*device = (uint64_t)(uintptr_t)memory;
	if (kind == WEIR_MEMORY_HOST)
		return 0;
	error = take_chunks((struct fake *)backend, bytes, device);
	if (!error)
		error = fake_h2d(backend, *device, memory, bytes); /* zeros */
	munmap(memory, bytes);
	return error;
}

static void fake_release(struct weir_backend *backend, uint64_t device, size_t bytes, enum weir_memory kind)
{
	struct fake *fake = (struct fake *)backend;

	if (kind == WEIR_MEMORY_HOST)
		munmap((void *)(uintptr_t)device, bytes);
	else
		memset(fake->taken + (device - FIRST) / CHUNK, 0, (bytes + CHUNK - 1) / CHUNK);
}

static int fake_launch(struct weir_backend *backend, const char *kernel, uint32_t blocks, uint32_t threads,
		       const void *args, size_t bytes)
{
	(void)backend;
	(void)blocks;
	(void)threads;
	(void)args;
	(void)bytes;
	return weir_no_kernel("fake", kernel);
}

static int fake_kernel_info(struct weir_backend *backend, const char *kernel, struct weir_kernel_info *info)
{
	(void)backend;
	(void)info;
	return weir_no_kernel("fake", kernel);
}

static int fake_synchronise(struct weir_backend *backend)
{
	(void)backend;
	return 0;
}

/* What the program got from the GPU's own run time, if it had one: the last 16 MiB. */
static int fake_examine(struct weir_backend *backend, uint64_t address, uint64_t bytes, void **host)
{
	uint64_t all = 2ULL * CHUNKS * CHUNK, own = all - (16 << 20);

	(void)backend;
	*host = NULL;
	if (address < FIRST + own || address - FIRST >= all || bytes > all - (address - FIRST))
		return weir_fail(EFAULT, "%llu bytes at %#llx are no memory of the fake GPU",
				 (unsigned long long)bytes, (unsigned long long)address);
	return 0;
}

static void fake_properties(struct weir_backend *backend, struct weir_backend_properties *out)
{
	snprintf(out->name, sizeof(out->name), "fake GPU (runs nothing)");
	memcpy(out->pci_address, ((struct fake *)backend)->pci_address, sizeof(out->pci_address));
	out->wave_lanes = 1;
	out->workers = 1;
	out->block_lanes = 64;
	out->peer_writes =
		((struct fake *)backend)->flushed ? WEIR_PEER_WRITES_FLUSHED : WEIR_PEER_WRITES_ORDERED;
}

static const struct weir_backend_ops fake_ops = {
	.size = sizeof(struct weir_backend_ops),
	.name = "fake",
	.open = fake_open,
	.close = fake_close,
	.allocate = fake_allocate,
	.release = fake_release,
	.h2d = fake_h2d,
	.d2h = fake_d2h,
	.launch = fake_launch,
	.kernel_info = fake_kernel_info,
	.synchronise = fake_synchronise,
	.properties = fake_properties,
	.examine = fake_examine,
	.peer_flush = fake_peer_flush,
};
