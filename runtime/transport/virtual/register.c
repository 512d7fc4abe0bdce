/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtual/register.c: the register file as the host sees it.
 *
 * Owns: which offsets can be read and written. A write leaves a value; thread 0
 * acts on it (virtual/control.c).
 */
#include "parts.h"

static bool is_register(u32 offset)
{
	return offset % 4 == 0 && offset < VIRTUAL_REGISTER_BYTES;
}

static struct shared_u32 *doorbell_at(struct weir_virtual *controller, u32 offset)
{
	u32 index = (offset - NVME_REGISTER_DOORBELLS) / 4;

	if (offset < NVME_REGISTER_DOORBELLS || offset % 4 || index >= controller->doorbell_count)
		return NULL;
	return &controller->doorbells[index];
}

u32 weir_virtual_read32(struct weir_virtual *controller, u32 offset)
{
	const struct shared_u32 *doorbell = doorbell_at(controller, offset);

	/* register.R2: pairs with the stores of CSTS in virtual/control.c, and of the flag in
	 * virtual/fault_fail.c */
	if (load_acquire_u32(&controller->gone))
		return UINT32_MAX;
	if (is_register(offset))
		return load_acquire_u32(&controller->registers[offset / 4]);
	return doorbell ? load_relaxed_u32(doorbell) : 0;
}

u64 weir_virtual_read64(struct weir_virtual *controller, u32 offset)
{
	return weir_virtual_read32(controller, offset) | (u64)weir_virtual_read32(controller, offset + 4)
								 << 32;
}

static void write_cc(struct weir_virtual *controller, u32 value)
{
	/* register.R1: pairs with the load of CC in virtual/control.c: the registers written before. */
	u32 before = exchange_u32(&controller->registers[NVME_REGISTER_CC / 4], value);

	if ((before & NVME_CC_ENABLE) && !(value & NVME_CC_ENABLE))
		fetch_add_u32(&controller->falls, 1);
}

static bool writable(u32 offset)
{
	return offset % 4 == 0 && (offset == NVME_REGISTER_AQA ||
				   (offset >= NVME_REGISTER_ASQ && offset < VIRTUAL_REGISTER_BYTES));
}

void weir_virtual_write32(struct weir_virtual *controller, u32 offset, u32 value)
{
	struct shared_u32 *doorbell = doorbell_at(controller, offset);

	if (load_relaxed_u32(&controller->gone)) /* nobody is there to act on it */
		return;
	if (offset == NVME_REGISTER_CC)
		write_cc(controller, value);
	else if (writable(offset))
		store_relaxed_u32(&controller->registers[offset / 4], value); /* register.R1 orders it */
	else if (doorbell)
		store_release_u32(doorbell, value); /* doorbell.D1, doorbell.D2: as a lane does */
}

void weir_virtual_write64(struct weir_virtual *controller, u32 offset, u64 value)
{
	weir_virtual_write32(controller, offset, (u32)value);
	weir_virtual_write32(controller, offset + 4, (u32)(value >> 32));
}
