/* SPDX-License-Identifier: BSD-3-Clause */
/* cufile_shim.h: what cufile.c and cufile_batch.c have in common. */
#ifndef WEIR_CUFILE_SHIM_H
#define WEIR_CUFILE_SHIM_H

#include "cufile.h"
#include "shim.h"

#pragma GCC visibility push(hidden)

/** struct cufile_handle - a registered file */
struct cufile_handle {
	struct cufile_handle *next;
	int file;
};

extern struct shim cufile_shim;

CUfileError_t cufile_code(CUfileOpError code);
CUfileOpError cufile_of_errno(int error);
/** cufile_begin() - the driver is open from here on; 0 or a negative errno */
int cufile_begin(void);
/** cufile_file() - the descriptor of a handle, or -1 */
int cufile_file(CUfileHandle_t fh);

#pragma GCC visibility pop

#endif
