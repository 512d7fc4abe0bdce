/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tensors to storage and back. The data of a checkpoint is cut into pieces of a command each, wherever
 * tensors begin and end; a wave gathers a piece out of the tensors, or scatters it over them.
 */
#include "../common/span_walk.h"
#include "checkpoint.h"

WEIR_FN WEIR_GLOBAL struct checkpoint_tensor *checkpoint_tensor_at(WEIR_GLOBAL struct checkpoint_args *args,
								   u64 index)
{
	return weir_at(args->tensors, struct checkpoint_tensor, index);
}

/* The tensor that has byte @at of the data. */
WEIR_FN u64 checkpoint_find(WEIR_GLOBAL struct checkpoint_args *args, u64 at)
{
	u64 low = 0, high = args->count;

	while (high - low > 1) {
		u64 middle = (low + high) / 2;

		if (checkpoint_tensor_at(args, middle)->begin <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* @bytes from byte @at of the data on, between the tensors and @buffer. */
WEIR_FN void checkpoint_copy(WEIR_GLOBAL struct checkpoint_args *args, u64 at, u64 bytes, weir_addr buffer,
			     u32 scatter)
{
	u64 end = at + bytes;

	for (u64 i = checkpoint_find(args, at); at < end; i++) {
		WEIR_GLOBAL struct checkpoint_tensor *tensor = checkpoint_tensor_at(args, i);
		u64 left = tensor->begin + tensor->bytes - at, part = left < end - at ? left : end - at;
		weir_addr mine = tensor->address + (at - tensor->begin);

		for (u64 k = weir_lane() * (u64)CHECKPOINT_UNIT; k < part;
		     k += weir_lanes() * (u64)CHECKPOINT_UNIT) {
			if (scatter)
				weir_data_store_u128(mine + k, weir_data_load_u128(buffer + k));
			else
				weir_data_store_u128(buffer + k, weir_data_load_u128(mine + k));
		}
		at += part;
		buffer += part;
	}
}

/* A piece: to storage, or from there. */
WEIR_FN void checkpoint_move(u64 wave, WEIR_GLOBAL struct checkpoint_args *args, u64 at, u64 bytes, u32 load)
{
	weir_addr buffer = args->buffers + weir_wave() * args->span.piece_bytes;
	WEIR_GLOBAL struct weir_event *event = weir_at(args->events, struct weir_event, weir_thread());
	u64 block = (u64)1 << args->span.disk.block_log2, whole = (bytes + block - 1) / block * block;

	if (!load) {
		checkpoint_copy(args, at, bytes, buffer, 0);
		for (u64 i = bytes + weir_lane() * (u64)4; i < whole; i += weir_lanes() * (u64)4)
			weir_data_store_u32(buffer + i, 0);
	}
	weir_wave_sync(wave); /* all lanes' parts, before they are written */
	sample_span_move(&args->span, load ? (u32)NVME_OPCODE_READ : (u32)NVME_OPCODE_WRITE, args->at + at,
			 whole, buffer, event);
	weir_wave_sync(wave); /* what a lane has read is all lanes' */
	if (load)
		checkpoint_copy(args, at, bytes, buffer, 1);
	weir_wave_sync(wave); /* the buffer is free again */
}

WEIR_FN void checkpoint_run(WEIR_GLOBAL struct checkpoint_args *args, u32 load)
{
	u64 wave = weir_active(), piece = args->span.piece_bytes;

	if (weir_wave() >= args->waves)
		return;
	for (u64 at = weir_wave() * piece; at < args->bytes; at += args->waves * piece) {
		u64 bytes = args->bytes - at < piece ? args->bytes - at : piece;

		if (weir_ballot(wave, sample_span_failed(&args->span)))
			break; /* the host says why */
		if (args->plain)
			checkpoint_copy(args, at, bytes, args->plain + at, load);
		else
			checkpoint_move(wave, args, at, bytes, load);
	}
}

WEIR_KERNEL(checkpoint_save, struct checkpoint_args)
{
	checkpoint_run(args, 0);
}

WEIR_KERNEL(checkpoint_load, struct checkpoint_args)
{
	checkpoint_run(args, 1);
}

WEIR_FN u64 checkpoint_scramble(u64 value)
{
	value = (value + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
	value ^= value >> 29;
	value *= 0x94d049bb133111ebu;
	return value ^ (value >> 32);
}

/* Numbers from -0.5 up to 0.5, each by its place in the data. */
WEIR_KERNEL(checkpoint_fill, struct checkpoint_args)
{
	for (u64 i = 0; i < args->count; i++) {
		WEIR_GLOBAL struct checkpoint_tensor *tensor = checkpoint_tensor_at(args, i);

		for (u64 k = weir_thread(); k < tensor->bytes / sizeof(float); k += weir_threads()) {
			u64 random = checkpoint_scramble(args->seed + tensor->begin / sizeof(float) + k);

			*weir_at(tensor->address, float, k) =
				(float)(u32)(random >> 40) * (1.0f / 16777216) - 0.5f;
		}
	}
}

WEIR_KERNEL(checkpoint_sum, struct checkpoint_args)
{
	u64 sum = 0;

	for (u64 i = 0; i < args->count; i++) {
		WEIR_GLOBAL struct checkpoint_tensor *tensor = checkpoint_tensor_at(args, i);

		for (u64 k = weir_thread(); k < tensor->bytes / 8; k += weir_threads())
			sum += checkpoint_scramble(*weir_at(tensor->address, u64, k) ^
						   (tensor->begin / 8 + k) * 0xd6e8feb86659fd93u);
	}
	(void)weir_add_u64_relaxed_dev(weir_at(args->sum, weir_shared_u64, 0),
				       sum); /* read after the kernel */
}
