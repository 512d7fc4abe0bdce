# SPDX-License-Identifier: BSD-3-Clause
"""Tables and plots of ci/dataset-figures: results (JSON) to Markdown and SVG."""
import re
import shutil
import subprocess
import sys

from figures_page import LENGTHS, count, digits, length, ratio, render_tables, rows_of, table, two

COLUMNS = {  # of the table of samples
    "weir shuffled-chunk": "`shuffled-chunk`", "weir chunk": "`chunk`", "weir full": "`full`", "packed": "packed",
    "files, 1 thread": "files, 1 thread", "files, threads": "files, 8 threads"}
PYTHON = {"weir.Dataset": "`weir.Dataset`", "DataLoader, weir.torch.Batches": "DataLoader, `weir.torch.Batches`",
          "DataLoader, files": "DataLoader, files", "WebDataset": "WebDataset", "MosaicML streaming": "MosaicML streaming", "FFCV": "FFCV"}


# ---- cells ----

def mebibytes(bytes_):
    return f"{bytes_ / (1 << 20):.1f} MiB" if bytes_ % (1 << 20) else f"{bytes_ >> 20} MiB"


def nanoseconds(number):
    return f"{number:.1f} ns" if number < 1000 else f"{number / 1000:.1f} µs"


def short(what):
    """Names of bench with a number in them, without it."""
    what = re.sub(r"^packed file.*", "packed", what)
    what = re.sub(r"^io_uring.*", "limit", what)
    return {"files, open + pread, 1 thread": "files, 1 thread"}.get(what, re.sub(r"^files, open.*", "files, threads", what))


def by_length(results, prefix):
    """{bytes of a sample: {what: row}}"""
    found = {}
    for row in rows_of(results, prefix):
        found.setdefault(row["sample_bytes"], {})[short(row["what"])] = row
    return dict(sorted(found.items()))


def rate(row):
    return row.get("samples_per_s") if row else None


# ---- tables: each of one or several figures ----

def set_up(facts):
    memory = f"{facts['memory_bytes'] / (1 << 30):.0f} GiB" if facts.get("memory_bytes") else None
    words = [f"{facts['processors']} processors ({facts.get('processor') or 'of an unknown kind'})", memory,
             f"{facts.get('file_system')} on {facts.get('disk')}", f"Linux {facts.get('kernel')}", facts.get("system"),
             f"load average {facts['load_average']:.1f} at the start", f"{facts.get('build')} build", f"commit {(facts.get('commit') or 'unknown')[:12]}",
             facts.get("date")]
    return ", ".join(filter(None, words))


def machine(results):
    facts = results["machine"]
    warm = "" if facts.get("caches_dropped") else " The page cache was not dropped: that takes root."
    other = {}
    for figure in results["figures"]:
        known = (figure.get("commit") or "unknown").split()[0]
        if known != (facts.get("commit") or "unknown").split()[0] and "machine" not in figure:
            other.setdefault(known[:12], []).append(figure["name"])
    apart = "; ".join(f"{', '.join(names)}: commit {known}" for known, names in other.items())
    return ("Set-up: " + set_up(facts) + f". Median of {facts['runs']} runs of {facts['seconds_of_a_run']} s." + warm +
            (f" At another time {apart}." if apart else "") + "\n")


def samples(results):
    rows = []
    for bytes_, found in by_length(results, "samples").items():
        of = {name: rate(found.get(name)) for name in COLUMNS}
        ours, limit = found.get("weir shuffled-chunk", {}), found.get("limit", {})
        cores = [two(found.get(name, {}).get("cores")) for name in ("weir shuffled-chunk", "packed", "files, threads")]
        rows.append([length(bytes_), *(count(of[name]) for name in COLUMNS), ratio(of["weir shuffled-chunk"], of["files, 1 thread"]),
                     ratio(of["weir shuffled-chunk"], of["files, threads"]), ratio(of["weir full"], of["packed"]),
                     ratio(ours.get("bytes_per_s"), limit.get("bytes_per_s")), " / ".join(cores)])
    return table(["sample", *COLUMNS.values(), "shuffled-chunk / 1 thread", "/ 8 threads", "full / packed", "shuffled-chunk / limit, bytes",
                  "cores: shuffled-chunk / packed / 8 threads"], rows) if rows else ""


def peers(results):
    rows, notes = [], {}
    for bytes_, found in by_length(results, "peers").items():
        cells = []
        for name in PYTHON:
            row = found.get(name, {})
            if row.get("skipped") or row.get("failed"):
                notes[name] = f"{name} {'was skipped' if row.get('skipped') else 'failed'}: {(row.get('skipped') or row.get('failed')).rstrip('.')}."
            cells.append(f"{count(rate(row))} ({two(row.get('cores'))})" if rate(row) else "–")
        rows.append([length(bytes_), *cells])
    text = table(["sample", *PYTHON.values()], rows) if rows else ""
    return text + "".join(f"\n{note}\n" for note in notes.values())


def pools(results):
    return [row for row in rows_of(results, "pool") if "devices" in row]


def pool(results):
    rows = [[length(row["sample_bytes"]), str(row["devices"]), str(row["clients"]), count(row["ideal_samples_per_s"]),
             count(row["samples_per_s"]), ratio(row["samples_per_s"], row["ideal_samples_per_s"]),
             ratio(row["raw_samples_per_s"], row["ideal_samples_per_s"]), two(row["cores"]), two(row["target_cores"])]
            for row in sorted(pools(results), key=lambda r: (r["sample_bytes"], r["clients"] > 1, r["devices"]))]
    return table(["sample", "devices", "clients", "ideal samples/s", "weir", "of the ideal", "raw reads, of the ideal", "cores, clients",
                  "cores, target"], rows) if rows else ""


def remote(results):
    rows = [[length(row["sample_bytes"]), count(row["samples_per_s"]), f"{row['bytes_per_s'] / 1e6:.0f} MB/s", two(row["cores"]),
             two(row["target_cores"])] for row in rows_of(results, "remote")]
    return table(["sample", "samples/s", "bytes", "cores, client", "cores, target"], rows) if rows else ""


def lookup_table(found, name):
    rows = [[name, "`buckets`" if row["what"].endswith("buckets") else "`avl`", nanoseconds(row["one_ns"]), nanoseconds(row["many_ns"]),
             f"{row['bytes_per_sample']:.2f}"] for row in found if row["what"].startswith("lookup")]
    return rows + [[name, "open(2) + close(2)", nanoseconds(row["one_ns"]), "–", "–"] for row in found if row["what"].startswith("open")]


def lookup(results):
    rows = []
    for prefix in "lookup", "directory":
        found = {}
        for row in rows_of(results, prefix):
            found.setdefault((row["samples"], row.get("sample_bytes")), []).append(row)
        for (number, bytes_), of in found.items():
            rows += lookup_table(of, f"{number:,}" + (f" of {length(bytes_)}" if bytes_ else " records"))
    return table(["samples", "lookup", "one", "of many at once", "directory, bytes per sample"], rows) if rows else ""


def directory(results):
    rows = [[f"{row['samples']:,}", f"{row['directory_bytes']:,}", f"{row['bytes_per_sample']:.3f}", f"{row['bound_bytes']:,}",
             "yes" if row["directory_bytes"] <= row["bound_bytes"] else "no", f"{row['index_s']:.1f} s", f"{row['mount_s']:.2f} s"]
            for row in rows_of(results, "directory") if row["what"] == "directory"]
    return table(["samples", "directory, bytes", "per sample", "16 B per sample + 5 %", "kept", "index", "mount"], rows) if rows else ""


def memory(results):
    rows = [[mebibytes(row["cache_bytes"]), mebibytes(row["peak_rss_bytes"]), mebibytes(row["peak_rss_bytes"] - row["cache_bytes"])]
            for row in rows_of(results, "memory")]
    return table(["cache", "resident memory at most", "less the cache"], rows) if rows else ""


def order(results):
    rows = [[f"`{row['what']}`", f"{row['coverage']:.3f}", f"{row['displacement']:.3f}", f"{row['autocorrelation']:.4f}",
             f"{row['neighbours']:.4f}"] for row in rows_of(results, "order")]
    return table(["order", "coverage", "displacement", "autocorrelation", "neighbours"], rows) if rows else ""


def accuracy(results):
    found = {}
    for row in rows_of(results, "accuracy"):
        found.setdefault((row["what"], row["buffer"]), {})[row["place"]] = f"{row['accuracy']:.4f} ± {row['deviation']:.4f}"
    rows = [[f"`{what}`", buffer, of.get("in place", "–"), of.get("uploaded", "–")] for (what, buffer), of in found.items()]
    return table(["order", "buffer, chunks", "in place, sorted by class", "uploaded"], rows) if rows else ""


TABLES = {f.__name__: f for f in (machine, samples, peers, pool, remote, lookup, directory, memory, order, accuracy)}


def render(results, plots=()):
    """{name: Markdown}, of what was measured."""
    text = render_tables(results, TABLES)
    for name in text:
        elsewhere = {}
        for figure in results["figures"]:
            if "machine" in figure and figure["name"].split("_")[0] == name:
                elsewhere.setdefault(set_up(figure["machine"]), []).append(figure["name"])
        text[name] += "".join(f"\nSet-up of {', '.join(names)}: {facts}.\n" for facts, names in elsewhere.items())
    return {name: made + (f"\n[Plot](results/datasets-{name}.svg)\n" if name in plots else "")
            for name, made in text.items()}


# ---- plots ----

def lines(title, x, y, series, log="xy", more=""):
    """gnuplot: {name: [(x, y)]} as lines."""
    data, plots = [], []
    for number, (name, points) in enumerate(series.items()):
        points = [(a, b) for a, b in points if b is not None]
        if points:
            data.append(f"$d{number} << END\n" + "\n".join(f"{a} {b}" for a, b in points) + "\nEND\n")
            plots.append(f"$d{number} using 1:2 with linespoints title '{name}' noenhanced")
    if not plots:
        return None
    scale = f"set logscale {log}\n" if log else ""
    return (f"set title '{title}' noenhanced\nset xlabel '{x}'\nset ylabel '{y}'\nset key outside right\n{scale}{more}" + "".join(data) +
            "plot " + ", ".join(plots) + "\n")


def bars(title, y, values, log=False):
    """gnuplot: [(name, value, deviation)] as bars."""
    if not values:
        return None
    data = "".join(f'"{name}" {value} {deviation}\n' for name, value, deviation in values)
    return (f"set title '{title}' noenhanced\nset ylabel '{y}'\nset style fill solid 0.4\nset boxwidth 0.7\nset xtics rotate by -35 noenhanced\nunset key\n"
            f"{'set logscale y' if log else ''}\n$d << END\n{data}END\nplot $d using 0:2:xtic(1) with boxes, $d using 0:2:3 with yerrorbars lc rgb 'black' pt 0\n")


def by_what(results, prefix, names):
    found = by_length(results, prefix)
    return {shown.replace("`", ""): [(bytes_, rate(rows.get(name))) for bytes_, rows in found.items()] for name, shown in names.items()}


def pool_lines(results):
    series = {}
    for row in sorted(pools(results), key=lambda r: r["devices"]):
        whose = "one client" if row["clients"] == 1 else "a client per device"
        share = row["samples_per_s"] / row["ideal_samples_per_s"]
        if row["devices"] == 1:
            series.setdefault(f"{length(row['sample_bytes'])}, a client per device", []).append((1, share))
        series.setdefault(f"{length(row['sample_bytes'])}, {whose}", []).append((row["devices"], share))
        if row["clients"] == 1:
            series.setdefault(f"{length(row['sample_bytes'])}, raw reads", []).append((row["devices"], row["raw_samples_per_s"] / row["ideal_samples_per_s"]))
    return series


def scripts(results):
    ticks = "set xtics (" + ", ".join(f"'{name}' {bytes_}" for bytes_, name in LENGTHS.items()) + ")\n"
    return {
        "samples": lines("samples per second, cold caches", "sample", "samples/s", by_what(results, "samples", COLUMNS), more=ticks),
        "peers": lines("samples per second in Python, cold caches", "sample", "samples/s", by_what(results, "peers", PYTHON), more=ticks),
        "pool": lines("a pool of emulated devices: share of the ideal", "devices", "of the ideal", pool_lines(results), log="x 2",
                      more="set yrange [0:1.1]\n"),
        "lookup": bars("lookup of one name", "ns", [(f"{row['what'].removeprefix('lookup ')}, {row['samples']:,}", row["one_ns"], 0)
                                                     for prefix in ("lookup", "directory") for row in rows_of(results, prefix) if "one_ns" in row], log=True),
        "memory": bars("resident memory at most, by cache", "MiB", [(mebibytes(row["cache_bytes"]), row["peak_rss_bytes"] / (1 << 20), 0)
                                                                     for row in rows_of(results, "memory")]),
        "accuracy": bars("accuracy", "of the test images", [(f"{row['what']} {row['buffer']}, {row['place']}", row["accuracy"], row["deviation"])
                                                             for row in rows_of(results, "accuracy")]),
    }


def plot(results, folder):
    """Names of what was drawn, as folder/datasets-NAME.svg."""
    wanted = {name: script for name, script in scripts(results).items() if script}
    if wanted and not shutil.which("gnuplot"):
        print("ci/dataset-figures: no plots: gnuplot is not installed (apt-get install gnuplot-nox)", file=sys.stderr)
        return []
    drawn = []
    for name, script in wanted.items():
        done = subprocess.run(["gnuplot"], input=f"set terminal svg size 900,500 dynamic\nset output '{folder}/datasets-{name}.svg'\nset grid\n{script}",
                              text=True, capture_output=True, timeout=60)
        if done.returncode or "warning" in done.stderr:
            print(f"ci/dataset-figures: gnuplot: {done.stderr.strip()}", file=sys.stderr)
        drawn += [] if done.returncode else [name]
    return drawn
