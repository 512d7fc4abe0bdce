/* SPDX-License-Identifier: BSD-3-Clause */
/* crc32c_isal.c: CRC32C by isa-l, which takes the processor's instructions. */
#include "crc32c.h"

#include <isa-l/crc.h>

enum { MOST_AT_ONCE = 1 << 30 }; /* isa-l counts in int */

uint32_t weir_crc32c(uint32_t crc, const void *bytes, size_t count)
{
	unsigned char *at = (unsigned char *)(uintptr_t)bytes; /* it only reads there */

	crc = ~crc;
	while (count) {
		int part = count > MOST_AT_ONCE ? MOST_AT_ONCE : (int)count;

		crc = crc32_iscsi(at, part, crc);
		at += part;
		count -= (size_t)part;
	}
	return ~crc;
}

const char *weir_crc32c_how(void)
{
	return "isa-l";
}
