# SPDX-License-Identifier: BSD-3-Clause
"""weir.Dataset: training samples by mini-batch from storages, over libweir-dataset.

    with weir.Dataset("file:/data/train.tar") as data:
        for batch in data.epoch(seed=1, epoch=0, batch=256):
            step(batch.rows, batch.labels)          # numpy arrays over the batch's own memory
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy

from . import _library as c
from ._library import WeirError

__all__ = ["Batch", "Dataset", "WeirError", "index", "upload"]
ORDERS = {"shuffled-chunk": 0, "chunk": 1, "full": 2}
NO_LABEL = 2**32 - 1


def _array(address: int, count: int, kind: type) -> numpy.ndarray:
    pointer = ctypes.cast(address, ctypes.POINTER(kind))
    return numpy.ctypeslib.as_array(pointer, shape=(count,))


@dataclass
class Batch:
    """A mini-batch. The arrays are the library's memory: they hold until the next batch is asked for; copy what is to stay."""

    rows: numpy.ndarray
    """uint8[count, row_bytes]; behind a sample its row has zeros, which later batches have from there: do not write to them"""
    lengths: numpy.ndarray
    labels: numpy.ndarray
    samples: numpy.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> bytes:
        return self.rows[row, : min(int(self.lengths[row]), self.rows.shape[1])].tobytes()

    def __dlpack__(self, **options: object) -> object:
        return self.rows.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.rows.__dlpack_device__()


class _Storages:
    """A context and its open storages."""

    def __init__(self, uris: Sequence[str], context: str) -> None:
        self.context = ctypes.c_void_p()
        c.check(c.context_open(context.encode(), None, ctypes.byref(self.context)))
        self.handles = (ctypes.c_void_p * len(uris))()
        try:
            for i, uri in enumerate(uris):
                handle = ctypes.c_void_p()
                c.check(c.storage_open(self.context, os.fsencode(uri), None, ctypes.byref(handle)))
                self.handles[i] = handle.value
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self.context:
            context, self.context = self.context, ctypes.c_void_p()
            c.check(c.context_close(context))


def _list(uris: str | Sequence[str | None]) -> list[str | None]:
    return [uris] if isinstance(uris, str) else list(uris)


def _number(name: str, value: int, bits: int) -> int:
    """@value as an unsigned integer of so many bits, of which ctypes would silently keep the lowest."""
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{name} is {value}; it is from 0 to {(1 << bits) - 1}")
    return value


def manifest_of(uri: str) -> str | None:
    """PATH.weir for file:PATH, where there is such a file; else None: the manifest is in the storage."""
    path = uri[5:].split("?")[0] + ".weir" if uri.startswith("file:") else None
    return path if path and os.path.exists(path) else None


def index(uri: str, manifest: str | None = None, format: str = "auto", checks: bool = False, context: str = "cpu") -> str:
    """Index the data that lies in a storage; returns the path of the manifest."""
    if manifest is None and not uri.startswith("file:"):
        raise ValueError(f"{uri}: name a manifest; only file: has a place for it by itself")
    path = manifest or uri[5:].split("?")[0] + ".weir"
    storages = _Storages([uri], context)
    try:
        c.check(c.index(storages.handles[0], os.fsencode(path), c.IndexOptions(format=format.encode(), checks=checks)))
    finally:
        storages.close()
    return path


def upload(uris: str | Sequence[str], source: str, format: str = "auto", context: str = "cpu") -> None:
    """Copy the samples of a folder or file to storages."""
    storages = _Storages(_list(uris), context)
    try:
        c.check(c.upload(storages.handles, len(storages.handles), os.fsencode(source), c.IndexOptions(format=format.encode())))
    finally:
        storages.close()


class Dataset:
    """A mounted dataset. `data[i]` and `data.__getitems__([i, ...])` give (bytes, label), as torch.utils.data.DataLoader asks for."""

    def __init__(self, uris: str | Sequence[str], *, manifests: str | Sequence[str | None] | None = None, context: str = "cpu",
                 chunk_bytes: int = 0, cache_bytes: int = 0, row_bytes: int = 0, batches: int = 0) -> None:
        names = _list(manifests) if manifests is not None else None
        self._arguments = dict(uris=_list(uris), manifests=names, context=context, chunk_bytes=_number("chunk_bytes", chunk_bytes, 32),
                               cache_bytes=_number("cache_bytes", cache_bytes, 64), row_bytes=_number("row_bytes", row_bytes, 32),
                               batches=_number("batches", batches, 32))
        if names and len(names) != len(self._arguments["uris"]):
            raise ValueError(f"{len(names)} manifests of {len(self._arguments['uris'])} storages; give one of each, or None for it")
        self._handle = ctypes.c_void_p()
        self._open()

    def _open(self) -> None:
        a = self._arguments
        names = a["manifests"] or [manifest_of(uri) for uri in a["uris"]]
        manifests = (ctypes.c_char_p * len(names))(*[os.fsencode(n) if n else None for n in names])
        self._storages = _Storages(a["uris"], a["context"])
        self._process = os.getpid()
        options = c.MountOptions(manifests=manifests, chunk_bytes=a["chunk_bytes"], cache_bytes=a["cache_bytes"],
                                 row_bytes=a["row_bytes"], batches=a["batches"])
        try:
            c.check(c.mount(self._storages.context, self._storages.handles, len(names), options, ctypes.byref(self._handle)))
        except BaseException:
            self._storages.close()
            raise
        self.info = c.Info()
        c.check(c.info(self._handle, self.info))

    def _mounted(self) -> ctypes.c_void_p:
        """The handle; a process that was forked (a worker of torch's DataLoader) mounts anew: it has none of the parent's threads."""
        if self._handle and self._process != os.getpid():
            self._handle = ctypes.c_void_p()
            self._open()
        if not self._handle:
            raise ValueError("the dataset is closed")
        return self._handle

    def __getstate__(self) -> dict:
        return dict(self._arguments)

    def __setstate__(self, state: dict) -> None:
        self.__init__(state.pop("uris"), **state)

    def close(self) -> None:
        """Unmount."""
        if self._handle and self._process == os.getpid():
            handle, self._handle = self._handle, ctypes.c_void_p()
            try:
                c.check(c.unmount(handle))
            finally:
                self._storages.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __len__(self) -> int:
        return self.info.samples

    def find(self, name: str) -> int:
        """Number of the sample with this name; KeyError."""
        number = ctypes.c_uint64()
        result = c.find(self._mounted(), name.encode(errors="surrogateescape"), ctypes.byref(number))
        if result == c.NOT_FOUND:
            raise KeyError(name)
        c.check(result)
        return number.value

    def name(self, number: int) -> str:
        """Name of a sample."""
        text = ctypes.create_string_buffer(4096)
        c.check(c.name_of(self._mounted(), _number("number", number, 64), text, len(text)))
        return text.value.decode(errors="surrogateescape")

    def __getitem__(self, key: int | str) -> tuple[bytes, int]:
        number = self.find(key) if isinstance(key, str) else key
        if not 0 <= number < len(self):
            raise IndexError(number)
        about = c.Sample()
        c.check(c.sample(self._mounted(), number, about))
        data = ctypes.create_string_buffer(about.length or 1)
        c.check(c.read(self._mounted(), number, 0, data, about.length))
        return data.raw[: about.length], -1 if about.label == NO_LABEL else about.label

    def __getitems__(self, numbers: Sequence[int]) -> list[tuple[bytes, int]]:
        return [self[number] for number in numbers]

    def epoch(self, *, seed: int = 0, epoch: int = 0, batch: int = 256, order: str = "shuffled-chunk", buffer_chunks: int = 0,
              rank: int = 0, ranks: int = 1) -> Iterator[Batch]:
        """The mini-batches of an epoch; with `ranks`, this rank's share of it (each sample once over all ranks)."""
        if order not in ORDERS:
            raise ValueError(f"there is no order {order!r}; the orders are {', '.join(ORDERS)}")
        if not 0 <= rank < ranks:
            raise ValueError(f"rank {rank} of {ranks}")
        _number("batch", batch, 32)
        options = c.SequenceOptions(seed=_number("seed", seed, 64), epoch=_number("epoch", epoch, 64), order=ORDERS[order],
                                    buffer_chunks=_number("buffer_chunks", buffer_chunks, 32))
        c.check(c.sequence(self._mounted(), options))
        if ranks > 1:
            each, more = divmod(len(self), ranks)
            begin = rank * each + min(rank, more)
            end = begin + each + (rank < more)
            head = self.position().rsplit("left=", 1)[0]
            self._resume(f"{head}left={begin}-{end}" if end > begin else f"{head}left=")
        return self._batches(batch)

    def _batches(self, count: int) -> Iterator[Batch]:
        batch = c.BatchStruct()
        while True:
            c.check(c.bread(self._mounted(), count, batch))
            if not batch.count:
                return
            rows = _array(batch.host_rows, batch.count * batch.row_bytes, ctypes.c_uint8).reshape(batch.count, batch.row_bytes)
            yield Batch(rows, _array(batch.host_lengths, batch.count, ctypes.c_uint32),
                        _array(batch.host_labels, batch.count, ctypes.c_uint32),
                        _array(batch.samples, batch.count, ctypes.c_uint64))

    def position(self) -> str:
        """Where the epoch is, for resume()."""
        text = ctypes.create_string_buffer(1 << 16)
        c.check(c.position(self._mounted(), text, len(text)))
        return text.value.decode()

    def _resume(self, position: str) -> None:
        c.check(c.resume(self._mounted(), position.encode()))

    def resume(self, position: str, *, batch: int = 256) -> Iterator[Batch]:
        """The rest of an epoch."""
        _number("batch", batch, 32)
        self._resume(position)
        return self._batches(batch)
