/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cufile.h: cuFile as far as the peer needs it, loaded while the program runs.
 *
 * Declared after NVIDIA's API reference, so that the program is built where the
 * library is not and says so where it is missing.
 */
#ifndef WEIR_CUDA_PEER_CUFILE_H
#define WEIR_CUDA_PEER_CUFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CUFILE_OPAQUE_DESCRIPTOR = 1, CUFILE_LEAST_ERROR = 5001, CUFILE_DRIVER_ERROR = 5011 };

/** struct cufile_error - what most calls return: cuFile's own code and, with CUFILE_DRIVER_ERROR, the
 * driver's */
struct cufile_error {
	int code;
	int driver_code;
};

/** struct cufile_description - a file to register; @type is CUFILE_OPAQUE_DESCRIPTOR, @operations NULL */
struct cufile_description {
	int type;
	union {
		int file;
		void *handle;
	} handle;
	const void *operations;
};

/** struct cufile - the library's functions */
struct cufile {
	struct cufile_error (*driver_open)(void);
	struct cufile_error (*driver_close)(void);
	struct cufile_error (*handle_register)(void **handle, struct cufile_description *description);
	void (*handle_deregister)(void *handle);
	struct cufile_error (*buffer_register)(const void *memory, size_t bytes, int flags);
	struct cufile_error (*buffer_deregister)(const void *memory);
	ssize_t (*read)(void *handle, void *memory, size_t bytes, off_t file_offset, off_t memory_offset);
};

/** cufile_load() - find the library and its functions; false if there is none, with the sentence at @why (256
 * bytes) */
bool cufile_load(struct cufile *cufile, char *why);

/** cufile_error_name() - "CU_FILE_HANDLE_NOT_REGISTERED" for 5027, and so on */
const char *cufile_error_name(int code);

#endif
