/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "phoenix_shim.h"

static struct shim shims[PHOENIX_DEVICES] = {
	SHIM_INITIALIZER, SHIM_INITIALIZER, SHIM_INITIALIZER, SHIM_INITIALIZER,
	SHIM_INITIALIZER, SHIM_INITIALIZER, SHIM_INITIALIZER, SHIM_INITIALIZER,
	SHIM_INITIALIZER, SHIM_INITIALIZER, SHIM_INITIALIZER, SHIM_INITIALIZER,
	SHIM_INITIALIZER, SHIM_INITIALIZER, SHIM_INITIALIZER, SHIM_INITIALIZER,
};

/* Errors of programs that are tried unchanged: said where somebody looks. */
static int fail(const char *call, int error)
{
	fprintf(stderr, "libphoenix of weir: %s: %s\n", call,
		*weir_last_error() ? weir_last_error() : strerror(-error));
	errno = -error;
	return -1;
}

/* NULL, and errno: no such device, or not open. */
struct shim *phoenix_device(int number)
{
	if (number >= 0 && number < PHOENIX_DEVICES && shim_users(&shims[number]))
		return &shims[number];
	errno = ENODEV;
	return NULL;
}

int phxfs_open(int device_id)
{
	char name[16];
	int error;

	if (device_id < 0 || device_id >= PHOENIX_DEVICES) {
		errno = ENODEV;
		return -1;
	}
	snprintf(name, sizeof(name), "gpu:%d", device_id);
	error = shim_open(&shims[device_id], name);
	return error ? fail("phxfs_open", error) : 0;
}

int phxfs_close(int device_id)
{
	struct shim *shim = phoenix_device(device_id);

	return shim ? shim_close(shim) : -1;
}

int phxfs_regmem(int device_id, const void *addr, size_t len, void **target_addr)
{
	struct shim *shim = phoenix_device(device_id);
	void *host = NULL;
	int error;

	if (!shim)
		return -1;
	if (!addr || !len || !target_addr) {
		errno = EINVAL;
		return -1;
	}
	error = shim_register(shim, addr, len, &host);
	if (error == -EEXIST) {
		errno = EEXIST;
		return -1;
	}
	*target_addr = host ? host : (void *)(uintptr_t)addr;
	return error ? fail("phxfs_regmem", error) : 0;
}

int phxfs_deregmem(int device_id, const void *addr, size_t len)
{
	struct shim *shim = phoenix_device(device_id);
	int error = shim ? shim_deregister(shim, addr) : -ENODEV;

	(void)len;
	errno = error ? -error : errno;
	return error ? -1 : 0;
}

/* Devices are numbered as the vendor's run time numbers them. */
int phxfs_find_dev(int device_id)
{
	if (device_id >= 0 && device_id < PHOENIX_DEVICES)
		return device_id;
	errno = ENODEV;
	return -1;
}

/* Registered memory has any length and alignment: no page is larger than the host's. */
uint64_t phxfs_get_page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

const char *phxfs_io_engine_name(void)
{
	return "weir";
}

static ssize_t transfer(phxfs_fileid_t fid, enum weir_file_operation operation, void *buf, off_t buf_offset,
			ssize_t nbyte, off_t f_offset)
{
	struct shim *shim = phoenix_device(fid.deviceID);

	if (shim && (nbyte < 0 || buf_offset < 0 || f_offset < 0)) {
		errno = EINVAL;
		return -1;
	}
	return shim ? shim_transfer(shim, fid.fd, operation, buf, buf_offset, (size_t)nbyte, f_offset) : -1;
}

#undef phxfs_read
#undef phxfs_write

ssize_t phxfs_read(phxfs_fileid_t fid, void *buf, off_t buf_offset, ssize_t nbyte, off_t f_offset)
{
	return transfer(fid, WEIR_FILE_READ, buf, buf_offset, nbyte, f_offset);
}

ssize_t phxfs_write(phxfs_fileid_t fid, void *buf, off_t buf_offset, ssize_t nbyte, off_t f_offset)
{
	return transfer(fid, WEIR_FILE_WRITE, buf, buf_offset, nbyte, f_offset);
}

ssize_t weir_phxfs_read(int fd, int device_id, void *buf, off_t buf_offset, ssize_t nbyte, off_t f_offset)
{
	return transfer((phxfs_fileid_t){ fd, device_id }, WEIR_FILE_READ, buf, buf_offset, nbyte, f_offset);
}

ssize_t weir_phxfs_write(int fd, int device_id, void *buf, off_t buf_offset, ssize_t nbyte, off_t f_offset)
{
	return transfer((phxfs_fileid_t){ fd, device_id }, WEIR_FILE_WRITE, buf, buf_offset, nbyte, f_offset);
}

static int enqueue(phxfs_fileid_t fid, enum weir_file_operation operation, void *buf, size_t nbytes,
		   off_t offset, ssize_t *bytes_done, void *stream)
{
	struct shim *shim = phoenix_device(fid.deviceID);
	int error;

	if (!shim)
		return -1;
	if (!bytes_done || offset < 0) {
		errno = EINVAL;
		return -1;
	}
	error = shim_enqueue(shim, fid.fd, operation, buf, 0, nbytes, offset, bytes_done, stream);
	return error ? fail(operation == WEIR_FILE_READ ? "phxfs_read_async" : "phxfs_write_async", error)
		     : 0;
}

int phxfs_read_async(phxfs_fileid_t fid, void *buf, size_t nbytes, off_t offset, ssize_t *bytes_done,
		     void *stream)
{
	return enqueue(fid, WEIR_FILE_READ, buf, nbytes, offset, bytes_done, stream);
}

int phxfs_write_async(phxfs_fileid_t fid, void *buf, size_t nbytes, off_t offset, ssize_t *bytes_done,
		      void *stream)
{
	return enqueue(fid, WEIR_FILE_WRITE, buf, nbytes, offset, bytes_done, stream);
}
