/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/share/share_off.h: what stands for the Share Table in lanes built without WEIR_SHARE_TABLE.
 *
 * Owns: the refusal of all misses of a cache that has a table. share_part.h includes one of the two.
 */
#ifndef WEIR_CORE_SHARE_OFF_H
#define WEIR_CORE_SHARE_OFF_H

#include <weir/core/share/share.h>

/* Has this lane's code a notion of buffers? A constant: what it excludes is not compiled. */
enum { WEIR_SHARE_KNOWN = 0 };

/* The cache has a table, and this lane's code no notion of one. */
WEIR_FN weir_status weir_share_refuses(WEIR_GLOBAL struct weir_lines *lines, u64 key)
{
	(void)key;
	return lines->share ? WEIR_E_SHARE_TABLE : WEIR_OK;
}

#endif
