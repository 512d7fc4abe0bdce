# SPDX-License-Identifier: BSD-3-Clause
"""What ci/dataset-figures measures with: programs of a build folder, sets of samples, a pool of emulated devices, Python's peers."""
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time

from figures_bench import ROOT, CannotBeHad, Failed, ask, end_group, execute

LIMIT_S = 300  # of a program
PROGRAMS = {name: f"runtime/tools/{name}/{name}" for name in ("weir-dataset", "weir-target", "weir-perf")}
NQN = "nqn.2026-11.org.example"
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
TURN_S = 0.1  # from one look at the processor time to the next

# name: bytes of a sample, samples, samples of a batch
SETS = {"512": (512, 200000, 1024), "4k": (4096, 80000, 512), "16k": (16384, 20000, 256), "128k": (131072, 4000, 64),
        "1m": (1 << 20, 600, 16)}
QUICK_SETS = {"512": (512, 6000, 256), "4k": (4096, 3000, 128), "16k": (16384, 1200, 64), "128k": (131072, 300, 16), "1m": (1 << 20, 80, 4)}

# Packages of PyPI beside Debian's torch and torchvision; those of "alone" without what they ask for: it would bring another torch.
NUMPY = "numpy<2"  # Debian's torch is built for it
PACKAGES = {
    "webdataset": (["webdataset"], []),
    "streaming": (["transformers<5", "Brotli", "python-snappy", "xxhash<4", "tqdm", "catalogue", "pillow", "zstd"], ["mosaicml-streaming"]),
    "ffcv": ([], ["ffcv"]),
    "sklearn": (["scikit-learn"], []),
}


class Sizes:
    """How much is measured: all of it, or (--quick) so little that only the command itself is tried."""

    def __init__(self, quick, pool_iops):
        self.quick = quick
        self.sets = QUICK_SETS if quick else SETS
        self.runs = 1 if quick else 3
        self.seconds = 1 if quick else 2
        self.peer_seconds = 0.3 if quick else 2
        self.cache = 4 << 20 if quick else 16 << 20
        self.large_cache = 8 << 20 if quick else 256 << 20
        self.records = 100000 if quick else 10000000     # of the directory
        self.training = ["--seeds", "2", "--epochs", "2"] if quick else []
        # The pool: 80 us as an SSD has, and a rate that this machine can emulate sixteen times.
        self.pool_iops = pool_iops
        self.pool_mdts = 128 << 10                       # of the virtual controller
        self.pool_bytes = 64 << 20 if quick else 1536 << 20
        self.pool_cache = 16 << 20 if quick else 64 << 20 # of a client alone; of ranks at least a quarter each
        self.pool_devices = (1, 2) if quick else (1, 2, 4, 8, 16)
        # Bytes of a sample: samples of a batch, for each device that a client has to itself, and at most. Three batches fit into the cache.
        self.pool_samples = {4096: (256, 1024), 131072: (8, 64)}
        self.pool_seconds = 1 if quick else 3


class Bench:
    """A folder for samples, a build folder, and what was made in them."""

    def __init__(self, folder, build, sizes):
        self.folder, self.build, self.sizes = os.path.abspath(folder), os.path.abspath(build), sizes
        self.commands, self.ports, self.made = [], [], None
        self.packages = {}
        os.makedirs(self.folder, exist_ok=True)
        os.environ["PYTHONPATH"] = str(ROOT / "python")
        os.environ["WEIR_LIBRARY_PATH"] = f"{self.build}/runtime:{self.build}/runtime/dataset"
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
        os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    # ---- programs ----

    def build_programs(self):
        """What is not built yet; an existing folder is built on, so that it has this version."""
        done = subprocess.run([ROOT / "ci/build", self.build, "-Dbuildtype=release", "-Dbackends=cpu", "-Dtests=false", "-Ddocs=false", "--",
                               *PROGRAMS], cwd=ROOT, stdout=sys.stderr)
        if done.returncode:
            raise Failed("ci/build failed")

    def program(self, name):
        path = os.path.join(self.build, PROGRAMS[name])
        if not os.path.exists(path):
            raise Failed(f"{name} is not in {self.build}")
        return path

    def show(self, arguments):
        """A command line as it can be given in the top folder; F is the folder of the samples."""
        text = shlex.join(os.path.relpath(a, ROOT) if str(a).startswith((str(ROOT) + "/", self.build + "/")) else str(a) for a in arguments)
        return self.anonymous(text.replace(os.path.relpath(self.build, ROOT), "build"))

    def anonymous(self, text):
        """Where the samples were, and a port that the kernel chose, mean nothing afterwards."""
        return re.sub(r"tcp://127\.0\.0\.1:[1-9]\d*", "tcp://127.0.0.1:PORT", text.replace(self.folder, "F").replace(str(ROOT), "."))

    def run(self, arguments, limit=LIMIT_S, note=True):
        """Output of a program that ends well."""
        arguments = list(map(str, arguments))
        if note:
            self.commands.append(self.show(arguments))
        status, output, errors = execute(arguments, limit)
        if status:
            lines = [line for line in (errors or output).strip().splitlines() if line.strip(" -")] or ["it says nothing"]
            said = [line for line in lines if re.match(r"(weir-)?[\w-]+: ", line) and not line.startswith("weir: ")] # no warnings
            raise Failed(f"{os.path.basename(arguments[0])}: {(said or lines)[0]} (exit status {status})")
        return output

    def dataset(self, *arguments, ranks=0, note=True):
        before = [*MPIRUN, "-n", ranks] if ranks else []
        return self.run([*before, self.program("weir-dataset"), *arguments], note=note)

    def bench(self, *arguments, **how):
        """The rows of weir-dataset bench, by what they are of."""
        return rows_of(self.dataset("bench", *arguments, "--json", **how))

    # ---- sets ----

    def set_folder(self, name):
        """Files of the set, and a storage to which they were uploaded; one set is there at a time."""
        if self.made != name:
            self.drop_set()
            size, samples, _ = self.sizes.sets[name]
            folder = self.path("set-" + name)
            total = size * samples + samples * 4096
            free = shutil.disk_usage(self.folder).free
            if free < 5 * total:
                raise CannotBeHad(f"{self.folder} has {free >> 20} MiB free, {5 * total >> 20} are needed")
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
            self.made = name
            self.dataset("make", f"{folder}/files", "--samples", samples, "--bytes", size, "--classes", 20, "--seed", 1)
            with open(f"{folder}/store", "wb") as store:
                store.truncate(size * samples + samples * 256 + (16 << 20))
            self.dataset("upload", f"{folder}/files", f"file:{folder}/store")
        return self.path("set-" + name)

    def drop_set(self):
        if self.made:
            shutil.rmtree(self.path("set-" + self.made), ignore_errors=True)
            self.made = None

    def store(self, name):
        return f"file:{self.set_folder(name)}/store?direct=on&block=512"

    # ---- Python ----

    def python(self):
        """A venv in the folder, over Debian's packages."""
        path = self.path("venv/bin/python")
        if not os.path.exists(path):
            system = next((p for p in ("/usr/bin/python3", sys.executable) if os.path.exists(p)), "python3")
            self.run([system, "-m", "venv", "--system-site-packages", self.path("venv")], note=False)
        return path

    def package(self, name):
        """None if it can be imported, after an attempt to install it; else why not."""
        if name not in self.packages:
            self.packages[name] = self.install(name)
        return self.packages[name]

    def install(self, name):
        python = self.python()
        if execute([python, "-c", f"import {name}"], LIMIT_S)[0] == 0:
            return None
        if name in ("torch", "torchvision"):
            return f"{name} is not installed: apt-get install python3-torch python3-torchvision"
        needs, alone = PACKAGES[name]
        said = ""
        for words in ([*needs, NUMPY], ["--no-deps", *alone]):
            if words[1:]:
                said += "".join(execute([python, "-m", "pip", "install", "--quiet", *words], LIMIT_S)[1:])
        status, _, errors = execute([python, "-c", f"import {name}"], LIMIT_S)
        if status == 0:
            return None
        told = re.findall(r"^\s*(?:\w*Error|ERROR): .*", said, re.M) or re.findall(r"^\w*Error: .*", errors, re.M)
        return f"{name} does not install: {(told or ['pip says nothing'])[0].strip()}"

    def peers(self, work, name, *options, limit=LIMIT_S * 3):
        size, _, batch = self.sizes.sets[name]
        folder = self.set_folder(name)
        arguments = [folder] if work == "prepare" else [folder, self.store(name), "--batch", batch, "--cache", self.sizes.cache]
        return self.run([self.python(), str(ROOT / "tests/bench/dataset_peers.py"), work, *arguments, *options], limit)

    # ---- the pool ----

    @contextlib.contextmanager
    def served(self, storages, threads=2):
        """Storages behind one weir-target on loopback while this lasts: its process, and their URIs."""
        arguments = [self.program("weir-target"), "--listen", "tcp://127.0.0.1:0", "--threads", str(threads)]
        for number, storage in enumerate(storages):
            arguments += ["--subsystem", f"{NQN}:d{number}={storage}"]
        self.commands.append(self.show(arguments))
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            uris = []
            for _ in storages:
                line = process.stdout.readline()
                if "serving" not in line:
                    raise Failed(f"weir-target serves nothing: {line.strip() or 'it ended'}")
                uris.append(line.rsplit("; ", 1)[1].strip())
            yield process, uris
        finally:
            end_group(process)


def rows_of(output):
    try:
        return {row["what"]: row for row in map(json.loads, output.splitlines())}
    except (ValueError, KeyError):
        raise Failed(f"no JSON: {output[:200]!r}") from None


def processor_seconds(process):
    with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Watched:
    """Cores that a process used in the last seconds of what was done meanwhile."""

    def __init__(self, process):
        self.process, self.seen, self.over = process, [], threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        with contextlib.suppress(OSError):  # it ended
            while not self.over.wait(TURN_S):
                self.seen.append((time.monotonic(), processor_seconds(self.process)))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def cores(self, seconds):
        if len(self.seen) < 2:
            return None
        last = self.seen[-1]
        first = next((s for s in self.seen if s[0] >= last[0] - seconds - TURN_S), self.seen[0])
        return round((last[1] - first[1]) / (last[0] - first[0]), 2) if last[0] > first[0] else None


# ---- the machine ----

def first_of(path, pattern):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(encoding="utf-8", errors="replace"), re.M)
    except OSError:
        return None
    return found.group(1).strip() if found else None


def disk_of(folder):
    """The device below a folder, as lsblk has it."""
    source = ask("findmnt", "-no", "SOURCE", "-T", folder) or ""
    facts = ask("lsblk", "-dno", "MODEL,SIZE,TRAN", source) if source.startswith("/dev/") else None
    return " ".join([source, *(facts or "").split()]) or None


def commit():
    head = os.environ.get("WEIR_FIGURES_COMMIT") or ask("git", "-C", str(ROOT), "rev-parse", "HEAD")
    changed = head and ask("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)docs")
    return head + " with changes" if changed else head


def machine(bench):
    memory = first_of("/proc/meminfo", r"^MemTotal:\s*(\d+)")
    options = pathlib.Path(bench.build) / "meson-info/intro-buildoptions.json"
    kind = next((row["value"] for row in json.loads(options.read_text()) if row["name"] == "buildtype"), None) if options.exists() else None
    return {"processors": len(os.sched_getaffinity(0)), "processor": first_of("/proc/cpuinfo", r"^model name\s*:\s*(.*)"),
            "memory_bytes": int(memory) * 1024 if memory else None, "disk": disk_of(bench.folder),
            "file_system": ask("findmnt", "-no", "FSTYPE", "-T", bench.folder), "kernel": platform.release(),
            "system": first_of("/etc/os-release", r'^PRETTY_NAME="(.*)"'), "build": kind, "commit": commit(),
            "caches_dropped": os.access("/proc/sys/vm/drop_caches", os.W_OK), "load_average": os.getloadavg()[0],
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")}
