/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/cache/extent.h: from a line's key to the block of the storage that it is of.
 *
 * Owns: stripes, and the table of all extents of a cache. Whoever asks for a line knows its
 * extent; whoever must write one back that another array left there finds it by its key.
 */
#ifndef WEIR_CORE_EXTENT_H
#define WEIR_CORE_EXTENT_H

#include <weir/core/cache/line.h>
#include <weir/disk.h>

/** weir_extent_disk() - member storage that holds line @line of @extent */
WEIR_FN WEIR_GLOBAL struct weir_disk *weir_extent_disk(WEIR_GLOBAL struct weir_extent *extent, u64 line)
{
	u64 member = extent->disk_count == 1 ? 0 : (line >> extent->unit_log2) % extent->disk_count;

	return weir_at(extent->disks, struct weir_disk, member);
}

/** weir_extent_line() - which line of its member storage line @line of @extent is */
WEIR_FN u64 weir_extent_line(WEIR_GLOBAL struct weir_extent *extent, u64 line)
{
	u64 unit = line >> extent->unit_log2;

	if (extent->disk_count == 1)
		return line;
	return ((unit / extent->disk_count) << extent->unit_log2) |
	       (line & (((u64)1 << extent->unit_log2) - 1));
}

/** weir_extent_lba() - first block of line @line of @extent on its member storage */
WEIR_FN u64 weir_extent_lba(WEIR_GLOBAL struct weir_lines *lines, WEIR_GLOBAL struct weir_extent *extent,
			    u64 line)
{
	return weir_extent_line(extent, line)
	       << (lines->line_log2 - weir_extent_disk(extent, line)->block_log2);
}

/** weir_extent_blocks() - blocks of line @line of @extent: fewer than a line has where the storage ends in it
 */
WEIR_FN u32 weir_extent_blocks(WEIR_GLOBAL struct weir_lines *lines, WEIR_GLOBAL struct weir_extent *extent,
			       u64 line)
{
	WEIR_GLOBAL struct weir_disk *disk = weir_extent_disk(extent, line);
	u64 left = disk->blocks - weir_extent_lba(lines, extent, line);
	u32 all = 1u << (lines->line_log2 - disk->block_log2);

	return left < all ? (u32)left : all;
}

/**
 * weir_extent_of() - the extent that @key belongs to
 * @lines: the cache
 * @key: of a line that is in the cache, so that its extent is in the table
 *
 * Two words change while lanes run; the host stores a longer table before its length.
 */
WEIR_FN WEIR_GLOBAL struct weir_extent *weir_extent_of(WEIR_GLOBAL struct weir_lines *lines, u64 key)
{
	/* acquire: the length before the table, whose entries never change */
	u32 low = 0, high = weir_load_u32_acquire_sys(&lines->extent_count);
	weir_addr table = weir_load_u64_relaxed_sys(&lines->extents);

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (weir_at(table, struct weir_extent, middle)->key_base <= key)
			low = middle;
		else
			high = middle;
	}
	return weir_at(table, struct weir_extent, low);
}

#endif
