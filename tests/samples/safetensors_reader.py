#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Another reader of what weir-checkpoint writes: safetensors_reader.py FILE FIRST-BYTE TENSORS

By the safetensors package where there is one, else by its format: every tensor is there, the data has no gaps, and begins at a whole
page. Each number is the one that the sample gives to this place at this step, with --seed 1.
"""
import json
import struct
import sys

MASK = (1 << 64) - 1


def scramble(value):
    value = (value + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9 & MASK
    value ^= value >> 29
    value = value * 0x94d049bb133111eb & MASK
    return value ^ value >> 32


def number(seed, place):
    return (scramble(seed + place & MASK) >> 40) / (1 << 24) - 0.5


def main():
    path, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    raw = open(path, "rb").read()[first:]
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    metadata = header.pop("__metadata__")
    tensors = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
    assert (8 + length) % 4096 == 0 and metadata["format"] == "pt" and len(tensors) == count, (length, metadata, len(tensors))
    data, end = raw[8 + length:], 0
    seed = scramble((0x10001 + int(metadata["step"])) & MASK)
    for name, tensor in tensors:
        begin, stop = tensor["data_offsets"]
        values = 1
        for side in tensor["shape"]:
            values *= side
        assert tensor["dtype"] == "F32" and begin == end and stop - begin == 4 * values, (name, tensor)
        for i, value in enumerate(struct.unpack(f"<{values}f", data[begin:stop])):
            assert value == number(seed, begin // 4 + i), (name, i, value)
        end = stop
    try:
        from safetensors import deserialize # pylint: disable=import-error
    except ImportError:
        print("# the package safetensors is not there")
    else:
        theirs = dict(deserialize(raw[:8 + length + end]))
        for name, tensor in tensors:
            begin, stop = tensor["data_offsets"]
            assert list(theirs[name]["shape"]) == tensor["shape"] and bytes(theirs[name]["data"]) == data[begin:stop], name


if __name__ == "__main__":
    main()
