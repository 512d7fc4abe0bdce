# SPDX-License-Identifier: BSD-3-Clause
"""Tables of ci/volume-figures: results (JSON) to Markdown."""
from figures_page import count, digits, length, ratio, render_tables, rows_of, table, two

NAMES = {"read": "sequential read", "randread": "random read", "write": "sequential write", "randwrite": "random write"}


def machine(results):
    facts, loads = results["machine"], [figure["load_average"] for figure in results["figures"]]
    return (f"Set-up: {facts['processors']} processors, {facts['processor']}; Linux {facts['kernel']}; build {facts['build']}; {facts['date']}, "
            f"commit {facts['commit']}. Runs of {facts['seconds_of_a_run']:g} s, the median of {facts['runs']}, in turns; "
            f"{facts['bytes'] >> 20} MiB in all volumes. Where an SSD has a rate: {facts['iops']:,} commands a second, {facts['lat_us']} µs. "
            f"Load average at the end of each figure: {min(loads):.0f} to {max(loads):.0f}.\n")


def groups(rows, *keys):
    """{values of keys: {design: row}}"""
    found = {}
    for row in rows:
        if "iops" not in row:
            continue  # its setting failed
        found.setdefault(tuple(row[key] for key in keys), {})[row["design"]] = row
    return found


def load(rw, bs):
    return f"{length(bs)} {NAMES[rw]}"


def of_ideal(row):
    return ratio(row["iops"], row.get("ideal_iops"))


def per_cpu(row):
    return count(row["requests_per_cpu_s"])


def cells(of, show):
    return [show(of[design]) if design in of else "–" for design in ("basic", "direct", "weir")]


def requests(row):
    return count(row["iops"])


def access_rated(results):
    rows = [[load(*key), count(of["weir"]["ideal_iops"]), *cells(of, requests), *cells(of, of_ideal)]
            for key, of in groups(rows_of(results, "access_rated"), "rw", "bs").items()]
    return table(["requests/s", "SSDs give", "basic", "direct", "weir", "basic, of that", "direct", "weir"], rows) if rows else ""


def access_free(results):
    rows = [[load(*key), *cells(of, requests), ratio(of["weir"]["iops"], of["basic"]["iops"]), ratio(of["weir"]["iops"], of["direct"]["iops"]),
             *cells(of, per_cpu)] for key, of in groups(rows_of(results, "access_free"), "rw", "bs").items()]
    return table(["requests/s", "basic", "direct", "weir", "weir / basic", "weir / direct", "per CPU second: basic", "direct", "weir"], rows) if rows else ""


def scaled(results, name, key, shows):
    """A line for each number of @key, reads and writes side by side."""
    rows = [[str(number), NAMES[rw], *(cell for show in shows for cell in cells(of, show))]
            for (rw, number), of in sorted(groups(rows_of(results, name), "rw", key).items())]
    second = "per CPU second: " if shows[1] is per_cpu else "of the SSDs: "
    heads = [f"{what}{design}" for what in ("", second) for design in ("basic", "direct", "weir")]
    return table([key, "4 KiB, requests/s", *heads], rows) if rows else ""


def clients(results):
    return scaled(results, "clients", "clients", (requests, per_cpu))


def engines(results):
    return scaled(results, "engines", "engines", (requests, of_ideal))


def replicas(results):
    return scaled(results, "replicas", "replicas", (requests, of_ideal))


def latency(results):
    rows = [[load(*key), *(f"{digits(of[design]['p50_us'])} / {digits(of[design]['p99_us'])}" for design in ("basic", "direct", "weir"))]
            for key, of in groups(rows_of(results, "latency"), "rw", "bs").items()]
    return table(["one request at a time, µs: median / 99 %", "basic", "direct", "weir"], rows) if rows else ""


def link(results):
    rows = [[load(*key), *cells(of, lambda row: f"{row['bytes_per_s'] / 1e6:.1f}"), *cells(of, of_ideal)]
            for key, of in groups(rows_of(results, "link"), "rw", "bs").items()]
    return table(["MB/s", "basic", "direct", "weir", "basic, of what the link can give", "direct", "weir"], rows) if rows else ""


ABLATION = {"basic": "host threads, server, copies: *basic*", "no copy": "host threads, server, no copy by the client (the paper's GD)",
            "direct": "host threads, engines: *direct*", "lanes, server": "lanes, server", "weir": "lanes, engines: *weir*"}


def ablation(results):
    found = groups(rows_of(results, "ablation"), "rw", "bs")
    rows = [[shown, *(cell for of in found.values() for cell in (requests(of[design]), two(of[design]["iops"] / of["basic"]["iops"]), per_cpu(of[design])))]
            for design, shown in ABLATION.items() if all(design in of for of in found.values())]
    heads = [cell for key in found for cell in (load(*key) + "/s", "of basic", "per CPU second")]
    return table(["who issues, to whom", *heads], rows) if found else ""


TABLES = {f.__name__: f for f in (machine, access_rated, access_free, clients, engines, replicas, latency, link, ablation)}


def render(results):
    """{name: Markdown}, of what was measured."""
    return render_tables(results, TABLES)
