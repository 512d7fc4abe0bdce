/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache.h: what a compiler made, kept on disk: $XDG_CACHE_HOME/weir, or else ~/.cache/weir.
 *
 * An entry is for one source, options, device and driver: its key is a hash of them all. It
 * appears whole, by renaming, and is believed only if its checksum is right.
 */
#ifndef WEIR_OPENCL_CACHE_H
#define WEIR_OPENCL_CACHE_H

#include <stddef.h>
#include <stdint.h>

/** opencl_hash() - FNV-1a, 64 bits wide, of more bytes after @hash (0 to begin with) */
uint64_t opencl_hash(uint64_t hash, const void *bytes, size_t count);

/** opencl_cache_load() - what is kept, for free(); NULL if nothing is, or it is damaged */
void *opencl_cache_load(uint64_t key, size_t *bytes);

/** opencl_cache_store() - keep it; says on stderr if that cannot be, once in a process */
void opencl_cache_store(uint64_t key, const void *program, size_t bytes);

#endif
