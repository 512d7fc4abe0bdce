# SPDX-License-Identifier: BSD-3-Clause
"""What ci/figures measures with: loads of weir-perf, programs of a build folder, and the files that they read."""
import concurrent.futures
import contextlib
import errno
import glob
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUNS = 5

# ---- loads of weir-perf ----

DEVICE = "virt:8G?on=device&groups=16"  # a controller confined to 16 multiprocessors
MANY = "--queues=128 --depth=1024 --iodepth=98304 --no-latency"
SPREAD = "--queues=384 --depth=512 --iodepth=98304 --no-latency"  # a pair for each of its waves: one pair does 9 M/s at most
SAME = "--plain-blocks=16 --plain-threads=768"  # the plain kernel in that controller's shape
SHORT = "--runtime=0.4"                 # where only the plain kernel counts

LOADS = {
    "nodata": f"virt:64M?on=device&data=off&waves=128 --bs=512 {MANY} --plain=off",
    "nodata_512": "virt:64M?on=device&data=off&waves=512 --bs=512 --queues=512 --depth=1024 --iodepth=98304 "
                  "--no-latency --plain=off",
    "nodata_service": f"virt:64M?on=device&data=off&waves=128 --bs=512 {MANY} --plain=off --service=128",
    "read_512": f"{DEVICE} --bs=512 {SPREAD} {SAME}",
    "read_512_whole": f"{DEVICE} --bs=512 {SPREAD} {SHORT}",
    "read_4k": f"{DEVICE}&claim=16 --bs=4K {MANY} {SAME}",
    "read_4k_whole": f"{DEVICE} --bs=4K {MANY} {SHORT}",
    "read_4k_service": f"{DEVICE}&claim=16 --bs=4K {MANY} {SAME} --service=128",
    "host_4k": "virt:1G?block=4096&threads=4 --queues=64 --depth=512 --iodepth=16384 --no-latency",
    "host_512": "virt:1G?threads=4 --bs=512 --queues=64 --depth=512 --iodepth=32768 --no-latency",
    "one_queue": f"{DEVICE} --queues=1 --depth=1024 --iodepth=4096 --no-latency --plain=off",
    "latency": f"{DEVICE} --queues=16 --depth=1024 --iodepth=1 --plain=off",
    "latency_nodata": "virt:64M?on=device&groups=16&data=off --queues=16 --depth=1024 --iodepth=1 --plain=off",
    "random8": "virt:6G --hit=random8",
    "wave256": "virt:6G --hit=wave256",
    "line4k": "virt:6G --hit=line4k",
    "miss": "virt:40G?on=device&groups=16 --queues=128 --depth=1024 --cached=4G --iodepth=32768 --plain=off",
    "write_zipf": "virt:10G?on=device&groups=16&iops=1500000 --rw=randwrite --zipf=0.99 --queues=128 --depth=1024 "
                  "--cached=1G --iodepth=32768 --plain=off --no-latency",
    "file": "file:{file}?threads=auto --queues=64 --depth=512 --iodepth=16384 --no-latency --plain=off",
    "disk": "file:{disk}?threads=auto&direct=on --queues=64 --depth=512 --iodepth=16384 --no-latency --plain=off",
}

PROGRAMS = {
    "weir-perf": "runtime/tools/weir-perf/weir-perf",
    "weir-info": "runtime/tools/weir-info/weir-info",
    "weir-graph": "runtime/tools/graph/weir-graph",
    "weir-bfs": "samples/bfs/weir-bfs",
    "weir-ctc": "samples/ctc/weir-ctc",
    "weir-vectoradd": "samples/vectoradd/weir-vectoradd",
    "weir-dataset": "runtime/tools/weir-dataset/weir-dataset",
    "weir-volume": "runtime/tools/weir-volume/weir-volume",
    "weir-volumed": "runtime/tools/weir-volumed/weir-volumed",
    "weir-target": "runtime/tools/weir-target/weir-target",
    "target-bench": "tests/bench/target-bench",
    "volume-bench": "tests/bench/volume-bench",
    "peer-pread-copy": "backends/*/peers/peer-pread-copy",
    "peer-cufile": "backends/*/peers/peer-cufile",
}


class Failed(Exception):
    """A figure could not be measured, though it should have been."""


class CannotBeHad(Exception):
    """Nor can it be, here."""


class Usage(Exception):
    """What was asked for makes no sense."""


def setting(name, default, kind=str):
    text = os.environ.get("WEIR_FIGURES_" + name) or default
    try:
        value = kind(text)
    except ValueError:
        raise Usage(f"WEIR_FIGURES_{name}={text}: it takes a number") from None
    if kind is not str and value <= 0:
        raise Usage(f"WEIR_FIGURES_{name}={text}: it takes a number above 0")
    return value


# ---- running programs ----

def end_group(process):
    """A program that is not to go on, and what it started: first asked, then told."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            process.communicate(timeout=patience)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        return


def execute(arguments, limit):
    """Exit status, output and errors of a program; Failed if it does not end in time."""
    try:
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   start_new_session=True)
    except OSError as error:
        raise Failed(f"{arguments[0]}: {error.strerror}") from None
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise Failed(f"{os.path.basename(arguments[0])} was not done after {limit:g} s") from None
    finally:
        if process.poll() is None:
            end_group(process)
    return process.returncode, output, errors


def ask(*arguments):
    """First line of what a program of the system says; None if it does not."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout.strip().splitlines() or [None])[0] if done.returncode == 0 else None


class Bench:
    """A build folder, its programs, and the files they read while this lasts."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.backend = setting("BACKEND", "cuda")
        self.limit = setting("LIMIT", "90", float)
        self.runtime = setting("RUNTIME", "1", float)
        self.scale = setting("SCALE", "24", int)
        self.file_bytes = setting("FILE_BYTES", str(4 << 30), int)
        self.memory = setting("MEMORY", "/dev/shm")
        self.done = {}     # results of programs by their arguments
        self.folders = []  # temporary
        self.made = {}     # files by their kind
        self.commands = []
        self.ports = []    # of what is served
        self.host = "127.0.0.1"  # where
        self.servers = []  # processes that serve now
        self.inside = []   # words before a server's command

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)

    def program(self, name):
        found = sorted(glob.glob(os.path.join(glob.escape(str(self.folder)), PROGRAMS[name])))
        if not found:
            raise Failed(f"{name} is not in {self.folder}: build it, or look why the build leaves it out")
        return found[0]

    def show(self, arguments):
        """A command line as it can be given in the top folder."""
        return self.anonymous(shlex.join([os.path.relpath(arguments[0], ROOT)] + arguments[1:]))

    def anonymous(self, text):
        """Temporary folders are called TMP: their names mean nothing afterwards."""
        for folder in self.folders:
            text = text.replace(folder, "TMP")
        for port in self.ports:
            text = text.replace(f"{self.host}:{port}", f"{self.host}:PORT")
        return text

    def run(self, name, *arguments, limit=None, turn=0):
        """Output of a program that ends well, once however often it is wanted in the same turn."""
        command = [os.path.abspath(self.program(name)), *arguments]
        self.commands.append(self.show(command))
        key = (turn, *command)
        if key not in self.done:
            try:
                self.done[key] = self.judge(name, *execute(command, limit or self.limit))
            except (Failed, CannotBeHad) as error:
                self.done[key] = error
        if isinstance(self.done[key], Exception):
            raise self.done[key]
        return self.done[key]

    @staticmethod
    def judge(name, status, output, errors):
        lines = [line for line in errors.strip().splitlines() if line] or [f"{name} says nothing"]
        if status == 3 and name == "peer-cufile":
            raise CannotBeHad("; ".join(lines))
        if status < 0:
            raise Failed(f"{name} was ended by signal {-status}: {lines[-1]}")
        if status:
            raise Failed(f"{lines[-1]} (exit status {status})")
        return output

    def json(self, name, *arguments, turn=0):
        output = self.run(name, *arguments, turn=turn)
        try:
            return json.loads(output)
        except ValueError:
            raise Failed(f"{name} printed no JSON: {output[:200]!r}") from None

    def load(self, name, runs=RUNS, turn=0):
        """weir-perf's JSON of a load of the table."""
        text = LOADS[name]
        for kind in ("file", "disk"):
            if "{" + kind + "}" in text:
                text = text.replace("{" + kind + "}", self.make(kind))
        return self.json("weir-perf", f"--backend={self.backend}", f"--runs={runs}", f"--runtime={self.runtime:g}",
                         "--json", *text.split(), turn=turn)

    @contextlib.contextmanager
    def server(self, name, arguments, lines=1):
        """A program that says "serving" and goes on, while this lasts: its first lines."""
        command = [os.path.abspath(self.program(name)), *arguments]
        self.commands.append(self.show(command))
        process = subprocess.Popen([*self.inside, *command], stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            said = [process.stdout.readline() for _ in range(lines)]
            if not all("serving" in line for line in said):
                raise Failed(f"{name} serves nothing: {said[-1].strip() or 'it ended'}")
            self.servers.append(process)
            yield said
        finally:
            if process in self.servers:
                self.servers.remove(process)
            end_group(process)

    @contextlib.contextmanager
    def target(self, storages, threads, engine=False):
        """Storages, {name of a subsystem: URI}, served by one process while this lasts: their URIs there."""
        with self.server("weir-target", ["--listen", f"tcp://{self.host}:0", "--threads", str(threads), *(["--engine"] if engine else []),
                                         *(word for name, uri in storages.items()
                                           for word in ("--subsystem", f"nqn.2026-11.org.example:{name}={uri}"))], len(storages)) as lines:
            self.ports.append(lines[0].split(f"tcp://{self.host}:", 1)[1].split("/", 1)[0].split(";", 1)[0])
            yield [line.rsplit("; ", 1)[1].strip() for line in lines]

    @contextlib.contextmanager
    def served(self, storage, threads, number=1, engine=False):
        """A storage served over loopback while this lasts: its URI."""
        with self.target({f"figures{number}": storage}, threads, engine) as uris:
            yield uris[0]

    @contextlib.contextmanager
    def volumes(self, count, storage, threads, replicas, size, names):
        """Volumes over engines on this machine, while this lasts: the daemon's socket."""
        socket = os.path.join(self.place(self.memory, 0), "socket")
        with contextlib.ExitStack() as stack:
            engines = [stack.enter_context(self.served(storage, threads, i, engine=True)) for i in range(count)]
            stack.enter_context(self.server("weir-volumed", [
                "--socket", socket, *(["--alone"] if count == 1 else []),
                *(word for uri in engines for word in ("--engine", uri.removeprefix("nvmf:")))]))
            for name in names:
                self.run("weir-volume", "--daemon", socket, "create", name, size, "--replicas", str(replicas), turn=socket)
                self.run("weir-volume", "--daemon", socket, "share", name, turn=socket)
            yield socket

    @contextlib.contextmanager
    def array(self, count, storage, threads, replicas, size):
        """One volume, likewise: its URI."""
        with self.volumes(count, storage, threads, replicas, size, ["figures"]) as socket:
            yield f"vol:figures?daemon={socket}"

    def place(self, parent, needed):
        """A temporary folder with room."""
        free = shutil.disk_usage(parent).free if os.path.isdir(parent) else 0
        if free < needed:
            raise CannotBeHad(f"{parent} has {free >> 20} MiB free, {needed >> 20} are needed")
        folder = tempfile.mkdtemp(prefix="weir-figures-", dir=parent)
        self.folders.append(folder)
        return folder

    def make(self, kind):
        """A file of random bytes, or the graph: its path."""
        if kind not in self.made:
            self.made[kind] = self.make_graph() if kind == "graph" else self.make_file(kind)
        return self.made[kind]

    def make_file(self, kind):
        parent, size = (self.memory, self.file_bytes) if kind == "file" else (str(self.folder.resolve()), self.file_bytes // 2)
        path = os.path.join(self.place(parent, size + (64 << 20)), "random")
        fill(path, size)
        if kind == "disk":
            check_direct(path)
        return path

    def make_graph(self):
        needed = 3 * (16 << self.scale) * 16  # sorted through a file of its own
        try:
            folder = self.place(self.memory, needed + (1 << 30))
        except CannotBeHad:
            folder = self.place(str(self.folder.resolve()), needed)
        path = os.path.join(folder, "kron.bel")
        self.run("weir-graph", "generate", "kron", "--scale", str(self.scale), "--memory", "4G", "--quiet", "-o", path,
                 limit=3 * self.limit)
        return path

    def drop(self, kind):
        """A made file is not needed any more."""
        path = self.made.pop(kind, None)
        if path:
            shutil.rmtree(os.path.dirname(path), ignore_errors=True)


def fill(path, size):
    """Random bytes, by several threads."""
    piece = 8 << 20

    def write(begin):
        os.pwrite(file, os.urandom(min(piece, size - begin)), begin)

    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        with concurrent.futures.ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
            for _ in pool.map(write, range(0, size, piece)):
                pass
        os.fsync(file)
    finally:
        os.close(file)


def check_direct(path):
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise CannotBeHad(f"the file system of {os.path.dirname(os.path.dirname(path))} takes no O_DIRECT") from None
        raise Failed(f"{path}: {error.strerror}") from None
