/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soft_keys.h: the keys of a URI that virt: and file: share.
 *
 * Owns: their names, ranges and defaults; what comes of them is transport_soft.c's.
 */
#ifndef WEIR_SOFT_KEYS_H
#define WEIR_SOFT_KEYS_H

#include <stdint.h>

#include "../transport.h"
#include "fault.h"

/* For weir_uri_finish(): these, and those that every transport has. */
#define WEIR_SOFT_KEYS                                                                                       \
	"block, threads, lat_us, iops, mdts, fault, trace, mover, shadow, doorbell, timeout_ms, retries"

/** struct weir_soft_keys - what the keys say; @block_bytes: 0 if not given; @trace: the URI's, or NULL;
 * @engine: volumes are in front of the medium; @manager: of struct weir_engine_options; @woken: of struct
 * weir_virtual_options, and no key */
struct weir_soft_keys {
	uint64_t block_bytes;
	uint64_t threads;
	uint64_t latency_us;
	uint64_t iops;
	uint64_t mdts;
	unsigned mover;
	unsigned shadow;
	unsigned doorbell;
	const char *trace;
	const char *manager;
	unsigned engine;
	bool woken;
	struct weir_virtual_fault faults[WEIR_VIRTUAL_FAULTS];
	unsigned fault_count;
};

/** weir_soft_keys_take() - take them from the request's URI; 0, or -EINVAL with a sentence */
int weir_soft_keys_take(const struct weir_transport_request *request, struct weir_soft_keys *keys);

/**
 * weir_soft_keys_check_engine() - what an engine, where one is asked for, needs: blocks of 4096 bytes, which
 * @keys gets, and the host (not @on_device); 0, or -EINVAL or -ENOTSUP with a sentence
 */
int weir_soft_keys_check_engine(const struct weir_uri *uri, struct weir_soft_keys *keys, bool on_device);

#endif
