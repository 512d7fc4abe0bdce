/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { LANES_PER_WORKER = 16384 };

int sample_fail(char *error, int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, SAMPLE_ERROR_BYTES, format, arguments);
	va_end(arguments);
	return code;
}

int sample_pass(char *error, int code)
{
	return code ? sample_fail(error, code, "%s", weir_last_error()) : 0;
}

int sample_close(struct weir_context *context, int code, char *error)
{
	int closed = weir_context_close(context);

	return code ? code : sample_pass(error, closed);
}

static const char *backend_of(const struct sample_device *device)
{
	return device->backend ? device->backend : getenv("WEIR_BACKEND");
}

bool sample_is_alone(const struct sample_device *device)
{
	const char *backend = backend_of(device);

	return backend && strstr(backend, "memory=");
}

int sample_open(const struct sample_device *device, struct weir_context **context)
{
	const char *backend = backend_of(device);

	return weir_context_open(backend && *backend ? backend : "auto",
				 WEIR_OPTIONS(context, .workers = device->workers,
					      .wave_lanes = device->wave_lanes,
					      .resident_lanes = device->resident_lanes,
					      .service_waves = WEIR_SERVICE_WHERE_PULLED),
				 context);
}

int sample_blocks(struct weir_context *context, uint64_t wanted, uint32_t *blocks)
{
	struct weir_context_info info = { .size = sizeof(info) };
	int code = weir_context_info(context, &info);
	uint64_t enough = wanted < SAMPLE_BLOCK_LANES ? 1 : wanted / SAMPLE_BLOCK_LANES;

	*blocks = info.workers * LANES_PER_WORKER / SAMPLE_BLOCK_LANES;
	if (*blocks > enough)
		*blocks = (uint32_t)enough;
	return code;
}

int sample_run(struct weir_context *context, const char *kernel, uint32_t blocks, const void *args,
	       size_t bytes)
{
	int code = weir_launch(context, kernel, blocks, SAMPLE_BLOCK_LANES, args, bytes);

	return code ? code : weir_sync(context);
}

int sample_run_lanes(struct weir_context *context, const char *kernel, uint64_t lanes, const void *args,
		     size_t bytes)
{
	uint32_t block = lanes < SAMPLE_BLOCK_LANES ? (uint32_t)lanes : (uint32_t)SAMPLE_BLOCK_LANES;
	int code = weir_launch(context, kernel, (uint32_t)(lanes / block), block, args, bytes);

	return code ? code : weir_sync(context);
}

double sample_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double sample_median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), compare);
	return count ? (values[count / 2] + values[(count - 1) / 2]) / 2 : 0;
}

/* Weyl sequence and multiply. */
uint64_t sample_scramble(uint64_t value)
{
	value = (value + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
	value ^= value >> 29;
	value *= 0x94d049bb133111ebu;
	return value ^ (value >> 32);
}

double sample_megabytes(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

uint64_t sample_peak_rss_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_maxrss * 1024;
}

void sample_set_count(json_t *root, const char *key, uint64_t value)
{
	json_object_set_new(root, key, json_integer((json_int_t)value));
}

void sample_set_real(json_t *root, const char *key, double value)
{
	json_object_set_new(root, key, json_real(value));
}

void sample_set_text(json_t *root, const char *key, const char *value)
{
	json_object_set_new(root, key, json_string(value));
}

void sample_set_bool(json_t *root, const char *key, bool value)
{
	json_object_set_new(root, key, json_boolean(value));
}

void sample_print_json(json_t *root)
{
	json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
}
