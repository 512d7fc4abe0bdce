# SPDX-License-Identifier: BSD-3-Clause
"""Assembly that clang writes for AMD GPUs: its functions, instructions and loops."""
import re

LABEL = re.compile(r"^(\.LBB\d+_\d+):")
LOCATION = re.compile(r"^\s+\.loc\s.*;\s*(\S+):(\d+):\d+")
MEMORY = re.compile(r"^(global|flat|buffer|scratch|ds|s_waitcnt)\w*")


class Instruction:
    """An instruction: its text, and the (file, line) of the source that it came from, where there is debug information."""

    def __init__(self, text, place=None):
        self.text = re.sub(r"\s+", " ", text)
        self.place = place

    @property
    def name(self):
        return self.text.split(" ", 1)[0]

    @property
    def flags(self):
        """Cache bits, such as {"sc0", "sc1"}."""
        return set(self.text.split()) & {"glc", "slc", "dlc", "sc0", "sc1", "nt"}

    @property
    def offset(self):
        found = re.search(r"\boffset:(-?\d+)", self.text)
        return int(found.group(1)) if found else 0

    def is_memory(self):
        return bool(MEMORY.match(self.text))


def functions(text):
    """Of each function its blocks: a list of (label or None, instructions)."""
    found, blocks, place = {}, None, None
    for line in text.splitlines():
        start = re.match(r"^(\w+):\s*(;.*)?$", line)
        if start:
            blocks = found[start.group(1)] = [(None, [])]
        elif blocks is None:
            continue
        elif line.startswith(".Lfunc_end"):
            blocks = None
        elif LABEL.match(line):
            blocks.append((LABEL.match(line).group(1), []))
        elif LOCATION.match(line):
            where = LOCATION.match(line)
            place = (where.group(1).rsplit("/", 1)[-1], int(where.group(2)))
        else:
            code = line.split(";", 1)[0].strip()
            if code and not code.startswith(".") and not code.endswith(":"):
                blocks[-1][1].append(Instruction(code, place))
                if re.match(r"s_(c?branch|endpgm|setpc)", code):
                    blocks.append((None, []))
    return {name: blocks for name, blocks in found.items() if any(code for _, code in blocks)}


def edges(blocks):
    """Of each block, by number, those that may follow it."""
    labels = {label: number for number, (label, _) in enumerate(blocks) if label}
    after = []
    for number, (_, code) in enumerate(blocks):
        last = code[-1].text if code else ""
        branch = re.match(r"s_(c?)branch\w* (\.LBB\d+_\d+)", last)
        follows = {labels[branch.group(2)]} if branch else set()
        if not re.match(r"s_(branch|endpgm|setpc)", last) and number + 1 < len(blocks):
            follows.add(number + 1)
        after.append(follows)
    return after


def cycle_of(start, after, within):
    """The blocks of @within that @start reaches and that reach it, through @within; empty if it does not reach itself."""
    def reached(graph):
        seen, todo = set(), [start]
        while todo:
            for block in graph(todo.pop()):
                if block in within and block not in seen:
                    seen.add(block)
                    todo.append(block)
        return seen

    before = {block: [] for block in within}
    for block in within:
        for follower in after[block]:
            if follower in within:
                before[follower].append(block)
    return reached(lambda block: after[block]) & reached(lambda block: before[block])


def loops_of(start, after):
    """The loops around a block, as sets of blocks, from the outermost to the innermost."""
    found, within = [], set(range(len(after)))
    while start in within:
        cycle = cycle_of(start, after, within)
        if not cycle:
            break
        found.append(frozenset(cycle))
        # What is left without the places where the cycle is entered are the loops inside it.
        outside = set(range(len(after))) - cycle
        heads = {block for block in cycle if block == 0 or any(block in after[other] for other in outside)}
        within = cycle - heads
        if start in heads:
            break
    return found
