/* SPDX-License-Identifier: BSD-3-Clause */
#include "stand_in.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/nvme.h>

enum { MOST_TASKS = 256 };

/** struct task - what waits in a stream: a copy, or with @kernel a kernel whose arguments are at @from */
struct task {
	gpuStream_t stream;
	void *to;
	const void *from;
	size_t bytes;
	bool kernel;
};

struct stand_in_stream {
	int device;
};
struct stand_in_event {
	gpuStream_t stream;
};

struct stand_in stand_in = { .waits = true };
static struct task tasks[MOST_TASKS];
static unsigned task_count;
static uint32_t words[STAND_IN_GATES];

void stand_in_begin(void)
{
	stand_in.fails = 0;
	stand_in.good = 0;
	stand_in.lost = false;
	stand_in.unset = 0;
	stand_in.waits = true;
	stand_in.bus_id = "0000:AF:00.0";
	stand_in.traced = 0;
	memset(stand_in.trace, 0, sizeof(stand_in.trace));
	stand_in.ran_count = 0;
	memset(stand_in.freed, 0, sizeof(stand_in.freed));
}

unsigned stand_in_asked(char letter)
{
	unsigned count = 0;

	for (const char *c = stand_in.trace; *c; c++)
		count += *c == letter;
	return count;
}

/* Write it down. Return: whether it fails. */
static gpuError_t note(char letter)
{
	if (stand_in.traced + 1 < sizeof(stand_in.trace))
		stand_in.trace[stand_in.traced++] = letter;
	if (letter != stand_in.fails)
		return gpuSuccess;
	if (stand_in.good) {
		stand_in.good--;
		return gpuSuccess;
	}
	stand_in.fails = 0;
	return stand_in.code;
}

static void run(const struct task *task)
{
	if (!task->kernel)
		memcpy(task->to, task->from, task->bytes);
	else if (stand_in.ran_count < STAND_IN_RAN)
		memcpy(&stand_in.ran[stand_in.ran_count++], task->from, sizeof(uint64_t));
}

/* All that is in the stream, in its order. */
static void drain(gpuStream_t stream)
{
	unsigned left = 0;

	for (unsigned i = 0; i < task_count; i++)
		if (tasks[i].stream == stream)
			run(&tasks[i]);
		else
			tasks[left++] = tasks[i];
	task_count = left;
}

static void queue(struct task task)
{
	if (task_count == MOST_TASKS || task.stream->device != stand_in.current)
		abort();
	tasks[task_count++] = task;
}

const char *gpuGetErrorName(gpuError_t code)
{
	return code == gpuErrorUnknown ? "plainErrorUnknown" : "plainErrorOther";
}

const char *gpuGetErrorString(gpuError_t code)
{
	return code == gpuErrorUnknown ? "plainErrorUnknown" : "words of the run time";
}

gpuError_t gpuGetLastError(void)
{
	return gpuSuccess;
}

gpuError_t gpuGetDeviceCount(int *count)
{
	*count = STAND_IN_DEVICES;
	return gpuSuccess;
}

gpuError_t gpuSetDevice(int device)
{
	if (device < stand_in.unset)
		return gpuErrorUnknown;
	stand_in.current = device;
	return gpuSuccess;
}

gpuError_t gpuDeviceGetPCIBusId(char *text, int bytes, int device)
{
	(void)device;
	snprintf(text, (size_t)bytes, "%s", *stand_in.bus_id ? stand_in.bus_id : "rubbish");
	return *stand_in.bus_id ? gpuSuccess : gpuErrorUnknown;
}

gpuError_t gpuMemGetInfo(size_t *unused, size_t *total)
{
	*unused = 5;
	*total = 7;
	return gpuSuccess;
}

gpuError_t gpuStreamCreateWithFlags(gpuStream_t *stream, unsigned flags)
{
	gpuError_t code = flags == gpuStreamNonBlocking ? note(STAND_IN_STREAM) : gpuErrorUnknown;

	if (code)
		return code;
	*stream = malloc(sizeof(**stream));
	if (!*stream)
		return gpuErrorMemoryAllocation;
	(*stream)->device = stand_in.current;
	stand_in.streams++;
	return gpuSuccess;
}

gpuError_t gpuStreamDestroy(gpuStream_t stream)
{
	drain(stream);
	stand_in.streams--;
	free(stream);
	return gpuSuccess;
}

gpuError_t gpuStreamSynchronize(gpuStream_t stream)
{
	drain(stream);
	return note(STAND_IN_WAIT);
}

gpuError_t gpuStreamWaitEvent(gpuStream_t stream, gpuEvent_t event, unsigned flags)
{
	stand_in.first = event->stream;
	stand_in.behind = stream;
	return flags ? gpuErrorUnknown : note(STAND_IN_BEHIND);
}

gpuError_t gpuEventCreateWithFlags(gpuEvent_t *event, unsigned flags)
{
	gpuError_t code = flags & gpuEventBlockingSync ? note(STAND_IN_EVENT) : gpuErrorUnknown;

	if (code)
		return code;
	*event = calloc(1, sizeof(**event));
	stand_in.events += *event != NULL;
	return *event ? gpuSuccess : gpuErrorMemoryAllocation;
}

gpuError_t gpuEventDestroy(gpuEvent_t event)
{
	stand_in.events--;
	free(event);
	return gpuSuccess;
}

gpuError_t gpuEventRecord(gpuEvent_t event, gpuStream_t stream)
{
	event->stream = stream;
	return note(STAND_IN_RECORD);
}

gpuError_t gpuEventSynchronize(gpuEvent_t event)
{
	return gpuStreamSynchronize(event->stream);
}

gpuError_t gpuHostGetDevicePointer(void **device, void *host, unsigned flags)
{
	*device = host;
	return flags ? gpuErrorUnknown : note(STAND_IN_POINTER);
}

gpuError_t gpuHostRegister(void *host, size_t bytes, unsigned flags)
{
	gpuError_t code = note(STAND_IN_PIN);

	(void)host;
	(void)bytes;
	if (!(flags & gpuHostRegisterMapped) || !(flags & gpuHostRegisterPortable))
		return gpuErrorUnknown;
	stand_in.pinned += !code;
	return code;
}

gpuError_t gpuHostUnregister(void *host)
{
	(void)host;
	stand_in.pinned--;
	return gpuSuccess;
}

gpuError_t gpuMemcpyAsync(void *to, const void *from, size_t bytes, enum gpu_copy kind, gpuStream_t stream)
{
	gpuError_t code = note(STAND_IN_COPY);

	(void)kind;
	if (!code)
		queue((struct task){ .stream = stream, .to = to, .from = from, .bytes = bytes });
	return code;
}

gpuError_t gpuMemsetAsync(void *to, int value, size_t bytes, gpuStream_t stream)
{
	(void)stream;
	memset(to, value, bytes);
	return note(STAND_IN_SET);
}

/* The rest is what each backend has in its own way. */

int gpu_no_device(gpuError_t code)
{
	(void)code;
	return weir_fail(ENODEV, "no plain device");
}

int gpu_device_examine(struct gpu_backend *backend)
{
	backend->units = 3;
	backend->block_lanes = 1024;
	backend->wave_lanes = 32;
	snprintf(backend->name, sizeof(backend->name), "plain:%d", backend->device);
	return 0;
}

bool gpu_is_lost(const struct gpu_backend *backend)
{
	(void)backend;
	return stand_in.lost;
}

gpuError_t gpu_copies_stream(gpuStream_t *stream)
{
	return gpuStreamCreateWithFlags(stream, gpuStreamNonBlocking);
}

gpuError_t gpu_service_stream(const struct gpu_backend *backend, gpuStream_t *stream)
{
	(void)backend;
	return gpuStreamCreateWithFlags(stream, gpuStreamNonBlocking);
}

int gpu_launch_limit(const struct gpu_backend *backend, const char *name, uint32_t blocks, uint32_t threads)
{
	(void)threads;
	return blocks > 1000 ? weir_fail(EINVAL, "%s: too many blocks for %s", name, backend->name) : 0;
}

void gpu_peers(struct gpu_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	out->peer_dma = true;
}

int gpu_kernels_load(struct gpu_backend *backend)
{
	gpuError_t code = note(STAND_IN_KERNELS);

	return code ? gpu_fail(backend, code, "cannot load kernels") : 0;
}

const struct gpu_kernel *gpu_kernel_find(const struct gpu_backend *backend, const char *name)
{
	static struct gpu_kernel found;

	(void)backend;
	found.image = weir_image_find(GPU_NAME, name);
	return found.image ? &found : NULL;
}

void gpu_kernels_unload(struct gpu_backend *backend)
{
	(void)backend;
}

gpuError_t gpu_kernel_start(const struct gpu_kernel *kernel, uint32_t blocks, uint32_t threads, void *args,
			    gpuStream_t stream)
{
	gpuError_t code = note(STAND_IN_START);

	(void)kernel;
	(void)blocks;
	(void)threads;
	if (!code)
		queue((struct task){ .stream = stream, .from = args, .kernel = true });
	return code;
}

gpuError_t gpu_kernel_measure(const struct gpu_kernel *kernel, struct weir_kernel_info *info)
{
	(void)kernel;
	info->registers = 40;
	info->local_bytes = 16;
	return gpuSuccess;
}

gpuError_t gpu_memory_make(struct gpu_backend *backend, enum gpu_held kind, size_t bytes, void **memory)
{
	gpuError_t code = note(STAND_IN_MEMORY);

	(void)kind;
	if (bytes % NVME_PAGE_BYTES || backend->device != stand_in.current)
		abort();
	*memory = code ? NULL : aligned_alloc(NVME_PAGE_BYTES, bytes);
	if (*memory)
		memset(*memory, 0xa5, bytes);
	stand_in.memory += *memory != NULL;
	return *memory ? gpuSuccess : code ? code : gpuErrorMemoryAllocation;
}

void gpu_free(enum gpu_held kind, void *what, size_t bytes)
{
	(void)note(STAND_IN_FREE);
	stand_in.freed[stand_in.current]++;
	if (kind == GPU_REGISTERED) {
		(void)gpuHostUnregister(what);
		return;
	}
	stand_in.memory--;
	explicit_bzero(what, bytes); /* whoever looks at it later sees that */
	free(what);
}

bool gpu_frees_at_once(struct gpu_backend *backend, enum gpu_held kind, void *what)
{
	(void)backend;
	(void)kind;
	(void)what;
	return false;
}

int gpu_host_memory(struct gpu_backend *backend, size_t bytes, void **host)
{
	gpuError_t code = gpu_memory(backend, GPU_HOST_MEMORY, bytes, host);

	if (code)
		return gpu_fail(backend, code, "cannot allocate %zu bytes of host memory", bytes);
	memset(*host, 0, bytes);
	return 0;
}

gpuError_t gpu_queue_copy(struct gpu_backend *backend, void *to, const void *from, size_t bytes, bool in)
{
	(void)in;
	return gpuMemcpyAsync(to, from, bytes, gpuMemcpyDefault, backend->copies);
}

int gpu_gates_make(struct gpu_backend *backend)
{
	backend->gates = calloc(1, sizeof(*backend->gates));
	if (!backend->gates)
		return weir_fail(ENOMEM, "no memory for gates");
	for (unsigned i = 0; i < STAND_IN_GATES; i++)
		backend->gates->gates[i].word = &words[i];
	weir_gates_begin(backend->gates, STAND_IN_GATES);
	return 0;
}

void gpu_gates_end(struct gpu_backend *backend)
{
	if (!backend->gates)
		return;
	weir_gates_end(backend->gates);
	free(backend->gates);
	backend->gates = NULL;
}

gpuError_t gpu_gate_call(gpuStream_t stream, struct weir_gate *gate)
{
	gpuError_t code = note(STAND_IN_CALL);

	(void)stream;
	if (!code)
		weir_gate_reached(gate);
	return code;
}

bool gpu_gate_queue(struct gpu_backend *backend, gpuStream_t stream, uint32_t *word)
{
	(void)backend;
	(void)stream;
	(void)word;
	return stand_in.waits;
}

int gpu_export_memory(struct weir_backend *base, uint64_t device, size_t bytes, int *file, uint64_t *offset)
{
	(void)base;
	(void)device;
	(void)bytes;
	(void)file;
	(void)offset;
	return weir_fail(ENOTSUP, "plain devices export nothing");
}

int gpu_no_registers(const struct gpu_backend *backend, gpuError_t code)
{
	return weir_fail(ENOTSUP, "%s maps no device registers: %s", backend->name, gpuGetErrorName(code));
}

void gpu_abilities(struct gpu_backend *backend, struct weir_backend_properties *out)
{
	(void)backend;
	out->register_host.has = true;
}
