#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Graphs in the GAP benchmark suite's layout, and what is right about them, from the layout's description alone.

.sg, .wsg: bool directed, i64 edges, i64 vertices, vertices + 1 i64 offsets, i32 neighbours (.wsg: pairs of i32
neighbour and i32 weight); a directed graph is followed by its inverse: offsets and neighbours again.
.el, .wel: a line "u v" or "u v weight" per edge.

  make KIND SEED OUT...     a random graph, KIND undirected or directed, into files by their extensions
  same A B                  two files hold the same graph
  bfs GRAPH SOURCE FILE     FILE holds a u32 per vertex: its depth, 2^32 - 1 where there is none
  cc GRAPH FILE             FILE holds a u32 per vertex: the lowest vertex of its weak component
  sssp GRAPH SOURCE FILE    FILE holds a u64 per vertex: its distance, 2^64 - 1 where there is none
  source GRAPH N            the N-th vertex that has edges

Searches print "reached N", components "components N". Exit status 1 with a sentence where something is wrong.
Shares no code with weir.
"""
import array
import collections
import heapq
import random
import struct
import sys

HEADER = "<?qq"


def fail(sentence):
    sys.exit("gapbs_check: " + sentence)


def take(code, data, at, count):
    values = array.array(code)
    values.frombytes(data[at:at + count * values.itemsize])
    if len(values) != count:
        fail("the file ends too early")
    if sys.byteorder == "big":
        values.byteswap()
    return values, at + count * values.itemsize


class Graph:
    """adjacent[v]: (neighbour, weight) in the file's order."""

    def __init__(self, vertices, directed, adjacent):
        self.vertices, self.directed, self.adjacent = vertices, directed, adjacent

    def edges(self):
        return sorted((u, v, w) for u, row in enumerate(self.adjacent) for v, w in row)

    def transposed(self):
        rows = [[] for _ in range(self.vertices)]
        for u, row in enumerate(self.adjacent):
            for v, w in row:
                rows[v].append((u, w))
        return rows


def read_rows(data, at, vertices, edges, weighted):
    offsets, at = take("q", data, at, vertices + 1)
    values, at = take("i", data, at, edges * (2 if weighted else 1))
    if offsets[0] != 0 or offsets[-1] != edges or any(a > b for a, b in zip(offsets, offsets[1:])):
        fail("the offsets do not ascend from 0 to the number of edges")
    pairs = list(zip(values[0::2], values[1::2])) if weighted else [(v, 1) for v in values]
    if any(not 0 <= v < vertices for v, _ in pairs):
        fail("a neighbour is no vertex")
    return [pairs[offsets[v]:offsets[v + 1]] for v in range(vertices)], at


def read_serialized(path):
    data = open(path, "rb").read()
    directed, edges, vertices = struct.unpack_from(HEADER, data)
    rows, at = read_rows(data, struct.calcsize(HEADER), vertices, edges, path.endswith(".wsg"))
    graph = Graph(vertices, directed, rows)
    if directed:
        inverse, at = read_rows(data, at, vertices, edges, path.endswith(".wsg"))
        if [sorted(row) for row in inverse] != [sorted(row) for row in graph.transposed()]:
            fail(path + ": the inverse graph is not the inverse")
    elif [sorted(row) for row in rows] != [sorted(row) for row in graph.transposed()]:
        fail(path + " says undirected, and not every edge is there both ways")
    if at != len(data):
        fail(path + " has bytes behind its end")
    return graph


def read_text(path):
    lines = [list(map(int, line.split())) for line in open(path) if line.strip() and line[0] not in "#%"]
    adjacent = [[] for _ in range(1 + max(max(line[:2]) for line in lines))]
    for line in lines:
        adjacent[line[0]].append((line[1], line[2] if len(line) > 2 else 1))
    return Graph(len(adjacent), True, adjacent)


def read(path):
    return read_serialized(path) if path.endswith("sg") else read_text(path)


def pack_rows(rows, weighted):
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    flat = [value for row in rows for pair in row for value in (pair if weighted else pair[:1])]
    return struct.pack("<%dq" % len(offsets), *offsets) + struct.pack("<%di" % len(flat), *flat)


def write(graph, path):
    weighted = path.endswith(("wsg", "wel"))
    if path.endswith("el"):
        with open(path, "w") as file:
            for u, v, w in graph.edges():
                file.write(f"{u} {v} {w}\n" if weighted else f"{u} {v}\n")
        return
    edges = sum(map(len, graph.adjacent))
    data = struct.pack(HEADER, graph.directed, edges, graph.vertices) + pack_rows(graph.adjacent, weighted)
    if graph.directed:
        data += pack_rows([sorted(row) for row in graph.transposed()], weighted)
    open(path, "wb").write(data)


def make(kind, seed, paths):
    """Several components, hubs, chains; the last vertex has an edge, so that text says how many there are."""
    rng = random.Random(int(seed))
    vertices, found = 3000, {}
    pairs = [(rng.randrange(1000), int(1000 * rng.random() ** 3)) for _ in range(6000)]
    pairs += [(v, v + 1) for v in range(1200, 1900)]
    pairs += [(2000 + rng.randrange(900), 2000 + rng.randrange(900)) for _ in range(700)] + [(2990, vertices - 1)]
    for u, v in pairs:
        if u != v:
            weight = rng.randint(1, 255)
            found.setdefault((u, v), weight)
            if kind == "undirected":
                found[(v, u)] = found[(u, v)] = min(found[(u, v)], found.get((v, u), weight))
    adjacent = [[] for _ in range(vertices)]
    for (u, v), weight in sorted(found.items()):
        adjacent[u].append((v, weight))
    for path in paths:
        write(Graph(vertices, kind == "directed", adjacent), path)


def same(a, b):
    first, second = read(a), read(b)
    if first.vertices != second.vertices:
        fail(f"{a} has {first.vertices} vertices, {b} {second.vertices}")
    if first.edges() != second.edges():
        fail(f"{a} and {b} have different edges")


def compare(found_path, code, expected, what):
    none = (1 << (8 * array.array(code).itemsize)) - 1
    data = open(found_path, "rb").read()
    found, at = take(code, data, 0, len(expected))
    if at != len(data):
        fail(f"{found_path} has more than a value for each vertex")
    for vertex, (is_there, should) in enumerate(zip(found, expected)):
        if is_there != (none if should is None else should):
            fail(f"vertex {vertex} has {what} {is_there}, and it is {should}")


def bfs(path, source, found):
    graph, depths = read(path), {int(source): 0}
    queue = collections.deque(depths)
    while queue:
        vertex = queue.popleft()
        for neighbour, _ in graph.adjacent[vertex]:
            if neighbour not in depths:
                depths[neighbour] = depths[vertex] + 1
                queue.append(neighbour)
    compare(found, "I", [depths.get(v) for v in range(graph.vertices)], "depth")
    print("reached", len(depths))


def cc(path, found):
    graph = read(path)
    back, label, components = graph.transposed(), [None] * graph.vertices, 0
    for vertex in range(graph.vertices):
        if label[vertex] is not None:
            continue
        components += 1
        label[vertex], stack = vertex, [vertex]
        while stack:
            at = stack.pop()
            for neighbour, _ in graph.adjacent[at] + back[at]:
                if label[neighbour] is None:
                    label[neighbour] = vertex
                    stack.append(neighbour)
    compare(found, "I", label, "label")
    print("components", components)


def sssp(path, source, found):
    graph, distance, heap = read(path), {}, [(0, int(source))]
    while heap:
        length, vertex = heapq.heappop(heap)
        if vertex in distance:
            continue
        distance[vertex] = length
        for neighbour, weight in graph.adjacent[vertex]:
            if neighbour not in distance:
                heapq.heappush(heap, (length + weight, neighbour))
    compare(found, "Q", [distance.get(v) for v in range(graph.vertices)], "distance")
    print("reached", len(distance))


def source(path, number):
    graph = read(path)
    print([v for v, row in enumerate(graph.adjacent) if row][int(number)])


def main(arguments):
    commands = {"same": same, "bfs": bfs, "cc": cc, "sssp": sssp, "source": source,
                "make": lambda kind, seed, *paths: make(kind, seed, paths)}
    if not arguments or arguments[0] not in commands:
        sys.exit(__doc__)
    commands[arguments[0]](*arguments[1:])


main(sys.argv[1:])
