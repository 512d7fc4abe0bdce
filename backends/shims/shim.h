/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim.h: what the libraries that look like other ones have in common: a context, opened when it is first
 * needed, and the memory that was registered, by its address.
 */
#ifndef WEIR_SHIM_H
#define WEIR_SHIM_H

#include <pthread.h>
#include <stdbool.h>

#include <weir/file.h>

/**
 * struct shim_buffer - registered memory
 * @temporary: registered for one request, which has it until it ends
 */
struct shim_buffer {
	struct shim_buffer *next;
	uint64_t address;
	uint64_t bytes;
	struct weir_registration *registration;
	void *host;
	bool temporary;
};

/**
 * struct shim_async - a request in a stream; kept until it has ended and somebody looks
 * @buffer: that goes with it, or NULL
 */
struct shim_async {
	struct shim_async *next;
	struct weir_file_io io;
	struct shim_buffer *buffer;
};

/** struct shim - a device */
struct shim {
	pthread_mutex_t mutex;
	unsigned users;
	struct weir_context *context;
	bool has_streams; /* of a run time of its own, whose default one has a name */
	struct shim_buffer *buffers;
	struct shim_async *asyncs;
};

#define SHIM_INITIALIZER                                                                                     \
	{                                                                                                    \
		.mutex = PTHREAD_MUTEX_INITIALIZER                                                           \
	}

/** shim_open() - one user more; the first opens the device that WEIR_BACKEND names, or @name */
int shim_open(struct shim *shim, const char *name);
/** shim_begin() - shim_open() if there is no user */
int shim_begin(struct shim *shim, const char *name);
/** shim_users() - how many there are */
unsigned shim_users(struct shim *shim);
/** shim_info() - of the open context; -ENODEV: there is none */
int shim_info(struct shim *shim, struct weir_context_info *info);
/** shim_close() - one less; the last closes. -EINVAL: there was none */
int shim_close(struct shim *shim);

/** shim_register() - -EEXIST: memory that begins there is registered already; @host is set where the host
 * sees it, else NULL */
int shim_register(struct shim *shim, const void *address, size_t bytes, void **host);
/** shim_deregister() - -ENOENT: no memory that begins there is registered */
int shim_deregister(struct shim *shim, const void *address);

/**
 * shim_io() - a request for memory that is registered, or is for this one time
 * @address: as registered, or where the host sees it
 * @at: bytes from there
 * @io: @bytes is set; receives registration and @at
 * @buffer: receives NULL, or what shim_io_ends() has to be given
 */
int shim_io(struct shim *shim, const void *address, off_t at, struct weir_file_io *io,
	    struct shim_buffer **buffer);
/** shim_io_ends() - forget what was for one time; NULL is fine */
void shim_io_ends(struct shim *shim, struct shim_buffer *buffer);

/** shim_transfer() - one request, now; as pread(): -1 and errno if it failed */
ssize_t shim_transfer(struct shim *shim, int file, enum weir_file_operation operation, const void *address,
		      off_t at, size_t bytes, off_t offset);
/** shim_enqueue() - one request in the order of a stream; @done receives bytes or a negative errno */
int shim_enqueue(struct shim *shim, int file, enum weir_file_operation operation, const void *address,
		 off_t at, size_t bytes, off_t offset, ssize_t *done, void *stream);

#endif
