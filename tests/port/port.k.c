/* SPDX-License-Identifier: BSD-3-Clause */
/* The portability suite's kernels but for the litmus tests: each primitive by itself. */
#include <weir/port.h>

#include "port.h"
#include "../rig/verdict.h"

/* Waves start together, in twos at least; but a device may have one at a time, or a machine be busy. */
#define COMPANY_NS 100000000u

WEIR_FN void await_company(weir_addr company)
{
	WEIR_GLOBAL weir_shared_u64 *waves = weir_at(company, weir_shared_u64, 0);
	u64 began = weir_clock_ns(), mask = weir_active(), alone = 1;

	if (weir_elected(mask))
		weir_add_u64_relaxed_dev(waves, 1);
	while (weir_ballot(mask, alone != 0)) {
		weir_reconverge();
		if (weir_elected(mask)) /* no relax: where lanes share a core, it would give it away */
			alone = weir_load_u64_relaxed_dev(waves) < 2 && weir_clock_ns() - began < COMPANY_NS;
		alone = weir_broadcast_u64(mask, alone);
	}
}

#define RMW_CALL_add(bits, order, scope)                                                                     \
	weir_add_u##bits##_##order##_##scope(weir_at(word, weir_shared_u##bits, 0), (u##bits)value)
#define RMW_CALL_or(bits, order, scope)                                                                      \
	weir_or_u##bits##_##order##_##scope(weir_at(word, weir_shared_u##bits, 0), (u##bits)value)
#define RMW_CALL_and(bits, order, scope)                                                                     \
	weir_and_u##bits##_##order##_##scope(weir_at(word, weir_shared_u##bits, 0), (u##bits)value)
#define RMW_CALL_exchange(bits, order, scope)                                                                \
	weir_exchange_u##bits##_##order##_##scope(weir_at(word, weir_shared_u##bits, 0), (u##bits)value)
#define RMW_CALL_cas(bits, order, scope)                                                                     \
	weir_cas_u##bits##_##order##_##scope(weir_at(word, weir_shared_u##bits, 0), (u##bits)expected,       \
					     (u##bits)value)
#define RMW_CASE(what, bits, order, scope)                                                                   \
	case PORT_##what##_##bits##_##order##_##scope: return RMW_CALL_##what(bits, order, scope);

/* One operation; what it returned. */
WEIR_FN u64 rmw(u32 operation, weir_addr word, u64 expected, u64 value)
{
	switch (operation) {
		PORT_OPERATIONS(RMW_CASE)
	case PORT_DATA_ADD_32: return weir_data_add_u32(word, (u32)value);
	case PORT_DATA_CAS_32: return weir_data_cas_u32(word, (u32)expected, (u32)value);
	case PORT_DATA_CAS_64: return weir_data_cas_u64(word, expected, value);
	default: return weir_data_add_u64(word, value);
	}
}

/* Compare-and-swap until it stores; others' success is the only reason to try again. */
WEIR_FN u64 rmw_until_stored(WEIR_GLOBAL struct port_rmw_args *args, u64 mask)
{
	u64 seen = args->bits == 32 ? weir_data_load_u32(args->words) : weir_data_load_u64(args->words);
	u32 done = 0;

	while (weir_ballot(mask, !done)) {
		weir_reconverge();
		if (!done) {
			u64 found = rmw(args->operation, args->words, seen, seen + 1);

			done = found == seen;
			seen = found;
		}
	}
	return seen;
}

/* Lanes of a wave meet different words, and those of different blocks one word. */
WEIR_FN u64 rmw_bit(WEIR_GLOBAL struct port_rmw_args *args, u64 round)
{
	u64 words = weir_threads() / args->bits;
	weir_addr word = args->words + (round * words + weir_thread() % words) * 8;
	u64 bit = (u64)1 << (weir_thread() / words);

	return rmw(args->operation, word, 0, args->kind == PORT_KIND_or ? bit : ~bit);
}

WEIR_KERNEL(port_rmw, struct port_rmw_args)
{
	await_company(args->company);
	for (u64 round = 0; round < args->rounds; round++) {
		u64 index = weir_thread() * args->rounds + round, mask = weir_active(), old;

		if (args->kind == PORT_KIND_cas)
			old = rmw_until_stored(args, mask);
		else if (args->kind == PORT_KIND_add)
			old = rmw(args->operation, args->words, 0, 1);
		else if (args->kind == PORT_KIND_exchange)
			old = rmw(args->operation, args->words, 0, index + 1);
		else
			old = rmw_bit(args, round);
		*weir_at(args->olds, u64, index) = old;
	}
}

WEIR_FN void narrow_store(u32 bytes, weir_addr address, u64 value)
{
	struct weir_u128 wide;

	wide.low = value;
	wide.high = ~value;
	if (bytes == 1)
		weir_data_store_u8(address, (u8)value);
	else if (bytes == 2)
		weir_data_store_u16(address, (u16)value);
	else if (bytes == 4)
		weir_data_store_u32(address, (u32)value);
	else if (bytes == 8)
		weir_data_store_u64(address, value);
	else
		weir_data_store_u128(address, wide);
}

WEIR_FN u64 narrow_load(u32 bytes, weir_addr address)
{
	struct weir_u128 wide;

	if (bytes == 1)
		return weir_data_load_u8(address);
	if (bytes == 2)
		return weir_data_load_u16(address);
	if (bytes == 4)
		return weir_data_load_u32(address);
	if (bytes == 8)
		return weir_data_load_u64(address);
	wide = weir_data_load_u128(address);
	return wide.low == ~wide.high ? wide.low : 0; /* its own lane's: nobody else stores here */
}

/* Neighbours belong to lanes of other blocks, which store at the same time. */
WEIR_KERNEL(port_narrow, struct port_narrow_args)
{
	u64 in_block = weir_threads() / args->blocks, thread = weir_thread();
	u64 position = thread % in_block * args->blocks + thread / in_block;
	weir_addr mine = args->data + PORT_GUARD + position * args->bytes;

	await_company(args->company);
	for (u64 round = 0; round < args->rounds; round++) {
		u64 value = port_value(position + round + 1);
		u64 kept = args->bytes < 8 ? value & (((u64)1 << args->bytes * 8) - 1) : value;

		narrow_store(args->bytes, mine, value);
		expect(args->verdict, position, narrow_load(args->bytes, mine), kept);
	}
}

/* @part in both halves of each word that must be whole. */
WEIR_FN void whole_store(u32 data, weir_addr word, u32 part)
{
	u64 both = (u64)part << 32 | part;
	struct weir_u128 wide;

	wide.low = both;
	wide.high = both;
	if (data == PORT_DATA_WORD)
		weir_store_u64_relaxed_dev(weir_at(word, weir_shared_u64, 0), both);
	else if (data == PORT_DATA_U64)
		weir_data_store_u64(word, both);
	else if (data == PORT_DATA_U128)
		weir_data_store_u128(word, wide);
	else if (data == PORT_DATA_U32)
		weir_data_store_u32(word, (part & 0xffff) | part << 16);
	else
		weir_data_store_u16(word, (u16)((part & 0xff) | (part & 0xff) << 8));
}

/* Return: the part that was seen; WHOLE_TORN if the halves of a word were not the same. */
#define WHOLE_TORN (~(u64)0)
WEIR_FN u64 whole_load(u32 data, weir_addr word)
{
	u64 seen = 0, other = 0;

	if (data == PORT_DATA_WORD) {
		seen = weir_load_u64_relaxed_dev(weir_at(word, weir_shared_u64, 0));
	} else if (data == PORT_DATA_U64) {
		seen = weir_data_load_u64(word);
	} else if (data == PORT_DATA_U128) {
		struct weir_u128 wide = weir_data_load_u128(word);

		seen = wide.low;
		other = wide.high; /* may be another store's, but is one's */
		if (other >> 32 != (other & 0xffffffffu))
			return WHOLE_TORN;
	} else if (data == PORT_DATA_U32) {
		seen = weir_data_load_u32(word);
		return seen >> 16 == (seen & 0xffff) ? seen >> 16 : WHOLE_TORN;
	} else {
		seen = weir_data_load_u16(word);
		return seen >> 8 == (seen & 0xff) ? seen >> 8 : WHOLE_TORN;
	}
	return seen >> 32 == (seen & 0xffffffffu) ? seen >> 32 : WHOLE_TORN;
}

/* Even blocks store, odd ones look. */
WEIR_KERNEL(port_whole, struct port_whole_args)
{
	u64 block = weir_thread() / (weir_threads() / args->blocks), before = 0;

	await_company(args->company);
	for (u64 round = 0; round < args->rounds; round++) {
		u64 seen;

		if (block % 2 == 0) {
			whole_store(args->data, args->word,
				    (u32)port_value(weir_thread() * args->rounds + round + 1));
			continue;
		}
		seen = whole_load(args->data, args->word);
		expect(args->verdict, round, seen == WHOLE_TORN, 0);
		if (seen != before)
			weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
		before = seen;
	}
}

/* Every collective over @mask, which all its lanes pass; @salt tells places apart. */
WEIR_FN void check_mask(weir_addr verdict, u64 mask, u64 salt)
{
	u32 lane = weir_lane();
	u32 size = weir_popcount(mask);
	u32 last = 0;
	u64 third = 0, evens = 0, same = 0;

	for (u32 i = 0; i < weir_lanes(); i++) {
		u64 bit = (u64)1 << i;

		if (!(mask & bit))
			continue;
		last = i;
		third |= (i + salt) % 3 == 0 ? bit : 0;
		evens |= i % 2 == 0 ? bit : 0;
		same |= test_mix(i + salt) % 4 == test_mix(lane + salt) % 4 ? bit : 0;
	}
	expect(verdict, 10, (mask >> lane) & 1, 1);
	expect(verdict, 11, weir_ballot(mask, (lane + salt) % 3 == 0), third);
	expect(verdict, 12, weir_ballot(mask, lane % 2 == 0 ? 0x80000000u : 0), evens);
	expect(verdict, 13, weir_ballot(mask, 0), 0);
	expect(verdict, 14, weir_ballot(mask, 1), mask);
	expect(verdict, 15, weir_shuffle_u64(mask, test_mix(salt + lane), last), test_mix(salt + last));
	expect(verdict, 16, weir_broadcast_u64(mask, test_mix(salt + lane)),
	       test_mix(salt + weir_lowest_bit(mask)));
	expect(verdict, 17, weir_match_u64(mask, test_mix(lane + salt) % 4 + ((u64)1 << 40)), same);
	weir_wave_sync(mask);
	expect(verdict, 18, weir_popcount(weir_ballot(mask, weir_elected(mask))), 1);
	expect(verdict, 19, weir_rank(mask, lane) < size, 1);
}

/* Lanes there are in this wave: the last one of a block may be short. */
WEIR_FN u64 full_mask(u64 block_threads)
{
	u64 in_block = weir_thread() % block_threads;
	u64 left = block_threads - (in_block - weir_lane());

	return left >= 64 ? ~(u64)0 >> (64 - weir_lanes())
			  : (((u64)1 << (left < weir_lanes() ? left : weir_lanes())) - 1);
}

WEIR_KERNEL(port_groups, struct port_groups_args)
{
	u64 full = full_mask(args->block_threads);
	u64 odd = full & (u64)0xaaaaaaaaaaaaaaaau;

	for (u64 round = 0; round < args->rounds; round++) {
		check_mask(args->verdict, full, round);
		if (weir_lane() & 1)
			check_mask(args->verdict, odd, round + 100);
		else
			check_mask(args->verdict, full & ~odd, round + 200);
		if (weir_lane() & 1) {
			u64 active = weir_active();

			/* what active() says may be a part; it must hold us and only lanes of this branch */
			expect(args->verdict, 20, active & ~odd, 0);
			check_mask(args->verdict, active, round + 300);
			weir_relax(0);
		}
		if (weir_lane() % 4 == round % 4)
			weir_relax(0);
		weir_wave_sync(full);
		weir_reconverge();
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
	}
}

WEIR_KERNEL(port_leaving, struct port_groups_args)
{
	/* lanes leave one after the other; the rest go on together */
	for (u64 round = 0; round < weir_lane(); round++) {
		u64 active = weir_active();

		expect(args->verdict, 30, (active >> weir_lane()) & 1, 1);
		check_mask(args->verdict, active, round);
	}
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
}

/* Some lanes of @mask, the same in all of them; none is possible. */
WEIR_FN u64 some_of(u64 mask, u64 salt)
{
	return mask & test_mix(salt + 1);
}

WEIR_FN u64 next_of(u64 mask, u32 lane)
{
	u64 above = lane == 63 ? 0 : mask & (~(u64)0 << (lane + 1));

	return weir_lowest_bit(above ? above : mask);
}

/* What each lane of @mask stored, plainly, the next one of it finds. */
WEIR_FN void check_sync(WEIR_GLOBAL struct port_groups_args *args, u64 mask, u64 salt)
{
	u64 next = weir_thread() - weir_lane() + next_of(mask, weir_lane());

	*weir_at(args->words, u64, weir_thread()) = test_mix(weir_thread() + salt);
	weir_wave_sync(mask);
	expect(args->verdict, 40, *weir_at(args->words, u64, next), test_mix(next + salt));
	weir_wave_sync(mask);
}

WEIR_FN void check_group(WEIR_GLOBAL struct port_groups_args *args, u64 mask, u64 salt)
{
	check_mask(args->verdict, mask, salt);
	check_sync(args, mask, salt);
}

/* Branches in branches, and what is left of the group meets again behind each. */
WEIR_FN void check_nested(WEIR_GLOBAL struct port_groups_args *args, u64 mask, u64 salt)
{
	u64 outer = some_of(mask, salt), inner = some_of(outer, salt + 1000);
	u64 me = (u64)1 << weir_lane();

	if (outer & me) {
		if (inner & me) {
			check_group(args, inner, salt + 1);
		} else {
			check_group(args, outer & ~inner, salt + 2);
			weir_relax(0);
		}
		check_group(args, outer, salt + 3);
	} else {
		check_group(args, mask & ~outer, salt + 4);
	}
	weir_wave_sync(mask);
}

/* Three groups with masks of their own at one place in the program. */
WEIR_FN void check_same_place(WEIR_GLOBAL struct port_groups_args *args, u64 mask, u64 salt)
{
	u64 group = test_mix(weir_lane() + salt * 64) % 3, mine = 0;

	for (u32 i = 0; i < weir_lanes(); i++)
		if ((mask >> i & 1) && test_mix(i + salt * 64) % 3 == group)
			mine |= (u64)1 << i;
	check_group(args, mine, salt);
	weir_wave_sync(mask);
}

WEIR_KERNEL(port_nested, struct port_groups_args)
{
	u64 full = full_mask(args->block_threads);

	for (u64 round = 0; round < args->rounds; round++) {
		u64 salt = test_mix(round + weir_wave() * 1000);

		check_nested(args, full, salt);
		check_same_place(args, full, salt + 10);
		weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->good, 1);
	}
}

WEIR_KERNEL(port_scalar, struct port_scalar_args)
{
	WEIR_GLOBAL struct port_scalar *mine = weir_at(args->results, struct port_scalar, weir_thread());
	u64 a = test_mix(weir_thread() * 2 + 1), b = test_mix(weir_thread() * 2 + 2) >> weir_thread() % 64;
	u64 before = weir_clock_ns(), back = 0;

	if (weir_thread() % 8 == 0)
		a = (u64)1 << weir_thread() / 8 % 64; /* powers of two, too */
	mine->a = a;
	mine->b = b;
	mine->high = weir_mulhi(a, b);
	mine->ones = weir_popcount(a);
	mine->lowest = weir_lowest_bit(a);
	mine->forgotten = weir_opaque(a);
	mine->began = before;
	for (u64 i = 0; i < args->relaxes; i++) {
		u64 now;

		weir_relax(0);
		now = weir_clock_ns();
		back += now < before;
		before = now;
	}
	mine->ended = before;
	mine->back = back;
}
