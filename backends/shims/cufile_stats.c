/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuFile's statistics: of the calls that return when the transfer has ended, and of batches. Which path
 * served a request is not told apart here: weir_file_stats() has that.
 */
#include <string.h>
#include <time.h>

#include "cufile_shim.h"

enum { LEVELS = 3, SIZES = 32 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* around all of these */
static int level;
static bool counting;
static CUfileStatsLevel2_t counts;

static CUfileOpCounter_t *counter(enum cufile_call call)
{
	switch (call) {
	case CUFILE_CALL_READ: return &counts.basic.read_ops;
	case CUFILE_CALL_WRITE: return &counts.basic.write_ops;
	case CUFILE_CALL_HANDLE_REGISTER: return &counts.basic.hdl_register_ops;
	case CUFILE_CALL_HANDLE_DEREGISTER: return &counts.basic.hdl_deregister_ops;
	case CUFILE_CALL_BUF_REGISTER: return &counts.basic.buf_register_ops;
	case CUFILE_CALL_BUF_DEREGISTER: return &counts.basic.buf_deregister_ops;
	case CUFILE_CALL_BATCH_SETUP: return &counts.basic.batch_setup_ops;
	case CUFILE_CALL_BATCH_SUBMIT: return &counts.basic.batch_submit_ops;
	case CUFILE_CALL_BATCH_CANCEL: return &counts.basic.batch_cancel_ops;
	case CUFILE_CALL_BATCH_DESTROY: return &counts.basic.batch_destroy_ops;
	case CUFILE_CALL_BATCH_COMPLETE: break;
	}
	return &counts.basic.batch_complete_ops;
}

static void count_locked(enum cufile_call call, bool good)
{
	CUfileOpCounter_t *of = counter(call);

	if (good)
		of->ok++;
	else
		of->err++;
}

CUfileError_t cufile_count(enum cufile_call call, CUfileOpError code)
{
	pthread_mutex_lock(&mutex);
	if (counting)
		count_locked(call, code == CU_FILE_SUCCESS);
	pthread_mutex_unlock(&mutex);
	return cufile_code(code);
}

uint64_t cufile_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Which of the 32 sizes, in powers of two of KiB: the first is what is smaller than 2. */
static unsigned size_class(uint64_t bytes)
{
	unsigned class = 0;

	for (uint64_t kib = bytes / 1024; kib > 1 && class < SIZES - 1; kib /= 2)
		class ++;
	return class;
}

static void count_bytes(bool write, uint64_t bytes, uint64_t us)
{
	CUfileStatsLevel1_t *basic = &counts.basic;

	*(write ? &basic->write_bytes : &basic->read_bytes) += bytes;
	*(write ? &basic->write_lat_sum_us : &basic->read_lat_sum_us) += us;
	if (level >= 2)
		(write ? counts.write_size_kb_hist : counts.read_size_kb_hist)[size_class(bytes)]++;
}

void cufile_count_transfer(bool write, ssize_t result, uint64_t us)
{
	pthread_mutex_lock(&mutex);
	if (counting) {
		count_locked(write ? CUFILE_CALL_WRITE : CUFILE_CALL_READ, result >= 0);
		if (result >= 0)
			count_bytes(write, (uint64_t)result, us);
	}
	pthread_mutex_unlock(&mutex);
}

void cufile_count_completion(bool write, int64_t result)
{
	pthread_mutex_lock(&mutex);
	if (counting) {
		count_locked(CUFILE_CALL_BATCH_COMPLETE, result >= 0);
		if (result >= 0)
			*(write ? &counts.basic.batch_write_bytes : &counts.basic.batch_read_bytes) +=
				(uint64_t)result;
	}
	pthread_mutex_unlock(&mutex);
}

CUfileError_t cuFileSetStatsLevel(int new_level)
{
	if (new_level < 0 || new_level > LEVELS)
		return cufile_code(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&mutex);
	level = new_level;
	counting = counting && level;
	pthread_mutex_unlock(&mutex);
	return cufile_code(CU_FILE_SUCCESS);
}

CUfileError_t cuFileGetStatsLevel(int *out)
{
	if (!out)
		return cufile_code(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&mutex);
	*out = level;
	pthread_mutex_unlock(&mutex);
	return cufile_code(CU_FILE_SUCCESS);
}

static CUfileError_t set_counting(bool on)
{
	if (!cuFileUseCount())
		return cufile_code(CU_FILE_DRIVER_NOT_INITIALIZED);
	pthread_mutex_lock(&mutex);
	counting = on && level;
	pthread_mutex_unlock(&mutex);
	return cufile_code(CU_FILE_SUCCESS);
}

CUfileError_t cuFileStatsStart(void)
{
	return set_counting(true);
}

CUfileError_t cuFileStatsStop(void)
{
	return set_counting(false);
}

CUfileError_t cuFileStatsReset(void)
{
	if (!cuFileUseCount())
		return cufile_code(CU_FILE_DRIVER_NOT_INITIALIZED);
	pthread_mutex_lock(&mutex);
	counts = (CUfileStatsLevel2_t){ 0 };
	pthread_mutex_unlock(&mutex);
	return cufile_code(CU_FILE_SUCCESS);
}

/* Of a count above 2^64 / 10^6, too. */
static uint64_t per_second(uint64_t count, uint64_t us)
{
	return count / us * 1000000 + count % us * 1000000 / us;
}

static void set_rates(CUfileStatsLevel1_t *basic)
{
	if (basic->read_lat_sum_us) {
		basic->read_bw_bytes_per_sec = per_second(basic->read_bytes, basic->read_lat_sum_us);
		basic->read_ops_per_sec = basic->read_ops.ok * 1000000 / basic->read_lat_sum_us;
		basic->read_lat_avg_us = basic->read_lat_sum_us / basic->read_ops.ok;
	}
	if (basic->write_lat_sum_us) {
		basic->write_bw_bytes_per_sec = per_second(basic->write_bytes, basic->write_lat_sum_us);
		basic->write_ops_per_sec = basic->write_ops.ok * 1000000 / basic->write_lat_sum_us;
		basic->write_lat_avg_us = basic->write_lat_sum_us / basic->write_ops.ok;
	}
}

static CUfileError_t snapshot(int least, CUfileStatsLevel2_t *out)
{
	CUfileOpError code = CU_FILE_INVALID_VALUE;

	if (!cuFileUseCount())
		return cufile_code(CU_FILE_DRIVER_NOT_INITIALIZED);
	pthread_mutex_lock(&mutex);
	if (level >= least) {
		*out = counts;
		set_rates(&out->basic);
		code = CU_FILE_SUCCESS;
	}
	pthread_mutex_unlock(&mutex);
	return cufile_code(code);
}

CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats)
{
	CUfileStatsLevel2_t all;
	CUfileError_t error = stats ? snapshot(1, &all) : cufile_code(CU_FILE_INVALID_VALUE);

	if (!error.err)
		*stats = all.basic;
	return error;
}

CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats)
{
	return stats ? snapshot(2, stats) : cufile_code(CU_FILE_INVALID_VALUE);
}

/* The one device, without a UUID: weir knows none. */
CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats)
{
	CUfileStatsLevel2_t all;
	CUfileError_t error = stats ? snapshot(3, &all) : cufile_code(CU_FILE_INVALID_VALUE);
	CUfilePerGpuStats_t *gpu;

	if (error.err)
		return error;
	memset(stats, 0, sizeof(*stats));
	stats->detailed = all;
	stats->num_gpus = 1;
	gpu = &stats->per_gpu_stats[0];
	gpu->read_bytes = all.basic.read_bytes;
	gpu->read_bw_bytes_per_sec = all.basic.read_bw_bytes_per_sec;
	gpu->read_duration_us = all.basic.read_lat_sum_us;
	gpu->n_total_reads = all.basic.read_ops.ok;
	gpu->n_reads_err = all.basic.read_ops.err;
	gpu->writes_bytes = all.basic.write_bytes;
	gpu->write_bw_bytes_per_sec = all.basic.write_bw_bytes_per_sec;
	gpu->write_duration_us = all.basic.write_lat_sum_us;
	gpu->n_total_writes = all.basic.write_ops.ok;
	gpu->n_writes_err = all.basic.write_ops.err;
	gpu->n_mmap = all.basic.buf_register_ops.ok + all.basic.buf_register_ops.err;
	gpu->n_mmap_ok = all.basic.buf_register_ops.ok;
	gpu->n_mmap_err = all.basic.buf_register_ops.err;
	gpu->n_mmap_free = all.basic.buf_deregister_ops.ok;
	return error;
}
