/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir.h: the host side. Open a context on a device, storages by URI, queues and
 * caches; launch kernels by name.
 *
 * Every call returns 0 or a negative errno; weir_last_error() then has one
 * sentence that says what failed, where, why and what to do. Objects are opaque
 * handles. A context and its objects belong to one thread at a time; different
 * contexts are independent.
 *
 * Objects may be closed in any order. A close waits for the kernels launched so far, and
 * closes what depends on the object first: a context its caches, then its storages,
 * registrations and memory; a cache its Share Table; a storage has its dirty lines written
 * back by the caches that have any. It returns 0, or a negative errno with a sentence that
 * names what could not be written and is lost; the object is closed in any case. NULL is
 * fine there. Everywhere else a handle that is NULL, closed, closed by its context, or of
 * another kind is refused with -EINVAL, and so is NULL for any parameter that is not said to take it
 * (the address of a closed object may be a new one's after 256 more were closed).
 * A lane whose kernel arguments have an array, a writer or a disk of a closed storage or
 * cache gets WEIR_E_CLOSED.
 *
 * Option structures begin with their size, so that they can grow: make them with
 * WEIR_OPTIONS() and leave what you do not care about zero. Structures that calls
 * fill in begin with their size too; set it before the call.
 *
 * Owns: these rules, errors and texts for people. The calls are in the headers under host/, one for each
 * kind of object, all of which come with this one.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <stddef.h>
#include <stdint.h>

#include <weir/devices.h>
#include <weir/host/array.h>
#include <weir/host/cache.h>
#include <weir/host/chain.h>
#include <weir/host/context.h>
#include <weir/host/launch.h>
#include <weir/host/memory.h>
#include <weir/host/share.h>
#include <weir/host/storage.h>
#include <weir/host/volume.h>
#include <weir/options.h>
#include <weir/policies.h>

#ifdef __cplusplus
extern "C" {
#endif

/** weir_version() - "0.1.0" */
WEIR_API const char *weir_version(void);

/**
 * weir_last_error() - why the calling thread's latest failing call failed
 *
 * Return: one sentence, "" if nothing failed yet; valid until the next failure.
 */
WEIR_API const char *weir_last_error(void);

/** weir_parse_bytes() - "64M" to bytes (K, M, G, T: powers of 1024); -EINVAL */
WEIR_API int weir_parse_bytes(const char *text, uint64_t *bytes);

/**
 * weir_status_text() - a device status for people
 * @status: weir_status
 * @text: at least 80 bytes; NULL: nothing is done
 */
WEIR_API void weir_status_text(uint32_t status, char text[80]);

#ifdef __cplusplus
}
#endif
#endif
