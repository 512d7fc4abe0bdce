/* SPDX-License-Identifier: BSD-3-Clause */
/* span.h: a storage whose blocks lanes read and write by ranges; shared by host and lanes. */
#ifndef SAMPLE_SPAN_H
#define SAMPLE_SPAN_H

#include <weir/abi.h>

/**
 * struct sample_span - a storage, past any cache
 * @disk: the storage
 * @piece_bytes: of a range that one command moves
 * @failure: u64 in device memory: weir_status of a command that failed; 0: none did
 */
struct sample_span {
	struct weir_disk disk;
	u64 piece_bytes;
	weir_addr failure;
};

#endif
