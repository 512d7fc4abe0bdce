/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Through arrays: each wave reads lines of a and b by views, adds, and writes the lines of c
 * as a whole, so that they are never read. Storage gets them when the cache needs the room. Several
 * lines at a time: what the wave asks for together costs it one submission.
 */
#include <weir/async.h>

#include "add.h"
#include "vectoradd.h"

/** struct vectoradd_seen - a mix of all that a lane loaded, of each vector */
struct vectoradd_seen {
	u64 a;
	u64 b;
};

/* Lanes of a wave that have a piece of their own to ask for; narrower waves come again for the others. */
WEIR_FN u32 vectoradd_askers(u32 pieces)
{
	return weir_lanes() < pieces ? weir_lanes() : pieces;
}

/* @lines lines of both from @first on, at the same time. All lanes of the wave ask, since all of them help
 * while they wait. */
WEIR_FN void vectoradd_bring(WEIR_GLOBAL struct vectoradd_cached_args *args, u64 first, u64 lines)
{
	u32 askers = vectoradd_askers(2 * VECTORADD_LINES);

	for (u32 piece = weir_lane() % askers; piece < 2 * VECTORADD_LINES; piece += askers)
		(void)weir_array_get_u128(piece & 1 ? &args->b : &args->a,
					  (first + (piece / 2 < lines ? piece / 2 : 0)) * args->line_bytes /
						  16);
}

/* What the wave adds next is on its way while it writes. */
WEIR_FN void vectoradd_ahead(WEIR_GLOBAL struct vectoradd_cached_args *args, u64 next, u64 lines)
{
	u32 askers = vectoradd_askers(2 * VECTORADD_LINES);

	for (u32 piece = weir_lane() % askers; piece < 2 * VECTORADD_LINES; piece += askers)
		(void)weir_prefetch(piece & 1 ? &args->b : &args->a,
				    (next + piece / 2) * args->line_bytes / 16,
				    weir_lane() < askers && piece / 2 < lines);
}

WEIR_FN struct vectoradd_seen vectoradd_views(WEIR_GLOBAL struct vectoradd_cached_args *args,
					      struct weir_view a, struct weir_view b, u64 count, weir_addr to)
{
	struct vectoradd_seen seen;

	seen.a = seen.b = 0;
	for (u64 i = weir_lane(); i < count; i += weir_lanes()) {
		struct weir_u128 x = weir_view_u128(a, i), y = weir_view_u128(b, i);

		*weir_at(to, struct weir_u128, i) = vectoradd_add(x, y, args->is_float);
		seen.a ^= x.low ^ x.high;
		seen.b ^= y.low ^ y.high;
	}
	return seen;
}

/* Lines that did not stay for a view: element by element, which always gets there. */
WEIR_FN void vectoradd_slowly(WEIR_GLOBAL struct vectoradd_cached_args *args, u64 first, u64 count,
			      weir_addr to)
{
	for (u64 i = weir_lane(); i < count; i += weir_lanes())
		*weir_at(to, struct weir_u128, i) =
			vectoradd_add(weir_array_get_u128(&args->a, first + i),
				      weir_array_get_u128(&args->b, first + i), args->is_float);
}

/* Elements [first, first + count), one line, into a buffer of the wave's. */
WEIR_FN void vectoradd_line(WEIR_GLOBAL struct vectoradd_cached_args *args, u64 first, u64 count,
			    weir_addr to)
{
	struct weir_view a = weir_array_view(&args->a, first), b = weir_array_view(&args->b, first);
	struct vectoradd_seen seen =
		vectoradd_views(args, a, b, a.count < count || b.count < count ? 0 : count, to);

	if (a.count < count || b.count < count || !weir_view_valid_by(a, seen.a) ||
	    !weir_view_valid_by(b, seen.b))
		vectoradd_slowly(args, first, count, to);
}

/* @lines lines of c from @first on, a lane each. */
WEIR_FN void vectoradd_put(WEIR_GLOBAL struct vectoradd_cached_args *args, u64 first, u64 lines,
			   weir_addr buffers)
{
	u32 askers = vectoradd_askers(VECTORADD_LINES);
	u64 line = args->line_bytes / 16;

	for (u32 piece = weir_lane() % askers; piece < VECTORADD_LINES; piece += askers) {
		u32 mine = weir_lane() < askers && piece < lines;

		(void)weir_writer_write(&args->c, mine ? (first + piece) * line : 0, mine ? line : 0,
					buffers + piece * args->line_bytes);
	}
}

WEIR_FN u64 vectoradd_at_most(u64 lines)
{
	return lines < VECTORADD_LINES ? lines : (u64)VECTORADD_LINES;
}

WEIR_KERNEL(vectoradd_cached, struct vectoradd_cached_args)
{
	u64 line = args->line_bytes / 16, lines = args->a.count / line, wave = weir_active();
	weir_addr buffers = args->buffers + weir_wave() * VECTORADD_LINES * args->line_bytes;
	u64 step = args->waves * VECTORADD_LINES;

	if (weir_wave() >= args->waves)
		return;
	for (u64 first = weir_wave() * VECTORADD_LINES; first < lines; first += step) {
		u64 here = vectoradd_at_most(lines - first);
		u64 next = first + step < lines ? lines - first - step : 0;

		vectoradd_bring(args, first, here);
		for (u64 i = 0; i < here; i++)
			vectoradd_line(args, (first + i) * line, line, buffers + i * args->line_bytes);
		vectoradd_ahead(args, first + step, vectoradd_at_most(next));
		weir_wave_sync(wave); /* all lanes' parts, before they are written */
		vectoradd_put(args, first, here, buffers);
		weir_wave_sync(wave); /* the buffers are free again */
		if (weir_array_failed(&args->a))
			break; /* the host says why */
	}
}
