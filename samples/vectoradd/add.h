/* SPDX-License-Identifier: BSD-3-Clause */
/* add.h: one addition of 16 bytes. */
#ifndef VECTORADD_ADD_H
#define VECTORADD_ADD_H

#include <weir/port.h>

/* Two floats in a word. */
WEIR_FN u64 vectoradd_floats(u64 x, u64 y)
{
	union {
		u64 bits;
		float value[2];
	} a, b;

	a.bits = x;
	b.bits = y;
	a.value[0] += b.value[0];
	a.value[1] += b.value[1];
	return a.bits;
}

WEIR_FN struct weir_u128 vectoradd_add(struct weir_u128 x, struct weir_u128 y, u64 is_float)
{
	x.low = is_float ? vectoradd_floats(x.low, y.low) : x.low + y.low;
	x.high = is_float ? vectoradd_floats(x.high, y.high) : x.high + y.high;
	return x;
}

#endif
