/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU backend's vtable: memory, launches, workers. */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../runtime/backend/error.h"
#include "../../runtime/backend/mapped.h"
#include "cpu.h"

#define MEMORY_KEY "memory="

enum {
	DEFAULT_RESIDENT_LANES = 1024,
	MOST_DEFAULT_LANES = 12 << 10, /* of all workers: two contexts' stacks leave mappings for others */
	MOST_RESIDENT_LANES = 1 << 24,
	DEFAULT_STACK_BYTES = 64 << 10,
};

static const u32 MOST_STACK_BYTES = (u32)1 << 31; /* whole pages of more may be 0 in 32 bits */

extern const struct weir_backend_ops weir_backend_cpu;

static struct cpu_backend *self_of(struct weir_backend *backend)
{
	return (struct cpu_backend *)backend;
}

/* The first launch after number @seen, or NULL to stop. Mutex held. */
static struct cpu_launch *next_launch(struct cpu_backend *backend, u64 seen)
{
	while (!backend->stop && (!backend->first || backend->first->serial <= seen))
		pthread_cond_wait(&backend->work, &backend->mutex);
	return backend->stop ? NULL : backend->first;
}

/* The last worker out of the running launch takes it off the list. Mutex held. */
static void leave_launch(struct cpu_backend *backend, struct cpu_launch *launch)
{
	if (--launch->users != 0)
		return;
	backend->first = launch->next;
	free(launch->args);
	free(launch);
	pthread_cond_broadcast(&backend->idle);
	pthread_cond_broadcast(&backend->work);
}

static void *worker_main(void *argument)
{
	struct cpu_worker *worker = argument;
	struct cpu_backend *backend = worker->backend;
	struct cpu_launch *launch;
	u64 seen = 0;

	weir_fiber_adopt(&worker->main);
	pthread_mutex_lock(&backend->mutex);
	while ((launch = next_launch(backend, seen)) != NULL) {
		void (*call)(void *) = launch->call;

		launch->call = NULL;
		seen = launch->serial;
		pthread_mutex_unlock(&backend->mutex);
		if (call)
			call(launch->of);
		if (launch->kernel)
			cpu_worker_run(worker, launch);
		pthread_mutex_lock(&backend->mutex);
		leave_launch(backend, launch);
	}
	pthread_mutex_unlock(&backend->mutex);
	return NULL;
}

static void stop_workers(struct cpu_backend *backend)
{
	pthread_mutex_lock(&backend->mutex);
	while (backend->first)
		pthread_cond_wait(&backend->idle, &backend->mutex);
	backend->stop = true;
	pthread_cond_broadcast(&backend->work);
	pthread_mutex_unlock(&backend->mutex);
	for (u32 i = 0; i < backend->worker_count; i++)
		if (backend->workers[i].started)
			pthread_join(backend->workers[i].thread, NULL);
}

static void cpu_close(struct weir_backend *base)
{
	struct cpu_backend *backend = self_of(base);

	stop_workers(backend);
	for (u32 i = 0; i < backend->worker_count; i++)
		cpu_worker_release(&backend->workers[i]);
	pthread_cond_destroy(&backend->idle);
	pthread_cond_destroy(&backend->work);
	pthread_mutex_destroy(&backend->mutex);
	free(backend->workers);
	weir_mapped_close(backend->memory);
	free(backend);
}

static int start_workers(struct cpu_backend *backend)
{
	for (u32 i = 0; i < backend->worker_count; i++) {
		struct cpu_worker *worker = &backend->workers[i];
		int error;

		worker->backend = backend;
		worker->index = i;
		error = cpu_worker_prepare(worker);
		if (error)
			return error;
		error = pthread_create(&worker->thread, NULL, worker_main, worker);
		if (error)
			return weir_fail(error, "cannot start worker %u: %s", i, strerror(error));
		worker->started = true;
	}
	cpu_pin_workers(backend);
	return 0;
}

static int check_options(const struct weir_context_options *options)
{
	u32 width = options->wave_lanes;

	if (width > 64 || (width & (width - 1)))
		return weir_fail(EINVAL, "wave_lanes is %u; it must be a power of two from 1 to 64", width);
	if (options->workers > 1024)
		return weir_fail(EINVAL, "workers is %u; it must be from 1 to 1024", options->workers);
	if (options->resident_lanes > MOST_RESIDENT_LANES)
		return weir_fail(EINVAL, "resident_lanes is %u; it must be from 1 to %d",
				 options->resident_lanes, MOST_RESIDENT_LANES);
	if (options->stack_bytes && options->stack_bytes < 16384)
		return weir_fail(EINVAL, "stack_bytes is %u; a lane needs 16384 at least",
				 options->stack_bytes);
	if (options->stack_bytes > MOST_STACK_BYTES)
		return weir_fail(EINVAL, "stack_bytes is %u; a lane may have %u at most",
				 options->stack_bytes, MOST_STACK_BYTES);
	return 0;
}

/* Each lane's stack and the page before it are two of the mappings that a process may have
 * (vm.max_map_count). */
static u32 default_lanes(u32 workers)
{
	u32 each = MOST_DEFAULT_LANES / workers;

	return each < DEFAULT_RESIDENT_LANES ? each : DEFAULT_RESIDENT_LANES;
}

static int cpu_open(const char *selector, const struct weir_context_options *options,
		    struct weir_backend **out)
{
	const char *strict = getenv("WEIR_CPU_STRICT");
	struct cpu_backend *backend;
	u32 resident;
	int error = check_options(options);

	if (error)
		return error;
	if (*selector && strncmp(selector, MEMORY_KEY, strlen(MEMORY_KEY)) != 0)
		return weir_fail(ENODEV,
				 "there is only one cpu, no \"cpu:%s\"; open \"cpu\", or \"cpu:memory=FILE\"",
				 selector);
	backend = calloc(1, sizeof(*backend));
	if (!backend)
		return weir_fail(ENOMEM, "no memory for the cpu backend");
	backend->base.ops = &weir_backend_cpu;
	backend->width = options->wave_lanes ? options->wave_lanes : 1;
	backend->strict = strict && *strict;
	backend->worker_count = options->workers ? options->workers : cpu_usable_cores();
	backend->numa_node = cpu_numa_node();
	resident = options->resident_lanes ? options->resident_lanes : default_lanes(backend->worker_count);
	backend->waves_per_worker = (resident + backend->width - 1) / backend->width;
	backend->stack_bytes =
		options->stack_bytes ? (options->stack_bytes + 4095u) & ~4095u : DEFAULT_STACK_BYTES;
	pthread_mutex_init(&backend->mutex, NULL);
	pthread_cond_init(&backend->work, NULL);
	pthread_cond_init(&backend->idle, NULL);
	backend->workers = calloc(backend->worker_count, sizeof(*backend->workers));
	if (!backend->workers)
		backend->worker_count = 0;
	for (u32 i = 0; i < backend->worker_count; i++)
		backend->workers[i].backend = backend;
	error = backend->workers ? start_workers(backend) : weir_fail(ENOMEM, "no memory for workers");
	if (!error && *selector)
		error = weir_mapped_open(selector + strlen(MEMORY_KEY), &backend->memory);
	if (error) {
		cpu_close(&backend->base);
		return error;
	}
	*out = &backend->base;
	return 0;
}

/* Of the file that stands for device memory, if there is one. */
static int allocate_device(struct weir_mapped *memory, size_t bytes, void **host, uint64_t *device)
{
	int error = weir_mapped_take(memory, bytes, host);

	*device = error ? 0 : WEIR_ADDR(*host);
	return error;
}

static int cpu_allocate(struct weir_backend *backend, size_t bytes, enum weir_memory kind, void **host,
			uint64_t *device)
{
	struct weir_mapped *file = self_of(backend)->memory;
	void *memory;

	if (file && kind == WEIR_MEMORY_DEVICE)
		return allocate_device(file, bytes, host, device);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return weir_fail(ENOMEM, "cannot allocate %zu bytes: %s", bytes, strerror(errno));
	*host = memory;
	*device = WEIR_ADDR(memory);
	return 0;
}

static void cpu_release(struct weir_backend *backend, uint64_t device, size_t bytes, enum weir_memory kind)
{
	struct weir_mapped *file = self_of(backend)->memory;

	if (file && kind == WEIR_MEMORY_DEVICE)
		weir_mapped_give(file, WEIR_POINTER(device));
	else
		munmap(WEIR_POINTER(device), bytes);
}

static int cpu_h2d(struct weir_backend *backend, uint64_t device, const void *host, size_t bytes)
{
	(void)backend;
	memcpy(WEIR_POINTER(device), host, bytes);
	return 0;
}

static int cpu_d2h(struct weir_backend *backend, void *host, uint64_t device, size_t bytes)
{
	(void)backend;
	memcpy(host, WEIR_POINTER(device), bytes);
	return 0;
}

static struct cpu_launch *launch_new(struct cpu_backend *backend, const struct cpu_kernel *kernel, u32 blocks,
				     u32 threads, const void *args, size_t bytes)
{
	struct cpu_launch *launch = calloc(1, sizeof(*launch));
	void *copy = malloc(bytes ? bytes : 1);

	if (!launch || !copy) {
		free(launch);
		free(copy);
		return NULL;
	}
	launch->kernel = kernel;
	launch->blocks = blocks;
	launch->threads = threads;
	launch->waves_per_block = (u32)(((u64)threads + backend->width - 1) / backend->width);
	launch->waves = (u64)launch->waves_per_block * blocks;
	launch->waves_left = launch->waves;
	launch->users = backend->worker_count;
	launch->args = bytes ? memcpy(copy, args, bytes) : copy;
	return launch;
}

/* Behind the others. */
static void queue_launch(struct cpu_backend *backend, struct cpu_launch *launch)
{
	struct cpu_launch **last;

	pthread_mutex_lock(&backend->mutex);
	for (last = &backend->first; *last; last = &(*last)->next)
		;
	launch->serial = ++backend->serial;
	*last = launch;
	pthread_cond_broadcast(&backend->work);
	pthread_mutex_unlock(&backend->mutex);
}

static int cpu_launch(struct weir_backend *base, const char *name, uint32_t blocks, uint32_t threads,
		      const void *args, size_t bytes)
{
	struct cpu_backend *backend = self_of(base);
	const struct cpu_kernel *kernel = cpu_kernel_find(name);
	struct cpu_launch *launch;
	int error =
		weir_launch_check(&(struct weir_launch_check){ .backend = "cpu",
							       .kernel = name,
							       .known = kernel,
							       .takes_bytes = kernel ? kernel->args_bytes : 0,
							       .given_bytes = bytes,
							       .blocks = blocks,
							       .threads = threads,
							       .most_threads = UINT32_MAX });

	if (error)
		return error;
	launch = launch_new(backend, kernel, blocks, threads, args, bytes);
	if (!launch)
		return weir_fail(ENOMEM, "no memory to launch \"%s\"", name);
	queue_launch(backend, launch);
	return 0;
}

/* A launch without a kernel, which has one user more than there are workers: whoever resumes. */
static int cpu_defer(struct weir_backend *base, void *stream, void (*call)(void *of), void *of, void **gate)
{
	struct cpu_backend *backend = self_of(base);
	struct cpu_launch *launch;

	if (stream)
		return weir_fail(EINVAL,
				 "the cpu has no streams but that of weir_launch(); give NULL for it, not %p",
				 stream);
	launch = calloc(1, sizeof(*launch));
	if (!launch)
		return weir_fail(ENOMEM, "no memory to queue a call of the host's");
	launch->users = backend->worker_count + 1;
	launch->call = call;
	launch->of = of;
	*gate = launch; /* before the call, which may lead to resuming */
	queue_launch(backend, launch);
	return 0;
}

static void cpu_resume(struct weir_backend *base, void *gate)
{
	struct cpu_backend *backend = self_of(base);

	pthread_mutex_lock(&backend->mutex);
	leave_launch(backend, gate);
	pthread_mutex_unlock(&backend->mutex);
}

/* Whatever the process has: a wrong address is found by whoever reads or writes there. */
static int cpu_examine(struct weir_backend *backend, uint64_t address, uint64_t bytes, void **host)
{
	(void)backend;
	(void)bytes;
	*host = WEIR_POINTER(address);
	return address ? 0 : weir_fail(EFAULT, "there is no memory at address 0");
}

/* A lane is a fiber here: it has the processor's registers, whatever the kernel. */
static int cpu_kernel_info(struct weir_backend *backend, const char *name, struct weir_kernel_info *info)
{
	(void)backend;
	info->block_lanes = UINT32_MAX;
	return cpu_kernel_find(name) ? 0 : weir_no_kernel("cpu", name);
}

static int cpu_synchronise(struct weir_backend *base)
{
	struct cpu_backend *backend = self_of(base);

	pthread_mutex_lock(&backend->mutex);
	while (backend->first)
		pthread_cond_wait(&backend->idle, &backend->mutex);
	pthread_mutex_unlock(&backend->mutex);
	return 0;
}

static void cpu_properties(struct weir_backend *base, struct weir_backend_properties *out)
{
	struct cpu_backend *backend = self_of(base);

	snprintf(out->name, sizeof(out->name), "cpu (%u worker%s, wave width %u)", backend->worker_count,
		 backend->worker_count == 1 ? "" : "s", backend->width);
	out->wave_lanes = backend->width;
	out->workers = backend->worker_count;
	out->block_lanes = UINT32_MAX;
	out->shared_memory = out->host_rings = true;
	cpu_memory(&out->memory_bytes, &out->memory_free_bytes);
	if (backend->memory)
		weir_mapped_room(backend->memory, &out->memory_bytes, &out->memory_free_bytes);
	out->peer_memory = backend->memory;
	out->window = backend->memory ? weir_mapped_window(backend->memory) : NULL;
	out->numa_node = backend->numa_node;
	/* Lanes' memory is the host's: every device reaches it, and none overtakes its own writes. */
	out->peer_dma = true;
	out->peer_writes = WEIR_PEER_WRITES_ORDERED_ALL;
	out->map_registers.has = out->register_host.has = true;
	snprintf(out->export_memory.why, sizeof(out->export_memory.why),
		 "lanes' memory is the process's own, which no dma-buf is made of");
}

/* Lanes are the host's threads: they reach what it does, where it does. */
static int cpu_map(struct weir_backend *backend, void *host, size_t bytes, uint64_t *device)
{
	(void)backend;
	(void)bytes;
	*device = (uint64_t)(uintptr_t)host;
	return 0;
}

static void cpu_unmap(struct weir_backend *backend, void *host, size_t bytes)
{
	(void)backend;
	(void)host;
	(void)bytes;
}

const struct weir_backend_ops weir_backend_cpu = {
	.size = sizeof(struct weir_backend_ops),
	.name = "cpu",
	.open = cpu_open,
	.close = cpu_close,
	.allocate = cpu_allocate,
	.release = cpu_release,
	.h2d = cpu_h2d,
	.d2h = cpu_d2h,
	.launch = cpu_launch,
	.kernel_info = cpu_kernel_info,
	.synchronise = cpu_synchronise,
	.properties = cpu_properties,
	.examine = cpu_examine,
	.defer = cpu_defer,
	.resume = cpu_resume,
	.map_registers = cpu_map,
	.unmap_registers = cpu_unmap,
	.register_host = cpu_map,
	.unregister_host = cpu_unmap,
};
