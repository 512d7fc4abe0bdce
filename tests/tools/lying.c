/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lying: to preload: of reads or writes of files that weir's threads ask for, some bring or take nothing and
 * say that all went well.
 *
 * WEIR_LYING=reads:100 or writes:50: each call from the 100th or 50th on, of 4 KiB, of a process.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

typedef ssize_t (*vector_call)(int fd, const struct iovec *vector, int count, off64_t offset, int flags);
typedef ssize_t (*plain_call)(int fd, void *data, size_t bytes, off64_t offset);

static atomic_ulong calls;

/* POSIX has dlsym()'s result be a function, which C knows nothing of. */
static void next_of(const char *name, void *call)
{
	void *found = dlsym(RTLD_NEXT, name);

	memcpy(call, &found, sizeof(found));
}

/* Is this call one to lie about? */
static int lies(const char *kind, size_t bytes)
{
	const char *asked = getenv("WEIR_LYING");
	size_t length = strlen(kind);

	return asked && bytes == 4096 && !strncmp(asked, kind, length) && asked[length] == ':' &&
	       atomic_fetch_add(&calls, 1) + 1 >= strtoul(asked + length + 1, NULL, 10);
}

ssize_t pread64(int fd, void *data, size_t bytes, off64_t offset)
{
	plain_call next;

	next_of("pread64", &next);
	return lies("reads", bytes) ? (ssize_t)bytes : next(fd, data, bytes, offset);
}

ssize_t preadv64v2(int fd, const struct iovec *vector, int count, off64_t offset, int flags)
{
	vector_call next;

	next_of("preadv64v2", &next);
	return count == 1 && lies("reads", vector->iov_len) ? (ssize_t)vector->iov_len
							    : next(fd, vector, count, offset, flags);
}

ssize_t pwritev64v2(int fd, const struct iovec *vector, int count, off64_t offset, int flags)
{
	vector_call next;

	next_of("pwritev64v2", &next);
	return count == 1 && lies("writes", vector->iov_len) ? (ssize_t)vector->iov_len
							     : next(fd, vector, count, offset, flags);
}
