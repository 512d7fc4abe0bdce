#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A small NVMe/TCP controller whose misbehaviour is scripted: fabrics_peer.py [--blocks N] [FAULT...]

Prints "port N" once it listens on 127.0.0.1, then a line for each connection, command that it counts, and fault. It keeps its
blocks in memory, whose 8-byte words hold their own offset until they are written; a command's bytes are never sent before the
fault that is to spoil them. Independent of weir's own code, on purpose: layouts are written down here a second time.

A FAULT is KIND[:KEY=VALUE...]. It strikes commands of I/O queues, or the PDUs that answer them:
  skip=N    commands that pass before the first one struck (0)
  count=N   how many are struck (1)
Kinds: cut=BYTES (of the answer, then the connection is closed), silent (no answer, ever), twice (the response again),
stranger (a response to no command), type, hlen, plen, pdo, flags, datal, datao, range (that field of C2HData or the response is wrong),
hdgst, ddgst (a digest is wrong), flip (a bit of the data is, and the digest that of the right data), blank (the same in the first half, whose digest is 0; the other half is right), status=CODE, short (success without the last bytes), term (C2HTermReq), early (SUCCESS too early),
fatal (the controller fails: CSTS.CFS from now on, beside RDY, and no answer on any I/O queue), reset (RST), r2t-twice, r2t-range, r2t-more (the second one asks for more than is left), garbage=SEED (random bytes instead of the answer), mute (no answer on any connection from now on,
Keep Alive included), shuffle (answers in pairs, the later one first). flush=CODE strikes Flush alone, untaken[=BYTES] (success, and no
data, or no more than that was asked for) a write or Dataset Management.
A transfer beyond --mdts is refused. With --icdoff data of an I/O command does not begin where the command ends: it prints "inside" if it does.
With --events it has those of namespaces, and prints what a host asks for.
With --ana N it has ANA, and prints which part of the log a host reads; there the namespace's group is behind N others,
and its state is --ana-state. It prints how many R2Ts a host takes, and how many queues it asks for.
Of Keep Alive: --late-ms is how long its answer takes. With --crdt it has a retry delay, and prints what a host says that it knows.
Of the discovery log: --changes N, it is another one behind each of the first N reads of its header. It says that it has --records entries.
Of commands behind a connection that was lost: --again N prints "early" if another one comes before the first N of a queue are answered.
Of a restart: swap=NGUID (from this Connect to the admin queue on the namespace is another one).
Of connecting: unready (CSTS stays 0; --to is CAP.TO), refuse=STATUS (Connect of queue QID=queue fails), ic=FIELD (ICResp is wrong: type, pfv, dgst, maxh2c, short; or late), deaf (accepts, says nothing), leave (closes the admin queue's connection
instead of saying how many queues there are), hush (says nothing by that connection from then on, and leaves it open).
"""
import argparse
import random
import socket
import struct
import sys
import threading
import time

TABLE = []
for n in range(256):
    c = n
    for _ in range(8):
        c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
    TABLE.append(c)


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc = TABLE[(crc ^ b) & 255] ^ (crc >> 8)
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


class Gone(Exception):
    pass


class Fault:
    def __init__(self, text):
        kind, *rest = text.split(":")
        self.kind, _, self.value = kind.partition("=")
        keys = dict(part.split("=") for part in rest)
        self.skip, self.count = int(keys.get("skip", 0)), int(keys.get("count", 1))
        self.queue = int(keys.get("queue", -1))

    def strikes(self):
        if self.skip:
            self.skip -= 1
            return False
        if not self.count:
            return False
        self.count -= 1
        return True


class Peer:
    def __init__(self, args):
        self.args = args
        self.lock = threading.Lock()
        self.media = bytearray(args.blocks * args.block)
        for i in range(0, len(self.media), 8):
            struct.pack_into("<Q", self.media, i, i)
        self.faults = [Fault(text) for text in args.faults]
        self.cc = 0
        self.mute = False
        self.failed = False
        self.counts = {}
        self.connections = 0
        self.queues = set()
        self.generation = 1

    def say(self, *what):
        with self.lock:
            print(*what, flush=True)

    def count(self, name):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1

    def fault(self, *kinds, queue=None):
        with self.lock:
            for fault in self.faults:
                if fault.kind in kinds and (queue is None or fault.queue in (-1, queue)) and fault.strikes():
                    print("fault", fault.kind, flush=True)
                    return fault
        return None


class Connection:
    def __init__(self, peer, sock):
        self.peer, self.sock = peer, sock
        self.hdgst = self.ddgst = False
        self.qid = None
        self.held = None
        self.sqhd = 0
        self.again = 0

    def read(self, n):
        data = b""
        while len(data) < n:
            part = self.sock.recv(n - len(data))
            if not part:
                raise Gone()
            data += part
        return data

    def send(self, data):
        if not self.peer.mute:
            self.sock.sendall(data)

    def pdu(self, kind, flags, head, data=b"", **wrong):
        hlen = 8 + len(head)
        begin = hlen + (4 if self.hdgst else 0)
        pdo = begin if data else 0
        flags |= (1 if self.hdgst else 0) | (2 if data and self.ddgst else 0)
        plen = begin + len(data) + (4 if data and self.ddgst else 0)
        common = struct.pack("<BBBBI", wrong.get("type", kind), wrong.get("bits", flags), wrong.get("hlen", hlen),
                             wrong.get("pdo", pdo), wrong.get("plen", plen))
        out = common + head
        if self.hdgst:
            digest = crc32c(out)
            out += bytes([digest[0] ^ 1]) + digest[1:] if "hdgst" in wrong else digest
        out += bytes([data[0] ^ 1]) + data[1:] if data and ("flip" in wrong or "blank" in wrong) else data
        if data and self.ddgst:
            digest = bytes(4) if "blank" in wrong else crc32c(data)
            out += bytes([digest[0] ^ 1]) + digest[1:] if "ddgst" in wrong else digest
        return out

    def read_pdu(self):
        common = self.read(8)
        kind, flags, hlen, pdo, plen = struct.unpack("<BBBBI", common)
        head = self.read(hlen - 8)
        if flags & 1 and self.read(4) != crc32c(common + head):
            raise Gone()
        data = b""
        if pdo:
            if kind in (4, 6) and pdo % (4 * (self.peer.args.cpda + 1)):
                self.peer.say("unaligned", pdo)
                raise Gone()
            self.read(pdo - hlen - (4 if flags & 1 else 0))
            data = self.read(plen - pdo - (4 if flags & 2 else 0))
            if flags & 2 and self.read(4) != crc32c(data):
                raise Gone()
        return kind, flags, head, data

    def response(self, cid, status=0, dw0=0, dw1=0, **wrong):
        cqe = struct.pack("<IIHHHH", dw0, dw1, self.sqhd, self.qid or 0, cid, status << 1)
        return self.pdu(5, 0, cqe, **wrong)

    def begin(self):
        fault = self.peer.fault("deaf")
        if fault:
            time.sleep(3600)
        kind, _, head, _ = self.read_pdu()
        if kind != 0:
            raise Gone()
        dgst = head[3] & self.peer.args.digests
        self.peer.say("maxr2t", struct.unpack_from("<I", head, 4)[0])
        wrong = self.peer.fault("ic")
        field = wrong.value if wrong else ""
        time.sleep(0.3 if field == "late" else 0)
        icresp = struct.pack("<HBBI", 1 if field == "pfv" else 0, self.peer.args.cpda, dgst | (4 if field == "dgst" else 0),
                             100 if field == "maxh2c" else self.peer.args.maxh2c)
        out = self.pdu(5 if field == "type" else 1, 0, icresp + bytes(112))
        if field == "short":
            self.send(out[:50])
            raise Gone()
        self.send(out)
        self.hdgst, self.ddgst = bool(dgst & 1), bool(dgst & 2)

    def ask_more(self, cid, at, length):
        """More than is left: no data is to come of it."""
        self.send(self.pdu(9, 0, struct.pack("<HHIII", cid, 1, at, length, 0)))
        while True:
            kind, _, head, _ = self.read_pdu()
            if kind == 6 and struct.unpack("<HHIII", head)[2] >= at:
                self.peer.say("overrun")
                raise Gone()
            if kind not in (4, 6): # other commands, and what was asked for before
                raise Gone()

    def take_data(self, cid, length):
        """All of a command's data by R2Ts, several at a time."""
        data, asked, parts = bytearray(length), 0, []
        step = self.peer.args.r2t
        if self.peer.fault("r2t-range"):
            self.send(self.pdu(9, 0, struct.pack("<HHIII", cid, 1, 0, length + 4, 0)))
        while asked < length or parts:
            while asked < length and len(parts) < 4:
                part = min(step, length - asked)
                if asked and self.peer.fault("r2t-more"):
                    self.ask_more(cid, asked, length - asked + 4)
                self.send(self.pdu(9, 0, struct.pack("<HHIII", cid, len(parts) + 7, asked, part, 0)))
                if self.peer.fault("r2t-twice"):
                    self.send(self.pdu(9, 0, struct.pack("<HHIII", cid, len(parts) + 7, asked, part, 0)))
                parts.append([asked, part])
                asked += part
            kind, flags, head, payload = self.read_pdu()
            if kind == 4:
                self.late.append((head, payload))
                continue
            cccid, ttag, datao, datal, _ = struct.unpack("<HHIII", head)
            if kind != 6 or cccid != cid or datao != parts[0][0] or datal != len(payload) or datal > self.peer.args.maxh2c:
                raise Gone()
            data[datao:datao + datal] = payload
            parts[0][0] += datal
            parts[0][1] -= datal
            if bool(flags & 4) != (parts[0][1] == 0):
                raise Gone()
            if not parts[0][1]:
                parts.pop(0)
        return bytes(data)

    def answer_read(self, cid, data):
        peer, out, at = self.peer, b"", 0
        last = len(data)
        while at < last:
            part = data[at:at + peer.args.c2h]
            end = at + len(part) == last
            flags = (4 if end else 0) | (8 if end and peer.args.success else 0)
            out += self.pdu(7, flags, struct.pack("<HHIII", cid, 0, at, len(part), 0), part)
            at += len(part)
        return out + (b"" if peer.args.success else self.response(cid))

    def spoil(self, cid, data):
        """What answers a read that a fault strikes, or None."""
        peer = self.peer
        fault = peer.fault("cut", "silent", "twice", "stranger", "type", "hlen", "plen", "pdo", "flags", "datal", "datao", "range", "hdgst",
                           "ddgst", "flip", "blank", "status", "short", "term", "early", "reset", "garbage", "mute", "fatal")
        if not fault:
            return None
        kind, good, n = fault.kind, self.answer_read(cid, data), len(data)
        head = struct.pack("<HHIII", cid, 0, 0, n, 0)
        if kind == "cut":
            if peer.args.again: # once the next one has come, too
                self.sock.recv(1, socket.MSG_PEEK)
            self.send(good[:int(fault.value)])
            raise Gone()
        if kind == "reset":
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raise Gone()
        if kind == "mute":
            peer.mute = True
        if kind == "fatal":
            peer.failed = True
        if kind in ("silent", "mute", "fatal"):
            return b""
        if kind == "twice":
            return good + self.response(cid)
        if kind == "stranger":
            return good + self.response(cid ^ 0x4000)
        if kind in ("type", "hlen", "plen", "pdo", "flags"):
            field, bad = {"type": ("type", 8), "hlen": ("hlen", 25), "plen": ("plen", 20), "pdo": ("pdo", 22), "flags": ("bits", 0x80)}[kind]
            return self.pdu(7, 4, head, data, **{field: bad})
        if kind == "datal":
            return self.pdu(7, 4, struct.pack("<HHIII", cid, 0, 0, n - 1, 0), data)
        if kind == "datao":
            return self.pdu(7, 4, struct.pack("<HHIII", cid, 0, 512, n, 0), data)
        if kind == "range":
            return self.pdu(7, 4, struct.pack("<HHIII", cid, 0, 0, n + 512, 0), data + bytes(512))
        if kind in ("hdgst", "ddgst", "flip"):
            return self.pdu(7, 4, head, data, **{kind: 1}) + self.response(cid)
        if kind == "blank":
            first, last = (struct.pack("<HHIII", cid, 0, at, n // 2, 0) for at in (0, n // 2))
            return self.pdu(7, 0, first, data[:n // 2], blank=1) + self.pdu(7, 4, last, data[n // 2:]) + self.response(cid)
        if kind == "status":
            return self.response(cid, int(fault.value, 0))
        if kind == "short":
            return self.pdu(7, 4, struct.pack("<HHIII", cid, 0, 0, n - 256, 0), data[:-256]) + self.response(cid)
        if kind == "early":
            return self.pdu(7, 12, struct.pack("<HHIII", cid, 0, 0, n - 256, 0), data[:-256])
        if kind == "term":
            return struct.pack("<BBBBI", 3, 0, 24, 0, 24) + struct.pack("<HI", 1, 4) + bytes(10)
        return random.Random(int(fault.value or 1)).randbytes(4096)

    def io(self, sqe, inside):
        peer = self.peer
        opcode, cid = sqe[0], struct.unpack_from("<H", sqe, 2)[0]
        length, kind = struct.unpack_from("<I", sqe, 32)[0], sqe[39]
        lba, nlb = struct.unpack_from("<Q", sqe, 40)[0], struct.unpack_from("<H", sqe, 48)[0] + 1
        begin, end = lba * peer.args.block, (lba + nlb) * peer.args.block
        peer.count({0: "flush", 1: "write", 2: "read", 5: "compare", 8: "zeroes", 9: "dsm"}.get(opcode, "other"))
        if peer.failed:
            peer.say("unanswered")
            return b""
        if kind not in (0x01, 0x5A) or sqe[1] & 0xC0 != 0x40:
            return self.response(cid, 0x4002)
        if kind == 0x01 and peer.args.icdoff and opcode in (1, 5):
            peer.say("inside")
        if opcode in (1, 2, 5) and peer.args.mdts and length > 4096 << peer.args.mdts:
            return self.response(cid, 0x4002)
        if opcode == 0:
            fault = peer.fault("flush")
            return self.response(cid, int(fault.value, 0) if fault else 0)
        if opcode in (1, 2, 5, 8) and end > len(peer.media):
            return self.response(cid, 0x4080)
        if opcode == 2:
            data = bytes(peer.media[begin:end])
            if length != len(data):
                return self.response(cid, 0x400F)
            spoiled = self.spoil(cid, data)
            return self.answer_read(cid, data) if spoiled is None else spoiled
        untaken = peer.fault("untaken") if opcode in (1, 9) and kind == 0x5A else None
        if untaken:
            self.take_data(cid, int(untaken.value or 0))
            return self.response(cid)
        if opcode in (1, 5):
            data = inside if kind == 0x01 else self.take_data(cid, length)
            if len(data) != end - begin:
                return self.response(cid, 0x400F)
            if opcode == 5:
                return self.response(cid, 0 if data == peer.media[begin:end] else 0x285)
            fault = peer.fault("lost-write")
            peer.media[begin:end] = data
            if fault:
                raise Gone()
        elif opcode == 8:
            peer.media[begin:end] = bytes(end - begin)
        elif opcode == 9 and kind == 0x5A:
            self.take_data(cid, length)
        elif opcode != 9:
            return self.response(cid, 0x4001)
        return self.response(cid)

    def fabrics(self, sqe, data):
        peer, cid, kind = self.peer, struct.unpack_from("<H", sqe, 2)[0], sqe[4]
        if kind == 1:
            qid = struct.unpack_from("<H", sqe, 42)[0]
            cntlid = struct.unpack_from("<H", data, 16)[0]
            nqn = data[256:512].split(b"\0")[0].decode()
            host = data[512:768].split(b"\0")[0].decode()
            refuse = peer.fault("refuse", queue=qid)
            if refuse:
                return self.response(cid, int(refuse.value, 0))
            if nqn != peer.args.nqn:
                return self.response(cid, 0x4182, 0x10100)
            if peer.args.host and host != peer.args.host:
                return self.response(cid, 0x4184)
            if cntlid != (1 if qid else 0xFFFF):
                return self.response(cid, 0x4182, 0x10010)
            self.qid = qid
            if qid and qid in peer.queues:
                self.again = peer.args.again
            peer.queues.add(qid)
            if not qid:
                peer.cc = 0
                swap = peer.fault("swap")
                peer.args.nguid = int(swap.value) if swap else peer.args.nguid
            peer.say("connect", qid, host)
            return self.response(cid, 0, 1)
        offset = struct.unpack_from("<I", sqe, 44)[0]
        if kind == 4:
            value = {0: 1023 | 1 << 16 | peer.args.to << 24 | 1 << 37, 8: 0x10400, 0x14: peer.cc,
                     0x1C: 0 if any(fault.kind == "unready" for fault in peer.faults) else (peer.cc & 1) | (8 if peer.cc & 0xC000 else 0) | 2 * peer.failed}.get(offset, 0)
            return self.response(cid, 0, value & 0xFFFFFFFF, value >> 32)
        if kind == 0 and offset == 0x14:
            peer.cc = struct.unpack_from("<I", sqe, 48)[0]
            return self.response(cid)
        return self.response(cid, 0x4002)

    def identify(self, cns, nsid):
        args, out = self.peer.args, bytearray(4096)
        if cns == 1:
            out[4:24], out[24:64] = b"peer".ljust(20), b"scripted peer".ljust(40)
            out[76], out[77], out[525] = 8 if args.ana else 0, args.mdts, 1
            struct.pack_into("<H", out, 128, args.crdt)
            struct.pack_into("<H", out, 256, 0x100)
            struct.pack_into("<H", out, 320, 1)
            struct.pack_into("<H", out, 514, args.maxcmd)
            struct.pack_into("<I", out, 536, 1 | 1 << 20)
            struct.pack_into("<I", out, 92, 1 << 8 if args.events else 0)
            struct.pack_into("<IIH", out, 1792, (64 + args.inside) // 16, 1, args.icdoff)
        elif cns == 2 and args.namespaces:
            struct.pack_into("<I", out, 0, 1)
        elif cns == 0 and nsid == 1:
            struct.pack_into("<QQQ", out, 0, *[len(self.peer.media) // args.block] * 3)
            out[99] = args.protected
            out[104:120] = bytes([args.nguid]) * 16
            out[120:128] = bytes([args.eui]) * 8
            out[128 + 2] = args.block.bit_length() - 1
        elif cns == 3 and args.uuid:  # behind a descriptor of another type
            out[0:5] = bytes([4, 1, 0, 0, 0])
            out[5:25] = bytes([3, 16, 0, 0]) + bytes([args.uuid]) * 16
        return bytes(out)

    def discovery_log(self, at, n):
        """A header and an entry, whose name has the generation."""
        peer = self.peer
        entry = bytearray(1024)
        struct.pack_into("<BBB", entry, 0, 3, 1, 2)
        entry[32:64], entry[256:512] = b"4420".ljust(32), f"nqn.2026-11.test:g{peer.generation}".encode().ljust(256, b"\0")
        entry[512:768] = b"127.0.0.1".ljust(256)
        log = struct.pack("<QQH", peer.generation, peer.args.records, 0).ljust(1024, b"\0") + bytes(entry)
        if at == 0 and peer.args.changes:
            peer.args.changes -= 1
            peer.generation += 1
        return log[at:at + n]

    def ana_log(self, cid, at, n):
        """All groups are inaccessible, but that of namespace 1."""
        peer = self.peer
        peer.say("log", at, n)
        log = struct.pack("<QHHI", 1, peer.args.ana + 1, 0, 0)
        for group in range(peer.args.ana + 1):
            last = group == peer.args.ana
            log += struct.pack("<IIQB15xI", group + 1, 1, 1, peer.args.ana_state if last else 3, 1 if last else group + 2)
        if n > 4096 << peer.args.mdts or at >= len(log):
            return self.response(cid, 0x4002)
        data = log[at:at + n].ljust(n, b"\0")
        return self.pdu(7, 4, struct.pack("<HHIII", cid, 0, 0, n, 0), data) + self.response(cid)

    def admin(self, sqe, data):
        peer = self.peer
        opcode, cid = sqe[0], struct.unpack_from("<H", sqe, 2)[0]
        if opcode == 2 and sqe[40] == 0x0C and peer.args.ana:
            return self.ana_log(cid, struct.unpack_from("<Q", sqe, 48)[0], struct.unpack_from("<I", sqe, 32)[0])
        if opcode == 2 and sqe[40] == 0x70:
            data = self.discovery_log(struct.unpack_from("<Q", sqe, 48)[0], struct.unpack_from("<I", sqe, 32)[0])
            return self.pdu(7, 4, struct.pack("<HHIII", cid, 0, 0, len(data), 0), data) + self.response(cid)
        if opcode == 6 and sqe[40] == 3 and not peer.args.descriptors:
            return self.response(cid, 0x4002)
        if opcode == 6:
            data = self.identify(sqe[40], struct.unpack_from("<I", sqe, 4)[0])
            return self.pdu(7, 4, struct.pack("<HHIII", cid, 0, 0, 4096, 0), data) + self.response(cid)
        if opcode == 9 and sqe[40] == 7 and peer.fault("leave"):
            raise Gone()
        if opcode == 9 and sqe[40] == 7 and peer.fault("hush"):
            time.sleep(3600)
        if opcode == 9 and sqe[40] == 7:
            peer.say("asked", struct.unpack_from("<H", sqe, 44)[0])
            return self.response(cid, 0, min(struct.unpack_from("<H", sqe, 44)[0], peer.args.queues - 1) * 0x10001)
        if opcode == 9 and sqe[40] == 0x16:
            peer.say("behavior", len(data), data[0])
            return self.response(cid)
        if opcode == 9 and sqe[40] == 0x0B and peer.args.events:
            peer.say("events", struct.unpack_from("<I", sqe, 44)[0])
            return self.response(cid)
        if opcode == 0x0C and peer.args.events:
            return b""
        if opcode == 0x18:
            peer.count("alive")
            time.sleep(peer.args.late_ms / 1000)
            return self.response(cid)
        if opcode == 8:
            peer.count("abort")
            return self.response(cid, 0, 1)
        return self.response(cid, 0x4001)

    def command(self, sqe, data):
        self.sqhd = (self.sqhd + 1) & 0xFF
        if sqe[0] == 0x7F:
            return self.fabrics(sqe, data)
        return self.io(sqe, data) if self.qid else self.admin(sqe, data)

    def check_again(self, opcode):
        """The last of the commands that were sent again waits for its answer: nothing new comes before it."""
        if not self.qid or not self.again or opcode == 0x7F:
            return
        self.again -= 1
        if not self.again:
            self.sock.settimeout(0.5)
            try:
                self.peer.say("early" if self.sock.recv(1, socket.MSG_PEEK) else "gone")
            except TimeoutError:
                self.peer.say("in order")
            self.sock.settimeout(None)

    def run(self):
        self.late = []
        self.begin()
        while True:
            if self.late:
                head, data = self.late.pop(0)
            else:
                kind, _, head, data = self.read_pdu()
                if kind == 2:
                    self.peer.say("term", struct.unpack_from("<H", head, 0)[0])
                    raise Gone()
                if kind != 4:
                    raise Gone()
            out = self.command(head, data)
            self.check_again(head[0])
            if self.qid and self.peer.args.shuffle and self.held is None:
                self.held = out
                self.sock.settimeout(0.01)
                try:
                    self.sock.recv(1, socket.MSG_PEEK)
                except TimeoutError:
                    self.send(self.held)
                    self.held = None
                self.sock.settimeout(None)
                continue
            self.send(out)
            if self.held is not None:
                self.send(self.held)
                self.held = None


def serve(peer, sock, number):
    connection = Connection(peer, sock)
    try:
        connection.run()
    except (Gone, OSError):
        pass
    except Exception as error:  # the peer's own mistake, which a test looks for
        peer.say("broke", repr(error))
    peer.say("end", number, connection.qid)
    sock.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--blocks", type=int, default=4096)
    parser.add_argument("--block", type=int, default=512)
    parser.add_argument("--nguid", type=int, default=0)
    parser.add_argument("--eui", type=int, default=0)
    parser.add_argument("--uuid", type=int, default=0)
    parser.add_argument("--descriptors", type=int, default=1)
    parser.add_argument("--protected", type=int, default=0)
    parser.add_argument("--nqn", default="nqn.2026-11.test:peer")
    parser.add_argument("--host", default="")
    parser.add_argument("--digests", type=int, default=3)
    parser.add_argument("--maxh2c", type=int, default=4096)
    parser.add_argument("--c2h", type=int, default=1 << 20)
    parser.add_argument("--r2t", type=int, default=8192)
    parser.add_argument("--cpda", type=int, default=0)
    parser.add_argument("--inside", type=int, default=4096)
    parser.add_argument("--icdoff", type=int, default=0)
    parser.add_argument("--to", type=int, default=10)
    parser.add_argument("--changes", type=int, default=0)
    parser.add_argument("--again", type=int, default=0)
    parser.add_argument("--crdt", type=int, default=0)
    parser.add_argument("--late-ms", type=int, default=0)
    parser.add_argument("--maxcmd", type=int, default=0)
    parser.add_argument("--mdts", type=int, default=5)
    parser.add_argument("--ana", type=int, default=0)
    parser.add_argument("--ana-state", type=int, default=2)
    parser.add_argument("--records", type=int, default=1)
    parser.add_argument("--queues", type=int, default=64)
    parser.add_argument("--namespaces", type=int, default=1)
    parser.add_argument("--events", action="store_true")
    parser.add_argument("--success", action="store_true")
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("faults", nargs="*")
    peer = Peer(parser.parse_args())
    listener = socket.create_server(("127.0.0.1", peer.args.port), backlog=256)
    peer.say("port", listener.getsockname()[1])
    while True:
        sock, _ = listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.connections += 1
        threading.Thread(target=serve, args=(peer, sock, peer.connections), daemon=True).start()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
