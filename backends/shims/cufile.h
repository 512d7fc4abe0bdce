/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cufile.h: the calls of NVIDIA's cuFile, all 43 of CUDA 13.0, on weir, declared after its API reference.
 *
 * For programs that are tried without the library: compiled with either header, they run with libcufile.so.0
 * of this build (LD_LIBRARY_PATH). What differs: there is one device per process, cuda:0 unless WEIR_BACKEND
 * names another; sizes and offsets of the asynchronous calls are looked at when the call is made; no RDMA, no
 * user-space file systems. Limits and parameters are checked and kept, and change nothing. No kernel module
 * is needed, and the O_DIRECT that cuFile asks for is not.
 */
#ifndef WEIR_SHIM_CUFILE_H
#define WEIR_SHIM_CUFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUFILEOP_BASE_ERR 5000

/** enum CUfileOpError - codes; those that this library gives, and the rest by name through
 * cufileop_status_error() */
typedef enum CUfileOpError {
	CU_FILE_SUCCESS = 0,
	CU_FILE_DRIVER_NOT_INITIALIZED = 5001,
	CU_FILE_DRIVER_UNSUPPORTED_LIMIT = 5003,
	CU_FILE_DRIVER_CLOSING = 5006,
	CU_FILE_PLATFORM_NOT_SUPPORTED = 5007,
	CU_FILE_IO_NOT_SUPPORTED = 5008,
	CU_FILE_CUDA_DRIVER_ERROR = 5011,
	CU_FILE_CUDA_POINTER_INVALID = 5012,
	CU_FILE_CUDA_POINTER_RANGE_ERROR = 5014,
	CU_FILE_INVALID_FILE_TYPE = 5018,
	CU_FILE_INVALID_FILE_OPEN_FLAG = 5019,
	CU_FILE_INVALID_VALUE = 5022,
	CU_FILE_MEMORY_ALREADY_REGISTERED = 5023,
	CU_FILE_MEMORY_NOT_REGISTERED = 5024,
	CU_FILE_PERMISSION_DENIED = 5025,
	CU_FILE_DRIVER_ALREADY_OPEN = 5026,
	CU_FILE_HANDLE_NOT_REGISTERED = 5027,
	CU_FILE_HANDLE_ALREADY_REGISTERED = 5028,
	CU_FILE_DEVICE_NOT_FOUND = 5029,
	CU_FILE_INTERNAL_ERROR = 5030,
	CU_FILE_BATCH_SUBMIT_FAILED = 5035,
	CU_FILE_BATCH_FULL = 5037,
	CU_FILE_ASYNC_NOT_SUPPORTED = 5038,
} CUfileOpError;

/** struct CUfileError - a code, and with CU_FILE_CUDA_DRIVER_ERROR the driver's */
typedef struct CUfileError {
	CUfileOpError err;
	int cu_err;
} CUfileError_t;

typedef void *CUfileHandle_t;
typedef void *CUfileBatchHandle_t;

enum CUfileFileHandleType {
	CU_FILE_HANDLE_TYPE_OPAQUE_FD = 1,
	CU_FILE_HANDLE_TYPE_OPAQUE_WIN32,
	CU_FILE_HANDLE_TYPE_USERSPACE_FS
};

/** struct CUfileDescr_t - a file to register; only CU_FILE_HANDLE_TYPE_OPAQUE_FD */
typedef struct CUfileDescr_t {
	enum CUfileFileHandleType type;
	union {
		int fd;
		void *handle;
	} handle;
	const void *fs_ops;
} CUfileDescr_t;

typedef enum CUfileOpcode { CUFILE_READ = 0, CUFILE_WRITE } CUfileOpcode_t;
typedef enum cufileBatchMode { CUFILE_BATCH = 1 } CUfileBatchMode_t;
typedef enum CUFILEStatus_enum {
	CUFILE_WAITING = 0x01,
	CUFILE_PENDING = 0x02,
	CUFILE_INVALID = 0x04,
	CUFILE_CANCELED = 0x08,
	CUFILE_COMPLETE = 0x10,
	CUFILE_TIMEOUT = 0x20,
	CUFILE_FAILED = 0x40,
} CUfileStatus_t;

/** struct CUfileIOParams - a request of a batch */
typedef struct CUfileIOParams {
	CUfileBatchMode_t mode;
	union {
		struct {
			void *devPtr_base;
			off_t file_offset;
			off_t devPtr_offset;
			size_t size;
		} batch;
	} u;
	CUfileHandle_t fh;
	CUfileOpcode_t opcode;
	void *cookie;
} CUfileIOParams_t;

/** struct CUfileIOEvents - one that has ended; @ret: bytes, or a negative errno */
typedef struct CUfileIOEvents {
	void *cookie;
	CUfileStatus_t status;
	size_t ret;
} CUfileIOEvents_t;

enum CUfileDriverControlFlags { CU_FILE_USE_POLL_MODE = 0, CU_FILE_ALLOW_COMPAT_MODE = 1 };
enum CUfileFeatureFlags {
	CU_FILE_DYN_ROUTING_SUPPORTED = 0,
	CU_FILE_BATCH_IO_SUPPORTED = 1,
	CU_FILE_STREAMS_SUPPORTED = 2,
	CU_FILE_PARALLEL_IO_SUPPORTED = 3,
};

/** struct CUfileDrvProps - sizes in KiB; flags are bits by the numbers above; versions are 0: there is no
 * nvidia-fs */
typedef struct CUfileDrvProps {
	struct {
		unsigned major_version;
		unsigned minor_version;
		size_t poll_thresh_size;
		size_t max_direct_io_size;
		unsigned dstatusflags;
		unsigned dcontrolflags;
	} nvfs;
	unsigned fflags;
	unsigned max_device_cache_size;
	unsigned per_buffer_cache_size;
	unsigned max_device_pinned_mem_size;
	unsigned max_batch_io_size;
	unsigned max_batch_io_timeout_msecs;
} CUfileDrvProps_t;

typedef enum CUFileSizeTConfigParameter_t {
	CUFILE_PARAM_PROFILE_STATS,
	CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH,
	CUFILE_PARAM_EXECUTION_MAX_IO_THREADS,
	CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB,
	CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM,
	CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB,
	CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB,
	CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB,
	CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB,
	CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE,
	CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB,
	CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS,
} CUFileSizeTConfigParameter_t;

typedef enum CUFileBoolConfigParameter_t {
	CUFILE_PARAM_PROPERTIES_USE_POLL_MODE,
	CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE,
	CUFILE_PARAM_FORCE_COMPAT_MODE,
	CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE,
	CUFILE_PARAM_EXECUTION_PARALLEL_IO,
	CUFILE_PARAM_PROFILE_NVTX,
	CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY,
	CUFILE_PARAM_USE_PCIP2PDMA,
	CUFILE_PARAM_PREFER_IO_URING,
	CUFILE_PARAM_FORCE_ODIRECT_MODE,
	CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION,
	CUFILE_PARAM_STREAM_MEMOPS_BYPASS,
} CUFileBoolConfigParameter_t;

typedef enum CUFileStringConfigParameter_t {
	CUFILE_PARAM_LOGGING_LEVEL,
	CUFILE_PARAM_ENV_LOGFILE_PATH,
	CUFILE_PARAM_LOG_DIR,
} CUFileStringConfigParameter_t;

/** struct CUfileOpCounter - calls that went well, and that failed */
typedef struct CUfileOpCounter {
	uint64_t ok;
	uint64_t err;
} CUfileOpCounter_t;

/** struct CUfileStatsLevel1 - calls, bytes, and the time that transfers took; what weir does not have is 0 */
typedef struct CUfileStatsLevel1 {
	CUfileOpCounter_t read_ops, write_ops;
	CUfileOpCounter_t hdl_register_ops, hdl_deregister_ops, buf_register_ops, buf_deregister_ops;
	uint64_t read_bytes, write_bytes;
	uint64_t read_bw_bytes_per_sec, write_bw_bytes_per_sec;
	uint64_t read_lat_avg_us, write_lat_avg_us;
	uint64_t read_ops_per_sec, write_ops_per_sec;
	uint64_t read_lat_sum_us, write_lat_sum_us;
	CUfileOpCounter_t batch_submit_ops, batch_complete_ops, batch_setup_ops, batch_cancel_ops,
		batch_destroy_ops;
	CUfileOpCounter_t batch_enqueued_ops, batch_posix_enqueued_ops, batch_processed_ops,
		batch_posix_processed_ops;
	CUfileOpCounter_t batch_nvfs_submit_ops, batch_p2p_submit_ops, batch_aio_submit_ops,
		batch_iouring_submit_ops;
	CUfileOpCounter_t batch_mixed_io_submit_ops, batch_total_submit_ops;
	uint64_t batch_read_bytes, batch_write_bytes, batch_read_bw_bytes, batch_write_bw_bytes;
	uint64_t batch_submit_lat_avg_us, batch_completion_lat_avg_us;
	uint64_t batch_submit_ops_per_sec, batch_complete_ops_per_sec;
	uint64_t batch_submit_lat_sum_us, batch_completion_lat_sum_us;
	uint64_t last_batch_read_bytes, last_batch_write_bytes;
} CUfileStatsLevel1_t;

/** struct CUfileStatsLevel2 - and transfers by size: entry i is of 2^i KiB and more, the first of less than 2
 * KiB */
typedef struct CUfileStatsLevel2 {
	CUfileStatsLevel1_t basic;
	uint64_t read_size_kb_hist[32];
	uint64_t write_size_kb_hist[32];
} CUfileStatsLevel2_t;

typedef struct CUfilePerGpuStats {
	char uuid[16];
	uint64_t read_bytes, read_bw_bytes_per_sec, read_utilization, read_duration_us;
	uint64_t n_total_reads, n_p2p_reads, n_nvfs_reads, n_posix_reads, n_unaligned_reads, n_dr_reads;
	uint64_t n_sparse_regions, n_inline_regions, n_reads_err;
	uint64_t writes_bytes, write_bw_bytes_per_sec, write_utilization, write_duration_us;
	uint64_t n_total_writes, n_p2p_writes, n_nvfs_writes, n_posix_writes, n_unaligned_writes, n_dr_writes,
		n_writes_err;
	uint64_t n_mmap, n_mmap_ok, n_mmap_err, n_mmap_free, reg_bytes;
} CUfilePerGpuStats_t;

/** struct CUfileStatsLevel3 - and by device, of which there is one */
typedef struct CUfileStatsLevel3 {
	CUfileStatsLevel2_t detailed;
	uint32_t num_gpus;
	CUfilePerGpuStats_t per_gpu_stats[16];
} CUfileStatsLevel3_t;

CUfileError_t cuFileDriverOpen(void);
CUfileError_t cuFileDriverClose_v2(void);
#define cuFileDriverClose cuFileDriverClose_v2
long cuFileUseCount(void);
CUfileError_t cuFileGetVersion(int *version);

/* These open the driver. CU_FILE_DRIVER_UNSUPPORTED_LIMIT: no multiple of 4 KiB, or out of range; sizes are
 * in KiB. */
CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props);
CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size);
CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t max_direct_io_size);
CUfileError_t cuFileDriverSetMaxCacheSize(size_t max_cache_size);
CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t max_pinned_size);
/* CU_FILE_PLATFORM_NOT_SUPPORTED: the device is no PCI function. */
CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t *barSize);

/* Set before the driver opens, else CU_FILE_DRIVER_ALREADY_OPEN. */
CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t *value);
CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value);
CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param, char *desc_str, int len);
CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value);
CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value);
CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param, const char *desc_str);
CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param, size_t *min_value,
					    size_t *max_value);
CUfileError_t cuFileSetParameterPosixPoolSlabArray(const size_t *size_values, const size_t *count_values,
						   int len);
CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t *size_values, size_t *count_values, int len);

/* From cuFileStatsStart() on, if the level is not 0; what asynchronous calls do in streams is not counted. */
CUfileError_t cuFileSetStatsLevel(int level);
CUfileError_t cuFileGetStatsLevel(int *level);
CUfileError_t cuFileStatsStart(void);
CUfileError_t cuFileStatsStop(void);
CUfileError_t cuFileStatsReset(void);
CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats);
CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats);
CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats);

CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr);
void cuFileHandleDeregister(CUfileHandle_t fh);
CUfileError_t cuFileBufRegister(const void *base, size_t length, int flags);
CUfileError_t cuFileBufDeregister(const void *base);

/* Bytes; -1 and errno for what the system says, or the negative of a CUfileOpError. Memory need not be
 * registered. */
ssize_t cuFileRead(CUfileHandle_t fh, void *base, size_t size, off_t file_offset, off_t base_offset);
ssize_t cuFileWrite(CUfileHandle_t fh, const void *base, size_t size, off_t file_offset, off_t base_offset);

CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *base, size_t *size, off_t *file_offset,
			      off_t *base_offset, ssize_t *bytes_read, void *stream);
CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *base, size_t *size, off_t *file_offset,
			       off_t *base_offset, ssize_t *bytes_written, void *stream);
CUfileError_t cuFileStreamRegister(void *stream, unsigned flags);
CUfileError_t cuFileStreamDeregister(void *stream);

CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch, unsigned most);
CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch, unsigned count, CUfileIOParams_t *params,
				  unsigned flags);
CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch, unsigned least, unsigned *count,
				     CUfileIOEvents_t *events, struct timespec *timeout);
CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch);
void cuFileBatchIODestroy(CUfileBatchHandle_t batch);

/** weir_cufile_error_text() - a code for people; what cufileop_status_error() and CUFILE_ERRSTR() say */
const char *weir_cufile_error_text(int code);

static inline const char *cufileop_status_error(CUfileOpError status)
{
	return weir_cufile_error_text((int)status);
}

#define CUFILE_ERRSTR(error)     cufileop_status_error((CUfileOpError)abs((int)(error)))
#define IS_CUFILE_ERR(error)     (abs((int)(error)) > CUFILEOP_BASE_ERR)
#define IS_CUDA_ERR(status)      ((status).err == CU_FILE_CUDA_DRIVER_ERROR)
#define CU_FILE_CUDA_ERR(status) ((status).cu_err)

#ifdef __cplusplus
}
#endif
#endif
