/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs, one for each kernel file, built when one of its kernels is first needed, for all open
 * contexts of the device; and the kernels of a context.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../runtime/backend/error.h"
#include "cache.h"
#include "opencl.h"

enum { REASON_BYTES = 160 };

/** struct opencl_program - a kernel file: weir_image.code and the options by which it is known */
struct opencl_program {
	const void *code;
	uint64_t key;
	cl_program program;
	struct opencl_program *next;
};

/* The log's first error, into @reason; all of it goes to stderr. */
static void report_log(const struct opencl_device *device, cl_program program, const char *kernel,
		       char *reason)
{
	size_t bytes = 0;
	char *log, *line;

	snprintf(reason, REASON_BYTES, "the compiler does not say why");
	(void)clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
	log = calloc(1, bytes + 1);
	if (!log || clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL)) {
		free(log);
		return;
	}
	if (*log)
		weir_report("what the compiler of opencl:%u says of kernel \"%s\" and its file:\n%s",
			    device->number, kernel, log);
	line = strstr(log, "error:");
	while (line && line > log && line[-1] != '\n')
		line--;
	if (line)
		line[strcspn(line, "\n")] = 0;
	else /* a linker's, perhaps: all on one line */
		for (char *c = log; *c; c++)
			*c = *c == '\n' ? ' ' : *c;
	if (*log)
		snprintf(reason, REASON_BYTES, "%s", line ? line : log);
	free(log);
}

static int build_source(struct opencl_device *device, const char *options, const struct weir_image *image,
			cl_program *out)
{
	const char *source = image->code;
	char reason[REASON_BYTES];
	cl_int code;

	*out = clCreateProgramWithSource(device->context, 1, &source, &image->code_bytes, &code);
	if (!*out)
		return opencl_fail(code, "opencl:%u does not take the source of kernel \"%s\"",
				   device->number, image->kernel);
	code = clBuildProgram(*out, 1, &device->id, options, NULL, NULL);
	if (!code)
		return 0;
	report_log(device, *out, image->kernel, reason);
	(void)clReleaseProgram(*out);
	return weir_fail(EIO, "cannot compile kernel \"%s\" for opencl:%u (%s): %s", image->kernel,
			 device->number, device->name, reason);
}

/* NULL if there is none, or the device does not take it, for whatever reason: there is the source. */
static cl_program build_kept(struct opencl_device *device, const char *options, uint64_t key)
{
	size_t bytes = 0;
	unsigned char *binary = opencl_cache_load(key, &bytes);
	cl_int status = CL_SUCCESS, code = CL_SUCCESS;
	cl_program program = NULL;

	if (binary)
		program = clCreateProgramWithBinary(device->context, 1, &device->id, &bytes,
						    (const unsigned char **)&binary, &status, &code);
	free(binary);
	if (!program)
		return NULL;
	if (!status)
		status = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
	if (!status)
		return program;
	(void)clReleaseProgram(program);
	return NULL;
}

static void keep(cl_program program, uint64_t key)
{
	size_t bytes = 0;
	unsigned char *binary = NULL;

	if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes, NULL) == CL_SUCCESS &&
	    bytes)
		binary = malloc(bytes);
	if (binary &&
	    clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL) == CL_SUCCESS)
		opencl_cache_store(key, binary, bytes);
	free(binary);
}

/*
 * PoCL keeps what it makes by itself, a kernel at a time when it is first launched. Asked for a
 * program's binary it would translate all of its kernels, ten times the work.
 */
static bool keeps_its_own(const struct opencl_device *device)
{
	const char *always = getenv("WEIR_OPENCL_CACHE");

	return !(always && !strcmp(always, "always")) &&
	       !strcmp(device->platform, "Portable Computing Language");
}

static int build(struct opencl_device *device, const char *options, const struct weir_image *image,
		 struct opencl_program *program)
{
	int error;

	if (keeps_its_own(device))
		return build_source(device, options, image, &program->program);
	program->program = build_kept(device, options, program->key);
	if (program->program)
		return 0;
	error = build_source(device, options, image, &program->program);
	if (!error)
		keep(program->program, program->key);
	return error;
}

/* The device's mutex is held. */
static int program_get(struct opencl_device *device, const char *options, const struct weir_image *image,
		       cl_program *out)
{
	uint64_t key = opencl_hash(opencl_hash(device->identity, options, strlen(options) + 1), image->code,
				   image->code_bytes);
	struct opencl_program *program = device->programs;
	int error;

	while (program && (program->code != image->code || program->key != key))
		program = program->next;
	if (!program) {
		program = malloc(sizeof(*program));
		if (!program)
			return weir_fail(ENOMEM, "no memory to note kernel \"%s\"", image->kernel);
		*program =
			(struct opencl_program){ .code = image->code, .key = key, .next = device->programs };
		error = build(device, options, image, program);
		if (error) {
			free(program);
			return error;
		}
		device->programs = program;
	}
	*out = program->program;
	return 0;
}

/* As many lanes as its registers allow, where a block is a work-group. */
static cl_int most_lanes(struct opencl_backend *backend, struct opencl_kernel *kernel)
{
	size_t most = UINT32_MAX;
	cl_int code = CL_SUCCESS;

	if (opencl_grouped(backend))
		code = clGetKernelWorkGroupInfo(kernel->kernel, backend->device->id,
						CL_KERNEL_WORK_GROUP_SIZE, sizeof(most), &most, NULL);
	kernel->block_lanes = (uint32_t)most;
	return code;
}

int opencl_kernel_get(struct opencl_backend *backend, const struct weir_image *image,
		      struct opencl_kernel **out)
{
	struct opencl_device *device = backend->device;
	cl_program program = NULL;
	cl_int code;
	int error;

	for (*out = backend->kernels; *out; *out = (*out)->next)
		if ((*out)->image == image)
			return 0;
	pthread_mutex_lock(&device->mutex);
	error = program_get(device, backend->options, image, &program);
	pthread_mutex_unlock(&device->mutex);
	if (error)
		return error;
	*out = malloc(sizeof(**out));
	if (!*out)
		return weir_fail(ENOMEM, "no memory to note kernel \"%s\"", image->kernel);
	**out = (struct opencl_kernel){ .image = image, .next = backend->kernels };
	(*out)->kernel = clCreateKernel(program, image->kernel, &code);
	if (!code) {
		code = most_lanes(backend, *out);
		if (code)
			(void)clReleaseKernel((*out)->kernel);
	}
	if (code) {
		free(*out);
		return opencl_fail(code, "cannot make kernel \"%s\" of its program on opencl:%u",
				   image->kernel, device->number);
	}
	backend->kernels = *out;
	return 0;
}

void opencl_kernels_end(struct opencl_backend *backend)
{
	while (backend->kernels) {
		struct opencl_kernel *next = backend->kernels->next;

		(void)clReleaseKernel(backend->kernels->kernel);
		free(backend->kernels);
		backend->kernels = next;
	}
}
