/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Through arrays: each wave reads lines of a and b by views, adds, and writes the line of c
 * as a whole, so that it is never read. Storage gets it when the cache needs the room.
 */
#include <weir/async.h>

#include "add.h"
#include "vectoradd.h"

/** struct vectoradd_seen - a mix of all that a lane loaded, of each vector */
struct vectoradd_seen {
	u64 a;
	u64 b;
};

/* Both lines at the same time, where the wave has two lanes. All of its lanes ask, since all of them help
 * while they wait. */
WEIR_FN void vectoradd_bring(WEIR_GLOBAL struct vectoradd_cached_args *args, u64 first)
{
	(void)weir_array_get_u128(weir_lane() & 1 ? &args->b : &args->a, first);
}

/* What the wave adds next is on its way while it writes: both lines by one submission, where the wave has two
 * lanes. */
WEIR_FN void vectoradd_ahead(WEIR_GLOBAL struct vectoradd_cached_args *args, u64 next, u64 count)
{
	(void)weir_prefetch(weir_lane() & 1 ? &args->b : &args->a, next, weir_lane() < 2 ? count : 0);
	if (weir_lanes() < 2)
		(void)weir_prefetch(&args->b, next, count);
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

/* Elements [first, first + count), one line, into the wave's buffer. */
WEIR_FN void vectoradd_line(WEIR_GLOBAL struct vectoradd_cached_args *args, u64 first, u64 count,
			    weir_addr to)
{
	struct vectoradd_seen seen;
	struct weir_view a, b;

	vectoradd_bring(args, first);
	a = weir_array_view(&args->a, first);
	b = weir_array_view(&args->b, first);
	seen = vectoradd_views(args, a, b, a.count < count || b.count < count ? 0 : count, to);
	if (a.count < count || b.count < count || !weir_view_valid_by(a, seen.a) ||
	    !weir_view_valid_by(b, seen.b))
		vectoradd_slowly(args, first, count, to);
}

WEIR_KERNEL(vectoradd_cached, struct vectoradd_cached_args)
{
	u64 line = args->line_bytes / 16, lines = args->a.count / line, wave = weir_active();
	weir_addr buffer = args->buffers + weir_wave() * args->line_bytes;

	if (weir_wave() >= args->waves)
		return;
	for (u64 i = weir_wave(); i < lines; i += args->waves) {
		vectoradd_line(args, i * line, line, buffer);
		vectoradd_ahead(args, (i + args->waves) * line, i + args->waves < lines ? 1 : 0);
		weir_wave_sync(wave); /* all lanes' parts, before they are written */
		(void)weir_writer_write(&args->c, i * line, weir_lane() == 0 ? line : 0, buffer);
		weir_wave_sync(wave); /* the buffer is free again */
		if (weir_array_failed(&args->a))
			break; /* the host says why */
	}
}
