/* SPDX-License-Identifier: BSD-3-Clause */
/* crc32c_table.c: CRC32C by a table of 16 words, half a byte at a time: for builds without isa-l. */
#include "crc32c.h"

enum { NIBBLES = 16 };

/* Of each half byte: 4 steps of the reflected polynomial 0x82f63b78. */
static const uint32_t table[NIBBLES] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
	0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t weir_crc32c(uint32_t crc, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;

	crc = ~crc;
	for (size_t i = 0; i < count; i++) {
		crc ^= at[i];
		crc = table[crc % NIBBLES] ^ crc >> 4;
		crc = table[crc % NIBBLES] ^ crc >> 4;
	}
	return ~crc;
}

const char *weir_crc32c_how(void)
{
	return "table";
}
