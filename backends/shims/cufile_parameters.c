/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuFile's properties, limits and parameters. weir has none of the buffers and threads that they are about:
 * each is checked as cuFile documents it, kept, and given back. None changes what weir does, but the level of
 * statistics (cufile_stats.c).
 */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cufile_shim.h"

enum {
	SIZES = CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS + 1,
	BOOLS = CUFILE_PARAM_STREAM_MEMOPS_BYPASS + 1
};
enum {
	STRINGS = CUFILE_PARAM_LOG_DIR + 1,
	SLABS_MOST = 16,
	TEXT_BYTES = 4096,
	PAGE_KB = 4,
	REQUESTS_MOST = 1 << 16
};

/* In KB, of whole pages. */
#define PAGES_MOST (UINT32_MAX - (PAGE_KB - 1))

/** struct size_parameter - a number; pages: of KB, in multiples of 4 KiB */
struct size_parameter {
	size_t value;
	size_t least;
	size_t most;
	bool pages;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* around all of these */
static struct size_parameter sizes[SIZES] = {
	[CUFILE_PARAM_PROFILE_STATS] = { 0, 0, 3, false },
	[CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH] = { 128, 1, REQUESTS_MOST, false },
	[CUFILE_PARAM_EXECUTION_MAX_IO_THREADS] = { 0, 0, 1024, false },
	[CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB] = { 8192, 0, SIZE_MAX / 1024, false },
	[CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM] = { 0, 0, 1024, false },
	[CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB] = { 16384, PAGE_KB, PAGES_MOST, true },
	[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB] = { 131072, 0, PAGES_MOST, true },
	[CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB] = { 1024, 0, PAGES_MOST, true },
	[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB] = { SIZE_MAX, PAGE_KB, SIZE_MAX, true },
	[CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE] = { 128, 1, REQUESTS_MOST, false },
	[CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB] = { 4, 0, PAGES_MOST, true },
	[CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS] = { 0, 0, INT_MAX, false },
};
static bool bools[BOOLS] = {
	[CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE] = true,
	[CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY] = true,
	[CUFILE_PARAM_EXECUTION_PARALLEL_IO] = true,
	[CUFILE_PARAM_PREFER_IO_URING] = true,
};
static char strings[STRINGS][TEXT_BYTES] = { [CUFILE_PARAM_LOGGING_LEVEL] = "ERROR" };
static size_t slab_sizes[SLABS_MOST], slab_counts[SLABS_MOST];
static int slabs;

static bool fits(const struct size_parameter *parameter, size_t value)
{
	if (value < parameter->least || value > parameter->most)
		return false;
	return !parameter->pages || value % PAGE_KB == 0 || value == SIZE_MAX;
}

static CUfileOpError set_size(int param, size_t value, CUfileOpError wrong)
{
	CUfileOpError code = wrong;

	pthread_mutex_lock(&mutex);
	if (fits(&sizes[param], value)) {
		sizes[param].value = value;
		code = CU_FILE_SUCCESS;
	}
	pthread_mutex_unlock(&mutex);
	return code;
}

/* The driver's calls, which need it open, and open it. */
static CUfileError_t set_limit(CUFileSizeTConfigParameter_t param, size_t value)
{
	if (cufile_begin())
		return cufile_code(CU_FILE_DRIVER_NOT_INITIALIZED);
	return cufile_code(set_size(param, value, CU_FILE_DRIVER_UNSUPPORTED_LIMIT));
}

CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size)
{
	CUfileError_t error = set_limit(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, poll_threshold_size);

	pthread_mutex_lock(&mutex);
	if (!error.err)
		bools[CUFILE_PARAM_PROPERTIES_USE_POLL_MODE] = poll;
	pthread_mutex_unlock(&mutex);
	return error;
}

CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t max_direct_io_size)
{
	return set_limit(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, max_direct_io_size);
}

CUfileError_t cuFileDriverSetMaxCacheSize(size_t max_cache_size)
{
	return set_limit(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, max_cache_size);
}

CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t max_pinned_size)
{
	return set_limit(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, max_pinned_size);
}

static unsigned as_unsigned(size_t value)
{
	return value < UINT_MAX ? (unsigned)value : UINT_MAX;
}

CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props)
{
	if (!props)
		return cufile_code(CU_FILE_INVALID_VALUE);
	if (cufile_begin())
		return cufile_code(CU_FILE_DRIVER_NOT_INITIALIZED);
	pthread_mutex_lock(&mutex);
	*props = (CUfileDrvProps_t){
		.nvfs = { .poll_thresh_size = sizes[CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB].value,
			  .max_direct_io_size = sizes[CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB].value,
			  .dcontrolflags = (unsigned)bools[CUFILE_PARAM_PROPERTIES_USE_POLL_MODE]
						   << CU_FILE_USE_POLL_MODE |
					   (unsigned)bools[CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE]
						   << CU_FILE_ALLOW_COMPAT_MODE },
		.fflags = 1U << CU_FILE_BATCH_IO_SUPPORTED | 1U << CU_FILE_STREAMS_SUPPORTED |
			  1U << CU_FILE_PARALLEL_IO_SUPPORTED,
		.max_device_cache_size =
			as_unsigned(sizes[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB].value),
		.per_buffer_cache_size =
			as_unsigned(sizes[CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB].value),
		.max_device_pinned_mem_size =
			as_unsigned(sizes[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB].value),
		.max_batch_io_size = as_unsigned(sizes[CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE].value),
		.max_batch_io_timeout_msecs =
			as_unsigned(sizes[CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS].value),
	};
	pthread_mutex_unlock(&mutex);
	return cufile_code(CU_FILE_SUCCESS);
}

/* Parameters are set before the driver opens. */
static CUfileOpError check_set(int param, int count)
{
	if (param < 0 || param >= count)
		return CU_FILE_INVALID_VALUE;
	return cuFileUseCount() ? CU_FILE_DRIVER_ALREADY_OPEN : CU_FILE_SUCCESS;
}

CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value)
{
	CUfileOpError code = check_set((int)param, SIZES);

	if (!code)
		code = set_size((int)param, value, CU_FILE_INVALID_VALUE);
	if (!code && param == CUFILE_PARAM_PROFILE_STATS)
		return cuFileSetStatsLevel((int)value);
	return cufile_code(code);
}

CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value)
{
	CUfileOpError code = check_set((int)param, BOOLS);

	pthread_mutex_lock(&mutex);
	if (!code)
		bools[param] = value;
	pthread_mutex_unlock(&mutex);
	return cufile_code(code);
}

CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param, const char *desc_str)
{
	CUfileOpError code = check_set((int)param, STRINGS);

	if (!code && (!desc_str || strlen(desc_str) >= TEXT_BYTES))
		code = CU_FILE_INVALID_VALUE;
	pthread_mutex_lock(&mutex);
	if (!code)
		memcpy(strings[param], desc_str, strlen(desc_str) + 1);
	pthread_mutex_unlock(&mutex);
	return cufile_code(code);
}

CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t *value)
{
	if (!value || (int)param < 0 || (int)param >= SIZES)
		return cufile_code(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&mutex);
	*value = sizes[param].value;
	pthread_mutex_unlock(&mutex);
	return cufile_code(CU_FILE_SUCCESS);
}

CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value)
{
	if (!value || (int)param < 0 || (int)param >= BOOLS)
		return cufile_code(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&mutex);
	*value = bools[param];
	pthread_mutex_unlock(&mutex);
	return cufile_code(CU_FILE_SUCCESS);
}

CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param, char *desc_str, int len)
{
	CUfileOpError code = CU_FILE_INVALID_VALUE;

	if (!desc_str || len <= 0 || (int)param < 0 || (int)param >= STRINGS)
		return cufile_code(code);
	pthread_mutex_lock(&mutex);
	if (strlen(strings[param]) < (size_t)len) {
		memcpy(desc_str, strings[param], strlen(strings[param]) + 1);
		code = CU_FILE_SUCCESS;
	}
	pthread_mutex_unlock(&mutex);
	return cufile_code(code);
}

CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param, size_t *min_value,
					    size_t *max_value)
{
	if (!min_value || !max_value || (int)param < 0 || (int)param >= SIZES)
		return cufile_code(CU_FILE_INVALID_VALUE);
	*min_value = sizes[param].least;
	*max_value = sizes[param].most;
	return cufile_code(CU_FILE_SUCCESS);
}

CUfileError_t cuFileSetParameterPosixPoolSlabArray(const size_t *size_values, const size_t *count_values,
						   int len)
{
	if (!size_values || !count_values || len <= 0 || len > SLABS_MOST)
		return cufile_code(CU_FILE_INVALID_VALUE);
	if (cuFileUseCount())
		return cufile_code(CU_FILE_DRIVER_ALREADY_OPEN);
	pthread_mutex_lock(&mutex);
	memcpy(slab_sizes, size_values, (size_t)len * sizeof(*size_values));
	memcpy(slab_counts, count_values, (size_t)len * sizeof(*count_values));
	slabs = len;
	pthread_mutex_unlock(&mutex);
	return cufile_code(CU_FILE_SUCCESS);
}

CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t *size_values, size_t *count_values, int len)
{
	CUfileOpError code = CU_FILE_INVALID_VALUE;

	if (!size_values || !count_values)
		return cufile_code(code);
	pthread_mutex_lock(&mutex);
	if (len > 0 && len == slabs) {
		memcpy(size_values, slab_sizes, (size_t)len * sizeof(*size_values));
		memcpy(count_values, slab_counts, (size_t)len * sizeof(*count_values));
		code = CU_FILE_SUCCESS;
	}
	pthread_mutex_unlock(&mutex);
	return cufile_code(code);
}

/* The largest memory BAR, as sysfs has it: each line is first byte, last byte, flags. */
static size_t largest_bar(const char *address)
{
	unsigned long long first, last, flags, most = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.16s/resource", address);
	file = fopen(path, "r");
	if (!file)
		return 0;
	for (int bar = 0; bar < 6 && fscanf(file, "%llx %llx %llx", &first, &last, &flags) == 3; bar++)
		if (last > first && last - first + 1 > most)
			most = last - first + 1;
	fclose(file);
	return (size_t)most;
}

CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t *barSize)
{
	struct weir_context_info info = { .size = sizeof(info) };
	size_t bytes = 0;

	if (gpuIndex != 0 || !barSize) /* there is one device */
		return cufile_code(CU_FILE_INVALID_VALUE);
	if (cufile_begin())
		return cufile_code(CU_FILE_DRIVER_NOT_INITIALIZED);
	if (!shim_info(&cufile_shim, &info) && *info.pci_address)
		bytes = largest_bar(info.pci_address);
	if (!bytes)
		return cufile_code(CU_FILE_PLATFORM_NOT_SUPPORTED); /* the device is no PCI function */
	*barSize = bytes / 1024;
	return cufile_code(CU_FILE_SUCCESS);
}
