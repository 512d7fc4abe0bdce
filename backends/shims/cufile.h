/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cufile.h: the calls of NVIDIA's cuFile that programs use most, on weir, declared after its API reference.
 *
 * For programs that are tried without the library: compiled with either header, they run with libcufile.so.0 of this build
 * (LD_LIBRARY_PATH). What differs: there is one device per process, cuda:0 unless WEIR_BACKEND names another; sizes and
 * offsets of the asynchronous calls are looked at when the call is made; no property, RDMA or user-space file system
 * calls. No kernel module is needed, and the O_DIRECT that cuFile asks for is not.
 */
#ifndef WEIR_SHIM_CUFILE_H
#define WEIR_SHIM_CUFILE_H

#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUFILEOP_BASE_ERR 5000

/** enum CUfileOpError - codes; those that this library gives, and the rest by name through cufileop_status_error() */
typedef enum CUfileOpError {
	CU_FILE_SUCCESS = 0,
	CU_FILE_DRIVER_NOT_INITIALIZED = 5001,
	CU_FILE_DRIVER_CLOSING = 5006,
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

enum CUfileFileHandleType { CU_FILE_HANDLE_TYPE_OPAQUE_FD = 1, CU_FILE_HANDLE_TYPE_OPAQUE_WIN32, CU_FILE_HANDLE_TYPE_USERSPACE_FS };

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

CUfileError_t cuFileDriverOpen(void);
CUfileError_t cuFileDriverClose_v2(void);
#define cuFileDriverClose cuFileDriverClose_v2
long cuFileUseCount(void);
CUfileError_t cuFileGetVersion(int *version);

CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr);
void cuFileHandleDeregister(CUfileHandle_t fh);
CUfileError_t cuFileBufRegister(const void *base, size_t length, int flags);
CUfileError_t cuFileBufDeregister(const void *base);

/* Bytes; -1 and errno for what the system says, or the negative of a CUfileOpError. Memory need not be registered. */
ssize_t cuFileRead(CUfileHandle_t fh, void *base, size_t size, off_t file_offset, off_t base_offset);
ssize_t cuFileWrite(CUfileHandle_t fh, const void *base, size_t size, off_t file_offset, off_t base_offset);

CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *base, size_t *size, off_t *file_offset, off_t *base_offset,
			      ssize_t *bytes_read, void *stream);
CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *base, size_t *size, off_t *file_offset, off_t *base_offset,
			       ssize_t *bytes_written, void *stream);
CUfileError_t cuFileStreamRegister(void *stream, unsigned flags);
CUfileError_t cuFileStreamDeregister(void *stream);

CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch, unsigned most);
CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch, unsigned count, CUfileIOParams_t *params, unsigned flags);
CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch, unsigned least, unsigned *count, CUfileIOEvents_t *events,
				     struct timespec *timeout);
CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch);
void cuFileBatchIODestroy(CUfileBatchHandle_t batch);

/** weir_cufile_error_text() - a code for people; what cufileop_status_error() and CUFILE_ERRSTR() say */
const char *weir_cufile_error_text(int code);

static inline const char *cufileop_status_error(CUfileOpError status)
{
	return weir_cufile_error_text((int)status);
}

#define CUFILE_ERRSTR(error) cufileop_status_error((CUfileOpError)abs((int)(error)))
#define IS_CUFILE_ERR(error) (abs((int)(error)) > CUFILEOP_BASE_ERR)
#define IS_CUDA_ERR(status) ((status).err == CU_FILE_CUDA_DRIVER_ERROR)
#define CU_FILE_CUDA_ERR(status) ((status).cu_err)

#ifdef __cplusplus
}
#endif
#endif
