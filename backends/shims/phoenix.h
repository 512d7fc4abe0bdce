/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * phoenix.h: the calls of Phoenix's user library (SC'25, listings 1 to 3, and its documentation), on weir.
 *
 * Programs written for it are compiled and linked with this one unchanged: -lphoenix, from where libphoenix.so of this
 * build is. No kernel module is needed; with none *target_addr is a pointer for the host only where the host sees the
 * memory, and else the device's address again, which phxfs_read() takes and pread() does not.
 *
 * Results: 0 or bytes; -1 and errno. A device is number device_id by PCI address, or what WEIR_BACKEND names.
 */
#ifndef WEIR_SHIM_PHOENIX_H
#define WEIR_SHIM_PHOENIX_H

#include <stddef.h>
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

/** phxfs_read_async() - the same in the order of a stream, which waits for it; no callback blocks. phxfs_write_async() likewise */
int phxfs_read_async(phxfs_fileid_t fid, void *buf, size_t nbytes, off_t offset, ssize_t *bytes_done, void *stream);
int phxfs_write_async(phxfs_fileid_t fid, void *buf, size_t nbytes, off_t offset, ssize_t *bytes_done, void *stream);

#ifdef __cplusplus
}
#endif
#endif
