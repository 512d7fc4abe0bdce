# SPDX-License-Identifier: BSD-3-Clause
"""The Python package, over archives that the formats' own tools made. TAP; what is not installed is skipped by name."""
from __future__ import annotations

import errno
import fnmatch
import io
import os
import pickle
import random
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import types

try:
    import numpy
except ModuleNotFoundError:
    print("1..0 # SKIP numpy is not installed")
    sys.exit(0)

import weir

FOLDER = tempfile.mkdtemp(prefix="weir-python-test-")
random.seed(3)


def path(name: str) -> str:
    return os.path.join(FOLDER, name)


def refused(call: object, words: str) -> None:
    try:
        call()
    except ValueError as error:
        assert words in str(error), f"{error}, instead of {words}"
    else:
        raise AssertionError(f"not refused: {words}")


def same(data: weir.Dataset, want: dict[str, bytes], labels: dict[str, int] | None = None) -> None:
    """Every sample of @want by its name, and every row of every order."""
    assert len(data) == len(want), f"{len(data)} samples instead of {len(want)}"
    for name, content in want.items():
        got, label = data[name]
        assert got == content, f"{name}: {len(got)} bytes {got[:20]!r} instead of {len(content)} bytes {content[:20]!r}"
        if labels is not None:
            assert label == labels[name], f"{name}: label {label} instead of {labels[name]}"
    names = [data.name(i) for i in range(len(data))]
    for order in weir.ORDERS:
        seen = []
        for batch in data.epoch(seed=1, batch=7, order=order):
            for row, number in enumerate(batch.samples):
                assert batch[row] == want[names[number]], f"{order}: {names[number]}"
                seen.append(int(number))
        assert sorted(seen) == list(range(len(data))), f"{order}: not each sample once"


def some_files(count: int = 60, most: int = 3000) -> dict[str, bytes]:
    return {f"class{i % 3}/file{i:04}.bin": random.randbytes(random.randrange(1, most)) for i in range(count)}


def write_folder(name: str, files: dict[str, bytes]) -> str:
    for file, content in files.items():
        os.makedirs(os.path.dirname(path(name) + "/" + file), exist_ok=True)
        with open(path(name) + "/" + file, "wb") as out:
            out.write(content)
    return path(name)


def indexed(name: str, want: dict[str, bytes], labels: dict[str, int] | None = None, **options: object) -> None:
    weir.index(f"file:{path(name)}", **options)
    with weir.Dataset(f"file:{path(name)}", cache_bytes=1 << 20, chunk_bytes=1 << 16) as data:
        same(data, want, labels)


def test_gnu_tar() -> None:
    files = some_files()
    files["long" * 60 + "/" + "name" * 50 + ".bin"] = b"a name of more than 256 characters"
    files["x" * 99 + "/y" * 20 + ".bin"] = b"a name that ustar divides"
    folder = write_folder("tarred", files)
    for kind in "gnu", "pax", "ustar", "oldgnu":
        have = dict(files) if kind != "ustar" else {n: d for n, d in files.items() if len(n) < 200}
        subprocess.run(["tar", "-C", folder, f"--format={kind}", "-cf", path(f"{kind}.tar"), *have], check=True)
        indexed(f"{kind}.tar", have)


def test_folder_upload() -> None:
    files = some_files()
    folder = write_folder("folder", files)
    labels = {name: int(name[5]) for name in files}
    uris = []
    for i in range(2):
        with open(path(f"store{i}"), "wb") as out:
            out.truncate(4 << 20)
        uris.append(f"file:{path(f'store{i}')}")
    weir.upload(uris, folder)
    with weir.Dataset(uris) as data:
        same(data, files, labels)


def test_readme_loop() -> None:
    """The loop that the README and docs/datasets.md show, word by word, over the two storages of test_folder_upload()."""
    source = os.path.join(os.path.dirname(__file__), "..", "..")
    for page in "README.md", "docs/datasets.md":
        with open(os.path.join(source, page)) as text:
            loop, = re.findall(r"^```python\n(.*?)^```", text.read(), flags=re.S | re.M)
        seen: list[int] = []
        for i in range(2):
            loop = loop.replace(f"file:/data/store{i}", f"file:{path(f'store{i}')}")
        if "store1" not in loop:  # one storage of a dataset of two is refused
            loop = loop.replace(f'"file:{path("store0")}"', f'["file:{path("store0")}", "file:{path("store1")}"]')
        exec(loop.replace("range(90)", "range(2)"), {"weir": weir, "step": lambda rows, labels: seen.append(len(rows) * (len(rows) == len(labels)))})
        assert sum(seen) == 60 * (1 + ("range(90)" in loop)), f"{page}: {seen} rows of 60"


def test_webdataset() -> None:
    import webdataset

    want, labels = {}, {}
    with webdataset.TarWriter(path("shard.tar")) as sink:
        for i in range(50):
            content = random.randbytes(100 + i)
            sink.write({"__key__": f"s{i:03}", "bin": content, "cls": i % 5})
            want[f"s{i:03}.bin"], labels[f"s{i:03}.bin"] = content, i % 5
    indexed("shard.tar", want, labels)


def test_tfrecord() -> None:
    import tfrecord

    writer = tfrecord.TFRecordWriter(path("data.tfrecord"))
    for i in range(40):
        writer.write({"image": (random.randbytes(50 + 13 * i), "byte"), "label": (i, "int")})
    writer.close()
    want = {f"record-{i}": bytes(record) for i, record in
            enumerate(tfrecord.reader.tfrecord_iterator(path("data.tfrecord")))}
    indexed("data.tfrecord", want, checks=True)
    with open(path("data.tfrecord"), "r+b") as file:
        file.seek(40)
        file.write(b"\xff\xfe")
    try:
        weir.index(f"file:{path('data.tfrecord')}", checks=True)
        raise AssertionError("damaged data was indexed")
    except weir.WeirError as error:
        assert "record 0" in str(error) and "checksum" in str(error), error


def test_mds() -> None:
    from streaming import MDSWriter

    with MDSWriter(out=path("mds"), columns={"x": "bytes", "y": "int"}) as out:
        contents = [random.randbytes(30 + i) for i in range(50)]
        for i, content in enumerate(contents):
            out.write({"x": content, "y": i})
    # a column of variable length has its length first
    want = {f"record-{i}": struct.pack("<I", len(content)) + content + struct.pack("<q", i) for i, content in enumerate(contents)}
    indexed("mds/shard.00000.mds", want)


def test_cifar() -> None:
    for kind, header in ("cifar10", 1), ("cifar100", 2):
        records = [bytes([i % 10] * header) + random.randbytes(3072) for i in range(30)]
        with open(path(kind), "wb") as out:
            out.write(b"".join(records))
        indexed(kind, {f"record-{i}": r[header:] for i, r in enumerate(records)},
                {f"record-{i}": i % 10 for i in range(30)}, format=kind)


def records() -> str:
    """The URI of a thousand records of 64 bytes, without labels."""
    if not os.path.exists(path("records")):
        with open(path("records"), "wb") as out:
            out.write(random.randbytes(64 * 1000))
        weir.index(f"file:{path('records')}", format="fixed:64")
    return f"file:{path('records')}"


def test_ranks_and_resume() -> None:
    seen: list[int] = []
    with weir.Dataset(records()) as data:
        for rank in range(3):
            for batch in data.epoch(seed=9, batch=50, rank=rank, ranks=3):
                seen += batch.samples.tolist()
        assert sorted(seen) == list(range(1000))
        assert not list(data.epoch(seed=9, rank=1000, ranks=1001)), "there are fewer samples than ranks, and the last one has some"
        seen = []
        for batch in data.epoch(seed=9, batch=30):
            seen += batch.samples.tolist()
            if len(seen) >= 300:
                break
        position = data.position()
        for batch in data.resume(position, batch=17):
            seen += batch.samples.tolist()
        assert sorted(seen) == list(range(1000))
        try:
            data["none"]
            raise AssertionError("a name that is not there was found")
        except KeyError:
            pass


def test_dlpack() -> None:
    with weir.Dataset(records()) as data:
        batch = next(data.epoch(batch=8))
        array = numpy.from_dlpack(batch)
        assert array.ctypes.data == batch.rows.ctypes.data, "a copy was made"


def test_leaves_nothing_open() -> None:
    with open(path("blocks"), "wb") as file:
        file.write(bytes(4096))
    before = len(os.listdir("/proc/self/fd"))
    try:
        weir.Dataset([f"file:{path('blocks')}", 7], manifests=[None, None])
    except TypeError:
        pass
    else:
        raise AssertionError("7 was taken for a storage")
    assert len(os.listdir("/proc/self/fd")) == before


def test_failures_leave_nothing_open() -> None:
    """Whatever fails, what was opened for it is closed; so it is where the end of a dataset fails."""
    with open(path("blocks"), "wb") as file:
        file.write(bytes(4096))
    with weir.Dataset(many()) as data:
        data[0]
    before = len(os.listdir("/proc/self/fd"))
    for call in ((lambda: weir.Dataset(f"file:{path('blocks')}")), (lambda: weir.Dataset([many(), f"file:{path('blocks')}"])),
                 (lambda: weir.index(f"file:{path('blocks')}", path("y"), format="fixed:1000")),
                 (lambda: weir.upload(f"file:{path('blocks')}", "/nowhere/at/all")),
                 (lambda: weir.upload([f"file:{path('blocks')}", many()], path("many"), format="fixed:100"))):
        try:
            call()
            raise AssertionError("nothing was raised")
        except weir.WeirError:
            pass
        assert len(os.listdir("/proc/self/fd")) == before
    weir.index(many(), path("z"), format="fixed:64")
    weir.upload(store("to"), path("many"), format="fixed:64")
    assert len(os.listdir("/proc/self/fd")) == before
    data, known = weir.Dataset(many()), weir.c.unmount
    weir.c.unmount = lambda handle: (known(handle), -errno.EIO)[1]
    try:
        raised(data.close, errno.EIO, "")
    finally:
        weir.c.unmount = known
    assert len(os.listdir("/proc/self/fd")) == before
    refused(data.position, "the dataset is closed")
    data.close()


def test_errors() -> None:
    for call, word in ((lambda: weir.Dataset("file:/nowhere/at/all"), "/nowhere"),
                       (lambda: weir.Dataset("virt:1M"), "no manifest"),
                       (lambda: weir.index(records(), path("x")), "name its format")):
        try:
            call()
            raise AssertionError("nothing was raised")
        except weir.WeirError as error:
            assert word in str(error), error


def test_refused() -> None:
    """Nothing is passed over or cut to fewer bits in silence."""
    uri, two = f"file:{path('few')}", f"file:{path('two')}"
    for name in "few", "two":
        with open(path(name), "wb") as out:
            out.write(random.randbytes(10 * 1000))
        weir.index(f"file:{path(name)}", format="fixed:1000")
    few = path("few") + ".weir"
    with weir.Dataset(uri, manifests=few) as data:
        assert len(data) == 10 and data.info.storages == 1
    with weir.Dataset([uri, two], manifests=[few, path("two") + ".weir"]) as data:
        assert len(data) == 20 and [len(b) for b in data.epoch(batch=12)] == [12, 8]
        refused(lambda: data.epoch(batch=2**32 + 3), "batch is 4294967299; it is from 0 to 4294967295")
        refused(lambda: data.epoch(batch=-1), "batch is -1")
        refused(lambda: data.epoch(buffer_chunks=2**32), "buffer_chunks is 4294967296")
        for name in "seed", "epoch":
            refused(lambda name=name: data.epoch(**{name: 2**64 + 1}), f"{name} is {2**64 + 1}; it is from 0 to {2**64 - 1}")
            refused(lambda name=name: data.epoch(**{name: -1}), f"{name} is -1")
        assert sum(len(b) for b in data.epoch(seed=2**64 - 1, epoch=2**64 - 1)) == 20
        refused(lambda: data.name(2**64), "number is 18446744073709551616")
        refused(lambda: data.resume(data.position(), batch=2**32), "batch is 4294967296")
    refused(lambda: weir.index("virt:4M", format="fixed:512"), "virt:4M: name a manifest")
    refused(lambda: weir.Dataset([uri, two], manifests=[few]), "1 manifests of 2 storages")
    refused(lambda: weir.Dataset([uri, two], manifests=few), "1 manifests of 2 storages")
    refused(lambda: weir.Dataset(uri, manifests=[few] * 3), "3 manifests of 1 storages")
    for wrong in {"row_bytes": 2**32 + 512}, {"chunk_bytes": 2**32}, {"cache_bytes": -1}, {"batches": 2**32 + 1}:
        refused(lambda wrong=wrong: weir.Dataset(uri, **wrong), f"{next(iter(wrong))} is {next(iter(wrong.values()))}; it is from 0 to")


def test_torch() -> None:
    from torch.utils.data import DataLoader

    from weir.torch import Batches

    with weir.Dataset(records()) as data:
        for workers in 0, 2:
            seen: list[int] = []
            lengths = 0
            loader = DataLoader(Batches(data, batch=50, seed=1), batch_size=None, num_workers=workers,
                                multiprocessing_context="spawn" if workers else None)
            for rows, length, labels in loader:
                assert labels.tolist() == [-1] * len(rows) # as data[i] says where there is none
                lengths += int(length.sum())
                seen.append(len(rows))
            assert lengths == 64 * 1000 and sum(seen) == 1000, (lengths, sum(seen))
        loader = DataLoader(data, batch_size=100, collate_fn=list)
        assert sum(len(items) for items in loader) == 1000


def shard(name: str, members: list[tuple[str, bytes]]) -> str:
    """The URI of an archive of these."""
    with tarfile.open(path(name), "w") as archive:
        for member, content in members:
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return f"file:{path(name)}"


def store(name: str) -> str:
    """The URI of an empty storage."""
    with open(path(name), "wb") as out:
        out.truncate(4 << 20)
    return f"file:{path(name)}"


def raised(call: object, number: int, words: str) -> None:
    """The library's sentence, and its errno as the system counts: above 0."""
    try:
        call()
    except weir.WeirError as error:
        assert words in str(error) and error.errno == number, f"{error.errno}, {error}, instead of {number}, {words}"
    else:
        raise AssertionError(f"not raised: {words}")


def many() -> str:
    """4,000 records of 64 bytes, in four chunks of 64 KiB."""
    uri = f"file:{path('many')}"
    if not os.path.exists(path("many")):
        with open(path("many"), "wb") as out:
            out.write(random.randbytes(64 * 4000))
        weir.index(uri, format="fixed:64")
    return uri


def numbers(data: weir.Dataset, **options: object) -> list[int]:
    return [int(number) for batch in data.epoch(batch=100, **options) for number in batch.samples]


def test_rows() -> None:
    """Of each row content, zeros behind it, length and label are the sample's, -1 being none; of one that is cut the length is not."""
    contents = [random.randbytes(100 + 3 * i) for i in range(40)]
    uri = shard("labels.tar", [member for i, content in enumerate(contents) for member in
                               [(f"s{i:03}.bin", content)] + [(f"s{i:03}.cls", str(i % 7).encode())] * (i % 4 > 0)])
    weir.index(uri)
    for row_bytes in 0, 128:
        with weir.Dataset(uri, row_bytes=row_bytes) as data:
            for i, content in enumerate(contents):
                assert data[f"s{i:03}.bin"] == (content, i % 7 if i % 4 else -1), i
            seen = 0
            for batch in data.epoch(batch=7):
                for row, number in enumerate(batch.samples):
                    content, label = data[int(number)]
                    width = row_bytes or data.info.row_bytes
                    assert batch.rows.shape[1] == width and batch.lengths[row] == len(content), (batch.rows.shape, batch.lengths[row])
                    assert batch.rows[row].tobytes() == content[:width].ljust(width, b"\0") and batch[row] == content[:width]
                    assert batch.labels[row] == (weir.NO_LABEL if label < 0 else label), (batch.labels[row], label)
                    seen += 1
            assert seen == len(contents)


def test_orders_of_the_library() -> None:
    """Seed, epoch, order and buffer are what the library has then; with one of them another, the order is another, else the same."""
    with weir.Dataset(many(), chunk_bytes=1 << 16, cache_bytes=1 << 20) as data:
        assert (len(data), data.info.chunks, data.info.chunk_bytes, data.info.cache_bytes) == (4000, 4, 1 << 16, 4 << 16)
        for name, number in ("shuffled-chunk", 0), ("chunk", 1), ("full", 2):
            data.epoch(seed=2**63 + 5, epoch=2**40 + 1, order=name, buffer_chunks=2)
            assert f" seed={2**63 + 5} epoch={2**40 + 1} order={number} buffer=2 left=0-4000" in data.position(), data.position()
        for order in weir.ORDERS:
            first = numbers(data, seed=1, order=order)
            assert first == numbers(data, seed=1, epoch=0, order=order) and sorted(first) == list(range(4000))
            others = [{"seed": 2}, {"seed": 1, "epoch": 1}]
            others += [{"seed": 1, "buffer_chunks": 1}] if order != "full" else []
            assert all(numbers(data, order=order, **other) != first for other in others), order
        refused(lambda: data.epoch(order="random"), "the orders are shuffled-chunk, chunk, full")
        for rank, ranks in (2, 2), (-1, 2), (0, 0):
            refused(lambda rank=rank, ranks=ranks: data.epoch(rank=rank, ranks=ranks), f"rank {rank} of {ranks}")
        # Ranks divide the one order among themselves, the first of them having one more each.
        all_of_it = numbers(data, seed=3)
        parts = [numbers(data, seed=3, rank=rank, ranks=7) for rank in range(7)]
        assert sum(parts, []) == all_of_it and [len(part) for part in parts] == [572] * 3 + [571] * 4


def test_options_reach_the_library() -> None:
    uri = many()
    raised(lambda: weir.Dataset(uri, chunk_bytes=1 << 16, cache_bytes=3 << 16), errno.EINVAL, "a cache of 196608 bytes has room for fewer")
    raised(lambda: weir.Dataset(uri, chunk_bytes=1000), errno.EINVAL, "chunks of 1000 bytes")
    raised(lambda: weir.Dataset(uri, batches=1000), errno.EINVAL, "at most")
    raised(lambda: weir.Dataset(uri, row_bytes=2**32 - 1), errno.EINVAL, "too long")
    raised(lambda: weir.Dataset(uri, context="abacus"), errno.ENODEV, 'no backend "abacus"')
    raised(lambda: weir.index(uri, format="fixed:64", context="abacus"), errno.ENODEV, 'no backend "abacus"')
    raised(lambda: weir.upload(store("to"), path("many"), format="fixed:64", context="abacus"), errno.ENODEV, 'no backend "abacus"')
    raised(lambda: weir.upload(store("to"), path("many")), errno.EINVAL, "name its format")
    weir.upload(store("to"), path("many"), format="fixed:64")
    with weir.Dataset(f"file:{path('to')}") as data:
        assert len(data) == 4000
    # A record whose own checksum is wrong, that of its length right.
    with open(path("wrong.tfrecord"), "wb") as out:
        out.write(struct.pack("<QI", 4, masked_crc(struct.pack("<Q", 4))) + b"data" + bytes(4))
    weir.index(f"file:{path('wrong.tfrecord')}")
    raised(lambda: weir.index(f"file:{path('wrong.tfrecord')}", checks=True), errno.EBADMSG, "record 0")
    # Keys of a URI are no part of the file's name.
    os.unlink(path("many") + ".weir")
    assert weir.index(f"{uri}?block=4096", format="fixed:64") == path("many") + ".weir"
    with weir.Dataset(f"{uri}?block=4096") as data:
        assert len(data) == 4000


def masked_crc(data: bytes) -> int:
    """CRC-32C, as TFRecord has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_names_of_any_bytes() -> None:
    """Names are what the file system has, of characters or not: of samples, of what is uploaded, of manifests."""
    name = os.fsdecode(b"caf\xe9")
    folder = write_folder(name, {f"{name}.bin": b"content", "plain.bin": b"plain"})
    weir.upload(store("named"), folder)
    with weir.Dataset(f"file:{path('named')}") as data:
        assert sorted(data.name(i) for i in range(2)) == [f"{name}.bin", "plain.bin"]
        assert data.name(data.find(f"{name}.bin")) == f"{name}.bin" and data[f"{name}.bin"][0] == b"content"
    uri = shard(f"{name}.tar", [("a", b"one")])
    assert weir.index(uri) == path(name) + ".tar.weir"
    with weir.Dataset(uri) as data:
        assert data["a"] == (b"one", -1)
    weir.index(uri, path(name) + ".other")
    with weir.Dataset(uri, manifests=path(name) + ".other") as data:
        assert data["a"] == (b"one", -1)


def test_samples_by_number() -> None:
    with weir.Dataset(many()) as data, open(path("many"), "rb") as file:
        content = file.read()
        assert data.__getitems__([3999, 0, 7]) == [(content[i * 64 : i * 64 + 64], -1) for i in (3999, 0, 7)]
        for number in -1, 4000, 2**64, 2**70:
            try:
                data[number]
            except IndexError:
                continue
            raise AssertionError(f"there is a sample {number}")
        copy = pickle.loads(pickle.dumps(data))
        assert copy[7] == data[7]
        copy.close()
    with weir.Dataset(many(), chunk_bytes=1 << 17, cache_bytes=1 << 20, row_bytes=32, batches=2) as data:
        copy = pickle.loads(pickle.dumps(data))
        for field, _ in data.info._fields_:
            assert field == "mount_us" or getattr(copy.info, field) == getattr(data.info, field), field
        copy.close()


def test_closed() -> None:
    """What is closed stays so, in a child of fork(), too."""
    data = weir.Dataset(many())
    data.close()
    data.close()
    for process in os.getpid(), -1:
        data._process = process
        for call in (lambda: data[0]), data.epoch, data.position, (lambda: data.find("record-1")), (lambda: data.name(1)):
            refused(call, "the dataset is closed")


def test_forked() -> None:
    """A child of fork() mounts anew, and takes nothing of its parent's along when it closes."""
    with weir.Dataset(many()) as data:
        batches = data.epoch(batch=100, seed=1)
        want, first = data[7], next(batches).samples.tolist()
        data._process = -1  # a child that has read nothing
        data.close()
        data._process = os.getpid()
        assert data[7] == want
        child = os.fork()
        if not child:
            good = False
            try:
                good = data[7] == want and numbers(data, seed=1)[:100] == first
                data.close()
            finally:
                os._exit(not good)
        assert os.waitpid(child, 0)[1] == 0
        assert sum((batch.samples.tolist() for batch in batches), first) == numbers(data, seed=1)


def test_torch_shares() -> None:
    """Ranks and their workers have each row once between them; an epoch's order is the library's; tensors are copies."""
    import torch

    import weir.torch

    def read(data: weir.Dataset, workers: int, number: int = 0, **options: int) -> list[bytes]:
        rows = []
        known = weir.torch.get_worker_info
        for index in range(max(workers, 1)):
            worker = types.SimpleNamespace(num_workers=workers, id=index) if workers else None
            weir.torch.get_worker_info = lambda worker=worker: worker
            batches = weir.torch.Batches(data, batch=64, **options)
            batches.set_epoch(number)
            rows += list(batches)
        weir.torch.get_worker_info = known
        assert all(part.dtype == torch.int64 for _, *parts in rows for part in parts)
        return [bytes(row.numpy().tobytes()) for tensor, _, _ in rows for row in tensor]

    with weir.Dataset(many()) as data:
        whole = sorted(data[i][0] for i in range(len(data)))
        for workers in 0, 3:
            assert sorted(sum((read(data, workers, rank=rank, ranks=2) for rank in range(2)), [])) == whole, workers
        for number, order in (0, "full"), (5, "full"), (5, "chunk"):
            want = [batch[row] for batch in data.epoch(seed=9, epoch=number, batch=64, order=order) for row in range(len(batch))]
            assert read(data, 0, number, seed=9, order=order) == want, (number, order)


def test_train() -> None:
    import sklearn  # noqa: F401

    script = os.path.join(os.path.dirname(__file__), "..", "..", "samples", "train", "train.py")
    out = subprocess.run([sys.executable, script, "--seeds", "1", "--epochs", "8"], check=True, capture_output=True, text=True).stdout
    accuracies = [float(line.split()[2]) for line in out.splitlines() if line.startswith(("full", "shuffled-chunk", "chunk"))]
    assert len(accuracies) == 14 and min(accuracies) > 0.6 and accuracies[0] > 0.9, out


if __name__ == "__main__":
    cases = os.environ.get("WEIR_TEST_CASES") or "*"
    tests = [(n, f) for n, f in list(globals().items()) if n.startswith("test_") and fnmatch.fnmatch(n, cases)]
    print(f"1..{len(tests)}", flush=True)
    bad = 0
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {name}", flush=True)
        except ModuleNotFoundError as error:
            print(f"ok {number} - {name} # SKIP {error}", flush=True)
        except Exception as error:  # noqa: BLE001
            import traceback

            bad = 1
            print(f"not ok {number} - {name}", flush=True)
            print("\n".join("# " + line for line in traceback.format_exc().splitlines()), flush=True)
    import shutil

    shutil.rmtree(FOLDER)
    sys.exit(bad)
