/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/share/share_on.h: what lanes built with WEIR_SHARE_TABLE do before a miss.
 *
 * Owns: the refusal of lines that are in buffers. share_part.h includes one of the two.
 */
#ifndef WEIR_CORE_SHARE_ON_H
#define WEIR_CORE_SHARE_ON_H

#include <weir/core/share/share.h>

/* Has this lane's code a notion of buffers? A constant: what it excludes is not compiled. */
enum { WEIR_SHARE_KNOWN = 1 };

/*
 * With the lock of its set held: may @key's line come into the cache? WEIR_E_SHARED: it is in a buffer.
 */
WEIR_FN weir_status weir_share_refuses(WEIR_GLOBAL struct weir_lines *lines, u64 key)
{
	return weir_share_holds(lines, key) ? WEIR_E_SHARED : WEIR_OK;
}

#endif
