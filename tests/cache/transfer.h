/* SPDX-License-Identifier: BSD-3-Clause */
/* transfer.h: arguments of the kernels of transfer_test.c. */
#ifndef WEIR_TESTS_TRANSFER_H
#define WEIR_TESTS_TRANSFER_H

#include "../rig/kernels.h"

/**
 * struct test_transfer_args - lines through transfers
 * @source: words test_word(1, w)
 * @target: where lanes write
 * @transfers: struct weir_transfer per lane and request
 * @buffers: a line per lane and request
 * @requests: of a lane
 * @same: all lanes ask for the same lines; of test_transfer_lines: the last line is a short one
 */
struct test_transfer_args {
	struct weir_array source;
	struct weir_writer target;
	weir_addr transfers;
	weir_addr buffers;
	weir_addr verdict;
	u32 requests;
	u32 same;
};

#endif
