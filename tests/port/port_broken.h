/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_broken.h: the cpu's port with one mistake in it, to show that port_test finds it.
 *
 * The environment's WEIR_PORT_BREAK chooses which (port_broken.c); without it there is none. Used by
 * port_broken_test only, by WEIR_PORT_HEADER. A mistake takes its time, so that others come in between.
 */
#ifndef WEIR_TESTS_PORT_BROKEN_H
#define WEIR_TESTS_PORT_BROKEN_H

#define weir_ballot                sound_ballot
#define weir_wave_sync             sound_wave_sync
#define weir_mmio_store_u32        sound_mmio_store_u32
#define weir_data_store_u8         sound_data_store_u8
#define weir_data_store_u16        sound_data_store_u16
#define weir_store_u64_release_dev sound_store_u64_release_dev
#define weir_cas_u64_acq_rel_dev   sound_cas_u64_acq_rel_dev
#include <weir/port/cpu.h>
#undef weir_ballot
#undef weir_wave_sync
#undef weir_mmio_store_u32
#undef weir_data_store_u8
#undef weir_data_store_u16
#undef weir_store_u64_release_dev
#undef weir_cas_u64_acq_rel_dev

enum port_break {
	PORT_BREAK_NOTHING,
	PORT_BREAK_BALLOT,  /* a lane outside the mask shows */
	PORT_BREAK_SYNC,    /* lanes do not wait for each other */
	PORT_BREAK_MMIO,    /* the store is 8 bytes wide */
	PORT_BREAK_NARROW,  /* a byte is stored by changing the word around it */
	PORT_BREAK_RELEASE, /* a u16 stored before a release is seen after it */
	PORT_BREAK_CAS,     /* a load, then a store */
};

extern enum port_break port_break;
/** port_break_dawdle() - long enough for others to come in between */
void port_break_dawdle(void);

WEIR_FN u64 weir_ballot(u64 mask, u32 predicate)
{
	u64 lanes = sound_ballot(mask, predicate);

	return port_break == PORT_BREAK_BALLOT && weir_lanes() > 1 ? lanes | (~mask & 1) : lanes;
}

WEIR_FN void weir_wave_sync(u64 mask)
{
	if (port_break != PORT_BREAK_SYNC)
		sound_wave_sync(mask);
}

WEIR_FN void weir_mmio_store_u32(weir_addr address, u32 value)
{
	u64 wide = value;

	if (port_break == PORT_BREAK_MMIO)
		__builtin_memcpy(WEIR_POINTER(address), &wide, sizeof(wide));
	else
		sound_mmio_store_u32(address, value);
}

WEIR_FN void weir_data_store_u8(weir_addr address, u8 value)
{
	weir_addr around = address & ~(weir_addr)3;
	u32 shift = (u32)(address & 3) * 8, word;

	if (port_break != PORT_BREAK_NARROW) {
		sound_data_store_u8(address, value);
		return;
	}
	word = weir_data_load_u32(around);
	port_break_dawdle();
	weir_data_store_u32(around, (word & ~((u32)0xff << shift)) | (u32)value << shift);
}

/* What this thread has not stored yet, and where to. */
static __thread weir_addr port_break_address WEIR_UNUSED;
static __thread u16 port_break_value WEIR_UNUSED;

WEIR_FN void weir_data_store_u16(weir_addr address, u16 value)
{
	if (port_break != PORT_BREAK_RELEASE) {
		sound_data_store_u16(address, value);
		return;
	}
	port_break_address = address;
	port_break_value = value;
}

WEIR_FN void weir_store_u64_release_dev(weir_shared_u64 *p, u64 value)
{
	sound_store_u64_release_dev(p, value);
	if (!port_break_address)
		return;
	port_break_dawdle();
	sound_data_store_u16(port_break_address, port_break_value);
	port_break_address = 0;
}

WEIR_FN u64 weir_cas_u64_acq_rel_dev(weir_shared_u64 *p, u64 expected, u64 value)
{
	u64 old;

	if (port_break != PORT_BREAK_CAS)
		return sound_cas_u64_acq_rel_dev(p, expected, value);
	old = weir_load_u64_acquire_dev(p);
	port_break_dawdle();
	if (old == expected)
		sound_store_u64_release_dev(p, value);
	return old;
}

#endif
