/* SPDX-License-Identifier: BSD-3-Clause */
/* cufile_shim.h: what the parts of the library have in common. */
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
/** cufile_begin() - the driver is open from here on, by the caller or by this; 0 or a negative errno */
int cufile_begin(void);
/** cufile_file() - the descriptor of a handle, or -1 */
int cufile_file(CUfileHandle_t fh);

/* What is counted, but for transfers. */
enum cufile_call {
	CUFILE_CALL_READ,
	CUFILE_CALL_WRITE,
	CUFILE_CALL_HANDLE_REGISTER,
	CUFILE_CALL_HANDLE_DEREGISTER,
	CUFILE_CALL_BUF_REGISTER,
	CUFILE_CALL_BUF_DEREGISTER,
	CUFILE_CALL_BATCH_SETUP,
	CUFILE_CALL_BATCH_SUBMIT,
	CUFILE_CALL_BATCH_COMPLETE,
	CUFILE_CALL_BATCH_CANCEL,
	CUFILE_CALL_BATCH_DESTROY,
};

/** cufile_count() - a call that ended with @code; return: that, for the caller's caller */
CUfileError_t cufile_count(enum cufile_call call, CUfileOpError code);
/** cufile_count_transfer() - bytes or a negative number, and how long it took */
void cufile_count_transfer(bool write, ssize_t result, uint64_t us);
/** cufile_count_completion() - of a batch's request: bytes or a negative errno */
void cufile_count_completion(bool write, int64_t result);
uint64_t cufile_now_us(void);

#pragma GCC visibility pop

#endif
