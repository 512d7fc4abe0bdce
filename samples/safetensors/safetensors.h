/* SPDX-License-Identifier: BSD-3-Clause */
/* safetensors.h: what the device makes of tensors: sums that depend on every byte and its place. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include <weir/abi.h>

#define SAFETENSORS_POISON 0xbadf00dbadf00d5u

/**
 * struct safetensors_offset - a tensor in device memory
 * @address: a multiple of 8; the last word is the tensor's as far as it reaches
 * @bytes: its length
 * @sum: of its words, those behind its end taken for 0
 */
struct safetensors_offset {
	weir_addr address;
	u64 bytes;
	weir_shared_u64 sum;
};

/**
 * struct safetensors_args - all tensors, or memory to poison
 * @indices: struct safetensors_offset[@count]
 * @memory: @words words of 8 bytes to poison
 */
struct safetensors_args {
	weir_addr indices;
	u64 count;
	weir_addr memory;
	u64 words;
};

/* What word @index adds to a sum; its last @bytes bytes are there, the rest is not looked at. */
WEIR_FN u64 safetensors_term(u64 word, u64 index, u64 bytes)
{
	u64 value = bytes >= 8 ? word : word & ((1ull << 8 * bytes) - 1);

	value = (value ^ (index + 1) * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
	value ^= value >> 29;
	return value * 0x94d049bb133111ebu;
}

#endif
