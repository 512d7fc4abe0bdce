/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host/chain.h: the host side of the lock chain, which finds lanes that wait for each other
 * (<weir/lock.h>).
 *
 * Owns: options, reports. Part of weir.h, whose rules hold here.
 */
#ifndef WEIR_HOST_CHAIN_H
#define WEIR_HOST_CHAIN_H

#include <stddef.h>
#include <stdint.h>

#include <weir/devices.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_context;

/**
 * struct weir_chain_options - what the lock chain watches
 * @size: sizeof the structure
 * @lanes: lanes of the largest launch; a record each, 192 bytes
 * @retry_limit: failed tries in a row, nothing else tried or freed between them, that
 *            make a wait; 0: 2
 * @own_wave: not 0: also report a lane that waits for a lane of its own wave, which
 *            hangs where waves run in lockstep
 */
struct weir_chain_options {
	size_t size;
	uint64_t lanes;
	uint32_t retry_limit;
	uint32_t own_wave;
};

/**
 * weir_chain_create() - make the table in which lanes note their locks
 * @context: the context
 * @options: how many lanes, and what to report
 * @chain: struct weir_chain of <weir/abi.h>, to put into kernel arguments; weir_free() it
 *
 * Only kernels built with WEIR_LOCK_CHAIN use it (<weir/lock.h>).
 *
 * Return: 0; -EINVAL for options out of range; -ENOMEM.
 */
WEIR_API int weir_chain_create(struct weir_context *context, const struct weir_chain_options *options,
			       uint64_t *chain);

/**
 * weir_chain_report() - what went wrong with locks since the last report, which clears it
 * @context: the context
 * @chain: from weir_chain_create()
 * @names: text of each lock name the kernel uses, by its number
 * @name_count: of these; other names, and NULL ones, are told as numbers
 *
 * No kernel may be running. The sentence is weir_last_error()'s.
 *
 * Return: 0 if nothing did; -EDEADLK: lanes waited for each other; -ERANGE: a lane had
 * no record; -EOWNERDEAD: a lane ended and kept a lock; -ENODATA: no lane recorded
 * anything, so nothing is known.
 */
WEIR_API int weir_chain_report(struct weir_context *context, uint64_t chain, const char *const *names,
			       size_t name_count);

#ifdef __cplusplus
}
#endif
#endif
