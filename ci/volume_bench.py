# SPDX-License-Identifier: BSD-3-Clause
"""What ci/volume-figures measures with: an array, a server in front of it, clients of each design, a link of a set rate."""
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import statistics
import time

from dataset_bench import processor_seconds
from figures_bench import Bench, CannotBeHad, Failed, execute

KIB, MIB = 1 << 10, 1 << 20
PROGRAMS = ["weir-target", "weir-volumed", "weir-volume", "weir-perf", "volume-bench"]
LATENCY_US = 80        # of an emulated SSD with a rate
DISKS = 16             # clients of one process: what weir-perf takes
WARM_S = 0.2           # of a run, before it counts: of weir-perf and volume-bench
LINK_BITS = 10 ** 9
LINK_MTU = 9000
LINK_HOSTS = "10.213.77.1", "10.213.77.2"  # clients, array
LINK_BYTES = LINK_BITS / 8 * (LINK_MTU - 52) / (LINK_MTU + 14)  # a second, without the headers of Ethernet, IP and TCP


@dataclasses.dataclass(frozen=True)
class Setting:
    """One array and its clients. @rated: its SSDs have a rate; @link: there is a link of a set rate between clients and array."""
    engines: int = 4
    replicas: int = 2
    clients: int = 4
    depth: int = 32
    rated: bool = False
    link: bool = False


class Sizes:
    """How much is measured: all of it, or (--quick) so little that only the command itself is tried, and all of that verified."""

    def __init__(self, quick, seconds, iops, server_threads):
        self.quick, self.iops, self.server_threads = quick, 20 * iops if quick else iops, server_threads
        self.seconds = seconds or (0.1 if quick else 0.5)
        self.rounds = 1 if quick else 3
        self.bytes = (8 if quick else 128) * MIB  # of all volumes
        self.engine_bytes = (64 if quick else 384) * MIB

    def settings(self, settings):
        """Of several the first and the last, with few clients."""
        few = [dataclasses.replace(s, clients=min(s.clients, 8), depth=min(s.depth, 4)) for s in settings]
        return [few[0], few[-1]][:len(few)] if self.quick else settings

    def loads(self, loads):
        return [loads[0], loads[-1]] if self.quick else loads

    def facts(self):
        return {"quick": self.quick, "seconds_of_a_run": self.seconds, "runs": self.rounds, "bytes": self.bytes, "iops": self.iops,
                "server_threads": self.server_threads,
                "lat_us": LATENCY_US, "link_bits_per_s": LINK_BITS, "link_mtu": LINK_MTU}


class Link:
    """Two network namespaces and a link between them with a rate in each direction: clients are in one, the array in the other."""

    def __init__(self):
        self.names = [f"weir-{os.getpid()}-{end}" for end in ("clients", "array")]

    def __enter__(self):
        if os.geteuid() != 0:
            raise CannotBeHad("a link of a set rate wants root")
        try:
            for name in self.names:
                self.ip("netns", "add", name)
            self.ip("-n", self.names[0], "link", "add", "link0", "mtu", LINK_MTU, "type", "veth", "peer", "name", "link0", "mtu", LINK_MTU,
                    "netns", self.names[1])
            for name, host in zip(self.names, LINK_HOSTS):
                self.ip("-n", name, "address", "add", host + "/24", "dev", "link0")
                for device in "lo", "link0":
                    self.ip("-n", name, "link", "set", device, "up")
                self.command("tc", "-n", name, "qdisc", "add", "dev", "link0", "root", "tbf", "rate", LINK_BITS, "burst", "128k", "latency", "100ms")
        except CannotBeHad:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            execute(["ip", "netns", "delete", name], 20)

    @staticmethod
    def command(*words):
        status, _, errors = execute(list(map(str, words)), 20)
        if status:
            raise CannotBeHad(f"{' '.join(map(str, words[:6]))}: {(errors.strip() or 'it failed').splitlines()[-1]}")

    def ip(self, *words):
        self.command("ip", *words)

    def inside(self, end):
        return ["ip", "netns", "exec", self.names[end]]


class VolumeBench(Bench):
    """Arrays of a build folder's programs, and runs of clients."""

    def __init__(self, folder, sizes):
        super().__init__(folder)
        self.sizes, self.build = sizes, folder

    def rows(self, settings, loads, designs):
        """A row for each setting, load and design."""
        rows = []
        for setting in self.sizes.settings(settings):
            try:
                rows += self.rows_of_setting(setting, self.sizes.loads(loads), designs)
            except Failed as error:
                rows.append({"what": str(setting), "failed": self.anonymous(str(error))})
        return rows

    def rows_of_setting(self, setting, loads, designs):
        with contextlib.ExitStack() as stack:
            if setting.link:
                stack.enter_context(self.linked())
            storage = f"virt:{self.sizes.engine_bytes // MIB}M?block=4096"
            if setting.rated:
                storage += f"&lat_us={LATENCY_US}&iops={self.sizes.iops}"
            names = [f"v{i + 1}" for i in range(setting.clients)]
            each = self.sizes.bytes // setting.clients
            array = Array(self, setting, stack.enter_context(
                self.volumes(setting.engines, storage, 1, setting.replicas, f"{each // KIB}K", names)), names, each)
            array.prepare(loads)
            runs = {}
            for _ in range(self.sizes.rounds):
                array.round(loads, designs, runs)
        return [self.row(setting, rw, bs, design, runs[rw, bs, design]) for rw, bs in loads for design in designs]

    @contextlib.contextmanager
    def linked(self):
        with Link() as link:
            self.host, self.inside, self.clients_inside = LINK_HOSTS[1], link.inside(1), link.inside(0)
            try:
                yield
            finally:
                self.host, self.inside, self.clients_inside = "127.0.0.1", [], []

    clients_inside = []

    def row(self, setting, rw, bs, design, runs):
        """The median of the runs, and what is the most that SSDs or link can give."""
        row = {"what": f"{design}, {rw} of {bs}, {setting}", "design": design, "rw": rw, "bs": bs, **dataclasses.asdict(setting)}
        row |= {key: statistics.median(run[key] for run in runs) for key in ("iops", "cpu_s", "server_cpu_s")}
        row |= {key: statistics.median(run[key] for run in runs) for key in ("p50_us", "p99_us") if key in runs[0]}
        row |= {key: sum(run[key] for run in runs) for key in ("requests", "errors", "verified_blocks", "bad_blocks")}
        # A run of weir-perf ends with its last request: it may be longer than was asked for.
        row["requests_per_cpu_s"] = row["requests"] / max(sum(run["cpu_s"] + run["server_cpu_s"] for run in runs), 1e-9)
        row |= {"bytes_per_s": row["iops"] * bs, "iops_runs": [run["iops"] for run in runs]}
        copies = setting.replicas if "write" in rw else 1
        if setting.rated:
            row["ideal_iops"] = self.sizes.iops * setting.engines / copies
        if setting.link:
            row["ideal_iops"] = LINK_BYTES / bs / (copies if design in ("direct", "weir") else 1)
        if row["errors"] or row["bad_blocks"] or not row["requests"] or (self.sizes.quick and not row["verified_blocks"]):
            row["failed"] = f"{row['requests']} requests, {row['errors']} failed; {row['verified_blocks']} blocks verified, {row['bad_blocks']} wrong"
        return row


class Array:
    """A volume for each client, over engines that run."""

    def __init__(self, bench, setting, daemon, names, bytes_each):
        self.bench, self.setting, self.daemon, self.names, self.bytes = bench, setting, daemon, names, bytes_each

    def prepare(self, loads):
        """All blocks are there, and where there is to be written, some of what engines have is garbage, as on a drive in use."""
        fill = ["direct", "--daemon", self.daemon, f"--size={self.bytes}"]
        self.clients("volume-bench", [*fill, "--fill", f"--bs={64 * KIB}", "--runtime=0"], self.names, note=False)
        if any("write" in rw for rw, _ in loads):
            self.clients("volume-bench", [*fill, "--rw=randwrite", f"--runtime={self.bench.sizes.seconds}"], self.names, note=False)

    def round(self, loads, designs, runs):
        """Each load by each design once; the server has the volumes only while its clients run: a volume has one writer."""
        ours = [design for design in designs if design in ("direct", "weir")]
        if len(ours) < len(designs):
            served = {name: f"vol:{name}?daemon={self.daemon}" for name in self.names}
            with self.bench.target(served, self.bench.sizes.server_threads) as uris:
                for rw, bs in loads:
                    for design in designs:
                        if design not in ours:
                            runs.setdefault((rw, bs, design), []).append(self.run(design, rw, bs, uris))
        for rw, bs in loads:
            for design in ours:
                runs.setdefault((rw, bs, design), []).append(self.run(design, rw, bs, self.names))

    def run(self, design, rw, bs, operands):
        sizes, setting = self.bench.sizes, self.setting
        timed = [] if setting.depth == 1 else ["--no-latency"]
        common = [f"--rw={rw}", f"--bs={bs}", f"--size={self.bytes}", f"--runtime={sizes.seconds:g}", *timed, *(["--verify"] if sizes.quick else [])]
        if design in ("basic", "no copy", "direct"):
            more = {"basic": ["basic"], "no copy": ["basic", "--no-copy"], "direct": ["direct", "--daemon", self.daemon]}[design]
            return self.clients("volume-bench", [*more, f"--iodepth={setting.depth}", *common], operands)
        if design == "weir":
            operands = [f"vol:{name}?daemon={self.daemon}&lanes=1" for name in operands]
        how = [f"--backend={self.bench.backend}", "--plain=off", "--json", "--runs=1", "--queues=1", "--depth=128"]
        return self.clients("weir-perf", [*how, *common], operands,
                            lanes=setting.depth)

    def clients(self, program, arguments, operands, lanes=0, note=True):
        """The sum of processes of up to DISKS clients each, that run at the same time."""
        parts = [operands[i:i + DISKS] for i in range(0, len(operands), DISKS)]
        commands = [[os.path.abspath(self.bench.program(program)), *arguments, *([f"--iodepth={lanes * len(part)}"] if lanes else []), *part]
                    for part in parts]
        if note:
            self.bench.commands.append(self.bench.show(commands[0]))
        before, begin = self.servers_cpu(), time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
            outputs = list(pool.map(self.execute, commands))
        return self.sum(outputs, self.servers_cpu() - before, time.monotonic() - begin)

    def execute(self, command):
        status, output, errors = execute([*self.bench.clients_inside, *command], self.bench.limit)
        try:
            return json.loads(output)
        except ValueError:
            raise Failed(f"{os.path.basename(command[0])}: {(errors.strip() or 'no JSON').splitlines()[-1]} (exit status {status})") from None

    def servers_cpu(self):
        return sum(processor_seconds(process.pid) for process in self.bench.servers)

    def sum(self, outputs, servers_s, wall_s):
        """Servers' time is of the whole life of the clients, of which the share of the run counts."""
        seconds = self.bench.sizes.seconds
        servers_s *= seconds / (seconds + WARM_S)
        run = {key: sum(output.get(key, 0) for output in outputs) for key in ("iops", "requests", "errors", "verified_blocks", "bad_blocks", "cpu_s")}
        run |= {key: max(output[key] for output in outputs) for key in ("p50_us", "p99_us") if all(key in output for output in outputs)}
        prefix = {"write_p50_us": "p50_us", "write_p99_us": "p99_us"}
        run |= {to: max(output[key] for output in outputs) for key, to in prefix.items() if all(key in output for output in outputs)}
        run["server_cpu_s"] = servers_s
        return run
