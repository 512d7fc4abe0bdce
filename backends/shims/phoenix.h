/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * phoenix.h: the calls of Phoenix's user library (SC'25, listings 1 to 3, and its documentation), on weir;
 * and those published since: reads and writes by descriptor and device, and batches. Programs are compiled
 * with this header: both forms of phxfs_read() have one name there, so that one compiled with the original
 * header finds the older one.
 *
 * Programs written for it are compiled and linked with this one unchanged: -lphoenix, from where
 * libphoenix.so of this build is. No kernel module is needed; with none *target_addr is a pointer for the
 * host only where the host sees the memory, and else the device's address again, which phxfs_read() takes and
 * pread() does not.
 *
 * Results: 0 or bytes; -1 and errno. A device is number device_id by PCI address, or what WEIR_BACKEND names.
 */
#ifndef WEIR_SHIM_PHOENIX_H
#define WEIR_SHIM_PHOENIX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** struct phxfs_fileid - a file, and the device whose memory is meant */
typedef struct phxfs_fileid {
	int fd;
	int deviceID;
} phxfs_fileid_t;

/** phxfs_open() - once more; the last phxfs_close() ends it */
int phxfs_open(int device_id);
int phxfs_close(int device_id);

/** phxfs_regmem() - memory of any length and alignment; phxfs_deregmem() takes the same address */
int phxfs_regmem(int device_id, const void *addr, size_t len, void **target_addr);
int phxfs_deregmem(int device_id, const void *addr, size_t len);

/** phxfs_read() - pread() into memory at @buf + @buf_offset; phxfs_write() likewise */
ssize_t phxfs_read(phxfs_fileid_t fid, void *buf, off_t buf_offset, ssize_t nbyte, off_t f_offset);
ssize_t phxfs_write(phxfs_fileid_t fid, void *buf, off_t buf_offset, ssize_t nbyte, off_t f_offset);

/* The same, with the file and the device apart, where six arguments are given. */
ssize_t weir_phxfs_read(int fd, int device_id, void *buf, off_t buf_offset, ssize_t nbyte, off_t f_offset);
ssize_t weir_phxfs_write(int fd, int device_id, void *buf, off_t buf_offset, ssize_t nbyte, off_t f_offset);
#define PHXFS_OF_COUNT(a, b, c, d, e, f, name, ...) name
#define phxfs_read(...)                                                                                      \
	PHXFS_OF_COUNT(__VA_ARGS__, weir_phxfs_read, phxfs_read, none, none, none, none)(__VA_ARGS__)
#define phxfs_write(...)                                                                                     \
	PHXFS_OF_COUNT(__VA_ARGS__, weir_phxfs_write, phxfs_write, none, none, none, none)(__VA_ARGS__)

/** phxfs_find_dev() - the number to open; -1 and errno: none */
int phxfs_find_dev(int device_id);
/** phxfs_get_page_size() - what lengths and addresses of registered memory need not be multiples of here */
uint64_t phxfs_get_page_size(void);
/** phxfs_io_engine_name() - "weir" */
const char *phxfs_io_engine_name(void);

/**
 * struct phxfs_io_req - a request of a batch
 * @device_id: whose memory; negative: plain memory
 * @result: out: bytes, or a negative errno; -EFAULT: not memory of the device
 */
typedef struct phxfs_io_req {
	int fd;
	int device_id;
	void *buf;
	off_t buf_offset;
	size_t nbytes;
	off_t f_offset;
	ssize_t result;
} phxfs_io_req_t;

/** phxfs_read_batch() - all, then how many did not move all their bytes; negative: an errno, nothing was
 * done. phxfs_write_batch() likewise */
int phxfs_read_batch(phxfs_io_req_t *reqs, int n);
int phxfs_write_batch(phxfs_io_req_t *reqs, int n);

/** phxfs_batch_submit_read() - the same, begun; @reqs stays until phxfs_batch_wait(), which has to be called.
 * NULL and errno: nothing was done */
typedef struct phxfs_batch phxfs_batch_t;
phxfs_batch_t *phxfs_batch_submit_read(phxfs_io_req_t *reqs, int n);
phxfs_batch_t *phxfs_batch_submit_write(phxfs_io_req_t *reqs, int n);
/** phxfs_batch_wait() - as phxfs_read_batch(); plain memory is read and written here; -EINVAL: NULL */
int phxfs_batch_wait(phxfs_batch_t *batch);

/** phxfs_read_async() - the same in the order of a stream, which waits for it; no callback blocks.
 * phxfs_write_async() likewise */
int phxfs_read_async(phxfs_fileid_t fid, void *buf, size_t nbytes, off_t offset, ssize_t *bytes_done,
		     void *stream);
int phxfs_write_async(phxfs_fileid_t fid, void *buf, size_t nbytes, off_t offset, ssize_t *bytes_done,
		      void *stream);

#ifdef __cplusplus
}
#endif
#endif
