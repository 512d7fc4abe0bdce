/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dataset_runtime.c: libweir, as far as runtime/dataset asks for it, for the explorer: launches that lanes of
 * the run carry out, memory of its arena, clocks and sleeps in virtual time.
 */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/dataset.h>
#include <weir/port.h>

#include "backend/error.h"
#include "dataset/mounted.h"

#include "dataset_runtime.h"
#include "rig.h"

struct dataset_runtime dataset_runtime;
static char sentence[1024];

int weir_fail(int error, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(sentence, sizeof(sentence), format, list);
	va_end(list);
	return -error;
}

void weir_report(const char *format, ...)
{
	(void)format;
}

const char *weir_last_error(void)
{
	return sentence;
}

/* Until at most @most launches are not done by all lanes. */
static void wait_for_lanes(u32 most)
{
	struct dataset_stream *stream = dataset_runtime.stream;
	u32 launched = weir_load_u32_relaxed_sys(&stream->launched), iteration = 0; /* our own word */

	while (launched > most &&
	       weir_load_u32_acquire_dev(&stream->ended) < (launched - most) * dataset_runtime.threads)
		weir_relax(iteration++);
}

void dataset_launch(const struct dataset_launch *launch)
{
	struct dataset_stream *stream = dataset_runtime.stream;
	u32 number = weir_load_u32_relaxed_sys(&stream->launched); /* our own word */

	wait_for_lanes(DATASET_LAUNCHES - 1);
	stream->launches[number % DATASET_LAUNCHES] = *launch;
	weir_store_u32_release_sys(&stream->launched, number + 1);
	explore_progress();
}

int weir_launch(struct weir_context *context, const char *kernel, uint32_t blocks, uint32_t threads,
		const void *args, size_t args_bytes)
{
	struct dataset_launch launch = {
		.kind = strcmp(kernel, "weir_dataset_post") == 0 ? DATASET_POST : DATASET_ASSEMBLE,
	};

	(void)context, (void)blocks, (void)threads;
	if (dataset_runtime.refuse && dataset_runtime.refuse())
		return weir_fail(ENOMEM, "no memory for a launch");
	memcpy(&launch.args, args, args_bytes);
	dataset_launch(&launch);
	return 0;
}

int weir_sync(struct weir_context *context)
{
	(void)context;
	wait_for_lanes(0);
	explore_progress();
	return 0;
}

int weir_alloc(struct weir_context *context, size_t bytes, uint64_t *address)
{
	(void)context;
	*address = (uint64_t)(uintptr_t)rig_allocate(bytes, 4096);
	return 0;
}

int weir_alloc_host(struct weir_context *context, size_t bytes, uint64_t *address, void **host)
{
	int error = weir_alloc(context, bytes, address);

	*host = (void *)(uintptr_t)*address;
	return error;
}

/* All of it goes with the run. */
int weir_free(struct weir_context *context, uint64_t address)
{
	(void)context, (void)address;
	return 0;
}

int weir_storage_disk(struct weir_storage *storage, struct weir_disk *disk)
{
	(void)storage, (void)disk;
	return 0;
}

int weir_dataset_check(const struct weir_dataset *dataset, const char *call)
{
	(void)dataset, (void)call;
	return 0;
}

int weir_dataset_sample_failed(struct weir_dataset *dataset, uint64_t number, uint32_t status)
{
	(void)dataset;
	return weir_fail(EIO, DATASET_FAILED, (unsigned long long)number, status);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	u64 ns = weir_clock_ns();

	(void)clock;
	now->tv_sec = (time_t)(ns / 1000000000);
	now->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
	(void)wanted, (void)left;
	weir_relax(0);
	return 0;
}

int sched_yield(void)
{
	weir_relax(0);
	return 0;
}
