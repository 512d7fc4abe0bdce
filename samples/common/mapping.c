/* SPDX-License-Identifier: BSD-3-Clause */
#include "mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

int sample_map(struct sample_mapping *mapping, int file, bool writes, char *error)
{
	off_t length = lseek(file, 0, SEEK_END);
	int access = writes ? PROT_READ | PROT_WRITE : PROT_READ;
	void *bytes = length > 0 ? mmap(NULL, (size_t)length, access, MAP_SHARED, file, 0) : MAP_FAILED;
	int code = length == 0 ? ENODATA : errno; /* of no bytes no call has failed */

	*mapping = (struct sample_mapping){ .bytes = NULL };
	if (bytes == MAP_FAILED)
		return sample_fail(error, -code, "cannot map %lld bytes of the file: %s", (long long)length,
				   strerror(code));
	*mapping = (struct sample_mapping){ .bytes = bytes, .length = (uint64_t)length };
	return 0;
}

void sample_unmap(struct sample_mapping *mapping)
{
	if (mapping->bytes)
		munmap(mapping->bytes, mapping->length);
	mapping->bytes = NULL;
}

int sample_forget(int file, char *error)
{
	/* Pages that are not yet on the storage cannot be dropped. */
	int code = fsync(file) ? errno : posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);

	return code ? sample_fail(error, -code, "cannot drop the file's pages from the page cache: %s",
				  strerror(code))
		    : 0;
}
