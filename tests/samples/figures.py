#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figures that a sample prints agree with one another, and with the result that it wrote.

usage: figures.py EXPRESSION [RESULT] <JSON    EXPRESSION: Python's, of the JSON f and of near(a, b); with RESULT, of the u32 it has, d
"""
import json
import math
import struct
import sys

f = json.load(sys.stdin)
d = []
if len(sys.argv) > 2:
    with open(sys.argv[2], "rb") as result:
        d = [word for (word,) in struct.iter_unpack("<I", result.read())]


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-9)


if not eval(f"({sys.argv[1]})", {"f": f, "d": d, "near": near, "NEVER": 0xFFFFFFFF}):  # pylint: disable=eval-used
    sys.exit(f"not so: {sys.argv[1]}: {json.dumps(f)}")
