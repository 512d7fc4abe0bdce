#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mini-batches of the same samples through weir and through what Python programs use instead; run by hand or by ci/dataset-figures.

  dataset_peers.py prepare FOLDER                    FOLDER/files/CLASS/NAME -> tar shards in FOLDER/wds, MDS shards in FOLDER/mds
  dataset_peers.py bench FOLDER URI... [options]     a JSON object on each line; URI: where the same files were uploaded
  dataset_peers.py check FOLDER URI... [options]     an epoch of each peer has each sample, with its bytes

Each peer gives batches of uint8[batch, bytes] and labels, without decoding. Peers take turns; a run is a process of its own, with the
page cache dropped before each epoch. It counts from the batch after the first ones (so the start of workers is not in it) to the end of
the epoch, and as many epochs as --seconds has room for. cores is the processor time of the process and its workers. What is not installed is skipped with a line that says why.
"""
from __future__ import annotations

import argparse
import glob
import io
import json
import os
import random
import statistics
import sys
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator

import numpy

SHARDS = 8
LONGEST = 2  # times --seconds, that a run with its starts may take
SAMPLED = 0.05  # seconds from one look at the processor time to the next
SHUFFLED_BYTES = 8 << 20  # of a shuffle buffer: weir's has 32 chunks of 256 KiB


class Missing(Exception):
    """A peer that cannot be had here."""


# ---- the samples ----

def list_files(folder: str) -> list[str]:
    return sorted(glob.glob(f"{glob.escape(folder)}/files/*/*"))


def label_of(path: str) -> int:
    return int(os.path.basename(os.path.dirname(path)))


def content_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write_tar(folder: str, files: list[str]) -> None:
    """Shards as WebDataset has them: KEY.bin and KEY.cls."""
    os.makedirs(f"{folder}/wds", exist_ok=True)
    for shard in range(SHARDS):
        with tarfile.open(f"{folder}/wds/{shard:03}.tar", "w", format=tarfile.USTAR_FORMAT) as out:
            for number in range(shard, len(files), SHARDS):
                for kind, content in ("bin", content_of(files[number])), ("cls", str(label_of(files[number])).encode()):
                    member = tarfile.TarInfo(f"{number:09}.{kind}")
                    member.size = len(content)
                    out.addfile(member, io.BytesIO(content))


def write_mds(folder: str, files: list[str]) -> None:
    from streaming import MDSWriter

    total = sum(os.path.getsize(path) for path in files)
    with MDSWriter(out=f"{folder}/mds", columns={"x": "bytes", "y": "int"}, size_limit=total // SHARDS + (64 << 10),
                   exist_ok=True) as out:
        for path in files:
            out.write({"x": content_of(path), "y": label_of(path)})


def prepare(folder: str) -> None:
    files = list_files(folder)
    random.Random(1).shuffle(files)  # shards are made of shuffled samples: so their users are advised
    write_tar(folder, files)
    try:
        write_mds(folder, files)
    except ImportError as error:
        print(f"no MDS shards: {error}", file=sys.stderr)


# ---- the peers: each a generator of (rows, labels) ----

def stack(samples: list[tuple[bytes, int]]) -> tuple[numpy.ndarray, numpy.ndarray]:
    return numpy.stack([numpy.frombuffer(s[0], numpy.uint8) for s in samples]), numpy.array([int(s[1]) for s in samples])


def stack_tensors(samples: list[tuple[bytes, int]]) -> tuple:
    import torch

    rows, labels = stack(samples)
    return torch.from_numpy(rows), torch.from_numpy(labels)


def stack_columns(samples: list[dict]) -> tuple:
    return stack_tensors([(s["x"], s["y"]) for s in samples])


def weir_dataset(given: argparse.Namespace):  # noqa: ANN201
    import weir

    return weir.Dataset(given.uris, cache_bytes=given.cache)


def by_weir(given: argparse.Namespace) -> Iterator:
    with weir_dataset(given) as data:
        for batch in data.epoch(seed=given.seed, batch=given.batch):
            yield batch.rows, batch.labels


def by_weir_torch(given: argparse.Namespace, workers: int = 0) -> Iterator:
    from torch.utils.data import DataLoader

    from weir.torch import Batches

    with weir_dataset(given) as data:
        for rows, _, labels in DataLoader(Batches(data, batch=given.batch, seed=given.seed), batch_size=None, num_workers=workers,
                                          multiprocessing_context="spawn" if workers else None):
            yield rows, labels


def by_weir_torch_workers(given: argparse.Namespace) -> Iterator:
    return by_weir_torch(given, given.workers)


class Files:
    """A map-style dataset of torch: a file for each sample."""

    def __init__(self, files: list[str]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, number: int) -> tuple:
        import torch

        return torch.frombuffer(bytearray(content_of(self.files[number])), dtype=torch.uint8), label_of(self.files[number])


def by_torch_files(given: argparse.Namespace) -> Iterator:
    import torch
    from torch.utils.data import DataLoader

    yield from DataLoader(Files(list_files(given.folder)), batch_size=given.batch, shuffle=True, num_workers=given.workers,
                          generator=torch.Generator().manual_seed(given.seed))


def by_webdataset(given: argparse.Namespace) -> Iterator:
    import torch  # noqa: F401
    import webdataset
    from torch.utils.data import DataLoader

    shards = sorted(glob.glob(f"{glob.escape(given.folder)}/wds/*.tar"))
    samples = max(16, SHUFFLED_BYTES // given.bytes)
    pipeline = webdataset.DataPipeline(
        webdataset.SimpleShardList(shards), webdataset.split_by_worker, webdataset.shuffle(len(shards)),
        webdataset.tarfile_to_samples(), webdataset.shuffle(samples), webdataset.to_tuple("bin", "cls"),
        webdataset.batched(given.batch, collation_fn=stack_tensors))
    yield from DataLoader(pipeline, batch_size=None, num_workers=given.workers)


def by_mds(given: argparse.Namespace) -> Iterator:
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory
    from torch.utils.data import DataLoader

    clean_stale_shared_memory()  # of the run before
    if not os.path.isdir(f"{given.folder}/mds"):
        raise Missing("its shards were not made")
    data = StreamingDataset(local=f"{given.folder}/mds", shuffle=True, shuffle_seed=given.seed, batch_size=given.batch)
    yield from DataLoader(data, batch_size=given.batch, num_workers=given.workers, collate_fn=stack_columns)


def by_ffcv(given: argparse.Namespace) -> Iterator:
    import ffcv  # noqa: F401

    raise Missing("installed, but nobody has written how it reads these samples")


PEERS: dict[str, Callable] = {
    "weir.Dataset": by_weir,
    "DataLoader, weir.torch.Batches": by_weir_torch,
    "DataLoader, weir.torch.Batches, workers": by_weir_torch_workers,
    "DataLoader, files": by_torch_files,
    "WebDataset": by_webdataset,
    "MosaicML streaming": by_mds,
    "FFCV": by_ffcv,
}


# ---- measuring ----

def drop_caches() -> bool:
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3")
    except OSError:
        return False
    return True


def processor_seconds(process: int) -> float:
    """Of a process and all below it, also those that have ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children", encoding="ascii") as file:
                total += sum(processor_seconds(int(child)) for child in file.read().split())
    except OSError:  # it has ended
        return 0
    return total


class Count:
    """What was counted: samples and seconds; processor time, and the seconds that it is known for."""

    def __init__(self) -> None:
        self.samples = self.epochs = 0
        self.seconds = self.processor = self.known = 0.0

    def epoch(self, given: argparse.Namespace, batches: Iterator) -> None:
        """An epoch behind its first batches, or as much of it as there is time for."""
        before, first = self.samples, 1 + given.workers
        begin = last = processor = 0.0
        for number, (rows, _) in enumerate(batches):
            if number < first:
                if rows.shape[1] != given.bytes or "uint8" not in str(rows.dtype):
                    raise ValueError(f"batch of {rows.dtype}[{len(rows)}, {rows.shape[1]}]")
                begin, processor = time.monotonic(), processor_seconds(os.getpid())
                last, spent, known = begin, 0.0, 0.0
                continue
            self.samples += len(rows)
            now = time.monotonic()
            if now - last >= SAMPLED:
                last, spent, known = now, processor_seconds(os.getpid()) - processor, now - begin
            if self.seconds + now - begin >= given.seconds:
                break
        if self.samples == before:
            raise ValueError(f"the epoch has fewer than {first + 1} batches")
        self.epochs, self.seconds = self.epochs + 1, self.seconds + now - begin
        self.processor, self.known = self.processor + spent, self.known + known


def run(given: argparse.Namespace, peer: Callable) -> dict:
    """One run, in this process: epochs, each with cold caches, until they have taken so long."""
    end, cold, count = time.monotonic() + LONGEST * given.seconds, given.drop, Count()
    while count.seconds < given.seconds and (not count.epochs or time.monotonic() < end):
        cold = cold and drop_caches()
        count.epoch(given, peer(given))
        given.seed += 1
    rate = count.samples / count.seconds
    return {"samples_per_s": round(rate), "bytes_per_s": round(rate * given.bytes), "seconds": round(count.seconds, 3),
            "cores": round(count.processor / count.known, 2) if count.known else None, "samples": count.samples,
            "epochs": count.epochs, "cold": cold}


def check(given: argparse.Namespace, peer: Callable) -> dict:
    """A whole epoch has each sample with its bytes; a peer may repeat some, so that its workers get as many each."""
    seen = [zlib.crc32(numpy.asarray(row).tobytes()) for rows, _ in peer(given) for row in rows]
    want = {zlib.crc32(content_of(path)) for path in list_files(given.folder)}
    if set(seen) != want:
        raise ValueError(f"{len(set(seen) - want)} samples that there are not, {len(want - set(seen))} that are missing")
    return {"samples": len(want), "repeated": len(seen) - len(want)}


def apart(work: Callable, *arguments: object) -> dict:
    """@work's result, from a process of its own; {"skipped": why} or {"failed": why}."""
    sys.stdout.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = work(*arguments)
        except (Missing, ImportError) as error:
            result = {"skipped": str(error)}
        except Exception as error:  # noqa: BLE001
            result = {"failed": f"{type(error).__name__}: {error}"}
        os.write(writer, json.dumps(result).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"failed": "its process ended"}


def imports() -> None:
    """Once, and not in each run."""
    for name in "torch", "webdataset", "streaming":
        try:
            __import__(name)
        except ImportError:
            pass


def summary(name: str, runs: list[dict]) -> dict:
    bad = next((r for r in runs if "skipped" in r or "failed" in r), None)
    if bad:
        return {"what": name, **bad}
    middle = {key: statistics.median_low(r[key] for r in runs) for key in ("samples_per_s", "bytes_per_s")}
    cores = [r["cores"] for r in runs if r["cores"] is not None]
    return {"what": name, **middle, "cores": statistics.median_low(cores) if cores else None, "runs": runs}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=["prepare", "bench", "check"])
    parser.add_argument("folder")
    parser.add_argument("uris", nargs="*")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--cache", type=int, default=16 << 20, help="of weir, bytes")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--workers", type=int, default=2, help="of the DataLoaders")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peer", action="append", choices=list(PEERS), help="these alone")
    parser.add_argument("--no-drop", dest="drop", action="store_false", help="leave the page cache as it is")
    given = parser.parse_args()
    if given.work == "prepare":
        prepare(given.folder)
        return 0
    given.bytes = os.path.getsize(list_files(given.folder)[0])
    imports()
    peers = given.peer or list(PEERS)
    rounds = given.runs if given.work == "bench" else 1
    runs: dict[str, list[dict]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name in peers:
            if not any("skipped" in r or "failed" in r for r in runs[name]):
                runs[name].append(apart(run if given.work == "bench" else check, given, PEERS[name]))
        given.seed += 1
    for name in peers:
        print(json.dumps(summary(name, runs[name]) if given.work == "bench" else {"what": name, **runs[name][0]}), flush=True)
    return 1 if given.work == "check" and any("failed" in rs[0] for rs in runs.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
