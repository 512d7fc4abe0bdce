/* SPDX-License-Identifier: BSD-3-Clause */
/* opcode.h: what commands do, for whoever has them on their way. */
#ifndef WEIR_TRANSPORT_OPCODE_H
#define WEIR_TRANSPORT_OPCODE_H

#include <stdbool.h>

#include <weir/nvme.h>

/** weir_opcode_changes() - commands of the NVM command set with @opcode change blocks, with data or without
 */
static inline bool weir_opcode_changes(u8 opcode)
{
	return opcode == NVME_OPCODE_WRITE || opcode == NVME_OPCODE_WRITE_ZEROES || opcode == NVME_OPCODE_DSM;
}

#endif
