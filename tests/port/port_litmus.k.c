/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Litmus tests: lanes of different waves publish and observe at the same time, again
 * and again, and note what they saw. Nothing here waits without end: at the gate for
 * a while, in each iteration for a few turns.
 */
#include <weir/port.h>

#include "port.h"
#include "../rig/verdict.h"

enum { PACE_ITERATIONS = 1024, RELAX_EVERY = 512, MOST_DELAY_LOG2 = 9 };

#define FLAG_INVALID ((u64)1 << 62)
#define FLAG_TAKEN   ((u64)1 << 61)

/** struct player - who this lane is */
struct player {
	u32 role;
	u64 team;
};

WEIR_FN u64 whole_wave(void)
{
	return ~(u64)0 >> (64 - weir_lanes());
}

WEIR_FN struct player player_of(WEIR_GLOBAL struct port_litmus_args *args)
{
	u64 block = weir_thread() / args->block_threads, in_block = weir_thread() % args->block_threads;
	u64 wave = in_block / weir_lanes();
	struct player player;

	if (args->placement == PORT_BLOCKS) {
		player.role = (u32)(block % args->players);
		player.team = block / args->players * args->block_threads + in_block;
	} else {
		player.role = (u32)(wave % args->players);
		player.team = wave / args->players * weir_lanes() + weir_lane();
	}
	return player;
}

WEIR_FN WEIR_GLOBAL struct port_seat *seat_of(WEIR_GLOBAL struct port_litmus_args *args, u64 team, u32 role)
{
	return weir_at(args->seats, struct port_seat, team * PORT_MOST_PLAYERS + role);
}

WEIR_FN void note(WEIR_GLOBAL struct port_litmus_args *args, struct player player, u64 i, u64 first,
		  u64 second)
{
	WEIR_GLOBAL struct port_note *at =
		weir_at(args->notes, struct port_note,
			(player.team * PORT_MOST_PLAYERS + player.role) * (args->iterations + 1) + i);

	at->first = (u32)first;
	at->second = (u32)second;
}

/* All players are here at once, or this wave or another one has given up; all agree. */
WEIR_FN u32 gather(WEIR_GLOBAL struct port_litmus_args *args)
{
	WEIR_GLOBAL struct port_gate *gate = weir_at(args->gate, struct port_gate, 0);
	u64 began = weir_clock_ns(), state = PORT_GATHERING, mask = whole_wave();

	if (weir_elected(mask))
		weir_add_u64_relaxed_dev(&gate->arrived, weir_lanes());
	while (weir_ballot(mask, state == PORT_GATHERING)) {
		weir_reconverge();
		if (weir_elected(mask)) {
			/* relaxed: only the state counts, and that is one word */
			if (weir_load_u64_relaxed_dev(&gate->arrived) == weir_threads())
				weir_cas_u64_relaxed_dev(&gate->state, PORT_GATHERING, PORT_TOGETHER);
			else if (weir_clock_ns() - began > args->timeout_ns)
				weir_cas_u64_relaxed_dev(&gate->state, PORT_GATHERING, PORT_APART);
			state = weir_load_u64_relaxed_dev(&gate->state);
		}
		/* no relax: where lanes share a core, it would give it away */
		state = weir_broadcast_u64(mask, state);
	}
	return (u32)state;
}

WEIR_FN u32 others_behind(WEIR_GLOBAL struct port_litmus_args *args, struct player player, u64 i)
{
	u32 behind = 0;

	for (u32 role = 0; role < args->players; role++) /* relaxed: a pace, not an order */
		behind |= weir_load_u64_relaxed_dev(&seat_of(args, player.team, role)->iteration) < i;
	return behind;
}

WEIR_FN void delay(u64 random)
{
	u64 steps = random >> 8 & (((u64)1 << random % MOST_DELAY_LOG2) - 1);

	for (; steps; steps--)
		steps = weir_opaque(steps);
}

/*
 * Begin iteration @i at about the same time as the others. They may have been taken off their core, and
 * giving them ours may take long: so not after @until.
 */
WEIR_FN void keep_pace(WEIR_GLOBAL struct port_litmus_args *args, struct player player, u64 i, u64 until)
{
	u64 mask = whole_wave();
	u32 steps = weir_clock_ns() < until ? PACE_ITERATIONS : 0, behind = 1;

	weir_store_u64_relaxed_dev(&seat_of(args, player.team, player.role)->iteration, i);
	while (weir_ballot(mask, behind && steps)) {
		weir_reconverge();
		if (behind && steps) {
			behind = others_behind(args, player, i);
			if (behind && --steps % RELAX_EVERY == 0)
				weir_relax(0);
		}
	}
	delay(test_mix(args->salt + i * PORT_MOST_PLAYERS + player.role));
}

WEIR_FN void store_element(u32 data, weir_addr elements, u64 index)
{
	u64 value = port_value(index);
	struct weir_u128 wide;

	wide.low = value;
	wide.high = ~value;
	if (data == PORT_DATA_U8)
		weir_data_store_u8(elements + index, (u8)value);
	else if (data == PORT_DATA_U16)
		weir_data_store_u16(elements + index * 2, (u16)value);
	else if (data == PORT_DATA_U32)
		weir_data_store_u32(elements + index * 4, (u32)value);
	else if (data == PORT_DATA_PLAIN)
		*weir_at(elements, u32, index) = (u32)value;
	else if (data == PORT_DATA_U64)
		weir_data_store_u64(elements + index * 8, value);
	else
		weir_data_store_u128(elements + index * 16, wide);
}

/* As port_element() has it; another value if it was not stored yet. */
WEIR_FN u32 load_element(u32 data, weir_addr elements, u64 index)
{
	struct weir_u128 wide;

	if (data == PORT_DATA_U8)
		return weir_data_load_u8(elements + index);
	if (data == PORT_DATA_U16)
		return weir_data_load_u16(elements + index * 2);
	if (data == PORT_DATA_U32)
		return weir_data_load_u32(elements + index * 4);
	if (data == PORT_DATA_PLAIN)
		return *weir_at(elements, u32, index);
	if (data == PORT_DATA_U64)
		return port_fold(weir_data_load_u64(elements + index * 8));
	wide = weir_data_load_u128(elements + index * 16);
	return port_fold(wide.low) * 3 + port_fold(wide.high);
}

WEIR_FN weir_addr elements_of(WEIR_GLOBAL struct port_litmus_args *args, u64 team)
{
	return args->elements + team * (args->iterations + 1) * 16;
}

WEIR_FN void write_data(WEIR_GLOBAL struct port_litmus_args *args, u64 team, u64 i)
{
	if (args->data == PORT_DATA_WORD)
		weir_store_u64_relaxed_dev(&seat_of(args, team, 0)->word,
					   i); /* relaxed: the flag behind it has the order */
	else
		store_element(args->data, elements_of(args, team), i);
}

WEIR_FN u64 read_data(WEIR_GLOBAL struct port_litmus_args *args, u64 team, u64 index)
{
	if (args->data == PORT_DATA_WORD)
		return weir_load_u64_relaxed_dev(&seat_of(args, team, 0)->word); /* relaxed: likewise */
	return load_element(args->data, elements_of(args, team), (u32)index);
}

/* Ways that change a bit of a flag need it to be there before the data. */
WEIR_FN void prepare_flag(u32 publish, WEIR_GLOBAL struct port_seat *flag, u64 i)
{
	if (publish == PORT_OR_FENCED || publish == PORT_OR_ACQ_REL)
		weir_store_u64_relaxed_dev(&flag->word, i * 2);
	if (publish == PORT_AND_FENCED)
		weir_store_u64_relaxed_dev(&flag->word, (i * 2 + 1) | FLAG_INVALID);
}

/* @flag becomes 2 x @i + 1. */
WEIR_FN void publish_flag(u32 publish, WEIR_GLOBAL struct port_seat *flag, u64 i)
{
	u64 value = i * 2 + 1, before = i == 1 ? 0 : value - 2;

	if (publish >= PORT_STORE_FENCED && publish <= PORT_AND_FENCED)
		weir_fence_to_lanes();
	if (publish == PORT_TO_CONTROLLER || publish == PORT_MMIO)
		weir_fence_to_controller();
	switch (publish) {
	case PORT_STORE_RELEASE: weir_store_u64_release_dev(&flag->word, value); break;
	case PORT_STORE_RELEASE_SYS: weir_store_u64_release_sys(&flag->word, value); break;
	case PORT_STORE_RELEASE_U32: weir_store_u32_release_dev(&flag->narrow, (u32)value); break;
	case PORT_STORE_RELEASE_U32_SYS: weir_store_u32_release_sys(&flag->narrow, (u32)value); break;
	case PORT_STORE_FENCED_U32: weir_store_u32_fenced_dev(&flag->narrow, (u32)value); break;
	case PORT_DATA_FENCED: weir_data_store_u64(WEIR_ADDR(&flag->word), value); break;
	case PORT_STORE_FENCED: weir_store_u64_fenced_dev(&flag->word, value); break;
	case PORT_OR_FENCED: weir_or_u64_fenced_dev(&flag->word, 1); break;
	case PORT_AND_FENCED: weir_and_u64_fenced_dev(&flag->word, ~FLAG_INVALID); break;
	case PORT_OR_ACQ_REL: weir_or_u64_acq_rel_dev(&flag->word, 1); break;
	case PORT_EXCHANGE: weir_exchange_u64_acq_rel_dev(&flag->word, value); break;
	case PORT_ADD: weir_add_u64_acq_rel_dev(&flag->word, value - before); break;
	case PORT_CAS: weir_cas_u64_acq_rel_dev(&flag->word, before, value); break;
	case PORT_TO_CONTROLLER: weir_store_u64_relaxed_sys(&flag->word, value); break;
	case PORT_MMIO: weir_mmio_store_u32(WEIR_ADDR(&flag->narrow), (u32)value); break;
	default: weir_store_u64_relaxed_dev(&flag->word, value); break;
	}
}

/* Take a flag as it is found. Return: it; 0 if it has changed meanwhile, or was taken already. */
WEIR_FN u64 take_flag(WEIR_GLOBAL struct port_seat *flag)
{
	u64 word = weir_load_u64_relaxed_dev(&flag->word);

	if (!(word & 1) || word & FLAG_TAKEN)
		return 0;
	return weir_cas_u64_acquire_dev(&flag->word, word, word | FLAG_TAKEN) == word ? word : 0;
}

/* Look at a flag. Return: the iteration that was published with it; 0 if that cannot be said. */
WEIR_FN u64 observe_flag(u32 observe, WEIR_GLOBAL struct port_seat *flag)
{
	u64 word;

	switch (observe) {
	case PORT_LOAD_ACQUIRE: word = weir_load_u64_acquire_dev(&flag->word); break;
	case PORT_LOAD_ACQUIRE_SYS: word = weir_load_u64_acquire_sys(&flag->word); break;
	case PORT_LOAD_ACQUIRE_U32: word = weir_load_u32_acquire_dev(&flag->narrow); break;
	case PORT_LOAD_ACQUIRE_U32_SYS: word = weir_load_u32_acquire_sys(&flag->narrow); break;
	case PORT_CAS_ACQUIRE: word = take_flag(flag); break;
	case PORT_DATA_ORDER_LOADS: word = weir_data_load_u64(WEIR_ADDR(&flag->word)); break;
	case PORT_POLL: word = weir_poll_u64_dev(&flag->word, 1); break;
	case PORT_ADD: word = weir_add_u64_acq_rel_dev(&flag->word, 0); break;
	case PORT_FROM_CONTROLLER: word = weir_load_u64_relaxed_sys(&flag->word); break;
	default: word = weir_load_u64_relaxed_dev(&flag->word); break;
	}
	if (observe == PORT_ORDER_LOADS || observe == PORT_DATA_ORDER_LOADS)
		weir_order_loads();
	if (observe == PORT_FROM_CONTROLLER)
		weir_fence_from_controller();
	if (!(word & 1) || word & FLAG_INVALID)
		return 0;
	return observe == PORT_AFTER ? weir_depend((u32)(word >> 1), word) : word >> 1;
}

WEIR_FN void play_message(WEIR_GLOBAL struct port_litmus_args *args, struct player player, u64 i)
{
	WEIR_GLOBAL struct port_seat *flag = seat_of(args, player.team, 1);
	u64 seen;

	if (player.role == 0) {
		prepare_flag(args->publish, flag, i);
		write_data(args, player.team, i);
		publish_flag(args->publish, flag, i);
		return;
	}
	seen = observe_flag(args->observe, flag);
	note(args, player, i, seen, read_data(args, player.team, seen));
}

/* One flag for the wave: data of every lane goes through weir_wave_sync() on both sides. */
WEIR_FN void play_message_waves(WEIR_GLOBAL struct port_litmus_args *args, struct player player, u64 i)
{
	WEIR_GLOBAL struct port_seat *flag = seat_of(args, player.team - weir_lane(), 1);
	u64 mask = whole_wave(), seen = 0;

	if (player.role == 0) {
		write_data(args, player.team, i);
		weir_wave_sync(mask);
		if (weir_elected(mask))
			publish_flag(args->publish, flag, i);
		return;
	}
	if (weir_elected(mask))
		seen = observe_flag(args->observe, flag);
	weir_wave_sync(mask);
	seen = weir_broadcast_u64(mask, seen);
	note(args, player, i, seen, read_data(args, player.team, seen));
}

/* What the second player has acquired from the first it releases to the third. */
WEIR_FN void play_chain(WEIR_GLOBAL struct port_litmus_args *args, struct player player, u64 i)
{
	u64 seen;

	if (player.role == 0) {
		write_data(args, player.team, i);
		publish_flag(args->publish, seat_of(args, player.team, 1), i);
	} else if (player.role == 1) {
		seen = observe_flag(args->observe, seat_of(args, player.team, 1));
		if (seen)
			publish_flag(args->publish, seat_of(args, player.team, 2), seen);
	} else {
		seen = observe_flag(args->observe, seat_of(args, player.team, 2));
		note(args, player, i, seen, read_data(args, player.team, seen));
	}
}

/* Return: there is such a fence. */
WEIR_FN u32 fence_with_controller(void)
{
#ifdef WEIR_NO_FENCE_WITH_CONTROLLER
	return 0;
#else
	weir_fence_with_controller();
	return 1;
#endif
}

WEIR_FN void store_own(u32 publish, WEIR_GLOBAL struct port_seat *own, u64 i)
{
	if (publish == PORT_WITH_CONTROLLER)
		weir_store_u64_relaxed_sys(&own->word, i); /* relaxed: the fence behind it has the order */
	else if (publish == PORT_STORE_RELEASE)
		weir_store_u64_release_dev(&own->word, i);
	else if (publish == PORT_EXCHANGE)
		weir_exchange_u64_acq_rel_dev(&own->word, i);
	else
		weir_store_u64_relaxed_dev(&own->word, i); /* relaxed: what this allows is what is counted */
	if (publish == PORT_TO_CONTROLLER)
		weir_fence_to_controller();
}

WEIR_FN u64 load_other(u32 observe, WEIR_GLOBAL struct port_seat *other)
{
	if (observe == PORT_WITH_CONTROLLER)
		return weir_load_u64_relaxed_sys(&other->word); /* relaxed: likewise */
	return observe == PORT_LOAD_ACQUIRE ? weir_load_u64_acquire_dev(&other->word)
					    : weir_load_u64_relaxed_dev(&other->word);
}

WEIR_FN void play_stores(WEIR_GLOBAL struct port_litmus_args *args, struct player player, u64 i)
{
	u32 fenced = 1;
	u64 seen;

	store_own(args->publish, seat_of(args, player.team, player.role), i);
	if (args->publish == PORT_WITH_CONTROLLER)
		fenced = fence_with_controller();
	seen = load_other(args->observe, seat_of(args, player.team, 1 - player.role));
	note(args, player, i, fenced ? seen : PORT_NO_FENCE, 0);
}

WEIR_FN void play_loads(WEIR_GLOBAL struct port_litmus_args *args, struct player player, u64 i)
{
	u64 seen = load_other(args->observe, seat_of(args, player.team, 1 - player.role));

	store_own(args->publish, seat_of(args, player.team, player.role), i);
	note(args, player, i, seen, 0);
}

WEIR_FN void play_lookers(WEIR_GLOBAL struct port_litmus_args *args, struct player player, u64 i)
{
	u64 first, second;

	if (player.role < 2) {
		store_own(args->publish, seat_of(args, player.team, player.role), i);
		return;
	}
	first = load_other(args->observe, seat_of(args, player.team, player.role - 2));
	second = load_other(args->observe, seat_of(args, player.team, 3 - player.role));
	note(args, player, i, first, second);
}

WEIR_FN void play_coherence(WEIR_GLOBAL struct port_litmus_args *args, struct player player, u64 i)
{
	WEIR_GLOBAL struct port_seat *seat = seat_of(args, player.team, 0);
	weir_addr element = elements_of(args, player.team);
	u64 first, second;

	if (args->data == PORT_DATA_WORD) {
		if (player.role == 0) {
			weir_store_u64_relaxed_dev(&seat->word,
						   i); /* relaxed: one location is in order by itself */
			return;
		}
		first = weir_load_u64_relaxed_dev(&seat->word);
		second = weir_load_u64_relaxed_dev(&seat->word);
	} else {
		if (player.role == 0) {
			weir_data_store_u64(element, i);
			return;
		}
		first = weir_data_load_u64(element);
		second = weir_data_load_u64(element);
	}
	note(args, player, i, first, second);
}

WEIR_FN void play(WEIR_GLOBAL struct port_litmus_args *args, struct player player, u64 i)
{
	switch (args->shape) {
	case PORT_MESSAGE: play_message(args, player, i); break;
	case PORT_MESSAGE_WAVES: play_message_waves(args, player, i); break;
	case PORT_CHAIN: play_chain(args, player, i); break;
	case PORT_STORES: play_stores(args, player, i); break;
	case PORT_LOADS: play_loads(args, player, i); break;
	case PORT_LOOKERS: play_lookers(args, player, i); break;
	default: play_coherence(args, player, i); break;
	}
}

WEIR_KERNEL(port_litmus, struct port_litmus_args)
{
	struct player player = player_of(args);
	u64 until;

	if (gather(args) != PORT_TOGETHER)
		return;
	until = weir_clock_ns() + args->pace_ns;
	for (u64 i = 1; i <= args->iterations; i++) {
		keep_pace(args, player, i, until);
		play(args, player, i);
	}
}

/* Count once under the lock. Return: it could be had. */
WEIR_FN u32 count_locked(WEIR_GLOBAL struct port_lock_args *args)
{
	WEIR_GLOBAL weir_shared_u32 *lock = weir_at(args->lock, weir_shared_u32, 0);
	WEIR_GLOBAL weir_shared_u64 *word = weir_at(args->lock + 128, weir_shared_u64, 0);
	WEIR_GLOBAL u64 *plain = weir_at(args->lock + 256, u64, 0);
	u64 before;

	if (weir_cas_u32_acquire_dev(lock, 0, 1) != 0) /* litmus.L0: pairs with litmus.L1 */
		return 0;
	before = weir_load_u64_relaxed_dev(word); /* relaxed: the lock has the order */
	expect(args->verdict, weir_thread(), *plain, before);
	*plain = before + 1;
	weir_store_u64_relaxed_dev(word, before + 1);
	weir_store_u32_release_dev(lock, 0); /* litmus.L1: pairs with litmus.L0 */
	return 1;
}

WEIR_KERNEL(port_lock, struct port_lock_args)
{
	u64 began = weir_clock_ns(), mask = weir_active(), left = args->rounds;

	while (weir_ballot(mask, left && weir_clock_ns() - began < args->timeout_ns)) {
		weir_reconverge();
		if (left) {
			if (count_locked(args))
				left--;
			else
				weir_relax(0);
		}
	}
}

/* Wait, but not for ever, until the host has answered letter @least. Return: it has. */
WEIR_FN u32 await_answer(WEIR_GLOBAL struct port_message_args *args, u64 least)
{
	WEIR_GLOBAL struct port_message *message = weir_at(args->message, struct port_message, 0);
	u64 began = weir_clock_ns(), seen = 0, data;

	while (weir_ballot(1, seen < least && weir_clock_ns() - began < args->timeout_ns)) {
		weir_reconverge();
		if (args->observe == PORT_LOAD_ACQUIRE_SYS) {
			/* pairs with the host's release */
			seen = weir_load_u64_acquire_sys(&message->answer);
		} else {
			seen = weir_load_u64_relaxed_sys(&message->answer);
			weir_fence_from_controller();
		}
		if (seen < least)
			weir_relax(0);
	}
	data = weir_load_u64_relaxed_sys(&message->answer_data);
	expect(args->verdict, least, data >= seen ? seen : data, seen);
	return seen >= least;
}

WEIR_FN void send_message(WEIR_GLOBAL struct port_message_args *args, u64 i)
{
	WEIR_GLOBAL struct port_message *message = weir_at(args->message, struct port_message, 0);

	weir_store_u64_relaxed_sys(&message->data, i);
	if (args->publish == PORT_STORE_RELEASE_SYS) {
		weir_store_u64_release_sys(&message->flag, i); /* pairs with the host's acquire */
		return;
	}
	weir_fence_to_controller();
	if (args->publish == PORT_MMIO)
		weir_mmio_store_u32(WEIR_ADDR(&message->doorbell), (u32)i + PORT_FIRST_RING);
	else
		weir_store_u64_relaxed_sys(&message->flag, i);
}

WEIR_KERNEL(port_message, struct port_message_args)
{
	u64 i = 1;

	if (weir_thread() != 0)
		return;
	for (; i <= args->letters; i++) {
		if (i > args->window && !await_answer(args, i - args->window))
			break;
		send_message(args, i);
		delay(test_mix(i));
	}
	if (i > args->letters)
		await_answer(args, args->letters);
	weir_add_u64_relaxed_dev(&verdict_at(args->verdict)->sum, i - 1);
}
