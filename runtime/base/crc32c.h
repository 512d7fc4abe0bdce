/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crc32c.h: the checksum of NVMe/TCP digests and of an engine's blocks; isa-l's, or a table's where that
 * library is missing.
 */
#ifndef WEIR_CRC32C_H
#define WEIR_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/**
 * weir_crc32c() - CRC32C of bytes that come in parts
 * @crc: of the parts before; 0 in front of the first
 *
 * Castagnoli's polynomial, reflected, begun and ended inverted: what NVMe/TCP 1.0, section 3.3.1.1, puts on
 * the wire as four little-endian bytes. Any thread.
 */
uint32_t weir_crc32c(uint32_t crc, const void *bytes, size_t count);

/** weir_crc32c_how() - "isa-l" or "table" */
const char *weir_crc32c_how(void);

#endif
