/* SPDX-License-Identifier: BSD-3-Clause */
/* cuFile's driver, handles, buffers, and requests one by one. */
#include "cufile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cufile_shim.h"

enum { VERSION = 1000 * 1 + 10 * 15 };

struct shim cufile_shim = SHIM_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* around the handles */
static struct cufile_handle *handles; /* these outlive the driver's closing, as the files do */

CUfileError_t cufile_code(CUfileOpError code)
{
	return (CUfileError_t){ .err = code };
}

CUfileOpError cufile_of_errno(int error)
{
	switch (error) {
	case 0: return CU_FILE_SUCCESS;
	case -ENODEV: return CU_FILE_DEVICE_NOT_FOUND;
	case -EINVAL: return CU_FILE_INVALID_VALUE;
	case -EFAULT: return CU_FILE_CUDA_POINTER_RANGE_ERROR;
	case -EEXIST: return CU_FILE_MEMORY_ALREADY_REGISTERED;
	case -ENOENT: return CU_FILE_MEMORY_NOT_REGISTERED;
	case -EACCES:
	case -EPERM: return CU_FILE_PERMISSION_DENIED;
	case -ENOTSUP: return CU_FILE_ASYNC_NOT_SUPPORTED;
	case -EBADF: return CU_FILE_INVALID_FILE_OPEN_FLAG;
	case -ESPIPE: return CU_FILE_INVALID_FILE_TYPE;
	default: return CU_FILE_INTERNAL_ERROR;
	}
}

static CUfileError_t of_errno(int error)
{
	return cufile_code(cufile_of_errno(error));
}

CUfileError_t cuFileDriverOpen(void)
{
	return of_errno(shim_open(&cufile_shim, "auto"));
}

CUfileError_t cuFileDriverClose_v2(void)
{
	return shim_close(&cufile_shim) ? cufile_code(CU_FILE_DRIVER_NOT_INITIALIZED)
					: cufile_code(CU_FILE_SUCCESS);
}

#undef cuFileDriverClose
CUfileError_t cuFileDriverClose(void);

CUfileError_t cuFileDriverClose(void)
{
	return cuFileDriverClose_v2();
}

long cuFileUseCount(void)
{
	return (long)shim_users(&cufile_shim);
}

CUfileError_t cuFileGetVersion(int *version)
{
	if (!version)
		return cufile_code(CU_FILE_INVALID_VALUE);
	*version = VERSION;
	return cufile_code(CU_FILE_SUCCESS);
}

/* Programs may leave cuFileDriverOpen() out, and go on after cuFileDriverClose(). */
int cufile_begin(void)
{
	return shim_begin(&cufile_shim, "auto");
}

static struct cufile_handle **find(const void *handle)
{
	struct cufile_handle **link = &handles;

	while (*link && *link != handle)
		link = &(*link)->next;
	return link;
}

/* The descriptor of a handle, or -1. */
int cufile_file(CUfileHandle_t fh)
{
	struct cufile_handle *handle;
	int file;

	pthread_mutex_lock(&mutex);
	handle = *find(fh);
	file = handle ? handle->file : -1;
	pthread_mutex_unlock(&mutex);
	return file;
}

static CUfileOpError poll_at(int file)
{
	struct stat about;

	if (fcntl(file, F_GETFL) < 0 || fstat(file, &about) < 0)
		return CU_FILE_INVALID_VALUE;
	return S_ISREG(about.st_mode) || S_ISBLK(about.st_mode) ? CU_FILE_SUCCESS : CU_FILE_INVALID_FILE_TYPE;
}

/* Mutex held. */
static CUfileOpError add_handle(int file, CUfileHandle_t *fh)
{
	struct cufile_handle *handle = handles;

	while (handle && handle->file != file)
		handle = handle->next;
	if (handle)
		return CU_FILE_HANDLE_ALREADY_REGISTERED;
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return CU_FILE_INTERNAL_ERROR;
	*handle = (struct cufile_handle){ .next = handles, .file = file };
	handles = handle;
	*fh = handle;
	return CU_FILE_SUCCESS;
}

static CUfileOpError register_handle(CUfileHandle_t *fh, const CUfileDescr_t *descr)
{
	CUfileOpError code;

	if (!fh || !descr)
		return CU_FILE_INVALID_VALUE;
	if (descr->type != CU_FILE_HANDLE_TYPE_OPAQUE_FD)
		return CU_FILE_IO_NOT_SUPPORTED;
	code = poll_at(descr->handle.fd);
	if (!code)
		code = cufile_of_errno(cufile_begin());
	if (code)
		return code;
	pthread_mutex_lock(&mutex);
	code = add_handle(descr->handle.fd, fh);
	pthread_mutex_unlock(&mutex);
	return code;
}

CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr)
{
	return cufile_count(CUFILE_CALL_HANDLE_REGISTER, register_handle(fh, descr));
}

void cuFileHandleDeregister(CUfileHandle_t fh)
{
	struct cufile_handle **link, *handle;

	pthread_mutex_lock(&mutex);
	link = find(fh);
	handle = *link;
	if (handle)
		*link = handle->next;
	pthread_mutex_unlock(&mutex);
	(void)cufile_count(CUFILE_CALL_HANDLE_DEREGISTER,
			   handle ? CU_FILE_SUCCESS : CU_FILE_HANDLE_NOT_REGISTERED);
	free(handle);
}

CUfileError_t cuFileBufRegister(const void *base, size_t length, int flags)
{
	void *host;
	int error;

	(void)flags; /* of RDMA */
	if (!base || !length)
		return cufile_count(CUFILE_CALL_BUF_REGISTER, CU_FILE_INVALID_VALUE);
	error = cufile_begin();
	return cufile_count(
		CUFILE_CALL_BUF_REGISTER,
		cufile_of_errno(error ? error : shim_register(&cufile_shim, base, length, &host)));
}

CUfileError_t cuFileBufDeregister(const void *base)
{
	return cufile_count(CUFILE_CALL_BUF_DEREGISTER, cufile_of_errno(shim_deregister(&cufile_shim, base)));
}

static ssize_t move(CUfileHandle_t fh, enum weir_file_operation operation, const void *base, size_t size,
		    off_t file_offset, off_t base_offset)
{
	int file = cufile_file(fh);
	ssize_t got;

	if (file < 0)
		return -CU_FILE_HANDLE_NOT_REGISTERED;
	if (!base || file_offset < 0 || base_offset < 0)
		return -CU_FILE_INVALID_VALUE;
	if (cufile_begin())
		return -CU_FILE_DRIVER_NOT_INITIALIZED;
	got = shim_transfer(&cufile_shim, file, operation, base, base_offset, size, file_offset);
	if (got >= 0)
		return got;
	/* Wrong memory is cuFile's own code, everything else the system's. */
	return errno == EFAULT ? -CU_FILE_CUDA_POINTER_RANGE_ERROR : -1;
}

static ssize_t transfer(CUfileHandle_t fh, enum weir_file_operation operation, const void *base, size_t size,
			off_t file_offset, off_t base_offset)
{
	uint64_t begin = cufile_now_us();
	ssize_t got = move(fh, operation, base, size, file_offset, base_offset);
	int error = errno;

	cufile_count_transfer(operation == WEIR_FILE_WRITE, got, cufile_now_us() - begin);
	errno = error;
	return got;
}

ssize_t cuFileRead(CUfileHandle_t fh, void *base, size_t size, off_t file_offset, off_t base_offset)
{
	return transfer(fh, WEIR_FILE_READ, base, size, file_offset, base_offset);
}

ssize_t cuFileWrite(CUfileHandle_t fh, const void *base, size_t size, off_t file_offset, off_t base_offset)
{
	return transfer(fh, WEIR_FILE_WRITE, base, size, file_offset, base_offset);
}

/** struct late - what cuFile takes by pointer */
struct late {
	const size_t *size;
	const off_t *file_offset;
	const off_t *base_offset;
	ssize_t *done;
};

static CUfileError_t enqueue(CUfileHandle_t fh, enum weir_file_operation operation, void *base,
			     struct late late, void *stream)
{
	int file = cufile_file(fh);

	if (file < 0)
		return cufile_code(CU_FILE_HANDLE_NOT_REGISTERED);
	if (!base || !late.size || !late.file_offset || !late.base_offset || !late.done ||
	    *late.file_offset < 0 || *late.base_offset < 0)
		return cufile_code(CU_FILE_INVALID_VALUE);
	if (cufile_begin())
		return cufile_code(CU_FILE_DRIVER_NOT_INITIALIZED);
	return of_errno(shim_enqueue(&cufile_shim, file, operation, base, *late.base_offset, *late.size,
				     *late.file_offset, late.done, stream));
}

CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *base, size_t *size, off_t *file_offset,
			      off_t *base_offset, ssize_t *bytes_read, void *stream)
{
	return enqueue(fh, WEIR_FILE_READ, base, (struct late){ size, file_offset, base_offset, bytes_read },
		       stream);
}

CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *base, size_t *size, off_t *file_offset,
			       off_t *base_offset, ssize_t *bytes_written, void *stream)
{
	return enqueue(fh, WEIR_FILE_WRITE, base,
		       (struct late){ size, file_offset, base_offset, bytes_written }, stream);
}

/* Streams need no preparation here. */
CUfileError_t cuFileStreamRegister(void *stream, unsigned flags)
{
	(void)stream;
	return cufile_code(flags > 15 ? CU_FILE_INVALID_VALUE : CU_FILE_SUCCESS);
}

CUfileError_t cuFileStreamDeregister(void *stream)
{
	(void)stream;
	return cufile_code(CU_FILE_SUCCESS);
}

const char *weir_cufile_error_text(int code)
{
	static const struct {
		int code;
		const char *text;
	} texts[] = {
		{ CU_FILE_SUCCESS, "success" },
		{ CU_FILE_DRIVER_NOT_INITIALIZED, "the driver is not open" },
		{ CU_FILE_DRIVER_UNSUPPORTED_LIMIT, "a limit that cannot be" },
		{ CU_FILE_DRIVER_CLOSING, "the driver is closing" },
		{ CU_FILE_PLATFORM_NOT_SUPPORTED, "the device has no such thing" },
		{ CU_FILE_DRIVER_ALREADY_OPEN, "the driver is open already" },
		{ CU_FILE_IO_NOT_SUPPORTED, "this kind of file is not supported" },
		{ CU_FILE_CUDA_DRIVER_ERROR, "the GPU's driver failed" },
		{ CU_FILE_CUDA_POINTER_INVALID, "the pointer is not to memory of the device" },
		{ CU_FILE_CUDA_POINTER_RANGE_ERROR, "the range is not inside memory of the device" },
		{ CU_FILE_INVALID_FILE_TYPE, "neither a regular file nor a block device" },
		{ CU_FILE_INVALID_FILE_OPEN_FLAG, "the file is not open in the way that is needed" },
		{ CU_FILE_INVALID_VALUE, "an argument cannot be" },
		{ CU_FILE_MEMORY_ALREADY_REGISTERED, "the memory is registered already" },
		{ CU_FILE_MEMORY_NOT_REGISTERED, "the memory is not registered" },
		{ CU_FILE_PERMISSION_DENIED, "permission denied" },
		{ CU_FILE_HANDLE_NOT_REGISTERED, "the file handle is not registered" },
		{ CU_FILE_HANDLE_ALREADY_REGISTERED, "the file is registered already" },
		{ CU_FILE_DEVICE_NOT_FOUND, "there is no such device" },
		{ CU_FILE_INTERNAL_ERROR, "an internal error" },
		{ CU_FILE_BATCH_SUBMIT_FAILED, "the batch cannot be submitted" },
		{ CU_FILE_BATCH_FULL, "the batch has no room for so many requests" },
		{ CU_FILE_ASYNC_NOT_SUPPORTED, "streams cannot wait for files on this device" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].code == code)
			return texts[i].text;
	return "an unknown error";
}
