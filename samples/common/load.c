/* SPDX-License-Identifier: BSD-3-Clause */
#include "load.h"

#include <string.h>

enum { DEFAULT_STRIPE_BYTES = 64 << 10, PIECE_BYTES = 8 << 20, MOST_BLOCK_BYTES = 4096 };

/** struct piece - bytes next to each other on one storage */
struct piece {
	struct weir_storage *storage;
	uint64_t offset; /* on it */
	uint64_t bytes;
};

/* The longest piece, up to PIECE_BYTES, from byte @at of the source's own storage space on. */
static struct piece piece_at(const struct sample_source *source, uint64_t at, uint64_t left)
{
	uint64_t stripe = source->stripe_bytes ? source->stripe_bytes : DEFAULT_STRIPE_BYTES;
	uint64_t unit = at / stripe, within = at % stripe;
	struct piece piece = { source->storages[0], at, left < PIECE_BYTES ? left : PIECE_BYTES };

	if (source->storage_count == 1)
		return piece;
	piece.storage = source->storages[unit % source->storage_count];
	piece.offset = unit / source->storage_count * stripe + within;
	if (piece.bytes > stripe - within)
		piece.bytes = stripe - within;
	return piece;
}

/* Where byte @byte of the source goes. */
static uint64_t place_of(const struct sample_source *source, uint64_t byte)
{
	return source->element_bytes ? byte / source->element_bytes * source->to_bytes : byte;
}

/* The parts that are wanted of whole elements. Return: where they are now. */
static const char *take_parts(const struct sample_source *source, const char *from, uint64_t bytes)
{
	static char parts[2 * PIECE_BYTES]; /* of 4 bytes 8 */

	if (!source->element_bytes)
		return from;
	for (uint64_t at = 0; at < bytes; at += source->element_bytes) {
		uint64_t value = 0;

		memcpy(&value, from + at + source->part_byte, 4);
		memcpy(parts + place_of(source, at), &value, source->to_bytes);
	}
	return parts;
}

/* Whole blocks around the piece, then the piece itself to the device. */
static int copy_piece(struct weir_context *context, const struct sample_source *source, struct piece piece,
		      uint64_t address)
{
	static char buffer[PIECE_BYTES + 2 * MOST_BLOCK_BYTES]; /* a sample has one thread */
	struct weir_storage_info info = { .size = sizeof(info) };
	int error = weir_storage_info(piece.storage, &info);
	uint64_t skip, bytes;

	if (error)
		return error;
	skip = piece.offset % info.block_bytes;
	bytes = (skip + piece.bytes + info.block_bytes - 1) / info.block_bytes * info.block_bytes;
	error = weir_storage_read(piece.storage, piece.offset - skip, buffer, bytes);
	return error ? error
		     : weir_copy_to_device(context, address, take_parts(source, buffer + skip, piece.bytes),
					   place_of(source, piece.bytes));
}

int sample_load(struct weir_context *context, const struct sample_source *source, uint64_t *address)
{
	int error = weir_alloc(context, place_of(source, source->bytes) + 1, address);

	for (uint64_t done = 0; done < source->bytes && !error;) {
		struct piece piece = piece_at(source, source->first_byte + done, source->bytes - done);

		error = copy_piece(context, source, piece, *address + place_of(source, done));
		done += piece.bytes;
	}
	return error;
}
