# SPDX-License-Identifier: BSD-3-Clause
"""The C library, by ctypes: structures of <weir/weir.h> and <weir/dataset.h>, and calls that raise what failed."""
from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_ssize_t, c_uint32, c_uint64, c_void_p


class WeirError(OSError):
    """What a call of the library says of its failure."""


class _Sized(ctypes.Structure):
    def __init__(self, **fields: object) -> None:
        super().__init__(**fields)
        self.size = ctypes.sizeof(self)


class IndexOptions(_Sized):
    _fields_ = [("size", c_size_t), ("format", c_char_p), ("checks", c_uint32), ("progress", c_void_p), ("user", c_void_p)]


class MountOptions(_Sized):
    _fields_ = [("size", c_size_t), ("communicator", c_void_p), ("manifests", POINTER(c_char_p)), ("chunk_bytes", c_uint32),
                ("cache_bytes", c_uint64), ("row_bytes", c_uint32), ("batches", c_uint32), ("device", c_uint32),
                ("lookup", c_uint32), ("no_labels", c_uint32)]


class SequenceOptions(_Sized):
    _fields_ = [("size", c_size_t), ("seed", c_uint64), ("epoch", c_uint64), ("order", c_uint32), ("buffer_chunks", c_uint32)]


class Info(_Sized):
    _fields_ = [("size", c_size_t), ("samples", c_uint64), ("bytes", c_uint64), ("longest_bytes", c_uint32),
                ("shortest_bytes", c_uint32), ("chunks", c_uint64), ("labels", c_uint32), ("storages", c_uint32),
                ("chunk_bytes", c_uint32), ("row_bytes", c_uint32), ("directory_bytes", c_uint64), ("cache_bytes", c_uint64),
                ("mount_us", c_uint64)]


class Sample(_Sized):
    _fields_ = [("size", c_size_t), ("storage", c_uint32), ("label", c_uint32), ("length", c_uint32), ("offset", c_uint64)]


class BatchStruct(_Sized):
    _fields_ = [("size", c_size_t), ("count", c_uint32), ("row_bytes", c_uint32), ("rows", c_uint64), ("lengths", c_uint64),
                ("labels", c_uint64), ("host_rows", c_void_p), ("host_lengths", c_void_p), ("host_labels", c_void_p),
                ("samples", c_void_p), ("slot", c_uint32)]


class ContextOptions(_Sized):
    _fields_ = [("size", c_size_t), ("workers", c_uint32), ("wave_lanes", c_uint32), ("resident_lanes", c_uint32),
                ("stack_bytes", c_uint32), ("service_waves", c_uint32)]


def _load() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """The libraries in $WEIR_LIBRARY_PATH (a list of folders), or where the system has them."""
    folders = [f for f in os.environ.get("WEIR_LIBRARY_PATH", "").split(":") if f]

    def one(name: str) -> ctypes.CDLL:
        for folder in folders:
            path = os.path.join(folder, f"lib{name}.so.0")
            if os.path.exists(path):
                return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(ctypes.util.find_library(name) or f"lib{name}.so.0", mode=ctypes.RTLD_GLOBAL)

    return one("weir"), one("weir-dataset")


weir, dataset = _load()
weir.weir_last_error.restype = c_char_p


def check(result: int, *ignored: object) -> int:
    """Raise the library's sentence for a negative errno."""
    if result < 0:
        sentence = weir.weir_last_error().decode(errors="replace")
        raise WeirError(-result, sentence or os.strerror(-result))
    return result


def _declare(library: ctypes.CDLL, name: str, *arguments: type, result: type = c_int):  # noqa: ANN202
    call = getattr(library, name)
    call.argtypes = arguments
    call.restype = result
    return call


context_open = _declare(weir, "weir_context_open", c_char_p, c_void_p, POINTER(c_void_p))
context_close = _declare(weir, "weir_context_close", c_void_p)
storage_open = _declare(weir, "weir_storage_open", c_void_p, c_char_p, c_void_p, POINTER(c_void_p))
storage_close = _declare(weir, "weir_storage_close", c_void_p)
index = _declare(dataset, "weir_dataset_index", c_void_p, c_char_p, POINTER(IndexOptions))
upload = _declare(dataset, "weir_dataset_upload", POINTER(c_void_p), c_uint32, c_char_p, POINTER(IndexOptions))
mount = _declare(dataset, "weir_dataset_mount", c_void_p, POINTER(c_void_p), c_uint32, POINTER(MountOptions), POINTER(c_void_p))
unmount = _declare(dataset, "weir_dataset_unmount", c_void_p)
info = _declare(dataset, "weir_dataset_info", c_void_p, POINTER(Info))
find = _declare(dataset, "weir_dataset_find", c_void_p, c_char_p, POINTER(c_uint64))
sample = _declare(dataset, "weir_dataset_sample", c_void_p, c_uint64, POINTER(Sample))
name_of = _declare(dataset, "weir_dataset_name", c_void_p, c_uint64, c_char_p, c_size_t)
read = _declare(dataset, "weir_dataset_read", c_void_p, c_uint64, c_uint64, c_void_p, c_size_t, result=c_ssize_t)
sequence = _declare(dataset, "weir_dataset_sequence", c_void_p, POINTER(SequenceOptions))
bread = _declare(dataset, "weir_dataset_bread", c_void_p, c_uint32, POINTER(BatchStruct))
position = _declare(dataset, "weir_dataset_position", c_void_p, c_char_p, c_size_t)
resume = _declare(dataset, "weir_dataset_resume", c_void_p, c_char_p)
NOT_FOUND = -errno.ENOENT
